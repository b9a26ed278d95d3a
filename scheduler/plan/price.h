/* The price of a plan, of its copies, and of what caches bring. */
#ifndef ISAMAP_SCHEDULER_PLAN_PRICE_H
#define ISAMAP_SCHEDULER_PLAN_PRICE_H

#include "ir/program.h"
#include "scheduler/plan/plan.h"

struct copies;
struct memory;
struct moves;
struct nest;
struct opnd;
struct task;
struct work;

/* plan.c: cost */
bool chain_fits(struct work *, const struct moves *, const struct nest *,
                const struct plan *); /* without a core */
bool plan_price(struct work *, const struct moves *, const struct nest *,
                struct plan *); /* false: not legal */
bool plan_price_below(struct work *, const struct moves *, const struct nest *, struct plan *,
                      double limit); /* false also where plan.cycles, then `limit`, would not be less */

/* finalists.c: cycles of the nest alone with this plan; negative: not known, or it would take long
 */
double plan_simulated(struct work *, const struct moves *, const struct nest *, const struct plan *);
/* Could the clock say clearly less than `best` of a plan with this cost? */
bool plan_worth_walking(const struct plan *, double cost, double best);

/* price.c */
bool price_counts(const struct work *, enum price_term); /* it is not left out */
void price_text(struct text *, const struct plan *);

/* share.c */
enum { MAX_SHARES = MAX_AXES + 2 };

/* With the least busy instance; n 0: there is nothing to share. How many instances there are; cycles until they all run. */
struct share share_best(const struct work *, const struct nest *, const struct plan *);
int64_t share_instances(const struct work *, const struct task *);
double share_waking(const struct work *, const struct task *);

/* ---- what copies cost, remembered ---- */

struct copy {               /* one transfer between a hold and its home */
    const struct instr *in; /* NULL: no move does it */
    double issues, cycles, latency, /* cycles: of the queue */
        elements, reads;            /* those of the buffer; how often its moves read each */
    int64_t bytes;                  /* of the slot */
    int first; /* coordinate that lies next to the tile in an outer copy; 0: as listed */
};

/* copies.c */
struct copies *copies_new(struct work *); /* forgotten when a home or a geometry changes */
struct copy copy_price(struct work *, const struct moves *, const struct plan *,
                       const struct task *, const struct opnd *, const struct access *, bool fill,
                       int depth, int by);
/* Of its slot alone, whether or not a move fills it. */
int64_t copy_bytes(struct work *, const struct plan *, const struct task *, const struct opnd *,
                   const struct access *, int depth);
/* A piece of what is filled at this depth, with `first` next to the tile: the tile inside all loops of `cut`. */
struct copy copy_part_price(struct work *, const struct moves *, const struct plan *,
                            const struct task *, const struct opnd *, const struct access *,
                            int depth, int by, int first, const struct plan *cut);

/* ---- what refills of hardware-managed memories cost ---- */

/* Of hardware-managed memories, over the whole nest: cycles to refill the one that takes longest,
 * those that computing does not hide (of all, and of the longest), and in which a cache's own port
 * takes the lines. */
struct refills {
    double apart[MAX_OPERANDS], late[MAX_OPERANDS]; /* by read: of `exposed`, lines that nothing foresees in time; with what is hidden of them */
    double worst, exposed, worst_exposed, port;
    double waits; /* for lines that come while too little is computed */
    int queue; /* of the moves that read that cache; -1 */
};

/* caches.c */
/* On one instance, and with the share of the busiest of several. */
const struct refills *caches_charge(struct work *, const struct moves *, struct plan *,
                                    const struct task *, const struct share *, double *queue);
/* Loops outside of those inside which the cache keeps all that is touched. */
int cache_depth(const struct work *, const struct memory *, const struct plan *, const struct task *);
double caches_cycles(const struct refills *, double core); /* with what refills add */
/* Operands read where they lie take load slots too. */
void direct_charge(struct work *, const struct moves *, const struct plan *, const struct task *,
                   double *queue);

#endif
