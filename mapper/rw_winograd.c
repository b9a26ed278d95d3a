/* Winograd's convolution as a bilinear rewrite (Winograd 1980; Lavin and Gray 2016): m results of r
 * taps from m + r - 1 products, y = Aᵀ[(G g) ⊙ (Bᵀ d)], in each windowed dimension. The three
 * matrices are derived by Cook and Toom from m and r, in exact rationals: polynomials are
 * multiplied by values at points (and at infinity), and the transposed algorithm is the filter.
 *
 * Over a field the result is the same; floats lose what the growth of the matrices says. */
#include "mapper/rewrite_int.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_POINTS = 10, MOST_WINDOWS = 2 };

/* ---- Cook-Toom ---- */

struct fraction {
    int64_t num, den;
};

static struct fraction fraction_of(int64_t num, int64_t den) {
    int64_t a = llabs(num), b = llabs(den);
    while (b) {
        int64_t t = a % b;
        a = b;
        b = t;
    }
    if (den < 0) a = -a;
    return (struct fraction){num / a, den / a};
}

static struct fraction times(struct fraction a, struct fraction b) {
    return fraction_of(a.num * b.num, a.den * b.den);
}

static struct fraction minus(struct fraction a, struct fraction b) {
    return fraction_of(a.num * b.den - b.num * a.den, a.den * b.den);
}

struct matrix {
    int rows, cols;
    struct fraction at[MOST_POINTS][MOST_POINTS];
};

struct bilinear { /* y = out[(filter g) ⊙ (data d)] */
    struct matrix out, filter, data;
};

/* 0, 1, -1, 2, -2, 1/2, -1/2, 3, -3: small numbers grow least. */
static struct fraction point(int k) {
    static const struct fraction first[] = {{0, 1}, {1, 1},  {-1, 1}, {2, 1}, {-2, 1},
                                            {1, 2}, {-1, 2}, {3, 1},  {-3, 1}};
    return first[k];
}

/* Coefficients of Π (x - a_l) over the n finite points but `skip`, ascending. */
static void monic(int n, int skip, struct fraction *c) {
    int degree = 0;
    for (int k = 0; k <= n; k++) c[k] = (struct fraction){k == 0, 1};
    for (int l = 0; l < n; l++) {
        if (l == skip) continue;
        degree++;
        for (int k = degree; k >= 0; k--) {
            struct fraction below = k > 0 ? c[k - 1] : (struct fraction){0, 1};
            c[k] = minus(below, times(point(l), c[k]));
        }
    }
}

static struct bilinear cook_toom(int m, int r) {
    struct bilinear b;
    int alpha = m + r - 1, n = alpha - 1; /* n finite points */
    struct fraction zero = {0, 1}, one = {1, 1};
    b.out = (struct matrix){.rows = m, .cols = alpha};
    b.filter = (struct matrix){.rows = alpha, .cols = r};
    b.data = (struct matrix){.rows = alpha, .cols = alpha};
    for (int j = 0; j < n; j++) {
        struct fraction f = one, power = one;
        for (int l = 0; l < n; l++)
            if (l != j) f = times(f, minus(point(j), point(l)));
        f = fraction_of(f.den, f.num);
        for (int k = 0; k < alpha; k++, power = times(power, point(j))) {
            if (k < m) b.out.at[k][j] = power;
            if (k < r) b.filter.at[j][k] = times(power, f);
        }
        monic(n, j, b.data.at[j]);
        b.data.at[j][n] = zero;
    }
    monic(n, -1, b.data.at[n]);
    for (int k = 0; k < m; k++) b.out.at[k][n] = k == m - 1 ? one : zero;
    for (int k = 0; k < r; k++) b.filter.at[n][k] = k == r - 1 ? one : zero;
    return b;
}

/* ---- which statements ---- */

