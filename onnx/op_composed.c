/* Of com.microsoft: operators that optimisers and exporters write for a few of ONNX's in a row
 * (diffusion models, language models with linear attention). They are lowered as those. */
#include "onnx/onnx.h"

#ifdef ISAMAP_WITH_ONNX
#include "onnx/onnx_int.h"

#include <inttypes.h>
#include <string.h>

/* The name of the value op(a, b); b NULL: of one input. NULL after reporting, or where a is NULL.
 */
static const char *then(struct import *im, const char *op, const char *a, const char *b,
                        const char *suffix) {
    const char *to = a ? inner_name(im, suffix) : NULL;
    return to && inner_node(im, op, a, b, to) ? to : NULL;
}

/* The value of this name as one of this type. */
static const char *of_type(struct import *im, const char *from, enum type type,
                           const char *suffix) {
    const struct tensor *t = from ? name_find(&im->value, from) : NULL;
    if (!t || t->type == type) return from;
    struct tensor like = {.name = inner_name(im, "like"), .type = type, .elements = 1};
    name_put(im->arena, &im->value, like.name, arena_copy(im->arena, &like, sizeof like));
    return then(im, "CastLike", from, like.name, suffix);
}

static const char *input(const struct import *im, int k) {
    return node_has_input(im, k) ? im->node->input[k] : NULL;
}

static const char *result(const struct import *im) {
    return im->node->output[0];
}

/* A list of integers as a value, for the inputs of nodes. */
static const char *list_value(struct import *im, int64_t n, const int64_t *list,
                              const char *suffix) {
    struct tensor *t = tensor_constant(im, result(im), suffix, TYPE_I64, 1, &n,
                                       arena_copy(im->arena, list, (size_t)n * sizeof *list));
    return t ? inner_value(im, t, suffix) : NULL;
}

/* ---- plain ones ---- */

bool op_expand_dims(struct import *im) {
    struct tensor *x = node_given(im, 0), *at = node_input(im, 1);
    int64_t extent[MAX_DIMS + 1];
    int axis;
    if (!at->data || at->elements != 1) return node_fail(im, "the axis is not a constant");
    if (x->ndims >= MAX_DIMS) return node_fail(im, "more than %d dimensions", MAX_DIMS);
    if (!axis_normal(im, tensor_int(at, 0), x->ndims + 1, &axis)) return false;
    for (int d = 0; d <= x->ndims; d++) extent[d] = d == axis ? 1 : x->extent[d < axis ? d : d - 1];
    return node_alias(im, x, x->ndims + 1, extent);
}

/* In the order in which they come. */
bool op_ms_unique(struct import *im) {
    struct inner n = {.input = {input(im, 0)},
                      .ninputs = 1,
                      .output = {result(im), inner_name(im, "first"), inner_name(im, "which"),
                                 inner_name(im, "count")}};
    if (node_wants(im, 1)) n.output[2] = im->node->output[1];
    if (node_wants(im, 2)) n.output[3] = im->node->output[2];
    inner_int(im, &n, "sorted", 0);
    return inner_lower(im, &n, "Unique");
}

