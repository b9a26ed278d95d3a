/* Operators that ask where elements stand in an order: arguments of the greatest, hardmax, the k
 * greatest, running sums. */
#include "onnx/onnx.h"

#ifdef ISAMAP_WITH_ONNX
#include "onnx/onnx_int.h"

#include <inttypes.h>
#include <string.h>

/* From here on an axis is walked in order, in time linear in it. On shorter ones that costs more
 * than what is quadratic. */
enum { LONG_AXIS = 256 };

/* Where so many times the results are all elements, these are ranked; else it takes less to insert
 * them into a list of the results. */
enum { RANKED = 8 };

/* Lists side by side, and their elements. */
enum { MOST_LANES = 16, SIDE_BY_SIDE = 256 };

static bool ordered(struct import *im, const struct tensor *x) {
    return x->type != TYPE_BOOL ||
           node_fail(im, "the input is bool, which this operator does not take");
}

/* m = the greatest (or least) along the axis, at the index `kept`. */
static struct tensor *extreme(struct import *im, struct tensor *x, bool most, const char *base,
                              int nkept, const int64_t *extent, const char *const *kept,
                              const char *const *index) {
    struct tensor *m = tensor_temporary(im, base, "extreme", x->type, nkept, extent);
    if (!m) return NULL;
    emit_statement(im, "%s = %s", tensor_element(im, m, kept),
                   most ? type_lowest(x->type) : type_highest(x->type));
    emit_statement(im, "%s %s %s", tensor_element(im, m, kept),
                   most ? "max=" : "min=", tensor_element(im, x, index));
    return m;
}

/* The first (or last) place along the axis where x is the extreme; 0 where all are NaN. */
static bool argument(struct import *im, bool most) {
    struct tensor *x = node_input(im, 0);
    int64_t keep = 1, last = 0, extent[MAX_DIMS], full[MAX_DIMS];
    const char *index[MAX_DIMS], *kept[MAX_DIMS], *all[MAX_DIMS];
    int axis, n = 0;
    if (!ordered(im, x) || !attribute_axis(im, "axis", 0, x->ndims, &axis) ||
        !attribute_int(im, "keepdims", &keep) || !attribute_int(im, "select_last_index", &last))
        return false;
    axes_for(im, x->ndims, x->extent, index);
    for (int d = 0; d < x->ndims; d++) {
        full[d] = d == axis ? 1 : x->extent[d];
        all[d] = d == axis ? "0" : index[d];
        if (d == axis && !keep) continue;
        extent[n] = full[d];
        kept[n++] = all[d];
    }
    struct tensor *y = node_result(im, TYPE_I64, n, extent);
    struct tensor *m = y ? extreme(im, x, most, y->buffer, x->ndims, full, all, index) : NULL;
    if (!m) return false;
    bool none = !last && type_is_float(x->type); /* may be the extreme */
    int64_t start = last ? 0 : x->extent[axis] - !none;
    struct tensor *found = none ? tensor_temporary(im, y->buffer, "found", TYPE_I64, n, extent) : y;
    if (!found) return false;
    const char *to = tensor_element(im, found, kept);
    emit_statement(im, "%s = %" PRId64, to, start);
    emit_statement(im, "%s %s select(%s == %s, i64(%s), %" PRId64 ")", to,
                   last ? "max=" : "min=", tensor_element(im, x, index), tensor_element(im, m, all),
                   index[axis], start);
    if (none)
        emit_statement(im, "%s = select(%s == %" PRId64 ", 0, %s)", tensor_element(im, y, kept), to,
                       start, to);
    return true;
}

bool op_arg_max(struct import *im) {
    return argument(im, true);
}

bool op_arg_min(struct import *im) {
    return argument(im, false);
}

/* 1 at the first greatest element along the axis, else 0. Before opset 13 the dimensions from the
 * axis on are one. */
