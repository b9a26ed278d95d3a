/* Inside the scheduler: what its files share. One compilation is a `struct work`: the program as
 * scheduled, tasks (mapped statements), homes, nests, and the schedule under construction.
 * docs/scheduling.md tells the algorithm. */
#ifndef ISAMAP_SCHEDULER_PLAN_WORK_H
#define ISAMAP_SCHEDULER_PLAN_WORK_H

#include <stdint.h>
#include "scheduler/scheduler.h"

enum {
    MAX_NEEDLE = 12,
    MAX_DIGITS = 16,
    MAX_COORDS = 34,
    MAX_OPERANDS = 8,
    MAX_CHAIN = 16,
    MAX_LOOPS = 48,
    MAX_SIZES = 16,
    MAX_MEMORIES = 64,
    MAX_QUEUES = 64,
    MAX_BUSES = 32,
    MAX_PREFIX = 4,
    MAX_VIA = 3,
    COPY_SLOTS = 8, /* of one copy */
    PARTS_ANY = -1, PARTS_MOST = 3 /* plan.parts */
};

struct work;
struct task;
struct opnd;
struct moves;
struct region;
struct slot;
struct copies;

/* uses.c: statements of the order that access a buffer. */
struct uses *uses_new(struct arena *);
const int *buffer_uses(const struct work *, int buffer, int *n);
bool buffer_prepared(const struct work *, int buffer); /* a constant, or copies of constants */
int result_axes(const struct work *, int stmt,
                int *axis); /* program axes of a result, outermost dimension first */

static inline int64_t round_up(int64_t v, int64_t to) {
    return (v + to - 1) / to * to;
}

/* ---- values: numbers that may depend on loop variables ---- */
struct val {
    const struct sx *x; /* NULL: the constant c */
    int64_t c;
    int64_t max; /* never exceeded; c for a constant */
};
struct val val_const(int64_t);
struct val val_var(struct arena *, int var, int64_t max);
const struct sx *val_sx(struct arena *, struct val);
struct val val_make(struct arena *, enum sx_op, struct val, struct val);
struct val val_add(struct arena *, struct val, struct val);
struct val val_scale(struct arena *, struct val, int64_t);
struct val val_mul(struct arena *, struct val, struct val);
struct val val_minus(struct arena *, struct val, struct val); /* what is common cancels */
struct val val_div(struct arena *, struct val, int64_t);      /* floor */
struct val val_ceil(struct arena *, struct val, int64_t);     /* rounded up quotient */
struct val val_blocks(struct arena *, struct val v, int64_t block,
                      struct val stride); /* v / block * stride, v a multiple of block */
bool val_same(struct val, struct val);    /* known to be equal */
static inline bool val_is(struct val v, int64_t c) {
    return !v.x && v.c == c;
}

/* ---- instructions as the scheduler sees them ---- */
struct needle {
    const struct instr *in;
    int instr;
    struct program *bound; /* semantics with every size at its largest (64 where unbounded) */
    int nx;
    int ranged[MAX_NEEDLE]; /* index into in->ranged of the size that axis x is; -1: a fixed extent
                             */
    int64_t lo[MAX_NEEDLE], hi[MAX_NEEDLE], step[MAX_NEEDLE];
    int64_t size[MAX_SIZES]; /* of those that no axis chooses */
    int again, remaining; /* the instruction that takes an operand which this one left in the unit,
                             and that operand; -1 */
    bool whole[MAX_NEEDLE]; /* blocked in a local memory: needles start at multiples of hi */
    int64_t entry_bytes;    /* of its loop with a table; 0: it has none */
    double entry_cycles;    /* to load one */
};

/* How one needle axis moves through an operand: offset += stride * (value / weight % extent);
 * elements. */
