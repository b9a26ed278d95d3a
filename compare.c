/* Is it right? Results against the reference interpreter (DESIGN §1.6, §2): integers exactly;
 * floats within 4·K·ε·Σ|a||b|, where Σ|a||b| comes from a second interpretation in f64 with
 * magnitudes instead of values. */
#include "isamap_int.h"
#include "ir/memory.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 4096 };
static const int64_t WHOLE_MACS = 1000000000;

/* Operations under which a magnitude bounds every rounding before it. */
static bool bounds_magnitude(enum opcode op) {
    switch (op) {
    case OP_READ:
    case OP_LITERAL:
    case OP_ADD:
    case OP_SUB:
    case OP_MUL:
    case OP_NEG:
    case OP_MIN:
    case OP_MAX:
    case OP_ABS:
    case OP_CAST:
        return true;
    default:
        return false;
    }
}

/* The program in f64 with every subtraction an addition; NULL where it has other operations. */
static struct program *magnitude_program(const struct program *p) {
    for (int i = 0; i < p->nitems; i++)
        if (p->item[i].kind != ITEM_STMT) return NULL;
    for (int s = 0; s < p->nstmts; s++) {
        if (p->stmt[s].combine == COMBINE_MUL) return NULL;
        for (int o = 0; o < p->stmt[s].nops; o++)
            if (!bounds_magnitude(p->stmt[s].op[o].code) || !type_is_float(p->stmt[s].op[o].type))
                return NULL;
    }
    struct program *m = program_copy(p);
    for (int b = 0; b < m->nbuffers; b++) m->buffer[b].type = TYPE_F64;
    for (int s = 0; s < m->nstmts; s++) {
        struct stmt *stmt = &m->stmt[s];
        if (stmt->combine == COMBINE_MIN) stmt->combine = COMBINE_MAX;
        for (int r = 0; r < stmt->nreads; r++) stmt->read[r].fill.f = fabs(stmt->read[r].fill.f);
        for (int o = 0; o < stmt->nops; o++) {
            struct op *op = &stmt->op[o];
            op->type = TYPE_F64;
            if (op->code == OP_SUB)
                op->code = OP_ADD;
            else if (op->code == OP_MIN)
                op->code = OP_MAX;
            else if (op->code == OP_NEG)
                op->code = OP_ABS;
            else if (op->code == OP_LITERAL)
                op->value.f = isfinite(op->value.f) ? fabs(op->value.f) : 0;
        }
    }
    return m;
}

/* The longest chain of additions behind one result: the sum over statements of points per
 * destination element. */
static double chain_length(const struct program *p) {
    double k = 0;
    for (int s = 0; s < p->nstmts; s++) {
        double n =
            (double)stmt_points(p, &p->stmt[s]) / (double)p->buffer[p->stmt[s].dst.buffer].elements;
        k += fmax(1, ceil(n));
    }
    return k;
}

static double coarsest_epsilon(const struct program *p) {
    double e = DBL_EPSILON;
    for (int b = 0; b < p->nbuffers; b++) {
        enum type t = p->buffer[b].type;
        e = fmax(e, t == TYPE_BF16  ? 0x1p-7
                    : t == TYPE_F16 ? 0x1p-10
                    : t == TYPE_F32 ? FLT_EPSILON
                                    : DBL_EPSILON);
    }
    return e;
}

/* f64 arrays of |value| for the arguments. */
static struct arrays magnitudes(const struct job *j, const struct arrays *in) {
    struct arrays m = {.data = calloc((size_t)in->n + 1, sizeof *m.data), .n = in->n};
    for (int b = 0; b < in->n; b++) {
        const struct buffer *buffer = &j->program->buffer[b];
        if (!in->data[b]) continue;
        double *to = m.data[b] = memory_take((size_t)buffer->elements + 1, sizeof *to);
        for (int64_t e = 0; e < buffer->elements; e++) {
            union value v = type_load(buffer->type, (const char *)in->data[b] +
                                                        (size_t)e * type_size(buffer->type));
            to[e] = fabs(type_is_float(buffer->type) ? v.f : (double)v.i);
        }
    }
    return m;
}

struct tolerance {
    double relative, bound;
}; /* allowed = relative * |reference| + bound */

static void compare_element(const struct buffer *b, union value want, union value got,
                            struct tolerance t, struct comparison *c) {
    double w = type_is_float(b->type) ? want.f : (double)want.i,
           g = type_is_float(b->type) ? got.f : (double)got.i;
    bool same = type_is_float(b->type) ? (w == g || (isnan(w) && isnan(g))) : want.i == got.i;
    double error = same ? 0 : fabs(w - g);
    if (isnan(error)) error = INFINITY;
    double relative = same ? 0 : error / fmax(fabs(w), DBL_MIN);
    if (error > c->max_abs) {
        c->max_abs = error;
        c->worst = b->name;
    }
    if (relative > c->max_rel) c->max_rel = relative;
    if (!same && (!type_is_float(b->type) || !(error <= t.relative * fabs(w) + t.bound)))
        c->equal = false;
}

static double largest(const struct buffer *b, const void *data) {
    double m = 0;
    for (int64_t e = 0; e < b->elements; e++) {
        double v = fabs(type_load(b->type, (const char *)data + (size_t)e * type_size(b->type)).f);
        if (isfinite(v) && v > m) m = v;
    }
    return m;
}

