/* Copies in the memories on the routes: how far out each is filled, in how many slots. */
#include "scheduler/plan/price.h"
#include "scheduler/plan/tiling.h"
#include "scheduler/plan/limits.h"
#include "scheduler/plan/moves.h"
#include "scheduler/plan/nest.h"
#include "scheduler/plan/plan.h"
#include "scheduler/plan/routes.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/geom.h"
#include "scheduler/plan/work.h"
#include <limits.h>
#include <math.h>
#include <string.h>

/* A result's slots in each memory on its way home. */
static void add_ways(struct work *w, const struct nest *n, const struct plan *p, int64_t *bytes) {
    const struct task *core = &w->task[n->core];
    for (int i = 0; i < core->nops && !n->nchain; i++)
        for (const struct opnd *o = core->op[i].to; o; o = o->to)
            bytes[o->memory] +=
                way_slots(n) *
                copy_bytes(w, p, core, o, &w->p->stmt[core->stmt].dst, p->hold[i].depth);
    for (int c = 0; c < n->nchain; c++) {
        const struct task *t = &w->task[n->chain[c].task];
        for (int i = 0; i < t->nops; i++)
            for (const struct opnd *o = t->op[i].to; o; o = o->to) {
                struct region r;
                chain_way_region(w, p, n, t, o, &r);
                bytes[o->memory] += way_slots(n) * slot_bytes(w, o, &r);
            }
    }
}

struct outer { /* one copy on a route in */
    int operand, level;
    const struct opnd *stop, *inner; /* inner: the next copy, filled from it */
    const struct access *acc;
    int64_t bytes; /* of all its slots */
    int most;      /* slots */
};

static int outers(struct work *w, const struct task *t, struct outer *out) {
    const struct stmt *st = &w->p->stmt[t->stmt];
    int n = 0;
    for (int i = 0; i < t->nops; i++) {
        const struct opnd *o = &t->op[i];
        if (o->where != IN_LOCAL || o->writes) continue;
        const struct opnd *stop = o->from, *inner = o;
        for (int k = o->in.n - 1; k >= 0; k--, inner = stop, stop = stop->from)
            out[n++] = (struct outer){i, k, stop, inner, &st->read[o->read], 0, 1};
    }
    return n;
}

/* Two, unless a sync between the queues that fill and read it holds one event. */
static int slots_told(struct work *w, const struct moves *moves, const struct plan *p,
                      const struct task *t, const struct outer *x) {
    int d = p->hold[x->operand].depth, most = slots_most(w, 2);
    const struct instr *fill = copy_price(w, moves, p, t, x->stop, x->acc, true, d, 0).in,
                       *user = copy_price(w, moves, p, t, x->inner, x->acc, true, d, 0).in;
    return fill && user ? slots_held(w->edges, fill, user, most) : most;
}

/* All fills of an outer copy at that depth: the elements that they bring, or the cycles that they
 * take one after the other. */
static double fills_take(struct work *w, const struct moves *moves, const struct plan *p,
                         const struct task *t, const struct outer *x, int depth, bool cycles) {
    if (!cycles) return plan_traffic(w, p, t, x->acc, depth);
    struct copy f = copy_price(w, moves, p, t, x->stop, x->acc, true, depth, 0);
    return f.in ? plan_trips(w, p, depth) * (f.cycles + f.latency) : INFINITY;
}

/* Its fills take less than their latency, which two slots do not hide then. */
static bool fills_are_short(struct work *w, const struct moves *moves, const struct plan *p,
                            const struct task *t, const struct outer *x, int depth) {
    struct copy f = copy_price(w, moves, p, t, x->stop, x->acc, true, depth, 0);
    return f.in && f.cycles < f.latency;
}

/* The step outwards of one copy that saves most traffic or, of short fills and with all the slots
 * that help, most cycles: fewer, longer fills. */
static bool step(struct work *w, const struct moves *moves, const struct nest *n, struct plan *p,
                 struct outer *x, int count, bool cycles, int64_t *bytes,
                 struct outward_step *made) {
    const struct task *t = &w->task[n->core];
    double most = 0;
    int which = -1, depth = 0, slots = 0;
    int64_t size = 0;
    for (int i = 0; i < count; i++) {
        struct hold *h = &p->via[x[i].operand][x[i].level];
        int least = x[i].level   ? p->via[x[i].operand][x[i].level - 1].depth
                    : n->is_grid ? n->nprefix /* in memories of an instance */
                                 : 0,
            memory = x[i].stop->memory;
        if (grid_shares(w, n, memory) ||
            (cycles && !fills_are_short(w, moves, p, t, &x[i], h->depth)))
            continue;
        double now = fills_take(w, moves, p, t, &x[i], h->depth, cycles);
        for (int d = h->depth - 1; d >= least; d--) {
            int at = plan_normalise(w, p, x[i].acc, d);
            if (at < least) at = least;
            double saved = now - fills_take(w, moves, p, t, &x[i], at, cycles);
            int wanted = plan_trips(w, p, at) > 1 ? x[i].most : 1, useful = wanted;
            int64_t one = copy_bytes(w, p, t, x[i].stop, x[i].acc, at),
                    left = nest_room(w, n, memory) - bytes[memory] + x[i].bytes;
            while (wanted > 0 && one * wanted > left) wanted--;
            if (saved <= most || !wanted || (cycles && wanted < useful)) continue;
            most = saved;
            which = i, depth = at, slots = wanted, size = one * wanted;
        }
    }
    if (which < 0) return false;
    *made =
        (struct outward_step){x[which].operand, x[which].level, {.depth = depth, .slots = slots}};
    p->via[made->operand][made->level] = made->hold;
    bytes[x[which].stop->memory] += size - x[which].bytes;
    x[which].bytes = size;
    return true;
}

