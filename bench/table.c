#include "bench/table.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

void table_init(struct table *t) {
    memset(t, 0, sizeof *t);
    arena_init(&t->arena);
}

void table_free(struct table *t) {
    arena_free(&t->arena);
}

void table_column(struct table *t, const char *title) {
    assert(t->ncells == 0 && t->ncolumns < TABLE_COLUMNS);
    t->title[t->ncolumns++] = arena_strdup(&t->arena, title);
}

static void add(struct table *t, const char *text) {
    if (t->ncells == t->cap) GROW(&t->arena, t->cell, t->ncells, t->cap);
    t->cell[t->ncells++] = text;
}

void table_cell(struct table *t, const char *fmt, ...) {
    char text[256];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    add(t, arena_strdup(&t->arena, text));
}

void table_number(struct table *t, double v, int digits) {
    if (isnan(v)) {
        add(t, "-");
        return;
    }
    int whole = v != 0 ? (int)floor(log10(fabs(v))) + 1 : 1, after = digits - whole;
    table_cell(t, "%.*f", after < 0 ? 0 : after > 6 ? 6 : after, v);
}

void table_end_row(struct table *t) {
    while (t->ncells % t->ncolumns) add(t, "");
}

static void print_line(const struct table *t, const char *const *cell, const int *width,
                       struct text *out) {
    struct text line = {0};
    for (int c = 0; c < t->ncolumns; c++)
        text_printf(&line, c == 0 ? "%-*s" : "  %*s", width[c], cell[c]);
    while (line.n && line.at[line.n - 1] == ' ') line.n--;
    text_append(out, line.at, line.n);
    text_append(out, "\n", 1);
    text_free(&line);
}

void table_print(const struct table *t, struct text *out) {
    int width[TABLE_COLUMNS] = {0};
    for (int c = 0; c < t->ncolumns; c++) {
        width[c] = (int)strlen(t->title[c]);
        for (int k = c; k < t->ncells; k += t->ncolumns)
            if ((int)strlen(t->cell[k]) > width[c]) width[c] = (int)strlen(t->cell[k]);
    }
    print_line(t, t->title, width, out);
    for (int k = 0; k + t->ncolumns <= t->ncells; k += t->ncolumns)
        print_line(t, t->cell + k, width, out);
}
