/* Results beside the reference: what is right, wrong and undecided, and what is looked at of
 * results that are too large to be compared whole. */
#include "mapper_help.h"

#include "command/isamap_int.h"
#include "ir/memory.h"

#include <math.h>

struct compared {
    isamap *im;
    struct job job;
    struct arrays in, got;
};

static void open_text(struct compared *x, const char *text) {
    x->im = isamap_open();
    job_init(&x->job, "compared.isam");
    x->job.name = "compared";
    x->job.program = x->job.own_program = help_program("compared", text);
    const struct program *p = x->job.program;
    x->in = (struct arrays){.data = memory_array((size_t)p->nbuffers, sizeof *x->in.data)};
    x->in.n = p->nbuffers;
    for (int b = 0; b < p->nbuffers; b++) {
        size_t n = (size_t)p->buffer[b].elements + 1, bytes = type_size(p->buffer[b].type);
        x->in.data[b] = memory_take(n, bytes);
        memset(x->in.data[b], 0, n * bytes);
    }
}

static void *data(struct compared *x, struct arrays *a, const char *name) {
    int b = program_buffer(x->job.program, name);
    assert_true(b >= 0);
    return a->data[b];
}

/* What exact arithmetic gives. */
static void run(struct compared *x) {
    struct diags ignored;
    diags_init(&ignored);
    x->got = arrays_copy(&x->job, &x->in);
    assert_true(program_run(x->job.program, x->got.data, NULL, NULL, &ignored));
    diags_free(&ignored);
}

static void close_all(struct compared *x) {
    arrays_free(&x->in);
    arrays_free(&x->got);
    job_free(&x->job);
    isamap_close(x->im);
}

static struct comparison compare(struct compared *x, int64_t whole_macs) {
    struct comparison c;
    struct reference *r = reference_make(x->im, &x->job, &x->in, whole_macs);
    assert_non_null(r);
    reference_compare(x->im, r, &x->got, &c);
    reference_free(r);
    assert_true(c.done);
    return c;
}

enum { ALL = 1000000 };

/* Of one element, which gets this value. */
static struct comparison with_float(struct compared *x, const char *name, int at, double value) {
    float *f = data(x, &x->got, name), old = f[at];
    f[at] = (float)value;
    struct comparison c = compare(x, ALL);
    f[at] = old;
    return c;
}

#define SUM "axes k: 40; s[] = 0; s[] += X[k] * Y[k]; "

static void fill_sum(struct compared *x, float first) {
    float *X = data(x, &x->in, "X"), *Y = data(x, &x->in, "Y");
    for (int k = 0; k < 40; k++) {
        X[k] = (float)(k % 2 ? -0.1 : 0.1) * (float)(k / 2 + 3);
        Y[k] = 0.3f;
    }
    X[0] += first;
}

/* Up to its bound an element is right, on either side. */
static void bounds_of_sums(void **state) {
    struct compared x;
    (void)state;
    open_text(&x, "kernel k() { in X: f32[40]; in Y: f32[40]; out s: f32; " SUM "}");
    fill_sum(&x, 5);
    run(&x);
    float s = *(float *)data(&x, &x.got, "s");
    struct comparison c = with_float(&x, "s", 0, s * 1.001);
    assert_true(c.wrong == 1 && !c.equal && c.max_of_bound > 1 && c.compared == 1);
    assert_true(fabs(c.max_rel - 0.001) < 1e-5 && fabs(c.max_abs - 0.001 * s) < 1e-4);
    double bound = c.worst.bound;
    for (int side = -1; side <= 1; side += 2) {
        c = with_float(&x, "s", 0, s + side * 0.7 * bound);
        assert_true(c.equal && c.wrong == 0 && c.max_of_bound > 0.3 && c.max_of_bound <= 1);
        assert_int_equal(with_float(&x, "s", 0, s + side * 1.6 * bound).wrong, 1);
    }
    x.im->option.rtol = 0.002;
    assert_true(with_float(&x, "s", 0, s * 1.001).equal);
    assert_false(with_float(&x, "s", 0, s * 1.003).equal);
    close_all(&x);
}

