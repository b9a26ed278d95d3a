/* Forms: sums of products over relations, and what operations make of them. */
#include "ir/equal_int.h"

#include <isl/aff.h>
#include <isl/constraint.h>
#include <isl/ilp.h>
#include <isl/local_space.h>
#include <isl/map.h>
#include <isl/val.h>

#include <math.h>
#include <string.h>

bool equal_stop(struct equal *x, const char *why) {
    if (!x->failed) x->why = why;
    x->failed = true;
    return false;
}

isl_set *equal_keep(struct equal *x, isl_set *set) {
    if (!set) {
        equal_stop(x, "it takes too many steps");
        return NULL;
    }
    GROW(&x->arena, x->kept, x->nkept, x->kept_cap);
    x->kept[x->nkept++] = set;
    return set;
}

int64_t *equal_row(struct equal *x, int n) {
    return arena_array(&x->arena, (size_t)n + 1, sizeof(int64_t));
}

isl_set *set_with(struct equal *x, isl_set *set, const int64_t *row, int n, bool equality) {
    isl_local_space *space = isl_local_space_from_space(isl_set_get_space(set));
    isl_constraint *c =
        equality ? isl_constraint_alloc_equality(space) : isl_constraint_alloc_inequality(space);
    for (int d = 0; d < n && c; d++)
        if (row[d + 1])
            c = isl_constraint_set_coefficient_val(c, isl_dim_set, d,
                                                   isl_val_int_from_si(x->ctx, row[d + 1]));
    c = isl_constraint_set_constant_val(c, isl_val_int_from_si(x->ctx, row[0]));
    return isl_set_add_constraint(set, c);
}

isl_set *set_more(isl_set *set, int n) {
    return isl_set_add_dims(set, isl_dim_set, (unsigned)n);
}

isl_map *set_as_map(isl_set *r, int n) {
    return isl_map_move_dims(isl_map_from_range(isl_set_copy(r)), isl_dim_in, 0, isl_dim_out, 0,
                             (unsigned)n);
}

/* ---- ranges ---- */

struct reach type_reach(enum type t) {
    if (t == TYPE_BOOL) return (struct reach){0, 1};
    int bits = 8 * (int)type_size(t);
    if (type_is_signed(t))
        return (struct reach){-((__int128)1 << (bits - 1)), ((__int128)1 << (bits - 1)) - 1};
    return (struct reach){0, ((__int128)1 << bits) - 1};
}

bool reach_fits(struct reach r, enum type t) {
    struct reach all = type_reach(t);
    return r.lo >= all.lo && r.hi <= all.hi;
}

static const __int128 far = (__int128)1 << 100;

static struct reach reach_times(struct reach a, struct reach b) {
    static const __int128 most = (__int128)1 << 62;
    if (a.lo < -most || a.hi > most || b.lo < -most || b.hi > most)
        return (struct reach){-far, far};
    __int128 v[4] = {a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi};
    struct reach r = {v[0], v[0]};
    for (int k = 1; k < 4; k++) {
        if (v[k] < r.lo) r.lo = v[k];
        if (v[k] > r.hi) r.hi = v[k];
    }
    return r;
}

bool term_bounds(const struct term *t, int d, int64_t *lo, int64_t *hi) {
    isl_aff *at = isl_aff_var_on_domain(isl_local_space_from_space(isl_set_get_space(t->dom)),
                                        isl_dim_set, (unsigned)d);
    isl_val *a = isl_set_min_val(t->dom, at), *b = isl_set_max_val(t->dom, at);
    isl_aff_free(at);
    bool ok = a && b && isl_val_is_int(a) == isl_bool_true && isl_val_is_int(b) == isl_bool_true;
    if (ok) {
        *lo = isl_val_get_num_si(a);
        *hi = isl_val_get_num_si(b);
    }
    isl_val_free(a);
    isl_val_free(b);
    return ok && *lo > -(INT64_C(1) << 40) && *hi < INT64_C(1) << 40;
}

