/* What each command does: the calls of isamap.h, their results as text and JSON. */
#include "command/stream.h"
#include "command/isamap_int.h"
#include "backends/bits/bits.h"
#include "backends/conform.h"
#include "ir/memory.h"
#include "ir/pick.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- who did the work ---- */

/* The instruction that executes each statement of the scheduled program; ninstrs: the fallback. */
static void executors(const struct schedule *s, const struct section *section,
                      const struct node *node, int n, int *by) {
    if (section) node = section->node, n = section->nnodes;
    for (int i = 0; i < n; i++) {
        if (node[i].kind == NODE_LOOP)
            executors(s, NULL, node[i].loop->body, node[i].loop->nbody, by);
        else if (node[i].kind == NODE_FALLBACK)
            by[node[i].fallback->stmt] = s->machine->ninstrs;
        else if (node[i].kind == NODE_ISSUE && node[i].issue->stmt >= 0) {
            by[node[i].issue->stmt] = node[i].issue->instr;
            for (int q = 0; q < node[i].issue->nalso; q++)
                by[node[i].issue->also[q]] = node[i].issue->instr;
        }
    }
}

/* Scalar or opaque code, of all; the last line of the text. */
static void report_fallback(struct report *r, int64_t macs, int64_t all_macs, int64_t operations,
                            int64_t all_operations) {
    double some = all_macs ? (double)macs / (double)all_macs : 0,
           other = all_operations ? (double)operations / (double)all_operations : 0;
    report_open(r, "fallback_share", '{');
    report_number(r, "macs", some);
    report_number(r, "operations", other);
    report_close(r);
    text_printf(&r->text, "fallback    ");
    if (!macs && !operations) text_printf(&r->text, "none");
    if (macs) text_printf(&r->text, "%.4g %% of the MACs", 100 * some);
    if (operations)
        text_printf(&r->text, "%s%.4g %% of the operations", macs ? ", " : "", 100 * other);
    text_append(&r->text, "\n", 1);
}

int *work_executors(const struct schedule *s) {
    int *by = memory_array((size_t)s->program->nstmts + 1, sizeof *by);
    for (int i = 0; i < s->program->nstmts; i++) by[i] = s->machine->ninstrs;
    executors(s, &s->prepare, NULL, 0, by);
    executors(s, &s->run, NULL, 0, by);
    for (int i = 0; i < s->prepare.nnodes; i++)
        if (s->prepare.node[i].kind == NODE_FALLBACK) by[s->prepare.node[i].fallback->stmt] = -1;
    return by;
}

/* `done`: what a simulation counted; several instructions may share a statement. */
void report_work(struct report *r, const struct job *j, const struct sim_result *done) {
    const struct schedule *s = j->schedule;
    const struct machine *m = s->machine;
    struct program *p = program_at(s->program, j->size);
    int64_t *points = memory_array((size_t)p->nstmts + 1, sizeof *points);
    int *by = work_executors(s);
    int64_t *macs = memory_array((size_t)m->ninstrs + 1, sizeof *macs),
            *operations = memory_array((size_t)m->ninstrs + 1, sizeof *operations);
    int64_t all_macs = 0, all_operations = 0;
    program_points(p, points);
    for (int i = 0; i < p->nstmts; i++) {
        if (by[i] < 0) continue;
        int64_t product = stmt_macs(&p->stmt[i]) * points[i];
        macs[by[i]] += product, all_macs += product;
        int64_t looks = by[i] == m->ninstrs ? stmt_looks_at(p, &p->stmt[i], points[i]) : points[i];
        int64_t other = stmt_operations(p, &p->stmt[i]) * looks;
        operations[by[i]] += other, all_operations += other;
    }
    for (int i = 0; done && i <= m->ninstrs; i++) {
        macs[i] = done->macs_on[i];
        operations[i] = done->operations_on[i];
    }
    struct {
        const char *key, *word;
        const int64_t *n;
        int64_t all;
    } table[] = {{"macs_on", "MACs", macs, all_macs},
                 {"operations_on", "operations", operations, all_operations}};
    for (int t = 0; t < 2; t++) {
        report_open(r, table[t].key, '{');
        if (table[t].all) text_printf(&r->text, "%-10s", table[t].word);
        for (int i = 0; i <= m->ninstrs; i++) {
            if (!table[t].n[i]) continue;
            const char *id = i < m->ninstrs ? m->instr[i].id : "fallback";
            report_integer(r, id, table[t].n[i]);
            text_printf(&r->text, "  %s %.4g %%", id,
                        100.0 * (double)table[t].n[i] / (double)table[t].all);
        }
        if (table[t].all) text_printf(&r->text, "  of %" PRId64 "\n", table[t].all);
        report_close(r);
    }
    report_fallback(r, macs[m->ninstrs], all_macs, operations[m->ninstrs], all_operations);
    free(by);
    free(macs);
    free(operations);
    free(points);
    program_free(p);
}

