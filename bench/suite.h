/* Suites of workloads: a CSV file, one workload a row, whose columns bind the parameters of a kernel by name (docs/bench.md). */
#ifndef ISAMAP_BENCH_SUITE_H
#define ISAMAP_BENCH_SUITE_H

#include "ir/kernel.h"

struct workload {
    const char *name, *file;           /* file: the kernel's */
    const struct kernel *kernel;
    struct bindings given;             /* binding succeeds */
    int line;
};

struct suite {
    struct arena arena;                /* owns everything below */
    const char *path;
    struct workload *at;
    int n;
};

struct suite_options {
    const char *kernel;                /* FILE.isam, FILE.isam:NAME or NAME, over what the suite says; or NULL */
    const char *only;                  /* names with * and ?, commas between; NULL: all rows */
    const char *const *folder;         /* where kernels are looked for, after the suite's own folder; NULL-terminated */
    const struct bindings *set;        /* over the rows' values; or NULL */
    int64_t batch;                     /* 0: as the rows say */
};

extern const char *const kernel_folders[];   /* ./bench; NULL-terminated */

/* NULL after reporting file:line:col of everything wrong. Rows that are not asked for are checked too. */
struct suite *suite_load(const char *path, const struct suite_options *, struct diags *);
struct suite *suite_parse(const char *path, const char *text, size_t length, const struct suite_options *, struct diags *);
void suite_free(struct suite *);

/* The parameter that is the first dimension of every in and out buffer and of no constant: -1 where there is none. */
int kernel_batch(const struct kernel *);

#endif
