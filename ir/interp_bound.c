#include "ir/interp_bound.h"
#include "ir/memory.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const int64_t memory_limit = (int64_t)16 << 30;
enum { UNKNOWN_GRANULE = ANY_GRANULE + 1 };

static float upwards(double x) {
    float f = (float)x;
    return (double)f < x ? nextafterf(f, INFINITY) : f;
}

struct shade shade_of(const struct bounded *x) {
    float below = upwards(x->below);
    return (struct shade){x->v, x->loose ? -below : below, upwards(x->above)};
}

struct bounded shade_open(const struct shade *s) {
    return (struct bounded){
        .v = s->v, .below = fabsf(s->below), .above = s->above, .loose = signbit(s->below)};
}

struct bounded shadow_load(const struct shadow *f, enum type t, int64_t element) {
    if (f->at) return shade_open(&f->at[element]);
    return bounded_exactly(type_load(t, f->native + (size_t)element * type_size(t)));
}

int shadow_granule(struct shadow *f, const struct buffer *buffer) {
    if (f->granule != UNKNOWN_GRANULE) return f->granule;
    size_t size = type_size(buffer->type);
    int least = ANY_GRANULE;
    for (int64_t e = 0; e < buffer->elements; e++) {
        union value v = type_load(buffer->type, f->native + (size_t)e * size);
        int g = value_granule(type_is_float(buffer->type) ? v.f : (double)v.i);
        if (g < least) least = g;
    }
    return f->granule = least;
}

/* ---- statements ---- */

static bool is_step(const struct op *o) {
    return op_info[o->code].error == ERROR_STEP || op_info[o->code].error == ERROR_COMPARE ||
           (o->code == OP_CAST && !type_is_float(o->type));
}

static bool keeps_values(const struct op *o) {
    return o->code == OP_MIN || o->code == OP_MAX || o->code == OP_CLIP || o->code == OP_ABS ||
           o->code == OP_NEG || o->code == OP_SELECT || o->code == OP_CAST;
}

bool *stmt_crisp(struct arena *arena, const struct program *p, const struct stmt *s) {
    bool *crisp = arena_array(arena, (size_t)s->nops + 1, sizeof *crisp);
    (void)p;
    for (int n = 0; n < s->nops; n++) crisp[n] = n < s->nops - 1;
    for (int n = s->nops - 1; n >= 0; n--) {
        const struct op *o = &s->op[n];
        for (int k = 0; k < op_info[o->code].arity; k++)
            crisp[o->arg[k]] &= is_step(o) || (keeps_values(o) && crisp[n]);
    }
    return crisp;
}

/* Whether results are exact where operands are. */
static bool stmt_is_exact(const struct program *p, const struct stmt *s, const bool *crisp) {
    bool is_float = type_is_float(p->buffer[s->dst.buffer].type);
    if (is_float && (s->combine == COMBINE_ADD || s->combine == COMBINE_MUL)) return false;
    for (int n = 0; n < s->nops; n++) {
        const struct op *o = &s->op[n];
        int units = op_info[o->code].units;
        if (units && type_is_float(o->type) && !(units == 1 && crisp[n])) return false;
    }
    return true;
}

double stmt_unit(const struct program *p, const struct stmt *s) {
    double unit = 0;
    for (int r = 0; r < s->nreads; r++)
        unit = fmax(unit, type_unit(p->buffer[s->read[r].buffer].type));
    return unit;
}

static bool no_room(struct bounds *b, int buffer) {
    char *text =
        arena_printf(&b->diags->arena, "program '%s': no memory for '%s' with its error bounds",
                     b->p->name, b->p->buffer[buffer].name);
    diag_line(b->diags, b->p->source.file, 0, 0, "%s", text);
    return false;
}

static bool room(struct bounds *b, int buffer, size_t size, void **at) {
    int64_t n = b->p->buffer[buffer].elements;
    *at = n < memory_limit / (int64_t)size ? memory_take((size_t)n + 1, size) : NULL;
    return *at || no_room(b, buffer);
}

