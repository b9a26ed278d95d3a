/* The first steps of a recurrence give what all of them give, as far as they go. */
#include "mapper_help.h"
#include "ir/interp.h"

#include <stdlib.h>
#include <string.h>

enum { STEPS = 7 };

static void **data_of(const struct program *p) {
    void **data = calloc((size_t)p->nbuffers + 1, sizeof *data);
    for (int b = 0; b < p->nbuffers; b++) {
        const struct buffer *x = &p->buffer[b];
        if (x->role == ROLE_TEMP || x->role == ROLE_STATE) continue;
        int32_t *v = data[b] = calloc((size_t)x->elements + 1, sizeof *v);
        for (int64_t e = 0; e < x->elements; e++) v[e] = (int32_t)(e * 7 % 11) - 5;
    }
    return data;
}

static void data_free(const struct program *p, void **data) {
    for (int b = 0; b < p->nbuffers; b++) free(data[b]);
    free(data);
}

/* How many elements of y are known after so many steps; they are compared. 0: none are. */
static int64_t known(const char *head, const char *body, int64_t steps) {
    struct text t = {0};
    struct diags d;
    int64_t elements[32];
    text_printf(
        &t,
        "kernel r(T=%d) {\n in X: i32[T, 3]  in h0: i32[3]  out y: i32[T, 3]  out hT: i32[3]\n"
        " temp x: i32[T, 3]\n axes s: T, i: 3, j: 3\n %s {\n %s\n }\n}\n",
        STEPS, head, body);
    diags_init(&d);
    struct program *p = help_program("r", t.at), *q = program_first_steps(p, steps, elements);
    int y = program_buffer(p, "y");
    int64_t n = q ? elements[y] : 0;
    if (q && program_verify(q, &d)) {
        void **want = data_of(p), **got = data_of(q);
        assert_true(program_run(p, want, NULL, NULL, &d) && program_run(q, got, NULL, NULL, &d));
        assert_memory_equal(want[y], got[y], (size_t)n * sizeof(int32_t));
        data_free(p, want);
        data_free(q, got);
    } else {
        n = 0;
    }
    program_free(q);
    program_free(p);
    diags_free(&d);
    text_free(&t);
    return n;
}

#define STATE "state h: i32[3] from h0 to hT"

static void test_rows(void **state) {
    (void)state;
    for (int64_t steps = 1; steps <= STEPS; steps++) {
        assert_int_equal(
            known("recur t: T " STATE, "h'[i] = h[i] * 3 + X[t,i]; y[t,i] = h'[i]", steps),
            3 * steps);
        /* what is made for all steps before goes as far, and further where a step looks ahead */
        assert_int_equal(known("x[s,i] = X[s,i] * 2; recur t: T " STATE,
                               "h'[i] = h[i] * 3 + x[t,i]; y[t,i] = h'[i]", steps),
                         3 * steps);
        assert_int_equal(known("x[s,i] = X[s,i] * 2; x[s,i] += X[s,j] * X[i,j]; recur t: T " STATE,
                               "h'[i] = h[i] * 3 + x[t,i]; y[t,i] = h'[i]", steps),
                         3 * steps);
    }
}

static void test_others(void **state) {
    (void)state;
    assert_int_equal(known("recur t: T reverse " STATE, "h'[i] = h[i] + X[t,i]; y[t,i] = h'[i]", 2),
                     0);
    assert_int_equal(
        known("y[s,i] = 0; recur t: T " STATE, "h'[i] = h[i] + X[t,i]; y[t,i] = h'[i]", 2), 0);
    assert_int_equal(known("recur t: T " STATE, "h'[i] = h[i] + X[t,i]; y[6-t,i] = h'[i]", 2), 0);
    assert_int_equal(known("recur t: T " STATE, "h'[i] = h[i] + X[t,i]; y[t,i] = h'[i]", STEPS + 1),
                     0);
    /* a sum over all rows is not shortened; what lies ahead is not there, and the check says so */
    assert_int_equal(known("x[0,i] = 0; x[0,i] += X[s,i]; recur t: T " STATE,
                           "h'[i] = h[i] + x[0,i]; y[t,i] = h'[i]", 2),
                     6);
    assert_int_equal(
        known("x[s,i] = X[s,i]; recur t: T " STATE, "h'[i] = h[i] + x[6-t,i]; y[t,i] = h'[i]", 2),
        0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows), cmocka_unit_test(test_others)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
