#include "ir/bound.h"

#include <assert.h>
#include <float.h>
#include <math.h>

double type_unit(enum type t) {
    switch (t) {
    case TYPE_F64:
        return 0x1p-53;
    case TYPE_F32:
        return 0x1p-24;
    case TYPE_F16:
        return 0x1p-11;
    case TYPE_BF16:
        return 0x1p-8;
    default:
        return 0;
    }
}

double type_largest(enum type t) {
    switch (t) {
    case TYPE_F32:
        return FLT_MAX;
    case TYPE_F16:
        return 65504;
    case TYPE_BF16:
        return 0x1.fep127;
    default:
        return DBL_MAX;
    }
}

double type_normal(enum type t) {
    return t == TYPE_F64 ? DBL_MIN : t == TYPE_F16 ? 0x1p-14 : FLT_MIN;
}

double type_tiny(enum type t) {
    switch (t) {
    case TYPE_F64:
        return DBL_MIN;
    case TYPE_F32:
    case TYPE_BF16:
        return FLT_MIN;
    case TYPE_F16:
        return 0x1p-25;
    default:
        return 0;
    }
}

enum type type_computed(enum type t) {
    return t == TYPE_F16 || t == TYPE_BF16 ? TYPE_F32 : t;
}

static double larger(const struct bounded *x) {
    return fmax(x->below, x->above);
}

static double low(const struct bounded *x) {
    return x->below == 0 ? x->v.f : isinf(x->below) ? -INFINITY : x->v.f - x->below;
}

static double high(const struct bounded *x) {
    return x->above == 0 ? x->v.f : isinf(x->above) ? INFINITY : x->v.f + x->above;
}

/* NaN, or any number. */
static bool is_open(const struct bounded *x) {
    return isinf(x->below) || isinf(x->above);
}

static bool is_nan(const struct bounded *x) {
    return isnan(x->v.f) && bounded_is_exact(x);
}

static struct bounded undecided(struct bounded x) {
    x.below = x.above = INFINITY;
    x.loose = true;
    return x;
}

static bool same_double(double a, double b) {
    return a == b || (isnan(a) && isnan(b));
}

/* The value stays; its range becomes [lo, hi]. */
static struct bounded between(struct bounded x, double lo, double hi) {
    if (isnan(lo) || isnan(hi)) return undecided(x);
    x.below = x.v.f == lo ? 0 : fmax(0, x.v.f - lo);
    x.above = x.v.f == hi ? 0 : fmax(0, hi - x.v.f);
    return x;
}

/* Beyond the largest finite number of the type is infinity; what may lie on either side is
 * undecided. */
static struct bounded settle(enum type t, struct bounded x) {
    if (!isfinite(x.v.f)) return x;
    if (isnan(x.below) || isnan(x.above)) return undecided(x);
    if (fabs(x.v.f) + larger(&x) <= type_largest(t)) return x;
    double lo = type_round(t, low(&x)), hi = type_round(t, high(&x));
    if (isinf(lo) && lo == hi) return (struct bounded){.v.f = lo, .arose = true};
    return isinf(lo) || isinf(hi) ? undecided(x) : x;
}

/* Adds `units` roundings in type t to what is known of x. In f64 the reference itself rounds too.
 */
static struct bounded rounded(enum type t, int units, struct bounded x) {
    if (!isfinite(x.v.f)) return x;
    double u = type_unit(t) + (t == TYPE_F64 ? type_unit(t) : 0);
    double r =
        units * u * (fabs(x.v.f) + larger(&x)) + (x.v.f != 0 || larger(&x) > 0 ? type_tiny(t) : 0);
    x.below += r;
    x.above += r;
    return x;
}

