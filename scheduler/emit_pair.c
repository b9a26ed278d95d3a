/* A pair of nests (pairs.c) as one tree: the shared loops, in them the first over a tile, then the
 * second that reads it. All queues meet between the two. */
#include "scheduler/emit_int.h"
#include <string.h>

/* The partner walks the same shared loops. */
static void follow(const struct emitter *e, struct emitter *next) {
    for (int i = 0; i < e->nest->nprefix; i++) {
        int a = e->nest->prefix[i].axis;
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
        for (int d = 0; d < w->p->buffer[buffer].ndims; d++) h->lo[d] = r.lo[d];
        if (next->nest->given != i) continue;
        struct held *held = &e->partner->held[i];
        held->whole = r;
        for (int d = 0; d < w->p->buffer[buffer].ndims; d++) r.n[d] = val_const(h->extent[d]);
        held->slot = slot_make(&w->s->arena, &o->geom, &r);
    }
}

static bool turns(struct emitter *e, struct nodes *out) {
    struct work *w = e->w;
    struct nodes first = {0}, second = {0};
    turn_tile(e);
    if (!nest_turn(e, &first) || !nest_turn(e->partner, &second)) return false;
    uint64_t a = nodes_queues(w, first.at, first.n), b = nodes_queues(w, second.at, second.n);
    for (int i = 0; i < first.n; i++) nodes_add(w, out, first.at[i]);
    if (!add_barrier(w, out, a, b, e->exec)) return false;
    for (int i = 0; i < second.n; i++) nodes_add(w, out, second.at[i]);
    return add_barrier(w, out, a | b, a | b, e->exec);
}

bool pair_depth(struct emitter *e, struct nodes *out, int d) {
    const struct nest *n = e->nest;
    follow(e, e->partner);
    if (d == n->nprefix) return turns(e, out);
    if (!lasting_fills(e, out, d) || !lasting_fills(e->partner, out, d)) return false;
    return emit_loop(e, out, n->prefix[d].axis, n->prefix[d].tile,
                     n->plan.is_static || e->partner->nest->plan.is_static, false, pair_depth,
                     d + 1);
}
