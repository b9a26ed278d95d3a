/* Random programs, as text. Every choice is drawn from a tape: the tape of a failing program is
 * made smaller until nothing smaller fails (choice 0 is always the simplest), so a generator that
 * draws its choices in order is shrunk for free. */
#ifndef ISAMAP_TESTS_RANDOM_PROGRAM_H
#define ISAMAP_TESTS_RANDOM_PROGRAM_H

#include "ir/diag.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* ---- the tape ---- */
enum { TAPE = 256 };

struct tape {
    int at[TAPE], n,
        pos; /* the first n choices are replayed, the rest is random or, without s, 0 */
    uint64_t s;
};

static int pick(struct tape *t, int n) {
    int x = 0;
    if (t->pos >= 0 && t->pos < t->n) {
        x = t->at[t->pos] % n;
    } else if (t->s) {
        t->s = t->s * 6364136223846793005u + 1442695040888963407u;
        x = (int)((t->s >> 33) % (uint64_t)n);
    }
    if (t->pos < TAPE) t->at[t->pos++] = x;
    return x;
}

/* One time in n; the simplest choice is no. */
static bool rarely(struct tape *t, int n) {
    return pick(t, n) == n - 1;
}

/* ---- the program ---- */
enum { PROGRAM_AXES = 8, PROGRAM_BUFFERS = 24, PROGRAM_POINTS = 12000 };

struct dims { /* axes of the program, in the order of a buffer's dimensions */
    int axis[PROGRAM_AXES], n;
};

struct declared {
    char name[8], type[8], shape[96];
    const char *role;
};

struct maker {
    struct tape *tape;
    struct text body;
    struct declared buffer[PROGRAM_BUFFERS];
    int nbuffers;
    int extent[PROGRAM_AXES], naxes, points;
    int current;          /* buffer made last */
    struct dims shape;    /* its axes */
    bool is_float, exact; /* exact: no rounding so far, casts to integers are safe */
};

static int new_axis(struct maker *g) {
    static const int size[] = {1,  2,  3,  4,  5,  7,  8,  9,  12, 15, 16,
                               17, 20, 24, 31, 32, 33, 37, 48, 49, 64, 65};
    int e = size[pick(g->tape, (int)(sizeof size / sizeof *size))];
    if (e > g->points) e = g->points;
    g->points /= e;
    g->extent[g->naxes] = e;
    return g->naxes++;
}

static int declare(struct maker *g, const char *role, const char *type, const char *shape) {
    struct declared *b = &g->buffer[g->nbuffers];
    snprintf(b->name, sizeof b->name, "%c", 'A' + g->nbuffers);
    snprintf(b->type, sizeof b->type, "%s", type);
    snprintf(b->shape, sizeof b->shape, "%s", shape);
    b->role = role;
    return g->nbuffers++;
}

static const char *name_of(const struct maker *g, int buffer) {
    return g->buffer[buffer].name;
}

static char axis_name(int axis) {
    return (char)('a' + axis);
}

static void add_dim(struct dims *d, int axis) {
    d->axis[d->n++] = axis;
}

static bool has_dim(const struct dims *d, int axis) {
    for (int k = 0; k < d->n; k++)
        if (d->axis[k] == axis) return true;
    return false;
}

static void shuffle(struct tape *t, struct dims *d) {
    for (int k = 0; k + 1 < d->n; k++) {
        int other = k + pick(t, d->n - k), x = d->axis[k];
        d->axis[k] = d->axis[other];
        d->axis[other] = x;
    }
}

static void join(char *out, size_t room, const char *what) {
    size_t n = strlen(out);
    snprintf(out + n, room - n, "%s%s", n ? ", " : "", what);
}

static void shape_text(const struct maker *g, const struct dims *d, char *out, size_t room) {
    char one[16];
    *out = 0;
    for (int k = 0; k < d->n; k++) {
        snprintf(one, sizeof one, "%d", g->extent[d->axis[k]]);
        join(out, room, one);
    }
}

static void index_text(const struct dims *d, char *out, size_t room) {
    *out = 0;
    for (int k = 0; k < d->n; k++) join(out, room, (char[]){axis_name(d->axis[k]), 0});
}

static int declare_dims(struct maker *g, const char *role, const char *type, const struct dims *d) {
    char shape[96];
    shape_text(g, d, shape, sizeof shape);
    return declare(g, role, type, shape);
}

static const char *input_role(struct maker *g) {
    return rarely(g->tape, 3) ? "const" : "in";
}

static const char *temp_role(struct maker *g) {
    return rarely(g->tape, 8) ? "out" : "temp";
}

/* ---- a contraction ---- */
struct window { /* the result's axis moves, the reduction's slides: stride*x + dilation*r - pad */
    int moving, sliding, stride, dilation, pad;
};

