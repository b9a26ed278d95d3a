/* Operators whose indices are data. Indices known when compiling become affine ones, run by run.
 * Others are compared: a sum over all places of which one counts, `y[i] += select(index[i] == v,
 * x[v], 0)`, so that no operator needs an address that is not affine; who executes it needs to look
 * at that one alone (ir/pick.h). */
#include "onnx/onnx.h"

#ifdef ISAMAP_WITH_ONNX
#include "onnx/onnx_int.h"

#include <inttypes.h>
#include <string.h>

enum { MOST_RUNS = 256 };

static bool integer_indices(struct import *im, const struct tensor *t) {
    return t->type == TYPE_I64 || t->type == TYPE_I32 ||
           node_fail(im, "the indices are %s, expected i32 or i64", type_name(t->type));
}

/* Text of a condition: the index, which may count from the end, is `place` of `extent`. */
static const char *chosen(struct import *im, struct tensor *index, const char *const *at,
                          const char *place, int64_t extent) {
    const char *i = tensor_element(im, index, at), *t = type_name(index->type);
    return arena_printf(im->arena, "(%s == %s(%s) | %s + %" PRId64 " == %s(%s))", i, t, place, i,
                        extent, t, place);
}

/* A known index as an affine one of its tensor's first `ndims` dimensions. */
struct even {
    int64_t first, step[MAX_DIMS];
};

static int64_t from_begin(int64_t index, int64_t extent) {
    return index < 0 ? index + extent : index;
}

/* The k-th of every `depth` elements go on evenly along each dimension before, within the extent.
 */
static bool evenly(const struct tensor *index, int ndims, int64_t depth, int64_t k, int64_t extent,
                   struct even *e) {
    int64_t n = 1, at[MAX_DIMS] = {0}, apart = depth;
    if (!index->data || index->elements == 0) return false;
    e->first = from_begin(tensor_int(index, k), extent);
    for (int d = ndims; d-- > 0; n *= index->extent[d], apart *= index->extent[d])
        e->step[d] =
            index->extent[d] > 1 ? from_begin(tensor_int(index, apart + k), extent) - e->first : 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t place = e->first;
        for (int d = 0; d < ndims; d++) place += e->step[d] * at[d];
        if (place < 0 || place >= extent ||
            from_begin(tensor_int(index, i * depth + k), extent) != place)
            return false;
        for (int d = ndims; d-- > 0 && ++at[d] == index->extent[d];) at[d] = 0;
    }
    return true;
}

/* What a sum of elements of which one counts starts with, how it goes on, and what does not count.
 */
struct choice {
    const char *first, *combine;
};
static struct choice choice_of(enum type t) {
    return t == TYPE_BOOL ? (struct choice){"0", "max="} : (struct choice){"0", "+="};
}

/* ---- Gather ---- */

struct gather {
    struct tensor *x, *index, *y;
    int axis;
    const char *to[MAX_DIMS], *at[MAX_DIMS]; /* indices of the result and of x */
};

static bool gather_result(struct import *im, struct gather *g) {
    int64_t extent[2 * MAX_DIMS];
    int n = 0;
    if (g->x->ndims - 1 + g->index->ndims > MAX_DIMS)
        return node_fail(im, "its result has more than %d dimensions", MAX_DIMS);
    for (int d = 0; d < g->axis; d++) extent[n++] = g->x->extent[d];
    for (int d = 0; d < g->index->ndims; d++) extent[n++] = g->index->extent[d];
    for (int d = g->axis + 1; d < g->x->ndims; d++) extent[n++] = g->x->extent[d];
    return (g->y = node_result(im, g->x->type, n, extent)) != NULL;
}

/* Axes of everything but the indices' own dimensions. */
static void gather_axes(struct import *im, struct gather *g) {
    axes_for(im, g->y->ndims, g->y->extent, g->to);
    for (int d = 0; d < g->axis; d++) g->at[d] = g->to[d];
    for (int d = g->axis + 1; d < g->x->ndims; d++) g->at[d] = g->to[d - 1 + g->index->ndims];
}

