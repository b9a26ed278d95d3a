/* NonMaxSuppression of boxes or scores that are data: a recurrence, one box of each class a step.
 * Its result has a row for each box that may be chosen; rows behind the last one name no element.
 */
#include "onnx/onnx.h"

#ifdef ISAMAP_WITH_ONNX
#include "onnx/onnx_int.h"

#include <inttypes.h>

struct suppressing {
    struct import *im;
    int64_t batches, classes, boxes, most;
    const char *b, *c, *n;      /* axes */
    const char *lo, *hi, *area; /* corners [batch, box, 2], sizes [batch, box] */
    const char *live;           /* scores [batch, class, box], -inf where nothing is to be chosen */
    const char *chosen;         /* [step, batch, class]: a box, or -1 */
};

/* The name of a new temporary. */
static const char *temporary(struct suppressing *s, const char *suffix, enum type type, int ndims,
                             const int64_t *extent) {
    struct tensor *t = tensor_temporary(s->im, s->im->node->output[0], suffix, type, ndims, extent);
    return t ? t->buffer : NULL;
}

static bool corners(struct suppressing *s, struct tensor *box, bool centre) {
    struct import *im = s->im;
    int64_t extent[3] = {s->batches, s->boxes, 2};
    if (!(s->lo = temporary(s, "low", TYPE_F32, 3, extent)) ||
        !(s->hi = temporary(s, "high", TYPE_F32, 3, extent)) ||
        !(s->area = temporary(s, "area", TYPE_F32, 2, extent)))
        return false;
    for (int d = 0; d < 2; d++) {
        const char *at[2][3] = {{s->b, s->n, centre ? (d ? "0" : "1") : (d ? "1" : "0")},
                                {s->b, s->n, centre ? (d ? "2" : "3") : (d ? "3" : "2")}};
        const char *x = tensor_element(im, box, at[0]), *y = tensor_element(im, box, at[1]);
        const char *const how[2] = {
            centre ? "%s[%s,%s,%d] = %s - %s / 2" : "%s[%s,%s,%d] = min(%s, %s)",
            centre ? "%s[%s,%s,%d] = %s + %s / 2" : "%s[%s,%s,%d] = max(%s, %s)"};
        for (int side = 0; side < 2; side++)
            emit_statement(
                im, "%s",
                arena_printf(im->arena, how[side], side ? s->hi : s->lo, s->b, s->n, d, x, y));
    }
    emit_statement(im, "%s[%s,%s] = (%s[%s,%s,0] - %s[%s,%s,0]) * (%s[%s,%s,1] - %s[%s,%s,1])",
                   s->area, s->b, s->n, s->hi, s->b, s->n, s->lo, s->b, s->n, s->hi, s->b, s->n,
                   s->lo, s->b, s->n);
    return true;
}

static bool start(struct suppressing *s, struct tensor *score, struct tensor *least) {
    struct import *im = s->im;
    int64_t extent[3] = {s->batches, s->classes, s->boxes};
    const char *at[3] = {s->b, s->c, s->n}, *e = tensor_element(im, score, at);
    if (!(s->live = temporary(s, "start", TYPE_F32, 3, extent))) return false;
    emit_statement(
        im, "%s[%s,%s,%s] = %s", s->live, s->b, s->c, s->n,
        least ? arena_printf(im->arena, "select(%s > %s, %s, -inf)", e, tensor_scalar(im, least), e)
              : e);
    return true;
}

/* The common part of the chosen box and each other one, along a dimension. */
static const char *common(const struct suppressing *s, const char *low, const char *high, int d) {
    return arena_printf(
        s->im->arena, "max(min(%s[%s,%s,%d], %s[%s,%s,%d]) - max(%s[%s,%s,%d], %s[%s,%s,%d]), 0)",
        high, s->b, s->c, d, s->hi, s->b, s->n, d, low, s->b, s->c, d, s->lo, s->b, s->n, d);
}

