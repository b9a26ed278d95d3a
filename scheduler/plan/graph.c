/* The machine as a graph: queues joined by syncs, memories by capacity. */
#include "scheduler/plan/graph.h"
#include "scheduler/plan/limits.h"
#include <string.h>

static int hops(const struct edges *all, int from, int to, bool meet, struct edge *next) {
    struct edge (*edge)(const struct edges *, int, int) = meet ? edge_meeting : edge_of_queue;
    int parent[MAX_QUEUES], todo[MAX_QUEUES], n = 0, dist[MAX_QUEUES];
    memset(parent, -1, sizeof parent);
    todo[n++] = from;
    dist[from] = 0;
    parent[from] = from;
    for (int i = 0; i < n && parent[to] < 0; i++)
        for (int q = 0; q < all->m->nqueues; q++)
            if (parent[q] < 0 && edge(all, todo[i], q).kind > EDGE_FREE) {
                parent[q] = todo[i];
                dist[q] = dist[todo[i]] + 1;
                todo[n++] = q;
            }
    if (parent[to] < 0) return -1;
    int q = to;
    while (q != from && parent[q] != from) q = parent[q];
    if (next) *next = edge(all, from, q);
    return dist[to];
}

int graph_distance(const struct edges *all, int from, int to, struct edge *next) {
    int n = hops(all, from, to, false, next);
    return n >= 0 ? n : hops(all, from, to, true, next);
}

bool graph_is_static(const struct machine *m, int memory) {
    return m->memory[memory].pass != PASS_POINTER;
}

int64_t graph_capacity(const struct machine *m, int memory) {
    int64_t size = m->memory[memory].size, share = pool_share(m, memory, NULL);
    if (size < 0) return INT64_MAX;
    int64_t word = m->memory[memory].word > 0 ? m->memory[memory].word : 1;
    if (share < size) size = share / word * word;
    return size - edge_objects(m, memory);
}

bool graph_holds(const struct machine *m, int memory, enum type t) {
    uint32_t types = m->memory[memory].types;
    return !types || (types >> t & 1);
}

bool operand_may_be(const struct operand *o, int memory) {
    for (int k = 0; k < o->nmemories; k++)
        if (o->memory[k] == memory) return true;
    return false;
}

bool move_takes(const struct instr *in, int memory) {
    for (int k = 0; k < in->nfrom; k++)
        if (in->from[k] == memory) return true;
    return false;
}

bool move_fills(const struct instr *in, int memory) {
    for (int k = 0; k < in->nto; k++)
        if (in->to[k] == memory) return true;
    return false;
}
