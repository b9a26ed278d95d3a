/* One form for programs that differ in names, in the order of declarations, in the sides of
 * commutative operations, in unit axes and in how an axis is split (MAPPING, step 1). */
#include "ir/canonical_int.h"

#include <stdlib.h>
#include <string.h>

static uint64_t recurring_axes(const struct item *item, int n) {
    uint64_t mask = 0;
    for (int k = 0; k < n; k++)
        if (item[k].kind == ITEM_RECUR)
            mask |= (uint64_t)1 << item[k].recur->axis |
                    recurring_axes(item[k].recur->item, item[k].recur->nitems);
    return mask;
}

static void access_clear(const struct program *p, struct access *a, int axis) {
    for (int d = 0; d < p->buffer[a->buffer].ndims; d++)
        a->coef[(size_t)d * ((size_t)p->naxes + 1) + (size_t)axis] = 0;
}

/* The axis leaves the program: its value is 0, or part of another axis. */
static void axis_remove(struct program *p, int axis) {
    for (int n = 0; n < p->nstmts; n++) {
        struct stmt *s = &p->stmt[n];
        access_clear(p, &s->dst, axis);
        for (int r = 0; r < s->nreads; r++) access_clear(p, &s->read[r], axis);
        for (int w = 0; w < s->nwhere; w++) s->where[w].coef[axis] = 0;
        for (int o = 0; o < s->nops; o++) {
            if (s->op[o].code != OP_AXIS || s->op[o].axis != axis) continue;
            struct op zero = {.code = OP_LITERAL, .type = s->op[o].type};
            s->op[o] = zero;
        }
        s->axes &= ~((uint64_t)1 << axis);
    }
}

static bool access_collinear(const struct program *p, const struct access *x, int a, int b) {
    for (int d = 0; d < p->buffer[x->buffer].ndims; d++) {
        int64_t whole;
        if (__builtin_mul_overflow(access_coef(p, x, d, b), p->axis[b].extent, &whole))
            return false;
        if (access_coef(p, x, d, a) != whole) return false;
    }
    return true;
}

/* a * extent(b) + b may be one axis: it is all that any statement knows of them. */
static bool axes_collinear(const struct program *p, int a, int b) {
    for (int n = 0; n < p->nstmts; n++) {
        const struct stmt *s = &p->stmt[n];
        if ((s->axes >> a & 1) != (s->axes >> b & 1)) return false;
        if (!(s->axes >> a & 1)) continue;
        if (!access_collinear(p, &s->dst, a, b)) return false;
        for (int r = 0; r < s->nreads; r++)
            if (!access_collinear(p, &s->read[r], a, b)) return false;
        for (int w = 0; w < s->nwhere; w++)
            if (s->where[w].coef[a] != 0 || s->where[w].coef[b] != 0) return false;
        for (int o = 0; o < s->nops; o++)
            if (s->op[o].code == OP_AXIS && (s->op[o].axis == a || s->op[o].axis == b))
                return false;
    }
    return true;
}

static bool merge_pair(struct program *p, uint64_t *free_axes) {
    for (int a = 0; a < p->naxes; a++) {
        for (int b = 0; b < p->naxes; b++) {
            int64_t extent;
            if (a == b || !(*free_axes >> a & 1) || !(*free_axes >> b & 1)) continue;
            if (__builtin_mul_overflow(p->axis[a].extent, p->axis[b].extent, &extent)) continue;
            if (extent > (int64_t)1 << 48 || !axes_collinear(p, a, b)) continue;
            axis_remove(p, a);
            p->axis[b].extent = extent;
            *free_axes &= ~((uint64_t)1 << a);
            return true;
        }
    }
    return false;
}

static void simplify_axes(struct program *p) {
    uint64_t recurring = recurring_axes(p->item, p->nitems), used = 0, free_axes = 0;
    for (int a = 0; a < p->naxes; a++)
        if (!(recurring >> a & 1) && p->axis[a].extent == 1) axis_remove(p, a);
    for (int s = 0; s < p->nstmts; s++) used |= p->stmt[s].axes;
    for (int a = 0; a < p->naxes; a++)
        if (used >> a & 1 && !p->axis[a].sequential) free_axes |= (uint64_t)1 << a;
    while (merge_pair(p, &free_axes)) {
    }
}

