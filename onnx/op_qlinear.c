/* Operators of the domain com.microsoft on quantised tensors, which ONNX Runtime's quantiser
 * writes: the operator on the numbers that the integers stand for, rounded to the steps of the
 * result. */
#include "onnx/onnx.h"

#ifdef ISAMAP_WITH_ONNX
#include "onnx/onnx_int.h"
#include "onnx/window.h"

#include <inttypes.h>
#include <string.h>

/* A tensor with a scale and a zero point, which are inputs `at` + 1 and `at` + 2. */
struct quantised {
    struct tensor *x, *scale, *zero;
    const char *scale_text, *zero_text; /* zero_text NULL: 0 */
};

static bool quantised_scale(struct import *im, int scale, int zero, const struct tensor *like,
                            struct quantised *q) {
    q->scale = node_input(im, scale);
    q->zero = node_input(im, zero);
    if (!q->scale || q->scale->elements != 1 || q->scale->type != TYPE_F32)
        return node_fail(im, "input %d, a scale, is not one element of f32", scale);
    q->scale_text = tensor_scalar(im, q->scale);
    return quantised_zero(im, q->zero, like, 1, NULL, &q->zero_text);
}

static bool quantised_read(struct import *im, int at, struct quantised *q) {
    q->x = node_input(im, at);
    if (!q->x || (q->x->type != TYPE_I8 && q->x->type != TYPE_U8))
        return node_fail(im, "input %d is not of 8-bit integers", at);
    return quantised_scale(im, at + 1, at + 2, q->x, q);
}

/* Text, in f32: the steps of x above zero. */
static const char *steps(struct import *im, const struct quantised *q, const char *element) {
    return arena_printf(im->arena, "f32(%s)", quantised_element(im, element, q->zero_text));
}

/* Text of a / (b * count), a number where both are known. */
static const char *mean_ratio(struct import *im, const struct quantised *a,
                              const struct quantised *b, int64_t count) {
    if (a->scale->data && b->scale->data)
        return text_number(im, TYPE_F32,
                           (float)tensor_float(a->scale, 0) /
                               ((float)tensor_float(b->scale, 0) * (float)count));
    return arena_printf(im->arena, "(%s / (%s * %" PRId64 "))", a->scale_text, b->scale_text,
                        count);
}

static const char *ratio(struct import *im, const struct quantised *a, const struct quantised *b) {
    return mean_ratio(im, a, b, 1);
}

/* Instructions on bytes have all zero points or none. */
static void zeros_of_all(struct quantised **q, int n) {
    bool any = false;
    for (int i = 0; i < n; i++) any |= q[i]->zero_text != NULL;
    for (int i = 0; any && i < n; i++)
        if (!q[i]->zero_text) q[i]->zero_text = "0";
}

/* y[index] = value, in steps of the result, rounded; `z` its zero point */
static bool emit_rounded(struct import *im, struct tensor *y, const char *const *index,
                         const char *value, const struct quantised *z) {
    value = arena_printf(im->arena, "round(%s)", value);
    if (z->zero_text)
        value = arena_printf(im->arena, z->zero && !z->zero->data ? "%s + f32(%s)" : "%s + %s",
                             value, z->zero_text);
    const char *least, *most;
    if (!quantised_limits(im, y->type, &least, &most)) return false;
    emit_statement(im, "%s = %s(clip(%s, %s, %s))", tensor_element(im, y, index),
                   type_name(y->type), value, least, most);
    return true;
}

/* A product with one known number is a change of the scale: then the text of the factor, else NULL.
 */
static const char *known_factor(struct import *im, const struct quantised *a,
                                const struct quantised *b, const struct quantised *z) {
    if (b->x->elements != 1 || !b->x->data || !a->scale->data || !b->scale->data ||
        !z->scale->data || (b->zero && !b->zero->data))
        return NULL;
    int64_t number = tensor_int(b->x, 0) - (b->zero ? tensor_int(b->zero, 0) : 0);
    return text_number(im, TYPE_F32,
                       (float)((double)number * tensor_float(a->scale, 0) *
                               tensor_float(b->scale, 0) / tensor_float(z->scale, 0)));
}

