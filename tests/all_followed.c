/* The symbolic proof on schedules written by hand, as in all_regions.c: padding that a tile holds
 * in pieces, and buffers of which each step of a recurrence uses more. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "by_hand.h"

/* Rows of q in a tile of 64 rows and 128 columns, which lie in it as pieces of several lengths: so
 * many are stored. */
static void stored_tile(int q, int rows, int columns, const char *layout, int bytes, int row,
                        bool right) {
    char text[3000];
    snprintf(
        text, sizeof text,
        "schedule padded on \"gpu-sm90\" { program { kernel padded() {\n"
        "in X: i8[2, 32, 64] const W: i8[128, 32] out O: i32[2, 128, %d] temp d: i32[2, 128, %d]\n"
        "temp V: i8[2, 32, 64] temp U: i8[128, 32] axes p: 2, c: 128, q: %d, m: 32, x: 64\n"
        "V[p, m, x] = X[p, m, x]\n U[c, m] = W[c, m]\n d[p, c, q] = 0\n"
        "d[p, c, q] += i32(V[p, m, q]) * i32(U[c, m])\n O[p, c, q] = d[p, c, q] } }\n"
        "place X: X in dram at 0 bytes 4096 argument place W: W in dram at 4096 bytes 4096 "
        "argument\n"
        "place O: O in dram at 8192 bytes %d argument\n"
        "place V: V in dram at 73728 bytes 16384 workspace\n"
        "layout \"i0,i1,i2 -> i0, i2, i1/128, i1%%128\" extent [2, 128, 64]\n"
        "place U: U in dram at 90112 bytes 16384 prepared\n"
        "layout \"i0,i1 -> i1/128, i0, i1%%128\" extent [128, 128]\n"
        "place d: d in dram at 131072 bytes %d workspace layout %s\n"
        "place d.acc: d in acc at 0 bytes 128 local place V.smem: V in smem at 0 bytes 8192 local\n"
        "place U.smem: U in smem at 8192 bytes 16384 local\n"
        "prepare { fallback \"gpu-sm90\" cuda do 1 }\n"
        "run { fallback \"gpu-sm90\" cuda do 0 loop p = 0 to 2 parallel row axis p {\n"
        "issue tma.i8(R = 64, P = 1, ls = 128, lp = 128, S = V + p*8192, D = V.smem)\n"
        "issue tma.i8(R = 128, P = 1, ls = 128, lp = 128, S = U, D = U.smem) push filled[V.smem]\n"
        "issue wgmma.64x128.i8(K = 32, add = 0, A = V.smem, B = U.smem, C = d.acc)\n"
        "do 3 init 2 axes (i: q, j: c, k: m) at (p = p, c = 0, q = 0, m = 0) pop filled[V.smem]\n"
        "issue st.wg.64x128.i32(R = %d, W = %d, ld = 128, S = d.acc, D = d + p*%d) }\n"
        "fallback \"gpu-sm90\" cuda do 4 } }",
        q, q, q, 1024 * q, bytes, layout, rows, columns, row);
    expect("gpu-sm90", text, right);
}

static void padding_in_pieces(void **state) {
    (void)state;
    stored_tile(56, 64, 128, "\"i0,i1,i2 -> i0, i2, i1\" extent [2, 128, 64]", 65536, 32768, RIGHT);
    stored_tile(56, 64, 128, "\"i0,i1,i2 -> i0, i2/64, i2%64, i1\" extent [2, 128, 64]", 65536,
                32768, RIGHT);
    stored_tile(56, 64, 128, "\"i0,i1,i2 -> i0, i2, i1\" extent [2, 128, 60]", 61440, 30720, WRONG);
    stored_tile(56, 64, 128, "\"i0,i1,i2 -> i0, i2, i1\"", 57344, 28672, WRONG);
    stored_tile(56, 64, 128, "\"i0,i1,i2 -> i0, i2/8, i1, i2%8\" extent [2, 128, 64]", 65536, 32768,
                WRONG);
}

