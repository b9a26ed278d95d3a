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
    if (graph_is_static(w->m, o->memory)) return 1; /* turns cannot name another register */
    for (int i = 0; i < moves->n; i++) {
        const struct instr *in = moves->at[i].needle->in;
        if (move_takes(in, o->memory) &&
            edge_find(w->edges, t->needle->in->queue, -1, in->queue).kind != EDGE_FREE)
            return slots_most(w, 2);
    }
    return 1;
}

/* One grain of a chain's operand, or of `all` grains of a tile. */
static void region_of_grains(const struct work *w, const struct plan *p, const struct nest *n,
                             const struct task *t, const struct opnd *o, bool all,
                             struct region *r) {
    const struct stmt *st = &w->p->stmt[t->stmt];
    int64_t tile[MAX_AXES];
    for (uint64_t left = st->axes; left; left &= left - 1) {
        int a = __builtin_ctzll(left);
        int64_t grain = nest_grain(n, a);
        tile[a] = plan_tile(w, p, a, p->depth_out);
        if (grain < tile[a] && !all) tile[a] = grain;
    }
    tile_region(w, st, opnd_access(w, t, o), &o->geom, tile, r);
}

/* One grain of a chain's operand, or all of what comes whole. */
void chain_region(const struct work *w, const struct plan *p, const struct nest *n,
                  const struct task *t, const struct opnd *o, struct region *r) {
    if (beside_is_whole(w, n, t, o))
        beside_region(w, t, o, r);
    else
        region_of_grains(w, p, n, t, o, false, r);
}

void chain_way_region(const struct work *w, const struct plan *p, const struct nest *n,
                      const struct task *t, const struct opnd *o, struct region *r) {
    region_of_grains(w, p, n, t, o, p->collects, r);
}

