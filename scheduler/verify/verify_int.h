/* Inside the verifier (docs/schedule.md, "What is verified"): what its files share. It knows the schedule and the machine only.
 *
 * The stream of instructions is walked twice in program order: first to count how often each element is written by each
 * statement, then to follow a tag for each element of each memory and a vector clock for each queue. */
#ifndef ISAMAP_SCHEDULER_VERIFY_VERIFY_INT_H
#define ISAMAP_SCHEDULER_VERIFY_VERIFY_INT_H

#include "scheduler/schedule/schedule_int.h"

enum {
    MAX_ERRORS = 20,
    MAX_QUEUES = 1024,                 /* queue instances, and what runs behind them */
    MAX_GROUPS = 64,                   /* of a channel that are remembered */
    PAGE_ENTRIES = 256,
    MAX_OPERANDS_OF_ISSUE = 16,
    MAX_READS = 16,
    STATE_FIELDS = 64,
    STATE_OBJECTS = 4096               /* at most, of a state with count="*" */
};

/* ---- paged storage: address spaces are large, what is touched is small ---- */
struct pages {
    uint64_t *key;
    void **page;
    size_t cap, n, bytes;              /* bytes of one page */
    uint64_t last_key;
    void *last;
    size_t *total;                     /* of the verification: bytes of all pages */
};
void pages_init(struct pages *, size_t bytes, size_t *total);
void *pages_get(struct pages *, uint64_t key, bool *fresh);        /* zeroed when fresh */
void *pages_find(const struct pages *, uint64_t key);              /* or NULL */
void pages_free(struct pages *);

/* ---- tags ---- */
enum { ELEMENT_BITS = 40 };
enum tag_kind { TAG_UNDEFINED, TAG_CONST, TAG_DATA, TAG_INSIDE /* further bytes of the element before */ };
struct tag {
    uint64_t id;                       /* DATA: buffer << ELEMENT_BITS | element; CONST: the value's bits; INSIDE: id of the element */
    uint32_t count;                    /* DATA: contributions of the writer; INSIDE: how many granules before it starts */
    uint32_t step;                     /* DATA: the writer's step in the recurrences around it, numbered */
    uint32_t life;                     /* DATA of a buffer whose elements may be made again: which time this is */
    int16_t writer;                    /* DATA: statement that wrote it; -1: the caller */
    uint8_t kind, type;                /* as stored */
};

/* ---- what an instruction does with its operands, for one choice of sizes, strides and layouts ---- */
struct run { int64_t at, bytes; int instance; };   /* from the element with index 0, in the operand's first instance */
struct shape_operand {
    int64_t elements, *offset;         /* byte offset of each element; NULL: dense row-major */
    int32_t *instance;                 /* of each element, from the first one on; NULL: all in one */
    int64_t step[MAX_DIMS];            /* bytes from an element to the next one along a dimension, also behind its end; 0: not known (a layout) */
    struct swizzle swizzle;            /* of the addresses */
    int64_t low, high;                 /* bytes touched: low <= … < high; both 0 when nothing is */
    struct run *run; int nruns;        /* merged, ascending */
    bool reads, writes;
    int64_t buffer_bytes;
};
struct first { int64_t *at; int n; };  /* points, by number, at which an access is at an element for the first time */
struct shape {
    int instr;
    int64_t *key; int nkeys;
    struct program *bound;
    struct stmt *stmt;                 /* of the semantics: the one that computes */
    bool initialises;                  /* the semantics sets its destination to the neutral element first */
    int naxes, axis_of[MAX_AXES];      /* kernel axes, in order: axes of bound */
    int64_t extent[MAX_AXES];
    int64_t points, cost;              /* cost: steps of one issue */
    struct shape_operand operand[MAX_OPERANDS_OF_ISSUE];
    int read_operand[MAX_READS];       /* operand of each read of stmt */
    int dst_operand;
    int32_t *dst, *read[MAX_READS];    /* [points] element; -1: the fill (read), not executed (dst) */
    bool regular;                      /* all points are executed, none reads outside; elements of dst follow from the axes that move it */
    struct first first[1 + MAX_READS]; /* of dst and of each read, where regular */
    /* Of semantics with several statements, each as if it were alone (part[q].read_operand -1: what passes between them); `stmt` is then
     * what stmts_join makes of all. */
    struct shape *part; int nparts;
    struct shape *next;                /* in its bucket */
};

