/* Decoupled queues: what overheads, first fills, slots and last drains cost (SCHEDULING §3), and
 * which loops the machine runs itself. */
#include "scheduler/plan/graph.h"
#include "scheduler/plan/tiling.h"
#include "scheduler/plan/limits.h"
#include "scheduler/plan/moves.h"
#include "machines/needle.h"
#include "scheduler/plan/nest.h"
#include "scheduler/plan/plan.h"
#include "scheduler/plan/price.h"
#include "scheduler/plan/price_int.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/geom.h"
#include "scheduler/plan/work.h"
#include <math.h>

/* ---- signals ---- */

enum { SIGNALS = 2 }; /* that go with a step */

/* A signal that no issue carries, since a loop stands next to it, is an instruction of its queue.
 */
static double signal_cycles(const struct machine *m, int queue) {
    static const struct program sizeless;
    double interval, overhead;
    if (m->queue[queue].nop < 0) return 0;
    instr_times(m, &m->instr[m->queue[queue].nop], &sizeless, NULL, NULL, &interval, &overhead);
    return overhead + interval;
}

static bool told(const struct pricing *c, int from, int to) {
    return from != to && edge_of_queue(c->w->edges, from, to).kind == EDGE_TOKEN;
}

void pipe_signals(struct pricing *c, const struct task *core) {
    const struct machine *m = c->w->m;
    int exec = core->needle->in->queue;
    double issues, entries, times = 0;
    if (c->plan->is_static) return;
    leaf_cycles(c, core, &issues);
    entries = plan_entries(c->w, c->nest, c->plan, issues);
    for (int i = 0; i < c->nfills; i++) {
        struct stream *f = &c->fill[i];
        double more = pipe_fill_signals(c, i) * signal_cycles(m, f->queue);
        bool again = false;
        if (!told(c, f->queue, f->user)) continue;
        for (int k = 0; k < i; k++) again |= same_step(f, &c->fill[k]);
        if (!again && f->user == exec && entries > f->trips) times += f->trips * f->often;
        f->cycles += more;
        c->queue[f->queue] += more * f->trips * f->often;
    }
    const struct stream *d = &c->leaves;
    if (d->trips > 0 && told(c, exec, d->queue) && entries > d->trips) times += d->trips;
    if (d->trips > 0 && told(c, exec, d->queue) && d->issues > 1)
        c->queue[d->queue] += SIGNALS * d->trips * signal_cycles(m, d->queue);
    c->queue[exec] += price_add(c, PRICE_ENTRIES, SIGNALS * times * signal_cycles(m, exec));
}

/* ---- fills ---- */

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

/* A fill farther out comes between those of the last steps of a period and of the next one's first:
 * what the slots, and steps that may be shorter there, do not hide; nor is it issued before the
 * queue of instructions has room for all that is before it. */
static double outer_waits(const struct pricing *c, const struct stream *f, const struct flow *inner,
                          double step) {
    const struct stream *d = &c->drain;
    double fill = f->cycles, load = inner->load, latency = inner->latency, slots = inner->slots;
    step *= pipe_boundary(c, f->depth, inner->depth);
    if (d->trips > 1 && d->bus >= 0 && d->bus == f->bus && d->queue != f->queue)
        fill += fmin(d->issues, f->issues) * d->cycles / d->issues;
    double behind = fmax(fill + load, step * (slots - 1)) + load + latency - slots * step;
    if (f->in_pieces) behind = fill + load + latency - (slots - 1) * step;
    if (!isinf(inner->ahead))
        behind = fmax(behind, fill + load + latency - (inner->ahead + inner->early) * step);
    return (f->trips - 1) * fmax(0, behind);
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
        f.first += s->first;
        f.latency = fmax(f.latency, s->latency);
        f.seen = fmax(f.seen, s->seen);
        if (s->depth != f.depth) continue;
        f.slots = any++ && f.slots < s->slots ? f.slots : s->slots;
        f.load += s->cycles;
        f.steps = s->trips;
    }
    return f;
}

/* Steps of the instructions that their queue holds, with the moves on it and the signals that go
 * with them. */
static double ahead_of(const struct pricing *c, const struct task *core, const struct flow *f) {
    int64_t depth = c->w->m->queue[core->needle->in->queue].depth;
    double issues;
    if (depth <= 0 || f->steps <= 0) return INFINITY;
    leaf_cycles((struct pricing *)c, core, &issues);
    double entries = plan_entries(c->w, c->nest, c->plan, issues) + c->beside,
           signals = queues_in_step(c->w->edges, f->queue, core->needle->in->queue) ? 0 : SIGNALS;
    return (double)depth / (entries / f->steps + signals);
}

