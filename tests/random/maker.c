#include "tests/random/maker.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const class_name[CLASS_COUNT] = {
#define X(id, name) name,
    CLASS_TABLE(X)
#undef X
};

bool odd(struct maker *g, int n) {
    if (g->spice == 0) return false;
    return rarely(g->tape, g->spice == 3 ? (n + 1) / 2 + 1 : g->spice == 2 ? n + 1 : 3 * n);
}

int pick_of(struct maker *g, int n) {
    return n > 1 ? pick(g->tape, n) : 0;
}

/* ---- variables ---- */
int make_variable(struct maker *g, enum role role, enum type type, const int *extent, int ndims) {
    struct variable *v = &g->var[g->nvars];
    snprintf(v->name, sizeof v->name, "B%d", g->nvars + 1);
    v->type = type;
    v->role = role;
    v->ndims = ndims;
    v->scope = role == ROLE_TEMP || role == ROLE_STATE ? g->scope : 0;
    for (int d = 0; d < ndims; d++) {
        v->extent[d] = extent[d];
        v->grid[d] = (struct grid){0, 1, extent[d]};
        if (extent[d] == 1) is_a(g, CLASS_EXTENT_1);
    }
    if (ndims == 0) is_a(g, CLASS_SCALAR);
    v->number = number_of_data(g, type);
    g->info.types |= 1u << type;
    return g->nvars++;
}

struct number number_of_data(const struct maker *g, enum type type) {
    struct number n = {.most = 8, .grain = 0, .exact = true};
    if (type == TYPE_F16 || type == TYPE_BF16) n.most = 3;
    if (type == TYPE_BOOL) n.most = 1;
    if (!type_is_float(type) && type != TYPE_BOOL)
        n.most = type_size(type) == 1 || g->wide ? type_most(type) : 999;
    return n;
}

