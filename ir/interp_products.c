/* dst += a * b with bounds, for reads of any type: what nearly all of a model's time goes to. The
 * innermost axis is summed over in chunks. */
#include "ir/interp_bound.h"

#include <math.h>
#include <string.h>

enum { CHUNK = 512 };

/* Up to CHUNK elements of one factor; e: their bounds. */
struct chunk {
    double x[CHUNK], e[CHUNK];
    bool exact, loose;
};

struct factor {
    struct strip strip;
    const struct shadow *from;
    enum type type;
    int granule;
};

#define NATIVE_TABLE(X)                                                                            \
    X(F64, double)                                                                                 \
    X(F32, float)                                                                                  \
    X(I32, int32_t)                                                                                \
    X(I16, int16_t)                                                                                \
    X(I8, int8_t)                                                                                  \
    X(U8, uint8_t)

static double bf16_value(uint16_t bits) {
    uint32_t wide = (uint32_t)bits << 16;
    float x;
    memcpy(&x, &wide, sizeof x);
    return x;
}

static void load_native(double *to, const struct shadow *f, enum type t, int64_t at, int64_t step,
                        int64_t n) {
    switch (t) {
#define X(id, type)                                                                                \
    case TYPE_##id: {                                                                              \
        const unsigned char *from = f->native + at * (int64_t)sizeof(type);                        \
        type x;                                                                                    \
        for (int64_t k = 0; k < n; k++) {                                                          \
            memcpy(&x, from + k * step * (int64_t)sizeof x, sizeof x);                             \
            to[k] = x;                                                                             \
        }                                                                                          \
        return;                                                                                    \
    }
        NATIVE_TABLE(X)
#undef X
    case TYPE_BF16: {
        const unsigned char *from = f->native + at * 2;
        uint16_t x;
        for (int64_t k = 0; k < n; k++) {
            memcpy(&x, from + k * step * 2, sizeof x);
            to[k] = bf16_value(x);
        }
        return;
    }
    case TYPE_F16:
        for (int64_t k = 0; k < n; k++) to[k] = type_load(t, f->native + (at + k * step) * 2).f;
        return;
    default:
        for (int64_t k = 0; k < n; k++) {
            union value v = type_load(t, f->native + (size_t)(at + k * step) * type_size(t));
            to[k] = type_is_float(t) ? v.f : t == TYPE_U64 ? (double)(uint64_t)v.i : (double)v.i;
        }
    }
}

static void load_shades(struct chunk *c, int64_t to, const struct shadow *f, enum type t,
                        int64_t at, int64_t step, int64_t n) {
    for (int64_t k = 0; k < n; k++) {
        const struct shade *s = &f->at[at + k * step];
        c->x[to + k] = type_is_float(t) ? s->v.f : (double)s->v.i;
        c->e[to + k] = fmaxf(fabsf(s->below), s->above);
        c->loose |= signbit(s->below);
    }
}

/* Elements first .. first + n - 1 of the strip. */
static void chunk_load(struct chunk *c, const struct walk *w, const struct factor *f, int64_t first,
                       int64_t n) {
    const struct strip *s = &f->strip;
    int64_t from = s->first > first ? s->first : first,
            to = s->last < first + n ? s->last : first + n;
    c->exact = !f->from->at;
    c->loose = false;
    if (from >= to) from = to = first + n;
    if (to - from < n) {
        double fill = type_is_float(f->type) ? type_load(f->type, &s->fill).f
                                             : (double)type_load(f->type, &s->fill).i;
        for (int64_t k = 0; k < n; k++) c->x[k] = fill, c->e[k] = 0;
    }
    int64_t at = w->form[s->lane->flat] + from * s->step;
    if (from == to) return;
    if (c->exact)
        load_native(c->x + (from - first), f->from, f->type, at, s->step, to - from);
    else
        load_shades(c, from - first, f->from, f->type, at, s->step, to - from);
}

/* Products of exact factors: their sums. */
static void add_exact(struct bounded_sum *s, const double *x, const double *y, int64_t n) {
    double total = s->total, magnitude = 0, square = 0, peak = s->peak, narrow = s->narrow;
    float single = (float)narrow;
    int64_t terms = 0;
    for (int64_t k = 0; k < n; k++) {
        double t = x[k] * y[k];
        total += t;
        magnitude += fabs(t);
        square += t * t;
        peak = fabs(total) > peak ? fabs(total) : peak;
        single += (float)t;
        terms += t != 0;
    }
    if (s->type == TYPE_F32)
        narrow = single;
    else
        for (int64_t k = 0; k < n; k++) narrow = round_quickly(s->type, narrow + x[k] * y[k]);
    double above = (magnitude + (total - s->total)) / 2;
    s->side[0] += fmax(0, magnitude - above);
    s->side[1] += fmax(0, above);
    s->total = total;
    s->magnitude += magnitude;
    s->square += square;
    s->peak = peak;
    s->narrow = narrow;
    s->terms += terms;
}

