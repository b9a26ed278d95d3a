/* Texts: printing what was parsed gives the same tree, printing what was bound gives the same
 * program. */
#include "tests/ir_support.h"

#include <glob.h>

static void check_kernel(struct trial *t, const struct kernel *k) {
    struct text out = {0};
    struct kernel **again;
    kernel_print(k, &out);
    struct source s = {"printed", out.at, out.n, 1, 1};
    int n = kernel_parse(&t->arena, &s, &again, &t->diags);
    if (n != 1 || !kernel_equal(k, again[0])) {
        diags_print(&t->diags, stderr);
        fail_msg("'%s' is not what it was:\n%s", k->name, out.at);
    }
    text_free(&out);
}

static void check_program(struct trial *t, const struct program *p) {
    struct text out = {0}, twice = {0};
    struct kernel **again;
    program_print(p, &out);
    struct source s = {"printed", out.at, out.n, 1, 1};
    int n = kernel_parse(&t->arena, &s, &again, &t->diags);
    struct program *q = n == 1 ? program_bind(again[0], NULL, NULL, &t->diags) : NULL;
    if (q) program_print(q, &twice);
    if (!q || !program_equal(p, q)) {
        diags_print(&t->diags, stderr);
        fail_msg("'%s' is not what it was:\n%s\n%s", p->name, out.at, q ? twice.at : "");
    }
    assert_string_equal(out.at, twice.at);
    program_free(q);
    text_free(&out);
    text_free(&twice);
}

/* Parameters without a value get one inside their range. */
static const char *some_sizes(struct trial *t, const struct kernel *k) {
    const char *sizes = "";
    for (int q = 0; q < k->nparams; q++) {
        const struct kernel_param *p = &k->param[q];
        int64_t v = 3;
        if (p->value) continue;
        if (p->lo) assert_true(expr_integer(p->lo, &(struct bindings){0}, &v));
        sizes =
            arena_printf(&t->arena, "%s%s%s=%lld", sizes, *sizes ? " " : "", p->name, (long long)v);
    }
    return sizes;
}

static int check_files(const char *pattern, bool only_kernels) {
    glob_t files;
    assert_int_equal(glob(pattern, 0, NULL, &files), 0);
    for (size_t f = 0; f < files.gl_pathc; f++) {
        struct trial t;
        trial_open(&t);
        trial_read(&t, files.gl_pathv[f]);
        if (t.nkernels < 1) diags_print(&t.diags, stderr);
        assert_int_equal(t.nkernels, 1);
        check_kernel(&t, t.kernel[0]);
        if (!only_kernels) {
            if (!trial_bind(&t, some_sizes(&t, t.kernel[0]), "T=16 NODES=3 DIM=16")) {
                diags_print(&t.diags, stderr);
                fail_msg("%s does not bind", files.gl_pathv[f]);
            }
            check_program(&t, t.p);
            struct program *c = program_copy(t.p);
            assert_true(program_equal(c, t.p));
            program_free(c);
        }
        trial_close(&t);
    }
    int n = (int)files.gl_pathc;
    globfree(&files);
    return n;
}

static void test_operators(void **state) {
    (void)state;
    assert_int_equal(check_files(SOURCE_DIR "/examples/operators/*.isam", false), 19);
    assert_int_equal(check_files(SOURCE_DIR "/examples/conv2d.isam", false), 1);
    assert_int_equal(check_files(SOURCE_DIR "/examples/f32/rnn.isam", false), 1);
}

static void test_semantics(void **state) {
    (void)state;
    assert_true(check_files(SOURCE_DIR "/tests/data/semantics/*.isam", false) >= 50);
}

