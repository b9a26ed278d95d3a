/* With loops cut short, how many instances the whole schedule executes is counted without walking
 * it: the values of each axis follow from some of the loops around a node, mostly from others than
 * those of another axis, so the count is a product of sums. Where loops belong together they are
 * run together, within a bound. */
#include "scheduler/verify/verify_int.h"

#include <inttypes.h>
#include <string.h>

enum { PATH = 60, FACTORS = MAX_AXES + PATH + 1 };
static const int64_t STEPS = 2000000;

enum factor_kind { FACTOR_AXIS, FACTOR_FLAG, FACTOR_LOOP };

struct factor {
    enum factor_kind kind;
    int axis;
    uint64_t loops; /* of the path, that its value depends on */
};

struct extents { /* of the needle's axes, for one choice of sizes */
    int instr;
    int64_t *size, *extent;
    struct extents *next;
};

struct total {
    struct verify *v;
    const struct loop_node *path[PATH];
    int depth, stmt;
    const struct node *node;
    bool init; /* the statement is the node's initialisation */
    struct factor factor[FACTORS];
    int nfactors;
    int64_t sum, left;
    bool unknown;
    struct extents *extents;
};

static uint64_t loops_of(const struct total *t, const struct sx *x) {
    if (!x || x->op == SX_CONST) return 0;
    if (x->op != SX_VAR) return loops_of(t, x->a) | loops_of(t, x->b);
    for (int k = t->depth - 1; k >= 0; k--)
        if (t->path[k]->var == x->var)
            return UINT64_C(1) << k | loops_of(t, t->path[k]->lo) | loops_of(t, t->path[k]->hi);
    return 0;
}

/* ---- one node ---- */
static const int64_t *extents_of(struct total *t, const struct issue_node *n) {
    struct verify *v = t->v;
    const struct instr *in = &v->m->instr[n->instr];
    int naxes = kernel_axis_count(in->semantics);
    int64_t size[64];
    if (in->nranged > 64) return NULL;
    for (int k = 0; k < in->nranged; k++) size[k] = sx_eval(n->size[k], v->var);
    size_t bytes = (size_t)in->nranged * sizeof *size;
    for (struct extents *e = t->extents; e; e = e->next)
        if (e->instr == n->instr && memcmp(e->size, size, bytes) == 0) return e->extent;
    struct diags ignored;
    diags_init(&ignored);
    struct program *p = instr_bind(v->m, in, size, &ignored);
    diags_free(&ignored);
    if (!p) return NULL;
    struct extents *e = arena_alloc(&v->arena, sizeof *e);
    *e = (struct extents){.instr = n->instr, .next = t->extents};
    e->size = arena_copy(&v->arena, size, bytes);
    e->extent = arena_array(&v->arena, (size_t)naxes + 1, sizeof *e->extent);
    for (int x = 0; x < naxes; x++) {
        const char *name = kernel_axis_at(in->semantics, x)->name;
        for (int a = 0; a < p->naxes; a++)
            if (strcmp(p->axis[a].name, name) == 0) e->extent[x] = p->axis[a].extent;
    }
    program_free(p);
    t->extents = e;
    return e->extent;
}

static int64_t clipped(int64_t lo, int64_t hi, int64_t extent) {
    if (lo < 0) lo = 0;
    if (hi > extent) hi = extent;
    return hi > lo ? hi - lo : 0;
}

static int64_t axis_value(struct total *t, int axis) {
    struct verify *v = t->v;
    int64_t all = v->p->axis[axis].extent;
    if (t->node->kind == NODE_FALLBACK) {
        const struct fallback_node *n = t->node->fallback;
        int64_t lo = n->lo && n->lo[axis] ? sx_eval(n->lo[axis], v->var) : 0;
        return clipped(lo, n->lo && n->lo[axis] ? sx_eval(n->hi[axis], v->var) : all, all);
    }
    const struct issue_node *n = t->node->issue;
    int64_t base = n->base[axis] ? sx_eval(n->base[axis], v->var) : 0, extent = 1;
    const int64_t *extents = extents_of(t, n);
    t->unknown |= !extents;
    for (int x = 0; extents && x < kernel_axis_count(v->m->instr[n->instr].semantics); x++)
        if (n->axis[x] == axis) extent = extents[x];
    return clipped(base, base + extent, all);
}

static const struct sx *flag_of(const struct total *t) {
    const struct issue_node *n = t->node->issue;
    const struct instr *in = &t->v->m->instr[n->instr];
    return instr_flag_count(in) == 1 ? n->flag[0] : NULL;
}

static int64_t value_of(struct total *t, const struct factor *f) {
    if (f->kind == FACTOR_LOOP) return 1;
    if (f->kind == FACTOR_FLAG) return sx_eval(flag_of(t), t->v->var) == 0;
    return axis_value(t, f->axis);
}

static void add_factor(struct total *t, enum factor_kind kind, int axis, uint64_t loops) {
    t->factor[t->nfactors++] = (struct factor){kind, axis, loops};
}

