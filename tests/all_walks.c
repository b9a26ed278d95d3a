/* The clock is asked about plans that could be clearly better than the best it knows, and about no
 * others: one queue or bus that is as busy says so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "approaches/approaches.h"
#include "scheduler_plan.h"
#include "sim/sim.h"

static int walks; /* that were asked for */

static double walked(const struct schedule *s, int64_t *steps) {
    struct sim_options quick = {.no_values = true, .trusted = true, .steps = *steps};
    struct sim_result result;
    struct diags d;
    diags_init(&d);
    double cycles = sim_run(s, NULL, &quick, &result, &d) ? result.cycles : -1;
    *steps = result.steps;
    sim_result_free(&result);
    diags_free(&d);
    walks++;
    return cycles;
}

static void few_are_walked(void **state) {
    const char *text =
        "kernel c2d() {\n in I: i8[4, 64, 28, 28]\n const F: i8[64, 64, 3, 3]\n"
        " out O: i32[4, 64, 28, 28]\n axes n: 4, k: 64, p: 28, q: 28, c: 64, r: 3, s: 3\n"
        " O[n,k,p,q] = 0\n O[n,k,p,q] += i32(I[n,c,p+r-1,q+s-1 else 0]) * i32(F[k,c,r,s])\n}\n";
    static const struct {
        const char *machine;
        int most;
    } on[] = {{"machines/edge16.xml", 80},
              {"machines/vdla.xml", 60}}; /* of all finalists: 89, 68 */
    (void)state;
    for (size_t k = 0; k < sizeof on / sizeof *on; k++) {
        struct arena a;
        struct diags d;
        struct cover *cover = NULL;
        struct scheduler_options options = {.threads = 1, .simulate = walked};
        arena_init(&a);
        diags_init(&d);
        struct machine *m = plan_machine(on[k].machine, "machines/cpu-avx2.xml", &d);
        struct program *p = plan_program(&a, text, NULL, 0, &d);
        struct decider *decider = decider_open(&approach_heuristic, 1);
        assert_true(m && p);
        walks = 0;
        struct schedule *s =
            scheduler_compile(p, m, REWRITE_REORDERS, decider, &options, &cover, &d);
        int64_t steps = 0;
        int asked = walks;
        assert_non_null(s);
        assert_true(asked <= on[k].most);
        assert_true(walked(s, &steps) <= 1.02 * s->least);
        schedule_free(s);
        cover_free(cover);
        decider_close(decider);
        program_free(p);
        machine_free(m);
        diags_free(&d);
        arena_free(&a);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(few_are_walked)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
