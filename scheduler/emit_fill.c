/* Fills of the core's holds and the tokens between the queues that make and use them (SCHEDULING
 * §5). A hold is filled from home or from the outer copy on its route; who uses it is the queue of
 * the next inner fill, at last that of the instructions. */
#include "scheduler/emit_int.h"

struct pacer {
    int queue, user, depth, credits, bracket;
    bool war;
};

double trips_inside(const struct emitter *e, int d) {
    const struct plan *p = &e->nest->plan;
    return plan_trips(e->w, p, d) / plan_trips(e->w, p, e->nest->nprefix);
}

static bool flows(const struct filling *f, const struct pacer *c) {
    return f->queue == c->queue && f->user == c->user;
}

/* At most as many credits as the syncs of both directions hold tokens. */
int within_depth(const struct emitter *e, int credits, int queue, int user) {
    for (int way = 0; way < 2; way++) {
        int sync = way ? graph_sync(e->w->m, user, queue) : graph_sync(e->w->m, queue, user);
        int64_t depth = sync >= 0 ? e->w->m->sync[sync].depth : -1;
        if (depth >= 0 && depth < credits) credits = (int)depth;
    }
    return credits;
}

static struct pacer pacer_make(const struct emitter *e, int queue, int user) {
    int root = e->nest->nprefix;
    struct pacer c = {.queue = queue, .user = user, .depth = -1, .credits = 3, .bracket = root};
    for (int i = 0; i < e->nfills; i++)
        if (flows(&e->fill[i], &c) && e->fill[i].hold->depth > c.depth)
            c.depth = e->fill[i].hold->depth;
    for (int i = 0; i < e->nfills; i++)
        if (flows(&e->fill[i], &c) && e->fill[i].hold->depth == c.depth &&
            e->fill[i].hold->slots < c.credits)
            c.credits = e->fill[i].hold->slots;
    c.credits = within_depth(e, c.credits, queue, user);
    c.war = c.depth > root && trips_inside(e, c.depth) > 1;
    for (int i = 0; i < e->nfills; i++) {
        const struct hold *h = e->fill[i].hold;
        if (!flows(&e->fill[i], &c) || h->depth >= c.depth || h->depth < root ||
            trips_inside(e, h->depth) <= 1)
            continue;
        if (h->slots == 1 || plan_least_inner(e->w, &e->nest->plan, h->depth, c.depth) < c.credits)
            if (h->depth > c.bracket) c.bracket = h->depth;
    }
    return c;
}

static bool is_paced(const struct emitter *e, const struct filling *f) {
    return graph_sync(e->w->m, f->queue, f->user) >= 0;
}

static int pacers(const struct emitter *e, struct pacer *out) {
    int n = 0;
    for (int i = 0; i < e->nfills; i++) {
        const struct filling *f = &e->fill[i];
        bool known = !is_paced(e, f) || f->hold->depth < e->nest->nprefix;
        for (int k = 0; k < n; k++) known |= flows(f, &out[k]);
        if (!known) out[n++] = pacer_make(e, f->queue, f->user);
    }
    return n;
}

bool fill_hold(struct emitter *e, struct nodes *out, const struct filling *f) {
    struct work *w = e->w;
    const struct opnd *o = &e->t->op[f->operand];
    const struct access *acc = task_access(w, e->t, o, o->read < 0);
    struct opnd stop = route_stop(w, o, &o->in, f->level);
    renew_place(e, f->held);
    if (f->held->slots > 1) add_rotate(w, out, f->held->place);
    if (!f->level) return hold_fill(e, out, e->t, &stop, acc, f->held);
    struct opnd outer = route_stop(w, o, &o->in, f->level - 1);
    region_here(e, e->t, o, acc, &f->held->whole);
    f->held->slot = slot_make(&w->s->arena, &stop.geom, &f->held->whole);
    return emit_between(w, e->moves, out, acc->buffer, &outer, &e->via[f->operand][f->level - 1],
                        &stop, f->held, &f->held->whole, true);
}

static void ready(struct emitter *e, struct nodes *out, const struct pacer *c) {
    int sync = graph_sync(e->w->m, c->queue, c->user);
    add_sync(e->w, out, c->queue, true, sync);
    add_sync(e->w, out, c->user, false, sync);
}

/* Instructions use a copy inside all fills only, so that the deepest one's token serves the outer
 * ones too; inner fills begin at their own depths. */
static bool fills_at(struct emitter *e, struct nodes *out, int d, const struct pacer *pacer) {
    for (int i = 0; i < e->nfills; i++) {
        const struct filling *f = &e->fill[i];
        bool mine = pacer ? flows(f, pacer) : !is_paced(e, f);
        if (!mine || f->hold->depth != d) continue;
        if (!fill_hold(e, out, f)) return false;
        if (pacer && pacer->user != e->exec) ready(e, out, pacer);
    }
    return true;
}

static void credits(struct emitter *e, struct nodes *out, const struct pacer *c, bool give) {
    int sync = graph_sync(e->w->m, c->user, c->queue);
    for (int i = 0; i < c->credits; i++) add_sync(e->w, out, give ? c->user : c->queue, give, sync);
}

/* Outer copies come first: fills stand in the order of the routes, and flows in that of their first
 * fill. */
bool fills_open(struct emitter *e, struct nodes *out, int d) {
    struct work *w = e->w;
    struct pacer pc[MAX_FILLS];
    int n = pacers(e, pc);
    for (int k = 0; k < n; k++)
        if (pc[k].war && pc[k].bracket == d) credits(e, out, &pc[k], true);
    for (int k = 0; k < n; k++) {
        bool paced = pc[k].depth == d;
        if (paced && pc[k].war)
            add_sync(w, out, pc[k].queue, false, graph_sync(w->m, pc[k].user, pc[k].queue));
        if (!fills_at(e, out, d, &pc[k])) return false;
        if (paced && pc[k].user == e->exec) ready(e, out, &pc[k]);
    }
    return fills_at(e, out, d, NULL);
}

void fills_close(struct emitter *e, struct nodes *out, int d) {
    struct work *w = e->w;
    struct pacer pc[MAX_FILLS];
    int n = pacers(e, pc);
    for (int k = 0; k < n; k++)
        if (pc[k].depth == d && pc[k].war)
            add_sync(w, out, pc[k].user, true, graph_sync(w->m, pc[k].user, pc[k].queue));
    for (int k = 0; k < n; k++)
        if (pc[k].war && pc[k].bracket == d) credits(e, out, &pc[k], false);
}
