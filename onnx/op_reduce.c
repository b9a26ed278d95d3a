/* Reductions over axes, and softmax, which is made of them. */
#include "onnx/onnx.h"

#ifdef ISAMAP_WITH_ONNX
#include "onnx/onnx_int.h"

#include <string.h>

/* The dimensions of x that are kept, their extents, and the index of each side. */
struct reduction {
    struct tensor *x;
    bool reduced[MAX_DIMS];
    const char *index[MAX_DIMS]; /* of x */
    const char *kept_index[MAX_DIMS];
    int64_t kept[MAX_DIMS];
    int nkept;
    int64_t count; /* elements that become one */
};

/* keep: reduced dimensions stay, with extent 1 */
static void reduction_axes(struct import *im, struct reduction *r, bool keep) {
    int64_t extent[MAX_DIMS];
    for (int d = 0; d < r->x->ndims; d++) /* of an empty input nothing is read */
        extent[d] = r->x->extent[d] ? r->x->extent[d] : 1;
    axes_for(im, r->x->ndims, extent, r->index);
    r->count = 1;
    r->nkept = 0;
    for (int d = 0; d < r->x->ndims; d++) {
        if (r->reduced[d]) r->count *= r->x->extent[d];
        if (r->reduced[d] && !keep) continue;
        r->kept_index[r->nkept] = r->reduced[d] ? "0" : r->index[d];
        r->kept[r->nkept++] = r->reduced[d] ? 1 : r->x->extent[d];
    }
}

static bool numeric(struct import *im, const struct tensor *x, bool floats) {
    if (type_is_float(x->type) || (!floats && x->type != TYPE_BOOL)) return true;
    return node_fail(im, "the input is %s, which this operator does not take", type_name(x->type));
}

/* What is reduced, how, and what becomes of the sum; % stands for the element and the sum. */
struct reducer {
    const char *initial, *combine, *element, *result;
    bool mean;
    bool truths; /* bool is taken too */
};

static const char *filled(struct import *im, const char *text, const char *operand) {
    struct text t = {0};
    if (!text) return operand;
    for (const char *c = text; *c; c++)
        text_append(&t, *c == '%' ? operand : c, *c == '%' ? strlen(operand) : 1);
    const char *s = arena_strdup(im->arena, t.at);
    text_free(&t);
    return s;
}

/* Before anything is written: dimensions, kept ones first. False after reporting; *none: there is
 * nothing to reduce. */
static bool reduction_read(struct import *im, struct reduction *out, bool *none, bool truths) {
    struct reduction r = {.x = node_given(im, 0)};
    const int64_t *axes;
    int64_t keep = 1, no_axes_is_none = 0;
    int n;
    bool inputs =
        im->opset >= 18 || (im->opset >= 13 && strcmp(im->node->op_type, "ReduceSum") == 0);
    if (!inputs && node_has_input(im, 1))
        return node_fail(im, "axes as an input are of a later opset");
    if ((!truths && !numeric(im, r.x, false)) ||
        !attribute_or_input(im, "axes", inputs ? 1 : -1, &axes, &n) ||
        !attribute_int(im, "keepdims", &keep) ||
        !attribute_int(im, "noop_with_empty_axes", &no_axes_is_none))
        return false;
    *none = n == 0 && no_axes_is_none;
    for (int i = 0; i < n; i++) {
        int d;
        if (!axis_normal(im, axes[i], r.x->ndims, &d)) return false;
        r.reduced[d] = true;
    }
    for (int d = 0; n == 0 && d < r.x->ndims; d++) r.reduced[d] = true;
    reduction_axes(im, &r, keep != 0);
    *out = r;
    return true;
}

/* The element that is reduced, in the type of the sum. */
static const char *reduced_element(struct import *im, const struct reduction *r, enum type type) {
    const char *from = tensor_element(im, r->x, r->index);
    return type == r->x->type ? from : arena_printf(im->arena, "%s(%s)", type_name(type), from);
}

/* Of nothing it gives the initial value and what becomes of that. */
static bool reduce(struct import *im, struct reducer how) {
    struct reduction r;
    bool none;
    if (!reduction_read(im, &r, &none, how.truths)) return false;
    if (none && !how.element && !how.result) return op_identity(im);
    for (int d = 0; none && d < r.x->ndims; d++) r.reduced[d] = false;
    if (none) axes_release(im), reduction_axes(im, &r, true);
    bool apart = how.mean || how.result;
    struct tensor *y = node_result(im, r.x->type, r.nkept, r.kept), *sum = NULL;
    if (y && apart)
        sum = tensor_temporary(im, y->buffer, "sum",
                               how.result && !type_is_float(y->type) ? TYPE_F64 : sum_type(y->type),
                               y->ndims, y->extent);
    else if (y)
        sum = strcmp(how.combine, "+=") == 0 ? sum_open(im, y) : y;
    if (!sum) return false;
    const char *to = tensor_element(im, sum, r.kept_index);
    emit_statement(im, "%s = %s", to, how.initial);
    if (r.x->elements) {
        const char *from = reduced_element(im, &r, sum->type);
        emit_statement(im, "%s %s %s", to, how.combine, filled(im, how.element, from));
    }
    if (!apart) {
        sum_close(im, y, sum, r.kept_index);
        return true;
    }
    const char *value = how.mean ? arena_printf(im->arena, "%s / %s", to,
                                                text_number(im, sum->type, (double)r.count))
                                 : filled(im, how.result, to);
    if (sum->type != y->type) value = arena_printf(im->arena, "%s(%s)", type_name(y->type), value);
    emit_statement(im, "%s = %s", tensor_element(im, y, r.kept_index), value);
    return true;
}

