/* Operators that ask where elements stand in an order: arguments of the greatest, hardmax, the k
 * greatest, running sums. */
#include "onnx/onnx.h"

#ifdef ISAMAP_WITH_ONNX
#include "onnx/onnx_int.h"

#include <inttypes.h>
#include <string.h>

static bool ordered(struct import *im, const struct tensor *x) {
    return x->type != TYPE_BOOL ||
           node_fail(im, "the input is bool, which this operator does not take");
}

/* m = the greatest (or least) along the axis, at the index `kept`. */
static struct tensor *extreme(struct import *im, struct tensor *x, bool most, const char *base,
                              int nkept, const int64_t *extent, const char *const *kept,
                              const char *const *index) {
    struct tensor *m = tensor_temporary(im, base, "extreme", x->type, nkept, extent);
    if (!m) return NULL;
    emit_statement(im, "%s = %s", tensor_element(im, m, kept),
                   most ? type_lowest(x->type) : type_highest(x->type));
    emit_statement(im, "%s %s %s", tensor_element(im, m, kept),
                   most ? "max=" : "min=", tensor_element(im, x, index));
    return m;
}

/* The first (or last) place along the axis where x is the extreme. */
static bool argument(struct import *im, bool most) {
    struct tensor *x = node_input(im, 0);
    int64_t keep = 1, last = 0, extent[MAX_DIMS], full[MAX_DIMS];
    const char *index[MAX_DIMS], *kept[MAX_DIMS], *all[MAX_DIMS];
    int axis, n = 0;
    if (!ordered(im, x) || !attribute_axis(im, "axis", 0, x->ndims, &axis) ||
        !attribute_int(im, "keepdims", &keep) || !attribute_int(im, "select_last_index", &last))
        return false;
    axes_for(im, x->ndims, x->extent, index);
    for (int d = 0; d < x->ndims; d++) {
        full[d] = d == axis ? 1 : x->extent[d];
        all[d] = d == axis ? "0" : index[d];
        if (d == axis && !keep) continue;
        extent[n] = full[d];
        kept[n++] = all[d];
    }
    struct tensor *y = node_result(im, TYPE_I64, n, extent);
    struct tensor *m = y ? extreme(im, x, most, y->buffer, x->ndims, full, all, index) : NULL;
    if (!m) return false;
    const char *to = tensor_element(im, y, kept);
    emit_statement(im, "%s = %" PRId64, to, last ? 0 : x->extent[axis] - 1);
    emit_statement(im, "%s %s select(%s == %s, i64(%s), %" PRId64 ")", to,
                   last ? "max=" : "min=", tensor_element(im, x, index), tensor_element(im, m, all),
                   index[axis], last ? 0 : x->extent[axis] - 1);
    return true;
}

bool op_arg_max(struct import *im) {
    return argument(im, true);
}

bool op_arg_min(struct import *im) {
    return argument(im, false);
}

/* 1 at the first greatest element along the axis, else 0. Before opset 13 the dimensions from the
 * axis on are one. */
bool op_hardmax(struct import *im) {
    struct tensor *x = node_input(im, 0);
    int64_t extent[MAX_DIMS];
    const char *index[MAX_DIMS], *kept[MAX_DIMS];
    int axis;
    if (!type_is_float(x->type) || x->ndims == 0)
        return node_fail(im, "the input is not a tensor of floats");
    if (!attribute_axis(im, "axis", im->opset < 13 ? (x->ndims > 1) : -1, x->ndims, &axis))
        return false;
    if (im->opset < 13 && axis != x->ndims - 1)
        return node_fail(im, "before opset 13 only the last axis is supported");
    axes_for(im, x->ndims, x->extent, index);
    for (int d = 0; d < x->ndims; d++) {
        extent[d] = d == axis ? 1 : x->extent[d];
        kept[d] = d == axis ? "0" : index[d];
    }
    struct tensor *y = node_result(im, x->type, x->ndims, x->extent);
    struct tensor *m = y ? extreme(im, x, true, y->buffer, x->ndims, extent, kept, index) : NULL;
    struct tensor *at =
        m ? tensor_temporary(im, y->buffer, "at", TYPE_I64, x->ndims, extent) : NULL;
    if (!at) return false;
    const char *place = tensor_element(im, at, kept);
    emit_statement(im, "%s = %" PRId64, place, x->extent[axis] - 1);
    emit_statement(im, "%s min= select(%s == %s, i64(%s), %" PRId64 ")", place,
                   tensor_element(im, x, index), tensor_element(im, m, kept), index[axis],
                   x->extent[axis] - 1);
    emit_statement(im, "%s = %s(i64(%s) == %s)", tensor_element(im, y, index), type_name(y->type),
                   index[axis], place);
    return true;
}

/* The rank of each element is the number of those before it in the order; the k-th result is the
 * element of rank k. Quadratic in the axis, which no sort is, but affine. */
