/* What is known to lie where (struct region): homes and executed instances as boxes of indices,
 * local places as affine tiles of bytes. */
#include "scheduler/verify/sym.h"
#include "ir/memory.h"

#include <stdlib.h>
#include <string.h>

void regions_take_out(struct regions *r, int k) {
    r->n--;
    if (k < r->n) memmove(&r->at[k], &r->at[k + 1], (size_t)(r->n - k) * sizeof *r->at);
}

/* What fails here ends the walk: the budget is spent. */
static bool append(struct sym *s, const struct region *x) {
    struct regions *r = &s->of[x->place];
    regions_append(s, x);
    r->at[r->n - 1].settled = false;
    return sym_spend(s, 1);
}

void regions_forget(struct sym *s, int place) {
    s->of[place].n = 0;
}

/* ---- single regions ---- */
static bool is_zero(const struct lin *x) {
    int64_t c;
    return lin_constant(x, &c) && c == 0;
}

bool region_is_constant(const struct region *g) {
    return !g->box && g->filled && g->nindices == 0;
}

bool region_same(const struct region *a, const struct region *b) {
    if (a->place != b->place || a->age != b->age || a->buffer != b->buffer ||
        a->writer != b->writer || a->type != b->type || a->box != b->box ||
        a->nindices != b->nindices || a->ndims != b->ndims || a->filled != b->filled ||
        (a->filled && a->fill.i != b->fill.i) || !lin_same(&a->count, &b->count) ||
        !lin_same(&a->step, &b->step))
        return false;
    for (int e = 0; e < a->nindices; e++)
        if (!lin_same(&a->o[e], &b->o[e]) || (a->box && !lin_same(&a->n[e], &b->n[e])))
            return false;
    if (a->box) return true;
    if (!lin_same(&a->base, &b->base)) return false;
    for (int d = 0; d < a->ndims; d++)
        if (!lin_same(&a->n[d], &b->n[d]) || a->s[d] != b->s[d] ||
            memcmp(a->c[d], b->c[d], (size_t)a->nindices * sizeof a->c[d][0]) != 0)
            return false;
    return true;
}

bool region_alike(const struct region *a, const struct region *b) {
    return a->place == b->place && a->age == b->age && a->buffer == b->buffer &&
           a->writer == b->writer && a->type == b->type && a->box == b->box &&
           a->filled == b->filled && (!a->filled || a->fill.i == b->fill.i) &&
           a->nindices == b->nindices && lin_same(&a->count, &b->count) &&
           lin_same(&a->step, &b->step);
}

/* ---- overlaps ---- */
static struct lin end_of(const struct region *x, int e) {
    struct lin end = x->o[e];
    return lin_add(&end, &x->n[e], 1) ? end : lin_of(INT64_MAX / 4);
}

enum truth boxes_meet(const struct sym *s, const struct region *a, const struct region *b) {
    bool surely = true;
    for (int e = 0; e < a->nindices; e++) {
        struct lin x = end_of(a, e), y = end_of(b, e);
        enum truth before = lin_le(s, &x, &b->o[e]), after = lin_le(s, &y, &a->o[e]);
        if (before == YES || after == YES) return NO;
        surely &= before == NO && after == NO;
    }
    if (region_empty(s, a) || region_empty(s, b)) return NO;
    return surely ? YES : MAYBE;
}

bool box_inside(const struct sym *s, const struct region *inner, const struct region *outer) {
    for (int e = 0; e < inner->nindices; e++) {
        struct lin x = end_of(inner, e), y = end_of(outer, e);
        if (lin_le(s, &outer->o[e], &inner->o[e]) != YES || lin_le(s, &x, &y) != YES) return false;
    }
    return true;
}

/* ---- what is overwritten ---- */
/* The parts of box g outside w are kept where they can be told; else *all becomes false, and none
 * is. */
static bool keep_around_box(struct sym *s, struct region g, const struct region *w, bool *all) {
    struct region piece[2 * SYM_INDICES];
    int n = 0;
    *all = false;
    for (int e = 0; e < g.nindices; e++) {
        struct lin end = end_of(&g, e), cut = end_of(w, e);
        if (lin_le(s, &w->o[e], &end) != YES || lin_le(s, &g.o[e], &cut) != YES) return true;
        if (lin_le(s, &w->o[e], &g.o[e]) != YES) {
            if (lin_le(s, &g.o[e], &w->o[e]) != YES) return true;
            piece[n] = g;
            piece[n].n[e] = w->o[e];
            if (!lin_add(&piece[n++].n[e], &g.o[e], -1)) return true;
            g.o[e] = w->o[e];
            g.n[e] = end;
            if (!lin_add(&g.n[e], &w->o[e], -1)) return true;
        }
        if (lin_le(s, &end, &cut) != YES) {
            if (lin_le(s, &cut, &end) != YES) return true;
            piece[n] = g;
            piece[n].o[e] = cut;
            piece[n].n[e] = end;
            if (!lin_add(&piece[n++].n[e], &cut, -1)) return true;
            g.n[e] = cut;
            if (!lin_add(&g.n[e], &g.o[e], -1)) return true;
        }
    }
    *all = true;
    for (int k = 0; k < n; k++)
        if (!region_empty(s, &piece[k]) && !append(s, &piece[k])) return false;
    return true;
}

