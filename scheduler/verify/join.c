/* Issues that execute several statements. Each statement of the semantics is compared with the one
 * that the schedule names for it, and the values that pass between them inside the instruction are
 * followed element by element: what the program's statement reads must be what the instruction's
 * statement finds, complete. */
#include "scheduler/verify/verify_int.h"
#include "ir/memory.h"

#include <stdlib.h>
#include <string.h>

enum { NOTHING = -1, GARBAGE = -2 };

struct cell {        /* of a buffer that the semantics write */
    int64_t element; /* of the program's buffer; or NOTHING, GARBAGE */
    int writer;      /* statement */
    uint32_t count;
};

struct joined {
    struct verify *v;
    const struct issue_node *n;
    const struct shape *h;
    const struct place_at *at;
    int stmt[MAX_JOINED];
    struct cell **cell; /* of each buffer of the semantics; NULL: only read */
    int *pair;          /* of each, the program's buffer */
    const struct candidate_of *candidate;
    int64_t base[MAX_AXES], point[MAX_AXES], x[MAX_AXES];
    bool alone;
};

static int64_t element_of(const struct program *p, const struct access *a, const int64_t *at) {
    const struct buffer *b = &p->buffer[a->buffer];
    int64_t element = 0;
    for (int d = 0; d < b->ndims; d++) {
        int64_t i = access_coef(p, a, d, p->naxes);
        for (int k = 0; k < p->naxes; k++) i += access_coef(p, a, d, k) * at[k];
        if (i < 0 || i >= b->extent[d]) return -1;
        element = element * b->extent[d] + i;
    }
    return element;
}

static struct place_at place_of(const struct joined *w, int operand, int64_t element) {
    struct place_at x = w->at[operand];
    x.address = swizzle_address(w->h->operand[operand].swizzle,
                                x.address + shape_offset(w->h, operand, element));
    x.instance += shape_instance(w->h, operand, element);
    return x;
}

/* ---- points of one statement of the semantics ---- */
static void begin(struct joined *w) {
    memset(w->x, 0, sizeof w->x);
    memcpy(w->point, w->base, sizeof w->point);
    w->alone = false;
}

static bool next(struct joined *w, const struct stmt *own) {
    for (int k = w->h->naxes - 1; k >= 0; k--) {
        int a = w->h->axis_of[k];
        if (!(own->axes >> a & 1)) continue;
        bool more = ++w->x[a] < w->h->bound->axis[a].extent;
        if (!more) w->x[a] = 0;
        if (w->n->axis[k] >= 0) w->point[w->n->axis[k]] = w->base[w->n->axis[k]] + w->x[a];
        if (more) break;
        if (k == 0) return false;
        bool outer = false;
        for (int i = 0; i < k; i++) outer |= own->axes >> w->h->axis_of[i] & 1;
        if (!outer) return false;
    }
    w->alone = false;
    bool any = false;
    for (int k = 0; k < w->h->naxes; k++) {
        any |= own->axes >> w->h->axis_of[k] & 1;
        w->alone |= w->n->axis[k] < 0 && w->x[w->h->axis_of[k]] > 0;
    }
    return any;
}

/* ---- what the statements are to one another ---- */
static bool internal(const struct joined *w, int buffer) {
    return w->cell[buffer] != NULL;
}

static bool pairs_open(struct joined *w) {
    const struct program *b = w->h->bound;
    w->cell = memory_array((size_t)b->nbuffers + 1, sizeof *w->cell);
    w->pair = memory_array((size_t)b->nbuffers + 1, sizeof *w->pair);
    for (int q = 0; q < w->h->nparts; q++) {
        int own = b->stmt[q].dst.buffer, hay = w->v->p->stmt[w->stmt[q]].dst.buffer;
        if (!w->cell[own]) {
            size_t n = (size_t)b->buffer[own].elements + 1;
            w->cell[own] = memory_bytes(n * sizeof *w->cell[own]);
            for (size_t e = 0; e < n; e++) w->cell[own][e] = (struct cell){.element = NOTHING};
            w->pair[own] = hay;
        }
        for (int k = 0; k < b->nbuffers; k++)
            if (w->cell[k] && (k == own) != (w->pair[k] == hay))
                return verify_error(w->v, "statement %d does not write what '%s' is in '%s'",
                                    w->stmt[q], b->buffer[own].name,
                                    w->v->m->instr[w->h->instr].id);
    }
    return true;
}

