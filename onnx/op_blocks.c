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
    bool coarse; /* the model allows inputs of 8 bits, with a scale for each block */
};

enum { MAX_SUMMED = INT32_MAX / (128 * 255) }; /* products of bytes that 32 bits can sum */

static bool blocks_read(struct import *im, struct blocks *b) {
    b->bytes = node_input(im, 1);
    b->scale = node_input(im, 2);
    b->zero = node_input(im, 3);
    b->bits = 4;
    int64_t level = 0, prepacked = 0;
    if (!attribute_int(im, "K", &b->depth) || !attribute_int(im, "N", &b->rows) ||
        !attribute_int(im, "bits", &b->bits) || !attribute_int(im, "block_size", &b->size) ||
        !attribute_int(im, "accuracy_level", &level) ||
        !attribute_int(im, "weight_prepacked", &prepacked))
        return false;
    if (node_has_input(im, 4)) return node_fail(im, "'g_idx' is not supported");
    if (b->depth < 1 || b->rows < 1 || b->size < 1 || b->depth > MAX_COUNT || b->rows > MAX_COUNT ||
        b->size > MAX_COUNT || (b->bits != 2 && b->bits != 4 && b->bits != 8) ||
        b->size * b->bits % 8)
        return node_fail(im, "its sizes do not fit");
    b->coarse = level == 4 && b->bits > 2 && b->size <= MAX_SUMMED && !im->exact;
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

/* Field `k` of a byte */
static const char *field(struct import *im, int64_t bits, const char *byte, int k) {
    int shift = k * (int)bits, mask = (1 << bits) - 1;
    const char *above = shift ? arena_printf(im->arena, "shr(%s, %d)", byte, shift) : byte;
    bool last = shift + bits == 8;
    return last ? above : arena_printf(im->arena, "%s & %d", above, mask);
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
        emit_statement(im, "%s = f32(%s)", tensor_element(im, z, to),
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

/* A product: its result [.., row] is summed in `acc`. */
struct product {
    struct blocks b;
    struct tensor *x, *bias, *y, *acc;
    int last; /* dimension of x along the sum, and of y along the rows of weights */
};

/* The element of x that the field `k` of byte [.., block, byte] multiplies, as f32 */
static const char *factor(struct import *im, const struct product *p, const char *const *at,
                          const char *const block[2], int k) {
    const struct blocks *b = &p->b;
    const char *from[MAX_DIMS];
    memcpy(from, at, sizeof *from * (size_t)p->last);
    from[p->last] = affine_text(im, 2, (int64_t[]){b->size, 8 / b->bits}, block, k);
    return sum_widen(
        im, p->x->type,
        tensor_element_else(im, p->x, from, b->count * b->size > b->depth ? "0" : NULL));
}

static int64_t zero_of(const struct blocks *b) {
    return INT64_C(1) << (b->bits - 1);
}

/* The fields of a byte are terms of one sum, so that an instruction may take them out of it. */
static void sums_of_floats(struct import *im, const struct product *p) {
    const struct blocks *b = &p->b;
    const char *to[MAX_DIMS], *terms = "";
    axes_release(im);
    axes_for(im, p->y->ndims, p->y->extent, to);
    const char *axis[3] = {to[p->last], axis_for(im, "c", b->count),
                           axis_for(im, "b", b->bytes->extent[2])};
    const char *zero =
        b->zero ? tensor_element(im, b->zero, axis) : text_number(im, TYPE_F32, (double)zero_of(b));
    for (int k = 0; k < 8 / b->bits; k++)
        terms = arena_printf(im->arena, "%s%s%s * ((f32(%s) - %s) * %s)", terms, k ? " + " : "",
                             factor(im, p, to, &axis[1], k),
                             field(im, b->bits, tensor_element(im, b->bytes, axis), k), zero,
                             tensor_element(im, b->scale, axis));
    emit_statement(im, "%s += %s", tensor_element(im, p->acc, to), terms);
}

/* ---- inputs of 8 bits ---- */

struct bytes {
    struct tensor *most, *scale, *inverse, *whole; /* of each block of x: [.., block] */
    struct tensor *field[2]; /* what each field of a byte multiplies: i8[.., block, byte] */
    struct tensor *sum;      /* of products of bytes: i32[.., row, block] */
};

static bool bytes_tensors(struct import *im, const struct product *p, struct bytes *q) {
    static const char *const name[2] = {"even", "odd"};
    const struct blocks *b = &p->b;
    int64_t extent[MAX_DIMS];
    memcpy(extent, p->x->extent, sizeof extent);
    extent[p->last] = b->count;
    extent[p->last + 1] = b->bytes->extent[2];
    const char *y = p->y->buffer;
    int n = p->last + 1;
    q->most = tensor_temporary(im, y, "most", TYPE_F32, n, extent);
    q->scale = tensor_temporary(im, y, "step", TYPE_F32, n, extent);
    q->inverse = tensor_temporary(im, y, "inverse", TYPE_F32, n, extent);
    q->whole = tensor_temporary(im, y, "whole", TYPE_I32, n, extent);
    for (int k = 0; k < 8 / b->bits; k++)
        q->field[k] =
            tensor_temporary(im, y, b->bits == 8 ? "bytes" : name[k], TYPE_I8, n + 1, extent);
    extent[p->last] = b->rows;
    extent[p->last + 1] = b->count;
    q->sum = tensor_temporary(im, y, "sums", TYPE_I32, n + 1, extent);
    return q->most && q->scale && q->inverse && q->whole && q->field[0] &&
           q->field[8 / b->bits - 1] && q->sum;
}

/* Each block of x in steps of 1/127 of its largest magnitude, and how many they are together, times
 * the zero point that all weights have. */
static void bytes_made(struct import *im, const struct product *p, const struct bytes *q) {
    const struct blocks *b = &p->b;
    const char *at[MAX_DIMS];
    axes_release(im);
    axes_for(im, p->last, p->x->extent, at);
    at[p->last] = axis_for(im, "c", b->count);
    at[p->last + 1] = axis_for(im, "b", b->bytes->extent[2]);
    const char *most = tensor_element(im, q->most, at), *whole = tensor_element(im, q->whole, at),
               *inverse = tensor_element(im, q->inverse, at);
    emit_statement(im, "%s = 0", most);
    for (int k = 0; k < 8 / b->bits; k++)
        emit_statement(im, "%s max= abs(%s)", most, factor(im, p, at, &at[p->last], k));
    emit_statement(im, "%s = %s / 127", tensor_element(im, q->scale, at), most);
    emit_statement(im, "%s = select(%s == 0, 0, 127 / %s)", inverse, most, most);
    emit_statement(im, "%s = 0", whole);
    for (int k = 0; k < 8 / b->bits; k++) {
        const char *byte = tensor_element(im, q->field[k], at);
        emit_statement(im, "%s = i8(clip(round(%s * %s), -127, 127))", byte,
                       factor(im, p, at, &at[p->last], k), inverse);
        if (b->zero)
            emit_statement(im, "%s += i32(%s)", whole, byte);
        else
            emit_statement(im, "%s += i32(%s) * -%" PRId64, whole, byte, zero_of(b));
    }
}

/* As accuracy_level 4 allows, ONNX Runtime's way: the input of each block in 8 bits, sums of
 * integers, and a sum over the blocks in floats. */
static bool sums_of_bytes(struct import *im, const struct product *p) {
    const struct blocks *b = &p->b;
    struct bytes q = {0};
    const char *to[MAX_DIMS], *at[MAX_DIMS], *of[MAX_DIMS], *terms = "";
    if (!bytes_tensors(im, p, &q)) return false;
    bytes_made(im, p, &q);
    axes_release(im);
    axes_for(im, p->y->ndims, p->y->extent, to);
    const char *axis[3] = {to[p->last], axis_for(im, "c", b->count),
                           axis_for(im, "b", b->bytes->extent[2])};
    memcpy(at, to, sizeof at); /* [.., block, byte] */
    memcpy(of, to, sizeof of); /* [.., row, block] */
    memcpy(&at[p->last], &axis[1], 2 * sizeof *at);
    of[p->last + 1] = axis[1];
    const char *sum = tensor_element(im, q.sum, of), *whole = tensor_element(im, q.whole, at),
               *byte = tensor_element(im, b->bytes, axis);
    for (int k = 0, each = 8 / (int)b->bits; k < each; k++)
        terms = arena_printf(im->arena, "%s%si32(%s) * i32(%s)", terms, k ? " + " : "",
                             tensor_element(im, q.field[k], at), field(im, b->bits, byte, k));
    emit_statement(im, "%s = %s", sum, b->zero ? "0" : whole);
    emit_statement(im, "%s += %s", sum, terms);
    const char *steps = arena_printf(im->arena, "f32(%s)", sum);
    if (b->zero)
        steps = arena_printf(im->arena, "(%s - f32(%s) * %s)", steps, whole,
                             tensor_element(im, b->zero, axis));
    emit_statement(im, "%s += %s * (%s * %s)", tensor_element(im, p->acc, to), steps,
                   tensor_element(im, q.scale, at), tensor_element(im, b->scale, axis));
    im->coarse++;
    return true;
}

static bool product_open(struct import *im, struct product *p) {
    struct tensor *x = p->x = node_input(im, 0);
    int64_t extent[MAX_DIMS];
    p->bias = node_input(im, 5);
    p->last = x->ndims - 1;
    if (!blocks_read(im, &p->b)) return false;
    if (p->last < 0 || x->extent[p->last] != p->b.depth || !type_is_float(x->type) ||
        (p->bias && (p->bias->elements != p->b.rows || p->bias->type != x->type)))
        return node_fail(im, "the input %s or the bias does not fit",
                         shape_text(im->arena, x->ndims, x->extent));
    memcpy(extent, x->extent, sizeof extent);
    extent[p->last] = p->b.rows;
    p->y = node_result(im, x->type, x->ndims, extent);
    p->acc = p->y ? sum_open(im, p->y) : NULL;
    return p->acc && blocks_ahead(im, &p->b);
}

bool op_matmul_nbits(struct import *im) {
    struct product p = {0};
    const char *to[MAX_DIMS];
    if (!product_open(im, &p)) return false;
    axes_release(im);
    axes_for(im, p.y->ndims, p.y->extent, to);
    emit_statement(im, "%s = %s", tensor_element(im, p.acc, to),
                   p.bias ? sum_widen(im, p.x->type, tensor_element(im, p.bias, &to[p.last]))
                          : "0");
    if (!p.b.coarse || p.y->ndims >= MAX_DIMS)
        sums_of_floats(im, &p);
    else if (!sums_of_bytes(im, &p))
        return false;
    sum_close(im, p.y, p.acc, to);
    return true;
}

/* The fields of all bytes, in f32; the last dimension is so many times as long. */
struct tensor *fields_open(struct import *im, struct tensor *bytes, int64_t bits,
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
        emit_statement(im, "%s = f32(%s)", tensor_element(im, t, to),
                       field(im, bits, tensor_element(im, bytes, from), k));
    }
    return t;
}

/* What open fields stand for: y has their shape; scales and zero points (NULL: the middle) either
 * divide the last dimension into blocks or have one dimension less. */
void fields_dequantise(struct import *im, struct tensor *y, struct tensor *fields,
                       struct tensor *scale, struct tensor *zero, int64_t bits) {
    int64_t extent[MAX_DIMS];
    const char *to[MAX_DIMS], *block[MAX_DIMS];
    int last = y->ndims - 1;
    memcpy(extent, y->extent, sizeof extent);
    extent[last] = scale->ndims == y->ndims ? scale->extent[last] : 1;
    int64_t size = y->extent[last] / extent[last];
    axes_release(im);
    axes_for(im, y->ndims, extent, block);
    memcpy(to, block, sizeof to);
    to[last] = affine_text(im, 2, (int64_t[]){size, 1},
                           (const char *[]){block[last], axis_for(im, "b", size)}, 0);
    const char *middle = text_number(im, TYPE_F32, (double)(1 << (bits - 1)));
    emit_statement(im, "%s = %s((%s - %s) * f32(%s))", tensor_element(im, y, to),
                   type_name(y->type), tensor_element(im, fields, to),
                   zero ? tensor_element(im, zero, block) : middle,
                   tensor_element(im, scale, block));
}

/* Rows of a table of fields and of their scales and zero points, then what the fields stand for. */
bool op_gather_block_quantized(struct import *im) {
    static const char *const name[3] = {"rows", "scales", "zeros"};
    struct tensor *t[3] = {node_input(im, 0), node_input(im, 2), node_input(im, 3)};
    int64_t bits = 4, size = 128;
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
    struct tensor *y = node_result(im, type, t[0]->ndims, t[0]->extent);
    if (y) fields_dequantise(im, y, t[0], t[1], t[2], bits);
    return y != NULL;
}
#endif
