/* Issues that execute a statement, and moves. */
#include "scheduler/verify/work.h"

#include <string.h>

/* ---- statements ---- */
static int64_t contributions(const struct work *w) {
    int64_t times = 1;
    for (int d = 0; d < w->s->ndims; d++)
        if (!w->access[0].d[d]) times *= w->valid[d];
    return times;
}

static bool clears(struct work *w) {
    struct sym *s = w->s;
    const struct program *p = s->v->p;
    struct affine index[SYM_INDICES], same[SYM_INDICES], point[MAX_AXES];
    const struct stmt *fill;
    if (w->n->init < 0) return sym_fail(s, "a result is overwritten that no statement begins");
    fill = &p->stmt[w->n->init];
    if (!stmt_is_neutral_fill(p, fill, w->stmt) || fill->nwhere)
        return sym_fail(s, "statement %d does not begin the sum", w->n->init);
    for (int a = 0; a < p->naxes; a++)
        point[a] = s->v->domain[w->n->init] >> a & 1 ? w->point[a] : affine_of(0);
    if (!index_forms(s, &fill->dst, point, index) || !index_forms(s, &w->stmt->dst, w->point, same))
        return false;
    for (int e = 0; e < p->buffer[fill->dst.buffer].ndims; e++)
        if (!work_same(s, index[e], same[e]))
            return sym_fail(s, "statement %d begins another element", w->n->init);
    for (int a = 0; a < p->naxes; a++) {
        int64_t lo, hi;
        if (!(s->v->domain[w->n->init] >> a & 1)) continue;
        affine_range(s, &point[a], &lo, &hi);
        if (lo < axis_least(&p->axis[a]) || hi >= p->axis[a].extent ||
            !(s->v->domain[w->n->stmt] >> a & 1))
            return sym_fail(s, "statement %d has an axis of its own", w->n->init);
    }
    return !parted_begun(s, w->n->init) && instances_executed(s, w->n->init, point);
}

static bool each_point_moves(struct work *w) {
    for (int d = 0; d < w->s->ndims; d++) {
        bool moves = w->valid[d] == 1;
        for (int a = 0; a < w->s->v->p->naxes && !moves; a++)
            moves = (w->s->v->domain[w->n->stmt] >> a & 1) && w->point[a].d[d];
        if (!moves)
            return sym_fail(w->s, "a loop executes the same instances of statement %d again",
                            w->n->stmt);
    }
    return true;
}

/* Operands stand where places are of the buffers that are read. */
static bool likely(const struct work *w, const struct candidate_of *c) {
    for (int r = 0; r < w->h->stmt->nreads; r++) {
        int place = w->n->arg[w->h->read_operand[r]].place;
        if (c->read[r] < 0 || place < 0) continue;
        if (w->s->v->s->place[place].buffer != w->stmt->read[c->read[r]].buffer) return false;
    }
    return true;
}

static bool operand_may(void *user, int input, int target) {
    return work_read_fits(user, input, target);
}

static bool choose(struct work *w, struct binding_of *b) {
    bool any = false;
    for (int c = 0; c < b->n; c++) any |= likely(w, &b->candidate[c]);
    for (int c = 0; c < b->n; c++) {
        if (any && !likely(w, &b->candidate[c])) continue;
        if (!work_reads_fit(w, &b->candidate[c])) continue;
        w->candidate = &b->candidate[c];
        return true;
    }
    w->candidate = binding_fitting(w->s->v, w->h, w->n, b, operand_may, w);
    return w->candidate || b->n > 0 ||
           sym_fail(w->s, "'%s' does not compute statement %d", w->in->id, w->n->stmt);
}