/* Rows of a cache that grows: step t sets row t and reads rows 0 to t, by way of p. */
static void growing(const char *first, const char *read, const char *second, const char *third,
                    int at, bool right) {
    char text[2000];
    snprintf(
        text, sizeof text,
        "schedule grows on \"cpu-avx2\" { program { kernel grows() {\n"
        "in X: f32[9, 4] out y: f32[9, 4] temp K: f32[9, 4] temp p: f32[9]\n"
        "temp z: f32[4] axes s: 9\n"
        "recur t: 9 { axes d: 4\n K[t, d] = X[t, d]\n p[s] = %s where t - s >= 0\n"
        "p[s] = exp(p[s]) where t - s >= 0\n z[d] = 0\n"
        "z[d] += p[s] * K[s, d] where t - s >= 0\n y[t, d] = z[d] } } }\n"
        "place X: X in dram at 0 bytes 144 argument place y: y in dram at 192 bytes 144 argument\n"
        "place K: K in dram at 384 bytes 144 workspace\n"
        "place p: p in dram at %d bytes 36 workspace\n"
        "place z: z in dram at 640 bytes 16 workspace\n"
        "run { loop t = 0 to 9 axis t { %s\n %s\n"
        "fallback core llvm do 2 over (t = t to t + 1)\n"
        "fallback core llvm do 3 over (t = t to t + 1)\n %s\n"
        "fallback core llvm do 5 over (t = t to t + 1) } } }",
        read, at, first, second, third);
    expect("cpu-avx2", text, right);
}

#define STEP(statement, more) "fallback core llvm do " statement " over (t = t to t + 1" more ")"

static void tiles_that_end_inside(void **state) {
    const char *rows = "\"i0,i1,i2 -> i0, i2, i1\"";
    (void)state;
    stored_tile(53, 53, 128, rows, 54272, 27136, RIGHT);
    stored_tile(1, 1, 128, rows, 1024, 512, RIGHT);
    stored_tile(64, 64, 128, rows, 65536, 32768, RIGHT);
    /* a row less, one that is the next tile's first, a column less, rows of another length */
    stored_tile(53, 52, 128, rows, 54272, 27136, WRONG);
    stored_tile(53, 54, 128, rows, 54272, 27136, WRONG);
    stored_tile(53, 53, 127, rows, 54272, 27136, WRONG);
    stored_tile(53, 53, 128, "\"i0,i1,i2 -> i0, i2, i1\" extent [2, 130, 53]", 55120, 27560, WRONG);
}

static void caches_that_grow(void **state) {
    (void)state;
    growing(STEP("0", ""), "K[s, 0]", STEP("1", ""), STEP("4", ""), 576, RIGHT);
    growing(STEP("0", ""), "K[s, 0]", STEP("1", ""),
            STEP("4", ", d = 0 to 2") STEP("4", ", d = 2 to 4"), 576, RIGHT);
    growing(STEP("0", ""), "X[s, 0]", STEP("1", ""), STEP("4", ""), 576, RIGHT);
    /* row t is read before it is there; the first rows come late, or never */
    growing("", "K[s, 0]", STEP("1", "") STEP("0", ""), STEP("4", ""), 576, WRONG);
    growing(STEP("0", ", d = 0 to 3"), "K[s, 0]", STEP("1", "") STEP("0", ", d = 3 to 4"),
            STEP("4", ""), 576, RIGHT);
    growing(STEP("0", ", d = 1 to 4"), "K[s, 0]", STEP("1", "") STEP("0", ", d = 0 to 1"),
            STEP("4", ""), 576, WRONG);
    /* a part of what the step sets; twice; after it was read */
    growing(STEP("0", ""), "K[s, 0]", STEP("1", ", s = 0 to 5"), STEP("4", ""), 576, WRONG);
    growing(STEP("0", ""), "K[s, 0]", STEP("1", ", s = 1 to 9"), STEP("4", ""), 576, WRONG);
    growing(STEP("0", ""), "K[s, 0]", STEP("1", "") STEP("1", ""), STEP("4", ""), 576, WRONG);
    growing(STEP("0", ""), "K[s, 0]", STEP("1", ""), STEP("4", ", s = 0 to 8"), 576, WRONG);
    growing(STEP("0", ""), "K[s, 0]", "", STEP("4", "") STEP("1", ""), 576, WRONG);
    /* the last values of p lie where z does, which is set meanwhile; where the cache does */
    growing(STEP("0", ""), "K[s, 0]", STEP("1", ""), STEP("4", ""), 616, WRONG);
    growing(STEP("0", ""), "K[s, 0]", STEP("1", ""), STEP("4", ""), 400, WRONG);
}