struct window { /* one windowed dimension: data[p + r], result[p], filter[r] */
    int p, r;
    int xi, tap, tile, x, out; /* axes: products, positions in a tile's data, tiles, data before
                                  this dimension is transformed, results in a tile */
    struct access matrix[3];   /* out, filter, data */
};

struct winograd {
    struct program *q;
    struct factors f;
    int at, next, m, nwindows;
    int data, filter; /* factors */
    struct window w[MOST_WINDOWS];
    struct stmt old;
};

static bool alone(const struct program *p, const struct access *a, int axis, int *dim) {
    int64_t coef;
    if (!rw_place(p, a, axis, dim, &coef) || coef != 1) return false;
    for (int x = 0; x < p->naxes; x++)
        if (x != axis && access_coef(p, a, *dim, x)) return false;
    return true;
}

/* The dimension of the data is p + r + constant, p and r are alone in a dimension of the result and
 * of the filter, and nowhere else. */
static bool is_window(const struct program *p, const struct stmt *s, const struct access *data,
                      const struct access *filter, int dim, struct window *w) {
    int axis[2], n = 0, at;
    int64_t coef;
    for (int a = 0; a < p->naxes; a++) {
        if (!access_coef(p, data, dim, a)) continue;
        if (n == 2 || access_coef(p, data, dim, a) != 1) return false;
        axis[n++] = a;
    }
    for (int k = 0; k < 2 && n == 2; k++) {
        *w = (struct window){.p = axis[k], .r = axis[1 - k]};
        if (rw_place(p, data, w->p, &at, &coef) && rw_place(p, data, w->r, &at, &coef) &&
            alone(p, &s->dst, w->p, &at) && alone(p, filter, w->r, &at) &&
            !access_varies(p, filter, w->p) && !access_varies(p, &s->dst, w->r) &&
            p->axis[w->r].extent > 1)
            return true;
    }
    return false;
}

static int shared_dims(const struct program *p, const struct access *a) {
    int n = 0;
    for (int d = 0; d < p->buffer[a->buffer].ndims; d++) {
        int varying = 0;
        for (int x = 0; x < p->naxes; x++) varying += access_coef(p, a, d, x) != 0;
        n += varying > 1;
    }
    return n;
}

static bool find_windows(const struct program *p, int stmt, struct winograd *v) {
    const struct stmt *s = &p->stmt[stmt];
    if (!rw_factors(p, stmt, &v->f) || s->nwhere || v->f.n != 2 || !type_is_float(v->f.type) ||
        rw_value_axes(s))
        return false;
    for (v->data = 0; v->data < 2; v->data++) {
        v->filter = 1 - v->data;
        int a = rw_bare(s, v->f.node[v->data]), b = rw_bare(s, v->f.node[v->filter]);
        if (s->op[a].code != OP_READ || s->op[b].code != OP_READ) return false;
        const struct access *data = &s->read[s->op[a].read], *filter = &s->read[s->op[b].read];
        if (filter->has_fill || (data->has_fill && data->fill.f != 0)) continue;
        v->nwindows = 0;
        bool good = true;
        for (int d = 0; d < p->buffer[data->buffer].ndims && good; d++) {
            struct window w;
            if (!is_window(p, s, data, filter, d, &w)) continue;
            good = v->nwindows < MOST_WINDOWS;
            if (good) v->w[v->nwindows++] = w;
        }
        uint64_t summed = v->f.axes[0] & v->f.axes[1] & ~rw_access_axes(p, &s->dst);
        good = good && summed != 0; /* channels: else nothing is left to multiply matrices by */
        if (good && v->nwindows > 0 && v->nwindows == shared_dims(p, data) &&
            access_injective(p, &s->dst, rw_access_axes(p, &s->dst)))
            return true;
    }
    return false;
}

/* ---- writing it ---- */

static void draft_fraction(struct draft *d, enum type t, struct fraction f) {
    int num = draft_number(d, t, (double)f.num);
    if (f.den != 1) draft_binary(d, OP_DIV, num, draft_number(d, t, (double)f.den));
}

