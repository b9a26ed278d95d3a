/* One queue fills and stores, and tells of both by the same tokens: what fills and results wait for
 * each other, and whether results leave behind the next fills instead (behind.c). */
#include "scheduler/plan/graph.h"
#include "scheduler/plan/nest.h"
#include "scheduler/plan/plan.h"
#include "scheduler/plan/price.h"
#include "scheduler/plan/price_int.h"
#include "scheduler/plan/tiling.h"
#include "scheduler/plan/work.h"
#include <math.h>

bool tokens_shared(const struct pricing *c, const struct stream *f, int exec, int store) {
    const struct edges *all = c->w->edges;
    struct edge result[] = {edge_of_queue(all, exec, store), edge_of_queue(all, store, exec)},
                fill[] = {edge_of_queue(all, f->queue, f->user),
                          edge_of_queue(all, f->user, f->queue)};
    return edges_share(all, result, fill);
}

static bool fills_share(const struct pricing *c, const struct stream *f, const struct stream *d) {
    return f->user == d->user && tokens_shared(c, f, d->user, d->queue);
}

static struct apart way_apart(const struct pricing *c, const struct stream *d) {
    double fill = 0, latency = 0, results = plan_trips(c->w, c->plan, c->plan->depth_out);
    int deepest = -1;
    if (d->trips <= 1 || d->queue == d->user) return (struct apart){0};
    for (int i = 0; i < c->nfills; i++)
        if (fills_share(c, &c->fill[i], d) && c->fill[i].depth > deepest)
            deepest = c->fill[i].depth;
    if (deepest < 0) return (struct apart){0};
    bool lend = results_lend(c->w, c->nest, c->plan, deepest);
    double times = lend ? plan_trips(c->w, c->plan, deepest) : fmin(d->trips, results);
    for (int i = 0; i < c->nfills && deepest >= c->plan->depth_out; i++) {
        const struct stream *f = &c->fill[i];
        if (!fills_share(c, f, d) || f->trips * f->often < times) continue;
        fill += f->cycles;
        latency = fmax(latency, f->latency);
    }
    double stores = ((lend ? times : d->trips) - 1) * (d->cycles + d->latency);
    return (struct apart){d, stores, (times - 1) * (fill + latency), times};
}

struct apart apart_of(const struct pricing *c) {
    struct apart leaves = way_apart(c, &c->leaves), drain = way_apart(c, &c->drain);
    return leaves.stores + leaves.fills > drain.stores + drain.fills ? leaves : drain;
}

void apart_flow(const struct pricing *c, const struct apart *a, struct flow *f) {
    for (int i = 0; i < c->nfills && a->way; i++)
        f->apart |= c->fill[i].queue == f->queue && fills_share(c, &c->fill[i], a->way);
    if (f->apart && f->depth < c->plan->depth_out) f->slots = 1;
}

/* What a queue's fills and results wait for each other, beside what its fills are waited for
 * anyhow, `here`. */
static double waits_apart(const struct apart *a, const struct flow *f, double here) {
    return a->stores + fmax(0, a->fills - here * fmin(1, a->times / f->steps));
}

void apart_or_behind(struct pricing *c, struct flow *f, struct apart *a, double exec,
                     const double *before, double *whole) {
    double *price = c->plan->price, now[PRICE_TERMS];
    if (!f->apart || c->plan->parts > 0) return;
    memcpy(now, price, sizeof now);
    memcpy(price, before, sizeof now);
    double behind = behind_waits(c, f, exec);
    if (behind >= *whole + waits_apart(a, f, *whole)) {
        memcpy(price, now, sizeof now);
        return;
    }
    behind_choose(c, f);
    f->apart = false;
    *a = (struct apart){0};
    *whole = behind;
}
