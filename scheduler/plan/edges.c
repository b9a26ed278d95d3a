/* Edges between queues: what a machine has so that one queue knows what another did. A token or a
 * group where it has one, else a fence, else a barrier, else a chain of tokens by way of other
 * queues; nothing where hardware keeps the order. */
#include "scheduler/plan/graph.h"
#include "scheduler/plan/limits.h"

static bool joins(const struct sync *s, int from, int to) {
    return (s->from >> from & 1) && (s->to >> to & 1);
}

static bool meets(const struct machine *m, const struct sync *s, int queue) {
    return unit_inside(m, m->queue[queue].unit, s->barrier_unit);
}

static struct edge plain_edge(const struct machine *m, int from, int to) {
    struct edge e = {EDGE_NONE, -1, -1, from, to, from};
    if (from == to) e.kind = EDGE_FREE;
    for (int i = 0; i < m->nsyncs && e.kind != EDGE_FREE; i++) {
        const struct sync *s = &m->sync[i];
        if (s->kind == SYNC_INTERLOCK && joins(s, from, to)) e.kind = EDGE_FREE;
        if (s->kind == SYNC_TOKEN && joins(s, from, to) && e.kind != EDGE_TOKEN)
            e.kind = EDGE_TOKEN, e.sync = i;
        if (s->kind == SYNC_FENCE && joins(s, from, to) && e.kind != EDGE_TOKEN)
            e.kind = EDGE_FENCE, e.sync = i;
        if (s->kind == SYNC_BARRIER && e.kind == EDGE_NONE && meets(m, s, from) && meets(m, s, to))
            e.kind = EDGE_BARRIER, e.sync = i;
    }
    return e;
}

/* Does hardware keep the order of what completes behind the first queue, too? */
static bool tracked(const struct machine *m, int from, int to) {
    for (int i = 0; i < m->nsyncs; i++)
        if (m->sync[i].kind == SYNC_INTERLOCK && m->sync[i].asynchronous &&
            joins(&m->sync[i], from, to))
            return true;
    return false;
}

bool graph_apart(const struct machine *m, int queue) {
    int unit = m->queue[queue].unit;
    for (int f = 0; f < m->nfallbacks; f++)
        if (unit_inside(m, unit, m->fallback[f].unit) || unit_inside(m, m->fallback[f].unit, unit))
            return false;
    return true;
}

/* Chains of one token more: queues that hear of `from` tell those that do not yet. What a device's
 * queues do the host does not tell. */
static void chain_tokens(struct edges *all, int from, int length[]) {
    const struct machine *m = all->m;
    bool longer = true;
    for (int n = 1; longer; n++) {
        longer = false;
        for (int by = 0; by < m->nqueues; by++) {
            if (length[by] != n || (graph_apart(m, from) && !graph_apart(m, by))) continue;
            for (int to = 0; to < m->nqueues; to++) {
                struct edge *e = &all->plain[from * m->nqueues + to], last = plain_edge(m, by, to);
                if (e->kind != EDGE_NONE || last.kind != EDGE_TOKEN) continue;
                *e = last;
                e->origin = from;
                length[to] = n + 1;
                longer = true;
            }
        }
    }
}

struct edges *edges_new(struct arena *a, const struct machine *m) {
    struct edges *all = arena_alloc(a, sizeof *all);
    size_t n = (size_t)m->nqueues;
    all->m = m;
    all->plain = arena_array(a, n * n + 1, sizeof *all->plain);
    all->completes = arena_array(a, n + 1, sizeof *all->completes);
    all->tracked = arena_array(a, n * n + 1, sizeof *all->tracked);
    for (int from = 0; from < m->nqueues; from++) {
        all->completes[from] = -1;
        for (int i = 0; i < m->ninstrs && all->completes[from] < 0; i++)
            if (m->instr[i].queue == from) all->completes[from] = m->instr[i].completes;
        for (int to = 0; to < m->nqueues; to++) {
            all->plain[from * m->nqueues + to] = plain_edge(m, from, to);
            all->tracked[from * m->nqueues + to] = tracked(m, from, to);
        }
        int length[MAX_QUEUES] = {0};
        for (int to = 0; to < m->nqueues; to++)
            length[to] = all->plain[from * m->nqueues + to].kind == EDGE_TOKEN;
        chain_tokens(all, from, length);
    }
    return all;
}

