/* Pairs whose windows overlap (3x3 after 1x1): in each turn the first nest makes all that the
 * second's tile reads, so what neighbouring tiles share is computed again. The window has the same
 * size in each turn: at the ends it is moved inside the extent, and what the second reads outside
 * are borders of the tile that stay zero. */
#include "scheduler/plan/rewrite.h"
#include "scheduler/plan/geom.h"
#include "scheduler/plan/limits.h"
#include "scheduler/plan/nest.h"
#include "scheduler/plan/plan.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/work.h"
#include <string.h>

bool window_find(const struct work *w, const struct access *made, uint64_t made_axes,
                 const struct task *reader, const struct access *used, int dim,
                 struct window *out) {
    const struct program *p = w->p;
    const struct stmt *st = &p->stmt[reader->stmt];
    int64_t lo, hi;
    *out = (struct window){access_lone(p, made, dim, made_axes), -1, -1, 0, 0, 1, 0, 0, 0};
    if (out->axis < 0) return false;
    out->extent = p->axis[out->axis].extent;
    for (int x = 0; x < p->naxes; x++) {
        int64_t c = st->axes >> x & 1 ? access_coef(p, used, dim, x) : 0;
        if (c < 0) return false;
        if (!c) continue;
        if (reader->reductions >> x & 1) {
            out->reach += c * (p->axis[x].extent - 1);
            continue;
        }
        if (out->shared >= 0) return false;
        out->shared = x;
        out->step = c;
    }
    if (out->shared < 0 || out->reach < 2 || out->reach < out->step) return false;
    out->offset = access_coef(p, used, dim, p->naxes);
    access_range(p, st, used, dim, &lo, &hi);
    return lo <= 0 && hi >= out->extent - 1 && /* every instance is executed */
           out->extent == p->buffer[made->buffer].extent[dim];
}

/* A name of its own for an axis of the reader; false: there is no room for one. */
static bool rename_apart(struct work *w, int axis, int *map) {
    const struct axis *a = &w->p->axis[axis];
    map[axis] = rewrite_axis(w, unique_name(w, a->name, "next"), a->extent);
    return map[axis] >= 0;
}

/* Axes that dimensions share are renamed as for other pairs. One that slides a window gets a name
 * of its own, where the maker knows it, and so does one whose name another takes. */
bool windows_map(struct work *w, int maker, int core, int read, int *map) {
    const struct task *t = &w->task[core];
    uint64_t taken = 0;
    int windows = 0;
    for (int a = 0; a < MAX_AXES; a++) map[a] = -1;
    if (w->nscopes > 0) return false; /* their axes would change their numbers */
    for (int d = 0; d < w->p->buffer[w->p->stmt[t->stmt].read[read].buffer].ndims; d++) {
        const struct stmt *made = &w->p->stmt[w->task[maker].stmt], *used = &w->p->stmt[t->stmt];
        int a = access_lone(w->p, &made->dst, d, made->axes),
            b = access_lone(w->p, &used->read[read], d, used->axes);
        struct window x;
        if (a >= 0 && b >= 0) {
            if (map[b] >= 0 || w->p->axis[a].extent != w->p->axis[b].extent) return false;
            if (t->reductions >> b & 1) continue;
            map[b] = a;
            taken |= UINT64_C(1) << a;
            continue;
        }
        if (!window_find(w, &made->dst, made->axes, t, &used->read[read], d, &x)) return false;
        if (map[x.shared] >= 0) return false;
        windows++;
        if ((made->axes >> x.shared & 1) && !rename_apart(w, x.shared, map)) return false;
    }
    uint64_t axes = w->p->stmt[t->stmt].axes;
    for (int a = 0; a < MAX_AXES; a++) {
        if (map[a] >= 0) continue;
        map[a] = a;
        if ((axes & taken) >> a & 1 && !rename_apart(w, a, map)) return false;
    }
    return windows > 0;
}

