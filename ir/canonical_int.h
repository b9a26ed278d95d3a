/* Inside program_canonical: colours, which tell axes and buffers apart by use, whatever their names
 * and numbers. */
#ifndef ISAMAP_IR_CANONICAL_INT_H
#define ISAMAP_IR_CANONICAL_INT_H

#include "ir/program.h"

struct colours {
    uint64_t *axis, *buffer; /* equal only for what is used alike (up to collisions) */
    uint64_t **op;           /* [statement][op]: of the expression below */
};

uint64_t colour_mix(uint64_t, uint64_t);
uint64_t colour_value(enum type, union value);
/* Colour refinement over the statements in the order of the body; results in the arena. */
struct colours program_colours(const struct program *, struct arena *);

#endif
