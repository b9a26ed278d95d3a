/* Operators that are an attention, with their forms of inputs, masks and caches: ONNX's own, and
 * those of com.microsoft. */
#include "onnx/onnx.h"

#ifdef ISAMAP_WITH_ONNX
#include "onnx/attention.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { DIVIDES = 1 << 24 };

static bool float_attributes(struct import *im, struct attention *a) {
    int64_t causal = a->causal;
    a->filter = -10000;
    a->outside = LEFT_OUT;
    a->scale = 0;
    if (!attribute_float(im, "scale", &a->scale) ||
        !attribute_float(im, "mask_filter_value", &a->filter) ||
        !attribute_int(im, "unidirectional", &causal))
        return false;
    a->causal = causal != 0;
    return true;
}

static bool no_flag(struct import *im, const char *name, int64_t none) {
    int64_t v = none;
    return attribute_int(im, name, &v) &&
           (v == none || v == 0 || node_fail(im, "'%s' = %" PRId64 " is not supported", name, v));
}

static bool head_count(struct import *im, const char *name, int64_t *n) {
    *n = 0;
    return attribute_int(im, name, n) &&
           ((*n >= 1 && *n <= DIVIDES) || node_fail(im, "'%s' is %" PRId64, name, *n));
}

static void scale_default(struct attention *a) {
    if (a->scale == 0) a->scale = 1 / sqrt((double)a->extent[AT_DEPTH]);
}

static bool same_types(struct import *im, const struct tensor *const *t, int n) {
    for (int k = 0; k < n; k++)
        if (t[k] && (!type_is_float(t[k]->type) || t[k]->type != t[0]->type))
            return node_fail(im, "its tensors are not of one type of floats");
    return true;
}

/* What is there and what is new, one behind the other, in `to`. */
static void append(struct import *im, struct heads to, const struct heads *past, int64_t before,
                   struct heads now, const int64_t *extent) {
    int64_t n[AT_COUNT];
    memcpy(n, extent, sizeof n);
    n[AT_GROUP] = 1;
    n[AT_PLACE] = before;
    if (past) heads_copy(im, to, *past, n);
    n[AT_PLACE] = extent[AT_PLACE];
    heads_copy(im, heads_from(to, AT_PLACE, 1, before), now, n);
}

/* ---- Attention, QAttention: the projection is part of it ---- */

struct projection {
    const char *value; /* name of [batch, place, queries, keys, values] */
    int mask, past, bias;
};

/* How wide queries, keys and values are together. */
static bool projected_widths(struct import *im, const struct tensor *x, int64_t heads,
                             int64_t *width) {
    bool given;
    for (int k = 0; k < 3; k++) width[k] = x->extent[2] / 3;
    if (!attribute_counts(im, "qkv_hidden_sizes", 3, 1, width, &given)) return false;
    for (int k = 0; k < 3; k++)
        if (width[k] % heads)
            return node_fail(im, "%" PRId64 " heads do not divide the width", heads);
    if (width[0] != width[1] || width[0] + width[1] + width[2] != x->extent[2])
        return node_fail(im, "its weights %s do not fit",
                         shape_text(im->arena, x->ndims, x->extent));
    return true;
}

/* Keys and values behind those of `past` become the result `present`. */
static bool stack(struct import *im, struct attention *a, struct tensor *past) {
    int64_t shape[5] = {2, a->extent[AT_BATCH], a->extent[AT_HEAD], a->length, a->extent[AT_DEPTH]};
    if (past &&
        (past->ndims != 5 || past->extent[0] != 2 || past->extent[1] != shape[1] ||
         past->extent[2] != shape[2] || past->extent[4] != shape[4] || past->type != a->q.t->type))
        return node_fail(im, "the past %s does not fit",
                         shape_text(im->arena, past->ndims, past->extent));
    if (!past && !node_wants(im, 1)) return true;
    if (a->depth_v != shape[4]) return node_fail(im, "values and keys have different widths");
    if (past) a->length = shape[3] += a->past = past->extent[3];
    struct tensor *y = node_result_at(im, 1, a->q.t->type, 5, shape);
    if (!y) return false;
    for (int k = 0; k < 2; k++) {
        struct heads before = past ? heads_stacked(past, k) : (struct heads){0};
        append(im, heads_stacked(y, k), past ? &before : NULL, a->past, k ? a->v : a->k, a->extent);
    }
    a->k = heads_stacked(y, 0);
    a->v = heads_stacked(y, 1);
    return true;
}