bool work_compute_box(struct work *w) {
    struct sym *s = w->s;
    const struct program *p = s->v->p;
    struct affine index[SYM_INDICES];
    struct region x = {.buffer = w->stmt->dst.buffer, .writer = sym_writer(s, w->n->stmt)};
    struct lin before = lin_of(0);
    bool reduces = w->stmt->combine != COMBINE_SET;
    x.type = p->buffer[x.buffer].type;
    if (!work_in_place(w) || !each_point_moves(w) || !sym_at(s, w->n->stmt, w->point)) return false;
    x.step = sym_step(s, w->n->stmt);
    struct binding_of *b = binding_get(s->v, w->h, w->n, w->overwrite);
    if (b->n == 0) return choose(w, b);
    if (!choose(w, b) || !w->candidate || !work_padding_is_neutral(w)) return false;
    if (w->overwrite && reduces && !clears(w)) return false;
    bool adds = w->candidate->self == SELF;
    for (int r = 0; r < w->h->stmt->nreads; r++) adds |= w->candidate->read[r] == SELF;
    if (!w->overwrite && adds && !work_partial_before(w, &before)) return false;
    if (reduces && !w->overwrite && !adds)
        return sym_fail(s, "'%s' does not add to its destination", w->in->id);
    if (parted_begun(s, w->n->stmt) || !instances_executed(s, w->n->stmt, w->point)) return false;
    x.count = lin_of(contributions(w));
    if (!reduces && x.count.c != 1) return sym_fail(s, "instances share their destination");
    if (!lin_add(&x.count, &before, 1)) return false;
    if (reduces && remade(s, w->n->stmt) && !remade_sum(s, w->n->stmt, &before, &x.count))
        return false;
    return index_forms(s, &w->stmt->dst, w->point, index) && work_write(w, index, &x);
}

/* ---- moves ---- */
/* Padding of a home stands beyond its buffer. */
static void cut_to_buffer(struct sym *s, int buffer, const struct affine *index) {
    const struct buffer *b = &s->v->p->buffer[buffer];
    for (int e = 0; e < b->ndims; e++) {
        struct lin end = lin_of(b->extent[e]);
        int64_t lo, hi;
        affine_range(s, &index[e], &lo, &hi);
        if (hi >= b->extent[e]) sym_clip_at(s, &index[e], &end);
    }
}

/* To those that the region says something of, from the first on. */
static bool cut_to_box(struct sym *s, const struct region *g, const struct affine *index) {
    bool some = false;
    for (int e = 0; e < g->nindices; e++) {
        struct lin end = g->o[e];
        if (!lin_add(&end, &g->n[e], 1)) return false;
        some |= sym_clip_at(s, &index[e], &end);
    }
    return some;
}

/* What the move's source says of the elements, for its valid part; of a local one, if need be, for
 * a part of that. *padded: of all of it, and zero stands for what is outside the buffer. */
static const struct region *move_from(struct work *w, struct affine *index, enum clips clips,
                                      bool *padded) {
    struct sym *s = w->s;
    int place = w->n->arg[w->h->read_operand[0]].place;
    bool local = s->v->s->place[place].keep == KEEP_LOCAL;
    struct lin parted = lin_of(PARTED);
    if (!parted_settle(s, place)) return NULL;
    for (int k = 0; k < s->of[place].n && sym_spend(s, 1); k++) {
        const struct region *g = &s->of[place].at[k];
        if (lin_same(&g->count, &parted)) continue;
        if (region_is_constant(g) || (local && !region_is_current(g, place))) continue;
        if (g->type != s->v->p->buffer[g->buffer].type || type_size(g->type) != type_size(w->moved))
            continue;
        if (local) {
            struct affine y[TILE_DIMS];
            work_split_at(w, &w->access[1], g->s, g->ndims);
            int64_t n[SYM_DIMS];
            memcpy(n, s->n, sizeof n);
            if (work_tile_at(w, g, &w->access[1], y, clips) && work_tile_index(g, y, index))
                return g;
            memcpy(s->n, n, sizeof n);
            continue;
        }
        const struct home_layout *h = sym_layout(s, place);
        if (!h) return NULL;
        work_split_home(w, h, &w->access[1]);
        struct region need = {0};
        struct wanted_version want = {
            .writer = g->writer, .count = g->count, .step = g->step, .own = -1};
        int64_t n[SYM_DIMS];
        if (!work_home_index(w->s, g, &w->access[1], index)) continue;
        memcpy(n, s->n, sizeof n);
        *padded = clips && work_in_padded_home(s, place, g->buffer, index);
        if (*padded && need_box(s, index, g->buffer, true, &need) &&
            home_read(s, place, &need, &want))
            return g;
        *padded = false;
        if (clips) cut_to_buffer(s, g->buffer, index);
        do {
            if (need_box(s, index, g->buffer, false, &need) && home_read(s, place, &need, &want))
                return g;
        } while (clips && cut_to_box(s, g, index));
        memcpy(s->n, n, sizeof n);
    }
    sym_fail(s, "place '%s' is not known to hold what '%s' moves", s->v->s->place[place].name,
             w->in->id);
    return NULL;
}

