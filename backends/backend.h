/* Backends: a schedule becomes code. One const struct each, listed in one array. A backend reads schedule.h and the machine, nothing else; it
 * decides nothing. docs/backends.md says what is generated. */
#ifndef ISAMAP_BACKENDS_BACKEND_H
#define ISAMAP_BACKENDS_BACKEND_H

#include "ir/cache.h"
#include "scheduler/schedule/schedule.h"

/* Where the constants are whose content is known when code is written. */
enum weights { WEIGHTS_ARGUMENTS, WEIGHTS_EMBED, WEIGHTS_FILE, WEIGHTS_PLACES };
extern const char *const weights_name[WEIGHTS_PLACES];

struct stream_state;

struct backend_options {
    const char *target;            /* another CPU: "x86-64-v4"; or NULL: the machine's features on this kind of CPU */
    const char *keep;              /* folder where generated text is left for reading; or NULL */
    enum weights weights;          /* of code that is written: embedded (.so, .o), or in OUT's name with .weights */
    const void *const *data;       /* [schedule.program.nbuffers] content of constants that is known; NULL: not. For EMBED and FILE */
    const struct stream_state *state; int nstates;   /* buffers of schedule.program: entries for streams carry them from run to run */
    bool counted;                  /* steps of a stream count on from run to run (ir/stream.h) */
    const struct cache *cache;     /* load: machine code of earlier calls (ir/cache.h); or NULL */
    bool profile;                  /* code that is loaded keeps the times of its parts (executable_parts) */
    struct text *report;           /* gets lines about the code: registers of a device's kernels; or NULL */
    const char *const *title;      /* [schedule.program.nbuffers] names that a header gives instead of the program's; NULL: none */
};

struct executable;                 /* code that runs in this process */

struct backend {
    const char *name, *doc;
    const char *const *suffixes;   /* what write() can make: ".so", ".o", ".s", ".ll", ".c", … ; NULL-terminated */
    bool (*accepts)(const struct schedule *);                  /* every instruction used has an emit, and every fallback a language, that it speaks */
    bool (*write)(const struct schedule *, const char *path, const struct backend_options *, struct diags *);  /* by suffix; .so and .o also write NAME.h beside it */
    struct executable *(*load)(const struct schedule *, const struct backend_options *, struct diags *);       /* NULL after reporting */
};

extern const struct backend *const backends[];                 /* NULL-terminated, best first */

/* First backend that accepts the schedule (and can write the suffix, when one is given). NULL after reporting, naming what is missing. */
const struct backend *backend_find(const struct schedule *, const char *suffix, struct diags *);

/* data[b]: row-major array of buffer b of schedule.program for in, out, inout, const buffers; NULL for others. prepare once, then run as often
 * as wanted. The required features of the machine were checked by load(): never SIGILL. */
bool executable_prepare(struct executable *, void *const *data, struct diags *);
/* Before prepare: its memory holds what no program reads (NaN, -1), so that reading what was not written shows. */
void executable_scramble(struct executable *);
/* The program's sizes known only when it runs, for the runs that follow; before, they are the largest. */
void executable_sizes(struct executable *, const int64_t *size);
bool executable_run(struct executable *, void *const *data, int threads, struct diags *);
/* What a run executes one after the other. */
struct run_part {
    int first, n;                  /* nodes of the schedule's section `run` */
    const char *function;          /* its name in the code */
};
/* Of code loaded with `profile`. How many; 0: the backend keeps no times. */
int executable_parts(const struct executable *, const struct run_part **);
/* When the parts of the last run began and ended, in turns, by a counter of the processor. */
const uint64_t *executable_ticks(const struct executable *);
/* What a device took for the last run, without copies of arrays; negative: the code runs on this processor. */
double executable_device_seconds(const struct executable *);
/* The device makes the next run so many times, in turns over copies of all arrays that take `span` bytes together; its seconds are
 * then the median. False: the code runs on this processor. */
bool executable_device_rounds(struct executable *, int rounds, int64_t span);
int64_t executable_bytes(const struct executable *);           /* prepared + workspace */
void executable_free(struct executable *);

#endif
