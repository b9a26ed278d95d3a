/* RNN, GRU and LSTM: the input's product for all steps at once, before; in each step of a
 * recurrence the state's product, the gates, the next state. */
#include "onnx/onnx.h"

#ifdef ISAMAP_WITH_ONNX
#include "onnx/onnx_int.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { X, W, R, B, LENGTHS, H0, C0, P }; /* inputs; C0 and P: LSTM's */
enum { MOST_FUNCTIONS = 6, MOST_GATES = 4 };

struct cell {
    struct tensor *in[P + 1];
    int gates, functions; /* of one direction */
    int64_t t, n, i, h, directions;
    bool batch_first, reverse_first, cell_state;
    double clip;    /* 0: none */
    enum type type; /* of sums, gates and states: f32 where the tensors have 16 bits */
    const char *function[2 * MOST_FUNCTIONS];
    double alpha[2 * MOST_FUNCTIONS], beta[2 * MOST_FUNCTIONS];
    struct tensor *y, *last[2]; /* results: all steps, last states (h, c) */
    /* Weights of bytes, [direction, input, gate], with scales and zero points; of the input and of
     * the state. NULL: floats. */
    struct tensor *bytes[2], *scale[2], *zero[2];
};

/* One direction under way. */
struct way {
    int d;
    bool reverse;
    const char *batch, *unit, *other, *step; /* axes: n, i, j, and the recurrence's */
    struct tensor *sums;                     /* products of the input, [t, n, gates·h] */
    struct tensor *columns; /* with bytes: sums of the state's weights, [gates·h] */
    const char *h, *c;      /* names of the states */
};

/* ---- activations ---- */

/* Names with alpha and beta as ONNX presets them; $ is the operand, @ alpha, # beta. */
static const struct activation {
    const char *name, *text;
    double alpha, beta;
} activations[] = {
    {"Sigmoid", "sigmoid($)", 0, 0},
    {"Tanh", "tanh($)", 0, 0},
    {"Relu", "select($ < 0, 0, $)", 0, 0},
    {"Affine", "@ * $ + #", 1, 0},
    {"LeakyRelu", "select($ < 0, @ * $, $)", 0.01, 0},
    {"ThresholdedRelu", "select($ > @, $, 0)", 1, 0},
    {"ScaledTanh", "@ * tanh(# * $)", 1, 1},
    {"HardSigmoid", "select($ == $, clip(@ * $ + #, 0, 1), $)", 0.2, 0.5},
    {"Elu", "select($ < 0, @ * (exp($) - 1), $)", 1, 0},
    {"Softsign", "$ / (1 + abs($))", 0, 0},
    {"Softplus", "max($, 0) + log(1 + exp(-abs($)))", 0, 0},
};

static const struct activation *activation_find(const char *name) {
    for (size_t k = 0; k < sizeof activations / sizeof *activations; k++)
        if (strcmp(activations[k].name, name) == 0) return &activations[k];
    return NULL;
}

/* The k-th function of the direction, of the operand (a name or in brackets). */
static const char *activated(struct import *im, const struct cell *c, const struct way *w, int k,
                             const char *operand) {
    int at = w->d * c->functions + k;
    struct text t = {0};
    if (c->clip > 0) {
        const char *limit = text_number(im, TYPE_F64, c->clip);
        operand = arena_printf(im->arena, "select(%s == %s, clip(%s, -%s, %s), %s)", operand,
                               operand, operand, limit, limit, operand);
    }
    for (const char *p = activation_find(c->function[at])->text; *p; p++) {
        const char *s = *p == '$'   ? operand
                        : *p == '@' ? text_number(im, TYPE_F64, c->alpha[at])
                        : *p == '#' ? text_number(im, TYPE_F64, c->beta[at])
                                    : NULL;
        text_append(&t, s ? s : p, s ? strlen(s) : 1);
    }
    const char *s = arena_strdup(im->arena, t.at);
    text_free(&t);
    return s;
}

/* The functions that have the number (`mark` in their text) take them in order; the rest keep what
 * is preset. */
