#if ISAMAP_WITH_LLVM
#include "backends/cpu/copy_int.h"

#include <string.h>

/* A statement that only copies, D[…] = S[…]: its loops go by strides, not in the program's order;
 * rows that lie along one axis on both sides are copied by vectors, others turned in small squares.
 * Axes along which elements do not lie in equal steps (those of a window, several in one block) are
 * written out, value by value. Each of these *entries* is where their values begin on both sides.
 */

struct spot { /* loops around: their variables with the bytes that each moves */
    struct term term[2][MAX_WALKS];
    int n;
    int64_t constant[2];
};

static struct spot spot_in(const struct spot *s, struct lv v, const struct walk *w) {
    struct spot t = *s;
    t.term[0][t.n] = (struct term){w->from, v};
    t.term[1][t.n++] = (struct term){w->to, v};
    return t;
}

static LLVMValueRef pointer(const struct copier *c, const struct spot *s, int side, int64_t more) {
    struct term term[MAX_WALKS];
    memcpy(term, s->term[side], sizeof term[0] * (size_t)s->n);
    return pointer_terms(c->f, c->base[side], term, s->n, s->constant[side] + more);
}

static LLVMTypeRef vector(const struct copier *c, int64_t n) {
    return n == 1 ? c->type : LLVMVectorType(c->type, (unsigned)n);
}

static LLVMValueRef load(const struct copier *c, const struct spot *s, int64_t more, int64_t n) {
    LLVMValueRef v = LLVMBuildLoad2(c->f->builder, vector(c, n), pointer(c, s, 0, more), "");
    LLVMSetAlignment(v, (unsigned)c->size);
    return v;
}

static void store(const struct copier *c, const struct spot *s, int64_t more, LLVMValueRef v) {
    LLVMSetAlignment(LLVMBuildStore(c->f->builder, v, pointer(c, s, 1, more)), (unsigned)c->size);
}

static LLVMValueRef filled(const struct copier *c, int64_t n) {
    LLVMValueRef v[SQUARE];
    for (int i = 0; i < SQUARE; i++) v[i] = c->fill;
    return n == 1 ? c->fill : LLVMConstVector(v, (unsigned)n);
}

/* One element, or n consecutive ones on both sides. */
static void move(const struct copier *c, const struct spot *s, int64_t n, bool outside) {
    store(c, s, 0, outside ? filled(c, n) : load(c, s, 0, n));
}

/* n elements, each `step` behind the one before: as many vectors as steps, none of which reaches
 * past the last element, and of each its part. */
static LLVMValueRef load_steps(const struct copier *c, const struct spot *s, int64_t more, int n,
                               int step) {
    LLVMTypeRef i32 = LLVMInt32TypeInContext(c->f->cpu->context);
    LLVMValueRef sum = load(c, s, more, n), mask[SQUARE];
    for (int v = 1, last = (n - 1) * step + 1 - n; v < step; v++) {
        int first = v * n < last ? v * n : last;
        for (int i = 0; i < n; i++) {
            int at = i * step, of = at / n < step - 1 ? at / n : step - 1;
            mask[i] = LLVMConstInt(i32,
                                   (unsigned)(of == v ? n + at - first
                                              : v > 1 ? i
                                                      : at % n),
                                   false);
        }
        sum = LLVMBuildShuffleVector(c->f->builder, sum, load(c, s, more + first * c->size, n),
                                     LLVMConstVector(mask, (unsigned)n), "");
    }
    return sum;
}

/* A square of n × n: rows of the source become columns (log2 n steps, each exchanging half of the
 * elements between two rows). Row i begins at from[i]; bits of `outside`: it is not there. */
static void turn(const struct copier *c, const struct spot *s, int n, const int64_t *from, int step,
                 uint64_t outside, int64_t to) {
    LLVMBuilderRef B = c->f->builder;
    LLVMValueRef row[SQUARE], mask[2][SQUARE];
    LLVMTypeRef i32 = LLVMInt32TypeInContext(c->f->cpu->context);
    for (int i = 0; i < n; i++)
        row[i] = outside >> i & 1 ? filled(c, n) : load_steps(c, s, from[i], n, step);
    for (int h = 1; h < n; h *= 2) {
        for (int j = 0; j < n; j++) {
            mask[0][j] = LLVMConstInt(i32, (unsigned)(j & h ? n + j - h : j), false);
            mask[1][j] = LLVMConstInt(i32, (unsigned)(j & h ? n + j : j + h), false);
        }
        for (int i = 0; i < n; i++) {
            if (i & h) continue;
            LLVMValueRef a = row[i], b = row[i + h];
            for (int k = 0; k < 2; k++)
                row[i + k * h] =
                    LLVMBuildShuffleVector(B, a, b, LLVMConstVector(mask[k], (unsigned)n), "");
        }
    }
    for (int i = 0; i < n; i++) store(c, s, i * to, row[i]);
}

