/* Interval analysis with a grain: integers are multiples of 1, products with powers of two stay
 * multiples of one, so that it is known which floats are exact. */
#include "mapper/range.h"
#include "ir/memory.h"

#include <math.h>
#include <stdlib.h>

enum { DEPTH = 4 }; /* writers that are followed back */

static double type_bits(enum type t) {
    return t == TYPE_F64 ? 53 : t == TYPE_F32 ? 24 : t == TYPE_F16 ? 11 : 8;
}

struct range range_of_type(enum type t) {
    if (type_is_float(t)) return (struct range){-INFINITY, INFINITY, GRAIN_NONE, false};
    if (t == TYPE_U64) return (struct range){0, 0x1p64, 0, false};
    int64_t lo, hi;
    type_limits(t, &lo, &hi);
    return (struct range){(double)lo, (double)hi, 0, false};
}

static double widest(const struct range *r) {
    return fmax(fabs(r->lo), fabs(r->hi));
}

/* Does a significand of so many bits hold each value? Exponents are never the limit for what comes
 * from integers of up to 64 bits. */
static bool exact_in(const struct range *r, enum type t) {
    if (r->grain == GRAIN_NONE || isinf(widest(r))) return false;
    if (t == TYPE_F16 && (widest(r) > 65504 || r->grain < -24)) return false;
    return r->grain > -120 && widest(r) <= ldexp(1, r->grain + (int)type_bits(t));
}

bool range_fits(const struct range *r, enum type t) {
    if (r->wraps || isnan(r->lo)) return false;
    if (type_is_float(t)) return exact_in(r, t);
    struct range all = range_of_type(t);
    return r->grain >= 0 && r->lo >= all.lo && r->hi <= all.hi;
}

/* What a value is once it is in the type: an integer may wrap, a float may be rounded. */
static struct range settled(struct range r, enum type t) {
    struct range all = range_of_type(t);
    if (isnan(r.lo) || isnan(r.hi)) return all;
    if (type_is_float(t)) {
        if (exact_in(&r, t)) return r;
        double step = ldexp(1, 1 - (int)type_bits(t));
        r.grain = GRAIN_NONE;
        r.lo -= isinf(r.lo) ? 0 : fabs(r.lo) * step;
        r.hi += isinf(r.hi) ? 0 : fabs(r.hi) * step;
        return r;
    }
    if (r.lo >= all.lo && r.hi <= all.hi) return r;
    all.wraps = true;
    return all;
}

static struct range hull(struct range a, struct range b) {
    return (struct range){fmin(a.lo, b.lo), fmax(a.hi, b.hi), a.grain < b.grain ? a.grain : b.grain,
                          a.wraps || b.wraps};
}

static struct range constant(double x) {
    struct range r = {x, x, GRAIN_NONE, false};
    if (isnan(x)) return range_of_type(TYPE_F64);
    if (x == 0) r.grain = 0;
    if (x == 0 || isinf(x)) return r;
    int exponent;
    double m = frexp(x, &exponent);
    for (r.grain = exponent; m != rint(m); r.grain--) m *= 2;
    return r;
}

static int grains(int a, int b, bool product) {
    if (a == GRAIN_NONE || b == GRAIN_NONE) return GRAIN_NONE;
    return product ? a + b : a < b ? a : b;
}

static double times(double a, double b) {
    return a == 0 || b == 0 ? 0 : a * b;
}

static struct range product(struct range a, struct range b) {
    double x[4] = {times(a.lo, b.lo), times(a.lo, b.hi), times(a.hi, b.lo), times(a.hi, b.hi)};
    struct range r = {x[0], x[0], grains(a.grain, b.grain, true), false};
    for (int k = 1; k < 4; k++) {
        r.lo = fmin(r.lo, x[k]);
        r.hi = fmax(r.hi, x[k]);
    }
    return r;
}

static int coarser(int grain) {
    return grain == GRAIN_NONE || grain < 0 ? 0 : grain;
}

/* To an integer type a float is truncated and saturates; to anything else it is itself or wraps. */
static struct range cast(struct range a, enum type to, enum type from) {
    if (to == TYPE_BOOL) return (struct range){0, 1, 0, false};
    if (type_is_float(to) || !type_is_float(from)) return a;
    struct range all = range_of_type(to);
    return (struct range){fmin(fmax(trunc(a.lo), all.lo), all.hi),
                          fmin(fmax(trunc(a.hi), all.lo), all.hi), coarser(a.grain), false};
}

static struct range shifted(struct range a, struct range by) {
    if (by.lo != by.hi || by.lo < 0 || by.lo > 62) return (struct range){NAN, NAN, 0, false};
    double factor = ldexp(1, -(int)by.lo);
    return (struct range){floor(a.lo * factor), floor(a.hi * factor), 0, false};
}

