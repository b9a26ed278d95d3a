/* Of ai.onnx.ml, on numbers: scalers, normalisers, linear models. They are lowered as the operators
 * that they stand for. */
#include "onnx/op_ml.h"

#ifdef ISAMAP_WITH_ONNX
#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- attributes and inputs ---- */

bool ml_floats(struct import *im, const char *name, const float **out, int *n) {
    const Onnx__AttributeProto *a = attribute_find(im, name);
    *out = NULL;
    *n = 0;
    if (!a) return true;
    if (a->n_ints || a->n_strings || a->has_i || a->has_f || a->has_s || a->t ||
        a->n_floats > MAX_COUNT)
        return node_fail(im, "the attribute '%s' is not a list of numbers", name);
    *n = (int)a->n_floats;
    *out = a->floats;
    return true;
}

bool ml_tensor(struct import *im, const char *name, struct tensor *out, int *n) {
    const Onnx__AttributeProto *a = attribute_find(im, name);
    *n = 0;
    if (!a) return true;
    if (!a->t) return node_fail(im, "the attribute '%s' is not a tensor", name);
    if (!tensor_from_proto(im->arena, im->path, name, a->t, out, im->diags)) return false;
    if (out->ndims > 1 || !out->data || out->elements > MAX_COUNT)
        return node_fail(im, "the attribute '%s' is not a list", name);
    *n = (int)out->elements;
    return true;
}

bool ml_numbers(struct import *im, const char *name, const double **out, int *n) {
    const float *floats;
    struct tensor list;
    if (!ml_floats(im, name, &floats, n)) return false;
    bool wide = !floats;
    if (wide && !ml_tensor(im, arena_printf(im->arena, "%s_as_tensor", name), &list, n))
        return false;
    double *numbers = arena_array(im->arena, (size_t)*n + 1, sizeof *numbers);
    for (int i = 0; i < *n; i++) numbers[i] = wide ? tensor_float(&list, i) : (double)floats[i];
    *out = numbers;
    return true;
}

struct tensor *ml_features(struct import *im, bool doubles) {
    struct tensor *x = node_input(im, 0);
    if ((x->type == TYPE_F64 && !doubles) || x->type == TYPE_BOOL || x->ndims < 1 || x->ndims > 2) {
        node_fail(im, "the input is %s of %s, expected one row or rows of f32 or integers",
                  shape_text(im->arena, x->ndims, x->extent), type_name(x->type));
        return NULL;
    }
    if (x->type == TYPE_F32 || x->type == TYPE_F64) return x;
    struct inner n = {.input = {im->node->input[0]}, .ninputs = 1, .output = {inner_name(im, "x")}};
    inner_int(im, &n, "to", ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT);
    return inner_lower(im, &n, "Cast") ? name_find(&im->value, n.output[0]) : NULL;
}

const char *ml_constant(struct import *im, const char *suffix, enum type type, int ndims,
                        const int64_t *extent, const void *data) {
    size_t n = type_size(type);
    for (int d = 0; d < ndims; d++) n *= (size_t)extent[d];
    struct tensor *t = tensor_constant(im, im->node->output[0], suffix, type, ndims, extent,
                                       arena_copy(im->arena, data, n));
    return t ? inner_value(im, t, suffix) : NULL;
}

/* One number for all features, or one for each; NULL after reporting. */
static const char *for_features(struct import *im, const struct tensor *x, const char *name) {
    const float *list;
    int n;
    int64_t features = x->extent[x->ndims - 1];
    if (!ml_floats(im, name, &list, &n)) return NULL;
    if (n != 1 && n != features) {
        node_fail(im, "'%s' has %d entries for %" PRId64 " features", name, n, features);
        return NULL;
    }
    int64_t extent = n;
    return ml_constant(im, name, TYPE_F32, 1, &extent, list);
}

/* ---- what becomes of scores ---- */

bool ml_transform(struct import *im, const char *scores, const char *to) {
    const char *how = "NONE";
    if (!attribute_string(im, "post_transform", &how)) return false;
    struct inner n = {.input = {scores}, .ninputs = 1, .output = {to}};
    if (strcmp(how, "NONE") == 0) return inner_lower(im, &n, "Identity");
    if (strcmp(how, "LOGISTIC") == 0) return inner_lower(im, &n, "Sigmoid");
    if (strcmp(how, "SOFTMAX") == 0) {
        inner_int(im, &n, "axis", -1);
        return inner_lower(im, &n, "Softmax");
    }
    return node_fail(im, "'post_transform' is '%s', expected NONE, LOGISTIC or SOFTMAX",
                     name_shown(im->arena, how));
}

bool ml_labels(struct import *im, const char *name, int classes, const int64_t **labels) {
    int n;
    if (!attribute_ints(im, name, labels, &n)) return false;
    if (n == 0) return node_fail(im, "it has no labels that are integers ('%s')", name);
    if (classes >= 0 && n != classes)
        return node_fail(im, "'%s' has %d entries for %d classes", name, n, classes);
    return true;
}

bool ml_label_of(struct import *im, const char *index, const char *labels_name) {
    const int64_t *labels;
    int n;
    if (!attribute_ints(im, labels_name, &labels, &n)) return false;
    int64_t extent = n;
    const char *table = ml_constant(im, "labels", TYPE_I64, 1, &extent, labels);
    return table && inner_node(im, "Gather", table, index, im->node->output[0]);
}

bool ml_classify(struct import *im, const char *scores, const char *labels_name) {
    struct inner n = {.input = {scores}, .ninputs = 1, .output = {inner_name(im, "best")}};
    inner_int(im, &n, "axis", 1);
    inner_int(im, &n, "keepdims", 0);
    return inner_lower(im, &n, "ArgMax") && ml_label_of(im, n.output[0], labels_name);
}