struct edge edge_find(const struct edges *all, int from, int completes, int to) {
    if (from < 0 || to < 0) return (struct edge){EDGE_FREE, -1, -1, from, to, from};
    struct edge plain = all->plain[from * all->m->nqueues + to];
    if (completes < 0) return plain;
    if (all->tracked[from * all->m->nqueues + to]) return plain;
    const struct sync *s = &all->m->sync[completes];
    struct edge e = {EDGE_NONE, completes, -1, from, to, from};
    if (s->to >> to & 1) {
        if (s->kind == SYNC_TOKEN) e.kind = EDGE_TOKEN;
        if (s->kind == SYNC_GROUP) e.kind = EDGE_GROUP;
    } else if (s->kind == SYNC_GROUP && (s->to >> from & 1)) {
        e = plain;
        e.first = completes;
    }
    return e;
}

struct edge edge_of_queue(const struct edges *all, int from, int to) {
    struct edge plain = edge_find(all, from, -1, to);
    return from == to || from < 0 || to < 0 ? plain
                                            : edge_find(all, from, all->completes[from], to);
}

struct edge edge_meeting(const struct edges *all, int from, int to) {
    struct edge e = edge_of_queue(all, from, to);
    for (int i = 0; i < all->m->nsyncs && from != to && e.kind == EDGE_FREE; i++) {
        const struct sync *s = &all->m->sync[i];
        if (s->kind == SYNC_BARRIER && meets(all->m, s, from) && meets(all->m, s, to))
            e.kind = EDGE_BARRIER, e.sync = i;
    }
    return e;
}

bool queues_in_step(const struct edges *all, int a, int b) {
    return edge_find(all, a, -1, b).kind == EDGE_FREE && edge_find(all, b, -1, a).kind == EDGE_FREE;
}

bool edge_counts(const struct machine *m, const struct edge *e, int slots) {
    const struct sync *s = e->sync >= 0 ? &m->sync[e->sync] : NULL;
    return e->kind != EDGE_TOKEN || slots <= 1 || s->depth < 0 || s->depth >= slots;
}

bool edge_before(const struct edges *all, const struct edge *e, struct edge *before) {
    if (e->origin == e->from) return false;
    *before = all->plain[e->origin * all->m->nqueues + e->from];
    return true;
}

static bool tokens_alike(const struct machine *m, const struct edge *a, const struct edge *b) {
    if (a->kind != EDGE_TOKEN || b->kind != EDGE_TOKEN || a->sync != b->sync) return false;
    const struct sync *s = &m->sync[a->sync];
    return sync_pair(s, a->from, a->to) == sync_pair(s, b->from, b->to);
}

static bool chains_alike(const struct edges *all, const struct edge *a, const struct edge *b) {
    struct edge before;
    if (tokens_alike(all->m, a, b)) return true;
    return (edge_before(all, a, &before) && chains_alike(all, &before, b)) ||
           (edge_before(all, b, &before) && chains_alike(all, a, &before));
}

bool edges_share(const struct edges *all, const struct edge a[2], const struct edge b[2]) {
    for (int i = 0; i < 4; i++)
        if (chains_alike(all, &a[i / 2], &b[i % 2])) return true;
    return false;
}

int channel_of_meeting(const struct sync *s, int to, bool bracket) {
    if (s->count >= 0) return 0;
    return COPY_SLOTS + (bracket ? __builtin_popcountll(s->to) : 0) +
           __builtin_popcountll(s->to & ((UINT64_C(1) << to) - 1));
}

int channel_of_results(const struct sync *s) {
    return s->count >= 0 ? 0 : COPY_SLOTS + 2 * __builtin_popcountll(s->to);
}

/* Those of a pair of queues among several lie apart: they are no slots that turn. */
bool edge_rotates(const struct machine *m, const struct edge *e, int slots) {
    return !edge_counts(m, e, slots) && sync_pairs(&m->sync[e->sync]) == 1;
}

bool edge_holds(const struct machine *m, const struct edge *e, int slots) {
    if (edge_counts(m, e, slots)) return true;
    if (!edge_rotates(m, e, slots)) return false;
    return m->sync[e->sync].count < 0 ? slots <= COPY_SLOTS : m->sync[e->sync].count >= slots;
}

/* Bytes that syncs need in a memory, at most. */
int64_t edge_objects(const struct machine *m, int memory) {
    int64_t bytes = 0;
    for (int i = 0; i < m->nsyncs; i++) {
        const struct sync *s = &m->sync[i];
        if (s->memory != memory) continue;
        bytes += s->size * (s->count < 0 ? channel_of_results(s) + 1 : s->count);
    }
    return bytes;
}
