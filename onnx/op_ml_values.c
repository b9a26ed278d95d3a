/* Of ai.onnx.ml: what replaces, picks or spreads values, and support vectors. Strings are not
 * taken. */
#include "onnx/op_ml.h"

#ifdef ISAMAP_WITH_ONNX
#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- LabelEncoder ---- */

struct labels {
    struct tensor list;
    int n;
};

static void labels_from(struct import *im, struct labels *l, enum type type, const void *data,
                        int n) {
    data = arena_copy(im->arena, data, (size_t)n * type_size(type));
    l->list = (struct tensor){.type = type, .ndims = 1, .extent = {n}, .elements = n, .data = data};
    l->n = n;
}

/* `keys` or `values`: from the attribute of floats, of integers, or the tensor. */
static bool labels_of(struct import *im, const char *what, struct labels *l) {
    struct arena *a = im->arena;
    const float *floats;
    const int64_t *ints;
    int n;
    *l = (struct labels){0};
    if (attribute_find(im, arena_printf(a, "%s_strings", what)))
        return node_fail(im, "'%s_strings': strings are not supported", what);
    if (!ml_floats(im, arena_printf(a, "%s_floats", what), &floats, &n)) return false;
    if (n) labels_from(im, l, TYPE_F32, floats, n);
    if (!attribute_ints(im, arena_printf(a, "%s_int64s", what), &ints, &n)) return false;
    if (n) labels_from(im, l, TYPE_I64, ints, n);
    if (!l->n && !ml_tensor(im, arena_printf(a, "%s_tensor", what), &l->list, &l->n)) return false;
    return l->n || node_fail(im, "it has no %s that are numbers", what);
}

/* What is not among the keys becomes. */
static bool label_default(struct import *im, enum type type, const char **text) {
    double number = -0.0;
    int64_t integer = -1;
    struct tensor t;
    int n;
    if (!attribute_float(im, "default_float", &number) ||
        !attribute_int(im, "default_int64", &integer) || !ml_tensor(im, "default_tensor", &t, &n))
        return false;
    attribute_find(im, "default_string");
    bool floats = type_is_float(type);
    if (n == 1)
        *text = floats ? text_number(im, type, tensor_float(&t, 0))
                       : arena_printf(im->arena, "%" PRId64, tensor_int(&t, 0));
    else
        *text =
            floats ? text_number(im, type, number) : arena_printf(im->arena, "%" PRId64, integer);
    return true;
}

/* The number of the key that equals x, the last one where there are several, then what stands at
 * that number among the values. NaN equals NaN. */
bool op_ml_label_encoder(struct import *im) {
    struct tensor *x = node_input(im, 0);
    struct labels keys, values;
    const char *index[MAX_DIMS + 1], *fill;
    if (!labels_of(im, "keys", &keys) || !labels_of(im, "values", &values)) return false;
    if (keys.n != values.n) return node_fail(im, "%d keys have %d values", keys.n, values.n);
    if (keys.list.type != x->type)
        return node_fail(im, "the input is %s, but the keys are %s", type_name(x->type),
                         type_name(keys.list.type));
    if (!label_default(im, values.list.type, &fill)) return false;
    const char *base = im->node->output[0];
    struct tensor *key = tensor_constant(im, base, "keys", x->type, 1, keys.list.extent,
                                         keys.list.data),
                  *value = tensor_constant(im, base, "values", values.list.type, 1,
                                           values.list.extent, values.list.data),
                  *place = tensor_temporary(im, base, "place", TYPE_I32, x->ndims, x->extent),
                  *found =
                      tensor_temporary(im, base, "found", values.list.type, x->ndims, x->extent),
                  *y = node_result(im, values.list.type, x->ndims, x->extent);
    if (!key || !value || !place || !found || !y) return false;
    axes_for(im, x->ndims, x->extent, index);
    const char *k = axis_for(im, "k", keys.n), *e = tensor_element(im, x, index),
               *p = tensor_element(im, place, index), *f = tensor_element(im, found, index),
               *same = tensor_element(im, key, &k);
    bool nan = type_is_float(x->type);
    emit_statement(im, "%s = -1", p);
    const char *both =
        nan ? arena_printf(im->arena, " | %s != %s & %s != %s", e, e, same, same) : "";
    emit_statement(im, "%s max= select(%s == %s%s, i32(%s), -1)", p, e, same, both, k);
    emit_statement(im, "%s = 0", f);
    emit_statement(im, "%s += select(%s == i32(%s), %s, 0)", f, p, k,
                   tensor_element(im, value, &k));
    emit_statement(im, "%s = select(%s < 0, %s, %s)", tensor_element(im, y, index), p, fill, f);
    return true;
}

