/* Sums in registers: what follows them there needs few registers beside them, and they leave and
 * come back seldom. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "scheduler/plan/price.h"
#include "tests/plan_run.h"

#define LAYER(CASTS)                                                                               \
    "kernel layer(M=14, N=64, K=80) {\n"                                                           \
    "  in A: f32[M, K]  const B: f32[K, N]  const f: f32[N]  const o: f32[N]  in R: f32[M, N]\n"   \
    "  out Y: f32[M, N]\n"                                                                         \
    "  temp C: f32[M, N]  temp D: f32[M, N]  temp E: f32[M, N]  temp G: f32[M, N]\n"               \
    "  axes i: M, j: N, k: K\n"                                                                    \
    "  C[i,j]  = 0\n"                                                                              \
    "  C[i,j] += A[i,k] * B[k,j]\n"                                                                \
    "  D[i,j]  = C[i,j] * f[j]\n"                                                                  \
    "  E[i,j]  = D[i,j] + o[j]\n" CASTS "  Y[i,j]  = max(G[i,j], 0)\n}\n"

static bool begins(const char *s, const char *with) {
    return !strncmp(s, with, strlen(with));
}

/* Registers of all places whose name begins so; in *first where the first of them lies. */
static int64_t words(const struct compiled *x, const char *name, int64_t *first) {
    int64_t low = INT64_MAX, high = 0;
    for (int p = 0; p < x->s->nplaces; p++) {
        const struct place *at = &x->s->place[p];
        if (!begins(at->name, name) || strcmp(x->m->memory[at->memory].id, "zmm")) continue;
        if (at->address < low) low = at->address;
        if (at->address + at->bytes > high) high = at->address + at->bytes;
    }
    *first = low;
    return high > low ? (high - low) / 64 : 0;
}

static void layer_open(struct compiled *x, const char *text) {
    struct verify_options whole = {0, 0};
    compiled_open(x, "machines/cpu-avx512.xml", NULL, NULL, text, NULL, 0);
    compiled_by(x, &plan_best, 1, &(struct scheduler_options){0});
    assert_true(schedule_verify(x->s, &whole, &x->diags));
    plan_values(x, 1);
}

/* Scale, offset, residual and the maximum one after the other in one register: with a register for
 * each result, and two or three for what they read, no tile of 28 sums had room. */
static void results_take_over_registers(void **state) {
    (void)state;
    struct compiled x;
    int64_t d, e, g, y;
    layer_open(&x, LAYER("  G[i,j]  = E[i,j] + R[i,j]\n"));
    assert_int_equal(words(&x, "C.", &d), 28);
    assert_int_equal(words(&x, "D.", &d), 1);
    assert_int_equal(words(&x, "E.", &e), 1);
    assert_int_equal(words(&x, "G.", &g), 1);
    assert_int_equal(words(&x, "Y.", &y), 1);
    assert_true(d == e && e == g && g == y);
    compiled_free(&x);
}

/* What is read again later keeps its register. */
static void what_is_read_later_stays(void **state) {
    (void)state;
    struct compiled x;
    int64_t d, e, g, y;
    layer_open(&x, LAYER("  G[i,j]  = E[i,j] + D[i,j]\n"));
    assert_int_equal(words(&x, "D.", &d), 1);
    assert_int_equal(words(&x, "E.", &e), 1);
    assert_int_equal(words(&x, "G.", &g), 1);
    assert_int_equal(words(&x, "Y.", &y), 1);
    assert_true(d != e && g == d && y == g);
    compiled_free(&x);
}

/* Channels that are summed up before the sums leave their registers; all of them: 1024. */
static long channels_at_once(uint64_t left_out) {
    static const char text[] = "kernel one(C=1024, K=256, P=14) {\n"
                               "  in I: f32[C, P, P]  const F: f32[K, C]  out O: f32[K, P, P]\n"
                               "  temp S: f32[K, P, P]\n"
                               "  axes k: K, p: P, q: P, c: C\n"
                               "  S[k,p,q] = 0\n"
                               "  S[k,p,q] += I[c,p,q] * F[k,c]\n"
                               "  O[k,p,q] = max(S[k,p,q], 0)\n"
                               "}\n";
    struct compiled x;
    struct text explain = {0};
    compiled_open(&x, "machines/cpu-avx512.xml", NULL, NULL, text, NULL, 0);
    compiled_by(&x, &plan_best, 1,
                &(struct scheduler_options){.explain = &explain, .left_out = left_out});
    const char *plan = strstr(explain.at, "statement 1 on 'fma.bcast'"),
               *loop = plan ? strstr(plan, "  loop c step ") : NULL;
    assert_non_null(loop);
    long n = strtol(loop + strlen("  loop c step "), NULL, 10);
    text_free(&explain);
    compiled_free(&x);
    return n == 1 ? 1024 : n;
}

/* 28 sums leave and come back in 42 cycles, which nothing hides: 12 channels, whose products take
 * 168 cycles, were said to cost next to nothing more and took a quarter more. */
static void sums_leave_seldom(void **state) {
    (void)state;
    assert_true(channels_at_once(UINT64_C(1) << PRICE_SPILLS) < 64);
    assert_true(channels_at_once(0) >= 64);
}

/* Of 14 x 2 sums, channels inside: each pixel is one register for two products. Pixels inside would
 * keep 14 of them for the next channels, and sums were stored in each step; without that order a
 * tile of 28 x 1 was left, which loads as often as it multiplies. */
static void what_passes_has_room(void **state) {
    (void)state;
    static const char text[] = "kernel strided(C=256, K=512, P=28) {\n"
                               "  in I: f32[C, 2*P, 2*P]  const F: f32[K, C]  out O: f32[K, P, P]\n"
                               "  axes k: K, p: P, q: P, c: C\n"
                               "  O[k,p,q] = 0\n"
                               "  O[k,p,q] += I[c,2*p,2*q] * F[k,c]\n"
                               "}\n";
    static const struct binding hidden[] = {{"HIDDEN", 96}, {"L3_RATE", 32}, {"L2_RATE", 64}};
    struct compiled x;
    struct text explain = {0};
    compiled_open(&x, "machines/cpu-avx512.xml", NULL, &(struct bindings){hidden, 3, NULL}, text,
                  NULL, 0);
    compiled_by(&x, &plan_best, 1, &(struct scheduler_options){.explain = &explain});
    const char *plan = strstr(explain.at, "statement 1 on 'fma.bcast'");
    assert_non_null(plan);
    assert_non_null(strstr(plan, "  loop q step 1 unrolled\n  loop k step 16 unrolled\n"));
    text_free(&explain);
    compiled_free(&x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_take_over_registers), cmocka_unit_test(what_is_read_later_stays),
        cmocka_unit_test(sums_leave_seldom), cmocka_unit_test(what_passes_has_room)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
