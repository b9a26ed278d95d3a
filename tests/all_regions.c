/* The symbolic proof on schedules written by hand: what it has to follow, and beside each what it
 * must not prove. The walk of elements says which are right. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "by_hand.h"

#include <string.h>

/* A group's tile of four rows in a cache: its producer writes it in the last of two turns, its
 * consumer reads it, and then it is the next four rows' tile. */
static void tile(const char *turn, const char *rows, const char *to, const char *from,
                 const char *between, bool right) {
    char text[3000];
    snprintf(
        text, sizeof text,
        "schedule tiles on \"cpu-avx2\" { program { kernel tiles() {\n"
        "in X: f32[16, 16] out O: f32[16, 16] temp T: f32[16, 16] axes p: 16, i: 16\n"
        "T[p, i] = max(X[p, i], 0)\n O[p, i] = max(T[p, i], 1) } }\n"
        "place X: X in dram at 0 bytes 1024 argument\n"
        "place O: O in dram at 1024 bytes 1024 argument\n"
        "place T: T in l2 at 0 bytes 256 local place x: X in ymm at 0 bytes 32 local\n"
        "place t: T in ymm at 32 bytes 32 local place u: T in ymm at 64 bytes 32 local\n"
        "place o: O in ymm at 96 bytes 32 local\n"
        "run { loop g = 0 to 16 step 4 {\n"
        "loop c = 0 to 2 { loop p = g to g + %s { loop i = 0 to 16 step 8 {\n"
        "issue load.f32(S = X + (p*16 + i)*4, D = x)\n"
        "loop once = 0 to %s { issue max.imm.f32(A = x, s = imm 0, C = t)\n"
        "do 0 axes (j: i) at (p = p, i = i) issue store.f32(S = t, D = T + (%s + i)*4) }\n"
        "} } } %s\n"
        "loop q = g to g + 4 { loop i = 0 to 16 step 8 {\n"
        "issue load.f32(S = T + (%s + i)*4, D = u) issue max.imm.f32(A = u, s = imm 1, C = o)\n"
        "do 1 axes (j: i) at (p = q, i = i) issue store.f32(S = o, D = O + (q*16 + i)*4)\n"
        "} } } } }",
        rows, turn, to, between, from);
    expect("cpu-avx2", text, right);
}

static void tiles_of_groups(void **state) {
    (void)state;
    tile("c == 1", "4", "(p - g)*16", "(q - g)*16", "", RIGHT);
    /* the bytes of a row are another row's before it is read */
    tile("c == 1", "4", "(p - g)*16", "(q - g)*16", "issue store.f32(S = x, D = T + 64)", WRONG);
    tile("c == 1", "4", "(p - g)*16", "(q - g)*16", "issue store.f32(S = t, D = T + 64)", WRONG);
    tile("c == 1", "4", "(p - g)*16", "(q - g)*16", "issue store.f32(S = t, D = T + 224)", RIGHT);
    /* one row short; one row off; rows in another order */
    tile("c == 1", "3", "(p - g)*16", "(q - g)*16", "", WRONG);
    tile("c == 1", "4", "(p - g)*16", "(q - g + 1)*16", "", WRONG);
    tile("c == 1", "4", "(g + 3 - p)*16", "(q - g)*16", "", WRONG);
    /* what the first tile left */
    tile("g == 0", "4", "(p - g)*16", "(q - g)*16", "", WRONG);
    tile("c == 0", "4", "(p - g)*16", "(q - g)*16", "", RIGHT);
}

/* What an iteration leaves for a later one is not forgotten: row p is read in the iteration after
 * the one that wrote it, where it is the first use. */
static void later(const char *row, const char *bytes, bool right) {
    char text[2000];
    snprintf(text, sizeof text,
             "schedule later on \"cpu-avx2\" { program { kernel later() {\n"
             "in X: f32[17, 8] out O: f32[16, 8] temp T: f32[17, 8] axes p: 16, r: 17, i: 8\n"
             "T[r, i] = max(X[r, i], 0)\n O[p, i] = max(T[p, i], T[p + 1, i]) } }\n"
             "place X: X in dram at 0 bytes 544 argument\n"
             "place O: O in dram at 544 bytes 512 argument\n"
             "place T: T in l2 at 0 bytes %s local place x: X in ymm at 0 bytes 32 local\n"
             "place t: T in ymm at 32 bytes 32 local place u: T in ymm at 64 bytes 32 local\n"
             "place v: T in ymm at 128 bytes 32 local place o: O in ymm at 96 bytes 32 local\n"
             "run { loop w = 0 to 17 {\n"
             "issue load.f32(S = X + w*32, D = x)\n"
             "issue max.imm.f32(A = x, s = imm 0, C = t) do 0 axes (j: i) at (r = w, i = 0)\n"
             "issue store.f32(S = t, D = T + %s) loop some = 0 to 0 < w {\n"
             "issue load.f32(S = T + (w - 1)%%2*32, D = u) issue load.f32(S = T + w%%2*32, D = v)\n"
             "issue max.f32(A = u, B = v, C = o) do 1 axes (j: i) at (p = w - 1, i = 0)\n"
             "issue store.f32(S = o, D = O + (w - 1)*32) } } } }",
             bytes, row);
    expect("cpu-avx2", text, right);
}

