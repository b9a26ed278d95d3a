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

/* Rows are copied as rows, whatever the order in which the program names its axes, also where
 * several of them share a dimension. */
static void rows_are_vectors(void **state) {
    (void)state;
#if !ISAMAP_WITH_LLVM
    skip();
#endif
    static const char text[] = "kernel join(M=6, N=5, K=96) {\n"
                               "  in X: f32[M, N, K]  out Y: f32[M*N, K]\n"
                               "  axes k: K, i: M, j: N\n"
                               "  Y[N*i+j,k] = X[i,j,k]\n}\n";
    char folder[] = "/tmp/isamap-rows-XXXXXX", path[64], out[64], *ir;
    size_t size;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/join.isam", folder);
    snprintf(out, sizeof out, "%s/join.ll", folder);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    isamap *im = isamap_open();
    assert_int_equal(isamap_compile(im, path, out), ISAMAP_DONE);
    isamap_close(im);
    FILE *llvm = fopen(out, "r"), *all = open_memstream(&ir, &size);
    assert_non_null(llvm);
    for (int c; (c = fgetc(llvm)) != EOF;) fputc(c, all);
    fclose(llvm);
    fclose(all);
    assert_non_null(strstr(ir, "load <8 x i32>"));
    assert_null(strstr(ir, "gather"));
    free(ir);
    unlink(path);
    unlink(out);
    rmdir(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(copies_are_exact),
                                       cmocka_unit_test(rows_are_vectors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
