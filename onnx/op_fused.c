/* Of com.microsoft: operators into which ONNX Runtime's optimisers fuse others. They are lowered as
 * what they were made of, so that mapper and scheduler see what any other model shows them. */
#include "onnx/onnx.h"

#ifdef ISAMAP_WITH_ONNX
#include "onnx/onnx_int.h"

#include <inttypes.h>
#include <string.h>

static const char *input_name(const struct import *im, int k) {
    return node_has_input(im, k) ? im->node->input[k] : NULL;
}

/* ---- activations ---- */

/* The name of the value that the attribute 'activation' is applied to: the node's result where
 * there is none. */
static bool activation_source(struct import *im, const char **how, const char **from) {
    *how = NULL;
    if (!attribute_string(im, "activation", how)) return false;
    if (*how && !**how) *how = NULL;
    *from = *how ? inner_name(im, "linear") : im->node->output[0];
    return true;
}

/* Its parameters are the attributes of the operator, in this order. */
static const struct {
    const char *name, *attribute[2];
} activations[] = {{"Relu", {0}},
                   {"Tanh", {0}},
                   {"Sigmoid", {0}},
                   {"Softplus", {0}},
                   {"Softsign", {0}},
                   {"HardSwish", {0}},
                   {"LeakyRelu", {"alpha", NULL}},
                   {"Elu", {"alpha", NULL}},
                   {"ThresholdedRelu", {"alpha", NULL}},
                   {"HardSigmoid", {"alpha", "beta"}}};

/* Clip has limits, which newer opsets give as inputs. */
static bool activate_clip(struct import *im, const char *from, const double *limit) {
    const struct tensor *x = name_find(&im->value, from);
    int64_t one = 1;
    struct inner n = {.input = {from}, .ninputs = 3, .output = {im->node->output[0]}};
    for (int k = 0; k < 2; k++) {
        void *data = arena_alloc(im->arena, type_size(x->type));
        type_store(x->type, data, (union value){.f = limit[k]});
        struct tensor *t =
            tensor_constant(im, n.output[0], k ? "most" : "least", x->type, 0, &one, data);
        if (!t) return false;
        if (im->opset < 11)
            inner_float(im, &n, k ? "max" : "min", limit[k]);
        else
            n.input[1 + k] = inner_value(im, t, k ? "most" : "least");
    }
    if (im->opset < 11) n.ninputs = 1;
    return inner_lower(im, &n, "Clip");
}

/* The result is the activation of this value; its parameters: one list, or an attribute each. */
static bool activate(struct import *im, const char *how, const char *from) {
    double value[2] = {0, 0};
    bool given[2] = {false, false};
    const Onnx__AttributeProto *list = attribute_find(im, "activation_params");
    static const char *const each[2] = {"activation_alpha", "activation_beta"};
    for (int k = 0; k < 2; k++) {
        given[k] = attribute_find(im, each[k]) != NULL;
        if (given[k] && !attribute_float(im, each[k], &value[k])) return false;
        if (list && (size_t)k < list->n_floats) {
            given[k] = true;
            value[k] = (double)list->floats[k];
        }
    }
    if (!how) return true;
    if (strcmp(how, "Clip") == 0 && given[0] && given[1]) return activate_clip(im, from, value);
    for (size_t i = 0; i < sizeof activations / sizeof *activations; i++) {
        if (strcmp(how, activations[i].name) != 0) continue;
        struct inner n = {.input = {from}, .ninputs = 1, .output = {im->node->output[0]}};
        for (int k = 0; k < 2 && activations[i].attribute[k]; k++)
            if (given[k]) inner_float(im, &n, activations[i].attribute[k], value[k]);
        return inner_lower(im, &n, how);
    }
    return node_fail(im, "the activation '%s' is not supported", name_shown(im->arena, how));
}

/* A convolution, then perhaps a sum with another tensor, then perhaps an activation. */
bool op_fused_conv(struct import *im) {
    const char *how, *from, *sum = NULL;
    if (!activation_source(im, &how, &from)) return false;
    if (node_has_input(im, 3)) sum = inner_name(im, "conv");
    struct inner conv = {.input = {input_name(im, 0), input_name(im, 1), input_name(im, 2)},
                         .ninputs = node_has_input(im, 2) ? 3 : 2,
                         .output = {sum ? sum : from}};
    inner_pass(im, &conv, "activation");
    return inner_lower(im, &conv, "Conv") &&
           (!sum || inner_node(im, "Add", sum, input_name(im, 3), from)) && activate(im, how, from);
}