/* The `n` indices from `first` on go on by `step`: to places first, first + 1, … of a line. */
static void gather_run(struct import *im, struct gather *g, int64_t first, int64_t n, int64_t from,
                       int64_t step) {
    const char *run;
    axes_release(im);
    gather_axes(im, g);
    run = axis_for(im, "g", n);
    if (g->index->ndims) g->to[g->axis] = affine_text(im, 1, (int64_t[]){1}, &run, first);
    g->at[g->axis] = affine_text(im, 1, &step, &run, from);
    emit_statement(im, "%s = %s", tensor_element(im, g->y, g->to), tensor_element(im, g->x, g->at));
}

static bool index_at(struct import *im, const struct gather *g, int64_t i, int64_t *out) {
    int64_t extent = g->x->extent[g->axis];
    *out = tensor_int(g->index, i);
    if (*out < -extent || *out >= extent)
        return node_fail(im, "index %" PRId64 " is outside dimension %d, which has %" PRId64, *out,
                         g->axis, extent);
    *out += *out < 0 ? extent : 0;
    return true;
}

/* Known indices in one line: *runs arithmetic progressions, which are written if `write`. */
static bool gather_runs(struct import *im, struct gather *g, bool write, int *runs) {
    int64_t n = g->index->elements, from, next, v;
    *runs = 0;
    for (int64_t i = 0, k; i < n; i += k, ++*runs) {
        if (!index_at(im, g, i, &from)) return false;
        int64_t step = 1;
        for (k = 1; i + k < n; k++) {
            if (!index_at(im, g, i + k, &next)) return false;
            if (k == 1) step = next - from;
            if (next != from + k * step) break;
        }
        if (k == 2 && i + 2 < n) { /* a pair that a longer run may want */
            if (!index_at(im, g, i + 2, &v)) return false;
            k = 1;
        }
        if (write) gather_run(im, g, i, k, from, step);
    }
    return true;
}

static bool gather_known(struct import *im, struct gather *g, bool *done) {
    struct even e;
    int runs;
    *done = evenly(g->index, g->index->ndims, 1, 0, g->x->extent[g->axis], &e);
    if (*done) {
        gather_axes(im, g);
        g->at[g->axis] = affine_text(im, g->index->ndims, e.step, g->to + g->axis, e.first);
        emit_statement(im, "%s = %s", tensor_element(im, g->y, g->to),
                       tensor_element(im, g->x, g->at));
    }
    if (*done || !g->index->data || g->index->ndims > 1) return true;
    if (!gather_runs(im, g, false, &runs)) return false;
    *done = runs <= MOST_RUNS;
    return !*done || gather_runs(im, g, true, &runs);
}

bool gather_places(struct import *im, struct tensor *x, struct tensor *index, int axis) {
    struct gather g = {.x = x, .index = index, .axis = axis};
    bool done;
    if (!gather_result(im, &g) || !gather_known(im, &g, &done)) return false;
    if (done) return true;
    struct choice c = choice_of(g.x->type);
    gather_axes(im, &g);
    const char *v = axis_for(im, "v", g.x->extent[g.axis]), *to = tensor_element(im, g.y, g.to);
    g.at[g.axis] = v;
    emit_statement(im, "%s = %s", to, c.first);
    emit_statement(im, "%s %s select(%s, %s, %s)", to, c.combine,
                   chosen(im, g.index, g.to + g.axis, v, g.x->extent[g.axis]),
                   tensor_element(im, g.x, g.at), c.first);
    return true;
}

bool op_gather(struct import *im) {
    struct tensor *x = node_input(im, 0), *index = node_input(im, 1);
    int axis;
    return integer_indices(im, index) && attribute_axis(im, "axis", 0, x->ndims, &axis) &&
           gather_places(im, x, index, axis);
}

