/* Ranges of values, from types and constants: what an integer sum can reach, and which floats are
 * exact. A mapping or rewrite that needs a narrower type asks here whether it can overflow. */
#ifndef ISAMAP_MAPPER_RANGE_H
#define ISAMAP_MAPPER_RANGE_H

#include "ir/program.h"

enum { GRAIN_NONE = -10000 }; /* any value between */

/* lo <= x <= hi, and x is a multiple of 2^grain. Bounds beyond 2^53 are rounded outwards. Floats
 * that may be NaN have no bounds. */
struct range {
    double lo, hi;
    int grain;
    bool wraps; /* of a value in an integer type: the exact one may leave the type */
};

struct range range_of_type(enum type);
/* What elements of a buffer may be just before a statement; `program.nstmts`: at the end. Follows
 * writers back a few statements, then takes the type. */
struct range range_of_buffer(const struct program *, int buffer, int before);
/* Of each op of a statement; `out` has nops elements. */
void ranges_of_ops(const struct program *, int stmt, struct range *out);
/* The same of the statement by itself: what it reads may be anything of its type. */
void ranges_of_ops_alone(const struct program *, int stmt, struct range *out);
/* Of the destination after the statement, every partial sum included. */
struct range range_of_result(const struct program *, int stmt);
bool range_fits(const struct range *, enum type); /* each value is one of the type, exactly */

#endif
