/* Names in a schedule's text: what they stand for in the program, among the places and the
 * variables. */
#include "scheduler/schedule/lex.h"

#include <stdlib.h>
#include <string.h>

/* `name`, or `name~number` for a later one of that name. -1: none. */
static int numbered(const char *name, int n, const char *(*name_at)(const struct program *, int),
                    const struct program *p) {
    for (int k = 0; k < n; k++)
        if (strcmp(name_at(p, k), name) == 0) return k;
    const char *tilde = strrchr(name, '~');
    if (!tilde || strlen(tilde) > 9) return -1;
    int k = atoi(tilde + 1);
    size_t length = (size_t)(tilde - name);
    if (k < 0 || k >= n || strlen(name_at(p, k)) != length) return -1;
    return strncmp(name_at(p, k), name, length) == 0 ? k : -1;
}

static int read_numbered(struct reader *r, const char *what, int n,
                         const char *(*name_at)(const struct program *, int)) {
    size_t at = r->word.at;
    const char *article = strchr("aeiou", what[0]) ? "an" : "a",
               *expected = arena_printf(r->arena, "%s %s of the program", article, what),
               *name = read_name(r, expected);
    if (!name) return -1;
    int k = numbered(name, n, name_at, r->schedule->program);
    if (k < 0) read_fail(r, at, "the program has no %s '%s'", what, name);
    return k;
}

static const char *axis_name(const struct program *p, int a) {
    return p->axis[a].name;
}

static const char *buffer_name(const struct program *p, int b) {
    return p->buffer[b].name;
}

static const char *size_name(const struct program *p, int k) {
    return p->size[k].name;
}

int read_axis(struct reader *r) {
    return read_numbered(r, "axis", r->schedule->program->naxes, axis_name);
}

int read_buffer(struct reader *r) {
    return read_numbered(r, "buffer", r->schedule->program->nbuffers, buffer_name);
}

int read_open_size(struct reader *r) {
    return read_numbered(r, "open size", r->schedule->program->nsizes, size_name);
}

int find_place(const struct schedule *s, const char *name) {
    for (int p = 0; p < s->nplaces; p++)
        if (strcmp(s->place[p].name, name) == 0) return p;
    return -1;
}

int bind_var(struct reader *r, size_t at, const char *name) {
    struct schedule *s = r->schedule;
    int v = schedule_var_named(s, name);
    if (v >= 0 && !r->bound[v]) return v;
    if (v >= 0) {
        read_fail(r, at, "'%s' is the variable of a loop around already", name);
        return -1;
    }
    GROW(r->arena, r->bound, s->nvars, r->bound_cap);
    r->bound[s->nvars] = false;
    return schedule_var(s, name);
}
