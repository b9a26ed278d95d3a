#include "onnx/onnx.h"

#include <stdlib.h>

#ifdef ISAMAP_WITH_ONNX
#include "onnx/onnx_int.h"
#include "ir/memory.h"

#include <inttypes.h>
#include <string.h>

/* What opsets 23 to 28 changed of the operators here are types, which are taken in all opsets, and
 * attributes, which are refused by name where they are used. */
enum { FIRST_OPSET = 1, LAST_OPSET = 28 };

bool graph_fail(struct import *im, const char *fmt, ...) {
    va_list args;
    char text[512];
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    diag_line(im->diags, im->path, 0, 0, "%s", text);
    return false;
}

static const char *shown(struct import *im, const char *name) {
    return name_shown(im->arena, name);
}

/* ---- opsets ---- */

static bool read_opset(struct import *im, const Onnx__ModelProto *m) {
    im->opset = 0;
    for (size_t i = 0; i < m->n_opset_import; i++)
        if (standard_domain(m->opset_import[i]->domain) && m->opset_import[i]->version > im->opset)
            im->opset = m->opset_import[i]->version;
    if (m->n_opset_import == 0) im->opset = 1; /* what models before IR version 3 mean */
    if (im->opset == 0)
        return graph_fail(im, "the model imports no operators of the domain ai.onnx");
    if (im->opset < FIRST_OPSET || im->opset > LAST_OPSET)
        return graph_fail(im, "opset %" PRId64 " is not known: expected %d to %d", im->opset,
                          FIRST_OPSET, LAST_OPSET);
    return true;
}

/* ---- inputs, outputs, initialisers ---- */

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

/* A dimension is given as INPUT[d], or by its own name; one that the model fixes stays. */
static bool dimension_value(struct import *im, const char *input_name, int d,
                            const Onnx__TensorShapeProto__Dimension *dim,
                            const struct bindings *dims, bool *used, int64_t *out) {
    const char *own = arena_printf(im->arena, "%s[%d]", input_name, d);
    bool fixed = dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE &&
                 dim->dim_value != -1;
    if (given(dims, used, own, out)) {
        if (fixed && *out != dim->dim_value)
            return graph_fail(im, "input '%s': dimension %d is %" PRId64 ", not %" PRId64,
                              shown(im, input_name), d, (int64_t)dim->dim_value, *out);
        return *out >= 1 ||
               graph_fail(im,
                          "input '%s': dimension %d is given as %" PRId64 ", expected at least 1",
                          shown(im, input_name), d, *out);
    }
    if (dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE && !fixed)
        return graph_fail(im,
                          "input '%s': dimension %d is open; give the shape with --shape %s=...",
                          shown(im, input_name), d, shown(im, input_name));
    if (dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE) {
        *out = dim->dim_value;
        return *out >= 1 ||
               graph_fail(im, "input '%s': dimension %d is %" PRId64 ", expected at least 1",
                          shown(im, input_name), d, *out);
    }
    const char *name = dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM
                           ? dim->dim_param
                           : NULL;
    if (!name || !*name)
        return graph_fail(im,
                          "input '%s': dimension %d has neither a value nor a name; give the shape "
                          "with --shape %s=...",
                          shown(im, input_name), d, shown(im, input_name));
    if (given(dims, used, name, out))
        return *out >= 1 || graph_fail(im, "'%s' is %" PRId64 ", but a dimension is at least 1",
                                       shown(im, name), *out);
    return graph_fail(im, "input '%s': dimension '%s' has no value; give it with -D %s=...",
                      shown(im, input_name), shown(im, name), shown(im, name));
}

