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

/* What sums begin with: the bias of the channel, or 0. */
static void deconv_begin(struct import *im, const struct deconv *c, struct tensor *sum,
                         const char *const *at, const char *channel) {
    emit_statement(im, "%s = %s", tensor_element(im, sum, at),
                   c->bias ? sum_widen(im, c->x->type, tensor_element(im, c->bias, &channel))
                           : "0");
    axes_release(im);
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
 * What padding cuts off at the beginning shifts outputs by s*u + v: inputs then begin at u. Where v
 * is half a stride, output s*j + v*h + b (h: 0 or 1) is of phase v*(1 - h) + b and from the inputs
 * j + u + h, …, so that here too none but the wanted outputs are computed. Other v leave v outputs
 * too many at the beginning.
 *
 * Most of a window lies outside an input that is shorter (the first layer of a generator has one
 * pixel). Sums then go over the inputs i, and input i meets tap j + u + h - i of a copy of the
 * weights that has zeros beyond its ends, where that copy is no larger than the weights. */
struct phases {
    int64_t taps[SPATIAL], length[SPATIAL],
        step[SPATIAL]; /* inputs that meet; values of j; from tap to tap */
    int64_t first[SPATIAL], half[SPATIAL], before[SPATIAL]; /* u; v where it is half a stride; v
                                                               where it is otherwise */
    const char *j[SPATIAL], *h[SPATIAL], *b[SPATIAL], *tap[SPATIAL]; /* h, b: NULL where always 0 */
    const char *at[3 + 3 * SPATIAL];                                 /* index of the results */
    int64_t extent[3 + 3 * SPATIAL];
    int n;
    bool apart; /* groups of channels have a dimension of their own, as two axes would walk one */
    bool scattered;       /* the results lie otherwise than those of the operator */
    bool whole;           /* no output is computed that is not wanted */
    bool inputs[SPATIAL]; /* sums go over the inputs: `tap` is i, of x->extent values */
};

static int64_t phases_within(const struct deconv *c, const struct phases *h, int d) {
    return h->half[d] ? h->half[d] : c->stride[d];
}

static void phases_extent(const struct deconv *c, struct phases *h, int d) {
    int64_t stride = c->stride[d], cut = c->pads[d] % stride;
    h->taps[d] = (c->f->extent[2 + d] + stride - 1) / stride;
    h->step[d] = stride > 1 ? 1 : c->dilation[d];
    h->first[d] = c->pads[d] / stride;
    h->half[d] = 2 * cut == stride ? cut : 0;
    h->before[d] = cut - h->half[d];
    h->length[d] = (c->out[d] + h->before[d] + stride - 1) / stride;
    h->inputs[d] = h->step[d] == 1 && c->x->extent[2 + d] > 0 && c->x->extent[2 + d] < h->taps[d] &&
                   h->length[d] * c->x->extent[2 + d] <= h->taps[d];
    h->extent[h->n++] = h->length[d];
    if (h->half[d]) h->extent[h->n++] = 2;
    if (phases_within(c, h, d) > 1) h->extent[h->n++] = phases_within(c, h, d);
    h->scattered |= stride > 1;
    h->whole &= c->out[d] == h->length[d] * stride;
}

static bool phases_make(const struct deconv *c, struct phases *h) {
    *h = (struct phases){.apart = c->groups > 1 && c->f->extent[1] > 1, .whole = true};
    for (int d = 0; d < c->n; d++)
        if (c->stride[d] > 1 && c->dilation[d] > 1) return false;
    h->extent[h->n++] = c->x->extent[0];
    if (h->apart) h->extent[h->n++] = c->groups;
    h->extent[h->n++] = c->f->extent[1] * (h->apart ? 1 : c->groups);
    h->scattered = h->apart;
    for (int d = 0; d < c->n; d++) phases_extent(c, h, d);
    return true;
}

/* *channel: which of all channels the results are of; *k: which of the group's. */
static void phases_axes(struct import *im, const struct deconv *c, struct phases *h,
                        const char **group, const char **k, const char **channel) {
    static const char *const out[SPATIAL] = {"p", "q", "u"}, *const half[SPATIAL] = {"h", "i", "j"},
                             *const phase[SPATIAL] = {"a", "b", "d"};
    int n = 0;
    h->at[n++] = axis_for(im, "n", h->extent[0]);
    *group = axis_for(im, "g", c->groups);
    *k = axis_for(im, "k", c->f->extent[1]);
    *channel = affine_text(im, 2, (int64_t[]){c->f->extent[1], 1}, (const char *[]){*group, *k}, 0);
    if (h->apart) h->at[n++] = *group;
    h->at[n++] = h->apart ? *k : *channel;
    for (int d = 0; d < c->n; d++) {
        h->at[n++] = h->j[d] = axis_for(im, out[d], h->length[d]);
        if (h->half[d]) h->at[n++] = h->h[d] = axis_for(im, half[d], 2);
        if (phases_within(c, h, d) > 1)
            h->at[n++] = h->b[d] = axis_for(im, phase[d], phases_within(c, h, d));
    }
}

/* The sum of those axes that there are, each times its factor, and an offset. */
static const char *phases_index(struct import *im, int64_t f, const char *first, int64_t g,
                                const char *second, int64_t e, const char *third, int64_t offset) {
    const char *const all[] = {first, second, third};
    const int64_t each[] = {f, g, e};
    const char *axis[3];
    int64_t coef[3];
    int n = 0;
    for (int i = 0; i < 3; i++)
        if (all[i]) axis[n] = all[i], coef[n++] = each[i];
    return affine_text(im, n, coef, axis, offset);
}

/* Dimension d of the copy of the weights: its axes behind the first n of `index`, and which element
 * of the window it is. */
static int phases_taps(struct import *im, const struct deconv *c, const struct phases *h, int d,
                       int n, const char **index, int64_t *extent, const char **from) {
    int64_t stride = c->stride[d], last = h->taps[d] - 1;
    if (h->h[d]) index[n] = h->h[d], extent[n++] = 2;
    if (h->b[d]) index[n] = h->b[d], extent[n++] = phases_within(c, h, d);
    if (h->inputs[d]) index[n] = h->j[d], extent[n++] = h->length[d];
    index[n] = h->tap[d];
    extent[n++] = h->inputs[d] ? c->x->extent[2 + d] : h->taps[d];
    *from = phases_index(im, -stride, h->tap[d], h->inputs[d] ? stride - h->half[d] : -h->half[d],
                         h->h[d], 1, h->b[d],
                         (h->inputs[d] ? h->first[d] : last) * stride + h->half[d]);
    if (h->inputs[d])
        *from = affine_text(im, 2, (int64_t[]){1, stride}, (const char *[]){*from, h->j[d]}, 0);
    return n;
}

/* The window's elements by phase and tap, from the last tap to the first, so that the inputs come
 * in their order; index: of the copy, over the axes of the sums. */
static struct tensor *phases_filter(struct import *im, struct deconv *c, const struct phases *h,
                                    const char *base, const char *const *lead, const char **index) {
    const char *from[2 + SPATIAL] = {lead[0], lead[1]};
    int64_t extent[2 + 4 * SPATIAL] = {c->f->extent[0], c->f->extent[1]};
    int n = 2;
    bool beyond = false;
    index[0] = lead[0], index[1] = lead[1];
    for (int d = 0; d < c->n; d++) {
        n = phases_taps(im, c, h, d, n, index, extent, &from[2 + d]);
        beyond |= h->inputs[d] || h->taps[d] * c->stride[d] > c->f->extent[2 + d];
    }
    struct tensor *t = tensor_temporary(im, base, "taps", c->f->type, n, extent);
    if (!t) return NULL;
    im->ahead = c->f->data;
    emit_statement(im, "%s = %s", tensor_element(im, t, index),
                   tensor_element_else(im, c->f, from, beyond ? "0" : NULL));
    im->ahead = false;
    return t;
}

/* *from: which input along d a tap meets; can it be beyond the ends? */
static bool phases_input(struct import *im, const struct deconv *c, const struct phases *h, int d,
                         const char **from) {
    int64_t begin = h->first[d] - (h->taps[d] - 1) * h->step[d];
    *from = h->tap[d];
    if (h->inputs[d]) return false;
    *from = phases_index(im, 1, h->j[d], 1, h->h[d], h->step[d], h->tap[d], begin);
    return begin < 0 || h->first[d] + h->length[d] - (h->half[d] ? 0 : 1) >= c->x->extent[2 + d];
}

static bool phases_sum(struct import *im, struct deconv *c, struct phases *h, const char *base,
                       struct tensor *sum) {
    static const char *const window[SPATIAL] = {"r", "s", "t"};
    int64_t channels = c->x->extent[1] / c->groups;
    const char *from[2 + SPATIAL], *filter[2 + 4 * SPATIAL], *group, *k, *all;
    phases_axes(im, c, h, &group, &k, &all);
    from[0] = h->at[0];
    from[1] = affine_text(im, 2, (int64_t[]){channels, 1},
                          (const char *[]){group, axis_for(im, "c", channels)}, 0);
    bool leaves = false;
    for (int d = 0; d < c->n; d++) {
        h->tap[d] = axis_for(im, window[d], h->inputs[d] ? c->x->extent[2 + d] : h->taps[d]);
        leaves |= phases_input(im, c, h, d, &from[2 + d]);
    }
    struct tensor *f = phases_filter(im, c, h, base, (const char *[]){from[1], k}, filter);
    if (!f) return false;
    emit_statement(
        im, "%s += %s * %s", tensor_element(im, sum, h->at),
        sum_widen(im, c->x->type, tensor_element_else(im, c->x, from, leaves ? "0" : NULL)),
        sum_widen(im, c->x->type, tensor_element(im, f, filter)));
    return true;
}

/* Where the results of the phases lie among those of the operator: index of a tensor as its. */
static void phases_side_by_side(struct import *im, struct deconv *c, struct phases *h,
                                const char **to) {
    const char *group, *k;
    axes_release(im);
    phases_axes(im, c, h, &group, &k, &to[1]);
    to[0] = h->at[0];
    for (int d = 0; d < c->n; d++)
        to[2 + d] = phases_index(im, c->stride[d], h->j[d], h->half[d], h->h[d], 1, h->b[d], 0);
}

/* Sums of the phases, from the bias on. */
static struct tensor *deconv_phases(struct import *im, struct deconv *c, struct phases *h,
                                    const char *base) {
    struct tensor *sum = tensor_temporary(im, base, "sum", sum_type(c->x->type), h->n, h->extent);
    const char *group, *k, *all;
    if (!sum) return NULL;
    phases_axes(im, c, h, &group, &k, &all);
    deconv_begin(im, c, sum, h->at, all);
    return phases_sum(im, c, h, base, sum) ? sum : NULL;
}

/* The sums side by side, before some are cut off. */
static struct tensor *phases_interleave(struct import *im, struct deconv *c, struct phases *h,
                                        const char *base, struct tensor *sum) {
    int64_t full[2 + SPATIAL] = {h->extent[0], c->f->extent[1] * c->groups};
    const char *to[2 + SPATIAL];
    for (int d = 0; d < c->n; d++) full[2 + d] = h->length[d] * c->stride[d];
    struct tensor *all = tensor_temporary(im, base, "full", sum->type, c->n + 2, full);
    if (!all) return NULL;
    phases_side_by_side(im, c, h, to);
    emit_statement(im, "%s = %s", tensor_element(im, all, to), tensor_element(im, sum, h->at));
    return all;
}

/* ---- the operator ---- */

/* Elements of y from those of a tensor with more of them at both ends. */
static void deconv_cut(struct import *im, const struct deconv *c, struct tensor *y,
                       struct tensor *sum, const int64_t *before) {
    const char *index[2 + SPATIAL], *from[2 + SPATIAL];
    axes_release(im);
    axes_for(im, c->n + 2, y->extent, index);
    memcpy(from, index, sizeof from);
    for (int d = 0; d < c->n; d++)
        from[2 + d] = affine_text(im, 1, (int64_t[]){1}, &index[2 + d], before[d]);
    emit_statement(im, "%s = %s", tensor_element(im, y, index),
                   sum_narrow(im, y->type, tensor_element(im, sum, from)));
}

/* Scattered over all outputs, also those that are cut off, and zeros behind them. */
static bool deconv_scattered(struct import *im, struct deconv *c, struct tensor *y) {
    int64_t full[2 + SPATIAL] = {y->extent[0], y->extent[1]};
    const char *index[2 + SPATIAL];
    for (int d = 0; d < c->n; d++) full[2 + d] = c->full[d] + c->extra[d];
    struct tensor *sum = tensor_temporary(im, y->buffer, "sum", sum_type(y->type), c->n + 2, full);
    if (!sum) return false;
    axes_for(im, c->n + 2, full, index);
    deconv_begin(im, c, sum, index, index[1]);
    deconv_sum(im, c, sum);
    deconv_cut(im, c, y, sum, c->pads);
    return true;
}

bool op_conv_transpose(struct import *im) {
    struct deconv c;
    struct phases h;
    int64_t shape[2 + SPATIAL];
    const char *to[2 + SPATIAL];
    if (!deconv_read(im, &c)) return false;
    shape[0] = c.x->extent[0];
    shape[1] = c.f->extent[1] * c.groups;
    for (int d = 0; d < c.n; d++) shape[2 + d] = c.out[d];
    struct tensor *y = node_result(im, c.x->type, c.n + 2, shape);
    if (!y) return false;
    if (!phases_make(&c, &h)) return deconv_scattered(im, &c, y);
    struct tensor *sum = deconv_phases(im, &c, &h, y->buffer);
    if (!sum) return false;
    if (h.scattered && h.whole) {
        phases_side_by_side(im, &c, &h, to);
        emit_statement(im, "%s = %s", tensor_element(im, y, to),
                       sum_narrow(im, y->type, tensor_element(im, sum, h.at)));
        return true;
    }
    if (h.scattered) sum = phases_interleave(im, &c, &h, y->buffer, sum);
    if (!sum) return false;
    deconv_cut(im, &c, y, sum, h.before);
    return true;
}
#endif