static void rows_for_later(void **state) {
    (void)state;
    later("w%2*32", "64", RIGHT);
    later("0", "64", WRONG);
    later("(w + 1)%2*32", "64", RIGHT); /* both rows: a maximum does not ask which is which */
    later("w%3*32", "96", WRONG);
}

/* Two blocks of rows in rings: each turn brings one row of each block, over the oldest one. */
static void ring(int rows, int block, const char *first, const char *last, bool right) {
    char text[3000];
    snprintf(
        text, sizeof text,
        "schedule rings on \"cpu-avx2\" { program { kernel rings() {\n"
        "in X: f32[2, 22, 8] out O: f32[2, 20, 8] temp T: f32[2, 22, 8]\n"
        "axes b: 2, r: 22, p: 20, i: 8\n"
        "T[b, r, i] = max(X[b, r, i], 0)\n"
        "O[b, p, i] = max(T[b, p, i], T[b, p + 2, i]) } }\n"
        "place X: X in dram at 0 bytes 1408 argument\n"
        "place O: O in dram at 1408 bytes 1280 argument\n"
        "place T: T in l2 at 0 bytes 320 local place x: X in ymm at 0 bytes 32 local\n"
        "place t: T in ymm at 32 bytes 32 local place u: T in ymm at 64 bytes 32 local\n"
        "place v: T in ymm at 128 bytes 32 local place o: O in ymm at 96 bytes 32 local\n"
        "run { loop p = 0 to 20 { loop b = 0 to 2 { loop r = p + (p != 0)*2 to p + 3 {\n"
        "issue load.f32(S = X + b*704 + r*32, D = x)\n"
        "issue max.imm.f32(A = x, s = imm 0, C = t) do 0 axes (j: i) at (b = b, r = r, i = 0)\n"
        "issue store.f32(S = t, D = T + b*%d + r%%%d*32) }\n"
        "issue load.f32(S = T + b*%d + %s%%%d*32, D = u)\n"
        "issue load.f32(S = T + b*%d + %s%%%d*32, D = v)\n"
        "issue max.f32(A = u, B = v, C = o) do 1 axes (j: i) at (b = b, p = p, i = 0)\n"
        "issue store.f32(S = o, D = O + b*640 + p*32) } } } }",
        block, rows, block, first, rows, block, last, rows);
    expect("cpu-avx2", text, right);
}

static void rows_in_rings(void **state) {
    (void)state;
    ring(4, 128, "p", "(p + 2)", RIGHT);
    ring(5, 160, "p", "(p + 2)", RIGHT);
    ring(3, 96, "p", "(p + 2)", RIGHT);
    ring(4, 160, "p", "(p + 2)", RIGHT);
    /* a row short; blocks that overlap; other rows */
    ring(2, 64, "p", "(p + 2)", WRONG);
    ring(4, 96, "p", "(p + 2)", WRONG);
    ring(4, 128, "(p + 1)", "(p + 2)", WRONG);
    ring(4, 128, "p", "(p + 3)", WRONG);
    ring(5, 160, "(p + 4)", "(p + 2)", WRONG);
}

/* A vector of eight of which four are the row's: the others go over what comes behind them. */
static void padded_store(const char *before, const char *behind, bool right) {
    char text[2000];
    snprintf(
        text, sizeof text,
        "schedule padded on \"cpu-avx2\" { program { kernel padded() {\n"
        "in X: f32[4, 8] in Y: f32[4, 4] out O: f32[4, 8] axes p: 4, i: 4\n"
        "O[p, i + 4] = Y[p, i]\n O[p, i] = max(X[p, i], 0) } }\n"
        "place X: X in dram at 0 bytes 128 argument place Y: Y in dram at 128 bytes 64 argument\n"
        "place O: O in dram at 192 bytes 128 argument\n"
        "place x: X in ymm at 0 bytes 32 local place o: O in ymm at 32 bytes 32 local\n"
        "run { loop p = 0 to 4 { %s\n"
        "issue load.f32(S = X + p*32, D = x) issue max.imm.f32(A = x, s = imm 0, C = o)\n"
        "do 1 axes (j: i) at (p = p, i = 0) issue store.f32(S = o, D = O + p*32) %s } } }",
        before, behind);
    expect("cpu-avx2", text, right);
}

