/* Statements of whose points few count. */
#ifndef ISAMAP_IR_PICK_H
#define ISAMAP_IR_PICK_H

#include "ir/program.h"

/* The statement changes nothing but where the axis has one of n values, the results of these
 * operations. They vary with no picked axis but those before it. */
enum { MAX_PICKED = 4 };
struct pick {
    int axis, op[MAX_PICKED], n;
    int truth; /* the operation that says so: true where the axis has one of them */
};
/* Writes what is known of each picked axis to out[MAX_AXES]; how many there are. */
int stmt_picks(const struct program *, const struct stmt *, struct pick *out);
/* At how many of these points of the statement a fallback looks: of such ones at few. */
int64_t stmt_looks_at(const struct program *, const struct stmt *, int64_t points);

#endif
