/* Launches: what of a section a device is given at once, where a machine file's units are the blocks of a grid and their threads. By rule,
 * so that whoever writes the code and whoever counts what a launch takes mean the same (docs/backends.md, "Kernels"). */
#ifndef ISAMAP_SCHEDULER_SCHEDULE_LAUNCHES_H
#define ISAMAP_SCHEDULER_SCHEDULE_LAUNCHES_H

#include "scheduler/schedule/schedule.h"

/* How a unit's instances are numbered: by blocks of the grid, by threads of a block, or not (there is one). */
enum spread { SPREAD_NONE, SPREAD_BLOCKS, SPREAD_THREADS };
enum spread unit_spread(const struct machine *, int unit);
bool loop_over_blocks(const struct machine *, const struct loop_node *);
/* A barrier at which blocks meet: the end of a launch. */
bool sync_ends_launch(const struct machine *, int sync);
bool node_begins_launch(const struct machine *, const struct node *); /* it waits at such a barrier */

/* ---- of a section's nodes, or of those in a loop of the host (launches.c) ---- */
enum launch_kind {
    LAUNCH_NONE,    /* the host turns slots, or queues wait that a launch's end makes wait */
    LAUNCH_SIGNALS, /* queues of a block wait for one another and do nothing else */
    LAUNCH_LOOP,    /* a loop that the host makes, around launches */
    LAUNCH_ONE,
    LAUNCH_GRID /* a parallel loop over blocks: one launch, or one for each of its parts */
};
/* How many of the nodes go together, and as what. */
int launch_next(const struct schedule *, const struct node *, int n, enum launch_kind *);
/* How many there are in the section: at the largest sizes. */
double section_launches(const struct schedule *, const struct section *);
/* How many nodes of the loop's body, from this one on, are the next part. */
int launch_part(const struct schedule *, const struct loop_node *, int from);
bool launch_hosted(const struct schedule *, const struct node *); /* the host does it */
/* Statements of few points, and loops around such alone: one block is enough. */
bool launch_is_small(const struct schedule *, const struct node *);

/* What the nodes do first with the place; where it depends on a condition, they read. */
enum first_touch { FIRST_NONE, FIRST_WRITE, FIRST_READ };
enum first_touch nodes_first_touch(const struct schedule *, const struct node *, int n, int place);

/* ---- statements of the fallback (dealt.c) ---- */
int64_t part_length(int64_t extent, const struct sx *lo, const struct sx *hi); /* of a part of an axis; where that is not plain, the extent */
/* Points of a part of the statement: of all its axes, or of those alone that move the destination. */
int64_t fallback_points(const struct schedule *, const struct fallback_node *, bool all);
/* Axes whose points anybody may execute in any order: they come first in `order`, of n; returns how many. */
int stmt_deal(const struct schedule *, const struct stmt *, int *order, int n);
/* The points of the statement may be those of the n before it, dealt to the same threads. */
bool launch_goes_along(const struct schedule *, const struct node *, int n, const struct node *next);

#endif
