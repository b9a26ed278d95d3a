#include "scheduler/emit/emit_int.h"
#include "scheduler/plan/graph.h"
#include "scheduler/plan/limits.h"
#include "scheduler/plan/val.h"
#include "scheduler/plan/work.h"
#include <string.h>

void nodes_add(struct work *w, struct nodes *l, struct node n) {
    GROW(&w->s->arena, l->at, l->n, l->cap);
    l->at[l->n++] = n;
}

void nodes_append(struct work *w, struct nodes *l, const struct nodes *more) {
    for (int i = 0; i < more->n; i++) nodes_add(w, l, more->at[i]);
}

struct fallback_node *nodes_host(struct work *w, struct nodes *l, int stmt) {
    struct fallback_node *f = arena_alloc(&w->s->arena, sizeof *f);
    const struct stmt *s = &w->p->stmt[stmt];
    f->fallback = w->fallback;
    f->stmt = stmt;
    home_place(w, s->dst.buffer);
    for (int r = 0; r < s->nreads; r++) home_place(w, s->read[r].buffer);
    nodes_add(w, l, (struct node){.kind = NODE_FALLBACK, .fallback = f});
    return f;
}

void host_part(struct work *w, struct fallback_node *f, int axis, struct val lo, struct val size) {
    struct arena *a = &w->s->arena;
    if (!f->lo) f->lo = arena_array(a, (size_t)w->p->naxes, sizeof *f->lo);
    if (!f->hi) f->hi = arena_array(a, (size_t)w->p->naxes, sizeof *f->hi);
    f->lo[axis] = val_sx(a, lo);
    f->hi[axis] = val_sx(a, val_add(a, lo, size));
}

void nodes_when(struct work *w, struct nodes *l, struct val times, const char *name,
                struct nodes *body) {
    if (val_is(times, 0)) return;
    if (val_is(times, 1))
        nodes_append(w, l, body);
    else
        nodes_add(
            w, l,
            loop_node(w, new_var(w, name), val_const(0), times, 1, LOOP_SEQUENTIAL, -1, body));
}

int new_var(struct work *w, const char *name) {
    struct schedule *s = w->s;
    return schedule_var(s, arena_printf(w->arena, "%s%d", name, s->nvars));
}

void add_sync(struct work *w, struct nodes *l, int queue, bool push, int sync) {
    struct node n = {.kind = NODE_SYNC};
    struct signal *s = arena_alloc(&w->s->arena, sizeof *s);
    *s = (struct signal){.sync = sync};
    n.sync.queue = queue;
    if (push)
        n.sync.signals = (struct signals){.push = s, .npushes = 1};
    else
        n.sync.signals = (struct signals){.pop = s, .npops = 1};
    nodes_add(w, l, n);
}

void add_rotate(struct work *w, struct nodes *l, int place) {
    nodes_add(w, l, (struct node){.kind = NODE_ROTATE, .rotate = place});
}

static void add_channel(struct work *w, struct nodes *l, int queue, bool push, struct signal s) {
    add_sync(w, l, queue, push, s.sync);
    struct signals *g = &l->at[l->n - 1].sync.signals;
    *(push ? g->push : g->pop) = s;
}

/* The edge's channel among those of all pairs of queues that share its sync. */
static void of_pair(const struct work *w, const struct edge *e, struct signal *s) {
    s->sync = e->sync;
    if (e->kind != EDGE_TOKEN) return;
    const struct sync *y = &w->m->sync[e->sync];
    s->channel = s->channel * sync_pairs(y) + sync_pair(y, e->from, e->to);
}

void edge_give(struct work *w, struct nodes *l, const struct edge *e, struct signal channel) {
    struct edge before;
    if (edge_before(w->edges, e, &before)) signal_apart(w, l, &before, false);
    of_pair(w, e, &channel);
    if (e->first >= 0) {
        add_sync(w, l, e->from, true, e->first);
        add_sync(w, l, e->from, false, e->first);
    }
    if (e->kind == EDGE_TOKEN) add_channel(w, l, e->from, true, channel);
    if (e->kind == EDGE_GROUP) add_sync(w, l, e->from, true, e->sync);
}

void edge_take(struct work *w, struct nodes *l, const struct edge *e, struct signal channel) {
    of_pair(w, e, &channel);
    if (e->kind == EDGE_TOKEN)
        add_channel(w, l, e->to, false, channel);
    else if (e->kind != EDGE_FREE && e->kind != EDGE_NONE)
        add_sync(w, l, e->to, false, e->sync);
}

