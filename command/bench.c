/* `isamap bench`: every workload is compiled, verified and timed in turns with what users would
 * call instead, and with the machine's best multiply-accumulate loop; devices are simulated and
 * compared with the least time that the work needs (docs/bench.md). */
#include "command/bench_int.h"
#include "bench/device.h"
#include "ir/file.h"
#include "ir/memory.h"
#include "machines/share.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CONTENDERS = MAX_PEERS + 2 };
static const int64_t WHOLE_MACS = 150000000, /* more: sampled outputs are compared */
    DEVICE_MACS = 30000000;                  /* more: the schedule is verified instead of values */

/* ---- code that runs here ---- */

struct code {
    isamap *im;
    struct job *job;
    struct executable *executable;
    struct arrays in, got;
    void **data;
    int threads;
};

static bool code_open(isamap *im, struct job *j, int threads, struct code *c) {
    *c = (struct code){.im = im, .job = j, .threads = threads};
    double start = now_seconds();
    const struct backend *backend = backend_find(j->schedule, NULL, &im->diags);
    doing(im, "compiling");
    if (backend)
        c->executable = backend->load(
            j->schedule, &(struct backend_options){.target = im->option.target}, &im->diags);
    j->compile_seconds += now_seconds() - start;
    if (!c->executable || !arrays_fill(im, j, &c->in)) return false;
    c->got = arrays_copy(j, &c->in);
    c->data = arrays_for_schedule(j, &c->got);
    return executable_prepare(c->executable, c->data, &im->diags);
}

static void code_close(struct code *c) {
    if (c->executable) executable_free(c->executable);
    if (c->in.data) arrays_free(&c->in);
    if (c->got.data) arrays_free(&c->got);
    free(c->data);
}

static bool code_run(void *user) {
    struct code *c = user;
    return executable_run(c->executable, c->data, c->threads, &c->im->diags);
}

/* A device's own time. */
static bool code_measure(void *user, int calls, int64_t span, double *seconds) {
    struct code *c = user;
    executable_device_rounds(c->executable, calls, span);
    if (!code_run(c)) return false;
    *seconds = executable_device_seconds(c->executable);
    return true;
}

/* ---- the peak: one for each pair of types and number of threads ---- */

struct peak {
    enum type a, b;
    int threads;
    bool runs; /* false: nothing to measure on this machine */
    struct job job;
    struct code code;
    double macs;      /* of one call */
    double per_cycle; /* MACs, as the machine file says, with all threads */
};

static bool peak_open(struct bench *b, struct peak *p) {
    isamap *im = b->im;
    struct mac_unit unit = {.instr = -1};
    job_init(&p->job, "peak");
    p->job.name = "peak";
    if (!job_machine(im, &p->job, USE_RUN)) return false;
    const struct machine *m = p->job.machine;
    mac_unit_find(m, p->a, p->b, &unit);
    if (unit.instr >= 0) p->job.own_program = p->job.program = peak_program(m, &unit);
    bool ok = p->job.program && program_verify(p->job.program, &im->diags) &&
              job_compile(im, &p->job) && code_open(im, &p->job, p->threads, &p->code) &&
              code_run(&p->code);
    if (ok) {
        int queue = m->instr[unit.instr].queue;
        p->macs = (double)program_macs(p->job.program);
        p->per_cycle =
            unit.rate *
            (double)(queue < 0 ? 1 : parallel_units(m, m->queue[queue].unit, p->threads));
        if (!b->mac) b->mac = arena_strdup(&b->arena, m->instr[unit.instr].id);
    }
    mac_unit_free(&unit);
    return ok;
}

/* Its messages are nobody's: a machine without such a loop has no measured peak. */
static struct peak *peak_of(struct bench *b, const struct job *j, int threads) {
    enum type x, y;
    if (!program_mac_types(j->program, &x, &y)) return NULL;
    for (int i = 0; i < b->npeaks; i++)
        if (b->peak[i].a == x && b->peak[i].b == y && b->peak[i].threads == threads)
            return b->peak[i].runs ? &b->peak[i] : NULL;
    if (b->npeaks == b->peaks_cap) return NULL;
    struct peak *p = &b->peak[b->npeaks++];
    *p = (struct peak){.a = x, .b = y, .threads = threads};
    struct diags kept = b->im->diags;
    struct options options = b->im->option;
    b->im->option.decisions = b->im->option.record = b->im->option.approach = NULL;
    b->im->option.check = b->im->option.explain = false;
    b->im->option.input.n = 0;
    diags_init(&b->im->diags);
    p->runs = peak_open(b, p);
    diags_free(&b->im->diags);
    b->im->diags = kept;
    b->im->option = options;
    return p->runs ? p : NULL;
}

