/* Statements on shared axes: statistics of rows and what uses them, chains of reductions,
 * elementwise operations and products of two that are there. */
#include "tests/random/maker.h"

#include <string.h>

static int row_statistic(struct maker *g, int from, const struct place *at, const struct list *axes,
                         const struct list *rest, enum combiner c, enum type type,
                         struct place *row) {
    struct sum s = {.result = *rest, .combine = c};
    for (int k = 0; k < axes->n; k++)
        if (!list_has(rest, axes->at[k])) list_add(&s.reduced, axes->at[k]);
    struct term e = make_cast(g, make_read(g, from, at), type);
    int var = new_buffer(g, type, rest, row, true, start_of(g, c, type));
    accumulate(g, var, row, &s, e);
    return var;
}

/* One more buffer over the axes: what `from` and the rows' statistic make; *at: where it was
 * written. */
static int with_rows(struct maker *g, int from, int stat, struct place *at, const struct place *row,
                     const struct list *axes, enum type type, const char *format) {
    struct place p = {0};
    struct term x = make_cast(g, make_read(g, from, at), type), y = make_read(g, stat, row);
    struct term e = {.type = type, .number = number_join(x.number, y.number)};
    struct text t = {0};
    for (const char *c = format; *c; c++) {
        const char *put = *c == '@' ? x.text : *c == '#' ? y.text : NULL;
        text_append(&t, put ? put : c, put ? strlen(put) : 1);
    }
    e.text = arena_strdup(&g->arena, t.at);
    text_free(&t);
    e.number.most = x.number.most + y.number.most;
    if (strstr(format, "exp") || strchr(format, '/')) e.number = (struct number){100, -60, false};
    e.number = settle(e.number, type);
    if (!type_is_float(type) && !type_is_signed(type)) e.number.most = type_most(type);
    int var = new_buffer(g, type, axes, &p, false, 0);
    make_store(g, var, &p, e);
    *at = p;
    return var;
}

static enum type row_type(enum type t) {
    if (t == TYPE_F64) return t;
    return type_is_float(t) ? TYPE_F32 : type_size(t) < 4 ? TYPE_I32 : t;
}

void make_rows(struct maker *g, int from) {
    struct list axes = {0}, rest = {0};
    struct place at = whole_place(g, from, &axes);
    const struct variable *v = &g->var[from];
    if (!axes.n || axes.n > MAKER_DIMS || v->type == TYPE_BOOL) return;
    int gone = axes.at[axes.n - 1 - pick_of(g, axes.n)];
    for (int k = 0; k < axes.n; k++)
        if (axes.at[k] != gone) list_add(&rest, axes.at[k]);
    enum type type = row_type(v->type);
    bool softmax = g->rounding && type_is_float(type) && rarely(g->tape, 2);
    bool sum = !softmax && rarely(g->tape, 2);
    struct place row;
    int stat =
        row_statistic(g, from, &at, &axes, &rest, sum ? COMBINE_ADD : COMBINE_MAX, type, &row);
    is_a(g, CLASS_ROWS);
    int y = with_rows(g, from, stat, &at, &row, &axes, type,
                      softmax ? "exp((@ - #) * 0.0625)" : "@ - #");
    if (!softmax) return;
    is_a(g, CLASS_ROUNDS);
    int total = row_statistic(g, y, &at, &axes, &rest, COMBINE_ADD, type, &row);
    with_rows(g, y, total, &at, &row, &axes, type, "@ / (# + 1.0)");
}

/* ---- chains on shared axes ---- */

struct chain {
    struct list axes, rest; /* of the elements, of the rows */
    enum type type;
    int last; /* the newest over all axes, and where it stands */
    struct place at;
    int stat; /* the newest statistic; -1 */
    struct place row;
};

static void chain_goes_on(struct maker *g, struct chain *c, struct term e) {
    struct place p = {0};
    int var = new_buffer(g, c->type, &c->axes, &p, false, 0);
    make_store(g, var, &p, stored(g, e, c->type));
    c->last = var;
    c->at = p;
}

static void chain_link(struct maker *g, struct chain *c) {
    int how = pick(g->tape, 5);
    struct term e;
    if (how == 1 || (how == 2 && c->stat < 0)) {
        c->stat = row_statistic(g, c->last, &c->at, &c->axes, &c->rest,
                                rarely(g->tape, 2) ? COMBINE_MAX : COMBINE_ADD, c->type, &c->row);
        return;
    }
    if (how == 2) {
        c->last = with_rows(g, c->last, c->stat, &c->at, &c->row, &c->axes, c->type, "@ - #");
        return;
    }
    e = make_cast(g, make_read(g, c->last, &c->at), c->type);
    if (how == 0) e = operations(g, e, &c->axes, -1, 1 + pick(g->tape, 2));
    if (how == 3) e = make_product(g, e, any_operand(g, &c->axes, c->type, c->last));
    if (how == 4) e = make_product(g, e, e);
    chain_goes_on(g, c, e);
}

/* Softmax, layer norm and gates are such chains. */
void make_shared(struct maker *g, int from) {
    struct chain c = {.last = from, .stat = -1};
    const struct variable *v = &g->var[from];
    c.at = whole_place(g, from, &c.axes);
    if (!c.axes.n || c.axes.n > MAKER_DIMS || v->type == TYPE_BOOL) return;
    c.type = row_type(v->type);
    for (int k = 0; k + 1 < c.axes.n; k++) list_add(&c.rest, c.axes.at[k]);
    for (int n = 3 + pick(g->tape, 6); n > 0 && !maker_full(g); n--) chain_link(g, &c);
    is_a(g, CLASS_SHARED);
}
