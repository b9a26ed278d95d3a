/* A sum of products that reads what was opened of constants (weights of few bits times their
 * scales) reads the constants as they are stored: the temporary's value stands in its place. Where
 * several statements fill the temporary, each its own entries, as the two numbers of a byte, the
 * sum becomes one for each.
 *
 *     D[2*b,j]   = f32(W[b,j] & 15) * S[j]           Y[i,j] += X[i,2*b] * (f32(W[b,j] & 15) * S[j])
 *     D[2*b+1,j] = f32(shr(W[b,j], 4)) * S[j]   →    Y[i,j] += X[i,2*b+1] * (f32(shr(W[b,j], 4)) *
 *     Y[i,j]    += X[i,k] * D[k,j]                                           S[j])
 */
#include "mapper/rewrite_int.h"

enum { MAX_WRITERS = 4, MAX_STATEMENTS = 8 };

/* How a statement and a writer of what it reads index the temporary. */
struct opening {
    struct program *q;
    struct stmt reader, writer;
    int read;                   /* of the reader: the temporary */
    struct substitution in, of; /* axes of the reader, and of the writer */
    int axis[MAX_AXES];         /* the reader's axis for one of the writer's; -1: none */
};

/* The axis that is all of the index, from end to end; -1. */
static int whole_axis(const struct program *p, const struct access *a, int d) {
    int axis = rw_plain_index(p, a, d);
    bool whole = axis >= 0 && !p->axis[axis].sequential && !p->axis[axis].size &&
                 p->axis[axis].extent == p->buffer[a->buffer].extent[d];
    return whole ? axis : -1;
}

static bool substituted(const struct substitution *s, int axis) {
    for (int k = 0; k < s->n; k++)
        if (s->axis[k] == axis) return true;
    return false;
}

/* Axes for those of the writer that do not just follow the reader's: the same ones where the reader
 * has them not. They are made before rows are looked at, which grow with them. */
static bool open_axes(struct opening *x, int reader, int writer) {
    struct program *q = x->q;
    uint64_t apart = 0;
    for (int d = 0; d < q->buffer[q->stmt[writer].dst.buffer].ndims; d++)
        for (int a = 0; a < q->naxes && whole_axis(q, &q->stmt[writer].dst, d) < 0; a++)
            if (access_coef(q, &q->stmt[writer].dst, d, a)) apart |= UINT64_C(1) << a;
    for (int a = 0; a < MAX_AXES; a++) {
        x->axis[a] = -1;
        if (!(apart >> a & 1)) continue;
        bool lacks = !(q->stmt[reader].axes >> a & 1);
        x->axis[a] = lacks ? a : rw_axis(q, q->axis[a].name, q->axis[a].extent);
        if (x->axis[a] < 0) return false;
    }
    return true;
}

/* The writer's index is an axis, which becomes what the reader has there. */
static bool follow_reader(struct opening *x, int axis, const int64_t *there) {
    int64_t *row = substituted(&x->of, axis) ? NULL : rw_substitution(&x->of, axis);
    for (int a = 0; row && a <= x->q->naxes; a++) row[a] = there[a];
    return row != NULL;
}

/* The reader's index is an axis, which becomes what the writer has there. */
static bool follow_writer(struct opening *x, int axis, const int64_t *there) {
    struct program *q = x->q;
    if (axis < 0 || substituted(&x->in, axis) || rw_value_axes(&x->reader) >> axis & 1)
        return false;
    int64_t *row = rw_substitution(&x->in, axis);
    for (int a = 0; row && a < q->naxes; a++)
        if (there[a]) row[x->axis[a]] = there[a];
    if (row) row[q->naxes] = there[q->naxes];
    return row != NULL;
}

/* The writer's own axes where the reader has others for them. */
static bool rename_axes(struct opening *x) {
    for (int a = 0; a < MAX_AXES; a++) {
        if (x->axis[a] < 0 || x->axis[a] == a) continue;
        int64_t *row = substituted(&x->of, a) ? NULL : rw_substitution(&x->of, a);
        if (!row) return false;
        row[x->axis[a]] = 1;
    }
    return true;
}

static bool unify(struct opening *x) {
    struct program *q = x->q;
    const struct access *r = &x->reader.read[x->read], *w = &x->writer.dst;
    x->in = x->of = (struct substitution){.p = q};
    for (int d = 0; d < q->buffer[w->buffer].ndims; d++) {
        int axis = whole_axis(q, w, d);
        if (axis >= 0 ? !follow_reader(x, axis, rw_row(q, r, d))
                      : !follow_writer(x, whole_axis(q, r, d), rw_row(q, w, d)))
            return false;
    }
    return rename_axes(x);
}

/* An access of the reader, or of the writer at the reader's point: substitutions at once, as an
 * axis of one may be another of the other. */
static struct access placed(struct program *q, const struct access *a,
                            const struct substitution *s) {
    struct access c = rw_access(q, a->buffer);
    c.has_fill = a->has_fill;
    c.fill = a->fill;
    for (int d = 0; d < q->buffer[a->buffer].ndims; d++) {
        const int64_t *from = rw_row(q, a, d);
        int64_t *to = rw_row(q, &c, d);
        for (int k = 0; k <= q->naxes; k++)
            if (k == q->naxes || !substituted(s, k)) to[k] += from[k];
        for (int k = 0; k < s->n; k++)
            for (int b = 0; b <= q->naxes; b++) to[b] += from[s->axis[k]] * s->row[k][b];
    }
    return c;
}

static struct access placed_of(void *user, const struct access *a, int read) {
    struct opening *x = user;
    (void)read;
    return placed(x->q, a, &x->of);
}