/* The issue of a node: its own, or that of hardware loops. */
static struct issue_node *issue_of(const struct node *n) {
    while (n->kind == NODE_LOOP && n->loop->kind == LOOP_HARDWARE) n = &n->loop->body[0];
    return n->kind == NODE_ISSUE ? n->issue : NULL;
}

static struct signals *signals_of(struct node *n) {
    struct issue_node *issue = issue_of(n);
    if (issue) return &issue->signals;
    switch (n->kind) {
    case NODE_FALLBACK:
        return &n->fallback->signals;
    case NODE_SYNC:
        return &n->sync.signals;
    default:
        return NULL;
    }
}

static int queue_of(const struct work *w, const struct node *n) {
    const struct issue_node *issue = issue_of(n);
    if (issue) return w->m->instr[issue->instr].queue;
    switch (n->kind) {
    case NODE_FALLBACK:
        return w->m->fallback[n->fallback->fallback].queue;
    case NODE_SYNC:
        return n->sync.queue;
    default:
        return -1;
    }
}

static bool has(const struct signal *s, int n, const struct signal *which) {
    for (int i = 0; i < n; i++)
        if (s[i].sync == which->sync && s[i].channel == which->channel && !s[i].rotating)
            return true;
    return false;
}

/* The last that the edge's first queue did is this token, and the other queue has taken it. */
static bool told(const struct work *w, const struct nodes *l, const struct edge *e,
                 const struct signal *token) {
    bool taken = false;
    for (int i = l->n - 1; i >= 0; i--) {
        const struct signals *g = signals_of(&l->at[i]);
        if (g && queue_of(w, &l->at[i]) == e->to) taken |= has(g->pop, g->npops, token);
        if (nodes_queues(w, &l->at[i], 1) >> e->from & 1)
            return taken && g && has(g->push, g->npushes, token);
    }
    return false;
}

/* What a meeting has told is not said again: in memory a token may lie until then. */
void signal_apart(struct work *w, struct nodes *l, const struct edge *e, bool bracket) {
    struct signal channel = {0};
    struct edge before, last = *e;
    if (edge_before(w->edges, e, &before)) signal_apart(w, l, &before, bracket);
    last.origin = last.from;
    e = &last;
    if (e->kind == EDGE_TOKEN)
        channel.channel = channel_of_meeting(&w->m->sync[e->sync], e->to, bracket);
    struct signal token = channel;
    of_pair(w, e, &token);
    if (e->kind == EDGE_TOKEN && told(w, l, e, &token)) return;
    edge_give(w, l, e, channel);
    edge_take(w, l, e, channel);
}

struct signal edge_plain(const struct work *w, const struct edge *e) {
    return (struct signal){
        .channel = e->kind == EDGE_TOKEN ? channel_of_results(&w->m->sync[e->sync]) : 0};
}

bool edge_tell(struct work *w, struct nodes *l, const struct edge *e, struct signal channel) {
    if (e->kind == EDGE_NONE) return add_signal(w, l, e->from, e->to);
    edge_give(w, l, e, channel);
    edge_take(w, l, e, channel);
    return true;
}

bool edge_pass(struct work *w, struct nodes *l, const struct edge *e) {
    return edge_tell(w, l, e, edge_plain(w, e));
}

bool add_signal(struct work *w, struct nodes *l, int from, int to) {
    if (from == to || edge_of_queue(w->edges, from, to).kind == EDGE_FREE) return true;
    while (from != to) {
        struct edge e;
        if (graph_distance(w->edges, from, to, &e) < 0) return false;
        signal_apart(w, l, &e, false);
        from = e.to;
    }
    return true;
}

/* What hardware keeps in order between the root and another queue it does not hand on to a third.
 */
static void add_direct(struct work *w, struct nodes *out, int from, int to, int root) {
    struct edge e = edge_of_queue(w->edges, from, to);
    bool free = edge_of_queue(w->edges, from, root).kind == EDGE_FREE ||
                edge_of_queue(w->edges, root, to).kind == EDGE_FREE;
    if (from != to && from != root && to != root && free && e.kind == EDGE_TOKEN)
        signal_apart(w, out, &e, false);
}

