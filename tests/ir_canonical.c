/* The canonical form and its hash: what must not change them, and what must. */
#include "tests/ir_support.h"

static uint64_t hash_of(const char *text) {
    struct trial t;
    trial_open(&t);
    trial_parse(&t, "text", text);
    if (t.nkernels != 1 || !trial_bind(&t, "", "")) {
        diags_print(&t.diags, stderr);
        fail_msg("does not bind: %s", text);
    }
    uint64_t h = program_hash(t.p);
    struct program *c = program_canonical(t.p);
    if (!program_verify(c, &t.diags)) {
        diags_print(&t.diags, stderr);
        fail_msg("the canonical form of %s is wrong", text);
    }
    struct program *cc = program_canonical(c);
    assert_true(program_equal(c, cc));
    assert_true(program_hash(c) == h);
    program_free(cc);
    program_free(c);
    trial_close(&t);
    return h;
}

static const char *const matmul =
    "kernel a() { in A: f32[6, 8]  in B: f32[8, 10]  out C: f32[6, 10]  axes i: 6, j: 10, k: 8\n"
    "  C[i,j] = 0\n  C[i,j] += A[i,k] * B[k,j] }";

static void test_the_same(void **state) {
    (void)state;
    static const char *const same[] = {
        /* names */
        "kernel b() { in X: f32[6, 8]  in Y: f32[8, 10]  out Z: f32[6, 10]  axes m: 6, n: 10, o: "
        "8\n"
        "  Z[m,n] = 0\n  Z[m,n] += X[m,o] * Y[o,n] }",
        /* order of declarations, sides of the product */
        "kernel b() { out C: f32[6, 10]  in B: f32[8, 10]  in A: f32[6, 8]  axes k: 8, j: 10, i: "
        "6\n"
        "  C[i,j] = 0\n  C[i,j] += B[k,j] * A[i,k] }",
        /* unit axes */
        "kernel b() { in A: f32[6, 8]  in B: f32[8, 10]  out C: f32[6, 10]  axes i: 6, u: 1, j: "
        "10, k: 8\n"
        "  C[i,j] = 0\n  C[i+u,j] += A[i,k+u] * B[k,j+3*u] }",
        /* axes split */
        "kernel b() { in A: f32[6, 8]  in B: f32[8, 10]  out C: f32[6, 10]\n"
        "  axes i: 6, j0: 5, j1: 2, k0: 2, k1: 2, k2: 2\n"
        "  C[i,2*j0+j1] = 0\n"
        "  C[i,2*j0+j1] += A[i,4*k0+2*k1+k2] * B[4*k0+2*k1+k2,2*j0+j1] }",
        /* a constraint that says nothing */
        "kernel b() { in A: f32[6, 8]  in B: f32[8, 10]  out C: f32[6, 10]  axes i: 6, j: 10, k: "
        "8\n"
        "  C[i,j] = 0\n  C[i,j] += A[i,k] * B[k,j] where 1 <= 2 }",
    };
    uint64_t h = hash_of(matmul);
    for (size_t k = 0; k < sizeof same / sizeof *same; k++)
        if (hash_of(same[k]) != h) fail_msg("not the same: %s", same[k]);
}

