/* What a statement writes: a box of elements, in one step of the recurrences around it or in all.
 */
#include "scheduler/verify/box.h"

/* How many values the axis has, at most. */
static int64_t values(const struct program *p, int axis) {
    return p->axis[axis].extent - axis_least(&p->axis[axis]);
}

/* Index e takes each value of a range once as these axes run; n: how many. */
static bool fills_range(const struct program *p, const struct access *dst, int e, uint64_t axes,
                        int64_t *n) {
    int64_t most = 1;
    bool up = true;
    *n = 1;
    for (bool found = true; found;) {
        found = false;
        for (int a = 0; a < p->naxes && !found; a++) {
            found = axes >> a & 1 && values(p, a) > 1 && access_coef(p, dst, e, a) == *n;
            if (found) *n *= values(p, a);
        }
    }
    for (int a = 0; a < p->naxes; a++) {
        int64_t c = access_coef(p, dst, e, a);
        if (!(axes >> a & 1)) continue;
        up &= c >= 0;
        most += c * (values(p, a) - 1);
    }
    return up && most == *n;
}

/* The axes of a step of the recurrence at this level: not those of the recurrences around it. */
static uint64_t axes_in_step(const struct sym *s, int stmt, int level) {
    uint64_t axes = s->v->domain[stmt];
    for (int r = s->v->recurrence_of[stmt]; r >= 0; r = s->v->recurrence[r].parent)
        if (s->v->recurrence[r].level <= level) axes &= ~(UINT64_C(1) << s->v->recurrence[r].axis);
    return axes;
}

/* Of a statement in recurrences the index that moves with the steps of each, each step having rows
 * of its own: then no element is written at two of its steps. One index may move with several: then
 * a step of the outer one has the rows of all inner steps. */
static bool find_timed(struct sym *s, int stmt, struct image *x) {
    const struct program *p = s->v->p;
    const struct stmt *t = &p->stmt[stmt];
    for (int r = s->v->recurrence_of[stmt]; r >= 0; r = s->v->recurrence[r].parent) {
        int axis = s->v->recurrence[r].axis, level = s->v->recurrence[r].level;
        for (int e = 0; e < p->buffer[t->dst.buffer].ndims; e++) {
            int64_t c = access_coef(p, &t->dst, e, axis), rows;
            if (c == 0) continue;
            uint64_t axes = axes_in_step(s, stmt, level);
            if (x->timed[level] >= 0 || !fills_range(p, &t->dst, e, axes, &rows) || rows != c)
                return false;
            x->timed[level] = e;
            x->rows[level] = c;
        }
    }
    return true;
}

/* The axes whose values number a statement's instances; all steps of a recurrence where they write
 * different elements, else those of one step. */
static uint64_t image_axes(struct sym *s, int stmt, const struct image *x) {
    uint64_t axes = s->v->domain[stmt];
    for (int r = s->v->recurrence_of[stmt]; r >= 0; r = s->v->recurrence[r].parent)
        if (x->timed[s->v->recurrence[r].level] < 0)
            axes &= ~(UINT64_C(1) << s->v->recurrence[r].axis);
    return axes;
}

/* It sets elements where its constraints hold, and leaves the others. A statement that accumulates
 * does not count as such: where its constraints do not hold its instances add nothing, and an
 * element to which nothing was added is what it was before, as it has to be. So its instances are
 * counted as if it had no constraints. */
bool sets_part(const struct stmt *t) {
    return t->nwhere > 0 && t->combine == COMBINE_SET;
}

/* The axes that the mask has and that move index e of the destination. */
static uint64_t moving(const struct program *p, const struct access *dst, int e, uint64_t axes) {
    uint64_t found = 0;
    for (int a = 0; a < p->naxes; a++)
        if (axes >> a & 1 && values(p, a) > 1 && access_coef(p, dst, e, a))
            found |= UINT64_C(1) << a;
    return found;
}

static void find_box(struct sym *s, int stmt, struct image *x) {
    const struct program *p = s->v->p;
    const struct access *dst = &p->stmt[stmt].dst;
    int ndims = p->buffer[dst->buffer].ndims;
    uint64_t axes = image_axes(s, stmt, x);
    x->box = true;
    x->times = 1;
    for (int a = 0; a < p->naxes; a++) {
        int moved = 0;
        if (!(axes >> a & 1)) continue;
        for (int e = 0; e < ndims; e++) moved += access_coef(p, dst, e, a) != 0;
        int64_t extent = values(p, a);
        struct lin count = sym_extent(s, a);
        if (moved == 0 && !lin_constant(&count, &extent)) x->box = false;
        if (moved == 0) x->times *= extent;
        x->box &= moved <= 1;
    }
    for (int e = 0; e < ndims && x->box; e++) {
        x->lo[e] = access_coef(p, dst, e, p->naxes);
        x->box = fills_range(p, dst, e, axes, &x->n[e]);
    }
}