static void peaks_close(struct bench *b) {
    for (int i = 0; i < b->npeaks; i++) {
        code_close(&b->peak[i].code);
        job_free(&b->peak[i].job);
    }
}

/* ---- host: in turns with peers ---- */

struct rival {
    int peer;
    void *state;
    void *result;
};

struct contest {
    struct bench *b;
    struct outcome *o;
    struct code code;
    struct reference *reference;
    int64_t steps; /* of a recurrence that were compared; 0: all */
    struct rival rival[MAX_PEERS];
    int nrivals;
    struct peak *peak;
    double *seconds[MAX_CONTENDERS];
};

static bool agrees(struct contest *c, const struct arrays *got) {
    struct comparison x;
    reference_compare(c->b->im, c->reference, got, &x);
    c->steps = x.steps;
    return x.equal;
}

/* A peer whose result is wrong does not take part. */
static bool rival_right(struct contest *c, const struct peer *p, const struct work *w,
                        const struct rival *r) {
    void *kept = c->code.in.data[w->c];
    c->code.in.data[w->c] = r->result;
    bool ok = p->run(r->state) && (!p->finish || p->finish(r->state)) && agrees(c, &c->code.in);
    c->code.in.data[w->c] = kept;
    if (!ok)
        diag_warn(&c->b->im->diags, c->o->workload, 0, 0,
                  "the result of '%s' differs from the interpreter's; it is left out", p->name);
    return ok;
}

static void add_rivals(struct contest *c) {
    const struct job *j = c->code.job;
    struct work w;
    work_recognise(j->program, &w);
    w.data = c->code.in.data;
    for (int i = 0; i < c->b->peers.n; i++) {
        const struct peer *p = c->b->peers.at[i];
        if (w.kind == WORK_OTHER || !p->can(&w)) continue;
        const struct buffer *out = &j->program->buffer[w.c];
        struct rival r = {.peer = i,
                          .result = memory_bytes((size_t)out->elements * type_size(out->type) + 1)};
        if (r.result) {
            memset(r.result, 0xff, (size_t)out->elements * type_size(out->type));
            r.state =
                p->prepare(&w, c->code.in.data[w.a], c->code.in.data[w.b], r.result, c->o->threads);
        }
        if (r.state && rival_right(c, p, &w, &r)) {
            c->rival[c->nrivals++] = r;
            continue;
        }
        if (r.state) p->release(r.state);
        free(r.result);
    }
}

static void least_and_most(const double *v, int n, double *least, double *most) {
    *least = INFINITY, *most = -INFINITY;
    for (int i = 0; i < n; i++) *least = fmin(*least, v[i]), *most = fmax(*most, v[i]);
}

static void judge_rivals(struct contest *c, int rounds) {
    struct outcome *o = c->o;
    int best = -1;
    for (int i = 0; i < c->nrivals; i++) {
        double s = clock_median(c->seconds[1 + i], rounds);
        o->peer[c->rival[i].peer] = 1e3 * s;
        if (best < 0 || 1e3 * s < o->peer[c->rival[best].peer]) best = i;
    }
    if (best < 0) return;
    o->best = c->b->peers.at[c->rival[best].peer]->name;
    o->ratio = o->peer[c->rival[best].peer] / o->ours;
    double *ratio = memory_bytes((size_t)rounds * sizeof *ratio);
    for (int r = 0; r < rounds; r++) ratio[r] = c->seconds[1 + best][r] / c->seconds[0][r];
    least_and_most(ratio, rounds, &o->ratio_least, &o->ratio_most);
    free(ratio);
}

