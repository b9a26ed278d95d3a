#include "backends/c/c_int.h"
#include "scheduler/schedule/launches.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* One statement as a loop nest over its axes in the program's order, the interpreter's. */
struct nest {
    struct cgen *g;
    const struct program *program;
    const struct stmt *stmt;
    const char *axis[MAX_AXES]; /* value as text */
    const char *lo[MAX_AXES], *hi[MAX_AXES];
    int64_t low[MAX_AXES], high[MAX_AXES]; /* the range, both included */
    int order[MAX_AXES],
        naxes; /* outermost first; the first `ndealt` are one loop whose points are dealt */
    int ndealt;
};

static const char *flight_name(enum type t) {
    return t == TYPE_F16 || t == TYPE_BF16 ? "float" : c_type_name(t);
}

/* ---- indices ---- */
static const char *affine(struct nest *n, const int64_t *coef) {
    struct arena *a = &n->g->arena;
    const char *sum = c_integer(n->g, coef[n->program->naxes]);
    for (int x = 0; x < n->program->naxes; x++) {
        if (!coef[x]) continue;
        if (coef[x] == 1)
            sum = arena_printf(a, "%s + %s", sum, n->axis[x]);
        else
            sum = arena_printf(a, "%s + %s * %s", sum, c_integer(n->g, coef[x]), n->axis[x]);
    }
    return arena_printf(a, "(%s)", sum);
}

static void index_range(const struct nest *n, const int64_t *coef, int64_t *lo, int64_t *hi) {
    *lo = *hi = coef[n->program->naxes];
    for (int a = 0; a < n->program->naxes; a++) {
        if (!coef[a]) continue;
        *lo += coef[a] * (coef[a] > 0 ? n->low[a] : n->high[a]);
        *hi += coef[a] * (coef[a] > 0 ? n->high[a] : n->low[a]);
    }
}

static const char *layout_text(struct nest *n, const struct lexpr *e, const char *const *index) {
    struct arena *a = &n->g->arena;
    if (e->op == 'n') return c_integer(n->g, e->number);
    if (e->op == 'i') return index[e->index];
    const char *x = layout_text(n, e->a, index), *y = layout_text(n, e->b, index);
    if (e->op == '/') return arena_printf(a, "isamap_div(%s, %s)", x, y);
    if (e->op == '%') return arena_printf(a, "isamap_mod(%s, %s)", x, y);
    return arena_printf(a, "(%s %c %s)", x, e->op, y);
}

/* Elements from one index to the next of each dimension (or place of the layout) of the home. */
static int home_strides(const struct nest *n, const struct place *p, int64_t *stride) {
    const struct buffer *b = &n->program->buffer[p->buffer];
    int64_t extent[MAX_DIMS], size = 1;
    int rank = p->layout ? p->layout->nplaces : b->ndims;
    if (rank > MAX_DIMS) return -1;
    if (p->layout)
        layout_extents(p->layout, p->extent, extent);
    else
        for (int d = 0; d < rank; d++) extent[d] = p->extent ? p->extent[d] : b->extent[d];
    for (int d = rank - 1; d >= 0; d--) {
        stride[d] = size;
        size *= extent[d];
    }
    return rank;
}

/* The element as an lvalue of its C type. */
static const char *element(struct nest *n, const struct access *a) {
    struct cgen *g = n->g;
    int home = schedule_home(g->schedule, a->buffer);
    int64_t stride[MAX_DIMS];
    const char *index[MAX_DIMS], *sum = "0";
    const struct buffer *b = &n->program->buffer[a->buffer];
    if (home < 0) {
        c_error(g, "buffer '%s' has no home", b->name);
        return "";
    }
    const struct place *p = &g->schedule->place[home];
    int rank = home_strides(n, p, stride);
    if (rank < 0) c_error(g, "the layout of '%s' has more than %d places", p->name, MAX_DIMS);
    for (int d = 0; d < b->ndims; d++) index[d] = affine(n, &a->coef[d * (n->program->naxes + 1)]);
    for (int k = 0; k < rank; k++) {
        const char *v = p->layout ? layout_text(n, p->layout->place[k].expr, index) : index[k];
        sum = arena_printf(&g->arena, "%s + %s * %s", sum, c_integer(g, stride[k]), v);
    }
    return arena_printf(&g->arena, "((%s *)p_%d)[%s]", c_type_name(b->type), home, sum);
}

