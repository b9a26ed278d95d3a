/* Roles: a queue may have threads of its own in a block (machine format: `threads`). They execute
 * its instructions and nothing else, the threads of the units do the rest; each walks the whole of
 * a kernel and leaves out what is not its own. What the schedule's tokens say goes through objects
 * in shared memory. */
#include "backends/cuda/cuda_int.h"

#include <string.h>

/* ---- whose a node is ---- */
static bool queue_mine(const struct cuda *c, int queue) {
    bool apart = queue >= 0 && c->g.machine->queue[queue].threads > 0;
    return c->role < 0 ? !apart : apart && c->g.machine->queue[queue].role == c->role;
}

bool cuda_mine(struct cgen *g, const struct node *node) {
    struct cuda *c = g->user;
    if (!c->nroles) return true;
    switch (node->kind) {
    case NODE_ISSUE:
        return queue_mine(c, g->machine->instr[node->issue->instr].queue);
    case NODE_SYNC:
        return queue_mine(c, node->sync.queue);
    case NODE_CONFIGURE:
        return queue_mine(c, g->machine->configure[node->configure->configure].queue);
    case NODE_FALLBACK:
        return c->role < 0;
    case NODE_ROTATE:
        return c->used[node->rotate];
    case NODE_LOOP:
        if (loop_over_blocks(g->machine, node->loop)) return true; /* all meet there */
        for (int i = 0; i < node->loop->nbody; i++)
            if (cuda_mine(g, &node->loop->body[i])) return true;
        return false;
    }
    return true;
}

static void find_queues(struct cuda *c, const struct node *node, int n, bool *found) {
    const struct machine *m = c->g.machine;
    for (int i = 0; i < n; i++) {
        int queue = node[i].kind == NODE_ISSUE  ? m->instr[node[i].issue->instr].queue
                    : node[i].kind == NODE_SYNC ? node[i].sync.queue
                                                : -1;
        if (queue >= 0 && m->queue[queue].threads > 0) found[m->queue[queue].role] = true;
        if (node[i].kind == NODE_LOOP)
            find_queues(c, node[i].loop->body, node[i].loop->nbody, found);
    }
}

void cuda_find_roles(struct cuda *c, const struct node *node, int n) {
    bool *found = arena_array(&c->g.arena, (size_t)c->g.machine->nqueues + 1, sizeof *found);
    c->nroles = 0;
    find_queues(c, node, n, found);
    for (int q = 0; q < c->g.machine->nqueues; q++)
        if (found[q]) c->queue[c->nroles++] = q;
}

/* ---- registers ---- */
/* Queue k has its instructions in the part that is written; without threads of its own: some of the
 * nodes are on it. */
static bool in_part(const struct cuda *c, int k, const struct node *node, int n) {
    const struct machine *m = c->g.machine;
    if (c->role >= 0) return k == c->role;
    for (int i = 0; i < n; i++) {
        int queue = node[i].kind == NODE_ISSUE  ? m->instr[node[i].issue->instr].queue
                    : node[i].kind == NODE_SYNC ? node[i].sync.queue
                                                : -1;
        if (queue == k && !m->queue[k].threads) return true;
        if (node[i].kind == NODE_LOOP && in_part(c, k, node[i].loop->body, node[i].loop->nbody))
            return true;
    }
    return false;
}

int64_t cuda_begin_role(struct cuda *c, const struct node *node, int n) {
    struct cgen *g = &c->g;
    int64_t registers = 0;
    for (int k = 0; k < g->machine->nqueues; k++) {
        const struct queue *q = &g->machine->queue[k];
        if ((!q->registers && !q->nbegins) || !in_part(c, k, node, n)) continue;
        if (q->registers > registers) registers = q->registers;
        c_plain_emit(g, q->begin, q->nbegins);
    }
    return registers;
}

/* ---- tokens ---- */
static int channels_of(const struct cuda *c, const struct signal *s) {
    return s->rotating ? c->g.schedule->place[s->rotating - 1].slots : s->channel + 1;
}

/* Channels that the nodes use, and what pushes and pops leave behind. */
static void count_signals(struct cuda *c, const struct signals *s, int64_t times) {
    for (int k = 0; k < s->npops + s->npushes; k++) {
        const struct signal *one = k < s->npops ? &s->pop[k] : &s->push[k - s->npops];
        int n = channels_of(c, one);
        if (c->g.machine->sync[one->sync].memory < 0) continue;
        if (n > c->channels[one->sync]) c->channels[one->sync] = n;
        c->left[one->sync] += k < s->npops ? -times : times;
    }
}

static void count_nodes(struct cuda *c, const struct node *node, int n, int64_t times) {
    for (int i = 0; i < n; i++) {
        const struct signals *s = node_signals(&node[i]);
        int64_t lo, hi, turns = 0;
        if (s) count_signals(c, s, times);
        if (node[i].kind != NODE_LOOP) continue;
        const struct loop_node *l = node[i].loop;
        bool known = times && sx_constant(l->lo, &lo) && sx_constant(l->hi, &hi);
        if (known && hi > lo) turns = (hi - lo + l->step - 1) / l->step;
        int64_t *before =
                    arena_array(&c->g.arena, (size_t)c->g.machine->nsyncs + 1, sizeof *before),
                *all = c->left;
        c->left = before;
        count_nodes(c, l->body, l->nbody, 1);
        for (int k = 0; k < c->g.machine->nsyncs; k++) {
            if (before[k] && !known)
                c_error(&c->g,
                        "tokens of '%s' are left behind by a loop whose turns are not known, which "
                        "cannot be said in CUDA C",
                        c->g.machine->sync[k].id);
            all[k] += times * turns * before[k];
        }
        c->left = all;
    }
}

