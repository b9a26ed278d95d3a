/* What the passes over states share: which nodes need a state, the nodes that set it. */
#include "scheduler/emit/configure_int.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/work.h"
#include <string.h>

/* ---- expressions ---- */

const struct sx *sx_known(struct arena *a, const struct sx *x, const bool *known,
                          const int64_t *value) {
    if (x->op == SX_CONST) return x;
    if (x->op == SX_VAR) return known[x->var] ? sx_const(a, value[x->var]) : x;
    return sx_make(a, x->op, sx_known(a, x->a, known, value), sx_known(a, x->b, known, value));
}

bool fields_same(const struct sx *const *a, const struct sx *const *b, int n) {
    for (int f = 0; f < n; f++)
        if (!sx_same(a[f], b[f])) return false;
    return true;
}

/* ---- nodes ---- */

bool binds(const struct node *n, int var) {
    if (n->kind != NODE_LOOP) return false;
    if (n->loop->var == var) return true;
    for (int k = 0; k < n->loop->nbody; k++)
        if (binds(&n->loop->body[k], var)) return true;
    return false;
}

bool needs_state(const struct work *w, const struct node *n, int state) {
    if (n->kind == NODE_ISSUE) {
        const struct instr *in = &w->m->instr[n->issue->instr];
        for (int k = 0; k < in->nneeds; k++)
            if (in->need[k].state == state) return true;
    }
    for (int k = 0; n->kind == NODE_LOOP && k < n->loop->nbody; k++)
        if (needs_state(w, &n->loop->body[k], state)) return true;
    return false;
}

uint64_t state_users(const struct work *w, const struct node *at, int n, int state) {
    uint64_t out = 0;
    for (int i = 0; i < n; i++) {
        if (at[i].kind == NODE_LOOP)
            out |= state_users(w, at[i].loop->body, at[i].loop->nbody, state);
        else if (needs_state(w, &at[i], state))
            out |= UINT64_C(1) << w->m->instr[at[i].issue->instr].queue;
    }
    return out;
}

struct node configure_node(struct work *w, int configure, struct state_value *set, int n) {
    struct configure_node *c = arena_alloc(&w->s->arena, sizeof *c);
    *c = (struct configure_node){.configure = configure, .set = set, .nsets = n};
    return (struct node){.kind = NODE_CONFIGURE, .configure = c};
}

void add_configure(struct work *w, struct nodes *out, struct node n, uint64_t users) {
    int queue = w->m->configure[n.configure->configure].queue;
    for (int q = 0; q < w->m->nqueues; q++)
        if ((users >> q & 1) && q != queue) add_signal(w, out, q, queue);
    nodes_add(w, out, n);
    for (int q = 0; q < w->m->nqueues; q++)
        if ((users >> q & 1) && q != queue) add_signal(w, out, queue, q);
    w->s->cost += configure_cycles(w->m, n.configure->configure);
}

int state_stmt(const struct work *w, const struct node *at, int n, int state) {
    for (int i = 0, stmt; i < n; i++) {
        if (at[i].kind == NODE_ISSUE && at[i].issue->stmt >= 0 && needs_state(w, &at[i], state) &&
            w->p->stmt[at[i].issue->stmt].combine != COMBINE_SET)
            return at[i].issue->stmt;
        if (at[i].kind == NODE_LOOP &&
            (stmt = state_stmt(w, at[i].loop->body, at[i].loop->nbody, state)) >= 0)
            return stmt;
    }
    return -1;
}

bool configure_error(struct work *w, int state, int stmt, const char *what) {
    const char *why =
        arena_printf(w->arena, "state '%s' cannot be set: %s", w->m->state[state].id, what);
    if (task_refuse(w, stmt, why)) return false;
    diag_line(w->diags, work_file(w), 0, 0, "state '%s' of machine '%s' cannot be set: %s",
              w->m->state[state].id, w->m->name, what);
    return false;
}

bool placer_fail(struct placer *p, int stmt, const char *what) {
    if (!p->failed) configure_error(p->w, p->state, stmt, what);
    p->failed = true;
    return false;
}
