/* Models made byte by byte: what is read, and with which values it runs; and the digits of
 * examples/. onnx_refusals.c has what is refused. */
#include "tests/onnx_models.h"

#include <stdlib.h>

#ifdef ISAMAP_WITH_ONNX
/* The chain by which exporters flatten all but the first dimension: Shape, Gather, Concat, Reshape.
 * Nothing of it is left in the kernel but the copy. */
static void folds_shapes(void **state) {
    (void)state;
    struct model_bytes m = {0};
    struct diags d;
    int64_t zero = 0, rest = -1;
    diags_init(&d);
    put_input(&m, "x", F32, "2,3,4");
    put_output(&m, "y", F32, "2,12");
    put_initialiser(&m, "zero", I64, 1, (int64_t[]){1}, &zero, sizeof zero);
    put_initialiser(&m, "rest", I64, 1, (int64_t[]){1}, &rest, sizeof rest);
    put_node(&m, "Shape", "x", "s", NULL);
    put_node(&m, "Gather", "s,zero", "n", NULL);
    put_node(&m, "Concat", "n,rest", "t", "axis:0");
    put_node(&m, "Reshape", "x,t", "y", NULL);
    struct model_bytes none = {0};
    struct onnx_model *model = parse(&m, 15, NULL, &d);
    assert_non_null(model);
    assert_int_equal(model->program->nstmts, 1);
    for (int b = 0; b < model->program->nbuffers; b++)
        assert_int_not_equal(model->program->buffer[b].role, ROLE_CONST);
    onnx_free(model);
    diags_free(&d);
    /* a list without elements is fine where it is a list, and an error where elements are read */
    put_input(&none, "x", F32, "2");
    put_initialiser(&none, "e", F32, 1, (int64_t[]){0}, "", 0);
    put_output(&none, "y", F32, NULL);
    put_node(&none, "ArgMax", "e", "y", "keepdims:0");
    check_refused(&none, 15, "input 0 is an empty tensor");
}

/* As many dimensions as there may be. */
static void takes_sixteen_dimensions(void **state) {
    (void)state;
    struct model_bytes m = {0};
    struct diags d;
    int64_t ones[16];
    float data[1] = {3};
    diags_init(&d);
    for (int k = 0; k < 16; k++) ones[k] = 1;
    put_input(&m, "x", F32, "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1");
    put_initialiser(&m, "w", F32, 16, ones, data, sizeof data);
    put_output(&m, "y", F32, NULL);
    put_node(&m, "Add", "x,w", "y", "");
    struct onnx_model *model = parse(&m, 15, NULL, &d);
    diags_print(&d, stderr);
    assert_non_null(model);
    onnx_free(model);
    diags_free(&d);
}

/* ---- what is read ---- */

