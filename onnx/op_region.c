/* Operators that look at regions of an image: convolutions whose windows are moved by data, parts
 * of an image brought to one size, blocks put where they overlap. */
#include "onnx/onnx.h"

#ifdef ISAMAP_WITH_ONNX
#include "onnx/onnx_int.h"
#include "onnx/taps.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- DeformConv ---- */

/* columns[n, c, kernel…, outputs…] holds what each window sees, which a matrix product takes. */
struct deform {
    struct window w;
    struct tensor *x, *f, *offset, *bias, *mask, *columns;
    int64_t groups, shares, volume; /* of the weights; of the offsets; elements of a window */
    const char *batch, *share, *inside;
};

static bool has_shape(const struct tensor *t, enum type type, int64_t batch, int64_t channels,
                      const struct window *w) {
    bool same = t->type == type && t->ndims == 2 + w->n && t->extent[0] == batch &&
                t->extent[1] == channels;
    for (int d = 0; same && d < w->n; d++) same = t->extent[2 + d] == w->out[d];
    return same;
}

static bool deform_read(struct import *im, struct deform *v) {
    *v = (struct deform){.x = node_input(im, 0),
                         .f = node_input(im, 1),
                         .offset = node_input(im, 2),
                         .bias = node_input(im, 3),
                         .mask = node_input(im, 4),
                         .groups = 1,
                         .shares = 1,
                         .volume = 1};
    const struct tensor *x = v->x, *f = v->f;
    if (!attribute_int(im, "group", &v->groups) || !attribute_int(im, "offset_group", &v->shares))
        return false;
    if ((x->type != TYPE_F32 && x->type != TYPE_F64) || f->type != x->type || f->ndims != x->ndims)
        return node_fail(im, "input and weights are not of one type, f32 or f64, and one rank");
    if (!window_read(im, x, f->extent + 2, &v->w)) return false;
    if (v->groups < 1 || v->shares < 1 || x->extent[1] % v->groups || f->extent[0] % v->groups ||
        x->extent[1] % v->shares || f->extent[1] != x->extent[1] / v->groups)
        return node_fail(im,
                         "'group' %" PRId64 " and 'offset_group' %" PRId64
                         " do not fit the input %s and the weights %s",
                         v->groups, v->shares, shape_text(im->arena, x->ndims, x->extent),
                         shape_text(im->arena, f->ndims, f->extent));
    for (int d = 0; d < v->w.n; d++) v->volume *= f->extent[2 + d];
    int64_t places = v->shares * v->volume;
    if (!has_shape(v->offset, x->type, x->extent[0], places * v->w.n, &v->w))
        return node_fail(im, "the offsets %s do not fit",
                         shape_text(im->arena, v->offset->ndims, v->offset->extent));
    if (v->mask && !has_shape(v->mask, x->type, x->extent[0], places, &v->w))
        return node_fail(im, "the mask %s does not fit",
                         shape_text(im->arena, v->mask->ndims, v->mask->extent));
    return !v->bias ||
           (v->bias->type == x->type && v->bias->ndims == 1 &&
            v->bias->extent[0] == f->extent[0]) ||
           node_fail(im, "the bias is not a vector of %" PRId64 " elements", f->extent[0]);
}

/* What lies in offsets or mask for the window's elements: `each` numbers for every element, of
 * which this is the `which`-th. */
static const char *deform_at(struct import *im, const struct deform *v, struct tensor *t, int each,
                             int which) {
    const char *index[2 + SPATIAL] = {v->batch}, *axis[1 + SPATIAL] = {v->share};
    int64_t coef[1 + SPATIAL] = {v->volume * each}, step = each;
    for (int d = v->w.n - 1; d >= 0; step *= v->w.kernel[d--]) {
        axis[1 + d] = v->w.kernel_axis[d];
        coef[1 + d] = step;
        index[2 + d] = v->w.out_axis[d];
    }
    index[1] = affine_text(im, 1 + v->w.n, coef, axis, which);
    return tensor_element(im, t, index);
}

