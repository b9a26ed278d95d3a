/* Scan and Loop: a recurrence whose body is a graph. Values that go from iteration to iteration are
 * states; what the body reads of the graph around it stands in the body's statements as it is. A
 * Loop of which an operator must know the number of the iteration when compiling (a Slice that
 * moves) is lowered iteration by iteration. */
#include "onnx/onnx.h"

#ifdef ISAMAP_WITH_ONNX
#include "onnx/onnx_int.h"

#include <inttypes.h>
#include <string.h>

struct scanned { /* an input of which each step sees a part, or an output made of parts */
    int axis;
    bool reverse;
};

struct loop {
    const Onnx__GraphProto *body;
    int64_t steps;
    int states, inputs, outputs; /* of the node: states, scanned inputs, scanned outputs */
    int first;                   /* input of the node that is the first state */
    int head;                    /* inputs and results of the body before its states */
    struct scanned *in, *out;
    struct name_table value, result; /* of the graph around, kept while the body is lowered */
    const char *step, *batch;        /* axes of the recurrences; batch NULL: none */
    struct tensor **start, **end;    /* of each state, without the batch */
    const char **state;
    struct tensor *lengths; /* Scan of opset 8: of each sequence; or NULL */
    bool counted;           /* Loop: how often it runs is known; else the state `live` says it */
    const char *live;       /* whether this iteration still takes place; NULL: it does */
    struct tensor *go;      /* whether the first one does, where that is not known; or NULL */
};

/* ---- names of the body ---- */

static void scope_open(struct import *im, struct loop *l) {
    l->value = im->value;
    l->result = im->result;
    im->result = (struct name_table){0};
    im->value = name_copy(im->arena, &l->value);
}

static void scope_close(struct import *im, const struct loop *l) {
    im->value = l->value;
    im->result = l->result;
}

static const char *body_input(const struct loop *l, int k) {
    return l->body->input[k]->name;
}

static struct tensor *body_result(struct import *im, const struct loop *l, int k) {
    struct tensor *t = name_find(&im->value, l->body->output[k]->name);
    if (!t) node_fail(im, "the result %d of its body is made by nothing", k);
    return t;
}

/* ---- elements ---- */

/* The element of the whole at the step, of a part at `index`: along its axis the step, reversed or
 * not; before all the batch. */
static const char *whole_element(struct import *im, const struct loop *l, struct tensor *whole,
                                 const struct scanned *s, const char *step,
                                 const char *const *index) {
    const char *all[MAX_DIMS];
    int n = 0;
    if (l->batch) all[n++] = l->batch;
    for (int d = l->batch != NULL; d < whole->ndims; d++)
        all[d] = d == s->axis + (l->batch != NULL) ? step : index[n++ - (l->batch != NULL)];
    return tensor_element(im, whole, all);
}

static const char *step_text(struct import *im, const struct loop *l, const struct scanned *s) {
    return s->reverse ? arena_printf(im->arena, "%" PRId64 "-%s", l->steps - 1, l->step) : l->step;
}

/* Where the sequence of this batch is over, or the loop has ended, `otherwise`. */
static const char *while_it_lasts(struct import *im, const struct loop *l, const char *value,
                                  const char *otherwise) {
    if (l->live) return arena_printf(im->arena, "select(%s[0], %s, %s)", l->live, value, otherwise);
    if (!l->lengths) return value;
    return arena_printf(im->arena, "select(i64(%s) < %s, %s, %s)", l->step,
                        tensor_element(im, l->lengths, &l->batch), value, otherwise);
}

/* ---- inputs and outputs of the node ---- */

/* A part's shape: that of the whole without the batch and the scanned dimension. */
static int part_shape(const struct loop *l, const struct tensor *whole, int axis, int64_t *extent) {
    int n = 0;
    for (int d = l->batch != NULL; d < whole->ndims; d++)
        if (d != axis + (l->batch != NULL)) extent[n++] = whole->extent[d];
    return n;
}

