/* What constraints leave of the indices that a fallback reads: a statement over s < n + 1 reads no
 * row behind n. */
#include "scheduler/verify/box.h"

/* The one dimension that the constraint bounds, by a step of 1, where nothing else of the issue
 * moves it; -1. */
static int bounded_dim(const struct sym *s, const struct affine *x) {
    int found = -1;
    for (int d = 0; d < s->ndims; d++) {
        if (!x->d[d]) continue;
        if (found >= 0 || (x->d[d] != 1 && x->d[d] != -1)) return -1;
        found = d;
    }
    return found;
}

static bool constraint_form(const struct sym *s, const struct constraint *c,
                            const struct affine *point, struct affine *out) {
    int naxes = s->v->p->naxes;
    *out = affine_of(c->coef[naxes]);
    for (int a = 0; a < naxes; a++)
        if (c->coef[a] && !affine_add(out, &point[a], c->coef[a])) return false;
    return true;
}

/* x >= 0 is y <= x.l where x is x.l - y, and y >= -x.l where it is x.l + y. So an end of the index,
 * reached where y is its last or first value, comes nearer. */
static void end_nearer(const struct sym *s, const struct affine *x, int d,
                       const struct affine *index, struct lin *first, struct lin *last) {
    int64_t c = index->d[d];
    bool upper = x->d[d] < 0, at_last = (c > 0) == upper;
    struct lin *end = at_last ? last : first, nearer = *end;
    if (!c || !lin_add(&nearer, &x->l, upper ? c : -c)) return;
    if (upper) nearer.c -= c * (s->n[d] - 1);
    if ((at_last ? lin_le(s, &nearer, end) : lin_le(s, end, &nearer)) == YES) *end = nearer;
}

void clip_where(const struct sym *s, int stmt, const struct affine *point,
                const struct affine *index, struct lin *first, struct lin *last) {
    const struct stmt *t = &s->v->p->stmt[stmt];
    for (int k = 0; k < t->nwhere; k++) {
        struct affine x;
        if (!constraint_form(s, &t->where[k], point, &x)) continue;
        int d = bounded_dim(s, &x);
        if (d >= 0) end_nearer(s, &x, d, index, first, last);
    }
}
