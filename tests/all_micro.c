/* Micro-ops: on a machine whose instructions take their addresses from a table, schedules with any
 * legal answers are verified and give the interpreter's values; each word of a table counts;
 * several copies in flight are never slower than one. */
#include "tests/scheduler_plan.h"
#include "scheduler/emit/emit_int.h"
#include "sim/sim.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>
#include <math.h>

#define VDLA "machines/vdla.xml", "machines/cpu-avx2.xml"

static const char conv_text[] =
    "kernel conv(C=32, H=11, K=48, R=3, stride=1, pad=1, P=(H+2*pad-R)/stride+1) {\n"
    "  in I: i8[C, H, H]  const F: i8[K, C, R, R]  out O: i8[K, P, P]\n"
    "  temp A: i32[K, P, P]\n"
    "  axes k: K, p: P, q: P, c: C, r: R, s: R\n"
    "  A[k,p,q]  = 0\n"
    "  A[k,p,q] += i32(I[c,stride*p+r-pad,stride*q+s-pad else 0]) * i32(F[k,c,r,s])\n"
    "  O[k,p,q]  = i8(clip(round(f64(A[k,p,q]) * 0.0625), -128, 127))\n"
    "}\n";
/* The ReLU is the store's lower bound; channels are no multiples of 16. */
static const char relu_text[] = "kernel relu(C=20, H=10, K=30) {\n"
                                "  in I: i8[C, H, H]  const F: i8[K, C]  out O: i8[K, H, H]\n"
                                "  temp A: i32[K, H, H]\n"
                                "  axes k: K, p: H, q: H, c: C\n"
                                "  A[k,p,q]  = 0\n"
                                "  A[k,p,q] += i32(I[c,p,q]) * i32(F[k,c])\n"
                                "  O[k,p,q]  = i8(clip(round(f64(A[k,p,q]) * 0.125), 0, 127))\n"
                                "}\n";

struct micro_case {
    const char *text;
    struct binding size[5];
    int n;
};
static const struct micro_case cases[] = {
    {conv_text, {{"H", 8}}, 1},
    {conv_text, {{"H", 9}, {"stride", 2}, {"C", 64}, {"K", 32}}, 4},
    {conv_text, {{"H", 12}, {"stride", 2}, {"R", 1}, {"pad", 0}}, 4},
    {relu_text, {{"H", 10}}, 1},
    {gmm_i8, {{"M", 45}}, 1},
};

static void compile(struct compiled *x, const struct micro_case *k, const struct approach *a,
                    uint64_t seed) {
    compiled_open(x, VDLA, NULL, k->text, k->size, k->n);
    compiled_by(x, a, seed, &(struct scheduler_options){0});
}

static bool verified(const struct schedule *s) {
    struct verify_options whole = {0, 0};
    struct diags d;
    diags_init(&d);
    bool ok = schedule_verify(s, &whole, &d);
    diags_free(&d);
    return ok;
}

static double simulated(struct compiled *x, void **want) {
    struct sim_options options = {0};
    struct sim_result result;
    void **y = plan_data(x->s->program);
    bool ran = sim_run(x->s, y, &options, &result, &x->diags);
    if (!ran) diags_print(&x->diags, stderr);
    assert_true(ran);
    if (want) assert_int_equal(plan_differ(x->p, want, x->s->program, y), 0);
    double cycles = result.cycles;
    sim_result_free(&result);
    plan_data_free(x->s->program, y);
    return cycles;
}

static int tables_of(const struct schedule *s) {
    int n = 0;
    for (int p = 0; p < s->nplaces; p++) n += s->place[p].table != NULL;
    return n;
}