bool regions_remove(struct sym *s, const struct region *w) {
    struct regions *r = &s->of[w->place];
    sym_compare(s, r->n);
    for (int k = r->n - 1; k >= 0; k--) {
        struct region g = r->at[k];
        bool all;
        if (boxes_meet(s, &g, w) == NO) continue;
        regions_take_out(r, k);
        if (!keep_around_box(s, g, w, &all)) return false;
        if (!all) return sym_fail(s, "a part of a box is not known");
    }
    return true;
}

/* The part of index e that a layout with a period tells apart, in which x begins. */
static bool fold_of(struct sym *s, int64_t period, const struct lin *x, struct lin *low,
                    struct lin *high) {
    struct affine first = {.l = *x}, turn, rest;
    *low = lin_of(0);
    if (!affine_divide(s, &first, period, &turn, &rest) || !lin_add(low, &turn.l, period))
        return false;
    *high = *low;
    high->c += period;
    return true;
}

bool box_in_one_fold(struct sym *s, const struct region *w) {
    const struct home_layout *h = sym_layout(s, w->place);
    for (int e = 0; h && e < w->nindices; e++) {
        struct lin low, high, end = end_of(w, e);
        if (h->period[e] == INT64_MAX) continue;
        if (!fold_of(s, h->period[e], &w->o[e], &low, &high) || lin_le(s, &end, &high) != YES)
            return sym_fail(s, "what is written folds onto itself in place '%s'",
                            s->v->s->place[w->place].name);
    }
    return h;
}

/* Where a layout holds a part of an index at a time, only what lies in the same part stays. */
static bool folds_apart(struct sym *s, const struct region *g, const struct region *w) {
    const struct home_layout *h = sym_layout(s, g->place);
    for (int e = 0; h && e < g->nindices; e++) {
        struct lin low, high, end = end_of(g, e);
        if (h->period[e] == INT64_MAX) continue;
        if (!fold_of(s, h->period[e], &w->o[e], &low, &high) || lin_le(s, &low, &g->o[e]) != YES ||
            lin_le(s, &end, &high) != YES)
            return true;
    }
    return !h;
}

static struct lin tile_end(const struct sym *s, const struct region *x) {
    struct lin end = x->base;
    bool good = true;
    for (int d = 0; d < x->ndims; d++) {
        good &= lin_add(&end, &x->n[d], x->s[d]);
        end.c -= x->s[d];
    }
    end.c += (int64_t)type_size(x->type);
    (void)s;
    return good ? end : lin_of(INT64_MAX / 4);
}

/* The bytes modulo m that the smaller strides reach, from *first on; false: not known. */
static bool residue(struct sym *s, const struct region *x, int64_t m, int64_t *first,
                    int64_t *last) {
    struct affine base = {.l = x->base}, turn, rest;
    int64_t span = (int64_t)type_size(x->type), lo, hi;
    for (int d = 0; d < x->ndims; d++) {
        if (x->s[d] % m == 0) continue;
        lin_range(s, &x->n[d], &lo, &hi);
        if (hi > INT32_MAX) return false;
        span += x->s[d] * (hi > 0 ? hi - 1 : 0);
    }
    if (!affine_divide(s, &base, m, &turn, &rest)) return false;
    lin_range(s, &rest.l, first, last);
    *last += span;
    return *last <= m;
}

static bool tiles_apart(struct sym *s, const struct region *a, const struct region *b) {
    struct lin a_end = tile_end(s, a), b_end = tile_end(s, b);
    if (lin_le(s, &a_end, &b->base) == YES || lin_le(s, &b_end, &a->base) == YES) return true;
    for (int d = 0; d < a->ndims + b->ndims; d++) {
        int64_t m = d < a->ndims ? a->s[d] : b->s[d - a->ndims], f, l, g, k;
        if (residue(s, a, m, &f, &l) && residue(s, b, m, &g, &k) && (l <= g || k <= f)) return true;
    }
    return false;
}