bool op_hardmax(struct import *im) {
    struct tensor *x = node_input(im, 0);
    int64_t extent[MAX_DIMS];
    const char *index[MAX_DIMS], *kept[MAX_DIMS];
    int axis;
    if (!type_is_float(x->type) || x->ndims == 0)
        return node_fail(im, "the input is not a tensor of floats");
    if (!attribute_axis(im, "axis", im->opset < 13 ? (x->ndims > 1) : -1, x->ndims, &axis))
        return false;
    axes_for(im, x->ndims, x->extent, index);
    int64_t n = 1, step[MAX_DIMS];
    for (int d = x->ndims - 1; d >= 0; d--) {
        bool one = im->opset < 13 ? d >= axis : d == axis;
        step[d] = one ? n : 0;
        if (one) n *= x->extent[d];
        extent[d] = one ? 1 : x->extent[d];
        kept[d] = one ? "0" : index[d];
    }
    const char *which = affine_text(im, x->ndims, step, index, 0);
    struct tensor *y = node_result(im, x->type, x->ndims, x->extent);
    struct tensor *m = y ? extreme(im, x, true, y->buffer, x->ndims, extent, kept, index) : NULL;
    struct tensor *at =
        m ? tensor_temporary(im, y->buffer, "at", TYPE_I64, x->ndims, extent) : NULL;
    if (!at) return false;
    const char *place = tensor_element(im, at, kept);
    emit_statement(im, "%s = %" PRId64, place, n - 1);
    emit_statement(im, "%s min= select(%s == %s, i64(%s), %" PRId64 ")", place,
                   tensor_element(im, x, index), tensor_element(im, m, kept), which, n - 1);
    emit_statement(im, "%s = %s(i64(%s) == %s)", tensor_element(im, y, index), type_name(y->type),
                   which, place);
    return true;
}

/* ---- running sums and products ---- */

struct running {
    int axis;
    bool exclusive, reverse, product;
};

/* Every sum by itself: quadratic, but the sums need no order. */
static void sums_apart(struct import *im, const struct running *r, struct tensor *x,
                       struct tensor *sum, const char *const *index) {
    const char *from[MAX_DIMS];
    memcpy(from, index, sizeof from);
    from[r->axis] = axis_for(im, "j", x->extent[r->axis]);
    emit_statement(im, "%s = %d", tensor_element(im, sum, index), r->product);
    emit_statement(im, "%s %c= %s where %s %s %s", tensor_element(im, sum, index),
                   r->product ? '*' : '+', sum_widen(im, x->type, tensor_element(im, x, from)),
                   from[r->axis],
                   r->reverse     ? r->exclusive ? ">" : ">="
                   : r->exclusive ? "<"
                                  : "<=",
                   index[r->axis]);
}

/* Each sum from the one before. */
static bool sums_in_order(struct import *im, const struct running *r, struct tensor *x,
                          struct tensor *sum, const char *const *index) {
    int64_t extent[MAX_DIMS];
    const char *here[MAX_DIMS], *now[MAX_DIMS], *t = name_unique(im, "t");
    memcpy(extent, x->extent, sizeof extent);
    memcpy(here, index, sizeof here);
    memcpy(now, index, sizeof now);
    extent[r->axis] = 1;
    here[r->axis] = "0";
    now[r->axis] = t;
    struct tensor *start = tensor_temporary(im, sum->buffer, "start", sum->type, x->ndims, extent);
    if (!start) return false;
    struct tensor state = {
        .buffer = name_unique(im, "so_far"), .ndims = x->ndims, .declared = true};
    const char *before = tensor_element(im, &state, here);
    emit_statement(im, "%s = %d", tensor_element(im, start, here), r->product);
    emit_statement(im, "recur %s: %" PRId64 "%s  state %s: %s%s from %s {", t, x->extent[r->axis],
                   r->reverse ? " reverse" : "", state.buffer, type_name(sum->type),
                   shape_text(im->arena, x->ndims, extent), start->buffer);
    if (r->exclusive) emit_statement(im, "  %s = %s", tensor_element(im, sum, now), before);
    state.buffer = arena_printf(im->arena, "%s'", state.buffer);
    const char *after = tensor_element(im, &state, here);
    emit_statement(im, "  %s = %s %c %s", after, before, r->product ? '*' : '+',
                   sum_widen(im, x->type, tensor_element(im, x, now)));
    if (!r->exclusive) emit_statement(im, "  %s = %s", tensor_element(im, sum, now), after);
    emit_statement(im, "}");
    return true;
}

