/* Grids: a nest whose result's tiles are shared by instances of units that each have the memories
 * of its copies to themselves. The loops over tiles stand outside of the plan, which is made for
 * one. */
#include "scheduler/plan/graph.h"
#include "scheduler/plan/limits.h"
#include "scheduler/plan/moves.h"
#include "machines/needle.h"
#include "ir/number.h"
#include "scheduler/plan/nest.h"
#include "scheduler/plan/plan.h"
#include "scheduler/plan/rewrite.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/tiling.h"
#include "scheduler/plan/work.h"
#include <math.h>
#include <string.h>

/* Whose axes the tiles are of. */
const struct task *grid_task(const struct work *w, const struct nest *n) {
    return &w->task[nest_head(n)];
}

/* ---- which units ---- */

/* A memory that is no instance's: copies in it are whole, and filled before the instances begin. */
static bool is_outer(const struct machine *m, int memory) {
    for (int u = m->memory[memory].unit; u > 0; u = m->unit[u].parent)
        if (m->unit[u].is_virtual || unit_instances(m, u) > 1) return false;
    return true;
}

static bool passes_inside(const struct work *w, const struct route *r, int unit, bool outer) {
    for (int k = 0; k < r->n; k++) {
        bool inside = unit_inside(w->m, w->m->memory[r->memory[k]].unit, unit);
        if (!inside && !(outer && is_outer(w->m, r->memory[k]))) return false;
    }
    return true;
}

/* Are all local operands private to an instance of the unit, with the copies on their ways? outer:
 * some of these may be in memories that all instances share. */
static bool holds_all(const struct work *w, const struct task *t, int unit, bool outer) {
    for (int i = 0; i < t->nops; i++)
        if (t->op[i].where == IN_LOCAL &&
            (!unit_inside(w->m, w->m->memory[t->op[i].memory].unit, unit) ||
             !passes_inside(w, &t->op[i].in, unit, outer) ||
             !passes_inside(w, &t->op[i].out, unit, false)))
            return false;
    return true;
}

/* Is there room for all operands, whole, in the memories that instances share? */
static bool outer_fits(const struct work *w, const struct task *t) {
    int64_t bytes[MAX_MEMORIES] = {0};
    for (int i = 0; i < t->nops; i++) {
        const struct opnd *o = &t->op[i];
        if (o->where != IN_LOCAL || o->writes) continue;
        int b = opnd_access(w, t, o)->buffer;
        int64_t whole = (int64_t)type_size(w->p->buffer[b].type);
        for (int d = 0; d < w->p->buffer[b].ndims; d++)
            whole *= (w->p->buffer[b].extent[d] + o->geom.block[d] - 1) / o->geom.block[d] *
                     o->geom.block[d];
        for (int k = 0; k < o->in.n; k++)
            if (is_outer(w->m, o->in.memory[k])) bytes[o->in.memory[k]] += whole;
    }
    for (int m = 0; m < w->m->nmemories; m++)
        if (bytes[m] > w->capacity[m]) return false;
    return true;
}

int grid_units(const struct work *w, const struct task *t, int *unit) {
    int n = 0, path[MAX_PREFIX], depth = 0;
    bool outer = outer_fits(w, t);
    for (int u = w->m->queue[t->needle->in->queue].unit; u > 0; u = w->m->unit[u].parent) {
        const struct unit *x = &w->m->unit[u];
        bool several = x->is_virtual || x->count_max > x->count ||
                       (x->count > 1 && !machine_queue_is_host(w->m, t->needle->in->queue));
        if (several && holds_all(w, t, u, outer) && depth < MAX_PREFIX) path[depth++] = u;
    }
    while (depth > 0) unit[n++] = path[--depth];
    return n;
}

bool grid_is_open(const struct work *w, const struct nest *n) {
    int unit[MAX_PREFIX], units = n->is_grid ? grid_units(w, grid_task(w, n), unit) : 0;
    for (int k = 0; k < units; k++)
        if (w->m->unit[unit[k]].is_virtual) return true;
    return false;
}

