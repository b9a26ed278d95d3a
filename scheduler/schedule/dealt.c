/* Statements of the fallback on a device: their points are dealt to threads. Statements that follow
 * each other point by point are one launch: each thread goes on from what it has just written
 * itself, and nobody waits. So a chain of elementwise statements costs one launch. */
#include "ir/determines.h"
#include "scheduler/schedule/launches.h"

#include <string.h>

int64_t part_length(int64_t extent, const struct sx *lo, const struct sx *hi) {
    int64_t n;
    if (lo && hi && hi->op == SX_ADD && sx_same(hi->a, lo) && sx_constant(hi->b, &n)) return n;
    return extent;
}

int64_t fallback_points(const struct schedule *s, const struct fallback_node *node, bool all) {
    const struct program *p = s->program;
    const struct stmt *st = &p->stmt[node->stmt];
    int64_t points = 1;
    for (int a = 0; a < p->naxes; a++)
        if ((st->axes >> a & 1) && (all || access_varies(p, &st->dst, a)) &&
            __builtin_mul_overflow(points,
                                   part_length(p->axis[a].extent, node->lo ? node->lo[a] : NULL,
                                               node->hi ? node->hi[a] : NULL),
                                   &points))
            return INT64_MAX;
    return points;
}

/* The places of the destination and of what is read share memory, and not element by element. */
static bool overlaps(const struct schedule *s, const struct stmt *st, const struct access *read) {
    int a = schedule_home(s, st->dst.buffer), b = schedule_home(s, read->buffer);
    if (a < 0 || b < 0 || read->buffer == st->dst.buffer) return false;
    const struct place *x = &s->place[a], *y = &s->place[b];
    if (x->memory != y->memory || x->address >= y->address + y->bytes * y->slots ||
        y->address >= x->address + x->bytes * x->slots)
        return false;
    const struct buffer *to = &s->program->buffer[x->buffer],
                        *from = &s->program->buffer[y->buffer];
    size_t rows = (size_t)to->ndims * (size_t)(s->program->naxes + 1);
    bool alike = x->address == y->address && x->slots == y->slots && to->ndims == from->ndims &&
                 type_size(to->type) == type_size(from->type) && !x->layout == !y->layout &&
                 (!x->layout || !strcmp(x->layout_text, y->layout_text)) &&
                 !memcmp(st->dst.coef, read->coef, rows * sizeof *read->coef);
    for (int d = 0; alike && d < to->ndims; d++) alike = to->extent[d] == from->extent[d];
    return !alike;
}

/* Axes that part the destination come first: their points can be executed in any order, by anyone.
 */
int stmt_deal(const struct schedule *s, const struct stmt *st, int *order, int n) {
    int rest[MAX_AXES], ndealt = 0, nrest = 0;
    uint64_t parting = access_determines(s->program, &st->dst, st->axes);
    for (int r = 0; r < st->nreads; r++)
        if (overlaps(s, st, &st->read[r])) return 0;
    for (int k = 0; k < n; k++) {
        if (parting >> order[k] & 1)
            order[ndealt++] = order[k];
        else
            rest[nrest++] = order[k];
    }
    for (int k = 0; k < nrest; k++) order[ndealt + k] = rest[k];
    return ndealt;
}

/* A statement whose points are dealt, and along which axes. */
struct dealt {
    const struct fallback_node *node;
    const struct stmt *stmt;
    int axis[MAX_AXES], n;
};

static bool whole(const struct fallback_node *node, int axis) {
    return !(node->lo && node->lo[axis]) && !(node->hi && node->hi[axis]);
}

static bool deal(const struct schedule *s, const struct node *node, struct dealt *d) {
    if (node->kind != NODE_FALLBACK) return false;
    d->n = 0;
    d->node = node->fallback;
    d->stmt = &s->program->stmt[d->node->stmt];
    for (int a = 0; a < s->program->naxes; a++)
        if (d->stmt->axes >> a & 1) d->axis[d->n++] = a;
    d->n = stmt_deal(s, d->stmt, d->axis, d->n);
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
           part_length(0, a->lo[axis], a->hi[axis]) == 1;
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

/* Homes of different kinds never share bytes, though each kind counts its addresses alone. */
static bool apart(const struct schedule *s, int a, int b) {
    int p = schedule_home(s, a), q = schedule_home(s, b);
    if (p < 0 || q < 0) return false;
    const struct place *x = &s->place[p], *y = &s->place[q];
    return x->keep != y->keep || x->memory != y->memory ||
           x->address + x->bytes * x->slots <= y->address ||
           y->address + y->bytes * y->slots <= x->address;
}

static const struct access *access_at(const struct stmt *st, int k) {
    return k < 0 ? &st->dst : &st->read[k];
}

/* What one of them writes and the other touches is of one point. */
static bool agree(const struct schedule *s, const struct dealt *x, const struct dealt *y) {
    const struct program *p = s->program;
    for (int i = -1; i < x->stmt->nreads; i++)
        for (int k = -1; k < y->stmt->nreads; k++) {
            const struct access *a = access_at(x->stmt, i), *b = access_at(y->stmt, k);
            if (i >= 0 && k >= 0) continue;
            if (!apart(s, a->buffer, b->buffer) && !same_point(p, x, a, y, b)) return false;
        }
    return true;
}

bool launch_goes_along(const struct schedule *s, const struct node *node, int n,
                       const struct node *next) {
    struct dealt x, y;
    if (!deal(s, next, &y)) return false;
    for (int i = 0; i < n; i++)
        if (!deal(s, &node[i], &x) || !same_grid(s->program, &x, &y) || !agree(s, &x, &y))
            return false;
    return true;
}
