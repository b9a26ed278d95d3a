/* The driver says how long the nest takes with each of the best plans (work.time; SCHEDULING §2):
 * the model is a few percent off where queues and buses are equally loaded, more where a nest is
 * short. From the best of them the search goes on among its neighbours, by the clock. Asked only
 * where queues run in program order, until so much was walked: what repeats is walked once, and
 * what cannot be better, since one queue or bus is that busy, not at all. */
#include "ir/number.h"
#include "scheduler/plan/moves.h"
#include "scheduler/plan/nest.h"
#include "scheduler/plan/plan.h"
#include "scheduler/plan/price.h"
#include "scheduler/plan/search_int.h"
#include "scheduler/plan/search_known.h"
#include "scheduler/plan/work.h"
#include <math.h>

/* Of one nest alone: instructions that the clock executes one by one, with one plan and with all;
 * plans that it is asked about, of several nests fewer each. */
enum { STEPS = 100000, ALL_STEPS = 400000, PLANS = 48, FEW = 3, SHORT = 4, NEAR_PLANS = 96 };
/* Neighbours that the model thinks so much worse are not asked about; what counts as better. */
static const double HOPELESS = 1.3, BETTER = 0.9995,
                    WORTH = 0.998, /* of the best's cost, to be asked about */
    BESIDE = 0.25;                 /* of what a plan costs beside the cycles that the clock knows */

/* Of a grid the clock knows how long it takes where its instances are so many as there are. */
static bool can_simulate(const struct work *w, const struct nest *n) {
    return w->options && w->options->simulate && !n->group && (!n->nprefix || n->is_grid) &&
           !grid_is_open(w, n) && !w->m->queue[w->task[nest_head(n)].needle->in->queue].data_order;
}

static uint64_t mix_hold(uint64_t sum, const struct hold *h) {
    sum = hash_add(hash_add(hash_add(hash_add(sum, h->depth), h->slots), h->ring), h->pinned);
    sum = hash_add(hash_add(sum, h->spread), h->ahead);
    return hash_add(hash_add(sum, h->fill_by), h->drain_by);
}

/* What is emitted of a plan. */
static uint64_t mix_plan(uint64_t sum, const struct task *t, const struct plan *p) {
    for (int i = 0; i < p->nloops; i++)
        sum = hash_add(hash_add(hash_add(sum, p->loop[i].axis), p->loop[i].tile), p->loop[i].kind);
    sum = hash_add(hash_add(hash_add(sum, p->nloops), p->depth_out), p->parts);
    for (int i = 0; i < t->nops; i++) {
        sum = mix_hold(sum, &p->hold[i]);
        for (int k = 0; k < t->op[i].in.n; k++) sum = mix_hold(sum, &p->via[i][k]);
    }
    for (int i = 0; i < p->share.n; i++)
        sum = hash_add(hash_add(hash_add(sum, p->share.axis[i]), p->share.tile[i]),
                       p->share.parts[i]);
    return sum;
}

struct walked {
    int64_t left;
    int plans;
};

/* A search of few plans asks seldom too. */
static struct walked walked_begin(const struct work *w) {
    int share = w->options->steps > 0 ? w->nnests * SHORT : w->nnests;
    struct walked left = {ALL_STEPS / share, PLANS / share};
    if (left.plans < FEW) left.plans = FEW;
    return left;
}

/* The clock is asked once for equal nests with equal plans, which count as if it were asked again:
 * equal nests are decided alike. A collision would only mislead. */
static double timed(struct work *w, const struct moves *moves, const struct nest *n,
                    const struct plan *p, struct walked *left) {
    struct memo *times = known_times(w->searches);
    struct arena scratch;
    arena_init(&scratch);
    uint64_t sum = mix_plan(nest_key(w, n, &scratch).hash, &w->task[nest_head(n)], p) | 1;
    arena_free(&scratch);
    const double *known = memo_cost(times, sum), *walked = memo_cost(times, sum ^ 1),
                 *beyond = memo_cost(times, sum ^ 2); /* so many steps were too few */
    if (left->plans-- <= 0 || left->left <= 0) return -1;
    if (known && walked) {
        left->left -= (int64_t)*walked;
        return *known;
    }
    int64_t steps = left->left < STEPS ? left->left : STEPS, most = steps;
    if (beyond && (double)most <= *beyond) {
        left->left -= most;
        return -1;
    }
    double cycles = w->time(w, moves, n, p, &steps);
    if (cycles > 0) cycles /= grid_part(w, n); /* plans are priced for one instance that does all */
    left->left -= steps;
    if (cycles < 0 && left->left <= 0) { /* with more left it might be known */
        (beyond ? memo_change : memo_put)(times, sum ^ 2, (double)most);
        return -1;
    }
    memo_put(times, sum, cycles);
    memo_put(times, sum ^ 1, (double)steps);
    return cycles;
}

