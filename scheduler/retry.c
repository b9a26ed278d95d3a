/* Covers and schedules in turns: what the scheduler has no way for is mapped otherwise. */
#include "scheduler/scheduler.h"
#include <string.h>

/* The sums of a buffer that the fallback executes; -1: others do. */
static int left_over(const struct cover *c, const char *buffer) {
    for (int i = 0; i < c->nitems; i++) {
        const struct stmt *st = &c->program->stmt[c->item[i].stmt];
        if (st->combine != COMBINE_SET && c->item[i].mapping < 0 && c->item[i].inside < 0 &&
            strcmp(c->program->buffer[st->dst.buffer].name, buffer) == 0)
            return c->item[i].stmt;
    }
    return -1;
}

/* What stood in the way where nothing else was found. */
static void tell(const struct refusals *r, const struct program *p, const struct machine *m,
                 const struct cover *c, struct diags *diags) {
    const char *file = p->source.file ? p->source.file : p->name;
    for (int i = 0; i < r->n; i++) {
        const struct refusal *x = &r->at[i];
        int stmt = c ? left_over(c, x->buffer) : -1;
        if (!x->way || (c && stmt < 0)) continue;
        if (c)
            diag_warn(diags, file, x->line, x->col,
                      "statement %d runs on the fallback, not on '%s': %s", stmt,
                      m->instr[x->instr].id, x->why);
        else
            diag_warn(diags, file, x->line, x->col, "'%s' cannot be scheduled on '%s': %s",
                      x->buffer, m->instr[x->instr].id, x->why);
    }
}

struct schedule *scheduler_compile(const struct program *p, const struct machine *m,
                                   enum rewrite_effect floats, struct decider *decider,
                                   const struct scheduler_options *options, struct cover **cover,
                                   struct diags *diags) {
    struct refusals refused = {.n = 0};
    struct scheduler_options o = options ? *options : (struct scheduler_options){.threads = 0};
    struct schedule *s = NULL;
    int said = diags->n, errors = diags->errors;
    size_t explained = o.explain ? o.explain->n : 0;
    arena_init(&refused.arena);
    o.refused = &refused;
    for (;;) { /* refusals of a buffer are bounded (refusals_add), and so are the rounds */
        int before = refused.n;
        *cover = mapper_cover_allowing(p, m, floats, refused.n ? &refused : NULL, decider, diags);
        s = *cover ? scheduler_run(*cover, m, decider, &o, diags) : NULL;
        if (s || refused.n == before || diags->errors > errors) break;
        cover_free(*cover);
        diags->n = said;
        if (o.explain && o.explain->at) o.explain->at[o.explain->n = explained] = 0;
    }
    tell(&refused, p, m, *cover, diags);
    arena_free(&refused.arena);
    return s;
}
