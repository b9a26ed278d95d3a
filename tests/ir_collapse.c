/* Dimensions that are walked together become one where nobody knows them apart; the checker takes
 * such a program for the one as written only if each element is the same. */
#include "ir/chain.h"
#include "tests/ir_support.h"

static struct program *bound(struct trial *t, const char *text) {
    trial_open(t);
    trial_parse(t, "text", text);
    if (t->nkernels != 1 || !trial_bind(t, "", "")) {
        diags_print(&t->diags, stderr);
        fail_msg("does not bind: %s", text);
    }
    return t->p;
}

#define PIXELS "axes k: 5, c: 7, p: 4, q: 6, r: 1\n"

static const struct collapse_case {
    const char *before, *after; /* NULL: it stays */
} cases[] = {
    /* a convolution of single pixels, with a padding that is never read */
    {"kernel a() { in I: f32[7, 4, 6]  const F: f32[5, 7, 1]  out O: f32[5, 4, 6]  " PIXELS
     "O[k,p,q] = 0\n O[k,p,q] += I[c,p+r,q else 0] * F[k,c,r] }",
     "kernel a() { in I: f32[7, 24]  const F: f32[5, 7, 1]  out O: f32[5, 24]  "
     "axes k: 5, c: 7, q: 24, r: 1\n"
     "O[k,q] = 0\n O[k,q] += I[c,q else 0] * F[k,c,r] }"},
    /* axes of one value that stand in the joined dimensions alone leave the statement */
    {"kernel a() { in X: f32[4, 6]  in W: f32[]  out Y: f32[4, 6]  axes p: 4, q: 6, r: 1, s: 1\n"
     "Y[p,q] = 0\n Y[p,q] += X[p+2*r,q+s] * W[] }",
     "kernel a() { in X: f32[24]  in W: f32[]  out Y: f32[24]  axes q: 24\n"
     "Y[q] = 0\n Y[q] += X[q] * W[] }"},
    /* three dimensions, through a temporary, with other axes in the second statement */
    {"kernel a() { in X: f32[2, 3, 4]  out Y: f32[2, 3, 4]  temp T: f32[2, 3, 4]\n"
     "axes a: 2, b: 3, c: 4, d: 2, e: 3, f: 4\n"
     "T[a,b,c] = exp(X[a,b,c])\n Y[d,e,f] = T[d,e,f] + X[d,e,f] }",
     "kernel a() { in X: f32[24]  out Y: f32[24]  temp T: f32[24]\n"
     "axes c: 24, f: 24\n T[c] = exp(X[c])\n Y[f] = T[f] + X[f] }"},
    /* rows are summed: batch and time are one, the row is not */
    {"kernel a() { in X: f32[2, 3, 4]  out Y: f32[2, 3]  axes a: 2, b: 3, c: 4\n"
     "Y[a,b] = 0\n Y[a,b] += X[a,b,c] }",
     "kernel a() { in X: f32[6, 4]  out Y: f32[6]  axes b: 6, c: 4\n Y[b] = 0\n Y[b] += X[b,c] }"},
    /* somebody knows the dimensions apart: a window, a stride, a part, another order, one of them
     * alone, a value, a constraint */
    {"kernel a() { in X: f32[4, 6]  out Y: f32[4, 6]  axes p: 4, q: 6, s: 3\n"
     "Y[p,q] = 0\n Y[p,q] += X[p,q+s-1 else 0] }",
     NULL},
    {"kernel a() { in X: f32[8, 6]  out Y: f32[4, 6]  axes p: 4, q: 6\n Y[p,q] = X[2*p,q] }", NULL},
    {"kernel a() { in X: f32[4, 7]  out Y: f32[4, 6]  axes p: 4, q: 6\n Y[p,q] = X[p,q] }", NULL},
    {"kernel a() { in X: f32[4, 6]  out Y: f32[4, 6]  axes p: 4, q: 6\n Y[p,q] = X[p,q+1 else 0] }",
     NULL},
    {"kernel a() { in X: f32[4, 4]  out Y: f32[4, 4]  axes p: 4, q: 4\n Y[p,q] = X[q,p] }", NULL},
    {"kernel a() { in X: f32[4, 6]  in B: f32[6]  out Y: f32[4, 6]  axes p: 4, q: 6\n"
     "Y[p,q] = X[p,q] + B[q] }",
     NULL},
    {"kernel a() { out Y: f32[4, 6]  axes p: 4, q: 6\n Y[p,q] = f32(q) }", NULL},
    {"kernel a() { inout Y: f32[4, 6]  axes p: 4, q: 6\n Y[p,q] = 1 where p <= q }", NULL},
    /* only what follows knows them apart */
    {"kernel a() { in X: f32[4, 6]  out Y: f32[4, 6]  out Z: f32[6, 4]  axes p: 4, q: 6\n"
     "Y[p,q] = X[p,q] * 2.0\n Z[q,p] = Y[p,q] }",
     NULL},
};

