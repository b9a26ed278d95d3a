/* The clock is asked about plans that could be clearly better than the best it knows, and about no
 * others: one queue or bus that is as busy says so. About none where nothing can be planned. Other
 * covers are planned where they differ, and walked where the model thinks them no worse. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#include "approaches/approaches.h"
#include "scheduler_plan.h"
#include "sim/sim.h"

static int walks; /* that were asked for */

static double walked(const struct schedule *s, double most, int64_t *steps) {
    struct sim_options quick = {.no_values = true, .trusted = true, .steps = *steps, .most = most};
    struct sim_result result;
    struct diags d;
    diags_init(&d);
    double cycles = sim_run(s, NULL, &quick, &result, &d) ? result.cycles
                    : result.beyond ? INFINITY : -1;
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
    struct effort effort;
};

/* The bound from below of a nest is made much too large at the calls from the one on and before the
 * other. */
struct lie {
    int calls, from, to;
};

static double bound(void *user, double least) {
    struct lie *l = user;
    int call = l->calls++;
    bool lies = call >= l->from && call < l->to;
    return lies ? 1e6 * least : least;
}

/* Asked for: in `walks`. */
static void try_lied(struct tried *t, const char *machine, const char *text, const char *size,
                     int64_t n, struct lie *lie) {
    struct known_searches *known = known_open();
    struct scheduler_options options = {
        .threads = 1, .simulate = walked, .searches = known, .bound = bound, .user = lie};
    struct binding given = {.name = size, .value = n};
    *t = (struct tried){0};
    arena_init(&t->arena);
    diags_init(&t->diags);
    t->m = plan_machine(machine, "machines/cpu-avx2.xml", &t->diags);
    t->p = plan_program(&t->arena, text, &given, 1, &t->diags);
    assert_true(t->m && t->p);
    t->decider = decider_open(&approach_heuristic, 1);
    walks = 0;
    t->s =
        scheduler_compile(t->p, t->m, REWRITE_REORDERS, t->decider, &options, &t->cover, &t->diags);
    t->effort = *known_effort(known);
    known_close(known);
}

static void try_text(struct tried *t, const char *machine, const char *text, const char *size,
                     int64_t n) {
    struct lie none = {0};
    try_lied(t, machine, text, size, n, &none);
    assert_int_equal(t->effort.below, 0);
}

/* A convolution of n images of 64 channels. */
static void try_on(struct tried *t, const char *machine, int64_t n) {
    try_text(t, machine,
             "kernel c2d(N=4) {\n in I: i8[N, 64, 28, 28]\n const F: i8[64, 64, 3, 3]\n"
             " out O: i32[N, 64, 28, 28]\n axes n: N, k: 64, p: 28, q: 28, c: 64, r: 3, s: 3\n"
             " O[n,k,p,q] = 0\n"
             " O[n,k,p,q] += i32(I[n,c,p+r-1,q+s-1 else 0]) * i32(F[k,c,r,s])\n}\n",
             "N", n);
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
    } on[] = {{"machines/edge16.xml", 90}, /* with nine other answers */
              {"machines/vdla.xml", 72}};
    (void)state;
    for (size_t k = 0; k < sizeof on / sizeof *on; k++) {
        struct tried t;
        int64_t steps = 0;
        try_on(&t, on[k].machine, 4);
        assert_non_null(t.s);
        assert_true(walks > 0 && walks <= on[k].most);
        assert_true(walked(t.s, 0, &steps) <= 1.02 * t.s->least);
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

#define DEP                                                                                        \
    "kernel dep(N=16) {\n in I: i8[N, 64, 58, 58]\n const F: i8[64, 32, 3, 3]\n"                   \
    " out O: i32[N, 64, 32, 56, 56]\n axes n: N, c: 64, m: 32, p: 56, q: 56, r: 3, s: 3\n"         \
    " O[n,c,m,p,q] = 0\n O[n,c,m,p,q] += i32(I[n,c,p+r,q+s]) * i32(F[c,m,r,s])\n}\n"

static bool same(const struct tried *a, const struct tried *b) {
    struct text s = {0}, t = {0};
    schedule_print(a->s, &s);
    schedule_print(b->s, &t);
    bool is = strcmp(s.at, t.at) == 0;
    text_free(&s);
    text_free(&t);
    return is;
}

/* Windows of each channel alone: vdla has eight covers that cost less than four times as much, and
 * what moves of most of them says that they take longer. */
static void hopeless_covers_are_not_walked(void **state) {
    struct tried t;
    (void)state;
    try_text(&t, "machines/vdla.xml", DEP, "N", 16);
    assert_non_null(t.s);
    assert_true(walks > 0 && walks <= 28); /* of all covers: 36 */
    tried_free(&t);
}

/* One of the mapper's other answers changes nothing. */
static void equal_covers_are_planned_once(void **state) {
    struct tried t;
    (void)state;
    try_on(&t, "machines/edge16.xml", 4);
    assert_non_null(t.s);
    assert_int_equal(t.effort.nests,
                     7); /* one for each cover that may win; 11 where all are planned */
    tried_free(&t);
}

/* A search that finds less than the bound says so, and nothing is given up by it from then on. */
static void a_wrong_bound_is_not_used(void **state) {
    struct tried right, wrong;
    struct lie none = {0}, always = {.to = INT_MAX};
    (void)state;
    try_lied(&right, "machines/vdla.xml", DEP, "N", 16, &none);
    try_lied(&wrong, "machines/vdla.xml", DEP, "N", 16, &always);
    assert_int_equal(wrong.effort.below, 1);
    assert_true(same(&right, &wrong));
    tried_free(&right);
    tried_free(&wrong);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_wrong_bound_is_not_used),
                                                                              cmocka_unit_test(few_are_walked),
                                       cmocka_unit_test(none_where_arguments_do_not_fit),
                                       cmocka_unit_test(hopeless_covers_are_not_walked),
                                       cmocka_unit_test(equal_covers_are_planned_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
