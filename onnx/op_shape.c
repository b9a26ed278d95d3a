/* Operators that move elements: reshape and its relatives, transpose, concat; constants and
 * casts. */
#include "onnx/onnx.h"

#ifdef ISAMAP_WITH_ONNX
#include "onnx/onnx_int.h"

#include <inttypes.h>
#include <string.h>

/* Boundaries of a shape: the products of its last 1, 2, … extents. */
static int boundaries(const struct tensor *t, int64_t *out) {
    int64_t product = 1;
    int n = 0;
    for (int d = t->ndims - 1; d >= 0; d--) {
        if (t->extent[d] == 1) continue;
        out[n++] = product *= t->extent[d];
    }
    return n;
}

/* The smallest factors of the linear index in which both shapes are affine; false: there are none,
 * as for [2,3] -> [3,2]. */
static bool common_factors(const struct tensor *a, const struct tensor *b, int64_t *factor,
                           int *n) {
    int64_t x[MAX_DIMS], y[MAX_DIMS], before = 1;
    int nx = boundaries(a, x), ny = boundaries(b, y), i = 0, j = 0;
    *n = 0;
    while (i < nx || j < ny) {
        int64_t next = j >= ny || (i < nx && x[i] < y[j]) ? x[i] : y[j];
        if (next % before) return false;
        factor[(*n)++] = next / before;
        i += i < nx && x[i] == next;
        j += j < ny && y[j] == next;
        before = next;
    }
    return true;
}

/* For each dimension of `t` its index over the axes of the factors, which are the last first. */
static void factor_index(struct import *im, const struct tensor *t, const int64_t *factor,
                         const char *const *axis, const char **index) {
    int f = 0;
    for (int d = t->ndims - 1; d >= 0; d--) {
        int64_t coef[2 * MAX_DIMS], size = 1;
        const char *own[2 * MAX_DIMS];
        int k = 0;
        while (size < t->extent[d]) {
            coef[k] = size;
            own[k++] = axis[f];
            size *= factor[f++];
        }
        for (int i = 0; i < k / 2; i++) {
            int64_t c = coef[i];
            const char *o = own[i];
            coef[i] = coef[k - 1 - i], coef[k - 1 - i] = c;
            own[i] = own[k - 1 - i], own[k - 1 - i] = o;
        }
        index[d] = affine_text(im, k, coef, own, 0);
    }
}

static void copy_through(struct import *im, struct tensor *to, struct tensor *from, int n,
                         const int64_t *factor) {
    const char *axis[2 * MAX_DIMS], *to_index[MAX_DIMS], *from_index[MAX_DIMS];
    static const char *const hint[] = {"k", "j", "i"};
    axes_release(im);
    for (int f = n - 1; f >= 0; f--) axis[f] = axis_for(im, f < 3 ? hint[f] : "m", factor[f]);
    factor_index(im, to, factor, axis, to_index);
    factor_index(im, from, factor, axis, from_index);
    emit_statement(im, "%s = %s", tensor_element(im, to, to_index),
                   tensor_element(im, from, from_index));
}

bool emit_copy(struct import *im, struct tensor *to, struct tensor *from) {
    int64_t factor[2 * MAX_DIMS];
    int n;
    if (!to->elements) return true;
    if (common_factors(to, from, factor, &n)) {
        copy_through(im, to, from, n, factor);
        return true;
    }
    struct tensor *line = tensor_temporary(im, to->buffer, "line", to->type, 1, &to->elements);
    if (!line) return false;
    if (common_factors(line, from, factor, &n)) copy_through(im, line, from, n, factor);
    if (common_factors(to, line, factor, &n)) copy_through(im, to, line, n, factor);
    return true;
}

bool op_identity(struct import *im) {
    struct tensor *x = node_given(im, 0);
    return node_alias(im, x, x->ndims, x->extent);
}

