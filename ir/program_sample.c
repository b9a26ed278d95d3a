/* Single elements of a program's results: each statement is inverted at the element, what it reads
 * is computed in the same way, and every value is kept, so that the work follows from what the
 * elements need. */
#include "ir/interp_bound.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_STATEMENTS = 2000 }; /* the depth of the recursion follows it */
static const size_t most_kept = (size_t)1 << 25;

struct term {
    int k, axis; /* k: which of the statement's axes */
    int64_t coef;
};
/* constant + the sum of coef * axis, ascending k; coef is never 0 */
struct row {
    int64_t constant;
    struct term *term;
    int n;
};

/* A statement with what its inversion needs. Rows: the destination's dimensions, which must meet an
 * index, then the constraints, which must not be negative. rest_low[k * nrows + r]: the least that
 * axes from k on add to row r. */
struct inverse {
    const struct stmt *s;
    int before;  /* the statement that wrote the same buffer before, or -1 */
    int *writer; /* the same for each read's buffer */
    int naxes, nrows, ndims;
    int axis[MAX_AXES];
    struct row *row, **read; /* read: of each dimension of each read */
    int **moved, *nmoved;    /* by k: the rows that its axis moves; of the first axis all */
    __int128 *rest_low, *rest_high;
    int64_t at[MAX_AXES]; /* by axis of the program */
    union value *value;   /* of each op */
    int64_t target[MAX_DIMS];
    union value sum; /* the element so far */
    bool found;
    bool sums;   /* floats, in another arithmetic: the order of the terms is free */
    double rest; /* what `sum` has rounded off of them */
    /* with bounds: the same, and whether the element is a sum of floats, perhaps of products */
    struct bounded *bounded, element;
    struct bounded_sum *terms;
    const bool *crisp;
    double unit;
    bool adds, products;
};

struct kept {
    int64_t element;
    int stmt; /* the state after this statement; -1: an empty slot */
    struct shade value; /* without bounds its v alone */
};

struct sampler {
    const struct program *p;
    void *const *data;
    const struct arithmetic *over; /* NULL: the interpreter's */
    int64_t visits;
    struct inverse *inverse; /* in the order of the body */
    int n;
    int *last; /* by buffer: the last statement that writes it, or -1 */
    struct arena arena;
    struct kept *kept;
    size_t nkept, cap;
    bool failed, bounds;
    struct leeway leeway;
};

static size_t slot_of(const struct sampler *m, int64_t element, int stmt) {
    uint64_t h = (uint64_t)element * 0x9e3779b97f4a7c15u + (uint64_t)stmt * 0xc2b2ae3d27d4eb4fu;
    size_t k = (size_t)(h ^ h >> 29) & (m->cap - 1);
    while (m->kept[k].stmt >= 0 && (m->kept[k].stmt != stmt || m->kept[k].element != element))
        k = (k + 1) & (m->cap - 1);
    return k;
}

static bool kept_grow(struct sampler *m) {
    struct kept *old = m->kept;
    size_t n = m->cap;
    size_t cap = n ? 2 * n : 1024;
    struct kept *more = m->nkept < most_kept ? malloc(cap * sizeof *more) : NULL;
    if (!more) return false;
    for (size_t k = 0; k < cap; k++) more[k].stmt = -1;
    m->kept = more;
    m->cap = cap;
    for (size_t k = 0; k < n; k++)
        if (old[k].stmt >= 0) more[slot_of(m, old[k].element, old[k].stmt)] = old[k];
    free(old);
    return true;
}

static void keep(struct sampler *m, int64_t element, int stmt, struct shade v) {
    if (2 * m->nkept >= m->cap && !kept_grow(m)) {
        m->failed = true;
        return;
    }
    size_t k = slot_of(m, element, stmt);
    m->nkept += m->kept[k].stmt < 0;
    m->kept[k] = (struct kept){element, stmt, v};
}

