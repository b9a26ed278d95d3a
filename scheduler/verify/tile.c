/* What an issue finds in places and homes, and what it leaves there. */
#include "scheduler/verify/work.h"

#include <string.h>

/* ---- tiles ---- */
/* Of dimensions whose second value is beyond n only the first one is looked at, the largest step
 * first, and of the next one as many as stay below n with all those that take smaller steps. */
bool sym_clip_at(struct sym *s, const struct affine *y, const struct lin *n) {
    int64_t left, rest = 0, before[SYM_DIMS];
    struct lin room = *n;
    for (int d = 0; d < s->ndims; d++) {
        if (s->n[d] > 1 && y->d[d] < 0) return false;
        rest += y->d[d] * (s->n[d] - 1);
    }
    if (!lin_add(&room, &y->l, -1) || !lin_constant(&room, &left) || left < 1) return false;
    memcpy(before, s->n, sizeof before);
    for (bool more = true; more;) {
        int dim = -1;
        for (int d = 0; d < s->ndims; d++)
            if (s->n[d] > 1 && y->d[d] && (dim < 0 || y->d[d] > y->d[dim])) dim = d;
        if (dim < 0) break;
        int64_t step = y->d[dim];
        rest -= step * (s->n[dim] - 1);
        more = left <= rest && step >= left;
        if (!more && (left <= rest || (left - 1 - rest) / step + 1 >= s->n[dim])) break;
        s->n[dim] = more ? 1 : (left - 1 - rest) / step + 1;
        if (!more) return true;
    }
    memcpy(s->n, before, sizeof before);
    return false;
}

/* y of each of the region's dimensions at the addresses; false: some may be elsewhere. */
bool work_tile_at(struct work *w, const struct region *g, const struct affine *address,
                  struct affine *y, enum clips clips) {
    struct sym *s = w->s;
    struct affine off = *address;
    if (!lin_add(&off.l, &g->base, -1)) return false;
    for (int d = 0; d < SYM_DIMS; d++)
        if (d >= s->ndims || s->n[d] == 1) off.d[d] = 0;
    for (int k = 0; k < g->ndims; k++) {
        int64_t stride = g->s[k];
        struct lin first, last;
        int64_t lo, hi;
        y[k] = affine_of(0);
        for (int i = 0; i < SYM_LOOPS; i++) sym_carry(&off.l.k[i], stride, &y[k].l.k[i]);
        y[k].l.c = off.l.c / stride - (off.l.c % stride < 0);
        off.l.c -= y[k].l.c * stride;
        for (int d = 0; d < s->ndims; d++) sym_carry(&off.d[d], stride, &y[k].d[d]);
        affine_ends(s, &y[k], &first, &last);
        lin_range(s, &first, &lo, &hi);
        last.c++;
        if (lo < 0 ||
            (lin_le(s, &last, &g->n[k]) != YES && !(clips && sym_clip_at(s, &y[k], &g->n[k]))))
            return false;
    }
    for (int d = 0; d < s->ndims && clips == CLIPS_ROWS; d++) {
        if (!off.d[d]) continue;
        off.d[d] = 0;
        s->n[d] = 1;
    }
    struct affine zero = affine_of(0);
    return affine_same(&off, &zero);
}

bool work_tile_index(const struct region *g, const struct affine *y, struct affine *index) {
    bool good = true;
    for (int e = 0; e < g->nindices; e++) {
        index[e] = (struct affine){.l = g->o[e]};
        for (int k = 0; k < g->ndims; k++)
            if (g->c[k][e]) good &= affine_add(&index[e], &y[k], g->c[k][e]);
    }
    return good;
}

/* Dimensions of one value say nothing. */
static void work_settle(const struct sym *s, struct affine *f) {
    for (int d = 0; d < SYM_DIMS; d++)
        if (d >= s->ndims || s->n[d] == 1) f->d[d] = 0;
}

bool work_same(const struct sym *s, struct affine a, struct affine b) {
    work_settle(s, &a);
    work_settle(s, &b);
    return affine_same(&a, &b);
}

