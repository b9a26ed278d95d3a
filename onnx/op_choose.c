/* Operators whose results have as many elements as the data say. What is known when compiling is evaluated here. Where NonZero and
 * Compress look at data, their results have as many places as there may be; those behind the last one name no element. */
#include "onnx/onnx.h"

#ifdef ISAMAP_WITH_ONNX
#include "onnx/onnx_int.h"
#include "ir/memory.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static bool known(struct import *im, const struct tensor *t, int k) {
    return t->data || node_fail(im,
                                "the size of its result depends on input %d, which is not known "
                                "when compiling",
                                k);
}

/* A warning: the result has `n` of what there may be. */
static void warn_of_most(struct import *im, const char *op, int64_t n, const char *behind) {
    diag_warn(im->diags, im->path, 0, 0, "%s (%s): its result has %" PRId64 " places, as many as there may be; those behind the last one hold %s", node_shown(im), op, n, behind);
}

/* Where elements of x are not 0, counted row by row: as many places as x has elements. NULL after reporting. */
static struct tensor *places_found(struct import *im, struct tensor *x) {
    const char *index[MAX_DIMS], *sum = inner_name(im, "sum"), *first = inner_name(im, "axis");
    int64_t n = x->elements;
    struct tensor *is = tensor_temporary(im, x->buffer, "is", TYPE_I64, x->ndims, x->extent),
                  *line = tensor_temporary(im, x->buffer, "line", TYPE_I64, 1, &n),
                  *found = tensor_temporary(im, x->buffer, "found", TYPE_I64, 1, &n),
                  *place = tensor_temporary(im, x->buffer, "place", TYPE_I64, 1, &n);
    if (!is || !line || !found || !place) return NULL;
    axes_for(im, x->ndims, x->extent, index);
    const char *e = tensor_element(im, x, index);
    emit_statement(im, x->type == TYPE_BOOL ? "%s = select(%s, 1, 0)" : "%s = select(%s != 0, 1, 0)", tensor_element(im, is, index), e);
    axes_release(im);
    tensor_put_known(im, first, TYPE_I64, 0);
    if (!emit_copy(im, line, is) || !inner_node(im, "CumSum", inner_value(im, line, "line"), first, sum)) return NULL;
    const char *i = axis_for(im, "i", n), *v = axis_for(im, "v", n), *last = affine_text(im, 0, NULL, NULL, n - 1);
    struct tensor *upto = name_find(&im->value, sum);
    const char *own = tensor_element(im, line, &i), *before = tensor_element(im, upto, &i), *to = tensor_element(im, found, &v);
    emit_statement(im, "%s = 0", to);
    emit_statement(im, "%s += select(select(%s != 0, %s - 1, -1) == i64(%s), i64(%s), 0)", to, own, before, v, i);
    emit_statement(im, "%s = select(i64(%s) < %s, %s, " NO_ELEMENT ")", tensor_element(im, place, &v), v, tensor_element(im, upto, &last), to);
    axes_release(im);
    return place;
}

/* Elements, or slices along an axis, where the condition holds. */
bool op_compress(struct import *im) {
    struct tensor *x = node_input(im, 0), *condition = node_input(im, 1), *index;
    int64_t axis = 0, n = 0;
    int d = 0;
    if (condition->type != TYPE_BOOL || condition->ndims != 1)
        return node_fail(im, "the condition is not a vector of bool");
    if (!attribute_find(im, "axis")) {
        struct tensor *line = tensor_temporary(im, x->buffer, "line", x->type, 1, &x->elements);
        if (!line || !emit_copy(im, line, x)) return false;
        x = line;
    } else if (!attribute_int(im, "axis", &axis) || !axis_normal(im, axis, x->ndims, &d)) {
        return false;
    }
    if (condition->elements > x->extent[d])
        return node_fail(im, "the condition has %" PRId64 " elements for %" PRId64,
                         condition->elements, x->extent[d]);
    if (condition->data) {
        int64_t *place = arena_array(im->arena, (size_t)condition->elements, sizeof *place);
        for (int64_t i = 0; i < condition->elements; i++)
            if (tensor_int(condition, i)) place[n++] = i;
        index = tensor_constant(im, x->buffer, "chosen", TYPE_I64, 1, &n, place);
    } else if ((index = places_found(im, condition))) {
        warn_of_most(im, "Compress", condition->elements, "0");
    }
    return index && gather_places(im, x, index, d);
}

