/* `isamap run --profile`: where a run spends its time, part by part of the schedule. */
#include "command/isamap_int.h"
#include "ir/memory.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_RUNS = 30, MOST_NAMES = 3 };
static const double MOST_SECONDS = 1;

/* One part; its time in the run in which it was fastest. */
struct measured {
    const char *function;
    double seconds, predicted, alone; /* alone: as in struct forecast */
    const char *bound;
    int64_t macs, bytes; /* bytes: of the tensors that it touches */
    struct text does;    /* "conv1, relu2: fma.bcast" */
};

struct profile {
    struct arena arena;
    const struct schedule *s;
    struct measured *at;
    double *begin, *end; /* of the parts of the last run, from its start */
    int n;
    bool *seen; /* [nbuffers], [nstmts] or [ninstrs + 1]: of the part at hand */
};

/* ---- what a part does ---- */

static void see_stmt(struct profile *p, struct measured *m, int stmt, bool *stmts) {
    const struct program *program = p->s->program;
    if (stmt < 0 || stmts[stmt]) return;
    const struct stmt *st = &program->stmt[stmt];
    stmts[stmt] = true;
    m->macs += stmt_macs(st) * stmt_points(program, st);
    for (int r = -1; r < st->nreads; r++) {
        int b = r < 0 ? st->dst.buffer : st->read[r].buffer;
        if (!p->seen[b])
            m->bytes += program->buffer[b].elements * (int64_t)type_size(program->buffer[b].type);
        p->seen[b] = true;
    }
}

static void see_nodes(struct profile *p, struct measured *m, const struct node *node, int n,
                      bool *stmts, bool *instrs) {
    for (int i = 0; i < n; i++) {
        if (node[i].kind == NODE_LOOP)
            see_nodes(p, m, node[i].loop->body, node[i].loop->nbody, stmts, instrs);
        if (node[i].kind == NODE_FALLBACK) {
            see_stmt(p, m, node[i].fallback->stmt, stmts);
            instrs[p->s->machine->ninstrs] = true;
        }
        if (node[i].kind != NODE_ISSUE || node[i].issue->stmt < 0) continue;
        see_stmt(p, m, node[i].issue->stmt, stmts);
        for (int k = 0; k < node[i].issue->nalso; k++)
            see_stmt(p, m, node[i].issue->also[k], stmts);
        instrs[node[i].issue->instr] = true;
    }
}

/* Names of the statements' results, then of the instructions. */
static void name_part(struct profile *p, struct measured *m, const bool *stmts,
                      const bool *instrs) {
    const struct program *program = p->s->program;
    const struct machine *machine = p->s->machine;
    int last = -1, n = 0;
    for (int s = 0; s < program->nstmts; s++) {
        int b = program->stmt[s].dst.buffer;
        if (!stmts[s] || b == last) continue;
        last = b;
        if (++n <= MOST_NAMES)
            text_printf(&m->does, "%s%s", n > 1 ? ", " : "", program->buffer[b].name);
    }
    if (n > MOST_NAMES)
        text_printf(&m->does, "%s %s", n > MOST_NAMES + 1 ? ", …" : ",",
                    program->buffer[last].name);
    for (int i = 0, k = 0; i <= machine->ninstrs; i++)
        if (instrs[i])
            text_printf(&m->does, "%s%s", k++ ? ", " : ": ",
                        i < machine->ninstrs ? machine->instr[i].id : "fallback");
}

/* Of a part that computes nothing: its moves and the states that it sets, in their order. */
static void name_helpers(struct measured *m, const struct machine *machine, const struct node *node,
                         int n, int *named) {
    for (int i = 0; i < n && *named <= MOST_NAMES; i++) {
        if (node[i].kind == NODE_LOOP)
            name_helpers(m, machine, node[i].loop->body, node[i].loop->nbody, named);
        const char *id = node[i].kind == NODE_ISSUE ? machine->instr[node[i].issue->instr].id
                         : node[i].kind == NODE_CONFIGURE
                             ? machine->configure[node[i].configure->configure].id
                             : NULL;
        if (id && ++*named <= MOST_NAMES)
            text_printf(&m->does, "%s%s", *named > 1 ? ", " : ": ", id);
        else if (id)
            text_printf(&m->does, ", …");
    }
    if (!m->does.at) text_printf(&m->does, ": -");
}

static void describe(struct profile *p, const struct run_part *part, struct measured *m) {
    const struct schedule *s = p->s;
    m->function = arena_strdup(&p->arena, part->function);
    bool *stmts = memory_array((size_t)s->program->nstmts + 1, sizeof *stmts),
         *instrs = memory_array((size_t)s->machine->ninstrs + 1, sizeof *instrs);
    memset(p->seen, 0, (size_t)s->program->nbuffers * sizeof *p->seen);
    see_nodes(p, m, &s->run.node[part->first], part->n, stmts, instrs);
    name_part(p, m, stmts, instrs);
    if (!m->does.at) name_helpers(m, s->machine, &s->run.node[part->first], part->n, &(int){0});
    for (int k = 0; k < s->program->nstmts && s->forecast; k++) {
        const struct forecast *f = &s->forecast[k];
        if (!stmts[k] || f->cycles <= 0) continue;
        m->predicted += f->cycles / s->machine->clock;
        m->alone += f->alone / s->machine->clock;
        m->bound = f->bound;
    }
    free(stmts);
    free(instrs);
}

/* ---- runs ---- */

