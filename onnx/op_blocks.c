/* Of com.microsoft: a product whose second factor is in blocks of 2, 4 or 8 bits, each with a
 * scale, and rows taken from such a table. */
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
static const char *field(struct import *im, int64_t bits, const char *byte, int k) {
    int shift = k * (int)bits, mask = (1 << bits) - 1;
    const char *above = shift ? arena_printf(im->arena, "shr(%s, %d)", byte, shift) : byte;
    bool last = shift + bits == 8;
    return last ? arena_printf(im->arena, "f32(%s)", above)
                : arena_printf(im->arena, "f32(%s & %d)", above, mask);
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
                       field(im, b->bits, line_element(im, b->zero, packed, row, at), k));
    }
    return z;
}

/* One number of each block in f32: [row, block]. What is one line becomes rows. */
static struct tensor *blocks_numbers(struct import *im, const struct blocks *b, struct tensor *t,
                                     const char *suffix) {
    int64_t extent[2] = {b->rows, b->count};
    if (t->type == TYPE_F32 && t->ndims == 2) return t;
    struct tensor *n = tensor_temporary(im, im->node->output[0], suffix, TYPE_F32, 2, extent);
    if (!n) return NULL;
    axes_release(im);
    const char *at[2] = {axis_for(im, "j", b->rows), axis_for(im, "c", b->count)};
    const char *from = line_element(im, t, b->count, at[0], at[1]);
    emit_statement(im, t->type == TYPE_F32 ? "%s = %s" : "%s = f32(%s)", tensor_element(im, n, at),
                   from);
    return n;
}

/* Scales and zero points of constant weights, before the first run. */
static bool blocks_ahead(struct import *im, struct blocks *b) {
    struct tensor *zero = b->zero;
    im->ahead = b->bytes->data && b->scale->data && (!zero || zero->data);
    b->scale = blocks_numbers(im, b, b->scale, "scale");
    if (zero)
        b->zero =
            type_is_float(zero->type) ? blocks_numbers(im, b, zero, "zero") : blocks_zero(im, b);
    im->ahead = false;
    return b->scale && (b->zero || !zero);
}

/* What field `k` of byte [j, c, b] stands for. */
static const char *number(struct import *im, const struct blocks *b, const char *const axis[3],
                          int k) {
    const char *zero = b->zero ? tensor_element(im, b->zero, axis)
                               : text_number(im, TYPE_F32, (double)(1 << (b->bits - 1)));
    return arena_printf(im->arena, "(%s - %s) * %s",
                        field(im, b->bits, tensor_element(im, b->bytes, axis), k), zero,
                        tensor_element(im, b->scale, axis));
}

/* A sum for each field of a byte, so that an instruction may take the fields out of the bytes. */
bool op_matmul_nbits(struct import *im) {
    struct blocks b = {0};
    struct tensor *x = node_input(im, 0), *bias = node_input(im, 5);
    const char *from[MAX_DIMS], *to[MAX_DIMS];
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
    if (!acc || !blocks_ahead(im, &b)) return false;
    axes_release(im);
    axes_for(im, x->ndims, extent, to);
    const char *axis[3] = {to[last], axis_for(im, "c", b.count),
                           axis_for(im, "b", b.bytes->extent[2])},
               *sum = tensor_element(im, acc, to);
    emit_statement(im, "%s = %s", sum,
                   bias ? sum_widen(im, x->type, tensor_element(im, bias, &to[last])) : "0");
    memcpy(from, to, sizeof from);
    for (int k = 0, each = 8 / (int)b.bits; k < each; k++) {
        from[last] = affine_text(im, 2, (int64_t[]){b.size, each}, &axis[1], k);
        const char *factor =
            tensor_element_else(im, x, from, b.count * b.size > b.depth ? "0" : NULL);
        emit_statement(im, "%s += %s * (%s)", sum, sum_widen(im, x->type, factor),
                       number(im, &b, axis, k));
    }
    sum_close(im, y, acc, to);
    return true;
}

