#include "ir/lexer.h"
#include "onnx/onnx.h"

#ifdef ISAMAP_WITH_ONNX
#include "onnx/onnx_int.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- names ---- */

static struct name_slot {
    const char *key;
    void *value;
} * slot_of(const struct name_table *t, const char *key) {
    uint64_t h = 14695981039346656037u;
    for (const char *c = key; *c; c++) h = (h ^ (unsigned char)*c) * 1099511628211u;
    for (size_t i = (size_t)(h ^ h >> 32);; i++) {
        struct name_slot *s = &t->slot[i & (size_t)(t->cap - 1)];
        if (!s->key || strcmp(s->key, key) == 0) return s;
    }
}

void *name_find(const struct name_table *t, const char *key) {
    return t->cap ? slot_of(t, key)->value : NULL;
}

void name_put(struct arena *arena, struct name_table *t, const char *key, void *value) {
    if (2 * (t->n + 1) > t->cap) {
        struct name_table bigger = {.cap = t->cap ? 2 * t->cap : 64};
        bigger.slot = arena_array(arena, (size_t)bigger.cap, sizeof *bigger.slot);
        for (int i = 0; i < t->cap; i++)
            if (t->slot[i].key) *slot_of(&bigger, t->slot[i].key) = t->slot[i];
        bigger.n = t->n;
        *t = bigger;
    }
    struct name_slot *s = slot_of(t, key);
    t->n += !s->key;
    *s = (struct name_slot){key, value};
}

struct name_table name_copy(struct arena *arena, const struct name_table *t) {
    struct name_table copy = *t;
    if (t->cap) copy.slot = arena_copy(arena, t->slot, (size_t)t->cap * sizeof *t->slot);
    return copy;
}

char *name_shown(struct arena *arena, const char *name) {
    enum { SHOWN = 80 };
    size_t n = strnlen(name, SHOWN + 1);
    char *s = arena_strndup(arena, name, n > SHOWN ? SHOWN : n);
    for (char *c = s; *c; c++)
        if ((unsigned char)*c < 32 || *c == 127) *c = '?';
    return n > SHOWN ? arena_printf(arena, "%s...", s) : s;
}

static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static bool reserved(const char *name) {
    static const char *const words[] = {"neg", "from", "to", "reverse", "step"};
    enum type type;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i], name) == 0) return true;
    for (int op = 0; op < OP_COUNT; op++)
        if (op_info[op].notation == NOTE_CALL && strcmp(op_info[op].spelling, name) == 0)
            return true;
    return is_keyword(name, strlen(name)) || type_parse(name, strlen(name), &type);
}

const char *name_unique(struct import *im, const char *wanted) {
    enum { KEPT = 100 };
    struct text t = {0};
    if (!*wanted || (*wanted >= '0' && *wanted <= '9')) text_append(&t, "t", 1);
    for (const char *c = wanted; *c && t.n < KEPT; c++) text_append(&t, is_word(*c) ? c : "_", 1);
    const char *base = arena_strdup(im->arena, t.at), *name = base;
    text_free(&t);
    for (int k = 1; reserved(name) || name_find(&im->used, name); k++)
        name = arena_printf(im->arena, "%s_%d", base, k);
    name_put(im->arena, &im->used, name, im);
    return name;
}

/* ---- the node ---- */

const char *node_shown(struct import *im) {
    const char *name = im->node->name;
    return name && *name ? arena_printf(im->arena, "node '%s'", name_shown(im->arena, name))
                         : arena_printf(im->arena, "node %d", im->node_index);
}

bool node_fail(struct import *im, const char *fmt, ...) {
    va_list args;
    char text[512];
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    const Onnx__NodeProto *n = im->node;
    const char *op = n->op_type && *n->op_type ? name_shown(im->arena, n->op_type) : "no operator";
    diag_line(im->diags, im->path, 0, 0, "%s (%s, opset %" PRId64 "): %s", node_shown(im), op,
              im->opset, text);
    return false;
}

bool node_has_input(const struct import *im, int k) {
    return (size_t)k < im->node->n_input && im->node->input[k][0];
}

bool node_needs_input(struct import *im, int k) {
    return node_has_input(im, k) || node_fail(im, "input %d is missing", k);
}

