/* Programs: buffers, axes and statements with all parameters bound. The structure that every later stage reads.
 * ISA Mapper §2.1: each operation of a statement is one three-operand step; its temporary holds one value for each point of
 * the statement's domain, so `op[]` is the list of those steps and no buffer is made for them. */
#ifndef ISAMAP_IR_PROGRAM_H
#define ISAMAP_IR_PROGRAM_H

#include "ir/kernel.h"

enum { MAX_AXES = 64, MAX_DIMS = 16 };

struct buffer {
    const char *name;               /* a state's next value has the state's name and a prime */
    enum type type;
    enum role role;
    int ndims;
    int64_t *extent;
    int64_t elements;               /* product of the extents; checked against overflow of bytes */
    int size;                       /* 1 + the size that its first extent is, at most; 0: all are fixed */
};

struct axis {
    const char *name;
    int64_t extent;                 /* one more than its last value */
    bool sequential;                /* declared with seq, or the axis of a recurrence */
    int param;                      /* the kernel parameter that is the extent, alone; -1 otherwise */
    int size;                       /* 1 + the size that the extent is, at most; 0: it is fixed */
    int64_t group;                  /* of a size: groups of so many; 0: it is not in groups */
    bool rest;                      /* the values behind the last whole group; else it numbers whole groups */
    int64_t first;                  /* its first value: of recurrences alone, 0 elsewhere */
};

static inline int64_t axis_steps(const struct axis *a) {   /* how many values it has */
    return a->extent - a->first;
}
static inline int64_t axis_least(const struct axis *a) {   /* no value is below it, at any size */
    return a->size ? 0 : a->first;
}
void axis_resize(struct axis *, int64_t size);                        /* with this value of its size */

/* A range that is known only when the program runs. The program is bound with the largest value; smaller ones shorten
 * recurrences and leave the ends of arrays alone. */
struct size {
    const char *name;
    int64_t lo, hi;
};

/* index[d] = Σ_a coef[d * (naxes + 1) + a] * axis[a] + coef[d * (naxes + 1) + naxes] */
struct access {
    int buffer;
    int64_t *coef;
    bool has_fill;                  /* reads outside the buffer give `fill` (in the buffer's type) */
    union value fill;
};

struct op {
    enum opcode code;
    enum type type;                 /* of the result; f16 and bf16 temporaries are computed as f32 */
    int arg[3];                     /* earlier ops */
    int read;                       /* OP_READ: index into stmt.read */
    int axis;                       /* OP_AXIS */
    union value value;              /* OP_LITERAL */
    bool unsaid;                    /* OP_LITERAL: no number, but whatever the statements give that this one stands for (stmts_join) */
};

/* Σ_a coef[a] * axis[a] + coef[naxes] >= 0 */
struct constraint {
    int64_t *coef;
};

struct stmt {
    enum combiner combine;
    struct access dst;
    struct access *read;
    int nreads;
    struct op *op;                  /* the last one is the value, of the destination's type (or f32 for f16, bf16) */
    int nops;
    struct constraint *where;
    int nwhere;
    uint64_t axes;                  /* bit a: axis a is in the domain; recurrence axes around it are not */
    size_t at;                      /* offset in the source, for messages */
    int scope;                      /* in an opened program (ir/steps.h): 1 + the recurrence around it; 0: none */
    bool unmapped;                  /* there: what its value or domain is depends on the step, so no instruction executes it */
    int alike;                      /* of a body that stands twice, whose copies must give the same bits: one more than twice a number that both
                                       copies of the statement have, and one more in the second; 0: none */
    bool untold;                    /* a rewrite made it for the fallback, since the whole is cheaper so: no warning */
};

enum item_kind { ITEM_STMT, ITEM_RECUR, ITEM_CALL };

struct item {
    enum item_kind kind;
    int stmt;                       /* ITEM_STMT: index into program.stmt */
    struct recur *recur;
    struct call *call;
};

struct recur_state {
    int current, next, from, to;    /* buffers; to may be -1 */
};

struct recur {
    int axis;                       /* its extent is the number of steps; 0 is allowed */
    bool reverse;
    struct recur_state *state;
    int nstates;
    struct item *item;
    int nitems;
    size_t at;                      /* offset in the source, for messages */
};

struct call {
    const char *function;
    int *read, *write;              /* buffers */
    int nreads, nwrites;
    size_t at;
};

struct program {
    struct arena arena;             /* owns everything below */
    const char *name;
    struct source source;           /* for messages; text may be NULL when built by a stage */
    struct buffer *buffer;
    int nbuffers;
    struct axis *axis;
    int naxes;
    struct stmt *stmt;              /* all statements, those of recurrences too */
    int nstmts;
    struct item *item;              /* the body, in order */
    int nitems;
    struct binding *param;          /* the parameters as bound, in the kernel's order */
    int nparams;
    struct size *size;
    int nsizes;
    size_t *buffer_at;              /* offsets in the source of the first nplaces buffers, for messages; stages may leave them out */
    int nplaces;
};

