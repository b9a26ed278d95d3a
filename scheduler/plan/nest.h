/* Nests: a reduction, or elementwise statements, with what shares their loops; groups of them, copies of the host in turns with them. */
#ifndef ISAMAP_SCHEDULER_PLAN_NEST_H
#define ISAMAP_SCHEDULER_PLAN_NEST_H

#include "ir/program.h"
#include "scheduler/plan/limits.h"
#include "scheduler/plan/plan.h"

struct homes;
struct moves;
struct opnd;
struct region;
struct task;
struct work;

/* Of a group's first nest: in each turn it makes `n` values of its axis, those that the reader's tile of the shared
 * axis reads, moved inside the extent: from clamp(step * first + offset, 0, extent - n) on. */
struct window {
    int axis, shared, turn; /* turn: stands for the turns in its plan; -1 until a plan is made */
    int64_t step, offset, reach, n; /* reach: values that one of the shared axis reads; n 0: all, not in turns */
    int64_t extent, slide;          /* of the axis; from turn to turn, on average */
};

struct chain_copy { /* of an operand of a follower; follower -1: none */
    int follower, operand;
};

/* An elementwise statement that follows what stands before it in the nest, grain by grain. */
struct follower {
    int task;
    bool leaves;  /* somebody outside the nest reads its result */
    uint32_t own; /* operands with copies of their own: nothing before it in the nest makes what they read */
    uint32_t whole; /* of these, those that are filled before the nest's loops (beside.c) */
    struct chain_copy over[MAX_OPERANDS]; /* the dead copy in whose place its own one lies, where both are as long */
};

struct grain { /* what followers take at once along an axis */
    int64_t least, fixed; /* of all; of those that take nothing else the most: 0: there are none */
    int64_t block; /* a multiple of it, or all: their copies hold blocks in which needles begin anywhere */
};

struct nest {
    int number; /* of work.nest */
    int core; /* task with a reduction; -1 */
    int init; /* task that starts the core's result; -1: the accumulate flag, or filled from home */
    struct follower *chain; /* [nchain] in order, of work.follower */
    int nchain;
    struct grain grain[MAX_AXES]; /* of the chain */
    bool registers; /* some operand of the chain lies where addresses are constants */
    int64_t grain_most; /* of the chain along axes whose extent is free; 0: as the needles say */
    bool way_single;    /* results have one slot, not two, in each memory on their way home */
    int first;          /* statement: the nest stands in its place */
    int group;          /* 1 + the group that it is in (groups.c); 0: none */
    bool leads;         /* the first nest of its group */
    uint64_t slid;      /* axes that windows of the group slide along */
    uint64_t summed;    /* axes of the prefix that a nest of the group sums over: no instances share them */
    int given;          /* the core's operand that is the tile of a tensor in the group; -1 */
    struct loop prefix[MAX_PREFIX]; /* loops that a group shares: the plans begin with them */
    int nprefix;
    struct window window[MAX_DIMS];
    int nwindows;
    int part_axis;     /* where part_n > 0 the nest does only [part_lo, part_lo + part_n) of it */
    int64_t part_lo, part_n;
    int next_part;        /* the nest that does the rest; -1 */
    uint32_t kept, asked; /* operands of the core whose copies stay over all steps; considered */
    bool is_grid; /* the prefix: tiles of the result, shared by instances of units */
    bool alone;   /* one instance does all: no plan of a grid was found, or none that is faster */
    int64_t reserved[MAX_MEMORIES]; /* bytes that are not the nest's: tiles, the holds of the group's others */
    int64_t steps;                  /* plans that its search may evaluate; 0: the default */
    struct feed feed[MAX_FEEDS];
    int nfeeds;
    struct plan plan;
};

/* Of a result, in each memory on its way home. */
static inline int way_slots(const struct nest *n) {
    return n->way_single ? 1 : 2;
}

/* grid.c */
bool grid_possible(const struct work *, const struct nest *); /* its tiles may be those of several instances */
void grid_decide(struct work *, const struct moves *, struct nest *);
void grid_leave(struct nest *); /* one instance does all, from now on */
const struct task *grid_task(const struct work *, const struct nest *); /* whose axes the tiles are of */
double grid_part(const struct work *, const struct nest *); /* of its time that it takes; 1: no grid */
int64_t grid_instances(const struct work *, const struct nest *); /* that work at once; 1: no grid */
bool grid_is_open(const struct work *, const struct nest *); /* there are as many instances as tiles */
bool grid_shares(const struct work *, const struct nest *, int memory); /* by all instances: copies there are whole */
bool grid_fills_before(const struct work *, const struct nest *); /* some copy is in such a memory */
int grid_units(const struct work *, const struct task *, int *unit); /* outermost first, at most MAX_PREFIX */

/* nests.c */
bool nests_make(struct work *, const struct moves *);
/* Its later statements begin a nest of their own, which reads from home what the earlier ones left
 * there; nests_make is due. False: it cannot be cut. */
bool nest_cut(struct work *, const struct nest *);
bool nest_unify(const struct work *, int maker, int core, int read,
                int *map); /* the core's axes to the maker's, as its read of the result says */
void nest_rename(struct work *, struct nest *, const int *map);

