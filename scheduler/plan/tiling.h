/* Tiles of a plan: how long they are at each depth of its loops, what operands and copies take of
 * them, which copies stay in part or are filled in parts, in how many slots, which loops the machine
 * runs. What pricing remembers of them. */
#ifndef ISAMAP_SCHEDULER_PLAN_TILING_H
#define ISAMAP_SCHEDULER_PLAN_TILING_H

#include "scheduler/plan/price.h"
#include "scheduler/plan/task.h"

struct edges;
struct footprint;

enum { MAX_LINES = 2, MAX_STOPS = MAX_OPERANDS };

enum check { NEVER_EMPTY, WHOLE_BLOCKS, CHECKS };

/* Of one task's operands (copies: fills and drains by any move, also of those on their routes; checks of their tiles)
 * and accesses (the result, then reads) what was asked of each depth; bit d of a mask: depth d is known. Whatever the loops: along which
 * dimension an axis cuts an operand, 2 + it, 1: none, 0: not known; which axes walk operands whose addresses must be
 * constants, and which of these are places of a window that leaves the buffer. */
struct asked {
    const struct task *task;
    const struct opnd *stop[MAX_STOPS]; /* nstops on the routes; what is asked of more is not remembered */
    int nstops;
    uint8_t cut[MAX_OPERANDS][MAX_AXES];
    uint64_t walks[MAX_OPERANDS], leaves[MAX_OPERANDS], all; /* all: in some of these */
    uint64_t copied[2][MAX_OPERANDS + MAX_STOPS], sized[MAX_OPERANDS + MAX_STOPS], passed[MAX_OPERANDS], checked[CHECKS][MAX_OPERANDS],
        sound[CHECKS][MAX_OPERANDS], printed[MAX_LINES][MAX_OPERANDS];
    double line[MAX_LINES]; /* bytes of a line in which footprints are counted (caches.c); 0: of none */
    struct copy copy[2][MAX_OPERANDS + MAX_STOPS][MAX_LOOPS + 1];
    int64_t bytes[MAX_OPERANDS + MAX_STOPS][MAX_LOOPS + 1]; /* of a copy's slot */
    double traffic[MAX_OPERANDS][MAX_LOOPS + 1];
    struct footprint *print[MAX_LINES][MAX_OPERANDS][MAX_LOOPS + 1];
};

