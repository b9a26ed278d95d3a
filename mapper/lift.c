/* Sums of a recurrence's body that read neither states nor what the body makes (the inputs'
 * products of a recurrent cell): made for all steps at once, before the first, as one large sum, of
 * which each step reads its row. It pays where bringing the weights in each step costs more than
 * bringing the rows (a question to the approach). */
#include "mapper/lift.h"
#include "ir/steps.h"
#include "ir/stream.h"
#include "mapper/body.h"
#include "mapper/rewrite_int.h"

#include <math.h>
#include <string.h>

enum { IN_STEPS, BEFORE };

/* Of groups of steps: longer ones bring little less, and leave more steps behind them. */
enum { MOST_LENGTHS = 5 /* 1, 2, 4, 8, 16 */ };

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

/* Weights are brought; rows of all steps go home and come back from there; weights that steps share
 * are nearer. */
struct brought {
    double weights, rows; /* of a step */
};

static struct brought brought_by(const struct lifting *l, const struct lifted *x,
                                 const struct rank_cycles *cycles) {
    const struct program *p = l->body.p;
    const struct stmt *s = body_stmt(&l->body, x->sum);
    struct brought b = {.rows = 2 * cycles->home * (double)p->buffer[s->dst.buffer].elements};
    for (int r = 0; r < s->nreads; r++)
        if (!access_varies(p, &s->read[r], l->body.r->axis))
            b.weights += rw_points(p, rw_access_axes(p, &s->read[r]));
    return b;
}

