/* A long axis of elementwise work as two, rows and lanes, for instructions that take several rows of a fixed number of lanes at a time. */
#ifndef ISAMAP_MAPPER_ROWS_H
#define ISAMAP_MAPPER_ROWS_H

#include "ir/choice.h"
#include "ir/program.h"

struct needles;

/* A copy in which dimensions are two, so that elements lie as before, arguments too: program_spread makes the same of the program as it was.
 * The caller's; NULL: nothing is split. A question for each set of axes that can only be split together. */
struct program *split_rows(const struct program *, const struct needles *, struct decider *);

#endif
