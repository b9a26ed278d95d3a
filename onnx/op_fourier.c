/* DFT and STFT: products with matrices of cosines and sines, which are constants; a window is part
 * of them. With e = ∓1 (forward, inverse): (a + ib)(cos + ie sin) = a cos − e b sin + i(b cos + e a
 * sin). */
#include "onnx/onnx.h"

#ifdef ISAMAP_WITH_ONNX
#include "onnx/onnx_int.h"

#include <inttypes.h>

struct fourier {
    struct tensor *x, *y, *window; /* window NULL: none */
    int64_t n, taken, bins;        /* of the transform; elements of x in it; of the result */
    int part; /* the dimension of x of real and imaginary parts; -1: reals without one */
    bool complex, inverse;
    bool mirrored; /* x is the first half of the bins of reals, which are the result */
};

/* How often element n counts. Of mirrored bins the first stands for itself, of an even number the
 * last one does too. */
static const char *weight(struct import *im, const struct fourier *f, const char *n) {
    if (f->window) return tensor_element(im, f->window, &n);
    if (!f->mirrored) return "1";
    return arena_printf(im->arena, "select(i64(%s) * 2 %% %" PRId64 " == 0, 1, 2)", n, f->n);
}

/* scale · function(2πkn / N) for all bins k and elements n, times how often n counts */
static struct tensor *wave(struct import *im, const struct fourier *f, const char *function,
                           double scale) {
    int64_t extent[2] = {f->bins, f->taken};
    struct tensor *w = tensor_temporary(im, f->y->buffer, function, f->x->type, 2, extent);
    if (!w) return NULL;
    const char *at[2] = {axis_for(im, "k", f->bins), axis_for(im, "n", f->taken)};
    emit_statement(im, "%s = %s(%.3s(f64(i64(%s) * i64(%s) %% %" PRId64 ") * %s) * %s * f64(%s))",
                   tensor_element(im, w, at), type_name(f->x->type), function, at[0], at[1], f->n,
                   text_number(im, TYPE_F64, 2 * 3.14159265358979323846 / (double)f->n),
                   text_number(im, TYPE_F64, scale), weight(im, f, at[1]));
    axes_release(im);
    return w;
}

/* What is summed at the indices `from` of x and `to` of y, but for their last ones: bin k, element
 * n. */
static bool transform(struct import *im, const struct fourier *f, const char **from,
                      const char **to, const char *k, const char *n, struct tensor *const wave[3]) {
    const char *at[2] = {k, n};
    for (int part = 0; part < (f->mirrored ? 1 : 2); part++) {
        to[f->y->ndims - 1] = part ? "1" : "0";
        const char *y = tensor_element(im, f->y, to);
        emit_statement(im, "%s = 0", y);
        for (int side = 0; side < (f->complex ? 2 : 1); side++) {
            if (f->part >= 0) from[f->part] = side ? "1" : "0";
            struct tensor *w = wave[part == side ? 0 : part ? 1 : 2];
            emit_statement(im, "%s += %s * %s", y, tensor_element(im, f->x, from),
                           tensor_element(im, w, at));
        }
    }
    return true;
}

/* cos, e sin, −e sin */
static bool waves(struct import *im, const struct fourier *f, struct tensor **out) {
    double scale = f->inverse ? 1 / (double)f->n : 1, e = f->inverse ? scale : -scale;
    return (out[0] = wave(im, f, "cos", scale)) && (out[1] = wave(im, f, "sin", e)) &&
           (out[2] = f->complex ? wave(im, f, "sin_minus", -e) : out[1]);
}

/* x, whose dimension `part` holds real and imaginary part, or real parts alone. */
static bool fourier_input(struct import *im, struct fourier *f, int part) {
    f->part = part;
    if (f->x->type != TYPE_F32 && f->x->type != TYPE_F64)
        return node_fail(im, "the input is not f32 or f64");
    if (part >= 0 && (part < 1 || f->x->extent[part] > 2))
        return node_fail(im, "the input %s does not end with 1 or 2 parts of numbers",
                         shape_text(im->arena, f->x->ndims, f->x->extent));
    f->complex = part >= 0 && f->x->extent[part] == 2;
    return true;
}

