/* The checker of program changes where what constants alone decide was made long before the
 * statements that read it: these may read the constants instead, and nothing else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "ir/chain.h"
#include "equal_help.h"

#define DECLARED                                                                                   \
    "in X: f32[4]  in A: f32[4]  const W: i8[4,6]  const V: i8[4,6]  const S: f32[6]  out Y: "     \
    "f32[6]  out Z: "                                                                              \
    "f32[6]  out P: f32[4]  temp D: f32[4,6]  temp E: f32[4,6]  temp T: f32[6,4]  axes k: 4, j: "  \
    "6\n"

static const char opened[] = "D[k,j] = f32(W[k,j]) * S[j]; ";

/* Makers, what stands between, and the statement before and after. */
static const struct makers_case {
    const char *first, *between, *before, *after;
    bool proved;
} cases[] = {
    {opened, "P[k] = sin(A[k]); Y[j] = 0; ", "Y[j] += X[k] * D[k,j]; ",
     "Y[j] += X[k] * (f32(W[k,j]) * S[j]); ", true},
    /* another constant, another scale, another row */
    {opened, "P[k] = sin(A[k]); Y[j] = 0; ", "Y[j] += X[k] * D[k,j]; ",
     "Y[j] += X[k] * (f32(V[k,j]) * S[j]); ", false},
    {opened, "P[k] = sin(A[k]); Y[j] = 0; ", "Y[j] += X[k] * D[k,j]; ",
     "Y[j] += X[k] * (f32(W[k,j]) * S[5-j]); ", false},
    {opened, "P[k] = sin(A[k]); Y[j] = 0; ", "Y[j] += X[k] * D[k,j]; ",
     "Y[j] += X[k] * (f32(W[3-k,j]) * S[j]); ", false},
    /* through a copy that others read, and back again */
    {"D[k,j] = f32(W[k,j]) * S[j]; T[j,k] = D[k,j]; ", "P[k] = T[0,k]; Y[j] = 0; ",
     "Y[j] += X[k] * T[j,k]; ", "Y[j] += X[k] * (f32(W[k,j]) * S[j]); ", true},
    {opened, "P[k] = sin(A[k]); Y[j] = 0; ", "Y[j] += X[k] * (f32(W[k,j]) * S[j]); ",
     "Y[j] += X[k] * D[k,j]; ", true},
    /* filled in two parts; the second one anew */
    {"D[k,j] = f32(W[k,j]) * S[j]; D[k,0] = f32(V[k,0]); ", "P[k] = sin(A[k]); Y[j] = 0; ",
     "Y[j] += X[k] * D[k,j]; ", "Y[j] += X[k] * (f32(W[k,j]) * S[j]); ", false},
    /* written again before it is read, by constants and by data */
    {opened, "D[k,j] = f32(V[k,j]) * S[j]; Y[j] = 0; ", "Y[j] += X[k] * D[k,j]; ",
     "Y[j] += X[k] * (f32(W[k,j]) * S[j]); ", false},
    {opened, "D[k,j] = f32(V[k,j]) * S[j]; Y[j] = 0; ", "Y[j] += X[k] * D[k,j]; ",
     "Y[j] += X[k] * (f32(V[k,j]) * S[j]); ", true},
    {opened, "D[k,0] = A[k]; Y[j] = 0; ", "Y[j] += X[k] * D[k,j]; ",
     "Y[j] += X[k] * (f32(W[k,j]) * S[j]); ", false},
    {opened, "D[k,j] += A[k]; Y[j] = 0; ", "Y[j] += X[k] * D[k,j]; ",
     "Y[j] += X[k] * (f32(W[k,j]) * S[j]); ", false},
    /* two that look alike, of temporaries that were made otherwise */
    {"D[k,j] = f32(W[k,j]) * S[j]; E[k,j] = f32(W[k,j]) * S[5-j]; ", "Y[j] = 0; Z[j] = 0; ",
     "Y[j] += X[k] * D[k,j]; P[k] = sin(A[k]); Z[j] += X[k] * E[k,j]; ",
     "Y[j] += X[k] * (f32(W[k,j]) * S[j]); P[k] = sin(A[k]); Z[j] += X[k] * (f32(W[k,j]) * S[j]); ",
     false},
    {"D[k,j] = f32(W[k,j]) * S[j]; E[k,j] = f32(W[k,j]) * S[j]; ", "Y[j] = 0; Z[j] = 0; ",
     "Y[j] += X[k] * D[k,j]; P[k] = sin(A[k]); Z[j] += X[k] * E[k,j]; ",
     "Y[j] += X[k] * (f32(W[k,j]) * S[j]); P[k] = sin(A[k]); Z[j] += X[k] * (f32(W[k,j]) * S[j]); ",
     true},
};

static struct program *written(const struct makers_case *c, const char *last) {
    struct text t = {0};
    struct equal_case e = {.declarations = DECLARED};
    bool all = strstr(last, "Z[") != NULL, made = strstr(last, "P[") || strstr(c->between, "P[");
    text_printf(&t, "%s%s%s%s%s", c->first, c->between, last, all ? "" : "Z[j] = 1; ",
                made ? "" : "P[k] = sin(A[k]); ");
    struct program *p = program_of(&e, t.at);
    text_free(&t);
    return p;
}

static void test_makers(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct program *p = written(&cases[k], cases[k].before),
                       *q = written(&cases[k], cases[k].after);
        struct chain *c = chain_new(p);
        chain_append(c, q, "test", false);
        struct chain_report r = chain_verify(c, q, NULL);
        if ((r.evidence == EVIDENCE_PROVED) != cases[k].proved)
            fail_msg("case %zu: %s", k, evidence_name[r.evidence]);
        chain_free(c);
        program_free(p);
        program_free(q);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_makers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
