/* Scales and zero points. */
#include "onnx/onnx.h"

#ifdef ISAMAP_WITH_ONNX
#include "onnx/onnx_int.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static bool all_zero(const struct tensor *t) {
    for (int64_t i = 0; i < t->elements; i++)
        if (tensor_int(t, i) != 0) return false;
    return true;
}

bool quantised_zero(struct import *im, struct tensor *zp, const struct tensor *like, int64_t vector,
                    const char *index, const char **text) {
    *text = NULL;
    if (!zp) return true;
    if (zp->type != like->type)
        return node_fail(im, "a zero point is %s, but what it belongs to %s", type_name(zp->type),
                         type_name(like->type));
    if (zp->elements != 1 && (zp->ndims != 1 || zp->elements != vector))
        return node_fail(im, "a zero point of shape %s fits nothing here: expected one element%s",
                         shape_text(im->arena, zp->ndims, zp->extent),
                         vector > 1 ? " or one for each channel" : "");
    if (zp->data && all_zero(zp)) return true;
    if (zp->elements == 1 && zp->data)
        *text = tensor_scalar(im, zp);
    else if (zp->elements == 1)
        *text = arena_printf(im->arena, "i32(%s)", tensor_scalar(im, zp));
    else
        *text = arena_printf(im->arena, "i32(%s)", tensor_element(im, zp, &index));
    return true;
}

const char *quantised_element(struct import *im, const char *element_text, const char *zp) {
    if (!zp) return arena_printf(im->arena, "i32(%s)", element_text);
    return arena_printf(im->arena, "(i32(%s) - %s)", element_text, zp);
}

static bool scale_known(struct import *im, int k, bool vector, struct tensor **out) {
    struct tensor *t = *out = node_input(im, k);
    if (!t || !t->data || t->type != TYPE_F32)
        return node_fail(
            im, "input %d, a scale, is not a constant of f32, as it must be known when compiling",
            k);
    if (t->elements != 1 && (!vector || t->ndims != 1))
        return node_fail(im, "input %d, a scale, has %" PRId64 " elements, expected one", k,
                         t->elements);
    for (int64_t i = 0; i < t->elements; i++)
        if (!(tensor_float(t, i) > 0) || isinf(tensor_float(t, i)))
            return node_fail(im, "input %d, a scale, is not above zero", k);
    return true;
}

/* The multiplier as text: a literal, or an element of a constant with one for each channel. In f32
 * each step is rounded in the order that ONNX Runtime takes, alpha * x * w / y. */
static const char *multiplier(struct import *im, enum type type, float alpha,
                              const struct tensor *x, const struct tensor *w,
                              const struct tensor *y, const char *base, const char *index) {
    double factor = (float)(alpha * tensor_float(x, 0));
    double *wide = arena_array(im->arena, (size_t)w->elements, sizeof *wide);
    float *data = arena_array(im->arena, (size_t)w->elements, sizeof *data);
    for (int64_t i = 0; i < w->elements; i++) {
        float product = (float)(factor * tensor_float(w, i));
        wide[i] = factor * tensor_float(w, i) / tensor_float(y, 0);
        data[i] = (float)(product / tensor_float(y, 0));
    }
    if (w->elements == 1) return text_number(im, type, type == TYPE_F32 ? data[0] : wide[0]);
    struct tensor *t = tensor_constant(im, base, "scale", type, 1, w->extent,
                                       type == TYPE_F32 ? (void *)data : wide);
    return tensor_element(im, t, &index);
}

bool quantised_limits(struct import *im, enum type type, const char **least, const char **most) {
    int64_t lo = type == TYPE_I8 ? -128 : 0, hi = type == TYPE_I8 ? 127 : 255;
    if (!attribute_int(im, ATTRIBUTE_LEAST, &lo) || !attribute_int(im, ATTRIBUTE_MOST, &hi))
        return false;
    *least = arena_printf(im->arena, "%" PRId64, lo);
    *most = arena_printf(im->arena, "%" PRId64, hi);
    return true;
}

/* What is added before rounding, in steps of the result, as text behind a value; "": nothing. */
static bool offset(struct import *im, const struct tensor *y, const char *base, const char *index,
                   const char **text) {
    const char *name = NULL;
    *text = "";
    if (!attribute_string(im, ATTRIBUTE_OFFSET, &name)) return false;
    const struct tensor *t = name ? name_find(&im->value, name) : NULL;
    if (!name) return true;
    if (!t || !t->data || t->type != TYPE_F64 || t->ndims != 1)
        return node_fail(im, "its attribute %s names no constant of f64", ATTRIBUTE_OFFSET);
    double *data = arena_array(im->arena, (size_t)t->elements, sizeof *data);
    for (int64_t i = 0; i < t->elements; i++) data[i] = tensor_float(t, i) / tensor_float(y, 0);
    struct tensor *made = tensor_constant(im, base, "offset", TYPE_F64, 1, t->extent, data);
    *text = arena_printf(im->arena, " + %s", tensor_element(im, made, &index));
    return true;
}

