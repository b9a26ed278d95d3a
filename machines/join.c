/* A device beside a host, as one tree: the host at the root, the device in a unit of its own, one
 * home memory for both, and for each queue of the device a token to it and one back. What the host
 * has under an id of the device is renamed. */
#include "machines/tree.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

struct side {
    struct loader loader;
    struct node *root;
    struct machine *machine;
};

/* which attributes refer to ids of which elements: "element.attribute", `*` for any element */
static const struct space {
    const char *tags, *references, *functions;
} spaces[] = {
    {"unit", "*.across sync.unit", ""},
    {"memory part",
     "*.caches *.alias operand.memory operand.also fallback.memory sync.memory move.from move.to "
     "loop.table state.of configure.clobbers",
     "base banks"},
    {"bus", "*.bus", ""},
    {"queue", "*.queue queue.with sync.from sync.to", ""},
    {"sync", "*.completes", "push pop"},
    {"state", "*.state configure.sets", "slot"},
    {"format", "*.format", ""},
    {"instruction move", "", ""},
    {"configure", "", ""},
    {"feature", "*.needs machine.code-needs", ""},
    {"param", "", ""},
};
enum { SPACES = sizeof spaces / sizeof *spaces, SPACE_MEMORY = 1, SPACE_PARAM = SPACES - 1 };

static bool has_word(const char *list, const char *word, size_t n) {
    for (const char *p = list; *(p += strspn(p, " "));) {
        size_t k = strcspn(p, " ");
        if (k == n && !strncmp(p, word, n)) return true;
        p += k;
    }
    return false;
}

static const char *find_id(const struct node *n, const struct space *s, const char *id) {
    for (int i = 0; i < n->nchildren; i++) {
        const struct node *c = n->child[i];
        const char *key = has_word(s->tags, c->tag, strlen(c->tag)) ? node_key(c) : NULL;
        if (key && !strcmp(key, id)) return key;
        if ((key = find_id(c, s, id))) return key;
    }
    return NULL;
}

/* ---- renaming ---- */

struct renaming {
    struct loader *l;
    const struct space *space;
    const char *old, *fresh;
};

static bool is_word(char c) {
    return isalnum((unsigned char)c) || c == '_';
}

/* is the name that starts at p used as an id of the space? */
static bool means_it(const struct renaming *r, const char *text, const char *p) {
    const char *q = p, *after = p + strlen(r->old);
    if (r->space == &spaces[SPACE_PARAM]) return true;
    while (isspace((unsigned char)*after)) after++;
    if (*after == '.' && !strcmp(r->space->tags, "state")) return true;
    if (*after == ':' && !strcmp(r->space->tags, "unit")) return true;
    while (q > text && isspace((unsigned char)q[-1])) q--;
    if (q == text || q[-1] != '(') return false;
    for (after = --q; q > text && is_word(q[-1]);) q--;
    return has_word(r->space->functions, q, (size_t)(after - q));
}

static const char *rename_in_text(const struct renaming *r, const char *text) {
    size_t n = strlen(r->old);
    if (!text || !strstr(text, r->old)) return text;
    struct text out = {0};
    for (const char *p = text; *p; p++) {
        bool here = !strncmp(p, r->old, n) && !is_word(p[n]) && (p == text || !is_word(p[-1])) &&
                    means_it(r, text, p);
        text_append(&out, here ? r->fresh : p, here ? strlen(r->fresh) : 1);
        if (here) p += n - 1;
    }
    const char *done = arena_strndup(r->l->arena, out.at, out.n);
    text_free(&out);
    return done;
}

static const char *rename_in_list(const struct renaming *r, const char *list) {
    struct text out = {0};
    for (const char *p = list; *(p += strspn(p, " \t\r\n"));) {
        size_t k = strcspn(p, " \t\r\n");
        bool here = k == strlen(r->old) && !strncmp(p, r->old, k);
        text_printf(&out, "%s%.*s", out.n ? " " : "", here ? (int)strlen(r->fresh) : (int)k,
                    here ? r->fresh : p);
        p += k;
    }
    const char *done = arena_strndup(r->l->arena, out.at ? out.at : "", out.n);
    text_free(&out);
    return done;
}

static bool refers(const struct space *s, const char *tag, const char *attr) {
    char any[64], one[128];
    snprintf(any, sizeof any, "*.%s", attr);
    snprintf(one, sizeof one, "%s.%s", tag, attr);
    return has_word(s->references, any, strlen(any)) || has_word(s->references, one, strlen(one));
}

