#if ISAMAP_WITH_LLVM
#include "backends/cpu/cpu_int.h"
#include "ir/memory.h"
#include "ir/pick.h"

#include <stdlib.h>
#include <string.h>

/* One statement as a loop nest over its axes in the program's order, the interpreter's. */
struct nest {
    struct function *f;
    const struct program *program;
    const struct stmt *stmt;
    struct lv axis[MAX_AXES];              /* values */
    int64_t low[MAX_AXES], high[MAX_AXES]; /* and what they lie between, both included */
    int order[MAX_AXES], naxes;
    struct frame frame[MAX_AXES];
    struct pick pick[MAX_AXES]; /* of axes whose loops are tests of few values */
    int npicks, nopen;          /* so many of them have their values */
    bool keyed; /* the destination, in a register, is the key of a float's maximum or minimum */
};

/* ---- ranges ---- */
static void axis_bounds(struct nest *n, const struct fallback_node *node, int a, struct lv *lo,
                        struct lv *hi) {
    const struct axis *x = &n->program->axis[a];
    *lo = node->lo && node->lo[a] ? lv_sx(n->f, node->lo[a]) : lv_const(n->f, 0);
    *hi = node->hi && node->hi[a] ? lv_sx(n->f, node->hi[a]) : lv_const(n->f, x->extent);
    n->low[a] = 0;
    n->high[a] = x->extent > 0 ? x->extent - 1 : 0;
    int64_t known;
    if (lv_constant(*lo, &known)) n->low[a] = known;
    if (lv_constant(*hi, &known)) n->high[a] = known - 1;
}

static void index_range(const struct nest *n, const int64_t *coef, int64_t *lo, int64_t *hi) {
    *lo = *hi = coef[n->program->naxes];
    for (int a = 0; a < n->program->naxes; a++) {
        if (!coef[a]) continue;
        *lo += coef[a] * (coef[a] > 0 ? n->low[a] : n->high[a]);
        *hi += coef[a] * (coef[a] > 0 ? n->high[a] : n->low[a]);
    }
}

/* ---- addresses ---- */
static struct lv index_value(struct nest *n, const int64_t *coef) {
    struct function *f = n->f;
    struct lv sum = lv_const(f, coef[n->program->naxes]);
    for (int level = 0; level < MAX_LEVELS; level++)
        for (int a = 0; a < n->program->naxes; a++)
            if (coef[a] && n->axis[a].level == level)
                sum = lv_op(f, SX_ADD, sum, lv_op(f, SX_MUL, n->axis[a], lv_const(f, coef[a])));
    return sum;
}

static struct lv layout_value(struct nest *n, const struct lexpr *e, const struct lv *index) {
    if (e->op == 'n') return lv_const(n->f, e->number);
    if (e->op == 'i') return index[e->index];
    struct lv a = layout_value(n, e->a, index), b = layout_value(n, e->b, index);
    switch (e->op) {
    case '+':
        return lv_op(n->f, SX_ADD, a, b);
    case '-':
        return lv_op(n->f, SX_SUB, a, b);
    case '*':
        return lv_op(n->f, SX_MUL, a, b);
    case '/':
        return lv_op(n->f, SX_DIV, a, b);
    default:
        return lv_op(n->f, SX_MOD, a, b);
    }
}

/* Bytes from one index to the next of each dimension (or place of the layout) of the buffer's home.
 */
static int home_strides(const struct nest *n, const struct place *p, int64_t *stride) {
    const struct buffer *b = &n->program->buffer[p->buffer];
    int64_t extent[MAX_DIMS], size = (int64_t)type_size(b->type);
    int rank = p->layout ? p->layout->nplaces : b->ndims;
    if (rank > MAX_DIMS) return -1;
    if (p->layout)
        layout_extents(p->layout, p->extent, extent);
    else if (b->ndims)
        memcpy(extent, p->extent ? p->extent : b->extent, (size_t)rank * sizeof *extent);
    for (int d = rank - 1; d >= 0; d--) {
        stride[d] = size;
        size *= extent[d];
    }
    return rank;
}

