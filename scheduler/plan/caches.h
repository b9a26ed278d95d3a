/* What refills of hardware-managed memories cost. */
#ifndef ISAMAP_SCHEDULER_PLAN_CACHES_H
#define ISAMAP_SCHEDULER_PLAN_CACHES_H

struct moves;
struct plan;
struct share;
struct task;
struct work;

/* Of hardware-managed memories, over the whole nest: cycles to refill the one that takes longest,
 * those that computing does not hide (of all, and of the longest), and in which a cache's own port
 * takes the lines. */
struct refills {
    double worst, exposed, worst_exposed, port;
    int queue; /* of the moves that read that cache; -1 */
};

/* caches.c */
/* On one instance, and with the share of the busiest of several. */
const struct refills *caches_charge(struct work *, const struct moves *, struct plan *,
                                    const struct task *, const struct share *, double *queue);
double caches_cycles(const struct refills *, double core); /* with what refills add */
/* Operands read where they lie take load slots too. */
void direct_charge(struct work *, const struct moves *, const struct plan *, const struct task *,
                   double *queue);

#endif
