/* What the fallback's loops take. Rows: elements that follow one another at home. A compiler makes
 * vectors of a loop that goes along the rows of all that it touches, and copies of rows have
 * intervals of their own (docs/machine-format.md). Mapper, planner and clock all ask here. */
#include "machines/machine.h"
#include "ir/memory.h"
#include "ir/number.h"
#include "ir/pick.h"
#include <math.h>
#include <stdlib.h>

/* Of these axes that which walks the access's rows in the smallest steps, of `most` elements or
 * fewer; -1: there is none. */
static int near_axis(const struct program *p, uint64_t axes, const struct access *a,
                     const struct row_order *rows, int64_t most) {
    int dim = rows ? rows->dim(rows->of, a->buffer) : p->buffer[a->buffer].ndims - 1, found = -1;
    for (int x = 0; x < p->naxes && dim >= 0; x++) {
        int64_t step = access_coef(p, a, dim, x);
        if (!(axes >> x & 1) || p->axis[x].extent < 2 || step < 1 || step > most) continue;
        found = x;
        most = step - 1;
    }
    return found;
}

int rows_axis(const struct program *p, const struct stmt *s, const struct access *a,
              const struct row_order *rows) {
    return near_axis(p, s->axes, a, rows, 1);
}

/* Values of the axes that would be written out. Of axes that share a dimension of the source, as
 * those of a window, all but the longest are written out value by value. */
static double listed_values(const struct program *p, uint64_t axes, const struct access *from) {
    uint64_t listed = 0;
    double values = 1;
    for (int d = 0; d < p->buffer[from->buffer].ndims; d++) {
        int longest = -1;
        for (int a = 0; a < p->naxes; a++) {
            if (!(axes >> a & 1) || p->axis[a].extent < 2 || !access_coef(p, from, d, a)) continue;
            int other = a;
            if (longest < 0 || p->axis[a].extent > p->axis[longest].extent) {
                other = longest;
                longest = a;
            }
            if (other >= 0) listed |= UINT64_C(1) << other;
        }
    }
    for (int a = 0; a < p->naxes; a++)
        if (listed >> a & 1) values *= (double)p->axis[a].extent;
    return values;
}

bool copied_in_vectors(const struct program *p, uint64_t axes, const struct access *from,
                       const struct row_order *rows) {
    return listed_values(p, axes, from) <= MAX_LISTED &&
           near_axis(p, axes, from, rows, MOST_STEP) >= 0;
}

static enum copy_kind copy_kind_of(const struct program *p, const struct stmt *s,
                                   const struct row_order *rows) {
    const struct access *source = &s->read[s->op[0].read];
    int from = rows_axis(p, s, source, rows), to = rows_axis(p, s, &s->dst, rows);
    if (to < 0 || !copied_in_vectors(p, s->axes, source, rows)) return COPY_ANY;
    if (from != to) return COPY_TURN;
    return listed_values(p, s->axes, source) > 1 && p->axis[from].extent < ROW_OF_WINDOW
               ? COPY_TURN
               : COPY_ROWS;
}

/* What the library computes for one element, and what needs the value of the turn before. */
static bool one_by_one(const struct program *p, const struct stmt *s) {
    static const uint64_t library = UINT64_C(1) << OP_EXP | UINT64_C(1) << OP_LOG |
                                    UINT64_C(1) << OP_SIN | UINT64_C(1) << OP_COS |
                                    UINT64_C(1) << OP_TANH | UINT64_C(1) << OP_ERF |
                                    UINT64_C(1) << OP_ATAN | UINT64_C(1) << OP_POW |
                                    UINT64_C(1) << OP_SIGMOID | UINT64_C(1) << OP_MOD;
    bool found = false;
    for (int o = 0; o < s->nops; o++) found |= library >> s->op[o].code & 1;
    for (int a = 0; a < p->naxes; a++) found |= (s->axes >> a & 1) && p->axis[a].sequential;
    for (int r = 0; r < s->nreads; r++)
        found |= s->read[r].has_fill ||
                 (s->combine != COMBINE_SET && s->read[r].buffer == s->dst.buffer);
    return found;
}

