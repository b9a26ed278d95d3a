/* The ends of a graph: inputs with the dimensions that are given for them, outputs, initialisers.
 */
#include "onnx/onnx.h"

#include <stdlib.h>

#ifdef ISAMAP_WITH_ONNX
#include "onnx/onnx_int.h"
#include "ir/memory.h"

#include <inttypes.h>
#include <string.h>

/* What was given for the name; false: nothing. */
static bool given(const struct bindings *dims, bool *used, const char *name, int64_t *out) {
    for (int i = 0; dims && i < dims->n; i++) {
        if (strcmp(dims->at[i].name, name) != 0) continue;
        used[i] = true;
        *out = dims->at[i].value;
        return true;
    }
    return false;
}

/* A dimension of the input's shape may have a name that has a value too: the same one. */
static bool shape_agrees(struct import *im, const char *input_name, int d, const char *name,
                         const struct bindings *dims, bool *used, int64_t shape) {
    int64_t value;
    if (!name || !given(dims, used, name, &value) || value == shape) return true;
    return graph_fail(im,
                      "input '%s': dimension %d is given as %" PRId64 ", but its name '%s' has the "
                      "value %" PRId64,
                      name_shown(im->arena, input_name), d, shape, name_shown(im->arena, name),
                      value);
}

/* A dimension is given as INPUT[d], or by its own name; one that the model fixes stays. */
static bool dimension_value(struct import *im, const char *input_name, int d,
                            const Onnx__TensorShapeProto__Dimension *dim,
                            const struct bindings *dims, bool *used, int64_t *out) {
    const char *own = arena_printf(im->arena, "%s[%d]", input_name, d);
    bool fixed = dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE &&
                 dim->dim_value != -1;
    const char *name = dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM
                           ? dim->dim_param
                           : NULL;
    if (given(dims, used, own, out)) {
        if (fixed && *out != dim->dim_value)
            return graph_fail(im, "input '%s': dimension %d is %" PRId64 ", not %" PRId64,
                              name_shown(im->arena, input_name), d, (int64_t)dim->dim_value, *out);
        if (*out < 0)
            return graph_fail(
                im, "input '%s': dimension %d is given as %" PRId64 ", expected at least 0",
                name_shown(im->arena, input_name), d, *out);
        return shape_agrees(im, input_name, d, name, dims, used, *out);
    }
    if (dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE && !fixed)
        return graph_fail(im,
                          "input '%s': dimension %d is open; give the shape with --shape %s=...",
                          name_shown(im->arena, input_name), d, name_shown(im->arena, input_name));
    if (dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE) {
        *out = dim->dim_value;
        return *out >= 0 ||
               graph_fail(im, "input '%s': dimension %d is %" PRId64 ", expected at least 0",
                          name_shown(im->arena, input_name), d, *out);
    }
    if (!name || !*name)
        return graph_fail(im,
                          "input '%s': dimension %d has neither a value nor a name; give the shape "
                          "with --shape %s=...",
                          name_shown(im->arena, input_name), d, name_shown(im->arena, input_name));
    if (given(dims, used, name, out))
        return *out >= 0 || graph_fail(im, "'%s' is %" PRId64 ", but a dimension is at least 0",
                                       name_shown(im->arena, name), *out);
    return graph_fail(im, "input '%s': dimension '%s' has no value; give it with -D %s=...",
                      name_shown(im->arena, input_name), name_shown(im->arena, name),
                      name_shown(im->arena, name));
}

/* Type and rank, which is `ndims` where the model does not say it (-1: not given); NULL, or what is
 * wrong with them. */
static const char *input_type(struct import *im, const Onnx__ValueInfoProto *v, int64_t ndims,
                              struct tensor *t) {
    if (!v->type || v->type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE)
        return "it is not a tensor";
    const Onnx__TypeProto__Tensor *type = v->type->tensor_type;
    const char *of = tensor_type_name(type->elem_type);
    if (!tensor_type(type->elem_type, &t->type))
        return arena_printf(im->arena, "the type %s is not supported",
                            of ? of : "that its number means");
    if (!type->shape && ndims < 0) return "it has no shape; give it with --shape";
    if (type->shape ? type->shape->n_dim > MAX_DIMS : ndims > MAX_DIMS)
        return "it has more than 16 dimensions";
    t->ndims = type->shape ? (int)type->shape->n_dim : (int)ndims;
    if (ndims < 0 || ndims == t->ndims) return NULL;
    return arena_printf(im->arena, "it has %d dimensions, but the shape given has %d", t->ndims,
                        (int)ndims);
}