static bool sums_along(struct import *im, const struct running *r, struct tensor *x,
                       struct tensor *sum, const char *const *index) {
    if (x->extent[r->axis] >= LONG_AXIS) return sums_in_order(im, r, x, sum, index);
    sums_apart(im, r, x, sum, index);
    return true;
}

/* ---- the k greatest ---- */

/* Which elements stand first: equal ones in the order of their indices; a NaN is above all numbers.
 */
struct ranking {
    int axis;
    int64_t k;
    bool largest, floats;
};

/* Truth: the element x of index i stands before the element y of index j. */
static const char *stands_before(struct import *im, const struct ranking *r, const char *x,
                                 const char *i, const char *y, const char *j) {
    const char *sign = r->largest ? ">" : "<";
    if (!r->floats)
        return arena_printf(im->arena, "%s %s %s | %s == %s & %s < %s", x, sign, y, x, y, i, j);
    const char *high = r->largest ? x : y, *low = r->largest ? y : x;
    return arena_printf(im->arena,
                        "%s %s %s | %s == %s & %s < %s | %s != %s & (%s == %s | %s < %s)", x, sign,
                        y, x, y, i, j, high, high, low, low, i, j);
}

/* An element among others along the axis: the texts of both, and of their places. */
struct pair {
    const char *here, *other, *i, *j;
};

/* Adds to the rank how many elements stand before this one, as long as it is no NaN: a NaN is not
 * less than it, so it counts where the greatest come first. Before its place equal ones count. */
static void count_before(struct import *im, const struct ranking *r, const struct pair *x,
                         const char *rank) {
    for (int behind = 0; behind < 2; behind++)
        emit_statement(im, "%s += select(%s %s %s, %d, %d) where %s %s %s", rank, x->other,
                       r->largest ^ behind ? "<" : "<=", x->here, !r->largest, r->largest, x->j,
                       behind ? ">" : "<", x->i);
}

/* The same as one sum, along rows of f32: of equal elements those before count, which a constant
 * says. Instructions compare a row with one of its elements. */
static bool count_in_rows(struct import *im, const struct ranking *r, const struct tensor *x,
                          const struct pair *p, const char *rank) {
    int64_t n = x->extent[r->axis], extent[2] = {n, n};
    int32_t *data = arena_array(im->arena, (size_t)(n * n), sizeof *data);
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = j + 1; i < n; i++) data[j * n + i] = 1;
    struct tensor *first = tensor_constant(im, x->buffer, "first", TYPE_I32, 2, extent, data);
    if (!first) return false;
    const char *at[2] = {p->j, p->i};
    emit_statement(im, "%s += select(%s < %s, %d, select(%s == %s, %s, %d))", rank, p->other,
                   p->here, !r->largest, p->other, p->here, tensor_element(im, first, at),
                   r->largest);
    return true;
}

static bool in_rows(const struct ranking *r, const struct tensor *x) {
    int64_t behind = 1;
    for (int d = r->axis + 1; d < x->ndims; d++) behind *= x->extent[d];
    return behind == 1 && x->type == TYPE_F32 && x->extent[r->axis] <= LONG_AXIS;
}

/* The rank of a NaN: of those before it, and where the least come first of all numbers. NULL after
 * reporting. */
