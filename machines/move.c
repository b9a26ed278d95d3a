/* Moves as lists of axes, read off their semantics by binding them at sample sizes. */
#include "machines/move.h"
#include "machines/layout.h"
#include "machines/move_side.h"
#include "machines/reach.h"
#include <string.h>

struct sample {
    struct program *p;
    const struct access *from, *to;
};

/* With its flag at 0, an instruction that accumulates overwrites. */
static bool may_overwrite(const struct instr *in, const struct stmt *st) {
    for (int o = 0; o < in->noperands; o++)
        if (in->operand[o].kernel_buffer == st->dst.buffer && in->operand[o].accumulate)
            return true;
    return st->combine == COMBINE_SET;
}

/* The one read that is no constant of the issue; -1: none, or several. */
static int source_of(const struct instr *in, const struct program *p, const struct stmt *st) {
    int found = -1;
    for (int r = 0; r < st->nreads; r++)
        for (int o = 0; o < in->noperands; o++) {
            const struct operand *d = &in->operand[o];
            bool imm = false;
            if (d->kernel_buffer != st->read[r].buffer) continue;
            for (int k = 0; k < d->nmemories; k++) imm |= d->memory[k] == MEMORY_IMM;
            if (imm) continue;
            if (found >= 0) return -1;
            found = r;
        }
    return found >= 0 && p->buffer[st->read[found].buffer].ndims > 0 ? found : -1;
}

/* Of a copy; `computes`: of any other single statement that sets elements. */
static bool sample_make(const struct machine *m, const struct instr *in, const int64_t *size,
                        bool computes, struct sample *s, struct diags *diags) {
    s->p = instr_bind(m, in, size, diags);
    if (!s->p) return false;
    const struct stmt *st = s->p->nstmts == 1 && !s->p->stmt[0].nwhere ? &s->p->stmt[0] : NULL;
    int source = st && computes ? source_of(in, s->p, st) : 0;
    bool fits = st && source >= 0 &&
                (computes ? st->combine == COMBINE_SET
                          : may_overwrite(in, st) && st->nreads == 1 && st->nops == 1 &&
                                st->op[0].code == OP_READ);
    if (!fits) {
        program_free(s->p);
        return false;
    }
    s->from = &st->read[source];
    s->to = &st->dst;
    return true;
}

static int operand_of(const struct instr *in, int buffer) {
    for (int o = 0; o < in->noperands; o++)
        if (in->operand[o].kernel_buffer == buffer) return o;
    return -1;
}

/* A stride that changes with a size must be that of dense places. */
static bool set_side(const struct machine *m, const struct instr *in, const struct sample *base,
                     const struct sample *other, bool to, int operand, struct stretch part,
                     struct side *out) {
    const struct sample *at[2] = {base, other};
    int64_t given[2], dense[2];
    int name, none;
    for (int k = 0; k < 2; k++) {
        const struct access *a = to ? at[k]->to : at[k]->from;
        if (!side_stride(m, in, at[k]->p, a, operand, false, part, &given[k], &name) ||
            (name < 0 && !side_stride(m, in, at[k]->p, a, operand, true, part, &dense[k], &none)))
            return false;
    }
    if (name >= 0) {
        *out = (struct side){STRIDE_FREE, stride_reach(m, in, base->p, name), name};
        return true;
    }
    if (given[0] != given[1] && (given[0] != dense[0] || given[1] != dense[1])) return false;
    if (out->kind != STRIDE_DENSE) /* once seen to vary, it does */
        *out = (struct side){given[0] == given[1] ? STRIDE_CONST : STRIDE_DENSE, given[0], -1};
    return true;
}

/* What happens to axis x when size i grows: -1 nothing, 0 before (the same length may have more
 * before), 1 size, 2 after, 3 the same length has less after it. */
static int effect(const struct sample *base, const struct sample *bumped, int x) {
    int nf = base->p->buffer[base->from->buffer].ndims, n = base->p->naxes;
    bool same = bumped->p->axis[x].extent == base->p->axis[x].extent;
    for (int d = 0; same && base->from->has_fill && d < nf; d++)
        if (access_coef(base->p, base->from, d, x) &&
            base->p->buffer[base->from->buffer].extent[d] !=
                bumped->p->buffer[bumped->from->buffer].extent[d])
            return 3;
    for (int d = 0; d < nf; d++)
        if (access_coef(base->p, base->from, d, x) &&
            access_coef(base->p, base->from, d, n) != access_coef(bumped->p, bumped->from, d, n))
            return 0;
    if (same) return -1;
    if (!base->from->has_fill || base->p->buffer[base->from->buffer].elements !=
                                     bumped->p->buffer[bumped->from->buffer].elements)
        return 1;
    for (int d = 0; d < nf; d++)
        if (access_coef(base->p, base->from, d, x)) return 2;
    return 1; /* a broadcast axis has no source */
}

