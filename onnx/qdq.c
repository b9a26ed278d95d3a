/* QDQ graphs, the form in which quantised models are exported: DequantizeLinear, an operator on
 * floats, QuantizeLinear. Where scales and zero points are known, the operator becomes the one on
 * integers (QLinearConv and its relatives), whose result differs by at most a step of the result's
 * quantiser: the sums are exact instead of rounded, and the bias is rounded to a step of the sums.
 * The graph is rewritten before it is lowered; nodes that nothing reads any more fall out. */
#include "onnx/onnx.h"

#ifdef ISAMAP_WITH_ONNX
#include "onnx/qdq_int.h"

#include <math.h>
#include <string.h>

/* ---- what is known of the graph ---- */

Onnx__NodeProto *qdq_maker_of(const struct qdq *q, const char *name) {
    return name_find(&q->maker, name);
}

bool qdq_is(const Onnx__NodeProto *n, const char *op) {
    return n && n->op_type && strcmp(n->op_type, op) == 0 &&
           (standard_domain(n->domain) || strcmp(n->domain, "com.microsoft") == 0);
}

const char *qdq_input_of(const Onnx__NodeProto *n, size_t k) {
    return k < n->n_input && n->input[k][0] ? n->input[k] : NULL;
}

const Onnx__AttributeProto *qdq_attribute_of(const Onnx__NodeProto *n, const char *name) {
    for (size_t i = 0; i < n->n_attribute; i++)
        if (n->attribute[i]->name && strcmp(n->attribute[i]->name, name) == 0)
            return n->attribute[i];
    return NULL;
}

int64_t qdq_integer_of(const Onnx__NodeProto *n, const char *name, int64_t preset) {
    const Onnx__AttributeProto *a = qdq_attribute_of(n, name);
    return a && a->has_i ? a->i : preset;
}

/* A scale or zero point, given as an initialiser or by a node Constant; NULL: not known. */
const struct tensor *qdq_known_of(const struct qdq *q, const char *name) {
    const struct tensor *t = name ? name_find(&q->im->value, name) : NULL;
    if (t && t->data) return t;
    const Onnx__NodeProto *n = name ? qdq_maker_of(q, name) : NULL;
    if (qdq_is(n, "Identity")) return qdq_known_of(q, qdq_input_of(n, 0));
    const Onnx__AttributeProto *a = qdq_is(n, "Constant") ? qdq_attribute_of(n, "value") : NULL;
    struct tensor *c = arena_alloc(q->im->arena, sizeof *c);
    struct diags quiet; /* what is wrong with it is told when the node is lowered */
    diags_init(&quiet);
    bool ok = a && a->t && tensor_from_proto(q->im->arena, q->im->path, "", a->t, c, &quiet);
    diags_free(&quiet);
    return ok ? c : NULL;
}

int qdq_used(const struct qdq *q, const char *name) {
    const int *n = name_find(&q->uses, name);
    return n ? *n : 0;
}

bool qdq_eight_bits(enum type t) {
    return t == TYPE_I8 || t == TYPE_U8;
}

/* ---- links: a value with its integers, scale and zero point ---- */

static bool link_known(const struct qdq *q, const Onnx__NodeProto *n, struct link *l) {
    *l = (struct link){qdq_input_of(n, 0), qdq_input_of(n, 1), qdq_input_of(n, 2), .type = TYPE_U8,
                       .axis = qdq_integer_of(n, "axis", 1)};
    l->scales = qdq_known_of(q, l->scale);
    l->zeros = qdq_known_of(q, l->zero);
    if (!l->integers || !l->scales || l->scales->type != TYPE_F32 || (l->zero && !l->zeros) ||
        qdq_integer_of(n, "block_size", 0))
        return false;
    for (int64_t i = 0; i < l->scales->elements; i++)
        if (!(tensor_float(l->scales, i) > 0) || isinf(tensor_float(l->scales, i))) return false;
    if (l->zeros) l->type = l->zeros->type;
    return !l->zeros || l->zeros->elements == l->scales->elements;
}

/* The value `name` is dequantised from 8-bit integers (or i32, a bias). */
bool qdq_dequantised(const struct qdq *q, const char *name, struct link *l) {
    const Onnx__NodeProto *n = name ? qdq_maker_of(q, name) : NULL;
    if (!qdq_is(n, "DequantizeLinear") || !link_known(q, n, l)) return false;
    const struct tensor *t = name_find(&q->im->value, l->integers);
    const Onnx__NodeProto *by = qdq_maker_of(q, l->integers);
    if (t) l->type = t->type;
    if (t || l->zeros) return true;
    const struct tensor *zeros =
        qdq_is(by, "QuantizeLinear") ? qdq_known_of(q, qdq_input_of(by, 2)) : NULL;
    if (zeros) l->type = zeros->type; /* without a zero point the maker tells the type */
    return qdq_is(by, "QuantizeLinear");
}