static const char *rank_of_nan(struct import *im, const struct ranking *r, const struct tensor *x,
                               const char *here, const char *const *index) {
    const char *name = x->buffer, *all[MAX_DIMS];
    int64_t extent[MAX_DIMS];
    struct running before = {.axis = r->axis, .exclusive = true};
    struct tensor *is = tensor_temporary(im, name, "is_nan", TYPE_I32, x->ndims, x->extent);
    struct tensor *nans = tensor_temporary(im, name, "nans", TYPE_I32, x->ndims, x->extent);
    if (!is || !nans) return NULL;
    emit_statement(im, "%s = i32(%s != %s)", tensor_element(im, is, index), here, here);
    if (!sums_along(im, &before, is, nans, index)) return NULL;
    const char *rank = tensor_element(im, nans, index);
    if (r->largest) return rank;
    memcpy(extent, x->extent, sizeof extent);
    memcpy(all, index, sizeof all);
    extent[r->axis] = 1;
    all[r->axis] = "0";
    struct tensor *n = tensor_temporary(im, name, "numbers", TYPE_I32, x->ndims, extent);
    if (!n) return NULL;
    const char *numbers = tensor_element(im, n, all);
    emit_statement(im, "%s = 0", numbers);
    emit_statement(im, "%s += i32(%s == %s)", numbers, here, here);
    return arena_printf(im->arena, "%s + %s", rank, numbers);
}

/* The rank of each element is the number of those before it; the k-th result is the element of rank
 * k. */
static bool top_by_ranks(struct import *im, const struct ranking *r, struct tensor *x,
                         struct tensor *value, struct tensor *place) {
    const char *index[MAX_DIMS], *other[MAX_DIMS], *to[MAX_DIMS];
    struct tensor *count =
        tensor_temporary(im, value->buffer, "count", TYPE_I32, x->ndims, x->extent);
    struct tensor *rank =
        tensor_temporary(im, value->buffer, "rank", TYPE_I32, x->ndims, x->extent);
    if (!count || !rank) return false;
    axes_for(im, x->ndims, x->extent, index);
    memcpy(other, index, sizeof other);
    memcpy(to, index, sizeof to);
    other[r->axis] = axis_for(im, "j", x->extent[r->axis]);
    struct pair pair = {tensor_element(im, x, index), tensor_element(im, x, other), index[r->axis],
                        other[r->axis]};
    const char *a = pair.here, *n = tensor_element(im, rank, index),
               *before = tensor_element(im, count, index);
    emit_statement(im, "%s = 0", before);
    if (!in_rows(r, x))
        count_before(im, r, &pair, before);
    else if (!count_in_rows(im, r, x, &pair, before))
        return false;
    if (r->floats) {
        const char *nan = rank_of_nan(im, r, x, a, index);
        if (!nan) return false;
        before = arena_printf(im->arena, "select(%s != %s, %s, %s)", a, a, nan, before);
    }
    emit_statement(im, "%s = %s", n, before);
    to[r->axis] = axis_for(im, "k", r->k);
    const char *v = tensor_element(im, value, to), *p = tensor_element(im, place, to);
    emit_statement(im, "%s = 0", v);
    emit_statement(im, "%s += select(%s == i32(%s), %s, 0)", v, n, to[r->axis], a);
    emit_statement(im, "%s = 0", p);
    emit_statement(im, "%s += select(%s == i32(%s), i64(%s), 0)", p, n, to[r->axis],
                   index[r->axis]);
    return true;
}

/* Sorted lists of k side by side, one for each lane, whose elements are `lanes` apart. */
struct lists {
    const struct ranking *r;
    int64_t lanes;
    int ndims;
    const char *index[MAX_DIMS]; /* axes of all dimensions but that of the order */
    enum type type;              /* of the values: f32 for f16 and bf16 */
    const char *first, *last;    /* what nothing stands before, and what stands behind all */
};

/* An element with `at` along the axis of the order. */
static const char *listed(struct import *im, const struct lists *l, const char *buffer,
                          const char *at) {
    struct tensor t = {.buffer = buffer, .ndims = l->ndims, .declared = true};
    const char *here[MAX_DIMS];
    memcpy(here, l->index, sizeof here);
    here[l->r->axis] = at;
    return tensor_element(im, &t, here);
}

