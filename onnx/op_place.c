/* Operators that choose elements by place: shapes as values, slices, splits, repetition. Where
 * places are known when compiling, statements have affine indices. */
#include "onnx/onnx.h"

#ifdef ISAMAP_WITH_ONNX
#include "onnx/onnx_int.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- shapes as values ---- */

bool op_shape(struct import *im) {
    struct tensor *x = node_given(im, 0);
    int64_t start = 0, end = x->ndims, n;
    if (!attribute_int(im, "start", &start) || !attribute_int(im, "end", &end)) return false;
    if (start < 0) start += x->ndims;
    if (end < 0) end += x->ndims;
    start = start < 0 ? 0 : start > x->ndims ? x->ndims : start;
    end = end < start ? start : end > x->ndims ? x->ndims : end;
    n = end - start;
    return node_constant(im, TYPE_I64, 1, &n,
                         arena_copy(im->arena, x->extent + start, (size_t)n * sizeof *x->extent));
}

bool op_size(struct import *im) {
    struct tensor *x = node_given(im, 0);
    return node_constant(im, TYPE_I64, 0, NULL,
                         arena_copy(im->arena, &x->elements, sizeof x->elements));
}

/* The list as a shape; false after reporting. */
static bool shape_of(struct import *im, const char *name, int k, int *ndims, int64_t *extent) {
    const int64_t *list;
    int n;
    if (!node_list(im, name, k, &list, &n)) return false;
    if (!list) return node_fail(im, "input %d ('%s') is missing", k, name);
    if (n > MAX_DIMS) return node_fail(im, "more than %d dimensions", MAX_DIMS);
    *ndims = n;
    if (n) memcpy(extent, list, (size_t)n * sizeof *extent);
    return true;
}

bool op_constant_of_shape(struct import *im) {
    static const float zero;
    const Onnx__AttributeProto *a = attribute_find(im, "value");
    struct tensor v = {.type = TYPE_F32, .elements = 1, .data = &zero};
    int64_t extent[MAX_DIMS];
    int n;
    const char *index[MAX_DIMS];
    if (a && (!a->t || !tensor_from_proto(im->arena, im->path, "the attribute 'value'", a->t, &v,
                                          im->diags)))
        return a->t ? false : node_fail(im, "the attribute 'value' is not a tensor");
    if (v.elements != 1) return node_fail(im, "the attribute 'value' is not one element");
    if (!shape_of(im, "input", 0, &n, extent)) return false;
    struct tensor *y = node_result(im, v.type, n, extent);
    if (!y) return false;
    axes_for(im, n, extent, index);
    emit_statement(im, "%s = %s", tensor_element(im, y, index), tensor_scalar(im, &v));
    return true;
}

/* Of constants, as its length must be known. */
bool op_range(struct import *im) {
    struct tensor *x[3];
    double limit[3] = {0, 0, 1}, count;
    for (int k = 0; k < 3; k++) {
        x[k] = node_input(im, k);
        if (k == 2 && !x[k]) continue; /* of com.microsoft: 1 */
        if (!x[k]->data || x[k]->elements != 1 || x[k]->type != x[0]->type)
            return node_fail(im, "input %d is not a constant of the type of input 0", k);
        limit[k] = tensor_float(x[k], 0);
    }
    if (limit[2] == 0) return node_fail(im, "its step is 0");
    count = ceil((limit[1] - limit[0]) / limit[2]);
    if (isnan(count) || count > 1e12)
        return node_fail(im, "its result, of %g elements, is too large", count);
    if (count < 0) count = 0;
    struct tensor *y = node_result(im, x[0]->type, 1, (int64_t[]){(int64_t)count});
    if (!y) return false;
    const char *i = axis_for(im, "i", (int64_t)count), *t = type_name(y->type);
    emit_statement(im, "%s = %s + %s(%s) * %s", tensor_element(im, y, &i), tensor_scalar(im, x[0]),
                   t, i, x[2] ? tensor_scalar(im, x[2]) : "1");
    return true;
}

/* ---- slices ---- */

/* y[…, i, …] = x[…, from[d] + step[d]*i, …] */
static bool strided(struct import *im, struct tensor *y, struct tensor *x, const int64_t *from,
                    const int64_t *step) {
    const char *index[MAX_DIMS], *at[MAX_DIMS];
    axes_release(im);
    axes_for(im, y->ndims, y->extent, index);
    for (int d = 0; d < x->ndims; d++) at[d] = affine_text(im, 1, &step[d], &index[d], from[d]);
    emit_statement(im, "%s = %s", tensor_element(im, y, index), tensor_element(im, x, at));
    return true;
}

static int64_t clamp(int64_t v, int64_t lo, int64_t hi) {
    return v < lo ? lo : v > hi ? hi : v;
}

/* One dimension of a slice as numpy has it, but one that goes back from before the first element
 * begins with that one; how many elements it takes. */
