/* One issue, with the loops directly around it, or one fallback, on regions. All points are taken
 * at once: what it reads is looked up before, what it writes is known after. */
#include "scheduler/verify/box.h"

#include <string.h>

/* ---- homes ---- */
static bool one_side_on(const struct sym *s, struct region *need, const struct region *g) {
    int apart = -1;
    for (int e = 0; e < need->nindices; e++) {
        struct lin need_end = need->o[e], end = g->o[e];
        if (!lin_add(&need_end, &need->n[e], 1) || !lin_add(&end, &g->n[e], 1)) return false;
        if (lin_le(s, &g->o[e], &need->o[e]) != YES) return false;
        if (lin_le(s, &need_end, &end) == YES) continue;
        if (apart >= 0 || lin_le(s, &end, &need->o[e]) != NO || lin_le(s, &end, &need_end) != YES)
            return false;
        apart = e;
    }
    if (apart < 0) return false;
    struct lin end = g->o[apart], rest = need->o[apart];
    if (!lin_add(&end, &g->n[apart], 1) || !lin_add(&rest, &need->n[apart], 1) ||
        !lin_add(&rest, &end, -1))
        return false;
    need->o[apart] = end;
    need->n[apart] = rest;
    return true;
}

/* The box is at home in that version; the region that holds its beginning, for what else it says.
 */
/* NULL: not known. */
static const struct region *home_holds(struct sym *s, int place, struct region need,
                                       const struct wanted_version *want) {
    const struct region *first = NULL;
    if (!parted_settle(s, place)) return NULL;
    for (bool on = true; on;) {
        on = false;
        for (int k = 0; k < s->of[place].n; k++) {
            const struct region *g = &s->of[place].at[k];
            if (!g->box || !has_version(g, want)) continue;
            if (first && (g->writer != first->writer || !lin_same(&g->count, &first->count) ||
                          !lin_same(&g->step, &first->step)))
                continue;
            if (box_inside(s, &need, g)) return first ? first : g;
            if (!one_side_on(s, &need, g)) continue;
            if (!first) first = g;
            on = true;
        }
        sym_compare(s, s->of[place].n);
        if (!sym_spend(s, 1)) return NULL;
    }
    sym_fail(s, "the home of '%s' is not known to hold what is read",
             s->v->p->buffer[s->v->s->place[place].buffer].name);
    return NULL;
}

const struct region *home_read(struct sym *s, int place, const struct region *need,
                               const struct wanted_version *want) {
    const struct region *g = home_holds(s, place, *need, want);
    bool good = g && parallel_touch(s, place, need->o, need->n, need->nindices, false);
    return good ? g : NULL;
}

/* Cuts the box at an edge of the image that lies inside it. */
static bool cut_at_edge(const struct sym *s, const struct image *x, struct region *low,
                        struct region *high) {
    for (int e = 0; e < low->nindices; e++)
        for (int k = 0; k < 2; k++) {
            struct lin edge = k ? x->end[e] : x->from[e], end = low->o[e];
            if (!lin_add(&end, &low->n[e], 1)) return false;
            if (lin_le(s, &low->o[e], &edge) != YES || lin_le(s, &edge, &end) != YES ||
                lin_same(&low->o[e], &edge) || lin_same(&edge, &end))
                continue;
            *high = *low;
            high->o[e] = low->n[e] = edge;
            high->n[e] = end;
            return lin_add(&high->n[e], &edge, -1) && lin_add(&low->n[e], &low->o[e], -1);
        }
    return false;
}

/* The box is at home, each part of it as the last statement before `stmt` that writes it left it.
 * unset: parts that nothing has written may be there, of which nothing is known. */
static bool home_holds_parts(struct sym *s, int stmt, int place, struct region need, bool unset) {
    struct wanted_version want;
    struct region rest;
    if (region_empty(s, &need)) return true;
    if (version_wanted(s, stmt, &need, &want)) return home_holds(s, place, need, &want);
    if (want.unset && unset) return true;
    return want.spans && sym_spend(s, 1) && cut_at_edge(s, want.spans, &need, &rest) &&
           home_holds_parts(s, stmt, place, need, unset) &&
           home_holds_parts(s, stmt, place, rest, unset);
}

