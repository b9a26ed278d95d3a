/* Support vectors (ai.onnx.ml). */
#include "onnx/op_ml.h"

#ifdef ISAMAP_WITH_ONNX
#include <inttypes.h>
#include <string.h>

struct vectors {
    struct tensor *x; /* [rows, features] */
    int64_t n;
    const float *at; /* [n][features] */
    const char *how; /* LINEAR, POLY, RBF, SIGMOID */
    float param[3];  /* gamma, the constant, the degree */
};

static bool vectors_read(struct import *im, struct vectors *v) {
    const float *params;
    int n, nparams;
    *v = (struct vectors){.x = ml_features(im, false), .how = "LINEAR"};
    if (!v->x || !attribute_string(im, "kernel_type", &v->how) ||
        !ml_floats(im, "kernel_params", &params, &nparams) ||
        !ml_floats(im, "support_vectors", &v->at, &n))
        return false;
    if (strcmp(v->how, "LINEAR") && strcmp(v->how, "POLY") && strcmp(v->how, "RBF") &&
        strcmp(v->how, "SIGMOID"))
        return node_fail(im, "'kernel_type' is '%s', expected LINEAR, POLY, RBF or SIGMOID",
                         name_shown(im->arena, v->how));
    if (v->x->ndims != 2) return node_fail(im, "the input has one dimension, expected rows");
    if (nparams != 3 && nparams != 0)
        return node_fail(im, "'kernel_params' has %d entries, expected 3", nparams);
    if (nparams) memcpy(v->param, params, sizeof v->param);
    if (v->x->elements) v->n = n / v->x->extent[1];
    if (!v->x->elements || n % v->x->extent[1])
        return node_fail(im, "%d numbers are no vectors of %" PRId64 " features", n,
                         v->x->extent[1]);
    return true;
}

/* What the products of rows with vectors become. */
static const char *kernel_of(struct import *im, const struct vectors *v, const char *dot) {
    const char *gamma = text_number(im, TYPE_F32, v->param[0]),
               *moved = arena_printf(im->arena, "%s * %s + %s", gamma, dot,
                                     text_number(im, TYPE_F32, v->param[1]));
    if (*v->how == 'R') return arena_printf(im->arena, "exp(-%s * %s)", gamma, dot);
    if (*v->how == 'S') return arena_printf(im->arena, "tanh(%s)", moved);
    return *v->how == 'L' ? dot
                          : arena_printf(im->arena, "pow(%s, %s)", moved,
                                         text_number(im, TYPE_F32, v->param[2]));
}

/* The name of a value [rows, n]: kernel(row, vector); of radial ones of the squared distance. */
static const char *kernels(struct import *im, const struct vectors *v) {
    const char *base = im->node->output[0];
    int64_t rows = v->x->extent[0], features = v->x->extent[1], at[2] = {v->n, features},
            all[2] = {rows, v->n};
    struct tensor *list = tensor_constant(
                      im, base, "vectors", TYPE_F32, 2, at,
                      arena_copy(im->arena, v->at, (size_t)(v->n * features) * sizeof *v->at)),
                  *dot = tensor_temporary(im, base, "products", TYPE_F32, 2, all),
                  *made = tensor_temporary(im, base, "kernels", TYPE_F32, 2, all);
    if (!list || !dot || !made) return NULL;
    const char *r = axis_for(im, "n", rows), *s = axis_for(im, "s", v->n),
               *f = axis_for(im, "f", features), *pair[2] = {r, s}, *from[2] = {r, f},
               *of[2] = {s, f}, *d = tensor_element(im, dot, pair),
               *e = tensor_element(im, v->x, from), *w = tensor_element(im, list, of),
               *apart = arena_printf(im->arena, "(%s - %s)", e, w);
    bool radial = *v->how == 'R';
    emit_statement(im, "%s = 0", d);
    emit_statement(im, "%s += %s * %s", d, radial ? apart : e, radial ? apart : w);
    emit_statement(im, "%s = %s", tensor_element(im, made, pair), kernel_of(im, v, d));
    axes_release(im);
    return inner_value(im, made, "kernels");
}

/* The name of a value [rows, columns]: a [rows, inner] times b [inner, columns], plus `start`
 * [columns]. */
