/* The symbolic proof on schedules written by hand, of what stays in a place while other parts of it
 * are overwritten: rings beside blocks that are kept, windows, rows of which a part is done. Beside
 * each right one some that must not be proved. The walk of elements says which are right. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "by_hand.h"

#include <string.h>

/* Two passes over 64 rows, four of them in each turn. The first `kept` rows stay in the cache, the
 * others go through a ring of `slots` behind them. `again`: which rows the second pass brings. */
static void kept_rows(int kept, int base, int slots, int reads, const char *again, bool right) {
    char text[3000];
    snprintf(text, sizeof text,
             "schedule kept on \"cpu-avx2\" { program { kernel kept() {\n"
             "in X: f32[64, 8] out O: f32[2, 64, 8] axes p: 2, r: 64, i: 8\n"
             "O[p, r, i] = max(X[r, i], 0) } }\n"
             "place X: X in dram at 0 bytes 2048 argument\n"
             "place O: O in dram at 2048 bytes 4096 argument\n"
             "place L: X in l2 at 0 bytes 2048 local place x: X in ymm at 0 bytes 32 local\n"
             "place u: X in ymm at 32 bytes 32 local place o: O in ymm at 64 bytes 32 local\n"
             "run { loop p = 0 to 2 { loop c = 0 to 16 { loop k = 0 to 4 {\n"
             "loop f = 0 to p == 0 or %s <= c*4 + k {\n"
             "issue load.f32(S = X + (c*4 + k)*32, D = x)\n"
             "issue store.f32(S = x, D = L + (min(c*4 + k, %d) + max(c*4 + k - %d, 0)%%%d)*32) }\n"
             "issue load.f32(S = L + (min(c*4 + k, %d) + max(c*4 + k - %d, 0)%%%d)*32, D = u)\n"
             "issue max.imm.f32(A = u, s = imm 0, C = o)\n"
             "do 0 axes (j: i) at (p = p, r = c*4 + k, i = 0)\n"
             "issue store.f32(S = o, D = O + p*2048 + (c*4 + k)*32) } } } } }",
             again, base, kept, slots, base, kept, reads);
    expect("cpu-avx2", text, right);
}

static void blocks_beside_rings(void **state) {
    (void)state;
    kept_rows(1, 1, 3, 3, "1", RIGHT);
    kept_rows(25, 25, 3, 3, "25", RIGHT);
    kept_rows(25, 25, 5, 5, "25", RIGHT);
    kept_rows(26, 26, 2, 2, "26", RIGHT);
    /* a kept row is taken for one of the ring, and the other way round; a ring over a kept row */
    kept_rows(25, 25, 3, 3, "26", WRONG);
    kept_rows(1, 1, 3, 3, "2", WRONG);
    kept_rows(25, 24, 3, 3, "25", WRONG);
    kept_rows(25, 25, 3, 2, "25", WRONG);
    kept_rows(26, 26, 2, 2, "25", RIGHT);
    kept_rows(26, 26, 2, 2, "64", WRONG);
}

/* Windows of `window` rows, four apart, in a ring: what two have in common is brought once. */
static void window(const char *from, int window, int ring, const char *last, bool right) {
    char text[3000];
    snprintf(text, sizeof text,
             "schedule windows on \"cpu-avx2\" { program { kernel windows() {\n"
             "in X: f32[29, 8] out O: f32[6, 8] axes p: 6, i: 8\n"
             "O[p, i] = max(X[4*p, i], X[4*p + 4, i]) } }\n"
             "place X: X in dram at 0 bytes 928 argument\n"
             "place O: O in dram at 1024 bytes 192 argument\n"
             "place L: X in l2 at 0 bytes 256 local place x: X in ymm at 0 bytes 32 local\n"
             "place u: X in ymm at 32 bytes 32 local place v: X in ymm at 64 bytes 32 local\n"
             "place o: O in ymm at 96 bytes 32 local\n"
             "run { loop p = 0 to 6 { loop r = 4*p + %s to 4*p + %d {\n"
             "issue load.f32(S = X + r*32, D = x) issue store.f32(S = x, D = L + r%%%d*32) }\n"
             "issue load.f32(S = L + (4*p)%%%d*32, D = u)\n"
             "issue load.f32(S = L + (4*p + %s)%%%d*32, D = v)\n"
             "issue max.f32(A = u, B = v, C = o) do 0 axes (j: i) at (p = p, i = 0)\n"
             "issue store.f32(S = o, D = O + p*32) } } }",
             from, window, ring, ring, last, ring);
    expect("cpu-avx2", text, right);
}