/* A home of two rows that have room for what is behind their four elements, or not. */
static void padded_rows(const char *layout, int bytes, bool right) {
    char text[2000];
    snprintf(
        text, sizeof text,
        "schedule padded on \"cpu-avx2\" { program { kernel padded() {\n"
        "in X: f32[4, 8] out O: f32[4, 4] temp T: f32[4, 4] axes p: 4, i: 4\n"
        "T[p, i] = max(X[p, i], 0)\n O[p, i] = T[p, i] } }\n"
        "place X: X in dram at 0 bytes 128 argument place O: O in dram at 128 bytes 64 argument\n"
        "place T: T in dram at 192 bytes %d workspace layout %s\n"
        "place x: X in ymm at 0 bytes 32 local place t: T in ymm at 32 bytes 32 local\n"
        "run { loop g = 0 to 4 step 2 { loop d = 0 to 2 {\n"
        "issue load.f32(S = X + (g + 1 - d)*32, D = x)\n"
        "issue max.imm.f32(A = x, s = imm 0, C = t) do 0 axes (j: i) at (p = g + 1 - d, i = 0)\n"
        "issue store.f32(S = t, D = T + (1 - d)*%d) }\n"
        "fallback core llvm do 1 over (p = g to g + 2) } } }",
        bytes, layout, bytes / 2);
    expect("cpu-avx2", text, right);
}

static void padding_of_homes(void **state) {
    (void)state;
    const char *part = "fallback core llvm do 0 over (p = p to p + 1)";
    padded_store("", part, RIGHT);
    padded_store(part, "", WRONG); /* the other part's row is gone */
    padded_rows("\"i0,i1 -> i0%2, i1/8, i1%8\" extent [4, 8]", 64, RIGHT);
    padded_rows("\"i0,i1 -> i0%2, i1\"", 32, WRONG); /* the row behind is gone */
}

/* Host work reads a home and writes another one, whose bytes begin with its last element. */
static void overlapping(int at, bool right) {
    char text[1000];
    snprintf(
        text, sizeof text,
        "schedule copies on \"cpu-avx2\" { program { kernel copies() {\n"
        "in X: f32[4, 8] out O: f32[4, 8] temp T: f32[4, 8] temp U: f32[4, 8] axes p: 4, i: 8\n"
        "T[p, i] = max(X[p, i], 0)\n U[p, i] = T[p, i]\n O[p, i] = U[p, i] } }\n"
        "place X: X in dram at 0 bytes 128 argument place O: O in dram at 128 bytes 128 argument\n"
        "place T: T in dram at 256 bytes 128 workspace\n"
        "place U: U in dram at %d bytes 128 workspace layout \"i0,i1 -> i1, i0\"\n"
        "run { fallback core llvm do 0 fallback core llvm do 1 fallback core llvm do 2 } }",
        at);
    expect("cpu-avx2", text, right);
}

static void host_work_overlaps(void **state) {
    (void)state;
    overlapping(384, RIGHT);
    overlapping(380, WRONG);
    overlapping(256, WRONG);
}

/* A product over as many elements as the row says, which the host executes. */
static void cut_short(const char *first, const char *second, const char *last, bool right) {
    char text[1000];
    snprintf(
        text, sizeof text,
        "schedule rows on \"cpu-avx2\" { program { kernel rows() {\n"
        "in X: f32[8, 8] out O: f32[8] temp T: f32[8] axes p: 8, i: 8\n"
        "T[p] = 1\n T[p] *= X[p, i] where i <= p\n O[p] = T[p] + 1 } }\n"
        "place X: X in dram at 0 bytes 256 argument place O: O in dram at 256 bytes 32 argument\n"
        "place T: T in dram at 288 bytes 32 workspace\n"
        "run { %s %s %s } }",
        first, second, last);
    expect("cpu-avx2", text, right);
}

