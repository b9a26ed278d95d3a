/* What a program is made of: each step adds statements. */
#include "tests/random/maker.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum role fresh_role(struct maker *g) {
    if (g->scope) return ROLE_TEMP;
    return rarely(g->tape, 8) ? ROLE_OUT : ROLE_TEMP;
}

void make_store(struct maker *g, int var, const struct place *p, struct term e) {
    struct variable *v = &g->var[var];
    v->number = v->writes ? number_join(v->number, e.number) : e.number;
    if (++v->writes == 2) is_a(g, CLASS_SEVERAL);
    make_line(g, "  %s = %s", place_text(g, var, p, 0), e.text);
}

/* The whole buffer, whatever is set of it. */
static void fill(struct maker *g, int var, double value) {
    struct variable *v = &g->var[var];
    struct list axes = {0};
    struct place p;
    for (int d = 0; d < v->ndims; d++) v->grid[d] = (struct grid){0, 1, v->extent[d]};
    p = whole_place(g, var, &axes);
    struct term e = {.type = v->type, .text = make_literal(g, v->type, value)};
    e.number = (struct number){.most = fabs(value), .grain = 0, .exact = true};
    if (isinf(value)) e.number.most = 0;
    if (axes.n && v->type != TYPE_BOOL && odd(g, 8)) {
        e = axis_value(g, axes.at[pick_of(g, axes.n)], v->type);
    } else if (axes.n && odd(g, 6)) {
        struct list one = {.n = 1, .at = {axes.at[pick_of(g, axes.n)]}};
        e = make_operand(g, v->type, &one);
    }
    e.number = number_stored(e.number, v->type);
    make_store(g, var, &p, e);
}

static bool is_whole(const struct variable *v) {
    for (int d = 0; d < v->ndims; d++)
        if (v->grid[d].count != v->extent[d]) return false;
    return true;
}

int new_buffer(struct maker *g, enum type type, const struct list *axes, struct place *place,
               bool sums, double start) {
    int extent[MAKER_DIMS];
    struct grid grid[MAKER_DIMS];
    *place = fresh_place(g, axes, true, extent, grid);
    int var = make_variable(g, fresh_role(g), type, extent, place->n);
    struct variable *v = &g->var[var];
    memcpy(v->grid, grid, (size_t)place->n * sizeof *grid);
    bool part = !is_whole(v);
    if (part) is_a(g, CLASS_PARTIAL);
    if (!g->scope && odd(g, part ? 4 : 8)) {
        v->role = ROLE_INOUT;
        for (int d = 0; d < v->ndims; d++) v->grid[d] = (struct grid){0, 1, v->extent[d]};
        v->writes = 1;
        is_a(g, CLASS_IN_PLACE);
    } else if (part && (v->role == ROLE_OUT || rarely(g->tape, 2))) {
        fill(g, var, start);
    } else if (sums && !part && rarely(g->tape, 6)) {
        fill(g, var, start);
    } else if (sums) {
        struct term e = {.type = type, .text = make_literal(g, type, start)};
        e.number = (struct number){.most = isinf(start) ? 0 : fabs(start), .exact = true};
        make_store(g, var, place, e);
    }
    return var;
}

static enum combiner pick_combiner(struct maker *g, enum type type) {
    static const enum combiner some[] = {COMBINE_ADD, COMBINE_MAX, COMBINE_MIN, COMBINE_MUL};
    if (type == TYPE_BOOL) return rarely(g->tape, 2) ? COMBINE_MIN : COMBINE_MAX;
    enum combiner c = odd(g, 3) ? some[pick(g->tape, 4)] : COMBINE_ADD;
    if (c != COMBINE_ADD) is_a(g, CLASS_EXTREME);
    return c;
}

double start_of(struct maker *g, enum combiner c, enum type type) {
    if (c == COMBINE_ADD) return odd(g, 8) ? 3 : 0;
    if (c == COMBINE_MUL) return 1;
    if (type == TYPE_BOOL) return c == COMBINE_MIN;
    if (type_is_float(type) && rarely(g->tape, 2)) return c == COMBINE_MIN ? INFINITY : -INFINITY;
    double most = fmin(type_most(type) - 1, 30000);
    if (type_is_float(type)) most = 2000;
    return c == COMBINE_MIN ? most : type_is_signed(type) || type_is_float(type) ? -most : 0;
}

