/* Operators that kernel files give: values, sizes and attributes; and what does not fit is refused.
 */
#include "tests/onnx_models.h"

#include <unistd.h>

#ifdef ISAMAP_WITH_ONNX
enum { T = 3, C = 2 };

static const char *const leaky_scan = "kernel scan(T, C, gain=1) {\n"
                                      "  in x: f32[T, C]  in decay: f32[]  const w: f32[C]\n"
                                      "  out y: f32[T, C]  out last: f32[C]\n"
                                      "  temp h0: f32[C]\n"
                                      "  axes c: C\n"
                                      "  h0[c] = 0\n"
                                      "  recur t: T state h: f32[C] from h0 to last {\n"
                                      "    temp s: f32[C]\n"
                                      "    s[c] = decay[] * h[c]\n"
                                      "    h'[c] = s[c] + x[t,c]\n"
                                      "    y[t,c] = h'[c] * w[c] * gain\n"
                                      "  }\n"
                                      "}\n";

static char path[] = "/tmp/isamap-custom-XXXXXX";

static int open_file(void **state) {
    (void)state;
    int file = mkstemp(path);
    if (file >= 0) close(file);
    return file < 0;
}

static int remove_file(void **state) {
    (void)state;
    return remove(path);
}

static void write_kernel(const char *text) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static struct onnx_model *parse_with(struct model_bytes *m, const struct onnx_custom *custom, int n,
                                     struct diags *d) {
    struct onnx_options options = {.custom = custom, .ncustom = n};
    struct text bytes = model_finish(m, 17);
    struct onnx_model *model = onnx_parse("m.onnx", bytes.at, bytes.n, NULL, &options, d);
    text_free(&bytes);
    return model;
}

static struct model_bytes scans(const char *dims) {
    struct model_bytes m = {0};
    float w[C] = {1, -2};
    put_input(&m, "x", F32, dims);
    put_initialiser(&m, "w", F32, 1, (int64_t[]){C}, w, sizeof w);
    put_output(&m, "y", F32, NULL);
    return m;
}

/* y, by hand */
static void scan(const float *x, double decay, int gain, float *y) {
    float h[C] = {0};
    for (int t = 0; t < T; t++)
        for (int c = 0; c < C; c++) {
            h[c] = (float)decay * h[c] + x[t * C + c];
            y[t * C + c] = h[c] * (c ? -2 : 1) * (float)gain;
        }
}

/* The same kernel twice, with other attributes, its second result not wanted. */
static void test_values(void **state) {
    (void)state;
    struct diags d;
    diags_init(&d);
    write_kernel(leaky_scan);
    struct model_bytes m = scans("3,2");
    put_node(&m, "acme.Scan1", "x,w", "h", "decay~0.5");
    put_node(&m, "acme.Scan1", "h,w", "y", "decay~0.25,gain:3");
    struct onnx_model *model = parse_with(&m, &(struct onnx_custom){"acme.Scan1", path}, 1, &d);
    if (!model) fail_msg("%s", d.at[0].text);
    float x[T * C] = {1, 2, -3, 4, 5, -6}, h[T * C], want[T * C], y[T * C];
    scan(x, 0.5, 1, h);
    scan(h, 0.25, 3, want);
    run_one(model, x, y, &d);
    for (int i = 0; i < T * C; i++) assert_float_equal(y[i], want[i], 1e-5);
    onnx_free(model);
    diags_free(&d);
}

/* A file may also say what an operator of ONNX is; attributes may be lists. */
static void test_instead(void **state) {
    (void)state;
    struct diags d;
    diags_init(&d);
    write_kernel("kernel pick(N) { in x: f32[N]  in at: i64[2]  out y: f32[N]  axes i: N, k: 2\n"
                 "  y[i] = 0\n  y[i] += select(i64(i) == at[k], x[i], 0) }\n");
    struct model_bytes m = {0};
    put_input(&m, "x", F32, "4");
    put_output(&m, "y", F32, NULL);
    put_node(&m, "Relu", "x", "y", "at=1 3");
    struct onnx_model *model = parse_with(&m, &(struct onnx_custom){"Relu", path}, 1, &d);
    if (!model) fail_msg("%s", d.at[0].text);
    float x[4] = {1, 2, 3, 4}, y[4];
    run_one(model, x, y, &d);
    assert_memory_equal(y, ((float[]){0, 2, 0, 4}), sizeof y);
    onnx_free(model);
    diags_free(&d);
}

