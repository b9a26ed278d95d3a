/* The results of `isamap bench`: a table for people, JSON for programs (docs/command.md). */
#include "command/bench_int.h"
#include "bench/table.h"
#include "ir/file.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* NAN: the device did nothing. */
static double of_limit(const struct outcome *o) {
    return o->cycles > 0 ? o->limit_cycles / o->cycles : NAN;
}

static double geomean(const struct bench *b) {
    double sum = 0;
    int n = 0;
    for (int i = 0; i < b->noutcomes; i++) {
        double x = b->device ? of_limit(&b->outcome[i]) : b->outcome[i].ratio;
        if (b->outcome[i].error || !isfinite(x) || x <= 0) continue;
        sum += log(x);
        n++;
    }
    return n ? exp(sum / n) : NAN;
}

static double of_limit_few(const struct outcome *o) {
    return o->few_cycles > 0 ? o->limit_cycles / o->few_cycles : NAN;
}

static void report_peers(struct report *r, const struct bench *b, const struct outcome *o) {
    report_open(r, "peers", '{');
    for (int p = 0; p < b->peers.n; p++)
        if (!isnan(o->peer[p])) report_number(r, b->peers.at[p]->name, o->peer[p]);
    report_close(r);
}

static void report_numbers(struct report *r, const struct bench *b, const struct outcome *o) {
    struct {
        const char *key;
        double value;
        int where; /* 1: host, 2: device, 3: both, 4: run on a device */
    } number[] = {
        {"ours_ms", o->ours, 3},
        {"ours_min_ms", o->ours_least, 1},
        {"ours_max_ms", o->ours_most, 1},
        {"ratio", o->ratio, 3},
        {"ratio_min", o->ratio_least, 1},
        {"ratio_max", o->ratio_most, 1},
        {"speedup", o->speedup, 1},
        {"gflops", o->gflops, 3},
        {"peak_gflops", o->peak_gflops, 3},
        {"peak_fraction", o->peak_fraction, 3},
        {"predicted_ms", o->predicted, 3},
        {"clock_ghz", o->clock / 1e9, 3},
        {"device_mhz", o->mhz, 4},
        {"device_watts", o->watts, 4},
        {"device_celsius", o->celsius, 4},
        {"cycles", o->cycles, 2},
        {"predicted_cycles", o->predicted_cycles, 2},
        {"limit_cycles", o->limit_cycles, 2},
        {"limit_fraction", of_limit(o), 2},
        {"utilisation", o->utilisation, 2},
        {"instructions", o->instructions, 2},
        {"few_contexts_cycles", o->few_cycles, 2},
        {"few_contexts_limit_fraction", of_limit_few(o), 2},
        {"dram_read_bytes", o->read_bytes, 2},
        {"dram_write_bytes", o->write_bytes, 2},
        {"dram_bound_bytes", o->bound_bytes, 3},
        {"compile_seconds", o->compile_seconds, 3},
        {"schedule_nodes", o->nodes, 3},
    };
    for (size_t i = 0; i < sizeof number / sizeof *number; i++)
        if (number[i].where & (b->device ? 2 : b->away ? 5 : 1))
            report_number(r, number[i].key, number[i].value);
}

static void report_outcome(struct report *r, const struct bench *b, const struct outcome *o) {
    report_open(r, NULL, '{');
    report_string(r, "workload", o->workload);
    report_integer(r, "threads", o->threads);
    for (int k = 0; k < b->points.nset; k++)
        report_integer(r, b->points.set[k].name, points_value(&b->points, o->point, k));
    if (o->error) {
        report_string(r, "error", o->error);
    } else {
        report_bool(r, "verified", o->verified);
        report_string(r, "verified_by", o->verified_by);
        report_string(r, "schedule_proof", proof_name[o->proof]);
        if (o->proof != PROOF_UNCHECKED) report_number(r, "proof_seconds", o->proof_seconds);
        if (o->proof_reason) report_string(r, "proof_reason", o->proof_reason);
        report_peers(r, b, o);
        report_numbers(r, b, o);
        if (!b->device) report_integer(r, "disturbed_turns", o->disturbed);
        if (o->best) report_string(r, "best_peer", o->best);
        if (b->device) report_string(r, "limit_by", o->limit_by);
        if (b->im->option.rtl) rtl_report(r, b, &o->rtl);
    }
    report_close(r);
}

