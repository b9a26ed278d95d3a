/* An issue that ends inside an axis in the middle of its rows of lanes: 9 points in rows of 2, of 4
 * and of 2 are a box of 8 and a box of one. It is followed as one issue after the other, a box
 * each: of a sum the first one begins it, and the others add. */
#include "scheduler/verify/work.h"

#include <string.h>

enum { MOST_PARTS = 32 };

/* What the points of a box are: instances, or beyond the end of an axis that the result has, or of
 * one that is reduced. */
enum what { INSIDE, BEYOND, BEYOND_SUM };

struct box_part {
    int64_t from[SYM_DIMS], n[SYM_DIMS];
    enum what what;
};

struct box_parts {
    struct box_part at[MOST_PARTS];
    int n;
};

/* By how much each dimension moves along an axis, how many values of it there are, and whether the
 * result has the axis. */
struct along {
    int64_t weight[SYM_DIMS], most;
    bool of_result;
};

/* ---- boxes ---- */
static bool add(struct sym *s, struct box_parts *p, const struct box_part *x) {
    for (int d = 0; d < s->ndims; d++)
        if (x->n[d] <= 0) return true;
    if (p->n == MOST_PARTS) return sym_fail(s, "an issue in many parts");
    p->at[p->n++] = *x;
    return true;
}

static int largest(const struct sym *s, const struct along *a, const bool *done) {
    int found = -1;
    for (int d = 0; d < s->ndims; d++)
        if (a->weight[d] && !done[d] && (found < 0 || a->weight[d] > a->weight[found])) found = d;
    return found;
}

/* How far the dimensions that are left reach beyond their first values. */
static int64_t reach(const struct sym *s, const struct along *a, const bool *done) {
    int64_t sum = 0;
    for (int d = 0; d < s->ndims; d++)
        if (!done[d]) sum += a->weight[d] * (s->n[d] - 1);
    return sum;
}

/* The points of a part below the end of the axis, and those beyond: digit by digit, the largest
 * first. */
static bool cut_part(struct sym *s, struct box_part x, const struct along *a,
                     struct box_parts *out) {
    bool done[SYM_DIMS] = {false};
    int64_t left = a->most;
    for (int d; left > 0 && (d = largest(s, a, done)) >= 0;) {
        done[d] = true;
        if (reach(s, a, done) >= a->weight[d] || x.from[d] != 0 || x.n[d] != s->n[d])
            return sym_fail(s, "padding that is no set of boxes");
        int64_t whole = left / a->weight[d], n = x.n[d];
        if (whole > n) whole = n;
        left -= whole * a->weight[d];
        bool some = whole < n && left > 0; /* of the next value */
        struct box_part beyond = x;
        beyond.what = a->of_result ? BEYOND : BEYOND_SUM;
        beyond.from[d] = whole + some;
        beyond.n[d] = n - whole - some;
        x.n[d] = whole;
        if (!add(s, out, &x) || !add(s, out, &beyond)) return false;
        if (!some) return true;
        x.from[d] = whole;
        x.n[d] = 1;
    }
    return add(s, out, &x);
}

static bool cut_all(struct sym *s, struct box_parts *p, const struct along *a) {
    struct box_parts before = *p;
    p->n = 0;
    for (int k = 0; k < before.n; k++)
        if (before.at[k].what == INSIDE ? !cut_part(s, before.at[k], a, p)
                                        : !add(s, p, &before.at[k]))
            return false;
    return sym_spend(s, p->n);
}

/* ---- axes ---- */
static bool result_has(const struct work *w, struct along *a) {
    bool any = false, all = true;
    for (int d = 0; d < w->s->ndims; d++) {
        if (!a->weight[d]) continue;
        any |= w->access[0].d[d] != 0;
        all &= w->access[0].d[d] != 0;
    }
    a->of_result = any;
    return any == all || sym_fail(w->s, "a part of an axis is reduced");
}

/* False with nothing to say: it ends inside. */
static bool along_axis(struct work *w, int axis, struct along *a, bool *good) {
    struct sym *s = w->s;
    int64_t extent = s->v->p->axis[axis].extent, lo, hi, first;
    affine_range(s, &w->point[axis], &lo, &hi);
    *a = (struct along){0};
    if (lo >= 0 && hi < extent) return false;
    *good = lo >= 0 && lin_constant(&w->point[axis].l, &first) && first < extent;
    for (int d = 0; d < s->ndims; d++) {
        if (s->n[d] > 1) a->weight[d] = w->point[axis].d[d];
        *good &= a->weight[d] >= 0;
    }
    if (!*good)
        return sym_fail(s, "an issue is not known to stay inside axis '%s'",
                        s->v->p->axis[axis].name);
    a->most = extent - first;
    return *good = result_has(w, a);
}

