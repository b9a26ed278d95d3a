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

struct moves moves_find(struct work *w, struct arena *arena) {
    struct moves out = {0};
    int cap = 0;
    for (int i = 0; i < w->m->ninstrs; i++) {
        struct move mv = {0};
        if (!w->m->instr[i].is_move || !learn(w, arena, i, false, &mv)) continue;
        GROW(arena, out.at, out.n, cap);
        out.at[out.n++] = mv;
    }
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
