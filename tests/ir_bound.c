/* The error bounds of the reference: what operations and sums can be in the types that
 * implementations compute in never leaves them, and they are not idle. */
#include "tests/ir_support.h"

#include "ir/bound.h"

#include <float.h>

enum { TRIALS = 100000, SUMS = 1200, MOST_TERMS = 700 };

static double uniform(uint64_t *seed) { /* in [-1, 1) */
    return (double)(next_random(seed) >> 11) * 0x1p-52 - 1;
}

/* Magnitudes over several binades; now and then 0, a tie, a small integer. */
static double pick(uint64_t *seed) {
    uint64_t r = next_random(seed) >> 40;
    if (r % 16 == 0) return 0;
    if (r % 16 == 1) return (double)(r / 16 % 9) - 4;
    if (r % 16 == 2) return (double)(r / 16 % 9) / 2 - 2;
    return ldexp(uniform(seed), (int)(r / 16 % 9) - 4);
}

static struct bounded pick_bounded(enum type t, uint64_t *seed) {
    struct bounded x = {.v.f = type_round(t, pick(seed))};
    if (next_random(seed) & 0x100) return x;
    x.below = ldexp(fabs(uniform(seed)), -(int)(next_random(seed) >> 40) % 20);
    x.above = ldexp(fabs(uniform(seed)), -(int)(next_random(seed) >> 40) % 20);
    return x;
}

static double within(const struct bounded *x, uint64_t *seed) {
    uint64_t r = next_random(seed) >> 40;
    double s = uniform(seed);
    if (r % 4 == 0) s = 1;
    if (r % 4 == 1) s = -1;
    return x->v.f + s * (s < 0 ? x->below : x->above);
}

static long double exactly(enum opcode op, long double a, long double b, long double c) {
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
        return fmodl(a, b);
    case OP_NEG:
        return -a;
    case OP_MIN:
        return fminl(a, b);
    case OP_MAX:
        return fmaxl(a, b);
    case OP_ABS:
        return fabsl(a);
    case OP_FLOOR:
        return floorl(a);
    case OP_CEIL:
        return ceill(a);
    case OP_ROUND:
        return rintl(a);
    case OP_SQRT:
        return sqrtl(a);
    case OP_RSQRT:
        return 1 / sqrtl(a);
    case OP_EXP:
        return expl(a);
    case OP_LOG:
        return logl(a);
    case OP_SIN:
        return sinl(a);
    case OP_COS:
        return cosl(a);
    case OP_TANH:
        return tanhl(a);
    case OP_SIGMOID:
        return 1 / (1 + expl(-a));
    case OP_ERF:
        return erfl(a);
    case OP_ATAN:
        return atanl(a);
    case OP_POW:
        return powl(a, b);
    case OP_CLIP:
        return fminl(fmaxl(a, b), c);
    default:
        fail_msg("no operation on floats");
        return 0;
    }
}

static bool is_elementwise(enum opcode op) {
    return op_info[op].arity > 0 && op_info[op].error != ERROR_BITS &&
           op_info[op].error != ERROR_COMPARE && op != OP_SELECT && op != OP_CAST;
}

/* Any operands in their ranges, any rounding within the operation's units: the result is in its
 * range. */
static void holds_for(enum opcode op, enum type t, uint64_t *seed) {
    struct bounded arg[3];
    double a[3] = {0};
    enum type in = type_computed(t);
    for (int k = 0; k < op_info[op].arity; k++) {
        arg[k] = pick_bounded(t, seed);
        a[k] = within(&arg[k], seed);
    }
    struct bounded x = bounded_eval(op, t, t, arg, false);
    long double y = exactly(op, a[0], a[1], a[2]);
    if (op_info[op].units && isfinite((double)y))
        y += y * (long double)(type_unit(in) * uniform(seed) * (op_info[op].units - 1));
    double r = type_round(in, (double)y);
    if (op_info[op].units == 1) r = type_round(in, (double)exactly(op, a[0], a[1], a[2]));
    if (op_info[op].units == 0 || in == TYPE_F64) r = (double)y;
    if (isinf(x.below) || (isnan(r) && isnan(x.v.f)) || r == x.v.f) return;
    double slack = 1e-14 * (fabs(r) + fabs(x.v.f) + fabs(a[0]) + fabs(a[1]));
    if (r >= x.v.f - x.below - slack && r <= x.v.f + x.above + slack) return;
    fail_msg(
        "%s of %s: (%.17g -%g +%g, %.17g -%g +%g) at (%.17g, %.17g) is %.17g, not in %.17g -%g +%g",
        op_info[op].id, type_name(t), arg[0].v.f, arg[0].below, arg[0].above, arg[1].v.f,
        arg[1].below, arg[1].above, a[0], a[1], r, x.v.f, x.below, x.above);
}

static void operations_stay_in_their_bounds(void **state) {
    (void)state;
    static const enum type types[] = {TYPE_F32, TYPE_F16, TYPE_BF16, TYPE_F64};
    uint64_t seed = 7;
    for (int op = 0; op < OP_COUNT; op++)
        for (int n = 0; is_elementwise(op) && n < TRIALS; n++) holds_for(op, types[n % 4], &seed);
}

