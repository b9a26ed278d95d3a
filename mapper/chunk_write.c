/* The steps of a chunk written at once: what depends on no state for all of them, then what reads
 * one, then the states behind the chunk. */
#include "mapper/chunk_int.h"
#include "ir/steps.h"

#include <string.h>

/* ---- places ---- */

/* Accesses at one step of the chunk, along the axis `row`; of a reader's, with the axes of the
 * state's dimensions as they are there. */
struct in_step {
    struct chunking *c;
    int row;
    const struct reader *reader;
};

static void rename_axes(const struct in_step *w, int64_t *row) {
    const struct chunking *c = w->c;
    const struct linear *l = &c->linear[w->reader->state];
    int64_t coef[MAX_DIMS];
    int n = c->body.p->buffer[c->body.r->state[l->state].next].ndims;
    for (int d = 0; d < n; d++) {
        coef[d] = row[l->axis[d]];
        row[l->axis[d]] = 0;
    }
    for (int d = 0; d < n; d++) row[w->reader->axis[d]] += coef[d];
}

/* k times the row of a step; the axis `step` counts steps as they are executed. */
static void add_row(const struct chunking *c, int64_t *row, int axis, int64_t k) {
    bool turned = c->body.r->reverse && axis == c->step;
    row[axis] += turned ? -k : k;
    if (turned) row[c->body.p->naxes] += k * (c->length - 1);
}

static struct access placed(void *user, const struct access *a, int read) {
    const struct in_step *w = user;
    struct chunking *c = w->c;
    struct program *p = c->body.p;
    struct access x = rw_copy(p, a);
    bool reverse = c->body.r->reverse;
    int step = c->body.r->axis;
    (void)read;
    for (int d = 0; d < p->buffer[a->buffer].ndims; d++) {
        int64_t *row = rw_row(p, &x, d), k = row[step];
        if (w->reader) rename_axes(w, row);
        row[step] = k * c->length;
        if (reverse) row[p->naxes] += k * (c->steps % c->length); /* the rest lies before */
        add_row(c, row, w->row, k);
    }
    if (a->buffer >= c->nbuffers || !c->by_rows[a->buffer]) return x;
    x = body_row(p, c->rows[a->buffer], &x);
    add_row(c, rw_row(p, &x, 0), w->row, 1);
    return x;
}

/* ---- statements ---- */

static struct draft open_like(struct chunking *c, int item, enum combiner combine,
                              struct access dst) {
    return draft_open(c->body.p, body_stmt(&c->body, item), combine, dst);
}

static void emit(struct chunking *c, struct draft *d) {
    struct program *p = c->body.p;
    d->s.axes = stmt_axes(p, &d->s) & ~(UINT64_C(1) << c->body.r->axis);
    int cap = c->cap;
    GROW(&p->arena, c->item, c->nitems, cap);
    GROW(&p->arena, c->made, c->nitems, c->cap);
    c->made[c->nitems] = false;
    c->item[c->nitems++] = body_append(p, d->s);
}

static void emit_number(struct chunking *c, int item, const struct access *dst, double value) {
    struct draft d = open_like(c, item, COMBINE_SET, rw_copy(c->body.p, dst));
    draft_number(&d, c->body.p->buffer[dst->buffer].type, value);
    emit(c, &d);
}

static bool wheres_equal(const struct program *p, const struct stmt *s, const struct stmt *t) {
    bool same = s->nwhere == t->nwhere;
    for (int k = 0; k < s->nwhere && same; k++)
        same = !memcmp(s->where[k].coef, t->where[k].coef,
                       ((size_t)p->naxes + 1) * sizeof *s->where[k].coef);
    return same;
}

