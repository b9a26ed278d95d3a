/* Expressions, with what is known of their values: whether floats are exact decides how results are
 * compared, and where operations with jumps (casts to integers, comparisons, rounding) may stand.
 */
#include "tests/random/maker.h"

#include <math.h>

int mantissa(enum type type) {
    return type == TYPE_F64 ? 53 : 24; /* f16 and bf16 are computed in f32 */
}

static int stored_mantissa(enum type type) {
    return type == TYPE_F16 ? 11 : type == TYPE_BF16 ? 8 : mantissa(type);
}

double type_most(enum type type) {
    if (type == TYPE_BOOL) return 1;
    return ldexp(1, 8 * (int)type_size(type) - (type_is_signed(type) ? 1 : 0));
}

static bool fits(struct number n, int bits) {
    return n.most <= ldexp(1, bits + n.grain);
}

struct number number_stored(struct number n, enum type type) {
    if (type_is_float(type)) n.exact = n.exact && fits(n, stored_mantissa(type));
    return n;
}

struct number settle(struct number n, enum type type) {
    if (!type_is_float(type)) {
        if (n.most > type_most(type)) n.most = type_most(type);
        return (struct number){.most = n.most, .grain = 0, .exact = true};
    }
    n.exact = n.exact && fits(n, mantissa(type));
    return n;
}

struct number number_sum(struct number n, enum type type, double terms) {
    n.most *= terms;
    return settle(n, type);
}

struct number number_join(struct number a, struct number b) {
    if (b.most > a.most) a.most = b.most;
    if (b.grain < a.grain) a.grain = b.grain;
    a.exact = a.exact && b.exact;
    return a;
}

bool can_cast(const struct term *e, enum type to) {
    return type_is_float(to) || e->number.exact;
}

struct term make_cast(struct maker *g, struct term e, enum type to) {
    if (e.type == to) return e;
    is_a(g, CLASS_CAST);
    struct term out = {.type = to, .number = e.number};
    out.text = arena_printf(&g->arena, "%s(%s)", type_name(to), e.text);
    if (to == TYPE_BOOL) out.number.most = 1;
    if (type_is_float(to) && !type_is_float(e.type)) out.number.grain = 0;
    if (!type_is_float(to) && !type_is_float(e.type) && e.number.most > type_most(to) / 2)
        out.number.most = type_most(to);
    /* a negative number wraps to a large unsigned one */
    if (!type_is_float(to) && !type_is_signed(to) && to != TYPE_BOOL)
        out.number.most = type_most(to);
    out.number = settle(out.number, to);
    return out;
}

struct term axis_value(struct maker *g, int axis, enum type type) {
    struct term e = {.type = type, .text = arena_printf(&g->arena, "a%d", axis)};
    e.number = settle((struct number){.most = extent_of(g, axis), .exact = true}, type);
    is_a(g, CLASS_AXIS_VALUE);
    if (rarely(g->tape, 2)) e.text = arena_printf(&g->arena, "%s(a%d)", type_name(type), axis);
    return e;
}

/* ---- operations on one ---- */
static struct term of(struct maker *g, struct term e, struct number n, const char *format,
                      const char *with) {
    struct term out = {.type = e.type, .number = settle(n, e.type)};
    struct text t = {0};
    bool bare = *format == '@' || *format == '#' || *format == '-' || *format == '~';
    text_append(&t, "(", bare ? 1 : 0);
    for (const char *s = format; *s; s++) {
        if (*s == '@')
            text_printf(&t, "%s", e.text);
        else if (*s == '#')
            text_printf(&t, "%s", with);
        else
            text_append(&t, s, 1);
    }
    text_append(&t, ")", bare ? 1 : 0);
    out.text = arena_strdup(&g->arena, t.at);
    text_free(&t);
    return out;
}

static struct term rounding_operation(struct maker *g, struct term e) {
    static const char *const form[] = {"exp(@ * #)",
                                       "tanh(@ * #)",
                                       "sigmoid(@ * #)",
                                       "sin(@ * #)",
                                       "cos(@ * #)",
                                       "erf(@ * #)",
                                       "sqrt(abs(@) * #)",
                                       "rsqrt(abs(@) * # + 1.0)",
                                       "log(abs(@) * # + 1.0)",
                                       "@ / 3.0",
                                       "@ * 0.1",
                                       "@ * sigmoid(@ * #)",
                                       "@ / (abs(@) + 1.0)",
                                       "pow(abs(@) * # + 0.5, 2.0)"};
    int k = pick(g->tape, (int)(sizeof form / sizeof *form));
    double scale = ldexp(1, -(int)ceil(log2(e.number.most + 1)));
    struct number n = {.most = 3, .grain = -60, .exact = false};
    if (k >= 9 && k <= 11) n.most = e.number.most;
    is_a(g, CLASS_ROUNDS);
    return of(g, e, n, form[k], make_literal(g, e.type, scale));
}

