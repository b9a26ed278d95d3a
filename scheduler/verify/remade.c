/* Temporaries that are made again, in the symbolic walk. Where windows of neighbouring turns
 * overlap, each turn makes all that its windows read, from the start. What never goes home lies in
 * local places, whose regions say what was made; so of such temporaries nobody asks how often a
 * statement sets an element, or whether it sets all of them. But a sum must have each term once.
 * The terms that are recorded are those of sums under way: an issue that goes on with a sum of n
 * terms finds just n recorded for its elements, none of them its own, and where all are there the
 * record ends. By induction the recorded terms are those that the one place holds: two places with
 * a part of the same sum each are refused. */
#include "scheduler/verify/box.h"

bool remade(const struct sym *s, int stmt) {
    return s->remakes && s->v->may_repeat[s->v->p->stmt[stmt].dst.buffer];
}

/* The axis moves the result. Each index of the result depends on one axis at most, so that
 * different values of these axes are different elements; else false in *apart. */
static bool keeps(const struct sym *s, int stmt, int axis, bool *apart) {
    const struct program *p = s->v->p;
    const struct stmt *t = &p->stmt[stmt];
    bool moved = false;
    for (int e = 0; e < p->buffer[t->dst.buffer].ndims; e++) {
        if (!access_coef(p, &t->dst, e, axis)) continue;
        moved = true;
        for (int a = 0; a < p->naxes; a++)
            if (a != axis && access_coef(p, &t->dst, e, a)) *apart = false;
    }
    return moved;
}

/* The instances of all terms of the sums to which those of x belong. */
static bool whole_sums(struct sym *s, int stmt, const struct region *x, struct region *all,
                       bool *kept) {
    bool apart = true;
    int e = 0;
    *all = *x;
    for (int a = 0; a < s->v->p->naxes; a++) {
        if (!(s->v->domain[stmt] >> a & 1)) continue;
        kept[e] = keeps(s, stmt, a, &apart);
        if (!kept[e]) {
            all->o[e] = sym_first(s, a);
            all->n[e] = sym_extent(s, a);
        }
        e++;
    }
    return apart || sym_fail(s, "a sum that is made again has an index of several axes");
}

/* Terms of each sum in g; of the lengths one may depend on counters. */
static bool terms_of(const struct region *g, const bool *kept, struct lin *terms) {
    *terms = lin_of(1);
    for (int e = 0; e < g->nindices; e++) {
        struct lin product = lin_of(0);
        const struct lin *by = &g->n[e];
        int64_t times;
        if (kept[e]) continue;
        if (lin_constant(terms, &times)
                ? !lin_add(&product, by, times)
                : !lin_constant(by, &times) || !lin_add(&product, terms, times))
            return false;
        *terms = product;
    }
    return true;
}

/* The sums of x are among those of g. */
static bool covers(const struct sym *s, const struct region *g, const struct region *x,
                   const bool *kept) {
    struct region of_g = *g, of_x = *x;
    for (int e = 0; e < x->nindices; e++)
        if (!kept[e]) of_g.o[e] = of_x.o[e], of_g.n[e] = of_x.n[e];
    return box_inside(s, &of_x, &of_g);
}

bool remade_sum(struct sym *s, int stmt, const struct lin *before, const struct lin *count) {
    const struct region *x = &s->executed[s->nexecuted - 1];
    const struct regions *done = &s->of[x->place];
    const struct image *image = sym_image(s, stmt);
    struct lin recorded = lin_of(0), whole = lin_of(image->times);
    struct region all;
    bool kept[SYM_INDICES];
    if (!image->box) return sym_fail(s, "a sum that is made again is no box");
    if (!whole_sums(s, stmt, x, &all, kept)) return false;
    for (int k = 0; k < done->n; k++) {
        struct lin terms;
        if (boxes_meet(s, &done->at[k], &all) == NO) continue;
        if (!covers(s, &done->at[k], x, kept) || !terms_of(&done->at[k], kept, &terms) ||
            !lin_add(&recorded, &terms, 1))
            return sym_fail(s, "the terms of a sum that is made again are not known");
    }
    if (!lin_same(&recorded, before))
        return sym_fail(s, "two places hold parts of a sum that is made again");
    s->ended[s->nexecuted - 1] = lin_same(count, &whole);
    return sym_spend(s, 1 + done->n / 8);
}

bool remade_end(struct sym *s, int k) {
    struct region all;
    bool kept[SYM_INDICES];
    return whole_sums(s, s->executed[k].writer, &s->executed[k], &all, kept) &&
           regions_remove(s, &all);
}
