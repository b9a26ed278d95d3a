/* Attention as transformers have it, in the forms that optimisers and exporters of ONNX graphs
 * write: products of queries and keys, softmax, products with values, over heads that lie inside
 * the last dimension or in one of their own. Indices say where; nothing is transposed. */
#include "onnx/onnx.h"

#ifdef ISAMAP_WITH_ONNX
#include "onnx/attention.h"

#include <inttypes.h>
#include <string.h>

/* ---- where heads lie ---- */

struct heads heads_merged(struct tensor *t, int64_t group, int64_t depth, int64_t offset) {
    return (struct heads){.t = t,
                          .coef = {[0][AT_BATCH] = 1,
                                   [1][AT_PLACE] = 1,
                                   [2] = {0, group * depth, group > 1 ? depth : 0, 0, 1}},
                          .at = {0, 0, offset}};
}

struct heads heads_apart(struct tensor *t, int64_t group) {
    return (struct heads){.t = t,
                          .coef = {[0][AT_BATCH] = 1,
                                   [1] = {0, group, group > 1 ? 1 : 0, 0, 0},
                                   [2][AT_PLACE] = 1,
                                   [3][AT_DEPTH] = 1}};
}

struct heads heads_stacked(struct tensor *t, int64_t which) {
    return (struct heads){
        .t = t,
        .coef = {[1][AT_BATCH] = 1, [2][AT_HEAD] = 1, [3][AT_PLACE] = 1, [4][AT_DEPTH] = 1},
        .at = {which}};
}

struct heads heads_from(struct heads h, int axis, int64_t step, int64_t first) {
    for (int d = 0; d < h.t->ndims; d++) {
        h.at[d] += h.coef[d][axis] * first;
        h.coef[d][axis] *= step;
    }
    return h;
}

static void heads_index(struct import *im, const struct heads *h, const char *const *axis,
                        const char **index) {
    for (int d = 0; d < h->t->ndims; d++)
        index[d] = affine_text(im, AT_COUNT, h->coef[d], axis, h->at[d]);
}

const char *heads_element(struct import *im, struct heads h, const char *const *axis) {
    const char *index[MAX_DIMS];
    heads_index(im, &h, axis, index);
    return tensor_element(im, h.t, index);
}

void heads_axes(struct import *im, const int64_t *extent, const char **axis) {
    static const char *const hint[AT_COUNT] = {"n", "h", "g", "i", "d"};
    axes_release(im);
    for (int k = 0; k < AT_COUNT; k++) axis[k] = axis_for(im, hint[k], extent[k]);
}

void heads_copy(struct import *im, struct heads to, struct heads from, const int64_t *extent) {
    const char *axis[AT_COUNT];
    if (extent[AT_PLACE] < 1) return;
    heads_axes(im, extent, axis);
    emit_statement(im, "%s = %s", heads_element(im, to, axis), heads_element(im, from, axis));
}

/* ---- softmax(Q Kᵀ) V ---- */

/* Where a row attends: a condition, or NULL: everywhere. */
static const char *allowed(struct import *im, const struct attention *a, const char *row,
                           const char *column, const char *batch) {
    const char *last, *text;
    if (!a->causal) return NULL;
    if (a->past_of)
        last = arena_printf(im->arena, "i64(%s) + %s", row, tensor_element(im, a->past_of, &batch));
    else
        last = arena_printf(im->arena, "i64(%s) + %" PRId64, row, a->past);
    text = arena_printf(im->arena, "i64(%s) <= %s", column, last);
    if (a->window > 0)
        text = arena_printf(im->arena, "(%s & i64(%s) + %" PRId64 " > %s)", text, column, a->window,
                            last);
    return text;
}