/* Of the scheduled program against the one that was written. */
static void report_chain(struct report *r, const struct job *j) {
    const struct chain_report *c = &j->chain;
    bool weak = c->evidence != EVIDENCE_PROVED && c->why;
    report_string(r, "program_proof", evidence_name[c->evidence]);
    report_number(r, "program_proof_seconds", j->chain_seconds);
    report_open(r, "program_laws", '[');
    for (int l = 0; l < LAW_COUNT_OF; l++)
        if (c->laws >> l & 1) report_string(r, NULL, law_name[l]);
    report_close(r);
    if (c->nsampled) report_integer(r, "program_samples", c->samples);
    if (weak) report_string(r, "program_proof_reason", c->why);
    text_printf(&r->text, "program     %s in %.3g s", evidence_name[c->evidence], j->chain_seconds);
    if (c->nproved + c->nsampled + c->nunproved > 1)
        text_printf(&r->text, ": %d changes proved, %d sampled, %d unproved", c->nproved,
                    c->nsampled, c->nunproved);
    if (weak) text_printf(&r->text, c->by ? "; '%s': %s" : "%s: %s", c->by ? c->by : "", c->why);
    text_append(&r->text, "\n", 1);
}

static void report_proof(struct report *r, const struct job *j) {
    report_string(r, "schedule_proof", proof_name[j->proof]);
    if (j->proof == PROOF_UNCHECKED) return;
    report_number(r, "proof_seconds", j->proof_seconds);
    text_printf(&r->text, "schedule    %s", proof_name[j->proof]);
    if (!j->cached) text_printf(&r->text, " in %.3g s", j->proof_seconds);
    if (j->proof_reason.n) {
        report_string(r, "proof_reason", j->proof_reason.at);
        text_printf(&r->text, ": %s", j->proof_reason.at);
    }
    if (j->proof_sampled) {
        report_number(r, "proof_sampled", j->proof_sampled);
        text_printf(&r->text, "; %d instruction%s compared with %s at random points alone",
                    j->proof_sampled, j->proof_sampled == 1 ? "" : "s",
                    j->proof_sampled == 1 ? "its statement" : "their statements");
    }
    text_append(&r->text, "\n", 1);
    report_chain(r, j);
}

void report_head(struct report *r, const struct job *j) {
    report_string(r, "program", j->name);
    report_string(r, "machine", j->machine->name);
    if (j->machine->parameters) report_string(r, "parameters", j->machine->parameters);
    report_number(r, "compile_seconds", j->compile_seconds);
    report_integer(r, "schedule_nodes", schedule_nodes(j->schedule));
    text_printf(&r->text, "%s on %s\n", j->name, j->machine->name);
    if (j->machine->parameters) text_printf(&r->text, "parameters  %s\n", j->machine->parameters);
    if (j->cached) report_bool(r, "cached", true);
    text_printf(&r->text, "compiled    in %.3g s, %" PRId64 " schedule nodes%s\n",
                j->compile_seconds, schedule_nodes(j->schedule),
                j->cached ? ", of an earlier call" : "");
    report_proof(r, j);
}

