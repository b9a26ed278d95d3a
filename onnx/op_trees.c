/* Ensembles of trees (ai.onnx.ml). All nodes stand in tables; each row is at one node of each tree,
 * and goes one level down in each step: the node's feature, its threshold and its children are
 * looked up by an index that is data (op_gather.c). Leaves lead to themselves. */
#include "onnx/op_trees.h"

#ifdef ISAMAP_WITH_ONNX
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct key { /* of a node: its tree, its number there */
    int64_t tree, node;
    int32_t place;
};

/* ---- reading ---- */

static int by_key(const void *a, const void *b) {
    const struct key *x = a, *y = b;
    if (x->tree != y->tree) return x->tree < y->tree ? -1 : 1;
    return x->node < y->node ? -1 : x->node > y->node;
}

/* The node's place in the tables; -1 after reporting that there is none. */
static int place_of(const struct trees *t, int64_t tree, int64_t node) {
    struct key wanted = {tree, node, 0};
    const struct key *k = bsearch(&wanted, t->key, (size_t)t->n, sizeof *k, by_key);
    if (k) return k->place;
    node_fail(t->im, "tree %" PRId64 " has no node %" PRId64, tree, node);
    return -1;
}

static bool list_of(const struct trees *t, const char *name, int n, const int64_t **out) {
    int have;
    if (!attribute_ints(t->im, name, out, &have)) return false;
    return have == n || node_fail(t->im, "'%s' has %d entries, expected %d", name, have, n);
}

static bool keys_of(struct trees *t) {
    const int64_t *tree, *node;
    if (!attribute_ints(t->im, "nodes_treeids", &tree, &t->n)) return false;
    if (t->n == 0) return node_fail(t->im, "it has no nodes");
    if (!list_of(t, "nodes_nodeids", t->n, &node)) return false;
    t->key = arena_array(t->im->arena, (size_t)t->n, sizeof *t->key);
    for (int i = 0; i < t->n; i++) t->key[i] = (struct key){tree[i], node[i], i};
    qsort(t->key, (size_t)t->n, sizeof *t->key, by_key);
    for (int i = 1; i < t->n; i++)
        if (by_key(&t->key[i - 1], &t->key[i]) == 0)
            return node_fail(t->im, "tree %" PRId64 " has two nodes %" PRId64, t->key[i].tree,
                             t->key[i].node);
    return true;
}

static bool is_leaf(const Onnx__AttributeProto *modes, int i) {
    return modes->strings[i].len == 4 && memcmp(modes->strings[i].data, "LEAF", 4) == 0;
}

/* All that are no leaves compare in one way. */
static bool modes_of(struct trees *t, const Onnx__AttributeProto **modes) {
    static const char *const known[][2] = {{"BRANCH_LEQ", "<="}, {"BRANCH_LT", "<"},
                                           {"BRANCH_GTE", ">="}, {"BRANCH_GT", ">"},
                                           {"BRANCH_EQ", "=="},  {"BRANCH_NEQ", "!="}};
    const Onnx__AttributeProto *m = *modes = attribute_find(t->im, "nodes_modes");
    if (!m || m->n_strings != (size_t)t->n)
        return node_fail(t->im, "'nodes_modes' does not have %d entries", t->n);
    t->compare = NULL;
    for (int i = 0; i < t->n; i++) {
        const char *how = NULL;
        if (is_leaf(m, i)) continue;
        for (size_t k = 0; k < sizeof known / sizeof *known; k++)
            if (strlen(known[k][0]) == m->strings[i].len &&
                memcmp(known[k][0], m->strings[i].data, m->strings[i].len) == 0)
                how = known[k][1];
        if (!how || (t->compare && strcmp(how, t->compare)))
            return node_fail(t->im, "its nodes do not all compare in one way that is known");
        t->compare = how;
    }
    if (!t->compare) t->compare = "<=";
    return true;
}

void trees_tables(struct trees *t) {
    int32_t **table[] = {&t->feature, &t->yes, &t->no, &t->tracks};
    for (int k = 0; k < 4; k++)
        *table[k] = arena_array(t->im->arena, (size_t)t->n, sizeof **table[k]);
    for (int i = 0; i < t->n; i++) t->yes[i] = t->no[i] = i;
}

