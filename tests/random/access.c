/* Indices: of what is there, within the elements that are set; of what is new, with room around
 * them. */
#include "tests/random/maker.h"

#include <stdlib.h>

const char *make_index(struct maker *g, const struct affine *x) {
    struct text t = {0};
    bool first = true;
    bool leads = x->n == 0 || x->coef[0] < 0;
    if (leads) text_printf(&t, "%d", x->offset), first = false;
    for (int k = 0; k < x->n; k++) {
        int c = abs(x->coef[k]);
        text_printf(&t, "%s", first ? "" : x->coef[k] < 0 ? " - " : " + ");
        if (c != 1) text_printf(&t, "%d*", c);
        text_printf(&t, "a%d", x->axis[k]);
        first = false;
    }
    if (!leads && x->offset) text_printf(&t, " %c %d", x->offset < 0 ? '-' : '+', abs(x->offset));
    const char *out = arena_strdup(&g->arena, t.at);
    text_free(&t);
    return out;
}

const char *place_text(struct maker *g, int var, const struct place *p, double fill) {
    struct text t = {0};
    text_printf(&t, "%s[", g->var[var].name);
    for (int d = 0; d < p->n; d++) text_printf(&t, "%s%s", d ? ", " : "", make_index(g, &p->at[d]));
    if (p->fill) text_printf(&t, " else %s", make_literal(g, g->var[var].type, fill));
    text_printf(&t, "]");
    const char *out = arena_strdup(&g->arena, t.at);
    text_free(&t);
    return out;
}

static struct affine one_term(int axis, int coef, int offset) {
    return (struct affine){.axis = {axis}, .coef = {coef}, .n = 1, .offset = offset};
}

static struct affine constant(int offset) {
    return (struct affine){.offset = offset};
}

static void class_of(struct maker *g, const struct affine *x, bool writes) {
    for (int k = 0; k < x->n; k++) {
        if (x->coef[k] < 0) is_a(g, CLASS_REVERSED);
        if (abs(x->coef[k]) > 1) is_a(g, CLASS_STRIDED);
    }
    if (x->n > 1) is_a(g, CLASS_WINDOW);
    if (!writes && x->n && x->offset && x->coef[0] > 0) is_a(g, CLASS_OFFSET);
}

struct place whole_place(struct maker *g, int var, struct list *axes) {
    const struct variable *v = &g->var[var];
    struct place p = {.n = v->ndims};
    for (int d = 0; d < v->ndims; d++) {
        const struct grid *s = &v->grid[d];
        if (s->count == 1 && rarely(g->tape, 2)) {
            p.at[d] = constant(s->lo);
            continue;
        }
        int a = new_axis(g, axes, s->count);
        list_add(axes, a);
        p.at[d] = one_term(a, s->stride, s->lo);
    }
    return p;
}

/* The axis somewhere within the grid. */
static struct affine within(struct maker *g, const struct grid *s, int axis) {
    int e = extent_of(g, axis), stride = 1;
    if (odd(g, 4) && 2 * (e - 1) < s->count) stride = 2;
    int span = stride * (e - 1) + 1,
        offset = s->count > span ? pick(g->tape, s->count - span + 1) : 0;
    if (odd(g, 5))
        return one_term(axis, -stride * s->stride, s->lo + s->stride * (offset + span - 1));
    return one_term(axis, stride * s->stride, s->lo + s->stride * offset);
}

struct place part_place(struct maker *g, int var, const struct list *axes) {
    const struct variable *v = &g->var[var];
    struct place p = {.n = v->ndims};
    struct list used = {0};
    for (int d = 0; d < v->ndims; d++) {
        struct list fit = {0};
        for (int k = 0; k < axes->n; k++)
            if (extent_of(g, axes->at[k]) <= v->grid[d].count &&
                (!list_has(&used, axes->at[k]) || odd(g, 2)))
                list_add(&fit, axes->at[k]);
        if (!fit.n || rarely(g->tape, 6)) {
            const struct grid *s = &v->grid[d];
            p.at[d] = constant(s->lo + s->stride * pick_of(g, s->count));
            continue;
        }
        int a = fit.at[g->spice ? pick_of(g, fit.n) : 0];
        if (list_has(&used, a)) is_a(g, CLASS_DIAGONAL);
        list_add(&used, a);
        p.at[d] = within(g, &v->grid[d], a);
        class_of(g, &p.at[d], false);
    }
    for (int k = 0, last = -1; k < p.n; k++) {
        if (p.at[k].n && p.at[k].axis[0] < last) is_a(g, CLASS_TRANSPOSED);
        if (p.at[k].n) last = p.at[k].axis[0];
    }
    return p;
}

/* Over the axis and, in a window, the one that slides. */
static struct affine fresh_affine(struct maker *g, int axis, bool writes) {
    int stride = odd(g, 6) ? 2 + pick(g->tape, 2) : 1;
    struct affine x = one_term(axis, stride, 0);
    int slides = writes ? -1 : g->slides[axis];
    if (slides >= 0) {
        x.coef[0] = 1 + pick(g->tape, 2) + odd(g, 5);
        x.axis[1] = slides;
        x.coef[1] = 1 + (int)rarely(g->tape, 3);
        x.n = 2;
        if (odd(g, 6)) x.coef[1] = -x.coef[1];
    }
    if (odd(g, 8)) x.coef[0] = -x.coef[0];
    return x;
}

