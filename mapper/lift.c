/* Sums of a recurrence's body that read neither states nor what the body makes (the inputs'
 * products of a recurrent cell): made for all steps at once, before the first, as one large sum, of
 * which each step reads its row. It pays where bringing the weights in each step costs more than
 * bringing the rows (a question to the approach). */
#include "mapper/lift.h"
#include "ir/steps.h"
#include "mapper/rewrite_int.h"

#include <string.h>

enum { IN_STEPS, BEFORE };

struct lifting {
    struct program *p;
    struct recur *r;
    int at;        /* the recurrence among the program's items */
    bool *written; /* by buffer: in the body, states too */
    int own;       /* buffers from here on were made for sums of all steps */
};

/* A sum, and the statement of the same body that sets what it adds to; their places there. */
struct lifted {
    int set, sum;
    bool alone; /* nothing else is added */
};

static void note_written(const struct program *p, const struct recur *r, bool *written) {
    for (int k = 0; k < r->nstates; k++)
        written[r->state[k].current] = written[r->state[k].next] = true;
    for (int i = 0; i < r->nitems; i++) {
        const struct item *x = &r->item[i];
        if (x->kind == ITEM_STMT) written[p->stmt[x->stmt].dst.buffer] = true;
        if (x->kind == ITEM_RECUR) note_written(p, x->recur, written);
        for (int k = 0; x->kind == ITEM_CALL && k < x->call->nwrites; k++)
            written[x->call->write[k]] = true;
    }
}

/* Is all that it reads there before the first step? */
static bool reads_inputs(const struct lifting *l, const struct stmt *s) {
    bool fits = s->nwhere == 0 && !access_varies(l->p, &s->dst, l->r->axis);
    for (int r = 0; r < s->nreads; r++) fits &= !l->written[s->read[r].buffer];
    for (int i = 0; i < s->nops; i++)
        fits &= s->op[i].code != OP_AXIS || s->op[i].axis != l->r->axis;
    return fits;
}

static bool reads(const struct stmt *s, int buffer) {
    for (int r = 0; r < s->nreads; r++)
        if (s->read[r].buffer == buffer) return true;
    return false;
}

static const struct stmt *stmt_at(const struct lifting *l, int item) {
    const struct item *x = &l->r->item[item];
    return x->kind == ITEM_STMT ? &l->p->stmt[x->stmt] : NULL;
}

/* Do statements of the body alone, and no others, touch the buffer? */
static bool is_own(const struct lifting *l, int buffer) {
    for (int i = 0; i < l->p->nitems; i++)
        if (i != l->at && items_touch(l->p, &l->p->item[i], 1, buffer)) return false;
    for (int i = 0; i < l->r->nitems; i++)
        if (!stmt_at(l, i) && items_touch(l->p, &l->r->item[i], 1, buffer)) return false;
    return l->p->buffer[buffer].role == ROLE_TEMP;
}

/* The body's statement `sum`, and what sets its result just so before, with nothing but additions
 * to it between. */
static bool find_set(const struct lifting *l, struct lifted *x) {
    const struct stmt *s = stmt_at(l, x->sum);
    int b = s->dst.buffer, sets = 0;
    x->alone = true;
    x->set = -1;
    for (int i = 0; i < l->r->nitems; i++) {
        const struct stmt *o = stmt_at(l, i);
        if (!o || i == x->sum) continue;
        if (i < x->sum && reads(o, b)) return false;
        if (o->dst.buffer != b) continue;
        if (o->combine == COMBINE_SET)
            sets++, x->set = i;
        else if (o->combine != COMBINE_ADD)
            return false;
        else
            x->alone = false;
    }
    const struct stmt *set = x->set >= 0 ? stmt_at(l, x->set) : NULL;
    return sets == 1 && x->set < x->sum && reads_inputs(l, set) &&
           access_equal(l->p, &set->dst, &s->dst) && is_own(l, b);
}

