/* Where an operand's elements are, inside a slot and at home; the homes of buffers; the boxes of
 * elements that pass between the two. */
#ifndef ISAMAP_SCHEDULER_PLAN_GEOM_H
#define ISAMAP_SCHEDULER_PLAN_GEOM_H

#include "ir/program.h"
#include "machines/machine.h"
#include "scheduler/plan/limits.h"
#include "scheduler/plan/val.h"

struct box;
struct fit;
struct moves;
struct opnd;
struct plan;
struct task;
struct work;

struct coord {
    int dim;          /* -1: the needle repeats (broadcast) */
    int64_t div, mod; /* index / div % mod; mod 0: no limit */
    bool first;       /* nothing walks it: fills bring the first element alone */
};

struct geom { /* innermost first */
    struct coord at[MAX_COORDS];
    int64_t stride[MAX_COORDS]; /* of the inner ones, in elements */
    int n, ninner; /* at[0..ninner): one needle tile, padded to whole words of the memory */
    int64_t block[MAX_DIMS]; /* 1: the dimension is not blocked */
    uint64_t loose;          /* bit d: at home, tiles along dimension d begin anywhere */
    int64_t step[MAX_DIMS];  /* of those: at home, neighbours in a tile are so many elements apart; regions count such steps */
    int64_t room[MAX_DIMS];  /* of those, for what only whole tiles move: elements that the last one takes behind the end */
    int64_t takes[MAX_DIMS]; /* of a plain copy: whole tiles of so many are read of it, so it goes on to the end of the last one; 0 */
    int walks[MAX_DIMS];     /* the axis that these tiles walk */
    int64_t grain[MAX_DIMS]; /* that a needle takes of a block: it may start at each such part */
    uint64_t sparse; /* bit d: slots hold only those elements along dimension d that are read */
    uint64_t even;           /* bit d: rows at a chosen distance, as many as blocks take */
    uint64_t fragment;       /* of the form */
    const char *swizzle;
    int64_t span, tile;      /* elements of one needle tile, without padding and with it */
    int row;                 /* coordinate along which needles may start anywhere; -1 */
    int first;               /* of a slot: the coordinate that lies next to the tile, outside of which the others follow; 0: they lie as listed */
    bool plain;              /* of a slot: dimension after dimension, the first coordinate's fastest */
    bool plain_home;         /* a home made for it is plain too, and so are copies on the way */
    uint64_t exact;  /* dimensions of which moves bring just what is there: a state tells sizes */
    uint64_t live;   /* of which the last tile reaches elements of the buffer that the access does not: no room for padding */
    int spaced;      /* a home made for it: what stands outside of the first so many coordinates begins where moves may begin; 0: dense */
    int turned;      /* a home made for it: the coordinate that lies innermost there, before the others; 0: as listed */
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
    int spaced;      /* behind so many of them there may be a gap, 0: none: strides outside of it are multiples of `unit` */
    int64_t unit;    /* elements */
    int64_t *extent; /* rounded up where packed */
    uint64_t tight;  /* dimensions shorter than their block that are not: moves bring zeros for the rest */
    int64_t elements;
    int near;      /* the cache in which what is folded, lies in another's home or is asked for, stays; -1 */
    bool asked;    /* each turn of its group finds its part near, as it was asked for a turn before */
    int64_t ahead; /* bytes behind what is read that moves ask for; 0: they do not */
    int lies_in;   /* 1 + the buffer in whose home its elements lie, each where that one's will; 0: it has its own */
    int64_t *fold; /* per dimension: tiles of so many indices lie over one another, the current one from `lo`; 0: not. NULL */
    int place;
    bool locked;   /* the layout is decided */
    bool prepared; /* written in the prepare section only */
};

/* Homes that a candidate gives to some buffers: a work with them (work.tried) is planned and priced as if they were
 * decided, and no other work sees them. */
struct homes {
    struct homes *rest;
    int buffer;
    struct home home;
};

/* How the elements lie at home that a geometry counts. */
struct view {
    int of;            /* buffer whose dimensions its coordinates name */
    int buffer;        /* that they lie in: another one where a move computes on the way in */
    int dim[MAX_DIMS]; /* of it, which dimension d walks; -1: none */
};

/* home.c */
struct view view_plain(int buffer);
bool view_stride(const struct work *, const struct view *, struct coord, int64_t *stride); /* of the home */
bool home_stride(const struct home *, int ndims, struct coord, int64_t *stride);
const struct home *work_home(const struct work *, int buffer); /* the tried one, else the one that is decided */
struct home *home_own(struct work *, int buffer); /* a tried one, at first as it was */
struct home home_packed(const struct work *, int buffer, const struct geom *); /* in a blocked layout */
void home_pack(struct work *, int buffer, const struct geom *); /* it is decided */
/* Blocks that are not full without padding; false: all are full. */
bool home_tighten(const struct work *, struct home *, const struct buffer *, const struct geom *);
void home_run(struct home *, int ndims); /* strides and size from the order of coordinates and the extents */
struct layout *home_layout(struct work *, struct arena *, const struct home *, int ndims,
                           const char **text);
