#include "ir/program.h"
#include "ir/memory.h"

#include <stdlib.h>
#include <string.h>

struct program *program_new(const char *name) {
    struct program *p = memory_array(1, sizeof *p);
    arena_init(&p->arena);
    p->name = arena_strdup(&p->arena, name);
    return p;
}

void program_free(struct program *p) {
    if (!p) return;
    arena_free(&p->arena);
    free(p);
}

int program_buffer(const struct program *p, const char *name) {
    for (int b = 0; b < p->nbuffers; b++)
        if (strcmp(p->buffer[b].name, name) == 0) return b;
    return -1;
}

bool access_varies(const struct program *p, const struct access *a, int axis) {
    for (int d = 0; d < p->buffer[a->buffer].ndims; d++)
        if (access_coef(p, a, d, axis) != 0) return true;
    return false;
}

void access_range(const struct program *p, const struct stmt *st, const struct access *a, int dim,
                  int64_t *lo, int64_t *hi) {
    *lo = *hi = access_coef(p, a, dim, p->naxes);
    for (uint64_t left = st->axes; left; left &= left - 1) {
        int x = __builtin_ctzll(left);
        int64_t c = access_coef(p, a, dim, x);
        if (c > 0)
            *hi += c * (p->axis[x].extent - 1);
        else
            *lo += c * (p->axis[x].extent - 1);
    }
}

bool stmt_reads_beside(const struct program *p, const struct stmt *st) {
    for (int r = 0; r < st->nreads; r++)
        for (int d = 0; st->read[r].has_fill && d < p->buffer[st->read[r].buffer].ndims; d++) {
            int64_t lo, hi;
            access_range(p, st, &st->read[r], d, &lo, &hi);
            if (lo < 0 || hi >= p->buffer[st->read[r].buffer].extent[d]) return true;
        }
    return false;
}

bool stmt_parts_differ(const struct program *p, const struct stmt *x, const struct stmt *y) {
    for (int d = 0; d < p->buffer[x->dst.buffer].ndims; d++) {
        int64_t lo, hi, from, to;
        access_range(p, x, &x->dst, d, &lo, &hi);
        access_range(p, y, &y->dst, d, &from, &to);
        if (hi < from || to < lo) return true;
    }
    return false;
}

/* Is the index in each dimension one axis of the mask (those of one value apart), or a number of
 * blocks and what is in a block (16*b + l), which is one of `inner`? */
static bool access_in_blocks(const struct program *p, const struct access *a, uint64_t axes,
                             uint64_t inner) {
    for (int d = 0; d < p->buffer[a->buffer].ndims; d++) {
        int n = 0, outer = -1, in = -1;
        for (int x = 0; x < p->naxes; x++) {
            int64_t c = axes >> x & 1 && p->axis[x].extent > 1 ? access_coef(p, a, d, x) : 0;
            if (!c) continue;
            n++;
            if (c == 1 && inner >> x & 1)
                in = x;
            else
                outer = x;
        }
        if (n > 2 ||
            (n == 2 && (in < 0 || outer < 0 || access_coef(p, a, d, outer) != p->axis[in].extent)))
            return false;
    }
    return true;
}

int stmt_ordered(const struct program *p, const struct stmt *st) {
    for (int a = 0; a < p->naxes; a++)
        if ((st->axes >> a & 1) && p->axis[a].sequential && p->axis[a].extent > 1) return a;
    return -1;
}

bool stmt_in_tiles(const struct program *p, const struct stmt *st, uint64_t inner) {
    uint64_t seen = 0;
    for (int d = 0; d < p->buffer[st->dst.buffer].ndims; d++)
        for (int a = 0; a < p->naxes; a++) {
            int64_t c = access_coef(p, &st->dst, d, a);
            if (!c || !(st->axes >> a & 1) || p->axis[a].extent == 1) continue;
            if (seen >> a & 1 || c < 0) return false;
            seen |= UINT64_C(1) << a;
        }
    return access_in_blocks(p, &st->dst, st->axes, inner);
}

