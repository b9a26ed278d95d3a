/* Of com.microsoft: mixtures of experts (MoE, and QMoE, whose weights are 2, 4 or 8 bits). A router
 * chooses k experts for each token, and the result is the weighted sum of what these make of it.
 * With few tokens the weights of the chosen experts are gathered; with more than there are experts,
 * each computes all tokens, and those that it was not chosen for have the weight 0. */
#include "onnx/onnx.h"

#ifdef ISAMAP_WITH_ONNX
#include "onnx/onnx_int.h"

#include <inttypes.h>
#include <string.h>

enum { FIRST, SECOND, GATED, PRODUCTS };   /* the third stands beside the first: a gate */
enum { WEIGHTS_OF_ROUTER = 14 };           /* the input */
enum { WEIGHT, BIAS, SCALE, ZERO, PARTS }; /* of a product; the last two of weights of few bits */

struct experts {
    const char *x; /* the name of [tokens, width] */
    /* [expert or token, chosen; column; row]; the same without rows, or NULL; with blocks of rows
     */
    struct tensor *part[PRODUCTS][PARTS];
    int64_t bits[PRODUCTS], size; /* of QMoE: 0 for MoE; of blocks, 0: none */
    struct tensor *share;         /* [tokens, slots], f32 */
    int64_t tokens, width, inner, count, k;
    int64_t slots, fusion; /* experts that a token is shown to */
    bool gathered;         /* the chosen ones, else all */
    const char *how;
    double alpha, beta, limit;
    bool limited;
    enum type type;
};

static bool quantised(const struct import *im) {
    return strcmp(im->node->op_type, "QMoE") == 0;
}

static bool experts_attributes(struct import *im, struct experts *e, bool *normalise) {
    int64_t norm = 0, sparse = 0, after = 0;
    e->k = 1;
    e->how = "relu";
    e->alpha = 1;
    e->limited = attribute_find(im, "swiglu_limit") != NULL;
    if (!attribute_int(im, "k", &e->k) || !attribute_string(im, "activation_type", &e->how) ||
        !attribute_int(im, "normalize_routing_weights", &norm) ||
        !attribute_int(im, "use_sparse_mixer", &sparse) ||
        !attribute_int(im, "swiglu_fusion", &e->fusion) ||
        !attribute_int(im, "swiglu_limit_after_activation", &after) ||
        !attribute_float(im, "activation_alpha", &e->alpha) ||
        !attribute_float(im, "activation_beta", &e->beta) ||
        !attribute_float(im, "swiglu_limit", &e->limit))
        return false;
    if (sparse || after)
        return node_fail(
            im, "'use_sparse_mixer' and 'swiglu_limit_after_activation' are not supported");
    if (strcmp(e->how, "swiglu") == 0 ? e->fusion < 0 || e->fusion > 2 : e->fusion != 0)
        return node_fail(im, "'swiglu_fusion' is %" PRId64, e->fusion);
    /* What QMoE takes from probabilities has the sum 1 in any case. */
    *normalise = norm != 0 || (quantised(im) && !node_has_input(im, WEIGHTS_OF_ROUTER));
    return true;
}

/* Which input a part of a product is; -1: none. */
static int input_of(const struct import *im, int p, int part) {
    static const int place[ZERO] = {[WEIGHT] = 2, [BIAS] = 4, [SCALE] = 3};
    if (quantised(im)) return part == ZERO ? 11 + p : place[part] + 3 * p;
    return part <= BIAS ? 2 + part + 2 * p : -1;
}

