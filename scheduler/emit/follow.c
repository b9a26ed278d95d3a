/* Instructions on a reduction's result where it lies, in the tree: they start it, or change it
 * (plan/follow.c). */
#include "scheduler/emit/emit_int.h"
#include "scheduler/plan/attach.h"
#include "scheduler/plan/tiling.h"
#include "scheduler/plan/limits.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/geom.h"
#include "scheduler/plan/work.h"

void follow_place(struct emitter *e, int64_t *at) {
    struct work *w = e->w;
    const struct opnd *result = task_result(e->t);
    int i = 0, cap = 0, depth = e->nest->plan.hold[result - e->t->op].depth;
    for (const struct attachment *x = attached_at(result, CHANGES); x; x = attached_next(x), i++) {
        const struct task *t = &w->task[x->task];
        GROW(w->arena, e->own, i, cap);
        for (int k = 0; k < t->nops; k++) {
            const struct opnd *o = &t->op[k];
            struct region r;
            if (!follow_side(o)) continue;
            const struct access *acc = &w->p->stmt[t->stmt].read[o->read];
            plan_region(w, &e->nest->plan, t, acc, &o->geom, depth, &r);
            e->own[i][k].slots = 1;
            e->own[i][k].place = add_place(w, acc->buffer, o->memory, o->align, &at[o->memory],
                                           slot_bytes(w, o, &r), 1);
        }
    }
}

bool tile_emit(struct emitter *e, struct nodes *out, const struct task *t, struct held *result,
               struct held *own) {
    struct held *held[MAX_OPERANDS] = {0};
    for (int k = 0; k < t->nops; k++) {
        const struct opnd *o = &t->op[k];
        if (o->writes) held[k] = result;
        if (!follow_side(o)) continue;
        const struct access *acc = &e->w->p->stmt[t->stmt].read[o->read];
        struct held *h = held[k] = &own[k];
        if (!hold_fill(e, out, t, o, acc, h, NULL)) return false;
    }
    return task_loops(e, out, t, held);
}

bool follow_emit(struct emitter *e, struct nodes *out) {
    int i = 0;
    for (const struct attachment *x = attached_at(task_result(e->t), CHANGES); x;
         x = attached_next(x))
        if (!tile_emit(e, out, &e->w->task[x->task], e->made[0].held, e->own[i++])) return false;
    return true;
}