/* Everything that the grammar has, in both printers. */
static const char *const everything[] = {
    "kernel nop() { }",
    "kernel a(M=4, K=M*2, L=1+(3-M)%5, R=1..4, S=2..M*8 step 2, X) { }",
    "kernel b() { in x: f32[4], y: f32[4]  out z: f32[4]\n axes i: 4\n"
    "  z[i] = -x[i] * (y[i] - -1.5e-3) / (x[i] - (y[i] - 2)) + -(3) }",
    "kernel c() { in x: i32[4]  out z: bool[4]  axes i: 4\n"
    "  z[i] = (x[i] & 3 | x[i] ^ 7) == ~x[i] }",
    "kernel d() { in x: f16[4]  inout z: bf16[4]  axes i: 4\n  z[i] max= bf16(x[i])\n"
    "  z[i] *= 0.1\n z[i] += bf16(f64(x[i]))\n z[i] min= -inf\n z[i] = nan }",
    "kernel e() { in x: f16[4, 3]  out z: f16[3, 4]  axes i: 4, j: 3\n  z[j,i] = x[i,j] }",
    "kernel f() { out z: i64[9]  axes i: 9\n z[i] = select(i < 3, i * i, 9223372036854775807 - i) "
    "}",
    "kernel g() { out z: u64[2]  axes i: 2\n z[i] = 18446744073709551615 / 3 + u64(i32(i)) }",
    "kernel h() { in s: f32[]  out z: f32  z[] = s[] + 1 }",
    "kernel i(N=5) { in x: f64[N]  out z: f64[N, N]  axes i: N, j: N\n z[i,j] = 0\n"
    "  z[i,j] = x[j] where j <= i and i < 2 + j and 2*j == 2*i and j >= 0 and j > -1 }",
    "kernel j() { in x: f32[4]  out z: f32[6]  seq k: 6\n z[k] = x[k-1 else -0.5] }",
    "kernel k() { in x: f32[4] in w: i8[2, 2] out z: f32[4] out y: f32[4]\n"
    "  call sort.up(x, w) -> (z)\n call f() -> (y) }",
    "kernel l() { in x: f32[4]  out y: f32[4]  temp t: f32[4]  axes i: 4\n"
    "  recur s: 3 reverse state h: f32[4] from x state g: f32[4] from x to y {\n"
    "    temp u: f32[4]  axes j: 4\n"
    "    recur r: 2 state q: f32[4] from g to g' { q'[i] = q[i] + s * r }\n"
    "    u[j] = h[j]\n    h'[j] = u[j] * 2\n  }\n}",
    "kernel m() { in x: f32[4]  out y: f32[4]  out z: f32[4]  axes i: 4\n"
    "  recur s: 3 state h: f32[4] from x to y { axes j: 4  temp u: f32[4]\n u[j] = h[j]\n h'[j] = "
    "u[j] }\n"
    "  recur s: 2 state h: f32[4] from x to z { axes j: 4  temp u: f32[4]\n u[j] = h[j]\n h'[j] = "
    "u[j] }\n}",
    "kernel n() { in x: f64[3]  out y: f64[3]  axes i: 3\n"
    "  y[i] = clip(pow(abs(floor(x[i]) - ceil(x[i])), 2), 0, 1) + round(neg(x[i])) + "
    "sqrt(rsqrt(exp(log("
    "sin(cos(tanh(sigmoid(erf(atan(min(max(x[i], 1), 2))))))))))) }",
    "kernel o() { in x: i16[3]  out y: i16[3]  axes i: 3\n  y[i] = shl(shr(x[i], 2), i16(1)) % 7 }",
    "kernel p() { out y: f32[3]  axes i: 3\n  y[i] = f32(i * 0.5 < 1) + f32(bool(1)) + i }",
    "kernel q() { out y: f32[3]  axes i: 3  # a comment\n  y[i] =\n    i\n    + 1 # more\n}",
};

static void test_everything(void **state) {
    (void)state;
    for (size_t n = 0; n < sizeof everything / sizeof *everything; n++) {
        struct trial t;
        trial_open(&t);
        trial_parse(&t, "text", everything[n]);
        if (t.nkernels != 1) diags_print(&t.diags, stderr);
        assert_int_equal(t.nkernels, 1);
        check_kernel(&t, t.kernel[0]);
        if (!trial_bind(&t, some_sizes(&t, t.kernel[0]), "")) {
            diags_print(&t.diags, stderr);
            fail_msg("does not bind: %s", everything[n]);
        }
        check_program(&t, t.p);
        trial_close(&t);
    }
}

static void test_several_kernels(void **state) {
    (void)state;
    struct trial t;
    trial_open(&t);
    trial_parse(&t, "text", "kernel a() { }\nkernel b(N=3) { }\n# end");
    assert_int_equal(t.nkernels, 2);
    assert_string_equal(t.kernel[1]->name, "b");
    assert_int_equal(kernel_param_index(t.kernel[1], "N"), 0);
    assert_int_equal(kernel_param_index(t.kernel[1], "M"), -1);
    trial_close(&t);
}

static void test_parameters_of_axes(void **state) {
    (void)state;
    struct trial t;
    trial_open(&t);
    trial_parse(&t, "text",
                "kernel a(N=3, M=4) { out y: f32[M,N]\n axes i: M, j: N+0\n y[i,j] = N + W }");
    assert_true(trial_bind(&t, "M=2", "W=7 N=99"));
    assert_int_equal(t.p->axis[0].param, 1);
    assert_int_equal(t.p->axis[0].extent, 2);
    assert_int_equal(t.p->axis[1].param, -1);
    assert_int_equal(t.p->axis[1].extent, 3);
    assert_int_equal(t.p->nparams, 2);
    trial_data(&t, 1);
    trial_run(&t);
    for (int k = 0; k < 6; k++) assert_true(result(&t, "y")[k] == 10);
    trial_close(&t);
}

