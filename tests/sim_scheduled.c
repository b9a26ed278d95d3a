/* Values of schedules: what the simulator computes from a schedule is what the interpreter computes
 * from the program. */
#include "tests/scheduler_plan.h"
#include "tests/scheduler_help.h"
#include "sim/sim.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

/* Fused, its operands fit a small home one by one, but not all of them. */
static const char fused_i8[] = "kernel fused() {\n"
                               "  const A: i8[33, 20, 8]  in B: i8[]  out C: i32[8, 33, 20]\n"
                               "  axes a: 33, b: 20, c: 8, d: 2\n"
                               "  C[c,a,b]  = 0\n"
                               "  C[c,a,b] += i32(A[a+2*d-1,b,c else 0]) * i32(B[])\n"
                               "}\n";

static void check_values(struct compiled *r, const char *machine, const char *text, uint64_t seed) {
    void **x = plan_data(r->p), **y = plan_data(r->s->program);
    struct sim_options options = {0};
    struct sim_result result;
    assert_true(program_run(r->p, x, NULL, NULL, &r->diags));
    bool ran = sim_run(r->s, y, &options, &result, &r->diags);
    if (!ran) diags_print(&r->diags, stderr);
    assert_true(ran);
    int64_t bad = plan_differ(r->p, x, r->s->program, y);
    if (bad)
        fprintf(stderr, "%s, seed %d: %lld elements differ\n%s", machine, (int)seed, (long long)bad,
                text);
    assert_int_equal(bad, 0);
    sim_result_free(&result);
    plan_data_free(r->p, x);
    plan_data_free(r->s->program, y);
}

static void compare(const struct plan_case *k, const struct approach *approach, uint64_t seed) {
    struct compiled r;
    compiled_case(&r, k, NULL, 0);
    compiled_by(&r, approach, seed, NULL);
    check_values(&r, k->machine, k->text, seed);
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

/* What does not fit is refused, or goes to the fallback as it was. */
static void small_homes(void **state) {
    static const char board[] = "tests/data/machines/schedule/board.xml";
    int made = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct compiled r;
        compiled_open(&r, board, NULL, NULL, fused_i8, NULL, 0);
        struct decider *d = decider_open(&plan_any, seed);
        r.c = mapper_cover(r.p, r.m, d, &r.diags);
        assert_non_null(r.c);
        r.s = scheduler_run(r.c, r.m, d, NULL, &r.diags);
        decider_close(d);
        if (r.s) check_values(&r, board, fused_i8, seed);
        made += r.s != NULL;
        compiled_free(&r);
    }
    assert_true(made > 0);
}

#define DRAM "  <memory id=\"dram\" align=\"1\"/>\n"
#define WEIGHTS                                                                                    \
    "  <memory id=\"pe\"   size=\"DIM*DIM\" word=\"DIM*DIM\" types=\"i8\"/>   <!-- the weights "   \
    "that "                                                                                        \
    "stand in the array -->\n"

#define STATES "tests/data/schedules/states.sched"

/* In how many elements a schedule for a form of gemmini's file differs from its program. */
static int64_t values_differ(const char *xml, const char *text) {
    struct diags d;
    struct sim_options options = {0};
    struct sim_result result;
    diags_init(&d);
    struct machine *m = machine_parse("machines/gemmini.xml", xml, strlen(xml), NULL, &d);
    assert_non_null(m);
    struct schedule *s = help_parse(m, STATES, text, &d);
    assert_non_null(s);
    void **x = plan_data(s->program), **y = plan_data(s->program);
    assert_true(program_run(s->program, x, NULL, NULL, &d));
    assert_true(sim_run(s, y, &options, &result, &d));
    int64_t differ = plan_differ(s->program, x, s->program, y);
    sim_result_free(&result);
    plan_data_free(s->program, x);
    plan_data_free(s->program, y);
    schedule_free(s);
    machine_free(m);
    diags_free(&d);
    return differ;
}

/* Weights that an instruction leaves in its unit are there for the next one, wherever the machine
 * file declares that memory. */
static void what_stays_in_a_unit(void **state) {
    struct arena a;
    (void)state;
    arena_init(&a);
    char *xml = help_read(&a, "machines/gemmini.xml"), *text = help_read(&a, STATES);
    assert_int_equal(values_differ(xml, text), 0);
    xml = help_replace(&a, xml, WEIGHTS, "", 0);
    xml = help_replace(&a, xml, DRAM, WEIGHTS DRAM, 0);
    assert_int_equal(values_differ(xml, text), 0);
    arena_free(&a);
}

/* Eight rows of weights that stay there take the place of all sixteen: the rest is lost. */
static void what_stays_takes_the_place_of_all(void **state) {
    static const char loop[] = "      loop i0 = 16 to 40 step 16 axis i {\n";
    static const char fewer[] =
        "      issue ws.first(M = 1, N = 16, K = 8, add = 0, A = a, B = b + j0*16, C = c + 2496)\n"
        "        do 1 init 0 axes (i: i, j: j, k: k) at (i = 0, j = j0, k = 0)\n";
    struct arena a;
    (void)state;
    arena_init(&a);
    char *text = help_read(&a, STATES), planted[256];
    snprintf(planted, sizeof planted, "%s%s", fewer, loop);
    text = help_replace(&a, text, loop, planted, 0);
    assert_int_not_equal(values_differ(help_read(&a, "machines/gemmini.xml"), text), 0);
    arena_free(&a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_right), cmocka_unit_test(what_stays_in_a_unit),
        cmocka_unit_test(what_stays_takes_the_place_of_all),
        cmocka_unit_test(any_answers_give_right_values), cmocka_unit_test(small_homes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