/* Strings of JSON have no line ends, so those that are there stand between members. */
static void print_in_a_line(FILE *to, const char *json) {
    for (size_t n; *json; json += n + strspn(json + n, "\n ")) {
        n = strcspn(json, "\n");
        fprintf(to, "%.*s%c", (int)n, json, json[n] && json[n + 1] ? ' ' : '\n');
    }
}

bool bench_log(struct bench *b, const struct outcome *o) {
    struct report r;
    if (!b->log) return true;
    errno = 0;
    report_init(&r);
    report_outcome(&r, b, o);
    print_in_a_line(b->log, r.json.at);
    report_free(&r);
    if (fflush(b->log) == 0 && !ferror(b->log)) return true;
    file_write_failed(b->im->option.log, errno, &b->im->diags);
    return false;
}

static void report_json(struct bench *b) {
    struct report *r = &b->im->report;
    report_open(r, NULL, '{');
    report_string(r, b->suite ? "suite" : "program", b->path);
    report_string(r, "machine", b->machine);
    report_string(r, "measured", b->device ? "simulated" : "run here");
    report_integer(r, "runs", b->im->option.runs);
    if (*b->chip) report_string(r, "device", b->chip);
    if (b->away) report_integer(r, "span_bytes", b->span);
    report_number(r, b->device ? "geomean_limit_fraction" : "geomean_ratio", geomean(b));
    report_open(r, "missing_peers", '[');
    for (int i = 0; i < b->peers.nmissing; i++) report_string(r, NULL, b->peers.missing[i]);
    report_close(r);
    report_open(r, "results", '[');
    for (int i = 0; i < b->noutcomes; i++) report_outcome(r, b, &b->outcome[i]);
    report_close(r);
    report_close(r);
}

/* ---- text ---- */

/* Peers that did at least one workload. */
static bool took_part(const struct bench *b, int peer) {
    for (int i = 0; i < b->noutcomes; i++)
        if (!b->outcome[i].error && !isnan(b->outcome[i].peer[peer])) return true;
    return false;
}

static void say_verified(struct table *t, const struct outcome *o) {
    table_cell(t, "%s", o->wrong ? "NO" : o->verified_by);
}

static void host_columns(const struct bench *b, struct table *t) {
    if (b->nthreads > 1) table_column(t, "threads");
    table_column(t, "ours ms");
    if (b->nthreads > 1) table_column(t, "speedup");
    bool any = false;
    for (int p = 0; p < b->peers.n; p++)
        if (took_part(b, p)) table_column(t, b->peers.at[p]->name), any = true;
    if (any) table_column(t, "ratio"), table_column(t, "min..max");
    static const char *const title[] = {"GFLOP/s",   "of peak", "predicted ms", "DRAM MB",
                                        "compile s", "nodes",   "verified by"};
    for (size_t i = 0; i < sizeof title / sizeof *title; i++) table_column(t, title[i]);
    if (*b->chip) table_column(t, "MHz"), table_column(t, "W");
}

static void host_row(const struct bench *b, const struct outcome *o, struct table *t) {
    bool any = false;
    if (b->nthreads > 1) table_cell(t, "%d", o->threads);
    table_number(t, o->ours, 4);
    if (b->nthreads > 1) table_number(t, o->speedup, 3);
    for (int p = 0; p < b->peers.n; p++)
        if (took_part(b, p)) table_number(t, o->peer[p], 4), any = true;
    if (any && isnan(o->ratio)) table_cell(t, "-"), table_cell(t, "-");
    if (any && !isnan(o->ratio))
        table_cell(t, "%.2f", o->ratio), table_cell(t, "%.2f..%.2f", o->ratio_least, o->ratio_most);
    table_number(t, o->gflops, 4);
    table_number(t, o->peak_fraction, 3);
    table_number(t, o->predicted, 4);
    table_number(t, o->bound_bytes / 1e6, 3);
    table_number(t, o->compile_seconds, 2);
    table_cell(t, "%.0f", o->nodes);
    say_verified(t, o);
    if (*b->chip) table_number(t, o->mhz, 4), table_number(t, o->watts, 4);
}

static void device_columns(const struct bench *b, struct table *t) {
    static const char *const title[] = {"cycles",    "predicted", "limit",        "of limit",
                                        "by",        "of MACs",   "DRAM MB",      "least",
                                        "compile s", "nodes",     "instructions", "verified by"};
    for (size_t i = 0; i < sizeof title / sizeof *title; i++) table_column(t, title[i]);
    if (b->contexts == 1) table_column(t, "one context");
    if (b->contexts > 1) table_column(t, "few contexts");
    if (b->contexts) table_column(t, "of limit");
}

