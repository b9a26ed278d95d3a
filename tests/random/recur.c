/* A recurrence: states that advance by a product and some operations, with or without what it
 * leaves at each step. */
#include "tests/random/maker.h"

#include <string.h>

struct turn { /* one recurrence */
    int number, length, width, states, state[2], from[2], to[2];
    bool open;   /* as many steps as the run says */
    bool wide;   /* no product: rows longer than what is kept near */
    bool column; /* states have a second dimension, of an extent that no axis has */
    enum type type;
};

static int plain_buffer(struct maker *g, enum role role, enum type type, int rows, int columns) {
    int extent[2] = {rows, columns};
    return make_variable(g, role, type, rows < 0 ? extent + 1 : extent, rows < 0 ? 1 : 2);
}

/* The second dimension of a state in its declaration, and in an index. */
static const char *more_of(const struct turn *r) {
    return r->column ? ", 1" : "";
}

static const char *beside(const struct turn *r) {
    return r->column ? ", 0" : "";
}

static int end_buffer(struct maker *g, const struct turn *r, enum role role) {
    return r->column ? plain_buffer(g, role, r->type, r->width, 1)
                     : plain_buffer(g, role, r->type, -1, r->width);
}

/* Values stay small however many steps there are. */
static struct term bounded(struct maker *g, struct term e) {
    bool tanh = type_is_float(e.type) && g->rounding && rarely(g->tape, 3);
    struct term out = {.type = e.type, .number = {.most = 4, .exact = !tanh && e.number.exact}};
    if (!type_is_float(e.type)) return e;
    if (tanh) is_a(g, CLASS_ROUNDS);
    out.number.grain = tanh ? -60 : 0;
    out.text = arena_printf(&g->arena,
                            tanh ? "tanh(%s * 0.0625)" : "clip(round(%s * 0.125), -4, 4)", e.text);
    return out;
}

static const char *input_row(struct maker *g, const struct turn *r, int x, int i) {
    if (!r->open && odd(g, 3)) {
        is_a(g, CLASS_REVERSED);
        return arena_printf(&g->arena, "%s[%d - t%d, a%d]", g->var[x].name, r->length - 1,
                            r->number, i);
    }
    return arena_printf(&g->arena, "%s[t%d, a%d]", g->var[x].name, r->number, i);
}

static void open_recurrence(struct maker *g, struct turn *r, int spare) {
    struct text t = {0};
    text_printf(&t, "  recur t%d: ", r->number);
    text_printf(&t, r->open ? "T" : "%d", r->length);
    text_printf(&t, "%s", odd(g, 3) ? " reverse" : "");
    for (int k = 0; k < r->states; k++) {
        r->from[k] = end_buffer(g, r, input_role(g));
        r->to[k] = k == spare ? -1 : end_buffer(g, r, ROLE_OUT);
        text_printf(&t, "%s h%d%c: %s[%d%s] from %s", k ? "," : " state", r->number, 'a' + k,
                    type_name(r->type), r->width, more_of(r), g->var[r->from[k]].name);
        if (r->to[k] < 0) continue;
        g->var[r->to[k]].writes = 1;
        text_printf(&t, " to %s", g->var[r->to[k]].name);
    }
    make_line(g, "%s {", t.at);
    text_free(&t);
}

/* A sum of the input's row and of a matrix by the state: what the step computes for state k. */
static int advance(struct maker *g, const struct turn *r, int k, int x, int i, int j) {
    int u = r->wide ? -1 : plain_buffer(g, input_role(g), r->type, r->width, r->width), a;
    struct number in = number_of_data(g, r->type);
    a = plain_buffer(g, ROLE_TEMP, r->type, -1, r->width);
    make_line(g, "    %s[a%d] = %s", g->var[a].name, i, x < 0 ? "0" : input_row(g, r, x, i));
    if (u >= 0)
        make_line(g, "    %s[a%d] += %s[a%d, a%d] * h%d%c[a%d%s]", g->var[a].name, i,
                  g->var[u].name, i, j, r->number,
                  'a' + (r->states > 1 && rarely(g->tape, 2) ? 1 - k : k), j, beside(r));
    in = number_sum(in, r->type, (in.most > 4 ? in.most : 4) * (r->wide ? 1 : r->width) + 1);
    g->var[a].number = in;
    g->var[a].writes = r->wide ? 1 : 2;
    g->var[a].reads = 1;
    return a;
}

