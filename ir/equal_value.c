/* The value of an element: followed through the statements that wrote it, each read joined with its
 * writers as relations, to what both programs share (value-based dataflow: Feautrier 1991; the
 * comparison: Verdoolaege, Janssens, Bruynooghe 2012). */
#include "ir/equal_int.h"

#include <isl/aff.h>
#include <isl/map.h>
#include <isl/space.h>
#include <isl/val.h>

#include <string.h>

enum { MAX_DEPTH = 200 };

/* ---- rows ---- */

int64_t *row_longer(struct equal *x, const int64_t *row, int n, int more) {
    int64_t *out = equal_row(x, n + more);
    memcpy(out, row, (size_t)(n + 1) * sizeof *out);
    return out;
}

/* Σ coef[a] * axis[a] + constant, over the spot; NULL: an axis that it lacks. */
static int64_t *row_of(struct equal *x, const struct program *p, const int64_t *coef,
                       const struct spot *s) {
    int64_t *out = equal_row(x, s->n);
    out[0] = coef[p->naxes];
    for (int a = 0; a < p->naxes; a++) {
        if (!coef[a]) continue;
        if (!s->axis[a]) {
            equal_stop(x, "it has an axis of a recurrence");
            return out;
        }
        for (int d = 0; d <= s->n; d++) out[d] += coef[a] * s->axis[a][d];
    }
    return out;
}

static int64_t **rows_of(struct equal *x, const struct program *p, const struct access *a,
                         const struct spot *s) {
    int n = p->buffer[a->buffer].ndims;
    int64_t **row = arena_array(&x->arena, (size_t)n + 1, sizeof *row);
    for (int d = 0; d < n; d++)
        row[d] = row_of(x, p, a->coef + (size_t)d * ((size_t)p->naxes + 1), s);
    return row;
}

static isl_aff *aff_of(struct equal *x, isl_space *space, const int64_t *row, int n) {
    isl_aff *aff = isl_aff_zero_on_domain(isl_local_space_from_space(space));
    for (int d = 0; d < n; d++)
        if (row[d + 1])
            aff = isl_aff_set_coefficient_val(aff, isl_dim_in, d,
                                              isl_val_int_from_si(x->ctx, row[d + 1]));
    return isl_aff_set_constant_val(aff, isl_val_int_from_si(x->ctx, row[0]));
}

void row_end(int64_t *up, const int64_t *at, int n, const struct axis *a) {
    int64_t group = a->group && !a->rest ? a->group : 1;
    for (int d = 0; d <= n; d++) up[d] = -group * at[d];
    row_add_extent(up, a->extent, a->size);
    up[0] -= a->size ? group - 1 : 0;
}

void row_add_extent(int64_t *row, int64_t extent, int size) {
    row[0] += size ? -1 : extent - 1;
    row[size] += size ? 1 : 0;
}

static bool identity(int64_t *const *row, int m, int n) {
    for (int d = 0; d < m; d++)
        for (int k = 0; k <= n; k++)
            if (row[d][k] != (k == d + 1)) return false;
    return m == n;
}

/* dom over (context, own) at context = row(w): over (w, own) */
static isl_set *set_at(struct equal *x, const isl_set *dom, int64_t *const *row, int m, int own,
                       int n) {
    isl_space *from = isl_space_set_alloc(x->ctx, 0, (unsigned)(n + own)),
              *to = isl_space_set_alloc(x->ctx, 0, (unsigned)(m + own));
    isl_multi_aff *ma =
        isl_multi_aff_zero(isl_space_map_from_domain_and_range(isl_space_copy(from), to));
    for (int d = 0; d < m + own; d++) {
        int64_t *r = equal_row(x, n + own);
        if (d < m)
            memcpy(r, row[d], (size_t)(n + 1) * sizeof *r);
        else
            r[1 + n + d - m] = 1;
        ma = isl_multi_aff_set_aff(ma, d, aff_of(x, isl_space_copy(from), r, n + own));
    }
    isl_space_free(from);
    return isl_set_preimage_multi_aff(isl_set_copy((isl_set *)dom), ma);
}