/* From every row of one matrix to every row of the other. */
bool op_distances(struct import *im) {
    struct tensor *a = node_input(im, 0), *b = node_input(im, 1);
    const char *metric = "sqeuclidean";
    if (!attribute_string(im, "metric", &metric)) return false;
    bool root = strcmp(metric, "euclidean") == 0;
    if (!root && strcmp(metric, "sqeuclidean") != 0)
        return node_fail(im, "'metric' is '%s', expected euclidean or sqeuclidean",
                         name_shown(im->arena, metric));
    if (!type_is_float(a->type) || a->type != b->type || a->ndims != 2 || b->ndims != 2 ||
        a->extent[1] != b->extent[1])
        return node_fail(im, "the inputs are not matrices of floats with rows of one length");
    int64_t extent[2] = {a->extent[0], b->extent[0]};
    struct tensor *y = node_result(im, a->type, 2, extent),
                  *acc =
                      y ? tensor_temporary(im, y->buffer, "squares", sum_type(a->type), 2, extent)
                        : NULL;
    if (!acc) return false;
    const char *i = axis_for(im, "i", extent[0]), *j = axis_for(im, "j", extent[1]),
               *k = axis_for(im, "k", a->extent[1]), *to[2] = {i, j}, *at[2] = {i, k},
               *of[2] = {j, k}, *s = tensor_element(im, acc, to),
               *d = arena_printf(im->arena, "(%s - %s)",
                                 sum_widen(im, a->type, tensor_element(im, a, at)),
                                 sum_widen(im, b->type, tensor_element(im, b, of)));
    emit_statement(im, "%s = 0", s);
    emit_statement(im, "%s += %s * %s", s, d, d);
    emit_statement(im, "%s = %s", tensor_element(im, y, to),
                   sum_narrow(im, y->type, root ? arena_printf(im->arena, "sqrt(%s)", s) : s));
    return true;
}

/* Products of integers of 16 bits, in 32. */
bool op_matmul_integer16(struct import *im) {
    const char *x[2];
    for (int k = 0; k < 2; k++) {
        enum type t = node_input(im, k)->type;
        if (t != TYPE_I16 && t != TYPE_U16)
            return node_fail(im, "input %d is %s, expected i16 or u16", k, type_name(t));
        x[k] = of_type(im, input(im, k), TYPE_I32, k ? "b" : "a");
    }
    return x[0] && x[1] && inner_node(im, "MatMul", x[0], x[1], result(im));
}

bool op_bias_add(struct import *im) {
    const char *sum = then(im, "Add", input(im, 0), input(im, 1), "sum");
    return sum && inner_node(im, "Add", sum, input(im, 2), result(im));
}

/* One half times Gelu of the other. */
bool op_bias_split_gelu(struct import *im) {
    const char *sum = then(im, "Add", input(im, 0), input(im, 1), "sum"), *half[2];
    const struct tensor *x = sum ? name_find(&im->value, sum) : NULL;
    if (!x) return false;
    int64_t width = x->extent[x->ndims - 1], each[2] = {width / 2, width / 2};
    if (width % 2) return node_fail(im, "%" PRId64 " columns have no halves", width);
    const char *list = list_value(im, 2, each, "halves");
    if (!list) return false;
    for (int k = 0; k < 2; k++) half[k] = inner_name(im, k ? "right" : "left");
    struct inner n = {
        .input = {sum, list}, .ninputs = im->opset < 13 ? 1 : 2, .output = {half[0], half[1]}};
    inner_int(im, &n, "axis", -1);
    if (im->opset < 13) inner_ints(im, &n, "split", 2, each);
    if (!inner_lower(im, &n, "Split")) return false;
    const char *gelu = then(im, "Gelu", half[1], NULL, "gelu");
    return gelu && inner_node(im, "Mul", half[0], gelu, result(im));
}

bool op_gemm_fast_gelu(struct import *im) {
    const char *product = then(im, "MatMul", input(im, 0), input(im, 1), "product");
    return product && inner_node(im, "FastGelu", product, input(im, 2), result(im));
}

/* ---- groups of channels ---- */

/* [N, C] becomes [N, 1, 1, C], or has its channels second. */
static const char *skip_shaped(struct import *im, const char *skip, bool last) {
    const struct tensor *t = name_find(&im->value, skip);
    if (t->ndims != 2) return skip;
    int64_t shape[4] = {t->extent[0], last ? 1 : t->extent[1], 1, last ? t->extent[1] : 1};
    return then(im, "Reshape", skip, list_value(im, 4, shape, "shape"), "skip");
}

