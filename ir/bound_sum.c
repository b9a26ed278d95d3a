#include "ir/bound.h"

#include <math.h>
#include <string.h>

static const double SPREAD =
    4; /* of the probabilistic bound; a rounding's standard deviation is 0.41 units */
static const double FRESH =
    3; /* one rounding alone may reach its bound: added where errors are taken as independent */
static const double DECLARED = 2; /* times what the declared order makes in the type itself */
enum { FEW = 16 };                /* so many additions are bounded by the worst case */

int value_granule(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    int exponent = (int)(bits >> 52 & 0x7ff);
    uint64_t fraction = bits & (((uint64_t)1 << 52) - 1);
    if (exponent == 0x7ff) return NO_GRANULE;
    if (exponent) fraction |= (uint64_t)1 << 52;
    if (fraction == 0) return ANY_GRANULE;
    return (exponent ? exponent : 1) - 1075 + __builtin_ctzll(fraction);
}

/* To `bits` bits by Veltkamp's splitting (Dekker 1971). */
static double to_bits(double x, int bits) {
    double c = x * (double)(((uint64_t)1 << (53 - bits)) + 1);
    return c - (c - x);
}

double round_quickly(enum type t, double x) {
    switch (t) {
    case TYPE_F32:
        return (float)x;
    case TYPE_BF16:
        return fabs(x) < 0x1.fep127 ? to_bits(x, 8) : type_round(t, x);
    case TYPE_F16:
        if (fabs(x) < 0x1p-14) return (x + 0x1.8p28) - 0x1.8p28;
        return fabs(x) < 65504 ? to_bits(x, 11) : type_round(t, x);
    default:
        return x;
    }
}

static double larger(const struct bounded *x) {
    return fmax(x->below, x->above);
}

void bounded_sum_open(struct bounded_sum *s, enum type t, double unit, struct bounded start) {
    *s = (struct bounded_sum){.type = t, .unit = unit, .exact = true, .granule = ANY_GRANULE};
    if (start.v.f != 0 || !bounded_is_exact(&start)) bounded_sum_add(s, &start);
    s->start = s->linear;
    s->linear = 0;
}

static void add_value(struct bounded_sum *s, double t) {
    if (t == 0) return;
    s->terms++;
    if (!isfinite(t)) {
        s->infinite += t;
        return;
    }
    s->total += t;
    s->magnitude += fabs(t);
    s->side[t > 0] += fabs(t);
    s->square += t * t;
    s->narrow = round_quickly(s->type, s->narrow + t);
    if (fabs(s->total) > s->peak) s->peak = fabs(s->total);
}

static void add_loose(struct bounded_sum *s, double below, double above) {
    s->loose = true;
    s->exact = false;
    s->loose_below += below;
    s->loose_above += above;
}

void bounded_sum_add(struct bounded_sum *s, const struct bounded *term) {
    s->brittle |= term->arose;
    s->nan |= isnan(term->v.f) && !term->arose && bounded_is_exact(term);
    add_value(s, term->v.f);
    if (bounded_is_exact(term)) {
        if (s->exact) {
            int g = value_granule(term->v.f);
            if (g < s->granule) s->granule = g;
        }
        return;
    }
    if (term->v.f == 0) s->terms++;
    s->exact = false;
    if (term->loose)
        add_loose(s, term->below, term->above);
    else
        s->linear += larger(term);
}

/* A factor's error where errors are taken as independent. */
static double spread_of(const struct bounded *x, double unit) {
    double e = larger(x);
    return e + FRESH * fmin(e, unit * fabs(x->v.f));
}

