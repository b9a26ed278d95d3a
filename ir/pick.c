/* Statements of whose points few count: Σ_v select(a == v | b == v, x[v], 0) needs only v = a and v
 * = b, and y[v] += select(a[u] == v, x[u], 0) of each u only v = a[u]. So tables are read and
 * written at an index that is data (ONNX's Gather, Scatter), in a language whose indices are
 * affine. What is found in a table may be the next index: Σ_vw select(a == v & t[v] == w, x[w], 0)
 * needs only v = a and w = t[a]. */
#include "ir/pick.h"

#include <string.h>

struct picking {
    const struct program *p;
    const struct stmt *st;
    struct pick *out;
    int n;
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

/* Does the value change while the statement runs? */
static bool reads_result(const struct picking *x, int op) {
    const struct op *o = &x->st->op[op];
    if (o->code == OP_READ) return x->st->read[o->read].buffer == x->st->dst.buffer;
    for (int k = 0; k < op_info[o->code].arity; k++)
        if (reads_result(x, o->arg[k])) return true;
    return false;
}

static bool take_equal(const struct picking *x, const struct op *o, struct pick *to) {
    for (int side = 0; side < 2; side++) {
        int axis = axis_at(x, o->arg[side]), value = o->arg[1 - side];
        if (axis < 0 || (to->n && axis != to->axis) || varies(x, value, axis) ||
            reads_result(x, value))
            continue;
        if (to->n == MAX_PICKED) return false;
        to->axis = axis;
        to->op[to->n++] = value;
        return true;
    }
    return false;
}

/* One of several values of one axis */
static bool take_either(const struct picking *x, int op, struct pick *to) {
    const struct op *o = &x->st->op[op];
    if (o->code == OP_EQ) return take_equal(x, o, to);
    return o->code == OP_OR && take_either(x, o->arg[0], to) && take_either(x, o->arg[1], to);
}

static bool hangs_on(const struct picking *x, const struct pick *one, int axis) {
    for (int k = 0; k < one->n; k++)
        if (varies(x, one->op[k], axis)) return true;
    return false;
}

/* Puts the axis before those whose values hang on it, where its own hang on none of these. */
static void take_axis(struct picking *x, const struct pick *one) {
    int at = x->n;
    if (!(x->st->axes >> one->axis & 1) || x->p->axis[one->axis].sequential) return;
    for (int i = x->n - 1; i >= 0; i--) {
        if (x->out[i].axis == one->axis) return;
        if (hangs_on(x, &x->out[i], one->axis)) at = i;
    }
    for (int i = at; i < x->n; i++)
        if (hangs_on(x, one, x->out[i].axis)) return;
    memmove(x->out + at + 1, x->out + at, (size_t)(x->n - at) * sizeof *x->out);
    x->out[at] = *one;
    x->n++;
}

/* All parts of a condition must hold; those that pick no axis are left to the test of the point. */
static void take_all(struct picking *x, int op) {
    const struct op *o = &x->st->op[op];
    struct pick one = {.truth = op};
    if (o->code == OP_AND) {
        take_all(x, o->arg[0]);
        take_all(x, o->arg[1]);
    } else if (take_either(x, op, &one)) {
        take_axis(x, &one);
    }
}

static bool is_literal(const struct op *o, int64_t value) {
    return o->code == OP_LITERAL &&
           (type_is_float(o->type) ? o->value.f == (double)value : o->value.i == value);
}

static bool is_destination(const struct picking *x, const struct op *o) {
    return o->code == OP_READ && access_equal(x->p, &x->st->read[o->read], &x->st->dst);
}

/* Combined with this value, the element is as it was. */
static bool is_neutral(const struct picking *x, const struct op *o) {
    switch (x->st->combine) {
    case COMBINE_ADD:
        return is_literal(o, 0);
    case COMBINE_MUL:
        return is_literal(o, 1);
    case COMBINE_MAX:
        return is_destination(x, o) || (o->type == TYPE_BOOL && is_literal(o, 0));
    case COMBINE_MIN:
        return is_destination(x, o) || (o->type == TYPE_BOOL && is_literal(o, 1));
    default:
        return false;
    }
}

int stmt_picks(const struct program *p, const struct stmt *st, struct pick *out) {
    struct picking x = {p, st, out, 0};
    int last = st->nops - 1;
    const struct op *o = &st->op[last];
    if (st->nwhere) return 0;
    if (o->code == OP_SELECT && is_neutral(&x, &st->op[o->arg[2]]))
        take_all(&x, o->arg[0]);
    else if (o->type == TYPE_BOOL && st->combine == COMBINE_MAX)
        take_all(&x, last);
    return x.n;
}

int64_t stmt_looks_at(const struct program *p, const struct stmt *st, int64_t points) {
    struct pick pick[MAX_AXES];
    int n = stmt_picks(p, st, pick);
    for (int i = 0; i < n; i++) {
        int64_t extent = p->axis[pick[i].axis].extent;
        if (extent > pick[i].n) points = (points / extent + (points % extent != 0)) * pick[i].n;
    }
    return points;
}