/* A test that the index is inside the buffer; NULL when it always is. */
static const char *inside(struct nest *n, const struct access *a) {
    const struct buffer *b = &n->program->buffer[a->buffer];
    const char *all = NULL;
    for (int d = 0; d < b->ndims; d++) {
        const int64_t *coef = &a->coef[d * (n->program->naxes + 1)];
        int64_t lo, hi;
        index_range(n, coef, &lo, &hi);
        if (lo >= 0 && hi < b->extent[d]) continue;
        all = arena_printf(&n->g->arena, "%s%s(uint64_t)%s < %" PRIu64 "u", all ? all : "",
                           all ? " && " : "", affine(n, coef), (uint64_t)b->extent[d]);
    }
    return all;
}

/* ---- values ---- */
static const char *literal(struct cgen *g, enum type t, union value v) {
    if (!type_is_float(t)) {
        if (t == TYPE_U64) return arena_printf(&g->arena, "UINT64_C(%" PRIu64 ")", (uint64_t)v.i);
        return arena_printf(&g->arena, "(%s)%s", c_type_name(t), c_integer(g, v.i));
    }
    double x = type_round(t, v.f);
    if (isnan(x)) return "NAN";
    if (isinf(x)) return x > 0 ? "INFINITY" : "(-INFINITY)";
    return arena_printf(&g->arena, "(%s)(%a)", flight_name(t), x);
}

static const char *load(struct cgen *g, enum type t, const char *element_text) {
    if (t != TYPE_F16 && t != TYPE_BF16) return element_text;
    return arena_printf(&g->arena, "isamap_load_%s(%s)", type_name(t), element_text);
}

static const char *store(struct cgen *g, enum type t, const char *value) {
    if (t != TYPE_F16 && t != TYPE_BF16) return value;
    return arena_printf(&g->arena, "isamap_store_%s(%s)", type_name(t), value);
}

static const char *read_text(struct nest *n, const struct access *a) {
    enum type t = n->program->buffer[a->buffer].type;
    const char *v = load(n->g, t, element(n, a)), *in = a->has_fill ? inside(n, a) : NULL;
    if (!in) return v;
    return arena_printf(&n->g->arena, "%s ? %s : %s", in, v, literal(n->g, t, a->fill));
}

static const char *cast_text(struct cgen *g, enum type to, enum type from, const char *v) {
    const char *name = type_name(to);
    if (to == TYPE_BOOL) return arena_printf(&g->arena, "%s != 0", v);
    if (type_is_float(from) && !type_is_float(to))
        return arena_printf(&g->arena, "isamap_to_%s(%s)", name, v);
    return arena_printf(&g->arena, "(%s)%s", flight_name(to), v);
}

static const char *call_text(struct cgen *g, enum opcode op, enum type t, const char *const *arg) {
    char name[16];
    snprintf(name, sizeof name, "%s", op_info[op].id);
    for (char *c = name; *c; c++) *c = (char)(*c >= 'A' && *c <= 'Z' ? *c - 'A' + 'a' : *c);
    const char *text = arena_printf(&g->arena, "isamap_%s_%s(%s", name, type_name(t), arg[0]);
    for (int k = 1; k < op_info[op].arity; k++)
        text = arena_printf(&g->arena, "%s, %s", text, arg[k]);
    return arena_printf(&g->arena, "%s)", text);
}

