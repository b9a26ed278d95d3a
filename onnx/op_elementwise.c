/* Operators that are one formula of elements with broadcasting, and those close to them: clip,
 * batch normalisation. */
#include "onnx/onnx.h"

#ifdef ISAMAP_WITH_ONNX
#include "onnx/onnx_int.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { FLOATS = 1, SIGNED = 2, UNSIGNED = 4, BOOLS = 8 };
enum { INTS = SIGNED | UNSIGNED, NUMBERS = FLOATS | INTS, ANY = NUMBERS | BOOLS };

/* $0 $1 $2 stand for the operands, @0 @1 for the attributes, # for the type of the operands. A
 * variadic formula is applied from left to right. */
struct formula {
    const char *name;
    int inputs; /* 0: variadic */
    int types;  /* allowed for the operands */
    const char *text;
    struct {
        const char *name;
        double preset;
    } attribute[2];
    bool to_bool; /* the result's type, instead of the operands' */
};

static const struct formula formulas[] = {
    {"Relu", 1, FLOATS | SIGNED, "max($0, 0)", {{0}}, false},
    {"LeakyRelu", 1, FLOATS, "select($0 < 0, @0 * $0, $0)", {{"alpha", 0.01}}, false},
    {"ThresholdedRelu", 1, FLOATS, "select($0 > @0, $0, 0)", {{"alpha", 1}}, false},
    {"Elu", 1, FLOATS, "select($0 < 0, @0 * (exp($0) - 1), $0)", {{"alpha", 1}}, false},
    {"Selu",
     1,
     FLOATS,
     "@1 * select($0 > 0, $0, @0 * (exp($0) - 1))",
     {{"alpha", 1.67326319217681884765625}, {"gamma", 1.05070102214813232421875}},
     false},
    {"Swish", 1, FLOATS, "$0 * sigmoid(@0 * $0)", {{"alpha", 1}}, false},
    {"SwiGLU", 2, FLOATS, "$0 * sigmoid(@0 * $0) * $1", {{"alpha", 1}}, false},
    {"HardSwish", 1, FLOATS, "$0 * clip($0 / 6 + 0.5, 0, 1)", {{0}}, false},
    {"Sigmoid", 1, FLOATS, "sigmoid($0)", {{0}}, false},
    {"Tanh", 1, FLOATS, "tanh($0)", {{0}}, false},
    {"Exp", 1, FLOATS, "exp($0)", {{0}}, false},
    {"Log", 1, FLOATS, "log($0)", {{0}}, false},
    {"Sqrt", 1, FLOATS, "sqrt($0)", {{0}}, false},
    {"Sin", 1, FLOATS, "sin($0)", {{0}}, false},
    {"Cos", 1, FLOATS, "cos($0)", {{0}}, false},
    {"Erf", 1, FLOATS, "erf($0)", {{0}}, false},
    {"Reciprocal", 1, FLOATS, "1 / $0", {{0}}, false},
    {"Softplus", 1, FLOATS, "max($0, 0) + log(1 + exp(-abs($0)))", {{0}}, false},
    {"Mish", 1, FLOATS, "$0 * tanh(max($0, 0) + log(1 + exp(-abs($0))))", {{0}}, false},
    {"Celu", 1, FLOATS, "select($0 > 0, $0, @0 * (exp($0 / @0) - 1))", {{"alpha", 1}}, false},
    {"Sign", 1, NUMBERS, "select($0 > 0, 1, select($0 < 0, -#(1), $0))", {{0}}, false},
    {"Tan", 1, FLOATS, "sin($0) / cos($0)", {{0}}, false},
    {"Atan", 1, FLOATS, "atan($0)", {{0}}, false},
    {"Asin", 1, FLOATS, "atan($0 / sqrt((1 - $0) * (1 + $0)))", {{0}}, false},
    {"Acos", 1, FLOATS, "2 * atan(sqrt((1 - $0) / (1 + $0)))", {{0}}, false},
    {"Sinh",
     1,
     FLOATS,
     "select(abs($0) < 1, 2 * tanh($0 / 2) / (1 - tanh($0 / 2) * tanh($0 / 2)), exp($0) / 2 - "
     "exp(-$0) / 2)",
     {{0}},
     false},
    {"Cosh", 1, FLOATS, "exp($0) / 2 + exp(-$0) / 2", {{0}}, false},
    {"Asinh",
     1,
     FLOATS,
     "select($0 < 0, -1, 1) * select(abs($0) > 1, log(abs($0)) + log(1 + sqrt(1 + 1 / $0 / $0)), "
     "log(abs($0) + sqrt($0 * $0 + 1)))",
     {{0}},
     false},
    {"Acosh", 1, FLOATS, "log($0 + sqrt($0 - 1) * sqrt($0 + 1))", {{0}}, false},
    {"Atanh", 1, FLOATS, "log((1 + $0) / (1 - $0)) / 2", {{0}}, false},
    {"IsNaN", 1, FLOATS, "$0 != $0", {{0}}, true},
    {"Not", 1, BOOLS, "$0 == 0", {{0}}, false},
    {"And", 2, BOOLS, "$0 & $1", {{0}}, false},
    {"Or", 2, BOOLS, "$0 | $1", {{0}}, false},
    {"Xor", 2, BOOLS, "$0 != $1", {{0}}, true},
    {"BitwiseAnd", 2, INTS, "$0 & $1", {{0}}, false},
    {"BitwiseOr", 2, INTS, "$0 | $1", {{0}}, false},
    {"BitwiseXor", 2, INTS, "$0 ^ $1", {{0}}, false},
    {"BitwiseNot", 1, INTS, "~$0", {{0}}, false},
    {"Softsign", 1, FLOATS, "$0 / (1 + abs($0))", {{0}}, false},
    {"Floor", 1, FLOATS, "floor($0)", {{0}}, false},
    {"Ceil", 1, FLOATS, "ceil($0)", {{0}}, false},
    {"Round", 1, FLOATS, "round($0)", {{0}}, false},
    {"Abs", 1, NUMBERS, "abs($0)", {{0}}, false},
    {"Neg", 1, FLOATS | SIGNED, "-$0", {{0}}, false},
    {"Add", 2, NUMBERS, "$0 + $1", {{0}}, false},
    {"Sub", 2, NUMBERS, "$0 - $1", {{0}}, false},
    {"Mul", 2, NUMBERS, "$0 * $1", {{0}}, false},
    {"Div", 2, NUMBERS, "$0 / $1", {{0}}, false},
    {"Max", 0, NUMBERS, "max($0, $1)", {{0}}, false},
    {"Min", 0, NUMBERS, "min($0, $1)", {{0}}, false},
    {"Sum", 0, FLOATS, "$0 + $1", {{0}}, false},
    {"Equal", 2, ANY, "$0 == $1", {{0}}, true},
    {"Less", 2, NUMBERS, "$0 < $1", {{0}}, true},
    {"LessOrEqual", 2, NUMBERS, "$0 <= $1", {{0}}, true},
    {"Greater", 2, NUMBERS, "$0 > $1", {{0}}, true},
    {"GreaterOrEqual", 2, NUMBERS, "$0 >= $1", {{0}}, true},
};

