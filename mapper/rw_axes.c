/* Axes: split, fuse, added and dropped at size 1. What follows from the index alone. */
#include "mapper/rewrite_int.h"

#include <string.h>

/* The statement with axes substituted, constraints too. */
static void substituted(struct program *q, int stmt, struct substitution *s) {
    struct stmt *x = &q->stmt[stmt];
    x->dst = rw_substituted(s, &x->dst, -1);
    for (int r = 0; r < x->nreads; r++) x->read[r] = rw_substituted(s, &x->read[r], r);
    for (int w = 0; w < x->nwhere; w++) {
        int64_t *row = x->where[w].coef;
        for (int k = 0; k < s->n; k++) {
            int64_t c = row[s->axis[k]];
            row[s->axis[k]] = 0;
            for (int a = 0; a <= q->naxes; a++) row[a] += c * s->row[k][a];
        }
    }
    x->axes = stmt_axes(q, x);
}

/* ---- split: a = tile * outer + inner ---- */

static bool splits(const struct program *p, const struct stmt *s, int axis, int64_t tile) {
    return axis >= 0 && axis < p->naxes && s->axes >> axis & 1 && !p->axis[axis].sequential &&
           !(rw_value_axes(s) >> axis & 1) && p->axis[axis].extent > tile &&
           p->axis[axis].extent % tile == 0;
}

static struct program *split(const struct program *p, const struct failure *why,
                             const struct needle *n) {
    int64_t tile = rw_tile(n);
    int axis = why->stmt_axis;
    if (!rw_top(p, why->stmt)) return NULL;
    const struct stmt *s = &p->stmt[why->stmt];
    for (int a = 0; axis < 0 && a < p->naxes; a++)
        if (splits(p, s, a, tile)) axis = a;
    if (!splits(p, s, axis, tile)) return NULL;
    struct program *q = program_copy(p);
    int outer = rw_axis(q, q->axis[axis].name, q->axis[axis].extent / tile);
    int inner = rw_axis(q, q->axis[axis].name, tile);
    if (outer < 0 || inner < 0) {
        program_free(q);
        return NULL;
    }
    struct substitution x = {.p = q};
    int64_t *row = rw_substitution(&x, axis);
    row[outer] = tile;
    row[inner] = 1;
    substituted(q, why->stmt, &x);
    return q;
}

const struct rewrite rw_split = {
    .name = "split",
    .doc = "an axis becomes two, the inner one as long as one issue takes",
    .answers = ANSWERS(MISSING_AXIS) | ANSWERS(EXTENT),
    .effect = REWRITE_EXACT,
    .apply = split,
};

/* ---- trim: lo <= a <= hi as an axis of its own ----
 * An axis that stands in its constraint alone vanishes. A maximum, a minimum or a store loses
 * nothing by that; a sum of integers counts its value as often as the axis had values; a sum of
 * floats, a product, keep the constraint. */

struct trimming {
    int n, axis[MAX_SUBSTITUTED];
    int64_t lo[MAX_SUBSTITUTED], extent[MAX_SUBSTITUTED];
    int64_t times; /* of the value: the extents of axes that vanish */
};

/* In constraints over other axes too, or in the value or the place: it stays, whatever its length.
 */
static bool stays(const struct program *p, const struct stmt *s, int axis) {
    if (stmt_value_axes(p, s) >> axis & 1) return true;
    for (int w = 0; w < s->nwhere; w++)
        for (int a = 0; a < p->naxes && s->where[w].coef[axis]; a++)
            if (a != axis && s->where[w].coef[a]) return true;
    return false;
}

static bool counted(const struct program *p, const struct stmt *s, int64_t extent,
                    struct trimming *t) {
    enum type type = s->op[s->nops - 1].type;
    int64_t low, high;
    if (!combiner_counts(s->combine) || extent == 1) return true;
    if (s->combine != COMBINE_ADD || type_is_float(type) || type == TYPE_BOOL ||
        type_is_float(p->buffer[s->dst.buffer].type))
        return false;
    type_limits(type, &low, &high);
    return !__builtin_mul_overflow(t->times, extent, &t->times) && t->times <= high &&
           t->times <= INT64_C(1) << 52;
}