/* Exact operands: no rounding is allowed for where none happens, and one at most where it does. */
static void exact_operands_leave_little(void **state) {
    (void)state;
    uint64_t seed = 3;
    for (int n = 0; n < TRIALS; n++) {
        struct bounded a[2] = {{.v.f = (float)pick(&seed)}, {.v.f = (float)pick(&seed)}};
        struct bounded p = bounded_eval(OP_MUL, TYPE_F32, TYPE_F32, a, false);
        double exact = a[0].v.f * a[1].v.f;
        if ((float)exact == exact) assert_true(bounded_is_exact(&p));
        assert_true(p.above <= 0x1p-24 * fabs(exact) * 1.001 + FLT_MIN);
        p = bounded_eval(OP_MUL, TYPE_F32, TYPE_F32, a, true);
        assert_true(bounded_is_exact(&p) && p.v.f == (float)exact);
    }
}

/* ---- sums ---- */

enum shape {
    RANDOM,
    POSITIVE,
    EQUAL,
    RAMPS,
    ALTERNATING,
    CANCELLING,
    SMALL_AFTER_LARGE,
    WHOLE,
    SHAPES
};

static double term_of(enum shape shape, int k, int n, uint64_t *seed) {
    switch (shape) {
    case POSITIVE:
        return fabs(uniform(seed));
    case EQUAL:
        return 0.1;
    case RAMPS:
        return (k < n / 2 ? 1 : -1) + uniform(seed) / 64;
    case ALTERNATING:
        return (k % 2 ? 1 : -1) * (1 + uniform(seed) / 64);
    case CANCELLING:
        return k == n - 1 ? -0.5 * (n - 1) : fabs(uniform(seed));
    case SMALL_AFTER_LARGE:
        return k == 0 ? 100 : 1e-6;
    case WHOLE:
        return (double)(int)(uniform(seed) * 3);
    default:
        return uniform(seed);
    }
}

/* A sum in the type, in one of several orders: as they come, backwards, shuffled, on lanes, in
 * blocks, by halves. */
static double halves(enum type t, const double *x, int n) {
    if (n == 1) return x[0];
    return type_round(t, halves(t, x, n / 2) + halves(t, x + n / 2, n - n / 2));
}

static double add_up(enum type t, double *x, int n, int order, uint64_t *seed) {
    double lane[16] = {0}, sum = 0;
    int lanes = order == 3 ? 16 : order == 4 ? 8 : 1;
    if (order == 5) return halves(t, x, n);
    for (int k = n - 1; k > 0 && order == 2; k--) {
        int other = (int)(next_random(seed) >> 33) % (k + 1);
        double y = x[k];
        x[k] = x[other];
        x[other] = y;
    }
    for (int k = 0; k < n; k++) {
        int l = order == 4 ? k * lanes / n : k % lanes;
        lane[l] = type_round(t, lane[l] + x[order == 1 ? n - 1 - k : k]);
    }
    for (int l = 0; l < lanes; l++) sum = type_round(t, sum + lane[l]);
    return sum;
}

static double sums_of(enum type t, enum type in, enum shape shape, uint64_t *seed) {
    static double x[MOST_TERMS];
    int n = 1 + (int)(next_random(seed) >> 33) % MOST_TERMS;
    struct bounded_sum s;
    bounded_sum_open(&s, t, type_unit(in), bounded_exactly((union value){.f = 0}));
    for (int k = 0; k < n; k++) {
        x[k] = type_round(in, term_of(shape, k, n, seed));
        struct bounded term = {.v.f = x[k]};
        bounded_sum_add(&s, &term);
    }
    struct bounded want = bounded_sum_close(&s);
    double worst = 0;
    for (int order = 0; order < 6; order++) {
        enum type accumulator = order % 2 ? type_computed(t) : t;
        double got = type_round(t, add_up(accumulator, x, n, order, seed)),
               e = fabs(got - want.v.f);
        bool stagnates = shape == CANCELLING && order == 2 &&
                         type_unit(t) > 0x1p-24; /* what little adds up to is lost */
        if (isinf(want.above) || e == 0 || stagnates) continue;
        if (e > fmax(want.below, want.above))
            fail_msg("%s: %d terms of shape %d in order %d: %.17g, not in %.17g within %g",
                     type_name(t), n, shape, order, got, want.v.f, want.above);
        worst = fmax(worst, e / want.above);
    }
    return worst;
}

static void sums_stay_in_their_bounds(void **state) {
    (void)state;
    static const enum type types[][2] = {
        {TYPE_F32, TYPE_F32}, {TYPE_F32, TYPE_BF16}, {TYPE_F16, TYPE_F16}, {TYPE_BF16, TYPE_BF16}};
    uint64_t seed = 11;
    for (int t = 0; t < 4; t++)
        for (int shape = 0; shape < SHAPES; shape++) {
            double worst = 0;
            for (int n = 0; n < SUMS / SHAPES; n++)
                worst = fmax(worst, sums_of(types[t][0], types[t][1], shape, &seed));
            if (shape == RANDOM && !(worst > 0.005))
                fail_msg("%s: errors reach %g of the bounds only", type_name(types[t][0]), worst);
        }
}

