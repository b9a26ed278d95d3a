/* Hardware loops: an issue with the loops directly around it that the machine runs itself
 * (docs/schedule.md). */
#include "scheduler/schedule/schedule_int.h"

#include <string.h>

/* The instruction's loops without a table, outermost first. */
static int counters(const struct instr *in, const struct hwloop **out) {
    int n = 0;
    for (int k = 0; k < in->nloops && n < MAX_HARDWARE_LOOPS; k++)
        if (in->loop[k].table < 0) out[n++] = &in->loop[k];
    return n;
}

const struct hwloop *instr_table(const struct instr *in) {
    for (int k = 0; k < in->nloops; k++)
        if (in->loop[k].table >= 0) return &in->loop[k];
    return NULL;
}

bool hardware_issue(const struct machine *m, const struct loop_node *l, struct hardware *out) {
    const struct hwloop *all[MAX_HARDWARE_LOOPS];
    *out = (struct hardware){.table = -1};
    for (;;) {
        if (l->kind != LOOP_HARDWARE || l->nbody != 1 || out->nloops == MAX_HARDWARE_LOOPS)
            return false;
        out->loop[out->nloops++] = l;
        if (l->body[0].kind != NODE_LOOP) break;
        l = l->body[0].loop;
    }
    if (l->body[0].kind != NODE_ISSUE) return false;
    out->issue = l->body[0].issue;
    if (out->issue->instr < 0 || out->issue->instr >= m->ninstrs) return false;
    const struct instr *in = &m->instr[out->issue->instr];
    int n = counters(in, all), plain = out->nloops;
    if (l->table) out->table = --plain;
    if (plain > n || (l->table && !instr_table(in))) return false;
    for (int k = 0; k < plain; k++) {
        out->counter[k] = all[n - plain + k];
        if (out->loop[k]->table) return false;
    }
    if (l->table) out->counter[plain] = instr_table(in);
    return true;
}

static bool moved(const struct hardware *h, const struct sx *x) {
    for (int k = 0; k < h->nloops; k++)
        if (sx_uses(x, h->loop[k]->var)) return true;
    return false;
}

static bool any_moved(const struct hardware *h, const struct sx *const *x, int n) {
    for (int k = 0; k < n; k++)
        if (moved(h, x[k])) return true;
    return false;
}

const char *hardware_obstacle(struct arena *arena, const struct machine *m,
                              const struct hardware *h) {
    const struct instr *in = &m->instr[h->issue->instr];
    for (int k = 0; k < h->nloops; k++)
        if (moved(h, h->loop[k]->lo) || moved(h, h->loop[k]->hi))
            return "the bounds of a hardware loop depend on another one around the same issue";
    if (any_moved(h, h->issue->size, in->nranged)) return "a size varies in a hardware loop";
    if (any_moved(h, h->issue->stride, in->nstride_names))
        return "a stride varies in a hardware loop";
    if (any_moved(h, h->issue->flag, instr_flag_count(in)))
        return "an accumulate flag varies in a hardware loop";
    for (int o = 0; o < in->noperands; o++)
        for (int k = 0; h->issue->arg[o].place >= 0 && k < h->nloops; k++) {
            if (k == h->table) continue;
            const struct sx *step =
                sx_step(arena, h->issue->arg[o].offset, h->loop[k]->var, h->loop[k]->step);
            if (!step || moved(h, step))
                return "an operand does not move in constant steps in a hardware loop";
        }
    return NULL;
}

const struct signals *node_signals(const struct node *n) {
    while (n->kind == NODE_LOOP && n->loop->kind == LOOP_HARDWARE && n->loop->nbody == 1)
        n = &n->loop->body[0];
    switch (n->kind) {
    case NODE_ISSUE:
        return &n->issue->signals;
    case NODE_FALLBACK:
        return &n->fallback->signals;
    case NODE_SYNC:
        return &n->sync.signals;
    case NODE_CONFIGURE:
        return &n->configure->signals;
    case NODE_LOOP:
    case NODE_ROTATE:
        break;
    }
    return NULL;
}