static void windows_in_rings(void **state) {
    (void)state;
    window("(p != 0)", 5, 5, "4", RIGHT);
    window("(p != 0)", 5, 6, "4", RIGHT);
    window("0", 5, 5, "4", RIGHT);
    window("(p != 0)", 5, 7, "4", RIGHT);
    /* the row in common is overwritten, or not brought; another row */
    window("(p != 0)", 5, 4, "4", WRONG);
    window("1", 5, 5, "4", WRONG);
    window("(p != 0)*2", 6, 6, "4", RIGHT);
    window("(p != 0)*3", 6, 6, "4", RIGHT);
    window("(p != 0)*5", 6, 6, "4", WRONG);
    window("(p != 0)", 5, 5, "3", WRONG);
}

/* Of four rows the columns that are done lie where the others were. */
static void columns(const char *first, const char *last, const char *read, bool right) {
    char text[4000];
    struct text rows = {0};
    for (int k = 0; k < 4; k++)
        text_printf(
            &rows,
            "issue load.f32(S = L + (%d*24 + %s)*4, D = x)\n"
            "issue max.imm.f32(A = x, s = imm 0, C = t) do 0 axes (j: i) at (r = %d, i = q)\n"
            "issue store.f32(S = t, D = L + (%d*24 + q)*4)\n",
            k,
            k == 0   ? first
            : k == 3 ? last
                     : "q",
            k, k);
    snprintf(
        text, sizeof text,
        "schedule columns on \"cpu-avx2\" { program { kernel columns() {\n"
        "in X: f32[4, 24] out O: f32[4, 24] temp T: f32[4, 24] axes r: 4, i: 24\n"
        "T[r, i] = max(X[r, i], 0)\n O[r, i] = max(T[r, i], 1) } }\n"
        "place X: X in dram at 0 bytes 384 argument\n"
        "place O: O in dram at 384 bytes 384 argument\n"
        "place L: X in l2 at 0 bytes 384 local place x: X in ymm at 0 bytes 32 local\n"
        "place t: T in ymm at 32 bytes 32 local place u: T in ymm at 64 bytes 32 local\n"
        "place o: O in ymm at 96 bytes 32 local\n"
        "run { loop r = 0 to 4 { loop i = 0 to 24 step 8 {\n"
        "issue load.f32(S = X + (r*24 + i)*4, D = x)\n"
        "issue store.f32(S = x, D = L + (r*24 + i)*4) } }\n"
        "loop q = 0 to 24 step 8 { %s loop w = 0 to 4 {\n"
        "issue load.f32(S = L + (w*24 + %s)*4, D = u) issue max.imm.f32(A = u, s = imm 1, C = o)"
        " do 1 axes (j: i) at (r = w, i = q) issue store.f32(S = o, D = O + (w*24 + q)*4)\n"
        "} } } }",
        rows.at, read);
    expect("cpu-avx2", text, right);
    text_free(&rows);
}

static void columns_in_place(void **state) {
    (void)state;
    columns("q", "q", "q", RIGHT);
    columns("min(q + 8, 16)", "q", "q", WRONG);
    columns("q", "0", "q", WRONG);
    columns("q", "q", "min(q + 8, 16)", WRONG);
}

/* One row times a matrix whose last 16 columns are cut in their middle: the instruction's rows
 * stand for no axis. */