static const char *op_text(struct nest *n, const struct op *o) {
    struct cgen *g = n->g;
    const struct stmt *s = n->stmt;
    const char *arg[3] = {"", "", ""};
    for (int k = 0; k < op_info[o->code].arity; k++)
        arg[k] = arena_printf(&g->arena, "t%d", o->arg[k]);
    enum type from = op_info[o->code].arity ? s->op[o->arg[0]].type : o->type;
    switch (o->code) {
    case OP_READ:
        return read_text(n, &s->read[o->read]);
    case OP_LITERAL:
        return literal(g, o->type, o->value);
    case OP_AXIS:
        return cast_text(g, o->type, TYPE_I64, n->axis[o->axis]);
    case OP_CAST:
        return cast_text(g, o->type, from, arg[0]);
    case OP_SELECT:
        return arena_printf(&g->arena, "%s ? %s : %s", arg[0], arg[1], arg[2]);
    default:
        break;
    }
    if (op_info[o->code].flags & OP_TO_BOOL)
        return arena_printf(&g->arena, "%s %s %s", arg[0], op_info[o->code].spelling, arg[1]);
    return call_text(g, o->code, from, arg);
}

/* ---- the nest ---- */
static const char *combined(struct nest *n, const char *old, const char *value) {
    const char *arg[3] = {old, value, NULL};
    enum type t = n->stmt->op[n->stmt->nops - 1].type;
    return n->stmt->combine == COMBINE_SET ? value
                                           : call_text(n->g, combiner_op(n->stmt->combine), t, arg);
}

static void point(struct nest *n, bool accumulator) {
    struct cgen *g = n->g;
    const struct stmt *s = n->stmt;
    enum type t = n->program->buffer[s->dst.buffer].type;
    for (int i = 0; i < s->nops && !g->failed; i++)
        c_line(g, "const %s t%d = %s;", flight_name(s->op[i].type), i, op_text(n, &s->op[i]));
    const char *value = arena_printf(&g->arena, "t%d", s->nops - 1);
    if (accumulator) {
        c_line(g, "acc = %s;", combined(n, "acc", value));
        return;
    }
    const char *dst = element(n, &s->dst);
    c_line(g, "%s = %s;", dst, store(g, t, combined(n, load(g, t, dst), value)));
}

static void guarded(struct nest *n, bool accumulator) {
    int open = 0;
    for (int w = 0; w < n->stmt->nwhere; w++) {
        int64_t lo, hi;
        index_range(n, n->stmt->where[w].coef, &lo, &hi);
        if (lo >= 0 || fallback_shortens(&n->stmt->where[w], n->order, n->naxes) >= n->ndealt)
            continue;
        c_line(n->g, "if (%s >= 0) {", affine(n, n->stmt->where[w].coef));
        n->g->indent++;
        open++;
    }
    point(n, accumulator);
    for (; open; open--) {
        n->g->indent--;
        c_line(n->g, "}");
    }
}

/* Constraints that the axis decides end its loop, or begin it. */
static void shorten(struct nest *n, int k) {
    int a = n->order[k], naxes = n->program->naxes;
    int64_t row[MAX_AXES + 1];
    for (int w = 0; w < n->stmt->nwhere; w++) {
        const struct constraint *c = &n->stmt->where[w];
        if (fallback_shortens(c, n->order, n->naxes) != k) continue;
        bool begins = c->coef[a] > 0;
        for (int x = 0; x <= naxes; x++) row[x] = begins ? -c->coef[x] : c->coef[x];
        row[a] = 0;
        row[naxes] += !begins;
        const char *bound = affine(n, row), **end = begins ? &n->lo[a] : &n->hi[a];
        *end = arena_printf(&n->g->arena, "(%s %c %s ? %s : %s)", *end, begins ? '>' : '<', bound,
                            *end, bound);
    }
}

static void open_loop(struct nest *n, int k) {
    int a = n->order[k];
    shorten(n, k);
    n->axis[a] = arena_printf(&n->g->arena, "x%d", a);
    c_line(n->g, "for (int64_t x%d = %s; x%d < %s; x%d++) {", a, n->lo[a], a, n->hi[a], a);
    n->g->indent++;
}

static void close_block(struct nest *n) {
    n->g->indent--;
    c_line(n->g, "}");
}

