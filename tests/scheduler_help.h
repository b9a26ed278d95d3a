/* What the schedule tests share: reading a .sched file with the machine that its first line names.
 */
#ifndef ISAMAP_TESTS_SCHEDULER_HELP_H
#define ISAMAP_TESTS_SCHEDULER_HELP_H

#include "scheduler/schedule/schedule.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>
#include <unistd.h>

static inline char *help_read(struct arena *arena, const char *path) {
    struct diags d;
    size_t length;
    diags_init(&d);
    char *text = file_read(arena, path, 1 << 24, &length, &d);
    diags_print(&d, stderr);
    assert_non_null(text);
    diags_free(&d);
    return text;
}

/* The machine after `schedule NAME on`. */
static inline struct machine *help_machine(const char *text) {
    static const char *const folders[] = {"machines", "tests/data/machines/schedule",
                                          "tests/data/machines/sim"};
    char name[64] = "", path[160];
    const char *line = strncmp(text, "schedule ", 9) == 0 ? text : strstr(text, "\nschedule ");
    assert_non_null(line);
    if (sscanf(line, " schedule %*s on %63[A-Za-z0-9_]", name) != 1)
        assert_int_equal(sscanf(line, " schedule %*s on \"%63[^\"]", name), 1);
    struct diags d;
    struct machine *m = NULL;
    diags_init(&d);
    for (size_t f = 0; f < sizeof folders / sizeof *folders && !m; f++) {
        snprintf(path, sizeof path, "%s/%s.xml", folders[f], name);
        if (access(path, R_OK) == 0) m = machine_load(path, NULL, &d);
    }
    diags_print(&d, stderr);
    assert_non_null(m);
    diags_free(&d);
    return m;
}

static inline struct schedule *help_parse(const struct machine *m, const char *file,
                                          const char *text, struct diags *d) {
    struct source source = {
        .file = file, .text = text, .length = strlen(text), .line0 = 1, .col0 = 1};
    return schedule_parse(m, &source, d);
}

/* A copy of the text with occurrence `nth` (from 0) of `from` replaced. */
static inline char *help_replace(struct arena *arena, const char *text, const char *from,
                                 const char *to, int nth) {
    const char *at = strstr(text, from);
    for (; at && nth > 0; nth--) at = strstr(at + 1, from);
    if (!at) print_error("'%s' is not in the text\n", from);
    assert_non_null(at);
    return arena_printf(arena, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
}

/* All diagnostics, a line each, without the lines of the source. */
static inline char *help_messages(struct arena *arena, const struct diags *d) {
    char *all = arena_strdup(arena, "");
    for (int k = 0; k < d->n; k++)
        all = arena_printf(arena, "%s%d:%d: %s\n", all, d->at[k].line, d->at[k].col, d->at[k].text);
    return all;
}

#endif