static bool may_lift(const struct lifting *l, struct lifted *x) {
    const struct stmt *s = stmt_at(l, x->sum);
    return s && s->combine == COMBINE_ADD && !reads(s, s->dst.buffer) && reads_inputs(l, s) &&
           (s->axes & ~rw_access_axes(l->p, &s->dst)) && find_set(l, x);
}

/* ---- the price, in elements that are brought ---- */

/* Rows of all steps go home and come back from there; weights that steps share are nearer. */
static const double FROM_HOME = 4;

static bool pays(const struct lifting *l, const struct lifted *x, struct decider *d) {
    const struct program *p = l->p;
    const struct stmt *s = stmt_at(l, x->sum);
    double steps = (double)p->axis[l->r->axis].extent, weights = 0,
           rows = 2 * FROM_HOME * (double)p->buffer[s->dst.buffer].elements;
    for (int r = 0; r < s->nreads; r++)
        if (!access_varies(p, &s->read[r], l->r->axis))
            weights += rw_points(p, rw_access_axes(p, &s->read[r]));
    struct candidate c[2] = {{"in each step", steps * weights, NULL},
                             {"before the steps", weights + steps * rows, NULL}};
    char *subject = arena_printf(&l->p->arena, "sum of '%s'", p->buffer[s->dst.buffer].name);
    struct question q = {QUESTION_REWRITE, subject, 2, 0, c};
    return d ? decide(d, &q) == BEFORE : c[BEFORE].cost < c[IN_STEPS].cost;
}

/* ---- lifting ---- */

struct renaming { /* steps become rows of all of them */
    struct program *p;
    int from, to;
};

static struct access in_row(void *user, const struct access *a, int read) {
    const struct renaming *n = user;
    struct access c = rw_copy(n->p, a);
    (void)read;
    for (int d = 0; d < n->p->buffer[a->buffer].ndims; d++) {
        int64_t *row = rw_row(n->p, &c, d);
        row[n->to] += row[n->from];
        row[n->from] = 0;
    }
    return c;
}

/* Of all steps, at the row of `axis`, what `a` is of one. */
static struct access row_of(struct program *p, int all, const struct access *a, int axis) {
    struct access c = rw_access(p, all);
    int rows = p->buffer[all].ndims - 1;
    c.has_fill = a->has_fill;
    c.fill = a->fill;
    rw_row(p, &c, 0)[axis] = 1;
    for (int d = 0; d < rows; d++)
        memcpy(rw_row(p, &c, d + 1), rw_row(p, a, d), ((size_t)p->naxes + 1) * sizeof *a->coef);
    return c;
}

/* The statement for all steps. */
static struct stmt of_all(struct program *p, const struct stmt *s, int all, int step, int row) {
    struct renaming n = {p, step, row};
    struct draft d = draft_open(p, s, s->combine, row_of(p, all, &s->dst, row));
    draft_mapped(&d, s, s->nops - 1, in_row, &n);
    d.s.axes = stmt_axes(p, &d.s);
    return d.s;
}

static void insert_items(struct program *p, int at, const int *stmt, int n) {
    struct item *item = arena_array(&p->arena, (size_t)(p->nitems + n), sizeof *item);
    memcpy(item, p->item, sizeof *item * (size_t)at);
    for (int k = 0; k < n; k++) item[at + k] = (struct item){.kind = ITEM_STMT, .stmt = stmt[k]};
    memcpy(item + at + n, p->item + at, sizeof *item * (size_t)(p->nitems - at));
    p->item = item;
    p->nitems += n;
}

static int append_stmt(struct program *p, struct stmt s) {
    struct stmt *all = arena_array(&p->arena, (size_t)p->nstmts + 1, sizeof *all);
    memcpy(all, p->stmt, sizeof *all * (size_t)p->nstmts);
    all[p->nstmts] = s;
    p->stmt = all;
    return p->nstmts++;
}

static void drop_item(struct recur *r, int at) {
    memmove(r->item + at, r->item + at + 1, sizeof *r->item * (size_t)(r->nitems - at - 1));
    r->nitems--;
}

