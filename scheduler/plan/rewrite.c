/* The program as scheduled grows: packed buffers, the statements that fill them, their axes. */
#include "ir/steps.h"
#include "scheduler/plan/geom.h"
#include "scheduler/plan/rewrite.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/work.h"

enum { FEW_AXES = 40 /* of MAX_AXES */ };

int rewrite_axis(struct work *w, const char *name, int64_t extent) {
    int before = w->p->naxes - w->nscopes;
    if (w->p->naxes < MAX_AXES) join_add_axis(w, before);
    int at = program_add_axis(w->p, name, extent, before);
    for (int k = 0; at >= 0 && k < w->nscopes; k++) w->scope[k].axis++;
    return at;
}

/* Axes may have one name for what has nothing to do with each other; while there is room they have
 * names of their own, which read better. */
int rewrite_axis_apart(struct work *w, const char *name, int64_t extent, uint64_t used) {
    const struct program *p = w->p;
    for (int a = 0; p->naxes > FEW_AXES && a < p->naxes - w->nscopes; a++)
        if (p->axis[a].extent == extent && !p->axis[a].sequential && !(used >> a & 1)) return a;
    return rewrite_axis(w, name, extent);
}

const char *unique_name(struct work *w, const char *base, const char *suffix) {
    return program_unique(w->p, base, suffix);
}

int rewrite_buffer(struct work *w, const char *name, enum type type, enum role role, int ndims,
                   const int64_t *extent) {
    struct program *p = w->p;
    int n = p->nbuffers;
    struct buffer *buffer = arena_grow(&p->arena, p->buffer, n, &w->cap_buffers, sizeof *buffer);
    struct home *home = arena_grow(w->arena, w->home, n, &w->cap_homes, sizeof *home);
    int64_t elements = 1, *own = arena_copy(&p->arena, extent, sizeof *extent * (size_t)ndims);
    for (int d = 0; d < ndims; d++)
        if (__builtin_mul_overflow(elements, extent[d], &elements) || elements > INT64_MAX / 16) {
            diag_line(w->diags, work_file(w), 0, 0, "packed copy '%s' is too large", name);
            return -1;
        }
    buffer[n] = (struct buffer){name, type, role, ndims, own, elements, 0};
    home[n] = (struct home){.memory = w->m->home,
                            .extent = arena_copy(w->arena, extent, sizeof *extent * (size_t)ndims),
                            .elements = elements,
                            .place = -1};
    p->buffer = buffer;
    p->nbuffers++;
    w->home = home;
    return n;
}

struct access rewrite_access(struct work *w, int buffer) {
    size_t rows = (size_t)w->p->buffer[buffer].ndims;
    return (struct access){
        .buffer = buffer,
        .coef = arena_array(&w->p->arena, rows * (size_t)(w->p->naxes + 1) + 1, sizeof(int64_t))};
}

int rewrite_copy(struct work *w, struct access dst, struct access src, uint64_t axes) {
    struct program *p = w->p;
    int n = p->nstmts;
    w->changes++;
    p->stmt = arena_grow(&p->arena, p->stmt, n, &w->cap_stmts, sizeof *p->stmt);
    w->task_of = arena_grow(w->arena, w->task_of, n, &w->cap_tasks_of, sizeof *w->task_of);
    w->in_prepare = arena_grow(w->arena, w->in_prepare, n, &w->cap_prepare, sizeof *w->in_prepare);
    struct stmt *st = &p->stmt[n];
    struct op *op = arena_alloc(&p->arena, sizeof *op);
    enum type t = p->buffer[dst.buffer].type;
    *op = (struct op){
        .code = OP_READ, .type = t == TYPE_F16 || t == TYPE_BF16 ? TYPE_F32 : t, .read = 0};
    op->arg[0] = op->arg[1] = op->arg[2] = -1;
    *st = (struct stmt){
        .combine = COMBINE_SET, .dst = dst, .nreads = 1, .op = op, .nops = 1, .axes = axes};
    st->read = arena_copy(&p->arena, &src, sizeof src);
    w->task_of[n] = -1;
    w->in_prepare[n] = false;
    p->nstmts++;
    return n;
}

struct access *task_access(struct work *w, const struct task *t, const struct opnd *o, bool write) {
    struct stmt *st = &w->p->stmt[t->stmt];
    if (write) return o->writes ? &st->dst : NULL;
    return o->read >= 0 ? &st->read[o->read] : NULL;
}

static bool has_operand(const struct task *t, int read) {
    for (int o = 0; o < t->nops; o++)
        if (t->op[o].read == read) return true;
    return false;
}

void rewrite_read(struct work *w, const struct task *t, int operand, struct access now) {
    struct program *p = w->p;
    struct stmt *st = &p->stmt[t->stmt];
    int own = t->op[operand].read;
    size_t rows = (size_t)p->buffer[now.buffer].ndims;
    const struct access was = st->read[own];
    bool several = false;
    for (int r = 0; r < st->nreads; r++)
        several |= access_equal(p, &st->read[r], &was) && !has_operand(t, r);
    for (int r = 0; r < st->nreads; r++) {
        if (r != own && !(several && access_equal(p, &st->read[r], &was))) continue;
        st->read[r] = now;
        st->read[r].coef =
            arena_copy(&p->arena, now.coef, sizeof *now.coef * rows * (size_t)(p->naxes + 1));
    }
}

const struct access *opnd_access(const struct work *w, const struct task *t, const struct opnd *o) {
    const struct stmt *st = &w->p->stmt[t->stmt];
    return o->read >= 0 && !o->source ? &st->read[o->read] : &st->dst;
}
