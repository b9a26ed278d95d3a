#include "sim/sim_int.h"

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
    diag_line(e->diags, e->schedule->program->name, 0, 0, "%s", t.at);
    text_free(&t);
    return false;
}

static bool inside(const struct machine *m, int unit, int ancestor) {
    for (; unit >= 0; unit = m->unit[unit].parent)
        if (unit == ancestor) return true;
    return false;
}

/* A queue is the device's when no unit with a fallback is above or below its own. */
static void find_host(struct engine *e) {
    const struct machine *m = e->machine;
    for (int q = 0; q < m->nqueues; q++) {
        e->is_host[q] = m->nfallbacks == 0;
        for (int f = 0; f < m->nfallbacks; f++)
            if (inside(m, m->queue[q].unit, m->fallback[f].unit) ||
                inside(m, m->fallback[f].unit, m->queue[q].unit))
                e->is_host[q] = true;
        if (!e->is_host[q]) e->joined = true;
    }
}

static void find_interlocks(struct engine *e) {
    const struct machine *m = e->machine;
    for (int q = 0; q < m->nqueues; q++) {
        for (int s = 0; s < m->nsyncs; s++)
            if (m->sync[s].kind == SYNC_INTERLOCK && (m->sync[s].to >> q & 1))
                e->interlocked[q] |= m->sync[s].from;
        if (m->queue[q].data_order)
            e->interlocked[q] |= (uint64_t)1 << q;
        else
            e->interlocked[q] &= ~((uint64_t)1 << q); /* in order, results are forwarded */
    }
}

static int64_t most_instances(const struct machine *m) {
    int64_t n = 1;
    for (int u = 0; u < m->nunits; u++)
        if (m->unit[u].count > n) n = m->unit[u].count;
    return n > 1024 ? 1024 : n;
}

static void open_queues(struct engine *e) {
    const struct machine *m = e->machine;
    e->queue = arena_array(&e->arena, (size_t)m->nqueues + 1, sizeof *e->queue);
    e->sync = arena_array(&e->arena, (size_t)m->nsyncs + 1, sizeof *e->sync);
    e->is_host = arena_array(&e->arena, (size_t)m->nqueues + 1, sizeof *e->is_host);
    e->interlocked = arena_array(&e->arena, (size_t)m->nqueues + 1, sizeof *e->interlocked);
    e->bus_free = arena_array(&e->arena, (size_t)m->nbuses + 1, sizeof *e->bus_free);
    for (int q = 0; q < m->nqueues; q++)
        e->queue[q].server = arena_array(
            &e->arena, (size_t)(m->queue[q].width > 0 ? m->queue[q].width : 1), sizeof(double));
    find_host(e);
    find_interlocks(e);
}

static void open_result(struct sim_result *r, const struct machine *m) {
    memset(r, 0, sizeof *r);
    r->queue = calloc((size_t)m->nqueues + 1, sizeof *r->queue);
    r->bus = calloc((size_t)m->nbuses + 1, sizeof *r->bus);
    r->sync = calloc((size_t)m->nsyncs + 1, sizeof *r->sync);
    r->peak_bytes = calloc((size_t)m->nmemories + 1, sizeof *r->peak_bytes);
    r->macs_on = calloc((size_t)m->ninstrs + 1, sizeof *r->macs_on);
    r->operations_on = calloc((size_t)m->ninstrs + 1, sizeof *r->operations_on);
}

void sim_result_free(struct sim_result *r) {
    free(r->queue);
    free(r->bus);
    free(r->sync);
    free(r->peak_bytes);
    free(r->macs_on);
    free(r->operations_on);
    memset(r, 0, sizeof *r);
}

