/* Operators on elements that are more than a formula: their operands have several types, an
 * attribute chooses the operation, or the elements are chosen by their place. */
#include "onnx/onnx.h"

#ifdef ISAMAP_WITH_ONNX
#include "onnx/onnx_int.h"

#include <inttypes.h>
#include <string.h>

/* The result of `n` operands that are broadcast together: the statement's two sides. */
struct pointwise {
    struct tensor *x[3], *y;
    const char *element[3], *to;
    const char *index[MAX_DIMS];
};

static bool pointwise(struct import *im, struct pointwise *p, int n, enum type type) {
    int64_t extent[MAX_DIMS];
    int ndims;
    for (int k = 0; k < n; k++) p->x[k] = node_input(im, k);
    if (!shape_broadcast(im, p->x, n, &ndims, extent)) return false;
    if (!(p->y = node_result(im, type, ndims, extent))) return false;
    axes_for(im, ndims, extent, p->index);
    for (int k = 0; k < n; k++)
        p->element[k] = tensor_element_broadcast(im, p->x[k], ndims, extent, p->index);
    p->to = tensor_element(im, p->y, p->index);
    return true;
}

static bool one_type(struct import *im, int a, int b) {
    enum type x = node_input(im, a)->type, y = node_input(im, b)->type;
    return x == y || node_fail(im, "inputs %d and %d are %s and %s, but must have one type", a, b,
                               type_name(x), type_name(y));
}

bool op_where(struct import *im) {
    struct pointwise p;
    if (node_input(im, 0)->type != TYPE_BOOL) return node_fail(im, "input 0 is not bool");
    if (!one_type(im, 1, 2) || !pointwise(im, &p, 3, node_input(im, 1)->type)) return false;
    emit_statement(im, "%s = select(%s, %s, %s)", p.to, p.element[0], p.element[1], p.element[2]);
    return true;
}

/* A slope of the channels alone has one dimension before opset 7, and in models of later ones too.
 */
bool op_prelu(struct import *im) {
    struct tensor *x = node_input(im, 0), *slope = node_input(im, 1);
    const char *index[MAX_DIMS];
    bool channels = slope->ndims == 1 && x->ndims > 2 && slope->extent[0] == x->extent[1] &&
                    (im->opset < 7 || x->extent[x->ndims - 1] != slope->extent[0]);
    if (!one_type(im, 0, 1)) return false;
    if (x->type == TYPE_BOOL)
        return node_fail(im, "the input is bool, which this operator does not take");
    struct tensor *both[2] = {x, slope};
    int64_t extent[MAX_DIMS];
    int ndims;
    if (!channels && !shape_broadcast(im, both, 2, &ndims, extent)) return false;
    if (!channels && ndims != x->ndims) return node_fail(im, "the slope does not fit the input");
    struct tensor *y = node_result(im, x->type, x->ndims, x->extent);
    if (!y) return false;
    axes_for(im, x->ndims, x->extent, index);
    const char *e = tensor_element(im, x, index);
    const char *s = channels ? tensor_element(im, slope, &index[1])
                             : tensor_element_broadcast(im, slope, x->ndims, x->extent, index);
    emit_statement(im, "%s = select(%s < 0, %s * %s, %s)", tensor_element(im, y, index), e, s, e,
                   e);
    return true;
}

/* Integers are compared and shifted in f64, as `bias` and `lambd` are floats. */
bool op_shrink(struct import *im) {
    struct tensor *x = node_input(im, 0);
    const char *index[MAX_DIMS];
    double bias = 0, lambd = 0.5;
    if (x->type == TYPE_BOOL)
        return node_fail(im, "the input is bool, which this operator does not take");
    if (!attribute_float(im, "bias", &bias) || !attribute_float(im, "lambd", &lambd)) return false;
    struct tensor *y = node_result(im, x->type, x->ndims, x->extent);
    if (!y) return false;
    axes_for(im, x->ndims, x->extent, index);
    bool whole = !type_is_float(x->type);
    enum type in = whole ? TYPE_F64 : x->type;
    const char *e = tensor_element(im, x, index), *low = text_number(im, in, -lambd),
               *high = text_number(im, in, lambd), *shift = text_number(im, in, bias);
    if (whole) e = arena_printf(im->arena, "f64(%s)", e);
    emit_statement(im, "%s = %s(select(%s < %s, %s + (%s), select(%s > %s, %s - (%s), 0)))",
                   tensor_element(im, y, index), type_name(x->type), e, low, e, shift, e, high, e,
                   shift);
    return true;
}

