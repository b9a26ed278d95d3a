#if ISAMAP_WITH_LLVM
#include "backends/cpu/cpu_int.h"
#include "machines/layout.h"

#include <string.h>

/* A statement that only copies, D[…] = S[…]: its loops go by strides, not in the program's order;
 * rows that lie along one axis on both sides are copied by vectors, others turned in small squares.
 */

enum { MAX_WALKS = 3 * MAX_DIMS, MAX_PIECES = 64, SQUARE = 8, MAX_STARTS = 1 << 14 };

/* A loop of the copy: what one step moves on both sides, in bytes. */
struct walk {
    int64_t extent, from, to;
};

/* One way through part of an axis: one or two loops, where they begin, and whether the source is
 * outside its buffer there. */
struct piece {
    struct walk walk[2];
    int n;
    int64_t from, to;
    bool outside;
};

struct copier {
    struct function *f;
    const struct program *program;
    const struct stmt *stmt;
    const struct place *place[2]; /* source, destination */
    const struct access *access[2];
    LLVMValueRef base[2];
    int64_t start[2], size;
    LLVMTypeRef type; /* of an element's bits */
    LLVMValueRef fill;
    int axis[MAX_DIMS], naxes, pieces;
    int64_t extent[MAX_AXES], /* of the part that is copied */
        grid[MAX_AXES]; /* it begins at a variable, a multiple of so much; 0: at the axis's first
                           value */
    struct lv first[MAX_AXES];
};

/* ---- where elements lie ---- */

static int64_t offset_at(const struct copier *c, int side, const int64_t *value) {
    const struct place *p = c->place[side];
    const struct buffer *b = &c->program->buffer[p->buffer];
    const int64_t *extent = p->extent ? p->extent : b->extent;
    int64_t index[MAX_DIMS] = {0};
    int n = c->program->naxes;
    for (int d = 0; d < b->ndims; d++) {
        const int64_t *coef = &c->access[side]->coef[d * (n + 1)];
        index[d] = coef[n];
        for (int a = 0; a < n; a++) index[d] += coef[a] * value[a];
    }
    return layout_offset(p->layout, b->ndims, extent, NULL, index) * c->size;
}

static int64_t step_of(const struct copier *c, int side, int axis, int64_t by) {
    int64_t value[MAX_AXES] = {0};
    value[axis] = by;
    return offset_at(c, side, value) - c->start[side];
}

static bool divisor_of(const struct lexpr *e, int index, int64_t *found) {
    if (e->op == 'n' || e->op == 'i') return true;
    if ((e->op == '/' || e->op == '%') && e->b->op == 'n') {
        const struct lexpr *of = e->a;
        if (of->op == 'i' && of->index == index) {
            if (*found && *found != e->b->number) return false;
            *found = e->b->number;
            return true;
        }
    }
    return divisor_of(e->a, index, found) && divisor_of(e->b, index, found);
}

/* Several axes that meet in a dimension cut into blocks lie in equal steps only where all but one
 * step over whole blocks, or where together they stay within one. */
static bool meet_in_blocks(const struct copier *c, int side, int d, int64_t block) {
    const struct program *p = c->program;
    const struct access *a = c->access[side];
    int64_t within = access_coef(p, a, d, p->naxes) % block;
    int n = 0;
    if (within < 0) within += block;
    for (int x = 0; x < p->naxes; x++) {
        int64_t coef = access_coef(p, a, d, x);
        if (!(c->stmt->axes >> x & 1) || p->axis[x].extent == 1 || coef % block == 0) continue;
        within += coef < 0 ? block : coef * (p->axis[x].extent - 1);
        n++;
    }
    return n < 2 || within < block;
}

/* The block in which the layouts cut an axis; 0: none; false: in several. */
static bool block_of(const struct copier *c, int axis, int64_t *block) {
    *block = 0;
    for (int side = 0; side < 2; side++) {
        const struct layout *l = c->place[side]->layout;
        for (int d = 0; l && d < c->program->buffer[c->place[side]->buffer].ndims; d++) {
            if (!access_coef(c->program, c->access[side], d, axis)) continue;
            for (int k = 0; k < l->nplaces; k++)
                if (!divisor_of(l->place[k].expr, d, block)) return false;
            if (*block && !meet_in_blocks(c, side, d, *block)) return false;
        }
    }
    return true;
}

