/* Inside libisamap: the context, and one job (program × machine) on its way through the pipeline.
 */
#ifndef ISAMAP_COMMAND_ISAMAP_INT_H
#define ISAMAP_COMMAND_ISAMAP_INT_H

#include "ir/cache.h"
#include "isamap.h"
#include "command/report.h"
#include "approaches/approaches.h"
#include "backends/backend.h"
#include "ir/file.h"
#include "ir/interp.h"
#include "ir/npz.h"
#include "mapper/mapper.h"
#include "onnx/onnx.h"
#include "scheduler/scheduler.h"
#include "sim/sim.h"

struct pair {
    const char *name, *value;
};
struct pairs {
    struct pair *at;
    int n, cap;
};

enum { MAX_THREAD_COUNTS = 16 };

/* Of a device's DRAM, drawn evenly for each transfer; high 0: the machine's own. */
struct latencies {
    uint64_t low, high, seed;
};

struct options {
    const char *machine, *kernel, *output_dir, *approach, *rewrite, *allow, *decisions, *record, *trace, *profile_trace, *target, *weights, *compare, *log;
    const char *vs, *only; /* bench */
    struct pairs define, shape, op, input, param, size, set, state;
    int64_t steps; /* run: of a stream, each timed; 0 */
    struct latencies latencies;
    uint64_t seed;
    int threads; /* the first of thread_count */
    int thread_count[MAX_THREAD_COUNTS], nthreads;
    int contexts; /* copies in flight at most; bench: a second schedule with so many; 0 */
    int runs;      /* bench: rounds */
    int64_t batch; /* bench: 0: as the program says */
    double rtol; /* < 0: the bound of DESIGN §2 */
    bool verify, check, no_check, no_cache, strict, execute, json, why, all, certify, explain, no_values, walk, rtl, profile;
    bool plain; /* as in scheduler_options */
};

/* A diagnostic, kept for the result in JSON. */
struct note {
    const char *file, *text; /* file: or NULL */
    int line, column;        /* 0: not known */
    bool warning;
};

/* What a call is doing, in words. Two lines in turn: a signal handler of the thread reads whole ones. */
struct doing {
    char item[64]; /* "3/24 sq128"; "" when there is one thing to do */
    char line[2][128];
    int turn;
    const char *volatile now; /* one of line; NULL: nothing */
};

struct isamap {
    struct arena arena; /* of the options */
    struct options option;
    struct diags diags;
    struct report report;
    struct note *note; /* of this call; in the report's arena */
    int nnotes, notes_cap;
    struct text messages;
    struct doing doing;
    bool defect;   /* of isamap, met during this call */
    bool unmapped; /* with --strict: sums of products that no instruction executes */
    bool exhausted; /* as in struct diags, of this call */
    char last_message[160]; /* in place of messages, when there was no memory for them; "" */
    char last_result[240];  /* the same of the result as JSON */
};

/* One program on one machine. Everything that is not NULL is owned. */
struct job {
    struct arena arena;
    const char *path, *name;
    struct machine *machine;
    struct onnx_model *model;
    struct npz expected;   /* --compare; no arrays: it was not given */
    struct program *program, *own_program; /* own_program: NULL when the model owns it */
    struct program *shifted;   /* `program`, its unsigned bytes kept as signed ones; or NULL */
    struct program *fixed;     /* `program`, its requantisers in fixed point; or NULL */
    struct program *rewritten; /* what is compiled for `program`: after --rewrite; or NULL */
    struct program *sized; /* with the sizes below; NULL before job_sizes, or where there is none */
    int64_t *size;         /* those known only when the program runs */
    struct decider *decider;
    struct cover *cover;
    struct schedule *schedule;
    struct text explain;
    double compile_seconds, proof_seconds;
    enum proof proof; /* of the schedule */
    int proof_sampled; /* pairs of an instruction and a statement compared at random points alone */
    struct text proof_reason;
    struct chain_report chain;         /* of the program that the schedule carries, once it was checked */
    struct text chain_steps;           /* a line for each of its witnesses */
    double chain_seconds;
    bool keeps;  /* the schedule may be that of an earlier call, and is kept for later ones */
    bool cached; /* it is that of an earlier call */
    const struct cache *cache; /* where; NULL: not used */
};