/* A sum of three in pairs: of the second pair one is padding, at home for the one factor and in a
 * tile for the other. */
static void odd_sum(const char *layout, int bytes, int row, const char *between, bool right) {
    char text[3000];
    snprintf(
        text, sizeof text,
        "schedule odd on \"cpu-avx512\" { program { kernel odd() {\n"
        "in A: bf16[2, 3] in B: bf16[3, 16] out C: f32[2, 16] temp P: bf16[2, 3]\n"
        "temp Q: bf16[3, 16] axes i: 2, j: 16, k: 3\n Q[k, j] = B[k, j]\n"
        "P[i, k] = A[i, k]\n C[i, j] = 0\n C[i, j] += f32(P[i, k]) * f32(Q[k, j]) } }\n"
        "place A: A in dram at 0 bytes 12 argument place B: B in dram at 64 bytes 96 argument\n"
        "place C: C in dram at 192 bytes 128 argument\n"
        "place P: P in dram at 512 bytes %d workspace %s\n"
        "place Q: Q in dram at 576 bytes 128 workspace\n"
        "layout \"i0,i1 -> i1/16, i0/2, i1%%16, i0%%2\" extent [4, 16]\n"
        "place c: C in zmm at 0 bytes 64 local place q: Q in zmm at 64 bytes 64 local\n"
        "place p: P in zmm at 128 bytes 64 local\n"
        "run { fallback core llvm do 0 fallback core llvm do 1 %s loop i = 0 to 2 {\n"
        "issue zero.f32(C = c) do 2 axes (j: j) at (i = i, j = 0) loop k = 0 to 4 step 2 {\n"
        "issue load.bf16.pairs(S = Q + k*32, D = q)\n"
        "issue dot.bf16(A = P + (k + i*%d)*2, B = q, C = c)\n"
        "do 3 axes (j: j, k: k) at (i = i, j = 0, k = k) }\n"
        "issue store.f32(S = c, D = C + i*64) } } }",
        bytes, layout, between, row);
    expect("cpu-avx512", text, right);
}

static void sums_of_odd_lengths(void **state) {
    (void)state;
    odd_sum("layout \"i0,i1 -> i0, i1/2, i1%2\" extent [2, 4]", 16, 4, "", RIGHT);
    odd_sum("extent [2, 4]", 16, 4, "", RIGHT);
    odd_sum("extent [2, 4]", 16, 4, "issue load.bf16.masked(J = 3, S = P + 8, D = p)", RIGHT);
    /* something stands there; the next row does; so it does where the room is elsewhere */
    odd_sum("extent [2, 4]", 16, 4,
            "issue load.bf16.masked(J = 3, S = P + 8, D = p)\n"
            "issue store.bf16.masked(J = 4, S = p, D = P)",
            WRONG);
    odd_sum("", 16, 3, "", WRONG);
    odd_sum("extent [3, 3]", 18, 3, "", WRONG);
}