static void writes_the_forms(void **state) {
    (void)state;
    struct model_bytes m = {0};
    struct diags d;
    float scale = 0.5f;
    int8_t zero = 0, w[54] = {0};
    int32_t bias[3] = {1, 2, 3};
    diags_init(&d);
    put_input(&m, "in", I8, "N,2,5,5");
    put_output(&m, "a/b", I8, NULL);
    put_initialiser(&m, "s", F32, 0, NULL, &scale, 4);
    put_initialiser(&m, "z", I8, 0, NULL, &zero, 1);
    put_initialiser(&m, "w", I8, 4, (int64_t[]){3, 2, 3, 3}, w, sizeof w);
    put_initialiser(&m, "b", I32, 1, (int64_t[]){3}, bias, sizeof bias);
    put_node(&m, "QLinearConv", "in,s,z,w,s,z,s,z,b", "conv", "pads=1 1 1 1");
    put_node(&m, "Relu", "conv", "a/b", NULL);
    put_node(&m, "NotNeeded", "conv", "nothing", NULL);
    struct bindings dims = {&(struct binding){"N", 4}, 1, NULL};
    struct onnx_model *model = parse(&m, 15, &dims, &d);
    assert_non_null(model);
    static const char *const lines[] = {
        "in    in_1: i8[4,2,5,5]\n",
        "out   a_b: i8[4,3,5,5]\n",
        "conv_acc[n,k,p,q] = b[k]\n",
        "conv_acc[n,k,p,q] += i32(in_1[n,c,p+r-1,q+s_1-1 else 0]) * i32(w[k,c,r,s_1])\n",
        "= i8(clip(round(f32(conv_acc[n,k,p,q]) * 0.5), -128, 127))\n",
        "a_b[n,k,p,q] = max(conv[n,k,p,q], 0)\n",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if (!strstr(model->text, lines[i])) fail_msg("no '%s' in\n%s", lines[i], model->text);
    assert_int_equal(model->ninputs, 1);
    assert_string_equal(model->input[0].onnx, "in");
    assert_string_equal(model->input[0].buffer, "in_1");
    assert_string_equal(model->output[0].onnx, "a/b");
    int b = program_buffer(model->program, "b");
    assert_int_equal(model->program->buffer[b].role, ROLE_CONST);
    assert_memory_equal(model->data[b], bias, sizeof bias);
    assert_null(model->data[program_buffer(model->program, "in_1")]);
    onnx_free(model);
    diags_free(&d);
}

static void shapes_may_be_given(void **state) {
    (void)state;
    struct diags d;
    struct binding given[3] = {{"x[0]", 2}, {"x[1]", 3}, {"x[2]", 1}};
    diags_init(&d);
    struct model_bytes m = one_node("Relu", "-1,N,1", NULL); /* open, by name, fixed */
    struct onnx_model *model = parse(&m, 15, &(struct bindings){given, 3, NULL}, &d);
    assert_non_null(model);
    const struct buffer *x = &model->program->buffer[program_buffer(model->program, "x")];
    assert_int_equal(x->extent[0], 2);
    assert_int_equal(x->extent[1], 3);
    onnx_free(model);
    m = one_node("Relu", "-1,3", NULL);
    assert_null(parse(&m, 15, NULL, &d));
    assert_string_equal(d.at[0].text,
                        "input 'x': dimension 0 is open; give the shape with --shape x=...");
    m = one_node("Relu", "2,4", NULL);
    assert_null(parse(&m, 15, &(struct bindings){given, 2, NULL}, &d));
    assert_string_equal(d.at[1].text, "input 'x': dimension 1 is 4, not 3");
    m = one_node("Relu", "2,3", NULL);
    assert_null(parse(&m, 15, &(struct bindings){given, 3, NULL}, &d));
    assert_string_equal(d.at[2].text, "no input has the name 'x[2]', or a dimension of that name");
    struct binding both[2] = {{"N", 3},
                              {"x[0]", 3}}; /* a dimension's name beside the whole shape */
    m = one_node("Relu", "N", NULL);
    model = parse(&m, 15, &(struct bindings){both, 2, NULL}, &d);
    assert_non_null(model);
    onnx_free(model);
    both[0].value = 4;
    m = one_node("Relu", "N", NULL);
    assert_null(parse(&m, 15, &(struct bindings){both, 2, NULL}, &d));
    assert_string_equal(d.at[3].text,
                        "input 'x': dimension 0 is given as 3, but its name 'N' has the value 4");
    diags_free(&d);
}

/* A number that -D gives by the input's name is known when compiling: here the length of a range.
 */
static void inputs_may_be_given(void **state) {
    (void)state;
    struct diags d;
    int64_t zero = 0, one = 1;
    struct model_bytes m = {0};
    diags_init(&d);
    put_input(&m, "n", I64, "");
    put_initialiser(&m, "a", I64, 0, NULL, &zero, sizeof zero);
    put_initialiser(&m, "b", I64, 0, NULL, &one, sizeof one);
    put_output(&m, "y", I64, NULL);
    put_node(&m, "Range", "a,n,b", "y", NULL);
    struct onnx_model *model =
        parse(&m, 15, &(struct bindings){(struct binding[]){{"n", 7}}, 1, NULL}, &d);
    assert_non_null(model);
    assert_int_equal(model->ninputs, 0);
    const struct program *p = model->program;
    assert_int_equal(p->buffer[program_buffer(p, "y")].elements, 7);
    onnx_free(model);
    diags_free(&d);
}

static void passes_values_on(void **state) {
    (void)state;
    struct diags d;
    float x[6] = {1, -2, 3, -4, 5, -6}, y[6] = {0};
    diags_init(&d);
    struct model_bytes m = {0};
    int64_t shape[2] = {3, 2}; /* [2,3] -> [3,2] has no common factors */
    put_input(&m, "x", F32, "2,3");
    put_output(&m, "y", F32, "3,2");
    put_initialiser(&m, "shape", I64, 1, (int64_t[]){2}, shape, sizeof shape);
    put_node(&m, "Reshape", "x,shape", "y", NULL);
    struct onnx_model *model = parse(&m, 15, NULL, &d);
    assert_non_null(model);
    run_one(model, x, y, &d);
    assert_memory_equal(x, y, sizeof x);
    onnx_free(model);
    put_input(&m, "x", F32, "6");
    put_output(&m, "x", F32, "6"); /* an output that is an input */
    memset(y, 0, sizeof y);
    model = parse(&m, 15, NULL, &d);
    assert_non_null(model);
    run_one(model, x, y, &d);
    assert_memory_equal(x, y, sizeof x);
    assert_string_not_equal(model->input[0].buffer, model->output[0].buffer);
    onnx_free(model);
    assert_int_equal(d.n, 0);
    diags_free(&d);
}

/* The padding of a grouped, dilated, strided convolution against a direct computation. */
static void groups_and_dilations(void **state) {
    (void)state;
    struct diags d;
    struct model_bytes m = {0};
    float x[4 * 7 * 6], w[6 * 2 * 2 * 3], y[6 * 3 * 4];
    diags_init(&d);
    for (int i = 0; i < (int)(sizeof x / sizeof *x); i++) x[i] = (float)(i * 7 % 11 - 5);
    for (int i = 0; i < (int)(sizeof w / sizeof *w); i++) w[i] = (float)(i * 5 % 7 - 3);
    put_input(&m, "x", F32, "1,4,7,6");
    put_output(&m, "y", F32, "1,6,3,4");
    put_initialiser(&m, "w", F32, 4, (int64_t[]){6, 2, 2, 3}, w, sizeof w);
    put_node(&m, "Conv", "x,w", "y", "group:2,strides=2 2,dilations=3 1,pads=1 2 0 1");
    struct onnx_model *model = parse(&m, 15, NULL, &d);
    assert_non_null(model);
    run_one(model, x, y, &d);
    for (int k = 0; k < 6; k++)
        for (int p = 0; p < 3; p++)
            for (int q = 0; q < 4; q++) {
                float want = 0;
                for (int c = 0; c < 2; c++)
                    for (int r = 0; r < 2; r++)
                        for (int s = 0; s < 3; s++) {
                            int i = 2 * p + 3 * r - 1, j = 2 * q + s - 2;
                            if (i < 0 || i >= 7 || j < 0 || j >= 6) continue;
                            want += x[((k / 3 * 2 + c) * 7 + i) * 6 + j] *
                                    w[((k * 2 + c) * 2 + r) * 3 + s];
                        }
                assert_float_equal(y[(k * 3 + p) * 4 + q], want, 0);
            }
    onnx_free(model);
    diags_free(&d);
}

/* Windows that lie in the padding alone, before the input and behind it: the bias is left. */
static void windows_of_padding_alone(void **state) {
    (void)state;
    struct diags d;
    struct model_bytes m = {0};
    float x[4] = {1, 2, 3, 4}, w[2] = {10, 100}, b[1] = {5}, y[9];
    const float want[9] = {5, 5, 105, 215, 325, 435, 45, 5, 5};
    diags_init(&d);
    put_input(&m, "x", F32, "1,1,4");
    put_output(&m, "y", F32, "1,1,9");
    put_initialiser(&m, "w", F32, 3, (int64_t[]){1, 1, 2}, w, sizeof w);
    put_initialiser(&m, "b", F32, 1, (int64_t[]){1}, b, sizeof b);
    put_node(&m, "Conv", "x,w,b", "y", "pads=3 3");
    struct onnx_model *model = parse(&m, 15, NULL, &d);
    assert_non_null(model);
    run_one(model, x, y, &d);
    for (int k = 0; k < 9; k++) assert_float_equal(y[k], want[k], 0);
    onnx_free(model);
    diags_free(&d);
}

/* 0.7 is not quite 0.7 as a scale; the place half-way between two elements is half-way all the
 * same. */
static void places_half_way(void **state) {
    (void)state;
    struct diags d;
    struct model_bytes m = {0};
    float x[7] = {0, 1, 2, 3, 4, 5, 6}, scale[2] = {1, 0.7f}, y[4];
    const float want[4] = {0, 2, 3, 4};
    diags_init(&d);
    put_input(&m, "x", F32, "1,7");
    put_output(&m, "y", F32, "1,4");
    put_initialiser(&m, "s", F32, 1, (int64_t[]){2}, scale, sizeof scale);
    put_node(&m, "Resize", "x,,s", "y", "mode'nearest");
    struct onnx_model *model = parse(&m, 15, NULL, &d);
    assert_non_null(model);
    run_one(model, x, y, &d);
    for (int k = 0; k < 4; k++) assert_float_equal(y[k], want[k], 0);
    onnx_free(model);
    diags_free(&d);
}

/* A constant of one element beside a tensor is a number of the program, whatever its shape. */
static void small_constants(void **state) {
    (void)state;
    for (int side = 0; side < 2; side++) {
        struct model_bytes m = {0};
        struct diags d;
        float x[3] = {8, -2, 4}, y[3] = {0}, c = -0.1f;
        diags_init(&d);
        put_input(&m, "x", F32, "3");
        put_output(&m, "y", F32, "3");
        put_initialiser(&m, "c", F32, 1, (int64_t[]){1}, &c, sizeof c);
        put_node(&m, "Div", side ? "c,x" : "x,c", "y", NULL);
        struct onnx_model *model = parse(&m, 15, NULL, &d);
        assert_non_null(model);
        assert_non_null(strstr(model->text, side ? "(-0.1) / x[" : "] / (-0.1)"));
        run_one(model, x, y, &d);
        for (int i = 0; i < 3; i++) assert_float_equal(y[i], side ? c / x[i] : x[i] / c, 0);
        onnx_free(model);
        diags_free(&d);
    }
}

/* A table looked up by constants is as many points as indices times rows: many of them are left to the program, few are folded. */
static void long_tables(void **state) {
    (void)state;
    for (int many = 0; many < 2; many++) {
        struct model_bytes m = {0};
        struct diags d;
        int64_t n = many ? 20000 : 20, *at = calloc((size_t)n, sizeof *at);
        float table[1000], x[1] = {0}, *y = calloc((size_t)n, sizeof *y);
        diags_init(&d);
        for (int i = 0; i < 1000; i++) table[i] = (float)i / 2;
        for (int64_t i = 0; i < n; i++) at[i] = i * 7919 % 1000;
        put_input(&m, "x", F32, "1");
        put_output(&m, "y", F32, NULL);
        put_initialiser(&m, "t", F32, 1, (int64_t[]){1000}, table, sizeof table);
        put_initialiser(&m, "i", I64, 2, (int64_t[]){n, 1}, at, (size_t)n * sizeof *at);
        put_node(&m, "GatherND", "t,i", "g", NULL);
        put_node(&m, "Add", "g,x", "y", NULL);
        struct onnx_model *model = parse(&m, 15, NULL, &d);
        assert_non_null(model);
        assert_int_equal(strstr(model->text, "select(") != NULL, many);
        if (!many) {
            run_one(model, x, y, &d);
            for (int64_t i = 0; i < n; i++) assert_float_equal(y[i], table[at[i]], 0);
        }
        onnx_free(model);
        diags_free(&d);
        free(at);
        free(y);
    }
}

/* Squares and cubes are products. */
static void small_powers(void **state) {
    static const struct {
        float power, expected;
        bool product;
    } cases[] = {{2, 9, true}, {3, -27, true}, {4, 81, false}};
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct model_bytes m = {0};
        struct diags d;
        float x = -3, y = 0;
        diags_init(&d);
        put_input(&m, "x", F32, "1");
        put_output(&m, "y", F32, "1");
        put_initialiser(&m, "n", F32, 0, NULL, &cases[k].power, sizeof(float));
        put_node(&m, "Pow", "x,n", "y", NULL);
        struct onnx_model *model = parse(&m, 15, NULL, &d);
        assert_non_null(model);
        assert_int_equal(strstr(model->text, "pow(") == NULL, cases[k].product);
        run_one(model, &x, &y, &d);
        assert_float_equal(y, cases[k].expected, 0);
        onnx_free(model);
        diags_free(&d);
    }
}