/* What the interpreter makes of the same inputs: whole arrays, or samples of each output. */
struct reference {
    const struct job *job;
    struct arrays want, size; /* whole; size.data NULL: no magnitudes */
    struct sample {
        int64_t *at;
        union value *value;
        int n;
    } * sample; /* by buffer; NULL: whole */
};

static bool interpret_whole(isamap *im, const struct arrays *in, struct reference *r) {
    const struct program *p = r->job->program;
    struct program *m = im->option.rtol < 0 ? magnitude_program(p) : NULL;
    r->want = arrays_copy(r->job, in);
    bool ok = program_run(p, r->want.data, NULL, NULL, &im->diags);
    if (ok && m) {
        r->size = magnitudes(r->job, in);
        ok = program_run(m, r->size.data, NULL, NULL, &im->diags);
    }
    if (m) program_free(m);
    return ok;
}

/* First, last, and evenly spread elements with a stride that is odd, so that edges of every
 * dimension occur. */
static int pick_samples(int64_t elements, int64_t *at) {
    int n = elements < SAMPLES ? (int)elements : SAMPLES;
    for (int i = 0; i < n; i++)
        at[i] = n < SAMPLES ? i : (int64_t)((__int128)i * (elements - 1) / (n - 1));
    return n;
}

static bool interpret_samples(isamap *im, const struct arrays *in, struct reference *r) {
    const struct program *p = r->job->program;
    r->sample = calloc((size_t)p->nbuffers + 1, sizeof *r->sample);
    for (int b = 0; b < p->nbuffers; b++) {
        struct sample *x = &r->sample[b];
        if (p->buffer[b].role != ROLE_OUT) continue;
        x->at = malloc(SAMPLES * sizeof *x->at);
        x->value = malloc(SAMPLES * sizeof *x->value);
        x->n = pick_samples(p->buffer[b].elements, x->at);
        if (program_sample(p, in->data, b, x->at, x->n, x->value)) continue;
        diag_line(&im->diags, r->job->path, 0, 0,
                  "'%s' is too large to verify whole and cannot be sampled", r->job->name);
        return false;
    }
    return true;
}

struct reference *reference_make(isamap *im, const struct job *j, const struct arrays *in,
                                 int64_t whole_macs) {
    const struct program *p = j->program;
    struct reference *r = calloc(1, sizeof *r);
    r->job = j;
    doing(im, "interpreting");
    bool whole =
        program_macs(p) <= whole_macs && program_macs(p) + program_operations(p) <= 4 * whole_macs;
    if (whole ? interpret_whole(im, in, r) : interpret_samples(im, in, r)) return r;
    reference_free(r);
    return NULL;
}

void reference_free(struct reference *r) {
    if (!r) return;
    if (r->want.data) arrays_free(&r->want);
    if (r->size.data) arrays_free(&r->size);
    for (int b = 0; r->sample && b < r->job->program->nbuffers; b++) {
        free(r->sample[b].at);
        free(r->sample[b].value);
    }
    free(r->sample);
    free(r);
}

static union value element(const struct buffer *b, const void *data, int64_t e) {
    return type_load(b->type, (const char *)data + (size_t)e * type_size(b->type));
}

static void compare_buffer(const isamap *im, const struct reference *r, int b, const void *got,
                           double unit, struct comparison *c) {
    const struct buffer *buffer = &r->job->program->buffer[b];
    bool exact = !type_is_float(buffer->type);
    double scale = exact || r->size.data ? 0 : largest(buffer, r->want.data[b]);
    for (int64_t e = 0; e < buffer->elements; e++) {
        struct tolerance t = {.relative = fmax(im->option.rtol, 0)};
        if (im->option.rtol < 0)
            t.bound = unit * (r->size.data ? ((double *)r->size.data[b])[e] : scale);
        compare_element(buffer, element(buffer, r->want.data[b], e), element(buffer, got, e), t, c);
    }
}

static void compare_samples(const isamap *im, const struct reference *r, int b, const void *got,
                            double unit, struct comparison *c) {
    const struct buffer *buffer = &r->job->program->buffer[b];
    const struct sample *x = &r->sample[b];
    double scale = 0;
    for (int i = 0; i < x->n && type_is_float(buffer->type); i++)
        scale = fmax(scale, fabs(x->value[i].f));
    struct tolerance t = {.relative = fmax(im->option.rtol, 0),
                          .bound = im->option.rtol < 0 ? unit * scale : 0};
    for (int i = 0; i < x->n; i++)
        compare_element(buffer, x->value[i], element(buffer, got, x->at[i]), t, c);
    c->sampled += x->n;
}

void reference_compare(const isamap *im, const struct reference *r, const struct arrays *got,
                       struct comparison *c) {
    const struct program *p = r->job->program;
    double unit = 4 * chain_length(p) * coarsest_epsilon(p);
    *c = (struct comparison){.done = true, .equal = true};
    for (int b = 0; b < p->nbuffers; b++) {
        enum role role = p->buffer[b].role;
        if (r->sample && role == ROLE_OUT)
            compare_samples(im, r, b, got->data[b], unit, c);
        else if (!r->sample && (role == ROLE_OUT || role == ROLE_INOUT))
            compare_buffer(im, r, b, got->data[b], unit, c);
    }
}

bool compare_with_interpreter(isamap *im, const struct job *j, const struct arrays *in,
                              const struct arrays *got, struct comparison *c) {
    struct reference *r = reference_make(im, j, in, WHOLE_MACS);
    *c = (struct comparison){0};
    if (r) reference_compare(im, r, got, c);
    reference_free(r);
    return c->done;
}
