/* Moves, and instructions that execute statements, on tags. */
#include "scheduler/verify/verify_int.h"
#include "ir/memory.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- moves ---- */
static bool is_copy(const struct stmt *s) {
    if (s->nreads > 1) return false;
    for (int k = 0; k < s->nops; k++)
        if (s->op[k].code != OP_READ && s->op[k].code != OP_CAST && s->op[k].code != OP_LITERAL)
            return false;
    return s->nops <= 2 && (s->nops == 1 || s->op[1].code == OP_CAST);
}

static struct tag converted(struct tag t, enum type to) {
    enum type from = (enum type)t.type;
    if (t.kind == TAG_CONST) {
        union value x;
        memcpy(&x, &t.id, sizeof x);
        return tag_const(to, type_convert(to, from, x));
    }
    bool wider = type_size(to) > type_size(from) && (type_is_float(to) || !type_is_float(from));
    if (t.kind != TAG_DATA || !wider) return (struct tag){0};
    t.type = (uint8_t)to;
    return t;
}

static struct place_at element_at(const struct shape *h, const struct place_at *at, int operand,
                                  int64_t element) {
    struct place_at x = at[operand];
    x.address =
        swizzle_address(h->operand[operand].swizzle, x.address + shape_offset(h, operand, element));
    x.instance += shape_instance(h, operand, element);
    return x;
}

static struct tag moved(struct verify *v, const struct shape *h, const struct place_at *at,
                        int64_t n) {
    const struct stmt *s = h->stmt;
    const struct program *b = h->bound;
    enum type to = b->buffer[s->dst.buffer].type;
    struct tag t;
    if (s->nreads == 0) {
        t = tag_const(s->op[0].type, s->op[0].value);
    } else {
        const struct access *a = &s->read[0];
        enum type from = b->buffer[a->buffer].type;
        t = h->read[0][n] < 0
                ? tag_const(from, a->fill)
                : tag_get(v, element_at(h, at, h->read_operand[0], h->read[0][n]), from);
    }
    if ((enum type)t.type == to || t.kind == TAG_UNDEFINED) return t;
    if (type_size((enum type)t.type) == type_size(to) && s->nops == 1) return t;
    return converted(t, to);
}

static void content_move(struct verify *v, const struct shape *h, const struct place_at *at,
                         bool overwrite) {
    const struct stmt *s = h->stmt;
    if (!is_copy(s) || (s->combine != COMBINE_SET && !overwrite)) {
        verify_error(v, "it computes, so it must execute a statement");
        return;
    }
    enum type to = h->bound->buffer[s->dst.buffer].type;
    int src = s->nreads ? h->read_operand[0] : -1, dst = h->dst_operand;
    bool raw = s->nops == 1 && src >= 0 && h->bound->buffer[s->read[0].buffer].type == to;
    if (src >= 0 && at[src].memory == at[dst].memory && at[src].instance == at[dst].instance &&
        at[src].address + h->operand[src].low < at[dst].address + h->operand[dst].high &&
        at[dst].address + h->operand[dst].low < at[src].address + h->operand[src].high) {
        verify_error(v, "it copies between overlapping bytes");
        return;
    }
    for (int64_t n = 0; n < h->points && !v->stop; n++) {
        if (h->dst[n] < 0) continue;
        struct place_at where = element_at(h, at, dst, h->dst[n]);
        if (raw && h->read[0][n] >= 0)
            tag_copy(v, where, element_at(h, at, src, h->read[0][n]), to);
        else
            tag_set(v, where, to, moved(v, h, at, n));
    }
}

/* ---- issues that execute a statement ---- */
enum { LOADED = 1, VALID = 2, LEFT_OUT = 4, PADDED = 8, BAD_PAD = 16, CLEARED = 32 };

struct cells {
    struct tag *tag;
    uint8_t *state;
};

struct work {
    struct verify *v;
    const struct issue_node *n;
    const struct shape *h;
    const struct place_at *at;
    const struct stmt *stmt;
    struct binding_of *binding;
    const struct candidate_of *candidate;
    struct cells cells[MAX_OPERANDS_OF_ISSUE];
    bool overwrite; /* what the destination held does not count */
    bool failed;
    int64_t base[MAX_AXES], point[MAX_AXES];
    int64_t x[MAX_AXES]; /* kernel axes */
    union value pad;     /* neutral for the semantics' reduction */
};

