/* What the body of a recurrence uses, and when: what is asked before values stay (stay.c). */
#include "ir/number.h"
#include "scheduler/emit/stay_int.h"
#include <limits.h>

/* ---- what the body does ---- */

void stay_use(struct stay *c, struct use u) {
    GROW(c->w->arena, c->use, c->nuses, c->cap_uses);
    c->use[c->nuses++] = u;
}

static void use_home(struct stay *c, int pos, int buffer, bool writes) {
    int place = schedule_home(c->w->s, buffer);
    if (place < 0) return;
    stay_use(c, (struct use){.pos = pos,
                             .queue = -1,
                             .place = place,
                             .n = c->w->s->place[place].bytes,
                             .reads = !writes,
                             .writes = writes,
                             .fixed = true});
}

static void use_issue(struct stay *c, int pos, struct issue_node *n, bool fixed) {
    const struct instr *in = &c->w->m->instr[n->instr];
    for (int o = 0; o < in->noperands; o++) {
        int place = n->arg[o].place;
        if (place < 0) continue;
        stay_use(c, (struct use){.pos = pos,
                                 .queue = in->queue,
                                 .issue = n,
                                 .operand = o,
                                 .place = place,
                                 .n = c->w->s->place[place].bytes,
                                 .reads = in->operand[o].role != ROLE_OUT,
                                 .writes = in->operand[o].role != ROLE_IN,
                                 .fixed = fixed || in->nrequires || in->nneeds ||
                                          in->completes >= 0 || in->operand[o].also >= 0});
    }
}

static bool find_uses(struct stay *c, const struct node *at, int n, int pos, bool fixed) {
    const struct program *p = c->w->p;
    bool ok = true;
    for (int i = 0; i < n && ok; i++) {
        int here = pos < 0 ? i : pos;
        if (at[i].kind == NODE_LOOP)
            ok =
                at[i].loop->kind != LOOP_PARALLEL &&
                find_uses(c, at[i].loop->body, at[i].loop->nbody, here, fixed || at[i].loop->table);
        if (at[i].kind == NODE_ISSUE) use_issue(c, here, at[i].issue, fixed);
        if (at[i].kind != NODE_FALLBACK) continue;
        const struct stmt *st = &p->stmt[at[i].fallback->stmt];
        use_home(c, here, st->dst.buffer, true);
        if (st->combine != COMBINE_SET) use_home(c, here, st->dst.buffer, false);
        for (int r = 0; r < st->nreads; r++) use_home(c, here, st->read[r].buffer, false);
    }
    return ok;
}

static bool is_home(const struct stay *c, int place) {
    return place >= 0 && c->w->s->place[place].keep != KEEP_LOCAL;
}

static void find_copy(struct stay *c, int pos, struct issue_node *n) {
    const struct move *mv = stay_move(c, n->instr);
    struct copy x = {.pos = pos, .issue = n};
    if (!mv || !(x.bytes = stay_bytes(c, mv, n))) return;
    int from = n->arg[mv->from_operand].place, to = n->arg[mv->to_operand].place;
    x.loads = is_home(c, from);
    if (from < 0 || to < 0 || x.loads == is_home(c, to)) return;
    x.home_operand = x.loads ? mv->from_operand : mv->to_operand;
    x.local_operand = x.loads ? mv->to_operand : mv->from_operand;
    x.home = x.loads ? from : to;
    x.local = x.loads ? to : from;
    if (c->w->s->place[x.home].keep != KEEP_WORKSPACE ||
        !sx_constant(n->arg[x.home_operand].offset, &x.at) ||
        !sx_constant(n->arg[x.local_operand].offset, &x.from))
        return;
    GROW(c->w->arena, c->copy, c->ncopies, c->cap_copies);
    c->copy[c->ncopies++] = x;
}

/* ---- conditions ---- */

bool stay_overlaps(const struct use *u, int place, int64_t lo, int64_t n) {
    return u->place == place && u->lo < lo + n && lo < u->lo + u->n;
}

const struct place *stay_place(const struct stay *c, int place) {
    return &c->w->s->place[place];
}