bool op_reduce_sum(struct import *im) {
    return reduce(im, (struct reducer){"0", "+=", NULL, NULL, false, false});
}

bool op_reduce_mean(struct import *im) {
    return reduce(im, (struct reducer){"0", "+=", NULL, NULL, true, false});
}

bool op_reduce_max(struct import *im) {
    return reduce(im, (struct reducer){type_lowest(node_given(im, 0)->type), "max=", NULL, NULL,
                                       false, true});
}

bool op_reduce_min(struct import *im) {
    return reduce(im, (struct reducer){type_highest(node_given(im, 0)->type), "min=", NULL, NULL,
                                       false, true});
}

bool op_reduce_prod(struct import *im) {
    return reduce(im, (struct reducer){"1", "*=", NULL, NULL, false, false});
}

bool op_reduce_l1(struct import *im) {
    return reduce(im, (struct reducer){"0", "+=", "abs(%)", NULL, false, false});
}

bool op_reduce_l2(struct import *im) {
    return reduce(im, (struct reducer){"0", "+=", "% * %", "sqrt(%)", false, false});
}

bool op_reduce_sum_square(struct import *im) {
    return reduce(im, (struct reducer){"0", "+=", "% * %", NULL, false, false});
}

bool op_reduce_log_sum(struct import *im) {
    return reduce(im, (struct reducer){"0", "+=", NULL, "log(%)", false, false});
}

/* Around the greatest element, so that no exponential overflows. */
bool op_reduce_log_sum_exp(struct import *im) {
    struct reduction r;
    bool none;
    if (!reduction_read(im, &r, &none, false)) return false;
    if (none) return op_identity(im);
    enum type wide = type_is_float(r.x->type) ? sum_type(r.x->type) : TYPE_F64;
    struct tensor *y = node_result(im, r.x->type, r.nkept, r.kept);
    struct tensor *m = y ? tensor_temporary(im, y->buffer, "max", wide, r.nkept, r.kept) : NULL;
    struct tensor *sum = m ? tensor_temporary(im, y->buffer, "sum", wide, r.nkept, r.kept) : NULL;
    if (!sum) return false;
    const char *most = tensor_element(im, m, r.kept_index),
               *s = tensor_element(im, sum, r.kept_index);
    if (!r.x->elements) {
        emit_statement(im, "%s = -inf", tensor_element(im, y, r.kept_index));
        return true;
    }
    const char *e = reduced_element(im, &r, wide);
    emit_statement(im, "%s = -inf", most);
    emit_statement(im, "%s max= %s", most, e);
    emit_statement(im, "%s = 0", s);
    emit_statement(im, "%s += exp(%s - %s)", s, e, most);
    emit_statement(im, "%s = %s(%s + log(%s))", tensor_element(im, y, r.kept_index),
                   type_name(y->type), most, s);
    return true;
}

/* Opened as in Apollo §3.2: maximum, exponentials, their sum, quotient. */
static bool softmax(struct import *im, bool logarithm) {
    struct reduction r = {.x = node_input(im, 0)};
    int axis;
    if (!numeric(im, r.x, true)) return false;
    if (r.x->ndims == 0) return node_fail(im, "the input has no dimensions");
    if (!attribute_axis(im, "axis", im->opset < 13 ? (r.x->ndims > 1) : -1, r.x->ndims, &axis))
        return false;
    for (int d = axis; d < r.x->ndims; d++) r.reduced[d] = d == axis || im->opset < 13;
    reduction_axes(im, &r, false);
    struct tensor *x = r.x, *y = node_result(im, x->type, x->ndims, x->extent);
    struct tensor *m = y ? tensor_temporary(im, y->buffer, "max", x->type, r.nkept, r.kept) : NULL;
    struct tensor *e =
        m ? tensor_temporary(im, y->buffer, "exp", x->type, x->ndims, x->extent) : NULL;
    struct tensor *z =
        e ? tensor_temporary(im, y->buffer, "sum", sum_type(x->type), r.nkept, r.kept) : NULL;
    if (!z) return false;
    const char *at = tensor_element(im, x, r.index), *most = tensor_element(im, m, r.kept_index);
    const char *power = tensor_element(im, e, r.index), *sum = tensor_element(im, z, r.kept_index);
    emit_statement(im, "%s = -inf", most);
    emit_statement(im, "%s max= %s", most, at);
    emit_statement(im, "%s = exp(%s - %s)", power, at, most);
    emit_statement(im, "%s = 0", sum);
    emit_statement(im, "%s += %s", sum, sum_widen(im, x->type, power));
    const char *value =
        logarithm ? arena_printf(im->arena, "%s - %s - log(%s)", sum_widen(im, x->type, at),
                                 sum_widen(im, x->type, most), sum)
                  : arena_printf(im->arena, "%s / %s", sum_widen(im, x->type, power), sum);
    emit_statement(im, "%s = %s", tensor_element(im, y, r.index), sum_narrow(im, x->type, value));
    return true;
}

bool op_softmax(struct import *im) {
    return softmax(im, false);
}

bool op_log_softmax(struct import *im) {
    return softmax(im, true);
}
#endif