/* Type and rank; NULL, or what is wrong with them. */
static const char *input_type(struct import *im, const Onnx__ValueInfoProto *v, struct tensor *t) {
    if (!v->type || v->type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE)
        return "it is not a tensor";
    const Onnx__TypeProto__Tensor *type = v->type->tensor_type;
    const char *of = tensor_type_name(type->elem_type);
    if (!tensor_type(type->elem_type, &t->type))
        return arena_printf(im->arena, "the type %s is not supported",
                            of ? of : "that its number means");
    if (!type->shape) return "it has no shape";
    if (type->shape->n_dim > MAX_DIMS) return "it has more than 16 dimensions";
    t->ndims = (int)type->shape->n_dim;
    return NULL;
}

/* NULL after reporting */
static struct tensor *read_input(struct import *im, const Onnx__ValueInfoProto *v,
                                 const struct bindings *dims, bool *used) {
    struct tensor *t = arena_alloc(im->arena, sizeof *t);
    t->name = v->name;
    const char *problem = input_type(im, v, t);
    for (int d = 0; !problem && d < t->ndims; d++)
        if (!dimension_value(im, v->name, d, v->type->tensor_type->shape->dim[d], dims, used,
                             &t->extent[d]))
            return NULL;
    if (!problem && !tensor_count(t)) problem = "it is too large";
    if (problem) graph_fail(im, "input '%s': %s", shown(im, v->name), problem);
    return problem ? NULL : t;
}

/* An input of one number that -D gives by the input's name is a constant: a rate, a flag, a length.
 */
static bool given_value(struct import *im, const struct bindings *dims, bool *used,
                        struct tensor *t) {
    int64_t v;
    if (t->elements != 1 || !given(dims, used, t->name, &v)) return false;
    char *data = arena_alloc(im->arena, type_size(t->type));
    type_store(t->type, data, type_convert(t->type, TYPE_I64, (union value){.i = v}));
    t->data = data;
    t->buffer = name_unique(im, t->name);
    return true;
}

