/* Transfers: part of a buffer between its home and a slot. */
#ifndef ISAMAP_SCHEDULER_PLAN_TRANSFER_H
#define ISAMAP_SCHEDULER_PLAN_TRANSFER_H

#include "ir/program.h"
#include "scheduler/plan/limits.h"
#include "scheduler/plan/val.h"

struct box;
struct coord;
struct geom;
struct moves;
struct opnd;
struct task;
struct work;

struct region { /* of a buffer: per dimension the first index (may lie before 0) and how many */
    struct val lo[MAX_DIMS], n[MAX_DIMS];
    int64_t pad_lo[MAX_DIMS],
        pad_hi[MAX_DIMS];   /* padding at most, where the access reads outside */
    struct val repeat;      /* rows that repeat (geom.repeat_axis) */
    bool partial[MAX_DIMS]; /* blocked dimension: one block of which only n are there */
};

struct slot {
    struct val stride[MAX_COORDS], elements;
    struct val base, back; /* elements from the place's slot on; to take away: turns of a ring */
};

/* Places along an outer coordinate. */
struct val coord_places(struct arena *, const struct geom *, const struct region *, struct coord);
struct slot slot_make(struct arena *, const struct geom *,
                      const struct region *); /* of the whole hold */
/* Where a tile begins anywhere in a padded dimension, or goes in steps, each one has its own padding. */
bool pads_inside(const struct geom *, const struct region *, int dim);
bool home_is_padded(const struct work *, int buffer, const struct geom *, int dim, bool write);
/* Elements from the home's start to the region's first real element; from the slot's start (of
 * `whole`) to the region's first. */
struct val home_offset(struct work *, int buffer, const struct geom *, const struct region *);
struct val slot_offset(struct arena *, const struct geom *, const struct slot *,
                       const struct region *whole, const struct region *part);
/* False: the home's layout does not have the needle's coordinates. */
bool box_make(struct work *, int buffer, const struct geom *, const struct slot *,
              const struct region *, bool fill, struct box *);
/* Padding of the access in each dimension over the statement's whole domain. */
void region_padding(const struct program *, const struct stmt *, const struct access *,
                    struct region *);
bool operand_fits(struct work *, const struct moves *, const struct task *, const struct opnd *,
                  bool write, const char **why);
const struct access *operand_sample(const struct work *, const struct task *, const struct opnd *,
                                    bool write, struct region *); /* a few tiles of it */
double operand_cost(struct work *, const struct moves *, int buffer, const struct opnd *,
                    const struct region *, bool write); /* queue cycles of copying them */
bool home_direct(struct work *, const struct task *, struct opnd *,
                 bool write); /* an operand used at its home */

#endif