/* Room for exact elements that a statement writes; what is there stays. */
static bool own_native(struct bounds *b, int buffer) {
    struct shadow *f = &b->buffer[buffer];
    const struct buffer *x = &b->p->buffer[buffer];
    void *to;
    f->granule = UNKNOWN_GRANULE;
    if (f->owned) return true;
    if (!room(b, buffer, type_size(x->type), &to)) return false;
    if (f->native) memcpy(to, f->native, (size_t)x->elements * type_size(x->type));
    f->native = to;
    return f->owned = true;
}

static bool own_shades(struct bounds *b, int buffer) {
    struct shadow *f = &b->buffer[buffer];
    const struct buffer *x = &b->p->buffer[buffer];
    void *to;
    if (f->at) return true;
    if (!room(b, buffer, sizeof *f->at, &to)) return false;
    struct shade *at = to;
    for (int64_t e = 0; f->native && e < x->elements; e++)
        at[e].v = type_load(x->type, f->native + (size_t)e * type_size(x->type));
    if (f->owned) memory_give(f->native);
    *f = (struct shadow){.at = at, .granule = UNKNOWN_GRANULE};
    return true;
}

/* A buffer all of whose elements turned out exact is kept so. */
static bool settle_shades(struct bounds *b, int buffer) {
    struct shadow *f = &b->buffer[buffer];
    const struct buffer *x = &b->p->buffer[buffer];
    struct shade *at = f->at;
    for (int64_t e = 0; e < x->elements; e++)
        if (at[e].below != 0 || at[e].above != 0) return true;
    f->at = NULL;
    if (!own_native(b, buffer)) return memory_give(at), false;
    for (int64_t e = 0; e < x->elements; e++)
        type_store(x->type, f->native + (size_t)e * type_size(x->type), at[e].v);
    memory_give(at);
    return true;
}

/* The axes that are summed over become the innermost, the longest of them last unless their order
 * counts. */
static void sum_inside(struct walk *w, bool any_order) {
    for (int last = w->naxes - 1, k = last - 1; k >= 0; k--) {
        if (w->step[k * w->nforms + w->dst.flat] != 0) continue;
        for (int i = k; i < last; i++) {
            int axis = w->axis[i];
            w->axis[i] = w->axis[i + 1];
            w->axis[i + 1] = axis;
            for (int f = 0; f < w->nforms; f++) {
                int64_t step = w->step[i * w->nforms + f];
                w->step[i * w->nforms + f] = w->step[(i + 1) * w->nforms + f];
                w->step[(i + 1) * w->nforms + f] = step;
            }
        }
        if (w->step[last * w->nforms + w->dst.flat] == 0) last--;
    }
    int longest = w->naxes - 1, first = w->naxes;
    while (first > 0 && w->step[(first - 1) * w->nforms + w->dst.flat] == 0) first--;
    for (int k = first; any_order && k < w->naxes; k++)
        if (w->p->axis[w->axis[k]].extent > w->p->axis[w->axis[longest]].extent) longest = k;
    if (first == w->naxes || longest == w->naxes - 1 || !any_order) return;
    int end = w->naxes - 1, axis = w->axis[longest];
    w->axis[longest] = w->axis[end];
    w->axis[end] = axis;
    for (int f = 0; f < w->nforms; f++) {
        int64_t step = w->step[longest * w->nforms + f];
        w->step[longest * w->nforms + f] = w->step[end * w->nforms + f];
        w->step[end * w->nforms + f] = step;
    }
}

static struct bounded load(const struct bound_walk *b, int read) {
    const struct walk *w = &b->w;
    const struct lane *l = &w->read[read];
    for (int d = 0; l->dim >= 0 && d < l->buffer->ndims; d++) {
        int64_t x = w->form[l->dim + d];
        if (x < 0 || x >= l->buffer->extent[d]) return bounded_exactly(l->access->fill);
    }
    return shadow_load(b->read[read], l->buffer->type, w->form[l->flat]);
}

