/* Is it right? Results against the reference with bounds (ir/bound.h): each element must lie
 * between what every legal implementation of the program gives it. NaN meets NaN, infinity the same
 * infinity, integers themselves. An element whose range hangs on a step that the bounds straddle,
 * and is wide, is undecided, neither right nor wrong, but where it equals the reference. */
#include "command/isamap_int.h"
#include "ir/memory.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    SAMPLES = 4096,
    FEWEST_SAMPLES = 64,      /* however long their sums are */
    SAMPLED_TERMS = 16000000, /* of all elements of an output; each takes about 0.5 us */
    MOST_UNDECIDED = 100      /* 1 in so many outputs */
};
enum {
    MOST_OF_A_STEP = 20 /* times what is interpreted as a whole: of one step of a recurrence */
};
static const int64_t WHOLE_MACS = 1000000000;
static const double WIDE = 0x1p-7;

/* Values of a program's arguments: of all elements, or of samples of each output. */
struct view {
    const struct program *p;
    struct bounds *whole;
    struct sample {
        int64_t *at;
        struct bounded *value;
        int n;
    } * sample;     /* by buffer; NULL: whole */
    int64_t *first; /* by buffer: so many elements are known; NULL: all are */
};

struct reference {
    const struct job *job;
    const struct arrays *in;
    struct view written;
    struct program *part; /* the first steps of a recurrence, or NULL: all of it */
    int64_t steps;
};

/* So many that the statements which write them have no more than SAMPLED_TERMS terms. */
static int most_samples(const struct program *p, int buffer) {
    int64_t terms = 1;
    for (int k = 0; k < p->nstmts; k++) {
        const struct stmt *s = &p->stmt[k];
        if (s->dst.buffer != buffer || p->buffer[buffer].elements < 1) continue;
        int64_t each = stmt_points(p, s) / p->buffer[buffer].elements;
        if (each > terms) terms = each;
    }
    int64_t n = SAMPLED_TERMS / terms;
    return n < FEWEST_SAMPLES ? FEWEST_SAMPLES : n > SAMPLES ? SAMPLES : (int)n;
}

/* First, last, and evenly spread elements with a stride that is odd, so that edges of every
 * dimension occur. */
static int pick_samples(int64_t elements, int most, int64_t *at) {
    int n = elements < most ? (int)elements : most;
    for (int i = 0; i < n; i++)
        at[i] = n < most ? i : (int64_t)((__int128)i * (elements - 1) / (n - 1));
    return n;
}

static void view_free(struct view *v) {
    bounds_free(v->whole);
    for (int b = 0; v->sample && b < v->p->nbuffers; b++) {
        free(v->sample[b].at);
        free(v->sample[b].value);
    }
    free(v->sample);
    free(v->first);
    *v = (struct view){0};
}

static void add_leeway(struct leeway *all, const struct instr *in) {
    for (int o = 0; in->zeroes_subnormals && o < in->noperands; o++)
        if (in->operand[o].role == ROLE_IN) all->zeroed |= UINT32_C(1) << in->operand[o].type;
    if (in->units > all->units[in->rounded]) all->units[in->rounded] = (unsigned char)in->units;
}

static void add_nodes(struct leeway *all, const struct machine *m, const struct node *node, int n) {
    for (int k = 0; k < n; k++) {
        if (node[k].kind == NODE_LOOP) add_nodes(all, m, node[k].loop->body, node[k].loop->nbody);
        if (node[k].kind == NODE_ISSUE) add_leeway(all, &m->instr[node[k].issue->instr]);
    }
}

/* What the instructions of the schedule may do. */
static struct leeway leeway_of(const struct job *j) {
    struct leeway all = {0};
    const struct schedule *s = j->schedule;
    if (!s) return all;
    add_nodes(&all, j->machine, s->prepare.node, s->prepare.nnodes);
    add_nodes(&all, j->machine, s->run.node, s->run.nnodes);
    return all;
}

static bool sample_outputs(isamap *im, const struct job *j, void *const *data, struct view *v) {
    const struct program *p = v->p;
    struct leeway leeway = leeway_of(j);
    v->sample = memory_array((size_t)p->nbuffers + 1, sizeof *v->sample);
    for (int b = 0; b < p->nbuffers; b++) {
        struct sample *x = &v->sample[b];
        if (p->buffer[b].role != ROLE_OUT) continue;
        x->at = memory_array(SAMPLES, sizeof *x->at);
        x->value = memory_array(SAMPLES, sizeof *x->value);
        x->n = pick_samples(p->buffer[b].elements, most_samples(p, b), x->at);
        if (program_sample_bounded(p, data, b, x->at, x->n, &leeway, x->value)) continue;
        diag_line(&im->diags, j->path, 0, 0,
                  "'%s' is too large to verify whole and cannot be sampled", j->name);
        return false;
    }
    return true;
}

