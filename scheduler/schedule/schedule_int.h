/* Inside the schedule's files: the text form's words and what printer, parser, verifier share. */
#ifndef ISAMAP_SCHEDULER_SCHEDULE_SCHEDULE_INT_H
#define ISAMAP_SCHEDULER_SCHEDULE_SCHEDULE_INT_H

#include "scheduler/schedule/schedule.h"

enum {
    MAX_TABLE = 1 << 20, /* elements of one */
    SCHEDULE_DEPTH = 100,   /* nesting of loops, and of parentheses in an expression */
    SCHEDULE_TERMS = 4096   /* operations of one expression */
};

extern const char *const keep_name[4];           /* by enum keep */

int kernel_axis_count(const struct kernel *);
const struct kernel_axis *kernel_axis_at(const struct kernel *, int);
/* Does the extent of the axis depend on the kernel's parameter? */
bool kernel_axis_names(const struct kernel *, int axis, int param);
int instr_flag_count(const struct instr *);
/* The operand of the instruction's flag number `flag`. */
int instr_flag_operand(const struct instr *, int flag);

void schedule_print_node(const struct schedule *, const struct node *, int indent, bool body, struct text *);

void print_program_block(const struct program *, int indent, struct text *);   /* { kernel } */
void chain_print(const struct chain *, struct text *);

#endif