const struct formula *formula_find(const char *domain, const char *name) {
    if (!standard_domain(domain)) return NULL;
    for (size_t i = 0; i < sizeof formulas / sizeof *formulas; i++)
        if (strcmp(formulas[i].name, name) == 0) return &formulas[i];
    return NULL;
}

const char *formula_name(int i, int *inputs) {
    if ((size_t)i >= sizeof formulas / sizeof *formulas) return NULL;
    *inputs = formulas[i].inputs ? formulas[i].inputs : -1;
    return formulas[i].name;
}

/* max and min give the other operand where one is NaN; these operators pass it on. */
static const struct nan_formula {
    const char *name, *text; /* of floats; what stands in several places must be an element */
    const char *number;      /* of an element and a number that is not NaN */
} nan_formulas[] = {
    {"Relu", "select($0 < 0, 0, $0)", NULL},
    {"Max", "select($0 < $1 | $1 != $1, $1, $0)", "select($0 < $1, $1, $0)"},
    {"Min", "select($0 > $1 | $1 != $1, $1, $0)", "select($0 > $1, $1, $0)"},
};

static const struct nan_formula *nan_formula_find(const char *name, enum type type) {
    for (size_t i = 0; i < sizeof nan_formulas / sizeof *nan_formulas; i++)
        if (type_is_float(type) && strcmp(nan_formulas[i].name, name) == 0) return &nan_formulas[i];
    return NULL;
}

