/* Statement instances, executed on tags. */
#include "scheduler/verify_int.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { BOX_POINTS = 2000000 }; /* of a fallback, in a walk that is cut short */

/* ---- points of the program ---- */
static bool in_domain(const struct verify *v, int stmt, const int64_t *at) {
    const struct program *p = v->p;
    const struct stmt *s = &p->stmt[stmt];
    for (uint64_t left = v->domain[stmt]; left; left &= left - 1) {
        int a = __builtin_ctzll(left);
        if (at[a] < 0 || at[a] >= p->axis[a].extent) return false;
    }
    for (int w = 0; w < s->nwhere; w++) {
        int64_t x = s->where[w].coef[p->naxes];
        for (int k = 0; k < p->naxes; k++) x += s->where[w].coef[k] * at[k];
        if (x < 0) return false;
    }
    return true;
}

static uint64_t instance_number(const struct verify *v, int stmt, const int64_t *at) {
    uint64_t n = 0;
    for (int a = 0; a < v->p->naxes; a++)
        if (v->domain[stmt] >> a & 1) n = n * (uint64_t)v->p->axis[a].extent + (uint64_t)at[a];
    return n;
}

static void point_text(const struct verify *v, int stmt, const int64_t *at, struct text *out) {
    text_printf(out, "statement %d at (", stmt);
    bool first = true;
    for (int a = 0; a < v->p->naxes; a++) {
        if (!(v->domain[stmt] >> a & 1)) continue;
        text_printf(out, "%s%s = %" PRId64, first ? "" : ", ", v->p->axis[a].name, at[a]);
        first = false;
    }
    text_printf(out, ")");
}

static bool point_error(struct verify *v, int stmt, const int64_t *at, const char *what,
                        const struct tag *found, const struct tag *expected) {
    struct text text = {0};
    point_text(v, stmt, at, &text);
    text_printf(&text, " %s", what);
    if (found) {
        text_printf(&text, " ");
        tag_text(v, found, &text);
    }
    if (expected) {
        text_printf(&text, ", expected ");
        tag_text(v, expected, &text);
    }
    verify_error(v, "%s", text.at);
    text_free(&text);
    return false;
}

/* With loops cut short, what an instance reads may have been left out: then it is left out too. */
static bool left_out(struct verify *v, int stmt, const int64_t *at, bool overwrite) {
    const struct stmt *s = &v->p->stmt[stmt];
    struct tag ignored;
    if (s->combine != COMBINE_SET && !overwrite) {
        int64_t e = access_at(v, stmt, -1, at);
        if (e >= 0 && !v->loose[s->dst.buffer] &&
            !version_before(v, stmt, s->dst.buffer, e, &ignored))
            return true;
    }
    for (int r = 0; r < s->nreads; r++) {
        int b = s->read[r].buffer;
        if (v->latest[stmt * v->p->nbuffers + b] < 0 || v->loose[b]) continue;
        int64_t e = access_at(v, stmt, r, at);
        if (e >= 0 && !version_before(v, stmt, b, e, &ignored)) return true;
    }
    return false;
}

static void mark_visited(struct verify *v, int stmt, const int64_t *at) {
    int naxes = v->p->naxes;
    for (int a = 0; a < naxes; a++) {
        if (!(v->domain[stmt] >> a & 1)) continue;
        uint64_t key = (uint64_t)(stmt * naxes + a) << 34 | (uint64_t)at[a] / PAGE_ENTRIES;
        bool *page = pages_get(&v->visited, key, NULL), *was = &page[at[a] % PAGE_ENTRIES];
        v->nvisited[stmt * naxes + a] += !*was;
        *was = true;
    }
}

/* The walk that counts: one instance is executed. */
static bool count_instance(struct verify *v, int stmt, const int64_t *at, int64_t element) {
    const struct stmt *s = &v->p->stmt[stmt];
    uint32_t *count = count_at(v, stmt, element);
    bool twice = s->combine == COMBINE_SET ? *count > 0
                                           : !instance_mark(v, stmt, instance_number(v, stmt, at));
    if (twice) return point_error(v, stmt, at, "is executed twice", NULL, NULL);
    ++*count;
    v->done[stmt]++;
    if (v->trips) mark_visited(v, stmt, at);
    return true;
}

