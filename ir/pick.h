/* Sums of which few terms count. */
#ifndef ISAMAP_IR_PICK_H
#define ISAMAP_IR_PICK_H

#include "ir/program.h"

/* The terms of the sum over `axis` are 0 but where the axis has one of n values, the results of these
 * operations, which do not vary with it. */
enum { MAX_PICKED = 4 };
struct pick {
    int axis, op[MAX_PICKED], n;
};
bool stmt_picks(const struct program *, const struct stmt *, struct pick *);
/* At how many of these points of the statement a fallback looks: of such sums at few. */
int64_t stmt_looks_at(const struct program *, const struct stmt *, int64_t points);

#endif
