/* Plain copies as the backend of this computer compiles them: rows, transpositions, padding with
 * any value, strides, odd extents, every size of element; compared with the interpreter, exactly.
 */
#include "isamap.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static const char *const copies[] = {
    "in X: %s[M, N]  out Y: %s[N, M]  axes i: M, j: N  Y[j,i] = X[i,j]",
    "in X: %s[M, N]  out Y: %s[M+3, N+2]  axes i: M+3, j: N+2  Y[i,j] = X[i-1,j-2 else 0]",
    "in X: %s[M, N]  out Y: %s[N+2, M+2]  axes i: M+2, j: N+2  Y[j,i] = X[i-1,j-1 else 1]",
    "in X: %s[M, N]  out Y: %s[M, N]  axes i: M, j: N  Y[i,j] = X[i+2,j+1 else 1]",
    "in X: %s[M, 3, N]  out Y: %s[N, 3, M]  axes i: M, k: 3, j: N  Y[j,k,i] = X[i,k,j]",
    "in X: %s[M, 3, N]  out Y: %s[3, N, M]  axes i: M, k: 3, j: N  Y[k,j,i] = X[i,k,j]",
    "in X: %s[2*M, 3*N]  out Y: %s[N, M]  axes i: M, j: N  Y[j,i] = X[2*i,3*j]",
    "in X: %s[M]  out Y: %s[N, M]  axes i: M, j: N  Y[j,i] = X[i]",
    "in X: %s[M, N]  out Y: %s[M, 3, N]  axes i: M, j: N, r: 3  Y[i,r,j] = X[i+r-1,j else 0]",
    "in X: %s[M, N]  out Y: %s[M, N]  axes i: M, j: N  Y[i,j] = X[i-5*M,j else 1]",
    "in X: %s[N, 5, M]  out Y: %s[5*N, M]  axes k: M, i: N, j: 5  Y[5*i+j,k] = X[i,j,k]",
    "in X: %s[5*N, M]  out Y: %s[N, 5*M]  axes j: 5, i: N, k: M  Y[i,M*j+k] = X[5*i+j,k]",
    "in X: %s[M, N]  out Y: %s[M*N]  axes j: N, i: M  Y[M*j+i] = X[i,j]",
    /* windows: written out along the destination, or turned */
    "in X: %s[M, N]  out Y: %s[M, 3, 3, N]  axes i: M, r: 3, s: 3, j: N\n"
    "Y[i,r,s,j] = X[i+r-1,j+s-1 else 1]",
    "in X: %s[3, 2*M+5, 2*N+1]  out Y: %s[M, N, 63]  axes i: M, j: N, c: 3, r: 7, s: 3\n"
    "Y[i,j,21*c+3*r+s] = X[c,2*i+r-2,2*j+s-1 else 0]",
    "in X: %s[3, 3*M, N]  out Y: %s[N+5, M, 21]  axes j: N+5, i: M, c: 3, r: 7\n"
    "Y[j,i,7*c+r] = X[c,3*i+r-3,j-3 else 1]",
    "in X: %s[M, N]  out Y: %s[M, N, 9]  axes i: M, j: N, r: 3, s: 3\n"
    "Y[i,j,3*r+s] = X[i+M*r-M,j+s-1 else 1]",
    "in X: %s[4*M, 5*N]  out Y: %s[M, N, 6]  axes i: M, j: N, s: 6  Y[i,j,s] = X[i,4*j+s else 0]",
    "in X: %s[M, 2*N, 24]  out Y: %s[M, 2, N, 24]  axes i: M, s: 2, j: N, c: 24\n"
    "Y[i,s,j,c] = X[i-1,s+2*j-1,c else 0]",
};
static const char *const types[] = {"f32", "i8", "i16", "f64", "u32", "bool"};
static const int sizes[][2] = {{1, 1}, {7, 9}, {8, 8}, {13, 1}, {21, 36}, {40, 19}};

static void copy(const char *path, const char *body, const char *type, int m, int n) {
    char text[512];
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, "kernel copy(M=%d, N=%d) { ", m, n);
    snprintf(text, sizeof text, body, type, type);
    fprintf(f, "%s }\n", text);
    fclose(f);
    isamap *im = isamap_open();
    isamap_option(im, "verify", NULL);
    int status = isamap_run(im, path);
    if (status) fprintf(stderr, "M=%d N=%d %s\n%s", m, n, text, isamap_messages(im));
    assert_int_equal(status, ISAMAP_DONE);
    assert_true(isamap_number(im, "max_abs_error") == 0);
    isamap_close(im);
}