static bool read_inputs(struct import *im, struct onnx_model *model, const Onnx__GraphProto *g,
                        const struct bindings *dims, bool *used) {
    model->input = arena_array(im->arena, g->n_input, sizeof *model->input);
    for (size_t i = 0; i < g->n_input; i++) {
        const char *name = g->input[i]->name;
        if (!name || !*name) return graph_fail(im, "input %zu has no name", i);
        struct tensor *known = name_find(&im->value, name);
        if (known && known->data) continue; /* an initialiser gives it */
        if (known) return graph_fail(im, "two inputs are named '%s'", shown(im, name));
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

static bool read_initialisers(struct import *im, const Onnx__GraphProto *g) {
    if (g->n_sparse_initializer) return graph_fail(im, "sparse initialisers are not supported");
    for (size_t i = 0; i < g->n_initializer; i++) {
        const char *name = g->initializer[i]->name;
        if (!name || !*name) return graph_fail(im, "initialiser %zu has no name", i);
        if (name_find(&im->value, name))
            return graph_fail(im, "two initialisers are named '%s'", shown(im, name));
        struct tensor *t = arena_alloc(im->arena, sizeof *t);
        const char *what = arena_printf(im->arena, "initialiser '%s'", shown(im, name));
        t->name = name;
        if (!tensor_from_proto(im->arena, im->path, what, g->initializer[i], t, im->diags))
            return false;
        name_put(im->arena, &im->value, name, t);
    }
    return true;
}

/* They have been copied: weights are held once while the graph is lowered and compiled. */
static void drop_raw(const Onnx__GraphProto *g) {
    for (size_t i = 0; i < g->n_initializer; i++) {
        ProtobufCBinaryData *raw = &g->initializer[i]->raw_data;
        free(raw->data);
        *raw = (ProtobufCBinaryData){0};
    }
}

/* After inputs and outputs, which keep their names. */
static void name_initialisers(struct import *im, const Onnx__GraphProto *g) {
    for (size_t i = 0; i < g->n_initializer; i++) {
        struct tensor *t = name_find(&im->value, g->initializer[i]->name);
        t->buffer = name_unique(im, t->name);
    }
}

static bool read_outputs(struct import *im, struct onnx_model *model, const Onnx__GraphProto *g) {
    if (g->n_output == 0) return graph_fail(im, "the graph has no outputs");
    model->output = arena_array(im->arena, g->n_output, sizeof *model->output);
    for (size_t i = 0; i < g->n_output; i++) {
        const char *name = g->output[i]->name;
        if (!name || !*name) return graph_fail(im, "output %zu has no name", i);
        if (name_find(&im->result, name))
            return graph_fail(im, "two outputs are named '%s'", shown(im, name));
        struct graph_output *out = arena_alloc(im->arena, sizeof *out);
        out->info = g->output[i];
        out->buffer = name_unique(im, name);
        name_put(im->arena, &im->result, name, out);
        model->output[model->noutputs++] =
            (struct onnx_name){arena_strdup(im->arena, name), out->buffer};
    }
    return true;
}

/* Values that are wanted beside the graph's outputs: those that some node makes. */
static void keep_values(struct import *im, const struct onnx_options *options) {
    for (int i = 0; options && i < options->nkeep; i++) {
        const char *name = options->keep[i];
        if (name_find(&im->result, name) || name_find(&im->value, name)) continue;
        struct graph_output *out = arena_alloc(im->arena, sizeof *out);
        out->buffer = name_unique(im, name);
        name_put(im->arena, &im->result, arena_strdup(im->arena, name), out);
    }
}

/* Those of them that were made become outputs of the model. */
static void name_kept(struct import *im, struct onnx_model *model,
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

static bool all_dims_used(struct import *im, const struct bindings *dims, const bool *used) {
    for (int i = 0; dims && i < dims->n; i++)
        if (!used[i])
            return graph_fail(im, "no input has the name '%s', or a dimension of that name",
                              shown(im, dims->at[i].name));
    return true;
}

/* ---- nodes ---- */

static bool lower_nodes(struct import *im, const Onnx__GraphProto *g);

/* Its branches are read where the condition is known. */
static bool is_if(const Onnx__NodeProto *node) {
    return standard_domain(node->domain) && node->op_type && strcmp(node->op_type, "If") == 0;
}

/* Who makes each name; the values are pointers into `index`, index[i] == i. */
static bool find_makers(struct import *im, const Onnx__GraphProto *g, struct name_table *maker,
                        int *index) {
    for (size_t i = 0; i < g->n_node; i++) {
        im->node = g->node[i];
        im->node_index = index[i] = (int)i;
        for (size_t k = 0; k < g->node[i]->n_output; k++) {
            const char *name = g->node[i]->output[k];
            if (!*name) continue;
            if (name_find(maker, name) || name_find(&im->value, name))
                return node_fail(im, "its result '%s' has the name of another value",
                                 shown(im, name));
            name_put(im->arena, maker, name, &index[i]);
        }
    }
    return true;
}

static void mark_live(const struct name_table *maker, const char *name, bool *live, int *stack,
                      int *n) {
    const int *by = name_find(maker, name);
    if (!by || live[*by]) return;
    live[*by] = true;
    stack[(*n)++] = *by;
}

/* What a node reads, its branches with it. */
static void mark_read(const Onnx__NodeProto *node, const struct name_table *maker, bool *live,
                      int *stack, int *n) {
    for (size_t k = 0; k < node->n_input; k++) mark_live(maker, node->input[k], live, stack, n);
    for (size_t a = 0; a < node->n_attribute; a++) {
        const Onnx__GraphProto *g = node->attribute[a]->g;
        for (size_t i = 0; g && i < g->n_node; i++) mark_read(g->node[i], maker, live, stack, n);
        for (size_t i = 0; g && i < g->n_output; i++)
            mark_live(maker, g->output[i]->name, live, stack, n);
    }
}

/* Nodes that no output needs are left out. */
static void find_live(struct import *im, const Onnx__GraphProto *g, const struct name_table *maker,
                      bool *live) {
    int *stack = arena_array(im->arena, g->n_node + 1, sizeof *stack), n = 0;
    for (size_t i = 0; i < g->n_output; i++) mark_live(maker, g->output[i]->name, live, stack, &n);
    while (n > 0) {
        const Onnx__NodeProto *node = g->node[stack[--n]];
        mark_read(node, maker, live, stack, &n);
    }
}

static bool check_inputs(struct import *im, const struct name_table *maker, int least, int most) {
    const Onnx__NodeProto *node = im->node;
    if (most >= 0 && node->n_input > (size_t)most)
        return node_fail(im, "it has %zu inputs, expected at most %d", node->n_input, most);
    for (size_t k = 0; k < node->n_input || k < (size_t)least; k++) {
        if (k >= node->n_input || !*node->input[k]) {
            if (k < (size_t)least) return node_fail(im, "input %zu is missing", k);
            continue;
        }
        if (name_find(&im->value, node->input[k])) continue;
        const int *by = name_find(maker, node->input[k]);
        if (!by)
            return node_fail(im, "input '%s' is made by nothing in the graph",
                             shown(im, node->input[k]));
        if (*by == im->node_index)
            return node_fail(im, "input '%s' is its own result", shown(im, node->input[k]));
        if (*by < im->node_index)
            return node_fail(im, "input '%s' is a result of node %d that is not supported",
                             shown(im, node->input[k]), *by);
        return node_fail(im,
                         "input '%s' is made by node %d, which comes later: the graph has a cycle "
                         "or is not in order",
                         shown(im, node->input[k]), *by);
    }
    return true;
}

bool graph_nodes(struct import *im, const Onnx__GraphProto *g) {
    const Onnx__NodeProto *node = im->node;
    int index = im->node_index;
    bool *understood = im->attribute_used;
    if (!read_initialisers(im, g)) return false;
    name_initialisers(im, g);
    if (!lower_nodes(im, g)) return false;
    im->node = node;
    im->node_index = index;
    im->attribute_used = understood;
    im->empty_input = -1;
    return true;
}

/* The nodes of a branch, whose names are the graph's too; its results become the node's. */
static bool lower_branch(struct import *im, const Onnx__GraphProto *g) {
    const Onnx__NodeProto *node = im->node;
    if (g->n_output != node->n_output)
        return node_fail(im, "a branch has %zu results, but the node %zu", g->n_output,
                         node->n_output);
    if (!graph_nodes(im, g)) return false;
    for (size_t k = 0; k < g->n_output; k++) {
        struct tensor *t = name_find(&im->value, g->output[k]->name);
        if (!t) return node_fail(im, "the result %zu of its branch is made by nothing", k);
        if (node_wants(im, (int)k) && !node_alias_at(im, (int)k, t, t->ndims, t->extent))
            return false;
    }
    return true;
}

/* If with a condition that is known. */
static bool lower_if(struct import *im) {
    const struct tensor *c = node_given(im, 0);
    const Onnx__AttributeProto *yes = attribute_find(im, "then_branch"),
                               *no = attribute_find(im, "else_branch");
    if (!yes || !no || !yes->g || !no->g) return node_fail(im, "it has not two branches");
    if (!c || !c->data || c->elements != 1)
        return node_fail(im, "its condition is not known when compiling: give the inputs that it "
                             "depends on by value (-D NAME=1)");
    return lower_branch(im, tensor_int(c, 0) ? yes->g : no->g);
}

/* The operator as messages name it, with its domain where that is not ai.onnx. */
static const char *operator_name(struct import *im, const Onnx__NodeProto *node) {
    const char *name = node->op_type ? node->op_type : "";
    return standard_domain(node->domain) ? name
                                         : arena_printf(im->arena, "%s.%s", node->domain, name);
}

static void count_kind(struct import *im) {
    const char *name = operator_name(im, im->node);
    im->now = name_find(&im->kinds, name);
    if (!im->now) {
        im->now = arena_alloc(im->arena, sizeof *im->now);
        im->now->name = arena_strdup(im->arena, name_shown(im->arena, name));
        name_put(im->arena, &im->kinds, name, im->now);
        GROW(im->arena, im->kind, im->nkinds, im->kind_cap);
        im->kind[im->nkinds++] = im->now;
    }
    im->now->nodes++;
}

/* Integers of 4 bits are weights: what reads them makes floats, or sums of them. */
static bool reads_halves(struct import *im) {
    static const char *const readers[] = {"DequantizeLinear", "QLinear", "QGemm", "MatMulInteger",
                                          "ConvInteger"};
    const char *name = im->node->op_type;
    bool reader = false;
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++)
        reader |= strncmp(name, readers[i], strlen(readers[i])) == 0;
    for (int k = 0; k < (int)im->node->n_input && !reader; k++) {
        const struct tensor *t = node_given(im, k);
        if (t && t->halves)
            return node_fail(
                im, "input %d is of integers of 4 bits, which this operator does not take", k);
    }
    return true;
}

static bool lower_node(struct import *im, const struct name_table *maker) {
    const Onnx__NodeProto *node = im->node;
    count_kind(im);
    im->attribute_used = arena_array(im->arena, node->n_attribute, sizeof(bool));
    axes_release(im);
    const char *name = node->op_type ? node->op_type : "";
    const struct custom *own = name_find(&im->custom, operator_name(im, node));
    if (own)
        return check_inputs(im, maker, 0, -1) && custom_lower(im, own) && attributes_all_used(im);
    if (is_if(node)) return check_inputs(im, maker, 1, 1) && lower_if(im);
    const struct op_entry *op = op_find(node->domain, name);
    const struct formula *formula = op ? NULL : formula_find(node->domain, name);
    if (!op && !formula) return node_fail(im, "this operator is not supported");
    if (node->n_output == 0) return node_fail(im, "it has no result");
    if (!check_inputs(im, maker, op ? op->min_inputs : 1, op ? op->max_inputs : -1)) return false;
    if (!reads_halves(im)) return false;
    struct text_marks from = {im->body.n, im->first.n};
    im->empty_input = -1;
    im->empties = 0;
    im->now->folded += node_folds(im);
    if (!(node_folds(im) ? node_fold(im, op, formula)
          : op           ? op->lower(im)
                         : formula_lower(im, formula)) ||
        !node_empties(im, from))
        return false;
    if (im->empty_input >= 0) return node_fail(im, "input %d is an empty tensor", im->empty_input);
    return attributes_all_used(im);
}

static bool operator_known(struct import *im, const Onnx__NodeProto *node) {
    const char *name = node->op_type ? node->op_type : "";
    return name_find(&im->custom, operator_name(im, node)) || op_find(node->domain, name) ||
           formula_find(node->domain, name) || is_if(node);
}

/* All operators that are missing, in one message. */
static bool operators_known(struct import *im, const Onnx__GraphProto *g, const bool *live) {
    struct name_table count = {0};
    struct text list = {0};
    int kinds = 0, *n, nodes = 0;
    for (size_t i = 0; i < g->n_node; i++) {
        if (!live[i] || operator_known(im, g->node[i])) continue;
        const char *name = operator_name(im, g->node[i]);
        im->node = g->node[i];
        im->node_index = (int)i;
        nodes++;
        if (!(n = name_find(&count, name))) {
            name_put(im->arena, &count, name, n = arena_alloc(im->arena, sizeof *n));
            kinds++;
        }
        ++*n;
    }
    if (kinds == 0) return true;
    const char *domain =
        standard_domain(im->node->domain)
            ? ""
            : arena_printf(im->arena, " of the domain '%s'", shown(im, im->node->domain));
    if (kinds == 1)
        return nodes == 1
                   ? node_fail(im, "this operator%s is not supported", domain)
                   : node_fail(im, "this operator%s, in %d nodes, is not supported", domain, nodes);
    for (size_t i = 0; i < g->n_node; i++) {
        const char *name = operator_name(im, g->node[i]);
        if (!(n = name_find(&count, name)) || !*n) continue;
        text_printf(&list, "%s%s in %d node%s", list.n ? ", " : "", shown(im, name), *n,
                    *n > 1 ? "s" : "");
        *n = 0;
    }
    graph_fail(im, "%d operators of the model are not supported: %.400s", kinds, list.at);
    text_free(&list);
    return false;
}

static bool lower_nodes(struct import *im, const Onnx__GraphProto *g) {
    struct name_table maker = {0};
    int *index = arena_array(im->arena, g->n_node + 1, sizeof *index);
    bool *live = arena_array(im->arena, g->n_node + 1, sizeof *live);
    if (!find_makers(im, g, &maker, index)) return false;
    find_live(im, g, &maker, live);
    if (!operators_known(im, g, live)) return false;
    for (size_t i = 0; i < g->n_node; i++) {
        im->node = g->node[i];
        im->node_index = (int)i;
        if (live[i] && !lower_node(im, &maker)) return false;
    }
    return true;
}

/* Outputs that no node makes: an input or an initialiser passed on; those are copied. */
static bool pass_outputs(struct import *im, const Onnx__GraphProto *g) {
    for (size_t i = 0; i < g->n_output; i++) {
        const char *name = g->output[i]->name;
        struct graph_output *out = name_find(&im->result, name);
        struct tensor *t = name_find(&im->value, name);
        if (!t)
            return graph_fail(
                im,
                "output '%s' is made by nothing in the graph, or as a result that its "
                "operator has not here",
                shown(im, name));
        if (t->buffer == out->buffer) continue;
        char *names[1] = {(char *)name};
        Onnx__NodeProto node = ONNX__NODE_PROTO__INIT;
        node.op_type = "Identity";
        node.output = names;
        node.n_output = 1;
        im->node = &node;
        im->node_index = (int)g->n_node;
        im->now = NULL;
        struct tensor *y = node_result(im, t->type, t->ndims, t->extent);
        if (!y || !emit_copy(im, y, t)) return false;
    }
    return true;
}

/* ---- the model ---- */

/* What `isamap check` says of the file. */
static void model_about(struct import *im, struct onnx_model *model, const Onnx__ModelProto *m) {
    const struct program *p = model->program;
    model->producer = name_shown(im->arena, m->producer_name ? m->producer_name : "");
    model->version = name_shown(im->arena, m->producer_version ? m->producer_version : "");
    model->opset = im->opset;
    model->nkinds = im->nkinds;
    model->kind = arena_array(im->arena, (size_t)im->nkinds, sizeof *model->kind);
    model->made_by = arena_array(im->arena, (size_t)p->nbuffers, sizeof *model->made_by);
    for (int k = 0; k < im->nkinds; k++) model->kind[k] = *im->kind[k];
    for (int b = 0; b < p->nbuffers; b++) {
        const struct onnx_kind *by = name_find(&im->made_by, p->buffer[b].name);
        model->made_by[b] = -1;
        for (int k = 0; by && k < im->nkinds; k++)
            if (im->kind[k] == by) model->made_by[b] = k;
    }
}

static bool import_graph(struct import *im, struct onnx_model *model, const Onnx__ModelProto *m,
                         const struct bindings *dims, const struct onnx_options *options) {
    const Onnx__GraphProto *g = m->graph;
    bool exact = options && options->exact;
    bool *used = arena_array(im->arena, dims ? (size_t)dims->n + 1 : 1, sizeof *used);
    if (!g) return graph_fail(im, "the model has no graph");
    if (!read_opset(im, m) || !custom_read(im, options) || !read_initialisers(im, g) ||
        !read_inputs(im, model, g, dims, used) || !all_dims_used(im, dims, used) ||
        !read_outputs(im, model, g))
        return false;
    drop_raw(g);
    name_initialisers(im, g);
    keep_values(im, options);
    if (!(g = functions_expand(im, m))) return false;
    Onnx__GraphProto integers;
    if (!exact && (model->requantised = qdq_rewrite(im, g, &integers))) g = &integers;
    if (!lower_nodes(im, g) || !custom_all_used(im, options) || !pass_outputs(im, g)) return false;
    name_kept(im, model, options);
    const struct bindings *outer = dims ? dims->outer : NULL;
    model->text = kernel_text(im, g->name && *g->name ? g->name : "model");
    model->program =
        kernel_program(im, model->text, outer, &model->source, &model->kernel, &model->data);
    if (model->program) model_about(im, model, m);
    if (model->program && model->requantised)
        diag_warn(im->diags, im->path, 0, 0,
                  "%d operators between quantisers are computed on integers, each at most one step "
                  "of its result from floats; --allow exact leaves them in floats",
                  model->requantised);
    return model->program != NULL;
}

static struct onnx_model *import_model(const char *path, const Onnx__ModelProto *m,
                                       const struct bindings *dims,
                                       const struct onnx_options *options, struct diags *diags) {
    struct onnx_model *model = memory_array(1, sizeof *model);
    arena_init(&model->arena);
    struct import im = {.arena = &model->arena, .diags = diags, .path = path};
    bool ok = import_graph(&im, model, m, dims, options);
    import_free(&im);
    if (ok) return model;
    onnx_free(model);
    return NULL;
}

static Onnx__ModelProto *unpack(const char *path, const void *bytes, size_t length,
                                struct diags *diags) {
    if (length == 0) {
        diag_line(diags, path, 0, 0, "the file is empty: expected an ONNX model");
        return NULL;
    }
    if (!wire_check(path, bytes, length, &onnx__model_proto__descriptor, diags)) return NULL;
    Onnx__ModelProto *m = onnx__model_proto__unpack(NULL, length, bytes);
    if (!m) diag_line(diags, path, 1, 1, "this is not an ONNX model");
    return m;
}

static struct onnx_model *import_unpacked(const char *path, Onnx__ModelProto *m,
                                          const struct bindings *dims,
                                          const struct onnx_options *options, struct diags *diags) {
    struct onnx_model *model = m ? import_model(path, m, dims, options, diags) : NULL;
    if (m) onnx__model_proto__free_unpacked(m, NULL);
    return model;
}

struct onnx_model *onnx_parse(const char *path, const void *bytes, size_t length,
                              const struct bindings *dims, const struct onnx_options *options,
                              struct diags *diags) {
    return import_unpacked(path, unpack(path, bytes, length, diags), dims, options, diags);
}

struct onnx_model *onnx_load(const char *path, const struct bindings *dims,
                             const struct onnx_options *options, struct diags *diags) {
    struct arena arena;
    size_t length;
    arena_init(&arena);
    char *bytes = file_read(&arena, path, INT32_MAX, &length, diags);
    Onnx__ModelProto *m = bytes ? unpack(path, bytes, length, diags) : NULL;
    arena_free(&arena);
    return import_unpacked(path, m, dims, options, diags);
}
#else
struct onnx_model *onnx_parse(const char *path, const void *bytes, size_t length,
                              const struct bindings *dims, const struct onnx_options *options,
                              struct diags *diags) {
    (void)bytes, (void)length, (void)dims, (void)options;
    diag_line(diags, path, 0, 0,
              "ONNX models are not supported: isamap was built without protobuf-c");
    return NULL;
}

struct onnx_model *onnx_load(const char *path, const struct bindings *dims,
                             const struct onnx_options *options, struct diags *diags) {
    return onnx_parse(path, NULL, 0, dims, options, diags);
}
#endif

void onnx_free(struct onnx_model *model) {
    if (!model) return;
    if (model->program) program_free(model->program);
    arena_free(&model->arena);
    free(model);
}
