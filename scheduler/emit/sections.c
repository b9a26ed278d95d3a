/* Sections: nests and host work in order, with drains between nests and bell and done between host
 * and device. */
#include "scheduler/emit/emit_int.h"
#include "scheduler/plan/graph.h"
#include "scheduler/plan/moves.h"
#include "scheduler/plan/nest.h"
#include "scheduler/plan/plan.h"
#include "scheduler/plan/recur.h"
#include "scheduler/plan/val.h"
#include "scheduler/plan/work.h"
#include <string.h>

static struct fallback_node *add_fallback(struct work *w, struct nodes *out, int stmt) {
    struct fallback_node *f = nodes_host(w, out, stmt);
    for (int k = w->p->stmt[stmt].scope - 1; k >= 0; k = w->scope[k].parent)
        host_part(w, f, w->scope[k].axis, w->step[k], val_const(1));
    return f;
}

/* In equal parts, by the instances of the host's unit. */
static void add_shared(struct work *w, struct nodes *out, int stmt, const struct loop *part) {
    struct nodes body = {0};
    int64_t extent = w->p->axis[part->axis].extent;
    int var = new_var(w, w->p->axis[part->axis].name);
    struct val at = val_var(&w->s->arena, var, extent - part->tile);
    host_part(w, add_fallback(w, &body, stmt), part->axis, at, val_const(part->tile));
    struct node loop = loop_node(w, var, val_const(0), val_const(extent), part->tile, part->kind,
                                 part->axis, &body);
    loop.loop->unit = w->m->fallback[w->fallback].unit;
    nodes_add(w, out, loop);
}

static int host_queue(const struct work *w) {
    return w->fallback >= 0 ? w->m->fallback[w->fallback].queue : -1;
}

/* Does the host tell queue q when to go on? Not where hardware tracks dependences, or there is no
 * host. */
static bool is_device(const struct work *w, int q) {
    int host = host_queue(w);
    return host >= 0 && q != host && edge_find(w->edges, host, -1, q).kind != EDGE_FREE;
}

static uint64_t device_queues(const struct work *w) {
    uint64_t out = 0;
    for (int q = 0; q < w->m->nqueues; q++)
        if (is_device(w, q)) out |= UINT64_C(1) << q;
    return out;
}

static bool ring(struct work *w, struct nodes *out, uint64_t queues, bool bell) {
    int host = host_queue(w);
    for (int q = 0; q < w->m->nqueues; q++) {
        if (!(queues >> q & 1) || (bell && !is_device(w, q))) continue;
        if (!(bell ? add_signal(w, out, host, q) : add_signal(w, out, q, host))) return false;
    }
    return true;
}

/* Where the walk stands: the host works; these queues may still run. What the host works on waits
 * for those that track dependences, but work that has nothing to do with it may go on. `told`: the
 * queues that are behind the host's last work. */
struct phase {
    bool host;
    uint64_t last, told;
};

/* The host goes on when the device is done. */
static bool host_begins(struct work *w, struct nodes *out, struct phase *ph) {
    if (!ph->host && ph->last && !ring(w, out, ph->last, false)) return false;
    *ph = (struct phase){.host = true, .last = ph->last & ~device_queues(w)};
    return true;
}

static int nest_queue(const struct work *w, const struct nest *n) {
    return w->task[nest_head(n)].needle->in->queue;
}

static int nest_at(const struct work *w, int stmt) {
    for (int i = 0; i < w->nnests; i++)
        if (w->nest[i].first == stmt) return i;
    return -1;
}

struct sections {
    struct work *w;
    const struct moves *moves;
    struct held **stay; /* [nnests] copies that stay over the steps of a recurrence */
    bool *emitted;      /* [ngroups] */
    struct marks parts; /* of the section, as each begins */
};

static bool emit_range(struct sections *c, struct nodes *out, int from, int to, int scope,
                       struct phase *ph);

/* Nests of the host's own instructions beside a device are its work too. */
static bool has_host_work(const struct work *w, int from, int to) {
    uint64_t device = device_queues(w);
    for (int i = from; i < to; i++) {
        int nest = nest_at(w, w->order[i]);
        if (w->task_of[w->order[i]] == -1) return true;
        if (device && nest >= 0 && !(device >> nest_queue(w, &w->nest[nest]) & 1)) return true;
    }
    return false;
}

static bool waits(const struct work *w, int q, uint64_t from) {
    for (int f = 0; f < w->m->nqueues; f++)
        if ((from >> f & 1) && edge_find(w->edges, f, -1, q).kind != EDGE_FREE) return true;
    return false;
}