static bool two_operands(struct import *im, bool product) {
    struct quantised a, b, z;
    int64_t extent[MAX_DIMS];
    const char *index[MAX_DIMS];
    int ndims;
    if (!quantised_read(im, 0, &a) || !quantised_read(im, 3, &b) ||
        !quantised_scale(im, 6, 7, a.x, &z))
        return false;
    if (a.x->type != b.x->type) return node_fail(im, "the inputs are not of one type");
    zeros_of_all((struct quantised *[]){&a, &b, &z}, 3);
    if (!shape_broadcast(im, (struct tensor *[]){a.x, b.x}, 2, &ndims, extent)) return false;
    struct tensor *y = node_result(im, a.x->type, ndims, extent);
    if (!y) return false;
    axes_for(im, ndims, extent, index);
    for (int k = 0; product && k < 2; k++) {
        const struct quantised *x = k ? &b : &a;
        const char *factor = known_factor(im, x, k ? &a : &b, &z);
        if (!factor) continue;
        const char *e = steps(im, x, tensor_element_broadcast(im, x->x, ndims, extent, index));
        return emit_rounded(im, y, index, arena_printf(im->arena, "%s * %s", e, factor), &z);
    }
    const char *u = steps(im, &a, tensor_element_broadcast(im, a.x, ndims, extent, index)),
               *v = steps(im, &b, tensor_element_broadcast(im, b.x, ndims, extent, index));
    return emit_rounded(im, y, index,
                        product ? arena_printf(im->arena, "%s * %s * (%s * %s / %s)", u, v,
                                               a.scale_text, b.scale_text, z.scale_text)
                                : arena_printf(im->arena, "%s * %s + %s * %s", u, ratio(im, &a, &z),
                                               v, ratio(im, &b, &z)),
                        &z);
}

bool op_qlinear_add(struct import *im) {
    return two_operands(im, false);
}

bool op_qlinear_mul(struct import *im) {
    return two_operands(im, true);
}

/* One of two tensors, in the steps of the result. */
bool op_qlinear_where(struct import *im) {
    struct quantised a, b, z;
    struct tensor *c = node_input(im, 0);
    int64_t extent[MAX_DIMS];
    const char *index[MAX_DIMS];
    int ndims;
    if (!quantised_read(im, 1, &a) || !quantised_read(im, 4, &b) ||
        !quantised_scale(im, 7, 8, a.x, &z))
        return false;
    if (a.x->type != b.x->type || c->type != TYPE_BOOL)
        return node_fail(im, "the inputs are not of one type, or the condition is not bool");
    if (!shape_broadcast(im, (struct tensor *[]){c, a.x, b.x}, 3, &ndims, extent)) return false;
    struct tensor *y = node_result(im, a.x->type, ndims, extent);
    if (!y) return false;
    axes_for(im, ndims, extent, index);
    const char *u = steps(im, &a, tensor_element_broadcast(im, a.x, ndims, extent, index)),
               *v = steps(im, &b, tensor_element_broadcast(im, b.x, ndims, extent, index));
    return emit_rounded(im, y, index,
                        arena_printf(im->arena, "select(%s, %s * %s, %s * %s)",
                                     tensor_element_broadcast(im, c, ndims, extent, index), u,
                                     ratio(im, &a, &z), v, ratio(im, &b, &z)),
                        &z);
}

/* A formula of the number that each element stands for: $ in the text. */
static bool of_number(struct import *im, const char *text) {
    struct quantised q, z;
    const char *index[MAX_DIMS];
    struct text t = {0};
    if (!quantised_read(im, 0, &q) || !quantised_scale(im, 3, 4, q.x, &z)) return false;
    struct tensor *y = node_result(im, q.x->type, q.x->ndims, q.x->extent);
    if (!y) return false;
    axes_for(im, y->ndims, y->extent, index);
    const char *x = arena_printf(im->arena, "(%s * %s)",
                                 steps(im, &q, tensor_element(im, q.x, index)), q.scale_text);
    for (const char *c = text; *c; c++)
        text_append(&t, *c == '$' ? x : c, *c == '$' ? strlen(x) : 1);
    bool ok =
        emit_rounded(im, y, index, arena_printf(im->arena, "%s / %s", t.at, z.scale_text), &z);
    text_free(&t);
    return ok;
}

bool op_qlinear_sigmoid(struct import *im) {
    return of_number(im, "sigmoid($)");
}

