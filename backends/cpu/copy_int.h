/* Inside copies of statements (copy.c, copy_turns.c, copy_ways.c). */
#ifndef ISAMAP_BACKENDS_CPU_COPY_INT_H
#define ISAMAP_BACKENDS_CPU_COPY_INT_H

#include "backends/cpu/cpu_int.h"

enum {
    MAX_BLOCKS = 4, /* in which layouts cut an axis, one inside of the other */
    MAX_WALKS = (MAX_BLOCKS + 2) * MAX_DIMS, /* the loops of pieces, and those around */
    MAX_PIECES = 64,
    MAX_CUTS = 16, /* pieces of an axis */
    SQUARE = 8,
    ZIP_BYTES = 16, /* of a row that are zipped with other rows' at once */
    MAX_STARTS = 1 << 14
};

/* A loop of the copy: what one step moves on both sides, in bytes. */
struct walk {
    int64_t extent, from, to;
};

/* One way through part of an axis: a loop, and one over blocks for each size of them; where they
 * begin, and which entries have the source outside its buffer there. */
struct piece {
    struct walk walk[MAX_BLOCKS + 1];
    int n;
    int64_t from, to;
    uint64_t outside;
};

struct ways { /* of each axis that is walked */
    struct piece piece[MAX_DIMS][MAX_CUTS];
    int n[MAX_DIMS];
};

struct entry {
    int64_t value[MAX_AXES]; /* of the axes that are written out; 0 for others */
    int64_t from, to;        /* from the start on */
};

struct copier {
    struct function *f;
    const struct program *program;
    const struct stmt *stmt;
    const struct place *place[2]; /* source, destination */
    const struct access *access[2];
    LLVMValueRef base[2];
    int64_t start[2], size;
    LLVMTypeRef type; /* of an element's bits */
    LLVMValueRef fill;
    int axis[MAX_DIMS], naxes; /* those that are walked */
    uint64_t listed;           /* those that are written out */
    struct entry *entry;       /* in the order of the destination */
    int nentries;
    uint64_t never;           /* entries whose source is outside everywhere */
    uint64_t ragged;          /* axes whose part is shorter in the last turn of the loop around */
    uint64_t edged;           /* axes along which turns of the loop around may read outside */
    int64_t extent[MAX_AXES], /* of the part that is copied */
        grid[MAX_AXES]; /* it begins at a variable, a multiple of so much; 0: at the axis's first
                           value */
    int64_t start_low[MAX_AXES], start_high[MAX_AXES]; /* what it begins at lies between */
    struct lv first[MAX_AXES];
};

/* Of which turns of the loops around axes a copy is meant: the first, the last; of `apart` those
 * between; of others all whole ones. */
struct turns {
    uint64_t first, last, apart;
};

/* ---- which loops (copy_ways.c) ---- */
/* The copy of the node; false: it is none whose elements lie in equal steps. Its entries are as
 * many as MAX_LISTED at most. */
bool copier_open(struct copier *, struct function *, const struct fallback_node *, struct entry *,
                 struct turns);
/* Axes are written out until the others can be walked; false: there is no such way. */
bool find_ways(struct copier *, struct ways *);
/* Are there turns that are meant? Of two turns none is between. */
bool has_turns(const struct copier *, int axis);
int64_t step_of(const struct copier *, int side, int axis, int64_t by); /* bytes */
uint64_t all_entries(const struct copier *);

/* ---- the code of one kind of turns (copy.c) ---- */
LLVMValueRef copy_fill(const struct copier *); /* bits; NULL: of no such type */
void copy_build(struct copier *, const struct ways *);

#endif
