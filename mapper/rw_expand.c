/* Expansion: what is elementwise along an axis becomes a sum over a copy of it, with a matrix that
 * is zero off the diagonal. Blocks of the needle's own size keep the added work within what it
 * would leave idle. */
#include "mapper/rewrite_int.h"

static int64_t block_of(int64_t extent, const struct needle *n) {
    int64_t tile = rw_tile(n);
    if (extent <= tile) return extent;
    while (extent % tile) tile--;
    return tile;
}

struct blocks { /* axis = size * outer + inner; `sum` runs over a block beside inner */
    int axis, outer, inner, sum;
    int64_t size;
};

static bool make_blocks(struct program *q, const struct needle *n, int axis, struct blocks *b) {
    const char *name = q->axis[axis].name;
    int64_t extent = q->axis[axis].extent;
    b->axis = axis;
    b->size = block_of(extent, n);
    b->outer = -1;
    if (b->size < 2) return false;
    if (b->size < extent && (b->outer = rw_axis(q, name, extent / b->size)) < 0) return false;
    b->inner = rw_axis(q, name, b->size);
    b->sum = rw_axis(q, name, b->size);
    return b->inner >= 0 && b->sum >= 0;
}

static struct substitution substitute_block(struct program *q, const struct blocks *b, int within) {
    struct substitution s = {.p = q};
    int64_t *row = rw_substitution(&s, b->axis);
    if (b->outer >= 0) row[b->outer] = b->size;
    row[within] = 1;
    return s;
}

static int draft_diagonal(struct draft *d, const struct blocks *b) {
    int on = draft_axis(d, b->sum);
    on = draft_binary(d, OP_EQ, on, draft_axis(d, b->inner));
    return on;
}

/* ---- block-diagonal: depthwise as a matrix product ---- */

/* An axis along which the product is elementwise: the failure's, or the longest. */
static int elementwise_axis(const struct program *p, const struct stmt *s, const struct factors *f,
                            int wanted) {
    uint64_t all = rw_access_axes(p, &s->dst) & f->axes[0] & f->axes[1] & ~rw_value_axes(s);
    int best = -1;
    for (int a = 0; a < p->naxes; a++) {
        if (!(all >> a & 1) || p->axis[a].sequential || p->axis[a].extent < 2) continue;
        if (a == wanted) return a;
        if (best < 0 || p->axis[a].extent > p->axis[best].extent) best = a;
    }
    return best;
}

/* The factor that becomes the matrix: constants, then what is smaller. */
static int matrix_factor(const struct program *p, const struct stmt *s, const struct factors *f) {
    double size[2];
    for (int k = 0; k < 2; k++) {
        int node = rw_bare(s, f->node[k]);
        bool constant = s->op[node].code == OP_READ &&
                        p->buffer[s->read[s->op[node].read].buffer].role == ROLE_CONST;
        size[k] = rw_points(p, f->axes[k]) * (constant ? 1e-9 : 1);
    }
    return size[1] <= size[0] ? 1 : 0;
}

static bool write_blocks(struct program *q, int at, const struct stmt *old, int node,
                         const struct blocks *b, uint64_t others, struct access *matrix) {
    int axis[MAX_AXES], n = 0;
    if (b->outer >= 0) axis[n++] = b->outer;
    axis[n++] = b->sum;
    n += rw_axes(others, axis + n);
    axis[n++] = b->inner;
    if (!rw_temporary_of(q, "blocks", rw_stored(q, old, node), axis, n, matrix)) return false;
    struct substitution s = substitute_block(q, b, b->inner);
    struct draft d = draft_open(q, old, COMBINE_SET, rw_copy(q, matrix));
    int on = draft_diagonal(&d, b);
    int value = draft_mapped(&d, old, rw_bare(old, node), rw_substituted, &s);
    int zero = draft_number(&d, d.s.op[value].type, 0);
    draft_op(&d,
             (struct op){.code = OP_SELECT, .type = d.s.op[value].type, .arg = {on, value, zero}});
    draft_close(&d, at);
    return true;
}

