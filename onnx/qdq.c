/* QDQ graphs, the form in which quantised models are exported: DequantizeLinear, an operator on
 * floats, QuantizeLinear. Where scales and zero points are known, the operator becomes the one on
 * integers (QLinearConv and its relatives), whose result differs by at most a step of the result's
 * quantiser: the sums are exact instead of rounded, and the bias is rounded to a step of the sums.
 * The graph is rewritten before it is lowered; nodes that nothing reads any more fall out. */
#include "onnx/onnx.h"

#ifdef ISAMAP_WITH_ONNX
#include "onnx/onnx_int.h"

#include <math.h>
#include <string.h>

struct qdq {
    struct import *im;
    Onnx__GraphProto *g;     /* what is made */
    struct name_table maker; /* name of a value -> its node */
    struct name_table uses;  /* name of a value -> how often it is read, an int */
    int changed;
};

/* ---- what is known of the graph ---- */

static Onnx__NodeProto *maker_of(const struct qdq *q, const char *name) {
    return name_find(&q->maker, name);
}

static bool is(const Onnx__NodeProto *n, const char *op) {
    return n && n->op_type && strcmp(n->op_type, op) == 0 &&
           (standard_domain(n->domain) || strcmp(n->domain, "com.microsoft") == 0);
}

static const char *input_of(const Onnx__NodeProto *n, size_t k) {
    return k < n->n_input && n->input[k][0] ? n->input[k] : NULL;
}

static const Onnx__AttributeProto *attribute_of(const Onnx__NodeProto *n, const char *name) {
    for (size_t i = 0; i < n->n_attribute; i++)
        if (n->attribute[i]->name && strcmp(n->attribute[i]->name, name) == 0)
            return n->attribute[i];
    return NULL;
}

static int64_t integer_of(const Onnx__NodeProto *n, const char *name, int64_t preset) {
    const Onnx__AttributeProto *a = attribute_of(n, name);
    return a && a->has_i ? a->i : preset;
}

/* A scale or zero point, given as an initialiser or by a node Constant; NULL: not known. */
static const struct tensor *known_of(const struct qdq *q, const char *name) {
    const struct tensor *t = name ? name_find(&q->im->value, name) : NULL;
    if (t && t->data) return t;
    const Onnx__NodeProto *n = name ? maker_of(q, name) : NULL;
    if (is(n, "Identity")) return known_of(q, input_of(n, 0));
    const Onnx__AttributeProto *a = is(n, "Constant") ? attribute_of(n, "value") : NULL;
    struct tensor *c = arena_alloc(q->im->arena, sizeof *c);
    struct diags quiet; /* what is wrong with it is told when the node is lowered */
    diags_init(&quiet);
    bool ok = a && a->t && tensor_from_proto(q->im->arena, q->im->path, "", a->t, c, &quiet);
    diags_free(&quiet);
    return ok ? c : NULL;
}

static int used(const struct qdq *q, const char *name) {
    const int *n = name_find(&q->uses, name);
    return n ? *n : 0;
}

static bool eight_bits(enum type t) {
    return t == TYPE_I8 || t == TYPE_U8;
}

/* ---- links: a value with its integers, scale and zero point ---- */

struct link {
    const char *integers, *scale, *zero; /* names of values */
    const struct tensor *scales, *zeros; /* known; zeros NULL where there is no zero point */
    enum type type;                      /* of the integers */
    int64_t axis;
};

static bool link_known(const struct qdq *q, const Onnx__NodeProto *n, struct link *l) {
    *l = (struct link){input_of(n, 0), input_of(n, 1), input_of(n, 2), .type = TYPE_U8,
                       .axis = integer_of(n, "axis", 1)};
    l->scales = known_of(q, l->scale);
    l->zeros = known_of(q, l->zero);
    if (!l->integers || !l->scales || l->scales->type != TYPE_F32 || (l->zero && !l->zeros) ||
        integer_of(n, "block_size", 0))
        return false;
    for (int64_t i = 0; i < l->scales->elements; i++)
        if (!(tensor_float(l->scales, i) > 0) || isinf(tensor_float(l->scales, i))) return false;
    if (l->zeros) l->type = l->zeros->type;
    return !l->zeros || l->zeros->elements == l->scales->elements;
}

