/* Inside onnx/: windows that slide over one to three dimensions. */
#ifndef ISAMAP_ONNX_WINDOW_H
#define ISAMAP_ONNX_WINDOW_H

#include "ir/types.h"

#include <stdbool.h>
#include <stdint.h>

struct import;
struct tensor;

enum { SPATIAL = 3 };

/* Where the windows lie. Along dimension d, output o and window element k read input o*stride +
 * k*dilation - before. */
struct window {
    int n;
    int64_t in[SPATIAL], kernel[SPATIAL], stride[SPATIAL], dilation[SPATIAL];
    int64_t before[SPATIAL], after[SPATIAL], out[SPATIAL];
    bool leaves[SPATIAL]; /* some reads lie outside the input */
    bool ceil;
    const char *out_axis[SPATIAL], *kernel_axis[SPATIAL];
};

/* kernel: the window's extents from the weights, or NULL when 'kernel_shape' must give them */
bool window_read(struct import *, const struct tensor *x, const int64_t *kernel, struct window *);
void window_axes(struct import *, struct window *);
/* The input under the window; fill: for what lies outside. */
const char *window_element(struct import *, const struct window *, struct tensor *x,
                           const char *batch, const char *channel, const char *fill);
/* What a window that averages divides by: its volume, or a constant of `type` with the number of
 * elements for each (that lie inside the input, or in its padding too). NULL after reporting. */
const char *window_divisor(struct import *, const struct window *, bool padding, const char *base,
                           enum type type);

#endif
