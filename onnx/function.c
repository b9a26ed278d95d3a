/* Functions of the model (ONNX IR, "Functions"): where the graph calls one, the function's nodes
 * stand instead, those of branches and loop bodies too. So all that comes later sees operators
 * alone. Inside, values get the name of the call before their own; references to attributes of the
 * function become those of the call, else the function's own values. */
#include "onnx/onnx.h"

#ifdef ISAMAP_WITH_ONNX
#include "onnx/onnx_int.h"

#include <inttypes.h>
#include <string.h>

/* Nodes and calls, as a file may have; calls inside one another. */
enum { MAX_EXPANDED = 1 << 21, MAX_NESTED = 256 };

/* Fields that the library's description of the format may be too old to know. */
enum { NODE_OVERLOAD = 8, FUNCTION_ATTRIBUTE_PROTO = 11, FUNCTION_OVERLOAD = 13 };

struct function {
    const Onnx__FunctionProto *proto;
    Onnx__AttributeProto **preset; /* attributes that have a value where a call gives none */
    int npresets, preset_cap;
    int64_t opset; /* of ai.onnx, as its nodes are read */
    bool open;     /* being expanded */
};

struct expansion {
    struct import *im;
    struct name_table function; /* by domain, name and overload */
    long nodes;                 /* and calls */
    int nested;
};

struct scope {
    const Onnx__NodeProto *call; /* NULL: the graph itself */
    const struct function *function;
    struct name_table name; /* inputs and results of the function -> what the call names them */
    const char *prefix;
};

struct nodes {
    Onnx__NodeProto **at;
    int n, cap;
};

/* ---- what the description does not know ---- */

/* The contents of an unknown field that holds bytes; false: it is none. */
static bool unknown_bytes(const ProtobufCMessageUnknownField *u, const uint8_t **at, size_t *n) {
    if (u->wire_type != PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED) return false;
    size_t head = 0;
    while (head < u->len && u->data[head] & 128) head++;
    if (head >= u->len) return false;
    *at = u->data + head + 1;
    *n = u->len - head - 1;
    return true;
}

static const char *overload_of(struct import *im, const ProtobufCMessage *m, unsigned tag) {
    const uint8_t *at;
    size_t n;
    for (unsigned i = 0; i < m->n_unknown_fields; i++)
        if (m->unknown_fields[i].tag == tag && unknown_bytes(&m->unknown_fields[i], &at, &n))
            return arena_strndup(im->arena, (const char *)at, n);
    return "";
}

static void *allocate(void *arena, size_t n) {
    return arena_alloc(arena, n);
}

static void keep(void *arena, void *block) { /* until the arena goes */
    (void)arena, (void)block;
}

static bool read_presets(struct import *im, struct function *f) {
    const ProtobufCMessage *m = &f->proto->base;
    ProtobufCAllocator allocator = {allocate, keep, im->arena};
    const uint8_t *at;
    size_t n;
    for (unsigned i = 0; i < m->n_unknown_fields; i++) {
        const ProtobufCMessageUnknownField *u = &m->unknown_fields[i];
        if (u->tag != FUNCTION_ATTRIBUTE_PROTO || !unknown_bytes(u, &at, &n)) continue;
        if (!wire_check(im->path, at, n, &onnx__attribute_proto__descriptor, im->diags))
            return false;
        GROW(im->arena, f->preset, f->npresets, f->preset_cap);
        f->preset[f->npresets] = onnx__attribute_proto__unpack(&allocator, n, at);
        if (!f->preset[f->npresets++])
            return graph_fail(im, "function '%s': its attributes cannot be read",
                              name_shown(im->arena, f->proto->name));
    }
    return true;
}

/* ---- functions by name ---- */

static const char *key_of(struct import *im, const char *domain, const char *name,
                          const char *overload) {
    return arena_printf(im->arena, "%s\n%s\n%s", standard_domain(domain) ? "" : domain,
                        name ? name : "", overload);
}

static struct function *function_of(const struct expansion *e, const Onnx__NodeProto *node) {
    const char *overload = overload_of(e->im, &node->base, NODE_OVERLOAD);
    return name_find(&e->function, key_of(e->im, node->domain, node->op_type, overload));
}

/* It may import another opset than the model. */
static bool read_function_opset(struct import *im, struct function *f) {
    f->opset = im->opset;
    for (size_t i = 0; i < f->proto->n_opset_import; i++) {
        const Onnx__OperatorSetIdProto *o = f->proto->opset_import[i];
        if (standard_domain(o->domain)) f->opset = o->version;
    }
    return opset_known(f->opset) ||
           graph_fail(im, "function '%s' imports opset %" PRId64 ", which is not known",
                      name_shown(im->arena, f->proto->name), f->opset);
}

