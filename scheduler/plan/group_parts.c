/* The parts of the run, and ranges of them that may become groups. */
#include "scheduler/plan/attach.h"
#include "scheduler/plan/graph.h"
#include "scheduler/plan/group_int.h"
#include "scheduler/plan/rewrite.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/work.h"
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 48 }; /* parts of a range: what it costs to look at one grows with their square */

static bool nest_may(const struct work *w, const struct nest *n) {
    if (n->kept || n->part_n || n->next_part >= 0) return false;
    for (int i = 0; i < nest_ntasks(n); i++) {
        const struct task *t = &w->task[nest_task(n, i)];
        for (int o = 0; o < t->nops; o++)
            for (const struct attachment *x = t->op[o].attached; x; x = x->next)
                if (x->side != FILLS || !t->op[o].writes) return false;
    }
    return n->core < 0 || (!join_has(w, w->task[n->core].stmt) &&
                           nest_chain_queue(w, n) == w->task[n->core].needle->in->queue);
}

/* Does hardware keep the host in step with all queues? One thread does its work. */
static bool host_may(const struct work *w, int stmt) {
    int host = w->fallback >= 0 ? w->m->fallback[w->fallback].queue : -1;
    if (w->fallback < 0 || w->p->stmt[stmt].scope || !w->options || w->options->threads != 1)
        return false;
    for (int q = 0; q < w->m->nqueues; q++)
        if (!queues_in_step(w->edges, host, q)) return false;
    return true;
}

static bool part_may(const struct work *w, const struct run_part *p) {
    return p->nest >= 0 ? nest_may(w, &w->nest[p->nest]) : host_may(w, p->stmt);
}

static void own_stmts(struct grouping *g, const struct run_part *p, int number) {
    struct draft d = {.part = p};
    draft_touch(g->w, &d, 0);
    for (int i = 0; i < d.ntouches; i++) g->part_of[d.touch[i].stmt] = number;
}

void parts_find(struct grouping *g) {
    struct work *w = g->w;
    int *nest_at = arena_array(w->arena, (size_t)w->p->nstmts + 1, sizeof *nest_at);
    for (int i = 0; i < w->nnests; i++) nest_at[w->nest[i].first] = i + 1;
    for (int s = 0; s < w->p->nstmts; s++) g->part_of[s] = -1;
    for (int i = 0; i < w->norder; i++) {
        int s = w->order[i];
        if (w->in_prepare[s] || (!nest_at[s] && w->task_of[s] != -1)) continue;
        GROW(w->arena, g->part, g->nparts, g->cap_parts);
        g->part[g->nparts] = (struct run_part){nest_at[s] - 1, s};
        own_stmts(g, &g->part[g->nparts], g->nparts);
        g->nparts++;
    }
}

/* Temporaries first: what is only read comes when their groups are there. */
static int by_bytes(const void *a, const void *b) {
    const struct tensor *x = a, *y = b;
    if (x->given != y->given) return x->given - y->given;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
    return x->buffer - y->buffer;
}

/* All parts that touch the buffer, if that is its role. */
static void reach(const struct grouping *g, int buffer, enum role role, int *first, int *last) {
    int count;
    const int *use = buffer_uses(g->w, buffer, &count);
    for (int i = 0; i < count && g->w->p->buffer[buffer].role == role; i++) {
        int q = g->part_of[use[i]];
        if (q >= 0 && q < *first) *first = q;
        if (q > *last) *last = q;
    }
}

int tensors_find(const struct grouping *g, struct tensor *out) {
    const struct work *w = g->w;
    int n = 0;
    for (int b = 0; b < w->p->nbuffers; b++) {
        struct tensor t = {b, g->nparts, -1,
                           (double)w->p->buffer[b].elements *
                               (double)type_size(w->p->buffer[b].type),
                           w->p->buffer[b].role == ROLE_IN};
        reach(g, b, t.given ? ROLE_IN : ROLE_TEMP, &t.first, &t.last);
        if (t.first < t.last) out[n++] = t;
    }
    qsort(out, (size_t)n, sizeof *out, by_bytes);
    return n;
}

