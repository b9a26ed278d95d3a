/* Reductions over a fused axis, read through the axes that it was made of. */
#include "ir/equal_int.h"

#include <isl/map.h>

/* The term with `own` more dimensions, which no atom has. */
static struct term longer(struct equal *x, const struct term *t, int own, const char *const *name) {
    struct term out = *t;
    struct atom *atom = arena_copy(&x->arena, t->atom, (size_t)t->natoms * sizeof *atom);
    for (int k = 0; k < t->natoms; k++) {
        int64_t **row = arena_array(&x->arena, (size_t)atom[k].nrows + 1, sizeof *row);
        for (int r = 0; r < atom[k].nrows; r++) row[r] = row_longer(x, atom[k].row[r], t->n, own);
        atom[k].row = row;
    }
    out.atom = atom;
    out.n += own;
    out.name = arena_copy(&x->arena, name, (size_t)out.n * sizeof *name);
    out.dom = equal_keep(x, set_more(isl_set_copy(t->dom), own));
    return out;
}

/* Each of the points with the one place of the further dimensions that `at` gives it; NULL: of some
 * it gives none or several, or not the one at which a term is found. */
static isl_set *points_found(struct equal *x, const struct atom *a, int own, isl_set *at) {
    const struct form *f = a->arg[0];
    isl_set *all = set_more(isl_set_copy(a->points), own),
            *points = equal_keep(x, isl_set_intersect(isl_set_copy(all), at));
    isl_set *found = equal_keep(x, isl_set_project_out(isl_set_copy(points), isl_dim_set,
                                                       (unsigned)a->npoints, (unsigned)own));
    isl_map *map = x->failed ? NULL : set_as_map(points, a->npoints);
    bool good = map && isl_set_is_subset(a->points, found) == isl_bool_true &&
                isl_map_is_single_valued(map) == isl_bool_true;
    isl_map_free(map);
    for (int k = 0; k < f->nterms && good; k++) {
        if (f->term[k].n == a->npoints) continue;
        isl_set *term = isl_set_intersect(isl_set_copy(all), isl_set_copy(f->term[k].dom));
        good = isl_set_is_subset(term, points) == isl_bool_true;
        isl_set_free(term);
    }
    isl_set_free(all);
    return good ? points : NULL;
}

/* Contributions that are found at one point of dimensions of their own, as where a fused axis is
 * read through the axes that it was made of: these are dimensions of the reduction's points. Where
 * some are constants, as behind an array's end, the others say which point that is. */
void atom_spread(struct equal *x, struct atom *a) {
    const struct form *f = a->arg[0];
    const struct term *t = NULL;
    isl_set *at = NULL; /* where one of them is found */
    for (int k = 0; k < f->nterms; k++) {
        if (f->term[k].n == a->npoints) continue;
        if (t && t->n != f->term[k].n) return;
        t = &f->term[k];
        at = equal_keep(x, at ? isl_set_union(isl_set_copy(at), isl_set_copy(t->dom))
                              : isl_set_copy(t->dom));
    }
    if (x->failed || f->sum || !t || t->n > MAX_SPACE) return;
    int own = t->n - a->npoints;
    isl_set *points = points_found(x, a, own, isl_set_copy(at));
    if (!points && !x->failed) {
        isl_set *rest = isl_set_project_out(isl_set_copy(at), isl_dim_set, 0, (unsigned)a->nrows);
        points =
            points_found(x, a, own, isl_set_insert_dims(rest, isl_dim_set, 0, (unsigned)a->nrows));
    }
    if (!points) return;
    struct form *all = arena_copy(&x->arena, f, sizeof *f);
    all->term = arena_copy(&x->arena, f->term, (size_t)f->nterms * sizeof *f->term);
    for (int k = 0; k < f->nterms; k++)
        if (all->term[k].n < t->n) all->term[k] = longer(x, &all->term[k], own, t->name);
    a->arg[0] = all;
    all->m = a->npoints = t->n;
    a->points = points;
    x->used |= LAW(REINDEX);
}
