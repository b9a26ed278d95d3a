/* What statements that follow a reduction cost, grain by grain: their instructions, and the way
 * home of what they make. */
#include "machines/needle.h"
#include "scheduler/plan/geom.h"
#include "scheduler/plan/graph.h"
#include "scheduler/plan/limits.h"
#include "scheduler/plan/moves.h"
#include "scheduler/plan/nest.h"
#include "scheduler/plan/plan.h"
#include "scheduler/plan/price.h"
#include "scheduler/plan/price_int.h"
#include "scheduler/plan/routes.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/tiling.h"
#include "scheduler/plan/work.h"
#include <math.h>

struct grains { /* of a chain over the whole nest, and over one tile of the result */
    double all, tile, elements; /* elements of one, at most */
    int64_t size[MAX_AXES];
};

static struct grains grains_of(const struct pricing *c, const struct task *t) {
    const struct work *w = c->w;
    struct grains g = {.all = 1, .tile = 1, .elements = 1};
    for (int a = 0; a < w->p->naxes; a++) {
        if (!(w->p->stmt[t->stmt].axes >> a & 1)) continue;
        struct sizes s = plan_sizes(w, c->plan, a, c->plan->depth_out);
        int64_t most = nest_grain(c->nest, a), tile = plan_tile(w, c->plan, a, c->plan->depth_out);
        double n = 0;
        if (most < 1) most = 1;
        for (int i = 0; i < s.n; i++)
            n += (double)s.count[i] * (double)((s.size[i] + most - 1) / most);
        int64_t parts = (tile + most - 1) / most;
        g.size[a] = (tile + parts - 1) / parts;
        g.all *= n;
        g.tile *= (double)parts;
        g.elements *= (double)g.size[a];
    }
    return g;
}

static const struct needle *drain_of(const struct pricing *c, const struct opnd *o) {
    const struct machine *m = c->w->m;
    for (int i = 0; i < c->moves->n; i++) {
        const struct instr *in = c->moves->at[i].needle->in;
        bool home = false;
        for (int k = 0; k < in->nto; k++) home |= memory_is_home(m, in->to[k]);
        if (home && move_takes(in, o->memory)) return c->moves->at[i].needle;
    }
    return NULL;
}

/* Of one grain, where that depends on its shape. */
static double drain_cycles(const struct pricing *c, const struct task *t, const struct opnd *o,
                           double otherwise) {
    struct work *w = c->w;
    int buffer = w->p->stmt[t->stmt].dst.buffer;
    struct region r;
    struct box box;
    struct fit f;
    chain_region(w, c->plan, c->nest, t, o, &r);
    struct slot s = slot_make(&w->s->arena, &o->geom, &r);
    struct view v = view_plain(buffer);
    if (!box_make(w, &v, &o->geom, &s, &r, false, &box) ||
        !fit_box(w, c->moves, 0, o->memory, work_home(w, buffer)->memory, &box, &f))
        return otherwise;
    return f.cycles;
}

/* Grains of a result whose slots fill up: the instructions wait for the store of the one that many
 * before. */
static void drain_chain(struct pricing *c, const struct task *t, const struct opnd *o,
                        const struct grains *g, double each, int slots) {
    const struct needle *move = drain_of(c, o);
    const struct instr *in = move ? move->in : NULL;
    const struct machine *m = c->w->m;
    double latency, overhead, interval, trips = plan_trips(c->w, c->plan, c->plan->depth_out),
                                        bytes = g->elements * (double)type_size(o->decl->type);
    if (!in) return;
    instr_times(m, in, move->bound, NULL, &latency, &interval, &overhead);
    double busy = 0;
    if (in->bus >= 0) {
        latency += m->bus[in->bus].latency;
        if (m->bus[in->bus].rate > 0) busy = bytes / m->bus[in->bus].rate;
    }
    double store = overhead + fmax(interval, busy), seen;
    if (!mexpr_constant(in->interval, &interval)) store = drain_cycles(c, t, o, store);
    double moved = bytes * g->all;
    charge(c, in, g->all, store, moved);
    c->plan->bytes += moved;
    if (in->queue == t->needle->in->queue ||
        edge_find(c->w->edges, t->needle->in->queue, -1, in->queue).kind <= EDGE_FREE)
        return;
    instr_times(m, t->needle->in, t->needle->bound, NULL, &seen, NULL, NULL);
    double again = fmax(store, (each + seen + store + latency) / slots),
           wait = fmax(0, g->tile - slots) * fmax(0, again - each);
    c->bubble += price_add(c, PRICE_GRAINS, trips * wait);
    double last = fmax(store, each + g->tile * (store - each) - wait) + seen + latency;
    c->tail += price_add(c, PRICE_LAST, fmax(0, last - c->tail));
}

