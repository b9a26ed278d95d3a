/* Numbers of the symbolic walk: affine, with questions that are answered only when they have one
 * answer in the ranges of all counters. */
#include "scheduler/verify/sym.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const int64_t LIMIT = INT64_C(1) << 58;

bool sym_fail(struct sym *s, const char *fmt, ...) {
    va_list args;
    if (s->over) return false;
    s->undecided = -1;
    va_start(args, fmt);
    vsnprintf(s->why, sizeof s->why, fmt, args);
    va_end(args);
    return false;
}

bool sym_never(struct sym *s, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    vsnprintf(s->why, sizeof s->why, fmt, args);
    va_end(args);
    s->over = true;
    return false;
}

void sym_compare(struct sym *s, int64_t regions) {
    enum { FOR_A_STEP = 32 };
    s->compared += regions;
    sym_spend(s, s->compared / FOR_A_STEP);
    s->compared %= FOR_A_STEP;
}

bool sym_spend(struct sym *s, int64_t steps) {
    s->steps -= steps;
    if (s->steps >= 0) return true;
    sym_fail(s, "more steps than its budget");
    s->over = true;
    return false;
}

static bool small(int64_t x) {
    return x > -LIMIT && x < LIMIT;
}

static bool add_times(int64_t *x, int64_t y, int64_t times) {
    int64_t product;
    return !__builtin_mul_overflow(y, times, &product) && small(product) && small(*x += product);
}

void sym_carry(int64_t *rest, int64_t by, int64_t *quotient) {
    if (!*rest) return;
    *quotient = *rest / by;
    *rest %= by;
}

struct lin lin_of(int64_t c) {
    return (struct lin){.c = c};
}

bool lin_same(const struct lin *a, const struct lin *b) {
    return a->c == b->c && memcmp(a->k, b->k, sizeof a->k) == 0;
}

static bool moves(const struct lin *x) {
    int64_t some = 0;
    for (int k = 0; k < SYM_LOOPS; k++) some |= x->k[k];
    return some != 0;
}

bool lin_add(struct lin *x, const struct lin *y, int64_t times) {
    bool good = add_times(&x->c, y->c, times);
    if (!moves(y)) return good;
    for (int k = 0; k < SYM_LOOPS; k++)
        if (y->k[k]) good &= add_times(&x->k[k], y->k[k], times);
    return good;
}

bool lin_constant(const struct lin *x, int64_t *out) {
    if (moves(x)) return false;
    *out = x->c;
    return true;
}

static int64_t clamped(__int128 x) {
    return x > INT64_MAX / 2 ? INT64_MAX / 2 : x < INT64_MIN / 2 ? INT64_MIN / 2 : (int64_t)x;
}

static void widen(__int128 *low, __int128 *high, int64_t coef, int64_t lo, int64_t hi) {
    *low += (__int128)coef * (coef > 0 ? lo : hi);
    *high += (__int128)coef * (coef > 0 ? hi : lo);
}

/* Of a form in which no counter's end is a form itself. */
static void plain_ends(const struct sym *s, const struct lin *x, __int128 *low, __int128 *high) {
    *low = *high = x->c;
    for (int k = 0; k < s->nloops; k++)
        if (x->k[k]) widen(low, high, x->k[k], s->lo[k], s->hi[k]);
}

/* One end of the form's range: the largest value, or the least of all. A counter that ends where a
 * size says is its last value there, so that the size cancels: T - 1 - u is not below 0. */
static __int128 lin_end(const struct sym *s, const struct lin *of, bool largest) {
    struct lin x = *of;
    for (int k = s->nsizes; s->ntied && k < s->nloops; k++) {
        struct lin moved = x;
        int64_t times = x.k[k];
        if (!s->tied[k] || times == 0 || (times > 0) != largest) continue;
        moved.k[k] = 0;
        if (lin_add(&moved, &s->last[k], times)) x = moved;
    }
    __int128 low, high;
    plain_ends(s, &x, &low, &high);
    return largest ? high : low;
}