static void row_times(const char *add, int blocks, int columns, bool right) {
    char text[3000];
    snprintf(
        text, sizeof text,
        "schedule row on \"edge16\" { program { kernel row() {\n"
        "in A: i8[64] in B: i8[64, 40] out C: i32[40] axes k: 64, j: 40\n"
        "temp P: i8[64, 40] temp D: i32[40]\n"
        "P[k, j] = B[k, j]\n D[j] = 0\n D[j] += i32(A[k]) * i32(P[k, j])\n C[j] = D[j] } }\n"
        "place A: A in dram at 0 bytes 64 argument place B: B in dram at 64 bytes 2560 argument\n"
        "place C: C in dram at 2624 bytes 160 argument\n"
        "place P: P in dram at 2816 bytes 3072 workspace layout \"i0,i1 -> i0/16, i1/16, i1%%16, "
        "i0%%16\" extent [64, 48]\n"
        "place D: D in dram at 5888 bytes 192 workspace layout \"i0 -> i0/16, i0%%16\" extent "
        "[48]\n"
        "place d: D in acc at 0 bytes 192 local place a: A in inp at 0 bytes 64 local\n"
        "place w: P in wgt at 0 bytes 768 slots 3 local\n"
        "run { fallback core llvm do 0 sync vec push bell.load sync vec push bell.exec\n"
        "sync exec pop bell.exec sync vec push bell.store sync store pop bell.store\n"
        "sync exec push e2l sync exec push e2l sync exec push e2l\n"
        "issue ld.inp(Y = 1, X = 4, y0 = 0, y1 = 0, x0 = 0, x1 = 0, ys = 16, S = A, D = a) "
        "pop bell.load loop k = 0 to 64 step 16 axis k { rotate w\n"
        "issue ld.wgt(Y = 1, X = %d, y0 = 0, y1 = 0, x0 = 0, x1 = 0, ys = 256, S = P + k*48, "
        "D = w) pop e2l push l2e\n"
        "loop j = 0 to %d step 16 hardware axis j {\n"
        "issue mm16(M = 1, add = %s, A = a + k, B = w + j*16, C = d + j*4)\n"
        "do 2 init 1 axes (i: -, j: j, k: k) at (k = k, j = j) pop l2e push e2l } }\n"
        "sync load pop e2l sync load pop e2l sync load pop e2l sync exec push e2s\n"
        "issue st.acc(Y = 1, X = 3, ys = 16, S = d, D = D) pop e2s push done.store\n"
        "sync load push done.load sync vec pop done.load sync exec push done.exec\n"
        "sync vec pop done.exec sync vec pop done.store fallback core llvm do 3 } }",
        blocks, columns, add);
    expect("edge16", text, right);
}

static void rows_of_one(void **state) {
    (void)state;
    row_times("k != 0", 3, 40, RIGHT);
    /* weights or columns that are left out; sums that begin late, or anew */
    row_times("k != 0", 2, 40, WRONG);
    row_times("k != 0", 3, 32, WRONG);
    row_times("16 < k", 3, 40, WRONG);
    row_times("1", 3, 40, WRONG);
}

/* A matrix times one column, of which 16 are stored: the others go behind the column in each row of
 * the home. `other` sets column 1, if there is one, before the store or behind it. */
static void column_of(int columns, const char *layout, int lanes, int rows, const char *other,
                      const char *behind, bool right) {
    char text[4000];
    snprintf(
        text, sizeof text,
        "schedule column on \"edge16\" { program { kernel column() {\n"
        "in A: i8[64, 32] in x: i8[32] out y: i32[64] axes i: 64, k: 32\n"
        "temp P: i8[32, 1] temp D: i32[64, %d]\n"
        "P[k, 0] = x[k]\n D[i, 0] = 0\n D[i, 0] += i32(A[i, k]) * i32(P[k, 0])\n"
        "D[i, %d] = %s\n y[i] = D[i, 0] + D[i, %d] } }\n"
        "place A: A in dram at 0 bytes 2048 argument place x: x in dram at 2048 bytes 32 argument\n"
        "place y: y in dram at 2112 bytes 256 argument\n"
        "place P: P in dram at 2432 bytes 512 workspace layout \"i0,i1 -> i0/16, i1/16, i1%%16, "
        "i0%%16\" extent [32, 16]\n"
        "place D: D in dram at 2944 bytes 4096 workspace layout \"i0,i1 -> %s\" extent [64, %d]\n"
        "place d: D in acc at 0 bytes 4096 local place a: A in inp at 0 bytes 1024 slots 3 local\n"
        "place w: P in wgt at 0 bytes 512 local\n"
        "run { fallback core llvm do 0 sync vec push bell.load sync vec push bell.exec\n"
        "sync exec pop bell.exec sync vec push bell.store sync store pop bell.store\n"
        "sync exec push e2l sync exec push e2l sync exec push e2l\n"
        "issue ld.wgt(Y = 1, X = 2, y0 = 0, y1 = 0, x0 = 0, x1 = 0, ys = 256, S = P, D = w) "
        "pop bell.load %s loop k = 0 to 32 step 16 axis k { rotate a\n"
        "issue ld.inp(Y = 64, X = 1, y0 = 0, y1 = 0, x0 = 0, x1 = 0, ys = 32, S = A + k, D = a) "
        "pop e2l push l2e loop i = 0 to 64 step 16 hardware axis i {\n"
        "issue mm16(M = 16, add = k != 0, A = a + i*16, B = w + k*16, C = d + i*64)\n"
        "do 2 init 1 axes (i: i, j: -, k: k) at (i = i, k = k) pop l2e push e2l } }\n"
        "sync load pop e2l sync load pop e2l sync load pop e2l sync exec push e2s\n"
        "issue st.acc(Y = 1, X = %d, ys = 16, S = d, D = D) pop e2s push done.store\n"
        "sync load push done.load sync vec pop done.load sync exec push done.exec\n"
        "sync vec pop done.exec sync vec pop done.store %s fallback core llvm do 4 } }",
        columns, columns - 1, columns > 1 ? "7" : "D[i, 0]", columns - 1, layout, lanes, other,
        rows, behind);
    expect("edge16", text, right);
}