/* Where the objects of the kernel's syncs stand, from byte `at` of the shared memory; returns the
 * end. Objects are gone when a kernel ends, so no token may be left. */
int64_t cuda_find_objects(struct cuda *c, const struct node *node, int n, int64_t at) {
    const struct machine *m = c->g.machine;
    memset(c->channels, 0, (size_t)m->nsyncs * sizeof *c->channels);
    memset(c->left, 0, (size_t)m->nsyncs * sizeof *c->left);
    count_nodes(c, node, n, 1);
    for (int k = 0; k < m->nsyncs; k++) {
        if (!c->channels[k]) continue;
        if (c->left[k])
            c_error(&c->g,
                    "tokens of '%s' go from one kernel to another, which cannot be said in CUDA C",
                    m->sync[k].id);
        if (c->channels[k] > 32 || m->sync[k].depth != 1)
            c_error(&c->g,
                    "sync '%s' has %d channels of depth %lld, expected at most 32 of depth 1",
                    m->sync[k].id, c->channels[k], (long long)m->sync[k].depth);
        c->object[k] = at;
        at += (c->channels[k] * m->sync[k].size + 15) / 16 * 16;
    }
    return at;
}

/* One thread makes them before anybody looks at them. The first of the block's bytes are theirs
 * where the kernel has no copies there. */
void cuda_begin_objects(struct cuda *c) {
    struct cgen *g = &c->g;
    bool some = false;
    for (int k = 0; k < g->machine->nsyncs; k++) {
        const struct sync *s = &g->machine->sync[k];
        if (!c->channels[k]) continue;
        if (!some && !c->shares)
            c_line(g, "extern __shared__ __align__(1024) unsigned char isamap_shared[];");
        some = true;
        c_line(g, "unsigned char *const y_%d = isamap_shared + %lld; /* %s */", k,
               (long long)c->object[k], s->id);
        c_line(g, "if (threadIdx.x < %d) {", c->channels[k]);
        g->indent++;
        c_line(g, "unsigned char *const bar = y_%d + threadIdx.x * %lld;", k, (long long)s->size);
        c_plain_emit(g, s->init_emit, s->ninit_emits);
        g->indent--;
        c_line(g, "}");
    }
    if (some) c_line(g, "__syncthreads();");
}

/* How often the role has waited at each channel, modulo 2. */
void cuda_begin_phases(struct cuda *c) {
    for (int k = 0; k < c->g.machine->nsyncs; k++)
        if (c->channels[k]) c_line(&c->g, "uint32_t t_%d = 0; (void)t_%d;", k, k);
}

static const char *channel_text(struct cgen *g, const struct signal *s) {
    if (!s->rotating) return c_integer(g, s->channel);
    int place = s->rotating - 1;
    const char *slot = g->rotates[place] ? arena_printf(&g->arena, "s_%d", place) : "0";
    if (!s->channel) return slot;
    return arena_printf(&g->arena, "(%s + %d) %% %d", slot, s->channel,
                        g->schedule->place[place].slots);
}

static const char *turned_channel(struct cgen *g, const struct signal *s, int turned) {
    const char *channel = channel_text(g, s);
    if (!turned || !s->rotating || !g->rotates[s->rotating - 1]) return channel;
    return arena_printf(&g->arena, "(%s + %d) %% %d", channel, turned,
                        g->schedule->place[s->rotating - 1].slots);
}

const char *cuda_object(struct cgen *g, const struct signal *s, int turned) {
    return arena_printf(&g->arena, "y_%d + (int)(%s) * %lld", s->sync, turned_channel(g, s, turned),
                        (long long)g->machine->sync[s->sync].size);
}

void cuda_signal(struct cgen *g, const struct signal *signal, bool pop) {
    const struct sync *s = &g->machine->sync[signal->sync];
    const struct emit *emit = pop ? s->pop_emit : s->push_emit;
    int n = pop ? s->npop_emits : s->npush_emits, k = signal->sync;
    if (pop && sync_ends_launch(g->machine, k)) return; /* this is where one begins */
    if (s->memory < 0) {
        c_plain_emit(g, emit, n);
        return;
    }
    const char *when = !cuda_carries(g->user, signal) ? ""
                       : pop                          ? "if (turns - turn <= gridDim.x) "
                                                      : "if (turn == blockIdx.x) ";
    c_line(g, "%s{ /* %s %s */", when, pop ? "pop" : "push", s->id);
    g->indent++;
    c_line(g, "const int channel = (int)(%s);", channel_text(g, signal));
    c_line(g, "unsigned char *const bar = y_%d + channel * %lld;", k, (long long)s->size);
    if (pop) c_line(g, "const int phase = (int)(t_%d >> channel & 1);", k);
    if (pop) c_line(g, "t_%d ^= 1u << channel;", k);
    c_plain_emit(g, emit, n);
    g->indent--;
    c_line(g, "}");
}