/* beside.c */
bool take_turns(const struct work *, int a, int b); /* queues: each hears from the other by tokens */
uint32_t beside_reads(const struct work *, const struct nest *, const struct task *); /* operands of a follower that nothing in the nest makes */
/* Of these, what another queue brings before the nest's loops. */
uint32_t beside_whole(struct work *, const struct moves *, const struct nest *, const struct task *);
/* May all of it come while the task follows the nest? `handed`: it must follow, and waits for each grain of what does not come whole. */
bool beside_comes(struct work *, const struct moves *, const struct nest *, const struct task *, bool handed);
bool beside_is_whole(const struct work *, const struct nest *, const struct task *, const struct opnd *);
void beside_region(const struct work *, const struct task *, const struct opnd *, struct region *); /* all of it */

/* nest.c */
int nest_chain_queue(const struct work *, const struct nest *); /* of what follows: the core's, or another that takes its results over (nests.c) */
int nest_head(const struct nest *);   /* task: the core, or the first of the chain */
int nest_ntasks(const struct nest *); /* the core, what starts it, the chain */
int nest_task(const struct nest *, int i);
int nest_place(const struct work *, const struct nest *, int task); /* in the chain; -1: it does not follow */
int nest_maker(const struct work *, const struct nest *, int buffer); /* task: the core, or a follower, that writes it; -1 */
double task_cost(const struct work *, int task); /* cycles of its instructions, as the mapper has it */
bool needs_home(const struct work *, const struct nest *,
                int buffer); /* somebody outside the nest reads it */
int64_t task_grain(const struct task *, int axis, bool *fixed); /* that its needle takes at once */
int64_t nest_grain(const struct nest *, int axis); /* of the chain along a program axis; 0: no chain */
/* Does the task `init` start the sums of `core` in its nest, where it stands just before it? It writes
 * the same tiles then. */
bool nest_starts(const struct work *, int init, int core);
/* Of the core's operand: does it begin with what is at home, that is what it reads, or sums that nothing here starts? */
bool nest_begins_at_home(const struct work *, const struct nest *, const struct opnd *);
int64_t nest_room(const struct work *, const struct nest *, int memory); /* bytes that it may use */
/* One queue makes a tile and reads it: it need not meet the others in between. */
bool nests_in_order(const struct work *, const struct nest *first, const struct nest *second);
bool chain_needs_hold(const struct nest *, int i, int operand); /* of its i-th follower: not made before it in the nest */

/* What a group executes in each turn of its shared loops, in order; `before` them all, once, what only
 * stands in between. */
struct member {
    int nest, stmt;       /* nest -1: the host's statement */
    bool before;
    int axis[MAX_PREFIX]; /* of the host's statement: what walks with the loops */
};
/* A tensor of which only a tile is there at a time. */
struct passed {
    int buffer, first, last; /* members that touch it, from the first to the last */
    int reader, given;       /* the member whose core's operand is the tile; -1 */
    bool bordered;
    int border;             /* buffer whose home holds zeros, from which its borders come; 0: it has none */
    int dim[MAX_PREFIX];    /* that each shared loop walks; -1 */
    int64_t at, bytes;      /* in its memory, beside what lives with it */
};
/* An argument of which each turn's part is asked for a turn before, by a member that reads it too. */
struct foreseen {
    int buffer, member;
    int64_t bytes; /* from one turn's part to the next one's */
    double cycles; /* of their queue that moves which ask take, in all turns */
};
struct nest_group {
    struct member *member;
    int first, n; /* first: part of the run (group_parts.c); n 0: all of it is in a larger one */
    struct loop prefix[MAX_PREFIX];
    int shared[MAX_PREFIX], nprefix; /* which of the axes that may be shared (group_int.h) */
    struct passed *passed;
    int npassed, cap_passed;
    struct foreseen *foreseen;
    int nforeseen;
    int cache; /* in which what is passed lies, where no reader holds it; -1 */
    int around; /* the outermost cache that the members' unit has alone; -1 */
    double turns, cycles;
    struct nest *nest;   /* of the parts, as planned in the group; until they are the work's own */
    struct arena plans;  /* where these are */
    struct homes *homes; /* of what is passed */
};

/* group_names.c */
void groups_rename(struct work *); /* before plans: nests that may become a group share names of axes */
int maker_result(const struct work *, const struct nest *); /* the buffer that its last statement writes */

/* groups.c */
bool groups_decide(struct work *, const struct moves *);

/* windows.c: turns of a group whose windows overlap */
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
/* Parts of an axis for the instances of the fallback's unit; false: one of them does all, which takes no longer. */
bool host_is_shared(const struct work *, int stmt, struct loop *part);
/* The fallback's cycles in those of the queue's clock. */
double host_in_cycles(const struct work *, int queue, double cycles);
/* Of a copy tile by tile, from cache to cache. cuts: a tile ends inside a block of a layout (host_cuts). */
double host_turns(const struct work *, int stmt, double turns, bool cuts);
bool host_cuts(const struct work *, int stmt, int axis, int64_t tile); /* tiles of so many values of the axis do */

/* feeds.c */
void feeds_decide(struct work *); /* questions; homes are not placed yet */
bool feeds_have(const struct work *, int stmt);
double feeds_cycles(const struct work *, int stmt); /* of the copy in turns */
bool host_copies(const struct work *, int stmt); /* the host only copies between two buffers, outside of recurrences */

/* share.c */
void unit_ask(struct work *, int nest); /* the nest is planned */

/* feeds.c */
const struct access *feed_access(const struct work *, const struct feed *); /* of the nest's buffer */
/* The copy's axis that walks with loop i of the nest, and in which dimension; -1: none does. */
int feed_axis(const struct work *, const struct nest *, const struct feed *, int i, int *dim);

#endif