/* Of an axis of the instruction that stands for none of the program there is one value. */
static bool along_alone(struct work *w, int axis, struct along *a, bool *good) {
    bool some = false;
    *a = (struct along){.most = 1};
    if (w->n->axis[axis] >= 0) return false;
    for (int d = 0; d < w->f->ndims; d++) {
        if (w->f->dim[d].axis != axis || w->fit_dim[d] < 0) continue;
        a->weight[w->fit_dim[d]] = w->f->dim[d].weight;
        some |= a->weight[w->fit_dim[d]] != 0;
    }
    return some && (*good = result_has(w, a));
}

/* Axes of the result first: then the boxes of each sum are of the same results. */
static bool find_parts(struct work *w, struct box_parts *p) {
    struct sym *s = w->s;
    struct along a;
    memset(p, 0, sizeof *p);
    memcpy(p->at[0].n, s->n, sizeof s->n);
    p->n = 1;
    for (int of_result = 1; of_result >= 0; of_result--) {
        bool good = true;
        for (int x = 0; x < w->h->naxes && good; x++)
            if (along_alone(w, x, &a, &good) && a.of_result == of_result) good = cut_all(s, p, &a);
        for (int x = 0; x < s->v->p->naxes && good; x++)
            if (s->v->domain[w->n->stmt] >> x & 1 && along_axis(w, x, &a, &good) &&
                a.of_result == of_result)
                good = cut_all(s, p, &a);
        if (!good) return false;
    }
    return true;
}

/* ---- one part ---- */
static void go_to(struct work *w, const struct box_part *x) {
    struct sym *s = w->s;
    for (int d = 0; d < s->ndims; d++) {
        for (int r = 0; r <= w->h->stmt->nreads; r++)
            w->access[r].l.c += w->access[r].d[d] * x->from[d];
        for (int a = 0; a < s->v->p->naxes; a++) w->point[a].l.c += w->point[a].d[d] * x->from[d];
        s->n[d] = w->full[d] = w->valid[d] = x->n[d];
    }
}

static bool begins_sum(const struct work *w, const struct box_parts *p, int k) {
    for (int i = 0; i < k; i++) {
        bool same = p->at[i].what == INSIDE;
        for (int d = 0; d < w->s->ndims; d++)
            if (w->access[0].d[d])
                same &= p->at[i].from[d] == p->at[k].from[d] && p->at[i].n[d] == p->at[k].n[d];
        if (same) return false;
    }
    return true;
}

static bool one_part(struct work *w, const struct box_parts *p, int k) {
    struct sym *s = w->s;
    struct region lost = {.place = w->n->arg[w->h->dst_operand].place};
    struct work there = *w;
    go_to(&there, &p->at[k]);
    s->nexecuted = 0;
    switch (p->at[k].what) {
    case INSIDE:
        there.overwrite &= begins_sum(w, p, k);
        return work_compute_box(&there) && box_executed(s);
    case BEYOND_SUM:
        return work_adds_nothing(&there) ||
               sym_fail(s, "padding along a reduction of '%s'", w->in->id);
    case BEYOND:
        lost.type = s->v->p->buffer[w->stmt->dst.buffer].type;
        if (!work_destination(&there, there.full, NULL, 0, &lost)) return false;
        regions_kill(s, &lost);
        return true;
    }
    return false;
}

/* Each result has its own bytes, so that the parts do not meet. */
static bool results_apart(struct work *w) {
    struct sym *s = w->s;
    struct region all = {.place = w->n->arg[w->h->dst_operand].place,
                         .type = s->v->p->buffer[w->stmt->dst.buffer].type};
    if (all.place < 0 || s->v->s->place[all.place].keep != KEEP_LOCAL)
        return sym_fail(s, "padding that is no box");
    return work_in_place(w) && work_destination(w, w->full, NULL, 0, &all);
}

static bool compute_parts(struct work *w) {
    struct sym *s = w->s;
    struct box_parts p;
    int64_t n[SYM_DIMS];
    int ndims = s->ndims;
    if (w->again) return sym_fail(s, "padding that is no box, in loops");
    memcpy(n, w->full, sizeof n);
    memcpy(s->n, n, sizeof n);
    memcpy(w->valid, n, sizeof n);
    if (!results_apart(w) || !find_parts(w, &p)) return false;
    for (int beyond = 0; beyond < 2; beyond++)
        for (int k = 0; k < p.n; k++) {
            if ((p.at[k].what == BEYOND) != beyond) continue;
            bool good = one_part(w, &p, k);
            s->ndims = ndims;
            memcpy(s->n, n, sizeof n);
            if (!good) return false;
        }
    s->nexecuted = 0;
    return true;
}

bool work_compute(struct work *w) {
    bool box;
    return work_clip(w, &box) && (box ? work_compute_box(w) : compute_parts(w));
}
