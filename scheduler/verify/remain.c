/* Copies of operands that stay in another memory (`also`), in the symbolic walk: they lie from the
 * memory's start on, and what was there before is lost. */
#include "scheduler/verify/work.h"

/* It does, where some place is that an instruction may read. */
static bool stays(const struct work *w, int o) {
    const struct schedule *x = w->s->v->s;
    int also = w->in->operand[o].also, place = w->n->arg[o].place;
    if (also < 0 || place < 0 || x->place[place].memory == also) return false;
    for (int p = 0; p < x->nplaces; p++)
        if (x->place[p].memory == also) return true;
    return false;
}

bool work_remains_once(struct work *w) {
    for (int o = 0; o < w->in->noperands; o++)
        for (int d = 0; d < w->s->ndims; d++)
            if (stays(w, o) && w->of_loop[d] && w->s->n[d] > 1)
                return sym_fail(w->s, "of a loop's copies the last one remains");
    return true;
}

/* Which read of the statement the operand is; -1: none, or of what the issue writes. */
static int read_of(const struct work *w, int o) {
    for (int r = 0; w->candidate && r < w->h->stmt->nreads; r++)
        if (w->h->read_operand[r] == o && w->candidate->read[r] >= 0) return r;
    return -1;
}

/* The read's elements, in that place of the memory where they stay. */
static void remain_in(struct work *w, int o, int r, int place) {
    struct sym *s = w->s;
    const struct place *p = &s->v->s->place[place];
    const struct access *a = &w->stmt->read[w->candidate->read[r]];
    const struct buffer *b = &s->v->p->buffer[a->buffer];
    struct affine index[SYM_INDICES];
    struct region need = {0}, x = {.place = place, .buffer = a->buffer, .type = b->type};
    struct wanted_version want;
    struct work there = *w;
    int64_t lo, hi;
    if (p->buffer != a->buffer || p->slots > 1 || a->has_fill || a->buffer == w->stmt->dst.buffer ||
        !index_forms(s, a, w->point, index) || !need_box(s, index, a->buffer, false, &need) ||
        !version_wanted(s, w->n->stmt, &need, &want) || want.any)
        return;
    x.writer = want.writer;
    x.count = want.count;
    x.step = want.step;
    there.access[0] = w->access[r + 1];
    if (!lin_add(&there.access[0].l, &w->offset[o].l, -1)) return;
    there.access[0].l.c -= p->address;
    for (int d = 0; d < s->ndims; d++)
        if (w->of_loop[d]) there.access[0].d[d] = 0;
    affine_range(s, &there.access[0], &lo, &hi);
    if (lo < 0 || hi + (int64_t)type_size(x.type) > p->bytes ||
        !work_destination(&there, w->valid, index, b->ndims, &x))
        return;
    region_tidy(s, &x);
    regions_append(s, &x);
}

void work_remain(struct work *w) {
    const struct schedule *x = w->s->v->s;
    for (int o = 0; o < w->in->noperands; o++) {
        if (!stays(w, o)) continue;
        int also = w->in->operand[o].also, r = read_of(w, o);
        for (int p = 0; p < x->nplaces; p++)
            if (x->place[p].memory == also) regions_forget(w->s, p);
        for (int p = 0; r >= 0 && p < x->nplaces; p++)
            if (x->place[p].memory == also) remain_in(w, o, r, p);
    }
}
