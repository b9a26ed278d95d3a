/* Resize and Upsample, dimension by dimension. Nearest neighbours are places known when compiling:
 * statements with affine indices, one for each phase of a whole factor. The other modes multiply
 * with a constant matrix [output, input] of weights. */
#include "onnx/onnx.h"

#ifdef ISAMAP_WITH_ONNX
#include "onnx/onnx_int.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { PHASES = 32 };
static const int64_t MOST_WEIGHTS = 1 << 24;

struct resize {
    const char *mode, *place, *nearest; /* attributes */
    double cubic, beyond;               /* beyond: for places outside, where the mode has them */
    bool exclude, antialias;
    int64_t in, out;        /* of the dimension at hand */
    double scale, from, to; /* from, to: of the region of interest */
};

/* Where output element o lies in the input (ONNX: x_original). */
static double place(const struct resize *r, int64_t o) {
    const char *p = r->place;
    double x = (double)o, in = (double)r->in, out = (double)r->out;
    if (strcmp(p, "asymmetric") == 0) return x / r->scale;
    if (strcmp(p, "align_corners") == 0) return r->out > 1 ? x * (in - 1) / (out - 1) : 0;
    if (strcmp(p, "tf_half_pixel_for_nn") == 0) return (x + 0.5) / r->scale;
    if (strcmp(p, "tf_crop_and_resize") == 0)
        return r->out > 1 ? r->from * (in - 1) + x * (r->to - r->from) * (in - 1) / (out - 1)
                          : 0.5 * (r->from + r->to) * (in - 1);
    if (strcmp(p, "pytorch_half_pixel") == 0 && r->out == 1) return 0;
    if (strcmp(p, "half_pixel_symmetric") == 0) {
        double adjust = out / (in * r->scale);
        return in / 2 * (1 - adjust) + (x + 0.5) / r->scale - 0.5;
    }
    return (x + 0.5) / r->scale - 0.5;
}

static int64_t clamped(int64_t i, int64_t n) {
    return i < 0 ? 0 : i >= n ? n - 1 : i;
}

static int64_t nearest(const struct resize *r, int64_t o) {
    double x = (float)place(r, o), down = floor(x); /* half-way in f32, as scales are */
    bool half = x - down == 0.5;
    if (strcmp(r->nearest, "floor") == 0)
        x = down;
    else if (strcmp(r->nearest, "ceil") == 0)
        x = ceil(x);
    else if (strcmp(r->nearest, "round_prefer_ceil") == 0)
        x = floor(x + 0.5);
    else
        x = half ? down : floor(x + 0.5);
    return clamped((int64_t)x, r->in);
}

/* ---- statements ---- */

struct step {
    struct tensor *x, *y;
    int dim;
    const char *index[MAX_DIMS];
};

/* y[…, f·i + phase, …] = x[…, first + by·i, …] */
static void phase_copy(struct import *im, struct step *s, int64_t f, int64_t phase, int64_t n,
                       int64_t first, int64_t by) {
    const char *to[MAX_DIMS], *from[MAX_DIMS], *i;
    axes_release(im);
    axes_for(im, s->dim, s->y->extent, s->index);
    i = axis_for(im, "i", n);
    for (int d = s->dim + 1; d < s->y->ndims; d++)
        s->index[d] = axis_for(im, d == 3 ? "q" : "m", s->y->extent[d]);
    memcpy(to, s->index, sizeof to);
    memcpy(from, s->index, sizeof from);
    to[s->dim] = affine_text(im, 1, &f, &i, phase);
    from[s->dim] = affine_text(im, 1, &by, &i, first);
    emit_statement(im, "%s = %s", tensor_element(im, s->y, to), tensor_element(im, s->x, from));
}

/* The least factor by which each phase goes through the input in equal steps; 0: none. */
static int64_t phases(const struct resize *r) {
    for (int64_t f = 1; f <= PHASES && f <= r->out; f++) {
        bool ok = r->out % f == 0;
        for (int64_t o = 2 * f; ok && o < r->out; o++)
            ok = nearest(r, o) - nearest(r, o - f) == nearest(r, o - f) - nearest(r, o - 2 * f);
        if (ok) return f;
    }
    return 0;
}

static bool by_matrix(struct import *im, struct step *s, const struct resize *r,
                      void (*row)(const struct resize *, int64_t o, double *weights), bool chosen);

static void nearest_row(const struct resize *r, int64_t o, double *weights) {
    weights[nearest(r, o)] = 1;
}

static bool resize_nearest(struct import *im, struct step *s, const struct resize *r) {
    int64_t f = phases(r);
    if (!f) return by_matrix(im, s, r, nearest_row, true);
    for (int64_t p = 0; p < f; p++)
        phase_copy(im, s, f, p, r->out / f, nearest(r, p),
                   r->out > f ? nearest(r, p + f) - nearest(r, p) : 0);
    return true;
}

