/* Tiles of the program's axes at each depth of a plan's loops: multisets, so that tails count
 * exactly (SCHEDULING §3). */
#include "scheduler/plan/graph.h"
#include "scheduler/plan/nest.h"
#include "scheduler/plan/plan.h"
#include "scheduler/plan/rewrite.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/tiling.h"
#include "scheduler/plan/work.h"
#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

static void add_size(struct sizes *s, int64_t size, int64_t count) {
    for (int i = 0; i < s->n; i++)
        if (s->size[i] == size || s->n == 8) {
            s->count[i] += count;
            return;
        }
    s->size[s->n] = size;
    s->count[s->n++] = count;
}

static void split_sizes(struct sizes *s, int64_t tile) {
    struct sizes next = {.n = 0};
    for (int k = 0; k < s->n; k++) {
        if (s->size[k] / tile) add_size(&next, tile, s->count[k] * (s->size[k] / tile));
        if (s->size[k] % tile) add_size(&next, s->size[k] % tile, s->count[k]);
    }
    *s = next;
}

static int column_of(const struct plan *p, int axis, int depth) {
    return p->tiling && p->tiling->nloops == p->nloops && depth <= p->nloops
               ? p->tiling->column[axis]
               : -2;
}

int64_t plan_tile(const struct work *w, const struct plan *p, int axis, int depth) {
    int c = column_of(p, axis, depth);
    if (c >= 0) return p->tiling->tile[depth][c];
    int64_t t = w->p->axis[axis].extent;
    for (int i = 0; c == -2 && i < depth; i++)
        if (p->loop[i].axis == axis && p->loop[i].tile < t) t = p->loop[i].tile;
    return t;
}

struct sizes plan_sizes(const struct work *w, const struct plan *p, int axis, int depth) {
    struct sizes s = {{w->p->axis[axis].extent}, {1}, 1};
    for (int i = 0; i < depth; i++)
        if (p->loop[i].axis == axis) split_sizes(&s, p->loop[i].tile);
    return s;
}

static int64_t least_of(const struct sizes *s) {
    int64_t least = s->size[0];
    for (int i = 1; i < s->n; i++)
        if (s->size[i] < least) least = s->size[i];
    return least;
}

static double count_of(const struct sizes *s) {
    double n = 0;
    for (int i = 0; i < s->n; i++) n += (double)s->count[i];
    return n;
}

int64_t plan_least(const struct work *w, const struct plan *p, int axis, int depth) {
    int c = column_of(p, axis, depth);
    if (c >= 0) return p->tiling->least[depth][c];
    struct sizes s = plan_sizes(w, p, axis, depth);
    return least_of(&s);
}

double plan_tiles(const struct work *w, const struct plan *p, int axis, int depth) {
    int c = column_of(p, axis, depth);
    if (c >= 0) return p->tiling->count[depth][c];
    if (c == -1) return 1;
    struct sizes s = plan_sizes(w, p, axis, depth);
    return count_of(&s);
}

double plan_trips(const struct work *w, const struct plan *p, int depth) {
    if (p->tiling && p->tiling->nloops == p->nloops) return p->tiling->trips[depth];
    double n = 1;
    uint64_t seen = 0;
    for (int i = 0; i < depth; i++) {
        if (seen >> p->loop[i].axis & 1) continue;
        seen |= UINT64_C(1) << p->loop[i].axis;
        n *= plan_tiles(w, p, p->loop[i].axis, depth);
    }
    return n;
}

double plan_blocks(const struct work *w, const struct plan *p, const struct task *t, int depth) {
    double n = 1;
    for (uint64_t left = t->reductions; left; left &= left - 1)
        n *= plan_tiles(w, p, __builtin_ctzll(left), depth);
    return n;
}

/* A place of a window, of which what the fill inside brings depends: where it leaves the buffer. */
static bool moves_padding(const struct work *w, const struct task *t, const struct access *acc,
                          int axis) {
    if (!(t->reductions >> axis & 1)) return false;
    for (int d = 0; d < w->p->buffer[acc->buffer].ndims; d++) {
        int64_t lo, hi;
        access_range(w->p, &w->p->stmt[t->stmt], acc, d, &lo, &hi);
        if ((lo < 0 || hi >= w->p->buffer[acc->buffer].extent[d]) &&
            access_coef(w->p, acc, d, axis))
            return true;
    }
    return false;
}

