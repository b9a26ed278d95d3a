#include "scheduler/schedule/lex.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WORD_LIMIT = 1024 };

int read_line(struct reader *r, size_t at) {
    if (!r->line || at < r->line_at) {
        r->line = r->source->line0 ? r->source->line0 : 1;
        r->line_at = 0;
    }
    for (; r->line_at < at && r->line_at < r->source->length; r->line_at++)
        r->line += r->source->text[r->line_at] == '\n';
    return r->line;
}

bool read_fail(struct reader *r, size_t at, const char *fmt, ...) {
    if (!r->failed) {
        va_list args;
        va_start(args, fmt);
        char text[2 * WORD_LIMIT];
        vsnprintf(text, sizeof text, fmt, args);
        va_end(args);
        diag_at(r->diags, r->source, at, "%s", text);
    }
    r->failed = true;
    r->word = (struct word_read){.kind = WORD_END, .at = r->source->length, .text = ""};
    return false;
}

static size_t skip_blank(const struct source *s, size_t at) {
    while (at < s->length) {
        if (s->text[at] == '#')
            while (at < s->length && s->text[at] != '\n') at++;
        else if (s->text[at] && strchr(" \t\r\n", s->text[at]))
            at++;
        else
            break;
    }
    return at;
}

static bool is_name_char(char c) {
    return isalnum((unsigned char)c) || (c && strchr("_.~'", c));
}

static void lex_quoted(struct reader *r, struct word_read *w) {
    const struct source *s = r->source;
    struct text text = {0};
    size_t at = w->at + 1;
    for (; at < s->length && s->text[at] != '"' && s->text[at] != '\n'; at++) {
        if (s->text[at] == '\\' && at + 1 < s->length && s->text[at + 1] != '\n') at++;
        text_append(&text, &s->text[at], 1);
    }
    w->kind = at < s->length && s->text[at] == '"' ? WORD_NAME : WORD_BAD;
    w->end = at + 1;
    w->quoted = true;
    w->text = w->kind == WORD_BAD ? "a quote without its end on the line"
                                  : arena_strndup(r->arena, text.at ? text.at : "", text.n);
    text_free(&text);
}

static size_t number_end(const struct source *s, size_t at) {
    while (at < s->length && (isalnum((unsigned char)s->text[at]) || s->text[at] == '.' ||
                              ((s->text[at] == '-' || s->text[at] == '+') &&
                               (s->text[at - 1] == 'e' || s->text[at - 1] == 'E'))))
        at++;
    return at;
}

static void lex_mark(const struct source *s, struct word_read *w) {
    static const char *const marks[] = {"<=", "==", "!=", "(", ")", "[", "]", "{", "}",
                                        ",",  ":",  "=",  "+", "-", "*", "/", "%", "<"};
    for (size_t m = 0; m < sizeof marks / sizeof *marks; m++) {
        size_t n = strlen(marks[m]);
        if (s->length - w->at < n || memcmp(s->text + w->at, marks[m], n) != 0) continue;
        w->kind = WORD_MARK;
        w->text = marks[m];
        w->end = w->at + n;
        return;
    }
    w->kind = WORD_BAD;
    w->text = "a character that schedules do not use";
}

void read_advance(struct reader *r) {
    if (r->failed) return;
    const struct source *s = r->source;
    struct word_read w = {.at = skip_blank(s, r->word.end), .text = ""};
    w.end = w.at;
    if (w.at >= s->length) {
        w.kind = WORD_END;
    } else if (s->text[w.at] == '"') {
        lex_quoted(r, &w);
    } else if (isdigit((unsigned char)s->text[w.at])) {
        w.end = number_end(s, w.at);
        w.kind = WORD_NUMBER;
    } else if (isalpha((unsigned char)s->text[w.at]) || s->text[w.at] == '_') {
        while (w.end < s->length && is_name_char(s->text[w.end])) w.end++;
        w.kind = WORD_NAME;
    } else {
        lex_mark(s, &w);
    }
    if (w.kind != WORD_BAD && w.end - w.at > WORD_LIMIT) {
        w.kind = WORD_BAD;
        w.text = "a word of more than 1024 characters";
    }
    if (w.kind == WORD_BAD) {
        read_fail(r, w.at, "%s", w.text);
        return;
    }
    if (!*w.text && !w.quoted) w.text = arena_strndup(r->arena, s->text + w.at, w.end - w.at);
    r->word = w;
}

bool read_at(const struct reader *r, const char *spelling) {
    return (r->word.kind == WORD_NAME || r->word.kind == WORD_MARK) && !r->word.quoted &&
           strcmp(r->word.text, spelling) == 0;
}

bool read_accept(struct reader *r, const char *spelling) {
    if (!read_at(r, spelling)) return false;
    read_advance(r);
    return !r->failed;
}

bool read_expect(struct reader *r, const char *spelling) {
    if (r->failed) return false;
    if (!read_at(r, spelling)) {
        if (r->word.kind == WORD_END)
            return read_fail(r, r->word.at, "the schedule ends where '%s' is expected", spelling);
        return read_fail(r, r->word.at, "unexpected '%s', expected '%s'", r->word.text, spelling);
    }
    read_advance(r);
    return !r->failed;
}

static bool expected(struct reader *r, const char *what) {
    if (r->word.kind == WORD_END)
        return read_fail(r, r->word.at, "the schedule ends where %s is expected", what);
    return read_fail(r, r->word.at, "unexpected '%s', expected %s", r->word.text, what);
}

const char *read_name(struct reader *r, const char *what) {
    if (r->failed) return NULL;
    if (r->word.kind != WORD_NAME) {
        expected(r, what);
        return NULL;
    }
    const char *name = r->word.text;
    read_advance(r);
    return r->failed ? NULL : name;
}