static void judge_times(struct contest *c, int rounds) {
    struct outcome *o = c->o;
    const struct schedule *s = c->code.job->schedule;
    double work = 2.0 * (double)program_macs(c->code.job->program);
    if (work == 0) work = (double)program_operations(c->code.job->program);
    double ours = clock_median(c->seconds[0], rounds);
    o->ours = 1e3 * ours;
    least_and_most(c->seconds[0], rounds, &o->ours_least, &o->ours_most);
    o->ours_least *= 1e3, o->ours_most *= 1e3;
    o->gflops = work / ours / 1e9;
    o->clock = s->machine->clock;
    if (c->peak) {
        double *seconds = c->seconds[1 + c->nrivals], peak = clock_median(seconds, rounds), most;
        if (o->threads > 1) least_and_most(seconds, rounds, &peak, &most);
        o->peak_gflops = 2 * c->peak->macs / peak / 1e9;
        o->peak_fraction = o->gflops / o->peak_gflops;
        o->clock = c->peak->macs / peak / c->peak->per_cycle;
    }
    if (o->clock > 0) o->predicted = 1e3 * schedule_cost(s, c->code.job->size) / o->clock;
    judge_rivals(c, rounds);
}

static bool take_turns(struct contest *c) {
    struct contender list[MAX_CONTENDERS];
    int n = 0, rounds = c->b->im->option.runs;
    list[n++] = (struct contender){.run = code_run, .user = &c->code};
    for (int i = 0; i < c->nrivals; i++) {
        const struct peer *p = c->b->peers.at[c->rival[i].peer];
        list[n++] = (struct contender){
            .run = p->run, .measure = p->measure, .user = c->rival[i].state, .span = c->b->span};
    }
    if (c->peak) list[n++] = (struct contender){.run = code_run, .user = &c->peak->code};
    if (c->b->away) list[0].measure = code_measure, list[0].span = c->b->span;
    for (int i = 0; i < n; i++) {
        c->seconds[i] = list[i].seconds = memory_array((size_t)rounds, sizeof(double));
    }
    if (!clock_rounds(list, n, rounds, c->o->threads)) return false;
    for (int i = 0; i < n; i++) c->o->disturbed += list[i].disturbed;
    judge_times(c, rounds);
    struct device_state now;
    if (!c->b->away || !device_state(&now)) return true;
    memcpy(c->b->chip, now.name, sizeof c->b->chip);
    c->o->mhz = now.mhz, c->o->watts = now.watts, c->o->celsius = now.celsius;
    return true;
}

static bool repeats(const struct program *p) {
    for (int b = 0; b < p->nbuffers; b++)
        if (p->buffer[b].role == ROLE_INOUT) return false;
    return true;
}

static bool host_contest(struct contest *c, struct job *j) {
    isamap *im = c->b->im;
    if (!code_open(im, j, c->o->threads, &c->code) || !code_run(&c->code)) return false;
    c->reference = reference_make(im, j, &c->code.in, WHOLE_MACS);
    if (!c->reference) return false;
    c->o->verified = agrees(c, &c->code.got);
    c->o->verified_by = program_macs(j->program) <= WHOLE_MACS ? "interpreter"
                        : c->steps ? arena_printf(&c->b->arena, "%" PRId64 " steps", c->steps)
                                   : "samples";
    add_rivals(c);
    c->peak = c->b->away ? NULL : peak_of(c->b, j, c->o->threads);
    doing(im, "timing");
    if (!take_turns(c)) return false;
    if (repeats(j->program)) c->o->verified = c->o->verified && agrees(c, &c->code.got);
    c->o->wrong = !c->o->verified;
    return true;
}

static bool bench_host(struct bench *b, struct job *j, struct outcome *o) {
    struct contest c = {.b = b, .o = o};
    bool ok = host_contest(&c, j);
    for (int i = 0; i < c.nrivals; i++) {
        b->peers.at[c.rival[i].peer]->release(c.rival[i].state);
        free(c.rival[i].result);
    }
    for (int i = 0; i < MAX_CONTENDERS; i++) free(c.seconds[i]);
    reference_free(c.reference);
    code_close(&c.code);
    return ok;
}

