/* Sliding windows in one to three dimensions, and convolutions. */
#include "onnx/onnx.h"

#ifdef ISAMAP_WITH_ONNX
#include "onnx/onnx_int.h"
#include "onnx/window.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Where strides are longer than windows, SAME leaves elements out: a pool half of them before its
 * first window, as ONNX's formula says; a convolution all of them behind (ONNX Runtime). */
static bool window_pads(struct import *im, struct window *w, bool pool) {
    const char *mode = "NOTSET";
    int64_t pads[2 * SPATIAL] = {0};
    bool given;
    if (!attribute_string(im, "auto_pad", &mode) ||
        !attribute_counts(im, "pads", 2 * w->n, 0, pads, &given))
        return false;
    bool upper = strcmp(mode, "SAME_UPPER") == 0, lower = strcmp(mode, "SAME_LOWER") == 0;
    if (!upper && !lower && strcmp(mode, "VALID") != 0 && strcmp(mode, "NOTSET") != 0)
        return node_fail(im, "'auto_pad' is '%s', expected NOTSET, VALID, SAME_UPPER or SAME_LOWER",
                         name_shown(im->arena, mode));
    for (int d = 0; d < w->n; d++) {
        bool fixed = strcmp(mode, "NOTSET") == 0;
        w->before[d] = fixed ? pads[d] : 0;
        w->after[d] = fixed ? pads[w->n + d] : 0;
        if (!upper && !lower) continue;
        int64_t out = (w->in[d] + w->stride[d] - 1) / w->stride[d];
        int64_t total =
            (out - 1) * w->stride[d] + (w->kernel[d] - 1) * w->dilation[d] + 1 - w->in[d];
        if (total < 0 && !pool) total = 0;
        w->before[d] = (upper ? total : total + 1) / 2;
        w->after[d] = total - w->before[d];
    }
    return true;
}

/* Of an empty window a sum is 0; a maximum or a mean is nothing. */
static bool window_extents(struct import *im, struct window *w, bool sums) {
    for (int d = 0; d < w->n; d++) {
        int64_t span = (w->kernel[d] - 1) * w->dilation[d] + 1;
        int64_t room = w->in[d] + w->before[d] + w->after[d] - span;
        if (room < 0)
            return node_fail(
                im,
                "its window spans %" PRId64
                " elements along spatial dimension %d, but the padded input has %" PRId64,
                span, d, room + span);
        w->out[d] = (room + (w->ceil ? w->stride[d] - 1 : 0)) / w->stride[d] + 1;
        bool behind = (w->out[d] - 1) * w->stride[d] >= w->in[d] + w->before[d];
        if (behind && w->ceil) w->out[d]--; /* a window that begins behind the input is left out */
        if (!sums && (w->out[d] - 1) * w->stride[d] >= w->in[d] + w->before[d])
            return node_fail(im,
                             "the padding puts a whole window behind the input along spatial "
                             "dimension %d",
                             d);
        int64_t last = (w->out[d] - 1) * w->stride[d] + span - 1 - w->before[d];
        w->leaves[d] = w->before[d] > 0 || last >= w->in[d];
    }
    return true;
}

bool window_read(struct import *im, const struct tensor *x, const int64_t *kernel,
                 struct window *w) {
    bool given;
    int64_t ceil = 0;
    w->n = x->ndims - 2;
    if (w->n < 1 || w->n > SPATIAL)
        return node_fail(
            im,
            "an input of %d dimensions is not supported: expected batch, channels and 1 to 3 more",
            x->ndims);
    for (int d = 0; d < w->n; d++) {
        w->in[d] = x->extent[2 + d];
        w->kernel[d] = kernel ? kernel[d] : 0;
        w->stride[d] = w->dilation[d] = 1;
        if (w->in[d] > INT64_C(1) << 40) return node_fail(im, "its input is too large");
    }
    if (!attribute_counts(im, "kernel_shape", w->n, 1, w->kernel, &given)) return false;
    if (!given && !kernel) return node_fail(im, "the attribute 'kernel_shape' is missing");
    for (int d = 0; kernel && d < w->n; d++) {
        if (kernel[d] > MAX_COUNT) return node_fail(im, "its window is too large");
        if (w->kernel[d] != kernel[d])
            return node_fail(im, "'kernel_shape' is not that of the weights");
    }
    if (!attribute_counts(im, "strides", w->n, 1, w->stride, &given) ||
        !attribute_counts(im, "dilations", w->n, 1, w->dilation, &given) ||
        !attribute_int(im, "ceil_mode", &ceil))
        return false;
    w->ceil = ceil != 0;
    return window_pads(im, w, !kernel) && window_extents(im, w, kernel != NULL);
}