/* All ops but the last where the sum of products takes its factors. */
static void compute(struct bound_walk *b) {
    const struct walk *w = &b->w;
    const struct stmt *s = w->s;
    struct bounded arg[3];
    for (int n = 0; n < s->nops - b->product; n++) {
        const struct op *o = &s->op[n];
        int arity = op_info[o->code].arity;
        union value v = {.i = o->code == OP_AXIS ? w->axis_value[o->axis] : 0};
        switch (o->code) {
        case OP_READ:
            b->value[n] = load(b, o->read);
            continue;
        case OP_LITERAL:
            b->value[n] = bounded_exactly(o->value);
            continue;
        case OP_AXIS:
            b->value[n] = bounded_exactly(type_convert(o->type, TYPE_I64, v));
            continue;
        default:
            break;
        }
        for (int k = 0; k < arity; k++) arg[k] = b->value[o->arg[k]];
        b->value[n] = bounded_eval_within(b->leeway, o->code, o->type,
                                          s->op[o->arg[arity - 1]].type, arg, b->crisp[n]);
    }
}

static void add_term(struct bound_walk *b, struct bounded_sum *sum) {
    const struct stmt *s = b->w.s;
    const struct op *root = &s->op[s->nops - 1];
    if (b->product)
        bounded_sum_product(sum, &b->value[root->arg[0]], &b->value[root->arg[1]], root->type);
    else
        bounded_sum_add(sum, &b->value[s->nops - 1]);
}

static void put(struct bound_walk *b, int64_t element, struct bounded x) {
    b->dst->at[element] = shade_of(&x);
}

/* Points that meet in one element follow each other where the axes allow it; where they do not, the
 * sum begins again from what is there. */
static void run_sums(struct bound_walk *b) {
    struct walk *w = &b->w;
    enum type t = w->dst.buffer->type;
    int64_t open = -1;
    struct bounded_sum sum = {0};
    do {
        for (int k = 0; k < w->naxes; k++) w->axis_value[w->axis[k]] = w->at[k];
        if (!walk_inside(w)) continue;
        int64_t element = w->form[w->dst.flat];
        if (element != open || b->own) {
            if (open >= 0) put(b, open, bounded_sum_close(&sum));
            bounded_sum_open(&sum, t, b->unit, shade_open(&b->dst->at[element]));
            open = element;
        }
        compute(b);
        add_term(b, &sum);
    } while (walk_carry(w, w->naxes - 1));
    if (open >= 0) put(b, open, bounded_sum_close(&sum));
}

static void run_points(struct bound_walk *b) {
    struct walk *w = &b->w;
    const struct stmt *s = w->s;
    enum type t = w->dst.buffer->type, in = type_is_float(t) ? type_computed(t) : t;
    do {
        for (int k = 0; k < w->naxes; k++) w->axis_value[w->axis[k]] = w->at[k];
        if (!walk_inside(w)) continue;
        compute(b);
        int64_t element = w->form[w->dst.flat];
        struct bounded x = b->value[s->nops - 1];
        if (s->combine == COMBINE_ADD) {
            struct bounded sum = shade_open(&b->dst->at[element]);
            bounded_add_integer(t, &sum, &x);
            x = sum;
        } else if (s->combine != COMBINE_SET) {
            struct bounded arg[2] = {shade_open(&b->dst->at[element]), x};
            x = bounded_eval(combiner_op(s->combine), in, in, arg, false);
        }
        put(b, element, bounded_store(t, x));
    } while (walk_carry(w, w->naxes - 1));
}

static void run_bounded(struct bounds *r, const struct stmt *s, const bool *crisp) {
    struct bound_walk b = {.dst = &r->buffer[s->dst.buffer],
                           .leeway = &r->leeway,
                           .crisp = crisp,
                           .unit = stmt_unit(r->p, s)};
    void **none = memory_array((size_t)r->p->nbuffers + 1, sizeof *none);
    for (int k = 0; k < r->p->nbuffers; k++) none[k] = r->buffer[k].native;
    walk_open(&b.w, r->p, s, none, r->time);
    free(none);
    b.read = arena_array(&b.w.arena, (size_t)s->nreads + 1, sizeof *b.read);
    b.value = arena_array(&b.w.arena, (size_t)s->nops + 1, sizeof *b.value);
    for (int k = 0; k < s->nreads; k++) {
        b.read[k] = &r->buffer[s->read[k].buffer];
        b.own |= s->read[k].buffer == s->dst.buffer;
    }
    bool sums = s->combine == COMBINE_ADD && type_is_float(b.w.dst.buffer->type);
    b.product = sums && s->op[s->nops - 1].code == OP_MUL;
    if (!walk_empty(&b.w)) {
        if (s->combine == COMBINE_ADD) sum_inside(&b.w, !b.own);
        if (sums ? !walk_bounded_products(r, &b) : !walk_bounded_integers(&b))
            (sums ? run_sums : run_points)(&b);
    }
    walk_close(&b.w);
}

