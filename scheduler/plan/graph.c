/* The machine as a graph: queues joined by syncs, memories by capacity. */
#include "scheduler/plan/graph.h"
#include "scheduler/plan/limits.h"
#include "scheduler/plan/needle.h"
#include "scheduler/plan/needs.h"
#include <string.h>

int graph_distance(const struct machine *m, int from, int to, int *next) {
    int parent[MAX_QUEUES], todo[MAX_QUEUES], n = 0, dist[MAX_QUEUES];
    memset(parent, -1, sizeof parent);
    todo[n++] = from;
    dist[from] = 0;
    parent[from] = from;
    for (int i = 0; i < n && parent[to] < 0; i++)
        for (int q = 0; q < m->nqueues; q++)
            if (parent[q] < 0 && edge_of_queue(m, todo[i], q).kind > EDGE_FREE) {
                parent[q] = todo[i];
                dist[q] = dist[todo[i]] + 1;
                todo[n++] = q;
            }
    if (parent[to] < 0) return -1;
    int q = to;
    while (q != from && parent[q] != from) q = parent[q];
    if (next) *next = q;
    return dist[to];
}

bool graph_is_static(const struct machine *m, int memory) {
    return m->memory[memory].pass != PASS_POINTER;
}

bool graph_apart(const struct machine *m, int queue) {
    int unit = m->queue[queue].unit;
    for (int f = 0; f < m->nfallbacks; f++)
        if (unit_inside(m, unit, m->fallback[f].unit) || unit_inside(m, m->fallback[f].unit, unit))
            return false;
    return true;
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

struct names {
    const struct machine *m;
    const struct program *bound;
    const struct instr *in;
    const int64_t *size;
};

static bool look_up(void *user, const char *name, const char *field, double *out) {
    const struct names *n = user;
    if (field) return false;
    for (int i = 0; n->size && i < n->in->nranged; i++)
        if (!strcmp(n->bound->param[n->in->ranged[i]].name, name)) {
            *out = (double)n->size[i];
            return true;
        }
    for (int i = 0; i < n->bound->nparams; i++)
        if (!strcmp(n->bound->param[i].name, name)) {
            *out = (double)n->bound->param[i].value;
            return true;
        }
    for (int i = 0; i < n->m->nparams; i++)
        if (!strcmp(n->m->param[i].name, name)) {
            *out = (double)n->m->param[i].value;
            return true;
        }
    return false;
}

static double number(struct mexpr_env *env, const struct mexpr *e, double otherwise) {
    double v;
    return e && mexpr_eval(e, env, &v, NULL) ? v : otherwise;
}

void instr_times(const struct machine *m, const struct instr *in, const struct program *bound,
                 const int64_t *size, double *latency, double *interval, double *overhead) {
    struct names names = {m, bound, in, size};
    struct mexpr_env env = {.name = look_up, .user = &names};
    if (latency) *latency = number(&env, in->latency, 1);
    if (interval) *interval = number(&env, in->interval, 1);
    if (overhead) *overhead = number(&env, in->overhead, 0);
}

double configure_cycles(const struct machine *m, int configure) {
    static const struct program none;
    const struct configure *c = &m->configure[configure];
    struct names names = {m, &none, NULL, NULL};
    struct mexpr_env env = {.name = look_up, .user = &names};
    return number(&env, c->overhead, 0) + number(&env, c->interval, 1);
}

int64_t least_multiple(int64_t a, int64_t b) {
    if (a < 1 || b < 1) return a < 1 ? (b < 1 ? 1 : b) : a;
    int64_t x = a, y = b;
    while (y) {
        int64_t rest = x % y;
        x = y, y = rest;
    }
    return a / x * b;
}

int64_t graph_align(const struct machine *m, const struct operand *o, int memory,
                    const struct program *bound) {
    struct names names = {m, bound, NULL, NULL};
    struct mexpr_env env = {.name = look_up, .user = &names};
    double v;
    if (o->align && mexpr_eval(o->align, &env, &v, NULL) && v >= 1) return (int64_t)v;
    int64_t align = m->memory[memory].align;
    return align > 0 ? align : 1;
}