/* Queues of the device that nothing has kept behind the host's last work, when they meet `from`:
 * hardware that tracks dependences knows nothing of the host. */
static uint64_t not_told(const struct work *w, uint64_t queues, uint64_t from,
                         const struct phase *ph) {
    uint64_t out = queues & device_queues(w) & ~ph->told;
    for (int q = 0; q < w->m->nqueues; q++)
        if ((out >> q & 1) && waits(w, q, from)) out &= ~(UINT64_C(1) << q);
    return out;
}

/* These queues go on when what came before is done. The host is told first of what the device did,
 * where its own queues go on; a device that stands still is told by the host's bell. Of neither:
 * all queues meet. */
static bool meet(struct work *w, struct nodes *out, uint64_t queues, int root, struct phase *ph) {
    uint64_t device = device_queues(w), from = ph->last;
    if (!(queues & device) && (from & device)) {
        if (!ring(w, out, from, false)) return false;
        from &= ~device;
    }
    bool told = (queues & device) && !(from & device);
    if (told && (ph->host || from) && !ring(w, out, queues, true)) return false;
    if (!told && from &&
        (!ring(w, out, not_told(w, queues, from, ph), true) ||
         !add_barrier(w, out, from, queues, root)))
        return false;
    *ph =
        (struct phase){.last = told ? queues : from | queues, .told = ph->told | (queues & device)};
    return true;
}

/* Queues that meet at the head of each step are those of the body. */
static bool emit_device_body(struct sections *c, struct nodes *out, struct nodes *body, int from,
                             int to, int scope, struct phase *ph) {
    struct work *w = c->w;
    struct nodes list = {0};
    struct phase inner = {.host = false, .last = 0, .told = device_queues(w)};
    if (!emit_range(c, &list, from, to, scope, &inner)) return false;
    uint64_t queues = nodes_queues(w, list.at, list.n);
    int root = queues ? __builtin_ctzll(queues) : 0;
    for (int i = from; i < to; i++)
        if (nest_at(w, w->order[i]) >= 0) root = nest_queue(w, &w->nest[nest_at(w, w->order[i])]);
    if (!meet(w, out, queues, root, ph) || !add_barrier(w, body, queues, queues, root))
        return false;
    nodes_append(w, body, &list);
    return true;
}

/* Each step begins and ends with the host at work, and so does a recurrence of no steps. */
static bool emit_mixed_body(struct sections *c, struct nodes *out, struct nodes *body, int from,
                            int to, int scope, struct phase *ph) {
    struct work *w = c->w;
    if (!host_begins(w, out, ph) || !emit_range(c, body, from, to, scope, ph) ||
        !host_begins(w, body, ph))
        return false;
    uint64_t queues = nodes_queues(w, body->at, body->n) & ~device_queues(w);
    return !ph->last || !queues || add_barrier(w, body, ph->last, queues, __builtin_ctzll(queues));
}

/* Nodes of a list, when what came before is done. */
static bool emit_list(struct sections *c, struct nodes *out, const struct nodes *list, int root,
                      struct phase *ph) {
    struct work *w = c->w;
    if (!meet(w, out, nodes_queues(w, list->at, list->n), root, ph)) return false;
    nodes_append(w, out, list);
    return true;
}

static bool emit_prime(struct sections *c, struct nodes *out, int scope, struct phase *ph) {
    struct nodes list = {0};
    if (!recur_prime(c->w, c->moves, scope, c->stay, &list)) return false;
    uint64_t queues = nodes_queues(c->w, list.at, list.n);
    return !queues || emit_list(c, out, &list, __builtin_ctzll(queues), ph);
}

/* The first step, and one behind the last; sizes are the first variables. */
static void steps_from(struct work *w, const struct axis *x, struct val *begin, struct val *end) {
    struct arena *a = &w->s->arena;
    *begin = val_const(x->first);
    *end = val_const(x->extent);
    if (!x->size) return;
    struct val size = val_var(a, x->size - 1, w->p->size[x->size - 1].hi),
               group = val_const(x->group);
    struct val whole = x->group ? val_make(a, SX_DIV, size, group) : size;
    *end = x->rest ? size : whole;
    *begin = x->rest ? val_make(a, SX_MUL, whole, group) : val_const(0);
}

