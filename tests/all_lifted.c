/* Sums of recurrences of open length, made for groups of steps: the same values and one proof for
 * all lengths, nested recurrences that differ are not proved, and in streams the bits of a step do
 * not depend on which steps were in groups. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "ir/chain.h"
#include "mapper/lift.h"
#include "recur_help.h"

/* A cell with two inputs' products, of which one is read alone and the other added to. */
#define CELL(type, way, sum, f)                                                                    \
    "kernel cell(T=0..40, B=1, H=24) { in X: " type "[T,B,H] const W: " type "[2,H,H] "            \
    "const U: " type "[H,H] in h0: " type "[B,H] out y: " type "[T,B,H] out hT: " type "[B,H] "    \
    "recur t: T" way " state h: " type "[B,H] from h0 to hT { axes b: B, i: H, j: H, l: H "        \
    "temp x: " type "[B,H] temp a: " type "[B,H]\n x[b,i] = 3\n x[b,i] += " sum                    \
    "\n a[b,i] = 2\n a[b,i] += W[1,i,j] * X[t,b,j]\n a[b,i] += U[i,j] * h[b,j]\n"                  \
    "h'[b,i] = " f "(a[b,i]) * x[b,i]\n y[t,b,i] = h'[b,i] } }"

#define SUM "W[0,i,l] * X[t,b,l]"

static const char stream[] = CELL("f32", "", SUM, "tanh"),
                  twice[] = CELL("f32", "", SUM " * X[t,b,j]", "tanh"),
                  integer[] = CELL("i32", "", SUM, "abs"),
                  backwards[] = CELL("f32", " reverse", SUM, "tanh");

static int recurrence(const struct program *p) {
    int at = 0;
    while (p->item[at].kind != ITEM_RECUR) at++;
    return at;
}

static const struct rank_cycles cycles = {.home = 0.1};

struct pair { /* a program, and the same with groups */
    struct arena a;
    struct diags d;
    struct program *p, *q;
};

static void open_pair(struct pair *x, const char *text) {
    arena_init(&x->a);
    diags_init(&x->d);
    x->p = parse_as(&x->a, text, NULL, 0, true, &x->d);
    x->q = program_copy(x->p);
    assert_int_equal(lift_in_groups(x->q, &cycles, REWRITE_EXACT, NULL), 1);
}

static void close_pair(struct pair *x) {
    program_free(x->p);
    program_free(x->q);
    diags_free(&x->d);
    arena_free(&x->a);
}

static bool is_proved(const struct pair *x) {
    struct items a = {0, x->p->nitems}, b = {0, x->q->nitems};
    return items_equal_by(x->p, a, x->q, b, LAWS_EXACT, 0).evidence == EVIDENCE_PROVED;
}

static bool same_values(struct pair *x, int64_t T) {
    struct program *u = program_at(x->p, &T), *v = program_at(x->q, &T);
    void **want = make_data(u, 5), **got = make_data(u, 5), **bound = rebind(u, v, got);
    bool same = program_run(u, want, NULL, NULL, &x->d) &&
                program_run(v, bound, NULL, NULL, &x->d) && same_outputs(u, want, got);
    free_data(u, want);
    free_data(u, got);
    free(bound);
    program_free(u);
    program_free(v);
    return same;
}

/* Statements that fell away are in no body. */
static bool reads_back(struct pair *x) {
    struct text printed = {0};
    program_print(x->q, &printed);
    struct program *again = parse_as(&x->a, printed.at, NULL, 0, true, &x->d);
    text_free(&printed);
    program_free(again);
    return again != NULL;
}

static void same_at_all_lengths(void **state) {
    static const char *const texts[] = {stream, twice, integer, backwards};
    (void)state;
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
        struct pair x;
        open_pair(&x, texts[k]);
        assert_true(reads_back(&x));
        assert_true(is_proved(&x));
        int at = recurrence(x.q); /* backwards the rest goes first */
        const struct recur *r = x.q->item[at + x.q->item[at].recur->reverse].recur;
        assert_true(x.q->axis[r->axis].group > 1 && !x.q->axis[r->axis].rest);
        assert_int_equal(r->item[r->nitems - 1].kind, ITEM_RECUR);
        for (int64_t T = 0; T <= 40; T++)
            if (!same_values(&x, T)) fail_msg("%s differs at %d", texts[k], (int)T);
        close_pair(&x);
    }
}

