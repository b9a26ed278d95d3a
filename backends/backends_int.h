/* What the backends share: emit texts, the room that generated code needs, C headers, running the
 * system's compiler. */
#ifndef ISAMAP_BACKENDS_BACKENDS_INT_H
#define ISAMAP_BACKENDS_BACKENDS_INT_H

#include "backends/backend.h"
#include "ir/file.h"

/* ---- emit texts (FORMAT §6) ---- */
struct known {
    bool is;
    int64_t value;
};

/* One issue as far as it is known when code is generated. */
struct site {
    const struct machine *machine;
    const struct instr *instr;
    struct known *size;    /* for each of instr.ranged */
    struct known *stride;  /* for each of instr.stride_name */
    struct known *flag;    /* for each operand with accumulate, in operand order */
    struct known *address; /* for each operand: bytes from the start of its memory */
    int *memory;           /* for each operand: where it is; MEMORY_IMM */
    int *layout;           /* for each operand: which of operand.layout[] */
    union value *imm;      /* for each operand: the value of an immediate */
    bool handles; /* code has objects of syncs and of states that the host makes */
    bool draft; /* only to see whether the text compiles: instructions that need more than a call
                   are let through */
};

/* An empty site for the instruction: nothing known, each operand in its first memory and layout. */
struct site *site_new(struct arena *, const struct machine *, const struct instr *);
struct site *site_copy(struct arena *, const struct site *);
/* With each ranged size at the end of its range; false after reporting when a range has no end. */
bool site_widest(struct site *, struct diags *);
bool site_extents(const struct site *, int operand,
                  int64_t *extent); /* of the operand's buffer; false: unknown */
bool site_strides(const struct site *, int operand, int64_t *stride, bool *dense);
int64_t site_span(const struct site *, int operand); /* elements; -1: unknown or too many */
bool site_eval(const struct site *, const struct mexpr *, double *, const struct mexpr **missing);
/* The value of a parameter of `machine`, as mexpr_env wants it; false: it has none of this name. */
bool machine_param(void *machine, const char *name, const char *field, double *out);
struct mexpr_env site_names(const struct site *); /* valid as long as the site */
enum pass site_pass(const struct site *, int operand);
const struct kernel_buffer *site_buffer(const struct site *, int operand);

enum param_kind { PARAM_POINTER, PARAM_VALUE, PARAM_IMM, PARAM_SIZE, PARAM_STRIDE, PARAM_FLAG };

struct emit_param {
    enum param_kind kind;
    int index; /* operand, or index into site.size, .stride, .flag */
    const char *name;
    enum type type; /* of an operand's elements */
    bool read, written;
    int words, lanes; /* PARAM_VALUE: words of the widest operand, elements in a word */
};

struct signature {
    struct emit_param *param;
    int nparams;
};

int signature_results(const struct signature *); /* words that it writes */
/* Operands in order, then sizes, strides, flags. False after reporting what is not supported. */
bool emit_signature(struct arena *, const struct site *, struct signature *, struct diags *);

/* Text for an expression that has no value at compile time; NULL after reporting. */
typedef const char *(*emit_unknown)(void *user, const struct mexpr *whole,
                                    const struct mexpr *missing);

/* The text of `emit` with each ${e} replaced. `site` may be NULL: only machine parameters. NULL
 * after reporting with the emit's line. */
char *emit_expand(struct arena *, const struct machine *, const struct site *, const struct emit *,
                  emit_unknown, void *user, struct diags *);
/* A configure with its values: the fields of its settings, one after the other; words without a setting are 0. */
struct settings {
    const struct machine *machine;
    const struct configure_node *node;
    const int64_t *value;
};
struct mexpr_env settings_env(const struct settings *);
/* The text of a configure's emit. `value`: the fields of its settings, one after the other; words that have no setting are 0. */
char *emit_expand_configure(struct arena *, const struct machine *, const struct configure_node *,
                            const int64_t *value, const struct emit *, struct diags *);
/* A function of LLVM's text form, `define … @name(…) alwaysinline {…}`. *first_line gets the lines
 * before the body. */
char *emit_llvm_function(struct arena *, const char *name, const struct signature *,
                         const char *body);
/* Texts that stand once in a module; LLVM: repeated declarations are left out. */
char *emit_prelude(struct arena *, const struct machine *, enum language);
const char *
    c_type_name(enum type); /* "float", "int8_t", …; f16 and bf16 are uint16_t, bool is uint8_t */
/* `T A[n]`'s element type: T, or uint32_t where T is narrower than a word of four bytes. */
const char *c_value_type(const struct machine *, int memory, enum type);

/* ---- room for the places ---- */
enum { ROOM_HEAD = 64, WEIGHTS_HEAD = 64 };
struct room {
    int64_t *offset;   /* [nplaces] bytes into prepared (KEEP_PREPARED), workspace (KEEP_WORKSPACE),
                          the thread's part (KEEP_LOCAL) */
    int64_t prepared;  /* bytes; the first ROOM_HEAD are the entries' own (interface.h) */
    int64_t homes;     /* bytes at the start of the workspace */
    int64_t local;     /* bytes of each thread's part, which follow */
    int instances;     /* of that part */
    int64_t workspace; /* bytes of all */
    int64_t scratch; /* where the workspace of `prepare` starts in the prepared block; -1: it needs
                        none */
    int64_t prepared_block; /* bytes of prepared with that */
    const struct live_range *prepare_live, *run_live; /* [nplaces] */
};

bool room_plan(struct arena *, const struct schedule *, struct room *, struct diags *);
/* Padded place whose first mention among the section's nodes is node n: true. */
bool zeroed_before(const struct schedule *, const struct room *, const struct section *, int place,
                   int n);