bool grid_shares(const struct work *w, const struct nest *n, int memory) {
    return n->is_grid && is_outer(w->m, memory);
}

bool grid_fills_before(const struct work *w, const struct nest *n) {
    const struct task *t = grid_task(w, n);
    for (int i = 0; i < t->nops; i++)
        for (int k = 0; t->op[i].where == IN_LOCAL && k < t->op[i].in.n; k++)
            if (grid_shares(w, n, t->op[i].in.memory[k])) return true;
    return false;
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

/* Copies begin where blocks of their operands do. */
static int64_t block_grain(const struct work *w, const struct task *t, int axis) {
    int64_t grain = 1;
    for (int i = 0; i < t->nops; i++)
        if (t->op[i].where == IN_LOCAL)
            grain =
                least_multiple(grain, blocks_along(w, t, &t->op[i], axis, ~t->op[i].geom.loose));
    return grain;
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
        if (nest->nchain && nest_grain(nest, a) > grain) grain = nest_grain(nest, a);
        grain = least_multiple(grain, block_grain(w, t, a));
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

/* Of what varies with the axes, elements in one tile. */
static double in_tile(const struct work *w, const struct grid_axis *ax, int n, uint64_t axes) {
    double elements = 1;
    for (int a = 0; a < w->p->naxes; a++) {
        double extent = (double)w->p->axis[a].extent;
        for (int k = 0; k < n; k++)
            if (ax[k].axis == a) extent = fmin(extent, (double)ax[k].tile);
        if (axes >> a & 1) elements *= extent;
    }
    return elements;
}

/* Turns of the busiest instance, each of a tile's elements and of its edges: what each operand has
 * along the axes of the result. */
static double score(const struct work *w, const struct task *t, const struct grid_axis *ax, int n,
                    int64_t instances, double edge) {
    const struct stmt *st = &w->p->stmt[t->stmt];
    uint64_t result = st->axes & ~t->reductions;
    double tiles = 1, edges = 0;
    for (int k = 0; k < n; k++) tiles *= (double)tiles_of(w, ax[k].axis, ax[k].tile);
    for (int i = 0; i < t->nops; i++) {
        if (t->op[i].where != IN_LOCAL || t->op[i].writes) continue;
        uint64_t along = 0;
        for (int a = 0; a < w->p->naxes; a++)
            if (access_varies(w->p, opnd_access(w, t, &t->op[i]), a)) along |= UINT64_C(1) << a;
        edges += in_tile(w, ax, n, along & result);
    }
    return ceil(tiles / (double)instances) * (in_tile(w, ax, n, result) + edge * edges);
}

/* The next larger one; 0: no more. Where instances are so many as tiles there are no tails if
 * grains have none; of a known number each may have one tile, whatever is left for the last. */
static int64_t next_tile(const struct work *w, const struct grid_axis *a, int64_t tile,
                         int64_t known) {
    int64_t extent = w->p->axis[a->axis].extent, grains = tiles_of(w, a->axis, a->grain),
            even = known > 1 ? (grains + known - 1) / known * a->grain : 0;
    for (int k = 0; k < 16 && tile < extent; k++) {
        int64_t before = tile;
        tile = tile < 4 * a->grain ? tile + a->grain : 2 * tile;
        if (even > before && even < tile) return even;
        if (extent % a->grain || extent % tile == 0 || tile == even) return tile;
    }
    return 0;
}

static int64_t turns(const struct work *w, const struct grid_axis *ax, int n) {
    int64_t all = 1;
    for (int k = 0; k < n; k++) all *= tiles_of(w, ax[k].axis, ax[k].tile);
    return all;
}

/* known: how many instances there are, each of which takes one turn, so that none of them waits for
 * all of its queues; 0: as many as tiles. A turn's own loops cut what does not fit then. */
static void choose(const struct work *w, const struct task *t, struct grid_axis *ax, int n,
                   int64_t instances, int64_t known, double edge) {
    struct grid_axis now[2] = {ax[0], ax[1]};
    double least = INFINITY;
    for (now[0].tile = ax[0].grain; now[0].tile;
         now[0].tile = next_tile(w, &ax[0], now[0].tile, known))
        for (now[1].tile = n > 1 ? ax[1].grain : 1; now[1].tile;
             now[1].tile = n > 1 ? next_tile(w, &ax[1], now[1].tile, known) : 0) {
            double s = score(w, t, now, n, instances, edge);
            if (s >= least || (known ? turns(w, now, n) > known : !fits(w, t, now, n))) continue;
            least = s;
            for (int k = 0; k < n; k++) ax[k].tile = now[k].tile;
        }
    for (int k = 0; k < n; k++) ax[k].tiles = tiles_of(w, ax[k].axis, ax[k].tile);
}

int64_t grid_instances(const struct work *w, const struct nest *n) {
    int unit[MAX_PREFIX];
    return n->is_grid ? at_once(w, unit, grid_units(w, grid_task(w, n), unit)) : 1;
}

/* Of the nest's points those of the busiest instance, which has whole tiles. */
double grid_part(const struct work *w, const struct nest *n) {
    if (!n->is_grid) return 1;
    double tiles = 1, tile = 1, instances = (double)grid_instances(w, n);
    for (int k = 0; k < n->nprefix; k++) {
        int axis = n->prefix[k].axis;
        tiles *= (double)tiles_of(w, axis, n->prefix[k].tile);
        tile *= (double)n->prefix[k].tile / (double)w->p->axis[axis].extent;
    }
    return fmin(ceil(tiles / instances) * tile, 1);
}

/* What starts the sums, and what follows them, is private to the instances too. */
static bool all_private(const struct work *w, const struct nest *n, const int *unit, int units) {
    bool all = units > 0;
    for (int k = 0; k < units; k++) {
        all = all && (n->init < 0 || holds_all(w, &w->task[n->init], unit[k], false));
        for (int i = 0; i < n->nchain && all; i++)
            all = holds_all(w, &w->task[n->chain[i].task], unit[k], false);
    }
    return all;
}

bool grid_possible(const struct work *w, const struct nest *n) {
    int unit[MAX_PREFIX], units = grid_units(w, grid_task(w, n), unit);
    return n->is_grid || (!n->alone && units > 0 && at_once(w, unit, units) > 1);
}

/* The loops of a grid for the nest, as its prefix; none where one instance does all. Copies that
 * stay over the steps of a recurrence are one instance's. */
void grid_decide(struct work *w, const struct moves *moves, struct nest *n) {
    const struct task *t = grid_task(w, n);
    int unit[MAX_PREFIX], units = grid_units(w, t, unit);
    struct grid_axis ax[2];
    if (n->alone || n->kept || !all_private(w, n, unit, units)) return;
    int64_t instances = at_once(w, unit, units);
    int axes = find_axes(w, n, ax);
    if (axes > units) axes = units;
    if (axes < 1 || instances < 2) return;
    bool counted = true;
    for (int k = 0; k < units; k++) counted = counted && !w->m->unit[unit[k]].is_virtual;
    choose(w, t, ax, axes, instances, counted ? instances : 0, edge_weight(w, moves, t));
    if (axes == 2 && ax[1].tiles > ax[0].tiles) {
        struct grid_axis swap = ax[0];
        ax[0] = ax[1];
        ax[1] = swap;
    }
    for (int k = 0; k < axes && counted; k++)
        if (ax[k].tiles > unit_instances(w->m, unit[k])) return;
    for (int k = 0; k < axes && ax[k].tiles > 1; k++)
        n->prefix[n->nprefix++] = (struct loop){ax[k].axis, ax[k].tile, LOOP_PARALLEL};
    n->is_grid = n->nprefix > 0;
}

void grid_leave(struct nest *n) {
    n->is_grid = false;
    n->nprefix = 0;
    n->alone = true;
}