static enum evidence judged(const struct program *p, const struct program *q) {
    struct chain *c = chain_new(p);
    chain_append(c, q, "collapse", false);
    enum evidence e = chain_verify(c, q, NULL).evidence;
    chain_free(c);
    return e;
}

static void test_collapse(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct trial t, u;
        struct program *p = bound(&t, cases[k].before), *q = program_collapse(p);
        if (!q != !cases[k].after) fail_msg("%s: %s", q ? "collapsed" : "stays", cases[k].before);
        if (q) {
            struct text text = {0};
            program_print(q, &text);
            if (!program_verify(q, &t.diags) || !program_equal(q, bound(&u, cases[k].after)))
                fail_msg("%s became %s", cases[k].before, text.at);
            text_free(&text);
            trial_close(&u);
            if (judged(p, q) != EVIDENCE_PROVED) fail_msg("not proved: %s", cases[k].before);
            program_free(q);
        }
        trial_close(&t);
    }
}

#define COPY "kernel a() { in X: f32[4, 6]  out Y: f32[4, 6]  axes p: 4, q: 6\n Y[p,q] = X[p,q] }"

/* What is no collapse of the first is not taken for one. */
static void test_wrong(void **state) {
    (void)state;
    static const char *const pairs[][2] = {
        {COPY, "kernel a() { in X: f32[24]  out Y: f32[24]  axes q: 24\n Y[q] = X[23-q] }"},
        {COPY, "kernel a() { in X: f32[24]  out Y: f32[24]  axes q: 24\n Y[q] = X[q] + X[q] }"},
        {COPY, "kernel a() { in X: f32[25]  out Y: f32[24]  axes q: 24\n Y[q] = X[q] }"},
        {COPY,
         "kernel a() { in X: f32[6, 4]  out Y: f32[6, 4]  axes p: 6, q: 4\n Y[p,q] = X[p,q] }"},
        {COPY, "kernel a() { in X: f32[24]  inout Y: f32[24]  axes q: 24\n Y[q] = X[q] }"},
        {COPY, "kernel a() { in X: f32[24]  out Y: f32[24]  axes q: 24\n"
               " Y[q] = X[q]\n Y[q] = X[q] * 2.0 where q <= 3 }"},
        {"kernel a() { in X: f32[4, 4]  out Y: f32[4, 4]  axes p: 4, q: 4\n Y[p,q] = X[q,p] }",
         "kernel a() { in X: f32[16]  out Y: f32[16]  axes q: 16\n Y[q] = X[q] }"},
    };
    for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++) {
        struct trial t, u;
        if (judged(bound(&t, pairs[k][0]), bound(&u, pairs[k][1])) == EVIDENCE_PROVED)
            fail_msg("proved: %s", pairs[k][1]);
        trial_close(&t);
        trial_close(&u);
    }
}

#define STEPS(H)                                                                                   \
    "kernel a(T=0..9) { in X: f32[T, " H "]  const U: f32[" H ", " H "]  in h0: f32[" H "]  "      \
    "out y: f32[T, " H "]  out hT: f32[" H "]\n"                                                   \
    "recur t: T  state h: f32[" H "] from h0 to hT {"
#define ONE "axes i: 6, j: 6  temp s: f32[6]\n"
#define TWO "axes i: 2, j: 2, k: 3, l: 3  temp s: f32[2, 3]\n"

