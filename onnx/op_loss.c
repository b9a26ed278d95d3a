/* Losses: the negated logarithms of probabilities at the labels, weighted, and their mean or sum.
 */
#include "onnx/onnx.h"

#ifdef ISAMAP_WITH_ONNX
#include "onnx/onnx_int.h"

#include <inttypes.h>
#include <string.h>

/* scores [N, C, d…], labels [N, d…], weights [C] or NULL */
struct loss {
    struct tensor *scores, *labels, *weights;
    bool ignores;
    int64_t ignored; /* labels of this value do not count */
    const char *reduction;
    const char *index[MAX_DIMS], *at[MAX_DIMS]; /* of the scores, of the labels */
};

static bool loss_read(struct import *im, struct loss *l) {
    *l =
        (struct loss){node_input(im, 0), node_input(im, 1), node_input(im, 2), .reduction = "mean"};
    l->ignores = attribute_find(im, "ignore_index") != NULL;
    if (!attribute_int(im, "ignore_index", &l->ignored) ||
        !attribute_string(im, "reduction", &l->reduction))
        return false;
    if (strcmp(l->reduction, "mean") && strcmp(l->reduction, "sum") && strcmp(l->reduction, "none"))
        return node_fail(im, "'reduction' is '%s', expected none, mean or sum",
                         name_shown(im->arena, l->reduction));
    const struct tensor *x = l->scores, *t = l->labels, *w = l->weights;
    if (!type_is_float(x->type) || x->ndims < 2)
        return node_fail(im, "the input is not a tensor of floats with a batch and classes");
    bool fits = t->ndims == x->ndims - 1 && (t->type == TYPE_I32 || t->type == TYPE_I64);
    for (int d = 0; fits && d < t->ndims; d++) fits = t->extent[d] == x->extent[d + (d > 0)];
    if (!fits)
        return node_fail(im, "labels %s of %s do not fit the input %s",
                         shape_text(im->arena, t->ndims, t->extent), type_name(t->type),
                         shape_text(im->arena, x->ndims, x->extent));
    if (w && (w->ndims != 1 || w->extent[0] != x->extent[1] || w->type != x->type))
        return node_fail(im, "the weights are not a vector of %" PRId64 " elements of %s",
                         x->extent[1], type_name(x->type));
    return true;
}

static void loss_axes(struct import *im, struct loss *l) {
    axes_release(im);
    axes_for(im, l->scores->ndims, l->scores->extent, l->index);
    for (int d = 0; d < l->labels->ndims; d++) l->at[d] = l->index[d + (d > 0)];
}

/* Text of `value` where the class of l->index is the label, and the label counts; else 0. */
static const char *at_label(struct import *im, const struct loss *l, const char *value) {
    const char *label = tensor_element(im, l->labels, l->at), *t = type_name(l->labels->type);
    const char *here = arena_printf(im->arena, "%s == %s(%s)", label, t, l->index[1]);
    if (l->ignores) here = arena_printf(im->arena, "%s & %s != %" PRId64, here, label, l->ignored);
    return arena_printf(im->arena, "select(%s, %s, 0)", here, value);
}

/* y = the loss of `logs`, the logarithms of probabilities, kept in the type of sums */
static bool loss_emit(struct import *im, struct loss *l, struct tensor *logs) {
    enum type result = l->scores->type, type = sum_type(result);
    bool none = strcmp(l->reduction, "none") == 0, mean = strcmp(l->reduction, "mean") == 0;
    const struct tensor *t = l->labels;
    struct tensor *y = node_result_at(im, 0, result, none ? t->ndims : 0, t->extent);
    struct tensor *sum =
        y ? tensor_temporary(im, y->buffer, "sum", type, y->ndims, y->extent) : NULL;
    struct tensor *count =
        sum && mean ? tensor_temporary(im, y->buffer, "count", type, 0, NULL) : NULL;
    if (!sum || (mean && !count)) return false;
    loss_axes(im, l);
    const char *value = sum_widen(im, result, tensor_element(im, logs, l->index));
    const char *weight = "1";
    if (l->weights) {
        weight = sum_widen(im, result, tensor_element(im, l->weights, &l->index[1]));
        value = arena_printf(im->arena, "%s * %s", value, weight);
    }
    const char *to = tensor_element(im, sum, l->at);
    emit_statement(im, "%s = 0", to);
    emit_statement(im, "%s += %s", to, at_label(im, l, arena_printf(im->arena, "-(%s)", value)));
    if (mean) {
        const char *n = tensor_element(im, count, NULL);
        emit_statement(im, "%s = 0", n);
        emit_statement(im, "%s += %s", n, at_label(im, l, weight));
        to = arena_printf(im->arena, "%s / %s", to, n);
    }
    emit_statement(im, "%s = %s", tensor_element(im, y, l->at), sum_narrow(im, result, to));
    return true;
}

bool op_nll_loss(struct import *im) {
    struct loss l;
    if (!loss_read(im, &l)) return false;
    return loss_emit(im, &l, l.scores);
}

/* logs = x − max − log Σ exp(x − max) over the classes */
bool op_softmax_cross_entropy(struct import *im) {
    struct loss l;
    int64_t extent[MAX_DIMS];
    const char *kept[MAX_DIMS];
    if (!loss_read(im, &l)) return false;
    struct tensor *x = l.scores;
    enum type type = sum_type(x->type);
    memcpy(extent, x->extent, sizeof extent);
    extent[1] = 1;
    const char *base = im->node->output[0];
    struct tensor *logs = tensor_temporary(im, base, "log", type, x->ndims, x->extent);
    struct tensor *most = logs ? tensor_temporary(im, base, "max", type, x->ndims, extent) : NULL;
    struct tensor *sum = most ? tensor_temporary(im, base, "exps", type, x->ndims, extent) : NULL;
    if (!sum) return false;
    loss_axes(im, &l);
    memcpy(kept, l.index, sizeof kept);
    kept[1] = "0";
    const char *e = sum_widen(im, x->type, tensor_element(im, x, l.index));
    const char *m = tensor_element(im, most, kept), *s = tensor_element(im, sum, kept);
    emit_statement(im, "%s = -inf", m);
    emit_statement(im, "%s max= %s", m, e);
    emit_statement(im, "%s = 0", s);
    emit_statement(im, "%s += exp(%s - %s)", s, e, m);
    emit_statement(im, "%s = %s - %s - log(%s)", tensor_element(im, logs, l.index), e, m, s);
    if (node_wants(im, 1)) {
        struct tensor *out = node_result_at(im, 1, x->type, x->ndims, x->extent);
        if (!out) return false;
        emit_statement(im, "%s = %s", tensor_element(im, out, l.index),
                       sum_narrow(im, x->type, tensor_element(im, logs, l.index)));
    }
    return loss_emit(im, &l, logs);
}
#endif
