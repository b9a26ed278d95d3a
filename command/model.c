/* What `isamap check` says of a model: what wrote it, its inputs, outputs and operators; with a
 * machine, what executes each operator and why the fallback does. */
#include "command/isamap_int.h"
#include "ir/memory.h"
#include "ir/pick.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void report_values(struct report *r, const struct program *p, const char *key,
                          const struct onnx_name *value, int n) {
    report_open(r, key, '[');
    for (int i = 0; i < n; i++) {
        int b = program_buffer(p, value[i].buffer);
        if (b < 0) continue;
        const struct buffer *x = &p->buffer[b];
        report_open(r, NULL, '{');
        report_string(r, "name", value[i].onnx);
        report_string(r, "type", type_name(x->type));
        text_printf(&r->text, "  %-10s  %s %s[", i ? "" : key, value[i].onnx, type_name(x->type));
        report_open(r, "shape", '[');
        for (int d = 0; d < x->ndims; d++) {
            report_integer(r, NULL, x->extent[d]);
            text_printf(&r->text, "%s%" PRId64, d ? "," : "", x->extent[d]);
        }
        report_close(r);
        text_printf(&r->text, "]\n");
        report_close(r);
    }
    report_close(r);
}

static int64_t constant_bytes(const struct program *p) {
    int64_t n = 0;
    for (int b = 0; b < p->nbuffers; b++)
        if (p->buffer[b].role == ROLE_CONST)
            n += p->buffer[b].elements * (int64_t)type_size(p->buffer[b].type);
    return n;
}

static void report_origin(struct report *r, const struct job *j) {
    const struct onnx_model *m = j->model;
    report_string(r, "producer", m->producer);
    report_string(r, "producer_version", m->version);
    report_integer(r, "opset", m->opset);
    text_printf(&r->text, "  %-10s  %s%s%s, opset %" PRId64 "\n", "written by",
                *m->producer ? m->producer : "nobody named", *m->version ? " " : "", m->version,
                m->opset);
    report_values(r, j->program, "inputs", m->input, m->ninputs);
    report_values(r, j->program, "outputs", m->output, m->noutputs);
    report_integer(r, "constant_bytes", constant_bytes(j->program));
    report_integer(r, "touched_bytes", program_touched_bytes(j->program));
    text_printf(&r->text,
                "  %-10s  constants %.4g MB; inputs, outputs and constants that are touched "
                "%.4g MB\n",
                "bytes", 1e-6 * (double)constant_bytes(j->program),
                1e-6 * (double)program_touched_bytes(j->program));
}

/* ---- work by operator ---- */

/* By kind of operator (the last: what rewrites added, recurrences) and by instruction (the last:
 * the fallback). */
struct model_work {
    int nkinds, ninstrs;
    int64_t *macs, *operations; /* [kind * (ninstrs + 1) + instruction] */
    int64_t all_macs, all_operations;
};

static void count_statement(struct model_work *w, const struct program *p, int s, int64_t points,
                            int kind, int by) {
    const struct stmt *t = &p->stmt[s];
    int64_t macs = stmt_macs(t) * points,
            looks = by == w->ninstrs ? stmt_looks_at(p, t, points) : points,
            operations = stmt_operations(p, t) * looks;
    w->macs[kind * (w->ninstrs + 1) + by] += macs;
    w->operations[kind * (w->ninstrs + 1) + by] += operations;
    w->all_macs += macs;
    w->all_operations += operations;
}

static int kind_of(const struct job *j, const char *buffer) {
    int b = program_buffer(j->program, buffer);
    return b >= 0 && b < j->model->program->nbuffers && j->model->made_by[b] >= 0 ? j->model->made_by[b] : j->model->nkinds;
}

static struct model_work work_count(const struct job *j) {
    const struct schedule *s = j->schedule;
    const struct program *p = s ? s->program : j->program;
    int instrs = s ? s->machine->ninstrs : 0;
    struct model_work w = {.nkinds = j->model->nkinds + 1, .ninstrs = instrs};
    size_t n = (size_t)w.nkinds * (size_t)(instrs + 1);
    w.macs = memory_array(n, sizeof *w.macs);
    w.operations = memory_array(n, sizeof *w.operations);
    int *by = s ? work_executors(s) : NULL;
    int64_t *points = memory_array((size_t)p->nstmts + 1, sizeof *points);
    program_points(p, points);
    for (int k = 0; k < p->nstmts; k++)
        if (!by || by[k] >= 0)
            count_statement(&w, p, k, points[k], kind_of(j, p->buffer[p->stmt[k].dst.buffer].name),
                            by ? by[k] : 0);
    free(by);
    free(points);
    return w;
}

/* "vnni 99 %, fallback 1 %" of these counts, of which there are `all`. */
static void report_shares(struct report *r, const char *key, const char *word, const int64_t *n,
                          const struct machine *m) {
    int64_t all = 0;
    bool first = true;
    for (int i = 0; i <= m->ninstrs; i++) all += n[i];
    report_open(r, key, '{');
    for (int i = 0; i <= m->ninstrs; i++) {
        if (!n[i]) continue;
        const char *id = i < m->ninstrs ? m->instr[i].id : "fallback";
        report_integer(r, id, n[i]);
        text_printf(&r->text, "%s%s %.3g %%", first ? word : ", ", id,
                    100.0 * (double)n[i] / (double)all);
        first = false;
    }
    report_close(r);
}

