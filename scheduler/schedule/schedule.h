/* The schedule: everything is planned before it runs (DESIGN §5). A tree of loops around issues, fallbacks and syncs, in two
 * sections. It is self-contained, const downstream, and all that backends, simulator and verifier know of a compiled program;
 * its size does not depend on extents. Text form: docs/schedule.md. */
#ifndef ISAMAP_SCHEDULER_SCHEDULE_SCHEDULE_H
#define ISAMAP_SCHEDULER_SCHEDULE_SCHEDULE_H

#include "ir/chain.h"
#include "ir/program.h"
#include "machines/machine.h"

/* ---- integer expressions over loop variables ---- */
enum sx_op { SX_CONST, SX_VAR, SX_ADD, SX_SUB, SX_MUL, SX_DIV /* floor */, SX_MOD /* of floor */, SX_MIN, SX_MAX,
             SX_LT, SX_LE, SX_EQ, SX_NE /* 0 or 1 */, SX_AND, SX_OR /* of 0 or 1 */ };

struct sx {                            /* immutable; shared freely */
    enum sx_op op;
    int64_t value;                     /* SX_CONST */
    int var;                           /* SX_VAR: index into schedule.var */
    const struct sx *a, *b;
};

/* Bound by exactly one loop node around each use; the first ones are the program's sizes, given when it runs. */
struct var {
    const char *name;
    bool again;                        /* an earlier one has that name too */
};

/* ---- where data is ---- */
/* Of the text form; docs/schedule.md says what it promises. */
enum { SCHEDULE_VERSION = 1 };

enum keep {
    KEEP_ARGUMENT,                     /* the caller's array of an in, out, inout or const buffer */
    KEEP_PREPARED,                     /* written in `prepare`, kept between runs: packed constants */
    KEEP_WORKSPACE,                    /* home of a temporary; lives during one run */
    KEEP_LOCAL                         /* a copy in a program-managed memory */
};

/* A piece of one memory that holds (part of) one program buffer. */
struct place {
    const char *name;
    int buffer;                        /* of schedule.program */
    int memory;                        /* of the machine */
    enum keep keep;
    int64_t address;                   /* bytes from the start of the memory. Arguments have one too: the device's map of DRAM */
    int64_t bytes;                     /* of one slot */
    int slots;                         /* 1, or as many copies that rotate: slot s starts at address + s * bytes */
    /* Homes (all but KEEP_LOCAL): where element [index] of the buffer is. Row-major when layout is NULL. Bytes cover layout_span of
     * `extent`, which is the buffer's, rounded up where the layout pads. */
    const struct layout *layout;
    const char *layout_text;
    int64_t *extent;                   /* ndims of the buffer */
    /* KEEP_PREPARED: entries of an instruction's loop with a table, which the home of a one-dimensional temporary holds from the start:
     * its elements, as bytes. NULL: none. */
    const uint8_t *table;
};

/* ---- nodes ---- */
enum node_kind { NODE_LOOP, NODE_ISSUE, NODE_FALLBACK, NODE_ROTATE, NODE_SYNC, NODE_CONFIGURE };
enum loop_kind { LOOP_SEQUENTIAL, LOOP_PARALLEL, LOOP_UNROLLED, LOOP_HARDWARE };

/* machine.sync. Channel 0 unless it has several. With `rotating` = 1 + a place there is one channel for each slot of it: channel
 * (current slot + channel) mod slots. `pending`: when a group is popped, how many of its groups may remain. */
struct signal { int sync, channel, rotating, pending; };

struct signals {                       /* in the order in which they are waited for or given */
    struct signal *pop, *push;
    int npops, npushes;
};

/* for (var = lo; var < hi; var += step) body. Hardware loops stand directly around one issue (hardware_issue): with them it is one
 * entry of its queue. */
