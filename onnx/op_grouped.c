/* Of com.microsoft: GroupQueryAttention, which keeps its keys and values in a buffer. How much of
 * the buffer is full, `past`, may be known when compiling, or be data and differ between the
 * sequences of a batch. */
#include "onnx/onnx.h"

#ifdef ISAMAP_WITH_ONNX
#include "onnx/attention.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

struct grouped {
    struct attention a;
    int64_t heads, shared; /* of queries; of keys and values */
    int64_t total;         /* keys of the longest sequence, new ones included */
    int64_t before;        /* places in front of the new ones; a.past of them are kept */
    int64_t buffer;        /* places of the result */
    bool rotary, interleaved, rolls;
    double epsilon[2]; /* of the norms of queries and keys */
};

static bool grouped_attributes(struct import *im, struct grouped *g) {
    int64_t rotary = 0, interleaved = 0, window = -1, smooth = 0, scores = 0, causal = 1, rolls = 0;
    const char *keys = "NONE", *values = "NONE";
    double least = 1e-6;
    g->a.scale = 0;
    if (!attribute_int(im, "num_heads", &g->heads) ||
        !attribute_int(im, "kv_num_heads", &g->shared) ||
        !attribute_float(im, "scale", &g->a.scale) ||
        !attribute_float(im, "softcap", &g->a.softcap) ||
        !attribute_int(im, "do_rotary", &rotary) ||
        !attribute_int(im, "rotary_interleaved", &interleaved) ||
        !attribute_int(im, "local_window_size", &window) ||
        !attribute_int(im, "smooth_softmax", &smooth) || !attribute_int(im, "qk_output", &scores) ||
        !attribute_int(im, "causal", &causal) ||
        !attribute_int(im, "sliding_window_cache", &rolls) ||
        !attribute_string(im, "k_quant_type", &keys) ||
        !attribute_string(im, "v_quant_type", &values) ||
        !attribute_float(im, "qk_norm_epsilon", &least))
        return false;
    g->epsilon[0] = g->epsilon[1] = least;
    if (!attribute_float(im, "q_norm_epsilon", &g->epsilon[0]) ||
        !attribute_float(im, "k_norm_epsilon", &g->epsilon[1]))
        return false;
    if (g->shared < 1 || g->heads < 1 || g->heads > MAX_COUNT || g->heads % g->shared)
        return node_fail(im, "%" PRId64 " heads cannot share %" PRId64, g->heads, g->shared);
    if (scores > 0) return node_fail(im, "'qk_output' is not supported");
    if (rolls > 0 && window < 1) return node_fail(im, "'sliding_window_cache' without a window");
    g->rolls = rolls > 0;
    if (strcmp(keys, "NONE") != 0 || strcmp(values, "NONE") != 0 || node_has_input(im, 12) ||
        node_has_input(im, 13))
        return node_fail(im, "quantised caches are not supported");
    if (node_has_input(im, 16)) return node_fail(im, "'query_seqlens' is not supported");
    g->a.window = window;
    g->a.causal = causal != 0;
    g->a.smooth = smooth > 0;
    g->rotary = rotary != 0;
    g->interleaved = interleaved != 0;
    return true;
}

/* Queries, keys and values apart, or one behind the other in input 0. */
static bool grouped_inputs(struct import *im, struct grouped *g) {
    struct attention *a = &g->a;
    struct tensor *q = node_input(im, 0), *k = node_input(im, 1), *v = node_input(im, 2);
    int64_t group = g->heads / g->shared, each = k ? g->heads : g->heads + 2 * g->shared;
    if (!type_is_float(q->type) || q->ndims != 3 || q->extent[2] % each || !k != !v)
        return node_fail(im, "the queries %s do not fit",
                         shape_text(im->arena, q->ndims, q->extent));
    int64_t depth = q->extent[2] / each;
    for (int i = 0; k && i < 2; i++) {
        const struct tensor *t = i ? v : k;
        if (t->ndims != 3 || t->extent[0] != q->extent[0] || t->extent[1] != q->extent[1] ||
            t->extent[2] != g->shared * depth || t->type != q->type)
            return node_fail(im, "input %d, %s, does not fit", 1 + i,
                             shape_text(im->arena, t->ndims, t->extent));
    }
    memcpy(a->extent, (int64_t[]){q->extent[0], g->shared, group, q->extent[1], depth},
           sizeof a->extent);
    a->depth_v = depth;
    a->q = heads_merged(q, group, depth, 0);
    a->k = heads_merged(k ? k : q, 1, depth, k ? 0 : g->heads * depth);
    a->v = heads_merged(v ? v : q, 1, depth, v ? 0 : (g->heads + g->shared) * depth);
    if (a->scale == 0) a->scale = 1 / sqrt((double)depth);
    return true;
}