static __int128 least(__int128 a, __int128 b) {
    return a < b ? a : b;
}

static __int128 most_of(__int128 a, __int128 b) {
    return a > b ? a : b;
}

/* Of min, max and clip over integers: they do not decrease in any argument, so the ends of a result
 * come from the ends of its arguments. */
static struct reach bounded_range(struct equal *x, const struct atom *a) {
    struct reach arg[3];
    for (int k = 0; k < a->nargs && k < 3; k++) {
        arg[k] = form_range(x, a->arg[k]);
        if (!reach_fits(arg[k], a->from)) arg[k] = type_reach(a->from);
    }
    if (a->code == OP_MIN)
        return (struct reach){least(arg[0].lo, arg[1].lo), least(arg[0].hi, arg[1].hi)};
    struct reach r = {most_of(arg[0].lo, arg[1].lo), most_of(arg[0].hi, arg[1].hi)};
    if (a->code == OP_CLIP) r = (struct reach){least(r.lo, arg[2].lo), least(r.hi, arg[2].hi)};
    return r;
}

static struct reach atom_range(struct equal *x, const struct term *t, const struct atom *a) {
    if (a->content >= 0) return x->content[a->content].range;
    if (a->code == OP_AXIS) {
        struct reach r = {a->row[0][0], a->row[0][0]};
        for (int d = 0; d < t->n; d++) {
            int64_t c = a->row[0][d + 1], lo, hi;
            if (!c) continue;
            if (!term_bounds(t, d, &lo, &hi)) return (struct reach){-far, far};
            r.lo += (__int128)c * (c > 0 ? lo : hi);
            r.hi += (__int128)c * (c > 0 ? hi : lo);
        }
        return r;
    }
    struct reach r = type_reach(a->type);
    bool bounds = a->code == OP_MIN || a->code == OP_MAX || a->code == OP_CLIP;
    if (bounds && !a->points && !type_is_float(a->type)) return bounded_range(x, a);
    if (a->code == OP_SHR && !a->points && a->nargs == 2) {
        struct reach inner = form_range(x, a->arg[0]);
        union value by;
        if (atom_constant(x, t, a, 1, &by) && by.i >= 0 && by.i < 63 && reach_fits(inner, a->from))
            r = (struct reach){inner.lo >> by.i, inner.hi >> by.i};
    }
    return r;
}

/* All terms are there at every point. */
static bool everywhere(const struct form *f) {
    for (int k = 0; k < f->nterms; k++)
        if (f->term[k].n != f->m || f->term[k].dom != f->term[0].dom) return false;
    return true;
}

static struct reach term_range(struct equal *x, const struct form *f, const struct term *t) {
    struct reach r = {t->i, t->i};
    for (int a = 0; a < t->natoms; a++) r = reach_times(r, atom_range(x, t, &t->atom[a]));
    for (int d = f->m; d < t->n && f->sum; d++) {
        int64_t lo, hi;
        if (!term_bounds(t, d, &lo, &hi)) return (struct reach){-far, far};
        r = reach_times(r, (struct reach){1, hi - lo + 1});
    }
    return r;
}

/* Of a sum all terms together, 0 where one of them is not everywhere; otherwise they are pieces,
 * of which at most one is anywhere, at one point. */
struct reach form_range(struct equal *x, const struct form *f) {
    if (f->low) return type_reach(f->type);
    struct reach all = {0, 0};
    bool always = everywhere(f);
    for (int k = 0; k < f->nterms; k++) {
        struct reach r = term_range(x, f, &f->term[k]);
        if (r.lo > 0 && !(always && f->sum)) r.lo = 0;
        if (r.hi < 0 && !(always && f->sum)) r.hi = 0;
        all.lo = f->sum ? all.lo + r.lo : r.lo < all.lo ? r.lo : all.lo;
        all.hi = f->sum ? all.hi + r.hi : r.hi > all.hi ? r.hi : all.hi;
        if (all.lo < -far || all.hi > far) return (struct reach){-far, far};
    }
    if (all.lo > 0) all.lo = 0; /* where no term is */
    if (all.hi < 0) all.hi = 0;
    return all;
}