struct loop_node {
    int var;
    const struct sx *lo, *hi;
    int64_t step;                      /* > 0 */
    enum loop_kind kind;
    int unit;                          /* LOOP_PARALLEL: over the instances of this unit; iterations in contiguous shares */
    int table;                         /* LOOP_HARDWARE over entries of a table: 1 + the local place that holds them; 0: otherwise */
    int axis;                          /* the program's axis it walks, -1: none (documentation) */
    struct node *body;
    int nbody;
};

/* One operand of an issue. */
struct arg {
    int place;                         /* -1: an immediate */
    const struct sx *offset;           /* bytes from the start of the place's current slot to the element with index 0 */
    int layout;                        /* which of operand.layout[] */
    union value imm;                   /* MEMORY_IMM operands: the value of element 0, in the operand's type */
};

/* One execution of an instruction or move (a move is an instruction whose semantics is a copy). */
struct issue_node {
    int instr;                         /* machine.instr */
    const struct sx **size;            /* one for each of instr.ranged */
    const struct sx **stride;          /* one for each of instr.stride_name, in elements of the operand */
    const struct sx **flag;            /* one for each operand with `accumulate`, in operand order: 0 or 1 */
    struct arg *arg;                   /* one for each of instr.operand */
    /* What part of the program this executes; stmt -1 for a pure copy between places. Needle axis x (of the semantics) covers program
     * axis axis[x] from base[axis[x]] on, in unit steps; -1: the needle's axis stands alone (extent 1 of work, the rest padding or
     * broadcast). Every other axis a of the statement has the single value base[a]. Points outside the statement's
     * domain are padding: they must not change what is later read. */
    int stmt;
    int *also, nalso;                  /* statements that it executes before `stmt`, wholly, for what `stmt` writes: those of the semantics,
                                          in their order, of which `stmt` is the last. Values pass between them inside the instruction */
    int init;                          /* statement whose instances are executed too when the accumulate flag is 0 (a zero fill); -1 */
    int *axis;                         /* one for each axis of the semantics' kernel */
    const struct sx **base;            /* one for each axis of schedule.program; NULL where the statement does not have it */
    struct signals signals;
};

/* A statement run by a unit's fallback, element by element, on the homes of its buffers, over lo <= axis < hi. */
struct fallback_node {
    int fallback;                      /* machine.fallback */
    int stmt;
    const struct sx **lo, **hi;        /* one for each axis of the program; NULL entries: the whole axis; NULL arrays: all whole */
    struct signals signals;
};

/* One value of a state: of one of its slots, of one word of the memory it belongs to, or of one of its objects. */
struct state_value {
    int state;                         /* machine.state */
    int index;                         /* slot, word or object; 0 for a state with one slot */
    const struct sx **value;           /* one for each of state.field */
};

/* Writes states: what instructions `need` of them holds from here on. Words of a state `of` a memory that have no setting lose their
 * value. In section prepare a configure at="launch" makes objects, before anything runs. */
struct configure_node {
    int configure;                     /* machine.configure */
    struct state_value *set;
    int nsets;
    struct signals signals;
};

struct node {
    enum node_kind kind;
    union {
        struct loop_node *loop;
        struct issue_node *issue;
        struct fallback_node *fallback;
        struct configure_node *configure;
        int rotate;                    /* place: its next slot becomes current (the first rotate of a run makes slot 0 current) */
        struct { int queue; struct signals signals; } sync;  /* carried by the queue's nop; on a queue of a unit with a fallback, by nothing */
    };
};

struct section { struct node *node; int nnodes; };

/* Cycles of each turn of recurrences as long as these sizes (bit k), one in another. */
struct open_cost {
    uint64_t sizes;
    double cycles;
};

/* What the scheduler expects of a part of the run. */
struct forecast {
    double cycles;                     /* that it takes */
    double alone;                      /* of these those in which its instructions run when nothing holds them up */
    const char *bound;                 /* what takes so long: the id of a queue, bus or cache, or words; NULL: not known */
};

/* What nests were planned to cost before groups, with the host's statements; those that are searched before the clock. Nests without
 * sums are not searched, and count where the clock says what they take: a hash of all that their plans depend on. */
