/* Results on their way home through the memories of their route: each queue waits for a free slot
 * of the next memory, moves, and tells the next queue. */
#include "scheduler/emit/emit_int.h"
#include "scheduler/plan/tiling.h"
#include "scheduler/plan/graph.h"
#include "scheduler/plan/nest.h"
#include "scheduler/plan/routes.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/geom.h"
#include "scheduler/plan/work.h"

void way_place(struct emitter *e, const struct opnd *o, int buffer, const struct region *own,
               const struct region *r, int by, struct way_out *way, int64_t *at) {
    struct work *w = e->w;
    way->n = o->out.n;
    for (int k = 0; k <= way->n; k++) {
        const struct opnd *stop = opnd_stop(o, false, k);
        way->queue[k] = transfer_queue(w, e->moves, buffer, stop, k == way->n ? own : r, false, by,
                                       &way->completes[k]);
        if (k == way->n) break;
        way->via[k].slots = way_slots(e->nest);
        way->via[k].place = add_place(w, buffer, stop->memory, stop->align, &at[stop->memory],
                                      slot_bytes(w, stop, r), way->via[k].slots);
    }
}

/* May the edge have a channel for each slot of a result? Not where fills take or give by it too:
 * their slots turn on the same channels. */
static bool turns_alone(const struct emitter *e, const struct edge *edge, int slots) {
    const struct machine *m = e->w->m;
    if (!edge_rotates(m, edge, slots) || !edge_holds(m, edge, slots)) return false;
    for (int i = 0; i < e->nfills; i++) {
        struct link l = fill_link(&e->fill[i]);
        struct edge fill[2] = {link_there(e, l), link_back(e, l)}, own[2] = {*edge, *edge};
        if (e->fill[i].queue >= 0 && edges_share(e->w->edges, own, fill)) return false;
    }
    return true;
}

/* Are slots of a result given back on channels that turn with them? Then as many are told of. */
static bool slots_turn(const struct emitter *e, const struct edge *there, const struct edge *back,
                       const struct held *h) {
    return e->drained && !e->nest->nchain && turns_alone(e, back, h->slots) &&
           (turns_alone(e, there, h->slots) || edge_counts(e->w->m, there, h->slots));
}

struct signal credit_channel(const struct emitter *e, const struct edge *there,
                             const struct edge *back, const struct held *h) {
    return slots_turn(e, there, back, h) ? (struct signal){.rotating = h->place + 1}
                                         : edge_plain(e->w, back);
}

struct signal told_channel(const struct emitter *e, const struct edge *there,
                           const struct edge *back, const struct held *h) {
    return slots_turn(e, there, back, h) && !edge_counts(e->w->m, there, h->slots)
               ? (struct signal){.rotating = h->place + 1}
               : edge_plain(e->w, there);
}

/* With which the k-th memory's slots are given back. */
static struct edge way_back(const struct emitter *e, const struct way_out *way, int k) {
    return link_back(e, way_link(way, k));
}

static struct signal via_channel(const struct emitter *e, const struct way_out *way, int k) {
    struct edge there = link_there(e, way_link(way, k)), back = way_back(e, way, k);
    return credit_channel(e, &there, &back, &way->via[k]);
}

/* The k-th memory's next slot becomes current, for this region, when it is free: channels follow
 * the slots. */
static void turn(struct emitter *e, struct nodes *out, const struct opnd *stop, struct way_out *way,
                 int k, const struct region *r) {
    struct signal channel = via_channel(e, way, k);
    struct edge back = way_back(e, way, k);
    struct held *via = &way->via[k];
    bool lent = !way_in_step(e, way, k);
    if (lent && !channel.rotating) edge_take(e->w, out, &back, channel);
    if (via->slots > 1) add_rotate(e->w, out, via->place);
    if (lent && channel.rotating) edge_take(e->w, out, &back, channel);
    via->whole = *r;
    via->slot = slot_make(&e->w->s->arena, &stop->geom, r);
}

/* Out of the k-th memory, or the result's own, to the next one, or home. */
static bool move_on(struct emitter *e, struct nodes *out, const struct opnd *o, int buffer,
                    const struct held *h, const struct region *r, struct way_out *way, int k) {
    const struct opnd *stop = opnd_stop(o, false, k);
    if (k && !(way->collects && k == way->n)) turn(e, out, stop->to, way, k - 1, r);
    return emit_transfer(e->w, e->moves, out, buffer, stop, h, k ? &way->via[k - 1] : NULL, r,
                         false);
}