/* What goes into the lists in each step: the texts of a value and of its index. */
struct arrival {
    int64_t steps;
    const char *step, *lane, *value, *index;
};

/* One element after the other is inserted into each list, if it stands before the list's last one:
 * a recurrence. Place 0 holds what nothing stands before, the others begin with what stands behind
 * all: values at the ends of the order, with indices outside. Writes the lists' buffers, places
 * and values, to end. */
static bool insert(struct import *im, const struct lists *l, const struct tensor *x,
                   const struct arrival *in, struct tensor **end) {
    static const char *const hint[2] = {"list", "at"};
    const char *state[2], *before = name_unique(im, "before");
    int64_t n = x->extent[l->r->axis], extent[MAX_DIMS];
    struct tensor *start[2];
    struct text head = {0};
    memcpy(extent, x->extent, sizeof extent);
    extent[l->r->axis] = (l->r->k + 1) * l->lanes;
    for (int s = 0; s < 2; s++) {
        enum type type = s ? TYPE_I32 : l->type;
        start[s] = tensor_temporary(im, "top", "start", type, x->ndims, extent);
        end[s] = tensor_temporary(im, "top", "end", type, x->ndims, extent);
        if (!start[s] || !end[s]) return text_free(&head), false;
        state[s] = name_unique(im, hint[s]);
        text_printf(&head, "%s%s: %s%s from %s to %s", s ? " state " : "", state[s],
                    type_name(type), shape_text(im->arena, x->ndims, extent), start[s]->buffer,
                    end[s]->buffer);
    }
    const char *all = axis_for(im, "all", l->r->k + 1), *j = axis_for(im, "j", l->r->k);
    const char *axes[2] = {all, in->lane};
    int64_t apart[2] = {l->lanes, 1};
    all = affine_text(im, 2, apart, axes, 0);
    axes[0] = j;
    const char *here = affine_text(im, 2, apart, axes, 0),
               *next = affine_text(im, 2, apart, axes, l->lanes), *lane = in->lane;
#define AT(name, i) listed(im, l, name, i)
    for (int s = 0; s < 2; s++) {
        emit_statement(im, "%s = %s", AT(start[s]->buffer, all),
                       s ? arena_printf(im->arena, "%" PRId64, n) : l->last);
        emit_statement(im, "%s = %s", AT(start[s]->buffer, lane), s ? "-1" : l->first);
    }
    emit_statement(im, "recur %s: %" PRId64 "  state %s {", in->step, in->steps, head.at);
    text_free(&head);
    emit_statement(im, "  temp %s: bool%s", before, shape_text(im->arena, x->ndims, extent));
    emit_statement(
        im, "  %s = %s", AT(before, all),
        stands_before(im, l->r, in->value, in->index, AT(state[0], all), AT(state[1], all)));
    for (int s = 0; s < 2; s++) {
        const char *following = arena_printf(im->arena, "%s'", state[s]);
        emit_statement(im, "  %s = %s", AT(following, lane), s ? "-1" : l->first);
        emit_statement(im, "  %s = select(%s, select(%s, %s, %s), %s)", AT(following, next),
                       AT(before, next), AT(before, here), AT(state[s], here),
                       s ? in->index : in->value, AT(state[s], next));
    }
#undef AT
    emit_statement(im, "}");
    return true;
}

/* Short lists are filled side by side, each with its share of the elements, and then put together:
 * n / lanes steps fill them, k lanes steps put them together. Longer ones fill vectors alone, and
 * so do the dimensions behind the axis. */
static int64_t lanes_of(const struct tensor *x, const struct ranking *r) {
    int64_t inner = 1;
    for (int d = r->axis + 1; d < x->ndims && inner <= MOST_LANES; d++) inner *= x->extent[d];
    for (int64_t lanes = MOST_LANES; lanes >= MOST_LANES / 2; lanes /= 2)
        if (lanes * inner <= MOST_LANES && r->k <= SIDE_BY_SIDE / lanes &&
            r->k * lanes * lanes <= x->extent[r->axis])
            return lanes;
    return 1;
}

