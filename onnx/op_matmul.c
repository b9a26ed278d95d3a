/* Matrix products: MatMul with its batches, Gemm, and the integer ones. */
#include "onnx/onnx.h"

#ifdef ISAMAP_WITH_ONNX
#include "onnx/onnx_int.h"

#include <inttypes.h>
#include <string.h>

/* A product as numpy.matmul defines it. A vector on the left has no rows, one on the right no
 * columns; leading dimensions are broadcast. */
struct product {
    struct tensor *a, *b;
    bool ta, tb; /* the last two dimensions of a factor are exchanged */
    int64_t shape[MAX_DIMS];
    int ndims;
    const char *dst[MAX_DIMS], *a_index[MAX_DIMS], *b_index[MAX_DIMS];
    const char *row, *column; /* NULL: no such dimension */
    int64_t rows, columns;
};

static bool batch_shape(struct import *im, struct product *p) {
    struct tensor a = *p->a, b = *p->b;
    struct tensor *both[2] = {&a, &b};
    a.ndims = a.ndims > 2 ? a.ndims - 2 : 0;
    b.ndims = b.ndims > 2 ? b.ndims - 2 : 0;
    return shape_broadcast(im, both, 2, &p->ndims, p->shape);
}

static bool product_of(struct import *im, struct product *p, struct tensor *a, struct tensor *b) {
    p->a = a;
    p->b = b;
    int an = p->a->ndims, bn = p->b->ndims;
    if (an == 0 || bn == 0) return node_fail(im, "a scalar is not a matrix");
    bool ta = p->ta = p->ta && an > 1, tb = p->tb = p->tb && bn > 1;
    int64_t depth = a->extent[an - 1 - ta], depth_b = b->extent[bn == 1 ? 0 : bn - 2 + tb];
    if (depth != depth_b)
        return node_fail(im,
                         "%s cannot be multiplied by %s: %" PRId64 " columns, but %" PRId64 " rows",
                         shape_text(im->arena, an, a->extent), shape_text(im->arena, bn, b->extent),
                         depth, depth_b);
    if (!batch_shape(im, p)) return false;
    p->rows = an > 1 ? a->extent[an - 2 + ta] : 1;
    p->columns = bn > 1 ? b->extent[bn - 1 - tb] : 1;
    if (p->ndims + 2 > MAX_DIMS) return node_fail(im, "more than %d dimensions", MAX_DIMS);
    if (an > 1) p->shape[p->ndims++] = p->rows;
    if (bn > 1) p->shape[p->ndims++] = p->columns;
    return true;
}

static bool product_read(struct import *im, struct product *p, int a, int b) {
    return product_of(im, p, node_input(im, a), node_input(im, b));
}

static void operand_index(const struct product *p, const struct tensor *t, int nbatch,
                          const char **index) {
    int n = t->ndims > 2 ? t->ndims - 2 : 0;
    for (int d = 0; d < n; d++) {
        int at = nbatch - n + d;
        index[d] = t->extent[d] == 1 && p->shape[at] != 1 ? "0" : p->dst[at];
    }
}

static void product_axes(struct import *im, struct product *p) {
    static const char *const hint[] = {"l", "m", "n"};
    int an = p->a->ndims, bn = p->b->ndims, nbatch = p->ndims - (an > 1) - (bn > 1);
    for (int d = 0; d < nbatch; d++) p->dst[d] = axis_for(im, hint[d < 3 ? d : 2], p->shape[d]);
    p->row = an > 1 ? axis_for(im, "i", p->rows) : NULL;
    p->column = bn > 1 ? axis_for(im, "j", p->columns) : NULL;
    const char *k = axis_for(im, "k", p->a->extent[an - 1 - p->ta]);
    if (p->row) p->dst[nbatch] = p->row;
    if (p->column) p->dst[nbatch + (p->row != NULL)] = p->column;
    operand_index(p, p->a, nbatch, p->a_index);
    operand_index(p, p->b, nbatch, p->b_index);
    if (an > 1) p->a_index[an - 2 + p->ta] = p->row;
    p->a_index[an - 1 - p->ta] = k;
    p->b_index[bn == 1 ? 0 : bn - 2 + p->tb] = k;
    if (bn > 1) p->b_index[bn - 1 - p->tb] = p->column;
}

static const char *scaled(struct import *im, enum type type, double factor, const char *value) {
    if (factor == 1) return value;
    return arena_printf(im->arena, "%s * %s", text_number(im, type, factor), value);
}

