/* Of com.microsoft: mixtures of experts (MoE). A router chooses k experts for each token, and the
 * result is the weighted sum of what these make of it. With few tokens the weights of the chosen
 * experts are gathered; with more than there are experts, each computes all tokens, and those that
 * it was not chosen for have the weight 0. */
#include "onnx/onnx.h"

#ifdef ISAMAP_WITH_ONNX
#include "onnx/onnx_int.h"

#include <inttypes.h>
#include <string.h>

enum { FIRST, SECOND, GATED, PRODUCTS }; /* the third stands beside the first: a gate */

struct experts {
    const char *x;                   /* the name of [tokens, width] */
    struct tensor *weight[PRODUCTS]; /* [expert or token, chosen; column; row] */
    struct tensor *bias[PRODUCTS];   /* the same without rows, or NULL */
    struct tensor *share;            /* [tokens, slots], f32 */
    int64_t tokens, width, inner, count, k;
    int64_t slots, fusion; /* experts that a token is shown to */
    bool gathered;         /* the chosen ones, else all */
    const char *how;
    double alpha, beta, limit;
    bool limited;
    enum type type;
};

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
    *normalise = norm != 0;
    return true;
}

static bool experts_shapes(struct import *im, struct experts *e) {
    struct tensor *x = node_input(im, 0), *router = node_input(im, 1);
    e->type = x->type;
    e->width = x->ndims ? x->extent[x->ndims - 1] : 0;
    for (int p = 0; p < PRODUCTS; p++) {
        e->weight[p] = node_input(im, 2 + 2 * p);
        e->bias[p] = node_input(im, 3 + 2 * p);
    }
    struct tensor *last = e->weight[SECOND];
    bool gated = strcmp(e->how, "swiglu") == 0, fits = type_is_float(x->type) && x->ndims >= 2 &&
                                                       x->elements && router->ndims == 2 && last &&
                                                       last->ndims == 3;
    if (!fits || (gated && !e->fusion) != !!e->weight[GATED])
        return node_fail(im, "its inputs do not fit each other, or 'activation_type'");
    e->tokens = x->elements / e->width;
    e->count = router->extent[1];
    e->inner = last->extent[2];
    for (int p = 0; p < PRODUCTS; p++) {
        int64_t rows = p == SECOND ? e->inner : e->width,
                columns = p == SECOND ? e->width : e->inner * (p == FIRST && e->fusion ? 2 : 1);
        const struct tensor *w = e->weight[p], *b = e->bias[p];
        if (!w && !b) continue;
        if (!w || w->type != e->type || w->ndims != 3 || w->extent[0] != e->count ||
            w->extent[1] != columns || w->extent[2] != rows ||
            (b && (b->type != e->type || b->ndims != 2 || b->extent[0] != e->count ||
                   b->extent[1] != columns)))
            return node_fail(im, "weights or bias %d do not fit", p + 1);
    }
    if (router->extent[0] != e->tokens || !type_is_float(router->type) || e->k < 1 ||
        e->k > e->count || e->tokens > MAX_COUNT / e->count)
        return node_fail(im,
                         "%" PRId64 " of the experts %s cannot be chosen for %" PRId64 " tokens",
                         e->k, shape_text(im->arena, router->ndims, router->extent), e->tokens);
    e->gathered = e->tokens * e->k < e->count;
    e->slots = e->gathered ? e->k : e->count;
    return true;
}

/* Shares of the chosen experts and which they are: [tokens, k]. */
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
    return inner_lower(im, &top, "TopK");
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

/* Weights and biases of the chosen experts alone, [token, chosen, ...]. */
static bool gather(struct import *im, struct experts *e, const char *which) {
    for (int p = 0; p < 2 * PRODUCTS; p++) {
        struct tensor **t = p % 2 ? &e->bias[p / 2] : &e->weight[p / 2];
        if (!*t) continue;
        const char *rows = inner_name(im, "chosen");
        if (!inner_node(im, "Gather", im->node->input[2 + p], which, rows)) return false;
        *t = name_find(&im->value, rows);
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
    emit_statement(im, "%s = %s", sum, e->bias[p] ? own(im, e, e->bias[p], index) : "0");
    emit_statement(im, "%s += %s * %s", sum, sum_widen(im, e->type, tensor_element(im, x, from)),
                   own(im, e, e->weight[p], index));
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
                  *gate = e->weight[GATED] ? opened(im, e, GATED, "beside") : first;
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
    if (!experts_attributes(im, &e, &normalise) || !experts_shapes(im, &e)) return false;
    struct tensor *in = node_input(im, 0);
    struct inner flat = {.input = {im->node->input[0]}, .ninputs = 1, .output = {x}};
    inner_int(im, &flat, "axis", in->ndims - 1);
    e.x = x;
    if (!inner_lower(im, &flat, "Flatten") || !choose(im, &e, &share, &which) ||
        !shares(im, &e, name_find(&im->value, share), name_find(&im->value, which), normalise) ||
        (e.gathered && !gather(im, &e, which)))
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
    if (e.bias[SECOND])
        emit_statement(im, "%s += %s * %s", total, tensor_element(im, e.share, at),
                       own(im, &e, e.bias[SECOND], at));
    emit_statement(im, "%s += %s * %s", total, tensor_element(im, inside, from),
                   own(im, &e, e.weight[SECOND], at));
    emit_statement(im, "%s = %s", tensor_element(im, rows, to), sum_narrow(im, e.type, total));
    struct tensor *y = node_result(im, e.type, in->ndims, in->extent);
    return y && emit_copy(im, y, rows);
}
#endif