#define LENGTH(Z) "kernel a(T=0..1) { in X: f32[T]  in h0: f32[]  in Z: f32[" Z "]  out y: f32[T]  "
#define ADDED                                                                                      \
    "out hT: f32[]\n recur t: T  state h: f32[] from h0 to hT { "                                  \
    "h'[] = h[] + X[t]\n y[t] = h'[] } }"

/* A dimension that becomes two, in a recurrence with its states too. */
static const struct rows_case {
    const char *before, *after;
    bool equal;
} rows[] = {
    {"kernel a() { in X: f32[4, 6]  out Y: f32[4, 6]  axes p: 4, q: 6\n Y[p,q] = exp(X[p,q]) }",
     "kernel a() { in X: f32[4, 2, 3]  out Y: f32[4, 2, 3]  axes p: 4, q: 2, l: 3\n"
     "Y[p,q,l] = exp(X[p,q,l]) }",
     true},
    {STEPS("6") ONE
     "s[i] = X[t,i]\n s[i] += U[i,j] * h[j]\n h'[i] = tanh(s[i])\n y[t,i] = h'[i] } }",
     STEPS("2, 3") TWO
     "s[i,k] = X[t,i,k]\n s[i,k] += U[i,k,j,l] * h[j,l]\n h'[i,k] = tanh(s[i,k])\n"
     "y[t,i,k] = h'[i,k] } }",
     true},
    /* a weight that is turned, a sum of one row alone, the old state for the new one */
    {STEPS("6") ONE
     "s[i] = X[t,i]\n s[i] += U[i,j] * h[j]\n h'[i] = tanh(s[i])\n y[t,i] = h'[i] } }",
     STEPS("2, 3") TWO
     "s[i,k] = X[t,i,k]\n s[i,k] += U[j,l,i,k] * h[j,l]\n h'[i,k] = tanh(s[i,k])\n"
     "y[t,i,k] = h'[i,k] } }",
     false},
    {STEPS("6") ONE
     "s[i] = X[t,i]\n s[i] += U[i,j] * h[j]\n h'[i] = tanh(s[i])\n y[t,i] = h'[i] } }",
     STEPS("2, 3") TWO "s[i,k] = X[t,i,k]\n s[i,k] += U[i,k,j,l] * h[j,l] where j <= 0\n"
                       "h'[i,k] = tanh(s[i,k])\n y[t,i,k] = h'[i,k] } }",
     false},
    {STEPS("6") ONE
     "s[i] = X[t,i]\n s[i] += U[i,j] * h[j]\n h'[i] = tanh(s[i])\n y[t,i] = h'[i] } }",
     STEPS("2, 3") TWO
     "s[i,k] = X[t,i,k]\n s[i,k] += U[i,k,j,l] * h[j,l]\n h'[i,k] = tanh(s[i,k])\n"
     "y[t,i,k] = h[i,k] } }",
     false},
    /* nobody reads Z, but it has as many rows as a caller says, not one, and not always as many as
     * there are at most */
    {LENGTH("") ADDED, LENGTH("T") ADDED, false},
    {LENGTH("T") ADDED, LENGTH("") ADDED, false},
    {LENGTH("1") ADDED, LENGTH("T") ADDED, false},
    {LENGTH("T") ADDED, LENGTH("1") ADDED, false},
    {LENGTH("T") ADDED, LENGTH("T") ADDED, true},
    {LENGTH("") ADDED, LENGTH("1") ADDED, true},
};

static struct program *bound_sizes(struct trial *t, const char *text) {
    struct bindings none = {.n = 0};
    trial_open(t);
    trial_parse(t, "text", text);
    t->p = t->nkernels == 1 ? program_bind_sizes(t->kernel[0], &none, NULL, &t->diags) : NULL;
    if (!t->p) {
        diags_print(&t->diags, stderr);
        fail_msg("does not bind: %s", text);
    }
    return t->p;
}

static void test_rows(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct trial t, u;
        bool equal = judged(bound_sizes(&t, rows[k].before), bound_sizes(&u, rows[k].after)) ==
                     EVIDENCE_PROVED;
        if (equal != rows[k].equal) fail_msg("%sproved: %s", equal ? "" : "not ", rows[k].after);
        trial_close(&t);
        trial_close(&u);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_collapse), cmocka_unit_test(test_rows),
                                       cmocka_unit_test(test_wrong)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