/* Does the statement before set just the elements that the sums of this one begin with? */
static bool sets_what_begins(const struct program *p, int stmt) {
    const struct stmt *s = &p->stmt[stmt], *before = stmt > 0 ? s - 1 : NULL;
    if (!before || before->combine != COMBINE_SET || before->nwhere || before->scope != s->scope ||
        before->axes != rw_access_axes(p, &s->dst) || !access_same(p, &before->dst, &s->dst))
        return false;
    for (int r = 0; r < before->nreads; r++)
        if (before->read[r].buffer == s->dst.buffer) return false;
    return true;
}

/* The axes of the result in the order of its dimensions; those of a block last: as it lies there.
 */
static int axes_of_blocks(const struct program *p, const struct access *dst, const struct blocks *b,
                          int *axis) {
    uint64_t left = rw_access_axes(p, dst) & ~(UINT64_C(1) << b->inner);
    int n = 0;
    for (int d = 0; d < p->buffer[dst->buffer].ndims; d++)
        for (int a = 0; a < p->naxes; a++)
            if (left >> a & 1 && access_coef(p, dst, d, a)) {
                axis[n++] = a;
                left &= ~(UINT64_C(1) << a);
            }
    axis[n++] = b->inner;
    return n;
}

/* Of several blocks the result goes to a temporary with a dimension for each axis first: outer and
 * inner are one dimension of the destination, and instructions write one axis along one dimension.
 * `begin` (NULL: none) sets what the sums start with, in that temporary then.
 */
static bool write_products(struct program *q, int at, const struct stmt *old,
                           const struct stmt *begin, const struct factors *f, int matrix,
                           const struct access *blocks, const struct blocks *b) {
    struct substitution inner = substitute_block(q, b, b->inner),
                        sum = substitute_block(q, b, b->sum);
    struct access dst = rw_substituted(&inner, &old->dst, -1), to = dst;
    if (b->outer >= 0) {
        int axis[MAX_AXES + 1];
        const char *name = arena_printf(&q->arena, "%s.blocks", q->buffer[dst.buffer].name);
        if (!rw_temporary_of(q, name, f->type, axis, axes_of_blocks(q, &dst, b, axis), &to))
            return false;
        if (begin) {
            struct draft d = draft_open(q, begin, COMBINE_SET, rw_copy(q, &to));
            draft_mapped(&d, begin, begin->nops - 1, rw_substituted, &inner);
            draft_close(&d, at++);
        } else {
            rw_fill(q, at++, old, to, 0);
        }
    }
    struct draft d = draft_open(q, old, COMBINE_ADD, rw_copy(q, &to));
    int x = draft_mapped(&d, old, f->node[1 - matrix], rw_substituted, &sum);
    int y = draft_cast(&d, f->type, draft_read(&d, rw_copy(q, blocks)));
    draft_binary(&d, OP_MUL, x, y);
    draft_close(&d, at++);
    if (b->outer < 0) return true;
    d = draft_open(q, old, begin ? COMBINE_SET : COMBINE_ADD, dst);
    draft_read(&d, rw_copy(q, &to));
    draft_close(&d, at);
    return true;
}

static struct program *block_diagonal(const struct program *p, const struct failure *why,
                                      const struct needle *n) {
    struct factors f;
    struct blocks b;
    struct access matrix;
    int at = why->stmt;
    if (!rw_factors(p, at, &f) || p->stmt[at].nwhere || f.n != 2) return NULL;
    int axis = elementwise_axis(p, &p->stmt[at], &f, why->stmt_axis);
    if (axis < 0) return NULL;
    struct program *q = program_copy(p);
    bool ok = make_blocks(q, n, axis, &b) && rw_factors(q, at, &f);
    if (ok) {
        bool begins = b.outer >= 0 && sets_what_begins(q, at);
        struct stmt old = q->stmt[at], begin = q->stmt[begins ? at - 1 : at];
        int m = matrix_factor(q, &old, &f);
        uint64_t others = f.axes[m] & ~(UINT64_C(1) << b.axis);
        program_make_room(q, at, b.outer >= 0 ? 3 : 1);
        ok = write_blocks(q, at, &old, f.node[m], &b, others, &matrix) &&
             write_products(q, at + 1, &old, begins ? &begin : NULL, &f, m, &matrix, &b);
        if (begins) program_close_room(q, at - 1, 1);
    }
    if (ok) return q;
    program_free(q);
    return NULL;
}

