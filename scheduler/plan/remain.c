/* What a plan saves where an instruction takes an operand that another one left in the unit
 * (emit/remain.c places them). */
#include "scheduler/plan/tiling.h"
#include "machines/needle.h"
#include "scheduler/plan/needs.h"
#include "scheduler/plan/plan.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/work.h"
#include <math.h>

/* Between plans that take equally long: that an operand is not read again counts a little. */
static const double LESS_READ = 0.002;

double remain_each(const struct work *w, const struct task *t, const int64_t *size) {
    const struct needle *nd = t->needle;
    double first, again;
    if (nd->again < 0 || t->op[nd->remaining].read < 0) return 0;
    instr_times(w->m, nd->in, nd->bound, size, NULL, &first, NULL);
    instr_times(w->m, &w->m->instr[nd->again], nd->bound, size, NULL, &again, NULL);
    return fmax(0, first - again + LESS_READ * first);
}

double remain_saving(const struct work *w, const struct task *t, const struct plan *p,
                     double issues, double spared) {
    const struct needle *nd = t->needle;
    struct tiling *known = p->tiling;
    if (nd->again < 0 || t->op[nd->remaining].read < 0 || issues <= 0) return 0;
    if (known && known->saved_known) return known->saved;
    const struct access *acc = &w->p->stmt[t->stmt].read[t->op[nd->remaining].read];
    double loads = plan_trips(w, p, plan_normalise(w, p, acc, p->nloops)),
           saved = spared * fmax(0, issues - loads) / issues;
    if (known) known->saved_known = true;
    if (known) known->saved = saved;
    return saved;
}
