/* Inside the checker of program changes: the value of an element as a form.
 *
 * A form over m dimensions (its context) is a sum of terms. A term has a domain over the context and
 * dimensions of its own, a coefficient and atoms; it stands for the sum, over the points of its
 * domain that agree with the context, of the coefficient times the product of the atoms. So a
 * statement's contributions are counted by a relation, never by a number of samples.
 *
 * An atom is an element of a content (a buffer at a point of time that both programs share), with
 * affine indices, or an operation on forms over the atom's own indices.
 *
 * The first dimensions of every context are the program's sizes that are open, then the counters of
 * the recurrences around: what is compared there is compared at the same step of both.
 *
 * Integer forms are exact modulo 2^bits of their type; where a cast widens, the range of the form
 * says whether that is the value itself. */
#ifndef ISAMAP_IR_EQUAL_INT_H
#define ISAMAP_IR_EQUAL_INT_H

#include "ir/chain.h"

#include <isl/map.h>
#include <isl/set.h>

enum { MAX_SPACE = 64, MAX_TERMS = 128, MAX_ATOMS = 12, MAX_CONTENTS = 4096, MOST_NODES = 100000 };

struct reach { __int128 lo, hi; };       /* all values lie between; floats: not used */

struct form;
struct atom {
    int content;                       /* >= 0: an element of it; -1: an operation */
    enum opcode code;                  /* operation; OP_AXIS: the index itself, nrows 1 */
    enum type type, from;              /* of the value; of the operands */
    int nrows;
    int64_t **row;                     /* of each index: constant, then the term's dimensions */
    struct form *arg[3];               /* over the nrows indices */
    int nargs;
    isl_set *points; int npoints;      /* a reduction by the operation: arg[0] at these points, which extend the nrows indices, then arg[1]; NULL: none */
};

struct term {
    isl_set *dom;                      /* unnamed, n dimensions */
    int n;
    const char **name;                 /* of the dimensions: the axis, or NULL */
    double f;                          /* coefficient: floats */
    int64_t i;                         /* integers */
    struct atom *atom;
    int natoms;
};

struct form {
    enum type type;
    int m;                             /* dimensions of the context */
    struct term *term;
    int nterms, cap;
    bool low;                          /* the value lies in the type, whatever its terms say: low bits of a number */
    bool sum, product;                 /* made by additions or a reduction; by a product */
};

enum event_kind { EVENT_STMT, EVENT_COPY /* of a whole state */, EVENT_ENTER, EVENT_LEAVE /* the ends of a recurrence's body */ };
struct event {
    enum event_kind kind;
    int stmt, to, from;                /* the statement; the buffers that a statement or a copy writes, and that a copy reads; -1 */
    int around;                        /* the ENTER of the innermost recurrence in which the place before the event is; -1 */
    int match;                         /* ENTER, LEAVE: the other one */
    const struct recur *recur;
    int content;                       /* of `to` behind it, where proved to be shared; -1 */
    int *contents;                     /* ENTER, LEAVE, instead: by buffer, as a step begins; behind the last step */
};

struct side {
    const struct program *p;
    struct items span;
    struct event *event; int nevents;  /* ir/equal_events.c */
    int *initial;                      /* by buffer: the content that it comes with; -1: only this side has it */
};

/* event: behind which one of each side it is there; -1: from the beginning. */
struct content { struct reach range; enum type type; int event[2]; };

/* While the value of one general step is asked for: what the state holds before that step is a content of its own. */
struct open_state {
    bool on;
    const struct side *side;
    int enter, buffer, step, content;  /* step: the dimension that is the step */
};

struct equal {
    isl_ctx *ctx;
    struct arena arena;
    int nodes;                         /* operations that were looked at; where values are read more than once along a chain they multiply */
    struct side side[2];
    struct content content[MAX_CONTENTS];
    int ncontents;
    uint32_t laws, used;               /* what may be used of floats; what was used at all */
    int before[2];                     /* what is compared: the buffer before these events */
    int depth;
    int shallow;                       /* 1 + a buffer: reads of others are contents of their own, for ranges alone; 0 */
    bool failed;                       /* too large, or nothing is known of it: not proved */
    const char *why;
    struct lemma *lemmas;              /* proved so far */
    struct known **known;              /* ir/equal_known.c: of the proof at hand; NULL: nothing */
    struct open_state open;
    isl_set **kept;
    int nkept, kept_cap;
};

