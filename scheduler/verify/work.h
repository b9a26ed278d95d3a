/* One issue on its way through the symbolic walk (work.c): its sizes, addresses and points as forms. */
#ifndef ISAMAP_SCHEDULER_VERIFY_WORK_H
#define ISAMAP_SCHEDULER_VERIFY_WORK_H

#include "scheduler/verify/box.h"

struct work {
    struct sym *s;
    const struct issue_node *n;
    const struct instr *in;
    const struct shape *h;
    const struct fit *f;
    const struct stmt *stmt;           /* of the program; NULL: a move */
    const struct candidate_of *candidate;
    bool overwrite;
    enum type moved;                   /* of a move: what its elements are */
    bool again;                        /* if it fails, its loops are walked instead: so nothing may have changed */
    bool of_loop[SYM_DIMS];            /* the dimension is one of a loop around, or a part of it */
    int64_t full[SYM_DIMS], valid[SYM_DIMS];     /* valid: what belongs to the program; the rest is padding */
    int fit_dim[FIT_DIMS];             /* which dimension of the issue it is; -1 */
    /* Large, and set as far as they are used. */
    int64_t size[64], stride[64], flag[64];
    struct affine offset[MAX_OPERANDS_OF_ISSUE];   /* bytes from the slot's start to the operand's element 0; before dimensions are joined */
    struct affine access[1 + MAX_READS];
    struct affine point[MAX_AXES];     /* of a statement */
};


/* work.c */
bool sym_add_dim(struct sym *, int64_t n, int *dim);
void work_split_at(struct work *, const struct affine *address, const int64_t *stride, int n);
void work_split_home(struct work *, const struct home_layout *, const struct affine *address);   /* where the factors of its indices end */
void work_join_dims(struct work *);                                     /* of a move, whose valid part is known */
bool work_clip(struct work *, bool *box);                               /* to what belongs to the program, if that is one box */

/* tile.c */
bool sym_clip_at(struct sym *, const struct affine *, const struct lin *n); /* cuts the dimensions with the largest steps to the first values, with which it stays below n */
bool region_is_current(const struct region *, int place);
bool work_same(const struct sym *, struct affine a, struct affine b);       /* at all points of the issue */
/* y of each of the region's dimensions at the addresses; false: some may be elsewhere. The issue may be cut to what lies there: at the end
 * of the region, or to the first element of what it knows in one dimension less. */
enum clips { CLIPS_NOTHING, CLIPS_ENDS, CLIPS_ROWS };
bool work_tile_at(struct work *, const struct region *, const struct affine *address, struct affine *y, enum clips);
bool work_tile_index(const struct region *, const struct affine *y, struct affine *index);
bool work_reads_fit(struct work *, const struct candidate_of *);
bool work_read_fits(struct work *, int input, int target); /* one of them (verify_int.h: operand_fits) */
bool work_partial_before(struct work *, struct lin *count);
bool work_in_place(struct work *);
/* Elements of the home of g at an address: each index from its factors, in the part where g lies. */
bool work_home_index(struct sym *, const struct region *g, const struct affine *address, struct affine *index);
/* Along a dimension of which one value is known, and the others are padding, the step of the access says with which indices of its home they go on. */
void work_go_on(const struct work *, int place, int access, const struct affine *index, int nindices, struct affine *out);
/* A tile of the bytes at access[0], over the first n[d] of the dimensions that move them. */
bool work_destination(struct work *, const int64_t *n, const struct affine *index, int nindices, struct region *out);
bool work_write(struct work *, const struct affine *index, struct region *);      /* no index: a constant, in a local place */

/* padding.c. Beyond the end of an axis that is reduced the operands hold zeros that change no result. */
bool work_padding_is_neutral(struct work *);
bool work_adds_nothing(struct work *);
/* All indices are those of elements, or of the padding that the home has room for and that is zero. */
bool work_in_padded_home(struct sym *, int place, int buffer, const struct affine *index);

/* remain.c: copies of operands stay in another memory. False: of several the last one, which is for the walk of single iterations. */
bool work_remains_once(struct work *);
void work_remain(struct work *);                                        /* once the issue is executed */

/* compute.c */
bool work_compute_box(struct work *);                                   /* all of its points are instances, or padding beyond them in single dimensions */
bool work_move(struct work *);

/* parts.c: as one box, or as several, one after the other */
bool work_compute(struct work *);

/* entries.c */
bool box_entries_there(struct sym *, const struct hardware *, int64_t trips);

#endif
