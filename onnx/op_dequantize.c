/* DequantizeLinear. Of constants of 4 and 8 bits in the form in which instructions take numbers out
 * of bytes: (f32(w) - zero) * scale, two numbers of 4 bits in a byte. */
#include "onnx/onnx.h"

#ifdef ISAMAP_WITH_ONNX
#include "onnx/onnx_int.h"

#include <string.h>

struct weights {
    struct tensor *bytes;
    int64_t more; /* in the bytes, than in the tensor */
    int paired;   /* dimension along which two numbers share a byte; -1: none */
};

/* Products sum along the dimension of blocks, or beside that of scales: there the two numbers of a
 * byte go to two sums, each of which has whole rows of bytes. */
static int dimension_paired(const struct quantisation *q) {
    int d = q->block                                    ? q->axis
            : q->axis == q->x->ndims - 1 || q->axis < 0 ? q->x->ndims - 2
                                                        : q->x->ndims - 1;
    int64_t length = q->block ? q->block : d < 0 ? 1 : q->x->extent[d];
    return q->x->halves && length % 2 == 0 ? d : -1;
}

static bool zeros_differ(const struct tensor *zero) {
    for (int64_t i = 0; zero && i < zero->elements; i++)
        if (tensor_int(zero, i) != 0) return true;
    return false;
}

/* Number i of a tensor whose elements behind the dimension are `inner`, of n along it. */
static uint8_t byte_at(const struct weights *w, const struct tensor *x, int64_t i, int64_t n,
                       int64_t inner) {
    if (w->paired < 0) return (uint8_t)(tensor_int(x, i) + w->more);
    int64_t outer = i / (n / 2 * inner), rest = i % (n / 2 * inner),
            from = (outer * n + 2 * (rest / inner)) * inner + rest % inner;
    return (uint8_t)((tensor_int(x, from) + w->more) | (tensor_int(x, from + inner) + w->more)
                                                           << 4);
}

/* Signed ones become unsigned where a zero point or the other half of the byte is taken off. */
static bool weights_read(struct import *im, const struct quantisation *q, const char *base,
                         struct weights *w) {
    const struct tensor *x = q->x;
    bool is_signed = x->type == TYPE_I8;
    *w = (struct weights){q->x, 0, dimension_paired(q)};
    if (is_signed && (w->paired >= 0 || zeros_differ(q->zero))) w->more = w->paired >= 0 ? 8 : 128;
    if (w->paired < 0 && !w->more) return true;
    int64_t extent[MAX_DIMS], n = 1, inner = 1, count = x->elements;
    memcpy(extent, x->extent, sizeof extent);
    if (w->paired >= 0) {
        n = extent[w->paired];
        extent[w->paired] /= 2;
        count /= 2;
        for (int d = w->paired + 1; d < x->ndims; d++) inner *= extent[d];
    }
    uint8_t *data = arena_array(im->arena, (size_t)count, sizeof *data);
    for (int64_t i = 0; i < count; i++) data[i] = byte_at(w, x, i, n, inner);
    w->bytes = tensor_constant(im, base, "bytes", TYPE_U8, x->ndims, extent, data);
    return w->bytes != NULL;
}

/* What is taken off the numbers, as text behind them; "": nothing. */
static const char *zero_behind(struct import *im, const struct quantisation *q,
                               const struct weights *w, const char *base) {
    const struct tensor *z = q->zero;
    int64_t n = z ? z->elements : 1;
    if (!w->more && !zeros_differ(z)) return "";
    float *data = arena_array(im->arena, (size_t)n, sizeof *data);
    bool same = true;
    for (int64_t i = 0; i < n; i++) {
        data[i] = (float)((z ? tensor_int(z, i) : 0) + w->more);
        same &= data[i] == data[0];
    }
    if (same) return arena_printf(im->arena, " - %s", text_number(im, TYPE_F32, data[0]));
    struct tensor *t = tensor_constant(im, base, "zero", TYPE_F32, z->ndims, z->extent, data);
    return t ? arena_printf(im->arena, " - %s", tensor_element(im, t, q->at)) : NULL;
}

/* The numbers whose place in a byte is k. */
static void write_numbers(struct import *im, const struct quantisation *q, const struct weights *w,
                          struct tensor *y, const char *zero, const char *half, int k) {
    const char *from[MAX_DIMS], *to[MAX_DIMS], *number;
    memcpy(from, q->index, sizeof from);
    memcpy(to, q->index, sizeof to);
    int d = w->paired;
    if (d >= 0) {
        int64_t length = q->block ? q->block : q->x->extent[d];
        const char *part[2] = {q->block ? q->part[0] : "0", half};
        from[d] = affine_text(im, 2, (int64_t[]){length / 2, 1}, part, 0);
        to[d] = affine_text(im, 2, (int64_t[]){length, 2}, part, k);
    }
    number = tensor_element(im, w->bytes, from);
    if (d >= 0) number = arena_printf(im->arena, k ? "shr(%s, 4)" : "%s & 15", number);
    emit_statement(im, *zero ? "%s = (f32(%s)%s) * %s" : "%s = f32(%s)%s * %s",
                   tensor_element(im, y, to), number, zero, q->scale_text);
}

static bool dequantise_weights(struct import *im, struct quantisation *q, struct tensor *y) {
    struct weights w;
    if (!weights_read(im, q, y->buffer, &w)) return false;
    const char *zero = zero_behind(im, q, &w, y->buffer);
    if (!zero) return false;
    int64_t length = w.paired < 0 ? 1 : q->block ? q->block : q->x->extent[w.paired];
    const char *half = axis_for(im, "b", length / 2);
    im->ahead = true;
    for (int k = 0; k < (w.paired < 0 ? 1 : 2); k++) write_numbers(im, q, &w, y, zero, half, k);
    im->ahead = false;
    return true;
}

bool op_dequantize(struct import *im) {
    struct quantisation q;
    enum type type;
    if (!quantisation_read(im, &q, &type)) return false;
    if (q.zero && type != q.x->type)
        return node_fail(im, "input and zero point have different types");
    if (!small_integer(q.x->type) && q.x->type != TYPE_I32)
        return node_fail(im, "the input is not of integers");
    struct tensor *y = node_result(im, q.scale->type, q.x->ndims, q.x->extent);
    if (!y) return false;
    bool known = q.x->data && q.scale->data && (!q.zero || q.zero->data);
    if (known && y->type == TYPE_F32 && type_size(q.x->type) == 1)
        return dequantise_weights(im, &q, y);
    const char *x = tensor_element(im, q.x, q.index);
    if (q.x->type != TYPE_I32 || q.zero_text) x = quantised_element(im, x, q.zero_text);
    im->ahead = known;
    emit_statement(im, "%s = %s(%s) * %s", tensor_element(im, y, q.index), type_name(y->type), x,
                   q.scale_text);
    im->ahead = false;
    return true;
}
#endif