static void add_bounds(struct bounded_sum *s, const struct chunk *a, const struct chunk *b,
                       int64_t n) {
    double linear = 0, square = 0, by_sign = 0, by_a = 0, by_b = 0, u = s->unit;
    for (int64_t k = 0; k < n; k++) {
        double x = a->x[k], y = b->x[k], ea = a->exact ? 0 : a->e[k], eb = b->exact ? 0 : b->e[k];
        linear += fabs(x) * eb + fabs(y) * ea + ea * eb;
        ea += 3 * fmin(ea, u * fabs(x));
        eb += 3 * fmin(eb, u * fabs(y));
        double e = fabs(x) * eb + fabs(y) * ea + ea * eb;
        square += e * e;
        by_sign += copysign(e, x * y);
        by_a += x * eb;
        by_b += y * ea;
    }
    s->linear += linear;
    s->square_error += square;
    s->by_sign += by_sign;
    s->by_a += by_a;
    s->by_b += by_b;
    if (linear > 0) s->exact = false;
}

static void add_one_by_one(struct bounded_sum *s, const struct walk *w, const struct factor *f,
                           int64_t first, int64_t n, enum type product) {
    for (int64_t k = first; k < first + n; k++) {
        struct bounded x[2];
        for (int i = 0; i < 2; i++) {
            const struct strip *p = &f[i].strip;
            bool in = k >= p->first && k < p->last;
            union value fill = type_load(f[i].type, &p->fill);
            x[i] = in ? shadow_load(f[i].from, f[i].type, w->form[p->lane->flat] + k * p->step)
                      : bounded_exactly(fill);
            if (type_is_float(f[i].type)) continue;
            x[i] = bounded_eval(OP_CAST, product, f[i].type, &x[i], false);
        }
        bounded_sum_product(s, &x[0], &x[1], product);
    }
}

/* Whether a cast from `from` keeps every value. */
static bool holds(enum type to, enum type from) {
    if (to == from) return true;
    if (type_is_float(from))
        return to == TYPE_F64 || (to == TYPE_F32 && type_computed(from) == TYPE_F32);
    return type_size(from) < type_size(to) && (to == TYPE_F64 || to == TYPE_F32);
}

static bool finds_factors(struct bounds *r, const struct bound_walk *b, struct factor *f) {
    const struct stmt *s = b->w.s;
    const struct op *root = &s->op[s->nops - 1];
    const struct walk *w = &b->w;
    if (!b->product || b->own || s->nwhere || w->naxes == 0) return false;
    const int64_t *step = &w->step[(w->naxes - 1) * w->nforms];
    if (step[w->dst.flat] != 0) return false;
    for (int i = 0; i < 2; i++) {
        int read = factor_read(s, root->arg[i], root->type);
        if (read < 0) return false;
        enum type t = w->read[read].buffer->type;
        if (!holds(root->type, t)) return false;
        f[i] = (struct factor){strip_open(&w->read[read], step), b->read[read], t, NO_GRANULE};
        if (!b->read[read]->at) {
            f[i].granule = shadow_granule(&r->buffer[s->read[read].buffer], w->read[read].buffer);
            if (s->read[read].has_fill) {
                union value fill = s->read[read].fill;
                int g = value_granule(type_is_float(t) ? fill.f : (double)fill.i);
                if (g < f[i].granule) f[i].granule = g;
            }
        }
    }
    return true;
}

static void sum_strip(struct bounded_sum *sum, const struct walk *w, const struct factor *f,
                      struct chunk *c, int64_t n, enum type product) {
    bool known = f[0].granule != NO_GRANULE && f[1].granule != NO_GRANULE;
    for (int64_t k = 0; k < n; k += CHUNK) {
        int64_t m = n - k < CHUNK ? n - k : CHUNK;
        for (int i = 0; i < 2; i++) chunk_load(&c[i], w, &f[i], k, m);
        if (c[0].loose || c[1].loose) {
            add_one_by_one(sum, w, f, k, m, product);
            continue;
        }
        const struct bounded_sum before = *sum;
        add_exact(sum, c[0].x, c[1].x, m);
        if (!isfinite(sum->total)) { /* which terms are not, and why */
            *sum = before;
            add_one_by_one(sum, w, f, k, m, product);
            continue;
        }
        if (!c[0].exact || !c[1].exact) {
            add_bounds(sum, &c[0], &c[1], m);
            sum->products = true;
        }
        sum->rounding += type_unit(type_computed(product)) * (sum->magnitude - before.magnitude);
    }
    if (!known)
        sum->exact = false;
    else if (f[0].granule + f[1].granule < sum->granule)
        sum->granule = f[0].granule + f[1].granule;
}