/* One list of the first of all lists' elements. */
static bool put_together(struct import *im, struct lists *l, const struct tensor *x,
                         struct tensor **end) {
    struct arrival in = {l->r->k * l->lanes, name_unique(im, "t"), "0", NULL, NULL};
    const char *all = axis_for(im, "all", in.steps),
               *from = affine_text(im, 1, (int64_t[]){1}, &all, l->lanes);
    int64_t extent[MAX_DIMS];
    memcpy(extent, x->extent, sizeof extent);
    extent[l->r->axis] = in.steps;
    for (int s = 0; s < 2; s++) {
        struct tensor *t = tensor_temporary(im, "top", "of_lists", end[s]->type, x->ndims, extent);
        if (!t) return false;
        emit_statement(im, "%s = %s", listed(im, l, t->buffer, all),
                       listed(im, l, end[s]->buffer, from));
        *(s ? &in.index : &in.value) = listed(im, l, t->buffer, in.step);
    }
    l->lanes = 1;
    return insert(im, l, x, &in, end);
}

/* Sorted lists into which one element after the other is inserted: time in proportion to n times k.
 */
static bool top_by_insertion(struct import *im, const struct ranking *r, struct tensor *x,
                             struct tensor *value, struct tensor *place) {
    const char *lowest = type_lowest(x->type), *highest = type_highest(x->type);
    int64_t n = x->extent[r->axis];
    struct lists l = {
        .r = r, .lanes = lanes_of(x, r), .ndims = x->ndims, .type = sum_type(x->type)};
    struct tensor *end[2];
    l.first = r->floats ? r->largest ? "nan" : lowest : r->largest ? highest : lowest;
    l.last = r->largest ? lowest : r->floats ? "nan" : highest;
    axes_for(im, x->ndims, x->extent, l.index);
    struct arrival in = {.steps = (n - 1) / l.lanes + 1,
                         .step = name_unique(im, "t"),
                         .lane = axis_for(im, "lane", l.lanes)};
    const char *axes[2] = {in.step, in.lane},
               *at = affine_text(im, 2, (int64_t[]){l.lanes, 1}, axes, 0);
    const char *element[MAX_DIMS];
    memcpy(element, l.index, sizeof element);
    element[r->axis] = at;
    in.value =
        sum_widen(im, x->type, tensor_element_else(im, x, element, n % l.lanes ? l.last : NULL));
    in.index = arena_printf(im->arena, "i32(%s)", at);
    if (!insert(im, &l, x, &in, end)) return false;
    if (l.lanes > 1 && !put_together(im, &l, x, end)) return false;
    const char *j = axis_for(im, "k", r->k), *next = affine_text(im, 1, (int64_t[]){1}, &j, 1);
    emit_statement(im, "%s = %s", listed(im, &l, value->buffer, j),
                   sum_narrow(im, x->type, listed(im, &l, end[0]->buffer, next)));
    emit_statement(im, "%s = i64(%s)", listed(im, &l, place->buffer, j),
                   listed(im, &l, end[1]->buffer, next));
    return true;
}

