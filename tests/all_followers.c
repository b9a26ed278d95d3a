/* Long chains of elementwise statements behind a product: what the machine holds decides where they
 * are cut, registers and slots of what is dead serve again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "tests/plan_run.h"

struct follow_case {
    const char *machine, *host; /* host NULL: none */
    const char *types[3];       /* of the factors, of all else, what turns a factor into that */
    const char *even, *odd;     /* statements: %d is the number of what the one before left */
    bool beside;                /* they read arrays of their own */
};

static const struct follow_case constants = {"machines/cpu-avx2.xml", NULL,
                                             {"f32", "f32", ""},      "T%d[i,j] * 0.9",
                                             "T%d[i,j] + 0.5",        false},
                                arrays = {"machines/cpu-avx2.xml", NULL,
                                          {"f32", "f32", ""},      "T%d[i,j] + V%d[i,j]",
                                          "T%d[i,j] * V%d[i,j]",   true},
                                first = {"machines/edge16.xml", "machines/cpu-avx2.xml",
                                         {"i8", "i32", "i32"},  "T%d[i,j] + T0[i,j]",
                                         "T%d[i,j] + T0[i,j]",  false},
                                numbers = {"machines/edge16.xml",  "machines/cpu-avx2.xml",
                                           {"i8", "i32", "i32"},   "T%d[i,j] + 7",
                                           "max(T%d[i,j], -4096)", false};

/* A product of n x n x n and its followers. */
static void chain_text(struct text *out, const struct follow_case *c, int followers, int n) {
    const char *to = c->types[1], *cast = c->types[2];
    text_printf(out, "kernel chain(M=%d, N=%d, K=%d) {\n  in A: %s[M, K]  in B: %s[K, N]\n", n, n,
                n, c->types[0], c->types[0]);
    for (int i = 0; i < followers; i++) text_printf(out, "  temp T%d: %s[M, N]\n", i, to);
    for (int i = 0; i < followers && c->beside; i++)
        text_printf(out, "  in V%d: %s[M, N]\n", i, to);
    text_printf(out, "  out T%d: %s[M, N]\n  axes i: M, j: N, k: K\n", followers, to);
    text_printf(out, "  T0[i,j] = 0\n  T0[i,j] += %s(A[i,k]) * %s(B[k,j])\n", cast, cast);
    for (int i = 0; i < followers; i++) {
        text_printf(out, "  T%d[i,j] = ", i + 1);
        text_printf(out, i % 2 ? c->odd : c->even, i, i);
        text_printf(out, "\n");
    }
    text_printf(out, "}\n");
}

static void chain_open(struct compiled *x, const struct follow_case *c, int followers, int n) {
    struct text text = {0};
    chain_text(&text, c, followers, n);
    compiled_open(x, c->machine, c->host, NULL, text.at, NULL, 0);
    compiled_by(x, &plan_best, 1, &(struct scheduler_options){0});
    text_free(&text);
}

/* Of a product of 64 x 64 x 64, with the host's work beside it; all on instructions, proved. */
static double chain_cycles(const struct follow_case *c, int followers) {
    struct verify_options whole = {0, 0};
    struct sim_options options = {0};
    struct sim_result result;
    struct compiled x;
    chain_open(&x, c, followers, 64);
    assert_true(schedule_verify(x.s, &whole, &x.diags));
    assert_true(sim_run(x.s, NULL, &options, &result, &x.diags));
    double cycles = result.cycles;
    if (x.s->host_rate > 0) cycles += result.host_cycles / x.s->host_rate;
    sim_result_free(&result);
    compiled_free(&x);
    return cycles;
}

/* Two vectors of eight in a cycle, whatever the number of statements: neither a store and a load
 * for each few of them, nor a chain so long that no second one has room in the queue's window. */
static void followers_take_their_issues(void **state) {
    static const int followers[] = {64, 65, 200};
    const struct follow_case *chain[] = {&constants, &arrays};
    (void)state;
    for (int c = 0; c < 2; c++) {
        double alone = chain_cycles(chain[c], 0);
        for (int i = 0; i < 3; i++) {
            double least = followers[i] * 64.0 * 64 / (8 * 2);
            assert_true(chain_cycles(chain[c], followers[i]) < alone + 1.05 * least);
        }
    }
}

/* Each statement brings 64 x 64 words of its own, 8 bytes in a cycle; were a slot kept for each of
 * them, tiles would be small and starting moves would take a quarter more. */
static void slots_serve_again(void **state) {
    (void)state;
    double few = chain_cycles(&first, 64), many = chain_cycles(&first, 200);

    assert_true((many - few) / (200 - 64) < 1.2 * 64 * 64 * 4 / 8);
}

/* Numbers are written once before the run: they do not cut the chain, whose statements are on the
 * host, into as many passes over the result. */
static void numbers_cut_no_chain(void **state) {
    (void)state;
    double alone = chain_cycles(&numbers, 0), clocks = 3.2e9 / 500e6,
           least = 64 * 64.0 * 64 / (8 * 2) / clocks;
    assert_true(chain_cycles(&numbers, 64) < alone + 1.5 * least);
}

static void values_are_right(void **state) {
    struct compiled x;
    (void)state;
    chain_open(&x, &constants, 65, 20);
    plan_values(&x, 1);
    compiled_free(&x);
    chain_open(&x, &arrays, 65, 20);
    plan_values(&x, 1);
    compiled_free(&x);
    chain_open(&x, &first, 64, 20);
    plan_values(&x, 0);
    compiled_free(&x);
    chain_open(&x, &numbers, 64, 20);
    plan_values(&x, 0);
    compiled_free(&x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(followers_take_their_issues), cmocka_unit_test(slots_serve_again),
        cmocka_unit_test(numbers_cut_no_chain), cmocka_unit_test(values_are_right)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
