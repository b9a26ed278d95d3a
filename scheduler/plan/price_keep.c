/* What copies of which a part stays cost (partial.c). */
#include "scheduler/plan/price.h"
#include "scheduler/plan/tiling.h"
#include "machines/needle.h"
#include "scheduler/plan/plan.h"
#include "scheduler/plan/price_int.h"
#include "scheduler/plan/task.h"
#include <string.h>

bool keeps_part(const struct hold *h) {
    return h->ring > 0 || h->pinned > 0;
}

/* A window's rows do not follow upon those of the next dimension: the ring has more. */
void price_rows(const struct pricing *c, const struct task *t, const struct opnd *o,
                const struct access *acc, const struct hold *h, struct copy *f) {
    struct plan window;
    window.nloops = h->depth;
    window.tiling = NULL;
    memcpy(window.loop, c->plan->loop, sizeof window.loop[0] * (size_t)h->depth);
    struct copy rows =
        copy_part_price(c->w, c->moves, c->plan, t, o, acc, h->depth - 1, h->fill_by, 0, &window);
    f->in = rows.in;
    f->issues = rows.issues;
    f->cycles = rows.cycles;
}

/* Where a ring goes round, tiles are cut: not those of unrolled loops, whose addresses are
 * constants.
 */
static bool cuts_unrolled(const struct pricing *c, int axis, int depth) {
    for (int i = depth; i < c->plan->nloops; i++)
        if (c->plan->loop[i].axis == axis && plan_trips(c->w, c->plan, i) > 1 &&
            loop_unrolled(c->w, c->nest, c->plan, i))
            return true;
    return false;
}

/* Windows that go round the end of a ring are computed in two turns. */
bool price_ring(struct pricing *c, const struct task *t, const struct opnd *o,
                const struct access *acc, const struct hold *h) {
    struct ring r;
    double issues, overhead;
    if (!ring_find(c->w, c->nest, c->plan, t, o, acc, h->depth, &r)) return false;
    if (h->ring >= r.all) return true;
    if (cuts_unrolled(c, r.axis, h->depth)) return false;
    for (int i = 0; i < t->nops; i++)
        if (i != (int)(o - t->op) && c->plan->hold[i].ring && t->op[i].where == IN_LOCAL)
            return false;
    leaf_cycles(c, t, &issues);
    instr_times(c->w->m, t->needle->in, t->needle->bound, NULL, NULL, NULL, &overhead);
    charge(c, t->needle->in,
           plan_entries(c->w, c->nest, c->plan, issues) * (ring_turns(&r, h->ring) - 1), overhead,
           0);
    return true;
}
