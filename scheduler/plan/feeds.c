/* Copies that the host makes of what a nest reads, or of its result, in turns with it: inside loops
 * that both walk, so that each finds the other's tile in a cache. The home between them then holds
 * one tile, if tiles are equal. */
#include "scheduler/plan/rewrite.h"
#include "scheduler/plan/geom.h"
#include "scheduler/plan/graph.h"
#include "scheduler/plan/nest.h"
#include "scheduler/plan/plan.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/tiling.h"
#include "scheduler/plan/work.h"
#include <math.h>
#include <stdlib.h>

const struct access *feed_access(const struct work *w, const struct feed *f) {
    const struct stmt *st = &w->p->stmt[f->stmt];
    return f->after ? &st->read[0] : &st->dst;
}

static int result_task(const struct nest *n) {
    return n->nchain ? n->chain[n->nchain - 1].task : n->core;
}

int feed_axis(const struct work *w, const struct nest *n, const struct feed *f, int i, int *dim) {
    const struct program *p = w->p;
    const struct stmt *copy = &p->stmt[f->stmt],
                      *st = &p->stmt[w->task[f->after ? result_task(n) : n->core].stmt];
    int a = n->plan.loop[i].axis, buffer = feed_access(w, f)->buffer;
    if (w->task[n->core].reductions >> a & 1) return -1;
    for (int d = 0; d < p->buffer[buffer].ndims; d++) {
        bool walks = true;
        for (int r = f->after ? -1 : 0; r < (f->after ? 0 : st->nreads); r++) {
            const struct access *acc = r < 0 ? &st->dst : &st->read[r];
            if (acc->buffer == buffer) walks &= access_lone(p, acc, d, st->axes) == a;
        }
        int x = access_lone(p, feed_access(w, f), d, copy->axes);
        if (!walks || x < 0 || p->axis[x].extent != p->axis[a].extent ||
            p->buffer[buffer].extent[d] != p->axis[a].extent)
            continue;
        int64_t by;
        *dim = d;
        return access_dim(p, feed_access(w, f), x, &by) == d ? x : -1;
    }
    return -1;
}

/* Loops outside which the copy may stand: all of them walk it, and nothing of the buffer is held
 * longer than they turn. */
static int deepest(const struct work *w, const struct nest *n, const struct feed *f) {
    const struct task *t = &w->task[n->core];
    const struct plan *p = &n->plan;
    int most = p->depth_out, dim, d = 0;
    for (int i = 0; i < t->nops; i++) {
        const struct opnd *o = &t->op[i];
        if (o->where == IN_IMM || (o->read < 0 && !o->writes)) continue;
        bool uses = f->after ? o->writes
                             : o->read >= 0 && w->p->stmt[t->stmt].read[o->read].buffer ==
                                                   feed_access(w, f)->buffer;
        if (!uses) continue;
        if (o->in.n || o->out.n) return 0;
        if (o->where == IN_LOCAL && p->hold[i].depth < most) most = p->hold[i].depth;
    }
    while (d < most && !loop_unrolled(w, n, p, d) && feed_axis(w, n, f, d, &dim) >= 0) d++;
    return d;
}

static double tile_bytes(const struct work *w, const struct nest *n, const struct feed *f,
                         int depth) {
    const struct buffer *b = &w->p->buffer[feed_access(w, f)->buffer];
    double elements = (double)b->elements;
    int dim;
    uint64_t seen = 0;
    for (int i = 0; i < depth; i++) {
        int a = n->plan.loop[i].axis;
        if (seen >> a & 1 || feed_axis(w, n, f, i, &dim) < 0) continue;
        seen |= UINT64_C(1) << a;
        elements *= (double)plan_tile(w, &n->plan, a, depth) / (double)b->extent[dim];
    }
    return elements * (double)type_size(b->type);
}

static bool writes(const struct work *w, int stmt, int buffer) {
    return w->p->stmt[stmt].dst.buffer == buffer;
}

static bool reads(const struct work *w, int stmt, int buffer) {
    return stmt_reads(&w->p->stmt[stmt], buffer);
}

static bool of_nest(const struct work *w, const struct nest *n, int stmt) {
    for (int i = 0; i < nest_ntasks(n); i++)
        if (w->task_of[stmt] == nest_task(n, i)) return true;
    return stmt == w->task[n->core].init;
}

static bool only_theirs(const struct work *w, const struct nest *n, int copy, int buffer) {
    int count;
    const int *use = buffer_uses(w, buffer, &count);
    for (int i = 0; i < count; i++)
        if (use[i] != copy && !of_nest(w, n, use[i])) return false;
    return true;
}