struct digit {
    int x;
    int64_t weight, extent, stride;
    int free_stride; /* index of a stride name, -1 */
    int64_t times;   /* that it goes in each step: 2 for y of y*2+r */
};
/* A fragment lies in the memories of several instances. Seen from here it is a whole: its digits are
 * those of the row-major operand, in strides of FRAGMENT elements that stand for no address. */
struct form {
    struct digit digit[MAX_DIGITS];
    int n;
    int layout;
    uint64_t fragment; /* two operands with the same one lie alike; 0: in one memory */
    int64_t share;     /* of a fragment: elements in each instance */
    const char *swizzle;
};
enum { FRAGMENT = 1 << 20 };

struct needle *needle_make(struct arena *, const struct machine *, int instr, struct diags *);
/* The same with some of the sizes chosen for good (0: not). NULL: not legal. */
struct needle *needle_fixed(struct arena *, const struct machine *, int instr, const int64_t *fixed,
                            struct diags *);
bool needle_dense(const struct needle *, int x); /* distances in some operand change with the size of the axis */
bool needle_reads_beside(const struct needle *, int operand); /* at constant distances too */
bool needle_reduces(const struct needle *, int x);
int64_t needle_leaf(const struct needle *, int x, int64_t tile); /* extent of the instructions of a tile */
int64_t needle_unit(const struct needle *, int x); /* what tiles of the axis are multiples of */
uint64_t form_fragment(const struct operand *, const struct layout *,
                       const struct buffer *, const int64_t *stride);
/* Strides of the places inside an instance, with sizes as in `bound`; none may be chosen. */
bool fragment_strides(const struct machine *, const struct needle *, int operand,
                      const struct program *bound, int64_t *out);
bool needle_form(const struct machine *, const struct needle *, int operand, int layout,
                 struct form *);
void instr_times(const struct machine *, const struct instr *, const struct program *bound,
                 const int64_t *size, double *latency, double *interval, double *overhead);

/* ---- coordinates: where an operand's elements are, inside a slot and at home ---- */
struct coord {
    int dim;          /* -1: the needle repeats (broadcast) */
    int64_t div, mod; /* index / div % mod; mod 0: no limit */
};
struct geom { /* innermost first */
    struct coord at[MAX_COORDS];
    int64_t stride[MAX_COORDS]; /* of the inner ones, in elements */
    int n, ninner; /* at[0..ninner): one needle tile, padded to whole words of the memory */
    int64_t block[MAX_DIMS]; /* 1: the dimension is not blocked */
    uint64_t loose;          /* bit d: at home, tiles along dimension d begin anywhere */
    int64_t room[MAX_DIMS];  /* of those, for what only whole tiles move: elements that the last one takes behind the end */
    int64_t grain[MAX_DIMS]; /* that a needle takes of a block: it may start at each such part */
    uint64_t fragment;       /* of the form */
    const char *swizzle;
    int64_t span, tile;      /* elements of one needle tile, without padding and with it */
    int row;                 /* coordinate along which needles may start anywhere; -1 */
    bool plain;              /* of a slot: dimension after dimension, the first coordinate's fastest */
    bool plain_home;         /* a home made for it is plain too, and so are copies on the way */
    uint64_t exact;  /* dimensions of which moves bring just what is there: a state tells sizes */
    uint64_t live;   /* of which the last tile reaches elements of the buffer that the access does not: no room for padding */
    int repeat_axis; /* the row does not move the buffer: rows repeat over this program axis; -1 */
};