bool region_is_current(const struct region *g, int place) {
    return g->place == place && !g->box && g->age == 0;
}

/* Nothing that is read is an element, and the fill is what stands there. */
static bool reads_constant(struct sym *s, const struct region *g, const struct access *a,
                           const struct affine *index) {
    const struct buffer *b = &s->v->p->buffer[a->buffer];
    bool outside = false;
    for (int e = 0; e < b->ndims; e++) {
        int64_t lo, hi;
        affine_range(s, &index[e], &lo, &hi);
        outside |= hi < 0 || lo >= b->extent[e];
    }
    return outside && a->has_fill && g->fill.i == a->fill.i;
}

/* The elements that the access reads, in that version, lie in the place where it says; with
 * CLIPS_ENDS the first *part of the values of dimension *dim. */
static const struct region *tile_with(struct work *w, int place, int access, const struct access *a,
                                      const struct wanted_version *want, enum clips clips, int *dim,
                                      int64_t *part) {
    struct sym *s = w->s;
    for (int k = 0; k < s->of[place].n; k++) {
        const struct region *g = &s->of[place].at[k];
        struct affine y[TILE_DIMS], found[SYM_INDICES], index[SYM_INDICES];
        int64_t n[SYM_DIMS];
        int cuts = 0;
        if (!region_is_current(g, place) || g->buffer != a->buffer || g->writer < -1) continue;
        if (g->type != s->v->p->buffer[g->buffer].type) continue;
        if (!region_is_constant(g) && !has_version(g, want)) continue;
        work_split_at(w, &w->access[access], g->s, g->ndims);
        memcpy(n, s->n, sizeof n);
        bool good = work_tile_at(w, g, &w->access[access], y, clips) &&
                    work_tile_index(g, y, found) && index_forms(s, a, w->point, index);
        for (int e = 0; e < g->nindices && good; e++) good = work_same(s, found[e], index[e]);
        struct region inside = {0};
        bool outside =
            good && !region_is_constant(g) && !need_box(s, index, g->buffer, false, &inside);
        good &= !region_is_constant(g) || reads_constant(s, g, a, index);
        good &= !outside || (g->filled && a->has_fill && g->fill.i == a->fill.i);
        for (int d = 0; d < s->ndims && good; d++) {
            if (s->n[d] == n[d]) continue;
            cuts++;
            *dim = d;
            *part = s->n[d];
        }
        memcpy(s->n, n, sizeof n);
        if (good && cuts == (clips == CLIPS_ENDS)) return g;
    }
    return NULL;
}

/* From that value of a dimension on, `n` values of it. */
static void move_to(struct work *w, int access, int dim, int64_t from, int64_t n) {
    lin_add(&w->access[access].l, &(struct lin){.c = w->access[access].d[dim]}, from);
    for (int a = 0; a < w->s->v->p->naxes; a++)
        lin_add(&w->point[a].l, &(struct lin){.c = w->point[a].d[dim]}, from);
    w->s->n[dim] = n;
}

/* In several regions, of which each has the next part; the region of the first. */
static const struct region *tile_parts(struct work *w, int place, int access,
                                       const struct access *a, const struct wanted_version *want,
                                       int parts) {
    int dim;
    int64_t part;
    const struct region *g = tile_with(w, place, access, a, want, CLIPS_NOTHING, &dim, &part);
    if (g || parts == 1) return g;
    g = tile_with(w, place, access, a, want, CLIPS_ENDS, &dim, &part);
    if (!g || !sym_spend(w->s, 1)) return NULL;
    int64_t n = w->s->n[dim];
    move_to(w, access, dim, part, n - part);
    bool rest = tile_parts(w, place, access, a, want, parts - 1);
    move_to(w, access, dim, -part, n);
    return rest ? g : NULL;
}

/* Where what goes on is a part of a larger tile, only a part of that joins it: rows of the first of
 * several blocks, of which the next rows follow. */
