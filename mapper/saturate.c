/* Values that saturate: how far the floats behind a clip have to be exact.
 *
 *     clip(round(f32(A) * s) + z, lo, hi)        s > 0
 *
 * Each of these operations is monotone in every float type. What is beyond a bound that is exact in
 * the type saturates however it is rounded, so ranges end there. */
#include "mapper/mapper_int.h"

#include <math.h>

/* The constant among the node's two arguments; the other one in *rest. */
static bool constant_of(const struct term *t, const struct term_node *x, double *value, int *rest) {
    for (int k = 0; k < 2; k++) {
        const struct term_node *c = &t->at[x->arg[k]];
        if (!c->constant || !type_is_float(c->type)) continue;
        *value = c->value.f;
        *rest = x->arg[1 - k];
        return isfinite(*value);
    }
    return false;
}

/* Floats do not wrap: what an integer became when it did is what is cast. */
static void narrow(struct range *r, double lo, double hi) {
    r->wraps = false;
    r->lo = fmin(fmax(r->lo, lo), r->hi);
    r->hi = fmax(fmin(r->hi, hi), r->lo);
}

static bool used_once(const struct term *t, int node) {
    int n = 0;
    for (int i = 0; i < t->n; i++)
        for (int k = 0; k < t->at[i].nargs; k++) n += t->at[i].arg[k] == node;
    return n == 1;
}

/* The whole number next to bound / factor from which products are at or beyond the bound. */
static double reaching(double bound, double factor, double sign) {
    double n = sign * ceil(sign * bound / factor);
    return sign * fma(n, factor, -bound) < 0 ? n + sign : n;
}

/* What the node is beyond lo and hi, whole numbers, saturates. */
static void saturates(struct term *t, int node, double lo, double hi) {
    const double most = 1 << 24; /* whole numbers up to there are exact in f32 */
    while (fabs(lo) <= most && fabs(hi) <= most && used_once(t, node)) {
        struct term_node *x = &t->at[node];
        double v = 0;
        if (!type_is_float(x->type)) return;
        bool known = x->code == OP_ROUND || x->code == OP_CAST ||
                     ((x->code == OP_ADD || x->code == OP_MUL) && constant_of(t, x, &v, &node));
        if (!known || (x->code == OP_MUL && !(v > 0))) return;
        narrow(&x->range, lo, hi);
        if (x->code == OP_CAST) return;
        if (x->code == OP_ROUND) node = x->arg[0];
        if (x->code == OP_ADD) lo = floor(lo - v), hi = ceil(hi - v);
        if (x->code == OP_MUL) lo = reaching(lo, v, -1), hi = reaching(hi, v, 1);
    }
}

void term_saturates(struct term *t) {
    for (int i = 0; i < t->n; i++) {
        const struct term_node *x = &t->at[i];
        if (x->code != OP_CLIP || !type_is_float(x->type)) continue;
        const struct term_node *lo = &t->at[x->arg[1]], *hi = &t->at[x->arg[2]];
        if (lo->constant && hi->constant && lo->value.f <= hi->value.f)
            saturates(t, x->arg[0], floor(lo->value.f), ceil(hi->value.f));
    }
}