struct tensor *node_given(const struct import *im, int k) {
    return node_has_input(im, k) ? name_find(&im->value, im->node->input[k]) : NULL;
}

struct tensor *node_input(struct import *im, int k) {
    struct tensor *t = node_given(im, k);
    if (t && t->elements == 0 && im->empty_input < 0) im->empty_input = k;
    return t;
}

struct tensor *node_part(const struct import *im, int k) {
    struct tensor *t = node_given(im, k);
    return t && t->elements ? t : NULL;
}

bool node_wants(const struct import *im, int k) {
    return (size_t)k < im->node->n_output && im->node->output[k][0];
}

const Onnx__AttributeProto *attribute_find(struct import *im, const char *name) {
    for (size_t i = 0; i < im->node->n_attribute; i++) {
        const Onnx__AttributeProto *a = im->node->attribute[i];
        if (!a->name || strcmp(a->name, name) != 0) continue;
        im->attribute_used[i] = true;
        return a;
    }
    return NULL;
}

bool attribute_int(struct import *im, const char *name, int64_t *out) {
    const Onnx__AttributeProto *a = attribute_find(im, name);
    if (!a) return true;
    if (!a->has_i) return node_fail(im, "the attribute '%s' is not an integer", name);
    *out = a->i;
    return true;
}

bool attribute_float(struct import *im, const char *name, double *out) {
    const Onnx__AttributeProto *a = attribute_find(im, name);
    if (!a) return true;
    if (!a->has_f) return node_fail(im, "the attribute '%s' is not a float", name);
    *out = (double)a->f;
    return true;
}

bool attribute_string(struct import *im, const char *name, const char **out) {
    const Onnx__AttributeProto *a = attribute_find(im, name);
    if (!a) return true;
    if (!a->has_s) return node_fail(im, "the attribute '%s' is not a string", name);
    *out = a->s.len ? arena_strndup(im->arena, (const char *)a->s.data, a->s.len) : "";
    return true;
}

bool attribute_ints(struct import *im, const char *name, const int64_t **out, int *n) {
    static const int64_t none[1];
    const Onnx__AttributeProto *a = attribute_find(im, name);
    *out = NULL, *n = 0;
    if (!a) return true;
    if (a->n_floats || a->has_i || a->has_f || a->has_s || a->t)
        return node_fail(im, "the attribute '%s' is not a list of integers", name);
    if (a->n_ints > INT32_MAX / 4)
        return node_fail(im, "the attribute '%s' has %zu entries: too many", name, a->n_ints);
    *n = (int)a->n_ints;
    *out = a->n_ints ? a->ints : none;
    return true;
}

bool attribute_counts(struct import *im, const char *name, int n, int64_t least, int64_t *to,
                      bool *given) {
    const int64_t *list;
    int count;
    if (!attribute_ints(im, name, &list, &count)) return false;
    if (given) *given = list != NULL;
    if (!list) return true;
    if (count != n) return node_fail(im, "'%s' has %d entries, expected %d", name, count, n);
    for (int d = 0; d < n; d++) {
        if (list[d] < least || list[d] > MAX_COUNT)
            return node_fail(im, "'%s' has the entry %" PRId64 ", expected %" PRId64 " to %" PRId64,
                             name, list[d], least, (int64_t)MAX_COUNT);
        to[d] = list[d];
    }
    return true;
}

bool axis_normal(struct import *im, int64_t axis, int ndims, int *out) {
    if (axis < -ndims || axis >= ndims)
        return node_fail(im, "axis %" PRId64 " is not a dimension of a tensor that has %d", axis,
                         ndims);
    *out = (int)(axis < 0 ? axis + ndims : axis);
    return true;
}

bool attribute_axis(struct import *im, const char *name, int64_t preset, int ndims, int *out) {
    return attribute_int(im, name, &preset) && axis_normal(im, preset, ndims, out);
}

bool attributes_all_used(struct import *im) {
    for (size_t i = 0; i < im->node->n_attribute; i++) {
        const Onnx__AttributeProto *a = im->node->attribute[i];
        bool harmless = a->name && strcmp(a->name, "consumed_inputs") ==
                                       0; /* of opset 1: where memory may be shared */
        if (!im->attribute_used[i] && !harmless)
            return node_fail(im, "the attribute '%s' is not supported",
                             a->name ? name_shown(im->arena, a->name) : "");
    }
    return true;
}

