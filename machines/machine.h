/* Machines: what isamap knows of the hardware, read from one XML file (docs/machine-format.md). Nothing here, or in any
 * C file, knows a machine's or an instruction's name.
 *
 * A machine is flat: arrays of memories, units, queues…, each naming others by index. Everything lives in one arena and is
 * const after loading. Ids are unique in the machine. */
#ifndef ISAMAP_MACHINES_MACHINE_H
#define ISAMAP_MACHINES_MACHINE_H

#include "ir/program.h"
#include "machines/expr.h"
#include "machines/layout.h"

enum language { LANGUAGE_LLVM, LANGUAGE_C, LANGUAGE_CUDA, LANGUAGE_BITS, LANGUAGE_COUNT };
extern const char *const language_name[LANGUAGE_COUNT];

enum pass { PASS_POINTER, PASS_VALUE, PASS_NUMBER };
enum sync_kind { SYNC_TOKEN, SYNC_GROUP, SYNC_BARRIER, SYNC_FENCE, SYNC_INTERLOCK };

struct place_in_file { const char *file; int line; };

struct param {
    const char *name;
    int64_t value;
    bool has_range;
    int64_t lo, hi;
    const char *host;                  /* what the system may say of it, for system_value; or NULL */
};

struct feature {
    const char *id;
    int leaf, subleaf, reg, bit;       /* cpuid: reg 0..3 = eax..edx; leaf -1: none given */
    const char *capability, *target;   /* compiler options, comma separated; or NULL */
    const char *permit;                /* "arch_prctl CODE ARG", or NULL */
    const char *llvm;                  /* more of them for LLVM alone; or NULL */
};

struct unit {
    const char *id;
    int parent;                        /* -1: the root, which is unit 0 */
    int64_t count, count_max;          /* instances in the parent; count_max > count when the schedule chooses */
    int64_t total;                     /* physical limit over the machine; 0: none */
    const char *index;                 /* text of an instance's number, or NULL */
    bool is_virtual;
    double clock;                      /* Hz, of the nearest enclosing clock */
    double fetch;                      /* cycles between two instructions that enter queues inside, of the nearest enclosing; 0: any number at once */
    double waking;                     /* cycles until all instances run a loop that they share */
    double power;
    struct place_in_file at;
};

enum { MEMORY_IMM = -2 };              /* the built-in memory of compile-time constants, in operand.memory[] */

struct memory {
    const char *id;
    int unit;                          /* private to each instance of it */
    int64_t size;                      /* bytes; -1 unlimited */
    int64_t word, align, banks, interleave;
    enum pass pass;
    uint32_t types;                    /* bit t: TYPE t may live here; 0: any */
    int caches;                        /* hardware-managed over that memory; -1: program-managed (or home) */
    int64_t line, ways;
    double rate, latency;              /* bytes per cycle (0: unlimited), cycles */
    double usable, hidden;             /* of a cache: share of its size that data of one tile may fill; share of its refills that computing hides */
    double tiles;                      /* share of its size that the tiles which stay inside a group may take together */
    double refill;                     /* of a cache: cycles until it has a line from the memory behind it; 0: not counted */
    double writeback;                  /* of a refill's cycles, the share that bringing a changed line back takes beside it */
    double first;                      /* more cycles for the first of consecutive lines */
    int64_t streams;                   /* of a cache: rows at most whose next lines are fetched ahead at a time; -1 any number */
    int64_t prefetch;                  /* of a cache: lines of one run that are fetched ahead at a time; -1 any number */
    double serves;                     /* instances of units inside that its rate is given to at a time; 0: any number */
    double energy_read, energy_write;  /* pJ per byte */
    int64_t scalable;
    const char *pool;
    int alias;                         /* -1: none */
    const char *map, *ports;
    struct part { const char *id; int64_t min, max; } *part;
    int nparts;
    struct place_in_file at;
};

struct bus { const char *id; double rate, latency, burst /* bytes: transfers take whole ones; 0: any */, energy; int unit; struct place_in_file at; };

