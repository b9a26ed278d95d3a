/* Values of schedules: what the simulator computes from a schedule is what the interpreter computes
 * from the program. */
#include "tests/scheduler_plan.h"
#include "sim/sim.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

static void compare(const struct plan_case *k, const struct approach *approach, uint64_t seed) {
    struct arena arena;
    struct diags diags;
    arena_init(&arena);
    diags_init(&diags);
    struct machine *m = plan_machine(k->machine, k->host, &diags);
    struct program *p = plan_program(&arena, k->text, NULL, 0, &diags);
    assert_true(m && p);
    struct decider *d = decider_open(approach, seed);
    struct cover *c = mapper_cover(p, m, d, &diags);
    assert_non_null(c);
    struct schedule *s = scheduler_run(c, m, d, NULL, &diags);
    assert_non_null(s);
    void **x = plan_data(p), **y = plan_data(s->program);
    struct sim_options options = {0};
    struct sim_result result;
    assert_true(program_run(p, x, NULL, NULL, &diags));
    bool ran = sim_run(s, y, &options, &result, &diags);
    if (!ran) diags_print(&diags, stderr);
    assert_true(ran);
    int64_t bad = plan_differ(p, x, s->program, y);
    if (bad)
        fprintf(stderr, "%s, seed %d: %lld elements differ\n%s", k->machine, (int)seed,
                (long long)bad, k->text);
    assert_int_equal(bad, 0);
    sim_result_free(&result);
    plan_data_free(p, x);
    plan_data_free(s->program, y);
    decider_close(d);
    schedule_free(s);
    cover_free(c);
    program_free(p);
    machine_free(m);
    diags_free(&diags);
    arena_free(&arena);
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
