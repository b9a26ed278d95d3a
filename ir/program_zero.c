/* What zeros make of a statement. */
#include "ir/program.h"

#include "ir/arena.h"
#include "ir/ops.h"

static bool is_zero(enum type type, union value x) {
    return type_is_float(type) ? x.f == 0 : x.i == 0;
}

/* A factor, or a mask, that is zero decides alone. */
static bool decides(const struct stmt *s, const struct op *o, const bool *known,
                    const union value *x) {
    if (o->code != OP_MUL && o->code != OP_AND) return false;
    for (int a = 0; a < 2; a++)
        if (known[o->arg[a]] && is_zero(s->op[o->arg[a]].type, x[o->arg[a]])) return true;
    return false;
}

bool stmt_zero_when(const struct program *p, const struct stmt *s, uint64_t reads) {
    struct arena scratch = {0};
    bool *known = arena_array(&scratch, (size_t)s->nops + 1, sizeof *known);
    union value *x = arena_array(&scratch, (size_t)s->nops + 1, sizeof *x);
    for (int k = 0; k < s->nops; k++) {
        const struct op *o = &s->op[k];
        int arity = op_info[o->code].arity;
        union value arg[3] = {{0}};
        known[k] = arity > 0 || o->code == OP_LITERAL ||
                   (o->code == OP_READ && o->read < 64 && reads >> o->read & 1);
        if (o->code == OP_LITERAL) x[k] = o->value;
        for (int a = 0; a < arity; a++) {
            known[k] &= known[o->arg[a]];
            arg[a] = x[o->arg[a]];
        }
        enum type from = arity ? s->op[o->arg[o->code == OP_SELECT ? 1 : 0]].type : o->type;
        if (arity > 0 && known[k]) x[k] = op_eval(o->code, o->type, from, arg);
        known[k] |= decides(s, o, known, x);
    }
    int root = s->nops - 1;
    enum type to = p->buffer[s->dst.buffer].type;
    bool zero =
        root >= 0 && known[root] && is_zero(to, type_convert(to, s->op[root].type, x[root]));
    arena_free(&scratch);
    return zero;
}
