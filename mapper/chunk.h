/* Recurrences whose steps only scale their states and add to them (linear attention, retention, state space models with
 * one decay for each head): several steps at once, as products. */
#ifndef ISAMAP_MAPPER_CHUNK_H
#define ISAMAP_MAPPER_CHUNK_H

#include "ir/choice.h"
#include "ir/program.h"
#include "machines/machine.h"
#include "mapper/mapper.h"

/* Of recurrences at the top level; where the length is open, of those that run forwards. Sums are made in another order: those of floats
 * where `floats` is REWRITE_REORDERS at least; in a stream of open length, whose cuts decide where chunks lie, REWRITE_ROUNDS. How many recurrences changed. Statements that fall away stay in program.stmt, named by no item. decider NULL: the cheapest way. */
int chunk_steps(struct program *, const struct rank_cycles *, enum rewrite_effect floats, struct decider *);

#endif
