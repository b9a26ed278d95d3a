/* A factor that does not change goes into the weights: a sum of products that is multiplied by
 * constants afterwards (batch normalisation, a scale) has them multiplied into its constant
 * operand, once, before the first run.
 *
 *     T[n,k] = 0                           W'[k,c] = W[k,c] * f[k]
 *     T[n,k] += X[n,c] * W[k,c]      →     T[n,k] = 0
 *     Y[n,k] = T[n,k] * f[k] + o[k]        T[n,k] += X[n,c] * W'[k,c]
 *                                          Y[n,k] = T[n,k] + o[k]
 */
#include "ir/memory.h"
#include "mapper/rewrite_int.h"

#include <stdlib.h>
#include <string.h>

struct scaling {
    int product;       /* of the statement: what the sum is multiplied in */
    int sum, factor;   /* its operands: the read of the sum; what depends on constants alone */
    int init, of;      /* statements that write the sum: its fill, and its products */
    int weights;       /* the read of `of` that is constant */
    int dim[MAX_DIMS]; /* of the sum: the dimension of the weights with the same index; -1: none */
};

static bool steady_read(const struct program *p, const bool *steady, int buffer, int before) {
    bool any = p->buffer[buffer].role == ROLE_CONST;
    if (any || p->buffer[buffer].role != ROLE_TEMP) return any;
    for (int s = 0; s < p->nstmts; s++) {
        if (p->stmt[s].dst.buffer != buffer) continue;
        if (!steady[s] || s >= before) return false;
        any = true;
    }
    return any;
}

/* Constants alone, set before the statement; a literal alone counts too. */
static bool steady_tree(const struct program *p, const bool *steady, const struct stmt *s, int node,
                        int before) {
    const struct op *o = &s->op[node];
    if (o->code == OP_AXIS) return false;
    if (o->code == OP_READ)
        return !s->read[o->read].has_fill &&
               steady_read(p, steady, s->read[o->read].buffer, before);
    for (int k = 0; k < op_info[o->code].arity; k++)
        if (!steady_tree(p, steady, s, o->arg[k], before)) return false;
    return true;
}

/* Who writes the temporary: a fill by zero, then products; nobody else reads it. */
static bool find_sum(const struct program *p, int stmt, int buffer, struct scaling *x) {
    int reads = 0;
    x->init = x->of = -1;
    if (p->buffer[buffer].role != ROLE_TEMP || program_held(p, buffer)) return false;
    for (int s = 0; s < p->nstmts; s++) {
        const struct stmt *st = &p->stmt[s];
        for (int r = 0; r < st->nreads; r++) reads += st->read[r].buffer == buffer;
        if (st->dst.buffer != buffer) continue;
        if (s > stmt || x->of >= 0 || !rw_plain(p, s)) return false;
        if (st->combine == COMBINE_SET && x->init < 0)
            x->init = s;
        else if (x->init >= 0 && stmt_is_mac(p, st))
            x->of = s;
        else
            return false;
    }
    if (x->of < 0 || reads != 1) return false;
    const struct stmt *fill = &p->stmt[x->init];
    return fill->nops == 1 && fill->op[0].code == OP_LITERAL && fill->op[0].value.f == 0;
}

static bool row_equal(const struct program *p, const struct access *a, int d,
                      const struct access *b, int e) {
    return !memcmp(rw_row(p, a, d), rw_row(p, b, e), ((size_t)p->naxes + 1) * sizeof(int64_t));
}

int rw_plain_index(const struct program *p, const struct access *a, int d) {
    const int64_t *row = rw_row(p, a, d);
    int axis = -1;
    for (int k = 0; k < p->naxes; k++) {
        if (!row[k]) continue;
        if (axis >= 0 || row[k] != 1) return -1;
        axis = k;
    }
    return row[p->naxes] ? -1 : axis;
}

static uint64_t tree_axes(const struct program *p, const struct stmt *s, int node) {
    const struct op *o = &s->op[node];
    uint64_t mask = o->code == OP_READ ? rw_access_axes(p, &s->read[o->read]) : 0;
    for (int k = 0; k < op_info[o->code].arity; k++) mask |= tree_axes(p, s, o->arg[k]);
    return mask;
}

/* Each axis of the factor is an index of the sum, and there an index of the weights. */
static bool find_dims(const struct program *p, const struct stmt *s, struct scaling *x) {
    const struct access *read = &s->read[s->op[x->sum].read], *sum = &p->stmt[x->of].dst,
                        *w = &p->stmt[x->of].read[x->weights];
    uint64_t left = tree_axes(p, s, x->factor);
    for (int d = 0; d < p->buffer[sum->buffer].ndims; d++) {
        int axis = rw_plain_index(p, read, d);
        x->dim[d] = -1;
        if (axis < 0 || !(left >> axis & 1)) continue;
        for (int e = 0; e < p->buffer[w->buffer].ndims && x->dim[d] < 0; e++)
            if (row_equal(p, sum, d, w, e)) x->dim[d] = e;
        if (x->dim[d] < 0) return false;
        left &= ~(UINT64_C(1) << axis);
    }
    return !left;
}

