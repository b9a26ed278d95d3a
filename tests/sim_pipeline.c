/* A matrix engine with decoupled queues: layers of ResNet-18, quantised, run within two percent of
 * what their MACs and requantisation take (the short ones within ten), as predicted; the same
 * layers at reduced extents are verified whole and give the interpreter's values. */
#include "tests/scheduler_plan.h"
#include "sim/sim.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

static const char conv[] =
    "kernel conv(C=64, H=56, K=64, R=3, T=1, D=1, P=56) {\n"
    "  in I: i8[1, C, H, H]  const F: i8[K, C, R, R]  out O: i8[1, K, P, P]  temp a: i32[1, K, P, "
    "P]\n"
    "  axes n: 1, k: K, p: P, q: P, c: C, r: R, s: R\n"
    "  a[n,k,p,q]  = 0\n"
    "  a[n,k,p,q] += i32(I[n,c,T*p+r-D,T*q+s-D else 0]) * i32(F[k,c,r,s])\n"
    "  O[n,k,p,q] = i8(clip(round(f64(a[n,k,p,q]) * 0.0078125), -128, 127))\n"
    "}\n";
static const char gemm[] = "kernel gemm(M=512, N=512, K=512) {\n"
                           "  in A: i8[M, K]  const B: i8[K, N]  out C: i32[M, N]\n"
                           "  axes i: M, j: N, k: K\n"
                           "  C[i,j] = 0\n"
                           "  C[i,j] += i32(A[i,k]) * i32(B[k,j])\n"
                           "}\n";

static void make(struct compiled *x, const char *machine, const char *text,
                 const struct binding *size, int n) {
    compiled_open(x, machine, "cpu-scalar", NULL, text, size, n);
    compiled_by(x, &plan_best, 0, NULL);
}

static double cycles_of(struct compiled *x) {
    struct sim_options options = {.no_values = true};
    struct sim_result r;
    bool ran = sim_run(x->s, NULL, &options, &r, &x->diags);
    diags_print(&x->diags, stderr);
    assert_true(ran);
    double cycles = r.cycles;
    sim_result_free(&r);
    return cycles;
}

/* Of the instructions' queue: 256 MACs a cycle, 16 results a cycle requantised. The port needs less
 * for all of them. */
static void layers_have_no_bubbles(void **state) {
    static const struct {
        const char *name;
        int64_t C, H, K, R, T, P;
        double share;
    } layer[] = {{"c02", 64, 56, 64, 3, 1, 56, 0.98},   {"c05", 64, 56, 128, 1, 2, 28, 0.9},
                 {"c06", 128, 28, 128, 3, 1, 28, 0.98}, {"c08", 128, 28, 256, 1, 2, 14, 0.9},
                 {"c09", 256, 14, 256, 3, 1, 14, 0.98}, {"c11", 256, 14, 512, 1, 2, 7, 0.9},
                 {"c12", 512, 7, 512, 3, 1, 7, 0.98}};
    (void)state;
    for (size_t k = 0; k < sizeof layer / sizeof *layer; k++) {
        struct binding size[] = {{"C", layer[k].C}, {"H", layer[k].H}, {"K", layer[k].K},
                                 {"R", layer[k].R}, {"T", layer[k].T}, {"D", layer[k].R / 2},
                                 {"P", layer[k].P}};
        struct compiled x;
        make(&x, "edge16", conv, size, 7);
        double results = (double)(layer[k].K * layer[k].P * layer[k].P),
               bound =
                   results * (double)(layer[k].C * layer[k].R * layer[k].R) / 256 + results / 16,
               cycles = cycles_of(&x);
        if (bound / cycles < layer[k].share || fabs(x.s->cost / cycles - 1) > 0.03 ||
            schedule_nodes(x.s) > 60)
            fail_msg("%s: %.0f cycles, predicted %.0f, %.4f of the bound, %lld nodes",
                     layer[k].name, cycles, x.s->cost, bound / cycles,
                     (long long)schedule_nodes(x.s));
        compiled_free(&x);
    }
}

