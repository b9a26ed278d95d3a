/* A group (plan/groups.c) as one tree: the shared loops, in them each member over a tile, in order.
 * Queues that run apart meet between two members, and at the end of a turn. */
#include "scheduler/emit/emit_int.h"
#include "scheduler/plan/geom.h"
#include "scheduler/plan/nest.h"
#include "scheduler/plan/rewrite.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/val.h"
#include "scheduler/plan/work.h"
#include <string.h>

/* The others walk the same shared loops. */
static void follow(const struct emitter *e, struct emitter *next) {
    if (e == next) return;
    for (int i = 0; i < e->group->nprefix; i++)
        next->at[e->group->prefix[i].axis] = e->at[e->group->prefix[i].axis];
}

/* Holds that stay over iterations of the shared loops: filled in step, outside of the group's
 * turns. */
static bool lasting_fills(struct emitter *e, struct nodes *out, int d) {
    for (int i = 0; i < e->nfills; i++) {
        const struct filling *f = &e->fill[i];
        if (f->hold->depth != d) continue;
        if (!fill_hold(e, out, f) || !add_signal(e->w, out, f->queue, f->user)) return false;
    }
    return true;
}

/* What the first makes in this turn: a window of constant size, inside the extent. */
static void turn_windows(struct emitter *e) {
    struct arena *a = &e->w->s->arena;
    for (int k = 0; k < e->nest->nwindows; k++) {
        const struct window *x = &e->nest->window[k];
        if (!x->n) continue;
        struct val lo =
            val_add(a, val_scale(a, e->at[x->shared].lo, x->step), val_const(x->offset));
        lo = val_make(a, SX_MIN, lo, val_const(x->extent - x->n));
        lo = val_make(a, SX_MAX, lo, val_const(0));
        lo.max = x->extent - x->n;
        e->at[x->axis].lo = lo;
        e->at[x->axis].size = val_const(x->n);
        e->at[x->axis].tile = x->n;
    }
}

/* ---- tiles ---- */

/* Indices of the tensor that the tile holds; what lies before them are zeros. */
static struct val tile_begin(const struct emitter *e, const struct passed *p, int dim) {
    const struct home *h = &e->w->home[p->buffer];
    const struct emitter *first = e->team[0];
    struct val lo = val_const(0);
    for (int k = 0; k < e->group->nprefix; k++) {
        int axis = e->group->prefix[k].axis;
        if (p->dim[k] != dim) continue;
        lo = e->at[axis].lo;
        for (int x = 0; p->first == 0 && first && x < first->nest->nwindows; x++)
            if (first->nest->window[x].shared == axis && first->nest->window[x].n)
                lo = first->at[first->nest->window[x].axis].lo;
    }
    return val_minus(&e->w->s->arena, lo, val_const(h->border[dim]));
}

/* The reader's hold is the tile. */
static void give_tile(struct emitter *e, const struct passed *p) {
    struct work *w = e->w;
    struct emitter *next = e->team[p->reader];
    const struct home *h = &w->home[p->buffer];
    const struct opnd *o = &next->t->op[p->given];
    struct held *held = &next->held[p->given];
    struct region r;
    follow(e, next);
    region_here(next, next->t, o, task_access(w, next->t, o, false), &r);
    for (int d = 0; d < w->p->buffer[p->buffer].ndims; d++) r.lo[d] = h->lo[d];
    held->whole = r;
    for (int d = 0; d < w->p->buffer[p->buffer].ndims; d++) r.n[d] = val_const(h->extent[d]);
    held->slot = slot_make(&w->s->arena, &o->geom, &r);
}

/* Where the tiles begin, for those who write them and those who read them. */
static void turn_tiles(struct emitter *e) {
    for (int i = 0; i < e->group->npassed; i++) {
        const struct passed *p = &e->group->passed[i];
        struct home *h = &e->w->home[p->buffer];
        for (int d = 0; d < e->w->p->buffer[p->buffer].ndims; d++) h->lo[d] = tile_begin(e, p, d);
        if (p->given >= 0) give_tile(e, p);
    }
}

/* A tile's borders, and all of it with them, before the first turn. */
static bool clear_border(struct emitter *e, struct nodes *out, const struct passed *p) {
    struct work *w = e->w;
    const struct emitter *next = e->team[p->reader];
    const struct opnd *o = &next->t->op[p->given];
    struct region r = {.repeat = val_const(1)};
    struct held held = next->held[p->given];
    struct opnd alone = *o; /* from home */
    int completes;
    alone.from = NULL;
    for (int d = 0; d < w->p->buffer[p->buffer].ndims; d++) {
        r.lo[d] = val_const(0);
        r.n[d] = val_const(w->home[p->buffer].extent[d]);
    }
    held.whole = r;
    held.slot = slot_make(&w->s->arena, &o->geom, &r);
    int queue = transfer_queue(w, e->moves, p->border, &alone, &r, true, 0, &completes);
    return emit_transfer(w, e->moves, out, p->border, &alone, &held, NULL, &r, true) &&
           add_signal(w, out, queue, e->exec);
}

void group_place(struct work *w, const struct nest_group *g, int64_t *at) {
    int64_t top[MAX_MEMORIES];
    memcpy(top, at, sizeof top);
    for (int i = 0; i < g->npassed; i++) {
        const struct passed *p = &g->passed[i];
        struct home *h = &w->home[p->buffer];
        if (!h->is_tile) continue;
        int64_t start = at[h->memory] + p->at;
        h->place = add_place(w, p->buffer, h->memory, 1, &start,
                             h->elements * (int64_t)type_size(w->p->buffer[p->buffer].type), 1);
        if (start > top[h->memory]) top[h->memory] = start;
    }
    memcpy(at, top, sizeof top);
}

