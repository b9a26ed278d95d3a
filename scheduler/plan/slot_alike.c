/* Two geometries of one statement compared: is a copy made for one what the other asks for? */
#include "scheduler/plan/geom.h"
#include "scheduler/plan/rewrite.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/work.h"

/* The axis that walks coordinate k, or one of the statement's dimensions that none walks; -1. */
static int walker(const struct work *w, const struct task *t, const struct access *acc, int dim) {
    return dim < 0 ? -1 : access_mover(w->p, acc, dim, w->p->stmt[t->stmt].axes);
}

/* The next outer coordinate from k on that an axis walks; geom.n: none. */
static int next_walked(const struct work *w, const struct task *t, const struct geom *g,
                       const struct access *acc, int k) {
    while (k < g->n && walker(w, t, acc, g->at[k].dim) < 0) k++;
    return k;
}

bool slot_alike(const struct work *w, const struct task *t, const struct geom *a,
                const struct access *x, const struct geom *b, const struct access *y) {
    if (a->ninner != b->ninner || a->tile != b->tile || a->row != b->row || a->first || b->first ||
        a->loose || b->loose || a->fragment != b->fragment || a->swizzle != b->swizzle)
        return false;
    for (int i = 0; i < a->ninner; i++)
        if (a->at[i].div != b->at[i].div || a->at[i].mod != b->at[i].mod ||
            a->stride[i] != b->stride[i] ||
            walker(w, t, x, a->at[i].dim) != walker(w, t, y, b->at[i].dim))
            return false;
    int i = a->ninner, k = b->ninner;
    for (;; i++, k++) {
        i = next_walked(w, t, a, x, i);
        k = next_walked(w, t, b, y, k);
        if (i == a->n || k == b->n) return i == a->n && k == b->n;
        if (walker(w, t, x, a->at[i].dim) != walker(w, t, y, b->at[k].dim) ||
            a->at[i].div != b->at[k].div || a->at[i].mod != b->at[k].mod)
            return false;
    }
}
