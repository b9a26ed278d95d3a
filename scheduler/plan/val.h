/* Numbers that may depend on loop variables. */
#ifndef ISAMAP_SCHEDULER_PLAN_VAL_H
#define ISAMAP_SCHEDULER_PLAN_VAL_H

#include "scheduler/schedule/schedule.h"

struct val {
    const struct sx *x; /* NULL: the constant c */
    int64_t c;
    int64_t max; /* never exceeded; c for a constant */
    int64_t min; /* never below; INT64_MIN: not known */
    int64_t of;  /* a multiple of it, where that is known of more than x tells; 0 */
};

struct val val_const(int64_t);
struct val val_var(struct arena *, int var, int64_t max);
const struct sx *val_sx(struct arena *, struct val);
struct val val_make(struct arena *, enum sx_op, struct val, struct val);
struct val val_add(struct arena *, struct val, struct val);
struct val val_scale(struct arena *, struct val, int64_t);
struct val val_mul(struct arena *, struct val, struct val);
struct val val_minus(struct arena *, struct val, struct val); /* what is common cancels */
struct val val_div(struct arena *, struct val, int64_t);      /* floor */
struct val val_ceil(struct arena *, struct val, int64_t);     /* rounded up quotient; 1 of 1 to k over k */
struct val val_blocks(struct arena *, struct val v, int64_t block,
                      struct val stride); /* v / block * stride, v a multiple of block */
int64_t val_multiple(struct val); /* of which it is known to be a multiple; 0: it is 0 */
bool val_same(struct val, struct val);    /* known to be equal */

static inline bool val_is(struct val v, int64_t c) {
    return !v.x && v.c == c;
}

#endif
