/* Inside the interpreter with bounds: the values of a program's buffers. */
#ifndef ISAMAP_IR_INTERP_BOUND_H
#define ISAMAP_IR_INTERP_BOUND_H

#include "ir/bound.h"
#include "ir/interp_int.h"

/* An element of a buffer that is not exact. Bounds are rounded up; the sign of `below` is set where
 * the value is loose. */
struct shade {
    union value v;
    float below, above;
};

/* A buffer: its elements in its own type while all of them are exact, else with bounds. Neither:
 * not written yet. */
struct shadow {
    unsigned char *native;
    bool owned; /* native is */
    struct shade *at;
    int granule; /* of all elements of native floats; ANY_GRANULE + 1: not looked for */
};

struct bounds {
    const struct program *p;
    struct shadow *buffer;
    int *last_item; /* by buffer: where temporaries end */
    struct diags *diags;
    int64_t time[MAX_AXES];
    struct leeway leeway;
};

/* One statement under way. */
struct bound_walk {
    struct walk w;
    struct shadow *dst;
    const struct shadow **read; /* by read of the statement */
    struct bounded *value;      /* of each op */
    const struct leeway *leeway;
    const bool *crisp;          /* by op: only a step uses it */
    double unit;                /* coarsest unit roundoff of what is read */
    bool product, own;          /* the value is a product; the statement reads its destination */
};

struct shade shade_of(const struct bounded *);
struct bounded shade_open(const struct shade *);
struct bounded shadow_load(const struct shadow *, enum type, int64_t element);
int shadow_granule(struct shadow *, const struct buffer *);

/* By op of a statement: whether nothing but a step (rounding, comparison, cast to an integer) uses
 * its result, which is rounded once then. */
bool *stmt_crisp(struct arena *, const struct program *, const struct stmt *);
double stmt_unit(const struct program *, const struct stmt *);

/* A sum of plain products whose innermost axis is summed over. False: it is not one, nothing was
 * done. */
bool walk_bounded_products(struct bounds *, struct bound_walk *);
bool walk_bounded_integers(struct bound_walk *);

#endif
