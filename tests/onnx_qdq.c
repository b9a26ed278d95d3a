/* Operators between quantisers: on integers they are within a step of floats, given equal inputs.
 */
#include "tests/onnx_models.h"

#include <inttypes.h>
#include <stdlib.h>

#ifdef ISAMAP_WITH_ONNX
static uint64_t seed = 1;

static int64_t next(int64_t lo, int64_t hi) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return lo + (int64_t)((seed >> 33) % (uint64_t)(hi - lo + 1));
}

static void put_f32(struct model_bytes *m, const char *name, float v) {
    put_initialiser(m, name, F32, 0, NULL, &v, sizeof v);
}

static void put_byte(struct model_bytes *m, const char *name, int type, int v) {
    put_initialiser(m, name, type, 0, NULL, &(int8_t){(int8_t)v}, 1);
}

/* Random bytes; for each of `channels` a scale (1: one for all). */
static void put_weights(struct model_bytes *m, int ndims, const int64_t *dims, int64_t channels) {
    int64_t n = 1;
    int8_t data[4096], zeros[64] = {0};
    float scale[64];
    for (int d = 0; d < ndims; d++) n *= dims[d];
    assert_true(n <= 4096 && channels <= 64);
    for (int64_t i = 0; i < n; i++) data[i] = (int8_t)next(-127, 127);
    for (int64_t i = 0; i < channels; i++) scale[i] = (float)next(5, 50) / 1000;
    put_initialiser(m, "w", I8, ndims, dims, data, (size_t)n);
    put_initialiser(m, "ws", F32, channels > 1, &channels, scale, (size_t)channels * 4);
    put_initialiser(m, "wz", I8, channels > 1, &channels, zeros, (size_t)channels);
}

static void put_bias(struct model_bytes *m, int64_t n) {
    float data[64];
    for (int64_t i = 0; i < n; i++) data[i] = (float)next(-1000, 1000) / 300;
    put_initialiser(m, "b", F32, 1, &n, data, (size_t)n * 4);
}

/* One layer: x is quantised, the operator is on floats, y is quantised. */
struct layer {
    const char *op, *x;             /* the dimensions of x */
    int ndims, type;                /* of the weights (0: none); of x and y */
    int64_t w[4], channels;         /* their scales */
    const char *attributes, *after; /* after: an operator between, or NULL */
    bool bias;
    float step; /* of the result */
    int zero;
};

static const struct layer layers[] = {
    {"Conv", "1,3,7,6", 4, I8, {8, 3, 3, 3}, 8, "pads=1 1 1 1,strides=2 1", "Relu", true, 0.9f, 0},
    {"Conv", "1,3,7,6", 4, U8, {8, 3, 3, 3}, 8, "pads=1 1 1 1", "Relu", true, 0.9f, 0},
    {"Conv", "2,4,5,5", 4, U8, {8, 2, 3, 3}, 1, "group:2", "Clip", true, 0.3f, 17},
    {"Conv", "1,4,9", 3, I8, {8, 4, 3}, 8, "", NULL, false, 0.7f, -9},
    {"MatMul", "3,16", 2, I8, {16, 9}, 9, "", NULL, false, 0.5f, 3},
    {"MatMul", "2,3,16", 2, U8, {16, 9}, 1, "", "Relu", false, 0.5f, 90},
    {"Gemm", "3,16", 2, I8, {9, 16}, 9, "transB:1", "Relu", true, 0.5f, -128},
    {"Gemm", "3,16", 2, U8, {16, 9}, 1, "", NULL, true, 0.5f, 120},
    {"GlobalAveragePool", "2,3,4,5", 0, U8, {0}, 0, "", NULL, false, 0.02f, 100},
    {"Add", "2,3,4", 0, I8, {0}, 0, "", "Relu", false, 0.11f, 5},
    {"Mul", "2,3,4", 0, U8, {0}, 0, "", NULL, false, 0.21f, 5},
    {"Concat", "2,3,4", 0, U8, {0}, 0, "axis:1", NULL, false, 0.05f, 5},
    {"MaxPool", "1,2,6,6", 0, I8, {0}, 0, "kernel_shape=2 2", NULL, false, 0.06f, 3},
    {"Transpose", "2,3,4", 0, U8, {0}, 0, "perm=1 0 2", NULL, false, 0.06f, 3},
};
enum { LAYERS = sizeof layers / sizeof *layers };

