/* How many slots a copy has: as syncs can tell them apart, and, for the results of a chain, as many
 * as help and fit. */
#include "scheduler/plan/price.h"
#include "scheduler/plan/tiling.h"
#include "scheduler/plan/graph.h"
#include "scheduler/plan/moves.h"
#include "scheduler/plan/nest.h"
#include "scheduler/plan/plan.h"
#include "scheduler/plan/rewrite.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/geom.h"
#include "scheduler/plan/work.h"
#include <math.h>

enum { UNDER_WAY = 6 }; /* grains of tiles behind one another, while stores have their latency */

int slots_held(const struct edges *all, const struct instr *in, const struct instr *user,
               int most) {
    struct edge there = edge_find(all, in->queue, in->completes, user->queue),
                back = edge_find(all, user->queue, user->completes, in->queue);
    for (; most > 1 && there.kind != EDGE_FREE; most--) {
        if (edge_holds(all->m, &there, most) && edge_holds(all->m, &back, most)) break;
    }
    return most;
}

int operand_slots(struct work *w, const struct moves *moves, const struct plan *p,
                  const struct task *t, const struct opnd *o, const struct access *acc, int depth,
                  int most) {
    const struct instr *in = copy_price(w, moves, p, t, o, acc, !o->writes, depth, 0).in;
    return in ? slots_held(w->edges, in, t->needle->in, most) : most;
}

int chain_slots_least(const struct work *w, const struct moves *moves, const struct nest *n,
                      const struct task *t, const struct opnd *o) {
    if (!o->writes || !needs_home(w, n, w->p->stmt[t->stmt].dst.buffer)) return 1;
    for (int i = 0; i < moves->n; i++) {
        const struct instr *in = moves->at[i].needle->in;
        if (move_takes(in, o->memory) &&
            edge_find(w->edges, t->needle->in->queue, -1, in->queue).kind != EDGE_FREE)
            return slots_most(w, 2);
    }
    return 1;
}

/* One grain of a chain's operand. */
void chain_region(const struct work *w, const struct plan *p, const struct nest *n,
                  const struct task *t, const struct opnd *o, struct region *r) {
    const struct stmt *st = &w->p->stmt[t->stmt];
    int64_t tile[MAX_AXES];
    for (uint64_t left = st->axes; left; left &= left - 1) {
        int a = __builtin_ctzll(left);
        int64_t grain = nest_grain(w, n, a);
        tile[a] = plan_tile(w, p, a, p->depth_out);
        if (grain < tile[a]) tile[a] = grain;
    }
    tile_region(w, st, opnd_access(w, t, o), &o->geom, tile, r);
}

static double chain_grains(const struct work *w, const struct nest *n, const struct plan *p,
                           const struct task *t) {
    double grains = 1;
    for (int a = 0; a < w->p->naxes; a++) {
        if (!(w->p->stmt[t->stmt].axes >> a & 1)) continue;
        int64_t tile = plan_tile(w, p, a, p->depth_out), grain = nest_grain(w, n, a);
        grains *= ceil((double)tile / (double)(grain > 0 ? grain : 1));
    }
    return grains;
}

/* Slots that the sync with which a store gives them back can count. */
static int64_t most_tokens(const struct work *w, const struct moves *moves, const struct task *t,
                           const struct opnd *o) {
    int64_t most = 128;
    for (int i = 0; i < moves->n; i++) {
        const struct instr *in = moves->at[i].needle->in;
        struct edge back = edge_find(w->edges, in->queue, in->completes, t->needle->in->queue);
        if (back.kind == EDGE_TOKEN && move_takes(in, o->memory) &&
            w->m->sync[back.sync].depth >= 0 && w->m->sync[back.sync].depth < most)
            most = w->m->sync[back.sync].depth;
    }
    return most;
}

/* The first result that is drained from a memory of its own addresses gets what is left of it, so
 * that the store of many grains may lag behind. */
