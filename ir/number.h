/* Small questions about integers. */
#ifndef ISAMAP_IR_NUMBER_H
#define ISAMAP_IR_NUMBER_H

#include <stdint.h>

static inline int64_t round_up(int64_t v, int64_t to) {
    return (v + to - 1) / to * to;
}

static inline int64_t common_divisor(int64_t a, int64_t b) {
    for (int64_t rest; b; b = rest) {
        rest = a % b;
        a = b;
    }
    return a;
}

/* Less than 1 counts as 1. */
static inline int64_t least_multiple(int64_t a, int64_t b) {
    if (a < 1 || b < 1) return a < 1 ? (b < 1 ? 1 : b) : a;
    return a / common_divisor(a, b) * b;
}

/* The hash of a sequence that goes on with this value. */
static inline uint64_t hash_add(uint64_t hash, int64_t value) {
    hash = (hash ^ (uint64_t)value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

#endif