bool chain_way_fit(struct work *w, const struct moves *moves, const struct nest *n,
                   const struct plan *p, const struct task *t, const struct opnd *o, bool own,
                   struct fit *f) {
    struct region r, beyond;
    struct slot far;
    (own ? chain_region : chain_way_region)(w, p, n, t, o, &r);
    struct slot near = slot_make(&w->s->arena, &o->geom, &r);
    if (o->to) {
        chain_way_region(w, p, n, t, o->to, &beyond);
        far = slot_make(&w->s->arena, &o->to->geom, &beyond);
    }
    return copy_fit(w, moves, w->p->stmt[t->stmt].dst.buffer, o, &near, o->to ? &far : NULL, &r,
                    false, 0, f);
}

/* Is there a move for each grain of the chain's results into a copy of the whole tile, and for all
 * of it from there on? False also where no result has a way through another memory. */
static bool can_collect(struct work *w, const struct moves *moves, const struct nest *n,
                        struct plan *p) {
    bool any = false;
    p->collects = true;
    for (int c = 0; c < n->nchain; c++) {
        const struct task *t = &w->task[n->chain[c].task];
        for (int i = 0; i < t->nops; i++)
            for (const struct opnd *o = &t->op[i]; o && t->op[i].to; o = o->to) {
                struct fit f;
                any = true;
                if (!chain_way_fit(w, moves, n, p, t, o, o == &t->op[i], &f)) return false;
            }
    }
    return any;
}

/* Each outer copy beside its inner one, in as many slots as there is room for. */
static bool first_holds(struct work *w, const struct moves *moves, const struct nest *n,
                        struct plan *p, struct outer *x, int count, int64_t *bytes) {
    const struct task *t = &w->task[n->core];
    add_ways(w, n, p, bytes);
    for (int i = 0; i < count; i++) x[i].most = slots_told(w, moves, p, t, &x[i]);
    for (int slots = 1; slots <= 2; slots++) /* one for each first */
        for (int i = 0; i < count; i++) {
            int m = x[i].stop->memory, d = grid_shares(w, n, m) ? 0 : p->hold[x[i].operand].depth;
            int64_t one = copy_bytes(w, p, t, x[i].stop, x[i].acc, d);
            if (slots > x[i].most ||
                (slots > 1 && (plan_trips(w, p, d) <= 1 || bytes[m] + one > nest_room(w, n, m))))
                continue;
            p->via[x[i].operand][x[i].level] = (struct hold){.depth = d, .slots = slots};
            x[i].bytes += one;
            bytes[m] += one;
        }
    for (int m = 0; m < w->m->nmemories && m < MAX_MEMORIES; m++)
        if (bytes[m] > nest_room(w, n, m)) return false;
    return true;
}

bool route_holds(struct work *w, const struct moves *moves, const struct nest *n, struct plan *p,
                 int64_t *bytes, struct outward *outward) {
    struct outer x[MAX_OPERANDS * MAX_VIA];
    struct outward_step made;
    int64_t beside[MAX_MEMORIES]; /* without the routes */
    int count = outers(w, &w->task[n->core], x);
    memcpy(beside, bytes, sizeof *beside * (size_t)w->m->nmemories);
    p->collects = !n->group && n->nchain && can_collect(w, moves, n, p);
    bool fits = first_holds(w, moves, n, p, x, count, bytes);
    if (!fits && p->collects) {
        p->collects = false;
        memcpy(bytes, beside, sizeof *beside * (size_t)w->m->nmemories);
        count = outers(w, &w->task[n->core], x);
        fits = first_holds(w, moves, n, p, x, count, bytes);
    }
    if (!fits) return false;
    int most = p->outward ? p->outward - 1 : INT_MAX, steps = 0;
    if (count) memcpy(outward->first, p->via, sizeof p->via);
    while (count && steps < most &&
           (step(w, moves, n, p, x, count, false, bytes, &made) ||
            step(w, moves, n, p, x, count, true, bytes, &made))) {
        if (steps < MAX_OUTWARD) outward->step[steps] = made;
        steps++;
    }
    p->outward = 1 + steps;
    outward->known = steps <= MAX_OUTWARD;
    return true;
}

void outward_again(struct plan *p, const struct outward *outward) {
    memcpy(p->via, outward->first, sizeof p->via);
    for (int i = 0; i + 1 < p->outward; i++)
        p->via[outward->step[i].operand][outward->step[i].level] = outward->step[i].hold;
}
