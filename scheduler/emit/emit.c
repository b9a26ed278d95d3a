/* One nest as a rolled tree in program order: where its copies stand, the loops over the instances
 * of units, and inside them its turns (core.c), alone or with the others of its group (group.c). */
#include "scheduler/emit/emit_int.h"
#include "scheduler/plan/price.h"
#include "scheduler/plan/tiling.h"
#include "scheduler/plan/geom.h"
#include "scheduler/plan/graph.h"
#include "scheduler/plan/limits.h"
#include "scheduler/plan/moves.h"
#include "scheduler/plan/needs.h"
#include "scheduler/plan/nest.h"
#include "scheduler/plan/plan.h"
#include "scheduler/plan/recur.h"
#include "scheduler/plan/rewrite.h"
#include "scheduler/plan/routes.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/val.h"
#include "scheduler/plan/work.h"
#include <string.h>

/* Outer copies of what operand i reads, and the fills along its route. */
static void place_route(struct emitter *e, int i, const struct access *acc, int64_t *at) {
    struct work *w = e->w;
    const struct opnd *o = &e->t->op[i];
    const struct plan *p = &e->nest->plan;
    int first = e->nfills;
    for (int k = 0; k <= o->in.n; k++) {
        const struct opnd *stop = opnd_stop(o, true, k);
        struct filling *f = &e->fill[e->nfills++];
        struct region r;
        *f = (struct filling){
            .operand = i, .level = k, .user = e->exec, .user_completes = e->exec_completes};
        f->hold = k < o->in.n ? &p->via[i][k] : &p->hold[i];
        f->held = k < o->in.n ? &e->via[i][k] : &e->held[i];
        f->outer = k ? f[-1].held : NULL;
        f->keeps = k == o->in.n && (f->hold->ring || f->hold->pinned);
        plan_region(w, p, e->t, acc, &stop->geom, f->hold->depth, &r);
        if (!k && o->firsts) {
            struct opnd *as = arena_copy(w->arena, stop, sizeof *as);
            as->geom.first =
                copy_price(w, e->moves, p, e->t, stop, acc, true, f->hold->depth, 0).first;
            stop = as;
        }
        f->stop = stop;
        f->queue = transfer_queue(w, e->moves, acc->buffer, stop, &r, true, f->hold->fill_by,
                                  &f->completes);
        if (f->queue < 0) e->unmoved = w->p->buffer[acc->buffer].name;
        f->held->queue = f->queue + 1;
        if (e->nfills - first > 1) {
            f[-1].user = f->queue;
            f[-1].user_completes = f->completes;
        }
        if (k == o->in.n) continue;
        f->held->slots = f->hold->slots;
        f->held->place = add_place(w, acc->buffer, stop->memory, stop->align, &at[stop->memory],
                                   slot_bytes(w, stop, &r), f->held->slots);
    }
}

/* Results, and what stays over several of them, first: the chain may use the rest of a register
 * file again. */
static void place_core(struct emitter *e, int64_t *at, bool lasting) {
    struct work *w = e->w;
    const struct plan *p = &e->nest->plan;
    int64_t bytes[MAX_OPERANDS] = {0}, fixed[MAX_OPERANDS];
    for (int i = 0; i < e->t->nops; i++) {
        const struct opnd *o = &e->t->op[i];
        if (o->where == IN_LOCAL)
            bytes[i] = hold_bytes(w, p, e->t, o, opnd_access(w, e->t, o), &p->hold[i]);
    }
    banks_plan(w, e->nest, bytes, fixed);
    for (int i = 0; i < e->t->nops; i++) /* what has no address of its own lies behind them */
        if (fixed[i] >= 0 && fixed[i] + bytes[i] > at[e->t->op[i].memory])
            at[e->t->op[i].memory] = fixed[i] + bytes[i];
    for (int i = 0; i < e->t->nops; i++) {
        const struct opnd *o = &e->t->op[i];
        bool lasts = o->writes || p->hold[i].depth < p->depth_out;
        if (o->where != IN_LOCAL || lasts != lasting) continue;
        const struct access *acc = opnd_access(w, e->t, o);
        struct region r;
        if (e->nest->kept >> i & 1) {
            e->held[i] = e->stay[i];
            continue;
        }
        e->held[i].slots = p->hold[i].ring || p->hold[i].pinned ? 1 : p->hold[i].slots;
        e->held[i].fill_by = p->hold[i].fill_by;
        e->held[i].drain_by = p->hold[i].drain_by;
        e->held[i].place = home_place(w, acc->buffer);
        if (i == e->nest->given) continue;
        plan_region(w, p, e->t, acc, &o->geom, p->hold[i].depth, &r);
        int64_t start = fixed[i] < 0 ? at[o->memory] : fixed[i];
        e->held[i].place = add_place(w, acc->buffer, o->memory, o->align, &start,
                                     bytes[i] / e->held[i].slots, e->held[i].slots);
        if (start > at[o->memory]) at[o->memory] = start;
        if (!o->writes) place_route(e, i, acc, at);
        if (!o->writes || !e->drained) continue;
        way_place(e, o, task_access(w, e->t, o, true)->buffer, &r, &r, p->hold[i].drain_by,
                  &e->out[0], at);
        e->store = e->out[0].queue[e->out[0].n];
        e->store_completes = e->out[0].completes[e->out[0].n];
    }
}