static bool float_product(struct import *im, struct product *p, double alpha) {
    if (!product_read(im, p, 0, 1)) return false;
    enum type type = p->a->type;
    if (type == TYPE_BOOL || type != p->b->type)
        return node_fail(im, "the inputs are not numbers of one type");
    struct tensor *y = node_result(im, type, p->ndims, p->shape), *acc = NULL;
    if (y && alpha == 1)
        acc = sum_open(im, y);
    else if (y)
        acc = tensor_temporary(im, y->buffer, "sum", sum_type(type), p->ndims, p->shape);
    if (!acc) return false;
    product_axes(im, p);
    const char *sum = tensor_element(im, acc, p->dst);
    emit_statement(im, "%s = 0", sum);
    emit_statement(im, "%s += %s * %s", sum,
                   sum_widen(im, type, tensor_element(im, p->a, p->a_index)),
                   sum_widen(im, type, tensor_element(im, p->b, p->b_index)));
    if (alpha == 1)
        sum_close(im, y, acc, p->dst);
    else
        emit_statement(im, "%s = %s", tensor_element(im, y, p->dst),
                       sum_narrow(im, type, scaled(im, acc->type, alpha, sum)));
    return true;
}

bool op_matmul(struct import *im) {
    struct product p = {0};
    return float_product(im, &p, 1);
}

/* Of com.microsoft: factors that may be transposed, and a factor for the result. */
bool op_fused_matmul(struct import *im) {
    int64_t ta = 0, tb = 0, batch_a = 0, batch_b = 0;
    double alpha = 1;
    if (!attribute_int(im, "transA", &ta) || !attribute_int(im, "transB", &tb) ||
        !attribute_int(im, "transBatchA", &batch_a) ||
        !attribute_int(im, "transBatchB", &batch_b) || !attribute_float(im, "alpha", &alpha))
        return false;
    if (batch_a || batch_b)
        return node_fail(im, "'transBatchA' and 'transBatchB' are not supported");
    if (!type_is_float(node_input(im, 0)->type))
        return node_fail(im, "the inputs are not of floats");
    struct product p = {.ta = ta != 0, .tb = tb != 0};
    return float_product(im, &p, alpha);
}

/* Where A's zero point is data, the sums start with it times the sums of B's columns, which are
 * made once: so the products are of bytes. *start: that text. */
static bool start_with_zero(struct import *im, struct product *p, const char *zero, const char *b,
                            const char *base, const char **start) {
    struct tensor *sums = tensor_temporary(im, base, "columns", TYPE_I32, 1, &p->columns);
    if (!sums) return false;
    const char *e = tensor_element(im, sums, &p->column);
    im->ahead = p->b->data;
    emit_statement(im, "%s = 0", e);
    emit_statement(im, "%s += %s", e, b);
    im->ahead = false;
    *start = arena_printf(im->arena, "0 - %s * %s", zero, e);
    return true;
}

static bool accumulate(struct import *im, struct product *p, struct tensor *acc, struct tensor *az,
                       struct tensor *bz) {
    const char *a_zero, *b_zero, *start = "0";
    if (!quantised_zero(im, az, p->a, p->row ? p->rows : 1, p->row, &a_zero) ||
        !quantised_zero(im, bz, p->b, p->column ? p->columns : 1, p->column, &b_zero))
        return false;
    const char *b = quantised_element(im, tensor_element(im, p->b, p->b_index), b_zero);
    bool apart = a_zero && !az->data && az->elements == 1 && p->column && p->b->ndims == 2 &&
                 p->b->data && (!b_zero || bz->data);
    if (apart && !start_with_zero(im, p, a_zero, b, acc->buffer, &start)) return false;
    emit_statement(im, "%s = %s", tensor_element(im, acc, p->dst), start);
    emit_statement(
        im, "%s += %s * %s", tensor_element(im, acc, p->dst),
        quantised_element(im, tensor_element(im, p->a, p->a_index), apart ? NULL : a_zero), b);
    return true;
}

static bool eight_bits(const struct tensor *t) {
    return t->type == TYPE_I8 || t->type == TYPE_U8;
}

bool op_matmul_integer(struct import *im) {
    struct product p = {0};
    if (!product_read(im, &p, 0, 1)) return false;
    if (!eight_bits(p.a) || !eight_bits(p.b))
        return node_fail(im, "the inputs are not of 8-bit integers");
    struct tensor *y = node_result(im, TYPE_I32, p.ndims, p.shape);
    if (!y) return false;
    product_axes(im, &p);
    return accumulate(im, &p, y, node_input(im, 2), node_input(im, 3));
}