static void columns_of_one(void **state) {
    (void)state;
    static const char rows[] = "i1/16, i0, i1%16", set[] = "fallback core llvm do 3";
    column_of(1, rows, 16, 64, "", set, RIGHT);
    column_of(2, rows, 16, 64, "", set, RIGHT);
    /* the store goes over column 1; rows that are left out */
    column_of(2, rows, 16, 64, set, "", WRONG);
    column_of(1, rows, 16, 48, "", set, WRONG);
    column_of(1, "i0/4, i1, i0%4", 16, 64, "", set, WRONG);
}

/* 64 columns of sums in threads' registers, of which 56 are the product's: they are known in two
 * boxes, and stored as one. */
static void columns_in_threads(int loads, int width, int room, bool right) {
    char text[3000];
    snprintf(text, sizeof text,
             "schedule product on \"gpu-sm80\" { program { kernel product() {\n"
             "in A: f16[64, 64] in B: f16[64, 56] out C: f32[64, 56]\n"
             "temp P: f16[64, 56] temp D: f32[64, 56] axes i: 64, j: 56, k: 64\n"
             "P[k, j] = B[k, j]\n D[i, j] = 0\n D[i, j] += f32(A[i, k]) * f32(P[k, j])\n"
             "C[i, j] = D[i, j] } }\n"
             "place A: A in dram at 0 bytes 8192 argument\n"
             "place B: B in dram at 8192 bytes 7168 argument\n"
             "place C: C in dram at 15360 bytes 14336 argument\n"
             "place P: P in dram at 29696 bytes 8192 workspace layout \"i0,i1 -> i0/64, i1/64, "
             "i1/8%%8, i0%%64, i1%%8\" extent [64, 64]\n"
             "place D: D in dram at 37888 bytes %d workspace layout \"i0,i1 -> i0, i1\" extent "
             "[64, %d]\n"
             "place d: D in acc at 0 bytes 128 local place a: A in smem at 0 bytes 8192 local\n"
             "place b: P in smem at 8192 bytes 8192 local\n"
             "run { fallback \"gpu-sm80\" cuda do 0\n"
             "issue cp.f16(R = 64, K = 8, ls = 64, ld = 512, S = A, D = a)\n"
             "loop m = 0 to %d {\n"
             "issue cp.f16(R = 256, K = 1, ls = 8, ld = 8, S = P + m*4096, D = b + m*4096) }\n"
             "sync copy push full\n"
             "issue block.64x64.rows.f16(K = 64, add = 0, A = a, B = b, C = d)\n"
             "do 2 init 1 axes (i: i, j: j, k: k) at (i = 0, j = 0, k = 0) pop full\n"
             "issue st.64x64.f32(R = 64, W = %d, ld = %d, S = d, D = D)\n"
             "fallback \"gpu-sm80\" cuda do 3 } }",
             64 * room * 4, room, loads, width, room);
    expect("gpu-sm80", text, right);
}

static void parts_of_registers(void **state) {
    (void)state;
    columns_in_threads(2, 64, 64, RIGHT);
    /* half of the operand, or of the result */
    columns_in_threads(1, 64, 64, WRONG);
    columns_in_threads(2, 32, 64, WRONG);
    columns_in_threads(2, 48, 64, WRONG);
}

/* Two blocks of 17 rows, of which each turn brings some more, from row `from` on: the window
 * of a sum reads rows of the turns before and the new ones at once. The second block is `block`
 * bytes behind the first. */
