/* Layouts: of each operand's home, copies in other layouts, places and alignment. */
#ifndef ISAMAP_SCHEDULER_PLAN_LAYOUTS_H
#define ISAMAP_SCHEDULER_PLAN_LAYOUTS_H

#include "ir/program.h"
#include "scheduler/plan/work.h"

struct due;
struct geom;
struct home;
struct opnd;
struct task;

/* Of each dimension from `lo` on so many indices, every `step`th. */
struct copied {
    int64_t extent[MAX_DIMS], lo[MAX_DIMS], step[MAX_DIMS];
    bool fills; /* what is outside has a value */
    union value fill;
};

/* pack_made.c: the layout of a copy that the task reads so. */
struct home pack_layout(struct work *, const struct task *, const struct access *, const struct geom *);
/* The copy of planes that the operand reads an element at a time, with the planes innermost: one
 * element of all of them is one piece. The statement that makes it; -1: it reads no such copy. */
int pack_planes_inside(const struct work *, const struct task *, const struct opnd *, struct home *);
/* The copy of that part of a constant in the layout that the operand wants, where a statement before made one; -1. Steps of a cell that were unrolled read
 * the same weights. */
int pack_made(struct work *, const struct task *, const struct access *, const struct geom *, const struct copied *);

/* An access as it was before one to a copy of nothing but the elements that it reads was tried in its place. */
struct stepped {
    int buffer;
    struct access *access;
    int64_t *coef, extent[MAX_DIMS], elements;
};

/* Of an input of which the operand reads an element at a time, every so manieth of some dimension: in its place such a copy,
 * for a search, until pack_steps_end; the home it would have. False: it reads no such input, and nothing is changed. */
bool pack_steps(struct work *, const struct task *, const struct opnd *, struct home *, struct stepped *);
void pack_steps_end(struct work *, const struct stepped *);
/* It takes what it reads element by element, and so in any layout. */
bool reads_elements(const struct opnd *);
bool pack_identity(struct work *, int task,
                   int operand); /* reads a copy in the layout the needle wants */
/* A temporary that is wanted in two layouts: those who write it write another one, a copy follows. */
bool pack_between(struct work *, int buffer);
/* Before the statement, each element of the buffer is set: by one statement, or by several along a dimension. */
bool written_all(const struct work *, int buffer, int stmt);
bool pack_argument(struct work *, struct access *, int stmt, const struct geom *); /* it reads a copy of the whole in this layout */
bool pack_whole(struct work *, int argument, int temporary,
                bool load); /* copies out at the end, in at the start */
bool pack_by_axes(struct work *, int task, int operand,
                  bool write); /* a temporary indexed by the axes themselves */

/* layouts.c */
bool layouts_decide(struct work *, const struct moves *);

/* Of a task for which no tile is found, since tiles of a window would lie outside what it reads: copies
 * that with its padding. False: there is nothing to copy. */
bool layouts_pad(struct work *, const struct moves *, int task);
/* What lives all the time fits, so that there is something to plan. False: reported. */
bool homes_hold_arguments(struct work *);
bool homes_beyond(struct work *, const char *name); /* false, having reported this buffer */

/* align.c */
void operands_align(struct work *, const struct moves *);

/* ---- the worklist of layouts_decide ---- */

struct due *due_begin(struct work *); /* all tasks; lives in the work's arena */
int due_next(struct due *);           /* the first in program order, due no longer; -1: none */
void due_again(
    struct due *,
    int task); /* the one just checked changed something: it is due, and who shares with it */

#endif
