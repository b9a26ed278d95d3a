/* The best plans of a nest, each emitted alone and simulated (timing only) by whom the caller names
 * (SCHEDULING §2): the model is a few percent off where queues and buses are equally loaded. Only
 * where queues run in program order, and as many as the nest's size allows: the longer it runs,
 * the better the model. */
#include "scheduler/emit/emit_int.h"
#include "scheduler/plan/search_int.h"
#include <math.h>
#include <string.h>

enum { ITERATIONS = 12000, SPARED = 4, FEW = 3, STEPS = 100000 };

static bool can_simulate(const struct work *w, const struct nest *n) {
    return w->options && w->options->simulate && n->partner < 0 && !n->nprefix &&
           !w->m->queue[w->task[n->core].needle->in->queue].data_order;
}

static struct work work_alone(const struct work *w, struct arena *scratch, struct diags *diags) {
    struct work alone = *w;
    alone.arena = scratch;
    alone.diags = diags;
    alone.copies = alone.copies_kept = NULL;
    alone.uses = uses_new(scratch);
    alone.cap_buffers = alone.cap_homes = alone.cap_stmts = alone.cap_tasks_of = 0;
    alone.cap_prepare = alone.cap_order = 0;
    alone.s = schedule_new(alone.m);
    alone.s->program = alone.p = program_copy(w->p);
    alone.home = arena_copy(scratch, w->home, sizeof *alone.home * (size_t)alone.p->nbuffers);
    alone.nest = arena_copy(scratch, w->nest, sizeof *alone.nest * (size_t)alone.nnests);
    return alone;
}

static double simulated(const struct work *w, const struct moves *moves, int nest,
                        const struct plan *p) {
    struct arena scratch;
    struct diags diags;
    struct nodes list = {0};
    arena_init(&scratch);
    diags_init(&diags);
    struct work alone = work_alone(w, &scratch, &diags);
    double cycles = -1;
    alone.nest[nest].plan = *p;
    alone.nest[nest].plan.tiling = NULL;
    if (homes_place(&alone) && recur_primed(&alone, moves, &alone.nest[nest]) &&
        emit_nest(&alone, moves, nest, &list)) {
        nodes_fold(&alone, &list);
        alone.s->run = (struct section){list.at, list.n};
        cycles = w->options->simulate(alone.s, STEPS);
    }
    schedule_free(alone.s);
    diags_free(&diags);
    arena_free(&scratch);
    return cycles;
}

static double entries(const struct work *w, const struct nest *n, const struct plan *p) {
    return plan_entries(w, n, p, plan_trips(w, p, p->nloops));
}

double plan_simulated(struct work *w, const struct moves *moves, int nest, const struct plan *p) {
    double most = (double)ITERATIONS / w->nnests;
    if (!can_simulate(w, &w->nest[nest]) || entries(w, &w->nest[nest], p) > most) return -1;
    return simulated(w, moves, nest, p);
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
        q->simulated = simulated(s->w, s->moves, s->nest, &p);
        if (q->simulated <= 0) return;
        q->cost *= q->simulated / p.predicted;
        if (q->cost < least) least = q->cost;
    }
    if (isinf(least)) return;
    for (int i = 0; i < s->npool; i++)
        if (s->pool[i].cost <= least) s->pool[i].cost = least * (1 + 1e-6);
    for (int i = 0; i < n && i < s->nfinal; i++) pool_add(s, &s->final[i]);
}
