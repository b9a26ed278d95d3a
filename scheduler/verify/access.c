/* Which element a statement's access means at a point: one sum where no point of the statement
 * leaves the buffer. */
#include "scheduler/verify/verify_int.h"

static bool stays_inside(const struct verify *v, int stmt, const struct access *a) {
    const struct program *p = v->p;
    const struct buffer *b = &p->buffer[a->buffer];
    for (int d = 0; d < b->ndims; d++) {
        int64_t low = access_coef(p, a, d, p->naxes), high = low;
        for (int k = 0; k < p->naxes; k++) {
            int64_t c = access_coef(p, a, d, k), reach;
            if (c == 0) continue;
            if (!(v->domain[stmt] >> k & 1) ||
                __builtin_mul_overflow(c, p->axis[k].extent - 1, &reach) ||
                __builtin_add_overflow(c > 0 ? high : low, reach, c > 0 ? &high : &low))
                return false;
        }
        if (low < 0 || high >= b->extent[d]) return false;
    }
    return true;
}

static void flatten(struct verify *v, int stmt, const struct access *a, struct flat *out) {
    const struct program *p = v->p;
    const struct buffer *b = &p->buffer[a->buffer];
    out->access = a;
    out->inside = stays_inside(v, stmt, a);
    if (!out->inside) return;
    out->axis = arena_array(&v->arena, (size_t)p->naxes + 1, sizeof *out->axis);
    out->coef = arena_array(&v->arena, (size_t)p->naxes + 1, sizeof *out->coef);
    for (int k = 0; k <= p->naxes; k++) {
        int64_t sum = 0;
        for (int d = 0; d < b->ndims; d++) sum = sum * b->extent[d] + access_coef(p, a, d, k);
        if (k == p->naxes) {
            out->constant = sum;
        } else if (sum != 0) {
            out->axis[out->n] = k;
            out->coef[out->n++] = sum;
        }
    }
}

void access_tables(struct verify *v) {
    const struct program *p = v->p;
    v->flat = arena_array(&v->arena, (size_t)p->nstmts + 1, sizeof *v->flat);
    for (int s = 0; s < p->nstmts; s++) {
        v->flat[s] = arena_array(&v->arena, (size_t)p->stmt[s].nreads + 1, sizeof *v->flat[s]);
        flatten(v, s, &p->stmt[s].dst, &v->flat[s][0]);
        for (int r = 0; r < p->stmt[s].nreads; r++)
            flatten(v, s, &p->stmt[s].read[r], &v->flat[s][r + 1]);
    }
}

/* read -1: the destination. -1: outside the buffer. The point is in the statement's domain. */
int64_t access_at(const struct verify *v, int stmt, int read, const int64_t *at) {
    const struct flat *f = &v->flat[stmt][read + 1];
    if (f->inside) {
        int64_t element = f->constant;
        for (int k = 0; k < f->n; k++) element += f->coef[k] * at[f->axis[k]];
        return element;
    }
    const struct program *p = v->p;
    const struct buffer *b = &p->buffer[f->access->buffer];
    const int64_t *coef = f->access->coef;
    int64_t element = 0;
    for (int d = 0; d < b->ndims; d++, coef += p->naxes + 1) {
        int64_t x = coef[p->naxes];
        for (int k = 0; k < p->naxes; k++)
            if (coef[k]) x += coef[k] * at[k];
        if (x < 0 || x >= b->extent[d]) return -1;
        element = element * b->extent[d] + x;
    }
    return element;
}
