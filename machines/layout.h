/* Layouts (FORMAT §4): `i,j -> j/16, i/16, i%16, j%16`. Indices name the buffer's dimensions in order; places are affine with floor / and %,
 * slowest first; `unit:` before a place says which instance holds the element. */
#ifndef ISAMAP_MACHINES_LAYOUT_H
#define ISAMAP_MACHINES_LAYOUT_H

#include "ir/kernel.h"
#include <stdint.h>

/* quasi-affine: number, index, or (a op b) with op one of + - * / % */
struct lexpr {
    char op;                           /* 'n' number, 'i' index, else the operator */
    int64_t number;
    int index;
    struct lexpr *a, *b;
};

struct layout_place {
    const char *unit;                  /* NULL: inside the instance's memory */
    struct lexpr *expr;
};

struct layout {
    const char **index; int nindices;
    struct layout_place *place; int nplaces;
};

struct layout *layout_parse(struct arena *, const char *text, const char *file, int line, struct diags *);
/* The same, where places may also use these names as numbers. An index hides a name. */
struct layout *layout_parse_with(struct arena *, const char *text, const struct bindings *, const char *file, int line, struct diags *);
int64_t lexpr_eval(const struct lexpr *, const int64_t *index);
bool lexpr_uses(const struct lexpr *, int index); /* does the index occur? */
/* Extents of the places for a buffer of these extents (largest value + 1). Exact, except that a place which uses one index several times is
 * bounded from above when that needs more than 2^20 points. */
void layout_extents(const struct layout *, const int64_t *buffer_extent, int64_t *place_extent);

enum { MAX_PLACES = 64 };
/* Strides of dense places: one for each place without a unit; with map NULL those of the dimensions (row-major). Worked out once for many
 * elements: that takes longer than an offset. */
void layout_strides(const struct layout *, int ndims, const int64_t *buffer_extent, int64_t stride[MAX_PLACES]);
/* Element offset inside the operand: Σ place * stride; NULL: strides of dense places. */
int64_t layout_offset(const struct layout *, int ndims, const int64_t *buffer_extent, const int64_t *stride, const int64_t *index);
/* Elements from the first to the last that the operand touches, both included. Exact up to 2^20 elements or when each place depends on indices
 * of its own; an upper bound otherwise. An empty buffer spans 0. */
int64_t layout_span(const struct layout *, int ndims, const int64_t *buffer_extent, const int64_t *stride);

#endif
