/* Fair timing of several contenders: they take turns, each turn a block of calls that is long
 * enough for the clock. */
#ifndef ISAMAP_BENCH_CLOCK_H
#define ISAMAP_BENCH_CLOCK_H

#include <stdbool.h>

struct contender {
    bool (*run)(void *user);
    void *user;
    double *seconds; /* of one call, for each round */
};

/* Warm: every block follows a call that is not timed. A block during which others had the processor
 * is repeated a few times. `pause`: between blocks threads of others get time to fall asleep. False
 * as soon as a call fails. */
bool clock_rounds(const struct contender *, int n, int rounds, bool pause);

double clock_median(const double *, int n);
double clock_now(void);

#endif
