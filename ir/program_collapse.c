/* Dimensions that every statement walks together, whole and in their order, are one dimension: the
 * rows and columns of an image where no window slides, batch and time of a product. The elements
 * lie as before; instructions and tiles find one long axis where there were two short ones. */
#include "ir/steps.h"

#include <string.h>

struct collapse {
    const struct program *p;
    int below[MAX_AXES]; /* the axis that goes on inside of this one; -1: none */
    bool inside[MAX_AXES];
    bool *joined[MAX_DIMS]; /* by buffer: dimensions d and d + 1 are one */
    bool failed;
};

/* The axis that walks all of this dimension, alone; axes of one value aside. -1: none does. */
static int walker(const struct program *p, const struct access *x, int dim) {
    int found = -1;
    if (access_coef(p, x, dim, p->naxes)) return -1;
    for (int a = 0; a < p->naxes; a++) {
        int64_t k = access_coef(p, x, dim, a);
        if (!k || p->axis[a].extent == 1) continue;
        if (found >= 0 || k != 1 || p->axis[a].extent != p->buffer[x->buffer].extent[dim])
            return -1;
        found = a;
    }
    return found;
}

static void join_axes(struct collapse *, int a, int b);

static void join_in(struct collapse *c, const struct access *x, int d) {
    int a = walker(c->p, x, d), b = walker(c->p, x, d + 1);
    if (a < 0 || b < 0)
        c->failed = true;
    else
        join_axes(c, a, b);
}

/* Whoever touches the buffer walks both dimensions so. */
static void join_dims(struct collapse *c, int buffer, int d) {
    const struct program *p = c->p;
    if (c->joined[d][buffer] || c->failed) return;
    c->joined[d][buffer] = true;
    c->failed |=
        p->buffer[buffer].size || (d > 0 && c->joined[d - 1][buffer]) || c->joined[d + 1][buffer];
    for (int s = 0; s < p->nstmts && !c->failed; s++) {
        if (p->stmt[s].dst.buffer == buffer) join_in(c, &p->stmt[s].dst, d);
        for (int r = 0; r < p->stmt[s].nreads && !c->failed; r++)
            if (p->stmt[s].read[r].buffer == buffer) join_in(c, &p->stmt[s].read[r], d);
    }
}

/* Where an access names one of the axes, both walk neighbouring dimensions. */
static void join_access(struct collapse *c, const struct access *x, int a, int b) {
    const struct program *p = c->p;
    int n = p->buffer[x->buffer].ndims;
    for (int d = 0; d < n && !c->failed; d++) {
        bool outer = access_coef(p, x, d, a) != 0, inner = access_coef(p, x, d, b) != 0;
        if (outer && (d + 1 == n || walker(p, x, d) != a || walker(p, x, d + 1) != b))
            c->failed = true;
        else if (outer)
            join_dims(c, x->buffer, d);
        if (inner && (d == 0 || outer || walker(p, x, d - 1) != a)) c->failed = true;
    }
}

static void join_stmt(struct collapse *c, const struct stmt *s, int a, int b) {
    bool outer = s->axes >> a & 1, inner = s->axes >> b & 1;
    if (!outer && !inner) return;
    c->failed |= outer != inner || s->nwhere;
    for (int o = 0; o < s->nops; o++)
        c->failed |= s->op[o].code == OP_AXIS && (s->op[o].axis == a || s->op[o].axis == b);
    if (!c->failed) join_access(c, &s->dst, a, b);
    for (int r = 0; r < s->nreads && !c->failed; r++) join_access(c, &s->read[r], a, b);
}

