/* Fills that stand a step before the instructions that use them: where an instructions' queue holds
 * less than a step, whole fills wait for nearly all of the step before. Values are the
 * interpreter's, and the loop is much shorter. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "approaches/approaches.h"
#include "tests/plan_run.h"

#define SHORT_QUEUES "tests/data/machines/ports/u573.xml", "machines/cpu-avx2.xml"
#define REGISTERS "tests/data/machines/ports/merlin.xml", "machines/cpu-avx2.xml"

#define ONE_MOVER_OF_SUMS "tests/data/machines/ports/wide.xml", "machines/cpu-avx2.xml"
#define ONE_MOVER_BEHIND_SUMS "tests/data/machines/schedule/linnet.xml", "machines/cpu-avx2.xml"
#define ONE_MOVER "tests/data/machines/ports/plover.xml", "machines/cpu-avx2.xml"

static const char product_text[] =
    "kernel gmm(M=70, N=61, K=100) {\n"
    "  in A: i8[M, K]  in B: i8[K, N]  out C: i32[M, N]  axes i: M, j: N, k: K\n"
    "  C[i,j] = 0\n  C[i,j] += i32(A[i,k]) * i32(B[k,j])\n}\n";

static const char bf16_text[] =
    "kernel gmm(M=70, N=61, K=100) {\n"
    "  in A: bf16[M, K]  in B: bf16[K, N]  out C: f32[M, N]  axes i: M, j: N, k: K\n"
    "  C[i,j] = 0\n  C[i,j] += f32(A[i,k]) * f32(B[k,j])\n}\n";

static const char f32_text[] =
    "kernel gmm(M=70, N=61, K=100) {\n"
    "  in A: f32[M, K]  in B: f32[K, N]  out C: f32[M, N]  axes i: M, j: N, k: K\n"
    "  C[i,j] = 0\n  C[i,j] += A[i,k] * B[k,j]\n}\n";

static const char *wanted; /* of the fills */
static bool had_it;

static int choose(void *s, const struct question *q) {
    for (int i = 0; i < q->ncandidates; i++)
        if (q->kind == QUESTION_PARTS && strcmp(q->candidate[i].text, wanted) == 0) {
            had_it = true;
            return i;
        }
    return plan_cheapest(s, q);
}

static const struct approach fills = {
    "fills", "as the test wants them", plan_open, free, choose, plan_stay, NULL, false};

static double cycles_free(struct compiled *x) {
    struct sim_options quick = {.no_values = true};
    struct sim_result result;
    plan_values(x, 0);
    assert_true(sim_run(x->s, NULL, &quick, &result, &x->diags));
    double cycles = result.cycles;
    sim_result_free(&result);
    compiled_free(x);
    return cycles;
}

static double cycles_of(const char *how, const struct binding *size, int n) {
    struct compiled x;
    wanted = how;
    had_it = false;
    compiled_open(&x, SHORT_QUEUES, NULL, product_text, size, n);
    compiled_by(&x, &fills, 1, NULL);
    assert_true(had_it);
    return cycles_free(&x);
}

/* With whole tiles, with a tail of the sums, with one of everything. */
static void a_step_ahead_is_shorter(void **state) {
    static const struct binding whole[] = {{"M", 56}, {"N", 60}, {"K", 96}},
                                tail[] = {{"M", 56}, {"N", 60}, {"K", 100}};
    (void)state;
    assert_true(cycles_of("a step ahead", whole, 3) < 0.8 * cycles_of("whole", whole, 3));
    assert_true(cycles_of("a step ahead", tail, 3) < 0.8 * cycles_of("whole", tail, 3));
    assert_true(cycles_of("a step ahead", NULL, 0) < 0.8 * cycles_of("whole", NULL, 0));
}

/* An outer copy from which registers are filled: 11,563 cycles where it is filled in its step. */
static void also_beside_registers(void **state) {
    static const struct binding size[] = {{"M", 128}, {"N", 64}, {"K", 512}};
    struct compiled x;
    (void)state;
    compiled_open(&x, REGISTERS, NULL, product_text, size, 3);
    compiled_by(&x, &approach_heuristic, 1, NULL);
    assert_true(cycles_free(&x) < 8000);
}

/* Results leave by the queue of the fills and take its tokens: within a result fills may still
 * stand a step ahead. 273,402 cycles where each is in its step. */
static void also_where_results_take_the_tokens(void **state) {
    static const struct binding size[] = {{"M", 128}, {"N", 96}, {"K", 128}};
    struct compiled x;
    (void)state;
    compiled_open(&x, ONE_MOVER, NULL, bf16_text, size, 3);
    compiled_by(&x, &approach_heuristic, 1, NULL);
    double predicted = schedule_cost(x.s, NULL), cycles = cycles_free(&x);
    assert_true(cycles < 190000);
    assert_true(predicted < 1.15 * cycles && cycles < 1.15 * predicted);
}

/* The next result's fills stand before this one's store, on the same queue, tails too. */
static void results_leave_behind_the_next_fills(void **state) {
    static const struct binding size[] = {{"M", 128}, {"N", 128}, {"K", 256}},
                                tails[] = {{"M", 130}, {"N", 136}, {"K", 250}};
    const struct {
        const char *machine, *host, *text;
        const struct binding *size;
        double limit; /* between the cycles without that and with it */
    } with[] = {
        {ONE_MOVER_OF_SUMS, product_text, size, 20000},  /* 20,961 and 19,018 */
        {ONE_MOVER_OF_SUMS, product_text, tails, 21500}, /* 22,417 and 20,428 */
        {ONE_MOVER_BEHIND_SUMS, f32_text, size, 48000},  /* 57,469 and 43,935 */
        {ONE_MOVER_BEHIND_SUMS, f32_text, tails, 64000}, /* 68,890 and 61,588 */
    };
    (void)state;
    for (size_t i = 0; i < sizeof with / sizeof *with; i++) {
        struct compiled x;
        compiled_open(&x, with[i].machine, with[i].host, NULL, with[i].text, with[i].size, 3);
        compiled_by(&x, &approach_heuristic, 1, NULL);
        double predicted = schedule_cost(x.s, NULL), cycles = cycles_free(&x);
        assert_true(cycles < with[i].limit);
        assert_true(predicted < 1.1 * cycles && cycles < 1.1 * predicted);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_step_ahead_is_shorter),
                                       cmocka_unit_test(also_beside_registers),
                                       cmocka_unit_test(also_where_results_take_the_tokens),
                                       cmocka_unit_test(results_leave_behind_the_next_fills)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