/* MACs of one execution at its largest sizes, per cycle of its queue. */
static double peak_rate(struct engine *e, int instr) {
    const struct instr *in = &e->machine->instr[instr];
    int64_t size[SIM_SIZES] = {0};
    for (int k = 0; k < in->nranged && k < SIM_SIZES; k++) {
        int64_t lo, hi, step;
        if (!instr_size_range(e->machine, in, k, &lo, &hi, &step)) return 0;
        size[k] = hi < 0 ? 1024 : hi;
    }
    struct program *p = instr_bind(e->machine, in, size, e->diags);
    if (!p) return 0;
    struct issue_node i = {.instr = instr};
    struct arg *arg = calloc((size_t)in->noperands + 1, sizeof *arg);
    for (int o = 0; o < in->noperands; o++) arg[o].place = -1;
    i.arg = arg;
    struct executed x = {0};
    memcpy(x.size, size, sizeof size);
    const struct shape *s = shape_of(e, &i, &x);
    double rate = s && s->interval > 0 ? (double)program_macs(p) / s->interval : 0;
    free(arg);
    program_free(p);
    return in->queue >= 0 ? rate * (double)e->machine->queue[in->queue].width : rate;
}

/* The units whose instructions did MACs work side by side; of one unit the fastest instruction is
 * the peak. */
static void utilisation(struct engine *e) {
    const struct machine *m = e->machine;
    double peak = 0, done = 0;
    for (int u = 0; u < m->nunits; u++) {
        double best = 0;
        for (int i = 0; i < m->ninstrs; i++) {
            if (m->instr[i].unit != u || !e->result->macs_on[i]) continue;
            done += (double)e->result->macs_on[i];
            double rate = peak_rate(e, i);
            if (rate > best) best = rate;
        }
        peak += best;
    }
    for (int i = 0; i <= m->ninstrs; i++) e->result->macs += e->result->macs_on[i];
    e->result->utilisation =
        peak > 0 && e->result->cycles > 0 ? done / (peak * e->result->cycles) : 0;
}

static bool open_trace(struct engine *e) {
    if (!e->options->trace) return true;
    e->trace = fopen(e->options->trace, "w");
    if (!e->trace) {
        diag_line(e->diags, e->options->trace, 0, 0, "cannot write '%s'", e->options->trace);
        return false;
    }
    fprintf(e->trace, "{\"traceEvents\":[");
    return true;
}

static void close_engine(struct engine *e) {
    trace_close(e);
    if (e->image) images_close(e);
    for (int q = 0; q < e->machine->nqueues; q++) free(e->queue[q].fifo);
    for (int s = 0; s < e->machine->nsyncs; s++) free(e->sync[s].at);
    for (int i = 0; i < e->machine->ninstrs; i++) {
        struct shape *s = &e->shape[i];
        for (int o = 0; o < SIM_OPERANDS; o++) free(s->offset[o]), free(s->data[o]);
        free(s->by_buffer);
        if (s->program) program_free(s->program);
    }
    arena_free(&e->arena);
}

static bool run_sections(struct engine *e) {
    const struct schedule *s = e->schedule;
    if (!e->options->no_values) images_load(e);
    e->counting = e->options->with_prepare_cost;
    if ((e->counting || !e->options->no_values) && !walk_section(e, &s->prepare)) return false;
    double start = e->counting ? 0 : e->end;
    if (!e->counting) {
        memset(e->result->sync, 0, (size_t)e->machine->nsyncs * sizeof *e->result->sync);
        time_reset_queues(e, e->end);
    }
    e->counting = true;
    if (!walk_section(e, &s->run)) return false;
    e->result->cycles = e->end - start;
    if (!e->options->no_values) images_store(e);
    return true;
}

static double wall(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

bool sim_run(const struct schedule *s, void *const *data, const struct sim_options *options,
             struct sim_result *r, struct diags *d) {
    struct engine e = {.schedule = s,
                       .machine = s->machine,
                       .options = options,
                       .result = r,
                       .diags = d,
                       .data = data,
                       .counting = true};
    double start = wall();
    open_result(r, s->machine);
    arena_init(&e.arena);
    e.limit = options->steps ? options->steps : (int64_t)10000000000;
    e.instances = (int)most_instances(s->machine);
    e.value = arena_array(&e.arena, (size_t)s->nvars + 1, sizeof *e.value);
    e.slot = arena_array(&e.arena, (size_t)s->nplaces + 1, sizeof *e.slot);
    e.shape = arena_array(&e.arena, (size_t)s->machine->ninstrs + 1, sizeof *e.shape);
    open_queues(&e);
    bool ok = images_open(&e) && open_trace(&e) && run_sections(&e);
    if (ok) utilisation(&e);
    close_engine(&e);
    r->wall_seconds = wall() - start;
    return ok;
}
