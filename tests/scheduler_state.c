/* States in schedules: what configure sets is what instructions find, in the verifier and in the
 * simulator alike; and the scheduler sets no more than it must. */
#include "tests/scheduler_plan.h"
#include "tests/scheduler_help.h"

struct mutant {
    const char *from, *to;
    const char *message; /* a part of it; NULL: harmless, with the reason beside it */
};

static const struct mutant states_mutants[] = {
    /* missing and wrong values */
    {"    configure config_ex(exec = (1))\n", "",
     "it needs state 'exec' = (1), which nothing has set"},
    {"exec = (1)", "exec = (0)", "it needs state 'exec' = (1), which holds (0)"},
    {"load[0] = (32,", "load[0] = (16,", "it needs state 'load' = (32, 1065353216, 0)"},
    {"store = (128,", "store = (32,", "it needs state 'store' = (128, 0, 1065353216)"},
    {"store = (128, 0,", "store = (128, 1,", "which holds (128, 1, 1065353216)"},
    /* slots */
    {"load[1] = (16,", "load[0] = (16,", NULL}, /* the first value is not used again */
    {"load[1] = (16,", "load[3] = (16,", "state 'load' has no number 3"},
    {"    issue mvin.spad(R = 16, B = 2, rs = 32, add = 0, S = B, D = b)\n"
     "    configure config_ld(load[1] = (16, 1065353216, 0))\n",
     "    configure config_ld(load[0] = (16, 1065353216, 0))\n"
     "    issue mvin.spad(R = 16, B = 2, rs = 32, add = 0, S = B, D = b)\n",
     "it needs state 'load' = (32, 1065353216, 0), which holds (16, 1065353216, 0)"},
    {"configure config_ex(exec = (1))", "configure config_ex(exec = (1)) pop rob",
     "cannot be signalled"},
    /* what stays in the unit */
    {"issue ws.first(M = 16, N = 16, K = 16, add = 0, A = a, B = b + j0*16, C = c)",
     "issue ws.first(M = 16, N = 16, K = 16, add = 0, A = a, B = b, C = c)", "reads B["},
    {"issue ws.first(M = 16, N = 16, K = 16, add = 0, A = a, B = b + j0*16, C = c)",
     "issue ws.again(M = 16, N = 16, K = 16, add = 0, A = a, B = w, C = c)",
     "reads 'B' where nothing of it has been written"},
    {"issue ws.again(M = min(16, 40 - i0), N = 16, K = 16, add = 0, A = a + i0*16, B = w,",
     "issue ws.first(M = min(16, 40 - i0), N = 16, K = 16, add = 0, A = a + i0*16, B = b + j0*16,",
     NULL}, /* loads the same again */
    {"B = w, C", "B = w + 16, C", "not a multiple of 256"},
    {"w: B in pe at 0", "w: A in pe at 0", NULL}, /* the name of the buffer is documentation */
    /* banks */
    {"b: B in spad at 65536", "b: B in spad at 1024",
     "the rule 'bank(A)!=bank(B)' of 'ws.first' is broken"},
    {"b: B in spad at 65536", "b: B in spad at 196608", NULL}, /* any other bank */
};

static const struct mutant tiles_mutants[] = {
    {"shape[2] = (16, 64)", "shape[2] = (8, 64)",
     "it needs state 'shape' = (16, 64), which holds (8, 64)"},
    {"shape[2] = (16, 64), ", "", "it needs state 'shape' = (16, 64), which nothing has set"},
    {"shape[5] = (4, 64)", "shape[8] = (4, 64)", "state 'shape' has no number 8"},
    {"shape[5] = (4, 64))", "shape[5] = (4, 64), shape[6] = (1, 4))", NULL}, /* not used */
    {"    issue tilezero.i32(M = 4",
     "    configure ldtilecfg(shape[0] = (16, 64), shape[1] = (16, 64), shape[4] = (4, 64), "
     "shape[5] = (4, 64))\n"
     "    issue tilezero.i32(M = 4",
     "reads nothing that was written"}, /* the weights are gone */
    {"    issue tilezero.i32(M = 16",
     "    configure ldtilecfg(shape[0] = (16, 64))\n    issue tilezero.i32(M = 16",
     "which nothing has set"},
    {"R = 4, B = 64, ld = 64, S = d", "R = 3, B = 64, ld = 64, S = d",
     "it needs state 'shape' = (3, 64)"},
    {"  prepare {\n", "  prepare {\n    configure ldtilecfg()\n",
     "'ldtilecfg' is no part of 'prepare'"},
    {"configure ldtilecfg(shape[0] = (16, 64), ", "configure ldtilecfg(shape[0] = (16), ",
     "unexpected ')'"},
    {"configure ldtilecfg(shape", "configure ldtilecfg(form",
     "'ldtilecfg' does not set a state 'form'"},
    {"configure ldtilecfg(shape", "configure ldtile(shape",
     "the machine has no configure 'ldtile'"},
};

