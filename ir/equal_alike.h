/* What a proof of equality looks at, as a row of numbers without names: of two with the same row either both hold or none does. */
#ifndef ISAMAP_IR_EQUAL_ALIKE_H
#define ISAMAP_IR_EQUAL_ALIKE_H

#include "ir/chain.h"

struct equal;
struct alike_row { int64_t *at; int n, cap; uint64_t hash; };

/* Of a witness; of two buffers, before an item of each side (equal_int.h). False: there is no such row. */
bool alike_witness(struct arena *, const struct program *p, const struct program *q, const struct witness *, struct alike_row *);
bool alike_elements(struct equal *, int b0, int before0, int b1, int before1, struct alike_row *);
bool alike_same(const struct alike_row *, const struct alike_row *);

#endif
