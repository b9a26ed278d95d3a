/* What searches found, by what they looked at: equal nests are planned once. */
#ifndef ISAMAP_SCHEDULER_PLAN_SEARCH_KNOWN_H
#define ISAMAP_SCHEDULER_PLAN_SEARCH_KNOWN_H

#include "ir/arena.h"
#include <stdbool.h>
#include <stdint.h>

struct known_searches;
struct memo;
struct moves;
struct nest;
struct plan;
struct work;

/* All that a search's answer depends on, beside the machine and the options that stay. */
struct nest_key {
    uint64_t hash;
    int64_t *word;
    int n, cap;
};

struct known_search {
    struct known_search *next;
    struct nest_key key;
    int64_t grain_most; /* of the nest, afterwards */
    bool way_single;    /* likewise */
    int64_t steps;      /* plans that it could look at */
    int64_t enough;     /* with no fewer it finds the same; more than `steps`: these ended it */
    double cost;        /* of the best plan, where something fits */
    const void *found;  /* the end of a struct search; NULL: nothing fits */
    const struct plan *decided; /* with another answer to the mapper (options.trying); NULL: not yet */
};

/* nest_key.c: in `arena`; of the nest as it is to be planned now. */
struct nest_key nest_key(struct work *, const struct nest *, struct arena *);

/* search_known.c */
/* What a search finds that may look at so many plans; NULL: it is new. */
struct known_search *known_find(const struct known_searches *, const struct nest_key *,
                                int64_t steps);
/* With a copy of the key; what was found is still to be put in. */
struct known_search *known_add(struct known_searches *, const struct nest_key *);
struct arena *known_arena(struct known_searches *);
struct memo *known_times(struct known_searches *); /* cycles on the clock, by what was timed */
const struct moves *known_moves(struct known_searches *, struct work *); /* of the machine */

struct memo_entry {
    uint64_t hash; /* 0: free */
    double cost;
};
struct memo {
    struct arena *arena;
    struct memo_entry *at;
    int n, cap;
};

/* Costs by a hash: of points by their loops. */
struct memo *memo_new(struct arena *);
const double *memo_cost(const struct memo *, uint64_t hash); /* NULL: not known */
void memo_put(struct memo *, uint64_t hash, double cost);    /* while there is room */
void memo_change(struct memo *, uint64_t hash, double cost); /* of one that is known; else nothing */

#endif
