#include "scheduler/plan/rewrite.h"
#include <string.h>

int access_lone(const struct program *p, const struct access *a, int dim, uint64_t axes) {
    int found = -1;
    for (int x = 0; x < p->naxes; x++) {
        int64_t c = access_coef(p, a, dim, x);
        if (!c || !(axes >> x & 1)) continue;
        if (c != 1 || found >= 0) return -2;
        found = x;
    }
    return found >= 0 && access_coef(p, a, dim, p->naxes) ? -2 : found;
}

int access_dim(const struct program *p, const struct access *a, int axis, int64_t *by) {
    int found = -1;
    for (int d = 0; d < p->buffer[a->buffer].ndims; d++) {
        int64_t c = access_coef(p, a, d, axis);
        if (c && found >= 0) return -2;
        if (c) found = d, *by = c;
    }
    return found;
}

int access_mover(const struct program *p, const struct access *a, int dim, uint64_t axes) {
    for (uint64_t left = axes; left; left &= left - 1) {
        int x = __builtin_ctzll(left);
        if (access_coef(p, a, dim, x)) return x;
    }
    return -1;
}

bool access_same_index(const struct program *p, const struct access *a, const struct access *b) {
    int n = p->buffer[a->buffer].ndims;
    return n == p->buffer[b->buffer].ndims &&
           !memcmp(a->coef, b->coef, sizeof *a->coef * (size_t)n * (size_t)(p->naxes + 1));
}
