/* Recursive descent over the grammar in docs/ir.md; the first error ends it. */
#include "ir/kernel.h"
#include "ir/lexer.h"
#include "ir/parser.h"

#include <string.h>

const char *const role_name[ROLE_COUNT] = {"in", "out", "inout", "const", "temp", "state"};

bool parse_fail(struct parser *p, size_t at, const char *fmt, const char *what) {
    if (!p->failed) diag_at(p->diags, p->source, at, fmt, what);
    p->failed = true;
    p->token.kind = TOKEN_END;
    return false;
}

/* At most 40 characters of it; bytes that are no printable characters as numbers. */
static const char *token_quoted(struct parser *p) {
    struct text out = {0};
    for (size_t k = 0; k < p->token.length && k < 40; k++) {
        unsigned char c = (unsigned char)p->source->text[p->token.at + k];
        text_printf(&out, c < 32 || c > 126 ? "\\x%02x" : "%c", c);
    }
    char *quoted =
        arena_printf(p->arena, "'%s%s'", out.at ? out.at : "", p->token.length > 40 ? "…" : "");
    text_free(&out);
    return quoted;
}

void parse_advance(struct parser *p) {
    p->end = p->token.at + p->token.length;
    if (p->failed) return;
    p->token = token_next(p->source, p->end);
    if (p->token.kind != TOKEN_ERROR) return;
    const char *what = arena_printf(p->arena, "%s is %s", token_quoted(p), p->token.error);
    parse_fail(p, p->token.at, "%s", what);
}

bool parse_at(const struct parser *p, const char *spelling) {
    return token_is(p->source, &p->token, spelling);
}

bool parse_accept(struct parser *p, const char *spelling) {
    if (!parse_at(p, spelling)) return false;
    parse_advance(p);
    return true;
}

bool parse_unexpected(struct parser *p, const char *expected) {
    if (p->failed) return false;
    const char *got = p->token.kind == TOKEN_END ? "end of the text" : token_quoted(p);
    return parse_fail(p, p->token.at, "%s",
                      arena_printf(p->arena, "unexpected %s, expected %s", got, expected));
}

bool parse_expect(struct parser *p, const char *spelling) {
    if (parse_accept(p, spelling)) return true;
    return parse_unexpected(p, arena_printf(p->arena, "'%s'", spelling));
}

static bool at_keyword(const struct parser *p) {
    return p->token.kind == TOKEN_NAME &&
           is_keyword(p->source->text + p->token.at, p->token.length);
}

static const char *parse_token_text(struct parser *p) {
    return arena_strndup(p->arena, p->source->text + p->token.at, p->token.length);
}

/* A name that is not a keyword; `prime`: h' is allowed. NULL after reporting. */
const char *parse_name(struct parser *p, const char *what, bool prime) {
    if (p->token.kind != TOKEN_NAME) {
        parse_unexpected(p, what);
        return NULL;
    }
    const char *name = parse_token_text(p);
    if (at_keyword(p)) {
        parse_fail(p, p->token.at, "'%s' is a word of the language and cannot be a name", name);
        return NULL;
    }
    if (!prime && name[p->token.length - 1] == '\'') {
        parse_fail(p, p->token.at,
                   "'%s' is written with a prime, which only a state's next value has", name);
        return NULL;
    }
    parse_advance(p);
    return name;
}

static bool parse_extents(struct parser *p, struct kernel_buffer *b) {
    int cap = 0;
    if (!parse_accept(p, "[")) return true;
    if (parse_accept(p, "]")) return true;
    do {
        GROW(p->arena, b->extent, b->ndims, cap);
        if (!(b->extent[b->ndims++] = parse_expr(p))) return false;
    } while (parse_accept(p, ","));
    return parse_expect(p, "]");
}

static struct kernel_buffer *parse_buffer(struct parser *p, enum role role) {
    struct kernel_buffer *b = arena_alloc(p->arena, sizeof *b);
    b->at = p->token.at;
    b->role = role;
    b->name = parse_name(p, "the name of a buffer", false);
    if (!b->name || !parse_expect(p, ":")) return NULL;
    if (p->token.kind != TOKEN_NAME ||
        !type_parse(p->source->text + p->token.at, p->token.length, &b->type)) {
        parse_unexpected(p, "an element type such as f32 or i8");
        return NULL;
    }
    parse_advance(p);
    if (!parse_extents(p, b)) return NULL;
    if (role != ROLE_STATE) return b;
    if (!parse_expect(p, "from")) return NULL;
    b->from = parse_name(p, "the buffer that the state starts from", true);
    if (!b->from) return NULL;
    if (parse_accept(p, "to")) {
        b->to = parse_name(p, "the buffer that receives the last state", true);
        if (!b->to) return NULL;
    }
    return b;
}

