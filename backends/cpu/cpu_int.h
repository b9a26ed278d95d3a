/* Inside the cpu backend: a schedule becomes one LLVM module. Registers are SSA values, loops are
 * blocks with phis, and no pass runs over the result but the inlining of emit bodies. */
#ifndef ISAMAP_BACKENDS_CPU_CPU_INT_H
#define ISAMAP_BACKENDS_CPU_CPU_INT_H

#include "backends/backends_int.h"
#include "backends/cpu/llvm.h"
#include "backends/interface.h"

enum { MAX_LEVELS = 200, CPU_VARIANTS = 2 * OP_COUNT };

/* An integer (i64, or i1 of a test) and the loop level of its definition: it may be used there and
 * further inside. Constants have level 0. */
struct lv {
    LLVMValueRef v;
    int level;
    bool bounded; /* never less than lo, nor more than hi */
    int64_t lo, hi;
};

/* sx_op, and tests that give an i1 */
enum { LV_ULT = 100, LV_SGE, LV_AND1, LV_GEP };

struct level {
    LLVMValueRef anchor; /* invariants of this level are built before it */
    unsigned uid;
    bool after; /* stands for the code after an inner loop, at the same depth */
};

struct memo {
    int op;
    LLVMValueRef a, b, v;
    int level;
    unsigned uid; /* of that level; 0: empty */
};

/* A function under construction. */
struct function {
    struct cpu *cpu;
    LLVMValueRef fn, args, workspace;
    LLVMValueRef prepared, shared,
        mine;      /* blocks: prepared constants, thread 0's part of the workspace, this thread's */
    int unit;      /* of the parallel loop whose body this is; -1 */
    bool in_entry; /* in hardware loops, around which the signals of their issue stand */
    LLVMBuilderRef builder;
    struct level level[MAX_LEVELS];
    int nlevels;
    const struct loop_node *around[MAX_LEVELS]; /* loops that the builder stands in */
    int naround;
    struct lv *var;  /* [schedule.nvars] */
    int64_t *grid;   /* [schedule.nvars] that the variable is a multiple of; 0: not known */
    struct lv *slot; /* [schedule.nplaces] current slot; 0 of places that have one */
    LLVMValueRef *
        *word; /* [machine.nmemories][words]: what a register holds now; NULL: nothing yet */
    LLVMValueRef *base; /* [schedule.nplaces] pointer to the place; NULL: not yet made */
    struct memo *memo;
    unsigned nmemo, memo_cap;
};

struct emitted {
    const char *key; /* its text without the name */
    LLVMValueRef fn;
    LLVMTypeRef type;
};

struct emit_line {
    int first; /* line of the text buffer where the body starts */
    struct place_in_file at;
};

/* A compilation. */
struct cpu {
    struct arena arena;
    const struct schedule *schedule;
    const struct machine *machine;
    const struct backend_options *options;
    struct diags *diags;
    bool failed;
    bool draft; /* expressions without a value may stand in emits: they are only compiled */
    LLVMContextRef context;
    LLVMModuleRef module;
    LLVMTargetMachineRef target;
    LLVMTypeRef i1, i8, i16, i32, i64, f32, f64, ptr, nothing;
    struct room room;
    const struct interface *interface;
    LLVMValueRef *weights; /* [nbuffers] embedded; NULL */
    struct text bodies;    /* emit functions as text */
    int lines;             /* in it */
    struct emit_line *line;
    int nlines, cap_lines;
    struct emitted *emitted;
    int nemitted, cap_emitted;
    bool helpers;    /* conversions of 16-bit floats are used */
    bool parallel;   /* OpenMP's runtime is called */
    bool pairs;      /* some emit has several results, floats of 16 bits among them */
    bool vectorises; /* some loops are LLVM's to vectorise */
    const char *variant[CPU_VARIANTS]; /* the text that says which vectors compute a function: NULL:
                                          not asked yet; "": none do */
    struct perf_map *names;            /* of the code that was loaded; NULL: they are not kept */
    LLVMValueRef ticks; /* where the times of the run's parts are stored; NULL: they are not kept */
    struct run_part *part;
    int nparts, cap_parts;
    unsigned uid;
    int64_t issues;         /* built so far */
    int *nwords;            /* [machine.nmemories] words of the value memories */
    int *turning, nturning; /* places with several slots */
    int *home;              /* [nbuffers] its place; -1 */
    int *listed, turn;      /* [nplaces] the last list of homes with this one; lists made so far */
    const char *linker_message;
};

