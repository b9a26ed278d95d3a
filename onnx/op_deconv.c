/* Transposed convolution: each input element adds the weights, times itself, around its place in
 * the result. Written the other way round, as what each element of the result gets, it is a
 * convolution. */
#include "onnx/onnx.h"

#ifdef ISAMAP_WITH_ONNX
#include "onnx/onnx_int.h"

#include <inttypes.h>
#include <string.h>

enum { SPATIAL = 3 };

struct deconv {
    struct tensor *x, *f, *bias;
    int n; /* spatial dimensions */
    int64_t groups, stride[SPATIAL], dilation[SPATIAL], extra[SPATIAL], pads[2 * SPATIAL];
    int64_t full[SPATIAL], out[SPATIAL]; /* extents without what is cut off, and with */
};

/* Padding that gives the wanted extents. */
static void pad_to(struct deconv *c, const int64_t *wanted, bool upper) {
    for (int d = 0; d < c->n; d++) {
        int64_t total = c->full[d] + c->extra[d] - wanted[d];
        if (total < 0) c->extra[d] -= total, total = 0; /* zeros behind */
        c->pads[d] = upper ? total / 2 : total - total / 2;
        c->pads[c->n + d] = total - c->pads[d];
    }
}

static bool deconv_extents(struct import *im, struct deconv *c) {
    const char *mode = "NOTSET";
    int64_t kernel[SPATIAL], wanted[SPATIAL];
    bool shape;
    for (int d = 0; d < c->n; d++) {
        c->stride[d] = c->dilation[d] = 1;
        kernel[d] = c->f->extent[2 + d];
        if (kernel[d] > MAX_COUNT || c->x->extent[2 + d] > INT64_C(1) << 30)
            return node_fail(im, "its window or input is too large");
    }
    if (!attribute_counts(im, "kernel_shape", c->n, 1, kernel, NULL) ||
        !attribute_counts(im, "strides", c->n, 1, c->stride, NULL) ||
        !attribute_counts(im, "dilations", c->n, 1, c->dilation, NULL) ||
        !attribute_counts(im, "output_padding", c->n, 0, c->extra, NULL) ||
        !attribute_counts(im, "pads", 2 * c->n, 0, c->pads, NULL) ||
        !attribute_counts(im, "output_shape", c->n, 1, wanted, &shape) ||
        !attribute_string(im, "auto_pad", &mode))
        return false;
    bool upper = strcmp(mode, "SAME_UPPER") == 0, lower = strcmp(mode, "SAME_LOWER") == 0;
    for (int d = 0; d < c->n; d++) {
        if (kernel[d] != c->f->extent[2 + d])
            return node_fail(im, "'kernel_shape' is not that of the weights");
        c->full[d] =
            (c->x->extent[2 + d] - 1) * c->stride[d] + (kernel[d] - 1) * c->dilation[d] + 1;
        if ((upper || lower) && !shape) wanted[d] = c->x->extent[2 + d] * c->stride[d];
    }
    if (shape || upper || lower) pad_to(c, wanted, upper);
    for (int d = 0; d < c->n; d++) {
        c->out[d] = c->full[d] + c->extra[d] - c->pads[d] - c->pads[c->n + d];
        if (c->out[d] < 1)
            return node_fail(im, "its padding leaves nothing along spatial dimension %d", d);
    }
    return true;
}

static bool deconv_read(struct import *im, struct deconv *c) {
    *c = (struct deconv){
        .x = node_input(im, 0), .f = node_input(im, 1), .bias = node_input(im, 2), .groups = 1};
    c->n = c->x->ndims - 2;
    if (c->n < 1 || c->n > SPATIAL || c->f->ndims != c->x->ndims)
        return node_fail(im, "input and weights have %d and %d dimensions, expected 3 to 5 of both",
                         c->x->ndims, c->f->ndims);
    if (!type_is_float(c->x->type) || c->f->type != c->x->type ||
        (c->bias && c->bias->type != c->x->type))
        return node_fail(im, "input, weights and bias are not of one float type");
    if (!attribute_int(im, "group", &c->groups)) return false;
    if (c->groups < 1 || c->x->extent[1] % c->groups || c->f->extent[0] != c->x->extent[1])
        return node_fail(im,
                         "%" PRId64 " groups and weights of %" PRId64
                         " channels do not fit %" PRId64 " channels",
                         c->groups, c->f->extent[0], c->x->extent[1]);
    int64_t k = c->f->extent[1] * c->groups;
    if (c->bias && (c->bias->ndims != 1 || c->bias->extent[0] != k))
        return node_fail(im, "the bias is not a vector of %" PRId64 " elements", k);
    return deconv_extents(im, c);
}