/* The loop over the steps of a recurrence whose length is open. */
bool loop_counts(const struct schedule *, const struct loop_node *);
bool section_rotates(const struct node *, int nnodes, int place);
bool memory_in_unit(const struct machine *, int memory,
                    int unit); /* private to each instance of `unit` */

/* ---- what a schedule uses ---- */
void schedule_instrs(const struct schedule *, bool *used); /* [machine.ninstrs] */
bool schedule_parallel(const struct schedule *);
/* May a fallback's innermost loop, over this axis (-1: none), keep the destination in a register? It
 * is a reduction, nothing reads the destination, and storing does not round. */
bool fallback_hoists(const struct program *, const struct stmt *, int axis);
/* The loop of a fallback's nest (axes order[0 … n-1], outermost first) that constraint w shortens: all that it says is decided there, and the
 * loop's axis has the factor 1 or -1; -1: none, it is tested at each point. */
int fallback_shortens(const struct constraint *w, const int *order, int n);
uint64_t schedule_features(
    const struct schedule *); /* bit f: required by all of the machine's code or an instruction used */
/* Has the code of the schedule what this text of a begin or an end needs? */
bool schedule_takes(const struct schedule *, const struct emit *);
/* Every instruction used has an emit in `language`, every fallback a language for processors (of LANGUAGE_CUDA: that one). *what
 * names the first that has not. */
bool schedule_speaks(const struct schedule *, enum language, const char **what);
/* The buffers that are arguments, in order; returns their number. */
int schedule_arguments(const struct schedule *, int *buffer);
/* Libraries of the emits used, each once; NULL-terminated. */
const char **schedule_libraries(struct arena *, const struct schedule *, enum language);

/* ---- names and headers ---- */
char *c_identifier(struct arena *, const char *name); /* letters, digits, _; not a keyword */
char *size_name(struct arena *, const struct schedule *, int size); /* field of struct NAME_args */
const char *path_suffix(const char *path); /* ".so"; "" */

/* ---- the system's compiler ---- */
/* Runs argv[0] (searched in PATH) and waits. False after reporting its first error lines. */
bool command_run(const char *const *argv, const char *what, struct diags *);
bool compiler_run(const char *const *arguments, const char *what, struct diags *); /* cc, or $CC */
/* Links or compiles `input` (.o or .c) to the shared library `path`: cc [flags] -shared, libraries
 * as -lNAME. */
bool library_build(const char *input, const char *path, const char *const *flags,
                   const char *const *library, struct diags *);
char *folder_temporary(struct arena *, struct diags *); /* a fresh folder; NULL after reporting */
void folder_remove(const char *);                       /* with the files in it */

/* ---- trying one instruction (conform.c) ---- */

/* Calls an emit with the sizes, strides and flags of its site: pointer[o] is the memory of operand
 * o (of a register operand: its words). */
typedef void (*probe_function)(void *const *pointer);

/* What is done with a text: nothing but reading it; code from it; code in this process. */
enum probe_depth { PROBE_PARSE, PROBE_COMPILE, PROBE_LOAD };

/* Text for what has no value in a draft. */
const char *draft_unknown(void *user, const struct mexpr *whole, const struct mexpr *missing);

/* The same in C: adds the function and its wrapper probe_<n> to the text. */
bool c_probe_add(struct text *, const struct site *, const struct emit *, int n, struct diags *);
void c_probe_begin(struct arena *, struct text *, const struct schedule *);
/* Why the compiler should not even read a text that nobody vouches for: the preprocessor would open
 * files or say whether they are there. NULL: it may. Words are found in comments too. */
const char *c_guard(struct arena *, const char *text);
/* As deep as asked; *handle is for dlclose. */
bool c_probe_finish(struct arena *, const struct text *, const struct schedule *, int n,
                    enum probe_depth, probe_function *out, void **handle, struct diags *);

#if ISAMAP_WITH_LLVM
struct probe;
struct probe *probe_open(const struct schedule *, enum probe_depth, struct diags *);
bool probe_add(struct probe *, const struct site *, const struct emit *); /* one function more */
bool probe_add_plain(struct probe *, const struct emit *);
/* As deep as asked: PROBE_LOAD gives the functions in the order of probe_add. */
bool probe_finish(struct probe *, probe_function *);
void probe_close(struct probe *);
#endif

/* ---- executables ---- */
struct executable {
    int (*prepare)(const void *args);
    int (*run)(const void *args, void *workspace);
    size_t prepared_bytes, workspace_bytes;
    void *prepared, *workspace;
    int *buffer, nbuffers; /* arguments */
    const char **name;
    void **args; /* struct NAME_args: pointers, prepared, threads, sizes */
    int nsizes;
    bool is_prepared;
    struct run_part *part;
    int nparts;
    const uint64_t *ticks;
    const char *(*message)(int status); /* of the code itself; or NULL */
    double (*device_seconds)(void);     /* or NULL */
    void (*device_rounds)(int rounds, size_t span);
    void *handle;
    void (*release)(void *handle);
    struct arena arena;
};

/* Room and arguments for loaded entries. NULL after reporting; then release(handle) was called. */
struct executable *executable_make(const struct schedule *, void *handle, void (*release)(void *),
                                   void *const entry[4]);
/* The required features of what the schedule uses, and the permissions they need. False after
 * reporting. */
bool features_ready(const struct schedule *, struct diags *);

extern const struct backend backend_c, backend_cuda;
#if ISAMAP_WITH_LLVM
extern const struct backend backend_cpu;
#endif

#endif
