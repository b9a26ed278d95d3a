/* include, for, remove, and merging of elements with one id (docs/machine-format.md,
 * "Composition"). */
#include "machines/tree.h"
#include <ctype.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_INCLUDE_DEPTH = 16, MAX_INCLUDES = 256, TREE_LIMIT = 64 << 20, MAX_SIBLINGS = 10000 };
enum { MAX_ROWS = 100000 }; /* of all `for` of a machine together, those inside counted each time */

static bool merge(struct loader *, struct node *dst, struct node *child);

static bool too_big(struct loader *l, const struct node *at) {
    if (l->bytes <= TREE_LIMIT) return false;
    diag_line(l->diags, at->file, at->line, 0,
              "the machine grows beyond %d MiB here, expected fewer repetitions", TREE_LIMIT >> 20);
    return true;
}

/* ---- for ---- */

struct row {
    const char **name, **value;
    int n;
};

static const char *substitute(struct loader *l, const char *text, const struct row *row) {
    if (!text || !strstr(text, "$(")) return text;
    struct text out = {0};
    for (const char *p = text; *p;) {
        int hit = -1;
        for (int i = 0; i < row->n && hit < 0 && p[0] == '$' && p[1] == '('; i++) {
            size_t k = strlen(row->name[i]);
            if (!strncmp(p + 2, row->name[i], k) && p[2 + k] == ')') hit = i;
        }
        if (hit < 0) {
            size_t k = 1 + strcspn(p + 1, "$");
            text_append(&out, p, k);
            p += k;
        } else {
            text_append(&out, row->value[hit], strlen(row->value[hit]));
            p += strlen(row->name[hit]) + 3;
        }
    }
    char *done = arena_strndup(l->arena, out.at ? out.at : "", out.n);
    l->bytes += out.n;
    text_free(&out);
    return done;
}

static struct node *copy_with(struct loader *l, const struct node *n, const struct row *row) {
    struct node *c = node_new(l, n->tag, n->file, n->line, n->depth);
    c->nattrs = n->nattrs;
    c->attr = arena_array(l->arena, (size_t)n->nattrs, sizeof *c->attr);
    l->bytes += (size_t)n->nattrs * sizeof *c->attr;
    for (int i = 0; i < n->nattrs; i++)
        c->attr[i] =
            (struct attr){n->attr[i].name, substitute(l, n->attr[i].value, row), n->attr[i].line};
    c->text = substitute(l, n->text, row);
    c->text_line = n->text_line;
    c->text_col = n->text_col;
    if (l->bytes <= TREE_LIMIT)
        for (int i = 0; i < n->nchildren; i++) node_add(l, c, copy_with(l, n->child[i], row));
    return c;
}

static int split(struct loader *l, const char *text, const char *separators, const char ***out) {
    int n = 0, cap = 0;
    *out = NULL;
    for (const char *p = text; *(p += strspn(p, separators));) {
        size_t k = strcspn(p, separators);
        GROW(l->arena, *out, n, cap);
        (*out)[n++] = arena_strndup(l->arena, p, k);
        p += k;
    }
    return n;
}

static bool too_many_rows(struct loader *l, const struct node *n) {
    if (++l->rows <= MAX_ROWS) return false;
    diag_line(l->diags, n->file, n->line, 0,
              "'for' has more than %d rows here, those of every 'for' of the machine counted, "
              "expected fewer",
              MAX_ROWS);
    return true;
}

static bool expand_for(struct loader *l, struct node *dst, const struct node *n) {
    static const char space[] = " \t\r\n";
    struct row row;
    row.n = split(l, node_attr(n, "each"), space, &row.name);
    const char *p = node_attr(n, "in");
    for (int number = 1;; number++) {
        if (too_many_rows(l, n)) return false;
        size_t k = strcspn(p, ";");
        int got = split(l, arena_strndup(l->arena, p, k), space, &row.value);
        if (got != row.n) {
            diag_line(l->diags, n->file, node_attr_line(n, "in"), 0,
                      "row %d of 'for' has %d values, expected %d for '%s'", number, got, row.n,
                      node_attr(n, "each"));
            return false;
        }
        for (int i = 0; i < n->nchildren; i++) {
            if (too_big(l, n)) return false;
            struct node *c = copy_with(l, n->child[i], &row);
            if (!merge(l, dst, c)) return false;
        }
        if (!p[k]) return true;
        p += k + 1;
    }
}

/* ---- include ---- */

/* A path is relative to the file that it stands in. */
static const char *beside_file(struct loader *l, const struct node *n, const char *attr) {
    const char *path = node_attr(n, attr);
    char *dir = dirname(arena_strdup(l->arena, n->file));
    return *path == '/' ? path : arena_printf(l->arena, "%s/%s", dir, path);
}

