/* Inside pricing: what one plan's cost is summed up in. */
#ifndef ISAMAP_SCHEDULER_PLAN_PRICE_INT_H
#define ISAMAP_SCHEDULER_PLAN_PRICE_INT_H

#include "scheduler/plan/price.h"
#include "scheduler/plan/limits.h"
#include "scheduler/plan/moves.h"
#include "scheduler/plan/nest.h"
#include "scheduler/plan/plan.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/tiling.h"
#include "scheduler/plan/work.h"
#include <stddef.h>
#include <string.h>

struct stream { /* the fills of one hold by a queue that runs ahead, or its drains */
    struct hold *outer; /* that it fills, where that is an outer copy next to home; NULL */
    int operand, queue, user, bus, depth, slots; /* operand -1: an outer copy of one */
    double trips, cycles, latency, issues;       /* how often; each */
    double busy;                                 /* of `cycles`, those in which it has the bus */
    double largest;                              /* cycles of a whole tile */
    double seen; /* from the last use of a slot to when its user has done with it; 0: hardware waits for reads alone */
    double often, periods; /* share of the times that it is filled at all; how often a ring begins */
    struct hold *in_pieces; /* in registers, each filled before its first use; NULL */
    double pieces, first, behind; /* filled in so many; of the first fill, what comes before the first instruction, and what
                                     instructions wait for after it */
};
struct pricing {
    struct work *w;
    const struct moves *moves;
    const struct nest *nest;
    struct plan *plan;
    struct stream drain; /* of the core's result, home; trips 0: none */
    struct stream leaves; /* the same out of its own memory */
    double way; /* what all results take at least, for the slots on their way */
    double beside; /* moves on the instructions' queue, in all */
    double spared; /* by the core's instructions, if each took the operand that remains (leaf_cycles) */
    double bubble, tail; /* of the instructions' queue: it waits; after its last instruction */
    int nfills;
    double queue[MAX_QUEUES], bus[MAX_BUSES]; /* of those that the machine has */
    struct stream fill[MAX_OPERANDS * (MAX_VIA + 1)];
};
/* A hundred thousand times in a search: what counts fills is cleared, they are not, nor queues and
 * buses that the machine does not have. */
static inline void pricing_begin(struct pricing *c, struct work *w, const struct moves *moves,
                                 const struct nest *n, struct plan *p) {
    memset(c, 0, offsetof(struct pricing, queue));
    memset(c->queue, 0, sizeof *c->queue * (size_t)w->m->nqueues);
    memset(c->bus, 0, sizeof *c->bus * (size_t)w->m->nbuses);
    c->w = w;
    c->moves = moves;
    c->nest = n;
    c->plan = p;
}

/* How much straight-line code loops may become: of those that are unrolled, and of those in which fills
 * settle where they are in padding. */
static inline bool unrolled_fits(double body, double settled) {
    const double unrolled = 96, with_settled = 160;
    return body <= unrolled && (settled <= 1 || body * settled <= with_settled);
}

/* plan.c */
/* Cycles of the core's issues when nothing holds them up and issuing them is free. */
double issues_alone(struct pricing *, const struct task *);
/* What the copies of operand i with this hold take of queues and buses at least; false: no move brings them. */
bool least_charge(struct pricing *, const struct task *, int i, const struct hold *);
/* At least the cost of a plan whose queues and buses take as long as was charged, however instances share it. */
double least_compared(struct pricing *, const struct task *);
/* Does what operand i of the core reads come from home? */
bool price_loads(const struct work *, const struct nest *, const struct task *, int i);
/* Partial sums of the result cannot leave its copies and return, whatever the plan. */
bool never_spills(const struct nest *, const struct task *, const struct opnd *);

/* price.c: cycles, or 0 where the term is left out; the plan says it. */
double price_add(const struct pricing *, enum price_term, double cycles);

/* charge.c */
void charge(struct pricing *, const struct instr *, double times, double cycles, double bytes);

double leaf_cycles(struct pricing *, const struct task *, double *issues); /* of the core's instructions */

/* footprint.c: of operand i of the core, remembered */
bool tile_sound(const struct pricing *, const struct task *, int i, const struct access *, int depth, enum check);

/* price_keep.c */
bool keeps_part(const struct hold *);
void price_rows(const struct pricing *, const struct task *, const struct opnd *,
                const struct access *, const struct hold *, struct copy *); /* of one window */
bool price_ring(struct pricing *, const struct task *, const struct opnd *, const struct access *,
                const struct hold *); /* false: there is none */

