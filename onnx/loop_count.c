/* How often a Loop runs: its condition is followed iteration by iteration, as far as it comes from
 * the number of the iteration, from what is known when compiling, and from states that follow from
 * these. What comes from values is neither true nor false (Kleene's logic), so a loop that ends
 * when a value is reached or after n iterations is known to end after n. */
#include "onnx/onnx.h"

#ifdef ISAMAP_WITH_ONNX
#include "onnx/onnx_int.h"

#include <string.h>

enum { MOST_FOLDED = 1 << 16, MOST_OPEN = 1 << 12 }; /* iterations; of a condition that is open */

struct scope { /* the body, and in it the branches around a value */
    const Onnx__GraphProto *g;
    const struct scope *outer;
};

struct counting {
    struct import *im;
    const Onnx__GraphProto *body;
    struct name_table needed; /* by the condition */
    bool failed, changes;     /* reported; something known may differ in the next iteration */
};

/* ---- what the condition follows from ---- */

static void need(struct counting *c, const char *name) {
    if (name && *name) name_put(c->im->arena, &c->needed, name, c);
}

static bool needed(const struct counting *c, const char *name) {
    return name && *name && name_find(&c->needed, name);
}

static void need_branch(struct counting *c, const Onnx__GraphProto *g) {
    for (size_t k = 0; k < g->n_output; k++) need(c, g->output[k]->name);
    for (size_t i = 0; i < g->n_node; i++)
        for (size_t k = 0; k < g->node[i]->n_input; k++) need(c, g->node[i]->input[k]);
}

static void need_inputs(struct counting *c, const Onnx__NodeProto *n) {
    for (size_t k = 0; k < n->n_input; k++) need(c, n->input[k]);
    for (size_t k = 0; k < n->n_attribute; k++)
        if (n->attribute[k]->g) need_branch(c, n->attribute[k]->g);
}

/* Nodes stand in order; a state is needed with what it becomes. */
static void find_needed(struct counting *c) {
    const Onnx__GraphProto *body = c->body;
    int before;
    need(c, body->output[0]->name);
    do {
        before = c->needed.n;
        for (size_t i = body->n_node; i-- > 0;)
            for (size_t k = 0; k < body->node[i]->n_output; k++)
                if (needed(c, body->node[i]->output[k])) need_inputs(c, body->node[i]);
        for (size_t k = 2; k < body->n_input; k++)
            if (needed(c, body->input[k]->name)) need(c, body->output[k - 1]->name);
    } while (c->needed.n > before);
}

/* ---- values of one iteration ---- */

static const Onnx__NodeProto *maker_of(const struct scope *s, const char *name) {
    for (; s; s = s->outer)
        for (size_t i = 0; i < s->g->n_node; i++)
            for (size_t k = 0; k < s->g->node[i]->n_output; k++)
                if (!strcmp(s->g->node[i]->output[k], name)) return s->g->node[i];
    return NULL;
}

/* The graph's initialisers alone. */
static bool open_graph(struct counting *c, const Onnx__GraphProto *like) {
    Onnx__GraphProto g = *like;
    g.n_node = g.n_output = 0;
    c->failed |= !graph_nodes(c->im, &g);
    return !c->failed;
}

/* The node alone, its results being what the graph is for. */
static bool fold(struct counting *c, const Onnx__NodeProto *n) {
    Onnx__GraphProto g = ONNX__GRAPH_PROTO__INIT;
    Onnx__NodeProto *node = (Onnx__NodeProto *)n;
    g.n_node = 1;
    g.node = &node;
    g.output = arena_array(c->im->arena, n->n_output, sizeof *g.output);
    for (size_t k = 0; k < n->n_output; k++) {
        if (!*n->output[k]) continue;
        Onnx__ValueInfoProto *v = arena_alloc(c->im->arena, sizeof *v);
        onnx__value_info_proto__init(v);
        v->name = n->output[k];
        g.output[g.n_output++] = v;
    }
    c->failed |= !graph_nodes(c->im, &g);
    return !c->failed;
}

/* The value, folded where all that it follows from is known; NULL: it is not known. */
static struct tensor *known(struct counting *c, const struct scope *s, const char *name) {
    struct tensor *t = name_find(&c->im->value, name);
    const Onnx__NodeProto *n = t ? NULL : maker_of(s, name);
    if (t) return t->data ? t : NULL;
    if (!n || c->failed) return NULL;
    for (size_t k = 0; k < n->n_attribute; k++)
        if (n->attribute[k]->g) return NULL;
    for (size_t k = 0; k < n->n_input; k++)
        if (*n->input[k] && !known(c, s, n->input[k])) return NULL;
    if (!fold(c, n)) return NULL;
    t = name_find(&c->im->value, name);
    return t && t->data ? t : NULL;
}

enum truth { NO, YES, OPEN };

static enum truth both(enum truth a, enum truth b) {
    return a == NO || b == NO ? NO : a == YES && b == YES ? YES : OPEN;
}

static enum truth opposite(enum truth a) {
    return a == OPEN ? OPEN : a == NO ? YES : NO;
}

