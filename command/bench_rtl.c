/* `isamap bench --rtl`: machine file and RTL of a device side by side. */
#include "command/bench_int.h"
#include "bench/table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Cycles from the machine file, of all that the device did. */
static bool machine_cycles(isamap *im, const struct job *j, const struct latencies *l,
                           double *cycles) {
    struct sim_options options = {.no_values = true};
    struct sim_result x = {0};
    latencies_set(l, &options);
    bool ok = sim_run(j->schedule, NULL, &options, &x, &im->diags);
    *cycles = x.cycles;
    sim_result_free(&x);
    return ok;
}

static bool device_runs(isamap *im, const struct job *j, void **data,
                        const struct sim_result *machine, const struct latencies *l,
                        struct beside *out) {
    struct sim_result x = {0};
    bool ok = device_simulate(im, j, data, machine, l, &out->agreement, &x);
    out->rtl_cycles = x.cycles;
    out->read_bytes = x.home_read_bytes, out->write_bytes = x.home_write_bytes;
    sim_result_free(&x);
    return ok;
}

bool rtl_measure(isamap *im, const struct job *j, void **data, const struct sim_result *machine,
                 struct rtl_outcome *out) {
    struct latencies drawn = im->option.latencies, none = {0};
    uint64_t mean = (drawn.low + drawn.high + 1) / 2;
    out->fixed.cycles = machine->cycles;
    if (!device_runs(im, j, data, machine, &none, &out->fixed)) return false;
    if (!drawn.high) return true;
    drawn.seed = im->option.seed;
    return machine_cycles(im, j, &drawn, &out->drawn.cycles) &&
           machine_cycles(im, j, &(struct latencies){mean, mean, 1}, &out->mean_cycles) &&
           device_runs(im, j, data, machine, &drawn, &out->drawn);
}

/* ---- reports ---- */

static double apart(double cycles, double rtl) {
    return rtl > 0 ? (cycles - rtl) / rtl : NAN;
}

static void report_beside(struct report *r, const char *key, const struct beside *x) {
    report_open(r, key, '{');
    report_number(r, "cycles", x->cycles);
    report_number(r, "rtl_cycles", x->rtl_cycles);
    report_number(r, "apart", apart(x->cycles, x->rtl_cycles));
    report_integer(r, "instructions", x->agreement.instructions);
    report_integer(r, "instructions_apart", x->agreement.differ);
    report_number(r, "rtl_dram_read_bytes", x->read_bytes);
    report_number(r, "rtl_dram_write_bytes", x->write_bytes);
    report_number(r, "rtl_seconds", x->agreement.seconds);
    report_close(r);
}

void rtl_report(struct report *r, const struct bench *b, const struct rtl_outcome *o) {
    report_beside(r, "rtl", &o->fixed);
    if (!b->im->option.latencies.high) return;
    report_beside(r, "rtl_random", &o->drawn);
    report_number(r, "mean_latency_cycles", o->mean_cycles);
    report_number(r, "mean_latency_apart", apart(o->mean_cycles, o->drawn.rtl_cycles));
}

void rtl_columns(const struct bench *b, struct table *t) {
    static const char *const title[] = {"cycles",       "RTL",           "% apart",
                                        "instructions", "other times",   "DRAM bytes",
                                        "RTL's",        "RTL Mcycles/s", "verified by"};
    static const char *const random[] = {"random: cycles", "RTL",         "% apart",
                                         "other times",    "by the mean", "% apart"};
    for (size_t i = 0; i < sizeof title / sizeof *title; i++) table_column(t, title[i]);
    for (size_t i = 0; i < sizeof random / sizeof *random && b->im->option.latencies.high; i++)
        table_column(t, random[i]);
}

static void cycles_cells(const struct beside *x, struct table *t) {
    table_cell(t, "%.0f", x->cycles);
    table_cell(t, "%.0f", x->rtl_cycles);
    table_cell(t, "%.2f", 100 * fabs(apart(x->cycles, x->rtl_cycles)));
}

void rtl_row(const struct bench *b, const struct outcome *o, struct table *t) {
    const struct rtl_outcome *x = &o->rtl;
    cycles_cells(&x->fixed, t);
    table_cell(t, "%lld", (long long)x->fixed.agreement.instructions);
    table_cell(t, "%lld", (long long)x->fixed.agreement.differ);
    table_cell(t, "%.0f", o->read_bytes + o->write_bytes);
    table_cell(t, "%.0f", x->fixed.read_bytes + x->fixed.write_bytes);
    table_number(t, x->fixed.rtl_cycles / x->fixed.agreement.seconds / 1e6, 3);
    table_cell(t, "%s", o->wrong ? "NO" : o->verified_by);
    if (!b->im->option.latencies.high) return;
    cycles_cells(&x->drawn, t);
    table_cell(t, "%lld", (long long)x->drawn.agreement.differ);
    table_cell(t, "%.0f", x->mean_cycles);
    table_cell(t, "%.2f", 100 * fabs(apart(x->mean_cycles, x->drawn.rtl_cycles)));
}
