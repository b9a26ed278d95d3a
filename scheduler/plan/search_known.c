/* Searches that were made, for nests that are equal: layers of a network, members of groups that
 * repeat, statements that stay as they were while other mappings are tried. What is remembered has
 * no pointer to the nest that it was found for. */
#include "scheduler/plan/search_known.h"
#include "scheduler/plan/moves.h"
#include "scheduler/scheduler.h"
#include <string.h>

enum { FIRST_BUCKETS = 64, FIRST_COSTS = 512, MOST_COSTS = 1 << 14 };

struct known_searches {
    struct arena arena;
    struct known_search **bucket;
    int nbuckets, n;
    struct effort effort;
    struct memo *times;
    struct moves moves;
    bool moves_known;
};

struct known_searches *known_open(void) {
    struct arena arena;
    arena_init(&arena);
    struct known_searches *k = arena_alloc(&arena, sizeof *k);
    k->arena = arena;
    k->nbuckets = FIRST_BUCKETS;
    k->bucket = arena_array(&k->arena, (size_t)k->nbuckets, sizeof *k->bucket);
    return k;
}

void known_close(struct known_searches *k) {
    if (!k) return;
    for (int i = 0; i < k->moves.n; i++) program_free(k->moves.at[i].needle->bound);
    struct arena arena = k->arena; /* it lies there itself */
    arena_free(&arena);
}

struct effort *known_effort(struct known_searches *k) {
    return &k->effort;
}

struct arena *known_arena(struct known_searches *k) {
    return &k->arena;
}

struct memo *known_times(struct known_searches *k) {
    if (!k->times) k->times = memo_new(&k->arena);
    return k->times;
}

const struct moves *known_moves(struct known_searches *k, struct work *w) {
    if (!k->moves_known) k->moves = moves_find(w, &k->arena);
    k->moves_known = true;
    return &k->moves;
}

static bool same_key(const struct nest_key *a, const struct nest_key *b) {
    return a->n == b->n && a->hash == b->hash &&
           memcmp(a->word, b->word, sizeof *a->word * (size_t)a->n) == 0;
}

struct known_search *known_find(const struct known_searches *k, const struct nest_key *key,
                                int64_t steps) {
    struct known_search *s = k->bucket[key->hash % (uint64_t)k->nbuckets];
    while (s && !(same_key(&s->key, key) &&
                  (s->steps == steps || (s->enough <= s->steps && s->enough <= steps))))
        s = s->next;
    return s;
}

static void grow(struct known_searches *k) {
    int n = k->nbuckets * 2;
    struct known_search **bucket = arena_array(&k->arena, (size_t)n, sizeof *bucket);
    for (int i = 0; i < k->nbuckets; i++)
        for (struct known_search *s = k->bucket[i], *next; s; s = next) {
            next = s->next;
            s->next = bucket[s->key.hash % (uint64_t)n];
            bucket[s->key.hash % (uint64_t)n] = s;
        }
    k->bucket = bucket;
    k->nbuckets = n;
}

struct known_search *known_add(struct known_searches *k, const struct nest_key *key) {
    if (k->n >= k->nbuckets) grow(k);
    struct known_search *s = arena_alloc(&k->arena, sizeof *s),
                        **bucket = &k->bucket[key->hash % (uint64_t)k->nbuckets];
    s->key = *key;
    s->key.word = arena_copy(&k->arena, key->word, sizeof *key->word * (size_t)key->n);
    s->next = *bucket;
    *bucket = s;
    k->n++;
    return s;
}

/* ---- costs ---- */

struct memo *memo_new(struct arena *arena) {
    struct memo *m = arena_alloc(arena, sizeof *m);
    m->arena = arena;
    m->cap = FIRST_COSTS;
    m->at = arena_array(arena, (size_t)m->cap, sizeof *m->at);
    return m;
}

/* The entry with this hash, or the free one where it would stand; hashes are not 0. */
static struct memo_entry *entry(struct memo_entry *at, int cap, uint64_t hash) {
    uint64_t i = hash % (uint64_t)cap;
    while (at[i].hash && at[i].hash != hash) i = (i + 1) % (uint64_t)cap;
    return &at[i];
}

const double *memo_cost(const struct memo *m, uint64_t hash) {
    const struct memo_entry *e = entry(m->at, m->cap, hash);
    return e->hash ? &e->cost : NULL;
}

void memo_put(struct memo *m, uint64_t hash, double cost) {
    if (m->n >= m->cap / 4 * 3 && m->cap < MOST_COSTS) {
        struct memo_entry *more = arena_array(m->arena, (size_t)m->cap * 2, sizeof *more);
        for (int i = 0; i < m->cap; i++)
            if (m->at[i].hash) *entry(more, m->cap * 2, m->at[i].hash) = m->at[i];
        m->at = more;
        m->cap *= 2;
    }
    if (m->n >= m->cap / 4 * 3) return;
    *entry(m->at, m->cap, hash) = (struct memo_entry){hash, cost};
    m->n++;
}

void memo_change(struct memo *m, uint64_t hash, double cost) {
    struct memo_entry *e = entry(m->at, m->cap, hash);
    if (e->hash) e->cost = cost;
}
