/* Places in the order of their memories and addresses. */
#ifndef ISAMAP_SCHEDULER_VERIFY_SPAN_H
#define ISAMAP_SCHEDULER_VERIFY_SPAN_H

#include "scheduler/schedule/schedule.h"

struct span {
    int place;
    const struct place *at;
};

static inline int span_by_address(const void *a, const void *b) {
    const struct span *x = a, *y = b;
    if (x->at->memory != y->at->memory) return x->at->memory - y->at->memory;
    if (x->at->address != y->at->address) return x->at->address < y->at->address ? -1 : 1;
    return x->place - y->place;
}

#endif