bool op_gather_elements(struct import *im) {
    struct tensor *x = node_input(im, 0), *index = node_input(im, 1);
    const char *to[MAX_DIMS], *at[MAX_DIMS];
    int axis;
    if (!integer_indices(im, index) || !attribute_axis(im, "axis", 0, x->ndims, &axis))
        return false;
    if (index->ndims != x->ndims)
        return node_fail(im, "input and indices have %d and %d dimensions", x->ndims, index->ndims);
    for (int d = 0; d < x->ndims; d++)
        if (d != axis && index->extent[d] > x->extent[d])
            return node_fail(im, "the indices are longer than the input along dimension %d", d);
    struct tensor *y = node_result(im, x->type, x->ndims, index->extent);
    if (!y) return false;
    struct choice c = choice_of(x->type);
    axes_for(im, y->ndims, y->extent, to);
    memcpy(at, to, sizeof at);
    at[axis] = axis_for(im, "v", x->extent[axis]);
    emit_statement(im, "%s = %s", tensor_element(im, y, to), c.first);
    emit_statement(im, "%s %s select(%s, %s, %s)", tensor_element(im, y, to), c.combine,
                   chosen(im, index, to, at[axis], x->extent[axis]), tensor_element(im, x, at),
                   c.first);
    return true;
}

/* The last dimension of the indices holds a place in x, behind `batch` dimensions of both. */
struct places {
    struct tensor *x, *index;
    int64_t batch;
    int depth; /* dimensions of x that an index chooses */
    const char *lead[MAX_DIMS], *at[MAX_DIMS], *inner[MAX_DIMS];
    int ninner;
};

static bool places_read(struct import *im, struct places *p) {
    p->x = node_input(im, 0);
    p->index = node_input(im, 1);
    if (!integer_indices(im, p->index)) return false;
    int last = p->index->ndims - 1;
    if (last < 0 || p->batch < 0 || p->batch > last ||
        p->batch + p->index->extent[last] > p->x->ndims)
        return node_fail(im, "the indices %s do not fit the input %s",
                         shape_text(im->arena, p->index->ndims, p->index->extent),
                         shape_text(im->arena, p->x->ndims, p->x->extent));
    p->depth = (int)p->index->extent[last];
    p->ninner = p->x->ndims - (int)p->batch - p->depth;
    return true;
}

/* Axes of the indices and of what is behind the chosen dimensions, where these go on evenly. */
static bool places_evenly(struct import *im, struct places *p) {
    struct even e[MAX_DIMS];
    int last = p->index->ndims - 1, from = (int)p->batch, to = from + p->depth;
    for (int k = 0; k < p->depth; k++)
        if (!evenly(p->index, last, p->depth, k, p->x->extent[from + k], &e[k])) return false;
    axes_for(im, last, p->index->extent, p->lead);
    for (int d = 0; d < p->x->ndims; d++)
        p->at[d] = d < from ? p->lead[d]
                   : d < to ? affine_text(im, last, e[d - from].step, p->lead, e[d - from].first)
                            : axis_for(im, "m", p->x->extent[d]);
    for (int k = 0; k < p->ninner; k++) p->inner[k] = p->at[to + k];
    return true;
}

/* Axes of the indices, of the chosen dimensions and of what is behind them; the condition. */
static const char *places_axes(struct import *im, struct places *p) {
    static const char *const digits[MAX_DIMS] = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
    int last = p->index->ndims - 1;
    const char *condition = NULL;
    axes_for(im, last, p->index->extent, p->lead);
    for (int d = 0; d < p->x->ndims; d++)
        p->at[d] = d < p->batch
                       ? p->lead[d]
                       : axis_for(im, d < p->batch + p->depth ? "v" : "m", p->x->extent[d]);
    for (int k = 0; k < p->ninner; k++) p->inner[k] = p->at[(int)p->batch + p->depth + k];
    for (int k = 0; k < p->depth; k++) {
        const char *which[MAX_DIMS];
        memcpy(which, p->lead, sizeof which);
        which[last] = digits[k];
        const char *one =
            chosen(im, p->index, which, p->at[p->batch + k], p->x->extent[p->batch + k]);
        condition = condition ? arena_printf(im->arena, "%s & %s", condition, one) : one;
    }
    return condition ? condition : "0 == 0";
}

