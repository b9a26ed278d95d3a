#include "ir/number.h"
#include "scheduler/plan/val.h"

struct val val_const(int64_t c) {
    return (struct val){.c = c, .max = c, .min = c};
}

struct val val_var(struct arena *a, int var, int64_t max) {
    return (struct val){.x = sx_var(a, var), .max = max};
}

const struct sx *val_sx(struct arena *a, struct val v) {
    return v.x ? v.x : sx_const(a, v.c);
}

static int64_t bound(enum sx_op op, struct val a, struct val b) {
    switch (op) {
    case SX_ADD:
        return a.max + b.max;
    case SX_SUB:
        return b.min == INT64_MIN ? a.max : a.max - b.min;
    case SX_MUL:
        return a.max * b.max;
    case SX_DIV:
        return b.x || b.c <= 0 ? a.max : a.max / b.c;
    case SX_MIN:
        return a.max < b.max ? a.max : b.max;
    case SX_MAX:
        return a.max > b.max ? a.max : b.max;
    default:
        return a.max > 1 ? a.max : 1;
    }
}

static int64_t least(enum sx_op op, struct val a, struct val b) {
    if (a.min == INT64_MIN || (b.min == INT64_MIN && op != SX_MAX)) return INT64_MIN;
    switch (op) {
    case SX_ADD:
        return a.min + b.min;
    case SX_SUB:
        return b.x ? INT64_MIN : a.min - b.c;
    case SX_MUL:
        return a.min >= 0 && b.min >= 0 ? a.min * b.min : INT64_MIN;
    case SX_DIV:
        return a.min >= 0 && !b.x && b.c > 0 ? a.min / b.c : INT64_MIN;
    case SX_MIN:
        return a.min < b.min ? a.min : b.min;
    case SX_MAX:
        return a.min > b.min ? a.min : b.min;
    default:
        return INT64_MIN;
    }
}

/* Of which the result of two multiples is one. */
static int64_t multiple_made(enum sx_op op, int64_t a, int64_t b, int64_t by) {
    int64_t out;
    switch (op) {
    case SX_MUL:
        return __builtin_mul_overflow(a, b, &out) ? 1 : out;
    case SX_ADD:
    case SX_SUB:
    case SX_MIN:
    case SX_MAX:
        return common_divisor(a, b);
    case SX_DIV:
        return by > 0 && a % by == 0 ? a / by : 1;
    default:
        return 1;
    }
}

static int64_t multiple(const struct sx *x) {
    int64_t c = 0;
    if (sx_constant(x, &c)) return c < 0 ? -c : c;
    if (x->op == SX_VAR) return 1;
    if (!sx_constant(x->b, &c)) c = 0;
    return multiple_made(x->op, multiple(x->a), multiple(x->b), c);
}

int64_t val_multiple(struct val v) {
    return v.of ? v.of : v.x ? multiple(v.x) : v.c < 0 ? -v.c : v.c;
}

struct val val_make(struct arena *arena, enum sx_op op, struct val a, struct val b) {
    if (op == SX_SUB && val_same(a, b)) return val_const(0);
    if (op == SX_SUB && a.x && a.x->op == SX_ADD &&
        sx_same(a.x->a, val_sx(arena, b))) { /* (b + y) - b */
        int64_t c;
        return sx_constant(a.x->b, &c) ? val_const(c)
                                       : (struct val){.x = a.x->b, .max = a.max, .min = INT64_MIN};
    }
    if (!a.x && !b.x) {
        if (op == SX_MAX) return val_const(a.c > b.c ? a.c : b.c);
        if (op == SX_MIN) return val_const(a.c < b.c ? a.c : b.c);
        if (op == SX_SUB) return val_const(a.c - b.c);
        if (op == SX_DIV && a.c >= 0 && b.c > 0) return val_const(a.c / b.c);
    }
    const struct sx *x = sx_make(arena, op, val_sx(arena, a), val_sx(arena, b));
    int64_t c;
    if (sx_constant(x, &c)) return val_const(c);
    return (struct val){
        x, 0, bound(op, a, b), least(op, a, b),
        a.of || b.of ? multiple_made(op, val_multiple(a), val_multiple(b), b.x ? 0 : b.c) : 0};
}

