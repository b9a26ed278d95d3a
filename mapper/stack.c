/* Products of a recurrence's body that read the same and differ in their weights alone (the gates
 * of a cell): one product with the weights stacked, and an axis more. What they share is brought
 * once for all, and results wait for one another no more. The weights are copied together before
 * the steps; where all are constants, once for any number of runs. */
#include "mapper/stack.h"
#include "mapper/body.h"
#include "mapper/rewrite_int.h"

#include <string.h>

enum { MAX_STACK = 32 };
enum { APART, STACKED };

struct stack {
    struct body body;
    int n, sum[MAX_STACK], set[MAX_STACK]; /* items of the body */
    int weight;                            /* the read in which they differ */
    int axis[MAX_DIMS], naxes;             /* along which the weights lie, outermost first */
    bool same_set; /* all begin with the same number: one statement sets them */
};

static const struct stmt *sum_of(const struct stack *s, int k) {
    return body_stmt(&s->body, s->sum[k]);
}

/* ---- which go together ---- */

/* The same operations in the same order, reads aside. */
static bool ops_equal(const struct stmt *s, const struct stmt *t) {
    bool same = s->nops == t->nops && s->nreads == t->nreads && s->combine == t->combine &&
                s->axes == t->axes && s->nwhere == 0 && t->nwhere == 0;
    for (int k = 0; same && k < s->nops; k++) {
        const struct op *a = &s->op[k], *b = &t->op[k];
        same = a->code == b->code && a->type == b->type && a->read == b->read &&
               a->axis == b->axis && !memcmp(a->arg, b->arg, sizeof a->arg) &&
               (a->code != OP_LITERAL || !memcmp(&a->value, &b->value, sizeof a->value));
    }
    return same;
}

/* The one read in which the statements differ; -1: there is not just one. */
static int differing_read(const struct program *p, const struct stmt *s, const struct stmt *t) {
    int found = -1;
    for (int r = 0; r < s->nreads; r++) {
        if (access_equal(p, &s->read[r], &t->read[r])) continue;
        if (found >= 0) return -1;
        found = r;
    }
    return found;
}

/* May weights so read be copied before the steps, each element once at most? Its axes, outermost
 * first. */
static bool is_weight(const struct body *b, const struct access *a, int *axis, int *n) {
    const struct program *p = b->p;
    *n = 0;
    if (a->has_fill || b->written[a->buffer]) return false;
    for (int d = 0; d < p->buffer[a->buffer].ndims; d++) {
        int in = 0;
        for (int x = 0; x < p->naxes; x++) {
            int64_t c = access_coef(p, a, d, x);
            if (!c) continue;
            if (c != 1 || in++ || p->axis[x].sequential) return false;
            for (int k = 0; k < *n; k++)
                if (axis[k] == x) return false;
            axis[(*n)++] = x;
        }
    }
    return *n > 0 && *n < MAX_DIMS;
}

/* Is what the sums read, but for their weights, the same at both items? */
static bool unchanged(const struct stack *s, int from, int to) {
    const struct stmt *sum = sum_of(s, 0);
    for (int i = from; i < to; i++)
        for (int r = 0; r < sum->nreads; r++) {
            const struct stmt *o = body_stmt(&s->body, i);
            int b = sum->read[r].buffer;
            if (o ? o->dst.buffer == b : items_touch(s->body.p, &s->body.r->item[i], 1, b))
                return false;
        }
    return true;
}

static bool is_sum(const struct body *b, int item) {
    const struct stmt *s = body_stmt(b, item);
    return s && s->combine == COMBINE_ADD && s->nwhere == 0 && !stmt_reads(s, s->dst.buffer) &&
           (s->axes & ~rw_access_axes(b->p, &s->dst)) &&
           !access_varies(b->p, &s->dst, b->r->axis) &&
           b->p->buffer[s->dst.buffer].ndims < MAX_DIMS;
}

/* Does the sum at this item go with the first? */
static bool joins(struct stack *s, int item) {
    const struct program *p = s->body.p;
    const struct stmt *a = sum_of(s, 0), *b = body_stmt(&s->body, item);
    int axis[MAX_DIMS], n;
    bool alone;
    if (!is_sum(&s->body, item) || !ops_equal(a, b) || a->dst.buffer == b->dst.buffer ||
        !rw_rows_equal(p, &a->dst, &b->dst))
        return false;
    for (int k = 1; k < s->n; k++)
        if (sum_of(s, k)->dst.buffer == b->dst.buffer) return false;
    int r = differing_read(p, a, b);
    if (r < 0 || (s->n > 1 && r != s->weight) ||
        p->buffer[a->read[r].buffer].type != p->buffer[b->read[r].buffer].type ||
        !is_weight(&s->body, &a->read[r], s->axis, &s->naxes) ||
        !is_weight(&s->body, &b->read[r], axis, &n) || n != s->naxes ||
        memcmp(axis, s->axis, sizeof *axis * (size_t)n) || !unchanged(s, s->sum[0], item))
        return false;
    s->weight = r;
    return (s->set[s->n] = body_find_set(&s->body, item, &alone)) >= 0;
}

