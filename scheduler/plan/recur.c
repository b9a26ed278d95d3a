/* Recurrences: what a step is to the rest of the scheduler. A body's statements are planned as if
 * they stood alone; the step moves their homes' addresses, and what they read and write is brought
 * home in each step but for what stays over all of them (docs/scheduling.md, "Recurrences"). */
#include "scheduler/plan/recur.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/work.h"
#include <string.h>

void recur_begin(struct work *w) {
    const struct steps *s = &w->cover->steps;
    program_close(w->p, s);
    w->nscopes = s->nscopes;
    for (int k = 0; k < w->p->nsizes; k++) schedule_size(w->s, w->p->size[k].name);
    w->scope = arena_copy(w->arena, s->scope, sizeof *s->scope * (size_t)s->nscopes);
    w->step = arena_array(w->arena, (size_t)s->nscopes + 1, sizeof *w->step);
}

uint64_t recur_axes(const struct work *w, const struct stmt *st) {
    uint64_t axes = 0;
    for (int k = st->scope - 1; k >= 0; k = w->scope[k].parent)
        axes |= UINT64_C(1) << w->scope[k].axis;
    return axes;
}

bool recur_moves(const struct work *w, const struct stmt *st, const struct access *a) {
    for (int k = st->scope - 1; k >= 0; k = w->scope[k].parent)
        if (access_varies(w->p, a, w->scope[k].axis)) return true;
    return false;
}

bool recur_carries(const struct work *w, int buffer) {
    const struct steps *s = &w->cover->steps;
    return s->nscopes && buffer < s->nbuffers && s->carried[buffer];
}

static bool is_inside(const struct work *w, int scope, int around) {
    while (scope >= 0 && scope != around) scope = w->scope[scope].parent;
    return scope == around;
}

int recur_child(const struct work *w, int stmt, int scope) {
    int k = w->p->stmt[stmt].scope - 1;
    while (k != scope && w->scope[k].parent != scope) k = w->scope[k].parent;
    return k;
}

int recur_copy_scope(const struct work *w, int stmt, const struct access *a) {
    for (int k = w->p->stmt[stmt].scope - 1; k >= 0; k = w->scope[k].parent) {
        if (access_varies(w->p, a, w->scope[k].axis)) return k + 1;
        for (int s = 0; s < w->p->nstmts; s++)
            if (w->p->stmt[s].dst.buffer == a->buffer && is_inside(w, w->p->stmt[s].scope - 1, k))
                return k + 1;
    }
    return 0;
}

int recur_copy_after(const struct work *w, int stmt, int scope) {
    int at = 0, child = recur_child(w, stmt, scope - 1);
    while (w->order[at] != stmt) at++;
    while (child != scope - 1 && at > 0 &&
           is_inside(w, w->p->stmt[w->order[at - 1]].scope - 1, child))
        at--;
    return at > 0 ? w->order[at - 1] : -1;
}

const char *recur_check(const struct work *w, const struct task *t) {
    const struct stmt *st = &w->p->stmt[t->stmt];
    for (int r = 0; r < st->nreads; r++)
        if (st->read[r].has_fill && recur_moves(w, st, &st->read[r]))
            return "whether a read is outside its buffer depends on the step";
    return NULL;
}