/* From which opset on reductions take their axes from an input. */
static void axes_as_an_input(void **state) {
    static const struct {
        const char *op;
        int64_t opset;
        bool may;
    } cases[] = {{"ReduceSum", 12, false}, {"ReduceSum", 13, true}, {"ReduceMax", 13, false},
                 {"ReduceMax", 17, false}, {"ReduceMax", 18, true}, {"ReduceMax", 19, true}};
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct model_bytes m = {0};
        struct diags d;
        diags_init(&d);
        put_input(&m, "x", F32, "2,3");
        put_output(&m, "y", F32, NULL);
        put_initialiser(&m, "a", 7, 1, (int64_t[]){1}, (int64_t[]){1}, sizeof(int64_t));
        put_node(&m, cases[k].op, "x,a", "y", "keepdims:0");
        if (!cases[k].may) {
            check_refused(&m, cases[k].opset, "axes as an input are of a later opset");
            diags_free(&d);
            continue;
        }
        struct onnx_model *model = parse(&m, cases[k].opset, NULL, &d);
        diags_print(&d, stderr);
        assert_non_null(model);
        onnx_free(model);
        diags_free(&d);
    }
}

/* A sum of halves in f16 would stop at 2048; operators of 16-bit floats add in f32. */
static void halves_are_added_in_f32(void **state) {
    (void)state;
    enum { N = 4096, F16 = 10 };
    static const struct {
        const char *op, *dims, *attributes;
        float expected;
    } sums[] = {
        {"ReduceSum", "1,1,64,64", NULL, 4096},
        {"ReduceMean", "1,1,64,64", NULL, 1},
        {"GlobalAveragePool", "1,1,64,64", NULL, 1},
        {"AveragePool", "1,1,64,64", "kernel_shape=64 64", 1},
        {"Softmax", "4096", NULL, 1.0f / 4096},
        {"MatMul", "1,4096", NULL, 4096},
        {"Gemm", "1,4096", NULL, 4096},
        {"Gemm", "1,4096", "alpha~0.5", 2048},
        {"Conv", "1,1,64,64", NULL, 4096},
    };
    static unsigned char ones[2 * N], out[2 * N];
    for (int i = 0; i < N; i++) type_store(TYPE_F16, ones + 2 * i, (union value){.f = 1});
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) {
        struct model_bytes m = {0};
        struct diags d;
        bool conv = strcmp(sums[i].op, "Conv") == 0, product = conv || strchr("MG", sums[i].op[0]);
        if (strcmp(sums[i].op, "GlobalAveragePool") == 0) product = false;
        diags_init(&d);
        put_input(&m, "x", F16, sums[i].dims);
        put_output(&m, "y", F16, NULL);
        put_initialiser(&m, "w", F16, conv ? 4 : 2,
                        conv ? (int64_t[]){1, 1, 64, 64} : (int64_t[]){N, 1}, ones, sizeof ones);
        put_node(&m, sums[i].op, product ? "x,w" : "x", "y", sums[i].attributes);
        struct onnx_model *model = parse(&m, 15, NULL, &d);
        assert_non_null(model);
        run_one(model, ones, out, &d);
        assert_float_equal(type_load(TYPE_F16, out).f, sums[i].expected, 0);
        onnx_free(model);
        diags_free(&d);
    }
}

