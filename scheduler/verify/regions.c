/* Lists of regions. */
#include "scheduler/verify/sym.h"
#include "ir/memory.h"

#include <stdlib.h>
#include <string.h>

void regions_reserve(struct regions *r, int n) {
    if (r->cap >= n) return;
    r->cap = n > 2 * r->cap ? n : 2 * r->cap;
    r->at = memory_grow(r->at, (size_t)r->cap * sizeof *r->at);
}

void regions_copy(struct regions *to, const struct regions *from) {
    to->n = 0;
    regions_reserve(to, from->n);
    to->n = from->n;
    if (from->n) memcpy(to->at, from->at, (size_t)from->n * sizeof *to->at);
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
    r->at[r->n++] = *x;
    frame_list(s, x->place);
}
