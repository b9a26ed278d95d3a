/* The reference interpreter: the oracle of every backend. Slow and plain. */
#ifndef ISAMAP_IR_INTERP_H
#define ISAMAP_IR_INTERP_H

#include "ir/bound.h"
#include "ir/program.h"

/* An opaque call: data of the buffers named in the call, reads first. False: it failed. */
typedef bool (*call_function)(void *user, const char *function, void *const *data, const struct program *, const struct call *);

/* Runs the program. data[b]: row-major array of buffer b; NULL entries (temporaries, states) are allocated for the run.
 * inout, in, const and out must be given. */
bool program_run(const struct program *, void *const *data, call_function, void *user, struct diags *);

/* Runs one statement over its whole domain on data[] in program_run's form; time[a]: the step of recurrence axis a, NULL: all 0. */
void stmt_run_at(const struct program *, const struct stmt *, void *const *data, const int64_t *time);
/* The same of a statement whose axes were moved: axis a of its domain stands for from[a] + a where its value counts. NULL: none was. */
void stmt_run_part(const struct program *, const struct stmt *, void *const *data, const int64_t *time, const int64_t *from);

/* Runs the program in exact arithmetic with error bounds (ir/bound.h): between what every implementation that the language allows leaves in an
 * element. data[] as for program_run; only inputs are read, nothing is written, and it must live as long as the result. leeway (NULL: none) is copied.
 * NULL after reporting: no memory, or an opaque call. */
struct bounds;
struct bounds *program_run_bounded(const struct program *, void *const *data, const struct leeway *, struct diags *);
struct bounded bounds_at(const struct bounds *, int buffer, int64_t element);   /* temporaries are gone */
void bounds_free(struct bounds *);

/* For each of n flat element numbers of `buffer` the value that a run would leave there, computed on demand (only what those
 * elements need). data[] as for program_run, outputs not written. The values are those of a run, bit by bit. False: an element is outside
 * the buffer, the program has a recurrence or a call, or the work is too deep (2,000 statements) or too large (2^25 values kept). */
bool program_sample(const struct program *, void *const *data, int buffer, const int64_t *element, int n, union value *out);

/* The same elements as program_run_bounded has them. */
bool program_sample_bounded(const struct program *, void *const *data, int buffer, const int64_t *element, int n,
                            const struct leeway *, struct bounded *out);

/* Another arithmetic for the same programs, over a field for instance: values are what these functions make of them. */
struct arithmetic {
    union value (*eval)(void *user, enum opcode, enum type to, enum type from, const union value *arg); /* as op_eval */
    union value (*literal)(void *user, enum type, union value);
    union value (*input)(void *user, const struct program *, int buffer, int64_t element);   /* as it came */
    void *user;
    bool exact;                       /* floats are not rounded when they are stored */
    int64_t most_visits;              /* points of statements; more: false */
    int64_t *visits;                  /* grows by those made; or NULL */
};
bool program_sample_over(const struct program *, const struct arithmetic *, int buffer, const int64_t *element, int n, union value *out);

#endif
