/* With loops cut short, "every instance" means: each combination of the axis values that were
 * visited. That is judged where one node executes the statement and no loop variable moves two of
 * its axes; elsewhere the whole walk (trips = 0) is needed. */
#include "scheduler/verify/verify_int.h"

#include <inttypes.h>
#include <string.h>

struct finder {
    struct verify *v;
    int stmt, found;
    const struct node *node;
    const struct loop_node **binder; /* [nvars] loop that binds it */
};

static bool executes(const struct issue_node *n, int stmt) {
    for (int q = 0; q < n->nalso; q++)
        if (n->also[q] == stmt) return true;
    return n->stmt == stmt || n->init == stmt;
}

static void find_nodes(struct finder *f, const struct node *node, int n) {
    for (int k = 0; k < n; k++) {
        if (node[k].kind == NODE_LOOP) {
            f->binder[node[k].loop->var] = node[k].loop;
            find_nodes(f, node[k].loop->body, node[k].loop->nbody);
        } else if ((node[k].kind == NODE_ISSUE && executes(node[k].issue, f->stmt)) ||
                   (node[k].kind == NODE_FALLBACK && node[k].fallback->stmt == f->stmt)) {
            f->found += node[k].kind == NODE_ISSUE && node[k].issue->init == f->stmt ? 2 : 1;
            f->node = &node[k];
        }
    }
}

/* Marks the variables that an expression depends on, through the bounds of their loops too. */
static void mark_vars(const struct finder *f, const struct sx *x, bool *used) {
    if (!x || x->op == SX_CONST) return;
    if (x->op != SX_VAR) {
        mark_vars(f, x->a, used);
        mark_vars(f, x->b, used);
        return;
    }
    if (used[x->var]) return;
    used[x->var] = true;
    if (!f->binder[x->var]) return;
    mark_vars(f, f->binder[x->var]->lo, used);
    mark_vars(f, f->binder[x->var]->hi, used);
}

static void axis_vars(const struct finder *f, int axis, bool *used) {
    if (f->node->kind == NODE_FALLBACK) {
        const struct fallback_node *n = f->node->fallback;
        if (n->lo) mark_vars(f, n->lo[axis], used);
        if (n->hi) mark_vars(f, n->hi[axis], used);
        return;
    }
    const struct issue_node *n = f->node->issue;
    const struct instr *in = &f->v->m->instr[n->instr];
    mark_vars(f, n->base[axis], used);
    for (int x = 0; x < kernel_axis_count(in->semantics); x++)
        if (n->axis[x] == axis)
            for (int k = 0; k < in->nranged; k++) {
                int64_t constant;
                if (!sx_constant(n->size[k], &constant) &&
                    kernel_axis_names(in->semantics, x, in->ranged[k]))
                    mark_vars(f, n->size[k], used);
            }
}

static bool axes_apart(const struct finder *f) {
    struct verify *v = f->v;
    size_t n = (size_t)v->s->nvars + 1;
    bool *seen = arena_array(&v->arena, n, 1), *used = arena_array(&v->arena, n, 1);
    for (int a = 0; a < v->p->naxes; a++) {
        if (!(v->domain[f->stmt] >> a & 1)) continue;
        memset(used, 0, n);
        axis_vars(f, a, used);
        for (int k = 0; k < v->s->nvars; k++) {
            if (used[k] && seen[k]) return false;
            seen[k] |= used[k];
        }
    }
    return true;
}

void verify_visited(struct verify *v) {
    for (int s = 0; s < v->p->nstmts && !v->stop; s++) {
        struct finder f = {.v = v, .stmt = s};
        if (v->loose_stmt[s] || v->skipped[s] || v->p->stmt[s].nwhere > 0) continue;
        f.binder = arena_array(&v->arena, (size_t)v->s->nvars + 1, sizeof *f.binder);
        find_nodes(&f, v->s->prepare.node, v->s->prepare.nnodes);
        find_nodes(&f, v->s->run.node, v->s->run.nnodes);
        v->node = f.found == 1 ? f.node : NULL;
        if (f.found == 0 && stmt_points(v->p, &v->p->stmt[s]) > 0)
            verify_error(v, "nothing executes statement %d", s);
        if (f.found != 1 || !axes_apart(&f)) continue;
        int64_t points = 1;
        for (int a = 0; a < v->p->naxes; a++)
            if (v->domain[s] >> a & 1) points *= v->nvisited[s * v->p->naxes + a];
        if (points != v->done[s])
            verify_error(v,
                         "%" PRId64 " of the %" PRId64
                         " instances of statement %d that its axes' values give are executed",
                         v->done[s], points, s);
    }
    v->node = NULL;
}