/* The part of the move that reads its source; outside it writes the fill. */
static bool valid_part(struct work *w, int64_t *lo) {
    struct sym *s = w->s;
    memset(lo, 0, SYM_DIMS * sizeof *lo);
    for (int k = 0; k < w->f->ndims; k++) {
        int d = w->fit_dim[k];
        const struct fit_access *c = &w->f->access[1];
        lo[d] = c->lo[k];
        s->n[d] = c->hi[k] - c->lo[k] + 1;
        w->valid[d] = s->n[d];
        w->access[1].l.c += w->access[1].d[d] * lo[d];
    }
    return true;
}

/* Outside the valid part the indices go on beyond the buffer, where the fill stands for them. Where
 * they would be inside behind it, only what comes before is known. */
static bool fill_beyond(struct work *w, const struct region *g, struct affine *index,
                        const int64_t *lo, int64_t *known, bool *filled) {
    struct sym *s = w->s;
    const struct buffer *b = &s->v->p->buffer[g->buffer];
    *filled = false;
    for (int d = 0; d < s->ndims; d++) {
        int moved = -1;
        if (w->valid[d] == w->full[d]) continue;
        for (int e = 0; e < b->ndims; e++) {
            if (!index[e].d[d]) continue;
            if (moved >= 0 || index[e].d[d] < 1) return sym_fail(s, "padding that is no box");
            moved = e;
        }
        if (moved < 0) return sym_fail(s, "padding that is no box");
        struct affine ends = index[moved];
        int64_t low, high, step = ends.d[d];
        ends.d[d] = 0;
        affine_range(s, &ends, &low, &high);
        if (lo[d] > 0 && high - step >= 0) return sym_fail(s, "padding inside a buffer");
        bool within =
            lo[d] + w->valid[d] < w->full[d] && low + step * w->valid[d] < b->extent[moved];
        if (within && known[d] == w->full[d]) known[d] = lo[d] + w->valid[d];
        *filled |= lo[d] > 0 || !within;
    }
    for (int d = 0; d < s->ndims; d++)
        for (int e = 0; e < b->ndims; e++) index[e].l.c -= index[e].d[d] * lo[d];
    return true;
}

static bool brings_nothing(const struct work *w) {
    for (int k = 0; k < w->f->ndims; k++)
        if (w->f->access[1].hi[k] < w->f->access[1].lo[k]) return true;
    return false;
}

/* The whole tile gets the constant. */
static bool work_fill(struct work *w, const struct access *read) {
    const struct place *to = &w->s->v->s->place[w->n->arg[w->h->dst_operand].place];
    struct region x = {.buffer = to->buffer,
                       .writer = -1,
                       .type = w->in->operand[w->h->dst_operand].type,
                       .filled = true,
                       .fill = read->fill};
    if (to->keep != KEEP_LOCAL) return sym_fail(w->s, "a home gets what is not its own");
    memcpy(w->valid, w->full, sizeof w->full);
    return work_write(w, NULL, &x);
}

/* What a move brings by one region, and, behind the first `done` values of dimension cut, what is
 * left of it; none: -1. Of several such dimensions it is the one with the longest step; along the
 * others what is left out is padding. */
struct brought {
    const struct region *from;
    struct affine index[SYM_INDICES];
    bool padded;
    int cut;
    int64_t done;
};