static void sums_cut_short(void **state) {
    (void)state;
    const char *one = "fallback core llvm do 0", *last = "fallback core llvm do 2";
    cut_short(one, "fallback core llvm do 1", last, RIGHT);
    cut_short(one,
              "fallback core llvm do 1 over (p = 0 to 3) fallback core llvm do 1 over (p = 3 to 8)",
              last, RIGHT);
    cut_short(one, "fallback core llvm do 1 over (p = 0 to 3)", last, WRONG);
    cut_short(one, "fallback core llvm do 1 over (i = 0 to 7)", last, WRONG);
    cut_short(one, "fallback core llvm do 1 fallback core llvm do 1", last, WRONG);
    cut_short("fallback core llvm do 1", one, last, WRONG);
    cut_short(one, last, "fallback core llvm do 1", WRONG);
}

/* Columns of a product, one after the other, through two slots of weights and one of sums: what
 * loads waits for `load`, `between` stands behind the product, and `end` takes the tokens that are
 * left. */
static void columns(const char *load, const char *between, const char *end, bool right) {
    char text[3000];
    snprintf(text, sizeof text,
             "schedule columns on \"edge16\" { program { kernel columns() {\n"
             "in A: i8[16, 16] in B: i8[64, 1, 16, 16] out C: i32[16, 64, 16]\n"
             "axes i: 16, b: 64, j: 16, k: 16\n"
             "C[i, b, j] = 0\n C[i, b, j] += i32(A[i, k]) * i32(B[b, 0, j, k]) } }\n"
             "place A: A in dram at 0 bytes 256 argument\n"
             "place B: B in dram at 256 bytes 16384 argument\n"
             "place C: C in dram at 16640 bytes 65536 argument\n"
             "place a: A in inp at 0 bytes 256 local place c: C in acc at 0 bytes 1024 local\n"
             "place w: B in wgt at 0 bytes 256 slots 2 local\n"
             "run { sync vec push bell.load sync load pop bell.load\n"
             "sync vec push bell.exec sync exec pop bell.exec\n"
             "sync vec push bell.store sync store pop bell.store\n"
             "sync store push s2e sync exec push e2l sync exec push e2l\n"
             "issue ld.inp(Y = 1, X = 16, y0 = 0, y1 = 0, x0 = 0, x1 = 0, ys = 16, S = A, D = a)\n"
             "loop j = 0 to 64 axis b { rotate w %s\n"
             "issue ld.wgt(Y = 1, X = 1, y0 = 0, y1 = 0, x0 = 0, x1 = 0, ys = 256, S = B + j*256, "
             "D = w) push l2e\n"
             "issue mm16(M = 16, add = 0, A = a, B = w, C = c) do 1 init 0 axes (i: i, j: j, k: k) "
             "at (i = 0, b = j, j = 0, k = 0) pop s2e pop l2e push e2l push e2s %s\n"
             "issue st.acc(Y = 16, X = 1, ys = 1024, S = c, D = C + j*64) pop e2s push s2e }\n"
             "%s sync exec pop s2e sync load push done.load sync vec pop done.load\n"
             "sync exec push done.exec sync vec pop done.exec\n"
             "sync store push done.store sync vec pop done.store } }",
             load, between, end);
    expect("edge16", text, right);
}

/* Queues that are in order in the first iterations need not be so in a later one. */
static void order_breaks_late(void **state) {
    (void)state;
    const char *two = "sync load pop e2l sync load pop e2l";
    columns("sync load pop e2l", "", two, RIGHT);
    columns("loop g = 0 to (j == 64) == 0 { sync load pop e2l }", "", two, RIGHT);
    columns("loop g = 0 to j < 64 { sync load pop e2l }", "", two, RIGHT);
    columns("sync load pop e2l", "loop g = 0 to j == 40 { sync exec push e2l sync load pop e2l }",
            two, RIGHT);
    columns("sync load pop e2l", "loop g = 0 to j == 63 { sync exec push e2l }",
            "sync load pop e2l sync load pop e2l sync load pop e2l", RIGHT);
    /* in one iteration the slot is filled that is still read; the token is there at the end */
    const char *three = "sync load pop e2l sync load pop e2l sync load pop e2l";
    for (int k = 0; k < 64; k += k < 4 ? 1 : k < 60 ? 14 : 1) {
        char guarded[100];
        snprintf(guarded, sizeof guarded, "loop g = 0 to (j == %d) == 0 { sync load pop e2l }", k);
        columns(guarded, "", three, WRONG);
    }
    columns("loop g = 0 to j < 63 { sync load pop e2l }", "", three, WRONG);
    columns("loop g = 0 to (30 < j) == 0 { sync load pop e2l }", "", two, WRONG);
    /* a token too many in one iteration, which is left; in each, more than there is room for */
    columns("sync load pop e2l", "loop g = 0 to j == 50 { sync exec push e2l }", two, WRONG);
    columns("sync load pop e2l", "sync exec push e2l", two, WRONG);
}

