/* Bounds of a clip take in the max or min beside it: a ReLU after, or before, a requantisation is
 * its low bound. */
#include "mapper/rewrite_int.h"

#include <string.h>

struct bounded {
    struct term term;   /* of the statement with the clip */
    int stmt, clip;     /* the clip, a node of the term: */
    union value lo, hi; /* its new bounds */
    int cut, keep;      /* below it, the node that goes and what takes its place; -1 */
};

static bool below(enum type t, union value a, union value b) {
    return type_is_float(t) ? a.f < b.f : a.i < b.i;
}

/* The clip between constants that the node's value follows without decreasing; -1: none. */
static int clip_below(const struct term *t, int at) {
    if (t->accumulates) return -1;
    while (at >= 0 && t->at[at].code != OP_CLIP) at = rw_monotone(t, at);
    return at >= 0 && rw_monotone(t, at) >= 0 && t->at[t->at[at].arg[1]].constant ? at : -1;
}

static void bounds_of(struct bounded *b, int clip) {
    b->clip = clip;
    b->lo = b->term.at[b->term.at[clip].arg[1]].value;
    b->hi = b->term.at[b->term.at[clip].arg[2]].value;
    b->cut = b->keep = -1;
}

/* The larger of the low bound and v, or the lesser of the high one; false: nothing would be
 * between. */
static bool take_bound(struct bounded *b, enum opcode code, union value v) {
    enum type t = b->term.at[b->clip].type;
    if (code == OP_MAX ? below(t, b->hi, v) : below(t, v, b->lo)) return false;
    if (code == OP_MAX && below(t, b->lo, v)) b->lo = v;
    if (code == OP_MIN && below(t, v, b->hi)) b->hi = v;
    return true;
}

/* The operand of an integer maximum or minimum beside its constant; -1. */
static int bounded_by(const struct term *t, int node, int *constant) {
    const struct term_node *x = &t->at[node];
    if ((x->code != OP_MAX && x->code != OP_MIN) || type_is_float(x->type) ||
        !type_is_signed(x->type))
        return -1;
    int keep = rw_monotone(t, node);
    if (keep >= 0) *constant = x->arg[0] == keep ? x->arg[1] : x->arg[0];
    return keep;
}

/* clip(g(max(a, c)), lo, hi) = clip(g(a), max(lo, g(c)), hi) */
static bool find_before(struct bounded *b) {
    const struct term *t = &b->term;
    int clip = clip_below(t, t->root), c;
    if (clip < 0) return false;
    bounds_of(b, clip);
    int first = t->at[clip].arg[0];
    for (int at = first; at >= 0; at = rw_monotone(t, at)) {
        if ((b->keep = bounded_by(t, at, &c)) < 0) continue;
        b->cut = at;
        return take_bound(b, t->at[at].code, rw_through(t, first, at, t->at[c].value));
    }
    return false;
}

/* max(g(clip(a, lo, hi)), c), `top` being g: g(c) = c there. */
static bool find_above(struct bounded *b, int top, enum opcode code, int64_t c) {
    const struct term *t = &b->term;
    int clip = clip_below(t, top);
    if (clip < 0) return false;
    bounds_of(b, clip);
    union value v = {.i = c};
    if (type_is_float(t->at[clip].type)) v.f = (double)c;
    return rw_through(t, top, clip, v).i == c && take_bound(b, code, v);
}

static bool find_in_one(struct bounded *b) {
    const struct term *t = &b->term;
    int c, keep = bounded_by(t, t->root, &c);
    if (find_before(b)) return true;
    if (keep < 0 || !find_above(b, keep, t->at[t->root].code, t->at[c].value.i)) return false;
    b->cut = t->root;
    b->keep = keep;
    return true;
}

/* All of a buffer, element for element. */
static bool whole(const struct program *p, const struct access *a) {
    const struct buffer *b = &p->buffer[a->buffer];
    uint64_t seen = 0;
    for (int d = 0; d < b->ndims; d++) {
        int axis = -1, n = 0;
        for (int x = 0; x < p->naxes; x++)
            if (access_coef(p, a, d, x)) {
                axis = x;
                n++;
            }
        if (access_coef(p, a, d, p->naxes) || n > 1 || (n == 0 && b->extent[d] != 1)) return false;
        if (!n) continue;
        if (access_coef(p, a, d, axis) != 1 || (seen >> axis & 1) ||
            p->axis[axis].extent != b->extent[d])
            return false;
        seen |= UINT64_C(1) << axis;
    }
    return !a->has_fill;
}

