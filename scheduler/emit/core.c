/* One nest over its current tile (SCHEDULING §4): fills at their depths, the issue, the grains that
 * follow, drains; tokens as §5 places them. */
#include "scheduler/emit/emit_int.h"
#include "scheduler/plan/limits.h"
#include "scheduler/plan/plan.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/tiling.h"

static bool core_depth(struct emitter *e, struct nodes *out, int d);

/* Whole tiles and tail need a body each, unless a loop further in splits the same axis. */
static bool splits(const struct emitter *e, int d) {
    const struct plan *p = &e->nest->plan;
    if (!p->is_static) return false;
    for (int i = d + 1; i < p->nloops; i++)
        if (p->loop[i].axis == p->loop[d].axis && !loop_unrolled(e->w, e->nest, p, i)) return false;
    return true;
}

static bool core_body(struct emitter *e, struct nodes *out, int d) {
    const struct plan *p = &e->nest->plan;
    if (ring_turns_at(e, d)) return emit_turns(e, out, d, core_body);
    int ahead = ahead_at(e, d);
    if (ahead >= 0) return emit_ahead(e, out, d, ahead, core_depth);
    if (pieces_ahead_at(e, d)) return emit_pieces_ahead(e, out, d, core_depth);
    if (e->ahead.depth && d == e->ahead.depth) return emit_piece_steps(e, out, d, core_depth);
    if (d < p->nloops)
        return emit_loop(e, out, p->loop[d].axis, p->loop[d].tile, splits(e, d),
                         loop_unrolled(e->w, e->nest, p, d), core_depth, d + 1);
    struct held *held[MAX_OPERANDS];
    for (int i = 0; i < e->t->nops; i++) held[i] = &e->held[i];
    emit_issue(e, out, e->t, held);
    return true;
}

/* Everything inside loop[0..d): results that start here, brackets and fills, what is inside,
 * releases, drains. */
static bool core_depth(struct emitter *e, struct nodes *out, int d) {
    const struct plan *p = &e->nest->plan;
    feeds_emit(e, out, d, false);
    for (int i = 0; i < e->t->nops; i++)
        if (e->t->op[i].writes && e->t->op[i].where == IN_LOCAL && p->hold[i].depth == d &&
            !result_start(e, out, i, d))
            return false;
    if (!fills_open(e, out, d)) return false;
    if (e->inside && d == e->root) nest_credits(e, out, true);
    if (!core_body(e, out, d)) return false;
    if (e->inside && d == e->root) nest_credits(e, out, false);
    fills_close(e, out, d);
    for (int i = 0; i < e->t->nops; i++)
        if (e->t->op[i].writes &&
            (e->t->op[i].where == IN_LOCAL ? p->hold[i].depth == d : p->depth_out == d) &&
            !result_finish(e, out, i, d))
            return false;
    feeds_emit(e, out, d, true);
    return true;
}

bool nest_turn(struct emitter *e, struct nodes *out) {
    bool here = e->root == e->nest->nprefix && !e->inside;
    if (here) nest_credits(e, out, true);
    if (!(e->t ? core_depth(e, out, e->nest->nprefix) : grain_loops(e, out, 0))) return false;
    if (here) nest_credits(e, out, false);
    return true;
}