static int64_t copy_address(const struct emitter *e, struct chain_copy c) {
    return e->w->s->place[e->own[c.follower][c.operand].place].address;
}

static void place_chain(struct emitter *e, int64_t *at) {
    struct work *w = e->w;
    bool banks = banks_of_chain(w, e->nest);
    int64_t(*fixed)[MAX_OPERANDS] =
        arena_array(w->arena, (size_t)e->nest->nchain + 1, sizeof *fixed);
    for (int i = 0; i < e->nest->nchain; i++)
        for (int k = 0; k < MAX_OPERANDS; k++) fixed[i][k] = -1;
    if (banks) banks_chain(w, e->moves, e->nest, &e->nest->plan, at, fixed);
    for (int i = 0; i < e->nest->nchain; i++) {
        const struct task *t = &w->task[e->nest->chain[i].task];
        for (int k = 0; k < t->nops; k++) {
            const struct opnd *o = &t->op[k];
            const struct access *acc = o->where == IN_LOCAL ? opnd_access(w, t, o) : NULL;
            struct region r;
            if (!acc) continue;
            chain_region(w, &e->nest->plan, e->nest, t, o, &r);
            if (o->writes && e->nest->chain[i].leaves) {
                struct region all;
                chain_way_region(w, &e->nest->plan, e->nest, t, o, &all);
                way_place(e, o, w->p->stmt[t->stmt].dst.buffer, &r, &all, 0, &e->out[i + 1], at);
                e->out[i + 1].collects = e->nest->plan.collects && e->out[i + 1].n;
                if (e->store < 0) {
                    e->store = e->out[i + 1].queue[e->out[i + 1].n];
                    e->store_completes = e->out[i + 1].completes[e->out[i + 1].n];
                }
            }
            if (!chain_needs_hold(e->nest, i, k)) continue;
            e->own[i][k].slots = banks ? chain_slots_least(w, e->moves, e->nest, t, o)
                                       : chain_slots(w, e->moves, e->nest, &e->nest->plan, t, o);
            struct chain_copy over = chain_takes_over(w, &e->nest->plan, e->nest, i, k);
            int64_t there = over.follower >= 0 ? copy_address(e, over)
                            : fixed[i][k] >= 0 ? fixed[i][k]
                                               : at[o->memory];
            e->own[i][k].place = add_place(w, acc->buffer, o->memory, o->align, &there,
                                           slot_bytes(w, o, &r), e->own[i][k].slots);
            if (over.follower < 0 && there > at[o->memory]) at[o->memory] = there;
        }
    }
}

static bool nest_root(struct emitter *e, struct nodes *out, int arg) {
    (void)arg;
    return e->group ? emit_group(e, out) : nest_turn(e, out);
}

/* All axes whole, but for the part that the nest does and the steps of the recurrences around it.
 */
