/* A compiled program on a device that runs instruction words (backends/device.h): launches, and the
 * host's work between them. */
#include "command/isamap_int.h"
#include "backends/bits/bits.h"
#include "backends/model.h"
#include "ir/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { STREAM_ALIGN = 64, MOST_COUNTERS = 256 };
static const double LIMIT_FACTOR = 100, LIMIT_LEAST = 1e7; /* cycles more than predicted: no end */

struct device_run {
    isamap *im;
    const struct job *job;
    struct model model;
    void *handle;
    struct bits_encoder *encoder;
    int64_t home, stream, room; /* addresses; bytes allocated for the stream */
    uint64_t limit;
    const struct latencies *latencies;
    struct agreement *agreement; /* or NULL */
    double cycles;               /* of the launches before */
    size_t seen;                 /* records */
    struct output *trace_output;
    FILE *trace; /* its file */
    bool traced;
};

static double processor_seconds(void) {
    return (double)clock() / CLOCKS_PER_SEC;
}

static bool device_error(struct device_run *r, const char *what) {
    diag_line(&r->im->diags, r->job->machine->model_of, 0, 0, "the device: %s", what);
    return false;
}

/* ---- the trace ---- */

static int queue_named(const struct device_run *r, const char *id) {
    int q = id ? machine_queue(r->job->machine, id) : -1;
    return q < 0 ? 0 : q;
}

static void trace_launch(struct device_run *r, const struct bits_launch *l,
                         const struct device_record *record, size_t n) {
    for (size_t k = 0; k < n && r->trace; k++) {
        const char *name = record[k].number < (uint64_t)l->n ? l->line[record[k].number].name : "?";
        fprintf(r->trace,
                "%s\n{\"name\":\"%s\",\"ph\":\"X\",\"ts\":%llu,\"dur\":%llu,\"pid\":0,\"tid\":%d}",
                r->traced ? "," : "", name, (unsigned long long)record[k].start,
                (unsigned long long)(record[k].end - record[k].start),
                queue_named(r, record[k].queue));
        r->traced = true;
    }
}

static bool trace_open(struct device_run *r) {
    const char *path = r->im->option.trace;
    if (!path) return true;
    r->trace_output = output_open(path, &r->im->diags);
    if (!r->trace_output) return false;
    r->trace = r->trace_output->file;
    fprintf(r->trace, "{\"traceEvents\":[");
    return true;
}

static bool trace_close(struct device_run *r) {
    const struct machine *m = r->job->machine;
    if (!r->trace) return true;
    for (int q = 0; q < m->nqueues; q++) {
        if (machine_queue_is_host(m, q)) continue;
        fprintf(r->trace,
                "%s\n{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":0,\"tid\":%d,\"args\":{"
                "\"name\":\"%s\"}}",
                r->traced ? "," : "", q, m->queue[q].id);
        r->traced = true;
    }
    fprintf(r->trace, "\n],\"displayTimeUnit\":\"ns\"}\n");
    r->trace = NULL;
    return output_close(r->trace_output, true, &r->im->diags);
}

/* ---- what the device counted ---- */

static double counted(const struct device_counter *c, size_t n, const char *what, const char *id) {
    char name[256];
    snprintf(name, sizeof name, "%s%s%s", what, id ? "." : "", id ? id : "");
    for (size_t k = 0; k < n; k++)
        if (!strcmp(c[k].name, name)) return (double)c[k].value;
    return 0;
}

static double cycles_now(const struct device_run *r) {
    struct device_counter c[MOST_COUNTERS];
    size_t n = r->model.device->counters(r->handle, c, MOST_COUNTERS);
    return counted(c, n < MOST_COUNTERS ? n : MOST_COUNTERS, "cycles", NULL);
}

/* ---- launches ---- */

static bool step(void *user, const struct node *n, const int64_t *value, const int64_t *slot) {
    struct device_run *r = user;
    return bits_add(r->encoder, n, value, slot);
}

/* Room for a stream: launches follow one another, so they may use the same. */
static bool stream_room(struct device_run *r, int64_t bytes) {
    if (bytes <= r->room) return true;
    r->stream = r->model.device->allocate(r->handle, bytes, STREAM_ALIGN);
    r->room = bytes;
    return r->stream >= 0 || device_error(r, "its memory has no room for the instructions");
}

/* What the device recorded of the launch is traced and compared. */
static bool take_records(struct device_run *r, const struct bits_launch *l, const uint8_t *home,
                         int64_t bytes) {
    const struct device *d = r->model.device;
    size_t n = d->records(r->handle, NULL, 0, 0) - r->seen;
    struct device_record *record = memory_array(n + 1, sizeof *record);
    d->records(r->handle, record, r->seen, n);
    r->seen += n;
    trace_launch(r, l, record, n);
    bool ok = !r->agreement || launch_agrees(r->im, r->job->machine, r->latencies, l, home, bytes,
                                             record, n, r->cycles, r->agreement);
    free(record);
    r->cycles = cycles_now(r);
    return ok;
}

