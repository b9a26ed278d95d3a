/* The search against brute force, and every choice a question. */
#include "approaches/approaches.h"
#include "sim/sim.h"
#include "tests/sample.h"
#include "tests/scheduler_plan.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

/* ---- one compilation with an approach that the test watches ---- */

enum { FEW = 20000 }; /* plans priced: the default allows more */

static void compile(struct compiled *r, const struct plan_case *k, const struct binding *b, int n,
                    struct decider *d, int threads, int64_t steps) {
    struct scheduler_options options = {.threads = threads, .steps = steps};
    compiled_case(r, k, b, n);
    compiled_decide(r, d, &options);
}

/* ---- brute force: every tile of every order that was offered, with its best residency ---- */

struct brute {
    int order, norders, whole_orders; /* the one to take; how many there are; not reversed */
    bool small;
    int64_t points;
    double found, least;
};

static void *brute_open(uint64_t seed) {
    struct brute *b = (struct brute *)(uintptr_t)seed;
    return b;
}

static void brute_close(void *s) {
    (void)s;
}

static int brute_choose(void *state, const struct question *q) {
    struct brute *b = state;
    if (q->kind != QUESTION_ORDER) return plan_cheapest(NULL, q);
    b->norders = q->ncandidates;
    b->whole_orders = 0;
    for (int i = 0; i < q->ncandidates; i++)
        b->whole_orders += !strstr(q->candidate[i].text, "reversed");
    return b->order < 0 ? plan_cheapest(NULL, q) : b->order;
}

static void brute_move(void *state, const struct space *sp, int *at) {
    struct brute *b = state;
    int try[64] = {0};
    if (b->order < 0) {
        b->found = sp->cost(sp->user, at);
        return;
    }
    for (bool more = true; more;) {
        double c = sp->cost(sp->user, try);
        if (c < b->least) b->least = c;
        b->points++;
        int v = 0;
        while (v < sp->nvars && ++try[v] == sp->nvalues[v]) try[v++] = 0;
        more = v < sp->nvars;
    }
}

static const struct approach brute_force = {"brute",      "every tile", brute_open, brute_close,
                                            brute_choose, brute_move,   NULL, false};

static void run_brute(const struct plan_case *k, const struct binding *size, int n,
                      struct brute *b) {
    struct compiled r;
    struct decider *d = decider_open(&brute_force, (uint64_t)(uintptr_t)b);
    compile(&r, k, size, n, d, 1, b->order < 0 && !b->small ? 0 : FEW);
    decider_close(d);
    compiled_free(&r);
}

struct small {
    struct plan_case k;
    struct binding size[3];
};

static void search_finds_the_best(void **state) {
    (void)state;
#define SIZE(m, n, k)                                                                              \
    {                                                                                              \
        {"M", m}, {"N", n}, {                                                                      \
            "K", k                                                                                 \
        }                                                                                          \
    }
    static const struct small cases[] = {
        {{EDGE, gmm_i8}, SIZE(96, 96, 96)},
        {{EDGE, gmm_i8}, SIZE(512, 64, 64)},
        {{EDGE, gmm_i8}, SIZE(64, 128, 512)},
        {{EDGE, gmm_i8}, SIZE(48, 80, 1024)},
        {{EDGE, gmm_i8}, SIZE(30, 512, 256)},
        {{EDGE, layer_i8}, SIZE(64, 96, 160)},
        {{"machines/cpu-avx2.xml", NULL, gmm_f32}, SIZE(24, 48, 16)},
        {{"machines/cpu-avx2.xml", NULL, gmm_f32}, SIZE(37, 64, 24)},
        {{"machines/cpu-avx2.xml", NULL, gmm_f32}, SIZE(13, 200, 14)},
        {{"machines/cpu-avx2.xml", NULL, layer_f32}, SIZE(30, 72, 20)},
        {{"machines/cpu-avx512.xml", NULL, gmm_f32}, SIZE(40, 64, 16)},
        {{"machines/cpu-avx512.xml", NULL, gmm_f32}, SIZE(15, 160, 30)},
    };
    for (int i = 0; i < (int)(sizeof cases / sizeof cases[0]); i++) {
        struct brute b = {.order = -1, .small = true, .found = INFINITY, .least = INFINITY};
        if (!sampled((size_t)i)) continue;
        run_brute(&cases[i].k, cases[i].size, 3, &b);
        for (b.order = 0; b.order < b.norders; b.order++)
            run_brute(&cases[i].k, cases[i].size, 3, &b);
        if (b.found > 1.02 * b.least || b.whole_orders < 6)
            fprintf(stderr, "case %d: found %.0f, of %lld points in %d orders the best %.0f\n", i,
                    b.found, (long long)b.points, b.norders, b.least);
        assert_true(b.whole_orders >= 6); /* three axes in every order */
        assert_true(b.points >= 1000);
        assert_true(b.found <= 1.02 * b.least);
    }
}

