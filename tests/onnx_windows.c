/* Windows of integers beyond the input, where its zero point is data or known, against loops; and
 * Upsample as old models have it. */
#include "tests/onnx_models.h"

#include <stdlib.h>

#ifdef ISAMAP_WITH_ONNX
enum { SIDE = 5, IN = 2, OUT = 3, KERNEL = 3, PLANE = SIDE * SIDE };

static struct onnx_model *read_whole(struct model_bytes *m, int64_t opset) {
    struct diags d;
    diags_init(&d);
    struct onnx_model *model = parse(m, opset, NULL, &d);
    diags_print(&d, stderr);
    diags_free(&d);
    assert_non_null(model);
    return model;
}

static void run_whole(const struct onnx_model *model, void *const *in, void *out) {
    const struct program *p = model->program;
    struct diags d;
    diags_init(&d);
    void **data = calloc((size_t)p->nbuffers, sizeof *data);
    for (int b = 0; b < p->nbuffers; b++) data[b] = (void *)model->data[b];
    for (int i = 0; i < model->ninputs; i++) {
        int b = program_buffer(p, model->input[i].buffer);
        if (b >= 0) data[b] = in[i];
    }
    data[program_buffer(p, model->output[0].buffer)] = out;
    assert_true(program_run(p, data, NULL, NULL, &d));
    free(data);
    diags_free(&d);
}

static int at(const uint8_t *x, int c, int i, int j, int beyond) {
    bool inside = i >= 0 && i < SIDE && j >= 0 && j < SIDE;
    return inside ? x[(c * SIDE + i) * SIDE + j] : beyond;
}

static int convolved(const uint8_t *x, const int8_t *w, int zero, int k, int p, int q) {
    int sum = 0;
    for (int c = 0; c < IN; c++)
        for (int r = 0; r < KERNEL; r++)
            for (int s = 0; s < KERNEL; s++)
                sum += (at(x, c, p + r - 1, q + s - 1, zero) - zero) *
                       w[((k * IN + c) * KERNEL + r) * KERNEL + s];
    return sum;
}

/* Sums of products that are made once would not be left to instructions; sums of weights are. */
static int steady_sums(const struct program *p) {
    bool *steady = malloc((size_t)p->nstmts * sizeof *steady);
    int n = 0;
    for (int s = 0; s < p->nstmts; s++) steady[s] = true;
    program_steady(p, steady);
    for (int s = 0; s < p->nstmts; s++) n += steady[s] && p->stmt[s].combine == COMBINE_ADD;
    free(steady);
    return n;
}

static void test_conv_integer(void **state) {
    struct model_bytes m = {0};
    uint8_t x[IN * PLANE], zero = 0;
    int8_t w[OUT * IN * KERNEL * KERNEL];
    int32_t y[OUT * PLANE];
    (void)state;
    for (int i = 0; i < IN * PLANE; i++) x[i] = (uint8_t)(i * 37 % 256);
    for (int i = 0; i < (int)sizeof w; i++) w[i] = (int8_t)(i * 29 % 255 - 127);
    put_input(&m, "x", U8, "1,2,5,5");
    put_input(&m, "z", U8, "");
    put_output(&m, "y", I32, NULL);
    put_initialiser(&m, "w", I8, 4, (int64_t[]){OUT, IN, KERNEL, KERNEL}, w, sizeof w);
    put_node(&m, "ConvInteger", "x,w,z", "y", "pads=1 1 1 1");
    struct onnx_model *model = read_whole(&m, 10);
    assert_int_equal(steady_sums(model->program), 2);
    for (int z = 0; z < 256; z += 51) {
        zero = (uint8_t)z;
        run_whole(model, (void *[]){x, &zero}, y);
        for (int i = 0; i < OUT * PLANE; i++)
            assert_int_equal(y[i], convolved(x, w, z, i / PLANE, i % PLANE / SIDE, i % SIDE));
    }
    onnx_free(model);
}

static void average(const char *attributes, bool padding) {
    struct model_bytes m = {0};
    uint8_t x[IN * PLANE], y[IN * PLANE], zx = 100, zy = 7;
    float sx = 0.5F, sy = 0.25F;
    for (int i = 0; i < IN * PLANE; i++) x[i] = (uint8_t)(100 + i * 37 % 50);
    put_input(&m, "x", U8, "1,2,5,5");
    put_output(&m, "y", U8, NULL);
    put_initialiser(&m, "sx", F32, 0, NULL, &sx, sizeof sx);
    put_initialiser(&m, "zx", U8, 0, NULL, &zx, sizeof zx);
    put_initialiser(&m, "sy", F32, 0, NULL, &sy, sizeof sy);
    put_initialiser(&m, "zy", U8, 0, NULL, &zy, sizeof zy);
    put_node(&m, "com.microsoft.QLinearAveragePool", "x,sx,zx,sy,zy", "y", attributes);
    struct onnx_model *model = read_whole(&m, 12);
    run_whole(model, (void *[]){x}, y);
    for (int i = 0; i < IN * PLANE; i++) {
        int sum = 0, count = 0, p = i % PLANE / SIDE, q = i % SIDE;
        for (int k = 0; k < KERNEL * KERNEL; k++) {
            int v = at(x, i / PLANE, p + k / KERNEL - 1, q + k % KERNEL - 1, -1);
            sum += v < 0 ? 0 : v - zx;
            count += v >= 0 || padding;
        }
        double steps = (double)sum / count * 2 + zy;
        assert_true(fabs(y[i] - steps) <= 0.5 + 1e-4);
    }
    onnx_free(model);
}

static void test_average_pool(void **state) {
    (void)state;
    average("kernel_shape=3 3,pads=1 1 1 1", false);
    average("kernel_shape=3 3,pads=1 1 1 1,count_include_pad:1", true);
}

static void upsample(const char *attributes, int64_t opset) {
    struct model_bytes m = one_node("Upsample", "1,1,2,2", attributes);
    float x[4] = {1, 2, 3, 4}, y[24];
    struct onnx_model *model = read_whole(&m, opset);
    run_whole(model, (void *[]){x}, y);
    for (int i = 0; i < 24; i++) assert_true(y[i] == x[i / 6 / 2 * 2 + i % 6 / 3]);
    onnx_free(model);
}

static void test_upsample(void **state) {
    (void)state;
    upsample("mode'nearest,scales%1 1 2 3", 7);
    upsample("mode'nearest,height_scale~2,width_scale~3", 1);
    struct model_bytes m = one_node("Upsample", "1,1,2,2", "scales%1 1 2");
    check_refused(&m, 7, "'scales' is not a list of 4 floats");
}
#endif

int main(void) {
#ifdef ISAMAP_WITH_ONNX
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conv_integer),
        cmocka_unit_test(test_average_pool),
        cmocka_unit_test(test_upsample),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
#else
    return 0;
#endif
}
