/* States of a memory's words whose change costs the memory its content: while a result stands
 * there, each word must keep its value, so tiles are equal where a word is used again. */
#include "machines/needle.h"
#include "scheduler/plan/needs.h"
#include "scheduler/plan/nest.h"
#include "scheduler/plan/plan.h"
#include "scheduler/plan/rewrite.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/tiling.h"
#include "scheduler/plan/work.h"
#include <math.h>
#include <string.h>

struct mention {
    const char *name;
    bool found;
};

static bool is_name(void *user, const struct mexpr *leaf) {
    struct mention *m = user;
    m->found |= leaf->kind == MEXPR_NAME && !strcmp(leaf->name, m->name);
    return !m->found;
}

static bool mentions(const struct need *n, const char *name) {
    struct mention m = {name, false};
    for (int f = 0; f < n->nvalues; f++) mexpr_names(n->value[f], is_name, &m);
    return m.found;
}

static const char *size_name(const struct needle *nd, int x) {
    return nd->in->semantics->param[nd->in->ranged[nd->ranged[x]]].name;
}

static int64_t equal_tile(const struct needle *nd, int x, int64_t extent) {
    int64_t parts = (extent + nd->hi[x] - 1) / nd->hi[x], step = nd->step[x];
    int64_t tile = ((extent + parts - 1) / parts + step - 1) / step * step;
    return tile < nd->lo[x] ? nd->lo[x] : tile;
}

static int64_t group_extent(const struct work *w, const struct needle *nd, int x,
                            const struct group *g) {
    int64_t extent = g->n ? 1 : nd->lo[x];
    for (int i = 0; i < g->n; i++)
        if (__builtin_mul_overflow(extent, w->p->axis[g->axis[i]].extent, &extent))
            return nd->hi[x];
    return extent;
}

bool needs_equal_tiles(const struct work *w, const struct task *t, const struct group *group,
                       int64_t *fixed) {
    const struct needle *nd = t->needle;
    bool any = false;
    for (int k = 0; k < nd->in->nneeds && nd->in->queue >= 0; k++) {
        if (!state_is_fragile(w->edges, nd->in, &nd->in->need[k])) continue;
        for (int x = 0; x < nd->nx; x++) {
            if (nd->ranged[x] < 0 || !needle_reduces(nd, x) ||
                !mentions(&nd->in->need[k], size_name(nd, x)))
                continue;
            fixed[nd->ranged[x]] = equal_tile(nd, x, group_extent(w, nd, x, &group[x]));
            any = true;
        }
    }
    return any;
}

/* Sizes of one axis inside a result: more than one, and the operand's copy does not hold them all.
 */
static bool word_changes(const struct work *w, const struct nest *n, const struct plan *p, int i,
                         int x) {
    const struct task *t = &w->task[n->core];
    int a = t->axis[x], depth = p->hold[i].depth > p->depth_out ? p->hold[i].depth : p->depth_out;
    struct sizes s = plan_sizes(w, p, a, p->depth_out);
    int64_t leaf = needle_leaf(t->needle, x, plan_tile(w, p, a, p->nloops));
    if (plan_tile(w, p, a, depth) == plan_tile(w, p, a, p->depth_out)) return false;
    for (int k = 0; k < s.n; k++)
        if (s.size[k] > leaf && s.size[k] % leaf) return true;
    return false;
}

/* Loop i leaves a tail that instructions are shorter for: it has a body of its own. */
static bool leaves_tail(const struct work *w, const struct task *t, const struct plan *p, int i) {
    bool ranged = false;
    for (int x = 0; x < t->needle->nx; x++)
        ranged |= t->axis[x] == p->loop[i].axis && t->needle->ranged[x] >= 0;
    if (!ranged) return false;
    struct sizes s = plan_sizes(w, p, p->loop[i].axis, i);
    for (int k = 0; k < s.n; k++)
        if (s.size[k] > p->loop[i].tile && s.size[k] % p->loop[i].tile) return true;
    return false;
}

/* Both bodies come in each turn of what is outside. */
double needs_changes(const struct work *w, const struct task *t, const struct plan *p) {
    const struct instr *in = t->needle->in;
    double each = 0, times = 0;
    for (int k = 0; k < in->nneeds; k++) {
        if (need_operand(in, &in->need[k]) < 0 || !state_is_fragile(w->edges, in, &in->need[k]))
            continue;
        int setter = state_setter(w->edges, in->need[k].state, in->queue);
        each = fmax(each, configure_cycles(w->m, setter));
    }
    for (int i = 0; i < p->nloops && each > 0; i++)
        if (leaves_tail(w, t, p, i)) times += 2 * plan_trips(w, p, i);
    return times * each;
}

/* Copies that last over a loop with a tail: the states of both bodies must be there at once. */
static bool lasts_over_tail(struct work *w, const struct nest *n, const struct plan *p,
                            int memory) {
    const struct task *t = &w->task[n->core];
    int64_t bytes = 0, bodies = 1;
    bool lasts = false;
    for (int i = 0; i < p->nloops; i++) {
        bool tail = leaves_tail(w, t, p, i);
        bodies *= tail ? 2 : 1;
        for (int k = 0; k < t->nops; k++)
            lasts |= tail && t->op[k].where == IN_LOCAL && t->op[k].memory == memory &&
                     p->hold[k].depth <= i;
    }
    for (int k = 0; k < t->nops; k++)
        if (t->op[k].where == IN_LOCAL && t->op[k].memory == memory)
            bytes += hold_bytes(w, p, t, &t->op[k], opnd_access(w, t, &t->op[k]), &p->hold[k]);
    return lasts && bytes * bodies > w->m->memory[memory].size;
}

bool needs_keep(struct work *w, const struct nest *n, const struct plan *p) {
    const struct task *t = &w->task[n->core];
    const struct needle *nd = t->needle;
    for (int k = 0; k < nd->in->nneeds; k++) {
        const struct need *need = &nd->in->need[k];
        int i = need_operand(nd->in, need);
        if (i < 0 || !state_is_fragile(w->edges, nd->in, need)) continue;
        if (lasts_over_tail(w, n, p, w->m->state[need->state].of)) return false;
        for (int x = 0; x < nd->nx; x++)
            if (nd->ranged[x] >= 0 && t->axis[x] >= 0 && mentions(need, size_name(nd, x)) &&
                word_changes(w, n, p, i, x))
                return false;
    }
    return true;
}