struct queue {
    const char *id;
    int unit;
    int64_t depth;                     /* -1 unlimited */
    int64_t width;
    bool data_order;                   /* order=data: an instruction starts when its operands are visible */
    double pick;                       /* of data_order: cycles that a dependent instruction waits beyond the latency */
    double contention;                 /* of data_order: that wait falls with this power of the share of the pipes that chains fill */
    int64_t window;                    /* instructions that may be under way or waiting for operands; -1 unlimited */
    int64_t threads;                   /* of its own that execute its instructions, in a block of threads; 0: those of its unit */
    int role;                          /* the queue whose threads these are: itself, or `with` */
    int64_t registers;                 /* of each of these threads, beside threads of other queues; 0: as many as the compiler gives them */
    struct emit *begin; int nbegins;   /* what they execute first then */
    int nop;                           /* instruction that does nothing (no operands) on this queue; -1: none */
    struct place_in_file at;
};

struct sync {
    const char *id;
    int unit;
    enum sync_kind kind;
    uint64_t from, to;                 /* bit q: queue q ('*' is resolved) */
    int64_t depth;                     /* tokens at most; -1 unlimited */
    int64_t count;                     /* channels; -1: `*` */
    int memory; int64_t size;          /* where barrier objects live; -1: nowhere */
    int barrier_unit;                  /* barrier: the unit that meets; -1 otherwise */
    bool asynchronous;                 /* interlock: also of what completes behind its queues */
    double latency, interval;
    struct emit *init_emit, *push_emit, *pop_emit; /* init: of an object in memory, before anything else */
    int ninit_emits, npush_emits, npop_emits;
    struct place_in_file at;
};

struct state {
    const char *id;
    int unit;
    const char **field; int nfields;
    const char *init;
    int64_t count;                     /* slots: 1 without; -1 for `*` */
    int of;                            /* memory with one value a word; -1: none */
    int64_t size, align;               /* bytes of an object that the host makes; 0: it makes none */
    struct place_in_file at;
};

/* ---- bit formats and emit bodies ---- */
struct field { struct mexpr *at, *bits, *value; bool is_signed; const char *name; struct place_in_file place; };

struct format {
    const char *id;
    struct mexpr *bits;
    int base;                          /* format it builds on; -1 */
    struct field *field; int nfields;
    struct place_in_file at;
};

struct word {
    struct mexpr *bits;                /* or NULL: the format's */
    int format;                        /* -1 */
    struct mexpr *at;                  /* a register write; NULL: appended to the stream */
    struct field *field; int nfields;  /* its own; the format's come first */
    struct place_in_file place;
};

struct emit {
    enum language language;
    const char *library, *header;      /* or NULL */
    uint64_t needs_features;           /* of the element that it is in */
    const char *text;                  /* llvm, c, cuda: a function body with ${...} */
    struct word *word; int nwords;     /* bits */
    struct place_in_file at;           /* of text[0] */
};

/* ---- instructions and moves ---- */
struct operand_layout {
    struct layout *map;                /* NULL: row-major */
    const char *map_text;
    struct mexpr **stride; int nstrides;      /* in elements, for each place of the map (for each dimension when map is NULL); NULL: dense.
                                                 A stride that is one name alone which nothing else defines is chosen by the schedule */
    const char *let_name; int64_t let_value;  /* or NULL */
    const char *swizzle;
    struct place_in_file at;
};

struct operand {
    const char *buffer;
    int kernel_buffer;                 /* index among the semantics' buffers in order of declaration (temp ones have no operand) */
    int *memory; int nmemories;        /* any of; MEMORY_IMM; a move's come from from/to */
    struct operand_layout *layout; int nlayouts;  /* at least one */
    struct mexpr *align;               /* bytes; NULL: the memory's */
    struct mexpr *every; bool words;   /* a rule's: it begins at a multiple of so many bytes, or words of its memory; NULL */
    const char *accumulate;            /* flag name: 1 as written, 0 overwrites; or NULL */
    int also;                          /* memory; -1 */
    int ahead;                         /* index in instr.ranged: the size says how many bytes behind what is read its cache is asked for; -1 */
    enum pass pass; bool has_pass;     /* otherwise the memory's */
    enum role role;                    /* of the kernel's buffer */
    enum type type;
    struct place_in_file at;
};

