/* What was done: MACs and other operations, the trace, utilisation. */
#include "scheduler/clock/clock_int.h"
#include "ir/file.h"
#include "ir/memory.h"
#include "ir/pick.h"

#include <stdlib.h>

const char *node_name(const struct engine *e, const struct node *n) {
    return n->kind == NODE_ISSUE       ? e->machine->instr[n->issue->instr].id
           : n->kind == NODE_FALLBACK  ? "fallback"
           : n->kind == NODE_CONFIGURE ? e->machine->configure[n->configure->configure].id
                                       : "sync";
}

/* Instances of the unit that work side by side at this moment. */
static int64_t active_instances(const struct engine *e, int unit) {
    int64_t n = 1;
    for (int u = unit; u >= 0; u = e->machine->unit[u].parent) n *= e->unit_active[u];
    return n;
}

void count_work(struct engine *e, const struct executed *x) {
    const struct program *p = e->schedule->program;
    bool issue = x->node->kind == NODE_ISSUE;
    if (!issue && x->node->kind != NODE_FALLBACK) return;
    int stmt = issue ? x->node->issue->stmt : x->node->fallback->stmt,
        by = issue ? x->node->issue->instr : e->machine->ninstrs;
    if (stmt < 0) return;
    if (issue) {
        int unit = e->machine->instr[by].unit;
        int64_t n = active_instances(e, unit);
        if (n > e->unit_used[unit]) e->unit_used[unit] = n;
    }
    e->result->macs_on[by] += x->work * stmt_macs(&p->stmt[stmt]);
    int64_t points = issue ? x->work : stmt_looks_at(p, &p->stmt[stmt], x->work);
    e->result->operations_on[by] +=
        points * stmt_operations(p, &p->stmt[stmt]) + x->also_operations;
    e->result->macs_on[by] += x->also_macs;
}

void count_host(struct engine *e, const struct node *n, double cycles) {
    struct sim_result *r = e->result;
    int stmt = n->kind == NODE_ISSUE      ? n->issue->stmt
               : n->kind == NODE_FALLBACK ? n->fallback->stmt
                                          : -1;
    r->host_cycles += cycles;
    r->host_of[stmt < 0 ? r->nhost - 1 : stmt] += cycles;
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
    double interval = shape_interval(e, instr, size);
    double rate = p && interval > 0 ? (double)program_macs(p) / interval : 0;
    if (p) program_free(p);
    return in->queue >= 0 ? rate * (double)e->machine->queue[in->queue].width : rate;
}

static bool on_host(const struct machine *m, int instr) {
    return m->instr[instr].queue >= 0 && machine_queue_is_host(m, m->instr[instr].queue);
}

/* The units whose instructions did MACs work side by side; of one unit the fastest instruction is
 * the peak. What the host beside a device did is not in the device's cycles. */
void count_utilisation(struct engine *e) {
    const struct machine *m = e->machine;
    double peak = 0, done = 0;
    bool device = false;
    for (int q = 0; q < m->nqueues; q++) device |= !machine_queue_is_host(m, q);
    for (int u = 0; u < m->nunits; u++) {
        double best = 0;
        for (int i = 0; i < m->ninstrs; i++) {
            if (m->instr[i].unit != u || !e->result->macs_on[i] || (device && on_host(m, i)))
                continue;
            done += (double)e->result->macs_on[i];
            double rate = peak_rate(e, i);
            if (rate > best) best = rate;
        }
        peak += best * (double)(e->unit_used[u] > 1 ? e->unit_used[u] : 1);
    }
    for (int i = 0; i <= m->ninstrs; i++) e->result->macs += e->result->macs_on[i];
    e->result->utilisation =
        peak > 0 && e->result->cycles > 0 ? done / (peak * e->result->cycles) : 0;
}

void note_times(struct engine *e, const struct executed *x, double start, double end) {
    struct sim_result *r = e->result;
    if (!e->options->times || !e->counting) return;
    if (r->ntimes == e->times_cap) {
        e->times_cap = 2 * e->times_cap + 64;
        r->time = memory_grow(r->time, e->times_cap * sizeof *r->time);
    }
    r->time[r->ntimes++] = (struct sim_time){x->queue, x->sequence - e->first, start, end};
}

/* ---- the trace ---- */

bool trace_open(struct engine *e) {
    if (!e->options->trace) return true;
    e->trace_output = output_open(e->options->trace, e->diags);
    if (!e->trace_output) return false;
    e->trace = e->trace_output->file;
    fprintf(e->trace, "{\"traceEvents\":[");
    return true;
}

void trace_event(struct engine *e, const struct executed *x, double start, double end) {
    if (!e->trace || !e->counting) return;
    fprintf(e->trace,
            "%s\n{\"name\":\"%s\",\"ph\":\"X\",\"ts\":%.3f,\"dur\":%.3f,\"pid\":%d,\"tid\":%d}",
            e->traced ? "," : "", node_name(e, x->node), start, end - start, x->instance, x->queue);
    e->traced = true;
}

void trace_close(struct engine *e) {
    if (!e->trace) return;
    for (int q = 0; q < e->machine->nqueues; q++) {
        fprintf(e->trace,
                "%s\n{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":0,\"tid\":%d,\"args\":{"
                "\"name\":\"%s\"}}",
                e->traced ? "," : "", q, e->machine->queue[q].id);
        e->traced = true;
    }
    fprintf(e->trace, "\n],\"displayTimeUnit\":\"ns\"}\n");
    e->trace = NULL;
    if (!output_close(e->trace_output, !e->failed, e->diags)) e->failed = true;
}
