/* Inside program_verify. */
#ifndef ISAMAP_IR_VERIFY_INT_H
#define ISAMAP_IR_VERIFY_INT_H

#include "ir/program.h"
#include <isl/map.h>
#include <isl/set.h>

struct verifier {
    const struct program *p;
    struct diags *diags;
    const struct recur **recur_of; /* by statement: the innermost recurrence around it, or NULL */
    isl_ctx *ctx;                  /* made when first needed */
    struct arena arena;
    bool failed;
};

/* Where a message points: an offset in the source, or nowhere. */
static const size_t nowhere = (size_t)-1;
bool verify_fail(struct verifier *, size_t at, const char *fmt, ...)
    __attribute__((format(printf, 3, 4))); /* false */
size_t verify_buffer_at(const struct verifier *, int buffer);

isl_ctx *verify_isl(struct verifier *);

/* { [axes in `keep`, ascending] -> [element] } over the statement's domain and `time`, the axes of
 * the recurrences around it; other axes are projected out. Indices outside the buffer are kept.
 * access NULL: to [] */
isl_map *verify_access(struct verifier *, const struct stmt *, const struct access *, uint64_t time,
                       uint64_t keep);
isl_set *verify_box(struct verifier *, int buffer);

/* What a statement writes: its destination, and { [time of the reader] -> [element] }. */
struct written {
    const struct access *access;
    isl_map *elements;
};
/* `wanted` lies within what the n of them write together. */
bool verify_covered(struct verifier *, isl_map *wanted, const struct written *, int n, int ndims);

bool verify_flow(struct verifier *); /* written before read; see program_flow.c */

#endif
