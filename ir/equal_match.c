/* Are two forms the same? Their terms are matched: for two terms with the same atoms the relation
 * of those points that read the same elements must be a bijection. What one pair leaves, others
 * take; in the end nothing may be left on either side. */
#include "ir/equal_int.h"

#include <isl/map.h>
#include <isl/space.h>

#include <stdlib.h>
#include <string.h>

static bool form_same(struct equal *x, const struct form *a, const struct form *b);

/* ---- alike as they stand ---- */

static bool atom_same(struct equal *x, const struct atom *a, const struct atom *b, int n) {
    if (a->content != b->content || a->code != b->code || a->type != b->type ||
        a->from != b->from || a->nrows != b->nrows || a->nargs != b->nargs ||
        !a->points != !b->points || a->npoints != b->npoints)
        return false;
    for (int r = 0; r < a->nrows; r++)
        if (memcmp(a->row[r], b->row[r], (size_t)(n + 1) * sizeof **a->row) != 0) return false;
    if (a->points && isl_set_is_equal(a->points, b->points) != isl_bool_true) return false;
    for (int k = 0; k < a->nargs; k++)
        if (!form_same(x, a->arg[k], b->arg[k])) return false;
    return true;
}

static bool term_same(struct equal *x, const struct term *a, const struct term *b) {
    if (a->n != b->n || a->natoms != b->natoms || a->i != b->i ||
        memcmp(&a->f, &b->f, sizeof a->f) != 0)
        return false;
    for (int k = 0; k < a->natoms; k++)
        if (!atom_same(x, &a->atom[k], &b->atom[k], a->n)) return false;
    return a->dom == b->dom || isl_set_is_equal(a->dom, b->dom) == isl_bool_true;
}

/* Floats of 16 bits are numbers of f32: a form's terms say which. */
static bool types_same(const struct form *a, const struct form *b) {
    bool small_a = a->type == TYPE_F16 || a->type == TYPE_BF16,
         small_b = b->type == TYPE_F16 || b->type == TYPE_BF16;
    return (small_a ? TYPE_F32 : a->type) == (small_b ? TYPE_F32 : b->type);
}

static bool operates(const struct form *f) {
    for (int k = 0; k < f->nterms; k++)
        for (int a = 0; a < f->term[k].natoms; a++)
            if (f->term[k].atom[a].nargs) return true;
    return false;
}

static bool form_same(struct equal *x, const struct form *a, const struct form *b) {
    if (a->m != b->m || a->nterms != b->nterms || !types_same(a, b)) return false;
    if (a->term == b->term) return true;
    struct question q = {
        .kind = ASKED_SAME, .of = {a->term, b->term}, .at = {a->nterms}, .unknown = !operates(a)};
    bool same = true;
    if (known_answer(x, &q, &same)) return same;
    for (int k = 0; k < a->nterms && same; k++) same = term_same(x, &a->term[k], &b->term[k]);
    known_note_answer(x, &q, same);
    return same;
}

/* ---- terms to be matched ---- */

struct open_term {
    struct term t;
    int side;
    isl_set *left;
};

static uint64_t low_part(enum type t, int64_t i) {
    int bits = t == TYPE_BOOL ? 64 : 8 * (int)type_size(t);
    return bits == 64 ? (uint64_t)i : (uint64_t)i & ((UINT64_C(1) << bits) - 1);
}

static bool is_zero(struct equal *x, const struct form *f, const struct term *t) {
    if (!type_is_float(f->type)) return low_part(f->type, t->i) == 0;
    if (t->f != 0) return false;
    if (t->natoms == 0) {
        x->used |= LAW(NEUTRAL);
        return true;
    }
    if (x->laws & LAW(ABSORB)) x->used |= LAW(ABSORB);
    return (x->laws & LAW(ABSORB)) != 0;
}