/* ---- run ---- */

static bool has_inout(const struct program *p) {
    for (int b = 0; b < p->nbuffers; b++)
        if (p->buffer[b].role == ROLE_INOUT) return true;
    return false;
}

/* Least time of up to five runs within half a second; one run where a second would see other
 * inputs. */
static bool timed_runs(isamap *im, const struct job *j, struct executable *e, void **data,
                       double *seconds) {
    double start = now_seconds(), best = INFINITY;
    for (int i = 0; i < (has_inout(j->program) ? 1 : 5) && (i == 0 || now_seconds() - start < 0.5);
         i++) {
        double t = now_seconds();
        if (!executable_run(e, data, im->option.threads, &im->diags)) return false;
        best = fmin(best, now_seconds() - t);
    }
    *seconds = best;
    return true;
}

static int64_t argument_bytes(const struct program *p) {
    int64_t n = 0;
    for (int b = 0; b < p->nbuffers; b++)
        if (p->buffer[b].role != ROLE_TEMP && p->buffer[b].role != ROLE_STATE)
            n += p->buffer[b].elements * (int64_t)type_size(p->buffer[b].type);
    return n;
}

/* The working memory of a run, and what it would be if homes of temporaries took no more than is
 * live at a time. */
static void report_memory(struct report *r, const struct schedule *s, int64_t bytes) {
    int64_t homes = schedule_workspace(s), live = schedule_workspace_bound(s);
    report_integer(r, "peak_bytes", bytes);
    report_integer(r, "peak_bound_bytes", bytes - homes + live);
    report_integer(r, "workspace_bytes", homes);
    report_integer(r, "workspace_bound_bytes", live);
    text_printf(&r->text, "memory      %.4g MB at most, %.4g MB of them for temporaries",
                1e-6 * (double)bytes, 1e-6 * (double)homes);
    if (homes) text_printf(&r->text, " (%.4g MB are live at a time)", 1e-6 * (double)live);
    text_append(&r->text, "\n", 1);
}

static int run_job(isamap *im, struct job *j, struct arrays *in, struct arrays *got) {
    struct report *r = &im->report;
    double start = now_seconds();
    bool profile = im->option.profile || im->option.profile_trace;
    struct backend_options options = {
        .target = im->option.target, .cache = j->cache, .profile = profile};
    doing(im, "compiling");
    const struct backend *backend = backend_find(j->schedule, NULL, &im->diags);
    struct executable *e = backend ? backend->load(j->schedule, &options, &im->diags) : NULL;
    if (!e) return ISAMAP_INPUT;
    j->compile_seconds += now_seconds() - start;
    if (!states_are_there(im, j) || !arrays_fill(im, j, in))
        return executable_free(e), ISAMAP_INPUT;
    *got = arrays_copy(j, in);
    void **data = arrays_for_schedule(j, got);
    double seconds = 0;
    executable_sizes(e, j->size);
    if (im->option.verify) executable_scramble(e);
    doing(im, "running");
    struct latency latency;
    bool ok = executable_prepare(e, data, &im->diags) && timed_runs(im, j, e, data, &seconds) &&
              (!im->option.steps || steps_time(im, j, e, data, &latency));
    int64_t bytes = argument_bytes(j->program) + executable_bytes(e);
    struct profile *p = ok && profile
                            ? profile_make(im, j, e, data, has_inout(j->program) ? &seconds : NULL)
                            : NULL;
    ok = ok && (p || !profile);
    free(data);
    double on_device = executable_device_seconds(e);
    executable_free(e);
    struct comparison c = {0};
    ok = ok && arrays_write(im, j, got) &&
         (!im->option.verify || compare_with_interpreter(im, j, in, got, &c));
    if (!ok) {
        if (p) profile_free(p);
        return ISAMAP_INPUT;
    }
    report_open(r, NULL, '{');
    report_head(r, j);
    report_string(r, "backend", backend->name);
    report_number(r, "run_seconds", seconds);
    if (on_device >= 0) report_number(r, "device_seconds", on_device);
    double predicted = schedule_cost(j->schedule, j->size) / j->machine->clock;
    report_number(r, "predicted_seconds", predicted);
    double macs = (double)program_macs(j->program);
    text_printf(&r->text, "ran         in %.4g ms (backend %s)", 1e3 * seconds, backend->name);
    if (on_device >= 0) text_printf(&r->text, ", %.4g ms of it on the device", 1e3 * on_device);
    text_printf(&r->text, ", predicted %.4g ms", 1e3 * predicted);
    if (macs > 0) text_printf(&r->text, ", %.4g GMAC/s", macs / seconds / 1e9);
    text_append(&r->text, "\n", 1);
    if (im->option.steps) report_latency(r, &latency);
    report_memory(r, j->schedule, bytes);
    report_comparison(r, &c);
    bool same = !im->option.compare || report_tensors(im, j, got);
    report_work(r, j, NULL);
    if (p && im->option.profile) profile_report(r, p);
    if (p) profile_free(p);
    report_close(r);
    return (c.done && !c.equal) || !same ? ISAMAP_VERIFY : ISAMAP_DONE;
}

