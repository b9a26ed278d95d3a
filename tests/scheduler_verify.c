/* The verifier: correct schedules pass, whatever is cut short, and each way of breaking one is
 * reported. */
#include "tests/scheduler_help.h"

struct mutant {
    const char *from, *to;
    int nth;
    const char *message; /* a part of it; NULL: harmless, with the reason beside it */
};

static const struct mutant gemm_mutants[] = {
    /* syncs */
    {" push l2e", "", 0, "finds no token"},
    {" pop l2e push e2l", " pop l2e", 0, "finds no token"},
    {" pop l2e push e2l", " push e2l", 0, "without a sync"},
    {" pop e2l\n", "\n", 0, "without a sync"},
    {" pop e2s push s2e", " push s2e", 0, "without a sync"},
    {" pop e2s push s2e", " pop e2s", 0, "finds no token"},
    {"sync exec push e2s", "sync exec push e2l", 0, "finds no token"},
    {"sync load pop e2l pop e2l", "sync load pop e2l", 0, "left at the end"},
    {"pop e2l\n    sync exec pop s2e", "pop e2l", 0, "left at the end"},
    {"sync exec push e2l push e2l", "sync exec push e2l", 0, "finds no token"},
    {"sync exec push e2l push e2l", "sync exec push e2l push e2l push e2l", 0, "left at the end"},
    {"sync exec pop s2e\n      loop", "loop", 0,
     "writes byte 0 of memory 'acc', which queue 'store' reads"},
    {"sync exec push e2s", "sync load push e2s", 0, "cannot push"},
    /* regions */
    {"S = A + i0*512", "S = A + i0*256", 0, "reads A["},
    {"S = A + i0*512 + k0*16", "S = A + i0*512 + k0*32", 0, "touches"},
    {"S = B + k0*256", "S = B", 0, "reads B["},
    {"D = C + i0*1024", "D = C", 0, "is not complete at home"},
    {"D = C + i0*1024", "D = C + i0*2048", 0, "touches"},
    {"D = C + i0*1024", "D = C + i0*1024 + 8", 0, "not a multiple of 16"},
    {"A = a, ", "A = a + 8, ", 0, "not a multiple of 16"},
    {"S = A + i0*512 + k0*16", "S = A + i0*512 + k0*16 + 1", 0, "not a multiple of 16"},
    {"ys = 32", "ys = 16", 0, "reads A["},
    {"ys = 16", "ys = 32", 0, "touches"},
    /* places */
    {"bytes 256 slots 2 local", "bytes 128 slots 2 local", 0, "touches"},
    {"in acc at 0 bytes 1024 local", "in acc at 131008 bytes 1024 local", 0, "ends at byte"},
    {"in inp at 0 bytes 256 slots 2", "in inp at 0 bytes 256 slots 1", 0, "without a sync"},
    {"in inp at 0", "in inp at 8", 0, "not a multiple of 16"},
    {"in acc", "in out", 0, "which memory 'out' does not"},
    {"C in dram at 2048", "C in dram at 512", 0, "overlap"},
    {"C in dram at 2048 bytes 2048", "C in dram at 2048 bytes 1024", 0, "smaller than its buffer"},
    /* fills */
    {"        rotate a\n", "", 0, "without a sync"},
    {"        rotate b\n", "", 0, "without a sync"},
    {"D = b) push l2e", "D = b) push l2e\n        rotate b", 0, "reads nothing that was written"},
    /* what is computed */
    {"add = k0 != 0", "add = 0", 0, "initialises a second time"},
    {"add = k0 != 0", "add = 1", 0, "0 of the 512 instances of statement 0"},
    {"add = k0 != 0", "add = k0", 0, NULL}, /* the same flag */
    {"add = k0 != 0", "add = k0 + 1", 0, "expected 0 or 1"},
    {"add = k0 != 0", "add = i0 != 0 or k0 != 0", 0, "instances of statement 0"},
    {" init 0", "", 0, "0 of the 512 instances of statement 0"},
    {"i = i0*16, j", "i = 0, j", 0, "is executed twice"},
    {"kb = k0", "kb = 1 - k0", 0, "reads A["},
    {"M = 16", "M = 8", 0, "instances of statement"},
    {"M = 16", "M = 17", 0, "expected 1 to 16"},
    {"M = 16", "M = 0", 0, "expected 1 to 16"},
    {"Y = 16, X = 1, y0", "Y = 8, X = 1, y0", 0, "reads nothing that was written"},
    {"Y = 16, X = 1, ys", "Y = 15, X = 1, ys", 0, "is not complete at home"},
    {"k0 = 0 to 2", "k0 = 0 to 1", 0, "instances of statement 1"},
    {"k0 = 0 to 2", "k0 = 0 to 3", 0, "touches"},
    {"i0 = 0 to 2", "i0 = 0 to 1", 0, "instances of statement"},
    {"axes (i: i, j: j, k: k)", "axes (i: i, j: k, k: j)", 0, "initialises a second time"},
    {"axes (i: i, j: j, k: k)", "axes (i: i, j: j, k: -)", 0, "1024 of the 16384 instances"},
    {"axes (i: i, j: j, k: k)", "axes (i: i, j: j, k: j)", 0, "two axes"},
    {"A = a, B = b", "A = a, B = a", 0, "cannot be in memory"},
    {"i32(A[i, kb, k]) * i32(B", "i32(A[i, kb, k]) + i32(B", 0, "does not compute"},
    {"C[i, j] = 0", "C[i, j] = 1", 0, "does not initialise"},
    {" + i0*512 + k0*16, D = a) pop e2l", " + i0*512 + k0*16, D = a + k0*256) pop e2l", 0,
     "touches"},
    /* harmless ones */
    {"sync store push s2e", "sync store push s2e\n    sync load", 0, NULL}, /* carries nothing */
    {"i0 = 0 to 2", "i0 = 0 to 2 unrolled", 0, NULL},                       /* the same walk */
    {"in acc at 0", "in acc at 64", 0, NULL},                               /* another free word */
    {"c: C in acc", "c: A in acc", 0, "which memory 'acc' does not"},
};

