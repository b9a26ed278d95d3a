/* The mapper: finds instructions (needles) inside programs (haystacks), ISA Mapper §2, and chooses a cover. Formulation, validity rules V0-V6 and
 * failure kinds: docs/mapping.md. Every mapping that is offered is certified. */
#ifndef ISAMAP_MAPPER_MAPPER_H
#define ISAMAP_MAPPER_MAPPER_H

#include "ir/chain.h"
#include "ir/choice.h"
#include "ir/program.h"
#include "ir/steps.h"
#include "machines/machine.h"

enum { MAX_GROUP = 8 };

struct group {                         /* haystack axes fused on one needle axis, slowest first (mixed radix) */
    int axis[MAX_GROUP];
    int n;                             /* 0: the needle axis has size 1 of work */
};

enum operand_role { OPERAND_READ, OPERAND_DST, OPERAND_IMM };

struct mapped_operand {                /* what plays needle operand o */
    enum operand_role role;
    int read;                          /* OPERAND_READ: of the haystack statement. OPERAND_DST: the read that an inout operand
                                          overwrites in place (t2 = t1 + x on C = C + X, t1 dead afterwards, or a copy of it); -1: none */
    union value imm;                   /* OPERAND_IMM: the literal, in the operand's type */
    bool direct;                       /* V2: columns collinear with mixed-radix strides in the buffer as it is; false: needs packing */
};

struct mapping {
    int instr;                         /* machine.instr */
    int stmt;                          /* haystack statement executed */
    int init;                          /* statement executed with it: the zero fill of its destination (V6, accumulate); -1 */
    int nalso;                         /* the instruction has several statements: it executes also[0], also[1], … and then stmt, which
                                          are its own in their order; axes and reads are those of stmts_join */
    int also[MAX_JOINED];
    const int8_t (*renamed)[MAX_AXES]; /* [nalso + 1] axes of these statements as they are counted here */
    struct group *group;               /* one for each axis of the needle's kernel */
    int ngroups;
    struct mapped_operand *operand;    /* one for each instr.operand */
    int noperands;
    bool certified;                    /* proved, and so is what rewrites made of the program */
    double cost;                       /* cycles on the needle's queue for the whole statement, padding included */
    double copies;                     /* estimated cycles of packing copies that the operands need; layouts are the scheduler's */
    double hidden;                     /* those of the host, of callers' arrays, that pass while a device works */
    double waste;                      /* executed points / statement's points, >= 1 */
    int across;                        /* tensors whose rows, as they are written down, lie across an axis that it takes */
};

/* ---- failures: what map --why prints and what chooses the next rewrite ---- */
#define FAILURE_TABLE(X)                                                                           \
    X(OPERATION, operation) X(MISSING_STATEMENT, missing-statement) X(MISSING_AXIS, missing-axis)  \
    X(EXTRA_COLUMN, extra-column) X(NOT_COLLINEAR, not-collinear) X(NOT_INJECTIVE, not-injective)  \
    X(TYPE, type) X(LIVE_OUT, live-out) X(ORDER, order) X(EXTENT, extent) X(COMBINER, combiner)    \
    X(CERTIFICATE, certificate)

enum failure_kind {
#define X(id, name) FAILURE_##id,
    FAILURE_TABLE(X)
#undef X
        FAILURE_COUNT
};
extern const char *const failure_name[FAILURE_COUNT];

/* Instruction and statement side by side, with what does not agree marked. */
struct failure_sight {
    const char *needle, *stmt;         /* as text */
    size_t needle_at, needle_n, stmt_at, stmt_n;
    const char *needle_axes, *stmt_axes;       /* signatures: which operands, or buffers, each axis moves */
};

struct failure {
    enum failure_kind kind;
    int instr, stmt;                   /* needle, haystack statement */
    int needle_op, stmt_op;            /* ops compared; -1 */
    int needle_axis, stmt_axis;        /* -1 */
    int operand;                       /* needle operand; -1 */
    int depth;                         /* how far the search came: the deepest are worth reading */
    int alike;                         /* operations that agree from the root on, whatever their types: of equal depth the nearest */
    const char *expected, *got;        /* texts */
    const char *reason;                /* a sentence that names both */
    const struct failure_sight *sight; /* with map_options.explain */
};

/* What each validity rule leaves (docs/mapping.md, "Totals"); mappings as they are, and modulo the needle's automorphisms. Counted with
 * `all`, of the statements that have a binding. */
#define STAGE_TABLE(X)                                                                             \
    X(ASSIGNMENTS, assignments, "all assignments") X(ORDER, order, "V4 order")                     \
    X(SIGNATURE, signatures, "V1 signatures") X(FULL, full, "no axis missing")                     \
    X(INJECTIVE, injective, "V3 injective") X(EXTENT, extents, "V5 extents")                       \
    X(COUPLED, coupled, "shared dimensions") X(DIRECT, direct, "of them V2 direct")                \
    X(INIT, filled, "of them V6 with fill")