bool op_ms_group_norm(struct import *im) {
    bool skips = strcmp(im->node->op_type, "SkipGroupNorm") == 0;
    int64_t last = 1, silu = 0, groups = 0, opset = im->opset;
    double epsilon = 1e-5;
    const char *x = input(im, 0);
    struct tensor *t = node_input(im, 0);
    if (!attribute_int(im, "channels_last", &last) || !attribute_int(im, "activation", &silu) ||
        !attribute_int(im, "groups", &groups) || !attribute_float(im, "epsilon", &epsilon))
        return false;
    if (t->ndims != 4 || !type_is_float(t->type) || silu < 0 || silu > 1)
        return node_fail(im, "the input is not of floats in four dimensions, or 'activation' is "
                             "neither 0 nor 1");
    if (skips) {
        bool bias = node_has_input(im, 4);
        const char *sum = node_wants(im, 1) ? im->node->output[1] : inner_name(im, "sum"),
                   *part = bias ? inner_name(im, "part") : sum;
        if (bias && !last) return node_fail(im, "a bias beside channels that are not the last");
        const char *skip = skip_shaped(im, input(im, 3), last != 0);
        if (!skip || !inner_node(im, "Add", x, skip, part) ||
            (bias && !inner_node(im, "Add", part, input(im, 4), sum)))
            return false;
        x = sum;
    }
    const char *first = last ? inner_name(im, "first") : x, *normal = inner_name(im, "normal"),
               *gamma = of_type(im, input(im, 1), t->type, "gamma"),
               *beta = of_type(im, input(im, 2), t->type, "beta"), *made = result(im);
    if (!gamma || !beta || (last && !channels_moved(im, x, false, first))) return false;
    struct inner n = {
        .input = {first, gamma, beta}, .ninputs = 3, .output = {last || silu ? normal : made}};
    inner_int(im, &n, "num_groups", groups);
    inner_float(im, &n, "epsilon", epsilon);
    im->opset = 21; /* a scale for each channel */
    bool ok = inner_lower(im, &n, "GroupNormalization");
    im->opset = opset;
    const char *to = silu && last ? inner_name(im, "active") : made;
    if (ok && silu) {
        const char *sigmoid = then(im, "Sigmoid", normal, NULL, "sigmoid");
        ok = sigmoid && inner_node(im, "Mul", normal, sigmoid, to);
        normal = to;
    }
    return ok && (!last || channels_moved(im, normal, true, made));
}

/* ---- gates ---- */

/* Over each run of `width` elements of the last dimension: y = x / root of the mean of squares,
 * times scale (NULL: 1; one for each of its own number of elements), times the gate. All in f32. */
struct runs {
    struct tensor *x, *scale, *gate;
    int64_t width;
    int branch; /* the dimension that says which row of a scale in two dimensions */
    double epsilon;
    bool silu;
};

static bool runs_normalised(struct import *im, const struct runs *r) {
    struct tensor *x = r->x, seen = *x, out;
    int last = x->ndims - 1;
    if (r->width < 1 || x->extent[last] % r->width || x->ndims >= MAX_DIMS)
        return node_fail(im, "%" PRId64 " columns are not runs of %" PRId64, x->extent[last],
                         r->width);
    seen.ndims = last + 2;
    seen.extent[last] = x->extent[last] / r->width;
    seen.extent[last + 1] = r->width;
    struct tensor *y = node_result(im, x->type, x->ndims, x->extent), *sum = NULL;
    const char *at[MAX_DIMS], *index[MAX_DIMS];
    if (y)
        sum = tensor_temporary(im, y->buffer, "squares", sum_type(x->type), last + 1, seen.extent);
    if (!sum) return false;
    axes_for(im, last + 2, seen.extent, at);
    memcpy(index, at, sizeof index);
    index[last] = affine_text(im, 2, (int64_t[]){r->width, 1}, &at[last], 0);
    const char *s = tensor_element(im, sum, at),
               *e = sum_widen(im, x->type, tensor_element(im, x, index));
    emit_statement(im, "%s = 0", s);
    emit_statement(im, "%s += %s * %s", s, e, e);
    const char *v = arena_printf(im->arena, "%s * rsqrt(%s / %" PRId64 " + %s)", e, s, r->width,
                                 text_number(im, TYPE_F64, r->epsilon));
    if (r->scale) {
        const char *of[2] = {at[r->branch], at[last + 1]}, *w;
        if (r->scale->ndims == 1)
            of[0] = r->scale->extent[0] == r->width ? at[last + 1] : index[last];
        w = tensor_element(im, r->scale, of);
        v = arena_printf(im->arena, "%s * %s", v,
                         r->scale->type == sum->type
                             ? w
                             : arena_printf(im->arena, "%s(%s)", type_name(sum->type), w));
    }
    if (r->gate) {
        const char *g = sum_widen(im, r->gate->type, tensor_element(im, r->gate, index));
        v = arena_printf(im->arena, r->silu ? "%s * (%s * sigmoid(%s))" : "%s * sigmoid(%s)", v, g,
                         g);
    }
    out = *y;
    emit_statement(im, "%s = %s", tensor_element(im, &out, index), sum_narrow(im, x->type, v));
    return true;
}