static const struct mutant hardware_mutants[] = {
    {"i0 = 0 to 32 step 16 hardware", "i0 = 0 to 32 step 16", 0, "around one issue"},
    {"j0 = 0 to 2 hardware", "j0 = 0 to 2", 0,
     "finds no token"}, /* then the signals are in a loop */
    {"k0 = 0 to 2 axis", "k0 = 0 to 2 hardware axis", 0, "around one issue"},
    {"to 32 step 16 hardware axis i {", "to 32 step 16 hardware axis i { sync exec push e2s", 0,
     "around one issue"},
    {"add = k0 != 0", "add = k0 != 0 or i0 != 0", 0, "flag varies"},
    {"M = 16", "M = 16 - i0/4", 0, "size varies"},
    {"a + i0*16", "a + i0*i0", 0, "constant steps"},
    {"a + i0*16", "a + min(i0, 8)*16", 0, "constant steps"},
    {"a + i0*16", "a + i0/32*512", 0, "constant steps"},
    {"a + i0*16", "a + i0/16*256", 0, NULL}, /* the same */
    {"(j0*32 + i0)*64", "(j0*i0 + i0)*64", 0, "constant steps"},
    {"i0 = 0 to 32", "i0 = 0 to j0*32", 0, "depend on another"},
    {"i0 = 0 to 32 step 16", "i0 = 0 to 16384 step 16", 0,
     "runs 1024 times, loop 'inner' of 'mm16' 1 to 1023"},
    {"j0 = 0 to 2 ", "j0 = 0 to 0 ", 0, "runs 0 times"},
    {"b + j0*256", "b", 0, "reads B["},
    {"pop l2e", "", 0, "without a sync"},
    {"pop l2e push e2l", "pop l2e", 0, "finds no token"},
    {"i0 = 0 to 32 step 16 hardware", "i0 = 16 to 32 step 16 hardware", 0,
     "instances of statement"},
};