/* Where a statement's value is asked for: dimensions, the domain, and each axis of the program as a row over them (NULL: it has none there). */
struct spot {
    isl_set *dom;
    int n;
    const char **name;
    int64_t **axis;
    uint64_t compared;                 /* bit a: axis a counts the steps of a recurrence; contents at the beginning of a step are of the one that the row says */
};

/* What is asked once in a proof (ir/equal_known.c): of what, with which rows, at which spot. */
enum { QUESTION_ROWS = 24 };
enum asked { ASKED_ELEMENT, ASKED_SAME, ASKED_EQUAL };
struct question {
    enum asked kind;
    const void *of[2];
    int at[4];                         /* other numbers that the answer depends on */
    int nrows, width[QUESTION_ROWS];
    const int64_t *row[QUESTION_ROWS];
    const struct spot *spot;           /* NULL: none */
    bool unknown;                      /* it is neither looked up nor noted */
};
void question_row(struct equal *, struct question *, const int64_t *row, int n);
struct form *known_form(struct equal *, const struct question *);      /* NULL: not known */
void known_note_form(struct equal *, const struct question *, const struct form *);
bool known_answer(const struct equal *, const struct question *, bool *holds); /* false: not known */
void known_note_answer(struct equal *, const struct question *, bool holds);
void known_forget(struct equal *);

bool equal_stop(struct equal *, const char *why);                 /* false */
isl_set *equal_keep(struct equal *, isl_set *);                   /* freed with the checker; NULL fails */
int64_t *equal_row(struct equal *, int n);
isl_set *set_with(struct equal *, isl_set *, const int64_t *row, int n, bool equality);   /* takes the set */
void row_end(int64_t *up, const int64_t *at, int n, const struct axis *);   /* up >= 0: `at`, a row over n dimensions, is below the end of the axis */
void row_add_extent(int64_t *row, int64_t extent, int size);        /* + extent - 1; size: 1 + the size that the extent is, a dimension; 0 */
bool set_covers(const isl_set *, const isl_set *dom);              /* the set is there everywhere in the domain */
isl_set *set_more(isl_set *, int n);                              /* n dimensions more at the end */
isl_map *set_as_map(isl_set *, int n);                            /* of its first n dimensions to the others; the set is kept */

/* equal_where.c: the points of the spot at which the comparison holds, or at which the truth is true, where it is made of comparisons of indices; NULL: it is not. */
isl_set *form_compared(struct equal *, enum opcode, const struct form *, const struct form *, const struct spot *);
isl_set *form_truth(struct equal *, const struct form *, const struct spot *);
isl_set *where_joined(struct equal *, enum opcode, isl_set *, isl_set *); /* by OP_AND or OP_OR; NULL where one is */

/* equal_count.c: of a term of a form, dimensions that no atom has become a factor, or one. Its atoms are an array of its own. */
void term_count(struct equal *, const struct form *, struct term *);

/* equal_spread.c: what a reduction finds at one point of dimensions of its contributions' own becomes a dimension of its points, where that is so at all of them. */
void atom_spread(struct equal *, struct atom *);

struct form *form_new(struct equal *, enum type, int m);
struct term *form_add(struct equal *, struct form *);
void form_join(struct equal *, struct form *, const struct form *, int sign);
void form_drop_zeros(struct equal *, struct form *);                 /* of a sum: 0 + x = x */
struct form *form_product(struct equal *, const struct form *, const struct form *, enum type, const struct spot *);
struct form *form_operation(struct equal *, enum opcode, enum type to, enum type from, struct form *const *arg, int nargs,
                            const struct spot *);
struct form *form_shift(struct equal *, struct form *, int64_t by, const struct spot *);
struct form *form_cast(struct equal *, struct form *, enum type to, enum type from, const struct spot *);
struct form *form_retyped(struct equal *, const struct form *, enum type);   /* the same numbers, where they are of that type too */
struct form *form_literal(struct equal *, enum type, union value, const struct spot *);
struct form *form_within(struct equal *, const struct form *, const struct spot *);   /* its terms on the spot's domain alone */
struct reach form_range(struct equal *, const struct form *);
struct reach type_reach(enum type);
bool reach_fits(struct reach, enum type);
bool form_constant(const struct form *, const isl_set *dom, union value *);   /* one value everywhere in the domain, which has the context's dimensions */
bool atom_constant(struct equal *, const struct term *, const struct atom *, int k, union value *); /* the argument is so, wherever the term is */