int64_t stay_alignment(const struct stay *c, int place) {
    const struct work *w = c->w;
    const struct memory *m = &w->m->memory[stay_place(c, place)->memory];
    int64_t align = least_multiple(m->word > 0 ? m->word : 1, m->align > 0 ? m->align : 1);
    for (int i = 0; i < c->nuses; i++) {
        const struct use *u = &c->use[i];
        if (u->place != place || !u->issue || u->issue->stmt < 0) continue;
        const struct task *t = &w->task[w->task_of[u->issue->stmt]];
        for (int o = 0; w->task_of[u->issue->stmt] >= 0 && o < t->nops; o++)
            if (t->op[o].number == u->operand && t->op[o].align > 0)
                align = least_multiple(align, t->op[o].align);
    }
    return align;
}

struct copy *stay_copy_at(const struct stay *c, const struct use *u) {
    for (int i = 0; i < c->ncopies; i++)
        if (c->copy[i].issue == u->issue) return &c->copy[i];
    return NULL;
}

static bool is_transfer(const struct stay *c, const struct issue_node *n) {
    const struct move *mv = n->stmt < 0 ? stay_move(c, n->instr) : NULL;
    return mv &&
           is_home(c, n->arg[mv->from_operand].place) != is_home(c, n->arg[mv->to_operand].place);
}

bool stay_one_queue(const struct stay *c, int a, int b, int *queue) {
    *queue = -1;
    for (int i = 0; i < c->nuses; i++) {
        const struct use *u = &c->use[i];
        if (u->place != a && u->place != b) continue;
        if (u->fixed || u->queue < 0) return false;
        if (is_transfer(c, u->issue)) continue;
        if (*queue >= 0 && u->queue != *queue) return false;
        *queue = u->queue;
    }
    return *queue >= 0 && !c->w->m->queue[*queue].data_order && c->w->m->queue[*queue].width <= 1;
}

bool stay_may(const struct stay *c, int place) {
    const struct place *x = stay_place(c, place);
    return x->keep == KEEP_LOCAL && !graph_is_static(c->w->m, x->memory) &&
           c->w->m->memory[x->memory].caches < 0;
}

struct span stay_span(const struct stay *c, int place, const struct issue_node *but) {
    struct span s = {INT_MAX, -1, INT_MAX};
    for (int i = 0; i < c->nuses; i++) {
        const struct use *u = &c->use[i];
        if (u->place != place || u->issue == but) continue;
        if (u->pos < s.first) s.first = u->pos;
        if (u->pos > s.last) s.last = u->pos;
        if (u->writes && u->pos < s.write) s.write = u->pos;
    }
    return s;
}

bool stay_may_go(const struct stay *c, const struct issue_node *n) {
    const struct signals *g = &n->signals;
    int queue = c->w->m->instr[n->instr].queue;
    for (int i = 0; i < g->npops; i++)
        if (!machine_signals_alone(c->w->m, queue, g->pop[i].sync, true)) return false;
    for (int i = 0; i < g->npushes; i++)
        if (!machine_signals_alone(c->w->m, queue, g->push[i].sync, false)) return false;
    return true;
}

void stay_signals(struct stay *c, struct nodes *out, const struct issue_node *n) {
    int queue = c->w->m->instr[n->instr].queue;
    for (int i = 0; i < n->signals.npops + n->signals.npushes; i++) {
        bool push = i >= n->signals.npops;
        const struct signal *x = push ? &n->signals.push[i - n->signals.npops] : &n->signals.pop[i];
        add_sync(c->w, out, queue, push, x->sync);
        struct signals *g = &out->at[out->n - 1].sync.signals;
        *(push ? g->push : g->pop) = *x;
    }
}

/* Some queue of the body is the host's, which tells the device's queues when to go on. */
static bool has_host(const struct stay *c) {
    const struct work *w = c->w;
    int host = w->fallback >= 0 ? w->m->fallback[w->fallback].queue : -1;
    uint64_t queues = nodes_queues(w, c->body.at, c->body.n);
    bool device = false, beside = false;
    for (int q = 0; q < w->m->nqueues && host >= 0; q++) {
        bool tells = q != host && edge_find(w->edges, host, -1, q).kind != EDGE_FREE;
        device |= tells;
        beside |= !tells && queues >> q & 1;
    }
    return device && beside;
}

bool stay_look(struct stay *c) {
    c->nuses = c->ncopies = 0;
    c->mixed = has_host(c);
    if (!find_uses(c, c->body.at, c->body.n, -1, false)) return false;
    for (int i = 0; i < c->body.n; i++)
        if (c->body.at[i].kind == NODE_ISSUE) find_copy(c, i, c->body.at[i].issue);
    return true;
}