void window_axes(struct import *im, struct window *w) {
    static const char *const out[SPATIAL] = {"p", "q", "u"}, *const kernel[SPATIAL] = {"r", "s",
                                                                                       "t"};
    for (int d = 0; d < w->n; d++) w->out_axis[d] = axis_for(im, out[d], w->out[d]);
    for (int d = 0; d < w->n; d++) w->kernel_axis[d] = axis_for(im, kernel[d], w->kernel[d]);
}

const char *window_element(struct import *im, const struct window *w, struct tensor *x,
                           const char *batch, const char *channel, const char *fill) {
    const char *index[2 + SPATIAL] = {batch, channel};
    bool leaves = false;
    for (int d = 0; d < w->n; d++) {
        const char *axis[2] = {w->out_axis[d], w->kernel_axis[d]};
        index[2 + d] =
            affine_text(im, 2, (int64_t[]){w->stride[d], w->dilation[d]}, axis, -w->before[d]);
        leaves |= w->leaves[d];
    }
    return tensor_element_else(im, x, index, leaves ? fill : NULL);
}

/* ---- convolutions ---- */

struct conv {
    struct window w;
    struct tensor *x, *f, *bias;
    int64_t groups, shape[2 + SPATIAL]; /* of the result */
    int64_t tap[SPATIAL];               /* the weights' element that the window's first one is */
    int ndims;
    const char *plain[2 + SPATIAL]; /* index of the result */
    const char *dst[3 + SPATIAL];   /* of the sums, which have groups and channels within apart */
    const char *from_channel, *filter[2 + SPATIAL];
};

static bool conv_read(struct import *im, struct conv *c, int x, int f, int bias) {
    c->x = node_input(im, x);
    c->f = node_input(im, f);
    c->bias = bias >= 0 ? node_input(im, bias) : NULL;
    c->groups = 1;
    c->ndims = c->x->ndims;
    memset(c->tap, 0, sizeof c->tap);
    if (!attribute_int(im, "group", &c->groups)) return false;
    if (c->f->ndims != c->ndims)
        return node_fail(im, "input and weights have %d and %d dimensions", c->ndims, c->f->ndims);
    if (!window_read(im, c->x, c->f->extent + 2, &c->w)) return false;
    int64_t channels = c->x->extent[1], k = c->f->extent[0];
    if (c->groups < 1 || channels % c->groups || k % c->groups)
        return node_fail(im,
                         "%" PRId64 " groups do not divide %" PRId64 " and %" PRId64 " channels",
                         c->groups, channels, k);
    if (c->f->extent[1] != channels / c->groups)
        return node_fail(im,
                         "the weights take %" PRId64 " channels, but the input has %" PRId64
                         " in each of %" PRId64 " groups",
                         c->f->extent[1], channels / c->groups, c->groups);
    if (c->bias && (c->bias->ndims != 1 || c->bias->extent[0] != k))
        return node_fail(im, "the bias is not a vector of %" PRId64 " elements", k);
    c->shape[0] = c->x->extent[0];
    c->shape[1] = k;
    memcpy(c->shape + 2, c->w.out, sizeof c->w.out);
    return true;
}

/* A dimension that two axes walk is none of an instruction's results. */
static bool conv_apart(const struct conv *c) {
    return c->groups > 1 && c->groups < c->shape[1];
}

static void conv_axes(struct import *im, struct conv *c) {
    int64_t k = c->shape[1], each = k / c->groups, channels = c->f->extent[1];
    int n = 0;
    c->dst[n++] = c->plain[0] = axis_for(im, "n", c->shape[0]);
    const char *group = axis_for(im, "g", c->groups), *within = axis_for(im, "k", each);
    const char *channel = axis_for(im, "c", channels);
    c->plain[1] = affine_text(im, 2, (int64_t[]){each, 1}, (const char *[]){group, within}, 0);
    if (conv_apart(c)) c->dst[n++] = group;
    c->dst[n++] = conv_apart(c) ? within : c->plain[1];
    c->from_channel =
        affine_text(im, 2, (int64_t[]){channels, 1}, (const char *[]){group, channel}, 0);
    window_axes(im, &c->w);
    c->filter[0] = c->plain[1];
    c->filter[1] = channel;
    for (int d = 0; d < c->w.n; d++) {
        c->dst[n++] = c->plain[2 + d] = c->w.out_axis[d];
        c->filter[2 + d] = affine_text(im, 1, (int64_t[]){1}, &c->w.kernel_axis[d], c->tap[d]);
    }
}

