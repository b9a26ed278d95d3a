/* Results of a nest: what they begin with, and how the queue that stores them keeps in step with
 * the one that begins them (SCHEDULING §5). Who begins a result waits for a credit of its slot,
 * which the storing queue gives once it has read it. */
#include "scheduler/emit/emit_int.h"
#include "scheduler/plan/attach.h"
#include "scheduler/plan/tiling.h"
#include "scheduler/plan/graph.h"
#include "scheduler/plan/nest.h"
#include "scheduler/plan/plan.h"
#include "scheduler/plan/rewrite.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/geom.h"
#include "scheduler/plan/val.h"
#include "scheduler/plan/work.h"
#include <limits.h>

static struct edge told_edge(const struct emitter *e) {
    return link_there(e, result_link(e));
}

/* Who stored a result tells who begins the next one in its slot. */
static struct edge credit_edge(const struct emitter *e) {
    return link_back(e, e->load_ahead ? start_link(e) : result_link(e));
}

static bool lends(const struct emitter *e) {
    struct edge back = credit_edge(e);
    if (e->inside) return e->store >= 0;
    return e->store >= 0 && (e->load_ahead || !same_tokens(e)) && !in_step(e, &back);
}

static bool takes_credits(const struct emitter *e) {
    return e->drained && lends(e);
}

/* What follows runs on another queue: the core's next result in a slot waits for its credit. */
static bool hands(const struct emitter *e) {
    return e->t && e->chain != e->exec;
}

/* Slots of the core's result that stand free at first; 0: the queues go in step. */
static int hand_credits(const struct emitter *e) {
    struct edge there = link_there(e, hand_link(e)), back = link_back(e, hand_link(e));
    if (!hands(e) || in_step(e, &back)) return 0;
    for (int i = 0; i < e->t->nops; i++)
        if (e->t->op[i].writes)
            return within_depth(e->w->m, within_depth(e->w->m, e->held[i].slots, &back), &there);
    return 0;
}

/* How often results are begun at that depth while their credits last. */
static double result_trips(const struct emitter *e, int d) {
    const struct plan *p = &e->nest->plan;
    return plan_trips(e->w, p, d) / plan_trips(e->w, p, e->root);
}

/* 1 when the reductions outside of depth d are not at their first (last) block. */
static struct val other_block(struct emitter *e, int d, bool last) {
    struct work *w = e->w;
    struct arena *a = &w->s->arena;
    const struct plan *p = &e->nest->plan;
    struct val any = val_const(0);
    for (int x = 0; x < w->p->naxes; x++) {
        if (!(e->t->reductions >> x & 1) || plan_tiles(w, p, x, d) <= 1) continue;
        struct val end = val_add(a, e->at[x].lo, e->at[x].size);
        any = val_make(a, SX_OR, any,
                       last ? val_make(a, SX_LT, end, val_const(w->p->axis[x].extent))
                            : val_make(a, SX_NE, e->at[x].lo, val_const(0)));
    }
    return any;
}

/* Where another queue brings what the sums start with, it waits for the slot and tells the
 * instructions. */
static bool load_begins(struct emitter *e, struct nodes *out) {
    return e->load < 0 || e->load_ahead || add_signal(e->w, out, e->exec, e->load);
}

static bool load_ends(struct emitter *e, struct nodes *out) {
    if (e->load < 0) return true;
    struct link to_exec = {e->load, e->load_completes, e->exec, e->exec_completes};
    struct edge x = link_there(e, to_exec);
    return edge_pass(e->w, out, &x);
}

/* The first block of a cut reduction starts the result, later ones fetch it back. */
static bool start_value(struct emitter *e, struct nodes *out, int i, int d) {
    struct work *w = e->w;
    const struct opnd *o = &e->t->op[i];
    const struct held *h = &e->held[i];
    struct val later =
        nest_begins_at_home(e->w, e->nest, o) ? val_const(1) : other_block(e, d, false);
    struct nodes init = {0}, fill = {0};
    if (!load_begins(e, out)) return false;
    if (e->nest->init >= 0 && !tile_emit(e, &init, &w->task[e->nest->init], &e->held[i], NULL))
        return false;
    int sums = w->p->stmt[e->t->stmt].dst.buffer;
    if (attached_at(o, FILLS) &&
        (!emit_transfer(w, e->moves, &init, sums, o, h, NULL, &h->whole, true) ||
         !load_ends(e, &init)))
        return false;
    nodes_when(w, out, val_make(&w->s->arena, SX_EQ, later, val_const(0)), "once", &init);
    if (val_is(later, 0)) return true;
    int buffer = opnd_access(w, e->t, o)->buffer;
    if (!emit_transfer(w, e->moves, &fill, buffer, o, h, NULL, &h->whole, true)) return false;
    if (!load_ends(e, &fill)) return false;
    nodes_when(w, out, later, "once", &fill);
    return true;
}