/* The reader's tree, with the writer's in place of the temporary. */
static int opened(struct draft *d, struct opening *x, int node) {
    struct op o = x->reader.op[node];
    if (o.code == OP_READ && o.read == x->read)
        return draft_mapped(d, &x->writer, x->writer.nops - 1, placed_of, x);
    if (o.code == OP_READ) return draft_read(d, placed(x->q, &x->reader.read[o.read], &x->in));
    for (int k = 0; k < op_info[o.code].arity; k++) o.arg[k] = opened(d, x, o.arg[k]);
    return draft_op(d, o);
}

/* The read of constants, or of what is made of them, with the most elements; -1: none. */
static int largest(const struct program *p, const struct stmt *s) {
    int at = -1;
    for (int r = 0; r < s->nreads; r++) {
        const struct buffer *b = &p->buffer[s->read[r].buffer];
        bool more = at < 0 || b->elements > p->buffer[s->read[at].buffer].elements;
        if (more && buffer_steady(p, s->read[r].buffer)) at = r;
    }
    return at;
}

/* Who fills the temporary before the statement, as values of points; how many, -1: others do. */
static int writers_of(const struct program *p, int stmt, int buffer, int *writer) {
    int n = 0;
    for (int s = 0; s < p->nstmts; s++) {
        const struct stmt *w = &p->stmt[s];
        if (w->dst.buffer != buffer) continue;
        bool plain = s < stmt && rw_plain(p, s) && w->combine == COMBINE_SET && w->nreads > 0 &&
                     !rw_value_axes(w);
        for (int r = 0; r < w->nreads; r++) plain &= !w->read[r].has_fill;
        if (!plain || n == MAX_WRITERS) return -1;
        writer[n++] = s;
    }
    return n;
}

/* Statement `stmt` with each of the writers' values in place of its read; how many there are. */
static int write_sums(struct program *q, int stmt, int read, const int *writer, int n) {
    struct opening x[MAX_WRITERS];
    for (int k = 0; k < n; k++) {
        x[k] = (struct opening){.q = q, .read = read};
        if (!open_axes(&x[k], stmt, writer[k])) return 0;
    }
    for (int k = 0; k < n; k++) {
        x[k].reader = q->stmt[stmt];
        x[k].writer = q->stmt[writer[k]];
        if (!unify(&x[k])) return 0;
    }
    program_make_room(q, stmt, n - 1);
    for (int k = 0; k < n; k++) {
        const struct stmt *s = &x[k].reader;
        struct draft d = draft_open(q, s, s->combine, placed(q, &s->dst, &x[k].in));
        opened(&d, &x[k], s->nops - 1);
        draft_close(&d, stmt + k);
    }
    return n;
}

/* Is what the statement reads of constants stored in less than what it multiplies? */
static bool is_stored(const struct program *p, const struct stmt *s, int read) {
    return type_size(p->buffer[s->read[read].buffer].type) <
           type_size(p->buffer[s->dst.buffer].type);
}

/* All that stands in place of the statement, until all of it reads what is stored; 0: something
 * cannot. */
static bool write_stored(struct program *q, int from) {
    int writer[MAX_WRITERS];
    for (int s = from, to = from + 1; s < to;) {
        int read = largest(q, &q->stmt[s]);
        if (read < 0) return false;
        int buffer = q->stmt[s].read[read].buffer;
        if (is_stored(q, &q->stmt[s], read)) {
            s++;
            continue;
        }
        if (q->buffer[buffer].role != ROLE_TEMP) return false;
        int n = writers_of(q, s, buffer, writer);
        if (n < 1 || to + n - 1 - from > MAX_STATEMENTS || !write_sums(q, s, read, writer, n))
            return false;
        to += n - 1;
    }
    return true;
}

bool *buffers_read(struct arena *a, const struct program *p) {
    bool *read = arena_array(a, (size_t)p->nbuffers + 1, sizeof *read);
    for (int s = 0; s < p->nstmts; s++)
        for (int r = 0; r < p->stmt[s].nreads; r++) read[p->stmt[s].read[r].buffer] = true;
    return read;
}

struct program *unread_dropped(const struct program *p, const bool *before, int nbefore) {
    struct program *q = NULL;
    struct arena scratch;
    arena_init(&scratch);
    for (int s = p->nstmts - 1; s >= 0; s--) {
        const struct program *now = q ? q : p;
        int b = now->stmt[s].dst.buffer;
        if (!rw_top(now, s) || now->buffer[b].role != ROLE_TEMP || program_held(now, b) ||
            b >= nbefore || !before[b] || buffers_read(&scratch, now)[b])
            continue;
        if (!q) q = program_copy(p);
        program_close_room(q, s, 1);
    }
    arena_free(&scratch);
    return q;
}

static struct program *stored(const struct program *p, const struct failure *why,
                              const struct needle *n) {
    (void)n;
    if (!rw_plain(p, why->stmt)) return NULL;
    const struct stmt *s = &p->stmt[why->stmt];
    bool sum = type_is_float(p->buffer[s->dst.buffer].type) && stmt_is_mac(p, s);
    int read = sum ? largest(p, s) : -1;
    if (read < 0 || p->buffer[s->read[read].buffer].role != ROLE_TEMP || s->read[read].has_fill)
        return NULL;
    struct program *q = program_copy(p);
    if (write_stored(q, why->stmt)) return q;
    program_free(q);
    return NULL;
}

const struct rewrite rw_as_stored = {
    .name = "as-stored",
    .doc = "sums of products read constants as they are stored, not what was opened of them",
    .answers = ANSWERS(OPERATION),
    .effect = REWRITE_EXACT,
    .everywhere = true,
    .by_makers = true,
    .apply = stored,
};
