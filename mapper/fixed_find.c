/* Requantisers with known constants, and the numbers with which integers do the same: how far sums
 * reach follows from the weights, how far the result differs from the multipliers. */
#include "mapper/fixed.h"

#include <math.h>
#include <string.h>

/* ---- constants ---- */

static double element(enum type t, const void *data, int64_t i) {
    union value v = type_load(t, (const char *)data + (size_t)i * type_size(t));
    return type_is_float(t) ? v.f : (double)v.i;
}

/* The axis that is all of the index; -1: none, or more. */
static int lone_axis(const struct program *p, const struct access *a, int d) {
    int axis = -1;
    if (access_coef(p, a, d, p->naxes)) return -1;
    for (int x = 0; x < p->naxes; x++) {
        int64_t c = access_coef(p, a, d, x);
        if (!c) continue;
        if (c != 1 || axis >= 0) return -1;
        axis = x;
    }
    return axis;
}

/* A number, or a known row of them: then *axis is the one that walks it, -1 before the first. */
static bool known_node(const struct program *p, const void *const *data, const struct stmt *s,
                       int node, int *axis) {
    const struct op *o = &s->op[node];
    if (o->code == OP_LITERAL) return true;
    if (o->code != OP_READ) return false;
    const struct access *a = &s->read[o->read];
    const struct buffer *b = &p->buffer[a->buffer];
    if (b->role != ROLE_CONST || !data[a->buffer] || b->ndims != 1 || a->has_fill) return false;
    int x = lone_axis(p, a, 0);
    if (x < 0 || p->axis[x].extent != b->extent[0] || (*axis >= 0 && *axis != x)) return false;
    *axis = x;
    return true;
}

static double *numbers_of(struct arena *arena, const struct program *p, const void *const *data,
                          const struct stmt *s, int node, int64_t n) {
    double *out = arena_array(arena, (size_t)n, sizeof *out);
    if (node < 0) return out;
    const struct op *o = &s->op[node];
    int b = o->code == OP_READ ? s->read[o->read].buffer : -1;
    for (int64_t i = 0; i < n; i++)
        out[i] = b >= 0                   ? element(p->buffer[b].type, data[b], i)
                 : type_is_float(o->type) ? o->value.f
                                          : (double)o->value.i;
    return out;
}

/* ---- the statement ---- */

static bool literal(const struct stmt *s, int node, double *out) {
    const struct op *o = &s->op[node];
    if (o->code != OP_LITERAL) return false;
    *out = type_is_float(o->type) ? o->value.f : (double)o->value.i;
    return true;
}

/* i32 sums as a float: the read of them; -1. */
static int sums_of(const struct program *p, const struct stmt *s, int node) {
    const struct op *o = &s->op[node];
    if (o->code != OP_CAST || !type_is_float(o->type)) return -1;
    o = &s->op[o->arg[0]];
    if (o->code != OP_READ) return -1;
    const struct access *a = &s->read[o->read];
    const struct buffer *b = &p->buffer[a->buffer];
    return b->type == TYPE_I32 && b->role == ROLE_TEMP && !a->has_fill ? o->read : -1;
}

static bool find_product(const struct program *p, const struct stmt *s, int node,
                         struct requantiser *x) {
    const struct op *o = &s->op[node];
    for (int k = 0; k < 2 && o->code == OP_MUL; k++) {
        x->scale = o->arg[1 - k];
        if ((x->read = sums_of(p, s, o->arg[k])) >= 0) return true;
    }
    return false;
}

/* sum * scale, and + offset */
static bool find_line(const struct program *p, const struct stmt *s, int node,
                      struct requantiser *x) {
    const struct op *o = &s->op[node];
    x->offset = -1;
    if (find_product(p, s, node, x)) return true;
    for (int k = 0; k < 2 && o->code == OP_ADD; k++) {
        x->offset = o->arg[1 - k];
        if (find_product(p, s, o->arg[k], x)) return true;
    }
    return false;
}

static bool find_parts(const struct program *p, const struct stmt *s, struct requantiser *x) {
    int at = s->nops - 1;
    if (s->op[at].code != OP_CAST || type_size(s->op[at].type) != 1 || s->op[at].type == TYPE_BOOL)
        return false;
    at = s->op[at].arg[0];
    const struct op *clip = &s->op[at];
    if (clip->code != OP_CLIP || !literal(s, clip->arg[1], &x->lo) ||
        !literal(s, clip->arg[2], &x->hi) || !(x->lo < x->hi))
        return false;
    at = clip->arg[0];
    x->zero = 0;
    if (s->op[at].code == OP_ADD) {
        if (!literal(s, s->op[at].arg[1], &x->zero)) return false;
        at = s->op[at].arg[0];
    }
    return s->op[at].code == OP_ROUND && type_is_float(s->op[at].type) &&
           find_line(p, s, s->op[at].arg[0], x);
}

/* ---- the sums ---- */

static int reads_of(const struct program *p, int buffer) {
    int n = 0;
    for (int s = 0; s < p->nstmts; s++)
        for (int r = 0; r < p->stmt[s].nreads; r++) n += p->stmt[s].read[r].buffer == buffer;
    return n;
}

