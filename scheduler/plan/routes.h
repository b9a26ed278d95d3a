/* Routes: the memories that an operand passes between its home and its instruction. */
#ifndef ISAMAP_SCHEDULER_PLAN_ROUTES_H
#define ISAMAP_SCHEDULER_PLAN_ROUTES_H

#include "scheduler/plan/task.h"

struct box;
struct moves;
struct nest;
struct plan;
struct region;
struct slot;
struct work;

/* routes.c */
struct opnd route_stop(const struct work *, const struct opnd *, const struct route *,
                       int k); /* the operand in the route's k-th memory; past the last: its own */
/* Between an outer copy and an inner one. */
bool box_between(const struct geom *outer, const struct slot *there, const struct geom *, const struct slot *here,
                 bool fill, const struct region *, struct arena *, enum type, struct box *);
bool route_leads(const struct work *, const struct moves *, const struct task *, const struct opnd *); /* from home, whatever fits */
/* Do moves fit, or take less time, if the first copies between lie row by row? Then they do from now on. */
bool route_plain(struct work *, const struct moves *, const struct task *, struct opnd *);
/* Would they fit if pieces of a home made for it began where moves may begin, with gaps between? Then they do from now on. */
bool route_spaced(struct work *, const struct moves *, const struct task *, struct opnd *, bool write);
/* The shortest route whose moves fit; false: *why. */
bool route_first(struct work *, const struct moves *, const struct task *, struct opnd *, bool write,
                 const char **why);
void routes_decide(struct work *, const struct moves *); /* a question where there are several */
void route_link(const struct work *, struct opnd *);     /* from and to, after routes and geom */

/* route_holds.c: holds in the memories of the routes, outwards while they fit and save traffic; adds to *bytes of
 * each memory. False: no room. */
bool route_holds(struct work *, const struct moves *, const struct nest *, struct plan *,
                 int64_t *bytes);

#endif
