/* Inside the clock. walk.c turns the tree into instructions in program order; order.c says what
 * hardware makes each wait for; time.c gives it its start and end; shape.c knows its operands;
 * image.c says which memories there are, and who uses which piece of them. */
#ifndef ISAMAP_SCHEDULER_CLOCK_CLOCK_INT_H
#define ISAMAP_SCHEDULER_CLOCK_CLOCK_INT_H

#include "scheduler/clock/clock.h"
#include "scheduler/clock/marks.h"
#include "scheduler/schedule/launches.h"

enum {
    SIM_SIZES = 16,
    SIM_OPERANDS = 16,
    SIM_STRIDES = 8,
    SIM_SHAPES = 8,
    SIM_GAPS = 64,
    SIM_USES = 64,
    SIM_INSTANCES = 1024,
    SIM_SIGNALS = 16,
    SIM_PAST = 4096 /* instructions whose times a queue remembers */
};

struct engine;

/* ---- what memories contain: one array of bytes for each memory and instance of its unit ---- */
struct image {
    uint8_t *byte;  /* NULL where nobody executes */
    int64_t bytes; /* as far as places reach; all beyond is an error of the schedule */
    int64_t piece; /* bytes of a granule */
    struct marks marks; /* who used its granules */
};

/* A pop or push, resolved in program order. A token's number is its own among the channel's, not
 * used; a group's: of the group that is closed, or how many groups the pop waits for. */
struct given {
    int channel;
    int64_t number;
};

/* ---- one executed instruction, all expressions evaluated ---- */
/* The fields of a configure's settings, one after the other. Those of configures that have not run
 * are freed with the engine. */
struct setting {
    struct setting *before, *next;
    int64_t value[];
};

struct executed {
    const struct node *node;
    int queue;                /* -1: none; done at once */
    int64_t sequence, number; /* in program order, and in its queue from 1 */
    double dispatched;
    uint64_t mark; /* of all that stays while it waits (snapshot.c); 0: not asked for yet */
    int64_t size[SIM_SIZES], stride[SIM_STRIDES], flag[SIM_OPERANDS];
    int64_t address[SIM_OPERANDS];      /* in the operand's memory; immediates: unused */
    int64_t iterations;                 /* of the hardware loops around it, all; 1 without */
    int nloops;                         /* of these, outermost first: how often, and how far each operand moves; bytes */
    int64_t trips[MAX_HARDWARE_LOOPS], move[MAX_HARDWARE_LOOPS][SIM_OPERANDS];
    const struct entries *entries;      /* of the loop over a table's entries, the innermost; NULL */
    int64_t lo[MAX_AXES], hi[MAX_AXES]; /* fallback: the box */
    int64_t work;                       /* points of the program's statement that it executes */
    int instance;                       /* of the parallel loops around it */
    struct setting *setting; /* configure: what it sets */
    int64_t *after; /* [nqueues]: how many of each queue must have run first; in the queue's room */
    /* [nqueues], on machines with fences or barriers: up to which of each queue must have left it,
     * and be visible */
    int64_t *left, *seen;
    struct given pop[SIM_SIGNALS], push[SIM_SIGNALS];
    int64_t also_macs, also_operations;  /* of the other statements of the issue */
};

/* How far the operands lie from where the first entry of a table has them, in each entry; bytes. */
struct entries {
    int64_t n, *move;                   /* [n][noperands] */
    int noperands;
    int64_t lo[SIM_OPERANDS], hi[SIM_OPERANDS]; /* least and most */
    struct entries *next;
};

enum { ENTRIES_KEY = 48, ENTRIES_KEYS = 1024 };
struct entries_key { /* of a loop, and what its entries depend on */
    const struct loop_node *loop;
    int64_t value[ENTRIES_KEY];
    int n;
    const struct entries *entries;
};

