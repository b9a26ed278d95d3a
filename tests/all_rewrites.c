/* Rewritten programs run: on sums that the instructions do not execute as they stand, by the
 * compiler's own choice, and by name whether it pays or not; simulated on accelerators, schedules
 * verified, or executed on this computer; always compared with the interpreter on the program as it
 * was written. */
#include "isamap.h"
#include <math.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#define WEIGHTS(m, n, k)                                                                           \
    "kernel gmm(M=" m ", N=" n ", K=" k ") {\n"                                                    \
    "  const A: i8[M, K]  in B: i8[K, N]  out C: i32[M, N]\n  axes i: M, j: N, k: K\n"             \
    "  C[i,j] = 0\n  C[i,j] += i32(A[i,k]) * i32(B[k,j])\n}\n"
#define SEP(type, wide)                                                                            \
    "kernel sep(C=18, K=17, P=3, Q=5) {\n"                                                         \
    "  in I: " type "[C, P+2, Q+2]  const D: " type "[C, 3, 3]  const W: " type                    \
    "[K, C]  out O: " wide "[K, P, Q]\n"                                                           \
    "  axes k: K, p: P, q: Q, c: C, r: 3, s: 3\n  O[k,p,q] = 0\n"                                  \
    "  O[k,p,q] += " wide "(I[c,p+r,q+s]) * " wide "(D[c,r,s]) * " wide "(W[k,c])\n}\n"
#define DEP                                                                                        \
    "kernel dep(C=32, P=5, Q=7) {\n"                                                               \
    "  in I: i8[C, P+2, Q+2]  const F: i8[C, 3, 3]  out O: i32[C, P, Q]\n"                         \
    "  axes c: C, p: P, q: Q, r: 3, s: 3\n  O[c,p,q] = 0\n"                                        \
    "  O[c,p,q] += i32(I[c,p+r,q+s]) * i32(F[c,r,s])\n}\n"
#define SUM                                                                                        \
    "kernel men(M=37, N=53) { in X: i8[M, N]  out y: i32[M]  axes i: M, j: N\n"                    \
    "  y[i] = 0\n  y[i] += i32(X[i,j])\n}\n"
#define MAXIMUM                                                                                    \
    "kernel most(M=37, N=53) { in X: f32[M, N]  out y: f32[M]  axes i: M, j: N\n"                  \
    "  y[i] = -inf\n  y[i] max= X[i,j]\n}\n"
#define SCAN                                                                                       \
    "kernel scn(M=21, N=35) { in X: i8[M, N]  out Y: i32[M, N]  axes i: M, j: N, k: N\n"           \
    "  Y[i,j] = 0\n  Y[i,j] += i32(X[i,k]) where k <= j\n}\n"
#define TRANSPOSED                                                                                 \
    "kernel t2d(C=21, K=19, P=5, Q=4) {\n"                                                         \
    "  in I: i8[C, P, Q]  const F: i8[C, K, 3, 3]  out O: i32[K, 2*P+1, 2*Q+1]\n"                  \
    "  axes k: K, p: P, q: Q, c: C, r: 3, s: 3, y: 2*P+1, x: 2*Q+1\n  O[k,y,x] = 0\n"              \
    "  O[k,2*p+r,2*q+s] += i32(I[c,p,q]) * i32(F[c,k,r,s])\n}\n"
#define CONV                                                                                       \
    "kernel c2d(C=24, K=20, P=13, Q=15) {\n"                                                       \
    "  in I: f32[C, P, Q]  const F: f32[K, C, 3, 3]  out O: f32[K, P, Q]\n"                        \
    "  axes k: K, p: P, q: Q, c: C, r: 3, s: 3\n  O[k,p,q] = 0\n"                                  \
    "  O[k,p,q] += I[c,p+r-1,q+s-1 else 0] * F[k,c,r,s]\n}\n"

#define EDGES "tests/data/machines/mapper/edges.xml"
#define MASKED "tests/data/machines/mapper/masked.xml"
#define CUT                                                                                        \
    "kernel cut(M=5, N=21) {\n"                                                                    \
    "  in A: i32[M, N]  in B: i32[M, N]  inout C: i32[M, N]\n  axes i: M, j: N\n"                  \
    "  C[i,j] += A[i,j] * B[i,j] where j >= 2 and j < 19 and i < 9\n}\n"
#define PRODUCT(m, n, k)                                                                           \
    "kernel gmm(M=" m ", N=" n ", K=" k ") {\n"                                                    \
    "  in A: i8[M, K]  in B: i8[K, N]  out C: i32[M, N]\n  axes i: M, j: N, k: K\n"                \
    "  C[i,j] = 0\n  C[i,j] += i32(A[i,k]) * i32(B[k,j])\n}\n"

