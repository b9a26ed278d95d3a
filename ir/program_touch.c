/* The bytes that a program cannot do without: of each argument the elements that a statement
 * touches, once. */
#include "ir/program.h"
#include "ir/memory.h"

#include <stdlib.h>

static const int64_t SPAN_LIMIT = (int64_t)1 << 24;

struct values {
    int64_t low, span; /* value low + v is taken where set[v] */
    unsigned char *set;
    int64_t *last; /* scratch: the last set value at or before v in its residue class, or -1 */
};

/* Each value and up to `times` - 1 steps more. */
static void spread(struct values *x, int64_t step, int64_t times) {
    for (int64_t v = 0; v < x->span; v++) {
        x->last[v] = x->set[v] ? v : v >= step ? x->last[v - step] : -1;
        x->set[v] = x->last[v] >= 0 && (v - x->last[v]) / step < times;
    }
}

/* How many values in [0, extent) an index takes. */
static int64_t row_values(const struct program *p, const int64_t *row, int64_t extent) {
    int64_t low = row[p->naxes], high = low, n = 0;
    for (int a = 0; a < p->naxes; a++) {
        int64_t reach;
        if (__builtin_mul_overflow(row[a], p->axis[a].extent - 1, &reach)) return extent;
        if (__builtin_add_overflow(reach < 0 ? low : high, reach, reach < 0 ? &low : &high))
            return extent;
    }
    struct values x = {.low = low};
    if (__builtin_sub_overflow(high, low, &x.span) || x.span++ >= SPAN_LIMIT) return extent;
    x.set = memory_array(1, (size_t)x.span);
    x.last = memory_bytes((size_t)x.span * sizeof *x.last);
    x.set[0] = 1; /* axes that step down start at their far end */
    for (int a = 0; a < p->naxes; a++)
        if (row[a] && p->axis[a].extent > 1) spread(&x, llabs(row[a]), p->axis[a].extent);
    for (int64_t v = 0; v < x.span; v++) n += x.set[v] && low + v >= 0 && low + v < extent;
    free(x.set);
    free(x.last);
    return n;
}

/* Exact where no axis moves two dimensions and nothing constrains the domain. */
static int64_t access_elements(const struct program *p, const struct stmt *s,
                               const struct access *a) {
    const struct buffer *b = &p->buffer[a->buffer];
    int64_t n = 1, points = stmt_points(p, s);
    for (int d = 0; d < b->ndims; d++)
        n *= row_values(p, a->coef + (size_t)d * ((size_t)p->naxes + 1), b->extent[d]);
    return n < points ? n : points;
}

static bool is_argument(enum role r) {
    return r == ROLE_IN || r == ROLE_OUT || r == ROLE_INOUT || r == ROLE_CONST;
}

int64_t program_touched_bytes(const struct program *p) {
    int64_t bytes = 0;
    bool recurs = false;
    for (int i = 0; i < p->nitems; i++) recurs = recurs || p->item[i].kind != ITEM_STMT;
    for (int b = 0; b < p->nbuffers; b++) {
        const struct buffer *buffer = &p->buffer[b];
        int64_t most = recurs ? buffer->elements : 0, elements;
        if (!is_argument(buffer->role)) continue;
        for (int n = 0; n < p->nstmts && !recurs; n++) {
            const struct stmt *s = &p->stmt[n];
            if (s->dst.buffer == b && (elements = access_elements(p, s, &s->dst)) > most)
                most = elements;
            for (int r = 0; r < s->nreads; r++)
                if (s->read[r].buffer == b &&
                    (elements = access_elements(p, s, &s->read[r])) > most)
                    most = elements;
        }
        most *= (int64_t)type_size(buffer->type);
        if (buffer->role == ROLE_INOUT) most *= 2;
        if (__builtin_add_overflow(bytes, most, &bytes)) return INT64_MAX;
    }
    return bytes;
}
