/* dst += a * b and dst = a without constraints, for the usual types: what nearly all of a model's
 * time goes to. The innermost axis runs in a loop of its types; each product and each sum is
 * rounded as by op_eval, in the same order. */
#include "ir/interp_int.h"

#include <string.h>

/* Steps in elements. */
struct run {
    int64_t n;
    void *dst;
    const void *a, *b;
    int64_t dst_step, a_step, b_step;
};

static float from_f32(float x) {
    return x;
}

static float from_bf16(uint16_t bits) {
    uint32_t wide = (uint32_t)bits << 16;
    float x;
    memcpy(&x, &wide, sizeof x);
    return x;
}

/* Subnormals of f16 are normal in f32: made with an exponent one too high, whose 1.0 is subtracted
 * again. */
static float from_f16(uint16_t bits) {
    uint32_t sign = (uint32_t)(bits & 0x8000) << 16, rest = bits & 0x7fff, wide;
    float x;
    if (rest >= 0x7c00)
        wide = 0x7f800000 | rest << 13;
    else if (rest >= 0x0400)
        wide = (rest << 13) + 0x38000000;
    else {
        x = (float)rest * 0x1p-24f;
        memcpy(&wide, &x, sizeof x);
    }
    wide |= sign;
    memcpy(&x, &wide, sizeof x);
    return x;
}

static double from_f64(double x) {
    return x;
}

/* integers: products and sums wrap in u32 */
static uint32_t from_i32(int32_t x) {
    return (uint32_t)x;
}

static uint32_t from_i16(int16_t x) {
    return (uint32_t)(int32_t)x;
}

static uint32_t from_i8(int8_t x) {
    return (uint32_t)(int32_t)x;
}

static uint32_t from_u8(uint8_t x) {
    return x;
}

/* dst, its arithmetic; both operands' types and conversions */
#define LOOP_TABLE(X)                                                                              \
    X(F64, double, double, F64, double, from_f64, F64, double, from_f64)                           \
    X(F32, float, float, F32, float, from_f32, F32, float, from_f32)                               \
    X(F32, float, float, F16, uint16_t, from_f16, F16, uint16_t, from_f16)                         \
    X(F32, float, float, BF16, uint16_t, from_bf16, BF16, uint16_t, from_bf16)                     \
    X(I32, uint32_t, uint32_t, I32, int32_t, from_i32, I32, int32_t, from_i32)                     \
    X(I32, uint32_t, uint32_t, I16, int16_t, from_i16, I16, int16_t, from_i16)                     \
    X(I32, uint32_t, uint32_t, I8, int8_t, from_i8, I8, int8_t, from_i8)                           \
    X(I32, uint32_t, uint32_t, U8, uint8_t, from_u8, I8, int8_t, from_i8)                          \
    X(I32, uint32_t, uint32_t, I8, int8_t, from_i8, U8, uint8_t, from_u8)                          \
    X(I32, uint32_t, uint32_t, U8, uint8_t, from_u8, U8, uint8_t, from_u8)

#define X(id, held, in, a_id, a_type, a_from, b_id, b_type, b_from)                                \
    static void loop_##id##_##a_id##_##b_id(const struct run *r) {                                 \
        held *d = r->dst;                                                                          \
        const a_type *a = r->a;                                                                    \
        const b_type *b = r->b;                                                                    \
        if (r->dst_step != 0) {                                                                    \
            for (int64_t k = 0; k < r->n; k++) {                                                   \
                in product = a_from(a[k * r->a_step]) * b_from(b[k * r->b_step]);                  \
                d[k * r->dst_step] += product;                                                     \
            }                                                                                      \
            return;                                                                                \
        }                                                                                          \
        in sum = *d;                                                                               \
        for (int64_t k = 0; k < r->n; k++) {                                                       \
            in product = a_from(a[k * r->a_step]) * b_from(b[k * r->b_step]);                      \
            sum += product;                                                                        \
        }                                                                                          \
        *d = sum;                                                                                  \
    }
