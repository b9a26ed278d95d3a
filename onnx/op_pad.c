/* Pad: constants around the input, or its own elements again: reflected, the border's, or from the
 * other end. */
#include "onnx/onnx.h"

#ifdef ISAMAP_WITH_ONNX
#include "onnx/onnx_int.h"

#include <inttypes.h>
#include <string.h>

static const int64_t MAX_PAD = INT64_C(1) << 40;

struct pads {
    struct tensor *x;
    const char *mode;
    double value; /* of the attribute, which exporters write in every mode */
    int64_t before[MAX_DIMS], after[MAX_DIMS], extent[MAX_DIMS]; /* extent: of the result */
};

static const char *pad_value(struct import *im, const struct tensor *x, double f) {
    struct tensor *v = node_given(im, 2);
    if (v && (!v->data || v->elements != 1 || v->type != x->type)) {
        node_fail(im, "the value to pad with is not a constant of the input's type");
        return NULL;
    }
    if (v) return tensor_scalar(im, v);
    if (!type_is_float(x->type) && f != (double)(int64_t)f) {
        node_fail(im, "the value to pad with is not an integer");
        return NULL;
    }
    return text_number(im, x->type, f);
}

static bool pads_read(struct import *im, struct pads *p) {
    const int64_t *pads, *axes = NULL;
    int n, naxes = 0, d;
    p->mode = "constant";
    if (!attribute_string(im, "mode", &p->mode) || !attribute_float(im, "value", &p->value) ||
        !attribute_or_input(im, attribute_find(im, "paddings") ? "paddings" : "pads", 1, &pads,
                            &n) ||
        !node_list(im, "axes", 3, &axes, &naxes))
        return false;
    if (!axes) naxes = p->x->ndims;
    if (!pads || n != 2 * naxes || naxes > MAX_DIMS)
        return node_fail(im, "'pads' has %d entries, expected %d", n, 2 * naxes);
    memcpy(p->extent, p->x->extent, sizeof p->extent);
    for (int k = 0; k < naxes; k++) {
        if (!axis_normal(im, axes ? axes[k] : k, p->x->ndims, &d)) return false;
        p->before[d] = pads[k];
        p->after[d] = pads[naxes + k];
        for (int e = 0; e < 2; e++) {
            int64_t v = pads[k + e * naxes];
            if (v < -MAX_PAD || v > MAX_PAD)
                return node_fail(im, "'pads' has the entry %" PRId64 ", which is too large", v);
        }
        if (__builtin_add_overflow(p->extent[d], p->before[d] + p->after[d], &p->extent[d]))
            return node_fail(im, "its result is too large");
    }
    return true;
}

static bool pad_constant(struct import *im, struct pads *p) {
    const char *fill = pad_value(im, p->x, p->value), *index[MAX_DIMS], *from[MAX_DIMS];
    if (!fill) return false;
    struct tensor *y = node_result(im, p->x->type, p->x->ndims, p->extent);
    if (!y) return false;
    axes_for(im, y->ndims, p->extent, index);
    for (int d = 0; d < y->ndims; d++)
        from[d] = affine_text(im, 1, (int64_t[]){1}, &index[d], -p->before[d]);
    emit_statement(im, "%s = %s", tensor_element(im, y, index),
                   tensor_element_else(im, p->x, from, fill));
    return true;
}

/* y[…, to + i, …] = x[…, from + step·i, …] for i < n along dimension d */
static void pad_part(struct import *im, struct tensor *y, struct tensor *x, int d, int64_t n,
                     int64_t to, int64_t from, int64_t step) {
    const char *index[MAX_DIMS], *at[MAX_DIMS], *i;
    int64_t extent[MAX_DIMS];
    if (n == 0) return;
    memcpy(extent, x->extent, sizeof extent);
    extent[d] = n;
    axes_release(im);
    axes_for(im, x->ndims, extent, index);
    memcpy(at, index, sizeof at);
    i = index[d];
    index[d] = affine_text(im, 1, (int64_t[]){1}, &i, to);
    at[d] = affine_text(im, 1, &step, &i, from);
    emit_statement(im, "%s = %s", tensor_element(im, y, index), tensor_element(im, x, at));
}