static uint64_t axis_loops(const struct total *t, int axis) {
    if (t->node->kind == NODE_FALLBACK) {
        const struct fallback_node *n = t->node->fallback;
        return n->lo ? loops_of(t, n->lo[axis]) | loops_of(t, n->hi[axis]) : 0;
    }
    const struct issue_node *n = t->node->issue;
    const struct instr *in = &t->v->m->instr[n->instr];
    uint64_t loops = loops_of(t, n->base[axis]);
    for (int x = 0; x < kernel_axis_count(in->semantics); x++)
        for (int k = 0; n->axis[x] == axis && k < in->nranged; k++)
            if (kernel_axis_names(in->semantics, x, in->ranged[k]))
                loops |= loops_of(t, n->size[k]);
    return loops;
}

static void find_factors(struct total *t) {
    uint64_t used = 0;
    t->nfactors = 0;
    for (int a = 0; a < t->v->p->naxes; a++)
        if (t->v->domain[t->stmt] >> a & 1) add_factor(t, FACTOR_AXIS, a, axis_loops(t, a));
    if (t->init && flag_of(t)) add_factor(t, FACTOR_FLAG, -1, loops_of(t, flag_of(t)));
    for (int k = 0; k < t->nfactors; k++) used |= t->factor[k].loops;
    for (int k = 0; k < t->depth; k++)
        if (!(used >> k & 1))
            add_factor(t, FACTOR_LOOP, -1,
                       UINT64_C(1) << k | loops_of(t, t->path[k]->lo) |
                           loops_of(t, t->path[k]->hi));
}

/* ---- sums over the loops of a group of factors ---- */
static int64_t product_of(struct total *t, uint64_t group) {
    int64_t x = 1;
    for (int k = 0; k < t->nfactors; k++)
        if ((t->factor[k].loops & group) || (!group && !t->factor[k].loops))
            t->unknown |= __builtin_mul_overflow(x, value_of(t, &t->factor[k]), &x);
    return x;
}

static int64_t group_sum(struct total *t, uint64_t group, int depth) {
    while (depth < t->depth && !(group >> depth & 1)) depth++;
    if (depth == t->depth) return product_of(t, group);
    const struct loop_node *l = t->path[depth];
    int64_t lo = sx_eval(l->lo, t->v->var), hi = sx_eval(l->hi, t->v->var), sum = 0;
    int64_t keep = t->v->var[l->var];
    for (int64_t x = lo; x < hi && !t->unknown; x += l->step) {
        t->unknown |= --t->left < 0 || x > INT64_MAX - l->step;
        t->v->var[l->var] = x;
        t->unknown |= __builtin_add_overflow(sum, group_sum(t, group, depth + 1), &sum);
    }
    t->v->var[l->var] = keep;
    return sum;
}

static void count_node(struct total *t) {
    int64_t count;
    uint64_t left = 0;
    find_factors(t);
    for (int k = 0; k < t->depth; k++)
        t->v->var[t->path[k]->var] = sx_eval(t->path[k]->lo, t->v->var);
    for (int k = 0; k < t->nfactors; k++) left |= t->factor[k].loops;
    count = product_of(t, 0);
    while (left && !t->unknown) {
        uint64_t group = left & -left, before = 0;
        while (group != before) {
            before = group;
            for (int k = 0; k < t->nfactors; k++)
                if (t->factor[k].loops & group) group |= t->factor[k].loops;
        }
        t->unknown |= __builtin_mul_overflow(count, group_sum(t, group, 0), &count);
        left &= ~group;
    }
    t->unknown |= __builtin_add_overflow(t->sum, count, &t->sum);
}

static void count_nodes(struct total *t, const struct node *node, int n) {
    for (int k = 0; k < n && !t->unknown; k++) {
        t->node = &node[k];
        if (node[k].kind == NODE_LOOP) {
            t->unknown |= t->depth == PATH;
            if (t->unknown) return;
            t->path[t->depth++] = node[k].loop;
            count_nodes(t, node[k].loop->body, node[k].loop->nbody);
            t->depth--;
            continue;
        }
        t->init = node[k].kind == NODE_ISSUE && node[k].issue->stmt >= 0 &&
                  node[k].issue->init == t->stmt;
        bool also = false;
        for (int q = 0; node[k].kind == NODE_ISSUE && q < node[k].issue->nalso; q++)
            also |= node[k].issue->also[q] == t->stmt;
        if (t->init || also || (node[k].kind == NODE_ISSUE && node[k].issue->stmt == t->stmt) ||
            (node[k].kind == NODE_FALLBACK && node[k].fallback->stmt == t->stmt))
            count_node(t);
    }
}

void verify_totals(struct verify *v) {
    struct total t = {.v = v, .left = STEPS};
    v->node = NULL;
    for (int s = 0; s < v->p->nstmts && !v->stop; s++) {
        if (v->loose_stmt[s] || v->recurrence_of[s] >= 0 || v->p->stmt[s].nwhere > 0) continue;
        t.stmt = s;
        t.sum = 0;
        t.unknown = false;
        count_nodes(&t, v->s->prepare.node, v->s->prepare.nnodes);
        count_nodes(&t, v->s->run.node, v->s->run.nnodes);
        int64_t points = stmt_points(v->p, &v->p->stmt[s]);
        if (!t.unknown &&
            (v->may_repeat[v->p->stmt[s].dst.buffer] ? t.sum < points : t.sum != points))
            verify_error(v, "%" PRId64 " of the %" PRId64 " instances of statement %d are executed",
                         t.sum, points, s);
    }
}
