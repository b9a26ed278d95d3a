/* Copies of operands in another order: what a statement reads is written out first as it reads it.
 */
#include "mapper/rewrite_int.h"

/* Which read does not lie as the instruction wants it: the failure's operand is not known here by
 * its read, so the first that the rewrite can do something for. */
typedef bool (*wanted)(const struct program *, const struct stmt *, const struct access *);

static int find_read(const struct program *p, int stmt, wanted want) {
    if (!rw_plain(p, stmt)) return -1;
    const struct stmt *s = &p->stmt[stmt];
    for (int r = 0; r < s->nreads; r++)
        if (s->read[r].buffer != s->dst.buffer && want(p, s, &s->read[r])) return r;
    return -1;
}

struct packed {
    struct program *p;
    int read;
    struct access with;
};

static struct access packed_read(void *user, const struct access *a, int read) {
    const struct packed *x = user;
    return rw_copy(x->p, read == x->read ? &x->with : a);
}

/* copy = original, then the statement with the copy in place of its read. */
static void write_packed(struct program *q, int at, int read, struct access copy,
                         struct access original, struct access with) {
    struct stmt old = q->stmt[at];
    program_make_room(q, at, 1);
    struct draft d = draft_open(q, &old, COMBINE_SET, copy);
    draft_read(&d, original);
    draft_close(&d, at);
    struct packed x = {q, read, with};
    d = draft_open(q, &old, old.combine, rw_copy(q, &old.dst));
    draft_mapped(&d, &old, old.nops - 1, packed_read, &x);
    draft_close(&d, at + 1);
}

/* ---- im2col: windows written out, one dimension for each axis ---- */

static bool is_window(const struct program *p, const struct stmt *s, const struct access *a) {
    bool shared = false;
    (void)s;
    for (int d = 0; d < p->buffer[a->buffer].ndims; d++) {
        int n = 0;
        for (int x = 0; x < p->naxes; x++) n += access_coef(p, a, d, x) != 0;
        shared |= n > 1;
    }
    return shared && rw_points(p, rw_access_axes(p, a)) < 0x1p31;
}

static struct program *im2col(const struct program *p, const struct failure *why,
                              const struct needle *n) {
    int read = find_read(p, why->stmt, is_window), axis[MAX_AXES];
    struct access copy;
    (void)n;
    if (read < 0) return NULL;
    struct program *q = program_copy(p);
    const struct access *a = &q->stmt[why->stmt].read[read];
    const struct buffer *b = &q->buffer[a->buffer];
    const char *name = arena_printf(&q->arena, "%s.columns", b->name);
    int count = rw_axes(rw_access_axes(q, a), axis);
    if (!rw_temporary_of(q, name, b->type, axis, count, &copy)) {
        program_free(q);
        return NULL;
    }
    write_packed(q, why->stmt, read, copy, rw_copy(q, a), copy);
    return q;
}

const struct rewrite rw_im2col = {
    .name = "im2col",
    .doc = "windows are written out, one element for each point that reads them",
    .answers = ANSWERS(NOT_COLLINEAR),
    .effect = REWRITE_EXACT,
    .apply = im2col,
};

/* ---- transpose: the two last dimensions change places ---- */

static bool is_matrix(const struct program *p, const struct stmt *s, const struct access *a) {
    return p->buffer[a->buffer].ndims >= 2 && rw_set_whole(p, (int)(s - p->stmt), a->buffer);
}

static struct program *transpose(const struct program *p, const struct failure *why,
                                 const struct needle *n) {
    int read = find_read(p, why->stmt, is_matrix), axis[MAX_DIMS];
    int64_t extent[MAX_DIMS];
    (void)n;
    if (read < 0) return NULL;
    struct program *q = program_copy(p);
    int of = q->stmt[why->stmt].read[read].buffer, last = q->buffer[of].ndims - 1;
    bool room = true;
    for (int d = 0; d <= last; d++) {
        int to = d == last ? last - 1 : d == last - 1 ? last : d;
        extent[to] = q->buffer[of].extent[d];
        room = room && (axis[d] = rw_axis(q, "d", extent[to])) >= 0;
    }
    const char *name = arena_printf(&q->arena, "%s.turned", q->buffer[of].name);
    int b = room ? rw_temporary(q, name, q->buffer[of].type, last + 1, extent) : -1;
    if (b < 0) {
        program_free(q);
        return NULL;
    }
    int turned[MAX_DIMS];
    for (int d = 0; d <= last; d++) turned[d] = axis[d];
    turned[last] = axis[last - 1];
    turned[last - 1] = axis[last];
    const struct access *a = &q->stmt[why->stmt].read[read];
    struct access with = rw_access(q, b);
    with.has_fill = a->has_fill;
    with.fill = a->fill;
    for (int d = 0; d <= last; d++) {
        int to = d == last ? last - 1 : d == last - 1 ? last : d;
        for (int k = 0; k <= q->naxes; k++) rw_row(q, &with, to)[k] = rw_row(q, a, d)[k];
    }
    write_packed(q, why->stmt, read, rw_indexed(q, b, turned), rw_indexed(q, of, axis), with);
    return q;
}

const struct rewrite rw_transpose = {
    .name = "transpose",
    .doc = "an operand is copied with its two last dimensions exchanged",
    .answers = ANSWERS(NOT_COLLINEAR),
    .effect = REWRITE_EXACT,
    .apply = transpose,
};

/* ---- reshape: all dimensions as one ---- */

static bool flattens(const struct program *p, const struct stmt *s, const struct access *a) {
    return p->buffer[a->buffer].ndims >= 2 && !a->has_fill &&
           rw_set_whole(p, (int)(s - p->stmt), a->buffer) &&
           p->buffer[a->buffer].elements < INT64_C(1) << 31;
}

/* The element's number in row-major order as one row. */
static void flatten(const struct program *p, const struct access *a, int64_t *row) {
    const struct buffer *b = &p->buffer[a->buffer];
    for (int d = 0; d < b->ndims; d++)
        for (int k = 0; k <= p->naxes; k++) row[k] = row[k] * b->extent[d] + rw_row(p, a, d)[k];
}

static struct program *reshape(const struct program *p, const struct failure *why,
                               const struct needle *n) {
    int read = find_read(p, why->stmt, flattens), axis[MAX_DIMS];
    (void)n;
    if (read < 0) return NULL;
    struct program *q = program_copy(p);
    int of = q->stmt[why->stmt].read[read].buffer;
    bool room = true;
    for (int d = 0; d < q->buffer[of].ndims; d++)
        room = room && (axis[d] = rw_axis(q, "d", q->buffer[of].extent[d])) >= 0;
    const char *name = arena_printf(&q->arena, "%s.flat", q->buffer[of].name);
    int64_t elements = q->buffer[of].elements;
    int b = room ? rw_temporary(q, name, q->buffer[of].type, 1, &elements) : -1;
    if (b < 0) {
        program_free(q);
        return NULL;
    }
    struct access original = rw_indexed(q, of, axis), copy = rw_access(q, b), with = copy;
    with = rw_access(q, b);
    flatten(q, &original, copy.coef);
    flatten(q, &q->stmt[why->stmt].read[read], with.coef);
    write_packed(q, why->stmt, read, copy, original, with);
    return q;
}

const struct rewrite rw_reshape = {
    .name = "reshape",
    .doc = "an operand is copied into a buffer of one dimension",
    .answers = ANSWERS(NOT_COLLINEAR),
    .effect = REWRITE_EXACT,
    .apply = reshape,
};
