/* Padding: zeros that homes hold beyond the end of their buffers and moves take along. Along an
 * axis that is reduced they must change no result. */
#include "scheduler/verify/work.h"

#include <string.h>

/* All indices are those of elements, or of the padding that the home has room for and that is zero.
 * An index that the layout folds has no padding of its own: what would stand behind its end are
 * elements. */
bool work_in_padded_home(struct sym *s, int place, int buffer, const struct affine *index) {
    const struct place *p = &s->v->s->place[place];
    const struct buffer *b = &s->v->p->buffer[buffer];
    const struct home_layout *h = sym_layout(s, place);
    for (int e = 0; h && p->extent && e < b->ndims; e++) {
        bool folded = p->extent[e] > h->period[e];
        int64_t lo, hi;
        affine_range(s, &index[e], &lo, &hi);
        if (lo < 0 || hi >= (folded ? b->extent[e] : p->extent[e])) return false;
    }
    return h && p->extent && s->padded[place];
}

static bool outside_buffer(struct sym *s, int buffer, const struct affine *index) {
    for (int e = 0; e < s->v->p->buffer[buffer].ndims; e++) {
        int64_t lo, hi;
        affine_range(s, &index[e], &lo, &hi);
        if (lo >= s->v->p->buffer[buffer].extent[e]) return true;
    }
    return false;
}

/* All that the access reads in a local place is the zero that stands for what is outside its
 * buffer. */
static bool reads_zeros_of_tile(struct work *w, int place, int access) {
    struct sym *s = w->s;
    for (int k = 0; k < s->of[place].n; k++) {
        const struct region *g = &s->of[place].at[k];
        struct affine y[TILE_DIMS], index[SYM_INDICES];
        if (!region_is_current(g, place) || region_is_constant(g) || !g->filled || g->fill.i != 0)
            continue;
        work_split_at(w, &w->access[access], g->s, g->ndims);
        if (!work_tile_at(w, g, &w->access[access], y, CLIPS_NOTHING) ||
            !work_tile_index(g, y, index))
            continue;
        if (outside_buffer(s, g->buffer, index)) return true;
    }
    return false;
}

/* The same of a home. */
static bool reads_zeros_of_home(struct work *w, int place, int access) {
    struct sym *s = w->s;
    int buffer = s->v->s->place[place].buffer;
    struct region g = {.place = place, .buffer = buffer};
    struct affine index[SYM_INDICES];
    const struct home_layout *h = sym_layout(s, place);
    if (!h) return false;
    work_split_home(w, h, &w->access[access]);
    return work_home_index(s, &g, &w->access[access], index) &&
           work_in_padded_home(s, place, buffer, index) && outside_buffer(s, buffer, index);
}

static bool reads_padding(struct work *w, int r) {
    int place = w->n->arg[w->h->read_operand[r]].place;
    if (place < 0) return false;
    return w->s->v->s->place[place].keep == KEEP_LOCAL ? reads_zeros_of_tile(w, place, r + 1)
                                                       : reads_zeros_of_home(w, place, r + 1);
}

/* What the issue adds there is the neutral element, whatever the operands are that are not zero. */
bool work_adds_nothing(struct work *w) {
    const struct stmt *t = w->h->stmt;
    struct tag read[MAX_READS] = {{0}};
    union value x;
    for (int r = 0; r < t->nreads; r++)
        if (reads_padding(w, r)) read[r].kind = TAG_CONST;
    if (t->combine == COMBINE_SET || !shape_value(w->h, read, &x)) return false;
    enum type type = w->h->bound->buffer[t->dst.buffer].type;
    union value neutral = combiner_neutral(t->combine, type);
    return type_is_float(type) ? x.f == neutral.f : x.i == neutral.i;
}

bool work_padding_is_neutral(struct work *w) {
    struct sym *s = w->s;
    for (int d = 0; d < s->ndims; d++) {
        if (w->valid[d] == w->full[d] || w->access[0].d[d]) continue;
        struct work there = *w;
        int64_t n[SYM_DIMS];
        int ndims = s->ndims;
        memcpy(n, s->n, sizeof n);
        for (int e = 0; e < ndims; e++)
            if (!w->access[0].d[e]) s->n[e] = w->full[e];
        for (int r = 0; r <= w->h->stmt->nreads; r++)
            there.access[r].l.c += there.access[r].d[d] * w->valid[d];
        s->n[d] = w->full[d] - w->valid[d];
        for (int e = 0; e < ndims; e++) there.full[e] = there.valid[e] = s->n[e];
        bool good = work_adds_nothing(&there);
        s->ndims = ndims;
        memcpy(s->n, n, sizeof n);
        if (!good) return sym_fail(s, "padding along a reduction of '%s'", w->in->id);
    }
    return true;
}
