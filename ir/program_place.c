/* Points of a statement's domain, and the elements that they write: corners, the border of its
 * constraints, anywhere. What is compared by samples is compared there. */
#include "ir/program.h"

enum { REPAIRS = 64 };

static uint64_t mix(uint64_t h, uint64_t x) { /* splitmix64 (Steele, Lea, Flood 2014) */
    h += 0x9e3779b97f4a7c15u * (x + 1);
    h = (h ^ h >> 30) * 0xbf58476d1ce4e5b9u;
    h = (h ^ h >> 27) * 0x94d049bb133111ebu;
    return h ^ h >> 31;
}

static __int128 slack(const struct program *p, const struct constraint *c, const int64_t *at) {
    __int128 sum = c->coef[p->naxes];
    for (int a = 0; a < p->naxes; a++) sum += (__int128)c->coef[a] * at[a];
    return sum;
}

/* The axis where the constraint is met with nothing to spare, as near to that as its extent lets
 * it. */
static void tighten(const struct program *p, const struct constraint *c, int axis, int64_t *at) {
    int64_t k = c->coef[axis];
    __int128 rest = slack(p, c, at) - (__int128)k * at[axis];
    __int128 x = k > 0 ? -rest / k : rest / -k;
    if (k > 0 && x * k + rest < 0) x++;
    if (k < 0 && x * k + rest < 0) x--;
    at[axis] = x < 0 ? 0 : x >= p->axis[axis].extent ? p->axis[axis].extent - 1 : (int64_t)x;
}

static int some_axis(const struct program *p, const struct stmt *s, const struct constraint *c,
                     uint64_t h) {
    int own[MAX_AXES], n = 0;
    for (int a = 0; a < p->naxes; a++)
        if (c->coef[a] && s->axes >> a & 1) own[n++] = a;
    return n ? own[h % (uint64_t)n] : -1;
}

/* A point of the domain, a value for each axis of the program: near corners, on the border of a
 * constraint or anywhere, as the seed says. False: none was found. */
static bool stmt_point(const struct program *p, const struct stmt *s, uint64_t seed, int64_t *at) {
    uint64_t h = mix(seed, 0);
    bool corner = h % 3 == 0, border = h % 3 == 1;
    for (int a = 0; a < p->naxes; a++) {
        int64_t n = p->axis[a].extent;
        at[a] = 0;
        if (!(s->axes >> a & 1) || n < 1) continue;
        uint64_t x = mix(h, (uint64_t)a), end = n < 3 ? (uint64_t)n : 3;
        int64_t i = (int64_t)((x >> 8) % (corner || x % 4 < 2 ? end : (uint64_t)n));
        at[a] = x & 1 && (corner || x % 4 < 2) ? n - 1 - i : i;
    }
    for (int k = 0; k < REPAIRS; k++) {
        uint64_t x = mix(seed, 100 + (uint64_t)k);
        int broken = -1;
        for (int w = 0; w < s->nwhere; w++)
            if (slack(p, &s->where[w], at) < 0) broken = w;
        if (broken < 0 && border && k == 0 && s->nwhere) broken = (int)(x % (uint64_t)s->nwhere);
        if (broken < 0) return true;
        int axis = some_axis(p, s, &s->where[broken], x >> 8);
        if (axis < 0) return false;
        tighten(p, &s->where[broken], axis, at);
    }
    return false;
}

int64_t stmt_place(const struct program *p, const struct stmt *s, uint64_t seed) {
    int64_t at[MAX_AXES], place = 0;
    if (!stmt_point(p, s, seed, at)) return -1;
    const struct buffer *b = &p->buffer[s->dst.buffer];
    for (int d = 0; d < b->ndims; d++) {
        int64_t x = access_coef(p, &s->dst, d, p->naxes);
        for (int a = 0; a < p->naxes; a++) x += access_coef(p, &s->dst, d, a) * at[a];
        if (x < 0 || x >= b->extent[d]) return -1;
        place = place * b->extent[d] + x;
    }
    return place;
}