static bool nodes_of(struct trees *t) {
    const Onnx__AttributeProto *modes;
    const int64_t *tree, *feature, *yes, *no, *tracks = NULL;
    int values, given = 0;
    if (!keys_of(t) || !modes_of(t, &modes) || !list_of(t, "nodes_treeids", t->n, &tree) ||
        !list_of(t, "nodes_featureids", t->n, &feature) ||
        !list_of(t, "nodes_truenodeids", t->n, &yes) ||
        !list_of(t, "nodes_falsenodeids", t->n, &no) ||
        !ml_numbers(t->im, "nodes_values", &t->value, &values) ||
        !attribute_ints(t->im, "nodes_missing_value_tracks_true", &tracks, &given))
        return false;
    if (values != t->n || (given && given != t->n))
        return node_fail(t->im, "%d values and %d entries for missing ones, for %d nodes", values,
                         given, t->n);
    trees_tables(t);
    for (int i = 0; i < t->n; i++) {
        if (is_leaf(modes, i)) continue;
        if (feature[i] < 0 || feature[i] >= t->x->extent[1])
            return node_fail(t->im, "a node looks at feature %" PRId64 " of %" PRId64, feature[i],
                             t->x->extent[1]);
        t->feature[i] = (int32_t)feature[i];
        t->tracks[i] = given && tracks[i];
        t->missing |= t->tracks[i] != 0;
        if ((t->yes[i] = place_of(t, tree[i], yes[i])) < 0 ||
            (t->no[i] = place_of(t, tree[i], no[i])) < 0)
            return false;
        if (t->yes[i] == i || t->no[i] == i)
            return node_fail(t->im, "a node of its trees leads to itself");
    }
    return true;
}

/* Those that no other node leads to. */
static void find_roots(struct trees *t) {
    bool *child = arena_array(t->im->arena, (size_t)t->n, sizeof *child);
    t->root = arena_array(t->im->arena, (size_t)t->n, sizeof *t->root);
    for (int i = 0; i < t->n; i++)
        if (t->yes[i] != i || t->no[i] != i) child[t->yes[i]] = child[t->no[i]] = true;
    for (int i = 0; i < t->n; i++)
        if (!child[i]) t->root[t->roots++] = i;
}

/* Level by level from the roots: each node is reached once at most. */
bool trees_walk(struct trees *t) {
    bool *seen = arena_array(t->im->arena, (size_t)t->n, sizeof *seen);
    int32_t *at = arena_array(t->im->arena, (size_t)t->n, sizeof *at);
    int n = 0;
    if (!t->shared) find_roots(t);
    for (int k = 0; k < t->roots; k++) {
        if (seen[t->root[k]]) return node_fail(t->im, "two of its trees have one root");
        seen[t->root[k]] = true;
        at[n++] = t->root[k];
    }
    for (int from = 0, to = n; from < to; from = to, to = n) {
        bool deeper = false;
        for (int k = from; k < to; k++) {
            int i = at[k];
            if (t->yes[i] == i && t->no[i] == i) continue;
            deeper = true;
            for (int side = 0; side < 2; side++) {
                int next = side ? t->no[i] : t->yes[i];
                if (t->shared && t->yes[next] == next && t->no[next] == next) continue;
                if (seen[next]) return node_fail(t->im, "a node of its trees is reached twice");
                seen[next] = true;
                at[n++] = next;
            }
        }
        t->levels += deeper;
    }
    return t->shared || n == t->n ||
           node_fail(t->im, "nodes of its trees are not reached from a root");
}

/* What leaves add to the scores, by the attributes `of`_treeids and so on. score -1: by their
 * ids; else all to that one. */
static bool weights_of(struct trees *t, const char *of, const int64_t *ids, int n, int64_t score) {
    struct arena *a = t->im->arena;
    const int64_t *tree, *node;
    const double *weight;
    int have;
    if (!list_of(t, arena_printf(a, "%s_treeids", of), n, &tree) ||
        !list_of(t, arena_printf(a, "%s_nodeids", of), n, &node) ||
        !ml_numbers(t->im, arena_printf(a, "%s_weights", of), &weight, &have))
        return false;
    if (have != n) return node_fail(t->im, "'%s_weights' has %d entries, expected %d", of, have, n);
    t->weight = arena_array(a, (size_t)t->n * (size_t)t->scores, sizeof *t->weight);
    for (int i = 0; i < n; i++) {
        int place = place_of(t, tree[i], node[i]);
        int64_t s = score >= 0 ? score : ids[i];
        if (place < 0) return false;
        if (s < 0 || s >= t->scores)
            return node_fail(t->im, "'%s_ids' has the entry %" PRId64 ", expected 0 to %" PRId64,
                             of, s, t->scores - 1);
        t->weight[(int64_t)place * t->scores + s] += weight[i];
    }
    return true;
}