/* The counter's ticks are as long as the run's seconds say. */
static void note_run(struct profile *p, const uint64_t *tick, double seconds, bool first) {
    double all = (double)(tick[2 * p->n - 1] - tick[0]), one = all > 0 ? seconds / all : 0;
    for (int i = 0; i < p->n; i++) {
        p->begin[i] = one * (double)(tick[2 * i] - tick[0]);
        p->end[i] = one * (double)(tick[2 * i + 1] - tick[0]);
        double t = p->end[i] - p->begin[i];
        p->at[i].seconds = first ? t : fmin(p->at[i].seconds, t);
    }
}

static bool measure(isamap *im, struct profile *p, struct executable *e, void **data) {
    double start = now_seconds();
    for (int i = 0; i < MOST_RUNS && (i == 0 || now_seconds() - start < MOST_SECONDS); i++) {
        double t = now_seconds();
        if (!executable_run(e, data, im->option.threads, &im->diags)) return false;
        note_run(p, executable_ticks(e), now_seconds() - t, i == 0);
    }
    return true;
}

/* ---- reports ---- */

static int slower_first(const void *a, const void *b) {
    double x = ((const struct measured *)a)->seconds, y = ((const struct measured *)b)->seconds;
    return (x < y) - (x > y);
}

static void report_part(struct report *r, const struct measured *m, double all) {
    report_open(r, NULL, '{');
    report_string(r, "does", m->does.at);
    report_string(r, "function", m->function);
    report_number(r, "seconds", m->seconds);
    report_number(r, "predicted_seconds", m->predicted);
    report_number(r, "instructions_seconds", m->alone);
    if (m->bound) report_string(r, "bound", m->bound);
    report_integer(r, "macs", m->macs);
    report_integer(r, "bytes", m->bytes);
    report_close(r);
    double rate = m->seconds > 0 ? 1e-9 / m->seconds : 0;
    text_printf(&r->text, "%8.4f %5.1f %8.4f %8.4f %7.1f %7.1f  %-18.18s %s\n", 1e3 * m->seconds,
                all > 0 ? 100 * m->seconds / all : 0, 1e3 * m->predicted, 1e3 * m->alone,
                rate * (double)m->macs, rate * (double)m->bytes, m->bound ? m->bound : "-",
                m->does.at);
}

void profile_report(struct report *r, struct profile *p) {
    double all = 0;
    for (int i = 0; i < p->n; i++) all += p->at[i].seconds;
    qsort(p->at, (size_t)p->n, sizeof *p->at, slower_first);
    text_printf(&r->text, "%8s %5s %8s %8s %7s %7s  %-18s %s\n", "ms", "%", "expected", "at least",
                "GMAC/s", "GB/s", "bound by", "what");
    report_open(r, "profile", '[');
    for (int i = 0; i < p->n; i++) report_part(r, &p->at[i], all);
    report_close(r);
}

/* Names come from a program's text: quotes and such are left out of the JSON. */
static void trace_name(struct text *t, const char *name) {
    for (; *name; name++)
        if (*name != '"' && *name != '\\' && (unsigned char)*name >= ' ') text_append(t, name, 1);
}

static bool write_trace(isamap *im, const struct profile *p, const char *path) {
    struct text t = {0};
    text_printf(&t, "{\"traceEvents\":[");
    for (int i = 0; i < p->n; i++) {
        text_printf(&t, "%s\n{\"name\":\"", i ? "," : "");
        trace_name(&t, p->at[i].does.at);
        text_printf(&t,
                    "\",\"ph\":\"X\",\"ts\":%.3f,\"dur\":%.3f,\"pid\":0,\"tid\":0,"
                    "\"args\":{\"expected_us\":%.3f,\"macs\":%" PRId64 ",\"bytes\":%" PRId64 "}}",
                    1e6 * p->begin[i], 1e6 * (p->end[i] - p->begin[i]), 1e6 * p->at[i].predicted,
                    p->at[i].macs, p->at[i].bytes);
    }
    text_printf(&t, "\n],\"displayTimeUnit\":\"ns\"}\n");
    bool good = write_text(im, path, &t);
    text_free(&t);
    return good;
}

/* ---- in order ---- */

static struct profile *profile_open(const struct schedule *s, struct executable *e) {
    struct profile *p = memory_array(1, sizeof *p);
    p->s = s;
    const struct run_part *part;
    arena_init(&p->arena);
    p->n = executable_parts(e, &part);
    p->at = memory_array((size_t)p->n + 1, sizeof *p->at);
    p->begin = memory_array((size_t)p->n + 1, sizeof *p->begin);
    p->end = memory_array((size_t)p->n + 1, sizeof *p->end);
    p->seen = memory_array((size_t)s->program->nbuffers + 1, sizeof *p->seen);
    for (int i = 0; i < p->n; i++) describe(p, &part[i], &p->at[i]);
    return p;
}

struct profile *profile_make(isamap *im, const struct job *j, struct executable *e, void **data,
                             const double *seconds) {
    struct profile *p = profile_open(j->schedule, e);
    bool good = p->n;
    if (!good)
        diag_line(&im->diags, "--profile", 0, 0,
                  "the code keeps no times, expected the backend 'cpu' and a program with work");
    if (good && seconds)
        note_run(p, executable_ticks(e), *seconds, true);
    else
        good = good && measure(im, p, e, data);
    if (good && im->option.profile_trace) good = write_trace(im, p, im->option.profile_trace);
    if (good) return p;
    profile_free(p);
    return NULL;
}

void profile_free(struct profile *p) {
    for (int i = 0; i < p->n; i++) text_free(&p->at[i].does);
    free(p->at);
    free(p->begin);
    free(p->end);
    free(p->seen);
    arena_free(&p->arena);
    free(p);
}