/* From the first to the last of index e, without those outside the buffer where the read has a
 * fill. */
static bool need_ends(struct sym *s, int e, struct lin first, struct lin last, bool has_fill,
                      struct region *need) {
    const struct buffer *b = &s->v->p->buffer[need->buffer];
    struct lin zero = lin_of(0), most = lin_of(b->extent[e]);
    last.c++;
    bool inside = lin_le(s, &zero, &first) == YES, ends = lin_le(s, &last, &most) == YES;
    if ((!inside || !ends) && !has_fill)
        return sym_fail(s, "an access of '%s' is not known to stay inside", b->name);
    need->o[e] = inside ? first : zero;
    need->n[e] = ends ? last : most;
    return lin_add(&need->n[e], &need->o[e], -1) || sym_fail(s, "an index is out of range");
}

static void need_begin(const struct sym *s, int buffer, struct region *need) {
    need->box = true;
    need->buffer = buffer;
    need->nindices = s->v->p->buffer[buffer].ndims;
}

/* The indices that the forms reach. */
bool need_box(struct sym *s, const struct affine *index, int buffer, bool has_fill,
              struct region *need) {
    need_begin(s, buffer, need);
    for (int e = 0; e < need->nindices; e++) {
        struct lin first, last;
        affine_ends(s, &index[e], &first, &last);
        if (!need_ends(s, e, first, last, has_fill, need)) return false;
    }
    return true;
}

/* Those that they reach at points where the statement's constraints hold. */
static bool need_where(struct sym *s, int stmt, const struct affine *point,
                       const struct affine *index, const struct access *a, struct region *need) {
    bool fill = a->has_fill || s->v->p->stmt[stmt].nwhere;
    need_begin(s, a->buffer, need);
    for (int e = 0; e < need->nindices; e++) {
        struct lin first, last;
        affine_ends(s, &index[e], &first, &last);
        clip_where(s, stmt, point, &index[e], &first, &last);
        if (!need_ends(s, e, first, last, fill, need)) return false;
    }
    return true;
}

/* ---- instances ---- */
bool instances_executed(struct sym *s, int stmt, const struct affine *point) {
    struct region x = {.place = s->v->s->nplaces + stmt, .buffer = -1, .writer = stmt};
    struct affine index[SYM_INDICES];
    int n = 0;
    if (remade(s, stmt) && s->v->p->stmt[stmt].combine == COMBINE_SET) return sym_spend(s, 1);
    for (int a = 0; a < s->v->p->naxes; a++) {
        if (!(s->v->domain[stmt] >> a & 1)) continue;
        if (n == SYM_INDICES) return sym_fail(s, "statement %d has many axes", stmt);
        index[n++] = point[a];
    }
    if (!forms_box(s, index, n, &x))
        return sym_fail(s, "the instances of statement %d that an issue executes are no box", stmt);
    const struct regions *done = &s->of[x.place];
    for (int k = 0; k < done->n; k++) {
        if (boxes_meet(s, &done->at[k], &x) == NO) continue;
        s->made_again |= s->v->may_repeat[s->v->p->stmt[stmt].dst.buffer];
        return sym_fail(s, "instances of statement %d are not known to be executed once", stmt);
    }
    for (int k = 0; k < s->nexecuted; k++)
        if (s->executed[k].place == x.place) return sym_fail(s, "a statement begins itself");
    if (s->nexecuted == 2) return sym_fail(s, "an issue of many statements");
    s->ended[s->nexecuted] = false;
    s->executed[s->nexecuted++] = x;
    return sym_spend(s, 1 + done->n / 8);
}

bool box_executed(struct sym *s) {
    for (int k = 0; k < s->nexecuted; k++)
        if (!regions_add(s, &s->executed[k]) || (s->ended[k] && !remade_end(s, k))) return false;
    return true;
}

