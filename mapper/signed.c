/* Unsigned bytes of a model kept as signed ones, 128 less, where a device multiplies signed bytes
 * alone. Quantised models have unsigned bytes by default; their zero points make up for it.
 *
 *     A[k,p] = u8(clip(round(F) + z, 0, 255))       A'[k,p] = i8(clip(round(F) + (z - 128), -128,
 * 127)) S[m,p] += (i32(A[k,p else f]) - z)       →    S[m,p] += (i32(A'[k,p else f - 128]) - (z -
 * 128))
 *               * i32(W[m,k])                                 * i32(W[m,k])
 *
 * Arguments keep their type: what is read of them is copied before, and results are copied behind
 * all else. Every value is as it was, but for NaN before a cast to bytes. */
#include "mapper/rewrite_int.h"

#include <math.h>
#include <string.h>

static const int HALF = 128;

struct shift {
    struct program *p;
    int n;     /* buffers of the program as it was */
    int *twin; /* [n] the buffer with the signed bytes: itself where it is a temporary; -1: none */
};

/* ---- which ---- */

static bool takes(const struct needles *all, enum type a, enum type b) {
    struct product_types t;
    for (int k = 0; k < all->n; k++)
        if (all->at[k].offered && needle_product(&all->at[k], &t) &&
            !machine_queue_is_host(all->machine, all->machine->instr[all->at[k].instr].queue) &&
            ((t.a == a && t.b == b) || (t.a == b && t.b == a)))
            return true;
    return false;
}

/* The type of what the node reads first. */
static enum type first_read(const struct program *p, const struct stmt *s, int node) {
    const struct op *o = &s->op[node];
    if (o->code == OP_READ) return p->buffer[s->read[o->read].buffer].type;
    for (int k = 0; k < op_info[o->code].arity; k++) {
        enum type t = first_read(p, s, o->arg[k]);
        if (t != TYPE_BOOL) return t;
    }
    return TYPE_BOOL; /* nothing */
}

/* Bytes of a sum of products that the device would take if the unsigned ones were signed. */
static void wanted_by(const struct program *p, int stmt, const struct needles *all, bool *wanted) {
    struct factors f;
    enum type have[2], could[2];
    if (!rw_factors(p, stmt, &f) || f.n != 2) return;
    const struct stmt *s = &p->stmt[stmt];
    for (int k = 0; k < 2; k++) {
        have[k] = first_read(p, s, f.node[k]);
        could[k] = have[k] == TYPE_U8 ? TYPE_I8 : have[k];
    }
    if (!memcmp(have, could, sizeof have) || takes(all, have[0], have[1]) ||
        !takes(all, could[0], could[1]))
        return;
    for (int r = 0; r < s->nreads; r++)
        if (p->buffer[s->read[r].buffer].type == TYPE_U8) wanted[s->read[r].buffer] = true;
}

/* Only statements, which set bytes or take the larger ones. */
static bool plain(const struct program *p) {
    for (int i = 0; i < p->nitems; i++)
        if (p->item[i].kind != ITEM_STMT) return false;
    for (int s = 0; s < p->nstmts; s++)
        if (p->buffer[p->stmt[s].dst.buffer].type == TYPE_U8 && p->stmt[s].combine != COMBINE_SET &&
            p->stmt[s].combine != COMBINE_MAX && p->stmt[s].combine != COMBINE_MIN)
            return false;
    return true;
}

/* All temporaries and results, so that no type changes on the way, and what is wanted of the
 * arguments. False: nothing is wanted. */
static bool twins_choose(struct shift *x, const struct needles *all) {
    struct program *p = x->p;
    bool *wanted = arena_array(&p->arena, (size_t)p->nbuffers + 1, sizeof *wanted), any = false;
    x->n = p->nbuffers;
    x->twin = arena_array(&p->arena, (size_t)p->nbuffers + 1, sizeof *x->twin);
    for (int s = 0; s < p->nstmts; s++) wanted_by(p, s, all, wanted);
    for (int b = 0; b < x->n; b++) any |= wanted[b];
    for (int b = 0; b < x->n && any; b++) {
        const struct buffer *old = &p->buffer[b];
        bool made = old->role == ROLE_TEMP || old->role == ROLE_OUT;
        x->twin[b] = -1;
        if (old->type != TYPE_U8 || !(made || (wanted[b] && old->role != ROLE_INOUT))) continue;
        if (old->role == ROLE_TEMP) {
            x->twin[b] = b;
            continue;
        }
        const char *base = arena_printf(&p->arena, "%s.signed", old->name);
        x->twin[b] = rw_temporary(p, base, TYPE_I8, old->ndims, old->extent);
        if (x->twin[b] < 0) return false;
    }
    return any;
}