/* ---- what is refused unpriced would be refused ---- */

static void refusals_are_right(void **state) {
    static const struct small large[] = {
        {{"machines/cpu-avx2.xml", NULL, layer_f32}, SIZE(96, 70, 200)},
        {{"machines/cpu-amx.xml", NULL, gmm_i8}, SIZE(96, 64, 256)},
        {{EDGE, gmm_i8}, SIZE(256, 192, 32)},
    };
    enum { LARGE = sizeof large / sizeof large[0] };
    int64_t refused = 0;
    (void)state;
    for (int i = 0; i < PLAN_CASES + LARGE; i++) {
        struct known_searches *known = known_open();
        struct scheduler_options options = {
            .threads = 1, .steps = FEW, .audit = true, .searches = known};
        struct decider *d = decider_open(&plan_best, 0);
        struct compiled r;
        if (i < PLAN_CASES)
            compiled_case(&r, &plan_cases[i], NULL, 0);
        else
            compiled_case(&r, &large[i - PLAN_CASES].k, large[i - PLAN_CASES].size, 3);
        compiled_decide(&r, d, &options);
        assert_non_null(r.s);
        assert_int_equal(known_effort(known)->misjudged, 0);
        refused += known_effort(known)->refused;
        decider_close(d);
        compiled_free(&r);
        known_close(known);
    }
    assert_true(refused > 1000);
}

/* ---- partial sums leave and return ---- */

/* The reduction outside, in small blocks; the rest as the search would. */
static int cut_choose(void *state, const struct question *q) {
    (void)state;
    for (int i = 0; q->kind == QUESTION_ORDER && i < q->ncandidates; i++)
        if (q->candidate[i].text[0] == 'k') return i;
    return plan_cheapest(NULL, q);
}

static void cut_move(void *state, const struct space *sp, int *at) {
    (void)state;
    int try[64] = {0};
    for (int v = 0; v < sp->nvars; v++)
        while (at[v] && sp->value[v][try[v]] < 16 && try[v] + 1 < sp->nvalues[v]) try[v]++;
    for (int v = 0; v < sp->nvars; v++)
        if (strcmp(sp->var[v], "k") != 0) try[v] = at[v];
    if (sp->cost(sp->user, try) < 1e300) memcpy(at, try, sizeof *at * (size_t)sp->nvars);
}

static const struct approach cut_reductions = {
    "cut", "reductions outside", brute_open, brute_close, cut_choose, cut_move, NULL, false};

/* Loads of the result inside a loop over the reduction. */
static int returns(const struct schedule *s, const struct node *node, int n, bool inside) {
    int found = 0;
    for (int i = 0; i < n; i++) {
        if (node[i].kind == NODE_LOOP) {
            int axis = node[i].loop->axis;
            bool k = axis >= 0 && !strcmp(s->program->axis[axis].name, "k");
            found += returns(s, node[i].loop->body, node[i].loop->nbody, inside || k);
        } else if (node[i].kind == NODE_ISSUE && inside && node[i].issue->stmt < 0) {
            const struct instr *in = &s->machine->instr[node[i].issue->instr];
            for (int a = 0; a < in->noperands; a++) {
                const struct place *p = &s->place[node[i].issue->arg[a].place];
                found += p->keep == KEEP_LOCAL && s->program->buffer[p->buffer].name[0] == 'C' &&
                         memory_is_home(s->machine, in->from[0]);
            }
        }
    }
    return found;
}

