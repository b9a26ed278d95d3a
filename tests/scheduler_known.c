/* Equal nests are planned once: the searches made do not grow with the layers of a chain, what is
 * counted grows with them at most, and a plan that was found for another nest is the one that a
 * search of its own finds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "scheduler_plan.h"

enum { LAYERS = 16 }; /* more than there are different nests */

/* What planning a program takes, with what `known` already has and so many plans to look at (0: the
 * default); the schedule's text, if asked for. */
static struct effort take_with(const struct machine *m, const char *kernel, int64_t steps,
                               struct known_searches *known, struct text *out) {
    struct diags d;
    struct arena a;
    struct cover *cover = NULL;
    struct scheduler_options options = {.threads = 1, .searches = known, .steps = steps};
    diags_init(&d);
    arena_init(&a);
    struct program *p = plan_program(&a, kernel, NULL, 0, &d);
    struct decider *decider = decider_open(&plan_best, 0);
    struct effort before = *known_effort(known), e = *known_effort(known);
    assert_non_null(p);
    struct schedule *s = scheduler_compile(p, m, REWRITE_REORDERS, decider, &options, &cover, &d);
    if (!s) diags_print(&d, stderr);
    assert_non_null(s);
    if (out) schedule_print(s, out);
    e = *known_effort(known);
    assert_int_equal(e.below, 0); /* no search found less than the bound from below */
    schedule_free(s);
    cover_free(cover);
    decider_close(decider);
    program_free(p);
    arena_free(&a);
    diags_free(&d);
    return (struct effort){.nests = e.nests - before.nests,
                           .searches = e.searches - before.searches,
                           .plans = e.plans - before.plans,
                           .timed = e.timed - before.timed};
}

static struct effort take(const struct machine *m, const char *kernel, struct known_searches *known,
                          struct text *out) {
    return take_with(m, kernel, 0, known, out);
}

/* ---- chains ---- */

static const struct chained {
    const char *machine, *host, *type, *sum, *layer;
} chained[] = {
    {"machines/cpu-avx2.xml", NULL, "f32", "f32", " T%d[i,j] = max(S%d[i,j], 0)\n"},
    {"machines/edge16.xml", "machines/cpu-scalar.xml", "i8", "i32",
     " T%d[i,j] = i8(clip(round(f64(S%d[i,j]) * 0.25), -128, 127))\n"},
};

/* n products, each of what the one before it leaves. */
static void chain_text(const struct chained *c, int n, struct text *t) {
    text_printf(t, "kernel chain() {\n in T0: %s[32, 48]\n", c->type);
    for (int i = 1; i <= n; i++)
        text_printf(t, " const W%d: %s[48, 48]\n temp S%d: %s[32, 48]\n %s T%d: %s[32, 48]\n", i,
                    c->type, i, c->sum, i < n ? "temp" : "out", i, c->type);
    text_printf(t, " axes i: 32, j: 48, k: 48\n");
    for (int i = 1; i <= n; i++) {
        text_printf(t, " S%d[i,j] = 0\n S%d[i,j] += %s(T%d[i,k]) * %s(W%d[k,j])\n", i, i, c->sum,
                    i - 1, c->sum, i);
        text_printf(t, c->layer, i, i);
    }
    text_printf(t, "}\n");
}

static struct effort chain_effort(const struct machine *m, const struct chained *c, int n) {
    struct text t = {0};
    struct known_searches *known = known_open();
    chain_text(c, n, &t);
    struct effort e = take(m, t.at, known, NULL);
    known_close(known);
    text_free(&t);
    return e;
}

/* The searches of a chain twice as long are no more; nests and plans grow in proportion at most. */
static void chain_grows(const struct chained *c) {
    struct diags d;
    diags_init(&d);
    struct machine *m = plan_machine(c->machine, c->host, &d);
    assert_non_null(m);
    struct effort one = chain_effort(m, c, LAYERS), two = chain_effort(m, c, 2 * LAYERS),
                  four = chain_effort(m, c, 4 * LAYERS);
    assert_true(one.nests >= LAYERS && one.searches < LAYERS);
    assert_true(two.searches <= one.searches && four.searches <= two.searches);
    assert_true(four.nests <= 2 * two.nests && two.nests <= 2 * one.nests);
    assert_true(four.plans <= 2 * two.plans && two.plans <= 2 * one.plans);
    machine_free(m);
    diags_free(&d);
}