static bool activation_numbers(struct import *im, const char *name, const struct cell *c, int n,
                               char mark, double *out) {
    const Onnx__AttributeProto *a = attribute_find(im, name);
    size_t next = 0;
    if (!a) return true;
    if (a->n_floats > (size_t)n)
        return node_fail(im, "'%s' has %zu entries, expected at most %d", name, a->n_floats, n);
    for (int k = 0; k < n && next < a->n_floats; k++)
        if (strchr(activation_find(c->function[k])->text, mark)) out[k] = a->floats[next++];
    return true;
}

/* What is given for a second direction that is not there is left out: the specification presets two
 * for any RNN, and ONNX Runtime's optimisers write that into models. */
static bool activations_read(struct import *im, struct cell *c, const char *const *preset) {
    int n = c->functions * (int)c->directions;
    const Onnx__AttributeProto *a = attribute_find(im, "activations");
    if (a && a->n_strings != (size_t)n && a->n_strings != 2 * (size_t)c->functions)
        return node_fail(im, "'activations' has %zu entries, expected %d", a->n_strings, n);
    for (int k = 0; k < n; k++) {
        c->function[k] = preset[k % c->functions];
        if (a)
            c->function[k] =
                arena_strndup(im->arena, (char *)a->strings[k].data, a->strings[k].len);
        const struct activation *f = activation_find(c->function[k]);
        if (!f)
            return node_fail(im, "the activation '%s' is not supported",
                             name_shown(im->arena, c->function[k]));
        c->alpha[k] = f->alpha;
        c->beta[k] = f->beta;
    }
    return activation_numbers(im, "activation_alpha", c, n, '@', c->alpha) &&
           activation_numbers(im, "activation_beta", c, n, '#', c->beta);
}

/* ---- what the node says ---- */

static bool shaped(struct import *im, int k, const struct tensor *t, int ndims,
                   const int64_t *extent) {
    if (!t) return true;
    bool same = t->ndims == ndims;
    for (int d = 0; same && d < ndims; d++) same = t->extent[d] == extent[d];
    return same || node_fail(im, "input %d is %s, expected %s", k,
                             shape_text(im->arena, t->ndims, t->extent),
                             shape_text(im->arena, ndims, extent));
}

static bool cell_shapes(struct import *im, struct cell *c) {
    int64_t g = c->gates * c->h, d = c->directions;
    int64_t state[3] = {c->batch_first ? c->n : d, c->batch_first ? d : c->n, c->h};
    for (int k = 0; k <= P; k++)
        if (c->in[k] && k != LENGTHS && c->in[k]->type != c->in[X]->type)
            return node_fail(im, "input %d is %s, but input 0 %s", k, type_name(c->in[k]->type),
                             type_name(c->in[X]->type));
    if (c->in[LENGTHS] && c->in[LENGTHS]->type != TYPE_I32)
        return node_fail(im, "the lengths of sequences are not i32");
    return shaped(im, W, c->in[W], 3, (int64_t[]){d, g, c->i}) &&
           shaped(im, R, c->in[R], 3, (int64_t[]){d, g, c->h}) &&
           shaped(im, B, c->in[B], 2, (int64_t[]){d, 2 * g}) &&
           shaped(im, LENGTHS, c->in[LENGTHS], 1, &c->n) && shaped(im, H0, c->in[H0], 3, state) &&
           shaped(im, C0, c->in[C0], 3, state) &&
           shaped(im, P, c->in[P], 2, (int64_t[]){d, 3 * c->h});
}

