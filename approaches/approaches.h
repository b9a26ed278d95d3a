/* Who answers the compiler's questions (ISA Mapper §4). An approach only picks among legal
 * candidates: a bad one gives a slow program, never a wrong one. One const struct each, listed in
 * one array. */
#ifndef ISAMAP_APPROACHES_APPROACHES_H
#define ISAMAP_APPROACHES_APPROACHES_H

#include "ir/choice.h"

extern const struct approach
    approach_heuristic; /* least analytic cost; spaces by growth and local search */
extern const struct approach
    approach_instructions; /* the same, but what instructions can do is never the fallback's */
extern const struct approach approach_random; /* any legal candidate, by the seed */

extern const struct approach *const approaches[]; /* NULL-terminated; the first is the default */

#endif
