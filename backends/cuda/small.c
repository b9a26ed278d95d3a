/* What one block does as fast as many: statements with no more points than a block has threads, and
 * little to do for each. Neighbours of this kind, and loops around them alone, are one kernel of
 * one block, so that they cost one launch: the steps of a small recurrence, say. */
#include "backends/cuda/cuda_int.h"

enum { MOST_THREADS = 1024, WARP = 32, MOST_VALUES = 64 /* for each thread */ };

int64_t cuda_length(int64_t extent, const struct sx *lo, const struct sx *hi) {
    int64_t n;
    if (lo && hi && hi->op == SX_ADD && sx_same(hi->a, lo) && sx_constant(hi->b, &n)) return n;
    return extent;
}

/* Of all its axes, or of those that move the destination. */
static int64_t points_of(const struct cuda *c, const struct fallback_node *node, bool all) {
    const struct program *p = c->g.schedule->program;
    const struct stmt *st = &p->stmt[node->stmt];
    int64_t points = 1;
    for (int a = 0; a < p->naxes; a++)
        if ((st->axes >> a & 1) && (all || access_varies(p, &st->dst, a)) &&
            __builtin_mul_overflow(points,
                                   cuda_length(p->axis[a].extent, node->lo ? node->lo[a] : NULL,
                                               node->hi ? node->hi[a] : NULL),
                                   &points))
            return INT64_MAX;
    return points;
}

int64_t cuda_points(struct cuda *c, const struct fallback_node *node) {
    int axis[MAX_AXES], n = c_dealt_axes(&c->g, node, axis);
    int64_t points = 1;
    for (int k = 0; k < n; k++)
        if (__builtin_mul_overflow(points,
                                   cuda_length(c->g.schedule->program->axis[axis[k]].extent,
                                               node->lo ? node->lo[axis[k]] : NULL,
                                               node->hi ? node->hi[axis[k]] : NULL),
                                   &points))
            return INT64_MAX;
    return points;
}

bool cuda_is_small(const struct cuda *c, const struct node *node) {
    if (node->kind == NODE_FALLBACK)
        return points_of(c, node->fallback, false) <= MOST_THREADS &&
               points_of(c, node->fallback, true) <= MOST_THREADS * MOST_VALUES;
    if (node->kind != NODE_LOOP || node->loop->kind == LOOP_PARALLEL) return false;
    for (int i = 0; i < node->loop->nbody; i++)
        if (!cuda_is_small(c, &node->loop->body[i])) return false;
    return true;
}

int64_t cuda_small_threads(const struct cuda *c, const struct node *node, int n) {
    int64_t most = WARP;
    for (int i = 0; i < n; i++) {
        int64_t here = node[i].kind == NODE_FALLBACK ? points_of(c, node[i].fallback, false)
                       : node[i].kind == NODE_LOOP
                           ? cuda_small_threads(c, node[i].loop->body, node[i].loop->nbody)
                           : 0;
        here = here < MOST_THREADS ? (here + WARP - 1) / WARP * WARP : MOST_THREADS;
        if (here > most) most = here;
    }
    return most;
}