/* Sums over whole extents; what padding cuts off is not copied. */
static void deconv_sum(struct import *im, struct deconv *c, struct tensor *sum) {
    static const char *const out[SPATIAL] = {"p", "q", "u"}, *const window[SPATIAL] = {"r", "s",
                                                                                       "t"};
    int64_t each = c->f->extent[1], channels = c->x->extent[1] / c->groups;
    const char *at[2 + SPATIAL], *from[2 + SPATIAL], *filter[2 + SPATIAL];
    at[0] = from[0] = axis_for(im, "n", c->x->extent[0]);
    const char *group = axis_for(im, "g", c->groups), *k = axis_for(im, "k", each),
               *channel = axis_for(im, "c", channels);
    at[1] = affine_text(im, 2, (int64_t[]){each, 1}, (const char *[]){group, k}, 0);
    from[1] = filter[0] =
        affine_text(im, 2, (int64_t[]){channels, 1}, (const char *[]){group, channel}, 0);
    filter[1] = k;
    for (int d = 0; d < c->n; d++) {
        const char *axis[2] = {axis_for(im, out[d], c->x->extent[2 + d]),
                               axis_for(im, window[d], c->f->extent[2 + d])};
        at[2 + d] = affine_text(im, 2, (int64_t[]){c->stride[d], c->dilation[d]}, axis, 0);
        from[2 + d] = axis[0];
        filter[2 + d] = axis[1];
    }
    emit_statement(im, "%s += %s * %s", tensor_element(im, sum, at),
                   sum_widen(im, c->x->type, tensor_element(im, c->x, from)),
                   sum_widen(im, c->x->type, tensor_element(im, c->f, filter)));
}

/* ---- without scattering ---- */

/* With a stride of s, output s*j + b gets the window's elements b, s + b, 2s + b, … from the inputs
 * j, j - 1, j - 2, …: a convolution for each of the s values of b, whose results lie side by side.
 */
struct phases {
    int64_t taps[SPATIAL], length[SPATIAL],
        step[SPATIAL]; /* inputs that meet; values of j; from tap to tap */
    const char *j[SPATIAL], *b[SPATIAL], *tap[SPATIAL];
    const char *at[3 + 2 * SPATIAL]; /* index of the results */
    int64_t extent[3 + 2 * SPATIAL];
    int n;
    bool apart; /* groups of channels have a dimension of their own, as two axes would walk one */
    bool scattered; /* the results lie otherwise than those of the operator */
};

static bool phases_make(const struct deconv *c, struct phases *h) {
    *h = (struct phases){.apart = c->groups > 1 && c->f->extent[1] > 1};
    h->extent[h->n++] = c->x->extent[0];
    if (h->apart) h->extent[h->n++] = c->groups;
    h->extent[h->n++] = c->f->extent[1] * (h->apart ? 1 : c->groups);
    h->scattered = h->apart;
    for (int d = 0; d < c->n; d++) {
        if (c->stride[d] > 1 && c->dilation[d] > 1) return false;
        h->taps[d] = (c->f->extent[2 + d] + c->stride[d] - 1) / c->stride[d];
        h->step[d] = c->stride[d] > 1 ? 1 : c->dilation[d];
        h->length[d] = c->x->extent[2 + d] + (h->taps[d] - 1) * h->step[d];
        h->extent[h->n++] = h->length[d];
        if (c->stride[d] > 1) h->extent[h->n++] = c->stride[d];
        h->scattered |= c->stride[d] > 1;
    }
    return true;
}

