/* Sums of a recurrence's body that need no step before them, made for all steps at once. */
#ifndef ISAMAP_MAPPER_LIFT_H
#define ISAMAP_MAPPER_LIFT_H

#include "ir/choice.h"
#include "ir/program.h"
#include "machines/machine.h"

/* Of recurrences whose length is known. Statements that fall away stay in program.stmt, named by no item (program_open
 * leaves them out). decider NULL: the cheaper way. */
void lift_sums(struct program *, const struct rank_cycles *, struct decider *);

#endif