/* Products of factors that err: each by its own amount, all by one factor, or all by one shift. */
static void sums_of_products_stay_in_their_bounds(void **state) {
    (void)state;
    uint64_t seed = 5;
    for (int n = 0; n < 3000; n++) {
        int terms = 1 + (int)(next_random(&seed) >> 33) % MOST_TERMS, common = n % 3;
        double unit = n % 2 ? 0x1p-8 : 0x1p-24, at = uniform(&seed), got = 0;
        bool positive = n % 5 == 0;
        struct bounded_sum s;
        bounded_sum_open(&s, TYPE_F32, unit, bounded_exactly((union value){.f = 0}));
        for (int k = 0; k < terms; k++) {
            double x = uniform(&seed), e, d = common ? at : uniform(&seed);
            if (positive) x = fabs(x);
            e = common == 2 ? unit : unit * fabs(x);
            struct bounded a = {.v.f = x, .below = e, .above = e},
                           b = {.v.f = (float)uniform(&seed)};
            if (positive) b.v.f = fabs(b.v.f);
            bounded_sum_product(&s, &a, &b, TYPE_F32);
            double used = common == 1 ? x * (1 + d * unit) : x + d * e;
            got = (float)(got + (float)(used * b.v.f));
        }
        struct bounded want = bounded_sum_close(&s);
        if (fabs(got - want.v.f) > want.above)
            fail_msg("%d products, errors %d: %.17g, not in %.17g within %g", terms, common, got,
                     want.v.f, want.above);
    }
}

static void whole_numbers_are_summed_exactly(void **state) {
    (void)state;
    struct bounded_sum s;
    bounded_sum_open(&s, TYPE_F32, 0, bounded_exactly((union value){.f = 0}));
    for (int k = 0; k < 1000; k++) {
        struct bounded a = {.v.f = k % 7 - 3}, b = {.v.f = k % 5};
        bounded_sum_product(&s, &a, &b, TYPE_F32);
    }
    struct bounded x = bounded_sum_close(&s);
    assert_true(bounded_is_exact(&x));
    struct bounded large = {.v.f = 0x1p25};
    bounded_sum_add(&s, &large);
    x = bounded_sum_close(&s);
    assert_false(bounded_is_exact(&x));
}

/* ---- steps, infinities ---- */

static void steps_are_undecided_at_their_edges(void **state) {
    (void)state;
    struct bounded near = {.v.f = 2.4999, .below = 0.001, .above = 0.001},
                   far = {.v.f = 2.4, .below = 0.001, .above = 0.001};
    struct bounded r = bounded_eval(OP_ROUND, TYPE_F32, TYPE_F32, &near, false);
    assert_true(r.v.f == 2 && r.below == 0 && r.above == 1 && r.loose);
    struct bounded i = bounded_eval(OP_CAST, TYPE_I8, TYPE_F32, &r, false);
    assert_true(i.v.i == 2 && i.below == 0 && i.above == 1 && i.loose);
    r = bounded_eval(OP_ROUND, TYPE_F32, TYPE_F32, &far, false);
    assert_true(bounded_is_exact(&r) && !r.loose);
    struct bounded edge[2] = {near, {.v.f = 2.5}};
    struct bounded c = bounded_eval(OP_LT, TYPE_BOOL, TYPE_F32, edge, false);
    assert_true(c.v.i == 1 && c.below == 1 && c.loose);
    struct bounded unlike[3] = {c, {.v.f = 1}, {.v.f = 5}}, alike[3] = {c, near, {.v.f = 2.5}};
    r = bounded_eval(OP_SELECT, TYPE_F32, TYPE_F32, unlike, false);
    assert_true(r.loose && r.v.f == 1 && r.above == 4);
    r = bounded_eval(OP_SELECT, TYPE_F32, TYPE_F32, alike, false);
    assert_true(!r.loose && r.above < 0.002);
    struct bounded neither[3] = {c, {.v.f = NAN}, {.v.f = 2}};
    r = bounded_eval(OP_SELECT, TYPE_F32, TYPE_F32, neither, false);
    assert_true(isinf(r.below)); /* it may be NaN */
    neither[0].v.i = 0;
    r = bounded_eval(OP_SELECT, TYPE_F32, TYPE_F32, neither, false);
    assert_true(isinf(r.below));
    struct bounded same[2] = {near, near};
    c = bounded_eval(OP_EQ, TYPE_BOOL, TYPE_F32, same, false); /* what a maximum chose is itself */
    assert_true(c.v.i == 1 && bounded_is_exact(&c));
    struct bounded clip[3] = {near, {.v.f = 0}, {.v.f = 1}};
    r = bounded_eval(OP_CLIP, TYPE_F32, TYPE_F32, clip, false);
    assert_true(r.v.f == 1 && bounded_is_exact(&r));
}