struct home {    /* of a buffer: in the home memory, or where tiles of it pass between two nests */
    int memory;
    bool is_tile;            /* holds the elements from lo on, `extent` of them, and only inside a group */
    struct val lo[MAX_DIMS];
    int64_t border[MAX_DIMS]; /* of a tile: zeros before its elements, part of `extent` */
    bool packed; /* coordinates as in geom; otherwise row-major */
    struct coord at[MAX_COORDS]; /* innermost first */
    int64_t stride[MAX_COORDS];
    int n;
    int64_t *extent; /* rounded up where packed */
    int64_t elements;
    int64_t *fold; /* per dimension: tiles of so many indices lie over one another, the current one from `lo`; 0: not. NULL */
    int place;
    bool locked;   /* the layout is decided */
    bool prepared; /* written in the prepare section only */
};
/* home.c */
bool home_stride(const struct home *, int ndims, struct coord, int64_t *stride);
void home_pack(struct work *, int buffer, const struct geom *); /* gives it a blocked layout */
void home_run(struct home *, int ndims); /* strides and size from the order of coordinates and the extents */
struct layout *home_layout(struct work *, struct arena *, const struct home *, int ndims,
                           const char **text);
bool tile_stays(const struct work *, int buffer, int memory); /* no traffic between this memory and what it caches */
bool written_by_tasks(const struct work *, int buffer);
/* Does what the buffer's home holds beyond its elements not count where a reduction runs into it? */
bool padding_neutral(const struct work *, const struct task *, const struct opnd *, int buffer);

/* ---- tasks ---- */
struct route { /* memories that the schedule fills between home and the operand's own, from home on */
    int memory[MAX_VIA], n;
};
enum where { IN_IMM, IN_HOME, IN_LOCAL };
struct opnd {
    const struct operand *decl;
    int number; /* of instr.operand */
    enum where where;
    int memory;
    int read;                 /* what it reads: read of the statement; -1: nothing */
    bool writes, accumulates; /* result; reads its own old value */
    union value imm;
    struct form form;
    struct geom geom;
    struct route in, out; /* of what it reads, of what it writes */
    const struct opnd *from, *to; /* the operand in the next memory of these routes; NULL: at home */
    int alone_dim[MAX_NEEDLE]; /* buffer dimension made for a needle axis that stands alone; -1 */
    bool by_axes,
        expand; /* already a copy indexed by axes; by those too that do not move the buffer */
    const struct finish *finish; /* of a result: the move that computes while it brings it home; NULL */
    const struct finish *begin;  /* of a sum: the move that brings what it starts with; NULL */
    int repairs;
    bool handed;     /* what it reads never comes from home: it must follow who makes it (nests.c) */
    bool plain;      /* copies on the way in lie row by row, whatever the order in the operand's own memory */
    int64_t quantum; /* then: elements that rows are multiples of, so that they begin at words everywhere; 0 */
    int64_t align;  /* of its slots, where it is local: what instructions and moves ask for */
    bool zero_tail; /* a reduction axis of the needle reaches past the statement's: needs a padded
                       home */
};
static inline bool opnd_on_route(const struct opnd *o) {
    return o->in.n || o->out.n || o->from || o->to;
}
struct task {
    int stmt, init, item; /* item of the cover */
    struct needle *needle;
    int axis[MAX_NEEDLE];      /* program axis of needle axis x; -1 */
    const struct group *group; /* the cover's */
    struct opnd op[MAX_OPERANDS];
    int nops;
    uint64_t reductions; /* program axes that the result lacks */
    bool finishes;       /* by a move that computes: part of another task's nest (finish.c) */
    bool apart;          /* it follows nobody: what it followed did not fit with it */
    int after[MAX_CHAIN], nafter; /* tasks that change the result of this one where it lies (follow.c) */
};

/* rewrite.c: the program grows. Statements added are appended to w->p and placed in w->order by the
 * caller. */
int rewrite_axis(struct work *, const char *name, int64_t extent); /* -1: no room */
/* The same, or where there are many already one of this extent outside `used`. */
int rewrite_axis_apart(struct work *, const char *name, int64_t extent, uint64_t used);
int rewrite_buffer(struct work *, const char *name, enum type, enum role, int ndims,
                   const int64_t *extent);
int rewrite_copy(struct work *, struct access dst, struct access src, uint64_t axes);
struct access rewrite_access(struct work *, int buffer); /* all coefficients zero */
struct access *task_access(struct work *, const struct task *, const struct opnd *, bool write);
void access_range(const struct program *, const struct stmt *, const struct access *, int dim,
                  int64_t *lo, int64_t *hi);
