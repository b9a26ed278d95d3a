/* Long lists of like pairs of programs and machines. Sanitizers make each pair several times as
 * slow, and what they look for lies in code that many pairs share: with ISAMAP_EVERY=n, which
 * their build sets, a test takes each n-th. */
#ifndef ISAMAP_TESTS_SAMPLE_H
#define ISAMAP_TESTS_SAMPLE_H

#include <stdbool.h>
#include <stdlib.h>

static inline bool sampled(size_t k) {
    const char *every = getenv("ISAMAP_EVERY");
    size_t n = every ? strtoul(every, NULL, 10) : 1;
    return n < 2 || k % n == 0;
}

#endif