bool walk_bounded_products(struct bounds *r, struct bound_walk *b) {
    struct walk *w = &b->w;
    struct factor f[2];
    struct chunk *chunk = arena_array(&w->arena, 2, sizeof *chunk);
    if (!finds_factors(r, b, f)) return false;
    enum type t = w->dst.buffer->type, product = w->s->op[w->s->nops - 1].type;
    int inner = w->naxes - 1;
    const int64_t *step = &w->step[inner * w->nforms];
    int64_t n = w->p->axis[w->axis[inner]].extent, open = -1;
    struct bounded_sum sum = {0};
    do {
        int64_t element = w->form[w->dst.flat];
        if (element != open) {
            struct bounded x;
            if (open >= 0) x = bounded_sum_close(&sum), b->dst->at[open] = shade_of(&x);
            bounded_sum_open(&sum, t, b->unit, shade_open(&b->dst->at[element]));
            open = element;
        }
        for (int i = 0; i < 2; i++) strip_find(w, &f[i].strip, step, n);
        sum_strip(&sum, w, f, chunk, n, product);
    } while (walk_carry(w, inner - 1));
    struct bounded x = bounded_sum_close(&sum);
    b->dst->at[open] = shade_of(&x);
    return true;
}

/* ---- integers: wrapping sums of products that are not all exact ---- */

/* Exact integers fit: a cast between them changes nothing. */
static bool holds_integers(enum type to, enum type from) {
    if (to == from) return true;
    return !type_is_float(from) && from != TYPE_BOOL && type_size(from) < type_size(to) &&
           (type_is_signed(to) || !type_is_signed(from));
}

static struct bounded integer_at(const struct walk *w, const struct factor *f, int64_t k) {
    const struct strip *s = &f->strip;
    if (k < s->first || k >= s->last) return bounded_exactly(type_load(f->type, &s->fill));
    return shadow_load(f->from, f->type, w->form[s->lane->flat] + k * s->step);
}

static void add_integers(struct bounded *sum, const struct walk *w, const struct factor *f,
                         int64_t n) {
    uint64_t total = (uint64_t)sum->v.i;
    double e = 0;
    for (int64_t k = 0; k < n; k++) {
        struct bounded a = integer_at(w, &f[0], k), b = integer_at(w, &f[1], k);
        total += (uint64_t)a.v.i * (uint64_t)b.v.i;
        if (bounded_is_exact(&a) && bounded_is_exact(&b)) continue;
        double ea = fmax(a.below, a.above), eb = fmax(b.below, b.above);
        e += fabs((double)a.v.i) * eb + fabs((double)b.v.i) * ea + ea * eb;
        sum->loose |= a.loose || b.loose;
    }
    sum->v.i = (int64_t)total;
    sum->below += e;
    sum->above += e;
}

bool walk_bounded_integers(struct bound_walk *b) {
    struct walk *w = &b->w;
    const struct stmt *s = w->s;
    const struct op *root = &s->op[s->nops - 1];
    enum type t = w->dst.buffer->type;
    struct factor f[2];
    if (s->combine != COMBINE_ADD || type_is_float(t) || t == TYPE_U64 || root->code != OP_MUL ||
        root->type != t || b->own || s->nwhere || w->naxes == 0)
        return false;
    int inner = w->naxes - 1;
    const int64_t *step = &w->step[inner * w->nforms];
    if (step[w->dst.flat] != 0) return false;
    for (int i = 0; i < 2; i++) {
        int read = factor_read(s, root->arg[i], t);
        if (read < 0 || !holds_integers(t, w->read[read].buffer->type)) return false;
        f[i] = (struct factor){strip_open(&w->read[read], step), b->read[read],
                               w->read[read].buffer->type, 0};
    }
    int64_t n = w->p->axis[w->axis[inner]].extent;
    const struct bounded nothing = {0};
    do {
        int64_t element = w->form[w->dst.flat];
        struct bounded sum = shade_open(&b->dst->at[element]);
        for (int i = 0; i < 2; i++) strip_find(w, &f[i].strip, step, n);
        add_integers(&sum, w, f, n);
        bounded_add_integer(t, &sum, &nothing);
        b->dst->at[element] = shade_of(&sum);
    } while (walk_carry(w, inner - 1));
    return true;
}