/* ---- making forms ---- */

struct form *form_new(struct equal *x, enum type t, int m) {
    struct form *f = arena_alloc(&x->arena, sizeof *f);
    f->type = t;
    f->m = m;
    return f;
}

struct term *form_add(struct equal *x, struct form *f) {
    if (f->nterms >= MAX_TERMS) equal_stop(x, "its value has too many terms");
    GROW(&x->arena, f->term, f->nterms, f->cap);
    f->term[f->nterms] = (struct term){.f = 1, .i = 1};
    return &f->term[f->nterms++];
}

void form_join(struct equal *x, struct form *f, const struct form *more, int sign) {
    for (int k = 0; k < more->nterms && !x->failed; k++) {
        struct term *t = form_add(x, f);
        *t = more->term[k];
        if (sign < 0) t->f = -t->f;
        if (sign < 0) t->i = (int64_t)(0 - (uint64_t)t->i);
    }
    f->sum |= more->sum;
    f->product |= more->product;
}

void form_drop_zeros(struct equal *x, struct form *f) {
    int n = 0;
    for (int k = 0; k < f->nterms; k++)
        if (f->term[k].natoms || (type_is_float(f->type) ? f->term[k].f : f->term[k].i))
            f->term[n++] = f->term[k];
    if (n < f->nterms) x->used |= LAW(NEUTRAL);
    f->nterms = n;
}

struct form *form_literal(struct equal *x, enum type type, union value v, const struct spot *s) {
    struct form *f = form_new(x, type, s->n);
    if (!type_is_float(type) && v.i == 0) return f;
    struct term *t = form_add(x, f);
    *t = (struct term){.dom = s->dom, .n = s->n, .name = s->name, .f = v.f, .i = v.i};
    if (!type_is_float(type))
        t->f = 1;
    else
        t->i = 1;
    return f;
}

/* The set has the domain's dimensions, and is there everywhere in it. */
bool set_covers(const isl_set *set, const isl_set *dom) {
    return isl_set_dim((isl_set *)set, isl_dim_set) == isl_set_dim((isl_set *)dom, isl_dim_set) &&
           isl_set_is_subset((isl_set *)dom, (isl_set *)set) == isl_bool_true;
}

/* Is the term there once at each point of the domain? Dimensions of its own have one value at each
 * point then, as those that a fused axis was made of. */
static bool once_everywhere(const struct term *t, int m, const isl_set *dom) {
    if (t->n == m) return set_covers(t->dom, dom);
    isl_map *own = set_as_map(t->dom, m);
    isl_set *at = isl_map_domain(isl_map_copy(own));
    bool once = isl_map_is_single_valued(own) == isl_bool_true && set_covers(at, dom);
    isl_set_free(at);
    isl_map_free(own);
    return once;
}

/* Where no term is, it is 0. */
bool form_constant(const struct form *f, const isl_set *dom, union value *v) {
    if (f->nterms > 1 ||
        (f->nterms == 1 && (f->term[0].natoms || !once_everywhere(&f->term[0], f->m, dom))))
        return false;
    if (type_is_float(f->type))
        v->f = f->nterms ? f->term[0].f : 0;
    else
        v->i = f->nterms ? f->term[0].i : 0;
    return true;
}

bool atom_constant(struct equal *x, const struct term *t, const struct atom *a, int k,
                   union value *v) {
    const struct form *f = a->arg[k];
    struct spot s = {.dom = t->dom, .n = t->n, .name = t->name};
    if (f->nterms > 1 || (f->nterms == 1 && f->term[0].natoms)) return false;
    return form_constant(form_at(x, f, a->row, &s), s.dom, v);
}

static int64_t *widened(struct equal *x, const int64_t *row, int m, int n, int gap) {
    int64_t *out = equal_row(x, n + gap);
    memcpy(out, row, (size_t)(m + 1) * sizeof *out);
    memcpy(out + 1 + m + gap, row + 1 + m, (size_t)(n - m) * sizeof *out);
    return out;
}