bool op_gated_rms_norm(struct import *im) {
    struct runs r = {.x = node_input(im, 0),
                     .scale = node_input(im, 1),
                     .gate = node_input(im, 2),
                     .epsilon = 1e-5};
    const char *how = "silu";
    if (!attribute_string(im, "activation", &how) || !attribute_float(im, "epsilon", &r.epsilon))
        return false;
    r.silu = strcmp(how, "sigmoid") != 0;
    r.width = r.scale->elements;
    if (r.silu && strcmp(how, "silu") != 0 && strcmp(how, "swish") != 0)
        return node_fail(im, "'activation' is '%s', expected silu, swish or sigmoid",
                         name_shown(im->arena, how));
    if (!type_is_float(r.x->type) || r.x->ndims < 1 || r.scale->ndims != 1 ||
        !type_is_float(r.scale->type) || r.gate->type != r.x->type || r.gate->ndims != r.x->ndims ||
        memcmp(r.gate->extent, r.x->extent, sizeof(int64_t) * (size_t)r.x->ndims) != 0)
        return node_fail(im, "input, scale or gate do not fit");
    return runs_normalised(im, &r);
}

bool op_branchwise_rms_norm(struct import *im) {
    struct runs r = {.x = node_input(im, 0), .scale = node_input(im, 1), .epsilon = 1e-5};
    int64_t branches = 0;
    if (!attribute_int(im, "num_branches", &branches) ||
        !attribute_float(im, "epsilon", &r.epsilon))
        return false;
    const struct tensor *x = r.x, *s = r.scale;
    if (!type_is_float(x->type) || x->ndims < 1 || branches < 0 ||
        (branches && x->extent[x->ndims - 1] % branches) || (!branches && x->ndims < 2))
        return node_fail(im, "the input %s is not of floats in branches",
                         shape_text(im->arena, x->ndims, x->extent));
    r.width = x->extent[x->ndims - 1] / (branches ? branches : 1);
    r.branch = x->ndims - (branches ? 1 : 2);
    int64_t all = branches ? branches : x->extent[x->ndims - 2];
    bool fits = !s || (type_is_float(s->type) &&
                       ((s->ndims == 1 && s->extent[0] == r.width) ||
                        (s->ndims == 2 && s->extent[0] == all && s->extent[1] == r.width) ||
                        (s->ndims == 1 && branches && s->extent[0] == all * r.width)));
    if (!fits) return node_fail(im, "the scale does not fit");
    return runs_normalised(im, &r);
}

