/* Statements of a body that stands twice (stmt.alike): do both copies give the same bits? They do
 * where the same instruction executes what each became, or the fallback, and sums run over the same
 * axes. A planner changes the order of no sum over one axis. */
#include "mapper/lift.h"

struct copy_of { /* the statements that one copy of the body became, in their order */
    const struct cover *cover;
    int number, at; /* at: an item; nitems: none is left */
};

static bool moves_only(const struct stmt *s) {
    return s->combine == COMBINE_SET && s->nops == 1 && s->op->code == OP_READ;
}

static void next(struct copy_of *c) {
    const struct cover *v = c->cover;
    const struct stmt *s;
    do {
        c->at++;
        s = c->at < v->nitems ? &v->program->stmt[v->item[c->at].stmt] : NULL;
    } while (s && (s->alike != c->number || moves_only(s)));
}

static int instr_of(const struct cover *c, int item) {
    while (c->item[item].inside >= 0) item = c->item[item].inside;
    return c->item[item].mapping < 0 ? -1 : c->mapping[c->item[item].mapping].instr;
}

static uint64_t summed(const struct program *p, const struct stmt *s) {
    uint64_t axes = s->axes;
    for (int d = 0; d < p->buffer[s->dst.buffer].ndims; d++)
        for (int a = 0; a < p->naxes; a++)
            if (access_coef(p, &s->dst, d, a)) axes &= ~(UINT64_C(1) << a);
    return axes;
}

/* The same sum, over one axis at most, whose intermediate results are not rounded to be stored. */
static bool same_sum(const struct program *p, const struct stmt *s, const struct stmt *t) {
    uint64_t x = summed(p, s), y = summed(p, t);
    enum type type = p->buffer[s->dst.buffer].type;
    if (!type_is_float(type) || (!x && !y)) return true;
    return x && y && !(x & (x - 1)) && !(y & (y - 1)) && type != TYPE_F16 && type != TYPE_BF16 &&
           p->axis[__builtin_ctzll(x)].extent == p->axis[__builtin_ctzll(y)].extent;
}

static bool same_way(const struct cover *c, int i, int j) {
    const struct program *p = c->program;
    const struct stmt *s = &p->stmt[c->item[i].stmt], *t = &p->stmt[c->item[j].stmt];
    bool same = s->combine == t->combine && s->nops == t->nops &&
                p->buffer[s->dst.buffer].type == p->buffer[t->dst.buffer].type &&
                instr_of(c, i) == instr_of(c, j) && same_sum(p, s, t);
    for (int k = 0; k < s->nops && same; k++)
        same = s->op[k].code == t->op[k].code && s->op[k].type == t->op[k].type;
    return same;
}

bool cover_is_alike(const struct cover *c) {
    for (int i = 0; i < c->nitems; i++) {
        int number = c->program->stmt[c->item[i].stmt].alike;
        if (number == 0) continue;
        struct copy_of one = {c, number - !(number & 1), -1}, other = {c, one.number + 1, -1};
        do {
            next(&one);
            next(&other);
            bool ends = one.at == c->nitems;
            if (ends != (other.at == c->nitems) || (!ends && !same_way(c, one.at, other.at)))
                return false;
        } while (one.at < c->nitems);
    }
    return true;
}