static struct atom atom_widened(struct equal *x, const struct atom *a, int m, int n, int gap) {
    struct atom b = *a;
    b.row = arena_array(&x->arena, (size_t)a->nrows + 1, sizeof *b.row);
    for (int r = 0; r < a->nrows; r++) b.row[r] = widened(x, a->row[r], m, n, gap);
    return b;
}

/* Dimensions of t: the m of the context, its own and u's own. */
static void term_product(struct equal *x, struct term *t, const struct term *a,
                         const struct term *b, int m) {
    int more = b->n - m, own = a->n - m;
    if (a->n + more > MAX_SPACE || a->natoms + b->natoms > MAX_ATOMS) {
        equal_stop(x, "a product in it has too many factors");
        return;
    }
    t->n = a->n + more;
    t->name = arena_array(&x->arena, (size_t)t->n + 1, sizeof *t->name);
    memcpy(t->name, a->name, (size_t)a->n * sizeof *t->name);
    memcpy(t->name + a->n, b->name + m, (size_t)more * sizeof *t->name);
    isl_set *right =
        isl_set_insert_dims(isl_set_copy(b->dom), isl_dim_set, (unsigned)m, (unsigned)own);
    t->dom = equal_keep(x, isl_set_intersect(set_more(isl_set_copy(a->dom), more), right));
    t->f = a->f * b->f;
    t->i = (int64_t)((uint64_t)a->i * (uint64_t)b->i);
    t->atom = arena_array(&x->arena, (size_t)(a->natoms + b->natoms) + 1, sizeof *t->atom);
    for (int k = 0; k < a->natoms; k++)
        t->atom[t->natoms++] = atom_widened(x, &a->atom[k], a->n, a->n, more);
    for (int k = 0; k < b->natoms; k++)
        t->atom[t->natoms++] = atom_widened(x, &b->atom[k], m, b->n, own);
}

static bool bare(const struct form *f) {
    for (int k = 0; k < f->nterms; k++)
        if (f->term[k].natoms > 1) return false;
    return !f->sum && !f->product;
}

static bool overflows(const struct term *a, const struct term *b) {
    int64_t r;
    return __builtin_mul_overflow(a->i, b->i, &r);
}

struct form *form_product(struct equal *x, const struct form *a, const struct form *b,
                          enum type type, const struct spot *s) {
    bool floats = type_is_float(type), simple = bare(a) && bare(b);
    uint32_t need =
        (a->sum || b->sum ? LAW(DISTRIBUTE) : 0) | (a->product || b->product ? LAW(ASSOCIATE) : 0);
    union value one;
    if (floats && !simple && (x->laws & need) != need) {
        bool unit = (form_constant(a, s->dom, &one) && one.f == 1) ||
                    (form_constant(b, s->dom, &one) && one.f == 1);
        struct form *arg[2] = {(struct form *)a, (struct form *)b};
        if (!unit) return form_operation(x, OP_MUL, type, type, arg, 2, s);
        need = 0;
    }
    struct form *f = form_new(x, type, s->n);
    x->used |= need;
    for (int i = 0; i < a->nterms && !x->failed; i++)
        for (int j = 0; j < b->nterms && !x->failed; j++) {
            if (overflows(&a->term[i], &b->term[j])) {
                equal_stop(x, "a coefficient in it is too large");
                break;
            }
            struct term *t = form_add(x, f);
            term_product(x, t, &a->term[i], &b->term[j], s->n);
            if (x->failed) break;
            if (isl_set_is_empty(t->dom) != isl_bool_false) f->nterms--;
        }
    f->sum = a->sum || b->sum;
    f->product = true;
    return f;
}

