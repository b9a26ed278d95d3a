/* One kernel: which threads execute what of the nodes. */
#include "backends/cuda/cuda_int.h"

#include <string.h>

/* ---- units ---- */
enum spread cuda_spread(const struct machine *m, int unit) {
    const char *index = m->unit[unit].index;
    if (index && strstr(index, "blockIdx")) return SPREAD_BLOCKS;
    return index && strstr(index, "threadIdx") ? SPREAD_THREADS : SPREAD_NONE;
}

int cuda_threads(const struct machine *m) {
    int64_t most = 1;
    for (int u = 0; u < m->nunits; u++) {
        int64_t n = 1;
        for (int v = u; v >= 0; v = m->unit[v].parent)
            if (cuda_spread(m, v) == SPREAD_THREADS && n < INT32_MAX) n *= unit_instances(m, v);
        if (n > most) most = n;
    }
    return most < INT32_MAX ? (int)most : INT32_MAX;
}

/* ---- loops and issues inside a kernel ---- */

static bool has_fallback(const struct node *node, int n) {
    for (int i = 0; i < n; i++)
        if (node[i].kind == NODE_FALLBACK ||
            (node[i].kind == NODE_LOOP && has_fallback(node[i].loop->body, node[i].loop->nbody)))
            return true;
    return false;
}

/* Contiguous parts of the loop's turns: that of number `id` of `team`. */
static void part_loop(struct cgen *g, const struct loop_node *l, const char *id, const char *team) {
    struct cuda *c = g->user;
    const char *step = c_integer(g, l->step);
    c_line(g, "{ /* over %s */", g->machine->unit[l->unit].id);
    g->indent++;
    c_line(g, "const int64_t id = %s, team = %s;", id, team);
    c_line(g, "const int64_t from = %s, to = %s, trips = (to - from + %s - 1) / %s;",
           c_sx(g, l->lo), c_sx(g, l->hi), step, step);
    c->looped[l->unit] = true;
    c_for(g, l, arena_printf(&g->arena, "from + trips * id / team * %s", step),
          arena_printf(&g->arena, "isamap_min(to, from + trips * (id + 1) / team * %s)", step));
    c->looped[l->unit] = false;
    g->indent--;
    c_line(g, "}");
}

/* Over units of threads: all threads meet before and after. */
static void thread_loop(struct cgen *g, const struct loop_node *l) {
    struct cuda *c = g->user;
    const struct unit *unit = &g->machine->unit[l->unit];
    for (int u = 0; u < g->machine->nunits; u++)
        if (c->looped[u] && cuda_spread(g->machine, u) == SPREAD_THREADS)
            c_error(g,
                    "parallel loops over units '%s' and '%s', one inside the other, cannot be said "
                    "in CUDA C yet",
                    g->machine->unit[u].id, unit->id);
    if (has_fallback(l->body, l->nbody))
        c_error(g,
                "a statement that no instruction does stands in a parallel loop over unit '%s', "
                "which cannot be said in CUDA C yet",
                unit->id);
    c_line(g, "__syncthreads();");
    part_loop(g, l, unit->index, c_integer(g, unit_instances(g->machine, l->unit)));
    c_line(g, "__syncthreads();");
}

static void parallel_loop(struct cgen *g, const struct loop_node *l) {
    struct cuda *c = g->user;
    for (int k = 0; k < 3; k++) {
        if (c->grid[k] != l) continue;
        part_loop(g, l, arena_printf(&g->arena, "blockIdx.%c", 'x' + k),
                  arena_printf(&g->arena, "gridDim.%c", 'x' + k));
        return;
    }
    if (l->unit >= 0 && cuda_spread(g->machine, l->unit) == SPREAD_THREADS && !c->looped[l->unit])
        thread_loop(g, l);
    else
        c_for(g, l, c_sx(g, l->lo), c_sx(g, l->hi));
}

/* An instruction of a unit of threads that no loop is over is executed by its first instance. */
static bool narrow(struct cgen *g, int unit) {
    struct cuda *c = g->user;
    const char *test = NULL;
    for (int u = unit; u > 0; u = g->machine->unit[u].parent) {
        if (cuda_spread(g->machine, u) != SPREAD_THREADS || c->looped[u] ||
            unit_instances(g->machine, u) == 1)
            continue;
        test = arena_printf(&g->arena, "%s%s(%s) == 0", test ? test : "", test ? " && " : "",
                            g->machine->unit[u].index);
    }
    if (!test) return false;
    c_line(g, "if (%s) {", test);
    g->indent++;
    return true;
}

