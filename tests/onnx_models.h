/* For tests: models of a few nodes, read and run. */
#ifndef ISAMAP_TESTS_ONNX_MODELS_H
#define ISAMAP_TESTS_ONNX_MODELS_H

#include "ir/interp.h"
#include "onnx/onnx.h"
#include "tests/onnx_bytes.h"

#include <math.h>
#include <setjmp.h>
#include <cmocka.h>

enum { F32 = 1, U8 = 2, I8 = 3, I32 = 6, I64 = 7, STRING = 8 };

static inline struct onnx_model *parse(struct model_bytes *m, int64_t opset,
                                       const struct bindings *dims, struct diags *d) {
    struct text bytes = model_finish(m, opset);
    struct onnx_model *model = onnx_parse("m.onnx", bytes.at, bytes.n, dims, NULL, d);
    text_free(&bytes);
    return model;
}

static inline void check_refused(struct model_bytes *m, int64_t opset, const char *expected) {
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
static inline struct model_bytes one_node(const char *op, const char *dims,
                                          const char *attributes) {
    struct model_bytes m = {0};
    put_input(&m, "x", F32, dims);
    put_output(&m, "y", F32, NULL);
    put_node(&m, op, "x", "y", attributes);
    return m;
}

/* Runs a model of one input and one output. */
static inline void run_one(const struct onnx_model *model, void *in, void *out, struct diags *d) {
    const struct program *p = model->program;
    void **data = calloc((size_t)p->nbuffers, sizeof *data);
    for (int b = 0; b < p->nbuffers; b++) data[b] = (void *)model->data[b];
    data[program_buffer(p, model->input[0].buffer)] = in;
    data[program_buffer(p, model->output[0].buffer)] = out;
    assert_true(program_run(p, data, NULL, NULL, d));
    free(data);
}

#endif