static void nest_text(struct nest *n, int k) {
    bool last = k == n->naxes - 1,
         accumulator =
             last && fallback_hoists(n->program, n->stmt, n->naxes ? n->order[n->naxes - 1] : -1);
    if (k == n->naxes) {
        guarded(n, false);
        return;
    }
    const char *dst = NULL;
    if (accumulator) {
        n->axis[n->order[k]] = "0"; /* the destination does not depend on it */
        dst = element(n, &n->stmt->dst);
        c_line(n->g, "%s acc = %s;", flight_name(n->program->buffer[n->stmt->dst.buffer].type),
               dst);
    }
    if (accumulator && n->g->dialect->sums) c_line(n->g, "%s", n->g->dialect->sums);
    open_loop(n, k);
    if (accumulator)
        guarded(n, true);
    else
        nest_text(n, k + 1);
    close_block(n);
    if (accumulator) c_line(n->g, "%s = acc;", dst);
}

static void axis_bounds(struct nest *n, const struct fallback_node *node, int a) {
    const struct axis *x = &n->program->axis[a];
    bool has_lo = node->lo && node->lo[a], has_hi = node->hi && node->hi[a];
    int64_t known;
    n->low[a] = 0;
    n->high[a] = x->extent > 0 ? x->extent - 1 : 0;
    if (has_lo && c_known(n->g, node->lo[a], &known)) n->low[a] = known;
    if (has_hi && c_known(n->g, node->hi[a], &known)) n->high[a] = known - 1;
    n->lo[a] = n->axis[a] = has_lo ? c_sx(n->g, node->lo[a]) : "0";
    n->hi[a] = has_hi ? c_sx(n->g, node->hi[a]) : c_integer(n->g, x->extent);
}

/* ---- dealing ---- */

/* So many points, and steps over as many again, have numbers of 32 bits, which a device divides
 * several times as fast as those of 64. */
static bool few_points(const struct nest *n) {
    int64_t points = 1;
    for (int k = 0; k < n->ndealt; k++) {
        int64_t length = n->high[n->order[k]] - n->low[n->order[k]] + 1;
        if (length > 0 && __builtin_mul_overflow(points, length, &points)) return false;
    }
    return points <= INT32_MAX;
}

/* One loop over the points of all dealt axes, the last of them the fastest. */
static void open_dealt(struct nest *n) {
    struct cgen *g = n->g;
    const char *points = "1", *rest = "x", *type = few_points(n) ? "uint32_t" : "int64_t";
    for (int k = 0; k < n->ndealt; k++) {
        int a = n->order[k];
        c_line(g, "const %s n%d = (%s)isamap_max(0, %s - %s);", type, a, type, n->hi[a], n->lo[a]);
        points = arena_printf(&g->arena, "%s * n%d", points, a);
    }
    c_line(g, "for (%s x = (%s)(%s); x < %s; x += (%s)(%s)) {", type, type, g->mine, points, type,
           g->among);
    g->indent++;
    for (int k = n->ndealt - 1; k >= 0; k--) {
        int a = n->order[k];
        c_line(g, "const int64_t x%d = %s + (int64_t)(%s %% n%d);", a, n->lo[a], rest, a);
        rest = arena_printf(&g->arena, "%s / n%d", rest, a);
        n->axis[a] = arena_printf(&g->arena, "x%d", a);
    }
}

static void dealt_text(struct nest *n) {
    if (n->g->meet) c_line(n->g, "%s", n->g->meet);
    n->ndealt = stmt_deal(n->g->schedule, n->stmt, n->order, n->naxes);
    open_dealt(n);
    nest_text(n, n->ndealt);
    close_block(n);
    if (n->g->meet) c_line(n->g, "%s", n->g->meet);
}

static struct nest *nest_of(struct cgen *g, const struct fallback_node *node) {
    const struct program *p = g->schedule->program;
    struct nest *n = arena_alloc(&g->arena, sizeof *n);
    n->g = g;
    n->program = p;
    n->stmt = &p->stmt[node->stmt];
    for (int a = 0; a < p->naxes; a++) {
        axis_bounds(n, node, a);
        if (n->stmt->axes >> a & 1) n->order[n->naxes++] = a;
    }
    return n;
}

void c_fallback(struct cgen *g, const struct fallback_node *node) {
    struct nest *n = nest_of(g, node);
    c_line(g, "{");
    g->indent++;
    if (g->mine)
        dealt_text(n);
    else
        nest_text(n, 0);
    close_block(n);
}
