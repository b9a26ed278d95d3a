/* States that a step only scales and adds to, S ← a·S + b: behind the steps 0 … e−1 such a state is
 *
 *     (Π_{0 ≤ u < e} a(u)) · S₀  +  Σ_{0 ≤ w < e} (Π_{w < u < e} a(u)) · b(w),
 *
 * by induction over e: for e = 0 it is S₀; one step more scales each term by a(e), and adds b(e),
 * with an empty product. a and b may depend on the step and the element, but on no state. */
#include "ir/equal_int.h"

#include <string.h>

/* The content occurs in the form, at any depth. */
static bool mentions(const struct form *f, int content) {
    for (int k = 0; k < f->nterms; k++)
        for (int a = 0; a < f->term[k].natoms; a++) {
            const struct atom *u = &f->term[k].atom[a];
            if (u->content == content) return true;
            for (int i = 0; i < u->nargs; i++)
                if (mentions(u->arg[i], content)) return true;
        }
    return false;
}

static bool rows_same(int64_t *const *a, int64_t *const *b, int nrows, int n) {
    for (int r = 0; r < nrows; r++)
        if (memcmp(a[r], b[r], ((size_t)n + 1) * sizeof **a) != 0) return false;
    return true;
}

/* The context with one dimension more, from `low` to `high` − 1: rows over it as it was. */
static struct spot with_step(struct equal *x, const struct spot *c, const int64_t *low,
                             const int64_t *high, const char *name) {
    struct spot s = *c;
    int64_t *above = row_longer(x, low, c->n, 1), *below = row_longer(x, high, c->n, 1);
    for (int k = 0; k <= c->n; k++) above[k] = -above[k];
    above[1 + c->n]++;
    below[1 + c->n]--;
    below[0]--;
    s.n = c->n + 1;
    s.name = arena_array(&x->arena, (size_t)s.n + 1, sizeof *s.name);
    memcpy(s.name, c->name, (size_t)c->n * sizeof *s.name);
    s.name[c->n] = name;
    isl_set *dom = set_more(isl_set_copy(c->dom), 1);
    s.dom = equal_keep(x, set_with(x, set_with(x, dom, above, s.n, false), below, s.n, false));
    return s;
}

/* What a step makes of the state: its factor, and what it adds; over the context and the step. */
struct step_form {
    struct form *factor, *added; /* factor NULL: 1 */
};

static bool take_factor(struct equal *x, const struct term *t, int a, enum type type,
                        struct step_form *out) {
    bool unit = t->natoms == 1 && (type_is_float(type) ? t->f == 1 : t->i == 1);
    if (unit) return true;
    out->factor = form_new(x, type, t->n);
    out->factor->product = t->natoms > 2;
    struct term *u = form_add(x, out->factor);
    *u = *t;
    u->natoms = 0;
    u->atom = arena_array(&x->arena, (size_t)t->natoms, sizeof *u->atom);
    for (int k = 0; k < t->natoms; k++)
        if (k != a) u->atom[u->natoms++] = t->atom[k];
    return true;
}

/* f: the next value, where `content` stands for the state before; it must be there once, in the
 * same element, everywhere. */
static bool is_linear(struct equal *x, const struct form *f, int content, int64_t *const *row,
                      int nrows, const struct spot *in, struct step_form *out) {
    bool found = false;
    *out = (struct step_form){.added = form_new(x, f->type, f->m)};
    out->added->sum = true;
    out->added->product = f->product;
    for (int k = 0; k < f->nterms && !x->failed; k++) {
        const struct term *t = &f->term[k];
        int at = -1, n = 0;
        for (int a = 0; a < t->natoms; a++) {
            const struct atom *u = &t->atom[a];
            if (u->content == content) at = a, n++;
            for (int i = 0; i < u->nargs; i++)
                if (mentions(u->arg[i], content)) return false;
        }
        if (!n) {
            *form_add(x, out->added) = *t;
            continue;
        }
        if (n > 1 || found || t->n != in->n || !rows_same(t->atom[at].row, row, nrows, in->n) ||
            isl_set_is_subset(in->dom, t->dom) != isl_bool_true ||
            !take_factor(x, t, at, f->type, out))
            return false;
        found = true;
    }
    return found && !x->failed;
}

/* Π a(u), low ≤ u < high, over the spot; a's context is that of the state, `n` dimensions, and the
 * step. Where there is no u it is 1. */
