/* A section's nodes as launches. */
#include "scheduler/schedule/launches.h"
#include "ir/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- units ---- */
enum spread unit_spread(const struct machine *m, int unit) {
    const char *index = m->unit[unit].index;
    if (index && strstr(index, "blockIdx")) return SPREAD_BLOCKS;
    return index && strstr(index, "threadIdx") ? SPREAD_THREADS : SPREAD_NONE;
}

bool loop_over_blocks(const struct machine *m, const struct loop_node *l) {
    return l->kind == LOOP_PARALLEL && l->unit >= 0 && unit_spread(m, l->unit) == SPREAD_BLOCKS;
}

/* A barrier of a unit around the blocks: blocks meet only at a kernel's end. */
bool sync_ends_launch(const struct machine *m, int sync) {
    bool around = m->sync[sync].kind == SYNC_BARRIER;
    for (int u = m->sync[sync].barrier_unit; u > 0 && around; u = m->unit[u].parent)
        around = unit_spread(m, u) == SPREAD_NONE;
    return around;
}

bool node_begins_launch(const struct machine *m, const struct node *node) {
    const struct signals *s = node_signals(node);
    for (int k = 0; s && k < s->npops; k++)
        if (sync_ends_launch(m, s->pop[k].sync)) return true;
    return false;
}

/* ---- what a launch does first with a place ---- */

/* A bound that compares: the loop's turns are a condition. */
static bool compares(const struct sx *x) {
    if (x->op == SX_CONST || x->op == SX_VAR) return false;
    return x->op == SX_LT || x->op == SX_LE || x->op == SX_EQ || x->op == SX_NE ||
           x->op == SX_AND || x->op == SX_OR || compares(x->a) || compares(x->b);
}

/* An instruction that accumulates reads, unless its flag may say that it overwrites. */
static enum first_touch issue_touch(const struct schedule *s, const struct issue_node *issue,
                                    int place) {
    const struct instr *in = &s->machine->instr[issue->instr];
    enum first_touch found = FIRST_NONE;
    for (int o = 0, flag = 0; o < in->noperands; o++) {
        int64_t add = 0;
        bool first = in->operand[o].role == ROLE_OUT;
        if (in->operand[o].accumulate) {
            first = !sx_constant(issue->flag[flag], &add) || !add;
            flag++;
        }
        if (issue->arg[o].place != place) continue;
        if (!first) return FIRST_READ;
        found = FIRST_WRITE;
    }
    return found;
}

enum first_touch nodes_first_touch(const struct schedule *s, const struct node *node, int n,
                                   int place) {
    for (int i = 0; i < n; i++) {
        enum first_touch found = FIRST_NONE;
        if (node[i].kind == NODE_ISSUE) found = issue_touch(s, node[i].issue, place);
        if (node[i].kind == NODE_LOOP) {
            const struct loop_node *l = node[i].loop;
            found = nodes_first_touch(s, l->body, l->nbody, place);
            if (found != FIRST_NONE && (compares(l->lo) || compares(l->hi))) return FIRST_READ;
        }
        if (found != FIRST_NONE) return found;
    }
    return FIRST_NONE;
}

/* The nodes need nothing of what the local places held before. */
static bool begins_anew(const struct schedule *s, const struct node *node, int n) {
    for (int p = 0; p < s->nplaces; p++)
        if (s->place[p].keep == KEEP_LOCAL && nodes_first_touch(s, node, n, p) == FIRST_READ)
            return false;
    return true;
}

/* ---- one launch after the other ---- */

/* Does some node wait where a kernel ends? */
static bool meets(const struct machine *m, const struct node *node, int n) {
    for (int i = 0; i < n; i++)
        if (node_begins_launch(m, &node[i]) ||
            (node[i].kind == NODE_LOOP && meets(m, node[i].loop->body, node[i].loop->nbody)))
            return true;
    return false;
}

/* Loops around kernels, slots of homes that turn, syncs that say nothing. */
bool launch_hosted(const struct schedule *s, const struct node *node) {
    const struct machine *m = s->machine;
    if (node->kind == NODE_FALLBACK) return true;
    if (node->kind == NODE_ROTATE) return s->place[node->rotate].keep != KEEP_LOCAL;
    if (node->kind == NODE_SYNC) {
        const struct signals *g = node_signals(node);
        for (int i = 0; i < g->npops; i++)
            if (m->sync[g->pop[i].sync].npop_emits && !sync_ends_launch(m, g->pop[i].sync))
                return false;
        for (int i = 0; i < g->npushes; i++)
            if (m->sync[g->push[i].sync].npush_emits) return false;
        return true;
    }
    if (node->kind != NODE_LOOP) return false;
    const struct loop_node *l = node->loop;
    if (l->kind == LOOP_PARALLEL) return loop_over_blocks(m, l);
    if (meets(m, l->body, l->nbody)) return true;
    for (int i = 0; i < l->nbody; i++)
        if (!launch_hosted(s, &l->body[i])) return false;
    return true;
}