/* ---- the digits ---- */

static void check_digits(const char *name, const char *suffix, int64_t n) {
    struct diags d;
    struct array image, logits;
    char path[100];
    diags_init(&d);
    snprintf(path, sizeof path, "examples/digits/images%s.npy", suffix);
    assert_true(npy_read(path, &image, &d));
    snprintf(path, sizeof path, "examples/digits/logits%s.npy", suffix);
    assert_true(npy_read(path, &logits, &d));
    snprintf(path, sizeof path, "examples/digits/%s.onnx", name);
    struct bindings dims = {&(struct binding){"N", n}, 1, NULL};
    struct onnx_model *model = onnx_load(path, &dims, NULL, &d);
    assert_non_null(model);
    size_t size = type_size(logits.type);
    char *out = calloc((size_t)n * 10, size);
    run_one(model, image.data, out, &d);
    for (int64_t i = 0; i < n * 10; i++) {
        union value got = type_load(logits.type, out + (size_t)i * size);
        union value want = type_load(logits.type, (char *)logits.data + (size_t)i * size);
        if (logits.type == TYPE_F32)
            assert_true(fabs(got.f - want.f) <= 1e-4 * (1 + fabs(want.f)));
        else
            assert_int_equal(got.i, want.i);
    }
    free(out);
    array_free(&image);
    array_free(&logits);
    onnx_free(model);
    diags_free(&d);
}

