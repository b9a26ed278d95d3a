/* Multiplying periods instead of walking them. period.c follows a loop until what stands at its
 * head repeats; snapshot.c says what that is, and moves it in time; touch.c remembers which pieces
 * of memories were used; steady.c asks whether the iterations that are left do the same, arrive.c
 * whether what they read is there at such times. */
#ifndef ISAMAP_SCHEDULER_CLOCK_PERIOD_INT_H
#define ISAMAP_SCHEDULER_CLOCK_PERIOD_INT_H

#include "scheduler/clock/clock_int.h"

/* All that times depend on when a loop's body begins, as two lists: numbers that must be the same,
 * and times. */
struct snapshot {
    int64_t trip;
    uint64_t *word;
    double *time;
    bool *leads; /* [ntimes]: what this time is behind or ahead of decides (snapshot.c) */
    bool *gap;   /* [ntimes]: between the time before and this one a server is free */
    struct located { /* where operands of what waits lie */
        const struct node *node;
        int part; /* operand; of a fallback twice the axis, and one more for its end */
        int64_t at;
    } *number;
    int nnumbers, cap_numbers;
    int nwords, cap_words, ntimes, cap_times;
    int64_t idle; /* words that pieces of memory with nothing to wait for would take: what a snapshot costs */
    struct touch *touch; /* that can still delay something; in the approximate case none */
    int ntouches, cap_touches;
    size_t touches;      /* how many there were so far */
    double *count; /* of the result */
};

void snapshot_take(struct engine *, int64_t trip, struct snapshot *);
void snapshot_free(struct snapshot *);
bool snapshot_alike(const struct snapshot *, const struct snapshot *);
/* What was written between three of them, in the approximate case. */
bool snapshot_writes_alike(const struct engine *, const struct snapshot *, const struct snapshot *, const struct snapshot *);
/* Times and results as they are after `periods` more of what was between `before` and `now`; with
 * `first`, a period before, sums grow as they did. */
void snapshot_advance(struct engine *, const struct snapshot *first, const struct snapshot *before,
                      const struct snapshot *now, int64_t periods);

/* The numbers of the result that grow, one after the other. */
int counts_number(const struct engine *);
void counts_take(struct engine *, double *out);
void counts_add(struct engine *, const double *before, const double *now);

/* touch.c */
bool queue_tracked(const struct engine *, int queue); /* times depend on where operands lie */
bool image_small(const struct image *);               /* is part of snapshots piece by piece */
double earliest_start(const struct engine *);         /* of whatever enters or waits */
void touches_open(struct engine *);
void touch_entered(struct engine *, const struct executed *, const struct use *, int k);
void touch_ran(struct engine *, const struct executed *, const struct use *, int k, double end, double visible);
bool touch_hot(const struct engine *, const struct touch *, double earliest);
void touches_restart(struct engine *, const struct touch *hot, int n);
void touch_again(struct engine *, const struct touch *, int64_t further, double later); /* bytes, cycles */
int64_t touch_first(const struct touch *); /* pieces; the last is before the first where nothing is used */
int64_t touch_last(const struct touch *);

/* arrive.c: granules that an operand reaches in some periods, and the bytes that each moves it by. */
struct range {
    int64_t first, last, step;
};
bool arrivals_steady(const struct engine *, const struct snapshot *before, const struct snapshot *now, int queue,
                     struct image *, const struct range *);

/* steady.c */
int64_t periods_steady(struct engine *, const struct loop_node *, int64_t first, const struct snapshot *before,
                       const struct snapshot *now, int64_t most);
/* How many of the iterations after the one at `first`, of a loop over instances that start afresh, do as that one does. */
int64_t instances_steady(struct engine *, const struct loop_node *, int64_t first, int64_t most);

#endif