static bool cell_read(struct import *im, struct cell *c, const char *const *preset) {
    const char *direction = "forward";
    int64_t layout = 0, hidden = 0;
    for (int k = 0; k <= P && k < (int)im->node->n_input; k++)
        if (!c->in[k]) c->in[k] = node_input(im, k);
    if (!attribute_string(im, "direction", &direction) ||
        !attribute_int(im, "hidden_size", &hidden) || !attribute_int(im, "layout", &layout) ||
        !attribute_float(im, "clip", &c->clip))
        return false;
    bool both = strcmp(direction, "bidirectional") == 0;
    c->reverse_first = strcmp(direction, "reverse") == 0;
    if (!both && !c->reverse_first && strcmp(direction, "forward") != 0)
        return node_fail(im, "'direction' is '%s', expected forward, reverse or bidirectional",
                         name_shown(im->arena, direction));
    if (c->in[X]->ndims != 3 || c->in[R]->ndims != 3 || !type_is_float(c->in[X]->type))
        return node_fail(im, "the input is not [steps, batch, inputs] of floats");
    c->type = sum_type(c->in[X]->type);
    c->batch_first = layout != 0;
    c->directions = both ? 2 : 1;
    c->t = c->in[X]->extent[c->batch_first];
    c->n = c->in[X]->extent[!c->batch_first];
    c->i = c->in[X]->extent[2];
    c->h = c->in[R]->extent[2];
    if (hidden && hidden != c->h)
        return node_fail(im, "'hidden_size' is %" PRId64 ", but the weights have %" PRId64, hidden,
                         c->h);
    return activations_read(im, c, preset) && cell_shapes(im, c);
}

static bool cell_results(struct import *im, struct cell *c) {
    int64_t all[2][4] = {{c->t, c->directions, c->n, c->h}, {c->n, c->t, c->directions, c->h}};
    int64_t end[2][3] = {{c->directions, c->n, c->h}, {c->n, c->directions, c->h}};
    enum type type = c->in[X]->type;
    if (node_wants(im, 0) && !(c->y = node_result_at(im, 0, type, 4, all[c->batch_first])))
        return false;
    for (int k = 0; k < 1 + c->cell_state; k++)
        if (node_wants(im, 1 + k) &&
            !(c->last[k] = node_result_at(im, 1 + k, type, 3, end[c->batch_first])))
            return false;
    return true;
}

/* ---- statements ---- */

static const char *number(struct import *im, int64_t v) {
    return arena_printf(im->arena, "%" PRId64, v);
}

/* An element of a tensor whose index is text by text. */
#define ELEMENT(im, t, ...) tensor_element(im, t, (const char *[]){__VA_ARGS__})
#define INPUT(im, c, k, ...) sum_widen(im, (c)->in[k]->type, ELEMENT(im, (c)->in[k], __VA_ARGS__))

/* The weight that a byte stands for, in steps of its scale. */
static const char *byte_weight(struct import *im, const struct cell *c, int which, const char *d,
                               const char *from, const char *gate) {
    const char *e = ELEMENT(im, c->bytes[which], d, from, gate);
    struct tensor *z = c->zero[which];
    bool none = z && z->data;
    for (int64_t i = 0; none && i < z->elements; i++) none = tensor_int(z, i) == 0;
    return !z || none ? arena_printf(im->arena, "i32(%s)", e)
                      : arena_printf(im->arena, "(i32(%s) - i32(%s))", e, ELEMENT(im, z, d, gate));
}

/* Σ of the weights of each gate, which a zero point is multiplied by; once where they are constant.
 */
static struct tensor *byte_columns(struct import *im, struct cell *c, struct way *w, int which) {
    int64_t g = c->gates * c->h;
    struct tensor *t = tensor_temporary(im, "columns", which ? "state" : "input", TYPE_I32, 1, &g);
    if (!t) return NULL;
    axes_release(im);
    const char *k = axis_for(im, "g", g), *j = axis_for(im, "j", which ? c->h : c->i);
    im->ahead = c->bytes[which]->data && (!c->zero[which] || c->zero[which]->data);
    emit_statement(im, "%s = 0", tensor_element(im, t, &k));
    emit_statement(im, "%s += %s", tensor_element(im, t, &k),
                   byte_weight(im, c, which, number(im, w->d), j, k));
    im->ahead = false;
    return t;
}

/* The input of all steps becomes bytes, as DynamicQuantizeLinear makes them; their products are
 * added to sums[t,n,g]. */