/* A barrier that two of the queues have for want of anything else, and at which all of them meet:
 * one wait there is enough; -1. */
static int meeting(const struct work *w, uint64_t before, uint64_t after) {
    uint64_t all = before | after;
    int found = -1;
    for (int a = 0; a < w->m->nqueues; a++)
        for (int b = 0; b < w->m->nqueues && found < 0; b++)
            if ((before >> a & 1) && (after >> b & 1)) {
                struct edge e = edge_of_queue(w->edges, a, b);
                if (e.kind == EDGE_BARRIER) found = e.sync;
            }
    for (int q = 0; q < w->m->nqueues && found >= 0; q++)
        if ((all >> q & 1) &&
            !unit_inside(w->m, w->m->queue[q].unit, w->m->sync[found].barrier_unit))
            found = -1;
    return found;
}

bool add_barrier(struct work *w, struct nodes *out, uint64_t before, uint64_t after, int root) {
    int all = meeting(w, before, after);
    if (all >= 0) {
        add_sync(w, out, root, false, all);
        return true;
    }
    for (int q = 0; q < w->m->nqueues; q++)
        if ((before >> q & 1) && q != root && !add_signal(w, out, q, root)) return false;
    for (int q = 0; q < w->m->nqueues; q++)
        if (((before | after) >> q & 1) && q != root && !add_signal(w, out, root, q)) return false;
    for (int a = 0; a < w->m->nqueues; a++)
        for (int b = 0; b < w->m->nqueues; b++)
            if ((before >> a & 1) && (after >> b & 1)) add_direct(w, out, a, b, root);
    return true;
}

struct node loop_node(struct work *w, int var, struct val lo, struct val hi, int64_t step,
                      enum loop_kind kind, int axis, struct nodes *body) {
    struct loop_node *l = arena_alloc(&w->s->arena, sizeof *l);
    *l = (struct loop_node){.var = var,
                            .lo = val_sx(&w->s->arena, lo),
                            .hi = val_sx(&w->s->arena, hi),
                            .step = step,
                            .kind = kind,
                            .unit = -1,
                            .axis = axis,
                            .body = body->at,
                            .nbody = body->n};
    return (struct node){.kind = NODE_LOOP, .loop = l};
}

static struct signal *joined(struct work *w, const struct signal *a, int na, const struct signal *b,
                             int nb) {
    struct signal *s = arena_array(&w->s->arena, (size_t)(na + nb), sizeof *s);
    if (na) memcpy(s, a, sizeof *s * (size_t)na);
    if (nb) memcpy(s + na, b, sizeof *s * (size_t)nb);
    return s;
}

static bool carries(const struct signal *s, int n, int sync) {
    for (int i = 0; i < n; i++)
        if (s[i].sync == sync) return true;
    return false;
}

/* Both belong to the one program of a host, which a token that one takes holds up
 * (docs/schedule.md, "Races"). */
static bool one_program(const struct machine *m, int a, int b) {
    return a >= 0 && b >= 0 && m->queue[a].data_order && m->queue[b].data_order &&
           m->queue[a].unit == m->queue[b].unit && machine_queue_is_host(m, a);
}

/* At a barrier all queues of its unit meet, so that what the others do behind it stays there. */
static bool meets_too(const struct machine *m, int sync, int queue) {
    return queue >= 0 && m->sync[sync].kind == SYNC_BARRIER &&
           unit_inside(m, m->queue[queue].unit, m->sync[sync].barrier_unit);
}

/* The issue of the same queue next to node i, forwards for a pop and backwards for a push; -1: a
 * loop or another sync is nearer, or the other end of its sync, whose depth counts, or what another
 * queue does behind a barrier. */
static int neighbour(const struct work *w, const struct nodes *l, int i, bool push) {
    int queue = l->at[i].sync.queue, step = push ? -1 : 1;
    const struct signals *mine = &l->at[i].sync.signals;
    int sync = push ? mine->push[0].sync : mine->pop[0].sync;
    for (int k = i + step; k >= 0 && k < l->n; k += step) {
        const struct signals *other = signals_of(&l->at[k]);
        bool issues = issue_of(&l->at[k]);
        if (l->at[k].kind == NODE_LOOP && !issues) return -1;
        if (queue_of(w, &l->at[k]) == queue) return issues ? k : -1;
        if (one_program(w->m, queue, queue_of(w, &l->at[k])) ||
            meets_too(w->m, sync, queue_of(w, &l->at[k])))
            return -1;
        if (other && (push ? carries(other->pop, other->npops, sync)
                           : carries(other->push, other->npushes, sync)))
            return -1;
    }
    return -1;
}

