/* Approaches that take rings, or pinned ranges, wherever they are offered; else any legal answer.
 */
#ifndef ISAMAP_TESTS_KEEPING_H
#define ISAMAP_TESTS_KEEPING_H

#include "tests/scheduler_plan.h"

static inline int keeping_choose(void *s, const struct question *q, const char *word) {
    int fit[64], n = 0;
    bool asks = q->kind == QUESTION_COPY || q->kind == QUESTION_EVICT;
    for (int i = 0; i < q->ncandidates && asks && n < 64; i++)
        if (strstr(q->candidate[i].text, word)) fit[n++] = i;
    return n ? fit[plan_random(s) % (uint64_t)n] : plan_choose(s, q);
}

static inline int keeping_rings(void *s, const struct question *q) {
    return keeping_choose(s, q, " ring ");
}

static inline int keeping_pinned(void *s, const struct question *q) {
    return keeping_choose(s, q, " stay");
}

static const struct approach plan_rings = {
    "rings", "rings where possible", plan_open, free, keeping_rings, plan_move, NULL, false};
static const struct approach plan_pinned = {
    "pinned", "pinned ranges where possible", plan_open, free, keeping_pinned, plan_move, NULL, false};

static inline bool keeping_uses(const struct sx *x, enum sx_op op) {
    if (!x || x->op == SX_CONST || x->op == SX_VAR) return false;
    return x->op == op || keeping_uses(x->a, op) || keeping_uses(x->b, op);
}

/* Copies into rings whose windows go round the end, and into places of which a part stays. */
static inline void keeping_count(const struct schedule *s, const struct node *n, int count,
                                 int *turns, int *pinned) {
    for (int k = 0; k < count; k++) {
        if (n[k].kind == NODE_LOOP) {
            *turns += strncmp(s->var[n[k].loop->var].name, "turn", 4) == 0;
            keeping_count(s, n[k].loop->body, n[k].loop->nbody, turns, pinned);
        }
        if (n[k].kind != NODE_ISSUE || n[k].issue->stmt >= 0) continue;
        const struct instr *in = &s->machine->instr[n[k].issue->instr];
        for (int o = 0; o < in->noperands; o++)
            *pinned +=
                n[k].issue->arg[o].place >= 0 && keeping_uses(n[k].issue->arg[o].offset, SX_MOD);
    }
}

#endif