static void growing(const char *from, int block, bool right) {
    char text[4000];
    snprintf(
        text, sizeof text,
        "schedule growing on edge16 { program { kernel growing() {\n"
        "in A: i8[2, 17, 16] const B: i8[2, 3, 16, 16] in Z: i32[16] out C: i32[15, 16]\n"
        "axes p: 15, r: 3, b: 2, k: 16, j: 16\n"
        "C[p, j] = Z[j]\n C[p, j] += i32(A[b, p + r, k]) * i32(B[b, r, j, k]) } }\n"
        "place A: A in dram at 0 bytes 544 argument place B: B in dram at 576 bytes 1536 argument\n"
        "place Z: Z in dram at 2112 bytes 64 argument place C: C in dram at 2176 bytes 960 "
        "argument\n"
        "place a: A in inp at 0 bytes 576 local place b: B in wgt at 0 bytes 768 local\n"
        "place c: C in acc at 0 bytes 320 local\n"
        "run { sync exec push e2l sync store push s2e\n"
        "loop p0 = 0 to 15 step 5 { sync exec pop s2e\n"
        "issue ld.row(Y = 5, S = Z, D = c) do 0 axes (y: p, e: j) at (p = p0, j = 0)\n"
        "loop b0 = 0 to 2 { sync load pop e2l\n"
        "issue ld.inp(Y = 1, X = p0 + 7 - %s, y0 = 0, y1 = 0, x0 = 0, x1 = 0, ys = 16,"
        " S = A + b0*272 + %s*16, D = a + b0*%d + %s*16)\n"
        "issue ld.wgt(Y = 1, X = 3, y0 = 0, y1 = 0, x0 = 0, x1 = 0, ys = 768, S = B + b0*768, D = "
        "b) push l2e\n"
        "sync exec pop l2e\n"
        "loop r0 = 0 to 3 hardware { loop p1 = p0 to p0 + 5 hardware {\n"
        "issue mm16(M = 1, add = 1, A = a + b0*%d + (p1 + r0)*16, B = b + r0*256, C = c + (p1 - "
        "p0)*64)\n"
        "do 1 axes (i: -, j: j, k: k) at (b = b0, p = p1, r = r0, j = 0, k = 0) } }\n"
        "sync exec push e2l }\n"
        "sync exec push e2s\n"
        "issue st.acc(Y = 1, X = 5, ys = 16, S = c, D = C + p0*64) pop e2s push s2e }\n"
        "sync load pop e2l sync exec pop s2e } }",
        from, from, block, from, block);
    expect("edge16", text, right);
}

static void rows_of_several_blocks(void **state) {
    (void)state;
    growing("(p0 != 0)*(p0 + 2)", 272, RIGHT);
    growing("p0", 272, RIGHT);
    growing("(p0 != 0)*(p0 + 2)", 192, RIGHT);
    /* a row is not brought; one block's rows lie over those of the other */
    growing("(p0 != 0)*(p0 + 3)", 272, WRONG);
    growing("(p0 != 0)*(p0 + 2)", 64, WRONG);
    growing("(p0 != 0)*(p0 + 2)", 80, WRONG);
}

/* Two passes over three blocks of columns, of which the last is narrower. Of its tiles the first
 * `kept` stay, the others go through a ring of `slots` behind them. */
static void kept_tiles(int kept, int slots, const char *again, bool right) {
    char text[4000], slot[200];
    snprintf(slot, sizeof slot, "(min(x0/3*4 + c0, %d) + max(x0/3*4 + c0 - %d, 0)%%%d)*96", kept,
             kept, slots);
    snprintf(
        text, sizeof text,
        "schedule kept on edge16 { program { kernel kept() {\n"
        "in A: i8[4, 2, 8, 16] const B: i8[4, 2, 16, 16] out C: i32[2, 8, 16]\n"
        "axes t: 2, x: 8, c: 4, w: 2, k: 16, j: 16\n"
        "C[t, x, j] = 0\n C[t, x, j] += i32(A[c, w, x, k]) * i32(B[c, w, j, k]) } }\n"
        "place A: A in dram at 0 bytes 1024 argument place B: B in dram at 1024 bytes 2048 "
        "argument\n"
        "place C: C in dram at 3072 bytes 1024 argument\n"
        "place a: A in inp at 0 bytes 864 local place b: B in wgt at 0 bytes 512 local\n"
        "place d: C in acc at 0 bytes 192 local\n"
        "run { sync exec push e2l sync store push s2e\n"
        "loop t0 = 0 to 2 { loop x0 = 0 to 8 step 3 { sync exec pop s2e\n"
        "loop c0 = 0 to 4 { sync load pop e2l\n"
        "loop f = 0 to t0 == 0 or %s <= x0/3*4 + c0 {\n"
        "issue ld.inp(Y = 2, X = min(8 - x0, 3), y0 = 0, y1 = 0, x0 = 0, x1 = 0, ys = 128,"
        " S = A + c0*256 + x0*16, D = a + %s) }\n"
        "issue ld.wgt(Y = 1, X = 2, y0 = 0, y1 = 0, x0 = 0, x1 = 0, ys = 512, S = B + c0*512, D = "
        "b) push l2e\n"
        "sync exec pop l2e\n"
        "loop w0 = 0 to 2 {\n"
        "issue mm16(M = min(8 - x0, 3), add = c0 != 0 or w0 != 0, A = a + %s + w0*(min(8 - x0, "
        "3)*16), B = b + w0*256, C = d)\n"
        "do 1 init 0 axes (i: x, j: j, k: k) at (t = t0, x = x0, c = c0, w = w0, j = 0, k = 0) }\n"
        "sync exec push e2l }\n"
        "sync exec push e2s\n"
        "issue st.acc(Y = 1, X = min(8 - x0, 3), ys = 16, S = d, D = C + t0*512 + x0*64) pop e2s "
        "push s2e } }\n"
        "sync load pop e2l sync exec pop s2e } }",
        again, slot, slot);
    expect("edge16", text, right);
}

