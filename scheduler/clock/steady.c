/* Does the body of a loop do the same in each of a range of its iterations? Each expression is
 * bounded over the range, and moves by the same step from one period to the next: sizes, trips and
 * flags by none. */
#include "scheduler/clock/period_int.h"

#include <string.h>

struct moving { /* an expression, or a variable */
    int64_t lo, hi, step;
};

struct steady {
    struct engine *e;
    const struct loop_node *loop;
    const struct snapshot *before, *now; /* one period apart */
    int64_t periods;                     /* that are asked for */
    struct moving *var;                  /* [schedule.nvars]; of those inside the loop */
    bool *inside;                        /* [schedule.nvars] */
};

static bool moving_of(const struct steady *s, const struct sx *x, struct moving *out);

static int64_t floor_of(int64_t a, int64_t b) {
    int64_t q = a / b;
    return a % b && (a < 0) != (b < 0) ? q - 1 : q;
}

static bool fixed(const struct moving *m) {
    return m->step == 0 && m->lo == m->hi;
}

static bool scaled(const struct moving *a, int64_t by, struct moving *out) {
    int64_t x, y;
    if (__builtin_mul_overflow(a->lo, by, &x) || __builtin_mul_overflow(a->hi, by, &y) ||
        __builtin_mul_overflow(a->step, by, &out->step))
        return false;
    out->lo = x < y ? x : y;
    out->hi = x < y ? y : x;
    return true;
}

static bool sum(const struct moving *a, const struct moving *b, struct moving *out) {
    return !__builtin_add_overflow(a->lo, b->lo, &out->lo) &&
           !__builtin_add_overflow(a->hi, b->hi, &out->hi) &&
           !__builtin_add_overflow(a->step, b->step, &out->step);
}

static bool divided(const struct moving *a, const struct moving *b, bool rest, struct moving *out) {
    if (!fixed(b) || b->lo <= 0) return false;
    int64_t c = b->lo, first = floor_of(a->lo, c), last = floor_of(a->hi, c);
    if (first == last) { /* no border is crossed */
        *out = rest ? (struct moving){a->lo - first * c, a->hi - first * c, a->step}
                    : (struct moving){first, first, 0};
        return true;
    }
    if (a->step % c) return false;
    *out = rest ? (struct moving){0, c - 1, 0} : (struct moving){first, last, a->step / c};
    return true;
}

/* The lesser of two; the one that it always is, or both move alike. */
static bool lesser(const struct moving *a, const struct moving *b, struct moving *out) {
    if (a->step == b->step)
        *out =
            (struct moving){a->lo < b->lo ? a->lo : b->lo, a->hi < b->hi ? a->hi : b->hi, a->step};
    else if (a->hi <= b->lo)
        *out = *a;
    else if (b->hi <= a->lo)
        *out = *b;
    else
        return false;
    return true;
}

static bool compared(enum sx_op op, const struct moving *a, const struct moving *b,
                     struct moving *out) {
    *out = (struct moving){0, 1, 0};
    if (a->step == b->step) return true;
    if (op == SX_LT) return a->hi < b->lo || a->lo >= b->hi;
    if (op == SX_LE) return a->hi <= b->lo || a->lo > b->hi;
    return a->hi < b->lo || a->lo > b->hi;
}

static bool combined(enum sx_op op, struct moving a, struct moving b, struct moving *out) {
    struct moving minus;
    switch (op) {
    case SX_ADD:
        return sum(&a, &b, out);
    case SX_SUB:
        return scaled(&b, -1, &minus) && sum(&a, &minus, out);
    case SX_MUL:
        if (fixed(&a)) return scaled(&b, a.lo, out);
        return fixed(&b) && scaled(&a, b.lo, out);
    case SX_DIV:
    case SX_MOD:
        return divided(&a, &b, op == SX_MOD, out);
    case SX_MIN:
        return lesser(&a, &b, out);
    case SX_MAX:
        if (!scaled(&a, -1, &a) || !scaled(&b, -1, &b) || !lesser(&a, &b, &minus)) return false;
        return scaled(&minus, -1, out);
    case SX_AND:
    case SX_OR:
        *out = (struct moving){0, 1, 0};
        return a.step == 0 && b.step == 0;
    default:
        return compared(op, &a, &b, out);
    }
}