/* ---- statements ---- */

static struct tensor *table(const struct trees *t, const char *name, enum type type, int64_t n,
                            const void *data) {
    data = arena_copy(t->im->arena, data, (size_t)n * type_size(type));
    return tensor_constant(t->im, t->im->node->output[0], name, type, 1, &n, data);
}

/* The numbers in the type of x. */
static const void *in_type(const struct trees *t, const double *v, int64_t n) {
    if (t->x->type == TYPE_F64) return v;
    float *f = arena_array(t->im->arena, (size_t)n, sizeof *f);
    for (int64_t i = 0; i < n; i++) f[i] = (float)v[i];
    return f;
}

static const int32_t *children(const struct trees *t) {
    int32_t *child = arena_array(t->im->arena, 2 * (size_t)t->n, sizeof *child);
    for (int i = 0; i < t->n; i++) child[2 * i] = t->no[i], child[2 * i + 1] = t->yes[i];
    return child;
}

struct walking {
    struct tensor *feature, *value, *tracks;
    struct tensor *child; /* of node k: where it leads to if not, and if so, at 2 k and 2 k + 1 */
    const char *at[2];    /* row, tree */
    const char *node, *edge, *column;
};

/* A temporary: for each row and tree what the table holds where the index says; `along` is the
 * table's axis. */
static const char *look_up(const struct trees *t, const struct walking *w, const char *suffix,
                           struct tensor *from, const char *along, const char *index) {
    int64_t extent[2] = {t->x->extent[0], t->roots};
    struct tensor *y =
        tensor_temporary(t->im, t->im->node->output[0], suffix, from->type, 2, extent);
    if (!y) return NULL;
    const char *to = tensor_element(t->im, y, w->at);
    emit_statement(t->im, "%s = 0", to);
    emit_statement(t->im, "%s += select(%s == i32(%s), %s, 0)", to, index, along,
                   tensor_element(t->im, from, &along));
    return to;
}

/* Text of what stands in the feature that the index names, of each row. */
static const char *feature_at(const struct trees *t, const struct walking *w, const char *index) {
    int64_t extent[2] = {t->x->extent[0], t->roots};
    struct tensor *y =
        tensor_temporary(t->im, t->im->node->output[0], "feature", t->x->type, 2, extent);
    if (!y) return NULL;
    const char *to = tensor_element(t->im, y, w->at), *from[2] = {w->at[0], w->column};
    emit_statement(t->im, "%s = 0", to);
    emit_statement(t->im, "%s += select(%s == i32(%s), %s, 0)", to, index, w->column,
                   tensor_element(t->im, t->x, from));
    return to;
}

/* Text of the nodes one level below those at `at`. */
static const char *step_down(const struct trees *t, const struct walking *w, const char *at) {
    int64_t extent[2] = {t->x->extent[0], t->roots};
    const char *column = look_up(t, w, "column", w->feature, w->node, at),
               *value = look_up(t, w, "limit", w->value, w->node, at),
               *tracks = t->missing ? look_up(t, w, "tracks", w->tracks, w->node, at) : "",
               *x = column ? feature_at(t, w, column) : NULL;
    struct tensor *edge =
        tensor_temporary(t->im, t->im->node->output[0], "edge", TYPE_I32, 2, extent);
    if (!value || !tracks || !x || !edge) return NULL;
    const char *missing =
        t->missing ? arena_printf(t->im->arena, " | %s != %s & %s != 0", x, x, tracks) : "";
    const char *to = tensor_element(t->im, edge, w->at);
    emit_statement(t->im, "%s = 2 * %s + select(%s %s %s%s, 1, 0)", to, at, x, t->compare, value,
                   missing);
    return look_up(t, w, "node", w->child, w->edge, to);
}