bool read_integer(struct reader *r, const char *what, int64_t low, int64_t high, int64_t *out) {
    if (r->failed) return false;
    size_t at = r->word.at;
    bool minus = read_accept(r, "-");
    if (r->failed || r->word.kind != WORD_NUMBER) return expected(r, what);
    uint64_t v = 0;
    for (const char *c = r->word.text; *c; c++) {
        if (!isdigit((unsigned char)*c) || __builtin_mul_overflow(v, 10u, &v) ||
            __builtin_add_overflow(v, (uint64_t)(*c - '0'), &v))
            return read_fail(r, at, "'%s' is no 64-bit integer", r->word.text);
    }
    if (v > (uint64_t)INT64_MAX + minus)
        return read_fail(r, at, "'%s' is no 64-bit integer", r->word.text);
    *out = (int64_t)(minus ? 0 - v : v);
    if (*out < low || *out > high)
        return read_fail(r, at, "%" PRId64 " is out of range: %s is %" PRId64 " to %" PRId64, *out,
                         what, low, high);
    read_advance(r);
    return !r->failed;
}

bool read_double(struct reader *r, const char *what, double *out) {
    if (r->failed) return false;
    bool minus = read_accept(r, "-");
    if (read_accept(r, "inf")) {
        *out = minus ? -(double)INFINITY : (double)INFINITY;
        return true;
    }
    if (read_accept(r, "nan")) {
        *out = (double)NAN;
        return true;
    }
    if (r->failed || r->word.kind != WORD_NUMBER) return expected(r, what);
    char *end;
    *out = strtod(r->word.text, &end);
    if (*end || !isfinite(*out)) return read_fail(r, r->word.at, "'%s' is no number", r->word.text);
    if (minus) *out = -*out;
    read_advance(r);
    return !r->failed;
}

/* ---- expressions ---- */
static const struct sx *read_level(struct reader *r, int level);

static const struct sx *read_call(struct reader *r, enum sx_op op) {
    if (!read_expect(r, "(")) return NULL;
    const struct sx *a = read_sx(r);
    if (!a || !read_expect(r, ",")) return NULL;
    const struct sx *b = read_sx(r);
    return b && read_expect(r, ")") ? sx_make(r->arena, op, a, b) : NULL;
}

static const struct sx *read_var(struct reader *r, size_t at, const char *name) {
    const struct schedule *s = r->schedule;
    int v = schedule_var_named(s, name);
    if (v >= 0) {
        if (r->bound[v]) return sx_var(r->arena, v);
        read_fail(r, at, "'%s' is used outside its loop", name);
        return NULL;
    }
    read_fail(r, at, "'%s' is no variable of a loop around", name);
    return NULL;
}

static const struct sx *read_primary(struct reader *r) {
    size_t at = r->word.at;
    if (++r->terms > SCHEDULE_TERMS) {
        read_fail(r, at, "an expression of more than %d terms", SCHEDULE_TERMS);
        return NULL;
    }
    if (r->word.kind == WORD_NUMBER || read_at(r, "-")) {
        int64_t value;
        if (!read_integer(r, "an integer", INT64_MIN, INT64_MAX, &value)) return NULL;
        return sx_const(r->arena, value);
    }
    if (read_accept(r, "(")) {
        const struct sx *x = read_sx(r);
        return x && read_expect(r, ")") ? x : NULL;
    }
    const char *name = read_name(r, "a number, a variable or '('");
    if (!name) return NULL;
    if (read_at(r, "(") && strcmp(name, "min") == 0) return read_call(r, SX_MIN);
    if (read_at(r, "(") && strcmp(name, "max") == 0) return read_call(r, SX_MAX);
    return read_var(r, at, name);
}

static const struct {
    const char *text;
    enum sx_op op;
    int level;
} infix[] = {{"or", SX_OR, 1}, {"and", SX_AND, 2}, {"<", SX_LT, 3},  {"<=", SX_LE, 3},
             {"==", SX_EQ, 3}, {"!=", SX_NE, 3},   {"+", SX_ADD, 4}, {"-", SX_SUB, 4},
             {"*", SX_MUL, 5}, {"/", SX_DIV, 5},   {"%", SX_MOD, 5}};

static int infix_at(const struct reader *r, int level) {
    for (int k = 0; k < (int)(sizeof infix / sizeof *infix); k++)
        if (infix[k].level == level && read_at(r, infix[k].text)) return k;
    return -1;
}

static const struct sx *read_level(struct reader *r, int level) {
    if (level > 5) return read_primary(r);
    const struct sx *x = read_level(r, level + 1);
    for (int k; x && !r->failed && (k = infix_at(r, level)) >= 0;) {
        size_t at = r->word.at;
        read_advance(r);
        const struct sx *y = read_level(r, level + 1);
        if (!y) return NULL;
        int64_t zero;
        if (level == 5 && infix[k].op != SX_MUL && sx_constant(y, &zero) && zero == 0) {
            read_fail(r, at, "division by zero");
            return NULL;
        }
        x = sx_make(r->arena, infix[k].op, x, y);
        if (level == 3) break;
    }
    return r->failed ? NULL : x;
}

const struct sx *read_sx(struct reader *r) {
    if (r->depth == 0) r->terms = 0;
    if (r->depth >= SCHEDULE_DEPTH) {
        read_fail(r, r->word.at, "an expression nests deeper than %d", SCHEDULE_DEPTH);
        return NULL;
    }
    r->depth++;
    const struct sx *x = read_level(r, 1);
    r->depth--;
    return x;
}