static void emitter_begin(struct emitter *e, struct work *w, const struct moves *moves, int nest,
                          struct held **stay) {
    const struct nest *n = &w->nest[nest];
    *e = (struct emitter){.w = w,
                          .moves = moves,
                          .nest = n,
                          .stay = stay[nest],
                          .t = n->core >= 0 ? &w->task[n->core] : NULL,
                          .store = -1,
                          .load = -1};
    e->own = arena_array(w->arena, (size_t)n->nchain + 1, sizeof *e->own);
    e->out = arena_array(w->arena, (size_t)n->nchain + 1, sizeof *e->out);
    e->made = arena_array(w->arena, (size_t)n->nchain + 1, sizeof *e->made);
    e->exec = w->task[nest_head(n)].needle->in->queue;
    e->chain = nest_chain_queue(w, n);
    w->emitted = w->task[nest_head(n)].stmt;
    for (int a = 0; a < w->p->naxes; a++) {
        int64_t extent = w->p->axis[a].extent;
        e->at[a] = (struct along){val_const(0), val_const(extent), extent, extent};
    }
    if (n->part_n) e->at[n->part_axis].lo = val_const(n->part_lo);
    for (int k = w->p->stmt[n->first].scope - 1; k >= 0; k = w->scope[k].parent) {
        e->at[w->scope[k].axis].lo = w->step[k];
        e->at[w->scope[k].axis].size = val_const(1);
    }
    for (int i = 0; i < MAX_OPERANDS; i++) e->held[i].place = -1;
    e->root = n->nprefix;
    e->store_completes = -1;
    e->exec_completes = e->t ? e->t->needle->in->completes : -1;
    e->drained = e->t && !n->nchain;
    e->parts_depth = -1;
}

/* Loops around the pieces in which copies are filled. */
static void find_parts(struct emitter *e) {
    int parts = e->nest->plan.parts;
    for (int i = 0; i < e->nfills && parts && parts != PARTS_AHEAD; i++)
        if (e->fill[i].hold->depth + parts - 1 > e->parts_depth)
            e->parts_depth = e->fill[i].hold->depth + parts - 1;
}

/* What lies at constant addresses begins there again. */
static void rewind_registers(const struct work *w, const int64_t *from, int64_t *at) {
    for (int m = 0; m < w->m->nmemories && m < MAX_MEMORIES; m++)
        if (graph_is_static(w->m, m)) at[m] = from ? from[m] : 0;
}

/* False after reporting. */
static bool places_fit(const struct emitter *e, const int64_t *at, const int64_t *top) {
    struct work *w = e->w;
    for (int m = 0; m < w->m->nmemories && m < MAX_MEMORIES; m++) {
        int64_t used = at[m] > top[m] ? at[m] : top[m];
        if (m != w->m->home && used > graph_capacity(w->m, m) &&
            used > w->m->memory[m].size - edge_objects(w->m, m) && w->m->memory[m].size >= 0) {
            const char *why = arena_printf(
                w->arena, "statement %d needs %lld bytes of memory '%s', which has %lld",
                w->emitted, (long long)used, w->m->memory[m].id, (long long)w->m->memory[m].size);
            return emit_refuse(w, why);
        }
    }
    return true;
}

/* Places of a nest from these addresses on, which advance. False after reporting. */
static bool emitter_open(struct emitter *e, struct work *w, const struct moves *moves, int nest,
                         struct held **stay, int64_t *at) {
    int64_t base[MAX_MEMORIES], top[MAX_MEMORIES];
    emitter_begin(e, w, moves, nest, stay);
    rewind_registers(w, NULL, at);
    if (e->t) place_core(e, at, true);
    memcpy(base, at, sizeof base);
    if (e->t) place_core(e, at, false);
    if (e->t) result_load(e);
    if (e->t) follow_place(e, at);
    memcpy(top, at, sizeof top);
    find_parts(e);
    rewind_registers(w, base, at);
    place_chain(e, at);
    tokens_share(e);
    results_root(e);
    flows_find(e);
    if (!places_fit(e, at, top)) return false;
    if (e->unmoved)
        return emit_refuse(w,
                           arena_printf(w->arena, "no move brings the tile of '%s'", e->unmoved));
    return true;
}

/* Along one axis the s-th of `parts` instances takes the tiles from ⌊n·s/parts⌋ to ⌊n·(s+1)/parts⌋;
 * of equal shares the size is a number. */
static void take_part(struct emitter *e, int axis, int64_t tile, int64_t parts, struct val s) {
    struct arena *a = &e->w->s->arena;
    int64_t extent = e->at[axis].size.c, tiles = (extent + tile - 1) / tile;
    bool equal = tiles % parts == 0;
    struct val from = equal ? val_scale(a, s, tiles / parts)
                            : val_div(a, val_scale(a, s, tiles), parts),
               begin = val_scale(a, from, tile);
    if (equal && extent % tile == 0) {
        e->at[axis].size = val_const(tiles / parts * tile);
    } else {
        struct val next = val_add(a, s, val_const(1)),
                   to = equal ? val_scale(a, next, tiles / parts)
                              : val_div(a, val_scale(a, next, tiles), parts),
                   end = val_scale(a, to, tile);
        if (extent % tile) end = val_make(a, SX_MIN, end, val_const(extent));
        e->at[axis].size = val_make(a, SX_SUB, end, begin);
        e->at[axis].size.max = (tiles + parts - 1) / parts * tile;
    }
    e->at[axis].lo = val_add(a, e->at[axis].lo, begin);
    e->at[axis].tile = tile;
    e->at[axis].extent = extent;
}