static bool view_make(isamap *im, const struct job *j, const struct program *p, void *const *data,
                      bool whole, struct view *v) {
    struct leeway leeway = leeway_of(j);
    *v = (struct view){.p = p};
    if (whole) v->whole = program_run_bounded(p, data, &leeway, &im->diags);
    if (whole ? v->whole != NULL : sample_outputs(im, j, data, v)) return true;
    view_free(v);
    return false;
}

/* The more the better, at least one: so many steps that there are no more products than these. */
static int64_t count_steps(const struct program *p, int64_t macs, int64_t *elements) {
    struct program *one = program_first_steps(p, 1, elements),
                   *two = program_first_steps(p, 2, elements);
    int64_t steps = one != NULL;
    if (two) {
        int64_t first = program_macs(one), each = program_macs(two) - first;
        steps = first + each > macs || each <= 0 ? 1 : 1 + (macs - first) / each;
        if (first > MOST_OF_A_STEP * macs) steps = 0;
    }
    program_free(one);
    program_free(two);
    return steps;
}

/* Of a recurrence that is too long: its first steps. */
static bool reference_part(isamap *im, struct reference *r, int64_t macs) {
    const struct program *p = r->job->program;
    int64_t *elements = memory_array((size_t)p->nbuffers + 1, sizeof *elements);
    r->steps = count_steps(p, macs, elements);
    r->part = r->steps ? program_first_steps(p, r->steps, elements) : NULL;
    struct diags scratch;
    diags_init(&scratch); /* it may need what later rows hold: then it is not this one */
    bool right = r->part && program_verify(r->part, &scratch) &&
                 view_make(im, r->job, r->part, r->in->data, true, &r->written);
    diags_free(&scratch);
    if (right)
        r->written.first = elements;
    else
        free(elements);
    return right;
}

struct reference *reference_make(isamap *im, const struct job *j, const struct arrays *in,
                                 int64_t whole_macs) {
    const struct program *p = j->program;
    struct reference *r = memory_array(1, sizeof *r);
    *r = (struct reference){.job = j, .in = in};
    doing(im, "interpreting");
    bool whole =
        program_macs(p) <= whole_macs && program_macs(p) + program_operations(p) <= 4 * whole_macs;
    if (!whole && reference_part(im, r, whole_macs)) return r;
    program_free(r->part);
    r->part = NULL;
    if (view_make(im, j, p, in->data, whole, &r->written)) return r;
    reference_free(r);
    return NULL;
}

void reference_free(struct reference *r) {
    if (!r) return;
    view_free(&r->written);
    program_free(r->part);
    free(r);
}

static int64_t view_count(const struct view *v, int b) {
    if (v->first) return v->first[b];
    return v->sample ? v->sample[b].n : v->p->buffer[b].elements;
}

static struct bounded view_at(const struct view *v, int b, int64_t i, int64_t *element) {
    *element = v->sample ? v->sample[b].at[i] : i;
    return v->sample ? v->sample[b].value[i] : bounds_at(v->whole, b, i);
}

/* One element: what is allowed and how far the result is from it. */
struct judgement {
    double error, allowed; /* error: from the value as the type holds it */
    double of_bound;
    bool same, undecided;
};

static struct judgement judge_float(enum type t, struct bounded want, double got) {
    double w = type_round(t, want.v.f), widest = fmax(want.below, want.above);
    struct judgement v = {.same = w == got || (isnan(w) && isnan(got)), .error = fabs(got - w)};
    if (isnan(v.error)) v.error = INFINITY;
    if (v.same) v.error = 0;
    v.undecided = want.loose && (isinf(widest) || !(widest <= WIDE * fabs(w)));
    v.allowed = fmax(got < want.v.f ? want.below : want.above, type_tiny(t));
    v.of_bound = v.same ? 0 : fabs(got - want.v.f) / v.allowed;
    if (isnan(v.of_bound)) v.of_bound = INFINITY;
    return v;
}

