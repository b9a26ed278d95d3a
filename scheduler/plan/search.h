/* The search for the plan of a nest. */
#ifndef ISAMAP_SCHEDULER_PLAN_SEARCH_H
#define ISAMAP_SCHEDULER_PLAN_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

struct moves;
struct nest;
struct search;
struct work;

struct search *nest_search(struct work *, const struct moves *,
                           struct nest *); /* of a nest with a core; NULL: nothing fits */
/* The same search of an equal nest, or in a work where its homes are others. */
void nest_enter(struct search *, struct work *, struct nest *);
double nest_cost(const struct search *);
double nest_clocked(struct search *);     /* by the clock; -1: it does not say */
double nest_alone(const struct search *); /* what the instructions take by themselves, in the plan
                                             where that is least */
double nest_least(const struct work *, const struct nest *); /* the same before any search: never more; 0: not known, or a search found less than it (effort.below) */
/* What a search would find whose answer is remembered; -1: it is new, or nothing fits. */
double nest_known(struct work *, const struct nest *);
double nest_cost_again(struct search *, struct work *); /* of the same plan's loops where homes are others */
bool near_alone(
    const struct search *); /* the best is hardly slower than the instructions by themselves */
void nest_decide(struct search *); /* asks; the nest has its plan then, and the search is dropped */
void nest_drop(struct search *);
bool nest_plan(struct work *, const struct moves *, struct nest *);

#endif