enum { SHAPE_BUCKETS = 1024 };
/* What instructions of a schedule look like. They are the same at all sizes of its program: who verifies it at several lends them. */
struct shapes {
    struct arena arena;
    struct shape **bucket;             /* [SHAPE_BUCKETS] */
    struct fit *fits;                  /* fit.h */
};
void verify_shapes_open(struct shapes *);
void verify_shapes_close(struct shapes *);

/* ---- which read of the program's statement an operand stands for ---- */
enum { SELF = -1 /* the destination before */, UNUSED = -2, OPEN = -3 /* while it is looked for */ };
struct candidate_of {
    int read[MAX_READS];               /* for each read of the semantics' statement: read of stmt, SELF or UNUSED (an immediate) */
    int self;                          /* what the accumulation of the semantics starts from, likewise; UNUSED: overwritten */
};
struct binding_of {
    int instr, stmt, part;             /* part: which statement of the semantics; -1: of several at once */
    bool overwrites;                   /* by flag, or because the semantics do not read their destination */
    union value imm[MAX_OPERANDS_OF_ISSUE];
    struct candidate_of *candidate;
    int n;                             /* 0: the instruction does not compute the statement */
    bool more;                         /* there may be others that fit an issue */
    bool sampled;                      /* of some it is known at random points alone */
    struct binding_of *next;
};

/* ---- clocks ---- */
/* With `completes` it stands for the instructions of the queue that are done only after that sync: they begin after what the queue knows,
 * and the queue itself learns of their end from the sync alone. */
struct queue_instance {
    int queue;                         /* -1: a fallback without one, which hardware orders */
    int completes;                     /* sync; -1 */
    uint16_t generation;               /* of the iteration of a virtual unit in which it was met; 0: outside */
    bool left;                         /* that iteration is over: another may take its number, and counts on */
    int64_t *inst;                     /* [nunits] instances in which it was met */
    uint32_t clock[MAX_QUEUES];        /* what of each queue is known to be finished */
};
struct epoch { uint32_t clock; int16_t queue; uint16_t generation; };   /* clock 0: none */
struct granule { struct epoch write, read[4]; uint32_t crowd; };    /* crowd: 1 + barriers passed when more read it than fit */

struct last_point { uint64_t n; uint32_t life; };   /* number along the axes in order; life of the element that it went into */
struct token { uint32_t *clock; int n; };          /* of the queues that there were: n */
struct group {                         /* of one queue: what the last groups that it closed say, by number */
    int queue;                         /* instance */
    int64_t n, waited;                 /* closed so far; known to be complete by some pop */
    uint32_t *clock[MAX_GROUPS];
    struct group *next;
};
struct token_channel {
    int sync, channel, instance;
    struct token *token; int first, n, cap;   /* not yet taken: token[first .. first + n) */
    int64_t pushes, pops;
    struct epoch given, taken;         /* the last ones */
    struct epoch *popped;              /* [depth], of a sync held in memory: by number, who took the token */
    struct group *groups;
    struct token_channel *next;
};

struct recurrence {
    int axis, parent, level, first, last; /* statements order[first .. last); level: how many are around it */
    bool reverse;
    int64_t steps;
    bool *seen;                        /* [steps + 1] by number in the order of execution: visited so far */
    int64_t *before; bool stale;       /* [steps + 1] the last one visited before; -1 */
};
struct writer_list { int *at, n, cap; };      /* positions in the order, ascending */