/* A piece of a memory, or of a state (memory nmemories + state), that an instruction uses. */
struct use {
    int memory;
    int64_t address, bytes;
    bool reads, writes, unread; /* unread: nobody reads what it writes there (touch.c) */
};

/* One operand of a shape: which elements from the operand's address on it covers. */
struct reach {
    int buffer; /* of the semantics */
    int64_t elements;
    int64_t lo, hi;  /* elements from its address to the first and the last; hi < lo: none */
    int64_t *offset; /* element -> element offset; NULL: dense, or not needed so far */
    int32_t *instance; /* element -> instance of the memory, from the operand's first; NULL: all in one */
    struct swizzle swizzle; /* of its addresses */
    uint8_t *data;   /* row-major; made when values are computed */
};

/* The operands' shape for one instruction and one choice of sizes and strides. */
struct shape {
    bool valid, ready; /* ready: offset and data are made */
    int64_t size[SIM_SIZES], stride[SIM_STRIDES];
    int alternative[SIM_OPERANDS];
    struct program *program; /* the semantics, bound */
    struct reach reach[SIM_OPERANDS];
    void **by_buffer; /* for program_run */
    double latency, interval, overhead, energy;
};

struct span {
    double start, end;
};

/* One of a queue's `width`. In order: free from then on. Out of order: busy then, free before and
 * between, but not before `from`. */
struct server {
    double free, from;
    struct span busy[SIM_GAPS];
    int n;
};

struct queue_time {
    struct server *server; /* [width] */
    struct executed *fifo;
    int64_t *after;  /* [room][3][nqueues]: of each executed after, left and seen */
    double *started; /* [room]: when the instruction that had this room before left the queue */
    int head, count, room;
    int64_t dispatched, ran;
    double last_start, visible; /* visible: all results so far */
    double arrived; /* with random latencies: the last of what it got from buses */
    double *left, *seen; /* [SIM_PAST] by number: when all up to it had left, and were visible */
    int64_t *barrier;    /* [nqueues]: what enters from now on comes after those of that queue */
};

struct sync_time {
    double *at; /* tokens: when each arrives. Groups: when it and all before are complete */
    int head, count, room; /* groups: those up to `count` are known to be complete */
    int64_t dispatched;    /* pushes so far, in program order */
};

struct size_range {
    int64_t lo, hi, step; /* step 0: not known yet, -1: any size */
};

/* A use of a memory that a later instruction may wait for. */
struct touch {
    struct image *image;
    int64_t address, bytes; /* in the memory; what moves by no whole pieces is in others each time */
    const struct node *node;
    int use;             /* which of the instruction's */
    int64_t number;      /* entered: of the instruction in its queue. Ran: 0 */
    double visible, end; /* ran */
    int queue;
    bool reads, writes;
};

struct touches {
    struct touch *at;
    size_t n, cap;
    size_t hot; /* those before it can delay nothing */
    bool lost;  /* there were too many */
};

/* Computes what the clock times. Each returns false after reporting. */
struct executor {
    bool (*begin)(struct engine *), (*end)(struct engine *); /* of the whole program */
    bool (*execute)(struct engine *, const struct executed *); /* issues and fallbacks, as they run */
    bool (*zero)(struct engine *, int place);                  /* the place's bytes */
    /* Beside a device that somebody else runs: this step, and then all that it was given. NULL:
     * everything is executed here. */
    bool (*takes)(const struct engine *, const struct node *);
    bool (*step)(struct engine *, const struct node *);
    bool (*run)(struct engine *);
    void *user;
};

