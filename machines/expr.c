#include "machines/expr.h"
#include "ir/types.h"
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 200, MAX_ARGS = 32 };

struct reader {
    struct arena *arena;
    const char *text, *at;
    const char *file;
    int line, depth;
    struct diags *diags;
    bool failed;
};

static const struct level {
    const char *op[5];
} levels[] = {
    {{"||"}},
    {{"&&"}},
    {{"|"}},
    {{"^"}},
    {{"&"}},
    {{"==", "!="}},
    {{"<=", ">=", "<", ">"}},
    {{"<<", ">>"}},
    {{"+", "-"}},
    {{"*", "/", "%"}},
};
enum { LEVELS = sizeof levels / sizeof *levels };

static struct mexpr *read_ternary(struct reader *);

static struct mexpr *fail(struct reader *r, const char *expected) {
    if (!r->failed) {
        if (*r->at)
            diag_line(r->diags, r->file, r->line, 0,
                      "expected %s before '%.12s' in expression '%.200s'", expected, r->at,
                      r->text);
        else
            diag_line(r->diags, r->file, r->line, 0,
                      "expected %s at the end of expression '%.200s'", expected, r->text);
    }
    r->failed = true;
    return NULL;
}

static void skip_space(struct reader *r) {
    while (isspace((unsigned char)*r->at)) r->at++;
}

static struct mexpr *node(struct reader *r, enum mexpr_kind kind) {
    struct mexpr *e = arena_alloc(r->arena, sizeof *e);
    e->kind = kind;
    e->text = r->text;
    e->line = r->line;
    return e;
}

static void add_arg(struct reader *r, struct mexpr *e, struct mexpr *arg) {
    struct mexpr **grown = arena_array(r->arena, (size_t)e->nargs + 1, sizeof *grown);
    if (e->nargs) memcpy(grown, e->arg, (size_t)e->nargs * sizeof *grown);
    grown[e->nargs++] = arg;
    e->arg = grown;
}

static struct mexpr *operation(struct reader *r, const char *op, struct mexpr *a, struct mexpr *b,
                               struct mexpr *c) {
    struct mexpr *e = node(r, MEXPR_OP);
    strcpy(e->op, op);
    add_arg(r, e, a);
    if (b) add_arg(r, e, b);
    if (c) add_arg(r, e, c);
    return e;
}

static struct mexpr *read_number(struct reader *r) {
    struct mexpr *e = node(r, MEXPR_NUMBER);
    char *end;
    if (r->at[0] == '0' && (r->at[1] == 'x' || r->at[1] == 'X')) {
        errno = 0;
        e->number = (double)strtoull(r->at, &end, 16);
        if (errno || end == r->at + 1) return fail(r, "a hexadecimal number of at most 64 bits");
    } else {
        /* strtod would read `inf` and hexadecimal floats, which cannot begin with a decimal digit
         * here */
        e->number = strtod(r->at, &end);
    }
    if (end == r->at) return fail(r, "a number");
    r->at = end;
    const char *suffix = *r->at ? strchr("KMG", *r->at) : NULL;
    if (suffix) {
        e->number *= (double)(1LL << (10 * (suffix - "KMG" + 1)));
        r->at++;
    }
    if (isalnum((unsigned char)*r->at) || *r->at == '_') return fail(r, "K, M, G or an operator");
    if (!isfinite(e->number)) return fail(r, "a finite number");
    return e;
}

static size_t identifier(const char *at) {
    size_t n = 0;
    if (!isalpha((unsigned char)*at) && *at != '_') return 0;
    while (isalnum((unsigned char)at[n]) || at[n] == '_') n++;
    return n;
}

static struct mexpr *read_string(struct reader *r) {
    const char *end = strchr(r->at + 1, '\'');
    if (!end) return fail(r, "a closing quote");
    struct mexpr *e = node(r, MEXPR_STRING);
    e->name = arena_strndup(r->arena, r->at + 1, (size_t)(end - r->at - 1));
    r->at = end + 1;
    return e;
}

