/* What a reduction starts with comes by a move from home, straight to where the sums are: a row of
 * biases that repeats. A ReLU beside the requantisation is the store's bound. Layers in a row leave
 * the host nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "tests/plan_run.h"

#define VDLA "machines/vdla.xml", "machines/cpu-avx2.xml"

static const char layer_text[] =
    "kernel layer(C=32, H=9, K=48, R=3) {\n"
    "  in I: i8[C, H, H]  const F: i8[K, C, R, R]  const B: i32[K]  out O: i8[K, H, H]\n"
    "  temp A: i32[K, H, H]\n"
    "  axes k: K, p: H, q: H, c: C, r: R, s: R\n"
    "  A[k,p,q]  = B[k]\n"
    "  A[k,p,q] += i32(I[c,p+r-1,q+s-1 else 0]) * i32(F[k,c,r,s])\n"
    "  O[k,p,q]  = i8(clip(round(f64(max(A[k,p,q], 0)) * 0.0625), -128, 127))\n"
    "}\n";
static const char two_text[] =
    "kernel two(C=16, H=8, K=32) {\n"
    "  in I: i8[C, H, H]  const F: i8[K, C, 3, 3]  const G: i8[C, K, 3, 3]  const B: i32[K]  const "
    "D: i32[C]\n"
    "  out O: i8[C, H, H]\n"
    "  temp A: i32[K, H, H]  temp X: i8[K, H, H]  temp E: i32[C, H, H]\n"
    "  axes k: K, p: H, q: H, c: C, r: 3, s: 3\n"
    "  A[k,p,q]  = B[k]\n"
    "  A[k,p,q] += i32(I[c,p+r-1,q+s-1 else 0]) * i32(F[k,c,r,s])\n"
    "  X[k,p,q]  = max(i8(clip(round(f64(A[k,p,q]) * 0.0625), -128, 127)), 0)\n"
    "  E[c,p,q]  = D[c]\n"
    "  E[c,p,q] += i32(X[k,p+r-1,q+s-1 else 0]) * i32(G[c,k,r,s])\n"
    "  O[c,p,q]  = i8(clip(round(f64(E[c,p,q]) * 0.0625), -128, 127))\n"
    "}\n";

/* What is added to the sums comes beside them, and all is done before they leave. */
static const char block_text[] =
    "kernel block(C=32, H=9) {\n"
    "  in I: i8[C, H, H]  const F: i8[C, C, 3, 3]  const B: i32[C]  out O: i8[C, H, H]\n"
    "  temp A: i32[C, H, H]  temp T: i32[C, H, H]  temp Z: i32[C, H, H]  temp Y: i32[C, H, H]\n"
    "  axes k: C, p: H, q: H, c: C, r: 3, s: 3\n"
    "  A[k,p,q]  = B[k]\n"
    "  A[k,p,q] += i32(I[c,p+r-1,q+s-1 else 0]) * i32(F[k,c,r,s])\n"
    "  T[k,p,q]  = shr(A[k,p,q], 6)\n"
    "  Z[k,p,q]  = i32(I[k,p,q])\n"
    "  Y[k,p,q]  = T[k,p,q] + Z[k,p,q]\n"
    "  O[k,p,q]  = i8(clip(round(f64(max(Y[k,p,q], 0)) * 0.5), -128, 127))\n"
    "}\n";

/* Others read the bias before it is a sum; then it is a statement of its own. */
static const char shared_text[] =
    "kernel shared(C=32, M=20, K=48) {\n"
    "  in I: i8[M, C]  const F: i8[K, C]  const B: i32[K]  out O: i32[M, K]  out P: i32[M, K]\n"
    "  temp A: i32[M, K]\n"
    "  axes m: M, k: K, c: C\n"
    "  A[m,k]  = B[k]\n"
    "  P[m,k]  = A[m,k]\n"
    "  A[m,k] += i32(I[m,c]) * i32(F[k,c])\n"
    "  O[m,k]  = A[m,k]\n"
    "}\n";

struct seen {
    int moves, host; /* issues of this move; statements of the host in `run` */
};

static void walk(const struct schedule *s, const struct node *n, int count, const char *id,
                 struct seen *x) {
    for (int i = 0; i < count; i++) {
        if (n[i].kind == NODE_LOOP) walk(s, n[i].loop->body, n[i].loop->nbody, id, x);
        if (n[i].kind == NODE_ISSUE && !strcmp(s->machine->instr[n[i].issue->instr].id, id))
            x->moves++;
        x->host += n[i].kind == NODE_FALLBACK;
    }
}