static bool bits_attributes(struct import *im, struct experts *e) {
    static const char *const own[PRODUCTS] = {"fc1_expert_weight_bits", "fc2_expert_weight_bits",
                                              "fc3_expert_weight_bits"};
    int64_t bits = 4, prepacked = 0, level = 0; /* of accuracy: sums are in floats at each */
    const char *kind = "int";
    if (!quantised(im)) return true;
    if (!attribute_int(im, "expert_weight_bits", &bits) ||
        !attribute_int(im, "block_size", &e->size) ||
        !attribute_int(im, "weights_prepacked", &prepacked) ||
        !attribute_int(im, "accuracy_level", &level) || !attribute_string(im, "quant_type", &kind))
        return false;
    if (prepacked > 0 || strcmp(kind, "int") != 0 || e->size < 0)
        return node_fail(im,
                         "'weights_prepacked', 'quant_type' other than int, or blocks of "
                         "%" PRId64 " are not supported",
                         e->size);
    for (int p = 0; p < PRODUCTS; p++) {
        e->bits[p] = bits;
        if (!attribute_int(im, own[p], &e->bits[p])) return false;
        if (e->bits[p] != 2 && e->bits[p] != 4 && e->bits[p] != 8)
            return node_fail(im, "weights have %" PRId64 " bits, expected 2, 4 or 8", e->bits[p]);
    }
    return true;
}

/* Do scales and zero points fit weights of such extents? */
static bool codes_fit(const struct experts *e, int p, int64_t columns, int64_t rows) {
    const struct tensor *const *t = (const struct tensor *const *)e->part[p];
    int64_t size = e->size ? e->size : rows, count = rows % size ? 0 : rows / size,
            each = 8 / e->bits[p], fields = e->size ? count : columns,
            packed = (fields + each - 1) / each;
    int n = e->size ? 3 : 2;
    return count && t[WEIGHT]->type == TYPE_U8 && rows % each == 0 && t[SCALE] &&
           type_is_float(t[SCALE]->type) && t[SCALE]->ndims == n &&
           t[SCALE]->extent[0] == e->count && t[SCALE]->extent[1] == columns &&
           (n == 2 || t[SCALE]->extent[2] == count) &&
           (!t[ZERO] ||
            (t[ZERO]->type == TYPE_U8 && t[ZERO]->ndims == n && t[ZERO]->extent[0] == e->count &&
             t[ZERO]->extent[n - 1] == packed && (n == 2 || t[ZERO]->extent[1] == columns)));
}

static bool parts_fit(const struct experts *e, int p, int64_t columns, int64_t rows) {
    const struct tensor *w = e->part[p][WEIGHT], *b = e->part[p][BIAS];
    int64_t each = e->bits[p] ? 8 / e->bits[p] : 1;
    return w && w->ndims == 3 && w->extent[0] == e->count && w->extent[1] == columns &&
           w->extent[2] * each == rows &&
           (e->bits[p] ? codes_fit(e, p, columns, rows) : w->type == e->type) &&
           (!b || (b->type == e->type && b->ndims == 2 && b->extent[0] == e->count &&
                   b->extent[1] == columns));
}

static bool experts_shapes(struct import *im, struct experts *e) {
    struct tensor *x = node_input(im, 0), *router = node_input(im, 1);
    e->type = x->type;
    e->width = x->ndims ? x->extent[x->ndims - 1] : 0;
    for (int p = 0; p < PRODUCTS; p++)
        for (int part = 0; part < PARTS; part++)
            if (input_of(im, p, part) >= 0)
                e->part[p][part] = node_input(im, input_of(im, p, part));
    struct tensor *last = e->part[SECOND][WEIGHT];
    bool gated = strcmp(e->how, "swiglu") == 0, fits = type_is_float(x->type) && x->ndims >= 2 &&
                                                       x->elements && router->ndims == 2 && last &&
                                                       last->ndims == 3;
    if (!fits || (gated && !e->fusion) != !!e->part[GATED][WEIGHT])
        return node_fail(im, "its inputs do not fit each other, or 'activation_type'");
    e->tokens = x->elements / e->width;
    e->count = router->extent[1];
    e->inner = last->extent[2] * (e->bits[SECOND] ? 8 / e->bits[SECOND] : 1);
    for (int p = 0; p < PRODUCTS; p++) {
        int64_t rows = p == SECOND ? e->inner : e->width,
                columns = p == SECOND ? e->width : e->inner * (p == FIRST && e->fusion ? 2 : 1);
        if ((p != GATED || e->part[p][WEIGHT] || e->part[p][BIAS]) &&
            !parts_fit(e, p, columns, rows))
            return node_fail(im, "weights or what belongs to them (%d) do not fit", p + 1);
    }
    struct tensor *own = node_input(im, WEIGHTS_OF_ROUTER);
    if (own && (own->ndims != 2 || own->extent[0] != e->tokens || own->extent[1] != e->count ||
                !type_is_float(own->type)))
        return node_fail(im, "the router's weights do not fit");
    if (router->extent[0] != e->tokens || !type_is_float(router->type) || e->k < 1 ||
        e->k > e->count || e->tokens > MAX_COUNT / e->count)
        return node_fail(im,
                         "%" PRId64 " of the experts %s cannot be chosen for %" PRId64 " tokens",
                         e->k, shape_text(im->arena, router->ndims, router->extent), e->tokens);
    e->gathered = e->tokens * e->k < e->count;
    e->slots = e->gathered ? e->k : e->count;
    return true;
}