static bool fold_one(struct work *w, struct nodes *l, int i) {
    const struct signals *s = &l->at[i].sync.signals;
    bool push = s->npushes == 1;
    if (s->npushes + s->npops != 1) return false;
    int k = neighbour(w, l, i, push);
    if (k < 0) return false;
    struct signals *to = signals_of(&l->at[k]);
    if (push) {
        if (carries(to->push, to->npushes, s->push[0].sync)) return false;
        to->push = joined(w, to->push, to->npushes, s->push, 1);
        to->npushes++;
    } else {
        if (carries(to->pop, to->npops, s->pop[0].sync)) return false;
        to->pop = joined(w, s->pop, 1, to->pop, to->npops);
        to->npops++;
    }
    memmove(&l->at[i], &l->at[i + 1], sizeof l->at[0] * (size_t)(l->n - i - 1));
    l->n--;
    return true;
}

/* ---- issues that are not always due ---- */

/* The issue of a loop that runs once or not at all (parts.c), which has nothing else in it. */
static struct issue_node *guarded(const struct node *n) {
    int64_t lo;
    if (n->kind != NODE_LOOP || n->loop->kind != LOOP_SEQUENTIAL || n->loop->nbody != 1 ||
        n->loop->hi->op < SX_LT || !sx_constant(n->loop->lo, &lo) || lo)
        return NULL;
    return issue_of(&n->loop->body[0]);
}

/* How many syncs of the queue stand directly before node i, or behind it, that the issue can carry.
 */
static int beside(const struct nodes *l, int i, int queue, const struct signals *to, bool push) {
    int n = 0, step = push ? 1 : -1;
    for (int k = i + step; k >= 0 && k < l->n && l->at[k].kind == NODE_SYNC; k += step, n++) {
        const struct signals *s = &l->at[k].sync.signals;
        int sync = push ? (s->npushes ? s->push[0].sync : -1) : (s->npops ? s->pop[0].sync : -1);
        bool alone = l->at[k].sync.queue == queue && s->npops + s->npushes == 1 && sync >= 0;
        if (!alone ||
            (push ? carries(to->push, to->npushes, sync) : carries(to->pop, to->npops, sync)))
            break;
        for (int j = i + step; alone && j != k; j += step) {
            const struct signals *other = &l->at[j].sync.signals;
            alone = (push ? other->push : other->pop)[0].sync != sync;
        }
        if (!alone) break;
    }
    return n;
}

/* Syncs beside an issue that is not always due become its flags; where it is not due, one sync has
 * them all. */
static bool fold_guarded(struct work *w, struct nodes *l, int i) {
    struct issue_node *issue = guarded(&l->at[i]);
    if (!issue) return false;
    int queue = w->m->instr[issue->instr].queue, before, behind;
    struct signals *to = &issue->signals, mine = {0};
    before = beside(l, i, queue, to, false);
    behind = beside(l, i, queue, to, true);
    if (!before && !behind) return false;
    for (int k = i - before; k < i; k++)
        mine.pop = joined(w, mine.pop, mine.npops++, l->at[k].sync.signals.pop, 1);
    for (int k = i + 1; k <= i + behind; k++)
        mine.push = joined(w, mine.push, mine.npushes++, l->at[k].sync.signals.push, 1);
    to->pop = joined(w, mine.pop, mine.npops, to->pop, to->npops);
    to->push = joined(w, to->push, to->npushes, mine.push, mine.npushes);
    to->npops += mine.npops;
    to->npushes += mine.npushes;
    struct nodes body = {0}, out = {0};
    struct node sync = {.kind = NODE_SYNC};
    sync.sync.queue = queue;
    sync.sync.signals = mine;
    nodes_add(w, &body, sync);
    const struct sx *not =
        sx_make(&w->s->arena, SX_EQ, l->at[i].loop->hi, sx_const(&w->s->arena, 0));
    for (int k = 0; k < l->n; k++) {
        if (k < i - before || k > i + behind || k == i) nodes_add(w, &out, l->at[k]);
        if (k == i)
            nodes_add(w, &out,
                      loop_node(w, new_var(w, "f"), val_const(0), (struct val){.x = not, .max = 1},
                                1, LOOP_SEQUENTIAL, -1, &body));
    }
    *l = out;
    return true;
}