static const struct region *tile_among(struct work *w, int place, int access,
                                       const struct access *a, const struct wanted_version *want,
                                       int parts) {
    struct sym *s = w->s;
    struct lin first, end;
    affine_ends(s, &w->access[access], &first, &end);
    end.c += (int64_t)type_size(s->v->p->buffer[a->buffer].type);
    if (!regions_cut(s, place, &first, &end)) return NULL;
    struct regions all = s->of[place];
    s->of[place] = s->among;
    const struct region *g = tile_parts(w, place, access, a, want, parts);
    s->of[place] = all;
    return g;
}

/* Pieces of it may have to be joined first. Of what is added to one region must say how much is
 * there already. */
static const struct region *tile_holds(struct work *w, int place, int access,
                                       const struct access *a, const struct wanted_version *want) {
    enum { PARTS = 3 };
    struct sym *s = w->s;
    int pieces = s->of[place].n, parts = want->own >= 0 ? 1 : PARTS;
    const struct region *g = tile_parts(w, place, access, a, want, parts);
    if (!g && regions_coalesce_place(s, place) && s->of[place].n < pieces)
        g = tile_parts(w, place, access, a, want, parts);
    if (!g) g = tile_among(w, place, access, a, want, parts);
    if (g) return g;
    sym_fail(s, "place '%s' is not known to hold what '%s' reads", s->v->s->place[place].name,
             w->in->id);
    return NULL;
}

/* ---- reads ---- */
static const struct region *holds(struct work *w, int operand, int access, const struct access *a,
                                  struct wanted_version *want) {
    struct sym *s = w->s;
    int place = w->n->arg[operand].place;
    const struct place *p;
    struct affine index[SYM_INDICES], address;
    if (place < 0) return sym_fail(s, "an immediate stands for an element"), NULL;
    p = &s->v->s->place[place];
    if (type_size(w->in->operand[operand].type) != type_size(s->v->p->buffer[a->buffer].type))
        return sym_fail(s, "an operand of '%s' is of another size", w->in->id), NULL;
    if (p->keep == KEEP_LOCAL) return tile_holds(w, place, access, a, want);
    if (p->buffer != a->buffer)
        return sym_fail(s, "'%s' reads another buffer at home", w->in->id), NULL;
    if (!index_forms(s, a, w->point, index) || !home_address(s, place, index, &address))
        return NULL;
    if (!work_same(s, address, w->access[access]))
        return sym_fail(s, "'%s' reads another element of '%s'", w->in->id, p->name), NULL;
    struct region inside = {0};
    if (!need_box(s, index, a->buffer, false, &inside)) return NULL;
    return home_read(s, place, &inside, want);
}

static bool read_fits(struct work *w, int r, int target);

/* What several statements have written, first the elements of the one, then those of the others. */
static bool reads_fit_apart(struct work *w, int r, int target, const struct affine *index,
                            const struct image *x) {
    struct sym *s = w->s;
    int nindices = s->v->p->buffer[w->stmt->read[target].buffer].ndims;
    for (int k = 0; k < 2 * nindices; k++) {
        const struct lin *edge = k % 2 ? &x->end[k / 2] : &x->from[k / 2];
        int64_t n[SYM_DIMS], part = 0;
        int d = -1, cuts = 0;
        memcpy(n, s->n, sizeof n);
        if (!sym_clip_at(s, &index[k / 2], edge)) continue;
        for (int i = 0; i < s->ndims; i++) {
            if (s->n[i] == n[i]) continue;
            cuts++;
            part = s->n[d = i];
        }
        if (cuts != 1) {
            memcpy(s->n, n, sizeof n);
            continue;
        }
        bool good = sym_spend(s, 1) && read_fits(w, r, target);
        move_to(w, r + 1, d, part, n[d] - part);
        good = good && read_fits(w, r, target);
        move_to(w, r + 1, d, -part, n[d]);
        return good;
    }
    return false;
}