double plan_simulated(struct work *w, const struct moves *moves, const struct nest *n,
                      const struct plan *p) {
    if (!can_simulate(w, n)) return -1;
    struct walked left = walked_begin(w);
    return timed(w, moves, n, p, &left);
}

/* The same with copies that are filled whole, outer ones as far out as is best then; false: they
 * are. */
static bool unspread(const struct search *s, const struct plan *p, struct plan *out) {
    const struct nest *n = s->nest;
    bool any = false;
    for (int i = 0; i < s->w->task[n->core].nops; i++) {
        any |= p->hold[i].spread > 0;
        for (int k = 0; k < s->w->task[n->core].op[i].in.n; k++) any |= p->via[i][k].spread > 0;
    }
    *out = *p;
    out->unspread = true;
    out->outward = 0;
    out->parts = PARTS_ANY;
    return any && plan_price(s->w, s->moves, n, out);
}

/* The clock's cycles, and a part of what the plan costs beside those that the model predicts. */
static double with_cost(const struct plan *p, double cycles, double cost) {
    return cycles * (1 + BESIDE * (cost / p->predicted - 1));
}

bool plan_worth_walking(const struct plan *p, double cost, double best) {
    return with_cost(p, p->busy, cost) < WORTH * best;
}

/* False: the clock does not say, or it could not be less than `best`. Pieces are what the model
 * knows least about: it is asked without them too. */
static bool time_point(struct search *s, struct point *q, double best, struct walked *left) {
    struct plan p, whole;
    point_plan(s, q, &p);
    if (!plan_worth_walking(&p, q->cost, best)) return false;
    double cycles = timed(s->w, s->moves, s->nest, &p, left), other = -1;
    if (!q->plan) q->plan = arena_copy(s->memo->arena, &p, sizeof p);
    if (unspread(s, &p, &whole)) other = timed(s->w, s->moves, s->nest, &whole, left);
    if (other > 0 && (cycles <= 0 || other < cycles)) {
        p = whole;
        q->plan = arena_copy(s->memo->arena, &p, sizeof p);
        q->cost = p.cycles;
        cycles = other;
    }
    if (cycles <= 0) return false;
    q->simulated = cycles;
    q->cost = with_cost(&p, cycles, q->cost);
    return true;
}

/* To the first neighbour that is better, as the model has them in order. */
static bool step(struct search *s, struct point *best, double model, struct walked *left) {
    struct point *near = arena_array(s->memo->arena, NEAR_PLANS, sizeof *near);
    int n = point_neighbours(s, best, HOPELESS * model, near, NEAR_PLANS);
    for (int i = 0; i < n && left->plans > 0 && left->left > 0; i++) {
        if (!time_point(s, &near[i], best->cost, left) || near[i].cost >= best->cost * BETTER)
            continue;
        *best = near[i];
        return true;
    }
    return false;
}

/* The others are taken to be no better than the best that was simulated. */
void finalists_simulate(struct search *s) {
    struct point best = {.cost = INFINITY};
    double model = INFINITY;
    if (!can_simulate(s->w, s->nest)) return;
    struct walked left = walked_begin(s->w);
    for (int i = 0; i < s->nfinal; i++) {
        struct point *q = &s->final[i];
        double cost = q->cost;
        if (!time_point(s, q, best.cost, &left)) continue;
        model = fmin(model, cost);
        if (q->cost < best.cost) best = *q;
    }
    if (isinf(best.cost)) return;
    while (step(s, &best, model, &left)) {
    }
    for (int i = 0; i < s->npool; i++)
        if (s->pool[i].cost <= best.cost) s->pool[i].cost = best.cost * (1 + 1e-6);
    pool_add(s, &best);
}