static void test_not_the_same(void **state) {
    (void)state;
    static const char *const other[] = {
        "kernel a() { in A: f32[6, 8]  in B: f32[8, 12]  out C: f32[6, 12]  axes i: 6, j: 12, k: "
        "8\n"
        "  C[i,j] = 0\n  C[i,j] += A[i,k] * B[k,j] }",
        "kernel a() { in A: f64[6, 8]  in B: f64[8, 10]  out C: f64[6, 10]  axes i: 6, j: 10, k: "
        "8\n"
        "  C[i,j] = 0\n  C[i,j] += A[i,k] * B[k,j] }",
        "kernel a() { const A: f32[6, 8]  in B: f32[8, 10]  out C: f32[6, 10]  axes i: 6, j: 10, "
        "k: 8\n"
        "  C[i,j] = 0\n  C[i,j] += A[i,k] * B[k,j] }",
        "kernel a() { in A: f32[6, 8]  in B: f32[8, 10]  out C: f32[6, 10]  axes i: 6, j: 10, k: "
        "8\n"
        "  C[i,j] = 1\n  C[i,j] += A[i,k] * B[k,j] }",
        "kernel a() { in A: f32[6, 8]  in B: f32[8, 10]  out C: f32[6, 10]  axes i: 6, j: 10, k: "
        "8\n"
        "  C[i,j] = 0\n  C[i,j] max= A[i,k] * B[k,j] }",
        "kernel a() { in A: f32[6, 8]  in B: f32[8, 10]  out C: f32[6, 10]  axes i: 6, j: 10, k: "
        "8\n"
        "  C[i,j] = 0\n  C[i,j] += A[i,k] - B[k,j] }",
        "kernel a() { in A: f32[6, 8]  in B: f32[8, 10]  out C: f32[6, 10]  axes i: 6, j: 10, k: "
        "8\n"
        "  C[i,j] = 0\n  C[i,j] += B[k,j] - A[i,k] }",
        "kernel a() { in A: f32[6, 8]  in B: f32[8, 10]  out C: f32[6, 10]  axes i: 6, j: 10, k: "
        "8\n"
        "  C[i,j] = 0\n  C[i,j] += A[i,7-k] * B[k,j] }",
        "kernel a() { in A: f32[6, 8]  in B: f32[8, 10]  out C: f32[6, 10]  axes i: 6, j: 10, k: "
        "8\n"
        "  C[i,j] = 0\n  C[i,j] += A[i,k] * B[k,j] where k <= i }",
        "kernel a() { in A: f32[6, 8]  in B: f32[8, 10]  out C: f32[6, 10]  axes i: 6, j: 10\n seq "
        "k: 8\n"
        "  C[i,j] = 0\n  C[i,j] += A[i,k] * B[k,j] }",
        "kernel a() { in A: f32[6, 8]  in B: f32[8, 10]  out C: f32[6, 10]  axes i: 6, j: 10, k: "
        "8\n"
        "  C[i,j] = 0\n  C[i,j] += A[i,k+1 else 0] * B[k,j] }",
        "kernel a() { in A: f32[6, 8]  in B: f32[8, 10]  out C: f32[6, 10]  axes i: 6, j: 10, k: "
        "8\n"
        "  C[i,j] = 0\n  C[i,j] += A[i,k+1 else 2] * B[k,j] }",
    };
    enum { N = sizeof other / sizeof *other };
    uint64_t h[N + 1];
    h[N] = hash_of(matmul);
    for (int k = 0; k < N; k++) h[k] = hash_of(other[k]);
    for (int a = 0; a <= N; a++)
        for (int b = 0; b < a; b++)
            if (h[a] == h[b]) fail_msg("%d and %d have one hash", a, b);
}

/* Operands that look alike until their use elsewhere tells them apart. */
static void test_refinement(void **state) {
    (void)state;
    uint64_t a =
        hash_of("kernel a() { in A: f32[4, 4]  in B: f32[4, 4]  out C: f32[4, 4]  out D: f32[4]\n"
                "  axes i: 4, j: 4\n  C[i,j] = A[i,j] * B[j,i]\n  D[i] = A[i,i] }");
    uint64_t b =
        hash_of("kernel a() { in B: f32[4, 4]  in A: f32[4, 4]  out C: f32[4, 4]  out D: f32[4]\n"
                "  axes j: 4, i: 4\n  C[i,j] = B[i,j] * A[j,i]\n  D[i] = B[i,i] }");
    uint64_t c =
        hash_of("kernel a() { in A: f32[4, 4]  in B: f32[4, 4]  out C: f32[4, 4]  out D: f32[4]\n"
                "  axes i: 4, j: 4\n  C[i,j] = A[i,j] * B[j,i]\n  D[i] = B[i,i] }");
    assert_true(a == b);
    assert_true(a != c);
}

/* A round tells an axis from another by what stands beside it, so what lies further off takes as
 * many rounds: of the pairs that follow each other through inner axes only the ends differ at
 * first. */
static void test_rounds(void **state) {
    (void)state;
    uint64_t h =
        hash_of("kernel a() { in A: f32[8, 8]  in B: f32[8, 8]  in C: f32[8, 8]  in D: f32[8, 8]\n"
                "  out E: f32[8, 8]  axes i: 8, j: 8, k: 8, l: 8, m: 8\n"
                "  E[i,j] = 0\n  E[i,j] += (A[i,k] * B[k,l]) * (C[l,m] * D[m,j]) }");
    assert_true(h ==
                hash_of("kernel a() { in D: f32[8, 8]  in C: f32[8, 8]  in B: f32[8, 8]\n"
                        "  in A: f32[8, 8]  out E: f32[8, 8]  axes m: 8, l: 8, k: 8, j: 8, i: 8\n"
                        "  E[i,j] = 0\n  E[i,j] += (D[m,j] * C[l,m]) * (B[k,l] * A[i,k]) }"));
    assert_true(h ==
                hash_of("kernel a() { in B: f32[8, 8]  in D: f32[8, 8]  in A: f32[8, 8]\n"
                        "  in C: f32[8, 8]  out E: f32[8, 8]  axes l: 8, i: 8, m: 8, k: 8, j: 8\n"
                        "  E[i,j] = 0\n  E[i,j] += (B[k,l] * A[i,k]) * (C[l,m] * D[m,j]) }"));
    assert_true(h !=
                hash_of("kernel a() { in A: f32[8, 8]  in B: f32[8, 8]  in C: f32[8, 8]\n"
                        "  in D: f32[8, 8]  out E: f32[8, 8]  axes i: 8, j: 8, k: 8, l: 8, m: 8\n"
                        "  E[i,j] = 0\n  E[i,j] += (A[i,k] * B[l,k]) * (C[l,m] * D[m,j]) }"));
}