static bool learn_axis(const struct machine *m, struct diags *diags, struct move *mv,
                       const struct sample *base, bool computes, const int64_t *size,
                       struct stretch part, struct move_axis *ax) {
    const struct instr *in = mv->needle->in;
    int x = part.x;
    *ax = (struct move_axis){.fixed = part.mod ? part.mod : base->p->axis[x].extent,
                             .size = -1,
                             .before = -1,
                             .after = -1,
                             .part = -1,
                             .x = x};
    if (!set_side(m, in, base, base, false, mv->from_operand, part, &ax->from) ||
        !set_side(m, in, base, base, true, mv->to_operand, part, &ax->to))
        return false;
    for (int i = 0; i < in->nranged; i++) {
        int64_t other[MAX_SIZES], lo, hi, step;
        instr_size_range(m, in, i, &lo, &hi, &step);
        memcpy(other, size, sizeof *size * (size_t)in->nranged);
        other[i] += step > 0 ? step : 1;
        if (hi >= 0 && other[i] > hi) other[i] = lo;
        if (other[i] == size[i]) continue;
        struct sample bumped;
        if (!sample_make(m, in, other, computes, &bumped, diags)) return false;
        int what = effect(base, &bumped, x);
        bool ok = set_side(m, in, base, &bumped, false, mv->from_operand, part, &ax->from) &&
                  set_side(m, in, base, &bumped, true, mv->to_operand, part, &ax->to);
        int64_t grown = bumped.p->axis[x].extent - base->p->axis[x].extent;
        program_free(bumped.p);
        if (!ok || (part.mod && what >= 0)) return false;
        if (hi < 0) hi = INT64_C(1) << 31;
        if (what == 0) {
            ax->before = i;
            ax->max_before = hi;
        } else if (what == 2) {
            ax->after = i;
            ax->max_after = hi;
        } else if (what == 3) {
            step = step > 0 ? step : 1;
            if (hi < ax->fixed || lo > ax->fixed || (ax->fixed - lo) % step) return false;
            ax->part = i;
            ax->lo = lo;
            ax->step = step;
        } else if (what == 1) {
            if (grown != other[i] - size[i]) return false; /* a size is chosen from the length */
            ax->size = i;
            ax->fixed = 0;
            ax->lo = lo;
            ax->hi = hi;
            ax->step = step > 0 ? step : 1;
        }
    }
    return ax->size >= 0 || ax->part >= 0 || (ax->before < 0 && ax->after < 0);
}

static double order_key(const struct side *s) {
    return s->kind == STRIDE_FREE ? 1e18 : (double)s->value;
}

/* Of two strides that the schedule chooses the later axis is the inner one. */
static bool before(const struct side *a, const struct side *b) {
    double x = order_key(a), y = order_key(b);
    return x < y || (x == y && a->kind == STRIDE_FREE);
}

static bool add_axis(struct move *mv, struct move_axis ax) {
    int at = mv->naxes;
    if (at == MAX_NEEDLE) return false;
    while (at > 0 && before(&ax.to, &mv->axis[at - 1].to)) {
        mv->axis[at] = mv->axis[at - 1];
        at--;
    }
    mv->axis[at] = ax;
    mv->naxes++;
    return true;
}

static bool learn_whole(const struct machine *m, struct diags *diags, struct move *mv,
                        const struct sample *base, bool computes, const int64_t *size, int x) {
    struct move_axis ax;
    return learn_axis(m, diags, mv, base, computes, size, (struct stretch){.x = x, .div = 1},
                      &ax) &&
           add_axis(mv, ax);
}

/* An axis of a fixed length that layouts cut into blocks: each part is an axis of what is copied.
 */
static bool learn_parts(const struct machine *m, struct diags *diags, struct move *mv,
                        const struct sample *base, const int64_t *size, int x) {
    const struct operand *o = mv->needle->in->operand;
    struct stretch part[MAX_NEEDLE];
    int n = axis_stretches(base->p, base->from, o[mv->from_operand].layout[0].map, base->to,
                           o[mv->to_operand].layout[0].map, x, part);
    for (int i = 0; i < n; i++) {
        struct move_axis ax;
        if (!learn_axis(m, diags, mv, base, false, size, part[i], &ax) || !add_axis(mv, ax))
            return false;
    }
    return n > 0;
}

