#include "command/stream.h"

#include <stdlib.h>
#include <string.h>

#include "ir/memory.h"

/* The argument of this name, the model's or the program's; -1. */
static int argument_named(const struct job *j, const char *name, bool out) {
    const struct onnx_model *m = j->model;
    int n = !m ? 0 : out ? m->noutputs : m->ninputs;
    for (int k = 0; k < n; k++)
        if (!strcmp(out ? m->output[k].onnx : m->input[k].onnx, name))
            return program_buffer(j->program, out ? m->output[k].buffer : m->input[k].buffer);
    return program_buffer(j->program, name);
}

static bool add_pair(isamap *im, struct job *j, const struct pair *p, struct stream_state *out) {
    int from = argument_named(j, p->name, false), to = argument_named(j, p->value, true);
    if (from >= 0 && to >= 0 && stream_pair(j->program, from, to)) {
        *out = (struct stream_state){from, to};
        return true;
    }
    const char *wrong = from < 0 ? p->name : to < 0 ? p->value : NULL;
    if (wrong)
        diag_line(&im->diags, "--state", 0, 0, "there is no %s '%s'", from < 0 ? "input" : "output",
                  wrong);
    else
        diag_line(&im->diags, "--state", 0, 0,
                  "'%s' and '%s' are not an input and an output of one type and shape", p->name,
                  p->value);
    return false;
}

bool states_are_there(isamap *im, struct job *j) {
    struct stream_state state;
    bool ok = true;
    for (int k = 0; k < im->option.state.n && ok; k++)
        ok = add_pair(im, j, &im->option.state.at[k], &state);
    return ok;
}

static bool apart(const struct place *a, const struct place *b) {
    return a->keep != b->keep || a->address >= b->address + b->bytes ||
           b->address >= a->address + a->bytes;
}

/* What steps leave in their rows stays until the next run: no other home takes its bytes, and
 * nothing sets them to zero. */
static bool rows_last(struct job *j, const char **why) {
    const struct schedule *s = j->schedule;
    const struct live_range *live = schedule_live(&j->arena, s, &s->run);
    int *row, n = stream_rows(&j->arena, s->program, &row);
    for (int k = 0; k < n; k++)
        for (int p = 0; p < s->nplaces; p++) {
            if (s->place[p].buffer != row[k] || s->place[p].keep != KEEP_WORKSPACE) continue;
            bool lasts = !schedule_pads(s, p);
            for (int q = 0; q < s->nplaces && lasts; q++)
                lasts = q == p || live[q].last < 0 || apart(&s->place[p], &s->place[q]);
            if (lasts) continue;
            *why = arena_printf(&j->arena, "rows of '%s' do not stay in the working memory",
                                s->program->buffer[row[k]].name);
            return false;
        }
    return true;
}

bool job_states(isamap *im, struct job *j, struct stream_state **out, int *n, bool *counted,
                const char **why) {
    const struct pairs *given = &im->option.state;
    struct stream found;
    program_stream(&j->arena, j->program, &found, why);
    *counted = found.counted && rows_last(j, why);
    int own = *counted || !found.counted ? found.nstates : 0;
    struct stream_state *all = arena_array(&j->arena, (size_t)(own + given->n) + 1, sizeof *all);
    if (own) memcpy(all, found.state, sizeof *all * (size_t)own);
    for (int k = 0; k < given->n; k++)
        if (!add_pair(im, j, &given->at[k], &all[own + k])) return false;
    *out = all;
    *n = own + given->n;
    for (int k = 0; k < *n; k++) {
        all[k].from = program_buffer(j->schedule->program, j->program->buffer[all[k].from].name);
        all[k].to = program_buffer(j->schedule->program, j->program->buffer[all[k].to].name);
    }
    return true;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* What is written has arrays of its own here; a state is read where the step before left it. */
static void **own_arrays(const struct program *p, void *const *data, const struct stream_state *s,
                         int n) {
    void **own = memory_array((size_t)p->nbuffers + 1, sizeof *own);
    memcpy(own, data, sizeof *own * (size_t)p->nbuffers);
    for (int b = 0; b < p->nbuffers; b++) {
        size_t bytes = (size_t)p->buffer[b].elements * type_size(p->buffer[b].type);
        bool copied = p->buffer[b].role == ROLE_OUT || p->buffer[b].role == ROLE_INOUT;
        for (int k = 0; k < n; k++) copied |= s[k].from == b;
        if (!copied || !data[b]) continue;
        own[b] = memory_bytes(bytes + 1);
        memcpy(own[b], data[b], bytes);
    }
    return own;
}

bool steps_time(isamap *im, struct job *j, struct executable *e, void *const *data,
                struct latency *out) {
    const struct program *p = j->schedule->program;
    struct stream_state *s;
    const char *why;
    bool counted;
    int n;
    if (!job_states(im, j, &s, &n, &counted, &why)) return false;
    if (counted) why = "its steps count on from run to run, which only the entries of a library do";
    if (!n || counted) {
        diag_line(&im->diags, "--steps", 0, 0, "'%s' is not a stream: %s", j->name,
                  why ? why
                      : "it has no recurrence of an open length, and --state names no states");
        return false;
    }
    size_t steps = (size_t)im->option.steps;
    double *seconds = memory_array(steps, sizeof *seconds);
    void **own = own_arrays(p, data, s, n);
    bool ok = true;
    for (size_t k = 0; k < steps && ok; k++) {
        double start = now_seconds();
        ok = executable_run(e, own, im->option.threads, &im->diags);
        seconds[k] = now_seconds() - start;
        for (int q = 0; q < n; q++) {
            void *left = own[s[q].to];
            own[s[q].to] = own[s[q].from];
            own[s[q].from] = left;
        }
    }
    qsort(seconds, steps, sizeof *seconds, ascending);
    *out = (struct latency){(int64_t)steps, seconds[steps / 2],
                            seconds[(steps - 1) - (steps - 1) / 1000], seconds[steps - 1]};
    for (int b = 0; b < p->nbuffers; b++) {
        bool ours = own[b] != data[b];
        if (ours) free(own[b]);
    }
    free(own);
    free(seconds);
    return ok;
}

void report_latency(struct report *r, const struct latency *l) {
    report_open(r, "latency", '{');
    report_integer(r, "steps", l->steps);
    report_number(r, "median_seconds", l->median);
    report_number(r, "p999_seconds", l->most_of_1000);
    report_number(r, "worst_seconds", l->worst);
    report_close(r);
    text_printf(&r->text,
                "steps       %lld: median %.4g us, 99.9 %% at most %.4g us, worst %.4g us\n",
                (long long)l->steps, 1e6 * l->median, 1e6 * l->most_of_1000, 1e6 * l->worst);
}