const char *unique_name(struct work *, const char *base, const char *suffix);

/* order.c */
void rewrite_order(struct work *, int stmt,
                   int after);     /* after: a statement; -1: first; -2: last */
void rewrite_items(struct work *); /* program.item from w->order */

/* join.c */
bool join_begin(struct work *);
void join_finish(struct work *);
void join_drop(struct work *, int stmt); /* its statements are on their own again */
bool join_has(const struct work *, int stmt);
bool join_inner(const struct work *, int buffer); /* handed on inside an instruction: it needs no home */
void join_rename(struct work *, int stmt, const int *map);
void join_add_axis(struct work *, int at);
void join_issue(struct work *, struct issue_node *);
bool join_sizes(const struct work *, const struct task *, const struct mapping *, int64_t *fixed);

/* tasks.c */
bool tasks_make(struct work *);
bool geom_make(struct work *, const struct task *, struct opnd *);
void geom_tile(const struct work *, struct opnd *); /* whole words of the operand's memory */
bool pack_identity(struct work *, int task,
                   int operand); /* reads a copy in the layout the needle wants */
/* A temporary that is wanted in two layouts: those who write it write another one, a copy follows. */
bool pack_between(struct work *, int buffer);
/* Does one statement before `stmt` write all elements of the buffer? If not, a copy of the whole would read some that have no value. */
bool written_whole(const struct work *, int buffer, int stmt);
bool pack_argument(struct work *, struct access *, int stmt, const struct geom *); /* it reads a copy of the whole in this layout */
bool pack_whole(struct work *, int argument, int temporary,
                bool load); /* copies out at the end, in at the start */
bool pack_by_axes(struct work *, int task, int operand,
                  bool write); /* a temporary indexed by the axes themselves */

/* demote.c */
void task_demote(struct work *, int task, const char *why); /* the fallback runs it */
/* A schedule cannot be made with this statement as it is mapped. True: it can be mapped otherwise, and this cover is given up; stmt may be -1. */
bool task_refuse(struct work *, int stmt, const char *why);
void finish_drop(struct work *, struct task *, const char *why); /* what finishes, begins or follows it has to be executed otherwise */
void begin_drop(struct work *, struct task *, const char *why);
void follow_drop(struct work *, struct task *, const char *why);

/* layouts.c */
bool layouts_decide(struct work *, const struct moves *);
bool homes_place(struct work *);

/* ---- plans ---- */
struct loop {
    int axis;
    int64_t tile;
    enum loop_kind kind;
};
struct hold { /* of an operand of the core */
    int depth, slots;
    int64_t ring;   /* rows of a ring, which loop[depth - 1] moves on; `slots` tiles are there or coming; 0: none */
    int64_t pinned; /* pieces that stay, before the slots of the others; 0: none */
    int fill_by, drain_by; /* 1 + the move asked for; 0: the cheapest that fits */
};
/* Instances of the unit share the tiles of n axes (0: they do not): those of axis[k] go to parts[k]
 * of them, one more to some at most. */
