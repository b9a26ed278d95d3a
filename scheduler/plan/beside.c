/* What an elementwise statement that follows a nest reads beside the nest's results: a bias,
 * factors for each channel, a residual. It comes from home, by the statement's own queue or in step
 * with it: a grain at a time. What another queue brings is there before the nest's loops begin, all
 * of it, where there is room. */
#include "scheduler/plan/geom.h"
#include "scheduler/plan/graph.h"
#include "scheduler/plan/moves.h"
#include "scheduler/plan/nest.h"
#include "scheduler/plan/rewrite.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/tiling.h"
#include "scheduler/plan/work.h"

/* Of a memory that the core uses too, all that its followers read whole takes at most this part. */
enum { SHARED_PART = 4 };

bool take_turns(const struct work *w, int a, int b) {
    return edge_of_queue(w->edges, a, b).kind == EDGE_TOKEN &&
           edge_of_queue(w->edges, b, a).kind == EDGE_TOKEN;
}

uint32_t beside_reads(const struct work *w, const struct nest *n, const struct task *t) {
    const struct stmt *st = &w->p->stmt[t->stmt];
    uint32_t own = 0;
    for (int i = 0; i < t->nops; i++) {
        const struct opnd *o = &t->op[i];
        if (o->where == IN_LOCAL && (o->read < 0 || nest_maker(w, n, st->read[o->read].buffer) < 0))
            own |= UINT32_C(1) << i;
    }
    return own;
}

/* Who fills the memory: 1 queues in step with the statement's alone, 0 others too, with which it
 * may take turns, -1 it may not. */
static int filled_by(const struct work *w, const struct moves *moves, const struct task *t,
                     int memory) {
    int own = t->needle->in->queue, by = 1;
    for (int k = 0; k < moves->n; k++) {
        const struct instr *in = moves->at[k].needle->in;
        if (!move_fills(in, memory) || queues_in_step(w->edges, in->queue, own)) continue;
        if (!take_turns(w, in->queue, own)) return -1;
        by = 0;
    }
    return by;
}

void beside_region(const struct work *w, const struct task *t, const struct opnd *o,
                   struct region *r) {
    const struct stmt *st = &w->p->stmt[t->stmt];
    int64_t tile[MAX_AXES];
    for (int a = 0; a < w->p->naxes; a++) tile[a] = w->p->axis[a].extent;
    tile_region(w, st, opnd_access(w, t, o), &o->geom, tile, r);
}

static int64_t whole_bytes(struct work *w, const struct task *t, uint32_t ops, int memory) {
    int64_t bytes = 0;
    for (int i = 0; i < t->nops; i++) {
        struct region r;
        if (!(ops >> i & 1) || t->op[i].memory != memory) continue;
        beside_region(w, t, &t->op[i], &r);
        bytes += slot_bytes(w, &t->op[i], &r);
    }
    return bytes;
}

static bool core_uses(const struct work *w, const struct nest *n, int memory) {
    const struct task *core = &w->task[n->core];
    for (int i = 0; i < core->nops; i++) {
        const struct opnd *o = &core->op[i];
        if (o->where == IN_LOCAL && o->memory == memory) return true;
        for (int k = 0; k < o->in.n; k++)
            if (o->in.memory[k] == memory) return true;
    }
    return false;
}

uint32_t beside_whole(struct work *w, const struct moves *moves, const struct nest *n,
                      const struct task *t) {
    uint32_t whole = 0;
    for (uint32_t left = n->core < 0 ? 0 : beside_reads(w, n, t); left; left &= left - 1) {
        int i = __builtin_ctz(left), memory = t->op[i].memory;
        if (t->op[i].read < 0 || t->op[i].writes || graph_is_static(w->m, memory) ||
            filled_by(w, moves, t, memory))
            continue;
        int64_t room = nest_room(w, n, memory), used = 0;
        for (int k = 0; k < n->nchain; k++)
            used += whole_bytes(w, &w->task[n->chain[k].task], n->chain[k].whole, memory);
        used += whole_bytes(w, t, whole | UINT32_C(1) << i, memory);
        if (used <= (core_uses(w, n, memory) ? room / SHARED_PART : room))
            whole |= UINT32_C(1) << i;
    }
    return whole;
}

bool beside_comes(struct work *w, const struct moves *moves, const struct nest *n,
                  const struct task *t, bool handed) {
    uint32_t whole = beside_whole(w, moves, n, t);
    for (uint32_t left = beside_reads(w, n, t); left; left &= left - 1) {
        int i = __builtin_ctz(left);
        if (t->op[i].read < 0 || whole >> i & 1) continue;
        int by = filled_by(w, moves, t, t->op[i].memory);
        if (by < 0 || (!by && !handed)) return false;
    }
    return true;
}

bool beside_is_whole(const struct work *w, const struct nest *n, const struct task *t,
                     const struct opnd *o) {
    for (int i = 0; i < n->nchain; i++) {
        const struct follower *f = &n->chain[i];
        for (int k = 0; &w->task[f->task] == t && k < t->nops; k++)
            if (&t->op[k] == o || t->op[k].source == o) return f->whole >> k & 1;
    }
    return false;
}
