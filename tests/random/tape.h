/* Every random choice is drawn from a tape: the tape of a failing program is made smaller until
 * nothing smaller fails (choice 0 is always the simplest), so a generator that draws its choices in
 * order is shrunk for free. */
#ifndef ISAMAP_TESTS_RANDOM_TAPE_H
#define ISAMAP_TESTS_RANDOM_TAPE_H

#include <stdbool.h>
#include <stdint.h>

enum { TAPE = 2048 };

struct tape {
    int at[TAPE], n,
        pos; /* the first n choices are replayed, the rest is random or, without s, 0 */
    uint64_t s;
};

/* One of 0 to n - 1. */
static inline int pick(struct tape *t, int n) {
    int x = 0;
    if (t->pos >= 0 && t->pos < t->n) {
        x = t->at[t->pos] % n;
    } else if (t->s) {
        t->s = t->s * 6364136223846793005u + 1442695040888963407u;
        x = (int)((t->s >> 33) % (uint64_t)n);
    }
    if (t->pos < TAPE) t->at[t->pos++] = x;
    return x;
}

/* One time in n; the simplest choice is no. */
static inline bool rarely(struct tape *t, int n) {
    return pick(t, n) == n - 1;
}

#endif
