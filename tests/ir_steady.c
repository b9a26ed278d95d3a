/* Which statements are executed once: those that constants alone decide. */
#include "mapper_help.h"

#include <string.h>

/* One letter for each statement: y is executed once, n in each run. */
static void expect(const char *body, const char *wanted) {
    struct text t = {0};
    text_printf(&t,
                "kernel p() { in X: f32[4,5]  const W: f32[4,5], f: f32[4]  out Y: f32[4,5]\n"
                "  temp g: f32[4], h: f32[4], V: f32[4,5], s: f32[4], c: f32[1]\n"
                "  axes i: 4, j: 5, k: 4\n%s\n}\n",
                body);
    struct program *p = help_program("p", t.at);
    bool steady[16];
    memset(steady, true, sizeof steady);
    program_steady(p, steady);
    assert_int_equal(p->nstmts, strlen(wanted));
    for (int s = 0; s < p->nstmts; s++) assert_int_equal(steady[s], wanted[s] == 'y');
    bool constant[16];
    assert_true(p->nbuffers <= 16);
    program_constants(p, constant);
    for (int b = 0; b < p->nbuffers; b++) assert_int_equal(constant[b], buffer_steady(p, b));
    program_free(p);
    text_free(&t);
}

static void test_constants(void **state) {
    (void)state;
    expect("g[i] = sqrt(f[i]); h[i] = g[i] + f[i]; Y[i,j] = X[i,j] * h[i]", "yyn");
    expect("V[i,j] = W[i,j] * f[i]; Y[i,j] = X[i,j] + V[i,j]", "yn");
    /* what a run gives is none, nor what is made of it */
    expect("V[i,j] = X[i,j] * f[i]; g[i] = f[i]; Y[i,j] = V[i,j] + g[i]", "nyn");
    expect("V[i,j] = X[i,j] * f[i]; s[i] = V[i,0]; Y[i,j] = s[i]", "nnn");
}

/* A temporary is steady only when all that write it are, and none after a run has read it. */
static void test_writers(void **state) {
    (void)state;
    expect("g[i] = f[i]; g[i] += X[i,0]; Y[i,j] = g[i]", "nnn");
    expect("g[i] = f[i]; V[i,j] = X[i,j] * g[i]; g[i] = f[i] + f[i]; Y[i,j] = V[i,j] + g[i]",
           "nnnn");
    expect("g[i] = f[i]; h[i] = g[i]; g[i] = f[i] + f[i]; Y[i,j] = h[i] + g[i]", "yyyn");
}

/* Sums of products stay with the instructions, fills beside what goes on with them. */
static void test_sums(void **state) {
    (void)state;
    expect("V[i,j] = 0; V[i,j] += W[k,j] * f[k]; Y[i,j] = X[i,j] + V[i,j]", "nnn");
    expect("s[i] = f[i]; s[i] += W[i,j]; Y[i,j] = X[i,j] + s[i]", "yyn");
    /* a number is no fill of many */
    expect("c[0] = 3; Y[i,j] = X[i,j] + c[0]", "yn");
    expect("s[i] = 3; Y[i,j] = X[i,j] + s[i]", "nn");
    expect("c[0] = 0; c[0] += X[i,j]; Y[i,j] = c[0]", "nnn");
    /* nor is one that computes functions of the axes, unless a run adds to it */
    expect("V[i,j] = cos(f32(i * j)); Y[i,j] = X[i,j] * V[i,j]", "yn");
    expect("V[i,j] = f32(i * j) * 0.5; Y[i,j] = X[i,j] * V[i,j]", "nn");
    expect("V[i,j] = exp(f32(i)); V[i,j] += X[i,j]; Y[i,j] = V[i,j]", "nnn");
    expect("V[i,j] = exp(f32(i)); Y[i,j] = 0; Y[i,j] += X[i,k] * V[k,j]", "ynn");
}

/* However long the chain is; and what a run gives, at its end, is felt at its other end. */
static void test_long_chain(void **state) {
    enum { LONG = 40 };
    bool constant[LONG + 3];
    (void)state;
    for (int varies = 0; varies < 2; varies++) {
        struct text t = {0};
        text_printf(&t, "kernel p() { in X: f32[4]  const W: f32[4]  out Y: f32[4]\n  temp ");
        for (int k = 0; k < LONG; k++) text_printf(&t, "%sT%d: f32[4]", k ? ", " : "", k);
        text_printf(&t, "\n  axes i: 4\n  T0[i] = W[i] + %s[i]\n", varies ? "X" : "W");
        for (int k = 1; k < LONG; k++) text_printf(&t, "  T%d[i] = T%d[i] * W[i]\n", k, k - 1);
        text_printf(&t, "  Y[i] = T%d[i] + X[i]\n}\n", LONG - 1);
        struct program *p = help_program("p", t.at);
        program_constants(p, constant);
        for (int b = 0; b < p->nbuffers; b++)
            assert_int_equal(constant[b], p->buffer[b].role == ROLE_CONST ||
                                              (p->buffer[b].role == ROLE_TEMP && !varies));
        program_free(p);
        text_free(&t);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_constants),
                                       cmocka_unit_test(test_writers), cmocka_unit_test(test_sums),
                                       cmocka_unit_test(test_long_chain)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
