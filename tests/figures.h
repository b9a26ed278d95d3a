/* Prices, decisions, schedules, cycles and what is written for devices, of a program on a machine,
 * as one line: readable figures, and hashes of all that was said. ISAMAP_FIGURES=FOLDER keeps the
 * texts that are hashed, to compare two builds. */
#ifndef ISAMAP_TESTS_FIGURES_H
#define ISAMAP_TESTS_FIGURES_H

#include "isamap.h"
#include "tests/golden.h"

#include <sys/stat.h>
#include <unistd.h>

struct figures {
    const char *machine, *program, *sizes, *suffix; /* suffix: of what else is written, or NULL */
};

static const char *folder; /* for files */

/* Without lines about times, and without the folder's name. */
static inline void append_clean(struct text *t, const char *from) {
    for (const char *at = from; *at;) {
        size_t n = strcspn(at, "\n") + 1;
        struct text line = {0};
        if (!at[n - 1]) n--;
        text_append(&line, at, n);
        for (char *named; (named = strstr(line.at, folder));)
            memmove(named, named + strlen(folder), strlen(named + strlen(folder)) + 1);
        if (!strstr(line.at, "seconds")) text_append(t, line.at, strlen(line.at));
        text_free(&line);
        at += n;
    }
}

static inline const char *path_of(struct arena *a, const char *suffix) {
    return arena_printf(a, "%s/x%s", folder, suffix);
}

static inline void append_file(struct arena *a, struct text *t, const char *path) {
    struct diags d;
    size_t n;
    diags_init(&d);
    const char *text = access(path, R_OK) == 0 ? file_read(a, path, 1 << 26, &n, &d) : NULL;
    for (size_t k = 0; text && k < n; k++) text_printf(t, text[k] ? "%c" : "\\0", text[k]);
    text_printf(t, "\n");
    diags_free(&d);
}

static inline void option(isamap *im, const char *name, const char *value) {
    if (isamap_option(im, name, value) != ISAMAP_DONE) fail_msg("%s", isamap_messages(im));
}

/* Keeps the text under its name, where that is asked for; returns its hash and frees it. */
static inline uint32_t hashed(struct arena *a, const char *name, const char *what, struct text *t) {
    const char *keep = getenv("ISAMAP_FIGURES");
    uint32_t hash = golden_hash(GOLDEN_HASH, t->at ? t->at : "");
    if (keep) {
        char *path = arena_printf(a, "%s.%s", name, what);
        for (char *c = path; *c; c++)
            if (*c == '/' || *c == ' ') *c = '_';
        FILE *f = fopen(arena_printf(a, "%s/%s", keep, path), "w");
        assert_non_null(f);
        fputs(t->at ? t->at : "", f);
        fclose(f);
    }
    text_free(t);
    return hash;
}

static inline void options(isamap *im, struct arena *a, const struct figures *f) {
    isamap_reset(im);
    option(im, "machine", f->machine);
    char *sizes = arena_strdup(a, f->sizes);
    for (char *s = strtok(sizes, " "); s; s = strtok(NULL, " ")) option(im, "define", s);
}

/* What maps, and why the rest does not. */
static inline void map(isamap *im, struct arena *a, const struct figures *f, const char *name,
                       struct text *line) {
    struct text said = {0};
    options(im, a, f);
    option(im, "json", NULL);
    option(im, "why", NULL);
    int status = isamap_map(im, f->program);
    append_clean(&said, isamap_result(im));
    append_clean(&said, isamap_messages(im));
    text_printf(line, " map %d %08x", status, hashed(a, name, "map", &said));
}

/* What the compiler says and decides, and what the simulator finds. */
static inline int simulate(isamap *im, struct arena *a, const struct figures *f, const char *name,
                           struct text *line) {
    struct text said = {0}, result = {0}, decisions = {0};
    options(im, a, f);
    option(im, "json", NULL);
    option(im, "no-values", NULL);
    option(im, "explain", NULL);
    option(im, "record", path_of(a, ".kept"));
    int status = isamap_sim(im, f->program);
    append_clean(&said, isamap_messages(im));
    append_clean(&result, isamap_result(im));
    append_file(a, &decisions, path_of(a, ".kept"));
    text_printf(line, ", sim %d: %.6g cycles", status, isamap_number(im, "cycles"));
    if (isamap_number(im, "host_cycles") > 0)
        text_printf(line, " and %.6g of the host", isamap_number(im, "host_cycles"));
    text_printf(line, ", said %08x, decided %08x, found %08x", hashed(a, name, "said", &said),
                hashed(a, name, "decisions", &decisions), hashed(a, name, "sim", &result));
    return status;
}

/* What is written, by the same decisions. */
static inline void written(isamap *im, struct arena *a, const struct figures *f, const char *suffix,
                           const char *name, struct text *line) {
    struct text out = {0};
    options(im, a, f);
    option(im, "decisions", path_of(a, ".kept"));
    int status = isamap_compile(im, f->program, path_of(a, suffix));
    append_file(a, &out, path_of(a, suffix));
    text_printf(line, ", %s %d %08x", suffix, status, hashed(a, name, suffix, &out));
}

/* The figures of a line, behind its name. */
static inline void figures_line(isamap *im, struct arena *a, const struct figures *f,
                                const char *name, struct text *line) {
    map(im, a, f, name, line);
    if (simulate(im, a, f, name, line) == ISAMAP_DONE) {
        written(im, a, f, ".sched", name, line);
        if (f->suffix) written(im, a, f, f->suffix, name, line);
    }
    unlink(path_of(a, ".sched"));
    unlink(path_of(a, f->suffix ? f->suffix : ".sched"));
    unlink(path_of(a, ".kept"));
    text_printf(line, "\n");
}

#endif