static void digits(void **state) {
    (void)state;
    check_digits("digits", "", 1);
    check_digits("digits", "", 12);
    check_digits("digits-int8", "-int8", 12);
}

/* Opsets whose operators are the same; what is new in them is refused by name. */
/* A shape that the model gives away too is still known where another operator asks for it. */
static void outputs_may_be_known(void **state) {
    (void)state;
    struct model_bytes m = {0};
    struct diags d;
    put_input(&m, "x", F32, "2,3");
    put_input(&m, "w", F32, "3,2");
    put_output(&m, "s", I64, NULL);
    put_output(&m, "y", F32, NULL);
    put_node(&m, "Shape", "w", "s", NULL);
    put_node(&m, "Reshape", "x,s", "y", NULL);
    diags_init(&d);
    struct onnx_model *model = parse(&m, 15, NULL, &d);
    assert_non_null(model);
    const struct program *p = model->program;
    float x[6] = {1, 2, 3, 4, 5, 6}, w[6] = {0}, y[6] = {0};
    int64_t s[2] = {0};
    void **data = calloc((size_t)p->nbuffers, sizeof *data);
    for (int b = 0; b < p->nbuffers; b++) data[b] = (void *)model->data[b];
    data[program_buffer(p, "x")] = x;
    data[program_buffer(p, "w")] = w;
    data[program_buffer(p, "s")] = s;
    data[program_buffer(p, "y")] = y;
    assert_true(program_run(p, data, NULL, NULL, &d));
    assert_memory_equal(x, y, sizeof x);
    assert_true(s[0] == 3 && s[1] == 2);
    free(data);
    onnx_free(model);
    diags_free(&d);
}