static struct tag *cell(struct work *w, int operand, int64_t element) {
    struct cells *c = &w->cells[operand];
    if (!(c->state[element] & LOADED)) {
        enum type type = w->v->m->instr[w->h->instr].operand[operand].type;
        c->state[element] |= LOADED;
        c->tag[element] = tag_get(w->v, element_at(w->h, w->at, operand, element), type);
    }
    return &c->tag[element];
}

static struct tag needle_read(struct work *w, int read, int64_t n) {
    const struct access *a = &w->h->stmt->read[read];
    int operand = w->h->read_operand[read];
    enum type type = w->h->bound->buffer[a->buffer].type;
    if (w->n->arg[operand].place < 0) return tag_const(type, w->n->arg[operand].imm);
    if (w->h->read[read][n] < 0) return tag_const(type, a->fill);
    return *cell(w, operand, w->h->read[read][n]);
}

static bool read_fits(struct work *w, int target, const struct tag *found) {
    struct tag expected;
    if (target == SELF) return true;
    if (w->v->loose[w->stmt->read[target].buffer]) return true;
    return point_expected(w->v, w->n->stmt, target, w->point, &expected) &&
           tag_same(found, &expected);
}

/* To point n of the issue. */
static void go_to(struct work *w, int64_t n) {
    for (int a = 0; a < w->v->p->naxes; a++) w->point[a] = w->base[a];
    for (int x = w->h->naxes - 1; x >= 0; x--) {
        if (w->n->axis[x] >= 0) w->point[w->n->axis[x]] += n % w->h->extent[x];
        n /= w->h->extent[x];
    }
}

static bool candidate_fits(struct work *w, const struct candidate_of *k, int64_t n) {
    for (int r = 0; r < w->h->stmt->nreads; r++) {
        if (k->read[r] == UNUSED) continue;
        struct tag t = needle_read(w, r, n);
        if (!read_fits(w, k->read[r], &t)) return false;
    }
    return k->self < 0 || read_fits(w, k->self, cell(w, w->h->dst_operand, w->h->dst[n]));
}

/* At the point that it is at. */
struct at_point {
    struct work *w;
    int64_t n;
};

static bool operand_may(void *user, int input, int target) {
    const struct at_point *at = user;
    struct work *w = at->w;
    struct tag t = input == SELF ? *cell(w, w->h->dst_operand, w->h->dst[at->n])
                                 : needle_read(w, input, at->n);
    return read_fits(w, target, &t);
}

/* Operands of equal standing (the factors of a product) may be either way round, at each point: two
 * reads of one buffer are the same element at some. For all points together the last one decides
 * where the first does not. */
static void choose_candidate(struct work *w, int64_t n, bool for_all) {
    const struct candidate_of *first = NULL, *both = NULL;
    int64_t last = w->h->points - 1;
    for (int c = 0; c < w->binding->n && !both; c++) {
        const struct candidate_of *k = &w->binding->candidate[c];
        if (!candidate_fits(w, k, n)) continue;
        if (!first) first = k;
        if (for_all) go_to(w, last);
        if (!for_all || candidate_fits(w, k, last)) both = k;
        if (for_all) go_to(w, n);
    }
    struct at_point at = {w, n};
    if (!first) first = binding_fitting(w->v, w->h, w->n, w->binding, operand_may, &at);
    w->candidate = both ? both : first ? first : &w->binding->candidate[0];
}

static bool check_operand(struct work *w, int target, const struct tag *found, int64_t element) {
    if (target == UNUSED) return true;
    if (target == SELF) return point_check_partial(w->v, w->n->stmt, w->point, element, found);
    return point_check_read(w->v, w->n->stmt, target, w->point, found);
}

