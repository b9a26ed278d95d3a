/* Inside the chunks of steps: what a recurrence's body was found to be (chunk.c), and the steps of a chunk written at once (chunk_write.c).
 *
 * A step makes S ← a·S + b. With the factors D[w, s] = Π_{s < u < w} a(u) and E[w] = Π_{u < w} a(u) of a chunk's steps, S before step w is
 * E[w]·S₀ + Σ_{s < w} D[w, s]·b(s): who reads it in a sum of products reads S₀ with its own factor scaled by E, and adds the products of its
 * own factors with those of b, a matrix over pairs of steps. Rows of a chunk are numbered as they lie in arrays: where steps go
 * backwards, step w is row L - 1 - w, and D and E have w at L - w; u counts steps as they are executed. (RetNet, arXiv 2307.08621; gated linear attention, arXiv 2312.06635.) */
#ifndef ISAMAP_MAPPER_CHUNK_INT_H
#define ISAMAP_MAPPER_CHUNK_INT_H

#include "mapper/body.h"
#include "mapper/rewrite_int.h"

struct product { int item; struct factors f; };   /* of a statement of the body, the state not among the factors */

struct linear {                       /* a state */
    int state, first, last;           /* of the recurrence; items that write its next value, from .. to */
    int axis[MAX_DIMS];               /* of each dimension, in the statements that write it */
    struct product scale;             /* a; none: 1 */
    uint64_t scale_axes;              /* the state's that a varies with */
    struct product *added; int nadded; /* b */
    struct access scaling;            /* a of each step of a chunk, where it is made apart; buffer -1: it is not */
    int factors, scales;              /* buffers of D, E */
};

struct reader {                       /* `dst += f · S[…]` */
    int item, state;                  /* index into linear */
    bool next;                        /* it reads the next value */
    int axis[MAX_DIMS];               /* of each dimension of the state */
    struct product own;               /* the other factors */
};

enum part_kind { PART_FIRST /* depends on no state */, PART_LATER, PART_READER, PART_UPDATE };

struct chunking {
    struct body body;
    struct linear *linear; int nlinear;
    struct reader *reader; int nreaders;
    enum part_kind *part;             /* of each item */
    int nbuffers;                     /* of the program as it was */
    bool *by_rows;                    /* buffers of which each step has its own: a row more for each step of a chunk */
    struct rank_cycles cycles;
    bool current;                     /* somebody reads a state before its step */
    int64_t steps, length;            /* of the recurrence; of a chunk */
    bool open;                        /* there may be fewer steps: how many is known when the program runs */
    /* while it is written */
    int row, other, step, bound;      /* axes: steps of a chunk, thrice; the first index of D and E */
    int *rows;                        /* by buffer of by_rows: the one with a row for each step */
    int *item, nitems, cap;           /* statements of the new body */
    bool *made;                       /* [nitems] it fills a temporary that is written nowhere else */
};

/* D and E begin with w = 0, or with w = 1 where nobody reads a state before its step. */
static inline int chunk_first(const struct chunking *c) { return c->current ? 0 : 1; }
bool chunk_find(struct program *, int at, struct chunking *);   /* false: the item is no such recurrence */
uint64_t chunk_axes(const struct product *, uint32_t mask);     /* of these factors */
/* The axes of a statement that writes the state, as its reader has them. */
uint64_t chunk_renamed(const struct chunking *, const struct reader *, uint64_t axes);
/* The factors with one of these axes; of a statement that writes the state, renamed for the reader (NULL: its own). */
uint32_t chunk_inner(const struct product *, uint64_t reduced, const struct chunking *, const struct reader *);
/* The factors that have these axes alone; with a reader, as it names them. */
uint32_t chunk_factors(const struct chunking *, const struct product *, uint64_t axes, const struct reader *);
/* Of what is added to a state, the factors that are scaled beforehand, and their axes with those of the scale; are they made apart? */
uint32_t chunk_scaled(const struct chunking *, const struct linear *, const struct product *, uint64_t *axes);
static inline bool chunk_apart(const struct linear *l, uint32_t scaled) { return l->scale.f.n > 0 || (scaled & (scaled - 1)); }
bool chunk_write(struct chunking *);                            /* in chunks of c->length; false: no room */

#endif
