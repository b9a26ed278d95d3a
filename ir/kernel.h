/* Kernels as written: the syntax tree of the text form (docs/ir.md), with parameters still free.
 * kernel_print(kernel_parse(text)) parses to the same tree. Programs, ready to analyse, are made by program_bind. */
#ifndef ISAMAP_IR_KERNEL_H
#define ISAMAP_IR_KERNEL_H

#include "ir/diag.h"
#include "ir/ops.h"

enum role { ROLE_IN, ROLE_OUT, ROLE_INOUT, ROLE_CONST, ROLE_TEMP, ROLE_STATE, ROLE_COUNT };
extern const char *const role_name[ROLE_COUNT];

enum expr_kind { EXPR_INT, EXPR_FLOAT, EXPR_NAME, EXPR_READ, EXPR_OP };

/* One node. EXPR_NAME is a parameter or an axis; EXPR_READ a buffer with index expressions and an optional fill. */
struct expr {
    enum expr_kind kind;
    size_t at;                  /* offset in the source */
    int64_t i;                  /* EXPR_INT */
    double f;                   /* EXPR_FLOAT; inf and nan too */
    const char *name;           /* EXPR_NAME, EXPR_READ */
    bool next;                  /* EXPR_READ of a state's next value: h'[i] */
    struct expr **index;        /* EXPR_READ */
    int nindex;
    struct expr *fill;          /* EXPR_READ: `else`, or NULL */
    enum opcode op;             /* EXPR_OP */
    enum type type;             /* EXPR_OP with OP_CAST */
    struct expr *arg[3];
};

struct kernel_param {
    const char *name;
    size_t at;
    struct expr *value;             /* or NULL */
    struct expr *lo, *hi, *step;    /* a range, or NULL; step NULL is 1 */
};

struct kernel_buffer {
    const char *name;
    size_t at;
    enum role role;
    enum type type;
    struct expr **extent;
    int ndims;
    const char *from, *to;          /* ROLE_STATE: initial and final buffers (to may be NULL) */
};

struct kernel_axis {
    const char *name;
    size_t at;
    struct expr *extent;
    bool sequential;
};

struct kernel_stmt {
    size_t at;
    struct expr *dst;               /* EXPR_READ without fill */
    enum combiner combine;
    struct expr *value;
    struct expr **where;            /* comparisons, joined by `and` */
    int nwhere;
};

enum kernel_item_kind { KITEM_BUFFER, KITEM_AXIS, KITEM_STMT, KITEM_RECUR, KITEM_CALL };

struct kernel_item {
    enum kernel_item_kind kind;
    struct kernel_buffer *buffer;
    struct kernel_axis *axis;
    struct kernel_stmt *stmt;
    struct kernel_recur *recur;
    struct kernel_call *call;
};

struct kernel_recur {               /* recur t: T [from T / 8 * 8] [reverse] state h: f32[H] from h0 [to hT] … { items } */
    const char *axis;
    size_t at;
    struct expr *length;
    struct expr *first;             /* or NULL: 0 */
    bool reverse;
    struct kernel_buffer **state;
    int nstates;
    struct kernel_item *item;
    int nitems;
};

struct kernel_call {                /* call f(A, B) -> (C): an opaque C function on whole buffers */
    const char *function;
    size_t at;
    const char **read, **write;
    int nreads, nwrites;
};

struct kernel {
    const char *name;
    size_t at;
    const struct source *source;
    struct kernel_param *param;
    int nparams;
    struct kernel_item *item;       /* in the order of the text */
    int nitems;
};

/* Parses all kernels of a text. Everything lives in the arena. Returns the number of kernels, or -1 after reporting. */
int kernel_parse(struct arena *, const struct source *, struct kernel ***out, struct diags *);
void kernel_print(const struct kernel *, struct text *);
bool kernel_equal(const struct kernel *, const struct kernel *);
int kernel_param_index(const struct kernel *, const char *name); /* -1: none */

/* Evaluates an integer expression over names; false when a name has no value (no report), or on overflow or division by zero. */
struct binding {
    const char *name;
    int64_t value;
};
struct bindings {
    const struct binding *at;
    int n;
    const struct bindings *outer;   /* machine parameters; a kernel's own hide them */
};
bool expr_integer(const struct expr *, const struct bindings *, int64_t *out);

#endif
