/* Nests that may share loops name their axes alike: the reader's become those of who makes what it
 * reads, before plans are made. */
#include "scheduler/plan/nest.h"
#include "scheduler/plan/rewrite.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/work.h"
#include <string.h>

static int maker_of(const struct nest *n) {
    return n->nchain ? n->chain[n->nchain - 1].task : n->core;
}

int maker_result(const struct work *w, const struct nest *n) {
    return w->p->stmt[w->task[maker_of(n)].stmt].dst.buffer;
}

/* Read by one core alone, whose axes may slide windows. */
static bool slides_alone(const struct work *w, int buffer, int core) {
    int count;
    const int *use = buffer_uses(w, buffer, &count);
    for (int i = 0; i < count; i++)
        if (w->task_of[use[i]] != core && stmt_reads(&w->p->stmt[use[i]], buffer)) return false;
    return w->p->buffer[buffer].role == ROLE_TEMP;
}

/* As the first of its reads says that an earlier nest makes. */
static void rename_nest(struct work *w, int nest, const int *made_by) {
    struct nest *n = &w->nest[nest];
    int head = nest_head(n), map[MAX_AXES];
    const struct stmt *st = &w->p->stmt[w->task[head].stmt];
    for (int r = 0; r < st->nreads; r++) {
        int from = made_by[st->read[r].buffer];
        if (from < 0 || w->p->stmt[w->nest[from].first].scope != st->scope) continue;
        int maker = maker_of(&w->nest[from]);
        if (!nest_unify(w, maker, head, r, map) &&
            (n->core < 0 || w->nest[from].core < 0 || from != nest - 1 ||
             !slides_alone(w, st->read[r].buffer, head) || !windows_map(w, maker, head, r, map)))
            continue;
        nest_rename(w, n, map);
        return;
    }
}

void groups_rename(struct work *w) {
    int *made_by = arena_array(w->arena, (size_t)w->p->nbuffers + 1, sizeof *made_by);
    for (int b = 0; b < w->p->nbuffers; b++) made_by[b] = -1;
    for (int i = 0; i < w->nnests; i++) {
        if (!w->nest[i].kept && !w->nest[i].part_n) rename_nest(w, i, made_by);
        made_by[maker_result(w, &w->nest[i])] = i;
    }
}
