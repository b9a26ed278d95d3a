/* `run --compare FILE.npz`: the tensors of a model that the file holds, beside what the compiled
 * program makes of the file's inputs. */
#include "command/isamap_int.h"
#include "ir/bound.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ZERO_UNITS = 16 }; /* unit roundoffs */

/* How far two arrays are from each other. */
struct distance {
    double most, largest; /* the greatest difference; the greatest magnitude that was expected */
    int64_t at;           /* of the greatest difference */
};

static double element_of(enum type t, const void *data, int64_t i) {
    union value v = type_load(t, (const char *)data + (size_t)i * type_size(t));
    return type_is_float(t) ? v.f : type_convert(TYPE_F64, t, v).f;
}

static double magnitude_of(const struct array *x) {
    double most = 0;
    for (int64_t i = 0; i < x->elements; i++) {
        double v = fabs(element_of(x->type, x->data, i));
        if (isfinite(v)) most = fmax(most, v);
    }
    return most;
}

static struct distance distance_of(const struct array *want, const void *got) {
    struct distance d = {.largest = magnitude_of(want), .at = -1};
    for (int64_t i = 0; i < want->elements; i++) {
        double w = element_of(want->type, want->data, i), g = element_of(want->type, got, i);
        double apart = w == g || (isnan(w) && isnan(g)) ? 0 : fabs(w - g);
        if (isnan(apart)) apart = INFINITY;
        if (apart > d.most) d.most = apart, d.at = i;
    }
    return d;
}

static bool same_shape(const struct array *a, const struct buffer *b) {
    bool same = a->type == b->type && a->ndims == b->ndims;
    for (int d = 0; same && d < b->ndims; d++) same = a->extent[d] == b->extent[d];
    return same;
}

/* The model's results by the place of their buffers, which is that of the nodes. */
static int *in_order(struct job *j, int *n) {
    const struct onnx_model *m = j->model;
    int *at = arena_array(&j->arena, (size_t)j->program->nbuffers, sizeof *at);
    int *list = arena_array(&j->arena, (size_t)m->noutputs, sizeof *list);
    for (int b = 0; b < j->program->nbuffers; b++) at[b] = -1;
    for (int k = 0; k < m->noutputs; k++) at[program_buffer(j->program, m->output[k].buffer)] = k;
    *n = 0;
    for (int b = 0; b < j->program->nbuffers; b++)
        if (at[b] >= 0) list[(*n)++] = at[b];
    return list;
}

struct tensors {
    int compared, differ, reshaped;
    const char *first; /* the name of the first that differs */
    struct distance by;
    int buffer;
};

static void report_tensor(struct report *r, const char *name, const struct distance *d,
                          bool differs) {
    report_open(r, NULL, '{');
    report_string(r, "name", name);
    report_number(r, "max_difference", d->most);
    report_number(r, "max_expected", d->largest);
    report_bool(r, "differs", differs);
    report_close(r);
}

static void say_tensors(struct report *r, const struct job *j, const struct tensors *t) {
    int kind = t->first ? j->model->made_by[t->buffer] : -1;
    text_printf(&r->text, "compared    %d tensors with the file's, %d differ", t->compared,
                t->differ);
    if (t->reshaped) text_printf(&r->text, ", %d have another type or shape", t->reshaped);
    text_append(&r->text, "\n", 1);
    if (t->first)
        text_printf(&r->text,
                    "differs     first '%s'%s%s%s: by %.3g at element %" PRId64
                    ", where the largest value is %.3g\n",
                    t->first, kind >= 0 ? " (" : "", kind >= 0 ? j->model->kind[kind].name : "",
                    kind >= 0 ? ")" : "", t->by.most, t->by.at, t->by.largest);
}

/* The greatest magnitude of the file's floats. */
static double largest_of(const struct npz *file) {
    double most = 0;
    for (int k = 0; k < file->n; k++)
        if (type_is_float(file->array[k].type)) most = fmax(most, magnitude_of(&file->array[k]));
    return most;
}

/* What a tensor's values may be apart. One that is expected to be 0 everywhere says nothing of the
 * magnitudes that it was computed from: then it is some roundings of the file's largest value. */
static double allowed(const struct array *want, double largest, double rtol, double of_file) {
    if (!type_is_float(want->type)) return 0;
    return largest > 0 ? rtol * largest : ZERO_UNITS * type_unit(want->type) * of_file;
}

bool report_tensors(isamap *im, struct job *j, const struct arrays *got) {
    struct report *r = &im->report;
    struct tensors t = {0};
    double rtol = im->option.rtol >= 0 ? im->option.rtol : 1e-4;
    double of_file = largest_of(&j->expected);
    int n, *list = in_order(j, &n);
    report_open(r, "tensors", '[');
    for (int k = 0; k < n; k++) {
        const struct onnx_name *name = &j->model->output[list[k]];
        const struct array *want = npz_find(&j->expected, name->onnx);
        int b = program_buffer(j->program, name->buffer);
        if (!want) continue;
        if (!same_shape(want, &j->program->buffer[b])) {
            t.reshaped++;
            continue;
        }
        struct distance d = distance_of(want, got->data[b]);
        bool differs = d.most > allowed(want, d.largest, rtol, of_file);
        report_tensor(r, name->onnx, &d, differs);
        t.compared++;
        t.differ += differs;
        if (!differs || t.first) continue;
        t.first = name->onnx;
        t.by = d;
        t.buffer = b;
    }
    report_close(r);
    if (t.first) report_string(r, "first_that_differs", t.first);
    say_tensors(r, j, &t);
    return !t.differ && !t.reshaped;
}