bool op_scaled_silu(struct import *im) {
    struct tensor *x = node_input(im, 0), *scale = node_input(im, 1);
    double alpha = 1;
    const char *index[MAX_DIMS];
    if (!attribute_float(im, "alpha", &alpha)) return false;
    if (!type_is_float(x->type) || (scale && (scale->elements != 1 || !type_is_float(scale->type))))
        return node_fail(im, "the input is not of floats, or the scale not one number");
    struct tensor *y = node_result(im, x->type, x->ndims, x->extent);
    if (!y) return false;
    axes_for(im, x->ndims, x->extent, index);
    const char *by = scale ? arena_printf(im->arena, "%s(%s)", type_name(x->type),
                                          tensor_scalar(im, scale))
                           : text_number(im, TYPE_F64, alpha),
               *z = arena_printf(im->arena, "(%s * %s)", tensor_element(im, x, index), by);
    emit_statement(im, "%s = %s * sigmoid(%s)", tensor_element(im, y, index), z, z);
    return true;
}

bool op_gated_add(struct import *im) {
    const char *part = then(im, "Mul", input(im, 1), input(im, 2), "gated");
    return part && inner_node(im, "Add", input(im, 0), part, result(im));
}

/* decay = scale * softplus(a + bias), rate = sigmoid(b), in f32 */
bool op_linear_attention_gate(struct import *im) {
    enum type type = node_input(im, 0)->type;
    if (!type_is_float(type)) return node_fail(im, "the input is not of floats");
    const char *a = of_type(im, input(im, 0), sum_type(type), "wide"),
               *sum = then(im, "Add", a, input(im, 1), "sum"),
               *soft = then(im, "Softplus", sum, NULL, "soft"),
               *decay = then(im, "Mul", soft, input(im, 2), "product");
    if (!(decay = of_type(im, decay, type, "narrow")) ||
        !inner_node(im, "Identity", decay, NULL, result(im)))
        return false;
    return !node_wants(im, 1) ||
           (input(im, 3) ? inner_node(im, "Sigmoid", input(im, 3), NULL, im->node->output[1])
                         : node_fail(im, "the rate is wanted, but input 3 is missing"));
}

/* ---- CausalConvWithState ---- */

bool op_ms_causal_conv(struct import *im) {
    static const struct {
        const char *name;
        int64_t expected;
    } fixed[] = {{"ndim", 1},          {"state_update_capacity", 0}, {"state_channels_last", -1},
                 {"state_window", 0},  {"state_length", 0},          {"input_channel_offset", 0},
                 {"input_channels", 0}};
    int64_t last = 0;
    const char *how = "none";
    struct inner n = {.ninputs = 4, .output = {result(im)}};
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) {
        int64_t value = fixed[i].expected;
        if (!attribute_int(im, fixed[i].name, &value)) return false;
        if (value != fixed[i].expected)
            return node_fail(im, "'%s' is %" PRId64 ", expected %" PRId64, fixed[i].name, value,
                             fixed[i].expected);
    }
    int64_t dilation = 1;
    if (!attribute_int(im, "channels_last", &last) || !attribute_int(im, "dilation", &dilation) ||
        !attribute_string(im, "activation", &how))
        return false;
    for (int k = 0; k < 4; k++) n.input[k] = input(im, k);
    if (node_wants(im, 1)) n.output[1] = im->node->output[1];
    for (int k = 0; k < 4 && last; k += 3) {
        const char *moved = inner_name(im, k ? "past" : "moved");
        if (!n.input[k]) continue;
        if (node_input(im, k)->ndims != 3) return node_fail(im, "input %d is not a line", k);
        if (!channels_moved(im, n.input[k], false, moved)) return false;
        n.input[k] = moved;
    }
    if (last) n.output[0] = inner_name(im, "first");
    if (last && n.output[1]) n.output[1] = inner_name(im, "state");
    inner_string(im, &n, "activation", how);
    inner_int(im, &n, "dilation", dilation);
    return inner_lower(im, &n, "CausalConvWithState") &&
           (!last ||
            (channels_moved(im, n.output[0], true, result(im)) &&
             (!n.output[1] || channels_moved(im, n.output[1], true, im->node->output[1]))));
}
#endif