static bool grouped_past(struct import *im, struct grouped *g) {
    struct tensor *last = node_input(im, 5), *total = node_input(im, 6);
    int64_t batch = g->a.extent[AT_BATCH], rows = g->a.extent[AT_PLACE];
    if (!total->data || total->elements != 1)
        return node_fail(im, "'total_sequence_length' is not known when compiling: give the inputs "
                             "that it depends on by value (-D NAME=1)");
    g->total = tensor_int(total, 0);
    if (last->elements != batch || type_is_float(last->type))
        return node_fail(im, "'seqlens_k' %s is not one integer for each sequence",
                         shape_text(im->arena, last->ndims, last->extent));
    if (g->total < rows || g->total > MAX_COUNT)
        return node_fail(im, "'total_sequence_length' is %" PRId64 " for %" PRId64 " new places",
                         g->total, rows);
    if (g->total == rows || batch == 1) { /* with one sequence, the longest is that one */
        g->a.past = g->before = g->total - rows;
        return true;
    }
    g->a.past_of = tensor_temporary(im, im->node->output[0], "past", TYPE_I64, 1, &batch);
    if (!g->a.past_of) return false;
    axes_release(im);
    const char *n = axis_for(im, "n", batch), *at[2] = {n, "0"};
    if (last->ndims == 2 && last->extent[0] == 1) at[0] = "0", at[1] = n;
    emit_statement(im, "%s = i64(%s) + %" PRId64, tensor_element(im, g->a.past_of, &n),
                   tensor_element(im, last, at), 1 - rows);
    return true;
}

/* How many places a buffer of `capacity` keeps of `total`, so that a window stays whole: where it
 * is full, capacity - window + 1 go at a time. */
static int64_t places_kept(int64_t total, int64_t window, int64_t capacity) {
    int64_t gone = capacity - window + 1;
    if (total <= capacity) return total;
    return total - gone * ((total - capacity + gone - 1) / gone);
}

/* The buffer holds the last places of all, from its beginning on; rows attend to those that it held
 * and to the new ones. */
static bool rolled_cache(struct import *im, struct grouped *g, struct heads *now, int k) {
    struct attention *a = &g->a;
    struct tensor *old = node_part(im, 3 + k);
    int64_t shape[4] = {a->extent[AT_BATCH], g->shared, a->length, a->extent[AT_DEPTH]};
    int64_t n[AT_COUNT] = {shape[0], shape[1], 1, a->extent[AT_PLACE], shape[3]};
    int64_t kept = places_kept(g->total, a->window, g->buffer);
    struct tensor *all = tensor_temporary(im, im->node->output[0], k ? "all_values" : "all_keys",
                                          now->t->type, 4, shape);
    if (!all) return false;
    struct heads from = heads_apart(all, 1);
    heads_copy(im, heads_from(from, AT_PLACE, 1, a->past), *now, n);
    n[AT_PLACE] = a->past;
    heads_copy(im, from, heads_apart(old, 1), n);
    *now = from;
    if (!node_wants(im, 1 + k)) return true;
    shape[2] = g->buffer;
    struct tensor *y = node_result_at(im, 1 + k, all->type, 4, shape);
    if (!y) return false;
    n[AT_PLACE] = kept;
    heads_copy(im, heads_apart(y, 1), heads_from(from, AT_PLACE, 1, a->length - kept), n);
    n[AT_PLACE] = g->buffer - kept;
    heads_copy(im, heads_from(heads_apart(y, 1), AT_PLACE, 1, kept),
               heads_from(heads_apart(old, 1), AT_PLACE, 1, kept), n);
    return true;
}

