#include "scheduler/plan/left.h"

#include <ctype.h>
#include <string.h>

/* ---- reasons ---- */

/* The next character that tells reasons apart; 0 at the end. */
static int next_char(const char **at, int before) {
    const char *s = *at;
    for (;;) {
        const char *end = *s == '\'' ? strchr(s + 1, '\'') : NULL;
        if (end)
            s = end + 1;
        else if (before == ' ' && isdigit((unsigned char)*s))
            s++;
        else
            break;
    }
    *at = *s ? s + 1 : s;
    return (unsigned char)*s;
}

static bool same_reason(const char *a, const char *b) {
    for (int x = 0, y;;) {
        int before = x;
        x = next_char(&a, before);
        y = next_char(&b, before);
        if (x != y) return false;
        if (!x) return true;
    }
}

static bool same_name(const char *a, const char *b) {
    return a == b || (a && b && !strcmp(a, b));
}

static bool alike(const struct left *a, const struct left *b) {
    return same_name(a->instr, b->instr) && same_name(a->by, b->by) && a->products == b->products &&
           same_reason(a->why, b->why);
}

void left_add(struct lefts *l, const struct left *x) {
    for (int i = 0; i < l->n; i++)
        if (alike(&l->at[i], x)) {
            l->at[i].n++;
            return;
        }
    GROW(l->arena, l->at, l->n, l->cap);
    l->at[l->n] = *x;
    l->at[l->n].n = 1;
    l->at[l->n++].why = arena_strdup(l->arena, x->why);
}

/* ---- what was never mapped ---- */

const char *left_to_host(const struct cover *c, const struct machine *m,
                         const struct cover_item *item) {
    if (item->mapping < 0) return NULL;
    const struct instr *in = &m->instr[c->mapping[item->mapping].instr];
    return machine_queue_is_host(m, in->queue) ? in->id : NULL;
}

double left_products(const struct cover *c, const struct machine *m) {
    double n = 0;
    for (int i = 0; i < c->nitems; i++) {
        const struct cover_item *at = &c->item[i];
        const struct stmt *st = &c->program->stmt[at->stmt];
        if ((at->mapping < 0 || left_to_host(c, m, at)) && at->inside < 0 &&
            stmt_is_mac(c->program, st))
            n += (double)stmt_points(c->program, st);
    }
    return n;
}

/* Those that the host's instructions execute, or the fallback. */
static void add_left(struct lefts *l, const struct cover *c, const struct machine *m,
                     const bool *told, bool host) {
    const struct program *p = c->program;
    const struct cover_item **item = arena_array(l->arena, (size_t)c->nitems + 1, sizeof *item);
    int *stmt = arena_array(l->arena, (size_t)c->nitems + 1, sizeof *stmt), n = 0;
    for (int i = 0; i < c->nitems; i++) {
        const struct cover_item *at = &c->item[i];
        bool left = host ? left_to_host(c, m, at) != NULL : at->mapping < 0;
        if (!left || at->inside >= 0 || told[at->stmt] || p->stmt[at->stmt].untold ||
            !stmt_is_mac(p, &p->stmt[at->stmt]))
            continue;
        item[n] = at;
        stmt[n++] = at->stmt;
    }
    const char **why = arena_array(l->arena, (size_t)n + 1, sizeof *why);
    if (!n || !mapper_left(l->arena, p, m, stmt, n, host, why)) return;
    for (int i = 0; i < n; i++) {
        if (!why[i]) continue;
        struct left x = {
            .stmt = stmt[i], .products = true, .by = left_to_host(c, m, item[i]), .why = why[i]};
        if (p->source.text) source_place(&p->source, p->stmt[stmt[i]].at, &x.line, &x.col);
        left_add(l, &x);
    }
}

void left_uncovered(struct lefts *l, const struct cover *c, const struct machine *m,
                    const bool *told) {
    if (m->nfallbacks == 0) return;
    add_left(l, c, m, told, false);
    add_left(l, c, m, told, true);
}

/* ---- messages ---- */

static bool is_instruction(const struct machine *m, const char *name) {
    for (int i = 0; i < m->ninstrs; i++)
        if (!strcmp(m->instr[i].id, name)) return true;
    return false;
}

/* Of a temporary that the compiler made: the array of the program whose name its own goes on from;
 * NULL: it is none. */
static const char *made_of(struct arena *a, const struct program *p, const struct machine *m,
                           const char *name, size_t n) {
    char *own = arena_strndup(a, name, n);
    if (program_buffer(p, own) >= 0 || is_instruction(m, own)) return NULL;
    while (n-- > 1) {
        if (own[n] != '.' && own[n] != '_') continue;
        own[n] = 0;
        if (program_buffer(p, own) >= 0) return own;
    }
    return NULL;
}

/* The reason, in names that the program has. */
static void print_reason(struct text *t, struct arena *a, const struct program *p,
                         const struct machine *m, const char *why) {
    int before = 0; /* "it's" quotes nothing */
    for (const char *end; *why; before = end[-1], why = end) {
        bool quotes = *why == '\'' && !isalpha(before);
        end = quotes ? strchr(why + 1, '\'') : NULL;
        const char *of = end ? made_of(a, p, m, why + 1, (size_t)(end - why - 1)) : NULL;
        end = end ? end + 1 : why + 1;
        if (of)
            text_printf(t, "a temporary of '%s'", of);
        else
            text_append(t, why, (size_t)(end - why));
    }
}

void left_tell(const struct lefts *l, const struct program *p, const struct machine *m, bool strict,
               struct diags *diags) {
    const char *file = p->source.file ? p->source.file : p->name;
    for (int i = 0; i < l->n; i++) {
        const struct left *x = &l->at[i];
        struct text t = {0};
        text_printf(&t, "statement %d runs on the %s", x->stmt, x->by ? "host" : "fallback");
        if (x->by) text_printf(&t, "'s '%s'", x->by);
        if (x->instr) text_printf(&t, ", not on '%s'", x->instr);
        text_printf(&t, ": ");
        print_reason(&t, l->arena, p, m, x->why);
        if (x->n > 1) text_printf(&t, "; so do %d more", x->n - 1);
        if (strict && x->products)
            diag_line(diags, file, x->line, x->col, "%s", t.at);
        else
            diag_warn(diags, file, x->line, x->col, "%s", t.at);
        text_free(&t);
    }
}
