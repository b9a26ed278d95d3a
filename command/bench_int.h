/* Inside `isamap bench`: one result, and how results become text and JSON. */
#ifndef ISAMAP_COMMAND_BENCH_INT_H
#define ISAMAP_COMMAND_BENCH_INT_H

#include "command/points.h"
#include "bench/clock.h"
#include "bench/limit.h"
#include "bench/peak.h"
#include "bench/peer.h"
#include "bench/suite.h"

#include <stdio.h>

struct table;

/* Machine file and RTL, of one run. */
struct beside {
    double cycles, rtl_cycles;
    double read_bytes, write_bytes; /* RTL's */
    struct agreement agreement;
};

struct rtl_outcome {
    struct beside fixed, drawn; /* drawn: with random latencies, both with the same */
    double mean_cycles;         /* the machine file's with their mean alone */
};

/* NAN: not known. Times in milliseconds. */
struct outcome {
    const char *workload, *error; /* error NULL: it went well */
    int threads;
    const char *verified_by; /* "interpreter", "samples", "5 steps", "schedule"; unproved, unchecked: by nothing */
    bool verified, wrong;    /* wrong: it was compared and differs */
    enum proof proof;        /* of the schedule */
    const char *proof_reason;
    double proof_seconds;
    double ours, ours_least, ours_most, compile_seconds, nodes, gflops, peak_gflops, peak_fraction,
        predicted, clock, bound_bytes, speedup;
    /* host: against peers */
    double peer[MAX_PEERS], ratio, ratio_least, ratio_most;
    const char *best;
    int disturbed; /* turns, of all contenders */
    double mhz, watts, celsius; /* of the device that ran it, at the end */
    /* device: cycles */
    double cycles, predicted_cycles, limit_cycles, utilisation, read_bytes, write_bytes, instructions;
    double few_cycles; /* with at most so many contexts as asked */
    const char *limit_by;
    struct rtl_outcome rtl; /* with --rtl */
    int point;              /* of the machine's parameters */
};

struct bench {
    isamap *im;
    struct arena arena;
    const char *path;
    struct suite *suite; /* NULL: one program */
    struct points points;
    struct peers peers;
    const char *machine, *mac; /* names, for the head; mac: the instruction of the peak, or NULL */
    bool device;
    bool away;      /* code runs on a device: it times itself */
    int64_t span;   /* then: bytes of the arrays that are used in turns, so that no cache holds them */
    char chip[96];  /* the device's own name; empty */
    int contexts; /* device: a second schedule with at most so many; 0 */
    int threads[MAX_THREAD_COUNTS], nthreads;
    struct peak *peak;
    int npeaks, peaks_cap;
    struct outcome *outcome;
    int noutcomes, outcomes_cap;
    FILE *log; /* a line for each outcome; NULL: none is asked for */
};

void bench_report(struct bench *);
/* The outcome as a line of the log, in the file when it returns. False after reporting. */
bool bench_log(struct bench *, const struct outcome *);

/* ---- bench_rtl.c ---- */
/* Runs the compiled program on the model in RTL; data[] as for sim_run, gets its values. */
bool rtl_measure(isamap *, const struct job *, void **data, const struct sim_result *machine,
                 struct rtl_outcome *);
void rtl_report(struct report *, const struct bench *, const struct rtl_outcome *);
void rtl_columns(const struct bench *, struct table *);
void rtl_row(const struct bench *, const struct outcome *, struct table *);

#endif
