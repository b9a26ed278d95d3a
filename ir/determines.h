/* Which axes does an element of an array tell? */
#ifndef ISAMAP_IR_DETERMINES_H
#define ISAMAP_IR_DETERMINES_H

#include "ir/program.h"

/* Those of `axes` (a mask; the others are fixed) of which two points that reach the same element have the same values: points that differ in
 * one of them reach different elements. An index tells its axes apart where each coefficient is more than all smaller ones
 * reach (digits of a number); axes that one index tells are fixed for the next. Others may be told too: this test is quick. */
uint64_t access_determines(const struct program *, const struct access *, uint64_t axes);

#endif