/* Binds parameters and lowers. Every parameter needs a value (its own, or one from `given`, which wins and must lie in its
 * range); names visible through `outer` are machine parameters. NULL after reporting. */
struct program *program_bind(const struct kernel *, const struct bindings *given, const struct bindings *outer,
                             struct diags *);
/* The same, but parameters that have a range and no value become sizes: lengths of recurrences and first dimensions of buffers. */
struct program *program_bind_sizes(const struct kernel *, const struct bindings *given, const struct bindings *outer,
                                   struct diags *);
static inline int64_t size_within(const struct size *s, int64_t value) {   /* the nearest in its range */
    return value < s->lo ? s->lo : value > s->hi ? s->hi : value;
}
struct program *program_at(const struct program *, const int64_t *size);   /* a copy with these sizes (NULL: the largest); arrays stay as long as at most */
/* A copy that goes no further than the first steps of its only recurrence, with what is made row by row for each step before. Of each
 * buffer the elements that are then as after all steps, from the first on (elements[nbuffers]; 0: none are). NULL: there is no such
 * output, or the program is more than that. */
struct program *program_first_steps(const struct program *, int64_t steps, int64_t *elements);
struct program *program_new(const char *name);                    /* empty, for a stage to fill */
void program_free(struct program *);
struct program *program_copy(const struct program *);             /* deep */
/* A copy with these statements alone, in this order: their accesses have a column for each axis of the program. */
struct program *program_of_stmts(const struct program *, const struct stmt *const *, int n);
bool program_verify(const struct program *, struct diags *);      /* structure, types, ranges of accesses, written before read */
void program_print(const struct program *, struct text *);        /* text form without parameters; parses back to an equal program */
void program_print_body(const struct program *, struct text *);   /* what stands inside, without arguments and axes that are not sequential: they are another program's */
/* One statement. mark: where in the text an access of it stands, or the op of that number; at and n stay if it does not. NULL: not asked. */
struct stmt_mark {
    const struct access *access;    /* of the statement; NULL: op */
    int op;
    size_t at, n;
};
void stmt_print(const struct program *, const struct stmt *, struct text *, struct stmt_mark *);
void access_print(const struct program *, const struct access *, struct text *);   /* the buffer, its indices, the fill */
bool program_equal(const struct program *, const struct program *);

/* Canonical form: unit axes dropped, collinear neighbours merged, operands of commutative operations sorted, axes, buffers
 * ordered by use. The hash does not depend on names, or on the order of axes. */
struct program *program_canonical(const struct program *);
uint64_t program_hash(const struct program *);

/* Constraints that hold on the whole domain go, but for one without which a sum or product would lose an axis: it would count less often;
 * how many went. */
int stmt_drop_where(const struct program *, struct stmt *);
/* Where constraints on this axis alone leave it; false: there are none, or they leave nothing. */
bool stmt_bounds(const struct program *, const struct stmt *, int axis, int64_t *lo, int64_t *hi);
/* Equalities between axes at the top level, `where k == i + 1`: one axis ends, as the others say which value it has. How many ended. */
int program_equate(struct program *);
/* Axes of one statement alone whose constraints say where they end are as long as that (masks: `where i < n`), and constraints that hold
 * everywhere go. */
void program_trim(struct program *);

/* A copy in which dimensions that all statements walk together, whole and in their order, are one: elements lie as before. NULL: there are none,
 * or something else than statements touches arrays. */
struct program *program_collapse(const struct program *);
/* The same with buffers declared as in the other program; NULL: they are not the same elements in the same order, or a statement knows more of
 * their dimensions than where an element lies. */
struct program *program_spread(const struct program *, const struct program *declared);

/* Temporaries that one statement fills and another reads once, point by point, end: the second computes them itself. With `all` wherever it
 * can; otherwise only what is accumulated as it is (t = a * b, c += t). How many ended. Exact: f16 and bf16, which round, stay. */
int program_forward(struct program *, bool all);
/* Temporaries that copies put together, of which another one holds the same elements as a part, end: who reads them reads the other one. How
 * many ended. */
int program_absorb(struct program *);
/* Temporaries that are only copied, into a part of another one, end: who makes them writes the part. How many ended. */
int program_coalesce(struct program *);