/* In each step the best score of each class, and no more what overlaps its box. */
static bool steps(struct suppressing *s, struct tensor *overlap) {
    struct import *im = s->im;
    int64_t chosen[3] = {s->most, s->batches, s->classes},
            all[3] = {s->batches, s->classes, s->boxes};
    const char *end = temporary(s, "end", TYPE_F32, 3, all), *step = name_unique(im, "step"),
               *live = name_unique(im, "live"), *best = name_unique(im, "best"),
               *at = name_unique(im, "at"), *low = name_unique(im, "low"),
               *high = name_unique(im, "high"), *both = name_unique(im, "both"),
               *d = axis_for(im, "d", 2), *b = s->b, *c = s->c, *n = s->n;
    if (!end || !(s->chosen = temporary(s, "chosen", TYPE_I64, 3, chosen))) return false;
    const char *shape = shape_text(im->arena, 3, all), *two = shape_text(im->arena, 2, all),
               *threshold = overlap ? tensor_scalar(im, overlap) : "0";
    emit_statement(im, "recur %s: %" PRId64 "  state %s: f32%s from %s to %s {", step, s->most,
                   live, shape, s->live, end);
    emit_statement(im, "  temp %s: f32%s", best, two);
    emit_statement(im, "  temp %s: i64%s", at, two);
    all[2] = 2;
    emit_statement(im, "  temp %s: f32%s", low, shape_text(im->arena, 3, all));
    emit_statement(im, "  temp %s: f32%s", high, shape_text(im->arena, 3, all));
    emit_statement(im, "  temp %s: f32%s", both, shape);
    emit_statement(im, "  %s[%s,%s] = -inf", best, b, c);
    emit_statement(im, "  %s[%s,%s] max= %s[%s,%s,%s]", best, b, c, live, b, c, n);
    emit_statement(im, "  %s[%s,%s] = %" PRId64, at, b, c, s->boxes);
    emit_statement(im, "  %s[%s,%s] min= select(%s[%s,%s,%s] == %s[%s,%s], i64(%s), %" PRId64 ")",
                   at, b, c, live, b, c, n, best, b, c, n, s->boxes);
    for (int k = 0; k < 2; k++) {
        emit_statement(im, "  %s[%s,%s,%s] = 0", k ? high : low, b, c, d);
        emit_statement(im, "  %s[%s,%s,%s] += select(%s[%s,%s] == i64(%s), %s[%s,%s,%s], 0)",
                       k ? high : low, b, c, d, at, b, c, n, k ? s->hi : s->lo, b, n, d);
    }
    emit_statement(im, "  %s[%s,%s,%s] = %s * %s", both, b, c, n, common(s, low, high, 0),
                   common(s, low, high, 1));
    emit_statement(im,
                   "  %s'[%s,%s,%s] = select(%s[%s,%s] == i64(%s) | %s[%s,%s,%s] > 0 & "
                   "%s[%s,%s,%s] / ((%s[%s,%s,0] - %s[%s,%s,0]) * (%s[%s,%s,1] - %s[%s,%s,1]) + "
                   "%s[%s,%s] - %s[%s,%s,%s]) > %s, -inf, %s[%s,%s,%s])",
                   live, b, c, n, at, b, c, n, both, b, c, n, both, b, c, n, high, b, c, low, b, c,
                   high, b, c, low, b, c, s->area, b, n, both, b, c, n, threshold, live, b, c, n);
    emit_statement(im, "  %s[%s,%s,%s] = select(%s[%s,%s] > -inf, %s[%s,%s], -1)", s->chosen, step,
                   b, c, best, b, c, at, b, c);
    emit_statement(im, "}");
    return true;
}

