/* Extents that steps of the recurrences around decide (`axes s: t+1`): the axis has the largest
 * one, and each statement that runs through it a constraint that ends it where the step says. */
#include "ir/bind_int.h"

#include <string.h>

static bool names_step(const struct binder *b, const struct expr *e) {
    const struct symbol *s = e->kind == EXPR_NAME ? binder_find(b, e->name) : NULL;
    if (s) return s->is_axis && b->recurring >> s->index & 1;
    for (int k = 0; e->kind == EXPR_OP && k < op_info[e->op].arity; k++)
        if (names_step(b, e->arg[k])) return true;
    return false;
}

/* The largest value of the row over all steps; false: it fits no 64 bits. */
static bool row_most(const struct program *p, const int64_t *row, int64_t *most) {
    *most = row[p->naxes];
    for (int a = 0; a < p->naxes; a++) {
        int64_t end;
        if (row[a] <= 0 || p->axis[a].extent < 1) continue;
        if (__builtin_mul_overflow(row[a], p->axis[a].extent - 1, &end) ||
            __builtin_add_overflow(*most, end, most))
            return false;
    }
    return true;
}

bool bind_growing(struct binder *b, const struct expr *extent, int64_t *n, bool *wrong) {
    struct program *p = b->p;
    if (!names_step(b, extent)) return false;
    *wrong = true;
    int64_t row[MAX_AXES + 1];
    if (!lower_affine(b, extent, row)) return false;
    for (int a = 0; a < b->axes_declared; a++)
        if (row[a] && !(b->recurring >> a & 1))
            return BIND_FAIL(b, extent->at,
                             "the extent of an axis is made of parameters, integers and the steps "
                             "of recurrences around, but '%s' is an axis",
                             p->axis[a].name);
    if (!row_most(p, row, n))
        return BIND_FAIL(b, extent->at, "the largest extent of the axis overflows 64 bits");
    if (*n < 1) *n = 1; /* no step runs through it */
    *wrong = false;
    b->grows[b->axes_declared] = arena_copy(&p->arena, row, sizeof *row * ((size_t)p->naxes + 1));
    return true;
}

bool lower_growing(struct binder *b, struct stmt *s) {
    size_t n = (size_t)b->p->naxes + 1, had = (size_t)s->nwhere;
    for (int a = 0; a < b->axes_declared; a++) {
        if (!(s->axes >> a & 1) || !b->grows[a]) continue;
        int64_t *row = arena_copy(&b->p->arena, b->grows[a], sizeof *row * n);
        row[a] = -1;
        if (__builtin_sub_overflow(row[n - 1], 1, &row[n - 1]))
            return BIND_FAIL(b, s->at, "a constraint overflows 64 bits");
        struct constraint *all = arena_array(&b->p->arena, had + 1, sizeof *all);
        if (had) memcpy(all, s->where, sizeof *all * had);
        all[had++].coef = row;
        s->where = all;
        s->nwhere = (int)had;
    }
    return true;
}
