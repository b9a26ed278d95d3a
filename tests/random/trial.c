#include "tests/random/trial.h"

#include "command/isamap_int.h"
#include "ir/memory.h"
#include "scheduler/schedule/schedule.h"
#include "tests/clock_same.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

const char *const outcome_name[OUTCOME_COUNT] = {"right, on instructions",
                                                 "right, on the fallback",
                                                 "refused",
                                                 "WRONG",
                                                 "REFUSED BY THE VERIFIER",
                                                 "CRASH",
                                                 "HANG",
                                                 "ILLEGAL"};

/* Of a program that somebody wrote. */
static bool may_round(const char *text) {
    static const char *const word[] = {"; rounds", "exp(", "tanh(", "sigmoid(", "sin(",
                                       "cos(",     "erf(", "sqrt(", "log(",     "pow(",
                                       "atan(",    " / ",  "0.1"};
    for (size_t k = 0; k < sizeof word / sizeof *word; k++)
        if (strstr(text, word[k])) return true;
    return false;
}

char *trial_program(const struct trial *t, struct random_info *info) {
    struct tape tape = t->tape;
    tape.pos = 0;
    if (!t->text) return random_program(&tape, &t->bench->native, info);
    memset(info, 0, sizeof *info);
    info->exact = !may_round(t->text);
    return strdup(t->text);
}

/* Two thirds as the command does it when nothing is said. */
const char *trial_options(uint64_t seed) {
    static const char *const some[] = {"--approach random",
                                       "--approach instructions",
                                       "--threads 2",
                                       "--allow exact",
                                       "--contexts 1",
                                       "--approach random --threads 1",
                                       "--approach instructions --threads 1",
                                       "--threads 1"};
    uint64_t x = seed * 0x9e3779b97f4a7c15u >> 32;
    const char *these = getenv("ISAMAP_OPTIONS");
    if (these) return these;
    return x % 3 ? "" : some[x / 3 % (sizeof some / sizeof *some)];
}

static void set_options(isamap *im, uint64_t seed) {
    char text[100], value[32], *rest = text, *word;
    snprintf(text, sizeof text, "%s", trial_options(seed));
    snprintf(value, sizeof value, "%llu", (unsigned long long)seed);
    isamap_option(im, "seed", value);
    while ((word = strsep(&rest, " ")) && *word) isamap_option(im, word + 2, strsep(&rest, " "));
}

/* ---- data ---- */
static struct arrays make_data(const struct program *p, bool wide, uint64_t seed) {
    struct arrays out = {.data = calloc((size_t)p->nbuffers + 1, sizeof *out.data),
                         .n = p->nbuffers};
    uint64_t s = seed;
    for (int b = 0; b < p->nbuffers; b++) {
        const struct buffer *x = &p->buffer[b];
        size_t bytes = type_size(x->type);
        if (!is_argument(x)) continue;
        out.data[b] = memory_take((size_t)x->elements + 1, bytes);
        memset(out.data[b], 0x5a,
               ((size_t)x->elements + 1) * bytes); /* outputs are full of rubbish */
        for (int64_t e = 0; e < x->elements && x->role != ROLE_OUT; e++)
            type_store(x->type, (char *)out.data[b] + (size_t)e * bytes,
                       random_element(x->type, wide, &s));
    }
    return out;
}

static bool same_value(enum type type, union value w, union value g) {
    if (!type_is_float(type)) return w.i == g.i;
    return w.f == g.f || (isnan(w.f) && isnan(g.f));
}

/* Where the first element differs: "C[5] is 3, expected 4". */
static bool equal_outputs(const struct program *p, const struct arrays *want,
                          const struct arrays *got, struct trial *t) {
    for (int b = 0; b < p->nbuffers; b++) {
        const struct buffer *x = &p->buffer[b];
        if (x->role != ROLE_OUT && x->role != ROLE_INOUT) continue;
        for (int64_t e = 0; e < x->elements; e++) {
            size_t at = (size_t)e * type_size(x->type);
            union value w = type_load(x->type, (char *)want->data[b] + at),
                        g = type_load(x->type, (char *)got->data[b] + at);
            if (same_value(x->type, w, g)) continue;
            bool f = type_is_float(x->type);
            snprintf(t->reason, sizeof t->reason, "%s[%lld] is %.9g, expected %.9g", x->name,
                     (long long)e, f ? g.f : (double)g.i, f ? w.f : (double)w.i);
            return false;
        }
    }
    return true;
}