static bool projected_attention(struct import *im, const struct projection *p) {
    struct tensor *x = name_find(&im->value, p->value);
    struct attention a = {.mask = node_input(im, p->mask), .bias = node_input(im, p->bias)};
    int64_t heads, width[3];
    if (!float_attributes(im, &a) || !head_count(im, "num_heads", &heads) ||
        !no_flag(im, "do_rotary", 0) || !no_flag(im, "past_present_share_buffer", 0))
        return false;
    if (x->ndims != 3) return node_fail(im, "the input is not [batch, place, width]");
    if (!projected_widths(im, x, heads, width)) return false;
    int64_t depth = width[0] / heads;
    memcpy(a.extent, (int64_t[]){x->extent[0], heads, 1, x->extent[1], depth}, sizeof a.extent);
    a.length = x->extent[1];
    a.depth_v = width[2] / heads;
    a.q = heads_merged(x, 1, depth, 0);
    a.k = heads_merged(x, 1, depth, width[0]);
    a.v = heads_merged(x, 1, a.depth_v, width[0] + width[1]);
    scale_default(&a);
    return stack(im, &a, node_part(im, p->past)) && attention_lower(im, &a);
}

bool op_attention(struct import *im) {
    const char *const *in = (const char *const *)im->node->input,
                      *product = inner_name(im, "product");
    struct projection p = {product, 3, 4, 5};
    if (!inner_node(im, "MatMul", in[0], in[1], product)) return false;
    if (node_has_input(im, 2)) {
        p.value = inner_name(im, "projection");
        if (!inner_node(im, "Add", product, in[2], p.value)) return false;
    }
    return projected_attention(im, &p);
}

/* Inputs and weights of bytes. */
bool op_qattention(struct import *im) {
    const char *const *in = (const char *const *)im->node->input;
    int n = (int)im->node->n_input;
    struct projection p = {inner_name(im, "projection"), 5, 8, 99};
    struct inner product = {
        .input = {in[0], in[1], in[3], in[4], n > 6 ? in[6] : NULL, n > 7 ? in[7] : NULL, in[2]},
        .ninputs = 7,
        .output = {p.value}};
    return inner_lower(im, &product, "MatMulIntegerToFloat") && projected_attention(im, &p);
}

/* ---- MultiHeadAttention ---- */

/* An input [batch, place, width] with its part of the bias, which begins at `offset`. */
static struct tensor *with_bias(struct import *im, struct tensor *x, struct tensor *bias,
                                int64_t offset, const char *suffix) {
    if (!bias) return x;
    struct tensor *y = tensor_temporary(im, im->node->output[0], suffix, x->type, 3, x->extent);
    if (!y) return NULL;
    const char *index[3];
    axes_release(im);
    axes_for(im, 3, x->extent, index);
    const char *at = affine_text(im, 1, (int64_t[]){1}, &index[2], offset);
    emit_statement(im, "%s = %s + %s", tensor_element(im, y, index), tensor_element(im, x, index),
                   tensor_element(im, bias, &at));
    return y;
}

