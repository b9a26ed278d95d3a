/* Which axis of a result the instances of a unit share: an outermost loop over contiguous shares.
 */
#include "scheduler/plan/plan_int.h"
#include <math.h>

static int64_t instances(const struct work *w, const struct task *t) {
    int64_t n = w->m->unit[w->m->queue[t->needle->in->queue].unit].count;
    int threads = w->options ? w->options->threads : 0;
    return threads > 0 && threads < n ? threads : n;
}

/* The outermost tile along an axis. */
static int64_t outer_tile(const struct work *w, const struct nest *n, int axis) {
    if (n->core < 0) return nest_grain(w, n, axis);
    int64_t tile = plan_tile(w, &n->plan, axis, n->plan.nloops);
    for (int i = n->plan.nloops - 1; i >= 0; i--)
        if (n->plan.loop[i].axis == axis) tile = n->plan.loop[i].tile;
    return tile;
}

/* A pair shares its own loops, but not those that its first nest walks in part again and again;
 * what registers hold whole is not shared. */
static bool may_share(const struct work *w, const struct nest *n, int axis) {
    for (int i = 0; n->core >= 0 && i < n->plan.nloops; i++)
        if (n->plan.loop[i].axis == axis) {
            if (loop_unrolled(w, n, &n->plan, i)) return false;
            break;
        }
    for (int i = 0; i < n->nwindows; i++)
        if (n->window[i].axis == axis) return false;
    for (int i = 0; i < n->nprefix; i++)
        if (n->prefix[i].axis == axis) return n->leads;
    return n->partner < 0;
}

void unit_ask(struct work *w, int nest) {
    struct nest *n = &w->nest[nest];
    const struct task *t = &w->task[n->core >= 0 ? n->core : n->chain[0]];
    double cycles =
        n->core >= 0 ? n->plan.cycles : (double)stmt_points(w->p, &w->p->stmt[t->stmt]) / 4;
    int64_t units = instances(w, t);
    double waking = w->m->unit[w->m->queue[t->needle->in->queue].unit].waking;
    struct candidate c[MAX_AXES + 1] = {{"none", cycles, NULL}};
    int axis[MAX_AXES], from[MAX_AXES + 1] = {-1}, m = 1;
    int64_t tile_of[MAX_AXES + 1] = {0}, parts[MAX_AXES + 1] = {0};
    int count = units < 2 ? 0 : result_axes(w, t->stmt, axis);
    for (int i = 0; i < count; i++) {
        int64_t tile = outer_tile(w, n, axis[i]), extent = w->p->axis[axis[i]].extent;
        if (!may_share(w, n, axis[i]) || tile < 1 || tile >= extent ||
            (t->reductions >> axis[i] & 1))
            continue;
        int64_t tiles = (extent + tile - 1) / tile, most = (tiles + units - 1) / units;
        from[m] = axis[i];
        tile_of[m] = tile;
        parts[m] = tiles < units ? tiles : units;
        c[m++] = (struct candidate){w->p->axis[axis[i]].name,
                                    waking + cycles * (double)most / (double)tiles, NULL};
    }
    int best = 0;
    for (int i = 1; i < m; i++)
        if (c[i].cost < c[best].cost) best = i;
    struct question q = {QUESTION_UNIT,
                         arena_printf(w->arena, "shared axis of statement %d", t->stmt), m, 0, c};
    if (m > 1 && w->decider) best = decide(w->decider, &q);
    n->plan.unit_axis = from[best] + 1;
    n->plan.unit_tile = tile_of[best];
    n->plan.unit_parts = parts[best];
}
