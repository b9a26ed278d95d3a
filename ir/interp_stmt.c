#include "ir/interp_int.h"

#include <string.h>

static uint64_t row_times(const int64_t *row, int axis, int64_t stride) {
    return (uint64_t)row[axis] * (uint64_t)stride;
}

/* Form f := row * stride, added to what is there. Arithmetic wraps: a form outside its buffer is
 * never used. */
static void form_add(struct walk *w, int f, const int64_t *row, int64_t stride) {
    uint64_t start = row_times(row, w->p->naxes, stride);
    for (int a = 0; a < w->p->naxes; a++)
        start += row_times(row, a, stride) * (uint64_t)w->axis_value[a];
    w->form[f] = (int64_t)((uint64_t)w->form[f] + start);
    for (int k = 0; k < w->naxes; k++) {
        int64_t *step = &w->step[k * w->nforms + f];
        *step = (int64_t)((uint64_t)*step + row_times(row, w->axis[k], stride));
    }
}

static void lane_open(struct walk *w, struct lane *l, const struct access *a, void *const *data,
                      int *next) {
    const struct program *p = w->p;
    l->access = a;
    l->buffer = &p->buffer[a->buffer];
    l->data = data[a->buffer];
    l->flat = (*next)++;
    l->dim = a->has_fill ? *next : -1;
    int64_t stride = 1;
    for (int d = l->buffer->ndims - 1; d >= 0; d--) {
        const int64_t *row = a->coef + (size_t)d * ((size_t)p->naxes + 1);
        form_add(w, l->flat, row, stride);
        if (a->has_fill) form_add(w, *next + d, row, 1);
        stride *= l->buffer->extent[d];
    }
    if (a->has_fill) *next += l->buffer->ndims;
}

static int count_forms(const struct program *p, const struct stmt *s) {
    int n = 1 + s->nreads + s->nwhere;
    for (int r = 0; r < s->nreads; r++)
        if (s->read[r].has_fill) n += p->buffer[s->read[r].buffer].ndims;
    return n;
}

void walk_open(struct walk *w, const struct program *p, const struct stmt *s, void *const *data,
               const int64_t *time) {
    *w = (struct walk){.p = p, .s = s};
    arena_init(&w->arena);
    w->axis = arena_array(&w->arena, MAX_AXES, sizeof *w->axis);
    w->axis_value = arena_array(&w->arena, MAX_AXES, sizeof *w->axis_value);
    for (int a = 0; a < p->naxes; a++) {
        if (s->axes >> a & 1)
            w->axis[w->naxes++] = a;
        else
            w->axis_value[a] = time ? time[a] : 0;
    }
    size_t forms = (size_t)count_forms(p, s);
    w->nforms = (int)forms;
    w->at = arena_array(&w->arena, (size_t)w->naxes, sizeof *w->at);
    w->form = arena_array(&w->arena, forms, sizeof *w->form);
    w->step = arena_array(&w->arena, forms * (size_t)w->naxes, sizeof *w->step);
    w->read = arena_array(&w->arena, (size_t)s->nreads, sizeof *w->read);
    w->value = arena_array(&w->arena, (size_t)s->nops, sizeof *w->value);
    int next = 0;
    lane_open(w, &w->dst, &s->dst, data, &next);
    for (int r = 0; r < s->nreads; r++) lane_open(w, &w->read[r], &s->read[r], data, &next);
    w->where = next;
    for (int k = 0; k < s->nwhere; k++) form_add(w, next++, s->where[k].coef, 1);
}

void walk_close(struct walk *w) {
    arena_free(&w->arena);
}

static void walk_forward(struct walk *w, int axis, int64_t n) {
    const int64_t *step = &w->step[axis * w->nforms];
    for (int f = 0; f < w->nforms; f++)
        w->form[f] = (int64_t)((uint64_t)w->form[f] + (uint64_t)step[f] * (uint64_t)n);
}

bool walk_carry(struct walk *w, int from) {
    for (int k = from; k >= 0; k--) {
        int64_t extent = w->p->axis[w->axis[k]].extent;
        if (++w->at[k] < extent) {
            walk_forward(w, k, 1);
            return true;
        }
        walk_forward(w, k, 1 - extent);
        w->at[k] = 0;
    }
    return false;
}

static union value lane_load(const struct walk *w, const struct lane *l) {
    for (int d = 0; l->dim >= 0 && d < l->buffer->ndims; d++) {
        int64_t x = w->form[l->dim + d];
        if (x < 0 || x >= l->buffer->extent[d]) return l->access->fill;
    }
    enum type t = l->buffer->type;
    return type_load(t, l->data + (size_t)w->form[l->flat] * type_size(t));
}

static union value axis_as(enum type t, int64_t i) {
    union value v = {.i = i};
    return type_convert(t, TYPE_I64, v);
}

static void compute(struct walk *w) {
    const struct stmt *s = w->s;
    union value arg[3];
    for (int n = 0; n < s->nops; n++) {
        const struct op *o = &s->op[n];
        int arity = op_info[o->code].arity;
        switch (o->code) {
        case OP_READ:
            w->value[n] = lane_load(w, &w->read[o->read]);
            continue;
        case OP_LITERAL:
            w->value[n] = o->value;
            continue;
        case OP_AXIS:
            w->value[n] = axis_as(o->type, w->axis_value[o->axis]);
            continue;
        default:
            break;
        }
        for (int k = 0; k < arity; k++) arg[k] = w->value[o->arg[k]];
        w->value[n] = op_eval(o->code, o->type, s->op[o->arg[arity - 1]].type, arg);
    }
}

static void store(struct walk *w) {
    enum type t = w->dst.buffer->type;
    enum type in = t == TYPE_F16 || t == TYPE_BF16 ? TYPE_F32 : t;
    unsigned char *at = w->dst.data + (size_t)w->form[w->dst.flat] * type_size(t);
    union value v = w->value[w->s->nops - 1];
    if (w->s->combine != COMBINE_SET) {
        union value arg[2] = {type_load(t, at), v};
        v = op_eval(combiner_op(w->s->combine), in, in, arg);
    }
    type_store(t, at, v);
}

bool walk_inside(const struct walk *w) {
    for (int f = w->where; f < w->nforms; f++)
        if (w->form[f] < 0) return false;
    return true;
}

bool walk_empty(const struct walk *w) {
    for (int k = 0; k < w->naxes; k++)
        if (w->p->axis[w->axis[k]].extent == 0) return true;
    return false;
}

void walk_run(struct walk *w) {
    if (walk_empty(w)) return;
    do {
        for (int k = 0; k < w->naxes; k++)
            w->axis_value[w->axis[k]] = w->at[k] + (w->from ? w->from[w->axis[k]] : 0);
        if (!walk_inside(w)) continue;
        compute(w);
        store(w);
    } while (walk_carry(w, w->naxes - 1));
}

void stmt_run_at(const struct program *p, const struct stmt *s, void *const *data,
                 const int64_t *time) {
    stmt_run_part(p, s, data, time, NULL);
}

void stmt_run_part(const struct program *p, const struct stmt *s, void *const *data,
                   const int64_t *time, const int64_t *from) {
    struct walk w;
    walk_open(&w, p, s, data, time);
    w.from = from;
    if (walk_empty(&w) || (!walk_sum_of_products(&w) && !walk_copy(&w))) walk_run(&w);
    walk_close(&w);
}

void stmt_run_plainly(const struct program *p, const struct stmt *s, void *const *data) {
    struct walk w;
    walk_open(&w, p, s, data, NULL);
    walk_run(&w);
    walk_close(&w);
}
