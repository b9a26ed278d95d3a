/* Does an instruction compute what the statement says? Two scalar functions are compared on many
 * random points, under assignments of the semantics' operands to the statement's reads: that needs
 * no rule about how either is written. Where they agree it is tried to prove it (alike.c).
 *
 * An assignment is made read by read: which operands stand for the first one, which for the second.
 * What is not assigned yet has one value, in both functions, so they must agree after each step;
 * that leaves few of the many assignments. */
#include "scheduler/verify/verify_int.h"

#include <math.h>
#include <string.h>

enum {
    SAMPLES = 64,
    FEW = 3 /* after each step */,
    MOST_STEPS = 1 << 18,
    FIRST = 8 /* assignments */
};

bool stmt_is_neutral_fill(const struct program *p, const struct stmt *fill,
                          const struct stmt *reduction) {
    if (fill->combine != COMBINE_SET || reduction->combine == COMBINE_SET || fill->nreads != 0 ||
        fill->nops != 1 || fill->op[0].code != OP_LITERAL ||
        fill->dst.buffer != reduction->dst.buffer)
        return false;
    enum type type = p->buffer[fill->dst.buffer].type;
    union value x = type_convert(type, fill->op[0].type, fill->op[0].value);
    union value neutral = combiner_neutral(reduction->combine, type);
    return type_is_float(type) ? x.f == neutral.f : x.i == neutral.i;
}

static enum type from_type(const struct stmt *s, const struct op *o) {
    return s->op[o->arg[o->code == OP_SELECT ? 1 : 0]].type;
}

/* The statement's value, before it is combined, in its destination's type. */
static union value stmt_value(const struct program *p, const struct stmt *s,
                              const union value *read, double axis, union value *scratch) {
    for (int k = 0; k < s->nops; k++) {
        const struct op *o = &s->op[k];
        union value arg[3];
        switch (o->code) {
        case OP_READ:
            scratch[k] = read[o->read];
            break;
        case OP_LITERAL:
            scratch[k] = o->value;
            break;
        case OP_AXIS:
            if (type_is_float(o->type))
                scratch[k].f = axis;
            else
                scratch[k].i = (int64_t)axis;
            break;
        default:
            for (int a = 0; a < op_info[o->code].arity; a++) arg[a] = scratch[o->arg[a]];
            scratch[k] = op_eval(o->code, o->type, from_type(s, o), arg);
        }
    }
    return type_convert(p->buffer[s->dst.buffer].type, s->op[s->nops - 1].type,
                        scratch[s->nops - 1]);
}

static union value combine(const struct program *p, const struct stmt *s, union value self,
                           union value x) {
    if (s->combine == COMBINE_SET) return x;
    enum type type = p->buffer[s->dst.buffer].type;
    union value arg[2] = {self, x};
    return op_eval(combiner_op(s->combine), type, type, arg);
}

/* ---- the search ---- */
struct search {
    struct verify *v;
    const struct shape *h;
    const struct stmt *stmt;
    struct binding_of *out;
    operand_fits *fits; /* of operands that stand where they are; NULL: any may be any read */
    void *user;
    struct candidate_of now;
    int input[MAX_READS + 1], ninputs;   /* reads of the semantics without an immediate; SELF: what
                                            their accumulation starts from */
    int target[MAX_READS + 1], ntargets; /* different reads of the statement; SELF: its own */
    int enough;                          /* so many assignments */
    int64_t steps;
    union value *scratch;
    uint64_t random;
};

