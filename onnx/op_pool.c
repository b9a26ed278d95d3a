/* Pools: the greatest, the mean or a norm of each window, and where the greatest stood. */
#include "onnx/onnx.h"

#ifdef ISAMAP_WITH_ONNX
#include "onnx/onnx_int.h"
#include "onnx/window.h"

#include <inttypes.h>
#include <string.h>

struct pool {
    struct window w;
    struct tensor *x;
    int64_t shape[2 + SPATIAL];
    const char *index[2 + SPATIAL];
};

/* The result's buffer comes from `make`, so that axes are asked for once. */
static bool pool_read(struct import *im, struct pool *p) {
    p->x = node_input(im, 0);
    if (!window_read(im, p->x, NULL, &p->w)) return false;
    memcpy(p->shape, p->x->extent, 2 * sizeof *p->shape);
    memcpy(p->shape + 2, p->w.out, sizeof p->w.out);
    return true;
}

static void pool_axes(struct import *im, struct pool *p) {
    p->index[0] = axis_for(im, "n", p->shape[0]);
    p->index[1] = axis_for(im, "c", p->shape[1]);
    window_axes(im, &p->w);
    memcpy(p->index + 2, p->w.out_axis, sizeof p->w.out_axis);
}

/* Where in the input, seen as a line, the first greatest element of each window is. By columns: the
 * last two dimensions count the other way round. */
static bool pool_indices(struct import *im, const struct pool *p, struct tensor *y, bool columns) {
    enum { PARTS = 2 + 2 * SPATIAL };
    const char *axis[PARTS] = {p->index[0], p->index[1]}, *x_index[2 + SPATIAL];
    int64_t coef[PARTS], size = 1, offset = 0, each[SPATIAL];
    struct text where = {0};
    struct tensor *at = node_result_at(im, 1, TYPE_I64, y->ndims, y->extent);
    if (!at) return false;
    for (int d = 0; d < p->w.n; d++) size *= p->w.in[d];
    coef[1] = size;
    coef[0] = size * p->shape[1];
    for (int d = 0; d < p->w.n; d++)
        each[d] = columns ? (d ? each[d - 1] * p->w.in[d - 1] : 1) : (size /= p->w.in[d]);
    x_index[0] = p->index[0], x_index[1] = p->index[1];
    for (int d = 0; d < p->w.n; d++) {
        const struct window *w = &p->w;
        axis[2 + 2 * d] = w->out_axis[d], axis[3 + 2 * d] = w->kernel_axis[d];
        coef[2 + 2 * d] = w->stride[d] * each[d], coef[3 + 2 * d] = w->dilation[d] * each[d];
        offset -= w->before[d] * each[d];
        x_index[2 + d] =
            affine_text(im, 2, (int64_t[]){w->stride[d], w->dilation[d]},
                        (const char *[]){w->out_axis[d], w->kernel_axis[d]}, -w->before[d]);
        if (w->leaves[d])
            text_printf(&where, "%s %s >= 0 and %s < %" PRId64, where.n ? " and" : " where",
                        x_index[2 + d], x_index[2 + d], w->in[d]);
    }
    const char *to = tensor_element(im, at, p->index);
    emit_statement(im, "%s = %s", to, type_highest(TYPE_I64));
    emit_statement(im, "%s min= select(%s == %s, i64(%s), %s)%s", to,
                   tensor_element(im, p->x, x_index), tensor_element(im, y, p->index),
                   affine_text(im, 2 + 2 * p->w.n, coef, axis, offset), type_highest(TYPE_I64),
                   where.n ? where.at : "");
    text_free(&where);
    return true;
}