/* *channel: which of all channels the results are of; *k: which of the group's. */
static void phases_axes(struct import *im, const struct deconv *c, struct phases *h,
                        const char **group, const char **k, const char **channel) {
    static const char *const out[SPATIAL] = {"p", "q", "u"}, *const phase[SPATIAL] = {"a", "b",
                                                                                      "d"};
    int n = 0;
    h->at[n++] = axis_for(im, "n", h->extent[0]);
    *group = axis_for(im, "g", c->groups);
    *k = axis_for(im, "k", c->f->extent[1]);
    *channel = affine_text(im, 2, (int64_t[]){c->f->extent[1], 1}, (const char *[]){*group, *k}, 0);
    if (h->apart) h->at[n++] = *group;
    h->at[n++] = h->apart ? *k : *channel;
    for (int d = 0; d < c->n; d++) {
        h->at[n++] = h->j[d] = axis_for(im, out[d], h->length[d]);
        if (c->stride[d] > 1) h->at[n++] = h->b[d] = axis_for(im, phase[d], c->stride[d]);
    }
}

/* Stride times one axis and another: where a phase's element lies among all. */
static const char *strided(struct import *im, int64_t stride, const char *axis, const char *phase) {
    if (stride == 1) return axis;
    return affine_text(im, 2, (int64_t[]){stride, 1}, (const char *[]){axis, phase}, 0);
}

/* The window's elements by phase and tap, from the last tap to the first, so that the inputs come
 * in their order; index: of the copy, over the axes of the sums. */
static struct tensor *phases_filter(struct import *im, struct deconv *c, const struct phases *h,
                                    const char *base, const char *const *lead, const char **index) {
    const char *from[2 + SPATIAL] = {lead[0], lead[1]};
    int64_t extent[2 + 2 * SPATIAL] = {c->f->extent[0], c->f->extent[1]};
    int n = 2;
    bool beyond = false;
    index[0] = lead[0], index[1] = lead[1];
    for (int d = 0; d < c->n; d++) {
        int64_t stride = c->stride[d], last = h->taps[d] - 1;
        if (stride > 1) index[n] = h->b[d], extent[n++] = stride;
        index[n] = h->tap[d], extent[n++] = h->taps[d];
        from[2 + d] = affine_text(im, stride > 1 ? 2 : 1, (int64_t[]){-stride, 1},
                                  (const char *[]){h->tap[d], h->b[d]}, last * stride);
        beyond |= h->taps[d] * stride > c->f->extent[2 + d];
    }
    struct tensor *t = tensor_temporary(im, base, "taps", c->f->type, n, extent);
    if (!t) return NULL;
    im->ahead = c->f->data;
    emit_statement(im, "%s = %s", tensor_element(im, t, index),
                   tensor_element_else(im, c->f, from, beyond ? "0" : NULL));
    im->ahead = false;
    return t;
}

static bool phases_sum(struct import *im, struct deconv *c, struct phases *h, const char *base,
                       struct tensor *sum) {
    static const char *const window[SPATIAL] = {"r", "s", "t"};
    int64_t channels = c->x->extent[1] / c->groups;
    const char *from[2 + SPATIAL], *filter[2 + 2 * SPATIAL], *group, *k, *all;
    phases_axes(im, c, h, &group, &k, &all);
    from[0] = h->at[0];
    from[1] = affine_text(im, 2, (int64_t[]){channels, 1},
                          (const char *[]){group, axis_for(im, "c", channels)}, 0);
    bool leaves = false;
    for (int d = 0; d < c->n; d++) {
        h->tap[d] = axis_for(im, window[d], h->taps[d]);
        from[2 + d] =
            affine_text(im, 2, (int64_t[]){1, h->step[d]}, (const char *[]){h->j[d], h->tap[d]},
                        -(h->taps[d] - 1) * h->step[d]);
        leaves |= h->taps[d] > 1;
    }
    struct tensor *f = phases_filter(im, c, h, base, (const char *[]){from[1], k}, filter);
    if (!f) return false;
    emit_statement(
        im, "%s += %s * %s", tensor_element(im, sum, h->at),
        sum_widen(im, c->x->type, tensor_element_else(im, c->x, from, leaves ? "0" : NULL)),
        sum_widen(im, c->x->type, tensor_element(im, f, filter)));
    return true;
}

