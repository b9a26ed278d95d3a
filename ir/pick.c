/* Sums of which few terms count: Σ_v select(a == v | b == v, x[v], 0) needs only v = a and v = b.
 * So tables are read by an index that is data (ONNX's Gather), in a language whose indices are
 * affine. */
#include "ir/pick.h"

struct picking {
    const struct program *p;
    const struct stmt *st;
    struct pick *out;
};

static bool varies(const struct picking *x, int op, int axis) {
    const struct op *o = &x->st->op[op];
    if (o->code == OP_AXIS) return o->axis == axis;
    if (o->code == OP_READ) return access_varies(x->p, &x->st->read[o->read], axis);
    for (int k = 0; k < op_info[o->code].arity; k++)
        if (varies(x, o->arg[k], axis)) return true;
    return false;
}

/* The axis, itself or as a wide integer, in which each of its values is another one; -1: something
 * else. */
static int axis_at(const struct picking *x, int op) {
    const struct op *o = &x->st->op[op];
    bool wide = o->type == TYPE_I32 || o->type == TYPE_I64;
    if (!wide) return -1;
    if (o->code == OP_CAST) o = &x->st->op[o->arg[0]];
    if (o->code != OP_AXIS) return -1;
    return x->p->axis[o->axis].extent <= INT32_MAX ? o->axis : -1;
}

static bool take_equal(struct picking *x, const struct op *o) {
    for (int side = 0; side < 2; side++) {
        int axis = axis_at(x, o->arg[side]), value = o->arg[1 - side];
        if (axis < 0 || (x->out->n && axis != x->out->axis) || varies(x, value, axis)) continue;
        if (x->out->n == MAX_PICKED) return false;
        x->out->axis = axis;
        x->out->op[x->out->n++] = value;
        return true;
    }
    return false;
}

static bool take_condition(struct picking *x, int op) {
    const struct op *o = &x->st->op[op];
    if (o->code == OP_EQ) return take_equal(x, o);
    return o->code == OP_OR && take_condition(x, o->arg[0]) && take_condition(x, o->arg[1]);
}

static bool is_zero(const struct op *o) {
    return o->code == OP_LITERAL && (type_is_float(o->type) ? o->value.f == 0 : o->value.i == 0);
}

bool stmt_picks(const struct program *p, const struct stmt *st, struct pick *out) {
    struct picking x = {p, st, out};
    const struct op *last = &st->op[st->nops - 1];
    out->n = 0;
    return st->combine == COMBINE_ADD && !st->nwhere && last->code == OP_SELECT &&
           is_zero(&st->op[last->arg[2]]) && take_condition(&x, last->arg[0]) &&
           (st->axes >> out->axis & 1) && !p->axis[out->axis].sequential &&
           !access_varies(p, &st->dst, out->axis);
}

int64_t stmt_looks_at(const struct program *p, const struct stmt *st, int64_t points) {
    struct pick pick;
    if (!stmt_picks(p, st, &pick)) return points;
    int64_t extent = p->axis[pick.axis].extent;
    return extent <= pick.n ? points : (points / extent + (points % extent != 0)) * pick.n;
}