static void infinities_are_values(void **state) {
    (void)state;
    struct bounded big[2] = {{.v.f = 60000}, {.v.f = 10000}}, zero[2] = {{.v.f = 0}, {.v.f = 0}};
    struct bounded r =
        bounded_store(TYPE_F16, bounded_eval(OP_ADD, TYPE_F16, TYPE_F16, big, false));
    assert_true(isinf(r.v.f) && bounded_is_exact(&r));
    big[1].v.f = 5503;
    big[1].below = big[1].above = 20; /* on both sides of the largest */
    r = bounded_store(TYPE_F16, bounded_eval(OP_ADD, TYPE_F16, TYPE_F16, big, false));
    assert_true(isinf(r.above) && r.loose);
    struct bounded times[2] = {r, {.v.f = 0}}; /* zero, or not a number */
    r = bounded_eval(OP_MUL, TYPE_F16, TYPE_F16, times, false);
    assert_true(isinf(r.above) && r.loose);
    r = bounded_eval(OP_DIV, TYPE_F32, TYPE_F32, zero, false);
    assert_true(isnan(r.v.f) && bounded_is_exact(&r));
    zero[0].above = 1e-3;
    r = bounded_eval(OP_DIV, TYPE_F32, TYPE_F32, zero, false);
    assert_true(isinf(r.above) && r.loose);
    struct bounded low = {.v.f = -INFINITY};
    r = bounded_eval(OP_EXP, TYPE_F32, TYPE_F32, &low, false);
    assert_true(r.v.f == 0 && r.above <= FLT_MIN);
    struct bounded near = {.v.f = 1e-3, .below = 1, .above = 1};
    r = bounded_eval(OP_LOG, TYPE_F32, TYPE_F32, &near, false);
    assert_true(isinf(r.above) && r.loose);
}

static void instructions_may_be_farther_off(void **state) {
    (void)state;
    const struct leeway leeway = {.units[OP_DIV] = 3};
    const double u = type_unit(TYPE_F32);
    struct bounded a[2] = {{.v.f = 1}, {.v.f = 3}};
    struct bounded is = bounded_eval_within(&leeway, OP_DIV, TYPE_F32, TYPE_F32, a, false);
    assert_true(is.above < 1.01 * u / 3); /* exact operands: rounded once */
    a[0].below = a[0].above = 8 * u;
    struct bounded was = bounded_eval(OP_DIV, TYPE_F32, TYPE_F32, a, false);
    is = bounded_eval_within(&leeway, OP_DIV, TYPE_F32, TYPE_F32, a, false);
    assert_true(was.above < 9.01 * u / 3 && is.above > 10.99 * u / 3 && is.above < 11.01 * u / 3);
    is = bounded_eval_within(&leeway, OP_MUL, TYPE_F32, TYPE_F32, a, false);
    was = bounded_eval(OP_MUL, TYPE_F32, TYPE_F32, a, false);
    assert_true(is.above == was.above);
}

static struct bounded sum_in(enum type t, const double *term, int n) {
    struct bounded_sum s;
    bounded_sum_open(&s, t, type_unit(t), (struct bounded){0});
    for (int k = 0; k < n; k++) bounded_sum_add(&s, &(struct bounded){.v.f = term[k]});
    return bounded_sum_close(&s);
}

static struct bounded sum_of(const double *term, int n) {
    return sum_in(TYPE_F32, term, n);
}

static struct bounded sum_of_products(const double (*factor)[2], int n) {
    struct bounded_sum s;
    bounded_sum_open(&s, TYPE_F32, type_unit(TYPE_F32), (struct bounded){0});
    for (int k = 0; k < n; k++)
        bounded_sum_product(&s, &(struct bounded){.v.f = factor[k][0]},
                            &(struct bounded){.v.f = factor[k][1]}, TYPE_F32);
    return bounded_sum_close(&s);
}

static bool is_undecided(struct bounded x) {
    return x.loose && isinf(x.above) && isinf(x.below);
}

/* What another order, a fused product or a factor taken out of the sum may change. */
static void sums_beyond_the_largest(void **state) {
    (void)state;
    static const double up[] = {2e38, 2e38}, turns[] = {3e38, -3e38, 3e38},
                        both[] = {INFINITY, 1, -INFINITY}, one[] = {1, -INFINITY, 2},
                        nan[] = {INFINITY, NAN, -INFINITY}, little[] = {3e38, -2e38};
    assert_true(isinf(sum_of(up, 2).v.f) && !is_undecided(sum_of(up, 2)));
    assert_true(is_undecided(sum_of(turns, 3))); /* 3e38 + 3e38 first */
    assert_true(is_undecided(sum_of(both, 3)));
    assert_true(sum_of(one, 3).v.f == -INFINITY && !is_undecided(sum_of(one, 3)));
    assert_true(isnan(sum_of(nan, 3).v.f) && !is_undecided(sum_of(nan, 3)));
    assert_false(is_undecided(sum_of(little, 1)));
    static const double over[][2] = {{1e20, 1e20}}, back[][2] = {{1e20, 1e20}, {-1e20, 1e20}},
                        signs[][2] = {{INFINITY, 1}, {INFINITY, -1}}, zero[][2] = {{INFINITY, 0}},
                        given[][2] = {{INFINITY, 2}, {3, 1}}, wrong[][2] = {{NAN, 2}, {3, 1}};
    assert_true(isinf(sum_of_products(over, 1).v.f) && !is_undecided(sum_of_products(over, 1)));
    assert_true(is_undecided(sum_of_products(back, 2)));
    assert_true(is_undecided(sum_of_products(signs, 2)));
    assert_true(is_undecided(sum_of_products(zero, 1)));
    assert_true(isinf(sum_of_products(given, 2).v.f) && !is_undecided(sum_of_products(given, 2)));
    assert_true(isnan(sum_of_products(wrong, 2).v.f) && !is_undecided(sum_of_products(wrong, 2)));
    struct bounded large[2] = {{.v.f = 1e30}, {.v.f = 1e30}},
                   third[2] = {{.v.f = 0}, {.v.f = 1e-30}};
    third[0] =
        bounded_eval(OP_MUL, TYPE_F32, TYPE_F32, large, false); /* x * y * z: as x * (y z)? */
    third[0] = bounded_eval(OP_MUL, TYPE_F32, TYPE_F32, third, false);
    assert_true(isinf(third[0].v.f) && third[0].arose);
    struct bounded_sum s;
    bounded_sum_open(&s, TYPE_F32, type_unit(TYPE_F32), (struct bounded){0});
    bounded_sum_add(&s, &third[0]);
    assert_true(is_undecided(bounded_sum_close(&s)));
}

