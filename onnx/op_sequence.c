/* Sequences of tensors, and optionals: lists that are known when compiling. No statement is made of them but for their parts. */
#include "onnx/onnx.h"

#ifdef ISAMAP_WITH_ONNX
#include "onnx/onnx_int.h"

#include <inttypes.h>
#include <string.h>

bool node_on_sequences(const Onnx__NodeProto *node) {
    const char *op = node->op_type;
    return strncmp(op, "Sequence", 8) == 0 || strncmp(op, "Optional", 8) == 0 || strcmp(op, "SplitToSequence") == 0 || strcmp(op, "ConcatFromSequence") == 0;
}

static struct sequence *sequence_input(struct import *im) {
    const struct tensor *t = node_given(im, 0);
    if (t && t->list) return t->list;
    node_fail(im, "input 0 is not a sequence");
    return NULL;
}

/* The k-th result: of `n` parts, filled by the caller. */
static struct sequence *sequence_result_at(struct import *im, int k, int n) {
    struct tensor *t = arena_alloc(im->arena, sizeof *t);
    struct sequence *s = arena_alloc(im->arena, sizeof *s);
    s->n = n;
    s->part = arena_array(im->arena, (size_t)n + 1, sizeof *s->part);
    *t = (struct tensor){.name = im->node->output[k], .elements = 1, .list = s};
    name_put(im->arena, &im->value, t->name, t);
    return s;
}

static struct sequence *sequence_result(struct import *im, int n) {
    return sequence_result_at(im, 0, n);
}

/* The place that input k says in a sequence of n parts, `behind` of which may be one more; not given: the last. */
static bool sequence_place(struct import *im, int k, int n, bool behind, int *out) {
    const struct tensor *t = node_given(im, k);
    if (!t) return *out = n - !behind, true;
    if (!t->data || t->elements != 1) return node_fail(im, "which part is meant is not known when compiling");
    int64_t at = tensor_int(t, 0);
    if (at < -n || at >= n + behind) return node_fail(im, "part %" PRId64 " is outside a sequence of %d", at, n);
    *out = (int)(at < 0 ? at + n : at);
    return true;
}

bool op_sequence_empty(struct import *im) {
    attribute_find(im, "dtype");
    sequence_result(im, 0);
    return true;
}

bool op_sequence_construct(struct import *im) {
    struct sequence *s = sequence_result(im, (int)im->node->n_input);
    for (int k = 0; k < s->n; k++)
        if (!(s->part[k] = node_given(im, k))) return node_fail(im, "input %d is missing", k);
    return true;
}

bool op_sequence_insert(struct import *im) {
    const struct sequence *from = sequence_input(im);
    int at;
    if (!from || !sequence_place(im, 2, from->n, true, &at)) return false;
    struct sequence *s = sequence_result(im, from->n + 1);
    for (int k = 0; k < s->n; k++) s->part[k] = k == at ? node_given(im, 1) : from->part[k - (k > at)];
    return true;
}

bool op_sequence_erase(struct import *im) {
    const struct sequence *from = sequence_input(im);
    int at;
    if (!from || !sequence_place(im, 1, from->n, false, &at)) return false;
    if (from->n == 0) return node_fail(im, "the sequence is empty");
    struct sequence *s = sequence_result(im, from->n - 1);
    for (int k = 0; k < s->n; k++) s->part[k] = from->part[k + (k >= at)];
    return true;
}

bool op_sequence_at(struct import *im) {
    const struct sequence *s = sequence_input(im);
    int at;
    return s && sequence_place(im, 1, s->n, false, &at) && node_alias(im, s->part[at], s->part[at]->ndims, s->part[at]->extent);
}

bool op_sequence_length(struct import *im) {
    const struct sequence *s = sequence_input(im);
    int64_t n = s ? s->n : 0;
    return s && node_constant(im, TYPE_I64, 0, NULL, arena_copy(im->arena, &n, sizeof n));
}

/* ---- a graph for each part ---- */

/* Runs the body on part i of all inputs that are sequences, and on the others as they are; its
 * results are part i of `results`. */
