/* Decoupled queues: what overheads, first fills, slots and last drains cost (SCHEDULING §3), and
 * which loops the machine runs itself. */
#include "scheduler/plan/price_int.h"
#include <math.h>
#include <string.h>

/* ---- hardware loops ---- */

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

static int64_t common_turns(int64_t a, int64_t b) {
    int64_t x = a, y = b;
    while (y) {
        int64_t r = x % y;
        x = y;
        y = r;
    }
    return a / x * b;
}

/* Entries that tell the addresses of all issues: those of one issue, for each place in their copies
 * and each slot that operands have then. */
static double table_entries(const struct work *w, const struct nest *n, const struct plan *p) {
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
        const struct access *acc =
            o->read >= 0 ? &w->p->stmt[t->stmt].read[o->read] : &w->p->stmt[t->stmt].dst;
        for (int k = p->hold[i].depth; k < from; k++)
            if (access_varies(w->p, acc, p->loop[k].axis))
                places *= plan_trips(w, p, k + 1) / plan_trips(w, p, k);
        turns = common_turns(turns, p->hold[i].slots);
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

/* ---- the chain ---- */

struct grains { /* of a chain over the whole nest, and over one tile of the result */
    double all, tile, elements; /* elements of one, at most */
    int64_t size[MAX_AXES];
};

static struct grains grains_of(const struct pricing *c, const struct task *t) {
    const struct work *w = c->w;
    struct grains g = {.all = 1, .tile = 1, .elements = 1};
    for (int a = 0; a < w->p->naxes; a++) {
        if (!(w->p->stmt[t->stmt].axes >> a & 1)) continue;
        struct sizes s = plan_sizes(w, c->plan, a, c->plan->depth_out);
        int64_t most = nest_grain(w, c->nest, a),
                tile = plan_tile(w, c->plan, a, c->plan->depth_out);
        double n = 0;
        if (most < 1) most = 1;
        for (int i = 0; i < s.n; i++)
            n += (double)s.count[i] * (double)((s.size[i] + most - 1) / most);
        int64_t parts = (tile + most - 1) / most;
        g.size[a] = (tile + parts - 1) / parts;
        g.all *= n;
        g.tile *= (double)parts;
        g.elements *= (double)g.size[a];
    }
    return g;
}

static const struct needle *drain_of(const struct pricing *c, const struct opnd *o) {
    const struct machine *m = c->w->m;
    for (int i = 0; i < c->moves->n; i++) {
        const struct instr *in = c->moves->at[i].needle->in;
        bool from = false, to = false;
        for (int k = 0; k < in->nfrom; k++) from |= in->from[k] == o->memory;
        for (int k = 0; k < in->nto; k++) to |= memory_is_home(m, in->to[k]);
        if (from && to) return c->moves->at[i].needle;
    }
    return NULL;
}

/* Of one grain, where that depends on its shape. */
static double drain_cycles(const struct pricing *c, const struct task *t, const struct opnd *o,
                           double otherwise) {
    struct work *w = c->w;
    int buffer = w->p->stmt[t->stmt].dst.buffer;
    struct region r;
    struct box box;
    struct fit f;
    chain_region(w, c->plan, c->nest, t, o, &r);
    struct slot s = slot_make(&w->s->arena, &o->geom, &r);
    if (!box_make(w, buffer, &o->geom, &s, &r, false, &box) ||
        !fit_box(w, c->moves, 0, o->memory, w->home[buffer].memory, &box, &f))
        return otherwise;
    return f.cycles;
}

/* Grains of a result whose slots fill up: the instructions wait for the store of the one that many
 * before. */
static void drain_chain(struct pricing *c, const struct task *t, const struct opnd *o,
                        const struct grains *g, double each, int slots) {
    const struct needle *move = drain_of(c, o);
    const struct instr *in = move ? move->in : NULL;
    const struct machine *m = c->w->m;
    double latency, overhead, interval, trips = plan_trips(c->w, c->plan, c->plan->depth_out),
                                        bytes = g->elements * (double)type_size(o->decl->type);
    if (!in) return;
    instr_times(m, in, move->bound, NULL, &latency, &interval, &overhead);
    double busy = 0;
    if (in->bus >= 0) {
        latency += m->bus[in->bus].latency;
        if (m->bus[in->bus].rate > 0) busy = bytes / m->bus[in->bus].rate;
    }
    double store = overhead + fmax(interval, busy), seen;
    if (!mexpr_constant(in->interval, &interval)) store = drain_cycles(c, t, o, store);
    double moved = bytes * g->all;
    charge(c, in, g->all, store, moved);
    c->plan->bytes += moved;
    if (in->queue == t->needle->in->queue ||
        edge_find(m, t->needle->in->queue, -1, in->queue).kind <= EDGE_FREE)
        return;
    instr_times(m, t->needle->in, t->needle->bound, NULL, &seen, NULL, NULL);
    double again = fmax(store, (each + seen + store + latency) / slots),
           wait = fmax(0, g->tile - slots) * fmax(0, again - each);
    c->bubble += trips * wait;
    c->tail = fmax(c->tail, fmax(store, each + g->tile * (store - each) - wait) + seen + latency);
}

void pipe_chain(struct pricing *c, const struct task *core) {
    struct work *w = c->w;
    (void)core;
    if (c->plan->is_static) return;
    for (int i = 0; i < c->nest->nchain; i++) {
        const struct task *t = &w->task[c->nest->chain[i]];
        struct grains g = grains_of(c, t);
        int64_t size[MAX_SIZES];
        double interval, overhead;
        for (int k = 0; k < t->needle->in->nranged; k++) size[k] = 1;
        for (int x = 0; x < t->needle->nx; x++)
            if (t->needle->ranged[x] >= 0)
                size[t->needle->ranged[x]] = t->axis[x] < 0
                                                 ? t->needle->lo[x]
                                                 : needle_leaf(t->needle, x, g.size[t->axis[x]]);
        instr_times(w->m, t->needle->in, t->needle->bound, size, NULL, &interval, &overhead);
        charge(c, t->needle->in, g.all, overhead + interval, 0);
        for (int k = 0; k < t->nops; k++)
            if (t->op[k].writes && t->op[k].where == IN_LOCAL &&
                needs_home(w, c->nest, w->p->stmt[t->stmt].dst.buffer))
                drain_chain(c, t, &t->op[k], &g, overhead + interval,
                            chain_slots(w, c->moves, c->nest, c->plan, t, &t->op[k]));
    }
}

/* ---- fills ---- */

/* Fewest iterations of the loops between two depths (SCHEDULING §5.2). */
double plan_least_inner(const struct work *w, const struct plan *p, int from, int to) {
    double n = 1;
    uint64_t seen = 0;
    for (int i = from; i < to; i++) {
        int a = p->loop[i].axis;
        if (seen >> a & 1) continue;
        seen |= UINT64_C(1) << a;
        struct sizes s = plan_sizes(w, p, a, from);
        int64_t least = INT64_MAX;
        for (int k = 0; k < s.n; k++) {
            int64_t size = s.size[k], trips = 1;
            for (int j = from; j < to; j++)
                if (p->loop[j].axis == a && p->loop[j].tile < size) {
                    trips *= size / p->loop[j].tile; /* at least */
                    size = p->loop[j].tile;
                }
            if (trips < least) least = trips;
        }
        n *= (double)least;
    }
    return n;
}

/* The step before a period's first is shorter where the innermost loop around has a tail: the fill
 * for that first one comes while it runs. How long the instructions wait then, each time; *times:
 * how often. */
static double tail_waits(const struct pricing *c, int depth, int slots, double exec, double load,
                         double *times) {
    const struct plan *p = c->plan;
    double count = 0, steps = plan_trips(c->w, p, depth);
    *times = 0;
    if (depth < 1 || slots < 2) return 0;
    int a = p->loop[depth - 1].axis;
    struct sizes s = plan_sizes(c->w, p, a, depth);
    int64_t least = s.size[0];
    for (int i = 0; i < s.n; i++) {
        if (s.size[i] < least) least = s.size[i];
        count += (double)s.count[i];
    }
    if (least == s.size[0]) return 0;
    for (int i = 0; i < s.n; i++)
        if (s.size[i] == least) *times = (double)s.count[i] * steps / count;
    double step = exec / steps,
           last = step * count * (double)least / (double)c->w->p->axis[a].extent;
    return fmax(0, load - last - (slots - 2) * step);
}

/* The last step before depth `from` comes round again, beside a step on average. */
double pipe_boundary(const struct pricing *c, int from, int depth) {
    double share = 1;
    uint64_t seen = 0;
    for (int i = from; i < depth; i++) {
        int a = c->plan->loop[i].axis;
        if (seen >> a & 1) continue;
        seen |= UINT64_C(1) << a;
        int64_t all = plan_tile(c->w, c->plan, a, from), tile = plan_tile(c->w, c->plan, a, depth),
                n = (all + tile - 1) / tile;
        share *= (double)(all - (n - 1) * tile) * (double)n / (double)all;
    }
    return share;
}

/* A fill farther out comes between those of the last steps of a period and of the next one's first:
 * what the slots, and steps that may be shorter there, do not hide. */
static double outer_waits(const struct pricing *c, const struct stream *f, int depth, int slots,
                          double step, double load, double latency) {
    const struct stream *d = &c->drain;
    double fill = f->cycles;
    step *= pipe_boundary(c, f->depth, depth);
    if (d->trips > 1 && d->bus >= 0 && d->bus == f->bus && d->queue != f->queue)
        fill += fmin(d->issues, f->issues) * d->cycles / d->issues;
    double behind = fmax(fill + load, step * (slots - 1)) + load + latency - slots * step;
    return (f->trips - 1) * fmax(0, behind);
}

/* A bus serves the heads of the queues in turn: while a result is stored, each issue of a fill
 * waits for one of the store. The k-th fill from then on is wanted when the instructions have run k
 * steps. */
double pipe_bus_waits(const struct pricing *c, const struct flow *w, double step, double cut) {
    const struct stream *d = &c->drain;
    double load = 0, issues = 0, latency = 0;
    for (int i = 0; i < c->nfills; i++) {
        const struct stream *f = &c->fill[i];
        if (f->queue != w->queue || f->depth != w->depth || f->bus < 0 || f->bus != d->bus)
            continue;
        load += f->cycles;
        issues += f->issues * cut;
        latency = fmax(latency, f->latency);
    }
    if (d->trips <= 1 || d->queue == w->queue || issues <= 0) return 0;
    double fills = ceil(d->issues / issues),
           first = fmin(d->issues, issues) * d->cycles / d->issues + load - step,
           last = d->cycles + fills * (load - step);
    return (d->trips - 1) * fmax(0, fmax(first, last) + latency - (w->slots - 2) * step);
}

/* A ring begins again when all that used it is done. */
static double restarts(const struct stream *s) {
    return s->periods > 1 ? (s->periods - 1) * (s->largest + s->latency) : 0;
}

static struct flow flow_of(const struct pricing *c, int queue) {
    struct flow f = {.queue = queue, .depth = -1, .slots = 1, .steps = 1};
    for (int i = 0; i < c->nfills; i++)
        if (c->fill[i].queue == queue && c->fill[i].depth > f.depth) f.depth = c->fill[i].depth;
    for (int i = 0, any = 0; i < c->nfills; i++) {
        const struct stream *s = &c->fill[i];
        if (s->queue != queue) continue;
        f.total += s->cycles * s->trips * s->often;
        f.often = fmax(f.often, s->depth < f.depth ? 0 : s->often);
        f.again += restarts(s);
        f.first += s->cycles;
        f.latency = fmax(f.latency, s->latency);
        if (s->depth != f.depth) continue;
        f.slots = any++ && f.slots < s->slots ? f.slots : s->slots;
        f.load += s->cycles;
        f.steps = s->trips;
    }
    return f;
}

/* In each step of the pacer: with one slot load and instructions take turns. */
static double step_wait(const struct flow *f, double step, double load) {
    return fmax(0, fmax(load, (step + load + f->latency) / f->slots) - step);
}

/* What the instructions wait for one queue's fills after the first. */
static double queue_waits(const struct pricing *c, const struct flow *f, double exec) {
    double waits = 0, step = exec / f->steps;
    int bracket = -1;
    if (f->steps <= 1) return 0;
    for (int i = 0; i < c->nfills; i++) {
        const struct stream *s = &c->fill[i];
        if (s->queue != f->queue || s->depth >= f->depth || s->trips <= 1) continue;
        bool waited =
            s->slots == 1 || plan_least_inner(c->w, c->plan, s->depth, f->depth) < f->slots;
        if (waited && s->depth > bracket) bracket = s->depth;
    }
    for (int i = 0; i < c->nfills; i++) {
        const struct stream *s = &c->fill[i];
        if (s->queue != f->queue || s->depth >= f->depth || s->trips <= 1) continue;
        if (s->depth <= bracket)
            waits +=
                (s->trips - 1) * (s->cycles + (s->depth == bracket ? f->load + f->latency : 0));
        else
            waits += outer_waits(c, s, f->depth, f->slots, step, f->load, f->latency);
    }
    waits += step_wait(f, step, f->load) * (f->steps - 1) * f->often;
    return fmax(waits + f->again, f->total - exec - f->load);
}

/* Whatever the fills' parts: steps that are short, stores on the same bus. */
static double shared_waits(const struct pricing *c, const struct flow *f, double exec) {
    double times, short_of;
    if (f->steps <= 1) return 0;
    short_of = tail_waits(c, f->depth, f->slots, exec, f->load + f->latency, &times);
    return times * short_of + pipe_bus_waits(c, f, exec / f->steps, 1);
}

/* In parts as the plan says, or as is best. `whole`: what is in *waits for whole fills. */
static void choose_parts(struct pricing *c, const struct flow *f, double exec, double whole,
                         double *lead, double *waits) {
    struct plan *p = c->plan;
    bool any = p->parts == PARTS_ANY;
    double best = any ? *lead + whole : INFINITY, first = *lead, others = *waits - whole;
    int from = any ? 1 : p->parts, to = any ? PARTS_MOST : p->parts;
    if (any) p->parts = 0;
    if (!any) *waits = INFINITY;
    for (int k = from; f && k <= to; k++) {
        double before = first, here = parts_waits(c, f, k - 1, exec, &before);
        if (before + here >= best) continue;
        best = before + here;
        p->parts = k;
        *lead = before;
        *waits = others + here;
    }
}

/* To load the table, before anything else; infinite where its memory is too small. */
static double table_cycles(const struct pricing *c, const struct task *core) {
    const struct needle *nd = core->needle;
    if (!nd->entry_bytes || c->plan->is_static) return 0;
    double entries = table_entries(c->w, c->nest, c->plan);
    int64_t room = c->w->m->memory[instr_table(nd->in)->table].size;
    if (room >= 0 && entries * (double)nd->entry_bytes > (double)room) return INFINITY;
    return entries * nd->entry_cycles;
}

/* Results that go home tile by tile: a slot is free again when the store of the tile that many
 * before is seen. What all tiles take at least, beside the instructions. */
static double drain_waits(const struct pricing *c, const struct task *core, double exec) {
    const struct stream *d = &c->drain;
    double seen;
    if (d->slots < 2 || d->trips <= d->slots || d->user != core->needle->in->queue) return 0;
    instr_times(c->w->m, core->needle->in, core->needle->bound, NULL, &seen, NULL, NULL);
    double turn = exec / d->trips + seen + d->cycles + d->latency;
    return fmax(0, (d->trips - d->slots) * turn / d->slots - exec);
}

double pipe_waits(struct pricing *c, const struct task *core) {
    double exec = c->queue[core->needle->in->queue], lead = 0, waits = c->bubble, latency = 0,
           whole = 0;
    uint64_t seen = 0;
    int flows = 0;
    struct flow f = {0};
    double lasting = 0; /* fills that shared loops do not repeat */
    for (int i = 0; i < c->nfills; i++)
        if (c->fill[i].depth < c->nest->nprefix) lasting += c->fill[i].cycles;
    for (int i = 0; i < c->nfills; i++) {
        if (seen >> c->fill[i].queue & 1) continue;
        seen |= UINT64_C(1) << c->fill[i].queue;
        f = flow_of(c, c->fill[i].queue);
        whole = queue_waits(c, &f, exec);
        latency = fmax(latency, f.latency);
        lead += f.first;
        waits += whole + shared_waits(c, &f, exec);
        flows++;
    }
    lead += latency;
    waits = fmax(waits, drain_waits(c, core, exec));
    if (c->plan->parts) choose_parts(c, flows == 1 ? &f : NULL, exec, whole, &lead, &waits);
    c->plan->lead = lead - lasting;
    c->plan->tail = c->tail;
    return lead + c->tail + table_cycles(c, core) + waits;
}