static const char *weighted(struct import *im, const char *a, int64_t inner, int64_t columns,
                            const float *b, const float *start) {
    int64_t shape[2] = {inner, columns};
    struct inner g = {.input = {a, ml_constant(im, "weights", TYPE_F32, 2, shape, b),
                                ml_constant(im, "start", TYPE_F32, 1, &columns, start)},
                      .ninputs = 3,
                      .output = {inner_name(im, "scores")}};
    return g.input[1] && g.input[2] && inner_lower(im, &g, "Gemm") ? g.output[0] : NULL;
}

/* Sum over the vectors of coefficient times kernel, plus rho; without vectors the row times the
 * coefficients. */
bool op_ml_svm_regressor(struct import *im) {
    const float *coef, *rho;
    int64_t supports = 0, one_class = 0;
    int n, nrho;
    struct vectors v;
    if (!vectors_read(im, &v) || !ml_floats(im, "coefficients", &coef, &n) ||
        !ml_floats(im, "rho", &rho, &nrho) || !attribute_int(im, "n_supports", &supports) ||
        !attribute_int(im, "one_class", &one_class))
        return false;
    if (supports != v.n || nrho != 1 || n != (supports ? supports : v.x->extent[1]))
        return node_fail(im,
                         "%d coefficients and %d of 'rho' for %" PRId64 " vectors, of which it "
                         "has %" PRId64,
                         n, nrho, supports, v.n);
    const char *from = supports ? kernels(im, &v) : v.x->name,
               *sum = from ? weighted(im, from, n, 1, coef, rho) : NULL;
    if (!sum || !one_class) return sum && ml_transform(im, sum, im->node->output[0]);
    int64_t shape[2] = {v.x->extent[0], 1};
    struct tensor *s = name_find(&im->value, sum), *y = node_result(im, TYPE_F32, 2, shape);
    if (!y) return false;
    axes_release(im);
    const char *row[2] = {axis_for(im, "n", shape[0]), "0"};
    emit_statement(im, "%s = select(%s > 0, 1, -1)", tensor_element(im, y, row),
                   tensor_element(im, s, row));
    return true;
}

/* ---- classes ---- */

enum { MOST_CLASSES = 256 };
struct duels { /* each class against each later one */
    int classes, n;
    const int64_t *vectors;  /* of each class */
    int first[MOST_CLASSES]; /* of each class, of its vectors */
};

/* [vectors][duels]: a duel's score has the coefficients of both classes' vectors. */
static const float *duel_weights(struct import *im, const struct duels *d, const struct vectors *v,
                                 const float *coef) {
    float *w = arena_array(im->arena, (size_t)v->n * (size_t)d->n, sizeof *w);
    int e = 0;
    for (int i = 0; i < d->classes; i++)
        for (int j = i + 1; j < d->classes; j++, e++) {
            for (int k = d->first[i]; k < d->first[i] + d->vectors[i]; k++)
                w[(int64_t)k * d->n + e] = coef[(int64_t)(j - 1) * v->n + k];
            for (int k = d->first[j]; k < d->first[j] + d->vectors[j]; k++)
                w[(int64_t)k * d->n + e] = coef[(int64_t)i * v->n + k];
        }
    return w;
}

/* The name of a value [rows, classes]: how many duels each class wins. */
static const char *votes(struct import *im, const struct duels *d, struct tensor *scores) {
    float *won = arena_array(im->arena, (size_t)(d->n * d->classes), sizeof *won),
          *lost = arena_array(im->arena, (size_t)(d->n * d->classes), sizeof *lost);
    int64_t table[2] = {d->n, d->classes}, all[2] = {scores->extent[0], d->classes};
    int e = 0;
    for (int i = 0; i < d->classes; i++)
        for (int j = i + 1; j < d->classes; j++, e++)
            won[e * d->classes + i] = lost[e * d->classes + j] = 1;
    const char *base = im->node->output[0];
    struct tensor *a = tensor_constant(im, base, "won", TYPE_F32, 2, table, won),
                  *b = tensor_constant(im, base, "lost", TYPE_F32, 2, table, lost),
                  *y = tensor_temporary(im, base, "votes", TYPE_F32, 2, all);
    if (!a || !b || !y) return NULL;
    axes_release(im);
    const char *n = axis_for(im, "n", all[0]), *c = axis_for(im, "c", all[1]),
               *s = axis_for(im, "e", d->n), *to[2] = {n, c}, *at[2] = {n, s}, *of[2] = {s, c},
               *v = tensor_element(im, y, to);
    emit_statement(im, "%s = 0", v);
    emit_statement(im, "%s += select(%s > 0, %s, %s)", v, tensor_element(im, scores, at),
                   tensor_element(im, a, of), tensor_element(im, b, of));
    return inner_value(im, y, "votes");
}

