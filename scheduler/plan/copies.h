/* What copies cost, remembered. */
#ifndef ISAMAP_SCHEDULER_PLAN_COPIES_H
#define ISAMAP_SCHEDULER_PLAN_COPIES_H

#include "ir/program.h"
#include "machines/machine.h"

struct copies;
struct moves;
struct opnd;
struct plan;
struct task;
struct work;

struct copy {               /* one transfer between a hold and its home */
    const struct instr *in; /* NULL: no move does it */
    double issues, cycles, latency,
        elements; /* cycles: of the queue; elements, bytes: of the slot */
    int64_t bytes;
    int first; /* coordinate that lies next to the tile in an outer copy; 0: as listed */
};

/* copies.c */
struct copies *copies_new(struct work *); /* forgotten when a home or a geometry changes */
struct copy copy_price(struct work *, const struct moves *, const struct plan *,
                       const struct task *, const struct opnd *, const struct access *, bool fill,
                       int depth, int by);
/* A piece of what is filled at this depth, with `first` next to the tile: the tile inside all loops of `cut`. */
struct copy copy_part_price(struct work *, const struct moves *, const struct plan *,
                            const struct task *, const struct opnd *, const struct access *,
                            int depth, int by, int first, const struct plan *cut);

#endif