static struct mexpr *read_arguments(struct reader *r, struct mexpr *call, char close) {
    for (;;) {
        skip_space(r);
        struct mexpr *arg = *r->at == '\'' ? read_string(r) : read_ternary(r);
        if (!arg) return NULL;
        if (call->nargs == MAX_ARGS) return fail(r, "fewer arguments");
        add_arg(r, call, arg);
        skip_space(r);
        if (*r->at == close) break;
        if (*r->at != ',' || close == ']') return fail(r, close == ']' ? "']'" : "',' or ')'");
        r->at++;
    }
    r->at++;
    return call;
}

static struct mexpr *read_name(struct reader *r) {
    size_t n = identifier(r->at);
    struct mexpr *e = node(r, MEXPR_NAME);
    e->name = arena_strndup(r->arena, r->at, n);
    r->at += n;
    if (*r->at == '.' && identifier(r->at + 1)) {
        const char *start = ++r->at;
        while (identifier(r->at) || isdigit((unsigned char)*r->at)) {
            while (isalnum((unsigned char)*r->at) || *r->at == '_') r->at++;
            if (*r->at != '.' || (!isalnum((unsigned char)r->at[1]) && r->at[1] != '_')) break;
            r->at++;
        }
        e->kind = MEXPR_FIELD;
        e->field = arena_strndup(r->arena, start, (size_t)(r->at - start));
        if (*r->at != '[') return e;
        r->at++;
        e->kind = MEXPR_CALL;
        return read_arguments(r, e, ']');
    }
    skip_space(r);
    if (*r->at != '(') return e;
    r->at++;
    e->kind = MEXPR_CALL;
    return read_arguments(r, e, ')');
}

static struct mexpr *read_primary(struct reader *r) {
    skip_space(r);
    if (isdigit((unsigned char)*r->at) || *r->at == '.') return read_number(r);
    if (identifier(r->at)) return read_name(r);
    if (*r->at != '(') return fail(r, "a number, a name or '('");
    r->at++;
    struct mexpr *e = read_ternary(r);
    if (!e) return NULL;
    skip_space(r);
    if (*r->at != ')') return fail(r, "')'");
    r->at++;
    return e;
}

static struct mexpr *read_unary(struct reader *r) {
    skip_space(r);
    if (!*r->at || !strchr("-+!~", *r->at)) return read_primary(r);
    if (++r->depth > MAX_DEPTH) return fail(r, "less nesting");
    char op[2] = {*r->at++, 0};
    struct mexpr *a = read_unary(r);
    r->depth--;
    if (!a) return NULL;
    return op[0] == '+' ? a : operation(r, op, a, NULL, NULL);
}

static const char *operator_at(struct reader *r, int level) {
    skip_space(r);
    for (int i = 0; levels[level].op[i]; i++) {
        const char *op = levels[level].op[i];
        size_t n = strlen(op);
        if (strncmp(r->at, op, n)) continue;
        if (n == 1 && r->at[1] && ((strchr("&|<>", *op) && r->at[1] == *op) || r->at[1] == '='))
            continue;
        return op;
    }
    return NULL;
}

static struct mexpr *read_binary(struct reader *r, int level) {
    if (level == LEVELS) return read_unary(r);
    struct mexpr *a = read_binary(r, level + 1);
    const char *op;
    while (a && (op = operator_at(r, level))) {
        r->at += strlen(op);
        struct mexpr *b = read_binary(r, level + 1);
        if (!b) return NULL;
        a = operation(r, op, a, b, NULL);
    }
    return a;
}

static struct mexpr *read_ternary(struct reader *r) {
    if (++r->depth > MAX_DEPTH) return fail(r, "less nesting");
    struct mexpr *c = read_binary(r, 0);
    skip_space(r);
    if (c && *r->at == '?') {
        r->at++;
        struct mexpr *a = read_ternary(r), *b = NULL;
        skip_space(r);
        if (a && *r->at != ':') return fail(r, "':'");
        if (a) {
            r->at++;
            b = read_ternary(r);
        }
        c = b ? operation(r, "?:", c, a, b) : NULL;
    }
    r->depth--;
    return c;
}

