/* The driver says how long the nest takes with each of the best plans (work.time; SCHEDULING §2):
 * the model is a few percent off where queues and buses are equally loaded. Asked only where queues
 * run in program order, and of as many plans as the nest's size allows: the longer it runs, the
 * better the model. */
#include "scheduler/plan/hardware.h"
#include "scheduler/plan/moves.h"
#include "scheduler/plan/nest.h"
#include "scheduler/plan/plan.h"
#include "scheduler/plan/price.h"
#include "scheduler/plan/search_int.h"
#include "scheduler/plan/search_known.h"
#include "scheduler/plan/tiling.h"
#include "scheduler/plan/work.h"
#include <math.h>

enum { ITERATIONS = 32000, SPARED = 4, FEW = 3 };

static bool can_simulate(const struct work *w, const struct nest *n) {
    return w->options && w->options->simulate && !n->group && !n->nprefix &&
           !w->m->queue[w->task[n->core].needle->in->queue].data_order;
}

static double entries(const struct work *w, const struct nest *n, const struct plan *p) {
    return plan_entries(w, n, p, plan_trips(w, p, p->nloops));
}

static uint64_t mix(uint64_t sum, int64_t value) {
    sum = (sum ^ (uint64_t)value) * UINT64_C(0x9e3779b97f4a7c15);
    return sum ^ sum >> 29;
}

static uint64_t mix_hold(uint64_t sum, const struct hold *h) {
    sum = mix(mix(mix(mix(sum, h->depth), h->slots), h->ring), h->pinned);
    return mix(mix(sum, h->fill_by), h->drain_by);
}

/* What is emitted of a plan. */
static uint64_t mix_plan(uint64_t sum, const struct task *t, const struct plan *p) {
    for (int i = 0; i < p->nloops; i++)
        sum = mix(mix(mix(sum, p->loop[i].axis), p->loop[i].tile), p->loop[i].kind);
    sum = mix(mix(mix(sum, p->nloops), p->depth_out), p->parts);
    for (int i = 0; i < t->nops; i++) {
        sum = mix_hold(sum, &p->hold[i]);
        for (int k = 0; k < t->op[i].in.n; k++) sum = mix_hold(sum, &p->via[i][k]);
    }
    for (int i = 0; i < p->share.n; i++)
        sum = mix(mix(mix(sum, p->share.axis[i]), p->share.tile[i]), p->share.parts[i]);
    return sum;
}

/* The clock is asked once for equal nests with equal plans. A collision would only mislead. */
static double timed(struct work *w, const struct moves *moves, int nest, const struct plan *p) {
    const struct nest *n = &w->nest[nest];
    struct memo *times = known_times(w->searches);
    struct arena scratch;
    arena_init(&scratch);
    uint64_t sum = mix_plan(nest_key(w, n, 0, &scratch).hash, &w->task[n->core], p) | 1;
    arena_free(&scratch);
    const double *known = memo_cost(times, sum);
    if (known) return *known;
    double cycles = w->time(w, moves, nest, p);
    memo_put(times, sum, cycles);
    return cycles;
}

double plan_simulated(struct work *w, const struct moves *moves, int nest, const struct plan *p) {
    double most = (double)ITERATIONS / w->nnests;
    if (!can_simulate(w, &w->nest[nest]) || entries(w, &w->nest[nest], p) > most) return -1;
    return timed(w, moves, nest, p);
}

/* How many of them the bound on iterations walked allows: all of short nests, where each cycle
 * weighs, few of long ones. */
static int finalists(struct search *s) {
    struct plan p;
    point_plan(s, pool_best(s), &p);
    double each = entries(s->w, &s->w->nest[s->nest], &p), all = (double)ITERATIONS / s->w->nnests;
    int n = each * FINALISTS * SPARED <= all ? FINALISTS : (int)(all / SPARED / each);
    if (n < FEW) n = each * FEW <= all ? FEW : 0;
    return n;
}

/* The others are taken to be no better than the best that was simulated. */
void finalists_simulate(struct search *s) {
    double least = INFINITY;
    int n = can_simulate(s->w, &s->w->nest[s->nest]) ? finalists(s) : 0;
    for (int i = 0; i < n && i < s->nfinal; i++) {
        struct point *q = &s->final[i];
        struct plan p;
        point_plan(s, q, &p);
        q->simulated = timed(s->w, s->moves, s->nest, &p);
        if (q->simulated <= 0) return;
        q->cost *= q->simulated / p.predicted;
        if (q->cost < least) least = q->cost;
    }
    if (isinf(least)) return;
    for (int i = 0; i < s->npool; i++)
        if (s->pool[i].cost <= least) s->pool[i].cost = least * (1 + 1e-6);
    for (int i = 0; i < n && i < s->nfinal; i++) pool_add(s, &s->final[i]);
}