/* Steps of a group that run backwards, that are fewer, that begin with another state; rows that are
 * those of another step; a rest in other groups. */
static void faults(void **state) {
    (void)state;
    for (int fault = 0; fault < 6; fault++) {
        struct pair x;
        open_pair(&x, stream);
        int at = recurrence(x.q);
        struct recur *groups = x.q->item[at].recur, *steps = groups->item[groups->nitems - 1].recur,
                     *rest = x.q->item[at + 1].recur;
        struct stmt *first = &x.q->stmt[steps->item[0].stmt];
        if (fault == 0) steps->reverse = true;
        if (fault == 1) x.q->axis[steps->axis].extent--;
        if (fault == 2) steps->state[0].from = rest->state[0].to;
        if (fault == 3) first->read[0].coef[steps->axis] = 0;
        if (fault == 4) x.q->axis[rest->axis].group /= 2;
        if (fault == 5) rest->state[0].from = groups->state[0].from;
        if (is_proved(&x)) fail_msg("fault %d is proved", fault);
        close_pair(&x);
    }
}

static int groups_of(const struct program *p) {
    int groups = 0;
    for (int a = 0; a < p->naxes; a++) groups += p->axis[a].group > 0 && !p->axis[a].rest;
    return groups;
}

static const int64_t lengths[] = {40, 18, 3, 0};

static void as_interpreted(const struct program *p, const struct schedule *s, struct diags *d) {
    for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
        struct program *at = program_at(p, &lengths[k]);
        void **want = make_data(p, 7), **got = make_data(p, 7),
             **bound = rebind(p, s->program, got);
        struct sim_result result = {0};
        assert_true(program_run(at, want, NULL, NULL, d));
        assert_true(sim_run(s, bound, &(struct sim_options){.size = &lengths[k]}, &result, d));
        assert_true(same_outputs(p, want, got));
        sim_result_free(&result);
        free_data(p, want);
        free_data(p, got);
        free(bound);
        program_free(at);
    }
}

/* The rows of a shorter run are those of the longest, bit for bit, and what lies behind them stays.
 */
static void same_bits(const struct program *p, const struct schedule *s, struct diags *d) {
    int y = program_buffer(p, "y");
    size_t row = (size_t)(p->buffer[y].elements / p->buffer[y].extent[0]) * 4;
    void **want = make_data(p, 7);
    for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
        int64_t T = lengths[k];
        void **got = k == 0 ? want : make_data(p, 7), **bound = rebind(p, s->program, got);
        struct sim_result result = {0};
        assert_true(sim_run(s, bound, &(struct sim_options){.size = &T}, &result, d));
        assert_memory_equal(got[y], want[y], (size_t)T * row);
        sim_result_free(&result);
        free(bound);
        if (k > 0) free_data(p, got);
    }
    free_data(p, want);
}

/* Sums over two axes may be made in two orders: a stream has none of them in groups. */
static void compile_one(const char *text, const struct machine *m, int groups, bool bits) {
    struct arena a;
    struct diags d;
    struct text why = {0};
    arena_init(&a);
    diags_init(&d);
    struct program *p = parse_as(&a, text, NULL, 0, true, &d);
    struct schedule *s = compile(p, m, approaches[0], 1, &d);
    diags_print(&d, stderr);
    assert_non_null(s);
    if (groups_of(s->program) != groups) fail_msg("%d groups of %s", groups_of(s->program), text);
    assert_true(prints_back(s, &d));
    if (!schedule_prove_symbolically(s, 0, &why)) fail_msg("%s: %s", why.at, text);
    assert_int_equal(chain_verify(s->chain, s->program, NULL).evidence, EVIDENCE_PROVED);
    as_interpreted(p, s, &d);
    if (bits) same_bits(p, s, &d);
    schedule_free(s);
    program_free(p);
    text_free(&why);
    diags_free(&d);
    arena_free(&a);
}

static void compiled(void **state) {
    (void)state;
    struct machines m = load_machines();
    compile_one(stream, m.at[0], 1, true);
    compile_one(twice, m.at[0], 0, true);
    compile_one(integer, m.at[1], 1, true);
    compile_one(backwards, m.at[1], 1, false);
    free_machines(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_at_all_lengths),
                                       cmocka_unit_test(faults), cmocka_unit_test(compiled)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