static int window_extent(const struct maker *g, const struct window *w) {
    int e = (g->extent[w->moving] - 1) * w->stride + (g->extent[w->sliding] - 1) * w->dilation + 1 -
            2 * w->pad;
    return e < 1 ? 1 : e;
}

/* An operand with windows: a moving axis and a sliding one share a dimension. */
static int windowed_operand(struct maker *g, const char *type, const struct dims *d,
                            const struct window *w, int nwindows, char *index, size_t room) {
    char shape[96] = "", one[48];
    bool padded = false;
    *index = 0;
    for (int k = 0; k < d->n; k++) {
        const struct window *mine = NULL;
        bool slides = false;
        for (int i = 0; i < nwindows; i++) {
            if (w[i].moving == d->axis[k]) mine = &w[i];
            slides |= w[i].sliding == d->axis[k];
        }
        if (slides) continue;
        snprintf(one, sizeof one, "%d", mine ? window_extent(g, mine) : g->extent[d->axis[k]]);
        join(shape, sizeof shape, one);
        if (mine)
            snprintf(one, sizeof one, "%d*%c+%d*%c-%d", mine->stride, axis_name(mine->moving),
                     mine->dilation, axis_name(mine->sliding), mine->pad);
        else
            snprintf(one, sizeof one, "%c", axis_name(d->axis[k]));
        join(index, room, one);
        padded |= mine && mine->pad;
    }
    if (padded) {
        size_t n = strlen(index);
        snprintf(index + n, room - n, " else 0");
    }
    return declare(g, input_role(g), type, shape);
}

struct scheme { /* types of a product's factors and of its sum */
    const char *a, *b, *sum;
};

struct schemes { /* what the machine's instructions take */
    struct scheme at[16];
    int n;
};

static struct scheme pick_scheme(struct maker *g, const struct schemes *native) {
    static const struct scheme any[] = {{"f32", "f32", "f32"}, {"i8", "i8", "i32"},
                                        {"u8", "i8", "i32"},   {"bf16", "bf16", "f32"},
                                        {"f16", "f16", "f32"}, {"i16", "i16", "i32"},
                                        {"i32", "i32", "i32"}, {"f64", "f64", "f64"}};
    bool foreign = rarely(g->tape, 4) || native->n == 0;
    struct scheme s = foreign ? any[pick(g->tape, (int)(sizeof any / sizeof *any))]
                              : native->at[pick(g->tape, native->n)];
    g->is_float = s.sum[0] != 'i' && s.sum[0] != 'u';
    return s;
}

static int pick_windows(struct maker *g, struct dims *a, const struct dims *reduced,
                        struct window *w) {
    int n = 0;
    for (int k = 0; k < reduced->n; k++) {
        int r = reduced->axis[k], m = -1;
        if (!has_dim(a, r) || pick(g->tape, 2) == 0) continue;
        for (int i = 0; i < a->n && m < 0; i++) {
            bool used = has_dim(reduced, a->axis[i]);
            for (int j = 0; j < n; j++) used |= w[j].moving == a->axis[i];
            if (!used) m = a->axis[i];
        }
        if (m < 0 || g->extent[r] > 9) continue;
        w[n] = (struct window){m, r, 1 + pick(g->tape, 3), 1 + pick(g->tape, 2), pick(g->tape, 2)};
        bool room = window_extent(g, &w[n]) + 2 * w[n].pad >
                    (g->extent[m] - 1) * w[n].stride + (g->extent[r] - 1) * w[n].dilation;
        if (!room) w[n].pad = 0;
        n++;
    }
    return n;
}

static void start_sum(struct maker *g, const char *type, const char *index) {
    char bias_index[8];
    int how = pick(g->tape, 8), result = g->current;
    if (how < 6 || g->shape.n == 0) {
        text_printf(&g->body, "  %s[%s] = 0\n", name_of(g, result), index);
    } else if (how == 6) {
        struct dims one = {.n = 1, .axis = {g->shape.axis[pick(g->tape, g->shape.n)]}};
        index_text(&one, bias_index, sizeof bias_index);
        int bias = declare_dims(g, input_role(g), type, &one);
        text_printf(&g->body, "  %s[%s] = %s[%s]\n", name_of(g, result), index, name_of(g, bias),
                    bias_index);
    } else {
        g->buffer[result].role = "inout";
    }
}