/* Two classes: the score's negative, then the score. */
static const char *both_sides(struct import *im, struct tensor *scores) {
    int64_t shape[2] = {scores->extent[0], 2};
    struct tensor *y = tensor_temporary(im, im->node->output[0], "sides", TYPE_F32, 2, shape);
    if (!y) return NULL;
    axes_release(im);
    const char *n = axis_for(im, "n", shape[0]), *at[2] = {n, "0"}, *second[2] = {n, "1"},
               *s = tensor_element(im, scores, at);
    emit_statement(im, "%s = -%s", tensor_element(im, y, at), s);
    emit_statement(im, "%s = %s", tensor_element(im, y, second), s);
    return inner_value(im, y, "sides");
}

static bool duels_read(struct import *im, struct duels *d, const struct vectors *v) {
    int n;
    int64_t all = 0;
    if (!attribute_ints(im, "vectors_per_class", &d->vectors, &n)) return false;
    if (n < 2 || n > MOST_CLASSES)
        return node_fail(im, "'vectors_per_class' has %d entries, expected 2 to %d", n,
                         MOST_CLASSES);
    d->classes = n;
    d->n = n * (n - 1) / 2;
    for (int i = 0; i < n; i++) {
        d->first[i] = (int)all;
        if (d->vectors[i] < 0 || (all += d->vectors[i]) > v->n) break;
    }
    return all == v->n ||
           node_fail(im, "'vectors_per_class' does not add up to %" PRId64 " vectors", v->n);
}

/* ---- probabilities ----
 *
 * Each duel has a probability, the logistic function of its score. From these come those of the
 * classes: T.-F. Wu, C.-J. Lin, R. C. Weng, Probability Estimates for Multi-class Classification by
 * Pairwise Coupling, 2004, algorithm 2. Steps, limits and where it ends are those of libsvm, which
 * ONNX Runtime has too: what it gives is not the limit of the steps. */

enum { COUPLING_STEPS = 100 };

struct coupling {
    int64_t rows, classes;
    const char *n, *i, *j; /* axes */
    struct tensor *won;  /* [rows, classes, classes]: that i wins against j; i = j: of no meaning */
    struct tensor *form; /* [rows, classes, classes]: Q of the paper */
};

/* [rows, duels]: the probability that the first class of the duel wins */
static struct tensor *duels_won(struct import *im, struct tensor *scores, const float *a,
                                const float *b) {
    const char *base = im->node->output[0];
    int64_t duels = scores->extent[1];
    size_t bytes = (size_t)duels * sizeof *a;
    struct tensor *slope = tensor_constant(im, base, "slope", TYPE_F32, 1, &duels,
                                           arena_copy(im->arena, a, bytes)),
                  *start = tensor_constant(im, base, "offset", TYPE_F32, 1, &duels,
                                           arena_copy(im->arena, b, bytes)),
                  *y = tensor_temporary(im, base, "duels", TYPE_F32, 2, scores->extent);
    if (!slope || !start || !y) return NULL;
    axes_release(im);
    const char *at[2] = {axis_for(im, "n", scores->extent[0]), axis_for(im, "e", duels)};
    emit_statement(im, "%s = clip(1 - sigmoid(%s * %s + %s), 0.0000001, 0.9999999)",
                   tensor_element(im, y, at), tensor_element(im, scores, at),
                   tensor_element(im, slope, &at[1]), tensor_element(im, start, &at[1]));
    return y;
}