static uint64_t next(uint64_t *s) { /* splitmix64 (Steele, Lea, Flood 2014) */
    uint64_t z = *s += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

union value random_element(enum type type, bool wide, uint64_t *s) {
    uint64_t r = next(s);
    union value v;
    if (type == TYPE_F16 || type == TYPE_BF16) {
        v.f = (double)(r % 7) - 3;
    } else if (type_is_float(type)) {
        v.f = (double)(r % 17) - 8;
    } else if (type == TYPE_BOOL) {
        v.i = (int64_t)(r & 1);
    } else if (type_size(type) == 1 || wide) {
        v.i = type_wrap(type, r);
    } else {
        v.i = type_is_signed(type) ? (int64_t)(r % 1999) - 999 : (int64_t)(r % 1000);
    }
    return v;
}

enum role input_role(struct maker *g) {
    return rarely(g->tape, 3) ? ROLE_CONST : ROLE_IN;
}

bool maker_full(const struct maker *g) {
    return g->nvars > MAKER_BUFFERS - 24 || g->naxes > MAKER_AXES - 14 ||
           g->nlines > MAKER_LINES - 40;
}

/* ---- axes ---- */
int extent_of(const struct maker *g, int axis) {
    return g->extent[axis];
}

int random_extent(struct maker *g, int64_t most) {
    static const int size[] = {1,  2,  3,  4,  5,  7,  8,  9,  12, 15, 16,
                               17, 20, 24, 31, 32, 33, 37, 48, 49, 64, 65};
    static const int large[] = {1, 3, 16, 64, 100, 128, 130, 200, 256, 300, 512, 700};
    bool big = g->info.classes >> CLASS_BIG & 1;
    int e = big ? large[pick(g->tape, (int)(sizeof large / sizeof *large))]
                : size[pick(g->tape, (int)(sizeof size / sizeof *size))];
    return e > most ? most < 1 ? 1 : (int)most : e;
}

int new_axis(struct maker *g, const struct list *used, int extent) {
    if (extent == 1) is_a(g, CLASS_EXTENT_1);
    bool fresh = g->naxes < MAKER_AXES - 20 && odd(g, 4);
    for (int a = 0; a < g->naxes && !fresh; a++)
        if (g->extent[a] == extent && !list_has(used, a)) return a;
    if (g->naxes == MAKER_AXES) abort();
    if (odd(g, 24)) {
        g->seq |= (uint64_t)1 << g->naxes;
        is_a(g, CLASS_SEQ);
    }
    g->extent[g->naxes] = extent;
    return g->naxes++;
}

void list_add(struct list *l, int axis) {
    if (l->n < (int)(sizeof l->at / sizeof *l->at) && !list_has(l, axis)) l->at[l->n++] = axis;
}

bool list_has(const struct list *l, int axis) {
    for (int k = 0; k < l->n; k++)
        if (l->at[k] == axis) return true;
    return false;
}

int64_t list_points(const struct maker *g, const struct list *l) {
    int64_t n = 1;
    for (int k = 0; k < l->n; k++) n *= g->extent[l->at[k]];
    return n;
}

void list_shuffle(struct maker *g, struct list *l) {
    for (int k = 0; k + 1 < l->n; k++) {
        int other = k + pick(g->tape, l->n - k), x = l->at[k];
        l->at[k] = l->at[other];
        l->at[other] = x;
    }
}

/* ---- text ---- */
void make_line(struct maker *g, const char *format, ...) {
    struct text t = {0};
    char room[16384];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(room, sizeof room, format, args);
    va_end(args);
    if (n >= (int)sizeof room || g->nlines == MAKER_LINES) abort();
    text_append(&t, room, (size_t)n);
    g->line[g->nlines++] = arena_strdup(&g->arena, t.at);
    text_free(&t);
}

const char *make_literal(struct maker *g, enum type type, double value) {
    if (!type_is_float(type)) return arena_printf(&g->arena, "%.0f", value);
    if (isinf(value)) return value < 0 ? "-inf" : "inf";
    return arena_printf(&g->arena, "%.17g", value);
}

static bool line_names(const char *line, const char *name) {
    size_t n = strlen(name);
    for (const char *at = line; (at = strstr(at, name)); at += n)
        if ((at == line || !isalnum((unsigned char)at[-1])) && !isalnum((unsigned char)at[n]))
            return true;
    return false;
}

/* Extents that are the parameter's value are the parameter. */
static void print_extent(struct text *t, int extent, int param) {
    if (extent == param)
        text_printf(t, "N");
    else
        text_printf(t, "%d", extent);
}

static void print_variable(struct text *t, struct variable *v, int param) {
    text_printf(t, "  %s %s: %s[", role_name[v->role], v->name, type_name(v->type));
    for (int d = 0; d < v->ndims; d++) {
        text_printf(t, d ? ", " : "");
        if (v->open && d == 0)
            text_printf(t, "T");
        else
            print_extent(t, v->extent[d], param);
    }
    text_printf(t, "]\n");
    v->placed = true;
}

/* 0: as they were made; 1: outputs first; 2: in any order; 3: each before its first use. */
static void print_variables(struct maker *g, struct text *t, int order, int param) {
    int at[MAKER_BUFFERS];
    for (int v = 0; v < g->nvars; v++) at[v] = v;
    if (order == 1)
        for (int v = 0; v < g->nvars; v++)
            if (g->var[v].role == ROLE_OUT) print_variable(t, &g->var[v], param);
    for (int v = 0; v < g->nvars && order == 2; v++) {
        int other = v + pick(g->tape, g->nvars - v), x = at[v];
        at[v] = at[other];
        at[other] = x;
    }
    for (int v = 0; v < g->nvars && order != 3; v++) {
        struct variable *x = &g->var[at[v]];
        if (!x->placed && !x->scope && x->role != ROLE_STATE) print_variable(t, x, param);
    }
}

static int print_head(struct maker *g, struct text *t, int *order) {
    int param = -1;
    if (odd(g, 5) && g->naxes) {
        param = g->extent[pick(g->tape, g->naxes)];
        is_a(g, CLASS_PARAM);
    }
    *order = g->spice ? pick(g->tape, 4) : 0;
    if (*order) is_a(g, CLASS_OUT_FIRST);
    text_printf(t, "kernel random(");
    if (param > 0) text_printf(t, "N=%d%s", param, g->open ? ", " : "");
    if (g->open) text_printf(t, "T=0..%d", g->open);
    text_printf(t, ") {\n");
    print_variables(g, t, *order, param);
    bool unused = odd(g, 5);
    if (unused) is_a(g, CLASS_UNUSED_AXIS);
    if (unused) text_printf(t, "  axes nobody: %d\n", random_extent(g, 64));
    for (int a = 0; a < g->naxes; a++) {
        text_printf(t, a % 8 == 0 || g->seq ? "%s  %s a%d: " : ", a%.0s%.0s%d: ", a ? "\n" : "",
                    g->seq >> a & 1 ? "seq" : "axes", a);
        print_extent(t, g->extent[a], param);
    }
    if (g->naxes) text_printf(t, "\n");
    return param;
}

/* What line k, or the recurrence that it opens, is the first to use. */
static void print_used(struct maker *g, struct text *t, int k, int param) {
    bool opens = strncmp(g->line[k], "  recur", 7) == 0;
    for (int v = 0; v < g->nvars; v++) {
        struct variable *x = &g->var[v];
        bool used = line_names(g->line[k], x->name);
        for (int i = k + 1; opens && !used && !x->scope && strcmp(g->line[i], "  }") != 0; i++)
            used = line_names(g->line[i], x->name);
        if (!x->placed && used) print_variable(t, x, param);
    }
}

char *maker_print(struct maker *g) {
    struct text t = {0};
    int order, param = print_head(g, &t, &order);
    for (int k = 0; k < g->nlines; k++) {
        print_used(g, &t, k, param);
        text_printf(&t, "%s\n", g->line[k]);
    }
    text_printf(&t, "}\n");
    return t.at;
}