static bool map_part(struct import *im, const Onnx__GraphProto *g, struct tensor *const *given,
                     int i, struct tensor **const *results) {
    struct name_table value = im->value, result = im->result;
    im->result = (struct name_table){0};
    im->value = name_copy(im->arena, &value);
    for (size_t k = 0; k < g->n_input; k++)
        name_put(im->arena, &im->value, g->input[k]->name,
                 given[k]->list ? given[k]->list->part[i] : given[k]);
    bool ok = graph_nodes(im, g);
    for (size_t k = 0; ok && k < g->n_output; k++)
        ok = (results[k][i] = name_find(&im->value, g->output[k]->name)) ||
             node_fail(im, "the result %zu of its body is made by nothing", k);
    im->value = value;
    im->result = result;
    return ok;
}

bool op_sequence_map(struct import *im) {
    const Onnx__AttributeProto *a = attribute_find(im, "body");
    const Onnx__GraphProto *g = a ? a->g : NULL;
    const struct sequence *first = sequence_input(im);
    size_t inputs = im->node->n_input, outputs = im->node->n_output;
    if (!first) return false;
    if (!g || g->n_input != inputs || g->n_output != outputs)
        return node_fail(im, "it has no body of %zu inputs and %zu results", inputs, outputs);
    struct tensor **given = arena_array(im->arena, inputs, sizeof *given),
                  ***results = arena_array(im->arena, outputs, sizeof *results);
    for (size_t k = 0; k < inputs; k++) {
        given[k] = node_given(im, (int)k);
        if (!given[k] || !g->input[k]->name) return node_fail(im, "input %zu is missing", k);
        if (given[k]->list && given[k]->list->n != first->n)
            return node_fail(im, "its sequences have %d and %d parts", first->n, given[k]->list->n);
    }
    for (size_t k = 0; k < outputs; k++) {
        results[k] = arena_array(im->arena, (size_t)first->n + 1, sizeof **results);
        if (!g->output[k]->name) return node_fail(im, "the result %zu of its body has no name", k);
    }
    for (int i = 0; i < first->n; i++)
        if (!map_part(im, g, given, i, results)) return false;
    for (size_t k = 0; k < outputs; k++)
        if (*im->node->output[k]) sequence_result_at(im, (int)k, first->n)->part = results[k];
    return true;
}

/* ---- optionals: lists of one part or none ---- */

bool op_optional(struct import *im) {
    struct tensor *x = node_given(im, 0);
    attribute_find(im, "type");
    struct sequence *s = sequence_result(im, x != NULL);
    s->optional = true;
    s->part[0] = x;
    return true;
}

bool op_optional_has_element(struct import *im) {
    const struct tensor *x = node_given(im, 0);
    int64_t any = x && !(x->list && x->list->optional && x->list->n == 0);
    return node_constant(im, TYPE_BOOL, 0, NULL, arena_copy(im->arena, &any, sizeof any));
}

/* What is no optional is its own element. */
bool op_optional_get_element(struct import *im) {
    struct tensor *x = node_given(im, 0);
    if (x->list && x->list->optional) x = x->list->part[0];
    if (!x) return node_fail(im, "the optional has no element");
    if (!x->list) return node_alias(im, x, x->ndims, x->extent);
    name_put(im->arena, &im->value, im->node->output[0], x);
    return true;
}

/* ---- parts and wholes ---- */

