/* The list of algebraic rewrites (ISA Mapper §2.3), and the first of them. */
#include "mapper/rewrite_int.h"

#include <math.h>
#include <string.h>

/* ---- monotone exchange ----
 * g does not decrease and g(c') = c: then max(g(a), c) = g(max(a, c')), likewise min. A ReLU after
 * a requantisation moves before it, to the integers that an accumulator's unit knows. g is a chain
 * of casts, roundings, clips, positive scalings, sums with constants and shifts of an integer a, in
 * the same statement or, through a temporary that nothing else reads, in an earlier one. */

struct exchanged_chain {
    struct term outer, inner; /* the statement with max or min; the one that fills its temporary */
    int stmt, writer;         /* writer -1: all in one statement */
    int top;                  /* max or min: its operand that is g's value, a node of outer */
    int a;                    /* node of inner (or of outer without a writer) */
    int bound;                /* node of outer: c */
};

/* At most so far from zero, by types and constants. */
static double magnitude(const struct term *t, int node) {
    const struct term_node *x = &t->at[node];
    double most = type_is_float(x->type)
                      ? INFINITY
                      : ldexp(1, 8 * (int)type_size(x->type) - type_is_signed(x->type)),
           is = most;
    if (x->constant) return type_is_float(x->type) ? fabs(x->value.f) : fabs((double)x->value.i);
    if (x->code == OP_CAST && !type_is_float(t->at[x->arg[0]].type)) is = magnitude(t, x->arg[0]);
    if (x->code == OP_ADD) is = magnitude(t, x->arg[0]) + magnitude(t, x->arg[1]);
    if (x->code == OP_MUL) is = magnitude(t, x->arg[0]) * magnitude(t, x->arg[1]);
    if (x->code == OP_MAX || x->code == OP_MIN)
        is = fmax(magnitude(t, x->arg[0]), magnitude(t, x->arg[1]));
    return fmin(is, most);
}

/* Of signed integers: a sum, a product with a constant above 0, a shift to the right, none of which
 * wraps. */
static int monotone_integer(const struct term *t, int node, bool left, bool right) {
    const struct term_node *x = &t->at[node];
    if (!type_is_signed(x->type) || type_is_float(x->type) || left == right) return -1;
    int keep = x->arg[left ? 1 : 0];
    int64_t c = t->at[x->arg[left ? 0 : 1]].value.i;
    double a = magnitude(t, x->arg[0]), b = magnitude(t, x->arg[1]),
           most = ldexp(1, 8 * (int)type_size(x->type) - 1);
    if (x->code == OP_SHR) return right && c >= 0 ? keep : -1;
    if (x->code == OP_ADD) return a + b < most ? keep : -1;
    return c > 0 && a * b < most ? keep : -1;
}

static bool clipped_into(const struct term *t, const struct term_node *x, enum type type) {
    int64_t lo, hi;
    if (x->code != OP_CLIP || !t->at[x->arg[1]].constant || !t->at[x->arg[2]].constant)
        return false;
    type_limits(type, &lo, &hi);
    return t->at[x->arg[1]].value.i >= lo && t->at[x->arg[2]].value.i <= hi;
}

int rw_monotone(const struct term *t, int node) {
    const struct term_node *x = &t->at[node];
    bool right = x->nargs > 1 && t->at[x->arg[1]].constant,
         left = x->nargs > 1 && t->at[x->arg[0]].constant;
    const struct term_node *from = x->nargs > 0 ? &t->at[x->arg[0]] : NULL;
    switch (x->code) {
    case OP_FLOOR:
    case OP_CEIL:
    case OP_ROUND:
        return x->arg[0];
    case OP_CAST: /* float to integer saturates; wider integers keep the value; narrower ones wrap
                   * but for what was clipped
                   */
        if (x->type == TYPE_BOOL || from->type == TYPE_BOOL) return -1;
        if (type_is_float(from->type) || type_is_float(x->type)) return x->arg[0];
        return type_is_signed(x->type) && type_is_signed(from->type) &&
                       (type_size(x->type) >= type_size(from->type) ||
                        clipped_into(t, from, x->type))
                   ? x->arg[0]
                   : -1;
    case OP_CLIP:
        return right && t->at[x->arg[2]].constant ? x->arg[0] : -1;
    case OP_MIN:
    case OP_MAX:
        return right ? x->arg[0] : left ? x->arg[1] : -1;
    case OP_ADD:
    case OP_SHR:
        return monotone_integer(t, node, left, right);
    case OP_MUL:
        if (!type_is_float(x->type)) return monotone_integer(t, node, left, right);
        if (right && t->at[x->arg[1]].value.f > 0 && isfinite(t->at[x->arg[1]].value.f))
            return x->arg[0];
        return left && t->at[x->arg[0]].value.f > 0 && isfinite(t->at[x->arg[0]].value.f)
                   ? x->arg[1]
                   : -1;
    default:
        return -1;
    }
}