int job_execute(isamap *im, const char *path, enum machine_use use, execute_fn execute) {
    struct job j;
    struct arrays in = {0}, got = {0};
    job_init(&j, path);
    j.keeps = true;
    int status = ISAMAP_INPUT;
    if (job_machine(im, &j, use) && job_program(im, &j) && job_compile(im, &j) && job_sizes(im, &j))
        status = execute(im, &j, &in, &got);
    if (in.data) arrays_free(&in);
    if (got.data) arrays_free(&got);
    text_append(&im->messages, j.explain.at ? j.explain.at : "", j.explain.n);
    job_free(&j);
    return status;
}

static int run_command(isamap *im, const char *path, const char *out) {
    (void)out;
    return job_execute(im, path, USE_RUN, run_job);
}

int isamap_run(isamap *im, const char *path) {
    return call_run(im,
                    &(struct api_call){.name = "isamap_run", .run = run_command, .file = "program"},
                    path, NULL);
}

/* ---- compile ---- */

bool write_text(isamap *im, const char *path, const struct text *t) {
    return file_write(path, t->at, t->n, &im->diags);
}

/* --weights. A model's are embedded where the file is code, else in a file beside it. */
static bool chosen_weights(isamap *im, const struct job *j, const char *suffix, enum weights *out) {
    bool text = strcmp(suffix, ".so") && strcmp(suffix, ".o");
    *out = !j->model ? WEIGHTS_ARGUMENTS : text ? WEIGHTS_FILE : WEIGHTS_EMBED;
    if (!im->option.weights) return true;
    for (int k = 0; k < WEIGHTS_PLACES; k++)
        if (!strcmp(im->option.weights, weights_name[k])) return *out = (enum weights)k, true;
    diag_line(&im->diags, "--weights", 0, 0, "'%s' is no place for weights, expected %s, %s or %s",
              im->option.weights, weights_name[WEIGHTS_EMBED], weights_name[WEIGHTS_FILE],
              weights_name[WEIGHTS_ARGUMENTS]);
    return false;
}

/* What the model calls the buffer; NULL: it does not name it. */
static const char *model_title(const struct onnx_model *m, const char *buffer) {
    for (int i = 0; m && i < m->ninputs; i++)
        if (!strcmp(m->input[i].buffer, buffer)) return m->input[i].onnx;
    for (int i = 0; m && i < m->noutputs; i++)
        if (!strcmp(m->output[i].buffer, buffer)) return m->output[i].onnx;
    return NULL;
}