/* Elements of a fragment must lie at the same place whatever the sizes. */
static bool same_places(const struct layout *map, const struct buffer *big, const int64_t *stride,
                        const struct buffer *small, const int64_t *other) {
    int64_t index[MAX_DIMS] = {0};
    for (int d = 0; d < big->ndims; d++)
        for (int64_t v = 0; v < small->extent[d]; v++) {
            memset(index, 0, sizeof index);
            index[d] = v;
            if (layout_offset(map, big->ndims, big->extent, stride, index) !=
                layout_offset(map, small->ndims, small->extent, other, index))
                return false;
        }
    return true;
}

/* What a side of the move looks like in memories of several instances, at its largest sizes. */
static bool learn_side(const struct machine *m, struct diags *diags, struct move *mv, int operand,
                       uint64_t *fragment, const char **swizzle) {
    const struct instr *in = mv->needle->in;
    const struct operand *o = &in->operand[operand];
    const struct operand_layout *l = &o->layout[0];
    *swizzle = l->swizzle;
    *fragment = 0;
    if (!layout_spreads(l->map)) return true;
    int64_t size[MAX_SIZES], most[MAX_DIMS], least[MAX_DIMS];
    const struct buffer *big = &mv->needle->bound->buffer[o->kernel_buffer];
    if (!fragment_strides(m, mv->needle, operand, mv->needle->bound, most)) return false;
    *fragment = form_fragment(o, l->map, big, most);
    for (int64_t probe = 0; probe < 4; probe++) {
        for (int i = 0; i < in->nranged; i++) {
            int64_t lo, hi, step;
            if (!instr_size_range(m, in, i, &lo, &hi, &step) || hi < 0) return false;
            size[i] = lo + (hi - lo) * probe / 4 / (step > 0 ? step : 1) * (step > 0 ? step : 1);
        }
        struct program *p = instr_bind(m, in, size, diags);
        if (!p) return false;
        const struct buffer *small = &p->buffer[o->kernel_buffer];
        bool same = fragment_strides(m, mv->needle, operand, p, least) &&
                    same_places(l->map, big, most, small, least);
        program_free(p);
        if (!same) return false;
    }
    return true;
}

/* Some axis says what it is in an issue, the plan says how far ahead it asks, or it has one value.
 */
static bool size_known(const struct machine *m, const struct move *mv, int i) {
    int64_t lo, hi, step;
    if (i == mv->ahead) return true;
    if (instr_size_range(m, mv->needle->in, i, &lo, &hi, &step) && lo == hi) return true;
    for (int k = 0; k < mv->naxes; k++) {
        const struct move_axis *ax = &mv->axis[k];
        if (ax->size == i || ax->before == i || ax->after == i || ax->part == i) return true;
    }
    return false;
}

bool move_learn(struct arena *arena, const struct machine *m, int instr, bool computes,
                struct move *mv, struct diags *diags) {
    const struct instr *in = &m->instr[instr];
    if ((in->noperands != 2 && !computes) || in->across >= 0 || in->queue < 0 ||
        in->nranged > MAX_SIZES)
        return false;
    int64_t size[MAX_SIZES], lo, hi, step;
    for (int i = 0; i < in->nranged; i++) {
        if (!instr_size_range(m, in, i, &lo, &hi, &step)) return false;
        if (step < 1) step = 1;
        mv->least[i] = lo;
        size[i] = hi >= 0 && hi < lo + 2 * step ? lo : lo + 2 * step;
    }
    mv->instr = instr;
    mv->needle = needle_make(arena, m, instr, diags);
    if (!mv->needle) return false;
    struct sample base;
    bool ok = sample_make(m, in, size, computes, &base, diags);
    if (ok) {
        mv->from_operand = operand_of(in, base.from->buffer);
        mv->to_operand = operand_of(in, base.to->buffer);
        mv->ahead = in->operand[mv->from_operand].ahead;
        mv->type = in->operand[mv->to_operand].type;
        ok = (computes || in->operand[mv->from_operand].type == mv->type) &&
             learn_side(m, diags, mv, mv->from_operand, &mv->from_fragment, &mv->from_swizzle) &&
             learn_side(m, diags, mv, mv->to_operand, &mv->to_fragment, &mv->to_swizzle);
        for (int x = 0; ok && x < base.p->naxes; x++)
            ok = learn_whole(m, diags, mv, &base, computes, size, x) ||
                 (!computes && learn_parts(m, diags, mv, &base, size, x));
        for (int i = 0; ok && i < in->nranged; i++) ok = size[i] == 0 || size_known(m, mv, i);
        program_free(base.p);
    }
    if (!ok) program_free(mv->needle->bound);
    return ok;
}
