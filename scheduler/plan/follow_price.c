/* What instructions cost that change a result where it lies (follow.c). */
#include "scheduler/plan/attach.h"
#include "scheduler/plan/price.h"
#include "scheduler/plan/tiling.h"
#include "machines/needle.h"
#include "scheduler/plan/plan.h"
#include "scheduler/plan/price_int.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/geom.h"
#include "scheduler/plan/work.h"
#include <math.h>

int64_t follow_bytes(struct work *w, const struct plan *p, const struct opnd *result, int depth) {
    int64_t bytes = 0;
    for (const struct attachment *x = attached_at(result, CHANGES); x; x = attached_next(x)) {
        const struct task *t = &w->task[x->task];
        for (int k = 0; k < t->nops; k++) {
            const struct opnd *o = &t->op[k];
            struct region r;
            if (!follow_side(o)) continue;
            plan_region(w, p, t, &w->p->stmt[t->stmt].read[o->read], &o->geom, depth, &r);
            bytes += slot_bytes(w, o, &r);
        }
    }
    return bytes;
}

bool price_start(struct pricing *c, const struct task *t, const struct opnd *o,
                 const struct access *acc, int depth) {
    struct copy f = copy_price(c->w, c->moves, c->plan, t, o, acc, true, depth, 0);
    double trips = plan_trips(c->w, c->plan, depth);
    if (!f.in) return false;
    charge(c, f.in, trips, f.cycles, 0);
    if (f.in->blocking) c->bubble += price_add(c, PRICE_STARTS, trips * f.issues * f.latency);
    return true;
}

bool follow_price(struct pricing *c, const struct opnd *result, const struct hold *h) {
    struct work *w = c->w;
    double trips = plan_trips(w, c->plan, h->depth);
    for (const struct attachment *by = attached_at(result, CHANGES); by; by = attached_next(by)) {
        const struct task *t = &w->task[by->task];
        const struct stmt *st = &w->p->stmt[t->stmt];
        double interval, overhead, points = 1;
        for (int a = 0; a < w->p->naxes; a++)
            if (st->axes >> a & 1) points *= (double)w->p->axis[a].extent;
        for (int x = 0; x < t->needle->nx; x++)
            if (t->axis[x] >= 0) points /= (double)t->needle->hi[x];
        instr_times(w->m, t->needle->in, t->needle->bound, NULL, NULL, &interval, &overhead);
        charge(c, t->needle->in, 1, trips * overhead + ceil(points) * interval, 0);
        for (int k = 0; k < t->nops; k++) {
            const struct opnd *o = &t->op[k];
            if (follow_side(o) && !price_start(c, t, o, &st->read[o->read], h->depth)) return false;
        }
    }
    return true;
}
