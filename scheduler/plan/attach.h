/* What stands before a reduction's sums, on them and after them, as moves and instructions of its own: begin.c, follow.c, finish.c. */
#ifndef ISAMAP_SCHEDULER_PLAN_ATTACH_H
#define ISAMAP_SCHEDULER_PLAN_ATTACH_H

#include "mapper/mapper.h"
#include "scheduler/schedule/schedule.h"
#include "scheduler/plan/moves.h"
#include "scheduler/plan/val.h"

struct opnd;
struct region;
struct slot;
struct task;

/* finish.c */
struct finish {
    int task;
    struct move move;
};

bool finish_may(struct work *, const struct task *, const struct mapping *); /* the instruction is such a move */
void finishes_link(struct work *);                                      /* tasks that finish a reduction's result */
int finish_buffer(const struct work *, const struct finish *);          /* that it writes */
bool finish_box(struct work *, const struct opnd *, const struct slot *, const struct region *,
                struct box *, struct fit *);
bool finish_fits(struct work *, const struct task *, const struct opnd *, const char **why);
/* What the task's move executes, of the region; turn[i]: of the loop over dimension i of the box. */
void finish_issue(struct work *, int task, const struct opnd *, const struct fit *, const struct region *,
                  const struct val *turn, struct issue_node *);

/* begin.c */
bool begin_link(struct work *, int task); /* it starts a reduction's sums, as their move from home */
bool begin_box(struct work *, const struct opnd *, const struct slot *, const struct region *, struct box *, struct fit *);
bool begin_fits(struct work *, const struct task *, const struct opnd *);
bool begin_side(struct work *, int user, struct opnd *, int core); /* the same of what `user`, which follows core, reads */
bool begin_pack(struct work *, const struct opnd *);
struct val begin_offset(struct work *, const struct opnd *, const struct region *); /* elements, at home */

/* follow.c */
/* The reduction whose result the chain [n] of tasks changes before `reader` has it in `buffer`; -1. */
int follow_core(struct work *, int buffer, int reader, int **chain, int *n);
void follow_keep(struct work *, int core, int *chain, int n);
const char *follow_check(struct work *, struct task *core, bool *changed); /* layouts; why not */
bool follow_side(const struct opnd *); /* an operand beside the result, which it changes */

#endif