struct flat {                          /* Σ coef * axis + constant: the element, where `inside` */
    const struct access *access;
    bool inside;
    int n, *axis;
    int64_t *coef, constant;
};

struct size_range;

struct verify {
    const struct schedule *s;
    const struct machine *m;
    const struct program *p;
    struct diags *diags;
    struct arena arena;
    int64_t trips, plain_trips, steps; /* plain: of loops that turn no slots */
    int errors;
    bool stop;
    bool guesses;                      /* schedule_prove_guessing */
    bool follows_all;                  /* of every buffer; set before */
    struct text limit;                 /* which of its limits the verifier met first */
    int sampled;                       /* pairs of an instruction and a statement that were compared at random points alone */
    bool counting, clamped, prepare;
    bool in_entry;                     /* hardware loops are around: signals belong to the whole */
    size_t page_bytes;

    const struct size_range **ranges;  /* [ninstrs] of their sizes, once asked for (site.c) */
    int64_t *var;                      /* values of loop variables */
    bool *may_repeat, *repeats;        /* [nbuffers] temporaries that never go home: their elements may be made again, from the start; some are */
    uint32_t lives;                    /* begun so far */
    struct pages life;                 /* statement, instance -> the life that it last added to */
    uint64_t *in_order;                /* [nstmts] axes of a sum along which the order of its points counts */
    struct pages last;                 /* statement, point along its other axes -> struct last_point */
    bool *goes_round;                  /* [nvars] what an iteration finds depends on the one before: never cut short */
    bool *moved;                       /* [nvars] begins at a bound that is moved inside an extent */
    bool *live;                        /* those of the loops around */
    int64_t *inst;                     /* [nunits] instance that is walked */
    const struct node *node;           /* for messages */
    struct pages slots;                /* place, instance -> slot + 2; 0: not rotated yet */
    bool *loose;                       /* [nbuffers] written by a call, or where a recurrence has states of its own: contents are not followed */
    bool *loose_stmt;                  /* [nstmts] inside such a recurrence */
    struct recurrence *recurrence; int nrecurrences, recurrence_cap;
    int *recurrence_of;                /* [nstmts + 1] innermost; -1. The last: the end of the program */
    int *home;                         /* [nbuffers] its home; -1 */
    struct section_uses *uses[2];      /* of prepare, of run */
    int *order, norder, *position;     /* statements in program order; [nstmts + 1] place of each there */
    struct writer_list *written;       /* [nbuffers] */
    uint64_t *domain;                  /* [nstmts] axes whose values number the instances */
    struct flat **flat;                /* [nstmts][1 + nreads] destination, reads */
    bool renamed;                      /* bytes are named by their addresses before swizzles (swizzle.c) */
    int *granule;                      /* [nmemories] bytes of a tag's entry */
    int *word;                         /* [nmemories + nstates] bytes of a race granule; states come after the memories */

    struct shapes *shapes, own_shapes; /* own: where nobody has lent any */
    struct binding_of *bindings;

    int64_t **home_stride;             /* [nplaces] of layouts, once an element of the place was looked for */
    struct pages tags, counts, instances, races;
    struct stretches *stretch;         /* [nmemories + nstates] in the place of races, in the walk of order.c; else NULL */
    int64_t *done;                     /* [nstmts] instances executed, all; only those of the walk that counts */
    bool *skipped;                     /* [nstmts] some instance was left out by clamping */
    struct zeroed { int place; } *zeroed; int nzeroed, zeroed_cap;
    struct pages visited;              /* statement, axis, value -> executed */
    int64_t *nvisited;                 /* [nstmts * naxes] values */

    struct state_now *states;
    bool races_matter;
    struct queue_instance *queue[MAX_QUEUES]; int nqueues;
    struct token_channel *channels;
    uint32_t barriers, at_barrier[MAX_QUEUES];
    uint16_t generation, generations;  /* of the iteration that is walked; handed out so far, and then again from 1 */
    const uint32_t *begin;             /* [MAX_QUEUES] what was known when that iteration began */
    bool *shared;                      /* [nunits] by a parallel loop around */
    int nshared;
};