bool op_gather_nd(struct import *im) {
    struct places p = {0};
    int64_t extent[2 * MAX_DIMS];
    const char *to[2 * MAX_DIMS];
    if (!attribute_int(im, "batch_dims", &p.batch) || !places_read(im, &p)) return false;
    int lead = p.index->ndims - 1;
    if (lead + p.ninner > MAX_DIMS || p.depth > 9)
        return node_fail(im, "its result has more than %d dimensions", MAX_DIMS);
    for (int d = 0; d < lead; d++) extent[d] = p.index->extent[d];
    for (int k = 0; k < p.ninner; k++) extent[lead + k] = p.x->extent[p.batch + p.depth + k];
    struct tensor *y = node_result(im, p.x->type, lead + p.ninner, extent);
    if (!y) return false;
    struct choice c = choice_of(y->type);
    bool even = places_evenly(im, &p);
    const char *condition = even ? NULL : places_axes(im, &p);
    for (int d = 0; d < lead; d++) to[d] = p.lead[d];
    for (int k = 0; k < p.ninner; k++) to[lead + k] = p.inner[k];
    if (even) {
        emit_statement(im, "%s = %s", tensor_element(im, y, to), tensor_element(im, p.x, p.at));
        return true;
    }
    emit_statement(im, "%s = %s", tensor_element(im, y, to), c.first);
    emit_statement(im, "%s %s select(%s, %s, %s)", tensor_element(im, y, to), c.combine, condition,
                   tensor_element(im, p.x, p.at), c.first);
    return true;
}

/* ---- scatters ---- */

/* How an update meets what is there. */
struct meeting {
    const char *combine,
        *neutral; /* combine NULL: it takes the place of it; neutral NULL: itself */
};

static bool meeting_read(struct import *im, enum type t, struct meeting *m) {
    const char *how = "none";
    bool truths = t == TYPE_BOOL; /* as numpy: their sum is or, their product is and */
    if (!attribute_string(im, "reduction", &how)) return false;
    *m = strcmp(how, "add") == 0   ? (struct meeting){truths ? "max=" : "+=", "0"}
         : strcmp(how, "mul") == 0 ? (struct meeting){truths ? "min=" : "*=", "1"}
         : strcmp(how, "max") == 0 ? (struct meeting){"max=", NULL}
         : strcmp(how, "min") == 0 ? (struct meeting){"min=", NULL}
                                   : (struct meeting){NULL, "0"};
    return m->combine || strcmp(how, "none") == 0 ||
           node_fail(im, "'reduction' is '%s', expected none, add, mul, max or min",
                     name_shown(im->arena, how));
}

/* y = x, where updates meet one of its places. `whole` are indices of all of x, `at` those of the
 * places that updates may reach; which of them one reaches follows from the dimensions from `first`
 * on, `n` of them. */
struct scattered {
    struct tensor *x;
    int first, n;
    const char *whole[MAX_DIMS], *at[MAX_DIMS];
};

/* Without any update it is x. */
static bool scatter_nothing(struct import *im, const struct tensor *x) {
    im->empty_input = -1;
    return node_alias(im, x, x->ndims, x->extent);
}

/* `condition` (of an update) says where it goes; `number` counts the updates of a place. Where
 * several meet one place and no `reduction` says how, the last counts: its number is looked for
 * first, so `update` is indexed by one axis, `which`. */
static bool scatter_combined(struct import *im, const struct scattered *s, const struct meeting *m,
                             const char *condition, const char *update) {
    struct tensor *y = node_result(im, s->x->type, s->x->ndims, s->x->extent);
    if (!y) return false;
    const char *to = tensor_element(im, y, s->at);
    emit_statement(im, "%s = %s", tensor_element(im, y, s->whole),
                   tensor_element(im, s->x, s->whole));
    emit_statement(im, "%s %s select(%s, %s, %s)", to, m->combine, condition, update,
                   m->neutral ? m->neutral : to);
    return true;
}

