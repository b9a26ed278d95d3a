/* The program while the planner changes it: what accesses a buffer, statements, buffers and axes that are added, their names and order,
 * statements that one instruction executes. */
#ifndef ISAMAP_SCHEDULER_PLAN_REWRITE_H
#define ISAMAP_SCHEDULER_PLAN_REWRITE_H

#include "ir/program.h"
#include "mapper/mapper.h"
#include "scheduler/schedule/schedule.h"

struct opnd;
struct task;
struct uses;
struct work;

/* access.c: how the axes of a statement walk the dimensions of what it accesses. */
/* Of these axes the one that alone is the index of the dimension, from 0 in unit steps; -1: none of
 * them moves the index; -2: several do, or one does otherwise. */
int access_lone(const struct program *, const struct access *, int dim, uint64_t axes);
/* The one dimension that the axis moves, by *by elements in each step; -1: it moves none; -2:
 * several. */
int access_dim(const struct program *, const struct access *, int axis, int64_t *by);
/* Of these axes the first that moves the dimension; -1: none does. */
int access_mover(const struct program *, const struct access *, int dim, uint64_t axes);
bool access_same_index(const struct program *, const struct access *, const struct access *);

/* uses.c: statements of the order that access a buffer. */
struct uses *uses_new(struct arena *);
const int *buffer_uses(const struct work *, int buffer, int *n);
bool buffer_prepared(const struct work *, int buffer); /* a constant, or copies of constants */
int result_axes(const struct work *, int stmt,
                int *axis); /* program axes of a result, outermost dimension first */

static inline bool stmt_reads(const struct stmt *st, int buffer) {
    for (int r = 0; r < st->nreads; r++)
        if (st->read[r].buffer == buffer) return true;
    return false;
}

/* It reads the buffer `made` in place of `old`. */
static inline void stmt_reread(struct stmt *st, int old, int made) {
    for (int r = 0; r < st->nreads; r++)
        if (st->read[r].buffer == old) st->read[r].buffer = made;
}

/* rewrite.c: the program grows. Statements added are appended to w->p and placed in w->order by the
 * caller. */
int rewrite_axis(struct work *, const char *name, int64_t extent); /* -1: no room */
/* The same, or where there are many already one of this extent outside `used`. */
int rewrite_axis_apart(struct work *, const char *name, int64_t extent, uint64_t used);
int rewrite_buffer(struct work *, const char *name, enum type, enum role, int ndims,
                   const int64_t *extent);
int rewrite_copy(struct work *, struct access dst, struct access src, uint64_t axes);
struct access rewrite_access(struct work *, int buffer); /* all coefficients zero */
struct access *task_access(struct work *, const struct task *, const struct opnd *, bool write);
/* The operand reads this from now on, and with it the statement wherever it reads the same: an operand may stand for several of its reads, of which only
 * the first is noted. Where each of them has an operand of its own, the others read on what they did. */
void rewrite_read(struct work *, const struct task *, int operand, struct access);
/* What the operand reads, or else what it writes. */
const struct access *opnd_access(const struct work *, const struct task *, const struct opnd *);
const char *unique_name(struct work *, const char *base, const char *suffix);

/* order.c */
void rewrite_order(struct work *, int stmt,
                   int after);     /* after: a statement; -1: first; -2: last */
int order_starter(const struct work *, int core); /* what order_starts would leave before it; -1 */
void order_starts(struct work *);  /* what sets sums at first stands right before what adds to them */
void rewrite_items(struct work *); /* program.item from w->order */

/* join.c */
bool join_begin(struct work *);
void join_finish(struct work *);
void join_drop(struct work *, int stmt); /* its statements are on their own again */
bool join_has(const struct work *, int stmt);
bool join_inner(const struct work *, int buffer); /* handed on inside an instruction: it needs no home */
void join_rename(struct work *, int stmt, const int *map);
void join_add_axis(struct work *, int at);
void join_issue(struct work *, struct issue_node *);
bool join_sizes(const struct work *, const struct task *, const struct mapping *, int64_t *fixed);

/* rename.c */
/* Renames the consumer's axes to the producer's, dimension by dimension: map[a'] = a. */
bool nest_axes(const struct work *, const struct access *made, uint64_t made_axes,
               const struct access *used, uint64_t used_axes, int *map);
void stmt_rename(struct program *, struct stmt *, const int *map);
/* The statement's axes become those by which `made` is written, as its access `used` says; map (or
 * NULL): which. False: they cannot. */
bool stmt_adopt(struct work *, struct stmt *, const struct access *used, const struct access *made,
                uint64_t made_axes, int *map);

#endif
