/* The inverse of program_collapse, for who checks it; they share no code. A dimension of one
 * program that is several of another's declaration: the axis that walks it is a number, and the
 * axes in its place are its digits. */
#include "ir/steps.h"

#include <stdint.h>
#include <string.h>

struct spread {
    struct program *q; /* becomes the result */
    const struct program *like;
    int twin[MAX_AXES]; /* of each axis: a buffer of `like` with its digits; -1: it stays */
    int from[MAX_AXES], n[MAX_AXES]; /* which dimensions these are */
    int digit[MAX_AXES];             /* the first of its axes; they follow each other */
};

/* Dimensions of `like` from `at` on that are one of this extent; 0: there are none. All that is
 * left belongs to the last. */
static int run_of(const struct buffer *like, int at, int64_t extent, bool last) {
    int64_t product = 1;
    int n = 0;
    while (at + n < like->ndims && (n == 0 || product < extent || last))
        if (__builtin_mul_overflow(product, like->extent[at + n++], &product)) return 0;
    return product == extent ? n : 0;
}

static bool same_dims(const struct buffer *a, const struct buffer *b) {
    return a->ndims == b->ndims &&
           (!a->ndims || !memcmp(a->extent, b->extent, (size_t)a->ndims * sizeof *a->extent));
}

static const int64_t *row_of(const struct program *p, const struct access *x, int dim) {
    return x->coef + (size_t)dim * ((size_t)p->naxes + 1);
}

/* One axis walks the dimension from its first element to its last, alone; -1. */
static int sole_axis(const struct program *p, const struct access *x, int dim) {
    const int64_t *row = row_of(p, x, dim);
    int found = -1;
    for (int a = 0; a <= p->naxes; a++) {
        if (!row[a]) continue;
        if (a == p->naxes || found >= 0 || row[a] != 1 || p->axis[a].sequential ||
            p->axis[a].extent != p->buffer[x->buffer].extent[dim])
            return -1;
        found = a;
    }
    return found;
}

static bool same_digits(const struct program *like, int b, int from, int c, int at, int n) {
    return !memcmp(like->buffer[b].extent + from, like->buffer[c].extent + at,
                   (size_t)n * sizeof(int64_t));
}

static bool note_access(struct spread *s, const struct access *x) {
    const struct buffer *b = &s->q->buffer[x->buffer];
    int twin = program_buffer(s->like, b->name);
    if (twin < 0 || same_dims(b, &s->like->buffer[twin])) return true;
    for (int d = 0, at = 0; d < b->ndims; d++) {
        int n = run_of(&s->like->buffer[twin], at, b->extent[d], d + 1 == b->ndims);
        if (!n) return false;
        int a = n > 1 ? sole_axis(s->q, x, d) : -1;
        if (n > 1 &&
            (a < 0 || (s->twin[a] >= 0 && (s->n[a] != n || !same_digits(s->like, s->twin[a],
                                                                        s->from[a], twin, at, n)))))
            return false;
        if (n > 1) {
            s->twin[a] = twin;
            s->from[a] = at;
            s->n[a] = n;
        }
        at += n;
    }
    return true;
}

static bool note_all(struct spread *s) {
    for (int k = 0; k < s->q->nstmts; k++) {
        const struct stmt *st = &s->q->stmt[k];
        if (!note_access(s, &st->dst)) return false;
        for (int r = 0; r < st->nreads; r++)
            if (!note_access(s, &st->read[r])) return false;
    }
    return true;
}

static bool add_digits(struct spread *s) {
    int naxes = s->q->naxes;
    for (int a = 0; a < naxes; a++) {
        if (s->twin[a] < 0) continue;
        const struct buffer *b = &s->like->buffer[s->twin[a]];
        s->digit[a] = s->q->naxes;
        for (int k = 0; k < s->n[a]; k++)
            if (program_add_axis(s->q, arena_printf(&s->q->arena, "%s_%d", s->q->axis[a].name, k),
                                 b->extent[s->from[a] + k], s->q->naxes) < 0)
                return false;
    }
    return true;
}

/* Σ coef · number = Σ coef · weight · digit */
static void spread_row(const struct spread *s, int64_t *row) {
    for (int a = 0; a < s->q->naxes; a++) {
        if (s->twin[a] < 0 || !row[a]) continue;
        int64_t weight = row[a];
        row[a] = 0;
        for (int k = s->n[a]; k-- > 0;) {
            row[s->digit[a] + k] = weight;
            weight *= s->q->axis[s->digit[a] + k].extent;
        }
    }
}