/* An infinite term, and finite ones that pass the largest number on their way to it. */
static void sums_meet_infinities(void **state) {
    (void)state;
    static const double meet[] = {2e38, -INFINITY, 2e38}, join[] = {-2e38, -INFINITY, -2e38},
                        below[] = {2e38, -INFINITY, 1e38};
    assert_true(is_undecided(sum_of(meet, 3)));
    assert_true(sum_of(join, 3).v.f == -INFINITY && !is_undecided(sum_of(join, 3)));
    assert_true(sum_of(below, 3).v.f == -INFINITY && !is_undecided(sum_of(below, 3)));
    static const double against[][2] = {{3e38, -4}, {1, INFINITY}},
                        along[][2] = {{3e38, 4}, {1, INFINITY}};
    assert_true(is_undecided(sum_of_products(against, 2))); /* -inf + inf, unless it is fused */
    assert_true(sum_of_products(along, 2).v.f == INFINITY);
    assert_false(is_undecided(sum_of_products(along, 2)));
    static const double back[] = {1.5e308, 1.5e308, -1.5e308}, up[] = {1.5e308, 1.5e308};
    assert_true(is_undecided(sum_in(TYPE_F64, back, 3)));
    assert_true(isinf(sum_in(TYPE_F64, up, 2).v.f) && !is_undecided(sum_in(TYPE_F64, up, 2)));
}

static bool allows(enum type t, const struct bounded *x, union value y) {
    if (isinf(x->below) || isinf(x->above)) return true;
    double v = type_is_float(t) ? x->v.f : (double)x->v.i,
           is = type_is_float(t) ? y.f : (double)y.i;
    if (isnan(v) || isnan(is) || isinf(v)) return (isnan(v) && isnan(is)) || v == is;
    double e = 0x1p-40 * fabs(v);
    return is >= v - x->below - e && is <= v + x->above + e;
}

static const double anything[] = {NAN, -INFINITY, -1e30, -1, 0, 0.5, 3, INFINITY};
enum { ANYTHING = sizeof anything / sizeof anything[0] };

/* With operand `open` undecided, whatever value the reference has for it. */
static void try_open(enum opcode op, enum type to, int arity, int open) {
    for (int of = 0; of < ANYTHING * ANYTHING * ANYTHING; of++) {
        struct bounded arg[3] = {0};
        const int pick[3] = {of % ANYTHING, of / ANYTHING % ANYTHING, of / ANYTHING / ANYTHING};
        for (int k = 0; k < arity; k++) arg[k].v.f = anything[pick[k]];
        arg[open].below = arg[open].above = INFINITY;
        arg[open].loose = true;
        struct bounded is = bounded_eval(op, to, TYPE_F64, arg, false);
        for (int k = 0; k < ANYTHING; k++) {
            union value x[3] = {arg[0].v, arg[1].v, arg[2].v};
            x[open].f = anything[k];
            if (allows(to, &is, op_eval(op, to, TYPE_F64, x))) continue;
            fail_msg("'%s' of %g, %g, %g, operand %d undecided: %g is not in %g - %g + %g",
                     op_info[op].id, arg[0].v.f, arg[1].v.f, arg[2].v.f, open, anything[k], is.v.f,
                     is.below, is.above);
        }
    }
}

/* What is undecided may be NaN, infinite or any number: results that this can change are too. */
static void undecided_operands(void **state) {
    (void)state;
    for (int op = 0; op < OP_COUNT; op++) {
        enum error_rule rule = op_info[op].error;
        if (rule == ERROR_NONE || rule == ERROR_BITS || rule == ERROR_SELECT) continue;
        enum type to = rule == ERROR_COMPARE ? TYPE_BOOL : TYPE_F64;
        int arity = op_info[op].arity;
        for (int open = 0; open < arity; open++) try_open((enum opcode)op, to, arity, open);
        if (rule != ERROR_CAST) continue;
        try_open((enum opcode)op, TYPE_I32, arity, 0);
        try_open((enum opcode)op, TYPE_F16, arity, 0);
        try_open((enum opcode)op, TYPE_BOOL, arity, 0);
    }
}

