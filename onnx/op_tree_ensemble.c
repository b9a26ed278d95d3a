/* TreeEnsemble (ai.onnx.ml, since 5): nodes that are no leaves stand in one list, leaves in
 * another. */
#include "onnx/op_trees.h"

#ifdef ISAMAP_WITH_ONNX
#include <inttypes.h>

struct listed { /* what the attributes hold */
    int nodes, leaves;
    const int64_t *feature, *yes, *no, *yes_leaf, *no_leaf, *tracks;
    struct tensor splits;
};

/* A list of integers of `n` entries; *n -1: of any number, which it becomes. */
static bool listed(struct import *im, const char *name, int *n, const int64_t **out) {
    int have;
    if (!attribute_ints(im, name, out, &have)) return false;
    if (*n < 0) *n = have;
    return have == *n || node_fail(im, "'%s' has %d entries, expected %d", name, have, *n);
}

static bool read_lists(struct trees *t, struct listed *l) {
    struct import *im = t->im;
    int given = -1, values;
    *l = (struct listed){.nodes = -1};
    if (!listed(im, "nodes_featureids", &l->nodes, &l->feature)) return false;
    if (l->nodes == 0) return node_fail(im, "it has no nodes");
    if (!listed(im, "nodes_truenodeids", &l->nodes, &l->yes) ||
        !listed(im, "nodes_falsenodeids", &l->nodes, &l->no) ||
        !listed(im, "nodes_trueleafs", &l->nodes, &l->yes_leaf) ||
        !listed(im, "nodes_falseleafs", &l->nodes, &l->no_leaf) ||
        !listed(im, "nodes_missing_value_tracks_true", &given, &l->tracks))
        return false;
    if (given && given != l->nodes)
        return node_fail(im, "'nodes_missing_value_tracks_true' has %d entries, expected %d", given,
                         l->nodes);
    if (!given) l->tracks = NULL;
    if (!ml_tensor(im, "nodes_splits", &l->splits, &values)) return false;
    if (values != l->nodes)
        return node_fail(im, "'nodes_splits' has %d entries, expected %d", values, l->nodes);
    return true;
}

/* All nodes compare in one way. */
static bool modes_of(struct trees *t, int nodes) {
    static const char *const known[] = {"<=", "<", ">=", ">", "==", "!="};
    enum { MODES = sizeof known / sizeof *known };
    struct tensor modes;
    int n;
    if (!ml_tensor(t->im, "nodes_modes", &modes, &n)) return false;
    if (n != nodes) return node_fail(t->im, "'nodes_modes' has %d entries, expected %d", n, nodes);
    int64_t first = tensor_int(&modes, 0);
    if (first < 0 || first >= MODES)
        return node_fail(t->im,
                         "'nodes_modes' has the entry %" PRId64 "; sets of members (6) are "
                         "not supported",
                         first);
    for (int i = 1; i < n; i++)
        if (tensor_int(&modes, i) != first)
            return node_fail(t->im, "its nodes do not all compare in one way that is known");
    t->compare = known[first];
    return true;
}

/* The place in the tables of what a node leads to; -1 after reporting. */
static int32_t leads_to(const struct trees *t, const struct listed *l, int64_t to, bool leaf) {
    if (to >= 0 && to < (leaf ? l->leaves : l->nodes)) return (int32_t)(leaf ? l->nodes + to : to);
    node_fail(t->im, "a node leads to %s %" PRId64 ", which is not there", leaf ? "leaf" : "node",
              to);
    return -1;
}

