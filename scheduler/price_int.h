/* Inside pricing: what one plan's cost is summed up in. */
#ifndef ISAMAP_SCHEDULER_PRICE_INT_H
#define ISAMAP_SCHEDULER_PRICE_INT_H

#include "scheduler/scheduler_int.h"

struct stream { /* the fills of one hold by a queue that runs ahead, or its drains */
    int queue, bus, depth, slots;
    double trips, cycles, latency, issues; /* how often; each */
};
struct pricing {
    struct work *w;
    const struct moves *moves;
    const struct nest *nest;
    struct plan *plan;
    double queue[MAX_QUEUES], bus[MAX_BUSES];
    struct stream fill[MAX_OPERANDS * (MAX_VIA + 1)];
    int nfills;
    struct stream drain; /* of the core's result; trips 0: none */
    double bubble, tail; /* of the instructions' queue: it waits; after its last instruction */
};

void charge(struct pricing *, const struct instr *, double times, double cycles, double bytes);

/* pipe.c */
/* Entries of the queue that so many issues are, the machine running the loops that it can. */
double pipe_entries(const struct pricing *, const struct task *, double issues);
/* The chain's issues, and the drains of its results. */
void pipe_chain(struct pricing *, const struct task *core);
/* Cycles before the instructions can begin, while they wait, and after them (SCHEDULING §3). */
double pipe_waits(struct pricing *, const struct task *core);

#endif