/* What the instructions wait for one queue's fills after the first. */
static double queue_waits(const struct pricing *c, const struct flow *f, double exec) {
    double waits = 0, step = exec / f->steps;
    int bracket = -1;
    for (int i = 0; i < c->nfills; i++)
        if (c->fill[i].queue == f->queue) waits += price_add(c, PRICE_PIECES, c->fill[i].behind);
    if (f->steps <= 1) return waits;
    for (int i = 0; i < c->nfills; i++) {
        const struct stream *s = &c->fill[i];
        if (s->queue != f->queue || s->depth >= f->depth || s->trips <= 1) continue;
        bool waited =
            s->slots == 1 || (!queues_in_step(c->w->edges, s->queue, s->user) &&
                              plan_least_inner(c->w, c->plan, s->depth, f->depth) < f->slots);
        if ((waited || f->apart) && s->depth > bracket) bracket = s->depth;
    }
    for (int i = 0; i < c->nfills; i++) {
        const struct stream *s = &c->fill[i];
        if (s->queue != f->queue || s->depth >= f->depth || s->trips <= 1) continue;
        if (s->depth <= bracket)
            waits += price_add(c, PRICE_BRACKETS,
                               (s->trips - 1) *
                                   (s->cycles + (s->depth == bracket ? f->load + f->latency : 0)));
        else
            waits += price_add(c, PRICE_OUTER, outer_waits(c, s, f, step));
    }
    waits +=
        price_add(c, PRICE_STEPS, pipe_step(f, step, f->load, f->load) * (f->steps - 1) * f->often);
    waits += price_add(c, PRICE_RINGS, f->again);
    return waits + price_add(c, PRICE_STREAM, fmax(0, f->total - exec - f->load - waits));
}

/* Whatever the fills' parts: steps that are short, stores on the same bus. */
static double shared_waits(const struct pricing *c, const struct flow *f, double exec) {
    double times, short_of;
    if (f->steps <= 1) return 0;
    short_of = tail_waits(c, f->depth, f->slots, exec, f->load + f->latency, &times);
    return price_add(c, PRICE_SHORT, times * short_of) +
           price_add(c, PRICE_BUS, pipe_bus_waits(c, f, exec / f->steps, 1));
}

/* Results on their way home take the fills' tokens: then no credit of the fills is out. */
static bool results_share(const struct pricing *c, const struct stream *f) {
    const struct stream *way[] = {&c->leaves, &c->drain};
    for (int i = 0; i < 2; i++)
        if (way[i]->trips > 0 && way[i]->user != way[i]->queue &&
            tokens_shared(c, f, way[i]->user, way[i]->queue))
            return true;
    return false;
}

/* Fills may stand a step ahead in a loop of equal lengths around their step, where no others come
 * between. */
static bool ahead_possible(const struct pricing *c, const struct flow *f, bool outer) {
    const struct nest *n = c->nest;
    const struct plan *p = c->plan;
    int d = f->depth - 1, user = -1;
    if (n->group || n->nprefix > 0 || n->part_n || d < 0 || f->slots < 2 ||
        (p->is_static && (!outer || loop_unrolled(c->w, n, p, d))) || (!outer && p->depth_out > d))
        return false;
    for (int i = 0; i < c->nfills; i++) {
        const struct stream *s = &c->fill[i];
        if (outer && s->queue != f->queue) continue;
        if (outer ? !s->outer || (user >= 0 && s->user != user) ||
                        (p->depth_out > d && results_share(c, s))
                  : s->operand < 0 || s->user != c->w->task[n->core].needle->in->queue ||
                        keeps_part(&p->hold[s->operand]))
            return false;
        if (s->depth == f->depth && (s->slots < 2 || s->pieces > 1)) return false;
        user = s->user;
    }
    int a = p->loop[d].axis;
    return plan_tile(c->w, p, a, d) > p->loop[d].tile &&
           plan_tile(c->w, p, a, d) == plan_least(c->w, p, a, d);
}

/* Waits where all fills but the first of each turn of the loop come a step earlier. */
static double ahead_waits(const struct pricing *c, const struct flow *f, double exec, bool outer) {
    if (!ahead_possible(c, f, outer)) return INFINITY;
    double step = exec / f->steps, turns = plan_trips(c->w, c->plan, f->depth - 1);
    struct flow early = *f;
    early.early = 1;
    early.held = pipe_held(c, f, 0);
    double waits = queue_waits(c, &early, exec),
           late = pipe_step(f, step, f->load, f->load) - pipe_step(&early, step, f->load, f->load);
    return waits + price_add(c, PRICE_STEPS, (turns - 1) * late);
}