/* What the mask adds: 0 where it is set. NULL: nothing */
static const char *masked(struct import *im, const struct attention *a, const char *row,
                          const char *column, const char *batch) {
    struct tensor *m = a->mask;
    if (!m) return NULL;
    const char *at[4] = {batch, column}, *test;
    if (m->ndims == 1) {
        test = arena_printf(im->arena, "i64(%s) < i64(%s)", column, tensor_element(im, m, at));
        if (m->extent[0] > a->extent[AT_BATCH]) { /* ends, then beginnings */
            at[0] = affine_text(im, 1, (int64_t[]){1}, &batch, a->extent[AT_BATCH]);
            test = arena_printf(im->arena, "(%s & i64(%s) >= i64(%s))", test, column,
                                tensor_element(im, m, at));
        }
    } else {
        if (m->ndims > 2) at[m->ndims - 2] = row, at[m->ndims - 1] = column;
        if (m->ndims == 4) {
            at[1] = "0";
            at[2] = affine_text(im, 1, (int64_t[]){1}, &row, a->past);
        }
        for (int d = 0; d < m->ndims; d++)
            if (m->extent[d] == 1) at[d] = "0";
        test = arena_printf(im->arena, "%s > 0", tensor_element(im, m, at));
    }
    return arena_printf(im->arena, "select(%s, 0, %s)", test, text_number(im, TYPE_F32, a->filter));
}

static bool mask_fits(struct import *im, const struct attention *a) {
    const struct tensor *m = a->mask;
    int64_t n = a->extent[AT_BATCH];
    if (!m) return true;
    bool fits = m->ndims == 1 ? m->extent[0] == n || m->extent[0] == 2 * n
                : m->ndims == 4
                    ? m->extent[1] == 1 && m->extent[2] >= a->past + a->extent[AT_PLACE]
                    : m->ndims == 2 || (m->ndims == 3 &&
                                        (m->extent[1] == 1 || m->extent[1] == a->extent[AT_PLACE]));
    if (m->ndims > 1)
        fits =
            fits && (m->extent[0] == 1 || m->extent[0] == n) &&
            (m->extent[m->ndims - 1] == a->length || (m->ndims == 4 && m->extent[3] > a->length));
    return (fits && !type_is_float(m->type)) ||
           node_fail(im, "the mask %s does not fit, or is of floats",
                     shape_text(im->arena, m->ndims, m->extent));
}

/* [batch, head, queries that share it (where there are several), place, last] */
static struct heads heads_of_rows(struct tensor *t, int64_t group) {
    if (group == 1) return heads_apart(t, 1);
    struct heads h = {.t = t};
    for (int d = 0; d < AT_COUNT; d++) h.coef[d][d] = 1;
    return h;
}

static struct tensor *rows_temporary(struct import *im, const struct attention *a,
                                     const char *suffix, enum type type, int64_t last,
                                     struct heads *h) {
    int64_t extent[AT_COUNT];
    int n = 0;
    for (int k = 0; k < AT_DEPTH; k++)
        if (k != AT_GROUP || a->extent[k] > 1) extent[n++] = a->extent[k];
    extent[n++] = last;
    struct tensor *t = tensor_temporary(im, im->node->output[0], suffix, type, n, extent);
    if (t) *h = heads_of_rows(t, a->extent[AT_GROUP]);
    return t;
}

/* A score at a stage: scaled; capped; with what is added and without what is left out, as the
 * softmax takes it. */
