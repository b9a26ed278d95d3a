/* Regions that are one: what lies behind each other in bytes and in elements. */
#include "scheduler/verify/sym.h"

#include <string.h>

static bool follows(const struct lin *begin, const struct lin *n, int64_t step,
                    const struct lin *next) {
    struct lin x = *begin;
    return lin_add(&x, n, step) && lin_same(&x, next);
}

static bool join_boxes(struct region *a, const struct region *b) {
    int apart = -1;
    for (int e = 0; e < a->nindices; e++) {
        if (lin_same(&a->o[e], &b->o[e]) && lin_same(&a->n[e], &b->n[e])) continue;
        if (apart >= 0) return false;
        apart = e;
    }
    if (apart < 0) return false;
    bool up = follows(&a->o[apart], &a->n[apart], 1, &b->o[apart]),
         down = follows(&b->o[apart], &b->n[apart], 1, &a->o[apart]);
    if (!up && !down) return false;
    if (!up) a->o[apart] = b->o[apart];
    return lin_add(&a->n[apart], &b->n[apart], 1);
}

/* b begins where a ends along dimension d of a. */
static bool goes_on(const struct region *a, const struct region *b, int d) {
    if (!follows(&a->base, &a->n[d], a->s[d], &b->base)) return false;
    for (int e = 0; e < a->nindices; e++)
        if (!follows(&a->o[e], &a->n[d], a->c[d][e], &b->o[e])) return false;
    return true;
}

static bool same_dim(const struct region *a, int i, const struct region *b, int j, bool extents) {
    return a->s[i] == b->s[j] &&
           memcmp(a->c[i], b->c[j], (size_t)a->nindices * sizeof a->c[i][0]) == 0 &&
           (!extents || lin_same(&a->n[i], &b->n[j]));
}

/* All dimensions the same but for the extent of d; or b has no dimension d. */
static bool same_but(const struct region *a, const struct region *b, int d) {
    if (a->ndims == b->ndims) {
        for (int k = 0; k < a->ndims; k++)
            if (!same_dim(a, k, b, k, k != d)) return false;
        return true;
    }
    if (a->ndims != b->ndims + 1) return false;
    for (int k = 0; k < a->ndims; k++)
        if (k != d && !same_dim(a, k, b, k > d ? k - 1 : k, true)) return false;
    return true;
}

/* Between the two there is room for others like them, in bytes and in elements. */
static bool room_between(struct sym *s, const struct region *a, int64_t step, const int64_t *c) {
    enum { MOST = 16 };
    int e = 0;
    int64_t covers = 1, n;
    while (e < a->nindices && c[e] == 0) e++;
    if (e == a->nindices) return false;
    for (int d = 0; d < a->ndims; d++) {
        if (!lin_constant(&a->n[d], &n)) return false;
        covers += a->c[d][e] * (n - 1);
    }
    for (int64_t m = 2; m <= MOST && m * covers <= c[e]; m++) {
        struct region next = *a;
        if (step % m != 0) continue;
        next.base.c += step / m;
        if (!regions_may_meet(s, a, &next)) return true;
    }
    return false;
}

/* Two that are the same but for where they begin, in one index: a new dimension of two. (In several
 * they would be a diagonal, such as the last row of one block and the first of the next.) Later
 * elements at lower bytes are those of a later tile, which has overwritten a part of this one: they
 * stay apart. So do two in a ring of slots between which another one may come. */
static bool pair_up(struct sym *s, struct region *a, const struct region *b) {
    struct lin apart = b->base;
    int64_t step, c[SYM_INDICES] = {0};
    int moved = 0;
    if (a->ndims != b->ndims || a->ndims == TILE_DIMS || !lin_add(&apart, &a->base, -1) ||
        !lin_constant(&apart, &step) || step <= 0)
        return false;
    for (int k = 0; k < a->ndims; k++)
        if (!same_dim(a, k, b, k, true)) return false;
    for (int e = 0; e < a->nindices; e++) {
        apart = b->o[e];
        if (!lin_add(&apart, &a->o[e], -1) || !lin_constant(&apart, &c[e]) || c[e] < 0)
            return false;
        moved += c[e] > 0;
    }
    if (moved > 1 || room_between(s, a, step, c)) return false;
    a->n[a->ndims] = lin_of(2);
    a->s[a->ndims] = step;
    memcpy(a->c[a->ndims], c, sizeof c);
    a->ndims++;
    return true;
}