/* The value `name` is dequantised from 8-bit integers (or i32, a bias). */
static bool dequantised(const struct qdq *q, const char *name, struct link *l) {
    const Onnx__NodeProto *n = name ? maker_of(q, name) : NULL;
    if (!is(n, "DequantizeLinear") || !link_known(q, n, l)) return false;
    const struct tensor *t = name_find(&q->im->value, l->integers);
    const Onnx__NodeProto *by = maker_of(q, l->integers);
    if (t) l->type = t->type;
    if (t || l->zeros) return true;
    const struct tensor *zeros = is(by, "QuantizeLinear") ? known_of(q, input_of(by, 2)) : NULL;
    if (zeros) l->type = zeros->type; /* without a zero point the maker tells the type */
    return is(by, "QuantizeLinear");
}

static bool one_step(const struct link *l) {
    return l->scales->elements == 1 && eight_bits(l->type);
}

/* ---- new nodes and constants ---- */

static const char *new_name(struct qdq *q, const char *base, const char *suffix) {
    const char *name = arena_printf(q->im->arena, "%s_%s", base, suffix);
    for (int k = 1; name_find(&q->im->value, name) || maker_of(q, name) || used(q, name); k++)
        name = arena_printf(q->im->arena, "%s_%s_%d", base, suffix, k);
    return name;
}

static const char *new_constant(struct qdq *q, const char *base, const char *suffix, enum type type,
                                int64_t n, const void *data) {
    struct tensor *t = arena_alloc(q->im->arena, sizeof *t);
    *t = (struct tensor){
        .name = new_name(q, base, suffix), .type = type, .elements = n, .data = data};
    t->ndims = n > 1;
    t->extent[0] = n;
    t->buffer = name_unique(q->im, t->name);
    name_put(q->im->arena, &q->im->value, t->name, t);
    return t->name;
}

/* The zero point of a link, made where it has none. */
static const char *zero_of(struct qdq *q, const struct link *l, const char *base) {
    static const int64_t none;
    return l->zero ? l->zero : new_constant(q, base, "zero", l->type, 1, &none);
}

static Onnx__NodeProto *new_node(struct qdq *q, const Onnx__NodeProto *from, const char *op,
                                 bool microsoft, int ninputs, const char *const *input,
                                 const char *output) {
    Onnx__NodeProto *n = arena_alloc(q->im->arena, sizeof *n);
    onnx__node_proto__init(n);
    n->name = from->name;
    n->op_type = arena_strdup(q->im->arena, op);
    n->domain = microsoft ? "com.microsoft" : "";
    n->n_input = (size_t)ninputs;
    n->input = arena_array(q->im->arena, (size_t)ninputs, sizeof *n->input);
    for (int k = 0; k < ninputs; k++) n->input[k] = (char *)(input[k] ? input[k] : "");
    n->n_output = 1;
    n->output = arena_array(q->im->arena, 1, sizeof *n->output);
    n->output[0] = (char *)output;
    n->n_attribute = from->n_attribute;
    n->attribute = arena_array(q->im->arena, from->n_attribute + 2, sizeof *n->attribute);
    if (from->n_attribute)
        memcpy(n->attribute, from->attribute, from->n_attribute * sizeof *n->attribute);
    return n;
}

static void put_integer(struct qdq *q, Onnx__NodeProto *n, const char *name, int64_t v) {
    Onnx__AttributeProto *a = arena_alloc(q->im->arena, sizeof *a);
    onnx__attribute_proto__init(a);
    a->name = arena_strdup(q->im->arena, name);
    a->has_i = true;
    a->i = v;
    n->attribute[n->n_attribute++] = a;
}

static void drop_attribute(Onnx__NodeProto *n, const char *name) {
    size_t kept = 0;
    for (size_t i = 0; i < n->n_attribute; i++)
        if (strcmp(n->attribute[i]->name ? n->attribute[i]->name : "", name) != 0)
            n->attribute[kept++] = n->attribute[i];
    n->n_attribute = kept;
}

/* ---- the chain that ends in QuantizeLinear ---- */

