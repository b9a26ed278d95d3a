/* Which statement an element must come from that is read, after how many contributions, and at
 * which step of the recurrence around that statement. */
#include "scheduler/verify/box.h"

/* ---- what a statement writes ---- */
/* The other axes of the index take each value from 0 to c - 1 once, c being what a step adds. */
static bool fills_step(struct sym *s, int stmt, int index, int step, int64_t c) {
    const struct program *p = s->v->p;
    const struct access *dst = &p->stmt[stmt].dst;
    int64_t rows = 1, most = 1;
    for (bool found = true; found;) {
        found = false;
        for (int a = 0; a < p->naxes && !found; a++) {
            found = a != step && s->v->domain[stmt] >> a & 1 && p->axis[a].extent > 1 &&
                    access_coef(p, dst, index, a) == rows;
            if (found) rows *= p->axis[a].extent;
        }
    }
    for (int a = 0; a < p->naxes; a++) {
        int64_t k = access_coef(p, dst, index, a);
        if (a == step || !(s->v->domain[stmt] >> a & 1)) continue;
        if (k < 0) return false;
        most += k * (p->axis[a].extent - 1);
    }
    return rows == c && most == c;
}

/* Of a statement in a recurrence the index that moves with its steps, each step having rows of its
 * own: then no element is written at two steps. */
static bool find_timed(struct sym *s, int stmt, struct image *x) {
    const struct program *p = s->v->p;
    const struct stmt *t = &p->stmt[stmt];
    int r = s->v->recurrence_of[stmt], axis = r < 0 ? -1 : s->v->recurrence[r].axis;
    x->timed = -1;
    for (int e = 0; r >= 0 && e < p->buffer[t->dst.buffer].ndims; e++) {
        int64_t c = access_coef(p, &t->dst, e, axis);
        if (c == 0) continue;
        if (x->timed >= 0 || !fills_step(s, stmt, e, axis, c)) return false;
        x->timed = e;
        x->rows = c;
    }
    return true;
}

/* The axes whose values number a statement's instances; all steps of a recurrence where they write
 * different elements, else those of one step. */
static uint64_t image_axes(struct sym *s, int stmt, const struct image *x) {
    int r = s->v->recurrence_of[stmt];
    uint64_t axes = s->v->domain[stmt];
    return r >= 0 && x->timed < 0 ? axes & ~(UINT64_C(1) << s->v->recurrence[r].axis) : axes;
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
        if (axes >> a & 1 && p->axis[a].extent > 1 && access_coef(p, dst, e, a))
            found |= UINT64_C(1) << a;
    return found;
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
            found = axes >> a & 1 && p->axis[a].extent > 1 && access_coef(p, dst, e, a) == *n;
            if (found) *n *= p->axis[a].extent;
        }
    }
    for (int a = 0; a < p->naxes; a++) {
        int64_t c = access_coef(p, dst, e, a);
        if (!(axes >> a & 1)) continue;
        up &= c >= 0;
        most += c * (p->axis[a].extent - 1);
    }
    return up && most == *n;
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
        int64_t extent = p->axis[a].extent;
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
        if (axes >> a & 1 && p->axis[a].extent > 1 && (moved != 1 || bound))
            found |= UINT64_C(1) << a;
    }
    return found;
}

/* In a recurrence an element has a version for each step: that is not followed so. */
static void find_whole(struct sym *s, int stmt, struct image *x) {
    const struct program *p = s->v->p;
    const struct stmt *t = &p->stmt[stmt];
    int ndims = p->buffer[t->dst.buffer].ndims;
    uint64_t axes = s->v->domain[stmt];
    if (s->v->recurrence_of[stmt] >= 0) return;
    x->whole = true;
    x->times = WHOLE;
    x->timed = -1;
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
            int64_t far = by >> a & 1 ? access_coef(p, &t->dst, e, a) * (p->axis[a].extent - 1) : 0;
            x->lo[e] += far < 0 ? far : 0;
            x->n[e] += far < 0 ? -far : far;
        }
    }
}

const struct image *sym_image(struct sym *s, int stmt) {
    struct image *x = &s->image[stmt];
    const struct stmt *t = &s->v->p->stmt[stmt];
    if (x->known) return x;
    x->known = true;
    x->times = 1;
    if (s->v->p->buffer[t->dst.buffer].ndims > SYM_INDICES) return x;
    if (!sets_part(t) && find_timed(s, stmt, x)) find_box(s, stmt, x);
    if (!x->box) find_whole(s, stmt, x);
    return x;
}

