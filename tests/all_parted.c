/* The symbolic proof on schedules written by hand, of homes that the host fills in turns: every
 * second row, then the others. Beside each right one some that must not be proved. The walk of
 * elements says which are right. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "by_hand.h"

#include <string.h>

/* Row 2 k + l of T is row k of block l of X. `first` fills T, `last` reads it; U lies at `address`
 * and is nothing that O needs. */
static void rows(const char *first, const char *last, int address, bool right) {
    char text[3000];
    snprintf(text, sizeof text,
             "schedule rows on \"cpu-avx2\" { program { kernel rows() {\n"
             "in X: f32[2, 12, 8] out O: f32[24, 8] out V: f32[24, 8] temp T: f32[24, 8]\n"
             "temp U: f32[24, 8] axes l: 2, k: 12, r: 24, i: 8\n"
             "T[2*k + l, i] = max(X[l, k, i], 0)\n U[r, i] = 1\n V[r, i] = U[r, i]\n"
             "O[r, i] = max(T[r, i], 1) } }\n"
             "place X: X in dram at 0 bytes 768 argument\n"
             "place O: O in dram at 768 bytes 768 argument\n"
             "place V: V in dram at 1536 bytes 768 argument\n"
             "place T: T in dram at 2304 bytes 768 workspace\n"
             "place U: U in dram at %d bytes 768 workspace\n"
             "place x: X in ymm at 0 bytes 32 local place t: T in ymm at 32 bytes 32 local\n"
             "place o: O in ymm at 64 bytes 32 local place u: T in ymm at 96 bytes 32 local\n"
             "run { %s %s } }",
             address, first, last);
    expect("cpu-avx2", text, right);
}

#define DO(statement, over) "fallback core llvm do " #statement " over (" over ") "
#define OTHERS "fallback core llvm do 1 fallback core llvm do 2 "
#define BY_HOST OTHERS "fallback core llvm do 3 "
#define BY_MOVES                                                                                   \
    OTHERS "loop r = 0 to 24 { issue load.f32(S = T + r*32, D = u)\n"                              \
           "issue max.imm.f32(A = u, s = imm 1, C = o) do 3 axes (j: i) at (r = r, i = 0)\n"       \
           "issue store.f32(S = o, D = O + r*32) }"
/* A register gets block `l`, and keeps it. */
#define IN_REGISTERS(l)                                                                            \
    "loop k = 0 to 12 { issue load.f32(S = X + " #l "*384 + k*32, D = x)\n"                        \
    "issue max.imm.f32(A = x, s = imm 0, C = t) do 0 axes (j: i) at (l = " #l                      \
    ", k = k, i = 0) }\n"

static void rows_in_turns(void **state) {
    (void)state;
    static const char *const read[] = {BY_HOST, BY_MOVES};
    for (int k = 0; k < 2; k++) {
        rows("loop l = 0 to 2 { " DO(0, "l = l to l + 1") "}", read[k], 3072, RIGHT);
        rows("loop l = 0 to 2 { " DO(0, "l = 1 - l to 2 - l") "}", read[k], 3072, RIGHT);
        rows("loop i = 0 to 8 step 4 { loop l = 0 to 2 { " DO(
                 0, "l = l to l + 1, i = i to i + 4") "} }",
             read[k], 3072, RIGHT);
        rows("loop l = 0 to 2 { loop i = 0 to 8 step 2 { " DO(
                 0, "l = l to l + 1, i = i to i + 2") "} }",
             read[k], 3072, RIGHT);
        rows("loop l = 0 to 2 { loop k = 0 to 12 step 3 { " DO(
                 0, "l = l to l + 1, k = k to k + 3") "} }",
             read[k], 3072, RIGHT);
        /* rows that are left out, or twice */
        rows("loop l = 0 to 1 { " DO(0, "l = l to l + 1") "}", read[k], 3072, WRONG);
        rows("loop l = 0 to 2 { " DO(0, "l = 0 to 1") "}", read[k], 3072, WRONG);
        rows("loop l = 0 to 2 { " DO(0, "l = l to l + 1, k = 0 to 11") "}", read[k], 3072, WRONG);
        rows("loop l = 0 to 2 { " DO(0, "l = l to l + 1, k = 0 to 12 - l") "}", read[k], 3072,
             WRONG);
        rows("loop i = 0 to 8 step 4 { loop l = 0 to 2 { " DO(
                 0, "l = l to l + 1, i = i to i + 3") "} }",
             read[k], 3072, WRONG);
        /* read between the turns; a unit has the other rows, or the first ones */
        rows(DO(0, "l = 0 to 1"), k ? BY_MOVES DO(0, "l = 1 to 2") : BY_HOST DO(0, "l = 1 to 2"),
             3072, WRONG);
        rows(DO(0, "l = 0 to 1") IN_REGISTERS(1), read[k], 3072, WRONG);
        rows(IN_REGISTERS(0) DO(0, "l = 1 to 2"), read[k], 3072, WRONG);
        /* other bytes are written there, between the turns or behind them */
        rows("loop l = 0 to 2 { " DO(0, "l = l to l + 1") "}", read[k], 2560, WRONG);
    }
    rows(OTHERS "loop l = 0 to 2 { " DO(0, "l = l to l + 1") "}", "fallback core llvm do 3", 2304,
         RIGHT);
    rows(DO(0, "l = 0 to 1") OTHERS DO(0, "l = 1 to 2"), "fallback core llvm do 3", 3072, RIGHT);
    rows(DO(0, "l = 0 to 1") OTHERS DO(0, "l = 1 to 2"), "fallback core llvm do 3", 2304, WRONG);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_in_turns)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