static void chains_grow(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof chained / sizeof *chained; i++) chain_grows(&chained[i]);
}

/* n products that share nothing, all alike. */
static struct effort apart_effort(const struct machine *m, int n) {
    struct text t = {0};
    struct known_searches *known = known_open();
    text_printf(&t, "kernel apart() {\n axes i: 64, j: 64, k: 64\n");
    for (int i = 0; i < n; i++)
        text_printf(&t, " in A%d: f32[64, 64]\n in B%d: f32[64, 64]\n out C%d: f32[64, 64]\n", i, i,
                    i);
    for (int i = 0; i < n; i++)
        text_printf(&t, " C%d[i,j] = 0\n C%d[i,j] += A%d[i,k] * B%d[k,j]\n", i, i, i, i);
    text_printf(&t, "}\n");
    struct effort e = take(m, t.at, known, NULL);
    known_close(known);
    text_free(&t);
    return e;
}

/* However many nests there are, the search for one looks at enough plans. */
static void many_are_searched_as_few(void **state) {
    struct diags d;
    (void)state;
    diags_init(&d);
    struct machine *m = plan_machine("machines/cpu-avx2.xml", NULL, &d);
    assert_non_null(m);
    struct effort few = apart_effort(m, 40), many = apart_effort(m, 120);
    assert_true(few.plans > 0);
    assert_int_equal(many.searches, few.searches);
    assert_true(many.plans >= few.plans);
    machine_free(m);
    diags_free(&d);
}

/* ---- what is known for one is not taken for another ---- */

#define BEGIN " kernel k() {\n"
static const char *const variants[] = {
    BEGIN
    " in A: f32[40, 24]\n const B: f32[24, 64]\n out C: f32[40, 64]\n axes i: 40, j: 64, k: 24\n"
    " C[i,j] = 0\n C[i,j] += A[i,k] * B[k,j]\n}\n",
    /* another extent */
    BEGIN
    " in A: f32[40, 25]\n const B: f32[25, 64]\n out C: f32[40, 64]\n axes i: 40, j: 64, k: 25\n"
    " C[i,j] = 0\n C[i,j] += A[i,k] * B[k,j]\n}\n",
    /* no constant */
    BEGIN " in A: f32[40, 24]\n in B: f32[24, 64]\n out C: f32[40, 64]\n axes i: 40, j: 64, k: 24\n"
          " C[i,j] = 0\n C[i,j] += A[i,k] * B[k,j]\n}\n",
    /* the other way round at home */
    BEGIN
    " in A: f32[40, 24]\n const B: f32[64, 24]\n out C: f32[40, 64]\n axes i: 40, j: 64, k: 24\n"
    " C[i,j] = 0\n C[i,j] += A[i,k] * B[j,k]\n}\n",
    /* sums go on */
    BEGIN " in A: f32[40, 24]\n const B: f32[24, 64]\n inout C: f32[40, 64]\n"
          " axes i: 40, j: 64, k: 24\n C[i,j] += A[i,k] * B[k,j]\n}\n",
    /* a follower, alone and where its argument is wanted too */
    BEGIN " in A: f32[40, 24]\n const B: f32[24, 64]\n temp C: f32[40, 64]\n out D: f32[40, 64]\n"
          " axes i: 40, j: 64, k: 24\n C[i,j] = 0\n C[i,j] += A[i,k] * B[k,j]\n"
          " D[i,j] = max(C[i,j], 0)\n}\n",
    BEGIN " in A: f32[40, 24]\n const B: f32[24, 64]\n out C: f32[40, 64]\n out D: f32[40, 64]\n"
          " axes i: 40, j: 64, k: 24\n C[i,j] = 0\n C[i,j] += A[i,k] * B[k,j]\n"
          " D[i,j] = max(C[i,j], 0)\n}\n",
    /* part of a larger array, and a window */
    BEGIN
    " in A: f32[50, 24]\n const B: f32[24, 64]\n out C: f32[40, 64]\n axes i: 40, j: 64, k: 24\n"
    " C[i,j] = 0\n C[i,j] += A[i+10,k] * B[k,j]\n}\n",
    BEGIN " in A: f32[63]\n const B: f32[24, 64]\n out C: f32[40, 64]\n axes i: 40, j: 64, k: 24\n"
          " C[i,j] = 0\n C[i,j] += A[i+k] * B[k,j]\n}\n",
    /* bytes */
    BEGIN
    " in A: i8[40, 24]\n const B: i8[24, 64]\n out C: i32[40, 64]\n axes i: 40, j: 64, k: 24\n"
    " C[i,j] = 0\n C[i,j] += i32(A[i,k]) * i32(B[k,j])\n}\n",
};

