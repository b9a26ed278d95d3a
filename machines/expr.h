/* Expressions in machine files (FORMAT §3): C operators, suffixes K M G, min max ceil floor log2 pick sizeof, and functions that the user of the
 * expression defines (addr, word, push, pop, step, …). Division is exact. */
#ifndef ISAMAP_MACHINES_EXPR_H
#define ISAMAP_MACHINES_EXPR_H

#include "ir/diag.h"
#include <stdint.h>

/* CALL with a field is an indexed field, `shape.rows[2]`: name, field, and the index as the only argument. STRING stands only in
 * list('…', n); name is the text between the quotes. */
enum mexpr_kind { MEXPR_NUMBER, MEXPR_NAME, MEXPR_FIELD /* load.stride */, MEXPR_CALL, MEXPR_OP, MEXPR_STRING };

struct mexpr {
    enum mexpr_kind kind;
    double number;
    const char *name;                  /* NAME, CALL; FIELD: before the dot */
    const char *field;                 /* FIELD: after the dot */
    char op[3];                        /* OP: "+", "<<", "?:", "!" … ; one argument: prefix */
    struct mexpr **arg;
    int nargs;
    const char *text;                  /* as written, for messages */
    int line;
};

/* What names and functions mean. Either may be NULL. Return false: unknown (mexpr_eval then reports nothing itself). For a call, `arg` gives
 * the argument expressions: addr(A) receives the name A unevaluated. */
struct mexpr_env {
    bool (*name)(void *user, const char *name, const char *field, double *out);
    bool (*call)(void *user, const struct mexpr *call, const struct mexpr_env *, double *out);
    void *user;
};

struct mexpr *mexpr_parse(struct arena *, const char *text, const char *file, int line, struct diags *); /* NULL after reporting */
/* False when something in it has no value; *missing (may be NULL) is then the subexpression. */
bool mexpr_eval(const struct mexpr *, const struct mexpr_env *, double *out, const struct mexpr **missing);
bool mexpr_constant(const struct mexpr *, double *out);          /* no names, no calls */
/* Visits NAME, FIELD and CALL, a CALL before its arguments; the arguments of functions with a meaning of their own (addr, word, push, …) are
 * not visited, those of min, max, ceil, floor, log2, pick are. False as soon as `each` says so. */
bool mexpr_names(const struct mexpr *, bool (*each)(void *, const struct mexpr *leaf), void *);
/* The value as an integer; false when it is none, or beyond 2^53. */
bool mexpr_integer(const struct mexpr *, const struct mexpr_env *, int64_t *out, const struct mexpr **missing);

#endif
