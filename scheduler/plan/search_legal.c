/* Residencies that cannot be, told from depths alone: a search comes to a hundred thousand of them,
 * and most unroll too much, or do not fit. Each is refused by the price too (plan.c), which would
 * first sum up what it costs. */
#include "scheduler/plan/attach.h"
#include "scheduler/plan/graph.h"
#include "scheduler/plan/price_int.h"
#include "scheduler/plan/rewrite.h"
#include "scheduler/plan/search_int.h"
#include <math.h>

static uint64_t outside(int depth) { /* the loops outside of a depth */
    return (UINT64_C(1) << depth) - 1;
}

/* The loops along these axes. */
static uint64_t loops_along(const struct plan *p, uint64_t axes) {
    uint64_t loops = 0;
    for (int i = 0; axes && i < p->nloops; i++)
        if (axes >> p->loop[i].axis & 1) loops |= UINT64_C(1) << i;
    return loops;
}

void legal_begin(struct legal *l, struct search *s, const struct plan *p) {
    const struct task *t = search_task(s);
    const struct asked *a = &s->tiling.asked;
    l->s = s;
    l->repeated = l->reads_home = 0;
    for (int i = 0; i < t->nops; i++) {
        const struct opnd *o = &t->op[i];
        l->walks[i] = loops_along(p, a->walks[i]);
        l->leaves[i] = loops_along(p, a->leaves[i]);
        if (o->where == IN_LOCAL && graph_is_static(s->w->m, o->memory)) l->repeated |= 1u << i;
        if (o->where == IN_HOME && o->read >= 0) l->reads_home |= 1u << i;
    }
    for (int i = 0; i < p->nloops; i++)
        l->trips[i] =
            ceil((double)plan_tile(s->w, p, p->loop[i].axis, i) / (double)p->loop[i].tile);
}

/* The loops that are unrolled (loop_unrolled), and those because fills settle in them. */
static uint64_t unrolled(const struct legal *l, const struct plan *p, uint64_t *settles) {
    uint64_t loops = 0;
    *settles = 0;
    for (int i = 0; i < search_task(l->s)->nops; i++) {
        uint64_t around = outside(p->hold[i].depth);
        loops |= l->walks[i] & ~around;
        *settles |= l->leaves[i] & around;
    }
    return loops | *settles;
}

static bool code_fits(const struct legal *l, uint64_t loops, uint64_t settles) {
    double body = 1, settled = 1;
    for (; loops; loops &= loops - 1) {
        int i = __builtin_ctzll(loops);
        if (l->trips[i] > 1) *(settles >> i & 1 ? &settled : &body) *= l->trips[i];
    }
    return unrolled_fits(body, settled);
}

/* Is a register filled again with the same in straight-line code (repeats_fill)? */
static bool repeats(const struct legal *l, const struct plan *p, uint64_t loops) {
    for (unsigned left = l->repeated; left; left &= left - 1) {
        int i = __builtin_ctz(left), depth = p->hold[i].depth;
        uint64_t rolled = ~loops & outside(depth);
        uint64_t run = outside(depth) & ~(rolled ? outside(64 - __builtin_clzll(rolled)) : 0);
        if (run & ~l->walks[i]) return true;
    }
    return false;
}

static int64_t slot_of(struct legal *l, const struct plan *p, int i) {
    const struct search *s = l->s;
    const struct task *t = search_task(s);
    return copy_bytes(s->w, p, t, &t->op[i], opnd_access(s->w, t, &t->op[i]), p->hold[i].depth);
}

/* Do the operands' own copies alone take more than there is? */
static bool overflows(struct legal *l, const struct plan *p) {
    const struct task *t = search_task(l->s);
    int64_t bytes[MAX_OPERANDS];
    for (int i = 0; i < t->nops; i++) {
        const struct hold *h = &p->hold[i];
        bytes[i] = 0;
        if (t->op[i].where != IN_LOCAL || keeps_part(h)) continue;
        bytes[i] = slot_of(l, p, i) * h->slots;
        for (int k = 0; k < i; k++)
            if (t->op[k].where == IN_LOCAL && t->op[k].memory == t->op[i].memory)
                bytes[i] += bytes[k], bytes[k] = 0;
        if (bytes[i] > nest_room(l->s->w, l->s->nest, t->op[i].memory)) return true;
    }
    return false;
}

/* Would partial sums have to leave and return where they cannot? */
static bool splits_result(const struct legal *l, const struct plan *p) {
    const struct search *s = l->s;
    const struct task *t = search_task(s);
    for (int i = 0; i < t->nops; i++) {
        const struct opnd *o = &t->op[i];
        if (!o->writes || o->where != IN_LOCAL || price_loads(s->w, s->nest, t, i)) continue;
        if ((p->hold[i].slots > 1 || never_spills(s->nest, t, o)) &&
            plan_blocks(s->w, p, t, p->hold[i].depth) > 1)
            return true;
    }
    return false;
}

/* Of plans that are refused for what they hold the search notes where what is read at home was in
 * the way (tiling.crowded): where it may have been, the price says so. */
static bool may_crowd(const struct legal *l, const struct plan *p) {
    const struct search *s = l->s;
    const struct task *t = search_task(s);
    for (unsigned left = s->tiling.crowded ? 0 : l->reads_home; left; left &= left - 1)
        if (plan_passing(s->w, s->nest, p,
                         &s->w->p->stmt[t->stmt].read[t->op[__builtin_ctz(left)].read]) > 1)
            return true;
    return false;
}

bool legal_perhaps(struct legal *l, const struct plan *p) {
    uint64_t settles, loops = unrolled(l, p, &settles);
    if (!code_fits(l, loops, settles) || repeats(l, p, loops)) return false;
    return !(overflows(l, p) || splits_result(l, p)) || may_crowd(l, p);
}
