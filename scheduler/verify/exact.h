/* Which places have their bytes told apart in the walk of the order of queues (order.c). Of the
 * others a whole slot is touched by each access. */
#ifndef ISAMAP_SCHEDULER_VERIFY_EXACT_H
#define ISAMAP_SCHEDULER_VERIFY_EXACT_H

#include "scheduler/verify/verify_int.h"

enum { EVERYWHERE = -1 };

/* place: [nplaces] of the node that is walked. */
struct exact {
    struct verify *v;
    bool *place, any;
    struct {
        int place, node;
    } *at; /* node: a number of a node at the top level, or EVERYWHERE */
    int n, cap;
};

void exact_open(struct exact *, struct verify *);
void exact_free(struct exact *);
void exact_at(struct exact *, int node); /* the walk comes to that node */
/* Accesses to a memory in that node, the last one to the place (or -1), were found out of order:
 * more is told apart from now on. First the place in the node, then the place everywhere, then the
 * memory. False: all of it was. */
bool exact_more(struct exact *, int memory, int place, int node);
#endif
