/* What the search found on a statement, for statements that are equal in all that it looks at:
 * layers of a network, and whatever stays as it was while other answers or rewrites are tried. Axes
 * are known by their order, buffers by their first mention; of the rest of the program counts what
 * the search asks about it. */
#include "mapper/mapper_int.h"

#include <string.h>

enum { BUCKETS = 1024 };

struct known_pair { /* of one instruction; axes are counted as the key has them */
    const struct mapping *mapping;
    const struct failure *failure;
    int nmappings, nfailures;
    int64_t steps;
};

struct known_site {
    struct known_site *next;
    uint64_t hash;
    int64_t *word; /* the key */
    int n, cap;
    struct known_pair **pair; /* of each needle; NULL: not searched yet */
};

struct known_sites {
    struct known_site *bucket[BUCKETS];
};

/* ---- the key ---- */

struct writer {
    struct arena *arena;
    const struct site *site;
    struct known_site *to;
    int *buffer, nbuffers, cap; /* mentioned so far */
    bool names;                 /* failures are sentences with names */
};

static void put(struct writer *k, int64_t v) {
    struct known_site *to = k->to;
    GROW(k->arena, to->word, to->n, to->cap);
    to->word[to->n++] = v;
    to->hash = (to->hash ^ (uint64_t)v) * UINT64_C(0x9e3779b97f4a7c15);
    to->hash ^= to->hash >> 29;
}

static void put_double(struct writer *k, double x) {
    int64_t bits;
    memcpy(&bits, &x, sizeof bits);
    put(k, bits);
}

static void put_name(struct writer *k, const char *s) {
    for (; k->names && *s; s++) put(k, *s);
    put(k, 0);
}

static int axis_rank(const struct site *site, int axis) {
    return __builtin_popcountll(site->mentioned & ((UINT64_C(1) << axis) - 1));
}

static int axis_ranked(const struct site *site, int rank) {
    uint64_t left = site->mentioned;
    while (rank-- > 0) left &= left - 1;
    return __builtin_ctzll(left);
}

static void put_axes(struct writer *k, uint64_t mask) {
    uint64_t ranked = 0;
    for (; mask; mask &= mask - 1)
        ranked |= UINT64_C(1) << axis_rank(k->site, __builtin_ctzll(mask));
    put(k, (int64_t)ranked);
}

static void put_buffer(struct writer *k, int buffer) {
    const struct program *p = k->site->program;
    const struct buffer *b = &p->buffer[buffer];
    int i = 0;
    while (i < k->nbuffers && k->buffer[i] != buffer) i++;
    put(k, i);
    if (i < k->nbuffers) return;
    GROW(k->arena, k->buffer, k->nbuffers, k->cap);
    k->buffer[k->nbuffers++] = buffer;
    put(k, b->role);
    put(k, b->type);
    put(k, buffer_steady(p, buffer));
    put(k, b->ndims);
    for (int d = 0; d < b->ndims; d++) put(k, b->extent[d]);
    put_name(k, b->name);
}

static void put_access(struct writer *k, const struct access *a) {
    const struct program *p = k->site->program;
    put_buffer(k, a->buffer);
    for (int d = 0; d < p->buffer[a->buffer].ndims; d++) {
        for (uint64_t left = k->site->mentioned; left; left &= left - 1)
            put(k, access_coef(p, a, d, __builtin_ctzll(left)));
        put(k, access_coef(p, a, d, p->naxes));
    }
    put(k, a->has_fill);
    if (a->has_fill) put(k, a->fill.i);
}

static void put_node(struct writer *k, const struct term_node *x) {
    put(k, x->code);
    put(k, x->type);
    for (int i = 0; i < x->nargs; i++) put(k, x->arg[i]);
    put(k, x->read);
    put(k, x->acc | x->constant << 1 | x->made << 2 | x->range.wraps << 3);
    if (x->constant) put(k, x->value.i);
    put_axes(k, x->axes);
    put(k, x->origin);
    put_double(k, x->range.lo);
    put_double(k, x->range.hi);
    put(k, x->range.grain);
}

static void put_site(struct writer *k) {
    const struct site *site = k->site;
    const struct program *p = site->program;
    const struct stmt *s = site->s;
    put_axes(k, s->axes);
    for (uint64_t left = site->mentioned; left; left &= left - 1) {
        const struct axis *a = &p->axis[__builtin_ctzll(left)];
        put(k, a->extent);
        put(k, a->sequential);
        put_name(k, a->name);
    }
    put(k, s->combine);
    put(k, s->scope > 0);
    put(k, stmt_is_mac(p, s));
    put(k, stmt_continued(p, site->stmt));
    put(k, init_of(p, site->stmt) >= 0);
    put_access(k, &s->dst);
    put(k, s->nreads);
    for (int r = 0; r < s->nreads; r++) {
        put_access(k, &s->read[r]);
        put(k, read_in_place(site, r));
    }
    put(k, site->term.accumulates);
    put(k, site->term.root);
    put(k, site->term.n);
    for (int i = 0; i < site->term.n; i++) put_node(k, &site->term.at[i]);
    put(k, k->names ? site->stmt : -1);
    put(k, k->names ? site->said : -1);
}

