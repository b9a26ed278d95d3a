/* Of com.microsoft: a product whose second factor is in blocks of 2, 4 or 8 bits, each with a
 * scale. What they stand for is made once, before the first run. */
#include "onnx/onnx.h"

#ifdef ISAMAP_WITH_ONNX
#include "onnx/onnx_int.h"

#include <inttypes.h>
#include <string.h>

struct blocks {
    struct tensor *bytes, *scale, *zero; /* bytes: [row, block, byte]; one scale a block */
    int64_t rows, depth, size, bits, count;
};

static bool blocks_read(struct import *im, struct blocks *b) {
    b->bytes = node_input(im, 1);
    b->scale = node_input(im, 2);
    b->zero = node_input(im, 3);
    b->bits = 4;
    int64_t level = 0;
    if (!attribute_int(im, "K", &b->depth) || !attribute_int(im, "N", &b->rows) ||
        !attribute_int(im, "bits", &b->bits) || !attribute_int(im, "block_size", &b->size) ||
        !attribute_int(im, "accuracy_level", &level) || /* how exact at least: ours is exact */
        !attribute_int(im, "weight_prepacked", &level))
        return false;
    if (node_has_input(im, 4)) return node_fail(im, "'g_idx' is not supported");
    if (b->depth < 1 || b->rows < 1 || b->size < 1 || b->depth > MAX_COUNT || b->rows > MAX_COUNT ||
        b->size > MAX_COUNT || (b->bits != 2 && b->bits != 4 && b->bits != 8) ||
        b->size * b->bits % 8)
        return node_fail(im, "its sizes do not fit");
    b->count = (b->depth + b->size - 1) / b->size;
    int64_t packed = (b->count * b->bits + 7) / 8;
    bool floats = b->zero && type_is_float(b->zero->type);
    if (b->bytes->type != TYPE_U8 || b->bytes->ndims != 3 || b->bytes->extent[0] != b->rows ||
        b->bytes->extent[1] != b->count || b->bytes->extent[2] != b->size * b->bits / 8 ||
        !type_is_float(b->scale->type) || b->scale->elements != b->rows * b->count ||
        (b->zero && b->zero->elements != b->rows * (floats ? b->count : packed)) ||
        (b->zero && !floats && b->zero->type != TYPE_U8))
        return node_fail(im, "weights, scales or zero points do not fit");
    return true;
}

/* Element [row, column] of a tensor of so many columns, which may be one line. */
static const char *line_element(struct import *im, struct tensor *t, int64_t columns,
                                const char *row, const char *column) {
    const char *index[MAX_DIMS] = {row, column};
    for (int d = 2; d < t->ndims; d++) index[d] = "0";
    if (t->ndims == 1)
        index[0] = affine_text(im, 2, (int64_t[]){columns, 1}, (const char *[]){row, column}, 0);
    return tensor_element(im, t, index);
}

/* Field `k` of a byte, as f32 */
static const char *field(struct import *im, const struct blocks *b, const char *byte, int k) {
    if (b->bits == 8) return arena_printf(im->arena, "f32(%s)", byte);
    int shift = k * (int)b->bits, mask = (1 << b->bits) - 1;
    if (shift == 0) return arena_printf(im->arena, "f32(%s & %d)", byte, mask);
    return arena_printf(im->arena, "f32(shr(%s, %d) & %d)", byte, shift, mask);
}

/* The zero point of each block: f32[row, block], with room for whole bytes. */
static struct tensor *blocks_zero(struct import *im, const struct blocks *b) {
    int64_t each = 8 / b->bits, packed = (b->count + each - 1) / each;
    int64_t extent[2] = {b->rows, packed * each};
    struct tensor *z = tensor_temporary(im, im->node->output[0], "zero", TYPE_F32, 2, extent);
    for (int k = 0; z && k < each; k++) {
        axes_release(im);
        const char *row = axis_for(im, "j", b->rows), *at = axis_for(im, "c", packed);
        const char *to[2] = {row, affine_text(im, 1, &each, &at, k)};
        emit_statement(im, "%s = %s", tensor_element(im, z, to),
                       field(im, b, line_element(im, b->zero, packed, row, at), k));
    }
    return z;
}

/* The factor in f32, [row, column], with whole blocks. */
static struct tensor *blocks_open(struct import *im, const struct blocks *b) {
    int64_t each = 8 / b->bits, extent[2] = {b->rows, b->count * b->size};
    struct tensor *w = tensor_temporary(im, im->node->output[0], "factor", TYPE_F32, 2, extent),
                  *zero = NULL;
    bool packed = b->zero && !type_is_float(b->zero->type);
    if (!w || (packed && !(zero = blocks_zero(im, b)))) return NULL;
    for (int k = 0; k < each; k++) {
        axes_release(im);
        const char *axis[3];
        axis[0] = axis_for(im, "j", b->rows);
        axis[1] = axis_for(im, "c", b->count);
        axis[2] = axis_for(im, "b", b->bytes->extent[2]);
        const char *z = zero ? tensor_element(im, zero, axis)
                        : b->zero
                            ? arena_printf(im->arena, "f32(%s)",
                                           line_element(im, b->zero, b->count, axis[0], axis[1]))
                            : text_number(im, TYPE_F32, (double)(1 << (b->bits - 1)));
        const char *to[2] = {axis[0], affine_text(im, 2, (int64_t[]){b->size, each}, &axis[1], k)};
        emit_statement(im, "%s = (%s - %s) * f32(%s)", tensor_element(im, w, to),
                       field(im, b, tensor_element(im, b->bytes, axis), k), z,
                       line_element(im, b->scale, b->count, axis[0], axis[1]));
    }
    return w;
}

bool op_matmul_nbits(struct import *im) {
    struct blocks b = {0};
    struct tensor *x = node_input(im, 0), *bias = node_input(im, 5);
    const char *from[MAX_DIMS], *to[MAX_DIMS], *at[2];
    int64_t extent[MAX_DIMS];
    int last = x->ndims - 1;
    if (!blocks_read(im, &b)) return false;
    if (last < 0 || x->extent[last] != b.depth || !type_is_float(x->type) ||
        (bias && (bias->elements != b.rows || bias->type != x->type)))
        return node_fail(im, "the input %s or the bias does not fit",
                         shape_text(im->arena, x->ndims, x->extent));
    memcpy(extent, x->extent, sizeof extent);
    extent[last] = b.rows;
    struct tensor *y = node_result(im, x->type, x->ndims, extent),
                  *acc = y ? sum_open(im, y) : NULL;
    if (!acc) return false;
    im->ahead = b.bytes->data && b.scale->data && (!b.zero || b.zero->data);
    struct tensor *w = blocks_open(im, &b);
    im->ahead = false;
    if (!w) return false;
    axes_release(im);
    axes_for(im, x->ndims, extent, to);
    memcpy(from, to, sizeof from);
    at[0] = to[last];
    at[1] = from[last] = axis_for(im, "k", b.depth);
    const char *sum = tensor_element(im, acc, to);
    emit_statement(im, "%s = %s", sum,
                   bias ? sum_widen(im, x->type, tensor_element(im, bias, &to[last])) : "0");
    emit_statement(im, "%s += %s * %s", sum, sum_widen(im, x->type, tensor_element(im, x, from)),
                   tensor_element(im, w, at));
    sum_close(im, y, acc, to);
    return true;
}
#endif