bool op_top_k(struct import *im) {
    struct tensor *x = node_input(im, 0);
    struct ranking r = {.floats = type_is_float(x->type)};
    int64_t largest = 1, sorted = 1, extent[MAX_DIMS];
    const int64_t *list = NULL;
    int n = 0;
    if (!ordered(im, x) || !attribute_axis(im, "axis", -1, x->ndims, &r.axis) ||
        !attribute_int(im, "largest", &largest) || !attribute_int(im, "sorted", &sorted))
        return false;
    r.largest = largest != 0;
    if (im->opset < 10) {
        r.k = -1;
        if (!attribute_int(im, "k", &r.k)) return false;
    } else {
        if (!node_list(im, "K", 1, &list, &n)) return false;
        r.k = n == 1 ? list[0] : -1;
    }
    if (r.k < 1 || r.k > x->extent[r.axis])
        return node_fail(im, "k is %" PRId64 ", but dimension %d has %" PRId64, r.k, r.axis,
                         x->extent[r.axis]);
    memcpy(extent, x->extent, sizeof extent);
    extent[r.axis] = r.k;
    struct tensor *value = node_result_at(im, 0, x->type, x->ndims, extent);
    struct tensor *place = value ? node_result_at(im, 1, TYPE_I64, x->ndims, extent) : NULL;
    if (!place) return false;
    bool few = x->extent[r.axis] < LONG_AXIS || x->extent[r.axis] / RANKED < r.k;
    return few && x->extent[r.axis] > 1 && lanes_of(x, &r) == 1
               ? top_by_ranks(im, &r, x, value, place)
               : top_by_insertion(im, &r, x, value, place);
}

/* ---- running sums and products as operators ---- */

static bool running(struct import *im, bool product) {
    struct tensor *x = node_input(im, 0);
    struct running r = {.product = product};
    int64_t exclusive = 0, reverse = 0;
    const int64_t *list;
    const char *index[MAX_DIMS];
    int n;
    if (!ordered(im, x) || !node_list(im, "axis", 1, &list, &n) ||
        !attribute_int(im, "exclusive", &exclusive) || !attribute_int(im, "reverse", &reverse))
        return false;
    if (n != 1) return node_fail(im, "input 1 ('axis') has %d elements, expected one", n);
    if (!axis_normal(im, list[0], x->ndims, &r.axis)) return false;
    r.exclusive = exclusive != 0;
    r.reverse = reverse != 0;
    struct tensor *y = node_result(im, x->type, x->ndims, x->extent);
    struct tensor *sum = y ? sum_open(im, y) : NULL;
    if (!sum) return false;
    axes_for(im, x->ndims, x->extent, index);
    if (!sums_along(im, &r, x, sum, index)) return false;
    sum_close(im, y, sum, index);
    return true;
}

bool op_cum_sum(struct import *im) {
    return running(im, false);
}

bool op_cum_prod(struct import *im) {
    return running(im, true);
}

/* The first lengths[b] elements of each row in reverse, the others as they are. */
bool op_reverse_sequence(struct import *im) {
    struct tensor *x = node_input(im, 0), *lengths = node_input(im, 1);
    int64_t batch = 1, time = 0;
    const char *index[MAX_DIMS], *from[MAX_DIMS];
    if (!attribute_int(im, "batch_axis", &batch) || !attribute_int(im, "time_axis", &time))
        return false;
    if (x->ndims < 2 || batch < 0 || time < 0 || batch > 1 || time > 1 || batch == time)
        return node_fail(im, "'batch_axis' and 'time_axis' are not 0 and 1 of the input");
    if (lengths->ndims != 1 || lengths->type != TYPE_I64 || lengths->extent[0] != x->extent[batch])
        return node_fail(im, "the lengths are not a vector of %" PRId64 " elements of i64",
                         x->extent[batch]);
    struct tensor *y = node_result(im, x->type, x->ndims, x->extent);
    if (!y) return false;
    axes_for(im, x->ndims, x->extent, index);
    memcpy(from, index, sizeof from);
    from[time] = axis_for(im, "s", x->extent[time]);
    const char *n = tensor_element(im, lengths, &index[batch]), *to = tensor_element(im, y, index);
    const char *t = arena_printf(im->arena, "i64(%s)", index[time]);
    emit_statement(im, "%s = 0", to);
    emit_statement(im, "%s %s select(i64(%s) == select(%s < %s, %s - 1 - %s, %s), %s, 0)", to,
                   x->type == TYPE_BOOL ? "max=" : "+=", from[time], t, n, n, t, t,
                   tensor_element(im, x, from));
    return true;
}
#endif
