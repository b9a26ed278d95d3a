/* One nest over its current tile (SCHEDULING §4): fills at their depths, the issue, the grains that
 * follow, drains; tokens as §5 places them. */
#include "scheduler/emit/emit_int.h"
#include "scheduler/plan/geom.h"
#include "scheduler/plan/graph.h"
#include "scheduler/plan/limits.h"
#include "scheduler/plan/plan.h"
#include "scheduler/plan/rewrite.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/tiling.h"
#include "scheduler/plan/val.h"
#include "scheduler/plan/work.h"

static bool core_depth(struct emitter *e, struct nodes *out, int d);

/* Whole tiles and tail need a body each, unless a loop further in splits the same axis. */
static bool splits(const struct emitter *e, int d) {
    const struct plan *p = &e->nest->plan;
    if (!p->is_static) return false;
    for (int i = d + 1; i < p->nloops; i++)
        if (p->loop[i].axis == p->loop[d].axis && !loop_unrolled(e->w, e->nest, p, i)) return false;
    return true;
}

/* So many elements at the axis's beginning and end are those whose windows leave a buffer that is
 * read into constant addresses. False: there are none. */
static bool leaving(const struct emitter *e, int axis, int64_t *first, int64_t *last) {
    const struct work *w = e->w;
    *first = *last = 0;
    for (int k = 0; k < e->t->nops; k++) {
        const struct opnd *o = &e->t->op[k];
        if (o->where != IN_LOCAL || o->read < 0 || !graph_is_static(w->m, o->memory)) continue;
        const struct access *acc = opnd_access(w, e->t, o);
        struct region r;
        region_padding(w->p, &w->p->stmt[e->t->stmt], acc, &r);
        for (int d = 0; d < w->p->buffer[acc->buffer].ndims; d++) {
            int64_t c = access_coef(w->p, acc, d, axis);
            if (c <= 0 || !pads_inside(&o->geom, &r, d)) continue;
            int64_t before = (r.pad_lo[d] + c - 1) / c, behind = (r.pad_hi[d] + c - 1) / c;
            if (before > *first) *first = before;
            if (behind > *last) *last = behind;
        }
    }
    return *first || *last;
}

/* Whether reads leave their buffer in turns of this loop, and in none of a loop inside. */
static bool leaves_last(const struct emitter *e, int d, int64_t *first, int64_t *last) {
    const struct plan *p = &e->nest->plan;
    for (int i = p->nloops - 1; i >= d; i--)
        if (!loop_unrolled(e->w, e->nest, p, i) && leaving(e, p->loop[i].axis, first, last))
            return i == d;
    return false;
}

/* Tiles at either end whose reads leave their buffer stand before the loop and behind it: what is
 * read there has masks, and all tiles between have none. */
static bool between_ends(struct emitter *e, struct nodes *out, int d, int64_t first, int64_t last) {
    int axis = e->nest->plan.loop[d].axis;
    int64_t tile = e->nest->plan.loop[d].tile;
    const struct along all = e->at[axis];
    int64_t n = all.size.c, begin = (first + tile - 1) / tile * tile,
            end = (n - last) / tile * tile;
    if (begin > n) begin = n;
    if (end < begin) end = begin;
    const int64_t at[] = {0, begin, end, n};
    bool ok = true;
    for (int i = 0; i < 3 && ok; i++) {
        if (at[i] == at[i + 1]) continue;
        e->at[axis].lo = val_const(at[i]);
        e->at[axis].size = val_const(at[i + 1] - at[i]);
        ok = emit_loop(e, out, axis, tile, true, false, core_depth, d + 1);
    }
    e->at[axis] = all;
    return ok;
}

static bool core_loop(struct emitter *e, struct nodes *out, int d) {
    const struct plan *p = &e->nest->plan;
    int axis = p->loop[d].axis;
    int64_t first, last;
    bool split = splits(e, d);
    if (split && val_is(e->at[axis].lo, 0) &&
        val_is(e->at[axis].size, e->w->p->axis[axis].extent) && leaves_last(e, d, &first, &last))
        return between_ends(e, out, d, first, last);
    return emit_loop(e, out, axis, p->loop[d].tile, split, loop_unrolled(e->w, e->nest, p, d),
                     core_depth, d + 1);
}

static bool core_body(struct emitter *e, struct nodes *out, int d) {
    const struct plan *p = &e->nest->plan;
    if (ring_turns_at(e, d)) return emit_turns(e, out, d, core_body);
    int ahead = ahead_at(e, d);
    if (ahead >= 0)
        return (e->flow[ahead].behind ? emit_behind : emit_ahead)(e, out, d, ahead, core_depth);
    if (pieces_ahead_at(e, d)) return emit_pieces_ahead(e, out, d, core_depth);
    if (e->ahead.depth && d == e->ahead.depth) return emit_piece_steps(e, out, d, core_depth);
    if (asks_split(e, d)) return asks_steps(e, out, d, core_body);
    if (d < p->nloops) return core_loop(e, out, d);
    struct held *held[MAX_OPERANDS];
    for (int i = 0; i < e->t->nops; i++) held[i] = &e->held[i];
    emit_issue(e, out, e->t, held);
    return true;
}

/* Everything inside loop[0..d): results that start here, brackets and fills, what is inside,
 * releases, drains. */
static bool core_depth(struct emitter *e, struct nodes *out, int d) {
    const struct plan *p = &e->nest->plan;
    if (d < p->nloops) e->outset[d] = e->at[p->loop[d].axis].lo;
    feeds_emit(e, out, d, false);
    for (int k = 0; k < e->nflows; k++)
        if (e->early[k] && e->flow[k].behind && e->flow[k].depth == d)
            fills_wait(e, out, &e->flow[k]);
    for (int i = 0; i < e->t->nops; i++)
        if (e->t->op[i].writes && e->t->op[i].where == IN_LOCAL && p->hold[i].depth == d &&
            !result_start(e, out, i, d))
            return false;
    if (!fills_open(e, out, d)) return false;
    if (e->inside && d == e->root) nest_credits(e, out, true);
    if (!core_body(e, out, d)) return false;
    if (e->inside && d == e->root) nest_credits(e, out, false);
    asks_emit(e, out, d);
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
    if (!chain_whole(e, out)) return false;
    if (here) nest_credits(e, out, true);
    if (!(e->t ? core_depth(e, out, e->nest->nprefix) : grain_loops(e, out, 0))) return false;
    if (here) nest_credits(e, out, false);
    return true;
}
