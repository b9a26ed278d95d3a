/* Operators of signals: windows; determinants stand here too, as they are sums of products of a
 * known form. */
#include "onnx/onnx.h"

#ifdef ISAMAP_WITH_ONNX
#include "onnx/onnx_int.h"

#include <inttypes.h>
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
#endif