/* Of operand k, where its memory's addresses must be constants: axes that walk it, or (leaves)
 * places of a window that leaves the buffer. */
static uint64_t axes_of(const struct work *w, const struct task *t, int k, bool leaves) {
    const struct opnd *o = &t->op[k];
    uint64_t axes = 0;
    if (o->where != IN_LOCAL || !graph_is_static(w->m, o->memory)) return 0;
    const struct access *acc = opnd_access(w, t, o);
    for (int a = 0; a < w->p->naxes; a++)
        if (leaves ? moves_padding(w, t, acc, a) : access_varies(w->p, acc, a))
            axes |= UINT64_C(1) << a;
    return axes;
}

bool loop_settles(const struct work *w, const struct nest *n, const struct plan *p, int i) {
    if (n->core < 0) return false;
    const struct task *t = &w->task[n->core];
    const struct asked *known = plan_asked(p, t);
    if (known && !(known->all >> p->loop[i].axis & 1)) return false;
    for (int k = 0; k < t->nops; k++)
        if (p->hold[k].depth > i &&
            (known ? known->leaves[k] : axes_of(w, t, k, true)) >> p->loop[i].axis & 1)
            return true;
    return false;
}

bool loop_unrolled(const struct work *w, const struct nest *n, const struct plan *p, int i) {
    if (n->core < 0) return false;
    const struct task *t = &w->task[n->core];
    const struct asked *known = plan_asked(p, t);
    if (known && !(known->all >> p->loop[i].axis & 1)) return false;
    for (int k = 0; k < t->nops; k++)
        if (p->hold[k].depth <= i &&
            (known ? known->walks[k] : axes_of(w, t, k, false)) >> p->loop[i].axis & 1)
            return true;
    return loop_settles(w, n, p, i);
}

double plan_passing(const struct work *w, const struct nest *n, const struct plan *p,
                    const struct access *acc) {
    double passed = 1, words = 1;
    for (int i = p->nloops - 1; i >= 0 && loop_unrolled(w, n, p, i); i--) {
        int axis = p->loop[i].axis;
        double trips = ceil((double)plan_tile(w, p, axis, i) / (double)p->loop[i].tile);
        if (access_varies(w->p, acc, axis))
            passed *= trips;
        else if (trips > 1)
            words = passed;
    }
    return words;
}

static void ask_task(const struct work *w, const struct task *task, struct asked *a) {
    memset(a->cut, 0, sizeof a->cut);
    a->task = task;
    a->all = 0;
    a->nstops = 0;
    for (int k = 0; k < task->nops; k++) {
        for (const struct opnd *o = task->op[k].from; o && a->nstops < MAX_STOPS; o = o->from)
            a->stop[a->nstops++] = o;
        for (const struct opnd *o = task->op[k].to; o && a->nstops < MAX_STOPS; o = o->to)
            a->stop[a->nstops++] = o;
        a->walks[k] = axes_of(w, task, k, false);
        a->leaves[k] = axes_of(w, task, k, true);
        a->all |= a->walks[k] | a->leaves[k];
    }
}

void plan_tabulate(const struct work *w, const struct task *task, struct plan *p,
                   struct tiling *t) {
    struct sizes now[MAX_TILED];
    t->nloops = p->nloops;
    t->naxes = 0;
    t->issues_known = t->share_known = t->saved_known = t->crowded = t->fits = false;
    t->refills_of = 0;
    if (t->asked.task != task) ask_task(w, task, &t->asked);
    memset(&t->asked.copied, 0, offsetof(struct asked, copy) - offsetof(struct asked, copied));
    memset(t->column, -1, sizeof t->column);
    for (int i = 0; i < p->nloops; i++) {
        int a = p->loop[i].axis;
        if (t->column[a] >= 0) continue;
        assert(t->naxes < MAX_TILED); /* by what a search may take */
        now[t->naxes] = (struct sizes){{w->p->axis[a].extent}, {1}, 1};
        t->column[a] = t->naxes++;
    }
    for (int d = 0; d <= p->nloops; d++) {
        if (d) split_sizes(&now[t->column[p->loop[d - 1].axis]], p->loop[d - 1].tile);
        t->trips[d] = 1;
        for (int c = 0; c < t->naxes; c++) {
            t->tile[d][c] = now[c].size[0];
            t->least[d][c] = least_of(&now[c]);
            t->count[d][c] = count_of(&now[c]);
            t->trips[d] *= t->count[d][c];
        }
    }
    p->tiling = t;
}