/* A maximum of 0 and what is about 0 is not below 0, but may be above. */
static void bounds_of_one_side(void **state) {
    struct compared x;
    (void)state;
    open_text(&x, "kernel k() { in X: f32[40]; in Y: f32[40]; temp s: f32; out m: f32; " SUM
                  "m[] = max(s[], 0) }");
    fill_sum(&x, -1e-7f);
    run(&x);
    assert_true(with_float(&x, "m", 0, 1e-8).equal);
    assert_false(with_float(&x, "m", 0, -1e-8).equal);
    assert_true(with_float(&x, "m", 0, -1e-40).equal); /* results below the normal ones may be 0 */
    close_all(&x);
}

static void values_that_are_no_numbers(void **state) {
    struct compared x;
    (void)state;
    open_text(&x, "kernel k() { in X: f32[4]; out y: f32[4]; axes i: 4; y[i] = X[i] }");
    float *X = data(&x, &x.in, "X");
    X[0] = NAN, X[1] = INFINITY, X[2] = -INFINITY, X[3] = 1;
    run(&x);
    struct comparison c = compare(&x, ALL);
    assert_true(c.equal && c.compared == 4 && c.max_abs == 0);
    const double wrong[4][3] = {
        {1, INFINITY, 0}, {NAN, -INFINITY, 1}, {NAN, INFINITY, 1}, {NAN, INFINITY, -INFINITY}};
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 3; k++) {
            c = with_float(&x, "y", i, wrong[i][k]);
            assert_true(c.wrong == 1 && !c.equal && c.worst.element == i);
        }
    close_all(&x);
}

/* Where s is about 0 its sign is not decided: `many` elements hang on it, of 100. */
static void undecided_elements(void **state) {
    (void)state;
    for (int many = 1; many <= 2; many++) {
        struct compared x;
        open_text(&x, "kernel k() { in X: f32[40]; in Y: f32[40]; in Z: f32[100]; temp s: f32; "
                      "out y: f32[100]; axes i: 100; " SUM
                      "y[i] = select(s[] * Z[i] + (1 - Z[i]) > 0, 1.0, 2.0) }");
        fill_sum(&x, -1e-7f);
        float *Z = data(&x, &x.in, "Z");
        for (int i = 0; i < many; i++) Z[i] = 1;
        run(&x);
        struct comparison c = compare(&x, ALL);
        assert_true(c.equal && c.undecided == 0 && c.compared == 100);
        float *y = data(&x, &x.got, "y");
        for (int i = 0; i < many; i++) y[i] = 3 - y[i];
        c = compare(&x, ALL);
        assert_int_equal(c.undecided, many);
        assert_int_equal(c.wrong, 0);
        assert_int_equal(c.too_many, many == 2);
        assert_int_equal(c.equal, many == 1);
        assert_int_equal(with_float(&x, "y", 99, 2).wrong, 1);
        x.im->option.rtol = 0.1; /* then nothing is undecided */
        assert_int_equal(compare(&x, ALL).wrong, many);
        close_all(&x);
    }
}

/* An integer that may be one more is right; a truth that may be either is undecided. */
static void undecided_integers(void **state) {
    struct compared x;
    (void)state;
    open_text(&x,
              "kernel k() { in X: f32[40]; in Y: f32[40]; temp s: f32; out b: bool; out n: i32; "
              "out m: i32; out u: u64; " SUM "b[] = s[] > 0; n[] = select(s[] > 0, 7, 8); "
              "m[] = select(s[] > 0, 7, 9); u[] = 18446744073709551615 }");
    fill_sum(&x, -1e-7f);
    run(&x);
    assert_true(compare(&x, ALL).equal);
    int32_t *n = data(&x, &x.got, "n"), *m = data(&x, &x.got, "m"), is = *n;
    *n = 15 - is;
    struct comparison c = compare(&x, ALL);
    assert_true(c.equal && c.undecided == 0 && c.max_of_bound == 1 && c.max_abs == 1);
    *n = is > 7 ? 9 : 6;
    assert_int_equal(compare(&x, ALL).wrong, 1);
    *n = is;
    *m = 16 - *m;
    assert_int_equal(compare(&x, ALL).undecided, 1);
    *m = 16 - *m;
    bool *b = data(&x, &x.got, "b");
    *b = !*b;
    assert_int_equal(compare(&x, ALL).undecided, 1);
    *b = !*b;
    uint64_t *u = data(&x, &x.got, "u");
    *u -= 1;
    c = compare(&x, ALL);
    assert_true(c.wrong == 1 && c.max_abs == 1 && c.max_rel < 1e-18);
    close_all(&x);
}