/* The indices along each dimension, of places in a line. */
static bool places_split(struct import *im, struct tensor *x, struct tensor *place) {
    int n = x->ndims ? x->ndims : 1;
    int64_t below = 1;
    struct tensor *y = node_result(im, TYPE_I64, 2, (int64_t[]){n, place->elements});
    if (!y) return false;
    const char *v = axis_for(im, "v", place->elements), *at = tensor_element(im, place, &v);
    for (int d = n - 1; d >= 0; below *= x->ndims ? x->extent[d--] : d--)
        emit_statement(im, "%s = select(%s == " NO_ELEMENT ", " NO_ELEMENT ", %s / %" PRId64 " %% %" PRId64 ")",
                       tensor_element(im, y, (const char *[]){affine_text(im, 0, NULL, NULL, d), v}), at, at, below, x->ndims ? x->extent[d] : 1);
    return true;
}

bool op_non_zero(struct import *im) {
    struct tensor *x = node_input(im, 0);
    int64_t extent[2] = {x->ndims ? x->ndims : 1, 0}, at = 0;
    if (!x->data) {
        struct tensor *place = places_found(im, x);
        if (!place || !places_split(im, x, place)) return false;
        warn_of_most(im, "NonZero", x->elements, NO_ELEMENT);
        return true;
    }
    for (int64_t i = 0; i < x->elements; i++) extent[1] += tensor_float(x, i) != 0;
    int64_t *place = arena_array(im->arena, (size_t)(extent[0] * extent[1]) + 1, sizeof *place);
    for (int64_t i = 0; i < x->elements; i++) {
        if (tensor_float(x, i) == 0) continue;
        int64_t rest = i;
        for (int d = x->ndims - 1; d >= 0; rest /= x->extent[d--])
            place[d * extent[1] + at] = rest % x->extent[d];
        at++;
    }
    return node_constant(im, TYPE_I64, 2, extent, place);
}

/* ---- Unique ---- */

/* x as slices along an axis: of `outer` runs of `inner` elements. */
struct slices {
    const struct tensor *x;
    int64_t n, outer, inner;
};

static const char *run_of(const struct slices *s, int64_t k, int64_t outer) {
    return (const char *)s->x->data +
           (size_t)((outer * s->n + k) * s->inner) * type_size(s->x->type);
}

static int slice_compare(const struct slices *s, int64_t a, int64_t b) {
    for (int64_t i = 0; i < s->outer * s->inner; i++) {
        int64_t at = s->n * (i / s->inner) * s->inner + i % s->inner;
        if (type_is_float(s->x->type)) {
            double x = tensor_float(s->x, at + a * s->inner),
                   y = tensor_float(s->x, at + b * s->inner);
            if (x != y) return x < y ? -1 : 1;
            continue;
        }
        int64_t x = tensor_int(s->x, at + a * s->inner), y = tensor_int(s->x, at + b * s->inner);
        if (x == y) continue;
        return (s->x->type == TYPE_U64 ? (uint64_t)x < (uint64_t)y : x < y) ? -1 : 1;
    }
    return 0;
}

struct ranked {
    const struct slices *s;
    int64_t k;
};

static int by_value(const void *a, const void *b) {
    const struct ranked *x = a, *y = b;
    int order = slice_compare(x->s, x->k, y->k);
    return order ? order : x->k < y->k ? -1 : x->k > y->k;
}

/* The classes of equal slices: of each the first slice and the count; of each slice its class. */
struct classes {
    int64_t n, *first, *count, *of;
};