/* ---- tags of reads ---- */
static bool same_tag(const struct tag *a, const struct tag *b) {
    return a->kind == b->kind && a->id == b->id && a->type == b->type &&
           (a->kind != TAG_DATA || (a->writer == b->writer && a->count == b->count));
}

static bool expected_read(struct verify *v, int stmt, int read, const int64_t *at,
                          struct tag *out) {
    const struct access *a = &v->p->stmt[stmt].read[read];
    int64_t e = access_at(v, stmt, read, at);
    if (e >= 0) return version_before(v, stmt, a->buffer, e, out);
    *out = tag_const(v->p->buffer[a->buffer].type, a->fill);
    return a->has_fill;
}

static bool check_read(struct verify *v, int stmt, int read, const int64_t *at,
                       const struct tag *found) {
    struct tag expected = {0};
    if (v->loose[v->p->stmt[stmt].read[read].buffer]) return true;
    if (!expected_read(v, stmt, read, at, &expected))
        return point_error(v, stmt, at, "reads what nothing has written:", &expected, NULL);
    if (same_tag(found, &expected)) return true;
    return point_error(v, stmt, at, "reads", found, &expected);
}

/* The destination of a reduction before one more contribution. */
static bool check_partial(struct verify *v, int stmt, const int64_t *at, int64_t element,
                          const struct tag *found) {
    int buffer = v->p->stmt[stmt].dst.buffer;
    struct tag expected;
    struct tag own = tag_element(buffer, element, stmt, found->count, v->p->buffer[buffer].type);
    if (v->loose[buffer] || (found->count > 0 && same_tag(found, &own))) return true;
    bool written = version_before(v, stmt, buffer, element, &expected);
    if (written && same_tag(found, &expected)) return true;
    return point_error(v, stmt, at, "accumulates to", found, &expected);
}

static struct tag after_instance(const struct verify *v, int stmt, int64_t element,
                                 const struct tag *before) {
    const struct stmt *s = &v->p->stmt[stmt];
    bool partial = s->combine != COMBINE_SET && before->kind == TAG_DATA && before->writer == stmt;
    return tag_element(s->dst.buffer, element, stmt, partial ? before->count + 1 : 1,
                       v->p->buffer[s->dst.buffer].type);
}

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
    x.address += shape_offset(h, operand, element);
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
    const struct binding_of *binding;
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
    return expected_read(w->v, w->n->stmt, target, w->point, &expected) &&
           same_tag(found, &expected);
}

/* Operands of equal standing (the factors of a product) may be either way round: the first point
 * decides. */
static void choose_candidate(struct work *w, int64_t n) {
    w->candidate = &w->binding->candidate[0];
    for (int c = 0; c < w->binding->n; c++) {
        const struct candidate_of *k = &w->binding->candidate[c];
        bool fits = true;
        for (int r = 0; r < w->h->stmt->nreads && fits; r++) {
            if (k->read[r] == UNUSED) continue;
            struct tag t = needle_read(w, r, n);
            fits = read_fits(w, k->read[r], &t);
        }
        if (fits && k->self >= 0)
            fits = read_fits(w, k->self, cell(w, w->h->dst_operand, w->h->dst[n]));
        if (!fits) continue;
        w->candidate = k;
        return;
    }
}

static bool check_operand(struct work *w, int target, const struct tag *found, int64_t element) {
    if (target == UNUSED) return true;
    if (target == SELF) return check_partial(w->v, w->n->stmt, w->point, element, found);
    return check_read(w->v, w->n->stmt, target, w->point, found);
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
        if (!version_before(v, w->n->stmt, buffer, element, &before)) return true;
        return point_error(v, w->n->stmt, w->point, "overwrites, but must accumulate to", &before,
                           NULL);
    }
    *dst = tag_element(buffer, element, w->n->init, 1, v->p->buffer[buffer].type);
    if (!v->counting) return true;
    uint32_t *count = count_at(v, w->n->init, element);
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
    bool out = v->clamped && left_out(v, stmt, w->point, w->overwrite);
    struct tag none = {0}, *cur = v->counting ? &none : cell(w, dst, d);
    if (v->counting) {
        if (!clear_cell(w, element, &none, state)) return false;
        if (out) v->skipped[stmt] = true;
        return out || count_instance(v, stmt, w->point, element);
    }
    if (!w->candidate && !out) choose_candidate(w, n);
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
        if (!check_partial(v, stmt, w->point, element, cur)) return false;
    } else if (!check_operand(w, w->candidate->self, cur, element)) {
        return false;
    }
    *cur = after_instance(v, stmt, element, cur);
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
            *cur = after_instance(v, w->n->stmt, element, cur);
            return true;
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
    bool inside = in_domain(w->v, w->n->stmt, w->point);
    return inside && !alone ? valid_point(w, n) : pad_point(w, n, inside);
}

