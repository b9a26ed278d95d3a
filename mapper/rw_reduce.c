/* Rewrites of reductions: factoring, ones, private sums, variance. */
#include "mapper/rewrite_int.h"

#include <string.h>

/* ---- factor: Σ_rs x·y = Σ_s (Σ_r x)·y where y stands still along r ---- */

struct factoring {
    uint32_t inner;    /* factors that are summed first */
    uint64_t summed;   /* over these axes */
    uint64_t kept;     /* axes of the temporary */
    double operations; /* multiplications and additions of both sums */
};

/* How many factors are multiplied; numbers among them are one. */
static int multiplied(const struct factors *f, uint32_t of) {
    int n = 0, numbers = 0;
    for (int k = 0; k < f->n; k++)
        if (of >> k & 1) *(f->axes[k] ? &n : &numbers) += 1;
    return n + (numbers > 0);
}

static bool best_factoring(const struct program *p, int stmt, const struct factors *f,
                           struct factoring *best) {
    const struct stmt *s = &p->stmt[stmt];
    uint64_t result = rw_access_axes(p, &s->dst), reduced = s->axes & ~result;
    uint32_t whole = (UINT32_C(1) << f->n) - 1;
    best->operations = multiplied(f, whole) * rw_points(p, s->axes);
    best->inner = 0;
    for (uint32_t inner = 1; f->n <= 6 && inner < whole; inner++) {
        uint64_t in = 0, out = 0;
        for (int k = 0; k < f->n; k++) *(inner >> k & 1 ? &in : &out) |= f->axes[k];
        uint64_t summed = in & reduced & ~out, kept = in & ~summed;
        double operations =
            multiplied(f, inner) * rw_points(p, in) +
            (1 + multiplied(f, whole & ~inner)) * rw_points(p, kept | out | result);
        if (!summed || operations >= best->operations) continue;
        *best = (struct factoring){inner, summed, kept, operations};
    }
    return best->inner != 0;
}

static struct program *factor(const struct program *p, const struct failure *why,
                              const struct needle *n) {
    struct factors f;
    struct factoring best;
    struct access sum;
    int axis[MAX_AXES];
    (void)n;
    if (!rw_factors(p, why->stmt, &f) || p->stmt[why->stmt].nwhere || f.n < 2 ||
        !best_factoring(p, why->stmt, &f, &best))
        return NULL;
    struct program *q = program_copy(p);
    struct stmt old = q->stmt[why->stmt];
    int at = why->stmt, naxes = rw_axes(best.kept, axis);
    const char *name = arena_printf(&q->arena, "%s.sum", q->buffer[old.dst.buffer].name);
    if (!rw_temporary_of(q, name, f.type, axis, naxes, &sum)) {
        program_free(q);
        return NULL;
    }
    program_make_room(q, at, 2);
    rw_fill(q, at, &old, sum, 0);
    struct draft d = draft_open(q, &old, COMBINE_ADD, rw_copy(q, &sum));
    draft_product(&d, &old, &f, best.inner);
    draft_close(&d, at + 1);
    d = draft_open(q, &old, COMBINE_ADD, old.dst);
    int x = draft_read(&d, rw_copy(q, &sum));
    int y = draft_product(&d, &old, &f, ((UINT32_C(1) << f.n) - 1) & ~best.inner);
    draft_binary(&d, OP_MUL, x, y);
    draft_close(&d, at + 2);
    return q;
}

const struct rewrite rw_factor = {
    .name = "factor",
    .doc = "factors that stand still along a reduced axis leave the sum over it",
    .answers = ANSWERS(OPERATION) | ANSWERS(EXTRA_COLUMN) | ANSWERS(MISSING_AXIS) | ANSWERS(TYPE),
    .effect = REWRITE_REORDERS,
    .apply = factor,
};

/* ---- ones: Σ x = Σ x·1 ---- */

