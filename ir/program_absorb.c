/* Temporaries that are put together by copies, of which another one holds the same elements as a
 * part: a chain of concatenations, each of which begins as the one before.
 *
 *     c[i] = x[i]                         d[i] = x[i]
 *     c[i + 8] = y[i]                     d[i + 8] = y[i]
 *     u[j] = c[j] * 3                     u[j] = d[j] * 3
 *     d[i] = x[i]                   →
 *     d[i + 8] = y[i]
 *     d[i + 16] = u[i]                    d[i + 16] = u[i]
 */
#include "ir/program.h"

#include <string.h>

struct absorbing {
    struct program *p;
    int part, whole;         /* the temporary that ends, and the one that holds it */
    int64_t shift[MAX_DIMS]; /* from an element's place in the part to that in the whole */
};

static bool is_copy(const struct program *p, const struct stmt *s) {
    return s->combine == COMBINE_SET && s->nops == 1 && s->nreads == 1 && !s->nwhere &&
           p->buffer[s->dst.buffer].type == p->buffer[s->read[0].buffer].type;
}

/* Copies of the same elements to places that differ by a constant alone. */
static bool same_source(const struct program *p, const struct stmt *x, const struct stmt *y,
                        int64_t *shift) {
    int ndims = p->buffer[x->dst.buffer].ndims;
    if (!is_copy(p, x) || !is_copy(p, y) || x->axes != y->axes) return false;
    if (p->buffer[y->dst.buffer].ndims != ndims || !access_equal(p, &x->read[0], &y->read[0]))
        return false;
    for (int d = 0; d < ndims; d++) {
        for (int a = 0; a < p->naxes; a++)
            if (access_coef(p, &x->dst, d, a) != access_coef(p, &y->dst, d, a)) return false;
        shift[d] = access_coef(p, &y->dst, d, p->naxes) - access_coef(p, &x->dst, d, p->naxes);
    }
    return true;
}

/* The statement that copies to the whole what `s` copies to the part; -1: none does. */
static int counterpart(const struct absorbing *a, int s) {
    const struct program *p = a->p;
    int64_t shift[MAX_DIMS];
    size_t n = sizeof *shift * (size_t)p->buffer[a->part].ndims;
    for (int v = s + 1; v < p->nstmts; v++)
        if (p->stmt[v].dst.buffer == a->whole && program_item(p, v) >= 0 &&
            same_source(p, &p->stmt[s], &p->stmt[v], shift) && !memcmp(shift, a->shift, n))
            return v;
    return -1;
}

/* `later` may be made where `s` stands: what it copies stays as it is until then, and nobody asks
 * for its elements, or sets them, in between or ever after. */
static bool comes_first(const struct absorbing *a, int s, int later) {
    const struct program *p = a->p;
    for (int k = 0; k < p->nstmts; k++) {
        const struct stmt *x = &p->stmt[k];
        if (k != later && x->dst.buffer == a->whole && !stmt_parts_differ(p, x, &p->stmt[later]))
            return false;
        if (k <= s || k >= later) continue;
        if (x->dst.buffer == p->stmt[s].read[0].buffer) return false;
        for (int r = 0; r < x->nreads; r++)
            if (x->read[r].buffer == a->whole) return false;
    }
    return true;
}

/* Nothing outside of the part is asked for, where another value stands then. */
static bool reads_inside(const struct absorbing *a, int s) {
    const struct stmt *x = &a->p->stmt[s];
    for (int r = 0; r < x->nreads; r++) {
        if (x->read[r].buffer != a->part) continue;
        if (program_item(a->p, s) < 0) return false;
        for (int d = 0; d < a->p->buffer[a->part].ndims && x->read[r].has_fill; d++) {
            int64_t lo, hi;
            access_range(a->p, x, &x->read[r], d, &lo, &hi);
            if (lo < 0 || hi >= a->p->buffer[a->part].extent[d]) return false;
        }
    }
    return true;
}

static bool may_end(const struct absorbing *a) {
    const struct program *p = a->p;
    const struct buffer *part = &p->buffer[a->part], *whole = &p->buffer[a->whole];
    if (whole->role != ROLE_TEMP || whole->size || whole->type != part->type) return false;
    if (program_held(p, a->whole) || buffer_steady(p, a->whole)) return false;
    for (int s = 0; s < p->nstmts; s++) {
        if (!reads_inside(a, s)) return false;
        if (p->stmt[s].dst.buffer != a->part) continue;
        int from = p->stmt[s].read[0].buffer, later = counterpart(a, s);
        if (from == a->part || from == a->whole || program_item(p, s) < 0) return false;
        if (later < 0 || !comes_first(a, s, later)) return false;
    }
    return true;
}

/* The place in the whole of the element of the part that the access names. */
static void move_access(const struct absorbing *a, struct access *x) {
    struct program *p = a->p;
    size_t width = (size_t)p->naxes + 1, ndims = (size_t)p->buffer[a->part].ndims;
    if (x->buffer != a->part) return;
    x->buffer = a->whole;
    x->has_fill = false;
    x->coef = arena_copy(&p->arena, x->coef, width * ndims * sizeof *x->coef);
    for (size_t d = 0; d < ndims; d++) x->coef[d * width + width - 1] += a->shift[d];
}

static void end_part(const struct absorbing *a) {
    struct program *p = a->p;
    for (int s = 0; s < p->nstmts; s++) {
        struct stmt *x = &p->stmt[s];
        for (int r = 0; r < x->nreads; r++) move_access(a, &x->read[r]);
        if (x->dst.buffer != a->part) continue;
        program_drop_stmt(p, counterpart(a, s));
        move_access(a, &x->dst);
    }
    program_drop_buffer(p, a->part);
}

/* The first of the copies that make the buffer; -1: something else makes it too, or nothing. */
static int first_copy(const struct program *p, int buffer) {
    int first = -1;
    for (int s = 0; s < p->nstmts; s++) {
        if (p->stmt[s].dst.buffer != buffer) continue;
        if (!is_copy(p, &p->stmt[s])) return -1;
        if (first < 0) first = s;
    }
    return first;
}

static bool absorb(struct program *p, int buffer) {
    struct absorbing a = {.p = p, .part = buffer};
    const struct buffer *b = &p->buffer[buffer];
    if (b->role != ROLE_TEMP || b->size || program_held(p, buffer)) return false;
    int first = first_copy(p, buffer);
    for (int s = first + 1; first >= 0 && s < p->nstmts; s++) {
        a.whole = p->stmt[s].dst.buffer;
        if (a.whole == buffer || !same_source(p, &p->stmt[first], &p->stmt[s], a.shift) ||
            !may_end(&a))
            continue;
        end_part(&a);
        return true;
    }
    return false;
}

int program_absorb(struct program *p) {
    int n = 0;
    for (int b = 0; b < p->nbuffers;)
        if (absorb(p, b))
            n++;
        else
            b++;
    return n;
}