static const struct mutant table_mutants[] = {
    {"8454144", "8454145", 0, "2 entries stand nowhere"},
    {"uop(X = 6", "uop(X = 4", 0, "not loaded"},
    {"    issue ld.uop(X = 6, S = entries, D = u)\n", "", 0, "not loaded"},
    {"bytes 24 prepared table", "bytes 32 prepared table", 0, "prepared home"},
    {"24 prepared table", "24 workspace table", 0, "prepared home"},
    {"entries in uop at 0 bytes 24", "entries in uop at 2 bytes 24", 0, "whole number of entries"},
    {"entries in uop at 0 bytes 24", "entries in uop at 0 bytes 20", 0, "room"},
    {"hardware table u axis", "hardware axis", 0, "expected a loop over one"},
    {"hardware table u axis", "hardware table entries axis", 0, "holds no table"},
    {"hardware table u axis", "hardware table a axis", 0, "holds no table"},
    {"u0 = 0 to 2", "u0 = 0 to 1", 0, "instances of statement"},
    {"u0 = 0 to 2", "u0 = 0 to 8192", 0, "runs 8192 times"},
    {"(u0 + k0*2)*256", "(u0*i0 + k0*2)*256", 0, "constant steps"},
    {"(u0 + k0*2)*256", "(u0*u0 + k0*2)*256", 0, NULL}, /* entries may be anything */
    {"at 6144 bytes 24", "at 6400 bytes 24", 0, NULL},
    {"in uop at 0", "in uop at 64", 0, NULL},
};

static const struct mutant lanes_mutants[] = {
    {"i = i0, j = j0, k = k0", "i = i0, j = j0, k = 0", 0, "24 of the 120 instances"},
    {"O in dram at 208", "O in dram at 192", 0, "overlap"},
    {"J = min(4, 6 - j0), S = B", "J = 4, S = B", 0, "touches"},
    {"J = min(4, 6 - j0), S = c", "J = 4, S = c", 0, "touches"},
    {"J = min(4, 6 - j0), S = B", "J = 1, S = B", 0, "reads nothing that was written"},
    {"D = O + i0*24 + j0*4", "D = O + j0*4", 0, "without a sync"},
    {"in reg at 16 bytes 16", "in reg at 0 bytes 16", 0, "overlap"},
    {"in reg at 16 bytes 16", "in reg at 20 bytes 16", 0, "not a multiple of 16"},
    {"D = b)", "D = b + k0*16)", 0, "must be constant"},
    {"issue zero(C = c)", "issue zero(C = b)", 0, "accumulates to nothing"},
    {"issue relu(C = c) do 2 axes (j: j) at (i = i0, j = j0)\n", "", 0, "instances of statement 2"},
    {"do 2 axes", "do 1 axes", 0, "axis 'k' of statement 1 has no value"},
    {"max(T[i, j], 0)", "min(T[i, j], 0)", 0, "does not compute"},
    {"max(T[i, j], 0)", "select(T[i, j] == 777, 3, max(T[i, j], 0))", 0, "does not compute"},
    {"max(T[i, j], 0)", "max(T[i, j], min(0, 0))", 0, NULL},
    {"max(T[i, j], 0)", "clip(T[i, j], 0, inf)", 0,
     NULL}, /* the same function, written otherwise */
    {"parallel core", "parallel thread", 0, "no unit 'thread'"},
    {" parallel core", "", 0, NULL}, /* one core does it all */
};

