/* What the planner may ask the driver. */
#ifndef ISAMAP_SCHEDULER_FINALISTS_H
#define ISAMAP_SCHEDULER_FINALISTS_H

#include "scheduler/plan/moves.h"
#include "scheduler/plan/plan.h"
#include "scheduler/plan/work.h"

/* Cycles of the nest alone with this plan, by the options' simulator, which executes at most *steps
 * instructions and leaves there how many it did; negative: not known. */
double nest_time(const struct work *, const struct moves *, const struct nest *,
                 const struct plan *, int64_t *steps);

#endif
