/* A bound from below, before any search: what the instructions of a nest's core take by themselves,
 * were every tile the best one for them. */
#include "machines/needle.h"
#include "scheduler/plan/needs.h"
#include "scheduler/plan/nest.h"
#include "scheduler/plan/search.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/work.h"
#include <math.h>
#include <string.h>

enum { MOST_SIZES = 1 << 14 }; /* of more the bound is 0, which excludes nothing */

/* Sizes that an instruction may have here: those of each axis that chooses one, from `first` on.
 * Where no time depends on a size the largest one stands for all. */
struct sized {
    const struct work *w;
    const struct task *t;
    int64_t first[MAX_NEEDLE], n[MAX_NEEDLE], all;
    int last; /* the axis of which tails have sizes of their own (leaf_cycles); -1 */
};

static bool is_other(void *user, const struct mexpr *leaf) {
    return leaf->field || strcmp(leaf->name, user) != 0;
}

static bool names(const struct mexpr *e, const char *name) {
    return e && !mexpr_names(e, is_other, (void *)(uintptr_t)name);
}

static bool counts(const struct sized *s, int x) {
    const struct needle *nd = s->t->needle;
    const struct instr *in = nd->in, *again = nd->again < 0 ? in : &s->w->m->instr[nd->again];
    const char *name = in->semantics->param[in->ranged[nd->ranged[x]]].name;
    return names(in->interval, name) || names(in->overhead, name) || names(again->interval, name);
}

static void sized_open(struct sized *s, const struct work *w, const struct task *t) {
    const struct needle *nd = t->needle;
    *s = (struct sized){.w = w, .t = t, .all = 1, .last = -1};
    for (int x = 0; x < nd->nx; x++) {
        s->first[x] = s->n[x] = 1;
        if (nd->ranged[x] < 0) continue;
        if (t->axis[x] < 0) {
            s->first[x] = nd->lo[x];
            continue;
        }
        int64_t extent = w->p->axis[t->axis[x]].extent,
                most = extent < nd->hi[x] - nd->step[x] ? extent + nd->step[x] : nd->hi[x];
        s->last = x;
        *(counts(s, x) ? &s->n[x] : &s->first[x]) = most;
        s->all = s->n[x] > MOST_SIZES / s->all ? MOST_SIZES + 1 : s->all * s->n[x];
        if (s->all > MOST_SIZES) return;
    }
}

/* The k-th choice of all. Returns how much of the sized axes one issue covers then. */
static double sized_at(const struct sized *s, int64_t k, int64_t *size) {
    const struct needle *nd = s->t->needle;
    double points = 1;
    for (int i = 0; i < nd->in->nranged; i++) size[i] = nd->size[i];
    for (int x = 0; x < nd->nx; x++) {
        if (nd->ranged[x] < 0) continue;
        size[nd->ranged[x]] = s->first[x] + k % s->n[x];
        if (s->t->axis[x] >= 0) points *= (double)size[nd->ranged[x]];
        k /= s->n[x];
    }
    return points;
}

/* Of one issue, and of the tails beside it where such issues could save as much as it. */
static double issue_least(const struct sized *s, int64_t *size, double points, double issuing) {
    const struct needle *nd = s->t->needle;
    double interval, overhead, least = INFINITY, saved = remain_each(s->w, s->t, size);
    int64_t *tail = s->last < 0 ? NULL : &size[nd->ranged[s->last]];
    int64_t whole = tail ? *tail : 1, from = saved > 0 && tail ? s->first[s->last] : whole;
    for (int64_t at = from; at <= whole; at++) {
        if (tail) *tail = at;
        instr_times(s->w->m, nd->in, nd->bound, size, NULL, &interval, &overhead);
        double cycles = interval + overhead - issuing - saved;
        least = fmin(least, cycles / (points / (double)whole * (double)at));
    }
    return least;
}

/* Cycles for one point of the sized axes. */
static double point_least(const struct work *w, const struct task *t) {
    struct sized s;
    int64_t size[MAX_SIZES];
    double issuing, least = INFINITY;
    sized_open(&s, w, t);
    if (s.all > MOST_SIZES) return 0;
    instr_times(w->m, t->needle->in, t->needle->bound, NULL, NULL, NULL, &issuing);
    for (int64_t k = 0; k < s.all; k++) {
        double points = sized_at(&s, k, size);
        least = fmin(least, issue_least(&s, size, points, issuing));
    }
    return fmax(least, 0);
}

/* Issues for each point of the sized axes. */
static double issues_least(const struct work *w, const struct task *t) {
    const struct needle *nd = t->needle;
    double issues = 1;
    for (int a = 0; a < w->p->naxes; a++) {
        double extent = (double)w->p->axis[a].extent, tile = 1;
        bool sized = false;
        if (!(w->p->stmt[t->stmt].axes >> a & 1)) continue;
        for (int x = 0; x < nd->nx; x++) {
            if (t->axis[x] != a) continue;
            sized |= nd->ranged[x] >= 0;
            tile *= nd->ranged[x] >= 0 ? 1 : (double)nd->hi[x];
        }
        issues *= sized ? extent / tile : ceil(extent / tile);
    }
    return issues;
}

double nest_least(const struct work *w, const struct nest *n) {
    const struct task *t = &w->task[n->core];
    int queue = t->needle->in->queue;
    if (n->is_grid || machine_queue_is_host(w->m, queue) || w->effort->below) return 0;
    double width = (double)(w->m->queue[queue].width > 0 ? w->m->queue[queue].width : 1);
    double least = issues_least(w, t) * point_least(w, t) / width;
    return w->options && w->options->bound ? w->options->bound(w->options->user, least) : least;
}
