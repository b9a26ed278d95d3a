/* What instructions need of states, operands that stay in a unit, banks: what the rest of the
 * scheduler asks of them. */
#ifndef ISAMAP_SCHEDULER_PLAN_NEEDS_H
#define ISAMAP_SCHEDULER_PLAN_NEEDS_H

#include "scheduler/plan/nest.h"
#include "scheduler/plan/plan.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/work.h"

struct edges;
struct moves;

/* needs_plan.c: states of a memory that lose its content when they change */
/* Sizes of reductions that decide such a state of the result's memory: all their tiles are equal.
 * False: none. */
bool needs_equal_tiles(const struct work *, const struct task *, const struct group *,
                       int64_t *fixed);
/* Does each word keep one value while a result of the nest is built? */
bool needs_keep(struct work *, const struct nest *, const struct plan *);
/* Cycles in which they change between whole tiles and tails. */
double needs_changes(const struct work *, const struct task *, const struct plan *);

/* needs.c */
enum { MAX_FIELDS = 16 }; /* of a state that is needed */
int need_operand(const struct instr *, const struct need *); /* whose word has the state; -1 */
/* A configure that sets this state alone, and that syncs order with the queue; -1. */
int state_setter(const struct edges *, int state, int queue);
/* Does a change of the state empty the memory that it belongs to? */
bool state_is_fragile(const struct edges *, const struct instr *, const struct need *);
/* Must the operand's copy have the sizes that the instruction is given? */
bool needs_exact(const struct edges *, const struct instr *, int operand);
const char *needs_why(const struct edges *, const struct instr *); /* its states cannot be set */
int remain_first(const struct machine *, int again); /* the instruction that leaves an operand where
                                                        `again` takes it; -1 */
int remain_again(const struct machine *, int first, int *operand);
/* remain.c: cycles that a plan spares where the operand is taken from the unit. */
double remain_each(const struct work *, const struct task *, const int64_t *size); /* of one issue that takes what is left */
double remain_saving(const struct work *, const struct task *, const struct plan *, double issues,
                     double spared); /* spared: if all issues took what is left */

/* banks.c: addresses of the core's holds, of so many bytes each, where rules keep operands in different banks; -1
 * for those that may stand anywhere. They stand behind copies that stay over all steps. False: no room. */
bool banks_plan(struct work *, const struct nest *, const int64_t *bytes, int64_t *address);
/* What these addresses leave free between the holds, added to what is used of each memory: other copies lie behind them. */
void banks_gaps(const struct work *, const struct nest *, const int64_t *bytes, const int64_t *address, int64_t *used);
/* Does a rule keep operands of a follower in different banks? */
bool banks_of_chain(const struct work *, const struct nest *);
/* Addresses of the chain's own copies [nchain][operand], with the fewest slots, in memories where such a rule
 * holds, from at[memory] on; others are left as they are. False: no room. */
bool banks_chain(struct work *, const struct moves *, const struct nest *, const struct plan *,
                 const int64_t *at, int64_t (*address)[MAX_OPERANDS]);
/* The same question alone, behind core[memory] bytes of the core's. */
bool banks_chain_fits(struct work *, const struct moves *, const struct nest *,
                      const struct plan *, const int64_t *core);

#endif