static bool goes_along(const struct program *p, const struct stmt *s, int axis,
                       const struct row_order *rows) {
    bool along = s->combine != COMBINE_SET || rows_axis(p, s, &s->dst, rows) == axis;
    for (int r = -1; r < s->nreads && along; r++) {
        const struct access *a = r < 0 ? &s->dst : &s->read[r];
        along = !access_varies(p, a, axis) || rows_axis(p, s, a, rows) == axis;
    }
    return along;
}

/* The axis of the innermost loop that is made of vectors; -1: there is none. */
static int vector_axis(const struct program *p, const struct stmt *s,
                       const struct row_order *rows) {
    for (int a = 0; a < p->naxes && !one_by_one(p, s); a++)
        if ((s->axes >> a & 1) && p->axis[a].extent > 1 && goes_along(p, s, a, rows)) return a;
    return -1;
}

enum copy_kind loop_kind_of(const struct program *p, const struct stmt *s,
                            const struct row_order *rows) {
    if (s->combine == COMBINE_SET && s->nops == 1 && s->op[0].code == OP_READ && !s->nwhere)
        return copy_kind_of(p, s, rows);
    return vector_axis(p, s, rows) >= 0 ? COPY_VECTOR : COPY_NONE;
}

double op_weight(const struct machine *m, int fallback, enum opcode code) {
    if (code == OP_DIV || code == OP_MOD || code == OP_SQRT) return m->fallback[fallback].divide;
    if (code == OP_CLIP) return 2; /* a min and a max */
    return op_info[code].flags & OP_FLOAT_ONLY ? m->fallback[fallback].function : 1;
}

/* A float is cut to what the integer holds, at both ends and where it is none; then it is
 * converted, and packed. */
enum { FLOAT_TO_INTEGER = 6 };

/* An earlier read, or what the sums are added to, brings the same. */
static bool read_before(const struct program *p, const struct stmt *s, int read) {
    bool before = s->combine != COMBINE_SET && access_equal(p, &s->dst, &s->read[read]);
    for (int r = 0; r < read; r++) before |= access_equal(p, &s->read[r], &s->read[read]);
    return before;
}

static bool is_product(const struct op *o) {
    return o->code == OP_MUL && type_is_float(o->type);
}

/* Of one element, in additions: the operation alone, after its operands. An addition goes with a
 * product that the same turn makes. */
static double operation_work(const struct machine *m, int fallback, const struct stmt *s,
                             const bool *varies, const struct op *o) {
    const struct op *arg = &s->op[o->arg[0]];
    if (o->code == OP_ADD || o->code == OP_SUB)
        for (int k = 0; k < 2; k++)
            if (varies[o->arg[k]] && is_product(&s->op[o->arg[k]])) return 0;
    return o->code == OP_CAST && type_is_float(arg->type) && !type_is_float(o->type)
               ? FLOAT_TO_INTEGER
               : op_weight(m, fallback, o->code);
}

/* Bytes of its result or operand, whichever is wider. */
static size_t operation_size(const struct stmt *s, const struct op *o) {
    size_t size = type_size(o->type);
    for (int k = 0; k < op_info[o->code].arity; k++) {
        size_t arg = type_size(s->op[o->arg[k]].type);
        if (arg > size) size = arg;
    }
    return size;
}

static bool varies_with(const struct program *p, const struct stmt *s, const bool *varies, int op,
                        int axis) {
    const struct op *o = &s->op[op];
    bool with = o->code == OP_AXIS && o->axis == axis;
    if (o->code == OP_READ) with = access_varies(p, &s->read[o->read], axis);
    for (int k = 0; k < op_info[o->code].arity; k++) with |= varies[o->arg[k]];
    return with;
}

/* Of a point, in additions of four bytes: what the body of a loop along the axis computes, loads
 * and stores. What is the same for all turns stands before the loop; axis -1: nothing does. */