/* The accumulate flag is off: the initialising statement is executed too. */
static bool clear_cell(struct work *w, int64_t element, struct tag *dst, uint8_t *state) {
    struct verify *v = w->v;
    if (!w->overwrite || w->stmt->combine == COMBINE_SET || *state & CLEARED) return true;
    *state |= CLEARED;
    int buffer = w->stmt->dst.buffer;
    if (w->n->init < 0) {
        struct tag before;
        *dst = (struct tag){0};
        if (!version_before(v, w->n->stmt, w->point, buffer, element, &before)) return true;
        return point_error(v, w->n->stmt, w->point, "overwrites, but must accumulate to", &before,
                           NULL);
    }
    *dst = tag_element(buffer, element, w->n->init, 1, v->p->buffer[buffer].type);
    dst->step = step_number(v, w->n->init, w->point);
    dst->life = ++v->lives;
    if (!v->counting) return true;
    step_visit(v, w->n->init, w->point);
    uint32_t *count = count_at(v, w->n->init, w->point, element);
    if (*count && v->may_repeat[buffer]) return v->repeats[buffer] = true;
    if (*count)
        return point_error(v, w->n->stmt, w->point, "initialises a second time", NULL, NULL);
    ++*count;
    v->done[w->n->init]++;
    return true;
}

static bool valid_point(struct work *w, int64_t n) {
    struct verify *v = w->v;
    int stmt = w->n->stmt, dst = w->h->dst_operand;
    int64_t element = access_at(v, stmt, -1, w->point), d = w->h->dst[n];
    uint8_t *state = &w->cells[dst].state[d];
    if (element < 0) return point_error(v, stmt, w->point, "writes outside its buffer", NULL, NULL);
    bool out = v->clamped && point_left_out(v, stmt, w->point, w->overwrite);
    struct tag none = {0}, *cur = v->counting ? &none : cell(w, dst, d);
    if (v->counting) {
        if (!clear_cell(w, element, &none, state)) return false;
        if (out) v->skipped[stmt] = true;
        return out || point_count(v, stmt, w->point, element);
    }
    if (!out && (!w->candidate || !candidate_fits(w, w->candidate, n)))
        choose_candidate(w, n, false);
    if (!out)
        for (int r = 0; r < w->h->stmt->nreads; r++) {
            if (w->candidate->read[r] == UNUSED) continue;
            struct tag found = needle_read(w, r, n);
            if (!check_operand(w, w->candidate->read[r], &found, element)) return false;
        }
    if (!clear_cell(w, element, cur, state)) return false;
    if (out) {
        *state |= LEFT_OUT;
        return true;
    }
    bool carried = *state & VALID && w->stmt->combine == COMBINE_SET;
    if (carried)
        return point_error(v, stmt, w->point, "shares its destination with another instance", NULL,
                           NULL);
    if (w->overwrite && w->stmt->combine != COMBINE_SET && w->n->init < 0 && !(*state & VALID)) {
        *cur = (struct tag){0};
    } else if (w->overwrite && w->stmt->combine != COMBINE_SET) {
        if (!point_check_partial(v, stmt, w->point, element, cur)) return false;
    } else if (!check_operand(w, w->candidate->self, cur, element)) {
        return false;
    }
    if (!point_after(v, stmt, w->point, element, cur, cur)) return false;
    *state |= VALID;
    return true;
}

/* A point outside the statement's domain, or of a needle axis that stands alone. */
static bool pad_point(struct work *w, int64_t n, bool alone_only) {
    struct verify *v = w->v;
    const struct stmt *s = w->h->stmt;
    int dst = w->h->dst_operand;
    uint8_t *state = &w->cells[dst].state[w->h->dst[n]];
    struct tag read[MAX_READS];
    union value x;
    if (v->counting) return true;
    for (int r = 0; r < s->nreads; r++) read[r] = needle_read(w, r, n);
    bool known = shape_value(w->h, read, &x);
    if (s->combine != COMBINE_SET) {
        bool float_type = type_is_float(v->m->instr[w->h->instr].operand[dst].type);
        known = known && (float_type ? x.f == w->pad.f : x.i == w->pad.i);
        *state |= known ? PADDED : BAD_PAD;
        return true;
    }
    if (known) {
        *cell(w, dst, w->h->dst[n]) = tag_const(v->m->instr[w->h->instr].operand[dst].type, x);
        *state |= PADDED;
        return true;
    }
    if (alone_only && w->stmt->combine == COMBINE_SET && w->candidate) {
        bool repeats = true; /* the same instance once more */
        for (int r = 0; r < s->nreads && repeats; r++)
            repeats =
                w->candidate->read[r] == UNUSED || read_fits(w, w->candidate->read[r], &read[r]);
        int64_t element = access_at(v, w->n->stmt, -1, w->point);
        struct tag *cur = cell(w, dst, w->h->dst[n]);
        if (repeats && element >= 0 && !(*state & VALID)) {
            return point_after(v, w->n->stmt, w->point, element, cur, cur);
        }
    }
    *state |= BAD_PAD;
    return true;
}

