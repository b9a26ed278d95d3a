/* Backend `bits`: schedules become instruction words and table entries, laid out by the bit fields
 * of the machine file alone (docs/backends.md). */
#ifndef ISAMAP_BACKENDS_BITS_H
#define ISAMAP_BACKENDS_BITS_H

#include "scheduler/schedule.h"

/* A SystemVerilog package with the parameters, memories, queues and syncs of the machine, and for
 * each word its fields as constants and as a packed struct, and the bits by which it is known. */
void bits_package(const struct machine *, struct text *);
/* Does the machine have bit fields at all? */
bool bits_spoken(const struct machine *);

#endif