/* ---- one schedule ---- */
struct checking {
    isamap *im;
    struct job *job;
    struct trial *trial;
    struct arrays in, want;
    const int64_t *size; /* that stays open, of the run at hand; NULL: there is none */
    bool exact;
};

static bool judge_values(struct checking *c, const struct arrays *got, const char *how) {
    struct comparison x = {0};
    if (c->exact) {
        if (equal_outputs(c->job->program, &c->want, got, c->trial)) return true;
    } else {
        if (compare_with_interpreter(c->im, c->job, &c->in, got, &x) && !x.wrong)
            return true; /* undecided elements are not wrong */
        const struct buffer *b = x.worst.buffer;
        bool f = b && type_is_float(b->type);
        snprintf(c->trial->reason, sizeof c->trial->reason, "%s[%lld] is %.9g, expected %.9g",
                 b ? b->name : "?", (long long)x.worst.element,
                 f ? x.worst.got.f : (double)x.worst.got.i,
                 f ? x.worst.expected.f : (double)x.worst.expected.i);
    }
    char what[160], length[32] = "";
    if (c->size) snprintf(length, sizeof length, " with T=%lld", (long long)*c->size);
    snprintf(what, sizeof what, "%s values%s: %.100s", how, length, c->trial->reason);
    snprintf(c->trial->reason, sizeof c->trial->reason, "%s", what);
    return false;
}

static bool simulated(struct checking *c) {
    struct sim_result result = {0};
    struct arrays got = arrays_copy(c->job, &c->in);
    void **data = arrays_for_schedule(c->job, &got);
    bool ok = sim_run(c->job->schedule, data, &(struct sim_options){.size = c->size}, &result,
                      &c->im->diags);
    if (!ok) snprintf(c->trial->reason, sizeof c->trial->reason, "the simulation fails");
    sim_result_free(&result);
    ok = ok && judge_values(c, &got, "simulated");
    free(data);
    arrays_free(&got);
    return ok;
}

static bool timed(struct checking *c) {
    char why[160] = "";
    bool ok = clock_same(c->job->schedule, c->size, 200000, why, sizeof why);
    if (!ok) snprintf(c->trial->reason, sizeof c->trial->reason, "the clock: %.140s", why);
    return ok;
}

static bool loaded(struct checking *c, struct executable **e) {
    const struct backend *b = backend_find(c->job->schedule, NULL, &c->im->diags);
    *e = b ? b->load(c->job->schedule, &(struct backend_options){0}, &c->im->diags) : NULL;
    if (!*e) snprintf(c->trial->reason, sizeof c->trial->reason, "the code is not loaded");
    return *e != NULL;
}

static bool executed(struct checking *c, struct executable *e) {
    struct arrays got = arrays_copy(c->job, &c->in);
    void **data = arrays_for_schedule(c->job, &got);
    if (c->size) executable_sizes(e, c->size);
    bool ok = executable_prepare(e, data, &c->im->diags) &&
              executable_run(e, data, c->im->option.threads, &c->im->diags);
    if (!ok) snprintf(c->trial->reason, sizeof c->trial->reason, "the execution fails");
    ok = ok && judge_values(c, &got, "executed");
    free(data);
    arrays_free(&got);
    return ok;
}

/* One run, of the size that c->size says. */
static bool runs(struct checking *c, struct executable *e) {
    struct program *at = c->size ? program_at(c->job->program, c->size) : NULL;
    c->want = arrays_copy(c->job, &c->in);
    bool ok = !c->exact ||
              program_run(at ? at : c->job->program, c->want.data, NULL, NULL, &c->im->diags);
    if (!ok) snprintf(c->trial->reason, sizeof c->trial->reason, "the interpreter fails");
    ok = ok && simulated(c) && timed(c) && (!e || executed(c, e));
    arrays_free(&c->want);
    if (at) program_free(at);
    return ok;
}

/* The same code and schedule with several sizes, where one stays open. What rounds is compared with
 * the largest alone. */
static bool all_runs(struct checking *c, struct executable *e) {
    const struct program *p = c->job->program;
    if (p->nsizes != 1) return runs(c, e);
    int64_t most = p->size[0].hi, size[] = {most, 0, (most + 1) / 2, 1, most};
    bool ok = true;
    for (size_t k = 0; k < (c->exact ? sizeof size / sizeof *size : 1) && ok; k++) {
        c->size = &size[k];
        ok = runs(c, e);
    }
    c->size = NULL;
    return ok;
}