static bool open_job(struct bench *b, int workload, struct job *j) {
    isamap *im = b->im;
    if (!job_machine(im, j, b->device ? USE_SIM : USE_RUN)) return false;
    if (!b->suite) return job_program(im, j) && job_fixed(im, j);
    const struct workload *w = &b->suite->at[workload];
    j->own_program = program_bind(w->kernel, &w->given, NULL, &im->diags);
    if (!j->own_program || !program_verify(j->own_program, &im->diags)) return false;
    j->program = j->own_program;
    j->name = w->name;
    return true;
}

/* ---- device: simulated ---- */

static bool simulate(struct bench *b, struct job *j, struct outcome *o, struct arrays *in,
                     struct arrays *got) {
    isamap *im = b->im;
    bool rtl = im->option.rtl,
         values = rtl || im->option.verify || program_macs(j->program) <= DEVICE_MACS;
    struct sim_options options = {.no_values = !values || rtl};
    struct sim_result x = {0};
    void **data = NULL;
    if (values) {
        if (!arrays_fill(im, j, in)) return false;
        *got = arrays_copy(j, in);
        data = arrays_for_schedule(j, got);
    }
    doing(im, "simulating");
    bool ok = sim_run(j->schedule, data, &options, &x, &im->diags) &&
              (!rtl || rtl_measure(im, j, data, &x, &o->rtl));
    free(data);
    struct comparison c = {.equal = true};
    ok = ok && (!values || compare_with_interpreter(im, j, in, got, &c));
    if (ok) {
        struct limit l = limit_of(j->schedule, j->program, o->threads);
        o->verified = values ? c.equal : j->proof == PROOF_PROVED;
        o->verified_by = values        ? c.sampled ? "samples" : "interpreter"
                         : o->verified ? "schedule"
                                       : proof_name[j->proof];
        o->wrong = values && !c.equal;
        o->cycles = x.cycles;
        o->predicted_cycles = schedule_cost(j->schedule, j->size);
        o->limit_cycles = l.cycles;
        o->limit_by = arena_strdup(&b->arena, l.by);
        o->utilisation = x.utilisation;
        o->instructions = (double)x.instructions;
        o->read_bytes = x.home_read_bytes, o->write_bytes = x.home_write_bytes;
    }
    sim_result_free(&x);
    return ok;
}

static void judge_cycles(const struct job *j, struct outcome *o) {
    const struct machine *m = j->machine;
    double hz = device_clock(m), macs = (double)program_macs(j->program);
    enum type x, y;
    if (hz <= 0 || o->cycles <= 0) return;
    o->clock = hz;
    o->ours = 1e3 * o->cycles / hz;
    o->predicted = 1e3 * o->predicted_cycles / hz;
    o->gflops = 2 * macs / (o->cycles / hz) / 1e9;
    if (!program_mac_types(j->program, &x, &y)) return;
    struct mac_unit unit;
    mac_unit_find(m, x, y, &unit);
    if (unit.instr >= 0) {
        int queue = m->instr[unit.instr].queue;
        double units = queue < 0 ? 1 : (double)parallel_units(m, m->queue[queue].unit, o->threads);
        o->peak_gflops = 2 * unit.rate * units * hz / 1e9;
        o->peak_fraction = o->gflops / o->peak_gflops;
    }
    mac_unit_free(&unit);
}

/* The same program with so few slots for each copy; its cycles alone. */
static bool simulate_few(struct bench *b, int workload, int contexts, struct outcome *o) {
    struct sim_options options = {.no_values = true};
    struct sim_result x = {0};
    struct job j;
    b->im->option.contexts = contexts;
    job_init(&j, b->suite ? b->suite->at[workload].file : b->path);
    bool ok = open_job(b, workload, &j) && job_compile(b->im, &j) &&
              sim_run(j.schedule, NULL, &options, &x, &b->im->diags);
    if (ok) o->few_cycles = x.cycles;
    b->im->option.contexts = 0;
    sim_result_free(&x);
    job_free(&j);
    return ok;
}

static bool bench_device(struct bench *b, int workload, struct job *j, struct outcome *o) {
    struct arrays in = {0}, got = {0};
    bool ok = simulate(b, j, o, &in, &got);
    if (ok && b->contexts) ok = simulate_few(b, workload, b->contexts, o);
    if (in.data) arrays_free(&in);
    if (got.data) arrays_free(&got);
    if (ok) judge_cycles(j, o);
    return ok;
}