/* How many nodes are one kernel of one block: up to what the host does, or what waits for the
 * kernel's end. */
static int block_nodes(const struct schedule *s, const struct node *node, int n) {
    int more = 1;
    while (more < n && !launch_hosted(s, &node[more]) &&
           !node_begins_launch(s->machine, &node[more]))
        more++;
    return more;
}

/* Queues that only wait for one another: the end of a kernel does that. */
static bool only_signals(const struct node *node, int n) {
    int k = 0;
    while (k < n && node[k].kind == NODE_SYNC) k++;
    return k == n;
}

/* Of nodes in a parallel loop, how many make the next kernel: one that is a parallel loop, or all
 * before one. */
static int part_of(const struct schedule *s, const struct node *node, int n) {
    int part = 0;
    for (; part < n; part++)
        if (node[part].kind == NODE_LOOP && loop_over_blocks(s->machine, node[part].loop))
            return part ? part : 1;
    return part;
}

/* A parallel loop with parallel loops among others in it becomes several, each with a grid of its
 * own, where no part needs what another left in a block. */
int launch_part(const struct schedule *s, const struct loop_node *l, int from) {
    for (int i = 0, k; i < l->nbody; i += k) {
        k = part_of(s, &l->body[i], l->nbody - i);
        if (!begins_anew(s, &l->body[i], k)) return l->nbody - from;
    }
    return part_of(s, &l->body[from], l->nbody - from);
}

enum { MOST_POINTS = 1024, MOST_VALUES = 64 /* for each thread */ };

bool launch_is_small(const struct schedule *s, const struct node *node) {
    if (node->kind == NODE_FALLBACK)
        return fallback_points(s, node->fallback, false) <= MOST_POINTS &&
               fallback_points(s, node->fallback, true) <= MOST_POINTS * MOST_VALUES;
    if (node->kind != NODE_LOOP || node->loop->kind == LOOP_PARALLEL) return false;
    for (int i = 0; i < node->loop->nbody; i++)
        if (!launch_is_small(s, &node->loop->body[i])) return false;
    return true;
}

static int small_nodes(const struct schedule *s, const struct node *node, int n) {
    int k = 0;
    while (k < n && launch_is_small(s, &node[k])) k++;
    return k;
}

int launch_next(const struct schedule *s, const struct node *node, int n, enum launch_kind *kind) {
    int more = small_nodes(s, node, n);
    *kind = LAUNCH_ONE;
    if (more) return more;
    if (!launch_hosted(s, node)) {
        more = block_nodes(s, node, n);
        if (only_signals(node, more)) *kind = LAUNCH_SIGNALS;
        return more;
    }
    more = 1;
    if (node->kind == NODE_FALLBACK)
        while (more < n && launch_goes_along(s, node, more, &node[more])) more++;
    else if (node->kind != NODE_LOOP)
        *kind = LAUNCH_NONE;
    else
        *kind = node->loop->kind == LOOP_PARALLEL ? LAUNCH_GRID : LAUNCH_LOOP;
    return more;
}

/* ---- how many ---- */

static double count(const struct schedule *, const struct node *, int n, int64_t *value);

/* Of a loop of the host. */
static double loop_launches(const struct schedule *s, const struct loop_node *l, int64_t *value) {
    int64_t lo = sx_eval(l->lo, value), hi = sx_eval(l->hi, value);
    value[l->var] = lo;
    return hi <= lo ? 0
                    : ceil(((double)hi - (double)lo) / (double)l->step) *
                          count(s, l->body, l->nbody, value);
}

static double count(const struct schedule *s, const struct node *node, int n, int64_t *value) {
    enum launch_kind kind;
    double sum = 0;
    for (int i = 0, more; i < n; i += more) {
        more = launch_next(s, &node[i], n - i, &kind);
        if (kind == LAUNCH_ONE) sum++;
        if (kind == LAUNCH_LOOP) sum += loop_launches(s, node[i].loop, value);
        if (kind != LAUNCH_GRID) continue;
        for (int k = 0; k < node[i].loop->nbody; sum++) k += launch_part(s, node[i].loop, k);
    }
    return sum;
}

double section_launches(const struct schedule *s, const struct section *c) {
    int64_t *value = memory_array((size_t)s->nvars + 1, sizeof *value);
    for (int k = 0; k < s->program->nsizes; k++) value[k] = s->program->size[k].hi;
    double sum = count(s, c->node, c->nnodes, value);
    free(value);
    return sum;
}
