/* Inside the parser: what its two files, parser.c and parse_expr.c, share. */
#ifndef ISAMAP_IR_PARSER_H
#define ISAMAP_IR_PARSER_H

#include "ir/kernel.h"
#include "ir/lexer.h"

enum { PARSE_DEPTH = 200, PARSE_NODES = 2048 };

/* After the first failure the token is TOKEN_END, which ends every loop. */
struct parser {
    struct arena *arena;
    const struct source *source;
    struct diags *diags;
    struct token token;
    size_t end;       /* of the token before */
    int depth, nodes; /* nesting; nodes of the expression being read */
    bool failed;
};

bool parse_fail(struct parser *, size_t at, const char *fmt, const char *what)
    __attribute__((format(printf, 3, 0)));                    /* fmt has one %s; false */
bool parse_unexpected(struct parser *, const char *expected); /* false */
void parse_advance(struct parser *);
bool parse_at(const struct parser *, const char *spelling);
bool parse_accept(struct parser *, const char *spelling);
bool parse_expect(struct parser *, const char *spelling);
const char *parse_name(struct parser *, const char *what, bool prime);
struct expr *parse_expr(struct parser *);        /* NULL after reporting */
struct expr *parse_expr_access(struct parser *); /* name[…] */

#endif