static bool read_scanned(struct import *im, const char *axes, const char *directions, int n,
                         struct scanned **out) {
    const int64_t *axis = NULL, *direction;
    int naxis = 0, ndirection;
    if (axes && !attribute_ints(im, axes, &axis, &naxis)) return false;
    if (!attribute_ints(im, directions, &direction, &ndirection)) return false;
    if ((axis && naxis != n) || (direction && ndirection != n))
        return node_fail(im, "'%s' has %d entries, expected %d",
                         axis && naxis != n ? axes : directions,
                         axis && naxis != n ? naxis : ndirection, n);
    *out = arena_array(im->arena, (size_t)n + 1, sizeof **out);
    for (int k = 0; k < n; k++)
        (*out)[k] = (struct scanned){axis ? (int)axis[k] : 0, direction && direction[k]};
    return true;
}

/* Steps that all scanned inputs agree about. */
static bool count_steps(struct import *im, struct loop *l) {
    l->steps = -1;
    for (int k = 0; k < l->inputs; k++) {
        struct tensor *x = node_input(im, l->first + l->states + k);
        int batch = l->batch != NULL;
        if (!axis_normal(im, l->in[k].axis, x->ndims - batch, &l->in[k].axis)) return false;
        int64_t n = x->extent[l->in[k].axis + batch];
        if (l->steps >= 0 && n != l->steps)
            return node_fail(im, "its scanned inputs have %" PRId64 " and %" PRId64 " steps",
                             l->steps, n);
        l->steps = n;
    }
    return l->steps >= 0 || node_fail(im, "it has no scanned input");
}

static bool body_read(struct import *im, struct loop *l) {
    const Onnx__AttributeProto *a = attribute_find(im, "body");
    if (!a || !a->g) return node_fail(im, "it has no body");
    l->body = a->g;
    for (size_t k = 0; k < l->body->n_input; k++)
        if (!l->body->input[k]->name) return node_fail(im, "input %zu of its body has no name", k);
    for (size_t k = 0; k < l->body->n_output; k++)
        if (!l->body->output[k]->name)
            return node_fail(im, "result %zu of its body has no name", k);
    return true;
}

static bool body_counts(struct import *im, const struct loop *l, size_t inputs) {
    if (l->body->n_input == inputs &&
        l->body->n_output == (size_t)(l->head / 2 + l->states + l->outputs) && l->states >= 0 &&
        l->outputs >= 0)
        return true;
    return node_fail(im, "its body has %zu inputs and %zu results, which is not what the node has",
                     l->body->n_input, l->body->n_output);
}

/* ---- the recurrence ---- */

/* The state that says whether iterations still take place. */
static bool live_open(struct import *im, struct loop *l, struct text *head) {
    static const int64_t one = 1;
    struct tensor *start = tensor_temporary(im, "live", "start", TYPE_BOOL, 1, &one);
    if (!start) return false;
    emit_statement(im, "%s[0] = %s", start->buffer,
                   l->go ? tensor_element(im, l->go, (const char *[]){"0"}) : "bool(1)");
    l->live = name_unique(im, "live");
    text_printf(head, "%s%s: bool[1] from %s", head->n ? ", " : "", l->live, start->buffer);
    return true;
}

static bool states_open(struct import *im, struct loop *l) {
    struct text head = {0};
    l->start = arena_array(im->arena, (size_t)l->states + 1, sizeof *l->start);
    l->end = arena_array(im->arena, (size_t)l->states + 1, sizeof *l->end);
    l->state = arena_array(im->arena, (size_t)l->states + 1, sizeof *l->state);
    for (int k = 0; k < l->states; k++) {
        struct tensor *given = node_input(im, l->first + k);
        int n = given->ndims - (l->batch != NULL);
        const int64_t *extent = given->extent + (l->batch != NULL);
        const char *index[MAX_DIMS], *all[MAX_DIMS] = {l->batch};
        l->start[k] = tensor_temporary(im, "state", "start", given->type, n, extent);
        l->end[k] = tensor_temporary(im, "state", "end", given->type, n, extent);
        if (!l->start[k] || !l->end[k]) return text_free(&head), false;
        axes_release(im);
        axes_for(im, n, extent, index);
        for (int d = 0; d < n; d++) all[d + (l->batch != NULL)] = index[d];
        emit_statement(im, "%s = %s", tensor_element(im, l->start[k], index),
                       tensor_element(im, given, all));
        l->state[k] = name_unique(im, body_input(l, l->head + k));
        text_printf(&head, "%s%s: %s%s from %s to %s", k ? ", " : "", l->state[k],
                    type_name(given->type), shape_text(im->arena, n, extent), l->start[k]->buffer,
                    l->end[k]->buffer);
    }
    if (l->head && !l->counted && !live_open(im, l, &head)) return text_free(&head), false;
    emit_statement(im, "recur %s: %" PRId64 "%s%s {", l->step, l->steps, head.n ? "  state " : "",
                   head.n ? head.at : "");
    text_free(&head);
    return true;
}