static bool scatter_last(struct import *im, const struct scattered *s, const char *condition,
                         const char *number, const char *which, const char *update) {
    const struct tensor *x = s->x;
    struct tensor *y = node_result(im, x->type, x->ndims, x->extent), *last = NULL, *value = NULL;
    if (y) last = tensor_temporary(im, y->buffer, "last", TYPE_I64, s->n, x->extent + s->first);
    if (last) value = tensor_temporary(im, y->buffer, "value", x->type, x->ndims, x->extent);
    if (!value) return false;
    struct choice c = choice_of(x->type);
    const char *everywhere = tensor_element(im, last, s->whole + s->first),
               *one = tensor_element(im, last, s->at + s->first),
               *v = tensor_element(im, value, s->whole);
    emit_statement(im, "%s = -1", everywhere);
    emit_statement(im, "%s max= select(%s, i64(%s), %s)", one, condition, number, one);
    emit_statement(im, "%s = %s", v, c.first);
    emit_statement(im, "%s %s select(%s == i64(%s), %s, %s)", tensor_element(im, value, s->at),
                   c.combine, one, which, update, c.first);
    emit_statement(im, "%s = select(%s >= 0, %s, %s)", tensor_element(im, y, s->whole), everywhere,
                   v, tensor_element(im, s->x, s->whole));
    return true;
}

bool op_scatter_elements(struct import *im) {
    struct tensor *x = node_input(im, 0), *index = node_input(im, 1), *updates = node_input(im, 2);
    struct scattered s = {.x = x, .n = x->ndims};
    struct meeting m;
    const char *from[MAX_DIMS];
    int axis;
    if (!integer_indices(im, index) || !meeting_read(im, x->type, &m) ||
        !attribute_axis(im, "axis", 0, x->ndims, &axis))
        return false;
    bool fits = index->ndims == x->ndims && updates->ndims == x->ndims && updates->type == x->type;
    for (int d = 0; fits && d < x->ndims; d++)
        fits = index->extent[d] == updates->extent[d] &&
               (d == axis || index->extent[d] <= x->extent[d]);
    if (!fits)
        return node_fail(im,
                         "indices %s and updates %s of %s do not fit the input %s of %s; expected "
                         "two equal shapes, nowhere longer than the input but along axis %d",
                         shape_text(im->arena, index->ndims, index->extent),
                         shape_text(im->arena, updates->ndims, updates->extent),
                         type_name(updates->type), shape_text(im->arena, x->ndims, x->extent),
                         type_name(x->type), axis);
    if (updates->elements == 0) return scatter_nothing(im, x);
    axes_for(im, x->ndims, x->extent, s.whole);
    for (int d = 0; d < x->ndims; d++)
        s.at[d] = index->extent[d] == x->extent[d] || d == axis
                      ? s.whole[d]
                      : axis_for(im, "p", index->extent[d]);
    memcpy(from, s.at, sizeof from);
    from[axis] = axis_for(im, "u", index->extent[axis]);
    const char *condition = chosen(im, index, from, s.at[axis], x->extent[axis]),
               *update = tensor_element(im, updates, from);
    return m.combine ? scatter_combined(im, &s, &m, condition, update)
                     : scatter_last(im, &s, condition, from[axis], from[axis], update);
}

/* Is each place known, and named once? */
static bool places_differ(struct import *im, const struct places *p) {
    int64_t places = 1, n = p->depth ? p->index->elements / p->depth : 0;
    for (int k = 0; k < p->depth; k++) places *= p->x->extent[k];
    if (!p->index->data || n == 0 || n > places) return false;
    bool *named = arena_array(im->arena, (size_t)places, sizeof *named);
    for (int64_t i = 0; i < n; i++) {
        int64_t at = 0;
        for (int k = 0; k < p->depth; k++) {
            int64_t one = from_begin(tensor_int(p->index, i * p->depth + k), p->x->extent[k]);
            if (one < 0 || one >= p->x->extent[k]) return false;
            at = at * p->x->extent[k] + one;
        }
        if (named[at]) return false;
        named[at] = true;
    }
    return true;
}