/* ---- values ---- */

static bool is_shifted(const struct shift *x, const struct stmt *s, int node) {
    const struct op *o = &s->op[node];
    return o->code == OP_READ && x->twin[s->read[o->read].buffer] >= 0;
}

static struct access signed_access(const struct shift *x, const struct access *a) {
    struct access c = rw_copy(x->p, a);
    c.buffer = x->twin[a->buffer];
    if (c.has_fill) c.fill.i -= HALF;
    return c;
}

/* A number is added to the node; none where it is 0. */
static int plus(struct draft *d, int node, double number) {
    return number == 0 ? node
                       : draft_binary(d, OP_ADD, node, draft_number(d, d->s.op[node].type, number));
}

static bool literal_of(const struct stmt *s, int node, double *out) {
    const struct op *o = &s->op[node];
    *out = type_is_float(o->type) ? o->value.f : (double)o->value.i;
    return o->code == OP_LITERAL;
}

/* Is the node a shifted byte in a type that holds the signed one and all that it is off by? */
static bool wide_byte(const struct shift *x, const struct stmt *s, int node) {
    const struct op *o = &s->op[node];
    return o->code == OP_CAST && is_shifted(x, s, o->arg[0]) &&
           (type_is_float(o->type) || (type_is_signed(o->type) && type_size(o->type) > 1));
}

static int signed_byte(const struct shift *x, struct draft *d, const struct stmt *s, int node,
                       enum type t) {
    return draft_cast(d, t, draft_read(d, signed_access(x, &s->read[s->op[node].read])));
}

/* The value of the node as it was, of what is kept signed. */
static int value_of(const struct shift *x, struct draft *d, const struct stmt *s, int node) {
    struct op o = s->op[node];
    double number;
    if (is_shifted(x, s, node))
        return draft_cast(d, TYPE_U8, plus(d, signed_byte(x, d, s, node, TYPE_I32), HALF));
    if (o.code == OP_READ) return draft_read(d, rw_copy(x->p, &s->read[o.read]));
    if (wide_byte(x, s, node)) return plus(d, signed_byte(x, d, s, o.arg[0], o.type), HALF);
    if (o.code == OP_SUB && wide_byte(x, s, o.arg[0]) && literal_of(s, o.arg[1], &number) &&
        o.type == TYPE_I32) {
        int byte = signed_byte(x, d, s, s->op[o.arg[0]].arg[0], o.type);
        return number == HALF
                   ? byte
                   : draft_binary(d, OP_SUB, byte, draft_number(d, o.type, number - HALF));
    }
    for (int k = 0; k < op_info[o.code].arity; k++) o.arg[k] = value_of(x, d, s, o.arg[k]);
    return draft_op(d, o);
}

/* u8(clip(round(F) + z, lo, hi)): a whole number before it is cut, so it may be less by 128 there.
 * -1: it is something else. */
static int clipped(const struct shift *x, struct draft *d, const struct stmt *s) {
    const struct op *cast = &s->op[s->nops - 1], *clip = &s->op[cast->arg[0]];
    double zero = 0, lo, hi;
    if (cast->code != OP_CAST || clip->code != OP_CLIP || !type_is_float(clip->type) ||
        !literal_of(s, clip->arg[1], &lo) || !literal_of(s, clip->arg[2], &hi) || lo < 0 ||
        hi > 255)
        return -1;
    int v = clip->arg[0];
    if (s->op[v].code == OP_ADD && literal_of(s, s->op[v].arg[1], &zero)) v = s->op[v].arg[0];
    if (s->op[v].code != OP_ROUND || zero != rint(zero) || fabs(zero) > 255) return -1;
    v = plus(d, value_of(x, d, s, v), zero - HALF);
    int least = draft_number(d, clip->type, lo - HALF),
        most = draft_number(d, clip->type, hi - HALF);
    v = draft_op(d, (struct op){.code = OP_CLIP, .type = clip->type, .arg = {v, least, most}});
    return draft_cast(d, TYPE_I8, v);
}

