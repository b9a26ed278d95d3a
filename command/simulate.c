/* `isamap sim`: a compiled program on a machine known from its file, or on its model in RTL. */
#include "command/isamap_int.h"
#include "scheduler/clock/dryrun.h"
#include "ir/memory.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const int64_t YARDSTICK_USES = 20000000; /* about 0.2 s */

/* What the same instructions would move with the best eviction; of programs that are small enough.
 */
static void report_yardstick(struct report *r, const struct schedule *s) {
    struct dryrun best;
    if (!dryrun_traffic(s, YARDSTICK_USES, &best)) return;
    report_number(r, "yardstick_bytes", best.read + best.written);
    text_printf(&r->text,
                "yardstick   %.0f bytes read, %.0f written, unrolled with eviction by next use\n",
                best.read, best.written);
}

/* How long each queue waited for which token. */
static void report_syncs(struct report *r, const struct machine *m, const struct sim_result *x) {
    report_open(r, "syncs", '{');
    for (int s = 0; s < m->nsyncs; s++) {
        if (!x->sync[s].pushes && x->sync[s].wait <= 0) continue;
        report_open(r, m->sync[s].id, '{');
        report_integer(r, "pushes", x->sync[s].pushes);
        report_integer(r, "peak", x->sync[s].peak);
        report_number(r, "wait", x->sync[s].wait);
        report_close(r);
        text_printf(&r->text, "sync        %-10s waited for %.0f", m->sync[s].id, x->sync[s].wait);
        if (x->sync[s].pushes)
            text_printf(&r->text, ", %" PRId64 " given, at most %" PRId64 " at once",
                        x->sync[s].pushes, x->sync[s].peak);
        text_append(&r->text, "\n", 1);
    }
    report_close(r);
}

/* What the host does, by the arrays that it writes, the longest first. */
static void report_host(struct report *r, const struct schedule *s, const struct sim_result *x) {
    enum { SHOWN = 6 };
    double *left = memory_array((size_t)x->nhost, sizeof *left);
    memcpy(left, x->host_of, (size_t)x->nhost * sizeof *left);
    report_open(r, "host_of", '{');
    for (int shown = 0; shown < x->nhost; shown++) {
        int most = 0;
        for (int i = 1; i < x->nhost; i++)
            if (left[i] > left[most]) most = i;
        if (left[most] <= 0) break;
        const struct program *p = s->program;
        const char *name =
            most == p->nstmts ? "loads and stores" : p->buffer[p->stmt[most].dst.buffer].name;
        double same = 0;
        for (int i = 0; i < x->nhost; i++)
            if (i == most || (most < p->nstmts && i < p->nstmts &&
                              p->stmt[i].dst.buffer == p->stmt[most].dst.buffer)) {
                same += left[i];
                left[i] = 0;
            }
        report_number(r, name, same);
        if (shown < SHOWN)
            text_printf(&r->text, "%-12s%s %.3g %%\n", shown ? "" : "host by", name,
                        100 * same / x->host_cycles);
    }
    report_close(r);
    free(left);
}

double device_clock(const struct machine *m) {
    for (int q = 0; q < m->nqueues; q++)
        if (!machine_queue_is_host(m, q)) return m->unit[m->queue[q].unit].clock;
    return m->clock;
}

/* The device's cycles and, after or before them, the host's. */
static double both_seconds(const struct machine *m, const struct sim_result *x) {
    double host = m->nfallbacks ? m->unit[m->fallback[0].unit].clock : m->clock;
    return x->cycles / device_clock(m) + x->host_cycles / host;
}

static void report_queues(struct report *r, const struct machine *m, const struct sim_result *x) {
    report_open(r, "queues", '{');
    for (int q = 0; q < m->nqueues; q++) {
        if (!x->queue[q].instructions) continue;
        report_open(r, m->queue[q].id, '{');
        report_integer(r, "instructions", x->queue[q].instructions);
        report_number(r, "busy", x->queue[q].busy);
        report_number(r, "wait", x->queue[q].wait);
        report_close(r);
        text_printf(&r->text,
                    "queue       %-10s %8" PRId64 " instructions, busy %.0f, waiting %.0f\n",
                    m->queue[q].id, x->queue[q].instructions, x->queue[q].busy, x->queue[q].wait);
    }
    report_close(r);
}

static void report_buses(struct report *r, const struct machine *m, const struct sim_result *x) {
    report_open(r, "buses", '{');
    for (int b = 0; b < m->nbuses; b++) {
        if (x->bus[b].bytes <= 0) continue;
        report_open(r, m->bus[b].id, '{');
        report_number(r, "bytes", x->bus[b].bytes);
        report_number(r, "busy", x->bus[b].busy);
        report_close(r);
        text_printf(&r->text, "bus         %-10s %8.0f bytes, busy %.0f\n", m->bus[b].id,
                    x->bus[b].bytes, x->bus[b].busy);
    }
    report_close(r);
}