enum map_stage {
#define X(id, key, name) STAGE_##id,
    STAGE_TABLE(X)
#undef X
        STAGE_COUNT
};
extern const char *const stage_key[STAGE_COUNT], *const stage_name[STAGE_COUNT];

struct map_totals {
    int64_t bindings;                  /* V0: needle and statement with one order of operands */
    double count[STAGE_COUNT];         /* the first three are products, not enumerated */
    int64_t distinct[STAGE_COUNT];     /* from STAGE_FULL on */
    int64_t certified;                 /* with certify_all */
};

struct findings {
    struct arena arena;
    struct mapping *mapping;  int nmappings;   /* best cost first */
    int distinct;                              /* modulo the needle's automorphisms */
    struct failure *failure;  int nfailures;   /* deepest first, at most a few for each needle and statement */
    struct map_totals totals;
    bool bounded;                              /* the step bound was hit: not all were enumerated */
    double seconds_find, seconds_certify;
};

struct map_options {
    bool all;                          /* enumerate all mappings; otherwise the best few for each needle and statement */
    bool certify_all;
    bool explain;                      /* failures have a sight */
    int64_t steps;                     /* bound for each statement; 0: default */
};

/* All ways in which single instructions of the machine execute statements of the program. Never NULL. */
struct findings *mapper_find(const struct program *, const struct machine *, const struct map_options *);
void findings_free(struct findings *);
void mapping_print(const struct program *, const struct machine *, const struct mapping *, struct text *); /* one line */

/* A view in which one statement stands for all that a mapping of several executes, in the arena. False: it has one, or they cannot be one. */
bool mapping_program(struct arena *, const struct program *, const struct mapping *, struct program *view);

/* V6: the neutral fill that an instruction may execute with the accumulation, the first time that it comes to an element; -1. */
int init_of(const struct program *, int stmt);

/* isl: layout ∘ needle access ∘ φ = haystack access for every operand; φ single-valued, total, injective; dependences kept. */
bool mapping_certify(const struct program *, const struct machine *, const struct mapping *, struct text *why_not);

/* What a rewrite may do to floats; integers keep every bit. */
#define REWRITE_EFFECT_TABLE(X)                                                                    \
    X(EXACT, exact)       /* every bit stays */                                                    \
    X(REORDERS, reorders) /* sums and products in another order */                                 \
    X(FINITE, finite)     /* zeros are multiplied and added where nothing was: right for finite values */ \
    X(ROUNDS, rounds)     /* further roundings (docs/mapping.md) */ \
    X(REQUANTISES, requantises) /* operators between quantisers of a model become operators on integers (docs/onnx.md) */

enum rewrite_effect {
#define X(id, name) REWRITE_##id,
    REWRITE_EFFECT_TABLE(X)
#undef X
        REWRITE_EFFECTS
};
extern const char *const rewrite_effect_name[REWRITE_EFFECTS];

/* ---- covers ---- */
struct cover_item {
    int stmt;
    int mapping;                       /* index into cover.mapping; -1: the fallback runs it */
    int inside;                        /* item that executes this one as its init; -1: on its own */
};

struct cover {
    struct arena arena;
    struct program *program;           /* owned: opened (steps), canonical, statements split to what needles do; original buffers keep their names */
    struct mapping *mapping; int nmappings;
    struct cover_item *item; int nitems;       /* one for each statement, in program order */
    double cost;
    struct steps steps;                /* recurrences, in the arena */
    struct chain *chain;               /* owned: from the program as given to this one; where it has recurrences, of it alone, with the reasons */
};

/* What a scheduler found no way to do: an instruction for the sums of a buffer, mapped so; refused a second time, however mapped. */
struct refusal {
    int instr;
    const char *buffer, *operands, *way, *why; /* way NULL: however mapped, where its operands read the same */
    int line, col;
};
struct refusals {
    struct arena arena;
    struct refusal *at; int n, cap;
    int round;                         /* the first one of the cover that is scheduled now, which may meet a reason more than once */
};

/* Where many ways of a buffer were refused before, each refusal is of all ways of the instruction. False: it was chosen though it is refused,
 * however mapped. */
bool refusals_add(struct refusals *, const struct program *, const struct machine *, const struct mapping *, const char *why, int line, int col);
bool refusals_have(const struct refusals *, const struct program *, const struct machine *, const struct mapping *);

/* The cheapest set of non-overlapping mappings that, with the fallback, executes all statements; each choice a question. NULL after reporting
 * (no fallback for a statement that nothing matches). Bodies of recurrences
 * are covered like all else; calls are run by the fallback. */
struct cover *mapper_cover(const struct program *, const struct machine *, struct decider *, struct diags *);
/* A machine's instructions as the mapper looks for them, and what it found: kept over several covers, nothing is searched twice. */
struct needles;
struct needles *needles_open(const struct machine *);
void needles_close(struct needles *);  /* NULL: nothing */
/* The same where rewrites may do to floats what `floats` says (see enum rewrite_effect, whose default is REWRITE_REORDERS), without the mappings that are
 * refused (NULL: none), with the needles of earlier covers (NULL: of this one alone). */