bool result_start(struct emitter *e, struct nodes *out, int i, int d) {
    struct work *w = e->w;
    const struct opnd *o = &e->t->op[i];
    struct held *h = &e->held[i];
    struct edge there = told_edge(e), back = credit_edge(e);
    struct signal channel = credit_channel(e, &there, &back, h);
    bool again = (result_trips(e, d) > 1 || back.kind == EDGE_FENCE) && takes_credits(e);
    struct edge handed = link_back(e, hand_link(e));
    if (again && !channel.rotating) edge_take(w, out, &back, channel);
    if (hand_credits(e)) edge_take(w, out, &handed, edge_plain(w, &handed));
    renew_place(e, h);
    if (h->slots > 1) add_rotate(w, out, h->place);
    if (again && channel.rotating) edge_take(w, out, &back, channel);
    region_here(e, e->t, o, task_access(w, e->t, o, true), &h->whole);
    h->slot = slot_make(&w->s->arena, &o->geom, &h->whole);
    e->made[0].buffer = w->p->stmt[e->t->stmt].dst.buffer;
    e->made[0].held = h;
    e->nmade = 1;
    return start_value(e, out, i, d);
}

/* What follows the result runs after the last block; partial sums of the others go home. */
static bool follow_result(struct emitter *e, struct nodes *out, int i, int d) {
    struct work *w = e->w;
    struct nodes chain = {0}, spill = {0};
    struct val more = other_block(e, d, true);
    struct edge there = link_there(e, hand_link(e)), back = link_back(e, hand_link(e));
    if (!ways_collect(e, &chain, true) || !grain_loops(e, &chain, 0) ||
        !ways_collect(e, &chain, false))
        return false;
    if (hands(e) && !edge_pass(w, out, &there)) return false;
    nodes_when(w, out, val_make(&w->s->arena, SX_EQ, more, val_const(0)), "once", &chain);
    if (hands(e)) edge_give(w, out, &back, edge_plain(w, &back));
    if (hands(e) && !hand_credits(e)) edge_take(w, out, &back, edge_plain(w, &back));
    if (val_is(more, 0)) return true;
    if (!emit_transfer(w, e->moves, &spill, w->p->stmt[e->t->stmt].dst.buffer, &e->t->op[i],
                       &e->held[i], NULL, &e->held[i].whole, false))
        return false;
    nodes_when(w, out, more, "once", &spill);
    return true;
}

bool result_finish(struct emitter *e, struct nodes *out, int i, int d) {
    struct work *w = e->w;
    const struct opnd *o = &e->t->op[i];
    if (e->nest->nchain) return follow_result(e, out, i, d);
    if (!e->drained || o->where != IN_LOCAL) return true;
    if (!follow_emit(e, out)) return false;
    struct nodes moves = {0};
    int buffer = w->p->stmt[e->t->stmt].dst.buffer;
    if (!way_begin(e, &moves, o, buffer, &e->held[i], &e->held[i].whole, &e->out[0])) return false;
    struct edge give = told_edge(e), back = credit_edge(e);
    struct signal told =
        takes_credits(e) ? told_channel(e, &give, &back, &e->held[i]) : edge_plain(w, &give);
    edge_give(w, out, &give, told);
    edge_take(w, out, &give, told);
    nodes_append(w, out, &moves);
    if (result_trips(e, d) > 1 && !e->behind) {
        struct signal channel =
            takes_credits(e) ? credit_channel(e, &give, &back, &e->held[i]) : edge_plain(w, &back);
        edge_give(w, out, &back, channel);
        if (!takes_credits(e)) edge_take(w, out, &back, channel);
    }
    return way_home(e, out, o, buffer, &e->held[i].whole, &e->out[0]);
}

/* It runs ahead where it can tell the results' free slots from those of what the instructions read.
 */