bool qdq_one_step(const struct link *l) {
    return l->scales->elements == 1 && qdq_eight_bits(l->type);
}

/* ---- new nodes and constants ---- */

const char *qdq_new_name(struct qdq *q, const char *base, const char *suffix) {
    const char *name = arena_printf(q->im->arena, "%s_%s", base, suffix);
    for (int k = 1; name_find(&q->im->value, name) || qdq_maker_of(q, name) || qdq_used(q, name);
         k++)
        name = arena_printf(q->im->arena, "%s_%s_%d", base, suffix, k);
    return name;
}

const char *qdq_new_constant(struct qdq *q, const char *base, const char *suffix, enum type type,
                             int64_t n, const void *data) {
    struct tensor *t = arena_alloc(q->im->arena, sizeof *t);
    *t = (struct tensor){
        .name = qdq_new_name(q, base, suffix), .type = type, .elements = n, .data = data};
    t->ndims = n > 1;
    t->extent[0] = n;
    t->buffer = name_unique(q->im, t->name);
    name_put(q->im->arena, &q->im->value, t->name, t);
    return t->name;
}

/* The zero point of a link, made where it has none. */
const char *qdq_zero_of(struct qdq *q, const struct link *l, const char *base) {
    static const int64_t none;
    return l->zero ? l->zero : qdq_new_constant(q, base, "zero", l->type, 1, &none);
}

Onnx__NodeProto *qdq_new_node(struct qdq *q, const Onnx__NodeProto *from, const char *op,
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
    n->attribute = arena_array(q->im->arena, from->n_attribute + 3, sizeof *n->attribute);
    if (from->n_attribute)
        memcpy(n->attribute, from->attribute, from->n_attribute * sizeof *n->attribute);
    return n;
}

void qdq_put_integer(struct qdq *q, Onnx__NodeProto *n, const char *name, int64_t v) {
    Onnx__AttributeProto *a = arena_alloc(q->im->arena, sizeof *a);
    onnx__attribute_proto__init(a);
    a->name = arena_strdup(q->im->arena, name);
    a->has_i = true;
    a->i = v;
    n->attribute[n->n_attribute++] = a;
}

void qdq_drop_attribute(Onnx__NodeProto *n, const char *name) {
    size_t kept = 0;
    for (size_t i = 0; i < n->n_attribute; i++)
        if (strcmp(n->attribute[i]->name ? n->attribute[i]->name : "", name) != 0)
            n->attribute[kept++] = n->attribute[i];
    n->n_attribute = kept;
}

/* ---- the chain that ends in QuantizeLinear ---- */

int64_t qdq_lowest(const struct link *l) {
    return l->type == TYPE_I8 ? -128 : 0;
}

int64_t qdq_highest(const struct link *l) {
    return l->type == TYPE_I8 ? 127 : 255;
}

static double step_at(const struct chain_end *e, double v) {
    double zero = e->y.zeros ? (double)tensor_int(e->y.zeros, 0) : 0;
    return rint(v / tensor_float(e->y.scales, 0)) + zero;
}

static int64_t within(const struct chain_end *e, double step) {
    return (int64_t)(step < (double)e->least  ? (double)e->least
                     : step > (double)e->most ? (double)e->most
                                              : step);
}

void qdq_limit(struct chain_end *e, double lo, double hi) {
    int64_t least = within(e, step_at(e, lo)), most = within(e, step_at(e, hi));
    e->least = least, e->most = most;
}

void qdq_unlimited(struct chain_end *e) {
    e->least = qdq_lowest(&e->y);
    e->most = qdq_highest(&e->y);
}

/* Clip's limits as numbers; false: not known. */
static bool clip_limits(const struct qdq *q, const Onnx__NodeProto *n, double *lo, double *hi) {
    static const char *const name[2] = {"min", "max"};
    double *to[2] = {lo, hi};
    *lo = -INFINITY, *hi = INFINITY;
    for (int k = 0; k < 2; k++) {
        const Onnx__AttributeProto *a = qdq_attribute_of(n, name[k]);
        const char *given = qdq_input_of(n, (size_t)k + 1);
        const struct tensor *t = qdq_known_of(q, given);
        if (given && (!t || t->elements != 1)) return false;
        if (t) *to[k] = tensor_float(t, 0);
        if (!given && a && a->has_f) *to[k] = (double)a->f;
    }
    return *lo <= *hi;
}

