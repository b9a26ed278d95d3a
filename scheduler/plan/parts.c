/* Fills in parts. A copy that the loops inside it walk piece by piece is filled piece by piece too,
 * each just before it is first used: the instructions begin after the first piece, an outer fill is
 * spread over the steps of the inner ones, and a slot may be filled again while its other pieces
 * are still in use. Nothing is peeled: a fill that belongs to the first iteration of a loop stands
 * in a loop that runs once then, and not at all otherwise. */
#include "scheduler/plan/rewrite.h"
#include "scheduler/plan/price.h"
#include "scheduler/plan/graph.h"
#include "scheduler/plan/tiling.h"
#include "scheduler/plan/limits.h"
#include "scheduler/plan/nest.h"
#include "scheduler/plan/plan.h"
#include "scheduler/plan/price_int.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/geom.h"
#include "scheduler/plan/work.h"
#include <math.h>
#include <string.h>

static const struct access *read_of(const struct work *w, const struct task *t,
                                    const struct opnd *o) {
    return &w->p->stmt[t->stmt].read[o->read];
}

/* Alone, in unit steps, unpadded. */
static bool moves_alone(const struct work *w, const struct task *t, const struct access *acc,
                        int dim, int axis) {
    const struct stmt *st = &w->p->stmt[t->stmt];
    struct region r;
    for (int a = 0; a < w->p->naxes; a++)
        if (a != axis && (st->axes >> a & 1) && w->p->axis[a].extent > 1 &&
            access_coef(w->p, acc, dim, a))
            return false;
    region_padding(w->p, st, acc, &r);
    return access_coef(w->p, acc, dim, axis) == 1 && !r.pad_lo[dim] && !r.pad_hi[dim];
}

/* The one dimension along which the axis cuts the operand in pieces that share nothing; -1. */
static int cut_dim(const struct work *w, const struct task *t, const struct opnd *o, int axis) {
    const struct access *acc = read_of(w, t, o);
    int64_t by;
    int dim = o->geom.repeat_axis == axis ? -1 : access_dim(w->p, acc, axis, &by);
    return dim >= 0 && moves_alone(w, t, acc, dim, axis) ? dim : -1;
}

bool cut_axis(const struct work *w, const struct plan *p, const struct task *t,
              const struct opnd *o, int axis, int from, int to) {
    struct asked *a = o >= t->op && o < t->op + t->nops ? plan_asked(p, t) : NULL;
    uint8_t *known = a ? &a->cut[o - t->op][axis] : NULL;
    int dim = known && *known ? *known - 2 : cut_dim(w, t, o, axis);
    if (known) *known = (uint8_t)(dim + 2);
    for (int i = from; i < to && dim >= 0; i++)
        if (p->loop[i].axis == axis && p->loop[i].tile % o->geom.block[dim]) return false;
    return dim >= 0;
}

bool parts_keep(const struct work *w, const struct plan *p, const struct task *t,
                const struct opnd *o, const struct hold *h, int depth, int credits) {
    double parts = 1;
    uint64_t seen = 0;
    for (int a = 0; a < w->p->naxes; a++)
        if (access_varies(w->p, read_of(w, t, o), a) &&
            !(h->ring && a == p->loop[h->depth - 1].axis) &&
            plan_least(w, p, a, h->depth) != plan_tile(w, p, a, h->depth))
            return false;
    for (int i = h->depth; i < depth; i++) {
        int a = p->loop[i].axis;
        if ((seen >> a & 1) || !cut_axis(w, p, t, o, a, h->depth, depth)) continue;
        seen |= UINT64_C(1) << a;
        parts *= (double)(plan_least(w, p, a, h->depth) / plan_tile(w, p, a, depth));
    }
    return parts >= credits;
}

static double inner_trips(const struct pricing *c, int axis, int depth) {
    int64_t leaf = plan_tile(c->w, c->plan, axis, c->plan->nloops);
    return (double)((plan_tile(c->w, c->plan, axis, depth) + leaf - 1) / leaf);
}

