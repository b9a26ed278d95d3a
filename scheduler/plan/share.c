/* Parallel loops: the instances of a unit share the tiles of one or two axes of a result, in one
 * outermost loop over contiguous parts of them. The share is part of a plan's price, so that tiles
 * are found that divide well; here are also nests without a core, and the question. */
#include "scheduler/plan/nest.h"
#include "scheduler/plan/plan.h"
#include "scheduler/plan/price.h"
#include "scheduler/plan/rewrite.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/tiling.h"
#include "scheduler/plan/work.h"
#include <math.h>
#include <string.h>

/* Threads are those of a host, which find all memories where they are. Instances of a device have
 * some to themselves: they share grids (grid.c). */
int64_t share_instances(const struct work *w, const struct task *t) {
    int queue = t->needle->in->queue;
    if (!machine_queue_is_host(w->m, queue)) return 1;
    int64_t n = w->m->unit[w->m->queue[queue].unit].count;
    int threads = w->options ? w->options->threads : 0;
    return threads > 0 && threads < n ? threads : n;
}

static const struct task *first_task(const struct work *w, const struct nest *n) {
    return &w->task[nest_head(n)];
}

double share_waking(const struct work *w, const struct task *t) {
    return w->m->unit[w->m->queue[t->needle->in->queue].unit].waking;
}

/* The outermost tile along an axis. */
static int64_t outer_tile(const struct work *w, const struct nest *n, const struct plan *p,
                          int axis) {
    for (int i = 0; n->core < 0 && i < n->nprefix; i++)
        if (n->prefix[i].axis == axis) return n->prefix[i].tile;
    if (n->core < 0) return nest_grain(n, axis);
    for (int i = 0; i < p->nloops; i++)
        if (p->loop[i].axis == axis) return p->loop[i].tile;
    return plan_tile(w, p, axis, p->nloops);
}

/* A group shares its own loops, but not those that its first nest walks in part again and again,
 * nor those that one of its nests sums over; what registers hold whole is not shared. Of a later
 * nest the first one's loop is meant, which stands around all. */
static bool may_share(const struct work *w, const struct nest *n, const struct plan *p, int axis) {
    for (int i = 0; n->core >= 0 && i < p->nloops; i++)
        if (p->loop[i].axis == axis) {
            if (loop_unrolled(w, n, p, i)) return false;
            break;
        }
    if ((n->slid | n->summed) >> axis & 1) return false;
    for (int i = 0; i < n->nprefix; i++)
        if (n->prefix[i].axis == axis) return true;
    return !n->group;
}

/* Of the axis's extent what the busiest of so many instances has, whole tiles each. */
static double busiest_part(int64_t extent, int64_t tile, int64_t parts) {
    int64_t tiles = (extent + tile - 1) / tile, most = (tiles + parts - 1) / parts,
            has = most * tile;
    if (tiles % parts == 1 && parts > 1)
        has -= tiles * tile - extent; /* the last one, with a tail */
    return (double)(has < extent ? has : extent) / (double)extent;
}

struct shared_axis {
    int axis;
    int64_t extent, tile, tiles;
};

static int shared_axes(const struct work *w, const struct nest *n, const struct plan *p,
                       struct shared_axis *out) {
    const struct task *t = first_task(w, n);
    int axis[MAX_AXES], m = 0, count = result_axes(w, t->stmt, axis);
    for (int i = 0; i < count; i++) {
        int64_t extent = w->p->axis[axis[i]].extent, tile = outer_tile(w, n, p, axis[i]);
        if ((t->reductions >> axis[i] & 1) || tile < 1 || tile >= extent ||
            !may_share(w, n, p, axis[i]))
            continue;
        out[m++] = (struct shared_axis){axis[i], extent, tile, (extent + tile - 1) / tile};
    }
    return m;
}

static struct share of_one(const struct shared_axis *a, int64_t units) {
    struct share s = {.n = 1, .axis = {a->axis}, .tile = {a->tile}};
    s.parts[0] = a->tiles < units ? a->tiles : units;
    s.of[0] = s.part = busiest_part(a->extent, a->tile, s.parts[0]);
    return s;
}