/* ---- where ---- */
const char *where_text(struct maker *g, const struct list *axes, bool only) {
    struct text t = {0};
    int n = 1 + (int)rarely(g->tape, 3);
    for (int k = 0; k < n; k++) {
        int a = axes->at[only && k == 0 ? axes->n - 1 : pick_of(g, axes->n)],
            b = axes->at[pick_of(g, axes->n)], e = extent_of(g, a);
        text_printf(&t, "%s", k ? " and " : " where ");
        switch (a == b ? pick(g->tape, 3) : 3 + pick(g->tape, 5)) {
        case 0:
            text_printf(&t, "a%d < %d", a, 1 + pick(g->tape, e));
            break;
        case 1:
            text_printf(&t, "a%d >= %d", a, pick(g->tape, e));
            break;
        case 2:
            text_printf(&t, "a%d == %d", a, pick(g->tape, e));
            break;
        case 3:
            text_printf(&t, "a%d <= a%d", a, b);
            break;
        case 4:
            text_printf(&t, "a%d + a%d < %d", a, b, 1 + pick(g->tape, e + extent_of(g, b)));
            break;
        case 5:
            text_printf(&t, "2*a%d > a%d - %d", a, b, pick(g->tape, 4));
            break;
        case 6:
            text_printf(&t, "0 - a%d + a%d >= %d", a, b, pick(g->tape, 3));
            break;
        case 7:
            text_printf(&t, "a%d == a%d", a, b);
            break;
        }
    }
    is_a(g, CLASS_WHERE);
    const char *out = arena_strdup(&g->arena, t.at);
    text_free(&t);
    return out;
}

/* ---- operands ---- */
static struct list some_of(struct maker *g, const struct list *axes) {
    struct list some = {0};
    int how = pick(g->tape, 4), one = pick_of(g, axes->n ? axes->n : 1);
    for (int k = 0; k < axes->n; k++)
        if (how == 0 || (how == 1 ? k == one : how == 2 && rarely(g->tape, 2)))
            list_add(&some, axes->at[k]);
    return some;
}

/* Of the type: something that is there, or a new input. */
struct term any_operand(struct maker *g, const struct list *axes, enum type type, int but) {
    int v = rarely(g->tape, 3) || odd(g, 3) ? readable(g, but) : -1;
    if (v >= 0) {
        struct place p = part_place(g, v, axes);
        struct variable *x = &g->var[v];
        struct term probe = {.type = x->type, .number = x->number};
        if (can_cast(&probe, type) && (type_is_float(type) || x->number.exact)) {
            if (x->role != ROLE_IN && x->role != ROLE_CONST) is_a(g, CLASS_REREAD);
            return make_cast(g, make_read(g, v, &p), type);
        }
    }
    struct list some = some_of(g, axes);
    return make_operand(g, type, &some);
}

/* ---- sums of products ---- */
static void pick_axes(struct maker *g, struct sum *s, int from, struct place *place) {
    int64_t room = g->points;
    if (from >= 0) {
        *place = whole_place(g, from, &s->a);
        room /= list_points(g, &s->a);
        for (int k = 0; k < s->a.n; k++)
            list_add(rarely(g->tape, 2) ? &s->reduced : &s->result, s->a.at[k]);
    }
    struct list all = s->a;
    int nresult = (from < 0) + pick(g->tape, from < 0 ? 3 : 2),
        nreduced = pick(g->tape, from < 0 ? 3 : 2);
    if (from < 0 && odd(g, 8)) nresult = 0;
    for (int k = 0; k < nresult; k++) {
        int x = new_axis(g, &all, random_extent(g, room)), where = from < 0 ? pick(g->tape, 4) : 1;
        room /= extent_of(g, x);
        list_add(&all, x);
        list_add(&s->result, x);
        if (where == 3 || (where < 2) == (k % 2 == 0 && from < 0)) list_add(&s->a, x);
        if (where == 3 || (where < 2) != (k % 2 == 0 && from < 0)) list_add(&s->b, x);
    }
    for (int k = 0; k < s->reduced.n; k++)
        if (!rarely(g->tape, 8)) list_add(&s->b, s->reduced.at[k]);
    for (int k = 0; k < nreduced; k++) {
        int x = new_axis(g, &all, random_extent(g, room));
        room /= extent_of(g, x);
        list_add(&all, x);
        list_add(&s->reduced, x);
        if (from < 0) list_add(&s->a, x);
        if (from >= 0 || !rarely(g->tape, 8)) list_add(&s->b, x);
    }
}