static struct range quotient(struct range a, struct range b, enum type t) {
    if (type_is_float(t) || b.lo != b.hi || b.lo == 0) return (struct range){NAN, NAN, 0, false};
    struct range r = {trunc(a.lo / b.lo), trunc(a.hi / b.lo), 0, false};
    if (r.lo <= r.hi) return r;
    return (struct range){r.hi, r.lo, 0, false};
}

/* The exact result; NaN bounds: only the type is known. */
static struct range op_range(const struct op *o, enum type from, const struct range *a) {
    const struct range unknown = {NAN, NAN, 0, false};
    switch (o->code) {
    case OP_ADD:
        return (struct range){a[0].lo + a[1].lo, a[0].hi + a[1].hi,
                              grains(a[0].grain, a[1].grain, false), false};
    case OP_SUB:
        return (struct range){a[0].lo - a[1].hi, a[0].hi - a[1].lo,
                              grains(a[0].grain, a[1].grain, false), false};
    case OP_NEG:
        return (struct range){-a[0].hi, -a[0].lo, a[0].grain, false};
    case OP_MUL:
        return product(a[0], a[1]);
    case OP_DIV:
        return quotient(a[0], a[1], o->type);
    case OP_ABS:
        return (struct range){a[0].lo > 0 ? a[0].lo : fmax(0, -a[0].hi), widest(&a[0]), a[0].grain,
                              false};
    case OP_FLOOR:
        return (struct range){floor(a[0].lo), floor(a[0].hi), coarser(a[0].grain), false};
    case OP_CEIL:
        return (struct range){ceil(a[0].lo), ceil(a[0].hi), coarser(a[0].grain), false};
    case OP_ROUND:
        return (struct range){rint(a[0].lo), rint(a[0].hi), coarser(a[0].grain), false};
    case OP_MIN:
        return (struct range){fmin(a[0].lo, a[1].lo), fmin(a[0].hi, a[1].hi),
                              grains(a[0].grain, a[1].grain, false), false};
    case OP_MAX:
        return (struct range){fmax(a[0].lo, a[1].lo), fmax(a[0].hi, a[1].hi),
                              grains(a[0].grain, a[1].grain, false), false};
    case OP_CLIP:
        return (struct range){
            fmin(fmax(a[0].lo, a[1].lo), a[2].lo), fmin(fmax(a[0].hi, a[1].hi), a[2].hi),
            grains(grains(a[0].grain, a[1].grain, false), a[2].grain, false), false};
    case OP_SELECT:
        return hull(a[1], a[2]);
    case OP_SHR:
        return shifted(a[0], a[1]);
    case OP_CAST:
        return cast(a[0], o->type, from);
    default:
        return op_info[o->code].flags & OP_TO_BOOL ? (struct range){0, 1, 0, false} : unknown;
    }
}

/* ---- statements ---- */

/* What one question has found out: after a statement the range of all that its buffer holds, for
 * each depth. */
struct asked {
    const struct program *p;
    struct after {
        struct range range;
        bool known;
    } * after; /* nstmts times DEPTH; NULL: nothing yet */
};

static struct range buffer_range(struct asked *, int buffer, int before, int depth);

static struct range read_range(struct asked *q, const struct access *a, int stmt, int depth) {
    const struct program *p = q->p;
    struct range r = buffer_range(q, a->buffer, stmt, depth);
    if (!a->has_fill) return r;
    enum type t = p->buffer[a->buffer].type;
    return hull(r, constant(type_is_float(t) ? a->fill.f : (double)a->fill.i));
}

static void op_ranges(struct asked *q, int stmt, int depth, struct range *out) {
    const struct program *p = q->p;
    const struct stmt *s = &p->stmt[stmt];
    for (int i = 0; i < s->nops; i++) {
        const struct op *o = &s->op[i];
        struct range a[3];
        int n = op_info[o->code].arity;
        for (int k = 0; k < n; k++) a[k] = out[o->arg[k]];
        if (o->code == OP_READ)
            out[i] = read_range(q, &s->read[o->read], stmt, depth);
        else if (o->code == OP_LITERAL && o->unsaid)
            out[i] = range_of_type(o->type);
        else if (o->code == OP_LITERAL)
            out[i] = settled(constant(type_is_float(o->type) ? o->value.f : (double)o->value.i),
                             o->type);
        else if (o->code == OP_AXIS)
            out[i] =
                settled((struct range){0, (double)p->axis[o->axis].extent - 1, 0, false}, o->type);
        else
            out[i] = settled(op_range(o, s->op[o->arg[n > 1 ? 1 : 0]].type, a), o->type);
    }
}

/* Points of the statement for one element of the result, at most. */
static double points_per_element(const struct program *p, const struct stmt *s) {
    double points = 1;
    uint64_t seen = 0;
    for (int d = 0; d < p->buffer[s->dst.buffer].ndims; d++) {
        int varying = 0, last = -1;
        for (int a = 0; a < p->naxes; a++)
            if (access_coef(p, &s->dst, d, a)) {
                varying++;
                last = a;
            }
        if (varying == 1) seen |= UINT64_C(1) << last; /* one value of the index, one of the axis */
    }
    for (int a = 0; a < p->naxes; a++)
        if (s->axes >> a & 1 && !(seen >> a & 1)) points *= (double)p->axis[a].extent;
    return points;
}