/* Shares of the chosen experts and which they are: [tokens, k]. Shares of QMoE may be an input. */
static bool choose(struct import *im, const struct experts *e, const char **share,
                   const char **which) {
    const char *all = inner_name(im, "probabilities"), *base = im->node->output[0];
    struct inner softmax = {.input = {im->node->input[1]}, .ninputs = 1, .output = {all}};
    int64_t one = 1;
    inner_int(im, &softmax, "axis", 1);
    if (!inner_lower(im, &softmax, "Softmax")) return false;
    struct inner top = {.input = {all}, .ninputs = 2};
    top.output[0] = *share = inner_name(im, "shares");
    top.output[1] = *which = inner_name(im, "which");
    if (im->opset >= 10) {
        struct tensor *k = tensor_constant(im, base, "k", TYPE_I64, 1, &one,
                                           arena_copy(im->arena, &e->k, sizeof e->k));
        if (!k) return false;
        top.input[1] = inner_value(im, k, "k");
    } else {
        inner_int(im, &top, "k", e->k);
        top.ninputs = 1;
    }
    if (!inner_lower(im, &top, "TopK")) return false;
    if (!node_has_input(im, WEIGHTS_OF_ROUTER)) return true;
    struct inner own = {.input = {im->node->input[WEIGHTS_OF_ROUTER], *which}, .ninputs = 2};
    own.output[0] = *share = inner_name(im, "own");
    inner_int(im, &own, "axis", 1);
    return inner_lower(im, &own, "GatherElements");
}

/* Each slot's share of a token, in f32. */
static bool shares(struct import *im, struct experts *e, struct tensor *share, struct tensor *which,
                   bool normalise) {
    int64_t all[2] = {e->tokens, e->slots};
    struct tensor *sum = NULL;
    const char *t, *at[2], *to[2];
    if (normalise) {
        if (!(sum = tensor_temporary(im, im->node->output[0], "shared", TYPE_F32, 1, all)))
            return false;
        axes_release(im);
        at[0] = t = axis_for(im, "t", e->tokens);
        at[1] = axis_for(im, "j", e->k);
        emit_statement(im, "%s = 0", tensor_element(im, sum, &t));
        emit_statement(im, "%s += f32(%s)", tensor_element(im, sum, &t),
                       tensor_element(im, share, at));
    }
    if (!(e->share = tensor_temporary(im, im->node->output[0], "gates", TYPE_F32, 2, all)))
        return false;
    axes_release(im);
    at[0] = to[0] = axis_for(im, "t", e->tokens);
    to[1] = axis_for(im, "e", e->slots);
    at[1] = e->gathered ? to[1] : axis_for(im, "j", e->k);
    const char *gate = tensor_element(im, e->share, to),
               *value = arena_printf(im->arena, "f32(%s)", tensor_element(im, share, at));
    if (sum) value = arena_printf(im->arena, "%s / %s", value, tensor_element(im, sum, to));
    if (e->gathered) {
        emit_statement(im, "%s = %s", gate, value);
        return true;
    }
    emit_statement(im, "%s = 0", gate);
    emit_statement(im, "%s += select(%s == %s, %s, 0)", gate, tensor_element(im, which, at), to[1],
                   value);
    return true;
}

