/* How far a stride that the schedule chooses may go. */
#ifndef ISAMAP_MACHINES_REACH_H
#define ISAMAP_MACHINES_REACH_H

#include "machines/machine.h"

/* Elements, at most, of the instruction's stride of that number; bound: its semantics with sizes. What the fields of its words say must
 * grow with the stride. */
int64_t stride_reach(const struct machine *, const struct instr *, const struct program *bound, int name);

#endif
