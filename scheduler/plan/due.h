/* The worklist of layouts_decide: tasks in program order that are still to be checked. */
#ifndef ISAMAP_SCHEDULER_PLAN_DUE_H
#define ISAMAP_SCHEDULER_PLAN_DUE_H

#include "scheduler/plan/work.h"

struct due;
struct due *due_begin(struct work *); /* all tasks; lives in the work's arena */
int due_next(struct due *);           /* the first in program order, due no longer; -1: none */
void due_again(
    struct due *,
    int task); /* the one just checked changed something: it is due, and who shares with it */

#endif