struct cover *mapper_cover_allowing(const struct program *, const struct machine *, enum rewrite_effect floats, const struct refusals *, struct needles *, struct decider *, struct diags *);
/* The same program with unsigned bytes kept as signed ones, 128 less (mapper/signed.c), where sums of products read such bytes and instructions of a device
 * multiply signed ones alone. Buffers that it had keep their numbers, arguments their types. NULL: there are none, or it has recurrences or calls. */
struct program *mapper_signed(const struct program *, const struct machine *);
/* Beside a device, requantisers of a model in fixed point where the prices of covers say that this costs clearly less, device and host together. data[b]: the
 * elements of constant b; NULL: not known. Each result is at most half a step from what it was before rounding. The decider is asked anew for each part. NULL:
 * nothing changes; *changed: how many do. */
struct program *mapper_fixed_point(const struct program *, const struct machine *, const void *const *data, enum rewrite_effect floats, struct decider *,
                                   int *changed);
void cover_free(struct cover *);
/* Cycles of instructions that could take several rows of lanes at a time, where all that they execute is one long row. */
double cover_of_one_row(const struct cover *, const struct needles *);
bool cover_verify(const struct cover *, const struct machine *, struct diags *);
void cover_print(const struct cover *, const struct machine *, struct text *);

/* Why no instruction executes these sums of products, a sentence for each, in the arena; with `device` none but the host's, NULL where a device's could. False: no
 * such instruction of the machine multiplies and adds. */
bool mapper_left(struct arena *, const struct program *, const struct machine *, const int *stmt, int n, bool device, const char **why);

/* ---- algebraic rewrites (ISA Mapper §2.3) ---- */

struct needle;
/* Small passes behind one interface. Each answers failure kinds. None changes what a program means: rewrite_prove decides, and what it does
 * not prove is never used. */
struct rewrite {
    const char *name, *doc;
    uint32_t answers;                  /* bit k: failure kind k */
    enum rewrite_effect effect;
    bool by_values;                    /* proved on values as a machine computes them, not over the field */
    bool everywhere;                   /* tried on every statement of a program that is compiled, not only on sums */
    bool by_needle;                    /* it asks an instruction how wide it is */
    bool by_ranges;                    /* right for what temporaries can hold: what fills them belongs to the proof */
    bool by_makers;                    /* it looks through temporaries that constants alone decide: what fills them belongs to the proof */
    /* The program with statement failure.stmt rewritten, or NULL where it does not apply. The needle that failed, NULL: none in mind. */
    struct program *(*apply)(const struct program *, const struct failure *, const struct needle *);
};
extern const struct rewrite *const rewrites[];                     /* NULL-terminated */

/* Where rewrites lead: a program in which the instructions of sums of products execute what they could not, or not like this, before. */
enum { MAX_DERIVATION = 3 };

struct derivation {
    struct program *program;
    int stmt;                          /* of the original program: what was rewritten */
    int from, to;                      /* statements from .. to - 1 of `program` stand in its place */
    int nsteps;
    const struct rewrite *step[MAX_DERIVATION];
    const char *asked[MAX_DERIVATION]; /* the failure that each step answers; NULL: none asked */
    struct program *between[MAX_DERIVATION];   /* owned: what step k gave, of all steps but the last; NULL where it was not kept */
    struct verdict verdict;            /* of mapper_derive: what says that it is the same program */
    struct mapping *mapping; int nmappings;    /* by statement, instruction and price */
};

struct derivations {
    struct arena arena;
    struct derivation *at; int n;
    int tried, refuted;                /* programs that rewrites gave; how many of those that mapped were not proved, and so left out */
    bool bounded;                      /* not all sequences were tried */
    double seconds;
};

/* Iterative deepening over sequences of at most MAX_DERIVATION rewrites of each statement, the next one chosen by the deepest failures;
 * programs that were seen before (program_hash) are left out. All that is returned is proved. Never NULL. */
struct derivations *mapper_derive(const struct program *, const struct machine *, const struct map_options *);
void derivations_free(struct derivations *);

/* The program after rewrites named in order, `factor,narrow`, on the first statement where all of them apply; whatever their effect, and whether
 * it pays or not. NULL after reporting. */
struct program *mapper_rewrite(const struct program *, const struct machine *, const char *names, struct diags *);

struct reason mapper_rewrite_reason(const char *names);            /* of such a program, for a chain */

/* What says that both programs are the same (mapper/rw_proof.c): a proof by the laws of the rewrite's effect, or samples, which are enough for
 * floats whose rounding may change alone. why: may be NULL. */
bool rewrite_prove(const struct rewrite *, const struct program *before, const struct program *after, struct text *why);

#endif