/* From the value `at` on, towards its makers. */
static bool chain_from(const struct qdq *q, const char *at, struct chain_end *e) {
    double lo, hi;
    e->line = NULL;
    for (e->op = qdq_maker_of(q, at); e->op;
         at = qdq_input_of(e->op, 0), e->op = qdq_maker_of(q, at)) {
        bool relu = qdq_is(e->op, "Relu");
        if (!at || qdq_used(q, at) != 1) return false;
        if (!relu && !qdq_is(e->op, "Clip")) break;
        if (!qdq_input_of(e->op, 0) || !qdq_maker_of(q, qdq_input_of(e->op, 0))) return false;
        if (relu)
            lo = 0, hi = INFINITY;
        else if (!clip_limits(q, e->op, &lo, &hi))
            return false;
        qdq_limit(e, lo, hi);
    }
    if (!qdq_is(e->op, "BatchNormalization")) return e->op != NULL;
    const char *from = qdq_input_of(e->op, 0);
    if (!from || qdq_used(q, from) != 1) return false;
    e->line = e->op;
    e->op = qdq_maker_of(q, from);
    return e->op != NULL;
}

static bool chain_read(const struct qdq *q, const Onnx__NodeProto *end, struct chain_end *e) {
    if (!link_known(q, end, &e->y) || !qdq_one_step(&e->y)) return false;
    qdq_unlimited(e);
    return chain_from(q, e->y.integers, e);
}

static bool limited(const struct chain_end *e) {
    return e->least > qdq_lowest(&e->y) || e->most < qdq_highest(&e->y);
}

/* ---- other operators ---- */

static Onnx__NodeProto *two_operands(struct qdq *q, const struct chain_end *e, const char *op,
                                     const char *out) {
    struct link a, b;
    if (!qdq_dequantised(q, qdq_input_of(e->op, 0), &a) ||
        !qdq_dequantised(q, qdq_input_of(e->op, 1), &b) || !qdq_one_step(&a) || !qdq_one_step(&b) ||
        a.type != e->y.type || b.type != e->y.type)
        return NULL;
    return qdq_of_two(q, e, &a, &b, op, true, out);
}

static Onnx__NodeProto *global_mean(struct qdq *q, const struct chain_end *e, const char *out) {
    struct link x;
    if (!qdq_dequantised(q, qdq_input_of(e->op, 0), &x) || !qdq_one_step(&x) || x.type != e->y.type)
        return NULL;
    const char *in[5] = {x.integers, x.scale, qdq_zero_of(q, &x, out), e->y.scale,
                         qdq_zero_of(q, &e->y, out)};
    return qdq_new_node(q, e->op, "QLinearGlobalAveragePool", true, 5, in, out);
}

static bool same_steps(const struct link *a, const struct link *b) {
    return qdq_one_step(a) && qdq_one_step(b) && a->type == b->type &&
           tensor_float(a->scales, 0) == tensor_float(b->scales, 0) &&
           (a->zeros ? tensor_int(a->zeros, 0) : 0) == (b->zeros ? tensor_int(b->zeros, 0) : 0);
}

/* Operators that move elements or choose among them: the same on the integers. */
static bool moves(const Onnx__NodeProto *n) {
    static const char *const op[] = {
        "Reshape", "Flatten", "Transpose", "Squeeze",  "Unsqueeze",    "Slice",       "Gather",
        "Expand",  "Tile",    "MaxPool",   "Identity", "DepthToSpace", "SpaceToDepth"};
    for (size_t i = 0; i < sizeof op / sizeof *op; i++)
        if (qdq_is(n, op[i])) return n->n_output == 1;
    return false;
}

static Onnx__NodeProto *moved(struct qdq *q, const Onnx__NodeProto *op, const struct link *x,
                              const char *out) {
    const char **in = arena_array(q->im->arena, op->n_input, sizeof *in);
    for (size_t k = 0; k < op->n_input; k++) in[k] = k ? op->input[k] : x->integers;
    return qdq_new_node(q, op, op->op_type, false, (int)op->n_input, in, out);
}

/* Quantised again in the same steps: the integers themselves. */
static Onnx__NodeProto *again(struct qdq *q, const struct chain_end *e, const char *out) {
    struct link x;
    if (limited(e) || !qdq_dequantised(q, e->op->output[0], &x) || !same_steps(&x, &e->y))
        return NULL;
    Onnx__NodeProto *n = qdq_new_node(q, e->op, "Identity", false, 1, &x.integers, out);
    n->n_attribute = 0;
    return n;
}

