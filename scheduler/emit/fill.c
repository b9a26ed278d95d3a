/* Fills of the core's holds and the tokens between the queues that make and use them (SCHEDULING
 * §5). A hold is filled from home or from the outer copy on its route; who uses it is the queue of
 * the next inner fill, at last that of the instructions. */
#include "scheduler/emit/emit_int.h"
#include "scheduler/plan/graph.h"
#include "scheduler/plan/tiling.h"
#include "scheduler/plan/plan.h"
#include "scheduler/plan/rewrite.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/geom.h"
#include "scheduler/plan/val.h"
#include "scheduler/plan/work.h"
#include <string.h>

/* How often it is reached in one turn. */
static double trips_inside(const struct emitter *e, int d) {
    const struct plan *p = &e->nest->plan;
    return plan_trips(e->w, p, d) / plan_trips(e->w, p, e->nest->nprefix);
}

static bool flows(const struct filling *f, const struct flow *c) {
    return f->queue == c->queue && f->user == c->user;
}

/* None of the fills' credits is out where a result goes home. */
static void stay_in_result(const struct emitter *e, struct flow *c) {
    int result = -1;
    for (int i = 0; i < e->t->nops; i++)
        if (e->t->op[i].writes && e->t->op[i].where == IN_LOCAL &&
            e->nest->plan.hold[i].depth > result)
            result = e->nest->plan.hold[i].depth;
    if (c->depth < result) c->credits = 1;
    if (c->depth < result) result = c->depth;
    if (c->bracket < result) c->bracket = result;
}

/* Channels turn with the slots of the hold that has the fewest. */
static void choose_channels(const struct emitter *e, struct flow *c, const struct filling *pace) {
    const struct machine *m = e->w->m;
    struct signal turns = {.rotating = pace->held->place + 1};
    c->credits = pace->hold->slots;
    if (edge_rotates(m, &c->there, c->credits)) c->channel = turns;
    if (edge_rotates(m, &c->back, c->credits)) c->release = turns;
    if (!c->channel.rotating) c->credits = within_depth(m, c->credits, &c->there);
    if (!c->release.rotating) c->credits = within_depth(m, c->credits, &c->back);
    int64_t count = c->channel.rotating ? m->sync[c->there.sync].count : 0;
    if (c->credits < (count < 0 ? COPY_SLOTS : count)) c->apart.channel = c->credits;
}

/* Does the queue also store the core's results, one for each of its steps, telling by the same
 * tokens, and may they leave behind its fills of the next step? The plan says so by copies that
 * stand ahead. */
static bool leaves_behind(const struct emitter *e, const struct flow *c) {
    const struct way_out *way = &e->out[0];
    bool any = false, own = !way->n && e->store == c->queue,
         on = way->n == 1 && way->via[0].slots > 1 && way->queue[1] == c->user &&
              way->queue[0] == c->queue;
    if (e->load >= 0 || !(own || on) || c->channel.rotating || c->release.rotating ||
        !results_behind(e->w, e->nest, &e->nest->plan, c->depth, c->queue, c->user))
        return false;
    for (int i = 0; i < e->t->nops; i++)
        if (own && e->t->op[i].writes && e->held[i].slots < 2) return false;
    for (int i = 0; i < e->nfills; i++) {
        const struct filling *f = &e->fill[i];
        if (!flows(f, c)) continue;
        if (f->level || f->keeps || f->hold->spread || f->completes >= 0 ||
            (f->hold->depth == c->depth && f->held->slots < 2))
            return false;
        any |= f->hold->depth == c->depth && f->hold->ahead;
    }
    return any;
}