static struct atom atom_at(struct equal *x, const struct atom *a, int64_t *const *row, int m, int n,
                           int own) {
    struct atom b = *a;
    b.row = arena_array(&x->arena, (size_t)a->nrows + 1, sizeof *b.row);
    for (int r = 0; r < a->nrows; r++) {
        b.row[r] = equal_row(x, n + own);
        b.row[r][0] = a->row[r][0];
        for (int d = 0; d < m; d++)
            for (int k = 0; k <= n; k++) b.row[r][k] += a->row[r][d + 1] * row[d][k];
        for (int d = 0; d < own; d++) b.row[r][1 + n + d] = a->row[r][1 + m + d];
    }
    return b;
}

struct form *form_at(struct equal *x, const struct form *f, int64_t *const *row,
                     const struct spot *s) {
    if (identity(row, f->m, s->n)) return form_within(x, f, s);
    struct form *g = form_new(x, f->type, s->n);
    g->sum = f->sum;
    g->product = f->product;
    for (int k = 0; k < f->nterms && !x->failed; k++) {
        const struct term *u = &f->term[k];
        int own = u->n - f->m;
        if (s->n + own > MAX_SPACE)
            return equal_stop(x, "its relations have too many dimensions"), g;
        isl_set *dom = isl_set_intersect(set_at(x, u->dom, row, f->m, own, s->n),
                                         set_more(isl_set_copy(s->dom), own));
        if (isl_set_is_empty(dom) == isl_bool_true) {
            isl_set_free(dom);
            continue;
        }
        struct term *t = form_add(x, g);
        *t = *u;
        t->n = s->n + own;
        t->dom = equal_keep(x, dom);
        t->name = arena_array(&x->arena, (size_t)t->n + 1, sizeof *t->name);
        memcpy(t->name, s->name, (size_t)s->n * sizeof *t->name);
        memcpy(t->name + s->n, u->name + f->m, (size_t)own * sizeof *t->name);
        t->atom = arena_array(&x->arena, (size_t)u->natoms + 1, sizeof *t->atom);
        for (int a = 0; a < u->natoms; a++)
            t->atom[a] = atom_at(x, &u->atom[a], row, f->m, s->n, own);
    }
    return g;
}

/* ---- joining a read with a writer ---- */

static int sole(const struct program *p, const int64_t *coef, int64_t *c) {
    int found = -1;
    for (int a = 0; a < p->naxes; a++) {
        if (!coef[a]) continue;
        if (found >= 0) return -1;
        found = a;
        *c = coef[a];
    }
    return found;
}

/* The axis that is c times in an index equal to the row, beside the constant; NULL: not everywhere
 * a whole number. */
static int64_t *row_divided(struct equal *x, const int64_t *row, int n, int64_t constant,
                            int64_t c) {
    int64_t *out = row_longer(x, row, n, 0);
    out[0] -= constant;
    for (int k = 0; k <= n; k++) {
        if (out[k] % c != 0) return NULL;
        out[k] /= c;
    }
    return out;
}

/* An index over several axes gives one that it has once, from the others. */
static void solve_axes(const struct program *p, const struct stmt *st, const bool *given,
                       uint64_t *known, int *solved) {
    for (int d = 0; d < p->buffer[st->dst.buffer].ndims; d++) {
        const int64_t *coef = st->dst.coef + (size_t)d * ((size_t)p->naxes + 1);
        solved[d] = -1;
        for (int a = 0; a < p->naxes && !given[d]; a++)
            if ((coef[a] == 1 || coef[a] == -1) && st->axes >> a & 1 && !(*known >> a & 1))
                solved[d] = a;
        for (int a = 0; a < p->naxes && !given[d]; a++)
            if (coef[a]) *known |= UINT64_C(1) << a;
    }
}

static void solve_axis(struct equal *x, const struct program *p, const int64_t *coef, int axis,
                       const int64_t *row, int n, struct spot *s) {
    int64_t *rest = arena_copy(&x->arena, coef, ((size_t)p->naxes + 1) * sizeof *rest);
    rest[axis] = 0;
    int64_t *is = row_of(x, p, rest, s);
    for (int k = 0; k <= s->n; k++) is[k] = (k <= n ? row[k] : 0) - is[k];
    for (int k = 0; k <= s->n && coef[axis] < 0; k++) is[k] = -is[k];
    s->axis[axis] = is;
}

/* The instances of the statement that write the elements: axes that indices give are rows over what
 * is there, the others are dimensions of their own. */