/* Is v, computed in f64, what the operation gives without any rounding? */
static bool without_rounding(enum opcode op, double a, double b, double v) {
    if (!isfinite(v) || (v != 0 && fabs(v) < 0x1p-900)) return false;
    if (op == OP_SUB) b = -b;
    switch (op) {
    case OP_ADD:
    case OP_SUB: {
        double other = v - a;
        return (a - (v - other)) + (b - other) == 0;
    }
    case OP_MUL:
        return v == 0 ? a == 0 || b == 0 : fma(a, b, -v) == 0;
    case OP_DIV:
        return b != 0 && fma(v, b, -a) == 0;
    case OP_SQRT:
        return fma(v, v, -a) == 0;
    default:
        return false;
    }
}

/* ---- operations on floats whose operands are not exact ---- */

static double compute(enum opcode op, double a, double b, double c) {
    const union value arg[3] = {{.f = a}, {.f = b}, {.f = c}};
    return op_eval(op, TYPE_F64, TYPE_F64, arg).f;
}

/* x times k, k exact. What may be infinite is not zero behind a product with zero. */
static struct bounded scaled(struct bounded out, const struct bounded *x, double k) {
    bool turn = k < 0;
    if (k == 0 && isinf(larger(x))) return undecided(out);
    out.below = k == 0 ? 0 : fabs(k) * (turn ? x->above : x->below);
    out.above = k == 0 ? 0 : fabs(k) * (turn ? x->below : x->above);
    return out;
}

static struct bounded product(struct bounded out, const struct bounded *a,
                              const struct bounded *b) {
    if (bounded_is_exact(b)) return scaled(out, a, b->v.f);
    if (bounded_is_exact(a)) return scaled(out, b, a->v.f);
    double ea = larger(a), eb = larger(b);
    out.below = out.above = fabs(a->v.f) * eb + fabs(b->v.f) * ea + ea * eb;
    return out;
}

static struct bounded quotient(struct bounded out, const struct bounded *a,
                               const struct bounded *b) {
    if (bounded_is_exact(b)) return scaled(out, a, 1 / b->v.f);
    double eb = larger(b), gap = fabs(b->v.f) - eb;
    if (!(gap > 0)) return undecided(out);
    out.below = out.above = (larger(a) + fabs(out.v.f) * eb) / gap;
    return out;
}

static struct bounded remainder_of(struct bounded out, const struct bounded *a,
                                   const struct bounded *b) {
    double q = trunc(a->v.f / b->v.f);
    bool certain = trunc(low(a) / low(b)) == q && trunc(high(a) / low(b)) == q &&
                   trunc(low(a) / high(b)) == q && trunc(high(a) / high(b)) == q &&
                   low(b) * high(b) > 0;
    if (!certain) return undecided(out);
    out.below = out.above = larger(a) + fabs(q) * larger(b);
    return out;
}

static struct bounded power(struct bounded out, const struct bounded *a, const struct bounded *b) {
    double la = low(a), ha = high(a), lb = low(b), hb = high(b);
    bool whole = lb == hb && rint(lb) == lb;
    if (la <= 0 && (!whole || (lb < 0 && ha >= 0))) return undecided(out);
    double at[4] = {pow(la, lb), pow(la, hb), pow(ha, lb), pow(ha, hb)};
    double lo = out.v.f, hi = out.v.f;
    for (int k = 0; k < 4; k++) {
        if (isnan(at[k])) return undecided(out);
        lo = fmin(lo, at[k]);
        hi = fmax(hi, at[k]);
    }
    if (la < 0 && ha > 0) lo = fmin(lo, 0), hi = fmax(hi, 0);
    return between(out, lo, hi);
}

