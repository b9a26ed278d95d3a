/* All that a nest's plan depends on beside the machine and the options that stay, as numbers in a
 * row: its shape, its statements with their axes and buffers, how these lie at home, its tasks
 * with their operands. Axes count by their numbers, in whose order the search goes; statements,
 * tasks and buffers by their first mention. */
#include "ir/number.h"
#include "machines/needle.h"
#include "scheduler/plan/attach.h"
#include "scheduler/plan/geom.h"
#include "scheduler/plan/nest.h"
#include "scheduler/plan/plan.h"
#include "scheduler/plan/recur.h"
#include "scheduler/plan/search_known.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/work.h"
#include <string.h>

struct writer {
    struct work *w;
    const struct nest *nest;
    struct arena *arena;
    struct nest_key key;
    int *buffer, nbuffers, cap_buffers; /* mentioned so far */
    uint64_t axes;
    bool fills[MAX_MEMORIES]; /* some operand, or a copy on its way, lies there */
};

static void put(struct writer *k, int64_t v) {
    GROW(k->arena, k->key.word, k->key.n, k->key.cap);
    k->key.word[k->key.n++] = v;
    k->key.hash = hash_add(k->key.hash, v);
}

static void put_list(struct writer *k, const int64_t *v, int n) {
    for (int i = 0; i < n; i++) put(k, v[i]);
}

#define PUT(k, ...)                                                                                \
    put_list(k, (const int64_t[]){__VA_ARGS__},                                                    \
             (int)(sizeof(int64_t[]){__VA_ARGS__} / sizeof(int64_t)))

static void put_bits(struct writer *k, const void *v, size_t bytes) {
    for (size_t i = 0; i < bytes; i += sizeof(int64_t)) {
        int64_t word = 0;
        memcpy(&word, (const char *)v + i, bytes - i < sizeof word ? bytes - i : sizeof word);
        put(k, word);
    }
}

static void put_text(struct writer *k, const char *s) {
    size_t n = s ? strlen(s) : 0;
    put(k, s ? (int64_t)n : -1);
    if (n) put_bits(k, s, n);
}

static void put_all(struct writer *k, const int64_t *v, int n) {
    put(k, n);
    put_list(k, v, n);
}

/* ---- buffers and statements ---- */

static void put_coords(struct writer *k, const struct coord *at, const int64_t *stride, int n) {
    put(k, n);
    for (int i = 0; i < n; i++) PUT(k, at[i].dim, at[i].div, at[i].mod, at[i].first, stride[i]);
}

static void put_home(struct writer *k, const struct home *h, int ndims) {
    PUT(k, h->memory, h->is_tile, h->packed);
    put_coords(k, h->at, h->stride, h->n);
    put_all(k, h->extent, ndims);
    put(k, h->elements);
    put_all(k, h->border, ndims);
    put(k, home_near(h));
    put_all(k, h->fold, h->fold ? ndims : 0);
}

static void put_buffer(struct writer *k, int buffer) {
    const struct buffer *b = &k->w->p->buffer[buffer];
    int i = 0;
    while (i < k->nbuffers && k->buffer[i] != buffer) i++;
    put(k, i);
    if (i < k->nbuffers) return;
    GROW(k->arena, k->buffer, k->nbuffers, k->cap_buffers);
    k->buffer[k->nbuffers++] = buffer;
    PUT(k, b->role, b->type);
    put_all(k, b->extent, b->ndims);
    PUT(k, b->size, recur_carries(k->w, buffer), needs_home(k->w, k->nest, buffer));
    put_home(k, work_home(k->w, buffer), b->ndims);
}

static void put_access(struct writer *k, const struct access *a) {
    const struct program *p = k->w->p;
    put_buffer(k, a->buffer);
    for (int d = 0; d < p->buffer[a->buffer].ndims; d++) {
        put(k, access_coef(p, a, d, p->naxes));
        for (int x = 0; x < p->naxes; x++)
            if (access_coef(p, a, d, x)) {
                PUT(k, x + 1, access_coef(p, a, d, x));
                k->axes |= UINT64_C(1) << x;
            }
        put(k, 0);
    }
    put(k, a->has_fill);
    if (a->has_fill) put_bits(k, &a->fill, sizeof a->fill);
}

static void put_op(struct writer *k, const struct op *o) {
    PUT(k, o->code, o->type, o->arg[0], o->arg[1], o->arg[2]);
    put(k, o->code == OP_READ ? o->read : o->code == OP_AXIS ? o->axis : -1);
    if (o->code == OP_LITERAL) put_bits(k, &o->value, sizeof o->value);
}

static void put_stmt(struct writer *k, const struct stmt *st) {
    int naxes = k->w->p->naxes;
    PUT(k, st->combine, (int64_t)st->axes, st->unmapped);
    put_access(k, &st->dst);
    put(k, st->nreads);
    for (int r = 0; r < st->nreads; r++) put_access(k, &st->read[r]);
    put(k, st->nops);
    for (int i = 0; i < st->nops; i++) put_op(k, &st->op[i]);
    put(k, st->nwhere);
    for (int i = 0; i < st->nwhere; i++) put_all(k, st->where[i].coef, naxes + 1);
    put(k, st->scope);
    for (int s = st->scope - 1; s >= 0; s = k->w->scope[s].parent) {
        put(k, k->w->scope[s].axis);
        k->axes |= UINT64_C(1) << k->w->scope[s].axis;
    }
    k->axes |= st->axes;
}

/* ---- tasks ---- */

static void put_form(struct writer *k, const struct form *f) {
    put(k, f->n);
    for (int i = 0; i < f->n; i++) {
        const struct digit *d = &f->digit[i];
        PUT(k, d->x, d->weight, d->extent, d->stride, d->free_stride, d->times);
    }
    PUT(k, f->layout, (int64_t)f->fragment, f->share);
    put_text(k, f->swizzle);
}