/* Loads and stores on one bus. */
static void stores_do_not_stall_loads(void **state) {
    struct compiled x;
    (void)state;
    make(&x, "edge16", gemm, NULL, 0);
    double cycles = cycles_of(&x);
    if (524288 / cycles < 0.95 || fabs(x.s->cost / cycles - 1) > 0.03)
        fail_msg("%.0f cycles, predicted %.0f", cycles, x.s->cost);
    compiled_free(&x);
}

/* The question how fills are cut gets the last answer, all others the best. */
static int cut_most(void *s, const struct question *q) {
    if (q->kind != QUESTION_PARTS) return plan_cheapest(s, q);
    assert_true(q->ncandidates >= 2);
    return q->ncandidates - 1;
}

static const struct approach plan_cut = {
    "cut", "fills in many parts", plan_open, free, cut_most, plan_stay, NULL, false};

/* A store whose time depends on what it is given. */
static void stores_are_priced_by_their_size(void **state) {
    struct binding size[] = {{"C", 64}, {"H", 14}, {"K", 64}, {"R", 3},
                             {"T", 1},  {"D", 1},  {"P", 14}};
    struct compiled x;
    (void)state;
    make(&x, "tests/data/machines/sim/edge-slow.xml", conv, size, 7);
    double cycles = cycles_of(&x);
    if (fabs(x.s->cost / cycles - 1) > 0.03)
        fail_msg("%.0f cycles, predicted %.0f", cycles, x.s->cost);
    compiled_free(&x);
}

static void check(const struct binding *size, const struct approach *approach, uint64_t seed) {
    static const struct binding small[] = {{"SPAD", 16384}};
    struct bindings param = {small, 1, NULL};
    struct verify_options verify = {0};
    struct sim_options options = {0};
    struct sim_result r;
    struct compiled x;
    compiled_open(&x, "edge16", "cpu-scalar", &param, conv, size, 7);
    compiled_by(&x, approach, seed, NULL);
    bool good = schedule_verify(x.s, &verify, &x.diags);
    diags_print(&x.diags, stderr);
    assert_true(good);
    void **a = plan_data(x.p), **b = plan_data(x.s->program);
    assert_true(program_run(x.p, a, NULL, NULL, &x.diags));
    assert_true(sim_run(x.s, b, &options, &r, &x.diags));
    assert_int_equal(plan_differ(x.p, a, x.s->program, b), 0);
    sim_result_free(&r);
    plan_data_free(x.p, a);
    plan_data_free(x.s->program, b);
    compiled_free(&x);
}

/* Tails everywhere: of rows, of blocks of 16 channels, of tiles. */
static void small_layers_are_right(void **state) {
    static const int64_t layer[][6] = {/* C, H, K, R, T, P */
                                       {32, 11, 32, 3, 1, 11},
                                       {20, 9, 24, 3, 1, 9},
                                       {48, 7, 32, 3, 1, 7},
                                       {32, 14, 48, 1, 2, 7},
                                       {33, 9, 17, 3, 2, 5}};
    (void)state;
    for (size_t k = 0; k < sizeof layer / sizeof *layer; k++) {
        const int64_t *l = layer[k];
        struct binding size[] = {{"C", l[0]}, {"H", l[1]},     {"K", l[2]}, {"R", l[3]},
                                 {"T", l[4]}, {"D", l[3] / 2}, {"P", l[5]}};
        check(size, &plan_best, 0);
        check(size, &plan_cut, 0);
        for (uint64_t seed = 1; seed <= 1; seed++) check(size, &plan_any, seed);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(layers_have_no_bubbles),
                                       cmocka_unit_test(stores_do_not_stall_loads),
                                       cmocka_unit_test(stores_are_priced_by_their_size),
                                       cmocka_unit_test(small_layers_are_right)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