static bool pays(const struct lifting *l, const struct lifted *x, const struct rank_cycles *cycles,
                 struct decider *d) {
    const struct program *p = l->body.p;
    const struct stmt *s = body_stmt(&l->body, x->sum);
    const struct brought b = brought_by(l, x, cycles);
    double steps = (double)p->axis[l->body.r->axis].extent;
    struct candidate c[2] = {{"in each step", steps * b.weights, NULL},
                             {"before the steps", b.weights + steps * b.rows, NULL}};
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
static struct stmt of_all(const struct lifting *l, const struct stmt *s, int all, int step,
                          int row) {
    struct program *p = l->body.p;
    struct renaming n = {p, step, row};
    struct draft d = draft_open(p, s, s->combine, row_of(p, all, &s->dst, row));
    draft_mapped(&d, s, s->nops - 1, in_row, &n);
    d.s.axes = stmt_axes(p, &d.s);
    for (const struct body *b = l->body.around; b; b = b->around)
        d.s.axes &= ~(UINT64_C(1) << b->r->axis);
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
    int one = body_append(p, of_all(l, &p->stmt[sum], all, step, row));
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
    int both[2] = {body_append(p, of_all(l, &p->stmt[set], all, step, row)),
                   body_append(p, of_all(l, &p->stmt[sum], all, step, row))};
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

static void lift_all(struct lifting *l, const struct rank_cycles *cycles, struct decider *d) {
    for (int k = 0; k < l->body.r->nitems; k++) {
        struct lifted x = {.sum = k};
        int before = l->body.r->nitems;
        if (!may_lift(l, &x) || !pays(l, &x, cycles, d) || !lift(l, &x)) continue;
        k -= before - l->body.r->nitems; /* what has moved up is looked at too */
        body_renew(&l->body);
    }
}

void lift_sums(struct program *p, const struct rank_cycles *cycles, struct decider *d) {
    struct lifting l = {.own = p->nbuffers};
    for (int at = 0; at < p->nitems; at++) {
        if (!body_open(p, at, &l.body) || p->axis[l.body.r->axis].extent < 2 ||
            p->axis[l.body.r->axis].size)
            continue;
        lift_all(&l, cycles, d);
        at = l.body.at;
    }
}

/* ---- groups of steps ---- */

/* A run may have any number of steps up to the most. */
static double usual_steps(const struct program *p, const struct recur *r) {
    const struct size *s = &p->size[p->axis[r->axis].size - 1];
    return sqrt((double)(s->lo > 1 ? s->lo : 1) * (double)s->hi);
}

/* With sums made for so many steps at once, where that is cheaper; 1: for each. The states go on
 * from group to group. */
static double price_of_groups(const struct lifting *l, const struct rank_cycles *cycles,
                              int64_t length) {
    const struct program *p = l->body.p;
    double n = usual_steps(p, l->body.r), groups = n / (double)length,
           rest = length > 1 ? (double)(length - 1) / 2 : 0, states = 0, price = 0;
    for (int k = 0; k < l->body.r->nstates; k++)
        states += (double)p->buffer[l->body.r->state[k].current].elements;
    for (int k = 0; k < l->body.r->nitems; k++) {
        struct lifted x = {.sum = k};
        if (!may_lift(l, &x)) continue;
        const struct brought b = brought_by(l, &x, cycles);
        double apart = (double)length * b.weights, at_once = b.weights + (double)length * b.rows;
        price += groups * fmin(apart, length > 1 ? at_once : apart) + rest * b.weights;
    }
    return price + (length > 1 ? groups * 2 * cycles->home * states : 0);
}

static int64_t choose_length(const struct lifting *l, const struct rank_cycles *cycles,
                             struct decider *d) {
    struct program *p = l->body.p;
    struct candidate c[MOST_LENGTHS];
    int64_t length[MOST_LENGTHS];
    int n = 0, best = 0;
    for (int64_t k = 1; n < MOST_LENGTHS && (n == 0 || 2 * k <= p->axis[l->body.r->axis].extent);
         k *= 2) {
        char *name = arena_printf(&p->arena, "before %d steps", (int)k);
        length[n] = k;
        c[n++] =
            (struct candidate){k > 1 ? name : "in each step", price_of_groups(l, cycles, k), NULL};
    }
    for (int k = 1; k < n; k++)
        if (c[k].cost < c[best].cost) best = k;
    char *subject =
        arena_printf(&p->arena, "sums of '%s'", p->buffer[l->body.r->state[0].current].name);
    struct question q = {QUESTION_REWRITE, subject, n, 0, c, NULL};
    return length[n > 1 && d ? decide(d, &q) : best];
}

static bool has_sums(const struct lifting *l) {
    for (int k = 0; k < l->body.r->nitems; k++)
        if (may_lift(l, &(struct lifted){.sum = k})) return true;
    return false;
}

/* Steps behind the groups have sums of their own. */
static bool apart_in_rest(struct program *p, int rest, int buffer) {
    struct body b;
    const struct buffer one = p->buffer[buffer];
    int own = rw_temporary(p, arena_printf(&p->arena, "%s.rest", one.name), one.type, one.ndims,
                           one.extent);
    if (own < 0 || !body_open(p, rest, &b)) return false;
    for (int i = 0; i < b.r->nitems; i++) {
        struct stmt *s = body_stmt(&b, i);
        if (s->dst.buffer == buffer) s->dst.buffer = own;
        for (int r = 0; r < s->nreads; r++)
            if (s->read[r].buffer == buffer) s->read[r].buffer = own;
    }
    return true;
}

/* Which steps are in groups, and which are behind them, must not be seen in the results: the
 * statements of both are made the same way. */
static void make_alike(struct program *p, const struct body *steps, int rest) {
    struct body b;
    if (!body_open(p, rest, &b)) return;
    for (int i = 0; i < b.r->nitems; i++) {
        struct stmt *one = body_stmt(steps, i), *other = body_stmt(&b, i);
        one->alike = 1 + 2 * steps->r->item[i].stmt;
        other->alike = one->alike + 1;
    }
}

/* False: there is no room. */
static bool in_groups(struct lifting *l, int64_t length, bool alike, struct body *groups) {
    struct program *p = l->body.p;
    int n = l->body.r->nitems, *buffer = arena_array(&p->arena, (size_t)n + 1, sizeof *buffer),
        nb = 0;
    for (int k = 0; k < n; k++) {
        if (!may_lift(l, &(struct lifted){.sum = k})) continue;
        buffer[nb] = body_stmt(&l->body, k)->dst.buffer;
        bool met = false;
        for (int i = 0; i < nb; i++) met |= buffer[i] == buffer[nb];
        nb += !met;
    }
    *groups = l->body;
    if (!body_nest(groups, length, &l->body)) return false;
    int rest = groups->at + (groups->r->reverse ? -1 : 1);
    for (int k = 0; k < nb; k++)
        if (!apart_in_rest(p, rest, buffer[k])) return false;
    if (alike) make_alike(p, &l->body, rest);
    l->own = p->nbuffers;
    return true;
}

int lift_in_groups(struct program *p, const struct rank_cycles *cycles, enum rewrite_effect floats,
                   struct decider *d) {
    int changed = 0;
    struct stream stream = {.counted = false};
    const char *why;
    bool cut = p->nsizes > 0 && program_stream(&p->arena, p, &stream, &why);
    /* A stream that counts its steps begins its loops there, in the middle of a group. */
    if (!p->nsizes || stream.counted) return 0;
    for (int at = 0; at < p->nitems; at++) {
        struct lifting l = {.own = p->nbuffers};
        struct body groups;
        if (!body_open(p, at, &l.body)) continue;
        const struct axis *steps = &p->axis[l.body.r->axis];
        if (!steps->size || steps->group || !body_is_plain(&l.body) || !has_sums(&l)) continue;
        int64_t length = choose_length(&l, cycles, d);
        if (length == 1 || !in_groups(&l, length, cut && floats < REWRITE_ROUNDS, &groups))
            continue;
        lift_all(&l, cycles, NULL);
        changed++;
        at++; /* the rest, or the groups behind it */
    }
    return changed;
}
