/* Models made byte by byte: what is read, and what is refused with which words; and the digits of
 * examples/. */
#include "ir/interp.h"
#include "onnx/onnx.h"
#include "tests/onnx_bytes.h"

#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#ifdef ISAMAP_WITH_ONNX
enum { F32 = 1, U8 = 2, I8 = 3, I32 = 6, I64 = 7, STRING = 8 };

static struct onnx_model *parse(struct model_bytes *m, int64_t opset, const struct bindings *dims,
                                struct diags *d) {
    struct text bytes = model_finish(m, opset);
    struct onnx_model *model = onnx_parse("m.onnx", bytes.at, bytes.n, dims, d);
    text_free(&bytes);
    return model;
}

static void check_refused(struct model_bytes *m, int64_t opset, const char *expected) {
    struct diags d;
    diags_init(&d);
    struct onnx_model *model = parse(m, opset, NULL, &d);
    if (model) print_message("%s", model->text);
    assert_null(model);
    assert_int_equal(d.errors, 1);
    if (!strstr(d.at[0].text, expected)) fail_msg("'%s' has no '%s'", d.at[0].text, expected);
    diags_free(&d);
}

/* x: f32 of `dims` through one operator to y */
static struct model_bytes one_node(const char *op, const char *dims, const char *attributes) {
    struct model_bytes m = {0};
    put_input(&m, "x", F32, dims);
    put_output(&m, "y", F32, NULL);
    put_node(&m, op, "x", "y", attributes);
    return m;
}

static void one_refused(const char *op, const char *dims, const char *attributes,
                        const char *expected) {
    struct model_bytes m = one_node(op, dims, attributes);
    check_refused(&m, 15, expected);
}

static void refuses_operators(void **state) {
    (void)state;
    one_refused("NonMaxSuppression", "1,2", NULL,
                "node 0 (NonMaxSuppression, opset 15): this operator is not supported");
    one_refused("Relu", "1,2", "slope~0.5", "the attribute 'slope' is not supported");
    one_refused("MaxPool", "1,1,4,4", NULL, "'kernel_shape' is missing");
    one_refused("MaxPool", "1,1,4,4", "kernel_shape=2", "'kernel_shape' has 1 entries, expected 2");
    one_refused("MaxPool", "1,1,4,4", "kernel_shape=2 0", "'kernel_shape' has the entry 0");
    one_refused("MaxPool", "1,1,4,4", "kernel_shape=2 2,pads=-1 0 0 0", "'pads' has the entry -1");
    one_refused("MaxPool", "1,1,4,4", "kernel_shape=5 2",
                "spans 5 elements along spatial dimension 0, but the padded input has 4");
    one_refused("MaxPool", "1,1,4,4", "kernel_shape=2 2,auto_pad'BOTH", "'auto_pad' is 'BOTH'");
    one_refused("MaxPool", "1,1,5,5", "kernel_shape=1 1,strides=3 3,ceil_mode:1,pads=0 0 1 1",
                "puts a whole window behind the input");
    one_refused("MaxPool", "4,4", "kernel_shape=2 2", "an input of 2 dimensions");
    one_refused("AveragePool", "1,1,5,5",
                "kernel_shape=2 2,strides=2 2,ceil_mode:1,count_include_pad:1", "'ceil_mode' with");
    one_refused("Flatten", "2,3", "axis:3", "axis 3 is outside a tensor of 2 dimensions");
    one_refused("Softmax", "2,3", "axis:-3", "axis -3 is not a dimension of a tensor that has 2");
    one_refused("Transpose", "2,3", "perm=0", "'perm' has 1 entries");
    one_refused("Transpose", "2,3", "perm=1 1", "axis 1 is given twice");
    one_refused("Reshape", "2,3", NULL, "no shape is given");
    one_refused("Cast", "2,3", "to:8", "the type that 'to' gives, 8, is not supported");
    one_refused("Cast", "2,3", "to'x", "the attribute 'to' is not an integer");
    one_refused("Gemm", "2,3", NULL, "input 1 is missing");
    one_refused("Relu", "0,3", NULL, "dimension 0 is 0, expected at least 1");
    one_refused("Relu", "N,3", NULL, "dimension 'N' has no value; give it with -D N=...");
    one_refused("Relu", "4294967296,4294967296", NULL, "too large");
    one_refused("Relu", NULL, NULL, "it has no shape");
    struct model_bytes m = one_node("Relu", "1,2", NULL);
    check_refused(&m, 99, "opset 99 is not known: expected 1 to 22");
}