static const char *bias_text(struct import *im, const struct conv *c) {
    return c->bias ? sum_widen(im, c->bias->type, tensor_element(im, c->bias, &c->plain[1])) : "0";
}

/* Where the sums for `y` are made: there, or in a temporary. */
static struct tensor *conv_open(struct import *im, const struct conv *c, struct tensor *y) {
    int64_t extent[3 + SPATIAL] = {c->shape[0], c->groups, c->shape[1] / c->groups};
    if (!conv_apart(c)) return sum_open(im, y);
    memcpy(extent + 3, c->w.out, sizeof c->w.out);
    return tensor_temporary(im, y->buffer, "groups", sum_type(y->type), 3 + c->w.n, extent);
}

static void conv_close(struct import *im, const struct conv *c, struct tensor *y,
                       struct tensor *sum) {
    if (sum != y)
        emit_statement(im, "%s = %s", tensor_element(im, y, c->plain),
                       sum_narrow(im, y->type, tensor_element(im, sum, c->dst)));
}

static void start_with_bias(struct import *im, const struct conv *c, struct tensor *y) {
    emit_statement(im, "%s = %s", tensor_element(im, y, c->dst), bias_text(im, c));
}

/* The window without ends of it that lie outside the input wherever it stands: those of wide dilations on small maps. */
static void conv_reach(struct conv *c) {
    struct window *w = &c->w;
    for (int d = 0; d < w->n; d++) {
        int64_t first = w->kernel[d], last = -1, span = (w->out[d] - 1) * w->stride[d];
        for (int64_t k = 0; k < w->kernel[d]; k++) {
            int64_t at = k * w->dilation[d] - w->before[d]; /* by the first output; by the last one a span behind */
            int64_t inside = at >= 0 ? at : at + (-at + w->stride[d] - 1) / w->stride[d] * w->stride[d];
            if (inside > at + span || inside >= w->in[d]) continue;
            first = k < first ? k : first;
            last = k;
        }
        if (last < 0) continue;
        c->tap[d] = first;
        w->kernel[d] = last - first + 1;
        w->before[d] -= first * w->dilation[d];
        w->leaves[d] = w->before[d] > 0 || span + (last - first) * w->dilation[d] - w->before[d] >= w->in[d];
    }
}

bool op_conv(struct import *im) {
    struct conv c;
    if (!conv_read(im, &c, 0, 1, 2)) return false;
    conv_reach(&c);
    enum type type = c.x->type;
    if (!type_is_float(type) || c.f->type != type || (c.bias && c.bias->type != type))
        return node_fail(im, "input, weights and bias are not of one float type");
    struct tensor *y = node_result(im, type, c.ndims, c.shape),
                  *acc = y ? conv_open(im, &c, y) : NULL;
    if (!acc) return false;
    conv_axes(im, &c);
    start_with_bias(im, &c, acc);
    const char *x = window_element(im, &c.w, c.x, c.dst[0], c.from_channel, "0");
    emit_statement(im, "%s += %s * %s", tensor_element(im, acc, c.dst), sum_widen(im, type, x),
                   sum_widen(im, type, tensor_element(im, c.f, c.filter)));
    conv_close(im, &c, y, acc);
    return true;
}

/* The sums of the weights that lie inside the input: a constant where they are, which no run makes.
 */