void result_load(struct emitter *e) {
    struct work *w = e->w;
    for (int i = 0; i < e->t->nops; i++) {
        const struct opnd *o = &e->t->op[i];
        const struct access *acc = o->writes ? task_access(w, e->t, o, true) : NULL;
        const struct attachment *move = attached_at(o, FILLS);
        struct region r;
        int queue = -1;
        if (!acc || o->where != IN_LOCAL || (!move && !nest_begins_at_home(e->w, e->nest, o)) ||
            (e->nest->kept >> i & 1) || i == e->nest->given)
            continue;
        plan_region(w, &e->nest->plan, e->t, acc, &o->geom, e->nest->plan.hold[i].depth, &r);
        e->load_completes = -1;
        if (move)
            queue = move->move.needle->in->queue;
        else
            queue = transfer_queue(w, e->moves, acc->buffer, o, &r, true, e->held[i].fill_by,
                                   &e->load_completes);
        if (queue < 0 || edge_find(w->edges, queue, e->load_completes, e->exec).kind == EDGE_FREE)
            continue;
        e->load = queue;
        struct edge own = edge_of_queue(w->edges, e->exec, queue),
                    back = link_back(e, start_link(e));
        bool apart = back.kind == EDGE_TOKEN && back.sync != own.sync;
        e->load_ahead = e->drained && e->store >= 0 && (apart || back.kind == EDGE_FREE);
    }
}

/* Results that share a counter take and give in turn: what comes back for the one with the most
 * slots may not let the one with the fewest begin too soon. */
static int out_credits(const struct emitter *e) {
    int results = 0, fewest = INT_MAX;
    struct edge back = credit_edge(e), give = told_edge(e);
    if (back.kind != EDGE_TOKEN || !lends(e)) return 0;
    for (int i = 0; e->t && e->drained && i < e->t->nops; i++) {
        if (!e->t->op[i].writes || e->t->op[i].where != IN_LOCAL ||
            result_trips(e, e->nest->plan.hold[i].depth) <= 1)
            continue;
        results++;
        if (e->held[i].slots < fewest) fewest = e->held[i].slots;
    }
    for (int i = 0; i < e->nest->nchain && chain_runs_ahead(e); i++) {
        const struct task *t = &e->w->task[e->nest->chain[i].task];
        for (int k = 0; k < t->nops; k++) {
            if (!t->op[k].writes || !chain_needs_hold(e->nest, i, k) || !e->nest->chain[i].leaves)
                continue;
            results++;
            if (e->own[i][k].slots < fewest) fewest = e->own[i][k].slots;
        }
    }
    if (!results) return 0;
    return within_depth(e->w->m, within_depth(e->w->m, results * fewest, &back), &give);
}

/* The core's own result that turns over several slots; NULL. */
static const struct held *turning(const struct emitter *e) {
    struct edge there = told_edge(e), back = credit_edge(e);
    for (int i = 0; e->t && e->drained && i < e->t->nops; i++)
        if (e->t->op[i].writes && e->t->op[i].where == IN_LOCAL &&
            credit_channel(e, &there, &back, &e->held[i]).rotating)
            return &e->held[i];
    return NULL;
}

/* Many in a loop. */
static void add_credits(struct emitter *e, struct nodes *out, const struct edge *back, bool give,
                        int n) {
    struct nodes body = {0};
    if (n > 4) {
        (give ? edge_give : edge_take)(e->w, &body, back, edge_plain(e->w, back));
        nodes_add(e->w, out,
                  loop_node(e->w, new_var(e->w, "t"), val_const(0), val_const(n), 1,
                            LOOP_SEQUENTIAL, -1, &body));
        return;
    }
    for (int i = 0; i < n; i++)
        (give ? edge_give : edge_take)(e->w, out, back, edge_plain(e->w, back));
}

void nest_credits(struct emitter *e, struct nodes *out, bool give) {
    int credits = out_credits(e);
    struct edge back = credit_edge(e);
    const struct held *turns = credits ? turning(e) : NULL;
    struct edge handed = link_back(e, hand_link(e));
    if (give) ways_credits(e, out, true);
    for (int c = hand_credits(e); c > 0; c--)
        (give ? edge_give : edge_take)(e->w, out, &handed, edge_plain(e->w, &handed));
    for (int c = 0; turns && c < turns->slots; c++) {
        if (give)
            edge_give(e->w, out, &back, (struct signal){.channel = c});
        else
            edge_take(e->w, out, &back, (struct signal){.channel = c});
    }
    if (!turns && credits) add_credits(e, out, &back, give, credits);
    if (!give) ways_credits(e, out, false);
}