static void refuses_two_inputs(void **state) {
    (void)state;
    static const struct {
        const char *op, *x, *w, *attributes, *expected;
    } wrong[] = {
        {"Add", "2,3", "2,4", NULL, "shapes [2,3] and [2,4] cannot be broadcast together"},
        {"MatMul", "2,3", "4,5", NULL,
         "[2,3] cannot be multiplied by [4,5]: 3 columns, but 4 rows"},
        {"MatMul", "2,2,3", "3,3,4", NULL, "cannot be broadcast"},
        {"Gemm", "2,3", "5,4", "transB:1", "the factors have 3 columns and 4 rows"},
        {"Gemm", "2,3,1", "5,4", NULL, "its factors are not matrices"},
        {"Conv", "1,4,5,5", "2,3,3,3", NULL, "the weights take 3 channels, but the input has 4"},
        {"Conv", "1,4,5,5", "3,2,3,3", "group:2", "2 groups do not divide 4 and 3 channels"},
        {"Conv", "1,4,5,5", "3,4,3,3", "kernel_shape=3 2",
         "'kernel_shape' is not that of the weights"},
        {"Conv", "1,4,5,5", "3,4,3", NULL, "input and weights have 4 and 3 dimensions"},
        {"Concat", "2,3", "3,3", "axis:1", "input 1 does not fit beside input 0 along axis 1"},
        {"Reshape", "2,3", "2", NULL, "input 1 ('shape') is not a constant list of integers"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct model_bytes m = {0};
        put_input(&m, "x", F32, wrong[i].x);
        put_input(&m, "w", F32, wrong[i].w);
        put_output(&m, "y", F32, NULL);
        put_node(&m, wrong[i].op, "x,w", "y", wrong[i].attributes);
        check_refused(&m, 15, wrong[i].expected);
    }
}

static void refuses_graphs(void **state) {
    (void)state;
    struct model_bytes m = {0};
    put_input(&m, "x", F32, "2");
    put_output(&m, "y", F32, NULL);
    put_node(&m, "Relu", "z", "y", NULL);
    put_node(&m, "Relu", "y", "z", NULL);
    check_refused(
        &m, 15,
        "input 'z' is made by node 1, which comes later: the graph has a cycle or is not in order");
    put_input(&m, "x", F32, "2");
    put_output(&m, "y", F32, NULL);
    put_node(&m, "Relu", "y", "y", NULL);
    check_refused(&m, 15, "input 'y' is its own result");
    put_output(&m, "y", F32, NULL);
    put_node(&m, "Relu", "q", "y", NULL);
    check_refused(&m, 15, "input 'q' is made by nothing in the graph");
    put_input(&m, "x", F32, "2");
    put_output(&m, "y", F32, NULL);
    put_node(&m, "Relu", "x", "y", NULL);
    put_node(&m, "Exp", "x", "y", NULL);
    check_refused(&m, 15, "node 1 (Exp, opset 15): its result 'y' has the name of another value");
    put_input(&m, "x", F32, "2");
    check_refused(&m, 15, "the graph has no outputs");
    put_input(&m, "x", F32, "2");
    put_input(&m, "x", F32, "2");
    check_refused(&m, 15, "two inputs are named 'x'");
    put_input(&m, "x", STRING, "2");
    put_output(&m, "y", F32, NULL);
    check_refused(&m, 15, "input 'x': the type STRING is not supported");
    put_output(&m, "y", F32, NULL);
    check_refused(&m, 15, "output 'y' is made by nothing");
    put_input(&m, "x", F32, "2,3");
    put_output(&m, "y", F32, "3,2");
    put_node(&m, "Relu", "x", "y", NULL);
    check_refused(&m, 15,
                  "its result 'y' is [2,3], but the graph declares its output of another shape");
    put_input(&m, "x", F32, "2,3");
    put_output(&m, "y", I8, NULL);
    put_node(&m, "Relu", "x", "y", NULL);
    check_refused(&m, 15, "its result 'y' is f32, but");
}

/* All that is missing is told at once. */
static void counts_missing_operators(void **state) {
    (void)state;
    struct model_bytes m = {0};
    put_input(&m, "x", F32, "2");
    put_output(&m, "y", F32, NULL);
    put_node(&m, "Unique", "x", "a", NULL);
    put_node(&m, "NonMaxSuppression", "a", "b", NULL);
    put_node(&m, "Unique", "b", "y", NULL);
    check_refused(&m, 15,
                  "2 operators of the model are not supported: Unique in 2 nodes, "
                  "NonMaxSuppression in 1 node");
    put_input(&m, "x", F32, "2");
    put_output(&m, "y", F32, NULL);
    put_node(&m, "Unique", "x", "a", NULL);
    put_node(&m, "Unique", "a", "y", NULL);
    check_refused(&m, 15, "node 1 (Unique, opset 15): this operator, in 2 nodes, is not supported");
}

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
    put_node(&none, "ReduceSum", "e", "y", "keepdims:0");
    check_refused(&none, 15, "input 0 is an empty tensor");
}