/* The dimension of the access that the axis walks alone; -1. */
static int dim_of(const struct program *p, const struct access *a, int axis) {
    for (int d = 0; d < p->buffer[a->buffer].ndims; d++)
        if (axis >= 0 && lone_axis(p, a, d) == axis) return d;
    return -1;
}

/* What a factor that is data can be: an element of 8 bits, perhaps with a zero point. False: it is
 * something else. */
static bool limits(const struct program *p, const struct stmt *s, int node, double *lo,
                   double *hi) {
    const struct op *o = &s->op[node];
    enum type t = o->code == OP_READ ? p->buffer[s->read[o->read].buffer].type : o->type;
    double zero;
    if (o->code == OP_CAST) return limits(p, s, o->arg[0], lo, hi);
    if (o->code == OP_SUB || o->code == OP_ADD) {
        if (!literal(s, o->arg[1], &zero) || !limits(p, s, o->arg[0], lo, hi)) return false;
        if (o->code == OP_SUB) zero = -zero;
        *lo += zero;
        *hi += zero;
        return true;
    }
    if (o->code != OP_READ || type_is_float(t) || type_size(t) != 1) return false;
    *lo = type_is_signed(t) ? -128 : 0;
    *hi = *lo + 255;
    return true;
}

/* Of the products' factors, constants of 8 bits as they stand; -1. */
static int weights_in(const struct program *p, const void *const *data, const struct stmt *s,
                      int node) {
    node = rw_bare(s, node);
    const struct op *o = &s->op[node];
    if (o->code != OP_READ) return -1;
    const struct access *a = &s->read[o->read];
    const struct buffer *b = &p->buffer[a->buffer];
    bool known = b->role == ROLE_CONST && data[a->buffer] && !a->has_fill;
    return known && !type_is_float(b->type) && type_size(b->type) == 1 ? o->read : -1;
}

/* Adds what the products of a statement can add to the sums, by channel: each weight meets one
 * datum of a sum as often as axes beside it say. */
static bool add_products(const struct program *p, const void *const *data, int stmt, int dim,
                         struct requantiser *x) {
    struct factors f;
    const struct stmt *s = &p->stmt[stmt];
    if (!rw_plain(p, stmt) || !rw_factors(p, stmt, &f) || f.n != 2) return false;
    int k = weights_in(p, data, s, f.node[0]) >= 0 ? 0 : 1;
    int read = weights_in(p, data, s, f.node[k]);
    double lo, hi, times = 1;
    if (read < 0 || !limits(p, s, f.node[1 - k], &lo, &hi)) return false;
    const struct access *w = &s->read[read];
    const struct buffer *b = &p->buffer[w->buffer];
    int axis = dim < 0 ? -1 : lone_axis(p, &s->dst, dim), along = dim_of(p, w, axis);
    if (dim >= 0 && along < 0) return false;
    uint64_t walked = 0;
    for (int d = 0; d < b->ndims; d++) {
        int a = lone_axis(p, w, d);
        if (a < 0 ? b->extent[d] != 1 : (walked >> a & 1) || p->axis[a].extent != b->extent[d])
            return false;
        if (a >= 0) walked |= UINT64_C(1) << a;
    }
    for (int a = 0; a < p->naxes; a++)
        if ((s->axes >> a & 1) && !(walked >> a & 1) && !access_varies(p, &s->dst, a))
            times *= (double)p->axis[a].extent;
    int64_t inner = 1;
    for (int d = along + 1; along >= 0 && d < b->ndims; d++) inner *= b->extent[d];
    for (int64_t i = 0; i < b->elements; i++) {
        double v = element(b->type, data[w->buffer], i) * times;
        int64_t c = along < 0 ? 0 : i / inner % x->n;
        x->least[c] += fmin(fmin(v * lo, v * hi), 0);
        x->most[c] += fmax(fmax(v * lo, v * hi), 0);
    }
    return true;
}

/* What the sums begin with: zero, or a row of biases. */
static bool read_fill(const struct program *p, const void *const *data, int dim,
                      struct requantiser *x) {
    const struct stmt *s = &p->stmt[x->init];
    const struct op *o = &s->op[s->nops - 1];
    int axis = dim < 0 ? -1 : lone_axis(p, &s->dst, dim);
    x->bias = -1;
    x->channel_init = axis;
    if (dim >= 0 && axis < 0) return false;
    if (s->nops != 1 || !rw_plain(p, x->init)) return false;
    if (o->code == OP_LITERAL) return o->value.i == 0;
    if (o->code != OP_READ || !known_node(p, data, s, s->nops - 1, &axis)) return false;
    x->bias = o->read;
    const struct buffer *b = &p->buffer[s->read[o->read].buffer];
    for (int64_t i = 0; i < b->elements; i++) {
        double v = element(b->type, data[b - p->buffer], i);
        int64_t c = dim < 0 ? 0 : i;
        x->least[c] = fmin(x->least[c], v);
        x->most[c] = fmax(x->most[c], v);
    }
    return true;
}

