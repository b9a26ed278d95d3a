/* Busy cycles of queues and buses: what one instruction, and all of the core, add to them. */
#include "machines/needle.h"
#include "scheduler/plan/needs.h"
#include "scheduler/plan/price_int.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/tiling.h"

void charge(struct pricing *c, const struct instr *in, double times, double cycles, double bytes) {
    double width =
        (double)(c->w->m->queue[in->queue].width > 0 ? c->w->m->queue[in->queue].width : 1);
    c->queue[in->queue] += times * cycles / width;
    if (in->bus >= 0 && c->w->m->bus[in->bus].rate > 0)
        c->bus[in->bus] += bytes / c->w->m->bus[in->bus].rate;
}

double leaf_cycles(struct pricing *c, const struct task *t, double *issues) {
    struct tiling *known = c->plan->tiling;
    if (known && known->issues_known) {
        *issues = known->issues;
        c->spared = known->spared;
        return known->issue_cycles;
    }
    c->spared = 0;
    const struct needle *nd = t->needle;
    int64_t size[MAX_SIZES];
    double interval, overhead, n = 1, total = 0;
    int x = -1; /* the sized axis whose tails are summed exactly */
    for (int i = 0; i < nd->in->nranged; i++) size[i] = nd->size[i];
    for (int k = 0; k < nd->nx; k++) {
        if (nd->ranged[k] < 0) continue;
        size[nd->ranged[k]] =
            t->axis[k] < 0 ? nd->lo[k] : plan_tile(c->w, c->plan, t->axis[k], c->plan->nloops);
        if (t->axis[k] >= 0) x = k;
    }
    for (int a = 0; a < c->w->p->naxes; a++)
        if ((c->w->p->stmt[t->stmt].axes >> a & 1) && (x < 0 || a != t->axis[x]))
            n *= plan_tiles(c->w, c->plan, a, c->plan->nloops);
    struct sizes s = {{1}, {1}, 1};
    if (x >= 0) s = plan_sizes(c->w, c->plan, t->axis[x], c->plan->nloops);
    *issues = 0;
    for (int i = 0; i < s.n; i++) {
        if (x >= 0) size[nd->ranged[x]] = s.size[i];
        instr_times(c->w->m, nd->in, nd->bound, size, NULL, &interval, &overhead);
        total += (double)s.count[i] * (overhead + interval);
        c->spared += (double)s.count[i] * n * remain_each(c->w, t, size);
        *issues += (double)s.count[i] * n;
    }
    if (known) {
        known->issues_known = true;
        known->issues = *issues;
        known->issue_cycles = total * n;
        known->spared = c->spared;
    }
    return total * n;
}
