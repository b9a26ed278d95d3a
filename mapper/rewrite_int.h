/* Inside the rewrites: building changed programs, and what several rewrites ask of a statement.
 * A rewrite copies the program, opens room for statements before the one that it replaces, and
 * writes them. Whether it was right to do so is decided by rewrite_prove alone. */
#ifndef ISAMAP_MAPPER_REWRITE_INT_H
#define ISAMAP_MAPPER_REWRITE_INT_H

#include "mapper/mapper_int.h"

/* ---- declarations ---- */
int rw_axis(struct program *, const char *base, int64_t extent); /* a new axis; -1: no room */
/* A new temporary; -1 when its bytes overflow what a buffer may have. */
int rw_temporary(struct program *, const char *base, enum type, int ndims, const int64_t *extent);
struct access rw_access(struct program *, int buffer);                     /* all rows 0 */
bool rw_rows_equal(const struct program *, const struct access *, const struct access *); /* the same element of buffers of one shape and type */
struct access rw_indexed(struct program *, int buffer, const int *axis);   /* [axis[0], axis[1], …] */
struct access rw_copy(struct program *, const struct access *);
int64_t *rw_row(const struct program *, const struct access *, int dim);   /* to write in */
int rw_plain_index(const struct program *, const struct access *, int dim); /* the axis that is all of the index; -1 */
/* A temporary with one element for each point of the axes, in this order, and the access to it. */
bool rw_temporary_of(struct program *, const char *base, enum type, const int *axis, int n,
                     struct access *);
int rw_axes(uint64_t mask, int *axis); /* the axes of a mask in ascending order */

/* ---- statements ---- */
struct draft {
    struct program *p;
    struct stmt s;
    int op_cap, read_cap;
};

struct draft draft_open(struct program *, const struct stmt *like, enum combiner, struct access);
/* The same constraints, in rows of its own: axes that are added later widen each statement's. */
void draft_where(struct draft *, const struct stmt *like);
int draft_op(struct draft *, struct op);
int draft_binary(struct draft *, enum opcode, int a, int b);
int draft_read(struct draft *, struct access);
int draft_cast(struct draft *, enum type, int a);   /* none where nothing changes */
int draft_number(struct draft *, enum type, double); /* integers wrap */
int draft_axis(struct draft *, int axis);           /* its value, as i64 */
int draft_tree(struct draft *, const struct stmt *from, int node);
/* The same with other accesses: what the function makes of each (NULL: as they are). */
typedef struct access (*access_map)(void *user, const struct access *, int read);
int draft_mapped(struct draft *, const struct stmt *from, int node, access_map, void *user);
void draft_close(struct draft *, int stmt);         /* it is statement `stmt` */
void rw_fill(struct program *, int stmt, const struct stmt *like, struct access, double); /* = number */

/* ---- questions ---- */
enum { MAX_FACTORS = 16 };

struct factors { /* `dst += f0 * f1 * …`: nodes, left to right; a product under casts that widen is opened */
    int n, node[MAX_FACTORS];
    uint64_t axes[MAX_FACTORS];
    enum type type; /* in which they are multiplied */
};

bool rw_plain(const struct program *, int stmt);                  /* at the top level, outside recurrences, no constraint */
bool rw_top(const struct program *, int stmt);                    /* the same, constraints allowed */
bool rw_factors(const struct program *, int stmt, struct factors *); /* a sum of products at the top level, one factor at least */
bool rw_collect(const struct program *, const struct stmt *, int node, struct factors *); /* of a node, to those that are there; false: too many */
uint64_t rw_value_axes(const struct stmt *);                      /* axes used as values */
enum type rw_stored(const struct program *, const struct stmt *, int node); /* of a factor, under its casts */
int rw_bare(const struct stmt *, int node);                       /* the node under casts that keep values */
/* The dimension and the coefficient where the axis stands; false: not in exactly one. */
bool rw_place(const struct program *, const struct access *, int axis, int *dim, int64_t *coef);