/* ---- workloads ---- */

static void outcome_init(struct outcome *o, int threads) {
    *o = (struct outcome){.threads = threads, .verified_by = ""};
    double *number[] = {&o->ours,        &o->ours_least,   &o->ours_most,        &o->gflops,
                        &o->peak_gflops, &o->speedup,      &o->peak_fraction,    &o->predicted,
                        &o->clock,       &o->ratio,        &o->ratio_least,      &o->ratio_most,
                        &o->cycles,      &o->limit_cycles, &o->predicted_cycles, &o->utilisation,
                        &o->read_bytes,  &o->write_bytes,  &o->few_cycles,       &o->instructions,
                        &o->mhz,         &o->watts,        &o->celsius};
    for (size_t i = 0; i < sizeof number / sizeof *number; i++) *number[i] = NAN;
    for (int p = 0; p < MAX_PEERS; p++) o->peer[p] = NAN;
}

static const char *why_failed(struct bench *b) {
    const struct diags *d = &b->im->diags;
    for (int i = 0; i < d->n; i++)
        if (!d->at[i].warning) return arena_strdup(&b->arena, d->at[i].text);
    return "no reason given";
}

/* How much faster than with the first number of threads. */
static void judge_speedup(struct bench *b, struct outcome *o) {
    for (int i = 0; i < b->noutcomes; i++)
        if (!b->outcome[i].error && strcmp(b->outcome[i].workload, o->workload) == 0 &&
            b->outcome[i].point == o->point && b->outcome[i].threads == b->threads[0]) {
            o->speedup = b->outcome[i].ours / o->ours;
            return;
        }
}

static int bench_one(struct bench *b, int workload, int point, int threads) {
    isamap *im = b->im;
    struct pairs kept = im->option.param;
    struct job j;
    if (b->noutcomes == b->outcomes_cap) GROW(&b->arena, b->outcome, b->noutcomes, b->outcomes_cap);
    struct outcome *o = &b->outcome[b->noutcomes];
    outcome_init(o, threads);
    o->point = point;
    im->option.param = points_params(&b->points, point, &kept, &b->arena);
    im->option.threads = threads;
    job_init(&j, b->suite ? b->suite->at[workload].file : b->path);
    bool ok = open_job(b, workload, &j) && job_compile(im, &j);
    o->workload = arena_strdup(&b->arena, j.name ? j.name : b->path);
    if (b->suite) o->workload = b->suite->at[workload].name;
    if (ok) {
        b->machine = arena_strdup(&b->arena, j.machine->name);
        o->bound_bytes = (double)program_touched_bytes(j.program);
        o->nodes = (double)schedule_nodes(j.schedule);
        ok = b->device ? bench_device(b, workload, &j, o) : bench_host(b, &j, o);
        o->compile_seconds = j.compile_seconds;
        o->proof = j.proof;
        o->proof_seconds = j.proof_seconds;
        if (j.proof_reason.n) o->proof_reason = arena_strdup(&b->arena, j.proof_reason.at);
    }
    if (!ok) o->error = why_failed(b);
    messages_take(im);
    im->option.param = kept;
    b->noutcomes++;
    if (ok) judge_speedup(b, o);
    text_append(&im->messages, j.explain.at ? j.explain.at : "", j.explain.n);
    job_free(&j);
    return !ok ? ISAMAP_INPUT : o->wrong ? ISAMAP_VERIFY : ISAMAP_DONE;
}

static int bench_all(struct bench *b) {
    int status = ISAMAP_DONE, n = b->suite ? b->suite->n : 1;
    for (int w = 0; w < n; w++)
        for (int k = 0; k < b->points.n * b->nthreads; k++) {
            if (n > 1) doing_item(b->im, w + 1, n, b->suite->at[w].name);
            int one = bench_one(b, w, k / b->nthreads, b->threads[k % b->nthreads]);
            if (one > status) status = one;
            if (!bench_log(b, &b->outcome[b->noutcomes - 1])) return ISAMAP_INPUT;
        }
    return status;
}

/* ---- the command ---- */