/* Each step of a recurrence writes rows of its own, and reads some. */
static void rows_of_steps(const char *read, const char *first, const char *second, bool right) {
    char text[1000];
    snprintf(
        text, sizeof text,
        "schedule rows on \"cpu-avx2\" { program { kernel rows() {\n"
        "in X: f32[12] out O: f32[12] out Q: f32[12]\n"
        "O[0] = 0\n recur t: 3 { axes r: 4\nO[4*t + r] = X[4*t + r]\n"
        "Q[4*t + r] = O[%s] + 1 } } }\n"
        "place X: X in dram at 0 bytes 48 argument place O: O in dram at 64 bytes 48 argument\n"
        "place Q: Q in dram at 128 bytes 48 argument\n"
        "run { fallback core llvm do 0 loop t0 = 0 to 3 axis t { %s %s } } }",
        read, first, second);
    expect("cpu-avx2", text, right);
}

static void steps_with_rows(void **state) {
    (void)state;
    const char *write = "fallback core llvm do 1 over (t = t0 to t0 + 1)",
               *read = "fallback core llvm do 2 over (t = t0 to t0 + 1)";
    rows_of_steps("4*t + r", write, read, RIGHT);
    rows_of_steps("4*t", write, read, RIGHT);
    rows_of_steps("4*t + r", read, write, WRONG);
    rows_of_steps("4*t + r", "fallback core llvm do 1 over (t = t0 to t0 + 1, r = 0 to 3)", read,
                  WRONG);
    rows_of_steps("4*t + r", "fallback core llvm do 1 over (t = 2 - t0 to 3 - t0)", read, WRONG);
}

/* Two statements on rows, of which each instance of a unit takes 16: `begin` stands before the
 * first one, `to` and `from` are where the rows of the temporary lie, `rows` which ones the second
 * statement takes. */
static void instances(const char *begin, const char *to, const char *rows, const char *from,
                      bool right) {
    char text[3000];
    snprintf(text, sizeof text,
             "schedule rows on \"gpu-sm80\" { program { kernel rows() {\n"
             "in X: f32[64, 32] out O: f32[64, 32] temp T: f32[64, 32] axes p: 64, i: 32\n"
             "T[p, i] = max(X[p, i], 0)\n O[p, i] = max(T[p, i], 1) } }\n"
             "place X: X in dram at 0 bytes 8192 argument\n"
             "place O: O in dram at 8192 bytes 8192 argument\n"
             "place T: T in dram at 16384 bytes 8192 workspace\n"
             "place x: X in reg at 0 bytes 64 local place t: T in reg at 64 bytes 64 local\n"
             "place u: T in reg at 128 bytes 64 local place o: O in reg at 192 bytes 64 local\n"
             "run { loop g = 0 to 64 step 16 parallel row { loop once = 0 to %s {\n"
             "issue ld.16x32(R = 16, W = 32, ld = 32, S = X + g*128, D = x) }\n"
             "issue max.imm.16x32(R = 16, W = 32, X = x, s = imm 0, C = t)\n"
             "do 0 axes (i: p, j: i) at (p = g, i = 0)\n"
             "issue st.16x32(R = 16, W = 32, ld = 32, S = t, D = T + %s)\n"
             "loop h = %s {\n"
             "issue ld.16x32(R = 16, W = 32, ld = 32, S = T + %s, D = u)\n"
             "issue max.imm.16x32(R = 16, W = 32, X = u, s = imm 1, C = o)\n"
             "do 1 axes (i: p, j: i) at (p = h, i = 0)\n"
             "issue st.16x32(R = 16, W = 32, ld = 32, S = o, D = O + h*128) } } } }",
             begin, to, rows, from);
    expect("gpu-sm80", text, right);
}

static void instances_of_units(void **state) {
    (void)state;
    instances("1", "g*128", "g to g + 16 step 16", "h*128", RIGHT);
    /* what another instance has in its registers, may not have written yet, may overwrite */
    instances("g == 0", "g*128", "g to g + 16 step 16", "h*128", WRONG);
    instances("1", "g*128", "max(g, 16) - 16 to max(g, 16) - 16 + g step 16", "h*128", WRONG);
    instances("1", "g*128", "48 - g to 64 - g step 16", "h*128", WRONG);
    instances("1", "0", "g to g + 16 step 16", "0", WRONG);
}