static bool moving_of(const struct steady *s, const struct sx *x, struct moving *out) {
    struct moving a, b;
    if (x->op == SX_CONST) return *out = (struct moving){x->value, x->value, 0}, true;
    if (x->op == SX_VAR) {
        int64_t v = s->e->value[x->var];
        *out = s->inside[x->var] ? s->var[x->var] : (struct moving){v, v, 0};
        return true;
    }
    return moving_of(s, x->a, &a) && moving_of(s, x->b, &b) && combined(x->op, a, b, out);
}

static bool stays(const struct steady *s, const struct sx *x) {
    struct moving m;
    return moving_of(s, x, &m) && m.step == 0;
}

/* ---- work ---- */

/* The largest of the shapes that the issue has in the range; NULL: not known. */
static const struct shape *largest_shape(const struct steady *s, const struct node *node) {
    const struct instr *in = &s->e->machine->instr[node->issue->instr];
    struct executed x = {.node = node, .iterations = 1};
    for (int k = 0; k < in->nranged; k++) {
        struct moving m;
        const struct size_range *r = range_of_size(s->e, node->issue->instr, k);
        if (!moving_of(s, node->issue->size[k], &m)) return NULL;
        x.size[k] = m.hi;
        if (x.size[k] < 0 ||
            (r->step > 0 && (x.size[k] < r->lo || (r->hi >= 0 && x.size[k] > r->hi) ||
                             (x.size[k] - r->lo) % r->step)))
            return NULL;
    }
    for (int k = 0; k < in->nstride_names; k++)
        x.stride[k] = value_of(s->e, node->issue->stride[k]);
    return shape_of(s->e, node, &x);
}

/* No point of the box [base, base + extent) is outside the axis, wherever the box is; or the box
 * stays. */
static bool axis_steady(const struct steady *s, const struct issue_node *i,
                        const struct shape *shape, int a, struct moving *base) {
    int64_t extent = 1;
    *base = (struct moving){0, 0, 0};
    if (i->base[a] && !moving_of(s, i->base[a], base)) return false;
    for (int k = 0; k < shape->program->naxes; k++)
        if (i->axis[k] == a) extent = shape->program->axis[k].extent;
    bool inside = base->lo >= 0 && base->hi + extent <= s->e->schedule->program->axis[a].extent;
    base->hi += extent - 1;
    return base->step == 0 || inside;
}

/* A bound of the statement's domain holds everywhere, or moves with the box. */
static bool row_steady(const struct program *p, const int64_t *coef, const struct moving *base) {
    __int128 least = coef[p->naxes], step = 0;
    for (int a = 0; a < p->naxes; a++) {
        least += (__int128)coef[a] * (coef[a] > 0 ? base[a].lo : base[a].hi);
        step += (__int128)coef[a] * base[a].step;
    }
    return step == 0 || least >= 0;
}

static bool work_steady(const struct steady *s, const struct issue_node *i,
                        const struct shape *shape, int stmt) {
    const struct program *p = s->e->schedule->program;
    struct moving base[MAX_AXES];
    if (stmt < 0) return true;
    memset(base, 0, sizeof base);
    for (int a = 0; a < p->naxes; a++)
        if ((p->stmt[stmt].axes >> a & 1) && !axis_steady(s, i, shape, a, &base[a])) return false;
    for (int w = 0; w < p->stmt[stmt].nwhere; w++)
        if (!row_steady(p, p->stmt[stmt].where[w].coef, base)) return false;
    return true;
}

/* ---- what may wait for what ---- */

