/* The interpreter beyond single operators: its fast path, samples, recurrences, calls, counting,
 * limits. */
#include "tests/ir_support.h"

#define EACH(i, n) for (int i = 0; i < (n); i++)
#define OPERATOR(name) SOURCE_DIR "/examples/operators/" name ".isam"

/* Numbers that need rounding at each step, so that a different order shows. */
static void rough_data(struct trial *t) {
    uint64_t seed = 99;
    EACH(b, t->p->nbuffers) {
        const struct buffer *f = &t->p->buffer[b];
        unsigned char *data = t->data[b];
        for (int64_t k = 0; data && k < f->elements; k++) {
            union value v = random_value(f->type, &seed);
            if (type_is_float(f->type))
                v.f = ((double)(next_random(&seed) >> 11) / 0x1p53 - 0.5) * 3;
            else
                v.i = type_wrap(f->type, next_random(&seed));
            type_store(f->type, data + (size_t)k * type_size(f->type), v);
        }
    }
}

static void check_fast(const char *text, bool (*fast)(struct walk *)) {
    struct trial t, u;
    trial_text(&t, text, "");
    trial_text(&u, text, "");
    rough_data(&t);
    rough_data(&u);
    EACH(s, t.p->nstmts) {
        struct walk w;
        walk_open(&w, t.p, &t.p->stmt[s], t.data, NULL);
        if (s == t.p->nstmts - 1)
            assert_true(fast(&w));
        else
            walk_run(&w);
        walk_close(&w);
        stmt_run_plainly(u.p, &u.p->stmt[s], u.data);
    }
    EACH(b, t.p->nbuffers) {
        size_t bytes = (size_t)t.p->buffer[b].elements * type_size(t.p->buffer[b].type);
        if (t.data[b]) assert_memory_equal(t.data[b], u.data[b], bytes);
    }
    trial_close(&t);
    trial_close(&u);
}

static void test_fast_path_is_the_same(void **state) {
    (void)state;
    static const char *const types[][3] = {{"f64", "f64", "f64"}, {"f32", "f32", "f32"},
                                           {"f32", "f16", "f16"}, {"f32", "bf16", "bf16"},
                                           {"i32", "i32", "i32"}, {"i32", "i16", "i16"},
                                           {"i32", "i8", "i8"},   {"i32", "u8", "i8"},
                                           {"i32", "i8", "u8"},   {"i32", "u8", "u8"}};
    static const char *const body[] = {
        "axes i: 7, j: 5, k: 29\n C[i,j] += %s(A[i,k]) * %s(B[k,j])",
        "axes k: 29, i: 7, j: 5\n C[i,j] += %s(A[i,k]) * %s(B[k,j])", /* innermost: not the
                                                                         reduction */
        "axes i: 3, j: 5, k: 7\n C[i+j,4-j] += %s(A[2*i,3*k]) * %s(B[3*k+i,j])",
        "axes i: 7, k: 29\n C[i,0] += %s(A[i,k]) * %s(B[0,0])",
        /* fills: either side, both, strides of either sign, nothing inside */
        "axes i: 7, j: 5, k: 29\n C[i,j] += %s(A[i,k-3 else 0]) * %s(B[k,j])",
        "axes i: 7, j: 5, k: 40\n C[i,j] += %s(A[i-1,2*k-9 else 3]) * %s(B[k-6,j+1 else 2])",
        "axes i: 7, j: 5, k: 29\n C[i,j] += %s(A[i,20-3*k else 1]) * %s(B[28-2*k,j else 0])",
        "axes k: 9, i: 7, j: 5\n C[i,j] += %s(A[i+j-4,k else 7]) * %s(B[4-k,j-2 else 5])",
        "axes i: 7, j: 5, k: 3\n C[i,j] += %s(A[i+7,k else 1]) * %s(B[k,j])",
    };
    for (size_t n = 0; n < sizeof types / sizeof *types; n++) {
        for (size_t m = 0; m < sizeof body / sizeof *body; m++) {
            char inner[256], text[512];
            snprintf(inner, sizeof inner, body[m], types[n][0], types[n][0]);
            snprintf(text, sizeof text,
                     "kernel a() { in A: %s[7, 29]  in B: %s[29, 5]  inout C: %s[7, 5]\n %s }",
                     types[n][1], types[n][2], types[n][0], inner);
            check_fast(text, walk_sum_of_products);
        }
    }
}