/* ---- what is written is no box ---- */
#define UNBOXED                                                                                    \
    "schedule unboxed on \"cpu-avx2\" { program { kernel unboxed() {\n"                            \
    "in X: f32[8] in Y: f32[16] out O: f32[16] temp T: f32[16] temp U: f32[16]\n"                  \
    "axes i: 8, j: 16, r: 3, k: 4\n %s } }\n"                                                      \
    "place X: X in dram at 0 bytes 32 argument place Y: Y in dram at 64 bytes 64 argument\n"       \
    "place O: O in dram at 128 bytes 64 argument place T: T in dram at 192 bytes 64 workspace\n"   \
    "place U: U in dram at %d bytes 64 workspace\n run { %s } }"
#define DO(statement) "fallback core llvm do " #statement " "

static void unboxed(const char *body, int address, const char *run, bool right) {
    char text[2000];
    snprintf(text, sizeof text, UNBOXED, body, address, run);
    expect("cpu-avx2", text, right);
}

/* Statements whose elements are interleaved: each as it finds and leaves the others'. */
static void interleaved_elements(void **state) {
    (void)state;
    static const char two[] = "T[2*i] = X[i]\n T[2*i+1] = Y[i]\n O[j] = T[j]",
                      sum[] = "T[j] = Y[j]\n T[2*i] += X[i]\n O[j] = T[j]",
                      over[] = "T[j] = Y[j]\n T[2*i] += X[i]\n T[5*k] = X[k]\n O[j] = T[j]",
                      fill[] = "T[2*i] = X[i]\n T[2*i+1] = Y[i]\n U[j] = Y[j]\n O[j] = T[j] + U[j]";
    unboxed(two, 256, DO(0) DO(1) DO(2), RIGHT);
    unboxed(two, 256, DO(0) DO(2), WRONG);
    unboxed(two, 256, DO(1) DO(2), WRONG);
    unboxed(two, 256, DO(0) DO(2) DO(1), WRONG);
    unboxed(two, 256, DO(0) DO(1) "over (i = 0 to 7) " DO(2), WRONG);
    unboxed(two, 256, DO(0) "over (i = 1 to 8) " DO(1) DO(2), WRONG);
    unboxed(sum, 256, DO(0) DO(1) DO(2), RIGHT);
    unboxed(sum, 256, DO(1) DO(0) DO(2), WRONG);
    unboxed(sum, 256, DO(0) DO(2), WRONG);
    unboxed(sum, 256, DO(0) DO(1) DO(1) DO(2), WRONG);
    unboxed(sum, 256, DO(0) DO(1) "over (i = 0 to 4) " DO(2), WRONG);
    unboxed(sum, 256, DO(0) "over (j = 0 to 15) " DO(1) DO(2), WRONG);
    unboxed(over, 256, DO(0) DO(1) DO(2) DO(3), RIGHT);
    unboxed(over, 256, DO(1) DO(0) DO(2) DO(3), WRONG);
    unboxed(over, 256, DO(0) DO(2) DO(1) DO(3), WRONG);
    unboxed(fill, 256, DO(0) DO(1) DO(2) DO(3), RIGHT);
    unboxed(fill, 252, DO(0) DO(1) DO(2) DO(3), WRONG);
    unboxed(fill, 252, DO(0) DO(2) DO(1) DO(3), WRONG);
}

/* The proof relies on this: what nothing has written is not read. */
static void unwritten_elements_are_refused(void **state) {
    (void)state;
    static const char *const body[] = {"T[2*i] = X[i]\n O[j] = T[j]",
                                       "T[2*i] = X[i]\n T[j] += Y[j]\n O[j] = T[j]",
                                       "T[i] = X[i] where i < 5\n O[j] = 1\n O[i] = T[i]"};
    isamap *im = isamap_open();
    struct job j;
    isamap_option(im, "machine", "cpu-avx2");
    job_init(&j, "examples/f32/gmm.isam");
    assert_true(job_machine(im, &j, USE_SIM));
    for (size_t k = 0; k < sizeof body / sizeof *body; k++) {
        char text[2000];
        struct diags said;
        snprintf(text, sizeof text, UNBOXED, body[k], 256, DO(0) DO(1));
        struct source source = {.file = "x.sched", .text = text, .length = strlen(text)};
        diags_init(&said);
        assert_null(schedule_parse(j.machine, &source, &said));
        assert_non_null(strstr(said.at[0].text, "elements of 'T' are read that were not written"));
        diags_free(&said);
    }
    job_free(&j);
    isamap_close(im);
}