/* ---- Imputer ---- */

/* Elements that are the replaced value (NaN too) become that of their column. */
bool op_ml_imputer(struct import *im) {
    struct tensor *x = node_input(im, 0);
    bool floats = x->type == TYPE_F32 || x->type == TYPE_F64;
    const float *list;
    const int64_t *ints;
    const char *index[MAX_DIMS];
    double replaced = 0;
    int64_t replaced_int = 0;
    int n, nints;
    if ((!floats && x->type != TYPE_I64) || x->ndims < 1)
        return node_fail(im, "the input is %s, expected f32, f64 or i64", type_name(x->type));
    if (!ml_floats(im, "imputed_value_floats", &list, &n) ||
        !attribute_ints(im, "imputed_value_int64s", &ints, &nints) ||
        !attribute_float(im, "replaced_value_float", &replaced) ||
        !attribute_int(im, "replaced_value_int64", &replaced_int))
        return false;
    int64_t columns = x->extent[x->ndims - 1], count = floats ? n : nints;
    if (count != 1 && count != columns)
        return node_fail(im, "%" PRId64 " values for %" PRId64 " features", count, columns);
    enum type type = floats ? TYPE_F32 : TYPE_I64;
    struct tensor *value = tensor_constant(
        im, im->node->output[0], "values", type, 1, &count,
        arena_copy(im->arena, floats ? (const void *)list : ints, (size_t)count * type_size(type)));
    struct tensor *y = node_result(im, x->type, x->ndims, x->extent);
    if (!value || !y) return false;
    axes_for(im, x->ndims, x->extent, index);
    const char *zero = "0", *e = tensor_element(im, x, index),
               *v = tensor_element(im, value, count == 1 ? &zero : &index[x->ndims - 1]);
    const char *what = floats ? text_number(im, x->type, replaced)
                              : arena_printf(im->arena, "%" PRId64, replaced_int);
    const char *test = floats && isnan(replaced) ? arena_printf(im->arena, "%s != %s", e, e)
                                                 : arena_printf(im->arena, "%s == %s", e, what);
    if (x->type == TYPE_F64) v = arena_printf(im->arena, "f64(%s)", v);
    emit_statement(im, "%s = select(%s, %s, %s)", tensor_element(im, y, index), test, v, e);
    return true;
}

/* ---- columns ---- */

/* Columns of the last dimension; a line becomes one row. */
bool op_ml_array_feature_extractor(struct import *im) {
    struct tensor *x = node_input(im, 0), *index = node_input(im, 1);
    int64_t flat[MAX_DIMS] = {index->elements};
    const char *name = im->node->input[1], *picked = inner_name(im, "picked");
    if (x->ndims < 1) return node_fail(im, "the input has no dimension");
    if (index->ndims != 1) {
        const char *line = inner_name(im, "line"),
                   *shape = ml_constant(im, "shape", TYPE_I64, 1, (int64_t[]){1}, flat);
        if (!shape || !inner_node(im, "Reshape", name, shape, line)) return false;
        name = line;
    }
    struct inner g = {.input = {im->node->input[0], name}, .ninputs = 2, .output = {picked}};
    if (x->ndims > 1) g.output[0] = im->node->output[0];
    inner_int(im, &g, "axis", -1);
    if (!inner_lower(im, &g, "Gather")) return false;
    if (x->ndims > 1) return true;
    int64_t row[2] = {1, flat[0]};
    const char *shape = ml_constant(im, "row", TYPE_I64, 1, (int64_t[]){2}, row);
    return shape && inner_node(im, "Reshape", picked, shape, im->node->output[0]);
}

