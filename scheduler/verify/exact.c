/* Bytes are told apart where whole slots are too coarse, and nowhere else: elsewhere touching the
 * whole slot is right, and costs less. */
#include "scheduler/verify/exact.h"
#include "ir/memory.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

static size_t missable(const struct exact *x) {
    return (size_t)x->v->s->nplaces + (size_t)x->v->m->nmemories + (size_t)x->v->m->nstates;
}

void exact_open(struct exact *x, struct verify *v) {
    *x = (struct exact){.v = v};
    x->place = arena_array(&v->arena, (size_t)v->s->nplaces + 1, sizeof *x->place);
    x->missed = arena_array(&v->arena, missable(x), sizeof *x->missed);
}

void exact_free(struct exact *x) {
    free(x->at);
}

void exact_begin(struct exact *x) {
    x->before = x->n;
}

void exact_at(struct exact *x, int node) {
    const struct schedule *s = x->v->s;
    if (x->any) memset(x->place, 0, (size_t)s->nplaces * sizeof *x->place);
    memset(x->missed, 0, missable(x) * sizeof *x->missed);
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

/* Is it told apart in the next walk, and not in this one? */
static bool add(struct exact *x, struct exact_range r) {
    for (int k = 0; k < x->n; k++)
        if (covers(&x->at[k], &r)) return k >= x->before;
    if (x->n == x->cap) {
        x->cap = x->cap ? 2 * x->cap : 16;
        x->at = memory_grow(x->at, (size_t)x->cap * sizeof *x->at);
    }
    x->at[x->n++] = r;
    return true;
}

static bool *missed(const struct exact *x, int memory, int place) {
    return &x->missed[place >= 0 ? place : x->v->s->nplaces + memory];
}

bool exact_missed(const struct exact *x, int memory, int place) {
    return *missed(x, memory, place);
}

bool exact_more(struct exact *x, int memory, int place, int node) {
    const struct exact_range here = {place, memory, node, node},
                             everywhere = {place, memory, 0, INT_MAX},
                             all = {-1, memory, 0, INT_MAX};
    *missed(x, memory, place) = true;
    return (place >= 0 && (add(x, here) || add(x, everywhere))) || add(x, all);
}