static struct bounded propagate(enum opcode op, const struct bounded *arg, struct bounded out) {
    const struct bounded *a = &arg[0], *b = &arg[1], *c = &arg[2];
    int arity = op_info[op].arity;
    double lo, hi;
    switch (op_info[op].error) {
    case ERROR_SUM:
        out.below = a->below + (op == OP_ADD ? b->below : b->above);
        out.above = a->above + (op == OP_ADD ? b->above : b->below);
        return out;
    case ERROR_PRODUCT:
        return product(out, a, b);
    case ERROR_QUOTIENT:
        return quotient(out, a, b);
    case ERROR_REMAINDER:
        return remainder_of(out, a, b);
    case ERROR_NEGATE:
        out.below = a->above;
        out.above = a->below;
        return out;
    case ERROR_ABS:
        lo = low(a), hi = high(a);
        return between(out, lo > 0 ? lo : hi < 0 ? -hi : 0, fmax(fabs(lo), fabs(hi)));
    case ERROR_RISING:
    case ERROR_STEP:
        lo = compute(op, low(a), arity > 1 ? low(b) : 0, arity > 2 ? low(c) : 0);
        hi = compute(op, high(a), arity > 1 ? high(b) : 0, arity > 2 ? high(c) : 0);
        if (op_info[op].error == ERROR_STEP) out.loose |= lo != hi;
        return between(out, lo, hi);
    case ERROR_FALLING:
        return between(out, compute(op, high(a), 0, 0), compute(op, low(a), 0, 0));
    case ERROR_WAVE:
        return between(out, fmax(-1, out.v.f - larger(a)), fmin(1, out.v.f + larger(a)));
    case ERROR_POWER:
        return power(out, a, b);
    default:
        assert(!"an operation on floats");
        return out;
    }
}

/* A result that is NaN or infinite holds only where the corners of the operands' ranges give the
 * same. */
static struct bounded not_finite(enum opcode op, const struct bounded *arg, struct bounded out) {
    int arity = op_info[op].arity;
    for (int corner = 0; corner < 1 << arity; corner++) {
        double x[3] = {0};
        for (int k = 0; k < arity; k++) x[k] = corner >> k & 1 ? high(&arg[k]) : low(&arg[k]);
        if (!same_double(compute(op, x[0], x[1], x[2]), out.v.f)) return undecided(out);
    }
    return out;
}

/* NaN passes through all operations but min, max and clip, which give another operand, so an
 * operand that may be NaN makes the result undecided, unless another one makes it NaN. */
static bool is_opened(enum opcode op, const struct bounded *arg, struct bounded *out) {
    bool open = false, nan = false;
    if (op == OP_MIN || op == OP_MAX || op == OP_CLIP) return false;
    for (int k = 0; k < op_info[op].arity; k++) {
        open |= is_open(&arg[k]);
        nan |= is_nan(&arg[k]) && op != OP_POW;
    }
    if (!open) return false;
    *out = nan ? bounded_exactly((union value){.f = NAN}) : undecided(*out);
    return true;
}

static struct bounded value_float(const struct leeway *leeway, enum opcode op, enum type to,
                                  const struct bounded *arg, bool crisp) {
    enum type t = type_computed(to);
    int arity = op_info[op].arity, units = op_info[op].units;
    bool exact = true;
    struct bounded out = {0};
    for (int k = 0; k < arity; k++) {
        exact &= bounded_is_exact(&arg[k]);
        out.loose |= arg[k].loose;
    }
    double a = arg[0].v.f, b = arity > 1 ? arg[1].v.f : 0;
    out.v.f = compute(op, a, b, arity > 2 ? arg[2].v.f : 0);
    if (is_opened(op, arg, &out)) return out;
    if (exact) {
        bool same = units == 0 || !isfinite(out.v.f) || (crisp && units == 1) ||
                    (without_rounding(op, a, b, out.v.f) && type_round(t, out.v.f) == out.v.f);
        if (same) {
            out.v.f = type_round(t, out.v.f);
            return out;
        }
    } else if (isfinite(out.v.f)) {
        out = propagate(op, arg, out);
        if (leeway && leeway->units[op] > units) units = leeway->units[op];
    } else {
        return not_finite(op, arg, out);
    }
    return settle(t, units ? rounded(t, units, out) : out);
}

static struct bounded eval_float(const struct leeway *leeway, enum opcode op, enum type to,
                                 const struct bounded *arg, bool crisp) {
    struct bounded out = value_float(leeway, op, to, arg, crisp);
    bool given = false;
    out.arose = false;
    if (isfinite(out.v.f)) return out;
    for (int k = 0; k < op_info[op].arity; k++) {
        given |= isnan(out.v.f) ? isnan(arg[k].v.f) : isinf(arg[k].v.f);
        out.arose |= arg[k].arose;
    }
    out.arose |= !given;
    return out;
}