enum { MAX_ISSUES = 1000000 };

/* ---- functions (walk.c) ---- */
struct function *function_open(struct cpu *, struct function *outer, const char *name, LLVMTypeRef,
                               int unit);
void function_close(struct function *); /* removes phis nobody needs, frees */
void walk(struct function *, const struct node *, int n);
/* The loop is over steps of a sum whose other loops inside are unrolled too; nests: whatever they are. */
bool is_summed(const struct program *, const struct loop_node *, int axis, bool nests);
/* Adds `times` the cycles of nodes that are nothing but instructions, also in unrolled loops; many: in all loops,
 * which have so many turns where that is not known. 0: in none but unrolled ones. */
bool turn_cycles(const struct function *, const struct node *, int n, double times, double many, double *cycles);
/* The places that the nodes rotate start in the slot before the first. */
void start_slots(struct function *, const struct node *, int n);
LLVMValueRef load_word(struct function *, int word, LLVMTypeRef,
                       const char *name); /* of arguments */
LLVMValueRef offset_pointer(struct function *, LLVMValueRef base, int64_t bytes);
LLVMValueRef runtime(struct cpu *, const char *name, LLVMTypeRef); /* a function of a library */

/* ---- the entries (section.c) ---- */
void cpu_section(struct cpu *, const struct section *, const char *name, bool workspace);
void cpu_error(struct cpu *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* ---- functions of a part of a section (split.c) ---- */
struct home_list { /* in the order of first use */
    int *place, n, cap, turn;
};
struct home_list homes_of(struct cpu *, const struct node *, int n);
/* [nnodes + 1] May a function begin at this node? No value of a register passes from before it. */
bool *section_cuts(struct cpu *, const struct section *);

/* ---- issues (issue.c) ---- */
void build_issue(struct function *, const struct issue_node *);
void build_ahead(struct function *, const struct issue_node *); /* what its move has for that */
/* Before a sum, the first of the nodes: asks for the lines that its results are stored to. How many nodes need not be
 * asked about again; 0: none is one. */
int ask_stored(struct function *, const struct node *, int n);
/* Where one of the two loops runs, once: registers that it writes first have no value before (either.c). */
void forget_before(struct function *, const struct loop_node *, const struct loop_node *);
/* At the beginning of a turn of the innermost loop around: asks for lines that a later turn reads (ask_next.c). */
void ask_next(struct function *);
LLVMTypeRef word_carried(struct function *, int memory, enum type); /* as loops carry it */
LLVMValueRef word_read(struct function *, int memory, int64_t w, LLVMTypeRef);

/* ---- integers, addresses, loops (value.c) ---- */
struct lv lv_const(struct function *, int64_t);
bool lv_constant(struct lv, int64_t *);
struct lv lv_op(struct function *, int op, struct lv a, struct lv b);
struct lv lv_sx(struct function *, const struct sx *);
/* base + offset bytes; what does not vary in a loop is computed outside it, constants come last */
LLVMValueRef pointer_sx(struct function *, LLVMValueRef base, struct lv slot_bytes,
                        const struct sx *offset, int64_t more);

struct term {
    int64_t coef;
    struct lv v;
};
LLVMValueRef pointer_terms(struct function *, LLVMValueRef base, struct term *, int nterms,
                           int64_t constant);

struct frame {
    LLVMBasicBlockRef header, exit, guard; /* guard NULL: runs at least once */
    LLVMValueRef var, next_lo, *phi;
    struct lv hi;
    int64_t step;
    int nphis;
    LLVMValueRef *init;
    bool once, never; /* no blocks were made */
    bool branch;      /* its body runs once or not at all */
    bool vectorise; /* LLVM takes several turns at once where it sees that it may; set before it is
                       closed */
    int depth;      /* levels outside */
};
/* Opens `for (var = lo; var < hi; var += step)` with nphis carried values; the builder stands in
 * the body. */
struct lv frame_open(struct function *, struct frame *, struct lv lo, struct lv hi, int64_t step,
                     int nphis, LLVMValueRef *init);
/* Opens `if (test)`, test an i1, in place of a loop. */
void frame_branch(struct function *, struct frame *, LLVMValueRef test);
/* value[]: in: at the end of the body; out: after the loop. */
void frame_close(struct function *, struct frame *, LLVMValueRef *value);
/* After a loop that changed integers: they may be used in expressions from here on. Returns their
 * level. */
int level_after(struct function *);
void phis_prune(LLVMValueRef fn);

/* ---- emit bodies (emit.c) ---- */
struct emitted *emit_function(struct cpu *, const struct site *, const struct signature *,
                              const struct emit *);
struct emitted *emit_plain(struct cpu *, const struct emit *); /* no operands */
void build_configure(struct function *, const struct configure_node *);
LLVMTypeRef element_type(struct cpu *, enum type); /* in a register */
LLVMTypeRef param_type(struct cpu *, const struct emit_param *);
bool emits_link(struct cpu *);

/* ---- functions in vectors (variant.c) ---- */
/* LLVM may compute the call of the library's function `scalar`, which is op of one t, for several
 * turns of a loop at once, by an instruction that the machine has for it. */
void offer_vectors(struct cpu *, LLVMValueRef call, enum opcode op, enum type t,
                   const char *scalar);
bool variants_keep(struct cpu *); /* until variants_release; false: there are none */
void variants_release(struct cpu *);

/* ---- 16-bit floats between blocks (halves.c) ---- */
void halves_carry(struct cpu *); /* of all functions; no pass comes behind */

/* ---- statements (fallback.c, ops.c) ---- */
void build_fallback(struct function *, const struct fallback_node *);
bool build_copy(struct function *, const struct fallback_node *); /* false: no plain copy */
bool stmt_order_free(const struct stmt *);                        /* in any order the same */
LLVMValueRef place_base(struct function *, int place);
LLVMValueRef element_load(struct function *, enum type, LLVMValueRef pointer);
void element_store(struct function *, enum type, LLVMValueRef pointer, LLVMValueRef);
LLVMValueRef flight_constant(struct cpu *, enum type, union value);
/* As op_eval. `from` as there. */
LLVMValueRef intrinsic(struct function *, const char *name, LLVMTypeRef *over, unsigned nover,
                       LLVMValueRef *arg, unsigned n); /* over: types that the name is for */
LLVMValueRef op_build(struct function *, enum opcode, enum type to, enum type from,
                      LLVMValueRef *arg);
/* Integers in the order of floats (f32, f64), for maxima and minima of many: a NaN's loses to all
 * others. */
LLVMValueRef float_key(struct function *, bool max, LLVMValueRef);
LLVMValueRef key_float(struct function *, LLVMValueRef key);
LLVMValueRef key_extreme(struct function *, bool max, LLVMValueRef a, LLVMValueRef b);
extern const char *const cpu_helpers;

/* ---- the module (target.c) ---- */
bool cpu_target_open(struct cpu *); /* context, types, target machine */
void cpu_close(struct cpu *);
/* Object or assembly; NULL after reporting. */
LLVMMemoryBufferRef cpu_generate(struct cpu *, LLVMCodeGenFileType);
FILE *cpu_generate_file(struct cpu *,
                        LLVMCodeGenFileType); /* the same, to be read from its start */
LLVMOrcLLJITRef cpu_jit(struct cpu *,
                        LLVMMemoryBufferRef object); /* code in this process; takes the object, NULL
                                                        too; NULL after reporting */
void *cpu_symbol(struct cpu *, LLVMOrcLLJITRef, const char *name);

/* ---- what code calls (symbols.c) ---- */
/* The library's file as the loader finds it: the name that development packages install, or a
 * numbered one; NULL: it is not installed. */
const char *library_file(struct cpu *, const char *name);
const char **
code_libraries(struct cpu *); /* to be linked beside the C library's; NULL at the end */
/* All that the object calls is in them; false after reporting. */
bool symbols_found(struct cpu *, LLVMMemoryBufferRef object);

/* ---- names for perf (perf_map.c) ---- */
/* The object's functions in the order of the code, before it is loaded. */
struct perf_map *perf_map_read(struct cpu *, LLVMMemoryBufferRef object, const char *entry);
/* Adds them to the file in which perf looks for names of code of this process; `entry` is there. */
void perf_map_write(const struct perf_map *, const void *entry);

#endif