static enum truth image_meets(const struct sym *s, const struct image *x,
                              const struct region *need) {
    bool inside = true;
    for (int e = 0; e < need->nindices; e++) {
        struct lin lo = lin_of(x->lo[e]), end = lin_of(x->lo[e] + x->n[e]), to = need->o[e];
        if (!lin_add(&to, &need->n[e], 1)) return MAYBE;
        if (lin_le(s, &to, &lo) == YES || lin_le(s, &end, &need->o[e]) == YES) return NO;
        inside &= lin_le(s, &lo, &need->o[e]) == YES && lin_le(s, &to, &end) == YES;
    }
    return inside ? YES : MAYBE;
}

/* ---- steps ---- */
bool sym_at(struct sym *s, int stmt, const struct affine *point) {
    int r = s->v->recurrence_of[stmt];
    if (r < 0) return true;
    const struct recurrence *q = &s->v->recurrence[r];
    const struct affine *t = &point[q->axis];
    for (int d = 0; d < s->ndims; d++)
        if (t->d[d] && s->n[d] > 1) return sym_fail(s, "several steps of a recurrence at once");
    s->time = s->step = t->l;
    if (!q->reverse) return true;
    s->step = sym_extent(s, q->axis);
    s->step.c--;
    return lin_add(&s->step, &s->time, -1) || sym_fail(s, "a step is out of range");
}

struct lin sym_step(struct sym *s, int stmt) {
    bool steps = s->v->recurrence_of[stmt] >= 0 && sym_image(s, stmt)->timed < 0;
    return steps ? s->step : lin_of(0);
}

/* Were the elements written at this step or before? `now`: the writer stands before in a step. */
static enum truth is_over(const struct sym *s, const struct image *x, const struct recurrence *r,
                          const struct region *need, bool now) {
    struct lin edge = lin_of(x->lo[x->timed] + (now != r->reverse ? x->rows : 0)),
               begin = need->o[x->timed], end = begin;
    if (!lin_add(&edge, &s->time, x->rows) || !lin_add(&end, &need->n[x->timed], 1)) return MAYBE;
    bool below = lin_le(s, &end, &edge) == YES, above = lin_le(s, &edge, &begin) == YES;
    return below == above ? MAYBE : below != r->reverse ? YES : NO;
}

/* The recurrence writes the buffer at one step for each value of that index, or whole at each. */
static bool one_kind(struct sym *s, const struct writer_list *l, int w) {
    const struct image *x = sym_image(s, w);
    for (int k = 0; k < l->n; k++) {
        int other = s->v->order[l->at[k]];
        if (s->v->recurrence_of[other] != s->v->recurrence_of[w]) continue;
        const struct image *y = sym_image(s, other);
        if (y->timed != x->timed ||
            (x->timed >= 0 && (y->lo[x->timed] != x->lo[x->timed] || y->rows != x->rows)))
            return false;
    }
    return true;
}

/* ---- concatenations ---- */
static bool boxes_apart(const struct image *x, const struct image *y, int ndims) {
    for (int e = 0; e < ndims; e++)
        if (x->lo[e] + x->n[e] <= y->lo[e] || y->lo[e] + y->n[e] <= x->lo[e]) return true;
    return false;
}

/* Several statements outside recurrences set each element of it once at most. */
static bool is_joined(struct sym *s, int buffer) {
    const struct verify *v = s->v;
    const struct writer_list *l = &v->written[buffer];
    const struct buffer *b = &v->p->buffer[buffer];
    if (s->joined[buffer]) return s->joined[buffer] == 'y';
    bool joined = l->n > 1 && (b->role == ROLE_TEMP || b->role == ROLE_OUT);
    for (int k = 0; k < l->n && joined; k++) {
        int w = v->order[l->at[k]];
        const struct image *x = sym_image(s, w);
        joined = v->p->stmt[w].combine == COMBINE_SET && v->recurrence_of[w] < 0 && x->box;
        for (int i = 0; i < k && joined; i++)
            joined = boxes_apart(x, sym_image(s, v->order[l->at[i]]), b->ndims);
    }
    s->joined[buffer] = joined ? 'y' : 'n';
    return joined;
}

int sym_writer(struct sym *s, int stmt) {
    int buffer = s->v->p->stmt[stmt].dst.buffer;
    return is_joined(s, buffer) ? s->v->order[s->v->written[buffer].at[0]] : stmt;
}

/* ---- versions ---- */
enum when { BEFORE_IT, THIS_STEP, LAST_STEP };
enum found { NOT_HERE, HERE, UNKNOWN };

static enum found fails(struct sym *s, const char *what, int buffer) {
    sym_fail(s, what, s->v->p->buffer[buffer].name);
    return UNKNOWN;
}