struct pieces { /* of a copy: how many between its own depth and the pacer's, and inside of that */
    double outer, inner, cycles; /* cycles: of one; infinite: no move brings each of them */
};

static struct pieces pieces_of(const struct pricing *c, const struct task *t, const struct opnd *o,
                               int by, int first, const struct stream *s, int depth,
                               const int *axis, int inner) {
    struct pieces n = {.outer = 1, .inner = 1};
    struct plan cut;
    uint64_t seen = 0;
    double most = 1; /* pieces of the largest tile */
    memcpy(cut.loop, c->plan->loop, sizeof cut.loop[0] * (size_t)s->depth);
    cut.nloops = s->depth;
    cut.tiling = NULL;
    for (int i = s->depth; i < depth; i++) {
        int a = c->plan->loop[i].axis;
        if (!cut_axis(c->w, c->plan, t, o, a, s->depth, depth)) continue;
        cut.loop[cut.nloops++] = c->plan->loop[i];
        if (!(seen >> a & 1)) {
            n.outer *= plan_tiles(c->w, c->plan, a, depth) / plan_tiles(c->w, c->plan, a, s->depth);
            most *= ceil((double)plan_tile(c->w, c->plan, a, s->depth) /
                         (double)plan_tile(c->w, c->plan, a, depth));
        }
        seen |= UINT64_C(1) << a;
    }
    for (int k = 0; k < inner; k++) {
        if (!cut_axis(c->w, c->plan, t, o, axis[k], 0, c->plan->nloops)) continue;
        n.inner *= inner_trips(c, axis[k], depth);
        cut.loop[cut.nloops++] = (struct loop){
            axis[k], plan_tile(c->w, c->plan, axis[k], c->plan->nloops), LOOP_SEQUENTIAL};
    }
    n.cycles = s->cycles / (n.outer * n.inner);
    if (cut.nloops == s->depth) return n;
    struct copy one = copy_part_price(c->w, c->moves, c->plan, t, o, read_of(c->w, t, o), s->depth,
                                      by, first, &cut);
    n.cycles *= one.in ? fmax(1, one.cycles * most * n.inner / s->largest) : INFINITY;
    return n;
}

/* Several tokens are on their way for one slot: the syncs must hold them, and hold up who pushes.
 */
bool counts_tokens(const struct edges *all, int queue, int user) {
    for (int way = 0; way < 2; way++) {
        struct edge e = way ? edge_of_queue(all, user, queue) : edge_of_queue(all, queue, user);
        if (e.kind == EDGE_FREE) continue;
        if (e.kind != EDGE_TOKEN || e.first >= 0 || all->m->sync[e.sync].memory >= 0) return false;
    }
    return true;
}

static bool possible(const struct pricing *c, const struct flow *f, int inner) {
    const struct nest *n = c->nest;
    const struct task *t = &c->w->task[n->core];
    int axis[2];
    if (c->plan->is_static || n->group || n->nprefix > 0 || n->part_n || f->depth < 0) return false;
    for (int i = 0; i < c->nfills; i++)
        if (c->fill[i].operand < 0 || c->fill[i].user != t->needle->in->queue ||
            !(c->w->counts[c->fill[i].queue] >> c->fill[i].user & 1))
            return false;
    for (int i = 0; i < t->nops; i++) /* the loops inside must be those that stay where they are */
        if (inner && t->op[i].where == IN_LOCAL && c->plan->hold[i].depth > f->depth) return false;
    return c->plan->depth_out <= f->depth && plan_plain(c->w, n, c->plan, axis) >= inner;
}

/* An outer copy's pieces come between those of the pacer, also where it has none: `wait` is that of
 * a step on average. */
