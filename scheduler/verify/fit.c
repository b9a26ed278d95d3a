/* An instruction's accesses as affine in its axes: found on the first points, checked on all. An
 * axis along which a layout turns is split there. One that ends inside is cut: 65 values by turns
 * of 8 and 64 are a box of 64 and a box of one, each with a fit of its own. */
#include "scheduler/verify/fit.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_BOXES = 32 }; /* of one instruction */

static int64_t value_at(const struct shape *h, int access, int64_t n, bool *valid) {
    int64_t e = access < 0 ? h->dst[n] : h->read[access][n];
    int operand = access < 0 ? h->dst_operand : h->read_operand[access];
    *valid = e >= 0;
    if (e < 0) return 0;
    return shape_offset(h, operand, e) + shape_instance(h, operand, e) * INSTANCE_BYTES;
}

/* The next point of the box; false: it was the last one. */
static bool step_point(const struct fit *f, int64_t *x) {
    for (int a = f->h->naxes - 1; a >= 0; a--) {
        if (++x[a] < f->from[a] + f->count[a]) return true;
        x[a] = f->from[a];
    }
    return false;
}

static int64_t number_of(const struct shape *h, const int64_t *x) {
    int64_t n = 0;
    for (int a = 0; a < h->naxes; a++) n = n * h->extent[a] + x[a];
    return n;
}

/* Which values of each axis the access has, maybe none of what is read; false: no box. */
static bool valid_box(const struct fit *f, int access, int64_t *lo, int64_t *hi) {
    const struct shape *h = f->h;
    int64_t x[MAX_AXES], points = 0, volume = 1;
    bool valid;
    memcpy(x, f->from, sizeof x);
    for (int a = 0; a < h->naxes; a++) {
        lo[a] = INT64_MAX;
        hi[a] = -1;
    }
    do {
        value_at(h, access, number_of(h, x), &valid);
        if (!valid) continue;
        points++;
        for (int a = 0; a < h->naxes; a++) {
            if (x[a] < lo[a]) lo[a] = x[a];
            if (x[a] > hi[a]) hi[a] = x[a];
        }
    } while (step_point(f, x));
    for (int a = 0; a < h->naxes; a++) {
        if (!points) lo[a] = f->from[a];
        if (!points) hi[a] = f->from[a] - 1;
        volume *= hi[a] - lo[a] + 1;
    }
    return points == volume && (points > 0 || access >= 0);
}

/* The first of every `by`-th places along the axis where the step changes; 0: nowhere. */
static int64_t turn_of(const struct shape *h, int access, const int64_t *lo, const int64_t *hi,
                       int axis, int64_t by) {
    int64_t x[MAX_AXES], step = 0, last;
    bool valid;
    memcpy(x, lo, sizeof *x * (size_t)h->naxes);
    last = value_at(h, access, number_of(h, x), &valid);
    for (int64_t i = lo[axis] + by; i <= hi[axis]; i += by) {
        x[axis] = i;
        int64_t value = value_at(h, access, number_of(h, x), &valid);
        if (i == lo[axis] + by)
            step = value - last;
        else if (value - last != step)
            return i - lo[axis];
        last = value;
    }
    return 0;
}

static bool add_dim(struct fit *f, int axis, int64_t n, int64_t weight) {
    if (n == 1) return true;
    if (f->ndims == FIT_DIMS) return false;
    f->dim[f->ndims++] = (struct fit_dim){axis, n, weight};
    return true;
}

/* Splits by the turns of all accesses: each a multiple of the one before. *ends: how many values
 * come before the end, where that is inside of the last one. */
static bool split_axis(struct fit *f, int axis, int64_t *turn, int nturns, int64_t *ends) {
    int64_t n = f->count[axis], inner = 1;
    for (int k = 1; k < nturns; k++)
        for (int i = k; i > 0 && turn[i] < turn[i - 1]; i--) {
            int64_t t = turn[i];
            turn[i] = turn[i - 1];
            turn[i - 1] = t;
        }
    for (int k = 0; k < nturns; k++) {
        if (turn[k] == inner) continue;
        if (turn[k] % inner != 0 || !add_dim(f, axis, turn[k] / inner, inner)) return false;
        inner = turn[k];
    }
    if (n % inner != 0) *ends = n - n % inner;
    return n % inner == 0 && add_dim(f, axis, n / inner, inner);
}

struct cut { /* of the values of an axis so many are taken alone; 0: of none */
    int axis;
    int64_t n;
};

static bool make_dims(struct fit *f, int64_t (*lo)[MAX_AXES], int64_t (*hi)[MAX_AXES],
                      struct cut *cut) {
    const struct shape *h = f->h;
    for (int a = 0; a < h->naxes; a++) {
        int64_t turn[FIT_DIMS * (MAX_READS + 1)];
        int nturns = 0;
        for (int r = -1; r < h->stmt->nreads; r++) {
            int64_t t = 1;
            for (int k = 0; k < FIT_DIMS && t; k++) {
                t = turn_of(h, r, lo[r + 1], hi[r + 1], a, t);
                if (t && hi[r + 1][a] - lo[r + 1][a] + 1 < f->count[a]) return false;
                if (t) turn[nturns++] = t;
            }
        }
        cut->axis = a;
        if (!split_axis(f, a, turn, nturns, &cut->n)) return false;
    }
    return true;
}