bool op_max_pool(struct import *im) {
    struct pool p;
    int64_t order = 0;
    if (!attribute_int(im, "storage_order", &order) || !pool_read(im, &p)) return false;
    if (p.x->type == TYPE_BOOL)
        return node_fail(im, "the input is bool, which this operator does not take");
    struct tensor *y = node_result(im, p.x->type, p.x->ndims, p.shape);
    if (!y) return false;
    pool_axes(im, &p);
    const char *least = type_lowest(y->type);
    emit_statement(im, "%s = %s", tensor_element(im, y, p.index), least);
    emit_statement(im, "%s max= %s", tensor_element(im, y, p.index),
                   window_element(im, &p.w, p.x, p.index[0], p.index[1], least));
    return !node_wants(im, 1) || pool_indices(im, &p, y, order != 0);
}

/* Each element goes back to the place, in the result seen as a line, that its index names. */
bool op_max_unpool(struct import *im) {
    struct tensor *x = node_input(im, 0), *at = node_input(im, 1);
    struct window w = {.n = x->ndims - 2};
    int64_t shape[MAX_DIMS], pads[2 * SPATIAL] = {0}, coef[MAX_DIMS], size = 1;
    const char *index[MAX_DIMS], *from[MAX_DIMS];
    const int64_t *list;
    int n;
    if (w.n < 1 || w.n > SPATIAL || at->ndims != x->ndims || at->type != TYPE_I64 ||
        at->elements != x->elements || !type_is_float(x->type))
        return node_fail(im, "the indices do not fit the input, or it has not 1 to 3 spatial "
                             "dimensions of floats");
    for (int d = 0; d < w.n; d++) w.stride[d] = 1;
    if (!attribute_counts(im, "kernel_shape", w.n, 1, w.kernel, NULL) ||
        !attribute_counts(im, "strides", w.n, 1, w.stride, NULL) ||
        !attribute_counts(im, "pads", 2 * w.n, 0, pads, NULL) ||
        !node_list(im, "output_shape", 2, &list, &n))
        return false;
    if (list && n != x->ndims) return node_fail(im, "'output_shape' has %d entries", n);
    for (int d = 0; d < x->ndims; d++) {
        int s = d - 2;
        shape[d] = list ? list[d]
                   : s < 0
                       ? x->extent[d]
                       : (x->extent[d] - 1) * w.stride[s] + w.kernel[s] - pads[s] - pads[w.n + s];
    }
    struct tensor *y = node_result(im, x->type, x->ndims, shape);
    if (!y) return false;
    /* an index counts in the shape without `output_shape`, of which the result is a wider one */
    for (int d = x->ndims - 1; d >= 0; d--) {
        int s = d - 2;
        coef[d] = size;
        size *= s < 0 ? x->extent[d]
                      : (x->extent[d] - 1) * w.stride[s] + w.kernel[s] - pads[s] - pads[w.n + s];
    }
    axes_for(im, y->ndims, shape, index);
    for (int d = 0; d < x->ndims; d++) from[d] = d < 2 ? index[d] : axis_for(im, "v", x->extent[d]);
    emit_statement(im, "%s = 0", tensor_element(im, y, index));
    emit_statement(im, "%s += select(%s == i64(%s), %s, 0)", tensor_element(im, y, index),
                   tensor_element(im, at, from), affine_text(im, y->ndims, coef, index, 0),
                   tensor_element(im, x, from));
    return true;
}

/* How many elements of the window at output `o` lie inside the input, with its padding or without,
 * along d. */
static int64_t inside(const struct window *w, int d, int64_t o, bool padding) {
    int64_t n = 0, from = padding ? -w->before[d] : 0, to = w->in[d] + (padding ? w->after[d] : 0);
    for (int64_t k = 0; k < w->kernel[d]; k++) {
        int64_t at = o * w->stride[d] + k * w->dilation[d] - w->before[d];
        n += at >= from && at < to;
    }
    return n;
}

