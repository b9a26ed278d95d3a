/* Layouts of copies, and copies of constants that were made before. */
#include "scheduler/plan/geom.h"
#include "scheduler/plan/layouts.h"
#include "scheduler/plan/recur.h"
#include "scheduler/plan/rewrite.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/work.h"
#include <string.h>

/* Bytes of a line of the translations that caches the home memory, a page; *far: of the outermost
 * cache. 0: the task's operands pass none. */
static int64_t page_bytes(const struct work *w, const struct task *t, int64_t *far) {
    int unit = w->m->queue[t->needle->in->queue].unit;
    int64_t page = 0;
    *far = 0;
    for (int m = 0; m < w->m->nmemories; m++) {
        const struct memory *c = &w->m->memory[m];
        if (c->caches != w->m->home || !unit_inside(w->m, unit, c->unit)) continue;
        if (c->line > page) page = c->line;
        if (c->size > *far) *far = c->size;
    }
    return page;
}

/* Whether the reader's sums alone walk the dimension (1), or its sums and its result do, as rows of
 * a window (2). */
static int walked_by(const struct work *w, const struct stmt *st, const struct access *acc,
                     int dim) {
    bool sums = false, result = false;
    for (int a = 0; a < w->p->naxes; a++) {
        if (!(st->axes >> a & 1) || w->p->axis[a].extent < 2 || !access_coef(w->p, acc, dim, a))
            continue;
        bool kept = access_varies(w->p, &st->dst, a);
        *(kept ? &result : &sums) = true;
    }
    return sums ? 1 + result : 0;
}

/* Which of a copy's coordinates, innermost first. */
enum { ROW = 1, PLANE = 2 };

/* Rows of a window, and planes of which sums alone pass from one to the next. */
static bool has_planes(const struct work *w, const struct task *t, const struct access *acc,
                       const struct home *h) {
    if (!h->packed || h->n <= PLANE || h->spaced) return false;
    for (int i = 0; i <= PLANE; i++)
        if (h->at[i].div != 1 || h->at[i].mod) return false;
    return walked_by(w, &w->p->stmt[t->stmt], acc, h->at[ROW].dim) == 2 &&
           walked_by(w, &w->p->stmt[t->stmt], acc, h->at[PLANE].dim) == 1;
}

/* A copy of many planes, each larger than a page, of which a step reads a few rows of every plane:
 * no prefetcher goes on from plane to plane. Where the copy comes from behind the caches, rows lie
 * outside of planes, so that one row of all planes is one piece: 3x3 windows over 224x224x64 take
 * 26 % less time so. It does if it is larger than a quarter of the outermost cache, what it is made
 * of and the result being there too; 112x112x128 take 6 % more. */
static void rows_outside(struct work *w, const struct task *t, const struct access *acc,
                         struct home *h) {
    const struct buffer *b = &w->p->buffer[acc->buffer];
    int64_t size = (int64_t)type_size(b->type), far, page = page_bytes(w, t, &far);
    if (!page || h->elements * size <= far / 4 || !has_planes(w, t, acc, h) ||
        h->stride[PLANE] * size <= page)
        return;
    struct coord c = h->at[ROW];
    h->at[ROW] = h->at[PLANE];
    h->at[PLANE] = c;
    home_run(h, b->ndims);
}

/* The statement that alone writes the buffer, where one other alone reads it; -1. */
static int only_writer(const struct program *p, int buffer) {
    int writers = 0, readers = 0, last = -1;
    for (int s = 0; s < p->nstmts; s++) {
        if (p->stmt[s].dst.buffer == buffer) writers++, last = s;
        readers += stmt_reads(&p->stmt[s], buffer);
    }
    return writers == 1 && readers == 1 ? last : -1;
}

bool reads_elements(const struct opnd *o) {
    if (o->where != IN_LOCAL || o->read < 0 || o->writes || o->attached) return false;
    for (int i = 0; i < o->geom.ninner; i++)
        if (o->geom.at[i].dim >= 0 && o->geom.block[o->geom.at[i].dim] > 1) return false;
    return true;
}

int pack_planes_inside(const struct work *w, const struct task *t, const struct opnd *o,
                       struct home *h) {
    if (!reads_elements(o)) return -1;
    const struct access *acc = &w->p->stmt[t->stmt].read[o->read];
    const struct buffer *b = &w->p->buffer[acc->buffer];
    int copy = b->role == ROLE_TEMP ? only_writer(w->p, acc->buffer) : -1;
    *h = *work_home(w, acc->buffer);
    if (copy < 0 || w->task_of[copy] >= 0 || w->p->stmt[copy].combine != COMBINE_SET ||
        h->is_tile || !has_planes(w, t, acc, h))
        return -1;
    struct coord c = h->at[PLANE];
    memmove(&h->at[1], &h->at[0], PLANE * sizeof *h->at);
    h->at[0] = c;
    home_run(h, b->ndims);
    return copy;
}

struct home pack_layout(struct work *w, const struct task *t, const struct access *acc,
                        const struct geom *g) {
    struct home h = home_packed(w, acc->buffer, g);
    rows_outside(w, t, acc, &h);
    return h;
}

static bool copies_part(const struct program *p, const struct stmt *st, const struct copied *part) {
    const struct access *to = &st->dst, *from = &st->read[0];
    for (int d = 0; d < p->buffer[to->buffer].ndims; d++) {
        int axis = access_lone(p, to, d, st->axes);
        if (axis < 0 || p->buffer[to->buffer].extent[d] != part->extent[d] ||
            access_coef(p, from, d, p->naxes) != part->lo[d])
            return false;
        for (int a = 0; a < p->naxes; a++)
            if (access_coef(p, from, d, a) != (a == axis ? part->step[d] : 0)) return false;
    }
    return from->has_fill == part->fills && (!part->fills || from->fill.i == part->fill.i);
}

static bool same_layout(const struct home *a, const struct home *b, int ndims) {
    if (a->packed != b->packed || a->memory != b->memory || a->n != b->n || a->tight != b->tight ||
        a->spaced != b->spaced || a->unit != b->unit || a->is_tile || b->is_tile)
        return false;
    for (int i = 0; i < a->n; i++)
        if (a->at[i].dim != b->at[i].dim || a->at[i].div != b->at[i].div ||
            a->at[i].mod != b->at[i].mod || a->stride[i] != b->stride[i])
            return false;
    return !memcmp(a->extent, b->extent, sizeof *a->extent * (size_t)ndims);
}

int pack_made(struct work *w, const struct task *t, const struct access *read, const struct geom *g,
              const struct copied *part) {
    const struct program *p = w->p;
    int ndims = p->buffer[read->buffer].ndims;
    if (p->buffer[read->buffer].role != ROLE_CONST || recur_copy_scope(w, t->stmt, read)) return -1;
    for (int s = 0; s < p->nstmts; s++) {
        const struct stmt *st = &p->stmt[s];
        int made = st->dst.buffer;
        if (!w->in_prepare[s] || st->combine != COMBINE_SET || st->nops != 1 || st->nreads != 1 ||
            st->nwhere || st->scope || st->read[0].buffer != read->buffer ||
            p->buffer[made].role != ROLE_TEMP || p->buffer[made].ndims != ndims ||
            !work_home(w, made)->packed || !copies_part(p, st, part))
            continue;
        struct access as = *read;
        as.buffer = made;
        struct home h = pack_layout(w, t, &as, g);
        if (same_layout(&h, work_home(w, made), ndims)) return made;
    }
    return -1;
}