static struct flow flow_make(const struct emitter *e, const struct filling *first) {
    int root = e->nest->nprefix;
    const struct filling *pace = NULL;
    struct flow c = {.queue = first->queue,
                     .user = first->user,
                     .depth = -1,
                     .bracket = root,
                     .there = link_there(e, fill_link(first)),
                     .back = link_back(e, fill_link(first))};
    for (int i = 0; i < e->nfills; i++)
        if (flows(&e->fill[i], &c) && e->fill[i].hold->depth > c.depth)
            c.depth = e->fill[i].hold->depth;
    for (int i = 0; i < e->nfills; i++)
        if (flows(&e->fill[i], &c) && e->fill[i].hold->depth == c.depth &&
            (!pace || e->fill[i].hold->slots < pace->hold->slots))
            pace = &e->fill[i];
    choose_channels(e, &c, pace);
    c.war = c.depth > root && trips_inside(e, c.depth) > 1;
    c.lends = !in_step(e, &c.back);
    if (!c.lends) return c;
    for (int i = 0; i < e->nfills; i++) {
        const struct hold *h = e->fill[i].hold;
        if (!flows(&e->fill[i], &c) || h->depth >= c.depth || h->depth < root ||
            trips_inside(e, h->depth) <= 1)
            continue;
        bool kept =
            h->slots > 1 && plan_least_inner(e->w, &e->nest->plan, h->depth, c.depth) >= c.credits;
        if (e->parts_depth >= 0)
            kept |= parts_keep(e->w, &e->nest->plan, e->t, &e->t->op[e->fill[i].operand], h,
                               c.depth, c.credits);
        if (!kept && h->depth > c.bracket) c.bracket = h->depth;
    }
    for (int i = 0; i < e->nfills; i++) {
        const struct hold *h = e->fill[i].hold;
        const struct opnd *o = &e->t->op[e->fill[i].operand];
        bool again = flows(&e->fill[i], &c) && h->ring &&
                     ring_waits(e->w, e->nest, &e->nest->plan, e->t, o,
                                task_access(e->w, e->t, o, false), h);
        if (again && e->parts_depth >= 0)
            again = !parts_keep(e->w, &e->nest->plan, e->t, o, h, c.depth, c.credits);
        if (again && h->depth - 1 > c.bracket) c.bracket = h->depth - 1;
    }
    bool same = ways_same_tokens(e, c.user) ||
                (c.user == e->exec && (same_tokens(e) || (e->load >= 0 && !e->load_ahead)));
    if (same) stay_in_result(e, &c);
    c.behind = same && e->parts_depth < 0 && leaves_behind(e, &c);
    return c;
}

static bool is_paced(const struct emitter *e, const struct filling *f) {
    return f->queue >= 0 && link_there(e, fill_link(f)).kind != EDGE_FREE;
}

void flows_find(struct emitter *e) {
    for (int i = 0; i < e->nfills; i++) {
        const struct filling *f = &e->fill[i];
        bool known = !is_paced(e, f) || f->hold->depth < e->nest->nprefix;
        for (int k = 0; k < e->nflows; k++) known |= flows(f, &e->flow[k]);
        if (!known) e->flow[e->nflows++] = flow_make(e, f);
    }
}

static void turn_hold(struct emitter *e, struct nodes *out, const struct filling *f) {
    renew_place(e, f->held);
    if (f->held->slots > 1) add_rotate(e->w, out, f->held->place);
}

static bool keep_fill(struct emitter *e, struct nodes *out, const struct filling *f,
                      const struct access *acc) {
    const struct opnd *o = &e->t->op[f->operand];
    struct nodes body = {0};
    struct region here;
    region_here(e, e->t, o, acc, &here);
    if (!f->hold->ring) f->held->whole = here;
    keep_slot(e, f);
    bool ok = f->hold->ring ? ring_fill(e, &body, f, &here)
                            : emit_transfer(e->w, e->moves, &body, acc->buffer, o, f->held, NULL,
                                            &here, true);
    nodes_when(e->w, out, e->due[f->operand], "f", &body);
    return ok;
}

static bool fill_slot(struct emitter *e, struct nodes *out, const struct filling *f) {
    const struct access *acc = opnd_access(e->w, e->t, f->stop);
    if (f->keeps) return keep_fill(e, out, f, acc);
    return hold_fill(e, out, e->t, f->stop, acc, f->held, f->outer);
}

