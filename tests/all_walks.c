/* The clock is asked about plans that could be clearly better than the best it knows, and about no
 * others: one queue or bus that is as busy says so. About none where nothing can be planned. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

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

struct tried {
    struct arena arena;
    struct diags diags;
    struct machine *m;
    struct program *p;
    struct cover *cover;
    struct decider *decider;
    struct schedule *s; /* NULL: refused */
};

/* A convolution of n images of 64 channels; asked for: in `walks`. */
static void try_on(struct tried *t, const char *machine, int64_t n) {
    const char *text =
        "kernel c2d(N=4) {\n in I: i8[N, 64, 28, 28]\n const F: i8[64, 64, 3, 3]\n"
        " out O: i32[N, 64, 28, 28]\n axes n: N, k: 64, p: 28, q: 28, c: 64, r: 3, s: 3\n"
        " O[n,k,p,q] = 0\n O[n,k,p,q] += i32(I[n,c,p+r-1,q+s-1 else 0]) * i32(F[k,c,r,s])\n}\n";
    struct scheduler_options options = {.threads = 1, .simulate = walked};
    struct binding images = {.name = "N", .value = n};
    *t = (struct tried){0};
    arena_init(&t->arena);
    diags_init(&t->diags);
    t->m = plan_machine(machine, "machines/cpu-avx2.xml", &t->diags);
    t->p = plan_program(&t->arena, text, &images, 1, &t->diags);
    assert_true(t->m && t->p);
    t->decider = decider_open(&approach_heuristic, 1);
    walks = 0;
    t->s =
        scheduler_compile(t->p, t->m, REWRITE_REORDERS, t->decider, &options, &t->cover, &t->diags);
}

static void tried_free(struct tried *t) {
    schedule_free(t->s);
    cover_free(t->cover);
    decider_close(t->decider);
    program_free(t->p);
    machine_free(t->m);
    diags_free(&t->diags);
    arena_free(&t->arena);
}

static void few_are_walked(void **state) {
    static const struct {
        const char *machine;
        int most;
    } on[] = {{"machines/edge16.xml", 80},
              {"machines/vdla.xml", 60}}; /* of all finalists: 89, 68 */
    (void)state;
    for (size_t k = 0; k < sizeof on / sizeof *on; k++) {
        struct tried t;
        int64_t steps = 0;
        try_on(&t, on[k].machine, 4);
        assert_non_null(t.s);
        assert_true(walks > 0 && walks <= on[k].most);
        assert_true(walked(t.s, &steps) <= 1.02 * t.s->least);
        tried_free(&t);
    }
}

static void none_where_arguments_do_not_fit(void **state) {
    struct tried t;
    (void)state;
    try_on(&t, "machines/vdla.xml", 100000);
    assert_null(t.s);
    assert_int_equal(walks, 0);
    assert_non_null(strstr(t.diags.at[0].text, "do not fit memory 'dram'"));
    tried_free(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(few_are_walked),
                                       cmocka_unit_test(none_where_arguments_do_not_fit)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