/* States and parts of scanned inputs under the names of the body's inputs. */
static bool inputs_bind(struct import *im, struct loop *l) {
    for (int k = 0; k < l->states; k++) {
        struct tensor *t = arena_copy(im->arena, l->start[k], sizeof *t);
        t->name = body_input(l, l->head + k);
        t->buffer = l->state[k];
        name_put(im->arena, &im->value, t->name, t);
    }
    for (int k = 0; k < l->inputs; k++) {
        struct tensor *x = node_input(im, l->first + l->states + k);
        int64_t extent[MAX_DIMS];
        const char *index[MAX_DIMS];
        int n = part_shape(l, x, l->in[k].axis, extent);
        struct tensor *part = tensor_temporary(im, "part", "", x->type, n, extent);
        if (!part) return false;
        axes_release(im);
        axes_for(im, n, extent, index);
        emit_statement(im, "%s = %s", tensor_element(im, part, index),
                       whole_element(im, l, x, &l->in[k], step_text(im, l, &l->in[k]), index));
        part->name = body_input(l, l->head + l->states + k);
        name_put(im->arena, &im->value, part->name, part);
    }
    return true;
}

/* The whole of which `part` is what one step gives; declared before the node is done. */
static struct tensor *output_whole(struct import *im, struct loop *l, int k,
                                   const struct tensor *part, int64_t batches) {
    int64_t extent[MAX_DIMS];
    int n = 0, at = 0;
    if (part->ndims + 1 + (l->batch != NULL) > MAX_DIMS) {
        node_fail(im, "its result has too many dimensions");
        return NULL;
    }
    if (!axis_normal(im, l->out[k].axis, part->ndims + 1, &l->out[k].axis)) return NULL;
    if (l->batch) extent[n++] = batches;
    for (int d = 0; d <= part->ndims; d++)
        extent[n++] = d == l->out[k].axis ? l->steps : part->extent[at++];
    return node_result_at(im, l->states + k, part->type, n, extent);
}

static bool states_next(struct import *im, struct loop *l) {
    for (int k = 0; k < l->states; k++) {
        struct tensor *t = body_result(im, l, l->head / 2 + k), *s = l->start[k];
        const char *index[MAX_DIMS];
        if (!t) return false;
        if (t->type != s->type || t->ndims != s->ndims ||
            memcmp(t->extent, s->extent, (size_t)s->ndims * sizeof *s->extent))
            return node_fail(
                im, "its body makes '%s' %s%s of what is %s%s: a state keeps its type and shape",
                name_shown(im->arena, body_input(l, l->head + k)), type_name(t->type),
                shape_text(im->arena, t->ndims, t->extent), type_name(s->type),
                shape_text(im->arena, s->ndims, s->extent));
        axes_release(im);
        axes_for(im, s->ndims, s->extent, index);
        struct tensor now = *s;
        now.buffer = l->state[k];
        struct tensor next = *s;
        next.buffer = arena_printf(im->arena, "%s'", l->state[k]);
        emit_statement(
            im, "%s = %s", tensor_element(im, &next, index),
            while_it_lasts(im, l, tensor_element(im, t, index), tensor_element(im, &now, index)));
    }
    return true;
}

