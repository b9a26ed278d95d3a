/* Inside onnx/: values of a tensor at places that are data, between its elements. */
#ifndef ISAMAP_ONNX_TAPS_H
#define ISAMAP_ONNX_TAPS_H

#include "onnx/window.h"

#include "ir/types.h"

struct import;
struct tensor;

/* Along each of n dimensions a place has the same number of taps: elements of the tensor and what
 * each counts. */
enum { MOST_TAPS = 4 };
struct taps {
    int n, count[SPATIAL];
    const char *at[SPATIAL][MOST_TAPS], *weight[SPATIAL][MOST_TAPS]; /* elements of temporaries */
};

/* A further tap along dimension d: two temporaries of these extents hold the element's number (a
 * float without fraction; outside of the tensor it counts nothing) and what it counts. False after
 * reporting. */
bool taps_add(struct import *, struct taps *, int d, const char *base, enum type, int ndims,
              const int64_t *extent, const char *const *index, const char *at, const char *weight);
/* to += Σ weights * x[from], the last n indices of `from` being axes over all of x. `where` (NULL:
 * none): a condition beside; factor (NULL: 1). */
void taps_sum(struct import *, const struct taps *, const char *to, struct tensor *x,
              const char *const *from, const char *where, const char *factor);
/* The same for the maximum of the products. */
void taps_max(struct import *, const struct taps *, const char *to, struct tensor *x,
              const char *const *from, const char *where);

#endif