static uint64_t mentioned_axes(const struct program *p, const struct stmt *s) {
    uint64_t all = s->axes;
    for (int r = -1; r < s->nreads; r++)
        for (int a = 0; a < p->naxes; a++)
            if (access_varies(p, r < 0 ? &s->dst : &s->read[r], a)) all |= UINT64_C(1) << a;
    for (int i = 0; i < s->nops; i++)
        if (s->op[i].code == OP_AXIS) all |= UINT64_C(1) << s->op[i].axis;
    return all;
}

void site_recall(const struct search *s, struct site *site) {
    struct needles *all = s->needles->kept;
    struct known_site key = {.hash = 1};
    struct arena scratch;
    if (s->explain || s->totals || site->s->nwhere > 0) return;
    arena_init(&scratch);
    site->mentioned = mentioned_axes(site->program, site->s);
    struct writer k = {.arena = &scratch, .site = site, .to = &key, .names = !s->unasked};
    put(&k, s->all | k.names << 1);
    put_site(&k);
    if (!all->sites) all->sites = arena_alloc(&all->arena, sizeof *all->sites);
    struct known_site **at = &all->sites->bucket[key.hash % BUCKETS], *x = *at;
    while (x && (x->hash != key.hash || x->n != key.n ||
                 memcmp(x->word, key.word, sizeof *key.word * (size_t)key.n) != 0))
        x = x->next;
    if (!x) {
        x = arena_copy(&all->arena, &key, sizeof key);
        x->word = arena_copy(&all->arena, key.word, sizeof *key.word * (size_t)key.n);
        x->pair = arena_array(&all->arena, (size_t)all->n + 1, sizeof *x->pair);
        x->next = *at;
        *at = x;
    }
    site->known = x;
    arena_free(&scratch);
}

/* ---- what was found ---- */

/* The arrays of its own: mappings are told apart by their groups. */
static struct mapping mapping_copied(struct arena *a, const struct site *site,
                                     const struct mapping *m, bool back) {
    struct mapping copy = *m;
    copy.group = arena_copy(a, m->group, (size_t)m->ngroups * sizeof *m->group);
    copy.operand = arena_copy(a, m->operand, (size_t)m->noperands * sizeof *m->operand);
    for (int x = 0; x < m->ngroups; x++)
        for (int i = 0; i < m->group[x].n; i++) {
            int *axis = &copy.group[x].axis[i];
            *axis = back ? axis_ranked(site, *axis) : axis_rank(site, *axis);
        }
    copy.stmt = site->stmt;
    if (back && m->init >= 0) copy.init = init_of(site->program, site->stmt);
    return copy;
}

static struct failure failure_copied(struct arena *a, const struct site *site,
                                     const struct failure *f, bool back) {
    struct failure copy = *f;
    if (f->stmt_axis >= 0)
        copy.stmt_axis = back ? axis_ranked(site, f->stmt_axis) : axis_rank(site, f->stmt_axis);
    if (f->expected) copy.expected = arena_strdup(a, f->expected);
    if (f->got) copy.got = arena_strdup(a, f->got);
    if (f->reason) copy.reason = arena_strdup(a, f->reason);
    return copy;
}

bool pair_recall(struct search *s, const struct needle *n, const struct site *site) {
    const struct known_pair *k = site->known ? site->known->pair[n - s->needles->at] : NULL;
    if (!k || s->bounded || s->steps + k->steps > s->limit) return false;
    s->steps += k->steps;
    for (int i = 0; i < k->nmappings; i++) {
        GROW(s->arena, s->mapping, s->nmappings, s->cap);
        s->mapping[s->nmappings++] = mapping_copied(s->arena, site, &k->mapping[i], true);
    }
    for (int i = 0; i < k->nfailures; i++) {
        GROW(s->arena, s->failure, s->nfailures, s->fcap);
        s->failure[s->nfailures++] = failure_copied(s->arena, site, &k->failure[i], true);
    }
    return true;
}

void pair_keep(struct search *s, const struct needle *n, const struct site *site, int mappings,
               int failures, int64_t steps) {
    struct arena *a = &s->needles->kept->arena;
    if (!site->known || s->bounded) return;
    struct known_pair *k = arena_alloc(a, sizeof *k);
    k->nmappings = s->nmappings - mappings;
    k->nfailures = s->nfailures - failures;
    k->steps = s->steps - steps;
    struct mapping *m = arena_array(a, (size_t)k->nmappings + 1, sizeof *m);
    struct failure *f = arena_array(a, (size_t)k->nfailures + 1, sizeof *f);
    for (int i = 0; i < k->nmappings; i++)
        m[i] = mapping_copied(a, site, &s->mapping[mappings + i], false);
    for (int i = 0; i < k->nfailures; i++)
        f[i] = failure_copied(a, site, &s->failure[failures + i], false);
    k->mapping = m;
    k->failure = f;
    site->known->pair[n - s->needles->at] = k;
}