static bool read_functions(struct expansion *e, const Onnx__ModelProto *m) {
    struct import *im = e->im;
    for (size_t i = 0; i < m->n_functions; i++) {
        struct function *f = arena_alloc(im->arena, sizeof *f);
        f->proto = m->functions[i];
        if (!f->proto->name || !*f->proto->name)
            return graph_fail(im, "function %zu has no name", i);
        const char *key = key_of(im, f->proto->domain, f->proto->name,
                                 overload_of(im, &f->proto->base, FUNCTION_OVERLOAD));
        if (name_find(&e->function, key))
            return graph_fail(im, "two functions are named '%s'",
                              name_shown(im->arena, f->proto->name));
        if (!read_function_opset(im, f) || !read_presets(im, f)) return false;
        name_put(im->arena, &e->function, key, f);
    }
    return true;
}

/* ---- names ---- */

static char *renamed(struct expansion *e, const struct scope *s, const char *name) {
    if (!s->call || !name || !*name) return (char *)name;
    char *given = name_find(&s->name, name);
    return given ? given : arena_printf(e->im->arena, "%s/%s", s->prefix, name);
}

static char **renamed_all(struct expansion *e, const struct scope *s, char *const *name, size_t n) {
    char **all = arena_array(e->im->arena, n + 1, sizeof *all);
    for (size_t k = 0; k < n; k++) all[k] = renamed(e, s, name[k]);
    return all;
}

/* ---- nodes ---- */

static bool expand_nodes(struct expansion *, const struct scope *, Onnx__NodeProto *const *,
                         size_t n, struct nodes *out);

static bool count_one(struct expansion *e) {
    return ++e->nodes <= MAX_EXPANDED ||
           graph_fail(e->im, "the model has more than %d nodes when its functions are expanded",
                      MAX_EXPANDED);
}

static bool expand_push(struct expansion *e, struct nodes *out, Onnx__NodeProto *node) {
    if (!count_one(e)) return false;
    GROW(e->im->arena, out->at, out->n, out->cap);
    out->at[out->n++] = node;
    return true;
}

/* A value that the function passes on. */
static bool push_identity(struct expansion *e, struct nodes *out, const char *from, char *to) {
    Onnx__NodeProto *node = arena_alloc(e->im->arena, sizeof *node);
    onnx__node_proto__init(node);
    node->op_type = "Identity";
    node->n_input = node->n_output = 1;
    node->input = arena_array(e->im->arena, 1, sizeof *node->input);
    node->output = arena_array(e->im->arena, 1, sizeof *node->output);
    node->input[0] = (char *)from;
    node->output[0] = to;
    return expand_push(e, out, node);
}

/* NULL after reporting. A graph inside a function has names of its own for all that it makes. */
static Onnx__GraphProto *expand_graph(struct expansion *e, const struct scope *s,
                                      const Onnx__GraphProto *g) {
    struct arena *arena = e->im->arena;
    Onnx__GraphProto *copy = arena_copy(arena, g, sizeof *g);
    struct nodes nodes = {0};
    if (!expand_nodes(e, s, g->node, g->n_node, &nodes)) return NULL;
    copy->node = nodes.at;
    copy->n_node = (size_t)nodes.n;
    if (!s->call) return copy;
    copy->input = arena_array(arena, g->n_input + 1, sizeof *copy->input);
    copy->output = arena_array(arena, g->n_output + 1, sizeof *copy->output);
    copy->initializer = arena_array(arena, g->n_initializer + 1, sizeof *copy->initializer);
    for (size_t k = 0; k < g->n_input; k++) {
        copy->input[k] = arena_copy(arena, g->input[k], sizeof *g->input[k]);
        copy->input[k]->name = renamed(e, s, g->input[k]->name);
    }
    for (size_t k = 0; k < g->n_output; k++) {
        copy->output[k] = arena_copy(arena, g->output[k], sizeof *g->output[k]);
        copy->output[k]->name = renamed(e, s, g->output[k]->name);
    }
    for (size_t k = 0; k < g->n_initializer; k++) {
        copy->initializer[k] = arena_copy(arena, g->initializer[k], sizeof *g->initializer[k]);
        copy->initializer[k]->name = renamed(e, s, g->initializer[k]->name);
    }
    return copy;
}

static const Onnx__AttributeProto *attribute_of(Onnx__AttributeProto *const *list, size_t n,
                                                const char *name) {
    for (size_t k = 0; k < n; k++)
        if (list[k]->name && strcmp(list[k]->name, name) == 0) return list[k];
    return NULL;
}

/* What an attribute of a node says, *out: references resolved, graphs expanded; NULL: it refers to
 * one that is not given. */