static bool emit_recur(struct sections *c, struct nodes *out, int from, int to, int scope,
                       struct phase *ph) {
    struct work *w = c->w;
    struct arena *a = &w->s->arena;
    struct nodes body = {0};
    const struct scope *s = &w->scope[scope];
    const struct axis *steps = &w->p->axis[s->axis];
    int var = new_var(w, steps->name);
    struct val v = val_var(a, var, steps->extent - 1), begin, end;
    steps_from(w, steps, &begin, &end);
    w->step[scope] =
        s->reverse ? val_minus(a, val_add(a, val_add(a, begin, end), val_const(-1)), v) : v;
    if (s->parent < 0 && !emit_prime(c, out, scope, ph)) return false;
    if (!(has_host_work(w, from, to) ? emit_mixed_body : emit_device_body)(c, out, &body, from, to,
                                                                           scope, ph))
        return false;
    nodes_add(w, out, loop_node(w, var, begin, end, 1, LOOP_SEQUENTIAL, s->axis, &body));
    return true;
}

static bool emit_one_nest(struct sections *c, struct nodes *out, int nest, struct phase *ph) {
    for (; nest >= 0; nest = c->w->nest[nest].next_part) {
        const struct nest *n = &c->w->nest[nest];
        struct nodes list = {0};
        int64_t extent = part_open(c->w, n);
        bool ok = emit_nest(c->w, c->moves, nest, c->stay, &list);
        part_close(c->w, n, extent);
        if (!ok || !emit_list(c, out, &list, nest_queue(c->w, n), ph)) return false;
    }
    return true;
}

static bool emit_part(struct sections *c, struct nodes *out, int nest, int stmt, struct phase *ph) {
    struct work *w = c->w;
    if (nest >= 0) return emit_one_nest(c, out, nest, ph);
    if (w->task_of[stmt] != -1) return true;
    struct loop part;
    if (!host_begins(w, out, ph)) return false;
    if (host_is_shared(w, stmt, &part))
        add_shared(w, out, stmt, &part);
    else
        add_fallback(w, out, stmt);
    return true;
}

static bool emit_grouped(struct sections *c, struct nodes *out, int group, struct phase *ph);

/* What goes before a group may be members of another one, which is emitted as a whole. */
static bool emit_before(struct sections *c, struct nodes *out, int group, const struct member *x,
                        struct phase *ph) {
    int own = c->w->group_of[x->stmt] - 1;
    return own == group ? emit_part(c, out, x->nest, x->stmt, ph) : emit_grouped(c, out, own, ph);
}

/* Where its first statement stands: first what goes before it. */
static bool emit_grouped(struct sections *c, struct nodes *out, int group, struct phase *ph) {
    const struct nest_group *g = &c->w->group[group];
    int lead = -1;
    if (c->emitted[group]) return true;
    c->emitted[group] = true;
    for (int m = 0; m < g->n; m++) {
        const struct member *x = &g->member[m];
        if (x->before && !emit_before(c, out, group, x, ph)) return false;
        if (lead < 0 && !x->before) lead = x->nest;
    }
    return emit_one_nest(c, out, lead, ph);
}

/* Parts without a node are none. */
static void begin_part(struct sections *c, int node) {
    if (c->parts.n && c->parts.at[c->parts.n - 1] == node) return;
    GROW(c->w->arena, c->parts.at, c->parts.n, c->parts.cap);
    c->parts.at[c->parts.n++] = node;
}

/* Statements [from, to) of the order, all inside `scope`. */
static bool emit_range(struct sections *c, struct nodes *out, int from, int to, int scope,
                       struct phase *ph) {
    struct work *w = c->w;
    for (int i = from; i < to; i++) {
        int s = w->order[i], nest = nest_at(w, s), child = recur_child(w, s, scope), end = i + 1;
        if (w->in_prepare[s] || feeds_have(w, s)) continue;
        if (scope < 0) begin_part(c, out->n);
        if (child != scope) {
            while (end < to && recur_child(w, w->order[end], scope) == child) end++;
            if (!emit_recur(c, out, i, end, child, ph)) return false;
            i = end - 1;
        } else if (w->group_of[s]) {
            if (!emit_grouped(c, out, w->group_of[s] - 1, ph)) return false;
        } else if (!emit_part(c, out, nest, s, ph)) {
            return false;
        }
    }
    return true;
}

static struct held **stays_new(const struct work *w) {
    return arena_array(w->arena, (size_t)w->nnests + 1, sizeof(struct held *));
}

