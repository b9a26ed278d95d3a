/* Functions of one integer that do not decrease: between two arguments of equal value they are
 * constant, so bisection finds every step. */
#include "ir/equal_int.h"

#include <isl/val.h>

#include <math.h>
#include <string.h>

enum { MAX_CHAIN = 24, MAX_CALLS = 4096 };

struct link { /* a form, and how its value is made of the next one's */
    const struct form *f;
    const struct term *t;
    union value add, arg[3];
    int k; /* which argument of t's operation that is; -1: t is an element, the next one it alone */
};

struct chain_of { /* at[0] is the whole, each next one the argument of the one before */
    struct link at[MAX_CHAIN];
    int n;
};

/* One term that varies and perhaps a constant, wherever the domain is. */
static bool single(const struct form *f, const isl_set *dom, const struct term **varies,
                   union value *add) {
    *varies = NULL;
    add->f = 0;
    if (!type_is_float(f->type)) add->i = 0;
    for (int k = 0; k < f->nterms; k++) {
        const struct term *t = &f->term[k];
        if (t->n != f->m || t->natoms > 1 || !set_covers(t->dom, dom)) return false;
        if (t->natoms == 1 && *varies) return false;
        if (t->natoms == 1)
            *varies = t;
        else if (type_is_float(f->type))
            add->f += t->f;
        else
            add->i += t->i;
    }
    return *varies != NULL && f->nterms <= 2;
}

/* The argument that is no constant; -1. The others are put down. */
static int varying(struct equal *x, const struct term *t, union value *arg) {
    int found = -1;
    for (int k = 0; k < t->atom->nargs; k++) {
        if (atom_constant(x, t, t->atom, k, &arg[k])) continue;
        if (found >= 0) return -1;
        found = k;
    }
    return found;
}

/* Does the operation not decrease in its argument k, the others being constants? */
static bool grows(const struct atom *a, int k, const union value *arg) {
    switch (a->code) {
    case OP_FLOOR:
    case OP_CEIL:
    case OP_ROUND:
    case OP_MIN:
    case OP_MAX:
        return true;
    case OP_CLIP:
        return k == 0;
    case OP_SHR:
        return k == 0 && arg[1].i >= 0 && type_is_signed(a->type);
    case OP_CAST:
        return a->type != TYPE_BOOL && a->from != TYPE_BOOL &&
               (type_is_float(a->type) || type_is_float(a->from));
    case OP_MUL:
        return type_is_float(a->type) && arg[1 - k].f > 0 && isfinite(arg[1 - k].f);
    default:
        return false;
    }
}

/* The element that an integer form multiplies, shifts or widens, on its own; NULL: it is that. */
static const struct form *element_of(struct equal *x, const struct form *f, const struct term *t) {
    if (type_is_float(f->type) || type_is_float(t->atom->type)) return NULL;
    if (f->nterms == 1 && t->i == 1 && f->type == t->atom->type) return NULL;
    struct form *g = form_new(x, t->atom->type, f->m);
    struct term *own = form_add(x, g);
    *own = *t;
    own->i = 1;
    return g;
}

static void open_chain(struct equal *x, const struct form *f, const isl_set *dom,
                       struct chain_of *c) {
    while (c->n < MAX_CHAIN && !x->failed) {
        struct link *l = &c->at[c->n++];
        l->f = f;
        l->k = -1;
        if (!single(f, dom, &l->t, &l->add) || l->t->atom->points) return;
        const struct term *t = l->t;
        bool up = type_is_float(f->type) ? t->f > 0 && isfinite(t->f)
                                         : t->i > 0 && reach_fits(form_range(x, f), f->type);
        if (t->atom->content >= 0) {
            const struct form *g = up && c->n < MAX_CHAIN ? element_of(x, f, t) : NULL;
            if (g) c->at[c->n++] = (struct link){.f = g, .k = -1};
            return;
        }
        l->k = varying(x, t, l->arg);
        if (!up || l->k < 0 || !grows(t->atom, l->k, l->arg)) return;
        struct spot there = {.dom = t->dom, .n = t->n, .name = t->name};
        f = form_at(x, t->atom->arg[l->k], t->atom->row, &there);
        dom = t->dom;
    }
}

/* The value at chain element `from`, that at element `to` being v. */
static union value through(const struct chain_of *c, int from, int to, union value v) {
    const struct link *l = &c->at[from];
    const struct form *f = l->f;
    if (from == to) return v;
    const struct term *t = l->t;
    const struct atom *a = t->atom;
    union value y = through(c, from + 1, to, v), arg[3];
    memcpy(arg, l->arg, sizeof arg);
    if (a->content < 0) {
        arg[l->k] = y;
        y = op_eval(a->code, a->type, a->from, arg);
    }
    if (type_is_float(f->type)) {
        y.f = t->f == 1 ? y.f : type_round(f->type, t->f * y.f);
        if (f->nterms > 1) y.f = type_round(f->type, y.f + l->add.f);
    } else {
        y.i = type_wrap(f->type, (uint64_t)t->i * (uint64_t)y.i + (uint64_t)l->add.i);
    }
    return y;
}

struct stepper {
    const struct chain_of *a, *b;
    int na, nb, calls;
};

static bool alike(enum type t, union value a, union value b) {
    return type_is_float(t) ? a.f == b.f : a.i == b.i;
}

static bool steps_agree(struct stepper *s, int64_t lo, int64_t hi) {
    enum type t = s->a->at[0].f->type;
    union value l = {.i = lo}, h = {.i = hi};
    if (++s->calls > MAX_CALLS) return false;
    union value al = through(s->a, 0, s->na, l), bl = through(s->b, 0, s->nb, l);
    union value ah = through(s->a, 0, s->na, h), bh = through(s->b, 0, s->nb, h);
    if (!alike(t, al, bl) || !alike(t, ah, bh)) return false;
    if (alike(t, al, ah) || hi - lo <= 1) return true;
    int64_t mid = lo + (hi - lo) / 2;
    return steps_agree(s, lo, mid) && steps_agree(s, mid, hi);
}

bool form_equal_monotone(struct equal *x, const struct form *a, const struct form *b,
                         const struct spot *s) {
    struct chain_of f = {0}, g = {0};
    union value none;
    if (form_constant(a, s->dom, &none) || form_constant(b, s->dom, &none)) return false;
    open_chain(x, a, s->dom, &f);
    open_chain(x, b, s->dom, &g);
    if (f.n + g.n < 3) return false;
    for (int i = f.n; i-- > 0;)
        for (int j = g.n; j-- > 0 && !x->failed;) {
            enum type t = f.at[i].f->type;
            if (i + j == 0 || type_is_float(t) || t != g.at[j].f->type || type_size(t) > 4 ||
                f.at[i].f->m != s->n || g.at[j].f->m != s->n)
                continue;
            if (!form_equal(x, f.at[i].f, g.at[j].f, s)) continue;
            struct reach r = form_range(x, f.at[i].f);
            if (!reach_fits(r, t)) r = type_reach(t);
            struct stepper step = {&f, &g, i, j, 0};
            if (!steps_agree(&step, (int64_t)r.lo, (int64_t)r.hi)) return false;
            x->used |= LAW(MONOTONE);
            return true;
        }
    return false;
}
