/* How many slots a copy has. */
#ifndef ISAMAP_SCHEDULER_PLAN_SLOTS_H
#define ISAMAP_SCHEDULER_PLAN_SLOTS_H

#include "ir/program.h"
#include "machines/machine.h"

struct moves;
struct nest;
struct opnd;
struct plan;
struct region;
struct task;
struct work;

/* slots.c */
/* Of `most` slots so many that the syncs between the queue of a transfer and that of its user hold
 * an event for each. */
int slots_held(const struct machine *, const struct instr *transfer, const struct instr *user,
               int most);
int operand_slots(struct work *, const struct moves *, const struct plan *, const struct task *,
                  const struct opnd *, const struct access *, int depth, int most);
/* Of a chain's operand: what it needs, and as many as help and fit. */
int chain_slots_least(const struct work *, const struct moves *, const struct nest *,
                      const struct task *, const struct opnd *);
int chain_slots(struct work *, const struct moves *, const struct nest *, const struct plan *,
                const struct task *, const struct opnd *);
void chain_region(const struct work *, const struct plan *, const struct nest *,
                  const struct task *, const struct opnd *, struct region *); /* one grain */

#endif
