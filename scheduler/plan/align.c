/* Alignment of slots: what the instructions and moves of an operand ask for. */
#include "ir/number.h"
#include "scheduler/plan/graph.h"
#include "scheduler/plan/layouts.h"
#include "scheduler/plan/moves.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/work.h"

/* What moves like the operand's ask for in a memory, and `align`. */
static int64_t align_in(const struct work *w, const struct moves *moves, const struct opnd *o,
                        int memory, int64_t align) {
    for (int k = 0; k < moves->n; k++) {
        const struct move *mv = &moves->at[k];
        for (int side = 0; side < 2; side++) {
            const struct operand *x =
                &mv->needle->in->operand[side ? mv->to_operand : mv->from_operand];
            if (!swizzle_same(side ? mv->to_swizzle : mv->from_swizzle, o->form.swizzle)) continue;
            if (operand_may_be(x, memory))
                align = least_multiple(align, operand_align(w->m, x, memory, mv->needle->bound));
        }
    }
    return align;
}

static void align_operand(struct work *w, const struct moves *moves, const struct task *t,
                          struct opnd *o) {
    int64_t own = operand_align(w->m, o->decl, o->memory, t->needle->bound);
    o->align = align_in(w, moves, o, o->memory, own);
    int64_t *stops = arena_array(w->arena, (size_t)w->m->nmemories, sizeof *stops);
    for (int m = 0; m < w->m->nmemories; m++) stops[m] = align_in(w, moves, o, m, 1);
    o->stop_align = stops;
}

void operands_align(struct work *w, const struct moves *moves) {
    for (int k = 0; k < w->ntasks; k++)
        for (int i = 0; w->task[k].needle && i < w->task[k].nops; i++)
            if (w->task[k].op[i].where == IN_LOCAL)
                align_operand(w, moves, &w->task[k], &w->task[k].op[i]);
}
