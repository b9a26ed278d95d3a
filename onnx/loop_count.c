/* How often a Loop runs whose condition follows from the number of the iteration, from what is
 * known when compiling, and from states that follow from these: it is folded, iteration by
 * iteration. */
#include "onnx/onnx.h"

#ifdef ISAMAP_WITH_ONNX
#include "onnx/onnx_int.h"

#include <string.h>

enum { MOST_FOLDED = 1 << 16 }; /* iterations */

/* What a body's first result follows from. */
struct cause {
    struct name_table needed;
    bool *state; /* [inputs of the body] needed too, and known when the loop begins */
    bool known;  /* nothing but those, the number of the iteration, and what is known */
    bool number; /* it may differ from one iteration to the next */
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

/* The input of the body that has this name; 0: none, or the number of the iteration. */
static size_t input_of(const Onnx__GraphProto *body, const char *name) {
    size_t k = body->n_input;
    while (k-- > 1)
        if (!strcmp(body->input[k]->name, name)) return k;
    return 0;
}

static bool known_outside(const struct import *im, const Onnx__GraphProto *body, const char *name) {
    const struct tensor *outside = name_find(&im->value, name);
    return !*name || made_in(body, name) || (outside && outside->data) ||
           !strcmp(name, body->input[0]->name) || input_of(body, name);
}

/* Nodes stand in order. */
static void find_nodes(struct import *im, const Onnx__GraphProto *body, struct cause *c) {
    for (size_t i = body->n_node; i-- > 0;) {
        const Onnx__NodeProto *n = body->node[i];
        if (!makes(n, c)) continue;
        c->known &= !has_graph(n);
        for (size_t k = 0; k < n->n_input; k++) {
            need(im, c, n->input[k]);
            c->known &= known_outside(im, body, n->input[k]);
        }
    }
}

/* States that are needed, and what they become. False: all of them are there already. */
static bool find_states(struct import *im, const Onnx__GraphProto *body, struct cause *c) {
    bool more = false;
    for (size_t k = 2; k < body->n_input; k++) {
        if (c->state[k] || !name_find(&c->needed, body->input[k]->name)) continue;
        const struct tensor *first =
            k < im->node->n_input ? name_find(&im->value, im->node->input[k]) : NULL;
        c->known &= first && first->data && k - 1 < body->n_output;
        if (!c->known) return false;
        need(im, c, body->output[k - 1]->name);
        c->state[k] = c->number = more = true;
    }
    return more;
}

static struct cause find_cause(struct import *im, const Onnx__GraphProto *body) {
    struct cause c = {.known = true};
    c.state = arena_array(im->arena, body->n_input + 1, sizeof *c.state);
    need(im, &c, body->output[0]->name);
    do find_nodes(im, body, &c);
    while (find_states(im, body, &c));
    c.number |= name_find(&c.needed, body->input[0]->name) != NULL;
    return c;
}

/* The body as far as its first result and the states need it: the rest of its nodes is dead. */
static Onnx__GraphProto condition_alone(struct import *im, const Onnx__GraphProto *body,
                                        const struct cause *c) {
    Onnx__GraphProto g = *body;
    g.n_output = 0;
    g.output = arena_array(im->arena, body->n_output + 1, sizeof *g.output);
    g.output[g.n_output++] = body->output[0];
    for (size_t k = 2; k < body->n_input; k++)
        if (c->state[k]) g.output[g.n_output++] = body->output[k - 1];
    g.n_initializer = 0;
    g.initializer = arena_array(im->arena, body->n_initializer + 1, sizeof *g.initializer);
    for (size_t i = 0; i < body->n_initializer; i++)
        if (body->initializer[i]->name && name_find(&c->needed, body->initializer[i]->name))
            g.initializer[g.n_initializer++] = body->initializer[i];
    return g;
}

/* One iteration from these states, of which the next ones take the place. The condition behind it;
 * NULL after reporting. Without data: it follows from values. */
static const struct tensor *iterate(struct import *im, const Onnx__GraphProto *body,
                                    const Onnx__GraphProto *g, const struct cause *c, int64_t t,
                                    struct tensor **state) {
    static const struct tensor open;
    struct name_table value = im->value, result = im->result;
    im->result = (struct name_table){0};
    im->value = name_copy(im->arena, &value);
    tensor_put_known(im, body->input[0]->name, TYPE_I64, t);
    tensor_put_known(im, body->input[1]->name, TYPE_BOOL, 1);
    for (size_t k = 2; k < body->n_input; k++)
        if (c->state[k]) name_put(im->arena, &im->value, body->input[k]->name, state[k]);
    bool done = graph_nodes(im, g);
    const struct tensor *go = done ? name_find(&im->value, body->output[0]->name) : NULL;
    for (size_t k = 2; k < body->n_input && go; k++) {
        if (!c->state[k]) continue;
        state[k] = name_find(&im->value, body->output[k - 1]->name);
        if (!state[k] || !state[k]->data) go = &open;
    }
    im->value = value;
    im->result = result;
    return go;
}

enum loop_end loop_count(struct import *im, const Onnx__GraphProto *body, int64_t *steps) {
    struct cause c = find_cause(im, body);
    if (!c.known) return LOOP_END_BY_VALUE;
    Onnx__GraphProto g = condition_alone(im, body, &c);
    struct tensor **state = arena_array(im->arena, body->n_input + 1, sizeof *state);
    for (size_t k = 2; k < body->n_input; k++)
        if (c.state[k]) state[k] = name_find(&im->value, im->node->input[k]);
    int64_t most = c.number ? *steps : 1;
    for (int64_t t = 0; t < most; t++) {
        if (t == MOST_FOLDED) return LOOP_END_BY_VALUE;
        const struct tensor *go = iterate(im, body, &g, &c, t, state);
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
