/* Operators of two factors between DequantizeLinear and QuantizeLinear: convolutions and matrix
 * products on integers. */
#include "onnx/onnx.h"

#ifdef ISAMAP_WITH_ONNX
#include "onnx/qdq_int.h"

#include <math.h>
#include <string.h>

/* The bias in steps of the sums, i32; *out NULL: none. False: not known, or a step is too coarse.
 */
static bool bias_steps(struct qdq *q, const char *name, const struct link *x, const struct link *w,
                       double y_scale, const char **out) {
    struct link b;
    *out = NULL;
    if (!name) return true;
    const struct tensor *t = qdq_known_of(q, name), *integers = NULL;
    bool linked = !t && qdq_dequantised(q, name, &b);
    if (linked && b.type == TYPE_I32) integers = name_find(&q->im->value, b.integers);
    if (!t && (!integers || !integers->data)) return false;
    int64_t n = t ? t->elements : integers->elements;
    int32_t *data = arena_array(q->im->arena, (size_t)n, sizeof *data);
    for (int64_t i = 0; i < n; i++) {
        double step =
            tensor_float(x->scales, 0) *
            tensor_float(w->scales, w->scales->elements == 1 ? 0 : i % w->scales->elements);
        double v =
            t ? tensor_float(t, i)
              : (double)(tensor_int(integers, i) -
                         (b.zeros ? tensor_int(b.zeros, b.zeros->elements == 1 ? 0 : i) : 0)) *
                    tensor_float(b.scales, b.scales->elements == 1 ? 0 : i);
        double steps = rint(v / step);
        if (!(fabs(steps) < 1 << 30) || step > 0.25 * y_scale) return false;
        data[i] = (int32_t)steps;
    }
    const char *made = qdq_new_constant(q, name, "steps", TYPE_I32, n, data);
    ((struct tensor *)name_find(&q->im->value, made))->ndims = 1;
    *out = made;
    return true;
}

static bool factors(const struct qdq *q, const Onnx__NodeProto *op, struct link *x,
                    struct link *w) {
    return qdq_dequantised(q, qdq_input_of(op, 0), x) &&
           qdq_dequantised(q, qdq_input_of(op, 1), w) && qdq_one_step(x) && qdq_eight_bits(w->type);
}

/* Are there as many scales as the weights have entries along `dimension`, or one? */
static bool scales_along(const struct qdq *q, const struct link *w, int dimension) {
    const struct tensor *t = name_find(&q->im->value, w->integers);
    if (w->scales->elements == 1) return true;
    if (!t || dimension >= t->ndims || dimension < 0) return false;
    int64_t axis = w->axis < 0 ? w->axis + t->ndims : w->axis;
    return axis == dimension && w->scales->elements == t->extent[dimension];
}

/* The two factors as an operator takes them, each with its scale and zero point; behind them the
 * scale and zero point of the result. */
static void put_factors(struct qdq *q, const struct link *a, const struct link *b, const char *out,
                        const char **in) {
    const struct link *of[2] = {a, b};
    for (int k = 0; k < 2; k++, in += 3) {
        in[0] = of[k]->integers;
        in[1] = of[k]->scale;
        in[2] = qdq_zero_of(q, of[k], out);
    }
}

static void put_result(struct qdq *q, const struct link *y, const char *out, const char **in) {
    in[0] = y->scale;
    in[1] = qdq_zero_of(q, y, out);
}

Onnx__NodeProto *qdq_convolution(struct qdq *q, const struct chain_end *e, const char *out) {
    struct link x, w;
    const char *bias, *in[9];
    if (!factors(q, e->op, &x, &w) || !scales_along(q, &w, 0) ||
        !bias_steps(q, qdq_input_of(e->op, 2), &x, &w, tensor_float(e->y.scales, 0), &bias))
        return NULL;
    put_factors(q, &x, &w, out, in);
    put_result(q, &e->y, out, in + 6);
    in[8] = bias;
    Onnx__NodeProto *n = qdq_new_node(q, e->op, "QLinearConv", false, bias ? 9 : 8, in, out);
    return e->line ? qdq_on_line(q, n, e) : n;
}

/* By columns: w's scales lie along its last dimension, or the first where it is transposed. */
static bool columns(const struct qdq *q, const struct link *w, bool transposed) {
    const struct tensor *t = name_find(&q->im->value, w->integers);
    return t ? scales_along(q, w, transposed ? 0 : t->ndims - 1) : qdq_one_step(w);
}

/* An operator of two factors, each with its scale and zero point before those of the result. */
Onnx__NodeProto *qdq_of_two(struct qdq *q, const struct chain_end *e, const struct link *a,
                            const struct link *b, const char *op, bool microsoft, const char *out) {
    const char *in[8];
    put_factors(q, a, b, out, in);
    put_result(q, &e->y, out, in + 6);
    return qdq_new_node(q, e->op, op, microsoft, 8, in, out);
}

Onnx__NodeProto *qdq_matrix_product(struct qdq *q, const struct chain_end *e, const char *out) {
    struct link x, w;
    if (!factors(q, e->op, &x, &w) || !columns(q, &w, false)) return NULL;
    return qdq_of_two(q, e, &x, &w, "QLinearMatMul", false, out);
}

static bool unscaled(const Onnx__NodeProto *n) {
    static const char *const name[2] = {"alpha", "beta"};
    for (int k = 0; k < 2; k++) {
        const Onnx__AttributeProto *a = qdq_attribute_of(n, name[k]);
        if (a && a->f != 1) return false;
    }
    return true;
}

/* Gemm; without a chain's end its result is f32. */
Onnx__NodeProto *qdq_gemm(struct qdq *q, const Onnx__NodeProto *op, const struct chain_end *e,
                          const char *out) {
    struct link x, w;
    const char *bias, *in[9];
    double y = e ? tensor_float(e->y.scales, 0) : INFINITY;
    if (!unscaled(op) || !factors(q, op, &x, &w) ||
        !columns(q, &w, qdq_integer_of(op, "transB", 0)) ||
        !bias_steps(q, qdq_input_of(op, 2), &x, &w, y, &bias))
        return NULL;
    put_factors(q, &x, &w, out, in);
    in[6] = bias;
    if (e) put_result(q, &e->y, out, in + 7);
    Onnx__NodeProto *n = qdq_new_node(q, op, "QGemm", true, e ? 9 : 7, in, out);
    qdq_drop_attribute(n, "beta");
    return n;
}

Onnx__NodeProto *qdq_product_to_float(struct qdq *q, const Onnx__NodeProto *op) {
    struct link x, w;
    const char *out = op->output[0];
    if (qdq_is(op, "Gemm")) return qdq_gemm(q, op, NULL, out);
    if (!factors(q, op, &x, &w) || !columns(q, &w, false)) return NULL;
    const char *in[6] = {
        x.integers, w.integers, x.scale, w.scale, qdq_zero_of(q, &x, out), qdq_zero_of(q, &w, out)};
    return qdq_new_node(q, op, "MatMulIntegerToFloat", true, 6, in, out);
}

#endif