bool quantised_result(struct import *im, struct tensor *acc, float alpha, int xs, int ws, int ys,
                      int yzp, int channel) {
    struct tensor *x, *w, *y, *zp = node_input(im, yzp),
                              *out = name_find(&im->value, im->node->output[0]);
    const char *index[MAX_DIMS], *zero;
    if (!scale_known(im, xs, false, &x) || !scale_known(im, ws, channel >= 0, &w) ||
        !scale_known(im, ys, false, &y) || !quantised_zero(im, zp, out, 1, NULL, &zero))
        return false;
    if (w->elements != 1 && w->elements != acc->extent[channel])
        return node_fail(im, "input %d has %" PRId64 " scales for %" PRId64 " channels", ws,
                         w->elements, acc->extent[channel]);
    axes_release(im);
    axes_for(im, acc->ndims, acc->extent, index);
    const char *at = channel >= 0 ? index[channel] : "0", *more;
    if (!offset(im, y, out->buffer, at, &more)) return false;
    enum type type = *more ? TYPE_F64 : TYPE_F32;
    const char *s = multiplier(im, type, alpha, x, w, y, out->buffer, at), *name = type_name(type);
    const char *value = arena_printf(im->arena, "round(%s(%s) * %s%s)", name,
                                     tensor_element(im, acc, index), s, more);
    if (zero)
        value = zp->data ? arena_printf(im->arena, "%s + %s", value, zero)
                         : arena_printf(im->arena, "%s + %s(%s)", value, name, zero);
    const char *least, *most;
    if (!quantised_limits(im, out->type, &least, &most)) return false;
    emit_statement(im, "%s = %s(clip(%s, %s, %s))", tensor_element(im, out, index),
                   type_name(out->type), value, least, most);
    return true;
}

static bool scales_of_blocks(struct import *im, struct quantisation *q, int axis, int64_t block) {
    const char **at = q->at, **part = q->part;
    const struct tensor *x = q->x, *s = q->scale;
    q->axis = axis;
    q->block = block;
    bool fits = block > 0 && s->ndims == x->ndims && x->extent[axis] % block == 0;
    for (int d = 0; fits && d < x->ndims; d++)
        fits = s->extent[d] == (d == axis ? x->extent[d] / block : x->extent[d]) &&
               (!q->zero || (q->zero->ndims == s->ndims && q->zero->extent[d] == s->extent[d]));
    if (!fits)
        return node_fail(im,
                         "scales %s, or zero points, do not fit blocks of %" PRId64
                         " elements along axis %d of %s",
                         shape_text(im->arena, s->ndims, s->extent), block, axis,
                         shape_text(im->arena, x->ndims, x->extent));
    for (int d = 0; d < x->ndims; d++)
        if (d != axis) q->index[d] = at[d] = axis_for(im, "i", x->extent[d]);
    at[axis] = part[0] = axis_for(im, "c", s->extent[axis]);
    part[1] = axis_for(im, "b", block);
    q->index[axis] = affine_text(im, 2, (int64_t[]){block, 1}, part, 0);
    q->scale_text = tensor_element(im, q->scale, at);
    q->zero_text = NULL;
    if (q->zero && !(q->zero->data && all_zero(q->zero)))
        q->zero_text = arena_printf(im->arena, "i32(%s)", tensor_element(im, q->zero, at));
    return true;
}

bool quantisation_read(struct import *im, struct quantisation *q, enum type *integer) {
    int axis = 0;
    int64_t block = 0;
    *q = (struct quantisation){
        .x = node_input(im, 0), .scale = node_input(im, 1), .zero = node_input(im, 2), .axis = -1};
    *integer = q->zero ? q->zero->type : TYPE_U8;
    if (!attribute_int(im, "block_size", &block)) return false;
    if (q->scale->elements == 1 && !block)
        attribute_find(im, "axis");
    else if (!attribute_axis(im, "axis", 1, q->x->ndims, &axis))
        return false;
    if (!type_is_float(q->scale->type)) return node_fail(im, "the scale is not a float");
    if (block) return scales_of_blocks(im, q, axis, block);
    if (q->scale->elements != 1 &&
        (q->scale->ndims != 1 || q->scale->elements != q->x->extent[axis]))
        return node_fail(im, "a scale of shape %s does not fit axis %d",
                         shape_text(im->arena, q->scale->ndims, q->scale->extent), axis);
    if (q->zero && q->zero->elements != q->scale->elements)
        return node_fail(im, "scale and zero point have different shapes");
    axes_for(im, q->x->ndims, q->x->extent, q->index);
    if (q->scale->elements != 1) q->axis = axis;
    q->at[0] = q->index[axis];
    q->scale_text = q->scale->elements == 1 ? tensor_scalar(im, q->scale)
                                            : tensor_element(im, q->scale, &q->index[axis]);
    struct tensor like = {.type = *integer};
    return quantised_zero(im, q->zero, &like, q->scale->elements, q->index[axis], &q->zero_text);
}

