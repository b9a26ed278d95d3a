/* Statements that follow each other point by point: each thread goes on from what it has just
 * written itself, so they are one kernel and nobody waits. A chain of elementwise statements costs
 * one launch. */
#include "backends/cuda/cuda_int.h"

/* A statement whose points are dealt, and along which axes. */
struct dealt {
    const struct fallback_node *node;
    const struct stmt *stmt;
    int axis[MAX_AXES], n;
};

static bool whole(const struct fallback_node *node, int axis) {
    return !(node->lo && node->lo[axis]) && !(node->hi && node->hi[axis]);
}

static bool deal(struct cuda *c, const struct node *node, struct dealt *d) {
    if (node->kind != NODE_FALLBACK) return false;
    d->node = node->fallback;
    d->stmt = &c->g.schedule->program->stmt[d->node->stmt];
    d->n = c_dealt_axes(&c->g, d->node, d->axis);
    for (int k = 0; k < d->n; k++)
        if (!whole(d->node, d->axis[k])) return false;
    return d->n > 0;
}

static bool same_grid(const struct program *p, const struct dealt *x, const struct dealt *y) {
    if (x->n != y->n) return false;
    for (int k = 0; k < x->n; k++)
        if (p->axis[x->axis[k]].extent != p->axis[y->axis[k]].extent ||
            p->axis[x->axis[k]].size != p->axis[y->axis[k]].size)
            return false;
    return true;
}

/* In what both statements address at this axis, which neither deals: the same, for all of a turn.
 */
static bool stands_still(const struct dealt *x, const struct dealt *y, int axis) {
    const struct fallback_node *a = x->node, *b = y->node;
    return a->lo && b->lo && a->hi && b->hi && a->lo[axis] && b->lo[axis] && a->hi[axis] &&
           b->hi[axis] && sx_same(a->lo[axis], b->lo[axis]) && sx_same(a->hi[axis], b->hi[axis]) &&
           cuda_length(0, a->lo[axis], a->hi[axis]) == 1;
}

static int position(const struct dealt *x, int axis) {
    int k = 0;
    while (k < x->n && x->axis[k] != axis) k++;
    return k;
}

/* Both address the same element at the same point, and another at another one: one of them is a
 * destination, whose axes each have an index to themselves. */
static bool same_point(const struct program *p, const struct dealt *x, const struct access *a,
                       const struct dealt *y, const struct access *b) {
    if (a->buffer != b->buffer) return false;
    for (int d = 0; d < p->buffer[a->buffer].ndims; d++) {
        if (access_coef(p, a, d, p->naxes) != access_coef(p, b, d, p->naxes)) return false;
        for (int k = 0; k < x->n; k++)
            if (access_coef(p, a, d, x->axis[k]) != access_coef(p, b, d, y->axis[k])) return false;
        for (int axis = 0; axis < p->naxes; axis++) {
            int64_t u = position(x, axis) < x->n ? 0 : access_coef(p, a, d, axis),
                    v = position(y, axis) < y->n ? 0 : access_coef(p, b, d, axis);
            if (u != v || (u && !stands_still(x, y, axis))) return false;
        }
    }
    return true;
}

static bool apart(const struct cuda *c, int a, int b) {
    const struct schedule *s = c->g.schedule;
    int p = schedule_home(s, a), q = schedule_home(s, b);
    if (p < 0 || q < 0) return false;
    return c->home[p] + s->place[p].bytes * s->place[p].slots <= c->home[q] ||
           c->home[q] + s->place[q].bytes * s->place[q].slots <= c->home[p];
}

static const struct access *access_at(const struct stmt *st, int k) {
    return k < 0 ? &st->dst : &st->read[k];
}

/* What one of them writes and the other touches is of one point. */
static bool agree(const struct cuda *c, const struct dealt *x, const struct dealt *y) {
    const struct program *p = c->g.schedule->program;
    for (int i = -1; i < x->stmt->nreads; i++)
        for (int k = -1; k < y->stmt->nreads; k++) {
            const struct access *a = access_at(x->stmt, i), *b = access_at(y->stmt, k);
            if (i >= 0 && k >= 0) continue;
            if (!apart(c, a->buffer, b->buffer) && !same_point(p, x, a, y, b)) return false;
        }
    return true;
}

bool cuda_goes_along(struct cuda *c, const struct node *node, int n, const struct node *next) {
    struct dealt x, y;
    if (!deal(c, next, &y)) return false;
    for (int i = 0; i < n; i++)
        if (!deal(c, &node[i], &x) || !same_grid(c->g.schedule->program, &x, &y) ||
            !agree(c, &x, &y))
            return false;
    return true;
}