static void test_fast_copies_are_the_same(void **state) {
    (void)state;
    static const char *const types[] = {"i8", "u16", "f16", "bf16", "f32", "i32", "f64", "u64"};
    static const char *const body[] = {
        "axes i: 7, j: 9\n C[i,j] = A[i,j]",
        "axes j: 9, i: 7\n C[i,j] = A[i,j]", /* innermost: not dense */
        "axes i: 7, j: 4\n C[6-i,2*j+1] = A[i,8-2*j]",
        "axes i: 7, j: 9\n C[i,j] = A[3,2]",
        "axes i: 7, j: 9\n C[i,j] = A[i-2,j+4 else 3]",
        "axes i: 7, j: 9\n C[i,j] = A[12-2*i,j-4 else 5]",
        "axes i: 7, j: 9\n C[i,j] = A[i+7,j else 1]",
        "axes i: 3, j: 5\n C[i+j,j] = A[i,i+j]",
    };
    for (size_t n = 0; n < sizeof types / sizeof *types; n++)
        for (size_t m = 0; m < sizeof body / sizeof *body; m++) {
            char text[512];
            snprintf(text, sizeof text, "kernel a() { in A: %s[7, 9]  inout C: %s[7, 9]\n %s }",
                     types[n], types[n], body[m]);
            check_fast(text, walk_copy);
        }
}

static void test_no_copies(void **state) {
    (void)state;
    static const char *const body[] = {
        "in A: bool[4]  out C: bool[4]  axes i: 4\n C[i] = A[i]", /* any bits are true */
        "in A: i8[4]  out C: i16[4]  axes i: 4\n C[i] = i16(A[i])",
        "in A: i8[4]  inout C: i8[4]  axes i: 4\n C[i] += A[i]",
        "in A: i8[4]  inout C: i8[4]  axes i: 4\n C[i] = A[i] where i < 3 and i >= 1",
        "inout C: i8[4]  axes i: 3\n C[i] = 2",
    };
    for (size_t m = 0; m < sizeof body / sizeof *body; m++) {
        char text[256];
        struct trial t;
        struct walk w;
        snprintf(text, sizeof text, "kernel a() { %s }", body[m]);
        trial_text(&t, text, "");
        walk_open(&w, t.p, &t.p->stmt[0], t.data, NULL);
        assert_false(walk_copy(&w));
        walk_close(&w);
        trial_close(&t);
    }
}

static void check_samples(const char *path, const char *sizes, const char *out) {
    struct trial t;
    trial_file(&t, path, sizes, "");
    int b = buffer_of(&t, out);
    int64_t n = t.p->buffer[b].elements;
    int64_t *element = calloc((size_t)n, sizeof *element);
    union value *got = calloc((size_t)n, sizeof *got);
    /* all of them, scattered */
    for (int64_t k = 0; k < n; k++) element[k] = (k * 7 + 3) % n;
    unsigned char *result_data = t.data[b];
    t.data[b] = t.p->buffer[b].role == ROLE_OUT ? NULL : t.data[b];
    assert_true(program_sample(t.p, t.data, b, element, (int)n, got));
    t.data[b] = result_data;
    for (int64_t k = 0; k < n; k++)
        if (got[k].f != t.after[b][element[k]])
            fail_msg("%s[%lld] is %.17g, expected %.17g", out, (long long)element[k], got[k].f,
                     t.after[b][element[k]]);
    free(element);
    free(got);
    trial_close(&t);
}

static void test_samples_are_the_run(void **state) {
    (void)state;
    check_samples(OPERATOR("gmm"), "M=5 N=7 K=9", "C");
    check_samples(OPERATOR("c2d"), "N=2 C=3 K=4 P=5 Q=3 R=3 S=2", "O");
    check_samples(OPERATOR("t2d"), "N=1 C=3 K=2 P=3 Q=5 R=3 S=3", "O");
    check_samples(OPERATOR("scn"), "M=3 N=9", "Y");
    check_samples(OPERATOR("softmax"), "M=3 N=7", "Y");
    check_samples(OPERATOR("layernorm"), "M=3 N=9", "Y");
    check_samples(OPERATOR("att"), "B=2 T=5 D=3", "O");
    check_samples(OPERATOR("var"), "M=3 N=9", "v");
    check_samples(SOURCE_DIR "/examples/conv2d.isam", "N=1 C=2 K=3 H=5 W=7", "O");
}