static uint64_t random_bits(uint64_t *state) {
    *state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = *state;
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static union value random_value(uint64_t *state, enum type type) {
    uint64_t bits = random_bits(state);
    union value x;
    if (type_is_float(type)) {
        double unit = (double)(bits >> 11) * 0x1p-53;
        x.f = type_round(type, (unit - 0.5) * (bits & 1 ? 8 : bits & 2 ? 2 : 300));
        return x;
    }
    x.i = (int64_t)(random_bits(state) >> (bits & 1 ? 60 : bits & 2 ? 50 : 0));
    if (bits & 4) x.i = -x.i;
    x.i = type_wrap(type, (uint64_t)x.i);
    return x;
}

static bool compares(const struct stmt *s) {
    for (int k = 0; k < s->nops; k++)
        if (op_info[s->op[k].code].error == ERROR_COMPARE) return true;
    return false;
}

/* A literal of a statement of such a type; x where there is none. */
static union value some_literal(uint64_t *state, const struct stmt *s, enum type type,
                                union value x) {
    uint64_t n = 0;
    for (int k = 0; k < s->nops; k++)
        if (s->op[k].code == OP_LITERAL && s->op[k].type == type && random_bits(state) % ++n == 0)
            x = s->op[k].value;
    return x;
}

static bool same_access(const struct program *p, const struct access *a, const struct access *b) {
    if (a->buffer != b->buffer || a->has_fill != b->has_fill) return false;
    size_t n = (size_t)p->buffer[a->buffer].ndims * (size_t)(p->naxes + 1);
    return n == 0 || memcmp(a->coef, b->coef, n * sizeof *a->coef) == 0;
}

/* Reads of one element have one value; a read of the destination before is SELF's. */
static int first_same(const struct program *p, const struct stmt *s, int read) {
    int k = 0;
    while (!same_access(p, &s->read[k], &s->read[read])) k++;
    return k;
}

static bool uses_floats(const struct stmt *s) {
    for (int k = 0; k < s->nops; k++)
        if (type_is_float(s->op[k].type)) return true;
    return false;
}

static bool close_enough(const struct search *c, enum type type, union value a, union value b) {
    if (type_is_float(type)) {
        if (isnan(a.f) || isnan(b.f)) return isnan(a.f) && isnan(b.f);
        if (a.f == b.f) return true;
        return fabs(a.f - b.f) <=
               1e-2 * (type_size(type) < 4) + 1e-4 * (fabs(a.f) + fabs(b.f)) + 1e-6;
    }
    if (a.i == b.i) return true;
    bool rounded = uses_floats(c->stmt) || uses_floats(c->h->stmt);
    return rounded && (a.i - b.i == 1 || b.i - a.i == 1);
}

static enum type input_type(const struct search *c, int input) {
    const struct program *b = c->h->bound;
    const struct stmt *s = c->h->stmt;
    return b->buffer[input == SELF ? s->dst.buffer : s->read[input].buffer].type;
}

static enum type target_type(const struct search *c, int target) {
    const struct stmt *s = c->stmt;
    return c->v->p->buffer[target == SELF ? s->dst.buffer : s->read[target].buffer].type;
}

/* A value for read t, behind those that are given. What is compared must be equal at times, to
 * another read or to a literal: no two numbers drawn are. */
static union value draw(struct search *c, int t, const union value *given,
                        const union value *rest) {
    enum type type = target_type(c, c->target[t]);
    union value x = random_value(&c->random, type);
    if (!compares(c->stmt) && !compares(c->h->stmt)) return x;
    uint64_t how = random_bits(&c->random) % 8;
    int other = (int)(random_bits(&c->random) % (uint64_t)(t + 1));
    if (how == 0 && other == t) return rest[type];
    if (how == 0 && target_type(c, c->target[other]) == type) return given[other];
    if (how == 1) return some_literal(&c->random, c->stmt, type, x);
    if (how == 2) return some_literal(&c->random, c->h->stmt, type, x);
    return x;
}

/* With what the first `known` reads of the statement stand for. */
static bool same_once(struct search *c, int known) {
    const struct program *p = c->v->p, *b = c->h->bound;
    const struct stmt *hay = c->stmt, *needle = c->h->stmt;
    enum type type = p->buffer[hay->dst.buffer].type;
    union value rest[TYPE_COUNT], given[MAX_READS + 1], hay_read[MAX_READS], read[MAX_READS];
    for (int t = 0; t < TYPE_COUNT; t++) rest[t] = random_value(&c->random, (enum type)t);
    union value self = rest[type], start;
    double axis = (double)(random_bits(&c->random) % 1000), other = axis + 1;
    for (int r = 0; r < hay->nreads; r++) hay_read[r] = rest[target_type(c, r)];
    for (int t = 0; t < known; t++) {
        given[t] = draw(c, t, given, rest);
        *(c->target[t] == SELF ? &self : &hay_read[c->target[t]]) = given[t];
    }
    for (int r = 0; r < hay->nreads; r++) hay_read[r] = hay_read[first_same(p, hay, r)];
    for (int r = 0; r < needle->nreads; r++) {
        int at = c->now.read[first_same(b, needle, r)];
        read[r] = at == UNUSED ? c->out->imm[c->h->read_operand[r]]
                  : at == OPEN ? rest[input_type(c, r)]
                  : at == SELF ? self
                               : hay_read[at];
    }
    start = c->now.self == OPEN   ? rest[type]
            : c->now.self == SELF ? self
            : c->now.self >= 0    ? hay_read[c->now.self]
                                  : self;
    union value x = stmt_value(p, hay, hay_read, axis, c->scratch);
    union value y = stmt_value(b, needle, read, other, c->scratch);
    if (!c->out->overwrites) x = combine(p, hay, self, x);
    if (c->now.self != UNUSED) y = combine(b, needle, start, y);
    return close_enough(c, type, x, y);
}

static bool same_function(struct search *c, int known, int samples) {
    c->random = 12345;
    for (int k = 0; k < samples; k++)
        if (!same_once(c, known)) return false;
    return true;
}

static void keep(struct search *c) {
    struct binding_of *b = c->out;
    struct candidate_of *kept = arena_array(&c->v->arena, (size_t)b->n + 1, sizeof *kept);
    if (b->n) memcpy(kept, b->candidate, (size_t)b->n * sizeof *kept);
    kept[b->n] = c->now;
    for (int r = 0; r < c->h->stmt->nreads; r++)
        kept[b->n].read[r] = c->now.read[first_same(c->h->bound, c->h->stmt, r)];
    b->candidate = kept;
    b->n++;
}

static bool may_stand(const struct search *c, int input, int target) {
    return input_type(c, input) == target_type(c, target) &&
           (!c->fits || c->fits(c->user, input, target));
}

static void assign_reads(struct search *c, int at, uint32_t left);

/* Which of the inputs from `from` on stand for read `at`, beside those that do already? */
static void choose_inputs(struct search *c, int at, int from, uint32_t left) {
    if (c->enough == 0 || c->steps++ > MOST_STEPS) return;
    if (same_function(c, at + 1, FEW)) assign_reads(c, at + 1, left);
    for (int i = from; i < c->ninputs; i++) {
        int input = c->input[i], *slot = input == SELF ? &c->now.self : &c->now.read[input];
        if (!(left >> i & 1) || !may_stand(c, input, c->target[at])) continue;
        *slot = c->target[at];
        choose_inputs(c, at, i + 1, left & ~(UINT32_C(1) << i));
        *slot = OPEN;
    }
}

static void assign_reads(struct search *c, int at, uint32_t left) {
    if (at < c->ntargets) {
        choose_inputs(c, at, 0, left);
    } else if (!left && same_function(c, at, SAMPLES)) {
        keep(c);
        c->enough--;
    }
}

static bool immediate(const struct shape *h, const struct issue_node *n, int read) {
    int operand = h->read_operand[read];
    return operand >= 0 && n->arg[operand].place < 0;
}

static void open_inputs(struct search *c, const struct issue_node *n) {
    const struct stmt *s = c->h->stmt;
    const struct program *p = c->v->p;
    c->now.self = UNUSED;
    for (int r = 0; r < s->nreads; r++) {
        bool open = !immediate(c->h, n, r);
        c->now.read[r] = open ? OPEN : UNUSED;
        if (open && first_same(c->h->bound, s, r) == r) c->input[c->ninputs++] = r;
    }
    if (!c->out->overwrites && s->combine != COMBINE_SET) {
        c->input[c->ninputs++] = SELF;
        c->now.self = OPEN;
    }
    if (!c->out->overwrites && c->stmt->combine != COMBINE_SET) c->target[c->ntargets++] = SELF;
    for (int t = 0; t < c->stmt->nreads; t++)
        if (first_same(p, c->stmt, t) == t) c->target[c->ntargets++] = t;
}

static bool same_issue(const struct binding_of *b, const struct issue_node *n,
                       const struct instr *in, bool overwrite) {
    if (b->instr != n->instr || b->stmt != n->stmt || b->overwrites != overwrite) return false;
    for (int o = 0; o < in->noperands; o++)
        if (n->arg[o].place < 0 && b->imm[o].i != n->arg[o].imm.i) return false;
    return true;
}

static int most(int a, int b) {
    return a > b ? a : b;
}

/* ---- statements that ask the same ---- */
static bool same_op(const struct op *a, const struct op *b) {
    return a->code == b->code && a->type == b->type &&
           memcmp(a->arg, b->arg, sizeof a->arg[0] * (size_t)op_info[a->code].arity) == 0 &&
           (a->code != OP_READ || a->read == b->read) &&
           (a->code != OP_LITERAL || memcmp(&a->value, &b->value, sizeof a->value) == 0);
}

static bool same_question(const struct program *p, const struct stmt *a, const struct stmt *b) {
    if (a->combine != b->combine || a->nreads != b->nreads || a->nops != b->nops ||
        p->buffer[a->dst.buffer].type != p->buffer[b->dst.buffer].type)
        return false;
    for (int r = 0; r < a->nreads; r++)
        if (p->buffer[a->read[r].buffer].type != p->buffer[b->read[r].buffer].type ||
            first_same(p, a, r) != first_same(p, b, r))
            return false;
    for (int k = 0; k < a->nops; k++)
        if (!same_op(&a->op[k], &b->op[k])) return false;
    return true;
}

static const struct binding_of *alike_before(const struct verify *v, const struct binding_of *x) {
    for (const struct binding_of *b = x->next; b; b = b->next)
        if (b->instr == x->instr && b->part >= 0 && b->part == x->part &&
            b->overwrites == x->overwrites && memcmp(b->imm, x->imm, sizeof b->imm) == 0 &&
            same_question(v->p, &v->p->stmt[b->stmt], &v->p->stmt[x->stmt]))
            return b;
    return NULL;
}

static bool copies(const struct program *p, const struct stmt *s) {
    return s->combine == COMBINE_SET && s->nops == 1 && s->op[0].code == OP_READ &&
           p->buffer[s->read[0].buffer].type == p->buffer[s->dst.buffer].type;
}

/* Is it a copy of elements of a type that the byte-wise move is said to serve? */
static bool served_copy(const struct search *c) {
    const struct instr *in = &c->v->m->instr[c->h->instr];
    const struct program *p = c->v->p, *b = c->h->bound;
    enum type type = p->buffer[c->stmt->dst.buffer].type;
    return in->is_move && in->move_types >> type & 1 && copies(p, c->stmt) &&
           copies(b, c->h->stmt) &&
           type_size(b->buffer[c->h->stmt->dst.buffer].type) == type_size(type);
}

static void search_candidates(struct verify *v, const struct shape *h, const struct issue_node *n,
                              struct binding_of *b, operand_fits *fits, void *user) {
    struct search c = {.v = v,
                       .h = h,
                       .stmt = &v->p->stmt[n->stmt],
                       .out = b,
                       .fits = fits,
                       .user = user,
                       .enough = fits ? 1 : FIRST};
    int first[MAX_READS], known = b->n;
    if (served_copy(&c)) {
        c.now.self = UNUSED; /* read 0 is read 0 */
        keep(&c);
        return;
    }
    if (c.stmt->nreads > MAX_READS ||
        h->bound->buffer[h->stmt->dst.buffer].type != v->p->buffer[c.stmt->dst.buffer].type)
        return;
    c.scratch =
        arena_array(&v->arena, (size_t)most(c.stmt->nops, h->stmt->nops) + 1, sizeof *c.scratch);
    open_inputs(&c, n);
    assign_reads(&c, 0, (UINT32_C(1) << c.ninputs) - 1);
    b->more |= c.enough == 0 || c.steps > MOST_STEPS;
    if (c.steps > MOST_STEPS && b->n == 0)
        verify_limit(v, "what operands of '%s' stand for is not found in %d steps",
                     v->m->instr[h->instr].id, MOST_STEPS);
    for (int r = 0; r < c.stmt->nreads; r++) first[r] = first_same(v->p, c.stmt, r);
    for (int k = known; k < b->n; k++)
        b->sampled |=
            !candidate_proved(v, h, c.stmt, first, b->overwrites, b->imm, &b->candidate[k]);
}

const struct candidate_of *binding_fitting(struct verify *v, const struct shape *h,
                                           const struct issue_node *n, struct binding_of *b,
                                           operand_fits *fits, void *user) {
    int known = b->n;
    bool sampled = b->sampled;
    if (!b->more) return NULL;
    search_candidates(v, h, n, b, fits, user);
    v->sampled += b->sampled && !sampled;
    return b->n > known ? &b->candidate[known] : NULL;
}

/* `overwrite`: the semantics' accumulation is switched off. */
struct binding_of *binding_get(struct verify *v, const struct shape *h, const struct issue_node *n,
                               bool overwrite) {
    const struct instr *in = &v->m->instr[n->instr];
    for (struct binding_of *b = v->bindings; b; b = b->next)
        if (same_issue(b, n, in, overwrite)) return b;
    struct binding_of *b = arena_alloc(&v->arena, sizeof *b);
    b->instr = n->instr;
    b->stmt = n->stmt;
    b->part = -1;
    for (int q = 0; q < h->bound->nstmts; q++)
        if (h->stmt->op == h->bound->stmt[q].op) b->part = q;
    b->overwrites = overwrite;
    for (int o = 0; o < in->noperands; o++) b->imm[o].i = n->arg[o].place < 0 ? n->arg[o].imm.i : 0;
    b->next = v->bindings;
    v->bindings = b;
    const struct binding_of *known = alike_before(v, b);
    if (known) {
        b->candidate = known->candidate;
        b->n = known->n;
        b->more = known->more;
        b->sampled = known->sampled;
    } else {
        search_candidates(v, h, n, b, NULL, NULL);
    }
    v->sampled += b->sampled;
    return b;
}

/* ---- constants through an instruction: what padding contributes ---- */
static bool product_with_zero(const struct op *o, const bool *known, const union value *x) {
    if (o->code != OP_MUL || type_is_float(o->type)) return false;
    return (known[o->arg[0]] && x[o->arg[0]].i == 0) || (known[o->arg[1]] && x[o->arg[1]].i == 0);
}

bool shape_value(const struct shape *h, const struct tag *read, union value *out) {
    const struct stmt *s = h->stmt;
    enum { MOST = 64 };
    bool known[MOST] = {false};
    union value x[MOST];
    if (s->nops > MOST) return false;
    for (int k = 0; k < s->nops; k++) {
        const struct op *o = &s->op[k];
        union value arg[3];
        int arity = op_info[o->code].arity;
        if (o->code == OP_READ) {
            known[k] = read[o->read].kind == TAG_CONST;
            memcpy(&x[k], &read[o->read].id, sizeof x[k]);
        } else if (o->code == OP_LITERAL) {
            known[k] = true;
            x[k] = o->value;
        } else if (o->code != OP_AXIS) {
            known[k] = true;
            for (int a = 0; a < arity; a++) {
                known[k] &= known[o->arg[a]];
                arg[a] = x[o->arg[a]];
            }
            if (known[k])
                x[k] = op_eval(o->code, o->type, from_type(s, o), arg);
            else if ((known[k] = product_with_zero(o, known, x)))
                x[k].i = 0;
        }
    }
    if (!known[s->nops - 1]) return false;
    enum type type = h->bound->buffer[s->dst.buffer].type;
    *out = type_convert(type, s->op[s->nops - 1].type, x[s->nops - 1]);
    return true;
}