static struct judgement judge_integer(enum type t, struct bounded want, int64_t got) {
    double widest = fmax(want.below, want.above);
    struct judgement v = {.same = want.v.i == got};
    double w = t == TYPE_U64 ? (double)(uint64_t)want.v.i : (double)want.v.i;
    double g = t == TYPE_U64 ? (double)(uint64_t)got : (double)got;
    v.error = v.same ? 0 : fmax(1, fabs(w - g));
    v.undecided = t == TYPE_BOOL ? widest > 0 : widest > 1;
    v.allowed = g < w ? want.below : want.above;
    v.of_bound = v.same ? 0 : v.error / v.allowed;
    return v;
}

static double magnitude(enum type t, union value v) {
    return fabs(type_is_float(t) ? type_round(t, v.f)
                : t == TYPE_U64  ? (double)(uint64_t)v.i
                                 : (double)v.i);
}

static void note_worst(struct comparison *c, const struct buffer *b, int64_t element,
                       struct bounded want, union value got, const struct judgement *v) {
    c->worst = (struct worst){.buffer = b, .element = element, .got = got, .bound = v->allowed};
    c->worst.expected = want.v;
    if (type_is_float(b->type)) c->worst.expected.f = type_round(b->type, want.v.f);
}

/* rtol < 0: the element's own bound. */
static void compare_element(const struct buffer *b, int64_t element, struct bounded want,
                            union value got, double rtol, struct comparison *c) {
    enum type t = b->type;
    struct judgement v =
        type_is_float(t) ? judge_float(t, want, got.f) : judge_integer(t, want, got.i);
    double m = magnitude(t, want.v);
    c->compared++;
    if (rtol >= 0 && type_is_float(t)) {
        v.undecided = false;
        v.allowed = rtol * m;
        v.of_bound = v.error == 0 ? 0 : v.error / v.allowed;
    }
    if (v.undecided && !v.same) { /* what is equal is right, however wide the bound */
        c->undecided++;
        return;
    }
    double relative = v.error == 0 ? 0 : v.error / fmax(m, DBL_MIN);
    c->max_abs = fmax(c->max_abs, v.error);
    c->max_rel = fmax(c->max_rel, relative);
    if (v.of_bound > c->max_of_bound) {
        c->max_of_bound = v.of_bound;
        note_worst(c, b, element, want, got, &v);
    }
    if (v.of_bound > 1) c->wrong++;
}

/* The bounds of the program as it was compiled are added where there are any: its rewrites may
 * round more. */
static void compare_buffer(const struct reference *r, const struct view *compiled, int b,
                           const void *got, double rtol, struct comparison *c) {
    const struct view *v = &r->written;
    const struct buffer *buffer = &v->p->buffer[b];
    int other = compiled ? program_buffer(compiled->p, buffer->name) : -1;
    if (other >= 0 && view_count(compiled, other) != view_count(v, b)) other = -1;
    for (int64_t i = 0, element; i < view_count(v, b); i++) {
        struct bounded want = view_at(v, b, i, &element);
        if (other >= 0) {
            int64_t same;
            struct bounded x = view_at(compiled, other, i, &same);
            want.below += x.below;
            want.above += x.above;
            want.loose |= x.loose;
        }
        union value g =
            type_load(buffer->type, (const char *)got + (size_t)element * type_size(buffer->type));
        compare_element(buffer, element, want, g, rtol, c);
    }
}

static void compare_all(const isamap *im, const struct reference *r, const struct view *compiled,
                        const struct arrays *got, struct comparison *c) {
    const struct program *p = r->job->program;
    *c = (struct comparison){.done = true};
    for (int b = 0; b < p->nbuffers; b++) {
        enum role role = p->buffer[b].role;
        if (role != ROLE_OUT && (r->written.sample || role != ROLE_INOUT)) continue;
        compare_buffer(r, compiled, b, got->data[b], im->option.rtol, c);
    }
    if (r->written.sample) c->sampled = c->compared;
    c->steps = r->part ? r->steps : 0;
    c->too_many = c->undecided * MOST_UNDECIDED > c->compared;
    c->equal = c->wrong == 0 && !c->too_many;
}

/* What was compiled is a rewritten program, whose own roundings the language or the user allows:
 * their bounds count too. */