/* The buffer after the call: what was full, then the new ones. */
static bool grouped_cache(struct import *im, struct grouped *g, struct heads *now, int k) {
    if (g->rolls) return rolled_cache(im, g, now, k);
    struct attention *a = &g->a;
    struct tensor *old = node_part(im, 3 + k);
    int64_t shape[4] = {a->extent[AT_BATCH], g->shared, g->buffer, a->extent[AT_DEPTH]};
    int64_t n[AT_COUNT] = {shape[0], shape[1], 1, a->extent[AT_PLACE], shape[3]};
    if (!node_wants(im, 1 + k) && g->total == a->extent[AT_PLACE]) return true;
    struct tensor *y = node_result_at(im, 1 + k, now->t->type, 4, shape);
    if (!y) return false;
    struct heads to = heads_apart(y, 1), was = old ? heads_apart(old, 1) : (struct heads){0};
    if (!a->past_of) {
        int64_t new_places = n[AT_PLACE], full = old ? old->extent[2] : 0;
        heads_copy(im, heads_from(to, AT_PLACE, 1, a->past), *now, n);
        n[AT_PLACE] = a->past;
        if (old) heads_copy(im, to, was, n);
        int64_t end = a->past + new_places;
        n[AT_PLACE] = full - end;
        if (old)
            heads_copy(im, heads_from(to, AT_PLACE, 1, end), heads_from(was, AT_PLACE, 1, end), n);
        n[AT_PLACE] = g->buffer - (full > end ? full : end);
        if (n[AT_PLACE] > 0) {
            const char *axis[AT_COUNT];
            heads_axes(im, n, axis);
            emit_statement(
                im, "%s = 0",
                heads_element(im, heads_from(to, AT_PLACE, 1, g->buffer - n[AT_PLACE]), axis));
        }
    } else {
        const char *axis[AT_COUNT], *from[AT_COUNT], *index[4];
        n[AT_PLACE] = g->buffer;
        heads_axes(im, n, axis);
        const char *past = tensor_element(im, a->past_of, axis), *e = heads_element(im, to, axis);
        memcpy(from, axis, sizeof from);
        memcpy(index,
               (const char *[]){axis[AT_BATCH], axis[AT_HEAD], axis[AT_PLACE], axis[AT_DEPTH]},
               sizeof index);
        const char *before = old ? tensor_element_else(im, old, index, "0") : "0";
        emit_statement(im, "%s = select(i64(%s) < %s, %s, 0)", e, axis[AT_PLACE], past, before);
        from[AT_PLACE] = axis_for(im, "s", a->extent[AT_PLACE]);
        emit_statement(im, "%s += select(i64(%s) == i64(%s) - %s, %s, 0)", e, from[AT_PLACE],
                       axis[AT_PLACE], past, heads_element(im, *now, from));
    }
    *now = to;
    return true;
}

/* Where the new places are, as [batch or 1, place] of i64: input 9, or behind the past. */
static const char *grouped_places(struct import *im, const struct grouped *g) {
    const struct attention *a = &g->a;
    int64_t extent[2] = {a->past_of ? a->extent[AT_BATCH] : 1, a->extent[AT_PLACE]};
    if (node_has_input(im, 9)) return im->node->input[9];
    struct tensor *t;
    if (a->past_of) {
        if (!(t = tensor_temporary(im, im->node->output[0], "places", TYPE_I64, 2, extent)))
            return NULL;
        const char *index[2];
        axes_release(im);
        axes_for(im, 2, extent, index);
        emit_statement(im, "%s = i64(%s) + %s", tensor_element(im, t, index), index[1],
                       tensor_element(im, a->past_of, index));
    } else {
        int64_t *place = arena_array(im->arena, (size_t)extent[1], sizeof *place);
        for (int64_t i = 0; i < extent[1]; i++) place[i] = g->before + i;
        t = tensor_constant(im, im->node->output[0], "places", TYPE_I64, 2, extent, place);
    }
    return t ? inner_value(im, t, "places") : NULL;
}