static bool one_of(const char *op, const char *list) {
    const char *at = strstr(list, op);
    return at && (at[strlen(op)] == ' ' || !at[strlen(op)]);
}

static struct model_bytes layer_model(const struct layer *l) {
    struct model_bytes m = {0};
    bool two = one_of(l->op, "Add Mul Concat"), moves = one_of(l->op, "MaxPool Transpose");
    bool by_columns = one_of(l->op, "Gemm") && !*l->attributes;
    put_input(&m, "q", l->type, l->x);
    put_output(&m, "y", l->type, NULL);
    put_f32(&m, "xs", 0.06f);
    put_byte(&m, "xz", l->type, 3);
    put_f32(&m, "x2s", 0.03f);
    put_byte(&m, "x2z", l->type, 11);
    put_f32(&m, "ys", l->step);
    put_byte(&m, "yz", l->type, l->zero);
    put_f32(&m, "six", 6);
    put_f32(&m, "none", 0);
    if (l->ndims) put_weights(&m, l->ndims, l->w, l->channels);
    if (l->bias) put_bias(&m, l->w[by_columns]);
    put_node(&m, "DequantizeLinear", "q,xs,xz", "x", NULL);
    put_node(&m, "DequantizeLinear", "q,x2s,x2z", "x2", NULL);
    if (l->ndims)
        put_node(&m, "DequantizeLinear", "w,ws,wz", "wx",
                 one_of(l->op, "MatMul") || by_columns ? "axis:1" : "axis:0");
    put_node(&m, l->op,
             l->ndims ? l->bias ? "x,wx,b" : "x,wx"
             : two    ? "x,x2"
                      : "x",
             "f", l->attributes);
    if (l->after) put_node(&m, l->after, one_of(l->after, "Clip") ? "f,none,six" : "f", "g", NULL);
    put_node(&m, "QuantizeLinear", moves ? "f,xs,xz" : l->after ? "g,ys,yz" : "f,ys,yz", "y", NULL);
    return m;
}

static void *result_of(const struct text *bytes, bool exact, int wanted, void *in, int64_t *n) {
    struct diags d;
    struct onnx_options options = {.exact = exact};
    diags_init(&d);
    struct onnx_model *model = onnx_parse("m.onnx", bytes->at, bytes->n, NULL, &options, &d);
    if (d.errors) diags_print(&d, stderr);
    assert_non_null(model);
    if (model->requantised != wanted)
        fail_msg("%d operators on integers:\n%s", model->requantised, model->text);
    const struct program *p = model->program;
    *n = p->buffer[program_buffer(p, model->output[0].buffer)].elements;
    void *out = calloc((size_t)*n, 4);
    run_one(model, in, out, &d);
    onnx_free(model);
    diags_free(&d);
    return out;
}

static void layers_are_within_a_step(void **state) {
    (void)state;
    for (int k = 0; k < LAYERS; k++) {
        const struct layer *l = &layers[k];
        struct model_bytes m = layer_model(l);
        struct text bytes = model_finish(&m, 13);
        int8_t in[256];
        int64_t n, same, apart = 0;
        for (int i = 0; i < 256; i++) in[i] = (int8_t)next(-128, 127);
        int8_t *floats = result_of(&bytes, true, 0, in, &n);
        int8_t *integers = result_of(&bytes, false, 1, in, &same);
        assert_int_equal(n, same);
        int64_t values = 0;
        for (int64_t i = 0; i < n; i++) {
            int a = l->type == I8 ? floats[i] : (uint8_t)floats[i];
            int b = l->type == I8 ? integers[i] : (uint8_t)integers[i];
            if (abs(a - b) > 1)
                fail_msg("layer %d (%s), element %d: %d and %d", k, l->op, (int)i, a, b);
            apart += a != b;
            values += a != floats[0];
        }
        assert_true(values > 0);      /* the layer does something */
        assert_true(apart * 20 <= n); /* and rarely rounds otherwise */
        free(floats);
        free(integers);
        text_free(&bytes);
    }
}

/* What must stay in floats: a value that is read elsewhere too, a scale that is data, other bits.
 */