/* What belongs to the chosen experts alone, [token, chosen, ...]. */
static bool gather(struct import *im, struct experts *e, const char *which) {
    for (int p = 0; p < PRODUCTS; p++)
        for (int part = 0; part < PARTS; part++) {
            if (!e->part[p][part]) continue;
            const char *rows = inner_name(im, "chosen");
            if (!inner_node(im, "Gather", im->node->input[input_of(im, p, part)], which, rows))
                return false;
            e->part[p][part] = name_find(&im->value, rows);
        }
    return true;
}

/* Weights of few bits as f32 */
static bool open_weights(struct import *im, struct experts *e) {
    static const char *const name[PRODUCTS] = {"first", "second", "third"};
    for (int p = 0; p < PRODUCTS; p++) {
        struct tensor **t = e->part[p], *fields, *y;
        if (!t[WEIGHT] || !e->bits[p]) continue;
        if (!(fields = fields_open(im, t[WEIGHT], e->bits[p], "fields")) ||
            (t[ZERO] && !(t[ZERO] = fields_open(im, t[ZERO], e->bits[p], "zero"))) ||
            !(y = tensor_temporary(im, im->node->output[0], name[p], TYPE_F32, fields->ndims,
                                   fields->extent)))
            return false;
        fields_dequantise(im, y, fields, t[SCALE], t[ZERO], e->bits[p]);
        t[WEIGHT] = y;
    }
    return true;
}

/* An element of a weight or bias: index[0] is the token, index[1] the slot. */
static const char *own(struct import *im, const struct experts *e, struct tensor *t,
                       const char *const *index) {
    return sum_widen(im, t->type, tensor_element(im, t, e->gathered ? index : index + 1));
}

/* [tokens, slots, columns]: what product FIRST or GATED makes of the tokens. */
static struct tensor *opened(struct import *im, const struct experts *e, int p,
                             const char *suffix) {
    struct tensor *x = name_find(&im->value, e->x);
    int64_t all[3] = {e->tokens, e->slots, e->inner * (p == FIRST && e->fusion ? 2 : 1)};
    struct tensor *y = tensor_temporary(im, im->node->output[0], suffix, sum_type(e->type), 3, all);
    if (!y) return NULL;
    axes_release(im);
    const char *index[4] = {axis_for(im, "t", all[0]), axis_for(im, "e", all[1]),
                            axis_for(im, "n", all[2]), axis_for(im, "k", e->width)},
               *from[2] = {index[0], index[3]}, *sum = tensor_element(im, y, index);
    emit_statement(im, "%s = %s", sum,
                   e->part[p][BIAS] ? own(im, e, e->part[p][BIAS], index) : "0");
    emit_statement(im, "%s += %s * %s", sum, sum_widen(im, e->type, tensor_element(im, x, from)),
                   own(im, e, e->part[p][WEIGHT], index));
    return y;
}

static const char *activated(struct import *im, const struct experts *e, const char *g,
                             const char *l) {
    struct arena *a = im->arena;
    if (!strcmp(e->how, "identity")) return g;
    if (!strcmp(e->how, "relu")) return arena_printf(a, "select(%s < 0, 0, %s)", g, g);
    if (!strcmp(e->how, "silu")) return arena_printf(a, "%s * sigmoid(%s)", g, g);
    if (!strcmp(e->how, "gelu"))
        return arena_printf(a,
                            "0.5 * %s * (1 + tanh(0.7978845608 * (%s + 0.044715 * %s * %s * %s)))",
                            g, g, g, g, g);
    if (strcmp(e->how, "swiglu")) return NULL;
    if (e->limited) {
        const char *limit = text_number(im, TYPE_F32, e->limit);
        g = arena_printf(a, "min(%s, %s)", g, limit);
        l = arena_printf(a, "clip(%s, -%s, %s)", l, limit, limit);
    }
    return arena_printf(a, "%s * sigmoid(%s * %s) * (%s + %s)", g,
                        text_number(im, TYPE_F32, e->alpha), g, l,
                        text_number(im, TYPE_F32, e->beta));
}