struct chain_end {
    struct link y;
    const Onnx__NodeProto *op; /* the operator before it, Relu and Clip left out */
    int64_t least, most;       /* of the integers, by the type and what was left out */
};

static int64_t step_at(const struct chain_end *e, double v) {
    double zero = e->y.zeros ? (double)tensor_int(e->y.zeros, 0) : 0;
    double at = rint(v / tensor_float(e->y.scales, 0)) + zero;
    return (int64_t)(at < (double)e->least  ? (double)e->least
                     : at > (double)e->most ? (double)e->most
                                            : at);
}

/* Clip's limits as numbers; false: not known. */
static bool clip_limits(const struct qdq *q, const Onnx__NodeProto *n, double *lo, double *hi) {
    static const char *const name[2] = {"min", "max"};
    double *to[2] = {lo, hi};
    *lo = -INFINITY, *hi = INFINITY;
    for (int k = 0; k < 2; k++) {
        const Onnx__AttributeProto *a = attribute_of(n, name[k]);
        const char *given = input_of(n, (size_t)k + 1);
        const struct tensor *t = known_of(q, given);
        if (given && (!t || t->elements != 1)) return false;
        if (t) *to[k] = tensor_float(t, 0);
        if (!given && a && a->has_f) *to[k] = (double)a->f;
    }
    return *lo <= *hi;
}

static bool chain_read(const struct qdq *q, const Onnx__NodeProto *end, struct chain_end *e) {
    double lo, hi;
    if (!link_known(q, end, &e->y) || !one_step(&e->y)) return false;
    e->least = e->y.type == TYPE_I8 ? -128 : 0;
    e->most = e->y.type == TYPE_I8 ? 127 : 255;
    e->op = maker_of(q, e->y.integers);
    for (const char *at = e->y.integers; e->op; at = input_of(e->op, 0), e->op = maker_of(q, at)) {
        bool relu = is(e->op, "Relu");
        if (!at || used(q, at) != 1) return false;
        if (!relu && !is(e->op, "Clip")) return true;
        if (!input_of(e->op, 0) || !maker_of(q, input_of(e->op, 0))) return false;
        if (relu)
            lo = 0, hi = INFINITY;
        else if (!clip_limits(q, e->op, &lo, &hi))
            return false;
        int64_t least = step_at(e, lo), most = step_at(e, hi);
        e->least = least, e->most = most;
    }
    return false;
}

static bool limited(const struct chain_end *e) {
    return e->least > (e->y.type == TYPE_I8 ? -128 : 0) ||
           e->most < (e->y.type == TYPE_I8 ? 127 : 255);
}

/* ---- products ---- */

/* The bias in steps of the sums, i32; *out NULL: none. False: not known, or a step is too coarse.
 */
static bool bias_steps(struct qdq *q, const char *name, const struct link *x, const struct link *w,
                       double y_scale, const char **out) {
    struct link b;
    *out = NULL;
    if (!name) return true;
    const struct tensor *t = known_of(q, name), *integers = NULL;
    bool linked = !t && dequantised(q, name, &b);
    if (linked && b.type == TYPE_I32) integers = name_find(&q->im->value, b.integers);
    if (!t && (!integers || !integers->data)) return false;
    int64_t n = t ? t->elements : integers->elements;
    int32_t *data = arena_array(q->im->arena, (size_t)n, sizeof *data);
    for (int64_t i = 0; i < n; i++) {
        double step =
            tensor_float(x->scales, 0) *
            tensor_float(w->scales, w->scales->elements == 1 ? 0 : i % w->scales->elements);
        double v =
            t ? tensor_float(t, i)
              : (double)(tensor_int(integers, i) -
                         (b.zeros ? tensor_int(b.zeros, b.zeros->elements == 1 ? 0 : i) : 0)) *
                    tensor_float(b.scales, b.scales->elements == 1 ? 0 : i);
        double steps = rint(v / step);
        if (!(fabs(steps) < 1 << 30) || step > 0.25 * y_scale) return false;
        data[i] = (int32_t)steps;
    }
    const char *made = new_constant(q, name, "steps", TYPE_I32, n, data);
    ((struct tensor *)name_find(&q->im->value, made))->ndims = 1;
    *out = made;
    return true;
}