static bool bring(struct work *w, struct brought *b) {
    struct sym *s = w->s;
    *b = (struct brought){.cut = -1};
    for (enum clips c = CLIPS_NOTHING; !b->from && c <= CLIPS_ROWS; c++)
        b->from = move_from(w, b->index, c, &b->padded);
    for (int d = 0; b->from && d < s->ndims; d++) {
        if (w->of_loop[d] && s->n[d] < w->full[d])
            return sym_fail(s, "iterations of a loop move different parts");
        if (s->n[d] >= w->valid[d]) continue;
        if (w->access[0].d[d] <= (b->cut < 0 ? 0 : w->access[0].d[b->cut])) continue;
        b->cut = d;
        b->done = s->n[d];
    }
    return b->from;
}

static bool put(struct work *w, const int64_t *lo, struct brought *b) {
    struct sym *s = w->s;
    const struct access *read = &w->h->stmt->read[0];
    const struct region *g = b->from;
    int64_t known[SYM_DIMS];
    for (int d = 0; d < s->ndims; d++) known[d] = s->n[d] < w->valid[d] ? s->n[d] : w->full[d];
    struct region x = {.buffer = g->buffer,
                       .writer = g->writer,
                       .type = g->type,
                       .count = g->count,
                       .step = g->step};
    int place = w->n->arg[w->h->read_operand[0]].place;
    struct affine index[SYM_INDICES];
    bool filled;
    memcpy(index, b->index, sizeof index);
    if (s->v->s->place[place].keep != KEEP_LOCAL)
        work_go_on(w, place, 1, index, s->v->p->buffer[g->buffer].ndims, b->index);
    if (!fill_beyond(w, g, b->index, lo, known, &filled)) return false;
    union value zero = {.i = 0}, inner = b->padded ? zero : g->fill;
    bool outside = g->filled || b->padded;
    x.filled = outside || filled;
    x.fill = filled ? read->fill : inner;
    if (outside && filled && inner.i != read->fill.i) return sym_fail(s, "two fills meet");
    if (type_size(w->moved) != type_size(x.type)) return sym_fail(s, "a copy of another size");
    for (int d = 0; d < s->ndims; d++)
        if (s->n[d] < w->valid[d] && w->valid[d] < w->full[d])
            return sym_fail(s, "padding of what is not known");
    memcpy(w->valid, known, sizeof known);
    memcpy(s->n, known, sizeof known);
    return work_write(w, b->index, &x);
}

/* Another region says what the first values of the rest are. */
static bool goes_on(struct work *w, const struct brought *b, struct work *rest) {
    struct sym *s = w->s;
    struct region all = {.type = w->moved};
    struct brought next;
    int64_t n[SYM_DIMS];
    int ndims = s->ndims;
    if (b->cut < 0 || memcmp(w->valid, w->full, sizeof w->full) != 0 ||
        !work_destination(w, w->full, NULL, 0, &all))
        return false;
    memcpy(n, s->n, sizeof n);
    *rest = *w;
    for (int r = 0; r <= w->h->stmt->nreads; r++)
        rest->access[r].l.c += rest->access[r].d[b->cut] * b->done;
    rest->full[b->cut] -= b->done;
    memcpy(rest->valid, rest->full, sizeof rest->full);
    memcpy(s->n, rest->full, sizeof rest->full);
    struct work there = *rest;
    bool good = bring(&there, &next);

    memcpy(s->n, n, sizeof n);
    s->ndims = ndims;
    return good;
}

