/* Copies of which a part stays. A *ring*: the window of the next tile overlaps with this one's
 * (rows of a convolution), so only its new rows are fetched, into rows that no tile needs any more.
 * A *pinned* range: of the pieces that pass again and again the first few stay, the rest pass
 * through the slots. */
#include "scheduler/plan/rewrite.h"
#include "scheduler/plan/tiling.h"
#include "scheduler/plan/graph.h"
#include "scheduler/plan/nest.h"
#include "scheduler/plan/plan.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/geom.h"
#include "scheduler/plan/val.h"
#include "scheduler/plan/work.h"

/* ---- rings ---- */

/* The one dimension that the axis moves; negative: none, or several. */
static int sole_dim(const struct work *w, const struct access *acc, int axis) {
    int64_t by;
    return access_dim(w->p, acc, axis, &by);
}

static bool plain_rows(const struct opnd *o, const struct region *r, int dim) {
    int coords = 0;
    for (int i = 0; i < o->geom.n; i++) coords += o->geom.at[i].dim == dim;
    return coords == 1 && o->geom.block[dim] == 1 && o->geom.grain[dim] == 1 &&
           !(o->geom.loose >> dim & 1) && !(o->geom.exact >> dim & 1) && !r->pad_lo[dim] &&
           !r->pad_hi[dim];
}

/* Instructions may stop at any row: a window that goes round the end is computed in two turns. */
static bool stops_anywhere(const struct task *t, int axis) {
    for (int x = 0; x < t->needle->nx; x++)
        if (t->axis[x] == axis && (t->needle->ranged[x] < 0 || t->needle->whole[x] ||
                                   t->needle->lo[x] != 1 || t->needle->step[x] != 1))
            return false;
    return true;
}

static bool may_keep(const struct work *w, const struct nest *n, const struct opnd *o,
                     const struct access *acc) {
    return o->where == IN_LOCAL && o->read >= 0 && !o->writes && !o->in.n &&
           o->geom.repeat_axis < 0 && !o->geom.fragment && !n->group && !n->nprefix && !n->part_n &&
           !n->kept && !graph_is_static(w->m, o->memory) && !work_home(w, acc->buffer)->is_tile;
}

bool ring_find(const struct work *w, const struct nest *n, const struct plan *p,
               const struct task *t, const struct opnd *o, const struct access *acc, int depth,
               struct ring *ring) {
    const struct stmt *st = &w->p->stmt[t->stmt];
    struct region r;
    if (depth < 1 || !may_keep(w, n, o, acc)) return false;
    int axis = p->loop[depth - 1].axis, dim = sole_dim(w, acc, axis);
    region_padding(w->p, st, acc, &r);
    if (dim < 0 || (t->reductions >> axis & 1) || !plain_rows(o, &r, dim) ||
        !stops_anywhere(t, axis))
        return false;
    int64_t rest = 1, coef = access_coef(w->p, acc, dim, axis);
    for (int a = 0; a < w->p->naxes; a++) {
        int64_t c = access_coef(w->p, acc, dim, a), tile = plan_tile(w, p, a, depth);
        if (a == axis || !c || !(st->axes >> a & 1)) continue;
        if (c < 0 || tile != plan_least(w, p, a, depth) || plan_tile(w, p, a, p->nloops) > 1)
            return false;
        rest += c * (tile - 1);
    }
    int64_t tile = plan_tile(w, p, axis, depth), all = plan_tile(w, p, axis, depth - 1);
    *ring = (struct ring){.dim = dim,
                          .axis = axis,
                          .coef = coef,
                          .overlap = rest - coef,
                          .step = coef * tile,
                          .window = coef * (tile - 1) + rest,
                          .all = coef * (all - 1) + rest};
    return coef > 0 && rest > coef && tile < all;
}

/* Tiles of other axes may be smaller when the ring begins again: its rows are shorter then, and lie
 * elsewhere. */
static bool rows_change(const struct work *w, const struct plan *p, const struct access *acc,
                        const struct ring *r, int depth) {
    for (int a = 0; a < w->p->naxes; a++)
        if (a != r->axis && access_varies(w->p, acc, a) &&
            plan_tile(w, p, a, depth) != plan_least(w, p, a, depth))
            return true;
    return false;
}

