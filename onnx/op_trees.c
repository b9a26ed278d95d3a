/* Ensembles of trees (ai.onnx.ml). All nodes stand in tables; each row is at one node of each tree,
 * and goes one level down in each step: one statement looks up the node's feature, what the row has
 * of it, the threshold and the child (ir/pick.c). Leaves lead to themselves. Trees stand in the
 * order of their heights, so that a level has those alone that are so high. */
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
static int32_t place_of(const struct trees *t, int64_t tree, int64_t node) {
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

static bool in_order(const struct trees *t) {
    for (int i = 1; i < t->n; i++)
        if (by_key(&t->key[i - 1], &t->key[i]) >= 0) return false;
    return true;
}

static bool keys_of(struct trees *t) {
    const int64_t *tree, *node;
    if (!attribute_ints(t->im, "nodes_treeids", &tree, &t->n)) return false;
    if (t->n == 0) return node_fail(t->im, "it has no nodes");
    if (!list_of(t, "nodes_nodeids", t->n, &node)) return false;
    t->key = arena_array(t->im->arena, (size_t)t->n, sizeof *t->key);
    for (int i = 0; i < t->n; i++) t->key[i] = (struct key){tree[i], node[i], i};
    if (!in_order(t)) qsort(t->key, (size_t)t->n, sizeof *t->key, by_key);
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

/* Of nodes that stand in `at` behind those that lead to them. */
static void find_heights(struct trees *t, const int32_t *at, int n) {
    t->height = arena_array(t->im->arena, (size_t)t->n, sizeof *t->height);
    for (int k = n - 1; k >= 0; k--) {
        int i = at[k], yes = t->height[t->yes[i]], no = t->height[t->no[i]];
        if (t->yes[i] != i || t->no[i] != i) t->height[i] = 1 + (yes > no ? yes : no);
        if (t->height[i] > t->levels) t->levels = t->height[i];
    }
}

/* Equal ones stay in their order. */
static void highest_first(struct trees *t) {
    int32_t *sorted = arena_array(t->im->arena, (size_t)t->roots, sizeof *sorted);
    int n = 0;
    for (int height = t->levels; height >= 0; height--)
        for (int k = 0; k < t->roots; k++)
            if (t->height[t->root[k]] == height) sorted[n++] = t->root[k];
    t->root = sorted;
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
    for (int k = 0; k < n; k++) {
        int i = at[k];
        if (t->yes[i] == i && t->no[i] == i) continue;
        for (int side = 0; side < 2; side++) {
            int next = side ? t->no[i] : t->yes[i];
            if (t->shared && t->yes[next] == next && t->no[next] == next) continue;
            if (seen[next]) return node_fail(t->im, "a node of its trees is reached twice");
            seen[next] = true;
            at[n++] = next;
        }
    }
    if (!t->shared && n < t->n)
        return node_fail(t->im, "nodes of its trees are not reached from a root");
    find_heights(t, at, n);
    highest_first(t);
    return true;
}

/* Do all entries of a place have one score? */
static bool one_score_each(const struct trees *t, int n, const int32_t *place,
                           const int64_t *score) {
    int64_t *first = arena_array(t->im->arena, (size_t)t->n, sizeof *first);
    for (int i = 0; i < n; i++) {
        if (first[place[i]] && first[place[i]] != score[i] + 1) return false;
        first[place[i]] = score[i] + 1;
    }
    return true;
}

bool trees_weigh(struct trees *t, const char *of, int n, const int32_t *place, const int64_t *score,
                 const double *weight) {
    enum { MOST = 1 << 28 };
    struct arena *a = t->im->arena;
    for (int i = 0; i < n; i++)
        if (score[i] < 0 || score[i] >= t->scores)
            return node_fail(t->im, "'%sids' has the entry %" PRId64 ", expected 0 to %" PRId64, of,
                             score[i], t->scores - 1);
    if (t->scores > 1 && one_score_each(t, n, place, score))
        t->which = arena_array(a, (size_t)t->n, sizeof *t->which);
    int64_t width = t->which ? 1 : t->scores;
    if (width > MOST / t->n)
        return node_fail(t->im, "%d nodes have %" PRId64 " scores each: too many", t->n, width);
    t->weight = arena_array(a, (size_t)t->n * (size_t)width, sizeof *t->weight);
    for (int i = 0; i < n; i++) {
        if (t->which) t->which[place[i]] = (int32_t)score[i];
        t->weight[place[i] * width + (t->which ? 0 : score[i])] += weight[i];
    }
    return true;
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
    int32_t *place = arena_array(a, (size_t)n + 1, sizeof *place);
    int64_t *all = arena_array(a, (size_t)n + 1, sizeof *all);
    for (int i = 0; i < n; i++) {
        if ((place[i] = place_of(t, tree[i], node[i])) < 0) return false;
        all[i] = score;
    }
    return trees_weigh(t, arena_printf(a, "%s_", of), n, place, score < 0 ? ids : all, weight);
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

/* Where a node leads to if not, and if so. */
static const int32_t *children(const struct trees *t) {
    int32_t *child = arena_array(t->im->arena, 2 * (size_t)t->n, sizeof *child);
    for (int i = 0; i < t->n; i++) child[2 * i] = t->no[i], child[2 * i + 1] = t->yes[i];
    return child;
}

/* How many trees go down to this level. It falls by a third or not at all, for the sake of few
 * different numbers of them; a tree that is lower stays at its leaf. */
static int64_t width_of(const struct trees *t, int level) {
    int64_t width = t->roots, n = t->roots;
    for (int l = 1; l <= level; l++) {
        while (n && t->height[t->root[n - 1]] < l) n--;
        if (3 * n <= 2 * width) width = n;
    }
    return width;
}

struct walking {
    struct tensor *root, *feature, *limit, *tracks; /* [roots], the others [n] */
    struct tensor *child, *weight;                  /* [n, 2], [n, scores] or [n, 1] */
    struct tensor *which;                           /* [n]; NULL: weights of all scores */
    struct tensor *at;                              /* [rows, trees] nodes; NULL: the roots */
    const char *row, *node, *column, *side, *score; /* axes */
};

static bool tables_of(const struct trees *t, struct walking *w) {
    enum type type = t->x->type;
    int64_t pairs[2] = {t->n, 2}, weights[2] = {t->n, t->which ? 1 : t->scores};
    const char *base = t->im->node->output[0];
    w->root = table(t, "roots", TYPE_I32, t->roots, t->root);
    w->feature = table(t, "features", TYPE_I32, t->n, t->feature);
    w->limit = table(t, "limits", type, t->n, in_type(t, t->value, t->n));
    w->tracks = table(t, "track", TYPE_I32, t->n, t->tracks);
    w->child = tensor_constant(t->im, base, "children", TYPE_I32, 2, pairs, children(t));
    w->weight = tensor_constant(t->im, base, "weights", type, 2, weights,
                                in_type(t, t->weight, t->n * weights[1]));
    w->which = t->which ? table(t, "which", TYPE_I32, t->n, t->which) : NULL;
    return w->root && w->feature && w->limit && w->tracks && w->child && w->weight &&
           (w->which || !t->which);
}

/* The axes of all statements; others are free again. */
static void own_axes(const struct trees *t, struct walking *w) {
    axes_release(t->im);
    w->row = axis_for(t->im, "n", t->x->extent[0]);
    w->node = axis_for(t->im, "v", t->n);
    w->column = axis_for(t->im, "c", t->x->extent[1]);
    w->side = axis_for(t->im, "s", 2);
    w->score = axis_for(t->im, "k", t->scores);
}

/* Text of the node that the row is at in the tree of that number. */
static const char *node_at(const struct trees *t, const struct walking *w, const char *tree) {
    const char *at[2] = {w->row, tree};
    return w->at ? tensor_element(t->im, w->at, at) : tensor_element(t->im, w->root, &tree);
}

/* 1 where the row leads to `yes`, else 0. A NaN is unequal to all. */
static const char *side_of(const struct trees *t, const struct walking *w) {
    const char *from[2] = {w->row, w->column}, *x = tensor_element(t->im, t->x, from);
    const char *side = arena_printf(t->im->arena, "select(%s %s %s, 1, 0)", x, t->compare,
                                    tensor_element(t->im, w->limit, &w->node));
    if (!t->missing || strcmp(t->compare, "!=") == 0) return side;
    return arena_printf(t->im->arena, "select(%s != %s, %s, %s)", x, x,
                        tensor_element(t->im, w->tracks, &w->node), side);
}

/* From the level above to this one. */
static bool step_down(const struct trees *t, struct walking *w, int level) {
    int64_t extent[2] = {t->x->extent[0], width_of(t, level)};
    struct tensor *y = tensor_temporary(t->im, t->im->node->output[0], "node", TYPE_I32, 2, extent);
    if (!y) return false;
    own_axes(t, w);
    const char *at[2] = {w->row, axis_for(t->im, "t", extent[1])}, *child[2] = {w->node, w->side};
    const char *to = tensor_element(t->im, y, at);
    emit_statement(t->im, "%s = 0", to);
    emit_statement(t->im, "%s += select(%s == i32(%s) & %s == i32(%s) & %s == i32(%s), %s, 0)", to,
                   node_at(t, w, at[1]), w->node, tensor_element(t->im, w->feature, &w->node),
                   w->column, side_of(t, w), w->side, tensor_element(t->im, w->child, child));
    w->at = y;
    return true;
}

/* The weights of trees that go no further down are put together: all rows are at their leaves. */
static void add_leaves(const struct trees *t, struct walking *w, const char *y, int level,
                       enum trees_how how) {
    int64_t from = level < t->levels ? width_of(t, level + 1) : 0, n = width_of(t, level) - from;
    if (n == 0) return;
    own_axes(t, w);
    const char *tree = axis_for(t->im, "t", n), *weight[2] = {w->node, w->which ? "0" : w->score};
    if (from) tree = arena_printf(t->im->arena, "%s + %" PRId64, tree, from);
    const char *to_this = w->which
                              ? arena_printf(t->im->arena, " & %s == i32(%s)",
                                             tensor_element(t->im, w->which, &w->node), w->score)
                              : "";
    emit_statement(t->im, "%s %s select(%s == i32(%s)%s, %s, %s)", y,
                   how == TREES_LEAST  ? "min="
                   : how == TREES_MOST ? "max="
                                       : "+=",
                   node_at(t, w, tree), w->node, to_this, tensor_element(t->im, w->weight, weight),
                   how >= TREES_LEAST ? y : "0");
}

/* Of each row the leaves' weights, put together from `base` on; a value of that name. */
const char *trees_emit(struct trees *t, const double *base, enum trees_how how) {
    struct import *im = t->im;
    enum type type = t->x->type;
    const char *name = im->node->output[0];
    int64_t all[2] = {t->x->extent[0], t->scores};
    double *zeros = arena_array(im->arena, (size_t)t->scores, sizeof *zeros);
    struct walking w = {.at = NULL};
    if (!tables_of(t, &w)) return NULL;
    struct tensor *start =
        table(t, "start", type, t->scores, in_type(t, base ? base : zeros, t->scores));
    struct tensor *sum = tensor_temporary(im, name, "sums", type, 2, all);
    if (!start || !sum) return NULL;
    own_axes(t, &w);
    const char *at[2] = {w.row, w.score}, *y = tensor_element(im, sum, at);
    emit_statement(im, "%s = %s", y,
                   how == TREES_SUM       ? tensor_element(im, start, &w.score)
                   : how == TREES_AVERAGE ? "0"
                   : how == TREES_LEAST   ? type_highest(type)
                                          : type_lowest(type));
    for (int level = 0; level <= t->levels; level++) {
        if (level && !step_down(t, &w, level)) return NULL;
        add_leaves(t, &w, y, level, how);
    }
    if (how == TREES_SUM) return inner_value(im, sum, "sum");
    struct tensor *out = tensor_temporary(im, name, "put", type, 2, all);
    if (!out) return NULL;
    own_axes(t, &w);
    emit_statement(im, "%s = %s%s + %s", tensor_element(im, out, at), y,
                   how == TREES_AVERAGE ? arena_printf(im->arena, " / %d", t->roots) : "",
                   tensor_element(im, start, &w.score));
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
    if (t.scores < 1 || t.scores > MAX_COUNT)
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