int chain_slots(struct work *w, const struct moves *moves, const struct nest *n,
                const struct plan *p, const struct task *t, const struct opnd *o) {
    int least = chain_slots_least(w, moves, n, t, o);
    int64_t left = nest_room(w, n, o->memory), bytes = 0, most = most_tokens(w, moves, t, o);
    bool first = true;
    if (least < 2 || graph_is_static(w->m, o->memory) || n->group) return least;
    for (int i = 0; n->core >= 0 && i < w->task[n->core].nops; i++) {
        const struct task *core = &w->task[n->core];
        const struct opnd *c = &core->op[i];
        if (c->where != IN_LOCAL || c->memory != o->memory) continue;
        left -= hold_bytes(w, p, core, c, opnd_access(w, core, c), &p->hold[i]);
    }
    for (int i = 0; i < n->nchain; i++)
        for (int k = 0; k < w->task[n->chain[i]].nops; k++) {
            const struct task *other = &w->task[n->chain[i]];
            const struct opnd *c = &other->op[k];
            struct region r;
            if (!chain_needs_hold(w, n, other, c) || c->memory != o->memory) continue;
            int slots = chain_slots_least(w, moves, n, other, c);
            chain_region(w, p, n, other, c, &r);
            left -= slot_bytes(w, c, &r) * slots;
            if (c == o) bytes = slot_bytes(w, c, &r);
            if (c != o && slots > 1 && !bytes) first = false;
        }
    if (!first || bytes < 1 || left <= 0) return least;
    double useful = fmax(2 * chain_grains(w, n, p, t), UNDER_WAY);
    int64_t slots = least + left / bytes;
    if (slots > most) slots = most;
    if ((double)slots > useful) slots = (int64_t)useful;
    return slots > least ? (int)slots : least;
}

static bool same_elements(const struct opnd *a, const struct opnd *b) {
    if (a->memory != b->memory || a->align != b->align || a->form.n != b->form.n ||
        a->decl->type != b->decl->type)
        return false;
    for (int i = 0; i < a->form.n; i++) {
        const struct digit *x = &a->form.digit[i], *y = &b->form.digit[i];
        if (x->x != y->x || x->weight != y->weight || x->extent != y->extent ||
            x->stride != y->stride)
            return false;
    }
    return true;
}

/* The operand of the chain's task `reader` that reads, as the last one and element by element where
 * its own result has it, what the chain's task `maker` leaves in registers; NULL. */
static const struct opnd *read_last(const struct work *w, const struct nest *n, int maker,
                                    int reader, const struct opnd *result) {
    const struct task *t = &w->task[n->chain[reader]];
    int buffer = w->p->stmt[w->task[n->chain[maker]].stmt].dst.buffer;
    const struct opnd *found = NULL;
    if (needs_home(w, n, buffer)) return NULL;
    for (int i = maker + 1; i < n->nchain; i++) {
        const struct task *other = &w->task[n->chain[i]];
        const struct stmt *st = &w->p->stmt[other->stmt];
        for (int k = 0; k < other->nops; k++) {
            const struct opnd *o = &other->op[k];
            if (o->read < 0 || st->read[o->read].buffer != buffer) continue;
            if (i > reader || o->writes) return NULL; /* read later, or changed in place */
            if (i < reader) continue;
            if (o->where != IN_LOCAL || !same_elements(o, result)) return NULL;
            found = o;
        }
    }
    return t->reductions ? NULL : found;
}

static int64_t grain_bytes(struct work *w, const struct plan *p, const struct nest *n, int i,
                           const struct opnd *o) {
    struct region r;
    chain_region(w, p, n, &w->task[n->chain[i]], o, &r);
    return slot_bytes(w, o, &r);
}

int chain_takes_over(struct work *w, const struct plan *p, const struct nest *n, int i,
                     const struct opnd *o) {
    if (o->where != IN_LOCAL || !o->writes || o->read >= 0 || !graph_is_static(w->m, o->memory) ||
        w->m->memory[o->memory].pass != PASS_VALUE)
        return -1;
    for (int maker = 0; maker < i; maker++) {
        const struct opnd *made = task_result(&w->task[n->chain[maker]]);
        if (made && made->where == IN_LOCAL && made->read < 0 && made->memory == o->memory &&
            read_last(w, n, maker, i, o) &&
            grain_bytes(w, p, n, maker, made) == grain_bytes(w, p, n, i, o))
            return maker;
    }
    return -1;
}