/* Constraints without any axis say nothing when they hold. */
static void simplify_where(struct program *p) {
    for (int n = 0; n < p->nstmts; n++) {
        struct stmt *s = &p->stmt[n];
        int kept = 0;
        for (int w = 0; w < s->nwhere; w++) {
            bool varies = false;
            for (int a = 0; a < p->naxes; a++) varies = varies || s->where[w].coef[a] != 0;
            if (varies || s->where[w].coef[p->naxes] < 0) s->where[kept++] = s->where[w];
        }
        s->nwhere = kept;
    }
}

/* New numbers for axes, buffers and statements. */
struct renumber {
    const struct program *p;
    struct colours colours;
    int *axis, *buffer; /* new → old */
    int naxes, nbuffers, nstmts;
    int *stmt;
    bool *axis_seen, *buffer_seen;
};

static void see_axis(struct renumber *r, int a) {
    if (r->axis_seen[a]) return;
    r->axis_seen[a] = true;
    r->axis[r->naxes++] = a;
}

static void see_buffer(struct renumber *r, int b) {
    if (r->buffer_seen[b]) return;
    r->buffer_seen[b] = true;
    r->buffer[r->nbuffers++] = b;
}

/* The axes of one row, those with large strides first. */
static void see_row(struct renumber *r, const int64_t *row) {
    uint64_t done = 0;
    for (;;) {
        int best = -1;
        for (int a = 0; a < r->p->naxes; a++) {
            if (row[a] == 0 || done >> a & 1) continue;
            if (best < 0 || row[a] > row[best] ||
                (row[a] == row[best] && r->colours.axis[a] < r->colours.axis[best]))
                best = a;
        }
        if (best < 0) return;
        done |= (uint64_t)1 << best;
        see_axis(r, best);
    }
}

static void see_access(struct renumber *r, const struct access *a) {
    see_buffer(r, a->buffer);
    for (int d = 0; d < r->p->buffer[a->buffer].ndims; d++)
        see_row(r, a->coef + (size_t)d * ((size_t)r->p->naxes + 1));
}

struct rebuild {
    struct arena *arena;
    const struct stmt *from;
    const uint64_t *colour;
    struct stmt *to;
    int *made; /* old op → new op, or -1 */
};

/* Post-order, operands of commutative operations by colour. */
static int rebuild_op(struct rebuild *b, int n) {
    struct op o = b->from->op[n];
    if (b->made[n] >= 0) return b->made[n];
    int arity = op_info[o.code].arity;
    if (op_info[o.code].flags & OP_COMM && b->colour[o.arg[0]] > b->colour[o.arg[1]]) {
        int swap = o.arg[0];
        o.arg[0] = o.arg[1];
        o.arg[1] = swap;
    }
    for (int k = 0; k < arity; k++) o.arg[k] = rebuild_op(b, o.arg[k]);
    for (int k = arity; k < 3; k++) o.arg[k] = 0;
    if (o.code == OP_READ) {
        b->to->read[b->to->nreads] = b->from->read[o.read];
        o.read = b->to->nreads++;
    }
    b->to->op[b->to->nops] = o;
    return b->made[n] = b->to->nops++;
}

static void order_operands(struct arena *a, struct stmt *s, const uint64_t *colour) {
    struct stmt to = *s;
    struct rebuild b = {a, s, colour, &to, arena_array(a, (size_t)s->nops, sizeof(int))};
    to.op = arena_array(a, (size_t)s->nops, sizeof *to.op);
    /* one op may share a read with another: each gets its own */
    to.read = arena_array(a, (size_t)s->nops, sizeof *to.read);
    to.nops = to.nreads = 0;
    for (int n = 0; n < s->nops; n++) b.made[n] = -1;
    rebuild_op(&b, s->nops - 1);
    *s = to;
}

static void see_stmt(struct renumber *r, int n) {
    const struct stmt *s = &r->p->stmt[n];
    r->stmt[r->nstmts++] = n;
    see_access(r, &s->dst);
    for (int k = 0; k < s->nreads; k++) see_access(r, &s->read[k]);
    for (int o = 0; o < s->nops; o++)
        if (s->op[o].code == OP_AXIS) see_axis(r, s->op[o].axis);
    for (int w = 0; w < s->nwhere; w++) see_row(r, s->where[w].coef);
}