static void contraction(struct maker *g, const struct scheme *type) {
    struct dims result = {0}, reduced = {0}, a = {0}, b = {0};
    struct window w[PROGRAM_AXES];
    char ia[96], ib[96], io[32];
    int nresult = 1 + pick(g->tape, 3), nreduced = pick(g->tape, 3);
    for (int k = 0; k < nresult; k++) {
        int x = new_axis(g), where = pick(g->tape, 4);
        add_dim(&result, x);
        if (where == 3 || (where < 2) == (k % 2 == 0)) add_dim(&a, x);
        if (where == 3 || (where < 2) != (k % 2 == 0)) add_dim(&b, x);
    }
    for (int k = 0; k < nreduced; k++) {
        int x = new_axis(g);
        add_dim(&reduced, x);
        add_dim(&a, x);
        if (!rarely(g->tape, 8)) add_dim(&b, x);
    }
    shuffle(g->tape, &a);
    shuffle(g->tape, &b);
    shuffle(g->tape, &result);
    int nwindows = pick_windows(g, &a, &reduced, w);
    int A = windowed_operand(g, type->a, &a, w, nwindows, ia, sizeof ia);
    int B = declare_dims(g, input_role(g), type->b, &b);
    index_text(&b, ib, sizeof ib);
    index_text(&result, io, sizeof io);
    bool same = strcmp(type->a, type->sum) == 0;
    char left[112], right[112];
    snprintf(left, sizeof left, same ? "%s%s[%s]" : "%s(%s[%s])", same ? "" : type->sum,
             name_of(g, A), ia);
    snprintf(right, sizeof right, same ? "%s%s[%s]" : "%s(%s[%s])", same ? "" : type->sum,
             name_of(g, B), ib);
    g->shape = result;
    g->current = declare_dims(g, temp_role(g), type->sum, &result);
    bool pools = nreduced > 0 && rarely(g->tape, 6);
    if (nreduced == 0) {
        text_printf(&g->body, "  %s[%s] = %s %c %s\n", name_of(g, g->current), io, left,
                    "*+-"[pick(g->tape, 3)], right);
    } else if (pools && rarely(g->tape, 2)) {
        text_printf(&g->body, "  %s[%s] = -9\n  %s[%s] max= %s\n", name_of(g, g->current), io,
                    name_of(g, g->current), io, left);
    } else {
        start_sum(g, type->sum, io);
        text_printf(&g->body, "  %s[%s] += %s", name_of(g, g->current), io, left);
        if (!pools) text_printf(&g->body, " * %s", right);
        if (rarely(g->tape, 12))
            text_printf(&g->body, " where %c <= %c", axis_name(reduced.axis[0]),
                        axis_name(result.axis[0]));
        text_printf(&g->body, "\n");
    }
}

/* ---- what follows ---- */
static void made(struct maker *g, const char *type, const char *format, const char *operand) {
    char index[32];
    int from = g->current;
    index_text(&g->shape, index, sizeof index);
    g->current = declare_dims(g, temp_role(g), type, &g->shape);
    text_printf(&g->body, "  %s[%s] = ", name_of(g, g->current), index);
    for (const char *s = format; *s; s++) {
        if (*s == 'T')
            text_printf(&g->body, "%s[%s]", name_of(g, from), index);
        else if (*s == 'D')
            text_printf(&g->body, "%s", operand);
        else
            text_append(&g->body, s, 1);
    }
    text_append(&g->body, "\n", 1);
}

static void with_operand(struct maker *g, const char *format) {
    char index[32], operand[48];
    struct dims some = {0};
    const char *type = g->buffer[g->current].type;
    int keep = pick(g->tape, 3); /* all axes, one of them, or about half of them */
    int one = g->shape.n ? pick(g->tape, g->shape.n) : 0;
    for (int k = 0; k < g->shape.n; k++)
        if (keep == 0 || (keep == 1 ? k == one : pick(g->tape, 2) == 0))
            add_dim(&some, g->shape.axis[k]);
    if (rarely(g->tape, 4)) shuffle(g->tape, &some);
    int d = declare_dims(g, input_role(g), type, &some);
    index_text(&some, index, sizeof index);
    snprintf(operand, sizeof operand, "%s[%s]", name_of(g, d), index);
    made(g, type, format, operand);
}

static void elementwise(struct maker *g) {
    char type[8];
    snprintf(type, sizeof type, "%s", g->buffer[g->current].type);
    bool wide = strcmp(type, "i32") == 0;
    switch (pick(g->tape, 7)) {
    case 0:
        made(g, type, "max(T, 0)", "");
        break;
    case 1:
        with_operand(g, "T + D");
        break;
    case 2:
        with_operand(g, g->is_float ? "max(T * D, 0)" : "max(T + D, 0)");
        break;
    case 3:
        if (wide)
            made(g, "i8", "i8(clip(round(f64(T) * 0.0078125), -128, 127))", "");
        else if (g->is_float)
            made(g, type, "T * 0.125", "");
        break;
    case 4:
        if (g->is_float)
            g->exact = false, made(g, type, "exp(T * 0.015625)", "");
        else if (wide)
            made(g, "u8", "u8(clip(shr(T, 6), 0, 255))", "");
        break;
    case 5:
        if (g->is_float)
            g->exact = false, made(g, type, "T * sigmoid(T)", "");
        else if (wide)
            made(g, "i32", "clip(T, -100, 1000)", "");
        break;
    case 6:
        if (!g->is_float)
            made(g, "f32", "f32(T)", "");
        else if (rarely(g->tape, 2)) /* rounds */
            made(g, "f16", "f16(T)", "");
        else
            made(g, "bf16", "bf16(T)", "");
        g->is_float = true;
        break;
    }
}