/* Between the copy's place and the nest's nobody minds; the buffer is of these two alone. */
static bool may_join(const struct work *w, const struct nest *n, const struct feed *f) {
    int buffer = feed_access(w, f)->buffer,
        other = f->after ? w->p->stmt[f->stmt].dst.buffer : w->p->stmt[f->stmt].read[0].buffer;
    bool between = false, found = false;
    if (w->p->buffer[buffer].role != ROLE_TEMP || other == buffer ||
        !only_theirs(w, n, f->stmt, buffer))
        return false;
    for (int i = 0; i < w->norder; i++) {
        int s = w->order[i];
        bool mine = of_nest(w, n, s);
        if (s == f->stmt || mine) {
            found |= between && (s == f->stmt) == f->after;
            if (s == (f->after ? n->first : f->stmt)) between = true;
            if (s == (f->after ? f->stmt : n->first)) between = false;
            if (mine && f->after && (reads(w, s, other) || writes(w, s, other))) return false;
            if (mine && !f->after && (writes(w, s, buffer) || writes(w, s, other))) return false;
            if (mine && !f->after && w->task_of[s] != n->core && reads(w, s, buffer)) return false;
            continue;
        }
        if (reads(w, s, buffer) || writes(w, s, buffer)) return false;
        if (between && (writes(w, s, other) || (f->after && reads(w, s, other)))) return false;
    }
    return found;
}

/* One statement of the host that only copies between two buffers, outside of recurrences. */
bool host_copies(const struct work *w, int stmt) {
    const struct stmt *st = &w->p->stmt[stmt];
    return w->task_of[stmt] == -1 && !w->in_prepare[stmt] && !st->scope && st->nreads == 1 &&
           st->nops == 1 && st->op[0].code == OP_READ && !st->nwhere && st->combine == COMBINE_SET;
}

/* Hardware keeps the host's work and that of the nest's unit in order. */
static bool in_step(const struct work *w, const struct nest *n) {
    int host = w->m->fallback[w->fallback].queue,
        unit = w->m->queue[w->task[n->core].needle->in->queue].unit;
    for (int q = 0; q < w->m->nqueues; q++)
        if (w->m->queue[q].unit == unit && !queues_in_step(w->edges, host, q)) return false;
    return true;
}

/* Bytes that stay in the cache which the host's operands pass first, and in the next one. */
static double cache_room(const struct work *w, int level) {
    const struct fallback *host = &w->m->fallback[w->fallback];
    int m = host->nmemories ? host->memory[0] : -1;
    while (level-- > 0 && m >= 0) m = w->m->memory[m].caches;
    if (m < 0 || w->m->memory[m].caches < 0 || w->m->memory[m].size <= 0) return 0;
    return w->m->memory[m].usable * (double)w->m->memory[m].size;
}

/* The home holds one tile of the copy: blocks that come again lie where the last ones were. */
static void fold_home(struct work *w, const struct nest *n, const struct feed *f) {
    int buffer = feed_access(w, f)->buffer, dim;
    struct home *h = &w->home[buffer];
    const struct buffer *b = &w->p->buffer[buffer];
    for (int i = 0; i < f->depth; i++) {
        int a = n->plan.loop[i].axis;
        if (w->p->axis[a].extent % plan_tile(w, &n->plan, a, f->depth)) return;
    }
    h->fold = arena_array(w->arena, (size_t)b->ndims + 1, sizeof *h->fold);
    h->near = -1;
    for (int i = 0; i < f->depth; i++) {
        feed_axis(w, n, f, i, &dim);
        h->fold[dim] = plan_tile(w, &n->plan, n->plan.loop[i].axis, f->depth);
    }
    for (int d = b->ndims - 1; d >= 0 && !h->packed; d--)
        h->at[h->n++] = (struct coord){d, 1, 0, false};
    h->packed = true;
    home_run(h, b->ndims);
}

static bool feed_cuts(const struct work *w, const struct nest *n, const struct feed *f) {
    bool cuts = false;
    int dim;
    for (int i = 0; i < f->depth; i++) {
        int x = feed_axis(w, n, f, i, &dim);
        cuts |= x >= 0 &&
                host_cuts(w, f->stmt, x, plan_tile(w, &n->plan, n->plan.loop[i].axis, f->depth));
    }
    return cuts;
}

static double turns_cycles(const struct work *w, const struct nest *n, const struct feed *f) {
    return host_turns(w, f->stmt, plan_trips(w, &n->plan, f->depth), feed_cuts(w, n, f));
}