void lin_range(const struct sym *s, const struct lin *x, int64_t *lo, int64_t *hi) {
    __int128 low, high;
    if (s->ntied) {
        low = lin_end(s, x, false);
        high = lin_end(s, x, true);
    } else {
        plain_ends(s, x, &low, &high);
    }
    *lo = clamped(low);
    *hi = clamped(high);
}

static int64_t floor_div(int64_t a, int64_t b) {
    return a / b - (a % b < 0);
}

/* The one counter that it depends on; -1. */
static int only_counter(const struct sym *s, const struct lin *x) {
    int of = -1;
    for (int k = 0; k < s->nloops; k++) {
        if (!x->k[k]) continue;
        if (of >= 0) return -1;
        of = k;
    }
    return of;
}

/* Where a form of one counter changes from x <= 0 to x > 0, or back. */
static void note_turn(const struct sym *s, const struct lin *x) {
    int of = only_counter(s, x);
    if (of < 0) return;
    int64_t step = x->k[of], last = step > 0 ? floor_div(-x->c, step) : floor_div(x->c - 1, -step);
    if (last >= s->lo[of] && last < s->hi[of]) s->turn[of] = last;
}

enum truth lin_le(const struct sym *s, const struct lin *a, const struct lin *b) {
    __int128 lo = (__int128)a->c - b->c, hi = lo;
    struct lin x = *a;
    for (int k = 0; k < s->nloops; k++)
        if (a->k[k] != b->k[k]) widen(&lo, &hi, a->k[k] - b->k[k], s->lo[k], s->hi[k]);
    if (hi <= 0) return YES;
    if (lo > 0) return NO;
    if (!lin_add(&x, b, -1)) return MAYBE;
    if (s->ntied && lin_end(s, &x, true) <= 0) return YES;
    if (s->ntied && lin_end(s, &x, false) > 0) return NO;
    note_turn(s, &x);
    return MAYBE;
}

struct affine affine_of(int64_t c) {
    return (struct affine){.l = {.c = c}};
}

bool affine_same(const struct affine *a, const struct affine *b) {
    return memcmp(a, b, sizeof *a) == 0;
}

bool affine_add(struct affine *x, const struct affine *y, int64_t times) {
    bool good = lin_add(&x->l, &y->l, times);
    for (int d = 0; d < SYM_DIMS; d++)
        if (y->d[d]) good &= add_times(&x->d[d], y->d[d], times);
    return good;
}

bool affine_constant(const struct affine *x, int64_t *out) {
    for (int d = 0; d < SYM_DIMS; d++)
        if (x->d[d]) return false;
    return lin_constant(&x->l, out);
}

void affine_range(const struct sym *s, const struct affine *x, int64_t *lo, int64_t *hi) {
    int64_t first, last;
    lin_range(s, &x->l, &first, &last);
    __int128 low = first, high = last;
    for (int d = 0; d < s->ndims; d++)
        if (x->d[d]) widen(&low, &high, x->d[d], 0, s->n[d] - 1);
    *lo = clamped(low);
    *hi = clamped(high);
}

void affine_ends(const struct sym *s, const struct affine *x, struct lin *first, struct lin *last) {
    *first = *last = x->l;
    for (int d = 0; d < s->ndims; d++)
        *(x->d[d] > 0 ? &last->c : &first->c) += x->d[d] * (s->n[d] - 1);
}

static void split(int64_t x, int64_t by, int64_t *quotient, int64_t *rest) {
    if (x % by == 0)
        *quotient = x / by;
    else
        *rest = x;
}

/* Where the form leaves the multiple of `by` in which it begins. */
static void note_quotient(const struct sym *s, const struct affine *x, int64_t by) {
    struct lin first, last, below = lin_of(0);
    int64_t value;
    affine_ends(s, x, &first, &last);
    value = first.c;
    for (int k = 0; k < s->nloops; k++) value += first.k[k] * s->lo[k];
    int64_t turn = floor_div(value, by);
    last.c -= by * (turn + 1) - 1;
    below.c = by * turn;
    note_turn(s, &last);
    if (lin_add(&below, &first, -1)) note_turn(s, &below);
}

