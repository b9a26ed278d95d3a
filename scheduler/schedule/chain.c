/* The chain in a schedule's text form: the program as written, the programs between, the witnesses.
 */
#include "scheduler/schedule/lex.h"

#include <inttypes.h>
#include <string.h>

static const char *const sampling_name[3] = {"field", "values", "ranges"};

static void print_witness(const struct witness *w, struct text *out) {
    text_printf(out, "    witness \"%s\" items %d to %d as %d to %d laws ", w->by, w->before.from,
                w->before.to, w->after.from, w->after.to);
    bool first = true;
    for (int l = 0; l < LAW_COUNT_OF; l++)
        if (w->laws >> l & 1) {
            text_printf(out, "%s%s", first ? "" : ", ", law_name[l]);
            first = false;
        }
    text_printf(out, " compare %s%s\n", sampling_name[w->sampling], w->may_sample ? " serves" : "");
}

void chain_print(const struct chain *c, struct text *out) {
    if (!c) return;
    text_printf(out, "  written ");
    print_program_block(c->written, 2, out);
    for (int k = 0; k < c->nsteps; k++) {
        const struct chain_step *s = &c->step[k];
        text_printf(out, "  step {\n");
        for (int w = 0; w < s->nwitnesses; w++) print_witness(&s->witness[w], out);
        if (s->program) {
            text_printf(out, "    program ");
            print_program_block(s->program, 4, out);
        }
        text_printf(out, "  }\n");
    }
}

static bool read_span(struct reader *r, struct items *s) {
    int64_t from = 0, to = 0;
    if (!read_integer(r, "an item", 0, INT32_MAX, &from) || !read_expect(r, "to") ||
        !read_integer(r, "an item", 0, INT32_MAX, &to))
        return false;
    *s = (struct items){(int)from, (int)to};
    return true;
}

static bool read_law(struct reader *r, uint32_t *laws) {
    size_t at = r->word.at;
    const char *name = read_name(r, "a law");
    for (int l = 0; name && l < LAW_COUNT_OF; l++)
        if (!strcmp(name, law_name[l])) {
            *laws |= UINT32_C(1) << l;
            return true;
        }
    return name
               ? read_fail(
                     r, at,
                     "no law '%s', expected copy, reindex, split or another one of docs/mapping.md",
                     name)
               : false;
}

static bool read_witness(struct reader *r, struct chain *c, struct witness *w) {
    *w = (struct witness){.by = read_name(r, "what made the change")};
    if (!w->by) return false;
    w->by = arena_strdup(&c->arena, w->by);
    if (!read_expect(r, "items") || !read_span(r, &w->before) || !read_expect(r, "as") ||
        !read_span(r, &w->after) || !read_expect(r, "laws"))
        return false;
    do
        if (!read_law(r, &w->laws)) return false;
    while (read_accept(r, ","));
    if (!read_expect(r, "compare")) return false;
    int how = 0;
    while (how < 3 && !read_accept(r, sampling_name[how])) how++;
    if (how == 3) return read_fail(r, r->word.at, "expected field, values or ranges");
    w->sampling = (enum sampling)how;
    w->may_sample = read_accept(r, "serves");
    return true;
}

static bool read_step(struct reader *r, struct chain *c) {
    struct chain_step step = {0};
    int cap = 0;
    if (!read_expect(r, "{")) return false;
    while (read_accept(r, "witness")) {
        struct witness w;
        if (!read_witness(r, c, &w)) return false;
        GROW(&c->arena, step.witness, step.nwitnesses, cap);
        step.witness[step.nwitnesses++] = w;
    }
    if (read_at(r, "program") && !(step.program = read_program_of(r, "program"))) return false;
    GROW(&c->arena, c->step, c->nsteps, c->cap);
    c->step[c->nsteps++] = step;
    return read_expect(r, "}");
}

bool read_chain(struct reader *r) {
    if (!read_at(r, "written")) return true;
    struct program *p = read_program_of(r, "written");
    if (!p) return false;
    struct chain *c = r->schedule->chain = chain_new(p);
    program_free(p);
    while (read_accept(r, "step")) {
        size_t at = r->word.at;
        if (c->nsteps && !c->step[c->nsteps - 1].program)
            return read_fail(r, at, "a step after one without a program, which is the last");
        if (!read_step(r, c)) return false;
    }
    if (c->nsteps && c->step[c->nsteps - 1].program)
        return read_fail(r, r->word.at,
                         "the last step has a program of its own; it leads to the schedule's");
    return true;
}