static void classes_find(struct import *im, const struct slices *s, bool sorted,
                         struct classes *c) {
    struct ranked *rank = memory_array((size_t)s->n, sizeof *rank);
    int64_t **list[] = {&c->first, &c->count, &c->of};
    for (int i = 0; i < 3; i++) *list[i] = arena_array(im->arena, (size_t)s->n, sizeof(int64_t));
    int64_t *renamed = arena_array(im->arena, (size_t)s->n, sizeof *renamed);
    for (int64_t k = 0; k < s->n; k++) rank[k] = (struct ranked){s, k};
    qsort(rank, (size_t)s->n, sizeof *rank, by_value);
    for (int64_t k = 0; k < s->n; k++) {
        if (k == 0 || slice_compare(s, rank[k - 1].k, rank[k].k) != 0) c->first[c->n++] = rank[k].k;
        c->of[rank[k].k] = c->n - 1;
        c->count[c->n - 1]++;
    }
    free(rank);
    if (sorted) return;
    struct classes old = {c->n, arena_copy(im->arena, c->first, (size_t)c->n * sizeof *c->first),
                          arena_copy(im->arena, c->count, (size_t)c->n * sizeof *c->count), NULL};
    for (int64_t k = 0, next = 0; k < s->n; k++) {
        int64_t was = c->of[k];
        if (old.first[was] == k) {
            c->first[next] = k;
            c->count[next] = old.count[was];
            renamed[was] = next++;
        }
        c->of[k] = renamed[was];
    }
}

bool op_unique(struct import *im) {
    struct tensor *x = node_input(im, 0);
    int64_t sorted = 1, extent[MAX_DIMS];
    struct classes c = {0};
    int axis = -1, ndims = 1;
    if (!known(im, x, 0) || !attribute_int(im, "sorted", &sorted)) return false;
    if (attribute_find(im, "axis") && !attribute_axis(im, "axis", 0, x->ndims, &axis)) return false;
    struct slices s = {x, x->elements, 1, 1};
    if (axis >= 0) {
        ndims = x->ndims;
        memcpy(extent, x->extent, sizeof extent);
        s.n = x->extent[axis];
        for (int d = 0; d < axis; d++) s.outer *= x->extent[d];
        for (int d = axis + 1; d < ndims; d++) s.inner *= x->extent[d];
    }
    classes_find(im, &s, sorted != 0, &c);
    extent[axis >= 0 ? axis : 0] = c.n;
    size_t run = (size_t)s.inner * type_size(x->type);
    char *data = arena_alloc(im->arena, (size_t)(s.outer * c.n) * run + 1);
    for (int64_t o = 0; o < s.outer; o++)
        for (int64_t k = 0; k < c.n; k++)
            memcpy(data + (size_t)(o * c.n + k) * run, run_of(&s, c.first[k], o), run);
    return node_constant_at(im, 0, x->type, ndims, extent, data) &&
           (!node_wants(im, 1) || node_constant_at(im, 1, TYPE_I64, 1, &c.n, c.first)) &&
           (!node_wants(im, 2) || node_constant_at(im, 2, TYPE_I64, 1, &s.n, c.of)) &&
           (!node_wants(im, 3) || node_constant_at(im, 3, TYPE_I64, 1, &c.n, c.count));
}

/* ---- NonMaxSuppression ---- */

struct suppression {
    const struct tensor *box, *score;
    int64_t centre, most; /* boxes by centre and size; the most of a class */
    double overlap, least;
    int64_t *chosen; /* batch, class, box */
    int64_t n;
};

/* The corners of box k of a batch: y1 x1 y2 x2 */
static void corners(const struct suppression *s, int64_t batch, int64_t k, double *c) {
    double v[4];
    for (int i = 0; i < 4; i++)
        v[i] = tensor_float(s->box, (batch * s->box->extent[1] + k) * 4 + i);
    for (int d = 0; d < 2; d++) {
        double a = v[d], b = v[d + 2];
        if (s->centre) a = v[1 - d] - v[3 - d] / 2, b = v[1 - d] + v[3 - d] / 2;
        c[d] = a < b ? a : b;
        c[d + 2] = a < b ? b : a;
    }
}

