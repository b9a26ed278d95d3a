/* Moves of the machine that the planner may use. */
#include "scheduler/plan/graph.h"
#include "scheduler/plan/moves.h"
#include "scheduler/plan/needs.h"
#include "scheduler/plan/work.h"
#include <string.h>

int64_t move_inner_run(const struct move *mv) {
    int64_t n = 1;
    for (int k = 0; k < mv->naxes; k++)
        if (mv->axis[k].fixed) n *= mv->axis[k].fixed;
    return n;
}

bool swizzle_same(const char *a, const char *b) {
    return a == b || (a && b && strcmp(a, b) == 0);
}

static bool learn(struct work *w, struct arena *arena, int instr, bool computes, struct move *mv) {
    return !needs_why(w->edges, &w->m->instr[instr]) &&
           move_learn(arena, w->m, instr, computes, mv, w->diags);
}

/* The queue of the first move from there, if it runs in the order of its data; -1. */
static int load_queue(const struct machine *m, const struct moves *moves, int memory) {
    for (int i = 0; i < moves->n; i++) {
        const struct instr *in = moves->at[i].needle->in;
        for (int k = 0; k < in->nfrom; k++)
            if (memory >= 0 ? in->from[k] == memory
                            : memory_is_home(m, in->from[k]) &&
                                  m->unit[m->queue[in->queue].unit].count >= 1)
                return m->queue[in->queue].data_order ? in->queue : -1;
    }
    return -1;
}

struct moves moves_find(struct work *w, struct arena *arena) {
    struct moves out = {0};
    int cap = 0;
    for (int i = 0; i < w->m->ninstrs; i++) {
        struct move mv = {0};
        if (!w->m->instr[i].is_move || !learn(w, arena, i, false, &mv)) continue;
        GROW(arena, out.at, out.n, cap);
        out.at[out.n++] = mv;
    }
    out.loads = arena_array(arena, (size_t)w->m->nmemories + 1, sizeof *out.loads);
    for (int m = -1; m < w->m->nmemories; m++) out.loads[1 + m] = load_queue(w->m, &out, m);
    return out;
}

static bool learn_computing(struct work *w, int instr, int memory, bool to, struct move *mv) {
    memset(mv, 0, sizeof *mv);
    if (!learn(w, w->arena, instr, true, mv)) return false;
    GROW(w->arena, w->finishing, w->nfinishing, w->finishing_cap);
    w->finishing[w->nfinishing++] = mv->needle->bound;
    return operand_may_be(&mv->needle->in->operand[to ? mv->to_operand : mv->from_operand], memory);
}

bool move_finishes(struct work *w, int instr, int from_memory, struct move *mv) {
    return learn_computing(w, instr, from_memory, false, mv);
}

bool move_begins(struct work *w, int instr, int to_memory, struct move *mv) {
    return learn_computing(w, instr, to_memory, true, mv);
}
