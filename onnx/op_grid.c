/* GridSample: values at places that are data, with one, two or four taps along each dimension. */
#include "onnx/onnx.h"

#ifdef ISAMAP_WITH_ONNX
#include "onnx/onnx_int.h"
#include "onnx/taps.h"

#include <inttypes.h>
#include <string.h>

enum padding { ZEROS, BORDER, REFLECTION };

struct grid {
    struct tensor *x, *at;
    int n, taps;
    enum padding padding;
    int64_t corners;
    const char *type;
};

static bool grid_read(struct import *im, struct grid *g) {
    const char *mode = "linear", *padding = "zeros";
    *g = (struct grid){.x = node_input(im, 0), .at = node_input(im, 1)};
    g->n = g->x->ndims - 2;
    if (!attribute_string(im, "mode", &mode) || !attribute_string(im, "padding_mode", &padding) ||
        !attribute_int(im, "align_corners", &g->corners))
        return false;
    bool fits = g->n >= 1 && g->n <= SPATIAL && g->at->ndims == g->x->ndims &&
                g->at->extent[0] == g->x->extent[0] && g->at->extent[g->n + 1] == g->n;
    if (!fits)
        return node_fail(im, "the grid %s does not fit the input %s",
                         shape_text(im->arena, g->at->ndims, g->at->extent),
                         shape_text(im->arena, g->x->ndims, g->x->extent));
    if ((g->x->type != TYPE_F32 && g->x->type != TYPE_F64) || g->at->type != g->x->type)
        return node_fail(im, "input and grid are not both f32 or f64");
    g->type = type_name(g->x->type);
    g->taps = strcmp(mode, "nearest") == 0                                   ? 1
              : strcmp(mode, "linear") == 0 || strcmp(mode, "bilinear") == 0 ? 2
              : strcmp(mode, "cubic") == 0 || strcmp(mode, "bicubic") == 0   ? 4
                                                                             : 0;
    g->padding = strcmp(padding, "border") == 0  ? BORDER
                 : strcmp(padding, "zeros") == 0 ? ZEROS
                                                 : REFLECTION;
    if (!g->taps || (g->padding == REFLECTION && strcmp(padding, "reflection") != 0))
        return node_fail(im, "mode '%s' with padding '%s' is not known",
                         name_shown(im->arena, mode), name_shown(im->arena, padding));
    return true;
}

/* Text of the place `p` brought into 0 … n − 1 (with zeros: left where it is). */
static const char *padded(struct import *im, const struct grid *g, const char *p, int64_t n) {
    if (g->padding == ZEROS) return p;
    if (g->padding == BORDER || n == 1)
        return arena_printf(im->arena, "clip(%s, 0, %" PRId64 ")", p, n - 1);
    /* a triangle wave between the corners, or between the outer edges of the corners */
    double low = g->corners ? 0 : -0.5, span = g->corners ? (double)n - 1 : (double)n;
    const char *l = text_number(im, g->x->type, low), *s = text_number(im, g->x->type, span),
               *twice = text_number(im, g->x->type, 2 * span);
    return arena_printf(im->arena,
                        "clip(%s - abs(abs(%s - (%s)) %% %s - %s) + (%s), 0, %" PRId64 ")", s, p, l,
                        twice, s, l, n - 1);
}

/* What tap k of a place counts, `f` being how far the place is behind its floor. */
static const char *tap_weight(struct import *im, int taps, int k, const char *f) {
    static const char *const cubic[4] = {"((-0.75 * (# + 1) + 3.75) * (# + 1) - 6) * (# + 1) + 3",
                                         "(1.25 * # - 2.25) * # * # + 1",
                                         "(1.25 * (1 - #) - 2.25) * (1 - #) * (1 - #) + 1",
                                         "((-0.75 * (2 - #) + 3.75) * (2 - #) - 6) * (2 - #) + 3"};
    struct text t = {0};
    if (taps == 1) return "1";
    if (taps == 2) return k ? f : arena_printf(im->arena, "1 - %s", f);
    for (const char *c = cubic[k]; *c; c++)
        text_append(&t, *c == '#' ? f : c, *c == '#' ? strlen(f) : 1);
    const char *s = arena_strdup(im->arena, t.at);
    text_free(&t);
    return s;
}