static void narrower_tiles_in_rings(void **state) {
    (void)state;
    kept_tiles(6, 3, "6", RIGHT);
    kept_tiles(5, 4, "5", RIGHT);
    kept_tiles(7, 1, "7", RIGHT);
    /* a tile of the ring is taken for a kept one */
    kept_tiles(6, 3, "7", WRONG);
    kept_tiles(5, 4, "6", WRONG);
    kept_tiles(7, 2, "8", WRONG);
}

/* Two statements write the parts of a buffer, of which one move brings elements of both. */
static void halves(int first, const char *run, const char *read, const char *last, bool right) {
    char text[2000];
    snprintf(
        text, sizeof text,
        "schedule halves on \"cpu-avx2\" { program { kernel halves() {\n"
        "in X: f32[24] in Y: f32[24, 3] out O: f32[24] temp T: f32[24] axes h: %d, i: %d, j: 24, "
        "m: 3\n"
        "T[h] = max(X[h], 0)\n T[i + %d] = 0\n T[i + %d] += Y[i, m]\n O[j] = max(T[j], 1) } }\n"
        "place X: X in dram at 0 bytes 96 argument place Y: Y in dram at 96 bytes 288 argument\n"
        "place O: O in dram at 384 bytes 96 argument place T: T in dram at 480 bytes 96 workspace\n"
        "place t: T in ymm at 0 bytes 32 local place o: O in ymm at 32 bytes 32 local\n"
        "run { %s loop c = 0 to 24 step 8 { issue load.f32(S = T + %s*4, D = t)\n"
        "issue max.imm.f32(A = t, s = imm 1, C = o) do 3 axes (j: j) at (j = c)\n"
        "issue store.f32(S = o, D = O + c*4) } %s } }",
        first, 24 - first, first, first, run, read, last);
    expect("cpu-avx2", text, right);
}

static void reads_of_two_statements(void **state) {
    (void)state;
    const char *first = "fallback core llvm do 0",
               *other = "fallback core llvm do 1 fallback core llvm do 2",
               *both = "fallback core llvm do 0 fallback core llvm do 1 fallback core llvm do 2";
    halves(12, both, "c", "", RIGHT);
    halves(8, both, "c", "", RIGHT);
    halves(23, both, "c", "", RIGHT);
    /* a part is not there, or comes too late; other elements */
    halves(12, first, "c", "", WRONG);
    halves(12, first, "c", other, WRONG);
    halves(12, other, "c", first, WRONG);
    halves(12, "fallback core llvm do 0 fallback core llvm do 1", "c", "fallback core llvm do 2",
           WRONG);
    halves(20, first, "c", other, WRONG);
    halves(12, both, "min(c, 15)", "", WRONG);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_beside_rings),     cmocka_unit_test(windows_in_rings),
        cmocka_unit_test(columns_in_place),        cmocka_unit_test(rows_of_one),
        cmocka_unit_test(columns_of_one),          cmocka_unit_test(parts_of_registers),
        cmocka_unit_test(rows_of_several_blocks),  cmocka_unit_test(narrower_tiles_in_rings),
        cmocka_unit_test(reads_of_two_statements),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