/* Of each row the leaves' weights, put together from `base` on; a value of that name. */
const char *trees_emit(struct trees *t, const double *base, enum trees_how how) {
    struct import *im = t->im;
    enum type type = t->x->type;
    bool mean = how == TREES_AVERAGE;
    const char *base_name = im->node->output[0];
    int64_t rows[2] = {t->x->extent[0], t->roots}, each[3] = {rows[0], rows[1], t->scores},
            all[2] = {rows[0], t->scores}, weights[2] = {t->n, t->scores};
    struct walking w = {table(t, "features", TYPE_I32, t->n, t->feature),
                        table(t, "limits", type, t->n, in_type(t, t->value, t->n)),
                        table(t, "track", TYPE_I32, t->n, t->tracks),
                        table(t, "children", TYPE_I32, 2 * (int64_t)t->n, children(t)),
                        {0},
                        NULL,
                        NULL,
                        NULL};
    struct tensor *root = table(t, "roots", TYPE_I32, t->roots, t->root);
    struct tensor *weight = tensor_constant(im, base_name, "weights", type, 2, weights,
                                            in_type(t, t->weight, t->n * t->scores));
    double *zeros = arena_array(im->arena, (size_t)t->scores, sizeof *zeros);
    struct tensor *start =
        table(t, "start", type, t->scores, in_type(t, base ? base : zeros, t->scores));
    struct tensor *at = tensor_temporary(im, base_name, "node", TYPE_I32, 2, rows);
    struct tensor *leaf = tensor_temporary(im, base_name, "leaf", type, 3, each);
    struct tensor *sum = tensor_temporary(im, base_name, "sums", type, 2, all);
    if (!w.feature || !w.value || !w.child || !w.tracks || !root || !weight || !start || !at ||
        !leaf || !sum)
        return NULL;
    w.at[0] = axis_for(im, "n", rows[0]);
    w.at[1] = axis_for(im, "t", rows[1]);
    w.node = axis_for(im, "v", t->n);
    w.edge = axis_for(im, "e", 2 * (int64_t)t->n);
    w.column = axis_for(im, "c", t->x->extent[1]);
    const char *k = axis_for(im, "k", t->scores), *here = tensor_element(im, at, w.at);
    emit_statement(im, "%s = %s", here, tensor_element(im, root, &w.at[1]));
    for (int level = 0; level < t->levels && here; level++) here = step_down(t, &w, here);
    if (!here) return NULL;
    const char *leaf_at[3] = {w.at[0], w.at[1], k}, *weight_at[2] = {w.node, k},
               *sum_at[2] = {w.at[0], k};
    const char *one = tensor_element(im, leaf, leaf_at), *y = tensor_element(im, sum, sum_at);
    emit_statement(im, "%s = 0", one);
    emit_statement(im, "%s += select(%s == i32(%s), %s, 0)", one, here, w.node,
                   tensor_element(im, weight, weight_at));
    static const char *const combine[] = {"+=", "+=", "min=", "max="};
    const char *first = how == TREES_SUM     ? tensor_element(im, start, &k)
                        : mean               ? "0"
                        : how == TREES_LEAST ? type_highest(type)
                                             : type_lowest(type);
    emit_statement(im, "%s = %s", y, first);
    emit_statement(im, "%s %s %s", y, combine[how], one);
    if (how == TREES_SUM) return inner_value(im, sum, "sum");
    struct tensor *out = tensor_temporary(im, base_name, "put", type, 2, all);
    if (!out) return NULL;
    emit_statement(im, "%s = %s%s + %s", tensor_element(im, out, sum_at), y,
                   mean ? arena_printf(im->arena, " / %d", t->roots) : "",
                   tensor_element(im, start, &k));
    return inner_value(im, out, "put");
}

static bool trees_read(struct trees *t, struct import *im) {
    attribute_find(im, "nodes_hitrates"); /* how often nodes were passed in training */
    attribute_find(im, "nodes_hitrates_as_tensor");
    *t = (struct trees){.im = im, .x = ml_features(im, true)};
    if (!t->x) return false;
    if (t->x->ndims != 2) return node_fail(im, "the input has one dimension, expected rows");
    return nodes_of(t) && trees_walk(t);
}

static bool base_of(struct trees *t, int expected, const double **base) {
    int n;
    if (!ml_numbers(t->im, "base_values", base, &n)) return false;
    if (n == 0) *base = NULL;
    return n == 0 || n == expected ||
           node_fail(t->im, "'base_values' has %d entries, expected %d", n, expected);
}

/* What is given away is f32. */
static const char *in_floats(struct import *im, const char *value) {
    const struct tensor *t = name_find(&im->value, value);
    struct inner n = {.input = {value}, .ninputs = 1, .output = {inner_name(im, "floats")}};
    if (!t || t->type == TYPE_F32) return value;
    inner_int(im, &n, "to", ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT);
    return inner_lower(im, &n, "Cast") ? n.output[0] : NULL;
}