bool op_dropout(struct import *im) {
    double ratio = 0;
    int64_t seed = 0, test = im->opset < 7 ? 0 : 1;
    struct tensor *training = node_input(im, 2);
    if (!attribute_float(im, "ratio", &ratio) || !attribute_int(im, "seed", &seed) ||
        !attribute_int(im, "is_test", &test))
        return false;
    if (!test || (training && (!training->data || tensor_int(training, 0))))
        return node_fail(im, "only inference is supported, not training");
    if (node_wants(im, 1)) { /* nothing is dropped */
        struct tensor *x = node_input(im, 0);
        struct tensor *mask =
            node_result_at(im, 1, im->opset < 10 ? x->type : TYPE_BOOL, x->ndims, x->extent);
        const char *index[MAX_DIMS];
        if (!mask) return false;
        axes_for(im, x->ndims, x->extent, index);
        emit_statement(im, "%s = 1", tensor_element(im, mask, index));
    }
    return op_identity(im);
}

bool op_constant_node(struct import *im) {
    const Onnx__AttributeProto *a;
    int64_t n;
    if ((a = attribute_find(im, "value"))) {
        struct tensor t = {0};
        if (!a->t) return node_fail(im, "the attribute 'value' is not a tensor");
        return tensor_from_proto(im->arena, im->path,
                                 arena_printf(im->arena, "constant of node %d", im->node_index),
                                 a->t, &t, im->diags) &&
               node_constant(im, t.type, t.ndims, t.extent, t.data);
    }
    if ((a = attribute_find(im, "sparse_value")) && a->sparse_tensor) {
        struct tensor t = {0};
        return tensor_from_sparse(im->arena, im->path,
                                  arena_printf(im->arena, "constant of node %d", im->node_index),
                                  a->sparse_tensor, &t, im->diags) &&
               node_constant(im, t.type, t.ndims, t.extent, t.data);
    }
    if ((a = attribute_find(im, "value_float")))
        return node_constant(im, TYPE_F32, 0, NULL, arena_copy(im->arena, &a->f, sizeof a->f));
    if ((a = attribute_find(im, "value_int")))
        return node_constant(im, TYPE_I64, 0, NULL, arena_copy(im->arena, &a->i, sizeof a->i));
    if ((a = attribute_find(im, "value_floats")) && (n = (int64_t)a->n_floats) >= 0)
        return node_constant(im, TYPE_F32, 1, &n,
                             arena_copy(im->arena, a->floats, a->n_floats * sizeof *a->floats));
    if ((a = attribute_find(im, "value_ints")) && (n = (int64_t)a->n_ints) >= 0)
        return node_constant(im, TYPE_I64, 1, &n,
                             arena_copy(im->arena, a->ints, a->n_ints * sizeof *a->ints));
    return node_fail(im, "a constant needs the attribute value, sparse_value, value_float, "
                         "value_int, value_floats or value_ints");
}

bool op_cast(struct import *im) {
    struct tensor *x = node_given(im, 0);
    int64_t to = 0, saturate = 1;
    enum type type;
    const char *index[MAX_DIMS];
    if (!attribute_int(im, "to", &to) || !attribute_int(im, "saturate", &saturate)) return false;
    if (to < 0 || to > INT32_MAX || !tensor_type((int32_t)to, &type))
        return node_fail(im, "the type that 'to' gives, %" PRId64 ", is not supported", to);
    if (type == x->type) return op_identity(im);
    if (x->elements == 0) return node_constant(im, type, x->ndims, x->extent, x->data);
    struct tensor *y = node_result(im, type, x->ndims, x->extent);
    if (!y) return false;
    axes_for(im, x->ndims, x->extent, index);
    const char *e = tensor_element(im, x, index);
    if (type == TYPE_BOOL)
        emit_statement(im, "%s = %s != 0", tensor_element(im, y, index), e);
    else
        emit_statement(im, "%s = %s(%s)", tensor_element(im, y, index), type_name(type), e);
    return true;
}

/* The same bits as another type of as many: of constants any, else integers, whose casts keep them.
 */
