/* What a group asks for ahead: the part of an argument that the next turn reads first comes from
 * far away while this turn computes. A member that reads the same part of this turn, near by then,
 * does so with moves that ask for what lies one turn further (machine format, `ahead`). */
#include "machines/machine.h"
#include "scheduler/plan/geom.h"
#include "scheduler/plan/group_int.h"
#include "scheduler/plan/graph.h"
#include "scheduler/plan/moves.h"
#include "scheduler/plan/rewrite.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/work.h"
#include <math.h>

/* The axis of the shared loop whose next turn follows this one; -1: the member does not walk it. */
static int turn_axis(const struct draft *d, const struct nest_group *g, int member) {
    return g->nprefix ? d->shared[g->shared[g->nprefix - 1]].axis[member] : -1;
}

/* Bytes from what one turn reads to what the next one does; 0: not known, or backwards. */
static int64_t distance(const struct work *w, const struct draft *d, const struct nest_group *g,
                        const struct touch *t) {
    const struct buffer *b = &w->p->buffer[t->buffer];
    int axis = turn_axis(d, g, t->member), dim = axis < 0 ? -1 : touch_walks(w, t, axis);
    int64_t by, bytes = (int64_t)type_size(b->type);
    if (dim < 0 || access_dim(w->p, t->access, axis, &by) != dim || by < 1) return 0;
    for (int k = dim + 1; k < b->ndims; k++) bytes *= b->extent[k];
    return bytes * by * g->prefix[g->nprefix - 1].tile;
}

/* Each element once in a turn: every axis of the statement walks the array. */
static bool reads_once(const struct work *w, const struct touch *t) {
    bool once = !t->access->has_fill;
    for (uint64_t left = w->p->stmt[t->stmt].axes; left; left &= left - 1)
        once &= access_varies(w->p, t->access, __builtin_ctzll(left));
    return once;
}

/* Queue cycles of an issue, on one of its servers. */
static double issue_cycles(const struct work *w, const struct move *mv) {
    const struct instr *in = mv->needle->in;
    double interval, overhead;
    instr_times(w->m, in, mv->needle->bound, NULL, NULL, &interval, &overhead);
    return (interval + overhead) / fmax(1, (double)w->m->queue[in->queue].width);
}

/* Does the move bring so many elements of the type to where the operand lies, and ask for others?
 */
static bool asks(const struct work *w, const struct move *mv, const struct opnd *o,
                 enum type type) {
    const struct instr *in = mv->needle->in;
    bool from = false;
    for (int k = 0; k < in->nfrom; k++) from |= memory_is_home(w->m, in->from[k]);
    return mv->ahead >= 0 && from && mv->type == type && move_fills(in, o->memory) &&
           mv->naxes == 1 && mv->axis[0].fixed > 0 && mv->axis[0].from.value != 0;
}

/* Queue cycles of an element that a move brings which asks so far ahead; negative: none does. */
static double ask_cycles(const struct work *w, const struct moves *moves, const struct opnd *o,
                         enum type type, int64_t ahead) {
    double best = -1;
    for (int i = 0; i < moves->n; i++) {
        const struct move *mv = &moves->at[i];
        int64_t lo, hi, step;
        if (!asks(w, mv, o, type) ||
            !instr_size_range(w->m, mv->needle->in, mv->ahead, &lo, &hi, &step) || ahead < lo ||
            (hi >= 0 && ahead > hi) || (step > 1 && (ahead - lo) % step))
            continue;
        double cycles = issue_cycles(w, mv) / (double)mv->axis[0].fixed;
        if (best < 0 || cycles < best) best = cycles;
    }
    return best;
}

/* The operand by which the member's registers are filled with what the touch reads; NULL: none. */
static const struct opnd *operand_of(const struct work *w, const struct draft *d,
                                     const struct touch *t) {
    const struct nest *n = draft_nest(w, d, t->member);
    for (int i = 0; n && i < nest_ntasks(n); i++) {
        const struct task *x = &w->task[nest_task(n, i)];
        for (int k = 0; k < x->nops && x->stmt == t->stmt; k++) {
            const struct opnd *o = &x->op[k];
            if (o->where == IN_LOCAL && o->read >= 0 && !o->from && !o->attached &&
                &w->p->stmt[x->stmt].read[o->read] == t->access)
                return o;
        }
    }
    return NULL;
}

static bool foreseen_already(const struct nest_group *g, int buffer) {
    for (int i = 0; i < g->nforeseen; i++)
        if (g->foreseen[i].buffer == buffer) return true;
    return false;
}

/* Another member reads it before; none writes it. */
static bool read_before(const struct draft *d, const struct touch *t) {
    bool before = false;
    for (int i = 0; i < d->ntouches; i++) {
        const struct touch *u = &d->touch[i];
        if (u->buffer != t->buffer || !d->in[u->member]) continue;
        if (u->write) return false;
        before |= u->member < t->member;
    }
    return before;
}

bool foreseen_next(const struct work *w, const struct moves *moves, const struct draft *d,
                   const struct nest_group *g, int *at, struct foreseen *out) {
    for (; *at < d->ntouches; (*at)++) {
        const struct touch *t = &d->touch[*at];
        const struct home *h = work_home(w, t->buffer);
        const struct buffer *b = &w->p->buffer[t->buffer];
        if (!d->in[t->member] || t->write || h->memory != w->m->home || h->is_tile || h->packed ||
            h->fold || h->lies_in || g->around < 0 || foreseen_already(g, t->buffer) ||
            !read_before(d, t) || !reads_once(w, t) || !touch_near(w, d, g, t))
            continue;
        const struct opnd *o = operand_of(w, d, t);
        int64_t bytes = distance(w, d, g, t);
        double each = o && bytes > 0 ? ask_cycles(w, moves, o, b->type, bytes) : -1;
        if (each < 0) continue;
        *out = (struct foreseen){t->buffer, t->member, bytes,
                                 each * touch_bytes(w, t) / (double)type_size(b->type)};
        (*at)++;
        return true;
    }
    return false;
}