/* The depth at which the copy takes least time, a tile in both of its layouts passing the caches
 * that do not hold it. 0: all tiles are too large. */
static int cheapest(const struct work *w, const struct nest *n, struct feed f) {
    const struct buffer *b = &w->p->buffer[feed_access(w, &f)->buffer];
    double bytes = (double)b->elements * (double)type_size(b->type), best = INFINITY, exposed,
           near = cache_room(w, 0) / 2, far = cache_room(w, 1);
    int most = deepest(w, n, &f), found = 0;
    if (n->nfeeds == MAX_FEEDS || bytes <= near) return 0;
    for (f.depth = 1; f.depth <= most; f.depth++) {
        double tile = tile_bytes(w, n, &f, f.depth);
        if (tile > fmax(near, far)) continue;
        double cycles = turns_cycles(w, n, &f) +
                        stream_cycles(w->m, (struct passing){2 * bytes, bytes}, 2 * tile, &exposed);
        if (cycles <= best) found = f.depth, best = cycles;
    }
    return found;
}

static void feed_ask(struct work *w, struct nest *n, struct feed f) {
    f.depth = cheapest(w, n, f);
    if (!f.depth) return;
    struct candidate c[2] = {{"apart", host_cycles(w, f.stmt), NULL},
                             {"tile by tile", turns_cycles(w, n, &f), NULL}};
    const char *subject = arena_printf(
        w->arena, "the copy of statement %d and the nest of statement %d", f.stmt, n->first);
    if (work_ask(w, QUESTION_FUSION, subject, c, 2, c[1].cost < c[0].cost) != 1) return;
    n->feed[n->nfeeds++] = f;
    fold_home(w, n, &f);
}

static int compare_ints(const void *a, const void *b) {
    return *(const int *)a - *(const int *)b;
}

/* Copies that write what the core reads, or read the result: their places in the order. */
static int copies_beside(const struct work *w, const struct nest *n, const int *rank, int *out,
                         int most) {
    const struct stmt *core = &w->p->stmt[w->task[n->core].stmt];
    int count, found = 0;
    for (int r = -1; r < core->nreads; r++) {
        int b = r < 0 ? w->p->stmt[w->task[result_task(n)].stmt].dst.buffer : core->read[r].buffer;
        const int *use = buffer_uses(w, b, &count);
        for (int i = 0; i < count && found < most; i++)
            if (!w->group_of[use[i]] && host_copies(w, use[i]) && (r < 0 || writes(w, use[i], b)))
                out[found++] = rank[use[i]];
    }
    qsort(out, (size_t)found, sizeof *out, compare_ints);
    return found;
}

void feeds_decide(struct work *w) {
    int *rank = arena_array(w->arena, (size_t)w->p->nstmts + 1, sizeof *rank);
    int *beside = arena_array(w->arena, (size_t)w->norder + 1, sizeof *beside);
    for (int k = 0; k < w->norder; k++) rank[w->order[k]] = k;
    for (int i = 0; i < w->nnests && w->fallback >= 0; i++) {
        struct nest *n = &w->nest[i];
        if (n->core < 0 || n->group || n->nprefix || n->part_n || n->next_part >= 0 ||
            n->plan.share.n || w->p->stmt[n->first].scope || !in_step(w, n))
            continue;
        int count = copies_beside(w, n, rank, beside, w->norder);
        for (int k = 0; k < count; k++) {
            int s = w->order[beside[k]];
            if ((k && beside[k] == beside[k - 1]) || feeds_have(w, s))
                continue; /* it turns with one nest */
            struct feed f = {.stmt = s,
                             .after =
                                 reads(w, s, w->p->stmt[w->task[result_task(n)].stmt].dst.buffer)};
            if (may_join(w, n, &f)) feed_ask(w, n, f);
        }
    }
}

static const struct feed *feed_of(const struct work *w, int stmt, const struct nest **of) {
    for (int i = 0; i < w->nnests; i++)
        for (int k = 0; k < w->nest[i].nfeeds; k++) {
            *of = &w->nest[i];
            if (w->nest[i].feed[k].stmt == stmt) return &w->nest[i].feed[k];
        }
    return NULL;
}

bool feeds_have(const struct work *w, int stmt) {
    const struct nest *n;
    return feed_of(w, stmt, &n) != NULL;
}

double feeds_cycles(const struct work *w, int stmt) {
    const struct nest *n;
    const struct feed *f = feed_of(w, stmt, &n);
    return host_turns(w, stmt, 0, f && feed_cuts(w, n, f));
}
