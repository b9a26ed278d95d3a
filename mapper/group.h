/* Products of three and more factors under a sum, in an order in which an instruction of two operands can take the sum. */
#ifndef ISAMAP_MAPPER_GROUP_H
#define ISAMAP_MAPPER_GROUP_H

#include "ir/choice.h"
#include "ir/program.h"

struct needles;

/* A new program, the caller's, in which factors of sums are multiplied in another order or behind the sum, inside recurrences too; NULL:
 * nothing is to be gained. Sums of floats only if floats_too. decider NULL: the way with fewer multiplications. */
struct program *group_factors(const struct program *, const struct needles *, bool floats_too, struct decider *);

#endif