static void write_signed(const struct shift *x, struct draft *d, const struct stmt *s) {
    int root = s->nops - 1;
    double number;
    if (is_shifted(x, s, root))
        draft_read(d, signed_access(x, &s->read[s->op[root].read]));
    else if (literal_of(s, root, &number))
        draft_number(d, TYPE_I8, number - HALF);
    else if (clipped(x, d, s) < 0)
        draft_cast(d, TYPE_I8, plus(d, draft_cast(d, TYPE_I32, value_of(x, d, s, root)), -HALF));
}

static void rewrite_stmt(const struct shift *x, int stmt) {
    const struct stmt old = x->p->stmt[stmt];
    bool shifted = x->twin[old.dst.buffer] >= 0, any = shifted;
    for (int r = 0; r < old.nreads; r++) any |= x->twin[old.read[r].buffer] >= 0;
    if (!any) return;
    struct access to = rw_copy(x->p, &old.dst);
    if (shifted) to.buffer = x->twin[to.buffer];
    struct draft d = draft_open(x->p, &old, old.combine, to);
    draft_where(&d, &old);
    if (shifted)
        write_signed(x, &d, &old);
    else
        value_of(x, &d, &old, old.nops - 1);
    draft_close(&d, stmt);
}

/* ---- arguments ---- */

/* An axis for each dimension of the buffer, those of the program where they are as long; false:
 * there is no room. */
static bool axes_of(struct program *p, const struct buffer *b, int *axis) {
    for (int d = 0; d < b->ndims; d++) {
        axis[d] = -1;
        for (int a = 0; a < p->naxes && axis[d] < 0; a++) {
            bool used = p->axis[a].sequential || p->axis[a].extent != b->extent[d];
            for (int e = 0; e < d; e++) used |= axis[e] == a;
            if (!used) axis[d] = a;
        }
        if (axis[d] < 0) axis[d] = rw_axis(p, "i", b->extent[d]);
        if (axis[d] < 0) return false;
    }
    return true;
}

/* Before all else twin = i8(i32(argument) - 128), or behind it argument = u8(i32(twin) + 128). */
static bool copy_argument(struct program *p, int argument, int twin) {
    bool out = p->buffer[argument].role == ROLE_OUT;
    int axis[MAX_DIMS], stmt = out ? p->nstmts : 0;
    if (!axes_of(p, &p->buffer[argument], axis)) return false;
    struct access from = rw_indexed(p, out ? twin : argument, axis),
                  to = rw_indexed(p, out ? argument : twin, axis);
    program_make_room(p, out ? stmt - 1 : stmt, 1);
    if (out) p->stmt[stmt - 1] = p->stmt[stmt]; /* room is made before a statement */
    struct draft d = draft_open(p, &(struct stmt){0}, COMBINE_SET, to);
    int v = plus(&d, draft_cast(&d, TYPE_I32, draft_read(&d, from)), out ? HALF : -HALF);
    draft_cast(&d, out ? TYPE_U8 : TYPE_I8, v);
    draft_close(&d, stmt);
    return true;
}

static bool copy_arguments(const struct shift *x) {
    struct program *p = x->p;
    for (int b = 0; b < x->n; b++)
        if (x->twin[b] >= 0 && x->twin[b] != b && !copy_argument(p, b, x->twin[b])) return false;
    return true;
}

struct program *mapper_signed(const struct program *p, const struct machine *m) {
    if (!has_device(m) || !plain(p)) return NULL;
    struct needles *all = needles_open(m);
    struct shift x = {.p = program_copy(p)};
    bool ok = twins_choose(&x, all);
    for (int b = 0; ok && b < x.n; b++)
        if (x.twin[b] == b) x.p->buffer[b].type = TYPE_I8;
    for (int s = 0; ok && s < x.p->nstmts; s++) rewrite_stmt(&x, s);
    ok = ok && copy_arguments(&x);
    needles_close(all);
    if (ok) return x.p;
    program_free(x.p);
    return NULL;
}
