/* Questions about one nest: whether a buffer leaves it, which operands of its chain need a copy,
 * how large the grains of the chain are. */
#include "ir/number.h"
#include "scheduler/plan/attach.h"
#include "scheduler/plan/nest.h"
#include "scheduler/plan/graph.h"
#include "scheduler/plan/recur.h"
#include "scheduler/plan/rewrite.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/work.h"

int nest_head(const struct nest *n) {
    return n->core >= 0 ? n->core : n->chain[0].task;
}

int nest_chain_queue(const struct work *w, const struct nest *n) {
    int head = w->task[nest_head(n)].needle->in->queue,
        own = n->nchain ? w->task[n->chain[0].task].needle->in->queue : head;
    return queues_in_step(w->edges, own, head) ? head : own;
}

int nest_ntasks(const struct nest *n) {
    return (n->core >= 0) + (n->init >= 0) + n->nchain;
}

int nest_task(const struct nest *n, int i) {
    int core = n->core >= 0, before = core + (n->init >= 0);
    return i < core ? n->core : i < before ? n->init : n->chain[i - before].task;
}

int nest_place(const struct work *w, const struct nest *n, int task) {
    int i = task >= 0 ? w->task[task].place : -1;
    return i >= 0 && i < n->nchain && n->chain[i].task == task ? i : -1;
}

int nest_maker(const struct work *w, const struct nest *n, int buffer) {
    int count;
    const int *use = buffer_uses(w, buffer, &count);
    if (n->core >= 0 && w->p->stmt[w->task[n->core].stmt].dst.buffer == buffer) return n->core;
    for (int i = 0; i < count; i++) {
        int t = w->task_of[use[i]];
        if (w->p->stmt[use[i]].dst.buffer == buffer && nest_place(w, n, t) >= 0) return t;
    }
    return -1;
}

static bool in_nest(const struct work *w, const struct nest *n, int task) {
    return task >= 0 && (task == n->core || task == n->init || nest_place(w, n, task) >= 0);
}

/* Does a move that computes take it from where a follower leaves it? */
static bool is_finished(const struct work *w, const struct nest *n, int buffer) {
    int maker = nest_maker(w, n, buffer);
    if (maker < 0 || maker == n->core) return false;
    for (int k = 0; k < w->task[maker].nops; k++)
        if (attached_at(&w->task[maker].op[k], STORES)) return true;
    return false;
}

/* Is it executed on a result of the nest, or on its way home? What fills copies reads the home. */
static bool takes_result(const struct work *w, const struct nest *n, int stmt) {
    for (int i = 0; i < nest_ntasks(n); i++) {
        const struct task *t = &w->task[nest_task(n, i)];
        for (int k = 0; k < t->nops; k++)
            for (const struct attachment *x = t->op[k].attached; x; x = x->next)
                if (x->side != FILLS && w->task[x->task].stmt == stmt) return true;
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
        if (in_nest(w, n, w->task_of[s]) || takes_result(w, n, s)) continue;
        if (stmt_reads(&w->p->stmt[s], buffer)) return true;
        if (w->p->stmt[s].dst.buffer == buffer && w->p->stmt[s].combine != COMBINE_SET) return true;
    }
    return false;
}

bool nest_begins_at_home(const struct work *w, const struct nest *n, const struct opnd *o) {
    return o->read >= 0 ||
           (o->accumulates && w->task[n->core].init < 0 && n->init < 0 && !attached_at(o, FILLS));
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

int64_t nest_grain(const struct nest *n, int axis) {
    struct grain g = n->nchain ? n->grain[axis] : (struct grain){0};
    int64_t grain = !g.fixed && n->grain_most && g.least > n->grain_most ? n->grain_most : g.least;
    if (g.fixed && n->grain_most > g.least && n->core < 0 && !n->is_grid && !n->registers)
        grain = n->grain_most / g.least * g.least; /* each copy is filled once for several grains */
    return g.block > 1 ? round_up(grain, g.block) : grain;
}

bool chain_needs_hold(const struct nest *n, int i, int operand) {
    return n->chain[i].own >> operand & 1;
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