void bounded_sum_product(struct bounded_sum *s, const struct bounded *a, const struct bounded *b,
                         enum type computed_in) {
    enum type t = type_computed(computed_in);
    struct bounded term =
        bounded_eval(OP_MUL, computed_in, computed_in, (const struct bounded[]){*a, *b}, false);
    if (!isfinite(term.v.f) && isfinite(a->v.f * b->v.f)) { /* a fused one does not overflow */
        term = (struct bounded){.v.f = a->v.f * b->v.f};
        s->exact = false;
    }
    if (bounded_is_exact(&term) || term.loose || !isfinite(term.v.f)) {
        bounded_sum_add(s, &term);
        return;
    }
    add_value(s, term.v.f);
    if (term.v.f == 0) s->terms++;
    s->exact = false;
    s->products = true;
    double ea = larger(a), eb = larger(b), x = a->v.f, y = b->v.f;
    s->linear += fabs(x) * eb + fabs(y) * ea + ea * eb;
    s->rounding += type_unit(t) * (fabs(x) + ea) * (fabs(y) + eb) + type_tiny(t);
    ea = spread_of(a, s->unit);
    eb = spread_of(b, s->unit);
    double e = fabs(x) * eb + fabs(y) * ea + ea * eb;
    s->square_error += e * e;
    s->by_sign += copysign(e, term.v.f);
    s->by_a += x * eb;
    s->by_b += y * ea;
}

static bool is_without_rounding(const struct bounded_sum *s) {
    int bits = s->type == TYPE_F64 ? 53 : s->type == TYPE_F32 ? 24 : s->type == TYPE_F16 ? 11 : 8;
    if (!s->exact || s->granule == NO_GRANULE) return false;
    if (s->terms == 0) return true;
    int least = s->type == TYPE_F64   ? -1074
                : s->type == TYPE_F16 ? -24
                : s->type == TYPE_F32 ? -149
                                      : -133;
    return s->granule >= least && s->magnitude <= ldexp(1, s->granule + bits) &&
           s->magnitude <= type_largest(s->type);
}

/* What the operands' errors come to. Linear is always right. Of many products the errors are taken
 * as independent, except for what they have in common: a factor of all terms (by_sign) or a shift
 * of all factors of one side (by_a, by_b). */
static double propagated(const struct bounded_sum *s) {
    double spread =
        fmax(sqrt(s->square_error), fmax(fabs(s->by_sign), fmax(fabs(s->by_a), fabs(s->by_b))));
    return s->products && s->terms >= FEW ? fmin(s->linear, spread) : s->linear;
}

static double additions(const struct bounded_sum *s) {
    double n = (double)(s->terms > 0 ? s->terms - 1 : 0), u = type_unit(s->type) + 0x1p-53;
    double worst = n * u * s->magnitude;
    if (n < FEW) return worst;
    double declared = DECLARED * fabs(s->narrow - s->total);
    double likely = SPREAD * u * sqrt(n) * sqrt(s->peak * s->peak + s->square) + declared;
    return likely < worst ? likely : worst;
}

static struct bounded undecided(struct bounded x) {
    x.below = x.above = INFINITY;
    x.loose = true;
    return x;
}

/* Infinite, unless terms of the other sign can become infinite before: some of them pass the
 * largest number by themselves, or their sum was beyond f64 before they came. */
static struct bounded close_infinite(const struct bounded_sum *s, struct bounded x) {
    double against = s->side[x.v.f < 0], e = s->linear + s->rounding;
    bool meets = s->infinite != 0 ? !(against + e <= type_largest(s->type))
                                  : against > type_largest(s->type) * 0x1p-40;
    meets |= isnan(x.v.f);
    return s->loose || s->brittle || meets ? undecided(x) : x;
}

struct bounded bounded_sum_close(const struct bounded_sum *s) {
    struct bounded x = {.v.f = s->infinite != 0 ? s->infinite : s->total, .loose = s->loose};
    if (is_without_rounding(s)) return x;
    if (s->nan) return bounded_exactly((union value){.f = NAN});
    if (!isfinite(x.v.f)) return close_infinite(s, x);
    double r = s->start + additions(s) + propagated(s) + s->rounding;
    if (s->terms > 0) r += type_tiny(s->type);
    /* the element of a type that temporaries do not have is rounded once more, when it is stored */
    if (s->type != type_computed(s->type)) r += type_unit(s->type) * (fabs(s->total) + r);
    x.below = r + s->loose_below;
    x.above = r + s->loose_above;
    double largest = type_largest(s->type), v = fabs(s->total), e = fmax(x.below, x.above);
    if (!(v + e > largest) && !(s->magnitude > largest)) return x;
    if (v - e > largest * (1 + type_unit(s->type)) && (s->magnitude - v) / 2 + e <= largest)
        return bounded_exactly((union value){.f = copysign(INFINITY, s->total)});
    return undecided(x);
}