static int type_class(enum type t) {
    return type_is_float(t)    ? FLOATS
           : type_is_signed(t) ? SIGNED
           : t == TYPE_BOOL    ? BOOLS
                               : UNSIGNED;
}

static const char *expand(struct import *im, const char *text, enum type type,
                          const char *const *operand, const char *const *number_of) {
    struct text t = {0};
    for (const char *c = text; *c; c++) {
        if ((*c == '$' || *c == '@') && c[1] >= '0' && c[1] <= '2') {
            const char *s = (*c == '$' ? operand : number_of)[c[1] - '0'];
            text_append(&t, s, strlen(s));
            c++;
        } else if (*c == '#') {
            text_append(&t, type_name(type), strlen(type_name(type)));
        } else {
            text_append(&t, c, 1);
        }
    }
    const char *s = arena_strdup(im->arena, t.at);
    text_free(&t);
    return s;
}

/* Before opset 7 the operands of Add and its relatives had equal shapes, or `broadcast` aligned the
 * second at `axis`. */
static bool old_broadcast(struct import *im, struct tensor **x) {
    int64_t wanted = 0, axis = (int64_t)x[0]->ndims - x[1]->ndims;
    if (!attribute_int(im, "broadcast", &wanted)) return false;
    if (wanted && !attribute_int(im, "axis", &axis)) return false;
    if (axis < 0) axis += x[0]->ndims;
    if (axis < 0 || axis + x[1]->ndims > x[0]->ndims)
        return node_fail(im, "the axis to broadcast along does not fit the inputs");
    if (axis + x[1]->ndims == x[0]->ndims) return true;
    return node_fail(im, "broadcasting along a leading axis, as before opset 7, is not supported");
}

static bool operands(struct import *im, const struct formula *f, struct tensor **x, int n) {
    for (int k = 0; k < n; k++) {
        if (!(x[k] = node_input(im, k))) return node_fail(im, "input %d is missing", k);
        if (!(type_class(x[k]->type) & f->types))
            return node_fail(im, "input %d is %s, which this operator does not take", k,
                             type_name(x[k]->type));
        if (x[k]->type != x[0]->type)
            return node_fail(im, "inputs 0 and %d are %s and %s, but must have one type", k,
                             type_name(x[0]->type), type_name(x[k]->type));
    }
    return n != 2 || f->inputs == 0 || im->opset >= 7 || old_broadcast(im, x);
}

static bool is_number(const struct tensor *x) {
    return x->data && x->elements == 1 && (x->type == TYPE_F32 || x->type == TYPE_F64) &&
           isfinite(type_load(x->type, x->data).f);
}

/* A constant of one element beside a tensor is a number, which instructions take as an immediate.
 * Which of two operands it is; -1. */
static int number_of_two(struct import *im, const struct formula *f, struct tensor *const *x,
                         const char **operand) {
    if (f->to_bool || is_number(x[0]) == is_number(x[1])) return -1;
    int k = is_number(x[1]);
    double v = type_load(x[k]->type, x[k]->data).f;
    operand[k] =
        arena_printf(im->arena, signbit(v) ? "(%s)" : "%s", text_number(im, x[k]->type, v));
    return k;
}