static struct spot instances(struct equal *x, const struct side *side, int event,
                             int64_t *const *row, const struct spot *c) {
    const struct program *p = side->p;
    const struct stmt *st = &p->stmt[side->event[event].stmt];
    struct spot s = {.n = c->n, .compared = c->compared};
    int ndims = p->buffer[st->dst.buffer].ndims, solved[MAX_DIMS];
    size_t width = (size_t)p->naxes + 1;
    bool given[MAX_DIMS] = {0};
    uint64_t known = 0, free_axes = st->axes;
    s.axis = arena_array(&x->arena, width, sizeof *s.axis);
    for (int e = event_around(side, event); e >= 0; e = event_around(side, e))
        s.axis[side->event[e].recur->axis] = c->axis[side->event[e].recur->axis];
    for (int d = 0; d < ndims; d++) {
        int64_t k = 0;
        const int64_t *coef = st->dst.coef + (size_t)d * width;
        int a = sole(p, coef, &k);
        if (a < 0 || s.axis[a] || !(st->axes >> a & 1)) continue;
        if (!(s.axis[a] = row_divided(x, row[d], c->n, coef[p->naxes], k))) continue;
        given[d] = true;
        known |= UINT64_C(1) << a;
    }
    free_axes &= ~known;
    solve_axes(p, st, given, &known, solved);
    for (int d = 0; d < ndims; d++)
        if (solved[d] >= 0) free_axes &= ~(UINT64_C(1) << solved[d]);
    s.n += __builtin_popcountll(free_axes);
    if (s.n > MAX_SPACE) {
        equal_stop(x, "its relations have too many dimensions");
        return *c;
    }
    s.name = arena_array(&x->arena, (size_t)s.n + 1, sizeof *s.name);
    memcpy(s.name, c->name, (size_t)c->n * sizeof *s.name);
    for (int a = 0, at = c->n; a < p->naxes; a++) {
        if (s.axis[a]) s.axis[a] = row_longer(x, s.axis[a], c->n, s.n - c->n);
        if (!(free_axes >> a & 1)) continue;
        s.name[at] = p->axis[a].name;
        s.axis[a] = equal_row(x, s.n);
        s.axis[a][1 + at++] = 1;
    }
    for (int d = 0; d < ndims; d++)
        if (solved[d] >= 0)
            solve_axis(x, p, st->dst.coef + (size_t)d * width, solved[d], row[d], c->n, &s);
    isl_set *dom = set_more(isl_set_copy(c->dom), s.n - c->n);
    for (int a = 0; a < p->naxes; a++) {
        if (!(st->axes >> a & 1)) continue;
        int64_t *up = equal_row(x, s.n);
        row_end(up, s.axis[a], s.n, &p->axis[a]);
        dom = set_with(x, set_with(x, dom, s.axis[a], s.n, false), up, s.n, false);
    }
    for (int d = 0; d < ndims; d++) {
        if (given[d] || solved[d] >= 0) continue;
        int64_t *is = row_of(x, p, st->dst.coef + (size_t)d * width, &s);
        for (int k = 0; k <= c->n; k++) is[k] -= row[d][k];
        dom = set_with(x, dom, is, s.n, true);
    }
    for (int w = 0; w < st->nwhere; w++)
        dom = set_with(x, dom, row_of(x, p, st->where[w].coef, &s), s.n, false);
    s.dom = equal_keep(x, dom);
    return s;
}

/* Every element of the buffer, by extents alone. */
bool equal_writes_all(const struct program *p, const struct stmt *st) {
    uint64_t seen = 0;
    if (st->nwhere) return false;
    for (int d = 0; d < p->buffer[st->dst.buffer].ndims; d++) {
        const int64_t *coef = st->dst.coef + (size_t)d * ((size_t)p->naxes + 1);
        int64_t k = 0, n = p->buffer[st->dst.buffer].extent[d];
        int a = sole(p, coef, &k), size = d ? 0 : p->buffer[st->dst.buffer].size;
        bool one = n == 1 && a < 0;
        for (int b = 0; b <= p->naxes; b++) one &= coef[b] == 0;
        if (one) continue;
        if (a < 0 || k != 1 || coef[p->naxes] || seen >> a & 1 || p->axis[a].extent < n ||
            !(st->axes >> a & 1) ||
            (p->axis[a].size && (p->axis[a].size != size || p->axis[a].group)))
            return false;
        seen |= UINT64_C(1) << a;
    }
    return true;
}

static isl_set *written_of(struct equal *x, const struct spot *in, const struct spot *c) {
    isl_set *w = isl_set_project_out(isl_set_copy(in->dom), isl_dim_set, (unsigned)c->n,
                                     (unsigned)(in->n - c->n));
    return equal_keep(x, w);
}