/* A parallel loop over the instances. */
static bool emit_shares(struct emitter *e, struct nodes *out, const struct share *h) {
    struct arena *a = &e->w->s->arena;
    int64_t tiles = (e->at[h->axis[0]].size.c + h->tile[0] - 1) / h->tile[0], all = h->parts[0];
    if (h->n == 1 && tiles % h->parts[0] == 0)
        return emit_loop(e, out, h->axis[0], tiles / h->parts[0] * h->tile[0], false, false,
                         nest_root, 0);
    if (h->n > 1) all *= h->parts[1];
    int var = new_var(e->w, e->w->m->unit[e->w->m->queue[e->exec].unit].id);
    struct val s = val_var(a, var, all - 1);
    struct along whole[2];
    for (int k = 0; k < h->n; k++) {
        whole[k] = e->at[h->axis[k]];
        struct val at = h->n < 2 ? s
                        : k      ? val_make(a, SX_MOD, s, val_const(h->parts[1]))
                                 : val_div(a, s, h->parts[1]);
        at.max = h->parts[k] - 1;
        take_part(e, h->axis[k], h->tile[k], h->parts[k], at);
    }
    struct nodes inner = {0};
    bool ok = nest_root(e, &inner, 0);
    nodes_add(
        e->w, out,
        loop_node(e->w, var, val_const(0), val_const(all), 1, LOOP_SEQUENTIAL, h->axis[0], &inner));
    for (int k = 0; k < h->n; k++) e->at[h->axis[k]] = whole[k];
    return ok;
}

/* Does an instance take several turns, one after the other? */
static bool turns_again(const struct emitter *e) {
    int unit[MAX_PREFIX];
    const struct machine *m = e->w->m;
    grid_units(e->w, grid_task(e->w, e->nest), unit);
    for (int d = 0; d < e->nest->nprefix; d++) {
        const struct loop *l = &e->nest->prefix[d];
        int64_t extent = e->w->p->axis[l->axis].extent;
        if (!m->unit[unit[d]].is_virtual && extent > l->tile * unit_instances(m, unit[d]))
            return true;
    }
    return false;
}

/* One turn, after those that stand before it outside of parallel loops: whole tiles and tails. */
static bool grid_turn(struct emitter *e, struct nodes *out) {
    struct work *w = e->w;
    struct nodes turn = {0};
    if (!(e->group ? group_turn : nest_turn)(e, &turn)) return false;
    uint64_t before = nodes_queues(w, out->at, out->n), after = nodes_queues(w, turn.at, turn.n);
    if (before && !add_barrier(w, out, before, after, e->exec)) return false;
    nodes_append(w, out, &turn);
    return !turns_again(e) || add_barrier(w, out, after, after, e->exec);
}

/* Does the node wait at a barrier of units around the one whose instances run the loop? They do not
 * meet there before the loop is over. */
static bool waits_around(const struct machine *m, const struct node *n, int unit) {
    if (n->kind != NODE_SYNC || n->sync.signals.npops != 1) return false;
    const struct sync *y = &m->sync[n->sync.signals.pop[0].sync];
    return y->kind == SYNC_BARRIER && y->barrier_unit != unit &&
           unit_inside(m, unit, y->barrier_unit);
}

/* Instances share nothing, so that what stands before such a barrier may be done by all of them
 * first: a parallel loop for each side of it. */
static void part_at_barriers(struct work *w, struct nodes *out, const struct loop_node *l) {
    int from = 0;
    for (int i = 0; i <= l->nbody; i++) {
        if (i < l->nbody && !waits_around(w->m, &l->body[i], l->unit)) continue;
        struct loop_node *part = arena_copy(&w->s->arena, l, sizeof *l);
        part->body = l->body + from;
        part->nbody = i - from;
        if (part->nbody) nodes_add(w, out, (struct node){.kind = NODE_LOOP, .loop = part});
        if (i < l->nbody) nodes_add(w, out, l->body[i]);
        from = i + 1;
    }
}

