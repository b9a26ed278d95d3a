/* Moves that copy neighbouring bytes, read from issues and made anew. */
#include "scheduler/emit/stay_int.h"
#include <string.h>

const struct move *stay_move(const struct stay *c, int instr) {
    for (int i = 0; i < c->moves->n; i++)
        if (c->moves->at[i].instr == instr) return &c->moves->at[i];
    return NULL;
}

/* Distance from one element to the next along an axis, of elements that lie densely so far. */
static bool follows(const struct side *s, const struct issue_node *n, int64_t run) {
    int64_t stride = run;
    if (s->kind == STRIDE_CONST) stride = s->value;
    if (s->kind == STRIDE_FREE && !sx_constant(n->stride[s->name], &stride)) return false;
    return stride == run;
}

static bool is_zero(const struct issue_node *n, int size) {
    int64_t value;
    return size < 0 || (sx_constant(n->size[size], &value) && !value);
}

int64_t stay_bytes(const struct stay *c, const struct move *mv, const struct issue_node *n) {
    int64_t run = 1;
    if (n->stmt >= 0 || mv->from_fragment || mv->to_fragment || mv->from_swizzle ||
        mv->to_swizzle || mv->ahead >= 0)
        return 0;
    for (int k = 0; k < mv->naxes; k++) {
        const struct move_axis *x = &mv->axis[k];
        int64_t extent = x->fixed;
        if (x->size >= 0 && !sx_constant(n->size[x->size], &extent)) return 0;
        if (x->part >= 0 || extent < 1 || !is_zero(n, x->before) || !is_zero(n, x->after)) return 0;
        if (extent == 1) continue;
        if (!follows(&x->from, n, run) || !follows(&x->to, n, run) ||
            __builtin_mul_overflow(run, extent, &run))
            return 0;
    }
    (void)c;
    return run * (int64_t)type_size(mv->type);
}

struct issue_node *stay_again(const struct stay *c, const struct issue_node *n) {
    struct arena *a = &c->w->s->arena;
    struct issue_node *out = arena_copy(a, n, sizeof *n);
    out->arg = arena_copy(a, n->arg, sizeof *n->arg * (size_t)c->w->m->instr[n->instr].noperands);
    out->signals = (struct signals){0};
    return out;
}

static bool holds(const int *memory, int n, int which) {
    for (int i = 0; i < n; i++)
        if (memory[i] == which) return true;
    return false;
}

/* Sizes of an issue that copies `left` elements; false: the move does not come to them. */
static bool sizes(struct arena *a, const struct move *mv, struct issue_node *n, int64_t left) {
    int64_t run = 1;
    for (int k = 0; k < mv->naxes; k++) {
        const struct move_axis *x = &mv->axis[k];
        int64_t most = x->size >= 0 ? x->hi : x->fixed, extent = x->fixed;
        if (x->part >= 0) return false;
        if (x->size >= 0) {
            extent = most > 0 && most < left ? most : left;
            while (extent > 1 && (left % extent || (extent - x->lo) % (x->step ? x->step : 1)))
                extent--;
            if (extent < x->lo) return false;
            n->size[x->size] = sx_const(a, extent);
        }
        if (extent < 1 || left % extent) return false;
        if (x->from.kind == STRIDE_FREE) n->stride[x->from.name] = sx_const(a, run);
        if (x->to.kind == STRIDE_FREE) n->stride[x->to.name] = sx_const(a, run);
        if (extent > 1 && (!follows(&x->from, n, run) || !follows(&x->to, n, run))) return false;
        left /= extent;
        run *= extent;
    }
    return left == 1;
}

struct issue_node *stay_issue(const struct stay *c, int from_memory, int to_memory, enum type type,
                              int64_t bytes) {
    for (int i = 0; i < c->moves->n; i++) {
        const struct move *mv = &c->moves->at[i];
        const struct instr *in = mv->needle->in;
        if (!holds(in->from, in->nfrom, from_memory) || !holds(in->to, in->nto, to_memory) ||
            (mv->type != type && !(in->move_types >> type & 1)) || in->nrequires || in->nneeds ||
            in->completes >= 0)
            continue;
        struct issue_node *n = issue_of_move(c->w, mv);
        int64_t size = (int64_t)type_size(mv->type);
        if (bytes % size == 0 && sizes(&c->w->s->arena, mv, n, bytes / size) &&
            stay_bytes(c, mv, n) == bytes)
            return n;
    }
    return NULL;
}