static bool byte_input(struct import *im, struct cell *c, struct way *w) {
    struct tensor *x = c->in[X], *q = tensor_temporary(im, "bytes", "in", TYPE_U8, 3, x->extent),
                  *scale = q ? tensor_temporary(im, "bytes", "scale", TYPE_F32, 0, NULL) : NULL,
                  *zero = scale ? tensor_temporary(im, "bytes", "zero", TYPE_U8, 0, NULL) : NULL,
                  *acc = zero ? tensor_temporary(im, "bytes", "acc", TYPE_I32, 3, w->sums->extent)
                              : NULL,
                  *columns = acc ? byte_columns(im, c, w, 0) : NULL;
    axes_release(im);
    if (!columns || !dynamic_quantise(im, x, q, scale, zero)) return false;
    axes_release(im);
    const char *d = number(im, w->d), *t = axis_for(im, "t", c->t), *n = axis_for(im, "n", c->n),
               *i = axis_for(im, "i", c->i), *k = axis_for(im, "g", c->gates * c->h);
    const char *a = ELEMENT(im, acc, t, n, k), *to = ELEMENT(im, w->sums, t, n, k);
    emit_statement(im, "%s = 0", a);
    emit_statement(im, "%s += i32(%s) * %s", a,
                   c->batch_first ? ELEMENT(im, q, n, t, i) : ELEMENT(im, q, t, n, i),
                   byte_weight(im, c, 0, d, i, k));
    emit_statement(im, "%s = %s + f32(%s - i32(%s) * %s) * (%s * %s)", to, to, a,
                   tensor_element(im, zero, NULL), tensor_element(im, columns, &k),
                   tensor_element(im, scale, NULL), ELEMENT(im, c->scale[0], d, k));
    return true;
}

/* sums[t,n,g] = bias + Σ x[t,n,i]·w[g,i]; the bias of the state's product is added too, but for the
 * rows from `apart` on, where a gate takes that product alone. */
static bool input_sums(struct import *im, struct cell *c, struct way *w, int64_t apart) {
    int64_t g = c->gates * c->h, extent[3] = {c->t, c->n, g};
    const char *d = number(im, w->d);
    w->sums = tensor_temporary(im, "gates", w->d ? "back" : "in", c->type, 3, extent);
    if (!w->sums) return false;
    axes_release(im);
    const char *t = axis_for(im, "t", c->t), *n = axis_for(im, "n", c->n),
               *i = axis_for(im, "i", c->i), *k = axis_for(im, "g", g);
    const char *to = ELEMENT(im, w->sums, t, n, k);
    if (c->in[B])
        emit_statement(im, "%s = %s", to, INPUT(im, c, B, d, k));
    else
        emit_statement(im, "%s = 0", to);
    if (c->in[B] && apart > 0) {
        axes_release(im);
        const char *few = axis_for(im, "g", apart);
        t = axis_for(im, "t", c->t), n = axis_for(im, "n", c->n);
        emit_statement(im, "%s = %s + %s", ELEMENT(im, w->sums, t, n, few),
                       ELEMENT(im, w->sums, t, n, few),
                       INPUT(im, c, B, d, affine_text(im, 1, (int64_t[]){1}, &few, g)));
        axes_release(im);
        t = axis_for(im, "t", c->t), n = axis_for(im, "n", c->n), i = axis_for(im, "i", c->i);
        k = axis_for(im, "g", g);
    }
    if (c->bytes[0]) return byte_input(im, c, w);
    const char *x = c->batch_first ? INPUT(im, c, X, n, t, i) : INPUT(im, c, X, t, n, i);
    emit_statement(im, "%s += %s * %s", ELEMENT(im, w->sums, t, n, k), x, INPUT(im, c, W, d, k, i));
    return true;
}

/* A state's start as a matrix [n, h] of its own. */
static struct tensor *state_start(struct import *im, struct cell *c, struct way *w, int input) {
    struct tensor *s = tensor_temporary(im, input == H0 ? "h" : "c", w->d ? "start_back" : "start",
                                        c->type, 2, (int64_t[]){c->n, c->h});
    if (!s) return NULL;
    axes_release(im);
    const char *n = axis_for(im, "n", c->n), *i = axis_for(im, "i", c->h), *d = number(im, w->d);
    const char *from = "0";
    if (c->in[input])
        from = c->batch_first ? INPUT(im, c, input, n, d, i) : INPUT(im, c, input, d, n, i);
    emit_statement(im, "%s = %s", ELEMENT(im, s, n, i), from);
    return s;
}