static bool run_point(struct work *w, int64_t n) {
    const struct shape *h = w->h;
    if (h->dst[n] < 0) return true;
    bool alone = false;
    for (int a = 0; a < w->v->p->naxes; a++) w->point[a] = w->base[a];
    for (int x = 0; x < h->naxes; x++) {
        if (w->n->axis[x] >= 0)
            w->point[w->n->axis[x]] += w->x[x];
        else
            alone |= w->x[x] > 0;
    }
    bool inside = point_in_domain(w->v, w->n->stmt, w->point);
    return inside && !alone ? valid_point(w, n) : pad_point(w, n, inside);
}

static bool next_x(struct work *w) {
    for (int x = w->h->naxes - 1; x >= 0; x--) {
        if (++w->x[x] < w->h->extent[x]) return true;
        w->x[x] = 0;
    }
    return false;
}

/* ---- an issue of which all points are instances: each element is looked at once ---- */
static bool access_moves(const struct program *p, const struct access *a, int axis) {
    for (int d = 0; d < p->buffer[a->buffer].ndims; d++)
        if (access_coef(p, a, d, axis)) return true;
    return false;
}

/* Wherever the program's access moves, the needle's does; `exactly`: and the other way round. */
static bool moves_alike(const struct work *w, const struct access *needle,
                        const struct access *program, bool exactly) {
    for (int x = 0; x < w->h->naxes; x++) {
        if (w->h->extent[x] == 1) continue;
        bool mine = access_moves(w->h->bound, needle, w->h->axis_of[x]);
        bool its = access_moves(w->v->p, program, w->n->axis[x]);
        if (its != mine && (its || exactly)) return false;
    }
    return true;
}

static bool all_inside(const struct work *w) {
    const struct program *p = w->v->p;
    uint64_t walked = 0, domain = w->v->domain[w->n->stmt];
    int64_t end[MAX_AXES];
    for (int a = 0; a < p->naxes; a++) end[a] = w->base[a] + 1;
    for (int x = 0; x < w->h->naxes; x++) {
        int a = w->n->axis[x];
        if (a < 0 ? w->h->extent[x] > 1 : walked >> a & 1) return false;
        if (a < 0) continue;
        walked |= UINT64_C(1) << a;
        end[a] = w->base[a] + w->h->extent[x];
    }
    for (int a = 0; a < p->naxes; a++)
        if ((domain >> a & 1) && (w->base[a] < p->axis[a].first || end[a] > p->axis[a].extent))
            return false;
    for (int r = w->v->recurrence_of[w->n->stmt]; r >= 0; r = w->v->recurrence[r].parent)
        if (walked >> w->v->recurrence[r].axis & 1) return false;
    return (walked & ~domain) == 0 && w->stmt->nwhere == 0;
}

/* Does an instance's place in each operand follow from the elements alone? */
static bool elements_tell(const struct work *w, const struct candidate_of *c) {
    const struct stmt *s = w->h->stmt;
    if (!moves_alike(w, &s->dst, &w->stmt->dst, true)) return false;
    if (c->self >= 0 && !moves_alike(w, &s->dst, &w->stmt->read[c->self], false)) return false;
    for (int r = 0; r < s->nreads; r++) {
        if (c->read[r] == UNUSED) continue;
        const struct access *a = c->read[r] == SELF ? &w->stmt->dst : &w->stmt->read[c->read[r]];
        if (!moves_alike(w, &s->read[r], a, false)) return false;
    }
    return true;
}

