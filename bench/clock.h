/* Fair timing of several contenders: they take turns, each turn a block of calls that is long
 * enough for the clock. */
#ifndef ISAMAP_BENCH_CLOCK_H
#define ISAMAP_BENCH_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

struct contender {
    bool (*run)(void *user);
    /* A device times its own calls: the median of so many, in turns over copies of the arrays that
     * take `span` bytes together. NULL: calls of `run` are timed here. */
    bool (*measure)(void *user, int calls, int64_t span, double *seconds);
    int64_t span;
    void *user;
    double *seconds; /* of one call, for each round */
    int disturbed; /* out: rounds whose time is the processor's, because others had it in between */
};

/* Warm: every block follows a call that is not timed. A block during which others had a processor
 * is repeated a few times and the least disturbed one taken; if they had it each time, the
 * processor time of one thread stands for its time. Several threads: between blocks those of the
 * contender before get time to fall asleep. False as soon as a call fails. */
bool clock_rounds(struct contender *, int n, int rounds, int threads);

double clock_median(const double *, int n);

#endif