/* The inputs' columns side by side, each cut or filled with zeros to its number of them, in f32. */
bool op_ml_feature_vectorizer(struct import *im) {
    const int64_t *wide;
    const char *index[2];
    int n, inputs = (int)im->node->n_input;
    int64_t extent[2] = {0, 0};
    if (!attribute_ints(im, "inputdimensions", &wide, &n)) return false;
    if (n != inputs)
        return node_fail(im, "'inputdimensions' has %d entries for %d inputs", n, inputs);
    for (int k = 0; k < n; k++) {
        struct tensor *x = node_input(im, k);
        if (!x || x->ndims < 1 || x->ndims > 2 || wide[k] < 1 || wide[k] > MAX_COUNT ||
            (k && x->extent[0] != extent[0]))
            return node_fail(im, "input %d does not fit, or is no row or rows", k);
        extent[0] = x->extent[0];
        extent[1] += wide[k];
    }
    struct tensor *y = node_result(im, TYPE_F32, 2, extent);
    if (!y) return false;
    int64_t at = 0;
    for (int k = 0; k < n; k++) {
        struct tensor *x = node_input(im, k);
        int64_t part[2] = {extent[0], wide[k]}, have = x->ndims == 2 ? x->extent[1] : 1;
        axes_release(im);
        axes_for(im, 2, part, index);
        const char *to[2] = {index[0], affine_text(im, 1, (int64_t[]){1}, &index[1], at)};
        const char *from[2] = {index[0], x->ndims == 2 ? index[1] : NULL};
        const char *e = have < wide[k] && x->ndims == 2 ? tensor_element_else(im, x, from, "0")
                                                        : tensor_element(im, x, from);
        if (x->ndims == 1 && wide[k] > 1)
            return node_fail(im, "input %d has one column, but 'inputdimensions' says %" PRId64, k,
                             wide[k]);
        emit_statement(im, "%s = f32(%s)", tensor_element(im, y, to), e);
        at += wide[k];
    }
    return true;
}

/* 1 where the element is the category, in a dimension behind the others. */
bool op_ml_one_hot(struct import *im) {
    struct tensor *x = node_input(im, 0);
    const int64_t *list;
    const char *index[MAX_DIMS + 1];
    int64_t zeros = 1, extent[MAX_DIMS + 1];
    int n;
    if (attribute_find(im, "cats_strings"))
        return node_fail(im, "'cats_strings': strings are not supported");
    if (!attribute_ints(im, "cats_int64s", &list, &n) || !attribute_int(im, "zeros", &zeros))
        return false;
    if (n == 0) return node_fail(im, "it has no categories ('cats_int64s')");
    if (!zeros)
        diag_warn(im->diags, im->path, 0, 0,
                  "%s (OneHotEncoder): an unknown category becomes zeros, not an error",
                  node_shown(im));
    if (x->ndims == MAX_DIMS || x->type == TYPE_BOOL)
        return node_fail(im, "the input is %s of %d dimensions", type_name(x->type), x->ndims);
    memcpy(extent, x->extent, sizeof x->extent);
    extent[x->ndims] = n;
    int64_t count = n;
    struct tensor *y = node_result(im, TYPE_F32, x->ndims + 1, extent),
                  *cats = y ? tensor_constant(im, y->buffer, "categories", TYPE_I64, 1, &count,
                                              arena_copy(im->arena, list, (size_t)n * sizeof *list))
                            : NULL;
    if (!cats) return false;
    axes_for(im, x->ndims + 1, extent, index);
    emit_statement(im, "%s = select(i64(%s) == %s, 1, 0)", tensor_element(im, y, index),
                   tensor_element(im, x, index), tensor_element(im, cats, &index[x->ndims]));
    return true;
}

/* ---- ZipMap ---- */

/* Makes a map of each row, from label to number. The rows are given as they are. */
bool op_ml_zip_map(struct import *im) {
    const int64_t *labels;
    int n;
    if (!attribute_ints(im, "classlabels_int64s", &labels, &n)) return false;
    attribute_find(im, "classlabels_strings");
    diag_warn(im->diags, im->path, 0, 0,
              "%s (ZipMap): its rows are not made maps; the columns are the labels in their order",
              node_shown(im));
    return inner_node(im, "Identity", im->node->input[0], NULL, im->node->output[0]);
}
#endif
