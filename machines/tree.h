/* A machine file as a tree of elements with their places: what libxml2 reads, checked against the
 * schema, then `include`, `for` and `remove` worked out. machine_build makes a machine of it.
 * Internal to this folder. */
#ifndef ISAMAP_MACHINES_TREE_H
#define ISAMAP_MACHINES_TREE_H

#include "machines/machine.h"

struct attr {
    const char *name, *value;
    int line;
};

struct node {
    const char *tag;
    struct attr *attr;
    int nattrs;
    struct node **child;
    int nchildren, cap;
    const char *text; /* of semantics, emit, prelude, doc. Semantics: the file's own bytes with the
                         markup blanked, so that places in it are places in the file */
    int text_line, text_col; /* of text[0] */
    const char *file;
    int line;
    int depth; /* includes around it */
};

/* One load: the file stack, the parsed schema and the limits. */
struct loader {
    struct arena *arena;
    struct diags *diags;
    void *schema; /* xmlRelaxNG */
    const char *stack[20];
    int nstack, nincludes, rows;
    size_t bytes; /* of the tree so far */
    struct node *root;
    struct share {
        const char *id, *file;
        int line;
    } * share;
    int nshares, share_cap;
    const struct parameters *parameters; /* NULL: none */
};

extern const char machine_schema[];

void loader_init(struct loader *, struct arena *, struct diags *);
void loader_free(struct loader *);

/* The expanded tree of a file, or of a text that stands for the file; NULL after reporting. */
struct node *tree_load(struct loader *, const char *file);
struct node *tree_parse(struct loader *, const char *file, const char *xml, size_t length);
/* Only the root element's attributes: for choosing among many files. Reports nothing; NULL when it
 * cannot be read. */
struct node *tree_peek(struct loader *, const char *file);
/* One file, neither expanded nor checked against what it includes. */
struct node *tree_read(struct loader *, const char *file, const char *xml, size_t length,
                       int depth);
bool tree_validate(struct loader *, void *doc, const char *file,
                   const struct node *root);                           /* schema.c */
bool tree_expand(struct loader *, struct node *raw, struct node *out); /* expand.c */

/* Beside each instruction in a tree that is described in blocks one with its rows in one piece
 * (flat.c). */
void tree_flatten(struct loader *, struct node *root, struct node *, const struct bindings *params);

struct node *node_new(struct loader *, const char *tag, const char *file, int line, int depth);
void node_add(struct loader *, struct node *parent, struct node *child);
void node_set(struct loader *, struct node *, const char *name, const char *value);
const char *node_attr(const struct node *, const char *name); /* or NULL */
int node_attr_line(const struct node *, const char *name);    /* its line, else the element's */
const char *node_key(const struct node *); /* its id, or a param's name; NULL: none */

/* A machine from a tree whose strings outlive it. Does not check what machine_check does. */
struct machine *machine_build(struct arena *tree_arena, const struct node *root,
                              const struct bindings *set, const struct loader *, struct diags *);
/* Builds, checks, and (ranges) does both again at each end of each parameter's range: not of a
 * joined machine, whose sides were loaded alone. Owns the arena afterwards, in any case. */
struct machine *machine_finish(struct loader *, struct node *root, const struct bindings *set,
                               bool ranges);

/* ---- parameters.c ---- */
struct parameter {
    const char *name;
    int64_t value;
    int line, col;
};
struct parameters {
    const char *file;
    struct parameter *at;
    int n, cap;
};
/* The file of parameters that goes with a machine file; NULL: there is none. Reports what is wrong
 * in it. */
struct parameters *parameters_load(struct arena *, const char *machine_file, struct diags *);
const struct parameter *parameter_of(const struct parameters *, const char *name);

/* Copies diagnostics, each text with the prefix before it. */
void tree_forward(struct diags *to, const struct diags *from, const char *prefix);
/* The folders of the search path, one after the other; *state starts at 0; NULL: no more. */
const char *machine_next_folder(struct arena *, int *state);
/* Reports that there is no machine of that name, and those that there are. */
void machine_missing(const char *name, struct diags *);

/* What an expression may name where it stands (names.c). */
struct scope {
    const struct machine *machine;
    const struct instr *instr; /* or NULL */
    bool states;               /* state fields too: configure */
    bool program;              /* instructions, base(program): begin and end */
    bool sync;                 /* channel, phase, pending, bytes */
};
bool scope_check(const struct scope *, const struct mexpr *, const char *file, int line,
                 const char *what, struct diags *);
/* Calls back for each ${…} of a text with the expression's text, its offset; false: one is not
 * closed (offset in *bad). */
bool emit_holes(const char *text,
                bool (*each)(void *, const char *expr, size_t length, size_t offset), void *,
                size_t *bad);
bool instr_is_flag(const struct instr *, const char *name); /* an accumulate flag or a let name */
const struct kernel_buffer *instr_buffer(const struct instr *, int operand);

#endif
