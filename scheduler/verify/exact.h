/* Which places have their bytes told apart in the walk of the order of queues (order.c). Of the
 * others a whole slot is touched by each access. */
#ifndef ISAMAP_SCHEDULER_VERIFY_EXACT_H
#define ISAMAP_SCHEDULER_VERIFY_EXACT_H

#include "scheduler/verify/verify_int.h"

/* A place, or where that is -1 all of a memory, from one node at the top level to another. */
struct exact_range {
    int place, memory, from, to;
};

/* place: [nplaces] of the node that is walked; first: [nmemories], the node in which accesses to
 * the memory were first found out of order; -1. */
struct exact {
    struct verify *v;
    bool *place, any;
    int *first;
    struct exact_range *at;
    int n, cap;
};

void exact_open(struct exact *, struct verify *);
void exact_free(struct exact *);
void exact_at(struct exact *, int node); /* the walk comes to that node */
/* Accesses to a memory in that node, the last one to the place (or -1), were found out of order:
 * more is told apart from now on. First the place in the node, then the place everywhere, then the
 * memory. Where another node showed the same before, so may those ahead, and each new walk begins
 * at the start: the memory is told apart as far ahead as the first such node lies behind, so that
 * walks are few in a long schedule. False: all of it was. */
bool exact_more(struct exact *, int memory, int place, int node);
#endif