static void find(struct stack *s, int first) {
    bool alone;
    s->n = 0;
    if (!is_sum(&s->body, first) || (s->set[0] = body_find_set(&s->body, first, &alone)) < 0)
        return;
    s->sum[s->n++] = first;
    for (int i = first + 1; i < s->body.r->nitems && s->n < MAX_STACK; i++)
        if (joins(s, i)) s->sum[s->n++] = i;
    s->same_set = true;
    for (int k = 0; k < s->n; k++) {
        const struct stmt *set = body_stmt(&s->body, s->set[k]);
        s->same_set &= set->nreads == 0 && ops_equal(body_stmt(&s->body, s->set[0]), set);
    }
}

/* ---- the price, in elements that are brought ---- */

/* What one product brings of what all of them read, and weights that are copied in each run. Where
 * the host alone works, what products share stays in its caches between them. */
static bool pays(const struct stack *s, const struct machine *m, struct decider *d) {
    struct program *p = s->body.p;
    const struct stmt *sum = sum_of(s, 0);
    double steps = (double)p->axis[s->body.r->axis].extent, shared = 0, copied = 0;
    for (int r = 0; r < sum->nreads && has_device(m); r++)
        if (r != s->weight) shared += rw_points(p, rw_access_axes(p, &sum->read[r]));
    for (int k = 0; k < s->n; k++) {
        const struct access *w = &sum_of(s, k)->read[s->weight];
        if (!buffer_steady(p, w->buffer)) copied += 2 * rw_points(p, rw_access_axes(p, w));
    }
    struct candidate c[2] = {{"apart", s->n * steps * shared, NULL},
                             {"stacked", steps * shared + copied, NULL}};
    char *subject = arena_printf(&p->arena, "%d products of '%s'", s->n,
                                 p->buffer[sum->read[!s->weight].buffer].name);
    struct question q = {QUESTION_REWRITE, subject, 2, 0, c, NULL};
    return d ? decide(d, &q) == STACKED : c[STACKED].cost < c[APART].cost;
}

/* ---- stacking ---- */

/* The access in the row that is the number. */
static struct access numbered(struct program *p, int all, const struct access *a, int row) {
    struct access c = body_row(p, all, a);
    rw_row(p, &c, 0)[p->naxes] = row;
    return c;
}

/* The access in the row that the axis says. */
static struct access walked(struct program *p, int all, const struct access *a, int axis) {
    struct access c = body_row(p, all, a);
    rw_row(p, &c, 0)[axis] = 1;
    return c;
}

static int stacked_buffer(const struct stack *s, const char *base, enum type t, int n,
                          const int64_t *extent) {
    int64_t all[MAX_DIMS] = {s->n};
    memcpy(all + 1, extent, sizeof *extent * (size_t)n);
    return rw_temporary(s->body.p, base, t, n + 1, all);
}

/* The weights' temporary, [gate, axes …]; -1: no room. */
static int weights_buffer(const struct stack *s) {
    const struct program *p = s->body.p;
    const struct buffer *w = &p->buffer[sum_of(s, 0)->read[s->weight].buffer];
    int64_t extent[MAX_DIMS];
    for (int k = 0; k < s->naxes; k++) extent[k] = p->axis[s->axis[k]].extent;
    return stacked_buffer(s, arena_printf(&s->body.p->arena, "%s.stacked", w->name), w->type,
                          s->naxes, extent);
}

/* [0, axes …] of the weights' temporary. */
static struct access weights_at(const struct stack *s, int weights) {
    struct access a = rw_access(s->body.p, weights);
    for (int k = 0; k < s->naxes; k++) rw_row(s->body.p, &a, k + 1)[s->axis[k]] = 1;
    return a;
}

/* Before the steps: each weight in its row. */
static void copy_weights(struct stack *s, int weights) {
    struct program *p = s->body.p;
    int copy[MAX_STACK];
    for (int k = 0; k < s->n; k++) {
        struct access to = weights_at(s, weights);
        rw_row(p, &to, 0)[p->naxes] = k;
        struct draft d = draft_open(p, sum_of(s, k), COMBINE_SET, to);
        draft_read(&d, sum_of(s, k)->read[s->weight]);
        d.s.axes = stmt_axes(p, &d.s);
        copy[k] = body_append(p, d.s);
    }
    body_insert_before(&s->body, copy, s->n);
}

