/* What a kernel uses: arrays, copies in registers and in shared memory, and where it declares them.
 */
#include "backends/cuda/cuda_int.h"

static void mark_home(struct cuda *c, int buffer) {
    int home = schedule_home(c->g.schedule, buffer);
    if (home >= 0) c->used[home] = true;
}

static void mark_channels(struct cuda *c, const struct signals *s) {
    for (int k = 0; s && k < s->npops; k++)
        if (s->pop[k].rotating) c->used[s->pop[k].rotating - 1] = true;
    for (int k = 0; s && k < s->npushes; k++)
        if (s->push[k].rotating) c->used[s->push[k].rotating - 1] = true;
}

/* What the role does, or all where there are none; a place that turns is used by whoever uses its
 * slots. */
void cuda_mark_used(struct cuda *c, const struct node *node, int n) {
    const struct schedule *s = c->g.schedule;
    for (int i = 0; i < n; i++) {
        if (!cuda_mine(&c->g, &node[i])) continue;
        mark_channels(c, node_signals(&node[i]));
        if (node[i].kind == NODE_LOOP) cuda_mark_used(c, node[i].loop->body, node[i].loop->nbody);
        if (node[i].kind == NODE_ROTATE) c->used[node[i].rotate] = true;
        if (node[i].kind == NODE_ISSUE) {
            const struct issue_node *issue = node[i].issue;
            for (int o = 0; o < s->machine->instr[issue->instr].noperands; o++)
                if (issue->arg[o].place >= 0) c->used[issue->arg[o].place] = true;
        }
        if (node[i].kind == NODE_FALLBACK) {
            const struct stmt *stmt = &s->program->stmt[node[i].fallback->stmt];
            mark_home(c, stmt->dst.buffer);
            for (int r = 0; r < stmt->nreads; r++) mark_home(c, stmt->read[r].buffer);
        }
    }
}

/* Of a memory passed as pointers: is it of a block, or outside of all? A thread's own has no
 * address. */
static bool in_block(struct cuda *c, int memory) {
    const struct machine *m = c->g.machine;
    int unit = m->memory[memory].unit;
    bool block = false;
    for (int u = unit; u > 0; u = m->unit[u].parent) {
        block = block || unit_spread(m, u) == SPREAD_BLOCKS;
        if (unit_spread(m, u) == SPREAD_THREADS && unit_instances(m, u) > 1)
            c_error(&c->g,
                    "memory '%s' of unit '%s' is passed as a pointer, expected one of a block or "
                    "pass=\"value\"",
                    m->memory[memory].id, m->unit[u].id);
    }
    return block;
}

/* The local place lies in registers or in shared memory. */
static bool of_block(struct cuda *c, int place) {
    int memory = c->g.schedule->place[place].memory;
    return c->g.registers[memory] || in_block(c, memory);
}

bool cuda_is_shared(struct cuda *c, int place) {
    const struct place *p = &c->g.schedule->place[place];
    return p->keep == KEEP_LOCAL && !c->g.registers[p->memory] && in_block(c, p->memory);
}

/* What lies in registers or shared memory is gone when the kernel ends; what lies in a level
 * outside of the blocks is not for many. */
void cuda_own_locals(struct cuda *c, const struct node *node, int n, bool grid) {
    const struct schedule *s = c->g.schedule;
    for (int p = 0; p < s->nplaces; p++) {
        if (!c->used[p] || s->place[p].keep != KEEP_LOCAL) continue;
        if (!of_block(c, p)) {
            if (grid)
                c_error(
                    &c->g,
                    "'%s' is copied to '%s' in a parallel loop, which cannot be said in CUDA C yet",
                    s->place[p].name, s->machine->memory[s->place[p].memory].id);
            continue;
        }
        if (c->kernel_of[p] && c->kernel_of[p] != c->nlaunches + 1 &&
            nodes_first_touch(s, node, n, p) != FIRST_WRITE)
            c_error(&c->g,
                    "'%s' stays in '%s' from one kernel to another, which cannot be said in CUDA C",
                    s->place[p].name, s->machine->memory[s->place[p].memory].id);
        c->kernel_of[p] = c->nlaunches + 1;
    }
}

/* Shared memory: one block for each memory, with its places at their addresses. */
int64_t cuda_declare_shared(struct cuda *c) {
    struct cgen *g = &c->g;
    int64_t total = 0;
    c->shares = false;
    for (int m = 0; m < g->machine->nmemories; m++) {
        bool some = false;
        for (int p = 0; p < g->schedule->nplaces; p++)
            some = some || (c->used[p] && g->schedule->place[p].keep == KEEP_LOCAL &&
                            g->schedule->place[p].memory == m && !g->registers[m]);
        if (!some || !in_block(c, m)) continue;
        total = (total + 1023) / 1024 * 1024;
        c->shares = true;
        if (!total) c_line(g, "extern __shared__ __align__(1024) unsigned char isamap_shared[];");
        c_line(g, "unsigned char *const m_%d = isamap_shared + %lld; /* %s */", m, (long long)total,
               g->machine->memory[m].id);
        total += (c_register_bytes(g, m) + 15) / 16 * 16;
    }
    return total;
}

static void declare_registers(struct cuda *c) {
    struct cgen *g = &c->g;
    for (int m = 0; m < g->machine->nmemories; m++) {
        bool some = false;
        for (int p = 0; p < g->schedule->nplaces; p++)
            some = some || (c->used[p] && g->schedule->place[p].keep == KEEP_LOCAL &&
                            g->schedule->place[p].memory == m);
        if (some && g->registers[m])
            c_line(g, "__align__(16) unsigned char m_%d[%lld]; /* %s */", m,
                   (long long)c_register_bytes(g, m), g->machine->memory[m].id);
    }
}

void cuda_declare_places(struct cuda *c) {
    struct cgen *g = &c->g;
    declare_registers(c);
    for (int p = 0; p < g->schedule->nplaces; p++) {
        const struct place *place = &g->schedule->place[p];
        if (!c->used[p]) continue;
        c->inside[p] = place->keep == KEEP_LOCAL && of_block(c, p);
        if (c->inside[p])
            c_line(g, "unsigned char *const p_%d = m_%d + %lld; /* %s */", p, place->memory,
                   (long long)place->address, place->name);
    }
}