bool op_qlinear_leaky_relu(struct import *im) {
    double alpha = 0.01;
    return attribute_float(im, "alpha", &alpha) &&
           of_number(im, arena_printf(im->arena, "select($ < 0, %s * $, $)",
                                      text_number(im, TYPE_F32, alpha)));
}

/* Inputs from 2 on in threes, each brought to the steps of the result. */
bool op_qlinear_concat(struct import *im) {
    enum { MOST = 64 };
    struct quantised q[MOST], z;
    int64_t extent[MAX_DIMS], at = 0;
    const char *index[MAX_DIMS], *to[MAX_DIMS];
    int axis, n = ((int)im->node->n_input - 2) / 3;
    if (im->node->n_input % 3 != 2 || n > MOST)
        return node_fail(im, "it has %zu inputs, expected 2 and 3 for each of at most %d tensors",
                         im->node->n_input, MOST);
    for (int k = 0; k < n; k++) {
        if (!quantised_read(im, 2 + 3 * k, &q[k])) return false;
        const struct tensor *t = q[k].x, *x = q[0].x;
        if (k == 0) {
            if (!attribute_axis(im, "axis", 0, x->ndims, &axis)) return false;
            memcpy(extent, x->extent, sizeof extent);
            extent[axis] = 0;
        }
        bool fits = t->ndims == x->ndims && t->type == x->type;
        for (int d = 0; fits && d < x->ndims; d++) fits = d == axis || t->extent[d] == x->extent[d];
        if (!fits) return node_fail(im, "input %d does not fit along axis %d", 2 + 3 * k, axis);
        if (__builtin_add_overflow(extent[axis], t->extent[axis], &extent[axis]))
            return node_fail(im, "its result is too large");
    }
    if (!quantised_scale(im, 0, 1, q[0].x, &z)) return false;
    struct tensor *y = node_result(im, q[0].x->type, q[0].x->ndims, extent);
    if (!y) return false;
    for (int k = 0; k < n; k++) {
        struct tensor *t = q[k].x;
        axes_release(im);
        axes_for(im, t->ndims, t->extent, index);
        memcpy(to, index, sizeof to);
        to[axis] = affine_text(im, 1, (int64_t[]){1}, &index[axis], at);
        at += t->extent[axis];
        const char *e = tensor_element(im, t, index), *same = ratio(im, &q[k], &z);
        bool equal = strcmp(same, "1") == 0 &&
                     (z.zero_text ? q[k].zero_text && !strcmp(z.zero_text, q[k].zero_text)
                                  : !q[k].zero_text);
        struct quantised own = z;
        zeros_of_all((struct quantised *[]){&q[k], &own}, 2);
        if (equal)
            emit_statement(im, "%s = %s", tensor_element(im, y, to), e);
        else if (!emit_rounded(im, y, to,
                               arena_printf(im->arena, "%s * %s", steps(im, &q[k], e), same), &own))
            return false;
    }
    return true;
}

/* The sum of the steps is exact; the mean of them is taken with the two scales. */
bool op_qlinear_global_average_pool(struct import *im) {
    struct quantised q, z;
    int64_t last = 0, extent[MAX_DIMS], volume = 1;
    const char *index[MAX_DIMS], *to[MAX_DIMS];
    if (!quantised_read(im, 0, &q) || !quantised_scale(im, 3, 4, q.x, &z) ||
        !attribute_int(im, "channels_last", &last))
        return false;
    struct tensor *x = q.x;
    if (x->ndims < 3)
        return node_fail(im, "an input of %d dimensions has nothing to pool", x->ndims);
    int channel = last ? x->ndims - 1 : 1;
    axes_for(im, x->ndims, x->extent, index);
    for (int d = 0; d < x->ndims; d++) {
        bool kept = d == 0 || d == channel;
        extent[d] = kept ? x->extent[d] : 1;
        to[d] = kept ? index[d] : "0";
        volume *= kept ? 1 : x->extent[d];
    }
    struct tensor *y = node_result(im, x->type, x->ndims, extent);
    struct tensor *sum =
        y ? tensor_temporary(im, y->buffer, "sum", TYPE_I32, y->ndims, extent) : NULL;
    if (!sum) return false;
    const char *s = tensor_element(im, sum, to);
    emit_statement(im, "%s = 0", s);
    emit_statement(im, "%s += %s", s,
                   quantised_element(im, tensor_element(im, x, index), q.zero_text));
    return emit_rounded(
        im, y, to, arena_printf(im->arena, "f32(%s) * %s", s, mean_ratio(im, &q, &z, volume)), &z);
}

