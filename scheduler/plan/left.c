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

static bool alike(const struct left *a, const struct left *b) {
    bool same_instr = a->instr == b->instr || (a->instr && b->instr && !strcmp(a->instr, b->instr));
    return same_instr && a->products == b->products && same_reason(a->why, b->why);
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

void left_uncovered(struct lefts *l, const struct cover *c, const struct machine *m,
                    const bool *told) {
    const struct program *p = c->program;
    int *stmt = arena_array(l->arena, (size_t)c->nitems + 1, sizeof *stmt), n = 0;
    for (int i = 0; i < c->nitems; i++) {
        int s = c->item[i].stmt;
        if (c->item[i].mapping < 0 && c->item[i].inside < 0 && !told[s] &&
            stmt_is_mac(p, &p->stmt[s]))
            stmt[n++] = s;
    }
    const char **why = arena_array(l->arena, (size_t)n + 1, sizeof *why);
    if (!n || m->nfallbacks == 0 || !mapper_left(l->arena, p, m, stmt, n, why)) return;
    for (int i = 0; i < n; i++) {
        struct left x = {.stmt = stmt[i], .products = true, .why = why[i]};
        if (p->source.text) source_place(&p->source, p->stmt[stmt[i]].at, &x.line, &x.col);
        left_add(l, &x);
    }
}

/* ---- messages ---- */

void left_tell(const struct lefts *l, const struct program *p, bool strict, struct diags *diags) {
    const char *file = p->source.file ? p->source.file : p->name;
    for (int i = 0; i < l->n; i++) {
        const struct left *x = &l->at[i];
        struct text t = {0};
        text_printf(&t, "statement %d runs on the fallback", x->stmt);
        if (x->instr) text_printf(&t, ", not on '%s'", x->instr);
        text_printf(&t, ": %s", x->why);
        if (x->n > 1) text_printf(&t, "; so do %d more", x->n - 1);
        if (strict && x->products)
            diag_line(diags, file, x->line, x->col, "%s", t.at);
        else
            diag_warn(diags, file, x->line, x->col, "%s", t.at);
        text_free(&t);
    }
}