static void set_model(struct loader *l, struct node *root, const struct node *from) {
    node_set(l, root, "model", beside_file(l, from, "model"));
    node_set(l, root, "model-of", from->file);
}

static const char *include_path(struct loader *l, const struct node *n) {
    const char *href = node_attr(n, "href");
    if (*href == '/') return href;
    char *dir = dirname(arena_strdup(l->arena, n->file));
    const char *beside = !strcmp(dir, ".") && strncmp(n->file, "./", 2)
                             ? href
                             : arena_printf(l->arena, "%s/%s", dir, href);
    if (!access(beside, R_OK)) return beside;
    const char *found = machine_path(l->arena, href);
    return found ? found : beside;
}

static struct node *read_included(struct loader *l, const struct node *n, const char *path) {
    char real[PATH_MAX];
    if (access(path, R_OK) || !realpath(path, real)) {
        diag_line(l->diags, n->file, node_attr_line(n, "href"), 0,
                  "cannot read '%s', expected a machine file beside this one or on the search path",
                  node_attr(n, "href"));
        return NULL;
    }
    for (int i = 0; i < l->nstack; i++)
        if (!strcmp(l->stack[i], real)) {
            diag_line(l->diags, n->file, n->line, 0, "'%s' includes itself, expected no cycle",
                      node_attr(n, "href"));
            return NULL;
        }
    if (l->nstack >= MAX_INCLUDE_DEPTH || ++l->nincludes > MAX_INCLUDES) {
        diag_line(l->diags, n->file, n->line, 0,
                  "too many includes, expected at most %d within each other and %d in all",
                  MAX_INCLUDE_DEPTH, MAX_INCLUDES);
        return NULL;
    }
    l->stack[l->nstack++] = arena_strdup(l->arena, real);
    size_t length;
    char *xml = file_read(l->arena, path, 8 << 20, &length, l->diags);
    return xml ? tree_read(l, path, xml, length, n->depth + 1) : NULL;
}

static bool shared_id(const char **ids, bool *used, int n, const struct node *c) {
    const char *id = node_attr(c, "id");
    for (int i = 0; i < n; i++)
        if (id && !strcmp(ids[i], id)) return used[i] = true;
    return false;
}

static bool include_body(struct loader *l, struct node *dst, const struct node *n,
                         const struct node *file) {
    const char **ids, *share = node_attr(n, "share");
    int nids = split(l, share ? share : "", " \t\r\n", &ids);
    bool *used = arena_array(l->arena, (size_t)nids, sizeof *used);
    for (int i = 0; i < file->nchildren; i++)
        if (!shared_id(ids, used, nids, file->child[i]) && !merge(l, dst, file->child[i]))
            return false;
    for (int i = 0; i < nids; i++) {
        if (!used[i]) {
            diag_line(l->diags, n->file, node_attr_line(n, "share"), 0,
                      "'%s' has no element '%s' to share, expected an id at its root",
                      node_attr(n, "href"), ids[i]);
            return false;
        }
        GROW(l->arena, l->share, l->nshares, l->share_cap);
        l->share[l->nshares++] = (struct share){ids[i], n->file, n->line};
    }
    return true;
}

static bool expand_include(struct loader *l, struct node *dst, const struct node *n) {
    int outside = l->nstack;
    struct node *file = read_included(l, n, include_path(l, n));
    if (!file) {
        l->nstack = outside;
        return false;
    }
    const char *needs = node_attr(file, "needs"), *own = node_attr(l->root, "needs"),
               *clock = node_attr(file, "clock");
    if (needs)
        node_set(l, l->root, "needs", own ? arena_printf(l->arena, "%s %s", own, needs) : needs);
    if (clock && !node_attr(dst, "clock")) node_set(l, dst, "clock", clock);
    if (node_attr(file, "fetch") && !node_attr(dst, "fetch"))
        node_set(l, dst, "fetch", node_attr(file, "fetch"));
    if (node_attr(file, "model") && !node_attr(l->root, "model")) set_model(l, l->root, file);
    bool good = include_body(l, dst, n, file);
    l->nstack = outside;
    return good;
}

/* ---- merging ---- */

static bool same_space(const struct node *a, const struct node *b) {
    return !strcmp(a->tag, "param") == !strcmp(b->tag, "param");
}

static int find_key(const struct node *dst, const struct node *child) {
    const char *key = node_key(child);
    for (int i = 0; key && i < dst->nchildren; i++) {
        const char *other = node_key(dst->child[i]);
        if (other && !strcmp(other, key) && same_space(dst->child[i], child)) return i;
    }
    return -1;
}