static bool reads_are_exact(const struct bounds *r, const struct stmt *s) {
    for (int k = 0; k < s->nreads; k++)
        if (r->buffer[s->read[k].buffer].at) return false;
    return !r->buffer[s->dst.buffer].at;
}

static bool run_exactly(struct bounds *r, const struct stmt *s) {
    if (!own_native(r, s->dst.buffer)) return false;
    void **data = memory_array((size_t)r->p->nbuffers + 1, sizeof *data);
    for (int k = 0; k < r->p->nbuffers; k++) data[k] = r->buffer[k].native;
    stmt_run_at(r->p, s, data, r->time);
    free(data);
    return true;
}

static bool is_zeroed(enum type t, struct bounded x) {
    struct bounded y = bounded_zeroed(t, x);
    return y.below != x.below || y.above != x.above;
}

/* The buffer as factors have it that may count as 0 below the normal range. */
static bool zero_factors(struct bounds *r, int buffer) {
    struct shadow *f = &r->buffer[buffer];
    const struct buffer *x = &r->p->buffer[buffer];
    int64_t e = 0;
    if (!type_is_float(x->type) || !(r->leeway.zeroed >> x->type & 1) || (!f->at && !f->native))
        return true;
    while (e < x->elements && !is_zeroed(x->type, shadow_load(f, x->type, e))) e++;
    if (e == x->elements) return true;
    if (!own_shades(r, buffer)) return false;
    for (; e < x->elements; e++) {
        struct bounded y = bounded_zeroed(x->type, shade_open(&f->at[e]));
        f->at[e] = shade_of(&y);
    }
    return true;
}

static bool run_stmt(struct bounds *r, const struct stmt *s) {
    struct arena arena;
    arena_init(&arena);
    bool *crisp = stmt_crisp(&arena, r->p, s), ok = true;
    bool products = s->combine == COMBINE_ADD && s->op[s->nops - 1].code == OP_MUL &&
                    type_is_float(r->p->buffer[s->dst.buffer].type);
    for (int k = 0; ok && products && k < s->nreads; k++) ok = zero_factors(r, s->read[k].buffer);
    if (ok && reads_are_exact(r, s) && stmt_is_exact(r->p, s, crisp))
        ok = run_exactly(r, s);
    else if (ok) {
        for (int k = 0; ok && k < s->nreads; k++)
            if (!r->buffer[s->read[k].buffer].at && !r->buffer[s->read[k].buffer].native)
                ok = own_native(r, s->read[k].buffer);
        ok = ok && own_shades(r, s->dst.buffer);
        if (ok) run_bounded(r, s, crisp);
        ok = ok && settle_shades(r, s->dst.buffer);
    }
    arena_free(&arena);
    return ok;
}

/* ---- the program ---- */

static bool copy_buffer(struct bounds *r, int to, int from) {
    struct shadow *f = &r->buffer[from], *t = &r->buffer[to];
    int64_t n = r->p->buffer[from].elements;
    if (f->at) {
        if (!own_shades(r, to)) return false;
        memcpy(t->at, f->at, (size_t)n * sizeof *f->at);
        return true;
    }
    memory_give(t->at);
    t->at = NULL;
    if (!own_native(r, to)) return false;
    if (f->native) memcpy(t->native, f->native, (size_t)n * type_size(r->p->buffer[from].type));
    return true;
}

static bool run_items(struct bounds *r, const struct item *item, int n, bool top);