bool op_qlinear_average_pool(struct import *im) {
    struct quantised q, z;
    struct window w;
    int64_t last = 0, include = 0, extent[MAX_DIMS];
    const char *index[2 + SPATIAL];
    if (!quantised_read(im, 0, &q) || !quantised_scale(im, 3, 4, q.x, &z) ||
        !attribute_int(im, "channels_last", &last) ||
        !attribute_int(im, "count_include_pad", &include) || !window_read(im, q.x, NULL, &w))
        return false;
    if (last) return node_fail(im, "its channels are the last dimension");
    if (q.zero_text && !q.zero->data) return node_fail(im, "its zero point is not a constant");
    memcpy(extent, q.x->extent, 2 * sizeof *extent);
    memcpy(extent + 2, w.out, (size_t)w.n * sizeof *extent);
    struct tensor *y = node_result(im, q.x->type, q.x->ndims, extent);
    struct tensor *sum =
        y ? tensor_temporary(im, y->buffer, "sum", TYPE_I32, y->ndims, extent) : NULL;
    if (!sum) return false;
    axes_for(im, 2, extent, index);
    window_axes(im, &w);
    memcpy(index + 2, w.out_axis, (size_t)w.n * sizeof *index);
    const char *count = window_divisor(im, &w, include != 0, y->buffer, TYPE_F32);
    if (!count) return false;
    const char *s = tensor_element(im, sum, index),
               *x =
                   window_element(im, &w, q.x, index[0], index[1], q.zero_text ? q.zero_text : "0");
    emit_statement(im, "%s = 0", s);
    emit_statement(im, "%s += %s", s, quantised_element(im, x, q.zero_text));
    return emit_rounded(im, y, index,
                        arena_printf(im->arena, "f32(%s) * %s / %s", s, ratio(im, &q, &z), count),
                        &z);
}

/* The zero point cancels: exp((x − greatest) · scale) over its sum. */
bool op_qlinear_softmax(struct import *im) {
    struct quantised q, z;
    int64_t extent[MAX_DIMS], opset = im->opset;
    const char *index[MAX_DIMS], *kept[MAX_DIMS];
    int axis;
    if (!quantised_read(im, 0, &q) || !quantised_scale(im, 3, 4, q.x, &z) ||
        !attribute_int(im, "opset", &opset) ||
        !attribute_axis(im, "axis", opset < 13 ? 1 : -1, q.x->ndims, &axis))
        return false;
    struct tensor *x = q.x;
    memcpy(extent, x->extent, sizeof extent);
    axes_for(im, x->ndims, x->extent, index);
    for (int d = 0; d < x->ndims; d++) { /* before opset 13 all from the axis on */
        bool over = d == axis || (opset < 13 && d > axis);
        extent[d] = over ? 1 : x->extent[d];
        kept[d] = over ? "0" : index[d];
    }
    struct tensor *y = node_result(im, x->type, x->ndims, x->extent);
    struct tensor *most =
        y ? tensor_temporary(im, y->buffer, "max", TYPE_I32, x->ndims, extent) : NULL;
    struct tensor *sum =
        most ? tensor_temporary(im, y->buffer, "sum", TYPE_F32, x->ndims, extent) : NULL;
    if (!sum) return false;
    const char *e = arena_printf(im->arena, "i32(%s)", tensor_element(im, x, index)),
               *m = tensor_element(im, most, kept), *s = tensor_element(im, sum, kept);
    const char *power = arena_printf(im->arena, "exp(f32(%s - %s) * %s)", e, m, q.scale_text);
    emit_statement(im, "%s = %s", m, type_lowest(TYPE_I32));
    emit_statement(im, "%s max= %s", m, e);
    emit_statement(im, "%s = 0", s);
    emit_statement(im, "%s += %s", s, power);
    return emit_rounded(im, y, index,
                        arena_printf(im->arena, "%s / %s / %s", power, s, z.scale_text), &z);
}
#endif
