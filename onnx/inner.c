/* Operators that are others in a row, as optimisers and quantisers of ONNX graphs fuse them: the
 * nodes that they stand for are lowered one after the other, inside the node. */
#include "onnx/onnx.h"

#ifdef ISAMAP_WITH_ONNX
#include "onnx/onnx_int.h"

#include <string.h>

const char *inner_name(struct import *im, const char *suffix) {
    const char *name = arena_printf(im->arena, "%s_%s", im->node->output[0], suffix);
    while (name_find(&im->value, name)) name = arena_printf(im->arena, "%s_", name);
    return name;
}

const char *inner_value(struct import *im, struct tensor *t, const char *suffix) {
    t->name = inner_name(im, suffix);
    name_put(im->arena, &im->value, t->name, t);
    return t->name;
}

static Onnx__AttributeProto *attribute_new(struct import *im, struct inner *n, const char *name) {
    Onnx__AttributeProto *a = arena_alloc(im->arena, sizeof *a);
    onnx__attribute_proto__init(a);
    a->name = arena_strdup(im->arena, name);
    GROW(im->arena, n->attribute, n->nattributes, n->attribute_cap);
    return n->attribute[n->nattributes++] = a;
}

void inner_int(struct import *im, struct inner *n, const char *name, int64_t value) {
    Onnx__AttributeProto *a = attribute_new(im, n, name);
    a->has_i = true;
    a->i = value;
}

void inner_ints(struct import *im, struct inner *n, const char *name, int count,
                const int64_t *values) {
    Onnx__AttributeProto *a = attribute_new(im, n, name);
    a->n_ints = (size_t)count;
    a->ints = arena_copy(im->arena, values, sizeof *values * (size_t)count);
}

void inner_float(struct import *im, struct inner *n, const char *name, double value) {
    Onnx__AttributeProto *a = attribute_new(im, n, name);
    a->has_f = true;
    a->f = (float)value;
}

void inner_string(struct import *im, struct inner *n, const char *name, const char *value) {
    Onnx__AttributeProto *a = attribute_new(im, n, name);
    a->has_s = true;
    a->s.data = (uint8_t *)arena_strdup(im->arena, value);
    a->s.len = strlen(value);
}

void inner_pass(struct import *im, struct inner *n, const char *but) {
    for (size_t i = 0; i < im->node->n_attribute; i++) {
        const Onnx__AttributeProto *a = im->node->attribute[i];
        if (but && strncmp(a->name, but, strlen(but)) == 0) continue;
        im->attribute_used[i] = true;
        *attribute_new(im, n, a->name) = *a;
    }
}

bool inner_lower(struct import *im, struct inner *n, const char *op) {
    const Onnx__NodeProto *outer = im->node;
    bool *understood = im->attribute_used;
    Onnx__NodeProto node = ONNX__NODE_PROTO__INIT;
    node.name = outer->name;
    node.op_type = (char *)op;
    node.input = (char **)n->input;
    node.n_input = (size_t)n->ninputs;
    node.output = (char **)n->output;
    while (node.n_output < INNER_OUTPUTS && n->output[node.n_output]) node.n_output++;
    node.attribute = n->attribute;
    node.n_attribute = (size_t)n->nattributes;
    for (int k = 0; k < n->ninputs; k++)
        if (!n->input[k]) n->input[k] = "";
    im->node = &node;
    im->attribute_used = arena_array(im->arena, node.n_attribute, sizeof(bool));
    axes_release(im);
    const struct op_entry *entry = op_find("", op), *own = op_find("com.microsoft", op);
    if (!entry && !formula_find("", op)) entry = own;
    bool ok = true;
    for (int k = 0; entry && ok && k < entry->min_inputs; k++) ok = node_needs_input(im, k);
    ok = ok && (entry ? entry->lower(im) : formula_lower(im, formula_find("", op))) &&
         attributes_all_used(im);
    im->node = outer;
    im->attribute_used = understood;
    axes_release(im);
    return ok;
}

bool inner_node(struct import *im, const char *op, const char *a, const char *b, const char *to) {
    struct inner n = {.input = {a, b}, .ninputs = b ? 2 : 1, .output = {to}};
    return inner_lower(im, &n, op);
}
#endif