static void partial_sums_return(void **state) {
    (void)state;
    static const struct small cases[] = {
        {{"machines/cpu-avx2.xml", NULL, gmm_f32}, SIZE(14, 40, 70)},
        {{"machines/cpu-avx512.xml", NULL, gmm_f32}, SIZE(19, 37, 64)},
        {{"machines/cpu-avx2.xml", NULL, layer_f32}, SIZE(14, 40, 70)},
        {{EDGE, gmm_i8}, SIZE(256, 192, 32)},
    };
    for (int i = 0; i < (int)(sizeof cases / sizeof cases[0]); i++) {
        struct compiled r;
        struct decider *d = decider_open(&cut_reductions, 0);
        compile(&r, &cases[i].k, cases[i].size, 3, d, 1, FEW);
        decider_close(d);
        assert_true(returns(r.s, r.s->run.node, r.s->run.nnodes, false) > 0);
        struct verify_options all = {0, 0};
        bool ok = schedule_verify(r.s, &all, &r.diags);
        if (!ok) diags_print(&r.diags, stderr);
        assert_true(ok);
        void **x = plan_data(r.p), **y = plan_data(r.s->program);
        assert_true(program_run(r.p, x, NULL, NULL, &r.diags));
        struct sim_options options = {0};
        struct sim_result result;
        assert_true(sim_run(r.s, y, &options, &result, &r.diags));
        sim_result_free(&result);
        assert_int_equal(plan_differ(r.p, x, r.s->program, y), 0);
        plan_data_free(r.p, x);
        plan_data_free(r.s->program, y);
        compiled_free(&r);
    }
}

/* ---- the same shape and the same cost a product, whatever the extents ---- */

static void cost_is_proportional(void **state) {
    (void)state;
    const struct plan_case k = {EDGE, gmm_i8};
    double each[4];
    for (int i = 0; i < 4; i++) {
        int64_t n = INT64_C(1024) << i;
        struct brute b = {.order = -1};
        const struct binding size[] = {{"M", n}, {"N", n}, {"K", n}};
        run_brute(&k, size, 3, &b);
        each[i] = b.found / ((double)n * (double)n * (double)n / 256);
        assert_true(each[i] < 1.30); /* 20 cycles for 16 rows of 16 x 16 products, a little more */
        assert_true(fabs(each[i] - each[0]) < 0.04 * each[0]);
    }
}

/* ---- every choice is a question ---- */

struct asked {
    int times[QUESTION_COUNT], most[QUESTION_COUNT];
};

static int asked_choose(void *state, const struct question *q) {
    struct asked *a = state;
    a->times[q->kind]++;
    if (q->ncandidates > a->most[q->kind]) a->most[q->kind] = q->ncandidates;
    return plan_cheapest(NULL, q);
}

static void asked_move(void *state, const struct space *sp, int *at) {
    struct asked *a = state;
    (void)at;
    a->times[sp->kind]++;
    for (int v = 0; v < sp->nvars; v++)
        if (sp->nvalues[v] > a->most[sp->kind]) a->most[sp->kind] = sp->nvalues[v];
}

static const struct approach watching = {"watching",   "what is asked", brute_open, brute_close,
                                         asked_choose, asked_move,      NULL, false};

static void every_choice_is_asked(void **state) {
    (void)state;
    struct asked a = {{0}, {0}};
    for (int i = 0; i < PLAN_CASES; i++) {
        struct compiled r;
        struct decider *d = decider_open(&watching, (uint64_t)(uintptr_t)&a);
        compile(&r, &plan_cases[i], NULL, 0, d, 2, FEW);
        decider_close(d);
        compiled_free(&r);
    }
    const struct binding large[] = {{"M", 256}, {"N", 256}, {"K", 256}};
    struct compiled r;
    struct decider *d = decider_open(&watching, (uint64_t)(uintptr_t)&a);
    compile(&r, &plan_cases[0], large, 3, d, 2, FEW);
    decider_close(d);
    compiled_free(&r);
    static const enum question_kind kinds[] = {QUESTION_MAPPING,   QUESTION_COVER, QUESTION_LAYOUT,
                                               QUESTION_TILE,      QUESTION_ORDER, QUESTION_UNIT,
                                               QUESTION_RESIDENCY, QUESTION_PATH};
    for (int i = 0; i < (int)(sizeof kinds / sizeof kinds[0]); i++) {
        if (a.most[kinds[i]] < 2) fprintf(stderr, "no choice of %s\n", question_name[kinds[i]]);
        assert_true(a.times[kinds[i]] > 0);
        assert_true(a.most[kinds[i]] >= 2);
    }
}