static LLVMValueRef row_major(struct nest *n, const struct access *a, const int64_t *stride,
                              int rank, LLVMValueRef base) {
    struct term term[MAX_AXES];
    int nterms = 0, naxes = n->program->naxes;
    int64_t constant = 0;
    for (int d = 0; d < rank; d++) constant += stride[d] * access_coef(n->program, a, d, naxes);
    for (int x = 0; x < naxes; x++) {
        int64_t coef = 0, known;
        for (int d = 0; d < rank; d++) coef += stride[d] * access_coef(n->program, a, d, x);
        if (!coef) continue;
        if (lv_constant(n->axis[x], &known))
            constant += coef * known;
        else
            term[nterms++] = (struct term){coef, n->axis[x]};
    }
    return pointer_terms(n->f, base, term, nterms, constant);
}

static LLVMValueRef by_layout(struct nest *n, const struct access *a, const struct layout *l,
                              const int64_t *stride, LLVMValueRef base) {
    struct lv index[MAX_DIMS];
    struct term term[MAX_DIMS];
    int nterms = 0;
    int64_t constant = 0, known;
    for (int d = 0; d < l->nindices; d++)
        index[d] = index_value(n, &a->coef[d * (n->program->naxes + 1)]);
    for (int k = 0; k < l->nplaces; k++) {
        struct lv v = layout_value(n, l->place[k].expr, index);
        if (lv_constant(v, &known))
            constant += known * stride[k];
        else
            term[nterms++] = (struct term){stride[k], v};
    }
    return pointer_terms(n->f, base, term, nterms, constant);
}

static LLVMValueRef access_pointer(struct nest *n, const struct access *a) {
    const struct schedule *s = n->f->cpu->schedule;
    int home = n->f->cpu->home[a->buffer];
    int64_t stride[MAX_DIMS];
    if (home < 0) {
        cpu_error(n->f->cpu, "buffer '%s' has no home", n->program->buffer[a->buffer].name);
        return LLVMGetPoison(n->f->cpu->ptr);
    }
    const struct place *p = &s->place[home];
    int rank = home_strides(n, p, stride);
    if (rank < 0) {
        cpu_error(n->f->cpu, "the layout of '%s' has more than %d places", p->name, MAX_DIMS);
        return LLVMGetPoison(n->f->cpu->ptr);
    }
    LLVMValueRef base = place_base(n->f, home);
    return p->layout ? by_layout(n, a, p->layout, stride, base)
                     : row_major(n, a, stride, rank, base);
}

/* ---- reads ---- */

/* i1: the index is inside the buffer; .v NULL when it always is */
static struct lv inside(struct nest *n, const struct access *a) {
    const struct buffer *b = &n->program->buffer[a->buffer];
    struct lv all = {.v = NULL};
    for (int d = 0; d < b->ndims; d++) {
        const int64_t *coef = &a->coef[d * (n->program->naxes + 1)];
        int64_t lo, hi;
        index_range(n, coef, &lo, &hi);
        if (lo >= 0 && hi < b->extent[d]) continue;
        struct lv test = lv_op(n->f, LV_ULT, index_value(n, coef), lv_const(n->f, b->extent[d]));
        all = all.v ? lv_op(n->f, LV_AND1, all, test) : test;
    }
    return all;
}

static LLVMValueRef read_build(struct nest *n, const struct access *a) {
    struct function *f = n->f;
    enum type t = n->program->buffer[a->buffer].type;
    struct lv in = {.v = NULL};
    if (a->has_fill) in = inside(n, a);
    LLVMValueRef p = access_pointer(n, a);
    if (!in.v) return element_load(f, t, p);
    /* outside, the buffer's first element is read and thrown away */
    LLVMValueRef safe = place_base(f, f->cpu->home[a->buffer]);
    LLVMValueRef v = element_load(f, t, LLVMBuildSelect(f->builder, in.v, p, safe, ""));
    return LLVMBuildSelect(f->builder, in.v, v, flight_constant(f->cpu, t, a->fill), "");
}

/* ---- the value ---- */
static LLVMValueRef axis_value(struct nest *n, const struct op *o) {
    return op_build(n->f, OP_CAST, o->type, TYPE_I64, &n->axis[o->axis].v);
}

/* The axis has its value: what picked it is true. */
static bool decided(const struct nest *n, int op) {
    for (int i = 0; i < n->nopen; i++)
        if (n->pick[i].truth == op) return true;
    return false;
}

/* The operation and all that it needs. */
static void mark_needed(const struct nest *n, int op, bool *needed) {
    const struct stmt *s = n->stmt;
    if (needed[op]) return;
    needed[op] = true;
    if (decided(n, op)) return;
    for (int k = 0; k < op_info[s->op[op].code].arity; k++)
        mark_needed(n, s->op[op].arg[k], needed);
}