/* What the items execute; false: there is a call among them. */
bool side_open(struct equal *, struct side *, const struct program *, struct items);
/* Events one after the other, a recurrence with all its steps being one: the next one; does it read the buffer, does it write it: the event behind which
 * the buffer is as it leaves it (-1: it does not). */
int event_behind(const struct side *, int);
bool event_reads(const struct side *, int, int buffer);
int event_writes(const struct side *, int, int buffer);
/* The last event before this one that writes the buffer, -1: a statement, a copy; ENTER if that can be in another step, LEAVE of a recurrence before. */
int event_writer(const struct side *, int before, int buffer);
int *event_content(const struct side *, int event, int buffer);
int event_around(const struct side *, int before);                /* the ENTER of the innermost recurrence around the place before the event; -1 */

/* The content that the buffer has before event `before` of the side, as the other side has it too; -1: none. *writer: as event_writer says. */
int equal_content(const struct equal *, const struct side *, int before, int buffer, int *writer);
bool equal_writes_all(const struct program *, const struct stmt *);   /* each element of its buffer is written; false: not known */
/* The element of a buffer before event `before` of the side, at these indices. */
struct form *form_element(struct equal *, struct side *, int before, int buffer, int64_t *const *row, const struct spot *);
/* Of a recurrence that only this side has, or at another step than the one that is compared (equal_steps.c); NULL: it is not known. Behind it: as
 * the only step leaves the element that writes it, or as it was before. In a step: what this step alone writes, and has not yet. A state's next
 * value, when the step has made it (NULL: it is no such value). */
struct form *form_behind(struct equal *, struct side *, int leave, int buffer, int64_t *const *row, const struct spot *);
struct form *form_untouched(struct equal *, struct side *, int enter, int buffer, int64_t *const *row, const struct spot *);
struct form *form_next_state(struct equal *, struct side *, int before, int buffer, int64_t *const *row, const struct spot *);
/* The state of the recurrence that begins at `enter` behind its first `end` steps (a row over the spot), where each only scales it and adds to
 * it: from what it was before them (equal_linear.c). NULL: it is not such a state, or floats may not be summed in another order. */
struct form *form_unrolled(struct equal *, struct side *, int enter, int buffer, const int64_t *end, int64_t *const *row, const struct spot *);
/* The state before the step that is asked for meanwhile; NULL: it is another state, or step. */
struct form *form_open_state(struct equal *, const struct side *, int enter, int buffer, int64_t *const *row, const struct spot *);
/* A copy in which recurrences among items a have as many steps as those of the other program that write the same: n·L + m steps as n of L each,
 * and m; a grows with them. NULL: there are none (equal_cut.c). */
struct program *equal_cut(const struct program *, struct items *a, const struct program *other, struct items b);

struct spot spot_without(struct equal *, const struct spot *, isl_set *gone);   /* keeps the set */
int64_t *row_longer(struct equal *, const int64_t *row, int n, int more);   /* over more dimensions */
int content_new(struct equal *, enum type);                       /* that nothing is known of */
struct form *content_form(struct equal *, int content, enum type, int ndims, int64_t *const *row, const struct spot *);
/* `all`, over the points of `in`, reduced by the operation, from `first` on; of 16 bits: rounded at each step. */
struct form *form_folded(struct equal *, enum opcode, enum type, struct form *all, const struct spot *in, struct form *first, const struct spot *);
/* With its indices applied: the form over other dimensions. */
struct form *form_at(struct equal *, const struct form *, int64_t *const *row, const struct spot *);
/* The same value at every point of the domain? */
bool form_equal(struct equal *, const struct form *, const struct form *, const struct spot *);

bool equal_is_empty(struct equal *, isl_set *);
bool term_bounds(const struct term *, int dim, int64_t *lo, int64_t *hi);
/* Both forms as functions of one integer that do not decrease, compared where they step. */
bool form_equal_monotone(struct equal *, const struct form *, const struct form *, const struct spot *);

#endif