/* Over one axis of what is there. */
static void reduction(struct maker *g, int kind) {
    char in[32], out[32];
    if (g->shape.n == 0) return;
    const char *type = g->is_float ? "f32" : "i32";
    struct dims rest = {0};
    int gone = pick(g->tape, g->shape.n), from = g->current;
    for (int k = 0; k < g->shape.n; k++)
        if (k != gone) add_dim(&rest, g->shape.axis[k]);
    index_text(&g->shape, in, sizeof in);
    index_text(&rest, out, sizeof out);
    int to = declare_dims(g, temp_role(g), type, &rest);
    bool sum = kind == 0;
    text_printf(&g->body, "  %s[%s] = %s\n  %s[%s] %s %s(%s[%s])\n", name_of(g, to), out,
                sum ? "0" : "-30000", name_of(g, to), out, sum ? "+=" : "max=", type,
                name_of(g, from), in);
    if (rarely(g->tape,
               2)) { /* and the whole is normalised by it: a softmax's first or last half */
        char operand[48];
        snprintf(operand, sizeof operand, "%s(%s[%s])", type, name_of(g, to), out);
        made(g, type,
             g->is_float ? (sum ? "f32(T) / (abs(D) + 1.0)" : "exp((f32(T) - D) * 0.03125)")
                         : "i32(T) - D",
             operand);
        if (g->is_float) g->exact = false;
        return;
    }
    g->shape = rest;
    g->current = to;
}

/* A second product that reduces over an axis of the first's result. */
static void consumer(struct maker *g) {
    char it[32], iv[32], io[32];
    if (g->shape.n == 0 || g->naxes == PROGRAM_AXES) return;
    g->points = PROGRAM_POINTS;
    struct dims result = {0}, v = {0};
    int gone = pick(g->tape, g->shape.n), from = g->current;
    for (int k = 0; k < g->shape.n; k++) g->points /= g->extent[g->shape.axis[k]];
    if (g->points < 1) g->points = 1;
    int fresh = new_axis(g);
    for (int k = 0; k < g->shape.n; k++)
        if (k != gone) add_dim(&result, g->shape.axis[k]);
    add_dim(&result, fresh);
    add_dim(&v, g->shape.axis[gone]);
    add_dim(&v, fresh);
    shuffle(g->tape, &v);
    index_text(&g->shape, it, sizeof it);
    index_text(&v, iv, sizeof iv);
    index_text(&result, io, sizeof io);
    const char *type = g->buffer[from].type, *sum = g->is_float ? "f32" : "i32";
    int V = declare_dims(g, input_role(g), type, &v);
    g->shape = result;
    g->current = declare_dims(g, temp_role(g), sum, &result);
    start_sum(g, sum, io);
    text_printf(&g->body, "  %s[%s] += %s(%s[%s]) * %s(%s[%s])\n", name_of(g, g->current), io, sum,
                name_of(g, from), it, sum, name_of(g, V), iv);
}

/* Text of the program, from the heap. Small where the tape has run out. */
static char *random_program(struct tape *tape, const struct schemes *native, bool *exact) {
    struct maker g = {.tape = tape, .points = PROGRAM_POINTS, .exact = true};
    struct scheme type = pick_scheme(&g, native);
    contraction(&g, &type);
    for (int n = pick(tape, 4); n > 0; n--) elementwise(&g);
    int tail = pick(tape, 6);
    if (tail == 3) reduction(&g, 0);
    if (tail == 4) reduction(&g, 1);
    if (tail == 5) consumer(&g);
    if (tail > 2)
        for (int n = pick(tape, 3); n > 0; n--) elementwise(&g);
    if (strcmp(g.buffer[g.current].role, "temp") == 0) g.buffer[g.current].role = "out";
    struct text t = {0};
    text_printf(&t, "kernel random() {\n");
    for (int b = 0; b < g.nbuffers; b++)
        text_printf(&t, "  %s %s: %s[%s]\n", g.buffer[b].role, g.buffer[b].name, g.buffer[b].type,
                    g.buffer[b].shape);
    text_printf(&t, "  axes ");
    for (int a = 0; a < g.naxes; a++)
        text_printf(&t, "%s%c: %d", a ? ", " : "", axis_name(a), g.extent[a]);
    text_printf(&t, "\n%s}\n", g.body.at ? g.body.at : "");
    text_free(&g.body);
    *exact = g.exact;
    return t.at;
}

#endif