struct share {
    int n, axis[2];
    int64_t tile[2], parts[2];
    double of[2], part; /* of each axis, and of the nest, which the busiest one has */
};
struct plan {
    struct loop loop[MAX_LOOPS];
    int nloops, depth_out; /* the result is complete at depth_out */
    struct hold hold[MAX_OPERANDS];
    struct hold via[MAX_OPERANDS][MAX_VIA]; /* of the outer copies on the operands' routes in */
    bool
        is_static; /* some hold has constant addresses: loops around it are unrolled, tails split */
    struct share share; /* of the unit's instances */
    double whole;       /* cycles were the nest not shared */
    double cycles, port, bytes; /* cycles: what is compared: `predicted`, and a little for what else is used */
    int parts; /* 0: holds are filled whole; otherwise 1 + loops inside the deepest at which they are, in parts;
                  PARTS_ANY: as is best, which pricing puts here */
    double alone; /* cycles in which the instructions run when nothing holds them up and issuing them is free */
    double predicted, lead, tail; /* lead, tail: before the first instruction of a turn and after its last, part of it */
    const char *bound;     /* what takes so long: id of a queue, bus or cache, or waits; NULL */
    struct tiling *tiling; /* of these loops, during the search; NULL */
};
enum { MAX_FEEDS = 4 };
struct feed { /* a copy by the host inside the nest's outermost loops, of what it reads or of its result (feeds.c) */
    int stmt, depth;
    bool after;
};
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

struct work {
    struct arena *arena; /* scratch, lives during the compilation */
    const struct machine *m;
    const struct cover *cover;
    struct decider *decider;
    const struct scheduler_options *options;
    struct diags *diags;
    bool refused; /* sums could be mapped otherwise: this cover is given up */
    int emitted;  /* the statement whose nest is being emitted */
    struct schedule *s;
    struct program *p; /* s->program */
    struct task *task;
    int ntasks;
    int *task_of; /* for each statement: its task; -1: fallback, -2: executed by another as its init
                   */
    struct home *home;  /* for each buffer */
    int *order, norder; /* statements in the order of execution */
    bool *in_prepare;   /* for each statement */
    int cap_buffers, cap_homes, cap_stmts, cap_tasks_of, cap_prepare, cap_order; /* rewrite.c */
    int cap_places;    /* of the schedule's */
    int changes;       /* of statements and what they access */
    struct uses *uses; /* of buffers (uses.c) */
    struct program **finishing; /* semantics of moves that finish results: freed at the end */
    int nfinishing, finishing_cap;
    struct nest *nest;
    int nnests;
    struct scope *scope; /* recurrences; their axes are the program's last */
    struct val *step;    /* [nscopes] while the tree is built: the value of the scope's axis */
    int nscopes;
    bool keep_nothing;
    int64_t (*kept_bytes)[MAX_MEMORIES]; /* [nscopes] copies that stay over all steps */
    int fallback;  /* machine.fallback; -1 */
    int64_t steps; /* plans evaluated */
    struct copies *copies; /* of the nest being planned; NULL */
    struct copies *copies_kept; /* the room for them */
    int64_t capacity[MAX_MEMORIES];
    uint64_t counts[MAX_QUEUES]; /* users for whom the syncs with the queue count tokens (counts_tokens) */
    /* The driver's answer: cycles of the nest alone with this plan, on the clock; negative: not known. */
    double (*time)(const struct work *, const struct moves *, int nest, const struct plan *);
    struct joined *joined; /* statements that one instruction executes (join.c) */
};

/* Of `many` slots those that the options allow. */
static inline int slots_most(const struct work *w, int many) {
    int most = w->options ? w->options->contexts : 0;
    return most > 0 && most < many ? most : many;
}

/* recur.c */
void recur_begin(struct work *);
uint64_t recur_axes(const struct work *, const struct stmt *); /* of the recurrences around it */
static inline uint64_t stmt_span(const struct work *w, const struct stmt *st) {
    return st->axes | recur_axes(w, st);
}
bool recur_moves(const struct work *, const struct stmt *,
                 const struct access *); /* its index depends on the step */
bool recur_carries(const struct work *, int buffer); /* from one step to the next */
int recur_child(const struct work *, int stmt,
                int scope); /* the scope directly inside `scope` that holds it, or `scope` (-1: none) */
/* The innermost recurrence around the statement in which a copy of what it reads must be made: 1 +
 * its number, 0 outside all. */
