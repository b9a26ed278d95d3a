#include "scheduler/schedule/schedule.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

/* Arithmetic wraps: a hostile schedule text must not be undefined behaviour; its addresses are then
 * found to be illegal. */
static int64_t wrap_add(int64_t a, int64_t b) {
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

static int64_t wrap_sub(int64_t a, int64_t b) {
    return (int64_t)((uint64_t)a - (uint64_t)b);
}

static int64_t wrap_mul(int64_t a, int64_t b) {
    return (int64_t)((uint64_t)a * (uint64_t)b);
}

static int64_t floor_div(int64_t a, int64_t b) {
    if (b == 0) return 0;
    if (b == -1) return wrap_sub(0, a);
    int64_t q = a / b;
    return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

static int64_t floor_mod(int64_t a, int64_t b) {
    return b == 0 ? 0 : wrap_sub(a, wrap_mul(floor_div(a, b), b));
}

static inline int64_t apply(enum sx_op op, int64_t a, int64_t b) {
    switch (op) {
    case SX_ADD:
        return wrap_add(a, b);
    case SX_SUB:
        return wrap_sub(a, b);
    case SX_MUL:
        return wrap_mul(a, b);
    case SX_DIV:
        return floor_div(a, b);
    case SX_MOD:
        return floor_mod(a, b);
    case SX_MIN:
        return a < b ? a : b;
    case SX_MAX:
        return a > b ? a : b;
    case SX_LT:
        return a < b;
    case SX_LE:
        return a <= b;
    case SX_EQ:
        return a == b;
    case SX_NE:
        return a != b;
    case SX_AND:
        return a != 0 && b != 0;
    case SX_OR:
        return a != 0 || b != 0;
    case SX_CONST:
    case SX_VAR:
        break;
    }
    assert(!"an expression's operation");
    return 0;
}

static inline int64_t leaf_or_eval(const struct sx *x, const int64_t *var_value) {
    if (x->op == SX_CONST) return x->value;
    if (x->op == SX_VAR) return var_value[x->var];
    return sx_eval(x, var_value);
}

int64_t sx_eval(const struct sx *x, const int64_t *var_value) {
    if (x->op == SX_CONST) return x->value;
    if (x->op == SX_VAR) return var_value[x->var];
    return apply(x->op, leaf_or_eval(x->a, var_value), leaf_or_eval(x->b, var_value));
}

bool sx_constant(const struct sx *x, int64_t *out) {
    if (x->op != SX_CONST) return false;
    if (out) *out = x->value;
    return true;
}

const struct sx *sx_const(struct arena *arena, int64_t value) {
    struct sx *x = arena_alloc(arena, sizeof *x);
    x->op = SX_CONST;
    x->value = value;
    return x;
}

const struct sx *sx_var(struct arena *arena, int var) {
    struct sx *x = arena_alloc(arena, sizeof *x);
    x->op = SX_VAR;
    x->var = var;
    return x;
}

static bool is_const(const struct sx *x, int64_t value) {
    return x->op == SX_CONST && x->value == value;
}

static bool is_truth(const struct sx *x) {
    return x->op >= SX_LT || is_const(x, 0) || is_const(x, 1);
}

static bool commutes(enum sx_op op) {
    return op == SX_ADD || op == SX_MUL || op == SX_MIN || op == SX_MAX || op == SX_EQ ||
           op == SX_NE || op == SX_AND || op == SX_OR;
}

bool sx_same(const struct sx *a, const struct sx *b) {
    if (a == b) return true;
    if (a->op != b->op) return false;
    if (a->op == SX_CONST) return a->value == b->value;
    if (a->op == SX_VAR) return a->var == b->var;
    return sx_same(a->a, b->a) && sx_same(a->b, b->b);
}

/* x op c, c constant: the simpler form, or NULL. */
static const struct sx *fold_right(struct arena *arena, enum sx_op op, const struct sx *x,
                                   const struct sx *right) {
    int64_t c = right->value;
    switch (op) {
    case SX_ADD:
        if (c == 0) return x;
        if (x->op == SX_ADD && x->b->op == SX_CONST)
            return sx_make(arena, SX_ADD, x->a, sx_const(arena, wrap_add(x->b->value, c)));
        return NULL;
    case SX_SUB:
        return sx_make(arena, SX_ADD, x, sx_const(arena, wrap_sub(0, c)));
    case SX_MUL:
        if (c == 1) return x;
        if (c == 0) return right;
        if (x->op == SX_MUL && x->b->op == SX_CONST)
            return sx_make(arena, SX_MUL, x->a, sx_const(arena, wrap_mul(x->b->value, c)));
        return NULL;
    case SX_DIV:
        return c == 1 ? x : NULL;
    case SX_MOD:
        return c == 1 ? sx_const(arena, 0) : NULL;
    case SX_AND:
        if (c == 0) return sx_const(arena, 0);
        return is_truth(x) ? x : NULL;
    case SX_OR:
        if (c != 0) return sx_const(arena, 1);
        return is_truth(x) ? x : NULL;
    default:
        return NULL;
    }
}

/* a - b where b is one of the terms of a: the others, or NULL. */
static const struct sx *cancel(struct arena *arena, const struct sx *a, const struct sx *b) {
    if (sx_same(a, b)) return sx_const(arena, 0);
    if (a->op != SX_ADD && a->op != SX_SUB) return NULL;
    const struct sx *rest = cancel(arena, a->a, b);
    if (rest) return sx_make(arena, a->op, rest, a->b);
    rest = a->op == SX_ADD ? cancel(arena, a->b, b) : NULL;
    return rest ? sx_make(arena, SX_ADD, a->a, rest) : NULL;
}

const struct sx *sx_make(struct arena *arena, enum sx_op op, const struct sx *a,
                         const struct sx *b) {
    assert(op != SX_CONST && op != SX_VAR && a && b);
    if (a->op == SX_CONST && b->op == SX_CONST)
        return sx_const(arena, apply(op, a->value, b->value));
    if (a->op == SX_CONST && commutes(op)) {
        const struct sx *t = a;
        a = b;
        b = t;
    }
    if (b->op == SX_CONST) {
        const struct sx *folded = fold_right(arena, op, a, b);
        if (folded) return folded;
    } else if ((op == SX_MIN || op == SX_MAX) && sx_same(a, b)) {
        return a;
    } else if (op == SX_SUB) {
        const struct sx *rest = cancel(arena, a, b);
        if (rest) return rest;
    }
    struct sx *x = arena_alloc(arena, sizeof *x);
    *x = (struct sx){.op = op, .a = a, .b = b};
    return x;
}

bool sx_uses(const struct sx *x, int var) {
    if (x->op == SX_CONST) return false;
    if (x->op == SX_VAR) return x->var == var;
    return sx_uses(x->a, var) || sx_uses(x->b, var);
}

struct rest {
    int var, n, most; /* n: written; more than `most`: too many */
    const int64_t *var_value;
    int64_t *out;
};

static void rest_add(struct rest *r, const struct sx *x, int64_t value) {
    if (x->op == SX_CONST) return;
    if (r->n < r->most) r->out[r->n] = value;
    r->n++;
}

/* Does it use the variable? Otherwise `value`; what the others' operands add is written. */
static bool rest_walk(struct rest *r, const struct sx *x, int64_t *value) {
    int64_t a, b;
    if (x->op == SX_CONST) return *value = x->value, false;
    if (x->op == SX_VAR) return *value = r->var_value[x->var], x->var == r->var;
    bool left = rest_walk(r, x->a, &a), right = rest_walk(r, x->b, &b);
    if (!left && !right) return *value = apply(x->op, a, b), false;
    if (!left) rest_add(r, x->a, a);
    if (!right) rest_add(r, x->b, b);
    return true;
}

int sx_rest(const struct sx *x, int var, const int64_t *var_value, int64_t *out, int most) {
    struct rest r = {.var = var, .most = most, .var_value = var_value, .out = out};
    int64_t value;
    if (!rest_walk(&r, x, &value)) rest_add(&r, x, value);
    return r.n > most ? -1 : r.n;
}

const struct sx *sx_step(struct arena *arena, const struct sx *x, int var, int64_t by) {
    int64_t c;
    if (!sx_uses(x, var)) return sx_const(arena, 0);
    if (x->op == SX_VAR) return sx_const(arena, by);
    const struct sx *a = sx_step(arena, x->a, var, by), *b = sx_step(arena, x->b, var, by);
    if (!a || !b) return NULL;
    switch (x->op) {
    case SX_ADD:
    case SX_SUB:
        return sx_make(arena, x->op, a, b);
    case SX_MUL:
        if (!sx_uses(x->b, var)) return sx_make(arena, SX_MUL, a, x->b);
        return sx_uses(x->a, var) ? NULL : sx_make(arena, SX_MUL, x->a, b);
    case SX_DIV: /* floor((x + k c) / c) = floor(x / c) + k */
        if (!sx_constant(x->b, &c) || !sx_constant(a, &by) || c <= 0 || by % c != 0) return NULL;
        return sx_const(arena, by / c);
    default:
        return NULL;
    }
}

/* ---- printing ---- */
static const struct {
    const char *text;
    int precedence; /* 0: written as a call */
} notation[] = {
    [SX_ADD] = {"+", 4}, [SX_SUB] = {"-", 4},   [SX_MUL] = {"*", 5},   [SX_DIV] = {"/", 5},
    [SX_MOD] = {"%", 5}, [SX_MIN] = {"min", 0}, [SX_MAX] = {"max", 0}, [SX_LT] = {"<", 3},
    [SX_LE] = {"<=", 3}, [SX_EQ] = {"==", 3},   [SX_NE] = {"!=", 3},   [SX_AND] = {"and", 2},
    [SX_OR] = {"or", 1},
};

/* Distinct variables of one name are told apart by their number. */
static void print_var(const struct schedule *s, int var, struct text *out) {
    if (!s || var < 0 || var >= s->nvars) {
        text_printf(out, "v~%d", var);
        return;
    }
    text_printf(out, s->var[var].again ? "%s~%d" : "%s", s->var[var].name, var);
}

static void print_prec(const struct sx *x, const struct schedule *s, int around, struct text *out) {
    if (x->op == SX_CONST) {
        text_printf(out, "%" PRId64, x->value);
        return;
    }
    if (x->op == SX_VAR) {
        print_var(s, x->var, out);
        return;
    }
    int prec = notation[x->op].precedence;
    if (prec == 0) {
        text_printf(out, "%s(", notation[x->op].text);
        print_prec(x->a, s, 0, out);
        text_printf(out, ", ");
        print_prec(x->b, s, 0, out);
        text_printf(out, ")");
        return;
    }
    bool parens = prec < around;
    if (parens) text_printf(out, "(");
    print_prec(x->a, s, prec == 3 ? 4 : prec, out);
    if (x->op == SX_ADD && x->b->op == SX_CONST && x->b->value < 0 && x->b->value != INT64_MIN) {
        text_printf(out, " - %" PRId64, -x->b->value);
    } else {
        text_printf(out, prec == 5 ? "%s" : " %s ", notation[x->op].text);
        print_prec(x->b, s, prec + 1, out);
    }
    if (parens) text_printf(out, ")");
}

void sx_print(const struct sx *x, const struct schedule *s, struct text *out) {
    print_prec(x, s, 0, out);
}
