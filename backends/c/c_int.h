/* Inside the c backend: a schedule becomes the text of one C file. What a dialect of C needs besides
 * (backends/cuda) goes through struct c_dialect. */
#ifndef ISAMAP_BACKENDS_C_C_INT_H
#define ISAMAP_BACKENDS_C_C_INT_H

#include "backends/backends_int.h"
#include "backends/interface.h"

struct c_emitted {
    const char *key; /* parameters and body */
    const char *name;
};

/* An expression of an emit text that is only known at run time: a parameter more. */
struct c_extra {
    const struct mexpr *e;
};

/* What an emit's function is given besides: an object of a sync or of a state. */
struct c_handle {
    const char *type, *name, *value; /* text */
};
enum { MAX_HANDLES = 8 };

struct cgen;

struct c_dialect {
    enum language language; /* of the emits and configures that are taken */
    const char *function;   /* what the definition of an emit's function begins with */
    void (*parallel)(struct cgen *, const struct loop_node *); /* a parallel loop, with its body */
    /* Opens a block for those who execute an issue of the unit, where not all do: true. NULL: all. */
    bool (*narrow)(struct cgen *, int unit);
    /* Is the node for those whose code is written? NULL: all are. */
    bool (*mine)(struct cgen *, const struct node *);
    void (*turned)(struct cgen *, const struct loop_node *); /* behind each turn of a loop; NULL */
    void (*signal)(struct cgen *, const struct signal *, bool pop); /* NULL: its text alone */
    /* The objects that an issue uses; how many, -1 after reporting. NULL: there are none. */
    int (*handles)(struct cgen *, const struct issue_node *, struct c_handle *);
    const char *rolled; /* a line before each loop that the schedule leaves rolled; NULL */
    const char *plain;  /* the same where its body is a few calls that the compiler may move; NULL */
    const char *sums;   /* a line before each loop of a fallback that sums in a variable; NULL */
};
extern const struct c_dialect c_plain;

struct cgen {
    struct arena arena;
    const struct c_dialect *dialect;
    void *user; /* of the dialect */
    /* Among whom the points of a fallback are dealt: a number from 0 and how many there are, as text; what they say where they meet.
     * NULL: the one who comes executes them all. */
    const char *mine, *among, *meet;
    const struct schedule *schedule;
    const struct machine *machine;
    struct diags *diags;
    bool failed;
    struct room room;
    const struct interface *interface;
    struct text emits, code; /* functions of emit bodies; the program */
    int indent;
    struct known *var; /* [schedule.nvars] value of an unrolled loop's variable */
    bool *rotates;     /* [schedule.nplaces] the place has a slot counter */
    bool *registers;   /* [machine.nmemories] is an array of the function */
    int unit;          /* of the parallel loop around; -1 */
    bool in_entry;     /* in hardware loops, around which the signals of their issue stand */
    int64_t issues;
    struct c_emitted *emitted;
    int nemitted, cap_emitted;
};

/* Both begin functions with ISAMAP_FUNCTION. */
extern const char *const c_support_integers; /* helpers of expressions */
extern const char *const c_support;          /* operations on all types */

void c_error(struct cgen *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void c_line(struct cgen *, const char *fmt, ...)
    __attribute__((format(printf, 2, 3))); /* one indented line */
bool c_known(struct cgen *, const struct sx *, int64_t *);
const char *c_sx(struct cgen *, const struct sx *);
const char *c_integer(struct cgen *, int64_t);
void c_sizes(struct cgen *); /* variables for the sizes that are known only when the program runs, within their ranges */
void c_fallback(struct cgen *, const struct fallback_node *);
void c_issue(struct cgen *, const struct issue_node *);
void c_plain_emit(struct cgen *, const struct emit *, int n);
/* Everything but the interface; the arena is the caller's to free. */
void c_begin(struct cgen *, const struct schedule *, const struct c_dialect *, struct diags *);
void c_end(struct cgen *);
void c_walk(struct cgen *, const struct node *, int n);
void c_for(struct cgen *, const struct loop_node *, const char *lo, const char *hi);
const char *c_array(struct cgen *, int buffer); /* the array of an argument, or of a weight */
int64_t c_register_bytes(struct cgen *, int memory);
/* A file's content as the symbol NAME_<what>; the assembler reads it. */
void c_embed(struct text *, const char *name, const char *what, const char *file);
bool c_keep(struct arena *, const struct schedule *, const char *text, const char *suffix,
            const struct backend_options *, struct diags *);
struct executable *c_open(const struct schedule *, const char *path, struct arena *,
                          struct diags *);
/* An emit's parameters and body as text; extras: parameters of the body's own. */
const char *c_function_text(struct cgen *, const struct site *, const struct emit *,
                            const struct signature *, int extras, const struct c_handle *,
                            int nhandles, const char *body);
/* The value of an expression of the issue's instruction, as text; NULL where it cannot be said. */
const char *c_value(struct cgen *, const struct issue_node *, const struct mexpr *);
const char *c_immediate(struct cgen *, enum type, union value);
bool c_compile(const struct schedule *, const char *text, const char *folder, const char *library,
               const struct backend_options *, struct arena *, struct diags *);
/* The compiler reads the text, and makes nothing of it. */
bool c_parse(const struct schedule *, const char *text, const char *folder, struct arena *,
             struct diags *);
void c_headers(struct text *, const struct schedule *);
void c_section(struct cgen *, const struct section *, const char *name, bool workspace);

/* The whole file, and the interface of what it is. */
struct c_source {
    const char *text; /* NULL: an error was reported */
    const struct interface *interface;
    const char *weights; /* embedded: the file that the text includes, to be written before it is compiled; NULL */
};

#endif