static void rename_all(const struct renaming *r, struct node *n) {
    static const char untouched[] = "title id href as kind name share";
    bool defines = has_word(r->space->tags, n->tag, strlen(n->tag));
    for (int i = 0; i < n->nattrs; i++) {
        struct attr *a = &n->attr[i];
        bool key = !strcmp(a->name, strcmp(n->tag, "param") ? "id" : "name");
        if (defines && key && !strcmp(a->value, r->old))
            a->value = r->fresh;
        else if (refers(r->space, n->tag, a->name))
            a->value = rename_in_list(r, a->value);
        else if (!has_word(untouched, a->name, strlen(a->name)))
            a->value = rename_in_text(r, a->value);
    }
    if (strcmp(n->tag, "doc")) n->text = rename_in_text(r, n->text);
    for (int i = 0; i < n->nchildren; i++) rename_all(r, n->child[i]);
}

static void rename_id(struct loader *l, struct node *host, const struct node *device,
                      const struct space *s, const char *old) {
    struct renaming r = {l, s, old, arena_printf(l->arena, "host_%s", old)};
    while (find_id(host, s, r.fresh) || find_id(device, s, r.fresh))
        r.fresh = arena_printf(l->arena, "host_%s", r.fresh);
    rename_all(&r, host);
}

static void rename_collisions(struct side *host, const struct node *at, const struct node *device,
                              const char *home) {
    for (int i = 0; i < at->nchildren; i++) {
        const struct node *c = at->child[i];
        for (int k = 0; k < SPACES; k++) {
            const char *key = has_word(spaces[k].tags, c->tag, strlen(c->tag)) ? node_key(c) : NULL;
            bool is_home = key && k == SPACE_MEMORY && !strcmp(key, home);
            if (key && !is_home && find_id(device, &spaces[k], key))
                rename_id(&host->loader, host->root, device, &spaces[k], key);
        }
        rename_collisions(host, c, device, home);
    }
}

/* ---- putting together ---- */

static bool has_param(const struct node *n, const char *name) {
    return find_id(n, &spaces[SPACE_PARAM], name) != NULL;
}

/* the tree and, to ask it questions, the machine with those of the settings that are its own */
static bool load_side(struct side *s, struct arena *arena, const char *name,
                      const struct bindings *set, struct diags *d) {
    const char *path = machine_path(arena, name);
    loader_init(&s->loader, arena, d);
    if (!path) {
        machine_missing(name, d);
        return false;
    }
    s->root = tree_load(&s->loader, path);
    if (!s->root) return false;
    struct binding *at = arena_array(arena, (size_t)(set ? set->n : 0), sizeof *at);
    struct bindings own = {at, 0, NULL};
    for (int i = 0; set && i < set->n; i++)
        if (has_param(s->root, set->at[i].name)) at[own.n++] = set->at[i];
    s->machine = machine_build(NULL, s->root, &own, &s->loader, d);
    return s->machine != NULL;
}

static struct node *remove_memory(struct node *n, const char *id) {
    for (int i = 0; i < n->nchildren; i++) {
        struct node *c = n->child[i];
        if (strcmp(c->tag, "memory") || strcmp(node_attr(c, "id"), id)) continue;
        memmove(&n->child[i], &n->child[i + 1], (size_t)(n->nchildren - i - 1) * sizeof *n->child);
        n->nchildren--;
        return c;
    }
    return NULL;
}

static struct node *find_memory(struct node *n, const char *id) {
    for (int i = 0; i < n->nchildren; i++) {
        struct node *c = n->child[i];
        if (!strcmp(c->tag, "memory") && !strcmp(node_attr(c, "id"), id)) return c;
        if ((c = find_memory(c, id))) return c;
    }
    return NULL;
}

/* what either side asks of the memory that they share: the smaller size, the larger alignment, the
 * device's energy */
static void share_home(struct loader *l, struct node *home, const struct memory *device,
                       const struct memory *host) {
    if (device->size >= 0 && (host->size < 0 || device->size < host->size))
        node_set(l, home, "size", arena_printf(l->arena, "%lld", (long long)device->size));
    if (device->align > host->align)
        node_set(l, home, "align", arena_printf(l->arena, "%lld", (long long)device->align));
    if (device->energy_read > 0 && host->energy_read <= 0)
        node_set(l, home, "energy-read", arena_printf(l->arena, "%.17g", device->energy_read));
    if (device->energy_write > 0 && host->energy_write <= 0)
        node_set(l, home, "energy-write", arena_printf(l->arena, "%.17g", device->energy_write));
}

static void add_bell(struct loader *l, struct node *root, double latency, const char *name,
                     const char *from, const char *to, const char *queue) {
    struct node *s = node_new(l, "sync", root->file, root->line, 0);
    node_set(l, s, "id", arena_printf(l->arena, "%s.%s", name, queue));
    node_set(l, s, "kind", "token");
    node_set(l, s, "from", from);
    node_set(l, s, "to", to);
    node_set(l, s, "depth", "1");
    node_set(l, s, "latency", arena_printf(l->arena, "%.17g", latency));
    node_add(l, root, s);
}