static bool touches(const struct stmt *s, int buffer) {
    for (int r = 0; r < s->nreads; r++)
        if (s->read[r].buffer == buffer) return true;
    return s->dst.buffer == buffer;
}

static bool order_kept(const struct joined *w) {
    const struct verify *v = w->v;
    for (int q = 0; q < w->h->nparts; q++)
        for (int k = q + 1; k < w->h->nparts; k++) {
            const struct stmt *a = &v->p->stmt[w->stmt[q]], *b = &v->p->stmt[w->stmt[k]];
            bool tied = touches(b, a->dst.buffer) || touches(a, b->dst.buffer);
            if (tied && v->position[w->stmt[q]] > v->position[w->stmt[k]])
                return verify_error(w->v, "one issue executes statement %d before statement %d",
                                    w->stmt[q], w->stmt[k]);
        }
    return true;
}

static bool moves(const struct program *p, const struct access *a, int axis) {
    for (int d = 0; d < p->buffer[a->buffer].ndims; d++)
        if (access_coef(p, a, d, axis)) return true;
    return false;
}

/* Both go over the same axes, and what the program's statement sums, the issue sums whole. */
static bool sums_whole(const struct joined *w, int q) {
    const struct program *p = w->v->p, *b = w->h->bound;
    const struct stmt *own = &b->stmt[q], *hay = &p->stmt[w->stmt[q]];
    uint64_t covered = 0;
    for (int k = 0; k < w->h->naxes; k++) {
        int x = w->h->axis_of[k], a = w->n->axis[k];
        if (a < 0) continue;
        if ((own->axes >> x ^ hay->axes >> a) & 1)
            return verify_error(w->v, "'%s' and statement %d do not both go over axis '%s'",
                                w->v->m->instr[w->h->instr].id, w->stmt[q], p->axis[a].name);
        if (!(own->axes >> x & 1)) continue;
        bool whole = w->base[a] == 0 && b->axis[x].extent >= p->axis[a].extent;
        if (moves(p, &hay->dst, a) ? moves(b, &own->dst, x) || p->axis[a].extent == 1
                                   : whole && (!moves(b, &own->dst, x) || p->axis[a].extent == 1))
            covered |= UINT64_C(1) << a;
    }
    for (int a = 0; a < p->naxes; a++)
        if (hay->axes >> a & 1 && !(covered >> a & 1) && p->axis[a].extent > 1 &&
            !moves(p, &hay->dst, a))
            return verify_error(w->v, "one issue has only a part of axis '%s' of statement %d",
                                p->axis[a].name, w->stmt[q]);
    return true;
}

/* ---- one point ---- */
static struct tag found_at(const struct joined *w, const struct shape *part, int read) {
    const struct program *b = w->h->bound;
    const struct access *a = &part->stmt->read[read];
    int operand = part->read_operand[read];
    enum type type = b->buffer[a->buffer].type;
    int64_t e = element_of(b, a, w->x);
    if (w->n->arg[operand].place < 0) return tag_const(type, w->n->arg[operand].imm);
    return e < 0 ? tag_const(type, a->fill) : tag_get(w->v, place_of(w, operand, e), type);
}

/* Read `target` of the program's statement, or its destination before. */
static int64_t wanted(const struct joined *w, int stmt, int target, int *buffer) {
    const struct stmt *s = &w->v->p->stmt[stmt];
    *buffer = target == SELF ? s->dst.buffer : s->read[target].buffer;
    return access_at(w->v, stmt, target == SELF ? -1 : target, w->point);
}