/* Nothing that is known lies where the move reads, and it writes a local place. */
static bool moves_nothing_known(struct work *w, struct region *to) {
    struct sym *s = w->s;
    const struct place *place = s->v->s->place;
    struct work source = *w;
    struct region from = {.place = w->n->arg[w->h->read_operand[0]].place, .type = w->moved};
    *to = (struct region){.place = w->n->arg[w->h->dst_operand].place, .type = w->moved};
    source.access[0] = w->access[1];
    memcpy(s->n, w->full, sizeof w->full);
    if (memcmp(w->valid, w->full, sizeof w->full) != 0 || place[from.place].keep != KEEP_LOCAL ||
        to->place < 0 || place[to->place].keep != KEEP_LOCAL ||
        !work_destination(&source, w->full, NULL, 0, &from) ||
        !work_destination(w, w->full, NULL, 0, to))
        return false;
    for (int k = 0; k < s->of[from.place].n; k++)
        if (regions_may_meet(s, &s->of[from.place].at[k], &from)) return false;
    return true;
}

/* One region after the other: rows of lanes of which the last ends inside are a box, and a smaller
 * one. What no region says is lost where it goes. */
static bool move_parts(struct work *w, const int64_t *lo) {
    const int64_t none[SYM_DIMS] = {0};
    struct sym *s = w->s;
    for (bool more = true; more && sym_spend(s, 1); lo = none) {
        struct brought b;
        struct work rest;
        struct region lost;
        if (!bring(w, &b)) {
            if (!moves_nothing_known(w, &lost)) return false;
            regions_kill(s, &lost);
            return true;
        }
        int ndims = s->ndims;
        more = goes_on(w, &b, &rest);
        if (more) w->full[b.cut] = w->valid[b.cut] = b.done;
        if (!put(w, lo, &b)) return false;
        if (!more) return true;
        *w = rest;
        s->ndims = ndims;
        memcpy(s->n, w->full, sizeof w->full);
    }
    return false;
}

/* What the elements at the move's source are, if they are wider than its own. */
static enum type wider_at(const struct work *w) {
    const struct sym *s = w->s;
    int place = w->n->arg[w->h->read_operand[0]].place;
    const struct place *p = &s->v->s->place[place];
    if (p->keep != KEEP_LOCAL) return s->v->p->buffer[p->buffer].type;
    for (int k = 0; k < s->of[place].n; k++)
        if (!region_is_constant(&s->of[place].at[k])) return s->of[place].at[k].type;
    return w->moved;
}

/* A move of bytes brings elements of several. Where a row of it is whole elements on both sides, it
 * is taken for a row of these. */
static void move_whole_elements(struct work *w) {
    int64_t *n = w->s->n, own = (int64_t)type_size(w->moved), wide, times;
    enum type type = wider_at(w);
    wide = (int64_t)type_size(type);
    times = wide / own;
    if (times < 2 || wide % own) return;
    for (int k = 0; k < w->f->ndims; k++) {
        int d = w->fit_dim[k];
        struct affine *to = &w->access[0], *from = &w->access[1];
        if (to->d[d] != own || from->d[d] != own || n[d] != w->full[d] || n[d] % times) continue;
        n[d] = w->full[d] = w->valid[d] = n[d] / times;
        to->d[d] = from->d[d] = wide;
        w->moved = type;
        return;
    }
}

bool work_move(struct work *w) {
    struct sym *s = w->s;
    const struct stmt *t = w->h->stmt;
    int64_t lo[SYM_DIMS];
    bool raw =
        t->nreads == 1 && t->nops == 1 && t->op[0].code == OP_READ &&
        w->h->bound->buffer[t->read[0].buffer].type == w->h->bound->buffer[t->dst.buffer].type &&
        w->n->arg[w->h->read_operand[0]].place >= 0;
    if (!raw || (t->combine != COMBINE_SET && !w->overwrite))
        return sym_fail(s, "'%s' is no plain copy", w->in->id);
    if (!work_in_place(w)) return false;
    if (brings_nothing(w)) return work_fill(w, &t->read[0]);
    if (!valid_part(w, lo)) return false;
    w->moved = w->in->operand[w->h->read_operand[0]].type;
    move_whole_elements(w);
    work_join_dims(w);
    int to = w->n->arg[w->h->dst_operand].place;
    const struct home_layout *home =
        s->v->s->place[to].keep != KEEP_LOCAL ? sym_layout(s, to) : NULL;
    if (home) work_split_home(w, home, &w->access[0]);
    return move_parts(w, lo);
}