static LLVMValueRef value_of(struct nest *n, int op) {
    const struct stmt *s = n->stmt;
    LLVMValueRef *value = memory_array((size_t)s->nops, sizeof *value);
    bool *needed = memory_array((size_t)s->nops, sizeof *needed);
    mark_needed(n, op, needed);
    for (int i = 0; i <= op && !n->f->cpu->failed; i++) {
        const struct op *o = &s->op[i];
        if (!needed[i]) continue;
        if (decided(n, i)) {
            value[i] = LLVMConstInt(n->f->cpu->i1, 1, false);
            continue;
        }
        LLVMValueRef arg[3] = {NULL, NULL, NULL};
        for (int k = 0; k < op_info[o->code].arity; k++) arg[k] = value[o->arg[k]];
        enum type from = o->code == OP_SELECT         ? o->type
                         : op_info[o->code].arity > 0 ? s->op[o->arg[0]].type
                                                      : o->type;
        switch (o->code) {
        case OP_READ:
            value[i] = read_build(n, &s->read[o->read]);
            break;
        case OP_LITERAL:
            value[i] = flight_constant(n->f->cpu, o->type, o->value);
            break;
        case OP_AXIS:
            value[i] = axis_value(n, o);
            break;
        default:
            value[i] = op_build(n->f, o->code, o->type, from, arg);
            break;
        }
    }
    LLVMValueRef last = value[op];
    free(value);
    free(needed);
    return last;
}

static LLVMValueRef value_build(struct nest *n) {
    return value_of(n, n->stmt->nops - 1);
}

/* ---- the nest ---- */
static struct lv constraints(struct nest *n) {
    struct lv all = {.v = NULL};
    for (int w = 0; w < n->stmt->nwhere; w++) {
        int64_t lo, hi;
        index_range(n, n->stmt->where[w].coef, &lo, &hi);
        if (lo >= 0 || fallback_shortens(&n->stmt->where[w], n->order, n->naxes) >= 0) continue;
        struct lv test =
            lv_op(n->f, LV_SGE, index_value(n, n->stmt->where[w].coef), lv_const(n->f, 0));
        all = all.v ? lv_op(n->f, LV_AND1, all, test) : test;
    }
    return all;
}

/* A float sum may be taken in another order, and contracted with a product (docs/ir.md). */
static void allow_reordering(LLVMValueRef sum, LLVMValueRef term) {
#if LLVM_VERSION_MAJOR >= 18
    LLVMFastMathFlags flags = LLVMFastMathAllowReassoc | LLVMFastMathAllowContract;
    if (LLVMIsAInstruction(sum) && LLVMCanValueUseFastMathFlags(sum))
        LLVMSetFastMathFlags(sum, flags);
    if (LLVMIsAInstruction(term) && LLVMCanValueUseFastMathFlags(term) &&
        LLVMGetInstructionOpcode(term) == LLVMFMul)
        LLVMSetFastMathFlags(term, LLVMFastMathAllowContract);
#else
    (void)sum, (void)term;
#endif
}

static LLVMValueRef combine(struct nest *n, LLVMValueRef old, LLVMValueRef v) {
    enum type t = n->stmt->op[n->stmt->nops - 1].type;
    bool max = n->stmt->combine == COMBINE_MAX;
    if (n->keyed) return key_extreme(n->f, max, old, float_key(n->f, max, v));
    LLVMValueRef arg[3] = {old, v, NULL};
    LLVMValueRef sum = op_build(n->f, combiner_op(n->stmt->combine), t, t, arg);
    if (n->stmt->combine == COMBINE_ADD) allow_reordering(sum, v);
    return sum;
}

/* One point with the destination in memory. */
static void point_build(struct nest *n) {
    enum type t = n->program->buffer[n->stmt->dst.buffer].type;
    LLVMValueRef v = value_build(n);
    if (n->f->cpu->failed) return;
    LLVMValueRef p = access_pointer(n, &n->stmt->dst);
    if (n->stmt->combine != COMBINE_SET) v = combine(n, element_load(n->f, t, p), v);
    element_store(n->f, t, p, v);
}

/* One point with the destination's value at hand; gives the new one. */
static LLVMValueRef point_accumulate(struct nest *n, LLVMValueRef old) {
    LLVMValueRef v = value_build(n);
    return n->f->cpu->failed ? old : combine(n, old, v);
}