static bool overlaps(const struct suppression *s, int64_t batch, int64_t i, int64_t k) {
    double a[4], b[4], both = 1, area_a = 1, area_b = 1;
    corners(s, batch, i, a);
    corners(s, batch, k, b);
    for (int d = 0; d < 2; d++) {
        double lo = a[d] > b[d] ? a[d] : b[d], hi = a[d + 2] < b[d + 2] ? a[d + 2] : b[d + 2];
        both *= hi > lo ? hi - lo : 0;
        area_a *= a[d + 2] - a[d];
        area_b *= b[d + 2] - b[d];
    }
    return both > 0 && both / (area_a + area_b - both) > s->overlap;
}

/* The boxes of one class by falling score, without those that overlap one chosen before. */
static void suppress(struct suppression *s, int64_t batch, int64_t class) {
    int64_t boxes = s->box->extent[1], row = (batch * s->score->extent[1] + class) * boxes;
    int64_t first = s->n;
    bool *done = memory_array((size_t)boxes, sizeof *done);
    while (s->n - first < s->most) {
        int64_t best = -1;
        for (int64_t k = 0; k < boxes; k++)
            if (!done[k] &&
                (best < 0 || tensor_float(s->score, row + k) > tensor_float(s->score, row + best)))
                best = k;
        if (best < 0 || tensor_float(s->score, row + best) <= s->least) break;
        done[best] = true;
        bool free_of_others = true;
        for (int64_t i = first; i < s->n; i++)
            free_of_others &= !overlaps(s, batch, s->chosen[3 * i + 2], best);
        if (!free_of_others) continue;
        memcpy(s->chosen + 3 * s->n++, (int64_t[]){batch, class, best}, 3 * sizeof(int64_t));
    }
    free(done);
}

static double one_number(struct import *im, int k, double preset) {
    const struct tensor *t = node_input(im, k);
    return t && t->elements ? tensor_float(t, 0) : preset;
}

bool op_non_max_suppression(struct import *im) {
    struct suppression s = {node_input(im, 0), node_input(im, 1), .least = -1.0 / 0.0};
    bool folds = true;
    for (int k = 0; k < 5; k++) folds &= !node_input(im, k) || node_input(im, k)->data;
    if (node_input(im, 2) && !known(im, node_input(im, 2), 2)) return false;
    const struct tensor *b = s.box, *p = s.score;
    if (b->ndims != 3 || b->extent[2] != 4 || p->ndims != 3 || p->extent[0] != b->extent[0] ||
        p->extent[2] != b->extent[1] || b->type != TYPE_F32 || p->type != TYPE_F32)
        return node_fail(im, "boxes %s and scores %s do not fit",
                         shape_text(im->arena, b->ndims, b->extent),
                         shape_text(im->arena, p->ndims, p->extent));
    if (!attribute_int(im, "center_point_box", &s.centre)) return false;
    double most = one_number(im, 2, 0);
    s.most = most > (double)b->extent[1] ? b->extent[1] : (int64_t)most;
    if (!folds)
        return suppress_data(im, node_input(im, 0), node_input(im, 1), s.most, s.centre != 0);
    s.overlap = one_number(im, 3, 0);
    s.least = one_number(im, 4, s.least);
    s.chosen = arena_array(im->arena, (size_t)(3 * p->elements) + 1, sizeof *s.chosen);
    for (int64_t batch = 0; batch < p->extent[0]; batch++)
        for (int64_t class = 0; class < p->extent[1]; class ++) suppress(&s, batch, class);
    return node_constant(im, TYPE_I64, 2, (int64_t[]){s.n, 3}, s.chosen);
}
#endif