static struct program *ones(const struct program *p, const struct failure *why,
                            const struct needle *n) {
    struct factors f;
    struct access one;
    int axis[MAX_AXES];
    if (!rw_factors(p, why->stmt, &f) || p->stmt[why->stmt].nwhere || f.n != 1) return NULL;
    uint64_t reduced = p->stmt[why->stmt].axes & ~rw_access_axes(p, &p->stmt[why->stmt].dst);
    if (!reduced || reduced & ~f.axes[0]) return NULL;
    struct program *q = program_copy(p);
    struct stmt old = q->stmt[why->stmt];
    enum type t = rw_partner(n, rw_stored(q, &old, f.node[0]));
    if (type_is_float(t) != type_is_float(f.type)) t = f.type;
    if (!rw_temporary_of(q, "ones", t, axis, rw_axes(reduced, axis), &one)) {
        program_free(q);
        return NULL;
    }
    program_make_room(q, why->stmt, 1);
    rw_fill(q, why->stmt, &old, one, 1);
    struct draft d = draft_open(q, &old, COMBINE_ADD, old.dst);
    int x = draft_product(&d, &old, &f, 1);
    int y = draft_cast(&d, f.type, draft_read(&d, rw_copy(q, &one)));
    draft_binary(&d, OP_MUL, x, y);
    draft_close(&d, why->stmt + 1);
    return q;
}

const struct rewrite rw_ones = {
    .name = "ones",
    .doc = "a sum is a product with a vector of ones",
    .answers = ANSWERS(OPERATION),
    .effect = REWRITE_REORDERS,
    .apply = ones,
};

/* ---- privatise: points that share an element or dimension, or that begin with what nothing
 * brings, sum apart first ---- */

/* Does the statement before set, with the same axes, all that the sums of `at` begin with? */
static bool begun_before(const struct program *p, int at) {
    const struct stmt *s = &p->stmt[at], *w = at > 0 ? &p->stmt[at - 1] : NULL;
    return w && rw_plain(p, at - 1) && w->combine == COMBINE_SET && w->scope == s->scope &&
           access_same(p, &w->dst, &s->dst) && stmt_writes_whole(p, w) &&
           w->op[w->nops - 1].type == p->buffer[s->dst.buffer].type &&
           s->op[s->nops - 1].type == p->buffer[s->dst.buffer].type;
}

static bool sets_neutral(const struct stmt *begin, enum combiner combine) {
    const struct op *o = &begin->op[begin->nops - 1];
    union value neutral = combiner_neutral(combine, o->type);
    return o->code == OP_LITERAL &&
           (type_is_float(o->type) ? o->value.f == neutral.f : o->value.i == neutral.i);
}

/* What the sums had begun with is combined with them behind. */
static void write_last(struct program *q, int at, const struct stmt *begin, const struct stmt *sums,
                       const struct access *own) {
    struct draft d = draft_open(q, sums, begin ? COMBINE_SET : sums->combine, sums->dst);
    bool adds = begin && !sets_neutral(begin, sums->combine);
    int first = adds ? draft_tree(&d, begin, begin->nops - 1) : -1, second;
    second = draft_read(&d, rw_copy(q, own));
    if (adds) draft_binary(&d, combiner_op(sums->combine), first, second);
    draft_close(&d, at);
}

static struct program *privatise(const struct program *p, const struct failure *why,
                                 const struct needle *n) {
    int axis[MAX_AXES], at = why->stmt;
    struct access own;
    (void)n;
    if (!rw_plain(p, at) || p->stmt[at].combine == COMBINE_SET) return NULL;
    const struct stmt *s = &p->stmt[at];
    uint64_t result = rw_access_axes(p, &s->dst);
    bool begun = why->kind == FAILURE_COMBINER && why->operand >= 0 && s->axes & ~result;
    bool apart = access_injective(p, &s->dst, result); /* no two points meet */
    if ((!begun && plain_result(p, s)) || rw_points(p, result) > 0x1p31) return NULL;
    struct program *q = program_copy(p);
    struct stmt old = q->stmt[at];
    enum type t = old.op[old.nops - 1].type;
    const char *name = arena_printf(&q->arena, "%s.own", q->buffer[old.dst.buffer].name);
    if (!rw_temporary_of(q, name, t, axis, rw_axes(result, axis), &own)) {
        program_free(q);
        return NULL;
    }
    bool before = (begun || apart) && begun_before(p, at);
    struct stmt begin = before ? q->stmt[at - 1] : old;
    program_make_room(q, at, before ? 1 : 2);
    if (before) at--;
    union value neutral = combiner_neutral(old.combine, t);
    rw_fill(q, at, &old, own, type_is_float(t) ? neutral.f : (double)neutral.i);
    struct draft d = draft_open(q, &old, old.combine, rw_copy(q, &own));
    draft_tree(&d, &old, old.nops - 1);
    draft_close(&d, at + 1);
    write_last(q, at + 2, before ? &begin : NULL, &old, &own);
    return q;
}