/* One integer that is known; given: it is there. */
static bool known_input(struct import *im, const char *name, int k, int64_t *out) {
    const int64_t *list;
    int n;
    if (!node_has_input(im, k)) return true;
    if (!node_list(im, name, k, &list, &n)) return false;
    if (n != 1) return node_fail(im, "input %d ('%s') has %d elements, expected one", k, name, n);
    *out = list[0];
    return true;
}

bool op_dft(struct import *im) {
    struct fourier f = {.x = node_input(im, 0)};
    struct tensor *w[3];
    int64_t axis = im->opset < 20 ? 1 : -2, inverse = 0, onesided = 0, extent[MAX_DIMS];
    const char *from[MAX_DIMS], *to[MAX_DIMS];
    int at;
    if (!fourier_input(im, &f, f.x->ndims - 1) || !attribute_int(im, "inverse", &inverse) ||
        !attribute_int(im, "onesided", &onesided) ||
        (im->opset < 20 ? !attribute_int(im, "axis", &axis) : !known_input(im, "axis", 2, &axis)) ||
        !axis_normal(im, axis, f.x->ndims, &at))
        return false;
    if (at == f.x->ndims - 1) return node_fail(im, "the axis is the one of the parts of numbers");
    if (onesided && f.complex != (inverse != 0))
        return node_fail(im, "half of the bins are had of real numbers; they lead back to some");
    f.inverse = inverse != 0;
    f.mirrored = onesided && f.inverse;
    f.n = f.mirrored ? 2 * (f.x->extent[at] - 1) : f.x->extent[at];
    if (!known_input(im, "dft_length", 1, &f.n)) return false;
    if (f.n < 1 || f.n > MAX_COUNT) return node_fail(im, "the length is %" PRId64, f.n);
    f.taken = f.mirrored ? f.n / 2 + 1 : f.n;
    if (f.taken > f.x->extent[at]) f.taken = f.x->extent[at];
    f.bins = onesided && !f.inverse ? f.n / 2 + 1 : f.n;
    for (int d = 0; d < f.x->ndims; d++) extent[d] = f.x->extent[d];
    extent[at] = f.bins;
    extent[f.x->ndims - 1] = f.mirrored ? 1 : 2;
    if (!(f.y = node_result(im, f.x->type, f.x->ndims, extent)) || !waves(im, &f, w)) return false;
    axes_for(im, f.y->ndims - 1, extent, to);
    for (int d = 0; d < f.x->ndims - 1; d++) from[d] = to[d];
    from[at] = axis_for(im, "n", f.taken);
    return transform(im, &f, from, to, to[at], from[at], w);
}

bool op_stft(struct import *im) {
    struct fourier f = {.x = node_input(im, 0)};
    struct tensor *w[3];
    int64_t onesided = 1, step = 0, length = 0;
    const char *from[3], *to[4];
    if (f.x->ndims != 2 && f.x->ndims != 3)
        return node_fail(im, "the input has %d dimensions, expected 2 or 3", f.x->ndims);
    if (!fourier_input(im, &f, f.x->ndims == 3 ? 2 : -1) ||
        !attribute_int(im, "onesided", &onesided) || !known_input(im, "frame_step", 1, &step) ||
        !known_input(im, "frame_length", 3, &length))
        return false;
    if (node_has_input(im, 2)) {
        f.window = node_input(im, 2);
        if (f.window->ndims != 1 || (length && length != f.window->extent[0]))
            return node_fail(im, "the window is no list of as many elements as a frame");
        length = f.window->extent[0];
    }
    if (step < 1 || length < 1 || length > f.x->extent[1])
        return node_fail(im, "frames of %" PRId64 " elements, %" PRId64 " apart, do not fit %s",
                         length, step, shape_text(im->arena, f.x->ndims, f.x->extent));
    if (onesided && f.complex)
        return node_fail(im, "half of the bins are had of real numbers alone");
    f.n = f.taken = length;
    f.bins = onesided ? length / 2 + 1 : length;
    int64_t extent[4] = {f.x->extent[0], (f.x->extent[1] - length) / step + 1, f.bins, 2};
    if (!(f.y = node_result(im, f.x->type, 4, extent)) || !waves(im, &f, w)) return false;
    axes_for(im, 3, extent, to);
    const char *n = axis_for(im, "n", length), *axes[2] = {to[1], n};
    from[0] = to[0];
    from[1] = affine_text(im, 2, (int64_t[]){step, 1}, axes, 0);
    return transform(im, &f, from, to, to[2], n, w);
}
#endif
