/* One kernel: which threads execute what of the nodes. */
#include "backends/cuda/cuda_int.h"

#include <string.h>

/* Of nodes inside a kernel. */
static void refuse_ends(struct cuda *c, const struct node *node, int n) {
    for (int i = 0; i < n && !c->g.failed; i++) {
        if (node_begins_launch(c->g.machine, &node[i]))
            c_error(&c->g, "a barrier at which kernels end stands inside one, where blocks cannot "
                           "meet");
        else if (node[i].kind == NODE_LOOP)
            refuse_ends(c, node[i].loop->body, node[i].loop->nbody);
    }
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

/* Threads meet: all of the block at one place, or, where roles have parts of their own, all of one
 * role, or all roles, each in its own part: barriers with a number and a count, since those of the
 * whole block are for places that all of it reaches. */
static const char *meeting(struct cuda *c, bool all) {
    enum { BARRIERS = 16 };
    int number = 1, role = c->role;
    if (!c->nroles) return "__syncthreads();";
    for (int r = 0; r < c->nroles && !all; r++)
        if (c->queue[r] == role) number = 3 + r;
    if (!all && role < 0) number = 2;
    if (number >= BARRIERS) c_error(&c->g, "a block has more roles than barriers");
    return arena_printf(&c->g.arena, "asm volatile(\"bar.sync %d, %lld;\" ::: \"memory\");", number,
                        (long long)(all ? c->together : c->own));
}

/* Over units of threads: all threads meet before and after. */
static void thread_loop(struct cgen *g, const struct loop_node *l) {
    struct cuda *c = g->user;
    const struct unit *unit = &g->machine->unit[l->unit];
    for (int u = 0; u < g->machine->nunits; u++)
        if (c->looped[u] && unit_spread(g->machine, u) == SPREAD_THREADS)
            c_error(g,
                    "parallel loops over units '%s' and '%s', one inside the other, cannot be said "
                    "in CUDA C yet",
                    g->machine->unit[u].id, unit->id);
    if (has_fallback(l->body, l->nbody))
        c_error(g,
                "a statement that no instruction does stands in a parallel loop over unit '%s', "
                "which cannot be said in CUDA C yet",
                unit->id);
    c_line(g, "%s", meeting(c, false));
    part_loop(g, l, unit->index, c_integer(g, unit_instances(g->machine, l->unit)));
    c_line(g, "%s", meeting(c, false));
}

/* Most blocks that a grid has in a dimension. */
static int64_t most_blocks(int dimension) {
    return dimension ? UINT16_MAX : INT32_MAX;
}

/* Each block takes at most one turn of the loop. */
static bool one_turn(struct cuda *c, const struct loop_node *l) {
    int64_t lo, hi, most = 1;
    for (int k = 0; k < 3; k++)
        if (c->grid[k] == l) most = most_blocks(k);
    return sx_constant(l->lo, &lo) && sx_constant(l->hi, &hi) &&
           (hi <= lo || (hi - lo - 1) / l->step < most);
}

/* Several turns in one block over a unit of blocks: one may write what another still reads, so all
 * roles meet behind each. */
static void turned(struct cgen *g, const struct loop_node *l) {
    struct cuda *c = g->user;
    if (c->nroles && loop_over_blocks(g->machine, l) && !one_turn(c, l))
        c_line(g, "%s", meeting(c, true));
}

static void parallel_loop(struct cgen *g, const struct loop_node *l) {
    struct cuda *c = g->user;
    for (int k = 0; k < 3; k++) {
        if (c->grid[k] != l) continue;
        if (c->stays) {
            cuda_turns_loop(g, l);
            return;
        }
        part_loop(g, l, arena_printf(&g->arena, "blockIdx.%c", 'x' + k),
                  arena_printf(&g->arena, "gridDim.%c", 'x' + k));
        return;
    }
    if (l->unit >= 0 && unit_spread(g->machine, l->unit) == SPREAD_THREADS && !c->looped[l->unit])
        thread_loop(g, l);
    else
        c_for(g, l, c_sx(g, l->lo), c_sx(g, l->hi));
}

/* An instruction of a unit of threads that no loop is over is executed by its first instance. */
static bool narrow(struct cgen *g, int unit) {
    struct cuda *c = g->user;
    const char *test = NULL;
    for (int u = unit; u > 0; u = g->machine->unit[u].parent) {
        if (unit_spread(g->machine, u) != SPREAD_THREADS || c->looped[u] ||
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
                                       .narrow = narrow,
                                       .mine = cuda_mine,
                                       .turned = turned,
                                       .signal = cuda_signal,
                                       .handles = cuda_handles,
                                       .rolled = "#pragma unroll 1",
                                       .plain = "#pragma unroll 4",
                                       /* reads of several turns are under way at once */
                                       .sums = "#pragma unroll 16"};

/* ---- the kernel ---- */
static bool turned_by_host(struct cuda *c, int place) {
    for (int k = 0; k < c->nturning; k++)
        if (c->turning[k] == place) return true;
    return false;
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

/* Threads of the units that take part in what the instruction does: those above its unit and below
 * it. */
static int64_t threads_around(const struct machine *m, int unit) {
    int64_t most = 1;
    for (int u = 0; u < m->nunits; u++) {
        int64_t n = 1;
        bool inside = false;
        for (int v = u; v >= 0; v = m->unit[v].parent) {
            inside = inside || v == unit;
            if (unit_spread(m, v) == SPREAD_THREADS && n < INT32_MAX) n *= unit_instances(m, v);
        }
        if (inside && n > most) most = n;
    }
    return most;
}

/* Of a kernel, without those that queues have for themselves; 0: it has no instruction or signal.
 */
static int64_t unit_threads(struct cuda *c, const struct node *node, int n) {
    const struct machine *m = c->g.machine;
    int64_t most = 0;
    for (int i = 0; i < n; i++) {
        int64_t here = 0;
        if (node[i].kind == NODE_LOOP)
            here = unit_threads(c, node[i].loop->body, node[i].loop->nbody);
        else if (node[i].kind == NODE_ISSUE &&
                 !m->queue[m->instr[node[i].issue->instr].queue].threads)
            here = threads_around(m, m->instr[node[i].issue->instr].unit);
        else if (node[i].kind == NODE_SYNC && node[i].sync.queue >= 0 &&
                 !m->queue[node[i].sync.queue].threads) /* all of them signal */
            here = threads_around(m, m->queue[node[i].sync.queue].unit);
        if (here > most) most = here;
    }
    return most;
}

static void body(struct cuda *c, const struct node *node, int n, bool dealt) {
    struct cgen *g = &c->g;
    cuda_declare_places(c);
    cuda_begin_phases(c);
    for (int p = 0; p < g->schedule->nplaces; p++)
        g->rotates[p] = c->used[p] && g->schedule->place[p].slots > 1 &&
                        (turned_by_host(c, p) || section_rotates(node, n, p));
    for (int p = 0; p < g->schedule->nplaces; p++)
        if (g->rotates[p] && !turned_by_host(c, p))
            c_line(g, "int64_t s_%d = %d;", p, g->schedule->place[p].slots - 1);
    g->mine = dealt ? "(int64_t)blockIdx.x * blockDim.x + threadIdx.x" : "threadIdx.x";
    g->among = dealt ? "(int64_t)gridDim.x * blockDim.x" : "blockDim.x";
    g->meet = dealt ? NULL : "__syncthreads();";
    c_walk(g, node, n);
}

/* The part of each role, one behind the other; returns the threads of all. */
static int64_t roles(struct cuda *c, const struct node *node, int n, int64_t threads) {
    struct cgen *g = &c->g;
    if (c->nroles && has_fallback(node, n))
        c_error(g,
                "a statement that no instruction does stands beside queue '%s', which cannot be "
                "said in CUDA C yet",
                g->machine->queue[c->queue[0]].id);
    bool all = true;
    enum { WARP = 32 };
    c->budget = 0;
    c->together = threads;
    for (int r = 0; r < c->nroles; r++) c->together += g->machine->queue[c->queue[r]].threads;
    for (int r = -1; r < c->nroles && !g->failed; r++) {
        c->role = r < 0 ? -1 : c->queue[r];
        int64_t own = r < 0 ? threads : g->machine->queue[c->role].threads;
        if (own % WARP)
            c_error(g, "%s%s have %lld threads, expected whole warps of 32", r < 0 ? "" : "queue ",
                    r < 0 ? "units" : g->machine->queue[c->role].id, (long long)own);
        c->own = own;
        if (r >= 0) threads += own;
        c_line(g, "%sif (threadIdx.x < %lld) { /* %s */", r < 0 ? "" : "} else ",
               (long long)threads, r < 0 ? "units" : g->machine->queue[c->role].id);
        g->indent++;
        memset(c->used, 0, (size_t)g->schedule->nplaces * sizeof *c->used);
        cuda_mark_used(c, node, n);
        int64_t registers = cuda_begin_role(c, node, n);
        all = all && registers;
        c->budget += 4 * registers * own;
        body(c, node, n, false);
        g->indent--;
    }
    c_line(g, "}");
    if (!all) c->budget = 0;
    return threads;
}

/* Blocks in each dimension, as text of the host: one for each turn of a loop; or for the points of
 * a dealt statement. */
static const char *blocks(struct cuda *c, const struct node *node, bool dealt) {
    struct cgen *g = &c->g;
    if (dealt) {
        int64_t points = cuda_points(c, node->fallback),
                most = (points + DEALT_THREADS - 1) / DEALT_THREADS;
        return arena_printf(&g->arena, "%s, 1, 1",
                            c_integer(g, most < 1           ? 1
                                         : most < INT32_MAX ? most
                                                            : INT32_MAX));
    }
    const char *text = "";
    if (c->stays) return arena_printf(&g->arena, "%s, 1, 1", cuda_blocks(c));
    for (int k = 0; k < 3; k++) {
        const struct loop_node *l = c->grid[k];
        const char *step = l ? c_integer(g, l->step) : "1";
        text = l ? arena_printf(&g->arena, "%s%sisamap_min(%d, (%s - %s + %s - 1) / %s)", text,
                                k ? ", " : "", (int)most_blocks(k), c_sx(g, l->hi), c_sx(g, l->lo),
                                step, step)
                 : arena_printf(&g->arena, "%s%s1", text, k ? ", " : "");
    }
    return text;
}

/* The memory that lies in shared memory, and the registers: of several that the kernel uses, the
 * first. */
static void note_use(struct cuda *c, int64_t threads, int64_t shared) {
    const struct schedule *s = c->g.schedule;
    struct kernel_use *use = &c->use[c->nkernels - 1];
    int unit;
    use->threads = threads;
    use->shared = shared;
    use->shares = c->budget;
    for (int p = 0; p < s->nplaces; p++) {
        const struct memory *m = &s->machine->memory[s->place[p].memory];
        if (c->kernel_of[p] != c->nlaunches + 1) continue;
        if (c->g.registers[s->place[p].memory]) {
            if (!use->registers)
                memory_pool(s->machine, s->place[p].memory, &unit, &use->registers);
        } else if (shared && !use->memory) {
            use->memory = m->id;
            use->limit = m->size;
        }
    }
}

static void launch(struct cuda *c, int kernel, const struct given *given, int n,
                   const char *numbers) {
    struct cgen *g = &c->g;
    struct text t = {0};
    c_line(g, "{");
    g->indent++;
    for (int k = 0; k < n; k++) {
        if (given[k].kind == 'p')
            c_line(g, "uint64_t p_%d = d.base + %lld; /* %s */", given[k].number,
                   (long long)c->home[given[k].number], g->schedule->place[given[k].number].name);
        if (given[k].kind == 'o') cuda_make_object(c, given[k].number);
        text_printf(&t, "%s(void *)&%c%s%d", k ? ", " : "", given[k].kind,
                    given[k].kind == 'v' ? "" : "_", given[k].number);
    }
    c_line(g, "void *argument[] = {%s};", n ? t.at : "0");
    c_line(g, "isamap_launch(&d, %d, %s, argument); /* %s */", kernel, numbers,
           c->use[kernel].name);
    g->indent--;
    c_line(g, "}");
    text_free(&t);
}

/* Blocks of the kernel that must have room on a multiprocessor together: as many as the bytes of
 * registers that one may have (the pool of the memory of its places) go into all. */
static int64_t blocks_together(struct cuda *c) {
    const struct schedule *s = c->g.schedule;
    int64_t bytes, n = 1;
    int unit;
    for (int p = 0; p < s->nplaces; p++)
        if (c->used[p] && c->g.registers[s->place[p].memory] &&
            memory_pool(s->machine, s->place[p].memory, &unit, &bytes) &&
            MULTIPROCESSOR_REGISTERS / bytes > n)
            n = MULTIPROCESSOR_REGISTERS / bytes;
    return n;
}

/* The schedule counts on its registers: a block has as many as the machine file gives it; not where
 * a statement is dealt. */
void cuda_kernel(struct cuda *c, const struct node *node, int n) {
    struct cgen *g = &c->g;
    bool dealt = node->kind == NODE_FALLBACK && (n == 1 || !launch_is_small(g->schedule, node));
    int64_t threads = dealt ? DEALT_THREADS : unit_threads(c, node, n);
    int indent = g->indent, before = c->nkernels, ngiven;
    if (!threads) threads = cuda_small_threads(c, node, n);
    refuse_ends(c, node_begins_launch(g->machine, node) ? node + 1 : node,
                node_begins_launch(g->machine, node) ? n - 1 : n);
    c->nroles = c->ncarried = 0;
    c->stays = c->budget = 0;
    memset(c->used, 0, (size_t)g->schedule->nplaces * sizeof *c->used);
    cuda_mark_used(c, node, n);
    cuda_own_locals(c, node, n, find_grid(c, node, n));
    struct text host = g->code;
    g->code = (struct text){0};
    g->indent = 1;
    int64_t shared = cuda_find_objects(c, node, n, cuda_declare_shared(c));
    cuda_begin_objects(c);
    cuda_find_roles(c, node, n);
    cuda_find_landings(c, node, n);
    cuda_find_turns(c, node, n);
    if (c->nroles)
        threads = roles(c, node, n, threads);
    else
        body(c, node, n, dealt);
    c->nroles = 0;
    const char *bounds = arena_printf(
                   &g->arena, "__launch_bounds__(%lld%s)", (long long)threads,
                   dealt ? "" : arena_printf(&g->arena, ", %lld", (long long)blocks_together(c))),
               *numbers = arena_printf(&g->arena, "%s, %lld, %lld", blocks(c, node, dealt),
                                       (long long)threads, (long long)shared);
    const struct given *given;
    int kernel = cuda_write_kernel(c, bounds, g->code.at ? g->code.at : "", &given, &ngiven);
    text_free(&g->code);
    g->code = host;
    g->indent = indent;
    launch(c, kernel, given, ngiven, numbers);
    if (c->nkernels > before) note_use(c, threads, shared);
    c->nlaunches++;
}