static void others_stay_in_floats(void **state) {
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        struct model_bytes m = {0};
        struct diags d;
        diags_init(&d);
        int type = kind == 2 ? 5 : I8; /* INT16 */
        put_input(&m, "q", type, "2,3");
        if (kind == 1) put_input(&m, "s", F32, "1");
        put_output(&m, "y", type, NULL);
        if (kind == 0) put_output(&m, "f", F32, NULL);
        if (kind != 1) put_f32(&m, "s", 0.5f);
        put_initialiser(&m, "z", type, 0, NULL, &(int16_t){0}, kind == 2 ? 2 : 1);
        put_node(&m, "DequantizeLinear", "q,s,z", "x", NULL);
        put_node(&m, "Add", "x,x", "f", NULL);
        put_node(&m, "QuantizeLinear", "f,s,z", "y", NULL);
        struct onnx_model *model = parse(&m, 21, NULL, &d);
        diags_print(&d, stderr);
        assert_non_null(model);
        assert_int_equal(model->requantised, 0);
        onnx_free(model);
        diags_free(&d);
    }
}

/* Without a quantiser behind it a product is one of integers with a result of floats; a move
 * between is made on the integers. */
static void last_product_gives_floats(void **state) {
    (void)state;
    struct model_bytes m = {0};
    int64_t dims[2] = {12, 5}, n;
    put_input(&m, "q", U8, "2,3,4");
    put_output(&m, "y", F32, NULL);
    put_f32(&m, "xs", 0.06f);
    put_byte(&m, "xz", U8, 99);
    put_weights(&m, 2, dims, 5);
    put_node(&m, "DequantizeLinear", "q,xs,xz", "x", NULL);
    put_node(&m, "DequantizeLinear", "w,ws,wz", "wx", "axis:1");
    put_node(&m, "Flatten", "x", "l", NULL);
    put_node(&m, "MatMul", "l,wx", "y", NULL);
    struct text bytes = model_finish(&m, 13);
    uint8_t in[24];
    for (int i = 0; i < 24; i++) in[i] = (uint8_t)next(0, 255);
    float *floats = result_of(&bytes, true, 0, in, &n),
          *integers = result_of(&bytes, false, 1, in, &n);
    for (int64_t i = 0; i < n; i++)
        assert_true(fabsf(floats[i] - integers[i]) <= 1e-5f * (1 + fabsf(floats[i])));
    free(floats);
    free(integers);
    text_free(&bytes);
}

/* What stands between the operator and the last quantiser, with quantisers of their own or not. */
struct behind {
    const char *op, *nodes; /* of these, in order: N: normalised, R: Relu, P: MaxPool, C: Concat, r:
                               Relu without a quantiser before it */
    bool negative;          /* a factor of the normalisation */
    int integers;           /* operators on integers */
    bool floats;            /* something stays in floats */
    int zero;               /* of the quantisers between; -128: what they hold begins with 0 */
    float step;             /* of them: where it is fine they saturate */
};

static const struct behind behinds[] = {
    {"Conv", "NRP", false, 4, false, 5, 3},   {"Conv", "NR", false, 3, false, 5, 3},
    {"Conv", "RP", false, 3, false, 5, 0.5f}, {"Conv", "N", true, 1, true, 5, 3},
    {"Add", "R", false, 2, false, 5, 0.1f},   {"Conv", "RC", false, 3, false, 5, 0.5f},
    {"Conv", "NN", false, 2, true, 5, 3},     {"Conv", "rC", false, 2, false, -128, 0.5f},
    {"Conv", "rN", false, 1, true, -128, 3},  {"Conv", "C", false, 2, false, -128, 0.5f},
    {"Conv", "N", false, 1, true, -128, 3},
};

static void put_line(struct model_bytes *m, bool negative) {
    static const char *const name[4] = {"gamma", "beta", "mean", "variance"};
    float data[8];
    for (int k = 0; k < 4; k++) {
        for (int i = 0; i < 8; i++)
            data[i] = (float)next(k == 1 || k == 2 ? -300 : 50, k == 0 ? 150 : 300) / 100;
        if (negative && k == 0) data[3] = -data[3];
        put_initialiser(m, name[k], F32, 1, &(int64_t){8}, data, sizeof data);
    }
}