int program_item(const struct program *, int stmt);      /* where the statement stands in the body; -1: in a recurrence */
bool program_held(const struct program *, int buffer);   /* a call, or a recurrence as its state, names it */
void program_drop_stmt(struct program *, int stmt);      /* of the body, not of a recurrence */
void program_drop_buffer(struct program *, int buffer);  /* nothing names it any more */

/* Statements that one instruction executes, seen as one (ir/program_join.c): what the temporaries that they keep to themselves do not
 * hand on. Reads in the order of the statements, each place once; the last statement's destination; the axes of all. The value is not
 * said. NULL: done; otherwise why they cannot be one. */
enum { MAX_JOINED = 12 };
const char *stmts_join(struct arena *, const struct program *, const int *stmt, int n, struct stmt *out);
int stmt_joined_read(const struct program *, const struct stmt *joined, const struct access *);   /* -1: a temporary between them */
void stmt_hide(struct arena *, struct program *, int stmt, int last);   /* `stmt` is part of what statement `last` is now */
/* Axes that one of them lacks or sums over: no part of these alone gives any result. */
uint64_t stmts_whole_axes(const struct program *, const int *stmt, int n);
void stmt_rename_axes(struct arena *, const struct program *, struct stmt *, const int *axis);   /* axis[a] stands for a; [naxes] */

int program_buffer(const struct program *, const char *name);     /* -1: none */
int64_t program_macs(const struct program *);                     /* products that are accumulated in the same statement */
int64_t program_operations(const struct program *);               /* everything else */
int64_t program_touched_bytes(const struct program *);            /* of arguments, each touched element once, inout twice */
void program_points(const struct program *, int64_t *points);     /* [nstmts] of each statement's domain, in all steps of the recurrences around */
int64_t stmt_points(const struct program *, const struct stmt *); /* size of the domain; exact with constraints */
int64_t stmt_macs(const struct stmt *);                           /* at each point: the terms of a sum, if all are products */
int64_t stmt_operations(const struct program *, const struct stmt *); /* at each point; the product and sum of a MAC are not among them */
bool stmt_is_mac(const struct program *, const struct stmt *);    /* sum of products: combine is + and the value's root (under casts) is a product */
/* steady[nstmts], of those that come in as true: statements that need be executed once for any number of runs, as constants alone decide what they
 * give. Sums of products are not among them, nor fills that cost no more than reading them. */
void program_steady(const struct program *, bool *steady);
bool stmt_steady(const struct program *, const struct stmt *);    /* one of them that reads, as far as it alone says */
bool buffer_steady(const struct program *, int buffer);           /* a constant, or what such statements write */
void program_constants(const struct program *, bool *constant);   /* [nbuffers] the same of all buffers, however long the chains */
uint64_t stmt_axes(const struct program *, const struct stmt *);  /* bit a: axis a occurs; recurrence axes too */
/* The element of the destination that a point of the domain writes, which the seed chooses: near corners, on the border of a constraint or
 * anywhere; -1: none was found. */
int64_t stmt_place(const struct program *, const struct stmt *, uint64_t seed);
uint64_t stmt_value_axes(const struct program *, const struct stmt *);    /* the same without those that occur in constraints alone */
bool combiner_counts(enum combiner);                              /* the number of equal contributions matters: sums and products */
/* Is its value, before it is combined, zero whenever these reads are (bit r: of a zero) and factors beside them are finite? */
bool stmt_zero_when(const struct program *, const struct stmt *, uint64_t reads);
/* [ndims] It sets each element of this box of its buffer, and no other. */
bool stmt_writes_box(const struct program *, const struct stmt *, int64_t *lo, int64_t *n);
/* An axis of several values whose order counts; -1: its points may come in any order. */
int stmt_ordered(const struct program *, const struct stmt *);
/* Does each axis move the result along one dimension at most, forwards, and as access_in_blocks says? Else no tiles of it are written once each. */
bool stmt_in_tiles(const struct program *, const struct stmt *, uint64_t inner);
bool stmt_writes_whole(const struct program *, const struct stmt *); /* it sets each element of its buffer, whatever else does */
bool access_equal(const struct program *, const struct access *, const struct access *);
bool access_varies(const struct program *, const struct access *, int axis);
void access_range(const struct program *, const struct stmt *, const struct access *, int dim, int64_t *lo, int64_t *hi); /* of the index, constraints aside */
/* In some dimension the indices of what one writes end before those of the other begin; both write one buffer. */
bool stmt_parts_differ(const struct program *, const struct stmt *, const struct stmt *);
bool stmt_reads_beside(const struct program *, const struct stmt *); /* some read may be of its fill, constraints aside */
static inline int64_t access_coef(const struct program *p, const struct access *a, int dim, int axis) {
    return a->coef[dim * (p->naxes + 1) + axis];                  /* axis == naxes: the constant */
}

#endif