struct weighing { /* all reads stay but the weights' */
    const struct stack *s;
    struct access weights;
};

static struct access weighed(void *user, const struct access *a, int read) {
    const struct weighing *w = user;
    return read == w->s->weight ? w->weights : rw_copy(w->s->body.p, a);
}

/* The first sum is that of all. */
static void sum_all(struct stack *s, int weights, int sums, int gate) {
    struct program *p = s->body.p;
    int stmt = s->body.r->item[s->sum[0]].stmt;
    struct stmt old = p->stmt[stmt];
    struct weighing w = {s, weights_at(s, weights)};
    rw_row(p, &w.weights, 0)[gate] = 1;
    struct draft d = draft_open(p, &old, old.combine, walked(p, sums, &old.dst, gate));
    draft_mapped(&d, &old, old.nops - 1, weighed, &w);
    d.s.axes = old.axes | UINT64_C(1) << gate;
    p->stmt[stmt] = d.s;
}

/* What the sums begin with: one statement for all, or each in its row. */
static void set_all(struct stack *s, int sums, int gate) {
    struct program *p = s->body.p;
    for (int k = 0; k < s->n; k++) {
        struct stmt *set = body_stmt(&s->body, s->set[k]);
        set->dst = s->same_set ? walked(p, sums, &set->dst, gate) : numbered(p, sums, &set->dst, k);
        if (s->same_set) set->axes |= UINT64_C(1) << gate;
    }
}

/* Everybody finds the results in their rows. */
static void read_rows(struct stack *s, const int *old, int sums) {
    struct program *p = s->body.p;
    for (int i = 0; i < s->body.r->nitems; i++) {
        struct stmt *x = body_stmt(&s->body, i);
        for (int k = 0; x && k < s->n; k++) {
            if (x->dst.buffer == old[k]) x->dst = numbered(p, sums, &x->dst, k);
            for (int r = 0; r < x->nreads; r++)
                if (x->read[r].buffer == old[k]) x->read[r] = numbered(p, sums, &x->read[r], k);
        }
    }
}

static bool is_dropped(const struct stack *s, int item) {
    bool drop = false;
    for (int k = 1; k < s->n; k++) drop |= item == s->sum[k] || (s->same_set && item == s->set[k]);
    return drop;
}

/* Later sums go; what later ones begin with is set just before the first sum. */
static void arrange(struct stack *s) {
    struct recur *r = s->body.r;
    struct item *item = arena_array(&s->body.p->arena, (size_t)r->nitems, sizeof *item);
    int n = 0;
    for (int i = 0; i < r->nitems; i++) {
        bool moved = false;
        for (int k = 1; k < s->n; k++) {
            moved |= i == s->set[k] && i > s->sum[0];
            if (i == s->sum[0] && s->set[k] > i && !is_dropped(s, s->set[k]))
                item[n++] = r->item[s->set[k]];
        }
        if (!moved && !is_dropped(s, i)) item[n++] = r->item[i];
    }
    memcpy(r->item, item, sizeof *item * (size_t)n);
    r->nitems = n;
}

static bool stack(struct stack *s) {
    struct program *p = s->body.p;
    uint64_t used = ~UINT64_C(0);
    int old[MAX_STACK], gate = program_copy_axis(p, "gate", s->n, p->naxes, &used);
    if (gate < 0) return false;
    const struct stmt *first = sum_of(s, 0);
    const struct buffer *one = &p->buffer[first->dst.buffer];
    char *name = arena_printf(&p->arena, "%s.stacked", one->name);
    int sums = stacked_buffer(s, name, one->type, one->ndims, one->extent);
    int weights = sums < 0 ? -1 : weights_buffer(s);
    if (weights < 0) return false;
    for (int k = 0; k < s->n; k++) old[k] = sum_of(s, k)->dst.buffer;
    copy_weights(s, weights);
    sum_all(s, weights, sums, gate);
    set_all(s, sums, gate);
    arrange(s);
    read_rows(s, old, sums);
    return true;
}

void stack_products(struct program *p, const struct machine *m, struct decider *d) {
    for (int at = 0; at < p->nitems; at++) {
        struct stack s;
        if (!body_open(p, at, &s.body)) continue;
        for (int i = 0; i < s.body.r->nitems; i++) {
            find(&s, i);
            if (s.n > 1 && pays(&s, m, d) && stack(&s)) body_renew(&s.body);
        }
        at = s.body.at;
    }
}
