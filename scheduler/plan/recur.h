/* Recurrences: which axes walk their steps, what changes from step to step, copies that stay over all steps. */
#ifndef ISAMAP_SCHEDULER_PLAN_RECUR_H
#define ISAMAP_SCHEDULER_PLAN_RECUR_H

#include "ir/program.h"

struct moves;
struct nest;
struct task;
struct work;

/* recur.c */
void recur_begin(struct work *);
uint64_t recur_axes(const struct work *, const struct stmt *); /* of the recurrences around it */

static inline uint64_t stmt_span(const struct work *w, const struct stmt *st) {
    return st->axes | recur_axes(w, st);
}

bool recur_moves(const struct work *, const struct stmt *,
                 const struct access *); /* its index depends on the step */
bool recur_carries(const struct work *, int buffer); /* from one step to the next */
int recur_child(const struct work *, int stmt,
                int scope); /* the scope directly inside `scope` that holds it, or `scope` (-1: none) */
/* The innermost recurrence around the statement in which a copy of what it reads must be made: 1 +
 * its number, 0 outside all. */
int recur_copy_scope(const struct work *, int stmt, const struct access *);
/* The statement after which a copy for `stmt` stands, directly inside that scope; -1: first. */
int recur_copy_after(const struct work *, int stmt, int scope);

/* recur_keep.c: which copies stay over all steps (a question to the approach). */
void recur_keep(struct work *, const struct moves *);
int recur_outermost(const struct work *, const struct nest *); /* recurrence around it; -1 */
/* Bytes of operand i of the core, whole; 0: it changes from step to step, or cannot stay. */
int64_t recur_bytes(struct work *, const struct nest *, int i);
int64_t recur_address(struct work *, const struct nest *, int i); /* of a copy that stays */
bool recur_release(struct work *); /* nothing stays from now on; false: nothing did */
/* The axis of a nest that does a part of it is as long as the part, until the other call. */
int64_t part_open(struct work *, const struct nest *);
void part_close(struct work *, const struct nest *, int64_t extent);
void recur_start(const struct work *, const struct nest *, int64_t *at); /* addresses behind them */
const char *recur_check(const struct work *, const struct task *); /* why not */

#endif