static struct model_bytes behind_model(const struct behind *b, bool quantised) {
    static char name[8][3][16];
    struct model_bytes m = {0};
    const char *at = "f";
    put_input(&m, "q", I8, "1,8,6,6");
    put_output(&m, "y", I8, NULL);
    put_f32(&m, "xs", 0.06f);
    put_byte(&m, "xz", I8, 3);
    put_f32(&m, "ys", 0.9f);
    put_byte(&m, "yz", I8, -7);
    put_f32(&m, "ms", b->step);
    put_byte(&m, "mz", I8, b->zero);
    put_weights(&m, 4, (int64_t[]){8, 8, 3, 3}, 8);
    put_line(&m, b->negative);
    put_node(&m, "DequantizeLinear", "q,xs,xz", "x", NULL);
    put_node(&m, "DequantizeLinear", "w,ws,wz", "wx", "axis:0");
    if (one_of("Conv", b->op))
        put_node(&m, "Conv", "x,wx", "f", "pads=1 1 1 1");
    else
        put_node(&m, "Add", "x,x", "f", NULL);
    for (int k = 0; b->nodes[k]; k++) {
        char in[256];
        if (quantised && b->nodes[k] != 'r') {
            for (int i = 0; i < 3; i++)
                snprintf(name[k][i], sizeof name[k][i], "%c%d", "abc"[i], k);
            snprintf(in, sizeof in, "%s,ms,mz", at);
            put_node(&m, "QuantizeLinear", in, name[k][0], NULL);
            snprintf(in, sizeof in, "a%d,ms,mz", k);
            put_node(&m, "DequantizeLinear", in, name[k][1], NULL);
            at = name[k][1];
        }
        snprintf(name[k][2], sizeof name[k][2], "c%d", k);
        snprintf(in, sizeof in, "%s%s", at,
                 b->nodes[k] == 'N'   ? ",gamma,beta,mean,variance"
                 : b->nodes[k] == 'C' ? ",x"
                                      : "");
        put_node(&m,
                 b->nodes[k] == 'N'                         ? "BatchNormalization"
                 : b->nodes[k] == 'R' || b->nodes[k] == 'r' ? "Relu"
                 : b->nodes[k] == 'P'                       ? "MaxPool"
                                                            : "Concat",
                 in, name[k][2],
                 b->nodes[k] == 'P'   ? "kernel_shape=2 2"
                 : b->nodes[k] == 'C' ? "axis:1"
                                      : NULL);
        at = name[k][2];
    }
    char in[256];
    snprintf(in, sizeof in, "%s,ys,yz", at);
    put_node(&m, "QuantizeLinear", in, "y", NULL);
    return m;
}

static bool has_floats(const struct text *bytes) {
    struct diags d;
    diags_init(&d);
    struct onnx_model *model = onnx_parse("m.onnx", bytes->at, bytes->n, NULL, NULL, &d);
    bool any = false;
    for (int i = 0; i < model->program->nbuffers; i++)
        any |= model->program->buffer[i].type == TYPE_F32 &&
               model->program->buffer[i].role == ROLE_TEMP;
    onnx_free(model);
    diags_free(&d);
    return any;
}

/* The operator gives the last quantiser's integers: one step at most from floats. The quantisers
 * between limit it, but where they are coarse it is not rounded to their steps. */
static void what_stands_behind_joins(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof behinds / sizeof *behinds; k++) {
        const struct behind *b = &behinds[k];
        uint64_t from = seed;
        struct model_bytes with = behind_model(b, true);
        seed = from;
        struct model_bytes without = behind_model(b, false);
        struct text quantised = model_finish(&with, 13), plain = model_finish(&without, 13);
        int8_t in[8 * 36];
        int64_t n, same, apart = 0;
        for (int i = 0; i < 8 * 36; i++) in[i] = (int8_t)next(-128, 127);
        bool saturates = b->step < 1;
        int8_t *floats = result_of(saturates ? &quantised : &plain, true, 0, in, &n),
               *integers = result_of(&quantised, false, b->integers, in, &same);
        assert_int_equal(n, same);
        assert_int_equal(has_floats(&quantised), b->floats);
        for (int64_t i = 0; i < n && !b->floats; i++) {
            if (abs(floats[i] - integers[i]) > 1)
                fail_msg("%s %s, element %d: %d and %d", b->op, b->nodes, (int)i, floats[i],
                         integers[i]);
            apart += floats[i] != integers[i];
        }
        assert_true(saturates || apart * 20 <= n);
        free(floats);
        free(integers);
        text_free(&quantised);
        text_free(&plain);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_stands_behind_joins),
        cmocka_unit_test(layers_are_within_a_step),
        cmocka_unit_test(others_stay_in_floats),
        cmocka_unit_test(last_product_gives_floats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
int main(void) {
    return 0;
}
#endif