static bool read_fits(struct work *w, int r, int target) {
    struct sym *s = w->s;
    const struct access *a = target == SELF ? &w->stmt->dst : &w->stmt->read[target];
    int operand = r < 0 ? w->h->dst_operand : w->h->read_operand[r];
    struct affine index[SYM_INDICES];
    struct region need = {0};
    struct wanted_version want;
    if (!index_forms(s, a, w->point, index) ||
        !need_box(s, index, a->buffer, target != SELF && a->has_fill, &need))
        return false;
    if (!version_wanted(s, w->n->stmt, &need, &want))
        return want.spans && target != SELF && reads_fit_apart(w, r, target, index, want.spans);
    return holds(w, operand, r + 1, a, &want);
}

/* The operand of the result, where it is written. */
static bool reads_destination(const struct work *w, int r) {
    return w->h->read_operand[r] == w->h->dst_operand &&
           work_same(w->s, w->access[r + 1], w->access[0]);
}

bool work_read_fits(struct work *w, int input, int target) {
    if (target != SELF) return read_fits(w, input, target);
    return input == SELF || reads_destination(w, input) ||
           sym_fail(w->s, "'%s' adds to another element", w->in->id);
}

bool work_reads_fit(struct work *w, const struct candidate_of *c) {
    for (int r = 0; r < w->h->stmt->nreads; r++)
        if (c->read[r] != UNUSED && !work_read_fits(w, r, c->read[r])) return false;
    return c->self < 0 || read_fits(w, SELF, c->self);
}

/* What the destination holds before, of which any partial result will do. */
bool work_partial_before(struct work *w, struct lin *count) {
    struct sym *s = w->s;
    struct affine index[SYM_INDICES];
    struct region need = {0};
    struct wanted_version want;
    *count = lin_of(0);
    if (!index_forms(s, &w->stmt->dst, w->point, index) ||
        !need_box(s, index, w->stmt->dst.buffer, false, &need))
        return false;
    if (!version_wanted(s, w->n->stmt, &need, &want))
        want = (struct wanted_version){.own_only = true, .writer = -2};
    want.own = w->n->stmt;
    want.own_step = sym_step(s, w->n->stmt);
    const struct region *g = holds(w, w->h->dst_operand, 0, &w->stmt->dst, &want);
    if (!g) return false;
    if (g->writer == want.own && lin_same(&g->step, &want.own_step)) *count = g->count;
    return true;
}

/* ---- results ---- */
/* No byte of the one is ever a byte of the other, padding and all turns of the loops around
 * included. */
static bool lie_apart(struct work *w, int read, const struct affine *a, const struct affine *b) {
    struct sym *s = w->s;
    const struct stmt *t = w->h->stmt;
    const struct buffer *of = w->h->bound->buffer;
    int64_t n[SYM_DIMS], alo, ahi, blo, bhi;
    memcpy(n, s->n, sizeof n);
    for (int d = 0; d < s->ndims; d++) s->n[d] = w->full[d];
    affine_range(s, a, &alo, &ahi);
    affine_range(s, b, &blo, &bhi);
    memcpy(s->n, n, sizeof n);
    return ahi < blo - (int64_t)type_size(of[t->read[read].buffer].type) + 1 ||
           bhi < alo - (int64_t)type_size(of[t->dst.buffer].type) + 1;
}

/* An operand in the bytes of the result is read at the points where they are written. Entries of a
 * table are walked one behind the other, though they take turns: what one reads has to be there as
 * it was before the others wrote, so it is none of their bytes. */
bool work_in_place(struct work *w) {
    struct sym *s = w->s;
    int to = w->n->arg[w->h->dst_operand].place;
    const struct place *q = &s->v->s->place[to];
    for (int r = 0; r < w->h->stmt->nreads; r++) {
        int from = w->n->arg[w->h->read_operand[r]].place;
        if (from < 0 || !places_share(&s->v->s->place[from], q)) continue;
        if (w->stmt && w->stmt->combine != COMBINE_SET && reads_destination(w, r)) continue;
        const struct place *p = &s->v->s->place[from];
        struct affine a = w->access[r + 1], b = w->access[0];
        a.l.c += p->address;
        b.l.c += q->address;
        if ((from == to || (p->slots == 1 && q->slots == 1)) && lie_apart(w, r, &a, &b)) continue;
        bool moves = true;
        for (int d = 0; d < s->ndims; d++) moves &= w->full[d] == 1 || b.d[d] != 0;
        if (!w->stmt || !moves || !work_same(s, a, b) ||
            (from != to && (p->slots > 1 || q->slots > 1)))
            return sym_fail(s, "'%s' writes where it reads", w->in->id);
    }
    return true;
}