/* A message on a line of the kernel, which nobody wrote, names the node that became that line. */
static void messages_name_nodes(void **state) {
    (void)state;
    struct model_bytes m = {0};
    struct diags d;
    put_input(&m, "x", F32, "2,3");
    put_output(&m, "y", F32, "3,2");
    put_node(&m, "Sigmoid", "x", "t", NULL);
    put_node(&m, "Softmax", "t", "y", NULL);
    diags_init(&d);
    struct onnx_model *model = parse(&m, 15, NULL, &d);
    assert_non_null(model);
    assert_int_equal(d.n, 1); /* it is what it is */
    assert_true(d.at[0].warning);
    assert_string_equal(d.at[0].text,
                        "output 'y' is [2,3], though the graph declares another shape");
    static const char *const node[] = {"node 0 (Sigmoid): slow", "node 1 (Softmax): slow"};
    int seen[2] = {0};
    for (int s = 0; s < model->program->nstmts; s++) {
        int line, col, k = s > 0;
        source_place(&model->source, model->program->stmt[s].at, &line, &col);
        diag_warn(&d, "m.onnx", line, col, "slow");
        assert_string_equal(d.at[d.n - 1].text, node[k]);
        assert_int_equal(d.at[d.n - 1].line, 0);
        seen[k]++;
    }
    assert_true(seen[0] && seen[1]);
    diag_warn(&d, "other.onnx", 5, 1, "slow");
    assert_string_equal(d.at[d.n - 1].text, "slow");
    assert_int_equal(d.at[d.n - 1].line, 5);
    onnx_free(model);
    diags_free(&d);
}

