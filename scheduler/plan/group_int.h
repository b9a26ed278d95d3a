/* Groups while they are looked for (groups.c): the parts of the run in their order, and drafts, of
 * which the search keeps the cheapest. */
#ifndef ISAMAP_SCHEDULER_PLAN_GROUP_INT_H
#define ISAMAP_SCHEDULER_PLAN_GROUP_INT_H

#include "scheduler/plan/limits.h"
#include "scheduler/plan/nest.h"
#include "scheduler/plan/plan.h"
#include "scheduler/plan/work.h"

struct run_part { /* what the run executes as a whole: a nest, or a statement of the host (nest -1) */
    int nest, stmt;
};
struct touch { /* an access of a member */
    int member, stmt, buffer;
    const struct access *access;
    bool write;
};
/* An axis that all members walk: axis[i] in member i. The first one may make windows. */
struct shared_axis {
    int *axis;
    int64_t extent, quantum; /* tiles are multiples of the quantum, or all */
    struct window window;    /* axis -1: the first member walks it as the others do */
    int slid, dim;           /* else: the tensor, and its dimension, over which the window slides */
};
/* A nest's plan inside shared loops: drafts ask for the same one again. */
struct known_plan {
    const struct known_plan *next;
    struct loop prefix[MAX_PREFIX];
    int nprefix, given;
    uint64_t homes; /* what the homes of its tensors are, in one number */
    uint64_t slid, summed;
    int64_t reserved[MAX_MEMORIES], grain_most;
    bool way_single, ok;
    struct plan plan;
};
struct draft {
    const struct run_part *part;
    const int *part_of; /* of each statement; -1 */
    int first, last; /* parts of the range, numbered from 0 here; */
    bool *in;        /* those that are members: the others go before them */
    struct touch *touch;
    int ntouches, cap_touches;
    int buffer; /* the tensor for whose sake the group is considered */
    bool own;   /* its tile would be what the reader holds, and be filled by who makes it */
    struct shared_axis shared[MAX_DIMS];
    int nshared, nkept; /* those that no member sums over, nkept, come first */
    const struct known_plan **known; /* of each nest */
    struct work as;    /* the work, with the draft's homes */
    struct nest *nest; /* of the parts, with the draft's plans; NULL: as they are by themselves */
    const char *why;                 /* what speaks against it */
};

/* All of the search. */
struct turn { /* an axis for the turns of a nest's windows */
    int nest, shared, axis;
};
struct grouping {
    struct work *w;
    const struct moves *moves;
    struct run_part *part;
    int nparts, cap_parts;
    int *part_of;      /* of each statement; -1 */
    int *group_of;     /* of each part; -1 */
    double *alone;     /* cycles of each part */
    const struct known_plan **known;
    struct arena drafts; /* what the groups that are considered for one tensor need, and only they */
    struct scheduler_options quiet; /* plans that are only tried are not told about */
    struct turn *turn;
    int nturns, cap_turns;
};
struct tensor { /* from the first part that touches it to the last */
    int buffer, first, last;
    double bytes;
    bool given; /* an argument that is only read: each turn's part of it comes from far away once */
};

/* group_parts.c */
void parts_find(struct grouping *);
int tensors_find(const struct grouping *, struct tensor *); /* temporaries between parts, most bytes first, then arguments that several read */
/* What becomes a group for its sake, if anything: with those that the tensor's parts are grouped with, and, if
 * `copies`, the host's copies that belong to them. NULL: it may be considered; otherwise why not. */
const char *tensor_range(const struct grouping *, const struct tensor *, bool copies, int *first, int *last);
bool copy_belongs(const struct grouping *, int part, int first, int last); /* it would turn with one of these */

/* group_touch.c */
void draft_touch(struct work *, struct draft *, int member); /* adds what it touches */
int touch_lone(const struct work *, const struct touch *, int dim); /* the axis that walks it alone, from 0 on; negative */
/* The dimension that the touch walks with this axis alone; -1. */
int touch_walks(const struct work *, const struct touch *, int axis);
bool draft_shares(const struct draft *, int buffer); /* a member writes what another touches */
const struct nest *draft_nest(const struct work *, const struct draft *, int member); /* NULL: the host's */
const struct nest *draft_first(const struct work *, const struct draft *); /* of its members; NULL: all the host's */
/* One core alone reads it, in an operand whose memory the schedule fills, and one member alone makes it. */
bool tile_own(const struct work *, const struct draft *, int buffer, int *reader, int *operand);
double touch_bytes(const struct work *, const struct touch *); /* that it touches in all turns */
/* Do the members' own caches hold what they pass to one another and this part of what a turn reads, with as much beside? */
bool touch_near(const struct work *, const struct draft *, const struct nest_group *, const struct touch *);

/* group_axes.c: around this tensor; false: d->why */
bool draft_make(const struct grouping *, struct draft *, int first, int last, int buffer);

/* group_tiles.c: which tensors stay in the group, and where; their homes are tiles from now on. */
bool group_tiles(struct work *, struct draft *, struct nest_group *);
int64_t group_room(const struct work *, const struct nest_group *, int memory); /* of all tiles */

/* group_ahead.c: what may be asked for ahead, from the draft's touch *at on; false: nothing more is. */
bool foreseen_next(const struct work *, const struct moves *, const struct draft *, const struct nest_group *, int *at,
                struct foreseen *);

/* group_price.c: cycles of a member in the group, or by itself (NULL); of the group, whose nests are
 * planned then (infinite: there is no plan). */
double part_cycles(const struct work *, const struct draft *, const struct nest_group *, int member);
bool group_fits(struct work *, struct draft *, struct nest_group *); /* a tile of these loops */
/* What it costs; infinite also where that is not less than the limit. */
double group_plan(struct work *, const struct moves *, struct draft *, struct nest_group *, double limit);
double part_least(const struct work *, const struct draft *, int member); /* if all it reads were near */

#endif