static double chain_grains(const struct work *w, const struct nest *n, const struct plan *p,
                           const struct task *t) {
    double grains = 1;
    for (int a = 0; a < w->p->naxes; a++) {
        if (!(w->p->stmt[t->stmt].axes >> a & 1)) continue;
        int64_t tile = plan_tile(w, p, a, p->depth_out), grain = nest_grain(n, a);
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
        for (int k = 0; k < w->task[n->chain[i].task].nops; k++) {
            const struct task *other = &w->task[n->chain[i].task];
            const struct opnd *c = &other->op[k];
            struct region r;
            if (!chain_needs_hold(n, i, k) || c->memory != o->memory ||
                chain_takes_over(w, p, n, i, k).follower >= 0)
                continue;
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

/* ---- copies of a chain in place of dead ones ---- */

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

struct lives { /* of the copies of one chain */
    struct work *w;
    struct nest *n;
    int *last; /* for each follower: the last one that reads its result; -1: it goes on living */
    struct chain_copy *dead; /* [ndead] that nobody reads any more */
    int ndead;
};

static const struct chain_copy none = {-1, -1};

static const struct task *follower_task(const struct lives *v, int i) {
    return &v->w->task[v->n->chain[i].task];
}

static const struct opnd *copy_opnd(const struct lives *v, struct chain_copy c) {
    return &follower_task(v, c.follower)->op[c.operand];
}

static const struct stmt *follower_stmt(const struct lives *v, int i) {
    return &v->w->p->stmt[follower_task(v, i)->stmt];
}

static bool changes(const struct work *w, const struct task *t, int buffer) {
    for (int k = 0; k < t->nops; k++)
        if (t->op[k].writes && t->op[k].read >= 0 &&
            w->p->stmt[t->stmt].read[t->op[k].read].buffer == buffer)
            return true;
    return false;
}

/* Where the result leaves the nest, or somebody changes it in place, -1. */
static int read_last(const struct lives *v, int i) {
    int buffer = follower_stmt(v, i)->dst.buffer, last = -1, count;
    const int *use = buffer_uses(v->w, buffer, &count);
    for (int k = 0; k < count && !v->n->chain[i].leaves; k++) {
        int at = nest_place(v->w, v->n, v->w->task_of[use[k]]);
        if (at > i && changes(v->w, follower_task(v, at), buffer)) return -1;
        if (at > i && at > last) last = at;
    }
    return last;
}

/* A result that is made anew, or what is fetched for each grain, since all axes move it. */
static bool is_passing(const struct lives *v, struct chain_copy c) {
    const struct opnd *o = copy_opnd(v, c);
    const struct stmt *st = follower_stmt(v, c.follower);
    if (!chain_needs_hold(v->n, c.follower, c.operand) ||
        v->n->chain[c.follower].whole >> c.operand & 1)
        return false;
    if (o->writes) return o->read < 0;
    for (uint64_t left = st->axes; left; left &= left - 1)
        if (!access_varies(v->w->p, &st->read[o->read], __builtin_ctzll(left))) return false;
    return true;
}

static bool may_replace(const struct lives *v, struct chain_copy c, struct chain_copy dead) {
    return is_passing(v, c) && is_passing(v, dead) &&
           same_elements(copy_opnd(v, c), copy_opnd(v, dead)) &&
           follower_stmt(v, c.follower)->axes == follower_stmt(v, dead.follower)->axes;
}

/* The follower that makes what the operand reads for the last time; -1. */
static int ends(const struct lives *v, int i, int operand) {
    const struct opnd *o = &follower_task(v, i)->op[operand];
    if (o->read < 0) return -1;
    int maker = nest_maker(v->w, v->n, follower_stmt(v, i)->read[o->read].buffer),
        place = maker < 0 ? -1 : nest_place(v->w, v->n, maker);
    return place >= 0 && v->last[place] == i ? place : -1;
}

static struct chain_copy result_of(const struct lives *v, int i) {
    const struct task *t = follower_task(v, i);
    return (struct chain_copy){i, (int)(task_result(t) - t->op)};
}

/* A result may lie in the registers that its own statement reads, element by element, for the last
 * time. */
static struct chain_copy renew(const struct lives *v, struct chain_copy c) {
    const struct work *w = v->w;
    const struct opnd *o = copy_opnd(v, c);
    struct chain_copy found = none;
    if (!graph_is_static(w->m, o->memory) || w->m->memory[o->memory].pass != PASS_VALUE)
        return none;
    for (int k = 0; k < follower_task(v, c.follower)->nops; k++) {
        const struct opnd *in = &follower_task(v, c.follower)->op[k];
        int maker = ends(v, c.follower, k);
        if (maker >= 0 && (found.follower < 0 || maker < found.follower) && in->where == IN_LOCAL &&
            same_elements(in, o) && may_replace(v, c, result_of(v, maker)))
            found = result_of(v, maker);
    }
    return found;
}

static struct chain_copy take_dead(struct lives *v, struct chain_copy c) {
    for (int i = v->ndead - 1; i >= 0; i--) {
        struct chain_copy found = v->dead[i];
        if (!may_replace(v, c, found)) continue;
        v->dead[i] = v->dead[--v->ndead];
        return found;
    }
    return none;
}

/* A result on its way home lives in several slots, until its store is over. */
static void replace(struct lives *v, int i) {
    struct follower *f = &v->n->chain[i];
    for (int k = 0; k < follower_task(v, i)->nops; k++) {
        struct chain_copy c = {i, k};
        f->over[k] = none;
        if (!(f->own >> k & 1)) continue;
        if (copy_opnd(v, c)->writes) f->over[k] = renew(v, c);
        if (f->over[k].follower >= 0)
            v->last[f->over[k].follower] = -1;
        else if (!copy_opnd(v, c)->writes || !f->leaves)
            f->over[k] = take_dead(v, c);
    }
}

static void bury(struct lives *v, int i) {
    for (int k = 0; k < follower_task(v, i)->nops; k++) {
        struct chain_copy c = {i, k};
        int maker = ends(v, i, k);
        if (maker >= 0) {
            v->last[maker] = -1;
            v->dead[v->ndead++] = result_of(v, maker);
        }
        if (!copy_opnd(v, c)->writes && is_passing(v, c)) v->dead[v->ndead++] = c;
    }
}

void chain_lives(struct work *w, struct nest *n) {
    int copies = 0;
    for (int i = 0; i < n->nchain; i++) {
        struct follower *f = &n->chain[i];
        f->leaves = needs_home(w, n, w->p->stmt[w->task[f->task].stmt].dst.buffer);
        copies += 1 + __builtin_popcount(f->own);
    }
    struct lives v = {.w = w, .n = n};
    v.last = arena_array(w->arena, (size_t)n->nchain + 1, sizeof *v.last);
    v.dead = arena_array(w->arena, (size_t)copies + 1, sizeof *v.dead);
    for (int i = 0; i < n->nchain; i++) v.last[i] = read_last(&v, i);
    for (int i = 0; i < n->nchain; i++) {
        replace(&v, i);
        bury(&v, i);
    }
}

static int64_t grain_bytes(struct work *w, const struct plan *p, const struct nest *n,
                           struct chain_copy c) {
    const struct task *t = &w->task[n->chain[c.follower].task];
    struct region r;
    chain_region(w, p, n, t, &t->op[c.operand], &r);
    return slot_bytes(w, &t->op[c.operand], &r);
}

struct chain_copy chain_takes_over(struct work *w, const struct plan *p, const struct nest *n,
                                   int i, int operand) {
    struct chain_copy own = {i, operand}, over = n->chain[i].over[operand];
    return over.follower >= 0 && grain_bytes(w, p, n, over) == grain_bytes(w, p, n, own) ? over
                                                                                         : none;
}
