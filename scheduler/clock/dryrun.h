/* The yardstick of traffic (DESIGN §5.5): the schedule's instructions in their order, unrolled,
 * with copies moved just before they are used and evicted by next use (Belady 1966). What that
 * would move between the home memory and the others is what rolling is measured by. Knows the
 * schedule and the machine only. */
#ifndef ISAMAP_SCHEDULER_CLOCK_DRYRUN_H
#define ISAMAP_SCHEDULER_CLOCK_DRYRUN_H

#include "scheduler/schedule/schedule.h"

struct dryrun {
    double read, written; /* bytes, of the home memory */
    int64_t uses;         /* words used by instructions, one after the other */
};

/* False: instructions use more than `uses` elements, instances of a unit work in parallel, or copies
 * are made of copies. */
bool dryrun_traffic(const struct schedule *, int64_t uses, struct dryrun *);

#endif
