/* Constraints on sums: instructions run over whole boxes. What a constraint leaves out becomes
 * zeros in a factor, or is summed and not stored. */
#include "mapper/body.h"
#include "mapper/rewrite_int.h"

#include <stdlib.h>

/* ---- mask: a sum over a part of the domain is one over the whole, with zeros ---- */

/* Nothing under the node is read outside of its buffer, whatever the constraints are. */
static bool inside_anyway(const struct program *p, const struct stmt *s, int node) {
    const struct op *o = &s->op[node];
    bool inside =
        o->code != OP_READ || s->read[o->read].has_fill || !leaves_buffer(p, s, &s->read[o->read]);
    for (int k = 0; k < op_info[o->code].arity; k++) inside &= inside_anyway(p, s, o->arg[k]);
    return inside;
}

struct reading { /* of this program's statement */
    struct program *program;
    const struct stmt *stmt;
};

/* What a constraint keeps inside of the buffer reads zeros outside without it. An access_map. */
static struct access filled(void *user, const struct access *a, int read) {
    const struct reading *r = user;
    struct access c = rw_copy(r->program, a);
    (void)read;
    c.has_fill |= leaves_buffer(r->program, r->stmt, a);
    return c;
}

static int draft_condition(struct draft *d, const struct constraint *c) {
    const struct program *p = d->p;
    int sum = -1;
    for (int a = 0; a < p->naxes; a++) {
        if (!c->coef[a]) continue;
        int x = draft_axis(d, a);
        if (c->coef[a] != 1)
            x = draft_binary(d, OP_MUL, x, draft_number(d, TYPE_I64, (double)c->coef[a]));
        sum = sum < 0 ? x : draft_binary(d, OP_ADD, sum, x);
    }
    int bound = draft_number(d, TYPE_I64, (double)-c->coef[p->naxes]);
    return draft_binary(d, OP_GE, sum, bound);
}

static uint64_t constraint_axes(const struct program *p, const struct constraint *c) {
    uint64_t axes = 0;
    for (int a = 0; a < p->naxes; a++)
        if (c->coef[a]) axes |= UINT64_C(1) << a;
    return axes;
}

static bool may_mask(const struct program *p, const struct stmt *s) {
    for (int w = 0; w < s->nwhere; w++)
        if (!constraint_axes(p, &s->where[w]) || llabs(s->where[w].coef[p->naxes]) > INT64_C(1)
                                                                                         << 50)
            return false;
    return s->nwhere > 0;
}

/* The factor of which the least must be copied to have zeros outside of the constraint; of such
 * the last. */
static int masked_factor(const struct program *p, const struct factors *f, uint64_t cut) {
    int best = f->n - 1;
    for (int k = f->n - 2; k >= 0; k--)
        if (rw_points(p, cut | f->axes[k]) < rw_points(p, cut | f->axes[best])) best = k;
    return best;
}

struct masks {
    int n, of[MAX_FACTORS]; /* factors; beside the only one stands number 1, of ones and zeros */
    uint64_t axes[MAX_FACTORS];  /* of each copy */
    uint64_t where[MAX_FACTORS]; /* bit w: constraint w is in it */
    struct access copy[MAX_FACTORS];
};

static bool masked(const struct masks *m, int factor) {
    bool is = false;
    for (int k = 0; k < m->n; k++) is |= m->of[k] == factor;
    return is;
}

/* What is not copied must lie inside without the constraints too. */
static bool masks_find(const struct program *p, const struct stmt *s, const struct factors *f,
                       struct masks *m) {
    *m = (struct masks){0};
    if (s->nwhere > 64 || !may_mask(p, s)) return false;
    for (int w = 0; w < s->nwhere; w++) {
        uint64_t cut = constraint_axes(p, &s->where[w]);
        int of = f->n > 1 ? masked_factor(p, f, cut) : 1, k = 0;
        while (k < m->n && m->of[k] != of) k++;
        if (k == m->n) {
            m->of[m->n] = of;
            m->axes[m->n++] = f->n > 1 ? f->axes[of] : 0;
        }
        m->axes[k] |= cut;
        m->where[k] |= UINT64_C(1) << w;
    }
    bool inside = true;
    for (int k = 0; k < f->n; k++)
        inside &= inside_anyway(p, s, f->node[k]) || (f->n > 1 && masked(m, k));
    return inside;
}

/* M[axes] = select(inside, value, 0), where value is 1 or the masked factor. */
static void write_mask(struct program *q, int at, const struct stmt *old, const struct masks *m,
                       int k, int node) {
    enum type t = q->buffer[m->copy[k].buffer].type;
    struct draft d = draft_open(q, old, COMBINE_SET, rw_copy(q, &m->copy[k]));
    int inside = -1;
    for (int w = 0; w < old->nwhere; w++) {
        if (!(m->where[k] >> w & 1)) continue;
        int one = draft_condition(&d, &old->where[w]);
        inside = inside < 0 ? one : draft_binary(&d, OP_AND, inside, one);
    }
    int value = node < 0 ? draft_number(&d, t, 1)
                         : draft_mapped(&d, old, node, filled, &(struct reading){q, old});
    int zero = draft_number(&d, t, 0);
    draft_op(&d, (struct op){
                     .code = OP_SELECT, .type = d.s.op[value].type, .arg = {inside, value, zero}});
    draft_close(&d, at);
}