static void see_items(struct renumber *r, const struct item *item, int n) {
    for (int k = 0; k < n; k++) {
        const struct call *c = item[k].call;
        const struct recur *q = item[k].recur;
        if (item[k].kind == ITEM_STMT) see_stmt(r, item[k].stmt);
        if (item[k].kind == ITEM_CALL) {
            for (int b = 0; b < c->nwrites; b++) see_buffer(r, c->write[b]);
            for (int b = 0; b < c->nreads; b++) see_buffer(r, c->read[b]);
        }
        if (item[k].kind != ITEM_RECUR) continue;
        see_axis(r, q->axis);
        for (int s = 0; s < q->nstates; s++) {
            see_buffer(r, q->state[s].current);
            see_buffer(r, q->state[s].next);
            see_buffer(r, q->state[s].from);
            if (q->state[s].to >= 0) see_buffer(r, q->state[s].to);
        }
        see_items(r, q->item, q->nitems);
    }
}

/* Sequential axes keep their order among themselves: it is part of the meaning. */
static void restore_sequential(struct renumber *r, uint64_t recurring) {
    int next = 0;
    for (int k = 0; k < r->naxes; k++) {
        int a = r->axis[k];
        if (!r->p->axis[a].sequential || recurring >> a & 1) continue;
        while (!r->axis_seen[next] || !r->p->axis[next].sequential || recurring >> next & 1) next++;
        r->axis[k] = next++;
    }
}

static void see_unused_buffers(struct renumber *r) {
    for (;;) {
        int best = -1;
        for (int b = 0; b < r->p->nbuffers; b++)
            if (!r->buffer_seen[b] && (best < 0 || r->colours.buffer[b] < r->colours.buffer[best]))
                best = b;
        if (best < 0) return;
        see_buffer(r, best);
    }
}

/* ---- the renumbered program ---- */

struct numbers {
    const struct renumber *r;
    int *axis, *buffer, *stmt; /* old → new */
};

static int64_t *new_row(struct arena *a, const struct numbers *n, const int64_t *row,
                        int64_t *out) {
    const struct renumber *r = n->r;
    if (!out) out = arena_array(a, (size_t)r->naxes + 1, sizeof *out);
    for (int k = 0; k < r->naxes; k++) out[k] = row[r->axis[k]];
    out[r->naxes] = row[r->p->naxes];
    return out;
}

static struct access new_access(struct arena *a, const struct numbers *n, const struct access *x) {
    const struct program *p = n->r->p;
    struct access y = *x;
    int ndims = p->buffer[x->buffer].ndims;
    size_t from = (size_t)p->naxes + 1, to = (size_t)n->r->naxes + 1;
    y.buffer = n->buffer[x->buffer];
    y.coef = arena_array(a, to * (size_t)ndims, sizeof *y.coef);
    for (int d = 0; d < ndims; d++)
        new_row(a, n, x->coef + (size_t)d * from, y.coef + (size_t)d * to);
    return y;
}

static int compare_rows(const void *a, const void *b, void *width) {
    const int64_t *x = ((const struct constraint *)a)->coef,
                  *y = ((const struct constraint *)b)->coef;
    for (size_t k = 0; k < *(size_t *)width; k++)
        if (x[k] != y[k]) return x[k] < y[k] ? -1 : 1;
    return 0;
}

static struct stmt new_stmt(struct arena *a, const struct numbers *n, const struct stmt *s) {
    struct stmt t = *s;
    size_t width = (size_t)n->r->naxes + 1;
    t.dst = new_access(a, n, &s->dst);
    t.read = arena_array(a, (size_t)s->nreads, sizeof *t.read);
    for (int k = 0; k < s->nreads; k++) t.read[k] = new_access(a, n, &s->read[k]);
    t.op = arena_copy(a, s->op, (size_t)s->nops * sizeof *s->op);
    for (int o = 0; o < s->nops; o++)
        if (t.op[o].code == OP_AXIS) t.op[o].axis = n->axis[t.op[o].axis];
    t.where = arena_array(a, (size_t)s->nwhere, sizeof *t.where);
    for (int w = 0; w < s->nwhere; w++) t.where[w].coef = new_row(a, n, s->where[w].coef, NULL);
    if (s->nwhere > 0) qsort_r(t.where, (size_t)s->nwhere, sizeof *t.where, compare_rows, &width);
    t.axes = 0;
    for (int k = 0; k < n->r->naxes; k++)
        if (s->axes >> n->r->axis[k] & 1) t.axes |= (uint64_t)1 << k;
    return t;
}