static double outer_piece_waits(const struct pricing *c, const struct flow *f,
                                const struct stream *s, const struct pieces *n, double load,
                                double step, double begin, double wait) {
    const struct task *t = &c->w->task[c->nest->core];
    double here = n->cycles * n->inner,
           short_step = n->outer > 1 ? step : step * pipe_boundary(c, s->depth, f->depth);
    bool kept = (s->slots > 1 && plan_least_inner(c->w, c->plan, s->depth, f->depth) >= f->slots) ||
                parts_keep(c->w, c->plan, t, &t->op[s->operand], &c->plan->hold[s->operand],
                           f->depth, f->slots);
    double late = pipe_step(f, short_step, load + here, begin + here);
    double begins =
        s->trips > 1 && !kept ? s->trips : 1; /* with nothing ahead of the instructions */
    return (begins - 1) * (here + load + f->latency) +
           (s->trips * n->outer - begins) * fmax(0, late - wait);
}

static int first_cut(const struct pricing *c, const struct task *t, const struct opnd *o, int from,
                     int to) {
    int i = from;
    while (i < to && !cut_axis(c->w, c->plan, t, o, c->plan->loop[i].axis, from, to)) i++;
    return i;
}

void spread_choose(struct pricing *c, const struct task *t, const struct opnd *o,
                   const struct copy *whole, int inner, struct hold *h, struct stream *s) {
    const struct nest *n = c->nest;
    const struct plan *p = c->plan;
    double exec = c->queue[t->needle->in->queue], best = s->cycles;
    struct stream made = *s;
    if (p->unspread || p->is_static || n->group || n->nprefix > 0 || n->part_n) return;
    for (int d = s->depth + 1; d <= inner; d++) {
        if (!cut_axis(c->w, p, t, o, p->loop[d - 1].axis, s->depth, d)) continue;
        struct pieces x = pieces_of(c, t, o, h->fill_by, whole->first, s, d, NULL, 0);
        if (x.outer <= 1) continue;
        double all = x.cycles * x.outer, pass = exec * x.outer / plan_trips(c->w, p, d),
               behind = fmax(0, (1 - 1 / x.outer) * (all - pass)),
               cost = x.cycles + behind + s->trips * (all - s->cycles);
        if (cost >= best) continue;
        best = cost;
        h->spread = d;
        made.cycles = all;
        made.pieces = x.outer;
        /* no result leaves before all pieces are there: they come first */
        bool inside = first_cut(c, t, o, s->depth, d) >= p->depth_out;
        made.first = x.cycles + (inside ? behind : 0);
        made.behind = inside ? 0 : behind;
    }
    c->queue[s->queue] += s->trips * (made.cycles - s->cycles);
    *s = made;
}

/* Where another copy comes with these and has no pieces, instructions wait for that one and then,
 * behind it, for each piece. */
static bool all_in_pieces(const struct work *w, const struct plan *p, const struct task *t,
                          int depth) {
    for (int i = 0; i < t->nops; i++) {
        const struct opnd *o = &t->op[i];
        if (o->where == IN_LOCAL && !o->writes && p->hold[i].depth >= depth &&
            (depth == p->nloops || !cut_axis(w, p, t, o, p->loop[depth].axis, depth, depth + 1)))
            return false;
    }
    return true;
}

void pieces_choose(struct pricing *c, const struct task *t, const struct opnd *o, struct hold *h,
                   struct stream *s) {
    const struct plan *p = c->plan;
    int d = s->depth;
    if (o < t->op || o >= t->op + t->nops || !queues_in_step(c->w->edges, s->queue, s->user))
        return;
    h->spread = 0;
    h->ahead = false;
    if (!graph_is_static(c->w->m, o->memory) || h->slots > 1 || keeps_part(h) || p->unspread ||
        c->nest->is_grid || c->nest->part_n || d < c->nest->nprefix ||
        !all_in_pieces(c->w, p, t, d))
        return;
    while (d < p->nloops && cut_axis(c->w, p, t, o, p->loop[d].axis, s->depth, d + 1)) d++;
    if (d == s->depth) return;
    struct pieces n = pieces_of(c, t, o, h->fill_by, 0, s, d, NULL, 0);
    if (n.outer <= 1 || isinf(n.cycles)) return;
    h->spread = d;
    c->queue[s->queue] += s->trips * (n.cycles * n.outer - s->cycles);
    s->in_pieces = h;
    s->depth = d;
    s->trips *= n.outer;
    s->slots = (int)n.outer;
    s->issues = ceil(s->issues / n.outer);
    s->busy /= n.outer;
    s->cycles = s->largest = s->first = n.cycles;
}