/* The window's elements lie between those of the input; outside is 0. */
static bool deform_columns(struct import *im, struct deform *v, const char *base) {
    const struct window *w = &v->w;
    struct taps taps = {.n = w->n};
    int64_t extent[MAX_DIMS] = {v->x->extent[0], v->shares}, each = v->x->extent[1] / v->shares;
    const char *index[MAX_DIMS] = {v->batch, v->share}, *from[2 + SPATIAL] = {v->batch};
    for (int d = 0; d < w->n; d++) {
        extent[2 + d] = w->kernel[d], extent[2 + w->n + d] = w->out[d];
        index[2 + d] = w->kernel_axis[d], index[2 + w->n + d] = w->out_axis[d];
    }
    const char *type = type_name(v->x->type);
    for (int d = 0; d < w->n; d++) {
        struct tensor *place =
            tensor_temporary(im, base, "place", v->x->type, 2 + 2 * w->n, extent);
        if (!place) return false;
        const char *axis[2] = {w->out_axis[d], w->kernel_axis[d]},
                   *p = tensor_element(im, place, index);
        emit_statement(
            im, "%s = %s(%s) + %s", p, type,
            affine_text(im, 2, (int64_t[]){w->stride[d], w->dilation[d]}, axis, -w->before[d]),
            deform_at(im, v, v->offset, w->n, d));
        for (int k = 0; k < 2; k++)
            if (!taps_add(
                    im, &taps, d, base, v->x->type, 2 + 2 * w->n, extent, index,
                    arena_printf(im->arena, "floor(%s) + %d", p, k),
                    arena_printf(im->arena, k ? "%s - floor(%s)" : "1 - (%s - floor(%s))", p, p)))
                return false;
    }
    extent[1] = v->x->extent[1];
    v->columns = tensor_temporary(im, base, "columns", v->x->type, 2 + 2 * w->n, extent);
    if (!v->columns) return false;
    from[1] = index[1] = affine_text(im, 2, (int64_t[]){each, 1},
                                     (const char *[]){v->share, axis_for(im, "c", each)}, 0);
    for (int d = 0; d < w->n; d++) from[2 + d] = axis_for(im, "v", v->x->extent[2 + d]);
    const char *to = tensor_element(im, v->columns, index);
    emit_statement(im, "%s = 0", to);
    taps_sum(im, &taps, to, v->x, from, NULL, v->mask ? deform_at(im, v, v->mask, 1, 0) : NULL);
    return true;
}

bool op_deform_conv(struct import *im) {
    struct deform v;
    int64_t shape[2 + SPATIAL];
    const char *to[2 + SPATIAL], *from[2 + 2 * SPATIAL], *filter[2 + SPATIAL];
    if (!deform_read(im, &v)) return false;
    shape[0] = v.x->extent[0], shape[1] = v.f->extent[0];
    memcpy(shape + 2, v.w.out, sizeof v.w.out);
    struct tensor *y = node_result(im, v.x->type, v.x->ndims, shape);
    if (!y) return false;
    v.batch = axis_for(im, "n", shape[0]);
    v.share = axis_for(im, "g", v.shares);
    window_axes(im, &v.w);
    if (!deform_columns(im, &v, y->buffer)) return false;
    int64_t each = shape[1] / v.groups, channels = v.f->extent[1];
    const char *group = axis_for(im, "g", v.groups), *k = axis_for(im, "k", each),
               *c = axis_for(im, "c", channels);
    to[0] = from[0] = v.batch;
    to[1] = filter[0] = affine_text(im, 2, (int64_t[]){each, 1}, (const char *[]){group, k}, 0);
    from[1] = affine_text(im, 2, (int64_t[]){channels, 1}, (const char *[]){group, c}, 0);
    filter[1] = c;
    for (int d = 0; d < v.w.n; d++) {
        to[2 + d] = from[2 + v.w.n + d] = v.w.out_axis[d];
        filter[2 + d] = from[2 + d] = v.w.kernel_axis[d];
    }
    emit_statement(im, "%s = %s", tensor_element(im, y, to),
                   v.bias ? tensor_element(im, v.bias, &to[1]) : "0");
    emit_statement(im, "%s += %s * %s", tensor_element(im, y, to),
                   tensor_element(im, v.columns, from), tensor_element(im, v.f, filter));
    return true;
}

/* ---- RoiAlign ---- */

struct roi {
    struct tensor *x, *box, *batch;
    int64_t out[2], ratio, samples[2]; /* samples along a bin, at most */
    double scale;
    bool half, max;
    const char *type, *r, *bin[2], *sample[2], *count[2];
};

