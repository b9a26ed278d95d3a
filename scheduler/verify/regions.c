/* Lists of regions, and boxes of forms. */
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

/* ---- boxes of forms ---- */
static bool fill_index(struct sym *s, const struct affine *index, const bool *used, int64_t *n) {
    int64_t reached = 1;
    bool left = true;
    while (left) {
        left = false;
        for (int d = 0; d < s->ndims; d++) {
            if (!used[d] || index->d[d] == 0 || index->d[d] != reached) continue;
            reached *= s->n[d];
            left = true;
            break;
        }
    }
    int64_t most = 1;
    for (int d = 0; d < s->ndims; d++) {
        if (!used[d]) continue;
        if (index->d[d] < 0) return *n = 0, false;
        most += index->d[d] * (s->n[d] - 1);
    }
    *n = most;
    return most == reached;
}

bool forms_box(struct sym *s, const struct affine *index, int nindices, struct region *out) {
    bool exact = true, used[SYM_DIMS];
    for (int d = 0; d < s->ndims; d++) {
        int moved = 0;
        used[d] = s->n[d] > 1;
        for (int e = 0; e < nindices; e++) moved += used[d] && index[e].d[d] != 0;
        exact &= moved <= 1;
    }
    out->box = true;
    out->nindices = nindices;
    for (int e = 0; e < nindices; e++) {
        int64_t n = 0;
        exact &= fill_index(s, &index[e], used, &n);
        out->o[e] = index[e].l;
        out->n[e] = lin_of(n);
    }
    return exact;
}

static void move_lin(struct region *of, struct lin *x, int counter, const struct lin *at,
                     bool fixed) {
    if (!x->k[counter]) return;
    lin_add(x, at, x->k[counter]);
    if (fixed) x->k[counter] = 0;
    of->settled = false;
}

/* Before iteration `at` (fixed), or `at` iterations on. */
void region_move(struct region *x, int counter, const struct lin *at, bool fixed) {
    move_lin(x, &x->count, counter, at, fixed);
    move_lin(x, &x->step, counter, at, fixed);
    move_lin(x, &x->base, counter, at, fixed);
    for (int e = 0; e < x->nindices; e++) move_lin(x, &x->o[e], counter, at, fixed);
    for (int k = 0; k < (x->box ? x->nindices : x->ndims); k++)
        move_lin(x, &x->n[k], counter, at, fixed);
}