static bool has_issue(const struct node *n, int count) {
    for (int k = 0; k < count; k++)
        if (n[k].kind == NODE_ISSUE ||
            (n[k].kind == NODE_LOOP && has_issue(n[k].loop->body, n[k].loop->nbody)))
            return true;
    return false;
}

/* The schedule as its text says it: read again, it prints the same. */
static bool reads_again(struct checking *c) {
    struct text text = {0}, again = {0};
    schedule_print(c->job->schedule, &text);
    struct source source = {
        .file = "text", .line0 = 1, .col0 = 1, .text = text.at, .length = text.n};
    struct schedule *read = schedule_parse(c->job->machine, &source, &c->im->diags);
    if (read) schedule_print(read, &again);
    bool same = read && strcmp(text.at, again.at) == 0;
    if (!same)
        snprintf(c->trial->reason, sizeof c->trial->reason,
                 read ? "the schedule prints otherwise" : "the schedule is not read");
    if (read) schedule_free(read);
    text_free(&text);
    text_free(&again);
    return same;
}

static enum outcome check_values(struct checking *c) {
    struct trial *t = c->trial;
    const struct schedule *s = c->job->schedule;
    struct executable *e = NULL;
    c->in = make_data(c->job->program, t->info.classes >> CLASS_WIDE & 1, t->seed);
    bool ok = reads_again(c) && (!t->bench->run || loaded(c, &e)) && all_runs(c, e);
    if (e) executable_free(e);
    arrays_free(&c->in);
    return !ok                                     ? OUTCOME_WRONG
           : has_issue(s->run.node, s->run.nnodes) ? OUTCOME_MAPPED
                                                   : OUTCOME_FALLBACK;
}

static enum outcome compile(struct checking *c) {
    struct trial *t = c->trial;
    struct timespec from, to;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
    bool ok = job_compile(c->im, c->job);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
    t->seconds = (double)(to.tv_sec - from.tv_sec) + 1e-9 * (double)(to.tv_nsec - from.tv_nsec);
    t->unproved = c->job->proof == PROOF_UNPROVED;
    if (ok && !cover_verify(c->job->cover, c->job->machine, &c->im->diags)) {
        snprintf(t->reason, sizeof t->reason, "the cover is not valid");
        return OUTCOME_UNSOUND;
    }
    if (ok) return check_values(c);
    if (c->job->schedule) return OUTCOME_UNSOUND;
    if (c->im->diags.errors) return OUTCOME_REFUSED;
    snprintf(t->reason, sizeof t->reason, "no schedule, and no word why");
    return OUTCOME_WRONG;
}

static void take_messages(struct trial *t, struct diags *d) {
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    diags_print(d, f);
    fclose(f);
    t->messages = text;
    for (int k = 0; k < d->n && !*t->reason; k++)
        if (!d->at[k].warning) snprintf(t->reason, sizeof t->reason, "%s", d->at[k].text);
}

void trial_here(struct trial *t) {
    struct job job;
    isamap *im = isamap_open();
    struct checking c = {.im = im, .job = &job, .trial = t};
    char *text = trial_program(t, &t->info);
    job_init(&job, "random.isam");
    set_options(im, t->seed);
    c.exact = t->info.exact;
    struct source source = {
        .file = "random.isam", .line0 = 1, .col0 = 1, .text = text, .length = strlen(text)};
    struct kernel **kernel;
    if (kernel_parse(&job.arena, &source, &kernel, &im->diags) == 1)
        job.own_program = program_bind_sizes(kernel[0], NULL, NULL, &im->diags);
    job.program = job.own_program;
    job.machine = t->bench->machine;
    *t->reason = 0;
    t->outcome = OUTCOME_ILLEGAL;
    if (job.program) {
        job.name = job.program->name;
        t->outcome = compile(&c);
    }
    if (t->info.classes >> CLASS_CALL & 1 && t->outcome != OUTCOME_REFUSED &&
        t->outcome != OUTCOME_ILLEGAL) {
        t->outcome = OUTCOME_WRONG;
        snprintf(t->reason, sizeof t->reason, "an opaque call is not refused");
    }
    take_messages(t, &im->diags);
    job.machine = NULL;
    job_free(&job);
    isamap_close(im);
    free(text);
}