static int by_kind(const void *p, const void *q) {
    const struct atom *a = p, *b = q;
    if (a->content != b->content) return a->content < b->content ? -1 : 1;
    return a->code != b->code ? (int)a->code - (int)b->code : (int)a->type - (int)b->type;
}

/* The last one is like one before: their coefficients are added. */
static bool merged(struct equal *x, const struct form *f, struct open_term *at, int last) {
    struct term *t = &at[last].t;
    bool floats = type_is_float(f->type);
    if (floats && !(x->laws & LAW(DISTRIBUTE))) return false;
    for (int k = 0; k < last; k++) {
        struct term u = at[k].t;
        u.f = t->f;
        u.i = t->i;
        if (!term_same(x, &u, t)) continue;
        at[k].t.f += floats ? t->f : 0;
        at[k].t.i = (int64_t)((uint64_t)at[k].t.i + (floats ? 0 : (uint64_t)t->i));
        x->used |= LAW(DISTRIBUTE);
        return true;
    }
    return false;
}

static int open_terms(struct equal *x, const struct form *f, int side, struct open_term *out) {
    int n = 0;
    for (int k = 0; k < f->nterms && !x->failed; k++) {
        struct open_term *o = &out[n];
        if (is_zero(x, f, &f->term[k])) continue;
        *o = (struct open_term){.t = f->term[k], .side = side};
        o->t.atom = arena_copy(&x->arena, o->t.atom, (size_t)o->t.natoms * sizeof *o->t.atom);
        term_count(x, f, &o->t);
        if (o->t.natoms > 1) qsort(o->t.atom, (size_t)o->t.natoms, sizeof *o->t.atom, by_kind);
        if (is_zero(x, f, &o->t)) continue;
        o->left = o->t.dom;
        n += !merged(x, f, out, n);
    }
    int kept = 0;
    for (int k = 0; k < n; k++)
        if (!is_zero(x, f, &out[k].t)) out[kept++] = out[k];
    n = kept;
    return n;
}

static bool cancel(const struct form *f, const struct open_term *a, const struct open_term *b) {
    if (type_is_float(f->type)) return a->side == b->side ? a->t.f == -b->t.f : a->t.f == b->t.f;
    uint64_t u = (uint64_t)a->t.i, v = (uint64_t)b->t.i;
    return low_part(f->type, (int64_t)(a->side == b->side ? u + v : u - v)) == 0;
}

static bool kinds_agree(const struct term *a, const struct term *b) {
    if (a->natoms != b->natoms) return false;
    for (int k = 0; k < a->natoms; k++)
        if (by_kind(&a->atom[k], &b->atom[k]) != 0 || a->atom[k].nargs != b->atom[k].nargs ||
            !a->atom[k].points != !b->atom[k].points)
            return false;
    return true;
}

/* ---- one pair ---- */

struct elements { /* that a term reads: contents and indices over its dimensions */
    int n, content[64], nrows[64];
    int64_t **row[64];
};

static int64_t **composed(struct equal *x, const struct atom *inner, int64_t *const *row, int m,
                          int n) {
    int64_t **out = arena_array(&x->arena, (size_t)inner->nrows + 1, sizeof *out);
    for (int r = 0; r < inner->nrows; r++) {
        out[r] = equal_row(x, n);
        out[r][0] = inner->row[r][0];
        for (int d = 0; d < m; d++)
            for (int k = 0; k <= n; k++) out[r][k] += inner->row[r][d + 1] * row[d][k];
    }
    return out;
}

static void gather(struct equal *x, const struct atom *a, int64_t **row, int n,
                   struct elements *e) {
    if (e->n == 64) return;
    if (a->content >= 0 || a->code == OP_AXIS) {
        e->content[e->n] = a->content;
        e->nrows[e->n] = a->nrows;
        e->row[e->n++] = row;
        return;
    }
    if (a->points) return;
    for (int k = 0; k < a->nargs; k++)
        for (int t = 0; t < a->arg[k]->nterms; t++) {
            const struct term *u = &a->arg[k]->term[t];
            for (int i = 0; i < u->natoms && u->n == a->arg[k]->m; i++)
                gather(x, &u->atom[i], composed(x, &u->atom[i], row, a->nrows, n), n, e);
        }
}