bool attribute_or_input(struct import *im, const char *name, int k, const int64_t **out, int *n) {
    if (!attribute_ints(im, name, out, n)) return false;
    return (k < 0 || !node_has_input(im, k)) ? true : node_list(im, name, k, out, n);
}

bool node_list(struct import *im, const char *name, int k, const int64_t **out, int *n) {
    struct tensor *t = node_given(im, k);
    *out = NULL;
    *n = 0;
    if (!t) return true;
    if (!t->data || (t->type != TYPE_I64 && t->type != TYPE_I32) || t->ndims > 1 ||
        t->elements > INT32_MAX)
        return node_fail(im,
                         "input %d ('%s') is not a constant list of integers, as it must be known "
                         "when compiling",
                         k, name);
    int64_t *list = arena_array(im->arena, (size_t)t->elements + 1, sizeof *list);
    for (int64_t i = 0; i < t->elements; i++) list[i] = tensor_int(t, i);
    *out = list;
    *n = (int)t->elements;
    return true;
}

/* ---- axes ---- */

static struct import_axis *axis_pick(struct import *im, const char *hint, int64_t extent) {
    struct import_axis *any = NULL;
    for (int i = 0; i < im->naxes; i++) {
        struct import_axis *a = &im->axis[i];
        if (a->taken || a->extent != extent) continue;
        if (strcmp(a->hint, hint) == 0) return a;
        if (!any) any = a;
    }
    return any;
}

const char *axis_for(struct import *im, const char *hint, int64_t extent) {
    if (extent <= 1) return "0";
    struct import_axis *a = axis_pick(im, hint, extent);
    if (!a) {
        GROW(im->arena, im->axis, im->naxes, im->axis_cap);
        a = &im->axis[im->naxes++];
        *a = (struct import_axis){name_unique(im, hint), hint, extent, false};
    }
    a->taken = true;
    return a->name;
}

void axes_release(struct import *im) {
    for (int i = 0; i < im->naxes; i++) im->axis[i].taken = false;
}

void axes_for(struct import *im, int ndims, const int64_t *extent, const char **out) {
    static const char *const four[] = {"n", "c", "p", "q"}, *const many[] = {"i", "j", "k", "l"};
    for (int d = 0; d < ndims; d++)
        out[d] = axis_for(im, ndims == 4 ? four[d] : d < 4 ? many[d] : "m", extent[d]);
}

const char *affine_text(struct import *im, int n, const int64_t *coef, const char *const *axis,
                        int64_t constant) {
    struct text t = {0};
    for (int i = 0; i < n; i++) {
        if (coef[i] == 0 || strcmp(axis[i], "0") == 0) continue;
        if (coef[i] != 1)
            text_printf(&t, "%s%" PRId64 "*%s", t.n ? "+" : "", coef[i], axis[i]);
        else
            text_printf(&t, "%s%s", t.n ? "+" : "", axis[i]);
    }
    if (t.n == 0 || constant != 0) text_printf(&t, t.n ? "%+" PRId64 : "%" PRId64, constant);
    const char *s = arena_strdup(im->arena, t.at);
    text_free(&t);
    return s;
}

/* ---- buffers ---- */

void emit_declare(struct import *im, struct text *where, const char *role, const struct tensor *t) {
    if (im->now) name_put(im->arena, &im->made_by, t->buffer, im->now);
    text_printf(where, "  %-5s %s: %s%s\n", role, t->buffer, type_name(t->type),
                shape_text(im->arena, t->ndims, t->extent));
}

static struct tensor *tensor_new(struct import *im, const char *name, enum type type, int ndims,
                                 const int64_t *extent) {
    struct tensor *t = arena_alloc(im->arena, sizeof *t);
    t->name = name;
    t->type = type;
    t->ndims = ndims;
    if (ndims) memcpy(t->extent, extent, (size_t)ndims * sizeof *extent);
    if (ndims > MAX_DIMS || !tensor_count(t)) {
        node_fail(im, "its result has the shape %s, which is too large",
                  shape_text(im->arena, ndims, t->extent));
        return NULL;
    }
    if (t->elements == 0) {
        t->data = "";
        im->empties++;
    }
    return t;
}