static const struct mutant board_mutants[] = {
    {" push bell", "", 0, "finds no token"},
    {" pop bell", "", 0, "without a sync"},
    {"    sync cpu pop done\n", "", 0, "left at the end"},
    {" push done", "", 0, "finds no token"},
    {"%4\" extent [6, 8]", "%4\"", 0, NULL}, /* the layout rounds up by itself */
    {"bytes 8 workspace extent [8]", "bytes 6 workspace", 0, "touches"},
    {"k/4, n, k%4", "n, k", 0, "reads"},
    {"x at 64 bytes 8", "x at 48 bytes 8", 0, NULL}, /* right behind w1 */
    {"x at 64 bytes 8", "x at 0 bytes 8", 0, "overlap"},
    {"over (k = 0 to 6)", "over (k = 0 to 5)", 0, "instances of statement 1"},
    {"over (k = 0 to 6)", "over (k = 0 to 7)", 0, "its extent is 6"},
    {"over (k = 0 to 6) ", "", 0, NULL}, /* the whole axis */
    {"    fallback host c do 0\n", "", 0, "reads 'Wp' where nothing of it has been written"},
    {"fallback host c do 1 over (k = 0 to 6) push bell", "sync cpu push bell", 0,
     "reads 'xp' where nothing of it has been written"},
    {"k = k0*4)", "k = k0*2)", 0, "is executed twice"},
    {"N = 12", "N = 11", 0, "reads nothing that was written"},
    {"B = x1 + k0*4", "B = w1 + k0*4", 0, "reads 'xp' where nothing of it has been written"},
    {"prepared layout", "workspace layout", 0, "reads the constant 0"}, /* zeroed by the run */
};

static const struct mutant async_mutants[] = {
    {" pop empty[x]", "", 0, "already holds 1 tokens"},
    {" pop empty[x]", "", 0, "pushes 'full' again without knowing that queue 'exec' took"},
    {" pop full[x]", "", 0, "queue 'exec' reads byte 0 of memory 'x', which queue 'copy' writes"},
    {" push full[x]", " push full", 0, "finds no token"},
    {" push full[x]", " push full[x + 1]", 0, "finds no token"},
    {" push full[x]", " push full[x] push full[x]", 0, "already holds 1 tokens"},
    {" push done", "", 0, "queue 'store' reads byte 0 of memory 'y', which queue 'exec' writes"},
    {" pop done push empty", " push empty", 0,
     "queue 'copy' writes byte 0 of memory 'x', which queue 'exec' reads"},
    {" pop done push empty", " pop done pending 1 push empty", 0,
     "queue 'copy' writes byte 0 of memory 'x', which queue 'exec' reads"},
    {"*32) pop done", "*32)", 0, "queue 'store' reads byte 0 of memory 'y'"},
    {"*32) pop done", "*32) pop done pending 1", 0, "queue 'store' reads byte 0 of memory 'y'"},
    {" pop order", "", 0, "queue 'exec' writes byte 0 of memory 'y', which queue 'store' reads"},
    {" pop order push done", " push done pop all", 0, NULL}, /* a barrier does it too */
    {" pop full[x] pop order", " pop all", 0,
     "reads byte 0 of memory 'x', which queue 'copy' writes"}, /* what completes later does not meet
                                                                */
    {"sync exec pop done", "sync exec pop all pop done", 0, NULL}, /* waits more */
    {"*32) pop done", "*32) pop order", 0, "queue 'store' cannot pop sync 'order'"},
    {"*32) pop done", "*32) pop done push order", 0, "queue 'store' cannot push sync 'order'"},
    {" pop empty[x]", " pop empty[x] pending 1", 0, "only the pop of a group"},
    {" pop empty[x]", " pop empty[q]", 0, "there is no place 'q'"},
    {"slots 2", "slots 1", 0, NULL}, /* the second credit is not used */
    {"slots 2", "slots 3", 0, "finds no token"},
    {"X in x at 0", "X in x at 936", 0, "hold the objects of syncs"},
    {"X in x at 0", "X in x at 928", 0, NULL}, /* just below the objects */
    {"fetch(N = 8, S = X + i0*32, D = x) pop empty[x] push full[x]",
     "ld(N = 8, S = X + i0*32, D = x) push ready push ready push ready", 0,
     "already holds 2 groups"},
};