static void test_places(void **state) {
    (void)state;
    /* text inside another file: the first line starts at column 5 of line 7 */
    struct diags d;
    struct arena a;
    struct kernel **k;
    diags_init(&d);
    arena_init(&a);
    const char *text = "kernel a(\n  3) { }";
    struct source s = {"m.xml", text, strlen(text), 7, 5};
    int line, col;
    source_place(&s, 0, &line, &col);
    assert_int_equal(line, 7);
    assert_int_equal(col, 5);
    assert_int_equal(kernel_parse(&a, &s, &k, &d), -1);
    assert_int_equal(d.n, 1);
    assert_int_equal(d.at[0].line, 8);
    assert_int_equal(d.at[0].col, 3);
    arena_free(&a);
    diags_free(&d);
}

#define SUM(declared, body)                                                                        \
    "kernel p() { in A: f32[8, 8] " declared " out C: f32[8] axes i: 8, j: 8\n" body " }"
#define FIRST "C[i] = 0\n"
#define SECOND "C[i] += A[i,j] * B[j]\n"

/* Programs that differ in one thing are different programs. */
static void test_differences(void **state) {
    static const char *const text[] = {
        SUM("in B: f32[8]", FIRST SECOND),
        SUM("in B: f32[8]", FIRST "C[i] max= A[i,j] * B[j]\n"),
        SUM("in B: f32[8]", FIRST "C[i] += A[i,j] * A[i,j]\n"),
        SUM("in B: f32[8]", FIRST "C[i] += A[i,j] * B[i]\n"),
        SUM("in B: f32[8]", FIRST "C[i] += A[j,i] * B[j]\n"),
        SUM("in B: f32[8]", FIRST "C[i] += A[i,j] + B[j]\n"),
        SUM("in B: f32[8]", FIRST "C[i] += A[i,j] * B[j] * 2\n"),
        SUM("in B: f32[8]", FIRST "C[i] += A[i,j] - B[j]\n"),
        SUM("in B: f32[8]", FIRST "C[i] += B[j] - A[i,j]\n"),
        SUM("in B: f32[8]", FIRST "C[i] += A[i,j+1 else 0] * B[j]\n"),
        SUM("in B: f32[8]", FIRST "C[i] += A[i,j+1 else 1] * B[j]\n"),
        SUM("in B: f32[8]", FIRST "C[i] += A[i,j+1 else -0.0] * B[j]\n"),
        SUM("in B: f32[8]", FIRST "C[j] += A[i,j] * B[j]\n"),
        SUM("in B: f32[8]", FIRST "C[i] += A[i,j] * B[j] where i <= j\n"),
        SUM("in B: f32[8]", FIRST "C[i] += A[i,j] * B[j] where i <= j + 1\n"),
        SUM("in B: f32[8]", "C[i] = 1\n" SECOND),
        SUM("in B: f32[8]", "C[i] = -0.0\n" SECOND),
        SUM("in B: f32[8]", FIRST),
        SUM("in B: f32[9]", FIRST SECOND),
        SUM("in B: f64[8]", FIRST "C[i] += A[i,j] * f32(B[j])\n"),
        SUM("const B: f32[8]", FIRST SECOND),
        SUM("in B: f32[8] in D: f32[8]", FIRST SECOND),
    };
    enum { TEXTS = sizeof text / sizeof *text };
    struct trial t[TEXTS];
    (void)state;
    for (int k = 0; k < TEXTS; k++) {
        trial_open(&t[k]);
        trial_parse(&t[k], "p.isam", text[k]);
        t[k].p = t[k].nkernels == 1 ? program_bind(t[k].kernel[0], NULL, NULL, &t[k].diags) : NULL;
        diags_print(&t[k].diags, stderr);
        assert_non_null(t[k].p);
    }
    for (int a = 0; a < TEXTS; a++)
        for (int b = 0; b < TEXTS; b++)
            if (program_equal(t[a].p, t[b].p) != (a == b))
                fail_msg("%s%s", text[a], a == b ? " is not itself" : text[b]);
    for (int k = 0; k < TEXTS; k++) trial_close(&t[k]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_operators),          cmocka_unit_test(test_semantics),
        cmocka_unit_test(test_everything),         cmocka_unit_test(test_several_kernels),
        cmocka_unit_test(test_parameters_of_axes), cmocka_unit_test(test_places),
        cmocka_unit_test(test_differences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
