/* Results on their way home through the memories of their route: each queue waits for a free slot
 * of the next memory, moves, and tells the next queue. */
#include "scheduler/emit_int.h"

static int between(const struct emitter *e, int from, int to) {
    return graph_sync(e->w->m, from, to);
}

static void signal(struct emitter *e, struct nodes *out, int from, int to, bool give) {
    int sync = between(e, from, to);
    if (sync >= 0) add_sync(e->w, out, give ? from : to, give, sync);
}

/* The k-th memory's next slot becomes current, for this region. */
static void turn(struct emitter *e, struct nodes *out, const struct opnd *stop, struct held *via,
                 const struct region *r) {
    add_rotate(e->w, out, via->place);
    via->whole = *r;
    via->slot = slot_make(&e->w->s->arena, &stop->geom, r);
}

bool way_begin(struct emitter *e, struct nodes *out, const struct opnd *o, int buffer,
               const struct held *h, const struct region *r, struct way_out *way) {
    if (!way->n) return emit_transfer(e->w, e->moves, out, buffer, o, h, r, false);
    struct opnd next = route_stop(e->w, o, &o->out, way->n - 1);
    signal(e, out, way->queue[way->n - 1], way->queue[way->n], false);
    turn(e, out, &next, &way->via[way->n - 1], r);
    return emit_between(e->w, e->moves, out, buffer, &next, &way->via[way->n - 1], o, h, r, false);
}

bool way_home(struct emitter *e, struct nodes *out, const struct opnd *o, int buffer,
              const struct region *r, struct way_out *way) {
    for (int k = way->n - 1; k >= 0; k--) {
        struct opnd stop = route_stop(e->w, o, &o->out, k);
        signal(e, out, way->queue[k + 1], way->queue[k], true);
        signal(e, out, way->queue[k + 1], way->queue[k], false);
        if (k) {
            struct opnd next = route_stop(e->w, o, &o->out, k - 1);
            signal(e, out, way->queue[k - 1], way->queue[k], false);
            turn(e, out, &next, &way->via[k - 1], r);
            if (!emit_between(e->w, e->moves, out, buffer, &next, &way->via[k - 1], &stop,
                              &way->via[k], r, false))
                return false;
        } else if (!emit_transfer(e->w, e->moves, out, buffer, &stop, &way->via[0], r, false)) {
            return false;
        }
        signal(e, out, way->queue[k], way->queue[k + 1], true);
    }
    return true;
}

void way_credits(struct emitter *e, struct nodes *out, const struct way_out *way, bool give) {
    for (int k = 0; k < way->n; k++)
        for (int i = 0; i < way->via[k].slots; i++)
            signal(e, out, way->queue[k], way->queue[k + 1], give);
}
