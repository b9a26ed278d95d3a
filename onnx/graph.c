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

/* A model that imports other domains alone has no node of this one: its opset is any. */
static bool of_other_domains(const Onnx__ModelProto *m) {
    for (size_t i = 0; m->graph && i < m->graph->n_node; i++)
        if (standard_domain(m->graph->node[i]->domain)) return false;
    return true;
}

bool opset_known(int64_t opset) {
    return opset >= FIRST_OPSET && opset <= LAST_OPSET;
}

static bool read_opset(struct import *im, const Onnx__ModelProto *m) {
    im->opset = 0;
    for (size_t i = 0; i < m->n_opset_import; i++)
        if (standard_domain(m->opset_import[i]->domain) && m->opset_import[i]->version > im->opset)
            im->opset = m->opset_import[i]->version;
    if (m->n_opset_import == 0) im->opset = 1; /* what models before IR version 3 mean */
    if (im->opset == 0 && of_other_domains(m)) im->opset = LAST_OPSET;
    if (im->opset == 0)
        return graph_fail(im, "the model imports no operators of the domain ai.onnx");
    if (!opset_known(im->opset))
        return graph_fail(im, "opset %" PRId64 " is not known: expected %d to %d", im->opset,
                          FIRST_OPSET, LAST_OPSET);
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
    if (!graph_read_initialisers(im, g)) return false;
    graph_name_initialisers(im, g);
    if (!lower_nodes(im, g)) return false;
    im->node = node;
    im->node_index = index;
    im->attribute_used = understood;
    im->empty_input = -1;
    return true;
}

/* The nodes of a branch, whose names are the graph's too; its results become the node's. */
static bool branch_nodes(struct import *im, const Onnx__GraphProto *g, struct tensor **result) {
    if (g->n_output != im->node->n_output)
        return node_fail(im, "a branch has %zu results, but the node %zu", g->n_output,
                         im->node->n_output);
    if (!graph_nodes(im, g)) return false;
    for (size_t k = 0; k < g->n_output; k++)
        if (!(result[k] = name_find(&im->value, g->output[k]->name)))
            return node_fail(im, "the result %zu of its branch is made by nothing", k);
    return true;
}

static bool lower_branch(struct import *im, const Onnx__GraphProto *g) {
    struct tensor **t = arena_array(im->arena, im->node->n_output + 1, sizeof *t);
    if (!branch_nodes(im, g, t)) return false;
    for (size_t k = 0; k < g->n_output; k++)
        if (node_wants(im, (int)k) && !node_alias_at(im, (int)k, t[k], t[k]->ndims, t[k]->extent))
            return false;
    return true;
}

/* Result k is that of one branch or of the other. */
static bool choose_result(struct import *im, const char *condition, int k, struct tensor *yes,
                          struct tensor *no) {
    const char *index[MAX_DIMS];
    if (yes->type != no->type || yes->ndims != no->ndims ||
        memcmp(yes->extent, no->extent, (size_t)yes->ndims * sizeof *yes->extent) != 0)
        return node_fail(im,
                         "its branches give %s%s and %s%s, and which is taken is not known when "
                         "compiling: give the inputs that it depends on by value (-D NAME=1)",
                         type_name(yes->type), shape_text(im->arena, yes->ndims, yes->extent),
                         type_name(no->type), shape_text(im->arena, no->ndims, no->extent));
    struct tensor *y = node_result_at(im, k, yes->type, yes->ndims, yes->extent);
    if (!y) return false;
    axes_release(im);
    axes_for(im, yes->ndims, yes->extent, index);
    emit_statement(im, "%s = select(%s, %s, %s)", tensor_element(im, y, index), condition,
                   tensor_element(im, yes, index), tensor_element(im, no, index));
    return true;
}

/* If with a condition that the program computes: both branches are, each with names of its own. */
static bool lower_both(struct import *im, struct tensor *c, const Onnx__GraphProto *const *branch) {
    struct name_table value = im->value, result = im->result;
    struct tensor **t[2];
    const char *zero[MAX_DIMS];
    for (int d = 0; d < MAX_DIMS; d++) zero[d] = "0";
    for (int b = 0; b < 2; b++) {
        t[b] = arena_array(im->arena, im->node->n_output + 1, sizeof *t[b]);
        im->result = (struct name_table){0};
        im->value = name_copy(im->arena, &value);
        bool good = branch_nodes(im, branch[b], t[b]);
        im->value = value;
        im->result = result;
        if (!good) return false;
    }
    for (size_t k = 0; k < im->node->n_output; k++)
        if (node_wants(im, (int)k) &&
            !choose_result(im, tensor_element(im, c, zero), (int)k, t[0][k], t[1][k]))
            return false;
    return true;
}