/* NULL after reporting */
static struct tensor *read_input(struct import *im, const Onnx__ValueInfoProto *v,
                                 const struct bindings *dims, bool *used) {
    struct tensor *t = arena_alloc(im->arena, sizeof *t);
    t->name = v->name;
    int64_t ndims = -1;
    given(dims, used, arena_printf(im->arena, "%s[]", v->name), &ndims);
    const char *problem = input_type(im, v, ndims, t);
    Onnx__TensorShapeProto__Dimension open = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__INIT;
    for (int d = 0; !problem && d < t->ndims; d++) {
        const Onnx__TensorShapeProto *shape = v->type->tensor_type->shape;
        if (!dimension_value(im, v->name, d, shape ? shape->dim[d] : &open, dims, used,
                             &t->extent[d]))
            return NULL;
    }
    if (!problem && !tensor_count(t)) problem = "it is too large";
    if (problem) graph_fail(im, "input '%s': %s", name_shown(im->arena, v->name), problem);
    return problem ? NULL : t;
}

/* An input of no elements, as a past of no places, is known. One of one number that -D gives by the
 * input's name is a constant: a rate, a flag, a length. */
static bool given_value(struct import *im, const struct bindings *dims, bool *used,
                        struct tensor *t) {
    int64_t v = 0;
    if (t->elements > 1 || (t->elements == 1 && !given(dims, used, t->name, &v))) return false;
    char *data = arena_alloc(im->arena, type_size(t->type));
    type_store(t->type, data, type_convert(t->type, TYPE_I64, (union value){.i = v}));
    t->data = data;
    t->buffer = name_unique(im, t->name);
    return true;
}

bool graph_read_inputs(struct import *im, struct onnx_model *model, const Onnx__GraphProto *g,
                       const struct bindings *dims, bool *used) {
    model->input = arena_array(im->arena, g->n_input, sizeof *model->input);
    for (size_t i = 0; i < g->n_input; i++) {
        const char *name = g->input[i]->name;
        if (!name || !*name) return graph_fail(im, "input %zu has no name", i);
        struct tensor *known = name_find(&im->value, name);
        if (known && known->data) continue; /* an initialiser gives it */
        if (known) return graph_fail(im, "two inputs are named '%s'", name_shown(im->arena, name));
        struct tensor *t = read_input(im, g->input[i], dims, used);
        if (!t) return false;
        if (given_value(im, dims, used, t)) {
            name_put(im->arena, &im->value, name, t);
            continue;
        }
        t->buffer = name_unique(im, name);
        t->declared = true;
        emit_declare(im, &im->ins, "in", t);
        name_put(im->arena, &im->value, name, t);
        model->input[model->ninputs++] =
            (struct onnx_name){arena_strdup(im->arena, name), t->buffer};
    }
    return true;
}

/* Is the name an input of a node of the graph or of one inside it, or an output? */
static bool graph_reads(const Onnx__GraphProto *g, const char *name) {
    bool reads = false;
    for (size_t i = 0; i < g->n_output && !reads; i++)
        reads = g->output[i]->name && strcmp(g->output[i]->name, name) == 0;
    for (size_t i = 0; i < g->n_node && !reads; i++) {
        const Onnx__NodeProto *node = g->node[i];
        for (size_t k = 0; k < node->n_input && !reads; k++)
            reads = strcmp(node->input[k], name) == 0;
        for (size_t k = 0; k < node->n_attribute && !reads; k++)
            reads = node->attribute[k]->g && graph_reads(node->attribute[k]->g, name);
    }
    return reads;
}

/* `p` holds it, or `sparse` does. One of a type that is not supported is left out where nothing
 * reads it. */
