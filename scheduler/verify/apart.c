/* Parallel loops in the walk of signals. All queues meet before such a loop and after it, so that
 * an instance whose queues, signals and copies are all inside its unit has an order of its own.
 * What its iterations touch outside is compared elsewhere (parallel.c). */
#include "scheduler/verify/stretch.h"
#include "scheduler/verify/sym.h"

#include <stdlib.h>
#include <string.h>

/* ---- what is inside ---- */
static bool inside(const struct verify *v, int unit_of, int unit) {
    return unit_inside(v->m, unit_of, unit);
}

static bool signals_inside(const struct verify *v, const struct signals *g, int unit) {
    for (int k = 0; g && k < g->npops + g->npushes; k++) {
        const struct signal *one = k < g->npops ? &g->pop[k] : &g->push[k - g->npops];
        if (!inside(v, v->m->sync[one->sync].unit, unit)) return false;
    }
    return true;
}

static bool slots_inside(const struct verify *v, int place, int unit) {
    if (place < 0 || v->s->place[place].slots == 1) return true;
    return inside(v, v->m->memory[v->s->place[place].memory].unit, unit);
}

static const char *issue_apart(const struct verify *v, const struct issue_node *n, int unit) {
    const struct instr *in = &v->m->instr[n->instr];
    if (in->queue >= 0 && !inside(v, v->m->queue[in->queue].unit, unit))
        return "instances of a parallel loop share a queue";
    for (int o = 0; o < in->noperands; o++) {
        if (!slots_inside(v, n->arg[o].place, unit))
            return "instances of a parallel loop share a copy";
        if (in->operand[o].also >= 0 && !inside(v, v->m->memory[in->operand[o].also].unit, unit))
            return "instances of a parallel loop share a memory that an instruction fills";
    }
    for (int k = 0; k < in->nneeds; k++) /* what the host makes before it launches stays */
        if (!state_from_addresses(v->m, in->need[k].state) &&
            !inside(v, v->m->state[in->need[k].state].unit, unit))
            return "instances of a parallel loop share a state";
    return NULL;
}

static const char *configure_apart(const struct verify *v, const struct configure *c, int unit) {
    bool own = c->queue < 0 || inside(v, v->m->queue[c->queue].unit, unit);
    for (int k = 0; k < c->nsets; k++) own &= inside(v, v->m->state[c->sets[k]].unit, unit);
    for (int k = 0; k < c->nclobbers; k++)
        own &= inside(v, v->m->memory[c->clobbers[k]].unit, unit);
    return own ? NULL : "instances of a parallel loop share a state";
}

static const char *fallback_apart(const struct verify *v, const struct fallback *f, int unit) {
    return inside(v, f->queue >= 0 ? v->m->queue[f->queue].unit : f->unit, unit)
               ? NULL
               : "instances of a parallel loop share the fallback's queue";
}

static const char *nodes_apart(const struct verify *v, const struct node *node, int n, int unit) {
    const char *why = NULL;
    for (int k = 0; k < n && !why; k++) {
        const struct signals *g = node[k].kind == NODE_LOOP ? NULL : node_signals(&node[k]);
        if (!signals_inside(v, g, unit))
            why = "a signal in a parallel loop goes outside of its instance";
        else if (node[k].kind == NODE_LOOP)
            why = nodes_apart(v, node[k].loop->body, node[k].loop->nbody, unit);
        else if (node[k].kind == NODE_ISSUE)
            why = issue_apart(v, node[k].issue, unit);
        else if (node[k].kind == NODE_SYNC &&
                 !inside(v, v->m->queue[node[k].sync.queue].unit, unit))
            why = "instances of a parallel loop share a queue";
        else if (node[k].kind == NODE_ROTATE && !slots_inside(v, node[k].rotate, unit))
            why = "instances of a parallel loop share a copy";
        else if (node[k].kind == NODE_FALLBACK)
            why = fallback_apart(v, &v->m->fallback[node[k].fallback->fallback], unit);
        else if (node[k].kind == NODE_CONFIGURE)
            why = configure_apart(v, &v->m->configure[node[k].configure->configure], unit);
    }
    return why;
}

const char *instances_apart(const struct verify *v, const struct loop_node *l) {
    return nodes_apart(v, l->body, l->nbody, l->unit);
}

/* ---- their walk ---- */
/* What is known of queues and signals outside, while an instance is walked. */
struct outside {
    struct queue_instance **queue;
    int nqueues;
    struct token_channel *channels;
    struct pages slots;
    struct stretches *stretch;
    uint32_t at_barrier[MAX_QUEUES], barriers;
};

static void leave_out(struct verify *v, struct outside *x) {
    x->nqueues = v->nqueues;
    x->queue = arena_copy(&v->arena, v->queue, (size_t)v->nqueues * sizeof(*v->queue));
    x->channels = v->channels;
    x->slots = v->slots;
    x->stretch = v->stretch;
    memcpy(x->at_barrier, v->at_barrier, sizeof x->at_barrier);
    x->barriers = v->barriers;
    pages_init(&v->slots, x->slots.bytes, x->slots.total);
    v->stretch = stretches_open(v);
}

static void bring_back(struct verify *v, const struct outside *x) {
    pages_free(&v->slots);
    stretches_free(v, v->stretch);
    v->nqueues = x->nqueues;
    memcpy(v->queue, x->queue, (size_t)x->nqueues * sizeof(*v->queue));
    v->channels = x->channels;
    v->slots = x->slots;
    v->stretch = x->stretch;
    memcpy(v->at_barrier, x->at_barrier, sizeof v->at_barrier);
    v->barriers = x->barriers;
}

bool instances_walk(struct verify *v, const struct loop_node *l, bool alike,
                    bool (*walk)(void *user, const struct loop_node *), void *user) {
    int64_t lo = sx_eval(l->lo, v->var), hi = sx_eval(l->hi, v->var);
    int64_t n = hi <= lo ? 0 : (hi - lo - 1) / l->step + 1;
    int64_t count = v->m->unit[l->unit].is_virtual ? n : unit_instances(v->m, l->unit);
    struct outside outside;
    __int128 all = n;
    bool good = true;
    if (n == 0) return true;
    if (count > n) count = n;
    race_barrier(v);
    leave_out(v, &outside);
    for (int64_t i = 0; i < (alike ? 1 : count) && good; i++) {
        race_forget(v);
        stretches_forget(v, v->stretch);
        int64_t first = (int64_t)(all * i / count), end = (int64_t)(all * (i + 1) / count);
        for (int64_t k = first; k < end && good; k++) {
            v->var[l->var] = lo + k * l->step;
            good = walk(user, l);
        }
        if (good) race_tokens_left(v);
        good = good && v->errors == 0;
    }
    race_tokens_free(v);
    bring_back(v, &outside);
    race_barrier(v);
    return good;
}
