/* Inside the interpreter: one statement prepared for running. */
#ifndef ISAMAP_IR_INTERP_INT_H
#define ISAMAP_IR_INTERP_INT_H

#include "ir/interp.h"

/* A form is an affine function of the axes, kept up to date while the axes count. */
struct lane {
    int flat; /* the form that is the element's number in its buffer */
    int dim;  /* with a fill: the first of ndims forms, the indices; else -1 */
    const struct access *access;
    const struct buffer *buffer;
    unsigned char *data;
};

struct walk {
    const struct program *p;
    const struct stmt *s;
    struct arena arena;
    int naxes; /* of the domain, outermost first */
    int *axis;
    int64_t *at;       /* the axes' values */
    int nforms, where; /* forms from `where` on are the constraints */
    int64_t *form;     /* values; wrap where they are not used */
    int64_t *step;     /* [axis of the domain][form] */
    struct lane dst, *read;
    union value *value;  /* of each op */
    const int64_t *from; /* what the value of an axis of the domain begins with; NULL: 0 */
    int64_t *axis_value; /* of each of the program's axes: recurrences' and the domain's */
};

/* time[a]: the step of recurrence axis a */
void walk_open(struct walk *, const struct program *, const struct stmt *, void *const *data,
               const int64_t *time);
void walk_run(struct walk *);
void walk_close(struct walk *);

/* Runs a plain sum of products, or a plain copy; false: it is not one, nothing was done. */
bool walk_sum_of_products(struct walk *);
bool walk_copy(struct walk *);
bool walk_carry(struct walk *, int from); /* counts axes from, from - 1, …; false: done */
bool walk_inside(const struct walk *);    /* the constraints hold at this point */
bool walk_empty(const struct walk *);     /* an axis has no values */

/* One operand along the innermost axis: inside its buffer for first <= k < last, the fill
 * elsewhere. */
struct strip {
    const struct lane *lane;
    int64_t step, first, last;
    union value fill; /* as it stands in memory */
};
/* step: of each form along the innermost axis, whose extent is n */
struct strip strip_open(const struct lane *, const int64_t *step);
void strip_find(const struct walk *, struct strip *, const int64_t *step, int64_t n);

/* A factor of a product: the read under at most one cast to the product's type; -1: something else. */
int factor_read(const struct stmt *, int op, enum type product);

void stmt_run_plainly(const struct program *, const struct stmt *,
                      void *const *data); /* never the fast path: for tests */

#endif
