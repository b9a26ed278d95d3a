/* Products of a recurrence's body that read the same and differ in their weights alone (the gates of a cell), made as one. */
#ifndef ISAMAP_MAPPER_STACK_H
#define ISAMAP_MAPPER_STACK_H

#include "ir/choice.h"
#include "ir/program.h"
#include "machines/machine.h"

/* Statements that fall away stay in program.stmt, named by no item (program_open leaves them out). decider NULL: the
 * cheaper way. */
void stack_products(struct program *, const struct machine *, struct decider *);

#endif
