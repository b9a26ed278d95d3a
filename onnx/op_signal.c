/* Operators of signals: windows, a convolution over what has come so far; determinants stand here
 * too, as they are sums of products of a known form. */
#include "onnx/onnx.h"

#ifdef ISAMAP_WITH_ONNX
#include "onnx/onnx_int.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* y[i] = a − b cos(2πi/n) + c cos(4πi/n); a symmetric window counts n − 1 */
static bool cosine_window(struct import *im, double a, double b, double c) {
    int64_t periodic = 1, to = 1, size;
    const int64_t *list;
    enum type type;
    int n;
    if (!attribute_int(im, "periodic", &periodic) || !attribute_int(im, "output_datatype", &to) ||
        !node_list(im, "size", 0, &list, &n))
        return false;
    if (n != 1) return node_fail(im, "input 0 ('size') has %d elements, expected one", n);
    if (to < 0 || to > INT32_MAX || !tensor_type((int32_t)to, &type))
        return node_fail(im, "the type that 'output_datatype' gives, %" PRId64 ", is not supported",
                         to);
    size = list[0];
    struct tensor *y = node_result(im, type, 1, &size);
    if (!y) return false;
    const char *i = axis_for(im, "i", size);
    const char *turn =
        text_number(im, TYPE_F64,
                    2 * 3.14159265358979323846 / (double)(periodic || size < 2 ? size : size - 1));
    emit_statement(im, "%s = %s(%s - %s * cos(f64(%s) * %s) + %s * cos(f64(%s) * %s * 2))",
                   tensor_element(im, y, &i), type_name(type), text_number(im, TYPE_F64, a),
                   text_number(im, TYPE_F64, b), i, turn, text_number(im, TYPE_F64, c), i, turn);
    return true;
}

bool op_hann_window(struct import *im) {
    return cosine_window(im, 0.5, 0.5, 0);
}

bool op_hamming_window(struct import *im) {
    return cosine_window(im, 25.0 / 46, 21.0 / 46, 0);
}

bool op_blackman_window(struct import *im) {
    return cosine_window(im, 0.42, 0.5, 0.08);
}

/* ---- determinants ---- */

enum { LARGEST_DET = 5 };

/* The determinant of the rows from `row` on and the columns not in `used`, by its first row. */
static void minor(struct import *im, struct tensor *x, const char **index, int row, unsigned used,
                  struct text *t) {
    static const char *const digit[LARGEST_DET] = {"0", "1", "2", "3", "4"};
    int n = (int)x->extent[x->ndims - 1], sign = 0;
    for (int c = 0; c < n; c++) {
        if (used >> c & 1) continue;
        index[x->ndims - 2] = digit[row];
        index[x->ndims - 1] = digit[c];
        text_printf(t, "%s%s", sign % 2 ? " - " : sign ? " + " : "", tensor_element(im, x, index));
        if (row + 1 < n) {
            text_printf(t, " * (");
            minor(im, x, index, row + 1, used | 1u << c, t);
            text_printf(t, ")");
        }
        sign++;
    }
}

bool op_det(struct import *im) {
    struct tensor *x = node_input(im, 0);
    const char *index[MAX_DIMS];
    int n = x->ndims - 2;
    if (n < 0 || x->extent[n] != x->extent[n + 1] || !type_is_float(x->type))
        return node_fail(im, "the input is not of square matrices of floats");
    if (x->extent[n] > LARGEST_DET)
        return node_fail(im, "matrices of more than %d rows are not supported", LARGEST_DET);
    struct tensor *y = node_result(im, x->type, n, x->extent);
    if (!y) return false;
    axes_for(im, n, x->extent, index);
    const char *to = tensor_element(im, y, index);
    struct text t = {0};
    minor(im, x, index, 0, 0, &t);
    emit_statement(im, "%s = %s", to, t.at);
    text_free(&t);
    return true;
}

/* ---- CausalConvWithState ---- */

/* Behind the state (else zeros) the input: over them each channel's own window; the end is the next
 * state. */
