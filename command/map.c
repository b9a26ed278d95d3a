/* isamap map: what executes what, and why not. */
#include "command/isamap_int.h"

#include <inttypes.h>
#include <string.h>

/* What says that a rewritten program is the one that was written. */
static void report_verdict(struct report *r, const struct verdict *v) {
    report_open(r, "laws", '[');
    for (int l = 0; l < LAW_COUNT_OF && v->evidence == EVIDENCE_PROVED; l++)
        if (v->laws >> l & 1) report_string(r, NULL, law_name[l]);
    report_close(r);
    if (v->evidence == EVIDENCE_SAMPLED) report_integer(r, "samples", v->samples);
}

static void print_verdict(struct text *t, const struct verdict *v) {
    bool first = true;
    if (v->evidence == EVIDENCE_SAMPLED) {
        text_printf(t, "    sampled: %" PRId64 " elements agree\n", v->samples);
        return;
    }
    text_printf(t, "    proved by ");
    for (int l = 0; l < LAW_COUNT_OF; l++)
        if (v->laws >> l & 1) {
            text_printf(t, "%s%s", first ? "" : ", ", law_name[l]);
            first = false;
        }
    text_printf(t, "%s\n", first ? "comparing texts" : "");
}

/* `margin`: of its line; NULL: in the JSON alone. `by`: what says that rewrites were right; NULL:
 * there were none. */
static void report_mapping(struct report *r, const struct program *p, const struct machine *m,
                           const struct mapping *x, const struct verdict *by, const char *margin) {
    static const struct verdict none = {.evidence = EVIDENCE_PROVED};
    bool sampled = by && by->evidence == EVIDENCE_SAMPLED;
    enum evidence e = sampled        ? EVIDENCE_SAMPLED
                      : x->certified ? EVIDENCE_PROVED
                                     : EVIDENCE_UNPROVED;
    struct text line = {0};
    mapping_print(p, m, x, &line);
    report_open(r, NULL, '{');
    report_string(r, "needle", m->instr[x->instr].id);
    report_integer(r, "statement", x->stmt);
    report_string(r, "axes", line.at);
    report_bool(r, "certified", x->certified);
    report_string(r, "evidence", evidence_name[e]);
    report_verdict(r, by ? by : &none);
    report_number(r, "cost", x->cost);
    report_number(r, "waste", x->waste);
    report_close(r);
    if (margin) text_printf(&r->text, "%s%s%s\n", margin, line.at, sampled ? " sampled" : "");
    text_free(&line);
}

/* ---- why not ---- */

/* What stands under the text from `at` on: ^~~~ */
static void print_underlined(struct text *t, const char *label, const char *line, size_t at,
                             size_t n) {
    text_printf(t, "    %-14s %s\n    %-14s %*s^", label, line, "", (int)at, "");
    for (size_t k = 1; k < n; k++) text_append(t, "~", 1);
    text_append(t, "\n", 1);
}

static bool leads_to(const struct derivation *d, const struct failure *f) {
    bool found = false;
    for (int i = 0; i < d->nmappings && d->stmt == f->stmt; i++)
        found |= d->mapping[i].instr == f->instr && d->mapping[i].stmt >= d->from &&
                 d->mapping[i].stmt < d->to;
    return found;
}

/* The shortest sequence of rewrites after which the instruction executes it; else the first rewrite
 * that answers such a failure and applies here. NULL: none. */
static const char *nearest_rewrite(struct job *j, const struct derivations *all,
                                   const struct failure *f) {
    const struct derivation *best = NULL;
    struct text t = {0};
    for (int i = 0; i < all->n; i++)
        if (leads_to(&all->at[i], f) && (!best || all->at[i].nsteps < best->nsteps))
            best = &all->at[i];
    for (int k = 0; best && k < best->nsteps; k++)
        text_printf(&t, "%s%s", k ? ", then " : "", best->step[k]->name);
    if (best) text_printf(&t, ": after it the instruction executes the statement");
    for (int r = 0; rewrites[r] && !best && !t.n; r++) {
        if (!(rewrites[r]->answers >> f->kind & 1)) continue;
        struct program *q = rewrites[r]->apply(j->program, f, NULL);
        if (!q) continue;
        if (program_hash(q) != program_hash(j->program)) /* else it makes no difference */
            text_printf(&t, "%s applies, but the instruction does not execute what it gives",
                        rewrites[r]->name);
        program_free(q);
    }
    const char *out = t.n ? arena_strdup(&j->arena, t.at) : NULL;
    text_free(&t);
    return out;
}