static void device_row(const struct bench *b, const struct outcome *o, struct table *t) {
    table_cell(t, "%.0f", o->cycles);
    table_cell(t, "%.0f", o->predicted_cycles);
    table_cell(t, "%.0f", o->limit_cycles);
    table_number(t, of_limit(o), 3);
    table_cell(t, "%s", o->limit_by);
    table_number(t, o->utilisation, 3);
    table_number(t, (o->read_bytes + o->write_bytes) / 1e6, 3);
    table_number(t, o->bound_bytes / 1e6, 3);
    table_number(t, o->compile_seconds, 2);
    table_cell(t, "%.0f", o->nodes);
    table_cell(t, "%.0f", o->instructions);
    say_verified(t, o);
    if (b->contexts) table_cell(t, "%.0f", o->few_cycles), table_number(t, of_limit_few(o), 3);
}

static void say_head(const struct bench *b, struct text *t) {
    text_printf(t, "%s on %s, ", b->path, b->machine);
    if (b->device) {
        text_printf(t, "simulated%s\n", b->im->option.rtl ? ", from machine file and RTL" : "");
        if (b->im->option.latencies.high)
            text_printf(t, "random latencies: %llu to %llu cycles\n",
                        (unsigned long long)b->im->option.latencies.low,
                        (unsigned long long)b->im->option.latencies.high);
        text_append(t, "\n", 1);
        return;
    }
    if (b->away)
        text_printf(t, "%s%stimes of the device, over arrays of %.4g MB in turns, ", b->chip,
                    *b->chip ? ", " : "", (double)b->span / 1e6);
    else if (b->nthreads == 1)
        text_printf(t, "%d thread%s, ", b->threads[0], b->threads[0] > 1 ? "s" : "");
    text_printf(t, "medians of %d rounds in turns\n", b->im->option.runs);
    double peak = NAN, hz = NAN;
    for (int i = 0; i < b->noutcomes && isnan(peak); i++)
        if (!b->outcome[i].error) peak = b->outcome[i].peak_gflops, hz = b->outcome[i].clock;
    if (!isnan(peak) && b->mac)
        text_printf(t, "peak %.4g GFLOP/s by '%s' in the same run, hence a clock of %.3g GHz\n",
                    peak, b->mac, hz / 1e9);
    for (int p = 0; p < b->peers.n; p++)
        if (took_part(b, p) && b->peers.at[p]->note)
            text_printf(t, "%s: %s\n", b->peers.at[p]->name, b->peers.at[p]->note);
    for (int p = 0; p < b->peers.nmissing; p++)
        text_printf(t, "%s: %s\n", b->peers.missing[p], b->peers.why[p]);
    int disturbed = 0;
    for (int i = 0; i < b->noutcomes; i++) disturbed += b->outcome[i].disturbed;
    if (disturbed)
        text_printf(t, "other processes disturbed %d turns: processor time stands for time there\n",
                    disturbed);
    text_append(t, "\n", 1);
}

static void report_text(struct bench *b) {
    struct text *t = &b->im->report.text;
    struct table table;
    double mean = geomean(b);
    say_head(b, t);
    table_init(&table);
    table_column(&table, "workload");
    for (int k = 0; k < b->points.nset; k++) table_column(&table, b->points.set[k].name);
    if (b->im->option.rtl)
        rtl_columns(b, &table);
    else if (b->device)
        device_columns(b, &table);
    else
        host_columns(b, &table);
    for (int i = 0; i < b->noutcomes; i++) {
        const struct outcome *o = &b->outcome[i];
        table_cell(&table, "%s", o->workload);
        for (int k = 0; k < b->points.nset; k++)
            table_cell(&table, "%lld", (long long)points_value(&b->points, o->point, k));
        if (o->error)
            table_cell(&table, "failed");
        else if (b->im->option.rtl)
            rtl_row(b, o, &table);
        else if (b->device)
            device_row(b, o, &table);
        else
            host_row(b, o, &table);
        table_end_row(&table);
    }
    table_print(&table, t);
    table_free(&table);
    if (!isnan(mean))
        text_printf(t, "\ngeometric mean of %s %.3f\n",
                    b->device ? "the share of the limit" : "the ratio (fastest peer / ours)", mean);
}

void bench_report(struct bench *b) {
    report_json(b);
    report_text(b);
}