const struct rewrite rw_block_diagonal = {
    .name = "block-diagonal",
    .doc = "an axis of all operands (depthwise) becomes blocks of a matrix that is zero off the "
           "diagonal",
    .answers = ANSWERS(EXTRA_COLUMN) | ANSWERS(MISSING_AXIS),
    .effect = REWRITE_FINITE,
    .apply = block_diagonal,
};

/* ---- identity: x = x·1 as a matrix product ---- */

/* The innermost axis of the destination that the value has too. */
static int innermost_axis(const struct program *p, const struct stmt *s, uint64_t axes) {
    axes &= rw_access_axes(p, &s->dst) & ~rw_value_axes(s);
    for (int d = p->buffer[s->dst.buffer].ndims; d-- > 0;)
        for (int a = 0; a < p->naxes; a++)
            if (axes >> a & 1 && access_coef(p, &s->dst, d, a) && !p->axis[a].sequential &&
                p->axis[a].extent > 1)
                return a;
    return -1;
}

static struct program *identity(const struct program *p, const struct failure *why,
                                const struct needle *n) {
    struct blocks b;
    struct access one;
    int at = why->stmt;
    if (!rw_plain(p, at)) return NULL;
    const struct stmt *s = &p->stmt[at];
    int root = s->nops - 1, leaf = rw_bare(s, root);
    if ((s->combine != COMBINE_SET && s->combine != COMBINE_ADD) || s->op[leaf].code != OP_READ ||
        s->read[s->op[leaf].read].buffer == s->dst.buffer ||
        s->axes & ~rw_access_axes(p, &s->dst) ||
        !(s->op[root].type == TYPE_I32 || type_is_float(s->op[root].type)))
        return NULL;
    int axis = innermost_axis(p, s, rw_access_axes(p, &s->read[s->op[leaf].read]));
    if (axis < 0) return NULL;
    struct program *q = program_copy(p);
    if (!make_blocks(q, n, axis, &b)) goto no;
    struct stmt old = q->stmt[at];
    enum type t = rw_partner(n, rw_stored(q, &old, root));
    if (!rw_temporary_of(q, "identity", t, (int[]){b.sum, b.inner}, 2, &one)) goto no;
    int more = old.combine == COMBINE_SET ? 2 : 1;
    program_make_room(q, at, more);
    struct substitution inner = substitute_block(q, &b, b.inner),
                        sum = substitute_block(q, &b, b.sum);
    struct draft d = draft_open(q, &old, COMBINE_SET, rw_copy(q, &one));
    int on = draft_diagonal(&d, &b), yes = draft_number(&d, t, 1), no = draft_number(&d, t, 0);
    draft_op(&d, (struct op){.code = OP_SELECT, .type = d.s.op[yes].type, .arg = {on, yes, no}});
    draft_close(&d, at);
    if (more == 2) rw_fill(q, at + 1, &old, old.dst, 0);
    d = draft_open(q, &old, COMBINE_ADD, rw_substituted(&inner, &old.dst, -1));
    int x = draft_mapped(&d, &old, root, rw_substituted, &sum);
    int y = draft_cast(&d, old.op[root].type, draft_read(&d, rw_copy(q, &one)));
    draft_binary(&d, OP_MUL, x, y);
    draft_close(&d, at + more);
    return q;
no:
    program_free(q);
    return NULL;
}

const struct rewrite rw_identity = {
    .name = "identity",
    .doc = "a copy or an addition is a product with an identity matrix",
    .answers = ANSWERS(OPERATION) | ANSWERS(COMBINER),
    .effect = REWRITE_FINITE,
    .apply = identity,
};