static bool outputs_write(struct import *im, struct loop *l, struct tensor *const *part,
                          int64_t batches) {
    for (int k = 0; k < l->outputs; k++) {
        const char *index[MAX_DIMS];
        struct tensor *y = output_whole(im, l, k, part[k], batches);
        if (!y) return false;
        axes_release(im);
        axes_for(im, part[k]->ndims, part[k]->extent, index);
        emit_statement(im, "%s = %s",
                       whole_element(im, l, y, &l->out[k], step_text(im, l, &l->out[k]), index),
                       while_it_lasts(im, l, tensor_element(im, part[k], index), "0"));
    }
    return true;
}

/* The last states are results of the node. */
static bool states_close(struct import *im, struct loop *l, int64_t batches) {
    for (int k = 0; k < l->states; k++) {
        int64_t extent[MAX_DIMS] = {batches};
        const char *index[MAX_DIMS], *all[MAX_DIMS] = {l->batch};
        int n = l->end[k]->ndims, b = l->batch != NULL;
        memcpy(extent + b, l->end[k]->extent, (size_t)n * sizeof *extent);
        struct tensor *y = node_result_at(im, k, l->end[k]->type, n + b, extent);
        if (!y) return false;
        axes_release(im);
        axes_for(im, n, l->end[k]->extent, index);
        for (int d = 0; d < n; d++) all[d + b] = index[d];
        emit_statement(im, "%s = %s", tensor_element(im, y, all),
                       tensor_element(im, l->end[k], index));
    }
    return true;
}

/* Its condition is no result where it was needed for counting alone. */
static bool body_lower(struct import *im, const struct loop *l) {
    Onnx__GraphProto g = *l->body;
    if (l->head && !l->live) g.output++, g.n_output--;
    return graph_nodes(im, &g);
}

static bool live_next(struct import *im, const struct loop *l) {
    struct tensor *c = body_result(im, l, 0);
    if (!c || c->type != TYPE_BOOL || c->elements != 1)
        return c && node_fail(im, "whether it goes on is not one truth");
    emit_statement(im, "%s'[0] = %s[0] & %s", l->live, l->live,
                   tensor_element(im, c, (const char *[]){"0"}));
    return true;
}

static bool recurrence(struct import *im, struct loop *l, int64_t batches, const char *count,
                       const char *go) {
    struct tensor **part = arena_array(im->arena, (size_t)l->outputs + 1, sizeof *part);
    l->step = name_unique(im, "t");
    if (!states_open(im, l)) return false;
    scope_open(im, l);
    bool ok = inputs_bind(im, l);
    if (ok && count) {
        struct tensor *it = tensor_temporary(im, "iteration", "", TYPE_I64, 0, NULL);
        ok = it != NULL;
        if (ok) emit_statement(im, "%s = i64(%s)", tensor_element(im, it, NULL), l->step);
        if (ok) name_put(im->arena, &im->value, count, it);
    }
    if (go) tensor_put_known(im, go, TYPE_BOOL, 1);
    ok = ok && body_lower(im, l) && states_next(im, l) && (!l->live || live_next(im, l));
    for (int k = 0; ok && k < l->outputs; k++)
        ok = (part[k] = body_result(im, l, l->head / 2 + l->states + k)) != NULL;
    scope_close(im, l);
    if (!ok || !outputs_write(im, l, part, batches)) return false;
    emit_statement(im, "}");
    return states_close(im, l, batches);
}

