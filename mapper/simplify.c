/* Types in terms: casts that change no value go, and a widening cast of a sum or product that stays
 * in its type is a sum or product of wider operands. So i8 -> i16 -> i32 is i8 -> i32 in needle and
 * haystack alike, and i16 products that cannot overflow are i32 products. */
#include "mapper/mapper_int.h"

#include <string.h>

struct simplifier {
    struct arena *arena;
    struct term *t;
    int cap;
};

static bool is_integer(enum type t) {
    return !type_is_float(t) && t != TYPE_BOOL;
}

static int make_node(struct simplifier *s, struct term_node node) {
    if (s->t->n == s->cap) {
        struct term_node *grown = arena_array(s->arena, (size_t)s->cap * 2, sizeof *grown);
        memcpy(grown, s->t->at, (size_t)s->t->n * sizeof *grown);
        s->t->at = grown;
        s->cap *= 2;
    }
    s->t->at[s->t->n] = node;
    return s->t->n++;
}

static int make_cast(struct simplifier *s, int of, enum type to) {
    struct term_node x = s->t->at[of];
    struct term_node node = {.code = OP_CAST,
                             .type = to,
                             .nargs = 1,
                             .arg = {of},
                             .read = -1,
                             .origin = x.origin,
                             .made = true,
                             .constant = x.constant,
                             .axes = x.axes,
                             .range = x.range,
                             .alone = x.alone};
    if (x.constant) node.value = type_convert(to, x.type, x.value);
    return make_node(s, node);
}

/* Does x come through type `via` unchanged, so that a cast to `to` of either is the same? An
 * instruction in place of a statement has to compute it for all that its arrays may hold: integer
 * types are passed only where the statement itself says so. */
static bool passes(const struct term_node *x, enum type via, enum type to) {
    if (!range_fits(is_integer(via) ? &x->alone : &x->range, via)) return false;
    bool wraps = is_integer(x->type) && is_integer(via);
    return wraps || range_fits(&x->range, to);
}

static bool moves_inside(const struct term_node *x, enum type to) {
    bool closed = x->code == OP_ADD || x->code == OP_SUB || x->code == OP_MUL || x->code == OP_NEG;
    return closed && !x->constant && is_integer(x->type) && is_integer(to) && x->type != to &&
           type_size(to) > type_size(x->type) && range_fits(&x->alone, x->type) &&
           range_fits(&x->alone, to);
}

static int simplify_cast(struct simplifier *s, int node) {
    struct term_node x = s->t->at[node], from = s->t->at[x.arg[0]];
    if (from.type == x.type) return x.arg[0];
    if (from.code == OP_CAST && passes(&s->t->at[from.arg[0]], from.type, x.type)) {
        if (s->t->at[from.arg[0]].type == x.type) return from.arg[0];
        int made = make_cast(s, from.arg[0], x.type);
        s->t->at[made].origin = x.origin;
        return simplify_cast(s, made);
    }
    if (!moves_inside(&from, x.type)) return node;
    struct term_node wide = from;
    wide.type = x.type;
    wide.made = true;
    wide.range = x.range;
    wide.alone = x.alone;
    for (int k = 0; k < from.nargs; k++)
        wide.arg[k] = simplify_cast(s, make_cast(s, from.arg[k], x.type));
    return make_node(s, wide);
}

static int simplify(struct simplifier *s, int node) {
    for (int k = 0; k < s->t->at[node].nargs; k++) {
        int arg = simplify(s, s->t->at[node].arg[k]);
        s->t->at[node].arg[k] = arg;
    }
    return s->t->at[node].code == OP_CAST ? simplify_cast(s, node) : node;
}

/* Ranges follow writers back: looked at only where they can matter. */
static bool ranges_matter(const struct term *t) {
    for (int i = 0; i < t->n; i++) {
        const struct term_node *x = &t->at[i];
        if (x->code == OP_CAST && (is_integer(x->type) || is_integer(t->at[x->arg[0]].type)))
            return true;
    }
    return false;
}

void term_simplify(struct arena *arena, struct term *t, const struct program *p, int stmt) {
    const struct stmt *s = &p->stmt[stmt];
    struct simplifier sim = {arena, t, t->n};
    if (!ranges_matter(t)) {
        for (int i = 0; i < t->n; i++)
            t->at[i].range = t->at[i].alone = range_of_type(t->at[i].type);
        return;
    }
    struct range *range = arena_array(arena, (size_t)s->nops + 2, sizeof *range),
                 *alone = arena_array(arena, (size_t)s->nops + 2, sizeof *alone);
    ranges_of_ops(p, stmt, range);
    ranges_of_ops_alone(p, stmt, alone);
    for (int i = 0; i < t->n; i++) {
        struct range all = range_of_type(t->at[i].type);
        t->at[i].range = i < s->nops ? range[i] : all;
        t->at[i].alone = i < s->nops ? alone[i] : all;
    }
    t->root = simplify(&sim, t->root);
    term_saturates(t);
}