/* Out of the result's own memory grain by grain, and on through those on its way home: of a tile at
 * a time where the plan collects it. Two slots in each turn, unless fills share their tokens
 * (results_apart). */
static void leave_chain(struct pricing *c, const struct task *t, const struct opnd *own,
                        const struct grains *g) {
    struct work *w = c->w;
    double latency, tail = 0, before = 0,
                    bytes = g->elements * g->all * (double)type_size(own->decl->type),
                    results = plan_trips(w, c->plan, c->plan->depth_out);
    int user = t->needle->in->queue;
    for (const struct opnd *o = own; o; o = o->to) {
        struct fit f;
        if (!chain_way_fit(w, c->moves, c->nest, c->plan, t, o, o == own, &f)) return;
        const struct instr *in = f.move->needle->in;
        struct stream s = {.operand = -1,
                           .queue = in->queue,
                           .user = user,
                           .bus = in->bus,
                           .depth = c->plan->depth_out,
                           .slots = o == own ? 1 : way_slots(c->nest),
                           .trips = o == own || !c->plan->collects ? g->all : results,
                           .cycles = f.cycles,
                           .issues = f.issues,
                           .often = 1,
                           .periods = 1,
                           .largest = f.cycles,
                           .pieces = 1};
        instr_times(w->m, in, f.move->needle->bound, NULL, &latency, NULL, NULL);
        s.latency = latency + (in->bus >= 0 ? w->m->bus[in->bus].latency : 0);
        if (in->bus >= 0 && w->m->bus[in->bus].rate > 0)
            s.busy = bytes / s.trips / w->m->bus[in->bus].rate;
        charge(c, in, s.trips, s.cycles, bytes);
        if (!o->to) c->plan->bytes += bytes;
        double turn = s.cycles + s.latency;
        if (o != own && s.slots)
            c->way = fmax(c->way, (s.trips - s.slots) * (before + turn) / s.slots);
        tail += o == own ? s.latency : turn;
        before = s.cycles * (o == own && c->plan->collects ? g->all / results : 1) + s.latency;
        if (o == own) c->leaves = s;
        if (!o->to) c->drain = s;
        user = in->queue;
    }
    c->tail += price_add(c, PRICE_LAST, fmax(0, tail - c->tail));
}

/* Another queue takes the sums over: they wait for a slot that it has given back. `follow`: what it
 * takes for all of them, `seen`: until its last results are. */
static void hand_over(struct pricing *c, const struct task *core, double follow, double seen) {
    const struct opnd *o = core ? task_result(core) : NULL;
    double trips = plan_trips(c->w, c->plan, c->plan->depth_out), made;
    if (!o || nest_chain_queue(c->w, c->nest) == core->needle->in->queue) return;
    instr_times(c->w->m, core->needle->in, core->needle->bound, NULL, &made, NULL, NULL);
    double exec = c->queue[core->needle->in->queue], slots = c->plan->hold[o - core->op].slots,
           turn = (exec + follow) / trips + made + seen;
    c->bubble += price_add(c, PRICE_GRAINS, fmax(0, (trips - slots) * turn / slots - exec));
}

void pipe_chain(struct pricing *c, const struct task *core) {
    struct work *w = c->w;
    double follow = 0, seen = 0;
    if (c->plan->is_static && c->w->m->queue[nest_chain_queue(c->w, c->nest)].data_order) return;
    for (int i = 0; i < c->nest->nchain; i++) {
        const struct task *t = &w->task[c->nest->chain[i].task];
        struct grains g = grains_of(c, t);
        int64_t size[MAX_SIZES];
        double interval, overhead;
        for (int k = 0; k < t->needle->in->nranged; k++) size[k] = 1;
        for (int x = 0; x < t->needle->nx; x++)
            if (t->needle->ranged[x] >= 0)
                size[t->needle->ranged[x]] = t->axis[x] < 0
                                                 ? t->needle->lo[x]
                                                 : needle_leaf(t->needle, x, g.size[t->axis[x]]);
        instr_times(w->m, t->needle->in, t->needle->bound, size, &seen, &interval, &overhead);
        charge(c, t->needle->in, g.all,
               price_add(c, PRICE_FOLLOWERS, g.all * (overhead + interval)) / g.all, 0);
        follow += g.all * (overhead + interval);
        for (int k = 0; k < t->nops; k++)
            if (t->op[k].writes && c->nest->chain[i].leaves && t->op[k].to)
                leave_chain(c, t, &t->op[k], &g);
            else if (t->op[k].writes && t->op[k].where == IN_LOCAL && c->nest->chain[i].leaves)
                drain_chain(c, t, &t->op[k], &g, overhead + interval,
                            chain_slots(w, c->moves, c->nest, c->plan, t, &t->op[k]));
    }
    hand_over(c, core, follow, seen);
}