static const struct mutant fragments_mutants[] = {
    {" pop full[a]", "", 0, "queue 'mma' reads byte"},
    {" pop order", "", 0, "queue 'mma' writes byte 0 of memory 'reg', which queue 'lsu' reads"},
    {"    sync mma push done\n", "", 0, "queue 'lsu' reads byte 0 of memory 'reg'"},
    {"*256) pop done", "*256)", 0, "queue 'lsu' reads byte 0 of memory 'reg'"},
    {"pop done push empty", "push empty", 0, "queue 'copy' writes byte"},
    {" + k0*16, B", " + 16 - k0*16, B", 0, "reads A["}, /* the other piece of the rows */
    {" + k0*16, B", " + k0*8, B", 0, "not a multiple of 16"},
    {"S = A + i0*256", "S = A + i0*256 + 32", 0, "touches"},
    {"in smem at 256", "in smem at 288", 0, "not a multiple of 64"},
    {"in reg at 0 bytes 32", "in reg at 0 bytes 28", 0, "touches bytes 0 to 31"}, /* of each lane */
    {"in reg at 0", "in reg at 96", 0, NULL},
    {"in reg at 0", "in reg at 100", 0, "ends at byte 132"},
    {"in reg at 0 bytes 32 local\n  run {",
     "in reg at 96 bytes 32 local\n  run {\n    loop g = 0 to 2 parallel group {\n    }", 0,
     "of whose pool"}, /* of 1536 bytes two groups have 96 for each lane */
    {"W = 8, ld", "W = 7, ld", 0, "is not complete at home"},
    {"R = 8, W", "R = 5, W", 0, "is not complete at home"},
    {"st.m8n8(", "st.m8n16(", 0, NULL}, /* the same places in the lanes */
    {"i: i, j: j", "i: j, j: i", 0, "reads A["},
    {"sync copy pop empty pop empty[1]\n",
     "sync copy pop empty pop empty[1]\n    issue box(R = 8, ld = 32, S = B, D = b) push full\n"
     "    sync mma pop full push empty\n"
     "    issue box(R = 8, ld = 32, S = B, D = b) pop empty push full\n    sync lsu pop full\n",
     0, "queue 'lsu' takes a token of sync 'full' without knowing that queue 'mma' did so before"},
};

static bool verified(const struct machine *m, const char *text, int trips, struct diags *d) {
    struct schedule *s = help_parse(m, "mutant", text, d);
    struct verify_options options = {.trips = trips};
    bool good = s && schedule_verify(s, &options, d);
    schedule_free(s);
    return good;
}

/* Elements may be made again, but each time from the start, and of all that belongs to them. */
static const struct mutant again_mutants[] = {
    {"at (i = i0, j = j0, k = k1)", "at (i = i0, j = j0, k = 0)", 0, "reads A["},
    {"S = B + k1*24 + j0*4, D = b)\n          issue fma(A = A + i0*20 + k1*4, B = b, C = c) do 1 "
     "axes (j: j) at (i "
     "= i0, j = j0, k = k1)",
     "S = B + j0*4, D = b)\n          issue fma(A = A + i0*20, B = b, C = c) do 1 axes (j: j) at "
     "(i = i0, j = "
     "j0, k = 0)",
     0, "is executed twice"},
    {"k1 = 0 to 5", "k1 = 0 to 4", 0, "after 4 of statement 1"},
    {"loop k1 = 0 to 5 axis k {",
     "loop k1 = 0 to 5 axis k { issue zero(C = c) do 0 axes (j: j) at (i = i0, j = j0)", 0,
     "after 1 of statement 1"},
};

/* Blocks know nothing of each other, though their queues take the same numbers one after another.
 */