static bool pad_along(struct import *im, const struct pads *p, struct tensor *y, struct tensor *x,
                      int d) {
    int64_t n = x->extent[d], b = p->before[d], a = p->after[d];
    bool reflect = strcmp(p->mode, "reflect") == 0, edge = strcmp(p->mode, "edge") == 0;
    int64_t most = reflect ? n - 1 : edge ? MAX_PAD : n;
    if (b < 0 || a < 0 || b > most || a > most)
        return node_fail(im,
                         "padding by %" PRId64 " and %" PRId64 " does not fit the %" PRId64
                         " elements of dimension %d in this mode",
                         b, a, n, d);
    pad_part(im, y, x, d, b, 0, reflect ? b : edge ? 0 : n - b, reflect ? -1 : edge ? 0 : 1);
    pad_part(im, y, x, d, n, b, 0, 1);
    pad_part(im, y, x, d, a, b + n,
             reflect ? n - 2
             : edge  ? n - 1
                     : 0,
             reflect ? -1
             : edge  ? 0
                     : 1);
    return true;
}

/* Dimension by dimension, so that corners come of themselves. */
static bool pad_again(struct import *im, struct pads *p) {
    struct tensor *x = p->x, *y;
    int left = 0;
    int64_t extent[MAX_DIMS];
    for (int d = 0; d < x->ndims; d++) left += p->before[d] || p->after[d];
    if (!left) return op_identity(im);
    struct tensor *result = node_result(im, x->type, x->ndims, p->extent);
    memcpy(extent, x->extent, sizeof extent);
    for (int d = 0; result && d < p->x->ndims; d++) {
        if (!p->before[d] && !p->after[d]) continue;
        extent[d] = p->extent[d];
        y = --left ? tensor_temporary(im, result->buffer, "part", x->type, x->ndims, extent)
                   : result;
        if (!y || !pad_along(im, p, y, x, d)) return false;
        x = y;
    }
    return result != NULL;
}

bool op_pad(struct import *im) {
    struct pads p = {.x = node_input(im, 0)};
    if (!pads_read(im, &p)) return false;
    if (strcmp(p.mode, "constant") == 0) return pad_constant(im, &p);
    if (strcmp(p.mode, "reflect") != 0 && strcmp(p.mode, "edge") != 0 &&
        strcmp(p.mode, "wrap") != 0)
        return node_fail(im, "'mode' is '%s', expected constant, reflect, edge or wrap",
                         name_shown(im->arena, p.mode));
    return pad_again(im, &p);
}

/* The middle of the input where a dimension becomes shorter, zeros on both sides where it becomes
 * longer; an odd one is behind. */
bool op_center_crop_pad(struct import *im) {
    struct tensor *x = node_input(im, 0);
    const int64_t *size, *axes;
    int64_t extent[MAX_DIMS], before[MAX_DIMS] = {0};
    const char *to[MAX_DIMS], *from[MAX_DIMS];
    int n, naxes;
    bool longer = false;
    if (!node_list(im, "shape", 1, &size, &n) || !attribute_ints(im, "axes", &axes, &naxes))
        return false;
    if (!size || n != (axes ? naxes : x->ndims))
        return node_fail(im, "'shape' has not one entry for each axis");
    memcpy(extent, x->extent, sizeof extent);
    for (int k = 0; k < n; k++) {
        int d = k;
        if (axes && !axis_normal(im, axes[k], x->ndims, &d)) return false;
        if (size[k] < 1 || size[k] > MAX_COUNT)
            return node_fail(im, "'shape' has an entry %" PRId64, size[k]);
        extent[d] = size[k];
        longer |= size[k] > x->extent[d];
        before[d] =
            size[k] > x->extent[d] ? -((size[k] - x->extent[d]) / 2) : (x->extent[d] - size[k]) / 2;
    }
    struct tensor *y = node_result(im, x->type, x->ndims, extent);
    if (!y) return false;
    axes_for(im, x->ndims, extent, to);
    for (int d = 0; d < x->ndims; d++)
        from[d] = affine_text(im, 1, (int64_t[]){1}, &to[d], before[d]);
    emit_statement(im, "%s = %s", tensor_element(im, y, to),
                   longer ? tensor_element_else(im, x, from, "0") : tensor_element(im, x, from));
    return true;
}
#endif
