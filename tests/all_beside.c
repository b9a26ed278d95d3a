/* Instructions that read one operand at several places: found where the program reads as far
 * beside, and nowhere else; simulated with schedules verified, also on random decisions, and
 * executed. */
#include "isamap.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#define MACHINE "tests/data/machines/mapper/beside.xml"

static const struct {
    const char *text, *instruction;
    double operations; /* on it; 0: none */
} table[] = {
    {"kernel p(M=5, N=200) {\n  in A: i32[M, N+1]  out C: i32[M, N]\n  axes i: M, j: N\n"
     "  C[i, j] = A[i, j+1] - A[i, j]\n}\n",
     "operations_on.slope", 1000},
    {"kernel p(M=5, N=200) {\n  in A: i32[M, N+1]  out C: i32[M, N]\n  axes i: M, j: N\n"
     "  C[i, j] = A[i, j] - A[i, j+1]\n}\n",
     "operations_on.slope", 0},
    {"kernel p(N=40) {\n  in A: i32[N+2]  out C: i32[N]\n  axes j: N\n  C[j] = A[j+2] - A[j]\n}\n",
     "operations_on.slope", 0},
    {"kernel p(N=40) {\n  in A: i32[N+1]  in B: i32[N+1]  out C: i32[N]\n  axes j: N\n"
     "  C[j] = A[j+1] - B[j]\n}\n",
     "operations_on.slope", 0},
    {"kernel p(N=40) {\n  in A: i32[N]  out C: i32[N]\n  axes j: N\n"
     "  C[j] = A[j+1 else 0] - A[j]\n}\n",
     "operations_on.slope", 0},
    {"kernel p(N=40) {\n  in A: i32[2*N+1]  out C: i32[N]\n  axes j: N\n"
     "  C[j] = A[2*j+2] - A[2*j]\n}\n",
     "operations_on.slope", 0}, /* no stride */
    {"kernel p(M=9, N=40) {\n  in A: i32[M+2, N]  out C: i32[M, N]\n  axes i: M, j: N\n"
     "  C[i, j] = A[i+2, j] + (A[i+1, j] + A[i, j])\n}\n",
     "operations_on.blur", 720},
    {"kernel p(M=9, N=40) {\n  in A: i32[M, N+2]  out C: i32[M, N]\n  axes i: M, j: N\n"
     "  C[i, j] = A[i, j] + A[i, j+1] + A[i, j+2]\n}\n",
     "operations_on.blur", 0}, /* its second dimension has no stride */
    {"kernel p(M=9, N=40) {\n  in A: i32[M+1, N]  out C: i32[M, N]  temp T: i32[M+1, N]\n"
     "  axes i: M, j: N, k: M+1\n  T[k, j] = A[k, j] * A[k, j] + 3\n"
     "  C[i, j] = T[i+1, j] - T[i, j]\n}\n",
     NULL, 0},
    {"kernel p(M=5, N=70) {\n  in A: i32[M, N+1]  out C: i32[M, N]  temp T: i32[M, N+1]\n"
     "  axes i: M, j: N, k: N+1\n  T[i, k] = A[i, k] * 2\n  C[i, j] = T[i, j+1] - T[i, j]\n}\n",
     "operations_on.slope", 350},
};

static void run(const char *path, int k, const char *approach, const char *seed) {
    isamap *im = isamap_open();
    isamap_option(im, "machine", MACHINE);
    isamap_option(im, "verify", NULL);
    isamap_option(im, "check", NULL);
    isamap_option(im, "approach", approach);
    isamap_option(im, "seed", seed);
    int status = isamap_sim(im, path);
    if (status) fprintf(stderr, "%s\n%s", table[k].text, isamap_messages(im));
    assert_int_equal(status, ISAMAP_DONE);
    assert_true(isamap_number(im, "max_abs_error") == 0);
    if (table[k].instruction && approach[0] == 'h') {
        double n = isamap_number(im, table[k].instruction);
        bool right = table[k].operations > 0 ? n == table[k].operations : n != n;
        if (!right) fprintf(stderr, "%s%g\n", table[k].text, n);
        assert_true(right);
    }
    if (approach[0] == 'h') assert_int_equal(isamap_run(im, path), ISAMAP_DONE);
    isamap_close(im);
}

static void test_programs(void **state) {
    (void)state;
    char path[] = "/tmp/isamap-beside-XXXXXX.isam";
    int file = mkstemps(path, 5);
    assert_true(file >= 0);
    close(file);
    for (int k = 0; k < (int)(sizeof table / sizeof *table); k++) {
        FILE *f = fopen(path, "w");
        assert_non_null(f);
        fputs(table[k].text, f);
        fclose(f);
        run(path, k, "heuristic", "1");
        run(path, k, "random", "2");
        run(path, k, "random", "3");
    }
    unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_programs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
