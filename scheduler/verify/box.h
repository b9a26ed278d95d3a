/* Versions, homes and instances of the symbolic walk (version.c, box.c), for single issues (work.c). */
#ifndef ISAMAP_SCHEDULER_VERIFY_BOX_H
#define ISAMAP_SCHEDULER_VERIFY_BOX_H

#include "scheduler/verify/fit.h"
#include "scheduler/verify/sym.h"

/* `own`: a statement of which any partial result will do too; -1. own_only: nothing else will. `spans`: none, for the box reaches beyond
 * what that statement writes. any: no element is read, only what stands for those outside the buffer.
 * unset: no statement before writes an element of the box, nor does the caller. */
struct wanted_version { int writer, own; bool own_only, any, unset; struct lin count, step, own_step; const struct image *spans; };

/* version.c. sym_at: of the instances at `point`, from now on; all are of one step of each recurrence around, which sym_step gives by number to
 * what they write (0 where the statement writes no element at two steps). */
bool sym_at(struct sym *, int stmt, const struct affine *point);
struct lin sym_step(struct sym *, int stmt);
/* Under whose number regions of what the statement writes are known. A buffer that statements write part by part (a concatenation) has one
 * for all of them, for then an element says which of them wrote it. */
int sym_writer(struct sym *, int stmt);
bool sets_part(const struct stmt *);
const struct image *sym_image(struct sym *, int stmt);
bool version_wanted(struct sym *, int stmt, const struct region *need, struct wanted_version *);
bool has_version(const struct region *, const struct wanted_version *);

/* box.c. NULL: not known. */
const struct region *home_read(struct sym *, int place, const struct region *need, const struct wanted_version *); /* it is read, if it is there */
bool need_box(struct sym *, const struct affine *index, int buffer, bool has_fill, struct region *need);
bool instances_executed(struct sym *, int stmt, const struct affine *point);   /* none of them was executed before */

/* clip.c. The ends of an index of the statement come nearer where its constraints do not hold. */
void clip_where(const struct sym *, int stmt, const struct affine *point, const struct affine *index, struct lin *first, struct lin *last);

/* remade.c. What the statement writes may be made again. remade_sum: of terms that the last of the executed instances add to `before` others, those
 * are just the ones that were recorded; count: of all of them. remade_end: the terms of executed[k] and the others of their sums are forgotten. */
bool remade(const struct sym *, int stmt);
bool remade_sum(struct sym *, int stmt, const struct lin *before, const struct lin *count);
bool remade_end(struct sym *, int k);

/* parted.c. A fallback writes a part of the box that is none itself: known is what executed instances write of it (count PARTED).
 * parted_settle: where those are all, that is known. parted_begun: what instances write is asked of the host; none may be executed elsewhere. */
bool parted_write(struct sym *, int stmt, const struct affine *index, const struct region *around);
bool parted_settle(struct sym *, int place);
bool parted_begun(struct sym *, int stmt);

bool index_forms(struct sym *, const struct access *, const struct affine *point, struct affine *index);

#endif