static struct item *new_items(struct arena *a, const struct numbers *n, const struct item *item,
                              int count) {
    struct item *to = arena_copy(a, item, (size_t)count * sizeof *item);
    for (int k = 0; k < count; k++) {
        if (item[k].kind == ITEM_STMT) to[k].stmt = n->stmt[item[k].stmt];
        if (item[k].kind == ITEM_CALL) {
            struct call *c = arena_copy(a, item[k].call, sizeof *c);
            c->function = arena_strdup(a, c->function);
            c->read = arena_copy(a, c->read, (size_t)c->nreads * sizeof *c->read);
            c->write = arena_copy(a, c->write, (size_t)c->nwrites * sizeof *c->write);
            for (int b = 0; b < c->nreads; b++) c->read[b] = n->buffer[c->read[b]];
            for (int b = 0; b < c->nwrites; b++) c->write[b] = n->buffer[c->write[b]];
            to[k].call = c;
        }
        if (item[k].kind != ITEM_RECUR) continue;
        struct recur *r = arena_copy(a, item[k].recur, sizeof *r);
        r->axis = n->axis[r->axis];
        r->state = arena_copy(a, r->state, (size_t)r->nstates * sizeof *r->state);
        for (int s = 0; s < r->nstates; s++) {
            struct recur_state *q = &r->state[s];
            *q = (struct recur_state){n->buffer[q->current], n->buffer[q->next], n->buffer[q->from],
                                      q->to < 0 ? -1 : n->buffer[q->to]};
        }
        r->item = new_items(a, n, r->item, r->nitems);
        to[k].recur = r;
    }
    return to;
}

static struct program *renumbered(const struct renumber *r, struct arena *scratch) {
    const struct program *p = r->p;
    struct program *c = program_new(p->name);
    struct arena *a = &c->arena;
    struct numbers n = {r, arena_array(scratch, (size_t)p->naxes + 1, sizeof(int)),
                        arena_array(scratch, (size_t)p->nbuffers + 1, sizeof(int)),
                        arena_array(scratch, (size_t)p->nstmts + 1, sizeof(int))};
    for (int k = 0; k < r->naxes; k++) n.axis[r->axis[k]] = k;
    for (int k = 0; k < r->nbuffers; k++) n.buffer[r->buffer[k]] = k;
    for (int k = 0; k < r->nstmts; k++) n.stmt[r->stmt[k]] = k;
    c->naxes = r->naxes;
    c->axis = arena_array(a, (size_t)r->naxes, sizeof *c->axis);
    for (int k = 0; k < r->naxes; k++) {
        c->axis[k] = p->axis[r->axis[k]];
        c->axis[k].name = arena_strdup(a, c->axis[k].name);
        c->axis[k].param = -1;
    }
    c->nbuffers = r->nbuffers;
    c->buffer = arena_array(a, (size_t)r->nbuffers, sizeof *c->buffer);
    for (int k = 0; k < r->nbuffers; k++) {
        struct buffer *f = &c->buffer[k];
        *f = p->buffer[r->buffer[k]];
        f->name = arena_strdup(a, f->name);
        f->extent = arena_copy(a, f->extent, (size_t)f->ndims * sizeof *f->extent);
    }
    c->nstmts = r->nstmts;
    c->stmt = arena_array(a, (size_t)r->nstmts, sizeof *c->stmt);
    for (int k = 0; k < r->nstmts; k++) c->stmt[k] = new_stmt(a, &n, &p->stmt[r->stmt[k]]);
    c->nitems = p->nitems;
    c->item = new_items(a, &n, p->item, p->nitems);
    return c;
}