static struct program *mask(const struct program *p, const struct failure *why,
                            const struct needle *n) {
    struct factors f;
    struct masks m;
    int axis[MAX_AXES];
    uint32_t left = 0;
    if (!rw_factors(p, why->stmt, &f) || !masks_find(p, &p->stmt[why->stmt], &f, &m)) return NULL;
    struct program *q = program_copy(p);
    struct stmt old = q->stmt[why->stmt];
    for (int k = 0; k < f.n; k++)
        if (!masked(&m, k)) left |= UINT32_C(1) << k;
    for (int k = 0; k < m.n; k++) {
        enum type t = f.n > 1 ? rw_stored(q, &old, f.node[m.of[k]])
                              : rw_partner(n, rw_stored(q, &old, f.node[0]));
        if (type_is_float(t) != type_is_float(f.type)) t = f.type;
        if (!rw_temporary_of(q, "mask", t, axis, rw_axes(m.axes[k], axis), &m.copy[k])) {
            program_free(q);
            return NULL;
        }
    }
    program_make_room(q, why->stmt, m.n);
    for (int k = 0; k < m.n; k++)
        write_mask(q, why->stmt + k, &old, &m, k, f.n > 1 ? rw_bare(&old, f.node[m.of[k]]) : -1);
    struct draft d = draft_open(q, &old, COMBINE_ADD, old.dst);
    int x = left ? draft_product(&d, &old, &f, left) : -1;
    for (int k = 0; k < m.n; k++) {
        int y = draft_cast(&d, f.type, draft_read(&d, rw_copy(q, &m.copy[k])));
        x = x < 0 ? y : draft_binary(&d, OP_MUL, x, y);
    }
    draft_close(&d, why->stmt + m.n);
    return q;
}

const struct rewrite rw_mask = {
    .name = "mask",
    .doc = "a constraint becomes a matrix of ones and zeros (a prefix sum: a triangular one), or "
           "zeros in a factor",
    .answers = ANSWERS(EXTENT),
    .effect = REWRITE_FINITE,
    .apply = mask,
};

/* ---- whole: sums of which a constraint leaves some out are made for all of the result ---- */

/* With the constraints over axes of the result alone, or with the others. */
static struct stmt constrained(struct program *q, const struct stmt *old, uint64_t result,
                               bool others) {
    struct stmt s = *old;
    s.nwhere = 0;
    s.where = arena_array(&q->arena, (size_t)old->nwhere + 1, sizeof *s.where);
    for (int w = 0; w < old->nwhere; w++)
        if ((constraint_axes(q, &old->where[w]) & ~result) ? others : !others)
            s.where[s.nwhere++] = old->where[w];
    return s;
}

static struct program *whole(const struct program *p, const struct failure *why,
                             const struct needle *n) {
    int axis[MAX_AXES], at = why->stmt;
    struct access own;
    (void)n;
    if (!rw_top(p, at) || p->stmt[at].combine == COMBINE_SET) return NULL;
    uint64_t result = rw_access_axes(p, &p->stmt[at].dst);
    if (!(p->stmt[at].axes & ~result) || stmt_reads(&p->stmt[at], p->stmt[at].dst.buffer) ||
        !inside_anyway(p, &p->stmt[at], p->stmt[at].nops - 1))
        return NULL;
    struct program *q = program_copy(p);
    struct stmt old = q->stmt[at], outer = constrained(q, &old, result, false),
                inner = constrained(q, &old, result, true);
    enum type t = old.op[old.nops - 1].type;
    const char *name = arena_printf(&q->arena, "%s.whole", q->buffer[old.dst.buffer].name);
    if (!outer.nwhere || !rw_temporary_of(q, name, t, axis, rw_axes(result, axis), &own)) {
        program_free(q);
        return NULL;
    }
    program_make_room(q, at, 2);
    union value neutral = combiner_neutral(old.combine, t);
    rw_fill(q, at, &old, own, type_is_float(t) ? neutral.f : (double)neutral.i);
    struct draft d = draft_open(q, &old, old.combine, rw_copy(q, &own));
    draft_tree(&d, &old, old.nops - 1);
    if (inner.nwhere) draft_where(&d, &inner);
    draft_close(&d, at + 1);
    d = draft_open(q, &old, old.combine, old.dst);
    draft_read(&d, rw_copy(q, &own));
    draft_where(&d, &outer);
    draft_close(&d, at + 2);
    return q;
}

const struct rewrite rw_whole = {
    .name = "whole",
    .doc = "sums of which a constraint leaves some out are made for all of the result, and those "
           "that it keeps are combined with it",
    .answers = ANSWERS(EXTENT),
    .effect = REWRITE_REORDERS,
    .apply = whole,
};