struct need { int state; const char *of; struct mexpr **value; int nvalues; };
struct hwloop { const char *id; int64_t max; int table; /* memory; -1 */ struct mexpr *entry_bits; struct field *entry; int nentries; struct place_in_file at; };

struct instr {
    const char *id;
    int unit, queue, bus;              /* bus -1: none; queue -1: none (only executed by the fallback's queue) */
    bool is_move;
    bool repeated;                     /* an earlier one is the same but for its name */
    int *from, nfrom, *to, nto;        /* a move's memories */
    uint32_t move_types;               /* further types of a byte-wise move; 0: only the semantics' */
    int across;                        /* unit; -1 */
    struct mexpr *latency, *interval, *overhead, *energy;  /* never NULL: defaults 1, 1, 0, 0 */
    uint64_t needs_features;           /* bit f */
    int completes;                     /* sync; -1 */
    bool blocking;                     /* its queue goes on when the result is visible */
    double crossing;                   /* a move's cycles more for each row that reaches into one more line of a cache; -1: as an access takes */
    bool zeroes_subnormals;            /* floats that it reads below the normal range may count as 0 */
    int units;                         /* unit roundoffs by which results may differ from exact ones; 0: as the operation table has it */
    enum opcode rounded;               /* units > 0: its only operation */
    int64_t scratch;                   /* words of its result's memory that it needs for itself while it works */
    const struct kernel *semantics;
    struct operand *operand; int noperands;     /* one for each non-temp buffer of the semantics, in order of declaration */
    struct mexpr **require; int nrequires;
    struct need *need; int nneeds;
    struct hwloop *loop; int nloops;            /* outermost first */
    struct emit *emit; int nemits;
    struct emit *ahead; int naheads;   /* of a move: what may stand, changing nothing, before the sums whose results it stores, or in an earlier turn than the one that reads */
    const char **stride_name; int nstride_names; /* free stride names, in order of appearance: parameters of the emit */
    int *ranged; int nranged;          /* indices of kernel parameters chosen by the schedule: ranges, or no value at all */
    const char *doc;
    struct place_in_file at;
};

struct configure {
    const char *id;
    int unit, queue, *sets, nsets, *clobbers, nclobbers;
    bool at_program, at_launch;
    struct mexpr *latency, *interval, *overhead;
    struct emit *emit; int nemits;
    struct place_in_file at;
};

struct fallback {                      /* the unit can execute any statement, element by element, in this language */
    enum language language;
    int unit, queue;                   /* queue -1: none given */
    int *memory; int nmemories;        /* where operands may be; 0: the home memory */
    struct mexpr *latency, *interval;
    double copy, turn, gather;         /* cycles for an element of a plain copy: rows along one axis on both sides, along two, otherwise; -1: as interval */
    double vector;                     /* and for four bytes of another statement whose innermost loop goes along rows */
    double enter;                      /* cycles to enter the loops of a copy */
    double divide, function;           /* intervals of a division or a root, and of a function of the library */
};

/* What a parameter is measured by: the value in from..to with which this kernel is predicted to take
 * the time that it takes, summed over the sets of sizes in `with`. */
struct measure {
    int param;
    int64_t from, to, threads;         /* threads that run it */
    const char *with, *text;
    struct place_in_file at;
    int col;
};

/* What ranks ways to write a program, of the machine or of the host beside it: cycles to begin a statement's loops, of an
 * element that vectors bring, of a product whose factors stand in registers, and of an element that a comparison of axes
 * cuts out of a sum, which the fallback does. */
struct rank_cycles { double statement, bring, product, cut, home; };   /* home: a factor */

