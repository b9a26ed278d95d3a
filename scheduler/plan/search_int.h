/* Inside the search. A point is a shape (which axes are cut, outer to inner) with an extent for
 * each cut; its loops, and the loops down to the needle below them, follow from it. */
#ifndef ISAMAP_SCHEDULER_PLAN_SEARCH_INT_H
#define ISAMAP_SCHEDULER_PLAN_SEARCH_INT_H

#include "scheduler/plan/moves.h"
#include "scheduler/plan/nest.h"
#include "scheduler/plan/plan.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/tiling.h"
#include "scheduler/plan/work.h"

enum { MAX_VALUES = 400, MAX_POOL = 48, FINALISTS = 12, OPTIONS = 12, COMBINATIONS = 1500 };

struct axis_space {
    int axis, x;          /* x: needle axis; -1 */
    int64_t unit, *value; /* balanced extents, ascending: multiples of unit */
    int n;
    bool reduction;
};
enum { REVERSED_RESULT = 1, REVERSED_SUM = 2 };
struct shape {           /* an axis that stands twice is cut twice */
    int n, k[MAX_SHAPE]; /* indices into search.ax, outer to inner */
    int reversed;        /* loops down to the needle in the other order: of the result, of sums */
};
struct point {
    struct shape shape;
    int at[MAX_SHAPE]; /* index into value: the innermost cut's extent; of outer cuts of the same
                          axis value / unit is how many of the next inner one */
    double cost, simulated;        /* simulated: cycles; 0: not simulated */
    double predicted, rest, bytes; /* of finalists: the same ones are alike; rest: of the cost */
    bool polished, refined;        /* refined: priced with all residencies */
    const struct plan *plan;       /* of a refined one; NULL */
};
struct search {
    struct work *w;
    const struct moves *moves;
    struct nest *nest;
    int64_t budget; /* plans that may still be priced */
    int64_t enough; /* plans in all with which no part of the search would have been cut short */
    struct tiling tiling;
    struct known_search *known; /* where it is remembered */
    struct search *next;        /* of those that are not used any more */
    bool walked; /* the clock has chosen the plan that is asked about, with its copies */
    /* What is remembered, from here on. */
    struct memo *memo;
    struct axis_space ax[MAX_SEARCH]; /* most values first */
    int n;
    double least_time, least_rest,
        least_bulk; /* of any plan priced; their costs are of these parts */
    double least_alone;
    struct point pool[MAX_POOL]; /* the best of each shape */
    int npool;
    struct point final[FINALISTS]; /* the best that differ in their loops, best first */
    int nfinal;
};

static inline const struct task *search_task(const struct search *s) {
    return &s->w->task[s->nest->core];
}

/* search_space.c */
bool space_axes(struct search *);
void space_keep_whole(struct search *, int64_t most); /* reductions of at most so many stay whole */
void space_build(const struct search *, const struct point *, struct plan *);

/* search_legal.c: false: the price would refuse the plan for its holds. For one list of loops,
 * which is tabulated. */
struct legal {
    struct search *s;
    uint64_t walks[MAX_OPERANDS], leaves[MAX_OPERANDS]; /* loops: as of axes in `asked` */
    double trips[MAX_LOOPS];
    unsigned repeated, reads_home; /* operands: in registers; read where they lie */
};
void legal_begin(struct legal *, struct search *, const struct plan *);
bool legal_perhaps(struct legal *, const struct plan *);

struct residencies { /* count[i] holds for operand i, of which option[i][at[i]] is meant */
    struct legal legal;
    struct hold option[MAX_OPERANDS][OPTIONS];
    int more[MAX_OPERANDS][OPTIONS]; /* the option that is the same with more slots; -1 */
    int count[MAX_OPERANDS], at[MAX_OPERANDS];
};
struct residency {
    double least; /* it costs no less */
    int number;   /* as residency_next counts them */
};
/* search_least.c: at most COMBINATIONS, those that may cost least first; how many there are. The next one; the one
 * with this number. */
int residencies_order(struct search *, struct plan *, struct residencies *, struct residency *out);
bool residency_next(const struct search *, struct residencies *);
void residency_set(const struct search *, struct residencies *, int number);

/* search_hold.c: the best residency for the plan's loops, of the likely ones or (wide) of all;
 * infinite when there is none. */
double residency_best(struct search *, struct plan *, bool wide,
                      double limit); /* at least the limit: what is best was not looked for */
void residency_ask(struct search *, struct plan *);
double beside(const struct search *, double cost,
              double own); /* of a candidate, where the plan that was found costs `own` */
void hold_text(struct text *, const char *name, const struct hold *);
/* search_path.c */
void path_ask(struct search *, struct plan *);
/* search_keep.c */
void keeps_ask(struct search *, struct plan *);

/* search_local.c */
double point_cost(struct search *, const struct point *,
                  double limit); /* at least the limit: it may be more */
double point_cost_again(struct search *, const struct point *); /* nothing remembered */
void finals_refine(struct search *);                            /* with all residencies */
void point_plan(struct search *, const struct point *, struct plan *);
void pool_fill(struct search *); /* the best points of many shapes, by search.budget */
void pool_add(struct search *, const struct point *);
const struct point *pool_best(const struct search *);
int axis_nearest(const struct axis_space *,
                 int64_t value);                    /* the last index whose value is not more */
bool point_move_loop(struct point *, int i, int k); /* false: over a cut of its own axis */

/* search_near.c: points one step away whose price is below the limit, cheapest first; they differ
 */
int point_neighbours(struct search *, const struct point *, double limit, struct point *out,
                     int most);

/* finalists.c */
void finalists_simulate(struct search *);

#endif
