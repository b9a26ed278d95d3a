/* Programs that keep floats of 16 bits, for machines whose instructions compute in f32. */
#ifndef ISAMAP_MAPPER_FLOATS_H
#define ISAMAP_MAPPER_FLOATS_H

#include "mapper/mapper.h"

/* Where the machine converts a 16-bit type to f32 and back: statements at the top level and in the
 * bodies of recurrences there read images in f32, one for each buffer, and results are rounded by
 * statements of their own. What no step writes has its image before the first step. Copies stay,
 * and products that an instruction makes of the type itself, unless they cost less in f32; each
 * such choice is a question. Exact. `refused`: what the scheduler found no way to do; NULL: none.
 * How many statements were added. */
int floats_in_f32(struct program *, const struct needles *, const struct refusals *refused,
                  struct decider *);

/* floats_price.c: does an instruction multiply the types that the statement's factors are stored
 * in? And should it? `wide`: the program in which statement `then` is the same in f32; its
 * operations are put in order. Products that a device makes stay. */
bool product_is_native(const struct program *, const struct needles *, int stmt);
bool product_stays(struct program *, int stmt, struct program *wide, int then,
                   const struct needles *, const struct refusals *refused, struct decider *);

#endif
