/* Nests: a reduction, or elementwise statements, with what shares their loops; pairs of nests, copies of the host in turns with them. */
#ifndef ISAMAP_SCHEDULER_PLAN_NEST_H
#define ISAMAP_SCHEDULER_PLAN_NEST_H

#include "ir/program.h"
#include "scheduler/plan/limits.h"
#include "scheduler/plan/plan.h"

struct moves;
struct opnd;
struct task;
struct work;

/* Of a leader: in each turn it makes `n` values of its axis, those that the follower's tile of the shared
 * axis reads, moved inside the extent: from clamp(step * first + offset, 0, extent - n) on. */
struct window {
    int axis, shared, turn; /* turn: stands for the turns in its plan; -1 until a plan is made */
    int64_t step, offset, reach, n; /* reach: values that one of the shared axis reads; n 0: all, not in turns */
    int64_t extent, slide;          /* of the axis; from turn to turn, on average */
};

struct nest {
    int core; /* task with a reduction; -1 */
    int init; /* task that starts the core's result; -1: the accumulate flag, or filled from home */
    int chain[MAX_CHAIN], nchain; /* elementwise tasks at the grain, in order */
    int64_t grain_most; /* of the chain along axes whose extent is free; 0: as the needles say */
    int first;          /* statement: the nest stands in its place */
    int partner;        /* the other nest of its pair (pairs.c); -1 */
    bool leads;         /* makes the tiles that its partner reads */
    int given;          /* of a follower's core: the operand that reads them */
    struct loop prefix[MAX_PREFIX]; /* loops that a pair shares: the plans begin with them */
    int nprefix;
    struct window window[MAX_DIMS];
    int nwindows;
    int border;    /* buffer whose home holds zeros, from which the tile's borders come; 0: it has none */
    int part_axis;     /* where part_n > 0 the nest does only [part_lo, part_lo + part_n) of it */
    int64_t part_lo, part_n;
    int next_part;        /* the nest that does the rest; -1 */
    uint32_t kept, asked; /* operands of the core whose copies stay over all steps; considered */
    bool is_grid; /* the prefix: tiles of the result, shared by instances of units */
    int64_t reserved[MAX_MEMORIES]; /* bytes that are not the nest's: the tile, the partner's holds */
    int64_t steps;                  /* plans that its search may evaluate; 0: the default */
    struct feed feed[MAX_FEEDS];
    int nfeeds;
    struct plan plan;
};

/* grid.c */
void grid_decide(struct work *, const struct moves *, int nest);
int grid_units(const struct work *, const struct task *, int *unit); /* outermost first, at most MAX_PREFIX */

/* nests.c */
bool nests_make(struct work *, const struct moves *);
/* Its later statements begin a nest of their own, which reads from home what the earlier ones left
 * there; nests_make is due. False: it cannot be cut. */
bool nest_cut(struct work *, const struct nest *);
bool nest_unify(const struct work *, int maker, int core, int read,
                int *map); /* the core's axes to the maker's, as its read of the result says */
void nest_rename(struct work *, struct nest *, const int *map);

/* nest.c */
bool needs_home(const struct work *, const struct nest *,
                int buffer); /* somebody outside the nest reads it */
int64_t task_grain(const struct task *, int axis, bool *fixed); /* that its needle takes at once */
int64_t nest_grain(const struct work *, const struct nest *,
                   int axis); /* of the chain along a program axis; 0: no chain */
int64_t nest_room(const struct work *, const struct nest *, int memory); /* bytes that it may use */
bool chain_needs_hold(const struct work *, const struct nest *, const struct task *,
                      const struct opnd *); /* not made in the nest */

/* pairs.c */
void pairs_rename(struct work *); /* before plans: nests that may become pairs share names of axes */
bool pairs_decide(struct work *, const struct moves *);
int maker_result(const struct work *, const struct nest *); /* the buffer that its last statement writes */
/* One queue makes the tile and reads it: it need not meet the others in between. */
bool pair_in_order(const struct work *, const struct nest *leader, const struct nest *follower);

/* windows.c: turns of a pair whose windows overlap */
bool window_find(const struct work *, const struct access *made, uint64_t made_axes, const struct task *reader,
                 const struct access *used, int dim, struct window *);
bool windows_map(struct work *, int maker, int core, int read, int *map); /* as nest_unify, but for windows */
/* The leader's prefix for that of the follower; false: nothing overlaps less than all. */
bool windows_prefix(struct work *, struct nest *leader, const struct loop *prefix, int n);
/* The leader's statements as its plan sees them, until the other call. */
struct stmt *windows_open(struct work *, const struct nest *);
void windows_close(struct work *, const struct nest *, const struct stmt *keep);
int windows_zeros(struct work *, const struct opnd *, int buffer); /* a buffer like the tile, never written; -1 */

/* host.c */
double host_cycles(const struct work *, int stmt); /* of a statement on the fallback */
/* The fallback's cycles in those of the queue's clock. */
double host_in_cycles(const struct work *, int queue, double cycles);
double host_turns(const struct work *, int stmt, double turns); /* of a copy tile by tile, from cache to cache */

/* feeds.c */
void feeds_decide(struct work *); /* questions; homes are not placed yet */
bool feeds_have(const struct work *, int stmt);

/* share.c */
void unit_ask(struct work *, int nest); /* the nest is planned */

/* feeds.c */
const struct access *feed_access(const struct work *, const struct feed *); /* of the nest's buffer */
/* The copy's axis that walks with loop i of the nest, and in which dimension; -1: none does. */
int feed_axis(const struct work *, const struct nest *, const struct feed *, int i, int *dim);

#endif
