/* Options of a statement, remembered. Their prices depend on the decisions of its neighbours alone:
 * who writes what it reads, and who reads what it writes. The states of a plan differ in many other
 * decisions. */
#include "mapper/mapper_int.h"

#include <string.h>

static void add_near(struct memo *m, int stmt) {
    if (stmt < 0) return;
    for (int k = 0; k < m->nnear; k++)
        if (m->near[k] == stmt) return;
    GROW(&m->arena, m->near, m->nnear, m->cap);
    m->near[m->nnear++] = stmt;
}

static void find_near(struct covering *c, struct memo *m, int stmt) {
    const struct program *p = c->cover->program;
    const struct stmt *s = &p->stmt[stmt];
    int b = s->dst.buffer;
    for (int r = 0; r < s->nreads; r++) add_near(m, flow_writer(c, stmt, s->read[r].buffer));
    add_near(m, flow_writer(c, stmt, b));
    struct users u = flow_users(c, b, stmt);
    for (int k = 0; k < u.n; k++) {
        add_near(m, u.stmt[k]);
        if (p->stmt[u.stmt[k]].dst.buffer == b) break; /* another value from there on */
    }
}

/* Mappings are told apart by their groups, of which each found mapping has its own. */
static uint64_t decision(const struct covering *c, int stmt) {
    int at = c->chosen[stmt];
    return at < 0 ? (uint64_t)(-at) : (uint64_t)(uintptr_t)c->cover->mapping[at].group;
}

struct options options_remembered(struct covering *c, struct memo *m, int stmt) {
    if (!m->open) {
        arena_init(&m->arena);
        find_near(c, m, stmt);
        m->open = true;
    }
    size_t n = (size_t)m->nnear;
    uint64_t *state = arena_array(&m->arena, n + 1, sizeof *state), hash = 17;
    for (size_t k = 0; k < n; k++) {
        state[k] = decision(c, m->near[k]);
        hash = (hash ^ state[k]) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 29;
    }
    struct remembered **at = &m->bucket[hash % 64], *x;
    for (x = *at; x; x = x->next)
        if (x->hash == hash && memcmp(x->state, state, n * sizeof *state) == 0) return x->options;
    x = arena_alloc(&m->arena, sizeof *x);
    *x = (struct remembered){state, hash, options_of(c, stmt), *at};
    x->options.at =
        arena_copy(&m->arena, x->options.at, (size_t)x->options.n * sizeof *x->options.at);
    *at = x;
    return x->options;
}

void memo_close(struct memo *m) {
    if (m->open) arena_free(&m->arena);
    m->open = false;
}
