/* Which places have their bytes told apart in the walk of the order of queues (order.c). Of the
 * others a whole slot is touched by each access. */
#ifndef ISAMAP_SCHEDULER_VERIFY_EXACT_H
#define ISAMAP_SCHEDULER_VERIFY_EXACT_H

#include "scheduler/verify/verify_int.h"

/* A place, or where that is -1 all of a memory, from one node at the top level to another. */
struct exact_range {
    int place, memory, from, to;
};

/* place: [nplaces] of the node that is walked; missed: [nplaces], and behind them memories and
 * states: accesses of this walk to it in this node were out of order, so that more of them say
 * nothing new; before: ranges of earlier walks. */
struct exact {
    struct verify *v;
    bool *place, *missed, any;
    struct exact_range *at;
    int n, cap, before;
};

void exact_open(struct exact *, struct verify *);
void exact_free(struct exact *);
void exact_begin(struct exact *);        /* a walk begins */
void exact_at(struct exact *, int node); /* the walk comes to that node */
bool exact_missed(const struct exact *, int memory, int place);
/* Accesses to a memory in that node, the last one to the place (or -1), were found out of order:
 * more is told apart in the next walk. First the place in the node, then the place everywhere, then
 * the memory. So a walk goes on, and one walk finds all places that need it, however long the
 * schedule is. False: all of it was told apart in this walk. */
bool exact_more(struct exact *, int memory, int place, int node);
#endif
