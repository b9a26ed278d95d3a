/* Sizes of an instruction that are chosen once for a task. */
#ifndef ISAMAP_SCHEDULER_PLAN_SIZES_H
#define ISAMAP_SCHEDULER_PLAN_SIZES_H

#include <stdbool.h>
#include <stdint.h>

struct group;
struct mapping;
struct task;
struct work;

double sizes_rounded(int64_t extent, int64_t tile); /* padded to whole tiles, over the extent */
/* Cycles for each step of the needle's axis where tiles are so long, over those where they are as
 * long as may be: what issues cost that no loop of the machine's own repeats. */
double sizes_short(const struct work *, const struct task *, int x, int64_t tile);

/* Each fills in what it fixes, by the numbers of ranged sizes; false: nothing. */
bool sizes_steps(const struct work *, const struct task *, int64_t *fixed);
bool sizes_idle(const struct task *, const struct mapping *, int64_t *fixed);
bool sizes_dense(struct work *, struct task *, const struct group *, int64_t *fixed);

#endif