/* A constant with the number of elements that each window averages. */
static struct tensor *window_counts(struct import *im, const struct window *w, bool padding,
                                    const char *base, enum type type) {
    static const int64_t most = 1 << 22;
    int64_t n = 1, work = 0;
    for (int d = 0; d < w->n; d++) {
        if (w->out[d] > most || __builtin_mul_overflow(n, w->out[d], &n) || n > most) return NULL;
        if (__builtin_add_overflow(work, w->out[d] * w->kernel[d], &work) || work > 64 * most)
            return NULL;
    }
    char *data = arena_array(im->arena, (size_t)n, type_size(type));
    int64_t *along[SPATIAL];
    for (int d = 0; d < w->n; d++) {
        along[d] = arena_array(im->arena, (size_t)w->out[d], sizeof **along);
        for (int64_t o = 0; o < w->out[d]; o++) along[d][o] = inside(w, d, o, padding);
    }
    for (int64_t i = 0; i < n; i++) {
        int64_t rest = i, count = 1;
        for (int d = w->n - 1; d >= 0; d--) {
            count *= along[d][rest % w->out[d]];
            rest /= w->out[d];
        }
        type_store(type, data + (size_t)i * type_size(type), (union value){.f = (double)count});
    }
    return tensor_constant(im, base, "count", type, w->n, w->out, data);
}

const char *window_divisor(struct import *im, const struct window *w, bool padding,
                           const char *base, enum type type) {
    int64_t volume = 1;
    bool leaves = false;
    for (int d = 0; d < w->n; d++) {
        leaves |= w->leaves[d];
        if (__builtin_mul_overflow(volume, w->kernel[d], &volume))
            return node_fail(im, "its window is too large"), NULL;
    }
    /* what lies behind the padding does not count */
    if (!leaves || (padding && !w->ceil)) return text_number(im, type, (double)volume);
    struct tensor *counts = window_counts(im, w, padding, base, type);
    if (!counts)
        return node_fail(im, "its result is too large to count the elements of each window"), NULL;
    return tensor_element(im, counts, w->out_axis);
}

bool op_average_pool(struct import *im) {
    struct pool p;
    int64_t include = 0;
    if (!attribute_int(im, "count_include_pad", &include) || !pool_read(im, &p)) return false;
    if (!type_is_float(p.x->type)) return node_fail(im, "the input is not of floats");
    struct tensor *y = node_result(im, p.x->type, p.x->ndims, p.shape);
    struct tensor *sum =
        y ? tensor_temporary(im, y->buffer, "sum", sum_type(y->type), y->ndims, y->extent) : NULL;
    if (!sum) return false;
    pool_axes(im, &p);
    const char *count = window_divisor(im, &p.w, include != 0, y->buffer, sum->type);
    if (!count) return false;
    emit_statement(im, "%s = 0", tensor_element(im, sum, p.index));
    const char *x = window_element(im, &p.w, p.x, p.index[0], p.index[1], "0");
    emit_statement(im, "%s += %s", tensor_element(im, sum, p.index), sum_widen(im, y->type, x));
    const char *mean = arena_printf(im->arena, "%s / %s", tensor_element(im, sum, p.index), count);
    emit_statement(im, "%s = %s", tensor_element(im, y, p.index), sum_narrow(im, y->type, mean));
    return true;
}

