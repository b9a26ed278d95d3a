/* Loops that the machine runs itself, and the steps of queues. */
#ifndef ISAMAP_SCHEDULER_PLAN_HARDWARE_H
#define ISAMAP_SCHEDULER_PLAN_HARDWARE_H

struct nest;
struct plan;
struct work;

/* hardware.c */
void plan_arrange(const struct work *, const struct nest *, struct plan *);
/* Entries of the queue that so many issues are, the machine running the loops that it can. */
double plan_entries(const struct work *, const struct nest *, const struct plan *, double issues);
/* Loops inside all holds that plan_arrange leaves to the program, reductions all; at most 2, outermost first. */
int plan_plain(const struct work *, const struct nest *, const struct plan *, int *axis);
/* Entries of the machine's table that tell the addresses of all issues. */
double table_entries(const struct work *, const struct nest *, const struct plan *);

/* flow.c */
/* Fewest iterations of the loops between two depths (SCHEDULING §5.2). */
double plan_least_inner(const struct work *, const struct plan *, int from, int to);

#endif
