/* Transposed convolutions against their definition, which scatters; and that they are read as sums
 * that gather, as instructions want them. */
#include "ir/interp.h"
#include "onnx/onnx.h"
#include "tests/onnx_bytes.h"

#include <setjmp.h>
#include <stdlib.h>
#include <cmocka.h>

#ifdef ISAMAP_WITH_ONNX
enum { F32 = 1, IN = 4, OUT = 6, ROWS = 5, COLUMNS = 4, MOST = 16384 };

struct deconv {
    int groups, kernel[2], stride[2], dilation[2], pads[4], extra[2];
    bool gathers;
    int64_t products; /* at most */
};

static const struct deconv cases[] = {
    {1, {2, 2}, {2, 2}, {1, 1}, {0, 0, 0, 0}, {0, 0}, true, 0},
    {2, {3, 3}, {2, 2}, {1, 1}, {1, 1, 1, 1}, {1, 1}, true, 0},
    {1, {4, 3}, {2, 1}, {1, 1}, {1, 0, 1, 2}, {0, 0}, true, 0},
    {1, {3, 2}, {1, 1}, {2, 2}, {1, 0, 1, 1}, {0, 0}, true, 0},
    {1, {2, 2}, {3, 3}, {1, 1}, {0, 0, 0, 0}, {2, 1}, true, 0},
    {2, {4, 2}, {2, 3}, {1, 1}, {1, 0, 1, 0}, {0, 0}, true, 0},
    {1, {3, 3}, {2, 2}, {2, 2}, {0, 0, 0, 0}, {1, 0}, false, 0},
    {1, {4, 4}, {2, 2}, {1, 1}, {1, 1, 1, 1}, {0, 0}, true, 80 * 4 * IN *OUT},
    {2, {8, 3}, {4, 3}, {1, 1}, {2, 1, 2, 1}, {0, 1}, true, 0},
    {1, {5, 5}, {2, 4}, {1, 1}, {4, 7, 0, 1}, {0, 0}, true, 0},
    {2, {31, 19}, {1, 2}, {1, 1}, {15, 5, 15, 11}, {0, 0}, true, 0},
    {1, {12, 30}, {2, 4}, {1, 1}, {9, 17, 10, 19}, {0, 0}, true, 2 * 8 * 20 * IN *OUT},
};

static void extents(const struct deconv *c, int *out) {
    const int in[2] = {ROWS, COLUMNS};
    for (int d = 0; d < 2; d++)
        out[d] = (in[d] - 1) * c->stride[d] + c->extra[d] + (c->kernel[d] - 1) * c->dilation[d] +
                 1 - c->pads[d] - c->pads[2 + d];
}

static void scatter(const struct deconv *c, const float *x, const float *w, float *y) {
    int each = OUT / c->groups, channels = IN / c->groups, out[2];
    extents(c, out);
    for (int i = 0; i < OUT * out[0] * out[1]; i++) y[i] = 0;
    for (int n = 0; n < IN * each * c->kernel[0] * c->kernel[1]; n++) {
        int s = n % c->kernel[1], r = n / c->kernel[1] % c->kernel[0],
            k = n / c->kernel[1] / c->kernel[0] % each,
            from = n / c->kernel[1] / c->kernel[0] / each;
        for (int p = 0; p < ROWS; p++)
            for (int q = 0; q < COLUMNS; q++) {
                int i = p * c->stride[0] + r * c->dilation[0] - c->pads[0],
                    j = q * c->stride[1] + s * c->dilation[1] - c->pads[1];
                if (i < 0 || i >= out[0] || j < 0 || j >= out[1]) continue;
                y[((from / channels * each + k) * out[0] + i) * out[1] + j] +=
                    x[(from * ROWS + p) * COLUMNS + q] * w[n];
            }
    }
}

static struct onnx_model *read_model(const struct deconv *c, const float *w, struct diags *d) {
    struct model_bytes m = {0};
    char shape[40], attributes[200];
    int each = OUT / c->groups, out[2];
    extents(c, out);
    put_input(&m, "x", F32, "1,4,5,4");
    snprintf(shape, sizeof shape, "1,%d,%d,%d", OUT, out[0], out[1]);
    put_output(&m, "y", F32, shape);
    put_initialiser(&m, "w", F32, 4, (int64_t[]){IN, each, c->kernel[0], c->kernel[1]}, w,
                    sizeof *w * (size_t)(IN * each * c->kernel[0] * c->kernel[1]));
    snprintf(attributes, sizeof attributes,
             "group:%d,strides=%d %d,dilations=%d %d,pads=%d %d %d %d,output_padding=%d %d",
             c->groups, c->stride[0], c->stride[1], c->dilation[0], c->dilation[1], c->pads[0],
             c->pads[1], c->pads[2], c->pads[3], c->extra[0], c->extra[1]);
    put_node(&m, "ConvTranspose", "x,w", "y", attributes);
    struct text bytes = model_finish(&m, 15);
    struct onnx_model *model = onnx_parse("m.onnx", bytes.at, bytes.n, NULL, NULL, d);
    text_free(&bytes);
    diags_print(d, stderr);
    assert_non_null(model);
    return model;
}

/* Has each index of each sum one axis, or several that count in turns (channels of groups)? */
static bool gathers(const struct program *p) {
    for (int s = 0; s < p->nstmts; s++) {
        const struct access *dst = &p->stmt[s].dst;
        for (int d = 2; stmt_is_mac(p, &p->stmt[s]) && d < p->buffer[dst->buffer].ndims; d++) {
            int n = 0;
            for (int a = 0; a < p->naxes; a++) n += access_coef(p, dst, d, a) != 0;
            if (n > 1) return false;
        }
    }
    return true;
}

static int64_t products(const struct program *p) {
    int64_t n = 0;
    for (int s = 0; s < p->nstmts; s++)
        if (stmt_is_mac(p, &p->stmt[s])) n += stmt_points(p, &p->stmt[s]);
    return n;
}

static void each_is_its_definition(void **state) {
    (void)state;
    static float x[IN * ROWS * COLUMNS], w[MOST], y[MOST], want[MOST];
    for (int i = 0; i < (int)(sizeof x / sizeof *x); i++) x[i] = (float)(i * 7 % 11 - 5);
    for (int i = 0; i < MOST; i++) w[i] = (float)(i * 5 % 7 - 3);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const struct deconv *c = &cases[k];
        struct diags d;
        int out[2];
        diags_init(&d);
        extents(c, out);
        assert_true(OUT * out[0] * out[1] <= MOST);
        struct onnx_model *model = read_model(c, w, &d);
        const struct program *p = model->program;
        assert_int_equal(gathers(p), c->gathers);
        if (c->products) assert_true(products(p) <= c->products);
        void **data = calloc((size_t)p->nbuffers, sizeof *data);
        for (int b = 0; b < p->nbuffers; b++) data[b] = (void *)model->data[b];
        data[program_buffer(p, model->input[0].buffer)] = x;
        data[program_buffer(p, model->output[0].buffer)] = y;
        assert_true(program_run(p, data, NULL, NULL, &d));
        scatter(c, x, w, want);
        for (int i = 0; i < OUT * out[0] * out[1]; i++) assert_float_equal(y[i], want[i], 0);
        free(data);
        onnx_free(model);
        diags_free(&d);
    }
}
#endif

int main(void) {
#ifdef ISAMAP_WITH_ONNX
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_is_its_definition)};
    return cmocka_run_group_tests(tests, NULL, NULL);
#else
    return 77;
#endif
}