struct text_as { enum language language; const char *text; };

struct node;

struct machine {
    struct arena arena;
    const struct node *tree;           /* what it was built from, includes and repetitions worked out */
    const char *name, *title, *file;
    uint64_t needs_features;           /* the machine's own */
    uint64_t code_features;            /* those of them that all code needs: others, what a file adds to a host */
    double clock;
    double launch;                     /* cycles that each launch takes besides what it does (schedule/launches.h) */
    double doorbell;                   /* of a host: its cycles until a device sees its token, or it a device's */
    double copies_hidden;              /* share of the host's copies for a device that passes while the device works (fallback hidden) */
    struct rank_cycles cycles;         /* of the first fallback (statement, bring, product, cut, home) */
    struct param *param;         int nparams;
    struct bindings params;            /* the same, for the IR */
    struct feature *feature;     int nfeatures;
    struct unit *unit;           int nunits;
    struct memory *memory;       int nmemories;
    struct bus *bus;             int nbuses;
    struct queue *queue;         int nqueues;
    struct sync *sync;           int nsyncs;
    struct state *state;         int nstates;
    struct format *format;       int nformats;
    struct instr *instr;         int ninstrs;    /* instructions and moves */
    struct configure *configure; int nconfigures;
    struct fallback *fallback;   int nfallbacks;
    struct measure *measure;     int nmeasures;
    const char *parameters;            /* the file of parameters that was read; NULL: none */
    struct text_as *prelude;     int npreludes;
    struct emit *begin, *end;    int nbegins, nends;
    int home;                          /* the memory where programs' buffers live: the outermost one (no memory's cache), unlimited or largest */
    int64_t home_align;                /* arrays there begin at multiples of so many bytes: 64, and what its operands ask for */
    int priority;                      /* for `-m host` */
    const char *model;                 /* folder of a model in RTL, relative to the working directory; or NULL */
    const char *model_of;              /* the file that names it: what it is a model of */
};

/* Loads and checks. `name` is a path, or is found in $ISAMAP_MACHINE_PATH, ./machines, the installed share. `set` overrides
 * machine parameters (sweeps). All return NULL after reporting. */
struct machine *machine_load(const char *name, const struct bindings *set, struct diags *);
struct machine *machine_open(const char *name, const struct bindings *set, struct diags *); /* checked as it is set, not at both ends of each range */
struct machine *machine_parse(const char *file, const char *xml, size_t length, const struct bindings *set, struct diags *);
void machine_free(struct machine *);

/* All that makes the machine what it is, as text: its file with everything included, the values of parameters, the instructions that are left. Equal
 * texts, equal machines. */
void machine_describe(const struct machine *, struct text *);

/* Where `calibrate` leaves the parameters of this machine file; NULL: there is no such folder. */
char *parameters_path(struct arena *, const char *machine_file);

/* Is that something that the system may say of a computer: `cache LEVEL size`, `ways` or `line`? Its file is found too. */
bool system_word(const char *word, int *level, const char **file);
/* What it says, in bytes or ways; 0: nothing that can be used. `folder`: SYSTEM_CACHES, but for tests. */
#define SYSTEM_CACHES "/sys/devices/system/cpu/cpu0/cache"
int64_t system_value(const char *folder, const char *word);

/* loops.c: what the fallback takes for a point. Of a plain copy: its rows go along one axis on both
 * sides, along two, or in any other way; of another statement: in vectors, since its innermost loop
 * goes along the rows of all that it touches, or one by one. */
enum copy_kind { COPY_ROWS, COPY_TURN, COPY_ANY, COPY_VECTOR, COPY_NONE };
/* Windows are written out up to so many values; of so few elements is no row, where an axis is part of one; vectors are
 * loaded of rows whose elements are so far apart. */