struct spot spot_without(struct equal *x, const struct spot *c, isl_set *gone) {
    struct spot rest = *c;
    rest.dom =
        equal_keep(x, isl_set_coalesce(isl_set_subtract(isl_set_copy(c->dom), isl_set_copy(gone))));
    return rest;
}

/* ---- contents ---- */

struct form *content_form(struct equal *x, int content, enum type t, int ndims, int64_t *const *row,
                          const struct spot *c) {
    struct form *f = form_new(x, t, c->n);
    struct term *u = form_add(x, f);
    struct atom *a = arena_alloc(&x->arena, sizeof *a);
    *a = (struct atom){.content = content, .code = OP_READ, .type = t, .from = t, .nrows = ndims};
    a->row = arena_array(&x->arena, (size_t)ndims + 1, sizeof *a->row);
    for (int d = 0; d < ndims; d++) a->row[d] = row_longer(x, row[d], c->n, 0);
    *u = (struct term){
        .dom = c->dom, .n = c->n, .name = c->name, .f = 1, .i = 1, .atom = a, .natoms = 1};
    return f;
}

int content_new(struct equal *x, enum type t) {
    if (x->ncontents == MAX_CONTENTS) {
        equal_stop(x, "it has too many buffers");
        return 0;
    }
    x->content[x->ncontents] =
        (struct content){type_reach(type_is_float(t) ? TYPE_I64 : t), t, {-1, -1}};
    return x->ncontents++;
}

static struct form *form_node(struct equal *x, struct side *s, int event, int node,
                              const struct spot *c);

static struct form *form_root(struct equal *x, struct side *s, int event, const struct spot *c) {
    const struct stmt *st = &s->p->stmt[s->event[event].stmt];
    struct form *f = form_node(x, s, event, st->nops - 1, c);
    enum type t = s->p->buffer[st->dst.buffer].type;
    if (t == TYPE_F16 || t == TYPE_BF16) f = form_cast(x, f, t, TYPE_F32, c);
    return f;
}

/* f over more dimensions, as terms of their own over the context c. */
static struct form *form_summed(struct form *f, const struct spot *c, bool sum) {
    f->m = c->n;
    f->sum |= sum;
    return f;
}

struct form *form_folded(struct equal *x, enum opcode code, enum type type, struct form *all,
                         const struct spot *in, struct form *first, const struct spot *c) {
    struct form *arg[2] = {form_retyped(x, all, type), form_retyped(x, first, type)},
                *f = form_operation(x, code, type, type, arg, 2, c);
    f->term[0].atom[0].points = in->dom;
    f->term[0].atom[0].npoints = in->n;
    return f;
}

/* May an element be written more than once by the instances? */
static bool meets(const struct spot *in, const struct spot *c) {
    isl_map *of = set_as_map(in->dom, c->n);
    bool once = isl_map_is_single_valued(of) == isl_bool_true;
    isl_map_free(of);
    return !once;
}

/* dst op= value: what was there, with all contributions. A value that reads the element itself is
 * known where it is the only one. */
static struct form *form_accumulated(struct equal *x, struct side *s, int event,
                                     int64_t *const *row, const struct spot *c, struct spot *in) {
    const struct stmt *st = &s->p->stmt[s->event[event].stmt];
    enum type t = s->p->buffer[st->dst.buffer].type;
    bool rounds = t == TYPE_F16 || t == TYPE_BF16;
    for (int r = 0; r < st->nreads; r++)
        if (st->read[r].buffer == st->dst.buffer && meets(in, c))
            return equal_stop(x, "a sum reads what it writes"), form_new(x, t, c->n);
    struct form *all = form_root(x, s, event, in);
    if (st->combine == COMBINE_ADD && !rounds) {
        all = form_summed(all, c, true);
        struct form *f = form_element(x, s, event, st->dst.buffer, row, c),
                    *g = form_new(x, t, c->n);
        form_join(x, g, f, 1);
        form_drop_zeros(x, g);
        form_join(x, g, all, 1);
        g->sum = true;
        return g;
    }
    isl_set *written = written_of(x, in, c);
    struct spot rest = spot_without(x, c, written), there = *c;
    there.dom = written;
    if (x->failed) return all;
    bool chooses = st->combine == COMBINE_MAX || st->combine == COMBINE_MIN;
    struct form *f =
        form_folded(x, combiner_op(st->combine), rounds && chooses ? TYPE_F32 : t, all, in,
                    form_element(x, s, event, st->dst.buffer, row, &there), &there);
    if (rounds) f = form_cast(x, f, t, TYPE_F32, &there);
    if (!equal_is_empty(x, rest.dom))
        form_join(x, f, form_element(x, s, event, st->dst.buffer, row, &rest), 1);
    return f;
}

