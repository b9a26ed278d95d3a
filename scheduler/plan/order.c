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

/* May what stands at `from` stand right before `to`? */
static bool may_wait(const struct work *w, int from, int to) {
    const struct stmt *s = &w->p->stmt[w->order[from]];
    for (int i = from + 1; i <= to; i++) {
        const struct stmt *other = &w->p->stmt[w->order[i]];
        if (other->scope != s->scope || (i < to && stmt_reads(s, other->dst.buffer))) return false;
    }
    return true;
}

/* The next one in order that accesses what statement s writes; -1. */
static int next_use(const struct work *w, int s) {
    int n;
    const int *use = buffer_uses(w, w->p->stmt[s].dst.buffer, &n);
    for (int i = 0; i + 1 < n; i++)
        if (use[i] == s) return use[i + 1];
    return -1;
}

int order_starter(const struct work *w, int core) {
    int n, at = 0, to = 0, s = -1;
    const int *use = buffer_uses(w, w->p->stmt[core].dst.buffer, &n);
    for (int i = 1; i < n; i++)
        if (use[i] == core) s = use[i - 1];
    if (s < 0 || w->task_of[s] < 0 || w->p->stmt[s].combine != COMBINE_SET ||
        w->p->stmt[s].dst.buffer != w->p->stmt[core].dst.buffer)
        return -1;
    while (w->order[at] != s) at++;
    while (w->order[to] != core) to++;
    return may_wait(w, at, to) ? s : -1;
}

void order_starts(struct work *w) {
    for (int i = w->norder - 2; i >= 0; i--) {
        int s = w->order[i], core, to = i + 1;
        if (w->task_of[s] < 0 || w->p->stmt[s].combine != COMBINE_SET) continue;
        core = next_use(w, s);
        if (core < 0 || w->task_of[core] < 0 || w->p->stmt[core].combine == COMBINE_SET ||
            w->p->stmt[core].dst.buffer != w->p->stmt[s].dst.buffer)
            continue;
        while (w->order[to] != core) to++;
        if (to == i + 1 || !may_wait(w, i, to)) continue;
        memmove(w->order + i, w->order + i + 1, sizeof *w->order * (size_t)(to - i - 1));
        w->order[to - 1] = s;
        w->changes++;
    }
}

void rewrite_items(struct work *w) {
    program_nest(w->p, w->scope, w->order, w->norder);
}