/* won: each duel is found from both sides. */
static bool coupling_square(struct import *im, struct coupling *c, struct tensor *duels) {
    const char *base = im->node->output[0], *pairs = inner_name(im, "pairs");
    int64_t all[3] = {c->rows, c->classes, c->classes}, square = c->classes * c->classes;
    int64_t *which = arena_array(im->arena, (size_t)square, sizeof *which), e = 0;
    for (int64_t i = 0; i < c->classes; i++)
        for (int64_t j = i + 1; j < c->classes; j++, e++)
            which[i * c->classes + j] = which[j * c->classes + i] = e;
    const char *from = inner_value(im, duels, "duels"),
               *list = ml_constant(im, "pair", TYPE_I64, 1, &square, which);
    struct inner g = {.input = {from, list}, .ninputs = 2, .output = {pairs}};
    inner_int(im, &g, "axis", 1);
    if (!list || !inner_lower(im, &g, "Gather")) return false;
    struct tensor *pair = name_find(&im->value, pairs);
    c->won = tensor_temporary(im, base, "wins", TYPE_F32, 3, all);
    if (!c->won) return false;
    axes_release(im);
    c->n = axis_for(im, "n", c->rows);
    c->i = axis_for(im, "i", c->classes);
    c->j = axis_for(im, "j", c->classes);
    const char *to[3] = {c->n, c->i, c->j},
               *at[2] = {c->n, affine_text(im, 2, (int64_t[]){c->classes, 1}, &to[1], 0)},
               *p = tensor_element(im, pair, at);
    emit_statement(im, "%s = select(%s < %s, %s, 1 - %s)", tensor_element(im, c->won, to), c->i,
                   c->j, p, p);
    return true;
}

/* Off the diagonal -r(j,i) r(i,j), on it the sum over all others of r(j,i) squared */
static bool coupling_form(struct import *im, struct coupling *c) {
    const char *base = im->node->output[0], *at[3] = {c->n, c->i, c->j},
               *turned[3] = {c->n, c->j, c->i}, *here[2] = {c->n, c->i};
    struct tensor *sum = tensor_temporary(im, base, "squares", TYPE_F32, 2, c->won->extent);
    c->form = tensor_temporary(im, base, "form", TYPE_F32, 3, c->won->extent);
    if (!sum || !c->form) return false;
    const char *s = tensor_element(im, sum, here), *one = tensor_element(im, c->won, at),
               *other = tensor_element(im, c->won, turned);
    emit_statement(im, "%s = 0", s);
    emit_statement(im, "%s += select(%s == %s, 0, %s * %s)", s, c->i, c->j, other, other);
    emit_statement(im, "%s = select(%s == %s, %s, -%s * %s)", tensor_element(im, c->form, at), c->i,
                   c->j, s, other, one);
    return true;
}

/* The name of a value [rows, classes]. A step corrects one class after the other, and scales all of
 * them to the sum 1; a row whose error is small stays as it is. */