static bool emit_run(struct work *w, const struct moves *moves, struct nodes *out,
                     struct marks *parts) {
    struct sections c = {.w = w,
                         .moves = moves,
                         .stay = stays_new(w),
                         .emitted = arena_array(w->arena, (size_t)w->ngroups + 1, sizeof(bool))};
    struct phase ph = {.host = false, .told = device_queues(w)};
    if (!emit_range(&c, out, 0, w->norder, -1, &ph)) return false;
    *parts = c.parts;
    return ph.host || !ph.last || ring(w, out, ph.last, false);
}

/* The first signal that nothing carries: neither an instruction of its queue nor one that does
 * nothing, nor an emit of the sync. NULL: none. */
static const struct node *mute_signal(const struct work *w, const struct node *at, int n) {
    const struct node *mute = NULL;
    for (int i = 0; i < n && !mute; i++) {
        if (at[i].kind == NODE_LOOP) mute = mute_signal(w, at[i].loop->body, at[i].loop->nbody);
        if (at[i].kind != NODE_SYNC) continue;
        const struct signals *g = &at[i].sync.signals; /* one */
        if (!machine_signals_alone(w->m, at[i].sync.queue, (g->npops ? g->pop : g->push)->sync,
                                   g->npops > 0))
            mute = &at[i];
    }
    return mute;
}

/* The statement of the sync's queues that stands beside the node: the last before it, else the
 * first behind it. `stmt` -1: none yet. */
struct beside {
    const struct node *at;
    const struct sync *sync;
    bool passed;
    int stmt;
};

static void find_beside(const struct work *w, const struct node *at, int n, struct beside *b) {
    for (int i = 0; i < n && !(b->passed && b->stmt >= 0); i++) {
        if (at[i].kind == NODE_LOOP) find_beside(w, at[i].loop->body, at[i].loop->nbody, b);
        b->passed |= &at[i] == b->at;
        if (at[i].kind != NODE_ISSUE || at[i].issue->stmt < 0) continue;
        int queue = w->m->instr[at[i].issue->instr].queue;
        if (queue >= 0 && (b->sync->from | b->sync->to) >> queue & 1) b->stmt = at[i].issue->stmt;
    }
}

/* Where one is not, the instruction beside it is not for its statement. */
static bool signals_carried(struct work *w, const struct node *at, int n) {
    const struct node *mute = mute_signal(w, at, n);
    if (!mute) return true;
    const struct signals *g = &mute->sync.signals;
    const struct sync *sync = &w->m->sync[(g->npops ? g->pop : g->push)->sync];
    const char *verb = g->npops ? "pop" : "push", *queue = w->m->queue[mute->sync.queue].id;
    struct beside b = {.at = mute, .sync = sync, .stmt = -1};
    find_beside(w, at, n, &b);
    w->emitted = b.stmt;
    return emit_refuse(
        w, arena_printf(w->arena,
                        "queue '%s' has to %s '%s' where none of its instructions stands that "
                        "could carry the signal; give the queue an instruction without buffers "
                        "(kernel nop() { }), or the sync's '%s' an emit",
                        queue, verb, sync->id, verb));
}

bool schedule_emit(struct work *w, const struct moves *moves) {
    struct nodes prepare = {0}, run = {0};
    struct marks parts;
    if (!homes_place(w)) return false;
    for (int i = 0; i < w->norder; i++)
        if (w->in_prepare[w->order[i]]) add_fallback(w, &prepare, w->order[i]);
    if (!emit_run(w, moves, &run, &parts))
        return emit_fail(w, "queues of the machine have no sync between them");
    if (!values_stay(w, moves, &run, &parts)) return false;
    w->s->prepare = (struct section){prepare.at, prepare.n};
    w->s->run = (struct section){run.at, run.n};
    homes_join(w);
    if (!homes_arrange(w, &parts)) return false;
    remains_place(w, &run);
    if (!configures_place(w, &prepare, &run)) return false;
    nodes_fold(w, &run);
    if (!signals_carried(w, run.at, run.n)) return false;
    w->s->prepare = (struct section){prepare.at, prepare.n};
    w->s->run = (struct section){run.at, run.n};
    return true;
}

bool schedule_emit_nest(struct work *w, const struct moves *moves, int nest) {
    struct nodes run = {0};
    struct held **stay = stays_new(w);
    homes_forget(w);
    if (!recur_primed(w, moves, nest, stay) || !emit_nest(w, moves, nest, stay, &run)) return false;
    nodes_fold(w, &run);
    w->s->run = (struct section){run.at, run.n};
    return true;
}