/* An array that is read and written is a result too. */
static void changed_arrays(void **state) {
    struct compared x;
    (void)state;
    open_text(&x, "kernel k() { inout z: f32[3]; axes i: 3; z[i] = z[i] + 1 }");
    run(&x);
    assert_true(compare(&x, ALL).equal);
    assert_int_equal(with_float(&x, "z", 2, 0).wrong, 1);
    close_all(&x);
}

/* Of more than is interpreted as a whole samples are compared, the first and the last among them.
 */
static void samples(void **state) {
    struct compared x;
    (void)state;
    open_text(&x,
              "kernel k() { in X: f32[9000]; out y: f32[9000]; axes i: 9000; y[i] = X[i] + 1 }");
    run(&x);
    struct comparison c = compare(&x, 0);
    assert_true(c.equal && c.sampled == 4096 && c.compared == 4096);
    float *y = data(&x, &x.got, "y");
    for (int k = 0; k < 2; k++) {
        y[k * 8999] = 9;
        c = compare(&x, 0);
        assert_true(c.wrong == 1 && c.worst.element == k * 8999);
        y[k * 8999] = 1;
    }
    assert_int_equal(compare(&x, 9000).sampled, 0);
    close_all(&x);
}

/* So many samples as have 16,000,000 terms, by the longest sum of those that write the result, but
 * at least 64. */
static void samples_of_sums(void **state) {
    static const struct {
        const char *text;
        int64_t samples;
    } sums[] = {
        {"kernel k() { in X: f32[4000]; out y: f32[5000]; axes i: 5000, k: 4000; "
         "y[i] = 0; y[i] += X[k] }",
         4000},
        {"kernel k() { in X: f32[4000]; out y: f32[5000]; axes i: 5000, k: 4000, j: 4; "
         "y[i] = 0; y[i] += X[k]; y[i] += X[j] }",
         4000},
        {"kernel k() { in X: f32[8000]; out y: f32[5000]; axes i: 5000, k: 8000; "
         "y[i] = 0; y[i] += X[k] }",
         2000},
        {"kernel k() { in X: f32[300000]; out y: f32[100]; axes i: 100, k: 300000; "
         "y[i] = 0; y[i] += X[k] }",
         64},
        {"kernel k() { in X: f32[9]; temp t: f32[8000]; out y: f32[5000]; "
         "axes i: 5000, j: 8000, k: 9; t[j] = 0; t[j] += X[k]; y[i] = t[i] }",
         4096},
    };
    (void)state;
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) {
        struct compared x;
        open_text(&x, sums[i].text);
        x.got = arrays_copy(&x.job, &x.in); /* of zeros: what is right is as it was */
        struct comparison c = compare(&x, 0);
        assert_true(c.equal);
        assert_int_equal(c.sampled, sums[i].samples);
        close_all(&x);
    }
}

/* Of a recurrence that is too long so many steps are compared as have that many products. */
static void first_steps(void **state) {
    struct compared x;
    (void)state;
    open_text(&x, "kernel k() { in X: f32[20,8]; in h0: f32; out y: f32[20]; axes k: 8; "
                  "recur t: 20 state h: f32 from h0 { temp a: f32; a[] = h[]; "
                  "a[] += X[t,k] * X[t,k]; h'[] = a[]; y[t] = a[] } }");
    run(&x);
    struct comparison c = compare(&x, 80);
    assert_int_equal(c.steps, 10);
    assert_true(c.equal && c.compared == 10);
    float *y = data(&x, &x.got, "y");
    y[10] = 1;
    assert_true(compare(&x, 80).equal);
    y[9] = 1;
    assert_int_equal(compare(&x, 80).wrong, 1);
    assert_int_equal(compare(&x, ALL).wrong, 2);
    close_all(&x);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(bounds_of_sums),
                                       cmocka_unit_test(bounds_of_one_side),
                                       cmocka_unit_test(values_that_are_no_numbers),
                                       cmocka_unit_test(undecided_elements),
                                       cmocka_unit_test(undecided_integers),
                                       cmocka_unit_test(changed_arrays),
                                       cmocka_unit_test(samples),
                                       cmocka_unit_test(samples_of_sums),
                                       cmocka_unit_test(first_steps)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
