#include "ir/parser.h"

#include <math.h>
#include <string.h>

static struct expr *parse_unary(struct parser *p);

static struct expr *node(struct parser *p, enum expr_kind kind, size_t at) {
    if (++p->nodes > PARSE_NODES) {
        parse_fail(p, at, "an expression has more than %s parts; use a temp", "2048");
        return NULL;
    }
    struct expr *e = arena_alloc(p->arena, sizeof *e);
    e->kind = kind;
    e->at = at;
    return e;
}

static struct expr *op_node(struct parser *p, enum opcode op, size_t at, struct expr *a,
                            struct expr *b) {
    struct expr *e = node(p, EXPR_OP, at);
    if (!e) return NULL;
    e->op = op;
    e->arg[0] = a;
    e->arg[1] = b;
    return e;
}

static bool infix_at(const struct parser *p, int precedence, enum opcode *out) {
    for (int op = 0; op < OP_COUNT; op++) {
        if (op_info[op].notation != NOTE_INFIX || op_info[op].precedence != precedence) continue;
        if (!parse_at(p, op_info[op].spelling)) continue;
        *out = (enum opcode)op;
        return true;
    }
    return false;
}

static struct expr *parse_infix(struct parser *p, int precedence) {
    enum { TIGHTEST = 8 };
    if (precedence > TIGHTEST) return parse_unary(p);
    struct expr *e = parse_infix(p, precedence + 1);
    enum opcode op;
    while (e && infix_at(p, precedence, &op)) {
        size_t at = p->token.at;
        parse_advance(p);
        struct expr *right = parse_infix(p, precedence + 1);
        e = right ? op_node(p, op, at, e, right) : NULL;
    }
    return e;
}

static struct expr *parse_nested(struct parser *p) {
    if (++p->depth > PARSE_DEPTH) {
        parse_fail(p, p->token.at, "an expression is nested more than %s deep; use a temp", "200");
        return NULL;
    }
    struct expr *e = parse_infix(p, 1);
    p->depth--;
    return e;
}

struct expr *parse_expr(struct parser *p) {
    p->nodes = 0;
    return parse_nested(p);
}

static struct expr *parse_number(struct parser *p) {
    bool named = p->token.kind == TOKEN_NAME;
    struct expr *e = node(p, p->token.kind == TOKEN_INT ? EXPR_INT : EXPR_FLOAT, p->token.at);
    if (!e) return NULL;
    e->i = p->token.i;
    e->f = named ? (parse_at(p, "inf") ? INFINITY : NAN) : p->token.f;
    parse_advance(p);
    return e;
}

static bool at_number(const struct parser *p) {
    return p->token.kind == TOKEN_INT || p->token.kind == TOKEN_FLOAT || parse_at(p, "inf") ||
           parse_at(p, "nan");
}

/* -1 is a literal, so that it has one form in the tree; - 9223372036854775808 too */
static struct expr *parse_negative(struct parser *p, size_t at) {
    struct expr *e = parse_number(p);
    if (!e) return NULL;
    e->at = at;
    if (e->kind == EXPR_INT && (uint64_t)e->i > (uint64_t)INT64_MIN) {
        parse_fail(p, at, "%s", "an integer is less than -2^63, the least one");
        return NULL;
    }
    e->i = (int64_t)(0 - (uint64_t)e->i);
    e->f = e->kind == EXPR_INT && e->i == 0 ? 0 : -e->f;
    return e;
}

/* name[index, … else fill]; the name has been read */
static struct expr *parse_access(struct parser *p, const char *name, size_t at) {
    int cap = 0;
    struct expr *e = node(p, EXPR_READ, at);
    if (!e || !parse_expect(p, "[")) return NULL;
    size_t n = strlen(name);
    e->next = name[n - 1] == '\'';
    e->name = e->next ? arena_strndup(p->arena, name, n - 1) : name;
    if (parse_accept(p, "]")) return e;
    do {
        GROW(p->arena, e->index, e->nindex, cap);
        if (!(e->index[e->nindex++] = parse_nested(p))) return NULL;
    } while (parse_accept(p, ","));
    if (parse_accept(p, "else")) {
        size_t sign = p->token.at;
        bool negative = parse_accept(p, "-");
        if (!at_number(p)) {
            parse_unexpected(p, "a literal after 'else'");
            return NULL;
        }
        e->fill = negative ? parse_negative(p, sign) : parse_number(p);
        if (!e->fill) return NULL;
        if (parse_at(p, ",")) {
            parse_unexpected(p, "']': one 'else' stands behind all indices");
            return NULL;
        }
    }
    return parse_expect(p, "]") ? e : NULL;
}

struct expr *parse_expr_access(struct parser *p) {
    size_t at = p->token.at;
    p->nodes = 0;
    const char *name = parse_name(p, "the name of a buffer", true);
    return name ? parse_access(p, name, at) : NULL;
}

static bool function_named(const char *name, enum opcode *op, enum type *type) {
    for (int o = 0; o < OP_COUNT; o++) {
        if (op_info[o].notation != NOTE_CALL || strcmp(op_info[o].spelling, name) != 0) continue;
        *op = (enum opcode)o;
        return true;
    }
    if (strcmp(name, "neg") == 0) {
        *op = OP_NEG;
        return true;
    }
    *op = OP_CAST;
    return type_parse(name, strlen(name), type);
}

static struct expr *parse_function(struct parser *p, const char *name, size_t at) {
    struct expr *e = node(p, EXPR_OP, at);
    if (!e) return NULL;
    if (!function_named(name, &e->op, &e->type)) {
        parse_fail(p, at, "'%s' is not an operation or a type; see docs/ir.md", name);
        return NULL;
    }
    parse_expect(p, "(");
    for (int k = 0; k < op_info[e->op].arity; k++)
        if ((k > 0 && !parse_expect(p, ",")) || !(e->arg[k] = parse_nested(p))) return NULL;
    return parse_expect(p, ")") ? e : NULL;
}

static struct expr *parse_primary(struct parser *p) {
    size_t at = p->token.at;
    if (at_number(p)) return parse_number(p);
    if (parse_accept(p, "(")) {
        struct expr *e = parse_nested(p);
        return e && parse_expect(p, ")") ? e : NULL;
    }
    if (p->token.kind != TOKEN_NAME) {
        parse_unexpected(p, "an expression");
        return NULL;
    }
    const char *name = parse_name(p, "an expression", true);
    if (!name) return NULL;
    if (parse_at(p, "[")) return parse_access(p, name, at);
    if (parse_at(p, "(")) return parse_function(p, name, at);
    if (name[strlen(name) - 1] == '\'') {
        parse_unexpected(p, "'[' after a state's next value");
        return NULL;
    }
    struct expr *e = node(p, EXPR_NAME, at);
    if (e) e->name = name;
    return e;
}

static struct expr *parse_prefix(struct parser *p) {
    size_t at = p->token.at;
    enum opcode op = parse_accept(p, "~") ? OP_NOT : OP_NEG;
    if (op == OP_NEG) parse_accept(p, "-");
    if (op == OP_NEG && at_number(p)) return parse_negative(p, at);
    if (++p->depth > PARSE_DEPTH) {
        parse_fail(p, at, "an expression is nested more than %s deep; use a temp", "200");
        return NULL;
    }
    struct expr *e = parse_unary(p);
    p->depth--;
    return e ? op_node(p, op, at, e, NULL) : NULL;
}

static struct expr *parse_unary(struct parser *p) {
    return parse_at(p, "-") || parse_at(p, "~") ? parse_prefix(p) : parse_primary(p);
}
