/* What a point of the fallback's loops takes, by the operations of their bodies. */
#include "mapper_help.h"
#include "machines/machine.h"

#include <math.h>

#define LOOP(inputs, result, is)                                                                   \
    "kernel p() { " inputs " out y: " result "[64,4096] axes k: 64, p: 4096; y[k,p] = " is ";}"
#define REQUANTISER(S)                                                                             \
    LOOP("in S: i32[64,4096] in T: i32[4096,64] const f: f64[64]", "i8",                           \
         "i8(clip(round(f64(" S ") * f[k]), -128, 127))")
#define OF_FLOATS(is) LOOP("in S: f32[64,4096]", "f32", is)

static double cycles_of(const struct machine *m, const char *text) {
    struct program *p = help_program("loop", text);
    const struct stmt *s = &p->stmt[p->nstmts - 1];
    double cycles = loop_cycles(m, 0, p, s, loop_kind_of(p, s, NULL), NULL);
    program_free(p);
    return cycles;
}

/* Each operation, load and store counts, of as many bytes as it has. */
static void test_operations_count(void **state) {
    struct machine *m = help_machine("machines/cpu-avx2.xml");
    double word = m->fallback[0].vector;
    (void)state;
    assert_true(word > 0);
    static const struct {
        const char *text;
        double work;
    } loops[] = {
        {OF_FLOATS("max(S[k,p], 0)"), 3},
        {OF_FLOATS("clip(S[k,p], 0, 6)"), 4},
        {OF_FLOATS("max(S[k,p], 0) + max(S[k,p], 1)"), 5}, /* loaded once */
        {OF_FLOATS("S[k,p] * 3 + 1"), 3},                  /* one operation with the product */
        {OF_FLOATS("1 / S[k,p]"), 8},
        {LOOP("in S: f32[64,4096] in g: f32[64]", "f32", "S[k,p] * (1 / g[k])"), 3},
        {LOOP("in S: f32[64,4096] in g: f32[64]", "f32", "S[k,p] + 3 * g[k]"), 3},
        {LOOP("in S: i8[64,4096]", "i8", "max(S[k,p], 0)"), 0.75},
        {LOOP("in S: i8[64,4096]", "f32", "f32(S[k,p])"), 2.25},
        {LOOP("in S: f32[64,4096]", "i8", "i8(round(S[k,p]))"), 8.25},
        {LOOP("in S: f64[64,4096]", "f64", "max(S[k,p], 0)"), 6},
        {REQUANTISER("S[k,p]"), 23.25},
        {"kernel p() { in S: f32[64,4096] out y: f32[64] axes k: 64, p: 4096; y[k] = 0; "
         "y[k] += S[k,p];}",
         2},
        {"kernel p() { in S: f32[64,4096] out y: f32[4096] axes k: 64, p: 4096; y[p] = 0; "
         "y[p] += S[k,p];}",
         4},
    };
    for (size_t i = 0; i < sizeof loops / sizeof *loops; i++) {
        double work = cycles_of(m, loops[i].text) / word;
        if (fabs(work - loops[i].work) > 1e-9) print_message("%s: %g\n", loops[i].text, work);
        assert_true(fabs(work - loops[i].work) <= 1e-9);
    }
    assert_true(cycles_of(m, REQUANTISER("T[p,k]")) >= cycles_of(m, REQUANTISER("S[k,p]")) + 1);
    machine_free(m);
}

static enum copy_kind kind_of(const char *text) {
    struct program *p = help_program("copy", text);
    enum copy_kind kind = loop_kind_of(p, &p->stmt[p->nstmts - 1], NULL);
    program_free(p);
    return kind;
}

#define STEPS(by)                                                                                  \
    "kernel p() { in S: i8[64,320] out y: i8[64,64] axes c: 64, q: 64; y[q,c] = S[c," #by "*q]; }"
/* Rows whose elements are up to four apart are turned in squares as others are, and so are windows
 * that are written out. */
static void test_copies_in_steps(void **state) {
    (void)state;
    assert_int_equal(kind_of(STEPS(1)), COPY_TURN);
    assert_int_equal(kind_of(STEPS(4)), COPY_TURN);
    assert_int_equal(kind_of(STEPS(5)), COPY_ANY);
    assert_int_equal(kind_of("kernel p() { in S: i8[64,320] out y: i8[64,64] axes c: 64, q: 64; "
                             "y[c,q] = S[c,2*q]; }"),
                     COPY_TURN);
    assert_int_equal(kind_of("kernel p() { in S: i8[64,320] out y: i8[64,7,64] "
                             "axes c: 64, q: 64, s: 7; y[q,s,c] = S[c,2*q+s]; }"),
                     COPY_TURN);
    assert_int_equal(kind_of("kernel p() { in S: i8[64,9999] out y: i8[99,65,64] "
                             "axes c: 64, q: 99, s: 65; y[q,s,c] = S[c,2*q+s]; }"),
                     COPY_ANY);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_operations_count),
                                       cmocka_unit_test(test_copies_in_steps)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
