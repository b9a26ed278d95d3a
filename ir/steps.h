/* Recurrences opened: a program whose recurrences' bodies stand as plain statements, as one step executes them. What maps and
 * schedules statements sees such a program; afterwards the steps are put back.
 *
 * States become temporaries and their copies statements: `h = from` before, `to = h` after. The next value is the state itself
 * where no read of the old value follows its first write; otherwise the body ends with the copy `h = h'`.
 *
 * Inside a body a buffer that others see too is another one, its *slice*: the step does not move its indices, and nothing
 * can be concluded from what happens to it outside. */
#ifndef ISAMAP_IR_STEPS_H
#define ISAMAP_IR_STEPS_H

#include "ir/program.h"

struct scope {                      /* a recurrence; those inside others follow them */
    int axis, parent;               /* parent -1: none */
    bool reverse;
};

struct slice {
    int buffer, scope;
    int64_t *coef;                  /* [dimension * nscopes + scope]: how the steps move each index */
};

struct steps {
    struct scope *scope;            /* their axes are the program's last, in this order */
    int nscopes;
    struct slice *slice;            /* of buffers nbuffers, nbuffers + 1, … of the opened program */
    int nslices, nbuffers;
    enum role *role;                /* [nbuffers] what they are again in the end */
    bool *carried;                  /* [nbuffers] temporaries that hand values from one step to the next */
};

/* The program opened; a copy where it has no recurrence, or a call. Recurrences of 0 steps leave their states' copies. */
struct program *program_open(const struct program *, struct arena *, struct steps *);
/* The first opaque call, in the bodies of recurrences too; NULL. */
const struct call *items_call(const struct item *, int n);
/* Accesses name buffers and steps again; slices are gone. Items stay plain (program_nest). */
void program_close(struct program *, const struct steps *);
/* Items from statements in the order of execution: those with a scope in recurrences without states of their own. */
void program_nest(struct program *, const struct scope *, const int *stmt, int n);
struct program *program_closed(const struct program *, const struct steps *);   /* a copy, closed and nested in the order of its statements */

void stmt_add_axis(struct program *, struct stmt *, int at);   /* of a statement kept aside, before program_add_axis */
int program_add_axis(struct program *, const char *name, int64_t extent, int at);   /* before axis `at`; -1: no room */
/* Statements from .. to - 1 take earlier axes of the same extents in place of those from `first` on; axes from there on that
 * no statement names any more are dropped. */
void program_share_axes(struct program *, int from, int to, int first);
char *program_unique(struct program *, const char *base, const char *suffix);   /* base_suffix, or with a number; no axis, parameter or buffer has it */
/* An axis of this extent outside `used`, which it joins: one of the first n, or a new one there. -1: no room. */
int program_copy_axis(struct program *, const char *name, int64_t extent, int n, uint64_t *used);

#endif