/* The same value for the same elements. */
static bool stmts_equal(const struct program *p, const struct stmt *s, const struct stmt *t) {
    struct access to = t->dst;
    const struct buffer *a = &p->buffer[s->dst.buffer], *b = &p->buffer[t->dst.buffer];
    to.buffer = s->dst.buffer;
    bool same = s->combine == t->combine && a->type == b->type && a->ndims == b->ndims &&
                access_equal(p, &s->dst, &to) && s->nops == t->nops && s->nreads == t->nreads &&
                wheres_equal(p, s, t);
    for (int k = 0; k < s->nreads && same; k++) same = access_equal(p, &s->read[k], &t->read[k]);
    for (int k = 0; k < s->nops && same; k++) {
        const struct op *u = &s->op[k], *v = &t->op[k];
        same = u->code == v->code && u->type == v->type &&
               (u->code != OP_READ || u->read == v->read) &&
               (u->code != OP_LITERAL || !memcmp(&u->value, &v->value, sizeof u->value));
        for (int i = 0; i < op_info[u->code].arity && same; i++) same = u->arg[i] == v->arg[i];
    }
    return same;
}

/* What fills the temporary that was made last, which begins with `init` where it accumulates; a
 * temporary that has the same already serves in its place. */
static void emit_once(struct chunking *c, struct draft *d, int item, double init,
                      struct access *out) {
    struct program *p = c->body.p;
    d->s.axes = stmt_axes(p, &d->s) & ~(UINT64_C(1) << c->body.r->axis);
    for (int k = 0; k < c->nitems; k++)
        if (stmts_equal(p, &d->s, &p->stmt[c->item[k]]) && c->made[k]) {
            out->buffer = p->stmt[c->item[k]].dst.buffer;
            p->nbuffers--;
            return;
        }
    if (d->s.combine != COMBINE_SET) emit_number(c, item, out, init);
    emit(c, d);
    c->made[c->nitems - 1] = true;
}

/* Σ coef·axis + constant >= 0, of two axes */
static void limit(struct chunking *c, struct draft *d, int x, int64_t k, int y, int64_t m,
                  int64_t constant) {
    struct program *p = c->body.p;
    struct constraint *where = arena_array(&p->arena, (size_t)d->s.nwhere + 1, sizeof *where);
    if (d->s.nwhere) memcpy(where, d->s.where, sizeof *where * (size_t)d->s.nwhere);
    int64_t *row = arena_array(&p->arena, (size_t)p->naxes + 1, sizeof *row);
    row[x] = k;
    row[y] = m;
    row[p->naxes] = constant;
    where[d->s.nwhere++].coef = row;
    d->s.where = where;
}

/* Step w of D and E is behind step u. */
static void limit_until(struct chunking *c, struct draft *d) {
    if (c->body.r->reverse)
        limit(c, d, c->bound, -1, c->step, -1, c->length - 1);
    else
        limit(c, d, c->bound, 1, c->step, -1, chunk_first(c) - 1);
}

/* Step u is behind step s of D. */
static void limit_from(struct chunking *c, struct draft *d) {
    bool reverse = c->body.r->reverse;
    limit(c, d, c->step, 1, c->other, reverse ? 1 : -1, reverse ? -c->length : -1);
}

/* The product, times what is there already; -1: there was nothing. */
static int times(struct draft *d, const struct product *x, uint32_t mask, struct in_step w,
                 int value) {
    const struct stmt from = *body_stmt(&w.c->body, x->item);
    int more = draft_product_mapped(d, &from, &x->f, mask, placed, &w);
    return value < 0 ? more : more < 0 ? value : draft_binary(d, OP_MUL, value, more);
}

static int times_read(struct draft *d, struct access a, int value) {
    int x = draft_read(d, a);
    return value < 0 ? x : draft_binary(d, OP_MUL, value, x);
}

static bool temporary(struct chunking *c, const char *suffix, enum type t, uint64_t axes,
                      const int *first, int nfirst, const int *last, int nlast,
                      struct access *out) {
    struct program *p = c->body.p;
    int list[MAX_AXES], n = 0;
    const char *state = p->buffer[c->body.r->state[0].current].name;
    for (int k = 0; k < nfirst; k++) list[n++] = first[k];
    n += rw_axes(axes & ~(UINT64_C(1) << c->body.r->axis), list + n);
    for (int k = 0; k < nlast && n < MAX_AXES; k++) list[n++] = last[k];
    return rw_temporary_of(p, arena_printf(&p->arena, "%s.%s", state, suffix), t, list, n, out);
}