static void find_trimming(const struct program *p, const struct stmt *s, struct trimming *t) {
    t->times = 1;
    for (int a = 0; a < p->naxes && t->n < MAX_SUBSTITUTED; a++) {
        int64_t hi, lo;
        struct trimming before = *t;
        if (!(s->axes >> a & 1) || p->axis[a].sequential || rw_value_axes(s) >> a & 1 ||
            !stmt_bounds(p, s, a, &lo, &hi))
            continue;
        t->axis[t->n] = a;
        t->lo[t->n] = lo;
        t->extent[t->n++] = hi - lo + 1;
        if (!stays(p, s, a) && !counted(p, s, hi - lo + 1, t)) *t = before;
    }
}

/* Constraints on this axis alone, which bound what vanishes. */
static void drop_bounds(const struct program *p, struct stmt *s, int axis) {
    int kept = 0;
    for (int w = 0; w < s->nwhere; w++)
        if (!s->where[w].coef[axis]) s->where[kept++] = s->where[w];
    s->nwhere = kept;
    s->axes = stmt_axes(p, s);
}

static void multiply(struct program *q, int stmt, int64_t times) {
    struct stmt old = q->stmt[stmt];
    struct draft d = draft_open(q, &old, old.combine, old.dst);
    int x = draft_tree(&d, &old, old.nops - 1);
    draft_op(&d, (struct op){.code = OP_MUL,
                             .type = d.s.op[x].type,
                             .arg = {x, draft_number(&d, d.s.op[x].type, (double)times)}});
    draft_where(&d, &old);
    draft_close(&d, stmt);
}

static struct program *trim(const struct program *p, const struct failure *why,
                            const struct needle *n) {
    struct trimming t = {0};
    (void)n;
    if (!rw_top(p, why->stmt) || p->stmt[why->stmt].nwhere == 0) return NULL;
    struct program *q = program_copy(p);
    int own[MAX_SUBSTITUTED], dropped = stmt_drop_where(q, &q->stmt[why->stmt]);
    find_trimming(q, &q->stmt[why->stmt], &t);
    bool room = dropped + t.n > 0;
    for (int k = 0; k < t.n && room; k++) {
        bool gone = !stays(q, &q->stmt[why->stmt], t.axis[k]);
        own[k] = gone ? -1 : rw_axis(q, q->axis[t.axis[k]].name, t.extent[k]);
        room = gone || own[k] >= 0;
    }
    if (!room) {
        program_free(q);
        return NULL;
    }
    struct substitution x = {.p = q};
    for (int k = 0; k < t.n; k++) {
        if (own[k] < 0) {
            drop_bounds(q, &q->stmt[why->stmt], t.axis[k]);
            continue;
        }
        int64_t *row = rw_substitution(&x, t.axis[k]);
        row[own[k]] = 1;
        row[q->naxes] = t.lo[k];
    }
    substituted(q, why->stmt, &x);
    stmt_drop_where(q, &q->stmt[why->stmt]);
    if (t.times != 1) multiply(q, why->stmt, t.times);
    return q;
}

const struct rewrite rw_trim = {
    .name = "trim",
    .doc = "an axis that a constraint cuts short becomes one of that length",
    .answers = ANSWERS(EXTENT),
    .effect = REWRITE_EXACT,
    .everywhere = true,
    .apply = trim,
};

/* ---- fuse: a * extent(b) + b is all that is used of the two ---- */

static bool follow(const struct program *p, const struct access *x, int a, int b) {
    for (int d = 0; d < p->buffer[x->buffer].ndims; d++)
        if (access_coef(p, x, d, a) != access_coef(p, x, d, b) * p->axis[b].extent) return false;
    return true;
}

static bool fusible(const struct program *p, const struct stmt *s, int a, int b) {
    uint64_t pair = UINT64_C(1) << a | UINT64_C(1) << b;
    if (a == b || (s->axes & pair) != pair || rw_value_axes(s) & pair || p->axis[a].sequential ||
        p->axis[b].sequential || p->axis[a].extent > (INT64_C(1) << 48) / p->axis[b].extent)
        return false;
    bool ok = follow(p, &s->dst, a, b);
    for (int r = 0; r < s->nreads; r++) ok = ok && follow(p, &s->read[r], a, b);
    for (int w = 0; w < s->nwhere; w++)
        ok = ok && s->where[w].coef[a] == s->where[w].coef[b] * p->axis[b].extent;
    return ok;
}

