/* From a plan to the schedule's tree: loops, moves, instructions, tokens and states. It decides
 * nothing. Called by the driver alone (scheduler/scheduler.c, scheduler/finalists.c). */
#ifndef ISAMAP_SCHEDULER_EMIT_EMIT_H
#define ISAMAP_SCHEDULER_EMIT_EMIT_H

#include <stdbool.h>

struct work;
struct moves;

/* Both sections of the schedule. False after reporting, or where a task is refused. */
bool schedule_emit(struct work *, const struct moves *);
/* The schedule runs this nest and nothing else; copies that stay over the steps of a recurrence are
 * taken to be there. False: it cannot be emitted. */
bool schedule_emit_nest(struct work *, const struct moves *, int nest);
/* number.c: at the very end, since nothing of the work knows the new numbers. */
void statements_number(struct work *);

#endif
