/* What a test saw, line by line, against a file that is kept: tests/data/golden/NAME.txt. A line
 * that is another fails the test and is printed as a difference. ISAMAP_UPDATE=1 rewrites the file:
 * read what changed before it is committed. */
#ifndef ISAMAP_TESTS_GOLDEN_H
#define ISAMAP_TESTS_GOLDEN_H

#include "ir/arena.h"
#include "ir/diag.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* FNV-1a of a text, behind what was hashed before; begin with GOLDEN_HASH. */
#define GOLDEN_HASH 2166136261u
static inline uint32_t golden_hash(uint32_t hash, const char *text) {
    for (; *text; text++) hash = (hash ^ (uint8_t)*text) * 16777619u;
    return hash;
}

/* The first lines that differ, each side's. */
static inline void golden_differences(const char *name, const char *kept, const char *seen) {
    for (int line = 1, shown = 0; (*kept || *seen) && shown < 20; line++) {
        int a = (int)strcspn(kept, "\n"), b = (int)strcspn(seen, "\n");
        if (a != b || strncmp(kept, seen, (size_t)a) != 0) {
            fprintf(stderr, "%s.txt:%d\n-%.*s\n+%.*s\n", name, line, a, kept, b, seen);
            shown++;
        }
        kept += a + (kept[a] != 0);
        seen += b + (seen[b] != 0);
    }
}

/* Of a sampled list (tests/sample.h) each line is among those that are kept, in their order. */
static inline bool golden_same(const char *kept, const char *seen) {
    if (!getenv("ISAMAP_EVERY")) return strcmp(kept, seen) == 0;
    while (*kept && *seen) {
        size_t a = strcspn(kept, "\n") + 1, b = strcspn(seen, "\n") + 1;
        if (a == b && strncmp(kept, seen, a) == 0) seen += b;
        kept += a;
    }
    return !*seen;
}

/* Frees the text. */
static inline void golden_check(const char *name, struct text *seen) {
    struct arena arena;
    struct diags d;
    size_t n;
    arena_init(&arena);
    diags_init(&d);
    const char *path = arena_printf(&arena, "tests/data/golden/%s.txt", name);
    if (getenv("ISAMAP_UPDATE")) {
        FILE *f = fopen(path, "w");
        assert_non_null(f);
        fputs(seen->at, f);
        fclose(f);
    }
    const char *kept = file_read(&arena, path, 1 << 24, &n, &d);
    assert_non_null(kept);
    bool same = golden_same(kept, seen->at);
    if (!same) golden_differences(name, kept, seen->at);
    diags_free(&d);
    arena_free(&arena);
    text_free(seen);
    assert_true(same);
}

#endif