/* New queries and keys, each head divided by its root mean square and times a weight. */
static bool grouped_norms(struct import *im, struct grouped *g) {
    static const char *const part[2] = {"normed_queries", "normed_keys"};
    int64_t n[AT_COUNT];
    if (node_has_input(im, 14) != node_has_input(im, 15))
        return node_fail(im, "of queries and keys only one is normalised");
    if (!node_has_input(im, 14)) return true;
    memcpy(n, g->a.extent, sizeof n);
    for (int k = 0; k < 2; k++) {
        struct heads *h = k ? &g->a.k : &g->a.q;
        int64_t group = n[AT_GROUP] = k ? 1 : g->heads / g->shared;
        int64_t shape[4] = {n[AT_BATCH], n[AT_HEAD] * group, n[AT_PLACE], n[AT_DEPTH]};
        struct tensor *t = tensor_temporary(im, im->node->output[0], part[k], h->t->type, 4, shape);
        if (!t) return false;
        heads_copy(im, heads_apart(t, group), *h, n);
        const char *norm = inner_name(im, part[k]);
        struct inner scaled = {.input = {inner_value(im, t, part[k]), im->node->input[14 + k]},
                               .ninputs = 2,
                               .output = {norm}};
        inner_float(im, &scaled, "epsilon", g->epsilon[k]);
        if (!inner_lower(im, &scaled, "SimplifiedLayerNormalization")) return false;
        *h = heads_apart(name_find(&im->value, norm), group);
    }
    return true;
}

/* New queries and keys turned by their places. */
static bool grouped_rotary(struct import *im, struct grouped *g) {
    struct attention *a = &g->a;
    struct tensor *cos = node_input(im, 7);
    int64_t n[AT_COUNT], group = a->extent[AT_GROUP], depth = a->extent[AT_DEPTH];
    if (!g->rotary) return true;
    if (!cos || !node_input(im, 8) || cos->ndims != 2)
        return node_fail(im, "the tables of cosines and sines are missing");
    struct rotary r = {.half = cos->extent[1], .interleaved = g->interleaved};
    const char *places = grouped_places(im, g);
    if (!places || !rotary_rows(im, im->node->input[7], im->node->input[8], places, &r))
        return false;
    memcpy(n, a->extent, sizeof n);
    for (int k = 0; k < 2; k++) {
        struct heads *h = k ? &a->k : &a->q;
        int64_t shape[3] = {n[AT_BATCH], n[AT_PLACE], (k ? g->shared : g->heads) * depth};
        struct tensor *t =
            tensor_temporary(im, im->node->output[0], k ? "keys" : "queries", h->t->type, 3, shape);
        if (!t) return false;
        n[AT_GROUP] = k ? 1 : group;
        struct heads to = heads_merged(t, k ? 1 : group, depth, 0);
        if (!rotary_lower(im, &r, to, *h, n)) return false;
        *h = to;
    }
    return true;
}

bool op_group_query_attention(struct import *im) {
    struct grouped g = {
        .a = {.outside = LEFT_OUT, .bias = node_input(im, 10), .sink = node_input(im, 11)}};
    struct tensor *old = node_part(im, 3);
    if (!node_needs_input(im, 5) || !node_needs_input(im, 6)) return false;
    if (!grouped_attributes(im, &g) || !grouped_inputs(im, &g) || !grouped_past(im, &g))
        return false;
    struct attention *a = &g.a;
    if (!old != !node_part(im, 4))
        return node_fail(im, "of the past only the %s are given, expected keys and values",
                         old ? "keys" : "values");
    for (int k = 3; old && k <= 4; k++) {
        struct tensor *t = node_part(im, k);
        if (t->ndims != 4 || t->extent[0] != a->extent[AT_BATCH] || t->extent[1] != g.shared ||
            t->extent[2] != old->extent[2] || t->extent[3] != a->extent[AT_DEPTH] ||
            t->type != a->q.t->type)
            return node_fail(im, "the past %s does not fit",
                             shape_text(im->arena, t->ndims, t->extent));
    }
    g.buffer = old && (g.rolls || old->extent[2] > g.total) ? old->extent[2] : g.total;
    if (g.rolls) {
        if (!old || a->extent[AT_BATCH] != 1 || a->bias || g.buffer < a->window)
            return node_fail(im,
                             "'sliding_window_cache' is supported for one sequence, with a past of "
                             "a window at least, without a bias");
        a->past = places_kept(g.before, a->window, g.buffer);
    }
    if (a->past > (old ? old->extent[2] : 0))
        return node_fail(im, "the past has fewer than %" PRId64 " places", a->past);
    a->length = g.rolls ? a->past + a->extent[AT_PLACE] : g.total;
    return grouped_norms(im, &g) && grouped_rotary(im, &g) && grouped_cache(im, &g, &a->k, 0) &&
           grouped_cache(im, &g, &a->v, 1) && attention_lower(im, a);
}
#endif