/* Two terms share a space: the context's m dimensions, a's own, b's own. */
struct shared {
    int m, n, k; /* dimensions of the context, of a, of b */
};

static int shared_dims(const struct shared *h) {
    return h->n + h->k - h->m;
}

static int64_t *row_of_a(struct equal *x, const struct shared *h, const int64_t *row) {
    int64_t *out = equal_row(x, shared_dims(h));
    memcpy(out, row, (size_t)(h->n + 1) * sizeof *out);
    return out;
}

static int64_t *row_of_b(struct equal *x, const struct shared *h, const int64_t *row) {
    int64_t *out = equal_row(x, shared_dims(h));
    memcpy(out, row, (size_t)(h->m + 1) * sizeof *out);
    memcpy(out + 1 + h->n, row + 1 + h->m, (size_t)(h->k - h->m) * sizeof *out);
    return out;
}

static int64_t *difference(struct equal *x, const struct shared *h, const int64_t *a,
                           const int64_t *b) {
    int64_t *out = row_of_a(x, h, a), *minus = row_of_b(x, h, b);
    for (int d = 0; d <= shared_dims(h); d++) out[d] -= minus[d];
    return out;
}

static isl_set *equate(struct equal *x, isl_set *r, int i, int j, int n) {
    int64_t *row = equal_row(x, n);
    row[i + 1] = 1;
    row[j + 1] -= 1;
    return set_with(x, r, row, n, true);
}

/* For each context, one own point of each for one of the other. */
static bool bijective(isl_set *r, const struct shared *h) {
    isl_map *to_b = set_as_map(r, h->n), *to_a = set_as_map(r, h->m);
    to_a = isl_map_move_dims(to_a, isl_dim_in, (unsigned)h->m, isl_dim_out, (unsigned)(h->n - h->m),
                             (unsigned)(h->k - h->m));
    bool good = isl_map_is_single_valued(to_b) == isl_bool_true &&
                isl_map_is_single_valued(to_a) == isl_bool_true;
    isl_map_free(to_a);
    isl_map_free(to_b);
    return good;
}

/* Points of a and b of the same context that read the same. */
static isl_set *same_reads(struct equal *x, const struct open_term *a, const struct open_term *b,
                           const struct shared *h, const int *order) {
    isl_set *r = isl_set_insert_dims(isl_set_copy(b->left), isl_dim_set, (unsigned)h->m,
                                     (unsigned)(h->n - h->m));
    r = isl_set_intersect(set_more(isl_set_copy(a->left), h->k - h->m), r);
    struct elements e = {0}, f = {0};
    for (int i = 0; i < a->t.natoms; i++) {
        gather(x, &a->t.atom[i], a->t.atom[i].row, h->n, &e);
        gather(x, &b->t.atom[order[i]], b->t.atom[order[i]].row, h->k, &f);
    }
    for (int i = 0; i < e.n && i < f.n; i++) {
        if (e.content[i] != f.content[i] || e.nrows[i] != f.nrows[i]) break;
        for (int d = 0; d < e.nrows[i]; d++)
            r = set_with(x, r, difference(x, h, e.row[i][d], f.row[i][d]), shared_dims(h), true);
    }
    return equal_keep(x, r);
}

/* Axes of the same name are the same: a guess where reads leave a choice. */
static isl_set *same_names(struct equal *x, isl_set *r, const struct term *a, const struct term *b,
                           const struct shared *h, bool places) {
    r = isl_set_copy(r);
    for (int i = h->m; i < h->n; i++)
        for (int j = h->m; j < h->k; j++) {
            bool named = a->name[i] && b->name[j] && strcmp(a->name[i], b->name[j]) == 0;
            if (places ? i == j : named) r = equate(x, r, i, h->n + j - h->m, shared_dims(h));
        }
    return equal_keep(x, r);
}

