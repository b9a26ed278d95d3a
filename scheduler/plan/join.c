/* Instructions of several statements. While the scheduler works, the last of the statements stands
 * for all (stmts_join) and the others are out of the order; in the end each is what it was, with
 * the homes that were found for what it reads and writes. */
#include "machines/needle.h"
#include "scheduler/plan/rewrite.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/work.h"
#include <string.h>

struct joined {
    int stmt[MAX_JOINED], n; /* the last one stands for all */
    struct stmt own[MAX_JOINED];
    int *read_of[MAX_JOINED];  /* of own reads: read of the joined statement; -1: a temporary, -2:
                                  the result */
    int8_t writes[MAX_JOINED]; /* the result */
    struct joined *next;
};

static struct joined *find(const struct work *w, int stmt) {
    struct joined *j = w->joined;
    while (j && j->stmt[j->n - 1] != stmt) j = j->next;
    return j;
}

bool join_has(const struct work *w, int stmt) {
    return find(w, stmt) != NULL;
}

static void leave_order(struct work *w, int stmt) {
    int kept = 0;
    for (int i = 0; i < w->norder; i++)
        if (w->order[i] != stmt) w->order[kept++] = w->order[i];
    w->norder = kept;
}

static bool join(struct work *w, const struct mapping *m) {
    struct joined *j = arena_alloc(w->arena, sizeof *j);
    struct stmt one;
    j->n = m->nalso + 1;
    memcpy(j->stmt, m->also, sizeof *j->stmt * (size_t)m->nalso);
    j->stmt[m->nalso] = m->stmt;
    if (stmts_join(&w->p->arena, w->p, j->stmt, j->n, &one)) return false;
    for (int q = 0; q < j->n; q++) {
        struct stmt *s = &j->own[q];
        *s = w->p->stmt[j->stmt[q]];
        j->writes[q] = s->dst.buffer == one.dst.buffer;
        j->read_of[q] = arena_array(w->arena, (size_t)s->nreads + 1, sizeof *j->read_of[q]);
        for (int r = 0; r < s->nreads; r++)
            j->read_of[q][r] = s->read[r].buffer == one.dst.buffer
                                   ? -2
                                   : stmt_joined_read(w->p, &one, &s->read[r]);
    }
    for (int q = 0; q < m->nalso; q++) {
        stmt_hide(&w->p->arena, w->p, j->stmt[q], m->stmt);
        w->task_of[j->stmt[q]] = -2;
        leave_order(w, j->stmt[q]);
    }
    w->p->stmt[m->stmt] = one;
    j->next = w->joined;
    w->joined = j;
    return true;
}

bool join_begin(struct work *w) {
    for (int i = 0; i < w->cover->nitems; i++) {
        const struct cover_item *it = &w->cover->item[i];
        if (it->mapping < 0 || w->cover->mapping[it->mapping].nalso == 0) continue;
        if (!join(w, &w->cover->mapping[it->mapping])) return false;
    }
    return true;
}

static void restore(struct work *w, struct joined *j) {
    w->changes++;
    const struct stmt one = w->p->stmt[j->stmt[j->n - 1]];
    for (int q = 0; q < j->n; q++) {
        struct stmt *s = &j->own[q];
        if (j->writes[q]) s->dst = one.dst;
        s->read = arena_copy(&w->p->arena, s->read, sizeof *s->read * (size_t)s->nreads);
        for (int r = 0; r < s->nreads; r++) {
            if (j->read_of[q][r] >= 0) s->read[r] = one.read[j->read_of[q][r]];
            if (j->read_of[q][r] == -2) s->read[r] = one.dst;
        }
        w->p->stmt[j->stmt[q]] = *s;
    }
    for (int s = 0; s < w->p->nstmts;
         s++) /* in the order of the program, just before the last one */
        for (int q = 0; q + 1 < j->n; q++) {
            int at = 0;
            if (j->stmt[q] != s) continue;
            while (w->order[at] != j->stmt[j->n - 1]) at++;
            rewrite_order(w, s, at > 0 ? w->order[at - 1] : -1);
        }
}

void join_finish(struct work *w) {
    for (struct joined *j = w->joined; j; j = j->next) restore(w, j);
}

void join_drop(struct work *w, int stmt) {
    for (struct joined **at = &w->joined; *at; at = &(*at)->next) {
        struct joined *j = *at;
        if (j->stmt[j->n - 1] != stmt) continue;
        restore(w, j);
        for (int q = 0; q < j->n; q++) w->task_of[j->stmt[q]] = -1;
        *at = j->next;
        return;
    }
}

void join_rename(struct work *w, int stmt, const int *map) {
    struct joined *j = find(w, stmt);
    for (int q = 0; j && q < j->n; q++) {
        int axis[MAX_AXES];
        for (int a = 0; a < w->p->naxes; a++) axis[a] = j->own[q].axes >> a & 1 ? map[a] : a;
        stmt_rename_axes(&w->p->arena, w->p, &j->own[q], axis);
    }
}

void join_add_axis(struct work *w, int at) {
    for (struct joined *j = w->joined; j; j = j->next)
        for (int q = 0; q < j->n; q++) stmt_add_axis(w->p, &j->own[q], at);
}

bool join_inner(const struct work *w, int buffer) {
    for (const struct joined *j = w->joined; j; j = j->next)
        for (int q = 0; q + 1 < j->n; q++)
            if (!j->writes[q] && j->own[q].dst.buffer == buffer) return true;
    return false;
}

void join_issue(struct work *w, struct issue_node *n) {
    const struct joined *j = find(w, n->stmt);
    if (!j) return;
    n->nalso = j->n - 1;
    n->also = arena_copy(&w->s->arena, j->stmt, sizeof *n->also * (size_t)n->nalso);
}

/* Sizes of axes of which an issue has all. */
bool join_sizes(const struct work *w, const struct task *t, const struct mapping *m,
                int64_t *fixed) {
    const struct needle *nd = t->needle;
    int all[MAX_JOINED];
    bool any = false;
    if (m->nalso == 0) return false;
    for (int q = 0; q < nd->bound->nstmts; q++) all[q] = q;
    uint64_t whole = stmts_whole_axes(nd->bound, all, nd->bound->nstmts);
    for (int x = 0; x < nd->nx; x++) {
        if (!(whole >> x & 1) || nd->ranged[x] < 0) continue;
        int64_t extent = m->group[x].n ? w->p->axis[m->group[x].axis[0]].extent : 1;
        int64_t more = extent > nd->lo[x] ? extent - nd->lo[x] : 0;
        fixed[nd->ranged[x]] = nd->lo[x] + (more + nd->step[x] - 1) / nd->step[x] * nd->step[x];
        any = true;
    }
    return any;
}
