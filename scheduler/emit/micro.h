/* Instructions that take their operands' addresses from entries of a table. */
#ifndef ISAMAP_SCHEDULER_EMIT_MICRO_H
#define ISAMAP_SCHEDULER_EMIT_MICRO_H

#include "scheduler/emit/emit_int.h"
#include "scheduler/plan/moves.h"
#include "scheduler/plan/work.h"

enum { TABLE_WANTED = 1 << 30 }; /* loop_node.table while nobody knows where the entries will stand */

/* micro.c: issues of such instructions get loops over entries; whole: no loop around them is ever empty. */
void micro_make(struct work *, struct nodes *, bool whole);
int flags_of(const struct instr *);
int64_t counter_max(const struct instr *, int innermost); /* iterations that each of so many inner loops takes */

/* tables.c: the entries of the list's issues in tables, and loads of these before it. False after reporting. */
bool tables_load(struct work *, const struct moves *, struct nodes *, bool again);

/* node.c */
int64_t loop_most(struct work *, const struct loop_node *); /* iterations; INT64_MAX: not known */

#endif
