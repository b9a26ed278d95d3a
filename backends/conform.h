/* Do the emit texts of a machine file do what the semantics beside them say? Texts in other
 * languages than LLVM and C are counted, not tried.
 *
 * Without `execute` nobody vouches for the file: each text is read by LLVM or the C compiler, and
 * nothing is made of it. No code comes to be, none is loaded, and the compiler opens no file but
 * headers of its include path; a C text for which that cannot be seen is not read.
 *
 * With `execute` each text is compiled; where this processor has the features, it is executed on
 * random operands: both ends of each size, each layout, both values of a flag, dense and padded
 * strides. Integers must be equal, floats within 4·K·ε·Σ|a||b|, and 4 ulp for transcendental
 * functions. */
#ifndef ISAMAP_BACKENDS_CONFORM_H
#define ISAMAP_BACKENDS_CONFORM_H

#include "ir/diag.h"
#include "machines/machine.h"

/* Reports errors with the emit's line. `report` (may be NULL) gets a line for each text that was
 * executed or could not be: how often, or why. The texts are read and run in a child process: one
 * that crashes is an error, not a crash. */
struct conformity {
    int read, executed; /* texts */
    int others;         /* of instructions, in languages that are not tried */
};
bool emit_conform(const struct machine *, bool execute, struct conformity *, struct diags *,
                  struct text *report);

#endif
