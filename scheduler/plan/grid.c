/* Grids: a nest whose result's tiles are shared by instances of units that each have the memories
 * of its copies to themselves. The loops over tiles stand outside of the plan, which is made for
 * one. */
#include "scheduler/plan/graph.h"
#include "scheduler/plan/limits.h"
#include "scheduler/plan/moves.h"
#include "machines/needle.h"
#include "scheduler/plan/nest.h"
#include "scheduler/plan/plan.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/work.h"
#include <math.h>
#include <string.h>

/* Whose axes the tiles are of. */
const struct task *grid_task(const struct work *w, const struct nest *n) {
    return &w->task[n->core >= 0 ? n->core : n->chain[0]];
}

static bool passes_inside(const struct work *w, const struct route *r, int unit) {
    for (int k = 0; k < r->n; k++)
        if (!unit_inside(w->m, w->m->memory[r->memory[k]].unit, unit)) return false;
    return true;
}

/* Are all local operands private to an instance of the unit, with the copies on their ways? */
static bool holds_all(const struct work *w, const struct task *t, int unit) {
    for (int i = 0; i < t->nops; i++)
        if (t->op[i].where == IN_LOCAL &&
            (!unit_inside(w->m, w->m->memory[t->op[i].memory].unit, unit) ||
             !passes_inside(w, &t->op[i].in, unit) || !passes_inside(w, &t->op[i].out, unit)))
            return false;
    return true;
}

int grid_units(const struct work *w, const struct task *t, int *unit) {
    int n = 0, path[MAX_PREFIX], depth = 0;
    for (int u = w->m->queue[t->needle->in->queue].unit; u > 0; u = w->m->unit[u].parent) {
        const struct unit *x = &w->m->unit[u];
        bool chosen = x->is_virtual || x->count_max > x->count;
        if (chosen && holds_all(w, t, u) && depth < MAX_PREFIX) path[depth++] = u;
    }
    while (depth > 0) unit[n++] = path[--depth];
    return n;
}

/* Instances that work at once. */
static int64_t at_once(const struct work *w, const int *unit, int n) {
    int64_t most = 1, limit = INT64_MAX;
    for (int i = 0; i < n; i++) {
        const struct unit *u = &w->m->unit[unit[i]];
        if (u->total > 0 && u->total < limit) limit = u->total;
        if (!u->is_virtual) most *= unit_instances(w->m, unit[i]);
    }
    bool any = false; /* as many as there are */
    for (int i = 0; i < n; i++) any |= w->m->unit[unit[i]].is_virtual;
    if (limit == INT64_MAX) return most;
    return any || most > limit ? limit : most;
}

struct grid_axis {
    int axis;
    int64_t grain, tile, tiles;
};

static int64_t tiles_of(const struct work *w, int axis, int64_t tile) {
    return (w->p->axis[axis].extent + tile - 1) / tile;
}

/* Tiles are whole grains of all statements of the nest. */
static int find_axes(const struct work *w, const struct nest *nest, struct grid_axis *out) {
    const struct task *t = grid_task(w, nest);
    const struct stmt *st = &w->p->stmt[t->stmt];
    int n = 0;
    for (int a = 0; a < w->p->naxes; a++) {
        if (!(st->axes >> a & 1) || (t->reductions >> a & 1)) continue;
        bool fixed;
        int64_t grain = task_grain(t, a, &fixed);
        if (nest->nchain && nest_grain(w, nest, a) > grain) grain = nest_grain(w, nest, a);
        if (tiles_of(w, a, grain) < 2) continue;
        struct grid_axis one = {a, grain, grain, tiles_of(w, a, grain)};
        int at = n < 2 ? n++ : 2;
        while (at > 0 && out[at - 1].tiles < one.tiles) {
            if (at < 2) out[at] = out[at - 1];
            at--;
        }
        if (at < 2) out[at] = one;
    }
    return n;
}

/* Does a tile of the result fit its memory? */
static bool fits(const struct work *w, const struct task *t, const struct grid_axis *ax, int n) {
    for (int i = 0; i < t->nops; i++) {
        const struct opnd *o = &t->op[i];
        if (!o->writes || o->where != IN_LOCAL) continue;
        double bytes = (double)o->geom.tile * (double)type_size(o->decl->type);
        for (int k = 0; k < n; k++) bytes *= ceil((double)ax[k].tile / (double)ax[k].grain);
        if (bytes > (double)graph_capacity(w->m, o->memory)) return false;
    }
    return true;
}

/* Cycles until a move has brought an element, at the rate of the memory that it fills. */
static double load_cycles(const struct work *w, const struct moves *moves, const struct opnd *o) {
    double least = INFINITY, interval, rate = w->m->memory[o->memory].rate;
    for (int i = 0; i < moves->n; i++) {
        const struct needle *nd = moves->at[i].needle;
        if (!move_fills(nd->in, o->memory)) continue;
        instr_times(w->m, nd->in, nd->bound, NULL, NULL, &interval, NULL);
        least = fmin(least, interval / (double)stmt_points(nd->bound, &nd->bound->stmt[0]));
    }
    return fmax(isinf(least) ? 0 : least, rate > 0 ? (double)type_size(o->decl->type) / rate : 0);
}