bool fill_hold(struct emitter *e, struct nodes *out, const struct filling *f) {
    turn_hold(e, out, f);
    return fill_slot(e, out, f);
}

/* ---- in parts ---- */

static bool in_parts(const struct emitter *e, const struct filling *f) {
    return f->hold->spread || (e->parts_depth >= 0 && is_paced(e, f));
}

/* The copy that is in the current slot, whoever fills it. */
static void hold_here(struct emitter *e, const struct filling *f) {
    const struct opnd *o = f->stop;
    region_here(e, e->t, o, task_access(e->w, e->t, o, false), &f->held->whole);
    f->held->slot = slot_make(&e->w->s->arena, &o->geom, &f->held->whole);
}

static void begin_parts(struct emitter *e, const struct filling *f) {
    if (!f->hold->ring) hold_here(e, f);
    e->due[f->operand] = val_const(1);
    if (f->keeps) keep_slot(e, f);
    memcpy(e->from[f->operand], e->at, sizeof e->at);
}

/* The copy that is in the slot since its pieces began. */
static void hold_begun(struct emitter *e, const struct filling *f) {
    struct along now[MAX_AXES];
    memcpy(now, e->at, sizeof now);
    memcpy(e->at, e->from[f->operand], sizeof now);
    hold_here(e, f);
    memcpy(e->at, now, sizeof now);
}

/* 1 in the first iteration of all loops inside the copy that do not cut it. */
static struct val first_time(struct emitter *e, const struct filling *f, uint64_t cuts) {
    struct arena *a = &e->w->s->arena;
    struct val first = val_const(1);
    for (int x = 0; x < e->w->p->naxes; x++) {
        struct val from = e->from[f->operand][x].lo;
        if ((cuts >> x & 1) || val_same(e->at[x].lo, from)) continue;
        struct val here = val_make(a, SX_EQ, e->at[x].lo, from);
        here.max = 1;
        first = val_is(first, 1) ? here : val_make(a, SX_AND, first, here);
    }
    return first;
}

/* The piece that the loops inside the copy, `depth` with those around it, have come to: axes that
 * do not cut it are as they were. *times: 1 where it is wanted now, else 0. */
static bool fill_part(struct emitter *e, struct nodes *body, const struct filling *f, int depth,
                      struct val *times) {
    struct work *w = e->w;
    const struct opnd *o = f->stop;
    const struct access *acc = task_access(w, e->t, o, false);
    struct along now[MAX_AXES];
    struct region part;
    uint64_t cuts = 0;
    for (int i = f->hold->depth; i < depth; i++)
        if (cut_axis(w, &e->nest->plan, e->t, o, e->nest->plan.loop[i].axis, f->hold->depth, depth))
            cuts |= UINT64_C(1) << e->nest->plan.loop[i].axis;
    struct val first = first_time(e, f, cuts), due = e->due[f->operand];
    if (val_is(first, 1))
        first = due;
    else if (!val_is(due, 1))
        first = val_make(&w->s->arena, SX_AND, first, due);
    *times = first;
    memcpy(now, e->at, sizeof now);
    for (int x = 0; x < w->p->naxes; x++)
        if (!(cuts >> x & 1)) e->at[x] = e->from[f->operand][x];
    region_here(e, e->t, o, acc, &part);
    memcpy(e->at, now, sizeof now);
    return f->hold->ring
               ? ring_fill(e, body, f, &part)
               : emit_transfer(w, e->moves, body, acc->buffer, o, f->held, f->outer, &part, true);
}

/* Those that are not due each time first: the token rides on the last. */
static bool fill_parts(struct emitter *e, struct nodes *out, const struct flow *c) {
    for (int guarded = 1; guarded >= 0; guarded--)
        for (int i = 0; i < e->nfills; i++) {
            struct nodes body = {0};
            struct val times;
            if (!flows(&e->fill[i], c)) continue;
            if (!fill_part(e, &body, &e->fill[i], e->parts_depth, &times)) return false;
            if (val_is(times, 1) != guarded) nodes_when(e->w, out, times, "f", &body);
        }
    return true;
}

