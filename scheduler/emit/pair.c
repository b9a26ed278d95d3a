/* A pair of nests (pairs.c) as one tree: the shared loops, in them the first over a tile, then the
 * second that reads it. All queues meet between the two. */
#include "scheduler/emit/emit_int.h"
#include "scheduler/plan/geom.h"
#include "scheduler/plan/nest.h"
#include "scheduler/plan/rewrite.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/transfer.h"
#include "scheduler/plan/val.h"
#include "scheduler/plan/work.h"
#include <string.h>

/* The partner walks the same shared loops. */
static void follow(const struct emitter *e, struct emitter *next) {
    for (int i = 0; i < next->nest->nprefix; i++) {
        int a = next->nest->prefix[i].axis;
        next->lo[a] = e->lo[a];
        next->size[a] = e->size[a];
        next->tile[a] = e->tile[a];
    }
}

/* Holds that stay over iterations of the shared loops: filled in step, outside of the pair's turns.
 */
static bool lasting_fills(struct emitter *e, struct nodes *out, int d) {
    for (int i = 0; i < e->nfills; i++) {
        const struct filling *f = &e->fill[i];
        if (f->hold->depth != d) continue;
        if (!fill_hold(e, out, f) || !add_signal(e->w, out, f->queue, f->user)) return false;
    }
    return true;
}

/* What the first makes in this turn: a window of constant size, inside the extent. */
static void turn_windows(struct emitter *e) {
    struct arena *a = &e->w->s->arena;
    for (int k = 0; k < e->nest->nwindows; k++) {
        const struct window *x = &e->nest->window[k];
        if (!x->n) continue;
        struct val lo = val_add(a, val_scale(a, e->lo[x->shared], x->step), val_const(x->offset));
        lo = val_make(a, SX_MIN, lo, val_const(x->extent - x->n));
        lo = val_make(a, SX_MAX, lo, val_const(0));
        lo.max = x->extent - x->n;
        e->lo[x->axis] = lo;
        e->size[x->axis] = val_const(x->n);
        e->tile[x->axis] = x->n;
    }
}

/* Indices of the temporary that the tile holds; what lies before them are zeros. */
static struct val tile_begin(struct emitter *e, int d, const struct region *r) {
    struct work *w = e->w;
    int buffer = maker_result(w, e->nest);
    const struct access *made =
        &w->p->stmt[w->task[e->nest->nchain ? e->nest->chain[e->nest->nchain - 1] : e->nest->core]
                        .stmt]
             .dst;
    struct val lo = r->lo[d];
    for (int k = 0; k < e->nest->nwindows; k++)
        if (access_coef(w->p, made, d, e->nest->window[k].axis))
            lo = e->lo[e->nest->window[k].axis];
    if (w->home[buffer].border[d]) /* not in turns: from the first on */
        lo = val_is(lo, -w->home[buffer].border[d]) ? val_const(0) : lo;
    return val_minus(&w->s->arena, lo, val_const(w->home[buffer].border[d]));
}

/* Where this tile begins, for the one who writes it and the one who reads it. */
static void turn_tile(struct emitter *e) {
    struct work *w = e->w;
    const struct emitter *next = e->partner;
    int buffer = maker_result(w, e->nest);
    struct home *h = &w->home[buffer];
    const struct task *t = next->t;
    for (int i = 0; i < t->nops; i++) {
        const struct opnd *o = &t->op[i];
        if (o->where == IN_IMM || o->read < 0) continue;
        const struct access *acc = task_access(w, t, o, false);
        struct region r;
        if (acc->buffer != buffer) continue;
        region_here(e->partner, t, o, acc, &r);
        for (int d = 0; d < w->p->buffer[buffer].ndims; d++) {
            h->lo[d] = tile_begin(e, d, &r);
            if (next->nest->given == i) r.lo[d] = h->lo[d];
        }
        if (next->nest->given != i) continue;
        struct held *held = &e->partner->held[i];
        held->whole = r;
        for (int d = 0; d < w->p->buffer[buffer].ndims; d++) r.n[d] = val_const(h->extent[d]);
        held->slot = slot_make(&w->s->arena, &o->geom, &r);
    }
}

/* The tile's borders, and all of it with them, before the first turn. */
static bool clear_border(struct emitter *e, struct nodes *out) {
    struct work *w = e->w;
    int given = e->partner->nest->given, buffer = maker_result(w, e->nest), completes;
    const struct opnd *o = &e->partner->t->op[given];
    struct region r = {.repeat = val_const(1)};
    struct held held = e->partner->held[given];
    for (int d = 0; d < w->p->buffer[buffer].ndims; d++) {
        r.lo[d] = val_const(0);
        r.n[d] = val_const(w->home[buffer].extent[d]);
    }
    held.whole = r;
    held.slot = slot_make(&w->s->arena, &o->geom, &r);
    int queue = transfer_queue(w, e->moves, e->nest->border, NULL, o, &r, true, 0, &completes);
    return emit_transfer(w, e->moves, out, e->nest->border, o, &held, &r, true) &&
           add_signal(w, out, queue, e->exec);
}

static bool turns(struct emitter *e, struct nodes *out) {
    struct work *w = e->w;
    struct nodes first = {0}, second = {0};
    struct val lo[MAX_AXES], size[MAX_AXES];
    int64_t tile[MAX_AXES];
    memcpy(lo, e->lo, sizeof lo);
    memcpy(size, e->size, sizeof size);
    memcpy(tile, e->tile, sizeof tile);
    turn_windows(e);
    turn_tile(e);
    for (int d = e->partner->nest->nprefix; d < e->nest->nprefix; d++)
        if (!lasting_fills(e, out, d)) return false;
    bool made = nest_turn(e, &first);
    memcpy(e->lo, lo, sizeof lo);
    memcpy(e->size, size, sizeof size);
    memcpy(e->tile, tile, sizeof tile);
    if (!made || !nest_turn(e->partner, &second)) return false;
    uint64_t a = nodes_queues(w, first.at, first.n), b = nodes_queues(w, second.at, second.n);
    for (int i = 0; i < first.n; i++) nodes_add(w, out, first.at[i]);
    if (!pair_in_order(w, e->nest, e->partner->nest) && !add_barrier(w, out, a, b, e->exec))
        return false;
    for (int i = 0; i < second.n; i++) nodes_add(w, out, second.at[i]);
    uint64_t all = a | b;
    if (e->partner->root == 0) all &= ~(UINT64_C(1) << e->partner->store); /* credits go on */
    return add_barrier(w, out, all, all, e->exec);
}

static bool pair_inside(struct emitter *e, struct nodes *out, int d) {
    const struct nest *n = e->partner->nest;
    follow(e, e->partner);
    if (d == n->nprefix) return turns(e, out);
    if (!lasting_fills(e, out, d) || !lasting_fills(e->partner, out, d)) return false;
    return emit_loop(e, out, n->prefix[d].axis, n->prefix[d].tile,
                     n->plan.is_static || e->nest->plan.is_static, false, pair_inside, d + 1);
}

/* Only the second has a queue that stores: its credits last over the turns. */
bool emit_pair(struct emitter *e, struct nodes *out) {
    struct emitter *next = e->partner;
    bool lasts =
        pair_in_order(e->w, e->nest, next->nest) && next->store >= 0 && next->store != e->exec;
    if (lasts) next->root = 0;
    if (e->nest->border && !clear_border(e, out)) return false;
    if (lasts) nest_credits(next, out, true);
    if (!pair_inside(e, out, 0)) return false;
    if (lasts) nest_credits(next, out, false);
    return true;
}
