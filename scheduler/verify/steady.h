/* Iterations that ask the same of the queues (steady.c), for the walk of their order. */
#ifndef ISAMAP_SCHEDULER_VERIFY_STEADY_H
#define ISAMAP_SCHEDULER_VERIFY_STEADY_H

#include "scheduler/verify/sym.h"

/* exact: [nplaces] bytes of the place are told apart, in the node that is walked. */
struct steady {
    struct sym sym; /* of it the variables and their ranges */
    bool *vague;    /* [nvars] of loops inside: only known not to move */
    const bool *exact;
    bool any_exact;
};

void steady_open(struct steady *, struct verify *, const bool *exact);
/* The value of a variable, from now on. */
void steady_at(struct steady *, int var, int64_t value);
/* All iterations of the loop from the value `from` of its variable to *last ask the same: the loops
 * in them run as often, whatever the outer loops' variables are now. *last may become less. */
bool steady_from(struct steady *, const struct loop_node *, int64_t from, int64_t *last);
#endif
