/* A step of a recurrence begins while the step before ends: the device's queues wait for one
 * another where their work needs it, and nowhere else. Nests are emitted alone, so their queues
 * meet between them and at the head of each step, and each takes its credits back. Once the body
 * stands, all that is replaced by a token for each place that one queue leaves to another; those
 * from step to step are given once before the first step and taken once behind the last. */
#include "scheduler/emit/stay_int.h"

/* Node `to` of another queue, in this step or in the next one, waits for node `from`. */
struct dependence {
    int from, to;
    bool next, gone;
    struct edge edge;
};

struct overlap {
    struct stay *stay;
    uint64_t queues;
    struct dependence *dep;
    int n, cap;
};

/* ---- where it may be done ---- */

static bool plain_signals(const struct machine *m, const struct signals *s) {
    bool plain = true;
    for (int i = 0; s && i < s->npops; i++) plain &= m->sync[s->pop[i].sync].kind == SYNC_TOKEN;
    for (int i = 0; s && i < s->npushes; i++) plain &= m->sync[s->push[i].sync].kind == SYNC_TOKEN;
    return plain;
}

static bool plain_issue(const struct machine *m, const struct issue_node *n) {
    const struct instr *in = &m->instr[n->instr];
    return in->queue >= 0 && !m->queue[in->queue].data_order && m->queue[in->queue].width <= 1 &&
           !in->nrequires && !in->nneeds && in->completes < 0;
}

/* The queues of the instructions, without what only waits or tells. */
static uint64_t issue_queues(const struct machine *m, const struct node *at, int n) {
    uint64_t queues = 0;
    for (int i = 0; i < n; i++) {
        if (at[i].kind == NODE_ISSUE) queues |= UINT64_C(1) << m->instr[at[i].issue->instr].queue;
        if (at[i].kind == NODE_LOOP) queues |= issue_queues(m, at[i].loop->body, at[i].loop->nbody);
    }
    return queues;
}

/* Tokens, in queues that keep their order; each loop inside is one queue's. */
static bool plain_body(const struct machine *m, const struct node *at, int n) {
    bool plain = true;
    for (int i = 0; i < n && plain; i++) {
        plain = plain_signals(m, node_signals(&at[i]));
        if (at[i].kind == NODE_FALLBACK || at[i].kind == NODE_CONFIGURE) plain = false;
        if (at[i].kind == NODE_ISSUE) plain &= plain_issue(m, at[i].issue);
        if (at[i].kind != NODE_LOOP) continue;
        plain &= !at[i].loop->table && plain_body(m, at[i].loop->body, at[i].loop->nbody) &&
                 __builtin_popcountll(issue_queues(m, &at[i], 1)) == 1;
    }
    return plain;
}

static bool plain_place(const struct stay *c, int place) {
    const struct place *x = stay_place(c, place);
    const struct memory *m = &c->w->m->memory[x->memory];
    return x->keep != KEEP_LOCAL || (stay_may(c, place) && m->alias < 0);
}

/* ---- who waits for whom ---- */

static struct span_bytes { int64_t at, end; } bytes_of(const struct stay *c, const struct use *u) {
    const struct place *x = stay_place(c, u->place);
    int64_t at = x->slots == 1 ? u->lo : 0, n = x->slots == 1 ? u->n : x->bytes * x->slots;
    return (struct span_bytes){x->address + at, x->address + at + n};
}

static bool meet_there(const struct stay *c, const struct use *a, const struct use *b) {
    const struct place *x = stay_place(c, a->place), *y = stay_place(c, b->place);
    if (a->queue == b->queue || (!a->writes && !b->writes)) return false;
    if (x->keep != KEEP_LOCAL || y->keep != KEEP_LOCAL) return a->place == b->place;
    struct span_bytes s = bytes_of(c, a), t = bytes_of(c, b);
    return x->memory == y->memory && s.at < t.end && t.at < s.end;
}

/* Whoever waits for b has waited for a: queues keep their order, from step to step too. */
static bool covers(const struct dependence *b, const struct dependence *a, int nodes) {
    bool covered = false;
    for (int k = -nodes; k <= nodes; k += nodes)
        covered |= b->from + k >= a->from &&
                   b->to + (b->next ? nodes : 0) + k <= a->to + (a->next ? nodes : 0);
    return covered && a->edge.from == b->edge.from && a->edge.to == b->edge.to;
}