/* ---- random answers give different schedules, replayed answers the same ---- */

static char *schedule_string(const struct schedule *s) {
    struct text t = {0};
    schedule_print(s, &t);
    return t.at;
}

static void seeds_differ(const char *machine, const char *host, const char *file) {
    char *text[10];
    int distinct = 0;
    struct compiled r;
    struct arena arena;
    struct diags diags;
    arena_init(&arena);
    diags_init(&diags);
    memset(&r, 0, sizeof r);
    size_t length;
    char *kernel = file_read(&arena, file, 1 << 20, &length, &diags);
    assert_non_null(kernel);
    struct plan_case k = {machine, host, kernel};
    for (int seed = 0; seed < 10; seed++) {
        struct decider *d = decider_open(&approach_random, (uint64_t)seed);
        compile(&r, &k, NULL, 0, d, 1, FEW);
        decider_close(d);
        text[seed] = schedule_string(r.s);
        bool is_new = true;
        for (int i = 0; i < seed; i++) is_new &= strcmp(text[i], text[seed]) != 0;
        distinct += is_new;
        compiled_free(&r);
    }
    for (int i = 0; i < 10; i++) free(text[i]);
    if (distinct < 5) fprintf(stderr, "%s on %s: %d schedules\n", file, machine, distinct);
    assert_true(distinct >= 5);
    arena_free(&arena);
    diags_free(&diags);
}

static void ten_seeds_give_five_schedules(void **state) {
    (void)state;
    static const char *const f32[] = {"att", "c1d", "c2d", "c3d",       "dep",    "dil",
                                      "gmm", "gmv", "grp", "layernorm", "softmax"};
    static const char *const i8[] = {"c1d", "c2d", "c3d", "dep", "dil", "gmm", "gmv", "grp"};
    char file[100];
    for (int i = 0; i < (int)(sizeof f32 / sizeof f32[0]); i++) {
        if (!sampled((size_t)i)) continue;
        snprintf(file, sizeof file, "examples/f32/%s.isam", f32[i]);
        seeds_differ("machines/cpu-avx2.xml", NULL, file);
    }
    for (int i = 0; i < (int)(sizeof i8 / sizeof i8[0]); i++) {
        if (!sampled((size_t)i)) continue;
        snprintf(file, sizeof file, "examples/i8/%s.isam", i8[i]);
        seeds_differ(EDGE, file);
    }
}

/* Another last answer. */
static void spoil(const char *file) {
    FILE *f = fopen(file, "r+");
    assert_non_null(f);
    assert_int_equal(fseek(f, -2, SEEK_END), 0);
    assert_true(fputs("?\"\n", f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void a_trace_gives_the_same_schedule(void **state) {
    (void)state;
    const char *file = "all_search.decisions";
    for (int i = 0; i < PLAN_CASES; i++) {
        struct compiled r;
        struct diags diags;
        if (!sampled((size_t)i)) continue;
        diags_init(&diags);
        struct decider *d = decider_open(&approach_random, 7);
        compile(&r, &plan_cases[i], NULL, 0, d, 2, FEW);
        char *first = schedule_string(r.s);
        assert_true(decider_save(d, file, &diags));
        decider_close(d);
        compiled_free(&r);
        d = decider_replay(file, &diags);
        assert_non_null(d);
        compile(&r, &plan_cases[i], NULL, 0, d, 2, FEW);
        assert_false(decider_failed(d, &diags));
        char *again = schedule_string(r.s);
        assert_string_equal(first, again);
        decider_close(d);
        compiled_free(&r);
        spoil(file);
        d = decider_replay(file, &diags);
        assert_non_null(d);
        compile(&r, &plan_cases[i], NULL, 0, d, 2, FEW); /* an error, and still a schedule */
        assert_true(decider_failed(d, &diags));
        assert_int_equal(diags.errors, 1);
        decider_close(d);
        compiled_free(&r);
        free(first);
        free(again);
        diags_free(&diags);
    }
    remove(file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(search_finds_the_best),
        cmocka_unit_test(refusals_are_right),
        cmocka_unit_test(partial_sums_return),
        cmocka_unit_test(cost_is_proportional),
        cmocka_unit_test(every_choice_is_asked),
        cmocka_unit_test(ten_seeds_give_five_schedules),
        cmocka_unit_test(a_trace_gives_the_same_schedule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