/* Parts along an axis: of one element each (without the axis where `keepdims` is 0), of a number, or of several. */
bool op_split_to_sequence(struct import *im) {
    struct tensor *x = node_input(im, 0);
    const struct tensor *sizes = node_given(im, 1);
    const int64_t *size = NULL;
    int64_t keep = 1, at = 0;
    int axis, n = 0;
    if (!attribute_axis(im, "axis", 0, x->ndims, &axis) || !attribute_int(im, "keepdims", &keep) || !node_list(im, "split", 1, &size, &n)) return false;
    int64_t whole = x->extent[axis], each = sizes ? sizes->ndims == 0 ? size[0] : 0 : 1;
    if (each < 0 || (sizes && sizes->ndims == 0 && each == 0) || whole > MAX_COUNT) return node_fail(im, "parts of %" PRId64 " elements", each);
    if (each) n = (int)((whole + each - 1) / each);
    struct sequence *s = sequence_result(im, n);
    for (int k = 0; k < n; k++) {
        int64_t extent[MAX_DIMS], take = each ? (each < whole - at ? each : whole - at) : size[k];
        const char *index[MAX_DIMS], *from[MAX_DIMS];
        if (take < 0 || take > whole - at) return node_fail(im, "its parts do not fit %" PRId64 " elements along dimension %d", whole, axis);
        bool drop = !sizes && !keep;
        memcpy(extent, x->extent, sizeof extent);
        extent[axis] = take;
        if (drop) memmove(extent + axis, extent + axis + 1, (size_t)(x->ndims - axis - 1) * sizeof *extent);
        int ndims = x->ndims - drop;
        if (take == 0) {
            if (!(s->part[k] = tensor_constant(im, x->buffer, "part", x->type, ndims, extent, ""))) return false;
            im->empties--; /* nothing is computed by way of it */
            continue;
        }
        if (!(s->part[k] = tensor_temporary(im, x->buffer, "part", x->type, ndims, extent))) return false;
        axes_release(im);
        axes_for(im, ndims, extent, index);
        for (int d = 0; d < x->ndims; d++) from[d] = index[d - (drop && d > axis)];
        from[axis] = affine_text(im, 1, (int64_t[]){1}, (const char *[]){drop ? "0" : index[axis]}, at);
        emit_statement(im, "%s = %s", tensor_element(im, s->part[k], index), tensor_element(im, x, from));
        at += take;
    }
    return at == whole || node_fail(im, "its parts leave out %" PRId64 " elements", whole - at);
}

/* The parts in a row along an axis, or (`new_axis`) along one of their own. */
bool op_concat_from_sequence(struct import *im) {
    const struct sequence *s = sequence_input(im);
    int64_t stack = 0, extent[MAX_DIMS], at = 0;
    int axis;
    if (!s || !attribute_int(im, "new_axis", &stack)) return false;
    if (s->n == 0) return node_fail(im, "the sequence is empty");
    const struct tensor *first = s->part[0];
    int ndims = first->ndims + (stack != 0);
    if (ndims > MAX_DIMS) return node_fail(im, "its result has more than %d dimensions", MAX_DIMS);
    if (!attribute_axis(im, "axis", 0, ndims, &axis)) return false;
    for (int d = 0; d < ndims; d++) extent[d] = stack && d == axis ? 0 : first->extent[d - (stack && d > axis)];
    if (!stack) extent[axis] = 0;
    for (int k = 0; k < s->n; k++) {
        const struct tensor *t = s->part[k];
        bool fits = t->ndims == first->ndims && t->type == first->type;
        for (int d = 0; fits && d < ndims; d++) fits = d == axis || t->extent[d - (stack && d > axis)] == extent[d];
        if (!fits) return node_fail(im, "part %d %s does not fit part 0 %s", k, shape_text(im->arena, t->ndims, t->extent), shape_text(im->arena, first->ndims, first->extent));
        extent[axis] += stack ? 1 : t->extent[axis];
    }
    struct tensor *y = node_result(im, first->type, ndims, extent);
    for (int k = 0; y && k < s->n; k++) {
        struct tensor *t = s->part[k];
        const char *index[MAX_DIMS], *to[MAX_DIMS];
        if (t->elements == 0) continue;
        axes_release(im);
        axes_for(im, t->ndims, t->extent, index);
        for (int d = 0; d < ndims; d++) to[d] = d == axis && stack ? "0" : index[d - (stack && d > axis)];
        to[axis] = affine_text(im, 1, (int64_t[]){1}, &to[axis], at);
        emit_statement(im, "%s = %s", tensor_element(im, y, to), tensor_element(im, t, index));
        at += stack ? 1 : t->extent[axis];
    }
    return y != NULL;
}
#endif