static int64_t **lifted(struct equal *x, const struct shared *h, const struct atom *a, bool of_b) {
    int64_t **row = arena_array(&x->arena, (size_t)a->nrows + 1, sizeof *row);
    for (int r = 0; r < a->nrows; r++)
        row[r] = of_b ? row_of_b(x, h, a->row[r]) : row_of_a(x, h, a->row[r]);
    return row;
}

static struct spot spot_of(struct equal *x, isl_set *dom, int n) {
    struct spot s = {.dom = dom, .n = n};
    s.name = arena_array(&x->arena, (size_t)n + 1, sizeof *s.name);
    return s;
}

/* The points of a reduction, over the spot and their own dimensions. */
static isl_set *points_at(struct equal *x, const struct atom *a, int64_t **row,
                          const struct spot *s) {
    struct form points = {.m = a->nrows, .nterms = 1, .type = TYPE_I64};
    const char **name = arena_array(&x->arena, (size_t)a->npoints + 1, sizeof *name);
    points.term = &(struct term){.dom = a->points, .n = a->npoints, .name = name, .i = 1, .f = 1};
    struct form *f = form_at(x, &points, row, s);
    return f->nterms ? f->term[0].dom : NULL;
}

static int64_t **with_own(struct equal *x, int64_t **row, int nrows, int n, int before, int own,
                          int after) {
    int64_t **out = arena_array(&x->arena, (size_t)(nrows + own) + 1, sizeof *out);
    for (int r = 0; r < nrows + own; r++) {
        out[r] = equal_row(x, n + before + own + after);
        if (r < nrows)
            memcpy(out[r], row[r], (size_t)(n + 1) * sizeof **out);
        else
            out[r][1 + n + before + r - nrows] = 1;
    }
    return out;
}

/* Does the reduction t begin with the neutral element of its operation? */
static bool begins_neutral(struct equal *x, const struct term *t) {
    const struct form *f = t->atom->arg[1];
    enum opcode code = t->atom->code;
    union value v;
    if (!atom_constant(x, t, t->atom, 1, &v)) return false;
    for (int c = 0; c < COMBINE_COUNT; c++) {
        if (c == COMBINE_SET || combiner_op((enum combiner)c) != code) continue;
        union value neutral = combiner_neutral((enum combiner)c, f->type);
        return type_is_float(f->type) ? v.f == neutral.f : v.i == neutral.i;
    }
    return false;
}

/* A reduction of what the same operation reduced from its neutral element on is one over the points
 * of both. */
static struct atom flat(struct equal *x, const struct atom *a) {
    struct atom whole = *a;
    for (;;) {
        atom_spread(x, &whole);
        const struct form *f = whole.arg[0];
        const struct term *t = f->term;
        const struct atom *part = f->nterms == 1 && t->natoms == 1 ? t->atom : NULL;
        if (x->failed || !(x->laws & LAW(SPLIT)) || !part || !part->points || t->f != 1 ||
            t->i != 1 || part->code != a->code || part->type != a->type || t->n != whole.npoints ||
            !begins_neutral(x, t) || isl_set_is_subset(whole.points, t->dom) != isl_bool_true)
            return whole;
        struct spot s = spot_of(x, whole.points, whole.npoints);
        isl_set *points = points_at(x, part, part->row, &s);
        int own = part->npoints - part->nrows, n = whole.npoints + own;
        if (x->failed || !points || n > MAX_SPACE) return whole;
        struct spot all = spot_of(x, points, n);
        whole.arg[0] = form_at(x, part->arg[0],
                               with_own(x, part->row, part->nrows, whole.npoints, 0, own, 0), &all);
        whole.points = points;
        whole.npoints = n;
        x->used |= LAW(SPLIT);
    }
}

/* Points of two reductions: n dimensions of the context, u own ones of the first, v of the second.
 */
