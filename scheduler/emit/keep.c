/* Copies of which a part stays (partial.c): where their pieces lie, which are due, and windows that
 * go round the end of a ring. */
#include "scheduler/emit/emit_int.h"
#include "scheduler/plan/tiling.h"
#include "scheduler/plan/plan.h"
#include "scheduler/plan/rewrite.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/geom.h"
#include "scheduler/plan/val.h"
#include "scheduler/plan/work.h"
#include <string.h>

static const struct access *access_of(const struct emitter *e, const struct filling *f) {
    return task_access(e->w, e->t, &e->t->op[f->operand], false);
}

static bool pin_of(const struct emitter *e, const struct filling *f, struct pin *pin) {
    return f->hold->pinned && pin_find(e->w, e->nest, &e->nest->plan, &e->t->op[f->operand],
                                       access_of(e, f), f->hold->depth, pin);
}

static bool ring_of(const struct emitter *e, const struct filling *f, struct ring *ring) {
    return f->hold->ring && ring_find(e->w, e->nest, &e->nest->plan, e->t, &e->t->op[f->operand],
                                      access_of(e, f), f->hold->depth, ring);
}

int keeps_from(const struct emitter *e, const struct filling *f) {
    struct pin pin;
    if (f->hold->ring) return f->hold->depth - 1;
    return pin_of(e, f, &pin) ? pin.from : -1;
}

void keep_begin(struct emitter *e, const struct filling *f) {
    const struct opnd *o = &e->t->op[f->operand];
    struct ring ring;
    memcpy(e->begin[f->operand], e->at, sizeof e->at);
    if (!ring_of(e, f, &ring)) return;
    region_here(e, e->t, o, access_of(e, f), &f->held->whole);
    struct region rows = f->held->whole;
    rows.n[ring.dim] = val_const(f->hold->ring);
    f->held->slot = slot_make(&e->w->s->arena, &o->geom, &rows);
}

/* Number of the piece among those of one pass. */
static struct val piece_number(struct emitter *e, const struct filling *f, const struct pin *pin) {
    const struct plan *p = &e->nest->plan;
    struct arena *a = &e->w->s->arena;
    struct val n = val_const(0);
    for (int i = pin->middle; i < f->hold->depth; i++) {
        int x = p->loop[i].axis;
        int64_t all = plan_tile(e->w, p, x, i), tile = p->loop[i].tile;
        struct val at = val_minus(a, e->at[x].lo, e->begin[f->operand][x].lo);
        n = val_add(a, val_scale(a, n, (all + tile - 1) / tile), val_div(a, at, tile));
    }
    n.max = pin->pieces - 1;
    return n;
}

/* The first pieces have a place of their own, the others take turns behind them. */
static void pinned_slot(struct emitter *e, const struct filling *f, const struct pin *pin) {
    struct work *w = e->w;
    struct arena *a = &w->s->arena;
    const struct plan *p = &e->nest->plan;
    const struct opnd *o = &e->t->op[f->operand];
    struct region r;
    hold_region(w, p, e->t, o, access_of(e, f), f->hold, &r);
    int64_t each = slot_bytes(w, o, &r) / (int64_t)type_size(o->decl->type);
    struct val n = piece_number(e, f, pin), most = val_const(f->hold->pinned), first = val_const(1);
    struct val rest = val_make(a, SX_MAX, val_make(a, SX_SUB, n, most), val_const(0));
    struct val at = val_add(a, val_make(a, SX_MIN, n, most),
                            val_make(a, SX_MOD, rest, val_const(f->hold->slots)));
    at.max = f->hold->pinned + f->hold->slots - 1;
    f->held->slot.base = val_scale(a, at, each);
    for (int i = pin->from; i < pin->middle; i++) {
        int x = p->loop[i].axis;
        if (val_same(e->at[x].lo, e->begin[f->operand][x].lo)) continue;
        struct val here = val_make(a, SX_EQ, e->at[x].lo, e->begin[f->operand][x].lo);
        first = val_is(first, 1) ? here : val_make(a, SX_AND, first, here);
    }
    if (val_is(first, 1)) return;
    e->due[f->operand] = val_make(a, SX_OR, first, val_make(a, SX_LE, most, n));
    e->due[f->operand].max = 1;
}

void keep_slot(struct emitter *e, const struct filling *f) {
    struct pin pin;
    e->due[f->operand] = val_const(1);
    if (f->hold->ring || !pin_of(e, f, &pin)) return;
    f->held->slot = slot_make(&e->w->s->arena, &e->t->op[f->operand].geom, &f->held->whole);
    pinned_slot(e, f, &pin);
}

/* The part of [lo, lo + n) in the turn that `var` numbers, of rows counted from `from`. */
static void rows_of_turn(struct arena *a, struct val turn, struct val from, int64_t rows,
                         struct val *lo, struct val *n) {
    struct val start = val_add(a, from, val_scale(a, turn, rows)), all = *n,
               end = val_make(a, SX_MIN, val_add(a, *lo, *n), val_add(a, start, val_const(rows)));
    *lo = val_make(a, SX_MAX, *lo, start);
    *n = val_make(a, SX_SUB, end, *lo);
    n->max = all.max < rows ? all.max : rows;
}