/* ---- integers ---- */

static int64_t end_of(const struct bounded *x, bool upper) {
    double e = upper ? x->above : x->below;
    int64_t n = e < 0x1p62 ? (int64_t)ceil(e) : INT64_MAX / 2, r;
    if (upper ? __builtin_add_overflow(x->v.i, n, &r) : __builtin_sub_overflow(x->v.i, n, &r))
        return upper ? INT64_MAX : INT64_MIN;
    return r;
}

static double number(enum type t, int64_t i) {
    return t == TYPE_U64 ? (double)(uint64_t)i : (double)i;
}

/* How much `high` is more than `low`, or 0; at least (or at most) that where a double has too few
 * bits. */
static double apart(enum type t, int64_t high, int64_t low, bool at_least) {
    uint64_t n = (uint64_t)high - (uint64_t)low;
    if (t == TYPE_U64 ? (uint64_t)high < (uint64_t)low : high < low) return 0;
    return n >> 53 ? nextafter((double)n, at_least ? INFINITY : 0) : (double)n;
}

enum { MOST_TRIES = 64 };

/* Every value that the operands can have; false: there are too many. */
static bool try_all(enum opcode op, enum type to, enum type from, const struct bounded *arg,
                    struct bounded *out) {
    int arity = op_info[op].arity;
    int64_t first[3] = {0}, count[3] = {1, 1, 1}, all = 1;
    for (int k = 0; k < arity; k++) {
        first[k] = end_of(&arg[k], false);
        if (!(arg[k].below + arg[k].above < MOST_TRIES)) return false;
        count[k] = end_of(&arg[k], true) - first[k] + 1;
        all *= count[k];
        if (all > MOST_TRIES) return false;
    }
    for (int64_t n = 0; n < all; n++) {
        union value x[3];
        int64_t rest = n;
        for (int k = 0; k < arity; k++) {
            x[k].i = type_wrap(from, (uint64_t)(first[k] + rest % count[k]));
            rest /= count[k];
        }
        int64_t r = op_eval(op, to, from, x).i;
        out->below = fmax(out->below, apart(to, out->v.i, r, true));
        out->above = fmax(out->above, apart(to, r, out->v.i, true));
    }
    return true;
}

static bool fits(enum type t, const struct bounded *x) {
    int64_t low_limit, high_limit;
    type_limits(t, &low_limit, &high_limit);
    return x->below <= apart(t, x->v.i, low_limit, false) &&
           x->above <= apart(t, high_limit, x->v.i, false);
}

static struct bounded eval_integer(enum opcode op, enum type to, enum type from,
                                   const struct bounded *arg) {
    struct bounded out = {0};
    union value x[3] = {{0}};
    int arity = op_info[op].arity;
    bool exact = true;
    for (int k = 0; k < arity; k++) {
        exact &= bounded_is_exact(&arg[k]);
        out.loose |= arg[k].loose;
        x[k] = arg[k].v;
    }
    out.v = op_eval(op, to, from, x);
    if (exact || try_all(op, to, from, arg, &out)) return out;
    double a = number(from, x[0].i), b = arity > 1 ? number(from, x[1].i) : 0;
    double ea = larger(&arg[0]), eb = arity > 1 ? larger(&arg[1]) : 0,
           ec = arity > 2 ? larger(&arg[2]) : 0;
    switch (op) {
    case OP_ADD:
    case OP_SUB:
    case OP_NEG:
    case OP_ABS:
        out.below = out.above = ea + eb;
        break;
    case OP_MUL:
        out.below = out.above = fabs(a) * eb + fabs(b) * ea + ea * eb;
        break;
    case OP_MIN:
    case OP_MAX:
    case OP_CLIP:
        out.below = out.above = fmax(ea, fmax(eb, ec));
        if (op == OP_CLIP && bounded_is_exact(&arg[1]) && bounded_is_exact(&arg[2])) {
            out.above = fmin(ea, apart(from, x[2].i, out.v.i, true));
            out.below = fmin(ea, apart(from, out.v.i, x[1].i, true));
        }
        break;
    default:
        return undecided(out);
    }
    return fits(to, &out) ? out : undecided(out);
}