static void spread_access(const struct spread *s, struct access *x) {
    const struct program *q = s->q;
    const struct buffer *b = &q->buffer[x->buffer];
    int twin = program_buffer(s->like, b->name);
    const struct buffer *to = twin < 0 ? b : &s->like->buffer[twin];
    size_t row = (size_t)q->naxes + 1;
    int64_t *coef = arena_array(&s->q->arena, (size_t)to->ndims * row + 1, sizeof *coef);
    for (int d = 0, at = 0; d < b->ndims; d++) {
        int n = same_dims(b, to) ? 1 : run_of(to, at, b->extent[d], d + 1 == b->ndims);
        int a = n > 1 ? sole_axis(q, x, d) : -1;
        if (n == 1) {
            memcpy(coef + (size_t)at * row, row_of(q, x, d), row * sizeof *coef);
            spread_row(s, coef + (size_t)at * row);
        }
        for (int k = 0; k < n && a >= 0; k++)
            coef[(size_t)(at + k) * row + (size_t)(s->digit[a] + k)] = 1;
        at += n;
    }
    x->coef = coef;
}

/* An axis is a value nowhere: its digits would not be. */
static bool spread_stmt(const struct spread *s, struct stmt *st) {
    for (int o = 0; o < st->nops; o++)
        if (st->op[o].code == OP_AXIS && s->twin[st->op[o].axis] >= 0) return false;
    spread_access(s, &st->dst);
    for (int r = 0; r < st->nreads; r++) spread_access(s, &st->read[r]);
    for (int w = 0; w < st->nwhere; w++) spread_row(s, st->where[w].coef);
    for (int a = 0; a < s->q->naxes; a++) {
        if (s->twin[a] < 0 || !(st->axes >> a & 1)) continue;
        st->axes &= ~(UINT64_C(1) << a);
        st->axes |= ((UINT64_C(1) << s->n[a]) - 1) << s->digit[a];
    }
    return true;
}

/* As the buffer will be declared. */
static const struct buffer *declared_as(const struct spread *s, int buffer) {
    int twin = program_buffer(s->like, s->q->buffer[buffer].name);
    return twin < 0 ? &s->q->buffer[buffer] : &s->like->buffer[twin];
}

/* A state is handed on element by element, so its buffers are declared alike; a call knows its
 * arrays as they are. */
static bool items_spread(const struct spread *s, const struct item *item, int n) {
    bool good = true;
    for (int i = 0; i < n && good; i++) {
        const struct recur *r = item[i].recur;
        good = item[i].kind != ITEM_CALL;
        for (int k = 0; item[i].kind == ITEM_RECUR && k < r->nstates; k++) {
            const struct recur_state *x = &r->state[k];
            const struct buffer *b = declared_as(s, x->current);
            good &= same_dims(b, declared_as(s, x->next)) &&
                    same_dims(b, declared_as(s, x->from)) &&
                    (x->to < 0 || same_dims(b, declared_as(s, x->to)));
        }
        if (good && item[i].kind == ITEM_RECUR) good = items_spread(s, r->item, r->nitems);
    }
    return good;
}

static bool spread_all(struct spread *s) {
    if (!items_spread(s, s->q->item, s->q->nitems)) return false;
    if (!note_all(s) || !add_digits(s)) return false;
    for (int k = 0; k < s->q->nstmts; k++)
        if (!spread_stmt(s, &s->q->stmt[k])) return false;
    for (int b = 0; b < s->q->nbuffers; b++) {
        struct buffer *mine = &s->q->buffer[b];
        int twin = program_buffer(s->like, mine->name);
        if (twin < 0 || same_dims(mine, &s->like->buffer[twin])) continue;
        bool first = mine->ndims > 0 && s->like->buffer[twin].ndims > 0 &&
                     mine->extent[0] == s->like->buffer[twin].extent[0];
        if (mine->elements != s->like->buffer[twin].elements || (mine->size && !first))
            return false;
        mine->ndims = s->like->buffer[twin].ndims;
        mine->extent = s->like->buffer[twin].extent;
    }
    return true;
}

struct program *program_spread(const struct program *p, const struct program *declared) {
    struct spread s = {.q = program_copy(p), .like = declared};
    for (int a = 0; a < MAX_AXES; a++) s.twin[a] = -1;
    if (spread_all(&s)) {
        for (int b = 0; b < s.q->nbuffers; b++) /* of its own, which ends with it */
            s.q->buffer[b].extent = arena_copy(&s.q->arena, s.q->buffer[b].extent,
                                               (size_t)s.q->buffer[b].ndims * sizeof(int64_t));
        return s.q;
    }
    program_free(s.q);
    return NULL;
}
