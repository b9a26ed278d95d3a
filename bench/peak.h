/* The program that shows a multiply-accumulate unit at its best. */
#ifndef ISAMAP_BENCH_PEAK_H
#define ISAMAP_BENCH_PEAK_H

#include "bench/limit.h"

/* The instruction's own semantics over three more axes: C[v,u,…] += A[t,…] * B[…]. A's tiles lie in half of the innermost cache, B is one tile,
 * and each C stays where it is for all t: nothing but the instruction has to take time. NULL: the semantics is no such product. */
struct program *peak_program(const struct machine *, const struct mac_unit *);

#endif
