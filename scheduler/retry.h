/* One cover and its schedule; what is refused is mapped otherwise. */
#ifndef ISAMAP_SCHEDULER_RETRY_H
#define ISAMAP_SCHEDULER_RETRY_H

#include "scheduler/scheduler.h"

/* As scheduler_compile, with the prices of mappings as the mapper knows them. */
struct schedule *schedule_mapped(const struct program *, const struct machine *, enum rewrite_effect floats, struct decider *,
                                 const struct scheduler_options *, struct cover **, struct diags *);

#endif
