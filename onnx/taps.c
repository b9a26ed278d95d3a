/* A tap is looked at by comparing its number with all places (op_gather.c), which a fallback needs
 * not do (ir/pick.h). */
#include "onnx/taps.h"

#include "onnx/onnx.h"

#ifdef ISAMAP_WITH_ONNX
#include "onnx/onnx_int.h"

bool taps_add(struct import *im, struct taps *t, int d, const char *base, enum type type, int ndims,
              const int64_t *extent, const char *const *index, const char *at, const char *weight) {
    struct tensor *place = tensor_temporary(im, base, "tap", TYPE_I64, ndims, extent),
                  *counts =
                      place ? tensor_temporary(im, base, "counts", type, ndims, extent) : NULL;
    if (!counts) return false;
    int k = t->count[d]++;
    t->at[d][k] = tensor_element(im, place, index);
    t->weight[d][k] = tensor_element(im, counts, index);
    emit_statement(im, "%s = i64(%s)", t->at[d][k], at);
    emit_statement(im, "%s = %s", t->weight[d][k], weight);
    return true;
}

/* The condition that x is looked at with these taps, and the product of their weights and x. */
static void one_of(struct import *im, const struct taps *t, const int *k, struct tensor *x,
                   const char *const *from, const char *where, struct text *condition,
                   struct text *product) {
    condition->n = product->n = 0;
    if (where) text_printf(condition, "%s", where);
    for (int d = 0; d < t->n; d++) {
        text_printf(condition, "%s%s == i64(%s)", condition->n ? " & " : "", t->at[d][k[d]],
                    from[x->ndims - t->n + d]);
        text_printf(product, "%s * ", t->weight[d][k[d]]);
    }
    text_printf(product, "%s", tensor_element(im, x, from));
}

static bool step(const struct taps *t, int *k) {
    for (int d = t->n - 1; d >= 0; d--) {
        if (++k[d] < t->count[d]) return true;
        k[d] = 0;
    }
    return false;
}

void taps_sum(struct import *im, const struct taps *t, const char *to, struct tensor *x,
              const char *const *from, const char *where, const char *factor) {
    struct text condition = {0}, product = {0};
    int k[SPATIAL] = {0};
    do {
        one_of(im, t, k, x, from, where, &condition, &product);
        emit_statement(im, "%s += select(%s, %s%s%s, 0)", to, condition.at, factor ? factor : "",
                       factor ? " * " : "", product.at);
    } while (step(t, k));
    text_free(&condition);
    text_free(&product);
}

void taps_max(struct import *im, const struct taps *t, const char *to, struct tensor *x,
              const char *const *from, const char *where) {
    struct text condition = {0}, product = {0};
    int k[SPATIAL] = {0};
    do {
        one_of(im, t, k, x, from, where, &condition, &product);
        emit_statement(im, "%s max= select(%s, %s, %s)", to, condition.at, product.at, to);
    } while (step(t, k));
    text_free(&condition);
    text_free(&product);
}
#endif
