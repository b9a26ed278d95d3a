/* Blocks that are handed on. What stands in blocks is copied to where one axis goes through all of
 * them; who reads that copy takes the blocks themselves, and so does who reads what it makes:
 *
 *     y[16*b + l, p] = t[p, b, l]
 *     u[k, p] = max(y[k, p], 0)         →     u[p, b, l] = max(t[p, b, l], 0)
 *     z[k, p] = i8(u[k, p] * f[k])            z[16*b + l, p] = i8(u[p, b, l] * f[16*b + l])
 *
 * Sums along such an axis have it in two parts then. Exact: the same values, of which none is made
 * twice. */
#include "mapper/rewrite_int.h"

#include <string.h>

/* A temporary of blocks, in the place of another array: in the first one's indices, how each index
 * of the other is made. */
struct handed {
    struct access blocks, flat; /* by the axes of the statement `by` */
    int by;                     /* which copies one to the other, or writes the other */
    bool once;                  /* of each element of the blocks it writes one */
};

/* The axis that walks the whole dimension alone; -1: its one element; -2: neither. */
static int whole_axis(const struct program *p, const struct access *a, int dim) {
    int64_t extent = p->buffer[a->buffer].extent[dim];
    int found = -1;
    if (access_coef(p, a, dim, p->naxes) != 0) return -2;
    for (int x = 0; x < p->naxes; x++) {
        if (!access_coef(p, a, dim, x)) continue;
        if (found >= 0 || access_coef(p, a, dim, x) != 1 || p->axis[x].extent != extent) return -2;
        found = x;
    }
    return found >= 0 || extent == 1 ? found : -2;
}

/* Each axis walks one dimension of the buffer, whole: *all are these axes. */
static bool by_axes(const struct program *p, const struct access *a, uint64_t *all) {
    *all = 0;
    if (a->has_fill) return false;
    for (int d = 0; d < p->buffer[a->buffer].ndims; d++) {
        int x = whole_axis(p, a, d);
        if (x == -2 || (x >= 0 && (*all >> x & 1 || p->axis[x].sequential))) return false;
        if (x >= 0) *all |= UINT64_C(1) << x;
    }
    return true;
}

static bool is_temporary(const struct program *p, int buffer) {
    return p->buffer[buffer].role == ROLE_TEMP && !program_held(p, buffer);
}

static bool find_copy(const struct program *p, int stmt, struct handed *h) {
    const struct stmt *s = &p->stmt[stmt];
    uint64_t axes;
    if (s->combine != COMBINE_SET || s->nops != 1 || s->op[0].code != OP_READ ||
        !rw_plain(p, stmt) || !is_temporary(p, s->dst.buffer) ||
        !is_temporary(p, s->read[0].buffer) || !by_axes(p, &s->read[0], &axes) || axes != s->axes ||
        p->buffer[s->dst.buffer].type != p->buffer[s->read[0].buffer].type)
        return false;
    bool joined = false;
    for (int d = 0; d < p->buffer[s->dst.buffer].ndims; d++) {
        int n = 0;
        for (int x = 0; x < p->naxes; x++) n += access_coef(p, &s->dst, d, x) != 0;
        joined |= n > 1;
    }
    *h = (struct handed){s->read[0], s->dst, stmt, true};
    return joined;
}

/* The one read of what `by` alone writes, behind it, with nothing between them that writes what
 * `by` reads; *read says which of its reads. -1: it is not alone. */
static int lone_reader(const struct program *p, const struct handed *h, int *read) {
    int reader = -1, buffer = h->flat.buffer;
    for (int s = 0; s < p->nstmts; s++) {
        if (p->stmt[s].dst.buffer == buffer && s != h->by) return -1;
        for (int r = 0; r < p->stmt[s].nreads; r++) {
            if (p->stmt[s].read[r].buffer != buffer) continue;
            if (reader >= 0 || s < h->by) return -1;
            reader = s;
            *read = r;
        }
    }
    for (int s = h->by + 1; s < reader; s++)
        if (p->stmt[s].dst.buffer == h->blocks.buffer) return -1;
    return reader;
}

/* Does it set each element of its array, once? */
static bool makes_once(const struct program *p, const struct stmt *s) {
    return stmt_writes_whole(p, s) &&
           rw_points(p, s->axes) == (double)p->buffer[s->dst.buffer].elements;
}

/* Does the statement make an element of each one that it reads? */
static bool walks_once(const struct program *p, int stmt, int read) {
    const struct stmt *s = &p->stmt[stmt];
    uint64_t axes;
    return s->combine == COMBINE_SET && by_axes(p, &s->read[read], &axes) && axes == s->axes &&
           rw_access_axes(p, &s->dst) == axes;
}

