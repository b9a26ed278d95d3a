/* How often a Loop runs whose condition follows from the number of the iteration and from what is
 * known when compiling: its condition is folded, iteration by iteration. */
#include "onnx/onnx.h"

#ifdef ISAMAP_WITH_ONNX
#include "onnx/onnx_int.h"

#include <string.h>

enum { MOST_FOLDED = 1 << 16 }; /* iterations */

/* What a body's first result follows from. */
struct cause {
    struct name_table needed;
    bool known;  /* nothing but the number of the iteration, and what is known */
    bool number; /* that number is part of it */
};

static void need(struct import *im, struct cause *c, const char *name) {
    if (*name) name_put(im->arena, &c->needed, name, im);
}

static bool makes(const Onnx__NodeProto *n, const struct cause *c) {
    for (size_t k = 0; k < n->n_output; k++)
        if (*n->output[k] && name_find(&c->needed, n->output[k])) return true;
    return false;
}

static bool has_graph(const Onnx__NodeProto *n) {
    for (size_t k = 0; k < n->n_attribute; k++)
        if (n->attribute[k]->g || n->attribute[k]->n_graphs) return true;
    return false;
}

static bool made_in(const Onnx__GraphProto *g, const char *name) {
    for (size_t i = 0; i < g->n_node; i++)
        for (size_t k = 0; k < g->node[i]->n_output; k++)
            if (!strcmp(g->node[i]->output[k], name)) return true;
    for (size_t i = 0; i < g->n_initializer; i++)
        if (g->initializer[i]->name && !strcmp(g->initializer[i]->name, name)) return true;
    return false;
}

/* Nodes stand in order. */
static struct cause find_cause(struct import *im, const Onnx__GraphProto *body) {
    struct cause c = {.known = true};
    need(im, &c, body->output[0]->name);
    for (size_t i = body->n_node; i-- > 0;) {
        const Onnx__NodeProto *n = body->node[i];
        if (!makes(n, &c)) continue;
        c.known &= !has_graph(n);
        for (size_t k = 0; k < n->n_input; k++) {
            need(im, &c, n->input[k]);
            const struct tensor *outside = name_find(&im->value, n->input[k]);
            if (*n->input[k] && !made_in(body, n->input[k]) && !(outside && outside->data) &&
                strcmp(n->input[k], body->input[0]->name) &&
                strcmp(n->input[k], body->input[1]->name))
                c.known = false;
        }
    }
    for (size_t k = 2; k < body->n_input; k++)
        c.known &= !name_find(&c.needed, body->input[k]->name);
    c.number = name_find(&c.needed, body->input[0]->name) != NULL;
    return c;
}

/* The body as far as its first result needs it: the rest of its nodes is dead. */
static Onnx__GraphProto condition_alone(struct import *im, const Onnx__GraphProto *body,
                                        const struct cause *c) {
    Onnx__GraphProto g = *body;
    g.n_output = 1;
    g.n_initializer = 0;
    g.initializer = arena_array(im->arena, body->n_initializer + 1, sizeof *g.initializer);
    for (size_t i = 0; i < body->n_initializer; i++)
        if (body->initializer[i]->name && name_find(&c->needed, body->initializer[i]->name))
            g.initializer[g.n_initializer++] = body->initializer[i];
    return g;
}

enum loop_end loop_count(struct import *im, const Onnx__GraphProto *body, int64_t *steps) {
    struct cause c = find_cause(im, body);
    if (!c.known) return LOOP_END_BY_VALUE;
    Onnx__GraphProto g = condition_alone(im, body, &c);
    int64_t most = c.number ? *steps : 1;
    for (int64_t t = 0; t < most; t++) {
        if (t == MOST_FOLDED) return LOOP_END_BY_VALUE;
        struct name_table value = im->value, result = im->result;
        im->result = (struct name_table){0};
        im->value = name_copy(im->arena, &value);
        tensor_put_known(im, body->input[0]->name, TYPE_I64, t);
        tensor_put_known(im, body->input[1]->name, TYPE_BOOL, 1);
        const struct tensor *go =
            graph_nodes(im, &g) ? name_find(&im->value, g.output[0]->name) : NULL;
        im->value = value;
        im->result = result;
        if (!go) return LOOP_END_FAILED;
        if (!go->data || go->elements != 1) return LOOP_END_BY_VALUE;
        if (!tensor_int(go, 0)) {
            *steps = t + 1;
            break;
        }
    }
    return LOOP_END_KNOWN;
}
#endif
