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

double plan_simulated(struct work *w, const struct moves *moves, int nest, const struct plan *p) {
    double most = (double)ITERATIONS / w->nnests;
    if (!can_simulate(w, &w->nest[nest]) || entries(w, &w->nest[nest], p) > most) return -1;
    return w->time(w, moves, nest, p);
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
        q->simulated = s->w->time(s->w, s->moves, s->nest, &p);
        if (q->simulated <= 0) return;
        q->cost *= q->simulated / p.predicted;
        if (q->cost < least) least = q->cost;
    }
    if (isinf(least)) return;
    for (int i = 0; i < s->npool; i++)
        if (s->pool[i].cost <= least) s->pool[i].cost = least * (1 + 1e-6);
    for (int i = 0; i < n && i < s->nfinal; i++) pool_add(s, &s->final[i]);
}