/* Rows of the window that the one before had not; where they go round the end, in two turns. */
bool ring_fill(struct emitter *e, struct nodes *out, const struct filling *f,
               const struct region *window) {
    struct work *w = e->w;
    struct arena *a = &w->s->arena;
    const struct opnd *o = &e->t->op[f->operand];
    struct region part = *window;
    struct ring ring;
    ring_of(e, f, &ring);
    struct val *lo = &part.lo[ring.dim], *n = &part.n[ring.dim], all = *n;
    struct val later = val_make(a, SX_NE, e->at[ring.axis].lo, e->begin[f->operand][ring.axis].lo),
               skip = val_scale(a, later, ring.overlap);
    *lo = val_add(a, *lo, skip);
    *n = val_make(a, SX_SUB, all, skip);
    n->max = all.max;
    if (f->hold->ring >= ring.all)
        return emit_transfer(w, e->moves, out, access_of(e, f)->buffer, o, f->held, NULL, &part,
                             true);
    struct nodes body = {0};
    struct val from = f->held->whole.lo[ring.dim], at = val_minus(a, *lo, from);
    struct val last = val_add(a, at, val_add(a, *n, val_const(-1)));
    int var = new_var(w, "turn");
    struct val turn = val_var(a, var, ring.all / f->hold->ring + 1);
    struct held here = *f->held;
    rows_of_turn(a, turn, from, f->hold->ring, lo, n);
    for (int i = 0; i < o->geom.n; i++)
        if (o->geom.at[i].dim == ring.dim)
            here.slot.back = val_mul(a, val_scale(a, turn, f->hold->ring), here.slot.stride[i]);
    bool ok =
        emit_transfer(w, e->moves, &body, access_of(e, f)->buffer, o, &here, NULL, &part, true);
    nodes_add(w, out,
              loop_node(w, var, val_div(a, at, f->hold->ring),
                        val_add(a, val_div(a, last, f->hold->ring), val_const(1)), 1,
                        LOOP_SEQUENTIAL, -1, &body));
    return ok;
}

/* ---- instructions ---- */

static const struct filling *turning(const struct emitter *e, struct ring *ring) {
    for (int i = 0; e->t && i < e->nfills; i++)
        if (ring_of(e, &e->fill[i], ring) && e->fill[i].hold->ring < ring->all) return &e->fill[i];
    return NULL;
}

/* Inside all fills and results, and inside the other loops that move the rows. */
bool ring_turns_at(const struct emitter *e, int d) {
    const struct plan *p = &e->nest->plan;
    struct ring ring;
    const struct filling *f = turning(e, &ring);
    if (!f || !val_is(f->held->slot.back, 0)) return false;
    if (d < p->depth_out || d < e->parts_depth) return false;
    for (int i = 0; i < e->nfills; i++)
        if (e->fill[i].hold->depth > d) return false;
    for (int i = d; i < p->nloops; i++)
        if (p->loop[i].axis != ring.axis &&
            access_coef(e->w->p, access_of(e, f), ring.dim, p->loop[i].axis))
            return false;
    return true;
}

/* Addresses of an operand in a turn of its ring begin at what the turns before it took. */
static void set_back(struct emitter *e, const struct ring *ring, const struct filling *f,
                     struct val rows) {
    const struct opnd *o = &e->t->op[f->operand];
    for (int i = 0; i < o->geom.n; i++)
        if (o->geom.at[i].dim == ring->dim)
            f->held->slot.back = val_mul(&e->w->s->arena, rows, f->held->slot.stride[i]);
}

/* One row lies in one turn: nothing is cut, so that no address depends on where. */
static bool one_row(struct emitter *e, struct nodes *out, int d, body_fn body,
                    const struct ring *ring, const struct filling *f, struct val at) {
    struct arena *a = &e->w->s->arena;
    int64_t rows = f->hold->ring;
    set_back(e, ring, f, val_scale(a, val_div(a, at, rows), rows));
    bool ok = body(e, out, d);
    f->held->slot.back = val_const(0);
    return ok;
}

bool emit_turns(struct emitter *e, struct nodes *out, int d, body_fn body) {
    struct work *w = e->w;
    struct arena *a = &w->s->arena;
    struct ring ring;
    const struct filling *f = turning(e, &ring);
    const struct opnd *o = &e->t->op[f->operand];
    int64_t rows = f->hold->ring;
    struct region r;
    region_here(e, e->t, o, access_of(e, f), &r);
    struct val at = val_minus(a, r.lo[ring.dim], f->held->whole.lo[ring.dim]),
               last = val_add(a, at, val_add(a, r.n[ring.dim], val_const(-1)));
    if (val_is(r.n[ring.dim], 1)) return one_row(e, out, d, body, &ring, f, at);
    int var = new_var(w, "turn");
    const struct along all = e->at[ring.axis];
    struct val turn = val_scale(a, val_var(a, var, ring.all / rows + 1), rows);
    struct val before = val_make(a, SX_MAX, val_make(a, SX_SUB, turn, at), val_const(0)),
               end = val_make(a, SX_SUB, val_add(a, turn, val_const(rows)), at),
               from = val_ceil(a, before, ring.coef);
    struct val n =
        val_make(a, SX_SUB, val_make(a, SX_MIN, all.size, val_ceil(a, end, ring.coef)), from);
    e->at[ring.axis].lo = val_add(a, all.lo, from);
    e->at[ring.axis].size = val_make(a, SX_MIN, val_const(all.size.max), n);
    e->at[ring.axis].size.max = all.size.max;
    e->at[ring.axis].tile = 1;
    set_back(e, &ring, f, turn);
    struct nodes inner = {0};
    bool ok = body(e, &inner, d);
    nodes_add(w, out,
              loop_node(w, var, val_div(a, at, rows),
                        val_add(a, val_div(a, last, rows), val_const(1)), 1, LOOP_SEQUENTIAL, -1,
                        &inner));
    f->held->slot.back = val_const(0);
    e->at[ring.axis] = all;
    return ok;
}
