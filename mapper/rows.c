/* Rows of lanes. A vector unit beside a matrix unit often takes M rows of T lanes in one
 * instruction, `C[i,j] = C[i,j] + X[i,j]`, and a state of 128 elements has one axis: on the lanes
 * it leaves the rows empty, so that each T elements are an instruction of their own. In a row-major
 * array element 16*r + l of a dimension lies where element [r,l] of two dimensions does. So the
 * dimension is split, and with it all dimensions that statements walk by the same axes:
 *
 *   h[i] = z[i] + n[i]   i: 128        h[i,l] = z[i,l] + n[i,l]   i: 8, l: 16
 *   a[i] += U[i,j] * q[j]              a[i,l] += U[i,l,j,k] * q[j,k]
 *
 * It saves the overhead of instructions. */
#include "mapper/rows.h"
#include "mapper/rewrite_int.h"

#include <string.h>

enum { WHOLE, IN_ROWS };

struct rows {
    const struct program *p;
    int64_t lanes;
    bool *split[MAX_DIMS]; /* by buffer */
    bool axis[MAX_AXES];
    bool failed;
};

/* ---- what is split together ---- */

/* The axis that walks all of this dimension, alone; -1: none does. */
static int walker(const struct program *p, const struct access *x, int dim) {
    int found = -1;
    for (int a = 0; a <= p->naxes; a++) {
        int64_t k = access_coef(p, x, dim, a);
        if (!k) continue;
        if (found >= 0 || a == p->naxes || k != 1 || x->has_fill ||
            p->axis[a].extent != p->buffer[x->buffer].extent[dim])
            return -1;
        found = a;
    }
    return found;
}

static void split_axis(struct rows *, int axis);

static void split_access(struct rows *r, const struct access *x, int buffer, int dim) {
    if (x->buffer != buffer || r->failed) return;
    int a = walker(r->p, x, dim);
    if (a < 0)
        r->failed = true;
    else
        split_axis(r, a);
}

static void split_dim(struct rows *r, int buffer, int dim);

/* States are handed on as they lie, and calls know arrays as they were declared. */
static void split_items(struct rows *r, const struct item *item, int n, int buffer, int dim) {
    for (int i = 0; i < n; i++) {
        if (item[i].kind == ITEM_CALL) r->failed |= items_touch(r->p, &item[i], 1, buffer);
        if (item[i].kind != ITEM_RECUR) continue;
        const struct recur *x = item[i].recur;
        for (int k = 0; k < x->nstates; k++) {
            const struct recur_state *s = &x->state[k];
            const int all[] = {s->current, s->next, s->from, s->to};
            bool in = false;
            for (int b = 0; b < 4; b++) in |= all[b] == buffer;
            for (int b = 0; b < 4; b++)
                if (in && all[b] >= 0) split_dim(r, all[b], dim);
        }
        split_items(r, x->item, x->nitems, buffer, dim);
    }
}

static void split_dim(struct rows *r, int buffer, int dim) {
    const struct program *p = r->p;
    int dims = p->buffer[buffer].ndims;
    if (r->failed || r->split[dim][buffer]) return;
    r->split[dim][buffer] = true;
    for (int d = 0; d < p->buffer[buffer].ndims; d++) dims += r->split[d][buffer];
    r->failed |= dims > MAX_DIMS || (dim == 0 && p->buffer[buffer].size);
    for (int s = 0; s < p->nstmts; s++) {
        split_access(r, &p->stmt[s].dst, buffer, dim);
        for (int k = 0; k < p->stmt[s].nreads; k++)
            split_access(r, &p->stmt[s].read[k], buffer, dim);
    }
    split_items(r, p->item, p->nitems, buffer, dim);
}

static void split_along(struct rows *r, const struct access *x, int axis) {
    for (int d = 0; d < r->p->buffer[x->buffer].ndims && !r->failed; d++) {
        if (!access_coef(r->p, x, d, axis)) continue;
        if (walker(r->p, x, d) == axis)
            split_dim(r, x->buffer, d);
        else
            r->failed = true;
    }
}

static void split_axis(struct rows *r, int axis) {
    const struct program *p = r->p;
    const struct axis *a = &p->axis[axis];
    if (r->failed || r->axis[axis]) return;
    r->axis[axis] = true;
    r->failed = a->sequential || a->size || a->extent <= r->lanes || a->extent % r->lanes;
    for (int k = 0; k < p->nstmts && !r->failed; k++) {
        const struct stmt *s = &p->stmt[k];
        if (!(s->axes >> axis & 1)) continue;
        for (int w = 0; w < s->nwhere; w++) r->failed |= s->where[w].coef[axis] != 0;
        for (int o = 0; o < s->nops; o++)
            r->failed |= s->op[o].code == OP_AXIS && s->op[o].axis == axis;
        split_along(r, &s->dst, axis);
        for (int x = 0; x < s->nreads; x++) split_along(r, &s->read[x], axis);
    }
}