/* Nothing else is added: who reads the sum reads the row. */
static void read_rows(const struct lifting *l, int sum, int all) {
    for (int i = 0; i < l->r->nitems; i++) {
        struct stmt *s = (struct stmt *)stmt_at(l, i);
        for (int r = 0; s && r < s->nreads; r++)
            if (s->read[r].buffer == sum) s->read[r] = row_of(l->p, all, &s->read[r], l->r->axis);
    }
}

/* What it adds to is a row of a sum of all steps: then so is this one. */
static bool add_to_rows(struct lifting *l, const struct lifted *x) {
    struct program *p = l->p;
    int sum = l->r->item[x->sum].stmt, step = l->r->axis, row = -1;
    const struct stmt *set = stmt_at(l, x->set);
    if (set->nops != 1 || set->nreads != 1 || set->read[0].buffer < l->own) return false;
    int all = set->read[0].buffer;
    for (int s = 0; s < p->nstmts;
         s++) /* its rows are walked by the axis that they were made with */
        for (int a = 0; p->stmt[s].dst.buffer == all && a < p->naxes; a++)
            if (access_coef(p, &p->stmt[s].dst, 0, a)) row = a;
    int one = append_stmt(p, of_all(p, &p->stmt[sum], all, step, row));
    drop_item(l->r, x->sum);
    insert_items(p, l->at++, &one, 1);
    return true;
}

static bool lift(struct lifting *l, const struct lifted *x) {
    struct program *p = l->p;
    int step = l->r->axis, set = l->r->item[x->set].stmt, sum = l->r->item[x->sum].stmt,
        b = p->stmt[sum].dst.buffer;
    if (add_to_rows(l, x)) return true;
    const struct buffer *one = &p->buffer[b];
    int64_t extent[MAX_DIMS + 1] = {p->axis[step].extent};
    uint64_t used = ~UINT64_C(0);
    if (one->ndims == MAX_DIMS) return false;
    memcpy(extent + 1, one->extent, sizeof *extent * (size_t)one->ndims);
    int all = rw_temporary(p, arena_printf(&p->arena, "%s.all", one->name), one->type,
                           one->ndims + 1, extent);
    int row = all < 0 ? -1 : program_copy_axis(p, "steps", *extent, p->naxes, &used);
    if (row < 0) return false;
    int both[2] = {append_stmt(p, of_all(p, &p->stmt[set], all, step, row)),
                   append_stmt(p, of_all(p, &p->stmt[sum], all, step, row))};
    if (x->alone) {
        read_rows(l, b, all);
    } else {
        struct stmt *s = &p->stmt[set];
        struct draft d = draft_open(p, s, COMBINE_SET, rw_copy(p, &s->dst));
        draft_read(&d, row_of(p, all, &s->dst, step));
        draft_close(&d, set);
        p->stmt[set].axes &= ~(UINT64_C(1) << step);
    }
    drop_item(l->r, x->sum);
    if (x->alone) drop_item(l->r, x->set);
    insert_items(p, l->at, both, 2);
    l->at += 2;
    return true;
}

void lift_sums(struct program *p, struct decider *d) {
    int own = p->nbuffers;
    for (int at = 0; at < p->nitems; at++) {
        struct lifting l = {.p = p, .r = p->item[at].recur, .at = at, .own = own};
        if (p->item[at].kind != ITEM_RECUR || p->axis[l.r->axis].extent < 2 ||
            p->axis[l.r->axis].size)
            continue;
        l.written = arena_array(&p->arena, (size_t)p->nbuffers + 1, sizeof *l.written);
        note_written(p, l.r, l.written);
        for (int k = 0; k < l.r->nitems; k++) {
            struct lifted x = {.sum = k};
            int before = l.r->nitems;
            if (!may_lift(&l, &x) || !pays(&l, &x, d) || !lift(&l, &x)) continue;
            k -= before - l.r->nitems; /* what has moved up is looked at too */
            l.written = arena_array(&p->arena, (size_t)p->nbuffers + 1, sizeof *l.written);
            note_written(p, l.r, l.written);
        }
        at = l.at;
    }
}