static bool factors(const struct qdq *q, const Onnx__NodeProto *op, struct link *x,
                    struct link *w) {
    return dequantised(q, input_of(op, 0), x) && dequantised(q, input_of(op, 1), w) &&
           one_step(x) && eight_bits(w->type);
}

/* Are there as many scales as the weights have entries along `dimension`, or one? */
static bool scales_along(const struct qdq *q, const struct link *w, int dimension) {
    const struct tensor *t = name_find(&q->im->value, w->integers);
    if (w->scales->elements == 1) return true;
    if (!t || dimension >= t->ndims || dimension < 0) return false;
    int64_t axis = w->axis < 0 ? w->axis + t->ndims : w->axis;
    return axis == dimension && w->scales->elements == t->extent[dimension];
}

static Onnx__NodeProto *convolution(struct qdq *q, const struct chain_end *e, const char *out) {
    struct link x, w;
    const char *bias;
    if (!factors(q, e->op, &x, &w) || !scales_along(q, &w, 0) ||
        !bias_steps(q, input_of(e->op, 2), &x, &w, tensor_float(e->y.scales, 0), &bias))
        return NULL;
    const char *in[9] = {
        x.integers,          x.scale,    zero_of(q, &x, out),    w.integers, w.scale,
        zero_of(q, &w, out), e->y.scale, zero_of(q, &e->y, out), bias};
    return new_node(q, e->op, "QLinearConv", false, bias ? 9 : 8, in, out);
}

/* By columns: w's scales lie along its last dimension, or the first where it is transposed. */
static bool columns(const struct qdq *q, const struct link *w, bool transposed) {
    const struct tensor *t = name_find(&q->im->value, w->integers);
    return t ? scales_along(q, w, transposed ? 0 : t->ndims - 1) : one_step(w);
}

static Onnx__NodeProto *matrix_product(struct qdq *q, const struct chain_end *e, const char *out) {
    struct link x, w;
    if (!factors(q, e->op, &x, &w) || !columns(q, &w, false)) return NULL;
    const char *in[8] = {
        x.integers,          x.scale,    zero_of(q, &x, out),   w.integers, w.scale,
        zero_of(q, &w, out), e->y.scale, zero_of(q, &e->y, out)};
    return new_node(q, e->op, "QLinearMatMul", false, 8, in, out);
}

static bool unscaled(const Onnx__NodeProto *n) {
    static const char *const name[2] = {"alpha", "beta"};
    for (int k = 0; k < 2; k++) {
        const Onnx__AttributeProto *a = attribute_of(n, name[k]);
        if (a && a->f != 1) return false;
    }
    return true;
}

/* Gemm; without a chain's end its result is f32. */
static Onnx__NodeProto *gemm(struct qdq *q, const Onnx__NodeProto *op, const struct chain_end *e,
                             const char *out) {
    struct link x, w;
    const char *bias;
    double y = e ? tensor_float(e->y.scales, 0) : INFINITY;
    if (!unscaled(op) || !factors(q, op, &x, &w) || !columns(q, &w, integer_of(op, "transB", 0)) ||
        !bias_steps(q, input_of(op, 2), &x, &w, y, &bias))
        return NULL;
    const char *in[9] = {x.integers,
                         x.scale,
                         zero_of(q, &x, out),
                         w.integers,
                         w.scale,
                         zero_of(q, &w, out),
                         bias,
                         e ? e->y.scale : NULL,
                         e ? zero_of(q, &e->y, out) : NULL};
    Onnx__NodeProto *n = new_node(q, op, "QGemm", true, e ? 9 : 7, in, out);
    drop_attribute(n, "beta");
    return n;
}

static Onnx__NodeProto *product_to_float(struct qdq *q, const Onnx__NodeProto *op) {
    struct link x, w;
    const char *out = op->output[0];
    if (is(op, "Gemm")) return gemm(q, op, NULL, out);
    if (!factors(q, op, &x, &w) || !columns(q, &w, false)) return NULL;
    const char *in[6] = {x.integers, w.integers,          x.scale,
                         w.scale,    zero_of(q, &x, out), zero_of(q, &w, out)};
    return new_node(q, op, "MatMulIntegerToFloat", true, 6, in, out);
}