static struct tensor *weights_inside(struct import *im, struct conv *c, const char *base,
                                     const char *weight) {
    int64_t shape[1 + SPATIAL] = {c->shape[1]};
    const char *kernel[1 + SPATIAL] = {c->plain[1]}, *plain[1 + SPATIAL] = {c->plain[1]};
    struct text inside = {0};
    memcpy(shape + 1, c->w.kernel, sizeof c->w.kernel);
    memcpy(kernel + 1, c->w.kernel_axis, sizeof c->w.kernel_axis);
    struct tensor *each = tensor_temporary(im, base, "each", TYPE_I32, 1 + c->w.n, shape);
    memcpy(shape + 1, c->w.out, sizeof c->w.out);
    struct tensor *sum = tensor_temporary(im, base, "weights", TYPE_I32, 1 + c->w.n, shape);
    if (!each || !sum) return NULL;
    emit_statement(im, "%s = 0", tensor_element(im, each, kernel));
    emit_statement(im, "%s += %s", tensor_element(im, each, kernel), weight);
    for (int d = 0; d < c->w.n; d++) {
        plain[1 + d] = c->w.out_axis[d];
        const char *at =
            affine_text(im, 2, (int64_t[]){c->w.stride[d], c->w.dilation[d]},
                        (const char *[]){c->w.out_axis[d], c->w.kernel_axis[d]}, -c->w.before[d]);
        if (c->w.leaves[d])
            text_printf(&inside, "%s %s >= 0 and %s < %" PRId64, inside.n ? " and" : " where", at,
                        at, c->w.in[d]);
    }
    emit_statement(im, "%s = 0", tensor_element(im, sum, plain));
    emit_statement(im, "%s += %s%s", tensor_element(im, sum, plain),
                   tensor_element(im, each, kernel), inside.at);
    text_free(&inside);
    return sum;
}

/* acc = bias + Σ (i32(x) - xz) * (i32(w) - wz); outside the input x is its zero point. One that is
 * data cannot stand there: then its products are subtracted apart. */
static bool accumulate(struct import *im, struct conv *c, struct tensor *y, struct tensor *xz,
                       struct tensor *wz) {
    const char *x_zero, *f_zero;
    bool leaves = false;
    struct tensor *acc = conv_open(im, c, y);
    if (!acc) return false;
    conv_axes(im, c);
    if (!quantised_zero(im, xz, c->x, 1, NULL, &x_zero) ||
        !quantised_zero(im, wz, c->f, c->shape[1], c->plain[1], &f_zero))
        return false;
    for (int d = 0; d < c->w.n; d++) leaves |= c->w.leaves[d];
    const char *weight = quantised_element(im, tensor_element(im, c->f, c->filter), f_zero);
    bool apart = leaves && x_zero && !xz->data;
    if (apart) {
        struct tensor *sum = weights_inside(im, c, acc->buffer, weight);
        if (!sum) return false;
        emit_statement(im, "%s = %s - i32(%s) * %s", tensor_element(im, acc, c->dst),
                       bias_text(im, c), x_zero, tensor_element(im, sum, c->plain + 1));
    } else {
        start_with_bias(im, c, acc);
    }
    const char *fill = x_zero && xz->data ? x_zero : "0";
    const char *x = window_element(im, &c->w, c->x, c->dst[0], c->from_channel, fill);
    emit_statement(im, "%s += %s * %s", tensor_element(im, acc, c->dst),
                   quantised_element(im, x, apart ? NULL : x_zero), weight);
    conv_close(im, c, y, acc);
    return true;
}

static bool eight_bits(const struct tensor *t) {
    return t->type == TYPE_I8 || t->type == TYPE_U8;
}

bool op_conv_integer(struct import *im) {
    struct conv c;
    if (!conv_read(im, &c, 0, 1, -1)) return false;
    if (!eight_bits(c.x) || !eight_bits(c.f))
        return node_fail(im, "input and weights are not of 8-bit integers");
    struct tensor *y = node_result(im, TYPE_I32, c.ndims, c.shape);
    return y && accumulate(im, &c, y, node_input(im, 2), node_input(im, 3));
}

bool op_qlinear_conv(struct import *im) {
    struct conv c;
    struct tensor *zero = node_input(im, 7);
    if (!zero) return node_fail(im, "the zero point of the result is missing");
    if (!conv_read(im, &c, 0, 3, 8)) return false;
    if (!eight_bits(c.x) || !eight_bits(c.f) || !eight_bits(zero) ||
        (c.bias && c.bias->type != TYPE_I32))
        return node_fail(
            im, "input, weights and result are not of 8-bit integers, or the bias is not i32");
    struct tensor *y = node_result(im, zero->type, c.ndims, c.shape);
    struct tensor *acc =
        y ? tensor_temporary(im, y->buffer, "acc", TYPE_I32, c.ndims, c.shape) : NULL;
    return acc && accumulate(im, &c, acc, node_input(im, 2), node_input(im, 5)) &&
           quantised_result(im, acc, 1, 1, 4, 6, 7, 1);
}
#endif