/* Constraints, and elements to which several points add. */
static void parts_of_a_buffer(void **state) {
    (void)state;
    static const char where[] = "T[j] = Y[j]\n T[i] = X[i] where i < 5\n O[j] = T[j]",
                      outside[] = "T[j] = Y[j]\n T[i+9] = X[i] where i < 7\n O[j] = T[j]",
                      window[] = "T[j] = 0\n T[i+r] += X[i] * Y[r]\n O[j] = T[j]",
                      again[] = "T[j] = Y[j]\n T[2*i] = X[i]\n U[j] = T[j]\n T[i+4] = X[i] where i "
                                "> 2\n O[j] = T[j] + U[j]";
    unboxed(where, 256, DO(0) DO(1) DO(2), RIGHT);
    unboxed(where, 256, DO(1) DO(0) DO(2), WRONG);
    unboxed(where, 256, DO(0) DO(2), WRONG);
    unboxed(where, 256, DO(0) DO(2) DO(1), WRONG);
    unboxed(where, 256, DO(0) DO(1) "over (i = 0 to 4) " DO(2), WRONG);
    unboxed(where, 256, DO(0) DO(1) "over (i = 1 to 8) " DO(2), WRONG);
    unboxed(outside, 256, DO(0) DO(1) DO(2), RIGHT);
    unboxed(outside, 256, DO(0) DO(1) "over (i = 0 to 6) " DO(2), WRONG);
    unboxed(window, 256, DO(0) DO(1) DO(2), RIGHT);
    unboxed(window, 256, DO(0) DO(1) "over (r = 0 to 2) " DO(2), WRONG);
    unboxed(window, 256, DO(0) DO(1) DO(1) "over (r = 0 to 1) " DO(2), WRONG);
    unboxed(window, 256, DO(0) "over (j = 0 to 8) " DO(1) DO(2), WRONG);
    unboxed(again, 256, DO(0) DO(1) DO(2) DO(3) DO(4), RIGHT);
    unboxed(again, 256, DO(0) DO(1) DO(3) DO(2) DO(4), WRONG);
    unboxed(again, 256, DO(0) DO(2) DO(1) DO(3) DO(4), WRONG);
    unboxed(again, 192, DO(0) DO(1) DO(2) DO(3) DO(4), WRONG);
}

/* Both ends of a row, a row at a time, then read by an instruction's move. */
static void rows_apart(const char *rows, const char *over, const char *at, bool right) {
    char text[2000];
    snprintf(text, sizeof text,
             "schedule rows on \"cpu-avx2\" { program { kernel rows() {\n"
             "in X: f32[6, 2] out O: f32[6, 8] temp T: f32[6, 8] axes n: 6, i: 2, j: 8\n"
             "T[n, j] = 1\n T[n, 7*i] = X[n, i]\n O[n, j] = max(T[n, j], 0) } }\n"
             "place X: X in dram at 0 bytes 48 argument place O: O in dram at 128 bytes 192 "
             "argument\n place T: T in dram at 320 bytes 192 workspace\n"
             "place t: T in ymm at 0 bytes 32 local place o: O in ymm at 32 bytes 32 local\n"
             "run { fallback core llvm do 0\n loop w = 0 to %s {\n"
             "fallback core llvm do 1 over (%s)\n"
             "issue load.f32(S = T + %s*32, D = t)\n"
             "issue max.imm.f32(A = t, s = imm 0, C = o) do 2 axes (j: j) at (n = %s, j = 0)\n"
             "issue store.f32(S = o, D = O + %s*32) } } }",
             rows, over, at, at, at);
    expect("cpu-avx2", text, right);
}

static void rows_with_gaps(void **state) {
    (void)state;
    rows_apart("6", "n = w to w + 1", "w", RIGHT);
    rows_apart("6", "n = 5 - w to 6 - w", "(5 - w)", RIGHT);
    rows_apart("5", "n = w to w + 1", "w", WRONG);
    rows_apart("6", "n = 5 - w to 6 - w", "w", WRONG);
    rows_apart("6", "n = w to w + 1, i = 0 to 1", "w", WRONG);
    rows_apart("6", "n = w to w + 1, i = 1 to 2", "w", WRONG);
}

