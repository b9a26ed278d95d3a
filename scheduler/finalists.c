/* The best plans of a nest, each emitted alone and simulated (timing only) by whom the caller names
 * (SCHEDULING §2): the model is a few percent off where queues and buses are equally loaded. Only
 * where queues run in program order, and as many as the nest's size allows: the longer it runs,
 * the better the model. */
#include "scheduler/emit_int.h"
#include "scheduler/search_int.h"
#include <math.h>
#include <string.h>

enum { FINALISTS = 12, ITERATIONS = 40000, STEPS = 100000 };

static bool can_simulate(const struct work *w, const struct nest *n) {
    return w->options && w->options->simulate && n->partner < 0 && !n->nprefix &&
           !w->m->queue[w->task[n->core].needle->in->queue].data_order;
}

static struct work work_alone(const struct work *w, struct arena *scratch, struct diags *diags) {
    struct work alone = *w;
    alone.arena = scratch;
    alone.diags = diags;
    alone.copies = NULL;
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
    if (homes_place(&alone) && emit_nest(&alone, moves, nest, &list)) {
        nodes_fold(&alone, &list);
        alone.s->run = (struct section){list.at, list.n};
        cycles = w->options->simulate(alone.s, STEPS);
    }
    schedule_free(alone.s);
    diags_free(&diags);
    arena_free(&scratch);
    return cycles;
}

double plan_simulated(struct work *w, const struct moves *moves, int nest, const struct plan *p) {
    double most = (double)ITERATIONS / w->nnests / 4;
    if (!can_simulate(w, &w->nest[nest]) || plan_trips(w, p, p->nloops) > most) return -1;
    return simulated(w, moves, nest, p);
}

/* How many of them the bound on iterations walked allows. */
static int finalists(struct search *s) {
    struct plan p;
    point_plan(s, pool_best(s), &p);
    double each = plan_trips(s->w, &p, p.nloops), all = (double)ITERATIONS / s->w->nnests;
    int n = each * FINALISTS <= all ? FINALISTS : (int)(all / each);
    return n < 2 ? 0 : n;
}

static bool same_loops(const struct plan *a, const struct plan *b) {
    return a->nloops == b->nloops &&
           memcmp(a->loop, b->loop, sizeof a->loop[0] * (size_t)a->nloops) == 0;
}

static int next_finalist(const struct search *s) {
    int best = -1;
    for (int i = 0; i < s->npool; i++)
        if (!s->pool[i].simulated && (best < 0 || s->pool[i].cost < s->pool[best].cost)) best = i;
    return best;
}

/* What was not simulated is taken to be no better than the best that was. */
void finalists_simulate(struct search *s) {
    double least = INFINITY;
    if (!can_simulate(s->w, &s->w->nest[s->nest])) return;
    struct plan *seen = arena_array(s->w->arena, FINALISTS, sizeof *seen);
    double *cycles = arena_array(s->w->arena, FINALISTS, sizeof *cycles);
    for (int n = 0, most = finalists(s); n < most;) {
        int i = next_finalist(s), k = 0;
        if (i < 0) break;
        struct point *q = &s->pool[i];
        point_plan(s, q, &seen[n]);
        while (!same_loops(&seen[k], &seen[n])) k++;
        if (k == n) cycles[n++] = simulated(s->w, s->moves, s->nest, &seen[k]);
        q->simulated = cycles[k];
        if (q->simulated > 0) q->cost *= q->simulated / seen[k].predicted;
        if (q->cost < least) least = q->cost;
    }
    for (int i = 0; i < s->npool; i++)
        if (s->pool[i].simulated <= 0 && s->pool[i].cost < least && least < INFINITY)
            s->pool[i].cost = least;
}