/* Values of the axis between which the source is inside; false: other axes count too. */
static bool inside_range(const struct copier *c, int axis, int64_t *lo, int64_t *hi) {
    const struct access *a = c->access[0];
    const struct buffer *b = &c->program->buffer[a->buffer];
    *lo = 0;
    *hi = c->extent[axis];
    for (int d = 0; a->has_fill && d < b->ndims; d++) {
        int64_t coef = access_coef(c->program, a, d, axis),
                at = access_coef(c->program, a, d, c->program->naxes), low = at, high = at;
        for (int x = 0; x < c->program->naxes; x++) {
            int64_t k = access_coef(c->program, a, d, x) * (c->program->axis[x].extent - 1);
            if (!(c->stmt->axes >> x & 1)) continue;
            low += k < 0 ? k : 0;
            high += k > 0 ? k : 0;
        }
        if (low >= 0 && high < b->extent[d]) continue;
        if (!coef) continue;
        if (coef < 0 || c->grid[axis]) return false;
        for (int x = 0; x < c->program->naxes; x++)
            if (x != axis && access_coef(c->program, a, d, x) && c->program->axis[x].extent > 1)
                return false;
        int64_t first = at < 0 ? (-at + coef - 1) / coef : 0,
                last = (b->extent[d] - 1 - at) / coef + 1;
        if (at > b->extent[d] - 1) last = 0;
        if (first > *lo) *lo = first;
        if (last < *hi) *hi = last;
    }
    if (*lo > *hi) *lo = *hi;
    return true;
}

/* ---- pieces ---- */

static struct piece piece_make(const struct copier *c, int axis, int64_t lo, int64_t hi,
                               bool outside) {
    return (struct piece){.walk = {{hi - lo, step_of(c, 0, axis, 1), step_of(c, 1, axis, 1)}},
                          .n = 1,
                          .from = lo * step_of(c, 0, axis, 1),
                          .to = lo * step_of(c, 1, axis, 1),
                          .outside = outside};
}

static int axis_pieces(const struct copier *c, int axis, struct piece *out) {
    int64_t lo, hi, block, extent = c->extent[axis];
    int n = 0;
    if (!inside_range(c, axis, &lo, &hi) || !block_of(c, axis, &block)) return 0;
    if (c->grid[axis] && block && c->grid[axis] % block) return 0;
    if (!block || block >= extent) {
        if (lo > 0) out[n++] = piece_make(c, axis, 0, lo, true);
        if (lo < hi) out[n++] = piece_make(c, axis, lo, hi, false);
        if (hi < extent) out[n++] = piece_make(c, axis, hi, extent, true);
        return n;
    }
    if (lo > 0 || hi < extent) return 0;
    int64_t blocks = extent / block, rest = extent % block;
    struct walk inner = {block, step_of(c, 0, axis, 1), step_of(c, 1, axis, 1)},
                outer = {blocks, step_of(c, 0, axis, block), step_of(c, 1, axis, block)};
    out[n++] = (struct piece){.walk = {outer, inner}, .n = 2};
    if (rest)
        out[n++] = (struct piece){.walk = {{rest, inner.from, inner.to}},
                                  .n = 1,
                                  .from = blocks * outer.from,
                                  .to = blocks * outer.to};
    return n;
}

/* Where the part begins at a multiple of the grid, its elements lie as from 0 on, and the first
 * ones follow each other in equal steps. */
static bool starts_hold(const struct copier *c, int axis) {
    int64_t g = c->grid[axis], n = g ? c->program->axis[axis].extent / g : 0,
            last = c->extent[axis] - 1;
    if (n > MAX_STARTS) return false;
    for (int64_t k = 1; k < n; k++)
        for (int side = 0; side < 2; side++) {
            int64_t step = step_of(c, side, axis, g);
            if (step % g || step_of(c, side, axis, k * g) != k * step) return false;
            if (k * g + last < c->program->axis[axis].extent &&
                step_of(c, side, axis, k * g + last) != k * step + step_of(c, side, axis, last))
                return false;
        }
    return true;
}

/* Do the pieces' strides say where the elements are? Tried at the last element of each piece alone,
 * and of all together. */
