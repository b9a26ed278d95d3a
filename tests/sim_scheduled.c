/* Values of schedules: what the simulator computes from a schedule is what the interpreter computes
 * from the program. */
#include "tests/scheduler_plan.h"
#include "sim/sim.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

static void compare(const struct plan_case *k, const struct approach *approach, uint64_t seed) {
    struct compiled r;
    compiled_case(&r, k, NULL, 0);
    compiled_by(&r, approach, seed, NULL);
    void **x = plan_data(r.p), **y = plan_data(r.s->program);
    struct sim_options options = {0};
    struct sim_result result;
    assert_true(program_run(r.p, x, NULL, NULL, &r.diags));
    bool ran = sim_run(r.s, y, &options, &result, &r.diags);
    if (!ran) diags_print(&r.diags, stderr);
    assert_true(ran);
    int64_t bad = plan_differ(r.p, x, r.s->program, y);
    if (bad)
        fprintf(stderr, "%s, seed %d: %lld elements differ\n%s", k->machine, (int)seed,
                (long long)bad, k->text);
    assert_int_equal(bad, 0);
    sim_result_free(&result);
    plan_data_free(r.p, x);
    plan_data_free(r.s->program, y);
    compiled_free(&r);
}

static void values_are_right(void **state) {
    (void)state;
    for (int i = 0; i < PLAN_CASES; i++) compare(&plan_cases[i], &plan_best, 0);
}

static void any_answers_give_right_values(void **state) {
    (void)state;
    for (int i = 0; i < PLAN_CASES; i++)
        for (uint64_t seed = 1; seed <= 10; seed++) compare(&plan_cases[i], &plan_any, seed);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(values_are_right),
                                       cmocka_unit_test(any_answers_give_right_values)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