static bool global_pool(struct import *im, bool average) {
    struct tensor *x = node_input(im, 0);
    int64_t shape[MAX_DIMS], volume = 1;
    const char *index[MAX_DIMS], *to[MAX_DIMS];
    if (x->ndims < 3)
        return node_fail(im, "an input of %d dimensions has nothing to pool", x->ndims);
    if (!type_is_float(x->type)) return node_fail(im, "the input is not of floats");
    axes_for(im, x->ndims, x->extent, index);
    for (int d = 0; d < x->ndims; d++) {
        shape[d] = d < 2 ? x->extent[d] : 1;
        to[d] = d < 2 ? index[d] : "0";
        if (d >= 2) volume *= x->extent[d];
    }
    struct tensor *y = node_result(im, x->type, x->ndims, shape), *sum = y;
    if (y && average)
        sum = tensor_temporary(im, y->buffer, "sum", sum_type(y->type), y->ndims, shape);
    if (!y || !sum) return false;
    emit_statement(im, "%s = %s", tensor_element(im, sum, to),
                   average ? "0" : type_lowest(x->type));
    const char *e = tensor_element(im, x, index);
    if (!average) {
        emit_statement(im, "%s max= %s", tensor_element(im, y, to), e);
        return true;
    }
    emit_statement(im, "%s += %s", tensor_element(im, sum, to), sum_widen(im, x->type, e));
    const char *mean = arena_printf(im->arena, "%s / %s", tensor_element(im, sum, to),
                                    text_number(im, sum->type, (double)volume));
    emit_statement(im, "%s = %s", tensor_element(im, y, to), sum_narrow(im, y->type, mean));
    return true;
}

bool op_global_average_pool(struct import *im) {
    return global_pool(im, true);
}

bool op_global_max_pool(struct import *im) {
    return global_pool(im, false);
}

/* y: the p-th root of the sum of the p-th powers of the sizes of elements. */
static void lp_sum(struct import *im, struct tensor *y, struct tensor *sum, const char *const *to,
                   const char *element, int64_t power) {
    const char *x = sum_widen(im, y->type, element), *all = tensor_element(im, sum, to);
    emit_statement(im, "%s = 0", all);
    if (power == 1)
        emit_statement(im, "%s += abs(%s)", all, x);
    else if (power == 2)
        emit_statement(im, "%s += %s * %s", all, x, x);
    else
        emit_statement(im, "%s += pow(abs(%s), %" PRId64 ")", all, x, power);
    const char *root = power == 1   ? all
                       : power == 2 ? arena_printf(im->arena, "sqrt(%s)", all)
                                    : arena_printf(im->arena, "pow(%s, %s)", all,
                                                   text_number(im, sum->type, 1 / (double)power));
    emit_statement(im, "%s = %s", tensor_element(im, y, to), sum_narrow(im, y->type, root));
}

bool op_global_lp_pool(struct import *im) {
    struct tensor *x = node_input(im, 0), *y, *sum;
    int64_t power = 2, shape[MAX_DIMS];
    const char *index[MAX_DIMS], *to[MAX_DIMS];
    if (!attribute_int(im, "p", &power)) return false;
    if (!type_is_float(x->type) || x->ndims < 3 || power < 1)
        return node_fail(im, "the input is not of floats in space, or 'p' is %" PRId64, power);
    axes_for(im, x->ndims, x->extent, index);
    for (int d = 0; d < x->ndims; d++) {
        shape[d] = d < 2 ? x->extent[d] : 1;
        to[d] = d < 2 ? index[d] : "0";
    }
    if (!(y = node_result(im, x->type, x->ndims, shape))) return false;
    sum = tensor_temporary(im, y->buffer, "sum", sum_type(y->type), y->ndims, shape);
    if (sum) lp_sum(im, y, sum, to, tensor_element(im, x, index), power);
    return sum != NULL;
}

/* The p-th root of the sum of the p-th powers, of the sizes of the elements of each window. */
bool op_lp_pool(struct import *im) {
    struct pool p;
    int64_t power = 2;
    if (!attribute_int(im, "p", &power) || !pool_read(im, &p)) return false;
    if (!type_is_float(p.x->type) || power < 1)
        return node_fail(im, "the input is not of floats, or 'p' is %" PRId64, power);
    struct tensor *y = node_result(im, p.x->type, p.x->ndims, p.shape), *sum = NULL;
    if (y) sum = tensor_temporary(im, y->buffer, "sum", sum_type(y->type), y->ndims, y->extent);
    if (!sum) return false;
    pool_axes(im, &p);
    lp_sum(im, y, sum, p.index, window_element(im, &p.w, p.x, p.index[0], p.index[1], "0"), power);
    return true;
}
#endif