static LLVMValueRef point_guarded(struct nest *n, LLVMValueRef old) {
    struct lv test = constraints(n);
    struct function *f = n->f;
    if (!test.v) {
        if (old) return point_accumulate(n, old);
        point_build(n);
        return NULL;
    }
    LLVMBasicBlockRef before = LLVMGetInsertBlock(f->builder);
    LLVMBasicBlockRef then = LLVMAppendBasicBlockInContext(f->cpu->context, f->fn, "inside");
    LLVMBasicBlockRef after = LLVMAppendBasicBlockInContext(f->cpu->context, f->fn, "next");
    LLVMBuildCondBr(f->builder, test.v, then, after);
    LLVMPositionBuilderAtEnd(f->builder, then);
    LLVMValueRef v = NULL;
    if (old)
        v = point_accumulate(n, old);
    else
        point_build(n);
    LLVMBasicBlockRef end = LLVMGetInsertBlock(f->builder);
    LLVMBuildBr(f->builder, after);
    LLVMPositionBuilderAtEnd(f->builder, after);
    if (!old) return NULL;
    LLVMValueRef phi = LLVMBuildPhi(f->builder, LLVMTypeOf(old), "");
    LLVMAddIncoming(phi, &old, &before, 1);
    LLVMAddIncoming(phi, &v, &end, 1);
    return phi;
}

/* Constraints that the axis decides end its loop, or begin it. */
static void shorten(struct nest *n, int k, struct lv *lo, struct lv *hi) {
    int a = n->order[k], naxes = n->program->naxes;
    int64_t row[MAX_AXES + 1];
    for (int w = 0; w < n->stmt->nwhere; w++) {
        const struct constraint *c = &n->stmt->where[w];
        if (fallback_shortens(c, n->order, n->naxes) != k) continue;
        for (int x = 0; x <= naxes; x++) row[x] = c->coef[a] > 0 ? -c->coef[x] : c->coef[x];
        row[a] = 0;
        struct lv bound = index_value(n, row);
        if (c->coef[a] > 0)
            *lo = lv_op(n->f, SX_MAX, *lo, bound);
        else
            *hi = lv_op(n->f, SX_MIN, *hi, lv_op(n->f, SX_ADD, bound, lv_const(n->f, 1)));
    }
}

static bool open_axis(struct nest *n, const struct fallback_node *node, int k, int nphis,
                      LLVMValueRef *init) {
    struct lv lo, hi;
    int a = n->order[k];
    axis_bounds(n, node, a, &lo, &hi);
    shorten(n, k, &lo, &hi);
    n->axis[a] = frame_open(n->f, &n->frame[k], lo, hi, 1, nphis, init);
    return !n->frame[k].never;
}

static void innermost(struct nest *n, const struct fallback_node *node) {
    int k = n->naxes - 1;
    if (!fallback_hoists(n->program, n->stmt, n->naxes ? n->order[n->naxes - 1] : -1)) {
        if (open_axis(n, node, k, 0, NULL)) point_guarded(n, NULL);
        n->frame[k].vectorise = true;
        frame_close(n->f, &n->frame[k], NULL);
        return;
    }
    enum type t = n->program->buffer[n->stmt->dst.buffer].type;
    LLVMValueRef p = access_pointer(n, &n->stmt->dst);
    LLVMValueRef acc = element_load(n->f, t, p);
    bool max = n->stmt->combine == COMBINE_MAX;
    n->keyed = type_is_float(t) && (max || n->stmt->combine == COMBINE_MIN);
    if (n->keyed) acc = float_key(n->f, max, acc);
    if (open_axis(n, node, k, 1, &acc)) acc = point_guarded(n, n->frame[k].phi[0]);
    n->frame[k].vectorise = true;
    frame_close(n->f, &n->frame[k], &acc);
    element_store(n->f, t, p, n->keyed ? key_float(n->f, acc) : acc);
}

static void nest_build(struct nest *, const struct fallback_node *, int k);