/* Where dimension k begins with a whole step of the one around it, that is counted there. */
static void carry_steps(struct sym *s, const struct region *g, int k, struct lin *begin) {
    int64_t most = g->s[k - 1] / g->s[k], lo, hi;
    if (most <= 0 || g->s[k - 1] % g->s[k] != 0) return;
    lin_range(s, &begin[k], &lo, &hi);
    if (lo < -(INT64_C(1) << 48) || lo > INT64_C(1) << 48) return;
    int64_t steps = lo / most - (lo % most < 0);
    begin[k].c -= steps * most;
    begin[k - 1].c += steps;
}

/* w as a box in the dimensions of g: where it begins, and how long it is, in each. */
static bool tile_digits(struct sym *s, const struct region *g, const struct region *w,
                        struct lin *begin, int64_t *length) {
    int64_t left[TILE_DIMS], n[TILE_DIMS];
    struct lin off = w->base;
    if (type_size(g->type) != type_size(w->type) || !lin_add(&off, &g->base, -1)) return false;
    for (int d = 0; d < w->ndims; d++) {
        left[d] = w->s[d];
        if (!lin_constant(&w->n[d], &n[d])) return false;
    }
    for (int k = 0; k < g->ndims; k++) {
        begin[k] = lin_of(0);
        length[k] = 1;
        for (int i = 0; i < SYM_LOOPS; i++) sym_carry(&off.k[i], g->s[k], &begin[k].k[i]);
        begin[k].c = off.c / g->s[k] - (off.c % g->s[k] < 0);
        off.c -= begin[k].c * g->s[k];
        for (int d = w->ndims - 1; d >= 0; d--) {
            if (left[d] % g->s[k] != 0 || left[d] == 0) continue;
            if (left[d] / g->s[k] != length[k]) return false;
            length[k] *= n[d];
            left[d] = 0;
        }
    }
    for (int k = g->ndims - 1; k > 0; k--) carry_steps(s, g, k, begin);
    int64_t between =
        (int64_t)type_size(w->type); /* of w from an element of g on, before the next */
    for (int d = 0; d < w->ndims; d++)
        if (left[d]) between += left[d] * (n[d] - 1);
    for (int d = 0; d < w->ndims; d++)
        if (left[d] && (g->ndims == 0 || between > g->s[g->ndims - 1])) return false;
    return is_zero(&off);
}

/* No dimension reaches the next larger stride: each byte has one row of numbers. */
static bool mixed_radix(struct sym *s, const struct region *g, const struct lin *begin,
                        const int64_t *length) {
    struct lin zero = lin_of(0);
    if (g->ndims == 0 || g->s[g->ndims - 1] < (int64_t)type_size(g->type)) return false;
    for (int k = 1; k < g->ndims; k++) {
        struct lin most = lin_of(g->s[k - 1] / g->s[k]), end = begin[k];
        end.c += length[k];
        if (g->s[k - 1] % g->s[k] != 0 || lin_le(s, &zero, &begin[k]) != YES ||
            lin_le(s, &end, &most) != YES || lin_le(s, &g->n[k], &most) != YES)
            return false;
    }
    return true;
}

/* What w has of g: from `begin` on, `n` long in each dimension. */
static bool sub_tile(struct sym *s, const struct region *g, const struct region *w,
                     struct lin *begin, struct lin *n) {
    int64_t length[TILE_DIMS];
    bool beyond = false;
    if (!tile_digits(s, g, w, begin, length)) return false;
    for (int k = 0; k < g->ndims; k++) {
        struct lin end = begin[k], zero = lin_of(0);
        end.c += length[k];
        n[k] = lin_of(length[k]);
        if (lin_le(s, &zero, &begin[k]) != YES) return false;
        if (lin_le(s, &end, &g->n[k]) == YES) continue;
        beyond = true;
        n[k] = g->n[k];
        if (lin_le(s, &begin[k], &g->n[k]) != YES || lin_le(s, &g->n[k], &end) != YES ||
            !lin_add(&n[k], &begin[k], -1))
            return false;
    }
    return !beyond || mixed_radix(s, g, begin, length);
}

/* Apart in one of the dimensions. */
static bool digits_apart(struct sym *s, const struct region *g, const struct region *w) {
    struct lin begin[TILE_DIMS], zero = lin_of(0);
    int64_t length[TILE_DIMS];
    bool apart = false;
    if (!tile_digits(s, g, w, begin, length) || !mixed_radix(s, g, begin, length)) return false;
    for (int k = 0; k < g->ndims; k++) {
        struct lin end = begin[k];
        end.c += length[k];
        apart |= lin_le(s, &g->n[k], &begin[k]) == YES || lin_le(s, &end, &zero) == YES;
    }
    return apart;
}