static void ready(struct emitter *e, struct nodes *out, const struct flow *c,
                  struct signal channel) {
    edge_give(e->w, out, &c->there, channel);
    edge_take(e->w, out, &c->there, channel);
}

/* Pieces of outer copies that are filled here, each with a token of its own. */
static bool fill_spread(struct emitter *e, struct nodes *out, const struct flow *c, int d) {
    for (int i = 0; i < e->nfills; i++) {
        struct nodes body = {0};
        struct val times;
        if (!flows(&e->fill[i], c) || e->fill[i].hold->spread != d || !d) continue;
        if (!fill_part(e, &body, &e->fill[i], d, &times)) return false;
        ready(e, &body, c, c->apart);
        nodes_when(e->w, out, times, "f", &body);
    }
    return true;
}

/* The same of the step behind: behind the last of a copy comes the first of the next copy. */
static bool piece_ahead(struct emitter *e, struct nodes *body, const struct filling *f, int depth,
                        struct val *times) {
    struct arena *a = &e->w->s->arena;
    const struct loop *l = &e->nest->plan.loop[e->ahead.depth - 1];
    struct along *all = e->from[f->operand];
    struct val from = all[l->axis].lo, around = e->at[l->axis].lo, lo = e->at[l[1].axis].lo;
    bool over = val_same(all[l[1].axis].size, val_const((e->ahead.step + 1) * l[1].tile));
    int64_t by =
        !over ? l[1].tile : (l->axis == l[1].axis ? l->tile : 0) - e->ahead.step * l[1].tile;
    *times = val_const(0);
    if (over && e->ahead.last) return true;
    if (over) all[l->axis].lo = val_add(a, from, val_const(l->tile));
    if (over) hold_begun(e, f);
    if (over) e->at[l->axis].lo = all[l->axis].lo;
    e->at[l[1].axis].lo =
        val_add(a, lo, val_const(by)); /* where loops inside the piece stand now */
    bool ok = fill_part(e, body, f, depth, times);
    e->at[l->axis].lo = around;
    e->at[l[1].axis].lo = lo;
    all[l->axis].lo = from;
    if (over) hold_begun(e, f);
    return ok;
}

/* Pieces that are filled here and need no token. */
static bool fill_pieces(struct emitter *e, struct nodes *out, int d) {
    for (int i = 0; i < e->nfills; i++) {
        const struct filling *f = &e->fill[i];
        struct nodes body = {0};
        struct val times;
        if (is_paced(e, f) || f->hold->spread != d || !d) continue;
        if (e->ahead.depth ? !piece_ahead(e, &body, f, d, &times)
                           : !fill_part(e, &body, f, d, &times))
            return false;
        nodes_when(e->w, out, times, "f", &body);
    }
    return true;
}

bool pieces_begin(struct emitter *e, struct nodes *out, int depth) {
    const struct loop *l = &e->nest->plan.loop[depth];
    struct val size = e->at[l->axis].size, times;
    bool ok = true;
    for (int i = 0; ok && i < e->nfills; i++) {
        const struct filling *f = &e->fill[i];
        if (is_paced(e, f) || f->hold->depth != depth) continue;
        turn_hold(e, out, f);
        begin_parts(e, f);
        e->at[l->axis].size = val_const(l->tile);
        ok = fill_part(e, out, f, depth + 1, &times);
        e->at[l->axis].size = size;
    }
    return ok;
}

/* The flow at this depth that brings on what the fill has brought, by a queue that takes both in
 * order; nflows: there is none. */
static int flow_fed(const struct emitter *e, const struct filling *f, int d) {
    for (int k = 0; k < e->nflows; k++)
        for (int i = 0; i < e->nfills; i++) {
            const struct filling *g = &e->fill[i];
            if (g->operand == f->operand && g->level > f->level && g->hold->depth == d &&
                flows(g, &e->flow[k]))
                return k;
        }
    return e->nflows;
}