/* A loop's rest has a body of its own, and there the tiles have places of their own, at the same
 * addresses: none of them lives from one body to the other. A tile with borders does. */
static void own_places(struct emitter *e) {
    struct work *w = e->w;
    for (int i = 0; e->turned && i < e->group->npassed; i++) {
        const struct passed *p = &e->group->passed[i];
        struct home *h = &w->home[p->buffer];
        if (!h->is_tile || p->border) continue;
        struct place made = w->s->place[h->place];
        made.name = arena_printf(&w->s->arena, "%s.%d", made.name, w->s->nplaces);
        struct held *held = p->given >= 0 ? &e->team[p->reader]->held[p->given] : NULL;
        bool same = held && held->place == h->place;
        h->place = place_append(w, &made);
        if (same) held->place = h->place;
    }
    e->turned = true;
}

/* ---- turns ---- */

static void add_host(struct emitter *e, struct nodes *out, const struct member *m) {
    struct fallback_node *f = nodes_host(e->w, out, m->stmt);
    for (int k = 0; k < e->group->nprefix; k++) {
        int axis = e->group->prefix[k].axis;
        host_part(e->w, f, m->axis[k], e->at[axis].lo, e->at[axis].size);
    }
}

/* The moves of a member that asks for what the next turn reads do so while its turn is emitted. */
static void asks(struct emitter *e, int m, bool now) {
    for (int i = 0; i < e->group->nforeseen; i++)
        if (e->group->foreseen[i].member == m)
            e->w->home[e->group->foreseen[i].buffer].ahead = now ? e->group->foreseen[i].bytes : 0;
}

static bool member_turn(struct emitter *e, struct nodes *out, int m) {
    struct emitter *x = e->team[m];
    struct along now[MAX_AXES];
    if (!x) {
        add_host(e, out, &e->group->member[m]);
        return true;
    }
    follow(e, x);
    memcpy(now, x->at, sizeof now);
    asks(e, m, true);
    bool ok = nest_turn(x, out);
    asks(e, m, false);
    memcpy(x->at, now, sizeof now);
    return ok;
}

/* The nest before member m; NULL: none, or the host works between. */
static const struct nest *nest_before(const struct emitter *e, int m) {
    while (--m >= 0 && e->group->member[m].before) continue;
    return m >= 0 && e->team[m] ? e->team[m]->nest : NULL;
}

static bool meets(const struct emitter *e, int m) {
    const struct nest *before = nest_before(e, m);
    return !before || !e->team[m] || !nests_in_order(e->w, before, e->team[m]->nest);
}

bool group_turn(struct emitter *e, struct nodes *out) {
    struct work *w = e->w;
    uint64_t all = 0, open = 0; /* queues of those that may still run */
    struct emitter *first = e->team[0];
    if (first) follow(e, first);
    if (first) turn_windows(first);
    own_places(e);
    turn_tiles(e);
    for (int d = e->group->nprefix; first && d < first->nest->nprefix; d++)
        if (!lasting_fills(first, out, d)) return false;
    for (int m = 0; m < e->group->n; m++) {
        struct nodes turn = {0};
        if (e->group->member[m].before) continue;
        if (!member_turn(e, &turn, m)) return false;
        uint64_t queues = nodes_queues(w, turn.at, turn.n);
        if (open && meets(e, m)) {
            if (!add_barrier(w, out, open, queues, e->exec)) return false;
            open = 0;
        }
        nodes_append(w, out, &turn);
        open |= queues;
        all |= queues;
        if (e->team[m] && e->team[m]->root == 0)
            all &= ~(UINT64_C(1) << e->team[m]->store); /* credits go on */
    }
    return add_barrier(w, out, all, all, e->exec);
}

static bool inside(struct emitter *e, struct nodes *out, int d) {
    const struct nest_group *g = e->group;
    bool is_static = false;
    if (d == g->nprefix) return group_turn(e, out);
    for (int m = 0; m < g->n; m++) {
        if (!e->team[m]) continue;
        follow(e, e->team[m]);
        is_static |= e->team[m]->nest->plan.is_static;
        if (!lasting_fills(e->team[m], out, d)) return false;
    }
    return emit_loop(e, out, g->prefix[d].axis, g->prefix[d].tile, is_static, false, inside, d + 1);
}

/* Of two nests only the second has a queue that stores: its credits last over the turns. */
static struct emitter *lasting_credits(const struct emitter *e) {
    struct emitter *second = e->group->n == 2 ? e->team[1] : NULL;
    bool lasts = second && e->team[0] && nests_in_order(e->w, e->team[0]->nest, second->nest) &&
                 second->store >= 0 && second->store != e->exec;
    return lasts ? second : NULL;
}

bool emit_group(struct emitter *e, struct nodes *out) {
    struct emitter *lasts = lasting_credits(e);
    if (lasts) lasts->root = 0;
    for (int i = 0; i < e->group->npassed; i++)
        if (e->group->passed[i].border && !clear_border(e, out, &e->group->passed[i])) return false;
    if (lasts) nest_credits(lasts, out, true);
    if (!inside(e, out, 0)) return false;
    if (lasts) nest_credits(lasts, out, false);
    return true;
}
