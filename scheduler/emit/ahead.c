/* Fills a step ahead (software pipelining): instructions enter their queues in program order, so
 * that a fill that stands before its step's instructions enters when those of the step before have
 * nearly all run. Here it stands a step earlier: the first before the loop, the next one's before
 * the instructions of each step, and the last step behind the loop. The tokens, and the order in
 * each queue, are as without it.
 *
 * Registers have constant addresses and no slots that turn: there a copy covers several steps of
 * the loop inside it, and each step's pieces are filled in the one before, also over the end of the
 * loop around, where the first pieces of the next copy replace those that are no longer used. */
#include "ir/number.h"
#include "scheduler/emit/emit_int.h"
#include "scheduler/plan/plan.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/tiling.h"
#include "scheduler/plan/val.h"
#include "scheduler/plan/work.h"

/* Is this the loop around the fills' step, with tiles that are known and more than one of them? */
int ahead_at(const struct emitter *e, int d) {
    const struct plan *p = &e->nest->plan;
    if (d >= p->nloops || !e->nfills) return -1;
    for (int k = 0; k < e->nest->nfeeds; k++)
        if (e->nest->feed[k].depth > d) return -1;
    struct val lo = e->at[p->loop[d].axis].lo, size = e->at[p->loop[d].axis].size;
    bool known = !size.x && size.c > p->loop[d].tile && !(lo.x && lo.c);
    return known ? fills_step(e, d + 1) : -1;
}

/* What else the step does at which the axis is now. */
static bool step(struct emitter *e, struct nodes *out, int d, int flow, body_fn body) {
    e->early[flow] = true;
    bool ok = body(e, out, d);
    e->early[flow] = false;
    return ok;
}

/* One queue fills and stores, and what it does is told in its order:
 *
 *   moves    fill 0 | fill 1          | store 0, fill 2 | store 1, fill 3 | ... | store n - 1
 *   instr.          | compute 0       | compute 1       | compute 2       | ...
 *
 * That fill i is there says that store i - 2 is over, whose slot result i takes. That result i - 2
 * is there says that its operands are no longer read, whose slots fill i takes behind its store. So
 * one token each way is enough, and no slot is given back. */
bool emit_behind(struct emitter *e, struct nodes *out, int d, int flow, body_fn body) {
    bool war = e->flow[flow].war;
    e->flow[flow].war = false;
    e->behind = true;
    bool ok = emit_ahead(e, out, d, flow, body);
    e->behind = false;
    e->flow[flow].war = war;
    return ok;
}

bool emit_ahead(struct emitter *e, struct nodes *out, int d, int flow, body_fn body) {
    struct work *w = e->w;
    struct arena *a = &w->s->arena;
    const struct loop *l = &e->nest->plan.loop[d];
    int axis = l->axis;
    const struct along all = e->at[axis];
    struct val lo = all.lo, size = all.size, whole = val_const(l->tile);
    int64_t before = (size.c - 1) / l->tile * l->tile;
    struct val last = val_add(a, lo, val_const(before)), end = val_add(a, lo, size);
    struct nodes inner = {0};
    e->at[axis] = (struct along){lo, whole, l->tile, size.c};
    bool ok = fills_begin(e, out, flow);
    int var = new_var(w, w->p->axis[axis].name);
    struct val v = val_var(a, var, w->p->axis[axis].extent - 1), next = val_add(a, v, whole);
    e->at[axis].lo = next;
    if (size.c % l->tile) e->at[axis].size = val_make(a, SX_MIN, whole, val_minus(a, end, next));
    if (e->at[axis].size.x) e->at[axis].size.min = 1;
    if (e->at[axis].size.x) e->at[axis].size.of = common_divisor(l->tile, size.c);
    ok = ok && fills_begin(e, &inner, flow);
    fills_turn(e, &inner, flow, true);
    e->at[axis].lo = v;
    e->at[axis].size = whole;
    ok = ok && step(e, &inner, d + 1, flow, body);
    fills_turn(e, &inner, flow, false);
    nodes_add(w, out, loop_node(w, var, lo, last, l->tile, LOOP_SEQUENTIAL, axis, &inner));
    e->at[axis].lo = last;
    e->at[axis].size = val_const(size.c - before);
    ok = ok && step(e, out, d + 1, flow, body);
    e->at[axis] = all;
    return ok;
}

/* ---- pieces in registers ---- */

bool pieces_ahead_at(const struct emitter *e, int d) {
    const struct plan *p = &e->nest->plan;
    if (!p->is_static || d + 1 >= p->nloops || e->at[p->loop[d].axis].size.x ||
        e->at[p->loop[d + 1].axis].size.x || pieces_ahead_depth(e->w, e->nest, p) != d + 1)
        return false;
    for (int k = 0; k < e->nest->nfeeds; k++)
        if (e->nest->feed[k].depth > d) return false;
    for (int i = 0; i < e->t->nops; i++)
        if (e->t->op[i].where == IN_LOCAL && p->hold[i].depth > d && !p->hold[i].ahead)
            return false;
    return true;
}

bool emit_pieces_ahead(struct emitter *e, struct nodes *out, int d, body_fn body) {
    struct work *w = e->w;
    struct arena *a = &w->s->arena;
    const struct loop *l = &e->nest->plan.loop[d];
    int axis = l->axis;
    const struct along all = e->at[axis];
    int64_t n = all.size.c;
    struct val last = val_add(a, all.lo, val_const(n - l->tile));
    struct nodes inner = {0};
    e->at[axis] = (struct along){all.lo, val_const(l->tile), l->tile, l->tile};
    e->ahead.depth = d + 1;
    e->ahead.last = false;
    bool ok = pieces_begin(e, out, d + 1);
    if (ok && n > l->tile) {
        int var = new_var(w, w->p->axis[axis].name);
        e->at[axis].lo = val_var(a, var, w->p->axis[axis].extent - 1);
        ok = body(e, &inner, d + 1);
        nodes_add(w, out, loop_node(w, var, all.lo, last, l->tile, LOOP_SEQUENTIAL, axis, &inner));
    }
    e->at[axis].lo = last;
    e->ahead.last = true;
    ok = ok && body(e, out, d + 1);
    e->ahead.depth = 0;
    e->at[axis] = all;
    return ok;
}

bool emit_piece_steps(struct emitter *e, struct nodes *out, int d, body_fn body) {
    struct arena *a = &e->w->s->arena;
    const struct loop *l = &e->nest->plan.loop[d];
    int axis = l->axis, n = (int)(e->at[axis].size.c / l->tile);
    const struct along all = e->at[axis];
    bool ok = true;
    e->at[axis] = (struct along){all.lo, val_const(l->tile), l->tile, l->tile};
    for (int i = 0; ok && i < n; i++) {
        e->ahead.step = i;
        e->at[axis].lo = val_add(a, all.lo, val_const(i * l->tile));
        ok = body(e, out, d + 1);
    }
    e->at[axis] = all;
    return ok;
}