/* Opens the recurrence: `state` names, whence, and where to. */
static bool way_open(struct import *im, struct cell *c, struct way *w, struct tensor **end) {
    struct text head = {0};
    const char *type = type_name(c->type);
    for (int k = 0; k < 1 + c->cell_state; k++) {
        struct tensor *start = state_start(im, c, w, H0 + k);
        end[k] = start ? tensor_temporary(im, k ? "c" : "h", w->d ? "end_back" : "end", c->type, 2,
                                          start->extent)
                       : NULL;
        if (!end[k]) {
            text_free(&head);
            return false;
        }
        const char *name = name_unique(im, k ? "c" : "h");
        *(k ? &w->c : &w->h) = name;
        text_printf(&head, "%s%s: %s[%" PRId64 ",%" PRId64 "] from %s to %s", k ? ", " : "", name,
                    type, c->n, c->h, start->buffer, end[k]->buffer);
    }
    w->step = name_unique(im, "t");
    emit_statement(im, "recur %s: %" PRId64 "%s  state %s {", w->step, c->t,
                   w->reverse ? " reverse" : "", head.at);
    text_free(&head);
    axes_release(im);
    w->batch = axis_for(im, "n", c->n);
    w->unit = axis_for(im, "i", c->h);
    w->other = axis_for(im, "j", c->h);
    return true;
}

/* A matrix of the step, [n, extent]. */
static const char *step_temporary(struct import *im, struct cell *c, const char *name,
                                  int64_t extent) {
    name = name_unique(im, name);
    emit_statement(im, "  temp %s: %s[%" PRId64 ",%" PRId64 "]", name, type_name(c->type), c->n,
                   extent);
    return name;
}

/* The state of the step becomes bytes, each sequence by its own range: a[n,g] = from + its
 * products. */
static void byte_state(struct import *im, struct cell *c, struct way *w, const char *a,
                       const char *from, const char *state) {
    enum { LEAST, MOST, STEP, ZERO, NUMBERS };
    static const char *const hints[] = {"least", "most", "step", "zero"};
    const char *e[NUMBERS], *q = name_unique(im, "bytes"), *acc = name_unique(im, "acc");
    int64_t rows = c->gates * c->h;
    axes_release(im);
    const char *n = axis_for(im, "n", c->n), *j = axis_for(im, "j", c->h),
               *g = axis_for(im, "g", rows), *d = number(im, w->d);
    for (int k = 0; k < NUMBERS; k++) {
        const char *name = name_unique(im, hints[k]);
        emit_statement(im, "  temp %s: %s[%" PRId64 "]", name, k == ZERO ? "i32" : "f32", c->n);
        e[k] = arena_printf(im->arena, "%s[%s]", name, n);
    }
    emit_statement(im, "  temp %s: u8[%" PRId64 ",%" PRId64 "]", q, c->n, c->h);
    emit_statement(im, "  temp %s: i32[%" PRId64 ",%" PRId64 "]", acc, c->n, rows);
    const char *h = arena_printf(im->arena, "%s[%s,%s]", state, n, j);
    emit_statement(im, "  %s = 0", e[LEAST]);
    emit_statement(im, "  %s min= %s", e[LEAST], h);
    emit_statement(im, "  %s = 0", e[MOST]);
    emit_statement(im, "  %s max= %s", e[MOST], h);
    emit_statement(im, "  %s = (%s - %s) / 255", e[STEP], e[MOST], e[LEAST]);
    emit_statement(im, "  %s = i32(clip(round(0 - %s / %s), 0, 255))", e[ZERO], e[LEAST], e[STEP]);
    emit_statement(im, "  %s[%s,%s] = u8(clip(round(%s / %s) + f32(%s), 0, 255))", q, n, j, h,
                   e[STEP], e[ZERO]);
    emit_statement(im, "  %s[%s,%s] = 0", acc, n, g);
    emit_statement(im, "  %s[%s,%s] += i32(%s[%s,%s]) * %s", acc, n, g, q, n, j,
                   byte_weight(im, c, 1, d, j, g));
    emit_statement(im, "  %s[%s,%s] = %s + f32(%s[%s,%s] - %s * %s) * (%s * %s)", a, n, g, from,
                   acc, n, g, e[ZERO], tensor_element(im, w->columns, &g), e[STEP],
                   ELEMENT(im, c->scale[1], d, g));
}