static bool write_code(isamap *im, struct job *j, const char *out) {
    const char *slash = strrchr(out, '/'), *dot = strrchr(out, '.');
    const char *suffix = dot && (!slash || dot > slash) ? dot : "";
    const struct program *p = j->schedule->program;
    size_t n = (size_t)p->nbuffers + 1;
    struct backend_options options = {.target = im->option.target, .report = &im->report.text};
    const struct backend *b = backend_find(j->schedule, suffix, &im->diags);
    if (!b || !chosen_weights(im, j, suffix, &options.weights)) return false;
    const void **data = arena_array(&j->arena, n, sizeof *data);
    const char **title = arena_array(&j->arena, n, sizeof *title);
    for (int k = 0; k < p->nbuffers; k++) {
        int from = is_argument(&p->buffer[k]) ? program_buffer(j->program, p->buffer[k].name) : -1;
        if (from < 0) continue;
        data[k] = weights_of(j, from);
        title[k] = model_title(j->model, p->buffer[k].name);
    }
    struct stream_state *state;
    const char *why;
    if (!job_states(im, j, &state, &options.nstates, &options.counted, &why)) return false;
    options.state = state;
    options.data = data;
    options.title = title;
    return b->write(j->schedule, out, &options, &im->diags);
}

static int compile_command(isamap *im, const char *path, const char *out) {
    struct job j;
    job_init(&j, path);
    j.keeps = true;
    bool ok = false;
    bool image = has_suffix(out, ".bin"), device_only = image || has_suffix(out, ".sched");
    if (job_machine(im, &j, device_only ? USE_SIM : USE_RUN) && job_program(im, &j) &&
        job_compile(im, &j)) {
        struct text t = {0};
        schedule_print(j.schedule, &t);
        size_t schedule_bytes = t.n;
        double start = now_seconds();
        doing(im, "compiling");
        if (image) {
            struct text bytes = {0};
            ok = image_compile(im, &j, &bytes) && write_text(im, out, &bytes);
            text_free(&bytes);
        } else if (device_only) {
            ok = write_text(im, out, &t);
        } else {
            ok = write_code(im, &j, out);
        }
        text_free(&t);
        if (ok) {
            j.compile_seconds += now_seconds() - start;
            report_open(&im->report, NULL, '{');
            report_head(&im->report, &j);
            report_integer(&im->report, "schedule_bytes", (int64_t)schedule_bytes);
            report_string(&im->report, "out", out);
            report_work(&im->report, &j, NULL);
            report_close(&im->report);
            text_printf(&im->report.text, "wrote       %s\n", out);
        }
    }
    text_append(&im->messages, j.explain.at ? j.explain.at : "", j.explain.n);
    job_free(&j);
    return ok ? ISAMAP_DONE : ISAMAP_INPUT;
}

int isamap_compile(isamap *im, const char *path, const char *out) {
    return call_run(
        im,
        &(struct api_call){
            .name = "isamap_compile", .run = compile_command, .file = "program", .out = "out"},
        path, out);
}

/* ---- check ---- */

static bool check_machine(isamap *im, const char *path) {
    struct bindings set;
    struct arena a;
    arena_init(&a);
    struct machine *m = NULL;
    bool ok = pairs_bindings(im, &im->option.param, "--param", &a, &set) &&
              (m = machine_load(path, &set, &im->diags));
    if (ok) {
        struct conformity texts;
        doing(im, im->option.execute ? "executing emit texts" : "reading emit texts");
        bool sound = machine_advise(m, &im->diags);
        ok = sound & emit_conform(m, im->option.execute, &texts, &im->diags, &im->report.text);
        report_open(&im->report, NULL, '{');
        report_string(&im->report, "machine", m->name);
        report_integer(&im->report, "instructions", m->ninstrs);
        report_integer(&im->report, "emits_read", texts.read);
        report_integer(&im->report, "emits_executed", texts.executed);
        report_integer(&im->report, "emits_not_tried", texts.others);
        report_bool(&im->report, "ok", ok);
        report_close(&im->report);
        text_printf(&im->report.text, "%s: machine '%s', %d memories, %d instructions and moves",
                    path, m->name, m->nmemories, m->ninstrs);
        if (texts.read && !im->option.execute)
            text_printf(&im->report.text, ", %d emit texts read, none executed (--execute)",
                        texts.read);
        else if (texts.read)
            text_printf(&im->report.text, ", %d of %d emit texts executed", texts.executed,
                        texts.read);
        if (texts.others)
            text_printf(&im->report.text, ", %d in other languages than LLVM and C not tried",
                        texts.others);
        text_printf(&im->report.text, ": %s\n",
                    ok      ? "ok"
                    : sound ? "its emit texts are wrong"
                            : "see the errors");
        machine_free(m);
    }
    arena_free(&a);
    return ok;
}

