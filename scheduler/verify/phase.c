/* All that the order of queues to come depends on, as a row of numbers. Vector clocks are only
 * compared, and a queue's own entry only grows by one, so of the values that stand for one queue
 * anywhere their ranks are enough: two places in a walk with the same row go on alike. */
#include "scheduler/verify/stretch.h"
#include "ir/memory.h"

#include <stdlib.h>
#include <string.h>

/* A number as it is, queue -1, or how far a queue has come. */
struct entry {
    int queue;
    int64_t value;
};

struct entries {
    struct entry *at;
    size_t n, cap;
};

static void put(struct entries *e, int queue, int64_t value) {
    if (e->n == e->cap) {
        e->cap = e->cap ? 2 * e->cap : 256;
        e->at = memory_grow(e->at, e->cap * sizeof *e->at);
    }
    e->at[e->n++] = (struct entry){value ? queue : -1, value};
}

static void put_clock(struct entries *e, const uint32_t *clock, int n) {
    put(e, -1, n);
    for (int q = 0; q < n; q++) put(e, q, clock[q]);
}

static void put_epoch(struct entries *e, const struct epoch *x) {
    put(e, -1, x->clock ? x->queue : -1);
    put(e, x->queue, x->clock);
}

static void put_channel(struct entries *e, const struct verify *v, const struct token_channel *c) {
    int64_t depth = v->m->sync[c->sync].depth;
    put(e, -1, c->n);
    for (int t = 0; t < c->n; t++)
        put_clock(e, c->token[c->first + t].clock, c->token[c->first + t].n);
    put_epoch(e, &c->given);
    put_epoch(e, &c->taken);
    put(e, -1, c->popped != NULL);
    for (int64_t k = 0; c->popped && k < depth; k++)
        put_epoch(e, &c->popped[(c->pushes + k) % depth]);
    put(e, -1, c->popped && c->pushes >= depth);
    put(e, -1, c->popped ? c->pushes - c->pops : 0);
    for (const struct group *g = c->groups; g; g = g->next) {
        int64_t kept = g->n < MAX_GROUPS ? g->n : MAX_GROUPS;
        put(e, -1, g->queue);
        put(e, -1, g->n - g->waited);
        put(e, -1, kept);
        for (int64_t k = 1; k <= kept; k++)
            put_clock(e, g->clock[(g->n - k) % MAX_GROUPS], v->nqueues);
    }
}

static int by_number(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static uint64_t *sorted_keys(const struct pages *p) {
    uint64_t *key = memory_array(p->n + 1, sizeof *key);
    size_t n = 0;
    for (size_t k = 0; k < p->cap; k++)
        if (p->page[k]) key[n++] = p->key[k];
    qsort(key, n, sizeof *key, by_number);
    return key;
}

static void put_granule(struct entries *e, const struct verify *v, const struct granule *g) {
    put_epoch(e, &g->write);
    for (int k = 0; k < 4; k++) put_epoch(e, &g->read[k]);
    put(e, -1, g->crowd == v->barriers + 1);
}

static void put_stretches(struct entries *e, const struct verify *v) {
    for (int m = 0; m < v->m->nmemories + v->m->nstates; m++) {
        const struct stretches *x = &v->stretch[m];
        put(e, -1, x->n);
        for (int k = 0; k < x->n; k++) {
            put(e, -1, x->at[k].from);
            put_granule(e, v, &x->at[k].g);
        }
    }
}

static void put_slots(struct entries *e, const struct verify *v) {
    uint64_t *key = sorted_keys(&v->slots);
    for (size_t k = 0; k < v->slots.n; k++) {
        put(e, -1, (int64_t)key[k]);
        put(e, -1, *(const int *)pages_find(&v->slots, key[k]));
    }
    free(key);
}

static int by_value(const void *a, const void *b) {
    const struct entry *x = *(struct entry *const *)a, *y = *(struct entry *const *)b;
    if (x->queue != y->queue) return x->queue < y->queue ? -1 : 1;
    return (x->value > y->value) - (x->value < y->value);
}

/* In the place of how far queues have come: how many different values are less. */
static void rank(struct entries *e) {
    struct entry **order = memory_array(e->n + 1, sizeof *order);
    size_t n = 0;
    for (size_t k = 0; k < e->n; k++)
        if (e->at[k].queue >= 0) order[n++] = &e->at[k];
    qsort(order, n, sizeof *order, by_value);
    int64_t before = 0, ranks = 0;
    for (size_t k = 0; k < n; k++) {
        int64_t value = order[k]->value;
        if (k == 0 || order[k]->queue != order[k - 1]->queue)
            ranks = 1;
        else if (value != before)
            ranks++;
        before = value;
        order[k]->value = ranks;
    }
    free(order);
}

void phase_take(struct verify *v, struct phase *out) {
    struct entries e = {0};
    put(&e, -1, v->nqueues);
    for (int q = 0; q < v->nqueues; q++) put_clock(&e, v->queue[q]->clock, v->nqueues);
    put_clock(&e, v->at_barrier, v->nqueues);
    for (const struct token_channel *c = v->channels; c; c = c->next) put_channel(&e, v, c);
    put_stretches(&e, v);
    put_slots(&e, v);
    rank(&e);
    out->n = e.n;
    out->at = memory_grow(out->at, (e.n + 1) * sizeof *out->at);
    for (size_t k = 0; k < e.n; k++) out->at[k] = e.at[k].value;
    free(e.at);
}

bool phase_same(const struct phase *a, const struct phase *b) {
    return a->n == b->n && !memcmp(a->at, b->at, a->n * sizeof *a->at);
}
