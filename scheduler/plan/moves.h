/* Moves: instructions that copy, the boxes of elements that they copy, and how one fits the other. */
#ifndef ISAMAP_SCHEDULER_PLAN_MOVES_H
#define ISAMAP_SCHEDULER_PLAN_MOVES_H

#include "machines/move.h"
#include "ir/program.h"
#include "scheduler/plan/limits.h"
#include "scheduler/plan/val.h"

struct work;

struct box_dim { /* innermost first */
    struct val extent, before,
        after;           /* extent of real data; padding around it (destination only) */
    struct val total;    /* their sum */
    struct val from, to; /* strides in elements of the buffer */
    int coord;           /* of the geometry */
    int64_t unit;        /* steps of that coordinate from one to the next */
    bool outside;        /* only loops around the move may walk it */
};

static inline struct box_dim box_whole(struct val n) { /* without padding */
    return (struct box_dim){
        .extent = n, .total = n, .before = val_const(0), .after = val_const(0), .unit = 1};
}

struct box {
    int n;
    enum type type;
    bool fill;         /* to the slot, else from it */
    bool apart;        /* dimensions stay apart */
    uint64_t fragment; /* of the slot */
    const char *swizzle;
    int64_t begins; /* at home: its tiles begin at multiples of so many bytes; 0: not known */
    struct box_dim dim[MAX_COORDS]; /* last: copies take only the n there are */
};

struct fit { /* how a move copies a box */
    const struct move *move;
    int dim_of[MAX_NEEDLE];  /* box dimension of each move axis; -1 */
    bool looped[MAX_COORDS]; /* dimensions that become loops around the issue */
    int none; /* the axis of which an issue brings nothing where a loop is in padding; -1: in none */
    double issues, cycles;   /* issues; queue time of all of them */
    double reads;            /* how often they read an element, where the box repeats it */
    struct box box;          /* merged and split; last, as its own dimensions are */
};

struct moves {
    struct move *at;
    int n;
    int *loads; /* the queue in data order that loads from home, then from each memory; -1 */
};

/* A stride of the move that no dimension of the box takes. */
int64_t move_inner_run(const struct move *);
bool swizzle_same(const char *, const char *); /* NULL: elements lie plainly */
struct moves moves_find(struct work *, struct arena *); /* their programs are to be freed */
/* A move that computes: from the rows of one operand, the others being constants, home. */
bool move_finishes(struct work *, int instr, int from_memory, struct move *);
bool move_begins(struct work *, int instr, int to_memory, struct move *); /* the other way: from rows at home */
/* Could it copy elements of this type between these memories, whatever the box? */
bool move_joins(const struct machine *, const struct move *, int from_memory, int to_memory, enum type);
/* Of `by` (1 + move; 0: none) if it fits, the cheapest otherwise: a move between two memories (a cache counts as its backing memory) that copies the
 * box. */
bool fit_box(struct work *, const struct moves *, int by, int from_memory, int to_memory,
             const struct box *, struct fit *);

#endif