struct inner { /* the loops inside all others: along rows of the source, and of the destination */
    struct walk row, column;
    bool turns, dense, listed;
    int64_t zip; /* elements of so many rows follow each other in the destination; 0 */
    uint64_t outside;
};

/* The largest of 8, 4, 2, 1 that is not more. */
static int64_t vector_of(int64_t extent) {
    int64_t n = SQUARE;
    while (n > extent) n /= 2;
    return n;
}

/* The body in steps of n, the last of which reaches back over elements that are copied already. */
typedef void (*step_fn)(const struct copier *, const struct spot *, const struct inner *);

static void in_steps(const struct copier *c, const struct spot *s, const struct inner *in,
                     const struct walk *w, int64_t n, step_fn body) {
    int64_t hi = w->extent / n * n;
    struct frame r;
    struct lv v = frame_open(c->f, &r, lv_const(c->f, 0), lv_const(c->f, hi), n, 0, NULL);
    struct spot t = spot_in(s, v, w);
    body(c, &t, in);
    frame_close(c->f, &r, NULL);
    if (hi == w->extent) return;
    t = *s;
    t.constant[0] += (w->extent - n) * w->from;
    t.constant[1] += (w->extent - n) * w->to;
    body(c, &t, in);
}

static void move_step(const struct copier *c, const struct spot *s, const struct inner *in) {
    int64_t n = in->dense ? vector_of(in->row.extent) : 1;
    if (in->outside || n == 1 || in->row.from == c->size)
        move(c, s, n, in->outside);
    else
        store(c, s, 0, load_steps(c, s, 0, (int)n, (int)(in->row.from / c->size)));
}

static void turn_step(const struct copier *c, const struct spot *s, const struct inner *in) {
    int64_t n = vector_of(in->row.extent), m = vector_of(in->column.extent), side = m < n ? m : n;
    for (int64_t i = 0; i < n; i += side)
        for (int64_t k = 0; k < m; k += side) {
            struct spot one = *s;
            int64_t from[SQUARE];
            one.constant[0] += i * in->row.from + k * in->column.from;
            one.constant[1] += i * in->row.to + k * in->column.to;
            for (int j = 0; j < side; j++) from[j] = j * in->column.from;
            turn(c, &one, (int)side, from, (int)(in->row.from / c->size), 0, in->row.to);
        }
}

/* n values of the row for m entries from e on, which follow each other in the destination. */
static void entries_turn(const struct copier *c, const struct spot *s, const struct inner *in,
                         int64_t n, int e, int64_t m) {
    int64_t side = m < n ? m : n, from[SQUARE];
    for (int64_t i = 0; i < n; i += side)
        for (int64_t k = 0; k < m; k += side) {
            struct spot one = *s;
            const struct entry *first = &c->entry[e + k];
            one.constant[0] += i * in->row.from;
            one.constant[1] += i * in->row.to + first->to;
            for (int j = 0; j < side; j++) from[j] = first[j].from;
            if (side > 1) {
                turn(c, &one, (int)side, from, (int)(in->row.from / c->size),
                     in->outside >> (e + k), in->row.to);
            } else {
                one.constant[0] += first->from;
                move(c, &one, 1, in->outside >> (e + k) & 1);
            }
        }
}

/* Entries that follow each other are turned together; the last of them in steps that reach back. */
static void listed_step(const struct copier *c, const struct spot *s, const struct inner *in) {
    bool fills = in->outside == all_entries(c);
    int64_t n = fills ? 1 : vector_of(in->row.extent);
    for (int e = 0, run; e < c->nentries; e += run) {
        for (run = 1; e + run < c->nentries; run++)
            if (c->entry[e + run].to != c->entry[e].to + run * c->size) break;
        int64_t m = n > 1 || fills ? vector_of(run) : 1;
        for (int64_t k = 0; k < run; k += m) {
            int first = e + (int)(k + m > run ? run - m : k);
            if (fills)
                store(c, s, c->entry[first].to, filled(c, m));
            else
                entries_turn(c, s, in, n, first, m);
        }
    }
}

