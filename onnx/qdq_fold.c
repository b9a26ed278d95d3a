/* Operators behind an operator on integers: its result was quantised, dequantised, normalised or
 * limited, and quantised again. The operator gives the last of these itself: its scales and an
 * offset take the normalisation in, its limits what Relu and Clip do, and the quantiser between
 * ends. */
#include "onnx/onnx.h"

#ifdef ISAMAP_WITH_ONNX
#include "onnx/qdq_int.h"

#include <math.h>
#include <string.h>

struct line { /* factor[k] * x + offset[k], by channel */
    int64_t n;
    double *factor, *offset;
};

static double number(const struct tensor *t, int64_t i) {
    return tensor_float(t, t->elements == 1 ? 0 : i);
}

/* n numbers, known as they are or by their integers. */
static bool numbers(struct qdq *q, const char *name, int64_t n, double *out) {
    const struct tensor *t = qdq_known_of(q, name);
    struct link l;
    if (t && t->elements == n && type_is_float(t->type)) {
        for (int64_t i = 0; i < n; i++) out[i] = tensor_float(t, i);
        return true;
    }
    if (t || !qdq_dequantised(q, name, &l)) return false;
    t = qdq_known_of(q, l.integers);
    if (!t || t->elements != n || (l.scales->elements != 1 && l.scales->elements != n))
        return false;
    for (int64_t i = 0; i < n; i++) {
        int64_t zero = l.zeros ? tensor_int(l.zeros, l.zeros->elements == 1 ? 0 : i) : 0;
        out[i] = (double)(tensor_int(t, i) - zero) * number(l.scales, i);
    }
    return true;
}

static bool line_of(struct qdq *q, const Onnx__NodeProto *norm, int64_t n, struct line *l) {
    struct arena *a = q->im->arena;
    double *given[4];
    *l = (struct line){n, arena_array(a, (size_t)n, sizeof(double)),
                       arena_array(a, (size_t)n, sizeof(double))};
    for (int64_t k = 0; k < n; k++) l->factor[k] = 1;
    if (!norm) return true;
    const Onnx__AttributeProto *training = qdq_attribute_of(norm, "training_mode"),
                               *epsilon = qdq_attribute_of(norm, "epsilon");
    if (norm->n_output != 1 || (training && training->i)) return false;
    for (int k = 0; k < 4; k++) {
        given[k] = arena_array(a, (size_t)n, sizeof **given);
        if (!numbers(q, qdq_input_of(norm, (size_t)k + 1), n, given[k])) return false;
    }
    for (int64_t k = 0; k < n; k++) {
        double variance = given[3][k] + (epsilon ? (double)epsilon->f : 1e-5);
        l->factor[k] = given[0][k] / sqrt(variance);
        l->offset[k] = given[1][k] - given[2][k] * l->factor[k];
    }
    return true;
}

static int64_t outputs_of(const struct qdq *q, const Onnx__NodeProto *conv) {
    const struct tensor *w = name_find(&q->im->value, qdq_input_of(conv, 3));
    return w && w->ndims > 0 ? w->extent[0] : 0;
}

/* A constant with one dimension, even of one element. */
static const char *vector(struct qdq *q, const char *base, const char *suffix, enum type t,
                          int64_t n, const void *data) {
    const char *name = qdq_new_constant(q, base, suffix, t, n, data);
    ((struct tensor *)name_find(&q->im->value, name))->ndims = 1;
    return name;
}

static void put_text(struct qdq *q, Onnx__NodeProto *n, const char *name, const char *text) {
    Onnx__AttributeProto *a = arena_alloc(q->im->arena, sizeof *a);
    onnx__attribute_proto__init(a);
    a->name = arena_strdup(q->im->arena, name);
    a->has_type = true;
    a->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING;
    a->has_s = true;
    a->s.data = (uint8_t *)arena_strdup(q->im->arena, text);
    a->s.len = strlen(text);
    n->attribute[n->n_attribute++] = a;
}