static bool link_nodes(struct trees *t, const struct listed *l) {
    double *value = arena_array(t->im->arena, (size_t)t->n, sizeof *value);
    for (int i = 0; i < l->nodes; i++) value[i] = tensor_float(&l->splits, i);
    t->value = value;
    trees_tables(t);
    for (int i = 0; i < l->nodes; i++) {
        if (l->feature[i] < 0 || l->feature[i] >= t->x->extent[1])
            return node_fail(t->im, "a node looks at feature %" PRId64 " of %" PRId64,
                             l->feature[i], t->x->extent[1]);
        t->feature[i] = (int32_t)l->feature[i];
        t->tracks[i] = l->tracks && l->tracks[i];
        t->missing |= t->tracks[i] != 0;
        t->yes[i] = leads_to(t, l, l->yes[i], l->yes_leaf[i] != 0);
        t->no[i] = t->yes[i] < 0 ? -1 : leads_to(t, l, l->no[i], l->no_leaf[i] != 0);
        if (t->no[i] < 0) return false;
        if (t->yes[i] == i || t->no[i] == i)
            return node_fail(t->im, "a node of its trees leads to itself");
    }
    return true;
}

static bool roots_of(struct trees *t, int nodes) {
    const int64_t *root;
    if (!attribute_ints(t->im, "tree_roots", &root, &t->roots)) return false;
    if (t->roots == 0) return node_fail(t->im, "it has no trees ('tree_roots')");
    if (t->roots > nodes) return node_fail(t->im, "it has more trees than nodes");
    t->root = arena_array(t->im->arena, (size_t)t->roots, sizeof *t->root);
    for (int i = 0; i < t->roots; i++) {
        if (root[i] < 0 || root[i] >= nodes)
            return node_fail(t->im, "'tree_roots' has the entry %" PRId64 " of %d nodes", root[i],
                             nodes);
        t->root[i] = (int32_t)root[i];
    }
    return true;
}

static bool leaves_of(struct trees *t, struct listed *l) {
    struct tensor weight;
    const int64_t *target;
    int n = -1, weights;
    if (!listed(t->im, "leaf_targetids", &n, &target) ||
        !ml_tensor(t->im, "leaf_weights", &weight, &weights))
        return false;
    if (n == 0 || weights != n) return node_fail(t->im, "%d leaves have %d weights", n, weights);
    l->leaves = n;
    t->n = l->nodes + n;
    if (t->scores < 1 || t->scores > MAX_COUNT)
        return node_fail(t->im, "'n_targets' is %" PRId64 ", expected 1 or more, and fewer",
                         t->scores);
    int32_t *place = arena_array(t->im->arena, (size_t)n, sizeof *place);
    double *adds = arena_array(t->im->arena, (size_t)n, sizeof *adds);
    for (int i = 0; i < n; i++) {
        place[i] = l->nodes + i;
        adds[i] = tensor_float(&weight, i);
    }
    return trees_weigh(t, "leaf_target", n, place, target, adds);
}

bool op_ml_tree_ensemble(struct import *im) {
    static const char *const transform[] = {NULL, "Softmax", "Sigmoid"};
    struct trees t = {.im = im, .x = ml_features(im, true), .shared = true};
    struct listed l;
    int64_t how = TREES_SUM, post = 0;
    attribute_find(im, "nodes_hitrates"); /* how often nodes were passed in training */
    if (!t.x) return false;
    if (t.x->ndims != 2) return node_fail(im, "the input has one dimension, expected rows");
    if (!attribute_int(im, "aggregate_function", &how) ||
        !attribute_int(im, "post_transform", &post) || !attribute_int(im, "n_targets", &t.scores) ||
        !read_lists(&t, &l) || !modes_of(&t, l.nodes) || !leaves_of(&t, &l) ||
        !link_nodes(&t, &l) || !roots_of(&t, l.nodes) || !trees_walk(&t))
        return false;
    if (how < TREES_AVERAGE || how > TREES_MOST || (how >= TREES_LEAST && t.scores > 1))
        return node_fail(im,
                         "'aggregate_function' is %" PRId64 ", expected 0 or 1 (average, sum), "
                         "or for one target 2 or 3 (least, most)",
                         how);
    if (post < 0 || post > 2)
        return node_fail(im,
                         "'post_transform' is %" PRId64 ", expected 0 to 2 (none, softmax, "
                         "logistic)",
                         post);
    const char *sum = trees_emit(&t, NULL, (enum trees_how)how);
    return sum &&
           inner_node(im, post ? transform[post] : "Identity", sum, NULL, im->node->output[0]);
}
#endif