static bool any_left_out(struct work *w) {
    for (int r = -1; w->v->clamped && r < w->h->stmt->nreads; r++) {
        const struct first *f = &w->h->first[r + 1];
        for (int k = 0; k < f->n; k++) {
            go_to(w, f->at[k]);
            if (point_left_out(w->v, w->n->stmt, w->point, w->overwrite)) return true;
        }
    }
    return false;
}

/* Are some of its instances executed for a second time, or may they be? */
static bool repeats(const struct work *w) {
    int buffer = w->stmt->dst.buffer;
    struct walked box = {w->base, w->h->naxes, w->n->axis, w->h->extent};
    if (!w->v->may_repeat[buffer]) return false;
    if (!w->v->counting) return w->v->repeats[buffer];
    return w->stmt->combine == COMBINE_SET || !point_box_is_new(w->v, w->n->stmt, &box);
}

static bool is_whole(struct work *w) {
    const struct shape *h = w->h;
    if (!h->regular || !all_inside(w) || !elements_tell(w, &w->binding->candidate[0])) return false;
    if (w->stmt->combine == COMBINE_SET && h->first[0].n != h->points) return false;
    if (repeats(w) || any_left_out(w)) return false;
    go_to(w, 0);
    if (!w->v->counting) choose_candidate(w, 0, true);
    return w->v->counting || elements_tell(w, w->candidate);
}

static bool whole_reads(struct work *w) {
    for (int r = 0; r < w->h->stmt->nreads; r++) {
        const struct first *f = &w->h->first[r + 1];
        for (int k = 0; k < f->n && w->candidate->read[r] != UNUSED; k++) {
            go_to(w, f->at[k]);
            struct tag found = needle_read(w, r, f->at[k]);
            int64_t element = access_at(w->v, w->n->stmt, -1, w->point);
            if (!check_operand(w, w->candidate->read[r], &found, element)) return false;
        }
    }
    return true;
}

static bool whole_result(struct work *w, int64_t n, uint32_t times) {
    struct verify *v = w->v;
    int stmt = w->n->stmt, dst = w->h->dst_operand;
    bool reduces = w->stmt->combine != COMBINE_SET;
    int64_t element = access_at(v, stmt, -1, w->point), d = w->h->dst[n];
    uint8_t *state = &w->cells[dst].state[d];
    struct tag none = {0}, *cur = v->counting ? &none : cell(w, dst, d);
    if (element < 0) return point_error(v, stmt, w->point, "writes outside its buffer", NULL, NULL);
    if (!clear_cell(w, element, cur, state)) return false;
    if (v->counting) return point_count_element(v, stmt, w->point, element, times);
    if (w->overwrite && reduces && w->n->init < 0) {
        *cur = (struct tag){0};
    } else if (w->overwrite && reduces) {
        if (!point_check_partial(v, stmt, w->point, element, cur)) return false;
    } else if (!check_operand(w, w->candidate->self, cur, element)) {
        return false;
    }
    if (!point_after(v, stmt, w->point, element, cur, cur)) return false;
    cur->count += times - 1;
    *state |= VALID;
    return true;
}

static bool run_whole(struct work *w) {
    const struct first *f = &w->h->first[0];
    uint32_t times = (uint32_t)(w->h->points / f->n);
    if (w->v->counting) {
        struct walked box = {w->base, w->h->naxes, w->n->axis, w->h->extent};
        if (!point_count_box(w->v, w->n->stmt, &box)) return false;
    } else if (!whole_reads(w)) {
        return false;
    }
    for (int k = 0; k < f->n; k++) {
        go_to(w, f->at[k]);
        if (!whole_result(w, f->at[k], times)) return false;
    }
    return true;
}

static void settle_cell(struct work *w, int64_t d) {
    int dst = w->h->dst_operand;
    uint8_t state = w->cells[dst].state[d];
    if (!(state & ~LOADED)) return;
    enum type type = w->v->m->instr[w->h->instr].operand[dst].type;
    struct tag *t = cell(w, dst, d);
    if (state & VALID && state & BAD_PAD) {
        verify_error(
            w->v,
            "padding changes what is computed: along a reduction an operand must be zero there");
        w->failed = true;
    } else if (!(state & VALID)) {
        bool reduces = w->h->stmt->combine != COMBINE_SET;
        if (state & BAD_PAD)
            *t = (struct tag){0};
        else if (state & LEFT_OUT && !(state & CLEARED) && !reduces)
            *t = (struct tag){0};
        else if (state & PADDED && !(state & LEFT_OUT) && reduces && w->overwrite)
            *t = tag_const(type, w->pad);
    }
    tag_set(w->v, element_at(w->h, w->at, dst, d), type, *t);
}