Onnx__NodeProto *qdq_on_line(struct qdq *q, const Onnx__NodeProto *conv,
                             const struct chain_end *e) {
    struct line l;
    int64_t n = outputs_of(q, conv);
    const char *in[9] = {NULL}, *out = conv->output[0];
    const struct tensor *w = qdq_known_of(q, qdq_input_of(conv, 4));
    float *scale = arena_array(q->im->arena, (size_t)n + 1, sizeof *scale);
    if (n < 1 || !w || (w->elements != 1 && w->elements != n) || conv->n_input > 9 ||
        qdq_attribute_of(conv, ATTRIBUTE_OFFSET) || !line_of(q, e->line, n, &l))
        return NULL;
    for (int64_t k = 0; k < n; k++) {
        scale[k] = (float)(number(w, k) * l.factor[k]);
        if (!(scale[k] > 0) || isinf(scale[k]) || !isfinite(l.offset[k])) return NULL;
    }
    for (size_t k = 0; k < conv->n_input; k++) in[k] = qdq_input_of(conv, k);
    in[4] = vector(q, out, "scales", TYPE_F32, n, scale);
    Onnx__NodeProto *made =
        qdq_new_node(q, conv, "QLinearConv", false, (int)conv->n_input, in, out);
    put_text(q, made, ATTRIBUTE_OFFSET, vector(q, out, "offset", TYPE_F64, n, l.offset));
    return made;
}

/* The same operator with another scale and zero point of the result, inputs `at` and at + 1. */
static Onnx__NodeProto *in_steps(struct qdq *q, const Onnx__NodeProto *n, const struct chain_end *e,
                                 size_t at, const char *out) {
    const char *in[9] = {NULL};
    size_t count = n->n_input < at + 2 ? at + 2 : n->n_input;
    for (size_t k = 0; k < count && k < 9; k++) in[k] = qdq_input_of(n, k);
    in[at] = e->y.scale;
    in[at + 1] = qdq_zero_of(q, &e->y, out);
    return qdq_new_node(q, n, n->op_type, n->domain && n->domain[0], (int)count, in, out);
}

static int64_t zero_of(const struct link *x) {
    return x->zeros ? tensor_int(x->zeros, 0) : 0;
}

/* The limits of the operator's own result hold for the chain's, in its steps. Those of its type are
 * among them: where exporters leave out Relu and Clip, the quantiser is what limits. */
static void narrow(const Onnx__NodeProto *n, const struct link *x, struct chain_end *e) {
    double step = tensor_float(x->scales, 0);
    int64_t least = qdq_integer_of(n, ATTRIBUTE_LEAST, qdq_lowest(x)),
            most = qdq_integer_of(n, ATTRIBUTE_MOST, qdq_highest(x)), zero = zero_of(x);
    qdq_limit(e, (double)(least - zero) * step, (double)(most - zero) * step);
}

/* Limits cannot be told from a type's; one that begins with 0 is taken for Relu. */
static bool is_limited(const Onnx__NodeProto *n, const struct link *x) {
    return qdq_attribute_of(n, ATTRIBUTE_LEAST) || qdq_attribute_of(n, ATTRIBUTE_MOST) ||
           zero_of(x) == qdq_lowest(x);
}

/* The maker of the integers x, which nothing else reads, in the steps of the chain's end. */
static Onnx__NodeProto *remade(struct qdq *q, const struct link *x, struct chain_end *e,
                               const char *out) {
    const Onnx__NodeProto *n = qdq_maker_of(q, x->integers);
    bool add = n && qdq_is(n, "QLinearAdd") && x->type == e->y.type;
    if (!n || n->n_input > 9 || qdq_used(q, x->integers) > 1 ||
        !(add || qdq_is(n, "QLinearConv")) || (e->line && (add || is_limited(n, x))))
        return NULL;
    if (!e->line) narrow(n, x, e);
    Onnx__NodeProto *made = in_steps(q, n, e, 6, out);
    qdq_drop_attribute(made, ATTRIBUTE_LEAST);
    qdq_drop_attribute(made, ATTRIBUTE_MOST);
    return e->line ? qdq_on_line(q, made, e) : made;
}

Onnx__NodeProto *qdq_behind(struct qdq *q, struct chain_end *e, const char *out) {
    struct link x;
    if (!qdq_is(e->op, "DequantizeLinear") || !qdq_dequantised(q, e->op->output[0], &x) ||
        !qdq_one_step(&x))
        return NULL;
    return remade(q, &x, e, out);
}

