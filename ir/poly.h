/* The program as isl sees it: domains, accesses, dependences. isl's ownership: results are the caller's (__isl_give). */
#ifndef ISAMAP_IR_POLY_H
#define ISAMAP_IR_POLY_H

#include "ir/program.h"
#include <isl/map.h>
#include <isl/set.h>
#include <isl/union_map.h>

/* { S<n>[axes of the statement in program order] : domain }. The axes of recurrences around it are parameters of the space, bounded by
 * their extents. */
isl_set *poly_domain(isl_ctx *, const struct program *, int stmt);
/* domain -> buffer element, name of the tuple: the buffer's. read -1: the destination. Reads outside the buffer are left out. */
isl_map *poly_access(isl_ctx *, const struct program *, int stmt, int read);
/* statement instances -> later ones that touch an element after them, at least one writing: flow, anti and output;
 * within one accumulating statement none (order-free), but along its sequential axes. In a recurrence: those within one step, the
 * steps being in order anyway; a state counts as the buffers it comes from and goes to. An opaque call is one instance, C<k>[], k
 * counting the calls in the order of the text. */
isl_union_map *poly_dependences(isl_ctx *, const struct program *);
/* A context whose errors are results that are NULL or isl_bool_error. */
isl_ctx *poly_begin(void);
/* Frees it. When isl had not enough memory for something, memory has ended (ir/memory.h): what it said then means nothing. */
void poly_end(isl_ctx *);

#endif
