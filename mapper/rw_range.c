/* Ranges of integers: what a value can be, from the types that it comes from and the sizes of sums.
 */
#include "mapper/rewrite_int.h"

#include <math.h>

enum { MOST_DEPTH = 8 };

static bool type_range(enum type t, double *lo, double *hi) {
    int64_t low, high;
    if (type_is_float(t) || type_size(t) > 4) return false;
    type_limits(t, &low, &high);
    *lo = (double)low;
    *hi = (double)high;
    return true;
}

/* What does not fit wraps: anything is possible then. */
static bool wrapped(enum type t, double *lo, double *hi) {
    double low, high;
    if (!type_range(t, &low, &high)) return fabs(*lo) < 0x1p52 && fabs(*hi) < 0x1p52;
    if (*lo < low || *hi > high) {
        *lo = low;
        *hi = high;
    }
    return true;
}

static void multiply(double a, double b, double c, double d, double *lo, double *hi) {
    double v[4] = {a * c, a * d, b * c, b * d};
    *lo = *hi = v[0];
    for (int k = 1; k < 4; k++) {
        *lo = fmin(*lo, v[k]);
        *hi = fmax(*hi, v[k]);
    }
}

static bool node_range(const struct program *p, int stmt, int node, int depth, double *lo,
                       double *hi);

/* A temporary holds what the statements before put there. */
static bool temporary_range(const struct program *p, int stmt, int buffer, int depth, double *lo,
                            double *hi) {
    double a, b;
    bool any = false;
    *lo = *hi = 0;
    for (int w = 0; w < stmt; w++) {
        const struct stmt *s = &p->stmt[w];
        if (s->dst.buffer != buffer) continue;
        if (s->scope || s->nwhere || stmt_in_recurrence(p, w) ||
            (s->combine != COMBINE_SET && s->combine != COMBINE_ADD) ||
            !node_range(p, w, s->nops - 1, depth + 1, &a, &b))
            return false;
        double n =
            s->combine == COMBINE_SET ? 1 : rw_points(p, s->axes & ~rw_access_axes(p, &s->dst));
        if (s->combine == COMBINE_ADD && !access_injective(p, &s->dst, rw_access_axes(p, &s->dst)))
            return false;
        bool set = s->combine == COMBINE_SET;
        double least = n * a, most = n * b;
        *lo = set ? (any ? fmin(*lo, least) : least) : *lo + fmin(least, 0);
        *hi = set ? (any ? fmax(*hi, most) : most) : *hi + fmax(most, 0);
        any = true;
    }
    return any && wrapped(p->buffer[buffer].type, lo, hi);
}

static bool node_range(const struct program *p, int stmt, int node, int depth, double *lo,
                       double *hi) {
    const struct stmt *s = &p->stmt[stmt];
    const struct op *o = &s->op[node];
    double a, b, c, d;
    if (type_is_float(o->type) || depth > MOST_DEPTH) return false;
    switch (o->code) {
    case OP_READ: {
        int from = s->read[o->read].buffer;
        bool known = p->buffer[from].role == ROLE_TEMP && !s->read[o->read].has_fill &&
                     temporary_range(p, stmt, from, depth, lo, hi);
        return known || type_range(p->buffer[from].type, lo, hi);
    }
    case OP_LITERAL:
        *lo = *hi = (double)o->value.i;
        return true;
    case OP_CAST:
        if (!node_range(p, stmt, o->arg[0], depth, lo, hi)) return type_range(o->type, lo, hi);
        return wrapped(o->type, lo, hi);
    case OP_ADD:
    case OP_SUB:
    case OP_MUL:
        if (!node_range(p, stmt, o->arg[0], depth, &a, &b) ||
            !node_range(p, stmt, o->arg[1], depth, &c, &d))
            return type_range(o->type, lo, hi);
        if (o->code == OP_MUL) {
            multiply(a, b, c, d, lo, hi);
        } else {
            *lo = o->code == OP_ADD ? a + c : a - d;
            *hi = o->code == OP_ADD ? b + d : b - c;
        }
        return wrapped(o->type, lo, hi);
    default:
        return type_range(o->type, lo, hi);
    }
}

bool rw_range(const struct program *p, int stmt, int node, double *lo, double *hi) {
    return node_range(p, stmt, node, 0, lo, hi);
}