enum { VIRTUAL_INSTANCES = 4096 };      /* of a unit that may have more instances than the hardware */

/* print.c */
bool verify_error(struct verify *, const char *fmt, ...) __attribute__((format(printf, 2, 3))); /* false; names the node */
/* What the verifier cannot do, which says nothing about the schedule: it stops. False. */
bool verify_limit(struct verify *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* verify.c */
bool verify_step(struct verify *, int64_t n);                       /* false: too many */
int64_t verify_instance(const struct verify *, int unit);           /* number of the walked instance of the unit, over the machine */
void verify_rotate(struct verify *, int place);
int verify_slot(struct verify *, int place);                        /* that is current in the walked instance */

/* What a verification needs, in this order; fill_tables and verify_structure report. */
void verify_open_tables(struct verify *);
bool verify_fill_tables(struct verify *);
void verify_fill_granules(struct verify *);
void verify_rename_swizzled(struct verify *); /* sets `renamed`: before the first shape */
void verify_close_tables(struct verify *);
void verify_at(struct verify *, const int64_t *size);               /* all of it, with these values of the open sizes */
enum { VERIFY_LENGTHS = 5 };
int64_t verify_most_slots(const struct schedule *);
int64_t size_group(const struct program *, int size);   /* steps that end at this size are counted in groups of so many; 1 */
int64_t *verify_length(const struct schedule *, int k);             /* the values of open sizes that stand for all, as far as their ranges allow; k < VERIFY_LENGTHS. To be freed */

/* One issue, all expressions evaluated: what names and functions of the machine's expressions mean there. */
struct place_at { int memory, instance; int64_t address; };
struct site {
    struct verify *v;
    const struct issue_node *n;
    const struct shape *h;
    const int64_t *size, *stride, *flag;
    const struct place_at *at;         /* [noperands] */
};

/* site.c */
struct mexpr_env site_env(struct site *);
bool site_check_sizes(struct verify *, const struct instr *, const int64_t *size);
bool site_check_flags(struct verify *, const int64_t *flag, int n);
bool site_check_rule(struct site *, int k);                            /* the k-th */
bool site_check_requires(struct site *);
bool site_check_alignment(struct site *, int operand);
bool site_check_bounds(struct site *, int operand);
/* The operand's memory as the instruction names it: a cache stands for what it caches. */
const struct memory *site_memory(const struct verify *, const struct operand *, int memory);

/* state.c */
bool state_index_legal(const struct verify *, int state, int64_t index);
void state_forget(struct verify *);                                 /* a section begins */
void state_configure(struct verify *, const struct configure_node *);
bool state_needs(struct site *);                                    /* each need of the instruction holds */
void state_races(struct site *, int qi);
void state_remains(struct site *);                                  /* copies of operands that stay in a unit */
void state_remains_races(struct site *, int qi);

/* structure.c: indices, sizes, places; everything that the walk relies on. */
bool verify_structure(struct verify *);

/* uses.c */
void uses_tables(struct verify *);                                  /* homes too */
int uses_first(const struct verify *, bool prepare, int place);     /* index of the first node of that section that uses it; -1 */
bool uses_check_overlaps(struct verify *);                          /* no two places share bytes while both are in use */

/* filled.c */
bool places_filled(struct verify *);                                    /* those that are read */

/* written.c: no statement surely reads a buffer before anything of it is written. */
bool reads_written(struct verify *);

/* cost.c */
void limit_trips(struct verify *);                                  /* where a walk of so many would take long */
double verify_points(struct verify *);                              /* of all issues and fallbacks, about */
int64_t loop_trips(const struct verify *, const struct loop_node *); /* most iterations that are walked; 0: all */

/* clamp.c: with loops cut short, the instances that their values give are executed. */
void verify_visited(struct verify *);

/* total.c: and as many as the whole schedule must execute, counted by axes. */
void verify_totals(struct verify *);

/* shape.c */
const struct shape *shape_get(struct verify *, const struct issue_node *, const int64_t *size, const int64_t *stride);
/* What a name means in an instruction's expressions: let values, free strides, sizes, parameters. The layout may be NULL. */
bool shape_name(const struct machine *, const struct instr *, const struct operand_layout *, const int64_t *size, const int64_t *stride,
                const char *name, double *out);
int64_t shape_offset(const struct shape *, int operand, int64_t element);   /* bytes */
int32_t shape_instance(const struct shape *, int operand, int64_t element); /* from the operand's first */

/* table.c: the entries that a loop over a table walks stand there; queue qi reads them. */
bool table_walk(struct verify *, const struct hardware *, int64_t trips, int qi);
/* Where they stand when the operands are in these slots (-1: for each slot), at most `most` places: how many; -1: not for each choice. */
int table_firsts(struct verify *, const struct hardware *, int64_t trips, const int *slot, int64_t *first, int most);

/* join.c: an issue that executes several statements */
void content_joined(struct verify *, const struct issue_node *, const struct shape *, const struct place_at *);

/* alike.c: it is proved that under that assignment both compute one value. first: of each read of the statement the first one of its
 * element. */
bool candidate_proved(const struct verify *, const struct shape *, const struct stmt *, const int *first, bool overwrite, const union value *imm,
                      const struct candidate_of *);

/* match.c */
struct binding_of *binding_get(struct verify *, const struct shape *, const struct issue_node *, bool overwrite);
/* May a read of the semantics (SELF: what its accumulation starts from) stand for this read of the statement (SELF: the destination before), as
 * far as what lies in the issue's operand says? One more way all of whose reads may, where those known do not fit; NULL: none. */
typedef bool operand_fits(void *user, int input, int target);
const struct candidate_of *binding_fitting(struct verify *, const struct shape *, const struct issue_node *, struct binding_of *,
                                           operand_fits *, void *user);
bool stmt_is_neutral_fill(const struct program *, const struct stmt *fill, const struct stmt *reduction);
/* The value of the needle's operation where some operands hold known constants. False: not known. */
bool shape_value(const struct shape *, const struct tag *read, union value *out);   /* read[r]: tag of read r */

/* access.c */
void access_tables(struct verify *);
int64_t access_at(const struct verify *, int stmt, int read, const int64_t *at);

/* tags.c */
uint64_t granule_key(int memory, int instance, int64_t page);       /* of pages of granules or entries */
struct tag tag_get(struct verify *, struct place_at, enum type);
void tag_set(struct verify *, struct place_at, enum type, struct tag);
void tag_copy(struct verify *, struct place_at to, struct place_at from, enum type);   /* as it is, even a part of an element */
struct tag tag_element(int buffer, int64_t element, int writer, uint32_t count, enum type);
struct tag tag_const(enum type, union value);
struct place_at home_of(struct verify *, int place, int64_t element);
bool instance_marked(const struct verify *, int stmt, uint64_t number);
uint32_t *count_at(struct verify *, int stmt, const int64_t *at, int64_t element);   /* in the step of point `at` */
uint32_t count_of(const struct verify *, int stmt, const int64_t *at, int64_t element);
bool counts_page(const struct verify *, int stmt, int64_t element); /* something near the element was counted (no recurrence around) */
bool instance_mark(struct verify *, int stmt, uint64_t number);     /* false: marked before */
bool instance_live(struct verify *, int stmt, uint64_t number, uint32_t life); /* false: added to that life before */
/* The version of the element that statement `stmt` at point `at` (nstmts: the caller, afterwards) must see. False: nothing wrote it. */
bool version_before(struct verify *, int stmt, const int64_t *at, int buffer, int64_t element, struct tag *out);
bool tags_zero_place(struct verify *, int place);
void tag_text(const struct verify *, const struct tag *, struct text *);
void element_text(const struct verify *, int buffer, int64_t element, struct text *);

/* steps.c */
bool steps_tables(struct verify *);
int64_t step_at(const struct recurrence *, const int64_t *at);
uint32_t step_number(const struct verify *, int stmt, const int64_t *at);
void step_visit(struct verify *, int stmt, const int64_t *at);
bool step_writes_before(const struct verify *, int stmt, int buffer);   /* some statement may write it before this one */

/* point.c: one instance of a statement. What is wrong is reported with it; false then. */
bool point_in_domain(const struct verify *, int stmt, const int64_t *at);
bool point_error(struct verify *, int stmt, const int64_t *at, const char *what, const struct tag *found, const struct tag *expected);
bool point_left_out(struct verify *, int stmt, const int64_t *at, bool overwrite);   /* its inputs were not visited */
bool point_count(struct verify *, int stmt, const int64_t *at, int64_t element);     /* the walk that counts: it is executed */
/* The same for a box of instances at once, and for the elements that they write, `times` each. */
struct walked { const int64_t *base; int naxes; const int *axis; const int64_t *extent; };
bool point_count_box(struct verify *, int stmt, const struct walked *);
bool point_box_is_new(const struct verify *, int stmt, const struct walked *);       /* none of it was executed before */
bool point_count_element(struct verify *, int stmt, const int64_t *at, int64_t element, uint32_t times);
bool tag_same(const struct tag *, const struct tag *);
bool point_expected(struct verify *, int stmt, int read, const int64_t *at, struct tag *out);
bool point_check_read(struct verify *, int stmt, int read, const int64_t *at, const struct tag *found);
bool point_check_partial(struct verify *, int stmt, const int64_t *at, int64_t element, const struct tag *found);
/* False: the instance has added to what the destination holds before. */
bool point_after(struct verify *, int stmt, const int64_t *at, int64_t element, const struct tag *before, struct tag *out);

/* content.c */
void content_issue(struct verify *, const struct issue_node *, const struct shape *, const struct place_at *, const int64_t *flag);

/* fallback.c */
void content_fallback(struct verify *, const struct fallback_node *, const int64_t *lo, const int64_t *hi);
void content_end(struct verify *);

/* race.c */
void race_init(struct verify *);
int race_queue(struct verify *, int queue, int unit);               /* queue -1: of a fallback without one, on `unit` */
int race_behind(struct verify *, int qi, int completes);            /* what runs behind the queue until that sync; -1: nothing so far */
int race_start_behind(struct verify *, int qi, int completes);      /* starts an instruction there */
bool race_same(const struct verify *, const int64_t *a, const int64_t *b, int unit);
bool race_knows(const struct verify *, int qi, struct epoch);       /* it has happened before what qi does now */
void race_join(struct verify *, uint32_t *clock, const uint32_t *other);
const char *race_name(const struct verify *, int qi);
bool race_granule(struct verify *, struct granule *, int qi, struct place_at, bool write);
void race_forget(struct verify *);
void race_access(struct verify *, int qi, struct place_at, int64_t bytes, bool write);

/* phase.c: all that the order of queues to come depends on, wherever the same: what follows is as right, and comes to the same again. */
struct phase { int64_t *at; size_t n; };
void phase_take(struct verify *, struct phase *out);                /* at: grown; to be freed */
bool phase_same(const struct phase *, const struct phase *);

/* sync.c */
bool sync_objects_fit(struct verify *);
void race_begin(struct verify *, int qi, const struct signals *);   /* pops; starts an instruction */
void race_push(struct verify *, int qi, const struct signals *);
void race_tokens_left(struct verify *);                             /* at the end of a section there are none */
void race_tokens_free(struct verify *);
uint16_t race_enter(struct verify *);                              /* an iteration of a virtual unit: its generation, returns that around */
void race_leave(struct verify *, uint16_t around);
void race_barrier(struct verify *);                                 /* of the instances that are walked */
void race_section_end(struct verify *);

#endif
