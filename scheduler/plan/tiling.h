/* Tiles at each depth of a plan's loops, and what pricing remembers of them. */
#ifndef ISAMAP_SCHEDULER_PLAN_TILING_H
#define ISAMAP_SCHEDULER_PLAN_TILING_H

#include "ir/program.h"
#include "scheduler/plan/caches.h"
#include "scheduler/plan/copies.h"
#include "scheduler/plan/limits.h"
#include "scheduler/plan/plan.h"
#include "scheduler/plan/task.h"

struct nest;
struct work;

enum { MAX_TILED = 16 };

enum check { NEVER_EMPTY, WHOLE_BLOCKS, CHECKS };

/* Of one task's operands (copies: fills and drains by any move; checks of their tiles) and accesses (the result,
 * then reads) what was asked of each depth; bit d of a mask: depth d is known. Whatever the loops: along which
 * dimension an axis cuts an operand, 2 + it, 1: none, 0: not known. */
struct asked {
    const struct task *task;
    uint8_t cut[MAX_OPERANDS][MAX_AXES];
    uint64_t copied[2][MAX_OPERANDS], passed[MAX_OPERANDS], checked[CHECKS][MAX_OPERANDS],
        sound[CHECKS][MAX_OPERANDS];
    struct copy copy[2][MAX_OPERANDS][MAX_LOOPS + 1];
    double traffic[MAX_OPERANDS][MAX_LOOPS + 1];
};

/* What pricing asks again and again about one list of loops, computed once (tiling.c). */
struct tiling {
    int nloops, naxes, column[MAX_AXES]; /* column of a program axis; -1: in no loop */
    int64_t tile[MAX_LOOPS + 1][MAX_TILED],
        least[MAX_LOOPS + 1][MAX_TILED];    /* largest and smallest extent at a depth */
    double count[MAX_LOOPS + 1][MAX_TILED]; /* tiles at a depth */
    double trips[MAX_LOOPS + 1];
    bool issues_known, share_known;
    struct share share;
    int refills_of; /* 1 + the depth at which the result is complete; 0: not known */
    double issue_cycles, issues;
    struct refills refills[2]; /* on one instance, and shared */
    struct asked asked;
};

/* tiling.c: tiles at each depth of the loops */
struct sizes {
    int64_t size[8], count[8];
    int n;
}; /* a multiset of tile extents */

int64_t plan_tile(const struct work *, const struct plan *, int axis, int depth); /* largest */
int64_t plan_least(const struct work *, const struct plan *, int axis, int depth);
double plan_tiles(const struct work *, const struct plan *, int axis, int depth);
struct sizes plan_sizes(const struct work *, const struct plan *, int axis, int depth);
double plan_trips(const struct work *, const struct plan *, int depth);
/* Blocks into which reductions are cut outside of a depth: with more than one a result that is held
 * there leaves and returns. */
double plan_blocks(const struct work *, const struct plan *, const struct task *, int depth);
/* Unrolled, each iteration's fills inside know where they are in padding; then, or where addresses
 * must be constants, a loop is unrolled. */
bool loop_settles(const struct work *, const struct nest *, const struct plan *, int i);
bool loop_unrolled(const struct work *, const struct nest *, const struct plan *, int i);
void plan_tabulate(const struct work *, const struct task *, struct plan *, struct tiling *);

/* What was asked about this task's tiles, where the plan's loops are tabulated; NULL. */
static inline struct asked *plan_asked(const struct plan *p, const struct task *t) {
    struct tiling *k = p->tiling;
    return k && k->nloops == p->nloops && k->asked.task == t ? &k->asked : NULL;
}

#endif