/* The point counts where the value lies inside and is none of those before. */
static void open_picked(struct nest *n, const struct fallback_node *node, int k, int axis,
                        const LLVMValueRef *at, int i) {
    struct function *f = n->f;
    int64_t low;
    struct lv lo, hi, value = {.v = at[i], .level = level_after(f)};
    axis_bounds(n, node, axis, &lo, &hi);
    bool natural = lv_constant(lo, &low) && low == 0;
    struct lv test = lv_op(f, LV_ULT, natural ? value : lv_op(f, SX_SUB, value, lo),
                           natural ? hi : lv_op(f, SX_SUB, hi, lo));
    for (int j = 0; j < i; j++) {
        struct lv other = {.v = at[j], .level = value.level};
        struct lv apart = lv_op(f, LV_ULT, lv_const(f, 0), lv_op(f, SX_NE, value, other));
        test = lv_op(f, LV_AND1, test, apart);
    }
    frame_branch(f, &n->frame[k], test.v);
    value.bounded = true;
    value.lo = n->low[axis];
    value.hi = n->high[axis];
    n->axis[axis] = value;
}

static void picked(struct nest *n, const struct fallback_node *node, int k,
                   const struct pick *pick) {
    struct cpu *c = n->f->cpu;
    LLVMValueRef at[MAX_PICKED];
    for (int i = 0; i < pick->n; i++) {
        enum type t = n->stmt->op[pick->op[i]].type;
        LLVMValueRef v = value_of(n, pick->op[i]);
        if (!c->failed) at[i] = op_build(n->f, OP_CAST, TYPE_I64, t, &v);
    }
    for (int i = 0; i < pick->n && !c->failed; i++) {
        open_picked(n, node, k, pick->axis, at, i);
        n->nopen++;
        if (k == n->naxes - 1)
            point_guarded(n, NULL);
        else
            nest_build(n, node, k + 1);
        n->nopen--;
        frame_close(n->f, &n->frame[k], NULL);
    }
}

static const struct pick *pick_of(const struct nest *n, int axis) {
    for (int i = 0; i < n->npicks; i++)
        if (n->pick[i].axis == axis) return &n->pick[i];
    return NULL;
}

static void nest_build(struct nest *n, const struct fallback_node *node, int k) {
    if (n->f->cpu->failed) return;
    if (!n->naxes) {
        point_guarded(n, NULL);
        return;
    }
    const struct pick *pick = pick_of(n, n->order[k]);
    if (pick) {
        picked(n, node, k, pick);
        return;
    }
    if (k == n->naxes - 1) {
        innermost(n, node);
        return;
    }
    if (open_axis(n, node, k, 0, NULL)) nest_build(n, node, k + 1);
    frame_close(n->f, &n->frame[k], NULL);
}

/* Bytes between the elements of two neighbours along the axis; -1: a layout says it. */
static int64_t stride_along(const struct nest *n, const struct access *a, int axis) {
    const struct schedule *s = n->f->cpu->schedule;
    int home = n->f->cpu->home[a->buffer];
    int64_t stride[MAX_DIMS], sum = 0;
    if (!access_varies(n->program, a, axis)) return 0;
    if (home < 0 || s->place[home].layout) return -1;
    int rank = home_strides(n, &s->place[home], stride);
    for (int d = 0; d < rank; d++) sum += stride[d] * access_coef(n->program, a, d, axis);
    return sum;
}

/* What a turn of the innermost loop touches: of rows one element of a vector, otherwise a line. */
static int innermost_cost(const struct nest *n, int axis) {
    enum { ROW = 1, LINE = 8 };
    int cost = 0;
    for (int r = -1; r < n->stmt->nreads; r++) {
        const struct access *a = r < 0 ? &n->stmt->dst : &n->stmt->read[r];
        int64_t stride = stride_along(n, a, axis);
        if (stride)
            cost += stride == (int64_t)type_size(n->program->buffer[a->buffer].type) ? ROW : LINE;
    }
    return cost;
}

/* The operand with the most elements, whose rows come from farthest away; -1: its layout says no
 * strides. */
static int largest_read(const struct nest *n) {
    int best = 0;
    for (int r = 1; r < n->stmt->nreads; r++)
        if (n->program->buffer[n->stmt->read[r].buffer].elements >
            n->program->buffer[n->stmt->read[best].buffer].elements)
            best = r;
    for (int k = 0; k < n->naxes; k++)
        if (!n->stmt->nreads || stride_along(n, &n->stmt->read[best], n->order[k]) < 0) return -1;
    return best;
}

/* The largest operand of a sum is read as it lies: of the axes but the innermost those that move it
 * change places, the ones with the largest steps outside. */