/* What one side has only after what is compared, the other side must not read as it is. */
static bool comes_before(const struct equal *x, int content) {
    const struct content *c = &x->content[content];
    return c->event[0] < x->before[0] && c->event[1] < x->before[1];
}

int equal_content(const struct equal *x, const struct side *s, int before, int buffer,
                  int *writer) {
    int w = *writer = event_writer(s, before, buffer);
    int content = w >= 0 ? *event_content(s, w, buffer) : s->initial[buffer];
    return content >= 0 && w >= 0 && !x->shallow && !comes_before(x, content) ? -1 : content;
}

/* ---- elements ---- */

/* Contents inside recurrences are those of the step that is compared. */
static bool other_step(const struct side *s, int writer, const struct spot *c) {
    const struct event *e = writer >= 0 ? &s->event[writer] : NULL;
    int enter = !e ? -1
                : e->kind == EVENT_ENTER
                    ? writer
                    : event_around(s, e->kind == EVENT_LEAVE ? e->match : writer);
    for (; enter >= 0; enter = event_around(s, enter))
        if (!(c->compared >> s->event[enter].recur->axis & 1)) return true;
    return false;
}

static struct form *element_followed(struct equal *x, struct side *s, int before, int buffer,
                                     int64_t *const *row, const struct spot *c) {
    const struct buffer *b = &s->p->buffer[buffer];
    int w, known = equal_content(x, s, before, buffer, &w);
    if (other_step(s, w, c)) known = -1;
    if (x->failed || ++x->depth > MAX_DEPTH) {
        equal_stop(x, "its chain of statements is too long");
        return form_new(x, b->type, c->n);
    }
    int content = x->shallow && buffer != x->shallow - 1 ? content_new(x, b->type) : known;
    if (w < 0 && content < 0) content = s->initial[buffer] = content_new(x, b->type);
    struct form *f = NULL;
    if (content >= 0) {
        f = content_form(x, content, b->type, b->ndims, row, c);
    } else if (s->event[w].kind == EVENT_COPY) {
        f = form_element(x, s, w, s->event[w].from, row, c);
    } else if (s->event[w].kind == EVENT_LEAVE) {
        f = form_behind(x, s, w, buffer, row, c);
    } else if (s->event[w].kind == EVENT_ENTER && other_step(s, w, c)) {
        f = form_untouched(x, s, w, buffer, row, c);
    } else if (s->event[w].kind == EVENT_ENTER) {
        equal_stop(x, "steps of a recurrence hand it on, where the programs differ");
    } else if ((f = form_next_state(x, s, before, buffer, row, c)) || x->failed) {
    } else {
        const struct stmt *st = &s->p->stmt[s->event[w].stmt];
        struct spot in = instances(x, s, w, row, c);
        if (x->failed) {
        } else if (st->combine != COMBINE_SET) {
            f = form_accumulated(x, s, w, row, c, &in);
        } else {
            f = form_summed(form_root(x, s, w, &in), c, false);
            x->used |= LAW(COPY);
            bool part = !x->failed && !equal_writes_all(s->p, st);
            struct spot rest = part ? spot_without(x, c, written_of(x, &in, c)) : *c;
            if (part && !x->failed && !equal_is_empty(x, rest.dom))
                form_join(x, f, form_element(x, s, w, buffer, row, &rest), 1);
        }
    }
    x->depth--;
    return f ? f : form_new(x, b->type, c->n);
}

/* Outside of recurrences the writer says all of the place; inside, the steps too. */
static struct question element_question(struct equal *x, const struct side *s, int before,
                                        int buffer, int64_t *const *row, const struct spot *c) {
    int around = event_around(s, before), writer = event_writer(s, before, buffer);
    struct question q = {.kind = ASKED_ELEMENT,
                         .of = {s, NULL},
                         .at = {buffer, around < 0 ? writer : before, around},
                         .spot = c,
                         .unknown = x->shallow || x->open.on || writer < 0};
    for (int d = 0; d < s->p->buffer[buffer].ndims && !q.unknown; d++)
        question_row(x, &q, row[d], c->n);
    for (int e = around; e >= 0 && !q.unknown; e = event_around(s, e)) {
        const int64_t *step = c->axis[s->event[e].recur->axis];
        if (step) question_row(x, &q, step, c->n);
        q.unknown |= !step;
    }
    return q;
}

