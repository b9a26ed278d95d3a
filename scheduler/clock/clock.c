#include "scheduler/clock/period_int.h"
#include "ir/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

bool engine_error(struct engine *e, const struct node *node, const char *fmt, ...) {
    if (e->failed) return false;
    e->failed = true;
    struct text t = {0};
    va_list args;
    va_start(args, fmt);
    char message[512];
    vsnprintf(message, sizeof message, fmt, args);
    va_end(args);
    text_printf(&t, "%s", message);
    if (node && node->kind == NODE_ISSUE)
        text_printf(&t, ", in an issue of '%s'", e->machine->instr[node->issue->instr].id);
    if (node && node->kind == NODE_FALLBACK)
        text_printf(&t, ", in the fallback of statement %d", node->fallback->stmt);
    if (node && node->kind == NODE_CONFIGURE)
        text_printf(&t, ", in '%s'", e->machine->configure[node->configure->configure].id);
    diag_line(e->diags, e->schedule->program->name, 0, 0, "%s", t.at);
    text_free(&t);
    return false;
}

static void find_host(struct engine *e) {
    const struct machine *m = e->machine;
    for (int q = 0; q < m->nqueues; q++) {
        e->is_host[q] = m->nfallbacks == 0 || machine_queue_is_host(m, q);
        if (!e->is_host[q]) e->joined = true;
    }
}

static uint64_t queue_bit(int queue) {
    return queue < 0 ? 0 : UINT64_C(1) << queue;
}

static uint64_t queues_used(const struct machine *m, const struct node *node, int n) {
    uint64_t used = 0;
    for (int k = 0; k < n; k++) {
        if (node[k].kind == NODE_LOOP)
            used |= queues_used(m, node[k].loop->body, node[k].loop->nbody);
        if (node[k].kind == NODE_ISSUE) used |= queue_bit(m->instr[node[k].issue->instr].queue);
        if (node[k].kind == NODE_FALLBACK)
            used |= queue_bit(m->fallback[node[k].fallback->fallback].queue);
        if (node[k].kind == NODE_CONFIGURE)
            used |= queue_bit(m->configure[node[k].configure->configure].queue);
        if (node[k].kind == NODE_SYNC) used |= queue_bit(node[k].sync.queue);
    }
    return used;
}

/* Of the queues that the schedule uses. */
static void find_interlocks(struct engine *e) {
    const struct machine *m = e->machine;
    const struct section *prepare = &e->schedule->prepare, *run = &e->schedule->run;
    uint64_t used =
        queues_used(m, prepare->node, prepare->nnodes) | queues_used(m, run->node, run->nnodes);
    e->eager = !e->joined && !e->order;
    e->ahead = e->joined && !e->executor && !e->order;
    for (int q = 0; q < m->nqueues; q++) {
        for (int s = 0; s < m->nsyncs; s++)
            if (m->sync[s].kind == SYNC_INTERLOCK && (m->sync[s].to >> q & 1))
                e->interlocked[q] |= m->sync[s].from;
        if (m->queue[q].data_order)
            e->interlocked[q] |= (uint64_t)1 << q;
        else
            e->interlocked[q] &= ~((uint64_t)1 << q); /* in order, results are forwarded */
        e->interlocked[q] &= used >> q & 1 ? used : 0;
        e->relied |= e->interlocked[q];
        e->led |= e->interlocked[q] & ~((uint64_t)1 << q);
        e->exact = e->exact || (e->interlocked[q] && !m->queue[q].data_order);
        if (used >> q & 1) e->eager = e->eager && m->queue[q].data_order && m->queue[q].depth <= 0;
        e->tracks = e->tracks || e->interlocked[q];
    }
}

static void open_queues(struct engine *e) {
    const struct machine *m = e->machine;
    e->queue = arena_array(&e->arena, (size_t)m->nqueues + 1, sizeof *e->queue);
    e->is_host = arena_array(&e->arena, (size_t)m->nqueues + 1, sizeof *e->is_host);
    e->interlocked = arena_array(&e->arena, (size_t)m->nqueues + 1, sizeof *e->interlocked);
    e->bus_free = arena_array(&e->arena, (size_t)m->nbuses + 1, sizeof *e->bus_free);
    e->bus_left = arena_array(&e->arena, (size_t)m->nbuses + 1, sizeof *e->bus_left);
    for (int q = 0; q < m->nqueues; q++)
        e->queue[q].server =
            arena_array(&e->arena, (size_t)(m->queue[q].width > 0 ? m->queue[q].width : 1),
                        sizeof *e->queue[q].server);
    e->range = arena_array(&e->arena, (size_t)m->ninstrs * SIM_SIZES + 1, sizeof *e->range);
    find_host(e);
    find_interlocks(e);
    e->tracks = e->tracks || e->joined;
}