bool index_forms(struct sym *s, const struct access *a, const struct affine *point,
                 struct affine *index) {
    const struct program *p = s->v->p;
    if (p->buffer[a->buffer].ndims > SYM_INDICES)
        return sym_fail(s, "a buffer has many dimensions");
    for (int e = 0; e < p->buffer[a->buffer].ndims; e++) {
        index[e] = affine_of(access_coef(p, a, e, p->naxes));
        for (int k = 0; k < p->naxes; k++) {
            int64_t c = access_coef(p, a, e, k);
            if (c && !affine_add(&index[e], &point[k], c))
                return sym_fail(s, "an index is out of range");
        }
    }
    return true;
}

/* ---- fallbacks ---- */
static bool fallback_points(struct sym *s, const struct fallback_node *n, struct affine *point,
                            bool *none) {
    const struct program *p = s->v->p;
    *none = false;
    s->ndims = 0;
    for (int a = 0; a < p->naxes; a++) {
        struct affine hi = affine_of(p->axis[a].extent), lo = affine_of(p->axis[a].first);
        int64_t trips;
        point[a] = affine_of(0);
        if (!(s->v->domain[n->stmt] >> a & 1)) continue;
        if (n->lo && n->lo[a] && s->v->in_order[n->stmt] >> a & 1)
            return sym_fail(s, "a sum's points have an order");
        if (n->lo && n->lo[a] && (!sym_eval(s, n->lo[a], &lo) || !sym_eval(s, n->hi[a], &hi)))
            return false;
        struct lin first = sym_first(s, a), most = lin_of(p->axis[a].extent);
        if (lin_le(s, &first, &lo.l) != YES || lin_le(s, &hi.l, &most) != YES)
            return sym_fail(s, "a fallback is not known to stay inside axis '%s'", p->axis[a].name);
        point[a] = lo;
        if (!affine_add(&hi, &lo, -1) || !affine_constant(&hi, &trips))
            return sym_fail(s, "a fallback's extent depends on a loop counter");
        if (trips <= 0) *none = true;
        if (trips == 1 || trips <= 0) continue;
        if (s->ndims == SYM_DIMS) return sym_fail(s, "a fallback has many axes");
        point[a].d[s->ndims] = 1;
        s->n[s->ndims++] = trips;
    }
    return true;
}

/* What is written while others are read: of its own home each point reads the element that it
 * writes, and no other home lies in those bytes. */
static bool fallback_apart(struct sym *s, const struct stmt *t, int r, const struct affine *read,
                           const struct affine *write) {
    const struct place *place = s->v->s->place;
    int home = s->v->home[t->read[r].buffer], to = s->v->home[t->dst.buffer];
    bool apart = home == to || !places_share(&place[home], &place[to]);
    for (int e = 0; e < s->v->p->buffer[t->dst.buffer].ndims && home == to; e++)
        apart &= affine_same(&read[e], &write[e]);
    return apart || sym_fail(s, "the host writes '%s' where it reads", place[to].name);
}

static bool fallback_reads(struct sym *s, int stmt, const struct affine *point) {
    const struct stmt *t = &s->v->p->stmt[stmt];
    struct affine index[SYM_INDICES], written[SYM_INDICES];
    if (!index_forms(s, &t->dst, point, written)) return false;
    for (int r = 0; r < t->nreads; r++) {
        struct region need = {0};
        int home = s->v->home[t->read[r].buffer];
        if (home < 0) return sym_fail(s, "a buffer has no home");
        if (!index_forms(s, &t->read[r], point, index) ||
            !fallback_apart(s, t, r, index, written) ||
            !need_where(s, stmt, point, index, &t->read[r], &need) || !sym_layout(s, home) ||
            !home_holds_parts(s, stmt, home, need, false) ||
            !parallel_touch(s, home, need.o, need.n, need.nindices, false))
            return false;
    }
    return true;
}

/* Of the axes that must run at once the fallback has all values, and the other indices move by a
 * box: then none but its points write these elements. */