static void copies_are_exact(void **state) {
    (void)state;
    char path[] = "/tmp/isamap-copy-XXXXXX.isam";
    int file = mkstemps(path, 5);
    assert_true(file >= 0);
    close(file);
    for (size_t k = 0; k < sizeof copies / sizeof *copies; k++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            copy(path, copies[k], types[(k + s) % (sizeof types / sizeof *types)], sizes[s][0],
                 sizes[s][1]);
    unlink(path);
}

/* The kernel's text in a file of a new folder, in `path`. */
static void write_kernel(char *path, size_t size, const char *text) {
    char folder[] = "/tmp/isamap-rows-XXXXXX";
    assert_non_null(mkdtemp(folder));
    snprintf(path, size, "%s/copy.isam", folder);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void remove_kernel(char *path) {
    unlink(path);
    *strrchr(path, '/') = 0;
    rmdir(path);
}

/* The code that copies it has this. */
static void code_has(const char *text, const char *part) {
    char path[64], out[80], *ir;
    size_t size;
    write_kernel(path, sizeof path, text);
    snprintf(out, sizeof out, "%s.ll", path);
    isamap *im = isamap_open();
    assert_int_equal(isamap_compile(im, path, out), ISAMAP_DONE);
    isamap_close(im);
    FILE *llvm = fopen(out, "r"), *all = open_memstream(&ir, &size);
    assert_non_null(llvm);
    for (int c; (c = fgetc(llvm)) != EOF;) fputc(c, all);
    fclose(llvm);
    fclose(all);
    if (!strstr(ir, part)) fprintf(stderr, "no %s in %s", part, text);
    assert_non_null(strstr(ir, part));
    assert_null(strstr(ir, "gather"));
    free(ir);
    unlink(out);
    remove_kernel(path);
}

/* Rows are copied as rows, whatever the order in which the program names its axes, also where
 * several of them share a dimension. Windows are rows, or turned; padding is no loop's condition.
 */
static void rows_are_vectors(void **state) {
    (void)state;
#if !ISAMAP_WITH_LLVM
    skip();
#endif
    code_has("kernel join(M=6, N=5, K=96) {\n"
             "  in X: f32[M, N, K]  out Y: f32[M*N, K]\n"
             "  axes k: K, i: M, j: N\n"
             "  Y[N*i+j,k] = X[i,j,k]\n}\n",
             "load <8 x i32>");
    code_has("kernel along() {\n"
             "  in X: f32[64, 64]  out Y: f32[64, 3, 3, 64]\n"
             "  axes i: 64, j: 64, r: 3, s: 3\n"
             "  Y[i,r,s,j] = X[i+r-1,j+s-1 else 0]\n}\n",
             "load <8 x i32>");
    code_has("kernel turned() {\n"
             "  in X: i8[3, 65, 65]  out Y: i8[32, 32, 27]\n"
             "  axes i: 32, j: 32, c: 3, r: 3, s: 3\n"
             "  Y[i,j,9*c+3*r+s] = X[c,2*i+r,2*j+s]\n}\n",
             "shufflevector <8 x i8>");
}

static double cycles_of(const char *text) {
    char path[64];
    write_kernel(path, sizeof path, text);
    isamap *im = isamap_open();
    isamap_option(im, "machine", "cpu-avx2");
    isamap_option(im, "no-values", NULL);
    assert_int_equal(isamap_sim(im, path), ISAMAP_DONE);
    double cycles = isamap_number(im, "cycles");
    isamap_close(im);
    remove_kernel(path);
    return cycles;
}

static double window_cycles(int taps) {
    char text[256];
    snprintf(text, sizeof text,
             "kernel windows() {\n  in X: f32[64, 64]  out Y: f32[64, %d, %d, 64]\n"
             "  axes i: 64, j: 64, r: %d, s: %d\n  Y[i,r,s,j] = X[i+r-1,j+s-1 else 0]\n}\n",
             taps, taps, taps, taps);
    return cycles_of(text) / (taps * taps);
}

/* Windows that are written out cost as what they are, those with too many values as elements. */
static void windows_are_priced(void **state) {
    (void)state;
    double few = window_cycles(3), many = window_cycles(9);
    assert_true(few > 0 && 4 * few < many);
}

static double lookup_cycles(int rows) {
    char text[256];
    snprintf(text, sizeof text,
             "kernel lookup() {\n  in X: f32[%d, 16]  in at: i64[32]  out Y: f32[32, 16]\n"
             "  axes i: 32, c: 16, v: %d\n  Y[i,c] = 0\n"
             "  Y[i,c] += select(at[i] == i64(v), X[v,c], 0)\n}\n",
             rows, rows);
    return cycles_of(text);
}

/* A row that data name costs the same in any table. */
static void lookups_are_priced(void **state) {
    (void)state;
    double small = lookup_cycles(100), large = lookup_cycles(10000);
    assert_true(small > 0 && large < 1.1 * small);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_are_exact), cmocka_unit_test(rows_are_vectors),
        cmocka_unit_test(windows_are_priced), cmocka_unit_test(lookups_are_priced)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