/* Of all ways to split the instances over two axes that with the least busy one; n 0: none is
 * better than `than`. */
static struct share of_two(const struct shared_axis *a, const struct shared_axis *b, int64_t units,
                           double than) {
    struct share best = {.part = than};
    for (int64_t k = 2; k <= units / 2 && k <= a->tiles; k++) {
        int64_t rest = units / k < b->tiles ? units / k : b->tiles;
        double of_a = busiest_part(a->extent, a->tile, k),
               of_b = busiest_part(b->extent, b->tile, rest);
        if (of_a * of_b >= best.part || rest < 2) continue;
        best = (struct share){2,         {a->axis, b->axis}, {a->tile, b->tile},
                              {k, rest}, {of_a, of_b},       of_a * of_b};
    }
    return best;
}

/* None, each axis alone, and the best pair. */
static int shares_list(const struct work *w, const struct nest *n, const struct plan *p,
                       struct share *out) {
    const struct task *t = first_task(w, n);
    struct shared_axis a[MAX_AXES];
    int64_t units = share_instances(w, t);
    int axes = units > 1 && !n->is_grid ? shared_axes(w, n, p, a) : 0, m = 1;
    double least = 1;
    out[0] = (struct share){.part = 1};
    for (int i = 0; i < axes; i++) {
        out[m] = of_one(&a[i], units);
        least = fmin(least, out[m++].part);
    }
    struct share two = {.part = least};
    for (int i = 0; i < axes && units > 3 && least * (double)units > 1; i++)
        for (int k = i + 1; k < axes; k++) {
            struct share s = of_two(&a[i], &a[k], units, two.part);
            if (s.n) two = s;
        }
    if (two.n) out[m++] = two;
    return m;
}

struct share share_best(const struct work *w, const struct nest *n, const struct plan *p) {
    struct share all[MAX_SHARES];
    int m = shares_list(w, n, p, all), best = 0;
    for (int i = 1; i < m; i++)
        if (all[i].part < all[best].part) best = i;
    return all[best];
}

static const char *share_name(struct work *w, const struct share *s) {
    if (!s->n) return "none";
    const char *first = w->p->axis[s->axis[0]].name;
    return s->n < 2 ? first : arena_printf(w->arena, "%s,%s", first, w->p->axis[s->axis[1]].name);
}

static bool same_share(const struct share *a, const struct share *b) {
    for (int k = 0; k < a->n; k++)
        if (a->axis[k] != b->axis[k] || a->parts[k] != b->parts[k]) return false;
    return a->n == b->n;
}

/* Of a nest of elementwise statements: as the mapper priced them. */
static double chain_cycles(const struct work *w, const struct nest *n) {
    double sum = 0;
    for (int i = 0; i < n->nchain; i++) sum += task_cost(w, n->chain[i].task);
    return sum;
}

void unit_ask(struct work *w, int nest) {
    struct nest *n = &w->nest[nest];
    const struct task *t = first_task(w, n);
    struct share all[MAX_SHARES];
    struct candidate c[MAX_SHARES];
    double whole = n->core >= 0 ? n->plan.whole : chain_cycles(w, n);
    bool second = n->group && !n->leads;
    int best = 0, m = second ? 0 : shares_list(w, n, &n->plan, all);
    for (int i = 0; i < m; i++) {
        bool priced = n->core >= 0 && same_share(&all[i], &n->plan.share);
        double cycles = i ? share_waking(w, t) + whole * all[i].part : whole;
        if (n->core >= 0) cycles = priced ? n->plan.predicted : fmax(cycles, n->plan.predicted);
        c[i] = (struct candidate){share_name(w, &all[i]), cycles, NULL};
        if (c[i].cost < c[best].cost || (priced && c[i].cost == c[best].cost)) best = i;
    }
    if (m > 1)
        best = work_ask(w, QUESTION_UNIT,
                        arena_printf(w->arena, "shared axis of statement %d", t->stmt), c, m, best);
    n->plan.share = m ? all[best] : (struct share){.part = 1};
}