static bool splits(struct rows *r, int axis) {
    r->failed = false;
    memset(r->axis, 0, sizeof r->axis);
    for (int d = 0; d < MAX_DIMS; d++)
        memset(r->split[d], 0, (size_t)r->p->nbuffers * sizeof **r->split);
    split_axis(r, axis);
    return !r->failed;
}

/* ---- where that may pay ---- */

/* The lanes of an instruction that takes rows of them, elementwise in both; 0: it does not. */
static int64_t lanes_of(const struct needle *n) {
    bool rows = false;
    int64_t lanes = 0;
    if (!n->offered || n->refused || n->nparts || n->copy || n->naxes != 2) return 0;
    for (int x = 0; x < n->naxes; x++) {
        const struct needle_axis *a = &n->axis[x];
        if (!a->elementwise) return 0;
        if (a->lo == a->hi)
            lanes = a->hi;
        else
            rows = true;
    }
    return rows && lanes > 1 ? lanes : 0;
}

/* The one axis of an elementwise statement, along its last dimension; -1. */
static int lone_axis(const struct program *p, const struct stmt *s) {
    int found = -1, last = p->buffer[s->dst.buffer].ndims - 1;
    if (s->combine != COMBINE_SET || s->nwhere) return -1;
    for (int a = 0; a < p->naxes; a++) {
        if (!(s->axes >> a & 1) || p->axis[a].extent == 1) continue;
        if (found >= 0 || p->axis[a].sequential) return -1;
        found = a;
    }
    return found >= 0 && last >= 0 && access_coef(p, &s->dst, last, found) == 1 ? found : -1;
}

/* ---- the program so ---- */

static bool add_lanes(struct program *q, const struct rows *r, int *lane) {
    int naxes = q->naxes;
    for (int a = 0; a < naxes; a++) {
        lane[a] = -1;
        if (!r->axis[a]) continue;
        lane[a] =
            program_add_axis(q, program_unique(q, q->axis[a].name, "lane"), r->lanes, q->naxes);
        if (lane[a] < 0) return false;
        q->axis[a].extent /= r->lanes;
        q->axis[a].param = -1;
    }
    return true;
}

static void in_rows_access(struct program *q, const struct rows *r, const int *lane,
                           struct access *x) {
    size_t row = (size_t)q->naxes + 1;
    int dims = r->p->buffer[x->buffer].ndims, to = 0;
    int64_t *coef = arena_array(&q->arena, 2 * (size_t)dims * row + 1, sizeof *coef);
    for (int d = 0; d < dims; d++) {
        const int64_t *from = x->coef + (size_t)d * row;
        memcpy(coef + (size_t)to++ * row, from, row * sizeof *coef);
        if (!r->split[d][x->buffer]) continue;
        for (int a = 0; a < r->p->naxes; a++)
            if (from[a]) coef[(size_t)to * row + (size_t)lane[a]] = 1;
        to++;
    }
    x->coef = coef;
}

static void in_rows_buffer(struct program *q, const struct rows *r, int buffer) {
    struct buffer *b = &q->buffer[buffer];
    int64_t *extent = arena_array(&q->arena, 2 * (size_t)b->ndims + 1, sizeof *extent);
    int to = 0;
    for (int d = 0; d < b->ndims; d++) {
        bool split = r->split[d][buffer];
        extent[to++] = split ? b->extent[d] / r->lanes : b->extent[d];
        if (split) extent[to++] = r->lanes;
    }
    b->extent = extent;
    b->ndims = to;
}

/* lane[]: of each axis that is split the one with its lanes. NULL: there is no room. */
static struct program *in_rows(const struct rows *r, int *lane) {
    struct program *q = program_copy(r->p);
    if (!add_lanes(q, r, lane)) {
        program_free(q);
        return NULL;
    }
    for (int k = 0; k < q->nstmts; k++) {
        struct stmt *s = &q->stmt[k];
        in_rows_access(q, r, lane, &s->dst);
        for (int x = 0; x < s->nreads; x++) in_rows_access(q, r, lane, &s->read[x]);
        for (int a = 0; a < r->p->naxes; a++)
            if (s->axes >> a & 1 && lane[a] >= 0) s->axes |= UINT64_C(1) << lane[a];
    }
    for (int b = 0; b < q->nbuffers; b++) in_rows_buffer(q, r, b);
    return q;
}