/* What waits in the queues at the loop's head is of this loop: it moves as the expression does. */
static bool waiting_follows(const struct steady *s, const struct node *node, int part,
                            int64_t step) {
    for (int k = 0; s->now && k < s->now->nnumbers; k++) {
        const struct located *a = &s->before->number[k], *b = &s->now->number[k];
        if (b->node == node && b->part == part && b->at - a->at != step) return false;
    }
    return true;
}

static bool rotates(const struct node *node, int n, int place) {
    for (int k = 0; k < n; k++) {
        if (node[k].kind == NODE_ROTATE && node[k].rotate == place) return true;
        if (node[k].kind == NODE_LOOP && rotates(node[k].loop->body, node[k].loop->nbody, place))
            return true;
    }
    return false;
}

static bool operand_range(const struct steady *s, const struct node *node,
                          const struct shape *shape, int o, const struct image *image,
                          struct range *out) {
    const struct issue_node *i = node->issue;
    const struct place *p = &s->e->schedule->place[i->arg[o].place];
    int64_t size = (int64_t)type_size(s->e->machine->instr[i->instr].operand[o].type), slot = 0,
            slots = 1;
    struct moving m;
    if (!moving_of(s, i->arg[o].offset, &m)) return false;
    if (rotates(s->loop->body, s->loop->nbody, i->arg[o].place))
        slots = p->slots;
    else if (s->e->slot[i->arg[o].place] > 0)
        slot = s->e->slot[i->arg[o].place];
    out->step = m.step;
    out->first = (p->address + slot * p->bytes + m.lo + shape->reach[o].lo * size) / image->piece;
    out->last =
        (p->address + (slot + slots - 1) * p->bytes + m.hi + (shape->reach[o].hi + 1) * size - 1) /
        image->piece;
    return true;
}

/* Nothing that can still delay it lies there. */
static bool granules_cold(const struct engine *e, const struct image *image,
                          const struct range *range) {
    double earliest = earliest_start(e);
    for (int64_t g = range->first; g <= range->last && g <= image->bytes / image->piece; g++) {
        int64_t at = g < 0 ? 0 : g;
        const struct marks_page *page = marks_page(&image->marks, at);
        if (!page) continue;
        const struct granule *is = &page->granule[at % MARKS_PAGE];
        if (is->visible > earliest || is->read_end > earliest) return false;
        if (is->wrote_queue && is->wrote > e->queue[is->wrote_queue - 1].ran) return false;
        for (int q = 0; q < e->machine->nqueues; q++)
            if (page->read[at % MARKS_PAGE * e->machine->nqueues + q] > e->queue[q].ran)
                return false;
    }
    return true;
}

/* What can still delay it moves as it does, or lies elsewhere in all periods. */
static bool touches_apart(const struct steady *s, int queue, bool writes, const struct image *image,
                          const struct range *r) {
    for (int k = 0; k < s->now->ntouches; k++) {
        const struct touch *t = &s->now->touch[k];
        int64_t further = t->address - s->before->touch[k].address,
                all = (int64_t)((uint64_t)further * (uint64_t)s->periods);
        if (t->image != image || !(s->e->interlocked[queue] >> t->queue & 1)) continue;
        if ((!t->writes && !writes) || further == r->step) continue;
        struct touch from = *t, to = *t;
        from.address += all < 0 ? all : 0;
        to.address += all > 0 ? all : 0;
        if (touch_first(&from) <= r->last && touch_last(&to) >= r->first) return false;
    }
    return true;
}

/* All that use the place read it, or all write it. */
static bool used_so(const struct engine *e, const struct node *node, int n, int place,
                    enum role role) {
    for (int k = 0; k < n; k++) {
        if (node[k].kind == NODE_FALLBACK) return false;
        if (node[k].kind == NODE_LOOP &&
            !used_so(e, node[k].loop->body, node[k].loop->nbody, place, role))
            return false;
        if (node[k].kind != NODE_ISSUE) continue;
        const struct instr *in = &e->machine->instr[node[k].issue->instr];
        for (int o = 0; o < in->noperands; o++)
            if (node[k].issue->arg[o].place == place && in->operand[o].role != role) return false;
    }
    return true;
}