void bounded_add_integer(enum type t, struct bounded *sum, const struct bounded *term) {
    sum->v.i = type_wrap(t, (uint64_t)sum->v.i + (uint64_t)term->v.i);
    if (bounded_is_exact(sum) && bounded_is_exact(term)) return;
    sum->below += term->below;
    sum->above += term->above;
    sum->loose |= term->loose;
    if (!fits(t, sum)) *sum = undecided(*sum);
}

/* ---- what integers and floats share ---- */

/* How far values of x may be below (above) those that v stands for. */
static double reach_below(enum type t, union value v, const struct bounded *x) {
    if (type_is_float(t)) return v.f - low(x);
    return apart(t, v.i, x->v.i, true) + x->below - apart(t, x->v.i, v.i, false);
}

static double reach_above(enum type t, union value v, const struct bounded *x) {
    if (type_is_float(t)) return high(x) - v.f;
    return apart(t, x->v.i, v.i, true) + x->above - apart(t, v.i, x->v.i, false);
}

/* Values with the same bounds that are the same to the last bit are one value, which is equal to
 * itself: what a maximum chose. */
static bool one_value(const struct bounded *a, const struct bounded *b) {
    return a->v.i == b->v.i && a->below == b->below && a->above == b->above && isfinite(a->below) &&
           isfinite(a->above);
}

/* Every value of a is less than every one of b. `equal` counts as less. Integers may have more bits
 * than a double. */
static bool all_less(enum type t, const struct bounded *a, const struct bounded *b, bool equal) {
    if (type_is_float(t)) return equal ? high(a) <= low(b) : high(a) < low(b);
    double room = apart(t, b->v.i, a->v.i, false), reach = a->above + b->below;
    bool order = t == TYPE_U64 ? (uint64_t)a->v.i <= (uint64_t)b->v.i : a->v.i <= b->v.i;
    return order && (equal ? reach <= room : reach < room);
}

/* 1: every value of a is less than every one of b; 0: none is; -1: it depends. */
static int certainly_less(enum type t, const struct bounded *a, const struct bounded *b,
                          bool equal) {
    if (one_value(a, b)) return equal;
    return all_less(t, a, b, equal) ? 1 : all_less(t, b, a, !equal) ? 0 : -1;
}

static int certainly(enum opcode op, enum type t, const struct bounded *a,
                     const struct bounded *b) {
    int r;
    switch (op) {
    case OP_LT:
    case OP_LE:
        return certainly_less(t, a, b, op == OP_LE);
    case OP_GT:
    case OP_GE:
        return certainly_less(t, b, a, op == OP_GE);
    default:
        r = one_value(a, b) ? 1 : all_less(t, a, b, false) || all_less(t, b, a, false) ? 0 : -1;
        return r < 0 || op == OP_EQ ? r : !r;
    }
}

static struct bounded eval_compare(enum opcode op, enum type from, const struct bounded *arg) {
    struct bounded out = {0};
    const union value x[2] = {arg[0].v, arg[1].v};
    out.v = op_eval(op, TYPE_BOOL, from, x);
    if (bounded_is_exact(&arg[0]) && bounded_is_exact(&arg[1])) return out;
    bool open = type_is_float(from) && (is_open(&arg[0]) || is_open(&arg[1]));
    if (type_is_float(from) && (is_nan(&arg[0]) || is_nan(&arg[1]))) return out;
    if (!open && certainly(op, from, &arg[0], &arg[1]) >= 0) return out;
    out.below = out.v.i ? 1 : 0;
    out.above = 1 - out.below;
    out.loose = true;
    return out;
}

