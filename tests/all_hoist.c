/* What is the same in each step of a recurrence leaves it: what goes and what stays, with the
 * values of the interpreter and a proof of each; and whole programs, compiled and run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "ir/chain.h"
#include "mapper/hoist.h"
#include "recur_help.h"

#define HEAD                                                                                       \
    "kernel r() { in X: f32[7,12] const W: f32[12,12] in M: f32[12,12] in s: f32[12] "             \
    "in h0: f32[12] out y: f32[7,12] out hT: f32[12] temp k: f32[12] axes u: 12\n k[u] = s[u]\n "
#define STEPS "recur t: 7 state h: f32[12] from h0 to hT { axes i: 12, j: 12\n temp a: f32[12] "
#define CELL(sum) "a[i] = X[t,i]\n a[i] += " sum "\n h'[i] = tanh(a[i])\n y[t,i] = h'[i] }"
#define PLAIN CELL("W[i,j] * h[j]") " }"

static const struct {
    const char *text;
    int left;                     /* items of the body then */
    bool made, reordered, floats; /* something stands before it; in another order; that may be */
} cases[] = {
    /* a temporary, one made of it, a sum of weights */
    {HEAD STEPS "temp g: f32[12] temp e: f32[12]\n g[i] = exp(s[i])\n e[i] = g[i] + k[i]\n" CELL(
         "W[i,j] * (e[j] * h[j])") " }",
     4, true, false, true},
    {HEAD STEPS
     "temp g: f32[12]\n g[i] = 0\n g[i] += W[i,j] * s[j]\n" CELL("W[i,j] * h[j] * g[j]") " }",
     4, true, false, true},
    /* products of factors as large as one another; in another order only where that may be */
    {HEAD STEPS CELL("W[i,j] * M[i,j] * h[j]") " }", 4, true, false, true},
    {HEAD STEPS CELL("W[i,j] * M[i,j] * h[j]") " }", 4, true, false, false},
    {HEAD STEPS CELL("W[i,j] * h[j] * M[i,j]") " }", 4, true, true, true},
    {HEAD STEPS CELL("W[i,j] * h[j] * M[i,j]") " }", 4, false, false, false},
    /* what stays: it reads the step, a state, or what the step before left; others see it */
    {HEAD STEPS "temp g: f32[12]\n g[i] = X[t,i]\n" CELL("W[i,j] * (g[j] * h[j])") " }", 5, false,
     false, true},
    {HEAD STEPS "temp g: f32[12]\n g[i] = h[i]\n" CELL("W[i,j] * (g[j] * h[j])") " }", 5, false,
     false, true},
    {HEAD STEPS "temp g: f32[12]\n g[i] = s[i] where i < 5\n g[i] = k[i] where 5 <= i\n" CELL(
         "W[i,j] * (g[j] * h[j])") " }",
     6, false, false, true},
    {HEAD STEPS "temp g: f32[12]\n g[i] = s[i] * f32(t)\n" CELL("W[i,j] * (g[j] * h[j])") " }", 5,
     false, false, true},
    {HEAD STEPS PLAIN, 4, false, false, true},
};

static int body_of(const struct program *p) {
    int at = 0;
    while (p->item[at].kind != ITEM_RECUR) at++;
    return at;
}

/* NULL: the same values, and proved. */
static const char *differs(const struct program *p, const struct program *q, bool reordered,
                           struct diags *d) {
    void **want = make_data(p, 5), **got = make_data(p, 5), **bound = rebind(p, q, got);
    const char *wrong = NULL;
    if (!program_run(p, want, NULL, NULL, d) || !program_run(q, bound, NULL, NULL, d))
        wrong = "the interpreter fails";
    if (!wrong && !same_outputs(p, want, got)) wrong = "values differ";
    struct items a = {0, p->nitems}, b = {0, q->nitems};
    if (!wrong && items_equal_by(p, a, q, b, reordered ? LAWS_REORDER : LAWS_EXACT, 0).evidence !=
                      EVIDENCE_PROVED)
        wrong = "not proved";
    free_data(p, want);
    free_data(p, got);
    free(bound);
    return wrong;
}

static void goes_or_stays(void **state) {
    (void)state;
    int wrong = 0;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct arena a;
        struct diags d;
        arena_init(&a);
        diags_init(&d);
        struct program *p = parse(&a, cases[k].text, NULL, 0, &d), *q = program_copy(p);
        bool reordered = hoist_steady(q, cases[k].floats);
        int left = q->item[body_of(q)].recur->nitems;
        const char *why = differs(p, q, reordered, &d);
        if (!why && (left != cases[k].left || reordered != cases[k].reordered ||
                     (q->nitems > p->nitems) != cases[k].made))
            why = "other statements are left";
        if (why) fprintf(stderr, "case %d, %d left: %s\n", (int)k, left, why);
        wrong += why != NULL;
        program_free(p);
        program_free(q);
        diags_free(&d);
        arena_free(&a);
    }
    assert_int_equal(wrong, 0);
}

/* The whole way: nothing of 144 elements is written in a step. */
static void not_made_again(void **state) {
    (void)state;
    static const char *const sums[] = {"W[i,j] * M[i,j] * h[j]", "W[i,j] * s[j] * h[j]",
                                       "W[i,j] * h[j] * s[j]"};
    struct machine *m;
    struct diags d;
    diags_init(&d);
    m = machine_load("machines/cpu-avx2.xml", NULL, &d);
    assert_non_null(m);
    for (size_t k = 0; k < sizeof sums / sizeof *sums; k++) {
        struct arena a;
        char text[900];
        arena_init(&a);
        snprintf(text, sizeof text,
                 HEAD STEPS "a[i] = X[t,i]\n a[i] += %s\n h'[i] = tanh(a[i])\n y[t,i] = h'[i] } }",
                 sums[k]);
        struct program *p = parse(&a, text, NULL, 0, &d);
        struct decider *decider = decider_open(approaches[0], 0);
        struct cover *c = mapper_cover(p, m, decider, &d);
        assert_non_null(c);
        for (int s = 0; s < c->program->nstmts; s++) {
            const struct stmt *st = &c->program->stmt[s];
            if (st->scope && c->program->buffer[st->dst.buffer].elements >= 144)
                fail_msg("%s: a step writes '%s'", sums[k],
                         c->program->buffer[st->dst.buffer].name);
        }
        cover_free(c);
        decider_close(decider);
        program_free(p);
        arena_free(&a);
    }
    machine_free(m);
    diags_free(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(goes_or_stays),
                                       cmocka_unit_test(not_made_again)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