/* Printed, and read again: the same text. */
static void reads_again(const struct compiled *x) {
    struct text out = {0}, again = {0};
    struct diags d;
    diags_init(&d);
    schedule_print(x->s, &out);
    struct source source = {"again.sched", out.at, (size_t)out.n, 1, 1};
    struct schedule *s = schedule_parse(x->m, &source, &d);
    if (!s) diags_print(&d, stderr);
    assert_non_null(s);
    schedule_print(s, &again);
    assert_string_equal(out.at, again.at);
    schedule_free(s);
    diags_free(&d);
    text_free(&out);
    text_free(&again);
}

static void any_answer_is_right(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (uint64_t seed = 0; seed <= 2; seed++) {
            struct compiled x;
            compile(&x, &cases[i], seed ? &plan_any : &plan_best, seed);
            if (!schedule_verify(x.s, &(struct verify_options){0, 0}, &x.diags))
                diags_print(&x.diags, stderr);
            assert_int_equal(x.diags.errors, 0);
            void **want = plan_data(x.p);
            assert_true(program_run(x.p, want, NULL, NULL, &x.diags));
            simulated(&x, want);
            if (!seed) assert_int_equal(tables_of(x.s), 1);
            if (!seed) reads_again(&x);
            plan_data_free(x.p, want);
            compiled_free(&x);
        }
    }
}

/* The statement that narrows is the store's: no 32-bit element leaves the device. */
static void store_finishes(void **state) {
    (void)state;
    for (int i = 0; i < 4; i++) {
        struct compiled x;
        struct text out = {0};
        compile(&x, &cases[i], &plan_best, 0);
        schedule_print(x.s, &out);
        if (!strstr(out.at, "issue st(Z")) fail_msg("case %d:\n%s", i, out.at);
        assert_null(strstr(out.at, "issue st.acc"));
        text_free(&out);
        compiled_free(&x);
    }
}

static struct node *find(struct node *node, int n, bool (*wanted)(const struct node *)) {
    for (int i = 0; i < n; i++) {
        if (wanted(&node[i])) return &node[i];
        struct node *in = node[i].kind == NODE_LOOP
                              ? find(node[i].loop->body, node[i].loop->nbody, wanted)
                              : NULL;
        if (in) return in;
    }
    return NULL;
}

static bool is_table_loop(const struct node *n) {
    return n->kind == NODE_LOOP && n->loop->table > 0;
}

/* The words of a table are used: another one is found out. */
static void each_word_counts(void **state) {
    (void)state;
    struct compiled x;
    compile(&x, &cases[0], &plan_best, 0);
    assert_true(verified(x.s));
    for (int p = 0; p < x.s->nplaces; p++) {
        struct place *at = &x.s->place[p];
        if (!at->table) continue;
        const uint8_t *right = at->table;
        uint8_t *wrong = arena_copy(&x.arena, right, (size_t)at->bytes);
        at->table = wrong;
        for (int64_t k = 0; k < at->bytes; k += at->bytes / 40 * 4 + 4) {
            wrong[k + k / 4 % 4] ^= 1;
            if (verified(x.s)) fail_msg("word %d of %s", (int)(k / 4), at->name);
            wrong[k + k / 4 % 4] ^= 1;
        }
        at->table = right;
    }
    compiled_free(&x);
}

static bool loads_table(const struct node *n) {
    return n->kind == NODE_ISSUE && n->issue->stmt < 0 && n->issue->signals.npops + 1 &&
           n->issue->size && n->issue->arg[1].place >= 0 && n->issue->instr >= 0;
}

static const struct schedule *current;
static bool is_load(const struct node *n) {
    return loads_table(n) && table_home(current, n->issue->arg[1].place) != NULL;
}

