/* Where a condition on indices holds. */
#include "ir/equal_int.h"

static bool add_times(int64_t *to, int64_t a, int64_t b) {
    int64_t product;
    return !__builtin_mul_overflow(a, b, &product) && !__builtin_add_overflow(*to, product, to);
}

/* f as one affine row over the context, wherever the spot is: sums of indices. */
static bool affine(const struct form *f, const struct spot *c, int sign, int64_t *row) {
    for (int k = 0; k < f->nterms; k++) {
        const struct term *t = &f->term[k];
        if (t->n != f->m || t->natoms > 1 ||
            (t->natoms == 1 && (t->atom->code != OP_AXIS || t->atom->content >= 0)) ||
            isl_set_is_subset(c->dom, t->dom) != isl_bool_true)
            return false;
        int64_t by;
        if (__builtin_mul_overflow(t->i, sign, &by)) return false;
        for (int d = 0; t->natoms && d <= f->m; d++)
            if (!add_times(&row[d], by, t->atom->row[0][d])) return false;
        if (!t->natoms && !add_times(&row[0], by, 1)) return false;
    }
    return true;
}

isl_set *form_compared(struct equal *x, enum opcode code, const struct form *a,
                       const struct form *b, const struct spot *c) {
    int64_t *row = equal_row(x, c->n);
    bool up = code == OP_GT || code == OP_GE, strict = code == OP_LT || code == OP_GT;
    if (x->failed || code < OP_EQ || code > OP_GE || type_is_float(a->type) ||
        !reach_fits(form_range(x, a), a->type) || !reach_fits(form_range(x, b), b->type) ||
        !affine(a, c, up ? 1 : -1, row) || !affine(b, c, up ? -1 : 1, row))
        return NULL;
    if (strict) row[0]--;
    isl_set *where = set_with(x, isl_set_copy(c->dom), row, c->n, code == OP_EQ || code == OP_NE);
    if (code == OP_NE) where = isl_set_subtract(isl_set_copy(c->dom), where);
    return equal_keep(x, where);
}

isl_set *where_joined(struct equal *x, enum opcode code, isl_set *a, isl_set *b) {
    if (!a || !b) return NULL;
    a = isl_set_copy(a);
    b = isl_set_copy(b);
    return equal_keep(x, code == OP_AND ? isl_set_intersect(a, b) : isl_set_union(a, b));
}

isl_set *form_truth(struct equal *x, const struct form *f, const struct spot *c) {
    const struct term *t = f->term;
    const struct atom *a = t ? t->atom : NULL;
    if (x->failed || f->nterms != 1 || t->n != f->m || t->natoms != 1 || t->i != 1 ||
        a->content >= 0 || a->nargs != 2 || a->points ||
        isl_set_is_subset(c->dom, t->dom) != isl_bool_true)
        return NULL;
    struct form *left = form_at(x, a->arg[0], a->row, c), *right = form_at(x, a->arg[1], a->row, c);
    if (f->type == TYPE_BOOL && (a->code == OP_AND || a->code == OP_OR)) {
        isl_set *first = form_truth(x, left, c);
        return where_joined(x, a->code, first, first ? form_truth(x, right, c) : NULL);
    }
    return form_compared(x, a->code, left, right, c);
}
