/* What is the same in each step of a recurrence is made once, before the first. */
#ifndef ISAMAP_MAPPER_HOIST_H
#define ISAMAP_MAPPER_HOIST_H

#include "ir/program.h"

/* Of recurrences at the top level that may have several steps: temporaries that the step does not move and that are made of what no step
 * writes, and the products of such factors in sums of floats, where they have no more elements than one of them. `floats`: factors may
 * be multiplied in another order. True: some are. */
bool hoist_steady(struct program *, bool floats);

#endif
