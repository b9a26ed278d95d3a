#include "bench/clock.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static const double BLOCK_SECONDS = 2e-3;
enum { TRIES = 6, MAX_CALLS = 100000, PAUSE_NANOSECONDS = 40000000 };

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double clock_median(const double *v, int n) {
    double *s = malloc((size_t)n * sizeof *s);
    if (!s) abort();
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

double clock_now(void) {
    return now_of(CLOCK_MONOTONIC);
}

/* Time that passed for one call, and what share of it this process had the processor. */
static bool block(const struct contender *c, int calls, double *seconds, double *share) {
    double cpu = now_of(CLOCK_PROCESS_CPUTIME_ID), start = clock_now();
    for (int i = 0; i < calls; i++)
        if (!c->run(c->user)) return false;
    double passed = clock_now() - start;
    *seconds = passed / calls;
    *share = passed > 0 ? (now_of(CLOCK_PROCESS_CPUTIME_ID) - cpu) / passed : 1;
    return true;
}

/* On a shared machine: once more while somebody else had the processor, and the block where that
 * was least. */
static bool undisturbed(const struct contender *c, int calls, double *seconds) {
    double best = -1, s, share;
    for (int i = 0; i < TRIES && best < 0.97; i++) {
        if (!block(c, calls, &s, &share)) return false;
        if (share <= best) continue;
        best = share;
        *seconds = s;
    }
    return true;
}

/* How many calls make a block: the second call says, the first one may be cold. */
static bool calibrate(const struct contender *c, int *calls) {
    double once, share;
    if (!block(c, 1, &once, &share) || !undisturbed(c, 1, &once)) return false;
    double n = once > 0 ? BLOCK_SECONDS / once : MAX_CALLS;
    *calls = n < 1 ? 1 : n > MAX_CALLS ? MAX_CALLS : (int)n;
    return true;
}

bool clock_rounds(const struct contender *c, int n, int rounds, bool pause) {
    int *calls = calloc((size_t)n + 1, sizeof *calls);
    double ignored, share;
    bool ok = calls != NULL;
    for (int i = 0; i < n && ok; i++) ok = calibrate(&c[i], &calls[i]);
    for (int r = 0; r < rounds && ok; r++)
        for (int i = 0; i < n && ok; i++) {
            if (pause) nanosleep(&(struct timespec){.tv_nsec = PAUSE_NANOSECONDS}, NULL);
            ok =
                block(&c[i], 1, &ignored, &share) && undisturbed(&c[i], calls[i], &c[i].seconds[r]);
        }
    free(calls);
    return ok;
}