/* The fields of all bytes, in f32; the last dimension is so many times as long. */
static struct tensor *fields_open(struct import *im, struct tensor *bytes, int64_t bits,
                                  const char *suffix) {
    int64_t each = 8 / bits, extent[MAX_DIMS];
    const char *from[MAX_DIMS], *to[MAX_DIMS];
    int last = bytes->ndims - 1;
    memcpy(extent, bytes->extent, sizeof extent);
    extent[last] *= each;
    struct tensor *t =
        tensor_temporary(im, im->node->output[0], suffix, TYPE_F32, bytes->ndims, extent);
    for (int k = 0; t && k < each; k++) {
        axes_release(im);
        axes_for(im, bytes->ndims, bytes->extent, from);
        memcpy(to, from, sizeof to);
        to[last] = affine_text(im, 1, &each, &from[last], k);
        emit_statement(im, "%s = %s", tensor_element(im, t, to),
                       field(im, bits, tensor_element(im, bytes, from), k));
    }
    return t;
}

/* Rows of a table of fields and of their scales and zero points, then what the fields stand for. */
bool op_gather_block_quantized(struct import *im) {
    static const char *const name[3] = {"rows", "scales", "zeros"};
    struct tensor *t[3] = {node_input(im, 0), node_input(im, 2), node_input(im, 3)};
    int64_t bits = 4, size = 128, extent[MAX_DIMS];
    const char *to[MAX_DIMS], *block[MAX_DIMS];
    int axis, along, last = t[0]->ndims - 1;
    if (!attribute_int(im, "bits", &bits) || !attribute_int(im, "block_size", &size) ||
        !attribute_axis(im, "gather_axis", 0, t[0]->ndims, &axis) ||
        !attribute_axis(im, "quantize_axis", 1, t[0]->ndims, &along))
        return false;
    if (t[0]->type != TYPE_U8 || (bits != 2 && bits != 4 && bits != 8) || axis == last ||
        along != last)
        return node_fail(im, "the table is not of bytes with blocks along its last dimension");
    int64_t count = t[0]->extent[last] * (8 / bits) / (size > 0 ? size : 1);
    if (size < 1 || count < 1 || t[0]->extent[last] * (8 / bits) != count * size ||
        !type_is_float(t[1]->type) || t[1]->ndims != t[0]->ndims || t[1]->extent[last] != count ||
        (t[2] && (t[2]->type != TYPE_U8 || t[2]->ndims != t[0]->ndims ||
                  t[2]->extent[last] * (8 / bits) < count)))
        return node_fail(im, "table, scales or zero points do not fit");
    enum type type = t[1]->type;
    for (int k = 0; k < 3; k++) {
        static const int from[3] = {0, 2, 3};
        if (!t[k]) continue;
        const char *rows = inner_name(im, name[k]);
        struct inner n = {.input = {im->node->input[from[k]], im->node->input[1]},
                          .ninputs = 2,
                          .output = {rows}};
        inner_int(im, &n, "axis", axis);
        if (!inner_lower(im, &n, "Gather")) return false;
        t[k] = name_find(&im->value, rows);
        if (k != 1 && !(t[k] = fields_open(im, t[k], bits, k ? "zero" : "fields"))) return false;
    }
    int n = t[0]->ndims;
    struct tensor *y = node_result(im, type, n, t[0]->extent);
    if (!y) return false;
    memcpy(extent, t[0]->extent, sizeof extent);
    extent[n - 1] = count;
    axes_release(im);
    axes_for(im, n, extent, block);
    memcpy(to, block, sizeof to);
    to[n - 1] = affine_text(im, 2, (int64_t[]){size, 1},
                            (const char *[]){block[n - 1], axis_for(im, "b", size)}, 0);
    const char *zero = t[2] ? tensor_element(im, t[2], block)
                            : text_number(im, TYPE_F32, (double)(1 << (bits - 1)));
    emit_statement(im, "%s = %s((%s - %s) * f32(%s))", tensor_element(im, y, to), type_name(type),
                   tensor_element(im, t[0], to), zero, tensor_element(im, t[1], block));
    return true;
}
#endif
