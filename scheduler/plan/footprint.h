/* What the statements read and write at a depth of a plan's loops. */
#ifndef ISAMAP_SCHEDULER_PLAN_FOOTPRINT_H
#define ISAMAP_SCHEDULER_PLAN_FOOTPRINT_H

#include "ir/program.h"

struct geom;
struct opnd;
struct plan;
struct region;
struct task;
struct work;

/* footprint.c */
/* What an access touches in a tile of its statement's axes, tile[axis] long, that begins at 0. */
void tile_region(const struct work *, const struct stmt *, const struct access *,
                 const struct geom *, const int64_t *tile, struct region *);
void plan_region(const struct work *, const struct plan *, const struct task *,
                 const struct access *, const struct geom *, int depth,
                 struct region *); /* the first tile at this depth */
int plan_normalise(const struct work *, const struct plan *, const struct access *, int depth);
double plan_traffic(const struct work *, const struct plan *, const struct task *,
                    const struct access *, int depth); /* elements moved when refilled at this depth */
int64_t slot_bytes(struct work *, const struct opnd *, const struct region *);

#endif