/* Nothing but these pieces is filled inside the loop, nor does a result begin there. */
static bool pieces_alone(const struct work *w, const struct plan *p, const struct task *t,
                         int depth) {
    int axis = p->loop[depth].axis;
    bool any = false;
    for (int i = 0; i < t->nops; i++) {
        const struct opnd *o = &t->op[i];
        const struct hold *h = &p->hold[i];
        if (o->where != IN_LOCAL) continue;
        for (int k = 0; k < o->in.n; k++)
            if (p->via[i][k].depth >= depth || p->via[i][k].spread >= depth) return false;
        if (h->depth < depth) continue;
        if (o->writes || !h->spread || !cut_axis(w, p, t, o, axis, depth, depth + 1)) return false;
        any = true;
    }
    return any;
}

int pieces_ahead_depth(const struct work *w, const struct nest *n, const struct plan *p) {
    const struct task *t = &w->task[n->core];
    int depth = 0;
    for (int i = 0; i < t->nops; i++)
        if (t->op[i].where == IN_LOCAL && p->hold[i].spread && p->hold[i].depth > depth)
            depth = p->hold[i].depth;
    if (depth <= n->nprefix || depth >= p->nloops || loop_unrolled(w, n, p, depth - 1)) return -1;
    for (int i = depth - 1; i <= depth; i++) {
        int a = p->loop[i].axis;
        int64_t all = plan_tile(w, p, a, i), tile = p->loop[i].tile;
        if (all != plan_least(w, p, a, i) || all % tile || all == tile) return -1;
    }
    return pieces_alone(w, p, t, depth) ? depth : -1;
}

double parts_waits(const struct pricing *c, const struct flow *f, int inner, double exec,
                   double *lead) {
    const struct task *t = &c->w->task[c->nest->core];
    double turns = 1, first = 0, start = 0, waits = 0, step = exec / f->steps, begin = 0, load = 0,
           total = 0;
    struct pieces n[MAX_OPERANDS];
    int axis[2];
    *lead = INFINITY;
    if (!possible(c, f, inner)) return INFINITY;
    plan_plain(c->w, c->nest, c->plan, axis);
    for (int k = 0; k < inner; k++) turns *= inner_trips(c, axis[k], f->depth);
    for (int i = 0; i < c->nfills; i++) {
        const struct stream *s = &c->fill[i];
        n[i] = pieces_of(c, t, &t->op[s->operand], c->plan->hold[s->operand].fill_by, 0, s,
                         f->depth, axis, inner);
        if (isinf(n[i].cycles)) return INFINITY;
        first += n[i].cycles * n[i].inner;
        start += n[i].cycles;
        total += s->trips * s->often * n[i].outer * n[i].inner * n[i].cycles;
        if (s->periods > 1 && !parts_keep(c->w, c->plan, t, &t->op[s->operand],
                                          &c->plan->hold[s->operand], f->depth, f->slots))
            waits += (s->periods - 1) * (s->largest + s->latency);
        if (s->depth == f->depth) begin += n[i].cycles;
        if (s->depth == f->depth) load += n[i].cycles * n[i].inner;
    }
    *lead = f->latency + fmax(start, first - step * (turns - 1) / turns);
    double wait = pipe_step(f, step, load, begin);
    for (int i = 0; i < c->nfills; i++)
        if (c->fill[i].depth < f->depth)
            waits +=
                outer_piece_waits(c, f, &c->fill[i], &n[i], load, step, begin, wait * f->often);
    if (f->steps > 1) waits += pipe_bus_waits(c, f, step, turns) - pipe_bus_waits(c, f, step, 1);
    return fmax(waits + wait * (f->steps - 1) * f->often, total - exec - (*lead - f->latency));
}