static bool same_rows(const struct program *p, const struct access *a, const struct access *b) {
    const struct buffer *x = &p->buffer[a->buffer], *y = &p->buffer[b->buffer];
    if (x->ndims != y->ndims || x->type != y->type) return false;
    for (int d = 0; d < x->ndims; d++) {
        if (x->extent[d] != y->extent[d]) return false;
        for (int k = 0; k <= p->naxes; k++)
            if (access_coef(p, a, d, k) != access_coef(p, b, d, k)) return false;
    }
    return true;
}

static bool used_before(const struct program *p, int buffer, int stmt) {
    for (int s = 0; s < stmt; s++) {
        if (p->stmt[s].dst.buffer == buffer) return true;
        for (int r = 0; r < p->stmt[s].nreads; r++)
            if (p->stmt[s].read[r].buffer == buffer) return true;
    }
    return false;
}

/* The same where a temporary that nothing else reads stands between: who writes it. */
static int find_in_two(struct arena *arena, const struct program *p, int stmt, struct bounded *b) {
    struct term t = term_of(arena, p, &p->stmt[stmt]);
    const struct access *dst = &p->stmt[stmt].dst;
    enum role role = p->buffer[dst->buffer].role;
    int c, keep = t.accumulates ? -1 : bounded_by(&t, t.root, &c);
    if (keep < 0 || t.at[keep].code != OP_READ) return -1;
    const struct access *read = &p->stmt[stmt].read[t.at[keep].read];
    int w = rw_only_writer(p, stmt, read);
    if (w < 0 || p->stmt[w].unmapped || (role != ROLE_TEMP && role != ROLE_OUT) ||
        !same_rows(p, dst, read) || !whole(p, dst) || !whole(p, &p->stmt[w].dst) ||
        used_before(p, dst->buffer, stmt))
        return -1;
    b->term = term_of(arena, p, &p->stmt[w]);
    return find_above(b, b->term.root, t.at[t.root].code, t.at[c].value.i) ? w : -1;
}

static int build(struct draft *d, const struct stmt *from, const struct bounded *b, int node) {
    if (node == b->cut) return build(d, from, b, b->keep);
    struct op o = from->op[node];
    if (o.code == OP_READ) return draft_tree(d, from, node);
    for (int k = 0; k < op_info[o.code].arity; k++) {
        bool bound = node == b->clip && k > 0;
        struct op literal = {.code = OP_LITERAL, .type = o.type, .value = k == 1 ? b->lo : b->hi};
        o.arg[k] = bound ? draft_op(d, literal) : build(d, from, b, o.arg[k]);
    }
    return draft_op(d, o);
}

static struct program *bounds(const struct program *p, const struct failure *f,
                              const struct needle *n) {
    struct arena scratch;
    struct bounded b = {.stmt = f->stmt};
    struct program *q = NULL;
    int writer = -1;
    (void)n;
    if (!rw_plain(p, f->stmt)) return NULL;
    arena_init(&scratch);
    b.term = term_of(&scratch, p, &p->stmt[f->stmt]);
    if (p->stmt[f->stmt].combine == COMBINE_SET &&
        (find_in_one(&b) || (writer = find_in_two(&scratch, p, f->stmt, &b)) >= 0)) {
        q = program_copy(p);
        if (writer >= 0) b.stmt = writer;
        struct stmt old = q->stmt[b.stmt];
        struct access dst = old.dst;
        if (writer >= 0) dst.buffer = q->stmt[f->stmt].dst.buffer;
        struct draft d = draft_open(q, &old, COMBINE_SET, dst);
        build(&d, &old, &b, b.term.root);
        draft_close(&d, b.stmt);
        if (writer >= 0) program_close_room(q, f->stmt, 1);
    }
    arena_free(&scratch);
    return q;
}

const struct rewrite rw_bounds = {
    .name = "bounds",
    .doc = "clip(g(max(a, c)), lo, hi) = clip(g(a), max(lo, g(c)), hi), and max(clip(a, lo, hi), "
           "c): a "
           "ReLU beside a requantisation is its low bound",
    .answers = ANSWERS(OPERATION) | ANSWERS(TYPE),
    .by_values = true,
    .everywhere = true,
    .apply = bounds,
};