static bool next_x(struct work *w) {
    for (int x = w->h->naxes - 1; x >= 0; x--) {
        if (++w->x[x] < w->h->extent[x]) return true;
        w->x[x] = 0;
    }
    return false;
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
        w->cells[o].tag = malloc(n * sizeof *w->cells[o].tag);
        w->cells[o].state = calloc(n, 1);
        if (!w->cells[o].tag || !w->cells[o].state) abort();
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
    do w->failed |= !run_point(w, n++);
    while (!w->failed && !v->stop && next_x(w));
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
    const struct instr *in = &v->m->instr[n->instr];
    bool overwrite = h->initialises || !reads_itself(h);
    for (int k = 0; k < instr_flag_count(in); k++)
        if (instr_flag_operand(in, k) == h->dst_operand && flag[k] == 0) overwrite = true;
    if (n->stmt >= 0 && v->in_recur[n->stmt]) return;
    if (n->stmt < 0) {
        if (!v->counting) content_move(v, h, at, overwrite);
        return;
    }
    struct work w = {
        .v = v, .n = n, .h = h, .at = at, .stmt = &v->p->stmt[n->stmt], .overwrite = overwrite};
    if (n->init >= 0 && !stmt_is_neutral_fill(v->p, &v->p->stmt[n->init], w.stmt))
        verify_error(v, "statement %d does not initialise statement %d with its neutral element",
                     n->init, n->stmt);
    else
        content_work(v, &w);
}

/* ---- fallbacks ---- */
static bool fallback_point(struct verify *v, int stmt, const int64_t *at, const int *home) {
    const struct stmt *s = &v->p->stmt[stmt];
    int64_t element = access_at(v, stmt, -1, at);
    if (element < 0) return point_error(v, stmt, at, "writes outside its buffer", NULL, NULL);
    if (v->clamped && left_out(v, stmt, at, false)) {
        v->skipped[stmt] = true;
        return true;
    }
    if (v->counting) return count_instance(v, stmt, at, element);
    enum type type = v->p->buffer[s->dst.buffer].type;
    for (int r = 0; r < s->nreads; r++) {
        int64_t e = access_at(v, stmt, r, at);
        enum type from = v->p->buffer[s->read[r].buffer].type;
        struct tag found =
            e >= 0 ? tag_get(v, home_of(v, home[r], e), from) : tag_const(from, s->read[r].fill);
        if (!check_read(v, stmt, r, at, &found)) return false;
    }
    struct place_at where = home_of(v, home[s->nreads], element);
    struct tag cur = tag_get(v, where, type);
    if (s->combine != COMBINE_SET && !check_partial(v, stmt, at, element, &cur)) return false;
    tag_set(v, where, type, after_instance(v, stmt, element, &cur));
    return true;
}

static void fallback_races(struct verify *v, int qi, int stmt, const int64_t *at, const int *home) {
    const struct stmt *s = &v->p->stmt[stmt];
    for (int r = 0; r <= s->nreads; r++) {
        const struct access *a = r < s->nreads ? &s->read[r] : &s->dst;
        int64_t e = access_at(v, stmt, r < s->nreads ? r : -1, at);
        if (e >= 0)
            race_access(v, qi, home_of(v, home[r], e),
                        (int64_t)type_size(v->p->buffer[a->buffer].type), r == s->nreads);
    }
}

/* A walk that is cut short takes of a large box only the first and the last values of each axis. */
struct box {
    const int64_t *lo, *hi;
    int64_t ends; /* values at either end; INT64_MAX: all */
};

static double box_points(const struct verify *v, const struct box *x) {
    double points = 1;
    for (int a = 0; a < v->p->naxes; a++) {
        int64_t n = x->hi[a] - x->lo[a];
        points *= (double)(x->ends < n / 2 ? 2 * x->ends : n);
    }
    return points;
}

static void cut_box(struct verify *v, struct box *x) {
    x->ends = INT64_MAX;
    if (!v->trips || box_points(v, x) <= BOX_POINTS) return;
    v->clamped = true;
    for (x->ends = 1024; x->ends > 1 && box_points(v, x) > BOX_POINTS;) x->ends /= 2;
}