/* ---- other operators ---- */

static Onnx__NodeProto *two_operands(struct qdq *q, const struct chain_end *e, const char *op,
                                     const char *out) {
    struct link a, b;
    if (!dequantised(q, input_of(e->op, 0), &a) || !dequantised(q, input_of(e->op, 1), &b) ||
        !one_step(&a) || !one_step(&b) || a.type != e->y.type || b.type != e->y.type)
        return NULL;
    const char *in[8] = {
        a.integers,          a.scale,    zero_of(q, &a, out),   b.integers, b.scale,
        zero_of(q, &b, out), e->y.scale, zero_of(q, &e->y, out)};
    return new_node(q, e->op, op, true, 8, in, out);
}

static Onnx__NodeProto *global_mean(struct qdq *q, const struct chain_end *e, const char *out) {
    struct link x;
    if (!dequantised(q, input_of(e->op, 0), &x) || !one_step(&x) || x.type != e->y.type)
        return NULL;
    const char *in[5] = {x.integers, x.scale, zero_of(q, &x, out), e->y.scale,
                         zero_of(q, &e->y, out)};
    return new_node(q, e->op, "QLinearGlobalAveragePool", true, 5, in, out);
}

static Onnx__NodeProto *concat(struct qdq *q, const struct chain_end *e, const char *out) {
    int n = (int)e->op->n_input;
    const char **in = arena_array(q->im->arena, (size_t)(2 + 3 * n), sizeof *in);
    in[0] = e->y.scale;
    in[1] = zero_of(q, &e->y, out);
    for (int k = 0; k < n; k++) {
        struct link x;
        if (!dequantised(q, input_of(e->op, (size_t)k), &x) || !one_step(&x) || x.type != e->y.type)
            return NULL;
        in[2 + 3 * k] = x.integers, in[3 + 3 * k] = x.scale, in[4 + 3 * k] = zero_of(q, &x, out);
    }
    return new_node(q, e->op, "QLinearConcat", true, 2 + 3 * n, in, out);
}

static bool same_steps(const struct link *a, const struct link *b) {
    return one_step(a) && one_step(b) && a->type == b->type &&
           tensor_float(a->scales, 0) == tensor_float(b->scales, 0) &&
           (a->zeros ? tensor_int(a->zeros, 0) : 0) == (b->zeros ? tensor_int(b->zeros, 0) : 0);
}

/* Operators that move elements or choose among them: the same on the integers. */
static bool moves(const Onnx__NodeProto *n) {
    static const char *const op[] = {
        "Reshape", "Flatten", "Transpose", "Squeeze",  "Unsqueeze",    "Slice",       "Gather",
        "Expand",  "Tile",    "MaxPool",   "Identity", "DepthToSpace", "SpaceToDepth"};
    for (size_t i = 0; i < sizeof op / sizeof *op; i++)
        if (is(n, op[i])) return n->n_output == 1;
    return false;
}

static Onnx__NodeProto *moved(struct qdq *q, const Onnx__NodeProto *op, const struct link *x,
                              const char *out) {
    const char **in = arena_array(q->im->arena, op->n_input, sizeof *in);
    for (size_t k = 0; k < op->n_input; k++) in[k] = k ? op->input[k] : x->integers;
    return new_node(q, op, op->op_type, false, (int)op->n_input, in, out);
}

/* Quantised again in the same steps: the integers themselves. */
static Onnx__NodeProto *again(struct qdq *q, const struct chain_end *e, const char *out) {
    struct link x;
    if (limited(e) || !dequantised(q, e->op->output[0], &x) || !same_steps(&x, &e->y)) return NULL;
    Onnx__NodeProto *n = new_node(q, e->op, "Identity", false, 1, &x.integers, out);
    n->n_attribute = 0;
    return n;
}

static Onnx__NodeProto *of_integers(struct qdq *q, const struct chain_end *e, const char *out) {
    return is(e->op, "Conv")                ? convolution(q, e, out)
           : is(e->op, "MatMul")            ? matrix_product(q, e, out)
           : is(e->op, "Gemm")              ? gemm(q, e->op, e, out)
           : is(e->op, "Add")               ? two_operands(q, e, "QLinearAdd", out)
           : is(e->op, "Mul")               ? two_operands(q, e, "QLinearMul", out)
           : is(e->op, "GlobalAveragePool") ? global_mean(q, e, out)
           : is(e->op, "Concat")            ? concat(q, e, out)
           : is(e->op, "DequantizeLinear")  ? again(q, e, out)
                                            : NULL;
}