static bool all_at_once(struct sym *s, int stmt, const struct affine *point,
                        const struct affine *index) {
    const struct program *p = s->v->p;
    const struct image *x = sym_image(s, stmt);
    int ndims = p->buffer[p->stmt[stmt].dst.buffer].ndims;
    struct lin zero = lin_of(0);
    struct affine own[SYM_INDICES];
    struct region box;
    for (int a = 0; a < p->naxes; a++) {
        struct lin extent = sym_extent(s, a);
        int64_t trips = 1, most;
        int steps = 0;
        if (!(x->together >> a & 1)) continue;
        for (int d = 0; d < s->ndims; d++)
            if (point[a].d[d]) trips = s->n[d], steps += point[a].d[d] == 1 ? 1 : 2;
        if (steps > 1 || !lin_same(&point[a].l, &zero) || !lin_constant(&extent, &most) ||
            trips != most)
            return false;
    }
    for (int e = 0; e < ndims; e++) own[e] = x->loose >> e & 1 ? affine_of(0) : index[e];
    return forms_box(s, own, ndims, &box);
}

/* What is no box: it is as the statement leaves it, if it was before as the statements before left
 * it. The elements of a temporary between those that are written may hold anything: no program
 * reads an element that was not set. `w` is the smallest box around. */
static bool fallback_whole(struct sym *s, const struct fallback_node *n, const struct affine *point,
                           const struct affine *index, struct region *w) {
    if (!sym_image(s, n->stmt)->whole || !all_at_once(s, n->stmt, point, index))
        return sym_fail(s, "what a fallback writes is no box");
    w->count = lin_of(WHOLE);
    return home_holds_parts(s, n->stmt, w->place, *w, true);
}

/* Each element of the box by as many points. */
static bool fallback_part(struct sym *s, const struct fallback_node *n, const struct affine *index,
                          struct region *w) {
    const struct stmt *t = &s->v->p->stmt[n->stmt];
    const struct buffer *b = &s->v->p->buffer[w->buffer];
    struct wanted_version want;
    int64_t times = 1;
    for (int d = 0; d < s->ndims; d++) {
        bool moves = false;
        for (int e = 0; e < b->ndims; e++) moves |= index[e].d[d] != 0;
        if (!moves) times *= s->n[d];
    }
    if (!forms_box(s, index, b->ndims, w) || (times > 1 && t->combine == COMBINE_SET))
        return sym_fail(s, "what a fallback writes is no box");
    w->count = lin_of(times);
    if (t->combine == COMBINE_SET) return true;
    if (!version_wanted(s, n->stmt, w, &want)) return false;
    want.own = n->stmt;
    want.own_step = w->step;
    const struct region *g = home_holds(s, w->place, *w, &want);
    if (!g) return false;
    bool partial = g->writer == n->stmt && lin_same(&g->step, &w->step);
    return !partial || lin_add(&w->count, &g->count, 1);
}

/* What is at home then. */
static bool fallback_leaves(struct sym *s, const struct fallback_node *n,
                            const struct affine *point, const struct affine *index,
                            struct region *w) {
    const struct stmt *t = &s->v->p->stmt[n->stmt];
    bool whole = sym_image(s, n->stmt)->whole;
    struct region box;
    if (!whole && sets_part(t)) return sym_fail(s, "statement %d has constraints", n->stmt);
    if (!whole && !forms_box(s, index, w->nindices, &box) && t->combine == COMBINE_SET)
        return parted_write(s, n->stmt, index, w);
    if (!(whole ? fallback_whole(s, n, point, index, w) : fallback_part(s, n, index, w)) ||
        !box_in_one_fold(s, w))
        return false;
    regions_kill(s, w);
    return sym_spend(s, 4) && regions_add(s, w);
}

bool box_fallback(struct sym *s, const struct fallback_node *n) {
    struct verify *v = s->v;
    const struct stmt *t = &v->p->stmt[n->stmt];
    struct affine point[MAX_AXES], index[SYM_INDICES];
    struct region w = {.buffer = t->dst.buffer};
    bool none;
    s->nexecuted = 0;
    if (!fallback_points(s, n, point, &none)) return false;
    if (none) return true;
    w.place = v->home[t->dst.buffer];
    if (w.place < 0) return sym_fail(s, "a buffer has no home");
    if (remade(s, n->stmt)) return sym_fail(s, "what never goes home is written there");
    w.type = v->p->buffer[t->dst.buffer].type;
    if (!sym_layout(s, w.place) || !sym_at(s, n->stmt, point) ||
        !instances_executed(s, n->stmt, point) || !fallback_reads(s, n->stmt, point) ||
        !index_forms(s, &t->dst, point, index) ||
        !need_box(s, index, w.buffer, t->nwhere > 0, &w) ||
        !parallel_touch(s, w.place, w.o, w.n, w.nindices, true))
        return false;
    w.step = sym_step(s, n->stmt);
    w.writer = sym_writer(s, n->stmt);
    return fallback_leaves(s, n, point, index, &w) && box_executed(s);
}