static bool roi_read(struct import *im, struct roi *o) {
    const char *mode = "avg", *coordinates = im->opset < 16 ? "output_half_pixel" : "half_pixel";
    *o = (struct roi){.x = node_input(im, 0),
                      .box = node_input(im, 1),
                      .batch = node_input(im, 2),
                      .out = {1, 1},
                      .scale = 1};
    if (!attribute_string(im, "mode", &mode) ||
        !attribute_string(im, "coordinate_transformation_mode", &coordinates) ||
        !attribute_int(im, "output_height", &o->out[0]) ||
        !attribute_int(im, "output_width", &o->out[1]) ||
        !attribute_int(im, "sampling_ratio", &o->ratio) ||
        !attribute_float(im, "spatial_scale", &o->scale))
        return false;
    o->half = strcmp(coordinates, "half_pixel") == 0;
    o->max = strcmp(mode, "max") == 0;
    if ((!o->half && strcmp(coordinates, "output_half_pixel") != 0) ||
        (!o->max && strcmp(mode, "avg") != 0))
        return node_fail(im, "mode '%s' with coordinates '%s' is not known",
                         name_shown(im->arena, mode), name_shown(im->arena, coordinates));
    bool fits = (o->x->type == TYPE_F32 || o->x->type == TYPE_F64) && o->x->ndims == 4 &&
                o->box->type == o->x->type && o->box->ndims == 2 && o->box->extent[1] == 4 &&
                o->batch->type == TYPE_I64 && o->batch->ndims == 1 &&
                o->batch->extent[0] == o->box->extent[0];
    o->type = type_name(o->x->type);
    if (o->out[0] < 1 || o->out[0] > MAX_COUNT || o->out[1] < 1 || o->out[1] > MAX_COUNT)
        return node_fail(im, "'output_height' and 'output_width' are %" PRId64 " and %" PRId64,
                         o->out[0], o->out[1]);
    return fits || node_fail(im, "input, regions %s and their images do not fit",
                             shape_text(im->arena, o->box->ndims, o->box->extent));
}

/* Without a ratio the size of a region says how many samples a bin has: at most as many as here. */
static bool roi_samples(struct import *im, struct roi *o) {
    if (o->ratio < 0 || o->ratio > MAX_COUNT)
        return node_fail(im, "'sampling_ratio' is %" PRId64, o->ratio);
    o->samples[0] = o->samples[1] = o->ratio;
    if (o->ratio) return true;
    if (!o->box->data)
        return node_fail(
            im, "'sampling_ratio' is 0 and the regions are not known when compiling, so the "
                "number of samples is not");
    for (int64_t r = 0; r < o->box->extent[0]; r++)
        for (int d = 0; d < 2; d++) {
            double n = tensor_float(o->box, 4 * r + 3 - d) - tensor_float(o->box, 4 * r + 1 - d);
            n = ceil(fmax(n * o->scale, 1) / (double)o->out[d]) + 1;
            if (!(n <= MAX_COUNT)) return node_fail(im, "region %" PRId64 " is too large", r);
            if ((int64_t)n > o->samples[d]) o->samples[d] = (int64_t)n;
        }
    return true;
}

/* Text of the beginning of a region along dimension d, or (end) of its length. */
static const char *roi_edge(struct import *im, const struct roi *o, int d, bool length) {
    static const char *const digit[4] = {"0", "1", "2", "3"};
    const char *scale = text_number(im, o->x->type, o->scale), *e[2];
    for (int k = 0; k < 2; k++) {
        const char *at[2] = {o->r, digit[2 * k + 1 - d]};
        e[k] = arena_printf(im->arena, "(%s * %s%s)", tensor_element(im, o->box, at), scale,
                            o->half ? " - 0.5" : "");
    }
    if (!length) return e[0];
    return arena_printf(im->arena, o->half ? "(%s - %s)" : "max(%s - %s, 1)", e[1], e[0]);
}

