/* Statements of nested expressions become lists of three-operand steps (ISA Mapper §2.1): a tree in
 * post-order, each step used once. */
#include "ir/bind_int.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One statement under construction. */
struct lower {
    struct binder *b;
    struct stmt *s;
    int reads_cap, ops_cap;
};

/* The type of an expression as written. Not known: literals, parameters and axes, which take the
 * type that is wanted. */
struct inferred {
    bool ok, known, fraction; /* fraction: a float literal is among them */
    enum type type;
};

static enum type computed_in(enum type t) {
    return t == TYPE_F16 || t == TYPE_BF16 ? TYPE_F32 : t;
}

static const struct symbol *find_access(const struct binder *b, const struct expr *e) {
    size_t n = strlen(e->name);
    for (int k = b->nsymbols; k-- > 0;) {
        const char *name = b->symbol[k].name;
        if (strncmp(name, e->name, n) == 0 && strcmp(name + n, e->next ? "'" : "") == 0)
            return &b->symbol[k];
    }
    return NULL;
}

static int find_buffer(struct binder *b, const struct expr *e) {
    const struct symbol *s = find_access(b, e);
    if (s && !s->is_axis) return s->index;
    if (s)
        BIND_FAIL(b, e->at, "'%s' is an axis and has no elements", e->name);
    else if (e->next)
        BIND_FAIL(b, e->at, "unknown state '%s'; only a state of a recurrence has a next value",
                  e->name);
    else
        BIND_FAIL(b, e->at, "unknown buffer '%s'", e->name);
    return -1;
}

static bool affine_constant(const int64_t *row, int naxes) {
    for (int a = 0; a < naxes; a++)
        if (row[a] != 0) return false;
    return true;
}

static bool affine_scale(int64_t *row, int naxes, int64_t by) {
    for (int a = 0; a <= naxes; a++)
        if (__builtin_mul_overflow(row[a], by, &row[a])) return false;
    return true;
}

static bool affine_add(int64_t *row, const int64_t *more, int naxes, int64_t sign) {
    for (int a = 0; a <= naxes; a++) {
        int64_t x;
        if (__builtin_mul_overflow(more[a], sign, &x)) return false;
        if (__builtin_add_overflow(row[a], x, &row[a])) return false;
    }
    return true;
}

static bool affine_name(struct binder *b, const struct expr *e, int64_t *row) {
    const struct symbol *s = binder_find(b, e->name);
    if (s && !s->is_axis)
        return BIND_FAIL(b, e->at,
                         "buffer '%s' stands in an index; indices are affine in axes, what "
                         "depends on data needs an opaque call",
                         e->name);
    if (s)
        row[s->index] = 1;
    else if (!expr_integer(e, &b->names, &row[b->p->naxes]))
        return BIND_FAIL(b, e->at, "unknown name '%s'; expected an axis or a parameter", e->name);
    return true;
}

static bool affine_multiply(struct binder *b, const struct expr *e, int64_t *row, int64_t *right) {
    int n = b->p->naxes;
    if (affine_constant(row, n)) {
        int64_t by = row[n];
        memcpy(row, right, sizeof *row * (size_t)(n + 1));
        right[n] = by;
    } else if (!affine_constant(right, n)) {
        return BIND_FAIL(b, e->at, "an axis is multiplied by an axis; indices are affine");
    }
    if (affine_scale(row, n, right[n])) return true;
    return BIND_FAIL(b, e->at, "an index overflows 64 bits");
}

static bool affine_op(struct binder *b, const struct expr *e, int64_t *row) {
    int64_t right[MAX_AXES + 1] = {0};
    bool binary = op_info[e->op].arity == 2;
    bool sum = e->op == OP_ADD || e->op == OP_SUB || e->op == OP_NEG;
    if (!sum && e->op != OP_MUL) {
        if (expr_integer(e, &b->names, &row[b->p->naxes])) return true;
        if (e->op == OP_DIV || e->op == OP_MOD)
            return BIND_FAIL(b, e->at,
                             "'%s' of an axis is not affine; split the axis into two "
                             "instead",
                             op_info[e->op].spelling);
        return BIND_FAIL(b, e->at,
                         "an index or constraint is not affine: only + - * with "
                         "parameters and axes may stand here");
    }
    if (!lower_affine(b, e->arg[0], row)) return false;
    if (binary && !lower_affine(b, e->arg[1], right)) return false;
    if (e->op == OP_MUL) return affine_multiply(b, e, row, right);
    bool fits = e->op == OP_NEG ? affine_scale(row, b->p->naxes, -1)
                                : affine_add(row, right, b->p->naxes, e->op == OP_SUB ? -1 : 1);
    return fits ? true : BIND_FAIL(b, e->at, "an index overflows 64 bits");
}

