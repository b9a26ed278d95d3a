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
    draft_where(&d, &old);
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

/* ---- distribute: Σ (a + b)·(c + d) = Σ a·c + Σ a·d + Σ b·c + Σ b·d ---- */

enum { MOST_SUMS = 3 }; /* among the factors: they become eight terms */

struct sums {
    int n, factor[MOST_SUMS];
};

static bool is_sum(const struct stmt *s, int node) {
    return s->op[node].code == OP_ADD || s->op[node].code == OP_SUB;
}

static struct sums sums_of(const struct stmt *s, const struct factors *f) {
    struct sums sums = {0};
    for (int k = 0; k < f->n && sums.n < MOST_SUMS; k++)
        if (is_sum(s, f->node[k])) sums.factor[sums.n++] = k;
    return sums;
}

/* One term; bit k of `right` says which side of sum k it has. Σ over axes that a term lacks counts
 * it as often as they have values. */
static void write_term(struct program *q, int at, const struct stmt *old, const struct factors *f,
                       const struct sums *sums, unsigned right) {
    struct draft d = draft_open(q, old, COMBINE_ADD, rw_copy(q, &old->dst));
    int value = -1, sum = 0;
    bool negative = false;
    for (int k = 0; k < f->n; k++) {
        int node = f->node[k];
        if (sum < sums->n && sums->factor[sum] == k) {
            const struct op *o = &old->op[node];
            bool second = right >> sum++ & 1;
            negative ^= second && o->code == OP_SUB;
            node = o->arg[second];
        }
        int x = draft_tree(&d, old, node);
        value = value < 0 ? x : draft_binary(&d, OP_MUL, value, x);
    }
    double times = rw_points(q, old->axes & ~stmt_axes(q, &d.s));
    if (negative) times = -times;
    if (times != 1) draft_binary(&d, OP_MUL, value, draft_number(&d, d.s.op[value].type, times));
    draft_close(&d, at);
}

static struct program *distribute(const struct program *p, const struct failure *why,
                                  const struct needle *n) {
    struct factors f;
    int at = why->stmt;
    (void)n;
    if (!rw_factors(p, at, &f) || p->stmt[at].nwhere) return NULL;
    struct sums sums = sums_of(&p->stmt[at], &f);
    if (sums.n == 0 || rw_points(p, p->stmt[at].axes) > 0x1p52 ||
        !(type_is_float(f.type) || type_is_signed(f.type)))
        return NULL;
    struct program *q = program_copy(p);
    struct stmt old = q->stmt[at];
    int terms = 1 << sums.n;
    program_make_room(q, at, terms - 1);
    for (int k = 0; k < terms; k++) write_term(q, at + k, &old, &f, &sums, (unsigned)k);
    return q;
}

const struct rewrite rw_distribute = {
    .name = "distribute",
    .doc = "sums inside a summed product become sums of products",
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
