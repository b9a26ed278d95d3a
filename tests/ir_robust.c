/* Damaged kernels: every truncation, and bit flips with a fixed seed, are refused or make a program
 * that passes its verifier, is printed and has a hash; nothing else may happen. ISAMAP_FLIPS sets
 * another number of flips. */
#include "tests/ir_support.h"

static const char *const kernels[] = {
    "kernel conv2d(N=1, C=4, K=5, H=6, W=7, R=3, S=3) {\n"
    "  in    I: f32[N, C, H, W]\n  const F: f32[K, C, R, S]\n  out   O: f32[N, K, H, W]\n"
    "  axes  n: N, k: K, p: H, q: W, c: C, r: R, s: S\n  O[n,k,p,q]  = 0\n"
    "  O[n,k,p,q] += I[n,c,p+r-1,q+s-1 else 0] * F[k,c,r,s]\n}\n",
    "kernel rnn(T=6, H=5) {\n"
    "  in X: f32[T, H]   const U: f32[H, H]   in h0: f32[H]   out y: f32[T, H]   out hT: f32[H]\n"
    "  recur t: T  state h: f32[H] from h0 to hT {\n    axes i: H, j: H\n    temp a: f32[H]\n"
    "    a[i]  = X[t,i]\n    a[i] += U[i,j] * h[j]\n    h'[i] = tanh(a[i])\n    y[t,i] = h'[i]\n"
    "  }\n}\n",
    "kernel mix(M=9, K=1..64 step 8) {\n  in x: i8[M]  in s: f64[1]  out y: i8[M]  temp t: i32[M]\n"
    "  axes i: M, j: M\n  t[i]  = 0\n  t[i] += i32(x[j]) where j <= i and i >= 1\n"
    "  y[i]  = i8(clip(round(f64(t[i]) * s[0]), -128, 127))\n  call f(y) -> (t)\n}\n",
};
enum { KERNELS = sizeof kernels / sizeof *kernels };

/* Texts that ask for enormous sizes are bound, but neither counted nor run. */
static bool is_small(const struct program *p) {
    for (int a = 0; a < p->naxes; a++)
        if (p->axis[a].extent > 100) return false;
    return true;
}

static bool try_text(const char *text, size_t length) {
    struct diags d;
    struct arena a;
    struct kernel **k;
    struct source s = {"damaged", text, length, 1, 1};
    struct binding given = {"K", 9};
    struct bindings b = {&given, 1, NULL};
    diags_init(&d);
    arena_init(&a);
    int n = kernel_parse(&a, &s, &k, &d);
    bool takes_k = n > 0 && kernel_param_index(k[0], "K") >= 0;
    struct program *p = n > 0 ? program_bind(k[0], takes_k ? &b : NULL, NULL, &d) : NULL;
    bool ok = p != NULL;
    assert_true(ok || d.errors > 0);
    if (n > 0) {
        struct text out = {0};
        kernel_print(k[0], &out);
        text_free(&out);
    }
    if (p) {
        struct text out = {0};
        assert_true(program_verify(p, &d));
        program_print(p, &out);
        text_free(&out);
        if (is_small(p)) assert_true(program_macs(p) >= 0 && program_operations(p) >= 0);
        program_hash(p);
        program_free(p);
    }
    FILE *nowhere_file = fopen("/dev/null", "w");
    diags_print(&d, nowhere_file);
    fclose(nowhere_file);
    arena_free(&a);
    diags_free(&d);
    return ok;
}

static void test_whole(void **state) {
    (void)state;
    for (int k = 0; k < KERNELS; k++) assert_true(try_text(kernels[k], strlen(kernels[k])));
}

static void test_truncations(void **state) {
    (void)state;
    for (int k = 0; k < KERNELS; k++) {
        size_t whole = strlen(kernels[k]) - 2; /* without the last brace */
        for (size_t n = 0; n < whole; n++) {
            char *text = malloc(n + 1); /* so that the sanitizer sees a read past the end */
            memcpy(text, kernels[k], n);
            text[n] = 0;
            assert_false(try_text(text, n));
            free(text);
        }
    }
}

static void test_bit_flips(void **state) {
    (void)state;
    uint64_t seed = 20240229;
    int flips = getenv("ISAMAP_FLIPS") ? atoi(getenv("ISAMAP_FLIPS")) : 10000, accepted = 0;
    for (int n = 0; n < flips; n++) {
        char *text = strdup(kernels[n % KERNELS]);
        size_t length = strlen(text);
        for (uint64_t k = 0; k <= next_random(&seed) % 3; k++)
            text[next_random(&seed) % length] ^= (char)(1 << next_random(&seed) % 8);
        accepted += try_text(text, length);
        free(text);
    }
    assert_true(accepted > 0 && accepted < flips);
}

static void test_deep_and_long(void **state) {
    (void)state;
    static const struct {
        const char *head, *part, *tail;
        int times;
    } row[] = {
        {"kernel a() { out y: f32[1]\n y[0] = ", "(", "1 }", 100000},
        {"kernel a() { out y: f32[1]\n y[0] = ", "-", "1 }", 100000},
        {"kernel a() { out y: f32[1]\n y[0] = 1", " + 1", " }", 100000},
        {"kernel a() { out y: f32[1]\n y[0] = ", "y[", " }", 100000},
        {"kernel a() { in x: f32[1]\n", "recur t: 1 { ", "}", 10000},
        {"kernel a(N=", "1", ") { }", 10000},
        {"kernel ", "a", "() { }", 10000},
        {"kernel a() { in x: f32[1", ",1", "] }", 10000},
    };
    for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
        struct text t = {0};
        text_printf(&t, "%s", row[k].head);
        for (int n = 0; n < row[k].times; n++) text_append(&t, row[k].part, strlen(row[k].part));
        text_printf(&t, "%s", row[k].tail);
        assert_false(try_text(t.at, t.n));
        text_free(&t);
    }
}

/* As long as it may be. */
static void test_long_sum(void **state) {
    (void)state;
    struct text t = {0};
    text_printf(&t, "kernel a() { in x: f32[1]  out y: f32[1]\n y[0] = x[0]");
    for (int n = 0; n < 600; n++) text_printf(&t, " + x[0]");
    text_printf(&t, " }");
    assert_true(try_text(t.at, t.n));
    text_free(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole),     cmocka_unit_test(test_truncations),
        cmocka_unit_test(test_bit_flips), cmocka_unit_test(test_deep_and_long),
        cmocka_unit_test(test_long_sum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