/* How many values the index takes, one after the other: the axes count in mixed radix. */
static int64_t run_of(const struct program *p, const struct stmt *st, int dim, uint64_t *seen) {
    int64_t run = 1;
    for (bool found = true; found;) {
        found = false;
        for (int a = 0; a < p->naxes && !found; a++) {
            if (!(st->axes >> a & 1) || *seen >> a & 1 || access_coef(p, &st->dst, dim, a) != run)
                continue;
            *seen |= UINT64_C(1) << a;
            run *= p->axis[a].extent;
            found = true;
        }
    }
    return run;
}

bool stmt_writes_box(const struct program *p, const struct stmt *st, int64_t *lo, int64_t *n) {
    uint64_t seen = 0;
    if (st->combine != COMBINE_SET || st->nwhere) return false;
    for (int d = 0; d < p->buffer[st->dst.buffer].ndims; d++) {
        int64_t first, last;
        lo[d] = access_coef(p, &st->dst, d, p->naxes);
        n[d] = run_of(p, st, d, &seen);
        access_range(p, st, &st->dst, d, &first, &last);
        if (first != lo[d] || last != lo[d] + n[d] - 1) return false;
    }
    return true;
}

bool stmt_writes_whole(const struct program *p, const struct stmt *st) {
    int64_t lo[MAX_DIMS], n[MAX_DIMS];
    if (!stmt_writes_box(p, st, lo, n)) return false;
    for (int d = 0; d < p->buffer[st->dst.buffer].ndims; d++)
        if (lo[d] || n[d] != p->buffer[st->dst.buffer].extent[d]) return false;
    return true;
}

uint64_t stmt_axes(const struct program *p, const struct stmt *s) {
    uint64_t mask = 0;
    for (int a = 0; a < p->naxes; a++) {
        bool occurs = access_varies(p, &s->dst, a);
        for (int r = 0; r < s->nreads && !occurs; r++) occurs = access_varies(p, &s->read[r], a);
        for (int w = 0; w < s->nwhere && !occurs; w++) occurs = s->where[w].coef[a] != 0;
        for (int o = 0; o < s->nops && !occurs; o++)
            occurs = s->op[o].code == OP_AXIS && s->op[o].axis == a;
        if (occurs) mask |= (uint64_t)1 << a;
    }
    return mask;
}

static struct access copy_access(struct arena *to, const struct program *p,
                                 const struct access *a) {
    struct access c = *a;
    size_t n = (size_t)p->buffer[a->buffer].ndims * ((size_t)p->naxes + 1);
    c.coef = arena_copy(to, a->coef, n * sizeof *c.coef);
    return c;
}

static void copy_stmt(struct arena *to, const struct program *p, const struct stmt *s,
                      struct stmt *c) {
    size_t row = ((size_t)p->naxes + 1) * sizeof(int64_t);
    *c = *s;
    c->dst = copy_access(to, p, &s->dst);
    c->read = arena_array(to, (size_t)s->nreads, sizeof *c->read);
    for (int r = 0; r < s->nreads; r++) c->read[r] = copy_access(to, p, &s->read[r]);
    c->op = arena_copy(to, s->op, (size_t)s->nops * sizeof *s->op);
    c->where = arena_array(to, (size_t)s->nwhere, sizeof *c->where);
    for (int w = 0; w < s->nwhere; w++) c->where[w].coef = arena_copy(to, s->where[w].coef, row);
}

static struct item *copy_items(struct arena *to, const struct item *from, int n) {
    struct item *c = arena_copy(to, from, (size_t)n * sizeof *from);
    for (int k = 0; k < n; k++) {
        if (c[k].kind == ITEM_RECUR) {
            struct recur *r = arena_copy(to, from[k].recur, sizeof *r);
            r->state = arena_copy(to, r->state, (size_t)r->nstates * sizeof *r->state);
            r->item = copy_items(to, r->item, r->nitems);
            c[k].recur = r;
        } else if (c[k].kind == ITEM_CALL) {
            struct call *f = arena_copy(to, from[k].call, sizeof *f);
            f->function = arena_strdup(to, f->function);
            f->read = arena_copy(to, f->read, (size_t)f->nreads * sizeof *f->read);
            f->write = arena_copy(to, f->write, (size_t)f->nwrites * sizeof *f->write);
            c[k].call = f;
        }
    }
    return c;
}

