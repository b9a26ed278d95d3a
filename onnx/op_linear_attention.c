/* LinearAttention: attention without softmax, whose keys and values are summed in a state, one
 * matrix for each head. A recurrence over the tokens. */
#include "onnx/onnx.h"

#ifdef ISAMAP_WITH_ONNX
#include "onnx/onnx_int.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

struct linear_attention {
    struct tensor *q, *k, *v, *past, *decay, *beta;
    int64_t batches, tokens, heads_q, heads, width_k, width_v;
    bool gated, delta;
    double scale;
    const char *b, *h, *i, *j, *t; /* axes: batch, head of keys, widths, token */
};

static bool rule_read(struct import *im, struct linear_attention *a) {
    const char *rule = "gated_delta";
    if (!attribute_string(im, "update_rule", &rule)) return false;
    a->gated = strncmp(rule, "gated", 5) == 0;
    a->delta = strcmp(rule, "delta") == 0 || strcmp(rule, "gated_delta") == 0;
    if (!a->delta && strcmp(rule, "linear") != 0 && strcmp(rule, "gated") != 0)
        return node_fail(im, "'update_rule' is '%s', expected linear, gated, delta or gated_delta",
                         name_shown(im->arena, rule));
    if (a->gated && !a->decay) return node_fail(im, "the rule '%s' needs a decay (input 4)", rule);
    if (a->delta && !a->beta)
        return node_fail(im, "the rule '%s' needs a rate of updates (input 5)", rule);
    return true;
}

/* [batches, tokens, heads * width] */
static bool packed(const struct linear_attention *a, const struct tensor *t, int64_t width) {
    return t->type == a->q->type && t->ndims == 3 && t->extent[0] == a->batches &&
           t->extent[1] == a->tokens && t->extent[2] == width;
}

static bool attention_read(struct import *im, struct linear_attention *a) {
    int64_t chunk = 0, window = 0;
    *a = (struct linear_attention){.q = node_input(im, 0),
                                   .k = node_input(im, 1),
                                   .v = node_input(im, 2),
                                   .past = node_input(im, 3),
                                   .decay = node_input(im, 4),
                                   .beta = node_input(im, 5)};
    if (!attribute_int(im, "q_num_heads", &a->heads_q) ||
        !attribute_int(im, "kv_num_heads", &a->heads) || !attribute_float(im, "scale", &a->scale) ||
        !attribute_int(im, "chunk_size", &chunk) || !attribute_int(im, "state_window", &window) ||
        !rule_read(im, a))
        return false;
    if (window) return node_fail(im, "'state_window' is %" PRId64 ", expected 0", window);
    int64_t q = a->heads_q, h = a->heads;
    if (a->q->ndims != 3 || !type_is_float(a->q->type) || q < 1 || h < 1 || (q % h && h % q) ||
        a->q->extent[2] % q || a->v->ndims != 3 || a->v->extent[2] % h)
        return node_fail(im, "queries or values do not fit %" PRId64 " and %" PRId64 " heads", q,
                         h);
    a->batches = a->q->extent[0];
    a->tokens = a->q->extent[1];
    a->width_k = a->q->extent[2] / q;
    a->width_v = a->v->extent[2] / h;
    int64_t state[4] = {a->batches, h, a->width_k, a->width_v};
    bool fits = packed(a, a->k, h * a->width_k) && packed(a, a->v, h * a->width_v) &&
                (!a->gated || packed(a, a->decay, h) || packed(a, a->decay, h * a->width_k)) &&
                (!a->delta || packed(a, a->beta, h) || packed(a, a->beta, 1)) &&
                (!a->past || (type_is_float(a->past->type) && a->past->ndims == 4 &&
                              memcmp(a->past->extent, state, sizeof state) == 0));
    if (a->scale == 0) a->scale = 1 / sqrt((double)a->width_k);
    return fits || node_fail(im, "keys, values, state, decay or rate do not fit the queries %s",
                             shape_text(im->arena, 3, a->q->extent));
}

/* f32 of a packed tensor, of this token: what stands at `place` */
static const char *of_token(struct import *im, const struct linear_attention *a, struct tensor *t,
                            const char *place) {
    const char *at[3] = {a->b, a->t, place};
    return sum_widen(im, t->type, tensor_element(im, t, at));
}

static const char *joined(struct import *im, const char *outer, int64_t times, const char *inner) {
    return affine_text(im, 2, (int64_t[]){times, 1}, (const char *[]){outer, inner}, 0);
}