static void cells_open(struct work *w) {
    for (int o = 0; o < w->v->m->instr[w->h->instr].noperands; o++) {
        size_t n = (size_t)w->h->operand[o].elements + 1;
        w->cells[o].tag = memory_bytes(n * sizeof *w->cells[o].tag);
        w->cells[o].state = memory_array(n, 1);
    }
}

static void cells_close(struct work *w) {
    for (int o = 0; o < w->v->m->instr[w->h->instr].noperands; o++) {
        free(w->cells[o].tag);
        free(w->cells[o].state);
    }
}

/* Several operands at one place are one operand, read before anything is written. */
static void content_work(struct verify *v, struct work *w) {
    const struct shape *h = w->h;
    const struct stmt *s = h->stmt;
    enum type type = h->bound->buffer[s->dst.buffer].type;
    w->binding = binding_get(v, h, w->n, w->overwrite);
    if (w->binding->n == 0) {
        verify_error(v, "'%s' does not compute statement %d", v->m->instr[h->instr].id, w->n->stmt);
        return;
    }
    if (s->combine != COMBINE_SET) w->pad = combiner_neutral(s->combine, type);
    for (int a = 0; a < v->p->naxes; a++)
        w->base[a] = w->n->base[a] ? sx_eval(w->n->base[a], v->var) : 0;
    for (int a = 0; a < v->p->naxes; a++) {
        if (w->base[a] > -(INT64_C(1) << 50) && w->base[a] < INT64_C(1) << 50) continue;
        verify_error(v, "axis '%s' begins out of range", v->p->axis[a].name);
        return;
    }
    cells_open(w);
    int64_t n = 0;
    if (is_whole(w)) {
        w->failed = !run_whole(w);
    } else {
        do w->failed |= !run_point(w, n++);
        while (!w->failed && !v->stop && next_x(w));
    }
    if (!v->counting)
        for (int64_t d = 0; d < h->operand[h->dst_operand].elements && !w->failed; d++)
            settle_cell(w, d);
    cells_close(w);
}

static bool reads_itself(const struct shape *h) {
    if (h->stmt->combine != COMBINE_SET) return true;
    for (int r = 0; r < h->stmt->nreads; r++)
        if (h->read_operand[r] == h->dst_operand) return true;
    return false;
}

void content_issue(struct verify *v, const struct issue_node *n, const struct shape *h,
                   const struct place_at *at, const int64_t *flag) {
    if (!h->stmt || h->points == 0) return;
    if (h->nparts || n->nalso) {
        if (h->nparts)
            content_joined(v, n, h, at);
        else
            verify_error(v, "'%s' has one statement, but executes several",
                         v->m->instr[h->instr].id);
        return;
    }
    const struct instr *in = &v->m->instr[n->instr];
    bool overwrite = h->initialises || !reads_itself(h);
    for (int k = 0; k < instr_flag_count(in); k++)
        if (instr_flag_operand(in, k) == h->dst_operand && flag[k] == 0) overwrite = true;
    if (n->stmt >= 0 && v->loose_stmt[n->stmt]) return;
    if (n->stmt < 0) {
        if (!v->counting) content_move(v, h, at, overwrite);
        return;
    }
    struct work w = {
        .v = v, .n = n, .h = h, .at = at, .stmt = &v->p->stmt[n->stmt], .overwrite = overwrite};
    if (n->init >= 0 && (v->recurrence_of[n->init] != v->recurrence_of[n->stmt] ||
                         !stmt_is_neutral_fill(v->p, &v->p->stmt[n->init], w.stmt)))
        verify_error(v, "statement %d does not initialise statement %d with its neutral element",
                     n->init, n->stmt);
    else
        content_work(v, &w);
}