/* ---- D and E ---- */

static int scaled_list(const struct chunking *c, const struct linear *l, int *axis) {
    int n = 0, ndims = c->body.p->buffer[c->body.r->state[l->state].next].ndims;
    for (int d = 0; d < ndims; d++)
        if (l->scale_axes >> l->axis[d] & 1) axis[n++] = d;
    return n;
}

/* a(u), made once for each step where more than one element is read for it. */
static bool write_scale(struct chunking *c, struct linear *l) {
    const struct stmt *s = body_stmt(&c->body, l->scale.item);
    l->scaling.buffer = -1;
    if (l->scale.f.n == 1 && s->op[l->scale.f.node[0]].code == OP_READ) return true;
    if (!temporary(c, "decays", l->scale.f.type, l->scale_axes, &c->row, 1, NULL, 0, &l->scaling))
        return false;
    struct draft d = open_like(c, l->scale.item, COMBINE_SET, rw_copy(c->body.p, &l->scaling));
    times(&d, &l->scale, ~UINT32_C(0), (struct in_step){c, c->row, NULL}, -1);
    emit_once(c, &d, l->scale.item, 0, &l->scaling);
    return true;
}

static void times_scale(struct chunking *c, struct draft *d, const struct linear *l) {
    struct program *p = c->body.p;
    if (l->scaling.buffer < 0) {
        times(d, &l->scale, ~UINT32_C(0), (struct in_step){c, c->step, NULL}, -1);
        return;
    }
    struct access a = rw_copy(p, &l->scaling);
    rw_row(p, &a, 0)[c->row] = 0;
    add_row(c, rw_row(p, &a, 0), c->step, 1);
    draft_read(d, a);
}

/* D[…, w, s] of a chunk, or E[…, w]: from 1 on, times a(u) of the steps u < w, behind s. */
static bool write_product(struct chunking *c, struct linear *l, bool pairs) {
    int last[2] = {c->bound, c->other}, n = pairs ? 2 : 1;
    struct access to;
    if (!temporary(c, pairs ? "pairs" : "scales", l->scale.f.type, l->scale_axes, NULL, 0, last, n,
                   &to))
        return false;
    struct draft d = open_like(c, l->scale.item, COMBINE_MUL, rw_copy(c->body.p, &to));
    times_scale(c, &d, l);
    limit_until(c, &d);
    if (pairs) limit_from(c, &d);
    emit_once(c, &d, l->scale.item, 1, &to);
    *(pairs ? &l->factors : &l->scales) = to.buffer;
    return true;
}

static bool write_factors(struct chunking *c, struct linear *l) {
    return !l->scale.f.n ||
           (write_scale(c, l) && write_product(c, l, true) && write_product(c, l, false));
}

/* D or E where the step is `row` + add (row -1: add alone). */
static struct access product_at(struct chunking *c, const struct linear *l, const struct reader *r,
                                bool pairs, int row, int64_t add) {
    struct program *p = c->body.p;
    struct access a = rw_access(p, pairs ? l->factors : l->scales);
    int dim[MAX_DIMS], axis[MAX_AXES], n = scaled_list(c, l, dim);
    /* the temporary's dimensions are in the order of the axes of the statement that scales */
    rw_axes(l->scale_axes, axis);
    for (int k = 0; k < n; k++)
        for (int d = 0; d < n; d++)
            if (l->axis[dim[d]] == axis[k])
                rw_row(p, &a, k)[r ? r->axis[dim[d]] : l->axis[dim[d]]] = 1;
    if (row >= 0) rw_row(p, &a, n)[row] = 1;
    rw_row(p, &a, n)[p->naxes] = !c->body.r->reverse ? add - chunk_first(c)
                                 : row >= 0          ? 1 - add
                                                     : c->length - add;
    if (pairs) rw_row(p, &a, n + 1)[c->other] = 1;
    return a;
}

