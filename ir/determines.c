#include "ir/determines.h"

#include <stdlib.h>

/* Those of the open axes that this dimension alone tells apart. */
static uint64_t determined_by(const struct program *p, const struct access *a, int dim,
                              uint64_t open) {
    int axis[MAX_AXES], n = 0;
    for (int x = 0; x < p->naxes; x++)
        if (open >> x & 1 && access_coef(p, a, dim, x)) {
            int at = n++;
            for (; at > 0 &&
                   llabs(access_coef(p, a, dim, axis[at - 1])) > llabs(access_coef(p, a, dim, x));
                 at--)
                axis[at] = axis[at - 1];
            axis[at] = x;
        }
    uint64_t mask = 0;
    __int128 reach = 0;
    for (int k = 0; k < n; k++) {
        int64_t c = llabs(access_coef(p, a, dim, axis[k]));
        if (c <= reach) return 0;
        reach += (__int128)c * (p->axis[axis[k]].extent - 1);
        mask |= UINT64_C(1) << axis[k];
    }
    return mask;
}

uint64_t access_determines(const struct program *p, const struct access *a, uint64_t axes) {
    uint64_t open = axes, before;
    do {
        before = open;
        for (int d = 0; d < p->buffer[a->buffer].ndims; d++) open &= ~determined_by(p, a, d, open);
    } while (open && open != before);
    return axes & ~open;
}