static struct bounded eval_select(enum type t, const struct bounded *arg) {
    const struct bounded *then = &arg[1], *other = &arg[2];
    struct bounded out = arg[0].v.i ? *then : *other;
    if (bounded_is_exact(&arg[0])) return out;
    if (then->v.i == other->v.i && bounded_is_exact(then) && bounded_is_exact(other)) return out;
    const double below[2] = {reach_below(t, out.v, then), reach_below(t, out.v, other)};
    const double above[2] = {reach_above(t, out.v, then), reach_above(t, out.v, other)};
    for (int k = 0; k < 2; k++)
        if (!isfinite(below[k]) || !isfinite(above[k])) return undecided(out); /* NaN too */
    double off = type_is_float(t) ? fabs(then->v.f - other->v.f)
                                  : apart(t, then->v.i, other->v.i, true) +
                                        apart(t, other->v.i, then->v.i, true);
    out.below = fmax(below[0], below[1]);
    out.above = fmax(above[0], above[1]);
    out.loose = then->loose || other->loose || off > 4 * (larger(then) + larger(other));
    return out;
}

static struct bounded float_to_float(enum type to, enum type from, const struct bounded *a) {
    struct bounded out = *a;
    if (bounded_is_exact(a)) {
        out.v.f = type_round(to, a->v.f);
        out.arose |= isinf(out.v.f) && isfinite(a->v.f);
        return out;
    }
    return type_unit(to) > type_unit(type_computed(from)) || to == TYPE_F16 ||
                   type_largest(to) < type_largest(from)
               ? settle(to, rounded(to, 1, out))
               : out;
}

static struct bounded float_to_integer(enum type to, const struct bounded *a) {
    union value lo = {.f = low(a)}, hi = {.f = high(a)};
    struct bounded out = {.v = type_convert(to, TYPE_F64, a->v), .loose = a->loose};
    if (bounded_is_exact(a)) return out;
    if (is_open(a)) return undecided(out);
    if (to == TYPE_BOOL) {
        if (lo.f > 0 || hi.f < 0) return out;
        out.below = out.v.i ? 1 : 0;
        out.above = 1 - out.below;
        out.loose = true;
        return out;
    }
    double v = number(to, out.v.i);
    out.below = v - number(to, type_convert(to, TYPE_F64, lo).i);
    out.above = number(to, type_convert(to, TYPE_F64, hi).i) - v;
    out.loose |= !bounded_is_exact(&out);
    return out;
}

static struct bounded eval_cast(enum type to, enum type from, const struct bounded *a) {
    if (type_is_float(to) && type_is_float(from)) return float_to_float(to, from, a);
    if (type_is_float(from)) return float_to_integer(to, a);
    struct bounded out = *a;
    out.v = type_convert(to, from, a->v);
    if (bounded_is_exact(a)) return out;
    if (type_is_float(to)) return settle(to, rounded(to, 1, out));
    if (try_all(OP_CAST, to, from, a, &out)) return out;
    return fits(to, a) && fits(from, a) ? out : undecided(out);
}

struct bounded bounded_eval_within(const struct leeway *leeway, enum opcode op, enum type to,
                                   enum type from, const struct bounded *arg, bool crisp) {
    switch (op_info[op].error) {
    case ERROR_CAST:
        return eval_cast(to, from, &arg[0]);
    case ERROR_SELECT:
        return eval_select(to, arg);
    case ERROR_COMPARE:
        return eval_compare(op, from, arg);
    default:
        return type_is_float(from) ? eval_float(leeway, op, to, arg, crisp)
                                   : eval_integer(op, to, from, arg);
    }
}

struct bounded bounded_eval(enum opcode op, enum type to, enum type from, const struct bounded *arg,
                            bool crisp) {
    return bounded_eval_within(NULL, op, to, from, arg, crisp);
}

struct bounded bounded_store(enum type t, struct bounded x) {
    if (!type_is_float(t)) return x;
    if (bounded_is_exact(&x)) {
        x.v.f = type_round(t, x.v.f);
        return x;
    }
    if (t == type_computed(t)) return x;
    return settle(t, rounded(t, 1, x));
}
