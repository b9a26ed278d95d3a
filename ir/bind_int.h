/* Inside program_bind: names in scope, and the lowering of expressions. */
#ifndef ISAMAP_IR_BIND_INT_H
#define ISAMAP_IR_BIND_INT_H

#include "ir/program.h"

struct symbol {
    const char *name; /* as written; h' for a state's next value */
    bool is_axis;
    int index; /* into program.axis or program.buffer */
};

struct binder {
    struct program *p; /* naxes is final from the start: accesses have their width */
    const struct kernel *k;
    const struct source *source;
    struct diags *diags;
    struct bindings names; /* the kernel's parameters, then the machine's */
    struct symbol *symbol; /* visible ones, innermost last */
    int nsymbols, symbol_cap;
    int axes_declared, buffers_cap, places_cap, stmts_cap;
    uint64_t recurring; /* axes of the enclosing recurrences */
    int64_t **grows;    /* [naxes] an extent that steps decide, as a row; NULL: it is fixed */
    bool sizes; /* ranges without a value are sizes */
    bool failed;
};

static inline bool bind_failed(struct binder *b) {
    b->failed = true;
    return false;
}
#define BIND_FAIL(b, at, ...) (diag_at((b)->diags, (b)->source, at, __VA_ARGS__), bind_failed(b))

const struct symbol *binder_find(const struct binder *, const char *name);

/* row[0 … naxes] of an affine expression; reports and gives false when it is not */
bool lower_affine(struct binder *, const struct expr *, int64_t *row);
/* Is the extent made of steps of the recurrences around? Then `grows` of the axis declared next is set, and n the most that the
 * extent comes to, 1 at least. *wrong: it is, but not affine in them (reported). */
bool bind_growing(struct binder *, const struct expr *extent, int64_t *n, bool *wrong);
/* Each axis of a growing extent that the statement has ends where the steps say: a constraint more. */
bool lower_growing(struct binder *, struct stmt *);
/* appends a lowered statement to the program; false after reporting */
bool lower_stmt(struct binder *, const struct kernel_stmt *);

#endif
