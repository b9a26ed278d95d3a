#include "tests/random/maker.h"

#include <stdlib.h>
#include <string.h>

static struct scheme pick_scheme(struct maker *g, const struct schemes *native) {
    static const struct scheme any[] = {
        {TYPE_F32, TYPE_F32, TYPE_F32},    {TYPE_I8, TYPE_I8, TYPE_I32},
        {TYPE_U8, TYPE_I8, TYPE_I32},      {TYPE_BF16, TYPE_BF16, TYPE_F32},
        {TYPE_F16, TYPE_F16, TYPE_F32},    {TYPE_I16, TYPE_I16, TYPE_I32},
        {TYPE_I32, TYPE_I32, TYPE_I32},    {TYPE_F64, TYPE_F64, TYPE_F64},
        {TYPE_I8, TYPE_I8, TYPE_I8},       {TYPE_I64, TYPE_I64, TYPE_I64},
        {TYPE_U8, TYPE_U8, TYPE_U32},      {TYPE_I16, TYPE_I8, TYPE_I64},
        {TYPE_F32, TYPE_F32, TYPE_F64},    {TYPE_U16, TYPE_I32, TYPE_U32},
        {TYPE_F16, TYPE_F16, TYPE_F16},    {TYPE_BOOL, TYPE_I8, TYPE_I32},
        {TYPE_BF16, TYPE_BF16, TYPE_BF16}, {TYPE_U64, TYPE_U8, TYPE_U64},
        {TYPE_BOOL, TYPE_BOOL, TYPE_I32},  {TYPE_I8, TYPE_BF16, TYPE_F32}};
    bool foreign = rarely(g->tape, 4) || native->n == 0;
    if (foreign) return any[pick(g->tape, (int)(sizeof any / sizeof *any))];
    is_a(g, CLASS_NATIVE);
    return native->at[pick(g->tape, native->n)];
}

/* The last one that is read on: what was made last, most often. */
static int latest(struct maker *g) {
    int v = odd(g, 3) ? readable(g, -1) : -1;
    for (int k = g->nvars - 1; v < 0 && k >= 0; k--) {
        const struct variable *x = &g->var[k];
        bool made = x->role == ROLE_TEMP || x->role == ROLE_OUT || x->role == ROLE_INOUT,
             set = x->writes > 0;
        for (int d = 0; d < x->ndims; d++) set &= x->grid[d].count > 0;
        if (made && set && !x->scope) v = k;
    }
    return v;
}

static void first_step(struct maker *g, const struct scheme *type) {
    struct list none = {0}, axes = {0};
    (void)none;
    switch (g->spice ? pick(g->tape, 12) : 0) {
    case 8:
        make_concatenation(g);
        break;
    case 9:
        make_recurrence(g, type);
        break;
    case 10:
    case 11: {
        int n = 1 + pick(g->tape, 3);
        int64_t room = g->points;
        for (int k = 0; k < n; k++) {
            int a = new_axis(g, &axes, random_extent(g, room));
            list_add(&axes, a);
            room /= extent_of(g, a);
        }
        struct term e = make_operand(g, type->a, &axes);
        (void)e;
        make_elementwise(g, g->nvars - 1);
        break;
    }
    default:
        make_contraction(g, type, -1);
    }
}

static void next_step(struct maker *g, const struct scheme *type) {
    int from = latest(g);
    if (from < 0) {
        make_contraction(g, type, -1);
        return;
    }
    int64_t elements = 1;
    for (int d = 0; d < g->var[from].ndims; d++) elements *= g->var[from].extent[d];
    if (elements > MAKER_ELEMENTS) return;
    int how = pick(g->tape, 12);
    if (!g->spice) how %= 4;
    if (!g->scope && !g->var[from].open && odd(g, 60)) how = 12;
    const struct variable *v = &g->var[from];
    bool small = v->ndims == 0 || v->extent[0] < 8;
    switch (how) {
    case 2:
        if (v->type != TYPE_BOOL)
            make_contraction(
                g, &(struct scheme){v->type, type->b, type_is_float(v->type) ? TYPE_F32 : TYPE_I32},
                from);
        break;
    case 3:
        if (rarely(g->tape, 2))
            make_shared(g, from);
        else
            make_rows(g, from);
        break;
    case 4:
    case 5:
        make_copy(g, from);
        break;
    case 6:
    case 7:
        make_in_place(g);
        break;
    case 8:
        make_contraction(g, type, -1);
        break;
    case 9:
        if (small && odd(g, 2) && !(g->info.classes >> CLASS_CHAIN & 1))
            make_chain(g, from);
        else
            make_in_place(g);
        break;
    case 10:
        if (odd(g, 2))
            make_recurrence(g, type);
        else
            make_concatenation(g);
        break;
    case 12:
        make_call(g, from);
        break;
    default:
        make_elementwise(g, from);
    }
}

/* Two thirds of the programs are exact. Where operations round, results are compared within bounds.
 */
static void begin(struct maker *g, struct tape *tape) {
    g->tape = tape;
    arena_init(&g->arena);
    g->info.exact = true;
    for (int a = 0; a < MAKER_AXES; a++) g->slides[a] = -1;
    g->spice = pick(tape, 4);
    g->rounding = rarely(tape, 6);
    g->wide = rarely(tape, 10);
    g->points = 12000;
    if (rarely(tape, 40)) {
        is_a(g, CLASS_BIG);
        g->points = 300000;
    }
    if (g->wide) is_a(g, CLASS_WIDE);
}

char *random_program(struct tape *tape, const struct schemes *native, struct random_info *info) {
    struct maker *g = calloc(1, sizeof *g);
    begin(g, tape);
    struct scheme type = pick_scheme(g, native);
    first_step(g, &type);
    for (int n = pick(tape, 5); n > 0 && !maker_full(g); n--) next_step(g, &type);
    make_finish(g);
    char *out = maker_print(g);
    for (int v = 0; v < g->nvars; v++) g->info.exact &= g->var[v].number.exact;
    if (!g->info.exact) is_a(g, CLASS_ROUNDS);
    *info = g->info;
    arena_free(&g->arena);
    free(g);
    return out;
}
