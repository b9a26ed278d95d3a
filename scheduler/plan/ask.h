/* Lines that nothing foresees are asked for some steps ahead of the sums. */
#ifndef ISAMAP_SCHEDULER_PLAN_ASK_H
#define ISAMAP_SCHEDULER_PLAN_ASK_H

#include "scheduler/plan/price.h"

/* In each step of the innermost loop that is not unrolled, for what one operand reads in it. */
struct ask {
    const struct move *by;
    int depth, into;    /* loops around the step; an operand whose copy is filled in each: the move writes over it behind its last use */
    int64_t steps, far; /* what the step reads that is so many further, so many bytes away */
    bool on;            /* the loop's next tile follows: the last steps of one ask for what the next one reads first */
    uint64_t first;     /* loops around the step (a mask): in the first turn of each lines come, in others they are near */
};

struct ask_lines { /* from the first element that a step reads on; the last loop is over lines of a row */
    int n;
    int64_t count[MAX_AXES + 1], stride[MAX_AXES + 1]; /* elements */
};

/* False: a move does not ask for it, or it goes on where it was. */
bool ask_make(const struct work *, const struct moves *, const struct nest *, const struct plan *,
              int operand, struct ask *);
/* Of tiles with these extents of the program's axes; false: some of them run backwards. */
bool ask_lines(const struct work *, const struct task *, const struct opnd *, const struct ask *,
               const int64_t *size, struct ask_lines *);
/* Operands for which the plan asks (a mask), charged to their queues; what that saves is taken from the n refills. */
uint64_t asks_charge(const struct work *, const struct moves *, const struct nest *,
                     const struct plan *, struct refills *, int n, double *queue);

#endif