static void test_samples_of_a_partial_write(void **state) {
    (void)state;
    struct trial t;
    trial_text(&t,
               "kernel a() { in x: f64[4]  inout y: f64[9]  axes i: 4\n y[2*i+1] = x[i]\n"
               " y[2*i] += x[3-i] where i >= 1 }",
               "");
    int64_t element[9] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
    union value got[9];
    int b = buffer_of(&t, "y");
    EACH(k, 9) type_store(TYPE_F64, (double *)t.data[b] + k, (union value){.f = t.before[b][k]});
    assert_true(program_sample(t.p, t.data, b, element, 9, got));
    EACH(k, 9) assert_true(got[k].f == t.after[b][k]);
    element[0] = 9;
    assert_false(program_sample(t.p, t.data, b, element, 1, got));
    trial_close(&t);
}

static void test_samples_need_no_recurrence(void **state) {
    (void)state;
    struct trial t;
    int64_t element = 0;
    union value got;
    trial_file(&t, SOURCE_DIR "/examples/f32/rnn.isam", "T=2 H=3", "");
    assert_false(program_sample(t.p, t.data, buffer_of(&t, "hT"), &element, 1, &got));
    trial_close(&t);
}

static void test_reverse_and_nested(void **state) {
    (void)state;
    struct trial t;
    trial_text(&t,
               "kernel a() { in x: f64[3]  in s: f64[1]  out y: f64[3]  out z: f64[1]  axes e: 1\n"
               "  recur t: 3 reverse state h: f64[1] from s to z {\n"
               "    recur r: 2 state q: f64[1] from h to h' { q'[e] = q[e] * 2 + x[t] + r }\n"
               "    y[t+e] = h'[e]\n  } }",
               "");
    double h = given(&t, "s")[0], y[3];
    for (int k = 2; k >= 0; k--) {
        EACH(r, 2) h = h * 2 + given(&t, "x")[k] + r;
        y[k] = h;
    }
    check_close(&t, "y", y, 0);
    check_close(&t, "z", &h, 0);
    assert_int_equal(program_operations(t.p), 3 * 2 * 3);
    trial_close(&t);
}

static void test_several_states(void **state) {
    (void)state;
    struct trial t; /* Fibonacci: the next values are computed from the current ones */
    trial_text(
        &t,
        "kernel a() { in o: i32[1]  out y: i32[1]  out z: i32[1]  axes e: 1\n temp one: i32[1]\n"
        "  one[e] = 1\n"
        "  recur t: 9 state a: i32[1] from one to y state b: i32[1] from one to z {\n"
        "    a'[e] = b[e]\n    b'[e] = a[e] + b[e]\n  } }",
        "");
    assert_true(result(&t, "y")[0] == 55 && result(&t, "z")[0] == 89);
    trial_close(&t);
}

static bool double_it(void *user, const char *function, void *const *data, const struct program *p,
                      const struct call *c) {
    (void)p;
    assert_string_equal(function, "twice");
    assert_int_equal(c->nreads, 1);
    EACH(k, 4)((float *)data[1])[k] = 2 * ((const float *)data[0])[k];
    ++*(int *)user;
    return *(int *)user < 3;
}

static void test_calls(void **state) {
    (void)state;
    struct trial t;
    int calls = 0;
    trial_open(&t);
    trial_parse(&t, "text",
                "kernel a() { in x: f32[4]  out y: f32[4]  temp t: f32[4]  axes i: 4\n"
                "  call twice(x) -> (t)\n  y[i] = t[i] + 1\n call twice(y) -> (t) }");
    assert_true(trial_bind(&t, "", ""));
    trial_data(&t, 1);
    assert_true(program_run(t.p, t.data, double_it, &calls, &t.diags));
    EACH(k, 4) assert_true(((float *)t.data[1])[k] == 2 * ((float *)t.data[0])[k] + 1);
    assert_int_equal(calls, 2);
    assert_false(program_run(t.p, t.data, double_it, &calls, &t.diags));
    assert_string_equal(t.diags.at[0].text, "program 'a': the opaque call of 'twice' failed");
    assert_false(program_run(t.p, t.data, NULL, NULL, &t.diags));
    trial_close(&t);
}

static void test_missing_data_and_memory(void **state) {
    (void)state;
    struct trial t;
    trial_open(&t);
    trial_parse(&t, "text",
                "kernel a(N=1) { in x: f32[4]  out y: f32[4]  temp t: f64[N]  axes i: 4, j: N\n"
                "  t[j] = 0\n  y[i] = x[i] }");
    assert_true(trial_bind(&t, "N=3000000000", ""));
    assert_false(program_run(t.p, t.data, NULL, NULL, &t.diags));
    assert_string_equal(t.diags.at[0].text, "program 'a': no data is given for 'x'");
    trial_data(&t, 1);
    assert_false(program_run(t.p, t.data, NULL, NULL, &t.diags));
    assert_non_null(strstr(t.diags.at[1].text, "more than 16 GiB"));
    trial_close(&t);
}