/* One step of dimension d of a before it is b, which has no such dimension. */
static bool comes_before(const struct region *a, const struct region *b, int d) {
    struct lin one = lin_of(1);
    if (a->ndims != b->ndims + 1 || !follows(&b->base, &one, a->s[d], &a->base)) return false;
    for (int e = 0; e < a->nindices; e++)
        if (!follows(&b->o[e], &one, a->c[d][e], &a->o[e])) return false;
    return true;
}

static bool extend(struct region *a, const struct region *b) {
    struct lin one = lin_of(1);
    for (int d = 0; d < a->ndims; d++) {
        if (!same_but(a, b, d)) continue;
        if (comes_before(a, b, d)) {
            a->base = b->base;
            memcpy(a->o, b->o, sizeof a->o);
            return lin_add(&a->n[d], &one, 1);
        }
        if (!goes_on(a, b, d)) continue;
        return lin_add(&a->n[d], a->ndims == b->ndims ? &b->n[d] : &one, 1);
    }
    return false;
}

/* a gets what b says too; both stay as they are if that is not one region. */
static bool join(struct sym *s, struct region *a, const struct region *b) {
    if (!region_alike(a, b)) return false;
    if (a->box) return join_boxes(a, b);
    struct region x = *a, y = *b;
    if (!extend(&x, b)) {
        if (extend(&y, a))
            x = y;
        else if (!pair_up(s, &x, b)) {
            y = *b;
            if (!pair_up(s, &y, a)) return false;
            x = y;
        }
    }
    region_tidy(s, &x);
    *a = x;
    return true;
}

bool regions_add(struct sym *s, const struct region *w) {
    struct regions *r = &s->of[w->place];
    struct region x = *w;
    if (region_empty(s, &x)) return true;
    region_tidy(s, &x);
    for (int k = 0; k < r->n; k++) {
        if (!region_alike(&r->at[k], &x)) continue;
        struct region both = r->at[k];
        if (!join(s, &both, &x)) continue;
        regions_take_out(r, k);
        x = both;
        k = -1;
    }
    x.settled = true;
    regions_append(s, &x);
    sym_compare(s, r->n);
    return sym_spend(s, 1); /* what fails here ends the walk: the budget is spent */
}

bool regions_cut(struct sym *s, int place, const struct lin *lo, const struct lin *hi) {
    struct regions all = s->of[place];
    bool some = false;
    s->of[place] = s->among;
    s->of[place].n = 0;
    for (int k = 0; k < all.n; k++) {
        struct region g = all.at[k];
        struct cuts outside;
        if (g.box || g.age != 0) continue;
        bool left = region_cut(s, &g, lo, hi, &outside);
        some |= left && outside.n > 0;
        if (left) regions_add(s, &g);
    }
    s->among = s->of[place];
    s->of[place] = all;
    return some;
}

/* The region is joined to one before it, from the i-th on: to which; -1: to none. Whether two can
 * be joined does not depend on which comes first. */
static int join_any(struct sym *s, struct regions *r, int i, int k) {
    sym_compare(s, k - i);
    for (; i < k; i++) {
        if (r->at[i].settled && r->at[k].settled) continue;
        if (!join(s, &r->at[i], &r->at[k])) continue;
        r->at[i].settled = false;
        regions_take_out(r, k);
        return i;
    }
    return -1;
}

/* Counters that became numbers may have made neighbours. */
bool regions_coalesce_place(struct sym *s, int place) {
    struct regions *r = &s->of[place];
    int first = r->n; /* of those that are not settled */
    for (int k = r->n - 1; k >= 0; k--) {
        if (r->at[k].settled) continue;
        first = k;
        region_tidy(s, &r->at[k]);
        if (region_empty(s, &r->at[k])) regions_take_out(r, k);
    }
    for (int k = r->n - 1; k > 0 && k >= first; k--) {
        int joined = join_any(s, r, r->at[k].settled ? first : 0, k);
        if (joined < 0) continue;
        if (joined < first) first = joined;
        k = r->n;
    }
    for (int k = first; k < r->n; k++) r->at[k].settled = true;
    return sym_spend(s, 1);
}

bool regions_coalesce(struct sym *s, const struct frame *f) {
    for (int p = 0; p < f->n; p++)
        if (!regions_coalesce_place(s, f->at[p])) return false;
    return true;
}
