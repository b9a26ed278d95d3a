/* The driver's answer to the planner's question how long a nest takes with a plan: the nest is
 * emitted alone and walked by the simulator's timing (SCHEDULING §2). */
#include "scheduler/emit/emit.h"
#include "scheduler/finalists.h"
#include "scheduler/plan/geom.h"
#include "scheduler/plan/moves.h"
#include "scheduler/plan/nest.h"
#include "scheduler/plan/plan.h"
#include "scheduler/plan/rewrite.h"
#include "scheduler/plan/work.h"

static struct work work_alone(const struct work *w, struct arena *scratch, struct diags *diags) {
    struct work alone = *w;
    alone.arena = scratch;
    alone.diags = diags;
    alone.copies = NULL;
    alone.tried = NULL;
    alone.uses = uses_new(scratch);
    alone.cap_buffers = alone.cap_homes = alone.cap_stmts = alone.cap_tasks_of = 0;
    alone.cap_prepare = alone.cap_order = 0;
    alone.s = schedule_new(alone.m);
    alone.s->program = alone.p = program_copy(w->p);
    alone.home = arena_copy(scratch, w->home, sizeof *alone.home * (size_t)alone.p->nbuffers);
    for (const struct homes *h = w->tried; h; h = h->rest) alone.home[h->buffer] = h->home;
    alone.nest = arena_copy(scratch, w->nest, sizeof *alone.nest * (size_t)alone.nnests);
    return alone;
}

double nest_time(const struct work *w, const struct moves *moves, const struct nest *n,
                 const struct plan *p, int64_t *steps) {
    struct arena scratch;
    struct diags diags;
    arena_init(&scratch);
    diags_init(&diags);
    struct work alone = work_alone(w, &scratch, &diags);
    double cycles = -1;
    w->effort->timed++;
    alone.nest[n->number] = *n;
    alone.nest[n->number].plan = *p;
    alone.nest[n->number].plan.tiling = NULL;
    if (schedule_emit_nest(&alone, moves, n->number) && !diags.errors)
        cycles = w->options->simulate(alone.s, 0, steps);
    else
        *steps = 0;
    schedule_free(alone.s);
    diags_free(&diags);
    arena_free(&scratch);
    return cycles;
}
