/* How many threads deal with a statement's points. */
#include "backends/cuda/cuda_int.h"

enum { MOST_THREADS = 1024, WARP = 32 };

int64_t cuda_points(struct cuda *c, const struct fallback_node *node) {
    const struct program *p = c->g.schedule->program;
    const struct stmt *st = &p->stmt[node->stmt];
    int axis[MAX_AXES], n = 0;
    int64_t points = 1;
    for (int a = 0; a < p->naxes; a++)
        if (st->axes >> a & 1) axis[n++] = a;
    n = stmt_deal(c->g.schedule, st, axis, n);
    for (int k = 0; k < n; k++)
        if (__builtin_mul_overflow(points,
                                   part_length(p->axis[axis[k]].extent,
                                               node->lo ? node->lo[axis[k]] : NULL,
                                               node->hi ? node->hi[axis[k]] : NULL),
                                   &points))
            return INT64_MAX;
    return points;
}

int64_t cuda_small_threads(const struct cuda *c, const struct node *node, int n) {
    int64_t most = WARP;
    for (int i = 0; i < n; i++) {
        int64_t here = node[i].kind == NODE_FALLBACK
                           ? fallback_points(c->g.schedule, node[i].fallback, false)
                       : node[i].kind == NODE_LOOP
                           ? cuda_small_threads(c, node[i].loop->body, node[i].loop->nbody)
                           : 0;
        here = here < MOST_THREADS ? (here + WARP - 1) / WARP * WARP : MOST_THREADS;
        if (here > most) most = here;
    }
    return most;
}