static bool check_program(isamap *im, const char *path) {
    struct job j;
    job_init(&j, path);
    bool ok = job_program(im, &j);
    if (ok && j.model && im->option.machine)
        ok = job_machine(im, &j, USE_SIM) && job_fixed(im, &j) && job_compile(im, &j);
    if (ok) {
        report_open(&im->report, NULL, '{');
        report_string(&im->report, "program", j.name);
        report_integer(&im->report, "statements", j.program->nstmts);
        report_integer(&im->report, "macs", program_macs(j.program));
        report_integer(&im->report, "operations", program_operations(j.program));
        report_bool(&im->report, "ok", true);
        text_printf(&im->report.text,
                    "%s: program '%s', %d statements, %" PRId64 " MACs, %" PRId64
                    " other operations: ok\n",
                    path, j.name, j.program->nstmts, program_macs(j.program),
                    program_operations(j.program));
        if (j.model) report_model(&im->report, &j);
        report_close(&im->report);
    }
    job_free(&j);
    return ok;
}

static bool check_schedule(isamap *im, const char *path) {
    struct job j;
    job_init(&j, path);
    bool ok = false;
    if (!im->option.machine) {
        diag_line(&im->diags, path, 0, 0, "a schedule is checked for a machine: add -m MACHINE");
    } else if (job_machine(im, &j, USE_SIM)) {
        struct source source = {.file = path, .line0 = 1, .col0 = 1};
        source.text = file_read(&j.arena, path, 64u << 20, &source.length, &im->diags);
        j.schedule = source.text ? schedule_parse(j.machine, &source, &im->diags) : NULL;
        ok = j.schedule && job_check(im, &j);
        if (ok) {
            report_open(&im->report, NULL, '{');
            report_string(&im->report, "schedule", j.schedule->program->name);
            report_proof(&im->report, &j);
            report_close(&im->report);
            if (j.chain_steps.n) text_printf(&im->report.text, "%s", j.chain_steps.at);
            text_printf(&im->report.text, "%s: schedule of '%s', %" PRId64 " nodes: %s\n", path,
                        j.schedule->program->name, schedule_nodes(j.schedule),
                        j.proof == PROOF_PROVED ? "ok" : "no fault was found, not all is proved");
        }
    }
    job_free(&j);
    return ok;
}

/* By suffix; what has none may be the name of a machine. */
static int check_command(isamap *im, const char *path, const char *out) {
    (void)out;
    bool ok = false;
    struct stat st;
    if (has_suffix(path, ".isam") || has_suffix(path, ".onnx"))
        ok = check_program(im, path);
    else if (has_suffix(path, ".sched"))
        ok = check_schedule(im, path);
    else if (has_suffix(path, ".xml") || stat(path, &st) != 0)
        ok = check_machine(im, path);
    else
        diag_line(&im->diags, path, 0, 0,
                  "'%s' is %s, expected a machine (.xml), kernel (.isam), model (.onnx) or "
                  "schedule (.sched)",
                  path, S_ISDIR(st.st_mode) ? "a folder" : "another file");
    return ok ? ISAMAP_DONE : ISAMAP_INPUT;
}

int isamap_check(isamap *im, const char *path) {
    return call_run(
        im, &(struct api_call){.name = "isamap_check", .run = check_command, .file = "file"}, path,
        NULL);
}
