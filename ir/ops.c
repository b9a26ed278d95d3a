#include "ir/ops.h"

#include <assert.h>
#include <math.h>

const struct op_info op_info[OP_COUNT] = {
#define X(id, spelling, arity, notation, precedence, flags, error, units)                          \
    {#id, spelling, arity, notation, precedence, flags, error, units},
    OP_TABLE(X)
#undef X
};

const char *const combiner_spelling[COMBINE_COUNT] = {"=", "+=", "*=", "max=", "min="};

static double float_max(double a, double b) {
    if (isnan(a)) return b;
    return isnan(b) || a > b ? a : b;
}

static double float_min(double a, double b) {
    if (isnan(a)) return b;
    return isnan(b) || a < b ? a : b;
}

/* In double; one rounding to f32 afterwards gives the f32 result of + - * / and sqrt exactly. */
static double float_compute(enum opcode op, const union value *arg) {
    double a = arg[0].f, b = op_info[op].arity > 1 ? arg[1].f : 0;
    switch (op) {
    case OP_ADD:
        return a + b;
    case OP_SUB:
        return a - b;
    case OP_MUL:
        return a * b;
    case OP_DIV:
        return a / b;
    case OP_MOD:
        return fmod(a, b);
    case OP_NEG:
        return -a;
    case OP_MIN:
        return float_min(a, b);
    case OP_MAX:
        return float_max(a, b);
    case OP_ABS:
        return fabs(a);
    case OP_FLOOR:
        return floor(a);
    case OP_CEIL:
        return ceil(a);
    case OP_ROUND:
        return rint(a);
    case OP_SQRT:
        return sqrt(a);
    case OP_RSQRT:
        return 1 / sqrt(a);
    case OP_EXP:
        return exp(a);
    case OP_LOG:
        return log(a);
    case OP_SIN:
        return sin(a);
    case OP_COS:
        return cos(a);
    case OP_TANH:
        return tanh(a);
    case OP_SIGMOID:
        return 1 / (1 + exp(-a));
    case OP_ERF:
        return erf(a);
    case OP_ATAN:
        return atan(a);
    case OP_POW:
        return pow(a, b);
    case OP_CLIP:
        return float_min(float_max(a, b), arg[2].f);
    default:
        assert(!"an operation on floats");
        return 0;
    }
}

static bool less(enum type t, union value a, union value b) {
    if (type_is_float(t)) return a.f < b.f;
    return t == TYPE_U64 ? (uint64_t)a.i < (uint64_t)b.i : a.i < b.i;
}

static bool equal(enum type t, union value a, union value b) {
    return type_is_float(t) ? a.f == b.f : a.i == b.i;
}

static bool compare(enum opcode op, enum type t, union value a, union value b) {
    switch (op) {
    case OP_EQ:
        return equal(t, a, b);
    case OP_NE:
        return !equal(t, a, b);
    case OP_LT:
        return less(t, a, b);
    case OP_LE:
        return less(t, a, b) || equal(t, a, b);
    case OP_GT:
        return less(t, b, a);
    case OP_GE:
        return less(t, b, a) || equal(t, a, b);
    default:
        assert(!"a comparison");
        return false;
    }
}

static uint64_t divide(enum type t, int64_t a, int64_t b, bool remainder) {
    if (b == 0) return 0;
    if (t == TYPE_U64) {
        uint64_t x = (uint64_t)a, y = (uint64_t)b;
        return remainder ? x % y : x / y;
    }
    if (b == -1) return remainder ? 0 : 0 - (uint64_t)a;
    return (uint64_t)(remainder ? a % b : a / b);
}

static int64_t shift_right(enum type t, int64_t a, int64_t n) {
    int64_t width = 8 * (int64_t)type_size(t);
    if (n >= width) return type_is_signed(t) && a < 0 ? -1 : 0;
    if (n <= -width) return 0;
    if (n < 0) return (int64_t)((uint64_t)a << -n);
    return t == TYPE_U64 ? (int64_t)((uint64_t)a >> n) : a >> n;
}

/* The amount is signed except in unsigned types, where a large one is just large. */
static int64_t shift(enum opcode op, enum type t, int64_t a, int64_t n) {
    if (t == TYPE_U64 && n < 0) n = INT64_MAX;
    if (op == OP_SHR) return shift_right(t, a, n);
    return shift_right(t, a, n == INT64_MIN ? INT64_MAX : -n);
}

static union value integer_clip(enum type t, const union value *arg) {
    union value v = less(t, arg[0], arg[1]) ? arg[1] : arg[0];
    return less(t, arg[2], v) ? arg[2] : v;
}

static uint64_t integer_compute(enum opcode op, enum type t, const union value *arg) {
    int64_t a = arg[0].i, b = op_info[op].arity > 1 ? arg[1].i : 0;
    uint64_t x = (uint64_t)a, y = (uint64_t)b;
    switch (op) {
    case OP_ADD:
        return x + y;
    case OP_SUB:
        return x - y;
    case OP_MUL:
        return x * y;
    case OP_DIV:
        return divide(t, a, b, false);
    case OP_MOD:
        return divide(t, a, b, true);
    case OP_NEG:
        return 0 - x;
    case OP_AND:
        return x & y;
    case OP_XOR:
        return x ^ y;
    case OP_OR:
        return x | y;
    case OP_NOT:
        return t == TYPE_BOOL ? !x : ~x;
    case OP_MIN:
        return less(t, arg[1], arg[0]) ? y : x;
    case OP_MAX:
        return less(t, arg[0], arg[1]) ? y : x;
    case OP_ABS:
        return type_is_signed(t) && a < 0 ? 0 - x : x;
    case OP_FLOOR:
    case OP_CEIL:
    case OP_ROUND:
        return x;
    case OP_CLIP:
        return (uint64_t)integer_clip(t, arg).i;
    case OP_SHL:
    case OP_SHR:
        return (uint64_t)shift(op, t, a, b);
    default:
        assert(!"an operation on integers");
        return 0;
    }
}

static enum type computed_in(enum type t) {
    return t == TYPE_F16 || t == TYPE_BF16 ? TYPE_F32 : t;
}

union value op_eval(enum opcode op, enum type to, enum type from, const union value *arg) {
    union value v;
    if (op == OP_CAST) return type_convert(to, from, arg[0]);
    if (op == OP_SELECT) return arg[0].i ? arg[1] : arg[2];
    if (op_info[op].flags & OP_TO_BOOL)
        v.i = compare(op, from, arg[0], arg[1]);
    else if (type_is_float(from))
        v.f = type_round(computed_in(to), float_compute(op, arg));
    else
        v.i = type_wrap(to, integer_compute(op, from, arg));
    return v;
}

enum opcode combiner_op(enum combiner c) {
    static const enum opcode op[COMBINE_COUNT] = {OP_COUNT, OP_ADD, OP_MUL, OP_MAX, OP_MIN};
    assert(c != COMBINE_SET);
    return op[c];
}

union value combiner_neutral(enum combiner c, enum type t) {
    union value v = {.i = 0};
    int64_t low = 0, high = 0;
    if (type_is_float(t)) {
        static const double neutral[COMBINE_COUNT] = {0, 0, 1, -INFINITY, INFINITY};
        v.f = neutral[c];
        return v;
    }
    type_limits(t, &low, &high);
    if (c == COMBINE_MUL) v.i = 1;
    if (c == COMBINE_MAX) v.i = low;
    if (c == COMBINE_MIN) v.i = high;
    return v;
}