static bool lower_if(struct import *im) {
    struct tensor *c = node_given(im, 0);
    const Onnx__AttributeProto *yes = attribute_find(im, "then_branch"),
                               *no = attribute_find(im, "else_branch");
    if (!yes || !no || !yes->g || !no->g) return node_fail(im, "it has not two branches");
    if (!c || c->elements != 1 || c->type != TYPE_BOOL)
        return node_fail(im, "its condition is not one truth");
    if (!c->data) return lower_both(im, c, (const Onnx__GraphProto *[]){yes->g, no->g});
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

/* Nothing but operators on sequences, and loops that they go through, takes one. */
static bool reads_sequences(struct import *im) {
    bool takes = node_on_sequences(im->node) || strcmp(im->node->op_type, "Loop") == 0;
    for (int k = 0; k < (int)im->node->n_input && !takes; k++) {
        const struct tensor *t = node_given(im, k);
        if (t && t->list)
            return node_fail(im, "input %d is a sequence, which this operator does not take", k);
    }
    return true;
}

static bool lower_operator(struct import *im, const struct name_table *maker) {
    const Onnx__NodeProto *node = im->node;
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
    if (!reads_halves(im) || !reads_sequences(im)) return false;
    struct text_marks from = {im->body.n, im->first.n};
    im->empty_input = -1;
    im->empties = 0;
    bool folded = node_folds(im);
    if (folded && !node_fold(im, op, formula, &folded)) return false;
    im->now->folded += folded;
    if (!(folded || (op ? op->lower(im) : formula_lower(im, formula))) || !node_empties(im, from))
        return false;
    if (im->empty_input >= 0) return node_fail(im, "input %d is an empty tensor", im->empty_input);
    return attributes_all_used(im);
}

static bool lower_node(struct import *im, const struct name_table *maker) {
    int64_t model_opset = im->opset;
    count_kind(im);
    kernel_node(im);
    im->attribute_used = arena_array(im->arena, im->node->n_attribute, sizeof(bool));
    axes_release(im);
    bool ok = attribute_int(im, ATTRIBUTE_OPSET, &im->opset) && lower_operator(im, maker);
    im->opset = model_opset;
    return ok;
}

static bool operator_known(struct import *im, const Onnx__NodeProto *node) {
    const char *name = node->op_type ? node->op_type : "";
    return name_find(&im->custom, operator_name(im, node)) || op_find(node->domain, name) ||
           formula_find(node->domain, name) || is_if(node);
}

/* ONNX Runtime's operators on channels in blocks, whose weights lie as one processor reads them. */
static const char *laid_out(const Onnx__NodeProto *node) {
    return node->domain && strcmp(node->domain, "com.microsoft.nchwc") == 0
               ? ": ONNX Runtime laid it out for one processor; let it write the model with "
                 "ORT_ENABLE_EXTENDED"
               : "";
}

/* All operators that are missing, in one message. */
static bool operators_known(struct import *im, const Onnx__GraphProto *g, const bool *live) {
    struct name_table count = {0};
    struct text list = {0};
    int kinds = 0, *n, nodes = 0;
    const char *hint = "";
    for (size_t i = 0; i < g->n_node; i++) {
        if (!live[i] || operator_known(im, g->node[i])) continue;
        if (!*hint) hint = laid_out(g->node[i]);
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
        return nodes == 1 ? node_fail(im, "this operator%s is not supported%s", domain, hint)
                          : node_fail(im, "this operator%s, in %d nodes, is not supported%s",
                                      domain, nodes, hint);
    for (size_t i = 0; i < g->n_node; i++) {
        const char *name = operator_name(im, g->node[i]);
        if (!(n = name_find(&count, name)) || !*n) continue;
        text_printf(&list, "%s%s in %d node%s", list.n ? ", " : "", shown(im, name), *n,
                    *n > 1 ? "s" : "");
        *n = 0;
    }
    graph_fail(im, "%d operators of the model are not supported: %.300s%s", kinds, list.at, hint);
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
    im->exact = options && options->exact;
    bool *used = arena_array(im->arena, dims ? (size_t)dims->n + 1 : 1, sizeof *used);
    if (!g) return graph_fail(im, "the model has no graph");
    if (!read_opset(im, m) || !custom_read(im, options) || !graph_read_initialisers(im, g) ||
        !graph_read_inputs(im, model, g, dims, used) || !graph_all_dims_used(im, dims, used) ||
        !graph_read_outputs(im, model, g))
        return false;
    graph_drop_raw(g);
    graph_name_initialisers(im, g);
    graph_keep_values(im, options);
    if (!(g = functions_expand(im, m))) return false;
    Onnx__GraphProto integers;
    if (qdq_rewrite(im, g, im->exact, &integers, &model->requantised)) g = &integers;
    if (!lower_nodes(im, g) || !custom_all_used(im, options) || !graph_pass_outputs(im, model, g))
        return false;
    graph_name_kept(im, model, options);
    const struct bindings *outer = dims ? dims->outer : NULL;
    axes_fit(im);
    model->text = kernel_text(im, g->name && *g->name ? g->name : "model");
    model->program =
        kernel_program(im, model->text, outer, &model->source, &model->kernel, &model->data);
    if (model->program) model_about(im, model, m);
    if (model->program && model->requantised)
        diag_warn(im->diags, im->path, 0, 0,
                  "%d operators between quantisers are computed on integers, each at most one step "
                  "of its result from floats; --allow exact leaves them in floats",
                  model->requantised);
    if (model->program && im->coarse)
        diag_warn(
            im->diags, im->path, 0, 0,
            "%d products with weights of 4 or 8 bits make their inputs bytes, a scale for each "
            "block, as 'accuracy_level' 4 allows; --allow exact leaves them in floats",
            im->coarse);
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
