/* The price of a plan. */
#ifndef ISAMAP_SCHEDULER_PLAN_PRICE_H
#define ISAMAP_SCHEDULER_PLAN_PRICE_H

#include "ir/program.h"
#include "scheduler/plan/plan.h"

struct moves;
struct nest;
struct task;
struct work;

/* plan.c: cost */
bool chain_fits(struct work *, const struct moves *, const struct nest *,
                const struct plan *); /* without a core */
bool plan_price(struct work *, const struct moves *, const struct nest *,
                struct plan *); /* false: not legal */
bool plan_price_below(struct work *, const struct moves *, const struct nest *, struct plan *,
                      double limit); /* false also where plan.cycles would not be less */

/* finalists.c: cycles of the nest alone with this plan; negative: not known, or it would take long
 */
double plan_simulated(struct work *, const struct moves *, int nest, const struct plan *);
/* Could the clock say clearly less than `best` of a plan with this cost? */
bool plan_worth_walking(const struct plan *, double cost, double best);

/* price.c */
bool price_counts(const struct work *, enum price_term); /* it is not left out */
void price_text(struct text *, const struct plan *);

/* share.c */
enum { MAX_SHARES = MAX_AXES + 2 };

/* With the least busy instance; n 0: there is nothing to share. Cycles until they all run. */
struct share share_best(const struct work *, const struct nest *, const struct plan *);
double share_waking(const struct work *, const struct task *);

#endif