/* As in_steps, in one loop. */
static void listed_steps(const struct copier *c, const struct spot *s, const struct inner *in) {
    bool fills = in->outside == all_entries(c);
    int64_t n = fills ? 1 : vector_of(in->row.extent), last = in->row.extent - n;
    struct frame r;
    struct lv v = frame_open(c->f, &r, lv_const(c->f, 0), lv_const(c->f, last + n), n, 0, NULL);
    if (last % n) v = lv_op(c->f, SX_MIN, v, lv_const(c->f, last));
    struct spot t = spot_in(s, v, &in->row);
    listed_step(c, &t, in);
    frame_close(c->f, &r, NULL);
}

/* Elements of a row that one register of 16 bytes holds. */
static int64_t zip_length(const struct copier *c) {
    return ZIP_BYTES / c->size;
}

/* Rows whose elements alternate in the destination: log2 steps, each of which lets the elements of
 * the first half of the rows alternate with those of the second. */
static void zip_step(const struct copier *c, const struct spot *s, const struct inner *in) {
    int n = (int)zip_length(c), m = (int)in->zip;
    LLVMTypeRef i32 = LLVMInt32TypeInContext(c->f->cpu->context);
    LLVMValueRef row[SQUARE], next[SQUARE], mask[ZIP_BYTES];
    for (int i = 0; i < m; i++) row[i] = load(c, s, i * in->column.from, n);
    for (int step = 1; step < m; step *= 2) {
        for (int half = 0; half < 2; half++) {
            for (int j = 0; j < n; j++)
                mask[j] = LLVMConstInt(i32, (unsigned)((half * n + j) / 2 + j % 2 * n), false);
            for (int i = 0; i < m / 2; i++)
                next[2 * i + half] = LLVMBuildShuffleVector(c->f->builder, row[i], row[i + m / 2],
                                                            LLVMConstVector(mask, (unsigned)n), "");
        }
        memcpy(row, next, sizeof *row * (size_t)m);
    }
    for (int i = 0; i < m; i++) store(c, s, i * n * c->size, row[i]);
}

static void across(const struct copier *c, const struct spot *s, const struct inner *in) {
    in_steps(c, s, in, &in->column, vector_of(in->column.extent), turn_step);
}

static void nest(const struct copier *c, const struct spot *s, const struct walk *w, int n,
                 const struct inner *in) {
    if (!n && in->listed) {
        listed_steps(c, s, in);
        return;
    }
    if (!n && in->zip) {
        in_steps(c, s, in, &in->row, zip_length(c), zip_step);
        return;
    }
    if (!n) {
        in_steps(c, s, in, &in->row, in->dense || in->turns ? vector_of(in->row.extent) : 1,
                 in->turns ? across : move_step);
        return;
    }
    struct frame r;
    struct lv v = frame_open(c->f, &r, lv_const(c->f, 0), lv_const(c->f, w->extent), 1, 0, NULL);
    struct spot t = spot_in(s, v, w);
    nest(c, &t, w + 1, n - 1, in);
    frame_close(c->f, &r, NULL);
}

static struct walk take(struct walk *w, int *n, int at) {
    struct walk out = w[at];
    memmove(&w[at], &w[at + 1], sizeof *w * (size_t)(--*n - at));
    return out;
}

/* Largest steps of the destination outside; what is contiguous on both sides becomes one loop. */
static int order_walks(struct walk *w, int n) {
    int kept = 0;
    for (int i = 1; i < n; i++)
        for (int k = i; k > 0 && w[k - 1].to < w[k].to; k--) {
            struct walk x = w[k];
            w[k] = w[k - 1];
            w[k - 1] = x;
        }
    for (int i = 0; i < n; i++) {
        struct walk *out = &w[kept - 1];
        if (kept && out->from == w[i].extent * w[i].from && out->to == w[i].extent * w[i].to)
            *out = (struct walk){out->extent * w[i].extent, w[i].from, w[i].to};
        else
            w[kept++] = w[i];
    }
    return kept;
}

/* The loop along which the source's elements lie closest, not farther apart than vectors are
 * loaded; -1: there is none. */
static int near_walk(const struct copier *c, const struct walk *w, int n) {
    int best = -1;
    for (int i = 0; i < n; i++)
        if (w[i].from > 0 && w[i].from <= MOST_STEP * c->size && w[i].from % c->size == 0 &&
            (best < 0 || w[i].from < w[best].from))
            best = i;
    return best;
}

/* No loop goes along the destination's elements, but entries may: they are inside all loops. */
static void build_listed(const struct copier *c, struct walk *w, int n, const struct spot *start,
                         uint64_t outside) {
    struct inner in = {.row = {1, 0, 0}, .outside = outside, .listed = true};
    n = order_walks(w, n);
    int row = near_walk(c, w, n);
    if (row >= 0) in.row = take(w, &n, row);
    nest(c, start, w, n, &in);
}

