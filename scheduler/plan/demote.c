/* A statement that its instruction cannot execute after all: it is mapped otherwise, or the
 * fallback executes it, and so does what began or followed it. */
#include "scheduler/plan/attach.h"
#include "scheduler/plan/left.h"
#include "scheduler/plan/rewrite.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/work.h"

/* Could the sums be mapped otherwise? What follows them or begins them falls with them. */
static void refuse(struct work *w, const struct task *t, const char *why, int line, int col) {
    struct refusals *r = w->options ? w->options->refused : NULL;
    const struct mapping *map = &w->cover->mapping[w->cover->item[t->item].mapping];
    if (!r || w->cover->program->stmt[map->stmt].combine == COMBINE_SET) return;
    w->refused |= refusals_add(r, w->cover->program, w->m, map, why, line, col);
}

bool task_refuse(struct work *w, int stmt, const char *why) {
    int task = stmt >= 0 ? w->task_of[stmt] : -1, line = 0, col = 0;
    if (task < 0) return false;
    if (w->p->source.text) source_place(&w->p->source, w->p->stmt[stmt].at, &line, &col);
    refuse(w, &w->task[task], why, line, col);
    return w->refused;
}

void attached_drop(struct work *w, struct task *t, int side, const char *why) {
    for (int i = 0; i < t->nops; i++)
        for (struct attachment **at = &t->op[i].attached, *x; (x = *at) != NULL;) {
            if (x->side != (enum attach_side)side) {
                at = &x->next;
                continue;
            }
            *at = x->next;
            if (side == STORES) attached_drop(w, t, CHANGES, why); /* it stays with it */
            task_demote(w, x->task, why);
            if (side == STORES) return;
        }
}

void task_demote(struct work *w, int task, const char *why) {
    struct task *t = &w->task[task];
    const char *name = t->needle ? t->needle->in->id : "the instruction";
    int line = 0, col = 0;
    if (w->p->source.text) source_place(&w->p->source, w->p->stmt[t->stmt].at, &line, &col);
    refuse(w, t, why, line, col);
    w->task_of[t->stmt] = -1;
    if (t->init >= 0) w->task_of[t->init] = -1;
    join_drop(w, t->stmt);
    attached_drop(w, t, STORES, "the reduction that it finishes is not there");
    attached_drop(w, t, STORES_TOO, "what it stores is not made by an instruction");
    attached_drop(w, t, FILLS, "the reduction that it starts is not there");
    if (w->refused) return; /* all of it is done again */
    if (w->fallback >= 0 && w->options && w->options->left)
        left_add(w->options->left,
                 &(struct left){.stmt = t->stmt,
                                .line = line,
                                .col = col,
                                .products = stmt_is_mac(w->p, &w->p->stmt[t->stmt]),
                                .instr = t->needle ? name : NULL,
                                .why = why});
    else if (w->fallback >= 0)
        diag_warn(w->diags, work_file(w), line, col,
                  "statement %d runs on the fallback, not on '%s': %s", t->stmt, name, why);
    else
        diag_line(
            w->diags, work_file(w), line, col,
            "statement %d cannot be scheduled on '%s': %s; a machine with a fallback could run it",
            t->stmt, name, why);
}
