/* Rewrites that are asked for by name (--rewrite). */
#include "mapper/remake.h"
#include "ir/nearest.h"

#include <string.h>

static const struct rewrite *rewrite_named(const char *name, size_t n) {
    for (int r = 0; rewrites[r]; r++)
        if (strlen(rewrites[r]->name) == n && !memcmp(rewrites[r]->name, name, n))
            return rewrites[r];
    return NULL;
}

static bool parse_sequence(const char *names, struct derivation *d, struct diags *diags) {
    d->nsteps = 0;
    for (const char *at = names;; at++) {
        while (*at == ' ') at++;
        size_t n = strcspn(at, ",");
        const struct rewrite *r = rewrite_named(at, n);
        if (!r || d->nsteps == MAX_DERIVATION) {
            const char *wanted = arena_strndup(&diags->arena, at, n);
            struct names known = {0};
            for (int k = 0; rewrites[k]; k++) names_add(&diags->arena, &known, rewrites[k]->name);
            if (!r)
                diag_line(diags, "--rewrite", 0, 0, "no rewrite '%s', expected %s", wanted,
                          names_listed(&diags->arena, wanted, &known));
            else
                diag_line(diags, "--rewrite", 0, 0, "more than %d rewrites", MAX_DERIVATION);
            return false;
        }
        d->step[d->nsteps++] = r;
        at += n;
        if (!*at) return true;
    }
}

/* Step k on some statement of the part, for some needle of sums or for none in mind. */
static bool apply_steps(const struct needles *needles, struct program *p, int k,
                        struct derivation *d) {
    if (k == d->nsteps) {
        d->program = p;
        return true;
    }
    for (int s = d->from; s < d->to; s++)
        for (int i = -1; i < needles->n; i++) {
            const struct needle *n = i < 0 ? NULL : &needles->at[i];
            struct product_types t;
            struct failure f = {.stmt = s,
                                .instr = n ? n->instr : -1,
                                .needle_op = -1,
                                .stmt_op = -1,
                                .needle_axis = -1,
                                .stmt_axis = -1,
                                .operand = -1};
            if (n && !d->step[k]->by_needle && !needle_product(n, &t)) continue;
            struct program *q = d->step[k]->apply(p, &f, n);
            if (!q) continue;
            int to = d->to;
            d->to += q->nstmts - p->nstmts;
            if (apply_steps(needles, q, k + 1, d)) {
                if (d->program != q) program_free(q);
                return true;
            }
            d->to = to;
            program_free(q);
        }
    return false;
}

struct program *mapper_rewrite(const struct program *p, const struct machine *m, const char *names,
                               struct diags *diags) {
    struct derivation d = {0};
    if (!parse_sequence(names, &d, diags)) return NULL;
    struct needles *needles = needles_open(m);
    struct program *copy = program_copy(p);
    bool done = false;
    for (d.stmt = 0; d.stmt < p->nstmts && !done; d.stmt += !done) {
        d.from = d.stmt;
        d.to = d.stmt + 1;
        done = apply_steps(needles, copy, 0, &d);
    }
    if (!done)
        diag_line(diags, "--rewrite", 0, 0, "'%s' applies to no statement of '%s'", names, p->name);
    struct text why = {0};
    if (done && !derivation_prove(&d, p, &why)) {
        diag_line(diags, "--rewrite", 0, 0, "'%s' was not proved on '%s': %s", names, p->name,
                  why.at ? why.at : "");
        program_free(d.program);
        done = false;
    }
    text_free(&why);
    program_free(copy);
    needles_close(needles);
    return done ? d.program : NULL;
}

struct reason mapper_rewrite_reason(const char *names) {
    struct derivation d = {0};
    struct diags none;
    diags_init(&none);
    parse_sequence(names, &d, &none);
    diags_free(&none);
    struct rewrite whole = derivation_whole(&d);
    return reason_of(names, NULL, &whole);
}