static void order_rows(struct nest *n) {
    int r = largest_read(n), place[MAX_AXES], m = 0;
    for (int k = 0; k < n->naxes - 1 && r >= 0; k++)
        if (stride_along(n, &n->stmt->read[r], n->order[k])) place[m++] = k;
    for (int i = 1; i < m; i++)
        for (int j = i; j > 0; j--) {
            int *a = &n->order[place[j - 1]], *b = &n->order[place[j]], axis = *a;
            if (stride_along(n, &n->stmt->read[r], *a) >= stride_along(n, &n->stmt->read[r], *b))
                break;
            *a = *b;
            *b = axis;
        }
}

/* Of sums the axis innermost along which operands lie; the last one where it is all the same. */
static void order_sum(struct nest *n) {
    int best = n->naxes - 1;
    for (int r = 0; r < n->stmt->nreads; r++)
        if (n->stmt->read[r].buffer == n->stmt->dst.buffer) return;
    for (int k = 0; k < n->naxes; k++)
        if (n->program->axis[n->order[k]].sequential) return;
    for (int k = best - 1; k >= 0; k--)
        if (innermost_cost(n, n->order[k]) < innermost_cost(n, n->order[best])) best = k;
    int axis = n->order[best];
    memmove(n->order + best, n->order + best + 1, sizeof *n->order * (size_t)(n->naxes - 1 - best));
    n->order[n->naxes - 1] = axis;
    order_rows(n);
}

/* Does axis a step farther than b in the first dimension of the destination where they differ? */
static bool steps_farther(const struct nest *n, int a, int b) {
    const struct access *dst = &n->stmt->dst;
    for (int d = 0; d < n->program->buffer[dst->buffer].ndims; d++) {
        int64_t x = llabs(access_coef(n->program, dst, d, a)),
                y = llabs(access_coef(n->program, dst, d, b));
        if (x != y) return x > y;
    }
    return false;
}

/* Rows of the destination innermost, where the order is free. */
static void order_axes(struct nest *n) {
    if (n->stmt->combine != COMBINE_SET && n->naxes > 1) order_sum(n);
    if (!stmt_order_free(n->stmt)) return;
    for (int k = 1; k < n->naxes; k++) {
        int axis = n->order[k], at = k;
        for (; at > 0 && steps_farther(n, axis, n->order[at - 1]); at--)
            n->order[at] = n->order[at - 1];
        n->order[at] = axis;
    }
}

/* Axes that are picked stand behind those that their values vary with, one another among these. */
static void order_picked(struct nest *n) {
    const struct program *p = n->program;
    uint64_t with = 0;
    bool *needed = memory_array((size_t)n->stmt->nops, sizeof *needed);
    for (int i = 0; i < n->npicks; i++)
        for (int k = 0; k < n->pick[i].n; k++) mark_needed(n, n->pick[i].op[k], needed);
    for (int i = 0; i < n->stmt->nops; i++) {
        const struct op *o = &n->stmt->op[i];
        for (int a = 0; a < p->naxes && needed[i]; a++)
            if ((o->code == OP_AXIS && o->axis == a) ||
                (o->code == OP_READ && access_varies(p, &n->stmt->read[o->read], a)))
                with |= UINT64_C(1) << a;
    }
    free(needed);
    int order[MAX_AXES], m = 0;
    for (int k = 0; k < n->naxes; k++)
        if (with >> n->order[k] & 1 && !pick_of(n, n->order[k])) order[m++] = n->order[k];
    for (int i = 0; i < n->npicks; i++) order[m++] = n->pick[i].axis;
    for (int k = 0; k < n->naxes; k++)
        if (!(with >> n->order[k] & 1) && !pick_of(n, n->order[k])) order[m++] = n->order[k];
    memcpy(n->order, order, sizeof *order * (size_t)m);
}

void build_fallback(struct function *f, const struct fallback_node *node) {
    if (build_copy(f, node)) return;
    const struct program *p = f->cpu->schedule->program;
    struct nest *n = memory_array(1, sizeof *n);
    n->f = f;
    n->program = p;
    n->stmt = &p->stmt[node->stmt];
    for (int a = 0; a < p->naxes; a++) {
        struct lv lo, hi;
        axis_bounds(n, node, a, &lo, &hi);
        n->axis[a] = lo; /* an axis around the statement has one value here */
        if (n->stmt->axes >> a & 1) n->order[n->naxes++] = a;
    }
    order_axes(n);
    n->npicks = stmt_picks(p, n->stmt, n->pick);
    if (n->npicks) order_picked(n);
    nest_build(n, node, 0);
    free(n);
}
#endif