bool op_qlinear_matmul(struct import *im) {
    struct product p = {0};
    struct tensor *zero = node_input(im, 7);
    if (!product_read(im, &p, 0, 3)) return false;
    if (!eight_bits(p.a) || !eight_bits(p.b) || !eight_bits(zero))
        return node_fail(im, "inputs and result are not of 8-bit integers");
    struct tensor *y = node_result(im, zero->type, p.ndims, p.shape);
    struct tensor *acc =
        y ? tensor_temporary(im, y->buffer, "acc", TYPE_I32, p.ndims, p.shape) : NULL;
    if (!acc) return false;
    product_axes(im, &p);
    return accumulate(im, &p, acc, node_input(im, 2), node_input(im, 5)) &&
           quantised_result(im, acc, 1, 1, 4, 6, 7, p.column ? p.ndims - 1 : -1);
}

/* y = the sums times the scales of A and B, of which B's may be one for each column, plus a bias of
 * the columns */
static bool product_to_float(struct import *im, struct product *p, struct tensor *as,
                             struct tensor *bs, struct tensor *az, struct tensor *bz,
                             struct tensor *bias) {
    const struct tensor *scale[2] = {as, bs};
    struct tensor *y = node_result(im, TYPE_F32, p->ndims, p->shape), *acc;
    if (!y || !(acc = tensor_temporary(im, y->buffer, "acc", TYPE_I32, p->ndims, p->shape)))
        return false;
    if (!eight_bits(p->a) || !eight_bits(p->b))
        return node_fail(im, "the factors are not of 8-bit integers");
    for (int k = 0; k < 2; k++)
        if (!scale[k] || scale[k]->type != TYPE_F32 ||
            (scale[k]->elements != 1 && (k == 0 || scale[k]->elements != p->columns)))
            return node_fail(im, "a scale is not of f32, or does not fit");
    if (bias && (bias->type != TYPE_F32 || bias->ndims != 1 || bias->elements != p->columns))
        return node_fail(im, "the bias is not a vector of %" PRId64 " elements of f32", p->columns);
    product_axes(im, p);
    if (!accumulate(im, p, acc, az, bz)) return false;
    const char *column = p->column ? p->column : "0";
    const char *b = bs->elements == 1 ? tensor_scalar(im, bs) : tensor_element(im, bs, &column);
    const char *value = arena_printf(im->arena, "f32(%s) * (%s * %s)",
                                     tensor_element(im, acc, p->dst), tensor_scalar(im, as), b);
    if (bias) value = arena_printf(im->arena, "%s + %s", value, tensor_element(im, bias, &column));
    emit_statement(im, "%s = %s", tensor_element(im, y, p->dst), value);
    return true;
}

bool op_matmul_integer_to_float(struct import *im) {
    struct product p = {0};
    return product_read(im, &p, 0, 1) &&
           product_to_float(im, &p, node_input(im, 2), node_input(im, 3), node_input(im, 4),
                            node_input(im, 5), node_input(im, 6));
}

/* A is quantised to u8 by its own range. */
bool op_dynamic_quantize_matmul(struct import *im) {
    struct product p = {0};
    struct tensor *x = node_input(im, 0);
    const char *base = im->node->output[0];
    if (x->type != TYPE_F32) return node_fail(im, "input 0 is not f32");
    struct tensor *a = tensor_temporary(im, base, "steps", TYPE_U8, x->ndims, x->extent);
    struct tensor *scale = a ? tensor_temporary(im, base, "scale", TYPE_F32, 0, NULL) : NULL;
    struct tensor *zero = scale ? tensor_temporary(im, base, "zero", TYPE_U8, 0, NULL) : NULL;
    if (!zero || !dynamic_quantise(im, x, a, scale, zero)) return false;
    axes_release(im);
    return product_of(im, &p, a, node_input(im, 1)) &&
           product_to_float(im, &p, scale, node_input(im, 2), zero, node_input(im, 3),
                            node_input(im, 4));
}

/* ---- Gemm ---- */

struct gemm {
    struct tensor *a, *b, *c;
    int64_t transpose_a, transpose_b, shape[2], depth;
    double alpha, beta;
};