static bool read_right(struct joined *w, const struct shape *part, int stmt, int read, int target,
                       bool quiet) {
    const struct access *a = &part->stmt->read[read];
    if (target == UNUSED) return true;
    if (!internal(w, a->buffer)) {
        struct tag found = found_at(w, part, read), expected;
        if (target == SELF) return false;
        if (!quiet) return point_check_read(w->v, stmt, target, w->point, &found);
        return point_expected(w->v, stmt, target, w->point, &expected) &&
               tag_same(&found, &expected);
    }
    int buffer;
    int64_t e = wanted(w, stmt, target, &buffer), mine = element_of(w->h->bound, a, w->x);
    if (buffer == w->pair[a->buffer] && e >= 0 && mine >= 0 &&
        w->cell[a->buffer][mine].element == e)
        return true;
    return quiet ? false
                 : point_error(w->v, stmt, w->point, "finds something else inside the instruction",
                               NULL, NULL);
}

struct at_part {
    struct joined *w;
    const struct shape *part;
    int stmt;
};

static bool operand_may(void *user, int input, int target) {
    const struct at_part *at = user;
    return input == SELF || read_right(at->w, at->part, at->stmt, input, target, true);
}

static void choose(struct joined *w, const struct shape *part, const struct issue_node *as,
                   struct binding_of *b) {
    int stmt = as->stmt;
    for (int c = 0; c < b->n; c++) {
        bool fits = true;
        for (int r = 0; r < part->stmt->nreads && fits; r++)
            fits = read_right(w, part, stmt, r, b->candidate[c].read[r], true);
        if (!fits) continue;
        w->candidate = &b->candidate[c];
        return;
    }
    struct at_part at = {w, part, stmt};
    w->candidate = binding_fitting(w->v, part, as, b, operand_may, &at);
    if (!w->candidate) w->candidate = &b->candidate[0];
}

static bool inside_point(struct joined *w, const struct shape *part, int stmt, struct cell *c) {
    int64_t element = access_at(w->v, stmt, -1, w->point);
    for (int r = 0; r < part->stmt->nreads; r++)
        if (!read_right(w, part, stmt, r, w->candidate->read[r], false)) return false;
    if (element < 0)
        return point_error(w->v, stmt, w->point, "writes outside its buffer", NULL, NULL);
    if (part->stmt->combine != COMBINE_SET) {
        int buffer;
        if (w->candidate->self == UNUSED ||
            wanted(w, stmt, w->candidate->self, &buffer) != c->element)
            return point_error(w->v, stmt, w->point,
                               "accumulates to something else inside the instruction", NULL, NULL);
    }
    bool more = w->v->p->stmt[stmt].combine != COMBINE_SET && c->writer == stmt && c->element >= 0;
    *c = (struct cell){element, stmt, more ? c->count + 1 : 1};
    return true;
}

/* Padding may fill what nobody reads, or add nothing to a sum. */
static bool padded_point(struct joined *w, const struct shape *part, int stmt, struct cell *c) {
    const struct stmt *own = part->stmt;
    enum type type = w->h->bound->buffer[own->dst.buffer].type;
    struct tag read[MAX_READS];
    union value x, neutral;
    if (c->element < 0) {
        c->element = GARBAGE;
        return true;
    }
    if (own->combine != COMBINE_SET) {
        for (int r = 0; r < own->nreads; r++)
            read[r] = internal(w, own->read[r].buffer) ? (struct tag){0} : found_at(w, part, r);
        neutral = combiner_neutral(own->combine, type);
        if (shape_value(part, read, &x) &&
            (type_is_float(type) ? x.f == neutral.f : x.i == neutral.i))
            return true;
    }
    return point_error(w->v, stmt, w->point,
                       "is changed by padding: along a reduction an operand must be zero there",
                       NULL, NULL);
}

static bool run_part(struct joined *w, int q) {
    struct verify *v = w->v;
    struct shape part = w->h->part[q];
    int stmt = w->stmt[q];
    struct issue_node as = *w->n;
    as.stmt = stmt;
    struct binding_of *b = binding_get(v, &part, &as, false);
    if (b->n == 0)
        return verify_error(v, "statement %d of '%s' does not compute statement %d", q,
                            v->m->instr[w->h->instr].id, stmt);
    if (!sums_whole(w, q)) return false;
    w->candidate = NULL;
    begin(w);
    do {
        bool inside = !w->alone && point_in_domain(v, stmt, w->point);
        int64_t mine = element_of(w->h->bound, &part.stmt->dst, w->x);
        if (!verify_step(v, 1)) return false;
        if (mine < 0) return verify_error(v, "the semantics write outside their buffer");
        struct cell *c = &w->cell[part.stmt->dst.buffer][mine];
        if (v->counting) {
            int64_t e = inside ? access_at(v, stmt, -1, w->point) : -1;
            if (e >= 0 && !point_count(v, stmt, w->point, e)) return false;
            continue;
        }
        if (inside && !w->candidate) choose(w, &part, &as, b);
        if (!(inside ? inside_point(w, &part, stmt, c) : padded_point(w, &part, stmt, c)))
            return false;
    } while (next(w, part.stmt));
    return true;
}