struct engine {
    const struct schedule *schedule;
    const struct machine *machine;
    const struct clock_options *options;
    const struct executor *executor; /* or NULL */
    struct sim_result *result;
    struct diags *diags;
    struct arena arena;
    struct setting *settings; /* of configures that have not run */
    struct image **image;     /* [nmemories + nstates][instances of its unit] */
    int64_t *images;          /* [nmemories + nstates] */
    struct state_values **state; /* [nstates][instances] */
    struct shape *shape;      /* [ninstrs][SIM_SHAPES] */
    int *shape_next;          /* [ninstrs]: which is given up next */
    struct queue_time *queue; /* [nqueues] */
    struct sync_time *sync;   /* [channels of all syncs] */
    bool launching; /* what is walked are launches and loops of the host around them */
    bool meets;               /* there are fences or barriers */
    int *channel, nchannels;  /* [nsyncs + 1]: where a sync's channels begin */
    bool *is_host, joined;    /* queues of a host beside a device take no device time */
    uint64_t *interlocked; /* [nqueues]: queues whose use of memories hardware makes it wait for */
    uint64_t relied;       /* queues that some queue waits for so */
    uint64_t led;          /* those that another one waits for */
    bool tracks;           /* some queue is interlocked */
    struct size_range *range; /* [ninstrs][SIM_SIZES] */
    double *bus_free, floor, end;
    double *bus_left; /* [nbuses]: share of its rate that instances walked before leave to this one */
    int64_t *value; /* of the schedule's variables */
    int64_t *slot;  /* [nplaces]: current slot; -1 before the first rotate */
    int64_t *unit_instance, *unit_active, *unit_used; /* [nunits] */
    int *zero_at; /* [nplaces]: node of the section before which a padded home becomes zero; -1 */
    int64_t sequence, first, steps, limit; /* first: of the section whose time counts */
    double most;                           /* cycles; no end is ever earlier than one before it */
    int instance;
    struct entries *entries;   /* all that were met */
    struct entries_key *keys;  /* [ENTRIES_KEYS] of those met last */
    int64_t *moves;            /* room for the next ones */
    size_t moves_cap;
    bool counting, failed;
    uint64_t order; /* state of the random order; 0: by time */
    uint64_t latency; /* state of random latencies */
    size_t times_cap;
    bool preparing;
    bool walks;      /* every instruction is walked */
    bool exact;      /* some queue in order waits for what others do with memories */
    bool ahead;      /* what the host does beside a device runs as soon as it can */
    bool eager;      /* all queues are out of order: what enters runs */
    bool skipped;    /* states are not those of the program any more */
    int followed;    /* loops that are being followed now */
    struct touches touches;
    bool *unread; /* [nplaces], of touch.c; NULL */
    int64_t written, saved; /* numbers of all snapshots; steps that they have spared, about */
    struct moving *steady_var; /* [schedule.nvars], of steady.c */
    bool *steady_inside;
    struct follow *follow; /* those followed; its room is used again */
    int nfollows;
    struct output *trace_output;
    FILE *trace; /* its file */
    bool traced;
};

/* image.c */
bool images_open(struct engine *);
void images_close(struct engine *);
struct image *image_of(struct engine *, int memory); /* of the current instance; NULL: no room */
struct image *image_at(struct engine *, int memory, int64_t further); /* so many instances further on */
int64_t image_instance(const struct engine *, int memory);
void images_forget(struct engine *); /* all that was written is visible at 0 */
/* The same for the memories inside a unit: the next of its instances stands elsewhere. */
void images_renew(struct engine *, int unit);

/* shape.c */
const struct shape *shape_of(struct engine *, const struct node *, const struct executed *);
/* In elements, one for each that the layout of operand o names. */
bool shape_strides(struct engine *, const struct node *, const struct shape *, int operand, int64_t *stride);
void shapes_close(struct engine *);
bool shape_number(struct engine *, const struct executed *, const struct shape *,
                 const struct mexpr *, int64_t *out); /* an expression of the instruction */
void configure_cost(struct engine *, const struct configure *, double *overhead, double *interval,
                    double *latency);
double shape_interval(struct engine *, int instr, const int64_t *size);

