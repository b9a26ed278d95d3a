/* Routes: the memories that an operand passes between its home and its instruction. */
#ifndef ISAMAP_SCHEDULER_PLAN_ROUTES_H
#define ISAMAP_SCHEDULER_PLAN_ROUTES_H

#include "scheduler/plan/plan.h"
#include "scheduler/plan/task.h"

struct fit;
struct moves;
struct nest;
struct work;

/* routes.c */
struct opnd route_stop(const struct work *, const struct opnd *, const struct route *,
                       int k); /* the operand in the route's k-th memory; past the last: its own */
/* How a move copies part of an operand between its slot and the buffer's home or, where `far` is not
 * NULL, the slot of the outer copy on its route; also one that computes on the way, where the operand
 * has such a move. `by`: as in fit_box. False: none does. */
bool copy_fit(struct work *, const struct moves *, int buffer, const struct opnd *,
              const struct slot *, const struct slot *far, const struct region *, bool fill, int by,
              struct fit *);
bool route_leads(const struct work *, const struct moves *, const struct task *, const struct opnd *); /* from home, whatever fits */
/* Do moves fit, or take less time, if the first copies between lie row by row? Then they do from now on. */
bool route_plain(struct work *, const struct moves *, const struct task *, struct opnd *);
/* Would they fit if another coordinate of the tile lay innermost in a home made for it, as moves that turn
 * tiles take it? Then it does from now on. */
bool route_turned(struct work *, const struct moves *, const struct task *, struct opnd *, bool write);
/* Would they fit if pieces of a home made for it began where moves may begin, with gaps between? Then they do from now on. */
bool route_spaced(struct work *, const struct moves *, const struct task *, struct opnd *, bool write);
/* Would they fit if copies held as many elements at a time as home and the memories on the way are aligned to, and not otherwise? Then they do from now on. */
bool route_in_blocks(struct work *, const struct moves *, const struct task *, struct opnd *, bool write);
/* Would they fit if a home made for it went on to the end of the last tile along dimensions in which tiles begin anywhere? Then it does from now on. */
bool route_whole(struct work *, const struct moves *, const struct task *, struct opnd *);
/* The shortest route whose moves fit; false: *why. */
bool route_first(struct work *, const struct moves *, const struct task *, struct opnd *, bool write,
                 const char **why);
void routes_decide(struct work *, const struct moves *); /* a question where there are several */
void route_link(const struct work *, struct opnd *);     /* from and to, after routes and geom */
/* Then: the operand in the k-th memory, from home on, of its route in or out; the last is its own. */
const struct opnd *opnd_stop(const struct opnd *, bool in, int k);

/* route_holds.c: how a chain's result leaves its `own` memory, a grain at a time, or one on its way home. False: no move does it. */
bool chain_way_fit(struct work *, const struct moves *, const struct nest *, const struct plan *,
                   const struct task *, const struct opnd *, bool own, struct fit *);
/* route_holds.c: the outer copies of one plan, each beside its inner one, and the steps outwards from there. */
struct outward {
    bool known;
    struct hold first[MAX_OPERANDS][MAX_VIA];
    struct outward_step {
        int operand, level;
        struct hold hold;
    } step[MAX_OUTWARD];
};

/* Holds in the memories of the routes, outwards while they fit and save traffic; adds to *bytes of each memory. False:
 * no room. */
bool route_holds(struct work *, const struct moves *, const struct nest *, struct plan *,
                 int64_t *bytes, struct outward *);
/* The same, of the same plan, with as few steps as p->outward says. */
void outward_again(struct plan *, const struct outward *);

#endif