struct program *program_canonical(const struct program *from) {
    struct program *p = program_copy(from);
    struct arena scratch;
    arena_init(&scratch);
    simplify_axes(p);
    simplify_where(p);
    struct renumber r = {.p = p, .colours = program_colours(p, &scratch)};
    for (int s = 0; s < p->nstmts; s++) order_operands(&p->arena, &p->stmt[s], r.colours.op[s]);
    r.axis = arena_array(&scratch, (size_t)p->naxes + 1, sizeof *r.axis);
    r.axis_seen = arena_array(&scratch, (size_t)p->naxes + 1, sizeof *r.axis_seen);
    r.buffer = arena_array(&scratch, (size_t)p->nbuffers + 1, sizeof *r.buffer);
    r.buffer_seen = arena_array(&scratch, (size_t)p->nbuffers + 1, sizeof *r.buffer_seen);
    r.stmt = arena_array(&scratch, (size_t)p->nstmts + 1, sizeof *r.stmt);
    see_items(&r, p->item, p->nitems);
    see_unused_buffers(&r);
    restore_sequential(&r, recurring_axes(p->item, p->nitems));
    struct program *c = renumbered(&r, &scratch);
    arena_free(&scratch);
    program_free(p);
    return c;
}

/* ---- the hash: everything but names ---- */

static uint64_t hash_access(const struct program *p, const struct access *a, uint64_t h) {
    const struct buffer *f = &p->buffer[a->buffer];
    h = colour_mix(h, (uint64_t)a->buffer);
    for (int k = 0; k < f->ndims * (p->naxes + 1); k++) h = colour_mix(h, (uint64_t)a->coef[k]);
    return a->has_fill ? colour_mix(h, colour_value(f->type, a->fill)) : colour_mix(h, 3);
}

static uint64_t hash_stmt(const struct program *p, const struct stmt *s, uint64_t h) {
    h = hash_access(p, &s->dst, colour_mix(h, s->combine));
    for (int r = 0; r < s->nreads; r++) h = hash_access(p, &s->read[r], h);
    for (int n = 0; n < s->nops; n++) {
        const struct op *o = &s->op[n];
        h = colour_mix(colour_mix(h, o->code), o->type);
        if (o->code == OP_READ) h = colour_mix(h, (uint64_t)o->read);
        if (o->code == OP_AXIS) h = colour_mix(h, (uint64_t)o->axis);
        if (o->code == OP_LITERAL) h = colour_mix(h, colour_value(o->type, o->value));
        for (int k = 0; k < op_info[o->code].arity; k++) h = colour_mix(h, (uint64_t)o->arg[k]);
    }
    for (int w = 0; w < s->nwhere; w++)
        for (int a = 0; a <= p->naxes; a++) h = colour_mix(h, (uint64_t)s->where[w].coef[a]);
    return colour_mix(h, s->axes);
}

static uint64_t hash_items(const struct program *p, const struct item *item, int n, uint64_t h) {
    for (int k = 0; k < n; k++) {
        const struct call *c = item[k].call;
        const struct recur *r = item[k].recur;
        h = colour_mix(h, item[k].kind);
        switch (item[k].kind) {
        case ITEM_STMT:
            h = hash_stmt(p, &p->stmt[item[k].stmt], h);
            break;
        case ITEM_CALL:
            for (const char *f = c->function; *f; f++) h = colour_mix(h, (unsigned char)*f);
            for (int b = 0; b < c->nreads; b++) h = colour_mix(h, (uint64_t)c->read[b]);
            for (int b = 0; b < c->nwrites; b++) h = colour_mix(h, (uint64_t)c->write[b] + 1000);
            break;
        case ITEM_RECUR:
            h = colour_mix(colour_mix(h, (uint64_t)r->axis), r->reverse);
            for (int s = 0; s < r->nstates; s++) {
                h = colour_mix(h, (uint64_t)r->state[s].current);
                h = colour_mix(h, (uint64_t)r->state[s].next);
                h = colour_mix(h, (uint64_t)r->state[s].from);
                h = colour_mix(h, (uint64_t)(int64_t)r->state[s].to);
            }
            h = hash_items(p, r->item, r->nitems, h);
            break;
        }
    }
    return colour_mix(h, 53);
}

uint64_t program_hash(const struct program *from) {
    struct program *p = program_canonical(from);
    uint64_t h = 59;
    for (int a = 0; a < p->naxes; a++)
        h = colour_mix(colour_mix(h, (uint64_t)p->axis[a].extent), p->axis[a].sequential);
    for (int b = 0; b < p->nbuffers; b++) {
        h = colour_mix(colour_mix(h, p->buffer[b].type), p->buffer[b].role);
        for (int d = 0; d < p->buffer[b].ndims; d++)
            h = colour_mix(h, (uint64_t)p->buffer[b].extent[d]);
    }
    h = hash_items(p, p->item, p->nitems, h);
    program_free(p);
    return h;
}