static const char *formula_of_two(struct import *im, const struct formula *f,
                                  struct tensor *const *x, const char **operand,
                                  const char *const *numbers) {
    int number = number_of_two(im, f, x, operand);
    const struct nan_formula *own = nan_formula_find(f->name, x[0]->type);
    const char *second_first[2] = {operand[1], operand[0]};
    if (!own) return expand(im, f->text, x[0]->type, operand, numbers);
    if (number < 0) return expand(im, own->text, x[0]->type, operand, numbers);
    return expand(im, own->number, x[0]->type, number ? operand : second_first, numbers);
}

/* More than two, from left to right. */
static const char *formula_of_all(struct import *im, const struct formula *f, enum type type,
                                  const char *const *element, int n, const char *const *numbers) {
    const char *value = element[0], *any = NULL;
    for (int k = 0; k < n; k++) {
        const char *e = element[k], *operand[2] = {value, e};
        if (k > 0) value = expand(im, f->text, type, operand, numbers);
        any = arena_printf(im->arena, "%s%s%s != %s", any ? any : "", any ? " | " : "", e, e);
    }
    if (n == 1 || !nan_formula_find(f->name, type)) return value;
    return arena_printf(im->arena, "select(%s, nan, %s)", any, value);
}

bool formula_lower(struct import *im, const struct formula *f) {
    enum { MOST = 64 };
    struct tensor *x[MOST];
    int64_t extent[MAX_DIMS];
    const char *index[MAX_DIMS], **element, *numbers[2] = {"0", "0"}, *value;
    int ndims, n = (int)im->node->n_input;
    if (im->node->n_input > MOST)
        return node_fail(im, "more than %d inputs are not supported", MOST);
    if ((f->inputs && n != f->inputs) || n == 0)
        return node_fail(im, "it has %d inputs, expected %d", n, f->inputs ? f->inputs : 1);
    if (!operands(im, f, x, n)) return false;
    for (int k = 0; k < 2 && f->attribute[k].name; k++) {
        double v = (float)f->attribute[k].preset;
        if (!attribute_float(im, f->attribute[k].name, &v)) return false;
        numbers[k] = text_number(im, x[0]->type, v);
    }
    if (!shape_broadcast(im, x, n, &ndims, extent)) return false;
    struct tensor *y = node_result(im, f->to_bool ? TYPE_BOOL : x[0]->type, ndims, extent);
    if (!y) return false;
    axes_for(im, ndims, extent, index);
    element = arena_array(im->arena, (size_t)n, sizeof *element);
    for (int k = 0; k < n; k++)
        element[k] = tensor_element_broadcast(im, x[k], ndims, extent, index);
    if (n == 1 && f->inputs == 1) {
        const struct nan_formula *own = nan_formula_find(f->name, x[0]->type);
        value = expand(im, own ? own->text : f->text, x[0]->type, element, numbers);
    } else if (n == 2) {
        value = formula_of_two(im, f, x, element, numbers);
    } else {
        value = formula_of_all(im, f, x[0]->type, element, n, numbers);
    }
    emit_statement(im, "%s = %s", tensor_element(im, y, index), value);
    return true;
}

struct limit {
    const char *text; /* NULL: there is none */
    double value;     /* NaN: not known */
};

/* One limit of Clip: an attribute up to opset 10, then an input. */
static bool clip_limit(struct import *im, const struct tensor *x, const char *name, int k,
                       struct limit *out) {
    *out = (struct limit){.value = (double)NAN};
    if (im->opset < 11) {
        const Onnx__AttributeProto *a = attribute_find(im, name);
        if (!a) return true;
        if (!attribute_float(im, name, &out->value)) return false;
        out->text = text_number(im, x->type, out->value);
        return true;
    }
    struct tensor *t = node_input(im, k);
    if (!t) return true;
    if (t->type != x->type || t->elements != 1)
        return node_fail(im, "the limit '%s' is not one element of %s", name, type_name(x->type));
    out->text = tensor_scalar(im, t);
    if (t->data && type_is_float(t->type)) out->value = tensor_float(t, 0);
    return true;
}