static bool read_initialiser(struct import *im, const Onnx__GraphProto *g, size_t i,
                             const Onnx__TensorProto *p, const Onnx__SparseTensorProto *sparse) {
    const char *name = p ? p->name : NULL;
    if (!name || !*name) return graph_fail(im, "initialiser %zu has no name", i);
    if (name_find(&im->value, name))
        return graph_fail(im, "two initialisers are named '%s'", name_shown(im->arena, name));
    if (!tensor_readable(p) && !graph_reads(g, name)) return true;
    struct tensor *t = arena_alloc(im->arena, sizeof *t);
    const char *what = arena_printf(im->arena, "initialiser '%s'", name_shown(im->arena, name));
    t->name = name;
    name_put(im->arena, &im->value, name, t);
    return sparse ? tensor_from_sparse(im->arena, im->path, what, sparse, t, im->diags)
                  : tensor_from_proto(im->arena, im->path, what, p, t, im->diags);
}

bool graph_read_initialisers(struct import *im, const Onnx__GraphProto *g) {
    for (size_t i = 0; i < g->n_initializer; i++)
        if (!read_initialiser(im, g, i, g->initializer[i], NULL)) return false;
    for (size_t i = 0; i < g->n_sparse_initializer; i++)
        if (!read_initialiser(im, g, i, g->sparse_initializer[i]->values, g->sparse_initializer[i]))
            return false;
    return true;
}

/* They have been copied: weights are held once while the graph is lowered and compiled. */
void graph_drop_raw(const Onnx__GraphProto *g) {
    for (size_t i = 0; i < g->n_initializer; i++) {
        ProtobufCBinaryData *raw = &g->initializer[i]->raw_data;
        free(raw->data);
        *raw = (ProtobufCBinaryData){0};
    }
}

/* After inputs and outputs, which keep their names. */
void graph_name_initialisers(struct import *im, const Onnx__GraphProto *g) {
    for (size_t i = 0; i < g->n_initializer + g->n_sparse_initializer; i++) {
        const Onnx__TensorProto *p = i < g->n_initializer
                                         ? g->initializer[i]
                                         : g->sparse_initializer[i - g->n_initializer]->values;
        struct tensor *t = name_find(&im->value, p->name);
        if (t) t->buffer = name_unique(im, t->name);
    }
}

bool graph_read_outputs(struct import *im, struct onnx_model *model, const Onnx__GraphProto *g) {
    if (g->n_output == 0) return graph_fail(im, "the graph has no outputs");
    model->output = arena_array(im->arena, g->n_output, sizeof *model->output);
    for (size_t i = 0; i < g->n_output; i++) {
        const char *name = g->output[i]->name;
        if (!name || !*name) return graph_fail(im, "output %zu has no name", i);
        if (name_find(&im->result, name))
            return graph_fail(im, "two outputs are named '%s'", name_shown(im->arena, name));
        struct graph_output *out = arena_alloc(im->arena, sizeof *out);
        out->info = g->output[i];
        out->buffer = name_unique(im, name);
        name_put(im->arena, &im->result, name, out);
        model->output[model->noutputs++] =
            (struct onnx_name){arena_strdup(im->arena, name), out->buffer};
    }
    return true;
}

/* The output of this name is a copy of the tensor. */
static bool output_copy(struct import *im, const Onnx__GraphProto *g, const char *name,
                        struct tensor *from) {
    char *names[1] = {(char *)name};
    Onnx__NodeProto node = ONNX__NODE_PROTO__INIT;
    node.op_type = "Identity";
    node.output = names;
    node.n_output = 1;
    im->node = &node;
    im->node_index = (int)g->n_node;
    im->now = NULL;
    struct tensor *y = node_result(im, from->type, from->ndims, from->extent);
    return y && emit_copy(im, y, from);
}

