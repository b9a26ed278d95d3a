/* Bytes are told apart where whole slots are too coarse, and nowhere else: elsewhere touching the
 * whole slot is right, and costs less. */
#include "scheduler/verify/exact.h"
#include "ir/memory.h"

#include <stdlib.h>
#include <string.h>

void exact_open(struct exact *x, struct verify *v) {
    *x = (struct exact){.v = v};
    x->place = arena_array(&v->arena, (size_t)v->s->nplaces + 1, sizeof *x->place);
}

void exact_free(struct exact *x) {
    free(x->at);
}

void exact_at(struct exact *x, int node) {
    if (x->any) memset(x->place, 0, (size_t)x->v->s->nplaces * sizeof *x->place);
    x->any = false;
    for (int k = 0; k < x->n; k++) {
        if (x->at[k].node != EVERYWHERE && x->at[k].node != node) continue;
        x->place[x->at[k].place] = x->any = true;
    }
}

/* False: it was before. */
static bool add(struct exact *x, int place, int node) {
    for (int k = 0; k < x->n; k++)
        if (x->at[k].place == place && (x->at[k].node == node || x->at[k].node == EVERYWHERE))
            return false;
    if (x->n == x->cap) {
        x->cap = x->cap ? 2 * x->cap : 16;
        x->at = memory_grow(x->at, (size_t)x->cap * sizeof *x->at);
    }
    x->at[x->n].place = place;
    x->at[x->n++].node = node;
    return true;
}

bool exact_more(struct exact *x, int memory, int place, int node) {
    bool more = false;
    if (place >= 0 && (add(x, place, node) || add(x, place, EVERYWHERE))) return true;
    for (int p = 0; p < x->v->s->nplaces; p++)
        if (x->v->s->place[p].memory == memory) more |= add(x, p, EVERYWHERE);
    return more;
}