static void range_of(const struct maker *g, const struct affine *x, int *lo, int *hi) {
    *lo = *hi = x->offset;
    for (int k = 0; k < x->n; k++) {
        int by = x->coef[k] * (extent_of(g, x->axis[k]) - 1);
        if (by < 0)
            *lo += by;
        else
            *hi += by;
    }
}

static int margin(struct maker *g) {
    return odd(g, 5) ? 1 + pick(g->tape, 6) : 0;
}

/* More padding at one side: part of the reads lie wholly outside. */
static int beyond(struct maker *g, int length) {
    return odd(g, 8) ? pick(g->tape, length + 4) : 0;
}

/* The extent of a dimension that the index runs through; with a fill it may leave it. */
static int room_for(struct maker *g, struct affine *x, bool *fill, struct grid *grid) {
    int lo, hi;
    range_of(g, x, &lo, &hi);
    x->offset -= lo;
    hi -= lo;
    int before = margin(g), after = margin(g), pad = 0;
    if (fill && (x->n > 1 ? rarely(g->tape, 3) : odd(g, 10))) pad = 1 + pick(g->tape, 2);
    if (pad) {
        int first = pad + beyond(g, hi), last = pad + beyond(g, hi),
            extent = hi + 1 - first - last + after;
        *fill = true;
        x->offset -= first;
        return extent < 1 ? 1 : extent;
    }
    x->offset += before;
    if (grid) *grid = (struct grid){before, abs(x->coef[0]), x->n ? extent_of(g, x->axis[0]) : 1};
    return hi + 1 + before + after;
}

static bool slides_somewhere(const struct maker *g, const struct list *axes, int axis) {
    for (int k = 0; k < axes->n; k++)
        if (g->slides[axes->at[k]] == axis) return true;
    return false;
}

static void add_constant(struct maker *g, struct place *p, int *extent, struct grid *grid) {
    int n = 1 + pick(g->tape, 4), at = pick(g->tape, n);
    p->at[p->n] = constant(at);
    if (grid) grid[p->n] = (struct grid){at, 1, 1};
    extent[p->n++] = n;
}

struct place fresh_place(struct maker *g, const struct list *axes, bool writes, int *extent,
                         struct grid *grid) {
    struct place p = {0};
    struct list order = *axes;
    int64_t elements = 1;
    bool may_fill = !writes;
    if (odd(g, 3)) list_shuffle(g, &order);
    for (int k = 0; k + 1 < order.n; k++)
        if (order.at[k] > order.at[k + 1]) is_a(g, CLASS_TRANSPOSED);
    for (int k = 0; k < order.n && p.n < MAKER_DIMS; k++) {
        if (!writes && slides_somewhere(g, axes, order.at[k])) continue;
        p.at[p.n] = fresh_affine(g, order.at[k], writes);
        class_of(g, &p.at[p.n], writes);
        extent[p.n] = room_for(g, &p.at[p.n], may_fill ? &p.fill : NULL, grid ? &grid[p.n] : NULL);
        if (elements * extent[p.n] >
            MAKER_ELEMENTS) { /* no room: without what is unusual, or not at all */
            int e = extent_of(g, order.at[k]);
            p.at[p.n] = writes ? one_term(order.at[k], 1, 0) : constant(0);
            extent[p.n] = writes ? e : 1;
            if (grid) grid[p.n] = (struct grid){0, 1, e};
        }
        elements *= extent[p.n];
        if (!writes && p.at[p.n].offset > 0) is_a(g, CLASS_OFFSET);
        p.n++;
    }
    if (p.n < MAKER_DIMS && odd(g, 16)) add_constant(g, &p, extent, grid);
    if (!writes && order.n && p.n < MAKER_DIMS && elements < 1000 &&
        odd(g, 16)) { /* the same axis again */
        p.at[p.n] = fresh_affine(g, order.at[pick_of(g, order.n)], true);
        extent[p.n] = room_for(g, &p.at[p.n], NULL, NULL);
        is_a(g, CLASS_DIAGONAL);
        p.n++;
    }
    if (p.fill) is_a(g, CLASS_FILL);
    return p;
}

struct term make_read(struct maker *g, int var, const struct place *p) {
    struct variable *v = &g->var[var];
    struct term e = {.type = v->type, .number = v->number};
    double fill = 0;
    if (p->fill && odd(g, 4)) {
        fill = 1 + pick(g->tape, 3);
        if (v->type == TYPE_BOOL) fill = 1;
        if (e.number.most < fill) e.number.most = fill;
        if (e.number.grain > 0) e.number.grain = 0;
    }
    e.text = place_text(g, var, p, fill);
    v->reads++;
    return e;
}

struct term make_operand(struct maker *g, enum type type, const struct list *axes) {
    int extent[MAKER_DIMS];
    struct place p = fresh_place(g, axes, false, extent, NULL);
    return make_read(g, make_variable(g, input_role(g), type, extent, p.n), &p);
}

static bool is_set(const struct maker *g, int var) {
    const struct variable *v = &g->var[var];
    for (int d = 0; d < v->ndims; d++)
        if (v->grid[d].count < 1) return false;
    if (v->scope && v->scope != g->scope) return false;
    if (v->role == ROLE_STATE) return false;
    return v->writes > 0 || (v->role != ROLE_OUT && v->role != ROLE_TEMP);
}

int readable(struct maker *g, int but) {
    int at[MAKER_BUFFERS], n = 0;
    for (int v = g->nvars - 1; v >= 0; v--)
        if (v != but && is_set(g, v)) at[n++] = v;
    return n ? at[pick_of(g, n)] : -1;
}