/* With the groups that it reaches into. */
static void widen(const struct grouping *g, int *first, int *last) {
    for (bool more = true; more;) {
        more = false;
        for (int q = *first; q <= *last; q++) {
            if (g->group_of[q] < 0) continue;
            const struct nest_group *x = &g->w->group[g->group_of[q]];
            int end = x->first + x->n - 1;
            more |= x->first < *first || end > *last;
            if (x->first < *first) *first = x->first;
            if (end > *last) *last = end;
        }
    }
}

/* Instances that share the turns of a grid share those of a group too, if all its parts are grids
 * over the same units. */
static bool same_instances(const struct work *w, const struct run_part *a,
                           const struct run_part *b) {
    int unit[2][MAX_PREFIX], n[2] = {0};
    const struct run_part *both[2] = {a, b};
    for (int i = 0; i < 2; i++) {
        const struct nest *nest = both[i]->nest >= 0 ? &w->nest[both[i]->nest] : NULL;
        if (nest && grid_fills_before(w, nest)) return false;
        if (nest && nest->is_grid) n[i] = grid_units(w, grid_task(w, nest), unit[i]);
    }
    return n[0] == n[1] && !memcmp(unit[0], unit[1], sizeof *unit[0] * (size_t)n[0]);
}

static bool range_may(const struct grouping *g, int first, int last) {
    const struct work *w = g->w;
    bool nest = false;
    for (int q = first; q <= last; q++) {
        nest |= g->part[q].nest >= 0;
        if (!part_may(w, &g->part[q]) || !same_instances(w, &g->part[first], &g->part[q]) ||
            w->p->stmt[g->part[q].stmt].scope != w->p->stmt[g->part[first].stmt].scope)
            return false;
    }
    return nest;
}

static bool may_copy(const struct grouping *g, int q) {
    return q >= 0 && q < g->nparts && g->part[q].nest < 0 && host_copies(g->w, g->part[q].stmt) &&
           host_may(g->w, g->part[q].stmt);
}

/* A copy by the host whose other side these parts alone touch: it would turn with one of them. */
bool copy_belongs(const struct grouping *g, int q, int first, int last) {
    const struct work *w = g->w;
    if (!may_copy(g, q)) return false;
    const struct stmt *st = &w->p->stmt[g->part[q].stmt];
    int count, b = q < first ? st->dst.buffer : st->read[0].buffer;
    const int *use = buffer_uses(w, b, &count);
    for (int i = 0; i < count; i++) {
        int r = g->part_of[use[i]];
        if (r != q && (r < first || r > last)) return false;
    }
    return w->p->buffer[b].role == ROLE_TEMP;
}

/* The host's copies are no ends: who makes what they copy, or reads the copy, is one. */
static void pass_copies(const struct grouping *g, int *first, int *last) {
    const struct work *w = g->w;
    for (bool more = true; more;) {
        int from = *first, to = *last;
        if (may_copy(g, from))
            reach(g, w->p->stmt[g->part[from].stmt].read[0].buffer, ROLE_TEMP, first, last);
        if (may_copy(g, to))
            reach(g, w->p->stmt[g->part[to].stmt].dst.buffer, ROLE_TEMP, first, last);
        more = from != *first || to != *last;
    }
}

const char *tensor_range(const struct grouping *g, const struct tensor *t, bool copies, int *first,
                         int *last) {
    *first = t->first;
    *last = t->last;
    pass_copies(g, first, last);
    widen(g, first, last);
    while (copies && copy_belongs(g, *first - 1, *first, *last)) (*first)--;
    while (copies && copy_belongs(g, *last + 1, *first, *last)) (*last)++;
    widen(g, first, last);
    if (*last - *first >= LONGEST) return "too much stands between those who touch it";
    return range_may(g, *first, *last) ? NULL : "it is not for nests that share loops";
}