bool op_bit_cast(struct import *im) {
    struct tensor *x = node_given(im, 0);
    int64_t to = 0;
    enum type type;
    if (!attribute_int(im, "to", &to)) return false;
    if (to < 0 || to > INT32_MAX || !tensor_type((int32_t)to, &type) ||
        type_size(type) != type_size(x->type))
        return node_fail(im, "the type that 'to' gives, %" PRId64 ", has not the size of %s", to,
                         type_name(x->type));
    bool same = type == x->type, integers = !type_is_float(type) && !type_is_float(x->type);
    if (x->data && (same || type != TYPE_BOOL))
        return node_constant(im, type, x->ndims, x->extent, x->data);
    if (!same && (!integers || type == TYPE_BOOL))
        return node_fail(im, "bits of %s as %s are not supported, but for constants",
                         type_name(x->type), type_name(type));
    struct inner n = {.input = {im->node->input[0]}, .ninputs = 1, .output = {im->node->output[0]}};
    inner_int(im, &n, "to", to);
    return inner_lower(im, &n, "Cast");
}

bool op_flatten(struct import *im) {
    struct tensor *x = node_input(im, 0);
    int64_t axis = 1, extent[2] = {1, 1};
    if (!attribute_int(im, "axis", &axis)) return false;
    if (axis < -x->ndims || axis > x->ndims)
        return node_fail(im, "axis %" PRId64 " is outside a tensor of %d dimensions", axis,
                         x->ndims);
    if (axis < 0) axis += x->ndims;
    for (int d = 0; d < x->ndims; d++) extent[d >= axis] *= x->extent[d];
    return node_alias(im, x, 2, extent);
}

bool op_reshape(struct import *im) {
    struct tensor *x = node_input(im, 0);
    const int64_t *shape;
    int64_t extent[MAX_DIMS], allow_zero = 0, known = 1;
    int n, open = -1;
    if (!attribute_or_input(im, "shape", 1, &shape, &n) ||
        !attribute_int(im, "allowzero", &allow_zero))
        return false;
    if (!shape) return node_fail(im, "no shape is given");
    if (n > MAX_DIMS) return node_fail(im, "more than %d dimensions", MAX_DIMS);
    for (int d = 0; d < n; d++) {
        extent[d] = shape[d];
        if (shape[d] == 0 && !allow_zero) {
            if (d >= x->ndims)
                return node_fail(
                    im, "dimension %d of the shape is 0, but the input has no such dimension", d);
            extent[d] = x->extent[d];
        }
        if (extent[d] == -1 && open >= 0) return node_fail(im, "the shape has -1 twice");
        if (extent[d] == -1)
            open = d;
        else if (extent[d] < 0)
            return node_fail(im, "dimension %d of the shape is %" PRId64, d, extent[d]);
        if (extent[d] != -1 && __builtin_mul_overflow(known, extent[d], &known))
            return node_fail(im, "the shape has too many elements");
    }
    if (open >= 0 && known && x->elements % known == 0) known *= extent[open] = x->elements / known;
    if (known != x->elements || (open >= 0 && extent[open] == -1))
        return node_fail(im, "%" PRId64 " elements cannot have the shape %s", x->elements,
                         shape_text(im->arena, n, shape));
    return node_alias(im, x, n, extent);
}

/* marks[d]: d is in the list; `ndims` of the tensor that the axes count in */
static bool mark_axes(struct import *im, const int64_t *axes, int n, int ndims, bool *marks) {
    memset(marks, 0, sizeof *marks * MAX_DIMS);
    for (int i = 0; i < n; i++) {
        int d;
        if (!axis_normal(im, axes[i], ndims, &d)) return false;
        if (marks[d]) return node_fail(im, "axis %d is given twice", d);
        marks[d] = true;
    }
    return true;
}

bool op_squeeze(struct import *im) {
    struct tensor *x = node_given(im, 0);
    const int64_t *axes;
    int64_t extent[MAX_DIMS];
    bool drop[MAX_DIMS];
    int n, ndims = 0;
    if (!attribute_or_input(im, "axes", 1, &axes, &n) || !mark_axes(im, axes, n, x->ndims, drop))
        return false;
    for (int d = 0; d < x->ndims; d++) {
        if (drop[d] && x->extent[d] != 1)
            return node_fail(im, "dimension %d is %" PRId64 " and cannot be squeezed", d,
                             x->extent[d]);
        if (axes ? !drop[d] : x->extent[d] != 1) extent[ndims++] = x->extent[d];
    }
    return node_alias(im, x, ndims, extent);
}

