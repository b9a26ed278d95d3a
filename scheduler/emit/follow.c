/* Instructions that change a reduction's result where it lies (plan/follow.c), in the tree. */
#include "scheduler/emit/emit_int.h"
#include "scheduler/plan/attach.h"
#include "scheduler/plan/tiling.h"
#include "scheduler/plan/limits.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/geom.h"
#include "scheduler/plan/work.h"

void follow_place(struct emitter *e, int64_t *at) {
    struct work *w = e->w;
    int depth = 0;
    for (int i = 0; i < e->t->nops; i++)
        if (e->t->op[i].writes) depth = e->nest->plan.hold[i].depth;
    for (int i = 0; i < e->t->nafter; i++) {
        const struct task *t = &w->task[e->t->after[i]];
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

bool follow_emit(struct emitter *e, struct nodes *out) {
    struct work *w = e->w;
    for (int i = 0; i < e->t->nafter; i++) {
        const struct task *t = &w->task[e->t->after[i]];
        for (int k = 0; k < t->nops; k++) {
            const struct opnd *o = &t->op[k];
            struct held *h = &e->own[i][k];
            if (!follow_side(o)) continue;
            const struct access *acc = &w->p->stmt[t->stmt].read[o->read];
            region_here(e, t, o, acc, &h->whole);
            h->slot = slot_make(&w->s->arena, &o->geom, &h->whole);
            if (!emit_transfer(w, e->moves, out, acc->buffer, o, h, NULL, &h->whole, true))
                return false;
        }
        struct held *held[MAX_OPERANDS];
        for (int k = 0; k < t->nops; k++)
            held[k] = t->op[k].writes ? e->made[0].held : &e->own[i][k];
        if (!task_loops(e, out, t, held)) return false;
    }
    return true;
}