/* The result's axes move, small reduced ones slide along. */
static void pick_windows(struct maker *g, const struct sum *s) {
    struct list used = {0};
    for (int k = 0; k < s->reduced.n; k++) {
        int r = s->reduced.at[k];
        if (extent_of(g, r) > 9 || rarely(g->tape, 2) || !list_has(&s->a, r)) continue;
        for (int i = 0; i < s->result.n; i++) {
            int m = s->result.at[i];
            if (!list_has(&s->a, m) || list_has(&used, m)) continue;
            list_add(&used, m);
            g->slides[m] = r;
            break;
        }
    }
}

static void forget_windows(struct maker *g) {
    for (int a = 0; a < MAKER_AXES; a++) g->slides[a] = -1;
}

static struct term term_of(struct maker *g, struct term a, struct term b, const struct sum *s) {
    struct term out;
    switch (odd(g, 4) ? pick(g->tape, 5) : 0) {
    case 1:
        return a;
    case 2:
        out = make_binary(g, a, b);
        return out;
    case 3: {
        struct term d = make_binary(g, a, b);
        if (type_is_float(d.type) && d.number.most > 1e4) return d;
        return make_product(g, d, d);
    }
    case 4:
        if (!s->reduced.n) return make_product(g, a, b);
        return make_product(g, a, axis_value(g, s->reduced.at[0], a.type));
    default:
        return make_product(g, a, b);
    }
}

void accumulate(struct maker *g, int var, const struct place *p, struct sum *s, struct term e) {
    struct variable *v = &g->var[var];
    double terms = 1;
    const char *where = "";
    struct list all = s->result;
    for (int k = 0; k < s->reduced.n; k++) list_add(&all, s->reduced.at[k]);
    bool only = odd(g, 6) && all.n < 7;
    if (only) {
        int x = new_axis(g, &all, 1 + pick(g->tape, 6));
        list_add(&all, x);
        list_add(&s->reduced, x);
        is_a(g, CLASS_ONLY_WHERE);
    }
    if (all.n && (only || odd(g, 5))) where = where_text(g, &all, only);
    for (int k = 0; k < all.n; k++)
        if (!list_has(&s->result, all.at[k])) terms *= extent_of(g, all.at[k]);
    if (s->combine == COMBINE_MUL && type_is_float(v->type) &&
        pow(fmax(e.number.most, 1), terms) > 1e5)
        s->combine = COMBINE_ADD;
    struct number n = e.number;
    if (s->combine == COMBINE_ADD) n = number_sum(n, v->type, terms);
    if (s->combine == COMBINE_MUL) {
        n.most = pow(fmax(n.most, 1), terms) * fmax(v->number.most, 1);
        n.grain = n.grain < 0 ? (int)(n.grain * terms) : 0;
        n = settle(n, v->type);
    }
    double before = v->number.most;
    n = number_join(v->number, n);
    if (s->combine == COMBINE_ADD) n.most += before;
    v->number = number_stored(settle(n, v->type), v->type);
    if (++v->writes == 2) is_a(g, CLASS_SEVERAL);
    make_line(g, "  %s %s %s%s", place_text(g, var, p, 0), combiner_spelling[s->combine], e.text,
              where);
}

/* Over an axis of the result and a reduced one together: O[2*p + r] += … */
static bool scatter(struct maker *g, struct sum *s, struct place *p, int *extent) {
    if (!s->result.n || !s->reduced.n || s->combine == COMBINE_MUL || !odd(g, 10)) return false;
    int stride = 1 + pick(g->tape, 3), r = s->reduced.at[0];
    for (int k = 0; k < s->result.n && k < MAKER_DIMS; k++) {
        int a = s->result.at[k];
        p->at[k] = (struct affine){.axis = {a}, .coef = {1}, .n = 1};
        extent[k] = extent_of(g, a);
        if (k) continue;
        p->at[0] = (struct affine){.axis = {a, r}, .coef = {stride, 1}, .n = 2};
        extent[0] = stride * (extent_of(g, a) - 1) + extent_of(g, r);
        p->n = 1;
    }
    p->n = s->result.n;
    is_a(g, CLASS_SCATTER);
    return true;
}

