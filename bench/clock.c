#include "bench/clock.h"
#include "ir/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const double BLOCK_SECONDS = 2e-3, ENOUGH = 0.97, PATIENCE = 0.1;
enum {
    TRIES = 6,
    MAX_CALLS = 100000,
    LEAST_MEASURED = 5,
    MAX_MEASURED = 200,
    PAUSE_NANOSECONDS = 40000000
};

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double clock_median(const double *v, int n) {
    double *s = memory_bytes((size_t)n * sizeof *s);
    memcpy(s, v, (size_t)n * sizeof *s);
    qsort(s, (size_t)n, sizeof *s, compare);
    double m = n % 2 ? s[n / 2] : (s[n / 2 - 1] + s[n / 2]) / 2;
    free(s);
    return m;
}

static double now_of(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double clock_now(void) {
    return now_of(CLOCK_MONOTONIC);
}

/* Time that passed for one call, and how many processors this process had on average. */
static bool block(const struct contender *c, int calls, double *seconds, double *share) {
    *share = INFINITY; /* nobody here disturbs a device */
    if (c->measure) return c->measure(c->user, calls, c->span, seconds);
    double cpu = now_of(CLOCK_PROCESS_CPUTIME_ID), start = clock_now();
    for (int i = 0; i < calls; i++)
        if (!c->run(c->user)) return false;
    double passed = clock_now() - start;
    *seconds = passed / calls;
    *share = passed > 0 ? (now_of(CLOCK_PROCESS_CPUTIME_ID) - cpu) / passed : 1;
    return true;
}

/* On a shared machine: once more while somebody else had a processor, then the block where that was
 * least; of one thread its processor time, which for several says nothing. */
static bool undisturbed(struct contender *c, int calls, int threads, double *seconds) {
    double best = -1, s, share, enough = ENOUGH * threads, start = clock_now();
    for (int i = 0; best < enough && (i == 0 || (i < TRIES && clock_now() - start < PATIENCE));
         i++) {
        if (!block(c, calls, &s, &share)) return false;
        if (share <= best) continue;
        best = share;
        *seconds = share < ENOUGH && threads == 1 ? s * share : s;
    }
    c->disturbed += best < ENOUGH && threads == 1;
    return true;
}

/* How many calls make a block: the second call says, the first one may be cold. */
static bool calibrate(struct contender *c, int threads, int *calls) {
    double once, share;
    if (!block(c, 1, &once, &share) || !undisturbed(c, 1, threads, &once)) return false;
    double n = once > 0 ? BLOCK_SECONDS / once : MAX_CALLS;
    int most = c->measure ? MAX_MEASURED : MAX_CALLS, least = c->measure ? LEAST_MEASURED : 1;
    *calls = n < least ? least : n > most ? most : (int)n;
    c->disturbed = 0;
    return true;
}

static bool turn(struct contender *c, int calls, int threads, int round) {
    double cold, share;
    if (threads > 1) nanosleep(&(struct timespec){.tv_nsec = PAUSE_NANOSECONDS}, NULL);
    return block(c, 1, &cold, &share) && undisturbed(c, calls, threads, &c->seconds[round]);
}

bool clock_rounds(struct contender *c, int n, int rounds, int threads) {
    int *calls = memory_array((size_t)n + 1, sizeof *calls);
    bool ok = calls != NULL;
    for (int i = 0; i < n && ok; i++) ok = calibrate(&c[i], threads, &calls[i]);
    for (int r = 0; r < rounds && ok; r++)
        for (int i = 0; i < n && ok; i++) ok = turn(&c[i], calls[i], threads, r);
    free(calls);
    return ok;
}