static bool gemm_read(struct import *im, struct gemm *g, int a, int b, int c) {
    int64_t broadcast_c = 1;
    int ndims;
    *g = (struct gemm){.a = node_input(im, a),
                       .b = node_input(im, b),
                       .c = node_input(im, c),
                       .alpha = 1,
                       .beta = 1};
    if (!attribute_int(im, "transA", &g->transpose_a) ||
        !attribute_int(im, "transB", &g->transpose_b) || !attribute_float(im, "alpha", &g->alpha) ||
        !attribute_float(im, "beta", &g->beta) ||
        !attribute_int(im, "broadcast", &broadcast_c)) /* before opset 7; the shapes tell */
        return false;
    if (g->a->ndims != 2 || g->b->ndims != 2) return node_fail(im, "its factors are not matrices");
    bool ta = g->transpose_a != 0, tb = g->transpose_b != 0;
    g->shape[0] = g->a->extent[ta];
    g->shape[1] = g->b->extent[!tb];
    g->depth = g->a->extent[!ta];
    if (g->b->extent[tb] != g->depth)
        return node_fail(
            im, "the factors have %" PRId64 " columns and %" PRId64 " rows, which must be equal",
            g->depth, g->b->extent[tb]);
    if (!g->c) return true;
    struct tensor y = {.ndims = 2, .extent = {g->shape[0], g->shape[1]}};
    struct tensor *both[2] = {&y, g->c};
    int64_t shape[MAX_DIMS];
    if (!shape_broadcast(im, both, 2, &ndims, shape)) return false;
    if (ndims != 2 || shape[0] != g->shape[0] || shape[1] != g->shape[1])
        return node_fail(im, "C of shape %s cannot be broadcast to %s",
                         shape_text(im->arena, g->c->ndims, g->c->extent),
                         shape_text(im->arena, 2, g->shape));
    return true;
}

bool op_gemm(struct import *im) {
    struct gemm g;
    if (!gemm_read(im, &g, 0, 1, 2)) return false;
    enum type type = g.a->type;
    if (type == TYPE_BOOL || g.b->type != type || (g.c && g.c->type != type))
        return node_fail(im, "the inputs are not numbers of one type");
    if (!type_is_float(type) && (g.alpha != 1 || g.beta != 1))
        return node_fail(im, "'alpha' and 'beta' other than 1 need floats");
    struct tensor *y = node_result(im, type, 2, g.shape), *sum = NULL;
    if (y && g.alpha == 1)
        sum = sum_open(im, y);
    else if (y)
        sum = tensor_temporary(im, y->buffer, "sum", sum_type(type), 2, g.shape);
    if (!sum) return false;
    const char *i = axis_for(im, "i", g.shape[0]), *j = axis_for(im, "j", g.shape[1]),
               *k = axis_for(im, "k", g.depth);
    const char *dst[2] = {i, j}, *a[2] = {g.transpose_a ? k : i, g.transpose_a ? i : k};
    const char *b[2] = {g.transpose_b ? j : k, g.transpose_b ? k : j}, *c = NULL;
    if (g.c && g.beta != 0)
        c = scaled(im, sum->type, g.beta,
                   sum_widen(im, type, tensor_element_broadcast(im, g.c, 2, g.shape, dst)));
    emit_statement(im, "%s = %s", tensor_element(im, sum, dst), c && g.alpha == 1 ? c : "0");
    emit_statement(im, "%s += %s * %s", tensor_element(im, sum, dst),
                   sum_widen(im, type, tensor_element(im, g.a, a)),
                   sum_widen(im, type, tensor_element(im, g.b, b)));
    if (g.alpha == 1) {
        sum_close(im, y, sum, dst);
        return true;
    }
    const char *value = scaled(im, sum->type, g.alpha, tensor_element(im, sum, dst));
    if (c) value = arena_printf(im->arena, "%s + %s", value, c);
    emit_statement(im, "%s = %s", tensor_element(im, y, dst), sum_narrow(im, type, value));
    return true;
}
/* Of com.microsoft: sums of products of bytes and a bias in their steps; the result is quantised,
 * or f32 where its scale is not given. */