void make_contraction(struct maker *g, const struct scheme *type, int from) {
    struct sum s = {0};
    struct place pa, p = {0};
    int extent[MAKER_DIMS], var;
    pick_axes(g, &s, from, &pa);
    s.combine = pick_combiner(g, type->sum);
    if (from < 0) pick_windows(g, &s);
    if (odd(g, 4)) list_shuffle(g, &s.result);
    struct term a = from >= 0 ? make_read(g, from, &pa) : make_operand(g, type->a, &s.a);
    forget_windows(g);
    struct term b = make_operand(g, type->b, &s.b);
    a = make_cast(g, a, type->sum);
    b = make_cast(g, b, type->sum);
    struct term e = term_of(g, a, b, &s);
    if (e.type != type->sum) e = make_cast(g, e, type->sum);
    is_a(g, from >= 0 ? CLASS_SECOND : CLASS_CONTRACTION);
    if (s.reduced.n == 0 && !rarely(g->tape, 3)) {
        var = new_buffer(g, type->sum, &s.result, &p, false, 0);
        e.number = number_stored(e.number, type->sum);
        make_store(g, var, &p, e);
        return;
    }
    double start = start_of(g, s.combine, type->sum);
    if (scatter(g, &s, &p, extent)) {
        var = make_variable(g, fresh_role(g), type->sum, extent, p.n);
        fill(g, var, start);
        if (type_is_float(type->sum)) /* as many terms as the axes have points, at most */
            e.number = number_sum(e.number, type->sum, extent_of(g, s.result.at[0]));
    } else {
        var = new_buffer(g, type->sum, &s.result, &p, true, start);
    }
    accumulate(g, var, &p, &s, e);
}

/* ---- elementwise ---- */
static enum type some_type(struct maker *g, enum type near, bool exact) {
    static const enum type any[] = {TYPE_F32, TYPE_I32, TYPE_I8,  TYPE_U8,  TYPE_BF16,
                                    TYPE_F16, TYPE_F64, TYPE_I16, TYPE_I64, TYPE_U16,
                                    TYPE_U32, TYPE_U64, TYPE_BOOL};
    if (rarely(g->tape, 3) == false) return near;
    enum type t = any[pick(g->tape, (int)(sizeof any / sizeof *any))];
    if (!exact && !type_is_float(t)) return near;
    return t;
}

struct term operations(struct maker *g, struct term e, const struct list *axes, int but, int n) {
    for (; n > 0 && strlen(e.text) < 400; n--) {
        if (rarely(g->tape, 2))
            e = make_binary(g, e, any_operand(g, axes, e.type, but));
        else
            e = make_unary(g, e, axes);
    }
    return e;
}

void make_elementwise(struct maker *g, int from) {
    struct list axes = {0};
    struct place p = {0}, at = whole_place(g, from, &axes);
    if (axes.n > MAKER_DIMS) return;
    struct term e = make_read(g, from, &at);
    enum type type = some_type(g, e.type, e.number.exact);
    if (type != e.type && rarely(g->tape, 2)) e = make_cast(g, e, type);
    e = operations(g, e, &axes, -1, 1 + pick(g->tape, 3));
    if (!can_cast(&e, type)) type = e.type;
    if (odd(g, 4)) list_shuffle(g, &axes);
    int var = new_buffer(g, type, &axes, &p, false, 0);
    make_store(g, var, &p, stored(g, e, type));
}

/* What is there, at other places: transposed, reversed, with room around it. */
void make_copy(struct maker *g, int from) {
    struct list axes = {0};
    struct place p = {0}, at = whole_place(g, from, &axes);
    struct term e = make_read(g, from, &at);
    for (int k = 0; k + 1 < axes.n; k++) list_shuffle(g, &axes);
    int spice = g->spice;
    if (spice) g->spice = 3;
    int var = new_buffer(g, e.type, &axes, &p, false, 0);
    g->spice = spice;
    make_store(g, var, &p, stored(g, e, e.type));
    is_a(g, CLASS_REREAD);
}