struct flow { /* of all that a queue fills: the deepest holds set its pace */
    int queue, depth, slots;
    double load, first, latency, total, steps; /* first: of the first step */
    double seen; /* the longest of its streams */
    double ahead; /* steps that the entries of the instructions' queue are; INFINITY: it has room for any number */
    double early; /* steps that the deepest fills stand before theirs in the program */
    double held; /* share of these fills that what stands behind them in the program waits for: their queue has no room */
    bool apart; /* results on their way home take its tokens: no slot is lent while one does */
    double often, again; /* share of the steps that fill; waits where rings begin again */
};
/* flow.c */
/* What the instructions wait in each step of the pacer, whose fills take `load` and hold them up for `begin`: with
 * one slot both take turns. Fills run ahead by no more than what the instructions' queue holds, since they enter
 * theirs behind the last step's instructions. */
double pipe_step(const struct flow *, double step, double load, double begin);
/* While a result is stored on the same bus; cut: issues that one of a whole fill becomes. */
double pipe_bus_waits(const struct pricing *, const struct flow *, double step, double cut);
/* A store that one long fill keeps from the bus leaves its slot late: waits for those beside results in slots. */
double pipe_long_fills(const struct pricing *, double exec);
/* What the instructions wait for each result to leave its only slot; 0: it has several. */
double pipe_returned(const struct pricing *);
/* Cycles in which a queue's fills wait for the bus that stores have, where they never wait for anything else. */
double pipe_bus_taken(const struct pricing *, const struct flow *);
/* Cycles of the queue that stores with those in which it waits for the bus that fills have, were it never to rest. */
double pipe_stores_held(const struct pricing *);
/* The last step before depth `from` comes round again, beside a step on average. */
double pipe_boundary(const struct pricing *, int from, int depth);
/* The first copy of a step is told that a slot is free, the last one tells that all are filled. */
static inline bool same_step(const struct stream *a, const struct stream *b) {
    return a->queue == b->queue && a->user == b->user && a->depth == b->depth;
}
/* Tokens of fill i that are issues of its queue by themselves. */
double pipe_fill_signals(const struct pricing *, int i);
double pipe_room(const struct pricing *, int queue); /* entries that a queue holds; INFINITY: any number */
/* A step ahead: what stands behind a step's fills in the program waits until their queue has room for those that have
 * not begun, with so many entries before them. The share of these for which it waits. */
double pipe_held(const struct pricing *, const struct flow *, double before);

/* apart.c */
bool tokens_shared(const struct pricing *, const struct stream *fill, int exec, int store);
/* Fills whose tokens those of results could be taken for end with each result: then the store is
 * waited for, and the next result's fills come only behind it. Where results lend their slots
 * between two fills, only the last one before a fill is waited for. */
struct apart {
    const struct stream *way; /* NULL: none shares tokens */
    double stores, fills;     /* that are waited for */
    double times;             /* ends of results, behind which fills come */
};
struct apart apart_of(const struct pricing *);
/* Fills outside of the results, one of which goes home while they are used, have one slot then. */
void apart_flow(const struct pricing *, const struct apart *, struct flow *);
/* Of such a queue: do results leave behind the next fills? Then nothing is apart, and *whole is what the instructions
 * wait. `before`: the price without the queue. */
void apart_or_behind(struct pricing *, struct flow *, struct apart *, double exec, const double *before, double *whole);

/* behind.c */
/* Waits where one queue fills and stores, and stores each result behind the next one's fills; infinite where it cannot. */
double behind_waits(const struct pricing *, const struct flow *, double exec);
void behind_choose(struct pricing *, const struct flow *); /* the fills stand so */
void behind_forget(struct pricing *);                      /* none do */

/* chain_price.c: the chain's issues, and the drains of its results. */
void pipe_chain(struct pricing *, const struct task *core);

/* pipe.c */
/* Signals that are instructions by themselves, in every queue. */
void pipe_signals(struct pricing *, const struct task *core);
/* Cycles before the instructions can begin, while they wait, and after them (SCHEDULING §3). */
double pipe_waits(struct pricing *, const struct task *core);

/* parts.c */
/* Waits, and what comes before the first instruction, where fills come in parts, `inner` loops
 * farther in than the deepest hold; infinite where they cannot. */
double parts_waits(const struct pricing *, const struct flow *, int inner, double exec,
                   double *lead);
/* An outer copy `o`, next to home, from which copies are filled inside so many loops: is it filled
 * piece by piece, and at which depth? Changes the hold and its stream. */
void spread_choose(struct pricing *, const struct task *, const struct opnd *o, const struct copy *whole, int inner,
                   struct hold *, struct stream *);
/* A copy in registers that needs no token: each piece is filled just before its first use, as far in as all loops
 * between cut it. Those are its slots then. Not on grids, whose instances work while others wait. */
void pieces_choose(struct pricing *, const struct task *, const struct opnd *o, struct hold *, struct stream *);

/* follow_price.c */
/* What a move brings at the start: in the sums' queue, or in one that is in step with it. */
bool price_start(struct pricing *, const struct task *, const struct opnd *, const struct access *, int depth);
int64_t follow_bytes(struct work *, const struct plan *, const struct opnd *result, int depth);
bool follow_price(struct pricing *, const struct opnd *result, const struct hold *);

#endif