/* Loads cut short or left out, loops over too many entries or without a table. */
static void broken_tables(void **state) {
    (void)state;
    struct compiled x;
    compile(&x, &cases[0], &plan_best, 0);
    struct arena *a = &x.s->arena;
    current = x.s;
    struct node *load = find(x.s->run.node, x.s->run.nnodes, is_load),
                *loop = find(x.s->run.node, x.s->run.nnodes, is_table_loop);
    assert_non_null(load);
    assert_non_null(loop);
    const struct sx *size = load->issue->size[0], *hi = loop->loop->hi;
    load->issue->size[0] = sx_make(a, SX_SUB, size, sx_const(a, 1));
    assert_false(verified(x.s));
    load->issue->size[0] = size;
    loop->loop->hi = sx_make(a, SX_ADD, hi, sx_const(a, 1));
    assert_false(verified(x.s));
    loop->loop->hi = hi;
    int table = loop->loop->table;
    loop->loop->table = 0;
    assert_false(verified(x.s));
    loop->loop->table = load->issue->arg[0].place + 1; /* the home, not the copy */
    assert_false(verified(x.s));
    loop->loop->table = table;
    assert_true(verified(x.s));
    compiled_free(&x);
}

/* The best with one slot for each copy, the others by cost. */
static int choose_one(void *s, const struct question *q) {
    int best = -1;
    if (q->kind != QUESTION_RESIDENCY) return plan_cheapest(s, q);
    for (int i = 0; i < q->ncandidates; i++) {
        const char *text = q->candidate[i].text;
        bool one = strstr(text, "x1") != NULL;
        for (const char *c = text; (c = strchr(c, 'x')); c++) one &= c[1] == '1';
        if (one && (best < 0 || q->candidate[i].cost < q->candidate[best].cost)) best = i;
    }
    assert_true(best >= 0);
    return best;
}

static const struct approach alone = {"alone",    "one context", plan_open, free,
                                      choose_one, plan_stay,     NULL,      false};

static double cycles(const struct schedule *s, double most, int64_t *steps) {
    struct sim_options options = {.no_values = true, .steps = *steps, .most = most};
    struct sim_result result;
    struct diags d;
    diags_init(&d);
    double out = sim_run(s, NULL, &options, &result, &d) ? result.cycles
                 : result.beyond                         ? INFINITY
                                                         : -1;
    *steps = result.steps;
    sim_result_free(&result);
    diags_free(&d);
    return out;
}

static void compile_timed(struct compiled *x, const struct micro_case *k,
                          const struct approach *a) {
    compiled_open(x, VDLA, NULL, k->text, k->size, k->n);
    compiled_by(x, a, 0, &(struct scheduler_options){.simulate = cycles});
}

static void contexts_pay(void **state) {
    static const struct micro_case layer[] = {
        {conv_text, {{"H", 14}, {"C", 64}, {"K", 64}}, 3},
        {conv_text, {{"H", 28}, {"C", 64}, {"K", 64}, {"R", 1}, {"pad", 0}}, 5}};
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct compiled one, best;
        compile_timed(&one, &layer[i], &alone);
        compile_timed(&best, &layer[i], &plan_best);
        int64_t steps[2] = {0};
        double a = cycles(one.s, 0, &steps[0]), b = cycles(best.s, 0, &steps[1]);
        if (b > a) fail_msg("case %d: %.0f cycles, one context %.0f", i, b, a);
        compiled_free(&one);
        compiled_free(&best);
    }
}

/* Of the innermost plain loops the least; a loop over a table is none, whichever memory holds it.
 */
static void counters_have_room(void **state) {
    struct hwloop loop[] = {{.max = 100, .table = -1}, {.max = 50, .table = -1}, {.max = 7}};
    struct instr in = {.loop = loop, .nloops = 3};
    (void)state;
    assert_int_equal(counter_max(&in, 1), 50);
    assert_int_equal(counter_max(&in, 2), 50);
    loop[1].max = 200;
    assert_int_equal(counter_max(&in, 1), 200);
    assert_int_equal(counter_max(&in, 2), 100);
    assert_int_equal(counter_max(&in, 0), INT64_MAX);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_answer_is_right), cmocka_unit_test(store_finishes),
        cmocka_unit_test(each_word_counts),    cmocka_unit_test(broken_tables),
        cmocka_unit_test(contexts_pay),        cmocka_unit_test(counters_have_room)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