/* With loops cut short what it reads may have been left out: then all of it is. */
static bool left_out(struct joined *w, int q) {
    const struct stmt *s = &w->v->p->stmt[w->stmt[q]];
    struct tag ignored;
    begin(w);
    do {
        if (w->alone || !point_in_domain(w->v, w->stmt[q], w->point)) continue;
        for (int r = 0; r < s->nreads; r++) {
            int b = s->read[r].buffer;
            bool handed = false;
            for (int k = 0; k < w->h->bound->nbuffers; k++) handed |= w->cell[k] && w->pair[k] == b;
            if (handed || w->v->loose[b] || !step_writes_before(w->v, w->stmt[q], b)) continue;
            int64_t e = access_at(w->v, w->stmt[q], r, w->point);
            if (e >= 0 && !version_before(w->v, w->stmt[q], w->point, b, e, &ignored)) return true;
        }
    } while (next(w, &w->h->bound->stmt[q]));
    return false;
}

static void store(struct joined *w, bool nothing) {
    int o = w->h->dst_operand, buffer = w->h->stmt->dst.buffer;
    enum type type = w->v->m->instr[w->h->instr].operand[o].type;
    for (int64_t e = 0; e < w->h->operand[o].elements; e++) {
        const struct cell *c = &w->cell[buffer][e];
        struct tag t = {0};
        if (c->element == NOTHING && !nothing) continue;
        if (c->element >= 0)
            t = tag_element(w->pair[buffer], c->element, c->writer, c->count, type);
        tag_set(w->v, place_of(w, o, e), type, t);
    }
}

static bool points_known(struct joined *w) {
    for (int a = 0; a < w->v->p->naxes; a++) {
        w->base[a] = w->n->base[a] ? sx_eval(w->n->base[a], w->v->var) : 0;
        if (w->base[a] <= -(INT64_C(1) << 50) || w->base[a] >= INT64_C(1) << 50)
            return verify_error(w->v, "axis '%s' begins out of range", w->v->p->axis[a].name);
    }
    return true;
}

static void execute(struct joined *w) {
    struct verify *v = w->v;
    bool out = false;
    if (!points_known(w) || !pairs_open(w) || !order_kept(w)) return;
    for (int q = 0; v->clamped && q < w->h->nparts && !out; q++) out = left_out(w, q);
    if (out)
        for (int q = 0; q < w->h->nparts; q++) v->skipped[w->stmt[q]] = true;
    for (int q = 0; q < w->h->nparts && !out; q++)
        if (!run_part(w, q)) return;
    if (!v->counting) store(w, out);
}

void content_joined(struct verify *v, const struct issue_node *n, const struct shape *h,
                    const struct place_at *at) {
    struct joined w = {.v = v, .n = n, .h = h, .at = at};
    if (n->stmt < 0 || n->nalso + 1 != h->nparts || n->init >= 0) {
        verify_error(v, "'%s' has %d statements, so it must execute as many",
                     v->m->instr[h->instr].id, h->nparts);
        return;
    }
    for (int q = 0; q < n->nalso; q++) w.stmt[q] = n->also[q];
    w.stmt[n->nalso] = n->stmt;
    for (int q = 0; q < h->nparts; q++)
        if (v->recurrence_of[w.stmt[q]] >= 0) {
            verify_error(v, "statement %d of a recurrence is executed with others", w.stmt[q]);
            return;
        }
    execute(&w);
    for (int k = 0; w.cell && k < h->bound->nbuffers; k++) free(w.cell[k]);
    free(w.cell);
    free(w.pair);
}