struct planned {
    double cycles;
    uint64_t unsearched;
};

struct schedule {
    struct arena arena;                /* owns everything below */
    const char *machine_name;
    const struct machine *machine;     /* not owned; outlives the schedule */
    struct program *program;           /* owned: the program as scheduled, with the copies that layouts need as statements */
    struct var *var;       int nvars;  /* added by schedule_var */
    int *var_of, cap_vars;             /* by name: a hash table of 2 * cap_vars places, 1 + the first variable; 0: none */
    struct place *place;   int nplaces;
    struct section prepare, run;
    double cost;                       /* the scheduler's estimate, cycles; all steps of recurrences whose length is known */
    struct open_cost *open; int nopen; /* and what sizes known only when it runs multiply */
    double alone;                      /* of these those in which the cores' instructions run when nothing holds them up */
    struct forecast *forecast;         /* [program.nstmts] cycles 0 but at one statement of each part of the run; NULL: not known */
    struct planned planned;
    double least;                      /* the device takes no less: the same of the queue that has most of them */
    double host, host_rate;            /* beside a device: the fallback's work, in cycles of the device, and its own cycles in one of these; 0 */
    struct chain *chain;               /* owned: from the program as written to `program`, with witnesses; NULL: not known */
};

int schedule_var(struct schedule *, const char *name);              /* a new variable: its number; the name is copied */
int schedule_var_named(const struct schedule *, const char *name);  /* the first of the name; -1: none */
struct schedule *schedule_new(const struct machine *);             /* empty, from the heap; free with schedule_free (the program too) */
void schedule_free(struct schedule *);
void schedule_print(const struct schedule *, struct text *);
struct schedule *schedule_parse(const struct machine *, const struct source *, struct diags *);
double schedule_cost(const struct schedule *, const int64_t *size); /* cycles; of the program's sizes; NULL: the largest */
void schedule_size(struct schedule *, const char *name);          /* the next size's variable, before all others */
int schedule_home(const struct schedule *, int buffer);           /* the place that is the buffer's home; -1 */
/* A prepared or workspace home that holds more than its elements: zero before its section first uses it. */
bool schedule_pads(const struct schedule *, int place);
int64_t schedule_nodes(const struct schedule *);                  /* loops, issues, fallbacks, configures, rotates and syncs */

/* ---- live ranges (live.c) ---- */
struct live_range { int first, last; };                           /* nodes of the section that use the place; first > last: none does */
/* [nplaces]. A loop uses what its body uses; a fallback the homes of its statement's buffers. */
struct live_range *schedule_live(struct arena *, const struct schedule *, const struct section *);
int64_t schedule_workspace(const struct schedule *);              /* from the start of the first home of a temporary to the end of the last */
int64_t schedule_workspace_bound(const struct schedule *);        /* bytes of such homes live at one node, at most: no arrangement is below */

/* ---- building (arena-allocated, folded: constants are computed at once) ---- */
const struct sx *sx_const(struct arena *, int64_t);
const struct sx *sx_var(struct arena *, int var);
const struct sx *sx_make(struct arena *, enum sx_op, const struct sx *, const struct sx *);
bool sx_constant(const struct sx *, int64_t *out);
int64_t sx_eval(const struct sx *, const int64_t *var_value);
void sx_print(const struct sx *, const struct schedule *, struct text *);
bool sx_uses(const struct sx *, int var);
bool sx_same(const struct sx *, const struct sx *); /* written alike */
/* The values of the largest parts of x without the variable; how many, -1: more than `most`. */
int sx_rest(const struct sx *x, int var, const int64_t *var_value, int64_t *out, int most);
/* What x changes by whenever the variable grows by `by`; NULL: it changes by more at one time than at another. */
const struct sx *sx_step(struct arena *, const struct sx *x, int var, int64_t by);