static void variants_on(const char *machine, const char *host) {
    struct diags d;
    diags_init(&d);
    struct machine *m = plan_machine(machine, host, &d);
    struct known_searches *all = known_open();
    assert_non_null(m);
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
        struct text alone = {0}, after = {0}, again = {0};
        struct known_searches *known = known_open();
        take(m, variants[i], known, &alone);
        take(m, variants[i], all, &after);
        assert_string_equal(after.at, alone.at);
        assert_int_equal(take(m, variants[i], all, &again).searches, 0);
        assert_string_equal(again.at, alone.at);
        known_close(known);
        text_free(&alone);
        text_free(&after);
        text_free(&again);
    }
    known_close(all);
    machine_free(m);
    diags_free(&d);
}

static void nothing_is_confused(void **state) {
    (void)state;
    variants_on("machines/cpu-avx2.xml", NULL);
    variants_on("machines/edge16.xml", "machines/cpu-avx2.xml");
}

/* What another bound on plans left is taken only where this one would have left the same. */
static void bounds_on(const char *machine, const char *host, const char *kernel) {
    static const int64_t bound[] = {0, 12000, 3000, 400, 60, 8, 90, 2000, 50000};
    struct diags d;
    int64_t searches = 0, taken = 0;
    diags_init(&d);
    struct machine *m = plan_machine(machine, host, &d);
    struct known_searches *all = known_open();
    assert_non_null(m);
    for (size_t i = 0; i < sizeof bound / sizeof *bound; i++) {
        struct text alone = {0}, after = {0};
        struct known_searches *known = known_open();
        searches += take_with(m, kernel, bound[i], known, &alone).searches;
        taken += take_with(m, kernel, bound[i], all, &after).searches;
        assert_string_equal(after.at, alone.at);
        known_close(known);
        text_free(&alone);
        text_free(&after);
    }
    assert_true(taken < searches);
    known_close(all);
    machine_free(m);
    diags_free(&d);
}

static void bounds_are_kept_apart(void **state) {
    (void)state;
    bounds_on("machines/cpu-avx2.xml", NULL, variants[0]);
    bounds_on("machines/edge16.xml", "machines/cpu-avx2.xml",
              variants[sizeof variants / sizeof *variants - 1]);
}

/* The host's copies take so long that another mapping could only win with an array that works no
 * longer than for the one taken: of the others that are tried none is searched. */
static void hopeless_tries_are_not_searched(void **state) {
    (void)state;
    struct diags d;
    struct known_searches *known = known_open();
    diags_init(&d);
    struct machine *m = plan_machine("machines/edge16.xml", "machines/cpu-avx2.xml", &d);
    assert_non_null(m);
    struct effort e = take(m,
                           BEGIN " in I: i8[16, 64, 58, 58]\n const F: i8[64, 64, 3, 3]\n"
                                 " out O: i32[16, 64, 56, 56]\n"
                                 " axes n: 16, k: 64, p: 56, q: 56, c: 64, r: 3, s: 3\n"
                                 " O[n,k,p,q] = 0\n"
                                 " O[n,k,p,q] += i32(I[n,c,p+r,q+s]) * i32(F[k,c,r,s])\n}\n",
                           known, NULL);
    assert_int_equal(e.searches, 1);
    known_close(known);
    machine_free(m);
    diags_free(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chains_grow),
        cmocka_unit_test(many_are_searched_as_few),
        cmocka_unit_test(nothing_is_confused),
        cmocka_unit_test(bounds_are_kept_apart),
        cmocka_unit_test(hopeless_tries_are_not_searched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
