/* Inside the search: the groups of one binding, chosen one after another. */
#ifndef ISAMAP_MAPPER_SEARCH_INT_H
#define ISAMAP_MAPPER_SEARCH_INT_H

#include "mapper/mapper_int.h"

struct chooser {
    struct search *search;
    const struct needle *needle;
    const struct site *site;
    const struct binding_set *bound;
    const struct automorphisms *own;
    uint64_t class[MAX_NEEDLE_AXES]; /* haystack axes that may stand on each needle axis */
    struct group group[MAX_NEEDLE_AXES];
    bool representative; /* the groups as they are: of those that symmetries turn into each other */
    int first;           /* of the pair's mappings */
    const uint64_t *allowed;
};

struct group group_of(const struct chooser *, int x, uint64_t mask); /* in the best order */
int count_direct(const struct chooser *, int x, const struct group *);
bool search_spent(struct search *); /* counts a step; true: the bound is reached */
/* The groups as they are: a mapping, a failure, or nothing. */
void search_leaf(struct chooser *, uint64_t used);
/* Subsets of the classes, best first by padding and packing; the best few mappings are kept. */
void choose_best(struct chooser *);

#endif