bool way_begin(struct emitter *e, struct nodes *out, const struct opnd *o, int buffer,
               const struct held *h, const struct region *r, struct way_out *way) {
    return move_on(e, out, o, buffer, h, r, way, way->n);
}

bool way_home(struct emitter *e, struct nodes *out, const struct opnd *o, int buffer,
              const struct region *r, struct way_out *way) {
    for (int k = way->n - 1; k >= 0; k--) {
        struct edge there = link_there(e, way_link(way, k)), back = way_back(e, way, k);
        if (!edge_tell(e->w, out, &there, told_channel(e, &there, &back, &way->via[k])))
            return false;
        if (!move_on(e, out, o, buffer, &way->via[k], r, way, k)) return false;
        if (e->behind) continue;
        if (back.kind == EDGE_NONE && !edge_pass(e->w, out, &back)) return false;
        edge_give(e->w, out, &back, via_channel(e, way, k));
        if (way_in_step(e, way, k)) edge_take(e->w, out, &back, via_channel(e, way, k));
    }
    return true;
}

bool ways_collect(struct emitter *e, struct nodes *out, bool begin) {
    struct work *w = e->w;
    for (int i = 0; i < e->nest->nchain; i++) {
        const struct task *t = &w->task[e->nest->chain[i].task];
        struct way_out *way = &e->out[i + 1];
        for (int k = 0; k < t->nops && way->collects; k++) {
            const struct opnd *o = &t->op[k];
            const struct access *acc = &w->p->stmt[t->stmt].dst;
            struct region all;
            if (!o->writes) continue;
            const struct opnd *near = opnd_stop(o, false, way->n - 1);
            region_here(e, t, near, acc, &all);
            if (begin)
                turn(e, out, near, way, way->n - 1, &all);
            else if (!way_home(e, out, o, acc->buffer, &all, way))
                return false;
        }
    }
    return true;
}

/* One for each slot, but of all results no more than their sync holds: they take and give in turn.
 */
static int credits_of(const struct emitter *e, const struct way_out *way, int k, int *given) {
    const struct machine *m = e->w->m;
    struct edge back = way_back(e, way, k), there = link_there(e, way_link(way, k));
    if (way_in_step(e, way, k)) return 0;
    if (back.kind != EDGE_TOKEN || via_channel(e, way, k).rotating) return way->via[k].slots;
    int before = given[token_number(e, &back)], all = before + way->via[k].slots;
    all = within_depth(m, within_depth(m, all, &back), &there);
    if (all > before) given[token_number(e, &back)] = all;
    return all > before ? all - before : 0;
}

void ways_credits(struct emitter *e, struct nodes *out, bool give) {
    int *given = arena_array(e->w->arena, token_numbers(e) + 1, sizeof *given);
    for (int i = 0; i <= e->nest->nchain; i++)
        for (int k = 0; k < e->out[i].n; k++) {
            int credits = credits_of(e, &e->out[i], k, given);
            struct signal channel = via_channel(e, &e->out[i], k);
            struct edge back = way_back(e, &e->out[i], k);
            for (int c = 0; c < credits; c++)
                (give ? edge_give : edge_take)(
                    e->w, out, &back, channel.rotating ? (struct signal){.channel = c} : channel);
        }
}

/* Credits are alike: where some result of the chain is changed in place and must wait for its own
 * store, no other may have a credit left that could be taken for it. Nor where several queues
 * store: each would give its own. */
bool chain_runs_ahead(const struct emitter *e) {
    struct work *w = e->w;
    struct edge back = edge_of_queue(w->edges, e->store, e->chain);
    if (back.kind == EDGE_NONE || same_tokens(e) || in_step(e, &back)) return false;
    for (int i = 0; i < e->nest->nchain; i++) {
        const struct task *t = &w->task[e->nest->chain[i].task];
        const struct way_out *way = &e->out[i + 1];
        if (!e->nest->chain[i].leaves) continue;
        for (int k = 0; k < t->nops; k++)
            if (t->op[k].writes &&
                (!chain_needs_hold(e->nest, i, k) || way->queue[way->n] != e->store))
                return false;
    }
    return true;
}