static void report_failure(struct report *r, const struct job *j, const struct failure *f,
                           const char *rewrite) {
    const struct failure_sight *v = f->sight;
    report_open(r, NULL, '{');
    report_string(r, "kind", failure_name[f->kind]);
    report_string(r, "needle", j->machine->instr[f->instr].id);
    report_integer(r, "statement", f->stmt);
    report_string(r, "reason", f->reason ? f->reason : "");
    if (f->expected) report_string(r, "expected", f->expected);
    if (f->got) report_string(r, "got", f->got);
    if (v) {
        report_string(r, "needle_text", v->needle);
        report_string(r, "statement_text", v->stmt);
        report_string(r, "needle_axes", v->needle_axes);
        report_string(r, "statement_axes", v->stmt_axes);
    }
    if (rewrite) report_string(r, "rewrite", rewrite);
    report_close(r);
}

static void print_failure(struct text *t, const struct job *j, const struct failure *f,
                          const char *rewrite) {
    const struct failure_sight *v = f->sight;
    text_printf(t, "  %s: %s: %s\n", j->machine->instr[f->instr].id, failure_name[f->kind],
                f->reason ? f->reason : "");
    if (!v) return;
    print_underlined(t, "instruction", v->needle, v->needle_at, v->needle_n);
    print_underlined(t, "statement", v->stmt, v->stmt_at, v->stmt_n);
    if (f->expected && f->got) text_printf(t, "    expected %s, found %s\n", f->expected, f->got);
    text_printf(t, "    axes of the instruction: %s\n    axes of the statement:   %s\n",
                v->needle_axes, v->stmt_axes);
    text_printf(t, "    nearest rewrite: %s\n", rewrite ? rewrite : "none answers this here");
}

static bool same_text(const char *a, const char *b) {
    return a == b || (a && b && !strcmp(a, b));
}

static bool alike(const struct failure *a, const struct failure *b) {
    return a->stmt == b->stmt && a->kind == b->kind && same_text(a->expected, b->expected) &&
           same_text(a->got, b->got);
}

/* Of those that need no view the same words once, with all instructions. */
static void print_plain(struct text *t, const struct job *j, const struct findings *f, int i,
                        bool *plain) {
    const struct failure *x = &f->failure[i];
    int more = 0;
    for (int k = i + 1; k < f->nfailures; k++) more += plain[k] && alike(x, &f->failure[k]);
    if (!more || !x->expected || !x->got) {
        text_printf(t, "  %s: %s: %s\n", j->machine->instr[x->instr].id, failure_name[x->kind],
                    x->reason ? x->reason : "");
        return;
    }
    text_printf(t, "  %s: expected %s, found %s:", failure_name[x->kind], x->expected, x->got);
    for (int k = i; k < f->nfailures; k++) {
        if (!plain[k] || !alike(x, &f->failure[k])) continue;
        text_printf(t, "%s %s", k > i ? "," : "", j->machine->instr[f->failure[k].instr].id);
        plain[k] = false;
    }
    text_printf(t, "\n");
}

/* Fills wait for who goes on with them. */
static void print_fill(struct text *t, const struct program *p, int stmt) {
    for (int s = stmt + 1; s < p->nstmts; s++)
        if (init_of(p, s) == stmt) {
            text_printf(t,
                        "  a fill: an instruction that accumulates may execute it with "
                        "statement %d\n",
                        s);
            return;
        }
}

/* Those of one statement, what came furthest first; of an instruction that has mappings there,
 * nothing. */