/* Updates of places that go on evenly, as where a slice is assigned. */
static bool scatter_evenly(struct import *im, const struct places *p, const struct meeting *m,
                           struct tensor *updates, const char *const *from) {
    const char *whole[MAX_DIMS];
    struct tensor *y = node_result(im, p->x->type, p->x->ndims, p->x->extent);
    if (!y) return false;
    if (m->combine || updates->elements < y->elements) {
        axes_for(im, p->x->ndims, p->x->extent, whole);
        emit_statement(im, "%s = %s", tensor_element(im, y, whole),
                       tensor_element(im, p->x, whole));
    }
    emit_statement(im, "%s %s %s", tensor_element(im, y, p->at), m->combine ? m->combine : "=",
                   tensor_element(im, updates, from));
    return true;
}

/* An update's number, where their dimensions count as one. */
static const char *in_row(struct import *im, const struct places *p) {
    int64_t step[MAX_DIMS], n = 1;
    int lead = p->index->ndims - 1;
    for (int d = lead; d-- > 0; n *= p->index->extent[d]) step[d] = n;
    return affine_text(im, lead, step, p->lead, 0);
}

static struct tensor *updates_in_row(struct import *im, const struct places *p,
                                     struct tensor *updates, const char *const *from) {
    int64_t extent[MAX_DIMS] = {1};
    const char *place[MAX_DIMS] = {in_row(im, p)};
    if (p->ninner >= MAX_DIMS) {
        node_fail(im, "it has more than %d dimensions", MAX_DIMS - 1);
        return NULL;
    }
    for (int d = 0; d < p->index->ndims - 1; d++) extent[0] *= p->index->extent[d];
    memcpy(extent + 1, p->x->extent + p->depth, (size_t)p->ninner * sizeof *extent);
    memcpy(place + 1, p->inner, (size_t)p->ninner * sizeof *place);
    struct tensor *row =
        tensor_temporary(im, updates->buffer, "row", updates->type, 1 + p->ninner, extent);
    if (row)
        emit_statement(im, "%s = %s", tensor_element(im, row, place),
                       tensor_element(im, updates, from));
    return row;
}

bool op_scatter_nd(struct import *im) {
    struct places p = {0};
    struct tensor *updates = node_input(im, 2);
    struct meeting m;
    const char *from[2 * MAX_DIMS];
    if (!places_read(im, &p) || !meeting_read(im, p.x->type, &m)) return false;
    int lead = p.index->ndims - 1;
    bool fits = updates->ndims == lead + p.ninner && updates->type == p.x->type && p.depth <= 9;
    for (int d = 0; fits && d < lead; d++) fits = updates->extent[d] == p.index->extent[d];
    for (int k = 0; fits && k < p.ninner; k++)
        fits = updates->extent[lead + k] == p.x->extent[p.depth + k];
    if (!fits)
        return node_fail(im, "the updates %s do not fit the indices %s and the input %s",
                         shape_text(im->arena, updates->ndims, updates->extent),
                         shape_text(im->arena, p.index->ndims, p.index->extent),
                         shape_text(im->arena, p.x->ndims, p.x->extent));
    if (updates->elements == 0) return scatter_nothing(im, p.x);
    bool even = places_differ(im, &p) && places_evenly(im, &p);
    const char *condition = even ? NULL : places_axes(im, &p);
    for (int d = 0; d < lead; d++) from[d] = p.lead[d];
    for (int k = 0; k < p.ninner; k++) from[lead + k] = p.inner[k];
    if (even) return scatter_evenly(im, &p, &m, updates, from);
    struct scattered s = {.x = p.x, .n = p.depth};
    memcpy(s.whole, p.at, sizeof s.whole);
    memcpy(s.at, p.at, sizeof s.at);
    if (m.combine)
        return scatter_combined(im, &s, &m, condition, tensor_element(im, updates, from));
    if (lead == 1)
        return scatter_last(im, &s, condition, from[0], from[0], tensor_element(im, updates, from));
    struct tensor *row = updates_in_row(im, &p, updates, from);
    if (!row) return false;
    const char *number = in_row(im, &p), *place[MAX_DIMS] = {axis_for(im, "u", row->extent[0])};
    memcpy(place + 1, p.inner, (size_t)p.ninner * sizeof *place);
    return scatter_last(im, &s, condition, number, place[0], tensor_element(im, row, place));
}

/* ---- one hot ---- */

