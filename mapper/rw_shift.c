/* Sums of products where a number is added to one factor: x·y = x·(y + o) - o·x. What that adds is
 * the same for all sums that share x. Where x is constant it is known before the first run, and the
 * sums begin with it, beside a bias.
 *
 *     C[i,j] = b[i]                     t[i] = 0
 *     C[i,j] += X[i,k] * Y[k,j]    →    t[i] += X[i,k]
 *                                       u[i] = b[i] + t[i] * -o
 *                                       C[i,j] = u[i]
 *                                       C[i,j] += X[i,k] * (Y[k,j] + o)
 *
 * To the right for an instruction that moves the bytes of one factor by itself, as its multiplier
 * reads the other sign (`shift`); to the left where the program adds a number, as quantised models
 * add zero points, and the instruction does not (`zero-point`). */
#include "mapper/rewrite_int.h"

#include <math.h>

struct shifting {
    struct factors f;
    int moved;                    /* the factor that is moved */
    int node;                     /* what is left of it in the statement */
    enum type moved_type, stands; /* as the needle stores both */
    double by;                    /* what the new factor has more than the old one */
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
            buffer_steady(p, s->read[s->op[other].read].buffer)) {
            x->node = own;
            return true;
        }
    }
    return false;
}

/* The statement before sets all that this one adds to, to what is known before the first run. */
static bool begins_steady(const struct program *p, int at) {
    if (at == 0 || !rw_plain(p, at - 1)) return false;
    const struct stmt *fill = &p->stmt[at - 1];
    for (int r = 0; r < fill->nreads; r++)
        if (!buffer_steady(p, fill->read[r].buffer)) return false;
    return fill->combine == COMBINE_SET && access_same(p, &fill->dst, &p->stmt[at].dst) &&
           fill->op[fill->nops - 1].type == p->buffer[fill->dst.buffer].type;
}

static bool is_zero(const struct stmt *fill) {
    return fill->nops == 1 && fill->op[0].code == OP_LITERAL && fill->op[0].value.i == 0;
}

/* The fill and Σ of the factor that stands over what is reduced, times -o; what the sums begin
 * with. */
static bool write_begin(struct program *q, int at, const struct stmt *fill, const struct stmt *old,
                        const struct shifting *x, const char *name) {
    int axis[MAX_AXES];
    struct access sum, begin;
    uint64_t reduced = old->axes & ~rw_access_axes(q, &old->dst), own = x->f.axes[1 - x->moved],
             filled = rw_value_axes(fill);
    for (int r = 0; r < fill->nreads; r++) filled |= rw_access_axes(q, &fill->read[r]);
    double times = rw_points(q, reduced & ~own);
    int n = rw_axes(own & ~reduced, axis);
    if (!rw_temporary_of(q, arena_printf(&q->arena, "%s.sum", name), x->f.type, axis, n, &sum))
        return false;
    n = rw_axes((own & ~reduced) | filled, axis);
    if (!rw_temporary_of(q, name, x->f.type, axis, n, &begin)) return false;
    rw_fill(q, at, old, sum, 0);
    struct draft d = draft_open(q, old, COMBINE_ADD, rw_copy(q, &sum));
    draft_tree(&d, old, x->f.node[1 - x->moved]);
    draft_close(&d, at + 1);
    d = draft_open(q, old, COMBINE_SET, rw_copy(q, &begin));
    int b = is_zero(fill) ? -1 : draft_tree(&d, fill, fill->nops - 1),
        t = draft_read(&d, rw_copy(q, &sum));
    t = draft_binary(&d, OP_MUL, t, draft_number(&d, x->f.type, -x->by * times));
    if (b >= 0) draft_binary(&d, OP_ADD, b, t);
    draft_close(&d, at + 2);
    d = draft_open(q, old, COMBINE_SET, rw_copy(q, &old->dst));
    draft_read(&d, rw_copy(q, &begin));
    draft_close(&d, at + 3);
    return true;
}

static void write_product(struct program *q, int at, const struct stmt *old,
                          const struct shifting *x, bool added) {
    struct draft d = draft_open(q, old, COMBINE_ADD, rw_copy(q, &old->dst));
    int node[2];
    for (int k = 0; k < 2; k++) {
        int from = k == x->moved ? x->node : rw_bare(old, x->f.node[k]);
        node[k] = draft_cast(&d, x->f.type, draft_tree(&d, old, from));
        if (k == x->moved && added)
            node[k] = draft_binary(&d, OP_ADD, node[k], draft_number(&d, x->f.type, x->by));
    }
    draft_binary(&d, OP_MUL, node[0], node[1]);
    draft_close(&d, at);
}

static struct program *begun_apart(const struct program *p, int at, const struct shifting *x,
                                   bool added, const char *name) {
    if (!begins_steady(p, at) || rw_points(p, p->stmt[at].axes) * fabs(x->by) > 0x1p52) return NULL;
    struct program *q = program_copy(p);
    program_make_room(q, at - 1, 3);
    struct stmt fill = q->stmt[at + 2], old = q->stmt[at + 3];
    if (!write_begin(q, at - 1, &fill, &old, x, name)) {
        program_free(q);
        return NULL;
    }
    write_product(q, at + 3, &old, x, added);
    return q;
}

static struct program *shift(const struct program *p, const struct failure *why,
                             const struct needle *n) {
    struct shifting x;
    if (!n || !find_moved(n, &x) || !find_factors(p, why->stmt, &x)) return NULL;
    return begun_apart(p, why->stmt, &x, true, "shift");
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

/* ---- zero-point: Σ (x + z)·w = z·Σ w + Σ x·w ---- */

/* A factor x + z or x - z, with z a number, beside one that is known before the first run. */
static bool find_zero(const struct program *p, int at, struct shifting *x) {
    const struct stmt *s = &p->stmt[at];
    if (!rw_plain(p, at) || !rw_factors(p, at, &x->f) || x->f.n != 2 || type_is_float(x->f.type) ||
        x->f.type != p->buffer[s->dst.buffer].type)
        return false;
    for (x->moved = 0; x->moved < 2; x->moved++) {
        const struct op *sum = &s->op[x->f.node[x->moved]];
        int other = rw_bare(s, x->f.node[1 - x->moved]);
        if ((sum->code != OP_ADD && sum->code != OP_SUB) || s->op[other].code != OP_READ ||
            s->op[sum->arg[1]].code != OP_LITERAL ||
            !buffer_steady(p, s->read[s->op[other].read].buffer))
            continue;
        double z = (double)s->op[sum->arg[1]].value.i;
        x->by = sum->code == OP_ADD ? -z : z;
        x->node = sum->arg[0];
        return true;
    }
    return false;
}

static struct program *zero_point(const struct program *p, const struct failure *why,
                                  const struct needle *n) {
    struct shifting x;
    (void)n;
    return find_zero(p, why->stmt, &x) ? begun_apart(p, why->stmt, &x, false, "zero") : NULL;
}

const struct rewrite rw_zero_point = {
    .name = "zero-point",
    .doc = "a number that is added to a factor leaves the sum of products with a constant; sums "
           "begin with what it makes",
    .answers = ANSWERS(OPERATION),
    .effect = REWRITE_EXACT,
    .apply = zero_point,
};