/* The one value of a constant of floats; as it was where there is none, or several. */
static void one_value(const struct tensor *t, double *out) {
    if (t->data && t->elements == 1 && type_is_float(t->type)) *out = type_load(t->type, t->data).f;
}

/* The result has the type of the base. Powers of integers are computed in f64, small whole ones of
 * floats as products. */
bool op_pow(struct import *im) {
    struct pointwise p;
    enum type base = node_input(im, 0)->type, power = node_input(im, 1)->type;
    if (base == TYPE_BOOL || power == TYPE_BOOL)
        return node_fail(im, "an input is bool, which this operator does not take");
    if (!pointwise(im, &p, 2, base)) return false;
    double n = 0;
    const char *x = p.element[0];
    if (type_is_float(base)) one_value(node_input(im, 1), &n);
    if (n == 2)
        emit_statement(im, "%s = %s * %s", p.to, x, x);
    else if (n == 3)
        emit_statement(im, "%s = %s * %s * %s", p.to, x, x, x);
    else if (type_is_float(base) && power == base)
        emit_statement(im, "%s = pow(%s, %s)", p.to, p.element[0], p.element[1]);
    else
        emit_statement(im, "%s = %s(pow(f64(%s), f64(%s)))", p.to, type_name(base), p.element[0],
                       p.element[1]);
    return true;
}

/* Without `fmod` the remainder has the sign of the divisor. */
bool op_mod(struct import *im) {
    struct pointwise p;
    int64_t fmod = 0;
    enum type type = node_input(im, 0)->type;
    if (!attribute_int(im, "fmod", &fmod) || !one_type(im, 0, 1)) return false;
    if (type == TYPE_BOOL)
        return node_fail(im, "the inputs are bool, which this operator does not take");
    if (!pointwise(im, &p, 2, type)) return false;
    const char *a = p.element[0], *b = p.element[1];
    if (fmod || (!type_is_signed(type) && !type_is_float(type)))
        emit_statement(im, "%s = %s %% %s", p.to, a, b);
    else if (type_is_float(type)) /* the sign is the divisor's */
        emit_statement(
            im, "%s = select(%s %% %s != 0 & (%s %% %s < 0) != (%s < 0), %s %% %s + %s, %s %% %s)",
            p.to, a, b, a, b, b, a, b, b, a, b);
    else
        emit_statement(im, "%s = (%s %% %s + %s) %% %s", p.to, a, b, b, b);
    return true;
}

bool op_bit_shift(struct import *im) {
    struct pointwise p;
    const char *direction = "";
    enum type type = node_input(im, 0)->type;
    if (!attribute_string(im, "direction", &direction) || !one_type(im, 0, 1)) return false;
    bool left = strcmp(direction, "LEFT") == 0;
    if (!left && strcmp(direction, "RIGHT") != 0)
        return node_fail(im, "'direction' is '%s', expected LEFT or RIGHT",
                         name_shown(im->arena, direction));
    if (type_is_float(type) || type == TYPE_BOOL)
        return node_fail(im, "the inputs are %s, expected integers", type_name(type));
    if (!pointwise(im, &p, 2, type)) return false;
    const char *by = p.element[1];
    if (type_is_signed(type)) /* by less than nothing is by more than there is */
        by = arena_printf(im->arena, "select(%s < 0, %d, %s)", by, (int)type_size(type) * 8, by);
    emit_statement(im, "%s = %s(%s, %s)", p.to, left ? "shl" : "shr", p.element[0], by);
    return true;
}

bool op_is_inf(struct import *im) {
    struct pointwise p;
    int64_t negative = 1, positive = 1;
    if (!attribute_int(im, "detect_negative", &negative) ||
        !attribute_int(im, "detect_positive", &positive))
        return false;
    if (!type_is_float(node_input(im, 0)->type)) return node_fail(im, "the input is not of floats");
    if (!pointwise(im, &p, 1, TYPE_BOOL)) return false;
    const char *x = p.element[0];
    const char *test = negative && positive ? arena_printf(im->arena, "abs(%s) == inf", x)
                       : negative           ? arena_printf(im->arena, "%s == -inf", x)
                       : positive           ? arena_printf(im->arena, "%s == inf", x)
                                  : arena_printf(im->arena, "%s == inf & %s == -inf", x, x);
    emit_statement(im, "%s = %s", p.to, test);
    return true;
}

bool op_cast_like(struct import *im) {
    struct pointwise p;
    enum type type = node_input(im, 1)->type;
    int64_t saturate = 1;
    if (!attribute_int(im, "saturate", &saturate)) return false;
    if (type == node_input(im, 0)->type) return op_identity(im);
    if (!pointwise(im, &p, 1, type)) return false;
    if (type == TYPE_BOOL)
        emit_statement(im, "%s = %s != 0", p.to, p.element[0]);
    else
        emit_statement(im, "%s = %s(%s)", p.to, type_name(type), p.element[0]);
    return true;
}