int recur_copy_scope(const struct work *, int stmt, const struct access *);
/* The statement after which a copy for `stmt` stands, directly inside that scope; -1: first. */
int recur_copy_after(const struct work *, int stmt, int scope);
/* recur_keep.c: which copies stay over all steps (a question to the approach). */
void recur_keep(struct work *, const struct moves *);
int recur_outermost(const struct work *, const struct nest *); /* recurrence around it; -1 */
/* Bytes of operand i of the core, whole; 0: it changes from step to step, or cannot stay. */
int64_t recur_bytes(struct work *, const struct nest *, int i);
bool recur_release(struct work *); /* nothing stays from now on; false: nothing did */
/* The axis of a nest that does a part of it is as long as the part, until the other call. */
int64_t part_open(struct work *, const struct nest *);
void part_close(struct work *, const struct nest *, int64_t extent);
void recur_start(const struct work *, const struct nest *, int64_t *at); /* addresses behind them */
const char *recur_check(const struct work *, const struct task *); /* why not */
/* grid.c */
void grid_decide(struct work *, const struct moves *, int nest);
int grid_units(const struct work *, const struct task *, int *unit); /* outermost first, at most MAX_PREFIX */

/* edges.c: how one queue learns what another has done. */
struct edge {
    enum { EDGE_NONE, EDGE_FREE, EDGE_TOKEN, EDGE_GROUP, EDGE_FENCE, EDGE_BARRIER } kind;
    int sync;
    int first; /* group on which the first queue waits for itself, before it gives; -1 */
    int from, to;
};
/* What `from` did with an instruction that completes at that sync (-1: at none), for `to`. */
struct edge edge_find(const struct machine *, int from, int completes, int to);
struct edge edge_of_queue(const struct machine *, int from, int to); /* whatever `from` did */
bool edge_rotates(const struct machine *, const struct edge *, int slots); /* a channel for each */
bool edge_holds(const struct machine *, const struct edge *, int slots);   /* so many are outstanding */
int64_t edge_objects(const struct machine *, int memory); /* bytes that syncs take of it */
/* align.c */
void operands_align(struct work *, const struct moves *);

/* graph.c */
int64_t graph_capacity(const struct machine *, int memory); /* usable bytes; INT64_MAX unlimited */
/* A queue of a device beside a host: work of the host's fallback, and its caches, cost it nothing. */
bool graph_apart(const struct machine *, int queue);
bool graph_is_static(const struct machine *, int memory);   /* addresses must be constants */
bool graph_holds(const struct machine *, int memory, enum type);
int64_t least_multiple(int64_t a, int64_t b); /* less than 1 counts as 1 */
int64_t graph_align(const struct machine *, const struct operand *, int memory,
                    const struct program *bound);
int graph_distance(const struct machine *, int from, int to,
                   int *next); /* hops over edges; next: queue after `from` */