/* ---- in place ---- */
static int changeable(struct maker *g) {
    int at[MAKER_BUFFERS], n = 0;
    for (int v = g->nvars - 1; v >= 0; v--) {
        const struct variable *x = &g->var[v];
        bool whole = true;
        for (int d = 0; d < x->ndims; d++) whole &= x->grid[d].count > 0;
        bool role = x->role == ROLE_TEMP || x->role == ROLE_OUT || x->role == ROLE_INOUT;
        if (role && x->writes && whole && x->scope == g->scope) at[n++] = v;
    }
    return n ? at[pick_of(g, n)] : -1;
}

/* Axes of its own over a part of the variable: each in one dimension. */
static struct place own_place(struct maker *g, int var, struct list *axes) {
    const struct variable *v = &g->var[var];
    struct place p = {.n = v->ndims};
    bool part = odd(g, 2);
    for (int d = 0; d < v->ndims; d++) {
        const struct grid *s = &v->grid[d];
        if (s->count == 1 || (part && rarely(g->tape, 5))) {
            p.at[d] = (struct affine){.offset = s->lo + s->stride * pick_of(g, s->count)};
            continue;
        }
        int extent = part && rarely(g->tape, 2) ? 1 + pick(g->tape, s->count) : s->count;
        int stride = part && rarely(g->tape, 5) && 2 * (extent - 1) < s->count ? 2 : 1;
        int span = stride * (extent - 1) + 1, offset = pick_of(g, s->count - span + 1);
        bool back = part && rarely(g->tape, 5);
        int a = new_axis(g, axes, extent);
        list_add(axes, a);
        p.at[d] = (struct affine){
            .axis = {a}, .n = 1, .coef = {back ? -stride * s->stride : stride * s->stride}};
        p.at[d].offset = s->lo + s->stride * (back ? offset + span - 1 : offset);
        if (back) is_a(g, CLASS_REVERSED);
        if (stride > 1) is_a(g, CLASS_STRIDED);
    }
    if (part) is_a(g, CLASS_PARTIAL);
    return p;
}

void make_in_place(struct maker *g) {
    struct sum s = {0};
    int var = changeable(g);
    if (var < 0) return;
    struct place p = own_place(g, var, &s.result);
    struct variable *v = &g->var[var];
    bool exact = v->number.exact;
    is_a(g, CLASS_IN_PLACE);
    if (rarely(g->tape, 2)) {
        struct term e = make_read(g, var, &p);
        v->reads--;
        e = operations(g, e, &s.result, var, 1 + pick(g->tape, 2));
        make_store(g, var, &p, stored(g, e, v->type));
        return;
    }
    struct list all = s.result;
    if (rarely(g->tape, 2)) {
        int x = new_axis(g, &all, random_extent(g, g->points / list_points(g, &all)));
        list_add(&all, x);
        list_add(&s.reduced, x);
    }
    s.combine = pick_combiner(g, v->type);
    struct term e = any_operand(g, &all, v->type, var);
    if (rarely(g->tape, 2)) e = make_product(g, e, any_operand(g, &all, v->type, var));
    if (!exact && !type_is_float(v->type)) return;
    accumulate(g, var, &p, &s, e);
}

/* ---- several statements on one buffer ---- */
void make_concatenation(struct maker *g) {
    struct list axes = {0};
    int extent[2], n = 1 + pick(g->tape, 2), along = pick_of(g, n), first = random_extent(g, 64),
                   second = random_extent(g, 64), at[2] = {0, first};
    enum type type = some_type(g, TYPE_F32, true);
    for (int d = 0; d < n; d++) extent[d] = d == along ? first + second : random_extent(g, 32);
    int var = make_variable(g, fresh_role(g), type, extent, n);
    bool back = odd(g, 3);
    for (int part = 0; part < 2; part++) {
        struct place p = {.n = n};
        int here = part ? second : first;
        axes.n = 0;
        for (int d = 0; d < n; d++) {
            int e = d == along ? here : extent[d], a = new_axis(g, &axes, e);
            list_add(&axes, a);
            p.at[d] = (struct affine){
                .axis = {a}, .coef = {1}, .n = 1, .offset = d == along ? at[part] : 0};
            if (back && d == along) p.at[d].coef[0] = -1, p.at[d].offset += e - 1;
        }
        struct term e =
            operations(g, any_operand(g, &axes, type, var), &axes, var, pick(g->tape, 2));
        make_store(g, var, &p, stored(g, e, type));
    }
    is_a(g, CLASS_PARTIAL);
}