struct pairs {
    int n, u, v;
    isl_set *p, *q; /* of either */
    bool once;      /* one for one; else each has its like */
};

static bool pairs_all(struct equal *x, isl_set *r, const struct pairs *k) {
    isl_set *to_a = equal_keep(x, isl_set_project_out(isl_set_copy(r), isl_dim_set,
                                                      (unsigned)(k->n + k->u), (unsigned)k->v));
    isl_set *to_b = equal_keep(
        x, isl_set_project_out(isl_set_copy(r), isl_dim_set, (unsigned)k->n, (unsigned)k->u));
    bool total = !x->failed && isl_set_is_equal(to_a, k->p) == isl_bool_true &&
                 isl_set_is_equal(to_b, k->q) == isl_bool_true;
    if (!total || !k->once) return total;
    isl_map *map = set_as_map(r, k->n + k->u);
    isl_map *back = isl_map_move_dims(isl_map_from_range(isl_set_copy(r)), isl_dim_in, 0,
                                      isl_dim_out, 0, (unsigned)k->n);
    back = isl_map_move_dims(back, isl_dim_in, (unsigned)k->n, isl_dim_out, (unsigned)k->u,
                             (unsigned)k->v);
    total = isl_map_is_single_valued(map) == isl_bool_true &&
            isl_map_is_single_valued(back) == isl_bool_true;
    isl_map_free(map);
    isl_map_free(back);
    return total;
}

/* Those of them that have the same own dimensions, in their order. NULL: others are as many. */
static isl_set *pairs_alike(struct equal *x, isl_set *r, const struct pairs *k) {
    if (k->u != k->v || x->failed) return NULL;
    r = isl_set_copy(r);
    for (int d = 0; d < k->u; d++) r = equate(x, r, k->n + d, k->n + k->u + d, k->n + k->u + k->v);
    return equal_keep(x, r);
}

/* Two reductions at one point: what they begin with, and their contributions, one for one; of a
 * maximum or minimum each has its like: where they read the same, and where that leaves a choice,
 * as when they are sums themselves, where own dimensions in their order are the same: a guess. */
static bool folds_equal(struct equal *x, const struct atom *a, int64_t **ra, const struct atom *b,
                        int64_t **rb, const struct spot *s) {
    if (!form_equal(x, form_at(x, a->arg[1], ra, s), form_at(x, b->arg[1], rb, s), s)) return false;
    isl_set *p = points_at(x, a, ra, s), *q = points_at(x, b, rb, s);
    int n = s->n, u = a->npoints - a->nrows, v = b->npoints - b->nrows;
    if (x->failed || !p || !q || n + u + v > MAX_SPACE) return false;
    int64_t **rows_a = with_own(x, ra, a->nrows, n, 0, u, v),
            **rows_b = with_own(x, rb, b->nrows, n, u, v, 0);
    isl_set *left = set_more(isl_set_copy(p), v);
    isl_set *r = isl_set_intersect(
        left, isl_set_insert_dims(isl_set_copy(q), isl_dim_set, (unsigned)n, (unsigned)u));
    struct elements e = {0}, f = {0};
    struct atom one = {.content = -1,
                       .code = OP_CAST,
                       .nrows = a->npoints,
                       .nargs = 1,
                       .arg = {a->arg[0]}},
                two = one;
    two.nrows = b->npoints;
    two.arg[0] = b->arg[0];
    gather(x, &one, rows_a, n + u + v, &e);
    gather(x, &two, rows_b, n + u + v, &f);
    for (int i = 0; i < e.n && i < f.n; i++) {
        if (e.content[i] != f.content[i] || e.nrows[i] != f.nrows[i]) break;
        for (int d = 0; d < e.nrows[i]; d++) {
            int64_t *row = equal_row(x, n + u + v);
            for (int k = 0; k <= n + u + v; k++) row[k] = e.row[i][d][k] - f.row[i][d][k];
            r = set_with(x, r, row, n + u + v, true);
        }
    }
    struct pairs k = {n, u, v, p, q, a->code != OP_MAX && a->code != OP_MIN};
    equal_keep(x, r);
    for (int guess = 0; guess < 2; guess++) {
        if (guess) r = pairs_alike(x, r, &k);
        if (x->failed || !r) return false;
        if (!pairs_all(x, r, &k)) continue;
        struct spot both = spot_of(x, r, n + u + v);
        if (form_equal(x, form_at(x, a->arg[0], rows_a, &both),
                       form_at(x, b->arg[0], rows_b, &both), &both))
            return true;
    }
    return false;
}