/* state.c */
int64_t slots_kept(const struct machine *, int state);
void states_open(struct engine *);
void states_forget(struct engine *);
bool configure_evaluate(struct engine *, const struct node *, struct executed *);
bool configure_execute(struct engine *, const struct executed *); /* frees x->setting */
void settings_free(struct engine *);                              /* of those that never ran */
bool needs_hold(struct engine *, const struct executed *, const struct shape *);
int configure_uses(const struct engine *, const struct configure_node *, struct use *);
int need_uses(const struct engine *, const struct executed *, struct use *);
int remains_uses(const struct engine *, const struct issue_node *, struct use *);

/* box.c */
struct program *boxed(const struct program *, int stmt, const int64_t *lo, const int64_t *hi);
int64_t box_points(const struct program *, int stmt, const int64_t *lo, const int64_t *hi);

/* walk.c */
bool dispatch(struct engine *, struct executed *); /* to its queue, or at once beside a device */
bool walk_section(struct engine *, const struct section *);
bool count_step(struct engine *);
int64_t value_of(const struct engine *, const struct sx *);
const struct size_range *range_of_size(struct engine *, int instr, int size);
bool sizes_of(struct engine *, const struct node *, struct executed *);
bool address_of(struct engine *, const struct node *, const struct shape *, int operand, int64_t *address);
/* Do times depend on where its operands lie, or are they to be checked? */
bool addresses_count(const struct engine *, const struct executed *);
int64_t issue_work(const struct engine *, const struct issue_node *, int stmt, const struct shape *);
/* Statements that an issue executes beside its own, in one iteration. */
void also_work(const struct engine *, const struct shape *, struct executed *);

int64_t trips_of(const struct engine *, const struct loop_node *);
/* Iterations [first, last) of it; lo: the variable in the first of all. */
bool walk_trips(struct engine *, const struct loop_node *, int64_t lo, int64_t first, int64_t last);

/* parallel.c */
bool walk_parallel(struct engine *, const struct loop_node *);

/* period.c */
struct follow *follow_open(struct engine *, const struct loop_node *, int64_t first, int64_t trips);
/* How many of the trips that begin with this one are done at once. */
int64_t follow_head(struct engine *, struct follow *, int64_t trip);
void follow_close(struct engine *, struct follow *);
void follows_free(struct engine *);

/* hardware.c */
bool walk_hardware(struct engine *, const struct loop_node *);

/* order.c */
void order_enter(struct engine *, const struct executed *); /* in program order: fills x->after */
bool order_ready(const struct engine *, const struct executed *);
double order_visible(struct engine *, const struct executed *);
void order_ran(struct engine *, const struct executed *, double end, double visible);

/* signals.c */
const struct signals *signals_of(const struct node *);
bool signals_are_host(const struct engine *, const struct executed *);
void signals_open(struct engine *);
bool signals_enter(struct engine *, struct executed *); /* in program order */
bool signals_ready(const struct engine *, const struct executed *, double *at);
bool pop_time(const struct engine *, const struct executed *, int i, double *at);
void signals_take(struct engine *, const struct executed *, double at, double could);
void signals_give(struct engine *, const struct executed *, double at);
void signals_ran(struct engine *, const struct executed *, double end, double visible);
void signals_forget(struct engine *);

/* copy.c */
double fallback_interval(const struct engine *, int fallback, const struct stmt *); /* cycles for a point */

/* time.c */
bool time_dispatch(struct engine *, struct executed *);
bool time_drain(struct engine *);
void time_reset_queues(struct engine *, double floor);

/* report.c */
const char *node_name(const struct engine *, const struct node *);
void count_work(struct engine *, const struct executed *);
void count_host(struct engine *, const struct node *, double cycles); /* of the host, beside a device */
void note_times(struct engine *, const struct executed *, double start, double end);
void trace_event(struct engine *, const struct executed *, double start, double end);
bool trace_open(struct engine *);
void trace_close(struct engine *);
void count_utilisation(struct engine *);

bool engine_error(struct engine *, const struct node *, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
