/* Requantisers in fixed point: the arithmetic of integer units in place of a scaling in floats. */
#ifndef ISAMAP_MAPPER_FIXED_H
#define ISAMAP_MAPPER_FIXED_H

#include "mapper/rewrite_int.h"

/* A statement y = clip(round(sum * scale + offset) + zero, lo, hi) with constants that are known, and what writes its
 * sums: a fill by zero or by a row of biases, then products with known weights. */
struct requantiser {
    int stmt, init;              /* the statement; the fill of its sums */
    int read, bias;              /* of the statement: the sums; of the fill: the biases, -1 none */
    int scale, offset;           /* nodes of the statement; offset -1: none */
    int channel, channel_init;   /* the axis with a scale of its own, in the statement and in the fill; -1: one scale for all */
    double zero, lo, hi;         /* the zero point, and the bounds of the result */
    int64_t n;                   /* channels */
    double *scales, *offsets;    /* [n] */
    double *least, *most;        /* [n]: of the sums with their biases, while they are made too */
};

/* y = clip(round((((sum + c) >> before) * m) * 2^-after), lo, hi); m = round(scale * 2^(before + after)) and
 * c = bias + round((offset + zero) / scale), and half of 2^before. Nothing wraps in i32. */
struct fixed_point {
    int before, after;
    bool shifts_sums;            /* c is not the bias alone */
    double error;                /* the most that the value before rounding differs, in steps of the result */
};

/* False: the statement is none, or its constants are not known. data[b]: the elements of constant b; NULL. */
bool requantiser_find(struct arena *, const struct program *, const void *const *data, int stmt, struct requantiser *);
/* The least work that keeps the error within a quarter of a step; else the least error. False: more than half a step. */
bool fixed_point_of(const struct requantiser *, struct fixed_point *);
/* The program with that statement in fixed point. `apart`: bounds narrower than those of the type are a maximum and a
 * minimum of their own. The new statements are those that write new temporaries. NULL: there is no room. */
struct program *fixed_point_write(const struct program *, const struct requantiser *, const struct fixed_point *, bool apart);

#endif