/* The product of the factors in the mask, as they stand in the statement. */
int draft_product(struct draft *, const struct stmt *from, const struct factors *, uint32_t mask);
int draft_product_mapped(struct draft *, const struct stmt *from, const struct factors *, uint32_t mask, access_map, void *user);

enum { MAX_SUBSTITUTED = 12 };
struct substitution { /* axes that become affine in others; an access_map */
    struct program *p;
    int n, axis[MAX_SUBSTITUTED];
    int64_t *row[MAX_SUBSTITUTED]; /* naxes + 1 numbers */
};
int64_t *rw_substitution(struct substitution *, int axis); /* a row of zeros to fill in; NULL: too many */
struct access rw_substituted(void *substitution, const struct access *, int read);
uint64_t rw_access_axes(const struct program *, const struct access *);
double rw_points(const struct program *, uint64_t axes);

/* The operand through which the node does not decrease; -1: none. The value at `top` of such a chain with that at node a. */
int rw_monotone(const struct term *, int node);
union value rw_through(const struct term *, int top, int a, union value);
/* Who alone writes, once, the temporary that the statement alone reads, once; -1. */
int rw_only_writer(const struct program *, int stmt, const struct access *);

/* An image of what a statement reads: a new temporary of the buffer's shape. Where no statement sets
 * all of that buffer, one by the axes of the read: it has just the elements that are wanted. */
struct image {
    int buffer, of, axis[MAX_DIMS];
    bool by_axes;
    struct access original, own; /* then: what fills it reads and writes */
};
bool rw_image(struct program *, int stmt, int read, enum type, struct image *);
struct access rw_imaged(struct program *, const struct image *, bool original); /* at its axes */
bool rw_set_whole(const struct program *, int stmt, int buffer); /* before the statement, by one or in parts; arguments are */

struct product_types { /* of a needle c += a * b */
    enum type a, b, sum;
};
bool needle_product(const struct needle *, struct product_types *);
/* The type that a second operand should have beside `other`, as the needle has it. */
/* How many values of a reduction one issue takes, at most; 16 where that is open. */
int64_t rw_tile(const struct needle *);
/* Extents of which it executes multiples alone, padding included. */
int64_t needle_axis_unit(const struct needle_axis *);
enum type rw_partner(const struct needle *, enum type other);

/* ---- what they look at (rw_near.c) ---- */
struct near {
    const struct program *whole;
    struct program *part;              /* NULL: the whole one is looked at */
    int stmt;                          /* the statement in it */
    int *of, n;                        /* of the part's statements: which they are in the whole program */
};
void near_open(struct near *, struct arena *, const struct program *, int stmt);
void near_close(struct near *);
const struct program *near_program(const struct near *);
/* q came of that program by rewrites that put its statements from .. to - 1 in the place of the statement and of some before it. */
struct program *near_whole(const struct near *, const struct program *q, int from, int to); /* the same of the whole program */
int near_stmt(const struct near *, const struct program *q, int from, int to, int stmt);    /* where q's statement is in that; -1 stays */

/* ---- driving them ---- */
/* Of statements from .. to - 1; buffers before `known` are in all programs that are compared. */
uint64_t rw_part_hash(const struct program *, int from, int to, int known);
struct driver {
    const struct needles *needles;
    struct derivations *out;
    enum rewrite_effect most;          /* what may happen to floats */
    bool unmapped_only;                /* leave alone what fills an instruction */
    bool device_only;                  /* towards instructions of a device: those of the host beside it do not count */
    int most_states;                   /* for each statement; 0: as many as there may be */
};
struct derivations *derivations_new(void);
/* Appends what can be made of one statement of the program; not proved yet. */
void drive_stmt(struct driver *, const struct program *, int stmt);
uint32_t rewrite_laws(enum rewrite_effect);
enum sampling rewrite_sampling(const struct rewrite *);
/* When what is not proved is sampled: never; where samples that agree are enough; always, to see whether it is wrong or only not proved. */
enum samples { SAMPLES_NONE, SAMPLES_SERVE, SAMPLES_REFUTE };
struct verdict rewrite_judge(const struct rewrite *, const struct program *before, const struct program *after, enum samples, struct text *why);
struct rewrite derivation_whole(const struct derivation *);       /* its steps as one */
bool derivation_prove(const struct derivation *, const struct program *before, struct text *why);
bool derivation_known(const struct needles *, const struct derivation *, const struct program *before); /* the same, proved once (rw_known.c) */

