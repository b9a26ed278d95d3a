/* What the planner may ask the driver. */
#ifndef ISAMAP_SCHEDULER_FINALISTS_H
#define ISAMAP_SCHEDULER_FINALISTS_H

#include "scheduler/plan/moves.h"
#include "scheduler/plan/plan.h"
#include "scheduler/plan/work.h"

/* Cycles of the nest alone with this plan, by the options' simulator; negative: not known. */
double nest_time(const struct work *, const struct moves *, int nest, const struct plan *);

#endif
