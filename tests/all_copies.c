/* Plain copies as the backend of this computer compiles them: rows, transpositions, padding with
 * any value, strides, odd extents, every size of element; compared with the interpreter, exactly.
 */
#include "isamap.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
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

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(copies_are_exact)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