/* Queries, keys and values in the forms that the operator takes. */
static bool multi_inputs(struct import *im, struct attention *a, int64_t heads) {
    struct tensor *x[3] = {node_input(im, 0), node_input(im, 1), node_input(im, 2)},
                  *bias = node_input(im, 3);
    struct heads *to[3] = {&a->q, &a->k, &a->v};
    int64_t offset = 0, keys = 0;
    if (!same_types(im, (const struct tensor *const[]){x[0], x[1], x[2], bias}, 4)) return false;
    if (!x[1] || !x[2]) return node_fail(im, "keys or values are missing");
    if (bias && bias->ndims != 1)
        return node_fail(im, "the bias has %d dimensions, expected one", bias->ndims);
    for (int k = 0; k < 3; k++) {
        bool apart = k && x[k]->ndims == 4;
        if (apart ? x[k]->extent[1] != heads : x[k]->ndims != 3 || x[k]->extent[2] % heads)
            return node_fail(im, "input %d, %s, has not %" PRId64 " heads", k,
                             shape_text(im->arena, x[k]->ndims, x[k]->extent), heads);
        int64_t depth = apart ? x[k]->extent[3] : x[k]->extent[2] / heads;
        if (k == 0) a->extent[AT_DEPTH] = depth;
        if (k == 1 && depth != a->extent[AT_DEPTH])
            return node_fail(im, "queries have %" PRId64 " elements, but keys %" PRId64,
                             a->extent[AT_DEPTH], depth);
        if (k == 2) a->depth_v = depth;
        if (apart) {
            *to[k] = heads_apart(x[k], 1);
            a->length = x[k]->extent[2];
        } else {
            static const char *const part[3] = {"queries", "keys", "values"};
            struct tensor *t = with_bias(im, x[k], bias, offset, part[k]);
            if (!t) return false;
            *to[k] = heads_merged(t, 1, depth, 0);
            a->length = x[k]->extent[1];
        }
        if (x[k]->extent[0] != x[0]->extent[0] || (k == 2 && a->length != keys))
            return node_fail(im, "queries, keys and values do not fit each other");
        if (k == 1) keys = a->length;
        offset += heads * depth;
    }
    if (bias && bias->elements != offset)
        return node_fail(im, "the bias has not %" PRId64 " elements", offset);
    return true;
}

/* The k-th of keys and values (input `past`, result `present`) behind those of a cache. */
static bool cache(struct import *im, struct attention *a, struct heads *h, int past, int present,
                  int64_t depth) {
    struct tensor *old = node_part(im, past);
    int64_t shape[4] = {a->extent[AT_BATCH], a->extent[AT_HEAD], a->length, depth}, before = 0;
    if (!old && !node_wants(im, present)) return true;
    if (old) {
        before = old->ndims == 4 ? old->extent[2] : 0;
        shape[2] += before;
        if (old->ndims != 4 || old->extent[0] != shape[0] || old->extent[1] != shape[1] ||
            old->extent[3] != depth || old->type != h->t->type)
            return node_fail(im, "the past %s does not fit",
                             shape_text(im->arena, old->ndims, old->extent));
    }
    struct tensor *y = node_result_at(im, present, h->t->type, 4, shape);
    if (!y) return false;
    struct heads was = old ? heads_apart(old, 1) : (struct heads){0};
    int64_t extent[AT_COUNT] = {shape[0], shape[1], 1, a->length, depth};
    append(im, heads_apart(y, 1), old ? &was : NULL, before, *h, extent);
    *h = heads_apart(y, 1);
    a->past = before;
    return true;
}

/* Keys and values behind those of the inputs `past` and the next one; a->length grows by them. */
static bool caches(struct import *im, struct attention *a, int past) {
    int64_t keys;
    if (!node_part(im, past) != !node_part(im, past + 1))
        return node_fail(im, "a past of keys alone, or of values alone");
    if (!cache(im, a, &a->k, past, 1, a->extent[AT_DEPTH])) return false;
    keys = a->past;
    if (!cache(im, a, &a->v, past + 1, 2, a->depth_v)) return false;
    if (keys != a->past)
        return node_fail(im, "the past has %" PRId64 " keys, but %" PRId64 " values", keys,
                         a->past);
    a->length += a->past;
    return true;
}