/* Of which step the writer's elements are; NOT_HERE: of none. */
static enum found step_of_writer(struct sym *s, const struct region *need, int w, enum when when,
                                 struct lin *step) {
    int r = s->v->recurrence_of[w];
    *step = lin_of(0);
    if (r < 0) return HERE;
    const struct recurrence *q = &s->v->recurrence[r];
    const struct image *x = sym_image(s, w);
    struct lin one = lin_of(1), steps = sym_extent(s, q->axis);
    enum truth runs = lin_le(s, &one, &steps);
    if (runs == NO) return NOT_HERE;
    if (runs == MAYBE)
        return fails(s, "a recurrence that writes '%s' may have no step", need->buffer);
    if (!one_kind(s, &s->v->written[need->buffer], w))
        return fails(s, "a recurrence writes '%s' in several ways", need->buffer);
    if (when == BEFORE_IT) {
        if (x->timed >= 0) return HERE;
        *step = steps;
        step->c--;
        return HERE;
    }
    enum truth over = x->timed >= 0       ? is_over(s, x, q, need, when == THIS_STEP)
                      : when == THIS_STEP ? YES
                                          : lin_le(s, &one, &s->step);
    if (over == MAYBE)
        return fails(s, "a read of '%s' is not known to follow its step", need->buffer);
    if (over == NO || x->timed >= 0) return over == YES ? HERE : NOT_HERE;
    *step = s->step;
    if (when == LAST_STEP) step->c--;
    return HERE;
}

/* The last of the statements order[from .. to) that writes the box. */
static enum found last_writer(struct sym *s, const struct region *need, int from, int to,
                              enum when when, struct wanted_version *out) {
    struct verify *v = s->v;
    const struct writer_list *l = &v->written[need->buffer];
    for (int k = l->n - 1; k >= 0; k--) {
        int w = v->order[l->at[k]];
        struct lin step;
        if (l->at[k] < from || l->at[k] >= to) continue;
        const struct image *x = sym_image(s, w);
        if (!x->box && !x->whole)
            return fails(s, "what a statement writes of '%s' is no box", need->buffer);
        enum truth meets = image_meets(s, x, need);
        if (meets == NO) continue;
        if (meets == MAYBE) {
            out->spans = x;
            return fails(s, "a read of '%s' spans what several statements wrote", need->buffer);
        }
        enum found found = step_of_writer(s, need, w, when, &step);
        if (found == NOT_HERE) continue;
        *out = (struct wanted_version){
            .writer = w, .count = lin_of(x->times), .step = step, .own = -1};
        return found;
    }
    return NOT_HERE;
}

/* What statement `stmt` (nstmts: the end) must find in the box of the buffer. */
bool version_wanted(struct sym *s, int stmt, const struct region *need,
                    struct wanted_version *out) {
    struct verify *v = s->v;
    int r = v->recurrence_of[stmt], at = v->position[stmt];
    const struct recurrence *q = r < 0 ? NULL : &v->recurrence[r];
    enum found found = NOT_HERE;
    *out = (struct wanted_version){.writer = -1, .own = -1};
    out->any = region_empty(s, need);
    if (out->any) return true;
    const struct writer_list *l = &v->written[need->buffer];
    if (l->n > 0 && l->at[l->n - 1] < at && is_joined(s, need->buffer)) {
        *out = (struct wanted_version){.writer = v->order[l->at[0]], .count = lin_of(1), .own = -1};
        return true;
    }
    if (q) found = last_writer(s, need, q->first, at, THIS_STEP, out);
    if (q && found == NOT_HERE) found = last_writer(s, need, at, q->last, LAST_STEP, out);
    if (found == NOT_HERE) found = last_writer(s, need, 0, q ? q->first : at, BEFORE_IT, out);
    if (found != NOT_HERE) return found == HERE;
    enum role role = v->p->buffer[need->buffer].role;
    out->unset = role != ROLE_IN && role != ROLE_INOUT && role != ROLE_CONST;
    return !out->unset ||
           sym_fail(s, "a read of '%s' finds nothing written", v->p->buffer[need->buffer].name);
}

bool has_version(const struct region *g, const struct wanted_version *want) {
    if (want->any) return true;
    struct lin whole = lin_of(WHOLE);
    if (want->own >= 0 && g->writer == want->own && lin_same(&g->step, &want->own_step) &&
        !lin_same(&g->count, &whole))
        return true;
    return g->writer == want->writer && !want->own_only && lin_same(&g->count, &want->count) &&
           lin_same(&g->step, &want->step);
}