static const struct mutant grid_mutants[] = {
    {"*64) pop done", "*64)", 0, "queue 'lsu' reads byte 0 of memory 'reg'"},
    {"D = C + i0*64", "D = C + i0%4000*64", 0, "which queue 'lsu' writes without a sync"},
    {"S = A + i0*32", "S = A + i0*16", 0, "reads A["},
};

/* Points of a sum that reads itself. */
static const struct mutant in_order_mutants[] = {
    {"d = d0 to d0 + 1", "d = 5 - d0 to 6 - d0", 0, NULL}, /* each element has its own order */
    {"s = s0 to s0 + 1", "s = 4 - s0 to 5 - s0", 0, "comes after a later one of its sum"},
    {"loop s0 = 0 to 5 axis s {\n      loop d0 = 0 to 6 axis d {\n        fallback core c do 1 "
     "over "
     "(s = s0 to s0 + 1, d",
     "loop s0 = 0 to 4 axis t {\n      loop d0 = 0 to 6 axis d {\n        fallback core c do 1 "
     "over "
     "(t = s0 to s0 + 1, d",
     0, "comes after a later one of its sum"},
    {"O[d] * 2 + X", "X", 0, NULL},
    {"do 0\n", "do 0\n    fallback core c do 1 over (s = 0 to 1)\n    fallback core c do 0\n", 0,
     "is executed twice"},
};

static void run_mutants(const char *path, const struct mutant *mutant, size_t n) {
    struct arena arena;
    arena_init(&arena);
    char *text = help_read(&arena, path);
    struct machine *m = help_machine(text);
    int wrong = 0;
    for (size_t k = 0; k < n; k++) {
        struct diags d;
        diags_init(&d);
        char *changed = help_replace(&arena, text, mutant[k].from, mutant[k].to, mutant[k].nth);
        bool good = verified(m, changed, 0, &d);
        char *messages = help_messages(&arena, &d);
        bool as_expected = mutant[k].message ? !good && strstr(messages, mutant[k].message) : good;
        if (!as_expected) {
            print_error("%s: '%s' -> '%s': %s, expected '%s'\n%s", path, mutant[k].from,
                        mutant[k].to, good ? "verified" : "refused",
                        mutant[k].message ? mutant[k].message : "no error", messages);
            wrong++;
        }
        diags_free(&d);
    }
    machine_free(m);
    arena_free(&arena);
    assert_int_equal(wrong, 0);
}

#define MUTANTS(name)                                                                              \
    static void test_##name(void **state) {                                                        \
        (void)state;                                                                               \
        run_mutants("tests/data/schedules/" #name ".sched", name##_mutants,                        \
                    sizeof name##_mutants / sizeof *name##_mutants);                               \
    }
MUTANTS(gemm)
MUTANTS(hardware)
MUTANTS(table)
MUTANTS(lanes)
MUTANTS(again)
MUTANTS(board)
MUTANTS(async)
MUTANTS(fragments)
MUTANTS(grid)

static void test_in_order(void **state) {
    (void)state;
    run_mutants("tests/data/schedules/edge/in_order.sched", in_order_mutants,
                sizeof in_order_mutants / sizeof *in_order_mutants);
}

/* Correct ones pass however many trips are walked; a bound on steps is an error, not a hang. */
static void test_trips_and_steps(void **state) {
    (void)state;
    static const char *const file[] = {"gemm",  "hardware",  "table", "lanes", "board",
                                       "async", "fragments", "grid",  "again"};
    for (size_t f = 0; f < sizeof file / sizeof *file; f++) {
        struct arena arena;
        struct diags d;
        arena_init(&arena);
        diags_init(&d);
        char *text =
            help_read(&arena, arena_printf(&arena, "tests/data/schedules/%s.sched", file[f]));
        struct machine *m = help_machine(text);
        for (int trips = 0; trips <= 5; trips++) assert_true(verified(m, text, trips, &d));
        struct schedule *s = help_parse(m, file[f], text, &d);
        assert_false(schedule_verify(s, &(struct verify_options){.steps = 30}, &d));
        assert_non_null(strstr(help_messages(&arena, &d), "gave up"));
        schedule_free(s);
        diags_free(&d);
        machine_free(m);
        arena_free(&arena);
    }
}

