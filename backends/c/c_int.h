/* Inside the c backend: a schedule becomes the text of one C file. */
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

struct cgen {
    struct arena arena;
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

extern const char *const c_support; /* operations on all types, and integer helpers */

void c_error(struct cgen *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void c_line(struct cgen *, const char *fmt, ...)
    __attribute__((format(printf, 2, 3))); /* one indented line */
bool c_known(struct cgen *, const struct sx *, int64_t *);
const char *c_sx(struct cgen *, const struct sx *);
const char *c_integer(struct cgen *, int64_t);
void c_fallback(struct cgen *, const struct fallback_node *);
void c_issue(struct cgen *, const struct issue_node *);
void c_plain_emit(struct cgen *, const struct emit *, int n);
/* An emit's parameters and body as text; extras: parameters of the body's own. */
const char *c_function_text(struct cgen *, const struct site *, const struct emit *,
                            const struct signature *, int extras, const char *body);
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
struct c_source c_text(struct arena *, const struct schedule *, const struct backend_options *,
                       const char *folder, struct diags *);

#endif