union value rw_through(const struct term *t, int top, int a, union value v) {
    if (top == a) return v;
    const struct term_node *x = &t->at[top];
    int through = rw_monotone(t, top);
    union value arg[3];
    for (int k = 0; k < x->nargs; k++)
        arg[k] = x->arg[k] == through ? rw_through(t, through, a, v) : t->at[x->arg[k]].value;
    return op_eval(x->code, x->type, t->at[x->arg[0]].type, arg);
}

/* The integer node nearest below `top` that floats separate from it; -1: none. A read at the end is
 * left in *leaf. */
static int chain_end(const struct term *t, int top, bool *floats, int *leaf) {
    int at = top;
    while (at >= 0) {
        const struct term_node *x = &t->at[at];
        if (type_is_float(x->type))
            *floats = true;
        else if (*floats && type_is_signed(x->type))
            return at;
        if (x->code == OP_READ) *leaf = at;
        at = rw_monotone(t, at);
    }
    return -1;
}

static int reads_of(const struct program *p, int buffer) {
    int n = 0;
    for (int s = 0; s < p->nstmts; s++) {
        n += p->stmt[s].combine != COMBINE_SET && p->stmt[s].dst.buffer == buffer;
        for (int r = 0; r < p->stmt[s].nreads; r++) n += p->stmt[s].read[r].buffer == buffer;
    }
    return n;
}

static int only_writer(const struct program *p, int buffer, int before) {
    int found = -1;
    for (int s = 0; s < p->nstmts; s++)
        if (p->stmt[s].dst.buffer == buffer) {
            if (found >= 0 || s >= before || p->stmt[s].combine != COMBINE_SET || p->stmt[s].nwhere)
                return -1;
            found = s;
        }
    return found;
}

int rw_only_writer(const struct program *p, int stmt, const struct access *a) {
    int b = a->buffer;
    if (p->buffer[b].role != ROLE_TEMP || a->has_fill || reads_of(p, b) != 1) return -1;
    int w = only_writer(p, b, stmt);
    if (w < 0 || stmt_in_recurrence(p, w)) return -1;
    int touching = 0; /* calls and recurrences count too */
    for (int i = 0; i < p->nitems; i++) touching += items_touch(p, &p->item[i], 1, b);
    return touching == 2 ? w : -1;
}

static bool find_bound(const struct term *t, struct exchanged_chain *c) {
    const struct term_node *root = &t->at[t->root];
    if (t->accumulates || (root->code != OP_MAX && root->code != OP_MIN) ||
        !type_is_signed(root->type))
        return false;
    int k = t->at[root->arg[1]].constant ? 1 : t->at[root->arg[0]].constant ? 0 : -1;
    if (k < 0) return false;
    c->bound = root->arg[k];
    c->top = root->arg[1 - k];
    return true;
}

static bool find_chain(struct arena *arena, const struct program *p, int stmt,
                       struct exchanged_chain *c) {
    *c = (struct exchanged_chain){.stmt = stmt, .writer = -1};
    bool floats = false;
    int leaf = -1;
    c->outer = term_of(arena, p, &p->stmt[stmt]);
    if (p->stmt[stmt].nwhere || stmt_in_recurrence(p, stmt) || !find_bound(&c->outer, c))
        return false;
    c->a = chain_end(&c->outer, c->top, &floats, &leaf);
    if (c->a >= 0) return true;
    if (leaf != c->top) return false;
    c->writer = rw_only_writer(p, stmt, &p->stmt[stmt].read[c->outer.at[leaf].read]);
    if (c->writer < 0) return false;
    c->inner = term_of(arena, p, &p->stmt[c->writer]);
    c->a = chain_end(&c->inner, c->inner.root, &floats, &leaf);
    return c->a >= 0 &&
           p->buffer[p->stmt[c->writer].dst.buffer].type == c->inner.at[c->inner.root].type;
}

/* c' with g(c') = c by bisection over a's type: 0 where it serves, else the least. */
static bool find_preimage(const struct exchanged_chain *c, union value *out) {
    const struct term *t = c->writer >= 0 ? &c->inner : &c->outer;
    int top = c->writer >= 0 ? c->inner.root : c->top;
    int64_t want = c->outer.at[c->bound].value.i, lo, hi;
    type_limits(t->at[c->a].type, &lo, &hi);
    out->i = 0;
    if (rw_through(t, top, c->a, *out).i == want) return true;
    while (lo < hi) {
        int64_t mid = lo + (int64_t)(((uint64_t)hi - (uint64_t)lo) / 2);
        if (rw_through(t, top, c->a, (union value){.i = mid}).i >= want)
            hi = mid;
        else
            lo = mid + 1;
    }
    out->i = lo;
    return rw_through(t, top, c->a, *out).i == want;
}

struct builder {
    struct program *p;
    const struct stmt *from;
    struct stmt *to;
};

static struct builder builder_of(struct program *p, const struct stmt *from, struct stmt *to,
                                 int extra) {
    to->op = arena_array(&p->arena, (size_t)(from->nops + extra), sizeof *to->op);
    to->read =
        arena_array(&p->arena, (size_t)(from->nreads + from->nops + extra), sizeof *to->read);
    to->nops = to->nreads = 0;
    return (struct builder){p, from, to};
}

