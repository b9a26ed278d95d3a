/* Edges by residual: an axis that an instruction takes T values of at a time is cut at its last
 * multiple of T. The main part fills the instruction; the rest is a statement of its own, which
 * another instruction, the same one with its roles exchanged, or the fallback executes. Along a
 * reduction the rest is added to the main part's sums; along an axis of the result both sum in
 * temporaries, from which they are stored side by side. */
#include "mapper/rewrite_int.h"

#include <string.h>

struct cut {
    int axis;     /* of the statement */
    int64_t main; /* values of the main part */
    bool reduction;
};

int64_t needle_axis_unit(const struct needle_axis *x) {
    return x->ranged < 0 ? x->hi : x->step;
}

static bool cuts(const struct program *p, const struct stmt *s, int axis, int64_t unit) {
    return unit > 1 && s->axes >> axis & 1 && !p->axis[axis].sequential &&
           !(rw_value_axes(s) >> axis & 1) && p->axis[axis].extent > unit &&
           p->axis[axis].extent % unit != 0;
}

/* The axis that the failure names; where it names none, the first that can be cut. */
static bool find_cut(const struct program *p, const struct failure *why, const struct needle *n,
                     struct cut *c) {
    const struct stmt *s = &p->stmt[why->stmt];
    uint64_t result = rw_access_axes(p, &s->dst);
    for (int x = 0; n && x < n->naxes; x++)
        for (int a = 0; a < p->naxes; a++) {
            int64_t unit = needle_axis_unit(&n->axis[x]);
            bool asked = why->needle_axis < 0 || (why->needle_axis == x && why->stmt_axis == a);
            bool reduction = !(result >> a & 1);
            if (!asked || reduction != n->axis[x].reduction || !cuts(p, s, a, unit)) continue;
            *c = (struct cut){a, p->axis[a].extent / unit * unit, reduction};
            return true;
        }
    return false;
}

/* ---- parts ---- */

struct side {
    int axis;       /* in place of the one that is cut; -1: one value */
    int64_t offset; /* of its first value */
    struct substitution s;
};

static bool part_open(struct program *q, const struct cut *c, int64_t offset, int64_t extent,
                      struct side *x) {
    *x = (struct side){.axis = -1, .offset = offset};
    if (extent > 1) x->axis = rw_axis(q, q->axis[c->axis].name, extent);
    return extent == 1 || x->axis >= 0;
}

static void part_substitute(struct program *q, const struct cut *c, struct side *x) {
    x->s.p = q;
    int64_t *row = rw_substitution(&x->s, c->axis);
    if (x->axis >= 0) row[x->axis] = 1;
    row[q->naxes] = x->offset;
}

static void write_part(struct program *q, int at, const struct stmt *old, struct side *x,
                       struct access dst) {
    struct draft d = draft_open(q, old, old->combine, dst);
    draft_mapped(&d, old, old->nops - 1, rw_substituted, &x->s);
    draft_close(&d, at);
}

/* Axes of the result in the order of its dimensions, the cut one as the part has it. */
static bool part_temporary(struct program *q, const struct stmt *old, const struct cut *c,
                           const struct side *x, struct access *out) {
    int axis[MAX_AXES], n = 0;
    uint64_t seen = 0;
    for (int d = 0; d < q->buffer[old->dst.buffer].ndims; d++)
        for (int a = 0; a < q->naxes; a++) {
            if (seen >> a & 1 || !access_coef(q, &old->dst, d, a)) continue;
            seen |= UINT64_C(1) << a;
            int own = a == c->axis ? x->axis : a;
            if (own >= 0) axis[n++] = own;
        }
    const char *name = arena_printf(&q->arena, "%s.%s", q->buffer[old->dst.buffer].name,
                                    x->offset ? "rest" : "main");
    return rw_points(q, rw_access_axes(q, &old->dst)) <= 0x1p31 &&
           rw_temporary_of(q, name, q->buffer[old->dst.buffer].type, axis, n, out);
}

static void store_part(struct program *q, int at, const struct stmt *old, enum combiner combine,
                       struct side *x, const struct access *own) {
    struct draft d = draft_open(q, old, combine, rw_substituted(&x->s, &old->dst, -1));
    draft_read(&d, rw_copy(q, own));
    draft_close(&d, at);
}

static void fill_part(struct program *q, int at, const struct stmt *old, const struct access *own) {
    enum type t = q->buffer[own->buffer].type;
    union value neutral = combiner_neutral(old->combine, t);
    rw_fill(q, at, old, *own, type_is_float(t) ? neutral.f : (double)neutral.i);
}

/* ---- the two kinds ---- */

static void write_reduction(struct program *q, int at, struct side *x) {
    struct stmt old = q->stmt[at];
    program_make_room(q, at, 1);
    for (int k = 0; k < 2; k++) write_part(q, at + k, &old, &x[k], rw_copy(q, &old.dst));
}

/* A fill that the sum goes on with becomes that of the main part, so that both parts are stored
 * over what it left. */
static bool write_beside(struct program *q, int at, const struct cut *c, struct side *x) {
    struct stmt old = q->stmt[at];
    struct access own[2];
    bool sums = old.combine != COMBINE_SET;
    int init = sums ? init_of(q, at) : -1, next = at;
    for (int k = 0; k < 2; k++)
        if (!part_temporary(q, &old, c, &x[k], &own[k])) return false;
    program_make_room(q, at, !sums ? 3 : init >= 0 ? 4 : 5);
    if (init >= 0) fill_part(q, init, &old, &own[0]);
    for (int k = 0; k < 2; k++) {
        if (sums && (k > 0 || init < 0)) fill_part(q, next++, &old, &own[k]);
        write_part(q, next++, &old, &x[k], rw_copy(q, &own[k]));
    }
    for (int k = 0; k < 2; k++)
        store_part(q, next++, &old, init >= 0 ? COMBINE_SET : old.combine, &x[k], &own[k]);
    return true;
}

static struct program *split_residual(const struct program *p, const struct failure *why,
                                      const struct needle *n) {
    struct cut c;
    struct side x[2];
    int at = why->stmt;
    if (!rw_plain(p, at) || p->stmt[at].nreads < 2 || !plain_result(p, &p->stmt[at]) ||
        !find_cut(p, why, n, &c))
        return NULL;
    struct program *q = program_copy(p);
    int64_t extent = q->axis[c.axis].extent;
    bool good =
        part_open(q, &c, 0, c.main, &x[0]) && part_open(q, &c, c.main, extent - c.main, &x[1]);
    for (int k = 0; k < 2 && good; k++) part_substitute(q, &c, &x[k]);
    if (good && c.reduction)
        write_reduction(q, at, x);
    else if (good)
        good = write_beside(q, at, &c, x);
    if (good) return q;
    program_free(q);
    return NULL;
}

const struct rewrite rw_residual = {
    .name = "split-residual",
    .doc = "an axis that is no multiple of what an instruction takes at a time is cut: the rest is "
           "executed apart",
    .answers = ANSWERS(EXTENT),
    .effect = REWRITE_REORDERS,
    .apply = split_residual,
};