/* Peephole: a sync becomes a flag of its neighbour in the same queue, one for each edge and
 * direction (SCHEDULING §5.7). */
void nodes_fold(struct work *w, struct nodes *l) {
    for (int i = 0; i < l->n; i++)
        if (l->at[i].kind == NODE_LOOP && !issue_of(&l->at[i])) {
            struct nodes body = {l->at[i].loop->body, l->at[i].loop->nbody, l->at[i].loop->nbody};
            nodes_fold(w, &body);
            l->at[i].loop->body = body.at;
            l->at[i].loop->nbody = body.n;
        }
    for (bool changed = true; changed;) {
        changed = false;
        for (int i = 0; i < l->n && !changed; i++)
            changed = l->at[i].kind == NODE_SYNC && fold_one(w, l, i);
    }
    for (int i = 0; i < l->n; i++) fold_guarded(w, l, i);
}

/* ---- hardware loops ---- */

/* Never exceeded; INT64_MAX: not known. */
static int64_t upper_bound(const struct sx *x) {
    int64_t a, b, c;
    if (sx_constant(x, &c)) return c;
    if (x->op == SX_VAR) return INT64_MAX;
    a = upper_bound(x->a);
    b = upper_bound(x->b);
    switch (x->op) {
    case SX_MIN:
        return a < b ? a : b;
    case SX_MAX:
        return a > b ? a : b;
    case SX_ADD:
        return __builtin_add_overflow(a, b, &c) ? INT64_MAX : c;
    case SX_MUL:
        if (!sx_constant(x->b, &b) || b < 0 || a < 0) return INT64_MAX;
        return __builtin_mul_overflow(a, b, &c) ? INT64_MAX : c;
    case SX_DIV:
        return sx_constant(x->b, &b) && b > 0 && a != INT64_MAX && a >= 0 ? a / b : INT64_MAX;
    default:
        return INT64_MAX;
    }
}

int64_t loop_most(struct work *w, const struct loop_node *l) {
    struct val lo = {.x = l->lo, .min = INT64_MIN}, hi = {.x = l->hi, .min = INT64_MIN};
    struct val n = val_minus(w->arena, hi, lo);
    int64_t most = n.x ? upper_bound(n.x) : n.c;
    return most == INT64_MAX ? most : (most + l->step - 1) / l->step;
}

static void run_in_hardware(struct work *w, struct loop_node *l) {
    struct hardware h;
    if (l->kind != LOOP_SEQUENTIAL || l->nbody != 1 || l->hi->op >= SX_LT) return;
    l->kind = LOOP_HARDWARE;
    bool ok = hardware_issue(w->m, l, &h) && !hardware_obstacle(w->arena, w->m, &h);
    for (int k = 0; ok && k < h.nloops; k++) ok = loop_most(w, h.loop[k]) <= h.counter[k]->max;
    if (!ok) l->kind = LOOP_SEQUENTIAL;
}

/* Loops directly around an issue, from the innermost outwards, as far as the machine can run them.
 */
void nodes_hardware(struct work *w, struct node *at, int n) {
    for (int i = 0; i < n; i++) {
        if (at[i].kind != NODE_LOOP) continue;
        nodes_hardware(w, at[i].loop->body, at[i].loop->nbody);
        run_in_hardware(w, at[i].loop);
    }
}

/* A grid is over when its loop is, for the fallback too, which runs on the same units. */
static bool ends_itself(const struct work *w, const struct node *n) {
    return n->kind == NODE_LOOP && n->loop->kind == LOOP_PARALLEL && w->fallback >= 0 &&
           unit_inside(w->m, w->m->fallback[w->fallback].unit, n->loop->unit);
}

uint64_t nodes_queues(const struct work *w, const struct node *at, int n) {
    uint64_t out = 0;
    for (int i = 0; i < n; i++) {
        int q = queue_of(w, &at[i]);
        if (ends_itself(w, &at[i])) continue;
        if (at[i].kind == NODE_LOOP)
            out |= nodes_queues(w, at[i].loop->body, at[i].loop->nbody);
        else if (q >= 0)
            out |= UINT64_C(1) << q;
    }
    return out;
}
