/* Is it proved that an instruction computes a statement's value? Both become programs of one
 * statement on single elements, and the checker of program changes (ir/chain.h) compares them. */
#include "scheduler/verify/verify_int.h"
#include "ir/chain.h"

#include <string.h>

/* isl's operations for one comparison: a few milliseconds. */
static const int64_t STEPS = 100000;

/* ---- statements on single elements: input k is read k of the program's statement, after them its
 * destination before ---- */
struct scalar {
    struct program *p;
    struct stmt *s;
    int inputs; /* and as many as that: the result */
};

static int add_buffer(struct program *p, enum type type, enum role role) {
    struct buffer *b = &p->buffer[p->nbuffers];
    struct text name = {0};
    text_printf(&name, role == ROLE_OUT ? "y" : "x%d", p->nbuffers);
    b->name = arena_strdup(&p->arena, name.at);
    text_free(&name);
    b->type = type;
    b->role = role;
    b->ndims = 1;
    b->extent = arena_array(&p->arena, 1, sizeof *b->extent);
    b->extent[0] = b->elements = 1;
    return p->nbuffers++;
}

static void element(struct program *p, struct access *a, int buffer) {
    *a = (struct access){.buffer = buffer};
    a->coef = arena_array(&p->arena, 1, sizeof *a->coef);
}

static struct scalar scalar_new(const struct program *of, const struct stmt *hay, int nops) {
    struct scalar x = {.p = program_new("scalar"), .inputs = hay->nreads + 1};
    struct program *p = x.p;
    p->buffer = arena_array(&p->arena, (size_t)x.inputs + 1, sizeof *p->buffer);
    for (int r = 0; r < hay->nreads; r++)
        add_buffer(p, of->buffer[hay->read[r].buffer].type, ROLE_IN);
    add_buffer(p, of->buffer[hay->dst.buffer].type, ROLE_IN);
    add_buffer(p, of->buffer[hay->dst.buffer].type, ROLE_OUT);
    p->stmt = arena_array(&p->arena, 1, sizeof *p->stmt);
    p->item = arena_array(&p->arena, 1, sizeof *p->item);
    p->nstmts = p->nitems = 1;
    p->item[0] = (struct item){.kind = ITEM_STMT, .stmt = 0};
    x.s = &p->stmt[0];
    x.s->op = arena_array(&p->arena, (size_t)nops, sizeof *x.s->op);
    x.s->read = arena_array(&p->arena, (size_t)nops, sizeof *x.s->read);
    element(p, &x.s->dst, x.inputs);
    return x;
}

static int add_op(struct stmt *s, struct op o) {
    s->op[s->nops] = o;
    return s->nops++;
}

static int add_read(struct scalar *x, int input, enum type type) {
    element(x->p, &x->s->read[x->s->nreads], input);
    return add_op(x->s, (struct op){.code = OP_READ, .type = type, .read = x->s->nreads++});
}

/* The value of `from`, whose read r is input[r]; -1: the constant. False: it uses an axis' value.
 */
static bool add_value(struct scalar *x, const struct stmt *from, const int *input,
                      const union value *constant) {
    for (int k = 0; k < from->nops; k++) {
        struct op o = from->op[k];
        if (o.code == OP_AXIS) return false;
        if (o.code != OP_READ)
            add_op(x->s, o);
        else if (input[o.read] >= 0)
            add_read(x, input[o.read], o.type);
        else
            add_op(x->s,
                   (struct op){.code = OP_LITERAL, .type = o.type, .value = constant[o.read]});
    }
    return true;
}

/* Combined with what input `self` holds. False: in a type that is computed in another one. */
static bool add_combination(struct scalar *x, enum combiner how, int self) {
    enum type type = x->p->buffer[x->inputs].type;
    int value = x->s->nops - 1;
    if (x->s->op[value].type != type) return false;
    int before = add_read(x, self, type);
    add_op(x->s, (struct op){.code = combiner_op(how), .type = type, .arg = {before, value}});
    return true;
}

static bool make_hay(struct scalar *x, const struct program *p, const struct stmt *hay,
                     const int *first, bool overwrite) {
    *x = scalar_new(p, hay, hay->nops + 2);
    return add_value(x, hay, first, NULL) && (overwrite || hay->combine == COMBINE_SET ||
                                              add_combination(x, hay->combine, hay->nreads));
}

static bool make_needle(struct scalar *x, const struct program *p, const struct stmt *hay,
                        const struct shape *h, const struct candidate_of *c,
                        const union value *imm) {
    int input[MAX_READS];
    union value constant[MAX_READS] = {{0}};
    *x = scalar_new(p, hay, h->stmt->nops + 2);
    for (int r = 0; r < h->stmt->nreads; r++) {
        input[r] = c->read[r] == SELF ? hay->nreads : c->read[r] == UNUSED ? -1 : c->read[r];
        if (c->read[r] == UNUSED) constant[r] = imm[h->read_operand[r]];
    }
    return add_value(x, h->stmt, input, constant) &&
           (c->self == UNUSED ||
            add_combination(x, h->stmt->combine, c->self == SELF ? hay->nreads : c->self));
}

bool candidate_proved(const struct verify *v, const struct shape *h, const struct stmt *hay,
                      const int *first, bool overwrite, const union value *imm,
                      const struct candidate_of *c) {
    struct scalar a = {0}, b = {0};
    struct items one = {0, 1};
    bool good = make_hay(&a, v->p, hay, first, overwrite) &&
                make_needle(&b, v->p, hay, h, c, imm) &&
                items_equal_by(a.p, one, b.p, one, LAWS_FINITE, STEPS).evidence == EVIDENCE_PROVED;
    program_free(a.p);
    program_free(b.p);
    return good;
}