static int64_t common_divisor(int64_t a, int64_t b) {
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a < 0 ? -a : a;
}

/* After how many values of each counter the form is in the same place between two multiples. */
static void note_cycle(const struct sym *s, const struct affine *x, int64_t by) {
    enum { LONGEST = 64 };
    for (int k = 0; k < s->nloops; k++) {
        if (!x->l.k[k]) continue;
        int64_t period = by / common_divisor(x->l.k[k], by), *all = &s->cycle[k];
        *all = *all && period <= LONGEST ? *all / common_divisor(*all, period) * period : 0;
        if (*all > LONGEST) *all = 0;
    }
}

/* What divides goes to the quotient; the rest must stay between two multiples. */
bool affine_divide(struct sym *s, const struct affine *of, int64_t by, struct affine *quotient,
                   struct affine *rest) {
    const struct affine copy = *of, *x = &copy;
    if (by <= 0) return sym_fail(s, "a divisor is not positive");
    *quotient = *rest = affine_of(0);
    for (int k = 0; k < SYM_LOOPS; k++)
        if (x->l.k[k]) split(x->l.k[k], by, &quotient->l.k[k], &rest->l.k[k]);
    for (int d = 0; d < SYM_DIMS; d++)
        if (x->d[d]) split(x->d[d], by, &quotient->d[d], &rest->d[d]);
    rest->l.c = x->l.c;
    int64_t lo, hi;
    affine_range(s, rest, &lo, &hi);
    int64_t turn = floor_div(lo, by);
    if (turn != floor_div(hi, by)) {
        note_quotient(s, rest, by);
        note_cycle(s, rest, by);
        sym_fail(s, "a quotient or remainder changes its course");
        s->undecided = only_counter(s, &rest->l);
        return false;
    }
    quotient->l.c = turn;
    rest->l.c -= turn * by;
    return true;
}

void sym_set(struct sym *s, int var, const struct affine *f) {
    s->var[var] = *f;
    s->v->var[var] = f->l.c;
    for (int k = 0; k < s->nloops; k++) s->v->var[var] += f->l.k[k] * s->lo[k];
}

/* ---- expressions ---- */
static bool undecided(struct sym *s, const struct lin *x, int64_t least) {
    struct lin from = *x;
    from.c += 1 - least;
    note_turn(s, &from);
    sym_fail(s, "a condition or a minimum is decided differently in a loop's iterations");
    s->undecided = only_counter(s, x);
    return false;
}

static bool multiply(struct sym *s, const struct affine *a, const struct affine *b,
                     struct affine *out) {
    int64_t c;
    *out = affine_of(0);
    if (affine_constant(a, &c))
        return affine_add(out, b, c) || sym_fail(s, "a number is out of range");
    if (affine_constant(b, &c))
        return affine_add(out, a, c) || sym_fail(s, "a number is out of range");
    return sym_fail(s, "two loop counters are multiplied");
}

static bool divide(struct sym *s, enum sx_op op, const struct affine *a, const struct affine *b,
                   struct affine *out) {
    int64_t by;
    struct affine quotient, rest;
    if (!affine_constant(b, &by)) return sym_fail(s, "a divisor depends on a loop counter");
    if (by == 0) return *out = affine_of(0), true;
    if (!affine_divide(s, a, by, &quotient, &rest)) return false;
    *out = op == SX_DIV ? quotient : rest;
    return true;
}

