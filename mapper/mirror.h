/* Mappings that differ in nothing that the hardware sees. */
#ifndef ISAMAP_MAPPER_MIRROR_H
#define ISAMAP_MAPPER_MIRROR_H

#include "mapper/mapper_int.h"

/* Two reads of a statement change places between operands that lie alike and are indexed alike:
 * the two terms of a sum, say. What one mapping costs, the other does, in every schedule. Where an
 * instruction requires something of addresses, sets a state or loops, none are taken for alike. */
bool mapping_mirrors(const struct machine *, const struct needle *, const struct mapping *,
                     const struct mapping *);

#endif
