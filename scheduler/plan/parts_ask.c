/* Are copies filled whole, or in parts? A question to the approach (parts.c prices the parts). */
#include "scheduler/plan/moves.h"
#include "scheduler/plan/nest.h"
#include "scheduler/plan/tiling.h"
#include "scheduler/plan/plan.h"
#include "scheduler/plan/price.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/work.h"
#include <math.h>

void parts_ask(struct work *w, const struct moves *moves, struct nest *n) {
    static const char *const text[] = {"whole", "in parts", "in parts of an inner loop",
                                       "in parts of two inner loops", "a step ahead"};
    struct plan plan[PARTS_AHEAD + 1];
    struct candidate c[PARTS_AHEAD + 1];
    int count = 0;
    double least = INFINITY; /* that the clock said */
    if (n->core < 0 || n->plan.is_static || n->group || n->nprefix) return;
    for (int k = 0; k <= PARTS_AHEAD; k++) {
        plan[count] = n->plan;
        plan[count].tiling = NULL;
        plan[count].parts = k;
        if (!plan_price(w, moves, n, &plan[count])) continue;
        double cost = plan[count].cycles, cycles = -1;
        if (plan_worth_walking(&plan[count], cost, least))
            cycles = plan_simulated(w, moves, n, &plan[count]);
        if (cycles > 0) cost *= cycles / plan[count].predicted;
        if (cycles > 0) least = fmin(least, cost);
        c[count] = (struct candidate){text[k], cost, NULL};
        count++;
    }
    for (int k = 0; k < count; k++) /* what was not asked about is no better than the best */
        if (!isinf(least) && !plan_worth_walking(&plan[k], plan[k].cycles, least))
            c[k].cost = fmax(c[k].cost, least);
    if (count < 2) return;
    int answer = 0;
    for (int k = 1; k < count; k++)
        if (c[k].cost < c[answer].cost) answer = k;
    answer = work_ask(w, QUESTION_PARTS,
                      arena_printf(w->arena, "fills of statement %d", w->task[n->core].stmt), c,
                      count, answer);
    n->plan = plan[answer];
    struct text *t = w->options ? w->options->explain : NULL;
    for (int k = 0; t && k < count; k++)
        text_printf(t, "%s%s %.0f cycles%s", k ? ", " : "  fills ", c[k].text, c[k].cost,
                    k == answer ? " (taken)" : "");
    if (t) text_printf(t, "\n");
}
