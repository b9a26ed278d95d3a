/* The search for the plan of a nest. */
#ifndef ISAMAP_SCHEDULER_PLAN_SEARCH_H
#define ISAMAP_SCHEDULER_PLAN_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

struct moves;
struct search;
struct work;

struct search *nest_search(struct work *, const struct moves *,
                           int nest); /* of a nest with a core; NULL: nothing fits */
double nest_cost(const struct search *);
double nest_clocked(struct search *);     /* by the clock; -1: it does not say */
double nest_alone(const struct search *); /* what the instructions take by themselves, in the plan
                                             where that is least */
double nest_cost_again(struct search *);  /* of the same plan's loops, homes being others now */
bool near_alone(
    const struct search *); /* the best is hardly slower than the instructions by themselves */
void nest_decide(struct search *); /* asks; the nest has its plan then, and the search is dropped */
void nest_drop(struct search *);
bool nest_plan(struct work *, const struct moves *, int nest);

#endif
