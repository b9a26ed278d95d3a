/* Diagnostics: a user's errors, collected with their places, never fatal to the library. Our own defects are assertions.
 * Grammar of a message: lower case, no full stop, cause first, the subject quoted, and what to do. */
#ifndef ISAMAP_IR_DIAG_H
#define ISAMAP_IR_DIAG_H

#include "ir/arena.h"
#include <stdbool.h>
#include <stdio.h>

/* A text under reading; places are offsets into it. `line0`, `col0` shift the place of offset 0: semantics inside a
 * machine file. Immutable once made. */
struct source {
    const char *file;  /* as the user named it */
    const char *text;  /* NUL-terminated */
    size_t length;
    int line0, col0;   /* 1-based place of text[0]; col0 applies to the first line only */
};

/* What each line of a text was made from ("node 'conv1' (Conv)", or NULL), where nobody wrote the text: a model's kernel. */
struct diag_origin {
    const char *file;
    const char *const *line; /* [lines] */
    int lines;
};

struct diag {
    const char *file;
    int line, col;           /* 1-based; 0: not known */
    const char *text;
    const char *source_line; /* the line without its end, or NULL */
    bool warning;
};

struct diags {
    struct arena arena;
    struct diag *at;
    int n, cap, errors;      /* errors: those that are not warnings; at most 100 are kept */
    bool exhausted;          /* one of them: there is no room left on a disk */
    struct diag_origin origin;
};

void diags_init(struct diags *);
void diags_free(struct diags *);
void diag_at(struct diags *, const struct source *, size_t offset, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
void diag_line(struct diags *, const char *file, int line, int col, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
void diag_warn(struct diags *, const char *file, int line, int col, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
/* From here on messages about lines of `file` name what these were made from, and no line. Copies. */
void diags_origin(struct diags *, const char *file, const char *const *line, int lines);
void source_place(const struct source *, size_t offset, int *line, int *col);
void diags_text(const struct diags *, struct text *); /* file:line:col: error: text, the line, a caret */
void diags_print(const struct diags *, FILE *);       /* the same */

/* Reads a whole file, at most `limit` bytes; on failure reports and returns NULL. The result lives in the arena. */
char *file_read(struct arena *, const char *path, size_t limit, size_t *length, struct diags *);

#endif