static void copy_declarations(struct program *c, const struct program *p) {
    struct arena *to = &c->arena;
    c->nbuffers = p->nbuffers;
    c->buffer = arena_copy(to, p->buffer, (size_t)p->nbuffers * sizeof *p->buffer);
    for (int b = 0; b < p->nbuffers; b++) {
        struct buffer *f = &c->buffer[b];
        f->name = arena_strdup(to, f->name);
        f->extent = arena_copy(to, f->extent, (size_t)f->ndims * sizeof *f->extent);
    }
    c->nplaces = p->nplaces;
    c->buffer_at = arena_copy(to, p->buffer_at, (size_t)p->nplaces * sizeof *p->buffer_at);
    c->naxes = p->naxes;
    c->axis = arena_copy(to, p->axis, (size_t)p->naxes * sizeof *p->axis);
    for (int a = 0; a < p->naxes; a++) c->axis[a].name = arena_strdup(to, c->axis[a].name);
    c->nparams = p->nparams;
    c->param = arena_copy(to, p->param, (size_t)p->nparams * sizeof *p->param);
    for (int k = 0; k < p->nparams; k++) c->param[k].name = arena_strdup(to, c->param[k].name);
    c->nsizes = p->nsizes;
    c->size = arena_copy(to, p->size, (size_t)p->nsizes * sizeof *p->size);
    for (int k = 0; k < p->nsizes; k++) c->size[k].name = arena_strdup(to, c->size[k].name);
}

/* All but the statements and items. */
static struct program *copy_frame(const struct program *p) {
    struct program *c = program_new(p->name);
    struct arena *to = &c->arena;
    c->source = p->source;
    if (p->source.file) c->source.file = arena_strdup(to, p->source.file);
    if (p->source.text) c->source.text = arena_strndup(to, p->source.text, p->source.length);
    copy_declarations(c, p);
    return c;
}

struct program *program_copy(const struct program *p) {
    struct program *c = copy_frame(p);
    c->nstmts = p->nstmts;
    c->stmt = arena_array(&c->arena, (size_t)p->nstmts, sizeof *c->stmt);
    for (int s = 0; s < p->nstmts; s++) copy_stmt(&c->arena, p, &p->stmt[s], &c->stmt[s]);
    c->nitems = p->nitems;
    c->item = copy_items(&c->arena, p->item, p->nitems);
    return c;
}

struct program *program_of_stmts(const struct program *p, const struct stmt *const *stmt, int n) {
    struct program *c = copy_frame(p);
    c->nstmts = c->nitems = n;
    c->stmt = arena_array(&c->arena, (size_t)n, sizeof *c->stmt);
    c->item = arena_array(&c->arena, (size_t)n, sizeof *c->item);
    for (int s = 0; s < n; s++) {
        copy_stmt(&c->arena, p, stmt[s], &c->stmt[s]);
        c->item[s] = (struct item){.kind = ITEM_STMT, .stmt = s};
    }
    return c;
}

void axis_resize(struct axis *a, int64_t size) {
    a->extent = a->group && !a->rest ? size / a->group : size;
    a->first = a->rest ? size / a->group * a->group : 0;
}

struct program *program_at(const struct program *p, const int64_t *size) {
    struct program *c = program_copy(p);
    for (int a = 0; a < c->naxes; a++)
        if (size && c->axis[a].size) axis_resize(&c->axis[a], size[c->axis[a].size - 1]);
    return c;
}

/* Bits, so that nan equals nan and 0 differs from -0. */
static bool value_equal(enum type t, union value a, union value b) {
    if (!type_is_float(t)) return a.i == b.i;
    return (a.f != a.f && b.f != b.f) || memcmp(&a.f, &b.f, sizeof a.f) == 0;
}

bool access_equal(const struct program *p, const struct access *a, const struct access *b) {
    if (a->buffer != b->buffer || a->has_fill != b->has_fill) return false;
    const struct buffer *f = &p->buffer[a->buffer];
    if (a->has_fill && !value_equal(f->type, a->fill, b->fill)) return false;
    size_t n = (size_t)f->ndims * ((size_t)p->naxes + 1);
    return n == 0 || memcmp(a->coef, b->coef, n * sizeof *a->coef) == 0;
}