/* Out-of-order queues alone. What the loop itself writes comes when the loop writes it. */
static bool arrives_steadily(const struct steady *s, const struct node *node, int o,
                             struct image *image, const struct range *r) {
    const struct engine *e = s->e;
    const struct instr *in = &e->machine->instr[node->issue->instr];
    if (image_small(image)) return false;
    if (in->operand[o].role == ROLE_OUT || !e->interlocked[in->queue]) return true;
    if (e->joined && e->is_host[in->queue]) return true;
    if (!used_so(e, s->loop->body, s->loop->nbody, node->issue->arg[o].place, ROLE_IN)) return true;
    return arrivals_steady(e, s->before, s->now, in->queue, image, r);
}

/* A memory inside of the unit is each instance's own; outside, all only read a place, or each
 * writes pieces of its own. */
static bool instance_steady(const struct steady *s, const struct node *node, int o,
                            const struct image *image, int64_t step) {
    const struct machine *m = s->e->machine;
    const struct place *p = &s->e->schedule->place[node->issue->arg[o].place];
    enum role role = m->instr[node->issue->instr].operand[o].role;
    if (unit_inside(m, m->memory[p->memory].unit, s->loop->unit)) return step == 0;
    if (s->e->eager || (role != ROLE_IN && step % image->piece)) return false;
    return used_so(s->e, s->loop->body, s->loop->nbody, node->issue->arg[o].place, role);
}

static bool operand_steady(const struct steady *s, const struct node *node,
                           const struct shape *shape, int o) {
    struct engine *e = s->e;
    const struct instr *in = &e->machine->instr[node->issue->instr];
    struct image *image = image_of(e, e->schedule->place[node->issue->arg[o].place].memory);
    struct range r;
    if (!image || !operand_range(s, node, shape, o, image, &r)) return false;
    if (!s->now) return instance_steady(s, node, o, image, r.step);
    if (!waiting_follows(s, node, o, r.step)) return false;
    if (r.step == 0 && image_small(image)) return true;
    if (!e->exact) return arrives_steadily(s, node, o, image, &r);
    if (r.step % image->piece) return false;
    return image_small(image)
               ? granules_cold(e, image, &r)
               : touches_apart(s, in->queue, in->operand[o].role != ROLE_IN, image, &r);
}

static bool operands_steady(const struct steady *s, const struct node *node) {
    const struct instr *in = &s->e->machine->instr[node->issue->instr];
    if (in->queue < 0 || !queue_tracked(s->e, in->queue)) return true;
    const struct shape *shape = largest_shape(s, node);
    for (int o = 0; o < in->noperands && shape; o++)
        if (node->issue->arg[o].place >= 0 && !operand_steady(s, node, shape, o)) return false;
    return shape != NULL;
}

/* ---- nodes ---- */

static bool nodes_steady(struct steady *s, const struct node *node, int n);

static bool issue_steady(const struct steady *s, const struct node *node) {
    const struct issue_node *i = node->issue;
    const struct instr *in = &s->e->machine->instr[i->instr];
    for (int k = 0; k < in->nranged; k++)
        if (!stays(s, i->size[k])) return false;
    for (int k = 0; k < in->nstride_names; k++)
        if (!stays(s, i->stride[k])) return false;
    for (int o = 0, flag = 0; o < in->noperands; o++) {
        if (in->operand[o].accumulate && !stays(s, i->flag[flag++])) return false;
    }
    if (!operands_steady(s, node)) return false;
    if (s->e->options->trusted || i->stmt < 0) return true;
    const struct shape *shape = largest_shape(s, node);
    if (!shape || !work_steady(s, i, shape, i->stmt)) return false;
    for (int k = 0; k < i->nalso; k++)
        if (!work_steady(s, i, shape, i->also[k])) return false;
    return true;
}