/* ---- long chains ---- */
static const char *link_of(struct maker *g, enum type type, int how) {
    static const char *const floats[] = {
        "max(@, 0)", "(@ + 1)",          "(3 - @)",     "min(@, 64)",
        "abs(@)",    "clip(@, -32, 32)", "(@ * 2 - 1)", "select(@ > 1, @, 2)"};
    static const char *const integers[] = {"max(@, 1)", "(@ + 1)",        "(@ ^ 3)",   "min(@, 64)",
                                           "(@ * 3)",   "clip(@, 2, 32)", "shr(@, 1)", "(@ % 61)"};
    if (how == 7 && type_is_float(type)) is_a(g, CLASS_SELECT);
    return type_is_float(type) ? floats[how] : integers[how];
}

void make_chain(struct maker *g, int from) {
    struct list axes = {0};
    struct place at = whole_place(g, from, &axes);
    enum type type = g->var[from].type;
    if (type == TYPE_BOOL || !g->var[from].number.exact || axes.n > MAKER_DIMS) return;
    int links = 64 + pick(g->tape, 20), n = 1 + pick(g->tape, 4), how[4], shape = pick(g->tape, 3);
    for (int k = 0; k < n; k++) how[k] = pick(g->tape, 8);
    bool doubles = false;
    for (int k = 0; k < n; k++) doubles |= how[k] == 6 && type_is_float(type);
    for (int k = 0; k < n && doubles; k++) how[k] = how[k] == 6 ? 5 : how[k];
    int last = from;
    struct term whole = make_read(g, from, &at);
    struct number number = whole.number;
    number.most += links + 64;
    if (number.grain > 0) number.grain = 0;
    number = number_stored(settle(number, type), type);
    for (int k = 0; k < links; k++) {
        const char *form = link_of(g, type, how[k % n]);
        struct text t = {0};
        struct term e = shape == 2 ? whole : make_read(g, last, &at);
        for (const char *s = form; *s; s++)
            text_append(&t, *s == '@' ? e.text : s, *s == '@' ? strlen(e.text) : 1);
        e.text = arena_strdup(&g->arena, t.at);
        text_free(&t);
        if (strchr(form, '@') != strrchr(form, '@') && shape == 2) e = whole; /* it would double */
        whole = e;
        if (shape == 2 && k + 1 < links) continue;
        if (maker_full(g)) shape = 1;
        if (shape == 1 && k) { /* all in one buffer */
            make_store(g, last, &at, e);
        } else {
            struct list order = axes;
            last = new_buffer(g, type, &order, &at, false, 0);
            make_store(g, last, &at, e);
        }
        g->var[last].number = number;
    }
    is_a(g, CLASS_CHAIN);
}

/* ---- opaque calls ---- */

/* No command runs one: the whole program is refused. */
void make_call(struct maker *g, int from) {
    struct variable *x = &g->var[from];
    if (!is_whole(x)) return;
    int to = make_variable(g, fresh_role(g), x->type, x->extent, x->ndims);
    make_line(g, "  call some_function(%s) -> (%s)", x->name, g->var[to].name);
    x->reads++;
    g->var[to].writes++;
    is_a(g, CLASS_CALL);
}

/* ---- the end ---- */
void make_finish(struct maker *g) {
    for (int v = 0; v < g->nvars; v++) {
        struct variable *x = &g->var[v];
        if (x->role != ROLE_TEMP || x->reads || x->scope) continue;
        if (is_whole(x)) {
            x->role = ROLE_OUT;
            continue;
        }
        struct list axes = {0};
        struct place p = {0}, at = whole_place(g, v, &axes);
        struct term e = make_read(g, v, &at);
        int extent[MAKER_DIMS];
        for (int k = 0; k < axes.n; k++) {
            extent[k] = extent_of(g, axes.at[k]);
            p.at[k] = (struct affine){.axis = {axes.at[k]}, .coef = {1}, .n = 1};
        }
        p.n = axes.n;
        make_store(g, make_variable(g, ROLE_OUT, e.type, extent, p.n), &p, e);
    }
}