/* The second half of a tile holds nothing, and is moved with the first. */
static void half_moved(const char *second, const char *from, bool right) {
    char text[2000];
    snprintf(
        text, sizeof text,
        "schedule half on \"cpu-avx2\" { program { kernel half() {\n"
        "in X: f32[8] out O: f32[8] temp T: f32[8] axes i: 8\n"
        "T[i] = max(X[i], 0)\n O[i] = max(T[i], 1) } }\n"
        "place X: X in dram at 0 bytes 32 argument place O: O in dram at 64 bytes 32 argument\n"
        "place T: T in l2 at 0 bytes 64 local place x: X in ymm at 0 bytes 32 local\n"
        "place t: T in ymm at 32 bytes 64 local place u: T in ymm at 96 bytes 32 local\n"
        "place o: O in ymm at 128 bytes 32 local\n"
        "run { issue load.f32(S = X, D = x) issue max.imm.f32(A = x, s = imm 0, C = t)\n"
        "do 0 axes (j: i) at (i = 0) issue store.f32(S = t, D = T)\n"
        "issue store.f32(S = t + 32, D = T + %s) issue load.f32(S = T + %s, D = u)\n"
        "issue max.imm.f32(A = u, s = imm 1, C = o) do 1 axes (j: i) at (i = 0)\n"
        "issue store.f32(S = o, D = O) } }",
        second, from);
    expect("cpu-avx2", text, right);
}

static void what_is_not_known_is_moved(void **state) {
    (void)state;
    half_moved("32", "0", RIGHT);
    half_moved("0", "0", WRONG);
    half_moved("16", "0", WRONG);
    half_moved("32", "32", WRONG);
    half_moved("32", "16", WRONG);
}

/* One loop brings the columns of eight rows, and then those of the last two, in vectors of eight.
 */
static void last_rows(int loads, const char *from, bool right) {
    char text[2000];
    snprintf(
        text, sizeof text,
        "schedule rows on \"cpu-avx2\" { program { kernel rows() {\n"
        "in X: f32[10, 4] out O: f32[4, 10] temp T: f32[10, 4] axes a: 10, b: 4\n"
        "T[a, b] = max(X[a, b], 0)\n O[b, a] = max(T[a, b], 1) } }\n"
        "place X: X in dram at 0 bytes 160 argument place O: O in dram at 192 bytes 160 argument\n"
        "place T: T in dram at 384 bytes 256 workspace layout \"i0,i1 -> i0/8, i1, i0%%8\" extent "
        "[16, 4]\n"
        "place L: T in l2 at 0 bytes 256 local place x: T in ymm at 288 bytes 32 local\n"
        "place t: T in ymm at 0 bytes 256 local place o: O in ymm at 256 bytes 32 local\n"
        "run { fallback core llvm do 0\n"
        "loop l = 0 to 4 { issue load.f32(S = T + l*32, D = x) issue store.f32(S = x, D = L + "
        "l*32) }\n"
        "loop l = 4 to 8 { issue load.f32(S = T + l*32, D = x) issue store.f32(S = x, D = L + "
        "l*32) }\n"
        "loop m = 0 to %d unrolled { issue load.f32(S = L + %s*32, D "
        "= t + "
        "m*32) }\n"
        "loop c = 0 to 4 unrolled { issue max.imm.f32(A = t + c*32, s = imm 1, C = o) do 1 axes "
        "(j: a) at "
        "(a = 0, b = c)\n"
        "issue store.f32(S = o, D = O + c*40)\n"
        "issue max.imm.f32(A = t + c*32 + 128, s = imm 1, C = o) do 1 axes (j: a) at (a = 8, b = "
        "c)\n"
        "issue store.f32.masked(J = 2, S = o, D = O + c*40 + 32) } } }",
        loads, from);
    expect("cpu-avx2", text, right);
}

static void rows_in_several_patterns(void **state) {
    (void)state;
    last_rows(8, "m", RIGHT);
    last_rows(7, "m", WRONG);
    last_rows(8, "min(m, 6)", WRONG);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_in_several_patterns), cmocka_unit_test(padding_in_pieces),
        cmocka_unit_test(tiles_that_end_inside),    cmocka_unit_test(caches_that_grow),
        cmocka_unit_test(sums_of_odd_lengths),      cmocka_unit_test(what_is_not_known_is_moved)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
