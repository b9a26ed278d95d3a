/* A machine's own file of parameters: what `isamap calibrate` measured on this computer. One
 * `NAME = VALUE` a line, `#` starts a comment. */
#include "machines/tree.h"
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *base_name(struct arena *a, const char *machine_file) {
    const char *slash = strrchr(machine_file, '/'), *name = slash ? slash + 1 : machine_file;
    size_t n = strlen(name);
    if (n > 4 && !strcmp(name + n - 4, ".xml")) n -= 4;
    return arena_printf(a, "%.*s.params", (int)n, name);
}

/* NULL: none is known. */
static const char *parameters_folder(struct arena *a) {
    const char *own = getenv("ISAMAP_PARAMETERS"), *config = getenv("XDG_CONFIG_HOME"),
               *home = getenv("HOME");
    if (own && *own) return arena_strdup(a, own);
    if (config && *config == '/') return arena_printf(a, "%s/isamap", config);
    return home && *home ? arena_printf(a, "%s/.config/isamap", home) : NULL;
}

char *parameters_path(struct arena *a, const char *machine_file) {
    const char *folder = parameters_folder(a);
    return folder ? arena_printf(a, "%s/%s", folder, base_name(a, machine_file)) : NULL;
}

/* Where the file is: in the folder that the environment names, else in the user's configuration,
 * else beside the machine file. */
static const char *find(struct arena *a, const char *machine_file) {
    const char *own = getenv("ISAMAP_PARAMETERS"), *path = parameters_path(a, machine_file);
    if (path && !access(path, R_OK)) return path;
    if (own && *own) return NULL;
    const char *slash = strrchr(machine_file, '/');
    path = arena_printf(a, "%.*s%s", slash ? (int)(slash + 1 - machine_file) : 0, machine_file,
                        base_name(a, machine_file));
    return access(path, R_OK) ? NULL : path;
}

struct reader {
    const char *file, *line;
    int number;
    struct diags *diags;
};

static bool wrong(const struct reader *r, const char *at, int n, const char *what) {
    diag_line(r->diags, r->file, r->number, (int)(at - r->line) + 1, "'%.*s' %s", n, at, what);
    return false;
}

static const char *blanks(const char *p) {
    return p + strspn(p, " \t\r");
}

static int word(const char *p) {
    int n = 0;
    while (isalnum((unsigned char)p[n]) || p[n] == '_') n++;
    return n;
}

static bool read_line(struct arena *a, struct reader *r, struct parameters *out) {
    const char *p = blanks(r->line), *name = p;
    if (!*p || *p == '#') return true;
    int n = word(p);
    if (!n || isdigit((unsigned char)*p))
        return wrong(r, p, (int)strcspn(p, " \t\r"), "is no name, expected NAME = NUMBER");
    p = blanks(p + n);
    if (*p != '=') return wrong(r, name, n, "has no value, expected NAME = NUMBER");
    const char *number = p = blanks(p + 1);
    char *end;
    errno = 0;
    long long v = strtoll(p, &end, 10);
    p = blanks(end);
    if (end == number || errno || (*p && *p != '#'))
        return wrong(r, number, (int)strcspn(number, "\r#"), "is no number, expected an integer");
    for (int i = 0; i < out->n; i++)
        if (!strncmp(out->at[i].name, name, (size_t)n) && !out->at[i].name[n])
            return wrong(r, name, n, "is given twice, expected each parameter once");
    GROW(a, out->at, out->n, out->cap);
    out->at[out->n++] = (struct parameter){arena_strndup(a, name, (size_t)n), v, r->number,
                                           (int)(name - r->line) + 1};
    return true;
}

struct parameters *parameters_load(struct arena *a, const char *machine_file, struct diags *d) {
    const char *file = find(a, machine_file);
    size_t length;
    if (!file) return NULL;
    char *text = file_read(a, file, 1u << 16, &length, d);
    struct parameters *p = arena_alloc(a, sizeof *p);
    *p = (struct parameters){.file = file};
    struct reader r = {file, NULL, 0, d};
    for (char *line = text, *next; line; line = next) {
        next = strchr(line, '\n');
        if (next) *next++ = 0;
        r.line = line;
        r.number++;
        if (!read_line(a, &r, p)) break;
    }
    return p;
}

const struct parameter *parameter_of(const struct parameters *p, const char *name) {
    for (int i = 0; p && i < p->n; i++)
        if (!strcmp(p->at[i].name, name)) return &p->at[i];
    return NULL;
}