static void put_geom(struct writer *k, const struct geom *g) {
    put_coords(k, g->at, g->stride, g->n);
    put(k, g->ninner);
    for (int d = 0; d < MAX_DIMS; d++) PUT(k, g->block[d], g->room[d], g->grain[d], g->step[d]);
    PUT(k, (int64_t)g->loose, (int64_t)g->sparse, (int64_t)g->even, (int64_t)g->fragment);
    put_text(k, g->swizzle);
    PUT(k, g->span, g->tile, g->row, g->plain, g->plain_home, (int64_t)g->exact, (int64_t)g->live,
        g->spaced, g->turned, g->repeat_axis);
}

static void put_route(struct writer *k, const struct route *r) {
    put(k, r->n);
    for (int i = 0; i < r->n; i++) {
        put(k, r->memory[i]);
        k->fills[r->memory[i]] = true;
    }
}

static void put_task(struct writer *k, int task);

static void put_attached(struct writer *k, const struct attachment *f) {
    const struct move *m = &f->move;
    put(k, f->side);
    if (f->side == CHANGES) {
        put_task(k, f->task);
        return;
    }
    PUT(k, m->instr, m->from_operand, m->to_operand);
    put_stmt(k, &k->w->p->stmt[k->w->task[f->task].stmt]);
}

static void put_operand(struct writer *k, const struct opnd *o) {
    PUT(k, o->number, o->where, o->memory, o->read);
    if (o->where == IN_LOCAL) k->fills[o->memory] = true;
    put(k, o->writes | o->accumulates << 1 | o->by_axes << 2 | o->expand << 3 | o->single << 4 |
               o->handed << 5 | o->zero_tail << 6 | o->plain << 7 | o->whole << 12);
    put_bits(k, &o->imm, sizeof o->imm);
    put_form(k, &o->form);
    put_geom(k, &o->geom);
    put_route(k, &o->in);
    put_route(k, &o->out);
    for (int x = 0; x < MAX_NEEDLE; x++) put(k, o->alone_dim[x]);
    for (const struct attachment *x = o->attached; x; x = x->next) put_attached(k, x);
    put(k, -1);
    PUT(k, o->quantum, (int64_t)o->firsts, o->order, o->align);
    for (int way = 0; way < 2; way++)
        for (const struct opnd *far = way ? o->to : o->from; far; far = way ? far->to : far->from) {
            PUT(k, far->memory, far->align);
            k->fills[far->memory] = true;
            put_geom(k, &far->geom);
        }
    put(k, -1);
}

static void put_needle(struct writer *k, const struct needle *nd) {
    PUT(k, nd->instr, nd->nx);
    for (int x = 0; x < nd->nx; x++)
        PUT(k, nd->ranged[x], nd->lo[x], nd->hi[x], nd->step[x], nd->whole[x]);
    put_all(k, nd->size, nd->in->nranged);
    PUT(k, nd->again, nd->remaining, nd->entry_bytes);
    put_bits(k, &nd->entry_cycles, sizeof nd->entry_cycles);
}

/* Followers are priced as the mapper did; what it thought of the core does not count. */
static void put_task(struct writer *k, int task) {
    put(k, task >= 0);
    if (task < 0) return;
    const struct task *t = &k->w->task[task];
    double cost = task == k->nest->core ? 0 : task_cost(k->w, task);
    put_stmt(k, &k->w->p->stmt[t->stmt]);
    put_bits(k, &cost, sizeof cost);
    put_needle(k, t->needle);
    for (int x = 0; x < t->needle->nx; x++) put(k, t->axis[x]);
    PUT(k, (int64_t)t->reductions, t->init >= 0, t->finishes, t->apart, t->nops);
    for (int i = 0; i < t->nops; i++) put_operand(k, &t->op[i]);
}

/* ---- the nest ---- */

static void put_loops(struct writer *k, const struct loop *l, int n) {
    put(k, n);
    for (int i = 0; i < n; i++) {
        PUT(k, l[i].axis, l[i].tile, l[i].kind);
        k->axes |= UINT64_C(1) << l[i].axis;
    }
}

static void put_window(struct writer *k, const struct window *x) {
    PUT(k, x->axis, x->shared, x->turn, x->step, x->offset, x->reach, x->n, x->extent, x->slide);
}

static void put_nest(struct writer *k, const struct nest *n) {
    PUT(k, n->grain_most, n->way_single, n->group > 0, (int64_t)n->slid, n->given);
    put_loops(k, n->prefix, n->nprefix);
    put(k, n->nwindows);
    for (int i = 0; i < n->nwindows; i++) put_window(k, &n->window[i]);
    PUT(k, n->kept, n->is_grid);
    put_task(k, n->core);
    put_task(k, n->init);
    put(k, n->nchain);
    for (int i = 0; i < n->nchain; i++) put_task(k, n->chain[i].task);
    for (int m = 0; m < k->w->m->nmemories; m++) { /* others only must not be overfull */
        int64_t room = nest_room(k->w, n, m);
        put(k, k->fills[m] || room < 0 ? room : INT64_MAX);
    }
}

struct nest_key nest_key(struct work *w, const struct nest *n, struct arena *arena) {
    struct writer k = {.w = w, .nest = n, .arena = arena, .key = {.hash = 1}};
    put_nest(&k, n);
    put(&k, (int64_t)k.axes);
    for (int x = 0; x < w->p->naxes; x++)
        if (k.axes >> x & 1) {
            PUT(&k, w->p->axis[x].extent, w->p->axis[x].sequential, w->p->axis[x].size);
        }
    return k.key;
}
