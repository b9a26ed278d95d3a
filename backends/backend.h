/* Backends: a schedule becomes code. One const struct each, listed in one array. A backend reads schedule.h and the machine, nothing else; it
 * decides nothing.
 *
 * Generated code has two entries (prefix = the program's name):
 *   int NAME_prepare(const struct NAME_args *);             once, and again when a const buffer changes: fills args->prepared
 *   int NAME_run(const struct NAME_args *, void *workspace);
 *   size_t NAME_prepared_bytes(void), NAME_workspace_bytes(void);     both blocks 64-byte aligned, the caller's
 * struct NAME_args { pointers to the in, out, inout and const buffers in the program's order, row-major; void *prepared; int threads;
 * int64_t NAME of each size known only when the program runs (outside its range, the nearest end) }. */
#ifndef ISAMAP_BACKENDS_BACKEND_H
#define ISAMAP_BACKENDS_BACKEND_H

#include "scheduler/schedule.h"

struct backend_options {
    const char *target;            /* another CPU: "x86-64-v4"; or NULL: the machine's features on this kind of CPU */
    const char *keep;              /* folder where generated text is left for reading; or NULL */
};

struct executable;                 /* code that runs in this process */

struct backend {
    const char *name, *doc;
    const char *const *suffixes;   /* what write() can make: ".so", ".o", ".s", ".ll", ".c", … ; NULL-terminated */
    bool (*accepts)(const struct schedule *);                  /* every instruction used has an emit, and every fallback a language, that it speaks */
    bool (*write)(const struct schedule *, const char *path, const struct backend_options *, struct diags *);  /* by suffix; .so also writes NAME.h beside it */
    struct executable *(*load)(const struct schedule *, const struct backend_options *, struct diags *);       /* NULL after reporting */
};

extern const struct backend *const backends[];                 /* NULL-terminated, best first */

/* First backend that accepts the schedule (and can write the suffix, when one is given). NULL after reporting, naming what is missing. */
const struct backend *backend_find(const struct schedule *, const char *suffix, struct diags *);

/* data[b]: row-major array of buffer b of schedule.program for in, out, inout, const buffers; NULL for others. prepare once, then run as often
 * as wanted. The required features of the machine were checked by load(): never SIGILL. */
bool executable_prepare(struct executable *, void *const *data, struct diags *);
/* The program's sizes known only when it runs, for the runs that follow; before, they are the largest. */
void executable_sizes(struct executable *, const int64_t *size);
bool executable_run(struct executable *, void *const *data, int threads, struct diags *);
int64_t executable_bytes(const struct executable *);           /* prepared + workspace */
void executable_free(struct executable *);

#endif