static bool compare(struct sym *s, enum sx_op op, const struct affine *a, const struct affine *b,
                    struct affine *out) {
    struct affine x = *a;
    int64_t lo, hi;
    bool value;
    if (!affine_add(&x, b, -1)) return sym_fail(s, "a number is out of range");
    affine_range(s, &x, &lo, &hi);
    if (op == SX_MIN || op == SX_MAX) {
        if (hi > 0 && lo < 0) return undecided(s, &x.l, 1);
        *out = (hi <= 0) == (op == SX_MIN) ? *a : *b;
        return true;
    }
    if (op == SX_LT || op == SX_LE) {
        int64_t most = op == SX_LE ? 0 : -1;
        if (hi > most && lo <= most) return undecided(s, &x.l, most + 1);
        value = hi <= most;
    } else {
        if (!(lo == 0 && hi == 0) && lo <= 0 && hi >= 0) return undecided(s, &x.l, lo == 0 ? 1 : 0);
        value = (lo == 0 && hi == 0) == (op == SX_EQ);
    }
    *out = affine_of(value);
    return true;
}

static bool logical(struct sym *s, const struct sx *x, struct affine *out) {
    struct affine a, b;
    int64_t p = 0, q = 0;
    bool knows_a = sym_eval(s, x->a, &a) && affine_constant(&a, &p);
    bool knows_b = sym_eval(s, x->b, &b) && affine_constant(&b, &q);
    bool ends = x->op == SX_OR;
    if ((knows_a && (p != 0) == ends) || (knows_b && (q != 0) == ends)) {
        *out = affine_of(ends);
        return true;
    }
    if (!knows_a || !knows_b) return false;
    *out = affine_of(!ends);
    return true;
}

bool sym_eval(struct sym *s, const struct sx *x, struct affine *out) {
    struct affine a, b;
    if (x->op == SX_CONST) {
        *out = affine_of(x->value);
        return small(x->value) || sym_fail(s, "a number is out of range");
    }
    if (x->op == SX_VAR) return *out = s->var[x->var], true;
    if (x->op == SX_AND || x->op == SX_OR) return logical(s, x, out);
    if (!sym_eval(s, x->a, &a) || !sym_eval(s, x->b, &b)) return false;
    switch (x->op) {
    case SX_ADD:
    case SX_SUB:
        *out = a;
        return affine_add(out, &b, x->op == SX_ADD ? 1 : -1) ||
               sym_fail(s, "a number is out of range");
    case SX_MUL:
        return multiply(s, &a, &b, out);
    case SX_DIV:
    case SX_MOD:
        return divide(s, x->op, &a, &b, out);
    default:
        return compare(s, x->op, &a, &b, out);
    }
}

/* Whole groups in a size, and what is left: a size in groups is a multiple of them and a rest that
 * is less (open_sizes). */
static struct lin groups_of(const struct lin *size, int64_t group, struct lin *rest) {
    struct lin whole = lin_of(size->c / group);
    *rest = lin_of(size->c % group);
    for (int k = 0; k < SYM_LOOPS; k++) {
        whole.k[k] = size->k[k] % group ? 0 : size->k[k] / group;
        rest->k[k] = size->k[k] % group ? size->k[k] : 0;
    }
    return whole;
}

struct lin sym_extent(const struct sym *s, int axis) {
    const struct axis *a = &s->v->p->axis[axis];
    if (!a->size) return lin_of(axis_steps(a));
    const struct lin *size = &s->var[a->size - 1].l;
    if (!a->group) return *size;
    struct lin rest, whole = groups_of(size, a->group, &rest);
    return a->rest ? rest : whole;
}

struct lin sym_first(const struct sym *s, int axis) {
    const struct axis *a = &s->v->p->axis[axis];
    if (!a->rest) return lin_of(a->first);
    struct lin rest, first = s->var[a->size - 1].l;
    groups_of(&first, a->group, &rest);
    lin_add(&first, &rest, -1);
    return first;
}

bool sym_integer(struct sym *s, const struct sx *x, int64_t *out) {
    struct affine f;
    return sym_eval(s, x, &f) &&
           (affine_constant(&f, out) || sym_fail(s, "a size or bound depends on a loop counter"));
}
