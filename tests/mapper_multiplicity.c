/* How often a statement counts: axes that stand only in constraints, partial writes at offsets and
 * strides, extents of 1. Whatever rewrites make of random statements of this kind leaves the values
 * as they are, and the proof refuses a rewrite that loses a multiplicity. */
#include "ir/interp.h"
#include "mapper/rewrite_int.h"
#include "mapper_help.h"

#include <math.h>

enum { PROGRAMS = 400 };

static const char *const combines[] = {"+=", "+=", "max=", "min=", "max=", "*="};

static void make_text(uint64_t *seed, struct text *t) {
    bool floats = help_below(seed, 3) == 0;
    const char *type = floats ? "f32" : "i32";
    int I = 1 + help_below(seed, 5), K = 1 + help_below(seed, 5), N = 2 + help_below(seed, 7),
        M = 1 + help_below(seed, 4), off = help_below(seed, 20), step = 1 + help_below(seed, 2);
    const char *combine = combines[help_below(seed, 6)];
    bool product = help_below(seed, 2);
    text_printf(t,
                "kernel p() { in A: %s[%d, %d]  in B: %s[%d]  inout C: %s[60]\n"
                "  axes i: %d, k: %d, n: %d, m: %d\n  C[%d*i + %d] %s A[i, %s]%s where ",
                type, I, K, type, K, type, I, K, N, M, step, off, combine, "k",
                product ? " * B[k]" : "");
    switch (help_below(seed, 6)) {
    case 0:
        text_printf(t, "n < %d", 1 + help_below(seed, N));
        break;
    case 1:
        text_printf(t, "n >= %d and n < %d", help_below(seed, N / 2 + 1), N);
        break;
    case 2:
        text_printf(t, "n < %d and m >= 0", N);
        break;
    case 3:
        text_printf(t, "n <= i");
        break;
    case 4:
        text_printf(t, "2*n < %d and i <= %d", N + 1, I);
        break;
    default:
        text_printf(t, "n + m < %d and n > 0", N);
    }
    text_printf(t, "\n}\n");
}

static bool same_values(const struct program *p, const struct program *q, uint64_t seed) {
    void *x[8] = {0}, *y[16] = {0};
    struct diags d;
    diags_init(&d);
    for (int b = 0; b < p->nbuffers; b++) {
        enum type t = p->buffer[b].type;
        x[b] = calloc((size_t)p->buffer[b].elements, 4);
        y[b] = calloc((size_t)p->buffer[b].elements, 4);
        for (int64_t i = 0; i < p->buffer[b].elements; i++) {
            int r = help_below(&seed, 7) - 3;
            union value v = type_is_float(t) ? (union value){.f = r} : (union value){.i = r};
            type_store(t, (char *)x[b] + 4 * i, v);
            type_store(t, (char *)y[b] + 4 * i, v);
        }
    }
    bool same = program_run(p, x, NULL, NULL, &d) && program_run(q, y, NULL, NULL, &d);
    for (int b = 0; b < p->nbuffers; b++) {
        for (int64_t i = 0; same && i < p->buffer[b].elements; i++) {
            enum type t = p->buffer[b].type;
            union value v = type_load(t, (char *)x[b] + 4 * i),
                        w = type_load(t, (char *)y[b] + 4 * i);
            same = type_is_float(t) ? !(fabs(v.f - w.f) > 1e-5 * (1 + fabs(v.f))) : v.i == w.i;
        }
        free(x[b]);
        free(y[b]);
    }
    diags_free(&d);
    return same;
}

static void check_rewrites(const char *text) {
    struct program *p = help_program("p", text);
    struct failure f = {.stmt = 0,
                        .needle_op = -1,
                        .stmt_op = -1,
                        .needle_axis = -1,
                        .stmt_axis = -1,
                        .operand = -1};
    for (int r = 0; rewrites[r]; r++) {
        struct program *q = rewrites[r]->apply(p, &f, NULL);
        struct diags d;
        if (!q) continue;
        diags_init(&d);
        bool same = program_verify(q, &d) && same_values(p, q, 1);
        diags_free(&d);
        if (!same) {
            struct text t = {0};
            program_print(q, &t);
            print_error("%s changes the values of\n%sinto\n%s", rewrites[r]->name, text, t.at);
            text_free(&t);
        }
        assert_true(same);
        program_free(q);
    }
    program_free(p);
}

static void test_rewrites_keep_multiplicities(void **state) {
    uint64_t seed = 20;
    (void)state;
    for (int k = 0; k < PROGRAMS; k++) {
        struct text t = {0};
        make_text(&seed, &t);
        check_rewrites(t.at);
        text_free(&t);
    }
}

struct wrong_case { /* what a rewrite that loses something would make of the first program */
    const char *before, *after;
};

static const struct wrong_case wrong[] = {
    {"inout C: f32[60, 60]  axes i: 16, n: 9  C[i + 30, i + 30] += A[i] where n < 5",
     "inout C: f32[60, 60]  axes i: 16, n: 9  C[i + 30, i + 30] += A[i]"},
    {"inout C: i32[600]  axes i: 16, n: 9  C[2*i + 300] += A[i] where n < 5",
     "inout C: i32[600]  axes i: 16, n: 9  C[2*i + 300] += 4 * A[i]"},
    {"inout C: i32[600]  axes i: 16, n: 9  C[i + 300] += A[i]",
     "inout C: i32[600]  axes i: 16, n: 9  C[i + 300] += A[i] where i < 15"},
    {"inout C: i32[4000]  axes i: 16, n: 9  C[i + 3000] += A[i] where i + n < 17",
     "inout C: i32[4000]  axes i: 16, n: 9  C[i + 3000] += A[i] where i + n < 16"},
    {"inout C: i32[4000]  axes i: 16, n: 9  C[200*i + 7] = A[i]",
     "inout C: i32[4000]  axes i: 16, n: 9  C[200*i + 7] = A[15 - i]"},
    {"inout C: i32[4000]  axes i: 16, n: 9  C[i] += A[i] where n < 5",
     "inout C: i32[4000]  axes i: 16, n: 9  C[i] += A[i] where n < i"},
};

static void test_proof_sees_multiplicities(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        struct program *p[2];
        for (int side = 0; side < 2; side++) {
            struct text t = {0};
            const char *body = side ? wrong[k].after : wrong[k].before;
            bool f32 = strstr(body, "f32") != NULL;
            text_printf(&t, "kernel p() { in A: %s[16]  %s\n}\n", f32 ? "f32" : "i32", body);
            p[side] = help_program("p", t.at);
            text_free(&t);
        }
        assert_true(rewrite_prove(&rw_trim, p[0], p[0], NULL));
        bool refused = !rewrite_prove(&rw_trim, p[0], p[1], NULL);
        if (!refused) print_error("proved: %s\n", wrong[k].after);
        assert_true(refused);
        program_free(p[0]);
        program_free(p[1]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rewrites_keep_multiplicities),
        cmocka_unit_test(test_proof_sees_multiplicities),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