void reference_compare(isamap *im, const struct reference *r, const struct arrays *got,
                       struct comparison *c) {
    const struct program *p = r->job->schedule ? r->job->schedule->program : NULL;
    compare_all(im, r, NULL, got, c);
    if (c->equal || r->part || im->option.rtol >= 0 || !p || program_equal(p, r->job->program))
        return;
    struct view compiled;
    void **data = arrays_for_schedule(r->job, r->in);
    struct diags kept = im->diags;
    diags_init(&im->diags);
    bool made = view_make(im, r->job, p, data, !r->written.sample, &compiled);
    diags_free(&im->diags);
    im->diags = kept;
    if (made) compare_all(im, r, &compiled, got, c);
    if (made) view_free(&compiled);
    free(data);
}

bool compare_with_interpreter(isamap *im, const struct job *j, const struct arrays *in,
                              const struct arrays *got, struct comparison *c) {
    struct reference *r = reference_make(im, j, in, WHOLE_MACS);
    *c = (struct comparison){0};
    if (r) reference_compare(im, r, got, c);
    reference_free(r);
    return c->done;
}

/* ---- what is said of it ---- */

static void value_print(struct text *t, enum type type, union value v) {
    if (type_is_float(type))
        text_printf(t, "%.9g", v.f);
    else if (type == TYPE_U64)
        text_printf(t, "%" PRIu64, (uint64_t)v.i);
    else
        text_printf(t, "%" PRId64, v.i);
}

static void index_print(struct text *t, const struct buffer *b, int64_t element) {
    int64_t at[MAX_DIMS];
    for (int d = b->ndims - 1; d >= 0; d--) {
        at[d] = element % b->extent[d];
        element /= b->extent[d];
    }
    text_append(t, "[", 1);
    for (int d = 0; d < b->ndims; d++) text_printf(t, "%s%" PRId64, d ? "," : "", at[d]);
    text_append(t, "]", 1);
}

static double as_number(enum type t, union value v) {
    return type_is_float(t) ? v.f : t == TYPE_U64 ? (double)(uint64_t)v.i : (double)v.i;
}

static void report_worst(struct report *r, const struct comparison *c) {
    const struct worst *w = &c->worst;
    enum type type = w->buffer->type;
    struct text index = {0}, *t = &r->text;
    index_print(&index, w->buffer, w->element);
    report_open(r, "worst", '{');
    report_string(r, "buffer", w->buffer->name);
    report_string(r, "index", index.at);
    report_number(r, "expected", as_number(type, w->expected));
    report_number(r, "got", as_number(type, w->got));
    report_number(r, "bound", w->bound);
    report_close(r);
    text_printf(t, "wrong       %" PRId64 " of %" PRId64 " compared outputs; the worst: %s%s is ",
                c->wrong, c->compared, w->buffer->name, index.at);
    value_print(t, type, w->got);
    text_append(t, ", expected ", 11);
    value_print(t, type, w->expected);
    text_printf(t, " within %.3g\n", w->bound);
    text_free(&index);
}

void report_comparison(struct report *r, const struct comparison *c) {
    if (!c->done) return;
    report_bool(r, "verified", c->equal);
    report_number(r, "max_abs_error", c->max_abs);
    report_number(r, "max_rel_error", c->max_rel);
    report_number(r, "max_error_of_bound", c->max_of_bound);
    report_integer(r, "wrong", c->wrong);
    report_integer(r, "undecided", c->undecided);
    if (c->sampled) report_integer(r, "sampled", c->sampled);
    if (c->steps) report_integer(r, "verified_steps", c->steps);
    text_printf(&r->text,
                "verified    %s: largest difference from the interpreter %.3g (relative %.3g)",
                c->equal ? "yes" : "NO", c->max_abs, c->max_rel);
    if (c->max_of_bound > 0) text_printf(&r->text, ", %.3g of its bound", c->max_of_bound);
    if (c->sampled) text_printf(&r->text, ", on %" PRId64 " sampled outputs", c->sampled);
    if (c->steps) text_printf(&r->text, ", in the first %" PRId64 " steps", c->steps);
    if (c->undecided && !c->too_many)
        text_printf(&r->text, ", %" PRId64 " undecided", c->undecided);
    text_append(&r->text, "\n", 1);
    if (c->wrong) report_worst(r, c);
    if (c->too_many)
        text_printf(&r->text,
                    "undecided   %" PRId64 " of %" PRId64
                    " compared outputs, more than 1 %%: comparisons or roundings in the "
                    "program are closer to their edges than rounding errors; give --rtol, or other "
                    "inputs\n",
                    c->undecided, c->compared);
}
