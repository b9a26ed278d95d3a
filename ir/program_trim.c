/* Constraints that say no more than extents do: those that hold everywhere, and bounds of one axis
 * alone, `i < n`. An axis may stand in a constraint alone: then it says how often a sum counts each
 * value, and the constraint stays. */
#include "ir/program.h"

#include <string.h>

static __int128 least_of(const struct program *p, const struct constraint *c) {
    __int128 least = c->coef[p->naxes];
    for (int a = 0; a < p->naxes; a++)
        if (c->coef[a] < 0) least += (__int128)c->coef[a] * (p->axis[a].extent - 1);
    return least;
}

static int sole_axis(const struct program *p, const struct constraint *c) {
    int found = -1;
    for (int a = 0; a < p->naxes; a++) {
        if (!c->coef[a]) continue;
        if (found >= 0) return -1;
        found = a;
    }
    return found;
}

static int64_t quotient(int64_t a, int64_t b, bool up) { /* b > 0 */
    int64_t q = a / b, rest = a % b;
    if (rest > 0 && up) q++;
    if (rest < 0 && !up) q--;
    return q;
}

bool combiner_counts(enum combiner c) {
    return c == COMBINE_ADD || c == COMBINE_MUL;
}

uint64_t stmt_value_axes(const struct program *p, const struct stmt *s) {
    struct stmt bare = *s;
    bare.nwhere = 0;
    return stmt_axes(p, &bare);
}

/* Without constraint w an axis would be gone, and with it how often the statement counts. */
static bool holds_axis(const struct program *p, const struct stmt *s, int w) {
    struct stmt rest = *s;
    rest.nwhere = 0;
    uint64_t others = stmt_axes(p, &rest);
    for (int k = 0; k < s->nwhere; k++)
        for (int a = 0; a < p->naxes && k != w; a++)
            if (s->where[k].coef[a]) others |= UINT64_C(1) << a;
    for (int a = 0; a < p->naxes; a++)
        if (s->where[w].coef[a] && !(others >> a & 1)) return combiner_counts(s->combine);
    return false;
}

int stmt_drop_where(const struct program *p, struct stmt *s) {
    int dropped = 0;
    for (int w = 0; w < s->nwhere; w++) {
        if (least_of(p, &s->where[w]) < 0 || holds_axis(p, s, w)) continue;
        memmove(s->where + w, s->where + w + 1, (size_t)(s->nwhere - w - 1) * sizeof *s->where);
        s->nwhere--;
        w--;
        dropped++;
    }
    if (dropped) s->axes &= stmt_axes(p, s);
    return dropped;
}

bool stmt_bounds(const struct program *p, const struct stmt *s, int axis, int64_t *lo,
                 int64_t *hi) {
    bool bound = false;
    *lo = 0;
    *hi = p->axis[axis].extent - 1;
    for (int w = 0; w < s->nwhere; w++) {
        const struct constraint *c = &s->where[w];
        if (sole_axis(p, c) != axis) continue;
        int64_t k = c->coef[axis], c0 = c->coef[p->naxes];
        bound = true;
        if (k > 0) {
            int64_t at = quotient(-c0, k, true);
            *lo = at > *lo ? at : *lo;
        } else {
            int64_t at = quotient(c0, -k, false);
            *hi = at < *hi ? at : *hi;
        }
    }
    return bound && *lo <= *hi;
}

void program_trim(struct program *p) {
    for (int n = 0; n < p->nstmts; n++) {
        struct stmt *s = &p->stmt[n];
        for (int a = 0; a < p->naxes && s->nwhere > 0; a++) {
            int64_t lo, hi;
            bool shared = p->axis[a].sequential;
            for (int k = 0; k < p->nstmts; k++) shared |= k != n && (p->stmt[k].axes >> a & 1);
            if (!shared && stmt_bounds(p, s, a, &lo, &hi) && lo == 0) p->axis[a].extent = hi + 1;
        }
        stmt_drop_where(p, s);
    }
}
