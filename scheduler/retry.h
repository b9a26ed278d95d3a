/* One cover and its schedule; what is refused is mapped otherwise. */
#ifndef ISAMAP_SCHEDULER_RETRY_H
#define ISAMAP_SCHEDULER_RETRY_H

#include "scheduler/scheduler.h"

/* Covers that were scheduled: with the same options, and the same answers to what is asked beside covers, an equal one
 * leads to the same end. */
struct known_covers *covers_open(void);
void covers_forget(struct known_covers *);
void covers_close(struct known_covers *);

/* As scheduler_compile, with the prices of mappings as the mapper knows them. NULL also where an equal cover is known to lead to the end
 * (options.covers). */
struct schedule *schedule_mapped(const struct program *, const struct machine *, enum rewrite_effect floats, struct decider *,
                                 const struct scheduler_options *, struct cover **, struct diags *);

#endif