bool small_integer(enum type t) {
    return t == TYPE_I8 || t == TYPE_U8 || t == TYPE_I16 || t == TYPE_U16;
}

bool op_quantize(struct import *im) {
    struct quantisation q;
    enum type type;
    int64_t saturate = 1, to = 0;
    if (!attribute_int(im, "saturate", &saturate) || !attribute_int(im, "output_dtype", &to) ||
        !quantisation_read(im, &q, &type))
        return false;
    if (to && (to < 0 || to > INT32_MAX || !tensor_type((int32_t)to, &type)))
        return node_fail(im, "the type that 'output_dtype' gives, %" PRId64 ", is not supported",
                         to);
    if (q.zero && type != q.zero->type)
        return node_fail(im, "'output_dtype' is not the zero point's type");
    if (!small_integer(type))
        return node_fail(im, "results of %s are not supported", type_name(type));
    if (q.x->type != q.scale->type && q.x->type != TYPE_I32)
        return node_fail(im, "input and scale have different types");
    struct tensor *y = node_result(im, type, q.x->ndims, q.x->extent);
    if (!y) return false;
    const char *f = type_name(q.scale->type), *x = tensor_element(im, q.x, q.index);
    if (q.x->type == TYPE_I32) x = arena_printf(im->arena, "%s(%s)", f, x);
    const char *value = arena_printf(im->arena, "round(%s / %s)", x, q.scale_text);
    if (q.zero_text)
        value = arena_printf(
            im->arena, q.zero->data && q.zero->elements == 1 ? "%s + %s" : "%s + %s(%s)", value,
            q.zero->data && q.zero->elements == 1 ? q.zero_text : f, q.zero_text);
    emit_statement(im, "%s = %s(clip(%s, %s, %s))", tensor_element(im, y, q.index), type_name(type),
                   value, type_lowest(type), type_highest(type));
    return true;
}

bool dynamic_quantise(struct import *im, struct tensor *x, struct tensor *y, struct tensor *scale,
                      struct tensor *zero) {
    const char *index[MAX_DIMS];
    struct tensor *lo = tensor_temporary(im, y->buffer, "least", TYPE_F32, 0, NULL);
    struct tensor *hi = lo ? tensor_temporary(im, y->buffer, "most", TYPE_F32, 0, NULL) : NULL;
    if (!hi) return false;
    axes_for(im, x->ndims, x->extent, index);
    const char *e = tensor_element(im, x, index), *l = tensor_element(im, lo, NULL),
               *h = tensor_element(im, hi, NULL), *s = tensor_element(im, scale, NULL),
               *z = tensor_element(im, zero, NULL);
    emit_statement(im, "%s = 0", l);
    emit_statement(im, "%s min= %s", l, e);
    emit_statement(im, "%s = 0", h);
    emit_statement(im, "%s max= %s", h, e);
    /* what is all zeros has steps of one, as in ONNX Runtime; they multiply nothing but zeros */
    emit_statement(im, "%s = select(%s == %s, 1, (%s - %s) / 255)", s, h, l, h, l);
    emit_statement(im, "%s = u8(clip(round(0 - %s / %s), 0, 255))", z, l, s);
    emit_statement(im, "%s = u8(clip(round(%s / %s) + f32(%s), 0, 255))",
                   tensor_element(im, y, index), e, s, z);
    return true;
}

bool op_dynamic_quantize(struct import *im) {
    struct tensor *x = node_input(im, 0);
    if (x->type != TYPE_F32) return node_fail(im, "the input is not f32");
    struct tensor *y = node_result_at(im, 0, TYPE_U8, x->ndims, x->extent);
    struct tensor *scale = y ? node_result_at(im, 1, TYPE_F32, 0, NULL) : NULL;
    struct tensor *zero = scale ? node_result_at(im, 2, TYPE_U8, 0, NULL) : NULL;
    return zero && dynamic_quantise(im, x, y, scale, zero);
}
#endif
