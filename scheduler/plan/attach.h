/* What stands before a reduction's sums, on them and after them, as moves and instructions of its own: begin.c, follow.c, finish.c. */
#ifndef ISAMAP_SCHEDULER_PLAN_ATTACH_H
#define ISAMAP_SCHEDULER_PLAN_ATTACH_H

#include "mapper/mapper.h"
#include "scheduler/schedule/schedule.h"
#include "scheduler/plan/moves.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/val.h"

struct fit;
struct region;
struct slot;
struct stmt;
struct view;

/* Which copy of the operand a move is: its fill, the one that takes the result home, or one more of these; or an
 * instruction that changes the result where it lies, when it is complete. */
enum attach_side { STORES, FILLS, STORES_TOO, CHANGES };

struct attachment { /* a statement that is executed on a copy of an operand, or on its way in or out; opnd.attached */
    int task;
    enum attach_side side;
    struct move move; /* but for what changes it */
    struct attachment *next; /* of the operand, in the order of execution on each side */
};

/* The first on this side, and the next; NULL. */
static inline const struct attachment *attached_from(const struct attachment *x, enum attach_side side) {
    while (x && x->side != side) x = x->next;
    return x;
}
static inline const struct attachment *attached_at(const struct opnd *o, enum attach_side side) {
    return attached_from(o->attached, side);
}
static inline const struct attachment *attached_next(const struct attachment *x) {
    return attached_from(x->next, x->side);
}

/* attach.c; fill: on the way in */
void attach(struct work *, int task, const struct move *, struct opnd *, enum attach_side); /* behind the others; move: NULL where none is */
struct stmt *attached_stmt(const struct work *, const struct attachment *);
/* Where the elements lie that the operand's moves bring or take: of what is attached, else of the buffer. */
struct view attached_view(const struct work *, const struct opnd *, int buffer, bool fill);
const char *attached_check(struct work *, const struct task *, const struct opnd *, bool fill); /* layouts; why not */
bool attached_other(struct work *, const struct task *, struct opnd *); /* another move that computes the same brings it */
bool attached_fit(struct work *, const struct opnd *, const struct slot *, const struct region *, bool fill, struct fit *);
/* What the move executes, of the region; turn[i]: of the loop over dimension i of the box. */
void attached_issue(struct work *, const struct opnd *, bool fill, const struct fit *, const struct region *,
                    const struct val *turn, struct issue_node *);

/* finish.c */
bool finish_may(struct work *, const struct task *, const struct mapping *); /* the instruction is such a move */
void finishes_link(struct work *);                                      /* tasks that finish a reduction's result */
/* The result of an elementwise statement, which others use too, as a move that computes stores it: that
 * operand, of the task as if it executed the move's statement. False: its elements lie otherwise. */
bool finish_beside(struct work *, const struct task *, const struct opnd *made, const struct attachment *,
                   struct task *by, struct opnd *as);
const char *finish_beside_check(struct work *, const struct task *, const struct opnd *made); /* layouts; why not */

/* begin.c */
bool begin_link(struct work *, int task); /* it starts a reduction's sums, as their move from home */
bool begin_side(struct work *, int user, struct opnd *, int core); /* the same of what `user`, which follows core, reads */
bool begin_read(struct work *, int task); /* the same of what a reduction reads, where only its move leads there */
bool begin_pack(struct work *, const struct opnd *);

/* follow.c */
/* The reduction whose result the chain [n] of tasks changes before `reader` has it in `buffer`; -1. */
int follow_core(struct work *, int buffer, int reader, int **chain, int *n);
const char *follow_check(struct work *, const struct moves *, const struct task *core, bool *changed); /* layouts; why not */
bool follow_side(const struct opnd *); /* an operand beside the result, which it changes */

#endif
