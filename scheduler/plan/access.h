/* How the axes of a statement walk the dimensions of what it accesses. */
#ifndef ISAMAP_SCHEDULER_PLAN_ACCESS_H
#define ISAMAP_SCHEDULER_PLAN_ACCESS_H

#include "ir/program.h"

/* Of these axes the one that alone is the index of the dimension, from 0 in unit steps; -1: none of
 * them moves the index; -2: several do, or one does otherwise. */
int access_lone(const struct program *, const struct access *, int dim, uint64_t axes);
/* The one dimension that the axis moves, by *by elements in each step; -1: it moves none; -2:
 * several. */
int access_dim(const struct program *, const struct access *, int axis, int64_t *by);
/* Of these axes the first that moves the dimension; -1: none does. */
int access_mover(const struct program *, const struct access *, int dim, uint64_t axes);

#endif