bool op_multi_head_attention(struct import *im) {
    struct attention a = {.mask = node_input(im, 4), .bias = node_input(im, 5)};
    int64_t heads;
    struct tensor *q = node_input(im, 0);
    if (!float_attributes(im, &a) || !head_count(im, "num_heads", &heads)) return false;
    if (q->ndims != 3) return node_fail(im, "queries of %d dimensions are not supported", q->ndims);
    a.extent[AT_BATCH] = q->extent[0];
    a.extent[AT_HEAD] = heads;
    a.extent[AT_GROUP] = 1;
    a.extent[AT_PLACE] = q->extent[1];
    if (!multi_inputs(im, &a, heads)) return false;
    scale_default(&a);
    return caches(im, &a, 6) && attention_lower(im, &a);
}

/* ---- ONNX's own ---- */

/* Queries, keys and values: [batch, head, place, depth], or heads merged behind the place. */
static bool scaled_inputs(struct import *im, struct attention *a) {
    struct tensor *x[3] = {node_input(im, 0), node_input(im, 1), node_input(im, 2)};
    struct heads *to[3] = {&a->q, &a->k, &a->v};
    int64_t heads[3] = {0}, depth[3], places[3];
    a->apart = x[0]->ndims == 4;
    if (!attribute_int(im, "q_num_heads", &heads[0]) ||
        !attribute_int(im, "kv_num_heads", &heads[1]) ||
        !same_types(im, (const struct tensor *const[]){x[0], x[1], x[2]}, 3))
        return false;
    for (int k = 0; k < 3; k++) {
        if (k == 2) heads[2] = heads[1];
        if (x[k]->ndims == 4) heads[k] = x[k]->extent[1];
        bool fits = x[k]->ndims == (a->apart ? 4 : 3) && x[k]->extent[0] == x[0]->extent[0] &&
                    heads[k] >= 1 && (a->apart || x[k]->extent[2] % heads[k] == 0);
        if (!fits)
            return node_fail(im, "input %d, %s, does not fit", k,
                             shape_text(im->arena, x[k]->ndims, x[k]->extent));
        depth[k] = a->apart ? x[k]->extent[3] : x[k]->extent[2] / heads[k];
        places[k] = x[k]->extent[a->apart ? 2 : 1];
    }
    if (heads[0] % heads[1] || heads[1] != heads[2] || depth[0] != depth[1] ||
        places[1] != places[2])
        return node_fail(im, "queries, keys and values do not fit together");
    int64_t group = heads[0] / heads[1];
    for (int k = 0; k < 3; k++)
        *to[k] = a->apart ? heads_apart(x[k], k ? 1 : group)
                          : heads_merged(x[k], k ? 1 : group, depth[k], 0);
    memcpy(a->extent, (int64_t[]){x[0]->extent[0], heads[1], group, places[0], depth[0]},
           sizeof a->extent);
    a->length = places[1];
    a->depth_v = depth[2];
    return true;
}

/* A mask of truths, or of floats for fewer keys than there are, as what is added: -inf where no key
 * counts. */
static bool scaled_mask(struct import *im, struct attention *a) {
    struct tensor *m = node_input(im, 3);
    int64_t extent[MAX_DIMS];
    const char *index[MAX_DIMS];
    if (!m) return true;
    if (m->ndims < 1 || m->ndims > 4 || (m->type != TYPE_BOOL && m->type != a->q.t->type))
        return node_fail(im, "the mask %s of %s does not fit",
                         shape_text(im->arena, m->ndims, m->extent), type_name(m->type));
    memcpy(extent, m->extent, sizeof extent);
    bool fewer = extent[m->ndims - 1] < a->length;
    if (fewer) extent[m->ndims - 1] = a->length;
    a->bias = m;
    if (!fewer && m->type != TYPE_BOOL) return true;
    a->bias =
        tensor_temporary(im, im->node->output[0], "mask", sum_type(a->q.t->type), m->ndims, extent);
    if (!a->bias) return false;
    axes_release(im);
    axes_for(im, m->ndims, extent, index);
    bool truths = m->type == TYPE_BOOL;
    const char *e = fewer ? tensor_element_else(im, m, index, truths ? "0" : "-inf")
                          : tensor_element(im, m, index);
    emit_statement(im, truths ? "%s = select(%s, 0, -inf)" : "%s = %s",
                   tensor_element(im, a->bias, index), truths ? e : sum_widen(im, m->type, e));
    return true;
}