/* Flow NULL: of the fills that no token paces those that feed flow `fed`. */
static bool is_filled_at(const struct emitter *e, int d, const struct flow *flow, int fed, int i) {
    const struct filling *f = &e->fill[i];
    return f->hold->depth == d &&
           (flow ? flows(f, flow) : !is_paced(e, f) && flow_fed(e, f, d) == fed);
}

bool fills_before(struct emitter *e, struct nodes *out) {
    bool ok = true;
    for (int i = 0; i < e->nfills && ok; i++)
        if (e->fill[i].hold->depth < e->nest->nprefix) ok = fill_hold(e, out, &e->fill[i]);
    return ok;
}

/* Slots turn first: channels may follow them. */
static void turns_at(struct emitter *e, struct nodes *out, int d, const struct flow *flow,
                     int fed) {
    for (int i = 0; i < e->nfills; i++)
        if (is_filled_at(e, d, flow, fed, i) && !(e->ahead.depth && d == e->ahead.depth))
            turn_hold(e, out, &e->fill[i]);
}

/* Does the core's queue move it on before the deepest of these fills? */
static bool moved_on(const struct emitter *e, const struct filling *f, int depth) {
    for (int i = 0; i < e->nfills; i++) {
        const struct filling *g = &e->fill[i];
        if (g->operand == f->operand && g->level == f->level + 1 && g->queue == e->exec &&
            g->hold->depth < depth)
            return true;
    }
    return false;
}

/* Instructions use a copy inside all fills only, so that the deepest one's token serves the outer
 * ones too; inner fills begin at their own depths. */
static bool fills_at(struct emitter *e, struct nodes *out, int d, const struct flow *flow,
                     int fed) {
    for (int i = 0; i < e->nfills; i++) {
        if (!is_filled_at(e, d, flow, fed, i)) continue;
        if (in_parts(e, &e->fill[i])) {
            begin_parts(e, &e->fill[i]);
            continue;
        }
        if (!fill_slot(e, out, &e->fill[i])) return false;
        if (flow && (flow->user != e->exec || moved_on(e, &e->fill[i], flow->depth)))
            ready(e, out, flow, d == flow->depth ? flow->channel : flow->apart);
    }
    return true;
}

/* One for each slot, on its channel. In a bracket that comes again, the user must know that they
 * were taken, where a sync does not hold it up. */
static void credits(struct emitter *e, struct nodes *out, const struct flow *c, bool give, int d) {
    struct edge back = c->back;
    back.first = -1;
    for (int i = 0; i < c->credits; i++) {
        struct signal channel = {.channel = c->release.rotating ? i : 0};
        if (give)
            edge_give(e->w, out, &back, channel);
        else if (back.kind == EDGE_TOKEN)
            edge_take(e->w, out, &back, channel);
    }
    if (!give && d > e->nest->nprefix && back.kind == EDGE_TOKEN &&
        e->w->m->sync[back.sync].memory >= 0)
        signal_apart(e->w, out, &c->there, true);
}

/* Fills that stand a step ahead: the copies are those of the current tile when their token is
 * there.
 */
void fills_wait(struct emitter *e, struct nodes *out, const struct flow *c) {
    for (int i = 0; i < e->nfills; i++)
        if (is_filled_at(e, c->depth, c, 0, i)) hold_here(e, &e->fill[i]);
    edge_take(e->w, out, &c->there, c->channel);
}

/* Outer copies come first: fills stand in the order of the routes, and flows in that of their first
 * fill. */