static bool op_equal(const struct op *a, const struct op *b) {
    if (a->code != b->code || a->type != b->type) return false;
    if (a->code == OP_READ) return a->read == b->read;
    if (a->code == OP_AXIS) return a->axis == b->axis;
    if (a->code == OP_LITERAL) return value_equal(a->type, a->value, b->value);
    for (int k = 0; k < op_info[a->code].arity; k++)
        if (a->arg[k] != b->arg[k]) return false;
    return true;
}

static bool stmt_equal(const struct program *p, const struct stmt *a, const struct stmt *b) {
    if (a->combine != b->combine || a->nreads != b->nreads || a->nops != b->nops) return false;
    if (a->nwhere != b->nwhere || a->axes != b->axes || !access_equal(p, &a->dst, &b->dst))
        return false;
    for (int k = 0; k < a->nreads; k++)
        if (!access_equal(p, &a->read[k], &b->read[k])) return false;
    for (int k = 0; k < a->nops; k++)
        if (!op_equal(&a->op[k], &b->op[k])) return false;
    size_t row = ((size_t)p->naxes + 1) * sizeof(int64_t);
    for (int k = 0; k < a->nwhere; k++)
        if (memcmp(a->where[k].coef, b->where[k].coef, row) != 0) return false;
    return true;
}

static bool numbers_equal(const int *a, int na, const int *b, int nb) {
    return na == nb && (na == 0 || memcmp(a, b, (size_t)na * sizeof *a) == 0);
}

static bool items_equal(const struct item *a, int na, const struct item *b, int nb);

static bool recur_equal(const struct recur *a, const struct recur *b) {
    if (a->axis != b->axis || a->reverse != b->reverse || a->nstates != b->nstates) return false;
    for (int k = 0; k < a->nstates; k++) {
        const struct recur_state *x = &a->state[k], *y = &b->state[k];
        if (x->current != y->current || x->next != y->next) return false;
        if (x->from != y->from || x->to != y->to) return false;
    }
    return items_equal(a->item, a->nitems, b->item, b->nitems);
}

static bool call_equal(const struct call *a, const struct call *b) {
    return strcmp(a->function, b->function) == 0 &&
           numbers_equal(a->read, a->nreads, b->read, b->nreads) &&
           numbers_equal(a->write, a->nwrites, b->write, b->nwrites);
}

static bool items_equal(const struct item *a, int na, const struct item *b, int nb) {
    if (na != nb) return false;
    for (int k = 0; k < na; k++) {
        if (a[k].kind != b[k].kind) return false;
        if (a[k].kind == ITEM_STMT && a[k].stmt != b[k].stmt) return false;
        if (a[k].kind == ITEM_RECUR && !recur_equal(a[k].recur, b[k].recur)) return false;
        if (a[k].kind == ITEM_CALL && !call_equal(a[k].call, b[k].call)) return false;
    }
    return true;
}

static bool declarations_equal(const struct program *a, const struct program *b) {
    if (a->nbuffers != b->nbuffers || a->naxes != b->naxes) return false;
    for (int k = 0; k < a->nbuffers; k++) {
        const struct buffer *x = &a->buffer[k], *y = &b->buffer[k];
        if (strcmp(x->name, y->name) != 0 || x->type != y->type || x->role != y->role) return false;
        if (x->ndims != y->ndims) return false;
        for (int d = 0; d < x->ndims; d++)
            if (x->extent[d] != y->extent[d]) return false;
    }
    for (int k = 0; k < a->naxes; k++) {
        const struct axis *x = &a->axis[k], *y = &b->axis[k];
        if (strcmp(x->name, y->name) != 0 || x->extent != y->extent) return false;
        if (x->sequential != y->sequential || x->first != y->first) return false;
    }
    return true;
}

bool program_equal(const struct program *a, const struct program *b) {
    if (strcmp(a->name, b->name) != 0 || a->nstmts != b->nstmts || !declarations_equal(a, b))
        return false;
    for (int s = 0; s < a->nstmts; s++)
        if (!stmt_equal(a, &a->stmt[s], &b->stmt[s])) return false;
    return items_equal(a->item, a->nitems, b->item, b->nitems);
}