struct val val_add(struct arena *arena, struct val a, struct val b) {
    if (!a.x && !b.x) return val_const(a.c + b.c);
    if (val_is(a, 0)) return b;
    if (val_is(b, 0)) return a;
    return val_make(arena, SX_ADD, a, b);
}

struct val val_scale(struct arena *arena, struct val a, int64_t k) {
    if (!a.x) return val_const(a.c * k);
    if (k == 1) return a;
    return val_make(arena, SX_MUL, a, val_const(k));
}

struct val val_div(struct arena *arena, struct val a, int64_t k) {
    return k == 1 ? a : val_make(arena, SX_DIV, a, val_const(k));
}

struct val val_ceil(struct arena *arena, struct val a, int64_t k) {
    if (k == 1) return a;
    if (a.min >= 1 && a.max <= k) return val_const(1);
    if (val_multiple(a) % k == 0) return val_div(arena, a, k);
    return val_div(arena, val_add(arena, a, val_const(k - 1)), k);
}

bool val_same(struct val a, struct val b) {
    if (!a.x || !b.x) return !a.x && !b.x && a.c == b.c;
    return sx_same(a.x, b.x);
}

struct val val_mul(struct arena *arena, struct val a, struct val b) {
    if (!a.x) return val_scale(arena, b, a.c);
    if (!b.x) return val_scale(arena, a, b.c);
    return val_make(arena, SX_MUL, a, b);
}

struct val val_blocks(struct arena *arena, struct val v, int64_t block, struct val stride) {
    if (!stride.x && stride.c % block == 0) return val_scale(arena, v, stride.c / block);
    return val_mul(arena, val_div(arena, v, block), stride);
}

enum { MAX_ATOMS = 24 };

struct linear {
    const struct sx *atom[MAX_ATOMS];
    int64_t coef[MAX_ATOMS], c;
    int n;
    bool full;
};

static void add_atom(struct linear *l, const struct sx *x, int64_t k) {
    for (int i = 0; i < l->n; i++)
        if (sx_same(l->atom[i], x)) {
            l->coef[i] += k;
            return;
        }
    if (l->n == MAX_ATOMS) {
        l->full = true;
        return;
    }
    l->atom[l->n] = x;
    l->coef[l->n++] = k;
}

static void flatten(struct linear *l, const struct sx *x, int64_t k) {
    int64_t c;
    if (x->op == SX_CONST) {
        l->c += k * x->value;
    } else if (x->op == SX_ADD || x->op == SX_SUB) {
        flatten(l, x->a, k);
        flatten(l, x->b, x->op == SX_ADD ? k : -k);
    } else if (x->op == SX_MUL && sx_constant(x->b, &c)) {
        flatten(l, x->a, k * c);
    } else if (x->op == SX_MUL && sx_constant(x->a, &c)) {
        flatten(l, x->b, k * c);
    } else {
        add_atom(l, x, k);
    }
}

/* What is common cancels: inside unrolled loops differences of addresses must become constants. */
struct val val_minus(struct arena *arena, struct val a, struct val b) {
    struct linear l = {.n = 0};
    if (!a.x && !b.x) return val_const(a.c - b.c);
    flatten(&l, val_sx(arena, a), 1);
    flatten(&l, val_sx(arena, b), -1);
    if (l.full) return val_make(arena, SX_SUB, a, b);
    bool positive = false;
    for (int i = 0; i < l.n; i++) positive |= l.coef[i] > 0;
    struct val sum = val_const(positive ? 0 : l.c);
    for (int sign = 1; sign >= -1; sign -= 2)
        for (int i = 0; i < l.n; i++) {
            if (!l.coef[i] || (l.coef[i] > 0) != (sign > 0)) continue;
            struct val atom = {.x = l.atom[i], .max = a.max, .min = INT64_MIN};
            struct val term = val_scale(arena, atom, l.coef[i] * sign);
            sum = val_make(arena, sign > 0 ? SX_ADD : SX_SUB, sum, term);
        }
    if (positive) sum = val_add(arena, sum, val_const(l.c));
    if (sum.x) sum.max = a.max;
    return sum;
}
