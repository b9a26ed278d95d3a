/* Dimensions of a term that none of its atoms has: of the points along them only the number
 * counts. */
#include "ir/equal_int.h"

#include <isl/map.h>

#include <string.h>

static bool unused(const struct term *t, int d) {
    for (int a = 0; a < t->natoms; a++)
        for (int r = 0; r < t->atom[a].nrows; r++)
            if (t->atom[a].row[r][d + 1]) return false;
    return true;
}

static void drop_dim(struct equal *x, struct term *t, int d, isl_set *dom) {
    struct atom *atom = arena_copy(&x->arena, t->atom, (size_t)t->natoms * sizeof *atom);
    const char **name = arena_copy(&x->arena, t->name, (size_t)t->n * sizeof *name);
    memmove(name + d, name + d + 1, (size_t)(t->n - d - 1) * sizeof *name);
    for (int a = 0; a < t->natoms; a++) {
        int64_t **row = arena_array(&x->arena, (size_t)atom[a].nrows + 1, sizeof *row);
        for (int r = 0; r < atom[a].nrows; r++) {
            row[r] = arena_copy(&x->arena, atom[a].row[r], (size_t)(t->n + 1) * sizeof **row);
            memmove(row[r] + d + 1, row[r] + d + 2, (size_t)(t->n - d - 1) * sizeof **row);
        }
        atom[a].row = row;
    }
    t->atom = atom;
    t->name = name;
    t->n--;
    t->dom = dom;
}

/* Without the dimension; `rest` is what the others take. */
static isl_set *without_dim(struct equal *x, const struct term *t, int d) {
    return equal_keep(x, isl_set_project_out(isl_set_copy(t->dom), isl_dim_set, (unsigned)d, 1));
}

/* It takes the same values, one after the other, wherever the others are. */
static bool is_free(struct equal *x, const struct term *t, int d, isl_set *rest, int64_t *values) {
    int64_t lo, hi;
    if (!term_bounds(t, d, &lo, &hi)) return false;
    int64_t *low = equal_row(x, t->n), *high = equal_row(x, t->n);
    low[0] = -lo;
    low[d + 1] = 1;
    high[0] = hi;
    high[d + 1] = -1;
    isl_set *box = isl_set_insert_dims(isl_set_copy(rest), isl_dim_set, (unsigned)d, 1);
    box = equal_keep(x, set_with(x, set_with(x, box, low, t->n, false), high, t->n, false));
    *values = hi - lo + 1;
    return !x->failed && isl_set_is_equal(box, t->dom) == isl_bool_true;
}

/* It has one value, or as many wherever the others are: a factor. */
static void count_dim(struct equal *x, const struct form *f, struct term *t, int d) {
    isl_set *rest = without_dim(x, t, d);
    int64_t values;
    if (x->failed) return;
    isl_map *of = isl_map_from_range(isl_set_copy(t->dom));
    of = isl_map_move_dims(of, isl_dim_in, 0, isl_dim_out, 0, (unsigned)d);
    of = isl_map_move_dims(of, isl_dim_in, (unsigned)d, isl_dim_out, 1, (unsigned)(t->n - d - 1));
    isl_bool one = isl_map_is_single_valued(of);
    isl_map_free(of);
    if (one == isl_bool_true) {
        drop_dim(x, t, d, rest);
        return;
    }
    if (type_is_float(f->type) && !(x->laws & LAW(COUNT))) return;
    if (!is_free(x, t, d, rest, &values)) return;
    if (__builtin_mul_overflow(t->i, values, &t->i) && !type_is_float(f->type))
        equal_stop(x, "a coefficient in it is too large");
    if (type_is_float(f->type)) {
        t->i = 1;
        t->f *= (double)values;
    }
    x->used |= LAW(COUNT);
    drop_dim(x, t, d, rest);
}

/* Those that could be counted, where that is no law, become one that has as many values: however
 * the points of a sum are numbered, they are the same points. */
static void fold_dims(struct equal *x, const struct form *f, struct term *t) {
    int64_t points = 1, values;
    bool some = false;
    for (int d = t->n; d-- > f->m && !x->failed;) {
        isl_set *rest = unused(t, d) ? without_dim(x, t, d) : NULL;
        if (!rest || !is_free(x, t, d, rest, &values) ||
            __builtin_mul_overflow(points, values, &values))
            continue;
        points = values;
        some = true;
        drop_dim(x, t, d, rest);
    }
    if (!some || x->failed) return;
    int64_t *low = equal_row(x, t->n + 1), *high = equal_row(x, t->n + 1);
    low[1 + t->n] = 1;
    high[0] = points - 1;
    high[1 + t->n] = -1;
    isl_set *dom = set_more(isl_set_copy(t->dom), 1);
    t->dom =
        equal_keep(x, set_with(x, set_with(x, dom, low, t->n + 1, false), high, t->n + 1, false));
    const char **name = arena_array(&x->arena, (size_t)t->n + 1, sizeof *name);
    memcpy(name, t->name, (size_t)t->n * sizeof *name);
    name[t->n] = "";
    t->name = name;
    for (int a = 0; a < t->natoms; a++)
        for (int r = 0; r < t->atom[a].nrows; r++)
            t->atom[a].row[r] = row_longer(x, t->atom[a].row[r], t->n, 1);
    t->n++;
}

void term_count(struct equal *x, const struct form *f, struct term *t) {
    for (int d = t->n; d-- > f->m && !x->failed;)
        if (unused(t, d)) count_dim(x, f, t, d);
    fold_dims(x, f, t);
}