/* Floats within the limits, NaN passed on, as ONNX Runtime does: the upper one holds where the
 * lower is above it. */
static const char *clip_floats(struct import *im, const char *e, struct limit lo, struct limit hi) {
    const char *floor = lo.text;
    if (lo.text && hi.text && !(lo.value <= hi.value))
        floor = arena_printf(im->arena, "min(%s, %s)", lo.text, hi.text);
    const char *v = e;
    if (lo.text) v = arena_printf(im->arena, "select(%s < %s, %s, %s)", e, lo.text, floor, e);
    if (!hi.text) return v;
    return arena_printf(im->arena, "select(%s > %s, %s, %s)", e, hi.text, hi.text, v);
}

bool op_clip(struct import *im) {
    struct tensor *x = node_input(im, 0);
    const char *index[MAX_DIMS];
    struct limit lo, hi;
    if (x->type == TYPE_BOOL)
        return node_fail(im, "the input is bool, which this operator does not take");
    if (!clip_limit(im, x, "min", 1, &lo) || !clip_limit(im, x, "max", 2, &hi)) return false;
    if (!lo.text && !hi.text) return op_identity(im);
    struct tensor *y = node_result(im, x->type, x->ndims, x->extent);
    if (!y) return false;
    axes_for(im, x->ndims, x->extent, index);
    const char *e = tensor_element(im, x, index), *to = tensor_element(im, y, index);
    if (type_is_float(x->type))
        emit_statement(im, "%s = %s", to, clip_floats(im, e, lo, hi));
    else if (lo.text && hi.text)
        emit_statement(im, "%s = clip(%s, %s, %s)", to, e, lo.text, hi.text);
    else
        emit_statement(im, "%s = %s(%s, %s)", to, lo.text ? "max" : "min", e,
                       lo.text ? lo.text : hi.text);
    return true;
}

/* Cut between 0 and 1; NaN passes, as it does in Clip. */
bool op_hard_sigmoid(struct import *im) {
    struct tensor *x = node_input(im, 0);
    double alpha = (double)0.2f, beta = 0.5;
    const char *index[MAX_DIMS];
    if (!attribute_float(im, "alpha", &alpha) || !attribute_float(im, "beta", &beta)) return false;
    if (!type_is_float(x->type))
        return node_fail(im, "the input is %s, which this operator does not take",
                         type_name(x->type));
    struct tensor *y = node_result(im, x->type, x->ndims, x->extent), *line;
    if (!y ||
        !(line = tensor_temporary(im, y->buffer, "line", sum_type(x->type), x->ndims, x->extent)))
        return false;
    axes_for(im, x->ndims, x->extent, index);
    const char *v = tensor_element(im, line, index);
    emit_statement(im, "%s = %s * %s + %s", v, text_number(im, line->type, alpha),
                   sum_widen(im, x->type, tensor_element(im, x, index)),
                   text_number(im, line->type, beta));
    emit_statement(im, "%s = %s", tensor_element(im, y, index),
                   sum_narrow(im, x->type,
                              clip_floats(im, v, (struct limit){"0", 0}, (struct limit){"1", 1})));
    return true;
}

/* `training_mode`: the mean and the variance are those of the batch itself; the second and third result move from what is given
 * towards them. Exporters write the standardisation of weights like that. */