bool region_inside(struct sym *s, const struct region *inner, const struct region *outer) {
    struct lin begin[TILE_DIMS], length[TILE_DIMS];
    struct region part = *outer, whole = *inner;
    if (!region_alike(inner, outer)) return false;
    if (inner->box) return box_inside(s, inner, outer);
    if (region_same(inner, outer)) return true;
    if (!sub_tile(s, outer, inner, begin, length)) return false;
    for (int k = 0; k < outer->ndims; k++)
        if (!region_part(&part, k, &begin[k], &length[k])) return false;
    region_tidy(s, &part);
    region_tidy(s, &whole);
    return region_same(&part, &whole);
}

/* Steps of the two that do not go together: what g has outside of all bytes from w's first to its
 * last. */
static bool keep_around_bytes(struct sym *s, struct region g, const struct region *w) {
    struct lin end = tile_end(s, w);
    struct cuts outside;
    region_cut(s, &g, &w->base, &end, &outside);
    for (int k = 0; k < outside.n; k++)
        if (!append(s, &outside.at[k])) return false;
    return true;
}

static bool keep_around_tile(struct sym *s, struct region g, const struct region *w) {
    struct lin begin[TILE_DIMS], length[TILE_DIMS], zero = lin_of(0);
    struct region piece[2 * TILE_DIMS];
    int n = 0;
    if (!sub_tile(s, &g, w, begin, length)) return keep_around_bytes(s, g, w);
    for (int k = 0; k < g.ndims; k++) {
        struct lin end = begin[k], rest = g.n[k];
        if (!lin_add(&end, &length[k], 1) || !lin_add(&rest, &end, -1)) return true;
        piece[n] = g;
        if (!region_part(&piece[n++], k, &zero, &begin[k])) return true;
        piece[n] = g;
        if (!region_part(&piece[n++], k, &end, &rest)) return true;
        if (!region_part(&g, k, &begin[k], &length[k])) return true;
    }
    for (int k = 0; k < n; k++) {
        if (region_empty(s, &piece[k])) continue;
        region_tidy(s, &piece[k]);
        if (!append(s, &piece[k])) return false;
    }
    return true;
}

/* Around *next, ever farther away. */
bool regions_imply(struct sym *s, const struct region *at, int n, const struct region *x,
                   int *next) {
    bool instances = x->place >= s->v->s->nplaces, found = false;
    int k = 0;
    for (; k < n && !found; k++) {
        int i = *next + (k % 2 ? (k + 1) / 2 : n - k / 2);
        const struct region *y = &at[i %= n];
        found = y->place == x->place && (instances ? region_same(x, y) : region_inside(s, x, y));
        if (found) *next = i;
    }
    sym_compare(s, k);
    return found || region_empty(s, x);
}

bool regions_have(struct sym *s, const struct regions *r, const struct region *y, int counter,
                  const struct lin *at, bool fixed, int *next) {
    bool found = false;
    int k = 0;
    for (; k < r->n && !found; k++) {
        int i = (*next + k) % r->n;
        if (r->at[i].place != y->place) continue;
        struct region x = r->at[i];
        region_move(&x, counter, at, fixed);
        found = region_same(&x, y);
        if (found) *next = i + 1;
    }
    sym_compare(s, k);
    return found;
}

bool regions_may_meet(struct sym *s, const struct region *a, const struct region *b) {
    if (a->age != b->age) return false;
    return a->box ? boxes_meet(s, a, b) != NO : !tiles_apart(s, a, b) && !digits_apart(s, a, b);
}

void regions_kill(struct sym *s, const struct region *w) {
    struct regions *r = &s->of[w->place];
    frame_forget_sharers(s, w->place);
    sym_compare(s, r->n);
    for (int k = r->n - 1; k >= 0; k--) {
        struct region g = r->at[k];
        if (g.age != w->age) continue;
        if (g.box) {
            bool folded = folds_apart(s, &g, w);
            if (!folded && boxes_meet(s, &g, w) == NO) continue;
            regions_take_out(r, k);
            bool all;
            if (!folded && !keep_around_box(s, g, w, &all)) return;
        } else {
            if (tiles_apart(s, &g, w) || digits_apart(s, &g, w)) continue;
            regions_take_out(r, k);
            if (!keep_around_tile(s, g, w)) return;
        }
    }
}
