/* The bytes that an operand touches, hardware loops included, as pieces. */
#include "scheduler/verify/pieces.h"

#include <stdlib.h>

static bool add_offset(struct pieces *p, int64_t by, int upto) {
    for (int k = 0; k < upto; k++) {
        if (p->n == MOST_PIECES) return false;
        p->at[p->n].low = p->at[k].low + by;
        p->at[p->n].high = p->at[k].high + by;
        p->n++;
    }
    return true;
}

static int by_low(const void *a, const void *b) {
    const struct piece *x = a, *y = b;
    return (x->low > y->low) - (x->low < y->low);
}

/* In ascending order, those that touch as one. */
static void pieces_join(struct pieces *p) {
    int n = 0;
    bool sorted = true;
    for (int k = 1; k < p->n; k++) sorted &= p->at[k - 1].low <= p->at[k].low;
    if (!sorted) qsort(p->at, (size_t)p->n, sizeof *p->at, by_low);
    for (int k = 0; k < p->n; k++) {
        if (!n || p->at[k].low > p->at[n - 1].high)
            p->at[n++] = p->at[k];
        else if (p->at[k].high > p->at[n - 1].high)
            p->at[n - 1].high = p->at[k].high;
    }
    p->n = n;
}

/* Operands move in constant steps in loops that are no table (hardware_obstacle, which structure.c
 * asks first). False: more than are told apart. */
static bool loop_pieces(const struct hardware *h, const struct sx *offset, int64_t *var,
                        struct pieces *p) {
    int64_t first = sx_eval(offset, var);
    for (int k = 0; h && k < h->nloops; k++) {
        const struct loop_node *l = h->loop[k];
        int64_t lo = sx_eval(l->lo, var), hi = sx_eval(l->hi, var), last = 0, step = 0;
        int upto = p->n;
        bool good = true;
        for (int64_t x = lo + l->step; x < hi && good; x += l->step) {
            var[l->var] = x;
            bool known = k != h->table && x > lo + l->step;
            int64_t by = known ? last + step : sx_eval(offset, var) - first;
            step = by - last;
            good = by == last || by == 0 || add_offset(p, by, upto);
            last = by;
            if (last == 0 && k != h->table) break;
        }
        var[l->var] = lo;
        if (!good) return false;
        pieces_join(p);
    }
    return true;
}

/* All of it as one. */
static void loop_span(const struct hardware *h, const struct sx *offset, int64_t *var, int64_t *low,
                      int64_t *high) {
    int64_t first = sx_eval(offset, var);
    for (int k = 0; h && k < h->nloops; k++) {
        const struct loop_node *l = h->loop[k];
        int64_t lo = sx_eval(l->lo, var), hi = sx_eval(l->hi, var), least = 0, most = 0;
        int64_t last = hi <= lo ? lo : lo + (hi - lo - 1) / l->step * l->step;
        for (int64_t x = last; x > lo; x = k == h->table ? x - l->step : lo) {
            var[l->var] = x;
            int64_t by = sx_eval(offset, var) - first;
            if (by < least) least = by;
            if (by > most) most = by;
        }
        var[l->var] = lo;
        *low += least;
        *high += most;
    }
}

void pieces_of(struct pieces *out, int64_t at, const struct shape_operand *x,
               const struct hardware *h, const struct sx *offset, int64_t *var) {
    int64_t first = at + sx_eval(offset, var);
    bool few = x->nruns <= MOST_PIECES;
    out->n = 0;
    for (int k = 0; few && k < x->nruns; k++) {
        int64_t low = first + x->run[k].at;
        out->at[out->n++] = (struct piece){low, low + x->run[k].bytes};
    }
    pieces_join(out);
    if (few && loop_pieces(h, offset, var, out)) return;
    out->n = 1;
    out->at[0] = (struct piece){first + x->low, first + x->high};
    loop_span(h, offset, var, &out->at[0].low, &out->at[0].high);
}
