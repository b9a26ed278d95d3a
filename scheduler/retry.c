/* Covers and schedules in turns: what the scheduler has no way for is mapped otherwise. */
#include "scheduler/retry.h"
#include "scheduler/plan/left.h"
#include "scheduler/scheduler.h"
#include <string.h>

/* The sums of a buffer that the fallback executes, or a host's instruction in place of a device's;
 * NULL: others do. */
static const struct cover_item *left_over(const struct cover *c, const struct machine *m,
                                          const struct refusal *r) {
    bool device = !machine_queue_is_host(m, m->instr[r->instr].queue);
    for (int i = 0; i < c->nitems; i++) {
        const struct cover_item *at = &c->item[i];
        const struct stmt *st = &c->program->stmt[at->stmt];
        if (st->combine != COMBINE_SET && at->inside < 0 &&
            (at->mapping < 0 || (device && left_to_host(c, m, at))) &&
            strcmp(c->program->buffer[st->dst.buffer].name, r->buffer) == 0)
            return at;
    }
    return NULL;
}

/* What stood in the way where nothing else was found; told[]: of these statements. */
static void tell(const struct refusals *r, const struct program *p, const struct machine *m,
                 const struct cover *c, struct lefts *left, bool *told, struct diags *diags) {
    const char *file = p->source.file ? p->source.file : p->name;
    for (int i = 0; i < r->n; i++) {
        const struct refusal *x = &r->at[i];
        const struct cover_item *item = c ? left_over(c, m, x) : NULL;
        if (!x->way || (c && !item)) continue;
        if (c) {
            left_add(left, &(struct left){
                               .stmt = item->stmt,
                               .line = x->line,
                               .col = x->col,
                               .products = stmt_is_mac(c->program, &c->program->stmt[item->stmt]),
                               .by = left_to_host(c, m, item),
                               .instr = m->instr[x->instr].id,
                               .why = x->why});
            told[item->stmt] = true;
        } else {
            diag_warn(diags, file, x->line, x->col, "'%s' cannot be scheduled on '%s': %s",
                      x->buffer, m->instr[x->instr].id, x->why);
        }
    }
}

struct schedule *schedule_mapped(const struct program *p, const struct machine *m,
                                 enum rewrite_effect floats, struct decider *decider,
                                 const struct scheduler_options *options, struct cover **cover,
                                 struct diags *diags) {
    struct refusals refused = {.n = 0};
    struct scheduler_options o = options ? *options : (struct scheduler_options){.threads = 0};
    struct schedule *s = NULL;
    int said = diags->n, errors = diags->errors;
    size_t explained = o.explain ? o.explain->n : 0;
    struct lefts left = {.arena = &refused.arena};
    arena_init(&refused.arena);
    o.refused = &refused;
    o.left = &left;
    for (;;) { /* refusals of a buffer are bounded (refusals_add), and so are the rounds */
        int before = refused.n;
        if (o.doing) o.doing(o.user, "mapping");
        *cover = mapper_cover_allowing(p, m, floats, refused.n ? &refused : NULL, o.needles,
                                       decider, diags);
        if (o.doing) o.doing(o.user, "planning");
        s = *cover ? scheduler_run(*cover, m, decider, &o, diags) : NULL;
        if (s || refused.n == before || diags->errors > errors) break;
        cover_free(*cover);
        left.n = 0;
        diags->n = said;
        if (o.explain && o.explain->at) o.explain->at[o.explain->n = explained] = 0;
    }
    bool *told =
        arena_array(&refused.arena, *cover ? (size_t)(*cover)->nitems + 1 : 1, sizeof *told);
    tell(&refused, p, m, *cover, &left, told, diags);
    if (s) left_uncovered(&left, *cover, m, told);
    left_tell(&left, p, o.strict, diags);
    arena_free(&refused.arena);
    return s;
}
