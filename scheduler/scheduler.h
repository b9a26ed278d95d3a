/* The scheduler: from a cover to a schedule, with one rolled algorithm for registers, caches and scratchpads (docs/scheduling.md). It knows no
 * kind of machine: memories, moves, queues and syncs of the machine file drive it. */
#ifndef ISAMAP_SCHEDULER_SCHEDULER_H
#define ISAMAP_SCHEDULER_SCHEDULER_H

#include "ir/choice.h"
#include "mapper/mapper.h"
#include "scheduler/schedule/schedule.h"

/* What the price of a plan consists of, in cycles (docs/scheduling.md, "Terms of the price"). */
enum price_term {
    PRICE_ISSUES,    /* the core's instructions, one after the other */
    PRICE_ENTRIES,   /* overheads of their queue's entries */
    PRICE_CHAINS,    /* dependent sums that fill no pipe */
    PRICE_READS,     /* load slots of what is read where it lies, and of lines that caches are given */
    PRICE_FOLLOWERS, /* instructions of the chain */
    PRICE_FIRST,     /* before the first instruction: first fills and their latency */
    PRICE_TABLE,     /* loading entries of addresses */
    PRICE_STEPS,     /* each step of the pacer: what the slots do not hide */
    PRICE_SHORT,     /* a last step that is too short to hide the next fill */
    PRICE_OUTER,     /* a fill farther out between those of the pacer */
    PRICE_BRACKETS,  /* an outer fill that all wait for */
    PRICE_RINGS,     /* a ring that begins again */
    PRICE_STREAM,    /* a queue of fills that is busier than the instructions */
    PRICE_PIECES,    /* the same, of fills in parts */
    PRICE_BUS,       /* fills behind a store on the same bus */
    PRICE_GIVING,    /* a user that waits for itself before it gives a slot back */
    PRICE_RETURNS,   /* results that come back to be added to, or leave from their only slot */
    PRICE_SPILLS,    /* partial sums between blocks of a reduction */
    PRICE_STARTS,    /* what sums start with, where fetching blocks */
    PRICE_SLOTS,     /* results that wait for a free slot */
    PRICE_BEHIND,    /* fills that enter behind stores for which their queue has no room */
    PRICE_APART,     /* fills that wait for a store whose tokens could be taken for theirs */
    PRICE_GRAINS,    /* grains of the chain that do */
    PRICE_LAST,      /* after the last instruction: the last store */
    PRICE_BUSIEST,   /* another queue or bus that is busier than all this */
    PRICE_REFILLS,   /* refills of caches that computing does not hide */
    PRICE_WAKING,    /* until all instances run a shared loop */
    PRICE_TIES,      /* of plans that take equally long: what else they use */
    PRICE_CODE,      /* of such plans: loops, and bodies for tails */
    PRICE_MEETINGS,  /* turns of two nests: queues that meet between them; not in the plan of one */
    PRICE_LANES,     /* an axis that fills an instruction in part; before plans are made */
    PRICE_OVERLAP,   /* of two nests: what the last steps of one hide of the next one's first fills */
    PRICE_STATES,    /* a state that empties its memory, changed between whole tiles and tails */
    PRICE_TERMS
};
extern const char *const price_name[PRICE_TERMS];

struct lefts;

/* Plans that were found, by what they were found for; equal nests of later compilations for the same machine and with the same
 * options, but for `steps`, take them. */
struct known_searches;
struct known_searches *known_open(void);
void known_close(struct known_searches *); /* NULL: nothing */
/* What it took to plan with them, counted. */
struct effort {
    int64_t nests;    /* that were to be planned, again in each group that was considered */
    int64_t searches; /* made: those of the other nests were known */
    int64_t plans;    /* priced */
    int64_t refused;  /* of these for their holds alone */
    int64_t misjudged; /* of these; with options.audit */
    int64_t timed;    /* of the plans on the clock */
    int64_t below;    /* nests whose plan takes less than what was to be a bound from below: from then on nothing is given up by it */
};
struct effort *known_effort(struct known_searches *);

struct scheduler_options {
    int threads;                       /* instances of a counted unit to use at most; 0: all */
    int contexts; /* slots of a copy at most: 1 has nothing in flight; 0: as many as pay */
    int64_t steps;                     /* bound on plans evaluated; 0: default */
    bool trying;                       /* another answer to the mapper, by an approach that goes by cost: equal nests get equal plans unasked */
    int warned;                        /* while it is tried: with more warnings of what is left to others than this it is given up */
    bool plain;                        /* loop orders are those that are always tried: a trace fits other parameters of the machine too */
    uint64_t left_out;                 /* bit t: price_term t counts nothing; to see what it decides */
    struct text *explain;              /* candidates, their cost and what binds; or NULL */
    struct known_searches *searches;   /* NULL: of this compilation alone, over all its tries */
    struct needles *needles;           /* what the mapper found; NULL: as `searches` */
    /* Beside a device a schedule is given up before the clock walks its plans where these cost more than another's, or as much with
     * equal nests beside them (schedule.planned), or where its instructions and the host alone take no less; 0: neither. */
    struct planned other;
    double most;
    struct known_covers *covers;       /* of earlier tries: equal ones are not scheduled again (retry.h); or NULL */
    /* Where sums cannot be scheduled as they are mapped, this takes it down and there is no schedule, without a word; NULL: the fallback
     * executes them, with a warning. */
    struct refusals *refused;
    /* What the fallback executes instead of an instruction is added here; NULL: it is a warning for each statement. */
    struct lefts *left;
    bool strict;                       /* scheduler_compile: sums of products on the fallback of a machine with instructions for products are errors */
    /* Cycles of a schedule by a simulator that executes at most so many instructions, for the best plans of a nest; negative: not
     * known; INFINITY: more than `most`, if that is above 0. `steps` becomes how many it executed. Or NULL. */
    double (*simulate)(const struct schedule *, double most, int64_t *steps);
    bool audit; /* tests: plans that are refused unpriced are priced too, and effort.misjudged counts those that are legal */
    double (*bound)(void *user, double least); /* tests make the bound from below of a nest a wrong one; NULL */
    void (*doing)(void *user, const char *phase); /* scheduler_compile says what it does; or NULL */
    void *user;
};

/* NULL after reporting. The schedule does not refer to the cover afterwards. */
struct schedule *scheduler_run(const struct cover *, const struct machine *, struct decider *,
                               const struct scheduler_options *, struct diags *);

/* Cover and schedule: what cannot be scheduled as it was mapped first is mapped otherwise, a few times (scheduler/retry.c). The caller owns
 * the cover too; `options` without `refused`. */
struct schedule *scheduler_compile(const struct program *, const struct machine *, enum rewrite_effect floats, struct decider *,
                                   const struct scheduler_options *, struct cover **, struct diags *);

#endif