/* The loops of a grid around one turn. */
static bool grid_depth(struct emitter *e, struct nodes *out, int d) {
    const struct nest *n = e->nest;
    int unit[MAX_PREFIX], first = out->n;
    if (d == n->nprefix) return grid_turn(e, out);
    grid_units(e->w, grid_task(e->w, e->nest), unit);
    if (!emit_loop(e, out, n->prefix[d].axis, n->prefix[d].tile, n->plan.is_static, false,
                   grid_depth, d + 1))
        return false;
    struct nodes all = {.at = out->at + first, .n = out->n - first}, parted = {0};
    for (int i = 0; i < all.n; i++) {
        struct loop_node *l = all.at[i].kind == NODE_LOOP ? all.at[i].loop : NULL;
        if (!l || l->axis != n->prefix[d].axis || l->step != n->prefix[d].tile ||
            l->kind != LOOP_SEQUENTIAL) {
            nodes_add(e->w, &parted, all.at[i]);
            continue;
        }
        l->kind = LOOP_PARALLEL;
        l->unit = unit[d];
        part_at_barriers(e->w, &parted, l);
    }
    out->n = first;
    nodes_append(e->w, out, &parted);
    return true;
}

static struct emitter *emitter_new(struct arena *own, struct work *w, const struct moves *moves,
                                   int nest, struct held **stay, int64_t *at) {
    struct emitter *e = arena_alloc(own, sizeof *e);
    struct nest *n = &w->nest[nest];
    if (n->core >= 0) plan_arrange(w, n, &n->plan);
    return emitter_open(e, w, moves, nest, stay, at) ? e : NULL;
}

/* Of all nests of a group: the one whose emitter walks the shared loops. */
static struct emitter *team_open(struct arena *own, struct work *w, const struct moves *moves,
                                 int nest, struct held **stay, int64_t *at) {
    const struct nest_group *g = &w->group[w->nest[nest].group - 1];
    struct emitter **team = arena_array(own, (size_t)g->n, sizeof *team), *e = NULL;
    group_place(w, g, at);
    for (int m = 0; m < g->n; m++) {
        if (g->member[m].before || g->member[m].nest < 0) continue;
        team[m] = emitter_new(own, w, moves, g->member[m].nest, stay, at);
        if (!team[m]) return NULL;
        if (g->member[m].nest == nest) e = team[m];
    }
    e->group = g;
    e->team = team;
    return e;
}

static bool is_split(const struct emitter *e) {
    bool split = e->split;
    for (int m = 0; e->group && m < e->group->n; m++) split |= e->team[m] && e->team[m]->split;
    return split;
}

static bool emit_with(struct arena *own, struct work *w, const struct moves *moves, int nest,
                      struct held **stay, struct nodes *out) {
    struct nest *n = &w->nest[nest];
    int64_t at[MAX_MEMORIES] = {0};
    recur_start(w, n, at);
    struct emitter *e = (n->group ? team_open : emitter_new)(own, w, moves, nest, stay, at);
    if (!e) return false;
    struct nodes list = {0};
    bool ok;
    if (n->is_grid) {
        ok = fills_before(e, &list) && grid_depth(e, &list, 0);
    } else if (n->plan.share.n) {
        ok = emit_shares(e, &list, &n->plan.share);
        for (int i = 0; i < list.n; i++)
            if (list.at[i].kind == NODE_LOOP) {
                list.at[i].loop->kind = LOOP_PARALLEL;
                list.at[i].loop->unit = w->m->queue[e->exec].unit;
            }
    } else {
        ok = nest_root(e, &list, 0);
    }
    bool whole = !is_split(e);
    micro_make(w, &list, whole);
    if (ok && !tables_load(w, moves, &list, w->p->stmt[n->first].scope > 0)) return false;
    if (whole) nodes_hardware(w, list.at, list.n);
    nodes_fold(w, &list);
    *out = list;
    return ok || emit_fail(w, "queues that a nest joins have no sync between them");
}

bool emit_nest(struct work *w, const struct moves *moves, int nest, struct held **stay,
               struct nodes *out) {
    struct arena own;
    arena_init(&own);
    bool ok = emit_with(&own, w, moves, nest, stay, out);
    arena_free(&own);
    return ok;
}
