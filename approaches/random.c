#include "approaches/approaches.h"
#include "ir/memory.h"

#include <math.h>
#include <stdlib.h>

enum { WALK = 24 };

struct state {
    uint64_t s;
};

static uint64_t next(struct state *r) { /* splitmix64 */
    uint64_t z = r->s += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static void *open_state(uint64_t seed) {
    struct state *r = memory_bytes(sizeof *r);
    r->s = seed;
    return r;
}

static int choose(void *state, const struct question *q) {
    return (int)(next(state) % (uint64_t)q->ncandidates);
}

/* Legal steps from the start: one variable at a time to any value. */
static void move(void *state, const struct space *s, int *at) {
    for (int step = 0; step < WALK; step++) {
        int v = (int)(next(state) % (uint64_t)s->nvars), old = at[v];
        at[v] = (int)(next(state) % (uint64_t)s->nvalues[v]);
        if (!isfinite(s->cost(s->user, at))) at[v] = old;
    }
}

const struct approach approach_random = {.name = "random",
                                         .doc = "any legal candidate, by the seed",
                                         .open = open_state,
                                         .close = free,
                                         .choose = choose,
                                         .move = move};