bool op_one_hot(struct import *im) {
    struct tensor *index = node_input(im, 0), *depth = node_input(im, 1),
                  *values = node_input(im, 2);
    int64_t extent[MAX_DIMS], axis = -1;
    const char *to[MAX_DIMS], *at[MAX_DIMS];
    int n = index->ndims, d;
    if (!depth->data || depth->elements != 1)
        return node_fail(im, "input 1 ('depth') is not a constant of one element");
    if (index->type == TYPE_BOOL || values->ndims != 1 || values->extent[0] != 2)
        return node_fail(im, "the indices are no numbers, or the values are not two");
    if (n + 1 > MAX_DIMS) return node_fail(im, "its result has more than %d dimensions", MAX_DIMS);
    if (!attribute_int(im, "axis", &axis) || !axis_normal(im, axis, n + 1, &d)) return false;
    for (int i = 0; i <= n; i++)
        extent[i] = i == d ? tensor_int(depth, 0) : index->extent[i - (i > d)];
    struct tensor *y = node_result(im, values->type, n + 1, extent);
    if (!y) return false;
    axes_for(im, n + 1, extent, to);
    for (int i = 0; i < n; i++) at[i] = to[i + (i >= d)];
    const char *i = arena_printf(im->arena, "i64(%s)", tensor_element(im, index, at));
    const char *zero = "0", *one = "1";
    emit_statement(im, "%s = select(%s == i64(%s) | %s + %" PRId64 " == i64(%s), %s, %s)",
                   tensor_element(im, y, to), i, to[d], i, extent[d], to[d],
                   tensor_element(im, values, &one), tensor_element(im, values, &zero));
    return true;
}

/* ---- TensorScatter ---- */

/* A cache with what is new from a place on, which each sequence of the batch has for itself;
 * circular: behind the last place comes the first. */
bool op_tensor_scatter(struct import *im) {
    struct tensor *x = node_input(im, 0), *fresh = node_input(im, 1), *first = node_input(im, 2);
    const char *mode = "linear", *to[MAX_DIMS], *from[MAX_DIMS], *at;
    int axis;
    if (!attribute_string(im, "mode", &mode) || !attribute_axis(im, "axis", -2, x->ndims, &axis))
        return false;
    bool circular = strcmp(mode, "circular") == 0;
    if (!circular && strcmp(mode, "linear") != 0)
        return node_fail(im, "'mode' is '%s', expected linear or circular",
                         name_shown(im->arena, mode));
    bool fits = fresh->ndims == x->ndims && fresh->type == x->type && axis > 0 &&
                fresh->extent[axis] <= x->extent[axis] &&
                (!first || (first->type == TYPE_I64 && first->ndims == 1 &&
                            first->extent[0] == x->extent[0]));
    for (int d = 0; fits && d < x->ndims; d++) fits = d == axis || fresh->extent[d] == x->extent[d];
    if (!fits) return node_fail(im, "cache, update or places do not fit");
    struct tensor *y = node_result(im, x->type, x->ndims, x->extent);
    if (!y) return false;
    struct choice c = choice_of(x->type);
    axes_for(im, x->ndims, x->extent, to);
    memcpy(from, to, sizeof from);
    from[axis] = axis_for(im, "j", fresh->extent[axis]);
    at = arena_printf(im->arena, "i64(%s)", to[axis]);
    if (first) {
        const char *w = tensor_element(im, first, to), *s = at;
        at = arena_printf(im->arena, "(%s - %s)", s, w);
        if (circular)
            at = arena_printf(im->arena, "(%s - %s + select(%s < %s, %" PRId64 ", 0))", s, w, s, w,
                              x->extent[axis]);
    }
    const char *e = tensor_element(im, y, to);
    emit_statement(im, "%s = select(%s >= 0 & %s < %" PRId64 ", 0, %s)", e, at, at,
                   fresh->extent[axis], tensor_element(im, x, to));
    emit_statement(im, "%s %s select(%s == i64(%s), %s, %s)", e, c.combine, at, from[axis],
                   tensor_element(im, fresh, from), c.first);
    return true;
}
#endif