static bool batch_statistics(struct import *im, struct tensor *x, double momentum, const char *const *index, const char **e) {
    enum type sum = sum_type(x->type);
    const char *c = index[1], *share = text_number(im, sum, (double)x->extent[1] / (double)x->elements), *found[2];
    for (int k = 0; k < 2; k++) {
        struct tensor *t = tensor_temporary(im, im->node->output[0], k ? "variance" : "mean", sum, 1, &x->extent[1]);
        if (!t) return false;
        const char *v = sum_widen(im, x->type, tensor_element(im, x, index));
        if (k) { /* by itself, so that no sum of products hinders statistics of constants from being made once */
            struct tensor *square = tensor_temporary(im, im->node->output[0], "square", sum, x->ndims, x->extent);
            if (!square) return false;
            emit_statement(im, "%s = (%s - %s) * (%s - %s)", tensor_element(im, square, index), v, found[0], v, found[0]);
            v = tensor_element(im, square, index);
        }
        found[k] = tensor_element(im, t, &c);
        emit_statement(im, "%s = 0", found[k]);
        emit_statement(im, "%s += %s", found[k], v);
        emit_statement(im, "%s = %s * %s", found[k], found[k], share);
    }
    for (int k = 0; k < 2; k++) {
        struct tensor *moved = node_wants(im, k + 1) ? node_result_at(im, k + 1, x->type, 1, &x->extent[1]) : NULL;
        if (node_wants(im, k + 1) && !moved) return false;
        if (moved)
            emit_statement(im, "%s = %s", tensor_element(im, moved, &c),
                           sum_narrow(im, x->type, arena_printf(im->arena, "%s * %s + %s * %s", e[2 + k], text_number(im, sum, momentum), found[k],
                                                                text_number(im, sum, 1 - momentum))));
        e[2 + k] = found[k];
    }
    return true;
}

/* A factor and an offset for each channel: where they are constants, computed once before the first
 * run. */
bool op_batch_normalization(struct import *im) {
    struct tensor *x = node_input(im, 0), *p[4];
    double epsilon = 1e-5, momentum = 0.9;
    int64_t spatial = 1, training = 0, test = im->opset < 7 ? 0 : 1;
    const char *index[MAX_DIMS], *e[4];
    if (!attribute_float(im, "epsilon", &epsilon) || !attribute_float(im, "momentum", &momentum) ||
        !attribute_int(im, "spatial", &spatial) || !attribute_int(im, "training_mode", &training) ||
        !attribute_int(im, "is_test", &test))
        return false;
    if ((training && im->opset < 14) || !test) return node_fail(im, "only inference is supported, not training");
    if (!spatial) return node_fail(im, "'spatial' = 0 is not supported");
    if (x->ndims < 2 || !type_is_float(x->type))
        return node_fail(im, "the input is not a tensor of floats with a batch and channels");
    for (int k = 0; k < 4; k++) {
        p[k] = node_input(im, k + 1);
        if (p[k]->ndims != 1 || p[k]->extent[0] != x->extent[1] || p[k]->type != x->type)
            return node_fail(im, "input %d is not a vector of %" PRId64 " elements of %s", k + 1,
                             x->extent[1], type_name(x->type));
    }
    struct tensor *y = node_result(im, x->type, x->ndims, x->extent), *factor, *offset;
    enum type sum = sum_type(x->type);
    if (!y || !(factor = tensor_temporary(im, y->buffer, "factor", sum, 1, &x->extent[1])) ||
        !(offset = tensor_temporary(im, y->buffer, "offset", sum, 1, &x->extent[1])))
        return false;
    axes_for(im, x->ndims, x->extent, index);
    for (int k = 0; k < 4; k++) /* scale, bias, mean, variance */
        e[k] = sum_widen(im, x->type, tensor_element(im, p[k], &index[1]));
    const char *f = tensor_element(im, factor, &index[1]);
    const char *o = tensor_element(im, offset, &index[1]);
    if (training && !batch_statistics(im, x, momentum, index, e)) return false;
    im->ahead = !training && p[0]->data && p[1]->data && p[2]->data && p[3]->data;
    emit_statement(im, "%s = %s / sqrt(%s + %s)", f, e[0], e[3], text_number(im, sum, epsilon));
    emit_statement(im, "%s = %s - %s * %s", o, e[1], e[2], f);
    im->ahead = false;
    const char *v = arena_printf(im->arena, "%s * %s + %s",
                                 sum_widen(im, x->type, tensor_element(im, x, index)), f, o);
    emit_statement(im, "%s = %s", tensor_element(im, y, index), sum_narrow(im, x->type, v));
    return true;
}
#endif
