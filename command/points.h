/* Values of the machine's parameters that a command goes through: options --set NAME=LOW..HIGH and
 * NAME=V,V, each value of one with each of the others. */
#ifndef ISAMAP_COMMAND_POINTS_H
#define ISAMAP_COMMAND_POINTS_H

#include "command/isamap_int.h"

enum { MOST_SWEPT = 4, MOST_VALUES = 64, MOST_POINTS = 1024 };

struct swept {
    const char *name;
    int64_t value[MOST_VALUES];
    int n;
};

struct points {
    struct swept set[MOST_SWEPT];
    int nset, n; /* n: all combinations; the last parameter changes fastest */
};

/* From the option "set": what it points to lives in the arena. Without one there is one point of no
 * parameters. False after reporting. */
bool points_parse(isamap *, struct arena *, struct points *);
int64_t points_value(const struct points *, int point, int set);
/* The user's parameters and the point's. */
struct pairs points_params(const struct points *, int point, const struct pairs *given,
                           struct arena *);

#endif