static bool pieces_hold(const struct copier *c, int axis, const struct piece *p, int n) {
    int64_t at = 0;
    for (int i = 0; i < n; i++) {
        int64_t from = p[i].from, to = p[i].to, count = 1;
        for (int k = 0; k < p[i].n; k++) {
            from += (p[i].walk[k].extent - 1) * p[i].walk[k].from;
            to += (p[i].walk[k].extent - 1) * p[i].walk[k].to;
            count *= p[i].walk[k].extent;
        }
        at += count;
        if (step_of(c, 1, axis, at - 1) != to) return false;
        if (!p[i].outside && step_of(c, 0, axis, at - 1) != from) return false;
    }
    return at == c->extent[axis] && starts_hold(c, axis);
}

static bool axes_independent(const struct copier *c) {
    int64_t value[MAX_AXES] = {0}, sum[2] = {c->start[0], c->start[1]};
    for (int i = 0; i < c->naxes; i++) {
        int a = c->axis[i];
        int64_t last = c->extent[a] - 1;
        value[a] = last;
        for (int side = 0; side < 2; side++) sum[side] += step_of(c, side, a, last);
    }
    return offset_at(c, 0, value) == sum[0] && offset_at(c, 1, value) == sum[1];
}

/* ---- code ---- */

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

/* A square of n × n: rows of the source become columns (log2 n steps, each exchanging half of the
 * elements between two rows). */
static void turn(const struct copier *c, const struct spot *s, int n, int64_t from, int64_t to) {
    LLVMBuilderRef B = c->f->builder;
    LLVMValueRef row[SQUARE], mask[2][SQUARE];
    LLVMTypeRef i32 = LLVMInt32TypeInContext(c->f->cpu->context);
    for (int i = 0; i < n; i++) row[i] = load(c, s, i * from, n);
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
    bool turns, dense, outside;
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
    move(c, s, in->dense ? vector_of(in->row.extent) : 1, in->outside);
}

static void turn_step(const struct copier *c, const struct spot *s, const struct inner *in) {
    int64_t n = vector_of(in->row.extent), m = vector_of(in->column.extent), side = m < n ? m : n;
    for (int64_t i = 0; i < n; i += side)
        for (int64_t k = 0; k < m; k += side) {
            struct spot one = *s;
            one.constant[0] += i * in->row.from + k * in->column.from;
            one.constant[1] += i * in->row.to + k * in->column.to;
            turn(c, &one, (int)side, in->column.from, in->row.to);
        }
}

static void across(const struct copier *c, const struct spot *s, const struct inner *in) {
    in_steps(c, s, in, &in->column, vector_of(in->column.extent), turn_step);
}