static void report_statement(struct report *r, struct job *j, const struct findings *f,
                             const struct derivations *d, int stmt) {
    bool seen = false; /* a statement that nothing comes near gets one view */
    bool *plain = arena_array(&j->arena, (size_t)f->nfailures + 1, sizeof *plain);
    for (int i = 0; i < f->nfailures; i++) {
        const struct failure *x = &f->failure[i];
        bool mapped = false, known = false;
        if (x->stmt != stmt) continue;
        for (int k = 0; k < f->nmappings; k++)
            mapped |= f->mapping[k].stmt == stmt && f->mapping[k].instr == x->instr;
        for (int k = 0; k < i; k++)
            known |= f->failure[k].stmt == stmt && f->failure[k].instr == x->instr;
        plain[i] = j->machine->instr[x->instr].is_move || (x->depth == 0 && seen);
        const char *rewrite = plain[i] ? NULL : nearest_rewrite(j, d, x);
        report_failure(r, j, x, rewrite);
        if (!known && !mapped && !plain[i]) {
            print_failure(&r->text, j, x, rewrite);
            seen = true;
        }
        plain[i] = plain[i] && !known && !mapped;
    }
    for (int i = 0; i < f->nfailures; i++)
        if (plain[i]) print_plain(&r->text, j, f, i, plain);
}

static void report_failures(struct report *r, struct job *j, const struct findings *f,
                            const struct derivations *d) {
    report_open(r, "failures", '[');
    for (int s = 0; s < j->program->nstmts; s++) {
        struct text line = {0};
        stmt_print(j->program, &j->program->stmt[s], &line, NULL);
        text_printf(&r->text, "why not, statement %d: %s\n", s, line.at);
        text_free(&line);
        print_fill(&r->text, j->program, s);
        report_statement(r, j, f, d, s);
    }
    report_close(r);
}

/* What each validity rule leaves, of all assignments of axes; docs/mapping.md, "Totals". */
static void report_totals(struct report *r, const struct findings *f, bool certified) {
    const struct map_totals *t = &f->totals;
    text_printf(&r->text,
                "totals after each rule, as they are and modulo the instruction's symmetries:\n"
                "  %-22s %14" PRId64 "\n",
                "V0 bindings", t->bindings);
    report_open(r, "totals", '{');
    report_integer(r, "bindings", t->bindings);
    for (int k = 0; k < STAGE_COUNT; k++) {
        report_open(r, stage_key[k], '{');
        report_number(r, "count", t->count[k]);
        if (k >= STAGE_FULL) report_integer(r, "distinct", t->distinct[k]);
        report_close(r);
        text_printf(&r->text, "  %-22s %14.6g", stage_name[k], t->count[k]);
        if (k >= STAGE_FULL) text_printf(&r->text, " %14" PRId64, t->distinct[k]);
        text_printf(&r->text, "\n");
    }
    if (certified) {
        report_integer(r, "certified", t->certified);
        text_printf(&r->text, "  %-22s %14" PRId64 "\n", "certified", t->certified);
    }
    report_close(r);
    text_printf(&r->text, "found in %.3g s, certified in %.3g s\n", f->seconds_find,
                f->seconds_certify);
}

/* The least of all mappings of a statement; 0: none. */
static double least_cost(const struct mapping *m, int n, int stmt) {
    double least = 0;
    for (int i = 0; i < n; i++)
        if (m[i].stmt == stmt && (least == 0 || m[i].cost < least)) least = m[i].cost;
    return least;
}

/* What the instructions of sums take for the part, and for the statement as it stands. */
static void report_costs(struct report *r, const struct findings *f, const struct derivation *d) {
    double after = 0, before = least_cost(f->mapping, f->nmappings, d->stmt);
    for (int s = d->from; s < d->to; s++) after += least_cost(d->mapping, d->nmappings, s);
    report_number(r, "cost", after);
    if (before > 0) report_number(r, "cost_before", before);
    if (before > 0)
        text_printf(&r->text, "    cost %.6g of these instructions, %.6g as it stands\n", after,
                    before);
}

/* Mappings are sorted by statement, instruction and price: text has the best of each unless all are
 * asked for. */