static int64_t slice_one(int64_t extent, int64_t start, int64_t end, int64_t step, int64_t *from) {
    if (start < 0 && start >= -extent) start += extent;
    if (end < 0 && end >= -extent) end += extent;
    *from = step > 0 ? clamp(start, 0, extent) : extent ? clamp(start, 0, extent - 1) : -1;
    end = step > 0 ? clamp(end, 0, extent) : clamp(end, -1, extent);
    int64_t span = step > 0 ? end - *from : *from - end, by = step > 0 ? step : -step;
    return span > 0 ? (span - 1) / by + 1 : 0;
}

bool op_slice(struct import *im) {
    struct tensor *x = node_input(im, 0);
    const int64_t *list[4]; /* starts, ends, axes, steps */
    static const char *const name[4] = {"starts", "ends", "axes", "steps"};
    int n[4];
    int64_t extent[MAX_DIMS], from[MAX_DIMS] = {0}, step[MAX_DIMS];
    for (int k = 0; k < 4; k++) {
        bool ok = im->opset < 10 ? k == 3 ? (list[k] = NULL, n[k] = 0, true)
                                          : attribute_ints(im, name[k], &list[k], &n[k])
                                 : node_list(im, name[k], k + 1, &list[k], &n[k]);
        if (!ok) return false;
        if (k && list[k] && n[k] != n[0])
            return node_fail(im, "'%s' has %d entries, 'starts' %d", name[k], n[k], n[0]);
    }
    if (!list[0] || !list[1]) return node_fail(im, "'starts' or 'ends' is missing");
    memcpy(extent, x->extent, sizeof extent);
    for (int d = 0; d < MAX_DIMS; d++) step[d] = 1;
    for (int i = 0; i < n[0]; i++) {
        int d = i;
        if (!axis_normal(im, list[2] ? list[2][i] : i, x->ndims, &d)) return false;
        if (list[3]) step[d] = list[3][i];
        if (step[d] == 0 || step[d] < -(INT64_C(1) << 40))
            return node_fail(im, "the step along dimension %d is %" PRId64, d, step[d]);
        extent[d] = slice_one(x->extent[d], list[0][i], list[1][i], step[d], &from[d]);
    }
    if (x->data && x->ndims == 1 && extent[0] < 1) /* of a shape: an empty list */
        return node_constant(im, x->type, 1, extent, x->data);
    struct tensor *y = node_result(im, x->type, x->ndims, extent);
    return y && strided(im, y, x, from, step);
}

bool op_split(struct import *im) {
    struct tensor *x = node_input(im, 0);
    const int64_t *size;
    int64_t extent[MAX_DIMS], from[MAX_DIMS] = {0}, step[MAX_DIMS], parts = 0, sum = 0;
    int axis, n, results = (int)im->node->n_output;
    if (!attribute_axis(im, "axis", 0, x->ndims, &axis) ||
        !attribute_int(im, "num_outputs", &parts) ||
        !(im->opset < 13 && !node_has_input(im, 1) ? attribute_ints(im, "split", &size, &n)
                                                   : node_list(im, "split", 1, &size, &n)))
        return false;
    if (parts && parts != results)
        return node_fail(im, "'num_outputs' is %" PRId64 ", but it has %d results", parts, results);
    if (size && n != results)
        return node_fail(im, "'split' has %d entries, but it has %d results", n, results);
    int64_t each = (x->extent[axis] + results - 1) / results;
    memcpy(extent, x->extent, sizeof extent);
    for (int d = 0; d < MAX_DIMS; d++) step[d] = 1;
    for (int k = 0; k < results; k++) {
        extent[axis] = size ? size[k] : k < results - 1 ? each : x->extent[axis] - sum;
        from[axis] = sum;
        if (extent[axis] < 0 || extent[axis] > x->extent[axis] - sum)
            return node_fail(im, "its parts do not fit %" PRId64 " elements along dimension %d",
                             x->extent[axis], axis);
        sum += extent[axis];
        if (!node_wants(im, k)) continue;
        if (extent[axis] == 0) {
            if (!node_constant_at(im, k, x->type, x->ndims, extent, "")) return false;
            continue;
        }
        struct tensor *y = node_result_at(im, k, x->type, x->ndims, extent);
        if (!y || !strided(im, y, x, from, step)) return false;
    }
    return sum == x->extent[axis] ||
           node_fail(im, "its parts leave out %" PRId64 " elements", x->extent[axis] - sum);
}

/* ---- repetition ---- */

bool op_expand(struct import *im) {
    struct tensor *x = node_input(im, 0), shape = {0}, *both[2] = {x, &shape};
    int64_t extent[MAX_DIMS];
    const char *index[MAX_DIMS];
    int ndims;
    if (!shape_of(im, "shape", 1, &shape.ndims, shape.extent) ||
        !shape_broadcast(im, both, 2, &ndims, extent))
        return false;
    if (ndims == x->ndims && memcmp(extent, x->extent, (size_t)ndims * sizeof *extent) == 0)
        return op_identity(im);
    struct tensor *y = node_result(im, x->type, ndims, extent);
    if (!y) return false;
    axes_for(im, ndims, extent, index);
    emit_statement(im, "%s = %s", tensor_element(im, y, index),
                   tensor_element_broadcast(im, x, ndims, extent, index));
    return true;
}

