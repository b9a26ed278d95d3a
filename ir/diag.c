#include "ir/diag.h"
#include "ir/nearest.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { KEPT = 100, LINE_LIMIT = 240 };

void diags_init(struct diags *d) {
    *d = (struct diags){0};
    arena_init(&d->arena);
}

void diags_free(struct diags *d) {
    arena_free(&d->arena);
    *d = (struct diags){0};
}

/* The new entry, or NULL when enough are kept; counts it in any case. */
static struct diag *diag_new(struct diags *d, bool warning) {
    if (!warning) d->errors++;
    if (d->n >= KEPT) return NULL;
    GROW(&d->arena, d->at, d->n, d->cap);
    struct diag *g = &d->at[d->n++];
    *g = (struct diag){.warning = warning};
    return g;
}

static char *format_text(struct arena *a, const char *fmt, va_list args) {
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    char *text = arena_alloc(a, (size_t)n + 1);
    vsnprintf(text, (size_t)n + 1, fmt, args);
    return text;
}

void source_place(const struct source *s, size_t offset, int *line, int *col) {
    *line = s->line0 ? s->line0 : 1;
    *col = s->col0 ? s->col0 : 1;
    if (offset > s->length) offset = s->length;
    for (size_t k = 0; k < offset; k++) {
        if (s->text[k] == '\n') {
            ++*line;
            *col = 1;
        } else if (((unsigned char)s->text[k] & 0xc0) != 0x80) {
            ++*col;
        }
    }
}

static const char *line_of(struct diags *d, const struct source *s, size_t offset) {
    if (offset > s->length) offset = s->length;
    size_t start = offset, end = offset;
    while (start > 0 && s->text[start - 1] != '\n') start--;
    while (end < s->length && s->text[end] != '\n') end++;
    if (end > start && s->text[end - 1] == '\r') end--;
    if (end - start > LINE_LIMIT) return NULL;
    /* text inside another file: its first line is shown from the column where it stands */
    int pad = start == 0 && s->col0 > 1 && s->col0 < LINE_LIMIT ? s->col0 - 1 : 0;
    char *line = arena_alloc(&d->arena, (size_t)pad + end - start + 1);
    memset(line, ' ', (size_t)pad);
    for (size_t k = start; k < end; k++) {
        unsigned char c = (unsigned char)s->text[k];
        line[(size_t)pad + k - start] = c == '\t' || (c >= 32 && c != 127) ? (char)c : '?';
    }
    return line;
}

void diags_origin(struct diags *d, const char *file, const char *const *line, int lines) {
    const char **copy = arena_array(&d->arena, (size_t)lines, sizeof *copy);
    for (int k = 0; k < lines; k++)
        copy[k] = k && line[k] == line[k - 1] ? copy[k - 1]
                  : line[k]                   ? arena_strdup(&d->arena, line[k])
                                              : NULL;
    d->origin = (struct diag_origin){arena_strdup(&d->arena, file), copy, lines};
}

/* True where the message says what its line was made from, instead of the line. */
static bool name_origin(struct diags *d, struct diag *g) {
    const struct diag_origin *o = &d->origin;
    if (!o->file || !g->file || g->line < 1 || g->line > o->lines || !o->line[g->line - 1] ||
        strcmp(o->file, g->file) != 0)
        return false;
    g->text = arena_printf(&d->arena, "%s: %s", o->line[g->line - 1], g->text);
    g->line = g->col = 0;
    return true;
}

void diag_at(struct diags *d, const struct source *s, size_t offset, const char *fmt, ...) {
    struct diag *g = diag_new(d, false);
    if (!g) return;
    va_list args;
    va_start(args, fmt);
    g->text = format_text(&d->arena, fmt, args);
    va_end(args);
    g->file = s->file ? arena_strdup(&d->arena, s->file) : NULL;
    if (!s->text) return;
    source_place(s, offset, &g->line, &g->col);
    if (!name_origin(d, g)) g->source_line = line_of(d, s, offset);
}

static void diag_place(struct diags *d, bool warning, const char *file, int line, int col,
                       const char *fmt, va_list args) {
    struct diag *g = diag_new(d, warning);
    if (!g) return;
    g->text = format_text(&d->arena, fmt, args);
    g->file = file ? arena_strdup(&d->arena, file) : NULL;
    g->line = line;
    g->col = col;
    name_origin(d, g);
}

void diag_line(struct diags *d, const char *file, int line, int col, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    diag_place(d, false, file, line, col, fmt, args);
    va_end(args);
}

void diag_warn(struct diags *d, const char *file, int line, int col, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    diag_place(d, true, file, line, col, fmt, args);
    va_end(args);
}

static void caret_text(const struct diag *g, struct text *t) {
    text_printf(t, "%s\n", g->source_line);
    int col = 1;
    for (const char *c = g->source_line; *c && col < g->col; c++) {
        if (((unsigned char)*c & 0xc0) == 0x80) continue;
        text_append(t, *c == '\t' ? "\t" : " ", 1);
        col++;
    }
    for (; col < g->col; col++) text_append(t, " ", 1);
    text_append(t, "^\n", 2);
}

void diags_text(const struct diags *d, struct text *t) {
    int kept_errors = 0;
    for (int k = 0; k < d->n; k++) {
        const struct diag *g = &d->at[k];
        if (g->file) text_printf(t, "%s:", g->file);
        if (g->line) text_printf(t, "%d:", g->line);
        if (g->line && g->col) text_printf(t, "%d:", g->col);
        text_printf(t, "%s%s: %s\n", g->file || g->line ? " " : "",
                    g->warning ? "warning" : "error", g->text);
        if (g->source_line) caret_text(g, t);
        kept_errors += !g->warning;
    }
    if (d->errors > kept_errors) text_printf(t, "%d more errors\n", d->errors - kept_errors);
}

void diags_print(const struct diags *d, FILE *f) {
    struct text t = {0};
    diags_text(d, &t);
    if (t.n) fwrite(t.at, 1, t.n, f);
    text_free(&t);
}
