/* The body of a recurrence, as rewrites see it that change statements in it or move them before it (lift.c, stack.c). */
#ifndef ISAMAP_MAPPER_BODY_H
#define ISAMAP_MAPPER_BODY_H

#include "ir/program.h"

struct body {
    struct program *p;
    struct recur *r;
    struct body *around; /* of the recurrence around; NULL: it stands at the top level */
    int at;        /* the recurrence among the items around it */
    bool *written; /* by buffer: in the body, states too */
};

/* False: the program's item `at` is no recurrence. */
bool body_open(struct program *, int at, struct body *);
void body_renew(struct body *); /* after changes */
/* The statement at an item of the body; NULL: a recurrence or a call. */
struct stmt *body_stmt(const struct body *, int item);
/* Is all that the statement reads there before the first step? */
bool body_reads_inputs(const struct body *, const struct stmt *);
/* Do statements of the body alone, and no others, touch the buffer? */
bool body_owns(const struct body *, int buffer);
/* The item that sets what the sum at item `sum` adds to: the same elements, to what is there before the first step, with
 * nothing but additions to them between; -1: there is none. alone: nothing else is added. */
int body_find_set(const struct body *, int sum, bool *alone);
bool stmt_reads(const struct stmt *, int buffer);

/* What `a` is of one, in a buffer `all` with one dimension more before: [0, index of a]. */
struct access body_row(struct program *, int all, const struct access *a);
int body_append(struct program *, struct stmt);   /* a statement that is no item yet */
/* Statements before the recurrence, whose place moves on. */
void body_insert_before(struct body *, const int *stmt, int n);
void body_insert(struct body *, int item, int stmt);   /* a statement that is no item yet, before this one */
void body_drop(struct body *, int item);

/* Groups of `length` steps. The steps behind the last whole one stay one by one, in a recurrence of their own that takes the
 * states over; false: no room. The body is the statements of one step still; then the recurrence counts groups. */
bool body_rest(struct body *, int64_t length);
void body_count_groups(struct body *, int64_t length);
/* All of that: a group is a recurrence of its own, `inner`, inside that of the groups. The body is plain (body_is_plain). */
bool body_nest(struct body *, int64_t length, struct body *inner);
/* Statements alone, without constraints, whose values do not depend on the step's number; there are states. */
bool body_is_plain(const struct body *);

#endif