bool op_fused_gemm(struct import *im) {
    const char *how, *from;
    if (!activation_source(im, &how, &from)) return false;
    struct inner gemm = {.input = {input_name(im, 0), input_name(im, 1), input_name(im, 2)},
                         .ninputs = node_has_input(im, 2) ? 3 : 2,
                         .output = {from}};
    inner_pass(im, &gemm, "activation");
    return inner_lower(im, &gemm, "Gemm") && activate(im, how, from);
}

/* ---- gelu ---- */

/* x, plus the bias where there is one */
static bool biased(struct import *im, const char **x) {
    *x = input_name(im, 0);
    if (!node_has_input(im, 1)) return true;
    *x = inner_name(im, "biased");
    return inner_node(im, "Add", input_name(im, 0), input_name(im, 1), *x);
}

bool op_bias_gelu(struct import *im) {
    const char *x;
    return biased(im, &x) && inner_node(im, "Gelu", x, NULL, im->node->output[0]);
}

bool op_fast_gelu(struct import *im) {
    const char *x;
    if (!biased(im, &x)) return false;
    struct inner n = {.input = {x}, .ninputs = 1, .output = {im->node->output[0]}};
    inner_string(im, &n, "approximate", "tanh");
    return inner_lower(im, &n, "Gelu");
}

bool op_quick_gelu(struct import *im) {
    struct inner n = {.input = {input_name(im, 0)}, .ninputs = 1, .output = {im->node->output[0]}};
    double alpha = 1.702;
    if (!attribute_float(im, "alpha", &alpha)) return false;
    inner_float(im, &n, "alpha", alpha);
    return inner_lower(im, &n, "Swish");
}

/* ---- normalisation ---- */

/* Scale and bias as inputs s and b (-1: has none) of the node; centred: a mean is taken away. */
static bool normalise(struct import *im, const char *x, int s, int b, bool centred) {
    bool bias = centred && b >= 0 && node_has_input(im, b);
    double epsilon = 1e-12;
    struct inner n = {.input = {x, input_name(im, s), bias ? input_name(im, b) : NULL},
                      .ninputs = bias ? 3 : 2,
                      .output = {im->node->output[0]}};
    if (!attribute_float(im, "epsilon", &epsilon)) return false;
    inner_float(im, &n, "epsilon", epsilon);
    for (int k = 1; k <= 2; k++)
        if (node_wants(im, k)) return node_fail(im, "result %d is not supported", k);
    return inner_lower(im, &n, centred ? "LayerNormalization" : "RMSNormalization");
}

/* Input, skip and perhaps a bias (input `bias`) are added; the sum may be the fourth result. */
static bool skip_sum(struct import *im, int bias, const char **sum) {
    const char *part = input_name(im, 1);
    *sum = node_wants(im, 3) ? im->node->output[3] : inner_name(im, "sum");
    if (node_has_input(im, bias)) {
        part = inner_name(im, "skip");
        if (!inner_node(im, "Add", input_name(im, 1), input_name(im, bias), part)) return false;
    }
    return inner_node(im, "Add", input_name(im, 0), part, *sum);
}

bool op_skip_layer_normalization(struct import *im) {
    const char *sum;
    return skip_sum(im, 4, &sum) && normalise(im, sum, 2, 3, true);
}

bool op_skip_simplified_layer_normalization(struct import *im) {
    const char *sum;
    return skip_sum(im, 3, &sum) && normalise(im, sum, 2, -1, false);
}

/* RMSNormalization, as it was called before it was an operator of the standard. */
bool op_simplified_layer_normalization(struct import *im) {
    struct inner n = {.input = {input_name(im, 0), input_name(im, 1)},
                      .ninputs = 2,
                      .output = {im->node->output[0]}};
    if (node_wants(im, 1)) return node_fail(im, "result 1 is not supported");
    inner_pass(im, &n, NULL);
    return inner_lower(im, &n, "RMSNormalization");
}

/* ---- embeddings ---- */