const char *ml_probabilities(struct import *im) {
    return node_wants(im, 1) ? im->node->output[1] : inner_name(im, "scores");
}

/* ---- operators ---- */

/* (x - offset) * scale */
bool op_ml_scaler(struct import *im) {
    struct tensor *x = ml_features(im, false);
    if (!x) return false;
    const char *offset = for_features(im, x, "offset"),
               *scale = offset ? for_features(im, x, "scale") : NULL,
               *moved = inner_name(im, "moved");
    return scale && inner_node(im, "Sub", x->name, offset, moved) &&
           inner_node(im, "Mul", moved, scale, im->node->output[0]);
}

/* 1 where x is above the threshold, else 0 */
bool op_ml_binarizer(struct import *im) {
    double threshold = 0;
    const char *index[MAX_DIMS];
    struct tensor *x = node_input(im, 0);
    if (!attribute_float(im, "threshold", &threshold)) return false;
    if (x->type == TYPE_BOOL) return node_fail(im, "the input is bool, expected numbers");
    bool wide = x->type == TYPE_F64;
    struct tensor *y = node_result(im, wide ? TYPE_F64 : TYPE_F32, x->ndims, x->extent);
    if (!y) return false;
    axes_for(im, x->ndims, x->extent, index);
    const char *e = tensor_element(im, x, index);
    emit_statement(im, "%s = select(%s(%s) > %s, 1, 0)", tensor_element(im, y, index),
                   type_name(y->type), e, text_number(im, y->type, threshold));
    return true;
}

/* Rows divided by their largest element, the sum of magnitudes, or the root of the sum of squares;
 * rows where that is 0 stay. */
bool op_ml_normalizer(struct import *im) {
    const char *norm = "MAX", *index[MAX_DIMS], *kept[MAX_DIMS];
    int64_t extent[MAX_DIMS];
    struct tensor *x = ml_features(im, false);
    if (!x || !attribute_string(im, "norm", &norm)) return false;
    bool most = strcmp(norm, "MAX") == 0, squares = strcmp(norm, "L2") == 0;
    if (!most && !squares && strcmp(norm, "L1") != 0)
        return node_fail(im, "'norm' is '%s', expected MAX, L1 or L2", name_shown(im->arena, norm));
    memcpy(extent, x->extent, sizeof extent);
    extent[x->ndims - 1] = 1;
    struct tensor *y = node_result(im, TYPE_F32, x->ndims, x->extent);
    struct tensor *size =
        y ? tensor_temporary(im, y->buffer, "size", TYPE_F32, x->ndims, extent) : NULL;
    if (!size) return false;
    axes_for(im, x->ndims, x->extent, index);
    memcpy(kept, index, sizeof kept);
    kept[x->ndims - 1] = "0";
    const char *s = tensor_element(im, size, kept), *e = tensor_element(im, x, index);
    emit_statement(im, "%s = %s", s, most ? "-inf" : "0");
    if (most) emit_statement(im, "%s max= %s", s, e);
    if (squares) emit_statement(im, "%s += %s * %s", s, e, e);
    if (!most && !squares) emit_statement(im, "%s += abs(%s)", s, e);
    emit_statement(im, "%s = %s / select(%s == 0, 1, %s)", tensor_element(im, y, index), e, s,
                   squares ? arena_printf(im->arena, "sqrt(%s)", s) : s);
    return true;
}

/* x · coefᵀ + intercepts, `rows` rows of coefficients, to the value of that name */
static bool linear(struct import *im, const char *coefficients, int64_t rows, const char *to) {
    const float *coef, *start;
    int n, starts;
    struct tensor *x = ml_features(im, false);
    if (!x || !ml_floats(im, coefficients, &coef, &n) ||
        !ml_floats(im, "intercepts", &start, &starts))
        return false;
    if (x->ndims != 2) return node_fail(im, "the input has one dimension, expected rows");
    if (rows < 1 || n / rows != x->extent[1] || n % rows || (starts && starts != rows))
        return node_fail(
            im, "%d coefficients and %d intercepts for %" PRId64 " rows of %" PRId64 " features", n,
            starts, rows, x->extent[1]);
    int64_t extent[2] = {rows, x->extent[1]};
    struct inner g = {.input = {x->name}, .ninputs = starts ? 3 : 2, .output = {to}};
    g.input[1] = ml_constant(im, "coef", TYPE_F32, 2, extent, coef);
    if (starts) g.input[2] = ml_constant(im, "start", TYPE_F32, 1, extent, start);
    inner_int(im, &g, "transB", 1);
    return g.input[1] && (!starts || g.input[2]) && inner_lower(im, &g, "Gemm");
}

bool op_ml_linear_regressor(struct import *im) {
    int64_t targets = 1;
    const char *scores = inner_name(im, "linear");
    return attribute_int(im, "targets", &targets) && linear(im, "coefficients", targets, scores) &&
           ml_transform(im, scores, im->node->output[0]);
}

bool op_ml_linear_classifier(struct import *im) {
    const char *scores = inner_name(im, "linear");
    const int64_t *labels;
    int64_t several = 0;
    int n;
    if (!attribute_int(im, "multi_class", &several) ||
        !attribute_ints(im, "classlabels_ints", &labels, &n) ||
        !ml_labels(im, "classlabels_ints", -1, &labels))
        return false;
    return linear(im, "coefficients", n, scores) && ml_classify(im, scores, "classlabels_ints") &&
           ml_transform(im, scores, ml_probabilities(im));
}
#endif