/* Lengths count the keys that there are; without a past, a causal row then counts its place from
 * the end. */
static bool scaled_lengths(struct import *im, struct attention *a) {
    a->mask = node_input(im, 6);
    if (!a->mask || !a->causal || a->past) return true;
    int64_t batch = a->extent[AT_BATCH];
    if (a->mask->ndims != 1 || a->mask->extent[0] != batch)
        return node_fail(im, "the lengths do not fit");
    a->past_of = tensor_temporary(im, im->node->output[0], "past", TYPE_I64, 1, &batch);
    if (!a->past_of) return false;
    axes_release(im);
    const char *n = axis_for(im, "n", batch);
    emit_statement(im, "%s = i64(%s) - %" PRId64, tensor_element(im, a->past_of, &n),
                   tensor_element(im, a->mask, &n), a->extent[AT_PLACE]);
    return true;
}

/* As the specification reads since ONNX 1.21: the cap comes before what is added, and a row without
 * any key is 0. Sums and softmax are made in f32 at least, whatever 'softmax_precision' says. */
bool op_scaled_attention(struct import *im) {
    struct attention a = {0};
    int64_t causal = 0, stage = 0, precision = 0, left = -1, right = -1;
    a.filter = a.outside = -INFINITY;
    if (!attribute_int(im, "is_causal", &causal) || !attribute_float(im, "scale", &a.scale) ||
        !attribute_float(im, "softcap", &a.softcap) ||
        !attribute_int(im, "softmax_precision", &precision) ||
        !attribute_int(im, "left_window_size", &left) ||
        !attribute_int(im, "right_window_size", &right) ||
        !attribute_int(im, "qk_matmul_output_mode", &stage) || !scaled_inputs(im, &a))
        return false;
    if (stage < SCORES_SCALED || stage > SCORES_WEIGHTS)
        return node_fail(im, "'qk_matmul_output_mode' is %" PRId64, stage);
    if (!causal && (left >= 0 || right >= 0))
        return node_fail(im, "windows without 'is_causal' are not supported");
    a.window = left >= 0 && left < MAX_COUNT ? left + 1 : 0;
    a.causal = causal != 0;
    a.stage = (int)stage;
    scale_default(&a);
    if (!caches(im, &a, 4) || !scaled_lengths(im, &a) || !scaled_mask(im, &a)) return false;
    a.none_is_zero = a.mask || a.bias;
    int64_t shape[4] = {a.extent[AT_BATCH], a.extent[AT_HEAD] * a.extent[AT_GROUP],
                        a.extent[AT_PLACE], a.length};
    if (node_wants(im, 3) && !(a.shown = node_result_at(im, 3, a.q.t->type, 4, shape)))
        return false;
    return attention_lower(im, &a);
}

/* ---- RotaryEmbedding ---- */

