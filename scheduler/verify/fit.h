/* An instruction's accesses as affine functions of its axes (fit.c). */
#ifndef ISAMAP_SCHEDULER_VERIFY_FIT_H
#define ISAMAP_SCHEDULER_VERIFY_FIT_H

#include "scheduler/verify/verify_int.h"

enum { FIT_DIMS = 10 };

/* The axis' value is Σ weight · digit over its dimensions; the smallest weight stands first. */
struct fit_dim { int axis; int64_t n, weight; };

/* Instances of a memory lie one behind the other, so many bytes apart: more than a place has that spreads over them. */
#define INSTANCE_BYTES (INT64_C(1) << 40)

/* Bytes from the operand's element with index 0, where lo <= digit <= hi; elsewhere it is the fill (a read), or nothing is executed. */
struct fit_access { int64_t base, step[FIT_DIMS], lo[FIT_DIMS], hi[FIT_DIMS]; };

struct fit {
    const struct shape *h;
    int64_t from[MAX_AXES], count[MAX_AXES];   /* its points: so many values of each axis */
    struct fit *rest;                  /* the other points: where an axis ends inside of what its layout turns by, several boxes are affine each; NULL */
    bool good;
    int ndims;
    struct fit_dim dim[FIT_DIMS];
    struct fit_access access[1 + MAX_READS];   /* of the destination, of each read */
    struct fit *next;
};

/* NULL: they are not affine. */
const struct fit *fit_get(struct verify *, const struct shape *, int64_t *cost);

#endif