/* Samples are those of the input between whose elements they lie, none farther out than 1. */
static bool roi_taps(struct import *im, struct roi *o, int d, const char *base, struct taps *to) {
    int64_t regions = o->box->extent[0], n = o->x->extent[2 + d],
            extent[3] = {regions, o->out[d], o->samples[d]};
    const char *index[3] = {o->r, o->bin[d], o->sample[d]}, *type = o->type;
    struct tensor *size = tensor_temporary(im, base, "size", o->x->type, 1, &regions),
                  *count =
                      size ? tensor_temporary(im, base, "samples", o->x->type, 1, &regions) : NULL,
                  *place =
                      count ? tensor_temporary(im, base, "place", o->x->type, 3, extent) : NULL,
                  *inside =
                      place ? tensor_temporary(im, base, "inside", o->x->type, 3, extent) : NULL;
    if (!inside) return false;
    const char *s = tensor_element(im, size, &o->r), *p = tensor_element(im, place, index),
               *in = tensor_element(im, inside, index);
    o->count[d] = tensor_element(im, count, &o->r);
    emit_statement(im, "%s = %s / %" PRId64, s, roi_edge(im, o, d, true), o->out[d]);
    if (o->ratio)
        emit_statement(im, "%s = %" PRId64, o->count[d], o->ratio);
    else
        emit_statement(im, "%s = max(ceil(%s), 0)", o->count[d], s);
    emit_statement(im, "%s = %s + %s(%s) * %s + (%s(%s) + 0.5) * %s / %s", p,
                   roi_edge(im, o, d, false), type, o->bin[d], s, type, o->sample[d], s,
                   o->count[d]);
    emit_statement(im, "%s = select(%s >= -1 & %s <= %" PRId64 " & %s(%s) < %s, 1, 0)", in, p, p, n,
                   type, o->sample[d], o->count[d]);
    emit_statement(im, "%s = clip(%s, 0, %" PRId64 ")", p, p, n - 1);
    for (int k = 0; k < 2; k++)
        if (!taps_add(im, to, d, base, o->x->type, 3, extent, index,
                      arena_printf(im->arena, "min(floor(%s) + %d, %" PRId64 ")", p, k, n - 1),
                      arena_printf(im->arena,
                                   k ? "(%s - floor(%s)) * %s" : "(1 - (%s - floor(%s))) * %s", p,
                                   p, in)))
            return false;
    return true;
}

bool op_roi_align(struct import *im) {
    struct roi o;
    struct taps taps = {.n = 2};
    if (!roi_read(im, &o) || !roi_samples(im, &o)) return false;
    int64_t extent[4] = {o.box->extent[0], o.x->extent[1], o.out[0], o.out[1]};
    struct tensor *y = node_result(im, o.x->type, 4, extent);
    if (!y) return false;
    o.r = axis_for(im, "r", extent[0]);
    const char *c = axis_for(im, "c", extent[1]), *n = axis_for(im, "n", o.x->extent[0]),
               *from[4] = {n, c};
    for (int d = 0; d < 2; d++) {
        o.bin[d] = axis_for(im, d ? "q" : "p", o.out[d]);
        o.sample[d] = axis_for(im, d ? "j" : "i", o.samples[d]);
        from[2 + d] = axis_for(im, d ? "u" : "v", o.x->extent[2 + d]);
        if (!roi_taps(im, &o, d, y->buffer, &taps)) return false;
    }
    const char *index[4] = {o.r, c, o.bin[0], o.bin[1]}, *to = tensor_element(im, y, index);
    const char *image =
        arena_printf(im->arena, "%s == i64(%s)", tensor_element(im, o.batch, &o.r), n);
    if (!o.max) {
        emit_statement(im, "%s = 0", to);
        taps_sum(im, &taps, to, o.x, from, image, NULL);
        emit_statement(im, "%s = %s / max(%s * %s, 1)", to, to, o.count[0], o.count[1]);
        return true;
    }
    image = arena_printf(im->arena, "%s & %s(%s) < %s & %s(%s) < %s", image, o.type, o.sample[0],
                         o.count[0], o.type, o.sample[1], o.count[1]);
    emit_statement(im, "%s = -inf", to);
    taps_max(im, &taps, to, o.x, from, image);
    emit_statement(im, "%s = select(%s == -inf, 0, %s)", to, to, to);
    return true;
}

/* ---- MaxRoiPool ---- */