static int build_op(struct builder *b, struct op o) {
    b->to->op[b->to->nops] = o;
    return b->to->nops++;
}

static int build_tree(struct builder *b, int node) {
    struct op o = b->from->op[node];
    for (int k = 0; k < op_info[o.code].arity; k++) o.arg[k] = build_tree(b, o.arg[k]);
    if (o.code == OP_READ) {
        b->to->read[b->to->nreads] = b->from->read[o.read];
        o.read = b->to->nreads++;
    }
    return build_op(b, o);
}

/* max(a, c'), a copied from the builder's statement */
static int build_bounded(struct builder *b, enum opcode code, int a, union value bound) {
    enum type t = b->from->op[a].type;
    int x = build_tree(b, a);
    int y = build_op(b, (struct op){.code = OP_LITERAL, .type = t, .value = bound});
    return build_op(b, (struct op){.code = code, .type = t, .arg = {x, y}});
}

/* The chain from `top`, with node a replaced by `with` (an op already built). */
static int build_chain(struct builder *b, const struct term *t, int top, int a, int with) {
    if (top == a) return with;
    struct op o = b->from->op[top];
    int through = rw_monotone(t, top);
    for (int k = 0; k < op_info[o.code].arity; k++)
        o.arg[k] =
            o.arg[k] == through ? build_chain(b, t, through, a, with) : build_tree(b, o.arg[k]);
    return build_op(b, o);
}

static void exchange_in_one(struct program *p, const struct exchanged_chain *c, enum opcode code,
                            union value bound) {
    struct stmt old = p->stmt[c->stmt];
    struct builder b = builder_of(p, &old, &p->stmt[c->stmt], 2);
    int with = build_bounded(&b, code, c->a, bound);
    build_chain(&b, &c->outer, c->top, c->a, with);
}

/* The temporary now holds max(a, c'), in a's type; the statement that read it applies g. */
static void exchange_in_two(struct program *p, const struct exchanged_chain *c, enum opcode code,
                            union value bound) {
    struct stmt writer = p->stmt[c->writer], reader = p->stmt[c->stmt];
    struct access read = reader.read[c->outer.at[c->top].read];
    struct builder b = builder_of(p, &writer, &p->stmt[c->writer], 2);
    build_bounded(&b, code, c->a, bound);
    enum type t = c->inner.at[c->a].type;
    p->buffer[writer.dst.buffer].type = t;
    b = builder_of(p, &writer, &p->stmt[c->stmt], 2);
    b.to->read[b.to->nreads++] = read;
    int with = build_op(&b, (struct op){.code = OP_READ, .type = t, .read = 0});
    build_chain(&b, &c->inner, c->inner.root, c->a, with);
}

static struct program *exchange(const struct program *p, const struct failure *f,
                                const struct needle *n) {
    struct arena scratch;
    struct exchanged_chain c;
    union value bound;
    struct program *q = NULL;
    (void)n;
    if (f->stmt < 0 || f->stmt >= p->nstmts) return NULL;
    arena_init(&scratch);
    if (find_chain(&scratch, p, f->stmt, &c) && find_preimage(&c, &bound)) {
        enum opcode code = c.outer.at[c.outer.root].code;
        q = program_copy(p);
        if (c.writer >= 0)
            exchange_in_two(q, &c, code, bound);
        else
            exchange_in_one(q, &c, code, bound);
    }
    arena_free(&scratch);
    return q;
}

static const struct rewrite monotone_exchange = {
    .name = "monotone-exchange",
    .doc = "max(g(a), c) = g(max(a, c')) where g does not decrease and g(c') = c: a ReLU moves "
           "before a requantisation",
    .answers = UINT32_C(1) << FAILURE_OPERATION | UINT32_C(1) << FAILURE_TYPE,
    .by_values = true,
    .everywhere = true,
    .apply = exchange,
};

const char *const rewrite_effect_name[REWRITE_EFFECTS] = {
#define X(id, name) #name,
    REWRITE_EFFECT_TABLE(X)
#undef X
};

/* In the order in which they are tried on a failure. */
const struct rewrite *const rewrites[] = {
    &rw_scale,          &rw_bounds,     &monotone_exchange,
    &rw_factor,         &rw_ones,       &rw_trim,
    &rw_whole,          &rw_mask,       &rw_phases,
    &rw_privatise,      &rw_widen,      &rw_offset,
    &rw_digits,         &rw_narrow_sum, &rw_narrow,
    &rw_zero_point,     &rw_distribute, &rw_from_zero,
    &rw_block_diagonal, &rw_identity,   &rw_variance,
    &rw_associate,      &rw_commute,    &rw_split,
    &rw_fuse,           &rw_residual,   &rw_add_axis,
    &rw_drop_axis,      &rw_im2col,     &rw_transpose,
    &rw_reshape,        &rw_lanes,      &rw_winograd_2,
    &rw_winograd_4,     &rw_shift,      &rw_widen_other,
    &rw_constants,      &rw_as_stored,  NULL,
};
