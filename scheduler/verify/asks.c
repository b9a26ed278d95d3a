/* What the iterations of a loop have in common, for the walk of signals. */
#include "scheduler/verify/sym.h"

bool depends_on(const struct node *node, int n, int var) {
    for (int k = 0; k < n; k++) {
        const struct signals *g = node[k].kind == NODE_LOOP ? NULL : node_signals(&node[k]);
        if (node[k].kind == NODE_ROTATE || (g && g->npops + g->npushes > 0) ||
            node[k].kind == NODE_SYNC)
            return true;
        if (node[k].kind != NODE_LOOP) continue;
        const struct loop_node *l = node[k].loop;
        if (sx_uses(l->lo, var) || sx_uses(l->hi, var) || l->kind == LOOP_PARALLEL ||
            depends_on(l->body, l->nbody, var))
            return true;
    }
    return false;
}

/* Sizes that change may touch operands that others leave alone. */
bool sizes_change(const struct machine *m, const struct node *node, int n, int var) {
    for (int k = 0; k < n; k++) {
        if (node[k].kind == NODE_LOOP &&
            sizes_change(m, node[k].loop->body, node[k].loop->nbody, var))
            return true;
        if (node[k].kind != NODE_ISSUE) continue;
        const struct issue_node *i = node[k].issue;
        const struct instr *in = &m->instr[i->instr];
        for (int s = 0; s < in->nranged; s++)
            if (sx_uses(i->size[s], var)) return true;
    }
    return false;
}

/* Inside it how often loops run is another thing at each step, or at each size. */
bool bounds_use(const struct node *node, int n, int var, int size) {
    for (int k = 0; k < n; k++) {
        if (node[k].kind != NODE_LOOP) continue;
        const struct loop_node *l = node[k].loop;
        if (sx_uses(l->lo, var) || sx_uses(l->hi, var) || sx_uses(l->lo, size) ||
            sx_uses(l->hi, size) || bounds_use(l->body, l->nbody, var, size))
            return true;
    }
    return false;
}