/* The sums as a tensor, `full` where nothing is cut off: extents are at least those of c->full. */
static void phases_interleave(struct import *im, struct deconv *c, struct phases *h,
                              struct tensor *sum, struct tensor *full) {
    const char *to[2 + SPATIAL], *group, *k;
    axes_release(im);
    phases_axes(im, c, h, &group, &k, &to[1]);
    to[0] = h->at[0];
    for (int d = 0; d < c->n; d++) to[2 + d] = strided(im, c->stride[d], h->j[d], h->b[d]);
    emit_statement(im, "%s = %s", tensor_element(im, full, to), tensor_element(im, sum, h->at));
}

/* Sums over all outputs before some are cut off; *out: where they are. */
static bool deconv_phases(struct import *im, struct deconv *c, struct phases *h, const char *base,
                          struct tensor **out) {
    enum type t = sum_type(c->x->type);
    int64_t full[2 + SPATIAL] = {h->extent[0], c->f->extent[1] * c->groups};
    struct tensor *sum = tensor_temporary(im, base, "sum", t, h->n, h->extent);
    if (!sum) return false;
    axes_for(im, h->n, h->extent, h->at);
    emit_statement(im, "%s = 0", tensor_element(im, sum, h->at));
    axes_release(im);
    if (!phases_sum(im, c, h, base, sum)) return false;
    *out = sum;
    if (!h->scattered) return true;
    for (int d = 0; d < c->n; d++) full[2 + d] = h->length[d] * c->stride[d];
    *out = tensor_temporary(im, base, "full", t, c->n + 2, full);
    if (*out) phases_interleave(im, c, h, sum, *out);
    return *out;
}

/* ---- the operator ---- */

bool op_conv_transpose(struct import *im) {
    struct deconv c;
    int64_t shape[2 + SPATIAL], full[2 + SPATIAL];
    const char *index[2 + SPATIAL], *from[2 + SPATIAL];
    if (!deconv_read(im, &c)) return false;
    shape[0] = full[0] = c.x->extent[0];
    shape[1] = full[1] = c.f->extent[1] * c.groups;
    for (int d = 0; d < c.n; d++) {
        shape[2 + d] = c.out[d];
        full[2 + d] = c.full[d];
    }
    struct tensor *y = node_result(im, c.x->type, c.n + 2, shape), *sum = NULL;
    struct phases h;
    if (!y) return false;
    if (phases_make(&c, &h)) {
        if (!deconv_phases(im, &c, &h, y->buffer, &sum)) return false;
    } else {
        sum = tensor_temporary(im, y->buffer, "sum", sum_type(y->type), c.n + 2, full);
        if (!sum) return false;
        axes_for(im, c.n + 2, full, index);
        emit_statement(im, "%s = 0", tensor_element(im, sum, index));
        axes_release(im);
        deconv_sum(im, &c, sum);
    }
    axes_release(im);
    axes_for(im, c.n + 2, shape, index);
    memcpy(from, index, sizeof from);
    bool beyond = false;
    for (int d = 0; d < c.n; d++) {
        from[2 + d] = affine_text(im, 1, (int64_t[]){1}, &index[2 + d], c.pads[d]);
        beyond |= c.out[d] + c.pads[d] > sum->extent[2 + d];
    }
    const char *v = tensor_element_else(im, sum, from, beyond ? "0" : NULL);
    if (c.bias)
        v = arena_printf(im->arena, "%s + %s", v,
                         sum_widen(im, y->type, tensor_element(im, c.bias, &index[1])));
    emit_statement(im, "%s = %s", tensor_element(im, y, index), sum_narrow(im, y->type, v));
    return true;
}
#endif
