/* Steps of decoupled queues: the fewest between two fills, the shorter last ones, the bus that a
 * store takes (SCHEDULING §3, §5). */
#include "scheduler/plan/tiling.h"
#include "scheduler/plan/plan.h"
#include "scheduler/plan/price_int.h"
#include "scheduler/plan/work.h"
#include <math.h>

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
    return (d->trips - 1) *
           fmax(0, fmax(first, last) + latency - (w->slots - 2) * step - pipe_returned(c));
}

double pipe_long_fills(const struct pricing *c, double exec) {
    const struct stream *d = &c->drain;
    double waits = 0;
    if (d->trips <= d->slots || d->bus < 0 || d->slots < 2 || c->leaves.queue != d->queue) return 0;
    for (int i = 0; i < c->nfills; i++) {
        const struct stream *f = &c->fill[i];
        if (f->bus != d->bus || f->queue == d->queue) continue;
        double late = f->busy / f->issues + d->cycles + d->latency,
               times = fmin(f->trips * f->often * f->issues, d->trips);
        waits += times * fmax(0, late - (d->slots - 1) * exec / d->trips);
    }
    return waits;
}

double pipe_returned(const struct pricing *c) {
    const struct stream *d = &c->leaves;
    return d->slots == 1 && d->trips > 1 ? d->cycles + d->latency : 0;
}

struct load { /* of a queue: its issues, the cycles of each that need the bus, and the others */
    double issues, busy, beside;
};

static struct load load_of(double times, const struct stream *s) {
    return (struct load){times * s->issues, s->busy / s->issues, (s->cycles - s->busy) / s->issues};
}

/* Heads of queues take turns: one that is ready waits for one issue of the other queue at most, of
 * which the time that it needs beside the bus itself is hidden. */
static double held_up(const struct load *a, const struct load *b) {
    return fmin(a->issues, b->issues) * fmax(0, b->busy - a->beside);
}

double pipe_bus_taken(const struct pricing *c, const struct flow *w) {
    const struct stream *d = &c->drain;
    struct load all = {0}, store;
    if (d->bus < 0 || d->queue == w->queue || d->issues <= 0) return 0;
    for (int i = 0; i < c->nfills; i++) {
        const struct stream *f = &c->fill[i];
        if (f->queue != w->queue || f->bus != d->bus) continue;
        struct load one = load_of(f->trips * f->often, f);
        all.issues += one.issues;
        all.beside += one.issues * one.beside;
    }
    if (all.issues <= 0) return 0;
    all.beside /= all.issues;
    store = load_of(d->trips, d);
    return held_up(&all, &store);
}

double pipe_stores_held(const struct pricing *c) {
    const struct stream *d = &c->drain;
    double held = 0;
    if (d->bus < 0 || d->issues <= 0) return 0;
    struct load store = load_of(d->trips, d);
    for (int i = 0; i < c->nfills; i++) {
        const struct stream *f = &c->fill[i];
        if (f->queue == d->queue || f->bus != d->bus) continue;
        struct load one = load_of(f->trips * f->often, f);
        held += held_up(&store, &one);
    }
    return c->queue[d->queue] + held;
}

double pipe_step(const struct flow *f, double step, double load, double begin) {
    double period = fmax(load, (step + begin + f->latency + f->seen) / f->slots);
    if (!isinf(f->ahead)) {
        double ahead = f->ahead + f->early, whole = floor(ahead), rest = 1 - (ahead - whole);
        period = fmax(period, (rest * step + begin + f->latency) / (whole + 1));
        period = fmax(period, f->held * load + fmax(0, 1 - f->ahead) * step);
    }
    return fmax(0, period - step);
}

double pipe_fill_signals(const struct pricing *c, int i) {
    const struct stream *f = &c->fill[i];
    bool first = true, last = true;
    for (int k = 0; k < c->nfills; k++) {
        if (k == i || !same_step(f, &c->fill[k])) continue;
        first &= k > i;
        last &= k < i;
    }
    return f->issues > 1 ? first + last : 0;
}

double pipe_room(const struct pricing *c, int queue) {
    int64_t depth = c->w->m->queue[queue].depth;
    return depth > 0 ? (double)depth : INFINITY;
}

double pipe_held(const struct pricing *c, const struct flow *f, double before) {
    double entries = before;
    for (int i = 0; i < c->nfills; i++)
        if (c->fill[i].queue == f->queue && c->fill[i].depth == f->depth)
            entries += c->fill[i].issues + pipe_fill_signals(c, i);
    return fmax(0, 1 - pipe_room(c, f->queue) / entries);
}

bool results_lend(const struct work *w, const struct nest *n, const struct plan *p, int depth) {
    const struct task *t = n->core >= 0 ? &w->task[n->core] : NULL;
    if (!t || n->nchain || n->group || n->nprefix || n->nfeeds || p->parts > 0) return false;
    int result = 0;
    for (int i = 0; i < t->nops; i++)
        if (t->op[i].writes && t->op[i].where == IN_LOCAL) result = p->hold[i].depth;
    return depth < result && plan_trips(w, p, result) > plan_trips(w, p, depth);
}
