/* Which programs a search of rewrites has seen. All of them differ in one part alone, and only that
 * part is hashed: what a whole network is takes no time for each of its statements. */
#include "mapper/rewrite_int.h"

#include <string.h>

struct excerpt {
    const struct program *from;
    struct program *to;
    int *number; /* of a buffer there; -1: not yet */
    int known;   /* buffers before this one are the same in all programs */
};

/* A known buffer is told from others of its shape by one more dimension, as long as its number. */
static void take_buffer(struct excerpt *e, int b) {
    struct program *q = e->to;
    const struct buffer *old = &e->from->buffer[b];
    if (e->number[b] >= 0) return;
    e->number[b] = q->nbuffers;
    struct buffer *f = &q->buffer[q->nbuffers++];
    *f = *old;
    f->ndims = old->ndims + (b < e->known);
    f->extent = arena_array(&q->arena, (size_t)f->ndims + 1, sizeof *f->extent);
    for (int d = 0; d < old->ndims; d++) f->extent[d] = old->extent[d];
    if (b < e->known) f->extent[old->ndims] = b + 2;
}

static struct access taken(struct excerpt *e, const struct access *x) {
    size_t width = (size_t)e->from->naxes + 1;
    struct access y = *x;
    take_buffer(e, x->buffer);
    y.buffer = e->number[x->buffer];
    y.coef =
        arena_array(&e->to->arena, width * (size_t)e->to->buffer[y.buffer].ndims, sizeof *y.coef);
    size_t n = width * (size_t)e->from->buffer[x->buffer].ndims;
    if (n > 0) memcpy(y.coef, x->coef, n * sizeof *y.coef);
    return y;
}

static void take_stmt(struct excerpt *e, const struct stmt *s) {
    struct program *q = e->to;
    struct stmt *t = &q->stmt[q->nstmts];
    *t = *s;
    t->dst = taken(e, &s->dst);
    t->read = arena_array(&q->arena, (size_t)s->nreads + 1, sizeof *t->read);
    for (int r = 0; r < s->nreads; r++) t->read[r] = taken(e, &s->read[r]);
    q->item[q->nstmts] = (struct item){.kind = ITEM_STMT, .stmt = q->nstmts};
    q->nitems = ++q->nstmts;
}

uint64_t rw_part_hash(const struct program *p, int from, int to, int known) {
    struct program *q = program_new(p->name);
    struct excerpt e = {p, q, arena_array(&q->arena, (size_t)p->nbuffers + 1, sizeof *e.number),
                        known};
    for (int b = 0; b < p->nbuffers; b++) e.number[b] = -1;
    q->buffer = arena_array(&q->arena, (size_t)p->nbuffers + 1, sizeof *q->buffer);
    q->stmt = arena_array(&q->arena, (size_t)(to - from) + 1, sizeof *q->stmt);
    q->item = arena_array(&q->arena, (size_t)(to - from) + 1, sizeof *q->item);
    q->axis = p->axis; /* only read */
    q->naxes = p->naxes;
    for (int s = from; s < to; s++) take_stmt(&e, &p->stmt[s]);
    uint64_t h = program_hash(q);
    program_free(q);
    return h;
}