bool fills_open(struct emitter *e, struct nodes *out, int d) {
    struct work *w = e->w;
    const struct flow *pc = e->flow;
    int n = e->nflows;
    for (int i = 0; i < e->nfills; i++)
        if (e->fill[i].keeps && keeps_from(e, &e->fill[i]) == d) keep_begin(e, &e->fill[i]);
    for (int k = 0; k < n; k++)
        if (pc[k].war && pc[k].lends && pc[k].bracket == d) credits(e, out, &pc[k], true, d);
    if (!e->ahead.depth && !fill_pieces(e, out, d)) return false; /* inner copies read them here */
    for (int k = 0; k < n; k++) {
        bool paced = pc[k].depth == d;
        if (e->early[k] && paced) {
            if (!pc[k].behind) fills_wait(e, out, &pc[k]);
            if (!fill_spread(e, out, &pc[k], d)) return false;
            continue;
        }
        turns_at(e, out, d, NULL, k);
        if (!fills_at(e, out, d, NULL, k)) return false;
        turns_at(e, out, d, &pc[k], k);
        if (paced && pc[k].war && pc[k].lends) edge_take(w, out, &pc[k].back, pc[k].release);
        if (!fills_at(e, out, d, &pc[k], k) || !fill_spread(e, out, &pc[k], d)) return false;
        if (e->parts_depth >= 0) paced = d == e->parts_depth;
        if (paced && e->parts_depth >= 0 && !fill_parts(e, out, &pc[k])) return false;
        if (paced && pc[k].user == e->exec) ready(e, out, &pc[k], pc[k].channel);
    }
    turns_at(e, out, d, NULL, n);
    return fills_at(e, out, d, NULL, n) && (!e->ahead.depth || fill_pieces(e, out, d));
}

void fills_close(struct emitter *e, struct nodes *out, int d) {
    struct work *w = e->w;
    const struct flow *pc = e->flow;
    int n = e->nflows;
    for (int k = 0; k < n; k++)
        if (pc[k].depth == d && pc[k].war) {
            edge_give(w, out, &pc[k].back, pc[k].release);
            if (!pc[k].lends) edge_take(w, out, &pc[k].back, pc[k].release);
        }
    for (int k = 0; k < n; k++)
        if (pc[k].war && pc[k].lends && pc[k].bracket == d) credits(e, out, &pc[k], false, d);
}

/* ---- a step ahead ---- */

/* One queue makes all fills, for the instructions, or these are outer copies, and all of them turn.
 */
static bool may_stand_ahead(const struct emitter *e, const struct flow *c, int n) {
    bool any = c->user == e->exec && e->nest->plan.parts == PARTS_AHEAD && n == 1;
    for (int i = 0; i < e->nfills; i++) {
        const struct filling *f = &e->fill[i];
        if (!flows(f, c)) continue;
        if (f->level || f->keeps || (f->hold->depth == c->depth && f->held->slots < 2) ||
            (f->hold->spread && !c->apart.channel))
            return false;
        any |= f->hold->depth == c->depth && f->hold->ahead;
    }
    return any;
}

int fills_step(const struct emitter *e, int d) {
    const struct flow *pc = e->flow;
    int n = e->nflows;
    for (int k = 0; k < n; k++)
        if (pc[k].behind && pc[k].depth == d) return k;
    for (int k = 0; k < n && e->parts_depth < 0; k++)
        if (pc[k].depth == d && pc[k].credits > 1 && pc[k].there.kind == EDGE_TOKEN &&
            pc[k].back.kind == EDGE_TOKEN && pc[k].war && pc[k].lends &&
            !in_step(e, &pc[k].there) && pc[k].bracket < d && may_stand_ahead(e, &pc[k], n))
            return k;
    return -1;
}

bool fills_begin(struct emitter *e, struct nodes *out, int flow) {
    const struct flow *c = &e->flow[flow];
    turns_at(e, out, c->depth, c, flow);
    if (c->war) edge_take(e->w, out, &c->back, c->release);
    for (int i = 0; i < e->nfills; i++)
        if (is_filled_at(e, c->depth, c, flow, i) && !fill_slot(e, out, &e->fill[i])) return false;
    edge_give(e->w, out, &c->there, c->channel);
    return true;
}

void fills_turn(struct emitter *e, struct nodes *out, int flow, bool back) {
    const struct flow *c = &e->flow[flow];
    for (int i = 0; i < e->nfills; i++)
        for (int k = back ? 1 : e->fill[i].held->slots - 1;
             is_filled_at(e, c->depth, c, flow, i) && k < e->fill[i].held->slots; k++)
            add_rotate(e->w, out, e->fill[i].held->place);
}