int home_near(const struct home *); /* the memory in which tiles of it stay; -1: it is no tile */
bool tile_stays(const struct work *, int buffer, int memory); /* no traffic between this memory and what it caches */
bool written_by_tasks(const struct work *, int buffer);
/* Does what the buffer's home holds beyond its elements not count where a reduction runs into it? */
bool padding_neutral(const struct work *, const struct task *, const struct opnd *, int buffer);
/* slot_alike.c: do all elements have the same place in slots of both, walked as by these accesses
 * of the task's statement? */
bool slot_alike(const struct work *, const struct task *, const struct geom *, const struct access *,
                const struct geom *, const struct access *);
bool geom_make(struct work *, const struct task *, struct opnd *);
void geom_tile(const struct work *, struct opnd *); /* whole words of the operand's memory */

/* footprint.c: tiles that begin anywhere lie alone in their hold. */
bool loose_alone(const struct work *, const struct plan *, const struct task *,
                 const struct opnd *, const struct access *, int depth);

/* ---- transfers ---- */

struct region { /* of a buffer: per dimension the first index (may lie before 0) and how many */
    struct val lo[MAX_DIMS], n[MAX_DIMS];
    int64_t pad_lo[MAX_DIMS],
        pad_hi[MAX_DIMS];   /* padding at most, where the access reads outside */
    struct val repeat;      /* rows that repeat (geom.repeat_axis) */
    bool partial[MAX_DIMS]; /* blocked dimension: one block of which only n are there */
    int64_t apart[MAX_DIMS]; /* elements from each of the n to the next; 0: as many as the
                                geometry's step */
};

struct slot {
    struct val stride[MAX_COORDS], elements;
    int64_t apart[MAX_DIMS]; /* of its region */
    struct val base, back; /* elements from the place's slot on; to take away: turns of a ring */
};

/* Elements from one place of the region to the next, along a dimension. */
int64_t region_step(const struct geom *, const struct region *, int dim);
/* From one place of the region to the next, along coordinate i of a slot that holds all of it, or
 * more. */
struct val slot_step(struct arena *, const struct slot *, const struct region *, int i,
                     struct coord);
/* Places along an outer coordinate. */
struct val coord_places(struct arena *, const struct geom *, const struct region *, struct coord);
/* The geometry of `as` where the task stands for another statement that has the same axes; false: elements
 * lie otherwise in its slots than in those of what the task makes. */
bool geom_alike(struct work *, const struct task *, const struct opnd *made, const struct task *by,
                struct opnd *as);
struct slot slot_make(struct arena *, const struct geom *,
                      const struct region *); /* of the whole hold */
/* Where a tile begins anywhere in a padded dimension, or goes in steps, each one has its own padding. */
bool pads_inside(const struct geom *, const struct region *, int dim);
bool home_is_padded(const struct work *, int buffer, const struct geom *, int dim, bool write);
/* Elements from the home's start to the region's first real element; from the slot's start (of
 * `whole`) to the region's first. */
struct val home_offset(struct work *, const struct view *, const struct geom *, const struct region *);
struct val slot_offset(struct arena *, const struct geom *, const struct slot *,
                       const struct region *whole, const struct region *part);
/* False: the home's layout does not have the needle's coordinates. */
bool box_make(struct work *, const struct view *, const struct geom *, const struct slot *,
              const struct region *, bool fill, struct box *);
/* Padding of the access in each dimension over the statement's whole domain. */
void region_padding(const struct program *, const struct stmt *, const struct access *,
                    struct region *);
/* What the axis that the needle walks along the dimension has behind its last whole block; 0: nothing. */
int64_t axis_tail(const struct work *, const struct task *, const struct opnd *, const struct access *, int dim);
bool operand_fits(struct work *, const struct moves *, const struct task *, const struct opnd *,
                  bool write, const char **why);
/* Tiles in steps that are loaded again for other results: would moves take longer for the steps in a
 * copy in the operand's own layout too? */
bool steps_stay_dear(struct work *, const struct moves *, const struct task *, const struct opnd *);
const struct access *operand_sample(const struct work *, const struct task *, const struct opnd *,
                                    bool write, struct region *); /* a few tiles of it */
bool fit_parts(struct work *, const struct moves *, int by, int from, int to, const struct geom *, const struct region *,
               struct box *, struct fit *); /* fit_box of a box of the region */
double operand_cost(struct work *, const struct moves *, int buffer, const struct opnd *,
                    const struct region *, bool write); /* queue cycles of copying them */
bool home_direct(struct work *, const struct task *, struct opnd *,
                 bool write); /* an operand used at its home */

#endif