static const char *score_text(struct import *im, const struct attention *a, const char *score,
                              const char *const *axis, int stage) {
    struct arena *arena = im->arena;
    const int64_t *n = a->extent,
                  all[4] = {n[AT_BATCH], n[AT_HEAD] * n[AT_GROUP], n[AT_PLACE], a->length};
    const char *head = affine_text(im, 2, (int64_t[]){n[AT_GROUP], 1}, &axis[AT_HEAD], 0);
    const char *at[4] = {axis[AT_BATCH], head, axis[AT_PLACE], axis[AT_DEPTH]}, *text;
    if (a->scale != 1)
        score = arena_printf(arena, "%s * %s", score, text_number(im, TYPE_F32, a->scale));
    if (a->softcap > 0 && stage >= SCORES_CAPPED) {
        const char *cap = text_number(im, TYPE_F32, a->softcap);
        score = arena_printf(arena, "tanh(%s / %s) * %s", score, cap, cap);
    }
    if (stage < SCORES_ADDED) return score;
    if (a->bias)
        score = arena_printf(
            arena, "%s + %s", score,
            sum_widen(im, a->bias->type, tensor_element_broadcast(im, a->bias, 4, all, at)));
    if ((text = masked(im, a, axis[AT_PLACE], axis[AT_DEPTH], axis[AT_BATCH])))
        score = arena_printf(arena, "%s + %s", score, text);
    if ((text = allowed(im, a, axis[AT_PLACE], axis[AT_DEPTH], axis[AT_BATCH])))
        score = arena_printf(arena, "select(%s, %s, %s)", text, score,
                             text_number(im, TYPE_F32, a->outside));
    return score;
}

static bool bias_fits(struct import *im, const struct attention *a) {
    const struct tensor *b = a->bias;
    const int64_t *n = a->extent,
                  all[4] = {n[AT_BATCH], n[AT_HEAD] * n[AT_GROUP], n[AT_PLACE], a->length};
    bool fits = !b || b->ndims <= 4;
    for (int d = 0; fits && b && d < b->ndims; d++) {
        int64_t e = all[4 - b->ndims + d];
        fits = b->extent[d] == 1 || b->extent[d] == e;
    }
    return fits || node_fail(im, "what is added to the scores, %s, does not fit",
                             shape_text(im->arena, b->ndims, b->extent));
}

static bool softmax_of(struct import *im, const char *from, const char *to) {
    struct inner n = {.input = {from}, .ninputs = 1, .output = {to}};
    const struct tensor *x = name_find(&im->value, from);
    inner_int(im, &n, "axis", x->ndims - 1);
    return inner_lower(im, &n, "Softmax");
}

/* Heads in dimensions of their own: a copy where they lie inside another, so that the planner is
 * free to lay out what the products read. */
static bool open_heads(struct import *im, struct heads *h, const int64_t *extent,
                       const char *suffix) {
    int64_t shape[AT_COUNT];
    int n = 0;
    if (h->t->ndims != 3) return true;
    for (int k = 0; k < AT_COUNT; k++)
        if (k != AT_GROUP || extent[k] > 1) shape[n++] = extent[k];
    struct tensor *t = tensor_temporary(im, im->node->output[0], suffix, h->t->type, n, shape);
    if (!t) return false;
    struct heads to = heads_of_rows(t, extent[AT_GROUP]);
    heads_copy(im, to, *h, extent);
    *h = to;
    return true;
}

/* out[row, j] = sum over k of x[row, k] * y[k, j], or y[j, k] if transposed; walked: the extents of
 * x. */
static void product(struct import *im, const int64_t *walked, int64_t element, struct heads out,
                    struct heads x, struct heads y, bool transposed) {
    const char *axis[AT_COUNT], *to[AT_COUNT], *second[AT_COUNT];
    heads_axes(im, walked, axis);
    memcpy(to, axis, sizeof to);
    memcpy(second, axis, sizeof second);
    to[AT_DEPTH] = axis_for(im, "j", element);
    second[AT_PLACE] = transposed ? to[AT_DEPTH] : axis[AT_DEPTH];
    second[AT_DEPTH] = transposed ? axis[AT_DEPTH] : to[AT_DEPTH];
    const char *sum = heads_element(im, out, to);
    emit_statement(im, "%s = 0", sum);
    emit_statement(im, "%s += %s * %s", sum, sum_widen(im, x.t->type, heads_element(im, x, axis)),
                   sum_widen(im, y.t->type, heads_element(im, y, second)));
}