static void report_peaks(struct report *r, const struct machine *m, const struct sim_result *x) {
    report_open(r, "peak_bytes", '{');
    for (int i = 0; i < m->nmemories; i++) {
        if (!x->peak_bytes[i]) continue;
        report_integer(r, m->memory[i].id, x->peak_bytes[i]);
        text_printf(&r->text, "memory      %-10s %8" PRId64 " bytes at most", m->memory[i].id,
                    x->peak_bytes[i]);
        if (m->memory[i].size > 0) text_printf(&r->text, " of %" PRId64, m->memory[i].size);
        text_append(&r->text, "\n", 1);
    }
    report_close(r);
}

static void report_simulation(struct report *r, const struct schedule *s,
                              const struct sim_result *x, double bound, const char *model) {
    const struct machine *m = s->machine;
    struct {
        const char *key;
        double n;
    } numbers[] = {{"cycles", x->cycles},
                   {"host_cycles", x->host_cycles},
                   {"seconds", both_seconds(s->machine, x)},
                   {"utilisation", x->utilisation},
                   {"dram_read_bytes", x->home_read_bytes},
                   {"dram_write_bytes", x->home_write_bytes},
                   {"dram_bound_bytes", bound},
                   {"host_read_bytes", x->host_read_bytes},
                   {"host_write_bytes", x->host_write_bytes},
                   {"energy_pj", x->energy},
                   {"instructions", (double)x->instructions},
                   {"wall_seconds", x->wall_seconds}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        report_number(r, numbers[i].key, numbers[i].n);
    report_string(r, "model", model);
    if (x->launches) report_integer(r, "launches", x->launches);
    text_printf(&r->text,
                "cycles      %.0f, utilisation %.3f, %" PRId64
                " instructions (simulated in %.3g s)\n",
                x->cycles, x->utilisation, x->instructions, x->wall_seconds);
    if (x->launches)
        text_printf(&r->text, "launches    %" PRId64 ", %.0f cycles\n", x->launches,
                    (double)x->launches * m->launch);
    text_printf(&r->text, "DRAM        %.0f bytes read, %.0f written; bound %.0f\n",
                x->home_read_bytes, x->home_write_bytes, bound);
    report_yardstick(r, s);
    if (x->host_cycles > 0)
        text_printf(&r->text, "host        %.0f cycles, %.0f bytes read, %.0f written\n",
                    x->host_cycles, x->host_read_bytes, x->host_write_bytes);
    if (x->host_cycles > 0) report_host(r, s, x);
    report_queues(r, m, x);
    report_syncs(r, m, x);
    report_buses(r, m, x);
    report_peaks(r, m, x);
}

/* On the machine file, or on the device's model; then what the machine file says stands beside it.
 */
static bool simulate(isamap *im, struct job *j, void **data, struct sim_result *x,
                     double *predicted) {
    struct sim_options options = {.no_values = im->option.no_values,
                                  .walk = im->option.walk,
                                  .trace = im->option.trace,
                                  .size = j->size};
    struct latencies latencies = im->option.latencies;
    latencies.seed = im->option.seed;
    latencies_set(&latencies, &options);
    *predicted = -1;
    doing(im, "simulating");
    if (!im->option.rtl) return sim_run(j->schedule, data, &options, x, &im->diags);
    struct sim_result machine;
    options.no_values = true;
    options.trace = NULL;
    bool ok = sim_run(j->schedule, NULL, &options, &machine, &im->diags) &&
              device_simulate(im, j, data, &machine, &latencies, NULL, x);
    *predicted = machine.cycles;
    sim_result_free(&machine);
    return ok;
}

static int sim_job(isamap *im, struct job *j, struct arrays *in, struct arrays *got) {
    struct report *r = &im->report;
    bool values = !im->option.no_values || im->option.rtl,
         verify = values && (im->option.verify || (im->option.rtl && im->option.check));
    struct sim_result x = {0};
    double predicted;
    void **data = NULL;
    if (values) {
        if (!arrays_fill(im, j, in)) return ISAMAP_INPUT;
        *got = arrays_copy(j, in);
        data = arrays_for_schedule(j, got);
    }
    bool ok = simulate(im, j, data, &x, &predicted);
    free(data);
    struct comparison c = {0};
    ok = ok && (!values || arrays_write(im, j, got));
    ok = ok && (!verify || compare_with_interpreter(im, j, in, got, &c));
    if (!ok) return sim_result_free(&x), ISAMAP_INPUT;
    report_open(r, NULL, '{');
    report_head(r, j);
    report_simulation(r, j->schedule, &x, (double)program_touched_bytes(j->program),
                      im->option.rtl ? "rtl" : "machine");
    if (predicted >= 0) {
        report_number(r, "machine_cycles", predicted);
        text_printf(&r->text, "machine     file: %.0f cycles, %+.2f %%\n", predicted,
                    x.cycles > 0 ? 100 * (predicted - x.cycles) / x.cycles : 0);
    }
    report_comparison(r, &c);
    report_work(r, j, im->option.rtl ? NULL : &x);
    report_close(r);
    sim_result_free(&x);
    return c.done && !c.equal ? ISAMAP_VERIFY : ISAMAP_DONE;
}

static int sim_command(isamap *im, const char *path, const char *out) {
    (void)out;
    return job_execute(im, path, USE_SIM, sim_job);
}

int isamap_sim(isamap *im, const char *path) {
    return call_run(im,
                    &(struct api_call){.name = "isamap_sim", .run = sim_command, .file = "program"},
                    path, NULL);
}