/* False: no token says it, or one would be needed inside of a loop. */
static bool add_dependence(struct overlap *o, const struct use *a, const struct use *b) {
    struct work *w = o->stay->w;
    struct dependence x = {.from = a->pos, .to = b->pos, .next = b->pos < a->pos};
    x.edge = edge_find(w->edges, a->queue, -1, b->queue);
    if (x.edge.kind == EDGE_FREE) return true;
    if (x.edge.kind != EDGE_TOKEN || x.edge.origin != x.edge.from || a->pos == b->pos ||
        !machine_signals_alone(w->m, a->queue, x.edge.sync, false) ||
        !machine_signals_alone(w->m, b->queue, x.edge.sync, true))
        return false;
    for (int i = 0; i < o->n; i++)
        if (covers(&o->dep[i], &x, o->stay->body.n)) return true;
    GROW(w->arena, o->dep, o->n, o->cap);
    o->dep[o->n++] = x;
    return true;
}

static bool find_dependences(struct overlap *o) {
    const struct stay *c = o->stay;
    for (int i = 0; i < c->nuses; i++) {
        if (!plain_place(c, c->use[i].place)) return false;
        for (int k = 0; k < c->nuses; k++)
            if (meet_there(c, &c->use[i], &c->use[k]) && !add_dependence(o, &c->use[i], &c->use[k]))
                return false;
    }
    for (int i = 0; i < o->n; i++)
        for (int k = 0; k < o->n && !o->dep[i].gone; k++)
            o->dep[i].gone = k != i && !o->dep[k].gone && covers(&o->dep[k], &o->dep[i], c->body.n);
    return true;
}

/* ---- the body anew ---- */

/* The node without its signals, and without those inside of it. */
static void add_bare(struct work *w, struct nodes *out, struct node n) {
    struct nodes body = {0};
    if (n.kind == NODE_SYNC) return;
    if (n.kind == NODE_ISSUE) {
        n.issue = arena_copy(&w->s->arena, n.issue, sizeof *n.issue);
        n.issue->signals = (struct signals){0};
    }
    if (n.kind == NODE_LOOP) {
        n.loop = arena_copy(&w->s->arena, n.loop, sizeof *n.loop);
        for (int i = 0; i < n.loop->nbody; i++) add_bare(w, &body, n.loop->body[i]);
        n.loop->body = body.at;
        n.loop->nbody = body.n;
    }
    nodes_add(w, out, n);
}

static struct nodes body_anew(struct overlap *o) {
    struct work *w = o->stay->w;
    struct nodes out = {0};
    for (int i = 0; i < o->stay->body.n; i++) {
        for (int k = 0; k < o->n; k++)
            if (!o->dep[k].gone && o->dep[k].to == i)
                edge_take(w, &out, &o->dep[k].edge, (struct signal){0});
        add_bare(w, &out, o->stay->body.at[i]);
        for (int k = 0; k < o->n; k++)
            if (!o->dep[k].gone && o->dep[k].from == i)
                edge_give(w, &out, &o->dep[k].edge, (struct signal){0});
    }
    return out;
}

static int root_of(const struct stay *c) {
    for (int i = 0; i < c->nuses; i++)
        if (c->use[i].issue->stmt >= 0) return c->use[i].queue;
    return c->use[0].queue;
}

bool steps_overlap(struct stay *c) {
    struct work *w = c->w;
    struct loop_node *l = c->list->at[c->node].loop;
    struct overlap o = {.stay = c};
    struct nodes out = {0};
    c->body = (struct nodes){l->body, l->nbody, l->nbody};
    if (!plain_body(w->m, l->body, l->nbody) || !stay_look(c) || c->mixed || !c->nuses ||
        !find_dependences(&o))
        return true;
    uint64_t all = nodes_queues(w, l->body, l->nbody);
    struct nodes body = body_anew(&o);
    for (int i = 0; i < c->node; i++) nodes_add(w, &out, c->list->at[i]);
    if (!add_barrier(w, &out, all, all, root_of(c))) return false;
    for (int k = 0; k < o.n; k++)
        if (!o.dep[k].gone && o.dep[k].next) edge_give(w, &out, &o.dep[k].edge, (struct signal){0});
    l->body = body.at;
    l->nbody = body.n;
    nodes_add(w, &out, c->list->at[c->node]);
    for (int k = 0; k < o.n; k++)
        if (!o.dep[k].gone && o.dep[k].next) edge_take(w, &out, &o.dep[k].edge, (struct signal){0});
    int end = out.n;
    for (int i = c->node + 1; i < c->list->n; i++) nodes_add(w, &out, c->list->at[i]);
    *c->list = out;
    c->node = end - 1;
    return true;
}