static double body_work(const struct machine *m, int fallback, const struct program *p,
                        const struct stmt *s, int axis) {
    bool *varies = memory_array((size_t)s->nops + 1, sizeof *varies);
    double bytes = 0, stored = (double)type_size(p->buffer[s->dst.buffer].type);
    for (int k = 0; k < s->nops; k++) {
        const struct op *o = &s->op[k];
        varies[k] = axis < 0 || varies_with(p, s, varies, k, axis);
        if (!varies[k]) continue;
        if (op_info[o->code].arity > 0)
            bytes += (double)operation_size(s, o) * operation_work(m, fallback, s, varies, o);
        else if (o->code == OP_READ && !read_before(p, s, o->read))
            bytes += (double)type_size(p->buffer[s->read[o->read].buffer].type);
    }
    free(varies);
    bool summed = s->combine != COMBINE_SET;
    if (summed && !(s->combine == COMBINE_ADD && is_product(&s->op[s->nops - 1]))) bytes += stored;
    if (axis < 0 || access_varies(p, &s->dst, axis)) bytes += summed ? 2 * stored : stored;
    return bytes / 4;
}

double loop_cycles(const struct machine *m, int fallback, const struct program *p,
                   const struct stmt *s, enum copy_kind kind, const struct row_order *rows) {
    double each = fallback_cycles(m, fallback, kind), vector = m->fallback[fallback].vector;
    if (vector < 0) return each;
    if (kind == COPY_VECTOR) return vector * body_work(m, fallback, p, s, vector_axis(p, s, rows));
    return kind == COPY_NONE ? each + vector * body_work(m, fallback, p, s, -1) : each;
}

double stream_cycles(const struct machine *m, struct passing s, double held, double *exposed) {
    double worst = 0;
    *exposed = 0;
    for (int k = 0; k < m->nmemories; k++) {
        const struct memory *mem = &m->memory[k];
        if (mem->caches < 0 || mem->size <= 0 || mem->line <= 0 ||
            held <= mem->usable * (double)mem->size)
            continue;
        double cycles = (s.brought + mem->writeback * s.back) / (double)mem->line * mem->refill;
        if (cycles <= worst) continue;
        worst = cycles;
        *exposed = cycles * (1 - mem->hidden);
    }
    return worst;
}

double access_bytes(const struct program *p, const struct stmt *s, const struct access *acc) {
    const struct buffer *b = &p->buffer[acc->buffer];
    double elements = 1;
    for (int a = 0; a < p->naxes; a++)
        if ((s->axes >> a & 1) && access_varies(p, acc, a)) elements *= (double)p->axis[a].extent;
    return fmin(elements, (double)b->elements) * (double)type_size(b->type);
}

/* Bytes of the buffer that the statement touches; of the average step, where its extent grows. */
static double touched_bytes(const struct program *p, const struct stmt *s, const struct access *acc,
                            double points) {
    double box = 1;
    for (int a = 0; a < p->naxes; a++)
        if (s->axes >> a & 1) box *= (double)p->axis[a].extent;
    return access_bytes(p, s, acc) * points / fmax(box, 1);
}

double loop_alone(const struct machine *m, int fallback, const struct program *p,
                  const struct stmt *s, const struct row_order *rows) {
    double points = (double)stmt_looks_at(p, s, stmt_points(p, s)), exposed;
    enum copy_kind kind = loop_kind_of(p, s, rows);
    double cycles = points * loop_cycles(m, fallback, p, s, kind, rows);
    if (kind == COPY_ANY || kind == COPY_NONE) return cycles;
    double back = points * (double)type_size(p->buffer[s->dst.buffer].type), brought = 2 * back;
    if (kind == COPY_VECTOR) {
        brought = back = touched_bytes(p, s, &s->dst, points);
        for (int r = 0; r < s->nreads; r++)
            brought += read_before(p, s, r) ? 0 : touched_bytes(p, s, &s->read[r], points);
    }
    return cycles + stream_cycles(m, (struct passing){brought, back}, brought, &exposed);
}