static bool load_suite(struct bench *b) {
    const struct options *o = &b->im->option;
    struct bindings set;
    if (!pairs_bindings(b->im, &o->define, "-D", &b->arena, &set)) return false;
    const char *folder[] = {"bench", share_part(&b->arena, "bench"), NULL};
    struct suite_options options = {
        .kernel = o->kernel, .only = o->only, .folder = folder, .set = &set, .batch = o->batch};
    b->suite = suite_load(b->path, &options, &b->im->diags);
    return b->suite != NULL;
}

static bool check_options(struct bench *b) {
    const struct options *o = &b->im->option;
    const char *suite_only = o->only ? "--only" : o->batch ? "--batch" : NULL;
    if (!b->suite && suite_only) {
        diag_line(&b->im->diags, suite_only, 0, 0, "'%s' is one program; a suite is a .csv file",
                  b->path);
        return false;
    }
    if (b->suite && (o->decisions || o->record)) {
        diag_line(&b->im->diags, o->decisions ? "--decisions" : "--record", 0, 0,
                  "one file of decisions is for one program, not for suite '%s'", b->path);
        return false;
    }
    const char *device_only = o->rtl              ? "--rtl"
                              : o->latencies.high ? "--latencies"
                              : o->set.n          ? "--set"
                              : b->contexts       ? "--contexts"
                                                  : NULL;
    if (!b->device && device_only) {
        diag_line(&b->im->diags, device_only, 0, 0,
                  "'%s' is not simulated but measured here; expected a device", b->machine);
        return false;
    }
    if (o->latencies.high && !o->rtl) {
        diag_line(&b->im->diags, "--latencies", 0, 0, "for `bench` it goes with --rtl");
        return false;
    }
    return true;
}

/* Code for it is loaded by a driver, which says what the device can do. */
static bool runs_away(const struct machine *m) {
    bool away = false;
    for (int f = 0; f < m->nfeatures; f++) away = away || m->feature[f].capability;
    return away;
}

/* Three times the largest cache. */
static int64_t span_of(const struct machine *m) {
    int64_t most = 0;
    for (int i = 0; i < m->nmemories; i++)
        if (m->memory[i].caches >= 0 && m->memory[i].size > most) most = m->memory[i].size;
    return most < INT64_MAX / 3 ? 3 * most : most;
}

static bool find_machine(struct bench *b) {
    struct job j;
    job_init(&j, b->path);
    bool ok = job_machine(b->im, &j, USE_MAP);
    if (ok) {
        b->device = machine_needs_host(j.machine);
        b->away = !b->device && runs_away(j.machine);
        b->span = b->away ? span_of(j.machine) : 0;
        b->machine = arena_strdup(&b->arena, j.machine->name);
    }
    job_free(&j);
    return ok;
}

static int bench_run(struct bench *b) {
    isamap *im = b->im;
    if ((has_suffix(b->path, ".csv") && !load_suite(b)) || !find_machine(b) || !check_options(b) ||
        !points_parse(im, &b->arena, &b->points) ||
        (!b->device && !peers_load(im->option.vs, b->away, &b->peers, &im->diags)))
        return ISAMAP_INPUT;
    if (im->option.log && !(b->log = fopen(im->option.log, "w"))) {
        file_write_failed(im->option.log, errno, &im->diags);
        return ISAMAP_INPUT;
    }
    b->peaks_cap = 8 * b->nthreads;
    b->peak = arena_array(&b->arena, (size_t)b->peaks_cap, sizeof *b->peak);
    int status = bench_all(b);
    bench_report(b);
    peaks_close(b);
    return status;
}

static int bench_command(isamap *im, const char *path, const char *out) {
    (void)out;
    struct bench b = {.im = im, .path = path, .machine = ""};
    struct options kept = im->option;
    arena_init(&b.arena);
    b.nthreads = kept.nthreads;
    memcpy(b.threads, kept.thread_count, sizeof b.threads);
    im->option.nthreads = 1;
    b.contexts = kept.contexts;
    im->option.contexts = 0;
    int status = bench_run(&b);
    if (b.log) fclose(b.log); /* each line is written */
    im->option = kept;
    suite_free(b.suite);
    arena_free(&b.arena);
    return status;
}

int isamap_bench(isamap *im, const char *path) {
    return call_run(
        im, &(struct api_call){.name = "isamap_bench", .run = bench_command, .file = "program"},
        path, NULL);
}