bool op_top_k(struct import *im) {
    struct tensor *x = node_input(im, 0);
    int64_t largest = 1, sorted = 1, k, extent[MAX_DIMS];
    const char *index[MAX_DIMS], *other[MAX_DIMS], *to[MAX_DIMS];
    const int64_t *list = NULL;
    int axis, n = 0;
    if (!ordered(im, x) || !attribute_axis(im, "axis", -1, x->ndims, &axis) ||
        !attribute_int(im, "largest", &largest) || !attribute_int(im, "sorted", &sorted))
        return false;
    if (im->opset < 10) {
        k = -1;
        if (!attribute_int(im, "k", &k)) return false;
    } else {
        if (!node_list(im, "K", 1, &list, &n)) return false;
        k = n == 1 ? list[0] : -1;
    }
    if (k < 1 || k > x->extent[axis])
        return node_fail(im, "k is %" PRId64 ", but dimension %d has %" PRId64, k, axis,
                         x->extent[axis]);
    memcpy(extent, x->extent, sizeof extent);
    extent[axis] = k;
    struct tensor *value = node_result_at(im, 0, x->type, x->ndims, extent);
    struct tensor *place = value ? node_result_at(im, 1, TYPE_I64, x->ndims, extent) : NULL;
    struct tensor *rank =
        place ? tensor_temporary(im, value->buffer, "rank", TYPE_I64, x->ndims, x->extent) : NULL;
    if (!rank) return false;
    axes_for(im, x->ndims, x->extent, index);
    memcpy(other, index, sizeof other);
    memcpy(to, index, sizeof to);
    other[axis] = axis_for(im, "j", x->extent[axis]);
    const char *a = tensor_element(im, x, index), *b = tensor_element(im, x, other),
               *r = tensor_element(im, rank, index);
    emit_statement(im, "%s = 0", r);
    emit_statement(im, "%s += i64(%s %s %s | %s == %s & i64(%s) < i64(%s))", r, b,
                   largest ? ">" : "<", a, b, a, other[axis], index[axis]);
    to[axis] = axis_for(im, "k", k);
    const char *v = tensor_element(im, value, to), *p = tensor_element(im, place, to);
    emit_statement(im, "%s = 0", v);
    emit_statement(im, "%s += select(%s == i64(%s), %s, 0)", v, r, to[axis], a);
    emit_statement(im, "%s = 0", p);
    emit_statement(im, "%s += select(%s == i64(%s), i64(%s), 0)", p, r, to[axis], index[axis]);
    return true;
}

bool op_cum_sum(struct import *im) {
    struct tensor *x = node_input(im, 0);
    int64_t exclusive = 0, reverse = 0;
    const int64_t *list;
    const char *index[MAX_DIMS], *from[MAX_DIMS];
    int axis, n;
    if (!ordered(im, x) || !node_list(im, "axis", 1, &list, &n) ||
        !attribute_int(im, "exclusive", &exclusive) || !attribute_int(im, "reverse", &reverse))
        return false;
    if (n != 1) return node_fail(im, "input 1 ('axis') has %d elements, expected one", n);
    if (!axis_normal(im, list[0], x->ndims, &axis)) return false;
    struct tensor *y = node_result(im, x->type, x->ndims, x->extent);
    struct tensor *sum = y ? sum_open(im, y) : NULL;
    if (!sum) return false;
    axes_for(im, x->ndims, x->extent, index);
    memcpy(from, index, sizeof from);
    from[axis] = axis_for(im, "j", x->extent[axis]);
    emit_statement(im, "%s = 0", tensor_element(im, sum, index));
    emit_statement(im, "%s += %s where %s %s %s", tensor_element(im, sum, index),
                   sum_widen(im, x->type, tensor_element(im, x, from)), from[axis],
                   reverse     ? exclusive ? ">" : ">="
                   : exclusive ? "<"
                               : "<=",
                   index[axis]);
    sum_close(im, y, sum, index);
    return true;
}
/* The first lengths[b] elements of each row in reverse, the others as they are. */
bool op_reverse_sequence(struct import *im) {
    struct tensor *x = node_input(im, 0), *lengths = node_input(im, 1);
    int64_t batch = 1, time = 0;
    const char *index[MAX_DIMS], *from[MAX_DIMS];
    if (!attribute_int(im, "batch_axis", &batch) || !attribute_int(im, "time_axis", &time))
        return false;
    if (x->ndims < 2 || batch < 0 || time < 0 || batch > 1 || time > 1 || batch == time)
        return node_fail(im, "'batch_axis' and 'time_axis' are not 0 and 1 of the input");
    if (lengths->ndims != 1 || lengths->type != TYPE_I64 || lengths->extent[0] != x->extent[batch])
        return node_fail(im, "the lengths are not a vector of %" PRId64 " elements of i64",
                         x->extent[batch]);
    struct tensor *y = node_result(im, x->type, x->ndims, x->extent);
    if (!y) return false;
    axes_for(im, x->ndims, x->extent, index);
    memcpy(from, index, sizeof from);
    from[time] = axis_for(im, "s", x->extent[time]);
    const char *n = tensor_element(im, lengths, &index[batch]), *to = tensor_element(im, y, index);
    const char *t = arena_printf(im->arena, "i64(%s)", index[time]);
    emit_statement(im, "%s = 0", to);
    emit_statement(im, "%s %s select(i64(%s) == select(%s < %s, %s - 1 - %s, %s), %s, 0)", to,
                   x->type == TYPE_BOOL ? "max=" : "+=", from[time], t, n, n, t, t,
                   tensor_element(im, x, from));
    return true;
}
#endif
