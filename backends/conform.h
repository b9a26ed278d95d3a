/* Do the emit texts of a machine file do what the semantics beside them say? Each llvm and c text
 * is compiled; where this processor has the features, it is executed on random operands: both ends
 * of each size, each layout, both values of a flag, dense and padded strides. Integers must be
 * equal, floats within 4·K·ε·Σ|a||b|, and 4 ulp for transcendental functions. Other languages are
 * not tried. */
#ifndef ISAMAP_BACKENDS_CONFORM_H
#define ISAMAP_BACKENDS_CONFORM_H

#include "ir/diag.h"
#include "machines/machine.h"

/* Reports errors with the emit's line. `report` (may be NULL) gets a line for each text: how often
 * it was executed, or why it was not. The texts run in a child process: one that crashes is an
 * error, not a crash. */
bool emit_conform(const struct machine *, struct diags *, struct text *report);

#endif