struct item_list {
    struct kernel_item *at;
    int n, cap;
};

static struct kernel_item *item_new(struct parser *p, struct item_list *l,
                                    enum kernel_item_kind kind) {
    GROW(p->arena, l->at, l->n, l->cap);
    struct kernel_item *i = &l->at[l->n++];
    *i = (struct kernel_item){.kind = kind};
    return i;
}

static bool parse_buffers(struct parser *p, struct item_list *l, enum role role) {
    do {
        struct kernel_buffer *b = parse_buffer(p, role);
        if (!b) return false;
        item_new(p, l, KITEM_BUFFER)->buffer = b;
    } while (parse_accept(p, ","));
    return true;
}

static bool parse_axes(struct parser *p, struct item_list *l, bool sequential) {
    do {
        struct kernel_axis *a = arena_alloc(p->arena, sizeof *a);
        a->at = p->token.at;
        a->sequential = sequential;
        a->name = parse_name(p, "the name of an axis", false);
        if (!a->name || !parse_expect(p, ":") || !(a->extent = parse_expr(p))) return false;
        item_new(p, l, KITEM_AXIS)->axis = a;
    } while (parse_accept(p, ","));
    return true;
}

static bool parse_combiner(struct parser *p, enum combiner *out) {
    *out = COMBINE_SET;
    if (parse_accept(p, "+="))
        *out = COMBINE_ADD;
    else if (parse_accept(p, "*="))
        *out = COMBINE_MUL;
    else if (parse_at(p, "max") || parse_at(p, "min")) {
        *out = parse_at(p, "max") ? COMBINE_MAX : COMBINE_MIN;
        parse_advance(p);
        return parse_expect(p, "=");
    } else if (!parse_accept(p, "=")) {
        return parse_unexpected(p, "=, +=, *=, max= or min=");
    }
    return true;
}

static bool parse_where(struct parser *p, struct kernel_stmt *s) {
    int cap = 0;
    if (!parse_accept(p, "where")) return true;
    do {
        GROW(p->arena, s->where, s->nwhere, cap);
        struct expr *e = parse_expr(p);
        if (!e) return false;
        s->where[s->nwhere++] = e;
        if (e->kind == EXPR_OP && e->op >= OP_LT && e->op <= OP_GE) continue;
        if (e->kind == EXPR_OP && e->op == OP_EQ) continue;
        return parse_fail(p, e->at, "a condition after 'where' is not a comparison by %s",
                          "<, <=, >, >= or ==");
    } while (parse_accept(p, "and"));
    return true;
}

/* Statements end with the line, before a keyword or at the brace. */
static bool parse_stmt_end(struct parser *p) {
    if (p->token.new_line || p->token.kind == TOKEN_END || parse_at(p, "}") || at_keyword(p))
        return !p->failed;
    return parse_unexpected(p, "the end of the statement (a new line)");
}

static bool parse_stmt(struct parser *p, struct item_list *l) {
    struct kernel_stmt *s = arena_alloc(p->arena, sizeof *s);
    s->at = p->token.at;
    s->dst = parse_expr_access(p);
    if (!s->dst) return false;
    if (s->dst->fill)
        return parse_fail(p, s->dst->fill->at, "a destination has no %s", "fill; remove 'else'");
    if (!parse_combiner(p, &s->combine) || !(s->value = parse_expr(p)) || !parse_where(p, s))
        return false;
    item_new(p, l, KITEM_STMT)->stmt = s;
    return parse_stmt_end(p);
}

static bool parse_name_list(struct parser *p, const char ***out, int *n) {
    int cap = 0;
    if (!parse_expect(p, "(")) return false;
    if (parse_accept(p, ")")) return true;
    do {
        GROW(p->arena, *out, *n, cap);
        const char *name = parse_name(p, "the name of a buffer", true);
        if (!name) return false;
        (*out)[(*n)++] = name;
    } while (parse_accept(p, ","));
    return parse_expect(p, ")");
}

static bool parse_call(struct parser *p, struct item_list *l) {
    struct kernel_call *c = arena_alloc(p->arena, sizeof *c);
    c->at = p->token.at;
    c->function = parse_name(p, "the name of a function", false);
    if (!c->function || !parse_name_list(p, &c->read, &c->nreads)) return false;
    if (!parse_expect(p, "->") || !parse_name_list(p, &c->write, &c->nwrites)) return false;
    item_new(p, l, KITEM_CALL)->call = c;
    return parse_stmt_end(p);
}