/* The score behind those of the keys: with it the softmax has weights that add up to less than 1.
 */
static bool sink_score(struct import *im, const struct attention *a, struct heads rows) {
    const int64_t *n = a->extent, heads = n[AT_HEAD] * n[AT_GROUP];
    const char *axis[AT_COUNT], *score = "0";
    int64_t walked[AT_COUNT];
    memcpy(walked, n, sizeof walked);
    walked[AT_DEPTH] = 1;
    heads_axes(im, walked, axis);
    if (a->sink) {
        const char *head = affine_text(im, 2, (int64_t[]){n[AT_GROUP], 1}, &axis[AT_HEAD], 0);
        if (a->sink->ndims != 1 || a->sink->extent[0] != heads || !type_is_float(a->sink->type))
            return node_fail(
                im, "the scores without a key %s are not one for each of %" PRId64 " heads",
                shape_text(im->arena, a->sink->ndims, a->sink->extent), heads);
        score = sum_widen(im, a->sink->type, tensor_element(im, a->sink, &head));
    }
    emit_statement(im, "%s = %s", heads_element(im, heads_from(rows, AT_DEPTH, 1, a->length), axis),
                   score);
    return true;
}

bool attention_lower(struct import *im, struct attention *a) {
    enum type type = a->q.t->type;
    const int64_t *n = a->extent, group = n[AT_GROUP];
    const int64_t merged[3] = {n[AT_BATCH], n[AT_PLACE], n[AT_HEAD] * group * a->depth_v},
                  apart[4] = {n[AT_BATCH], n[AT_HEAD] * group, n[AT_PLACE], a->depth_v};
    int64_t keys[AT_COUNT] = {n[AT_BATCH], n[AT_HEAD], 1, a->length, n[AT_DEPTH]}, values[AT_COUNT],
            walked[AT_COUNT], out[AT_COUNT];
    const char *axis[AT_COUNT];
    bool sink = a->sink || a->smooth;
    struct heads sum_at, row_at, out_at;
    memcpy(values, keys, sizeof values);
    memcpy(walked, n, sizeof walked);
    memcpy(out, n, sizeof out);
    values[AT_DEPTH] = out[AT_DEPTH] = a->depth_v;
    walked[AT_DEPTH] = a->length;
    struct tensor *y = node_result(im, type, a->apart ? 4 : 3, a->apart ? apart : merged);
    if (!y || !mask_fits(im, a) || !bias_fits(im, a) || !open_heads(im, &a->q, n, "queries") ||
        !open_heads(im, &a->k, keys, "keys") || !open_heads(im, &a->v, values, "values") ||
        !rows_temporary(im, a, "products", sum_type(type), a->length, &sum_at) ||
        !rows_temporary(im, a, "scores", sum_type(type), a->length + sink, &row_at) ||
        !rows_temporary(im, a, "sums", sum_type(type), a->depth_v, &out_at))
        return false;
    product(im, n, a->length, sum_at, a->q, a->k, true);
    heads_axes(im, walked, axis);
    emit_statement(im, "%s = %s", heads_element(im, row_at, axis),
                   score_text(im, a, heads_element(im, sum_at, axis), axis, SCORES_ADDED));
    if (sink && !sink_score(im, a, row_at)) return false;
    if (a->shown && a->stage != SCORES_WEIGHTS)
        emit_statement(
            im, "%s = %s", heads_element(im, heads_apart(a->shown, group), axis),
            sum_narrow(im, type,
                       score_text(im, a, heads_element(im, sum_at, axis), axis, a->stage)));
    const char *weights = inner_name(im, "weights");
    if (!softmax_of(im, inner_value(im, row_at.t, "scores"), weights)) return false;
    struct heads weight_at = heads_of_rows(name_find(&im->value, weights), group), kept_at;
    if (a->none_is_zero) {
        if (!rows_temporary(im, a, "kept", sum_type(type), a->length, &kept_at)) return false;
        heads_axes(im, walked, axis);
        emit_statement(im, "%s = select(%s == -inf, 0, %s)", heads_element(im, kept_at, axis),
                       heads_element(im, row_at, axis), heads_element(im, weight_at, axis));
        weight_at = kept_at;
    }
    heads_axes(im, walked, axis);
    if (a->shown && a->stage == SCORES_WEIGHTS)
        emit_statement(im, "%s = %s", heads_element(im, heads_apart(a->shown, group), axis),
                       sum_narrow(im, type, heads_element(im, weight_at, axis)));
    product(im, walked, a->depth_v, out_at, weight_at, a->v, false);
    heads_axes(im, out, axis);
    struct heads to = a->apart ? heads_apart(y, group) : heads_merged(y, group, a->depth_v, 0);
    emit_statement(im, "%s = %s", heads_element(im, to, axis),
                   sum_narrow(im, type, heads_element(im, out_at, axis)));
    return true;
}

