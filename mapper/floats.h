/* Programs that keep floats of 16 bits, for machines whose instructions compute in f32. */
#ifndef ISAMAP_MAPPER_FLOATS_H
#define ISAMAP_MAPPER_FLOATS_H

#include "mapper/mapper.h"

/* Where the machine converts a 16-bit type to f32 and back: statements at the top level and in the
 * bodies of recurrences there read images in f32, one for each buffer, and results are rounded by
 * statements of their own. What no step writes has its image before the first step. Copies, and
 * products that an instruction makes of the type itself, stay. Exact. How many statements were
 * added. */
int floats_in_f32(struct program *, const struct needles *);

#endif
