/* Normalisation: mean and variance over some dimensions, then a formula of each element. Sums of
 * 16-bit floats are kept in f32. */
#include "onnx/onnx.h"

#ifdef ISAMAP_WITH_ONNX
#include "onnx/onnx_int.h"

#include <inttypes.h>
#include <string.h>

/* x seen as rows × columns of a normalisation: which dimensions a mean is taken over. */
struct normal {
    struct tensor *x;
    bool over[MAX_DIMS];
    double epsilon;
    bool centred; /* the mean is taken away */
    bool behind;  /* epsilon is added to the root, not to the variance */
    const char *index[MAX_DIMS], *kept[MAX_DIMS];
    int64_t extent[MAX_DIMS];    /* of the statistics: 1 where a mean is taken */
    struct tensor *mean, *scale; /* of sum_type; scale: what follows is multiplied by */
};

static bool floats(struct import *im, const struct tensor *x) {
    return type_is_float(x->type) || node_fail(im, "the input is not of floats");
}

static struct tensor *statistic(struct import *im, struct normal *n, const char *base,
                                const char *name) {
    return tensor_temporary(im, base, name, sum_type(n->x->type), n->x->ndims, n->extent);
}

/* Statements that make n->mean and n->scale: sum, mean, sum of squares of differences, one by the
 * root of their mean. */
static bool normal_statistics(struct import *im, struct normal *n, const char *base) {
    struct tensor *x = n->x;
    double count = 1;
    axes_for(im, x->ndims, x->extent, n->index);
    for (int d = 0; d < x->ndims; d++) {
        n->kept[d] = n->over[d] ? "0" : n->index[d];
        n->extent[d] = n->over[d] ? 1 : x->extent[d];
        if (n->over[d]) count *= (double)x->extent[d];
    }
    struct tensor *sum = n->centred ? statistic(im, n, base, "sum") : NULL;
    if (n->centred && (!sum || !(n->mean = statistic(im, n, base, "mean")))) return false;
    struct tensor *square = statistic(im, n, base, "square");
    if (!square || !(n->scale = statistic(im, n, base, "inverse"))) return false;
    const char *e = sum_widen(im, x->type, tensor_element(im, x, n->index));
    const char *q = tensor_element(im, square, n->kept), *of = text_number(im, TYPE_F64, count);
    if (n->centred) {
        const char *s = tensor_element(im, sum, n->kept), *m = tensor_element(im, n->mean, n->kept);
        emit_statement(im, "%s = 0", s);
        emit_statement(im, "%s += %s", s, e);
        emit_statement(im, "%s = %s / %s", m, s, of);
        e = arena_printf(im->arena, "(%s - %s)", e, m);
    }
    emit_statement(im, "%s = 0", q);
    emit_statement(im, "%s += %s * %s", q, e, e);
    emit_statement(im, n->behind ? "%s = 1 / (sqrt(%s / %s) + %s)" : "%s = 1 / sqrt(%s / %s + %s)",
                   tensor_element(im, n->scale, n->kept), q, of,
                   text_number(im, TYPE_F64, n->epsilon));
    return true;
}

/* The normalised element, of sum_type. */
static const char *normal_element(struct import *im, struct normal *n) {
    const char *e = sum_widen(im, n->x->type, tensor_element(im, n->x, n->index));
    if (n->centred)
        e = arena_printf(im->arena, "(%s - %s)", e, tensor_element(im, n->mean, n->kept));
    return arena_printf(im->arena, "%s * %s", e, tensor_element(im, n->scale, n->kept));
}

/* y = normalised * scale + bias (either NULL), elements given as text of x's type. */
static void normal_result(struct import *im, struct normal *n, struct tensor *y, const char *scale,
                          const char *bias) {
    enum type t = n->x->type;
    const char *v = normal_element(im, n);
    if (scale) v = arena_printf(im->arena, "%s * %s", v, sum_widen(im, t, scale));
    if (bias) v = arena_printf(im->arena, "%s + %s", v, sum_widen(im, t, bias));
    emit_statement(im, "%s = %s", tensor_element(im, y, n->index), sum_narrow(im, t, v));
}

/* A statistic as the k-th result, where it is wanted. */
static bool statistic_result(struct import *im, struct normal *n, int k, struct tensor *from) {
    if (!node_wants(im, k)) return true;
    struct tensor *y = node_result_at(im, k, from->type, from->ndims, n->extent);
    if (!y) return false;
    emit_statement(im, "%s = %s", tensor_element(im, y, n->kept),
                   tensor_element(im, from, n->kept));
    return true;
}