static const char *state_element(struct import *im, const struct way *w, const char *state) {
    return arena_printf(im->arena, "%s[%s,%s]", state, w->batch, w->unit);
}

/* Rows [first, first + count) of gates of the step: sums of the input and of `state`'s product,
 * whose name is returned. */
static const char *state_sums(struct import *im, struct cell *c, struct way *w, int first,
                              int count, const char *state, bool with_input) {
    int64_t rows = count * c->h;
    const char *a = step_temporary(im, c, "a", rows), *d = number(im, w->d);
    axes_release(im);
    const char *n = axis_for(im, "n", c->n), *g = axis_for(im, "g", rows),
               *j = axis_for(im, "j", c->h);
    const char *row = affine_text(im, 1, (int64_t[]){1}, &g, first * c->h);
    const char *from = "0";
    if (with_input)
        from = ELEMENT(im, w->sums, w->step, n, row);
    else if (c->in[B])
        from =
            INPUT(im, c, B, d, affine_text(im, 1, (int64_t[]){1}, &g, (c->gates + first) * c->h));
    if (c->bytes[1]) {
        byte_state(im, c, w, a, from, state);
    } else {
        emit_statement(im, "  %s[%s,%s] = %s", a, n, g, from);
        emit_statement(im, "  %s[%s,%s] += %s[%s,%s] * %s", a, n, g, state, n, j,
                       INPUT(im, c, R, d, row, j));
    }
    axes_release(im);
    w->batch = axis_for(im, "n", c->n);
    w->unit = axis_for(im, "i", c->h);
    return a;
}

/* Row k of a matrix of gates. */
static const char *gate_row(struct import *im, struct cell *c, struct way *w, const char *a,
                            int k) {
    return arena_printf(im->arena, "%s[%s,%s]", a, w->batch,
                        affine_text(im, 1, (int64_t[]){1}, &w->unit, k * c->h));
}

/* name[n,i] = value: a gate of the step. */
static const char *gate(struct import *im, struct cell *c, struct way *w, const char *name,
                        const char *value) {
    const char *g = state_element(im, w, step_temporary(im, c, name, c->h));
    emit_statement(im, "  %s = %s", g, value);
    return g;
}

/* The next state; sequences that are over keep theirs. */
static void next_state(struct import *im, struct cell *c, struct way *w, const char *state,
                       const char *value) {
    const char *now = state_element(im, w, state);
    const char *next = arena_printf(im->arena, "%s'[%s,%s]", state, w->batch, w->unit);
    if (c->in[LENGTHS])
        emit_statement(im, "  %s = select(i32(%s) < %s, %s, %s)", next, w->step,
                       tensor_element(im, c->in[LENGTHS], &w->batch), value, now);
    else
        emit_statement(im, "  %s = %s", next, value);
}

/* Ends the step and the recurrence: the step's result, then the last states. */
static void way_close(struct import *im, struct cell *c, struct way *w, const char *value,
                      struct tensor *const *end) {
    const char *d = number(im, w->d);
    if (c->y) {
        const char *to = c->batch_first ? ELEMENT(im, c->y, w->batch, w->step, d, w->unit)
                                        : ELEMENT(im, c->y, w->step, d, w->batch, w->unit);
        if (c->in[LENGTHS])
            value = arena_printf(im->arena, "select(i32(%s) < %s, %s, 0)", w->step,
                                 tensor_element(im, c->in[LENGTHS], &w->batch), value);
        emit_statement(im, "  %s = %s", to, sum_narrow(im, c->y->type, value));
    }
    emit_statement(im, "}");
    axes_release(im);
    const char *n = axis_for(im, "n", c->n), *i = axis_for(im, "i", c->h);
    for (int k = 0; k < 1 + c->cell_state; k++)
        if (c->last[k])
            emit_statement(im, "%s = %s",
                           c->batch_first ? ELEMENT(im, c->last[k], n, d, i)
                                          : ELEMENT(im, c->last[k], d, n, i),
                           sum_narrow(im, c->last[k]->type, ELEMENT(im, end[k], n, i)));
}

