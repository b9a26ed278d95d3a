/* A plan of a nest: its loops, where copies are filled and kept, and its price. */
#ifndef ISAMAP_SCHEDULER_PLAN_PLAN_H
#define ISAMAP_SCHEDULER_PLAN_PLAN_H

#include "scheduler/scheduler.h"
#include "scheduler/schedule/schedule.h"
#include "scheduler/plan/limits.h"

struct tiling;

struct loop {
    int axis;
    int64_t tile;
    enum loop_kind kind;
};

struct hold { /* of an operand of the core */
    int depth, slots;
    int64_t ring;   /* rows of a ring, which loop[depth - 1] moves on; `slots` tiles are there or coming; 0: none */
    int64_t pinned; /* pieces that stay, before the slots of the others; 0: none */
    int spread; /* of an outer copy, or one in registers: so many loops stand around the fill of one piece of it; 0: it is filled whole */
    bool ahead; /* of an outer copy, or one in registers: each fill but the first stands before what the step before does with it */
    int fill_by, drain_by; /* 1 + the move asked for; 0: the cheapest that fits */
};

/* Instances of the unit share the tiles of n axes (0: they do not): those of axis[k] go to parts[k]
 * of them, one more to some at most. */
struct share {
    int n, axis[2];
    int64_t tile[2], parts[2];
    double of[2], part; /* of each axis, and of the nest, which the busiest one has */
};

struct plan {
    struct loop loop[MAX_LOOPS];
    int nloops, depth_out; /* the result is complete at depth_out */
    struct hold hold[MAX_OPERANDS];
    struct hold via[MAX_OPERANDS][MAX_VIA]; /* of the outer copies on the operands' routes in */
    bool
        is_static; /* some hold has constant addresses: loops around it are unrolled, tails split */
    struct share share; /* of the unit's instances */
    double whole;       /* cycles were the nest not shared */
    double price[PRICE_TERMS]; /* what they consist of */
    double cycles, port, bytes; /* cycles: what is compared: `predicted`, and a little for what else is used */
    uint64_t asks; /* operands of which each step asks for the lines of a later one (ask.h) */
    int parts; /* 0: holds are filled whole; otherwise 1 + loops inside the deepest at which they are, in parts;
                  PARTS_AHEAD: whole, each before the instructions of the step before; PARTS_ANY: as is best, which pricing puts here */
    bool collects; /* a chain's results wait in the memories on their way home until all of a tile is there (route_holds.c) */
    bool unspread; /* copies are filled whole, whatever the price of pieces is */
    int outward; /* 1 + steps that outer copies go out from the operands' own, each the one that saves most; 0: as is best, which pricing puts here */
    double alone; /* cycles in which the instructions run when nothing holds them up and issuing them is free */
    double busy; /* cycles of the busiest queue or bus, when nothing waits: no walk finds less */
    double predicted, lead, tail; /* lead, tail: before the first instruction of a turn and after its last, part of it */
    const char *bound;     /* what takes so long: id of a queue, bus or cache, or waits; NULL */
    struct tiling *tiling; /* of these loops, during the search; NULL */
};

enum { MAX_FEEDS = 4 };

struct feed { /* a copy by the host inside the nest's outermost loops, of what it reads or of its result (feeds.c) */
    int stmt, depth;
    bool after;
};

#endif
