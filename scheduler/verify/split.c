/* Dimensions of an issue's points: cut where padding begins, split where strides change. */
#include "scheduler/verify/work.h"

static void each_form(struct work *w, int dim, int added, int64_t inner) {
    for (int o = 0; o < w->in->noperands; o++) {
        w->offset[o].d[added] = w->offset[o].d[dim];
        w->offset[o].d[dim] *= inner;
    }
    for (int r = 0; r <= w->h->stmt->nreads; r++) {
        w->access[r].d[added] = w->access[r].d[dim];
        w->access[r].d[dim] *= inner;
    }
    for (int a = 0; w->stmt && a < w->s->v->p->naxes; a++) {
        w->point[a].d[added] = w->point[a].d[dim];
        w->point[a].d[dim] *= inner;
    }
}

static bool split_dim(struct work *w, int dim, int64_t inner) {
    struct sym *s = w->s;
    int added = 0;
    if (w->full[dim] != w->valid[dim] || s->n[dim] != w->full[dim] || w->full[dim] % inner != 0)
        return false;
    for (int k = 0; k < w->f->ndims; k++)
        if (w->fit_dim[k] == dim) w->fit_dim[k] = -1;
    if (!sym_add_dim(s, inner, &added)) return false;
    w->full[added] = w->valid[added] = inner;
    w->full[dim] = w->valid[dim] = s->n[dim] = w->full[dim] / inner;
    w->of_loop[added] = w->of_loop[dim];
    each_form(w, dim, added, inner);
    return true;
}

/* Where a dimension runs from one row of strides to the next, it is split there. */
void work_split_at(struct work *w, const struct affine *address, const int64_t *stride, int n) {
    struct sym *s = w->s;
    for (int d = 0; d < s->ndims && d < SYM_DIMS; d++) {
        int64_t step = address->d[d], next = INT64_MAX;
        if (step <= 0 || s->n[d] == 1) continue;
        for (int k = 0; k < n; k++)
            if (stride[k] > step && stride[k] % step == 0 && stride[k] < next) next = stride[k];
        if (next == INT64_MAX || s->n[d] <= next / step) continue;
        if (split_dim(w, d, next / step)) d = -1;
    }
}

void work_split_home(struct work *w, const struct home_layout *h, const struct affine *address) {
    int64_t stride[SYM_DIGITS];
    for (int k = 0; k < h->n; k++) stride[k] = h->d[k].stride;
    work_split_at(w, address, stride, h->n);
}

/* Dimension d goes on where e ends, in all that a move touches. */
static bool goes_on(const struct work *w, int d, int e) {
    int64_t n = w->s->n[e];
    for (int r = 0; r <= w->h->stmt->nreads; r++) {
        int64_t whole;
        if (__builtin_mul_overflow(w->access[r].d[e], n, &whole) || w->access[r].d[d] != whole)
            return false;
    }
    return true;
}

static bool may_join(const struct work *w, int d) {
    return w->s->n[d] > 1 && w->s->n[d] == w->full[d] && w->valid[d] == w->full[d];
}

static bool join_dims(struct work *w, int d, int e) {
    struct sym *s = w->s;
    int64_t n;
    if (d == e || !may_join(w, d) || !may_join(w, e) || !goes_on(w, d, e) ||
        __builtin_mul_overflow(s->n[d], s->n[e], &n))
        return false;
    for (int k = 0; k < w->f->ndims; k++)
        if (w->fit_dim[k] == d || w->fit_dim[k] == e) w->fit_dim[k] = -1;
    w->full[e] = w->valid[e] = s->n[e] = n;
    w->full[d] = w->valid[d] = s->n[d] = 1;
    w->of_loop[e] |= w->of_loop[d];
    for (int r = 0; r <= w->h->stmt->nreads; r++) w->access[r].d[d] = 0;
    return true;
}

/* The rows of a move, and those of a loop around it, may be cut in other places than those of what
 * it moves: they are one row, which is split where that is. */
void work_join_dims(struct work *w) {
    for (int d = 0; d < w->s->ndims; d++)
        for (int e = 0; e < w->s->ndims; e++)
            if (join_dims(w, d, e)) d = 0, e = -1;
}

/* Points beyond the end of an axis, and of axes that stand alone, are padding. */
static bool clip_axis(struct work *w, int a, bool *box) {
    struct sym *s = w->s;
    int64_t extent = s->v->p->axis[a].extent, lo, hi, first;
    int dim = -1;
    affine_range(s, &w->point[a], &lo, &hi);
    if (lo >= 0 && hi < extent) return true;
    for (int d = 0; d < s->ndims; d++) {
        if (s->n[d] == 1 || !w->point[a].d[d]) continue;
        if (dim >= 0 || w->point[a].d[d] != 1) return *box = false, true;
        dim = d;
    }
    if (lo < 0 || dim < 0 || !lin_constant(&w->point[a].l, &first) || first >= extent)
        return sym_fail(s, "an issue is not known to stay inside axis '%s'", s->v->p->axis[a].name);
    w->valid[dim] = s->n[dim] = extent - first;
    return true;
}

bool work_clip(struct work *w, bool *box) {
    struct sym *s = w->s;
    uint64_t domain = s->v->domain[w->n->stmt];
    *box = true;
    if (w->stmt->nwhere) return sym_fail(s, "statement %d has constraints", w->n->stmt);
    for (int d = 0; d < w->f->ndims; d++)
        if (w->n->axis[w->f->dim[d].axis] < 0) w->valid[w->fit_dim[d]] = s->n[w->fit_dim[d]] = 1;
    for (int a = 0; a < s->v->p->naxes; a++)
        if (domain >> a & 1 && !clip_axis(w, a, box)) return false;
    return true;
}

bool sym_add_dim(struct sym *s, int64_t n, int *dim) {
    if (s->ndims == SYM_DIMS) return sym_fail(s, "an issue with many dimensions");
    *dim = s->ndims;
    s->n[s->ndims++] = n;
    return true;
}