static const struct run_case {
    const char *machine, *rewrite, *text; /* rewrite NULL: the compiler's choice */
    const char *instruction;              /* executes all products; NULL: not looked at */
    bool executed;                        /* on this computer, else simulated */
} cases[] = {
    {"edge16", NULL, SEP("i8", "i32"), "mm16", false},
    {"edge16", NULL, SCAN, "mm16", false},
    {"edge16", "ones", SUM, "mm16", false},
    {"gemmini", NULL, SUM, NULL, false},
    {"edge16", "block-diagonal", DEP, "mm16", false},
    {"edge16", "phases", TRANSPOSED, "mm16", false},
    {"edge16", NULL, TRANSPOSED, "mm16", false},
    {"cpu-avx2", NULL, SEP("f32", "f32"), "fma.rr", false},
    {"cpu-avx2", NULL, PRODUCT("17", "18", "33"), "pairs.ss", false},
    {"cpu-avx512", NULL, PRODUCT("17", "18", "33"), "vnni.ss", false},
    {"cpu-avx512", NULL, WEIGHTS("17", "48", "32"), "vnni.moved.vector", false},
    {"cpu-avx512", NULL, WEIGHTS("32", "5", "64"), "vnni.moved.scalar", false},
    {"host", NULL, WEIGHTS("17", "48", "32"), NULL, true},
    {"host", NULL, SEP("f32", "f32"), NULL, true},
    {"host", "winograd-2", CONV, NULL, true},
    {"host", "winograd-4", CONV, NULL, true},
    {"host", "im2col", CONV, NULL, true},
    {"host", "phases", TRANSPOSED, NULL, true},
    {EDGES, "split-residual", PRODUCT("40", "33", "48"), NULL, false},
    {EDGES, "split-residual", PRODUCT("32", "32", "33"), NULL, false},
    {EDGES, "split-residual", PRODUCT("24", "18", "40"), NULL, true},
    {MASKED, NULL, CUT, "fma", false},
    {MASKED, "trim", CUT, "fma", true},
    {"edge16", "split-residual", PRODUCT("17", "17", "33"), "mm16", false},
    {"edge16", "split-residual", PRODUCT("16", "32", "17"), "mm16", false},
    {"gemmini", "split-residual", PRODUCT("17", "17", "33"), NULL, false},
    {"dot4", "split-residual", PRODUCT("6", "7", "9"), NULL, false},
    {"mma", "split-residual", PRODUCT("17", "17", "33"), NULL, false},
    {"mma", "split-residual", PRODUCT("16", "16", "33"), NULL, false},
    {"cpu-avx512", "split-residual", PRODUCT("17", "17", "33"), NULL, false},
    {"cpu-avx2", "lanes", SUM, NULL, false},
    {"host", "lanes", MAXIMUM, NULL, true},
};

static void run_case(const struct run_case *c, const char *path) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(c->text, f);
    fclose(f);
    isamap *im = isamap_open();
    isamap_option(im, "machine", c->machine);
    if (c->rewrite) isamap_option(im, "rewrite", c->rewrite);
    isamap_option(im, "verify", NULL);
    isamap_option(im, "check", NULL);
    int status = c->executed ? isamap_run(im, path) : isamap_sim(im, path);
    if (status)
        fprintf(stderr, "%s %s\n%s\n%s", c->machine, c->rewrite ? c->rewrite : "-", c->text,
                isamap_messages(im));
    assert_int_equal(status, ISAMAP_DONE);
    if (!c->executed && !strstr(c->text, "f32"))
        assert_true(isamap_number(im, "max_abs_error") == 0);
    if (c->rewrite && !strncmp(c->rewrite, "winograd", 8))
        print_message("%s: largest error %.3g\n", c->rewrite, isamap_number(im, "max_abs_error"));
    for (int i = 0; c->instruction && isamap_key(im, "macs_on", i); i++)
        assert_string_equal(isamap_key(im, "macs_on", i), c->instruction);
    isamap_close(im);
}

static void test_runs(void **state) {
    (void)state;
    char path[] = "/tmp/isamap-rewrite-XXXXXX.isam";
    int file = mkstemps(path, 5);
    assert_true(file >= 0);
    close(file);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) run_case(&cases[i], path);
    unlink(path);
}

/* The rest of an axis goes to another instruction where padding costs more: fewer cycles than the
 * padded issues of any instruction alone would take. It stays where that does not pay. */
static void test_residual(void **state) {
    static const struct {
        const char *text, *second; /* who executes the rest; NULL: nothing is cut off */
        double macs, most;         /* on it; cycles */
    } table[] = {{PRODUCT("256", "17", "1024"), "macs_on.mv", 256 * 1024, 2 * 16 * 64 * 64},
                 {PRODUCT("128", "128", "20"), "macs_on.deep", 128 * 128 * 4, 8 * 8 * 5 * 24},
                 {PRODUCT("64", "17", "16"), NULL, 0, 1e9}};
    (void)state;
    char path[] = "/tmp/isamap-residual-XXXXXX.isam";
    int file = mkstemps(path, 5);
    assert_true(file >= 0);
    close(file);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        FILE *f = fopen(path, "w");
        assert_non_null(f);
        fputs(table[i].text, f);
        fclose(f);
        isamap *im = isamap_open();
        isamap_option(im, "machine", EDGES);
        isamap_option(im, "verify", NULL);
        isamap_option(im, "check", NULL);
        assert_int_equal(isamap_sim(im, path), ISAMAP_DONE);
        assert_true(isamap_number(im, "max_abs_error") == 0);
        assert_true(isamap_number(im, "cycles") < table[i].most);
        if (table[i].second)
            assert_true(isamap_number(im, table[i].second) == table[i].macs);
        else
            assert_true(isnan(isamap_number(im, "macs_on.mv")));
        isamap_close(im);
    }
    unlink(path);
}

static void test_names(void **state) {
    static const struct {
        const char *rewrite, *message;
    } wrong[] = {{"facto", "no rewrite 'facto', expected 'factor'"},
                 {"factor,ones,factor,ones", "more than 3 rewrites"},
                 {"winograd-2", "'winograd-2' applies to no statement of 'gmm'"}};
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        isamap *im = isamap_open();
        isamap_option(im, "rewrite", wrong[i].rewrite);
        assert_int_equal(isamap_run(im, "examples/f32/gmm.isam"), ISAMAP_INPUT);
        assert_non_null(strstr(isamap_messages(im), wrong[i].message));
        isamap_close(im);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_runs), cmocka_unit_test(test_residual),
                                       cmocka_unit_test(test_names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