/* Rows [batch, class, box], class by class, without gaps. */
static bool rows(struct suppressing *s) {
    struct import *im = s->im;
    int64_t each[3] = {s->most, s->batches, s->classes},
            all[2] = {s->most * s->batches * s->classes, 3};
    const char *b = s->b, *c = s->c, *count = temporary(s, "count", TYPE_I64, 2, each + 1),
               *before = temporary(s, "before", TYPE_I64, 2, each + 1),
               *place = temporary(s, "place", TYPE_I64, 3, each),
               *total = temporary(s, "total", TYPE_I64, 0, NULL),
               *made = temporary(s, "rows", TYPE_I64, 2, all);
    struct tensor *y = node_result(im, TYPE_I64, 2, all);
    if (!count || !before || !place || !total || !made || !y) return false;
    axes_release(im);
    b = axis_for(im, "b", s->batches), c = axis_for(im, "c", s->classes);
    const char *t = axis_for(im, "t", s->most), *v = axis_for(im, "v", all[0]),
               *j = axis_for(im, "j", 3), *b2 = axis_for(im, "b", s->batches),
               *c2 = axis_for(im, "c", s->classes), *to[2] = {v, j};
    emit_statement(im, "%s[%s,%s] = 0", count, b, c);
    emit_statement(im, "%s[%s,%s] += select(%s[%s,%s,%s] >= 0, 1, 0)", count, b, c, s->chosen, t, b,
                   c);
    emit_statement(im, "%s[] = 0", total);
    emit_statement(im, "%s[] += %s[%s,%s]", total, count, b, c);
    emit_statement(im, "%s[%s,%s] = 0", before, b, c);
    emit_statement(
        im,
        "%s[%s,%s] += select(i64(%s) < i64(%s) | i64(%s) == i64(%s) & i64(%s) < i64(%s), "
        "%s[%s,%s], 0)",
        before, b, c, b2, b, b2, b, c2, c, count, b2, c2);
    emit_statement(im, "%s[%s,%s,%s] = select(%s[%s,%s,%s] >= 0, %s[%s,%s] + i64(%s), -1)", place,
                   t, b, c, s->chosen, t, b, c, before, b, c, t);
    for (int k = 0; k < 3; k++) {
        const char *what = k == 2 ? arena_printf(im->arena, "%s[%s,%s,%s]", s->chosen, t, b, c)
                                  : arena_printf(im->arena, "i64(%s)", k ? c : b);
        emit_statement(im, "%s[%s,%d] = 0", made, v, k);
        emit_statement(im, "%s[%s,%d] += select(%s[%s,%s,%s] == i64(%s), %s, 0)", made, v, k, place,
                       t, b, c, v, what);
    }
    emit_statement(im, "%s = select(i64(%s) < %s[], %s[%s,%s], " NO_ELEMENT ")",
                   tensor_element(im, y, to), v, total, made, v, j);
    return true;
}

bool suppress_data(struct import *im, struct tensor *box, struct tensor *score, int64_t most,
                   bool centre) {
    struct suppressing s = {.im = im,
                            .batches = box->extent[0],
                            .classes = score->extent[1],
                            .boxes = box->extent[1],
                            .most = most};
    if (!box->elements || !score->elements)
        return node_constant(im, TYPE_I64, 2, (int64_t[]){0, 3}, "");
    if (most < 1) return node_fail(im, "no box may be chosen of a class (input 2)");
    if (most > MAX_COUNT / s.batches / s.classes)
        return node_fail(im,
                         "its result has up to %" PRId64 " boxes of each of %" PRId64 " classes, "
                         "which is too many",
                         most, s.classes);
    s.b = axis_for(im, "b", s.batches);
    s.c = axis_for(im, "c", s.classes);
    s.n = axis_for(im, "n", s.boxes);
    if (!corners(&s, box, centre) || !start(&s, score, node_input(im, 4)) ||
        !steps(&s, node_input(im, 3)) || !rows(&s))
        return false;
    diag_warn(im->diags, im->path, 0, 0,
              "%s (NonMaxSuppression): its result has %" PRId64 " rows, as many as may be chosen; "
              "those behind the last one hold " NO_ELEMENT,
              node_shown(im), most * s.batches * s.classes);
    return true;
}
#endif