bool work_destination(struct work *w, const int64_t *n, const struct affine *index, int nindices,
                      struct region *out) {
    struct sym *s = w->s;
    int64_t reach = (int64_t)type_size(out->type);
    out->base = w->access[0].l;
    out->nindices = nindices;
    for (int e = 0; e < nindices; e++) out->o[e] = index[e].l;
    for (int d = 0; d < s->ndims; d++) {
        int64_t step = w->access[0].d[d];
        if (n[d] == 1) continue;
        if (step == 0) {
            for (int e = 0; e < nindices; e++)
                if (index[e].d[d]) return sym_fail(s, "elements share bytes");
            continue;
        }
        if (step < 0 || out->ndims == TILE_DIMS)
            return sym_fail(s, "a destination with many dimensions");
        out->n[out->ndims] = lin_of(n[d]);
        out->s[out->ndims] = step;
        for (int e = 0; e < nindices; e++) out->c[out->ndims][e] = index[e].d[d];
        out->ndims++;
    }
    struct region sorted = *out;
    region_tidy(s, &sorted);
    for (int d = sorted.ndims - 1; d >= 0; d--) {
        int64_t count;
        if (sorted.s[d] < reach || !lin_constant(&sorted.n[d], &count))
            return sym_fail(s, "elements share bytes");
        reach += sorted.s[d] * (count - 1);
    }
    *out = sorted;
    return true;
}

static bool write_tile(struct work *w, const struct affine *index, struct region *x) {
    struct sym *s = w->s;
    struct region all = *x;
    if (!work_destination(w, w->full, index, 0, &all) ||
        !work_destination(w, w->valid, index, index ? s->v->p->buffer[x->buffer].ndims : 0, x))
        return false;
    regions_kill(s, &all);
    return regions_add(s, x);
}

/* Each index from its factors, in the part where `g` lies. The number in a factor follows from the
 * address's own, or from the least address: of 256 u - 64 where u is not 0. */
static bool home_index(struct sym *s, const struct region *g, const struct affine *address,
                       bool least, struct affine *index) {
    const struct home_layout *h = sym_layout(s, g->place);
    const struct buffer *b = &s->v->p->buffer[g->buffer];
    const int64_t *room = s->v->s->place[g->place].extent; /* with padding */
    struct affine off = *address;
    bool taken[SYM_DIGITS] = {false};
    if (!h) return false;
    work_settle(s, &off);
    for (int e = 0; e < b->ndims; e++) {
        struct affine first = {.l = g->o[e]}, turn, rest;
        index[e] = affine_of(0);
        if (h->period[e] == INT64_MAX) continue;
        if (!affine_divide(s, &first, h->period[e], &turn, &rest) ||
            !affine_add(&index[e], &turn, h->period[e]))
            return false;
    }
    for (int k = 0; k < h->n; k++) {
        int next = -1;
        for (int i = 0; i < h->n; i++)
            if (!taken[i] && (next < 0 || h->d[i].stride > h->d[next].stride)) next = i;
        const struct digit *d = &h->d[next];
        struct affine y = affine_of(0);
        taken[next] = true;
        int64_t extent = room ? room[d->index] : b->extent[d->index];
        int64_t most = (extent + d->div - 1) / d->div, lo, hi;
        if (d->mod < most) most = d->mod;
        if (most == 1) continue;
        for (int i = 0; i < SYM_LOOPS; i++) sym_carry(&off.l.k[i], d->stride, &y.l.k[i]);
        for (int i = 0; i < s->ndims; i++) sym_carry(&off.d[i], d->stride, &y.d[i]);
        lo = off.l.c;
        if (least) affine_range(s, &off, &lo, &hi);
        y.l.c = lo / d->stride - (lo % d->stride < 0);
        off.l.c -= y.l.c * d->stride;
        affine_range(s, &y, &lo, &hi);
        if (lo < 0 || (d->mod != INT64_MAX && hi >= d->mod) ||
            !affine_add(&index[d->index], &y, d->div))
            return false;
    }
    struct affine zero = affine_of(0), again;
    return affine_same(&off, &zero) && home_address(s, g->place, index, &again) &&
           work_same(s, again, *address);
}