/* What the reader has of the blocks, and what those of its axes are made of that go through
 * several; false: it goes through them otherwise, or makes what has a place in none. */
static bool in_blocks(struct program *q, const struct handed *h, int reader, int read,
                      struct access *blocks, struct substitution *x) {
    const struct stmt *s = &q->stmt[reader];
    const struct access *from = &s->read[read];
    size_t row = ((size_t)q->naxes + 1) * sizeof *from->coef;
    bool once = walks_once(q, reader, read);
    if (!once && type_is_float(q->buffer[s->dst.buffer].type)) return false; /* another order */
    *x = (struct substitution){.p = q};
    *blocks = rw_access(q, h->blocks.buffer);
    blocks->has_fill = from->has_fill;
    blocks->fill = from->fill;
    for (int d = 0; d < q->buffer[from->buffer].ndims; d++) {
        const int64_t *flat = rw_row(q, &h->flat, d);
        int axis = whole_axis(q, &h->flat, d), by = whole_axis(q, from, d);
        for (int k = 0; k < x->n; k++)
            if (x->axis[k] == by) return false;
        if (axis == -2 && (by < 0 || q->axis[by].sequential || rw_value_axes(s) >> by & 1 ||
                           (!once && access_varies(q, &s->dst, by))))
            return false;
        int64_t *now = axis == -2 ? rw_substitution(x, by) : NULL;
        if (axis == -2 && !now) return false;
        if (now) memcpy(now, flat, row);
        for (int a = 0; a < q->naxes; a++) {
            int dim;
            int64_t coef;
            if (!flat[a]) continue;
            if (s->axes >> a & 1 && axis == -2) return false;
            if (!rw_place(q, &h->blocks, a, &dim, &coef)) return false;
            if (axis == -2)
                rw_row(q, blocks, dim)[a] = 1;
            else
                memcpy(rw_row(q, blocks, dim), rw_row(q, from, d), row);
        }
    }
    return true;
}

/* The reader takes the blocks; what it reads by is theirs. */
static void take_blocks(struct program *q, int stmt, int read, struct access blocks,
                        struct substitution *x) {
    struct stmt *s = &q->stmt[stmt];
    s->read = arena_copy(&q->arena, s->read, (size_t)s->nreads * sizeof *s->read);
    for (int r = 0; r < s->nreads; r++)
        s->read[r] = rw_substituted(x, r == read ? &blocks : &s->read[r], r);
    s->dst = rw_substituted(x, &s->dst, -1);
    s->axes = stmt_axes(q, s);
}

/* `by` writes blocks of its own. */
static bool make_blocks(struct program *q, struct handed *h) {
    int axis[MAX_DIMS], n = q->buffer[h->blocks.buffer].ndims;
    const struct buffer old = q->buffer[h->flat.buffer];
    struct access own;
    for (int d = 0; d < n; d++)
        if ((axis[d] = whole_axis(q, &h->blocks, d)) < 0) return false;
    if (!rw_temporary_of(q, old.name, old.type, axis, n, &own)) return false;
    q->stmt[h->by].dst = own;
    h->blocks = rw_copy(q, &own);
    return true;
}

/* One reader further. False: it has to have the array as it is. Buffers of an opened program are
 * known by their numbers outside of it (ir/steps.h): there the array stays, named by nothing. */
static bool hand_on(struct program *q, struct handed *h, bool copied, bool opened) {
    struct access blocks;
    struct substitution x;
    int read = 0, reader = lone_reader(q, h, &read), flat = h->flat.buffer;
    if (reader < 0 || !rw_plain(q, reader) || !makes_once(q, &q->stmt[h->by]) ||
        !in_blocks(q, h, reader, read, &blocks, &x) || (!copied && !make_blocks(q, h)))
        return false;
    bool once = walks_once(q, reader, read);
    blocks.buffer = h->blocks.buffer;
    take_blocks(q, reader, read, blocks, &x);
    *h = (struct handed){blocks, q->stmt[reader].dst, reader, once};
    if (opened) return true;
    const char *name = q->buffer[flat].name;
    if (!copied) q->buffer[h->blocks.buffer].name = name; /* it is still that array */
    program_drop_buffer(q, flat);
    h->blocks.buffer -= h->blocks.buffer > flat;
    h->flat.buffer -= h->flat.buffer > flat;
    return true;
}

int blocks_hand_on(struct program *q, int from, int to, bool opened, int *last) {
    *last = to;
    for (int s = from; s < to; s++) {
        struct handed h;
        if (!find_copy(q, s, &h) || !hand_on(q, &h, true, opened)) continue;
        program_drop_stmt(q, s);
        h.by--;
        while (h.once && is_temporary(q, h.flat.buffer) && hand_on(q, &h, false, opened)) continue;
        *last = h.by + 1;
        return 1;
    }
    return 0;
}