/* ---- begin and end ---- */
static bool whole_box(struct sym *s, int buffer, struct region *x) {
    const struct buffer *b = &s->v->p->buffer[buffer];
    x->box = true;
    x->buffer = buffer;
    x->type = b->type;
    x->nindices = b->ndims;
    if (b->ndims > SYM_INDICES) return sym_fail(s, "buffer '%s' has many dimensions", b->name);
    for (int e = 0; e < b->ndims; e++) {
        x->o[e] = lin_of(0);
        x->n[e] = lin_of(b->extent[e]);
    }
    return true;
}

bool box_begin(struct sym *s) {
    for (int p = 0; p < s->v->s->nplaces; p++) {
        const struct place *place = &s->v->s->place[p];
        enum role role = s->v->p->buffer[place->buffer].role;
        struct region x = {.place = p, .writer = -1};
        bool given =
            place->table || (place->keep == KEEP_ARGUMENT &&
                             (role == ROLE_IN || role == ROLE_INOUT || role == ROLE_CONST));
        if (given && (!whole_box(s, place->buffer, &x) || !regions_add(s, &x))) return false;
    }
    return true;
}

/* All of its instances in one box, of which some ends may be those of open sizes. */
static bool executed_at_once(struct sym *s, int stmt) {
    const struct regions *done = &s->of[s->v->s->nplaces + stmt];
    int e = 0;
    if (done->n != 1) return false;
    for (int a = 0; a < s->v->p->naxes; a++) {
        struct lin n = sym_extent(s, a), first = sym_first(s, a);
        if (!(s->v->domain[stmt] >> a & 1)) continue;
        if (!lin_same(&done->at[0].n[e], &n) || !lin_same(&done->at[0].o[e], &first)) return false;
        e++;
    }
    return true;
}

static bool all_executed(struct sym *s, int stmt) {
    __int128 points = 0, expected = 1;
    const struct regions *done = &s->of[s->v->s->nplaces + stmt];
    bool counted = true;
    for (int a = 0; a < s->v->p->naxes; a++) {
        struct lin extent = sym_extent(s, a);
        int64_t n = 0;
        if (!(s->v->domain[stmt] >> a & 1)) continue;
        counted &= lin_constant(&extent, &n);
        expected *= n;
    }
    for (int k = 0; k < done->n && counted; k++) {
        const struct region *g = &done->at[k];
        __int128 volume = 1;
        for (int e = 0; e < g->nindices; e++) {
            int64_t n = 0;
            counted &= lin_constant(&g->n[e], &n);
            volume *= n;
        }
        points += volume;
    }
    return (counted && points == expected) || executed_at_once(s, stmt) ||
           sym_fail(s, "not all instances of statement %d are known to be executed", stmt);
}

bool box_end(struct sym *s) {
    const struct program *p = s->v->p;
    s->ndims = 0;
    for (int t = 0; t < p->nstmts; t++)
        if (!remade(s, t) && !all_executed(s, t)) return false;
    for (int b = 0; b < p->nbuffers; b++) {
        struct region need = {0};
        if (p->buffer[b].role != ROLE_OUT && p->buffer[b].role != ROLE_INOUT) continue;
        int home = s->v->home[b];
        if (p->buffer[b].elements == 0) continue;
        if (home < 0) return sym_fail(s, "a buffer has no home");
        if (!whole_box(s, b, &need)) return false;
        if (p->buffer[b].size) need.n[0] = s->var[p->buffer[b].size - 1].l;
        if (!home_holds_parts(s, p->nstmts, home, need, false)) return false;
    }
    return true;
}