static void open_result(struct sim_result *r, const struct machine *m) {
    memset(r, 0, sizeof *r);
    r->queue = memory_array((size_t)m->nqueues + 1, sizeof *r->queue);
    r->bus = memory_array((size_t)m->nbuses + 1, sizeof *r->bus);
    r->sync = memory_array((size_t)m->nsyncs + 1, sizeof *r->sync);
    r->peak_bytes = memory_array((size_t)m->nmemories + 1, sizeof *r->peak_bytes);
    r->macs_on = memory_array((size_t)m->ninstrs + 1, sizeof *r->macs_on);
    r->operations_on = memory_array((size_t)m->ninstrs + 1, sizeof *r->operations_on);
}

void sim_result_free(struct sim_result *r) {
    free(r->queue);
    free(r->bus);
    free(r->sync);
    free(r->peak_bytes);
    free(r->macs_on);
    free(r->operations_on);
    free(r->host_of);
    free(r->time);
    memset(r, 0, sizeof *r);
}

static void close_engine(struct engine *e) {
    trace_close(e);
    if (e->image) images_close(e);
    for (int q = 0; q < e->machine->nqueues; q++) {
        free(e->queue[q].fifo);
        free(e->queue[q].after);
        free(e->queue[q].started);
    }
    for (int s = 0; s < e->nchannels; s++) free(e->sync[s].at);
    follows_free(e);
    settings_free(e);
    shapes_close(e);
    arena_free(&e->arena);
}

/* The run starts at time 0, whatever `prepare` did. */
static void start_run(struct engine *e) {
    for (int b = 0; b < e->machine->nbuses; b++) {
        e->bus_free[b] = 0;
        e->bus_left[b] = 1;
    }
    for (int c = 0; c < e->nchannels; c++)
        for (int k = 0; k < e->sync[c].room; k++) e->sync[c].at[k] = 0;
    time_reset_queues(e, 0);
    e->first = e->sequence;
    e->latency = e->options->latency_seed;
    images_forget(e);
}

static bool run_sections(struct engine *e) {
    const struct schedule *s = e->schedule;
    touches_open(e);
    if (e->executor && !e->executor->begin(e)) return false;
    e->counting = e->options->with_prepare_cost;
    if ((e->counting || e->executor) && !walk_section(e, &s->prepare)) return false;
    if (!e->counting) start_run(e);
    e->counting = true;
    if (!walk_section(e, &s->run)) return false;
    e->result->cycles = e->end;
    return !e->executor || e->executor->end(e);
}

static void open_arrays(struct engine *e) {
    const struct machine *m = e->machine;
    const struct schedule *s = e->schedule;
    e->value = arena_array(&e->arena, (size_t)s->nvars + 1, sizeof *e->value);
    for (int k = 0; k < s->program->nsizes; k++) {
        const struct size *size = &s->program->size[k];
        e->value[k] = e->options->size ? size_within(size, e->options->size[k]) : size->hi;
    }
    e->slot = arena_array(&e->arena, (size_t)s->nplaces + 1, sizeof *e->slot);
    e->zero_at = arena_array(&e->arena, (size_t)s->nplaces + 1, sizeof *e->zero_at);
    e->shape = arena_array(&e->arena, (size_t)m->ninstrs * SIM_SHAPES + 1, sizeof *e->shape);
    e->shape_next = arena_array(&e->arena, (size_t)m->ninstrs + 1, sizeof *e->shape_next);
    e->unit_instance = arena_array(&e->arena, (size_t)m->nunits + 1, sizeof *e->unit_instance);
    e->unit_active = arena_array(&e->arena, (size_t)m->nunits + 1, sizeof *e->unit_active);
    e->unit_used = arena_array(&e->arena, (size_t)m->nunits + 1, sizeof *e->unit_used);
    for (int u = 0; u < m->nunits; u++) e->unit_active[u] = 1;
}

static double wall(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

bool clock_run(const struct schedule *s, const struct clock_options *options,
               const struct executor *executor, struct sim_result *r, struct diags *d) {
    struct engine e = {.schedule = s,
                       .machine = s->machine,
                       .options = options,
                       .executor = executor,
                       .result = r,
                       .diags = d,
                       .order = options->order_seed * UINT64_C(0x9e3779b97f4a7c15),
                       .latency = options->latency_seed,
                       .walks = options->walk || executor || options->trace || options->times ||
                                options->order_seed || options->latency_seed,
                       .counting = true};
    double start = wall();
    open_result(r, s->machine);
    arena_init(&e.arena);
    e.limit = options->steps ? options->steps : (int64_t)10000000000;
    e.most = options->most > 0 ? options->most : INFINITY;
    open_arrays(&e);
    open_queues(&e);
    r->nhost = e.joined ? s->program->nstmts + 1 : 0;
    r->host_of = memory_array((size_t)r->nhost + 1, sizeof *r->host_of);
    signals_open(&e);
    bool ok = images_open(&e) && trace_open(&e) && run_sections(&e);
    r->steps = e.steps;
    if (ok) count_utilisation(&e);
    close_engine(&e);
    ok = ok && !e.failed;
    r->wall_seconds = wall() - start;
    return ok;
}