/* An output that is a sequence: each part is an output, with its number behind the name. */
static bool output_parts(struct import *im, const Onnx__GraphProto *g, const char *name,
                         const struct sequence *s, struct onnx_name *to) {
    for (int k = 0; k < s->n; k++) {
        struct graph_output *out = arena_alloc(im->arena, sizeof *out);
        const char *part = arena_printf(im->arena, "%s_%d", name, k);
        while (name_find(&im->value, part) || name_find(&im->result, part))
            part = arena_printf(im->arena, "%s_", part);
        if (s->part[k]->list)
            return graph_fail(im, "output '%s' is a sequence of sequences",
                              name_shown(im->arena, name));
        out->buffer = name_unique(im, part);
        name_put(im->arena, &im->result, part, out);
        if (!output_copy(im, g, part, s->part[k])) return false;
        to[k] = (struct onnx_name){part, out->buffer};
    }
    diag_warn(im->diags, im->path, 0, 0,
              "output '%s' is a sequence; its %d parts are outputs of their own, '%s_0' and so on",
              name_shown(im->arena, name), s->n, name_shown(im->arena, name));
    return true;
}

bool graph_pass_outputs(struct import *im, struct onnx_model *model, const Onnx__GraphProto *g) {
    struct onnx_name *all = NULL;
    int n = 0, cap = 0;
    for (size_t i = 0; i < g->n_output; i++) {
        const char *name = g->output[i]->name;
        struct graph_output *out = name_find(&im->result, name);
        struct tensor *t = name_find(&im->value, name);
        if (!t)
            return graph_fail(
                im,
                "output '%s' is made by nothing in the graph, or as a result that its "
                "operator has not here",
                name_shown(im->arena, name));
        const struct sequence *s = t->list;
        bool parts = s && !(s->optional && s->n == 1);
        int places = parts ? s->n : 1;
        if (parts && s->n == 0)
            return graph_fail(im, "output '%s' is %s", name_shown(im->arena, name),
                              s->optional ? "an optional without an element"
                                          : "a sequence without parts");
        for (int k = 0; k < places; k++) {
            GROW(im->arena, all, n, cap);
            all[n++] = model->output[i];
        }
        if (parts
                ? !output_parts(im, g, name, s, &all[n - places])
                : (s || t->buffer != out->buffer) && !output_copy(im, g, name, s ? s->part[0] : t))
            return false;
    }
    model->output = all;
    model->noutputs = n;
    return true;
}

/* Values that are wanted beside the graph's outputs: those that some node makes. */
void graph_keep_values(struct import *im, const struct onnx_options *options) {
    for (int i = 0; options && i < options->nkeep; i++) {
        const char *name = options->keep[i];
        if (name_find(&im->result, name) || name_find(&im->value, name)) continue;
        struct graph_output *out = arena_alloc(im->arena, sizeof *out);
        out->buffer = name_unique(im, name);
        name_put(im->arena, &im->result, arena_strdup(im->arena, name), out);
    }
}

/* Those of them that were made become outputs of the model. */
void graph_name_kept(struct import *im, struct onnx_model *model,
                     const struct onnx_options *options) {
    struct onnx_name *all = arena_array(
        im->arena, (size_t)(model->noutputs + (options ? options->nkeep : 0)), sizeof *all);
    int graph = model->noutputs;
    memcpy(all, model->output, (size_t)graph * sizeof *all);
    model->output = all;
    for (int i = 0; options && i < options->nkeep; i++) {
        const char *name = options->keep[i];
        const struct graph_output *out = name_find(&im->result, name);
        const struct tensor *t = name_find(&im->value, name);
        bool own = out && t && strcmp(t->buffer, out->buffer) == 0;
        for (int k = 0; own && k < graph; k++) own = strcmp(all[k].onnx, name) != 0;
        if (own)
            all[model->noutputs++] = (struct onnx_name){arena_strdup(im->arena, name), out->buffer};
    }
}

bool graph_all_dims_used(struct import *im, const struct bindings *dims, const bool *used) {
    for (int i = 0; dims && i < dims->n; i++) {
        const char *name = dims->at[i].name;
        size_t n = strlen(name);
        if (used[i]) continue;
        if (n > 2 && strcmp(name + n - 2, "[]") == 0) name = arena_strndup(im->arena, name, n - 2);
        return graph_fail(im, "no input has the name '%s', or a dimension of that name",
                          name_shown(im->arena, name));
    }
    return true;
}

#endif
