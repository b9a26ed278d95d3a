#include "ir/lexer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_LIMIT = 255, NUMBER_LIMIT = 64 };

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_word(char c) {
    return is_letter(c) || is_digit(c);
}

static size_t skip_blank(const struct source *s, size_t at, bool *new_line) {
    const char *t = s->text;
    for (; at < s->length; at++) {
        if (t[at] == '#')
            while (at < s->length && t[at] != '\n') at++;
        if (at >= s->length) break;
        if (t[at] == '\n')
            *new_line = true;
        else if (t[at] != ' ' && t[at] != '\t' && t[at] != '\r')
            break;
    }
    return at;
}

static char peek(const struct source *s, size_t at) {
    return at < s->length ? s->text[at] : 0;
}

static void lex_name(const struct source *s, struct token *k) {
    size_t n = k->at;
    while (is_word(peek(s, n)) || (peek(s, n) == '.' && is_word(peek(s, n + 1)))) n++;
    if (peek(s, n) == '\'') n++;
    k->kind = TOKEN_NAME;
    k->length = n - k->at;
    if (k->length <= NAME_LIMIT) return;
    k->kind = TOKEN_ERROR;
    k->error = "a name of more than 255 characters";
}

static bool integer_value(const char *digits, size_t n, int64_t *out) {
    uint64_t v = 0;
    for (size_t k = 0; k < n; k++)
        if (__builtin_mul_overflow(v, 10u, &v) ||
            __builtin_add_overflow(v, (uint64_t)(digits[k] - '0'), &v))
            return false;
    *out = (int64_t)v;
    return true;
}

static size_t skip_digits(const struct source *s, size_t n) {
    while (is_digit(peek(s, n))) n++;
    return n;
}

static void lex_number(const struct source *s, struct token *k) {
    size_t n = skip_digits(s, k->at);
    k->kind = TOKEN_INT;
    if (peek(s, n) == '.' && is_digit(peek(s, n + 1))) {
        k->kind = TOKEN_FLOAT;
        n = skip_digits(s, n + 1);
    }
    if (peek(s, n) == 'e' || peek(s, n) == 'E') {
        size_t sign = n + 1 + (peek(s, n + 1) == '+' || peek(s, n + 1) == '-');
        if (is_digit(peek(s, sign))) {
            k->kind = TOKEN_FLOAT;
            n = skip_digits(s, sign);
        }
    }
    k->length = n - k->at;
    char digits[NUMBER_LIMIT + 1] = {0};
    if (k->length <= NUMBER_LIMIT) memcpy(digits, s->text + k->at, k->length);
    k->f = strtod(digits, NULL);
    if (is_letter(peek(s, n)))
        k->error = "followed by a letter";
    else if (k->length > NUMBER_LIMIT)
        k->error = "a number of more than 64 characters";
    else if (isinf(k->f))
        k->error = "too large for f64; write inf";
    else if (k->kind == TOKEN_INT && !integer_value(digits, k->length, &k->i))
        k->error = "an integer of more than 64 bits";
    if (k->error) k->kind = TOKEN_ERROR;
}

static const char *const marks[] = {"..", "->", "+=", "*=", "==", "!=", "<=", ">=", "(", ")",
                                    "[",  "]",  "{",  "}",  ",",  ":",  "=",  "+",  "-", "*",
                                    "/",  "%",  "<",  ">",  "&",  "^",  "|",  "~"};

static void lex_mark(const struct source *s, struct token *k) {
    for (size_t m = 0; m < sizeof marks / sizeof *marks; m++) {
        size_t n = strlen(marks[m]);
        if (s->length - k->at < n || memcmp(s->text + k->at, marks[m], n) != 0) continue;
        k->kind = TOKEN_MARK;
        k->length = n;
        return;
    }
    k->kind = TOKEN_ERROR;
    k->length = 1;
    k->error = "no character of the language";
}

struct token token_next(const struct source *s, size_t at) {
    struct token k = {.kind = TOKEN_END};
    k.at = skip_blank(s, at, &k.new_line);
    if (k.at >= s->length) return k;
    char c = s->text[k.at];
    if (is_letter(c))
        lex_name(s, &k);
    else if (is_digit(c))
        lex_number(s, &k);
    else
        lex_mark(s, &k);
    return k;
}

bool token_is(const struct source *s, const struct token *k, const char *spelling) {
    size_t n = strlen(spelling);
    return (k->kind == TOKEN_MARK || k->kind == TOKEN_NAME) && k->length == n &&
           memcmp(s->text + k->at, spelling, n) == 0;
}

bool is_keyword(const char *word, size_t length) {
    static const char *const keyword[] = {"kernel", "in",   "out",   "inout", "const", "temp",
                                          "axes",   "seq",  "recur", "state", "call",  "where",
                                          "and",    "else", "inf",   "nan"};
    for (size_t k = 0; k < sizeof keyword / sizeof *keyword; k++)
        if (strlen(keyword[k]) == length && memcmp(keyword[k], word, length) == 0) return true;
    return false;
}