/* The box has the same extents; where the statement has bounds of its own, it stays. */
static bool fallback_steady(const struct steady *s, const struct node *node) {
    const struct fallback_node *f = node->fallback;
    const struct program *p = s->e->schedule->program;
    const struct stmt *t = &p->stmt[f->stmt];
    for (int a = 0; a < p->naxes; a++) {
        struct moving lo, hi;
        if (!f->lo || !f->lo[a] || !f->hi || !f->hi[a]) continue;
        if (!moving_of(s, f->lo[a], &lo) || !moving_of(s, f->hi[a], &hi)) return false;
        if (lo.step != hi.step || (t->nwhere && lo.step)) return false;
        if (!waiting_follows(s, node, 2 * a, lo.step) ||
            !waiting_follows(s, node, 2 * a + 1, hi.step))
            return false;
    }
    return true;
}

static bool loop_steady(struct steady *s, const struct loop_node *l) {
    struct moving lo, hi;
    if (!moving_of(s, l->lo, &lo) || !moving_of(s, l->hi, &hi) || lo.step != hi.step) return false;
    s->inside[l->var] = true;
    s->var[l->var] = (struct moving){lo.lo, hi.hi > lo.lo ? hi.hi - 1 : lo.lo, lo.step};
    bool ok = nodes_steady(s, l->body, l->nbody);
    s->inside[l->var] = false;
    return ok;
}

static bool nodes_steady(struct steady *s, const struct node *node, int n) {
    for (int k = 0; k < n; k++) {
        if (node[k].kind == NODE_LOOP && !loop_steady(s, node[k].loop)) return false;
        if (node[k].kind == NODE_ISSUE && !issue_steady(s, &node[k])) return false;
        if (node[k].kind == NODE_FALLBACK && !fallback_steady(s, &node[k])) return false;
    }
    return true;
}

static bool range_steady(struct steady *s, const struct loop_node *l, int64_t first, int64_t last,
                         int64_t by) {
    s->inside[l->var] = true;
    s->var[l->var] = (struct moving){first, last, by};
    s->periods = (last - first) / by;
    bool ok = nodes_steady(s, l->body, l->nbody);
    s->inside[l->var] = false;
    return ok && !s->e->failed;
}

static void steady_open(struct engine *e, struct steady *s) {
    size_t n = (size_t)e->schedule->nvars + 1;
    if (!e->steady_var) {
        e->steady_var = arena_array(&e->arena, n, sizeof(struct moving));
        e->steady_inside = arena_array(&e->arena, n, sizeof(bool));
    }
    s->e = e;
    s->var = e->steady_var;
    s->inside = e->steady_inside;
}

/* The most periods, each moving the variable by so much, for which the range is steady. */
static int64_t longest(struct steady *s, int64_t first, int64_t by, int64_t most) {
    int64_t good = 0, bad = most + 1;
    for (int64_t k = most; bad - good > 1; k = good + (bad - good) / 2)
        if (range_steady(s, s->loop, first, first + (k + 1) * by - s->loop->step, by))
            good = k;
        else
            bad = k;
    return good;
}

/* At most `most`: how many periods after the one between the snapshots do the same. `first`: the
 * variable's value at the first of them. */
int64_t periods_steady(struct engine *e, const struct loop_node *l, int64_t first,
                       const struct snapshot *before, const struct snapshot *now, int64_t most) {
    struct steady s = {.loop = l, .before = before, .now = now};
    steady_open(e, &s);
    return longest(&s, first, (now->trip - before->trip) * l->step, most);
}

int64_t instances_steady(struct engine *e, const struct loop_node *l, int64_t first, int64_t most) {
    struct steady s = {.loop = l};
    steady_open(e, &s);
    return longest(&s, first, l->step, most);
}