static void report_kind(struct report *r, const struct job *j, const struct model_work *w, int k) {
    static const struct onnx_kind rest = {.name = "added"};
    const struct onnx_kind *kind = k < j->model->nkinds ? &j->model->kind[k] : &rest;
    const int64_t *macs = &w->macs[k * (w->ninstrs + 1)],
                  *operations = &w->operations[k * (w->ninstrs + 1)];
    int64_t m = 0, o = 0;
    for (int i = 0; i <= w->ninstrs; i++) m += macs[i], o += operations[i];
    if (kind == &rest && !m && !o) return;
    report_open(r, NULL, '{');
    report_string(r, "operator", kind->name);
    report_integer(r, "nodes", kind->nodes);
    report_integer(r, "folded", kind->folded);
    report_integer(r, "macs", m);
    report_integer(r, "operations", o);
    text_printf(&r->text, "  %-24s", kind == &rest ? "(added)" : kind->name);
    text_printf(&r->text, kind == &rest ? "     " : " %4d", kind->nodes);
    if (kind->folded) text_printf(&r->text, "  %d known when compiling", kind->folded);
    if (m)
        text_printf(&r->text, "  %.3g %% of the MACs",
                    100.0 * (double)m / (double)(w->all_macs ? w->all_macs : 1));
    if (o)
        text_printf(&r->text, "  %.3g %% of the operations",
                    100.0 * (double)o / (double)(w->all_operations ? w->all_operations : 1));
    text_append(&r->text, "\n", 1);
    if (j->schedule && (m || o)) {
        text_printf(&r->text, "      ");
        report_shares(r, "macs_on", "MACs: ", macs, j->machine);
        report_shares(r, "operations_on", m ? "; operations: " : "operations: ", operations,
                      j->machine);
        text_append(&r->text, "\n", 1);
    }
    report_close(r);
}

/* ---- what the fallback executes, and why ---- */

/* The nearest an instruction came to the statement that makes `buffer`, as `map --why` says. */
static const struct failure *nearest(const struct job *j, const struct findings *f,
                                     const char *buffer) {
    for (int i = 0; i < f->nfailures; i++) {
        const struct stmt *t = &j->program->stmt[f->failure[i].stmt];
        if (strcmp(j->program->buffer[t->dst.buffer].name, buffer) == 0 && f->failure[i].reason)
            return &f->failure[i];
    }
    return NULL;
}

/* Sums of products on the fallback, one for each kind of operator. */
static void report_reasons(struct report *r, const struct job *j) {
    const struct program *p = j->schedule->program;
    int *by = work_executors(j->schedule);
    bool *said = memory_array((size_t)j->model->nkinds + 1, sizeof *said);
    struct findings *f = NULL;
    report_open(r, "fallback_reasons", '[');
    for (int s = 0; s < p->nstmts; s++) {
        const char *buffer = p->buffer[p->stmt[s].dst.buffer].name;
        int k = kind_of(j, buffer);
        if (by[s] < j->machine->ninstrs || !stmt_is_mac(p, &p->stmt[s]) || said[k]) continue;
        if (!f) f = mapper_find(j->program, j->machine, &(struct map_options){0});
        const struct failure *why = nearest(j, f, buffer);
        said[k] = true;
        report_open(r, NULL, '{');
        report_string(r, "operator", k < j->model->nkinds ? j->model->kind[k].name : "added");
        report_string(r, "buffer", buffer);
        if (why) report_string(r, "instruction", j->machine->instr[why->instr].id);
        if (why) report_string(r, "reason", why->reason);
        report_close(r);
        text_printf(&r->text, "  on the fallback: %s of %s", buffer,
                    k < j->model->nkinds ? j->model->kind[k].name : "what was added");
        if (why)
            text_printf(&r->text, "; nearest is %s: %s", j->machine->instr[why->instr].id,
                        why->reason);
        text_append(&r->text, "\n", 1);
    }
    report_close(r);
    if (f) findings_free(f);
    free(by);
    free(said);
}

void report_model(struct report *r, const struct job *j) {
    report_origin(r, j);
    struct model_work w = work_count(j);
    text_printf(&r->text, "  operators\n");
    report_open(r, "operators", '[');
    for (int k = 0; k < w.nkinds; k++) report_kind(r, j, &w, k);
    report_close(r);
    free(w.macs);
    free(w.operations);
    if (!j->schedule) return;
    int64_t space = schedule_workspace(j->schedule), live = schedule_workspace_bound(j->schedule);
    report_string(r, "machine", j->machine->name);
    report_integer(r, "workspace_bytes", space);
    report_integer(r, "workspace_bound_bytes", live);
    report_number(r, "predicted_cycles", j->schedule->cost);
    text_printf(&r->text,
                "  %-10s  temporaries take %.4g MB, of which %.4g MB are live at a time\n",
                "memory", 1e-6 * (double)space, 1e-6 * (double)live);
    report_reasons(r, j);
}