/* A factor of the products that is a constant buffer as it stands, of the sum's type. */
static bool find_weights(const struct program *p, const bool *steady, const struct stmt *s,
                         struct scaling *x) {
    struct factors f;
    enum type t = p->buffer[p->stmt[x->of].dst.buffer].type;
    if (!type_is_float(t) || !rw_factors(p, x->of, &f)) return false;
    const struct stmt *of = &p->stmt[x->of];
    for (int k = 0; k < f.n; k++) {
        const struct op *o = &of->op[f.node[k]];
        if (o->code != OP_READ) continue;
        const struct access *a = &of->read[o->read];
        x->weights = o->read;
        if (!a->has_fill && p->buffer[a->buffer].type == t &&
            steady_read(p, steady, a->buffer, x->init) && find_dims(p, s, x))
            return true;
    }
    return false;
}

/* Is the product at the node one of a sum, its k-th operand, and of constants? */
static bool find_at(const struct program *p, const struct stmt *s, int stmt, int node, int k,
                    struct scaling *x) {
    *x = (struct scaling){
        .product = node, .sum = s->op[node].arg[k], .factor = s->op[node].arg[1 - k]};
    const struct op *o = &s->op[x->sum];
    if (o->code != OP_READ || s->op[x->factor].code == OP_LITERAL || s->read[o->read].has_fill ||
        !find_sum(p, stmt, s->read[o->read].buffer, x))
        return false;
    bool *steady = memory_array((size_t)p->nstmts + 1, sizeof *steady);
    memset(steady, true, (size_t)p->nstmts * sizeof *steady);
    program_steady(p, steady);
    bool found = steady_tree(p, steady, s, x->factor, x->init) && find_weights(p, steady, s, x);
    free(steady);
    return found;
}

static bool find_scaling(const struct program *p, int stmt, struct scaling *x) {
    const struct stmt *s = &p->stmt[stmt];
    if (!rw_plain(p, stmt) || s->nreads < 2) return false;
    for (int node = 0; node < s->nops; node++)
        for (int k = 0; k < 2 && s->op[node].code == OP_MUL; k++)
            if (find_at(p, s, stmt, node, k, x)) return true;
    return false;
}

/* The statement without the product. */
static int without(struct draft *d, const struct stmt *s, int node, const struct scaling *x) {
    struct op o = s->op[node];
    if (node == x->product) return without(d, s, x->sum, x);
    if (o.code == OP_READ) return draft_read(d, rw_copy(d->p, &s->read[o.read]));
    for (int k = 0; k < op_info[o.code].arity; k++) o.arg[k] = without(d, s, o.arg[k], x);
    return draft_op(d, o);
}

/* The weights times the factor: by the axes of the products, where each is a whole dimension. */
static bool open_scaled(struct program *q, const struct scaling *x, int *axis, int *buffer) {
    int from = q->stmt[x->of].read[x->weights].buffer, n = q->buffer[from].ndims;
    const int64_t *extent = q->buffer[from].extent;
    uint64_t seen = 0;
    for (int e = 0; e < n; e++) {
        int a = rw_plain_index(q, &q->stmt[x->of].read[x->weights], e);
        bool own = a < 0 || seen >> a & 1 || q->axis[a].extent != extent[e];
        axis[e] = own ? rw_axis(q, "d", extent[e]) : a;
        if (axis[e] < 0) return false;
        seen |= UINT64_C(1) << axis[e];
    }
    const char *name = arena_printf(&q->arena, "%s.scaled", q->buffer[from].name);
    *buffer = rw_temporary(q, name, q->buffer[from].type, n, extent);
    return *buffer >= 0;
}

/* Axes of the statement as those of the weights. */
static bool substitute(struct program *q, const struct stmt *s, const struct scaling *x,
                       const int *axis, struct substitution *to) {
    const struct access *read = &s->read[s->op[x->sum].read];
    *to = (struct substitution){.p = q};
    for (int d = 0; d < q->buffer[read->buffer].ndims; d++) {
        if (x->dim[d] < 0) continue;
        int64_t *row = rw_substitution(to, rw_plain_index(q, read, d));
        if (!row) return false;
        row[axis[x->dim[d]]] = 1;
    }
    return true;
}

static struct program *scale(const struct program *p, const struct failure *why,
                             const struct needle *n) {
    struct scaling x;
    struct substitution to;
    int axis[MAX_DIMS], made, stmt = why->stmt;
    (void)n;
    if (!find_scaling(p, stmt, &x)) return NULL;
    struct program *q = program_copy(p);
    if (!open_scaled(q, &x, axis, &made) || !substitute(q, &q->stmt[stmt], &x, axis, &to)) {
        program_free(q);
        return NULL;
    }
    const struct stmt old = q->stmt[stmt];
    struct access *weights = &q->stmt[x.of].read[x.weights];
    struct draft d = draft_open(q, &old, COMBINE_SET, rw_indexed(q, made, axis));
    int w = draft_read(&d, rw_indexed(q, weights->buffer, axis));
    draft_binary(&d, OP_MUL, w, draft_mapped(&d, &old, x.factor, rw_substituted, &to));
    weights->buffer = made;
    program_make_room(q, x.init, 1);
    draft_close(&d, x.init);
    d = draft_open(q, &old, old.combine, old.dst);
    without(&d, &old, old.nops - 1, &x);
    draft_close(&d, stmt + 1);
    return q;
}

const struct rewrite rw_scale = {
    .name = "scale-weights",
    .doc = "constants that a sum of products is multiplied by go into its constant operand",
    .answers = ANSWERS(OPERATION),
    .effect = REWRITE_REORDERS,
    .everywhere = true,
    .apply = scale,
};