static void test_recurrences_and_calls(void **state) {
    (void)state;
    uint64_t a = hash_of("kernel a() { in x: f32[4]  out y: f32[4]  axes i: 4\n"
                         "  recur t: 3 state h: f32[4] from x to y { h'[i] = h[i] + 1 } }");
    uint64_t b = hash_of("kernel b() { out q: f32[4]  in z: f32[4]  axes n: 4\n"
                         "  recur u: 3 state g: f32[4] from z to q { g'[n] = 1 + g[n] } }");
    uint64_t c = hash_of("kernel a() { in x: f32[4]  out y: f32[4]  axes i: 4\n"
                         "  recur t: 3 reverse state h: f32[4] from x to y { h'[i] = h[i] + 1 } }");
    uint64_t d = hash_of("kernel a() { in x: f32[4]  out y: f32[4]\n call f(x) -> (y) }");
    uint64_t e = hash_of("kernel a() { in x: f32[4]  out y: f32[4]\n call g(x) -> (y) }");
    assert_true(a == b);
    assert_true(a != c);
    assert_true(d != e);
}

/* The canonical form computes the same. */
static void check_meaning(const char *path, const char *sizes) {
    struct trial t;
    trial_file(&t, path, sizes, "");
    struct program *c = program_canonical(t.p);
    void *data[MOST_BUFFERS] = {0};
    for (int b = 0; b < c->nbuffers; b++) {
        int from = buffer_of(&t, c->buffer[b].name);
        size_t bytes = (size_t)c->buffer[b].elements * type_size(c->buffer[b].type);
        if (!t.data[from]) continue;
        data[b] = calloc(1, bytes + 1);
        for (int64_t k = 0; k < c->buffer[b].elements; k++) {
            union value v = {.f = t.before[from][k]};
            if (!type_is_float(c->buffer[b].type)) v.i = (int64_t)t.before[from][k];
            type_store(c->buffer[b].type,
                       (char *)data[b] + (size_t)k * type_size(c->buffer[b].type), v);
        }
    }
    assert_true(program_run(c, data, NULL, NULL, &t.diags));
    for (int b = 0; b < c->nbuffers; b++) {
        int from = buffer_of(&t, c->buffer[b].name);
        double *got = data[b] ? as_doubles(&c->buffer[b], data[b]) : NULL;
        for (int64_t k = 0; got && k < c->buffer[b].elements; k++)
            if (fabs(got[k] - t.after[from][k]) > 1e-5 * (1 + fabs(got[k])))
                fail_msg("%s: %s[%lld]", path, c->buffer[b].name, (long long)k);
        free(got);
        free(data[b]);
    }
    program_free(c);
    trial_close(&t);
}

static void test_meaning(void **state) {
    (void)state;
    check_meaning(SOURCE_DIR "/examples/operators/c2d.isam", "N=1 C=3 K=2 P=4 Q=3 R=3 S=1");
    check_meaning(SOURCE_DIR "/examples/operators/att.isam", "B=2 T=5 D=3");
    check_meaning(SOURCE_DIR "/examples/operators/layernorm.isam", "M=3 N=7");
    check_meaning(SOURCE_DIR "/examples/operators/scn.isam", "M=3 N=7");
    check_meaning(SOURCE_DIR "/examples/operators/t2d.isam", "N=1 C=3 K=2 P=3 Q=4 R=3 S=3");
    check_meaning(SOURCE_DIR "/examples/f32/rnn.isam", "T=3 H=4");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_same),
        cmocka_unit_test(test_not_the_same),
        cmocka_unit_test(test_refinement),
        cmocka_unit_test(test_rounds),
        cmocka_unit_test(test_recurrences_and_calls),
        cmocka_unit_test(test_meaning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