/* A large one in a moment when loops are cut short, and a fault in its steady state is still seen.
 */
static void test_clamped(void **state) {
    (void)state;
    struct arena arena;
    struct diags d;
    arena_init(&arena);
    diags_init(&d);
    static const char *const change[][2] = {{"i8[32, 2, 16]", "i8[4096, 64, 16]"},
                                            {"i8[2, 16, 16]", "i8[64, 16, 16]"},
                                            {"i32[32, 16]", "i32[4096, 16]"},
                                            {"i: 32", "i: 4096"},
                                            {"kb: 2", "kb: 64"},
                                            {"i0 = 0 to 2", "i0 = 0 to 256"},
                                            {"k0 = 0 to 2", "k0 = 0 to 64"},
                                            {"ys = 32", "ys = 1024"},
                                            {"i0*512", "i0*16384"},
                                            {"bytes 1024 arg", "bytes 4194304 arg"},
                                            {"at 1024 bytes 512", "at 4194304 bytes 16384"},
                                            {"at 2048 bytes 2048", "at 8388608 bytes 262144"}};
    char *text = help_read(&arena, "tests/data/schedules/gemm.sched");
    struct machine *m = help_machine(text);
    for (size_t k = 0; k < sizeof change / sizeof *change; k++)
        text = help_replace(&arena, text, change[k][0], change[k][1], 0);
    assert_true(verified(m, text, 4, &d));
    static const char *const fault[][2] = {{" pop e2l\n", "\n"},
                                           {"i0*16384 + k0*16", "i0*16384 + k0*32"},
                                           {"i0 = 0 to 256", "i0 = 1 to 256"},
                                           {"add = k0 != 0", "add = k0 < 1"},
                                           {"rotate a", "rotate b"},
                                           {"M = 16", "M = 15"}};
    for (size_t k = 0; k < sizeof fault / sizeof *fault; k++) {
        char *changed = help_replace(&arena, text, fault[k][0], fault[k][1], 0);
        if (verified(m, changed, 4, &d)) fail_msg("fault %zu", k);
    }
    diags_free(&d);
    machine_free(m);
    arena_free(&arena);
}

/* A queue in data order knows by itself of its own instructions, not of another machine's. */
static void test_host_after_device(void **state) {
    (void)state;
    struct arena arena;
    struct diags d;
    arena_init(&arena);
    diags_init(&d);
    char *text = help_read(&arena, "tests/data/schedules/edge/host_after.sched");
    struct machine *m = machine_join("tests/data/machines/proof/edge4.xml", "cpu-scalar", NULL, &d);
    bool good = m && verified(m, text, 0, &d);
    diags_print(&d, stderr);
    assert_true(good);
    char *early =
        help_replace(&arena, text, "    sync cpu pop done.store\n    fallback core c do 1",
                     "    fallback core c do 1\n    sync cpu pop done.store", 0);
    assert_false(verified(m, early, 0, &d));
    assert_non_null(strstr(help_messages(&arena, &d), "which queue 'store' writes without a sync"));
    diags_free(&d);
    machine_free(m);
    arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_gemm),
                                       cmocka_unit_test(test_hardware),
                                       cmocka_unit_test(test_table),
                                       cmocka_unit_test(test_lanes),
                                       cmocka_unit_test(test_again),
                                       cmocka_unit_test(test_board),
                                       cmocka_unit_test(test_async),
                                       cmocka_unit_test(test_fragments),
                                       cmocka_unit_test(test_grid),
                                       cmocka_unit_test(test_in_order),
                                       cmocka_unit_test(test_trips_and_steps),
                                       cmocka_unit_test(test_host_after_device),
                                       cmocka_unit_test(test_clamped)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