/* ---- the graph ---- */

static void count_use(struct qdq *q, const char *name, int by) {
    int *n = name_find(&q->uses, name);
    if (!n) name_put(q->im->arena, &q->uses, name, n = arena_alloc(q->im->arena, sizeof *n));
    *n += by;
}

/* What a branch reads counts twice: it stays as it is. */
static void count_reads(struct qdq *q, const Onnx__GraphProto *g, int by) {
    for (size_t i = 0; i < g->n_node; i++) {
        const Onnx__NodeProto *n = g->node[i];
        for (size_t k = 0; k < n->n_input; k++) count_use(q, n->input[k], by);
        for (size_t a = 0; a < n->n_attribute; a++)
            if (n->attribute[a]->g) count_reads(q, n->attribute[a]->g, 2);
    }
    for (size_t i = 0; i < g->n_output; i++)
        if (g->output[i]->name) count_use(q, g->output[i]->name, 2);
}

static void push(struct qdq *q, Onnx__NodeProto *n) {
    q->g->node[q->g->n_node++] = n;
    for (size_t k = 0; k < n->n_output; k++)
        if (n->output[k][0]) name_put(q->im->arena, &q->maker, n->output[k], n);
}

/* A move behind a dequantiser: the integers are moved, and dequantised then. */
static bool move_first(struct qdq *q, const Onnx__NodeProto *op, Onnx__NodeProto *as_was) {
    struct link x;
    const char *out = op->output[0];
    if (!moves(op) || !dequantised(q, input_of(op, 0), &x) || !one_step(&x)) return false;
    const char *integers = new_name(q, out, "integers");
    push(q, moved(q, op, &x, integers));
    const char *in[3] = {integers, x.scale, x.zero};
    Onnx__NodeProto *n = new_node(q, as_was, "DequantizeLinear", false, x.zero ? 3 : 2, in, out);
    n->n_attribute = 0;
    push(q, n);
    return true;
}

/* Is the value read once, by what may end in QuantizeLinear? */
static bool goes_on(const struct qdq *q, const Onnx__GraphProto *g, const char *name) {
    if (used(q, name) != 1) return false;
    for (size_t i = 0; i < g->n_node; i++)
        for (size_t k = 0; k < g->node[i]->n_input; k++)
            if (strcmp(g->node[i]->input[k], name) == 0)
                return is(g->node[i], "QuantizeLinear") || is(g->node[i], "Relu") ||
                       is(g->node[i], "Clip");
    return false;
}

static void rewrite_node(struct qdq *q, const Onnx__GraphProto *g, Onnx__NodeProto *node) {
    struct chain_end e;
    Onnx__NodeProto *n = NULL;
    if (node->n_output != 1) {
        push(q, node);
        return;
    }
    if (is(node, "QuantizeLinear") && chain_read(q, node, &e)) {
        n = of_integers(q, &e, node->output[0]);
        if (n && limited(&e)) {
            put_integer(q, n, ATTRIBUTE_LEAST, e.least);
            put_integer(q, n, ATTRIBUTE_MOST, e.most);
        }
    } else if ((is(node, "MatMul") || is(node, "Gemm")) && !goes_on(q, g, node->output[0])) {
        n = product_to_float(q, node);
    } else if (move_first(q, node, node)) {
        return;
    }
    q->changed += n != NULL;
    push(q, n ? n : node);
}

int qdq_rewrite(struct import *im, const Onnx__GraphProto *g, Onnx__GraphProto *out) {
    struct qdq q = {.im = im, .g = out};
    *out = *g;
    out->node = arena_array(im->arena, 2 * g->n_node + 1, sizeof *out->node);
    out->n_node = 0;
    count_reads(&q, g, 1);
    for (size_t i = 0; i < g->n_node; i++) rewrite_node(&q, g, g->node[i]);
    return q.changed;
}
#endif