/* Positions of each place, [batch, place]: given so, or the first one. */
static const char *positions_from(struct import *im, struct tensor *at, int64_t batch,
                                  int64_t places) {
    int64_t extent[2] = {batch, places};
    if (at->ndims == 2 && at->extent[0] == batch && at->extent[1] == places) return at->name;
    if (at->elements != 1) {
        node_fail(im, "the positions %s do not fit", shape_text(im->arena, at->ndims, at->extent));
        return NULL;
    }
    if (at->data) {
        int64_t *place = arena_array(im->arena, (size_t)places, sizeof *place);
        for (int64_t i = 0; i < places; i++) place[i] = tensor_int(at, 0) + i;
        extent[0] = 1;
        struct tensor *t =
            tensor_constant(im, im->node->output[0], "positions", TYPE_I64, 2, extent, place);
        return t ? inner_value(im, t, "positions") : NULL;
    }
    extent[0] = 1;
    struct tensor *t = tensor_temporary(im, im->node->output[0], "positions", TYPE_I64, 2, extent);
    if (!t) return NULL;
    axes_release(im);
    const char *index[2] = {"0", axis_for(im, "i", places)};
    emit_statement(im, "%s = i64(%s) + i64(%s)", tensor_element(im, t, index),
                   tensor_scalar(im, at), index[1]);
    return inner_value(im, t, "positions");
}

/* The tables are inputs `table` and the next; rows of them by the places in input `at`, or one for
 * each place of each sequence. */
static bool rotary_embedding(struct import *im, int table, int at) {
    struct tensor *x = node_input(im, 0), *cos = node_input(im, table),
                  *sin = node_input(im, table + 1), *place = node_input(im, at);
    int64_t heads = 0, interleaved = 0, wide = 0;
    if (!attribute_int(im, "num_heads", &heads) ||
        !attribute_int(im, "interleaved", &interleaved) ||
        !attribute_int(im, "rotary_embedding_dim", &wide))
        return false;
    if ((x->ndims != 3 && x->ndims != 4) || cos->ndims != (place ? 2 : 3) ||
        sin->ndims != cos->ndims || !type_is_float(x->type))
        return node_fail(im, "input %s or tables %s are not supported",
                         shape_text(im->arena, x->ndims, x->extent),
                         shape_text(im->arena, cos->ndims, cos->extent));
    struct rotary r = {cos, sin, cos->extent[cos->ndims - 1], interleaved != 0};
    bool apart = x->ndims == 4;
    int64_t depth = apart ? x->extent[3] : heads > 0 ? x->extent[2] / heads : 2 * r.half;
    if (wide > 0 && wide != 2 * r.half)
        return node_fail(im, "the tables do not fit 'rotary_embedding_dim'");
    if (!apart && (depth < 1 || x->extent[2] % depth))
        return node_fail(im, "its heads do not divide the width");
    int64_t extent[AT_COUNT] = {x->extent[0], apart ? x->extent[1] : x->extent[2] / depth, 1,
                                x->extent[apart ? 2 : 1], depth};
    if (place) {
        const char *places = positions_from(im, place, extent[AT_BATCH], extent[AT_PLACE]);
        char **in = im->node->input;
        if (!places || !rotary_rows(im, in[table], in[table + 1], places, &r)) return false;
    }
    for (int k = 0; k < 2; k++) {
        const struct tensor *t = k ? r.sin : r.cos;
        if (t->ndims != 3 || (t->extent[0] != 1 && t->extent[0] != extent[AT_BATCH]) ||
            t->extent[0] != r.cos->extent[0] || t->extent[1] != extent[AT_PLACE] ||
            t->extent[2] != r.half)
            return node_fail(im, "the table %s does not fit",
                             shape_text(im->arena, t->ndims, t->extent));
    }
    struct tensor *y = node_result(im, x->type, x->ndims, x->extent);
    return y && rotary_lower(im, &r, apart ? heads_apart(y, 1) : heads_merged(y, 1, depth, 0),
                             apart ? heads_apart(x, 1) : heads_merged(x, 1, depth, 0), extent);
}

bool op_rotary_embedding(struct import *im) {
    return rotary_embedding(im, 1, 3);
}

bool op_ms_rotary_embedding(struct import *im) {
    double scale = 1;
    if (!attribute_float(im, "scale", &scale) || !no_flag(im, "is_packed_batching", 0))
        return false;
    if (scale != 1) return node_fail(im, "'scale' other than 1 is not supported");
    return rotary_embedding(im, 2, 1);
}
#endif