static enum truth truth_of(struct counting *c, const struct scope *s, const char *name);

/* The branch's first result, where the condition has this value. */
static enum truth branch_truth(struct counting *c, const struct scope *s, const Onnx__NodeProto *n,
                               bool yes) {
    struct name_table value = c->im->value;
    enum truth t = OPEN;
    for (size_t k = 0; k < n->n_attribute; k++) {
        const Onnx__AttributeProto *a = n->attribute[k];
        struct scope inner = {a->g, s};
        if (!a->g || a->g->n_output < 1 ||
            strcmp(a->name, yes ? "then_branch" : "else_branch") != 0)
            continue;
        c->im->value = name_copy(c->im->arena, &value);
        tensor_put_known(c->im, n->input[0], TYPE_BOOL, yes);
        if (open_graph(c, a->g)) t = truth_of(c, &inner, a->g->output[0]->name);
        c->im->value = value;
    }
    return t;
}

static enum truth choice_truth(struct counting *c, const struct scope *s,
                               const Onnx__NodeProto *n) {
    enum truth which = n->n_input == 1 ? truth_of(c, s, n->input[0]) : OPEN;
    enum truth yes = which == NO ? OPEN : branch_truth(c, s, n, true),
               no = which == YES ? OPEN : branch_truth(c, s, n, false);
    return which == YES ? yes : which == NO ? no : yes == no ? yes : OPEN;
}

static enum truth truth_of(struct counting *c, const struct scope *s, const char *name) {
    const struct tensor *t = known(c, s, name);
    const Onnx__NodeProto *n = t ? NULL : maker_of(s, name);
    if (t) return t->elements != 1 ? OPEN : tensor_int(t, 0) ? YES : NO;
    if (!n || c->failed || !n->op_type || n->n_output != 1 || n->n_input < 1) return OPEN;
    const char *op = n->op_type;
    if (!strcmp(op, "If")) return choice_truth(c, s, n);
    enum truth a = truth_of(c, s, n->input[0]);
    if (!strcmp(op, "Not")) return opposite(a);
    bool same = !strcmp(op, "Identity") || !strcmp(op, "Cast") || !strcmp(op, "Squeeze") ||
                !strcmp(op, "Reshape") || !strcmp(op, "Unsqueeze");
    if (same) return a;
    if (n->n_input != 2) return OPEN;
    if (!strcmp(op, "And")) return both(a, truth_of(c, s, n->input[1]));
    if (!strcmp(op, "Or"))
        return opposite(both(opposite(a), opposite(truth_of(c, s, n->input[1]))));
    return OPEN;
}

/* One iteration from these states, of which the next ones take the place; NULL: not known. */
static enum truth iterate(struct counting *c, int64_t t, struct tensor **state) {
    struct import *im = c->im;
    struct name_table value = im->value, result = im->result;
    const struct scope body = {c->body, NULL};
    im->result = (struct name_table){0};
    im->value = name_copy(im->arena, &value);
    tensor_put_known(im, c->body->input[0]->name, TYPE_I64, t);
    tensor_put_known(im, c->body->input[1]->name, TYPE_BOOL, 1);
    for (size_t k = 2; k < c->body->n_input; k++)
        if (state[k]) name_put(im->arena, &im->value, c->body->input[k]->name, state[k]);
    enum truth go = OPEN;
    if (open_graph(c, c->body)) go = truth_of(c, &body, c->body->output[0]->name);
    c->changes = needed(c, c->body->input[0]->name);
    for (size_t k = 2; k < c->body->n_input; k++) {
        if (state[k]) state[k] = known(c, &body, c->body->output[k - 1]->name);
        c->changes |= state[k] != NULL;
    }
    im->value = value;
    im->result = result;
    return go;
}

/* States that are needed and known when the loop begins. */
static struct tensor **first_states(const struct counting *c) {
    struct import *im = c->im;
    struct tensor **state = arena_array(im->arena, c->body->n_input + 1, sizeof *state);
    for (size_t k = 2; k < c->body->n_input && k < im->node->n_input; k++) {
        struct tensor *t = name_find(&im->value, im->node->input[k]);
        if (t && t->data && needed(c, c->body->input[k]->name)) state[k] = t;
    }
    return state;
}

enum loop_end loop_count(struct import *im, const Onnx__GraphProto *body, int64_t *steps) {
    struct counting c = {.im = im, .body = body, .changes = true};
    enum loop_end end = LOOP_END_KNOWN;
    find_needed(&c);
    struct tensor **state = first_states(&c);
    for (int64_t t = 0; t < *steps && c.changes; t++) {
        if (t == (end == LOOP_END_KNOWN ? MOST_FOLDED : MOST_OPEN)) return LOOP_END_BY_VALUE;
        enum truth go = iterate(&c, t, state);
        if (c.failed) return LOOP_END_FAILED;
        if (go == OPEN) end = LOOP_END_BY_VALUE;
        if (go == NO) *steps = t + 1;
    }
    return end;
}
#endif