/* ---- the question ---- */

/* Is the operation what makes the result of an instruction with rows of so many lanes? */
static bool is_done(const struct needles *all, const struct op *o, int64_t lanes) {
    for (int i = 0; i < all->n; i++) {
        const struct needle *n = &all->at[i];
        if (lanes_of(n) != lanes) continue;
        const struct stmt *s = &n->program->stmt[n->program->nstmts - 1];
        if (s->op[s->nops - 1].code == o->code && s->op[s->nops - 1].type == o->type) return true;
    }
    return false;
}

/* Does some operation have such an instruction's lanes to itself? */
static bool may_pay(const struct rows *r, const struct needles *all) {
    for (int k = 0; k < r->p->nstmts; k++) {
        const struct stmt *s = &r->p->stmt[k];
        int a = lone_axis(r->p, s);
        for (int o = 0; a >= 0 && r->axis[a] && o < s->nops; o++)
            if (is_done(all, &s->op[o], r->lanes)) return true;
    }
    return false;
}

/* Before there is a plan nobody knows who executes these statements, so both ways cost the same:
 * the driver compares whole plans (scheduler/ways.c). */
static bool ask(const struct program *p, int axis, struct decider *d) {
    struct candidate c[] = {{"whole", 0, NULL}, {"in rows", 0, NULL}};
    struct text subject = {0};
    text_printf(&subject, "axes of '%s'", p->axis[axis].name);
    struct question q = {QUESTION_FUSION, subject.at, 2, 0, c, NULL};
    bool split = decide(d, &q) == IN_ROWS;
    text_free(&subject);
    return split;
}

/* The program with this axis in rows, and what goes with it; NULL. asked: nobody asks again of
 * these axes. */
static struct program *split(const struct program *p, int axis, int64_t lanes,
                             const struct needles *all, struct decider *d, bool *asked) {
    struct arena arena;
    struct rows r = {.p = p, .lanes = lanes};
    int lane[MAX_AXES];
    arena_init(&arena);
    for (int i = 0; i < MAX_DIMS; i++)
        r.split[i] = arena_array(&arena, (size_t)p->nbuffers + 1, sizeof **r.split);
    bool may = splits(&r, axis) && may_pay(&r, all);
    asked[axis] = true;
    for (int a = 0; may && a < p->naxes; a++) asked[a] |= r.axis[a];
    struct program *q = may && ask(p, axis, d) ? in_rows(&r, lane) : NULL;
    arena_free(&arena);
    return q;
}

struct program *split_rows(const struct program *p, const struct needles *all, struct decider *d) {
    struct program *now = NULL;
    int64_t last = 0;
    for (int i = 0; i < all->n; i++) {
        int64_t lanes = lanes_of(&all->at[i]);
        bool asked[MAX_AXES] = {false};
        for (int s = 0; lanes && lanes != last && s < p->nstmts; s++) {
            const struct program *of = now ? now : p;
            int axis = lone_axis(of, &of->stmt[s]);
            struct program *q =
                axis < 0 || asked[axis] ? NULL : split(of, axis, lanes, all, d, asked);
            if (!q) continue;
            program_free(now);
            now = q;
        }
        if (lanes) last = lanes;
    }
    return now;
}

/* Of one statement: its instruction takes rows and gets one, of the lanes that are all it has. */
static bool has_one_row(const struct needles *all, const struct program *p,
                        const struct mapping *m) {
    const struct needle *n = needle_of(all, m->instr);
    int64_t lanes = lanes_of(n);
    bool one = lanes > 0;
    for (int x = 0; x < n->naxes && one; x++)
        one = n->axis[x].lo == n->axis[x].hi ? group_extent(p, &m->group[x]) > lanes
                                             : m->group[x].n == 0;
    return one;
}

double cover_of_one_row(const struct cover *c, const struct needles *all) {
    const struct program *p = c->program;
    double cycles = 0;
    for (int i = 0; i < c->nitems; i++) {
        const struct cover_item *at = &c->item[i];
        if (at->mapping < 0 || !has_one_row(all, p, &c->mapping[at->mapping])) continue;
        double turns = 1;
        for (int k = p->stmt[at->stmt].scope - 1; k >= 0; k = c->steps.scope[k].parent)
            turns *= (double)p->axis[c->steps.scope[k].axis].extent;
        cycles += turns * c->mapping[at->mapping].cost;
    }
    return cycles;
}