enum { MAX_LISTED = 64, ROW_OF_WINDOW = 8, MOST_STEP = 4 };
struct row_order { /* where the elements of arrays follow one another */
    int (*dim)(const void *of, int buffer); /* along this dimension; -1: along none */
    const void *of;
};
enum copy_kind loop_kind_of(const struct program *, const struct stmt *, const struct row_order *); /* NULL: row-major */
double loop_cycles(const struct machine *, int fallback, const struct program *, const struct stmt *, enum copy_kind, const struct row_order *); /* for a point */
/* Are rows copied in vectors, or turned in squares, whatever their order is there? Of the source's dimensions by these axes. */
bool copied_in_vectors(const struct program *, uint64_t axes, const struct access *from, const struct row_order *);
double op_weight(const struct machine *, int fallback, enum opcode); /* of how many additions it takes the time */
double fallback_cycles(const struct machine *, int fallback, enum copy_kind);
int rows_axis(const struct program *, const struct stmt *, const struct access *, const struct row_order *); /* that walks along them, element by element; -1: none */
/* All of its points, by one instance, with what passes the caches. */
double loop_alone(const struct machine *, int fallback, const struct program *, const struct stmt *, const struct row_order *);
/* Of bytes that pass the caches which are too small to hold so many; of these cycles, those that computing does not hide. */
struct passing { /* bytes that come, with those of lines that are written; and that go back, changed */
    double brought, back;
};
double stream_cycles(const struct machine *, struct passing, double held, double *exposed);
double access_bytes(const struct program *, const struct stmt *, const struct access *); /* that one execution of the statement touches at most */

int64_t machine_home_align(const struct machine *); /* of machine.home, once that is known */

/* All that FORMAT §7 lists; machine_load calls it. True: no errors. */
bool machine_check(const struct machine *, struct diags *);
/* What its author cannot have wanted: intervals that are not above 0, results without a way home, what nothing can use, instances that cannot
 * run. Errors and warnings; for the command `check` (docs/machine-format.md). True: no errors. */
bool machine_advise(const struct machine *, struct diags *);

/* Machine of highest priority on the search path whose required features this CPU has. */
struct machine *machine_host(struct diags *);
/* What -m may name: the files on the search path by name, and "host". */
struct names;
void machine_names(struct arena *, struct names *);
/* A device without a fallback joined to a host through a doorbell (as format/board.xml). The result owns everything. */
bool machine_needs_host(const struct machine *);
/* Of a host: a unit with a fallback is this queue's unit, above it or below it. Work there takes none of a device's time. */
bool machine_queue_is_host(const struct machine *, int queue);
/* Is the rule that of two operands apart, `bank(A) != bank(B)` (or word, or addr)? It holds where they are in different memories.
 * `function`: which; a, b: the operands. */
bool require_apart(const struct instr *, const struct mexpr *rule, const char **function, int *a, int *b);
/* word(A) % N == 0, addr(A) % N == 0 */
bool require_every(const struct instr *, const struct mexpr *rule, int *operand, struct mexpr **every, bool *words);
/* It speaks of where operands lie in another way, which nobody plans: not f(A) != f(B), f(A) == f(A) or f(A) % N == 0. */
bool require_unplanned(const struct instr *, const struct mexpr *rule);
/* A token between several queues, no object in memory, is one for each pair of them: channel c of the pair is channel
 * c * sync_pairs + sync_pair. Of other syncs there is one pair. */
int sync_pairs(const struct sync *);
int sync_pair(const struct sync *, int from, int to);
int64_t sync_channels(const struct sync *);                       /* of all pairs, at most 2^20 */
bool machine_sync_is_host(const struct machine *, int sync); /* to or from a host's queue: no instruction of a device carries it */
/* Can the queue signal between its instructions? By its nop, by texts of the sync, as a host or by the unit's fallback; and where
 * nothing says how the queue's instructions are written down, nothing need carry it. */
bool machine_signals_alone(const struct machine *, int queue, int sync, bool pop);
struct machine *machine_join(const char *device, const char *host, const struct bindings *set, struct diags *);
const char *machine_path(struct arena *, const char *name);      /* the file that a name stands for, or NULL */

