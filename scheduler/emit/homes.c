/* The static memory plan: addresses of homes, when all nodes are known. Arguments and prepared
 * homes have bytes of their own. Those of temporaries share bytes where their live ranges are
 * apart: the largest first, each in the smallest gap that holds it between those that are live with
 * it (offline best fit by decreasing size; Sekiyama et al., "Profile-guided memory optimization for
 * deep neural networks", 2018, §4). */
#include "scheduler/emit/emit_int.h"
#include "ir/memory.h"
#include "scheduler/plan/graph.h"
#include "scheduler/plan/layouts.h"
#include "scheduler/plan/work.h"
#include <stdlib.h>

enum { ROUNDS = 32 };

struct block {
    int place;
    int64_t bytes, at;         /* rounded up to the alignment; -1: not placed */
    int rank;                  /* the last round in which it reached farthest; 0: none */
    struct live_range live[2]; /* in prepare, in run */
};

struct members { /* placed blocks that are live at a node */
    int *at, n, cap;
};

struct memory_plan {
    struct work *w;
    struct block *block;
    int n;
    struct members *node[2]; /* [nnodes] of prepare, of run */
    int *near;               /* of the block at hand: placed ones live with it, by address */
    int *seen;               /* [n] the last block that met this one */
};

/* Of a device beside a host. */
static bool runs_apart(const struct machine *m) {
    for (int q = 0; q < m->nqueues; q++)
        if (graph_apart(m, q)) return true;
    return false;
}

/* Inside a part queues that run apart may still read of one home what is written of the next: what
 * a part uses is live in all of it. */
static void live_in_parts(const struct schedule *s, const struct marks *parts,
                          struct live_range *live) {
    int *part = memory_array((size_t)s->run.nnodes + 1, sizeof *part);
    for (int n = 0, p = 0; n < s->run.nnodes; n++) {
        while (p + 1 < parts->n && parts->at[p + 1] <= n) p++;
        part[n] = p;
    }
    for (int k = 0; k < s->nplaces; k++)
        if (live[k].last >= 0)
            live[k] = (struct live_range){part[live[k].first], part[live[k].last]};
    free(part);
}

static void block_add(struct memory_plan *p, int place, struct live_range *const live[2],
                      int64_t align) {
    const struct schedule *s = p->w->s;
    struct block *b = &p->block[p->n++];
    b->place = place;
    b->bytes = (s->place[place].bytes + align - 1) / align * align;
    b->at = -1;
    for (int k = 0; k < 2; k++) b->live[k] = live[k][place];
}

static int by_address(const void *a, const void *b, void *user) {
    const struct block *block = user, *x = &block[*(const int *)a], *y = &block[*(const int *)b];
    return (x->at > y->at) - (x->at < y->at);
}

static int collect_near(struct memory_plan *p, int k) {
    const struct block *b = &p->block[k];
    int n = 0;
    for (int c = 0; c < 2; c++)
        for (int t = b->live[c].first; t <= b->live[c].last; t++)
            for (int i = 0; i < p->node[c][t].n; i++) {
                int q = p->node[c][t].at[i];
                if (p->seen[q] == k + 1) continue;
                p->seen[q] = k + 1;
                p->near[n++] = q;
            }
    qsort_r(p->near, (size_t)n, sizeof *p->near, by_address, p->block);
    return n;
}

/* The start of the smallest gap that holds the block, or the end of all that is live with it. */
static int64_t best_gap(const struct memory_plan *p, int k, int nnear) {
    int64_t end = 0, at = -1, least = INT64_MAX, bytes = p->block[k].bytes;
    for (int i = 0; i < nnear; i++) {
        const struct block *q = &p->block[p->near[i]];
        int64_t gap = q->at - end;
        if (gap >= bytes && gap < least) least = gap, at = end;
        if (q->at + q->bytes > end) end = q->at + q->bytes;
    }
    return at >= 0 ? at : end;
}