static bool inside_buffer(const struct sym *s, int buffer, const struct affine *index) {
    const struct buffer *b = &s->v->p->buffer[buffer];
    for (int e = 0; e < b->ndims; e++) {
        int64_t lo, hi;
        affine_range(s, &index[e], &lo, &hi);
        if (lo < 0 || hi >= b->extent[e]) return false;
    }
    return true;
}

/* What is behind the end of a row and what is in the next one are one address: elements of the
 * buffer come first. More is then followed for all iterations of a loop at once, which may be too
 * much: where a bold attempt fails, a careful one takes the first way alone. */
bool work_home_index(struct sym *s, const struct region *g, const struct affine *address,
                     struct affine *index) {
    struct affine other[SYM_INDICES];
    bool found = home_index(s, g, address, false, index);
    if (found && inside_buffer(s, g->buffer, index)) return true;
    if (!s->bold || !home_index(s, g, address, true, other) ||
        (found && !inside_buffer(s, g->buffer, other)))
        return found;
    memcpy(index, other, (size_t)s->v->p->buffer[g->buffer].ndims * sizeof *index);
    return true;
}

/* A step in a home as steps of its indices, the longest first. */
static bool home_step(const struct home_layout *h, int64_t step, int d, struct affine *index) {
    while (step > 0) {
        const struct digit *most = NULL;
        for (int k = 0; k < h->n; k++)
            if (h->d[k].stride <= step && (!most || h->d[k].stride > most->stride)) most = &h->d[k];
        if (!most) return false;
        int64_t *by = &index[most->index].d[d], more;
        if (__builtin_mul_overflow(most->div, step / most->stride, &more) ||
            __builtin_add_overflow(*by, more, by))
            return false;
        step %= most->stride;
    }
    return step == 0;
}

/* What the one side has there are no elements that go on. padding_fits looks whether they are the
 * ones. */
void work_go_on(const struct work *w, int place, int access, const struct affine *index,
                int nindices, struct affine *out) {
    const struct home_layout *h = sym_layout(w->s, place);
    const struct affine *at = &w->access[access];
    struct affine address;
    memcpy(out, index, (size_t)nindices * sizeof *out);
    if (!h || !home_address(w->s, place, index, &address)) return;
    for (int d = 0; d < w->s->ndims; d++) {
        if (w->valid[d] != 1 || w->full[d] == 1 || address.d[d] == at->d[d]) continue;
        for (int e = 0; e < nindices; e++) out[e].d[d] = 0;
        home_step(h, at->d[d], d, out);
    }
}

/* Padding along a dimension has an index behind the end of its buffer, where the home has room:
 * what stands there is no element, for the layout does not fold that index. */
static bool behind_end(const struct work *w, const struct place *p, const struct home_layout *h,
                       const struct affine *index, int d) {
    const struct buffer *b = &w->s->v->p->buffer[p->buffer];
    for (int e = 0; e < b->ndims && p->extent; e++) {
        struct affine first = index[e];
        int64_t lo, hi;
        if (first.d[d] < 1 || p->extent[e] > h->period[e]) continue;
        first.l.c += first.d[d] * w->valid[d];
        first.d[d] = 0;
        affine_range(w->s, &first, &lo, &hi);
        if (lo >= b->extent[e]) return true;
    }
    return false;
}