static struct term jump(struct maker *g, struct term e) {
    struct number n = e.number;
    if (!n.exact) return of(g, e, n, "max(@, 0)", "");
    switch (pick(g->tape, 6)) {
    case 0:
        is_a(g, CLASS_SELECT);
        n.grain = n.grain > 0 ? 0 : n.grain;
        return of(g, e, n, "select(@ > #, @, 0)", make_literal(g, e.type, 2));
    case 1:
        n.grain = n.grain > 0 ? n.grain : 0;
        return of(g, e, n, "round(@ * #)", make_literal(g, e.type, 0.5));
    case 2:
        n.grain = n.grain > 0 ? n.grain : 0;
        return of(g, e, n, "floor(@ * #)", make_literal(g, e.type, 0.25));
    case 3:
        n.grain = n.grain > 0 ? n.grain : 0;
        return of(g, e, n, "ceil(@ * #)", make_literal(g, e.type, 0.25));
    case 4:
        is_a(g, CLASS_SELECT);
        return of(g, e, n, "select(@ == #, -@, @)", make_literal(g, e.type, 3));
    default:
        n.most = 7;
        return of(g, e, n, "@ % #", make_literal(g, e.type, 7));
    }
}

static struct term float_unary(struct maker *g, struct term e, const struct list *axes) {
    struct number n = e.number;
    int how = pick(g->tape, g->rounding ? 12 : 10);
    int c = 1 + pick(g->tape, 4);
    if (n.most > 1e12) how = 4;
    switch (how) {
    case 0:
        return of(g, e, n, "max(@, 0)", "");
    case 1:
        n.grain = n.grain > 0 ? 0 : n.grain;
        n.most += c;
        return of(g, e, n, "@ + #", make_literal(g, e.type, c));
    case 2:
        n.most *= 2;
        n.grain++;
        return of(g, e, n, "@ * #", "2.0");
    case 3:
        n.most /= 8;
        n.grain -= 3;
        return of(g, e, n, "@ * #", "0.125");
    case 4:
        n.most = ldexp(n.most, -12);
        n.grain -= 12;
        return of(g, e, n, "@ * #", make_literal(g, e.type, ldexp(1, -12)));
    case 5:
        n.most = fmin(n.most, 64);
        n.grain = n.grain > 0 ? 0 : n.grain;
        return of(g, e, n, rarely(g->tape, 2) ? "clip(@, -64, 64)" : "max(min(@, 64), -64)", "");
    case 6:
        return of(g, e, n, rarely(g->tape, 2) ? "abs(@)" : "-@", "");
    case 7:
        n.most += c;
        n.grain = n.grain > 0 ? 0 : n.grain;
        return of(g, e, n, "# - @", make_literal(g, e.type, c));
    case 8:
        if (!axes->n) return jump(g, e);
        return make_binary(g, e, axis_value(g, axes->at[pick_of(g, axes->n)], e.type));
    case 9:
        return jump(g, e);
    default:
        return rounding_operation(g, e);
    }
}

static struct term integer_unary(struct maker *g, struct term e, const struct list *axes) {
    static const char *const bits[] = {"shr(@, 3)",  "shl(@, 1)", "@ & 29",        "@ ^ 5",
                                       "@ | 2",      "~@",        "shl(@, @ & 5)", "shr(@, @ & 3)",
                                       "shl(@, 70)", "shr(@, 40)"};
    static const char *const forms[] = {"max(@, 1)",
                                        "@ + #",
                                        "@ * #",
                                        "min(@, 60)",
                                        "abs(@)",
                                        "clip(@, #, 100)",
                                        "# - @",
                                        "@ % #",
                                        "@ / #",
                                        "select(@ > #, @, 0)",
                                        "select(@ != #, 1, @)",
                                        "-@",
                                        "min(max(@, #), 90)"};
    struct number n = {.most = type_most(e.type), .exact = true};
    int how = pick(g->tape, 16), c = 1 + pick(g->tape, 7);
    if (how == 0) return of(g, e, e.number, forms[0], "");
    if (how <= 12) {
        if (how == 9 || how == 10) is_a(g, CLASS_SELECT);
        if (how == 3 || how == 5 || how == 12) n.most = type_is_signed(e.type) ? n.most : 100;
        if (how == 1 || how == 6) n.most = e.number.most + c;
        if (how == 2) n.most = e.number.most * c;
        if (how == 7) n.most = c;
        if (how >= 8 && how <= 10) n.most = e.number.most + 1;
        if (!type_is_signed(e.type) && how == 6) n.most = type_most(e.type);
        return of(g, e, n, forms[how], make_literal(g, e.type, c));
    }
    if (how == 13 && axes->n)
        return make_binary(g, e, axis_value(g, axes->at[pick_of(g, axes->n)], e.type));
    is_a(g, CLASS_BITS);
    return of(g, e, n, bits[pick(g->tape, (int)(sizeof bits / sizeof *bits))], "");
}

