/* Lines that are asked for before they are needed: which accesses of the schedule's moves touch
 * them, met in one turn of all loops around. */
#ifndef ISAMAP_BACKENDS_CPU_ASKED_H
#define ISAMAP_BACKENDS_CPU_ASKED_H

#include "backends/cpu/cpu_int.h"

enum {
    MOST_ACCESSES = 256, /* that one place asks for, the alike ones among them */
    MANY_TURNS = 16      /* of loops of which it is not known */
};

struct access_at { /* in the order of the code */
    int place;
    int64_t now, next, before; /* bytes from the place's start: in this turn, in the one that is
                                  asked for, in another */
    bool reads, in_sum, asked;
};

/* How the accesses are met: where they are in each of the three turns, or to be asked for. */
enum met { MET_NOW, MET_NEXT, MET_BEFORE, MET_MAKE };

struct asked {
    struct function *f;
    const struct node *node; /* in which they are */
    int nnodes;
    const struct loop_node *sum; /* in these, whose steps are asked for apart; NULL */
    bool own;                    /* without the loops inside that are not unrolled */
    bool stores;                 /* what they store too */
    int64_t *var;                /* [nvars] a turn in the middle */
    int64_t line;                /* bytes of a line of the cache that they pass */
    double near;                 /* bytes that the caches which their unit has alone keep */
    struct access_at at[MOST_ACCESSES];
    int n;
    bool in_sum;
    enum met met;
};

/* With the loops around the builder in their middle turns. */
void asked_open(struct asked *, struct function *, const struct node *, int n);
void asked_close(struct asked *);
/* False: there is something else than moves, instructions and loops, or too much. */
bool asked_meet(struct asked *, enum met);
/* The bounds at the values of x->var. */
int64_t asked_trips(const struct asked *, const struct loop_node *, int64_t *lo);
/* Of several accesses that are asked for in one line, the last; lines count from where a row
 * begins. How many are left. */
int asked_once(struct asked *);

#endif
