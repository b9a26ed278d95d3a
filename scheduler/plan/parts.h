/* Fills in parts. */
#ifndef ISAMAP_SCHEDULER_PLAN_PARTS_H
#define ISAMAP_SCHEDULER_PLAN_PARTS_H

#include "machines/machine.h"

struct hold;
struct moves;
struct opnd;
struct plan;
struct task;
struct work;

/* parts.c */
/* Do the tiles of the loops in [from, to) along an axis cut the operand's copy in pieces that share nothing? */
bool cut_axis(const struct work *, const struct plan *, const struct task *, const struct opnd *,
               int axis, int from, int to);
bool parts_keep(const struct work *, const struct plan *, const struct task *, const struct opnd *,
                const struct hold *, int depth, int credits); /* a slot may be filled again, part by part */
/* Tokens alone pass between them, of which several may be on their way. */
bool counts_tokens(const struct machine *, int queue, int user);

/* parts_ask.c */
void parts_ask(struct work *, const struct moves *, int nest); /* a question */

#endif
