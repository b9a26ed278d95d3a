/* Are a schedule's values the interpreter's, in the simulator and in compiled code? After cmocka.h.
 */
#ifndef ISAMAP_TESTS_PLAN_RUN_H
#define ISAMAP_TESTS_PLAN_RUN_H

#include "tests/scheduler_plan.h"
#include "backends/backend.h"
#include "sim/sim.h"

static inline void plan_simulate(struct compiled *x, void **want) {
    struct sim_options options = {0};
    struct sim_result result;
    void **y = plan_data(x->s->program);
    bool ran = sim_run(x->s, y, &options, &result, &x->diags);
    if (!ran) diags_print(&x->diags, stderr);
    assert_true(ran);
    if (plan_differ(x->p, want, x->s->program, y))
        fprintf(stderr, "%s:\n%s", x->m->name, x->p->name);
    assert_int_equal(plan_differ(x->p, want, x->s->program, y), 0);
    sim_result_free(&result);
    plan_data_free(x->s->program, y);
}

/* Nothing where this processor lacks a feature. */
static inline void plan_execute(struct compiled *x, int threads, void **want) {
    const struct backend *backend = backend_find(x->s, NULL, &x->diags);
    struct diags missing;
    diags_init(&missing);
    bool here = backend && machine_runs_here(x->m, &missing);
    diags_free(&missing);
    if (!here) return;
    void **y = plan_data(x->s->program);
    struct executable *e = backend->load(x->s, &(struct backend_options){0}, &x->diags);
    assert_non_null(e);
    assert_true(executable_prepare(e, y, &x->diags) && executable_run(e, y, threads, &x->diags));
    assert_int_equal(plan_differ(x->p, want, x->s->program, y), 0);
    executable_free(e);
    plan_data_free(x->s->program, y);
}

/* threads 0: it does not run on any computer. */
static inline void plan_values(struct compiled *x, int threads) {
    void **want = plan_data(x->p);
    assert_true(program_run(x->p, want, NULL, NULL, &x->diags));
    plan_simulate(x, want);
    if (threads) plan_execute(x, threads, want);
    plan_data_free(x->p, want);
}

#endif