/* ---- moves ---- */
struct side {
    enum { STRIDE_CONST, STRIDE_DENSE, STRIDE_FREE } kind;
    int64_t value;
    int name;
};
struct move_axis {
    int64_t fixed;           /* 0: ranged */
    int size, before, after; /* indices into instr.ranged; -1 */
    int part;                /* of a fixed axis: how much is data, with padding after it; -1: all */
    int64_t lo, hi, step, max_before, max_after;
    struct side from, to;
    int x; /* of the needle */
};
struct move {
    int instr;
    struct needle *needle;
    struct move_axis axis[MAX_NEEDLE]; /* innermost on the destination first */
    int naxes, from_operand, to_operand;
    uint64_t from_fragment, to_fragment; /* as in struct form */
    const char *from_swizzle, *to_swizzle;
    enum type type;
};
struct box_dim { /* innermost first */
    struct val extent, before,
        after;           /* extent of real data; padding around it (destination only) */
    struct val total;    /* their sum */
    struct val from, to; /* strides in elements of the buffer */
    int coord;           /* of the geometry */
    int64_t unit;        /* steps of that coordinate from one to the next */
    bool outside;        /* only loops around the move may walk it */
};
struct box {
    struct box_dim dim[MAX_COORDS];
    int n;
    enum type type;
    bool fill;         /* to the slot, else from it */
    bool apart;        /* dimensions stay apart */
    uint64_t fragment; /* of the slot */
    const char *swizzle;
};
struct fit { /* how a move copies a box */
    const struct move *move;
    int dim_of[MAX_NEEDLE];  /* box dimension of each move axis; -1 */
    struct box box;          /* merged and split */
    bool looped[MAX_COORDS]; /* dimensions that become loops around the issue */
    double issues, cycles;   /* issues; queue time of all of them */
};
struct moves {
    struct move *at;
    int n;
};
struct moves moves_find(struct work *);
/* A move that computes: from the rows of one operand, the others being constants, home. */
bool move_finishes(struct work *, int instr, int from_memory, struct move *);
bool move_begins(struct work *, int instr, int to_memory, struct move *); /* the other way: from rows at home */
/* finish.c */
struct finish {
    int task;
    struct move move;
};
bool finish_may(struct work *, const struct task *, const struct mapping *); /* the instruction is such a move */
void finishes_link(struct work *);                                      /* tasks that finish a reduction's result */
int finish_buffer(const struct work *, const struct finish *);          /* that it writes */
bool finish_box(struct work *, const struct opnd *, const struct slot *, const struct region *,
                struct box *, struct fit *);
bool finish_fits(struct work *, const struct task *, const struct opnd *, const char **why);
/* What the task's move executes, of the region; turn[i]: of the loop over dimension i of the box. */
void finish_issue(struct work *, int task, const struct opnd *, const struct fit *, const struct region *,
                  const struct val *turn, struct issue_node *);
/* begin.c */
bool begin_link(struct work *, int task); /* it starts a reduction's sums, as their move from home */
bool begin_box(struct work *, const struct opnd *, const struct slot *, const struct region *, struct box *, struct fit *);
bool begin_fits(struct work *, const struct task *, const struct opnd *);
bool begin_side(struct work *, int user, struct opnd *, int core); /* the same of what `user`, which follows core, reads */
bool begin_pack(struct work *, const struct opnd *);
struct val begin_offset(struct work *, const struct opnd *, const struct region *); /* elements, at home */
/* follow.c */
/* The reduction whose result the chain changes before `reader` has it in `buffer`; -1. */
int follow_core(struct work *, int buffer, int reader, int *chain, int *n);
void follow_keep(struct work *, int core, const int *chain, int n);
const char *follow_check(struct work *, struct task *core, bool *changed); /* layouts; why not */
bool follow_side(const struct opnd *); /* an operand beside the result, which it changes */
/* Of `by` (1 + move; 0: none) if it fits, the cheapest otherwise: a move between two memories (a cache counts as its backing memory) that copies the
 * box. */
bool fit_box(struct work *, const struct moves *, int by, int from_memory, int to_memory,
             const struct box *, struct fit *);

/* nests.c */
bool nests_make(struct work *, const struct moves *);
/* Its later statements begin a nest of their own, which reads from home what the earlier ones left
 * there; nests_make is due. False: it cannot be cut. */
bool nest_cut(struct work *, const struct nest *);
bool nest_unify(const struct work *, int maker, int core, int read,
                int *map); /* the core's axes to the maker's, as its read of the result says */
void nest_rename(struct work *, struct nest *, const int *map);

/* rename.c */
/* Renames the consumer's axes to the producer's, dimension by dimension: map[a'] = a. */
bool nest_axes(const struct work *, const struct access *made, uint64_t made_axes,
               const struct access *used, uint64_t used_axes, int *map);
void stmt_rename(struct program *, struct stmt *, const int *map);

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
double host_turns(const struct work *, int stmt, double turns); /* of a copy tile by tile, from cache to cache */

/* feeds.c */
void feeds_decide(struct work *); /* questions; homes are not placed yet */
bool feeds_have(const struct work *, int stmt);

