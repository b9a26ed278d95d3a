/* Results that leave behind the next fills (software pipelining of the epilogue): where one queue
 * fills and stores and tells by the same tokens, the store of a result would stand before the fills
 * of the next one, and neither runs while the instructions do. Here the fills of the next result
 * stand before the instructions of this one (emit/ahead.c):
 *
 *   step  = max(exec, store + load + latency)
 *   waits = (steps - turns) * (step - exec) + (turns - 1) * (store + outer fills + load + latency)
 *
 * A turn of the loop around the steps begins when all results of the turn before are stored. */
#include "machines/needle.h"
#include "scheduler/plan/attach.h"
#include "scheduler/plan/graph.h"
#include "scheduler/plan/nest.h"
#include "scheduler/plan/plan.h"
#include "scheduler/plan/price.h"
#include "scheduler/plan/price_int.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/tiling.h"
#include "scheduler/plan/work.h"
#include <math.h>

/* A token each way. Fills of this step and of the next one are told of before the first is taken.
 */
static bool tokens_hold(const struct work *w, int fills, int user) {
    struct edge there = edge_of_queue(w->edges, fills, user),
                back = edge_of_queue(w->edges, user, fills), before;
    return there.kind == EDGE_TOKEN && back.kind == EDGE_TOKEN &&
           !edge_before(w->edges, &there, &before) && !edge_before(w->edges, &back, &before) &&
           edge_counts(w->m, &there, 2);
}

bool results_behind(const struct work *w, const struct nest *n, const struct plan *p, int depth,
                    int fills, int user) {
    const struct task *t = n->core >= 0 ? &w->task[n->core] : NULL;
    int results = 0, d = depth - 1;
    if (!t || t->needle->in->completes >= 0 || n->nchain || n->group || n->nprefix || n->nfeeds ||
        n->part_n || n->kept || p->parts > 0 || d < 0 || p->depth_out != depth ||
        (p->is_static && loop_unrolled(w, n, p, d)))
        return false;
    for (int i = 0; i < t->nops; i++) {
        const struct opnd *o = &t->op[i];
        if (!o->writes) continue;
        if (o->where != IN_LOCAL || p->hold[i].depth != depth || o->out.n > 1 ||
            attached_at(o, FILLS) || nest_begins_at_home(w, n, o) ||
            (!o->out.n && user != t->needle->in->queue) || !tokens_hold(w, fills, user))
            return false;
        results++;
    }
    int a = p->loop[d].axis;
    return results == 1 && plan_tile(w, p, a, d) > p->loop[d].tile &&
           plan_tile(w, p, a, d) == plan_least(w, p, a, d);
}

/* The copy that such a stream fills. */
static struct hold *filled(const struct pricing *c, const struct stream *s) {
    return s->outer ? s->outer : s->operand >= 0 ? &c->plan->hold[s->operand] : NULL;
}

/* From home, whole, for the instructions, in slots that turn. */
static bool turns_whole(const struct pricing *c, const struct task *core, const struct stream *s,
                        int depth, int user) {
    const struct hold *h = filled(c, s);
    return h && !keeps_part(h) && s->pieces <= 1 && !s->in_pieces && s->user == user &&
           (s->outer || !core->op[s->operand].in.n) && (s->depth < depth || s->slots > 1);
}

double behind_waits(const struct pricing *c, const struct flow *f, double exec) {
    const struct plan *p = c->plan;
    const struct task *core = &c->w->task[c->nest->core];
    const struct stream *d = &c->drain;
    double outer = 0, turns, step = exec / f->steps, busy = d->cycles + f->load;
    if (f->slots < 2 || d->trips <= 0 || d->queue != f->queue ||
        !results_behind(c->w, c->nest, p, f->depth, f->queue, d->user) || d->slots < 2)
        return INFINITY;
    for (int i = 0; i < c->nfills; i++) {
        const struct stream *s = &c->fill[i];
        if (s->queue != f->queue) continue;
        if (!turns_whole(c, core, s, f->depth, d->user)) return INFINITY;
        if (s->depth < f->depth) outer += (s->trips - 1) * s->cycles;
    }
    turns = plan_trips(c->w, p, f->depth - 1);
    double late = fmax(busy + f->latency + f->seen - step, busy * pipe_held(c, f, d->issues));
    return price_add(c, PRICE_STEPS, (f->steps - turns) * fmax(0, late)) +
           price_add(c, PRICE_BRACKETS, outer) +
           price_add(c, PRICE_APART, (turns - 1) * (busy + f->latency));
}

void behind_forget(struct pricing *c) {
    for (int i = 0; i < c->nfills; i++) {
        struct hold *h = filled(c, &c->fill[i]);
        if (h && !c->fill[i].in_pieces) h->ahead = false;
    }
}

void behind_choose(struct pricing *c, const struct flow *f) {
    for (int i = 0; i < c->nfills; i++)
        if (c->fill[i].queue == f->queue && c->fill[i].depth == f->depth)
            filled(c, &c->fill[i])->ahead = true;
    c->plan->parts = 0;
}