static bool expand_attribute(struct expansion *e, const struct scope *s,
                             const Onnx__AttributeProto *a, Onnx__AttributeProto **out) {
    const Onnx__AttributeProto *from = a;
    *out = NULL;
    if (a->ref_attr_name && *a->ref_attr_name) {
        if (!s->call)
            return graph_fail(e->im,
                              "the attribute '%s' refers to one of a function, outside of any",
                              name_shown(e->im->arena, a->name ? a->name : ""));
        from = attribute_of(s->call->attribute, s->call->n_attribute, a->ref_attr_name);
        if (!from)
            from =
                attribute_of(s->function->preset, (size_t)s->function->npresets, a->ref_attr_name);
        if (!from) return true;
    }
    *out = arena_copy(e->im->arena, from, sizeof *from);
    (*out)->name = a->name;
    if (from != a || !a->g) return true; /* a call's graph is expanded already */
    return ((*out)->g = expand_graph(e, s, a->g)) != NULL;
}

/* The opset that the node is read with, where that is not the model's. */
static void mark_opset(struct expansion *e, const struct scope *s, Onnx__NodeProto *node) {
    if (!s->call || s->function->opset == e->im->opset) return;
    Onnx__AttributeProto *a = arena_alloc(e->im->arena, sizeof *a);
    onnx__attribute_proto__init(a);
    a->name = ATTRIBUTE_OPSET;
    a->has_i = true;
    a->i = s->function->opset;
    node->attribute[node->n_attribute++] = a;
}

static Onnx__NodeProto *expand_node(struct expansion *e, const struct scope *s,
                                    const Onnx__NodeProto *node) {
    struct arena *arena = e->im->arena;
    Onnx__NodeProto *copy = arena_copy(arena, node, sizeof *node);
    copy->input = renamed_all(e, s, node->input, node->n_input);
    copy->output = renamed_all(e, s, node->output, node->n_output);
    copy->name = renamed(e, s, node->name);
    copy->attribute = arena_array(arena, node->n_attribute + 2, sizeof *copy->attribute);
    copy->n_attribute = 0;
    for (size_t k = 0; k < node->n_attribute; k++) {
        Onnx__AttributeProto *a;
        if (!expand_attribute(e, s, node->attribute[k], &a)) return NULL;
        if (a) copy->attribute[copy->n_attribute++] = a;
    }
    mark_opset(e, s, copy);
    return copy;
}

/* ---- calls ---- */

static bool call_fits(struct expansion *e, const Onnx__NodeProto *call, const struct function *f) {
    const char *name = name_shown(e->im->arena, f->proto->name);
    if (f->open) return graph_fail(e->im, "function '%s' calls itself", name);
    if (e->nested == MAX_NESTED)
        return graph_fail(e->im, "functions call one another more than %d deep", MAX_NESTED);
    if (call->n_input > f->proto->n_input || call->n_output > f->proto->n_output)
        return graph_fail(e->im,
                          "a call of the function '%s' has %zu inputs and %zu results; the "
                          "function has %zu and %zu",
                          name, call->n_input, call->n_output, f->proto->n_input,
                          f->proto->n_output);
    return true;
}

static bool expand_call(struct expansion *e, const Onnx__NodeProto *call, struct function *f,
                        struct nodes *out) {
    struct import *im = e->im;
    const Onnx__FunctionProto *p = f->proto;
    struct scope inner = {.call = call, .function = f};
    struct nodes passed = {0};
    if (!count_one(e) || !call_fits(e, call, f)) return false;
    inner.prefix = call->name && *call->name ? call->name
                                             : arena_printf(im->arena, "%s_%ld", p->name, e->nodes);
    for (size_t k = 0; k < p->n_input; k++)
        name_put(im->arena, &inner.name, p->input[k], k < call->n_input ? call->input[k] : "");
    for (size_t k = 0; k < p->n_output; k++) {
        const char *same = name_find(&inner.name, p->output[k]);
        char *wanted = k < call->n_output ? call->output[k] : "";
        if (!*wanted) continue;
        if (!same)
            name_put(im->arena, &inner.name, p->output[k], wanted);
        else if (!push_identity(e, &passed, same, wanted))
            return false;
    }
    f->open = true;
    e->nested++;
    bool ok = expand_nodes(e, &inner, p->node, p->n_node, out);
    e->nested--;
    f->open = false;
    for (int k = 0; ok && k < passed.n; k++) ok = expand_push(e, out, passed.at[k]);
    return ok;
}

static bool expand_nodes(struct expansion *e, const struct scope *s, Onnx__NodeProto *const *node,
                         size_t n, struct nodes *out) {
    for (size_t i = 0; i < n; i++) {
        Onnx__NodeProto *copy = expand_node(e, s, node[i]);
        struct function *f = copy ? function_of(e, copy) : NULL;
        if (!copy || !(f ? expand_call(e, copy, f, out) : expand_push(e, out, copy))) return false;
    }
    return true;
}

const Onnx__GraphProto *functions_expand(struct import *im, const Onnx__ModelProto *m) {
    struct expansion e = {.im = im};
    struct scope outside = {0};
    if (!m->n_functions) return m->graph;
    return read_functions(&e, m) ? expand_graph(&e, &outside, m->graph) : NULL;
}
#endif
