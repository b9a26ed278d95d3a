/* The dimensions of one region: in one order, and cut by bytes. */
#include "scheduler/verify/sym.h"

#include <string.h>

bool region_empty(const struct sym *s, const struct region *x) {
    for (int k = 0; k < (x->box ? x->nindices : x->ndims); k++) {
        int64_t lo, hi;
        lin_range(s, &x->n[k], &lo, &hi);
        if (hi <= 0) return true;
    }
    return false;
}

static void drop_dim(struct region *x, int d) {
    for (int k = d; k + 1 < x->ndims; k++) {
        x->n[k] = x->n[k + 1];
        x->s[k] = x->s[k + 1];
        memcpy(x->c[k], x->c[k + 1], sizeof x->c[k]);
    }
    x->ndims--;
}

static void swap_dims(struct region *x, int a, int b) {
    struct lin n = x->n[a];
    int64_t stride = x->s[a], c[SYM_INDICES];
    memcpy(c, x->c[a], sizeof c);
    x->n[a] = x->n[b];
    x->s[a] = x->s[b];
    memcpy(x->c[a], x->c[b], sizeof c);
    x->n[b] = n;
    x->s[b] = stride;
    memcpy(x->c[b], c, sizeof c);
}

/* Dimension d - 1 goes on where d ends. */
static bool join_dims(struct region *x, int d) {
    int64_t inner;
    if (!lin_constant(&x->n[d], &inner) || inner <= 0 || x->s[d - 1] != inner * x->s[d])
        return false;
    for (int e = 0; e < x->nindices; e++)
        if (x->c[d - 1][e] != inner * x->c[d][e]) return false;
    struct lin n = lin_of(0);
    if (!lin_add(&n, &x->n[d - 1], inner)) return false;
    x->n[d] = n;
    drop_dim(x, d - 1);
    return true;
}

void region_tidy(struct sym *s, struct region *x) {
    (void)s;
    if (x->box) return;
    for (int d = x->ndims - 1; d >= 0; d--) {
        int64_t n;
        if (lin_constant(&x->n[d], &n) && n == 1) drop_dim(x, d);
    }
    for (int d = 1; d < x->ndims; d++)
        for (int k = d; k > 0 && x->s[k] > x->s[k - 1]; k--) swap_dims(x, k, k - 1);
    for (int d = x->ndims - 1; d > 0 && x->nindices > 0; d--)
        if (d < x->ndims) join_dims(x, d);
}

/* ---- parts ---- */
bool region_part(struct region *g, int k, const struct lin *begin, const struct lin *n) {
    bool good = lin_add(&g->base, begin, g->s[k]);
    for (int e = 0; e < g->nindices; e++) good &= lin_add(&g->o[e], begin, g->c[k][e]);
    g->n[k] = *n;
    return good;
}

/* x / by, rounded down, or a form that is nowhere greater. Never below zero. */
static struct lin quotient(const struct sym *s, struct lin x, int64_t by) {
    struct lin y = lin_of(0), zero = lin_of(0);
    int64_t lo, hi;
    for (int i = 0; i < SYM_LOOPS; i++) sym_carry(&x.k[i], by, &y.k[i]);
    lin_range(s, &x, &lo, &hi);
    y.c = lo / by - (lo % by < 0);
    if (lin_le(s, &zero, &y) == YES) return y;
    lin_range(s, &y, &lo, &hi);
    return lin_of(lo > 0 ? lo : 0);
}

/* No more than there are; false: that is not decided. */
static bool at_most(const struct sym *s, const struct lin *most, struct lin *n) {
    if (lin_le(s, n, most) == YES) return true;
    bool all = lin_le(s, most, n) == YES;
    if (all) *n = *most;
    return all;
}

/* How many bytes the dimensions behind k span, at most; -1: not known. */
static int64_t inner_bytes(const struct sym *s, const struct region *g, int k) {
    int64_t bytes = (int64_t)type_size(g->type), lo, hi;
    for (int d = k + 1; d < g->ndims; d++) {
        lin_range(s, &g->n[d], &lo, &hi);
        if (hi > INT32_MAX || (hi > 0 && __builtin_mul_overflow(g->s[d], hi - 1, &hi)) ||
            __builtin_add_overflow(bytes, hi > 0 ? hi : 0, &bytes))
            return -1;
    }
    return bytes;
}

/* Of dimension k the first values have all their bytes in front of `lo`: so many. */
static bool count_front(const struct sym *s, const struct region *g, int k, const struct lin *lo,
                        struct lin *n) {
    int64_t inner = inner_bytes(s, g, k);
    struct lin off = *lo;
    if (inner < 0 || !lin_add(&off, &g->base, -1)) return false;
    off.c += g->s[k] - inner;
    *n = quotient(s, off, g->s[k]);
    return at_most(s, &g->n[k], n);
}

/* And the last ones behind `hi`. */
static bool count_behind(const struct sym *s, const struct region *g, int k, const struct lin *hi,
                         struct lin *n) {
    struct lin off = g->base;
    if (!lin_add(&off, &g->n[k], g->s[k]) || !lin_add(&off, hi, -1)) return false;
    *n = quotient(s, off, g->s[k]);
    return at_most(s, &g->n[k], n);
}

static bool take(struct sym *s, struct cuts *outside, const struct region *g, int k,
                 const struct lin *begin, const struct lin *n) {
    struct region *x = &outside->at[outside->n];
    *x = *g;
    if (!region_part(x, k, begin, n)) return false;
    if (region_empty(s, x)) return true;
    region_tidy(s, x);
    outside->n++;
    return true;
}

bool region_cut(struct sym *s, struct region *g, const struct lin *lo, const struct lin *hi,
                struct cuts *outside) {
    const struct lin zero = lin_of(0);
    int64_t n = 1;
    outside->n = 0;
    for (int k = 0; k < g->ndims && n == 1; k++) {
        struct lin front, behind, left = g->n[k];
        if (!count_front(s, g, k, lo, &front) || !take(s, outside, g, k, &zero, &front)) break;
        if (!lin_add(&left, &front, -1) || !region_part(g, k, &front, &left)) return false;
        if (count_behind(s, g, k, hi, &behind) && lin_add(&left, &behind, -1) &&
            take(s, outside, g, k, &left, &behind))
            g->n[k] = left;
        if (region_empty(s, g)) return false;
        if (!lin_constant(&g->n[k], &n)) break;
    }
    region_tidy(s, g);
    return true;
}
