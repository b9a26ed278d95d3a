/* Sums of a recurrence's body that read neither states nor what the body makes (the inputs'
 * products of a recurrent cell): made for all steps at once, before the first, as one large sum, of
 * which each step reads its row. It pays where bringing the weights in each step costs more than
 * bringing the rows (a question to the approach). */
#include "mapper/lift.h"
#include "ir/steps.h"
#include "mapper/body.h"
#include "mapper/rewrite_int.h"

#include <string.h>

enum { IN_STEPS, BEFORE };

struct lifting {
    struct body body;
    int own; /* buffers from here on were made for sums of all steps */
};

/* A sum, and the statement of the same body that sets what it adds to; their places there. */
struct lifted {
    int set, sum;
    bool alone; /* nothing else is added */
};

static bool may_lift(const struct lifting *l, struct lifted *x) {
    const struct stmt *s = body_stmt(&l->body, x->sum);
    if (!s || s->combine != COMBINE_ADD || stmt_reads(s, s->dst.buffer) ||
        !body_reads_inputs(&l->body, s) || !(s->axes & ~rw_access_axes(l->body.p, &s->dst)))
        return false;
    x->set = body_find_set(&l->body, x->sum, &x->alone);
    return x->set >= 0;
}

/* ---- the price, in elements that are brought ---- */

/* Rows of all steps go home and come back from there; weights that steps share are nearer. */
static bool pays(const struct lifting *l, const struct lifted *x, const struct rank_cycles *cycles,
                 struct decider *d) {
    const struct program *p = l->body.p;
    const struct stmt *s = body_stmt(&l->body, x->sum);
    double steps = (double)p->axis[l->body.r->axis].extent, weights = 0,
           rows = 2 * cycles->home * (double)p->buffer[s->dst.buffer].elements;
    for (int r = 0; r < s->nreads; r++)
        if (!access_varies(p, &s->read[r], l->body.r->axis))
            weights += rw_points(p, rw_access_axes(p, &s->read[r]));
    struct candidate c[2] = {{"in each step", steps * weights, NULL},
                             {"before the steps", weights + steps * rows, NULL}};
    char *subject = arena_printf(&l->body.p->arena, "sum of '%s'", p->buffer[s->dst.buffer].name);
    struct question q = {QUESTION_REWRITE, subject, 2, 0, c, NULL};
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
    struct access c = body_row(p, all, a);
    rw_row(p, &c, 0)[axis] = 1;
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

/* Nothing else is added: who reads the sum reads the row. */
static void read_rows(const struct lifting *l, int sum, int all) {
    for (int i = 0; i < l->body.r->nitems; i++) {
        struct stmt *s = body_stmt(&l->body, i);
        for (int r = 0; s && r < s->nreads; r++)
            if (s->read[r].buffer == sum)
                s->read[r] = row_of(l->body.p, all, &s->read[r], l->body.r->axis);
    }
}

/* What it adds to is a row of a sum of all steps: then so is this one. */
static bool add_to_rows(struct lifting *l, const struct lifted *x) {
    struct program *p = l->body.p;
    int sum = l->body.r->item[x->sum].stmt, step = l->body.r->axis, row = -1;
    const struct stmt *set = body_stmt(&l->body, x->set);
    if (set->nops != 1 || set->nreads != 1 || set->read[0].buffer < l->own) return false;
    int all = set->read[0].buffer;
    for (int s = 0; s < p->nstmts;
         s++) /* its rows are walked by the axis that they were made with */
        for (int a = 0; p->stmt[s].dst.buffer == all && a < p->naxes; a++)
            if (access_coef(p, &p->stmt[s].dst, 0, a)) row = a;
    int one = body_append(p, of_all(p, &p->stmt[sum], all, step, row));
    body_drop(&l->body, x->sum);
    body_insert_before(&l->body, &one, 1);
    return true;
}

static bool lift(struct lifting *l, const struct lifted *x) {
    struct program *p = l->body.p;
    int step = l->body.r->axis, set = l->body.r->item[x->set].stmt,
        sum = l->body.r->item[x->sum].stmt, b = p->stmt[sum].dst.buffer;
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
    int both[2] = {body_append(p, of_all(p, &p->stmt[set], all, step, row)),
                   body_append(p, of_all(p, &p->stmt[sum], all, step, row))};
    if (x->alone) {
        read_rows(l, b, all);
    } else {
        struct stmt *s = &p->stmt[set];
        struct draft d = draft_open(p, s, COMBINE_SET, rw_copy(p, &s->dst));
        draft_read(&d, row_of(p, all, &s->dst, step));
        draft_close(&d, set);
        p->stmt[set].axes &= ~(UINT64_C(1) << step);
    }
    body_drop(&l->body, x->sum);
    if (x->alone) body_drop(&l->body, x->set);
    body_insert_before(&l->body, both, 2);
    return true;
}

void lift_sums(struct program *p, const struct rank_cycles *cycles, struct decider *d) {
    struct lifting l = {.own = p->nbuffers};
    for (int at = 0; at < p->nitems; at++) {
        if (!body_open(p, at, &l.body) || p->axis[l.body.r->axis].extent < 2 ||
            p->axis[l.body.r->axis].size)
            continue;
        for (int k = 0; k < l.body.r->nitems; k++) {
            struct lifted x = {.sum = k};
            int before = l.body.r->nitems;
            if (!may_lift(&l, &x) || !pays(&l, &x, cycles, d) || !lift(&l, &x)) continue;
            k -= before - l.body.r->nitems; /* what has moved up is looked at too */
            body_renew(&l.body);
        }
        at = l.body.at;
    }
}