static const char *coupling_steps(struct import *im, const struct coupling *c) {
    const char *base = im->node->output[0], *n = c->n, *i = c->i, *j = c->j, *q = c->form->buffer;
    struct tensor *first = tensor_temporary(im, base, "first", TYPE_F32, 2, c->won->extent),
                  *last = tensor_temporary(im, base, "odds", TYPE_F32, 2, c->won->extent);
    if (!first || !last) return NULL;
    const char *p = name_unique(im, "p"), *qp = name_unique(im, "qp"), *e = name_unique(im, "pqp"),
               *worst = name_unique(im, "worst"), *next = name_unique(im, "next"),
               *d = name_unique(im, "d"), *u = name_unique(im, "u"), *v = name_unique(im, "v"),
               *w = name_unique(im, "w"), *t = name_unique(im, "t"), *k = name_unique(im, "k"),
               *row = arena_printf(im->arena, "f32[%" PRId64 "]", c->rows),
               *rows = arena_printf(im->arena, "f32%s", shape_text(im->arena, 2, c->won->extent)),
               *least = text_number(im, TYPE_F32, (double)(0.005f / (float)c->classes));
    emit_statement(im, "%s[%s,%s] = %s", first->buffer, n, i,
                   text_number(im, TYPE_F32, (double)(1.0f / (float)c->classes)));
    emit_statement(im, "recur %s: %d  state %s: %s from %s to %s {", t, COUPLING_STEPS, p, rows,
                   first->buffer, last->buffer);
    emit_statement(im, "  temp %s: %s, %s: %s, %s: %s, %s: %s", qp, rows, next, rows, e, row, worst,
                   row);
    emit_statement(im, "  %s[%s,%s] = 0", qp, n, i);
    emit_statement(im, "  %s[%s,%s] += %s[%s,%s,%s] * %s[%s,%s]", qp, n, i, q, n, i, j, p, n, j);
    emit_statement(im, "  %s[%s] = 0", e, n);
    emit_statement(im, "  %s[%s] += %s[%s,%s] * %s[%s,%s]", e, n, p, n, i, qp, n, i);
    emit_statement(im, "  %s[%s] = 0", worst, n);
    emit_statement(im, "  %s[%s] max= abs(%s[%s,%s] - %s[%s])", worst, n, qp, n, i, e, n);
    emit_statement(im,
                   "  recur %s: %" PRId64 "  state %s: %s from %s to %s  state %s: %s from %s  "
                   "state %s: %s from %s {",
                   k, c->classes, u, rows, p, next, v, rows, qp, w, row, e);
    emit_statement(im, "    temp %s: %s", d, row);
    emit_statement(im, "    %s[%s] = (%s[%s] - %s[%s,%s]) / %s[%s,%s,%s]", d, n, w, n, v, n, k, q,
                   n, k, k);
    emit_statement(im, "    %s'[%s,%s] = (%s[%s,%s] + select(%s == %s, %s[%s], 0)) / (1 + %s[%s])",
                   u, n, i, u, n, i, i, k, d, n, d, n);
    emit_statement(im, "    %s'[%s,%s] = (%s[%s,%s] + %s[%s] * %s[%s,%s,%s]) / (1 + %s[%s])", v, n,
                   i, v, n, i, d, n, q, n, k, i, d, n);
    emit_statement(im,
                   "    %s'[%s] = (%s[%s] + %s[%s] * (%s[%s] * %s[%s,%s,%s] + 2 * %s[%s,%s])) / "
                   "(1 + %s[%s]) / (1 + %s[%s])",
                   w, n, w, n, d, n, d, n, q, n, k, k, v, n, k, d, n, d, n);
    emit_statement(im, "  }");
    emit_statement(im, "  %s'[%s,%s] = select(%s[%s] < %s, %s[%s,%s], %s[%s,%s])", p, n, i, worst,
                   n, least, p, n, i, next, n, i);
    emit_statement(im, "}");
    return inner_value(im, last, "odds");
}

/* The name of a value [rows, classes]; `scores` where there are no probabilities. */
static const char *probabilities(struct import *im, const struct duels *d, const char *scores) {
    const float *a, *b;
    int na, nb;
    if (!ml_floats(im, "prob_a", &a, &na) || !ml_floats(im, "prob_b", &b, &nb)) return NULL;
    struct tensor *s = name_find(&im->value, scores);
    if (!na && !nb) return d->n == 1 ? both_sides(im, s) : scores;
    if (na != d->n || nb != d->n) {
        node_fail(im, "'prob_a' and 'prob_b' have %d and %d entries, expected %d", na, nb, d->n);
        return NULL;
    }
    struct coupling c = {.rows = s->extent[0], .classes = d->classes};
    struct tensor *won = duels_won(im, s, a, b);
    return won && coupling_square(im, &c, won) && coupling_form(im, &c) ? coupling_steps(im, &c)
                                                                        : NULL;
}

/* Each class against each other; the label is that of the class that wins most often. */
bool op_ml_svm_classifier(struct import *im) {
    struct vectors v;
    struct duels d;
    const float *coef, *rho;
    const int64_t *labels;
    int n, nrho;
    if (!vectors_read(im, &v) || !duels_read(im, &d, &v) ||
        !ml_labels(im, "classlabels_ints", d.classes, &labels) ||
        !ml_floats(im, "coefficients", &coef, &n) || !ml_floats(im, "rho", &rho, &nrho))
        return false;
    if (nrho != d.n || v.n == 0 || n / v.n != d.classes - 1 || n % v.n)
        return node_fail(im,
                         "%d coefficients and %d of 'rho' for %" PRId64 " vectors of %d classes", n,
                         nrho, v.n, d.classes);
    const char *from = kernels(im, &v),
               *scores =
                   from ? weighted(im, from, v.n, d.n, duel_weights(im, &d, &v, coef), rho) : NULL;
    struct tensor *s = scores ? name_find(&im->value, scores) : NULL;
    const char *won = s ? votes(im, &d, s) : NULL;
    if (!won || !(scores = probabilities(im, &d, scores))) return false;
    return ml_classify(im, won, "classlabels_ints") &&
           ml_transform(im, scores, ml_probabilities(im));
}
#endif