static bool layer_normalization(struct import *im, bool centred) {
    struct normal n = {.x = node_input(im, 0), .epsilon = 1e-5, .centred = centred};
    struct tensor *scale = node_input(im, 1), *bias = node_input(im, 2);
    int64_t stash = 1;
    int axis;
    if (!floats(im, n.x) || !attribute_axis(im, "axis", -1, n.x->ndims, &axis) ||
        !attribute_float(im, "epsilon", &n.epsilon) || !attribute_int(im, "stash_type", &stash))
        return false;
    for (int d = axis; d < n.x->ndims; d++) n.over[d] = true;
    struct tensor *both[3] = {n.x, scale, bias};
    int64_t extent[MAX_DIMS];
    int ndims;
    if (!shape_broadcast(im, both, bias ? 3 : 2, &ndims, extent)) return false;
    if (ndims != n.x->ndims || memcmp(extent, n.x->extent, (size_t)ndims * sizeof *extent))
        return node_fail(im, "scale or bias is larger than the input");
    if (scale->type != n.x->type || (bias && bias->type != n.x->type))
        return node_fail(im, "scale or bias is of another type than the input");
    struct tensor *y = node_result(im, n.x->type, n.x->ndims, n.x->extent);
    if (!y || !normal_statistics(im, &n, y->buffer)) return false;
    normal_result(im, &n, y, tensor_element_broadcast(im, scale, ndims, extent, n.index),
                  bias ? tensor_element_broadcast(im, bias, ndims, extent, n.index) : NULL);
    return !centred ||
           (statistic_result(im, &n, 1, n.mean) && statistic_result(im, &n, 2, n.scale));
}

bool op_layer_normalization(struct import *im) {
    return layer_normalization(im, true);
}

bool op_rms_normalization(struct import *im) {
    return layer_normalization(im, false);
}

/* Over the space of each channel. */
bool op_instance_normalization(struct import *im) {
    struct normal n = {.x = node_input(im, 0), .epsilon = 1e-5, .centred = true};
    struct tensor *p[2] = {node_input(im, 1), node_input(im, 2)};
    if (!floats(im, n.x) || !attribute_float(im, "epsilon", &n.epsilon)) return false;
    if (n.x->ndims < 3) return node_fail(im, "the input has no space behind its channels");
    for (int k = 0; k < 2; k++)
        if (p[k]->ndims != 1 || p[k]->extent[0] != n.x->extent[1] || p[k]->type != n.x->type)
            return node_fail(im, "input %d is not a vector of %" PRId64 " elements of %s", k + 1,
                             n.x->extent[1], type_name(n.x->type));
    for (int d = 2; d < n.x->ndims; d++) n.over[d] = true;
    struct tensor *y = node_result(im, n.x->type, n.x->ndims, n.x->extent);
    if (!y || !normal_statistics(im, &n, y->buffer)) return false;
    normal_result(im, &n, y, tensor_element(im, p[0], &n.index[1]),
                  tensor_element(im, p[1], &n.index[1]));
    return true;
}

/* Over groups of channels and their space: the input seen with its channels in two dimensions. */
bool op_group_normalization(struct import *im) {
    struct tensor *x = node_input(im, 0), seen = *x, out,
                  *p[2] = {node_input(im, 1), node_input(im, 2)};
    struct normal n = {.x = &seen, .epsilon = 1e-5, .centred = true};
    int64_t groups = 0, stash = 1;
    if (!floats(im, x) || !attribute_int(im, "num_groups", &groups) ||
        !attribute_float(im, "epsilon", &n.epsilon) || !attribute_int(im, "stash_type", &stash))
        return false;
    if (x->ndims < 3 || x->ndims >= MAX_DIMS || groups < 1 || x->extent[1] % groups)
        return node_fail(im, "%" PRId64 " groups do not divide the channels of %s", groups,
                         shape_text(im->arena, x->ndims, x->extent));
    int64_t each = x->extent[1] / groups;
    bool by_channel = im->opset >= 21;
    for (int k = 0; k < 2; k++)
        if (p[k]->ndims != 1 || p[k]->extent[0] != (by_channel ? x->extent[1] : groups) ||
            p[k]->type != x->type)
            return node_fail(im, "input %d is not a vector of one element for each %s", k + 1,
                             by_channel ? "channel" : "group");
    struct tensor *y = node_result(im, x->type, x->ndims, x->extent);
    struct tensor *copy = NULL;
    seen.ndims = x->ndims + 1;
    seen.extent[1] = groups;
    seen.extent[2] = each;
    for (int d = 2; d < x->ndims; d++) seen.extent[d + 1] = x->extent[d];
    if (y) copy = tensor_temporary(im, y->buffer, "groups", x->type, seen.ndims, seen.extent);
    if (!copy || !emit_copy(im, copy, x)) return false;
    n.x = copy;
    for (int d = 2; d < seen.ndims; d++) n.over[d] = true;
    axes_release(im);
    if (!normal_statistics(im, &n, y->buffer)) return false;
    const char *to[MAX_DIMS], *channel = affine_text(im, 2, (int64_t[]){each, 1}, &n.index[1], 0);
    to[0] = n.index[0];
    to[1] = channel;
    for (int d = 2; d < x->ndims; d++) to[d] = n.index[d + 1];
    out = *y;
    const char **at = by_channel ? &channel : &n.index[1];
    const char *v = arena_printf(im->arena, "%s * %s + %s", normal_element(im, &n),
                                 sum_widen(im, x->type, tensor_element(im, p[0], at)),
                                 sum_widen(im, x->type, tensor_element(im, p[1], at)));
    emit_statement(im, "%s = %s", tensor_element(im, &out, to), sum_narrow(im, x->type, v));
    return true;
}