/* What enters the second product: activations times the slot's share. */
static struct tensor *shared(struct import *im, const struct experts *e) {
    struct tensor *first = opened(im, e, FIRST, "opened"),
                  *gate = e->part[GATED][WEIGHT] ? opened(im, e, GATED, "beside") : first;
    int64_t all[3] = {e->tokens, e->slots, e->inner}, two = 2, one = 1;
    struct tensor *y = first && gate ? tensor_temporary(im, im->node->output[0], "activated",
                                                        sum_type(e->type), 3, all)
                                     : NULL;
    if (!y) return NULL;
    axes_release(im);
    const char *to[3] = {axis_for(im, "t", all[0]), axis_for(im, "e", all[1]),
                         axis_for(im, "i", all[2])},
               *g[3] = {to[0], to[1], to[2]}, *l[3] = {to[0], to[1], to[2]};
    if (e->fusion == 1) g[2] = affine_text(im, 1, &two, &to[2], 0);
    if (e->fusion)
        l[2] =
            affine_text(im, 1, e->fusion == 1 ? &two : &one, &to[2], e->fusion == 1 ? 1 : e->inner);
    const char *value = activated(im, e, tensor_element(im, first, g), tensor_element(im, gate, l));
    if (!value) {
        node_fail(im, "'activation_type' is '%s', expected relu, gelu, silu, swiglu or identity",
                  name_shown(im->arena, e->how));
        return NULL;
    }
    emit_statement(im, "%s = %s * %s", tensor_element(im, y, to), value,
                   tensor_element(im, e->share, to));
    return y;
}

bool op_experts(struct import *im) {
    struct experts e = {0};
    bool normalise = false;
    const char *share, *which, *x = inner_name(im, "tokens");
    if (!experts_attributes(im, &e, &normalise) || !bits_attributes(im, &e) ||
        !experts_shapes(im, &e))
        return false;
    struct tensor *in = node_input(im, 0);
    struct inner flat = {.input = {im->node->input[0]}, .ninputs = 1, .output = {x}};
    inner_int(im, &flat, "axis", in->ndims - 1);
    e.x = x;
    if (!inner_lower(im, &flat, "Flatten") || !choose(im, &e, &share, &which) ||
        !shares(im, &e, name_find(&im->value, share), name_find(&im->value, which), normalise) ||
        (e.gathered && !gather(im, &e, which)) || !open_weights(im, &e))
        return false;
    struct tensor *inside = shared(im, &e);
    int64_t all[2] = {e.tokens, e.width};
    struct tensor *sum = inside ? tensor_temporary(im, im->node->output[0], "sum", sum_type(e.type),
                                                   2, all)
                                : NULL,
                  *rows = sum ? tensor_temporary(im, im->node->output[0], "rows", e.type, 2, all)
                              : NULL;
    if (!rows) return false;
    axes_release(im);
    const char *at[4] = {axis_for(im, "t", e.tokens), axis_for(im, "e", e.slots),
                         axis_for(im, "n", e.width), axis_for(im, "i", e.inner)},
               *to[2] = {at[0], at[2]}, *from[3] = {at[0], at[1], at[3]},
               *total = tensor_element(im, sum, to);
    emit_statement(im, "%s = 0", total);
    if (e.part[SECOND][BIAS])
        emit_statement(im, "%s += %s * %s", total, tensor_element(im, e.share, at),
                       own(im, &e, e.part[SECOND][BIAS], at));
    emit_statement(im, "%s += %s * %s", total, tensor_element(im, inside, from),
                   own(im, &e, e.part[SECOND][WEIGHT], at));
    emit_statement(im, "%s = %s", tensor_element(im, rows, to), sum_narrow(im, e.type, total));
    struct tensor *y = node_result(im, e.type, in->ndims, in->extent);
    return y && emit_copy(im, y, rows);
}
#endif
