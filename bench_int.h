/* Inside `isamap bench`: one result, and how results become text and JSON. */
#ifndef ISAMAP_BENCH_INT_H
#define ISAMAP_BENCH_INT_H

#include "isamap_int.h"
#include "bench/clock.h"
#include "bench/limit.h"
#include "bench/peak.h"
#include "bench/peer.h"
#include "bench/suite.h"

/* NAN: not known. Times in milliseconds. */
struct outcome {
    const char *workload, *error; /* error NULL: it went well */
    int threads;
    const char *verified_by; /* "interpreter", "samples", "schedule" */
    bool verified;
    double ours, ours_least, ours_most, compile_seconds, nodes, gflops, peak_gflops, peak_fraction,
        predicted, clock, bound_bytes, speedup;
    /* host: against peers */
    double peer[MAX_PEERS], ratio, ratio_least, ratio_most;
    const char *best;
    int disturbed; /* turns, of all contenders */
    /* device: cycles */
    double cycles, predicted_cycles, limit_cycles, utilisation, read_bytes, write_bytes;
    const char *limit_by;
};

struct bench {
    isamap *im;
    struct arena arena;
    const char *path;
    struct suite *suite; /* NULL: one program */
    struct peers peers;
    const char *machine, *mac; /* names, for the head; mac: the instruction of the peak, or NULL */
    bool device;
    int threads[MAX_THREAD_COUNTS], nthreads;
    struct peak *peak;
    int npeaks, peaks_cap;
    struct outcome *outcome;
    int noutcomes, outcomes_cap;
};

void bench_report(struct bench *);

#endif