/* One term: an operation on the context's dimensions. */
struct form *form_operation(struct equal *x, enum opcode code, enum type to, enum type from,
                            struct form *const *arg, int nargs, const struct spot *s) {
    struct form *f = form_new(x, to, s->n);
    struct term *t = form_add(x, f);
    struct atom *a = arena_alloc(&x->arena, sizeof *a);
    *a = (struct atom){
        .content = -1, .code = code, .type = to, .from = from, .nrows = s->n, .nargs = nargs};
    a->row = arena_array(&x->arena, (size_t)s->n + 1, sizeof *a->row);
    for (int d = 0; d < s->n; d++) {
        a->row[d] = equal_row(x, s->n);
        a->row[d][d + 1] = 1;
    }
    for (int k = 0; k < nargs; k++) a->arg[k] = arg[k];
    *t = (struct term){
        .dom = s->dom, .n = s->n, .name = s->name, .f = 1, .i = 1, .atom = a, .natoms = 1};
    return f;
}

struct form *form_within(struct equal *x, const struct form *f, const struct spot *s) {
    struct form *g = form_new(x, f->type, f->m);
    g->sum = f->sum;
    g->product = f->product;
    for (int k = 0; k < f->nterms && !x->failed; k++) {
        isl_set *dom = isl_set_intersect(isl_set_copy(f->term[k].dom),
                                         set_more(isl_set_copy(s->dom), f->term[k].n - f->m));
        isl_bool none = isl_set_is_empty(dom);
        if (none != isl_bool_false) {
            isl_set_free(dom);
            if (none == isl_bool_error) equal_stop(x, "it takes too many steps");
            continue;
        }
        struct term *t = form_add(x, g);
        *t = f->term[k];
        t->dom = equal_keep(x, dom);
    }
    return g;
}

/* ---- integers ---- */

static struct form *scaled(struct equal *x, const struct form *f, int64_t by) {
    struct form *g = form_new(x, f->type, f->m);
    form_join(x, g, f, 1);
    for (int k = 0; k < g->nterms; k++)
        if (__builtin_mul_overflow(g->term[k].i, by, &g->term[k].i))
            equal_stop(x, "a coefficient in it is too large");
    return g;
}

/* shr(shr(u, a) + b, c) = shr(u + b·2^a, a + c); what 2^c divides is divided. No sum in it wraps.
 */
struct form *form_shift(struct equal *x, struct form *f, int64_t by, const struct spot *s) {
    const struct term *inner = NULL;
    int64_t b = 0;
    bool divides = reach_fits(form_range(x, f), f->type), chain = divides;
    for (int k = 0; k < f->nterms; k++) {
        const struct term *t = &f->term[k];
        divides &= t->i % (INT64_C(1) << by) == 0;
        chain = chain && set_covers(t->dom, s->dom);
        if (t->natoms == 0 && t->n == f->m)
            b += t->i;
        else if (!inner && t->natoms == 1 && t->i == 1 && t->n == f->m && t->atom->content < 0 &&
                 t->atom->code == OP_SHR && !t->atom->points)
            inner = t;
        else
            chain = false;
    }
    x->used |= LAW(DIGITS);
    if (divides) {
        struct form *g = form_new(x, f->type, f->m);
        form_join(x, g, f, 1);
        for (int k = 0; k < g->nterms; k++) g->term[k].i /= INT64_C(1) << by;
        return g;
    }
    union value a;
    if (chain && inner && atom_constant(x, inner, inner->atom, 1, &a) && a.i + by < 63 &&
        b < INT64_C(1) << 30 && b > -(INT64_C(1) << 30)) {
        struct form *u = form_at(x, inner->atom->arg[0], inner->atom->row, s),
                    *g = form_new(x, f->type, s->n);
        form_join(x, g, u, 1);
        form_join(x, g, form_literal(x, f->type, (union value){.i = b * (INT64_C(1) << a.i)}, s),
                  1);
        g->sum = true;
        if (reach_fits(form_range(x, g), f->type)) return form_shift(x, g, by + a.i, s);
    }
    struct form *arg[2] = {f, form_literal(x, f->type, (union value){.i = by}, s)};
    return form_operation(x, OP_SHR, f->type, f->type, arg, 2, s);
}