static bool run_recur(struct bounds *r, const struct recur *q) {
    const struct axis *a = &r->p->axis[q->axis];
    bool ok = true;
    for (int k = 0; ok && k < q->nstates; k++)
        ok = copy_buffer(r, q->state[k].current, q->state[k].from);
    for (int64_t t = a->first; ok && t < a->extent; t++) {
        r->time[q->axis] = q->reverse ? a->extent - 1 - t + a->first : t;
        ok = run_items(r, q->item, q->nitems, false);
        for (int k = 0; ok && k < q->nstates; k++)
            ok = copy_buffer(r, q->state[k].current, q->state[k].next);
    }
    for (int k = 0; ok && k < q->nstates; k++)
        if (q->state[k].to >= 0) ok = copy_buffer(r, q->state[k].to, q->state[k].current);
    return ok;
}

static void shadow_free(struct shadow *f) {
    if (f->owned) memory_give(f->native);
    memory_give(f->at);
    *f = (struct shadow){.granule = UNKNOWN_GRANULE};
}

static void end_temporaries(struct bounds *r, int item) {
    for (int b = 0; b < r->p->nbuffers; b++)
        if (r->last_item[b] == item &&
            (r->p->buffer[b].role == ROLE_TEMP || r->p->buffer[b].role == ROLE_STATE))
            shadow_free(&r->buffer[b]);
}

static bool run_items(struct bounds *r, const struct item *item, int n, bool top) {
    bool ok = true;
    for (int k = 0; ok && k < n; k++) {
        switch (item[k].kind) {
        case ITEM_STMT:
            ok = run_stmt(r, &r->p->stmt[item[k].stmt]);
            break;
        case ITEM_RECUR:
            ok = run_recur(r, item[k].recur);
            break;
        case ITEM_CALL:
            diag_line(r->diags, r->p->source.file, 0, 0,
                      "program '%s': '%s' is an opaque call: its results have no reference",
                      r->p->name, item[k].call->function);
            return false;
        }
        if (top) end_temporaries(r, k);
    }
    return ok;
}

static void note_last(struct bounds *r, const struct item *item, int n, int at) {
    for (int k = 0; k < n; k++) {
        int here = at < 0 ? k : at;
        if (item[k].kind == ITEM_STMT) {
            const struct stmt *s = &r->p->stmt[item[k].stmt];
            r->last_item[s->dst.buffer] = here;
            for (int i = 0; i < s->nreads; i++) r->last_item[s->read[i].buffer] = here;
        } else if (item[k].kind == ITEM_RECUR) {
            const struct recur *q = item[k].recur;
            note_last(r, q->item, q->nitems, here);
            for (int i = 0; i < q->nstates; i++) {
                const struct recur_state *x = &q->state[i];
                r->last_item[x->current] = r->last_item[x->next] = r->last_item[x->from] = here;
            }
        }
    }
}

struct bounds *program_run_bounded(const struct program *p, void *const *data,
                                   const struct leeway *leeway, struct diags *d) {
    struct bounds *r = memory_array(1, sizeof *r);
    size_t n = (size_t)p->nbuffers + 1;
    *r = (struct bounds){.p = p, .diags = d};
    if (leeway) r->leeway = *leeway;
    r->buffer = memory_array(n, sizeof *r->buffer);
    r->last_item = memory_array(n, sizeof *r->last_item);
    for (int b = 0; b < p->nbuffers; b++) {
        bool given = p->buffer[b].role != ROLE_OUT && p->buffer[b].role != ROLE_TEMP &&
                     p->buffer[b].role != ROLE_STATE;
        r->buffer[b] =
            (struct shadow){.native = given ? data[b] : NULL, .granule = UNKNOWN_GRANULE};
        r->last_item[b] = -1;
    }
    note_last(r, p->item, p->nitems, -1);
    if (run_items(r, p->item, p->nitems, true)) return r;
    bounds_free(r);
    return NULL;
}

struct bounded bounds_at(const struct bounds *r, int buffer, int64_t element) {
    const struct shadow *f = &r->buffer[buffer];
    if (!f->at && !f->native) return (struct bounded){0};
    return shadow_load(f, r->p->buffer[buffer].type, element);
}

void bounds_free(struct bounds *r) {
    if (!r) return;
    for (int b = 0; b < r->p->nbuffers; b++) shadow_free(&r->buffer[b]);
    free(r->buffer);
    free(r->last_item);
    free(r);
}