static bool run(void *user, uint8_t *home, int64_t bytes, bool prepare) {
    struct device_run *r = user;
    const struct device *d = r->model.device;
    struct bits_launch l;
    char what[DEVICE_TEXT] = "";
    (void)prepare;
    if (!bits_pending(r->encoder)) return true;
    if (!stream_room(r, bits_stream_bytes(r->encoder))) return false;
    if (!bits_take(r->encoder, r->stream, &l)) return false;
    if (d->write(r->handle, r->home, home, bytes) ||
        d->write(r->handle, r->stream, l.stream, l.bytes))
        return device_error(r, "its memory cannot be written");
    if (d->launch(r->handle, r->stream, l.n, l.bytes, l.reg, l.nregs, what))
        return device_error(r, what);
    double begin = processor_seconds();
    if (d->wait(r->handle, r->limit, what) != DEVICE_DONE) return device_error(r, what);
    if (r->agreement) r->agreement->seconds += processor_seconds() - begin;
    if (!take_records(r, &l, home, bytes)) return false;
    return !d->read(r->handle, r->home, home, bytes) ||
           device_error(r, "its memory cannot be read");
}

static int64_t home_bytes(const struct schedule *s) {
    int64_t most = 0;
    for (int p = 0; p < s->nplaces; p++) {
        const struct place *x = &s->place[p];
        if (x->memory == s->machine->home && x->address + x->bytes * x->slots > most)
            most = x->address + x->bytes * x->slots;
    }
    return most;
}

static void *open_with_latencies(struct device_run *r) {
    const struct latencies *l = r->latencies;
    const struct device_setting more[] = {{"latency.low", (int64_t)l->low},
                                          {"latency.high", (int64_t)l->high},
                                          {"latency.seed", (int64_t)(l->seed ? l->seed : 1)}};
    doing(r->im, "building or loading the model in RTL");
    return model_open(&r->model, r->job->machine, more, l->high ? 3 : 0, &r->im->diags);
}

static bool open_device(struct device_run *r, double cycles) {
    isamap *im = r->im;
    const struct job *j = r->job;
    struct bindings set;
    struct arena scratch;
    arena_init(&scratch);
    bool ok = job_speaks_bits(im, j) &&
              pairs_bindings(im, &im->option.param, "--param", &scratch, &set) &&
              model_load(j->machine, &set, &r->model, &im->diags) &&
              (r->handle = open_with_latencies(r)) != NULL;
    arena_free(&scratch);
    if (!ok) return false;
    r->home = r->model.device->allocate(r->handle, home_bytes(j->schedule), STREAM_ALIGN);
    if (r->home < 0) return device_error(r, "its memory has no room for the program's arrays");
    r->encoder = bits_open(j->schedule, r->home, &im->diags);
    r->limit = (uint64_t)fmax(LIMIT_LEAST, LIMIT_FACTOR * cycles);
    return trace_open(r);
}

static void take_counters(struct device_run *r, const struct sim_result *machine,
                          struct sim_result *out) {
    const struct machine *m = r->job->machine;
    struct device_counter c[MOST_COUNTERS];
    size_t n = r->model.device->counters(r->handle, c, MOST_COUNTERS);
    if (n > MOST_COUNTERS) n = MOST_COUNTERS;
    out->cycles = counted(c, n, "cycles", NULL);
    out->instructions = (int64_t)counted(c, n, "instructions", NULL);
    out->home_read_bytes = counted(c, n, "read", m->memory[m->home].id);
    out->home_write_bytes = counted(c, n, "written", m->memory[m->home].id);
    for (int q = 0; q < m->nqueues; q++) {
        out->queue[q].busy = counted(c, n, "busy", m->queue[q].id);
        out->queue[q].wait = counted(c, n, "wait", m->queue[q].id);
        out->queue[q].instructions = (int64_t)counted(c, n, "instructions", m->queue[q].id);
    }
    for (int b = 0; b < m->nbuses; b++) {
        out->bus[b].bytes = counted(c, n, "bytes", m->bus[b].id);
        out->bus[b].busy = counted(c, n, "busy", m->bus[b].id);
    }
    for (int s = 0; s < m->nsyncs; s++) {
        out->sync[s].wait = counted(c, n, "wait", m->sync[s].id);
        out->sync[s].pushes = 0;
    }
    out->utilisation = out->cycles > 0 ? machine->utilisation * machine->cycles / out->cycles : 0;
    out->macs = machine->macs;
    out->host_cycles = machine->host_cycles;
    memcpy(out->host_of, machine->host_of, (size_t)machine->nhost * sizeof *out->host_of);
    out->host_read_bytes = machine->host_read_bytes;
    out->host_write_bytes = machine->host_write_bytes;
}

bool device_simulate(isamap *im, const struct job *j, void **data, const struct sim_result *machine,
                     const struct latencies *latencies, struct agreement *agreement,
                     struct sim_result *out) {
    struct device_run r = {.im = im, .job = j, .latencies = latencies, .agreement = agreement};
    struct sim_device device = {step, run, &r};
    struct sim_options options = {.device = &device, .size = j->size};
    bool ok = open_device(&r, machine->cycles);
    doing(im, "simulating in RTL");
    ok = ok && sim_run(j->schedule, data, &options, out, &im->diags);
    if (ok) take_counters(&r, machine, out);
    ok = trace_close(&r) && ok;
    bits_close(r.encoder);
    if (r.handle) r.model.device->close(r.handle);
    model_free(&r.model);
    return ok;
}
