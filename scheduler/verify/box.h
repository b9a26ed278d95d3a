/* Versions, homes and instances of the symbolic walk (box.c), for single issues (work.c). */
#ifndef ISAMAP_SCHEDULER_VERIFY_BOX_H
#define ISAMAP_SCHEDULER_VERIFY_BOX_H

#include "scheduler/verify/fit.h"
#include "scheduler/verify/sym.h"

/* `own`: a statement of which any partial result will do too; -1. own_only: nothing else will. `spans`: none, for the box reaches beyond
 * what that statement writes. */
struct wanted_version { int writer, own; bool own_only; struct lin count; const struct image *spans; };

bool version_wanted(struct sym *, int stmt, const struct region *need, struct wanted_version *);
/* NULL: not known. */
const struct region *home_holds(struct sym *, int place, struct region need, const struct wanted_version *);
bool need_box(struct sym *, const struct affine *index, int buffer, bool has_fill, struct region *need);
bool instances_executed(struct sym *, int stmt, const struct affine *point);   /* none of them was executed before */
bool index_forms(struct sym *, const struct access *, const struct affine *point, struct affine *index);
enum truth image_meets(const struct sym *, const struct image *, const struct region *need);

#endif