enum machine_use { USE_RUN, USE_SIM, USE_MAP };

void job_init(struct job *, const char *path);
void job_free(struct job *);
bool job_machine(isamap *, struct job *, enum machine_use);
bool job_program(isamap *, struct job *);
bool job_fixed(isamap *, struct job *); /* an error where a size is open */
bool job_sizes(isamap *, struct job *); /* from --size, once compiled; program is at them then */
/* A model's program in the numbers of the device: signed bytes, fixed point. *floats: what rewrites may do to floats. */
bool job_adapt(isamap *, struct job *, enum rewrite_effect *floats);
bool job_cover(isamap *, struct job *); /* the cover alone */
bool job_compile(isamap *,
                 struct job *); /* machine and program are there: cover, schedule, check */

/* cached.c: schedules of earlier calls. NULL: they are not asked for, or there is no folder for them. The caller frees *key. */
const struct cache *cached_open(isamap *, struct job *, struct text *key);
bool cached_find(isamap *, struct job *, const struct cache *, const struct text *key); /* fills in schedule and proof, and repeats the warnings */
void cached_keep(const isamap *, const struct job *, int before /* diagnostics, when compiling began */, const struct cache *, const struct text *key);

/* The independent verifier on job.schedule: fills in proof. False after reporting: it refuses the schedule. */
bool job_check(isamap *, struct job *);
bool job_check_chain(isamap *, struct job *); /* its second half: of the program that the schedule carries */
/* The same for a schedule that isamap made, unless it is left out: a refusal is a defect, and the message says what reproduces it. */
bool job_prove(isamap *, struct job *);

bool is_argument(const struct buffer *);               /* in, out, inout or const */
const void *weights_of(const struct job *, int buffer); /* the model's own, of job.program; NULL */

/* Arrays for the buffers of job.program. */
struct arrays {
    void **data;
    bool *lent; /* constants whose bytes are somebody else's: the model's, or those of other arrays; NULL: none are */
    int n;
};
bool arrays_fill(isamap *, const struct job *, struct arrays *);
struct arrays arrays_copy(const struct job *, const struct arrays *);
void arrays_free(struct arrays *);
bool arrays_write(isamap *, const struct job *, const struct arrays *);
/* The same arrays by the buffers of schedule.program; free() the result, not what it points to. */
void **arrays_for_schedule(const struct job *, const struct arrays *);

/* A whole command: the job compiled, then executed (run, or simulated), with the arrays of its own that it leaves; its exit status. */
typedef int (*execute_fn)(isamap *, struct job *, struct arrays *in, struct arrays *got);
int job_execute(isamap *, const char *path, enum machine_use, execute_fn);

/* Compares outputs with the reference on the same inputs (docs/command.md, `--verify`). */
struct worst {
    const struct buffer *buffer; /* of job.program; NULL: every output is as expected */
    int64_t element;
    union value expected, got;
    double bound;
};
struct comparison {
    bool done, equal;
    bool too_many;                        /* undecided elements */
    double max_abs, max_rel;
    double max_of_bound;                  /* largest error in units of its element's bound */
    int64_t compared, wrong, undecided;   /* elements of outputs */
    int64_t sampled;                      /* compared, if not all were; 0 */
    int64_t steps;                        /* of a recurrence, the first ones, if not all were compared; 0 */
    struct worst worst;                   /* that element */
};
bool compare_with_interpreter(isamap *, const struct job *, const struct arrays *inputs,
                              const struct arrays *results, struct comparison *);
/* The same in two steps, for several results of the same inputs, which stay as they are. Above
 * `whole_macs` samples, or the first steps of a recurrence. NULL after reporting. */
struct reference;
struct reference *reference_make(isamap *, const struct job *, const struct arrays *inputs,
                                 int64_t whole_macs);
void reference_compare(isamap *, const struct reference *, const struct arrays *results,
                       struct comparison *);
void reference_free(struct reference *);