/* Waits where pieces in registers are filled a step of the loop around them ahead. */
static double pieces_waits(const struct pricing *c, const struct flow *f, double exec) {
    const struct plan *p = c->plan;
    for (int i = 0; i < c->nfills; i++)
        if (c->fill[i].queue == f->queue && !c->fill[i].in_pieces) return INFINITY;
    int depth = p->is_static ? pieces_ahead_depth(c->w, c->nest, p) : -1;
    if (depth < 0) return INFINITY;
    double step = exec / f->steps, turns = plan_trips(c->w, p, depth - 1);
    struct flow early = *f;
    early.early = f->steps / plan_trips(c->w, p, depth + 1);
    double waits = queue_waits(c, &early, exec),
           late = pipe_step(f, step, f->load, f->load) - pipe_step(&early, step, f->load, f->load);
    return waits + price_add(c, PRICE_STEPS, (turns - 1) * early.early * late);
}

/* Fills of outer copies, where they stand or a step ahead. Then pieces of others come later by one
 * of them. */
static double outer_queue_waits(const struct pricing *c, struct flow *f, double exec) {
    double *price = c->plan->price, before[PRICE_TERMS], whole[PRICE_TERMS];
    memcpy(before, price, sizeof before);
    double waits = queue_waits(c, f, exec);
    memcpy(whole, price, sizeof whole);
    memcpy(price, before, sizeof before);
    double ahead = fmin(ahead_waits(c, f, exec, true), pieces_waits(c, f, exec));
    for (int i = 0; i < c->nfills; i++)
        if (c->fill[i].queue == f->queue && c->fill[i].pieces > 1)
            ahead += price_add(c, PRICE_PIECES, f->load);
    if (ahead >= waits) {
        memcpy(price, whole, sizeof whole);
        return waits;
    }
    f->early = 1;
    for (int i = 0; i < c->nfills; i++)
        if (c->fill[i].queue == f->queue && (c->fill[i].in_pieces || c->fill[i].depth == f->depth))
            (c->fill[i].in_pieces ? c->fill[i].in_pieces : c->fill[i].outer)->ahead = true;
    return ahead;
}

