#include "ir/types.h"

#include <math.h>
#include <string.h>

static const struct {
    const char *name;
    size_t bytes;
    char kind;
} info[TYPE_COUNT] = {
#define X(id, name, bytes, kind) {#name, bytes, kind},
    TYPE_TABLE(X)
#undef X
};

const char *type_name(enum type t) {
    return info[t].name;
}

size_t type_size(enum type t) {
    return info[t].bytes;
}

bool type_is_float(enum type t) {
    return info[t].kind == 'f';
}

bool type_is_signed(enum type t) {
    return info[t].kind == 'i';
}

bool type_parse(const char *name, size_t len, enum type *out) {
    for (int t = 0; t < TYPE_COUNT; t++) {
        if (strlen(info[t].name) != len || memcmp(info[t].name, name, len) != 0) continue;
        *out = (enum type)t;
        return true;
    }
    return false;
}

int64_t type_wrap(enum type t, uint64_t bits) {
    if (t == TYPE_BOOL) return bits != 0;
    int drop = 64 - 8 * (int)info[t].bytes;
    return info[t].kind == 'i' ? (int64_t)(bits << drop) >> drop : (int64_t)(bits << drop >> drop);
}

void type_limits(enum type t, int64_t *low, int64_t *high) {
    int width = t == TYPE_BOOL ? 1 : 8 * (int)info[t].bytes;
    *low = info[t].kind == 'i' ? (int64_t)(UINT64_MAX << (width - 1)) : 0;
    *high = info[t].kind == 'i' ? ~*low : (int64_t)(UINT64_MAX >> (64 - width));
}

/* sign | exponent of `ebits` | fraction of `fbits`, rounded half to even, overflow to infinity */
static uint16_t float_pack(double x, int ebits, int fbits) {
    int bias = (1 << (ebits - 1)) - 1;
    uint16_t sign = signbit(x) ? 0x8000 : 0;
    uint16_t infinity = (uint16_t)(((1 << ebits) - 1) << fbits);
    if (isnan(x)) return (uint16_t)(sign | infinity | 1 << (fbits - 1));
    if (isinf(x)) return sign | infinity;
    if (x == 0) return sign;
    int e;
    frexp(x, &e);
    int lowest = e - 1 < 1 - bias ? 1 - bias : e - 1; /* exponent of the unit of 1.0 */
    double scaled = rint(ldexp(fabs(x), fbits - lowest));
    int64_t fraction = (int64_t)scaled; /* at most 2^(fbits+1) */
    int64_t packed = ((int64_t)(lowest + bias - 1) << fbits) + fraction;
    return sign | (packed >= infinity ? infinity : (uint16_t)packed);
}

static double float_unpack(uint16_t bits, int ebits, int fbits) {
    int bias = (1 << (ebits - 1)) - 1, top = (1 << ebits) - 1;
    int e = bits >> fbits & top;
    uint64_t fraction = bits & ((1u << fbits) - 1), sign = (uint64_t)(bits & 0x8000) << 48;
    double x;
    if (e == 0) {
        x = (double)fraction * (ebits == 5 ? 0x1p-24 : 0x1p-133);
        return sign ? -x : x;
    }
    uint64_t wide = e == top ? 0x7ff : (uint64_t)(e - bias + 1023);
    wide = sign | wide << 52 | fraction << (52 - fbits);
    memcpy(&x, &wide, sizeof x);
    return x;
}

union value type_load(enum type t, const void *at) {
    union value v = {.i = 0};
    uint16_t half;
    float single;
    uint64_t bits = 0;
    switch (t) {
    case TYPE_F64:
        memcpy(&v.f, at, 8);
        return v;
    case TYPE_F32:
        memcpy(&single, at, 4);
        v.f = single;
        return v;
    case TYPE_F16:
        memcpy(&half, at, 2);
        v.f = float_unpack(half, 5, 10);
        return v;
    case TYPE_BF16:
        memcpy(&half, at, 2);
        v.f = float_unpack(half, 8, 7);
        return v;
    default:
        break;
    }
    const unsigned char *byte = at;
    for (size_t k = 0; k < info[t].bytes; k++) bits |= (uint64_t)byte[k] << (8 * k);
    v.i = type_wrap(t, bits);
    return v;
}

void type_store(enum type t, void *at, union value v) {
    uint16_t half;
    float single;
    switch (t) {
    case TYPE_F64:
        memcpy(at, &v.f, 8);
        return;
    case TYPE_F32:
        single = (float)v.f;
        memcpy(at, &single, 4);
        return;
    case TYPE_F16:
        half = float_pack(v.f, 5, 10);
        memcpy(at, &half, 2);
        return;
    case TYPE_BF16:
        half = float_pack(v.f, 8, 7);
        memcpy(at, &half, 2);
        return;
    default:
        break;
    }
    unsigned char *byte = at;
    uint64_t bits = t == TYPE_BOOL ? v.i != 0 : (uint64_t)v.i;
    for (size_t k = 0; k < info[t].bytes; k++) byte[k] = (unsigned char)(bits >> (8 * k));
}

double type_round(enum type t, double x) {
    switch (t) {
    case TYPE_F32:
        return (float)x;
    case TYPE_F16:
        return float_unpack(float_pack(x, 5, 10), 5, 10);
    case TYPE_BF16:
        return float_unpack(float_pack(x, 8, 7), 8, 7);
    default:
        return x;
    }
}

/* Magnitudes from 2^53 lose their low bits to a sticky bit, so that the rounding to `t` that
 * follows is the only one. */
static double integer_to_float(enum type t, enum type from, int64_t i) {
    bool negative = i < 0 && from != TYPE_U64;
    uint64_t magnitude = negative ? 0 - (uint64_t)i : (uint64_t)i;
    if (t == TYPE_F64) return negative ? -(double)magnitude : (double)magnitude;
    if (magnitude >> 53)
        magnitude = (magnitude & ~(uint64_t)0x7ff) | ((magnitude & 0x7ff) ? 0x800 : 0);
    double x = (double)magnitude;
    return type_round(t, negative ? -x : x);
}

static int64_t float_to_integer(enum type t, double x) {
    int64_t low, high;
    type_limits(t, &low, &high);
    if (isnan(x)) return 0;
    if (t == TYPE_U64) {
        if (x <= 0) return 0;
        return x >= 0x1p64 ? -1 : (int64_t)(uint64_t)x;
    }
    if (x <= (double)low) return low;
    return x >= (double)high ? high : (int64_t)x;
}

union value type_convert(enum type to, enum type from, union value v) {
    union value r;
    if (type_is_float(to)) {
        r.f = type_is_float(from) ? type_round(to, v.f) : integer_to_float(to, from, v.i);
        return r;
    }
    if (to == TYPE_BOOL)
        r.i = type_is_float(from) ? v.f != 0 : v.i != 0;
    else
        r.i = type_is_float(from) ? float_to_integer(to, v.f) : type_wrap(to, (uint64_t)v.i);
    return r;
}
