#include "approaches/approaches.h"

#include <stddef.h>

const struct approach *const approaches[] = {&approach_heuristic, &approach_instructions,
                                             &approach_random, NULL};
