/* The space of a nest: balanced extents of its axes (SCHEDULING §2), and the loops of a point. */
#include "machines/needle.h"
#include "scheduler/plan/nest.h"
#include "scheduler/plan/plan.h"
#include "scheduler/plan/rewrite.h"
#include "scheduler/plan/search_int.h"
#include "scheduler/plan/search_known.h"
#include "scheduler/plan/task.h"
#include <stdlib.h>
#include <string.h>

static int descending(const void *a, const void *b) {
    const struct axis_space *x = a, *y = b;
    if (x->n != y->n) return x->n < y->n ? 1 : -1;
    return x->axis - y->axis;
}

static void fill_values(struct arena *arena, struct axis_space *s, int64_t extent) {
    int64_t blocks = (extent + s->unit - 1) / s->unit, last = 0, value[MAX_VALUES];
    for (int64_t n = blocks; n >= 1 && s->n < MAX_VALUES;) {
        int64_t size = (blocks + n - 1) / n;
        if (size != last) value[s->n++] = size * s->unit;
        last = size;
        n = (blocks - 1) / size; /* the most tiles that are larger than these */
    }
    value[s->n - 1] = blocks * s->unit;
    s->value = arena_copy(arena, value, sizeof *value * (size_t)s->n);
}

/* What the loops that a group shares leave of an axis. */
static int64_t axis_rest(const struct search *s, int axis) {
    const struct nest *nest = s->nest;
    int64_t e = s->w->p->axis[axis].extent;
    for (int i = 0; i < nest->nprefix; i++)
        if (nest->prefix[i].axis == axis && nest->prefix[i].tile < e) e = nest->prefix[i].tile;
    return e;
}

/* Copies along an axis hold whole blocks; a needle may take part of one. */
static int64_t block_of(const struct search *s, const struct task *t, int axis) {
    int64_t most = 1;
    for (int i = 0; i < t->nops; i++) {
        const struct opnd *o = &t->op[i];
        if (o->where != IN_LOCAL) continue;
        const struct access *acc = opnd_access(s->w, t, o);
        for (int d = 0; d < s->w->p->buffer[acc->buffer].ndims; d++)
            if (o->geom.grain[d] != o->geom.block[d] && o->geom.block[d] > most &&
                access_coef(s->w->p, acc, d, axis))
                most = o->geom.block[d];
    }
    return most;
}

bool space_axes(struct search *s) {
    const struct program *p = s->w->p;
    const struct task *t = search_task(s);
    s->n = 0;
    for (int a = 0; a < p->naxes; a++) {
        if (!(p->stmt[t->stmt].axes >> a & 1)) continue;
        struct axis_space v = {.axis = a, .unit = 1, .x = -1, .reduction = t->reductions >> a & 1};
        for (int x = 0; x < t->needle->nx; x++)
            if (t->axis[x] == a) {
                v.x = x;
                v.unit = needle_unit(t->needle, x);
            }
        if (axis_rest(s, a) <= v.unit) continue;
        if (s->n == MAX_SEARCH) return false;
        int64_t block = block_of(s, t, a);
        if (block % v.unit == 0) v.unit = block;
        fill_values(known_arena(s->w->searches), &v, axis_rest(s, a));
        s->ax[s->n++] = v;
    }
    qsort(s->ax, (size_t)s->n, sizeof s->ax[0], descending);
    return true;
}

void space_keep_whole(struct search *s, int64_t most) {
    for (int k = 0; k < s->n; k++) {
        struct axis_space *v = &s->ax[k];
        if (!v->reduction || axis_rest(s, v->axis) > most || v->x >= 0) continue;
        v->value[0] = v->value[v->n - 1];
        v->n = 1;
    }
    qsort(s->ax, (size_t)s->n, sizeof s->ax[0], descending);
}

static void push_loop(struct plan *p, int axis, int64_t tile) {
    p->loop[p->nloops++] = (struct loop){axis, tile, LOOP_SEQUENTIAL};
}

/* Extents of the cuts: those of outer cuts are multiples of the inner ones', so that only the last
 * tile has tails. */
static void cut_extents(const struct search *s, const struct point *q, int64_t *tile) {
    int64_t inner[MAX_SEARCH] = {0};
    for (int i = q->shape.n - 1; i >= 0; i--) {
        int k = q->shape.k[i];
        const struct axis_space *v = &s->ax[k];
        int64_t value = v->value[q->at[i]];
        if (inner[k] && __builtin_mul_overflow(inner[k], value / v->unit, &value))
            value = INT64_MAX;
        tile[i] = inner[k] = value;
    }
}

void space_build(const struct search *s, const struct point *q, struct plan *p) {
    const struct nest *nest = s->nest;
    const struct task *t = search_task(s);
    int64_t tile[MAX_SHAPE], now[MAX_SEARCH];
    memset(p, 0, sizeof *p);
    cut_extents(s, q, tile);
    for (int i = 0; i < nest->nprefix; i++) p->loop[p->nloops++] = nest->prefix[i];
    for (int k = 0; k < s->n; k++) now[k] = axis_rest(s, s->ax[k].axis);
    for (int i = 0; i < q->shape.n; i++) {
        int k = q->shape.k[i];
        if (tile[i] >= now[k]) continue;
        push_loop(p, s->ax[k].axis, tile[i]);
        now[k] = tile[i];
    }
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < s->n; i++) {
            int k = q->shape.reversed & (pass ? REVERSED_RESULT : REVERSED_SUM) ? s->n - 1 - i : i;
            const struct axis_space *v = &s->ax[k];
            int64_t leaf = v->x < 0 ? 1 : needle_leaf(t->needle, v->x, now[k]);
            if (v->reduction == (pass == 0) && leaf < now[k]) push_loop(p, v->axis, leaf);
        }
    p->depth_out = p->nloops;
    for (int i = p->nloops - 1; i >= 0; i--)
        if (t->reductions >> p->loop[i].axis & 1) p->depth_out = i;
}
