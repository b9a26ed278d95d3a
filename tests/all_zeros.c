/* The symbolic proof on schedules written by hand, of zeros that homes hold behind the ends of
 * their rows and that a sum adds. Beside each right one some that must not be proved. The walk of
 * elements says which are right. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "by_hand.h"

#include <string.h>

/* Rows of six of which a vector adds eight. The host fills two rows of T at a time; U lies at
 * `address`, and the host fills it before T, or behind its use. */
static void sums(const char *layout, int bytes, const char *row, int address, const char *before,
                 const char *behind, bool right) {
    char text[3000];
    snprintf(
        text, sizeof text,
        "schedule sums on \"cpu-avx2\" { program { kernel sums() {\n"
        "in X: f32[6, 6] out O: f32[6] out V: f32[6, 8] temp T: f32[6, 6] temp U: f32[6, 8]\n"
        "axes p: 6, i: 6, u: 8\n"
        "T[p, i] = max(X[p, i], 0)\n O[p] = 0\n O[p] += T[p, i]\n"
        "U[p, u] = 1\n V[p, u] = U[p, u] } }\n"
        "place X: X in dram at 0 bytes 144 argument place O: O in dram at 160 bytes 24 argument\n"
        "place V: V in dram at 192 bytes 192 argument\n"
        "place T: T in dram at 512 bytes %d workspace layout %s\n"
        "place U: U in dram at %d bytes 192 workspace\n"
        "place t: T in ymm at 0 bytes 32 local place o: O in ymm at 32 bytes 32 local\n"
        "run { loop g = 0 to 6 step 2 { %s fallback core llvm do 0 over (p = g to g + 2)\n"
        "loop p = g to g + 2 { issue load.f32(S = T + %s, D = t)\n"
        "issue add.across.f32(J = 8, more = 0, A = t, C = o)\n"
        "do 2 init 1 axes (j: i) at (p = p, i = 0)\n"
        "issue store.f32.masked(J = 1, S = o, D = O + p*4) } %s } } }",
        bytes, layout, address, before, row, behind);
    expect("cpu-avx2", text, right);
}

#define OTHERS                                                                                     \
    "fallback core llvm do 3 over (p = g to g + 2) fallback core llvm do 4 over (p = g to g + 2)"

static void rows_that_end_in_zeros(void **state) {
    (void)state;
    sums("\"i0,i1 -> i0, i1\" extent [6, 8]", 192, "p*32", 1024, "", OTHERS, RIGHT);
    sums("\"i0,i1 -> i0%2, i1\" extent [6, 8]", 64, "(p - g)*32", 1024, "", OTHERS, RIGHT);
    sums("\"i0,i1 -> i0%2, i1\" extent [6, 8]", 64, "(p - g)*32", 1024, OTHERS, "", RIGHT);
    sums("\"i0,i1 -> i0%2, i1/4, i1%4\" extent [6, 8]", 64, "(p - g)*32", 1024, "", OTHERS, RIGHT);
    /* no room behind a row, where the next one is, or the row itself once more */
    sums("\"i0,i1 -> i0%2, i1\"", 64, "(p - g)*24", 1024, "", OTHERS, WRONG);
    sums("\"i0,i1 -> i0%2, i1%6\" extent [6, 8]", 64, "(p - g)*24", 1024, "", OTHERS, WRONG);
    /* what is of the row before, or of the next one */
    sums("\"i0,i1 -> i0%2, i1\" extent [6, 8]", 64, "(g + 1 - p)*32", 1024, "", OTHERS, WRONG);
    sums("\"i0,i1 -> i1, i0%2\" extent [6, 8]", 64, "(p - g)*4", 1024, "", OTHERS, WRONG);
    /* from the second turn on other elements are where the zeros were */
    sums("\"i0,i1 -> i0, i1\" extent [6, 8]", 192, "p*32", 576, "", OTHERS, WRONG);
    sums("\"i0,i1 -> i0%2, i1\" extent [6, 8]", 64, "(p - g)*32", 512, "", OTHERS, WRONG);
    sums("\"i0,i1 -> i0%2, i1\" extent [6, 8]", 64, "(p - g)*32", 512, OTHERS, "", WRONG);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_that_end_in_zeros)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