extern const char machine_skeleton[];                            /* of a machine file, with @NAME@ for its name */
bool machine_feature_present(const struct feature *);             /* on this CPU, with operating-system support */
bool feature_permit(const struct feature *, unsigned *code, unsigned *argument); /* of arch_prctl; false: none is needed */
bool machine_runs_here(const struct machine *, struct diags *);   /* reports each missing feature */
/* For what runs here: instructions go whose own features this CPU lacks, where it has all that the machine needs. */
void machine_fit_here(struct machine *);

int machine_memory(const struct machine *, const char *id);       /* -1: none; likewise below */
int machine_queue(const struct machine *, const char *id);
int machine_sync(const struct machine *, const char *id);
int machine_instr(const struct machine *, const char *id);

/* Is the unit `outer` or below it? */
bool unit_inside(const struct machine *, int unit, int outer);

/* Is this memory the home itself, or a hardware-managed cache over it (then an operand "in" it is read at its home address)? */
bool memory_is_home(const struct machine *, int memory);

/* ---- elements over instances and swizzled addresses (machine format, "Layouts") ---- */
struct swizzle { int bits, base, shift; };                        /* bits 0: none */
bool swizzle_parse(const char *, struct swizzle *);               /* of operand_layout.swizzle; NULL is none */
int64_t swizzle_address(struct swizzle, int64_t address);         /* bytes from the start of the memory; its own inverse */
int64_t unit_instances(const struct machine *, int unit);         /* in its parent, at most */
bool layout_spreads(const struct layout *);                       /* has places in units: elements lie in several instances */
/* Of an operand that lies in several instances, with its largest sizes: two with the same number lie alike. 0: in one. */
uint64_t instr_fragment(const struct machine *, const struct instr *, int operand, const struct program *bound);
/* The instance of the memory that holds an element, counted from the first one inside the instruction's unit. */
int64_t layout_instance(const struct machine *, const struct layout *, int memory, const int64_t *index);
/* `pool`: the unit and the bytes that instances of the memory inside it share. False: none, or not readable. */
bool memory_pool(const struct machine *, int memory, int *unit, int64_t *bytes);
/* Bytes of the pool for each instance of the memory; `shared` ([nunits] or NULL): units of a chosen number that are all used, not just one. */
int64_t pool_share(const struct machine *, int memory, const bool *shared);

/* Cycles at these sizes (NULL: of parameters as `bound` has them), from what the file says; without a word latency and interval are 1,
 * overhead is 0. */
void instr_times(const struct machine *, const struct instr *, const struct program *bound, const int64_t *size, double *latency,
                 double *interval, double *overhead);
double configure_cycles(const struct machine *, int configure);   /* that its queue is busy */
int64_t operand_align(const struct machine *, const struct operand *, int memory, const struct program *bound); /* bytes */

/* The semantics with its sizes bound, e.g. M = 16. `size` has one value for each of instr.ranged. Cached results are the caller's
 * business. NULL after reporting. */
struct program *instr_bind(const struct machine *, const struct instr *, const int64_t *size, struct diags *);
/* Do its rules leave a legal value of each size? */
bool instr_has_sizes(const struct machine *, const struct instr *);
/* A state with an object for each value, made from run-time addresses (`base`): by the host, before it launches. Schedules say nothing of it. */
int64_t state_slots(const struct machine *, int state); /* its slots, or the words of its memory; negative: an object for each value */
bool state_from_addresses(const struct machine *, int state);
/* The legal values of ranged[i]: lo..hi step; hi -1: unbounded. False: depends on other sizes. */
bool instr_size_range(const struct machine *, const struct instr *, int i, int64_t *lo, int64_t *hi, int64_t *step);
const struct emit *instr_emit(const struct instr *, enum language);  /* or NULL */
const struct emit *instr_ahead(const struct instr *, enum language); /* or NULL */
/* `name`, of n characters, can only be a header of the include path: no path from the root, no "..", nothing to quote. */
bool header_is_name(const char *name, size_t n);

#endif
