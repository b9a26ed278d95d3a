/* `-m host`: the machine of highest priority on the search path that this computer can run. */
#include "machines/tree.h"
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

struct candidate {
    const char *path, *base;
    bool stated; /* has a priority attribute: those come first */
    long priority;
};

struct candidates {
    struct candidate *at;
    int n, cap;
};

static bool is_known(const struct candidates *c, const char *base) {
    for (int i = 0; i < c->n; i++)
        if (!strcmp(c->at[i].base, base)) return true;
    return false;
}

static void add_folder(struct loader *l, struct candidates *c, const char *folder) {
    DIR *dir = opendir(folder);
    if (!dir) return;
    for (struct dirent *e; (e = readdir(dir));) {
        size_t n = strlen(e->d_name);
        if (n < 5 || strcmp(e->d_name + n - 4, ".xml") || is_known(c, e->d_name)) continue;
        const char *path = arena_printf(l->arena, "%s/%s", folder, e->d_name);
        const struct node *root = tree_peek(l, path);
        if (!root) continue;
        const char *priority = node_attr(root, "priority");
        struct candidate one = {path, arena_strdup(l->arena, e->d_name), priority != NULL,
                                priority ? strtol(priority, NULL, 10) : 0};
        if (one.priority < 0) continue;
        GROW(l->arena, c->at, c->n, c->cap);
        c->at[c->n++] = one;
    }
    closedir(dir);
}

static int best_first(const void *a, const void *b) {
    const struct candidate *x = a, *y = b;
    if (x->stated != y->stated) return x->stated ? -1 : 1;
    if (x->priority != y->priority) return x->priority > y->priority ? -1 : 1;
    return strcmp(x->base, y->base);
}

static bool is_host(const struct machine *m) {
    struct diags ignored;
    diags_init(&ignored);
    bool good = machine_runs_here(m, &ignored);
    diags_free(&ignored);
    if (!m->nfallbacks) return false;
    for (int i = 0; i < m->nfallbacks; i++)
        good = good &&
               (m->fallback[i].language == LANGUAGE_C || m->fallback[i].language == LANGUAGE_LLVM);
    return good;
}

static struct machine *try_candidate(const struct candidate *c, struct diags *d) {
    struct diags own;
    diags_init(&own);
    struct machine *m = machine_open(c->path, NULL, &own);
    if (m && !is_host(m)) {
        machine_free(m);
        m = NULL;
    }
    if (own.errors && c->stated && own.n)
        diag_warn(d, own.at[0].file, own.at[0].line, own.at[0].col, "not considered as host: %s",
                  own.at[0].text);
    diags_free(&own);
    return m;
}

struct machine *machine_host(struct diags *d) {
    const char *named = getenv("ISAMAP_HOST");
    if (named && *named) return machine_open(named, NULL, d);
    struct arena a;
    struct loader l;
    struct candidates c = {0};
    struct machine *m = NULL;
    arena_init(&a);
    loader_init(&l, &a, d);
    const char *folder;
    for (int state = 0; (folder = machine_next_folder(&a, &state));) add_folder(&l, &c, folder);
    if (c.n) qsort(c.at, (size_t)c.n, sizeof *c.at, best_first);
    for (int i = 0; i < c.n && !m; i++) m = try_candidate(&c.at[i], d);
    if (!m)
        diag_line(d, NULL, 0, 0,
                  "no machine file for this computer, expected at least a portable one in "
                  "$ISAMAP_MACHINE_PATH, ./machines or the installed share");
    loader_free(&l);
    arena_free(&a);
    return m;
}
