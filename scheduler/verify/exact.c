/* Bytes are told apart where whole slots are too coarse, and nowhere else: elsewhere touching the
 * whole slot is right, and costs less. */
#include "scheduler/verify/exact.h"
#include "ir/memory.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

void exact_open(struct exact *x, struct verify *v) {
    *x = (struct exact){.v = v};
    x->place = arena_array(&v->arena, (size_t)v->s->nplaces + 1, sizeof *x->place);
    x->first = arena_array(&v->arena, (size_t)v->m->nmemories + 1, sizeof *x->first);
    for (int k = 0; k < v->m->nmemories; k++) x->first[k] = -1;
}

void exact_free(struct exact *x) {
    free(x->at);
}

void exact_at(struct exact *x, int node) {
    const struct schedule *s = x->v->s;
    if (x->any) memset(x->place, 0, (size_t)s->nplaces * sizeof *x->place);
    x->any = false;
    for (int k = 0; k < x->n; k++) {
        const struct exact_range *r = &x->at[k];
        if (node < r->from || node > r->to) continue;
        x->any = true;
        if (r->place >= 0) x->place[r->place] = true;
        for (int p = 0; p < s->nplaces && r->place < 0; p++)
            x->place[p] |= s->place[p].memory == r->memory;
    }
}

static bool covers(const struct exact_range *a, const struct exact_range *b) {
    return a->memory == b->memory && (a->place < 0 || a->place == b->place) && a->from <= b->from &&
           a->to >= b->to;
}

/* False: it was before. */
static bool add(struct exact *x, struct exact_range r) {
    for (int k = 0; k < x->n; k++)
        if (covers(&x->at[k], &r)) return false;
    if (x->n == x->cap) {
        x->cap = x->cap ? 2 * x->cap : 16;
        x->at = memory_grow(x->at, (size_t)x->cap * sizeof *x->at);
    }
    x->at[x->n++] = r;
    return true;
}

bool exact_more(struct exact *x, int memory, int place, int node) {
    int *first = &x->first[memory];
    bool here = place >= 0 && add(x, (struct exact_range){place, memory, node, node});
    if (here && *first >= 0 && *first < node)
        add(x, (struct exact_range){-1, memory, node, node + (node - *first)});
    if (*first < 0) *first = node;
    return here || (place >= 0 && add(x, (struct exact_range){place, memory, 0, INT_MAX})) ||
           add(x, (struct exact_range){-1, memory, 0, INT_MAX});
}