/* What pricing asks again and again about one list of loops, computed once (tiling.c). */
struct tiling {
    int nloops, naxes, column[MAX_AXES]; /* column of a program axis; -1: in no loop */
    int64_t tile[MAX_LOOPS + 1][MAX_TILED],
        least[MAX_LOOPS + 1][MAX_TILED];    /* largest and smallest extent at a depth */
    double count[MAX_LOOPS + 1][MAX_TILED]; /* tiles at a depth */
    double trips[MAX_LOOPS + 1];
    bool issues_known, share_known, saved_known;
    bool fits; /* a plan of these loops does: of the others only those are priced that may be less */
    bool held; /* the copies of the last plan do */
    bool crowded; /* what is read at home stays in registers between the innermost loops (plan_passing) */
    struct share share; /* where these loops are unrolled */
    uint64_t share_unrolled;
    int refills_of; /* 1 + the depth at which the result is complete; 0: not known */
    double issue_cycles, issues, spared, saved; /* of these cycles: if each issue took what remains (remain_each); as the loops are (remain_saving) */
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
/* Registers that an operand read at home takes: in straight-line code the code generator keeps what
 * comes again, and so all that passes until then. */
double plan_passing(const struct work *, const struct nest *, const struct plan *,
                    const struct access *);
void plan_tabulate(const struct work *, const struct task *, struct plan *, struct tiling *);

/* The number of an access (0: the result, then reads); -1: it has none, or is one of too many. */
static inline int asked_access(const struct stmt *st, const struct access *acc) {
    bool reads = acc >= st->read && acc < st->read + st->nreads;
    int64_t i = reads ? acc - st->read + 1 : acc == &st->dst ? 0 : MAX_OPERANDS;
    return i < MAX_OPERANDS ? (int)i : -1;
}

/* What was asked about this task's tiles, where the plan's loops are tabulated; NULL. */
static inline struct asked *plan_asked(const struct plan *p, const struct task *t) {
    struct tiling *k = p->tiling;
    return k && k->nloops == p->nloops && k->asked.task == t ? &k->asked : NULL;
}

/* ---- what the statements read and write at a depth of a plan's loops ---- */

/* footprint.c */
/* Values of the axis from where a block of the operand begins, along these dimensions, to where another one does. */
int64_t blocks_along(const struct work *, const struct task *, const struct opnd *, int axis, uint64_t dims);
/* What an access touches in a tile of its statement's axes, tile[axis] long, that begins at 0. */
void tile_region(const struct work *, const struct stmt *, const struct access *,
                 const struct geom *, const int64_t *tile, struct region *);
/* Of the last tiles, where they are shorter; false: all are alike. */
bool last_region(const struct work *, const struct plan *, const struct task *, const struct access *,
                 const struct geom *, int depth, struct region *);
void plan_region(const struct work *, const struct plan *, const struct task *,
                 const struct access *, const struct geom *, int depth,
                 struct region *); /* the first tile at this depth */
int plan_normalise(const struct work *, const struct plan *, const struct access *, int depth);
double plan_traffic(const struct work *, const struct plan *, const struct task *,
                    const struct access *, int depth); /* elements moved when refilled at this depth */
int64_t slot_bytes(struct work *, const struct opnd *, const struct region *);

/* ---- loops that the machine runs itself, and the steps of queues ---- */

/* hardware.c */
void plan_arrange(const struct work *, const struct nest *, struct plan *);
/* Entries of the queue that so many issues are, the machine running the loops that it can. */
double plan_entries(const struct work *, const struct nest *, const struct plan *, double issues);
/* Loops inside all holds that plan_arrange leaves to the program, reductions all; at most 2, outermost first. */
int plan_plain(const struct work *, const struct nest *, const struct plan *, int *axis);
/* Entries of the machine's table that tell the addresses of all issues. */
double table_entries(const struct work *, const struct nest *, const struct plan *);

/* flow.c */
/* Fills and results that tell by the same tokens: do results keep their credits between two of these fills, the deepest of which
 * stand at this depth, whole? */
bool results_lend(const struct work *, const struct nest *, const struct plan *, int depth);
/* May they instead leave behind the fills of the next one, which stand at the depth of the result and a step ahead? `fills`: their queue, which stores too; `user`:
 * that for which it fills, and which brings the results to where they are stored from. */
bool results_behind(const struct work *, const struct nest *, const struct plan *, int depth, int fills, int user);
/* Fewest iterations of the loops between two depths (SCHEDULING §5.2). */
double plan_least_inner(const struct work *, const struct plan *, int from, int to);

/* ---- how many slots a copy has ---- */

/* slots.c */
/* Of `most` slots so many that the syncs between the queue of a transfer and that of its user hold
 * an event for each. */
int slots_held(const struct edges *, const struct instr *transfer, const struct instr *user,
               int most);
int operand_slots(struct work *, const struct moves *, const struct plan *, const struct task *,
                  const struct opnd *, const struct access *, int depth, int most);
/* Of a chain's operand: what it needs, and as many as help and fit. */
int chain_slots_least(const struct work *, const struct moves *, const struct nest *,
                      const struct task *, const struct opnd *);
int chain_slots(struct work *, const struct moves *, const struct nest *, const struct plan *,
                const struct task *, const struct opnd *);
void chain_region(const struct work *, const struct plan *, const struct nest *,
                  const struct task *, const struct opnd *, struct region *); /* one grain */
/* What a copy on the way home of a chain's result holds: a grain, or all of a tile where the plan collects it. */
void chain_way_region(const struct work *, const struct plan *, const struct nest *,
                      const struct task *, const struct opnd *, struct region *);
/* Of a nest whose chain is complete: which results leave it, and which copies lie in place of dead ones. */
void chain_lives(struct work *, struct nest *);
/* In whose place the copy of the i-th follower's operand lies; follower -1: it has its own. */
struct chain_copy chain_takes_over(struct work *, const struct plan *, const struct nest *, int i, int operand);

/* ---- copies of which a part stays ---- */

/* partial.c: copies of which a part stays. */
struct ring { /* in rows of the one dimension that the loop moves */
    int dim, axis;
    int64_t coef, step, window, overlap, all; /* of a tile: how far the next one is, its rows, those of
                                                 both; rows of all tiles */
};

/* Does loop[depth - 1] slide the operand's window? */
bool ring_find(const struct work *, const struct nest *, const struct plan *, const struct task *,
               const struct opnd *, const struct access *, int depth, struct ring *);
/* Must all that used it be done before it begins again, for it does not lie elsewhere? */
bool ring_waits(const struct work *, const struct nest *, const struct plan *, const struct task *,
                const struct opnd *, const struct access *, const struct hold *);
double ring_turns(const struct ring *, int64_t rows); /* pieces, on average, of windows that go round its end */

struct pin {          /* pieces: of what loop[middle..depth) walks, again in each iteration of loop[from..middle) */
    int from, middle;
    int64_t pieces;
};

bool pin_find(const struct work *, const struct nest *, const struct plan *, const struct opnd *,
              const struct access *, int depth, struct pin *);
int64_t pin_most(const struct pin *, int64_t room, int64_t bytes, int slots); /* pieces that may stay */
/* Of a slot; bytes of all slots; elements moved in all. */
void hold_region(const struct work *, const struct plan *, const struct task *, const struct opnd *,
                 const struct access *, const struct hold *, struct region *);
int64_t hold_bytes(struct work *, const struct plan *, const struct task *, const struct opnd *,
                   const struct access *, const struct hold *);
double hold_traffic(const struct work *, const struct nest *, const struct plan *,
                    const struct task *, const struct opnd *, const struct access *,
                    const struct hold *);

/* ---- fills in parts ---- */

/* parts.c */
/* Do the tiles of the loops in [from, to) along an axis cut the operand's copy in pieces that share nothing? */
bool cut_axis(const struct work *, const struct plan *, const struct task *, const struct opnd *,
               int axis, int from, int to);
/* Loops around registers whose pieces are filled before their first uses, where these may stand a step of the next loop
 * ahead in the program, also over the end of that one in the last of those around. -1: they may not. */
int pieces_ahead_depth(const struct work *, const struct nest *, const struct plan *);
bool parts_keep(const struct work *, const struct plan *, const struct task *, const struct opnd *,
                const struct hold *, int depth, int credits); /* a slot may be filled again, part by part */
/* Tokens alone pass between them, of which several may be on their way. */
bool counts_tokens(const struct edges *, int queue, int user);

/* parts_ask.c */
void parts_ask(struct work *, const struct moves *, struct nest *); /* a question */

#endif
