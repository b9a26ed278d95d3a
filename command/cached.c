/* Schedules of earlier calls, in the user's cache: what the same program, machine, options and
 * build of isamap gave. An entry has what the proof said of the schedule, the warnings,
 * the schedule's text, and what is expected of its parts. */
#include "command/isamap_int.h"
#include "ir/memory.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static bool may_use(const struct options *o) {
    return !o->no_cache && !o->record && !o->decisions && !o->explain;
}

const struct cache *cached_open(isamap *im, struct job *j, struct text *key) {
    const struct options *o = &im->option;
    const struct cache *c = j->keeps && may_use(o) ? cache_user(&j->arena, &im->diags) : NULL;
    if (!c) return NULL;
    text_printf(key, "schedule\n");
    cache_build(key);
    text_printf(key, "seed %" PRIu64 " threads %d contexts %d plain %d strict %d no_check %d\n",
                o->seed, o->threads, o->contexts, o->plain, o->strict, o->no_check);
    const char *const word[] = {o->approach, o->rewrite, o->allow};
    for (size_t i = 0; i < sizeof word / sizeof *word; i++)
        text_printf(key, "%s\n", word[i] ? word[i] : "-");
    machine_describe(j->machine, key);
    program_print(j->program, key);
    return c;
}

/* ---- what an entry says ---- */

static void put_string(struct text *t, const char *s) {
    text_printf(t, "%zu %s\n", s ? strlen(s) : 0, s ? s : "");
}

/* The next string, which a length goes before; NULL: there is none. */
static char *take_string(struct arena *a, const char **at, const char *end) {
    char *rest;
    unsigned long long n = strtoull(*at, &rest, 10);
    if (rest == *at || *rest != ' ' || n >= (size_t)(end - rest - 1) || rest[1 + n] != '\n')
        return NULL;
    *at = rest + 1 + n + 1;
    return arena_strndup(a, rest + 1, (size_t)n);
}

static bool take_warnings(isamap *im, struct arena *a, int n, const char **at, const char *end) {
    struct diag *w = arena_array(a, (size_t)n + 1, sizeof *w);
    for (int i = 0; i < n; i++) {
        int used = 0;
        if (sscanf(*at, "%d %d\n%n", &w[i].line, &w[i].col, &used) != 2 || !used) return false;
        *at += used;
        w[i].file = take_string(a, at, end);
        w[i].text = w[i].file ? take_string(a, at, end) : NULL;
        if (!w[i].text) return false;
    }
    for (int i = 0; i < n; i++)
        diag_warn(&im->diags, *w[i].file ? w[i].file : NULL, w[i].line, w[i].col, "%s", w[i].text);
    return true;
}

/* What is expected of the parts of the run, for --profile: of `n` statements. */
static bool take_forecasts(struct arena *a, int n, const char **at, const char *end,
                           struct schedule *s) {
    s->forecast = arena_array(&s->arena, (size_t)s->program->nstmts + 1, sizeof *s->forecast);
    for (int i = 0; i < n; i++) {
        struct forecast f;
        int stmt, used = 0;
        if (sscanf(*at, "%d %la %la\n%n", &stmt, &f.cycles, &f.alone, &used) != 3 || !used ||
            stmt < 0 || stmt >= s->program->nstmts)
            return false;
        *at += used;
        const char *bound = take_string(a, at, end);
        if (!bound) return false;
        f.bound = *bound ? arena_strdup(&s->arena, bound) : NULL;
        s->forecast[stmt] = f;
    }
    return true;
}

static int count_forecasts(const struct schedule *s) {
    int n = 0;
    for (int k = 0; k < s->program->nstmts && s->forecast; k++) n += s->forecast[k].cycles > 0;
    return n;
}

static void put_forecasts(struct text *t, const struct schedule *s) {
    for (int k = 0; k < s->program->nstmts && s->forecast; k++) {
        const struct forecast *f = &s->forecast[k];
        if (f->cycles <= 0) continue;
        text_printf(t, "%d %a %a\n", k, f->cycles, f->alone);
        put_string(t, f->bound);
    }
}

static struct schedule *take_schedule(isamap *im, struct job *j, const struct text *value) {
    const char *at = value->at, *end = value->at + value->n;
    int proof, sampled, warnings, forecasts, n = 0;
    struct diags ignored;
    if (sscanf(at, "%d %d %d %d\n%n", &proof, &sampled, &warnings, &forecasts, &n) != 4 || !n)
        return NULL;
    at += n;
    const char *reason = take_string(&j->arena, &at, end);
    struct source *source = arena_alloc(&j->arena, sizeof *source);
    if (!reason || !take_warnings(im, &j->arena, warnings, &at, end)) return NULL;
    char *text = take_string(&j->arena, &at, end);
    if (!text) return NULL;
    *source = (struct source){.file = j->path, .text = text, .length = strlen(text)};
    diags_init(&ignored);
    struct schedule *s = schedule_parse(j->machine, source, &ignored);
    diags_free(&ignored);
    if (!s) return NULL;
    if (!take_forecasts(&j->arena, forecasts, &at, end, s)) {
        schedule_free(s);
        return NULL;
    }
    j->proof = (enum proof)proof;
    j->proof_sampled = sampled;
    if (*reason) text_printf(&j->proof_reason, "%s", reason);
    return s;
}

bool cached_find(isamap *im, struct job *j, const struct cache *c, const struct text *key) {
    struct text value = {0};
    double start = now_seconds();
    if (!cache_read(c, key, &value)) return false;
    j->schedule = take_schedule(im, j, &value);
    text_free(&value);
    if (!j->schedule) return false;
    j->cached = true;
    j->compile_seconds = now_seconds() - start;
    return im->option.no_check || job_check_chain(im, j);
}

void cached_keep(const isamap *im, const struct job *j, int before, const struct cache *c,
                 const struct text *key) {
    struct text value = {0}, schedule = {0};
    text_printf(&value, "%d %d %d %d\n", (int)j->proof, j->proof_sampled, im->diags.n - before,
                count_forecasts(j->schedule));
    put_string(&value, j->proof_reason.at);
    for (int i = before; i < im->diags.n; i++) {
        const struct diag *w = &im->diags.at[i];
        text_printf(&value, "%d %d\n", w->line, w->col);
        put_string(&value, w->file);
        put_string(&value, w->text);
    }
    schedule_print(j->schedule, &schedule);
    put_string(&value, schedule.at);
    text_free(&schedule);
    put_forecasts(&value, j->schedule);
    cache_write(c, key, &value);
    text_free(&value);
}