const struct c_dialect cuda_dialect = {.language = LANGUAGE_CUDA,
                                       .function = "static __device__ __forceinline__ void",
                                       .parallel = parallel_loop,
                                       .narrow = narrow};

/* ---- what a kernel uses ---- */
static void mark_home(struct cuda *c, int buffer) {
    int home = schedule_home(c->g.schedule, buffer);
    if (home >= 0) c->used[home] = true;
}

static void mark_used(struct cuda *c, const struct node *node, int n) {
    const struct schedule *s = c->g.schedule;
    for (int i = 0; i < n; i++) {
        if (node[i].kind == NODE_LOOP) mark_used(c, node[i].loop->body, node[i].loop->nbody);
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
        block = block || cuda_spread(m, u) == SPREAD_BLOCKS;
        if (cuda_spread(m, u) == SPREAD_THREADS && unit_instances(m, u) > 1)
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

/* What lies in registers or shared memory is gone when the kernel ends; what lies in a level
 * outside of the blocks is not for many. */
static void own_locals(struct cuda *c, bool grid) {
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
        if (c->kernel_of[p] && c->kernel_of[p] != c->nkernels + 1)
            c_error(&c->g,
                    "'%s' stays in '%s' from one kernel to another, which cannot be said in CUDA C",
                    s->place[p].name, s->machine->memory[s->place[p].memory].id);
        c->kernel_of[p] = c->nkernels + 1;
    }
}

/* Shared memory: one block for each memory, with its places at their addresses. */
static int64_t declare_shared(struct cuda *c) {
    struct cgen *g = &c->g;
    int64_t total = 0;
    for (int m = 0; m < g->machine->nmemories; m++) {
        bool some = false;
        for (int p = 0; p < g->schedule->nplaces; p++)
            some = some || (c->used[p] && g->schedule->place[p].keep == KEEP_LOCAL &&
                            g->schedule->place[p].memory == m && !g->registers[m]);
        if (!some || !in_block(c, m)) continue;
        if (!total) c_line(g, "extern __shared__ __align__(1024) unsigned char isamap_shared[];");
        c_line(g, "unsigned char *const m_%d = isamap_shared + %lld; /* %s */", m, (long long)total,
               g->machine->memory[m].id);
        total += (c_register_bytes(g, m) + 1023) / 1024 * 1024;
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

static void declare_places(struct cuda *c) {
    struct cgen *g = &c->g;
    for (int p = 0; p < g->schedule->nplaces; p++) {
        const struct place *place = &g->schedule->place[p];
        if (!c->used[p]) continue;
        if (place->keep == KEEP_LOCAL && of_block(c, p))
            c_line(g, "unsigned char *const p_%d = m_%d + %lld; /* %s */", p, place->memory,
                   (long long)place->address, place->name);
        else
            c_line(g, "unsigned char *const p_%d = base + %lld; /* %s */", p, (long long)c->home[p],
                   place->name);
    }
}

/* ---- the kernel ---- */
static bool turned_by_host(struct cuda *c, int place) {
    for (int k = 0; k < c->nturning; k++)
        if (c->turning[k] == place) return true;
    return false;
}

/* The host's loops, the slots that it turns: parameters of each kernel. */
static const char *parameters(struct cuda *c, const char *format, const char *slot) {
    struct cgen *g = &c->g;
    struct text t = {0};
    text_printf(&t, "%s", "");
    for (int k = 0; k < c->nscope; k++) text_printf(&t, format, c->scope[k]);
    for (int k = 0; k < c->nturning; k++)
        if (c->used[c->turning[k]]) text_printf(&t, slot, c->turning[k]);
    const char *text = arena_strdup(&g->arena, t.at);
    text_free(&t);
    return text;
}

/* Which of a grid's dimensions numbers the unit's instances; -1: none. */
static int dimension(const struct machine *m, int unit) {
    const char *index = m->unit[unit].index, *at = index ? strstr(index, "blockIdx.") : NULL;
    return at && at[9] >= 'x' && at[9] <= 'z' ? at[9] - 'x' : -1;
}

/* The loops that the grid goes over: a kernel's only node and what alone stands in it, as long as
 * dimensions differ and the host knows the bounds. Others run inside a block. */
static bool find_grid(struct cuda *c, const struct node *node, int n) {
    const struct machine *m = c->g.machine;
    memset(c->grid, 0, sizeof c->grid);
    bool some = false;
    while (n == 1 && node->kind == NODE_LOOP && node->loop->kind == LOOP_PARALLEL &&
           node->loop->unit >= 0) {
        const struct loop_node *l = node->loop;
        int k = dimension(m, l->unit);
        bool known = k >= 0 && !c->grid[k];
        for (int d = 0; d < 3 && known; d++)
            known = !c->grid[d] ||
                    (!sx_uses(l->lo, c->grid[d]->var) && !sx_uses(l->hi, c->grid[d]->var));
        if (!known) break;
        c->grid[k] = l;
        some = true;
        node = l->body;
        n = l->nbody;
    }
    return some;
}

static void body(struct cuda *c, const struct node *node, int n, bool dealt) {
    struct cgen *g = &c->g;
    g->mine = dealt ? "(int64_t)blockIdx.x * blockDim.x + threadIdx.x" : "threadIdx.x";
    g->among = dealt ? "(int64_t)gridDim.x * blockDim.x" : "blockDim.x";
    g->meet = dealt ? NULL : "__syncthreads();";
    c_walk(g, node, n);
}

/* Blocks in each dimension, as text of the host: one for each turn of a loop; or for the points of
 * a dealt statement. */
static const char *blocks(struct cuda *c, const struct node *node, bool dealt) {
    struct cgen *g = &c->g;
    if (dealt) {
        const struct program *p = g->schedule->program;
        int64_t points = p->buffer[p->stmt[node->fallback->stmt].dst.buffer].elements,
                most = (points + DEALT_THREADS - 1) / DEALT_THREADS;
        return arena_printf(&g->arena, "%s, 1, 1",
                            c_integer(g, most < 1           ? 1
                                         : most < INT32_MAX ? most
                                                            : INT32_MAX));
    }
    const char *text = "";
    for (int k = 0; k < 3; k++) {
        const struct loop_node *l = c->grid[k];
        const char *step = l ? c_integer(g, l->step) : "1";
        text = l ? arena_printf(&g->arena, "%s%sisamap_min(%d, (%s - %s + %s - 1) / %s)", text,
                                k ? ", " : "", k ? UINT16_MAX : INT32_MAX, c_sx(g, l->hi),
                                c_sx(g, l->lo), step, step)
                 : arena_printf(&g->arena, "%s%s1", text, k ? ", " : "");
    }
    return text;
}

void cuda_kernel(struct cuda *c, const struct node *node, int n) {
    struct cgen *g = &c->g;
    const char *name = arena_printf(&g->arena, "%s_%d", g->interface->name, c->nkernels);
    bool dealt = n == 1 && node->kind == NODE_FALLBACK;
    int threads = dealt ? DEALT_THREADS : c->threads, indent = g->indent;
    memset(c->used, 0, (size_t)g->schedule->nplaces * sizeof *c->used);
    mark_used(c, node, n);
    own_locals(c, find_grid(c, node, n));
    struct text host = g->code;
    g->code = (struct text){0};
    g->indent = 1;
    int64_t shared = declare_shared(c);
    declare_registers(c);
    declare_places(c);
    for (int p = 0; p < g->schedule->nplaces; p++)
        g->rotates[p] = c->used[p] && g->schedule->place[p].slots > 1 &&
                        (turned_by_host(c, p) || section_rotates(node, n, p));
    for (int p = 0; p < g->schedule->nplaces; p++)
        if (g->rotates[p] && !turned_by_host(c, p))
            c_line(g, "int64_t s_%d = %d;", p, g->schedule->place[p].slots - 1);
    body(c, node, n, dealt);
    text_printf(
        &c->kernels,
        "extern \"C\" __global__ void __launch_bounds__(%d) %s(unsigned char *const base%s) {\n",
        threads, name, parameters(c, ", const int64_t v%d", ", const int64_t s_%d"));
    text_append(&c->kernels, g->code.at ? g->code.at : "", g->code.n);
    text_printf(&c->kernels, "}\n\n");
    text_free(&g->code);
    g->code = host;
    g->indent = indent;
    c_line(g, "{");
    c_line(g, "  void *argument[] = {&d.base%s};",
           parameters(c, ", (void *)&v%d", ", (void *)&s_%d"));
    c_line(g, "  isamap_launch(&d, \"%s\", %s, %d, %lld, argument);", name, blocks(c, node, dealt),
           threads, (long long)shared);
    c_line(g, "}");
    c->nkernels++;
}