/* What a form is taken for beside its terms. */
static int kind_of(const struct form *f) {
    return (int)f->type << 3 | f->low << 2 | f->sum << 1 | f->product;
}

/* Argument i of a and j of b, both over the spot. */
static bool args_equal(struct equal *x, const struct atom *a, int i, int64_t *const *ra,
                       const struct atom *b, int j, int64_t *const *rb, const struct spot *s) {
    const struct form *f = a->arg[i], *g = b->arg[j];
    struct question q = {.kind = ASKED_EQUAL,
                         .of = {f->term, g->term},
                         .at = {f->nterms, g->nterms, kind_of(f), kind_of(g)},
                         .spot = s,
                         .unknown = !operates(f) || !operates(g)};
    bool good;
    for (int r = 0; r < a->nrows && !q.unknown; r++) question_row(x, &q, ra[r], s->n);
    for (int r = 0; r < b->nrows && !q.unknown; r++) question_row(x, &q, rb[r], s->n);
    if (known_answer(x, &q, &good)) return good;
    good = form_equal(x, form_at(x, f, ra, s), form_at(x, g, rb, s), s);
    known_note_answer(x, &q, good);
    return good;
}

static bool atoms_equal(struct equal *x, const struct shared *h, const struct atom *a,
                        const struct atom *b, const struct spot *s) {
    int64_t **ra = lifted(x, h, a, false), **rb = lifted(x, h, b, true);
    if (a->content >= 0 || a->code == OP_AXIS) return true; /* the relation says so */
    if (a->from != b->from) return false;
    if (a->points && b->points) {
        struct atom whole[2] = {flat(x, a), flat(x, b)};
        return folds_equal(x, &whole[0], ra, &whole[1], rb, s);
    }
    if (a->points || b->points) return false;
    bool good = true;
    for (int k = 0; k < a->nargs && good; k++) good = args_equal(x, a, k, ra, b, k, rb, s);
    if (good || a->nargs != 2 || !(op_info[a->code].flags & OP_COMM)) return good;
    good = true;
    for (int k = 0; k < 2 && good; k++) good = args_equal(x, a, k, ra, b, 1 - k, rb, s);
    if (good) x->used |= LAW(COMMUTE);
    return good;
}

static bool reads_equal(struct equal *x, const struct open_term *a, const struct open_term *b,
                        const struct shared *h, const int *order, isl_set *r) {
    for (int i = 0; i < a->t.natoms; i++) {
        const struct atom *u = &a->t.atom[i], *v = &b->t.atom[order[i]];
        if (u->content < 0 && u->code != OP_AXIS) continue;
        for (int d = 0; d < u->nrows; d++) {
            isl_set *same = set_with(x, isl_set_copy(r), difference(x, h, u->row[d], v->row[d]),
                                     shared_dims(h), true);
            bool good = isl_set_is_equal(same, r) == isl_bool_true;
            isl_set_free(same);
            if (!good) return false;
        }
    }
    return true;
}