static void report_derivation(struct report *r, const struct machine *m, const struct findings *f,
                              const struct derivation *d, bool all) {
    report_open(r, NULL, '{');
    report_open(r, "rewrites", '[');
    text_printf(&r->text, "  statement %d, after ", d->stmt);
    for (int k = 0; k < d->nsteps; k++) {
        report_string(r, NULL, d->step[k]->name);
        text_printf(&r->text, "%s%s", k ? ", " : "", d->step[k]->name);
    }
    report_close(r);
    text_printf(&r->text, ":\n");
    for (int k = 0; k < d->nsteps; k++)
        if (d->asked[k])
            text_printf(&r->text, "    %s answers: %s\n", d->step[k]->name, d->asked[k]);
    print_verdict(&r->text, &d->verdict);
    report_costs(r, f, d);
    report_open(r, "mappings", '[');
    for (int i = 0; i < d->nmappings; i++) {
        const struct mapping *x = &d->mapping[i], *last = i ? x - 1 : NULL;
        bool best = !last || last->stmt != x->stmt || last->instr != x->instr;
        report_mapping(r, d->program, m, x, &d->verdict, best || all ? "    " : NULL);
    }
    report_close(r);
    report_close(r);
}

/* What the instructions of sums of products execute after rewrites. */
static void report_derivations(struct report *r, const struct job *j, const struct findings *f,
                               const struct derivations *d, const struct map_options *options) {
    if (d->n || d->bounded)
        text_printf(&r->text, "after rewrites: %d programs%s\n", d->n,
                    d->bounded ? " (step bound reached: there may be more)" : "");
    report_open(r, "rewritten", '[');
    for (int i = 0; i < d->n; i++) report_derivation(r, j->machine, f, &d->at[i], options->all);
    report_close(r);
    report_integer(r, "rewrites_tried", d->tried);
    report_integer(r, "rewrites_refuted", d->refuted);
    report_bool(r, "rewrites_bounded", d->bounded);
    report_number(r, "rewrite_seconds", d->seconds);
}

static int map_command(isamap *im, const char *path, const char *out) {
    (void)out;
    struct job j;
    enum rewrite_effect floats;
    job_init(&j, path);
    int status = ISAMAP_INPUT;
    if (job_machine(im, &j, USE_MAP) && job_program(im, &j) && job_adapt(im, &j, &floats)) {
        struct report *r = &im->report;
        struct map_options options = {
            .all = im->option.all, .certify_all = im->option.certify, .explain = im->option.why};
        program_equate(j.program);
        program_forward(j.program, false);
        doing(im, "mapping");
        struct findings *f = mapper_find(j.program, j.machine, &options);
        report_open(r, NULL, '{');
        report_string(r, "program", j.name);
        report_string(r, "machine", j.machine->name);
        text_printf(&r->text, "%s on %s: %d mappings, %d distinct%s\n", j.name, j.machine->name,
                    f->nmappings, f->distinct,
                    f->bounded ? " (step bound reached: there may be more)" : "");
        report_open(r, "mappings", '[');
        for (int i = 0; i < f->nmappings; i++)
            report_mapping(r, j.program, j.machine, &f->mapping[i], NULL, "  ");
        report_close(r);
        report_integer(r, "count", f->nmappings);
        report_integer(r, "distinct", f->distinct);
        report_bool(r, "bounded", f->bounded);
        report_number(r, "seconds", f->seconds_find);
        report_number(r, "certify_seconds", f->seconds_certify);
        if (im->option.all) report_totals(r, f, im->option.certify);
        doing(im, "mapping after rewrites");
        struct derivations *d = mapper_derive(j.program, j.machine, &options);
        report_derivations(r, &j, f, d, &options);
        if (im->option.why) report_failures(r, &j, f, d);
        report_close(r);
        status = f->nmappings || d->n ? ISAMAP_DONE : ISAMAP_NO_MAPPING;
        if (status == ISAMAP_NO_MAPPING && !im->option.why)
            text_printf(&r->text, "--why says what kept the instructions out\n");
        derivations_free(d);
        findings_free(f);
    }
    job_free(&j);
    return status;
}

int isamap_map(isamap *im, const char *path) {
    return call_run(im,
                    &(struct api_call){.name = "isamap_map", .run = map_command, .file = "program"},
                    path, NULL);
}