/* Where padding goes: *apart: to no element; else what stood there is lost. */
static bool padding_fits(struct work *w, const struct region *x, const struct affine *index,
                         bool *apart) {
    struct sym *s = w->s;
    const struct place *p = &s->v->s->place[x->place];
    const struct buffer *b = &s->v->p->buffer[p->buffer];
    const struct home_layout *h = sym_layout(s, x->place);
    struct affine address;
    int64_t n[SYM_DIMS];
    bool padded = false;
    *apart = true;
    memcpy(n, s->n, sizeof n);
    for (int d = 0; d < s->ndims; d++) padded |= w->full[d] != w->valid[d];
    if (!padded) return h;
    s->unpadded += s->padded[x->place];
    s->padded[x->place] = false;
    memcpy(s->n, w->full, sizeof n);
    bool good =
        h && home_address(s, x->place, index, &address) && work_same(s, address, w->access[0]);
    for (int e = 0; e < b->ndims && good; e++) {
        int64_t lo, hi, extent = p->extent ? p->extent[e] : b->extent[e];
        affine_range(s, &index[e], &lo, &hi);
        good = lo >= 0 && hi < extent;
    }
    for (int d = 0; d < s->ndims && good; d++)
        if (w->full[d] != w->valid[d]) *apart &= behind_end(w, p, h, index, d);
    memcpy(s->n, n, sizeof n);
    return good ||
           sym_fail(s, "padding is written to the home '%s', which has no room for it", p->name);
}

/* The padding too. */
static bool touch_written(struct work *w, int place, const struct affine *index, int nindices) {
    struct sym *s = w->s;
    struct lin first[SYM_INDICES], n[SYM_INDICES];
    int64_t valid[SYM_DIMS];
    memcpy(valid, s->n, sizeof valid);
    memcpy(s->n, w->full, sizeof w->full);
    for (int e = 0; e < nindices; e++) {
        affine_ends(s, &index[e], &first[e], &n[e]);
        n[e].c++;
        lin_add(&n[e], &first[e], -1);
    }
    memcpy(s->n, valid, sizeof valid);
    return parallel_touch(s, place, first, n, nindices, true);
}

/* Padding goes over elements, whatever they held. */
static bool lose_padding(struct work *w, const struct affine *index, int nindices,
                         const struct region *x) {
    struct sym *s = w->s;
    struct region all = *x;
    int64_t valid[SYM_DIMS];
    memcpy(valid, s->n, sizeof valid);
    memcpy(s->n, w->full, sizeof w->full);
    bool good = forms_box(s, index, nindices, &all) ||
                sym_fail(s, "padding that is written to a home is no box");
    memcpy(s->n, valid, sizeof valid);
    if (!good || !box_in_one_fold(s, &all)) return false;
    regions_kill(s, &all);
    return true;
}

static bool write_home(struct work *w, const struct affine *index, struct region *x) {
    struct sym *s = w->s;
    const struct place *p = &s->v->s->place[x->place];
    struct affine address, all[SYM_INDICES];
    int n = s->v->p->buffer[x->buffer].ndims;
    struct region inside = {0};
    bool apart;
    if (p->buffer != x->buffer || x->type != s->v->p->buffer[x->buffer].type || x->filled)
        return sym_fail(s, "a home gets what is not its own");
    work_go_on(w, x->place, 0, index, n, all);
    if (!padding_fits(w, x, all, &apart)) return false;
    if (!home_address(s, x->place, index, &address)) return false;
    if (!work_same(s, address, w->access[0]))
        return sym_fail(s, "'%s' writes another element of '%s'", w->in->id, p->name);
    if (!need_box(s, index, x->buffer, false, &inside)) return false;
    if (!forms_box(s, index, n, x)) return sym_fail(s, "what is written to a home is no box");
    if (!box_in_one_fold(s, x) || !touch_written(w, x->place, all, n)) return false;
    if (!apart && !lose_padding(w, all, n, x)) return false;
    regions_kill(s, x);
    return regions_add(s, x);
}

bool work_write(struct work *w, const struct affine *index, struct region *x) {
    x->place = w->n->arg[w->h->dst_operand].place;
    if (x->place < 0) return sym_fail(w->s, "a result has no place");
    return w->s->v->s->place[x->place].keep == KEEP_LOCAL ? write_tile(w, index, x)
                                                          : write_home(w, index, x);
}