static struct term next_value(struct maker *g, const struct turn *r, int a, int k, int i) {
    struct list axes = {.n = 1, .at = {i}};
    struct term e = {.type = r->type, .number = g->var[a].number};
    e.text = arena_printf(&g->arena, "%s[a%d]", g->var[a].name, i);
    if (odd(g, 2)) e = make_unary(g, e, &axes);
    if (r->wide || rarely(g->tape, 3)) {
        struct term old = {.type = r->type,
                           .number = {.most = type_is_float(r->type) ? 8 : type_most(r->type),
                                      .exact = e.number.exact}};
        old.text = arena_printf(&g->arena, "h%d%c[a%d%s]", r->number, 'a' + k, i, beside(r));
        e = make_binary(g, e, old);
    }
    return bounded(g, e);
}

/* The length stays open; nothing else reads rows of which a run may have fewer. */
static void open_size(struct maker *g, struct turn *r, int x, int y) {
    int at[2] = {x, y};
    r->open = true;
    g->open = r->length;
    for (int k = 0; k < 2; k++) {
        if (at[k] < 0) continue;
        g->var[at[k]].open = true;
        memset(g->var[at[k]].grid, 0, sizeof g->var[at[k]].grid);
    }
    is_a(g, CLASS_OPEN);
}

void make_recurrence(struct maker *g, const struct scheme *type) {
    static const enum type some[] = {TYPE_F32, TYPE_I32, TYPE_I16, TYPE_F64, TYPE_I64};
    struct turn r = {.number = g->recurrences++, .states = 1 + (int)odd(g, 3)};
    struct list none = {0};
    r.type = type->sum == TYPE_F32 || !g->spice ? TYPE_F32 : some[pick(g->tape, 5)];
    r.length = rarely(g->tape, 6) ? 0 : 1 + pick(g->tape, 9);
    r.wide = odd(g, 5);
    r.width = r.wide ? 400 + pick(g->tape, 700) : random_extent(g, 33);
    r.column = odd(g, 4);
    is_a(g, CLASS_RECURRENCE);
    if (!r.length) is_a(g, CLASS_NO_STEPS);
    int i = new_axis(g, &none, r.width);
    struct list one = {.n = 1, .at = {i}};
    int j = new_axis(g, &one, r.width);
    int x = rarely(g->tape, 4) ? -1 : plain_buffer(g, ROLE_IN, r.type, r.length, r.width);
    bool rows = rarely(g->tape, 2);
    int y = rows ? plain_buffer(g, ROLE_OUT, r.type, r.length, r.width) : -1;
    if (r.length && !g->open && odd(g, 2)) open_size(g, &r, x, y);
    open_recurrence(g, &r, rows && rarely(g->tape, 3) ? 0 : -1);
    g->scope = r.number + 1;
    bool exact = true;
    for (int k = 0; k < r.states; k++) {
        int a = advance(g, &r, k, k ? -1 : x, i, j);
        struct term e = next_value(g, &r, a, k, i);
        exact &= e.number.exact;
        make_line(g, "    h%d%c'[a%d%s] = %s", r.number, 'a' + k, i, beside(&r), e.text);
    }
    if (y >= 0)
        make_line(g, "    %s[t%d, a%d] = h%d%c'[a%d%s]%s", g->var[y].name, r.number, i, r.number,
                  'a' + r.states - 1, i, beside(&r), odd(g, 2) ? " * 2" : "");
    make_line(g, "  }");
    g->scope = 0;
    struct number n = {.most = type_is_float(r.type) ? 8 : type_most(r.type), .exact = exact};
    if (!exact) n.grain = -60;
    for (int k = 0; k < r.states; k++)
        if (r.to[k] >= 0) g->var[r.to[k]].number = n;
    if (y < 0) return;
    g->var[y].number = n;
    g->var[y].number.most *= 2;
    g->var[y].writes = r.length > 0;
    if (!r.length || r.open) memset(g->var[y].grid, 0, sizeof g->var[y].grid);
}