static uint64_t scaled_there(const struct chunking *c, const struct linear *l,
                             const struct reader *r) {
    int dim[MAX_DIMS], n = scaled_list(c, l, dim);
    uint64_t axes = 0;
    for (int k = 0; k < n; k++) axes |= UINT64_C(1) << r->axis[dim[k]];
    return axes;
}

/* ---- who reads a state ---- */

static struct access reader_dst(struct chunking *c, const struct reader *r) {
    struct in_step w = {c, c->row, NULL};
    return placed(&w, &body_stmt(&c->body, r->item)->dst, -1);
}

static struct access state_before(struct chunking *c, const struct reader *r) {
    struct program *p = c->body.p;
    return rw_indexed(p, c->body.r->state[c->linear[r->state].state].current, r->axis);
}

/* What the state before the chunk gives. */
static bool write_before(struct chunking *c, const struct reader *r) {
    const struct linear *l = &c->linear[r->state];
    struct in_step w = {c, c->row, NULL};
    struct access scaled;
    if (l->scale.f.n) {
        uint64_t axes = chunk_axes(&r->own, ~UINT32_C(0)) | scaled_there(c, l, r);
        if (!temporary(c, "scaled", r->own.f.type, axes, &c->row, 1, NULL, 0, &scaled))
            return false;
        struct draft d = open_like(c, r->item, COMBINE_SET, rw_copy(c->body.p, &scaled));
        int value = times(&d, &r->own, ~UINT32_C(0), w, -1);
        times_read(&d, product_at(c, l, r, false, c->row, r->next), value);
        emit_once(c, &d, r->item, 0, &scaled);
    }
    struct draft d = open_like(c, r->item, COMBINE_ADD, reader_dst(c, r));
    int value = l->scale.f.n ? draft_read(&d, rw_copy(c->body.p, &scaled))
                             : times(&d, &r->own, ~UINT32_C(0), w, -1);
    times_read(&d, state_before(c, r), value);
    emit(c, &d);
    return true;
}

/* Sums over pairs of steps of what both bring along the axes that the reader sums over; *out: none
 * where neither does. */
static bool write_pairs(struct chunking *c, const struct reader *r, const struct product *b,
                        uint32_t mine, uint32_t theirs, uint64_t kept, struct access *out) {
    int last[2] = {c->row, c->other};
    struct in_step at_row = {c, c->row, NULL}, at_other = {c, c->other, r};
    out->buffer = -1;
    if (!mine && !theirs) return true;
    if (!temporary(c, "products", r->own.f.type, kept, NULL, 0, last, 2, out)) return false;
    struct draft d = open_like(c, r->item, COMBINE_ADD, rw_copy(c->body.p, out));
    times(&d, b, theirs, at_other, times(&d, &r->own, mine, at_row, -1));
    emit_once(c, &d, r->item, 0, out);
    return true;
}

/* What an element of a sum over pairs of steps is the sum of. */
struct within {
    const struct reader *r;
    const struct product *b;
    uint64_t axes;         /* of the pairs' elements, steps aside */
    uint32_t mine, theirs; /* factors that are in it */
};