/* ---- cells ---- */

static bool rnn_way(struct import *im, struct cell *c, struct way *w) {
    struct tensor *end[2];
    if (!input_sums(im, c, w, c->h) || !way_open(im, c, w, end)) return false;
    const char *a = state_sums(im, c, w, 0, 1, w->h, true);
    const char *h = gate(im, c, w, "h_next", activated(im, c, w, 0, gate_row(im, c, w, a, 0)));
    next_state(im, c, w, w->h, h);
    way_close(im, c, w, h, end);
    return true;
}

/* Gates z, r, h. `after`: the reset gate acts on the state's product, not on the state. */
static bool gru_way(struct import *im, struct cell *c, struct way *w, bool after) {
    struct tensor *end[2];
    if (!input_sums(im, c, w, after ? 2 * c->h : 3 * c->h) || !way_open(im, c, w, end))
        return false;
    const char *a = state_sums(im, c, w, 0, 2, w->h, true);
    const char *z = gate(im, c, w, "z", activated(im, c, w, 0, gate_row(im, c, w, a, 0)));
    const char *r = gate(im, c, w, "r", activated(im, c, w, 0, gate_row(im, c, w, a, 1)));
    const char *sum;
    if (after) {
        const char *own = state_sums(im, c, w, 2, 1, w->h, false);
        const char *row = affine_text(im, 1, (int64_t[]){1}, &w->unit, 2 * c->h);
        sum = arena_printf(im->arena, "%s + %s * %s", ELEMENT(im, w->sums, w->step, w->batch, row),
                           r, gate_row(im, c, w, own, 0));
    } else {
        const char *reset = step_temporary(im, c, "reset", c->h);
        emit_statement(im, "  %s = %s * %s", state_element(im, w, reset), r,
                       state_element(im, w, w->h));
        sum = gate_row(im, c, w, state_sums(im, c, w, 2, 1, reset, true), 0);
    }
    const char *s = gate(im, c, w, "s", sum), *v = gate(im, c, w, "v", activated(im, c, w, 1, s));
    const char *h = gate(
        im, c, w, "h_next",
        arena_printf(im->arena, "(1 - %s) * %s + %s * %s", z, v, z, state_element(im, w, w->h)));
    next_state(im, c, w, w->h, h);
    way_close(im, c, w, h, end);
    return true;
}

/* Row k of the gates, and a peephole on the cell's state. */
static const char *peeped(struct import *im, struct cell *c, struct way *w, const char *a, int k,
                          int hole, const char *state) {
    const char *sum = gate_row(im, c, w, a, k);
    if (!c->in[P]) return sum;
    const char *row = affine_text(im, 1, (int64_t[]){1}, &w->unit, hole * c->h);
    return arena_printf(im->arena, "(%s + %s * %s)", sum, INPUT(im, c, P, number(im, w->d), row),
                        state);
}