struct form *form_element(struct equal *x, struct side *s, int before, int buffer,
                          int64_t *const *row, const struct spot *c) {
    struct question q = element_question(x, s, before, buffer, row, c);
    struct form *f = known_form(x, &q);
    if (f) return f;
    f = element_followed(x, s, before, buffer, row, c);
    known_note_form(x, &q, f);
    return f;
}

/* ---- operations ---- */

static bool inside_always(struct equal *x, const struct program *p, const struct access *a,
                          int64_t *const *row, const struct spot *c, isl_set **inside) {
    isl_set *in = isl_set_copy(c->dom);
    for (int d = 0; d < p->buffer[a->buffer].ndims; d++) {
        int64_t *up = equal_row(x, c->n);
        for (int k = 0; k <= c->n; k++) up[k] = -row[d][k];
        up[0] += p->buffer[a->buffer].extent[d] - 1;
        in = set_with(x, set_with(x, in, row[d], c->n, false), up, c->n, false);
    }
    *inside = equal_keep(x, in);
    return x->failed || isl_set_is_subset(c->dom, in) == isl_bool_true;
}

static struct form *form_read(struct equal *x, struct side *s, int event, const struct access *a,
                              const struct spot *c) {
    int64_t **row = rows_of(x, s->p, a, c);
    isl_set *in = NULL;
    enum type t = s->p->buffer[a->buffer].type;
    if (x->failed) return form_new(x, t, c->n);
    if (!a->has_fill || inside_always(x, s->p, a, row, c, &in))
        return form_element(x, s, event, a->buffer, row, c);
    struct spot here = *c, rest = spot_without(x, c, in);
    here.dom = in;
    struct form *f = equal_is_empty(x, in) ? form_new(x, t, c->n)
                                           : form_element(x, s, event, a->buffer, row, &here);
    if (!x->failed) form_join(x, f, form_literal(x, t, a->fill, &rest), 1);
    return f;
}

/* Where a condition on indices holds; NULL: it is none. */
static isl_set *holds(struct equal *x, struct side *s, int event, int node, const struct spot *c) {
    const struct stmt *st = &s->p->stmt[s->event[event].stmt];
    const struct op *o = &st->op[node];
    if (o->code == OP_READ) return form_truth(x, form_node(x, s, event, node, c), c);
    if (o->code == OP_AND || o->code == OP_OR) {
        if (o->type != TYPE_BOOL) return NULL;
        isl_set *a = holds(x, s, event, o->arg[0], c);
        return where_joined(x, o->code, a, a ? holds(x, s, event, o->arg[1], c) : NULL);
    }
    if (o->code < OP_EQ || o->code > OP_GE || type_is_float(st->op[o->arg[0]].type)) return NULL;
    struct form *a = form_node(x, s, event, o->arg[0], c),
                *b = form_node(x, s, event, o->arg[1], c);
    return form_compared(x, o->code, a, b, c);
}

static struct form *form_select(struct equal *x, struct side *s, int event, const struct op *o,
                                const struct spot *c) {
    isl_set *where = holds(x, s, event, o->arg[0], c);
    if (x->failed || !where) return NULL;
    struct spot yes = *c, no = spot_without(x, c, where);
    struct form *f = form_new(x, o->type, c->n);
    yes.dom = where;
    if (x->failed) return f;
    if (!equal_is_empty(x, where)) form_join(x, f, form_node(x, s, event, o->arg[1], &yes), 1);
    if (!x->failed && !equal_is_empty(x, no.dom))
        form_join(x, f, form_node(x, s, event, o->arg[2], &no), 1);
    return f;
}

static struct form *form_index(struct equal *x, int64_t *row, const struct spot *c) {
    struct form *none[1] = {NULL}, *f = form_operation(x, OP_AXIS, TYPE_I64, TYPE_I64, none, 0, c);
    f->term[0].atom->nrows = 1;
    f->term[0].atom->row = arena_array(&x->arena, 1, sizeof(int64_t *));
    f->term[0].atom->row[0] = row;
    return f;
}

