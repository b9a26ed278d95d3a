/* The order in which a schedule names its places says nothing: with the last one first it is proved
 * as before and has the same values and cycles. */
#include "tests/scheduler_plan.h"
#include "sim/sim.h"
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

/* The text with its places in the opposite order. */
static char *backwards(struct arena *arena, const char *text) {
    const char *first = strstr(text, "\n  place "), *end = first + 1;
    char *out = arena_strdup(arena, text), *to = out + (first + 1 - text);
    int n = 0;
    assert_non_null(first);
    while (strncmp(end, "  place ", 8) == 0) end = strchr(end, '\n') + 1, n++;
    assert_true(n > 3);
    for (const char *line = end; line > first + 1;) {
        const char *last = line--;
        while (line[-1] != '\n') line--;
        memcpy(to, line, (size_t)(last - line));
        to += last - line;
    }
    assert_string_equal(to, end);
    return out;
}

static double simulated(const struct schedule *s, void **data, struct diags *d) {
    struct sim_options options = {0};
    struct sim_result result;
    bool ran = schedule_verify(s, &(struct verify_options){0, 0}, d) &&
               sim_run(s, data, &options, &result, d);
    if (!ran) diags_print(d, stderr);
    assert_true(ran);
    double cycles = result.cycles;
    sim_result_free(&result);
    return cycles;
}

static void same(const char *machine, const char *host) {
    struct binding size[] = {{"M", 40}};
    struct compiled x;
    struct text text = {0};
    compiled_open(&x, machine, host, NULL, gmm_i8, size, 1);
    compiled_by(&x, &plan_best, 0, &(struct scheduler_options){0});
    schedule_print(x.s, &text);
    char *other = backwards(&x.diags.arena, text.at);
    struct source source = {"backwards.sched", other, strlen(other), 1, 1};
    struct schedule *s = schedule_parse(x.m, &source, &x.diags);
    if (!s) diags_print(&x.diags, stderr);
    assert_non_null(s);
    void **a = plan_data(x.s->program), **b = plan_data(s->program), **want = plan_data(x.p);
    assert_true(program_run(x.p, want, NULL, NULL, &x.diags));
    double cycles = simulated(x.s, a, &x.diags);
    assert_true(simulated(s, b, &x.diags) == cycles);
    assert_int_equal(plan_differ(x.p, want, x.s->program, a), 0);
    assert_int_equal(plan_differ(x.p, want, s->program, b), 0);
    plan_data_free(x.s->program, a);
    plan_data_free(s->program, b);
    plan_data_free(x.p, want);
    schedule_free(s);
    text_free(&text);
    compiled_free(&x);
}

/* Weights remain in the array of gemmini while other rows pass. */
static void order_of_places(void **state) {
    (void)state;
    same("machines/gemmini.xml", "machines/cpu-avx2.xml");
    same("machines/edge16.xml", "machines/cpu-avx2.xml");
    same("machines/vdla.xml", "machines/cpu-avx2.xml");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(order_of_places)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