/* Integers that are not certain: every value is tried; wide ones keep to their type. */
static void integers_follow(void **state) {
    (void)state;
    struct bounded a[2] = {{.v.i = 5, .below = 0, .above = 1, .loose = true}, {.v.i = 3}};
    struct bounded r = bounded_eval(OP_MOD, TYPE_I32, TYPE_I32, a, false);
    assert_true(r.v.i == 2 && r.below == 2 && r.above == 0 && r.loose);
    a[1].v.i = INT64_C(9007199254740993);
    struct bounded b[2] = {{.v.i = 2}, a[1]};
    r = bounded_eval(OP_ADD, TYPE_I64, TYPE_I64, b, false);
    assert_true(r.v.i == INT64_C(9007199254740995) && bounded_is_exact(&r));
    struct bounded wide[2] = {{.v.i = 100, .below = 90, .above = 90}, {.v.i = 100}};
    r = bounded_eval(OP_ADD, TYPE_I32, TYPE_I32, wide, false);
    assert_true(r.above == 90 && r.below == 90);
    r = bounded_eval(OP_ADD, TYPE_I8, TYPE_I8, wide, false);
    assert_true(isinf(r.above)); /* may wrap */
}

/* Of the type, near 0, near its ends, or any; how far off it may be: a little, or far. */
static struct bounded pick_integer(enum type t, uint64_t *seed) {
    int64_t low, high;
    type_limits(t, &low, &high);
    uint64_t r = next_random(seed) >> 32, how = next_random(seed) >> 40;
    int64_t near = (int64_t)(r % 41) - 20, far = how % 3 ? 40 : 5000;
    struct bounded x = {.v.i = type_wrap(t, how % 8 == 0   ? (uint64_t)low + r % 50
                                            : how % 8 == 1 ? (uint64_t)high - r % 50
                                            : how % 8 == 2 ? next_random(seed)
                                                           : (uint64_t)near)};
    if (how & 0x100) return x;
    x.below = (double)((int64_t)(next_random(seed) >> 40) % far);
    x.above = (double)((int64_t)(next_random(seed) >> 40) % far);
    return x;
}

/* A value that the operand can have; false: it would leave the type. */
static bool within_integer(enum type t, const struct bounded *x, uint64_t *seed, int64_t *out) {
    uint64_t r = next_random(seed) >> 40, span = (uint64_t)(x->below + x->above) + 1;
    int64_t off = (int64_t)(r % 4 == 0 ? 0 : r % 4 == 1 ? span - 1 : r / 4 % span);
    *out = type_wrap(t, (uint64_t)x->v.i - (uint64_t)x->below + (uint64_t)off);
    bool reaches = t == TYPE_U64 ? (uint64_t)*out >= (uint64_t)x->v.i : *out >= x->v.i;
    return reaches == (off >= (int64_t)x->below);
}

/* Now and then near the operand before, which a comparison needs. */
static struct bounded pick_beside(enum type t, const struct bounded *last, uint64_t *seed) {
    struct bounded x = pick_integer(t, seed);
    uint64_t r = next_random(seed) >> 40;
    if (r % 4 == 0) x.v.i = type_wrap(t, (uint64_t)last->v.i + r / 4 % 9 - 4);
    return x;
}

static void integer_holds_for(enum opcode op, enum type t, uint64_t *seed) {
    struct bounded arg[3] = {{.below = 0}};
    union value a[3] = {{0}};
    bool right = true;
    enum type to = op_info[op].flags & OP_TO_BOOL ? TYPE_BOOL : t;
    for (int k = 0; k < op_info[op].arity; k++) {
        enum type of = op == OP_SELECT && k == 0 ? TYPE_BOOL : t;
        arg[k] = k ? pick_beside(of, &arg[k - 1], seed) : pick_integer(of, seed);
        if (of == TYPE_BOOL && arg[k].below + arg[k].above > 0)
            arg[k].below = arg[k].v.i ? 1 : 0, arg[k].above = arg[k].v.i ? 0 : 1;
        right &= within_integer(of, &arg[k], seed, &a[k].i);
    }
    if (!right || (op == OP_CLIP && a[1].i > a[2].i)) return;
    struct bounded x = bounded_eval(op, to, t, arg, false);
    int64_t r = op_eval(op, to, t, a).i, v = x.v.i;
    bool more = t == TYPE_U64 ? (uint64_t)r > (uint64_t)v : r > v;
    double off = (double)(more ? (uint64_t)r - (uint64_t)v : (uint64_t)v - (uint64_t)r);
    if (isinf(x.below) || off <= (more ? x.above : x.below)) return;
    fail_msg("%s of %s: (%lld -%g +%g, %lld -%g +%g) at (%lld, %lld, %lld) is %lld, not in %lld "
             "-%g +%g",
             op_info[op].id, type_name(t), (long long)arg[0].v.i, arg[0].below, arg[0].above,
             (long long)arg[1].v.i, arg[1].below, arg[1].above, (long long)a[0].i,
             (long long)a[1].i, (long long)a[2].i, (long long)r, (long long)v, x.below, x.above);
}