/* ---- hardware loops ---- */
enum { MAX_HARDWARE_LOOPS = 4 };
struct hardware {                       /* an issue and the loops of the machine that repeat it */
    const struct issue_node *issue;
    const struct loop_node *loop[MAX_HARDWARE_LOOPS];   /* outermost first */
    const struct hwloop *counter[MAX_HARDWARE_LOOPS];   /* the instruction's loops that they are: its innermost ones without a table, and
                                                           its loop with a table */
    int nloops;
    int table;                          /* which of them is the loop over a table's entries: the last; -1: none */
};
/* False: something else than hardware loops around one issue, or more of them than the instruction has. */
bool hardware_issue(const struct machine *, const struct loop_node *, struct hardware *out);
/* Of an issue, fallback or sync, and of the issue inside hardware loops; NULL: it has none. */
const struct signals *node_signals(const struct node *);
/* What keeps it from being one entry: a part of the issue that the loops must leave as it is, or move in constant steps only. NULL:
 * nothing. */
const char *hardware_obstacle(struct arena *, const struct machine *, const struct hardware *);

/* ---- tables: what a loop over entries reads (table.c) ---- */
const struct hwloop *instr_table(const struct instr *);           /* the instruction's loop with a table; NULL: none */
int64_t table_entry_bytes(const struct machine *, const struct hwloop *);   /* of one entry; 0: not a constant, or no whole bytes */
/* One entry, from its fields: place_at[o] is operand o's address, bytes from the start of its memory, in the first iteration of the other
 * hardware loops; flag[] as in the issue. NULL, or a field that has no value there or does not take it. */
const struct field *table_entry(const struct machine *, const struct issue_node *, const struct hwloop *, const int64_t *address,
                                const int *memory, const int64_t *flag, uint8_t *out);
enum { MAX_ENTRY = 64 };                                          /* bytes */
/* The first of the table's entries from which on n stand like these, one after the other; -1: nowhere. */
int64_t table_find(const struct place *home, const uint8_t *entries, int64_t n, int64_t entry_bytes);
/* The home of the table of which this local place is the copy; NULL: it is none. */
const struct place *table_home(const struct schedule *, int place);

/* ---- the independent verifier: knows this header and the machine only ----
 * Walks the stream of instructions (each loop at most `trips` iterations: the first and the last ones; 0: all) and proves capacity,
 * alignment, legal sizes and requires, no race between queues (vector clocks over syncs), no stale, foreign or unwritten element read where it
 * matters, token balance and depth, each statement instance executed exactly once, outputs complete. Reports and returns false. */
struct verify_options { int trips; int64_t steps; /* give up (an error) after so many elements; 0: 10^9 */ };
bool schedule_verify(const struct schedule *, const struct verify_options *, struct diags *);

/* What the verifier says of a schedule whose loops run to their ends. Unproved: a limit of the verifier, or its budget, came before the
 * end; nothing is known to be wrong. Refused: an error was reported, which is a defect of who made the schedule. */
enum proof { PROOF_UNCHECKED, PROOF_PROVED, PROOF_UNPROVED, PROOF_REFUSED };
extern const char *const proof_name[];
/* By boxes of elements and induction over loops alone; false: `why` it is not proved, which may be no fault of the schedule. Programs
 * without open sizes. Steps: as below. */
bool schedule_prove_symbolically(const struct schedule *, int64_t steps, struct text *why);
/* For tests: what holds in each loop is guessed from its earlier visits from the first on, not only where much has been spent. */
bool schedule_prove_guessing(const struct schedule *, struct text *why);
/* Never a sample of the loops: all their trips. The budget is in the verifier's steps (0: its default), so that the verdict does not depend on
 * the computer. `reason` gets why it is unproved. Of *sampled pairs of an instruction and a statement it is only known at random points that
 * they compute the same, of all others it is proved. */
enum proof schedule_prove(const struct schedule *, int64_t steps, int *sampled, struct text *reason, struct diags *);

/* From the program as written to the one that is scheduled (ir/chain.h). False after reporting: refuted, which is a defect. what: a line for each
 * witness; or NULL. */
bool chain_check(const struct schedule *, struct chain_report *, struct text *what, struct diags *);

#endif
