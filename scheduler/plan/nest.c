/* Questions about one nest: whether a buffer leaves it, which operands of its chain need a copy,
 * how large the grains of the chain are. */
#include "scheduler/plan/nest.h"
#include "scheduler/plan/graph.h"
#include "scheduler/plan/recur.h"
#include "scheduler/plan/rewrite.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/work.h"

int nest_tasks(const struct nest *n, int task[NEST_TASKS]) {
    int count = 0;
    if (n->core >= 0) task[count++] = n->core;
    if (n->init >= 0) task[count++] = n->init;
    for (int i = 0; i < n->nchain; i++) task[count++] = n->chain[i];
    return count;
}

static bool in_nest(const struct nest *n, int task) {
    int mine[NEST_TASKS], count = nest_tasks(n, mine);
    for (int i = 0; i < count; i++)
        if (mine[i] == task) return true;
    return false;
}

/* Does a move that computes take it from where a statement of the chain leaves it? */
static bool is_finished(const struct work *w, const struct nest *n, int buffer) {
    for (int i = 0; i < n->nchain; i++) {
        const struct task *t = &w->task[n->chain[i]];
        for (int k = 0; k < t->nops; k++)
            if (t->op[k].attached[false] && w->p->stmt[t->stmt].dst.buffer == buffer) return true;
    }
    return false;
}

bool needs_home(const struct work *w, const struct nest *n, int buffer) {
    if (is_finished(w, n, buffer)) return true;
    if (w->p->buffer[buffer].role != ROLE_TEMP || recur_carries(w, buffer)) return true;
    int count;
    const int *use = buffer_uses(w, buffer, &count);
    for (int i = 0; i < count; i++) {
        int s = use[i];
        if (w->task_of[s] == -2 || (w->task_of[s] >= 0 && in_nest(n, w->task_of[s]))) continue;
        if (stmt_reads(&w->p->stmt[s], buffer)) return true;
        if (w->p->stmt[s].dst.buffer == buffer && w->p->stmt[s].combine != COMBINE_SET) return true;
    }
    return false;
}

int64_t nest_room(const struct work *w, const struct nest *n, int memory) {
    int64_t all = w->capacity[memory];
    return all == INT64_MAX ? all : all - n->reserved[memory];
}

int64_t task_grain(const struct task *t, int axis, bool *fixed) {
    *fixed = false;
    for (int x = 0; x < t->needle->nx; x++)
        if (t->axis[x] == axis) {
            *fixed = (t->needle->ranged[x] < 0 || t->needle->whole[x]) && t->needle->hi[x] > 1;
            return t->needle->hi[x];
        }
    return 1;
}

/* Copies whose addresses may vary hold several grains of an elementwise nest: each is filled once
 * for all of them. */
static bool fills_several(const struct work *w, const struct nest *n) {
    if (n->core >= 0 || n->is_grid) return false;
    for (int i = 0; i < n->nchain; i++) {
        const struct task *t = &w->task[n->chain[i]];
        for (int k = 0; k < t->nops; k++)
            if (t->op[k].where == IN_LOCAL && graph_is_static(w->m, t->op[k].memory)) return false;
    }
    return true;
}

int64_t nest_grain(const struct work *w, const struct nest *n, int axis) {
    int64_t g = 0;
    bool any = false;
    for (int i = 0; i < n->nchain; i++) {
        bool fixed;
        int64_t t = task_grain(&w->task[n->chain[i]], axis, &fixed);
        any |= fixed;
        if (!g || t < g) g = t;
    }
    if (any && n->grain_most > g && fills_several(w, n)) return n->grain_most / g * g;
    return !any && n->grain_most && g > n->grain_most ? n->grain_most : g;
}

/* Before the task. */
static bool chain_makes(const struct work *w, const struct nest *n, const struct task *t,
                        int buffer) {
    if (n->core >= 0 && w->p->stmt[w->task[n->core].stmt].dst.buffer == buffer) return true;
    for (int i = 0; i < n->nchain && &w->task[n->chain[i]] != t; i++)
        if (w->p->stmt[w->task[n->chain[i]].stmt].dst.buffer == buffer) return true;
    return false;
}

bool chain_needs_hold(const struct work *w, const struct nest *n, const struct task *t,
                      const struct opnd *o) {
    if (o->where != IN_LOCAL) return false;
    if (o->read < 0) return true;
    return !chain_makes(w, n, t, w->p->stmt[t->stmt].read[o->read].buffer);
}

bool nests_in_order(const struct work *w, const struct nest *a, const struct nest *b) {
    if (a->core < 0 || b->core < 0 || b->given < 0) return false;
    const struct task *x = &w->task[a->core], *y = &w->task[b->core];
    return x->needle->in->queue == y->needle->in->queue &&
           !w->m->queue[x->needle->in->queue].data_order && x->needle->in->completes < 0 &&
           y->needle->in->completes < 0;
}

double task_cost(const struct work *w, int task) {
    return w->cover->mapping[w->cover->item[w->task[task].item].mapping].cost;
}