bool node_empties(struct import *im, struct text_marks from) {
    bool some = false;
    for (int k = 0; k < (int)im->node->n_output; k++) {
        const struct tensor *t =
            node_wants(im, k) ? name_find(&im->value, im->node->output[k]) : NULL;
        some |= t && t->elements;
    }
    if (some) return !im->empties || node_fail(im, "it computes by way of empty tensors");
    if (im->body.at) im->body.at[im->body.n = from.body] = 0;
    if (im->first.at) im->first.at[im->first.n = from.first] = 0;
    im->empty_input = -1;
    return true;
}

/* Does what the graph says about its output `name` fit? */
/* False after reporting: the graph declares it otherwise. */
static bool tensor_fits_output(struct import *im, const struct tensor *t) {
    const struct graph_output *output = name_find(&im->result, t->name);
    const Onnx__ValueInfoProto *info = output ? output->info : NULL;
    const Onnx__TypeProto__Tensor *type =
        info && info->type && info->type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE
            ? info->type->tensor_type
            : NULL;
    enum type declared;
    if (!type) return true;
    if (type->has_elem_type && (!tensor_type(type->elem_type, &declared) || declared != t->type))
        return node_fail(im,
                         "its result '%s' is %s, but the graph declares its output of another type",
                         name_shown(im->arena, t->name), type_name(t->type));
    if (!type->shape) return true;
    bool same = type->shape->n_dim == (size_t)t->ndims;
    for (int d = 0; same && d < t->ndims; d++) {
        const Onnx__TensorShapeProto__Dimension *dim = type->shape->dim[d];
        if (dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE)
            same = dim->dim_value == t->extent[d] || dim->dim_value == -1;
    }
    if (!same && !im->folding)
        diag_warn(im->diags, im->path, 0, 0,
                  "output '%s' is %s, though the graph declares another shape",
                  name_shown(im->arena, t->name), shape_text(im->arena, t->ndims, t->extent));
    return true;
}

struct tensor *node_result(struct import *im, enum type type, int ndims, const int64_t *extent) {
    return node_result_at(im, 0, type, ndims, extent);
}

struct tensor *node_result_at(struct import *im, int k, enum type type, int ndims,
                              const int64_t *extent) {
    if (!node_wants(im, k)) return tensor_temporary(im, "unused", "", type, ndims, extent);
    const char *name = im->node->output[k];
    struct tensor *t = tensor_new(im, name, type, ndims, extent);
    if (!t || !tensor_fits_output(im, t)) return NULL;
    const struct graph_output *out = name_find(&im->result, name);
    t->buffer = out ? out->buffer : name_unique(im, name);
    t->declared = true;
    emit_declare(im, out ? &im->outs : &im->temps, out ? "out" : "temp", t);
    name_put(im->arena, &im->value, name, t);
    return t;
}

bool node_constant(struct import *im, enum type type, int ndims, const int64_t *extent,
                   const void *data) {
    return node_constant_at(im, 0, type, ndims, extent, data);
}

bool node_constant_at(struct import *im, int k, enum type type, int ndims, const int64_t *extent,
                      const void *data) {
    const char *name = im->node->output[k];
    struct tensor *t = arena_alloc(im->arena, sizeof *t);
    bool result = name_find(&im->result, name) && !im->folding;
    *t = (struct tensor){.name = name, .type = type, .ndims = ndims, .data = data};
    if (ndims) memcpy(t->extent, extent, (size_t)ndims * sizeof *extent);
    if (!tensor_count(t)) return node_fail(im, "its result is too large");
    if (!tensor_fits_output(im, t)) return false;
    t->buffer = name_unique(im, result ? arena_printf(im->arena, "%s_value", name) : name);
    if (!result) {
        name_put(im->arena, &im->value, name, t);
        return true;
    }
    struct tensor *out = node_result_at(im, k, type, ndims, extent);
    if (out && out->elements == 0) {
        im->empties--;
        return true;
    }
    bool before = im->ahead;
    im->ahead = true;
    bool ok = out && emit_copy(im, out, t);
    im->ahead = before;
    if (ok) out->data = data; /* shapes may depend on it */
    return ok;
}