static struct row row_make(struct sampler *m, const struct inverse *v, const int64_t *coef) {
    struct row r = {.constant = coef[m->p->naxes]};
    r.term = arena_array(&m->arena, (size_t)v->naxes, sizeof *r.term);
    for (int k = 0; k < v->naxes; k++)
        if (coef[v->axis[k]]) r.term[r.n++] = (struct term){k, v->axis[k], coef[v->axis[k]]};
    return r;
}

static int64_t row_coef(const struct row *r, int k) {
    for (int i = 0; i < r->n; i++)
        if (r->term[i].k == k) return r->term[i].coef;
    return 0;
}

static void rows_open(struct sampler *m, struct inverse *v) {
    const struct program *p = m->p;
    const struct stmt *s = v->s;
    size_t row = (size_t)p->naxes + 1;
    v->row = arena_array(&m->arena, (size_t)v->nrows, sizeof *v->row);
    for (int d = 0; d < v->ndims; d++) v->row[d] = row_make(m, v, s->dst.coef + (size_t)d * row);
    for (int w = 0; w < s->nwhere; w++) v->row[v->ndims + w] = row_make(m, v, s->where[w].coef);
    v->read = arena_array(&m->arena, (size_t)s->nreads, sizeof *v->read);
    for (int i = 0; i < s->nreads; i++) {
        int n = p->buffer[s->read[i].buffer].ndims;
        v->read[i] = arena_array(&m->arena, (size_t)n, sizeof *v->read[i]);
        for (int d = 0; d < n; d++)
            v->read[i][d] = row_make(m, v, s->read[i].coef + (size_t)d * row);
    }
    v->moved = arena_array(&m->arena, (size_t)v->naxes, sizeof *v->moved);
    v->nmoved = arena_array(&m->arena, (size_t)v->naxes, sizeof *v->nmoved);
    for (int k = 0; k < v->naxes; k++) {
        v->moved[k] = arena_array(&m->arena, (size_t)v->nrows, sizeof *v->moved[k]);
        for (int r = 0; r < v->nrows; r++)
            if (k == 0 || row_coef(&v->row[r], k)) v->moved[k][v->nmoved[k]++] = r;
    }
}

static void bounds_prepare(struct sampler *m, struct inverse *v) {
    const struct stmt *s = v->s;
    v->bounded = arena_array(&m->arena, (size_t)s->nops, sizeof *v->bounded);
    v->terms = arena_array(&m->arena, 1, sizeof *v->terms);
    v->crisp = stmt_crisp(&m->arena, m->p, s);
    v->unit = stmt_unit(m->p, s);
    v->adds = s->combine == COMBINE_ADD && type_is_float(m->p->buffer[s->dst.buffer].type);
    v->products = v->adds && s->op[s->nops - 1].code == OP_MUL;
}

/* Reads of its own destination see the sum at some point: there the order counts. */
static bool sums_floats(const struct sampler *m, const struct stmt *s) {
    if (!m->over || m->over->exact || s->combine != COMBINE_ADD) return false;
    for (int r = 0; r < s->nreads; r++)
        if (s->read[r].buffer == s->dst.buffer) return false;
    return type_is_float(m->p->buffer[s->dst.buffer].type);
}

static void inverse_open(struct sampler *m, struct inverse *v, const struct stmt *s) {
    const struct program *p = m->p;
    v->s = s;
    v->before = m->last[s->dst.buffer];
    v->sums = sums_floats(m, s);
    v->ndims = p->buffer[s->dst.buffer].ndims;
    v->nrows = v->ndims + s->nwhere;
    for (int a = 0; a < p->naxes; a++)
        if (s->axes >> a & 1) v->axis[v->naxes++] = a;
    rows_open(m, v);
    size_t n = (size_t)(v->naxes + 1) * (size_t)v->nrows;
    v->rest_low = arena_array(&m->arena, n, sizeof *v->rest_low);
    v->rest_high = arena_array(&m->arena, n, sizeof *v->rest_high);
    v->value = arena_array(&m->arena, (size_t)s->nops, sizeof *v->value);
    v->writer = arena_array(&m->arena, (size_t)s->nreads, sizeof *v->writer);
    for (int r = 0; r < s->nreads; r++) v->writer[r] = m->last[s->read[r].buffer];
    if (m->bounds) bounds_prepare(m, v);
    for (int k = v->naxes - 1; k >= 0; k--) {
        for (int r = 0; r < v->nrows; r++) {
            int at = k * v->nrows + r;
            __int128 end = (__int128)row_coef(&v->row[r], k) * (p->axis[v->axis[k]].extent - 1);
            v->rest_low[at] = v->rest_low[at + v->nrows] + (end < 0 ? end : 0);
            v->rest_high[at] = v->rest_high[at + v->nrows] + (end > 0 ? end : 0);
        }
    }
}