struct mexpr *mexpr_parse(struct arena *a, const char *text, const char *file, int line,
                          struct diags *diags) {
    /* a sum of many terms nests to the left: its length bounds the depth of later walks */
    struct reader r = {
        .arena = a, .text = text, .at = text, .file = file, .line = line, .diags = diags};
    if (strlen(text) > 4096) {
        diag_line(diags, file, line, 0, "expression of %zu characters, expected at most 4096",
                  strlen(text));
        return NULL;
    }
    r.text = r.at = arena_strdup(a, text);
    struct mexpr *e = read_ternary(&r);
    skip_space(&r);
    if (e && *r.at) return fail(&r, "an operator");
    return e;
}

/* ---- values ---- */

static bool integral(double x) {
    return x == floor(x) && fabs(x) <= 0x1p63;
}

/* Of an integral one. */
static uint64_t bits_of(double x) {
    return x < 0 ? (uint64_t)(int64_t)x : (uint64_t)x;
}

static bool bitwise(const char *op, double a, double b, double *out) {
    if (!integral(a) || !integral(b)) return false;
    uint64_t x = bits_of(a), y = bits_of(b);
    bool negative = a < 0 || b < 0;
    uint64_t v;
    if ((op[0] == '<' || op[0] == '>') && (b < 0 || b > 63)) return false;
    switch (op[0]) {
    case '&':
        v = x & y, negative = a < 0 && b < 0;
        break;
    case '|':
        v = x | y;
        break;
    case '^':
        v = x ^ y, negative = (a < 0) != (b < 0);
        break;
    case '<':
        *out = a * (double)(1ULL << y);
        return true;
    default:
        *out = floor(a / (double)(1ULL << y));
        return true;
    }
    *out = negative ? (double)(int64_t)v : (double)v;
    return true;
}

static bool compute(const char *op, double a, double b, double *out) {
    if (!strcmp(op, "==")) return *out = a == b, true;
    if (!strcmp(op, "!=")) return *out = a != b, true;
    if (!strcmp(op, "<=")) return *out = a <= b, true;
    if (!strcmp(op, ">=")) return *out = a >= b, true;
    if (!strcmp(op, "<")) return *out = a < b, true;
    if (!strcmp(op, ">")) return *out = a > b, true;
    if (!strcmp(op, "+")) return *out = a + b, true;
    if (!strcmp(op, "-")) return *out = a - b, true;
    if (!strcmp(op, "*")) return *out = a * b, true;
    if (!strcmp(op, "/")) return *out = a / b, b != 0;
    if (!strcmp(op, "%")) return *out = fmod(a, b), b != 0;
    return bitwise(op, a, b, out);
}

static bool eval(const struct mexpr *, const struct mexpr_env *, double *, const struct mexpr **);

static bool lacking(const struct mexpr *e, const struct mexpr **missing) {
    if (missing && !*missing) *missing = e;
    return false;
}

static bool eval_op(const struct mexpr *e, const struct mexpr_env *env, double *out,
                    const struct mexpr **missing) {
    double a, b;
    if (!eval(e->arg[0], env, &a, missing)) return false;
    if (e->nargs == 1) {
        if (e->op[0] == '~' && !integral(a)) return lacking(e, missing);
        *out = e->op[0] == '-' ? -a : e->op[0] == '!' ? (double)(a == 0) : -a - 1;
        return true;
    }
    if (!strcmp(e->op, "?:")) return eval(e->arg[a != 0 ? 1 : 2], env, out, missing);
    if (!strcmp(e->op, "&&") || !strcmp(e->op, "||")) {
        bool stop = (a != 0) == (e->op[0] == '|');
        if (stop) return *out = e->op[0] == '|', true;
        if (!eval(e->arg[1], env, &b, missing)) return false;
        return *out = b != 0, true;
    }
    if (!eval(e->arg[1], env, &b, missing)) return false;
    return (compute(e->op, a, b, out) && isfinite(*out)) || lacking(e, missing);
}