static void integers_stay_in_their_bounds(void **state) {
    static const enum opcode ops[] = {OP_ADD, OP_SUB, OP_MUL,  OP_NEG, OP_ABS,   OP_MIN,
                                      OP_MAX, OP_DIV, OP_CLIP, OP_MOD, OP_EQ,    OP_NE,
                                      OP_LT,  OP_LE,  OP_GT,   OP_GE,  OP_SELECT};
    static const enum type types[] = {TYPE_I8, TYPE_U8, TYPE_I16, TYPE_U64, TYPE_U32, TYPE_I64};
    (void)state;
    uint64_t seed = 11;
    for (size_t k = 0; k < sizeof ops / sizeof *ops; k++)
        for (int n = 0; n < TRIALS; n++) integer_holds_for(ops[k], types[n % 6], &seed);
}

/* ---- programs ---- */

static struct bounds *bounds_of(struct trial *t) {
    struct bounds *b = program_run_bounded(t->p, t->data, NULL, &t->diags);
    if (!b) diags_print(&t->diags, stderr);
    assert_non_null(b);
    return b;
}

/* The interpreter in the types lies in the bounds; samples have the same. */
static void check_program(const char *path, const char *sizes, const char *out, bool samples) {
    struct trial t;
    trial_open(&t);
    trial_read(&t, path);
    assert_true(trial_bind(&t, sizes, ""));
    trial_data(&t, 9);
    struct bounds *b = bounds_of(&t);
    int o = buffer_of(&t, out);
    int64_t n = t.p->buffer[o].elements;
    struct bounded *sampled = calloc((size_t)n, sizeof *sampled);
    int64_t *at = calloc((size_t)n, sizeof *at);
    for (int64_t k = 0; k < n; k++) at[k] = n - 1 - k;
    assert_int_equal(program_sample_bounded(t.p, t.data, o, at, (int)n, NULL, sampled), samples);
    trial_run(&t);
    for (int64_t k = 0; k < n; k++) {
        struct bounded x = bounds_at(b, o, k), y = sampled[n - 1 - k];
        bool is_float = type_is_float(t.p->buffer[o].type);
        double v = is_float ? x.v.f : (double)x.v.i, got = t.after[o][k];
        if (!(fabs(got - v) <= fmax(x.below, x.above)))
            fail_msg("%s: %s[%d] is %.9g, not %.9g within %g", path, out, (int)k, got, v, x.above);
        if (x.above > 2e-3 * fmax(1, fabs(v)))
            fail_msg("%s: %s[%d] = %g has a bound of %g", path, out, (int)k, v, x.above);
        if (samples && is_float)
            assert_true(fabs(y.v.f - v) <= 1e-12 * (1 + fabs(v)) &&
                        fabs(y.above - x.above) <= 0.6 * x.above + 1e-15);
        if (samples && !is_float) assert_true(y.v.i == x.v.i);
    }
    free(sampled);
    free(at);
    bounds_free(b);
    trial_close(&t);
}

static void programs_stay_in_their_bounds(void **state) {
    (void)state;
    static const struct {
        const char *path, *sizes, *out;
        bool samples;
    } cases[] = {
        {"operators/gmm", "M=5 N=7 K=90", "C", true},
        {"operators/c2d", "N=2 C=3 K=4 P=5 Q=3 R=3 S=2", "O", true},
        {"operators/t2d", "N=1 C=3 K=2 P=3 Q=5 R=3 S=3", "O", true},
        {"operators/scn", "M=3 N=29", "Y", true},
        {"operators/softmax", "M=3 N=70", "Y", true},
        {"operators/layernorm", "M=3 N=40", "Y", true},
        {"operators/att", "B=2 T=5 D=3", "O", true},
        {"operators/var", "M=3 N=50", "v", true},
        {"f32/gru", "T=3 H=4", "y", false},
        {"i8/gmm_scaled", "M=9 N=7 K=20", "D", true},
        {"i8/residual", "N=1 C=4 H=6 W=3", "O", true},
    };
    char path[512];
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        snprintf(path, sizeof path, SOURCE_DIR "/examples/%s.isam", cases[k].path);
        check_program(path, cases[k].sizes, cases[k].out, cases[k].samples);
    }
}

/* A sum over a statement's own earlier value, a scatter, a triangle, an element set again, an
 * update in place. */