bool op_causal_conv(struct import *im) {
    struct tensor *x = node_input(im, 0), *w = node_input(im, 1), *bias = node_input(im, 2),
                  *past = node_input(im, 3);
    const char *activation = "none", *to[3], *from[3], *filter[3];
    int64_t dilation = 1; /* of com.microsoft */
    if (!attribute_string(im, "activation", &activation) ||
        !attribute_int(im, "dilation", &dilation))
        return false;
    bool silu = strcmp(activation, "silu") == 0 || strcmp(activation, "swish") == 0;
    if (!silu && strcmp(activation, "none") != 0)
        return node_fail(im, "'activation' is '%s', expected silu, swish or none",
                         name_shown(im->arena, activation));
    bool fits =
        dilation >= 1 && dilation <= MAX_COUNT && type_is_float(x->type) && x->ndims == 3 &&
        w->ndims == 3 && w->type == x->type && w->extent[0] == x->extent[1] && w->extent[1] == 1 &&
        (!bias || (bias->type == x->type && bias->ndims == 1 && bias->extent[0] == x->extent[1]));
    int64_t before = fits ? (w->extent[2] - 1) * dilation : 0, extent[3], state[3];
    for (int d = 0; d < 3 && fits; d++) {
        extent[d] = x->extent[d] + (d == 2 ? before : 0);
        state[d] = d == 2 ? before : x->extent[d];
        fits = !past || (past->type == x->type && past->ndims == 3 && past->extent[d] == state[d]);
    }
    if (!fits) return node_fail(im, "input, weights, bias or state do not fit");
    struct tensor *y = node_result(im, x->type, 3, x->extent), *acc = y ? sum_open(im, y) : NULL,
                  *line = acc ? tensor_temporary(im, y->buffer, "line", x->type, 3, extent) : NULL;
    if (!line) return false;
    axes_for(im, 3, x->extent, to);
    memcpy(from, to, sizeof from);
    from[2] = affine_text(im, 1, (int64_t[]){1}, &to[2], before);
    emit_statement(im, "%s = %s", tensor_element(im, line, from), tensor_element(im, x, to));
    const char *r = axis_for(im, "r", w->extent[2]), *s = before ? axis_for(im, "s", before) : NULL;
    from[2] = s;
    if (s)
        emit_statement(im, "%s = %s", tensor_element(im, line, from),
                       past ? tensor_element(im, past, from) : "0");
    if (!s && node_wants(im, 1) && !node_constant_at(im, 1, x->type, 3, state, "")) return false;
    if (s && node_wants(im, 1)) {
        struct tensor *next = node_result_at(im, 1, x->type, 3, state);
        if (!next) return false;
        const char *e = tensor_element(im, next, from);
        from[2] = affine_text(im, 1, (int64_t[]){1}, &s, x->extent[2]);
        emit_statement(im, "%s = %s", e, tensor_element(im, line, from));
    }
    from[2] = affine_text(im, 2, (int64_t[]){1, dilation}, (const char *[]){to[2], r}, 0);
    filter[0] = to[1], filter[1] = "0", filter[2] = r;
    const char *a = tensor_element(im, acc, to);
    emit_statement(im, "%s = %s", a,
                   bias ? sum_widen(im, x->type, tensor_element(im, bias, &to[1])) : "0");
    emit_statement(im, "%s += %s * %s", a, sum_widen(im, x->type, tensor_element(im, line, from)),
                   sum_widen(im, x->type, tensor_element(im, w, filter)));
    if (silu) emit_statement(im, "%s = %s * sigmoid(%s)", a, a, a);
    sum_close(im, y, acc, to);
    return true;
}

/* Triangles of equal width on the mel scale, which gather the bins of a transform. Of constants. */
bool op_mel_weight_matrix(struct import *im) {
    double in[5];
    int64_t to = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT;
    enum type type;
    if (!attribute_int(im, "output_datatype", &to)) return false;
    for (int k = 0; k < 5; k++) {
        struct tensor *t = node_input(im, k);
        if (!t->data || t->elements != 1)
            return node_fail(im, "input %d is not a constant of one element", k);
        in[k] = tensor_float(t, 0);
    }
    double low = 2595 * log10(1 + in[3] / 700), high = 2595 * log10(1 + in[4] / 700);
    if (!(in[0] >= 1 && in[1] >= 1 && in[2] >= 1 && in[0] * in[1] <= MAX_COUNT && low <= high &&
          in[3] >= 0 && in[4] <= in[2] / 2))
        return node_fail(im, "%g triangles of a transform of %g, from %g to %g Hz, are not known",
                         in[0], in[1], in[3], in[4]);
    if (!tensor_type((int32_t)to, &type) || !type_is_float(type))
        return node_fail(im, "'output_datatype' is %" PRId64 ", expected floats", to);
    int64_t n = (int64_t)in[0], extent[2] = {(int64_t)in[1] / 2 + 1, n};
    int64_t *bin = arena_array(im->arena, (size_t)n + 2, sizeof *bin);
    size_t size = type_size(type);
    char *data = arena_array(im->arena, (size_t)(extent[0] * n), size);
    for (int64_t i = 0; i < n + 2; i++) {
        double hertz =
            700 * (pow(10, (low + (high - low) / ((double)n + 2) * (double)i) / 2595) - 1);
        bin[i] = (int64_t)floor((in[1] + 1) * hertz / in[2]);
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = bin[i]; j <= bin[i + 2] && j < extent[0]; j++) {
            int64_t up = bin[i + 1] - bin[i], down = bin[i + 2] - bin[i + 1];
            double v = j < bin[i + 1] ? (double)(j - bin[i]) / (double)up
                       : j > bin[i + 1] || down
                           ? (double)(bin[i + 2] - j) / (double)(down ? down : 1)
                           : 1;
            type_store(type, data + (size_t)(j * n + i) * size, (union value){.f = v});
        }
    return node_constant(im, type, 2, extent, data);
}
#endif