bool op_mean(struct import *im) {
    enum { MOST = 64 };
    struct tensor *x[MOST];
    int64_t extent[MAX_DIMS];
    const char *index[MAX_DIMS];
    int ndims, n = (int)im->node->n_input;
    if (im->node->n_input > MOST)
        return node_fail(im, "more than %d inputs are not supported", MOST);
    for (int k = 0; k < n; k++) {
        if (!(x[k] = node_input(im, k))) return node_fail(im, "input %d is missing", k);
        if (!type_is_float(x[k]->type) || x[k]->type != x[0]->type)
            return node_fail(im, "the inputs are not of one float type");
    }
    if (!shape_broadcast(im, x, n, &ndims, extent)) return false;
    struct tensor *y = node_result(im, x[0]->type, ndims, extent);
    if (!y) return false;
    axes_for(im, ndims, extent, index);
    struct text sum = {0};
    for (int k = 0; k < n; k++)
        text_printf(&sum, "%s%s", k ? " + " : "",
                    tensor_element_broadcast(im, x[k], ndims, extent, index));
    emit_statement(im, "%s = (%s) / %d", tensor_element(im, y, index), sum.at, n);
    text_free(&sum);
    return true;
}

/* The approximation by tanh, or exact through erf. */
bool op_gelu(struct import *im) {
    struct pointwise p;
    const char *how = "none";
    if (!attribute_string(im, "approximate", &how)) return false;
    if (!type_is_float(node_input(im, 0)->type)) return node_fail(im, "the input is not of floats");
    bool by_tanh = strcmp(how, "tanh") == 0;
    if (!by_tanh && strcmp(how, "none") != 0)
        return node_fail(im, "'approximate' is '%s', expected none or tanh",
                         name_shown(im->arena, how));
    if (!pointwise(im, &p, 1, node_input(im, 0)->type)) return false;
    const char *x = p.element[0];
    if (by_tanh)
        emit_statement(
            im, "%s = 0.5 * %s * (1 + tanh(0.7978845608028654 * (%s + 0.044715 * %s * %s * %s)))",
            p.to, x, x, x, x, x);
    else
        emit_statement(im, "%s = 0.5 * %s * (1 + erf(%s * 0.7071067811865476))", p.to, x, x);
    return true;
}

/* ---- by place ---- */

/* The diagonal that an attribute or a constant input names. */
static bool diagonal(struct import *im, int64_t *k) {
    const int64_t *list;
    int n;
    *k = 0;
    if (!node_list(im, "k", 1, &list, &n)) return false;
    if (list && n != 1) return node_fail(im, "input 1 ('k') has %d elements, expected one", n);
    if (list) *k = list[0];
    return true;
}

bool op_trilu(struct import *im) {
    struct tensor *x = node_input(im, 0);
    const char *index[MAX_DIMS];
    int64_t upper = 1, k;
    if (x->ndims < 2) return node_fail(im, "the input is not a matrix");
    if (!attribute_int(im, "upper", &upper) || !diagonal(im, &k)) return false;
    struct tensor *y = node_result(im, x->type, x->ndims, x->extent);
    if (!y) return false;
    axes_for(im, x->ndims, x->extent, index);
    emit_statement(im, "%s = select(i64(%s) - i64(%s) %s %" PRId64 ", %s, 0)",
                   tensor_element(im, y, index), index[x->ndims - 1], index[x->ndims - 2],
                   upper ? ">=" : "<=", k, tensor_element(im, x, index));
    return true;
}

bool op_eye_like(struct import *im) {
    struct tensor *x = node_input(im, 0);
    const char *index[MAX_DIMS];
    int64_t k = 0, to = -1;
    enum type type = x->type;
    if (x->ndims != 2) return node_fail(im, "the input is not a matrix");
    if (!attribute_int(im, "k", &k) || !attribute_int(im, "dtype", &to)) return false;
    if (to >= 0 && (to > INT32_MAX || !tensor_type((int32_t)to, &type)))
        return node_fail(im, "the type that 'dtype' gives, %" PRId64 ", is not supported", to);
    struct tensor *y = node_result(im, type, 2, x->extent);
    if (!y) return false;
    axes_for(im, 2, x->extent, index);
    emit_statement(im, "%s = %s(i64(%s) - i64(%s) == %" PRId64 ")", tensor_element(im, y, index),
                   type_name(type), index[1], index[0], k);
    return true;
}
#endif
