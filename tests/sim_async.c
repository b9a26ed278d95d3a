/* Machines with asynchronous units: fragments over lanes, copies that complete at a sync, groups,
 * fences, grids of blocks. Schedules are verified whole and give the interpreter's values. */
#include "tests/scheduler_plan.h"
#include "sim/sim.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#define HOPPER "machines/sm90.xml"
#define LANES "tests/data/machines/schedule/warps.xml"

static const char rows[] = "kernel gmm(M, N, K) {\n"
                           "  in A: bf16[M, K]  in B: bf16[N, K]  out C: f32[M, N]\n"
                           "  axes i: M, j: N, k: K\n"
                           "  C[i,j] = 0\n"
                           "  C[i,j] += f32(A[i,k]) * f32(B[j,k])\n}\n";
static const char plain[] = "kernel gmm(M, N, K) {\n"
                            "  in A: bf16[M, K]  in B: bf16[K, N]  out C: f32[M, N]\n"
                            "  axes i: M, j: N, k: K\n"
                            "  C[i,j] = 0\n"
                            "  C[i,j] += f32(A[i,k]) * f32(B[k,j])\n}\n";
static const char narrow[] = "kernel gmm(M, N, K) {\n"
                             "  in A: bf16[M, K]  in B: bf16[N, K]  out D: bf16[M, N]\n"
                             "  temp C: f32[M, N]\n"
                             "  axes i: M, j: N, k: K\n"
                             "  C[i,j] = 0\n"
                             "  C[i,j] += f32(A[i,k]) * f32(B[j,k])\n"
                             "  D[i,j] = bf16(C[i,j])\n}\n";
static const char bytes[] = "kernel gmm(M, N, K) {\n"
                            "  in A: i8[M, K]  in B: i8[N, K]  out C: i32[M, N]\n"
                            "  axes i: M, j: N, k: K\n"
                            "  C[i,j] = 0\n"
                            "  C[i,j] += i32(A[i,k]) * i32(B[j,k])\n}\n";

static void make(struct compiled *x, const char *machine, const char *text, int64_t m, int64_t n,
                 int64_t k) {
    struct binding b[3] = {{"M", m}, {"N", n}, {"K", k}};
    compiled_open(x, machine, NULL, NULL, text, b, 3);
    compiled_by(x, &plan_best, 1, NULL);
}

/* Returns the share of the machine's peak that is reached. */
static double check(struct compiled *x) {
    struct verify_options whole = {0};
    bool good = schedule_verify(x->s, &whole, &x->diags);
    diags_print(&x->diags, stderr);
    assert_true(good);
    void **a = plan_data(x->p), **b = plan_data(x->s->program);
    struct sim_options options = {0};
    struct sim_result r;
    assert_true(program_run(x->p, a, NULL, NULL, &x->diags));
    assert_true(sim_run(x->s, b, &options, &r, &x->diags));
    assert_int_equal(plan_differ(x->p, a, x->s->program, b), 0);
    double share = r.utilisation;
    assert_int_equal(r.macs_on[x->m->ninstrs], 0); /* none on the fallback */
    sim_result_free(&r);
    plan_data_free(x->p, a);
    plan_data_free(x->s->program, b);
    return share;
}

static bool says(struct compiled *x, const char *what) {
    struct text t = {0};
    schedule_print(x->s, &t);
    bool found = strstr(t.at, what) != NULL;
    if (!found) print_error("'%s' is not in\n%s", what, t.at);
    text_free(&t);
    return found;
}

static void run_case(const char *machine, const char *text, int64_t m, int64_t n, int64_t k) {
    struct compiled x;
    make(&x, machine, text, m, n, k);
    check(&x);
    compiled_free(&x);
}

/* Whole tiles: blocks of a grid, a channel for each slot, groups for completion, a fence before
 * accumulators are used again. */
static void test_sm90(void **state) {
    (void)state;
    struct compiled x;
    make(&x, HOPPER, rows, 128, 256, 192);
    check(&x);
    assert_true(says(&x, "parallel cluster"));
    assert_true(says(&x, "parallel block"));
    assert_true(says(&x, "push full"));
    assert_true(says(&x, " pop wg"));
    assert_true(says(&x, "pop wgfence"));
    assert_true(says(&x, "st.m64n"));
    compiled_free(&x);
}

/* Many steps along the reduction: slots turn, and channels with them. */
static void test_steps(void **state) {
    (void)state;
    struct compiled x;
    make(&x, LANES, bytes, 16, 16, 1024);
    check(&x);
    assert_true(says(&x, "pop empty[A.smem"));
    assert_true(says(&x, "push full[A.smem"));
    compiled_free(&x);
}

static void test_shapes(void **state) {
    (void)state;
    run_case(HOPPER, plain, 64, 64, 64);   /* the second operand is turned by a copy */
    run_case(HOPPER, rows, 100, 72, 80);   /* tails of rows and columns; the reduction is padded */
    run_case(HOPPER, narrow, 64, 128, 64); /* a narrower result */
    run_case(LANES, bytes, 40, 24, 96);
    run_case(LANES, bytes, 41, 19, 33);
    run_case(LANES, bytes, 96, 96, 32); /* more tiles than blocks of a grid: several turns each */
}

/* Nothing grows with the problem. */
static void test_size(void **state) {
    (void)state;
    struct compiled small, large;
    make(&small, HOPPER, rows, 2048, 2048, 2048);
    make(&large, HOPPER, rows, 8192, 8192, 8192);
    assert_int_equal(schedule_nodes(small.s), schedule_nodes(large.s));
    assert_true(schedule_nodes(large.s) <= 60);
    struct sim_options options = {.no_values = true};
    struct sim_result r;
    compiled_free(&large);
    make(&large, HOPPER, rows, 1024, 2048, 1024);
    assert_true(sim_run(large.s, NULL, &options, &r, &large.diags));
    assert_true(r.utilisation > 0.5);
    sim_result_free(&r);
    compiled_free(&small);
    compiled_free(&large);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sm90), cmocka_unit_test(test_steps),
                                       cmocka_unit_test(test_shapes), cmocka_unit_test(test_size)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