static bool expand_remove(struct loader *l, struct node *dst, const struct node *n) {
    const char *id = node_attr(n, "id");
    int kept = 0, before = dst->nchildren;
    for (int i = 0; i < before; i++) {
        const char *other = node_attr(dst->child[i], "id");
        if (!other || strcmp(other, id)) dst->child[kept++] = dst->child[i];
    }
    dst->nchildren = kept;
    if (kept < before) return true;
    diag_line(l->diags, n->file, n->line, 0,
              "nothing to remove with id '%s', expected an earlier element here", id);
    return false;
}

static bool merge_unit(struct loader *l, struct node *dst, int at, const struct node *n) {
    struct node *u;
    if (at < 0) {
        u = node_new(l, n->tag, n->file, n->line, n->depth);
        node_add(l, dst, u);
    } else {
        u = dst->child[at];
    }
    for (int i = 0; i < n->nattrs; i++)
        if (!node_attr(u, n->attr[i].name) || n->depth <= u->depth)
            node_set(l, u, n->attr[i].name, n->attr[i].value);
    for (int i = 0; i < n->nchildren; i++)
        if (!merge(l, u, n->child[i])) return false;
    return true;
}

static bool merge(struct loader *l, struct node *dst, struct node *n) {
    if (too_big(l, n)) return false;
    if (dst->nchildren >= MAX_SIBLINGS) {
        diag_line(l->diags, n->file, n->line, 0,
                  "more than %d elements in one place, expected fewer", MAX_SIBLINGS);
        return false;
    }
    if (!strcmp(n->tag, "for")) return expand_for(l, dst, n);
    if (!strcmp(n->tag, "include")) return expand_include(l, dst, n);
    if (!strcmp(n->tag, "remove")) return expand_remove(l, dst, n);
    int at = find_key(dst, n);
    struct node *old = at < 0 ? NULL : dst->child[at];
    if (!strcmp(n->tag, "unit") && (!old || !strcmp(old->tag, "unit")))
        return merge_unit(l, dst, at, n);
    if (!old) {
        node_add(l, dst, n);
        return true;
    }
    if (strcmp(old->tag, n->tag)) {
        diag_line(l->diags, n->file, n->line, 0,
                  "%s '%s': the id is taken by the %s at %s:%d, expected another", n->tag,
                  node_key(n), old->tag, old->file, old->line);
        return false;
    }
    if (old->depth <= n->depth) {
        diag_line(l->diags, n->file, n->line, 0,
                  "%s '%s' is defined twice, first at %s:%d, expected one (only an included "
                  "element may be replaced, by a later one)",
                  n->tag, node_key(n), old->file, old->line);
        return false;
    }
    dst->child[at] = n;
    return true;
}

/* ---- what code needs ---- */

/* Does every fallback come from files that are included, of which there is one at least? */
static bool adds_to_host(const struct node *n, int depth, bool *any) {
    bool included = strcmp(n->tag, "fallback") != 0 || n->depth > depth;
    *any |= !strcmp(n->tag, "fallback");
    for (int i = 0; i < n->nchildren && included; i++)
        included = adds_to_host(n->child[i], depth, any);
    return included;
}

static void add_needs(struct loader *l, struct node *n, int depth, const char *needs) {
    static const char *const tags[] = {"instruction", "move", "begin", "end"};
    const char *own = node_attr(n, "needs");
    for (size_t t = 0; t < sizeof tags / sizeof *tags; t++)
        if (n->depth == depth && !strcmp(n->tag, tags[t]))
            node_set(l, n, "needs", own ? arena_printf(l->arena, "%s %s", own, needs) : needs);
    for (int i = 0; i < n->nchildren; i++) add_needs(l, n->child[i], depth, needs);
}

/* What a file needs that adds to a whole host, what it adds needs; all other code runs without. */
static void share_needs(struct loader *l, struct node *out, const char *own) {
    bool host = false;
    if (!own || !adds_to_host(out, out->depth, &host) || !host) return;
    node_set(l, out, "code-needs", node_attr(out, "needs") + strlen(own));
    for (int i = 0; i < out->nchildren; i++) add_needs(l, out->child[i], out->depth, own);
}

bool tree_expand(struct loader *l, struct node *raw, struct node *out) {
    for (int i = 0; i < raw->nattrs; i++) node_set(l, out, raw->attr[i].name, raw->attr[i].value);
    if (node_attr(raw, "model")) set_model(l, out, raw);
    for (int i = 0; i < raw->nattrs; i++) out->attr[i].line = raw->attr[i].line;
    bool good = true;
    for (int i = 0; i < raw->nchildren; i++) good = merge(l, out, raw->child[i]) && good;
    if (good) share_needs(l, out, node_attr(raw, "needs"));
    return good && !l->diags->errors;
}
