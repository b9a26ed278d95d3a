/* Sizes of the planner's arrays. */
#ifndef ISAMAP_SCHEDULER_PLAN_LIMITS_H
#define ISAMAP_SCHEDULER_PLAN_LIMITS_H

enum {
    MAX_COORDS = 34,
    MAX_OPERANDS = 12,
    MAX_LOOPS = 48,
    MAX_MEMORIES = 64,
    MAX_QUEUES = 64,
    MAX_BUSES = 32,
    MAX_PREFIX = 4,
    MAX_VIA = 3,
    MAX_OUTWARD = 32, /* steps that are remembered of one plan */
    /* Of a search: a shape begins with the axes that have most values, once each; others stay whole
     * above the needle. All axes together are in the loops of a plan, and a group's. */
    MAX_CUT = 16,
    MAX_SHAPE = 20,
    MAX_SEARCH = MAX_LOOPS - MAX_PREFIX - MAX_SHAPE,
    MAX_TILED = MAX_SEARCH + MAX_PREFIX,
    COPY_SLOTS = 8, /* of one copy */
    PARTS_ANY = -1, PARTS_MOST = 3, PARTS_AHEAD /* plan.parts */
};

#endif