/* Where all rows have a place, those of the first window were last used some steps before the ring
 * begins again: by tile (window - 1) / step. */
bool ring_waits(const struct work *w, const struct nest *n, const struct plan *p,
                const struct task *t, const struct opnd *o, const struct access *acc,
                const struct hold *h) {
    struct ring r;
    if (plan_trips(w, p, h->depth - 1) <= 1 || !ring_find(w, n, p, t, o, acc, h->depth, &r))
        return false;
    int64_t tile = p->loop[h->depth - 1].tile,
            steps = plan_least(w, p, r.axis, h->depth - 1) / tile,
            slots = h->slots > 2 ? h->slots : 2;
    return h->ring < r.all || steps - (r.window - 1) / r.step < slots ||
           rows_change(w, p, acc, &r, h->depth);
}

double ring_turns(const struct ring *r, int64_t rows) {
    int64_t steps = (r->all - r->overlap) / r->step, turns = 0, n = 0;
    if (rows >= r->all) return 1;
    for (int64_t i = 0; i < steps && i < 64; i++)
        for (int64_t s = 0; s < r->overlap + r->coef; s++, n++) {
            int64_t lo = i * r->step + s, hi = lo + r->step - r->coef;
            turns += hi / rows - lo / rows + 1;
        }
    return n ? (double)turns / (double)n : 1;
}

/* ---- pinned ranges ---- */

bool pin_find(const struct work *w, const struct nest *n, const struct plan *p,
              const struct opnd *o, const struct access *acc, int depth, struct pin *pin) {
    uint64_t seen = 0;
    *pin = (struct pin){.from = depth, .middle = depth, .pieces = 1};
    if (!may_keep(w, n, o, acc)) return false;
    while (pin->middle > 0 && access_varies(w->p, acc, p->loop[pin->middle - 1].axis)) {
        int i = --pin->middle, a = p->loop[i].axis;
        int64_t all = plan_tile(w, p, a, i), tile = p->loop[i].tile;
        if ((seen >> a & 1) || all != plan_least(w, p, a, i)) return false;
        seen |= UINT64_C(1) << a;
        pin->pieces *= (all + tile - 1) / tile;
    }
    pin->from = pin->middle;
    while (pin->from > 0 && !access_varies(w->p, acc, p->loop[pin->from - 1].axis)) pin->from--;
    return pin->from < pin->middle && pin->pieces > 1;
}

int64_t pin_most(const struct pin *pin, int64_t room, int64_t bytes, int slots) {
    int64_t n = room / bytes - slots;
    if (n >= pin->pieces) return 0;
    while (n > 0 && (pin->pieces - n) % slots) n--;
    return n > 0 ? n : 0;
}

/* ---- both ---- */

void hold_region(const struct work *w, const struct plan *p, const struct task *t,
                 const struct opnd *o, const struct access *acc, const struct hold *h,
                 struct region *r) {
    plan_region(w, p, t, acc, &o->geom, h->depth, r);
    if (!h->ring) return;
    r->n[sole_dim(w, acc, p->loop[h->depth - 1].axis)] = val_const(h->ring);
}

static int64_t hold_slots(const struct hold *h) {
    return h->ring ? 1 : h->slots + h->pinned;
}

int64_t hold_bytes(struct work *w, const struct plan *p, const struct task *t, const struct opnd *o,
                   const struct access *acc, const struct hold *h) {
    struct region r;
    int64_t bytes;
    hold_region(w, p, t, o, acc, h, &r);
    if (__builtin_mul_overflow(slot_bytes(w, o, &r), hold_slots(h), &bytes))
        return INT64_C(1) << 50;
    return bytes;
}

double hold_traffic(const struct work *w, const struct nest *n, const struct plan *p,
                    const struct task *t, const struct opnd *o, const struct access *acc,
                    const struct hold *h) {
    struct pin pin;
    if (h->ring) return plan_traffic(w, p, t, acc, h->depth - 1);
    double all = plan_traffic(w, p, t, acc, h->depth);
    if (!h->pinned || !pin_find(w, n, p, o, acc, h->depth, &pin)) return all;
    double share = (double)h->pinned / (double)pin.pieces;
    return all * (1 - share) + plan_traffic(w, p, t, acc, pin.from) * share;
}