static void note_placed(struct memory_plan *p, int k) {
    const struct block *b = &p->block[k];
    for (int c = 0; c < 2; c++)
        for (int t = b->live[c].first; t <= b->live[c].last; t++) {
            struct members *m = &p->node[c][t];
            GROW(p->w->arena, m->at, m->n, m->cap);
            m->at[m->n++] = k;
        }
}

static bool give(struct work *w, int place, int64_t at) {
    struct place *x = &w->s->place[place];
    int64_t size = w->m->memory[w->m->home].size;
    x->address = at;
    return size < 0 || at + x->bytes <= size || homes_beyond(w, w->s->place[place].name);
}

/* ---- orders ---- */
/* Those that stood out in earlier rounds, the last first; then the largest. */
static int by_rank(const void *a, const void *b) {
    const struct block *x = a, *y = b;
    if (x->rank != y->rank) return y->rank - x->rank;
    if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
    return x->place - y->place;
}

/* Bytes that all take. */
static int64_t place_blocks(struct memory_plan *p) {
    int64_t end = 0;
    const struct schedule *s = p->w->s;
    qsort(p->block, (size_t)p->n, sizeof *p->block, by_rank);
    for (int n = 0; n < s->prepare.nnodes; n++) p->node[0][n].n = 0;
    for (int n = 0; n < s->run.nnodes; n++) p->node[1][n].n = 0;
    for (int b = 0; b < p->n; b++) p->seen[b] = 0;
    for (int b = 0; b < p->n; b++) {
        p->block[b].at = best_gap(p, b, collect_near(p, b));
        if (p->block[b].at + p->block[b].bytes > end) end = p->block[b].at + p->block[b].bytes;
        note_placed(p, b);
    }
    return end;
}

/* The block that reaches farthest is placed before all others in the next round; the best round
 * counts. */
static bool place_best(struct memory_plan *p, int64_t base) {
    int64_t least = INT64_MAX, bound = schedule_workspace_bound(p->w->s);
    for (int round = 1; round <= ROUNDS && least > bound; round++) {
        int64_t end = place_blocks(p);
        for (int b = 0; b < p->n && end < least; b++)
            p->w->s->place[p->block[b].place].address = base + p->block[b].at;
        if (end < least) least = end;
        for (int b = 0; b < p->n; b++)
            if (p->block[b].at + p->block[b].bytes == end) p->block[b].rank = round;
    }
    for (int b = 0; b < p->n; b++)
        if (!give(p->w, p->block[b].place, p->w->s->place[p->block[b].place].address)) return false;
    return true;
}

bool homes_arrange(struct work *w, const struct marks *parts) {
    struct schedule *s = w->s;
    int64_t at = 0, align = w->m->home_align;
    size_t places = (size_t)s->nplaces + 1;
    struct live_range *live[2] = {schedule_live(w->arena, s, &s->prepare),
                                  schedule_live(w->arena, s, &s->run)};
    struct memory_plan p = {.w = w};
    bool apart = runs_apart(w->m); /* then nobody zeroes padding between two nodes */
    if (apart) live_in_parts(s, parts, live[1]);
    p.block = arena_array(w->arena, places, sizeof *p.block);
    p.near = arena_array(w->arena, places, sizeof *p.near);
    p.seen = arena_array(w->arena, places, sizeof *p.seen);
    p.node[0] = arena_array(w->arena, (size_t)s->prepare.nnodes + 1, sizeof *p.node[0]);
    p.node[1] = arena_array(w->arena, (size_t)s->run.nnodes + 1, sizeof *p.node[1]);
    for (int k = 0; k < s->nplaces; k++) {
        struct place *x = &s->place[k];
        if (x->keep == KEEP_LOCAL) continue;
        if (x->keep == KEEP_WORKSPACE && live[0][k].last < 0 && live[1][k].last < 0) {
            x->address = x->bytes = 0; /* its elements never leave the memories near the units */
            continue;
        }
        if (x->keep == KEEP_WORKSPACE && !(apart && schedule_pads(s, k))) {
            block_add(&p, k, live, align);
            continue;
        }
        if (!give(w, k, at)) return false;
        at = (at + x->bytes + align - 1) / align * align;
    }
    return place_best(&p, at);
}
