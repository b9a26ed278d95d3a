/* Sums of a recurrence's body that need no step before them, made for all steps at once. */
#ifndef ISAMAP_MAPPER_LIFT_H
#define ISAMAP_MAPPER_LIFT_H

#include "ir/choice.h"
#include "ir/program.h"
#include "machines/machine.h"
#include "mapper/mapper.h"

/* Of recurrences whose length is known. Statements that fall away stay in program.stmt, named by no item (program_open
 * leaves them out). decider NULL: the cheaper way. */
void lift_sums(struct program *, const struct rank_cycles *, struct decider *);
/* Of those whose length is open: for a group of steps at once, inside a recurrence of the groups; the steps behind the last whole group
 * stay as they are. In a stream the caller's cuts say which these are: unless `floats` is REWRITE_ROUNDS at least, statements of both are
 * marked as alike (stmt.alike). How many recurrences changed. */
int lift_in_groups(struct program *, const struct rank_cycles *, enum rewrite_effect floats, struct decider *);
/* Do what must be alike the same instructions execute, with sums in the same order? */
bool cover_is_alike(const struct cover *);

#endif