/* The first element of each bin along dimension d and the one behind its last, as f32 or f64. */
static bool pool_bins(struct import *im, struct tensor *x, struct tensor *box, int d, double scale,
                      int64_t bins, const char *r, const char *p, const char *of[2]) {
    static const char *const digit[5] = {"0", "1", "2", "3", "4"};
    int64_t extent[2] = {box->extent[0], bins}, n = x->extent[2 + d];
    const char *index[2] = {r, p}, *base = im->node->output[0], *t = type_name(x->type), *corner[2];
    struct tensor *at[2], *start = tensor_temporary(im, base, "start", x->type, 1, extent),
                          *size = tensor_temporary(im, base, "size", x->type, 1, extent);
    if (!start || !size) return false;
    for (int k = 0; k < 2; k++) {
        const char *from[2] = {r, digit[2 + 2 * k - d]};
        at[k] = tensor_temporary(im, base, k ? "end" : "begin", x->type, 2, extent);
        if (!at[k]) return false;
        const char *v = arena_printf(im->arena, "%s * %s", tensor_element(im, box, from),
                                     text_number(im, x->type, scale));
        corner[k] =
            arena_printf(im->arena, "select(%s < 0, -floor(0.5 - %s), floor(%s + 0.5))", v, v, v);
    }
    const char *s = tensor_element(im, start, &r), *z = tensor_element(im, size, &r);
    emit_statement(im, "%s = %s", s, corner[0]);
    emit_statement(im, "%s = max(%s - %s + 1, 1) / %" PRId64, z, corner[1], s, bins);
    for (int k = 0; k < 2; k++) {
        of[k] = tensor_element(im, at[k], index);
        emit_statement(im,
                       k ? "%s = clip(ceil((%s(%s) + 1) * %s) + %s, 0, %" PRId64 ")"
                         : "%s = clip(floor(%s(%s) * %s) + %s, 0, %" PRId64 ")",
                       of[k], t, p, z, s, n);
    }
    return true;
}

/* The greatest element of each bin, along the columns and then along the rows; an empty one has 0.
 */
bool op_max_roi_pool(struct import *im) {
    struct tensor *x = node_input(im, 0), *box = node_input(im, 1);
    int64_t out[2] = {0, 0};
    double scale = 1;
    if (!attribute_counts(im, "pooled_shape", 2, 1, out, NULL) ||
        !attribute_float(im, "spatial_scale", &scale))
        return false;
    if ((x->type != TYPE_F32 && x->type != TYPE_F64) || x->ndims != 4 || box->type != x->type ||
        box->ndims != 2 || box->extent[1] != 5 || out[0] < 1)
        return node_fail(im, "input or regions %s do not fit, or 'pooled_shape' is missing",
                         shape_text(im->arena, box->ndims, box->extent));
    int64_t extent[4] = {box->extent[0], x->extent[1], out[0], out[1]},
            rows[4] = {extent[0], extent[1], x->extent[2], out[1]};
    struct tensor *y = node_result(im, x->type, 4, extent),
                  *row = y ? tensor_temporary(im, y->buffer, "rows", x->type, 4, rows) : NULL;
    if (!row) return false;
    const char *r = axis_for(im, "r", extent[0]), *c = axis_for(im, "c", extent[1]),
               *n = axis_for(im, "n", x->extent[0]), *u = axis_for(im, "v", x->extent[2]),
               *v = axis_for(im, "u", x->extent[3]), *p = axis_for(im, "p", out[0]),
               *q = axis_for(im, "q", out[1]), *h[2], *w[2];
    if (!pool_bins(im, x, box, 0, scale, out[0], r, p, h) ||
        !pool_bins(im, x, box, 1, scale, out[1], r, q, w))
        return false;
    const char *t = type_name(x->type), *image[2] = {r, "0"}, *to[4] = {r, c, u, q},
               *from[4] = {n, c, u, v}, *at[4] = {r, c, p, q}, *m = tensor_element(im, row, to),
               *e = tensor_element(im, y, at);
    emit_statement(im, "%s = -inf", m);
    emit_statement(im, "%s max= select(%s == %s(%s) & %s(%s) >= %s & %s(%s) < %s, %s, -inf)", m,
                   tensor_element(im, box, image), t, n, t, v, w[0], t, v, w[1],
                   tensor_element(im, x, from));
    emit_statement(im, "%s = -inf", e);
    emit_statement(im, "%s max= select(%s(%s) >= %s & %s(%s) < %s, %s, -inf)", e, t, u, h[0], t, u,
                   h[1], m);
    emit_statement(im, "%s = select(%s == -inf, 0, %s)", e, e, e);
    return true;
}

