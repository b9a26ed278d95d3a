/* Transposed convolution: `O[s*p + r] += I[p] * F[r]` scatters. With r = s*ρ + φ and u = p + ρ each
 * phase φ is a convolution that gathers, `O[s*u + φ] += I[u - ρ] * F[s*ρ + φ]`, and no two of them
 * write the same element. Stride 2 in two dimensions: four convolutions. */
#include "mapper/rewrite_int.h"

enum { MAX_PHASED = 3, MAX_PHASES = 64 };

struct phased { /* a dimension of the result: stride * p + r + constant */
    int dim, p, r;
    int64_t stride;
    int u, rho; /* axes of one phase; rho -1: one value */
};

/* The factor that alone has the axis, beside the result; -1: none, or several. */
static int owner_of(const struct factors *f, int axis) {
    int found = -1;
    for (int k = 0; k < f->n; k++)
        if (f->axes[k] >> axis & 1) {
            if (found >= 0) return -1;
            found = k;
        }
    return found;
}

static int only_read(const struct stmt *s, const struct factors *f, int k) {
    int node = rw_bare(s, f->node[k]);
    return s->op[node].code == OP_READ ? s->op[node].read : -1;
}

/* Is the axis alone, from end to end, in one dimension of the read? Then what lies outside it lies
 * outside the buffer. */
static bool spans(const struct program *p, const struct access *a, int axis) {
    int dim;
    int64_t coef;
    if (!rw_place(p, a, axis, &dim, &coef) || coef != 1) return false;
    for (int x = 0; x < p->naxes; x++)
        if (x != axis && access_coef(p, a, dim, x)) return false;
    return access_coef(p, a, dim, p->naxes) == 0 &&
           p->buffer[a->buffer].extent[dim] == p->axis[axis].extent;
}

static bool zero_outside(const struct program *p, const struct access *a) {
    enum type t = p->buffer[a->buffer].type;
    return !a->has_fill || (type_is_float(t) ? a->fill.f == 0 : a->fill.i == 0);
}

static bool is_pair(const struct program *p, const struct stmt *s, const struct factors *f,
                    int data, int filter) {
    int dim;
    int64_t coef;
    int kp = owner_of(f, data), kr = owner_of(f, filter);
    if (kp < 0 || kr < 0 || kp == kr) return false;
    int rp = only_read(s, f, kp), rr = only_read(s, f, kr);
    return rp >= 0 && rr >= 0 && spans(p, &s->read[rp], data) && zero_outside(p, &s->read[rp]) &&
           rw_place(p, &s->dst, data, &dim, &coef) && rw_place(p, &s->dst, filter, &dim, &coef) &&
           !s->read[rr].has_fill;
}

/* False: the dimension has two axes that cannot be taken apart. */
static bool find_phased(const struct program *p, const struct stmt *s, const struct factors *f,
                        int dim, struct phased *x, int *n) {
    int axis[2], count = 0;
    for (int a = 0; a < p->naxes; a++)
        if (access_coef(p, &s->dst, dim, a)) {
            if (count == 2) return false;
            axis[count++] = a;
        }
    if (count < 2) return true;
    for (int k = 0; k < 2; k++) {
        int64_t cp = access_coef(p, &s->dst, dim, axis[k]),
                cr = access_coef(p, &s->dst, dim, axis[1 - k]);
        if (cr != 1 || cp < 1 || cp > 8 || !is_pair(p, s, f, axis[k], axis[1 - k])) continue;
        if (*n == MAX_PHASED) return false;
        x[(*n)++] = (struct phased){.dim = dim, .p = axis[k], .r = axis[1 - k], .stride = cp};
        return true;
    }
    return false;
}

static bool phase_axes(struct program *q, struct phased *x, int64_t phase) {
    int64_t taps = (q->axis[x->r].extent - phase + x->stride - 1) / x->stride;
    x->u = rw_axis(q, q->axis[x->p].name, q->axis[x->p].extent + taps - 1);
    x->rho = taps > 1 ? rw_axis(q, q->axis[x->r].name, taps) : -1;
    return x->u >= 0 && (taps == 1 || x->rho >= 0);
}

struct gather {
    struct substitution s;
    uint64_t data; /* axes p: reads that have them read zeros outside */
};

static struct access gathered(void *user, const struct access *a, int read) {
    struct gather *g = user;
    struct access c = rw_substituted(&g->s, a, read);
    if (rw_access_axes(g->s.p, a) & g->data) {
        c.has_fill = true;
        c.fill = (union value){0};
    }
    return c;
}

static void write_phase(struct program *q, int at, const struct stmt *old, const struct factors *f,
                        const struct phased *x, int n, const int64_t *phase) {
    struct gather g = {.s = {.p = q}};
    struct access dst = rw_copy(q, &old->dst);
    for (int k = 0; k < n; k++) {
        int64_t *p = rw_substitution(&g.s, x[k].p), *r = rw_substitution(&g.s, x[k].r);
        p[x[k].u] = 1;
        if (x[k].rho >= 0) {
            p[x[k].rho] = -1;
            r[x[k].rho] = x[k].stride;
        }
        r[q->naxes] = phase[k];
        g.data |= UINT64_C(1) << x[k].p;
        int64_t *row = rw_row(q, &dst, x[k].dim);
        row[x[k].p] = row[x[k].r] = 0;
        row[x[k].u] = x[k].stride;
        row[q->naxes] += phase[k];
    }
    struct draft d = draft_open(q, old, COMBINE_ADD, dst);
    draft_product_mapped(&d, old, f, (UINT32_C(1) << f->n) - 1, gathered, &g);
    draft_close(&d, at);
}

static struct program *phases(const struct program *p, const struct failure *why,
                              const struct needle *needle) {
    struct factors f;
    struct phased x[MAX_PHASED];
    struct phased axes[MAX_PHASES][MAX_PHASED];
    int n = 0, at = why->stmt, count = 0, total = 1;
    (void)needle;
    if (!rw_factors(p, at, &f) || p->stmt[at].nwhere || rw_value_axes(&p->stmt[at])) return NULL;
    const struct stmt *s = &p->stmt[at];
    for (int d = 0; d < p->buffer[s->dst.buffer].ndims; d++)
        if (!find_phased(p, s, &f, d, x, &n)) return NULL;
    for (int k = 0; k < n; k++) {
        if (x[k].stride > p->axis[x[k].r].extent) x[k].stride = 0;
        total *= (int)x[k].stride;
    }
    if (n == 0 || total < 1 || total > MAX_PHASES) return NULL;
    struct program *q = program_copy(p);
    int64_t phase[MAX_PHASED] = {0};
    bool room = true;
    for (count = 0; count < total && room; count++)
        for (int k = 0, rest = count; k < n; rest /= (int)x[k].stride, k++) {
            axes[count][k] = x[k];
            room = room && phase_axes(q, &axes[count][k], rest % x[k].stride);
        }
    if (!room || !rw_factors(q, at, &f)) {
        program_free(q);
        return NULL;
    }
    struct stmt old = q->stmt[at];
    program_make_room(q, at, total - 1);
    for (count = 0; count < total; count++) {
        for (int k = 0, rest = count; k < n; rest /= (int)x[k].stride, k++)
            phase[k] = rest % x[k].stride;
        write_phase(q, at + count, &old, &f, axes[count], n, phase);
    }
    return q;
}

const struct rewrite rw_phases = {
    .name = "phases",
    .doc = "a transposed convolution becomes one convolution for each phase of its strides",
    .answers = ANSWERS(NOT_INJECTIVE),
    .effect = REWRITE_FINITE,
    .apply = phases,
};