static const struct {
    const char *name;
    int low, high;
} builtins[] = {{"min", 1, MAX_ARGS}, {"max", 1, MAX_ARGS},  {"ceil", 1, 1},  {"floor", 1, 1},
                {"log2", 1, 1},       {"pick", 2, MAX_ARGS}, {"sizeof", 1, 1}};
enum { BUILTINS = sizeof builtins / sizeof *builtins };

static bool is_builtin(const struct mexpr *e) {
    if (e->field) return false;
    for (int i = 0; i < BUILTINS; i++)
        if (!strcmp(e->name, builtins[i].name))
            return e->nargs >= builtins[i].low && e->nargs <= builtins[i].high;
    return false;
}

static bool eval_builtin(const struct mexpr *e, const struct mexpr_env *env, double *out,
                         const struct mexpr **missing) {
    double a, b;
    if (!strcmp(e->name, "sizeof")) {
        enum type t;
        if (e->arg[0]->kind != MEXPR_NAME) return lacking(e, missing);
        if (!type_parse(e->arg[0]->name, strlen(e->arg[0]->name), &t)) return lacking(e, missing);
        return *out = (double)type_size(t), true;
    }
    if (!eval(e->arg[0], env, &a, missing)) return false;
    if (!strcmp(e->name, "ceil")) return *out = ceil(a), true;
    if (!strcmp(e->name, "floor")) return *out = floor(a), true;
    if (!strcmp(e->name, "log2")) return (*out = log2(a), a > 0) || lacking(e, missing);
    if (!strcmp(e->name, "pick")) {
        if (a != floor(a) || a < 0 || a >= e->nargs - 1) return lacking(e, missing);
        return eval(e->arg[1 + (int)a], env, out, missing);
    }
    for (int i = 1; i < e->nargs; i++) {
        if (!eval(e->arg[i], env, &b, missing)) return false;
        a = e->name[1] == 'i' ? fmin(a, b) : fmax(a, b);
    }
    return *out = a, true;
}

static bool eval(const struct mexpr *e, const struct mexpr_env *env, double *out,
                 const struct mexpr **missing) {
    switch (e->kind) {
    case MEXPR_NUMBER:
        return *out = e->number, true;
    case MEXPR_OP:
        return eval_op(e, env, out, missing);
    case MEXPR_CALL:
        if (is_builtin(e)) return eval_builtin(e, env, out, missing);
        return (env && env->call && env->call(env->user, e, env, out)) || lacking(e, missing);
    case MEXPR_NAME:
    case MEXPR_FIELD:
        return (env && env->name && env->name(env->user, e->name, e->field, out)) ||
               lacking(e, missing);
    case MEXPR_STRING:
        break;
    }
    return lacking(e, missing);
}

bool mexpr_eval(const struct mexpr *e, const struct mexpr_env *env, double *out,
                const struct mexpr **missing) {
    if (missing) *missing = NULL;
    return eval(e, env, out, missing);
}

bool mexpr_constant(const struct mexpr *e, double *out) {
    return mexpr_eval(e, NULL, out, NULL);
}

bool mexpr_integer(const struct mexpr *e, const struct mexpr_env *env, int64_t *out,
                   const struct mexpr **missing) {
    double v;
    if (!mexpr_eval(e, env, &v, missing)) return false;
    if (v != floor(v) || fabs(v) > 0x1p53) return lacking(e, missing);
    *out = (int64_t)v;
    return true;
}

bool mexpr_names(const struct mexpr *e, bool (*each)(void *, const struct mexpr *), void *user) {
    bool builtin = e->kind == MEXPR_CALL && is_builtin(e);
    if (e->kind == MEXPR_NAME || e->kind == MEXPR_FIELD || (e->kind == MEXPR_CALL && !builtin))
        return each(user, e);
    if (builtin && !strcmp(e->name, "sizeof")) return each(user, e);
    for (int i = 0; i < e->nargs; i++)
        if (!mexpr_names(e->arg[i], each, user)) return false;
    return true;
}