bool op_scan(struct import *im) {
    struct loop l = {.first = im->opset < 9};
    int64_t inputs = -1, batches = 1;
    if (!body_read(im, &l) || !attribute_int(im, "num_scan_inputs", &inputs)) return false;
    int given = (int)im->node->n_input - l.first;
    if (inputs < 1 || inputs > given)
        return node_fail(im, "'num_scan_inputs' is %" PRId64 " of %d inputs", inputs, given);
    l.inputs = (int)inputs;
    l.states = given - l.inputs;
    l.outputs = (int)l.body->n_output - l.states;
    for (int k = l.first; k < (int)im->node->n_input; k++)
        if (!node_input(im, k)) return node_fail(im, "input %d is missing", k);
    if (!body_counts(im, &l, (size_t)given)) return false;
    bool old = l.first;
    if (!read_scanned(im, old ? NULL : "scan_input_axes",
                      old ? "directions" : "scan_input_directions", l.inputs, &l.in) ||
        !read_scanned(im, old ? NULL : "scan_output_axes", old ? "" : "scan_output_directions",
                      l.outputs, &l.out))
        return false;
    if (old) {
        l.batch = name_unique(im, "b");
        l.lengths = node_input(im, 0);
        batches = node_input(im, 1)->ndims ? node_input(im, 1)->extent[0] : 0;
        for (int k = 1; k < (int)im->node->n_input; k++)
            if (node_input(im, k)->ndims < 1 || node_input(im, k)->extent[0] != batches)
                return node_fail(im, "its inputs have not all %" PRId64 " sequences", batches);
        if (l.lengths && (l.lengths->ndims != 1 || l.lengths->extent[0] != batches ||
                          l.lengths->type != TYPE_I64))
            return node_fail(im, "the lengths of its sequences are not i64[%" PRId64 "]", batches);
    }
    if (!count_steps(im, &l)) return false;
    if (old) emit_statement(im, "recur %s: %" PRId64 " {", l.batch, batches);
    bool ok = recurrence(im, &l, batches, NULL, NULL);
    if (old) emit_statement(im, "}");
    return ok;
}

/* ---- Loop ---- */

static bool listed(const struct name_table *t, const char *name) {
    return *name && name_find(t, name);
}

/* Results of both branches are declared alike, with all their dimensions: which is taken need not
 * be known when compiling. */
static bool declared_alike(const Onnx__ValueInfoProto *a, const Onnx__ValueInfoProto *b) {
    const Onnx__TypeProto__Tensor *x = a->type ? a->type->tensor_type : NULL,
                                  *y = b->type ? b->type->tensor_type : NULL;
    if (!x || !y || x->elem_type != y->elem_type || !x->shape || !y->shape ||
        x->shape->n_dim != y->shape->n_dim)
        return false;
    for (size_t d = 0; d < x->shape->n_dim; d++) {
        const Onnx__TensorShapeProto__Dimension *m = x->shape->dim[d], *n = y->shape->dim[d];
        if (m->value_case != ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE ||
            n->value_case != m->value_case || m->dim_value != n->dim_value)
            return false;
    }
    return true;
}

static bool branches_alike(const Onnx__NodeProto *n) {
    const Onnx__GraphProto *branch[2] = {NULL, NULL};
    int found = 0;
    for (size_t k = 0; k < n->n_attribute; k++)
        if (n->attribute[k]->g && found < 2) branch[found++] = n->attribute[k]->g;
    bool alike = found == 2 && branch[0]->n_output == branch[1]->n_output;
    for (size_t k = 0; alike && k < branch[0]->n_output; k++)
        alike = declared_alike(branch[0]->output[k], branch[1]->output[k]);
    return alike;
}

/* Does this operator need its k-th input when compiling? */
static bool needs_value(const Onnx__NodeProto *n, size_t k) {
    static const char *const shapes[] = {
        "Slice", "Reshape", "Expand",    "Tile",  "Pad", "Range", "ConstantOfShape", "Resize",
        "TopK",  "Squeeze", "Unsqueeze", "Split", "If",  "Loop",  "Trilu",           "SequenceAt"};
    static const char *const first[] = {"Range", "If", "ConstantOfShape", "Loop"};
    bool some = false, from_first = false;
    if (!n->op_type || (!strcmp(n->op_type, "If") && branches_alike(n))) return false;
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        some |= !strcmp(n->op_type, shapes[s]);
    for (size_t s = 0; s < sizeof first / sizeof *first; s++)
        from_first |= !strcmp(n->op_type, first[s]);
    return some && (k > 0 || from_first);
}