/* The sums are written by the fill and by products alone, before the statement, and read by it. */
static bool find_sums(const struct program *p, const void *const *data, struct requantiser *x) {
    const struct stmt *s = &p->stmt[x->stmt];
    const struct access *sums = &s->read[x->read];
    int dim = x->channel < 0 ? -1 : dim_of(p, sums, x->channel), products = 0;
    x->init = -1;
    if ((x->channel >= 0 && dim < 0) || reads_of(p, sums->buffer) != 1 ||
        program_held(p, sums->buffer) || (dim >= 0 && p->buffer[sums->buffer].extent[dim] != x->n))
        return false;
    for (int k = 0; k < p->nstmts; k++) {
        if (p->stmt[k].dst.buffer != sums->buffer) continue;
        if (k > x->stmt || (p->stmt[k].combine == COMBINE_SET) != (x->init < 0)) return false;
        if (x->init < 0) {
            x->init = k;
            if (!stmt_writes_whole(p, &p->stmt[k]) || !read_fill(p, data, dim, x)) return false;
        } else if (++products && !add_products(p, data, k, dim, x)) {
            return false;
        }
    }
    return products > 0;
}

bool requantiser_find(struct arena *arena, const struct program *p, const void *const *data,
                      int stmt, struct requantiser *x) {
    const struct stmt *s = &p->stmt[stmt];
    *x = (struct requantiser){.stmt = stmt, .channel = -1};
    if (s->combine != COMBINE_SET || s->nops < 5 || !rw_plain(p, stmt) || !find_parts(p, s, x) ||
        !known_node(p, data, s, x->scale, &x->channel) ||
        (x->offset >= 0 && !known_node(p, data, s, x->offset, &x->channel)))
        return false;
    x->n = x->channel < 0 ? 1 : p->axis[x->channel].extent;
    x->scales = numbers_of(arena, p, data, s, x->scale, x->n);
    x->offsets = numbers_of(arena, p, data, s, x->offset, x->n);
    x->least = numbers_of(arena, p, data, s, -1, x->n);
    x->most = numbers_of(arena, p, data, s, -1, x->n);
    for (int64_t i = 0; i < x->n; i++)
        if (!(x->scales[i] > 0) || isinf(x->scales[i]) || !isfinite(x->offsets[i])) return false;
    return find_sums(p, data, x);
}

/* ---- the numbers ---- */

enum { MOST_BITS = 15, MOST_SHIFT = 31 }; /* of a multiplier: fields of instructions are narrow */

static double multiplier(double scale, int shift) {
    return rint(ldexp(scale, shift));
}

/* In steps of the result: the offset is rounded to a step of the sums, the sums to 2^before of
 * them, and the multiplier is off by a share of what is not beyond the bounds. */
static double error_of(const struct requantiser *x, int64_t i, int before, int after, bool halves) {
    double scale = x->scales[i], m = ldexp(multiplier(scale, before + after), -(before + after)),
           reach = fmax(fabs(x->lo), fabs(x->hi)) + 1;
    bool offset = x->offsets[i] != 0 || x->zero != 0;
    return (offset ? 0.5 * scale : 0) + (before ? ldexp(scale, before - halves) : 0) +
           fabs(m - scale) / scale * reach;
}

/* Does the product of the shifted sums and the multiplier stay in i32, with c added? */
static bool fits(const struct requantiser *x, int64_t i, int before, int after) {
    double m = multiplier(x->scales[i], before + after),
           c = fabs((x->offsets[i] + x->zero) / x->scales[i]) + 1 + ldexp(1, before),
           sum = fmax(-x->least[i], x->most[i]) + c;
    return m >= 1 && m < ldexp(1, MOST_BITS) && sum < 0x1p31 - 1 &&
           (ldexp(sum, -before) + 1) * m < 0x1p31 - 1;
}

static double worst(const struct requantiser *x, int before, int after, bool halves) {
    double most = 0;
    for (int64_t i = 0; i < x->n; i++) {
        if (!fits(x, i, before, after)) return INFINITY;
        most = fmax(most, error_of(x, i, before, after, halves));
    }
    return most;
}

/* With `before` bits shifted out first, the most that are left behind and still fit. */
static double try_shift(const struct requantiser *x, int before, bool halves, int *after) {
    double best = INFINITY;
    for (int a = 0; a <= MOST_SHIFT; a++) {
        double e = worst(x, before, a, halves);
        if (e < best) best = e, *after = a;
    }
    return best;
}

bool fixed_point_of(const struct requantiser *x, struct fixed_point *out) {
    bool shifts = x->zero != 0;
    for (int64_t i = 0; i < x->n; i++) shifts |= x->offsets[i] != 0;
    *out = (struct fixed_point){.error = INFINITY};
    for (int before = 0; before < 16; before++) {
        int after = 0;
        bool row = x->channel >= 0 && (shifts || x->bias >= 0);
        double e = try_shift(x, before, row, &after);
        if (e < out->error)
            *out = (struct fixed_point){before, after, shifts || (row && before > 0), e};
        if (before == 0 && out->error <= 0.25) break;
    }
    return out->error <= 0.5 && (!shifts || x->channel >= 0);
}
