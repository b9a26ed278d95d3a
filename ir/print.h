/* Inside the printers of kernels and programs: what they share. */
#ifndef ISAMAP_IR_PRINT_H
#define ISAMAP_IR_PRINT_H

#include "ir/kernel.h"

#include <inttypes.h>
#include <stdlib.h>

void print_float(double, enum type,
                 struct text *); /* the shortest digits that read back; always as a float literal */

#endif