static void statements_of_every_kind(void **state) {
    (void)state;
    struct trial t;
    struct bounds *b;
    trial_open(&t);
    trial_parse(&t, "a",
                "kernel a() { in A: f32[6, 9]  in B: f32[9]  in I: i32[6]  out O: f32[14]  out P: "
                "f32[6]  out Q: i8[6]  inout R: f32[9]\n"
                " axes i: 6, k: 9, n: 14\n temp s: f32[6]\n"
                " O[n] = 0.125\n O[i+k] += A[i,k] * B[k]\n"
                " s[i] = 0\n s[i] += A[i,k] * B[k] where k <= i\n"
                " P[i] = 1\n P[i] *= 1 + A[i,k] / 8\n P[i] max= s[5-i]\n P[i] = P[i] * 0.3\n"
                " Q[i] = i8(clip(round(f64(I[i]) * 0.5), -7, 7))\n"
                " R[k] += R[k] * B[k]\n R[k] = sqrt(abs(R[k]))\n }");
    assert_true(trial_bind(&t, "", ""));
    trial_data(&t, 4);
    b = bounds_of(&t);
    static const char *const out[] = {"O", "P", "Q", "R"};
    struct bounded want[4][14];
    for (int o = 0; o < 4; o++)
        for (int64_t k = 0; k < t.p->buffer[buffer_of(&t, out[o])].elements; k++)
            want[o][k] = bounds_at(b, buffer_of(&t, out[o]), k);
    bounds_free(b);
    trial_run(&t);
    for (int o = 0; o < 4; o++)
        for (int64_t k = 0; k < t.p->buffer[buffer_of(&t, out[o])].elements; k++) {
            struct bounded x = want[o][k];
            double v = o == 2 ? (double)x.v.i : x.v.f, got = t.after[buffer_of(&t, out[o])][k];
            if (!(fabs(got - v) <= fmax(x.below, x.above)))
                fail_msg("%s[%d] is %.9g, not %.9g within %g", out[o], (int)k, got, v, x.above);
            assert_true(fmax(x.below, x.above) <= 1e-5 * (1 + fabs(v)));
            if (o == 2)
                assert_true(bounded_is_exact(&x)); /* ties too: the product with 1/2 is exact */
        }
    trial_close(&t);
}

/* A factor below the normal range may count as 0 where an instruction does so: each term by itself,
 * for no other type, and nothing else changes. */
static void factors_below_the_normal_range(void **state) {
    (void)state;
    struct trial t;
    trial_open(&t);
    trial_parse(&t, "a",
                "kernel a() { in A: bf16[3, 20]  in B: f32[20]  out C: f32[3]\n"
                " axes i: 3, k: 20\n C[i] = 0\n C[i] += f32(A[i,k]) * B[k]\n }");
    assert_true(trial_bind(&t, "", ""));
    trial_data(&t, 4);
    int a = buffer_of(&t, "A"), b = buffer_of(&t, "B"), c = buffer_of(&t, "C");
    for (int k = 0; k < 20; k++) {
        double one = k % 2 ? -0x1p-128 : 0x1p-130;
        type_store(TYPE_F32, (char *)t.data[b] + 4 * k, (union value){.f = 0x1.8p100});
        type_store(TYPE_BF16, (char *)t.data[a] + 2 * k, (union value){.f = one});
        type_store(TYPE_BF16, (char *)t.data[a] + 2 * (20 + k), (union value){.f = k - 9});
        type_store(TYPE_BF16, (char *)t.data[a] + 2 * (40 + k),
                   (union value){.f = k ? 0x1p-126 : one});
    }
    const uint32_t types[] = {0, UINT32_C(1) << TYPE_F32, UINT32_C(1) << TYPE_BF16};
    const int64_t at[] = {0, 1, 2};
    struct bounded x[3][3], y[3];
    for (int m = 0; m < 3; m++) {
        const struct leeway leeway = {.zeroed = types[m]};
        struct bounds *r = program_run_bounded(t.p, t.data, &leeway, &t.diags);
        assert_non_null(r);
        assert_true(program_sample_bounded(t.p, t.data, c, at, 3, &leeway, y));
        for (int i = 0; i < 3; i++) {
            x[m][i] = bounds_at(r, c, i);
            assert_true(y[i].v.f == x[m][i].v.f);
            assert_true(y[i].above <= 1.6 * x[m][i].above); /* samples know exact sums better */
        }
        bounds_free(r);
    }
    double all = 10 * (0x1p-128 - 0x1p-130) * 0x1.8p100, first = 0x1p-130 * 0x1.8p100;
    for (int i = 0; i < 3; i++) assert_true(x[0][i].above == x[1][i].above);
    assert_true(x[0][1].above == x[2][1].above);
    assert_true(x[0][0].above < all / 1000 && x[2][0].above >= all && x[2][0].above < 3 * all);
    assert_true(x[0][2].above < first / 1000 && x[2][2].above >= first);
    assert_true(x[2][2].above < 1.1 * first);
    assert_true(y[0].above >= all && y[2].above >= first && y[1].above <= x[0][1].above);
    trial_close(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operations_stay_in_their_bounds),
        cmocka_unit_test(exact_operands_leave_little),
        cmocka_unit_test(sums_stay_in_their_bounds),
        cmocka_unit_test(sums_of_products_stay_in_their_bounds),
        cmocka_unit_test(whole_numbers_are_summed_exactly),
        cmocka_unit_test(steps_are_undecided_at_their_edges),
        cmocka_unit_test(infinities_are_values),
        cmocka_unit_test(sums_beyond_the_largest),
        cmocka_unit_test(sums_meet_infinities),
        cmocka_unit_test(undecided_operands),
        cmocka_unit_test(integers_follow),
        cmocka_unit_test(integers_stay_in_their_bounds),
        cmocka_unit_test(programs_stay_in_their_bounds),
        cmocka_unit_test(statements_of_every_kind),
        cmocka_unit_test(factors_below_the_normal_range),
        cmocka_unit_test(instructions_may_be_farther_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