/* search.c */
struct search;
struct search *nest_search(struct work *, const struct moves *,
                           int nest); /* of a nest with a core; NULL: nothing fits */
double nest_cost(const struct search *);
double nest_cost_again(struct search *); /* of the same plan's loops, homes being others now */
bool near_alone(const struct search *);  /* the best is hardly slower than the instructions by themselves */
void nest_decide(struct search *); /* asks; the nest has its plan then */
bool nest_plan(struct work *, const struct moves *, int nest);

/* share.c */
void unit_ask(struct work *, int nest); /* the nest is planned */

/* ---- transfers: part of a buffer between its home and a slot ---- */
struct region { /* of a buffer: per dimension the first index (may lie before 0) and how many */
    struct val lo[MAX_DIMS], n[MAX_DIMS];
    int64_t pad_lo[MAX_DIMS],
        pad_hi[MAX_DIMS];   /* padding at most, where the access reads outside */
    struct val repeat;      /* rows that repeat (geom.repeat_axis) */
    bool partial[MAX_DIMS]; /* blocked dimension: one block of which only n are there */
};
struct slot {
    struct val stride[MAX_COORDS], elements;
    struct val base, back; /* elements from the place's slot on; to take away: turns of a ring */
};
struct slot slot_make(struct arena *, const struct geom *,
                      const struct region *); /* of the whole hold */
bool home_is_padded(const struct work *, int buffer, const struct geom *, int dim, bool write);
/* Elements from the home's start to the region's first real element; from the slot's start (of
 * `whole`) to the region's first. */
struct val home_offset(struct work *, int buffer, const struct geom *, const struct region *);
struct val slot_offset(struct arena *, const struct geom *, const struct slot *,
                       const struct region *whole, const struct region *part);
/* False: the home's layout does not have the needle's coordinates. */
bool box_make(struct work *, int buffer, const struct geom *, const struct slot *,
              const struct region *, bool fill, struct box *);
/* Padding of the access in each dimension over the statement's whole domain. */
void region_padding(const struct program *, const struct stmt *, const struct access *,
                    struct region *);
bool operand_fits(struct work *, const struct moves *, const struct task *, const struct opnd *,
                  bool write, const char **why);
const struct access *operand_sample(const struct work *, const struct task *, const struct opnd *,
                                    bool write, struct region *); /* a few tiles of it */
double operand_cost(struct work *, const struct moves *, int buffer, const struct opnd *,
                    const struct region *, bool write); /* queue cycles of copying them */

/* routes.c */
struct opnd route_stop(const struct work *, const struct opnd *, const struct route *,
                       int k); /* the operand in the route's k-th memory; past the last: its own */
/* Between an outer copy and an inner one. */
bool box_between(const struct geom *outer, const struct slot *there, const struct geom *, const struct slot *here,
                 bool fill, const struct region *, struct arena *, enum type, struct box *);
bool route_leads(const struct work *, const struct moves *, const struct task *, const struct opnd *); /* from home, whatever fits */
/* Do moves fit if the copies between lie row by row? Then they do from now on. */
bool route_plain(struct work *, const struct moves *, const struct task *, struct opnd *);
/* The shortest route whose moves fit; false: *why. */
bool route_first(struct work *, const struct moves *, const struct task *, struct opnd *, bool write,
                 const char **why);
void routes_decide(struct work *, const struct moves *); /* a question where there are several */
void route_link(const struct work *, struct opnd *);     /* from and to, after routes and geom */
/* route_holds.c: holds in the memories of the routes, outwards while they fit and save traffic; adds to *bytes of
 * each memory. False: no room. */
bool route_holds(struct work *, const struct moves *, const struct nest *, struct plan *,
                 int64_t *bytes);
bool home_direct(struct work *, const struct task *, struct opnd *,
                 bool write); /* an operand used at its home */

#endif