static bool known_link(struct qdq *q, const Onnx__NodeProto *n, size_t at, const char *integers,
                       struct link *l) {
    *l = (struct link){
        .integers = integers, .scale = qdq_input_of(n, at), .zero = qdq_input_of(n, at + 1)};
    l->scales = qdq_known_of(q, l->scale);
    l->zeros = qdq_known_of(q, l->zero);
    if (!l->scales || l->scales->elements != 1 || !l->zeros || l->zeros->elements != 1)
        return false;
    l->type = l->zeros->type;
    return integers != NULL;
}

Onnx__NodeProto *qdq_part_of(struct qdq *q, const Onnx__NodeProto *concat, size_t k,
                             const char *out, struct chain_end *e) {
    struct link x;
    if (!known_link(q, concat, 0, concat->output[0], &e->y) ||
        !known_link(q, concat, k + 1, qdq_input_of(concat, k), &x) || x.type != e->y.type)
        return NULL;
    bool same = tensor_float(x.scales, 0) == tensor_float(e->y.scales, 0) &&
                tensor_int(x.zeros, 0) == tensor_int(e->y.zeros, 0);
    e->line = NULL;
    qdq_unlimited(e);
    return same ? NULL : remade(q, &x, e, out);
}

/* The same known elements, in bytes and in this shape. */
static const char *same_elements(struct qdq *q, const struct tensor *t, const char *base, int ndims,
                                 const int64_t *extent) {
    const char *name = qdq_new_constant(q, base, "table", t->type, t->elements, t->data);
    struct tensor *made = name_find(&q->im->value, name);
    made->ndims = ndims;
    memcpy(made->extent, extent, (size_t)ndims * sizeof *extent);
    return name;
}

/* Rows of it. */
static const char *rows_of(struct qdq *q, const Onnx__NodeProto *gather, const char *table) {
    const char *in[2] = {table, gather->input[1]};
    Onnx__NodeProto *n =
        qdq_new_node(q, gather, "Gather", false, 2, in, qdq_new_name(q, table, "rows"));
    qdq_push(q, n);
    return n->output[0];
}

/* How the table's scales lie: in blocks along its rows, one for each column, or one for each row,
 * which then is a block. False: otherwise. */
static bool scales_of_rows(const struct tensor *t, const struct tensor *scale, int64_t axis,
                           int64_t *block) {
    if (*block) return axis == 1 && scale->ndims == 2;
    if (scale->ndims != 1 || scale->elements != t->extent[axis]) return false;
    if (axis == 0) *block = t->extent[1];
    return true;
}

/* Rows of a table of weights, an embedding: of its integers, which are dequantised then. */
bool qdq_rows_first(struct qdq *q, const Onnx__NodeProto *gather) {
    const char *table = qdq_is(gather, "Gather") ? qdq_input_of(gather, 0) : NULL;
    const Onnx__NodeProto *dq = table ? qdq_maker_of(q, table) : NULL;
    if (!qdq_is(dq, "DequantizeLinear") || !qdq_input_of(gather, 1)) return false;
    const char *zero = qdq_input_of(dq, 2), *in[3];
    const struct tensor *t = qdq_known_of(q, qdq_input_of(dq, 0)),
                        *s = qdq_known_of(q, qdq_input_of(dq, 1)), *z = qdq_known_of(q, zero);
    int64_t block = qdq_integer_of(dq, "block_size", 0), axis = qdq_integer_of(dq, "axis", 1),
            along = qdq_integer_of(gather, "axis", 0);
    if (!t || !s || (zero && !z) || t->ndims != 2 || !qdq_eight_bits(t->type) || along % 2 != 0 ||
        axis < -2 || axis > 1 || !scales_of_rows(t, s, axis & 1, &block) ||
        (z && z->elements != s->elements))
        return false;
    int64_t extent[2] = {t->extent[0], s->elements / t->extent[0]};
    const char *out = gather->output[0];
    in[0] = rows_of(q, gather, same_elements(q, t, out, 2, t->extent));
    in[1] = block ? rows_of(q, gather, same_elements(q, s, out, 2, extent)) : dq->input[1];
    in[2] = !z      ? NULL
            : block ? rows_of(q, gather, same_elements(q, z, out, 2, extent))
                    : same_elements(q, z, out, 1, z->extent);
    Onnx__NodeProto *n = qdq_new_node(q, dq, "DequantizeLinear", false, z ? 3 : 2, in, out);
    n->n_attribute = 0;
    qdq_put_integer(q, n, "axis", -1);
    if (block) qdq_put_integer(q, n, "block_size", block);
    qdq_push(q, n);
    return true;
}
#endif
