/* Finding and loading machine files. */
#include "machines/share.h"
#include "machines/tree.h"
#include "ir/nearest.h"
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_SWEEPS = 64 };

const char *machine_next_folder(struct arena *a, int *state) {
    const char *list = getenv("ISAMAP_MACHINE_PATH");
    int n = 0;
    for (const char *p = list ? list : ""; *p;) {
        size_t k = strcspn(p, ":");
        if (k && n++ == *state) {
            ++*state;
            return arena_strndup(a, p, k);
        }
        p += k + (p[k] == ':');
    }
    int rest = (*state)++ - n;
    return rest == 0 ? "./machines" : rest == 1 ? share_part(a, "machines") : NULL;
}

const char *machine_path(struct arena *a, const char *name) {
    bool has_suffix = strlen(name) > 4 && !strcmp(name + strlen(name) - 4, ".xml");
    if ((strchr(name, '/') || has_suffix) && !access(name, R_OK)) return arena_strdup(a, name);
    if (*name == '/') return NULL;
    const char *folder;
    for (int state = 0; (folder = machine_next_folder(a, &state));) {
        const char *path = arena_printf(a, has_suffix ? "%s/%s" : "%s/%s.xml", folder, name);
        if (!access(path, R_OK)) return path;
    }
    return NULL;
}

static bool is_set(const struct bindings *set, const char *name) {
    for (int i = 0; set && i < set->n; i++)
        if (!strcmp(set->at[i].name, name)) return true;
    return false;
}

void tree_forward(struct diags *to, const struct diags *from, const char *prefix) {
    int kept = 0;
    for (int i = 0; i < from->n; i++) {
        const struct diag *g = &from->at[i];
        int before = to->n;
        (g->warning ? diag_warn : diag_line)(to, g->file, g->line, g->col, "%s%s", prefix, g->text);
        if (g->source_line && to->n > before)
            to->at[before].source_line = arena_strdup(&to->arena, g->source_line);
        kept += !g->warning;
    }
    to->errors += from->errors - kept;
}

/* the machine again, with one parameter at one end of its range */
static void check_end(struct loader *l, const struct node *root, const struct bindings *set,
                      const char *name, int64_t value) {
    struct diags d;
    struct arena scratch;
    diags_init(&d);
    arena_init(&scratch);
    int n = set ? set->n : 0;
    struct binding *at = arena_array(&scratch, (size_t)n + 1, sizeof *at);
    if (n) memcpy(at, set->at, (size_t)n * sizeof *at);
    at[n] = (struct binding){name, value};
    struct bindings with = {at, n + 1, NULL};
    struct machine *m = machine_build(NULL, root, &with, NULL, &d);
    if (m) machine_check(m, &d);
    tree_forward(l->diags, &d, arena_printf(&scratch, "with %s=%lld: ", name, (long long)value));
    machine_free(m);
    arena_free(&scratch);
    diags_free(&d);
}

static void check_ranges(struct loader *l, const struct node *root, const struct machine *m,
                         const struct bindings *set) {
    int sweeps = 0;
    for (int i = 0; i < m->nparams && !l->diags->errors; i++) {
        const struct param *p = &m->param[i];
        if (!p->has_range || is_set(set, p->name)) continue;
        if (++sweeps > MAX_SWEEPS) {
            diag_line(l->diags, m->file, 0, 0,
                      "more than %d parameters with ranges, expected fewer", MAX_SWEEPS);
            return;
        }
        if (p->lo != p->value) check_end(l, root, set, p->name, p->lo);
        if (p->hi != p->value && p->hi != p->lo) check_end(l, root, set, p->name, p->hi);
    }
}

struct machine *machine_finish(struct loader *l, struct node *root, const struct bindings *set,
                               bool ranges) {
    struct machine *m = machine_build(l->arena, root, set, l, l->diags);
    if (!m) return NULL;
    /* the tree is in the machine's arena now, and so is what the loader still makes */
    l->arena = &m->arena;
    if (machine_check(m, l->diags) && ranges) check_ranges(l, root, m, set);
    if (!l->diags->errors) return m;
    machine_free(m);
    return NULL;
}

/* `own` collects this load's errors alone, so that earlier ones of the caller do not count */
static struct machine *load(const char *file, const char *xml, size_t length,
                            const struct bindings *set, bool ranges, struct diags *d) {
    struct arena arena;
    struct loader l;
    struct diags own;
    struct machine *m = NULL;
    arena_init(&arena);
    diags_init(&own);
    loader_init(&l, &arena, &own);
    struct node *root =
        xml ? tree_parse(&l, arena_strdup(&arena, file), xml, length) : tree_load(&l, file);
    if (root && !xml) l.parameters = parameters_load(&arena, file, &own);
    if (root && !own.errors)
        m = machine_finish(&l, root, set, ranges);
    else
        arena_free(&arena);
    loader_free(&l);
    tree_forward(d, &own, "");
    diags_free(&own);
    return m;
}

struct machine *machine_parse(const char *file, const char *xml, size_t length,
                              const struct bindings *set, struct diags *d) {
    return load(file, xml, length, set, true, d);
}

/* Names of the files on the search path, each once. */
static void add_machines(struct arena *a, struct names *known, const char *folder) {
    DIR *dir = opendir(folder);
    if (!dir) return;
    for (struct dirent *e; (e = readdir(dir));) {
        size_t n = strlen(e->d_name);
        bool is_new = n > 4 && e->d_name[0] != '.' && !strcmp(e->d_name + n - 4, ".xml");
        const char *name = is_new ? arena_strndup(a, e->d_name, n - 4) : NULL;
        for (int i = 0; i < known->n && is_new; i++) is_new = strcmp(known->at[i], name) != 0;
        if (is_new) names_add(a, known, name);
    }
    closedir(dir);
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void machine_names(struct arena *a, struct names *out) {
    const char *folder;
    for (int state = 0; (folder = machine_next_folder(a, &state));) add_machines(a, out, folder);
    if (out->n) qsort(out->at, (size_t)out->n, sizeof *out->at, by_name);
    names_add(a, out, "host");
}

void machine_missing(const char *name, struct diags *d) {
    struct names known = {0};
    machine_names(&d->arena, &known);
    if (strchr(name, '/') || (strlen(name) > 4 && !strcmp(name + strlen(name) - 4, ".xml")))
        diag_line(d, name, 0, 0, "no machine file '%s'%s", name, files_near(&d->arena, name));
    else
        diag_line(d, name, 0, 0, "no machine '%s', expected a file (./%s.xml) or %s", name, name,
                  names_listed(&d->arena, name, &known));
}

static struct machine *load_named(const char *name, const struct bindings *set, bool ranges,
                                  struct diags *d) {
    struct arena a;
    arena_init(&a);
    const char *path = machine_path(&a, name);
    struct machine *m = NULL;
    if (path)
        m = load(path, NULL, 0, set, ranges, d);
    else
        machine_missing(name, d);
    arena_free(&a);
    return m;
}

struct machine *machine_load(const char *name, const struct bindings *set, struct diags *d) {
    return load_named(name, set, true, d);
}

struct machine *machine_open(const char *name, const struct bindings *set, struct diags *d) {
    return load_named(name, set, false, d);
}