/* ---- Col2Im ---- */

/* x[n, channel and place in a block, block], each added to where it lies in the image */
bool op_col_to_im(struct import *im) {
    struct tensor *x = node_input(im, 0);
    const int64_t *list[2];
    int64_t count[3][2 * SPATIAL] = {{1, 1, 1}, {1, 1, 1}, {0}}, extent[2 + SPATIAL], blocks = 1,
                         volume = 1, steps[2][SPATIAL];
    const char *axis[2][1 + SPATIAL], *to[2 + SPATIAL], *from[3];
    int n[2];
    if (!node_list(im, "image_shape", 1, &list[0], &n[0]) ||
        !node_list(im, "block_shape", 2, &list[1], &n[1]))
        return false;
    if (n[0] < 1 || n[0] > SPATIAL || n[1] != n[0])
        return node_fail(im, "image and block have %d and %d dimensions, expected 1 to %d of both",
                         n[0], n[1], SPATIAL);
    if (!attribute_counts(im, "strides", n[0], 1, count[0], NULL) ||
        !attribute_counts(im, "dilations", n[0], 1, count[1], NULL) ||
        !attribute_counts(im, "pads", 2 * n[0], 0, count[2], NULL))
        return false;
    for (int d = n[0] - 1; d >= 0; d--) {
        int64_t size = list[0][d], block = list[1][d];
        if (size < 1 || size > MAX_COUNT || block < 1 || block > MAX_COUNT)
            return node_fail(im, "image or block of %" PRId64 " and %" PRId64 " elements", size,
                             block);
        int64_t room = size + count[2][d] + count[2][n[0] + d] - count[1][d] * (block - 1) - 1;
        if (room < 0)
            return node_fail(im, "the block is larger than the image along dimension %d", d);
        steps[0][d] = volume, steps[1][d] = blocks;
        if (__builtin_mul_overflow(volume, block, &volume) ||
            __builtin_mul_overflow(blocks, room / count[0][d] + 1, &blocks))
            return node_fail(im, "its blocks are too many");
        axis[0][1 + d] = axis_for(im, "r", block);
        axis[1][d] = axis_for(im, "p", room / count[0][d] + 1);
        extent[2 + d] = size;
    }
    if (x->ndims != 3 || x->type == TYPE_BOOL || x->extent[1] % volume || x->extent[2] != blocks)
        return node_fail(im,
                         "the input %s does not hold %" PRId64 " blocks of %" PRId64 " elements",
                         shape_text(im->arena, x->ndims, x->extent), blocks, volume);
    extent[0] = x->extent[0], extent[1] = x->extent[1] / volume;
    struct tensor *y = node_result(im, x->type, 2 + n[0], extent),
                  *acc = y ? sum_open(im, y) : NULL;
    if (!acc) return false;
    to[0] = from[0] = axis_for(im, "n", extent[0]);
    to[1] = axis[0][0] = axis_for(im, "c", extent[1]);
    int64_t coef[1 + SPATIAL] = {volume};
    memcpy(coef + 1, steps[0], sizeof steps[0]);
    from[1] = affine_text(im, 1 + n[0], coef, axis[0], 0);
    from[2] = affine_text(im, n[0], steps[1], axis[1], 0);
    struct text inside = {0};
    for (int d = 0; d < n[0]; d++) {
        to[2 + d] = affine_text(im, 2, (int64_t[]){count[0][d], count[1][d]},
                                (const char *[]){axis[1][d], axis[0][1 + d]}, -count[2][d]);
        text_printf(&inside, "%s %s >= 0 and %s < %" PRId64, d ? " and" : " where", to[2 + d],
                    to[2 + d], extent[2 + d]);
    }
    const char *plain[2 + SPATIAL];
    axes_for(im, 2 + n[0], extent, plain);
    emit_statement(im, "%s = 0", tensor_element(im, acc, plain));
    emit_statement(im, "%s += %s%s", tensor_element(im, acc, to),
                   sum_widen(im, x->type, tensor_element(im, x, from)), inside.at);
    sum_close(im, y, acc, plain);
    text_free(&inside);
    return true;
}
#endif
