/* What a plan is estimated to take, all steps of its recurrences together. */
#ifndef ISAMAP_SCHEDULER_COST_H
#define ISAMAP_SCHEDULER_COST_H

struct nest;
struct work;

void cost_sum(struct work *); /* the schedule's cost, alone, host, host_rate */

/* Beside that, before groups are made: work.on_host, planned and alone of no nest so far, and with
 * one more, of which these are what its best plan and its instructions alone take. */
void cost_begin(struct work *);
void cost_plan(struct work *, const struct nest *, double cycles, double alone);

#endif