/* The token's part of the state: what it keeps of the one before, and what is added. */
static void state_step(struct import *im, const struct linear_attention *a, enum type type,
                       const char *s) {
    const char *b = a->b, *h = a->h, *i = a->i, *j = a->j, *f = type_name(type),
               *add = name_unique(im, "added"), *keep = name_unique(im, "kept"),
               *key = of_token(im, a, a->k, joined(im, h, a->width_k, i)),
               *value = of_token(im, a, a->v, joined(im, h, a->width_v, j));
    emit_statement(im, "  temp %s: %s[%" PRId64 ",%" PRId64 ",%" PRId64 "]", add, f, a->batches,
                   a->heads, a->width_v);
    const char *old = arena_printf(im->arena, "%s[%s,%s,%s,%s]", s, b, h, i, j);
    if (a->gated) {
        bool each = a->decay->extent[2] != a->heads;
        const char *from = each ? joined(im, h, a->width_k, i) : h;
        emit_statement(im, "  temp %s: %s[%" PRId64 ",%" PRId64 ",%" PRId64 "]", keep, f,
                       a->batches, a->heads, each ? a->width_k : 1);
        keep = arena_printf(im->arena, "%s[%s,%s,%s]", keep, b, h, each ? i : "0");
        emit_statement(im, "  %s = exp(%s)", keep, of_token(im, a, a->decay, from));
        old = arena_printf(im->arena, "%s * %s", keep, old);
    }
    add = arena_printf(im->arena, "%s[%s,%s,%s]", add, b, h, j);
    if (a->delta) {
        const char *seen = name_unique(im, "seen");
        emit_statement(im, "  temp %s: %s[%" PRId64 ",%" PRId64 ",%" PRId64 "]", seen, f,
                       a->batches, a->heads, a->width_v);
        seen = arena_printf(im->arena, "%s[%s,%s,%s]", seen, b, h, j);
        emit_statement(im, "  %s = 0", seen);
        emit_statement(im, "  %s += %s * %s", seen, old, key);
        emit_statement(im, "  %s = %s * (%s - %s)", add,
                       of_token(im, a, a->beta, a->beta->extent[2] == 1 ? "0" : h), value, seen);
    } else {
        emit_statement(im, "  %s = %s", add, value);
    }
    emit_statement(im, "  %s'[%s,%s,%s,%s] = %s + %s * %s", s, b, h, i, j, old, key, add);
}

/* The token's result: its queries times the state. */
static void token_result(struct import *im, const struct linear_attention *a, struct tensor *acc,
                         const char *s) {
    int64_t few = a->heads < a->heads_q ? a->heads : a->heads_q,
            many = a->heads < a->heads_q ? a->heads_q : a->heads;
    int64_t ratio = many / few;
    bool shared = a->heads < a->heads_q; /* several heads of queries have one of keys */
    const char *g = axis_for(im, "g", few), *r = axis_for(im, "r", ratio), *pair[3] = {g, r, a->j},
               *head = affine_text(im, 2, (int64_t[]){ratio, 1}, pair, 0),
               *of_keys = shared ? g : head,
               *at[3] = {
                   a->b, a->t,
                   affine_text(im, 3, (int64_t[]){ratio * a->width_v, a->width_v, 1}, pair, 0)};
    int64_t place[3] = {shared ? ratio * a->width_k : a->width_k, shared ? a->width_k : 0, 1};
    pair[2] = a->i;
    const char *y = tensor_element(im, acc, at),
               *q = of_token(im, a, a->q, affine_text(im, 3, place, pair, 0));
    emit_statement(im, "  %s = 0", y);
    emit_statement(im, "  %s += %s * %s'[%s,%s,%s,%s]", y, q, s, a->b, of_keys, a->i, a->j);
}

bool op_linear_attention(struct import *im) {
    struct linear_attention a;
    if (!attention_read(im, &a)) return false;
    enum type type = a.q->type, wide = sum_type(type);
    int64_t most = a.heads < a.heads_q ? a.heads_q : a.heads,
            result[3] = {a.batches, a.tokens, most * a.width_v},
            state[4] = {a.batches, a.heads, a.width_k, a.width_v};
    struct tensor *y = node_result(im, type, 3, result);
    if (!y) return false;
    struct tensor *acc = tensor_temporary(im, y->buffer, "sum", wide, 3, result),
                  *first = tensor_temporary(im, y->buffer, "first", wide, 4, state),
                  *last = tensor_temporary(im, y->buffer, "last", wide, 4, state),
                  *next = node_wants(im, 1)
                              ? node_result_at(im, 1, a.past ? a.past->type : type, 4, state)
                              : NULL;
    if (!acc || !first || !last || (node_wants(im, 1) && !next)) return false;
    a.b = axis_for(im, "b", a.batches);
    a.h = axis_for(im, "h", a.heads);
    a.i = axis_for(im, "i", a.width_k);
    a.j = axis_for(im, "j", a.width_v);
    a.t = name_unique(im, "t");
    const char *at[4] = {a.b, a.h, a.i, a.j}, *s = name_unique(im, "state_of_heads");
    emit_statement(
        im, "%s = %s", tensor_element(im, first, at),
        a.past ? arena_printf(im->arena, "%s(%s)", type_name(wide), tensor_element(im, a.past, at))
               : "0");
    emit_statement(im, "recur %s: %" PRId64 "  state %s: %s%s from %s to %s {", a.t, a.tokens, s,
                   type_name(wide), shape_text(im->arena, 4, state), first->buffer, last->buffer);
    state_step(im, &a, wide, s);
    token_result(im, &a, acc, s);
    emit_statement(im, "}");
    if (next)
        emit_statement(im, "%s = %s(%s)", tensor_element(im, next, at), type_name(next->type),
                       tensor_element(im, last, at));
    axes_release(im);
    const char *to[3];
    axes_for(im, 3, result, to);
    const char *sum = tensor_element(im, acc, to);
    emit_statement(
        im, "%s = %s", tensor_element(im, y, to),
        sum_narrow(im, type,
                   arena_printf(im->arena, "%s * %s", text_number(im, wide, a.scale), sum)));
    return true;
}
#endif