static struct program *fuse(const struct program *p, const struct failure *why,
                            const struct needle *n) {
    int a = 0, b = 0;
    (void)n;
    if (!rw_top(p, why->stmt)) return NULL;
    const struct stmt *s = &p->stmt[why->stmt];
    while (a < p->naxes && !fusible(p, s, a, b)) {
        if (++b < p->naxes) continue;
        a++;
        b = 0;
    }
    if (a == p->naxes) return NULL;
    struct program *q = program_copy(p);
    int whole = rw_axis(q, q->axis[b].name, q->axis[a].extent * q->axis[b].extent);
    if (whole < 0) {
        program_free(q);
        return NULL;
    }
    struct substitution x = {.p = q};
    rw_substitution(&x, a);
    rw_substitution(&x, b)[whole] = 1;
    substituted(q, why->stmt, &x);
    return q;
}

const struct rewrite rw_fuse = {
    .name = "fuse",
    .doc = "two axes that always stand together as one row of numbers become one",
    .answers = ANSWERS(MISSING_AXIS),
    .effect = REWRITE_EXACT,
    .apply = fuse,
};

/* ---- size 1 ---- */

static struct program *drop_axis(const struct program *p, const struct failure *why,
                                 const struct needle *n) {
    struct substitution x = {0};
    (void)n;
    if (!rw_top(p, why->stmt)) return NULL;
    struct program *q = program_copy(p);
    const struct stmt *s = &q->stmt[why->stmt];
    x.p = q;
    for (int a = 0; a < q->naxes; a++)
        if (s->axes >> a & 1 && q->axis[a].extent == 1 && !q->axis[a].sequential &&
            !(rw_value_axes(s) >> a & 1))
            rw_substitution(&x, a);
    if (x.n > 0) {
        substituted(q, why->stmt, &x);
        return q;
    }
    program_free(q);
    return NULL;
}

const struct rewrite rw_drop_axis = {
    .name = "drop-axis",
    .doc = "axes of extent 1 leave the statement",
    .answers = ANSWERS(ORDER),
    .effect = REWRITE_EXACT,
    .apply = drop_axis,
};

/* The sum is made in a temporary that has one dimension of size 1 more. */
static struct program *add_axis(const struct program *p, const struct failure *why,
                                const struct needle *n) {
    int at = why->stmt, axis[MAX_AXES];
    struct access sum;
    (void)n;
    if (!rw_plain(p, at) || p->stmt[at].combine != COMBINE_ADD) return NULL;
    struct program *q = program_copy(p);
    uint64_t result = rw_access_axes(q, &q->stmt[at].dst);
    int unit = rw_points(q, result) > 0x1p31 ? -1 : rw_axis(q, "one", 1);
    if (unit < 0) goto no;
    struct stmt old = q->stmt[at];
    int count = rw_axes(result, axis);
    axis[count++] = unit;
    const char *name = arena_printf(&q->arena, "%s.unit", q->buffer[old.dst.buffer].name);
    if (!rw_temporary_of(q, name, old.op[old.nops - 1].type, axis, count, &sum)) goto no;
    program_make_room(q, at, 2);
    rw_fill(q, at, &old, sum, 0);
    struct draft d = draft_open(q, &old, COMBINE_ADD, rw_copy(q, &sum));
    draft_tree(&d, &old, old.nops - 1);
    draft_close(&d, at + 1);
    d = draft_open(q, &old, COMBINE_ADD, rw_copy(q, &old.dst));
    draft_read(&d, rw_copy(q, &sum));
    draft_close(&d, at + 2);
    return q;
no:
    program_free(q);
    return NULL;
}

const struct rewrite rw_add_axis = {
    .name = "add-axis",
    .doc = "a sum is made with one axis of extent 1 more",
    .answers = ANSWERS(MISSING_AXIS),
    .effect = REWRITE_REORDERS,
    .apply = add_axis,
};
