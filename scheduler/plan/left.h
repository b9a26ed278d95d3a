/* What the fallback executes although the machine has instructions for it, and sums of products that a host's instructions execute beside a device that
 * has its own: said once for each reason. */
#ifndef ISAMAP_SCHEDULER_PLAN_LEFT_H
#define ISAMAP_SCHEDULER_PLAN_LEFT_H

#include "ir/program.h"
#include "machines/machine.h"
#include "mapper/mapper.h"

/* Statements with one reason: the first of them, and how many there are. */
struct left {
    int stmt, line, col, n;
    bool products;           /* sums of products */
    const char *by;          /* the host's instruction; NULL: the fallback */
    const char *instr, *why; /* instr NULL: none in particular */
};
struct lefts {
    struct arena *arena;
    struct left *at;
    int n, cap;
};

/* Reasons that differ in quoted names and in numbers of statements only are one. */
void left_add(struct lefts *, const struct left *);
/* The instruction of a host beside a device that executes the item; NULL: another one or none. */
const char *left_to_host(const struct cover *, const struct machine *, const struct cover_item *);
/* Products that are accumulated by the fallback, or by a host's instructions beside a device. */
double left_products(const struct cover *, const struct machine *);
/* The sums of products that the cover itself leaves to the fallback or the host, but for those told already ([statements]), of a
 * machine that has instructions for products. */
void left_uncovered(struct lefts *, const struct cover *, const struct machine *, const bool *told);
/* A warning for each reason, in names of the program as it was written; with `strict` an error for sums of products. */
void left_tell(const struct lefts *, const struct program *written, const struct machine *, bool strict, struct diags *);

#endif