static struct range result_range(struct asked *q, int stmt, int depth) {
    const struct program *p = q->p;
    const struct stmt *s = &p->stmt[stmt];
    enum type t = p->buffer[s->dst.buffer].type;
    struct range *ops = memory_array((size_t)s->nops, sizeof *ops);
    op_ranges(q, stmt, depth, ops);
    struct range value = settled(ops[s->nops - 1], t);
    free(ops);
    if (s->combine == COMBINE_SET) return value;
    struct range before = buffer_range(q, s->dst.buffer, stmt, depth);
    if (s->combine == COMBINE_MAX || s->combine == COMBINE_MIN) return hull(before, value);
    if (s->combine != COMBINE_ADD) return range_of_type(t);
    double n = points_per_element(p, s);
    struct range sum = {before.lo + n * fmin(value.lo, 0), before.hi + n * fmax(value.hi, 0),
                        grains(before.grain, value.grain, false), false};
    sum = settled(sum, t);
    sum.wraps |= before.wraps;
    return sum;
}

static bool fills_all(const struct program *p, const struct stmt *s) {
    const struct buffer *b = &p->buffer[s->dst.buffer];
    uint64_t seen = 0;
    if (s->combine != COMBINE_SET || s->nwhere) return false;
    for (int d = 0; d < b->ndims; d++) {
        int found = -1;
        for (int a = 0; a < p->naxes; a++)
            if (access_coef(p, &s->dst, d, a)) {
                if (found >= 0 || seen >> a & 1 || access_coef(p, &s->dst, d, a) != 1) return false;
                found = a;
                seen |= UINT64_C(1) << a;
            }
        if (b->extent[d] != (found < 0 ? 1 : p->axis[found].extent)) return false;
    }
    return true;
}

static bool written_elsewhere(const struct item *item, int n, int buffer) {
    for (int i = 0; i < n; i++) {
        if (item[i].kind == ITEM_RECUR) return true;
        for (int w = 0; item[i].kind == ITEM_CALL && w < item[i].call->nwrites; w++)
            if (item[i].call->write[w] == buffer) return true;
    }
    return false;
}

/* The result says what the whole buffer holds, whatever stood there. */
static bool replaces(const struct program *p, int stmt) {
    return fills_all(p, &p->stmt[stmt]) || p->stmt[stmt].combine != COMBINE_SET;
}

static struct after *after_of(struct asked *q, int stmt, int depth) {
    if (!q->after) q->after = memory_array((size_t)q->p->nstmts * DEPTH, sizeof *q->after);
    return &q->after[stmt * DEPTH + depth - 1];
}

/* What was written before the last statement that replaces all is not looked at, nor what the
 * question knows already: a chain of n changes in place takes n steps for each depth. */
static struct range buffer_range(struct asked *q, int buffer, int before, int depth) {
    const struct program *p = q->p;
    const struct buffer *b = &p->buffer[buffer];
    struct range all = range_of_type(b->type), r = all;
    bool any = b->role == ROLE_IN || b->role == ROLE_INOUT || b->role == ROLE_CONST;
    int from = before;
    if (depth == 0 || written_elsewhere(p->item, p->nitems, buffer)) return all;
    for (bool found = false; from > 0 && !found;) {
        if (p->stmt[--from].dst.buffer != buffer) continue;
        if (p->stmt[from].scope) return all;
        found = after_of(q, from, depth)->known || replaces(p, from);
    }
    for (int s = from; s < before; s++) {
        if (p->stmt[s].dst.buffer != buffer) continue;
        if (!after_of(q, s, depth)->known) {
            struct range next = result_range(q, s, depth - 1);
            next = !any || replaces(p, s) ? next : hull(r, next);
            *after_of(q, s, depth) = (struct after){next, true};
        }
        r = after_of(q, s, depth)->range;
        any = true;
    }
    return r;
}

struct range range_of_buffer(const struct program *p, int buffer, int before) {
    struct asked q = {p, NULL};
    struct range r = buffer_range(&q, buffer, before, DEPTH);
    free(q.after);
    return r;
}

void ranges_of_ops(const struct program *p, int stmt, struct range *out) {
    struct asked q = {p, NULL};
    op_ranges(&q, stmt, DEPTH, out);
    free(q.after);
}

void ranges_of_ops_alone(const struct program *p, int stmt, struct range *out) {
    op_ranges(&(struct asked){p, NULL}, stmt, 0, out);
}

struct range range_of_result(const struct program *p, int stmt) {
    struct asked q = {p, NULL};
    struct range r = result_range(&q, stmt, DEPTH);
    free(q.after);
    return r;
}