static const struct mutant signals_mutants[] = {
    {" push s2e", "", "s2e"},
    {" pop s2e", "",
     "queue 'exec' reads slot 0 of state 'factor', which queue 'store' writes without a sync"},
    {"(3)", "(4)", "which holds (4)"},
    {"pop e2s", "pop e2s\n    configure set(factor = (3))",
     NULL}, /* behind st, it needs no token */
};

static bool verified(const struct machine *m, const char *text, struct diags *d) {
    struct schedule *s = help_parse(m, "mutant", text, d);
    struct verify_options options = {.trips = 0};
    bool good = s && schedule_verify(s, &options, d);
    schedule_free(s);
    return good;
}

static void run_mutants(const char *path, const struct mutant *mutant, size_t n) {
    struct arena arena;
    struct diags d;
    arena_init(&arena);
    char *text = help_read(&arena, path);
    struct machine *m = help_machine(text);
    int wrong = 0;
    diags_init(&d);
    assert_true(verified(m, text, &d));
    diags_free(&d);
    for (size_t k = 0; k < n; k++) {
        diags_init(&d);
        char *changed = help_replace(&arena, text, mutant[k].from, mutant[k].to, 0);
        bool good = verified(m, changed, &d);
        char *messages = help_messages(&arena, &d);
        if (mutant[k].message ? good || !strstr(messages, mutant[k].message) : !good) {
            print_error("%s: '%s' -> '%s': %s\n%s", path, mutant[k].from, mutant[k].to,
                        good ? "verified" : "refused", messages);
            wrong++;
        }
        diags_free(&d);
    }
    machine_free(m);
    arena_free(&arena);
    assert_int_equal(wrong, 0);
}

static void states_must_hold(void **state) {
    (void)state;
    run_mutants("tests/data/schedules/states.sched", states_mutants,
                sizeof states_mutants / sizeof *states_mutants);
}

static void words_must_hold(void **state) {
    (void)state;
    run_mutants("tests/data/schedules/tiles.sched", tiles_mutants,
                sizeof tiles_mutants / sizeof *tiles_mutants);
}

static void signals_must_hold(void **state) {
    (void)state;
    run_mutants("tests/data/schedules/sim/configured.sched", signals_mutants,
                sizeof signals_mutants / sizeof *signals_mutants);
}

/* ---- what the scheduler makes ---- */

struct count {
    int all, inside; /* configures; those in loops */
};

static void count_configures(const struct node *node, int n, bool loop, struct count *c) {
    for (int k = 0; k < n; k++) {
        if (node[k].kind == NODE_LOOP)
            count_configures(node[k].loop->body, node[k].loop->nbody, true, c);
        if (node[k].kind != NODE_CONFIGURE) continue;
        c->all++;
        c->inside += loop;
    }
}

static struct count plan(const char *machine, const char *host, const char *kernel) {
    struct count c = {0, 0};
    struct compiled x;
    compiled_open(&x, machine, host, NULL, kernel, NULL, 0);
    compiled_by(&x, &plan_best, 0, NULL);
    struct verify_options options = {.trips = 4};
    bool good = !x.diags.n && schedule_verify(x.s, &options, &x.diags);
    if (!good) diags_print(&x.diags, stderr);
    assert_true(good);
    count_configures(x.s->run.node, x.s->run.nnodes, false, &c);
    compiled_free(&x);
    return c;
}

#define GMM(m, n, k)                                                                               \
    "kernel gmm() { in A: i8[" #m "," #k "]  const B: i8[" #k "," #n "]  out C: i32[" #m "," #n    \
    "]\n axes i: " #m ", j: " #n ", k: " #k "\n C[i,j] = 0\n"                                      \
    " C[i,j] += i32(A[i,k]) * i32(B[k,j]) }"

/* Strides of two operands and of the result, and the mode: four values, none of them in a loop. */
static void configures_are_hoisted(void **state) {
    (void)state;
    struct count c = plan("gemmini", "cpu-scalar", GMM(64, 48, 96));
    assert_int_equal(c.all, 4);
    assert_int_equal(c.inside, 0);
    c = plan("cpu-amx", NULL, GMM(64, 64, 128));
    assert_int_equal(c.all, 1);
    assert_int_equal(c.inside, 0);
    c = plan("cpu-amx", NULL, GMM(37, 21, 100)); /* tails in words of their own */
    assert_true(c.all >= 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(states_must_hold), cmocka_unit_test(words_must_hold),
        cmocka_unit_test(signals_must_hold), cmocka_unit_test(configures_are_hoisted)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
