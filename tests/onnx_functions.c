/* Functions of a model: calls give what the functions' nodes give; what cannot be expanded is
 * refused. */
#include "tests/onnx_models.h"

#ifdef ISAMAP_WITH_ONNX
enum { N = 4 };

static void expect(struct model_bytes *m, const float *want) {
    struct diags d;
    diags_init(&d);
    struct onnx_model *model = parse(m, 17, NULL, &d);
    if (!model) fail_msg("%s", d.at[0].text);
    float x[N] = {-2, -1, 1, 2}, y[N];
    run_one(model, x, y, &d);
    for (int i = 0; i < N; i++) assert_float_equal(y[i], want[i], 1e-6);
    onnx_free(model);
    diags_free(&d);
}

static struct model_bytes graph(void) {
    struct model_bytes m = {0};
    put_input(&m, "x", F32, "4");
    put_output(&m, "y", F32, NULL);
    return m;
}

/* my.Leaky(a, slope) = LeakyRelu(a, alpha = slope) */
static void put_leaky(struct model_bytes *m) {
    struct text f = {0};
    put_inner(&f, "LeakyRelu", "a", "r", "alpha@slope");
    put_string(&f, 6, "slope");
    put_function(m, "my", "Leaky", "a", "r", &f);
}

static void test_call(void **state) {
    (void)state;
    struct model_bytes m = graph();
    put_leaky(&m);
    put_node(&m, "my.Leaky", "x", "y", "slope~0.5");
    expect(&m, (float[]){-1, -0.5f, 1, 2});
}

/* An attribute that the call does not give: the operator's own value, 0.01. */
static void test_attribute_left_out(void **state) {
    (void)state;
    struct model_bytes m = graph();
    put_leaky(&m);
    put_node(&m, "my.Leaky", "x", "y", NULL);
    expect(&m, (float[]){-0.02f, -0.01f, 1, 2});
}

/* The function's own value for it, a field of later versions of the format. */
static void test_preset(void **state) {
    (void)state;
    struct model_bytes m = graph();
    struct text f = {0}, a = {0};
    float value = 0.25f;
    put_inner(&f, "LeakyRelu", "a", "r", "alpha@slope");
    put_string(&a, 1, "slope");
    put_varint(&a, 2 << 3 | 5);
    text_append(&a, (char *)&value, 4);
    put_number(&a, 20, 1);
    put_message(&f, 11, &a);
    put_function(&m, "my", "Leaky", "a", "r", &f);
    put_node(&m, "my.Leaky", "x", "h", NULL);
    put_node(&m, "my.Leaky", "h", "y", "slope~2");
    expect(&m, (float[]){-1, -0.5f, 1, 2});
}

/* Functions in functions; the same names inside of several calls; an input that is left out; a
 * result that nobody wants. */
static void test_nested(void **state) {
    (void)state;
    struct model_bytes m = graph();
    struct text f = {0};
    put_leaky(&m);
    put_inner(&f, "my.Leaky", "a", "r", "slope@first");
    put_inner(&f, "my.Leaky", "r", "x", "slope~0.5");
    put_inner(&f, "Clip", "x,least", "s", NULL);
    put_inner(&f, "Neg", "s", "n", NULL);
    put_function(&m, "my", "Both", "a,least", "s,n", &f);
    put_node(&m, "my.Both", "x", "h", "first~0.5");
    put_node(&m, "my.Both", "h", "unused,y", "first~4");
    expect(&m, (float[]){1, 0.5f, -1, -2});
}

/* A result that is an input, and one that two names give. */
static void test_passed_on(void **state) {
    (void)state;
    struct model_bytes m = graph();
    struct text f = {0};
    put_inner(&f, "Neg", "a", "r", NULL);
    put_function(&m, "my", "Pass", "a", "a,r,r", &f);
    put_node(&m, "my.Pass", "x", "p,q,r", NULL);
    put_node(&m, "Mul", "q,r", "s", NULL);
    put_node(&m, "Add", "p,s", "y", NULL);
    expect(&m, (float[]){2, 0, 2, 6});
}