/* M[i,k] = select(cols*i + k == 0, …, select(… == 1, …, 0)) over what is not zero. */
static int draft_entries(struct draft *d, const struct matrix *x, enum type t, int row, int col,
                         int from) {
    while (from < x->rows * x->cols && x->at[from / x->cols][from % x->cols].num == 0) from++;
    if (from == x->rows * x->cols) return draft_number(d, t, 0);
    int at = draft_axis(d, row);
    at = draft_binary(d, OP_MUL, at, draft_number(d, TYPE_I64, x->cols));
    at = draft_binary(d, OP_ADD, at, draft_axis(d, col));
    int on = draft_binary(d, OP_EQ, at, draft_number(d, TYPE_I64, from));
    draft_fraction(d, t, x->at[from / x->cols][from % x->cols]);
    int value = d->s.nops - 1, rest = draft_entries(d, x, t, row, col, from + 1);
    return draft_op(d, (struct op){.code = OP_SELECT, .type = t, .arg = {on, value, rest}});
}

static bool write_matrix(struct winograd *v, const struct matrix *x, int row, int col,
                         struct access *out) {
    struct program *q = v->q;
    if (!rw_temporary_of(q, "winograd", v->f.type, (int[]){row, col}, 2, out)) return false;
    struct draft d = draft_open(q, &v->old, COMBINE_SET, rw_copy(q, out));
    draft_entries(&d, x, v->f.type, row, col, 0);
    draft_close(&d, v->next++);
    return true;
}

static bool make_axes(struct winograd *v) {
    struct program *q = v->q;
    for (int k = 0; k < v->nwindows; k++) {
        struct window *w = &v->w[k];
        int64_t taps = q->axis[w->r].extent, extent = q->axis[w->p].extent;
        int64_t alpha = v->m + taps - 1, tiles = (extent + v->m - 1) / v->m;
        if (alpha > MOST_POINTS) return false;
        w->xi = rw_axis(q, "xi", alpha);
        w->tap = rw_axis(q, "tap", alpha);
        w->tile = rw_axis(q, "tile", tiles);
        w->x = rw_axis(q, "x", v->m * (tiles - 1) + alpha);
        w->out = rw_axis(q, "out", v->m);
        if (w->xi < 0 || w->tap < 0 || w->tile < 0 || w->x < 0 || w->out < 0) return false;
    }
    return true;
}

static bool write_matrices(struct winograd *v) {
    for (int k = 0; k < v->nwindows; k++) {
        struct window *w = &v->w[k];
        struct bilinear b = cook_toom(v->m, (int)v->q->axis[w->r].extent);
        if (!write_matrix(v, &b.out, w->out, w->xi, &w->matrix[0]) ||
            !write_matrix(v, &b.filter, w->xi, w->r, &w->matrix[1]) ||
            !write_matrix(v, &b.data, w->xi, w->tap, &w->matrix[2]))
            return false;
    }
    return true;
}

/* to = 0; to += matrix * from */
static void write_pass(struct winograd *v, struct access to, const struct access *matrix,
                       struct access from) {
    rw_fill(v->q, v->next++, &v->old, to, 0);
    struct draft d = draft_open(v->q, &v->old, COMBINE_ADD, rw_copy(v->q, &to));
    int x = draft_read(&d, rw_copy(v->q, matrix));
    draft_binary(&d, OP_MUL, x, draft_cast(&d, v->f.type, draft_read(&d, from)));
    draft_close(&d, v->next++);
}

/* The last pass ends in the type that the factor was stored in. */
static bool restore_type(struct winograd *v, enum type stored, struct access *a, const int *axis,
                         int n) {
    struct access narrow;
    if (stored == v->f.type) return true;
    if (!rw_temporary_of(v->q, "winograd", stored, axis, n, &narrow)) return false;
    struct draft d = draft_open(v->q, &v->old, COMBINE_SET, rw_copy(v->q, &narrow));
    draft_cast(&d, stored, draft_read(&d, rw_copy(v->q, a)));
    draft_close(&d, v->next++);
    *a = narrow;
    return true;
}