static void takes_newer_opsets(void **state) {
    (void)state;
    struct diags d;
    float x[2] = {-1, 2}, y[2];
    diags_init(&d);
    struct model_bytes m = one_node("Swish", "2", "alpha~2");
    struct onnx_model *model = parse(&m, 26, NULL, &d);
    assert_non_null(model);
    run_one(model, x, y, &d);
    for (int i = 0; i < 2; i++)
        assert_float_equal(y[i], (double)x[i] / (1 + exp(-2 * (double)x[i])), 1e-6);
    onnx_free(model);
    diags_free(&d);
    m = (struct model_bytes){0};
    put_input(&m, "x", F32, "2");
    put_output(&m, "y", I64, NULL);
    put_node(&m, "Cast", "x", "y", "to:7,round_mode'up");
    check_refused(&m, 26, "the attribute 'round_mode' is not supported");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_newer_opsets),
        cmocka_unit_test(outputs_may_be_known),
        cmocka_unit_test(messages_name_nodes),
        cmocka_unit_test(folds_shapes),
        cmocka_unit_test(writes_the_forms),
        cmocka_unit_test(takes_sixteen_dimensions),
        cmocka_unit_test(shapes_may_be_given),
        cmocka_unit_test(inputs_may_be_given),
        cmocka_unit_test(passes_values_on),
        cmocka_unit_test(groups_and_dilations),
        cmocka_unit_test(windows_of_padding_alone),
        cmocka_unit_test(places_half_way),
        cmocka_unit_test(axes_as_an_input),
        cmocka_unit_test(small_constants),
        cmocka_unit_test(long_tables),
        cmocka_unit_test(small_powers),
        cmocka_unit_test(halves_are_added_in_f32),
        cmocka_unit_test(digits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
static void says_what_is_absent(void **state) {
    (void)state;
    struct diags d;
    diags_init(&d);
    assert_null(onnx_load("examples/digits/digits.onnx", NULL, NULL, &d));
    assert_non_null(strstr(d.at[0].text, "built without protobuf-c"));
    diags_free(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(says_what_is_absent)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
