/* What a plan is estimated to take, all steps of its recurrences together. */
#ifndef ISAMAP_SCHEDULER_COST_H
#define ISAMAP_SCHEDULER_COST_H

struct work;

void cost_sum(struct work *); /* the schedule's cost, alone, host, host_rate */

#endif
