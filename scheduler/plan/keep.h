/* Copies of which a part stays: rings and pinned ranges (partial.c). */
#ifndef ISAMAP_SCHEDULER_PLAN_KEEP_H
#define ISAMAP_SCHEDULER_PLAN_KEEP_H

#include "ir/program.h"

struct hold;
struct nest;
struct opnd;
struct plan;
struct region;
struct task;
struct work;

/* partial.c: copies of which a part stays. */
struct ring { /* in rows of the one dimension that the loop moves */
    int dim, axis;
    int64_t coef, step, window, overlap, all; /* of a tile: how far the next one is, its rows, those of
                                                 both; rows of all tiles */
};

/* Does loop[depth - 1] slide the operand's window? */
bool ring_find(const struct work *, const struct nest *, const struct plan *, const struct task *,
               const struct opnd *, const struct access *, int depth, struct ring *);
/* Must all that used it be done before it begins again, for it does not lie elsewhere? */
bool ring_waits(const struct work *, const struct nest *, const struct plan *, const struct task *,
                const struct opnd *, const struct access *, const struct hold *);
double ring_turns(const struct ring *, int64_t rows); /* pieces, on average, of windows that go round its end */

struct pin {          /* pieces: of what loop[middle..depth) walks, again in each iteration of loop[from..middle) */
    int from, middle;
    int64_t pieces;
};

bool pin_find(const struct work *, const struct nest *, const struct plan *, const struct opnd *,
              const struct access *, int depth, struct pin *);
int64_t pin_most(const struct pin *, int64_t room, int64_t bytes, int slots); /* pieces that may stay */
/* Of a slot; slots; bytes of all; elements moved in all. */
void hold_region(const struct work *, const struct plan *, const struct task *, const struct opnd *,
                 const struct access *, const struct hold *, struct region *);
int64_t hold_slots(const struct hold *);
int64_t hold_bytes(struct work *, const struct plan *, const struct task *, const struct opnd *,
                   const struct access *, const struct hold *);
double hold_traffic(const struct work *, const struct nest *, const struct plan *,
                    const struct task *, const struct opnd *, const struct access *,
                    const struct hold *);

#endif