/* Axes of what pass k leaves: products of the windows done, other axes, then tiles of the windows
 * done (data only) and what the others still have. */
static int pass_axes(const struct winograd *v, int done, uint64_t others, bool data, int *axis) {
    int n = 0;
    for (int k = 0; k < done; k++) axis[n++] = v->w[k].xi;
    n += rw_axes(others, axis + n);
    for (int k = 0; k < v->nwindows; k++)
        if (k >= done)
            axis[n++] = data ? v->w[k].x : v->w[k].r;
        else if (data)
            axis[n++] = v->w[k].tile;
    return n;
}

/* The data at the first pass: p = m·tile + tap in this window, p = x in the others. */
static struct access first_data(const struct winograd *v, const struct access *a) {
    struct substitution s = {.p = v->q};
    for (int k = 0; k < v->nwindows; k++) {
        int64_t *row = rw_substitution(&s, v->w[k].p);
        if (k == 0) {
            row[v->w[k].tile] = v->m;
            row[v->w[k].tap] = 1;
        } else {
            row[v->w[k].x] = 1;
        }
        rw_substitution(&s, v->w[k].r);
    }
    struct access c = rw_substituted(&s, a, 0);
    c.has_fill = true;
    c.fill.f = 0;
    return c;
}

static struct access later_data(const struct winograd *v, const struct access *a, int k) {
    struct substitution s = {.p = v->q};
    int64_t *row = rw_substitution(&s, v->w[k].x);
    row[v->w[k].tile] = v->m;
    row[v->w[k].tap] = 1;
    return rw_substituted(&s, a, 0);
}

static bool transform(struct winograd *v, bool data, struct access *out) {
    struct program *q = v->q;
    int node = rw_bare(&v->old, v->f.node[data ? v->data : v->filter]), axis[MAX_AXES], n = 0;
    const struct access *start = &v->old.read[v->old.op[node].read];
    uint64_t others = rw_access_axes(q, start);
    struct access from = data ? first_data(v, start) : rw_copy(q, start), to;
    for (int k = 0; k < v->nwindows; k++)
        others &= ~(UINT64_C(1) << v->w[k].p | UINT64_C(1) << v->w[k].r);
    for (int k = 0; k < v->nwindows; k++) {
        n = pass_axes(v, k + 1, others, data, axis);
        if (!rw_temporary_of(q, "winograd", v->f.type, axis, n, &to)) return false;
        if (data && k > 0) from = later_data(v, &from, k);
        write_pass(v, to, &v->w[k].matrix[data ? 2 : 1], from);
        from = rw_copy(q, &to);
    }
    *out = from;
    return restore_type(v, q->buffer[start->buffer].type, out, axis, n);
}

/* The products of all tiles: one matrix product for each pair of points. */
static bool multiply(struct winograd *v, const struct access *filter, const struct access *data,
                     uint64_t others, struct access *out) {
    int axis[MAX_AXES];
    int n = pass_axes(v, v->nwindows, others, true, axis);
    if (!rw_temporary_of(v->q, "winograd", v->f.type, axis, n, out)) return false;
    rw_fill(v->q, v->next++, &v->old, *out, 0);
    struct draft d = draft_open(v->q, &v->old, COMBINE_ADD, rw_copy(v->q, out));
    int x = draft_cast(&d, v->f.type, draft_read(&d, rw_copy(v->q, filter)));
    draft_binary(&d, OP_MUL, x, draft_cast(&d, v->f.type, draft_read(&d, rw_copy(v->q, data))));
    draft_close(&d, v->next++);
    return true;
}