/* ---- rotary positions ---- */

bool rotary_rows(struct import *im, const char *cos, const char *sin, const char *positions,
                 struct rotary *r) {
    const char *to[2] = {inner_name(im, "cos"), inner_name(im, "sin")};
    const struct tensor *table[2] = {name_find(&im->value, cos), name_find(&im->value, sin)};
    for (int k = 0; k < 2; k++)
        if (table[k]->ndims != 2 || table[k]->extent[1] != r->half)
            return node_fail(im, "the table of %s %s has not %" PRId64 " columns",
                             k ? "sines" : "cosines",
                             shape_text(im->arena, table[k]->ndims, table[k]->extent), r->half);
    if (!inner_node(im, "Gather", cos, positions, to[0]) ||
        !inner_node(im, "Gather", sin, positions, to[1]))
        return false;
    r->cos = name_find(&im->value, to[0]);
    r->sin = name_find(&im->value, to[1]);
    return true;
}

bool rotary_lower(struct import *im, const struct rotary *r, struct heads to, struct heads from,
                  const int64_t *extent) {
    int64_t n[AT_COUNT], step = r->interleaved ? 2 : 1, apart = r->interleaved ? 1 : r->half;
    const char *axis[AT_COUNT], *x[2], *y[2];
    enum type type = from.t->type;
    memcpy(n, extent, sizeof n);
    if (2 * r->half > n[AT_DEPTH])
        return node_fail(im, "the tables of angles are for more elements than a head has");
    n[AT_DEPTH] = r->half;
    heads_axes(im, n, axis);
    for (int k = 0; k < 2; k++) {
        x[k] = sum_widen(im, type,
                         heads_element(im, heads_from(from, AT_DEPTH, step, k * apart), axis));
        y[k] = heads_element(im, heads_from(to, AT_DEPTH, step, k * apart), axis);
    }
    const char *at[3] = {r->cos->extent[0] == 1 ? "0" : axis[AT_BATCH], axis[AT_PLACE],
                         axis[AT_DEPTH]};
    const char *c = sum_widen(im, r->cos->type, tensor_element(im, r->cos, at)),
               *s = sum_widen(im, r->sin->type, tensor_element(im, r->sin, at));
    for (int k = 0; k < 2; k++)
        emit_statement(im, "%s = %s", y[k],
                       sum_narrow(im, type,
                                  arena_printf(im->arena, "(%s * %s %c %s * %s)", x[k], c,
                                               k ? '+' : '-', x[1 - k], s)));
    n[AT_DEPTH] = extent[AT_DEPTH] - 2 * r->half;
    if (n[AT_DEPTH] > 0)
        heads_axes(im, n, axis),
            emit_statement(im, "%s = %s",
                           heads_element(im, heads_from(to, AT_DEPTH, 1, 2 * r->half), axis),
                           heads_element(im, heads_from(from, AT_DEPTH, 1, 2 * r->half), axis));
    return true;
}
#endif