bool windows_prefix(struct work *w, struct nest *leader, const struct loop *prefix, int n) {
    int all = n;
    memcpy(leader->prefix, prefix, sizeof *prefix * (size_t)n);
    for (int k = 0; k < leader->nwindows; k++) leader->window[k].n = 0;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < leader->nwindows; k++) {
            struct window *x = &leader->window[k];
            int64_t shared = w->p->axis[x->shared].extent, turns;
            if (x->shared != prefix[i].axis) continue;
            x->n = x->step * (prefix[i].tile - 1) + x->reach;
            turns = (shared + prefix[i].tile - 1) / prefix[i].tile;
            if (x->n >= x->extent || turns < 2 || all == MAX_PREFIX) return false;
            x->slide = (x->extent - x->n) / (turns - 1);
            if (x->slide < 1) x->slide = 1;
            w->p->axis[x->turn].extent = turns;
            leader->prefix[i] = (struct loop){x->turn, 1, LOOP_SEQUENTIAL};
            leader->prefix[all++] = (struct loop){x->axis, x->n, LOOP_SEQUENTIAL};
        }
    leader->nprefix = all;
    return true;
}

static void open_access(struct work *w, const struct nest *n, struct access *a) {
    int cols = w->p->naxes + 1, ndims = w->p->buffer[a->buffer].ndims;
    a->coef = arena_copy(w->arena, a->coef, sizeof *a->coef * (size_t)(ndims * cols));
    for (int k = 0; k < n->nwindows; k++) {
        const struct window *x = &n->window[k];
        for (int d = 0; d < ndims && x->n; d++)
            a->coef[d * cols + x->turn] = a->coef[d * cols + x->axis] * x->slide;
    }
}

static void open_stmt(struct work *w, const struct nest *n, struct stmt *st) {
    open_access(w, n, &st->dst);
    st->read = arena_copy(w->arena, st->read, sizeof *st->read * (size_t)st->nreads);
    for (int r = 0; r < st->nreads; r++) open_access(w, n, &st->read[r]);
    for (int k = 0; k < n->nwindows; k++)
        if (n->window[k].n && (st->axes >> n->window[k].axis & 1))
            st->axes |= UINT64_C(1) << n->window[k].turn;
}

struct stmt *windows_open(struct work *w, const struct nest *n) {
    if (!n->nwindows) return NULL;
    struct stmt *keep = arena_copy(w->arena, w->p->stmt, sizeof *keep * (size_t)w->p->nstmts);
    int zero = w->task[n->core].init;
    if (zero >= 0) open_stmt(w, n, &w->p->stmt[zero]);
    for (int i = 0; i < nest_ntasks(n); i++)
        open_stmt(w, n, &w->p->stmt[w->task[nest_task(n, i)].stmt]);
    for (int k = 0; k < n->nwindows; k++)
        if (n->window[k].n) w->p->axis[n->window[k].axis].extent = n->window[k].n;
    return keep;
}

void windows_close(struct work *w, const struct nest *n, const struct stmt *keep) {
    if (!keep) return;
    memcpy(w->p->stmt, keep, sizeof *keep * (size_t)w->p->nstmts);
    for (int k = 0; k < n->nwindows; k++)
        w->p->axis[n->window[k].axis].extent = n->window[k].extent;
}

int windows_zeros(struct work *w, const struct opnd *o, int buffer) {
    const struct buffer *b = &w->p->buffer[buffer];
    int ndims = b->ndims;
    int64_t extent[MAX_DIMS];
    for (int d = 0; d < ndims; d++) extent[d] = w->home[buffer].extent[d];
    int made =
        rewrite_buffer(w, unique_name(w, b->name, "border"), b->type, ROLE_TEMP, ndims, extent);
    if (made < 0) return -1;
    struct geom inside = o->geom;
    inside.plain_home = false;
    home_pack(w, made, &inside);
    w->home[made].extent[0] += o->geom.block[0]; /* larger than its elements: zero */
    home_run(&w->home[made], ndims);
    return made;
}