/* A model's function goes before an operator of that name. */
static void test_instead_of_operator(void **state) {
    (void)state;
    struct model_bytes m = graph();
    struct text f = {0};
    put_inner(&f, "Neg", "a", "r", NULL);
    put_function(&m, "com.microsoft", "Gelu", "a", "r", &f);
    put_node(&m, "com.microsoft.Gelu", "x", "y", NULL);
    expect(&m, (float[]){2, 1, -1, -2});
}

static void put_opset(struct text *function, int64_t version) {
    struct text import = {0};
    put_number(&import, 2, version);
    put_message(function, 9, &import);
}

static void test_refused(void **state) {
    (void)state;
    struct text f = {0};
    struct model_bytes m = graph();
    put_leaky(&m);
    put_node(&m, "my.Leaky", "x,x", "y", NULL);
    check_refused(&m, 17, "a call of the function 'Leaky' has 2 inputs and 1 results");

    m = graph();
    put_leaky(&m), put_leaky(&m);
    put_node(&m, "my.Leaky", "x", "y", NULL);
    check_refused(&m, 17, "two functions are named 'Leaky'");

    m = graph();
    put_inner(&f, "my.B", "a", "r", NULL);
    put_function(&m, "my", "A", "a", "r", &f);
    put_inner(&f, "my.A", "a", "r", NULL);
    put_function(&m, "my", "B", "a", "r", &f);
    put_node(&m, "my.A", "x", "y", NULL);
    check_refused(&m, 17, "calls itself");

    m = graph();
    put_node(&m, "LeakyRelu", "x", "y", "alpha@slope");
    put_leaky(&m);
    check_refused(&m, 17, "outside of any");

    m = graph();
    put_inner(&f, "Neg", "a", "r", NULL);
    put_opset(&f, 99);
    put_function(&m, "my", "Old", "a", "r", &f);
    put_node(&m, "my.Old", "x", "y", NULL);
    check_refused(&m, 17, "function 'Old' imports opset 99, which is not known");
}

/* Axes are an attribute in the function's opset, and an input in the model's. */
static void test_another_opset(void **state) {
    (void)state;
    struct model_bytes m = graph();
    struct text f = {0};
    put_inner(&f, "ReduceSum", "a", "r", "axes=0,keepdims:1");
    put_opset(&f, 11);
    put_function(&m, "my", "Old", "a", "r", &f);
    put_node(&m, "my.Old", "x", "s", NULL);
    put_node(&m, "ReduceSum", "s", "t", "noop_with_empty_axes:1");
    put_node(&m, "Add", "x,t", "y", NULL);
    expect(&m, (float[]){-2, -1, 1, 2});
}

/* Each function calls the next twice: 2^40 calls; and 400 of them inside one another. */
static void test_bounded(void **state) {
    (void)state;
    for (int twice = 0; twice < 2; twice++) {
        int n = twice ? 40 : 400;
        struct model_bytes m = graph();
        struct text f = {0};
        char next[20], own[20];
        for (int k = 0; k < n; k++) {
            snprintf(own, sizeof own, "F%d", k);
            snprintf(next, sizeof next, k < n - 1 ? "my.F%d" : "Neg", k + 1);
            put_inner(&f, next, "a", "r", NULL);
            if (twice) put_inner(&f, next, "a", "s", NULL);
            put_function(&m, "my", own, "a", "r", &f);
        }
        put_node(&m, "my.F0", "x", "y", NULL);
        check_refused(&m, 17, twice ? "more than 2097152 nodes" : "more than 256 deep");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_call),          cmocka_unit_test(test_attribute_left_out),
        cmocka_unit_test(test_preset),        cmocka_unit_test(test_nested),
        cmocka_unit_test(test_passed_on),     cmocka_unit_test(test_instead_of_operator),
        cmocka_unit_test(test_refused),       cmocka_unit_test(test_bounded),
        cmocka_unit_test(test_another_opset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
int main(void) {
    return 0;
}
#endif
