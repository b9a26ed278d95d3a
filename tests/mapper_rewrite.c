/* The monotone exchange keeps what a program means: random evaluation with the reference
 * interpreter before and after. */
#include "ir/interp.h"
#include "mapper/rewrite_int.h"
#include "mapper_help.h"

static void run(const struct program *p, uint64_t seed, int8_t *out, int n) {
    static int32_t x[64];
    struct diags d;
    void *data[16] = {0};
    diags_init(&d);
    for (int i = 0; i < 64; i++) {
        x[i] = (int32_t)help_random(&seed);
        if (i % 4) x[i] %= 100000;
        if (i % 5 == 0) x[i] = i % 2 ? INT32_MIN : INT32_MAX;
    }
    data[program_buffer(p, "X")] = x;
    data[program_buffer(p, "Y")] = out;
    assert_true(program_run(p, data, NULL, NULL, &d));
    assert_true(n <= 64);
    diags_free(&d);
}

static struct program *rewritten(const struct program *p) {
    struct program *q = NULL;
    for (int s = 0; s < p->nstmts && !q; s++)
        for (int r = 0; rewrites[r] && !q; r++)
            if (!strcmp(rewrites[r]->name, "monotone-exchange"))
                q = rewrites[r]->apply(p, &(struct failure){.kind = FAILURE_OPERATION, .stmt = s},
                                       NULL);
    return q;
}

static void test_relu_before_requantisation(void **state) {
    static const char *const relu[] = {"max(T[i], 0)", "max(0, T[i])",   "max(T[i], -5)",
                                       "min(T[i], 6)", "max(T[i], 127)", "min(T[i], -128)"};
    static const char *const scale[] = {"0.0078125", "0.37", "3.0", "0.5"};
    (void)state;
    for (size_t r = 0; r < sizeof relu / sizeof *relu; r++)
        for (size_t k = 0; k < sizeof scale / sizeof *scale; k++) {
            struct text t = {0};
            text_printf(&t,
                        "kernel p() { in X: i32[64]  out Y: i8[64]  temp T: i8[64]  axes i: 64\n"
                        "  T[i] = i8(clip(round(f64(X[i]) * %s), -128, 127))\n; Y[i] = %s\n}\n",
                        scale[k], relu[r]);
            struct program *p = help_program("p", t.at), *q = rewritten(p);
            struct diags d;
            int8_t want[64], got[64];
            bool reachable =
                k != 2 || (strcmp(relu[r], "max(T[i], -5)") != 0); /* round(3a) is never -5 */
            assert_int_equal(q != NULL, reachable);
            for (uint64_t seed = 1; q && seed < 20; seed++) {
                run(p, seed, want, 64);
                run(q, seed, got, 64);
                assert_memory_equal(want, got, 64);
            }
            diags_init(&d);
            if (q) assert_true(program_verify(q, &d));
            if (q)
                assert_true(q->stmt[0].op[q->stmt[0].nops - 1].code ==
                            p->stmt[1].op[p->stmt[1].nops - 1].code);
            diags_free(&d);
            program_free(q);
            program_free(p);
            text_free(&t);
        }
}

static void test_in_one_statement(void **state) {
    struct program *p =
        help_program("p", "kernel p() { in X: i32[64]  out Y: i8[64]  axes i: 64\n"
                          "  Y[i] = max(i8(clip(round(f64(X[i] + 7) * 0.25), -128, 127)), 0)\n}\n");
    struct program *q = rewritten(p);
    int8_t want[64], got[64];
    (void)state;
    assert_non_null(q);
    assert_true(q->stmt[0].op[q->stmt[0].nops - 1].code == OP_CAST);
    for (uint64_t seed = 1; seed < 20; seed++) {
        run(p, seed, want, 64);
        run(q, seed, got, 64);
        assert_memory_equal(want, got, 64);
    }
    program_free(q);
    program_free(p);
}

/* Where it would not be right: the temporary is read again, the scale is negative or zero, the
 * cast wraps, the bound is out of reach. */
static void test_refused(void **state) {
    static const char *const body[] = {
        "  T[i] = i8(clip(round(f64(X[i]) * 0.5), -128, 127))\n; Y[i] = max(T[i], 0)\n; Z[i] = "
        "T[i]\n",
        "  T[i] = i8(clip(round(f64(X[i]) * -0.5), -128, 127))\n; Y[i] = max(T[i], 0)\n; Z[i] = "
        "1\n",
        "  T[i] = i8(clip(round(f64(X[i]) * 0.0), -128, 127))\n; Y[i] = max(T[i], 0)\n; Z[i] = 1\n",
        "  T[i] = i8(clip(round(0.0 * f64(X[i])), -128, 127))\n; Y[i] = max(T[i], 0)\n; Z[i] = 1\n",
        "  T[i] = i8(i32(round(f64(X[i]) * 0.5)))\n; Y[i] = max(T[i], 0)\n; Z[i] = 1\n",
        "  T[i] = i8(clip(round(f64(X[i]) * 0.5), 10, 127))\n; Y[i] = max(T[i], 0)\n; Z[i] = 1\n",
        "  T[i] = i8(clip(round(f64(X[i]) * 0.5), -128, 127))\n; Y[i] = T[i] + 1\n; Z[i] = 1\n",
    };
    (void)state;
    for (size_t i = 0; i < sizeof body / sizeof *body; i++) {
        struct text t = {0};
        text_printf(&t,
                    "kernel p() { in X: i32[64]  out Y: i8[64]  out Z: i8[64]  temp T: i8[64]  "
                    "axes i: 64\n%s}\n",
                    body[i]);
        struct program *p = help_program("p", t.at), *q = rewritten(p);
        assert_null(q);
        program_free(p);
        text_free(&t);
    }
}

/* A temporary over more axes than an array has dimensions is none. */
static void test_temporary_of_many_axes(void **state) {
    int axis[MAX_DIMS + 1];
    struct text t = {0};
    struct access a;
    (void)state;
    text_printf(&t, "kernel p() { in X: i8[1]  out Y: i8[1]  axes ");
    for (int i = 0; i <= MAX_DIMS; i++)
        text_printf(&t, "a%d: 1%s", axis[i] = i, i < MAX_DIMS ? ", " : "\n  Y[a0] = X[a0]\n}\n");
    struct program *p = help_program("p", t.at);
    assert_false(rw_temporary_of(p, "T", p->buffer[0].type, axis, MAX_DIMS + 1, &a));
    assert_true(rw_temporary_of(p, "T", p->buffer[0].type, axis, MAX_DIMS, &a));
    assert_int_equal(p->buffer[a.buffer].ndims, MAX_DIMS);
    program_free(p);
    text_free(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_relu_before_requantisation), cmocka_unit_test(test_in_one_statement),
        cmocka_unit_test(test_refused), cmocka_unit_test(test_temporary_of_many_axes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