/* Does an operator need something when compiling that follows from the number of the iteration? */
static bool needs_number(struct import *im, const Onnx__GraphProto *g, struct name_table *from) {
    for (size_t i = 0; i < g->n_node; i++) {
        const Onnx__NodeProto *n = g->node[i];
        bool any = false;
        for (size_t k = 0; k < n->n_input; k++) {
            bool follows = listed(from, n->input[k]);
            any |= follows;
            if (follows && needs_value(n, k)) return true;
        }
        for (size_t k = 0; k < n->n_attribute; k++) {
            const Onnx__GraphProto *inner = n->attribute[k]->g;
            if (inner && needs_number(im, inner, from)) return true;
            for (size_t o = 0; inner && o < inner->n_output; o++)
                any |= inner->output[o]->name && listed(from, inner->output[o]->name);
        }
        for (size_t k = 0; any && k < n->n_output; k++)
            if (*n->output[k]) name_put(im->arena, from, n->output[k], im);
    }
    return false;
}

static bool follows(struct import *im, const Onnx__GraphProto *g, struct name_table *from,
                    const char *name) {
    const struct tensor *t = name_find(&im->value, name);
    for (size_t i = 0; i < g->n_initializer; i++)
        if (g->initializer[i]->name && !strcmp(g->initializer[i]->name, name)) return true;
    return !*name || listed(from, name) || (t && t->data);
}

/* Lists what nodes make of what is listed and of constants. */
static void list_made(struct import *im, const Onnx__GraphProto *g, struct name_table *from) {
    for (size_t i = 0; i < g->n_node; i++) {
        const Onnx__NodeProto *n = g->node[i];
        bool made = true;
        for (size_t k = 0; k < n->n_attribute; k++) made &= !n->attribute[k]->g;
        for (size_t k = 0; k < n->n_input; k++) made &= follows(im, g, from, n->input[k]);
        for (size_t k = 0; made && k < n->n_output; k++)
            name_put(im->arena, from, n->output[k], im);
    }
}

/* Lists the number of the iteration, and states that are known in the first one and follow from
 * what is known in each: counters. */
static void list_counters(struct import *im, const struct loop *l, struct name_table *from) {
    bool *counts = arena_array(im->arena, (size_t)l->states + 1, sizeof *counts), fewer = true;
    for (int k = 0; k < l->states; k++) counts[k] = node_input(im, l->first + k)->data != NULL;
    while (fewer) {
        struct name_table made = {0};
        fewer = false;
        name_put(im->arena, &made, body_input(l, 0), im);
        for (int k = 0; k < l->states; k++)
            if (counts[k]) name_put(im->arena, &made, body_input(l, l->head + k), im);
        list_made(im, l->body, &made);
        for (int k = 0; k < l->states; k++)
            if (counts[k] && !follows(im, l->body, &made, l->body->output[1 + k]->name))
                counts[k] = false, fewer = true;
    }
    name_put(im->arena, from, body_input(l, 0), im);
    for (int k = 0; k < l->states; k++)
        if (counts[k] && strcmp(body_input(l, l->head + k), l->body->output[1 + k]->name) != 0)
            name_put(im->arena, from, body_input(l, l->head + k), im);
}