LOOP_TABLE(X)
#undef X

static const struct {
    enum type dst, a, b;
    void (*run)(const struct run *);
} loops[] = {
#define X(id, held, in, a_id, a_type, a_from, b_id, b_type, b_from)                                \
    {TYPE_##id, TYPE_##a_id, TYPE_##b_id, loop_##id##_##a_id##_##b_id},
    LOOP_TABLE(X)
#undef X
};

int factor_read(const struct stmt *s, int n, enum type product) {
    const struct op *o = &s->op[n];
    if (o->type != product) return -1;
    if (o->code == OP_CAST) o = &s->op[o->arg[0]];
    return o->code == OP_READ ? o->read : -1;
}

static bool aligned(const struct lane *l) {
    return (uintptr_t)l->data % type_size(l->buffer->type) == 0;
}

static bool find_loop(const struct walk *w, int *a, int *b, void (**run)(const struct run *)) {
    const struct stmt *s = w->s;
    const struct op *root = &s->op[s->nops - 1];
    if (s->combine != COMBINE_ADD || s->nwhere || w->naxes == 0 || root->code != OP_MUL)
        return false;
    *a = factor_read(s, root->arg[0], root->type);
    *b = factor_read(s, root->arg[1], root->type);
    if (*a < 0 || *b < 0 || root->type != w->dst.buffer->type) return false;
    const struct lane *x = &w->read[*a], *y = &w->read[*b];
    if (x->data == w->dst.data || y->data == w->dst.data) return false;
    if (!aligned(x) || !aligned(y) || !aligned(&w->dst)) return false;
    for (size_t k = 0; k < sizeof loops / sizeof *loops; k++) {
        *run = loops[k].run;
        if (loops[k].dst == w->dst.buffer->type && loops[k].a == x->buffer->type &&
            loops[k].b == y->buffer->type)
            return true;
    }
    return false;
}

static unsigned char *element(const struct walk *w, const struct lane *l) {
    return l->data + (size_t)w->form[l->flat] * type_size(l->buffer->type);
}

static int64_t ceil_quotient(int64_t a, int64_t b) {
    return a / b + (a % b > 0);
}

static int64_t clamped(int64_t x, int64_t n) {
    return x < 0 ? 0 : x > n ? n : x;
}

void strip_find(const struct walk *w, struct strip *s, const int64_t *step, int64_t n) {
    const struct lane *l = s->lane;
    s->first = 0;
    s->last = n;
    for (int d = 0; l->dim >= 0 && d < l->buffer->ndims; d++) {
        int64_t x = w->form[l->dim + d], g = step[l->dim + d], extent = l->buffer->extent[d];
        int64_t lo = 0, hi = n;
        if (g > 0) {
            lo = ceil_quotient(-x, g);
            hi = ceil_quotient(extent - x, g);
        } else if (g < 0) {
            lo = ceil_quotient(x - extent + 1, -g);
            hi = ceil_quotient(x + 1, -g);
        } else if (x < 0 || x >= extent) {
            hi = 0;
        }
        if (clamped(lo, n) > s->first) s->first = clamped(lo, n);
        if (clamped(hi, n) < s->last) s->last = clamped(hi, n);
    }
    if (s->last < s->first) s->last = s->first;
}

static const void *strip_at(const struct walk *w, const struct strip *s, int64_t k, int64_t *step) {
    if (k < s->first || k >= s->last) {
        *step = 0;
        return &s->fill;
    }
    *step = s->step;
    return element(w, s->lane) + k * s->step * (int64_t)type_size(s->lane->buffer->type);
}

/* Where, after k, one of the operands enters or leaves its buffer. */
static int64_t next_edge(const struct strip *x, const struct strip *y, int64_t k, int64_t n) {
    const int64_t edge[] = {x->first, x->last, y->first, y->last};
    int64_t next = n;
    for (int i = 0; i < 4; i++)
        if (edge[i] > k && edge[i] < next) next = edge[i];
    return next;
}

struct strip strip_open(const struct lane *l, const int64_t *step) {
    struct strip s = {.lane = l, .step = step[l->flat]};
    if (l->dim >= 0) type_store(l->buffer->type, &s.fill, l->access->fill);
    return s;
}

bool walk_sum_of_products(struct walk *w) {
    int a, b;
    void (*run)(const struct run *);
    if (!find_loop(w, &a, &b, &run)) return false;
    int inner = w->naxes - 1;
    const int64_t *step = &w->step[inner * w->nforms];
    int64_t n = w->p->axis[w->axis[inner]].extent;
    struct strip x = strip_open(&w->read[a], step), y = strip_open(&w->read[b], step);
    struct run r = {.dst_step = step[w->dst.flat]};
    size_t size = type_size(w->dst.buffer->type);
    do {
        unsigned char *dst = element(w, &w->dst);
        strip_find(w, &x, step, n);
        strip_find(w, &y, step, n);
        for (int64_t k = 0, next; k < n; k = next) {
            next = next_edge(&x, &y, k, n);
            r.n = next - k;
            r.dst = dst + k * r.dst_step * (int64_t)size;
            r.a = strip_at(w, &x, k, &r.a_step);
            r.b = strip_at(w, &y, k, &r.b_step);
            run(&r);
        }
    } while (walk_carry(w, inner - 1));
    return true;
}

/* Does the copied element stand in memory as it will be stored? */
static bool is_copy(const struct walk *w) {
    const struct stmt *s = w->s;
    enum type t = w->dst.buffer->type;
    if (s->combine != COMBINE_SET || s->nwhere || w->naxes == 0 || s->nops != 1 ||
        s->op[0].code != OP_READ)
        return false;
    const struct lane *from = &w->read[s->op[0].read];
    return from->buffer->type == t && t != TYPE_BOOL && from->data != w->dst.data;
}

/* n elements, steps in bytes. */
static void copy_row(unsigned char *to, int64_t to_step, const unsigned char *from,
                     int64_t from_step, int64_t n, size_t size) {
    if (to_step == (int64_t)size && from_step == to_step) {
        memmove(to, from, (size_t)n * size);
        return;
    }
    switch (size) { /* a size that the compiler knows */
    case 1:
        for (int64_t k = 0; k < n; k++) to[k * to_step] = from[k * from_step];
        return;
    case 2:
        for (int64_t k = 0; k < n; k++) memcpy(to + k * to_step, from + k * from_step, 2);
        return;
    case 4:
        for (int64_t k = 0; k < n; k++) memcpy(to + k * to_step, from + k * from_step, 4);
        return;
    default:
        for (int64_t k = 0; k < n; k++) memcpy(to + k * to_step, from + k * from_step, 8);
    }
}

bool walk_copy(struct walk *w) {
    if (!is_copy(w)) return false;
    int inner = w->naxes - 1;
    const int64_t *step = &w->step[inner * w->nforms];
    int64_t n = w->p->axis[w->axis[inner]].extent;
    struct strip x = strip_open(&w->read[w->s->op[0].read], step);
    size_t size = type_size(w->dst.buffer->type);
    int64_t bytes = (int64_t)size, to_step = step[w->dst.flat] * bytes;
    do {
        unsigned char *to = element(w, &w->dst);
        strip_find(w, &x, step, n);
        for (int64_t k = 0, next; k < n; k = next) {
            int64_t from_step;
            next = next_edge(&x, &x, k, n);
            const void *from = strip_at(w, &x, k, &from_step);
            copy_row(to + k * to_step, to_step, from, from_step * bytes, next - k, size);
        }
    } while (walk_carry(w, inner - 1));
    return true;
}
