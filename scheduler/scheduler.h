/* The scheduler: from a cover to a schedule, with one rolled algorithm for registers, caches and scratchpads (docs/scheduling.md). It knows no
 * kind of machine: memories, moves, queues and syncs of the machine file drive it. */
#ifndef ISAMAP_SCHEDULER_SCHEDULER_H
#define ISAMAP_SCHEDULER_SCHEDULER_H

#include "ir/choice.h"
#include "mapper/mapper.h"
#include "scheduler/schedule/schedule.h"

struct lefts;
struct scheduler_options {
    int threads;                       /* instances of a counted unit to use at most; 0: all */
    int contexts; /* slots of a copy at most: 1 has nothing in flight; 0: as many as pay */
    int64_t steps;                     /* bound on plans evaluated; 0: default */
    bool plain;                        /* loop orders are those that are always tried: a trace fits other parameters of the machine too */
    struct text *explain;              /* candidates, their cost and what binds; or NULL */
    /* Where sums cannot be scheduled as they are mapped, this takes it down and there is no schedule, without a word; NULL: the fallback
     * executes them, with a warning. */
    struct refusals *refused;
    /* What the fallback executes instead of an instruction is added here; NULL: it is a warning for each statement. */
    struct lefts *left;
    bool strict;                       /* scheduler_compile: sums of products on the fallback of a machine with instructions for products are errors */
    /* Cycles of a schedule by a simulator that executes at most so many instructions, for the best plans of a nest; negative: not
     * known. Or NULL. */
    double (*simulate)(const struct schedule *, int64_t steps);
    void (*doing)(void *user, const char *phase); /* scheduler_compile says what it does; or NULL */
    void *user;
};

/* NULL after reporting. The schedule does not refer to the cover afterwards. */
struct schedule *scheduler_run(const struct cover *, const struct machine *, struct decider *,
                               const struct scheduler_options *, struct diags *);

/* Cover and schedule: what cannot be scheduled as it was mapped first is mapped otherwise, a few times (scheduler/retry.c). The caller owns
 * the cover too; `options` without `refused`. */
struct schedule *scheduler_compile(const struct program *, const struct machine *, enum rewrite_effect floats, struct decider *,
                                   const struct scheduler_options *, struct cover **, struct diags *);

#endif