static void refuses_tensors(void **state) {
    (void)state;
    struct model_bytes m = {0};
    float data[4] = {0};
    put_initialiser(&m, "w", F32, 1, (int64_t[]){5}, data, sizeof data);
    check_refused(&m, 15, "initialiser 'w': it has 16 bytes of data, but 5 elements of f32 are 20");
    put_initialiser(&m, "w", F32, 2, (int64_t[]){INT64_C(1) << 40, INT64_C(1) << 40}, data,
                    sizeof data);
    check_refused(&m, 15, "is negative or too large");
    put_initialiser(&m, "w", STRING, 1, (int64_t[]){1}, data, 1);
    check_refused(&m, 15, "the type STRING is not supported");
    put_initialiser(&m, "w", 77, 1, (int64_t[]){1}, data, 1);
    check_refused(&m, 15, "unknown type 77");
    put_initialiser(&m, "w", F32, 1, (int64_t[]){1000000000}, "", 0);
    check_refused(&m, 15, "it has 0 values, but its shape has 1000000000 elements");
    put_initialiser(&m, "w", F32, 1, (int64_t[]){4}, data, 16);
    put_initialiser(&m, "w", F32, 1, (int64_t[]){4}, data, 16);
    check_refused(&m, 15, "two initialisers are named 'w'");
    int64_t ones[17];
    for (int d = 0; d < 17; d++) ones[d] = 1;
    put_initialiser(&m, "w", F32, 17, ones, data, 4);
    check_refused(&m, 15, "more than 16 dimensions");
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

static void check_bytes(const char *bytes, size_t n, const char *expected) {
    struct diags d;
    diags_init(&d);
    assert_null(onnx_parse("m.onnx", bytes, n, NULL, &d));
    assert_int_equal(d.errors, 1);
    if (!strstr(d.at[0].text, expected)) fail_msg("'%s' has no '%s'", d.at[0].text, expected);
    diags_free(&d);
}

static void refuses_bytes(void **state) {
    (void)state;
    check_bytes("", 0, "the file is empty");
    check_bytes("hello, world", 12, "byte 3: not a field of protobuf");
    check_bytes("\x3a\x7f", 2, "byte 1: this field is longer than what holds it");
    check_bytes("\x08", 1, "byte 1: the model ends inside a number");
    check_bytes("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12,
                "byte 1: a number of more than ten bytes");
    check_bytes("\x3d\x01\x01\x01\x01", 5, "byte 1: this field has the wrong kind");
    check_bytes("\x08\x08", 2, "the model has no graph");
    struct text deep = {0}; /* attribute of a node of a graph of an attribute … */
    for (int i = 0; i < 198; i++) {
        struct text outer = {0};
        put_message(&outer, i % 3 == 0 ? 6 : i % 3 == 1 ? 5 : 1, &deep);
        deep = outer;
    }
    struct text model = {0};
    put_message(&model, 7, &deep);
    check_bytes(model.at, model.n, "messages are nested more than 64 deep");
    text_free(&model);
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
        "= i8(clip(round(f64(conv_acc[n,k,p,q]) * 0.5), -128, 127))\n",
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

static void dims_must_fit(void **state) {
    (void)state;
    struct diags d;
    struct binding given[2] = {{"N", 4}, {"M", 5}};
    diags_init(&d);
    struct model_bytes m = one_node("Relu", "N,3", NULL);
    assert_null(parse(&m, 15, &(struct bindings){given, 2, NULL}, &d));
    assert_string_equal(d.at[0].text, "no input has the name 'M', or a dimension of that name");
    m = one_node("Relu", "N,3", NULL);
    given[0].value = 0;
    assert_null(parse(&m, 15, &(struct bindings){given, 1, NULL}, &d));
    assert_string_equal(d.at[1].text, "'N' is 0, but a dimension is at least 1");
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

/* Runs a model of one input and one output. */
static void run_one(const struct onnx_model *model, void *in, void *out, struct diags *d) {
    const struct program *p = model->program;
    void **data = calloc((size_t)p->nbuffers, sizeof *data);
    for (int b = 0; b < p->nbuffers; b++) data[b] = (void *)model->data[b];
    data[program_buffer(p, model->input[0].buffer)] = in;
    data[program_buffer(p, model->output[0].buffer)] = out;
    assert_true(program_run(p, data, NULL, NULL, d));
    free(data);
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

/* From which opset on reductions take their axes from an input. */
static void axes_as_an_input(void **state) {
    static const struct {
        const char *op;
        int64_t opset;
        bool may;
    } cases[] = {{"ReduceSum", 12, false},
                 {"ReduceSum", 13, true},
                 {"ReduceMax", 13, false},
                 {"ReduceMax", 17, false},
                 {"ReduceMax", 18, true},
                 {"ReduceMax", 19, true}};
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

static void write_file(const char *path, const void *data, size_t n) {
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, n, f), n);
    fclose(f);
}

static void put_external(struct model_bytes *m, const char *location, const char *offset,
                         const char *length) {
    const char *pairs[3][2] = {{"location", location}, {"offset", offset}, {"length", length}};
    struct text t = {0}, pair = {0};
    put_number(&t, 1, 3);
    put_number(&t, 2, F32);
    put_string(&t, 8, "w");
    for (int k = 0; k < 3; k++) {
        if (!pairs[k][1]) continue;
        put_string(&pair, 1, pairs[k][0]);
        put_string(&pair, 2, pairs[k][1]);
        put_message(&t, 13, &pair);
    }
    put_number(&t, 14, 1);
    put_message(&m->graph, 5, &t);
    put_input(m, "x", F32, "3");
    put_output(m, "y", F32, "3");
    put_node(m, "Mul", "x,w", "y", NULL);
}

static void external_refused(const char *folder, const char *location, const char *offset,
                             const char *length, const char *expected) {
    struct diags d;
    struct model_bytes m = {0};
    char path[200];
    diags_init(&d);
    snprintf(path, sizeof path, "%s/m.onnx", folder);
    put_external(&m, location, offset, length);
    struct text bytes = model_finish(&m, 15);
    assert_null(onnx_parse(path, bytes.at, bytes.n, NULL, &d));
    if (!strstr(d.at[0].text, expected)) fail_msg("'%s' has no '%s'", d.at[0].text, expected);
    text_free(&bytes);
    diags_free(&d);
}

static void external_data(void **state) {
    (void)state;
    char root[] = "/tmp/isamap-onnx-XXXXXX", folder[100], path[200];
    float w[4] = {9, 2, 3, 4}, x[3] = {1, 10, 100}, y[3];
    struct diags d;
    struct model_bytes m = {0};
    assert_non_null(mkdtemp(root));
    snprintf(folder, sizeof folder, "%s/model", root);
    assert_int_equal(mkdir(folder, 0700), 0);
    snprintf(path, sizeof path, "%s/outside.bin", root);
    write_file(path, w, sizeof w);
    snprintf(path, sizeof path, "%s/link.bin", folder);
    assert_int_equal(symlink("../outside.bin", path), 0);
    snprintf(path, sizeof path, "%s/w.bin", folder);
    write_file(path, w, sizeof w);
    external_refused(folder, "../outside.bin", NULL, NULL, "not inside the model's folder");
    external_refused(folder, "a/../../outside.bin", NULL, NULL, "not inside the model's folder");
    external_refused(folder, "/etc/passwd", NULL, NULL, "not inside the model's folder");
    external_refused(folder, "link.bin", NULL, NULL, "leads out of the model's folder");
    external_refused(folder, ".", NULL, NULL, "data file");
    external_refused(folder, "none.bin", NULL, NULL, "cannot be found");
    external_refused(folder, NULL, NULL, NULL, "have no location");
    external_refused(folder, "w.bin", "8", NULL, "reach past the end");
    external_refused(folder, "w.bin", "-4", NULL,
                     "the offset of its external data is not a number");
    external_refused(folder, "w.bin", "9223372036854775807", "12", "reach past the end");
    external_refused(folder, "w.bin", "4", "16",
                     "it has 16 bytes of external data, but 3 elements of f32 are 12");
    diags_init(&d);
    put_external(&m, "w.bin", "4", "12");
    struct text bytes = model_finish(&m, 15);
    char model_path[200];
    snprintf(model_path, sizeof model_path, "%s/m.onnx", folder);
    write_file(model_path, bytes.at, bytes.n);
    struct onnx_model *model = onnx_load(model_path, NULL, &d);
    assert_non_null(model);
    run_one(model, x, y, &d);
    for (int i = 0; i < 3; i++) assert_float_equal(y[i], x[i] * w[i + 1], 0);
    onnx_free(model);
    text_free(&bytes);
    diags_free(&d);
    unlink(model_path);
    unlink(path);
    snprintf(path, sizeof path, "%s/link.bin", folder);
    unlink(path);
    rmdir(folder);
    snprintf(path, sizeof path, "%s/outside.bin", root);
    unlink(path);
    rmdir(root);
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
    struct onnx_model *model = onnx_load(path, &dims, &d);
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_operators),
        cmocka_unit_test(refuses_two_inputs),
        cmocka_unit_test(refuses_graphs),
        cmocka_unit_test(counts_missing_operators),
        cmocka_unit_test(folds_shapes),
        cmocka_unit_test(refuses_tensors),
        cmocka_unit_test(refuses_bytes),
        cmocka_unit_test(writes_the_forms),
        cmocka_unit_test(takes_sixteen_dimensions),
        cmocka_unit_test(dims_must_fit),
        cmocka_unit_test(shapes_may_be_given),
        cmocka_unit_test(inputs_may_be_given),
        cmocka_unit_test(passes_values_on),
        cmocka_unit_test(groups_and_dilations),
        cmocka_unit_test(axes_as_an_input),
        cmocka_unit_test(halves_are_added_in_f32),
        cmocka_unit_test(external_data),
        cmocka_unit_test(digits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
static void says_what_is_absent(void **state) {
    (void)state;
    struct diags d;
    diags_init(&d);
    assert_null(onnx_load("examples/digits/digits.onnx", NULL, &d));
    assert_non_null(strstr(d.at[0].text, "built without protobuf-c"));
    diags_free(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(says_what_is_absent)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