bool node_alias(struct import *im, const struct tensor *from, int ndims, const int64_t *extent) {
    return node_alias_at(im, 0, from, ndims, extent);
}

bool node_alias_at(struct import *im, int k, const struct tensor *from, int ndims,
                   const int64_t *extent) {
    if (from->data) return node_constant_at(im, k, from->type, ndims, extent, from->data);
    const char *name = im->node->output[k];
    struct tensor *t = tensor_new(im, name, from->type, ndims, extent);
    bool same = t && ndims == from->ndims &&
                memcmp(extent, from->extent, (size_t)ndims * sizeof *extent) == 0;
    if (t && same && !name_find(&im->result, name)) {
        t->buffer = from->buffer;
        t->declared = true;
        name_put(im->arena, &im->value, name, t);
        return true;
    }
    struct tensor *source = arena_copy(im->arena, from, sizeof *from);
    struct tensor *out = node_result_at(im, k, from->type, ndims, extent);
    return out && emit_copy(im, out, source);
}

void tensor_put_known(struct import *im, const char *name, enum type type, int64_t value) {
    struct tensor *t = arena_alloc(im->arena, sizeof *t);
    char *data = arena_alloc(im->arena, type_size(type));
    type_store(type, data, type_convert(type, TYPE_I64, (union value){.i = value}));
    *t = (struct tensor){.name = name, .type = type, .elements = 1, .data = data};
    t->buffer = name_unique(im, name);
    name_put(im->arena, &im->value, name, t);
}

struct tensor *tensor_temporary(struct import *im, const char *base, const char *suffix,
                                enum type type, int ndims, const int64_t *extent) {
    struct tensor *t = tensor_new(im, "", type, ndims, extent);
    if (!t) return NULL;
    t->buffer = name_unique(im, arena_printf(im->arena, "%s_%s", base, suffix));
    t->declared = true;
    emit_declare(im, &im->temps, "temp", t);
    return t;
}

struct tensor *tensor_constant(struct import *im, const char *base, const char *suffix,
                               enum type type, int ndims, const int64_t *extent, const void *data) {
    struct tensor *t = tensor_new(im, "", type, ndims, extent);
    if (!t) return NULL;
    t->buffer = name_unique(im, arena_printf(im->arena, "%s_%s", base, suffix));
    t->data = data;
    return t;
}

/* ---- sums of 16-bit floats ---- */

enum type sum_type(enum type type) {
    return type == TYPE_F16 || type == TYPE_BF16 ? TYPE_F32 : type;
}

const char *sum_widen(struct import *im, enum type type, const char *value) {
    return sum_type(type) == type ? value : arena_printf(im->arena, "f32(%s)", value);
}

const char *sum_narrow(struct import *im, enum type type, const char *value) {
    return sum_type(type) == type ? value
                                  : arena_printf(im->arena, "%s(%s)", type_name(type), value);
}

struct tensor *sum_open(struct import *im, struct tensor *y) {
    if (sum_type(y->type) == y->type) return y;
    return tensor_temporary(im, y->buffer, "acc", sum_type(y->type), y->ndims, y->extent);
}

void sum_close(struct import *im, struct tensor *y, struct tensor *acc, const char *const *index) {
    if (acc != y)
        emit_statement(im, "%s = %s", tensor_element(im, y, index),
                       sum_narrow(im, y->type, tensor_element(im, acc, index)));
}

/* ---- expressions and statements ---- */

const char *tensor_element_else(struct import *im, struct tensor *t, const char *const *index,
                                const char *fill) {
    struct text s = {0};
    if (!t->declared) {
        t->declared = true;
        emit_declare(im, &im->consts, "const", t);
        GROW(im->arena, im->constant, im->nconstants, im->constant_cap);
        im->constant[im->nconstants].buffer = t->buffer;
        im->constant[im->nconstants++].data = t->data;
    }
    text_printf(&s, "%s[", t->buffer);
    for (int d = 0; d < t->ndims; d++) text_printf(&s, "%s%s", d ? "," : "", index[d]);
    text_printf(&s, fill ? " else %s]" : "]", fill);
    const char *e = arena_strdup(im->arena, s.at);
    text_free(&s);
    return e;
}