/* To where the next value of the axis would be, of which the access has one alone. */
static int64_t step_beyond(const struct shape *h, int access, int axis) {
    const struct access *a = access < 0 ? &h->stmt->dst : &h->stmt->read[access];
    const struct shape_operand *p =
        &h->operand[access < 0 ? h->dst_operand : h->read_operand[access]];
    int64_t step = 0;
    for (int d = 0; d < h->bound->buffer[a->buffer].ndims; d++)
        step += access_coef(h->bound, a, d, h->axis_of[axis]) * p->step[d];
    return step;
}

static void fit_access(struct fit *f, int access, const int64_t *lo, const int64_t *hi) {
    const struct shape *h = f->h;
    struct fit_access *out = &f->access[access + 1];
    int64_t x[MAX_AXES];
    bool valid;
    memcpy(x, lo, sizeof *x * (size_t)h->naxes);
    int64_t base = value_at(h, access, number_of(h, x), &valid);
    out->base = base;
    for (int d = 0; d < f->ndims; d++) {
        int a = f->dim[d].axis;
        bool whole = hi[a] - lo[a] + 1 == f->count[a];
        out->lo[d] = whole ? 0 : lo[a] - f->from[a];
        out->hi[d] = whole ? f->dim[d].n - 1 : hi[a] - f->from[a];
        if (hi[a] == lo[a]) out->step[d] = step_beyond(h, access, a) * f->dim[d].weight;
        if (hi[a] < lo[a] + f->dim[d].weight) continue;
        x[a] = lo[a] + f->dim[d].weight;
        out->step[d] = value_at(h, access, number_of(h, x), &valid) - base;
        x[a] = lo[a];
    }
    for (int d = 0; d < f->ndims; d++) out->base -= out->lo[d] * out->step[d];
}

struct along { /* what a value of an axis adds to an access; not valid: the access lacks it */
    int64_t adds;
    bool valid;
};

static struct along along_of(const struct fit *f, const struct fit_access *c, int axis, int64_t x) {
    struct along p = {.valid = true};
    for (int d = 0; d < f->ndims; d++) {
        if (f->dim[d].axis != axis) continue;
        int64_t digit = x / f->dim[d].weight;
        if (d + 1 < f->ndims && f->dim[d + 1].axis == axis) digit %= f->dim[d].n;
        p.valid &= digit >= c->lo[d] && digit <= c->hi[d];
        p.adds += digit * c->step[d];
    }
    return p;
}

static bool all_agree(const struct fit *f, int access, struct along *const *along) {
    const struct shape *h = f->h;
    int64_t x[MAX_AXES];
    memcpy(x, f->from, sizeof x);
    do {
        bool valid, expected = true;
        int64_t value = value_at(h, access, number_of(h, x), &valid),
                sum = f->access[access + 1].base;
        for (int a = 0; a < h->naxes; a++) {
            const struct along *p = &along[a][x[a] - f->from[a]];
            expected &= p->valid;
            sum += p->adds;
        }
        if (valid != expected || (valid && sum != value)) return false;
    } while (step_point(f, x));
    return true;
}

static bool fits(const struct fit *f, int access) {
    struct along *along[MAX_AXES];
    struct arena scratch;
    arena_init(&scratch);
    for (int a = 0; a < f->h->naxes; a++) {
        along[a] = arena_array(&scratch, (size_t)f->count[a], sizeof *along[a]);
        for (int64_t x = 0; x < f->count[a]; x++)
            along[a][x] = along_of(f, &f->access[access + 1], a, x);
    }
    bool good = all_agree(f, access, along);
    arena_free(&scratch);
    return good;
}

static bool fit_box(struct fit *f, struct cut *cut) {
    const struct shape *h = f->h;
    int64_t lo[MAX_READS + 1][MAX_AXES], hi[MAX_READS + 1][MAX_AXES];
    for (int r = -1; r < h->stmt->nreads; r++) {
        const struct shape_operand *p = &h->operand[r < 0 ? h->dst_operand : h->read_operand[r]];
        if (p->swizzle.bits || !valid_box(f, r, lo[r + 1], hi[r + 1])) return false;
    }
    if (!make_dims(f, lo, hi, cut)) return false;
    for (int r = -1; r < h->stmt->nreads; r++) fit_access(f, r, lo[r + 1], hi[r + 1]);
    for (int r = -1; r < h->stmt->nreads; r++)
        if (!fits(f, r)) return false;
    return true;
}

/* One box, or as few as there need be; `left` more may be made. */
static bool fit_make(struct arena *a, struct fit *f, int *left) {
    struct cut cut = {0};
    if (fit_box(f, &cut)) return true;
    if (!cut.n || --*left < 0) return false;
    struct fit *rest = arena_copy(a, f, sizeof *f);
    f->ndims = rest->ndims = 0;
    f->count[cut.axis] = cut.n;
    rest->from[cut.axis] += cut.n;
    rest->count[cut.axis] -= cut.n;
    if (!fit_make(a, f, left) || !fit_make(a, rest, left)) return false;
    while (f->rest) f = f->rest;
    f->rest = rest;
    return true;
}

const struct fit *fit_get(struct verify *v, const struct shape *h, int64_t *cost) {
    int left = MOST_BOXES;
    struct shapes *all = v->shapes;
    *cost = 1;
    for (const struct fit *f = all->fits; f; f = f->next)
        if (f->h == h) return f->good ? f : NULL;
    struct fit *f = arena_alloc(&all->arena, sizeof *f);
    *f = (struct fit){.h = h, .next = all->fits};
    memcpy(f->count, h->extent, sizeof f->count);
    all->fits = f;
    *cost = 1 + h->points;
    f->good = h->stmt && h->points > 0 && !h->nparts && fit_make(&all->arena, f, &left);
    return f->good ? f : NULL;
}