/* The taps of all places along dimension d of the input. */
static bool grid_taps(struct import *im, const struct grid *g, int d, const char *base,
                      const char *const *out, struct taps *to) {
    static const char *const digit[SPATIAL] = {"0", "1", "2"};
    int64_t n = g->x->extent[2 + d];
    const char *from[MAX_DIMS];
    int last = g->n + 1;
    for (int k = 0; k < last; k++) from[k] = out[k];
    from[last] = digit[g->n - 1 - d]; /* a place begins with its last dimension */
    struct tensor *place = tensor_temporary(im, base, "place", g->x->type, last, g->at->extent);
    if (!place) return false;
    const char *e = tensor_element(im, g->at, from), *p = tensor_element(im, place, out);
    const char *at = g->corners ? arena_printf(im->arena, "(%s + 1) * %s", e,
                                               text_number(im, g->x->type, (double)(n - 1) / 2))
                                : arena_printf(im->arena, "((%s + 1) * %" PRId64 " - 1) / 2", e, n);
    emit_statement(im, "%s = %s", p, at);
    if (g->taps != 4) { /* cubic weights are those of the place itself */
        struct tensor *inside =
            tensor_temporary(im, base, "inside", g->x->type, last, place->extent);
        if (!inside) return false;
        const char *i = tensor_element(im, inside, out);
        emit_statement(im, "%s = %s", i, padded(im, g, p, n));
        p = i;
    }
    const char *f = arena_printf(im->arena, "(%s - floor(%s))", p, p);
    for (int k = 0; k < g->taps; k++) {
        const char *tap = g->taps == 1
                              ? arena_printf(im->arena, "round(%s)", p)
                              : arena_printf(im->arena, "floor(%s) + %d", p, k - (g->taps == 4));
        if (!taps_add(im, to, d, base, g->x->type, last, g->at->extent, out, padded(im, g, tap, n),
                      tap_weight(im, g->taps, k, f)))
            return false;
    }
    return true;
}

bool op_grid_sample(struct import *im) {
    struct grid g;
    struct taps taps = {0};
    int64_t extent[MAX_DIMS];
    const char *out[MAX_DIMS], *index[MAX_DIMS], *from[MAX_DIMS];
    if (!grid_read(im, &g)) return false;
    taps.n = g.n;
    memcpy(extent, g.at->extent, sizeof extent);
    extent[1] = g.x->extent[1];
    for (int d = 0; d < g.n; d++) extent[2 + d] = g.at->extent[1 + d];
    struct tensor *y = node_result(im, g.x->type, g.x->ndims, extent);
    if (!y) return false;
    axes_for(im, y->ndims, extent, index);
    out[0] = from[0] = index[0];
    from[1] = index[1];
    for (int d = 0; d < g.n; d++) out[1 + d] = index[2 + d];
    for (int d = 0; d < g.n; d++) {
        if (!grid_taps(im, &g, d, y->buffer, out, &taps)) return false;
        from[2 + d] = axis_for(im, "u", g.x->extent[2 + d]);
    }
    const char *to = tensor_element(im, y, index);
    emit_statement(im, "%s = 0", to);
    taps_sum(im, &taps, to, g.x, from, NULL, NULL);
    return true;
}

/* The grid's place along dimension d of the result, -1 at one end and 1 at the other. */
static const char *grid_place(struct import *im, enum type type, const char *axis, int64_t n,
                              bool corners) {
    double step = !corners ? 2 / (double)n
                  : n > 1  ? 2 / (double)(n - 1)
                           : 0,
           first = corners ? -1 : 1 / (double)n - 1;
    return arena_printf(im->arena, "%s(f64(%s) * %s + %s)", type_name(type), axis,
                        text_number(im, TYPE_F64, step), text_number(im, TYPE_F64, first));
}

/* y[n, places…, d] = Σ theta[n, d, k] · place k + theta[n, d, last]; places begin with the last */
bool op_affine_grid(struct import *im) {
    static const char *const digit[SPATIAL + 1] = {"0", "1", "2", "3"};
    struct tensor *theta = node_input(im, 0);
    int64_t corners = 0, extent[MAX_DIMS];
    const int64_t *size;
    const char *to[MAX_DIMS], *from[3];
    int n;
    if (!attribute_int(im, "align_corners", &corners) || !node_list(im, "size", 1, &size, &n))
        return false;
    int spatial = n - 2;
    if ((theta->type != TYPE_F32 && theta->type != TYPE_F64) || spatial < 2 || spatial > SPATIAL ||
        theta->ndims != 3 || theta->extent[0] != size[0] || theta->extent[1] != spatial ||
        theta->extent[2] != spatial + 1)
        return node_fail(im, "matrices %s of %s do not fit a size of %d dimensions",
                         shape_text(im->arena, theta->ndims, theta->extent), type_name(theta->type),
                         n);
    extent[0] = size[0];
    for (int d = 0; d < spatial; d++) {
        extent[1 + d] = size[2 + d];
        if (size[2 + d] < 1 || size[2 + d] > MAX_COUNT)
            return node_fail(im, "size %" PRId64 " of dimension %d", size[2 + d], 2 + d);
    }
    extent[spatial + 1] = spatial;
    struct tensor *y = node_result(im, theta->type, spatial + 2, extent);
    if (!y) return false;
    axes_for(im, y->ndims, extent, to);
    from[0] = to[0];
    from[1] = to[spatial + 1];
    from[2] = digit[spatial];
    struct text sum = {0};
    text_printf(&sum, "%s", tensor_element(im, theta, from));
    for (int k = 0; k < spatial; k++) {
        int d = spatial - k;
        from[2] = digit[k];
        text_printf(&sum, " + %s * %s", tensor_element(im, theta, from),
                    grid_place(im, theta->type, to[d], extent[d], corners != 0));
    }
    emit_statement(im, "%s = %s", tensor_element(im, y, to), sum.at);
    text_free(&sum);
    return true;
}
#endif