static void refuse(const char *kernel, const char *dims, const char *inputs, const char *attributes,
                   const char *expected) {
    struct diags d;
    diags_init(&d);
    write_kernel(kernel);
    struct model_bytes m = scans(dims);
    put_node(&m, "acme.Scan1", inputs, "y", attributes);
    assert_null(parse_with(&m, &(struct onnx_custom){"acme.Scan1", path}, 1, &d));
    assert_int_equal(d.errors, 1);
    if (!strstr(d.at[0].text, expected)) fail_msg("'%s' has no '%s'", d.at[0].text, expected);
    diags_free(&d);
}

static void test_refused(void **state) {
    (void)state;
    refuse(leaky_scan, "3,2", "x", NULL,
           "'decay' of its kernel is neither an input of the node nor");
    refuse(leaky_scan, "3,2", "x,w,x", "decay~1", "it has 3 inputs and 1 results");
    refuse(leaky_scan, "6", "x,w", "decay~1", "the input 'x' of its kernel has 2 dimensions");
    refuse(leaky_scan, "3,4", "x,w", "decay~1", "'C' would be 4 and 2");
    refuse(leaky_scan, "3,2", "x,w", "decay'half", "neither numbers nor a number");
    refuse(leaky_scan, "3,2", "x,w", "decay~1,other:1", "'other' is not supported");
    refuse("kernel k(T, C) { in x: f32[T, C]  in w: f32[C]  inout y: f32[T, C]  axes t: T, c: C\n"
           "  y[t,c] += x[t,c] * w[c] }\n",
           "3,2", "x,w", NULL, "inout");
    refuse("kernel k(T, C) { in x: f64[T, C]  in w: f32[C]  out y: f64[T, C]  axes t: T, c: C\n"
           "  y[t,c] = x[t,c] * f64(w[c]) }\n",
           "3,2", "x,w", NULL, "is f64[3,2], but is given f32[3,2]");
    refuse("kernel k(T, S) { in x: f32[T, 2]  in w: f32[2]  out y: f32[S]  axes s: S\n"
           "  y[s] = x[0,0] * w[1] }\n",
           "3,2", "x,w", NULL, "'S'");
    refuse("kernel k(T) { in x: f32[T, 2]  in w: f32[2]  out y: f32[T]  axes t: T\n"
           "  y[t] = x[t+1,0] * w[1] }\n",
           "3,2", "x,w", NULL, "x");
    refuse("", "3,2", "x,w", NULL, "kernel");
}

static void test_names(void **state) {
    (void)state;
    struct diags d;
    diags_init(&d);
    write_kernel(leaky_scan);
    const struct onnx_custom twice[] = {{"acme.Scan1", path}, {"acme.Scan1", path}},
                             other[] = {{"acme.Scan1", path}, {"acme.Scan2", path}},
                             nowhere[] = {{"acme.Scan1", "/nonexistent/k.isam"}};
    const struct {
        const struct onnx_custom *custom;
        int n;
        const char *expected;
    } cases[] = {{twice, 2, "two kernels are given"},
                 {other, 2, "no node that an output needs is a 'acme.Scan2'"},
                 {nowhere, 1, "cannot open"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct model_bytes m = scans("3,2");
        put_node(&m, "acme.Scan1", "x,w", "y", "decay~1");
        assert_null(parse_with(&m, cases[i].custom, cases[i].n, &d));
        assert_int_equal(d.errors, (int)i + 1);
        assert_non_null(strstr(d.at[i].text, cases[i].expected));
    }
    diags_free(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_instead),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, open_file, remove_file);
}
#else
int main(void) {
    return 0;
}
#endif