/* Results that the last tiles have too many of are not stored. */
static void cut_tails(struct winograd *v, struct stmt *s) {
    size_t width = (size_t)v->q->naxes + 1;
    for (int k = 0; k < v->nwindows; k++) {
        const struct window *w = &v->w[k];
        int64_t extent = v->q->axis[w->p].extent;
        if (extent % v->m == 0) continue;
        int64_t *row = arena_array(&v->q->arena, width, sizeof *row);
        row[w->tile] = -v->m;
        row[w->out] = -1;
        row[v->q->naxes] = extent - 1;
        s->where[s->nwhere++].coef = row;
    }
}

static bool write_results(struct winograd *v, struct access from, uint64_t others) {
    struct program *q = v->q;
    for (int k = 0; k < v->nwindows; k++) {
        int axis[MAX_AXES], n = 0;
        struct access to;
        for (int e = 0; e < v->nwindows; e++) axis[n++] = e <= k ? v->w[e].out : v->w[e].xi;
        n += rw_axes(others, axis + n);
        for (int e = 0; e < v->nwindows; e++) axis[n++] = v->w[e].tile;
        if (!rw_temporary_of(q, "winograd", v->f.type, axis, n, &to)) return false;
        write_pass(v, to, &v->w[k].matrix[0], from);
        from = rw_copy(q, &to);
    }
    struct substitution s = {.p = q};
    for (int k = 0; k < v->nwindows; k++) {
        int64_t *row = rw_substitution(&s, v->w[k].p);
        row[v->w[k].tile] = v->m;
        row[v->w[k].out] = 1;
    }
    struct draft d = draft_open(q, &v->old, COMBINE_ADD, rw_substituted(&s, &v->old.dst, -1));
    draft_read(&d, from);
    d.s.where = arena_array(&q->arena, MOST_WINDOWS, sizeof *d.s.where);
    cut_tails(v, &d.s);
    draft_close(&d, v->next++);
    return true;
}

static bool write_all(struct winograd *v) {
    struct access filter, data, products;
    uint64_t others = rw_access_axes(v->q, &v->old.dst);
    for (int k = 0; k < v->nwindows; k++) others &= ~(UINT64_C(1) << v->w[k].p);
    return write_matrices(v) && transform(v, false, &filter) && transform(v, true, &data) &&
           multiply(v, &filter, &data, others, &products) && write_results(v, products, others);
}

static struct program *winograd(const struct program *p, const struct failure *why, int m) {
    struct winograd v = {.at = why->stmt, .next = why->stmt, .m = m};
    if (!find_windows(p, why->stmt, &v)) return NULL;
    for (int k = 0; k < v.nwindows; k++)
        if (p->axis[v.w[k].p].extent < m) return NULL;
    v.q = program_copy(p);
    enum { MOST_STATEMENTS = 3 * MOST_WINDOWS + 8 * MOST_WINDOWS + 8 };
    bool ok = make_axes(&v) && rw_factors(v.q, why->stmt, &v.f);
    if (ok) {
        v.old = v.q->stmt[why->stmt];
        program_make_room(v.q, why->stmt, MOST_STATEMENTS);
        ok = write_all(&v);
        if (ok) program_close_room(v.q, v.next, why->stmt + MOST_STATEMENTS + 1 - v.next);
    }
    if (ok) return v.q;
    program_free(v.q);
    return NULL;
}

static struct program *winograd_2(const struct program *p, const struct failure *why,
                                  const struct needle *n) {
    (void)n;
    return winograd(p, why, 2);
}

static struct program *winograd_4(const struct program *p, const struct failure *why,
                                  const struct needle *n) {
    (void)n;
    return winograd(p, why, 4);
}

const struct rewrite rw_winograd_2 = {
    .name = "winograd-2",
    .doc = "a convolution by tiles of 2 results in each direction, with fewer products",
    .effect = REWRITE_ROUNDS,
    .apply = winograd_2,
};

const struct rewrite rw_winograd_4 = {
    .name = "winograd-4",
    .doc = "a convolution by tiles of 4 results in each direction, with fewer products",
    .effect = REWRITE_ROUNDS,
    .apply = winograd_4,
};
