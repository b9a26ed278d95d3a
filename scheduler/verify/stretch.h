/* Who touched which bytes of a memory last, for the walk of the order of queues (order.c): stretches
 * of bytes that the same accesses touched, as few as there can be. */
#ifndef ISAMAP_SCHEDULER_VERIFY_STRETCH_H
#define ISAMAP_SCHEDULER_VERIFY_STRETCH_H

#include "scheduler/verify/pieces.h"

enum { MOST_STRETCHES = 1 << 16 };

/* From that byte to where the next one begins. Before the first one, and in the last one, which has
 * no end, nothing was touched. Neighbours differ. */
struct stretch {
    int64_t from;
    struct granule g;
};
struct stretches {
    struct stretch *at;
    int n, cap;
};

/* What an access does with what it finds from that byte on; false: no more is looked at. */
typedef bool stretch_visit(void *user, struct granule *, int64_t from);

/* One access. The pieces ascend and do not overlap. *steps: what it cost. False: a visit failed, or
 * there would be more stretches than are told apart. */
bool stretches_touch(struct stretches *, const struct piece *, int n, stretch_visit *, void *user, int64_t *steps);

/* Of each memory and state, none touched. To be freed. */
struct stretches *stretches_open(const struct verify *);
void stretches_forget(const struct verify *, struct stretches *);
void stretches_free(const struct verify *, struct stretches *);
#endif
