/* Loops that the machine runs itself, and the entries of a queue that are left then. */
#include "ir/number.h"
#include "scheduler/plan/tiling.h"
#include "scheduler/plan/limits.h"
#include "scheduler/plan/nest.h"
#include "scheduler/plan/plan.h"
#include "scheduler/plan/rewrite.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/work.h"
#include <math.h>
#include <string.h>

/* From here on no hold is filled or drained: the loops may stand in any order. */
static int free_depth(const struct work *w, const struct nest *n, const struct plan *p) {
    const struct task *t = &w->task[n->core];
    int from = p->depth_out > n->nprefix ? p->depth_out : n->nprefix;
    for (int i = 0; i < t->nops; i++)
        if (t->op[i].where == IN_LOCAL && p->hold[i].depth > from) from = p->hold[i].depth;
    return from;
}

/* Does the last loop along the axis always run over whole tiles? Then sizes do not vary in it. */
static bool whole_tiles(const struct work *w, const struct task *t, const struct plan *p, int axis,
                        int from) {
    int64_t leaf = plan_tile(w, p, axis, p->nloops);
    bool sized = false;
    for (int x = 0; x < t->needle->nx; x++)
        sized |= t->axis[x] == axis && t->needle->ranged[x] >= 0;
    return !sized || leaf == 1 ||
           (w->p->axis[axis].extent % leaf == 0 && plan_tile(w, p, axis, from) % leaf == 0);
}

/* Axes whose loops the machine runs, by falling trips; from: free_depth. */
static int hardware_axes(const struct work *w, const struct nest *n, const struct plan *p, int from,
                         int *axis) {
    const struct task *t = &w->task[n->core];
    const struct instr *in = t->needle->in;
    int64_t most = INT64_MAX, trips[MAX_AXES];
    int counters = 0, found = 0;
    for (int k = 0; k < in->nloops; k++) {
        if (in->loop[k].table >= 0) continue;
        counters++;
        if (in->loop[k].max < most) most = in->loop[k].max;
    }
    if (!counters || p->is_static) return 0;
    uint64_t seen = 0;
    for (int i = from; i < p->nloops; i++) {
        int a = p->loop[i].axis, at = found;
        int64_t leaf = plan_tile(w, p, a, p->nloops), tile = plan_tile(w, p, a, from),
                k = (tile + leaf - 1) / leaf;
        if ((seen >> a & 1) || k < 2 || k > most) continue;
        seen |= UINT64_C(1) << a;
        if ((t->init >= 0 && (t->reductions >> a & 1)) || !whole_tiles(w, t, p, a, from)) continue;
        while (at > 0 && trips[at - 1] < k) at--;
        memmove(axis + at + 1, axis + at, sizeof *axis * (size_t)(found - at));
        memmove(trips + at + 1, trips + at, sizeof *trips * (size_t)(found - at));
        axis[at] = a;
        trips[at] = k;
        found++;
    }
    return found < counters ? found : counters;
}

double plan_entries(const struct work *w, const struct nest *n, const struct plan *p,
                    double issues) {
    const struct task *t = &w->task[n->core];
    int axis[MAX_AXES], from = free_depth(w, n, p), count = hardware_axes(w, n, p, from, axis);
    if (instr_table(t->needle->in) && !p->is_static) { /* the first reduction step is one more */
        bool splits = false;
        for (int i = from; i < p->nloops && t->init >= 0; i++)
            splits |= t->reductions >> p->loop[i].axis & 1;
        return plan_trips(w, p, from) * (splits ? 2 : 1);
    }
    for (int i = 0; i < count; i++)
        issues *= plan_tiles(w, p, axis[i], from) / plan_tiles(w, p, axis[i], p->nloops);
    return issues;
}

/* Entries that tell the addresses of all issues: those of one issue, for each place in their copies
 * and each slot that operands have then. */
double table_entries(const struct work *w, const struct nest *n, const struct plan *p) {
    const struct task *t = &w->task[n->core];
    int axis[MAX_AXES], from = free_depth(w, n, p), count = hardware_axes(w, n, p, from, axis);
    double each = plan_trips(w, p, p->nloops) / plan_trips(w, p, from),
           issues = plan_trips(w, p, from), places = 1;
    int64_t turns = 1;
    for (int i = 0; i < count; i++)
        each *= plan_tiles(w, p, axis[i], from) / plan_tiles(w, p, axis[i], p->nloops);
    for (int i = 0; i < t->nops; i++) {
        const struct opnd *o = &t->op[i];
        if (o->where != IN_LOCAL) continue;
        const struct access *acc = opnd_access(w, t, o);
        for (int k = p->hold[i].depth; k < from; k++)
            if (access_varies(w->p, acc, p->loop[k].axis))
                places *= plan_trips(w, p, k + 1) / plan_trips(w, p, k);
        turns = least_multiple(turns, p->hold[i].slots);
    }
    return each * fmin(issues, places * (double)turns);
}

/* The free loops in the order in which most iterations run in hardware: those that it cannot run
 * outside, reductions first. Two loops along one axis are one there. */
void plan_arrange(const struct work *w, const struct nest *n, struct plan *p) {
    int axis[MAX_AXES], from = free_depth(w, n, p), count = hardware_axes(w, n, p, from, axis);
    struct loop old[MAX_LOOPS];
    int nold = p->nloops;
    uint64_t last = 0;
    if (!count) return;
    memcpy(old, p->loop, sizeof old);
    for (int i = 0; i < count; i++) last |= UINT64_C(1) << axis[i];
    p->nloops = from;
    for (int pass = 0; pass < 2; pass++)
        for (int i = from; i < nold; i++) {
            bool again = false, reduces = w->task[n->core].reductions >> old[i].axis & 1;
            for (int k = i + 1; k < nold; k++) again |= old[k].axis == old[i].axis;
            if (!again && !(last >> old[i].axis & 1) && reduces == (pass == 0))
                p->loop[p->nloops++] = old[i];
        }
    for (int k = count - 1; k >= 0; k--) {
        int i = nold - 1;
        while (old[i].axis != axis[k]) i--;
        p->loop[p->nloops++] = old[i];
    }
    p->tiling = NULL;
}

int plan_plain(const struct work *w, const struct nest *n, const struct plan *p, int *axis) {
    int hard[MAX_AXES], from = free_depth(w, n, p), count = hardware_axes(w, n, p, from, hard),
                        found = 0;
    if (!count) return 0;
    for (int i = from; i < p->nloops && found < 2; i++) {
        int a = p->loop[i].axis;
        bool skip = !(w->task[n->core].reductions >> a & 1);
        for (int k = 0; k < count; k++) skip |= hard[k] == a;
        for (int k = i + 1; k < p->nloops; k++) skip |= p->loop[k].axis == a;
        if (!skip) axis[found++] = a;
    }
    return found;
}
