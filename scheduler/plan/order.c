/* The order in which statements are executed, while statements come and go. */
#include "scheduler/plan/rewrite.h"
#include "scheduler/plan/work.h"
#include <string.h>

void rewrite_order(struct work *w, int stmt, int after) {
    int at = after == -2 ? w->norder : 0;
    if (after >= 0)
        for (int i = 0; i < w->norder; i++)
            if (w->order[i] == after) at = i + 1;
    int *order = arena_grow(w->arena, w->order, w->norder, &w->cap_order, sizeof *order);
    memmove(order + at + 1, order + at, sizeof *order * (size_t)(w->norder - at));
    order[at] = stmt;
    w->order = order;
    w->norder++;
}

void rewrite_items(struct work *w) {
    program_nest(w->p, w->scope, w->order, w->norder);
}
