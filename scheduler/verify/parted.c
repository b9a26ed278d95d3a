/* Homes that a statement fills part by part, where a part is no box: a fallback that writes every
 * second row, and the others in the next turn. Around such a part a region says of its box: the
 * elements that executed instances of the statement write are as it left them. Of a box of which
 * all instances are executed that is all. */
#include "scheduler/verify/box.h"

/* Of such a region. */
static bool is_parted(const struct region *g) {
    struct lin parted = lin_of(PARTED);
    return g->box && lin_same(&g->count, &parted);
}

/* Each instance sets an element of its own, once, and no other statement goes by its name. */
static bool may_be_parted(struct sym *s, int stmt) {
    const struct stmt *t = &s->v->p->stmt[stmt];
    const struct image *x = sym_image(s, stmt);
    return t->combine == COMBINE_SET && !sets_part(t) && s->v->recurrence_of[stmt] < 0 && x->box &&
           x->times == 1 && sym_writer(s, stmt) == stmt && !remade(s, stmt) && !s->parallel;
}

/* The smallest box around the elements that a box of instances writes. */
static bool written_by(struct sym *s, int stmt, const struct region *x, struct region *out) {
    const struct program *p = s->v->p;
    const struct access *dst = &p->stmt[stmt].dst;
    out->box = true;
    out->nindices = p->buffer[dst->buffer].ndims;
    for (int e = 0; e < out->nindices; e++) {
        out->o[e] = lin_of(access_coef(p, dst, e, p->naxes));
        out->n[e] = lin_of(1);
        for (int a = 0, k = 0; a < p->naxes; a++) {
            int64_t c = access_coef(p, dst, e, a);
            if (!(s->v->domain[stmt] >> a & 1)) continue;
            struct lin far = x->n[k];
            far.c--;
            if (c < 0 || !lin_add(&out->o[e], &x->o[k], c) || !lin_add(&out->n[e], &far, c))
                return false;
            k++;
        }
    }
    return true;
}

/* No instance that was executed before writes an element of the box. */
static bool none_written(struct sym *s, int stmt, const struct region *w) {
    const struct regions *done = &s->of[s->v->s->nplaces + stmt];
    for (int k = 0; k < done->n; k++) {
        struct region there = {0};
        if (!written_by(s, stmt, &done->at[k], &there) || boxes_meet(s, &there, w) != NO)
            return false;
    }
    return true;
}

/* An index that the part leaves elements out of is taken as far as the statement writes it. */
static void widen(struct sym *s, int stmt, const struct affine *index, struct region *w) {
    const struct image *x = sym_image(s, stmt);
    for (int e = 0; e < w->nindices; e++) {
        struct region row = {0};
        int ndims = 0;
        for (int d = 0; d < s->ndims; d++) ndims += s->n[d] > 1 && index[e].d[d] != 0;
        struct affine own = index[e];
        int64_t n[SYM_DIMS];
        for (int d = 0; d < s->ndims; d++) {
            n[d] = s->n[d];
            if (!own.d[d]) s->n[d] = 1;
        }
        if (ndims > 0 && !forms_box(s, &own, 1, &row)) {
            w->o[e] = x->from[e];
            w->n[e] = lin_of(x->n[e]);
        }
        for (int d = 0; d < s->ndims; d++) s->n[d] = n[d];
    }
}

bool parted_write(struct sym *s, int stmt, const struct affine *index,
                  const struct region *around) {
    const struct regions *at = &s->of[around->place];
    struct region w = *around;
    if (!may_be_parted(s, stmt)) return sym_fail(s, "what a fallback writes is no box");
    w.count = lin_of(PARTED);
    widen(s, stmt, index, &w);
    if (!box_in_one_fold(s, &w)) return false;
    for (int k = 0; k < at->n; k++) {
        if (!is_parted(&at->at[k]) || at->at[k].writer != stmt || !box_inside(s, &w, &at->at[k]))
            continue;
        frame_forget_sharers(s, w.place);
        return true;
    }
    if (!none_written(s, stmt, &w)) return sym_fail(s, "what a fallback writes is no box");
    regions_kill(s, &w);
    return regions_add(s, &w);
}

/* All instances that write an element of the box are executed: of an index that several axes move
 * all of their values. */
static bool all_written(struct sym *s, int stmt, const struct region *w) {
    const struct program *p = s->v->p;
    const struct access *dst = &p->stmt[stmt].dst;
    struct region need = {.place = s->v->s->nplaces + stmt, .box = true};
    for (int a = 0; a < p->naxes; a++) {
        if (!(s->v->domain[stmt] >> a & 1)) continue;
        int k = need.nindices++, moved = -1, axes = 0;
        for (int e = 0; e < w->nindices; e++)
            if (access_coef(p, dst, e, a)) moved = e;
        for (int b = 0; b < p->naxes && moved >= 0; b++)
            axes += (s->v->domain[stmt] >> b & 1) && access_coef(p, dst, moved, b) != 0;
        need.o[k] = sym_first(s, a);
        need.n[k] = sym_extent(s, a);
        if (axes != 1 || access_coef(p, dst, moved, a) != 1) continue;
        need.o[k] = w->o[moved];
        need.o[k].c -= access_coef(p, dst, moved, p->naxes);
        need.n[k] = w->n[moved];
    }
    const struct regions *done = &s->of[need.place];
    for (int k = 0; k < done->n; k++)
        if (box_inside(s, &need, &done->at[k])) return true;
    return false;
}

bool parted_settle(struct sym *s, int place) {
    struct regions *at = &s->of[place];
    bool some = false;
    for (int k = 0; k < at->n; k++) {
        if (!is_parted(&at->at[k]) || !all_written(s, at->at[k].writer, &at->at[k])) continue;
        at->at[k].count = lin_of(1);
        at->at[k].settled = false;
        some = true;
    }
    return !some || regions_coalesce_place(s, place);
}

bool parted_begun(struct sym *s, int stmt) {
    int home = s->v->home[s->v->p->stmt[stmt].dst.buffer];
    for (int k = 0; home >= 0 && k < s->of[home].n; k++)
        if (is_parted(&s->of[home].at[k]) && s->of[home].at[k].writer == stmt)
            return !sym_fail(s, "the host and a unit execute statement %d in turns", stmt);
    return false;
}