/* Statements of the body in their order, some exchanged, left out, twice or in part. */
static void put_run(struct text *run, uint64_t *seed, int statements) {
    int order[8], n = 0;
    for (int k = 0; k < statements; k++) {
        order[n++] = k;
        if (draw(seed, 12) == 0) order[n++] = (int)draw(seed, (uint64_t)statements);
        if (draw(seed, 12) == 0) n--;
        if (n > 1 && draw(seed, 8) == 0) {
            int last = order[n - 1];
            order[n - 1] = order[n - 2];
            order[n - 2] = last;
        }
        if (n > 5) break;
    }
    for (int k = 0; k < n; k++) {
        static const char *const axis[] = {"i", "j", "r"};
        int a = (int)draw(seed, 9), extent = a == 0 ? 8 : a == 1 ? 16 : 3;
        int cut = (int)draw(seed, (uint64_t)extent + 1);
        text_printf(run, "fallback core llvm do %d ", order[k]);
        if (a > 2) continue;
        bool both = draw(seed, 2) == 0;
        if (both)
            text_printf(run, "over (%s = 0 to %d) fallback core llvm do %d ", axis[a], cut,
                        order[k]);
        text_printf(run, "over (%s = %d to %d) ", axis[a], both ? cut : 0, both ? extent : cut);
    }
}

/* Whatever is proved of such schedules is right. */
static void random_ones_are_not_proved_wrongly(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int statements;
    } body[] = {
        {"T[2*i] = X[i]\n T[2*i+1] = Y[i]\n O[j] = T[j]", 3},
        {"T[j] = Y[j]\n T[2*i] += X[i]\n O[j] = T[j]", 3},
        {"T[j] = Y[j]\n T[2*i] += X[i]\n T[5*k] = X[k]\n O[j] = T[j]", 4},
        {"T[j] = Y[j]\n T[i] = X[i] where i < 5\n O[j] = T[j]", 3},
        {"T[j] = 0\n T[i+r] += X[i] * Y[r]\n O[j] = T[j]", 3},
        {"T[2*i] = X[i]\n U[j] = Y[j]\n U[i+4] = T[2*i] where i > 1\n O[j] = U[j]", 4},
        {"T[j] = Y[j]\n T[2*i] = X[i]\n U[j] = T[j]\n T[i+4] = X[i] where i > 2\n O[j] = T[j] + "
         "U[j]",
         5},
        {"T[2*i] = X[i]\n U[3*r] = Y[r]\n O[j] = 0\n O[2*i] += T[2*i]\n O[r] += U[3*r] where r > "
         "0",
         5},
    };
    enum { BODIES = sizeof body / sizeof *body, TRIES = 3000 };
    isamap *im = isamap_open();
    struct job j;
    uint64_t seed = 5;
    int proved = 0, wrong = 0;
    isamap_option(im, "machine", "cpu-avx2");
    job_init(&j, "examples/f32/gmm.isam");
    assert_true(job_machine(im, &j, USE_SIM));
    for (int k = 0; k < TRIES; k++) {
        struct text run = {0}, text = {0}, why = {0};
        struct diags ignored;
        int b = (int)draw(&seed, BODIES),
            at = draw(&seed, 4) ? 256 : 192 + 4 * (int)draw(&seed, 16);
        put_run(&run, &seed, body[b].statements);
        text_printf(&text, UNBOXED, body[b].text, at, run.n ? run.at : "");
        struct source source = {.file = "x.sched", .text = text.at, .length = text.n};
        struct schedule *s = schedule_parse(j.machine, &source, &im->diags);
        assert_non_null(s);
        diags_init(&ignored);
        bool right = schedule_verify(s, NULL, &ignored),
             claimed = schedule_prove_symbolically(s, 0, &why);
        if (claimed && !right) fail_msg("proved, but wrong:\n%s", text.at);
        proved += claimed;
        wrong += !right;
        diags_free(&ignored);
        schedule_free(s);
        text_free(&run);
        text_free(&text);
        text_free(&why);
    }
    print_message("%d proved, %d wrong\n", proved, wrong);
    assert_true(proved > TRIES / 20 && wrong > TRIES / 20);
    job_free(&j);
    isamap_close(im);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(tiles_of_groups),
                                       cmocka_unit_test(rows_for_later),
                                       cmocka_unit_test(rows_in_rings),
                                       cmocka_unit_test(padding_of_homes),
                                       cmocka_unit_test(host_work_overlaps),
                                       cmocka_unit_test(sums_cut_short),
                                       cmocka_unit_test(order_breaks_late),
                                       cmocka_unit_test(steps_with_rows),
                                       cmocka_unit_test(instances_of_units),
                                       cmocka_unit_test(interleaved_elements),
                                       cmocka_unit_test(unwritten_elements_are_refused),
                                       cmocka_unit_test(parts_of_a_buffer),
                                       cmocka_unit_test(rows_with_gaps),
                                       cmocka_unit_test(random_ones_are_not_proved_wrongly)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