static void nest(const struct copier *c, const struct spot *s, const struct walk *w, int n,
                 const struct inner *in) {
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

static void build_piece(const struct copier *c, struct walk *w, int n, const struct spot *start,
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
    in.dense = row >= 0 && row == column;
    in.turns = row >= 0 && column >= 0 && row != column;
    if (in.turns) {
        in.row = take(w, &n, row);
        in.column = take(w, &n, column > row ? column - 1 : column);
    } else if (n) {
        in.row = take(w, &n, column >= 0 ? column : n - 1);
    }
    nest(c, start, w, n, &in);
}

static void build_pieces(struct copier *c, const struct piece (*piece)[3], const int *count, int k,
                         struct walk *w, int n, const struct spot *s, bool outside) {
    if (k == c->naxes) {
        struct walk own[MAX_WALKS];
        memcpy(own, w, sizeof *w * (size_t)n);
        build_piece(c, own, n, s, outside);
        return;
    }
    for (int i = 0; i < count[k]; i++) {
        struct spot t = *s;
        int m = n;
        t.constant[0] += piece[k][i].from;
        t.constant[1] += piece[k][i].to;
        for (int j = 0; j < piece[k][i].n; j++)
            if (piece[k][i].walk[j].extent > 1) w[m++] = piece[k][i].walk[j];
        build_pieces(c, piece, count, k + 1, w, m, &t, outside || piece[k][i].outside);
    }
}

/* A program sets each element once (ir/program_verify.c), so where the source is another buffer any order
 * will do. */
bool stmt_order_free(const struct stmt *st) {
    if (st->combine != COMBINE_SET) return false;
    for (int r = 0; r < st->nreads; r++)
        if (st->read[r].buffer == st->dst.buffer) return false;
    return true;
}

/* Is some index the same everywhere, and outside the source? */
static bool always_outside(const struct copier *c) {
    const struct access *a = c->access[0];
    const struct buffer *b = &c->program->buffer[a->buffer];
    for (int d = 0; d < b->ndims; d++) {
        int64_t at = access_coef(c->program, a, d, c->program->naxes);
        bool moves = false;
        for (int i = 0; i < c->naxes; i++) moves |= access_coef(c->program, a, d, c->axis[i]) != 0;
        if (!moves && (at < 0 || at >= b->extent[d])) return true;
    }
    return false;
}

/* The part of the axis that the node names: all of it, or so much from a loop's variable on. */
static bool take_part(struct copier *c, const struct fallback_node *node, int a) {
    const struct sx *lo = node->lo ? node->lo[a] : NULL, *hi = node->hi ? node->hi[a] : NULL;
    c->extent[a] = c->program->axis[a].extent;
    if (!lo && !hi) return true;
    if (!(c->stmt->axes >> a & 1)) return false;
    if (lo && hi && lo->op == SX_CONST && hi->op == SX_CONST) {
        c->extent[a] = hi->value - lo->value;
        c->grid[a] = lo->value;
        c->first[a] = lv_const(c->f, lo->value);
        return lo->value >= 0 && c->extent[a] > 0 && hi->value <= c->program->axis[a].extent;
    }
    if (!lo || !hi || lo->op != SX_VAR || hi->op != SX_ADD || hi->a->op != SX_VAR ||
        hi->a->var != lo->var || hi->b->op != SX_CONST || !c->f->grid[lo->var])
        return false;
    c->extent[a] = hi->b->value;
    c->grid[a] = c->f->grid[lo->var];
    c->first[a] = lv_sx(c->f, lo);
    return c->extent[a] > 0 && c->extent[a] <= c->grid[a];
}

static bool copier_open(struct copier *c, struct function *f, const struct fallback_node *node) {
    const struct schedule *s = f->cpu->schedule;
    const struct program *p = s->program;
    const struct stmt *st = &p->stmt[node->stmt];
    *c = (struct copier){.f = f, .program = p, .stmt = st};
    if (st->nops != 1 || st->op[0].code != OP_READ || st->nwhere || !stmt_order_free(st))
        return false;
    c->access[0] = &st->read[st->op[0].read];
    c->access[1] = &st->dst;
    const struct buffer *from = &p->buffer[c->access[0]->buffer], *to = &p->buffer[st->dst.buffer];
    if (from->type != to->type) return false;
    c->size = (int64_t)type_size(to->type);
    for (int side = 0; side < 2; side++) {
        int home = f->cpu->home[c->access[side]->buffer];
        if (home < 0) return false;
        c->place[side] = &s->place[home];
    }
    for (int a = 0; a < p->naxes; a++) {
        if (!take_part(c, node, a)) return false;
        if (!(st->axes >> a & 1) || p->axis[a].extent == 1) continue;
        if (c->naxes == MAX_DIMS || p->axis[a].extent < 1) return false;
        c->axis[c->naxes++] = a;
    }
    int64_t zero[MAX_AXES] = {0};
    for (int side = 0; side < 2; side++) c->start[side] = offset_at(c, side, zero);
    return !always_outside(c) && axes_independent(c);
}

static LLVMValueRef fill_bits(const struct copier *c) {
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

bool build_copy(struct function *f, const struct fallback_node *node) {
    struct copier c;
    struct piece piece[MAX_DIMS][3];
    struct walk w[MAX_WALKS];
    int count[MAX_DIMS], all = 1;
    if (!copier_open(&c, f, node)) return false;
    for (int i = 0; i < c.naxes; i++) {
        count[i] = axis_pieces(&c, c.axis[i], piece[i]);
        if (!count[i] || !pieces_hold(&c, c.axis[i], piece[i], count[i])) return false;
        all *= count[i];
        if (all > MAX_PIECES) return false;
    }
    c.type = LLVMIntTypeInContext(f->cpu->context, (unsigned)(8 * c.size));
    c.fill = fill_bits(&c);
    if (!c.fill) return false;
    for (int side = 0; side < 2; side++)
        c.base[side] = place_base(f, (int)(c.place[side] - f->cpu->schedule->place));
    struct spot s = {.n = 0, .constant = {c.start[0], c.start[1]}};
    for (int i = 0; i < c.naxes; i++) {
        int a = c.axis[i];
        if (!c.grid[a]) continue;
        for (int side = 0; side < 2; side++)
            s.term[side][s.n] =
                (struct term){step_of(&c, side, a, c.grid[a]) / c.grid[a], c.first[a]};
        s.n++;
    }
    build_pieces(&c, (const struct piece(*)[3])piece, count, 0, w, 0, &s, false);
    return true;
}
#endif