static bool can_join(const struct side *device, const struct side *host, struct diags *d) {
    const struct machine *v = device->machine, *h = host->machine;
    if (!machine_needs_host(v))
        diag_line(d, v->file, 0, 0,
                  "machine '%s' has a fallback of its own, expected a device without one", v->name);
    else if (!h->nfallbacks || h->fallback[0].queue < 0)
        diag_line(d, h->file, 0, 0,
                  "machine '%s' cannot be a host, expected a fallback with a queue", h->name);
    else if (v->memory[v->home].unit != 0)
        diag_line(
            d, v->file, v->memory[v->home].at.line, 0,
            "memory '%s' of device '%s' is inside a unit, expected the shared one at the root",
            v->memory[v->home].id, v->name);
    else
        return true;
    return false;
}

static void join(struct side *host, struct side *device) {
    struct loader *l = &host->loader;
    const struct machine *v = device->machine, *h = host->machine;
    const char *home = h->memory[h->home].id, *shared = v->memory[v->home].id;
    rename_collisions(host, host->root, device->root, home);
    const char *queue = h->queue[h->fallback[0].queue].id;
    if (find_id(device->root, &spaces[3], queue)) queue = arena_printf(l->arena, "host_%s", queue);
    if (strcmp(home, shared)) {
        struct renaming r = {l, &spaces[SPACE_MEMORY], home, shared};
        rename_all(&r, host->root);
    }
    remove_memory(device->root, shared);
    share_home(l, find_memory(host->root, shared), &v->memory[v->home], &h->memory[h->home]);
    struct node *unit = node_new(l, "unit", device->root->file, device->root->line, 0);
    const char *id = "device";
    while (find_id(host->root, &spaces[0], id) || find_id(device->root, &spaces[0], id))
        id = arena_printf(l->arena, "%s_", id);
    node_set(l, unit, "id", id);
    node_set(l, unit, "clock", arena_printf(l->arena, "%.17g", v->clock));
    node_set(l, unit, "fetch", arena_printf(l->arena, "%.17g", v->unit[0].fetch));
    tree_flatten(l, device->root, device->root, &v->params);
    for (int i = 0; i < device->root->nchildren; i++) node_add(l, unit, device->root->child[i]);
    node_add(l, host->root, unit);
    for (int q = 0; q < v->nqueues; q++) {
        add_bell(l, host->root, h->doorbell, "bell", queue, v->queue[q].id, v->queue[q].id);
        add_bell(l, host->root, h->doorbell, "done", v->queue[q].id, queue, v->queue[q].id);
        for (int k = 0; k < h->nqueues; k++) { /* the host's instructions in other queues */
            if (k == h->fallback[0].queue) continue;
            const char *other = h->queue[k].id;
            if (find_id(device->root, &spaces[3], other))
                other = arena_printf(l->arena, "host_%s", other);
            const char *both = arena_printf(l->arena, "%s.%s", v->queue[q].id, other);
            add_bell(l, host->root, h->doorbell, "bell", other, v->queue[q].id, both);
            add_bell(l, host->root, h->doorbell, "done", v->queue[q].id, other, both);
        }
    }
    static const char *const needs[] = {"needs", "code-needs"};
    const char *more = node_attr(device->root, "needs");
    for (int k = 0; k < 2 && more; k++) {
        const char *own = node_attr(host->root, needs[k]);
        if (own || k == 0)
            node_set(l, host->root, needs[k],
                     own ? arena_printf(l->arena, "%s %s", own, more) : more);
    }
    node_set(l, host->root, "name", v->name);
    if (v->model) node_set(l, host->root, "model", v->model);
    if (v->model) node_set(l, host->root, "model-of", v->model_of);
    node_set(l, host->root, "title", arena_printf(l->arena, "%s, beside %s", v->title, h->name));
    host->root->file = device->root->file;
    host->root->line = device->root->line;
}

static const char *host_name(struct arena *a, const char *host, struct diags *d) {
    if (host && strcmp(host, "host")) return host;
    struct machine *m = machine_host(d);
    const char *path = m ? arena_strdup(a, m->file) : NULL;
    machine_free(m);
    return path;
}

struct machine *machine_join(const char *device, const char *host, const struct bindings *set,
                             struct diags *d) {
    struct arena arena;
    struct diags own;
    struct side h = {0}, v = {0};
    struct machine *m = NULL;
    arena_init(&arena);
    diags_init(&own);
    host = host_name(&arena, host, &own);
    bool good = host && load_side(&v, &arena, device, set, &own) &&
                load_side(&h, &arena, host, set, &own) && can_join(&v, &h, &own);
    if (good) {
        join(&h, &v);
        machine_free(h.machine);
        machine_free(v.machine);
        m = machine_finish(&h.loader, h.root, set, false);
    } else {
        machine_free(h.machine);
        machine_free(v.machine);
        arena_free(&arena);
    }
    loader_free(&h.loader);
    loader_free(&v.loader);
    tree_forward(d, &own, "");
    diags_free(&own);
    return m;
}
