/* Covers and schedules in turns: what the scheduler has no way for is mapped otherwise. */
#include "scheduler/retry.h"
#include "ir/memory.h"
#include "scheduler/plan/left.h"
#include "scheduler/scheduler.h"
#include <stdlib.h>
#include <string.h>

/* ---- covers that were scheduled ---- */

struct known_cover {
    const char *key;
    const struct refusal *refused; /* what its scheduling added; none: it led to the end */
    int n;
};
struct known_covers {
    struct arena arena;
    struct known_cover *at;
    int n, cap;
};

struct known_covers *covers_open(void) {
    struct known_covers *k = memory_array(1, sizeof *k);
    arena_init(&k->arena);
    return k;
}

void covers_forget(struct known_covers *k) {
    k->n = 0;
}

void covers_close(struct known_covers *k) {
    arena_free(&k->arena);
    free(k);
}

/* All that scheduling depends on, where options and answers to later questions stay. */
static void cover_key(const struct cover *c, const struct machine *m, const struct refusals *r,
                      struct text *key) {
    program_print(c->program, key);
    cover_print(c, m, key);
    for (int i = 0; i < r->n; i++)
        text_printf(key, "%d %s %s\n", r->at[i].instr, r->at[i].buffer,
                    r->at[i].way ? r->at[i].way : r->at[i].operands);
}

static const struct known_cover *covers_find(const struct known_covers *k, const char *key) {
    for (int i = 0; i < k->n; i++)
        if (strcmp(k->at[i].key, key) == 0) return &k->at[i];
    return NULL;
}

static void covers_add(struct known_covers *k, const char *key, const struct refusals *r,
                       int before) {
    int n = r->n - before;
    struct refusal *added = arena_array(&k->arena, (size_t)n + 1, sizeof *added);
    for (int i = 0; i < n; i++) {
        added[i] = r->at[before + i];
        added[i].buffer = arena_strdup(&k->arena, added[i].buffer);
        added[i].operands = arena_strdup(&k->arena, added[i].operands);
        added[i].why = arena_strdup(&k->arena, added[i].why);
        if (added[i].way) added[i].way = arena_strdup(&k->arena, added[i].way);
    }
    GROW(&k->arena, k->at, k->n, k->cap);
    k->at[k->n++] = (struct known_cover){arena_strdup(&k->arena, key), added, n};
}

/* Takes what the scheduling of an equal cover refused. */
static void refused_again(struct refusals *r, const struct known_cover *known) {
    for (int i = 0; i < known->n; i++) {
        GROW(&r->arena, r->at, r->n, r->cap);
        r->at[r->n++] = known->refused[i];
    }
}

/* The schedule; NULL: none, or an equal cover led to the end before. */
static struct schedule *schedule_cover(const struct cover *c, const struct machine *m,
                                       struct decider *decider, const struct scheduler_options *o,
                                       struct diags *diags) {
    struct text key = {0};
    if (!o->covers) return scheduler_run(c, m, decider, o, diags);
    cover_key(c, m, o->refused, &key);
    const struct known_cover *known = covers_find(o->covers, key.at);
    struct schedule *s = NULL;
    int before = o->refused->n, errors = diags->errors;
    if (known) {
        refused_again(o->refused, known);
    } else {
        s = scheduler_run(c, m, decider, o, diags);
        bool ends = s || diags->errors > errors;
        covers_add(o->covers, key.at, o->refused, ends ? o->refused->n : before);
    }
    text_free(&key);
    return s;
}

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
    for (;;) { /* each round refuses more, and instructions are refused as a whole (refusals_add) */
        int before = refused.round = refused.n;
        if (o.doing) o.doing(o.user, "mapping");
        *cover = mapper_cover_allowing(p, m, floats, refused.n ? &refused : NULL, o.needles,
                                       decider, diags);
        if (o.doing) o.doing(o.user, "planning");
        s = *cover ? schedule_cover(*cover, m, decider, &o, diags) : NULL;
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
    left_tell(&left, p, m, o.strict, diags);
    arena_free(&refused.arena);
    return s;
}
