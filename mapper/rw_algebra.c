/* The laws of sums and products: commute, associate, distribute, and a sum that starts from zero.
 */
#include "mapper/rewrite_int.h"

/* ---- commute and associate: one step of a value is written in another way ---- */

struct change {
    int node;
    enum { CHANGE_SWAP, CHANGE_TO_RIGHT, CHANGE_TO_LEFT } kind;
};

static int rebuild(struct draft *d, const struct stmt *s, int node, const struct change *c) {
    struct op o = s->op[node];
    if (o.code == OP_READ) return draft_read(d, rw_copy(d->p, &s->read[o.read]));
    if (node == c->node && c->kind == CHANGE_TO_RIGHT) { /* (a·b)·c → a·(b·c) */
        const struct op *left = &s->op[o.arg[0]];
        int a = rebuild(d, s, left->arg[0], c), b = rebuild(d, s, left->arg[1], c);
        return draft_binary(d, o.code, a, draft_binary(d, o.code, b, rebuild(d, s, o.arg[1], c)));
    }
    if (node == c->node && c->kind == CHANGE_TO_LEFT) { /* a·(b·c) → (a·b)·c */
        const struct op *right = &s->op[o.arg[1]];
        int a = rebuild(d, s, o.arg[0], c);
        int ab = draft_binary(d, o.code, a, rebuild(d, s, right->arg[0], c));
        return draft_binary(d, o.code, ab, rebuild(d, s, right->arg[1], c));
    }
    bool swap = node == c->node && c->kind == CHANGE_SWAP;
    int arity = op_info[o.code].arity, arg[3];
    for (int k = 0; k < arity; k++) arg[k] = swap ? o.arg[arity - 1 - k] : o.arg[k];
    for (int k = 0; k < arity; k++) o.arg[k] = rebuild(d, s, arg[k], c);
    return draft_op(d, o);
}

static struct program *changed(const struct program *p, int stmt, struct change c) {
    struct program *q = program_copy(p);
    struct stmt old = q->stmt[stmt];
    struct draft d = draft_open(q, &old, old.combine, old.dst);
    d.s.where = old.where;
    d.s.nwhere = old.nwhere;
    rebuild(&d, &old, old.nops - 1, &c);
    draft_close(&d, stmt);
    return q;
}

static bool fits(const struct stmt *s, int node, int flag) {
    return node >= 0 && node < s->nops && op_info[s->op[node].code].flags & flag;
}

static struct program *commute(const struct program *p, const struct failure *why,
                               const struct needle *n) {
    (void)n;
    if (!rw_top(p, why->stmt)) return NULL;
    const struct stmt *s = &p->stmt[why->stmt];
    int node = fits(s, why->stmt_op, OP_COMM) ? why->stmt_op : s->nops - 1;
    if (!fits(s, node, OP_COMM)) return NULL;
    return changed(p, why->stmt, (struct change){node, CHANGE_SWAP});
}

const struct rewrite rw_commute = {
    .name = "commute",
    .doc = "the operands of a commutative operation change places",
    .answers = ANSWERS(OPERATION),
    .effect = REWRITE_EXACT,
    .apply = commute,
};

static struct program *associate(const struct program *p, const struct failure *why,
                                 const struct needle *n) {
    (void)n;
    if (!rw_top(p, why->stmt)) return NULL;
    const struct stmt *s = &p->stmt[why->stmt];
    for (int node = s->nops; node-- > 0;) {
        const struct op *o = &s->op[node];
        if (!fits(s, node, OP_ASSOC)) continue;
        if (s->op[o->arg[0]].code == o->code)
            return changed(p, why->stmt, (struct change){node, CHANGE_TO_RIGHT});
        if (s->op[o->arg[1]].code == o->code)
            return changed(p, why->stmt, (struct change){node, CHANGE_TO_LEFT});
    }
    return NULL;
}

