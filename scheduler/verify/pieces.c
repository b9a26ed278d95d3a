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

/* How far the operand moves in a loop's second iteration; 0: it has none. */
static int64_t first_move(const struct loop_node *l, const struct sx *offset, int64_t *var) {
    int64_t lo = sx_eval(l->lo, var), first = sx_eval(offset, var);
    if (lo + l->step >= sx_eval(l->hi, var)) return 0;
    var[l->var] = lo + l->step;
    int64_t by = sx_eval(offset, var) - first;
    var[l->var] = lo;
    return by < 0 ? -by : by;
}

/* The loops by how far they move the operand, the least first: what touches is joined early, so
 * that there are few pieces. */
static void loops_by_move(const struct hardware *h, const struct sx *offset, int64_t *var,
                          int *order) {
    int64_t move[MAX_HARDWARE_LOOPS];
    for (int k = 0; k < h->nloops; k++) {
        int64_t by = first_move(h->loop[k], offset, var);
        int at = k;
        for (; at > 0 && move[at - 1] > by; at--) {
            move[at] = move[at - 1];
            order[at] = order[at - 1];
        }
        move[at] = by;
        order[at] = k;
    }
}

/* Operands move in constant steps in loops that are no table (hardware_obstacle, which structure.c
 * asks first). False: more than are told apart. */
static bool loop_pieces(const struct hardware *h, const struct sx *offset, int64_t *var,
                        struct pieces *p) {
    int64_t first = sx_eval(offset, var);
    int order[MAX_HARDWARE_LOOPS];
    if (h) loops_by_move(h, offset, var, order);
    for (int i = 0; h && i < h->nloops; i++) {
        int k = order[i];
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