static void test_counting(void **state) {
    (void)state;
    struct trial t;
    trial_open(&t);
    trial_parse(&t, "text",
                "kernel a(N) { in x: f32[N,N,N]  out y: f32[N,N,N]  axes i: N, j: N, k: N, l: N\n"
                "  y[i,j,k] = 0\n"
                "  y[i,j,k] = x[i,j,k] * 2 where i + j + k <= N and k >= 1\n"
                "  y[i,j,k] += x[i,j,l] * x[l,j,k] where i <= j and k == l\n }");
    assert_true(trial_bind(&t, "N=17", ""));
    int64_t first = 0, second = 0;
    EACH(i, 17) EACH(j, 17) EACH(k, 17) first += i + j + k <= 17 && k >= 1;
    EACH(i, 17) EACH(j, 17) second += i <= j;
    second *= 17;
    assert_int_equal(stmt_points(t.p, &t.p->stmt[0]), 17 * 17 * 17);
    assert_int_equal(stmt_points(t.p, &t.p->stmt[1]), first);
    assert_int_equal(stmt_points(t.p, &t.p->stmt[2]), second);
    assert_int_equal(program_macs(t.p), second);
    assert_int_equal(program_operations(t.p), first);
    trial_close(&t);
}

static void test_counting_saturates(void **state) {
    (void)state;
    struct trial t;
    trial_open(&t);
    trial_parse(&t, "text",
                "kernel a(N) { in x: f32[1]  inout y: f32[1]  axes i: N, j: N, k: N\n"
                "  y[0] += x[0] * x[0] where i + j + k >= 0 and i - j <= N and j - k <= N\n }");
    assert_true(trial_bind(&t, "N=4", ""));
    assert_int_equal(program_macs(t.p), 64);
    EACH(a, 3) t.p->axis[a].extent = (int64_t)1 << 40;
    t.p->stmt[0].nwhere = 0;
    assert_int_equal(program_macs(t.p), INT64_MAX);
    trial_close(&t);
}

/* Constraints that change with a recurrence's step. */
static void test_triangle_in_time(void **state) {
    (void)state;
    struct trial t;
    trial_text(&t,
               "kernel a() { in s: i32[1]  out z: i32[1]  axes e: 1, k: 5\n"
               "  recur t: 5 state h: i32[1] from s to z {\n"
               "    h'[e] = h[e]\n    h'[e] += 1 where k <= t\n  } }",
               "");
    double want = given(&t, "s")[0] + 15;
    check_close(&t, "z", &want, 0);
    assert_int_equal(program_operations(t.p), 15);
    assert_int_equal(stmt_points(t.p, &t.p->stmt[1]), 3);
    trial_close(&t);
}

static void test_narrow_sums_round_in_the_buffer(void **state) {
    (void)state;
    struct trial t;
    trial_text(&t,
               "kernel a() { out y: f16[1]  axes k: 3\n  y[0] = 2048\n"
               "  y[0] += 1 where k >= 0\n }",
               "");
    assert_true(result(&t, "y")[0] == 2048);
    trial_close(&t);
}

/* Part of a statement, with its axes moved to 0: the value of an axis is that of the whole. */
static void test_axis_values_in_a_part(void **state) {
    (void)state;
    struct trial t;
    trial_text(&t, "kernel a() { out y: i32[3]  axes k: 3\n  y[k] = 10*k\n }", "");
    int32_t y[3] = {0};
    void *data[1] = {y};
    int64_t from[1] = {4};
    stmt_run_part(t.p, &t.p->stmt[0], data, NULL, from);
    for (int k = 0; k < 3; k++) assert_int_equal(y[k], 10 * (4 + k));
    trial_close(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_axis_values_in_a_part),
        cmocka_unit_test(test_fast_path_is_the_same),
        cmocka_unit_test(test_fast_copies_are_the_same),
        cmocka_unit_test(test_no_copies),
        cmocka_unit_test(test_samples_are_the_run),
        cmocka_unit_test(test_samples_of_a_partial_write),
        cmocka_unit_test(test_samples_need_no_recurrence),
        cmocka_unit_test(test_reverse_and_nested),
        cmocka_unit_test(test_several_states),
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_missing_data_and_memory),
        cmocka_unit_test(test_counting),
        cmocka_unit_test(test_counting_saturates),
        cmocka_unit_test(test_triangle_in_time),
        cmocka_unit_test(test_narrow_sums_round_in_the_buffer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