const struct rewrite rw_associate = {
    .name = "associate",
    .doc = "(a·b)·c = a·(b·c)",
    .answers = ANSWERS(OPERATION),
    .effect = REWRITE_REORDERS,
    .apply = associate,
};

/* ---- distribute: Σ (a + b)·c = Σ a·c + Σ b·c ---- */

struct term_of_sum {
    int node;      /* a or b */
    bool negative; /* of a difference */
};

/* Σ over axes that a term lacks counts it as often as they have values. */
static void write_term(struct program *q, int at, const struct stmt *old, const struct factors *f,
                       int sum, struct term_of_sum t, enum combiner combine) {
    struct draft d = draft_open(q, old, combine, rw_copy(q, &old->dst));
    int value = -1;
    for (int k = 0; k < f->n; k++) {
        int x = draft_tree(&d, old, k == sum ? t.node : f->node[k]);
        value = value < 0 ? x : draft_binary(&d, OP_MUL, value, x);
    }
    double times = rw_points(q, old->axes & ~stmt_axes(q, &d.s));
    if (t.negative) times = -times;
    if (times != 1) draft_binary(&d, OP_MUL, value, draft_number(&d, d.s.op[value].type, times));
    draft_close(&d, at);
}

static struct program *distribute(const struct program *p, const struct failure *why,
                                  const struct needle *n) {
    struct factors f;
    int at = why->stmt, sum = 0;
    (void)n;
    if (!rw_factors(p, at, &f) || p->stmt[at].nwhere) return NULL;
    const struct stmt *s = &p->stmt[at];
    while (sum < f.n && s->op[f.node[sum]].code != OP_ADD && s->op[f.node[sum]].code != OP_SUB)
        sum++;
    if (sum == f.n || rw_points(p, s->axes) > 0x1p52 ||
        !(type_is_float(f.type) || type_is_signed(f.type)))
        return NULL;
    struct program *q = program_copy(p);
    struct stmt old = q->stmt[at];
    const struct op *o = &old.op[f.node[sum]];
    program_make_room(q, at, 1);
    write_term(q, at, &old, &f, sum, (struct term_of_sum){o->arg[0], false}, COMBINE_ADD);
    write_term(q, at + 1, &old, &f, sum, (struct term_of_sum){o->arg[1], o->code == OP_SUB},
               COMBINE_ADD);
    return q;
}

const struct rewrite rw_distribute = {
    .name = "distribute",
    .doc = "a sum inside a summed product becomes two sums",
    .answers = ANSWERS(OPERATION),
    .effect = REWRITE_REORDERS,
    .apply = distribute,
};

/* ---- from-zero: a product is a sum of one, x = 0 + x ---- */

static struct program *from_zero(const struct program *p, const struct failure *why,
                                 const struct needle *n) {
    int at = why->stmt;
    (void)n;
    if (!rw_plain(p, at)) return NULL;
    const struct stmt *s = &p->stmt[at];
    if (s->combine != COMBINE_SET || s->op[s->nops - 1].code != OP_MUL ||
        p->buffer[s->dst.buffer].type != s->op[s->nops - 1].type)
        return NULL;
    for (int r = 0; r < s->nreads; r++)
        if (s->read[r].buffer == s->dst.buffer) return NULL;
    struct program *q = program_copy(p);
    struct stmt old = q->stmt[at];
    program_make_room(q, at, 1);
    rw_fill(q, at, &old, old.dst, 0);
    struct draft d = draft_open(q, &old, COMBINE_ADD, rw_copy(q, &old.dst));
    draft_tree(&d, &old, old.nops - 1);
    draft_close(&d, at + 1);
    return q;
}

const struct rewrite rw_from_zero = {
    .name = "from-zero",
    .doc = "a product that is set is one that is added to zero",
    .answers = ANSWERS(COMBINER),
    .effect = REWRITE_REORDERS,
    .apply = from_zero,
};
