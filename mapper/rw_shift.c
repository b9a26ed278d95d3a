/* An instruction that moves the bytes of one factor by itself, for its multiplier reads the other
 * sign: x·y = x·(y + o) - o·x. What that adds is the same for all sums that share x. Where x is
 * constant it is known before the first run, and the sums begin with it.
 *
 *     C[i,j] = 0                        t[i] = 0
 *     C[i,j] += X[i,k] * Y[k,j]    →    t[i] += X[i,k]
 *                                       u[i] = t[i] * -o
 *                                       C[i,j] = u[i]
 *                                       C[i,j] += X[i,k] * (Y[k,j] + o)
 */
#include "mapper/rewrite_int.h"

#include <math.h>

struct shifting {
    struct factors f;
    int moved;                    /* the factor that is moved */
    enum type moved_type, stands; /* as the needle stores both */
    double by;
};

static int under_casts(const struct term *t, int node) {
    while (t->at[node].code == OP_CAST) node = t->at[node].arg[0];
    return node;
}

static bool stored(const struct term *t, int node, enum type *out) {
    node = under_casts(t, node);
    *out = t->at[node].type;
    return t->at[node].code == OP_READ && !t->at[node].acc;
}

/* Does the needle add products of x with y + o, o a constant? */
static bool find_moved(const struct needle *n, struct shifting *x) {
    const struct term *t = &n->term;
    if (!n->offered || n->refused || n->nparts || !t->accumulates) return false;
    const struct term_node *root = &t->at[t->root];
    const struct term_node *product = &t->at[under_casts(t, root->arg[1])];
    if (root->code != OP_ADD || product->code != OP_MUL || type_is_float(root->type)) return false;
    for (int side = 0; side < 2; side++) {
        const struct term_node *sum = &t->at[under_casts(t, product->arg[side])];
        if (sum->code != OP_ADD || !stored(t, product->arg[1 - side], &x->stands)) continue;
        for (int k = 0; k < 2; k++) {
            const struct term_node *o = &t->at[sum->arg[k]];
            if (!o->constant || !stored(t, sum->arg[1 - k], &x->moved_type)) continue;
            x->by = (double)o->value.i;
            return true;
        }
    }
    return false;
}

/* The factor that is moved: the other one is constant, or made before the first run. */
static bool find_factors(const struct program *p, int at, struct shifting *x) {
    const struct stmt *s = &p->stmt[at];
    if (!rw_plain(p, at) || !rw_factors(p, at, &x->f) || x->f.n != 2 ||
        x->f.type != p->buffer[s->dst.buffer].type)
        return false;
    for (x->moved = 0; x->moved < 2; x->moved++) {
        int own = rw_bare(s, x->f.node[x->moved]), other = rw_bare(s, x->f.node[1 - x->moved]);
        if (s->op[own].code == OP_READ && s->op[other].code == OP_READ &&
            rw_stored(p, s, x->f.node[x->moved]) == x->moved_type &&
            rw_stored(p, s, x->f.node[1 - x->moved]) == x->stands &&
            buffer_steady(p, s->read[s->op[other].read].buffer))
            return true;
    }
    return false;
}

/* The statement before sets all that this one adds to, to zero. */
static bool begins_with_zero(const struct program *p, int at) {
    if (at == 0 || !rw_plain(p, at - 1)) return false;
    const struct stmt *fill = &p->stmt[at - 1];
    return fill->combine == COMBINE_SET && fill->nops == 1 && fill->op[0].code == OP_LITERAL &&
           fill->op[0].value.i == 0 && access_same(p, &fill->dst, &p->stmt[at].dst);
}

/* Σ of the factor that stands over what is reduced, times -o; what the sums begin with. */
static bool write_begin(struct program *q, int at, const struct stmt *old,
                        const struct shifting *x) {
    int axis[MAX_AXES];
    struct access sum, begin;
    uint64_t reduced = old->axes & ~rw_access_axes(q, &old->dst), own = x->f.axes[1 - x->moved];
    double times = rw_points(q, reduced & ~own);
    int n = rw_axes(own & ~reduced, axis);
    if (!rw_temporary_of(q, "shift.sum", x->f.type, axis, n, &sum) ||
        !rw_temporary_of(q, "shift", x->f.type, axis, n, &begin))
        return false;
    rw_fill(q, at, old, sum, 0);
    struct draft d = draft_open(q, old, COMBINE_ADD, rw_copy(q, &sum));
    draft_tree(&d, old, x->f.node[1 - x->moved]);
    draft_close(&d, at + 1);
    d = draft_open(q, old, COMBINE_SET, rw_copy(q, &begin));
    int t = draft_read(&d, rw_copy(q, &sum));
    draft_binary(&d, OP_MUL, t, draft_number(&d, x->f.type, -x->by * times));
    draft_close(&d, at + 2);
    d = draft_open(q, old, COMBINE_SET, rw_copy(q, &old->dst));
    draft_read(&d, rw_copy(q, &begin));
    draft_close(&d, at + 3);
    return true;
}

static void write_product(struct program *q, int at, const struct stmt *old,
                          const struct shifting *x) {
    struct draft d = draft_open(q, old, COMBINE_ADD, rw_copy(q, &old->dst));
    int node[2];
    for (int k = 0; k < 2; k++) {
        node[k] = draft_cast(&d, x->f.type, draft_tree(&d, old, rw_bare(old, x->f.node[k])));
        if (k == x->moved)
            node[k] = draft_binary(&d, OP_ADD, node[k], draft_number(&d, x->f.type, x->by));
    }
    draft_binary(&d, OP_MUL, node[0], node[1]);
    draft_close(&d, at);
}

static struct program *shift(const struct program *p, const struct failure *why,
                             const struct needle *n) {
    struct shifting x;
    int at = why->stmt;
    if (!n || !find_moved(n, &x) || !find_factors(p, at, &x) || !begins_with_zero(p, at) ||
        rw_points(p, p->stmt[at].axes) * fabs(x.by) > 0x1p52)
        return NULL;
    struct program *q = program_copy(p);
    program_make_room(q, at - 1, 3);
    struct stmt old = q->stmt[at + 3];
    if (!write_begin(q, at - 1, &old, &x)) {
        program_free(q);
        return NULL;
    }
    write_product(q, at + 3, &old, &x);
    return q;
}

const struct rewrite rw_shift = {
    .name = "shift",
    .doc = "an instruction moves the bytes of a factor by a constant; sums begin with what takes "
           "the difference back",
    .answers = ANSWERS(OPERATION),
    .effect = REWRITE_EXACT,
    .everywhere = true,
    .by_needle = true,
    .apply = shift,
};