/* In parts as the plan says, or as is best. `whole`: what is in *waits for whole fills. */
static void choose_parts(struct pricing *c, const struct flow *f, double exec, double whole,
                         double *lead, double *waits) {
    struct plan *p = c->plan;
    bool any = p->parts == PARTS_ANY;
    double best = any ? *lead + whole : INFINITY, first = *lead, others = *waits - whole;
    int from = any ? 1 : p->parts, to = any ? PARTS_AHEAD : p->parts;
    if (any) p->parts = 0;
    if (!any) *waits = INFINITY;
    for (int k = from; f && k <= to; k++) {
        double before = first, here, keep[PRICE_TERMS];
        memcpy(keep, p->price, sizeof keep);
        here = k == PARTS_AHEAD ? ahead_waits(c, f, exec, false)
                                : parts_waits(c, f, k - 1, exec, &before);
        memcpy(p->price, keep, sizeof keep);
        if (!price_counts(c->w, PRICE_PIECES)) here = 0;
        if (before + here >= best) continue;
        for (int t = PRICE_STEPS; t <= PRICE_PIECES; t++)
            if (t != PRICE_SHORT) p->price[t] = 0;
        best = before + here;
        price_add(c, PRICE_PIECES, here);
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
    const struct stream *d = &c->leaves;
    double seen;
    if (d->slots < 2 || d->trips <= d->slots || d->user != core->needle->in->queue) return 0;
    instr_times(c->w->m, core->needle->in, core->needle->bound, NULL, &seen, NULL, NULL);
    double turn = exec / d->trips + seen + d->cycles + d->latency;
    return fmax(0, (d->trips - d->slots) * turn / d->slots - exec);
}

/* Instructions enter their queues in program order: stores that their queue has no room for keep
 * the fills of the next result from their own. */
static double store_waits(const struct pricing *c) {
    const struct stream *d = &c->drain;
    double behind = d->issues - (d->trips > 1 ? pipe_room(c, d->queue) : INFINITY);
    if (behind <= 0) return 0;
    return (d->trips - 1) * fmax(0, behind * d->cycles / d->issues - pipe_returned(c));
}

/* Where stores are what takes longest, they are held up too: the next result's fills are not issued
 * before the queue of stores has room for all that is before them in the program. Cycles of the
 * stores with what they wait so for fills, the instructions of a result and its way out. */
static double stores_paced(const struct pricing *c, double exec) {
    const struct stream *d = &c->drain;
    double room = pipe_room(c, d->queue), between = 0, waits = 0;
    if (d->trips <= 1 || isinf(room)) return 0;
    double entries = d->issues + (told(c, d->user, d->queue) && d->issues > 1 ? SIGNALS : 0);
    double all = c->queue[d->queue], step = all / d->trips, ahead = room / entries,
           whole = floor(ahead), rest = 1 - (ahead - whole);
    for (int i = 0; i < c->nfills; i++) {
        const struct stream *f = &c->fill[i];
        if (f->queue == d->queue) return 0;
        if (f->trips >= d->trips) between += f->cycles + f->latency;
    }
    between += exec / d->trips;
    if (c->leaves.queue != d->queue) between += c->leaves.cycles + c->leaves.latency;
    for (int i = 0; i < c->nfills; i++) {
        const struct stream *f = &c->fill[i];
        if (f->trips >= d->trips) continue;
        waits += (f->trips - 1) * fmax(0, f->cycles + f->latency + between - ahead * step);
    }
    double period = (rest * step + between) / (whole + 1);
    return all + waits + (d->trips - 1) * fmax(0, period - step);
}

/* While the instructions wait for fills anyhow, `waits`, the bus has time for stores: with these,
 * all takes no longer than one fill or store after the other. */
static double bus_spared(const struct pricing *c, double exec, double waits) {
    const struct stream *d = &c->drain;
    double *bus = &c->plan->price[PRICE_BUS], turns = c->queue[d->queue];
    uint64_t seen = 0;
    if (d->trips <= 0 || d->bus < 0 || *bus <= 0) return 0;
    for (int i = 0; i < c->nfills; i++) {
        const struct stream *f = &c->fill[i];
        if (f->bus == d->bus && f->queue != d->queue && !(seen >> f->queue & 1))
            turns += c->queue[f->queue];
        seen |= UINT64_C(1) << f->queue;
    }
    double spared = fmin(fmin(*bus, fmax(0, waits - *bus)), fmax(0, exec + waits - turns));
    *bus -= spared;
    return spared;
}

double pipe_waits(struct pricing *c, const struct task *core) {
    double exec = c->queue[core->needle->in->queue], lead = 0, waits = c->bubble, latency = 0,
           whole = 0, taken = 0;
    uint64_t seen = 0;
    int flows = 0;
    struct flow f = {0};
    struct apart apart = apart_of(c);
    behind_forget(c);
    double lasting = 0; /* fills that shared loops do not repeat */
    for (int i = 0; i < c->nfills; i++)
        if (c->fill[i].depth < c->nest->nprefix) lasting += c->fill[i].cycles;
    for (int i = 0; i < c->nfills; i++) {
        if (seen >> c->fill[i].queue & 1) continue;
        seen |= UINT64_C(1) << c->fill[i].queue;
        f = flow_of(c, c->fill[i].queue);
        apart_flow(c, &apart, &f);
        f.ahead = ahead_of(c, core, &f);
        double before[PRICE_TERMS];
        memcpy(before, c->plan->price, sizeof before);
        whole = outer_queue_waits(c, &f, exec);
        apart_or_behind(c, &f, &apart, exec, before, &whole);
        latency = fmax(latency, f.latency);
        lead += f.first;
        taken = fmax(taken, f.total - f.first + pipe_bus_taken(c, &f));
        double here = whole + shared_waits(c, &f, exec);
        if (f.apart) apart.fills -= here * fmin(1, apart.times / f.steps);
        waits += here;
        flows++;
    }
    lead += latency;
    double slots = fmax(fmax(drain_waits(c, core, exec), pipe_long_fills(c, exec)), c->way - exec);
    waits += price_add(c, PRICE_SLOTS, fmax(0, slots - waits));
    waits += price_add(c, PRICE_BEHIND, store_waits(c));
    if (c->plan->parts) {
        bool tokens =
            flows == 1 &&
            edge_of_queue(c->w->edges, f.queue, core->needle->in->queue).kind != EDGE_FREE;
        choose_parts(c, tokens ? &f : NULL, exec, whole, &lead, &waits);
    }
    waits -= bus_spared(c, exec, waits);
    waits +=
        price_add(c, PRICE_BUS, fmax(0, fmax(taken, pipe_stores_held(c) - c->tail) - exec - waits));
    waits += price_add(c, PRICE_BEHIND, fmax(0, stores_paced(c, exec) - exec - waits));
    waits += price_add(c, PRICE_APART, apart.stores + fmax(0, apart.fills));
    c->plan->lead = lead - lasting;
    c->plan->tail = c->tail;
    double table = table_cycles(c, core);
    if (!isinf(table)) table = price_add(c, PRICE_TABLE, table);
    return price_add(c, PRICE_FIRST, lead) + c->tail + table + waits;
}
