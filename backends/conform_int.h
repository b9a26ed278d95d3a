/* Inside the conformance check: one execution of an emit against its semantics. */
#ifndef ISAMAP_BACKENDS_CONFORM_INT_H
#define ISAMAP_BACKENDS_CONFORM_INT_H

#include "backends/backends_int.h"

enum { MAX_TRIALS = 64, MAX_ELEMENTS = 1 << 18 };

/* Sizes, strides, flags and layouts to try, all known: returns their number, 0 when nothing legal
 * was found. */
int trials_make(struct arena *, const struct machine *, const struct instr *, bool draft,
                struct site **out);
/* Random operands, the call, the interpreter, the comparison. False: *what says where they differ.
 */
bool trial_run(struct arena *, const struct site *, probe_function, uint64_t seed,
               const char **what);

#endif