/* Gates i, o, f, c; peepholes i, o, f. */
static bool lstm_way(struct import *im, struct cell *c, struct way *w, bool coupled) {
    struct tensor *end[2];
    if (!input_sums(im, c, w, 4 * c->h)) return false;
    if (c->bytes[1] && !(w->columns = byte_columns(im, c, w, 1))) return false;
    if (!way_open(im, c, w, end)) return false;
    const char *a = state_sums(im, c, w, 0, 4, w->h, true), *old = state_element(im, w, w->c);
    const char *i = gate(im, c, w, "u", activated(im, c, w, 0, peeped(im, c, w, a, 0, 0, old)));
    const char *f =
        coupled ? arena_printf(im->arena, "(1 - %s)", i)
                : gate(im, c, w, "f", activated(im, c, w, 0, peeped(im, c, w, a, 2, 2, old)));
    const char *v = gate(im, c, w, "v", activated(im, c, w, 1, gate_row(im, c, w, a, 3)));
    const char *cell =
        gate(im, c, w, "c_next", arena_printf(im->arena, "%s * %s + %s * %s", f, old, i, v));
    const char *o = gate(im, c, w, "o", activated(im, c, w, 0, peeped(im, c, w, a, 1, 1, cell)));
    double clip = c->clip;
    c->clip = 0; /* it is for the gates' inputs */
    const char *h = gate(im, c, w, "h_next",
                         arena_printf(im->arena, "%s * (%s)", o, activated(im, c, w, 2, cell)));
    c->clip = clip;
    next_state(im, c, w, w->c, cell);
    next_state(im, c, w, w->h, h);
    way_close(im, c, w, h, end);
    return true;
}

bool op_rnn(struct import *im) {
    struct cell c = {.gates = 1, .functions = 1};
    if (!cell_read(im, &c, (const char *[]){"Tanh"}) || !cell_results(im, &c)) return false;
    for (int d = 0; d < c.directions; d++)
        if (!rnn_way(im, &c, &(struct way){.d = d, .reverse = d || c.reverse_first})) return false;
    return true;
}

bool op_gru(struct import *im) {
    struct cell c = {.gates = 3, .functions = 2};
    int64_t after = 0;
    if (!attribute_int(im, "linear_before_reset", &after) ||
        !cell_read(im, &c, (const char *[]){"Sigmoid", "Tanh"}) || !cell_results(im, &c))
        return false;
    for (int d = 0; d < c.directions; d++)
        if (!gru_way(im, &c, &(struct way){.d = d, .reverse = d || c.reverse_first}, after != 0))
            return false;
    return true;
}

static bool lstm(struct import *im, struct cell *c) {
    int64_t coupled = 0;
    if (!attribute_int(im, "input_forget", &coupled) ||
        !cell_read(im, c, (const char *[]){"Sigmoid", "Tanh", "Tanh"}) || !cell_results(im, c))
        return false;
    for (int d = 0; d < c->directions; d++)
        if (!lstm_way(im, c, &(struct way){.d = d, .reverse = d || c->reverse_first}, coupled != 0))
            return false;
    return true;
}

bool op_lstm(struct import *im) {
    return lstm(im, &(struct cell){.gates = 4, .functions = 3, .cell_state = true});
}

/* ---- com.microsoft: weights of bytes ---- */

/* Bytes w[direction, input, gate]: scales and zero points are inputs `scale` and the next, one for
 * each direction or for each gate of it. As floats they would have the shape [direction, gate,
 * input]. */
static bool bytes_read(struct import *im, struct cell *c, int which, int at, int scale) {
    struct tensor *w = node_input(im, at), *s = node_input(im, scale),
                  *z = node_input(im, scale + 1);
    if (w->ndims != 3 || type_size(w->type) != 1 || w->type == TYPE_BOOL || !s ||
        s->type != TYPE_F32 || s->ndims < 1 || s->ndims > 2 || s->extent[0] != w->extent[0] ||
        (s->ndims == 2 && s->extent[1] != w->extent[2]) ||
        (z && (z->type != w->type || z->elements != s->elements || z->ndims != s->ndims)))
        return node_fail(im, "input %d, its scales or zero points do not fit", at);
    c->bytes[which] = w;
    c->scale[which] = s;
    c->zero[which] = z;
    struct tensor *t = c->in[at] = arena_copy(im->arena, w, sizeof *w);
    t->type = TYPE_F32;
    t->data = NULL;
    t->extent[1] = w->extent[2];
    t->extent[2] = w->extent[1];
    return true;
}

bool op_dynamic_quantize_lstm(struct import *im) {
    struct cell c = {.gates = 4, .functions = 3, .cell_state = true};
    return bytes_read(im, &c, 0, W, P + 1) && bytes_read(im, &c, 1, R, P + 3) && lstm(im, &c);
}
#endif