const char *tensor_element(struct import *im, struct tensor *t, const char *const *index) {
    return tensor_element_else(im, t, index, NULL);
}

bool shape_broadcast(struct import *im, struct tensor *const *t, int n, int *ndims,
                     int64_t *extent) {
    *ndims = 0;
    for (int k = 0; k < n; k++)
        if (t[k]->ndims > *ndims) *ndims = t[k]->ndims;
    for (int d = 0; d < *ndims; d++) extent[d] = 1;
    for (int k = 0; k < n; k++)
        for (int d = 0; d < t[k]->ndims; d++) {
            int64_t *e = &extent[*ndims - t[k]->ndims + d];
            if (t[k]->extent[d] == 1) continue;
            if (*e != 1 && *e != t[k]->extent[d])
                return node_fail(im, "shapes %s and %s cannot be broadcast together",
                                 shape_text(im->arena, t[0]->ndims, t[0]->extent),
                                 shape_text(im->arena, t[k]->ndims, t[k]->extent));
            *e = t[k]->extent[d];
        }
    return true;
}

const char *tensor_element_broadcast(struct import *im, struct tensor *t, int ndims,
                                     const int64_t *extent, const char *const *index) {
    const char *own[MAX_DIMS];
    for (int d = 0; d < t->ndims; d++) {
        int at = ndims - t->ndims + d;
        own[d] = t->extent[d] == 1 && extent[at] != 1 ? "0" : index[at];
    }
    return tensor_element(im, t, own);
}

const char *text_number(struct import *im, enum type type, double v) {
    if (isnan(v)) return "nan";
    if (isinf(v)) return v < 0 ? "-inf" : "inf";
    if (v == trunc(v) && fabs(v) < 1e15 && !(v == 0 && signbit(v)))
        return arena_printf(im->arena, "%.0f", v);
    char text[40];
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, v);
        double back = strtod(text, NULL);
        if (back == v || (type == TYPE_F32 && (float)back == (float)v)) break;
    }
    return arena_printf(im->arena, strpbrk(text, ".e") ? "%s" : "%s.0", text);
}

const char *type_lowest(enum type type) {
    static const char *const text[TYPE_COUNT] = {
        [TYPE_F64] = "-inf",        [TYPE_F32] = "-inf",
        [TYPE_F16] = "-inf",        [TYPE_BF16] = "-inf",
        [TYPE_I8] = "-128",         [TYPE_I16] = "-32768",
        [TYPE_I32] = "-2147483648", [TYPE_I64] = "-9223372036854775808",
    };
    return text[type] ? text[type] : "0";
}

const char *type_highest(enum type type) {
    static const char *const text[TYPE_COUNT] = {
        [TYPE_F64] = "inf",        [TYPE_F32] = "inf",
        [TYPE_F16] = "inf",        [TYPE_BF16] = "inf",
        [TYPE_I8] = "127",         [TYPE_I16] = "32767",
        [TYPE_I32] = "2147483647", [TYPE_I64] = "9223372036854775807",
        [TYPE_U8] = "255",         [TYPE_U16] = "65535",
        [TYPE_U32] = "4294967295", [TYPE_U64] = "18446744073709551615",
        [TYPE_BOOL] = "1",
    };
    return text[type];
}

const char *tensor_scalar(struct import *im, struct tensor *t) {
    static const char *const zeros[MAX_DIMS] = {"0", "0", "0", "0", "0", "0", "0", "0",
                                                "0", "0", "0", "0", "0", "0", "0", "0"};
    if (!t->data) return tensor_element(im, t, zeros);
    if (type_is_float(t->type)) return text_number(im, t->type, tensor_float(t, 0));
    return arena_printf(im->arena, t->type == TYPE_U64 ? "%" PRIu64 : "%" PRId64, tensor_int(t, 0));
}

void emit_statement(struct import *im, const char *fmt, ...) {
    char text[8192], *big = NULL;
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    int n = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if ((size_t)n >= sizeof text) {
        big = arena_alloc(im->arena, (size_t)n + 1);
        vsnprintf(big, (size_t)n + 1, fmt, again);
    }
    va_end(again);
    text_printf(im->ahead ? &im->first : &im->body, "  %s\n", big ? big : text);
}
#endif