/* Along each dimension an axis for the repetition and one for the element. */
bool op_tile(struct import *im) {
    struct tensor *x = node_input(im, 0);
    const int64_t *times;
    int64_t extent[MAX_DIMS];
    const char *to[MAX_DIMS], *from[MAX_DIMS];
    int n;
    if (!node_list(im, "repeats", 1, &times, &n)) return false;
    if (n != x->ndims) return node_fail(im, "'repeats' has %d entries, expected %d", n, x->ndims);
    for (int d = 0; d < n; d++)
        if (times[d] < 1 || __builtin_mul_overflow(times[d], x->extent[d], &extent[d]))
            return node_fail(im, "'repeats' has the entry %" PRId64, times[d]);
    struct tensor *y = node_result(im, x->type, n, extent);
    if (!y) return false;
    axes_for(im, n, x->extent, from);
    for (int d = 0; d < n; d++) {
        const char *axis[2] = {axis_for(im, "t", times[d]), from[d]};
        to[d] = affine_text(im, 2, (int64_t[]){x->extent[d], 1}, axis, 0);
    }
    emit_statement(im, "%s = %s", tensor_element(im, y, to), tensor_element(im, x, from));
    return true;
}

/* ---- blocks ---- */

/* *columns: of the parts of a channel's number that of the image comes first, then the block's. */
static bool block_read(struct import *im, struct tensor *x, int64_t *b, bool *columns) {
    const char *mode = "DCR";
    *b = 0;
    if (!attribute_int(im, "blocksize", b) || !attribute_string(im, "mode", &mode)) return false;
    *columns = strcmp(mode, "CRD") == 0;
    if (!*columns && strcmp(mode, "DCR") != 0)
        return node_fail(im, "'mode' is '%s', expected DCR or CRD", name_shown(im->arena, mode));
    if (*b < 1 || *b > 1 << 20) return node_fail(im, "'blocksize' is %" PRId64, *b);
    return x->ndims == 4 || node_fail(im, "the input has %d dimensions, expected 4", x->ndims);
}

bool op_depth_to_space(struct import *im) {
    struct tensor *x = node_input(im, 0);
    int64_t b;
    bool columns;
    if (!block_read(im, x, &b, &columns)) return false;
    if (x->extent[1] % (b * b))
        return node_fail(im, "%" PRId64 " channels are no multiple of the block", x->extent[1]);
    int64_t c = x->extent[1] / (b * b);
    int64_t extent[4] = {x->extent[0], c, x->extent[2] * b, x->extent[3] * b};
    struct tensor *y = node_result(im, x->type, 4, extent);
    if (!y) return false;
    const char *n = axis_for(im, "n", extent[0]), *k = axis_for(im, "c", c),
               *p = axis_for(im, "p", x->extent[2]), *q = axis_for(im, "q", x->extent[3]),
               *r = axis_for(im, "r", b), *s = axis_for(im, "s", b);
    const char *channel =
        affine_text(im, 3, columns ? (int64_t[]){b * b, b, 1} : (int64_t[]){1, b * c, c},
                    (const char *[]){k, r, s}, 0);
    const char *row = affine_text(im, 2, (int64_t[]){b, 1}, (const char *[]){p, r}, 0),
               *column = affine_text(im, 2, (int64_t[]){b, 1}, (const char *[]){q, s}, 0);
    emit_statement(im, "%s = %s", tensor_element(im, y, (const char *[]){n, k, row, column}),
                   tensor_element(im, x, (const char *[]){n, channel, p, q}));
    return true;
}

bool op_space_to_depth(struct import *im) {
    struct tensor *x = node_input(im, 0);
    int64_t b;
    bool columns;
    if (!block_read(im, x, &b, &columns)) return false;
    if (x->extent[2] % b || x->extent[3] % b)
        return node_fail(im, "the input is no multiple of the block");
    int64_t c = x->extent[1],
            extent[4] = {x->extent[0], c * b * b, x->extent[2] / b, x->extent[3] / b};
    struct tensor *y = node_result(im, x->type, 4, extent);
    if (!y) return false;
    const char *n = axis_for(im, "n", extent[0]), *k = axis_for(im, "c", c),
               *p = axis_for(im, "p", extent[2]), *q = axis_for(im, "q", extent[3]),
               *r = axis_for(im, "r", b), *s = axis_for(im, "s", b);
    const char *channel =
        affine_text(im, 3, columns ? (int64_t[]){b * b, b, 1} : (int64_t[]){1, b * c, c},
                    (const char *[]){k, r, s}, 0);
    const char *row = affine_text(im, 2, (int64_t[]){b, 1}, (const char *[]){p, r}, 0),
               *column = affine_text(im, 2, (int64_t[]){b, 1}, (const char *[]){q, s}, 0);
    emit_statement(im, "%s = %s", tensor_element(im, y, (const char *[]){n, channel, p, q}),
                   tensor_element(im, x, (const char *[]){n, k, row, column}));
    return true;
}
#endif