static bool box_next(const struct verify *v, const struct box *x, int64_t *at) {
    for (int a = v->p->naxes - 1; a >= 0; a--) {
        int64_t n = x->hi[a] - x->lo[a];
        at[a]++;
        if (x->ends < n / 2 && at[a] == x->lo[a] + x->ends) at[a] = x->hi[a] - x->ends;
        if (at[a] < x->hi[a]) return true;
        at[a] = x->lo[a];
    }
    return false;
}

static void fallback_box(struct verify *v, const struct fallback_node *n, struct box *x, int qi,
                         const int *home) {
    int64_t at[MAX_AXES] = {0};
    for (int a = 0; a < v->p->naxes; a++) {
        at[a] = x->lo[a];
        if (x->hi[a] <= x->lo[a]) return;
    }
    cut_box(v, x);
    do {
        if (!verify_step(v, 1)) return;
        if (!in_domain(v, n->stmt, at)) continue;
        if (!v->in_recur[n->stmt] && !fallback_point(v, n->stmt, at, home)) return;
        if (qi >= 0 && v->races_matter) fallback_races(v, qi, n->stmt, at, home);
    } while (!v->stop && box_next(v, x, at));
}

void content_fallback(struct verify *v, const struct fallback_node *n, const int64_t *lo,
                      const int64_t *hi) {
    const struct fallback *f = &v->m->fallback[n->fallback];
    const struct stmt *s = &v->p->stmt[n->stmt];
    struct box box = {.lo = lo, .hi = hi};
    int qi = v->counting ? -1 : race_queue(v, f->queue, f->unit);
    int *home = calloc((size_t)s->nreads + 1, sizeof *home);
    if (!home) abort();
    for (int r = 0; r <= s->nreads; r++)
        home[r] = schedule_home(v->s, r < s->nreads ? s->read[r].buffer : s->dst.buffer);
    if (qi >= 0) race_begin(v, qi, &n->signals);
    fallback_box(v, n, &box, qi, home);
    if (qi >= 0) race_push(v, qi, &n->signals);
    free(home);
}

/* ---- the end ---- */
static bool page_written(const struct verify *v, int buffer, int64_t element) {
    for (int w = v->latest[v->p->nstmts * v->p->nbuffers + buffer]; w >= 0; w = v->writers[w])
        if (counts_page(v, w, element)) return true;
    return false;
}

static void check_output(struct verify *v, int buffer) {
    const struct buffer *b = &v->p->buffer[buffer];
    int home = schedule_home(v->s, buffer);
    if (home < 0) {
        verify_error(v, "buffer '%s' has no home", b->name);
        return;
    }
    for (int64_t e = 0; e < b->elements && verify_step(v, 1); e++) {
        if (v->clamped && e % PAGE_ENTRIES == 0 && !page_written(v, buffer, e)) {
            e += PAGE_ENTRIES - 1;
            continue;
        }
        struct tag expected, found = tag_get(v, home_of(v, home, e), b->type);
        bool written = version_before(v, v->p->nstmts, buffer, e, &expected);
        if ((!written && v->clamped) || (written && same_tag(&found, &expected))) continue;
        struct text text = {0};
        text_printf(&text, "at the end ");
        element_text(v, buffer, e, &text);
        text_printf(&text, " is not complete at home, which holds ");
        tag_text(v, &found, &text);
        verify_error(v, "%s", text.at);
        text_free(&text);
        return;
    }
}

static void check_all_done(struct verify *v) {
    for (int s = 0; s < v->p->nstmts; s++) {
        if (v->in_recur[s]) continue;
        int64_t points = stmt_points(v->p, &v->p->stmt[s]);
        if (v->done[s] != points)
            verify_error(v, "%" PRId64 " of the %" PRId64 " instances of statement %d are executed",
                         v->done[s], points, s);
    }
}

void content_end(struct verify *v) {
    v->node = NULL;
    if (v->counting) {
        if (!v->clamped) check_all_done(v);
        return;
    }
    for (int b = 0; b < v->p->nbuffers && !v->stop; b++) {
        enum role role = v->p->buffer[b].role;
        if ((role == ROLE_OUT || role == ROLE_INOUT) && !v->loose[b]) check_output(v, b);
    }
}
