/* The words of the text form. */
#ifndef ISAMAP_IR_LEXER_H
#define ISAMAP_IR_LEXER_H

#include "ir/diag.h"
#include <stdint.h>

enum token_kind { TOKEN_END, TOKEN_NAME, TOKEN_INT, TOKEN_FLOAT, TOKEN_MARK, TOKEN_ERROR };

/* TOKEN_MARK: one of ( ) [ ] { } , : = += *= .. -> + - * / % == != < <= > >= & ^ | ~
 * TOKEN_NAME: letters, digits, _ and single dots inside; a prime may follow. */
struct token {
    enum token_kind kind;
    size_t at, length; /* in the source */
    bool new_line;     /* a line ends before it */
    int64_t i;         /* INT: the low 64 bits */
    double f;          /* INT and FLOAT */
    const char *error; /* ERROR: what it is, after "'…' is" */
};

struct token token_next(const struct source *, size_t at); /* at: where the last one ended */
bool token_is(const struct source *, const struct token *,
              const char *spelling); /* a mark or a name */

/* A word of the language, which cannot be a name. */
bool is_keyword(const char *word, size_t length);

#endif