/* Each iteration by itself: its number is known. */
static bool iterations(struct import *im, struct loop *l) {
    struct tensor **now = arena_array(im->arena, (size_t)l->states + 1, sizeof *now);
    struct tensor **whole = arena_array(im->arena, (size_t)l->outputs + 1, sizeof *whole);
    for (int k = 0; k < l->states; k++) now[k] = node_input(im, l->first + k);
    for (int64_t t = 0; t < l->steps; t++) {
        struct tensor **part = arena_array(im->arena, (size_t)l->outputs + 1, sizeof *part);
        scope_open(im, l);
        tensor_put_known(im, body_input(l, 0), TYPE_I64, t);
        tensor_put_known(im, body_input(l, 1), TYPE_BOOL, 1);
        for (int k = 0; k < l->states; k++)
            name_put(im->arena, &im->value, body_input(l, l->head + k), now[k]);
        bool ok = graph_nodes(im, l->body);
        struct tensor *c = ok ? body_result(im, l, 0) : NULL;
        ok = c && (c->data || node_fail(im, "whether it goes on is not known when compiling"));
        for (int k = 0; ok && k < l->states; k++) ok = (now[k] = body_result(im, l, 1 + k)) != NULL;
        for (int k = 0; ok && k < l->outputs; k++)
            ok = (part[k] = body_result(im, l, 1 + l->states + k)) != NULL;
        scope_close(im, l);
        if (!ok) return false;
        if (!tensor_int(c, 0)) l->steps = t + 1; /* the last one */
        l->step = arena_printf(im->arena, "%" PRId64, t);
        for (int k = 0; k < l->outputs; k++) {
            const char *index[MAX_DIMS];
            if (!whole[k] && !(whole[k] = output_whole(im, l, k, part[k], 1))) return false;
            axes_release(im);
            axes_for(im, part[k]->ndims, part[k]->extent, index);
            emit_statement(im, "%s = %s",
                           whole_element(im, l, whole[k], &l->out[k], l->step, index),
                           tensor_element(im, part[k], index));
        }
        if (whole[0] && l->outputs && whole[0]->extent[0] != l->steps)
            return node_fail(im, "it ends before its trip count: how often it runs must be known");
    }
    for (int k = 0; k < l->states; k++) {
        if (!node_wants(im, k)) continue;
        if (now[k]->list)
            name_put(im->arena, &im->value, im->node->output[k], now[k]);
        else if (!node_alias_at(im, k, now[k], now[k]->ndims, now[k]->extent))
            return false;
    }
    return true;
}

static bool carries_sequence(struct import *im, const struct loop *l) {
    for (int k = 0; k < l->states; k++)
        if (node_input(im, l->first + k)->list) return true;
    return false;
}

/* Iterations at most, and whether what they compute decides how many there are. */
static bool loop_ends(struct import *im, struct loop *l, struct tensor *go, bool limited) {
    if (go && (go->elements != 1 || go->type != TYPE_BOOL))
        return node_fail(im, "its condition is not one truth");
    if (go && go->data && !tensor_int(go, 0)) l->steps = 0;
    l->go = go && !go->data ? go : NULL;
    enum loop_end end = l->steps ? loop_count(im, l->body, &l->steps) : LOOP_END_KNOWN;
    l->counted = end == LOOP_END_KNOWN && !l->go;
    if (end == LOOP_END_FAILED) return false;
    if (!limited && l->steps == MAX_COUNT)
        return node_fail(im, "how often it runs at most is not known when compiling: it has no "
                             "trip count, and its condition follows from values");
    if (!l->counted && l->outputs > 0)
        return node_fail(im, "how long its scanned results are follows from values: its condition "
                             "is not known when compiling");
    return true;
}

bool op_loop(struct import *im) {
    struct loop l = {.first = 2, .head = 2, .steps = -1};
    struct tensor *count = node_given(im, 0), *go = node_given(im, 1);
    if (!body_read(im, &l)) return false;
    l.states = (int)im->node->n_input - 2;
    l.outputs = (int)l.body->n_output - 1 - l.states;
    if (!body_counts(im, &l, (size_t)(2 + l.states))) return false;
    for (int k = 2; k < (int)im->node->n_input; k++)
        if (!node_input(im, k)) return node_fail(im, "input %d is missing", k);
    if (count ? !count->data || count->elements != 1 : im->node->n_input > 0 && *im->node->input[0])
        return node_fail(im, "how often it runs at most is not known when compiling: give the trip "
                             "count by value (-D NAME=3)");
    bool limited = count && tensor_int(count, 0) <= MAX_COUNT;
    l.steps = limited ? tensor_int(count, 0) : MAX_COUNT;
    if (l.steps < 0) return node_fail(im, "its trip count is %" PRId64, l.steps);
    if (!loop_ends(im, &l, go, limited)) return false;
    if (l.steps == 0 && l.outputs > 0)
        return node_fail(im, "it runs no iteration: its scanned results are empty");
    l.out = arena_array(im->arena, (size_t)l.outputs + 1, sizeof *l.out);
    struct name_table from = {0};
    list_counters(im, &l, &from);
    if (l.steps == 0 || carries_sequence(im, &l) || needs_number(im, l.body, &from))
        return iterations(im, &l);
    return recurrence(im, &l, 1, body_input(&l, 0), body_input(&l, 1));
}
#endif