/* ---- instruction words (program_image.c) ---- */
bool job_speaks_bits(isamap *, const struct job *); /* reports when its machine has no bit fields */
/* What a device needs to run the program alone. False after reporting: there is host work. */
bool image_compile(isamap *, const struct job *, struct text *out);
bool image_show(isamap *, struct job *, bool schedule, struct text *out); /* job.path is an image */

/* ---- a device's model (device_run.c) ---- */
/* The device beside the machine file: the same words, simulated. */
struct agreement {
    int64_t instructions, differ; /* differ: that start or end in another cycle */
    double seconds;               /* processor time of the device's model */
};

/* Runs the compiled program on the model of its machine, host work here; `machine` is what the machine
 * file says of the same run. data[] as for sim_run. */
bool device_simulate(isamap *, const struct job *, void **data, const struct sim_result *machine,
                     const struct latencies *, struct agreement *, /* or NULL */
                     struct sim_result *out);
struct bits_launch;
struct device_record;
/* Adds what the device recorded of one launch, which began at cycle `since`; home: the memory's content
 * before it. False after reporting: words that cannot be simulated. */
bool launch_agrees(isamap *, const struct machine *, const struct latencies *,
                   const struct bits_launch *, const uint8_t *home, int64_t bytes,
                   const struct device_record *, size_t n, double since, struct agreement *);
/* Without high the machine's own latencies. */
void latencies_set(const struct latencies *, struct sim_options *);

/* ---- reports that several commands share (commands.c) ---- */
void report_head(struct report *, const struct job *);
void report_comparison(struct report *, const struct comparison *);
/* `done`: what a simulation counted; NULL: all of the program. */
void report_work(struct report *, const struct job *, const struct sim_result *done);

/* For each statement of the scheduled program the instruction that executes it; ninstrs: the
 * fallback; -1: it is executed once, before the first run. free() it. */
int *work_executors(const struct schedule *);
/* --compare (tensors.c): the model's tensors beside the file's. False: one differs. */
bool report_tensors(isamap *, struct job *, const struct arrays *got);
/* A model (model.c): what wrote it, its inputs, outputs and operators; where it was compiled, what
 * executes each operator, and the memory. */
void report_model(struct report *, const struct job *);

/* ---- where a run spends its time (profile.c) ---- */
/* Runs the code, which was loaded with `profile`, again and again and keeps the time of each of its parts,
 * and writes the trace. `seconds`: of the run before, which alone counts; NULL. NULL after reporting. */
struct profile;
struct profile *profile_make(isamap *, const struct job *, struct executable *, void **data,
                             const double *seconds);
void profile_report(struct report *, struct profile *);
void profile_free(struct profile *);

bool parse_size(const char *, int64_t *out); /* "512", "4K", "2M", "1G" */
bool write_text(isamap *, const char *path, const struct text *);
bool pairs_bindings(isamap *, const struct pairs *, const char *option, struct arena *,
                    struct bindings *);
double now_seconds(void);
/* simulate.c: of the device, which has a host beside it; else the machine's */
double device_clock(const struct machine *);
bool has_suffix(const char *, const char *suffix);
bool write_text(isamap *, const char *path, const struct text *); /* whole or not at all; false after reporting */

/* One call of isamap.h that is a command. */
struct api_call {
    const char *name;       /* of the function */
    const char *file, *out; /* names of the arguments that must not be NULL; NULL: there is none such */
    int (*run)(isamap *, const char *file, const char *out);
};
/* Around it: refuses NULL, clears the last result, turns diagnostics into messages, a clean status with errors into ISAMAP_INPUT, and
 * the end of memory into ISAMAP_RESOURCES. */
int call_run(isamap *, const struct api_call *, const char *file, const char *out);
/* The same in two halves, for a call with another result; memory's end is the caller's. */
void call_begin(isamap *);
int call_end(isamap *, int status);
int call_out_of_memory(isamap *, size_t wanted); /* the scope is closed: what the call had is gone; leaves a message */
/* From now on the call does this: "planning". */
void doing(isamap *, const char *phase);
void doing_item(isamap *, int at, int all, const char *name);
void messages_take(isamap *); /* diagnostics become messages now: what follows starts without errors */

#endif
