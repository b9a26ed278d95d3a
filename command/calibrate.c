/* `isamap calibrate`: each parameter for which the machine file gives a program gets the value with
 * which the program is predicted to take the time that it takes here. The decisions stay the same
 * while the parameter varies. */
#include "command/isamap_int.h"
#include "ir/cleanup.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MAX_SETS = 16, MAX_STEPS = 24, LEAST_RUNS = 9 };
static const double SECONDS_A_SET = 0.1, UNAFFECTED = 0.02, UNEXPLAINED = 1.25;

struct calibration {
    isamap *im;
    struct arena *arena;
    struct job *machine; /* owns the machine that names the parameters */
    int64_t *value;      /* of each parameter */
    bool *written;
    const char *folder;
    const struct measure *now;
};

/* One set of sizes of a measuring program. */
struct setting {
    char *decisions, *sizes;
    double seconds;
};

/* Of this thread, so that other programs disturb little; of several the time that passes. */
static double seconds_now(int threads) {
    struct timespec t;
    clock_gettime(threads > 1 ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- one program ---- */

/* Errors in the program's text stand where the machine file has it. */
static void forward(const struct calibration *c, const isamap *from) {
    for (int i = 0; i < from->diags.n; i++) {
        const struct diag *g = &from->diags.at[i];
        if (g->warning) continue;
        bool text = g->file && has_suffix(g->file, "/program.isam") && g->line > 0;
        diag_line(&c->im->diags, text ? c->now->at.file : g->file,
                  text ? c->now->at.line + g->line - 1 : g->line, g->col, "%s", g->text);
    }
}

static void add_sizes(isamap *im, const char *sizes) {
    char *copy = arena_strdup(&im->arena, sizes);
    for (char *save, *w = strtok_r(copy, " ", &save); w; w = strtok_r(NULL, " ", &save))
        isamap_option(im, "define", w);
}

/* A context of its own for one compilation with the parameters as they are, one of them another. */
static bool open_job(const struct calibration *c, const struct setting *s, int param, int64_t value,
                     bool replay, isamap **im, struct job *j) {
    const struct machine *m = c->machine->machine;
    *im = isamap_open();
    isamap_option(*im, "machine", m->file);
    isamap_option(*im, replay ? "decisions" : "record", s->decisions);
    (*im)->option.plain = true;
    (*im)->option.threads = (int)c->now->threads;
    add_sizes(*im, s->sizes);
    for (int i = 0; i < m->nparams; i++)
        isamap_option(*im, "param",
                      arena_printf(c->arena, "%s=%" PRId64, m->param[i].name,
                                   i == param ? value : c->value[i]));
    job_init(j, arena_printf(c->arena, "%s/program.isam", c->folder));
    bool ok = job_machine(*im, j, USE_RUN) && job_program(*im, j) && job_compile(*im, j);
    if (!ok) forward(c, *im);
    return ok;
}

static double predicted(const struct calibration *c, const struct setting *s, int param,
                        int64_t value) {
    isamap *im;
    struct job j;
    bool ok = open_job(c, s, param, value, true, &im, &j);
    double seconds = ok ? schedule_cost(j.schedule, NULL) / j.machine->clock : NAN;
    job_free(&j);
    isamap_close(im);
    return seconds;
}

/* Least time of a run; short runs together. */
static bool least_time(isamap *im, struct executable *e, void **data, int threads, double *out) {
    double start = seconds_now(threads), least = INFINITY;
    int together = 1;
    for (int n = 0; n < LEAST_RUNS || seconds_now(threads) - start < SECONDS_A_SET; n++) {
        double t = seconds_now(threads);
        for (int i = 0; i < together; i++)
            if (!executable_run(e, data, threads, &im->diags)) return false;
        t = (seconds_now(threads) - t) / together;
        if (n == 0 && t < 20e-6) together = (int)(40e-6 / fmax(t, 1e-8)) + 1;
        if (n > 0) least = fmin(least, t);
    }
    *out = least;
    return true;
}

static bool run_once(const struct calibration *c, struct setting *s) {
    isamap *im;
    struct job j;
    bool ok = open_job(c, s, -1, 0, false, &im, &j);
    const struct backend *b = ok ? backend_find(j.schedule, NULL, &im->diags) : NULL;
    struct executable *e = b ? b->load(j.schedule, &(struct backend_options){0}, &im->diags) : NULL;
    struct arrays in = {0};
    bool opened = ok;
    ok = e && arrays_fill(im, &j, &in);
    void **data = ok ? arrays_for_schedule(&j, &in) : NULL;
    ok = ok && executable_prepare(e, data, &im->diags) &&
         least_time(im, e, data, (int)c->now->threads, &s->seconds);
    if (opened && !ok) forward(c, im);
    free(data);
    if (in.data) arrays_free(&in);
    executable_free(e);
    job_free(&j);
    isamap_close(im);
    return ok;
}

/* ---- one parameter ---- */

static bool write_program(const struct calibration *c, const struct measure *q) {
    char *path = arena_printf(c->arena, "%s/program.isam", c->folder);
    return file_write(path, q->text, strlen(q->text), &c->im->diags);
}

static int settings_make(const struct calibration *c, const struct measure *q, struct setting *s) {
    int n = 0;
    char *copy = arena_strdup(c->arena, q->with ? q->with : " ");
    for (char *save, *w = strtok_r(copy, ";", &save); w && n < MAX_SETS;
         w = strtok_r(NULL, ";", &save), n++)
        s[n] = (struct setting){.decisions = arena_printf(c->arena, "%s/decisions%d", c->folder, n),
                                .sizes = w};
    return n;
}

static double all_predicted(const struct calibration *c, const struct setting *s, int n, int param,
                            int64_t value) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += predicted(c, &s[i], param, value);
    return sum;
}

/* Why a parameter keeps its value; NULL: it gets another one. */
static const char *why_left(double at_lo, double at_hi, double seconds) {
    double least = fmin(at_lo, at_hi), most = fmax(at_lo, at_hi);
    if (most - least <= UNAFFECTED * least) return "whatever it is: left";
    if (seconds < least / UNEXPLAINED || seconds > most * UNEXPLAINED)
        return "no value explains it: left";
    return NULL;
}

/* The value in from..to whose prediction is nearest to the time: predictions rise or fall with it.
 */
static bool solve(const struct calibration *c, const struct measure *q, const struct setting *s,
                  int n, double seconds, const char **left, int64_t *out) {
    int64_t lo = q->from, hi = q->to;
    double at_lo = all_predicted(c, s, n, q->param, lo),
           at_hi = all_predicted(c, s, n, q->param, hi);
    if (isnan(at_lo) || isnan(at_hi)) return false;
    *left = why_left(at_lo, at_hi, seconds);
    bool rises = at_hi > at_lo;
    for (int i = 0; i < MAX_STEPS && hi - lo > 1; i++) {
        int64_t mid = lo + (hi - lo) / 2;
        double t = all_predicted(c, s, n, q->param, mid);
        if (isnan(t)) return false;
        bool below = (t < seconds) == rises;
        *(below ? &lo : &hi) = mid;
        *(below ? &at_lo : &at_hi) = t;
    }
    *out = fabs(at_lo - seconds) <= fabs(at_hi - seconds) ? lo : hi;
    return true;
}

static bool measure_one(struct calibration *c, const struct measure *q) {
    const struct param *p = &c->machine->machine->param[q->param];
    struct report *r = &c->im->report;
    struct setting s[MAX_SETS];
    double seconds = 0;
    const char *left;
    int n = settings_make(c, q, s);
    c->now = q;
    if (!write_program(c, q)) return false;
    for (int i = 0; i < n; i++) {
        if (!run_once(c, &s[i])) return false;
        seconds += s[i].seconds;
    }
    int64_t found;
    if (!solve(c, q, s, n, seconds, &left, &found)) return false;
    double before = all_predicted(c, s, n, q->param, c->value[q->param]);
    if (!left) c->value[q->param] = found;
    c->written[q->param] = !left;
    double after = all_predicted(c, s, n, q->param, c->value[q->param]);
    if (isnan(after)) return false;
    report_open(r, p->name, '{');
    report_integer(r, "value", c->value[q->param]);
    report_bool(r, "measured", !left);
    report_number(r, "seconds", seconds);
    report_number(r, "predicted_before", before);
    report_number(r, "predicted_after", after);
    report_close(r);
    text_printf(&r->text, "%-12s %8" PRId64 "   measured %.4g us, predicted %.4g before, %.4g %s\n",
                p->name, c->value[q->param], 1e6 * seconds, 1e6 * before, 1e6 * after,
                left ? left : "now");
    return true;
}

/* ---- what the system says ---- */

static bool asked_for(const isamap *im, const char *name) {
    for (int i = 0; i < im->option.param.n; i++)
        if (!strcmp(im->option.param.at[i].name, name)) return true;
    return false;
}

static void take_system(struct calibration *c, int param) {
    const struct param *p = &c->machine->machine->param[param];
    int64_t v = p->host && !asked_for(c->im, p->name) ? system_value(SYSTEM_CACHES, p->host) : 0;
    struct report *r = &c->im->report;
    if (!v || (p->has_range && (v < p->lo || v > p->hi))) return;
    c->value[param] = v;
    c->written[param] = true;
    report_open(r, p->name, '{');
    report_integer(r, "value", v);
    report_bool(r, "measured", false);
    report_close(r);
    text_printf(&r->text, "%-12s %8" PRId64 "   the system's %s\n", p->name, v, p->host);
}

/* ---- the file ---- */

static void make_folders(char *path) {
    for (char *p = path + 1; *p; p++)
        if (*p == '/') {
            *p = 0;
            mkdir(path, 0777);
            *p = '/';
        }
}

static bool write_parameters(const struct calibration *c, const char *path) {
    const struct machine *m = c->machine->machine;
    make_folders(arena_strdup(c->arena, path));
    struct output *o = output_open(path, &c->im->diags);
    if (!o) return false;
    fprintf(o->file, "# parameters of machine '%s' as isamap calibrate found them here\n", m->name);
    for (int i = 0; i < m->nparams; i++)
        if (c->written[i]) fprintf(o->file, "%s = %" PRId64 "\n", m->param[i].name, c->value[i]);
    return output_close(o, true, &c->im->diags);
}

static void remove_folder(const char *folder, struct arena *a) {
    unlink(arena_printf(a, "%s/program.isam", folder));
    for (int i = 0; i < MAX_SETS; i++) unlink(arena_printf(a, "%s/decisions%d", folder, i));
    rmdir(folder);
}

static int calibrate(isamap *im, struct job *j, const char *out) {
    const struct machine *m = j->machine;
    const char *temporary = getenv("TMPDIR");
    char *folder =
        arena_printf(&j->arena, "%s/isamap-XXXXXX", temporary && *temporary ? temporary : "/tmp");
    if (!m->nmeasures) {
        diag_line(&im->diags, m->file, 0, 0,
                  "machine '%s' has nothing to measure, expected elements 'measure'", m->name);
        return ISAMAP_INPUT;
    }
    if (!out) out = parameters_path(&j->arena, m->file);
    if (!out || !mkdtemp(folder)) {
        diag_line(&im->diags, out ? folder : m->name, 0, 0,
                  out ? "the folder cannot be made" : "no folder for its parameters, expected -o");
        return ISAMAP_INPUT;
    }
    cleanup_folder(folder);
    struct calibration c = {.im = im, .arena = &j->arena, .machine = j, .folder = folder};
    c.value = arena_array(&j->arena, (size_t)m->nparams + 1, sizeof *c.value);
    c.written = arena_array(&j->arena, (size_t)m->nparams + 1, sizeof *c.written);
    for (int i = 0; i < m->nparams; i++) c.value[i] = m->param[i].value;
    report_open(&im->report, NULL, '{');
    report_string(&im->report, "machine", m->name);
    report_open(&im->report, "parameters", '{');
    bool ok = true;
    for (int i = 0; i < m->nparams; i++) take_system(&c, i);
    for (int i = 0; i < m->nmeasures && ok; i++) {
        doing_item(im, i + 1, m->nmeasures, m->param[m->measure[i].param].name);
        doing(im, "measuring");
        ok = measure_one(&c, &m->measure[i]);
    }
    report_close(&im->report);
    ok = ok && write_parameters(&c, out);
    if (ok) {
        report_string(&im->report, "out", out);
        text_printf(&im->report.text, "wrote        %s\n", out);
    }
    report_close(&im->report);
    remove_folder(folder, &j->arena);
    cleanup_forget(folder);
    return ok ? ISAMAP_DONE : ISAMAP_INPUT;
}

static int calibrate_command(isamap *im, const char *path, const char *out) {
    (void)path;
    struct job j;
    job_init(&j, "");
    int status = job_machine(im, &j, USE_RUN) ? calibrate(im, &j, out) : ISAMAP_INPUT;
    job_free(&j);
    return status;
}

int isamap_calibrate(isamap *im, const char *out) {
    return call_run(im, &(struct api_call){.name = "isamap_calibrate", .run = calibrate_command},
                    NULL, out);
}
