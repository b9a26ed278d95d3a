/* What is in a place now: the region of an operand at this point of the loops, and its fill. */
#include "ir/number.h"
#include "scheduler/emit/emit_int.h"
#include "scheduler/plan/geom.h"
#include "scheduler/plan/graph.h"
#include "scheduler/plan/recur.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/val.h"
#include "scheduler/plan/work.h"

static bool walks(const struct emitter *e, const struct stmt *st, const struct access *acc, int dim,
                  int axis) {
    return access_coef(e->w->p, acc, dim, axis) && (stmt_span(e->w, st) >> axis & 1);
}

void region_here(struct emitter *e, const struct task *t, const struct opnd *o,
                 const struct access *acc, struct region *r) {
    struct work *w = e->w;
    struct arena *a = &w->s->arena;
    const struct stmt *st = &w->p->stmt[t->stmt];
    region_padding(w->p, st, acc, r);
    if (o->geom.repeat_axis >= 0) r->repeat = e->at[o->geom.repeat_axis].size;
    for (int d = 0; d < w->p->buffer[acc->buffer].ndims; d++) {
        struct val lo = val_const(access_coef(w->p, acc, d, w->p->naxes)), n = val_const(1);
        for (int x = 0; x < w->p->naxes && (o->geom.sparse >> d & 1); x++)
            if (walks(e, st, acc, d, x) && !val_is(e->at[x].size, 1))
                r->apart[d] = common_divisor(r->apart[d], access_coef(w->p, acc, d, x));
        int64_t step = region_step(&o->geom, r, d);
        for (int x = 0; x < w->p->naxes; x++) {
            int64_t c = access_coef(w->p, acc, d, x);
            if (!walks(e, st, acc, d, x)) continue;
            if (c < 0) { /* only steps move backwards */
                lo = val_minus(a, lo, val_scale(a, e->at[x].lo, -c));
                continue;
            }
            struct val size = e->at[x].size;
            int64_t whole = o->geom.walks[d] == x ? o->geom.takes[d] : 0;
            if (whole) size = val_scale(a, val_ceil(a, size, whole), whole);
            lo = val_add(a, lo, val_scale(a, e->at[x].lo, c));
            if (c == step && val_is(n, 1)) /* so that its multiples stay known */
                n = size;
            else if (c % step == 0)
                n = val_add(a, n, val_scale(a, val_add(a, size, val_const(-1)), c / step));
        }
        r->lo[d] = lo;
        r->n[d] = n;
    }
}

/* A place for each body in the tree, at the same address: bodies of tails and of whole tiles do not
 * share places. */
void renew_place(struct emitter *e, struct held *h) {
    struct schedule *s = e->w->s;
    const struct place *old = &s->place[h->place];
    if (!graph_is_static(e->w->m, old->memory) || h->slots > 1) return;
    if (!h->used) {
        h->used = true;
        return;
    }
    struct place made = *old;
    made.name = arena_printf(&s->arena, "%s.%s.%d", e->w->p->buffer[old->buffer].name,
                             e->w->m->memory[old->memory].id, s->nplaces);
    h->place = place_append(e->w, &made);
}

bool hold_fill(struct emitter *e, struct nodes *out, const struct task *t, const struct opnd *o,
               const struct access *acc, struct held *h, const struct held *outer) {
    region_here(e, t, o, acc, &h->whole);
    h->slot = slot_make(&e->w->s->arena, &o->geom, &h->whole);
    return emit_transfer(e->w, e->moves, out, acc->buffer, o, h, outer, &h->whole, true);
}

static int first_queue(const struct nodes *l, const struct work *w) {
    uint64_t q = nodes_queues(w, l->at, l->n);
    return q ? __builtin_ctzll(q) : -1;
}

bool fill_in_step(struct emitter *e, struct nodes *out, const struct task *t, const struct opnd *o,
                  const struct access *acc, struct held *h) {
    struct nodes fill = {0};
    if (!hold_fill(e, &fill, t, o, acc, h, NULL)) return false;
    int q = first_queue(&fill, e->w);
    if (!add_signal(e->w, out, e->chain, q)) return false;
    nodes_append(e->w, out, &fill);
    return add_signal(e->w, out, q, e->chain);
}