bool op_ml_tree_regressor(struct import *im) {
    struct trees t;
    const int64_t *ids;
    const double *base;
    const char *how = "SUM";
    int n;
    if (!trees_read(&t, im)) return false;
    t.scores = 1;
    if (!attribute_int(im, "n_targets", &t.scores) ||
        !attribute_string(im, "aggregate_function", &how) ||
        !attribute_ints(im, "target_ids", &ids, &n))
        return false;
    static const char *const known[] = {"AVERAGE", "SUM", "MIN", "MAX"};
    int put = 0;
    while (put < 4 && strcmp(how, known[put]) != 0) put++;
    if (put == 4)
        return node_fail(im, "'aggregate_function' is '%s', expected AVERAGE, SUM, MIN or MAX",
                         name_shown(im->arena, how));
    if (put >= TREES_LEAST && t.scores > 1)
        return node_fail(im, "'aggregate_function' is '%s' for several targets", known[put]);
    if (t.scores < 1 || t.scores > MAX_COUNT / t.n)
        return node_fail(im, "'n_targets' is %" PRId64 ", expected 1 or more, and fewer", t.scores);
    if (!base_of(&t, (int)t.scores, &base) || !weights_of(&t, "target", ids, n, -1)) return false;
    const char *sum = trees_emit(&t, base, (enum trees_how)put);
    return sum && (sum = in_floats(im, sum)) && ml_transform(im, sum, im->node->output[0]);
}

/* One score for two classes: that of the second, which the first one's follows from. All weights
 * positive: a probability. */
static bool two_by_one(struct import *im, struct trees *t, const double *base, bool positive) {
    const char *sum = trees_emit(t, base, TREES_SUM), *how = "NONE";
    sum = sum ? in_floats(im, sum) : NULL;
    struct tensor *s = sum ? name_find(&im->value, sum) : NULL;
    int64_t rows = t->x->extent[0], both[2] = {rows, 2};
    struct tensor *second =
        s ? tensor_temporary(im, im->node->output[0], "second", TYPE_I64, 1, &rows) : NULL;
    struct tensor *pair =
        second ? tensor_temporary(im, im->node->output[0], "pair", TYPE_F32, 2, both) : NULL;
    if (!pair || !attribute_string(im, "post_transform", &how)) return false;
    axes_release(im);
    const char *n = axis_for(im, "n", rows), *from[2] = {n, "0"}, *to[2] = {n, "1"};
    const char *x = tensor_element(im, s, from);
    emit_statement(im, "%s = select(%s > %s, 1, 0)", tensor_element(im, second, &n), x,
                   positive ? "0.5" : "0");
    emit_statement(im, "%s = %s - %s", tensor_element(im, pair, from), positive ? "1" : "0", x);
    emit_statement(im, "%s = %s", tensor_element(im, pair, to), x);
    const char *scores = inner_value(im, pair, "pair"), *out = ml_probabilities(im);
    bool plain = strcmp(how, "SOFTMAX") == 0 || (positive && strcmp(how, "LOGISTIC") == 0);
    return ml_label_of(im, inner_value(im, second, "second"), "classlabels_int64s") &&
           (plain ? inner_node(im, "Identity", scores, NULL, out) : ml_transform(im, scores, out));
}

bool op_ml_tree_classifier(struct import *im) {
    struct trees t;
    const int64_t *ids, *labels;
    const double *base, *weight;
    const char *sum;
    int n, classes, weights;
    if (!trees_read(&t, im) || !attribute_ints(im, "class_ids", &ids, &n) ||
        !attribute_ints(im, "classlabels_int64s", &labels, &classes) ||
        !ml_labels(im, "classlabels_int64s", -1, &labels) ||
        !ml_numbers(im, "class_weights", &weight, &weights))
        return false;
    bool one = classes == 2 && n > 0, positive = true;
    for (int i = 1; i < n; i++) one &= ids[i] == ids[0];
    for (int i = 0; i < weights; i++) positive &= weight[i] >= 0;
    t.scores = one ? 1 : classes;
    if (!base_of(&t, (int)t.scores, &base) || !weights_of(&t, "class", ids, n, one ? 0 : -1))
        return false;
    if (one) return two_by_one(im, &t, base, positive);
    return (sum = trees_emit(&t, base, TREES_SUM)) && (sum = in_floats(im, sum)) &&
           ml_classify(im, sum, "classlabels_int64s") &&
           ml_transform(im, sum, ml_probabilities(im));
}
#endif