/* The same scaled by what lies between the two steps, and by all that has no other axes. */
static bool write_weights(struct chunking *c, struct within *w, struct access *pairs) {
    const struct linear *l = &c->linear[w->r->state];
    bool scales = l->scale.f.n > 0;
    uint64_t axes = w->axes | (scales ? scaled_there(c, l, w->r) : 0);
    uint32_t mine = chunk_factors(c, &w->r->own, axes, NULL) & ~w->mine,
             theirs = chunk_factors(c, w->b, axes, w->r) & ~w->theirs;
    int last[2] = {c->row, c->other};
    struct in_step at_row = {c, c->row, NULL}, at_other = {c, c->other, w->r};
    struct access to;
    if (!scales && !mine && !theirs) return true;
    if (!temporary(c, "weights", w->r->own.f.type, axes, NULL, 0, last, 2, &to)) return false;
    struct draft d = open_like(c, w->r->item, COMBINE_SET, rw_copy(c->body.p, &to));
    int value = pairs->buffer < 0 ? -1 : draft_read(&d, rw_copy(c->body.p, pairs));
    if (scales) value = times_read(&d, product_at(c, l, w->r, true, c->row, w->r->next), value);
    value = times(&d, &w->r->own, mine, at_row, value);
    times(&d, w->b, theirs, at_other, value);
    emit_once(c, &d, w->r->item, 0, &to);
    w->mine |= mine;
    w->theirs |= theirs;
    *pairs = to;
    return true;
}

/* What earlier steps of the chunk added, this one too where the next value is read. */
static bool write_within(struct chunking *c, const struct reader *r, const struct product *b) {
    const struct stmt *s = body_stmt(&c->body, r->item);
    uint64_t reduced = s->axes & ~rw_access_axes(c->body.p, &s->dst);
    struct within w = {r, b, 0, chunk_inner(&r->own, reduced, NULL, NULL),
                       chunk_inner(b, reduced, c, r)};
    struct in_step at_row = {c, c->row, NULL}, at_other = {c, c->other, r};
    struct access pairs;
    w.axes =
        (chunk_axes(&r->own, w.mine) | chunk_renamed(c, r, chunk_axes(b, w.theirs))) & ~reduced;
    if (!write_pairs(c, r, b, w.mine, w.theirs, w.axes, &pairs) || !write_weights(c, &w, &pairs))
        return false;
    struct draft d = open_like(c, r->item, COMBINE_ADD, reader_dst(c, r));
    int value = pairs.buffer < 0 ? -1 : draft_read(&d, rw_copy(c->body.p, &pairs));
    value = times(&d, &r->own, ~w.mine, at_row, value);
    times(&d, b, ~w.theirs, at_other, value);
    int64_t sign = c->body.r->reverse ? -1 : 1;
    limit(c, &d, c->row, sign, c->other, -sign, r->next ? 0 : -1);
    d.s.untold = true;
    emit(c, &d);
    return true;
}

static bool write_reader(struct chunking *c, const struct reader *r) {
    const struct linear *l = &c->linear[r->state];
    for (int k = 0; k < l->nadded; k++)
        if (!write_within(c, r, &l->added[k])) return false;
    return write_before(c, r);
}

/* ---- states ---- */

/* One factor is scaled beforehand, with all that have no other axes. */
static bool write_added(struct chunking *c, const struct linear *l, const struct product *b) {
    struct in_step w = {c, c->other, NULL};
    bool scales = l->scale.f.n > 0;
    uint64_t axes = 0;
    uint32_t one = chunk_scaled(c, l, b, &axes);
    bool apart = chunk_apart(l, one);
    struct access scaled;
    if (apart) {
        if (!temporary(c, "added", b->f.type, axes, &c->other, 1, NULL, 0, &scaled)) return false;
        struct draft d = open_like(c, b->item, COMBINE_SET, rw_copy(c->body.p, &scaled));
        int value = times(&d, b, one, w, -1);
        if (scales) times_read(&d, product_at(c, l, NULL, true, -1, c->length), value);
        emit_once(c, &d, b->item, 0, &scaled);
    }
    const struct stmt *s = body_stmt(&c->body, l->first);
    struct draft d = open_like(c, b->item, COMBINE_ADD, rw_copy(c->body.p, &s->dst));
    int value = apart ? draft_read(&d, rw_copy(c->body.p, &scaled)) : -1;
    times(&d, b, apart ? ~one : ~UINT32_C(0), w, value);
    emit(c, &d);
    return true;
}

