/* Which tasks' layouts are still to be checked. A check looks at the homes of the buffers that the
 * task accesses and at who writes them; a change makes those due that share a buffer whose home got
 * its layout, or that the changed task writes. */
#include "scheduler/plan/attach.h"
#include "scheduler/plan/layouts.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/work.h"

struct list {
    int *at, n, cap;
};
struct due {
    struct work *w;
    struct sharing { /* of each buffer */
        struct list tasks;
        bool packed; /* what the tasks that are not due have seen */
    } * of;
    int nbuffers, cap;
    struct list *buffers; /* of each task: it is among the tasks of these */
    int *rank, *task, n;  /* of each task its place in the program; and back */
    bool *is;             /* by rank */
    int first;            /* no rank before it is due */
    struct list wrote;    /* what the task that is being checked wrote before */
};

static void add(struct arena *a, struct list *l, int x) {
    GROW(a, l->at, l->n, l->cap);
    l->at[l->n++] = x;
}

static void share(struct due *d, int task, int buffer) {
    struct arena *a = d->w->arena;
    struct list *mine = &d->buffers[task];
    for (int i = 0; i < mine->n; i++)
        if (mine->at[i] == buffer) return;
    while (d->nbuffers <= buffer) {
        GROW(a, d->of, d->nbuffers, d->cap);
        d->of[d->nbuffers++] = (struct sharing){.packed = false};
    }
    add(a, mine, buffer);
    add(a, &d->of[buffer].tasks, task);
}

static void share_stmt(struct due *d, int task, int stmt) {
    if (stmt < 0) return;
    const struct stmt *st = &d->w->p->stmt[stmt];
    share(d, task, st->dst.buffer);
    for (int r = 0; r < st->nreads; r++) share(d, task, st->read[r].buffer);
}

/* What `user` depends on: its statements, and those of the tasks that are part of its nest. */
static void share_all(struct due *d, int user, int task) {
    const struct task *t = &d->w->task[task];
    share_stmt(d, user, t->stmt);
    share_stmt(d, user, t->init);
    for (int i = 0; i < t->nops; i++)
        for (const struct attachment *x = t->op[i].attached; x; x = x->next)
            share_all(d, user, x->task);
}

static void mark(struct due *d, int buffer) {
    const struct list *l = &d->of[buffer].tasks;
    for (int i = 0; i < l->n; i++) {
        int r = d->rank[l->at[i]];
        d->is[r] = true;
        if (r < d->first) d->first = r;
    }
}

/* The buffers that the task's nest writes. */
static void written(const struct work *w, const struct task *t, struct arena *a, struct list *out) {
    const struct stmt *st = w->p->stmt;
    add(a, out, st[t->stmt].dst.buffer);
    for (int i = 0; i < t->nops; i++)
        for (const struct attachment *x = t->op[i].attached; x; x = x->next)
            written(w, &w->task[x->task], a, out);
}

struct due *due_begin(struct work *w) {
    struct arena *a = w->arena;
    struct due *d = arena_alloc(a, sizeof *d);
    d->w = w;
    d->buffers = arena_array(a, (size_t)w->ntasks + 1, sizeof *d->buffers);
    d->rank = arena_array(a, (size_t)w->ntasks + 1, sizeof *d->rank);
    d->task = arena_array(a, (size_t)w->ntasks + 1, sizeof *d->task);
    d->is = arena_array(a, (size_t)w->ntasks + 1, sizeof *d->is);
    for (int i = 0; i < w->norder; i++) {
        int k = w->task_of[w->order[i]];
        if (k < 0) continue;
        d->rank[k] = d->n;
        d->task[d->n] = k;
        d->is[d->n++] = true;
        share_all(d, k, k);
    }
    return d;
}

int due_next(struct due *d) {
    for (; d->first < d->n; d->first++) {
        int k = d->task[d->first];
        if (!d->is[d->first] || d->w->task_of[d->w->task[k].stmt] != k) continue;
        d->is[d->first] = false;
        share_all(d, k, k);
        d->wrote.n = 0;
        written(d->w, &d->w->task[k], d->w->arena, &d->wrote);
        return k;
    }
    return -1;
}

void due_again(struct due *d, int task) {
    share_all(d, task, task);
    written(d->w, &d->w->task[task], d->w->arena, &d->wrote);
    for (int i = 0; i < d->wrote.n; i++) mark(d, d->wrote.at[i]);
    for (int i = 0; i < d->buffers[task].n; i++) {
        int b = d->buffers[task].at[i];
        if (d->of[b].packed == work_home(d->w, b)->packed) continue;
        d->of[b].packed = work_home(d->w, b)->packed;
        mark(d, b);
    }
    if (d->rank[task] < d->first) d->first = d->rank[task];
    d->is[d->rank[task]] = true;
}