bool op_qgemm(struct import *im) {
    struct gemm g;
    const char *az, *bz;
    struct tensor *zero = node_input(im, 8), *as = node_input(im, 1), *bs = node_input(im, 4);
    bool rounds = node_has_input(im, 7);
    if (!gemm_read(im, &g, 0, 3, 6)) return false;
    if (!eight_bits(g.a) || !eight_bits(g.b) || (g.c && g.c->type != TYPE_I32) ||
        (rounds && zero && !eight_bits(zero)))
        return node_fail(im, "the factors are not of 8-bit integers, or the bias not of i32");
    struct tensor *y = node_result(im,
                                   !rounds ? TYPE_F32
                                   : zero  ? zero->type
                                           : g.a->type,
                                   2, g.shape);
    struct tensor *acc = y ? tensor_temporary(im, y->buffer, "acc", TYPE_I32, 2, g.shape) : NULL;
    if (!acc) return false;
    const char *i = axis_for(im, "i", g.shape[0]), *j = axis_for(im, "j", g.shape[1]),
               *k = axis_for(im, "k", g.depth);
    const char *dst[2] = {i, j}, *a[2] = {g.transpose_a ? k : i, g.transpose_a ? i : k};
    const char *b[2] = {g.transpose_b ? j : k, g.transpose_b ? k : j};
    if (!quantised_zero(im, node_input(im, 2), g.a, 1, NULL, &az) ||
        !quantised_zero(im, node_input(im, 5), g.b, g.shape[1], j, &bz))
        return false;
    emit_statement(im, "%s = %s", tensor_element(im, acc, dst),
                   g.c ? tensor_element_broadcast(im, g.c, 2, g.shape, dst) : "0");
    emit_statement(im, "%s += %s * %s", tensor_element(im, acc, dst),
                   quantised_element(im, tensor_element(im, g.a, a), az),
                   quantised_element(im, tensor_element(im, g.b, b), bz));
    if (rounds) return quantised_result(im, acc, (float)g.alpha, 1, 4, 7, 8, 1);
    if (as->type != TYPE_F32 || bs->type != TYPE_F32 || as->elements != 1 ||
        (bs->elements != 1 && bs->elements != g.shape[1]))
        return node_fail(im, "a scale is not of f32, or does not fit");
    emit_statement(im, "%s = f32(%s) * (%s * %s)", tensor_element(im, y, dst),
                   tensor_element(im, acc, dst),
                   scaled(im, TYPE_F32, g.alpha, tensor_scalar(im, as)),
                   bs->elements == 1 ? tensor_scalar(im, bs) : tensor_element(im, bs, &j));
    return true;
}

/* Of com.microsoft: weights of 4 bits that name one of 16 numbers, times the largest magnitude of
 * their block: those of bitsandbytes. They must be constants and are opened while the model is
 * read. */
bool op_matmul_bnb4(struct import *im) {
    static const float table[2][16] = {
        {0, 0.00520833333f, 0.66666667f, 1, 0.33333333f, 0.5f, 0.16666667f, 0.25f, 0,
         -0.00520833333f, -0.66666667f, -1, -0.33333333f, -0.5f, -0.16666667f, -0.25f},
        {-1, -0.6961928009986877f, -0.5250730514526367f, -0.39491748809814453f,
         -0.28444138169288635f, -0.18477343022823334f, -0.09105003625154495f, 0,
         0.07958029955625534f, 0.16093020141124725f, 0.24611230194568634f, 0.33791524171829224f,
         0.44070982933044434f, 0.5626170039176941f, 0.7229568362236023f, 1}};
    struct tensor *x = node_input(im, 0), *b = node_input(im, 1), *most = node_input(im, 2);
    int64_t rows = 0, depth = 0, block = 0, kind = 0, turned = 1, training = 0;
    if (!attribute_int(im, "N", &rows) || !attribute_int(im, "K", &depth) ||
        !attribute_int(im, "block_size", &block) || !attribute_int(im, "quant_type", &kind) ||
        !attribute_int(im, "transB", &turned) || !attribute_int(im, "training_mode", &training))
        return false;
    if (kind < 0 || kind > 1 || !turned)
        return node_fail(im, "'quant_type' is neither 0 nor 1, or 'transB' is 0");
    if (rows < 1 || depth < 1 || block < 1 || rows > INT64_C(1) << 40 || depth > MAX_COUNT ||
        b->type != TYPE_U8 || !b->data || !most->data || most->type != x->type ||
        !type_is_float(x->type) || b->elements != (rows * depth + 1) / 2 ||
        most->elements != (rows * depth + block - 1) / block)
        return node_fail(im,
                         "weights and scales are not constants for %" PRId64 " rows of %" PRId64,
                         rows, depth);
    int64_t extent[2] = {depth, rows};
    size_t size = type_size(x->type);
    char *data = arena_alloc(im->arena, (size_t)(rows * depth) * size);
    for (int64_t i = 0; i < rows * depth; i++) {
        int byte = ((const uint8_t *)b->data)[i / 2];
        double v =
            (double)table[kind][i % 2 ? byte & 15 : byte >> 4] * tensor_float(most, i / block);
        type_store(x->type, data + (size_t)(i % depth * rows + i / depth) * size,
                   (union value){.f = v});
    }
    struct tensor *w =
        tensor_constant(im, im->node->output[0], "weights", x->type, 2, extent, data);
    return w && inner_node(im, "MatMul", im->node->input[0], inner_value(im, w, "weights"),
                           im->node->output[0]);
}
#endif