const struct rewrite rw_privatise = {
    .name = "privatise",
    .doc = "points that meet in one element or dimension (a scatter), or add to what the "
           "instruction cannot begin with, sum in a temporary of their own first",
    .answers = ANSWERS(NOT_INJECTIVE) | ANSWERS(COMBINER),
    .effect = REWRITE_REORDERS,
    .apply = privatise,
};

/* ---- variance: Σ (x - m)² = Σ x² + m·(N·m - 2·Σ x) where m stands still ---- */

static bool trees_equal(const struct program *p, const struct stmt *s, int a, int b) {
    const struct op *x = &s->op[a], *y = &s->op[b];
    if (x->code != y->code || x->type != y->type) return false;
    if (x->code == OP_READ) return access_same(p, &s->read[x->read], &s->read[y->read]);
    if (x->code == OP_AXIS) return x->axis == y->axis;
    if (x->code == OP_LITERAL) return memcmp(&x->value, &y->value, sizeof x->value) == 0;
    for (int k = 0; k < op_info[x->code].arity; k++)
        if (!trees_equal(p, s, x->arg[k], y->arg[k])) return false;
    return true;
}

struct deviation {
    int x, m; /* nodes */
    uint64_t reduced;
    double count;
};

static bool find_deviation(const struct program *p, int stmt, struct deviation *v) {
    struct factors f;
    if (!rw_factors(p, stmt, &f) || p->stmt[stmt].nwhere || f.n != 2) return false;
    const struct stmt *s = &p->stmt[stmt];
    const struct op *o = &s->op[f.node[0]];
    if (o->code != OP_SUB || !trees_equal(p, s, f.node[0], f.node[1])) return false;
    struct arena scratch;
    arena_init(&scratch);
    struct term t = term_of(&scratch, p, s);
    uint64_t result = rw_access_axes(p, &s->dst);
    v->x = o->arg[0];
    v->m = o->arg[1];
    v->reduced = s->axes & ~result;
    v->count = rw_points(p, v->reduced);
    bool ok = !(t.at[v->m].axes & v->reduced) && (t.at[v->x].axes & v->reduced) == v->reduced &&
              v->reduced && v->count < 0x1p52 && !(t.at[v->x].axes & ~s->axes);
    arena_free(&scratch);
    return ok;
}

static struct program *variance(const struct program *p, const struct failure *why,
                                const struct needle *n) {
    struct deviation v;
    int axis[MAX_AXES], at = why->stmt;
    struct access sum;
    (void)n;
    if (!find_deviation(p, at, &v)) return NULL;
    struct program *q = program_copy(p);
    struct stmt old = q->stmt[at];
    enum type t = old.op[v.x].type;
    uint64_t result = rw_access_axes(q, &old.dst);
    const char *name = arena_printf(&q->arena, "%s.sum", q->buffer[old.dst.buffer].name);
    if (!rw_temporary_of(q, name, t, axis, rw_axes(result, axis), &sum)) {
        program_free(q);
        return NULL;
    }
    program_make_room(q, at, 3);
    rw_fill(q, at, &old, sum, 0);
    struct draft d = draft_open(q, &old, COMBINE_ADD, rw_copy(q, &sum));
    draft_tree(&d, &old, v.x);
    draft_close(&d, at + 1);
    d = draft_open(q, &old, COMBINE_ADD, rw_copy(q, &old.dst));
    int x = draft_tree(&d, &old, v.x);
    draft_binary(&d, OP_MUL, x, draft_tree(&d, &old, v.x));
    draft_close(&d, at + 2);
    d = draft_open(q, &old, COMBINE_ADD, old.dst);
    int m = draft_tree(&d, &old, v.m), again = draft_tree(&d, &old, v.m);
    int all = draft_binary(&d, OP_MUL, again, draft_number(&d, t, v.count));
    int both = draft_read(&d, rw_copy(q, &sum));
    both = draft_binary(&d, OP_MUL, both, draft_number(&d, t, 2));
    draft_binary(&d, OP_MUL, m, draft_binary(&d, OP_SUB, all, both));
    draft_close(&d, at + 3);
    return q;
}

const struct rewrite rw_variance = {
    .name = "variance",
    .doc = "a sum of squared deviations from sums of values and of squares; floats cancel where "
           "the mean is large beside the deviation",
    .answers = ANSWERS(OPERATION),
    .effect = REWRITE_ROUNDS,
    .apply = variance,
};
