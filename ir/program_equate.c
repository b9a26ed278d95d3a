/* Equalities between axes: a statement walks no values of an axis that the others give.
 *
 *     c[i,j] += a[i,k] * b[k,j] where k == i + 1     →     c[i,j] += a[i,i+1] * b[i+1,j]
 *                                                              where i + 1 < extent of k
 *
 * The points are the same, one for one: substitution, as elimination by an equality does it. */
#include "ir/program.h"

#include <stdlib.h>
#include <string.h>

static const int64_t LARGE = INT64_C(1) << 31; /* what is below may be multiplied */

struct equality {
    int axis;
    int64_t *row; /* axis = Σ row[a] * a + row[naxes] */
    bool above,
        below; /* that this is 0 or more, or less than the extent, does not hold by itself */
};

static bool small_row(const struct program *p, const int64_t *row) {
    bool small = true;
    for (int a = 0; a <= p->naxes; a++) small &= row[a] > -LARGE && row[a] < LARGE;
    return small;
}

static bool small_rows(const struct program *p, const struct stmt *s) {
    bool small = true;
    for (int r = -1; r < s->nreads; r++) {
        const struct access *a = r < 0 ? &s->dst : &s->read[r];
        for (int d = 0; d < p->buffer[a->buffer].ndims; d++)
            small &= small_row(p, a->coef + (size_t)d * ((size_t)p->naxes + 1));
    }
    for (int w = 0; w < s->nwhere; w++) small &= small_row(p, s->where[w].coef);
    return small;
}

/* Both hold: the form is 0. */
static bool opposite(const struct program *p, const struct constraint *x,
                     const struct constraint *y) {
    bool any = false;
    for (int a = 0; a <= p->naxes; a++) {
        if (x->coef[a] != -y->coef[a]) return false;
        any |= a < p->naxes && x->coef[a];
    }
    return any;
}

/* No axis of a recurrence, and none whose length is known only when the program runs. */
static bool plain_axes(const struct program *p, const struct constraint *c) {
    for (int a = 0; a < p->naxes; a++)
        if (c->coef[a] && (p->axis[a].sequential || p->axis[a].size)) return false;
    return true;
}

static bool used_as_value(const struct stmt *s, int axis) {
    for (int k = 0; k < s->nops; k++)
        if (s->op[k].code == OP_AXIS && s->op[k].axis == axis) return true;
    return false;
}

/* The axis that is the whole row; -1. */
static int same_axis(const struct program *p, const int64_t *row) {
    int found = -1;
    for (int a = 0; a < p->naxes; a++) {
        if (!row[a]) continue;
        if (found >= 0 || row[a] != 1) return -1;
        found = a;
    }
    return row[p->naxes] ? -1 : found;
}

static bool solve(struct program *p, const struct stmt *s, const struct constraint *c, int axis,
                  struct equality *e) {
    int64_t by = -c->coef[axis];
    __int128 least, most;
    *e = (struct equality){.axis = axis};
    if (!by) return false;
    e->row = arena_array(&p->arena, (size_t)p->naxes + 1, sizeof *e->row);
    for (int a = 0; a <= p->naxes; a++) {
        if (c->coef[a] % by) return false;
        e->row[a] = a == axis ? 0 : c->coef[a] / by;
    }
    least = most = e->row[p->naxes];
    for (int a = 0; a < p->naxes; a++)
        *(e->row[a] < 0 ? &least : &most) += (__int128)e->row[a] * (p->axis[a].extent - 1);
    e->above = least < 0;
    e->below = most >= p->axis[axis].extent;
    return !used_as_value(s, axis) || same_axis(p, e->row) >= 0;
}

/* Solved for the axis whose own bounds then say least; of such, for one that is summed over. */
static bool solve_best(struct program *p, const struct stmt *s, const struct constraint *c,
                       struct equality *best) {
    int least = INT32_MAX;
    for (int a = 0; a < p->naxes; a++) {
        struct equality e;
        if (!solve(p, s, c, a, &e)) continue;
        int bounds = 2 * (e.above + e.below) + access_varies(p, &s->dst, a);
        if (bounds < least) *best = e;
        least = bounds < least ? bounds : least;
    }
    return least < INT32_MAX;
}

static bool find_equality(struct program *p, const struct stmt *s, struct equality *e) {
    for (int w = 0; w < s->nwhere; w++)
        for (int k = 0; k < w; k++)
            if (opposite(p, &s->where[w], &s->where[k]) && plain_axes(p, &s->where[w]) &&
                solve_best(p, s, &s->where[w], e))
                return true;
    return false;
}

static void substitute_row(const struct program *p, int64_t *row, const struct equality *e) {
    int64_t c = row[e->axis];
    row[e->axis] = 0;
    for (int a = 0; a <= p->naxes; a++) row[a] += c * e->row[a];
}

static void substitute_access(const struct program *p, struct access *a, const struct equality *e) {
    for (int d = 0; d < p->buffer[a->buffer].ndims; d++)
        substitute_row(p, a->coef + (size_t)d * ((size_t)p->naxes + 1), e);
}

/* row * sign + add >= 0 */
static void bound(struct program *p, struct stmt *s, const struct equality *e, int sign,
                  int64_t add) {
    int64_t *coef = arena_array(&p->arena, (size_t)p->naxes + 1, sizeof *coef);
    for (int a = 0; a <= p->naxes; a++) coef[a] = sign * e->row[a];
    coef[p->naxes] += add;
    s->where[s->nwhere++].coef = coef;
}

static void substitute(struct program *p, struct stmt *s, const struct equality *e) {
    struct constraint *where = arena_array(&p->arena, (size_t)s->nwhere + 2, sizeof *where);
    memcpy(where, s->where, (size_t)s->nwhere * sizeof *where);
    s->where = where;
    substitute_access(p, &s->dst, e);
    for (int r = 0; r < s->nreads; r++) substitute_access(p, &s->read[r], e);
    for (int w = 0; w < s->nwhere; w++) substitute_row(p, s->where[w].coef, e);
    for (int k = 0; k < s->nops; k++)
        if (s->op[k].code == OP_AXIS && s->op[k].axis == e->axis)
            s->op[k].axis = same_axis(p, e->row);
    bound(p, s, e, 1, 0);
    bound(p, s, e, -1, p->axis[e->axis].extent - 1);
    s->axes = stmt_axes(p, s);
    stmt_drop_where(p, s);
}

int program_equate(struct program *p) {
    int gone = 0;
    for (int n = 0; n < p->nstmts; n++) {
        struct stmt *s = &p->stmt[n];
        struct equality e;
        while (s->nwhere > 1 && program_item(p, n) >= 0 && small_rows(p, s) &&
               find_equality(p, s, &e)) {
            substitute(p, s, &e);
            gone++;
        }
    }
    return gone;
}