struct term make_unary(struct maker *g, struct term e, const struct list *axes) {
    static const char *const logic[] = {"~@", "@ ^ (1 == 1)", "select(@, 0, 1)", "@ & (0 < 1)"};
    if (e.type == TYPE_BOOL) return of(g, e, e.number, logic[pick(g->tape, 4)], "");
    return type_is_float(e.type) ? float_unary(g, e, axes) : integer_unary(g, e, axes);
}

/* ---- operations on two ---- */
struct term make_product(struct maker *g, struct term a, struct term b) {
    struct number n = {.most = a.number.most * b.number.most,
                       .grain = a.number.grain + b.number.grain,
                       .exact = a.number.exact && b.number.exact};
    struct term out = {.type = a.type, .number = settle(n, a.type)};
    if (a.type == TYPE_BOOL)
        out.text = arena_printf(&g->arena, "(%s & %s)", a.text, b.text);
    else
        out.text = arena_printf(&g->arena, "%s * %s", a.text, b.text);
    return out;
}

struct term make_binary(struct maker *g, struct term a, struct term b) {
    struct number n = number_join(a.number, b.number);
    const char *format;
    int how = pick(g->tape, 8);
    bool exact = n.exact, integer = !type_is_float(a.type);
    if (a.type == TYPE_BOOL) {
        static const char *const logic[] = {"(%s | %s)", "(%s & %s)", "(%s ^ %s)", "(%s == %s)"};
        struct term out = {.type = a.type, .number = n};
        out.text = arena_printf(&g->arena, logic[how % 4], a.text, b.text);
        return out;
    }
    if (how == 3 && a.number.most * b.number.most < (integer ? 1e300 : 1e6)) {
        struct term out = make_product(g, a, b);
        out.text = arena_printf(&g->arena, "(%s)", out.text);
        return out;
    }
    switch (how) {
    case 1:
        format = "(%s - %s)";
        n.most =
            integer && !type_is_signed(a.type) ? type_most(a.type) : a.number.most + b.number.most;
        break;
    case 2:
        format = "max(%s, %s)";
        break;
    case 4:
        format = "min(%s, %s)";
        break;
    case 5:
        format = exact ? "select(%1$s < %2$s, %2$s, %1$s)" : "max(%s, %s)";
        if (exact) is_a(g, CLASS_SELECT);
        break;
    case 6:
        format = integer ? "(%s %% %s)" : "max(%s, %s)";
        break;
    case 7:
        format = integer ? "(%s ^ %s)" : "(%s - %s)";
        n.most = integer ? type_most(a.type) : a.number.most + b.number.most;
        break;
    default:
        format = "(%s + %s)";
        n.most = a.number.most + b.number.most;
        break;
    }
    struct term out = {.type = a.type, .number = settle(n, a.type)};
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    out.text = arena_printf(&g->arena, format, a.text, b.text);
#pragma GCC diagnostic pop
    return out;
}

/* ---- into a buffer ---- */
struct term stored(struct maker *g, struct term e, enum type to) {
    bool half = to == TYPE_F16 || to == TYPE_BF16;
    if (!type_is_float(to) && type_is_float(e.type) && e.number.exact && rarely(g->tape, 2)) {
        double low = type_is_signed(to) ? -type_most(to) : 0, high = type_most(to) - 1;
        if (to == TYPE_I64 || to == TYPE_U64 || to == TYPE_BOOL) high = 1e6, low = 0;
        is_a(g, CLASS_CAST);
        e.text = arena_printf(&g->arena, "%s(clip(round(f64(%s) * 0.5), %.0f, %.0f))",
                              type_name(to), e.text, low, high);
        e.type = to;
        e.number = settle((struct number){.most = fmax(high, -low), .exact = true}, to);
        return e;
    }
    if (half && !type_is_float(e.type)) e = make_cast(g, e, TYPE_F32);
    if (half) {
        int shift = (int)ceil(log2(fmax(e.number.most, 1))) - (to == TYPE_F16 ? 11 : 8);
        if (shift > 0 && (e.number.most > 30000 || rarely(g->tape, 2))) {
            if (e.number.exact) { /* floor keeps what fits */
                e = of(g, e, (struct number){ldexp(e.number.most, -shift) + 1, 0, true},
                       "floor(@ * #)", make_literal(g, e.type, ldexp(1, -shift)));
            } else {
                e = of(g, e, (struct number){ldexp(e.number.most, -shift), -60, false}, "@ * #",
                       make_literal(g, e.type, ldexp(1, -shift)));
            }
        }
    }
    e = make_cast(g, e, to);
    e.number = number_stored(e.number, to);
    return e;
}