bool op_unsqueeze(struct import *im) {
    struct tensor *x = node_given(im, 0);
    const int64_t *axes;
    int64_t extent[MAX_DIMS];
    bool added[MAX_DIMS];
    int n, from = 0;
    if (!attribute_or_input(im, "axes", 1, &axes, &n)) return false;
    if (!axes) return node_fail(im, "no axes are given");
    if (x->ndims + n > MAX_DIMS) return node_fail(im, "more than %d dimensions", MAX_DIMS);
    if (!mark_axes(im, axes, n, x->ndims + n, added)) return false;
    for (int d = 0; d < x->ndims + n; d++) extent[d] = added[d] ? 1 : x->extent[from++];
    return node_alias(im, x, x->ndims + n, extent);
}

bool op_transpose(struct import *im) {
    struct tensor *x = node_input(im, 0);
    const int64_t *perm;
    const char *index[MAX_DIMS], *from[MAX_DIMS];
    int64_t extent[MAX_DIMS];
    bool seen[MAX_DIMS];
    int n;
    if (!attribute_ints(im, "perm", &perm, &n)) return false;
    if (perm && (n != x->ndims || !mark_axes(im, perm, n, x->ndims, seen)))
        return n == x->ndims ? false
                             : node_fail(im, "'perm' has %d entries, but the input %d dimensions",
                                         n, x->ndims);
    for (int d = 0; d < x->ndims; d++) {
        int64_t p = perm ? perm[d] : x->ndims - 1 - d;
        extent[d] = x->extent[p < 0 ? p + x->ndims : p];
    }
    struct tensor *y = node_result(im, x->type, x->ndims, extent);
    if (!y) return false;
    axes_for(im, y->ndims, extent, index);
    for (int d = 0; d < x->ndims; d++) {
        int64_t p = perm ? perm[d] : x->ndims - 1 - d;
        from[p < 0 ? p + x->ndims : p] = index[d];
    }
    emit_statement(im, "%s = %s", tensor_element(im, y, index), tensor_element(im, x, from));
    return true;
}

/* Empty tensors, as lists of dimensions may be, add nothing. */
bool op_concat(struct import *im) {
    struct tensor *x = node_given(im, 0);
    int64_t extent[MAX_DIMS], at = 0;
    const char *index[MAX_DIMS], *to[MAX_DIMS];
    int axis;
    if (im->opset >= 4 && !attribute_find(im, "axis"))
        return node_fail(im, "the attribute 'axis' is missing");
    if (!attribute_axis(im, "axis", 1, x->ndims, &axis)) return false;
    memcpy(extent, x->extent, sizeof extent);
    extent[axis] = 0;
    for (int k = 0; k < (int)im->node->n_input; k++) {
        struct tensor *t = node_given(im, k);
        bool fits = t && t->type == x->type && t->ndims == x->ndims;
        for (int d = 0; fits && d < x->ndims; d++) fits = d == axis || t->extent[d] == x->extent[d];
        if (!fits && t && t->elements == 0) continue;
        if (!fits)
            return node_fail(im, "input %d does not fit beside input 0 along axis %d", k, axis);
        if (__builtin_add_overflow(extent[axis], t->extent[axis], &extent[axis]))
            return node_fail(im, "its result is too large");
    }
    bool nothing = false;
    for (int d = 0; d < x->ndims; d++) nothing |= extent[d] == 0;
    if (nothing) return node_constant(im, x->type, x->ndims, extent, "");
    struct tensor *y = node_result(im, x->type, x->ndims, extent);
    if (!y) return false;
    for (int k = 0; k < (int)im->node->n_input; k++) {
        struct tensor *t = node_given(im, k);
        if (t->elements == 0) continue;
        axes_release(im);
        axes_for(im, t->ndims, t->extent, index);
        memcpy(to, index, sizeof to);
        to[axis] = affine_text(im, 1, (int64_t[]){1}, &index[axis], at);
        emit_statement(im, "%s = %s", tensor_element(im, y, to), tensor_element(im, t, index));
        at += t->extent[axis];
    }
    return true;
}
#endif