/* Matches what it can of the two; true: something. */
static bool match_in_order(struct equal *x, struct open_term *a, struct open_term *b, int m,
                           const int *order) {
    struct shared h = {m, a->t.n, b->t.n};
    if (shared_dims(&h) > MAX_SPACE) return equal_stop(x, "its relations have too many dimensions");
    isl_set *r = same_reads(x, a, b, &h, order);
    if (x->failed || equal_is_empty(x, r)) return false;
    for (int guess = 0; guess < 3 && !bijective(r, &h); guess++) {
        if (guess == 2) return false;
        r = same_names(x, r, &a->t, &b->t, &h, guess == 1);
        if (x->failed || equal_is_empty(x, r)) return false;
    }
    struct spot s = spot_of(x, r, shared_dims(&h));
    if (!reads_equal(x, a, b, &h, order, r)) return false;
    for (int i = 0; i < a->t.natoms; i++)
        if (!atoms_equal(x, &h, &a->t.atom[i], &b->t.atom[order[i]], &s)) return false;
    isl_set *of_a =
        isl_set_project_out(isl_set_copy(r), isl_dim_set, (unsigned)h.n, (unsigned)(h.k - m));
    isl_set *of_b =
        isl_set_project_out(isl_set_copy(r), isl_dim_set, (unsigned)m, (unsigned)(h.n - m));
    a->left = equal_keep(x, isl_set_coalesce(isl_set_subtract(isl_set_copy(a->left), of_a)));
    b->left = equal_keep(x, isl_set_coalesce(isl_set_subtract(isl_set_copy(b->left), of_b)));
    x->used |= LAW(REINDEX);
    return !x->failed;
}

/* The orders of atoms of one kind, at most some. */
static bool next_order(const struct term *t, int *order) {
    for (int i = t->natoms - 1; i > 0; i--)
        for (int j = i; j-- > 0;)
            if (by_kind(&t->atom[order[i]], &t->atom[order[j]]) == 0 && order[j] < order[i]) {
                int k = order[i];
                order[i] = order[j];
                order[j] = k;
                return true;
            }
    return false;
}

static bool match(struct equal *x, struct open_term *a, struct open_term *b, int m) {
    int order[MAX_ATOMS];
    for (int i = 0; i < a->t.natoms; i++) order[i] = i;
    for (int tries = 0; tries < 6 && !x->failed; tries++) {
        if (match_in_order(x, a, b, m, order)) return true;
        if (!next_order(&b->t, order)) break;
    }
    return false;
}

bool form_equal(struct equal *x, const struct form *a, const struct form *b, const struct spot *s) {
    if (x->failed || !types_same(a, b) || a->m != b->m) return false;
    if (form_same(x, a, b)) return true;
    if (++x->depth > 200) return equal_stop(x, "its values are nested too deep");
    const struct form *f = form_within(x, a, s), *g = form_within(x, b, s);
    struct open_term *all =
        arena_array(&x->arena, (size_t)(f->nterms + g->nterms) + 1, sizeof *all);
    int n = open_terms(x, f, 0, all);
    n += open_terms(x, g, 1, all + n);
    for (int pass = 0; pass < 2; pass++) /* the other side's first */
        for (int i = 0; i < n && !x->failed; i++)
            for (int j = i + 1; j < n && !x->failed; j++) {
                bool across = all[i].side != all[j].side;
                bool may = across || !type_is_float(f->type) || x->laws & LAW(DISTRIBUTE);
                if (!may || across != (pass == 0) || !cancel(f, &all[i], &all[j]) ||
                    !kinds_agree(&all[i].t, &all[j].t))
                    continue;
                if (equal_is_empty(x, all[i].left) || equal_is_empty(x, all[j].left)) continue;
                if (match(x, &all[i], &all[j], f->m)) x->used |= across ? 0 : LAW(DISTRIBUTE);
            }
    bool good = !x->failed;
    for (int i = 0; i < n && good; i++) {
        bool whole = all[i].left == all[i].t.dom;
        if (!equal_is_empty(x, all[i].left))
            good = false;
        else if (!whole && n > 2)
            x->used |= LAW(SPLIT);
    }
    x->depth--;
    return good || (!x->failed && form_equal_monotone(x, f, g, s));
}