/* Removes n statements from `stmt` on, all at the top level: room that was not needed. */
void program_close_room(struct program *, int stmt, int n);

/* ---- the rewrites, by file ---- */
extern const struct rewrite rw_commute, rw_associate, rw_distribute, rw_from_zero;           /* rw_algebra.c */
extern const struct rewrite rw_factor, rw_ones, rw_privatise, rw_variance;                   /* rw_reduce.c */
extern const struct rewrite rw_mask, rw_whole;                                               /* rw_where.c */
extern const struct rewrite rw_block_diagonal, rw_identity;                                  /* rw_expand.c */
extern const struct rewrite rw_bounds;                                                       /* rw_bounds.c */
extern const struct rewrite rw_constants;                                                    /* rw_constants.c */
extern const struct rewrite rw_as_stored;                                                     /* rw_stored.c */
bool *buffers_read(struct arena *, const struct program *);           /* by buffer: does a statement read it? */
/* Without what fills temporaries that nothing reads, but something read before, of the nbefore buffers there were; NULL: there is none. */
struct program *unread_dropped(const struct program *, const bool *before, int nbefore);
extern const struct rewrite rw_scale;                                                        /* rw_scale.c */
extern const struct rewrite rw_shift, rw_zero_point;                                         /* rw_shift.c */
extern const struct rewrite rw_residual;                                                     /* rw_residual.c */
extern const struct rewrite rw_lanes;                                                        /* rw_lanes.c */
extern const struct rewrite rw_phases;                                                       /* rw_phases.c */
extern const struct rewrite rw_winograd_2, rw_winograd_4;                                    /* rw_winograd.c */
extern const struct rewrite rw_widen, rw_widen_other, rw_offset, rw_narrow, rw_narrow_sum, rw_digits;        /* rw_types.c */
extern const struct rewrite rw_transpose, rw_reshape, rw_im2col;                             /* rw_pack.c */
extern const struct rewrite rw_split, rw_trim, rw_fuse, rw_drop_axis, rw_add_axis;                    /* rw_axes.c */

/* Who reads a copy out of blocks, one of the statements from .. to - 1, takes the blocks themselves (rw_blocks.c). 1: that copy
 * is no more; 0. *last: behind the last statement that may be another one now. */
int blocks_hand_on(struct program *, int from, int to, bool opened, int *last);

/* ---- sums in parts (rw_parts.c): no answer to a failure, but a question of its own ---- */
enum { MAX_PARTS = 8 };
#define PARTS_SUFFIX ".parts" /* of the buffer that they are in */
extern const struct rewrite rw_parts;
/* In how many parts the sums of the mapping's statement may be made so that a grid's instances have work, ascending; returns how many such numbers. */
int parts_of(const struct machine *, const struct needle *, const struct program *, const struct mapping *, int64_t *parts);
/* The share of the instances' time, over all their turns, in which they have a tile of the statement; 0 to 1. */
double instances_busy(const struct machine *, const struct needle *, const struct program *, const struct mapping *, int64_t parts);
double meeting_price(const struct machine *); /* cycles in which all instances meet */
/* NULL: there is no room for the axes or the partial sums. */
struct program *sum_in_parts(const struct program *, int stmt, int64_t parts);

#define TERMS_SUFFIX ".terms"
extern const struct rewrite rw_terms;
/* For a needle that overwrites its sums of few terms. The rewritten sum of the first part is statement stmt + 1; *stmts: how many stand in place of the one. NULL: no use. */
struct program *sum_of_terms(const struct program *, int stmt, const struct needle *, int *stmts);

#define ANSWERS(kind) (UINT32_C(1) << FAILURE_##kind)

#endif