/* The low bits of x as a value of the type: x - 2^n · floor((x + h) / 2^n), h half of 2^n where it
 * is signed. */
static struct form *low_bits(struct equal *x, const struct form *f, enum type to,
                             const struct spot *s) {
    static const enum type wider[2] = {TYPE_I32, TYPE_I64};
    int64_t bits = 8 * (int64_t)type_size(to),
            half = type_is_signed(to) ? INT64_C(1) << (bits - 1) : 0;
    struct reach r = form_range(x, f);
    r.hi += half;
    for (int k = 0; k < 2 && !reach_fits(r, f->type); k++)
        if (type_size(wider[k]) > type_size(f->type)) f = form_retyped(x, f, wider[k]);
    if (!reach_fits(r, f->type)) return NULL;
    struct form *g = form_new(x, to, s->n), *moved = form_new(x, f->type, s->n);
    form_join(x, moved, f, 1);
    if (half) form_join(x, moved, form_literal(x, f->type, (union value){.i = half}, s), 1);
    moved->sum = g->sum = true;
    form_join(x, g, f, 1);
    form_join(x, g, scaled(x, form_shift(x, moved, bits, s), -(INT64_C(1) << bits)), 1);
    g->type = to;
    g->low = true;
    return g;
}

static bool small_float(const struct form *, enum type);

/* A value of the type, a value rounded to it, or one of several such by its size or a condition. */
static bool small_atom(const struct atom *a, enum type to) {
    if (a->type == to) return true;
    if (a->content >= 0) return false;
    if (a->code == OP_SELECT) return small_float(a->arg[1], to) && small_float(a->arg[2], to);
    return (a->code == OP_MAX || a->code == OP_MIN) && small_float(a->arg[0], to) &&
           small_float(a->arg[1], to);
}

/* At each point of the context it is one value, not a sum of several. */
static bool found_once(const struct term *t, int m) {
    if (t->n == m) return true;
    isl_map *at = set_as_map(t->dom, m);
    bool once = isl_map_is_single_valued(at) == isl_bool_true;
    isl_map_free(at);
    return once;
}

/* Does rounding to the type leave all values as they are? */
static bool small_float(const struct form *f, enum type to) {
    for (int k = 0; k < f->nterms; k++) {
        const struct term *t = &f->term[k];
        bool small = t->natoms == 0 ? type_round(to, t->f) == t->f
                                    : t->natoms == 1 && fabs(t->f) == 1 && small_atom(t->atom, to);
        if (!small || !found_once(t, f->m)) return false;
    }
    return !f->sum;
}

struct form *form_retyped(struct equal *x, const struct form *f, enum type to) {
    struct form *g = arena_copy(&x->arena, f, sizeof *f);
    if (to != f->type) g->low = false;
    if (f->low && reach_fits(type_reach(f->type), to)) g->low = true;
    g->type = to;
    return g;
}

/* A value of type `from` in type `to`; f16 and bf16 stand for their roundings. */
struct form *form_cast(struct equal *x, struct form *f, enum type to, enum type from,
                       const struct spot *s) {
    bool whole = !type_is_float(to) && !type_is_float(from) && to != TYPE_BOOL;
    if (to == from && to != TYPE_F16 && to != TYPE_BF16) return f;
    if (whole) {
        bool known = reach_fits(form_range(x, f), from);
        x->used |= LAW(WRAP);
        if (known && reach_fits(form_range(x, f), to)) return form_retyped(x, f, to);
        if (known && type_size(to) < type_size(from) && type_size(to) < 8 && type_size(from) <= 8) {
            struct form *g = low_bits(x, f, to, s);
            if (g) return g;
        }
        if (type_size(to) <= type_size(from) && from != TYPE_BOOL) return form_retyped(x, f, to);
    }
    if (type_is_float(to) && type_is_float(from) && small_float(f, to))
        return form_retyped(x, f, to);
    struct form *arg[1] = {f};
    return form_operation(x, OP_CAST, to, from, arg, 1, s);
}