static bool parse_items(struct parser *p, struct item_list *l);

static bool parse_recur(struct parser *p, struct item_list *l) {
    struct kernel_recur *r = arena_alloc(p->arena, sizeof *r);
    struct item_list body = {0};
    int cap = 0;
    r->at = p->token.at;
    r->axis = parse_name(p, "the axis of the recurrence", false);
    if (!r->axis || !parse_expect(p, ":") || !(r->length = parse_expr(p))) return false;
    if (parse_accept(p, "from") && !(r->first = parse_expr(p))) return false;
    r->reverse = parse_accept(p, "reverse");
    while (parse_accept(p, "state")) {
        do {
            GROW(p->arena, r->state, r->nstates, cap);
            struct kernel_buffer *b = parse_buffer(p, ROLE_STATE);
            if (!b) return false;
            r->state[r->nstates++] = b;
        } while (parse_accept(p, ","));
    }
    if (!parse_expect(p, "{")) return false;
    if (++p->depth > PARSE_DEPTH)
        return parse_fail(p, r->at, "recurrences are nested more than %s deep", "200");
    if (!parse_items(p, &body) || !parse_expect(p, "}")) return false;
    p->depth--;
    r->item = body.at;
    r->nitems = body.n;
    item_new(p, l, KITEM_RECUR)->recur = r;
    return true;
}

static bool parse_item(struct parser *p, struct item_list *l) {
    for (int role = ROLE_IN; role < ROLE_STATE; role++)
        if (parse_accept(p, role_name[role])) return parse_buffers(p, l, (enum role)role);
    if (parse_accept(p, "axes")) return parse_axes(p, l, false);
    if (parse_accept(p, "seq")) return parse_axes(p, l, true);
    if (parse_accept(p, "recur")) return parse_recur(p, l);
    if (parse_accept(p, "call")) return parse_call(p, l);
    if (p->token.kind == TOKEN_NAME && !at_keyword(p)) return parse_stmt(p, l);
    return parse_unexpected(p, "a declaration, a statement or '}'");
}

static bool parse_items(struct parser *p, struct item_list *l) {
    while (!p->failed && !parse_at(p, "}") && p->token.kind != TOKEN_END)
        if (!parse_item(p, l)) return false;
    return !p->failed;
}

static bool parse_param(struct parser *p, struct kernel_param *q) {
    q->at = p->token.at;
    q->name = parse_name(p, "the name of a parameter", false);
    if (!q->name) return false;
    if (!parse_accept(p, "=")) return true;
    struct expr *first = parse_expr(p);
    if (!first) return false;
    if (!parse_accept(p, "..")) {
        q->value = first;
        return true;
    }
    q->lo = first;
    if (!(q->hi = parse_expr(p))) return false;
    return !parse_accept(p, "step") || (q->step = parse_expr(p));
}

static bool parse_params(struct parser *p, struct kernel *k) {
    int cap = 0;
    if (!parse_expect(p, "(")) return false;
    if (parse_accept(p, ")")) return true;
    do {
        GROW(p->arena, k->param, k->nparams, cap);
        k->param[k->nparams] = (struct kernel_param){0};
        if (!parse_param(p, &k->param[k->nparams++])) return false;
    } while (parse_accept(p, ","));
    return parse_expect(p, ")");
}

static struct kernel *parse_kernel(struct parser *p) {
    struct kernel *k = arena_alloc(p->arena, sizeof *k);
    struct item_list body = {0};
    if (!parse_expect(p, "kernel")) return NULL;
    k->at = p->token.at;
    k->source = p->source;
    k->name = parse_name(p, "the name of the kernel", false);
    if (!k->name || !parse_params(p, k) || !parse_expect(p, "{")) return NULL;
    if (!parse_items(p, &body) || !parse_expect(p, "}")) return NULL;
    k->item = body.at;
    k->nitems = body.n;
    return k;
}

int kernel_parse(struct arena *a, const struct source *s, struct kernel ***out, struct diags *d) {
    struct parser p = {.arena = a, .source = s, .diags = d};
    int n = 0, cap = 0;
    *out = NULL;
    parse_advance(&p);
    while (!p.failed && p.token.kind != TOKEN_END) {
        struct kernel *k = parse_kernel(&p);
        if (!k) return -1;
        GROW(a, *out, n, cap);
        (*out)[n++] = k;
    }
    if (n == 0) parse_unexpected(&p, "'kernel'");
    return p.failed ? -1 : n;
}

int kernel_param_index(const struct kernel *k, const char *name) {
    for (int i = 0; i < k->nparams; i++)
        if (strcmp(k->param[i].name, name) == 0) return i;
    return -1;
}