/* Elements of the result, in each step of the sums, that cost what one along the tile's edges does,
 * which is loaded. */
static double edge_weight(const struct work *w, const struct moves *moves, const struct task *t) {
    const struct program *b = t->needle->bound;
    double interval, load = 0;
    instr_times(w->m, t->needle->in, b, NULL, NULL, &interval, NULL);
    for (int i = 0; i < t->nops; i++)
        if (t->op[i].where == IN_LOCAL && !t->op[i].writes)
            load = fmax(load, load_cycles(w, moves, &t->op[i]));
    return interval > 0 ? load * (double)stmt_points(b, &b->stmt[b->nstmts - 1]) / interval : 0;
}

/* Turns of the busiest instance, each of a tile's elements and of its edges. */
static double score(const struct work *w, const struct grid_axis *ax, int n, int64_t instances,
                    double edge) {
    double tiles = 1, area = 1, edges = 0;
    for (int k = 0; k < n; k++) {
        tiles *= (double)tiles_of(w, ax[k].axis, ax[k].tile);
        area *= (double)ax[k].tile;
        edges += (double)ax[k].tile;
    }
    return ceil(tiles / (double)instances) * (area + edge * edges);
}

/* The next larger one; without tails where grains have none. 0: no more. */
static int64_t next_tile(const struct work *w, const struct grid_axis *a, int64_t tile) {
    int64_t extent = w->p->axis[a->axis].extent;
    for (int k = 0; k < 16 && tile < extent; k++) {
        tile = tile < 4 * a->grain ? tile + a->grain : 2 * tile;
        if (extent % a->grain || extent % tile == 0) return tile;
    }
    return 0;
}

static void choose(const struct work *w, const struct task *t, struct grid_axis *ax, int n,
                   int64_t instances, double edge) {
    struct grid_axis now[2] = {ax[0], ax[1]};
    double least = INFINITY;
    for (now[0].tile = ax[0].grain; now[0].tile; now[0].tile = next_tile(w, &ax[0], now[0].tile))
        for (now[1].tile = n > 1 ? ax[1].grain : 1; now[1].tile;
             now[1].tile = n > 1 ? next_tile(w, &ax[1], now[1].tile) : 0) {
            double s = score(w, now, n, instances, edge);
            if (s >= least || !fits(w, t, now, n)) continue;
            least = s;
            for (int k = 0; k < n; k++) ax[k].tile = now[k].tile;
        }
    for (int k = 0; k < n; k++) ax[k].tiles = tiles_of(w, ax[k].axis, ax[k].tile);
}

int64_t grid_instances(const struct work *w, const struct nest *n) {
    int unit[MAX_PREFIX];
    return n->is_grid ? at_once(w, unit, grid_units(w, grid_task(w, n), unit)) : 1;
}

/* Of the nest's tiles those of the busiest instance. */
double grid_part(const struct work *w, const struct nest *n) {
    if (!n->is_grid) return 1;
    double tiles = 1, instances = (double)grid_instances(w, n);
    for (int k = 0; k < n->nprefix; k++)
        tiles *= (double)tiles_of(w, n->prefix[k].axis, n->prefix[k].tile);
    return ceil(tiles / instances) / tiles;
}

/* What starts the sums, and what follows them, is private to the instances too. */
static bool all_private(const struct work *w, const struct nest *n, const int *unit, int units) {
    bool all = units > 0;
    for (int k = 0; k < units; k++) {
        all = all && (n->init < 0 || holds_all(w, &w->task[n->init], unit[k]));
        for (int i = 0; i < n->nchain && all; i++)
            all = holds_all(w, &w->task[n->chain[i]], unit[k]);
    }
    return all;
}

/* The loops of a grid for the nest, as its prefix; none where one instance does all. */
void grid_decide(struct work *w, const struct moves *moves, int nest) {
    struct nest *n = &w->nest[nest];
    const struct task *t = grid_task(w, n);
    int unit[MAX_PREFIX], units = grid_units(w, t, unit);
    struct grid_axis ax[2];
    if (!all_private(w, n, unit, units)) return;
    int64_t instances = at_once(w, unit, units);
    int axes = find_axes(w, n, ax);
    if (axes > units) axes = units;
    if (axes < 1 || instances < 2) return;
    choose(w, t, ax, axes, instances, edge_weight(w, moves, t));
    if (axes == 2 && ax[1].tiles > ax[0].tiles) {
        struct grid_axis swap = ax[0];
        ax[0] = ax[1];
        ax[1] = swap;
    }
    for (int k = 0; k < axes && ax[k].tiles > 1; k++)
        n->prefix[n->nprefix++] = (struct loop){ax[k].axis, ax[k].tile, LOOP_PARALLEL};
    n->is_grid = n->nprefix > 0;
}