static struct seen look_on(const char *machine, const char *host, const char *text,
                           const struct binding *size, int n, const char *id) {
    struct compiled x;
    struct seen seen = {0};
    struct verify_options whole = {0, 0};
    compiled_open(&x, machine, host, NULL, text, size, n);
    compiled_by(&x, &plan_best, 1, &(struct scheduler_options){0});
    assert_true(schedule_verify(x.s, &whole, &x.diags));
    plan_values(&x, 0);
    walk(x.s, x.s->run.node, x.s->run.nnodes, id, &seen);
    compiled_free(&x);
    return seen;
}

static struct seen look(const char *text, const struct binding *size, int n, const char *id) {
    return look_on(VDLA, text, size, n, id);
}

static void biases_start_the_sums(void **state) {
    static const struct binding odd[] = {{"H", 7}, {"C", 20}};
    (void)state;
    struct seen seen = look(layer_text, NULL, 0, "ld.row");
    assert_true(seen.moves > 0);
    assert_int_equal(look(layer_text, NULL, 0, "ld.acc").moves,
                     0); /* nor do sums ever come from home */
    assert_int_equal(look(layer_text, NULL, 0, "st.acc").moves, 0);
    assert_true(look(layer_text, odd, 2, "ld.row").moves > 0);
    assert_int_equal(seen.host, 2); /* the input in, the output out */
}

static void not_where_others_read_them(void **state) {
    (void)state;
    assert_true(look(shared_text, NULL, 0, "st.acc").moves +
                    look(shared_text, NULL, 0, "ld.acc").moves >
                0);
}

static void layers_in_a_row_stay_on_the_device(void **state) {
    (void)state;
    assert_int_equal(look(two_text, NULL, 0, "st").host, 2);
}

static void residuals_are_added_where_the_sums_are(void **state) {
    static const struct binding other[] = {{"H", 12}, {"C", 48}}, odd[] = {{"H", 7}, {"C", 20}};
    (void)state;
    struct seen add = look(block_text, NULL, 0, "alu.add");
    assert_int_equal(add.moves, 1); /* the machine's loops do the rest */
    assert_int_equal(add.host, 3);  /* the input in, padded and not; the output out */
    assert_int_equal(look(block_text, NULL, 0, "st.acc").moves, 0);
    assert_int_equal(look(block_text, NULL, 0, "ld.acc").moves, 0);
    assert_true(look(block_text, other, 2, "ld.acc8").moves > 0);
    look(block_text, odd, 2, "st");
}

/* Sums that `n` statements change one after the other before they are narrowed. */
static void changes_text(struct text *t, int n) {
    text_printf(t, "kernel changes(M=32, C=32) {\n"
                   "  in I: i8[M, C]  const F: i8[C, C]  out O: i8[M, C]  temp T0: i32[M, C]\n");
    for (int i = 1; i <= n; i++) text_printf(t, "  temp T%d: i32[M, C]\n", i);
    text_printf(t, "  axes m: M, k: C, c: C\n"
                   "  T0[m,k]  = 0\n"
                   "  T0[m,k] += i32(I[m,c]) * i32(F[k,c])\n");
    for (int i = 1; i <= n; i++)
        text_printf(t, i % 2 ? "  T%d[m,k] = T%d[m,k] + %d\n" : "  T%d[m,k] = max(T%d[m,k], -%d)\n",
                    i, i - 1, 900 + i);
    text_printf(t, "  O[m,k] = i8(clip(round(f64(T%d[m,k]) * 0.0625), -128, 127))\n}\n", n);
}

/* However many they are, the sums do not go home between. */
static void many_changes_are_made_where_the_sums_are(void **state) {
    static const int counts[] = {2, 16, 17, 40};
    (void)state;
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
        struct text t = {0};
        changes_text(&t, counts[k]);
        struct seen adds = look_on("machines/vdla.xml", "machines/cpu-scalar.xml", t.at, NULL, 0,
                                   "alu.add.imm"),
                    home = look_on("machines/vdla.xml", "machines/cpu-scalar.xml", t.at, NULL, 0,
                                   "ld.acc");
        assert_int_equal(adds.moves, (counts[k] + 1) / 2); /* the machine's loops do the rest */
        assert_int_equal(home.moves, 0);
        text_free(&t);
    }
}

/* A file that includes both says what joining them makes. */
static void a_board_is_the_two_joined(void **state) {
    (void)state;
    struct seen joined = look(block_text, NULL, 0, "gemm"),
                board = look_on("machines/vdla-board.xml", NULL, block_text, NULL, 0, "gemm");
    assert_true(joined.moves > 0);
    assert_int_equal(joined.moves, board.moves);
    assert_int_equal(joined.host, board.host);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(biases_start_the_sums),
                                       cmocka_unit_test(not_where_others_read_them),
                                       cmocka_unit_test(layers_in_a_row_stay_on_the_device),
                                       cmocka_unit_test(residuals_are_added_where_the_sums_are),
                                       cmocka_unit_test(many_changes_are_made_where_the_sums_are),
                                       cmocka_unit_test(a_board_is_the_two_joined)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