static __int128 floor_div(__int128 a, __int128 b) {
    __int128 q = a / b;
    return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

static __int128 ceil_div(__int128 a, __int128 b) {
    return -floor_div(-a, b);
}

/* low <= coef * x <= high */
static void narrow(int64_t coef, __int128 low, __int128 high, __int128 *first, __int128 *last) {
    if (coef == 0) {
        if (low > 0 || high < 0) *last = *first - 1;
        return;
    }
    if (coef == 1) { /* nearly always: no division */
        if (low > *first) *first = low;
        if (high < *last) *last = high;
        return;
    }
    __int128 a = coef > 0 ? ceil_div(low, coef) : ceil_div(-high, -(__int128)coef);
    __int128 b = coef > 0 ? floor_div(high, coef) : floor_div(-low, -(__int128)coef);
    if (a > *first) *first = a;
    if (b < *last) *last = b;
}

/* A row that the axis does not move was narrowed by the last one that does. */
static bool range_of_axis(const struct sampler *m, const struct inverse *v, int k, int64_t *from,
                          int64_t *to) {
    __int128 first = 0, last = m->p->axis[v->axis[k]].extent - 1;
    for (int i = 0; i < v->nmoved[k] && first <= last; i++) {
        int r = v->moved[k][i], after = (k + 1) * v->nrows + r, n = 0;
        const struct row *row = &v->row[r];
        __int128 fixed = row->constant;
        for (; n < row->n && row->term[n].k < k; n++)
            fixed += (__int128)row->term[n].coef * v->at[row->term[n].axis];
        bool equal = r < v->ndims;
        __int128 low = (equal ? v->target[r] : 0) - fixed - v->rest_high[after];
        __int128 high = equal ? v->target[r] - fixed - v->rest_low[after] : (__int128)1 << 100;
        narrow(n < row->n && row->term[n].k == k ? row->term[n].coef : 0, low, high, &first, &last);
    }
    *from = (int64_t)first;
    *to = (int64_t)last;
    return first <= last;
}

static union value sample(struct sampler *m, int buffer, int64_t element, int stmt);

static union value sample_read(struct sampler *m, struct inverse *v, int read) {
    const struct program *p = m->p;
    const struct access *a = &v->s->read[read];
    const struct buffer *f = &p->buffer[a->buffer];
    int64_t element = 0;
    if (a->buffer == v->s->dst.buffer && v->s->combine != COMBINE_SET) return v->sum;
    for (int d = 0; d < f->ndims; d++) {
        const struct row *row = &v->read[read][d];
        int64_t x = row->constant;
        for (int i = 0; i < row->n; i++) x += row->term[i].coef * v->at[row->term[i].axis];
        if (x < 0 || x >= f->extent[d])
            return m->over ? m->over->literal(m->over->user, f->type, a->fill) : a->fill;
        element = element * f->extent[d] + x;
    }
    return sample(m, a->buffer, element, v->writer[read]);
}

static union value evaluate(const struct sampler *m, enum opcode code, enum type to, enum type from,
                            const union value *arg) {
    return m->over ? m->over->eval(m->over->user, code, to, from, arg)
                   : op_eval(code, to, from, arg);
}

static union value literal(const struct sampler *m, enum type t, union value v) {
    return m->over ? m->over->literal(m->over->user, t, v) : v;
}

static union value compute(struct sampler *m, struct inverse *v) {
    const struct stmt *s = v->s;
    union value arg[3];
    for (int n = 0; n < s->nops; n++) {
        const struct op *o = &s->op[n];
        int arity = op_info[o->code].arity;
        union value i = {.i = o->code == OP_AXIS ? v->at[o->axis] : 0};
        switch (o->code) {
        case OP_READ:
            v->value[n] = sample_read(m, v, o->read);
            continue;
        case OP_LITERAL:
            v->value[n] = literal(m, o->type, o->value);
            continue;
        case OP_AXIS:
            v->value[n] = literal(m, o->type, type_convert(o->type, TYPE_I64, i));
            continue;
        default:
            break;
        }
        for (int k = 0; k < arity; k++) arg[k] = v->value[o->arg[k]];
        v->value[n] = evaluate(m, o->code, o->type, s->op[o->arg[arity - 1]].type, arg);
    }
    return v->value[s->nops - 1];
}

/* The sum in twice the precision, rounded once in the end: the same in every order (Knuth's TwoSum). */
static void add_exactly(struct inverse *v, double x) {
    double sum = v->sum.f + x, added = sum - v->sum.f;
    v->rest += (v->sum.f - (sum - added)) + (x - added);
    v->sum.f = sum;
}

/* Where nothing is added -0 stays what it is. */
static double rounded_sum(const struct inverse *v, enum type t) {
    bool more = isfinite(v->sum.f) && v->rest != 0;
    return type_round(t, more ? v->sum.f + v->rest : v->sum.f);
}

/* One point that writes the element: as the interpreter stores it. */
static void visit(struct sampler *m, struct inverse *v) {
    enum type t = m->p->buffer[v->s->dst.buffer].type;
    enum type in = t == TYPE_F16 || t == TYPE_BF16 ? TYPE_F32 : t;
    union value x = compute(m, v);
    if (m->over && ++m->visits > m->over->most_visits) m->failed = true;
    v->found = true;
    if (v->sums) {
        add_exactly(v, x.f);
        return;
    }
    if (v->s->combine != COMBINE_SET) {
        union value arg[2] = {v->sum, x};
        x = evaluate(m, combiner_op(v->s->combine), in, in, arg);
    }
    if (type_is_float(t) && !(m->over && m->over->exact)) x.f = type_round(t, x.f);
    v->sum = x;
}

/* ---- with bounds ---- */

static struct bounded bounded_sample(struct sampler *m, int buffer, int64_t element, int stmt);

static struct bounded bounded_read(struct sampler *m, struct inverse *v, int read) {
    const struct program *p = m->p;
    const struct access *a = &v->s->read[read];
    const struct buffer *f = &p->buffer[a->buffer];
    int64_t element = 0;
    if (a->buffer == v->s->dst.buffer && v->s->combine != COMBINE_SET)
        return v->adds ? bounded_sum_close(v->terms) : v->element;
    for (int d = 0; d < f->ndims; d++) {
        const struct row *row = &v->read[read][d];
        int64_t x = row->constant;
        for (int i = 0; i < row->n; i++) x += row->term[i].coef * v->at[row->term[i].axis];
        if (x < 0 || x >= f->extent[d]) return bounded_exactly(a->fill);
        element = element * f->extent[d] + x;
    }
    struct bounded x = bounded_sample(m, a->buffer, element, v->writer[read]);
    bool zeroed = v->products && type_is_float(f->type) && m->leeway.zeroed >> f->type & 1;
    return zeroed ? bounded_zeroed(f->type, x) : x;
}

static void bounded_compute(struct sampler *m, struct inverse *v) {
    const struct stmt *s = v->s;
    struct bounded arg[3];
    for (int n = 0; n < s->nops - v->products; n++) {
        const struct op *o = &s->op[n];
        int arity = op_info[o->code].arity;
        union value i = {.i = o->code == OP_AXIS ? v->at[o->axis] : 0};
        switch (o->code) {
        case OP_READ:
            v->bounded[n] = bounded_read(m, v, o->read);
            continue;
        case OP_LITERAL:
            v->bounded[n] = bounded_exactly(o->value);
            continue;
        case OP_AXIS:
            v->bounded[n] = bounded_exactly(type_convert(o->type, TYPE_I64, i));
            continue;
        default:
            break;
        }
        for (int k = 0; k < arity; k++) arg[k] = v->bounded[o->arg[k]];
        v->bounded[n] =
            bounded_eval_within(&m->leeway, o->code, o->type, s->op[o->arg[arity - 1]].type, arg, v->crisp[n]);
    }
}

static void bounded_visit(struct sampler *m, struct inverse *v) {
    const struct stmt *s = v->s;
    const struct op *root = &s->op[s->nops - 1];
    enum type t = m->p->buffer[s->dst.buffer].type, in = type_is_float(t) ? type_computed(t) : t;
    bounded_compute(m, v);
    v->found = true;
    if (v->products) {
        bounded_sum_product(v->terms, &v->bounded[root->arg[0]], &v->bounded[root->arg[1]], root->type);
        return;
    }
    struct bounded x = v->bounded[s->nops - 1];
    if (v->adds) {
        bounded_sum_add(v->terms, &x);
        return;
    }
    if (s->combine == COMBINE_ADD) {
        bounded_add_integer(t, &v->element, &x);
        return;
    }
    if (s->combine != COMBINE_SET) {
        struct bounded arg[2] = {v->element, x};
        x = bounded_eval(combiner_op(s->combine), in, in, arg, false);
    }
    v->element = bounded_store(t, x);
}

/* All points, in the order of the interpreter. */
static void visit_from(struct sampler *m, struct inverse *v, int k) {
    int64_t from, to;
    if (k == v->naxes) {
        if (m->bounds)
            bounded_visit(m, v);
        else
            visit(m, v);
        return;
    }
    if (!range_of_axis(m, v, k, &from, &to)) return;
    for (int64_t x = from; x <= to && !m->failed; x++) {
        v->at[v->axis[k]] = x;
        visit_from(m, v, k + 1);
    }
}

/* Rows without any axis are not seen by range_of_axis when there are no axes. */
static bool constants_hold(const struct inverse *v) {
    for (int r = 0; r < v->nrows && v->naxes == 0; r++) {
        int64_t x = v->row[r].constant;
        if (r < v->ndims ? x != v->target[r] : x < 0) return false;
    }
    return true;
}

static void aim(struct inverse *v, const struct buffer *f, int64_t element) {
    for (int d = f->ndims - 1; d >= 0; d--) {
        v->target[d] = element % f->extent[d];
        element /= f->extent[d];
    }
    v->found = false;
}

/* What statements add to the element one after the other is one sum. */
static void sum_up(struct sampler *m, struct inverse *v, int buffer, int64_t element) {
    struct inverse *before = v->before < 0 ? NULL : &m->inverse[v->before];
    aim(v, &m->p->buffer[buffer], element);
    if (before && before->sums) {
        sum_up(m, before, buffer, element);
        v->sum = before->sum;
        v->rest = before->rest;
    } else {
        v->sum = sample(m, buffer, element, v->before);
        v->rest = 0;
    }
    if (constants_hold(v)) visit_from(m, v, 0);
}

/* The element after statement `stmt`, which writes its buffer; -1: as it came. */
static union value sample(struct sampler *m, int buffer, int64_t element, int stmt) {
    const struct buffer *f = &m->p->buffer[buffer];
    union value zero = {.i = 0};
    if (m->failed) return zero;
    if (stmt < 0 && m->over) return m->over->input(m->over->user, m->p, buffer, element);
    if (stmt < 0) {
        const unsigned char *data = m->data[buffer];
        return data ? type_load(f->type, data + (size_t)element * type_size(f->type)) : zero;
    }
    size_t k = slot_of(m, element, stmt);
    if (m->kept[k].stmt >= 0) return m->kept[k].value.v;
    struct inverse *v = &m->inverse[stmt];
    bool adds = v->s->combine != COMBINE_SET;
    aim(v, f, element);
    if (v->sums) {
        sum_up(m, v, buffer, element);
        v->sum.f = rounded_sum(v, f->type);
    } else {
        v->sum = adds ? sample(m, buffer, element, v->before) : zero;
        if (constants_hold(v)) visit_from(m, v, 0);
    }
    union value x = v->found || adds ? v->sum : sample(m, buffer, element, v->before);
    keep(m, element, stmt, (struct shade){.v = x});
    return x;
}

static struct bounded bounded_sample(struct sampler *m, int buffer, int64_t element, int stmt) {
    const struct buffer *f = &m->p->buffer[buffer];
    struct bounded zero = {0};
    if (m->failed) return zero;
    if (stmt < 0) {
        const unsigned char *data = m->data[buffer];
        return data ? bounded_exactly(type_load(f->type, data + (size_t)element * type_size(f->type))) : zero;
    }
    size_t k = slot_of(m, element, stmt);
    if (m->kept[k].stmt >= 0) return shade_open(&m->kept[k].value);
    struct inverse *v = &m->inverse[stmt];
    bool combines = v->s->combine != COMBINE_SET;
    aim(v, f, element);
    v->element = combines ? bounded_sample(m, buffer, element, v->before) : zero;
    if (v->adds) bounded_sum_open(v->terms, f->type, v->unit, v->element);
    if (constants_hold(v)) visit_from(m, v, 0);
    struct bounded x = v->found && v->adds ? bounded_sum_close(v->terms)
                       : v->found || combines ? v->element
                                              : bounded_sample(m, buffer, element, v->before);
    keep(m, element, stmt, shade_of(&x));
    return x;
}

static bool sampler_open(struct sampler *m) {
    const struct program *p = m->p;
    arena_init(&m->arena);
    if (p->nitems > MOST_STATEMENTS || !kept_grow(m)) return false;
    for (int k = 0; k < p->nitems; k++)
        if (p->item[k].kind != ITEM_STMT) return false;
    m->last = arena_array(&m->arena, (size_t)p->nbuffers + 1, sizeof *m->last);
    for (int b = 0; b < p->nbuffers; b++) m->last[b] = -1;
    m->n = p->nitems;
    m->inverse = arena_array(&m->arena, (size_t)m->n + 1, sizeof *m->inverse);
    for (int k = 0; k < m->n; k++) {
        const struct stmt *s = &p->stmt[p->item[k].stmt];
        inverse_open(m, &m->inverse[k], s);
        m->last[s->dst.buffer] = k;
    }
    return true;
}

static bool sample_all(struct sampler m, int buffer, const int64_t *element, int n,
                       union value *out, struct bounded *bounded) {
    const struct program *p = m.p;
    bool ok = sampler_open(&m);
    for (int k = 0; k < n && ok; k++) {
        ok = element[k] >= 0 && element[k] < p->buffer[buffer].elements;
        if (ok && bounded)
            bounded[k] = bounded_sample(&m, buffer, element[k], m.last[buffer]);
        else if (ok)
            out[k] = sample(&m, buffer, element[k], m.last[buffer]);
        ok = ok && !m.failed;
    }
    if (m.over && m.over->visits) *m.over->visits += m.visits;
    arena_free(&m.arena);
    free(m.kept);
    return ok;
}

bool program_sample(const struct program *p, void *const *data, int buffer, const int64_t *element,
                    int n, union value *out) {
    return sample_all((struct sampler){.p = p, .data = data}, buffer, element, n, out, NULL);
}

bool program_sample_bounded(const struct program *p, void *const *data, int buffer, const int64_t *element, int n,
                            const struct leeway *leeway, struct bounded *out) {
    struct sampler m = {.p = p, .data = data, .bounds = true};
    if (leeway) m.leeway = *leeway;
    return sample_all(m, buffer, element, n, NULL, out);
}

bool program_sample_over(const struct program *p, const struct arithmetic *over, int buffer,
                         const int64_t *element, int n, union value *out) {
    return sample_all((struct sampler){.p = p, .over = over}, buffer, element, n, out, NULL);
}
