/* Lists of regions. */
#include "scheduler/verify/sym.h"
#include "ir/memory.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

void regions_reserve(struct regions *r, int n) {
    if (r->cap >= n) return;
    r->cap = n > 2 * r->cap ? n : 2 * r->cap;
    r->at = memory_grow(r->at, (size_t)r->cap * sizeof *r->at);
}

void region_copy(struct region *to, const struct region *from, int n) {
    for (int k = 0; k < n; k++) {
        const struct region *x = &from[k];
        size_t row = (size_t)x->nindices;
        memcpy(&to[k], x, offsetof(struct region, o));
        memcpy(to[k].o, x->o, row * sizeof *x->o);
        memcpy(to[k].n, x->n, (x->box ? row : (size_t)x->ndims) * sizeof *x->n);
        for (int d = 0; d < x->ndims; d++) memcpy(to[k].c[d], x->c[d], row * sizeof **x->c);
    }
}

void regions_copy(struct regions *to, const struct regions *from) {
    to->n = 0;
    regions_reserve(to, from->n);
    to->n = from->n;
    region_copy(to->at, from->at, from->n);
}

void regions_free(struct regions *r) {
    free(r->at);
    *r = (struct regions){0};
}

void frame_list(struct sym *s, int place) {
    if (place >= s->v->s->nplaces || s->listed[place]) return;
    struct group_of_places *g = &s->group[s->group_of[place]];
    s->listed[place] = true;
    g->at[g->n++] = place;
}

void regions_append(struct sym *s, const struct region *x) {
    struct regions *r = &s->of[x->place];
    regions_reserve(r, r->n + 1);
    region_copy(&r->at[r->n++], x, 1);
    frame_list(s, x->place);
}
