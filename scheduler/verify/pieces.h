/* What an operand of an issue touches in all iterations of the hardware loops around it (pieces.c). */
#ifndef ISAMAP_SCHEDULER_VERIFY_PIECES_H
#define ISAMAP_SCHEDULER_VERIFY_PIECES_H

#include "scheduler/verify/verify_int.h"

enum { MOST_PIECES = 512 };
struct piece { int64_t low, high; };   /* bytes; high is behind the last one */
struct pieces { struct piece at[MOST_PIECES]; int n; };

/* In ascending order, those that touch as one; more than are told apart as one that holds all. at: where the place's slot begins; h: NULL:
 * no loops; var: the loops' variables are changed, and put back to where they begin. */
void pieces_of(struct pieces *, int64_t at, const struct shape_operand *, const struct hardware *, const struct sx *offset, int64_t *var);

#endif