bool lower_affine(struct binder *b, const struct expr *e, int64_t *row) {
    memset(row, 0, sizeof *row * (size_t)(b->p->naxes + 1));
    switch (e->kind) {
    case EXPR_INT:
        if (e->i < 0 && e->f > 0) return BIND_FAIL(b, e->at, "an index overflows 64 bits");
        row[b->p->naxes] = e->i;
        return true;
    case EXPR_NAME:
        return affine_name(b, e, row);
    case EXPR_OP:
        return affine_op(b, e, row);
    case EXPR_FLOAT:
        return BIND_FAIL(b, e->at, "a fraction stands where an integer is expected");
    case EXPR_READ:
        return BIND_FAIL(b, e->at,
                         "buffer '%s' stands in an index; indices are affine in axes, what "
                         "depends on data needs an opaque call",
                         e->name);
    }
    return false;
}

/* The value of a literal in type t; reports what does not fit. */
static bool literal_value(struct binder *b, size_t at, bool fraction, int64_t i, double f,
                          enum type t, union value *out) {
    int64_t low, high;
    if (type_is_float(t)) {
        out->f = type_round(t, f);
        return true;
    }
    if (fraction)
        return BIND_FAIL(b, at,
                         "a fraction stands where %s is expected; write an integer or cast "
                         "the other operand",
                         type_name(t));
    type_limits(t, &low, &high);
    out->i = i;
    bool fits = t == TYPE_U64 ? f >= 0 : !(i < 0 && f > 0) && i >= low && i <= high;
    if (fits) return true;
    return BIND_FAIL(b, at, "literal %.17g does not fit %s", f, type_name(t));
}

static bool lower_access(struct binder *b, const struct expr *e, struct access *out) {
    struct program *p = b->p;
    size_t width = (size_t)p->naxes + 1;
    if ((out->buffer = find_buffer(b, e)) < 0) return false;
    const struct buffer *f = &p->buffer[out->buffer];
    if (e->nindex != f->ndims)
        return BIND_FAIL(b, e->at, "'%s' has %d dimensions, but %d indices are given", f->name,
                         f->ndims, e->nindex);
    out->coef = arena_array(&p->arena, width * (size_t)f->ndims, sizeof *out->coef);
    for (int d = 0; d < f->ndims; d++)
        if (!lower_affine(b, e->index[d], out->coef + (size_t)d * width)) return false;
    if (!e->fill) return true;
    out->has_fill = true;
    return literal_value(b, e->fill->at, e->fill->kind == EXPR_FLOAT, e->fill->i, e->fill->f,
                         f->type, &out->fill);
}

static struct inferred infer(struct binder *b, const struct expr *e);

static struct inferred infer_join(struct binder *b, const struct expr *e, int from, int to) {
    struct inferred r = {.ok = true};
    for (int k = from; k < to; k++) {
        struct inferred x = infer(b, e->arg[k]);
        if (!x.ok) return x;
        r.fraction |= x.fraction;
        if (!x.known) continue;
        if (r.known && r.type != x.type) {
            BIND_FAIL(b, e->at, "the operands of '%s' are %s and %s; cast one, for instance %s(…)",
                      op_info[e->op].spelling, type_name(r.type), type_name(x.type),
                      type_name(r.type));
            r.ok = false;
            return r;
        }
        r.known = true;
        r.type = x.type;
    }
    return r;
}