/* One entry by itself. */
static void build_alone(const struct copier *c, struct walk *w, int n, const struct spot *start,
                        bool outside) {
    struct inner in = {.row = {1, 0, 0}, .outside = outside};
    int row = -1, column = -1;
    if (outside)
        for (int i = 0; i < n; i++) w[i].from = w[i].to;
    n = order_walks(w, n);
    for (int i = 0; i < n; i++) {
        if (w[i].from == c->size) row = i;
        if (w[i].to == c->size) column = i;
    }
    if (row < 0 && column >= 0 && !outside) row = near_walk(c, w, n);
    in.dense = row >= 0 && row == column;
    in.turns = row >= 0 && column >= 0 && row != column;
    if (in.turns) {
        in.row = take(w, &n, row);
        in.column = take(w, &n, column > row ? column - 1 : column);
        int64_t m = in.column.extent;
        if (m <= SQUARE && m == vector_of(m) && in.row.from == c->size &&
            in.row.to == m * c->size && m * c->size <= ZIP_BYTES && in.row.extent >= zip_length(c))
            in.zip = m;
    } else if (n) {
        in.row = take(w, &n, column >= 0 ? column : n - 1);
    }
    nest(c, start, w, n, &in);
}

static void build_piece(const struct copier *c, const struct walk *w, int n,
                        const struct spot *start, uint64_t outside) {
    struct walk own[MAX_WALKS];
    bool along = c->nentries == 1;
    for (int i = 0; i < n; i++) along |= w[i].to == c->size;
    memcpy(own, w, sizeof *w * (size_t)n);
    if (!along) build_listed(c, own, n, start, outside);
    for (int e = 0; e < c->nentries && along; e++) {
        struct spot s = *start;
        s.constant[0] += c->entry[e].from;
        s.constant[1] += c->entry[e].to;
        memcpy(own, w, sizeof *w * (size_t)n);
        build_alone(c, own, n, &s, outside >> e & 1);
    }
}

static void build_pieces(const struct copier *c, const struct ways *ways, int k, struct walk *w,
                         int n, const struct spot *s, uint64_t outside) {
    if (k == c->naxes) {
        build_piece(c, w, n, s, outside);
        return;
    }
    for (int i = 0; i < ways->n[k]; i++) {
        const struct piece *p = &ways->piece[k][i];
        struct spot t = *s;
        int m = n;
        t.constant[0] += p->from;
        t.constant[1] += p->to;
        for (int j = 0; j < p->n; j++)
            if (p->walk[j].extent > 1) w[m++] = p->walk[j];
        build_pieces(c, ways, k + 1, w, m, &t, outside | p->outside);
    }
}

/* A program sets each element once (ir/program_verify.c), so where the source is another buffer any
 * order will do. */
bool stmt_order_free(const struct stmt *st) {
    if (st->combine != COMBINE_SET) return false;
    for (int r = 0; r < st->nreads; r++)
        if (st->read[r].buffer == st->dst.buffer) return false;
    return true;
}

LLVMValueRef copy_fill(const struct copier *c) {
    enum type t = c->program->buffer[c->stmt->dst.buffer].type;
    if (!c->access[0]->has_fill) return LLVMConstNull(c->type);
    union value v = c->access[0]->fill;
    if (type_is_float(t) ? v.f == 0 && !__builtin_signbit(v.f) : v.i == 0)
        return LLVMConstNull(c->type);
    if (t == TYPE_F32 || t == TYPE_F64)
        return LLVMConstBitCast(
            LLVMConstReal(t == TYPE_F32 ? c->f->cpu->f32 : c->f->cpu->f64, type_round(t, v.f)),
            c->type);
    return type_is_float(t)
               ? NULL
               : LLVMConstInt(c->type, t == TYPE_BOOL ? v.i != 0 : (uint64_t)v.i, true);
}

void copy_build(struct copier *c, const struct ways *ways) {
    struct walk w[MAX_WALKS];
    struct spot s = {.n = 0, .constant = {c->start[0], c->start[1]}};
    for (int side = 0; side < 2; side++)
        c->base[side] = place_base(c->f, (int)(c->place[side] - c->f->cpu->schedule->place));
    for (int i = 0; i < c->naxes; i++) {
        int a = c->axis[i];
        bool known = c->start_low[a] == c->start_high[a];
        for (int side = 0; side < 2; side++) {
            int64_t by = known ? c->start_low[a] : c->grid[a], step = step_of(c, side, a, by);
            if (known)
                s.constant[side] += step;
            else
                s.term[side][s.n] = (struct term){step / by, c->first[a]};
        }
        s.n += !known;
    }
    build_pieces(c, ways, 0, w, 0, &s, c->never);
}
#endif