bool op_mean_variance_normalization(struct import *im) {
    struct normal n = {.x = node_input(im, 0), .epsilon = 1e-9, .centred = true, .behind = true};
    const int64_t *axes;
    int count, d;
    static const int64_t preset[3] = {0, 2, 3};
    if (!floats(im, n.x) || !attribute_ints(im, "axes", &axes, &count)) return false;
    if (!axes) axes = preset, count = 3;
    for (int k = 0; k < count; k++) {
        if (!axis_normal(im, axes[k], n.x->ndims, &d)) return false;
        n.over[d] = true;
    }
    struct tensor *y = node_result(im, n.x->type, n.x->ndims, n.x->extent);
    if (!y || !normal_statistics(im, &n, y->buffer)) return false;
    normal_result(im, &n, y, NULL, NULL);
    return true;
}

/* Over a window of channels: x / (bias + alpha/size · Σ x²)^beta. */
bool op_lrn(struct import *im) {
    struct tensor *x = node_input(im, 0);
    double alpha = 1e-4, beta = 0.75, bias = 1;
    int64_t size = 0;
    const char *index[MAX_DIMS], *from[MAX_DIMS];
    if (!floats(im, x) || !attribute_float(im, "alpha", &alpha) ||
        !attribute_float(im, "beta", &beta) || !attribute_float(im, "bias", &bias) ||
        !attribute_int(im, "size", &size))
        return false;
    if (x->ndims < 2 || size < 1 || size > 1 << 20)
        return node_fail(im, "the input has no channels, or 'size' is %" PRId64, size);
    struct tensor *y = node_result(im, x->type, x->ndims, x->extent);
    struct tensor *sum =
        y ? tensor_temporary(im, y->buffer, "square", sum_type(x->type), x->ndims, x->extent)
          : NULL;
    if (!sum) return false;
    axes_for(im, x->ndims, x->extent, index);
    memcpy(from, index, sizeof from);
    const char *axis[2] = {index[1], axis_for(im, "r", size)};
    from[1] = affine_text(im, 2, (int64_t[]){1, 1}, axis, -((size - 1) / 2));
    const char *e = sum_widen(im, x->type, tensor_element_else(im, x, from, "0"));
    const char *s = tensor_element(im, sum, index);
    emit_statement(im, "%s = 0", s);
    emit_statement(im, "%s += %s * %s", s, e, e);
    const char *v = arena_printf(
        im->arena, "%s / pow(%s + %s * %s, %s)",
        sum_widen(im, x->type, tensor_element(im, x, index)), text_number(im, TYPE_F64, bias),
        text_number(im, TYPE_F64, alpha / (double)size), s, text_number(im, TYPE_F64, beta));
    emit_statement(im, "%s = %s", tensor_element(im, y, index), sum_narrow(im, x->type, v));
    return true;
}

/* x over the sum of absolute values, or over the root of the sum of squares, along an axis. */
bool op_lp_normalization(struct import *im) {
    struct tensor *x = node_input(im, 0);
    const char *index[MAX_DIMS], *kept[MAX_DIMS];
    int64_t p = 2, extent[MAX_DIMS];
    int axis;
    if (!floats(im, x) || !attribute_int(im, "p", &p) ||
        !attribute_axis(im, "axis", -1, x->ndims, &axis))
        return false;
    if (p != 1 && p != 2) return node_fail(im, "'p' is %" PRId64 ", expected 1 or 2", p);
    axes_for(im, x->ndims, x->extent, index);
    for (int d = 0; d < x->ndims; d++) {
        kept[d] = d == axis ? "0" : index[d];
        extent[d] = d == axis ? 1 : x->extent[d];
    }
    struct tensor *y = node_result(im, x->type, x->ndims, x->extent);
    struct tensor *sum =
        y ? tensor_temporary(im, y->buffer, "norm", sum_type(x->type), x->ndims, extent) : NULL;
    if (!sum) return false;
    const char *s = tensor_element(im, sum, kept),
               *e = sum_widen(im, x->type, tensor_element(im, x, index));
    emit_statement(im, "%s = 0", s);
    emit_statement(im, p == 1 ? "%s += abs(%s)" : "%s += %s * %s", s, e, e);
    const char *v = arena_printf(
        im->arena, p == 1 ? "select(%s == 0, 0, %s / %s)" : "select(%s == 0, 0, %s / sqrt(%s))", s,
        e, s);
    emit_statement(im, "%s = %s", tensor_element(im, y, index), sum_narrow(im, x->type, v));
    return true;
}
#endif