/* 0, 1, 2, … of i64 */
static const char *positions(struct import *im, int64_t n) {
    int64_t *place = arena_array(im->arena, (size_t)n, sizeof *place), extent[2] = {1, n};
    for (int64_t i = 0; i < n; i++) place[i] = i;
    struct tensor *t =
        tensor_constant(im, im->node->output[0], "places", TYPE_I64, 2, extent, place);
    return t ? inner_value(im, t, "places") : NULL;
}

/* How many of a row of the mask are 1, as i32. */
static bool mask_lengths(struct import *im) {
    struct tensor *ids = node_input(im, 0), *mask = node_input(im, 7);
    if (!node_wants(im, 1)) return true;
    struct tensor *y = node_result_at(im, 1, TYPE_I32, 1, ids->extent);
    if (!y) return false;
    if (mask && (mask->ndims != 2 || mask->extent[0] != ids->extent[0]))
        return node_fail(im, "the mask is not a matrix of a row for each sequence");
    const char *at[2] = {axis_for(im, "i", ids->extent[0]),
                         mask ? axis_for(im, "j", mask->extent[1]) : "0"};
    emit_statement(im, "%s = 0", tensor_element(im, y, at));
    if (mask)
        emit_statement(im, "%s += i32(%s == 1)", tensor_element(im, y, at),
                       tensor_element(im, mask, at));
    axes_release(im);
    return true;
}

/* Rows for words, places and perhaps segments are added and normalised. The tables, then factor and
 * offset, are `table`. */
static bool embed(struct import *im, const char *const *table, const char *at) {
    struct tensor *ids = node_input(im, 0);
    int64_t kind = 0;
    if (ids->ndims != 2) return node_fail(im, "the words are not a matrix");
    if (!attribute_int(im, "mask_index_type", &kind)) return false;
    if (!at) at = positions(im, ids->extent[1]);
    const char *word = inner_name(im, "words"), *place = inner_name(im, "place"),
               *sum = node_wants(im, 2) ? im->node->output[2] : inner_name(im, "sum"),
               *both = node_has_input(im, 1) ? inner_name(im, "both") : sum;
    if (!at || !inner_node(im, "Gather", table[0], input_name(im, 0), word) ||
        !inner_node(im, "Gather", table[1], at, place) || !inner_node(im, "Add", word, place, both))
        return false;
    if (node_has_input(im, 1)) {
        const char *segment = inner_name(im, "segment");
        if (!inner_node(im, "Gather", table[2], input_name(im, 1), segment) ||
            !inner_node(im, "Add", both, segment, sum))
            return false;
    }
    double epsilon = 1e-12;
    struct inner n = {
        .input = {sum, table[3], table[4]}, .ninputs = 3, .output = {im->node->output[0]}};
    if (!attribute_float(im, "epsilon", &epsilon)) return false;
    inner_float(im, &n, "epsilon", epsilon);
    return mask_lengths(im) && inner_lower(im, &n, "LayerNormalization");
}

/* All tables; that of the segments where there are segments. */
static bool embed_needs(struct import *im) {
    for (int k = 0; k < 5; k++)
        if ((k != 2 || node_has_input(im, 1)) && !node_needs_input(im, 2 + k)) return false;
    return true;
}

bool op_embed_layer_normalization(struct import *im) {
    const char *table[5];
    for (int k = 0; k < 5; k++) table[k] = input_name(im, 2 + k);
    return embed_needs(im) && embed(im, table, input_name(im, 8));
}

/* The same of quantised tables. */
bool op_qembed_layer_normalization(struct import *im) {
    const char *table[5] = {NULL};
    if (!embed_needs(im)) return false;
    for (int k = 0; k < 5; k++) {
        if (!node_has_input(im, 2 + k)) continue;
        if (!node_needs_input(im, 8 + k)) return false;
        bool zero = node_has_input(im, 13 + k);
        struct inner n = {.input = {input_name(im, 2 + k), input_name(im, 8 + k),
                                    zero ? input_name(im, 13 + k) : NULL},
                          .ninputs = zero ? 3 : 2,
                          .output = {table[k] = inner_name(im, "table")}};
        if (!inner_lower(im, &n, "DequantizeLinear")) return false;
    }
    return embed(im, table, NULL);
}
#endif