void qdq_push(struct qdq *q, Onnx__NodeProto *n) {
    q->g->node[q->g->n_node++] = n;
    for (size_t k = 0; k < n->n_output; k++)
        if (n->output[k][0]) name_put(q->im->arena, &q->maker, n->output[k], n);
}

static Onnx__NodeProto *with_limits(struct qdq *q, const struct chain_end *e, Onnx__NodeProto *n) {
    if (n && e->least > qdq_lowest(&e->y)) qdq_put_integer(q, n, ATTRIBUTE_LEAST, e->least);
    if (n && e->most < qdq_highest(&e->y)) qdq_put_integer(q, n, ATTRIBUTE_MOST, e->most);
    return n;
}

static Onnx__NodeProto *of_integers(struct qdq *q, struct chain_end *e, const char *out);

/* Each input in the steps of the result: its integers, or a chain that can end in these. */
static Onnx__NodeProto *concat(struct qdq *q, const struct chain_end *e, const char *out) {
    int n = (int)e->op->n_input;
    const char **in = arena_array(q->im->arena, (size_t)(2 + 3 * n), sizeof *in);
    in[0] = e->y.scale;
    in[1] = qdq_zero_of(q, &e->y, out);
    for (int k = 0; k < n; k++) {
        const char *from = qdq_input_of(e->op, (size_t)k);
        struct chain_end part = *e;
        struct link x;
        Onnx__NodeProto *made = NULL;
        bool plain = qdq_dequantised(q, from, &x) && qdq_one_step(&x) && x.type == e->y.type;
        if (from && chain_from(q, from, &part) && (!plain || !same_steps(&x, &e->y)))
            made = with_limits(q, &part, qdq_behind(q, &part, qdq_new_name(q, from, "integers")));
        if (made) qdq_push(q, made);
        if (!made && !plain) return NULL;
        in[2 + 3 * k] = made ? made->output[0] : x.integers;
        in[3 + 3 * k] = made ? e->y.scale : x.scale;
        in[4 + 3 * k] = made ? in[1] : qdq_zero_of(q, &x, out);
    }
    return qdq_new_node(q, e->op, "QLinearConcat", true, 2 + 3 * n, in, out);
}

/* What stands before the move ends in the result's integers, which are moved then. */
static Onnx__NodeProto *move_last(struct qdq *q, const struct chain_end *e, const char *out) {
    struct chain_end before = *e;
    struct link x = e->y;
    if (e->line || !moves(e->op) || !qdq_input_of(e->op, 0) ||
        !chain_from(q, qdq_input_of(e->op, 0), &before))
        return NULL;
    Onnx__NodeProto *n = of_integers(q, &before, qdq_new_name(q, out, "integers"));
    if (!n) return NULL;
    qdq_push(q, with_limits(q, &before, n));
    x.integers = n->output[0];
    return moved(q, e->op, &x, out);
}

/* The integers were moved before they were dequantised: they are in the result's steps before. */
static Onnx__NodeProto *move_again(struct qdq *q, const struct chain_end *e, const char *out) {
    struct chain_end before = *e;
    struct link x;
    if (e->line || !qdq_dequantised(q, e->op->output[0], &x) || !qdq_one_step(&x) ||
        qdq_used(q, x.integers) > 1)
        return NULL;
    const Onnx__NodeProto *move = qdq_maker_of(q, x.integers);
    if (!move || !moves(move) || !qdq_input_of(move, 0)) return NULL;
    const char *in[3] = {move->input[0], x.scale, x.zero};
    Onnx__NodeProto *plain = qdq_new_node(q, e->op, "DequantizeLinear", false, x.zero ? 3 : 2, in,
                                          qdq_new_name(q, out, "before"));
    qdq_push(q, plain);
    before.op = plain;
    Onnx__NodeProto *n = of_integers(q, &before, qdq_new_name(q, out, "integers"));
    if (!n) return NULL;
    qdq_push(q, with_limits(q, &before, n));
    x.integers = n->output[0];
    return moved(q, move, &x, out);
}

static Onnx__NodeProto *of_operator(struct qdq *q, const struct chain_end *e, const char *out) {
    return qdq_is(e->op, "MatMul")              ? qdq_matrix_product(q, e, out)
           : qdq_is(e->op, "Gemm")              ? qdq_gemm(q, e->op, e, out)
           : qdq_is(e->op, "Add")               ? two_operands(q, e, "QLinearAdd", out)
           : qdq_is(e->op, "Mul")               ? two_operands(q, e, "QLinearMul", out)
           : qdq_is(e->op, "GlobalAveragePool") ? global_mean(q, e, out)
           : qdq_is(e->op, "Concat")            ? concat(q, e, out)
                                                : NULL;
}