/* Axes whose values do not each write elements of their own, in a box. */
static uint64_t sharing_axes(const struct program *p, const struct stmt *t, uint64_t axes) {
    int ndims = p->buffer[t->dst.buffer].ndims;
    uint64_t found = 0;
    for (int a = 0; a < p->naxes; a++) {
        int moved = 0;
        bool bound = false;
        for (int e = 0; e < ndims; e++) moved += access_coef(p, &t->dst, e, a) != 0;
        for (int k = 0; k < t->nwhere; k++) bound |= t->where[k].coef[a] != 0;
        if (axes >> a & 1 && values(p, a) > 1 && (moved != 1 || bound)) found |= UINT64_C(1) << a;
    }
    return found;
}

static uint64_t step_axes(const struct sym *s, int stmt) {
    uint64_t axes = 0;
    for (int r = s->v->recurrence_of[stmt]; r >= 0; r = s->v->recurrence[r].parent)
        axes |= UINT64_C(1) << s->v->recurrence[r].axis;
    return axes;
}

/* In a recurrence the box is that of one step, as that step leaves it: each instance of the step is
 * among those that are executed at once. */
static void find_whole(struct sym *s, int stmt, struct image *x) {
    const struct program *p = s->v->p;
    const struct stmt *t = &p->stmt[stmt];
    int ndims = p->buffer[t->dst.buffer].ndims;
    uint64_t steps = step_axes(s, stmt), axes = s->v->domain[stmt] & ~steps;
    for (int e = 0; e < ndims; e++)
        if (moving(p, &t->dst, e, steps)) return;
    x->whole = true;
    x->times = WHOLE;
    x->together = sharing_axes(p, t, axes);
    for (int e = 0; e < ndims; e++) {
        uint64_t by = moving(p, &t->dst, e, axes);
        int64_t reach = 0;
        if (by & x->together || !fills_range(p, &t->dst, e, axes, &reach)) {
            x->loose |= UINT64_C(1) << e;
            x->together |= by;
        }
        x->lo[e] = access_coef(p, &t->dst, e, p->naxes);
        x->n[e] = 1;
        for (int a = 0; a < p->naxes; a++) {
            int64_t far = by >> a & 1 ? access_coef(p, &t->dst, e, a) * (values(p, a) - 1) : 0;
            x->lo[e] += far < 0 ? far : 0;
            x->n[e] += far < 0 ? -far : far;
        }
    }
}

/* In recurrences of which one has no steps it writes nothing: a box without elements. */
static bool find_none(struct sym *s, int stmt, struct image *x) {
    const struct program *p = s->v->p;
    const struct access *dst = &p->stmt[stmt].dst;
    for (int a = 0; a < p->naxes; a++)
        if (s->v->domain[stmt] >> a & 1 && values(p, a) == 0) x->box = true;
    for (int e = 0; e < p->buffer[dst->buffer].ndims && x->box; e++) {
        x->lo[e] = access_coef(p, dst, e, p->naxes);
        x->n[e] = 0;
    }
    return x->box;
}

/* Where its box begins and ends, as long as the axes are. */
static void find_ends(struct sym *s, int stmt, struct image *x) {
    const struct program *p = s->v->p;
    const struct access *dst = &p->stmt[stmt].dst;
    for (int e = 0; e < p->buffer[dst->buffer].ndims; e++) {
        bool fits = true;
        int64_t shorter = 0; /* than where all axes are as long as they may be */
        x->from[e] = lin_of(x->lo[e]);
        x->end[e] = lin_of(x->lo[e] + x->n[e]);
        for (int a = 0; a < p->naxes; a++) {
            struct lin first = sym_first(s, a), n = sym_extent(s, a);
            int64_t c = s->v->domain[stmt] >> a & 1 ? access_coef(p, dst, e, a) : 0;
            fits &= lin_add(&x->from[e], &first, c) && lin_add(&x->end[e], &first, c);
            if (c <= 0 || !p->axis[a].size) continue;
            fits &= lin_add(&x->end[e], &n, c);
            shorter += c * values(p, a);
        }
        x->end[e].c -= shorter;
        if (!fits) x->box = x->whole = false;
    }
}

const struct image *sym_image(struct sym *s, int stmt) {
    struct image *x = &s->image[stmt];
    const struct stmt *t = &s->v->p->stmt[stmt];
    if (x->known) return x;
    x->known = true;
    x->times = 1;
    for (int level = 0; level < SYM_LEVELS; level++) x->timed[level] = -1;
    if (s->v->p->buffer[t->dst.buffer].ndims > SYM_INDICES) return x;
    if (!find_none(s, stmt, x) && !sets_part(t) && find_timed(s, stmt, x)) find_box(s, stmt, x);
    if (!x->box) find_whole(s, stmt, x);
    find_ends(s, stmt, x);
    return x;
}