static bool write_state(struct chunking *c, const struct linear *l) {
    struct program *p = c->body.p;
    struct draft d =
        open_like(c, l->first, COMBINE_SET, rw_copy(p, &body_stmt(&c->body, l->first)->dst));
    int x = draft_read(&d, rw_indexed(p, c->body.r->state[l->state].current, l->axis));
    if (l->scale.f.n) times_read(&d, product_at(c, l, NULL, false, -1, c->length), x);
    emit(c, &d);
    for (int k = 0; k < l->nadded; k++)
        if (!write_added(c, l, &l->added[k])) return false;
    return true;
}

/* ---- the whole ---- */

static void write_others(struct chunking *c, enum part_kind kind) {
    struct in_step w = {c, c->row, NULL};
    for (int i = 0; i < c->body.r->nitems; i++) {
        const struct stmt from = *body_stmt(&c->body, i);
        if (c->part[i] != kind) continue;
        struct draft d = open_like(c, i, from.combine, placed(&w, &from.dst, -1));
        draft_mapped(&d, &from, from.nops - 1, placed, &w);
        emit(c, &d);
    }
}

/* Only those that some statement walks. */
static bool make_axes(struct chunking *c) {
    struct program *p = c->body.p;
    uint64_t used = ~UINT64_C(0);
    bool scales = false, rows = false;
    for (int k = 0; k < c->nlinear; k++) scales |= c->linear[k].scale.f.n > 0;
    for (int i = 0; i < c->body.r->nitems; i++) rows |= c->part[i] != PART_UPDATE;
    bool wanted[4] = {rows || scales, true, scales, scales && c->current};
    static const char *const name[4] = {"row", "from", "between", "until"};
    int *axis[4] = {&c->row, &c->other, &c->step, &c->bound};
    for (int k = 0; k < 4; k++) {
        int64_t extent = c->length + (k == 3);
        *axis[k] = wanted[k] ? program_copy_axis(p, name[k], extent, p->naxes, &used) : -1;
        if (wanted[k] && *axis[k] < 0) return false;
    }
    if (!wanted[3]) c->bound = c->row;
    return true;
}

static bool make_rows(struct chunking *c) {
    struct program *p = c->body.p;
    int n = p->nbuffers;
    int64_t extent[MAX_DIMS + 1] = {c->length};
    c->rows = arena_array(&p->arena, (size_t)n + 1, sizeof *c->rows);
    for (int b = 0; b < n; b++) {
        const struct buffer *x = &p->buffer[b];
        if (!c->by_rows[b]) continue;
        if (x->ndims == MAX_DIMS) return false;
        memcpy(extent + 1, x->extent, sizeof *extent * (size_t)x->ndims);
        c->rows[b] = rw_temporary(p, arena_printf(&p->arena, "%s.rows", x->name), x->type,
                                  x->ndims + 1, extent);
        if (c->rows[b] < 0) return false;
    }
    return true;
}

bool chunk_write(struct chunking *c) {
    struct program *p = c->body.p;
    if (!make_axes(c) || !make_rows(c)) return false;
    write_others(c, PART_FIRST);
    for (int k = 0; k < c->nlinear; k++)
        if (!write_factors(c, &c->linear[k])) return false;
    for (int i = 0; i < c->nreaders; i++)
        if (!write_reader(c, &c->reader[i])) return false;
    write_others(c, PART_LATER);
    for (int k = 0; k < c->nlinear; k++)
        if (!write_state(c, &c->linear[k])) return false;
    if ((c->open || c->steps % c->length) && !body_rest(&c->body, c->length)) return false;
    struct recur *r = c->body.r;
    r->item = arena_array(&p->arena, (size_t)c->nitems, sizeof *r->item);
    for (int k = 0; k < c->nitems; k++)
        r->item[k] = (struct item){.kind = ITEM_STMT, .stmt = c->item[k]};
    r->nitems = c->nitems;
    body_count_groups(&c->body, c->length);
    return true;
}