static struct form *form_sum(struct equal *x, const struct op *o, struct form *const *arg,
                             const struct spot *c) {
    bool floats = type_is_float(o->type), fused = arg[0]->sum || (o->code != OP_NEG && arg[1]->sum);
    if (floats && fused && !(x->laws & LAW(ASSOCIATE)))
        return form_operation(x, o->code, o->type, o->type, arg, o->code == OP_NEG ? 1 : 2, c);
    struct form *f = form_new(x, o->type, c->n);
    if (o->code != OP_NEG) form_join(x, f, arg[0], 1);
    form_join(x, f, arg[o->code == OP_NEG ? 0 : 1], o->code == OP_ADD ? 1 : -1);
    if (o->code != OP_NEG) f->sum = true;
    form_drop_zeros(x, f);
    if (floats && fused) x->used |= LAW(ASSOCIATE);
    return f;
}

/* x & (2^k - 1) = x - 2^k · floor(x / 2^k) */
static struct form *form_mask(struct equal *x, struct form *f, int64_t mask, const struct spot *c) {
    int k = 0;
    while (k < 62 && mask >> k & 1) k++;
    if (k == 0 || mask != (INT64_C(1) << k) - 1 || !reach_fits(form_range(x, f), f->type))
        return NULL;
    struct form *g = form_new(x, f->type, c->n), *q = form_shift(x, f, k, c);
    form_join(x, g, f, 1);
    form_join(x, g,
              form_product(x, q,
                           form_literal(x, f->type, (union value){.i = -(INT64_C(1) << k)}, c),
                           f->type, c),
              1);
    g->sum = true;
    return g;
}

static struct form *form_integer(struct equal *x, const struct op *o, struct form *const *arg,
                                 const struct spot *c) {
    union value v;
    if (o->code == OP_SHR && form_constant(arg[1], c->dom, &v) && v.i >= 0 &&
        v.i < 8 * (int64_t)type_size(o->type) && v.i < 62)
        return form_shift(x, arg[0], v.i, c);
    if (o->code == OP_SHL && form_constant(arg[1], c->dom, &v) && v.i >= 0 &&
        v.i < 8 * (int64_t)type_size(o->type) && v.i < 62)
        return form_product(x, arg[0],
                            form_literal(x, o->type, (union value){.i = INT64_C(1) << v.i}, c),
                            o->type, c);
    if (o->code == OP_AND && form_constant(arg[1], c->dom, &v)) return form_mask(x, arg[0], v.i, c);
    return NULL;
}

static struct form *form_node(struct equal *x, struct side *s, int event, int node,
                              const struct spot *c) {
    const struct stmt *st = &s->p->stmt[s->event[event].stmt];
    const struct op *o = &st->op[node];
    struct form *arg[3], *f = NULL;
    int n = op_info[o->code].arity;
    if (++x->nodes > MOST_NODES) equal_stop(x, "it takes too many steps");
    if (x->failed) return form_new(x, o->type, c->n);
    if (o->code == OP_READ) return form_read(x, s, event, &st->read[o->read], c);
    if (o->code == OP_LITERAL) return form_literal(x, o->type, o->value, c);
    if (o->code == OP_AXIS) {
        if (!c->axis[o->axis])
            return equal_stop(x, "it has an axis of a recurrence"), form_new(x, o->type, c->n);
        return form_cast(x, form_index(x, c->axis[o->axis], c), o->type, TYPE_I64, c);
    }
    if (o->code == OP_SELECT && (f = form_select(x, s, event, o, c))) return f;
    for (int k = 0; k < n; k++) arg[k] = form_node(x, s, event, o->arg[k], c);
    if (x->failed) return form_new(x, o->type, c->n);
    enum type from = st->op[o->arg[n - 1]].type;
    if (o->code == OP_CAST) return form_cast(x, arg[0], o->type, from, c);
    if (o->code == OP_MUL && o->type != TYPE_BOOL)
        return form_product(x, arg[0], arg[1], o->type, c);
    if ((o->code == OP_ADD || o->code == OP_SUB || o->code == OP_NEG) && o->type != TYPE_BOOL)
        return form_sum(x, o, arg, c);
    if (!type_is_float(o->type) && o->type != TYPE_BOOL && (f = form_integer(x, o, arg, c)))
        return f;
    return form_operation(x, o->code, o->type, from, arg, n, c);
}