static struct inferred infer(struct binder *b, const struct expr *e) {
    struct inferred r = {.ok = true};
    int buffer;
    switch (e->kind) {
    case EXPR_INT:
    case EXPR_NAME:
        return r;
    case EXPR_FLOAT:
        r.fraction = true;
        return r;
    case EXPR_READ:
        buffer = find_buffer(b, e);
        r.ok = r.known = buffer >= 0;
        if (r.ok) r.type = b->p->buffer[buffer].type;
        return r;
    case EXPR_OP:
        break;
    }
    if (e->op == OP_CAST || op_info[e->op].flags & OP_TO_BOOL) {
        r.known = true;
        r.type = e->op == OP_CAST ? e->type : TYPE_BOOL;
        return r;
    }
    return infer_join(b, e, e->op == OP_SELECT ? 1 : 0, op_info[e->op].arity);
}

static int op_new(struct lower *l, struct op o) {
    struct stmt *s = l->s;
    GROW(&l->b->p->arena, s->op, s->nops, l->ops_cap);
    s->op[s->nops] = o;
    return s->nops++;
}

static int lower_literal(struct lower *l, const struct expr *e, enum type want) {
    struct op o = {.code = OP_LITERAL, .type = computed_in(want)};
    if (!literal_value(l->b, e->at, e->kind == EXPR_FLOAT, e->i, e->f, o.type, &o.value)) return -1;
    return op_new(l, o);
}

static int lower_name(struct lower *l, const struct expr *e, enum type want) {
    struct binder *b = l->b;
    struct op o = {.code = OP_AXIS, .type = computed_in(want)};
    const struct symbol *s = binder_find(b, e->name);
    int64_t v;
    if (s && !s->is_axis) {
        BIND_FAIL(b, e->at, "'%s' is a buffer; write its indices, %s[…]", e->name, e->name);
        return -1;
    }
    if (s && want == TYPE_BOOL) {
        BIND_FAIL(b, e->at, "axis '%s' stands where bool is expected; write a comparison", e->name);
        return -1;
    }
    if (s) {
        o.axis = s->index;
        return op_new(l, o);
    }
    if (!expr_integer(e, &b->names, &v)) {
        BIND_FAIL(b, e->at, "unknown name '%s'; expected an axis or a parameter", e->name);
        return -1;
    }
    o.code = OP_LITERAL;
    if (!literal_value(b, e->at, false, v, (double)v, o.type, &o.value)) return -1;
    return op_new(l, o);
}

static int lower_read(struct lower *l, const struct expr *e) {
    struct access a = {0};
    struct stmt *s = l->s;
    if (!lower_access(l->b, e, &a)) return -1;
    GROW(&l->b->p->arena, s->read, s->nreads, l->reads_cap);
    s->read[s->nreads] = a;
    struct op o = {.code = OP_READ, .read = s->nreads++};
    o.type = computed_in(l->b->p->buffer[a.buffer].type);
    return op_new(l, o);
}

static bool operand_type_fits(struct binder *b, const struct expr *e, enum type t) {
    int flags = op_info[e->op].flags;
    const char *name = op_info[e->op].spelling;
    bool shift = e->op == OP_SHL || e->op == OP_SHR;
    bool on_bool = (flags & OP_INT_ONLY && !shift) || e->op == OP_MIN || e->op == OP_MAX ||
                   e->op == OP_SELECT || e->op == OP_EQ || e->op == OP_NE;
    if (flags & OP_FLOAT_ONLY && !type_is_float(t))
        return BIND_FAIL(b, e->at, "'%s' is defined on floats, but its operand is %s", name,
                         type_name(t));
    if (flags & OP_INT_ONLY && type_is_float(t))
        return BIND_FAIL(b, e->at, "'%s' is defined on integers, but its operand is %s", name,
                         type_name(t));
    if (t == TYPE_BOOL && !on_bool)
        return BIND_FAIL(
            b, e->at, "'%s' is not defined on bool; cast the operand, for instance i32(…)", name);
    return true;
}

static int lower_value(struct lower *l, const struct expr *e, enum type want);

static int lower_cast(struct lower *l, const struct expr *e) {
    struct inferred x = infer(l->b, e->arg[0]);
    if (!x.ok) return -1;
    struct op o = {.code = OP_CAST, .type = computed_in(e->type)};
    int arg = lower_value(l, e->arg[0], x.known ? x.type : e->type);
    if (arg < 0 || l->s->op[arg].type == o.type) return arg;
    o.arg[0] = arg;
    return op_new(l, o);
}