static void join_axes(struct collapse *c, int a, int b) {
    const struct program *p = c->p;
    if (c->below[a] == b) return;
    c->failed |= a == b || c->below[a] >= 0 || c->below[b] >= 0 || c->inside[a] || c->inside[b] ||
                 p->axis[a].sequential || p->axis[b].sequential ||
                 p->axis[a].extent > (INT64_C(1) << 48) / p->axis[b].extent;
    if (c->failed) return;
    c->below[a] = b;
    c->inside[b] = true;
    for (int s = 0; s < p->nstmts && !c->failed; s++) join_stmt(c, &p->stmt[s], a, b);
}

static bool joins(struct collapse *c, int a, int b) {
    c->failed = c->p->axis[a].extent == 1 || c->p->axis[b].extent == 1;
    if (c->failed) return false;
    memset(c->inside, 0, sizeof c->inside);
    for (int k = 0; k < MAX_AXES; k++) c->below[k] = -1;
    for (int d = 0; d < MAX_DIMS; d++)
        memset(c->joined[d], 0, (size_t)c->p->nbuffers * sizeof **c->joined);
    join_axes(c, a, b);
    return !c->failed;
}

static bool find(struct collapse *c, struct arena *arena, const struct program *p) {
    *c = (struct collapse){.p = p};
    for (int d = 0; d < MAX_DIMS; d++)
        c->joined[d] = arena_array(arena, (size_t)p->nbuffers + 1, sizeof **c->joined);
    for (int a = 0; a < p->naxes; a++)
        for (int b = 0; b < p->naxes; b++)
            if (joins(c, a, b)) return true;
    return false;
}

/* ---- the program without them ---- */

static void shorten_access(const struct collapse *c, struct access *x) {
    const struct program *p = c->p;
    size_t row = (size_t)p->naxes + 1;
    int to = 0;
    for (int d = 0; d < p->buffer[x->buffer].ndims; d++) {
        if (c->joined[d][x->buffer]) continue; /* the axis inside, in the next row, is all */
        memmove(x->coef + (size_t)to * row, x->coef + (size_t)d * row, row * sizeof *x->coef);
        for (int a = 0; a < p->naxes && d > 0 && c->joined[d - 1][x->buffer]; a++)
            if (p->axis[a].extent == 1) x->coef[(size_t)to * row + (size_t)a] = 0;
        to++;
    }
}

static void shorten_buffer(const struct collapse *c, int n, struct buffer *b) {
    int to = 0;
    int64_t outer = 1;
    for (int d = 0; d < b->ndims; d++) {
        outer *= b->extent[d];
        if (c->joined[d][n]) continue;
        b->extent[to++] = outer;
        outer = 1;
    }
    b->ndims = to;
}

static void apply(const struct collapse *c, struct program *q) {
    for (int s = 0; s < q->nstmts; s++) {
        struct stmt *st = &q->stmt[s];
        shorten_access(c, &st->dst);
        for (int r = 0; r < st->nreads; r++) shorten_access(c, &st->read[r]);
    }
    for (int b = 0; b < q->nbuffers; b++) shorten_buffer(c, b, &q->buffer[b]);
    for (int s = 0; s < q->nstmts; s++) q->stmt[s].axes &= stmt_axes(q, &q->stmt[s]);
    for (int a = 0; a < q->naxes; a++) {
        if (c->below[a] < 0) continue;
        struct axis *b = &q->axis[c->below[a]];
        b->extent *= q->axis[a].extent;
        b->param = -1;
        q->axis[a].extent = 1;
    }
    program_share_axes(q, 0, 0, 0); /* those that nobody names go */
}

struct program *program_collapse(const struct program *p) {
    struct program *q = NULL;
    for (int i = 0; i < p->nitems; i++)
        if (p->item[i].kind != ITEM_STMT) return NULL;
    for (;;) {
        struct arena arena;
        struct collapse c;
        const struct program *now = q ? q : p;
        arena_init(&arena);
        struct program *next = find(&c, &arena, now) ? program_copy(now) : NULL;
        if (next) apply(&c, next);
        arena_free(&arena);
        if (!next) return q;
        if (q) program_free(q);
        q = next;
    }
}