static struct form *product_of(struct equal *x, const struct form *a, int n, const int64_t *low,
                               const int64_t *high, const struct spot *z, enum type t) {
    union value one = type_is_float(t) ? (union value){.f = 1} : (union value){.i = 1};
    if (!a) return form_literal(x, t, one, z);
    struct spot u = with_step(x, z, low, high, "step");
    if (x->failed) return form_literal(x, t, one, z);
    int64_t **row = arena_array(&x->arena, (size_t)n + 2, sizeof *row);
    for (int d = 0; d <= n; d++) {
        row[d] = equal_row(x, u.n);
        row[d][1 + (d < n ? d : z->n)] = 1;
    }
    struct form *all = form_at(x, a, row, &u);
    struct spot there = *z;
    there.dom =
        equal_keep(x, isl_set_project_out(isl_set_copy(u.dom), isl_dim_set, (unsigned)z->n, 1));
    if (x->failed) return all;
    struct spot rest = spot_without(x, z, there.dom);
    struct form *f = form_new(x, t, z->n);
    if (!equal_is_empty(x, there.dom))
        form_join(x, f, form_folded(x, OP_MUL, t, all, &u, form_literal(x, t, one, &there), &there),
                  1);
    if (!x->failed && !equal_is_empty(x, rest.dom))
        form_join(x, f, form_literal(x, t, one, &rest), 1);
    return f;
}

static bool may_unroll(const struct equal *x, enum type t) {
    uint32_t need = LAW(ASSOCIATE) | LAW(DISTRIBUTE);
    if (t == TYPE_F16 || t == TYPE_BF16 || t == TYPE_BOOL) return false; /* each step rounds */
    return !type_is_float(t) || (x->laws & need) == need;
}

static bool is_state(const struct recur *r, int buffer) {
    for (int k = 0; k < r->nstates; k++)
        if (r->state[k].current == buffer && r->state[k].next != buffer) return true;
    return false;
}

struct form *form_unrolled(struct equal *x, struct side *s, int enter, int buffer,
                           const int64_t *end, int64_t *const *row, const struct spot *c) {
    const struct event *e = &s->event[enter];
    const struct buffer *b = &s->p->buffer[buffer];
    int axis = e->recur->axis, naxes = s->p->naxes;
    if (x->open.on || !is_state(e->recur, buffer) || e->recur->reverse || !may_unroll(x, b->type))
        return NULL;
    struct spot in = with_step(x, c, equal_row(x, c->n), end, s->p->axis[axis].name);
    if (x->failed || in.n > MAX_SPACE - 2) return NULL;
    in.compared &= ~(UINT64_C(1) << axis);
    in.axis = arena_array(&x->arena, (size_t)naxes + 1, sizeof *in.axis);
    for (int a = 0; a < naxes; a++)
        if (c->axis[a]) in.axis[a] = row_longer(x, c->axis[a], c->n, 1);
    in.axis[axis] = equal_row(x, in.n);
    in.axis[axis][1 + c->n] = 1;
    int64_t **at = arena_array(&x->arena, (size_t)b->ndims + 1, sizeof *at);
    for (int d = 0; d < b->ndims; d++) at[d] = row_longer(x, row[d], c->n, 1);
    x->open = (struct open_state){true, s, enter, buffer, c->n, content_new(x, b->type)};
    struct form *f = form_element(x, s, e->match, buffer, at, &in);
    x->open.on = false;
    struct step_form step;
    if (x->failed || !is_linear(x, f, x->open.content, at, b->ndims, &in, &step)) return NULL;
    int64_t *zero = equal_row(x, c->n), *next = equal_row(x, in.n);
    next[0] = 1;
    next[1 + c->n] = 1;
    struct form *whole = product_of(x, step.factor, c->n, zero, end, c, b->type),
                *behind = product_of(x, step.factor, c->n, next, row_longer(x, end, c->n, 1), &in,
                                     b->type);
    if (x->failed) return NULL;
    struct form *first = form_element(x, s, enter, buffer, row, c);
    struct form *g = form_new(x, b->type, c->n);
    form_join(x, g, form_product(x, whole, first, b->type, c), 1);
    struct form *sum = form_product(x, step.added, behind, b->type, &in);
    sum->m = c->n;
    sum->sum = true;
    form_join(x, g, sum, 1);
    g->sum = true;
    if (type_is_float(b->type)) x->used |= LAW(ASSOCIATE) | LAW(DISTRIBUTE);
    return g;
}

struct form *form_open_state(struct equal *x, const struct side *s, int enter, int buffer,
                             int64_t *const *row, const struct spot *c) {
    const struct open_state *o = &x->open;
    const int64_t *step = c->axis[s->event[enter].recur->axis];
    if (!o->on || o->side != s || o->enter != enter || o->buffer != buffer || !step) return NULL;
    for (int k = 0; k <= c->n; k++)
        if (step[k] != (k == 1 + o->step)) return NULL;
    return content_form(x, o->content, s->p->buffer[buffer].type, s->p->buffer[buffer].ndims, row,
                        c);
}
