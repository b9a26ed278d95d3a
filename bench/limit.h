/* What a machine can do at best: its multiply-accumulate rate, and the time that a program's necessary work takes (docs/bench.md). */
#ifndef ISAMAP_BENCH_LIMIT_H
#define ISAMAP_BENCH_LIMIT_H

#include "scheduler/schedule/schedule.h"

/* The instruction with the most MACs a cycle among those that multiply these two types. */
struct mac_unit {
    int instr;                         /* -1: none */
    struct program *semantics;         /* bound at its largest sizes; owned */
    int stmt;                          /* the sum of products in it */
    double rate;                       /* MACs a cycle of one queue: width / interval */
};
void mac_unit_find(const struct machine *, enum type a, enum type b, struct mac_unit *);
void mac_unit_free(struct mac_unit *);

/* The types of the two factors of the program's largest sum of products; false: it has none. */
bool program_mac_types(const struct program *, enum type *a, enum type *b);

/* At most `threads` (0: any number) instances of the units around this one. */
int64_t parallel_units(const struct machine *, int unit, int threads);

/* The largest over queues and buses: a queue's intervals for the points of the program's statements, each by the instruction that the schedule
 * uses, sums of products by the best one; a bus's time for the compulsory bytes, where one bus alone leads to or from the home memory. */
struct limit {
    double cycles;
    const char *by;                    /* the queue or bus */
};
struct limit limit_of(const struct schedule *, const struct program *, int threads);

#endif