static Onnx__NodeProto *of_integers(struct qdq *q, struct chain_end *e, const char *out) {
    Onnx__NodeProto *n = NULL;
    if (qdq_is(e->op, "Conv"))
        n = qdq_convolution(q, e, out);
    else if (qdq_is(e->op, "DequantizeLinear")) {
        n = e->line ? NULL : again(q, e, out);
        if (!n) n = qdq_behind(q, e, out);
        if (!n && (n = move_again(q, e, out))) qdq_unlimited(e);
    } else if (!e->line)
        n = of_operator(q, e, out);
    return n;
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

/* A move behind a dequantiser: the integers are moved, and dequantised then. */
static bool move_first(struct qdq *q, const Onnx__NodeProto *op, Onnx__NodeProto *as_was) {
    struct link x;
    const char *out = op->output[0];
    if (!moves(op) || !qdq_dequantised(q, qdq_input_of(op, 0), &x) || !qdq_one_step(&x))
        return false;
    const char *integers = qdq_new_name(q, out, "integers");
    qdq_push(q, moved(q, op, &x, integers));
    const char *in[3] = {integers, x.scale, x.zero};
    Onnx__NodeProto *n =
        qdq_new_node(q, as_was, "DequantizeLinear", false, x.zero ? 3 : 2, in, out);
    n->n_attribute = 0;
    qdq_push(q, n);
    return true;
}

/* Is the value read once, by what may end in QuantizeLinear? */
static bool goes_on(const struct qdq *q, const Onnx__GraphProto *g, const char *name) {
    if (qdq_used(q, name) != 1) return false;
    for (size_t i = 0; i < g->n_node; i++)
        for (size_t k = 0; k < g->node[i]->n_input; k++)
            if (strcmp(g->node[i]->input[k], name) == 0)
                return qdq_is(g->node[i], "QuantizeLinear") || qdq_is(g->node[i], "Relu") ||
                       qdq_is(g->node[i], "Clip");
    return false;
}

/* QLinearConcat, its inputs in its own steps where who makes them can give these. */
static Onnx__NodeProto *concat_again(struct qdq *q, Onnx__NodeProto *n) {
    const char **in = arena_array(q->im->arena, n->n_input, sizeof *in);
    bool any = false;
    if (n->n_input % 3 != 2) return NULL;
    for (size_t k = 0; k < n->n_input; k++) in[k] = qdq_input_of(n, k);
    for (size_t k = 2; k < n->n_input; k += 3) {
        struct chain_end e;
        Onnx__NodeProto *made =
            in[k] ? qdq_part_of(q, n, k, qdq_new_name(q, in[k], "integers"), &e) : NULL;
        if (!made) continue;
        qdq_push(q, with_limits(q, &e, made));
        in[k] = made->output[0], in[k + 1] = in[0], in[k + 2] = in[1];
        any = true;
    }
    return any ? qdq_new_node(q, n, n->op_type, true, (int)n->n_input, in, n->output[0]) : NULL;
}

static void rewrite_node(struct qdq *q, const Onnx__GraphProto *g, Onnx__NodeProto *node) {
    struct chain_end e;
    Onnx__NodeProto *n = NULL;
    if (node->n_output == 1 && qdq_rows_first(q, node)) {
        q->moved = true;
        return;
    }
    if (node->n_output != 1 || q->exact) {
        qdq_push(q, node);
        return;
    }
    if (qdq_is(node, "QuantizeLinear") && chain_read(q, node, &e)) {
        n = with_limits(q, &e, of_integers(q, &e, node->output[0]));
        if (!n) n = move_last(q, &e, node->output[0]);
    } else if ((qdq_is(node, "MatMul") || qdq_is(node, "Gemm")) &&
               !goes_on(q, g, node->output[0])) {
        n = qdq_product_to_float(q, node);
    } else if (qdq_is(node, "QLinearConcat")) {
        n = concat_again(q, node);
    } else if (move_first(q, node, node)) {
        return;
    }
    q->changed += n != NULL;
    qdq_push(q, n ? n : node);
}

bool qdq_rewrite(struct import *im, const Onnx__GraphProto *g, bool exact, Onnx__GraphProto *out,
                 int *requantised) {
    struct qdq q = {.im = im, .g = out, .exact = exact};
    *out = *g;
    out->node = arena_array(im->arena, 4 * g->n_node + 1, sizeof *out->node);
    out->n_node = 0;
    count_reads(&q, g, 1);
    for (size_t i = 0; i < g->n_node; i++) rewrite_node(&q, g, g->node[i]);
    *requantised = q.changed;
    return q.changed > 0 || q.moved;
}
#endif