/* ---- weights ---- */

static double kernel(const struct resize *r, double x) {
    double a = r->cubic;
    x = fabs(x);
    if (strcmp(r->mode, "linear") == 0) return x < 1 ? 1 - x : 0;
    if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

static void weight_row(const struct resize *r, int64_t o, double *weights) {
    double x = place(r, o), sum = 0;
    double stretch = r->antialias && r->scale < 1 ? r->scale : 1;
    bool linear = strcmp(r->mode, "linear") == 0;
    int64_t reach = (int64_t)ceil((linear ? 1 : 2) / stretch), first = (int64_t)floor(x) - reach,
            last = (int64_t)floor(x) + reach + 1;
    for (int pass = 0; pass < 2; pass++)
        for (int64_t i = first; i <= last; i++) {
            double w = kernel(r, ((double)i - x) * stretch);
            bool outside = i < 0 || i >= r->in;
            if (pass == 0) {
                if (!outside || !r->exclude) sum += w;
                continue;
            }
            if (outside && r->exclude) continue;
            if (stretch != 1 || r->exclude) w /= sum;
            weights[clamped(i, r->in)] += w;
        }
}

/* y = Σ weights[o, i] · x[i]; chosen: the weights only choose, whatever x is. */
static bool by_matrix(struct import *im, struct step *s, const struct resize *r,
                      void (*row)(const struct resize *, int64_t, double *), bool chosen) {
    int64_t extent[2] = {r->out, r->in}, n;
    enum type type = sum_type(s->x->type);
    const char *from[MAX_DIMS], *at[2];
    if (!type_is_float(type)) type = TYPE_F32;
    if (__builtin_mul_overflow(r->out, r->in, &n) || n > MOST_WEIGHTS)
        return node_fail(im, "%" PRId64 " to %" PRId64 " elements need a matrix that is too large",
                         r->in, r->out);
    double *line = arena_array(im->arena, (size_t)r->in, sizeof *line);
    char *data = arena_array(im->arena, (size_t)n, type_size(type));
    for (int64_t o = 0; o < r->out; o++) {
        memset(line, 0, (size_t)r->in * sizeof *line);
        row(r, o, line);
        for (int64_t i = 0; i < r->in; i++)
            type_store(type, data + (size_t)(o * r->in + i) * type_size(type),
                       (union value){.f = line[i]});
    }
    struct tensor *w = tensor_constant(im, s->y->buffer, "weights", type, 2, extent, data);
    struct tensor *sum =
        s->y->type == type || chosen
            ? s->y
            : tensor_temporary(im, s->y->buffer, "sum", type, s->y->ndims, s->y->extent);
    if (!w || !sum) return false;
    axes_release(im);
    axes_for(im, s->y->ndims, s->y->extent, s->index);
    memcpy(from, s->index, sizeof from);
    at[0] = s->index[s->dim];
    at[1] = from[s->dim] = axis_for(im, "r", r->in);
    const char *to = tensor_element(im, sum, s->index), *e = tensor_element(im, s->x, from),
               *weight = tensor_element(im, w, at);
    emit_statement(im, "%s = 0", to);
    if (chosen)
        emit_statement(im, "%s += select(%s != 0, %s, 0)", to, weight, e);
    else
        emit_statement(
            im, "%s += %s * %s", to,
            s->x->type == type ? e : arena_printf(im->arena, "%s(%s)", type_name(type), e), weight);
    if (sum != s->y)
        emit_statement(im, "%s = %s(%s)", tensor_element(im, s->y, s->index), type_name(s->y->type),
                       to);
    return true;
}

/* Places outside of the input give the value for it. */
static bool fill_beyond(struct import *im, struct step *s, const struct resize *r) {
    char *data = arena_array(im->arena, (size_t)r->out, 1);
    bool any = false;
    for (int64_t o = 0; o < r->out; o++) {
        double x = place(r, o);
        data[o] = x < 0 || x > (double)(r->in - 1);
        any |= data[o];
    }
    if (!any) return true;
    struct tensor *out = tensor_constant(im, s->y->buffer, "outside", TYPE_BOOL, 1, &r->out, data);
    if (!out) return false;
    axes_release(im);
    axes_for(im, s->y->ndims, s->y->extent, s->index);
    const char *y = tensor_element(im, s->y, s->index);
    emit_statement(im, "%s = select(%s, %s, %s)", y, tensor_element(im, out, &s->index[s->dim]),
                   text_number(im, s->y->type, r->beyond), y);
    return true;
}

/* ---- the operators ---- */

static bool resize_dims(struct import *im, struct resize *r, const int64_t *out,
                        const double *scale, const double *from, const double *to) {
    struct step s = {.x = node_input(im, 0)};
    int64_t extent[MAX_DIMS];
    int left = 0;
    bool crop = strcmp(r->place, "tf_crop_and_resize") == 0;
    memcpy(extent, s.x->extent, sizeof extent);
    bool changes[MAX_DIMS];
    for (int d = 0; d < s.x->ndims; d++) {
        changes[d] =
            out[d] != s.x->extent[d] || scale[d] != 1 || (crop && (from[d] != 0 || to[d] != 1));
        left += changes[d];
    }
    if (!left) return op_identity(im);
    struct tensor *result = node_result(im, s.x->type, s.x->ndims, out);
    for (int d = 0; result && d < s.x->ndims; d++) {
        if (!changes[d]) continue;
        r->in = s.x->extent[d];
        r->out = extent[d] = out[d];
        r->scale = scale[d];
        r->from = from[d];
        r->to = to[d];
        s.dim = d;
        s.y = --left ? tensor_temporary(im, result->buffer, "part", s.x->type, s.x->ndims, extent)
                     : result;
        if (!s.y ||
            !(strcmp(r->mode, "nearest") == 0 ? resize_nearest(im, &s, r)
                                              : by_matrix(im, &s, r, weight_row, false)) ||
            (crop && !fill_beyond(im, &s, r)))
            return false;
        s.x = s.y;
    }
    return result != NULL;
}

static bool one_of(struct import *im, const char *name, const char *value, const char *all) {
    size_t n = strlen(value);
    for (const char *c = all; (c = strstr(c, value)); c += n)
        if ((c == all || c[-1] == ' ') && (c[n] == ' ' || !c[n])) return true;
    return node_fail(im, "'%s' is '%s', expected one of: %s", name, name_shown(im->arena, value),
                     all);
}

/* Floats of a constant input; *out NULL: not given, or empty. */
static bool float_list(struct import *im, const char *name, int k, int n, const double **out) {
    struct tensor *t = node_given(im, k);
    *out = NULL;
    if (!t || t->elements == 0) return true;
    if (!t->data || !type_is_float(t->type) || t->elements != n)
        return node_fail(im, "input %d ('%s') is not a constant list of %d floats", k, name, n);
    double *list = arena_array(im->arena, (size_t)n, sizeof *list);
    for (int i = 0; i < n; i++) list[i] = tensor_float(t, i);
    *out = list;
    return true;
}

/* One scale for all dimensions, so that the result is not larger (or smaller) than the sizes. */
static double kept_aspect(const int64_t *sizes, const struct tensor *x, const int *dims, int n,
                          bool smaller) {
    double best = smaller ? INFINITY : 0;
    for (int i = 0; i < n; i++) {
        double s = (double)sizes[i] / (double)x->extent[dims[i]];
        if (smaller ? s < best : s > best) best = s;
    }
    return best;
}

static bool scaled_extent(struct import *im, int d, double to, int64_t *out) {
    if (!(to >= 1) || to > 1e12) return node_fail(im, "dimension %d would have %g elements", d, to);
    *out = (int64_t)floor(to);
    return true;
}

/* In f32, as ONNX infers shapes: 5 times 2.6 are 13. */
static double scaled(int64_t extent, double scale) {
    return floor((double)((float)extent * (float)scale));
}

static bool resize_sizes(struct import *im, int scales_at, int sizes_at, int n, const int *dims,
                         int64_t *out, double *scale) {
    struct tensor *x = node_input(im, 0);
    const char *policy = "stretch";
    const double *scales = NULL;
    const int64_t *sizes = NULL;
    int count = 0;
    if (!attribute_string(im, "keep_aspect_ratio_policy", &policy) ||
        !one_of(im, "keep_aspect_ratio_policy", policy, "stretch not_larger not_smaller") ||
        !float_list(im, "scales", scales_at, n, &scales) ||
        (sizes_at >= 0 && !node_list(im, "sizes", sizes_at, &sizes, &count)))
        return false;
    if (!scales && count != n) return node_fail(im, "neither scales nor sizes fit the input");
    double same = strcmp(policy, "stretch") == 0 || scales
                      ? 0
                      : kept_aspect(sizes, x, dims, n, strcmp(policy, "not_larger") == 0);
    for (int i = 0; i < n; i++) {
        int d = dims[i];
        double extent = (double)x->extent[d];
        scale[d] = scales ? scales[i] : same > 0 ? same : (double)sizes[i] / extent;
        double to = scales     ? scaled(x->extent[d], scale[d])
                    : same > 0 ? floor(same * extent + 0.5)
                               : (double)sizes[i];
        if (!scaled_extent(im, d, to, &out[d])) return false;
    }
    return true;
}

bool op_resize(struct import *im) {
    struct tensor *x = node_input(im, 0);
    bool old = im->opset < 11;
    struct resize r = {.mode = "nearest",
                       .place = old ? "asymmetric" : "half_pixel",
                       .nearest = old ? "floor" : "round_prefer_floor",
                       .cubic = -0.75};
    int64_t exclude = 0, antialias = 0, out[MAX_DIMS];
    const int64_t *axes;
    const double *roi = NULL;
    double scale[MAX_DIMS], from[MAX_DIMS] = {0}, to[MAX_DIMS];
    int dims[MAX_DIMS], n;
    if (!attribute_string(im, "mode", &r.mode) ||
        !attribute_string(im, "coordinate_transformation_mode", &r.place) ||
        !attribute_string(im, "nearest_mode", &r.nearest) ||
        !attribute_float(im, "cubic_coeff_a", &r.cubic) ||
        !attribute_float(im, "extrapolation_value", &r.beyond) ||
        !attribute_int(im, "exclude_outside", &exclude) ||
        !attribute_int(im, "antialias", &antialias) || !attribute_ints(im, "axes", &axes, &n) ||
        !one_of(im, "mode", r.mode, "nearest linear cubic") ||
        !one_of(im, "coordinate_transformation_mode", r.place,
                "half_pixel half_pixel_symmetric pytorch_half_pixel align_corners asymmetric "
                "tf_half_pixel_for_nn tf_crop_and_resize") ||
        !one_of(im, "nearest_mode", r.nearest, "round_prefer_floor round_prefer_ceil floor ceil"))
        return false;
    if (x->type == TYPE_BOOL) return node_fail(im, "the input is bool");
    r.exclude = exclude != 0;
    r.antialias = antialias != 0;
    if (!axes) n = x->ndims;
    if (n > x->ndims) return node_fail(im, "'axes' has %d entries", n);
    for (int d = 0; d < x->ndims; d++) {
        out[d] = x->extent[d];
        scale[d] = to[d] = 1;
    }
    for (int i = 0; i < n; i++) {
        dims[i] = i;
        if (axes && !axis_normal(im, axes[i], x->ndims, &dims[i])) return false;
    }
    if (!resize_sizes(im, old ? 1 : 2, old ? -1 : 3, n, dims, out, scale)) return false;
    if (strcmp(r.place, "tf_crop_and_resize") == 0) {
        if (!float_list(im, "roi", 1, 2 * n, &roi)) return false;
        if (!roi) return node_fail(im, "input 1 ('roi') is missing");
        for (int i = 0; i < n; i++) from[dims[i]] = roi[i], to[dims[i]] = roi[n + i];
    }
    return resize_dims(im, &r, out, scale, from, to);
}

/* Before opset 9 scales are an attribute, before opset 7 one for the height and one for the width.
 */
static bool upsample_scales(struct import *im, const struct tensor *x, double *scale) {
    if (im->opset < 7) {
        if (x->ndims != 4) return node_fail(im, "the input has %d dimensions, not 4", x->ndims);
        scale[0] = scale[1] = 1;
        return attribute_float(im, "height_scale", &scale[2]) &&
               attribute_float(im, "width_scale", &scale[3]);
    }
    const Onnx__AttributeProto *a = attribute_find(im, "scales");
    if (!a || a->n_floats != (size_t)x->ndims)
        return node_fail(im, "'scales' is not a list of %d floats", x->ndims);
    for (int d = 0; d < x->ndims; d++) scale[d] = (double)a->floats[d];
    return true;
}

bool op_upsample(struct import *im) {
    struct tensor *x = node_input(im, 0);
    struct resize r = {.mode = "nearest", .place = "asymmetric", .nearest = "floor"};
    int64_t out[MAX_DIMS];
    double scale[MAX_DIMS] = {0}, from[MAX_DIMS] = {0}, to[MAX_DIMS] = {0};
    int dims[MAX_DIMS];
    if (!attribute_string(im, "mode", &r.mode)) return false;
    if (strcmp(r.mode, "bilinear") == 0) r.mode = "linear"; /* its name before opset 7 */
    if (!one_of(im, "mode", r.mode, "nearest linear")) return false;
    for (int d = 0; d < x->ndims; d++) dims[d] = d;
    if (im->opset >= 9) {
        if (!resize_sizes(im, 1, -1, x->ndims, dims, out, scale)) return false;
    } else {
        if (!upsample_scales(im, x, scale)) return false;
        for (int d = 0; d < x->ndims; d++)
            if (!scaled_extent(im, d, scaled(x->extent[d], scale[d]), &out[d])) return false;
    }
    return resize_dims(im, &r, out, scale, from, to);
}
#endif