static int lower_op(struct lower *l, const struct expr *e, enum type want) {
    struct binder *b = l->b;
    bool comparison = op_info[e->op].flags & OP_TO_BOOL;
    if (e->op == OP_CAST) return lower_cast(l, e);
    if (comparison) {
        struct inferred x = infer_join(b, e, 0, 2);
        if (!x.ok) return -1;
        want = x.known ? x.type : x.fraction ? TYPE_F64 : TYPE_I64;
    }
    if (!operand_type_fits(b, e, want)) return -1;
    struct op o = {.code = e->op, .type = comparison ? TYPE_BOOL : computed_in(want)};
    for (int k = 0; k < op_info[e->op].arity; k++) {
        bool condition = e->op == OP_SELECT && k == 0;
        if ((o.arg[k] = lower_value(l, e->arg[k], condition ? TYPE_BOOL : want)) < 0) return -1;
    }
    return op_new(l, o);
}

/* e in the type that is wanted; -1 after reporting */
static int lower_value(struct lower *l, const struct expr *e, enum type want) {
    struct inferred x = infer(l->b, e);
    if (!x.ok) return -1;
    if (x.known && x.type != want) {
        BIND_FAIL(l->b, e->at, "the value is %s where %s is expected; cast it, %s(…)",
                  type_name(x.type), type_name(want), type_name(want));
        return -1;
    }
    switch (e->kind) {
    case EXPR_INT:
    case EXPR_FLOAT:
        return lower_literal(l, e, want);
    case EXPR_NAME:
        return lower_name(l, e, want);
    case EXPR_READ:
        return lower_read(l, e);
    case EXPR_OP:
        return lower_op(l, e, want);
    }
    return -1;
}

/* x >= y, or x >= y + 1 where strict */
static bool add_constraint(struct binder *b, struct stmt *s, int *cap, const struct expr *x,
                           const struct expr *y, bool strict, size_t at) {
    int n = b->p->naxes;
    int64_t row[MAX_AXES + 1], right[MAX_AXES + 1];
    if (!lower_affine(b, x, row) || !lower_affine(b, y, right)) return false;
    if (!affine_add(row, right, n, -1) || __builtin_sub_overflow(row[n], strict, &row[n]))
        return BIND_FAIL(b, at, "a constraint overflows 64 bits");
    GROW(&b->p->arena, s->where, s->nwhere, *cap);
    s->where[s->nwhere++].coef = arena_copy(&b->p->arena, row, sizeof *row * (size_t)(n + 1));
    return true;
}

static bool lower_where(struct binder *b, const struct kernel_stmt *k, struct stmt *s) {
    int cap = 0;
    for (int w = 0; w < k->nwhere; w++) {
        const struct expr *e = k->where[w], *x = e->arg[0], *y = e->arg[1];
        bool up = e->op == OP_GE || e->op == OP_GT || e->op == OP_EQ;
        bool down = e->op == OP_LE || e->op == OP_LT || e->op == OP_EQ;
        bool strict = e->op == OP_GT || e->op == OP_LT;
        if (up && !add_constraint(b, s, &cap, x, y, strict, e->at)) return false;
        if (down && !add_constraint(b, s, &cap, y, x, strict, e->at)) return false;
    }
    return true;
}

static bool combiner_fits(struct binder *b, const struct kernel_stmt *k, enum type t) {
    if (t != TYPE_BOOL || k->combine == COMBINE_SET || k->combine >= COMBINE_MAX) return true;
    return BIND_FAIL(b, k->at, "'%s' is not defined on bool; max= is or, min= is and",
                     combiner_spelling[k->combine]);
}

bool lower_stmt(struct binder *b, const struct kernel_stmt *k) {
    struct stmt s = {.combine = k->combine, .at = k->at};
    struct lower l = {.b = b, .s = &s};
    if (!lower_access(b, k->dst, &s.dst)) return false;
    enum type t = b->p->buffer[s.dst.buffer].type;
    if (!combiner_fits(b, k, t)) return false;
    if (lower_value(&l, k->value, t) < 0 || !lower_where(b, k, &s)) return false;
    s.axes = stmt_axes(b->p, &s) & ~b->recurring;
    if (!lower_growing(b, &s)) return false;
    GROW(&b->p->arena, b->p->stmt, b->p->nstmts, b->stmts_cap);
    b->p->stmt[b->p->nstmts++] = s;
    return true;
}
