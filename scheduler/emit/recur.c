/* Copies that stay over all steps of a recurrence (plan/recur_keep.c decides which): filled once,
 * before the first step (SCHEDULING §4, "prime"). */
#include "scheduler/emit/emit_int.h"
#include "scheduler/plan/limits.h"
#include "scheduler/plan/moves.h"
#include "scheduler/plan/nest.h"
#include "scheduler/plan/recur.h"
#include "scheduler/plan/rewrite.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/val.h"
#include "scheduler/plan/work.h"

static bool prime_nest(struct work *w, const struct moves *moves, int nest, int64_t *at,
                       struct held **stay, struct nodes *out) {
    struct emitter *e = arena_alloc(w->arena, sizeof *e);
    const struct nest *n = &w->nest[nest];
    *e = (struct emitter){.w = w, .moves = moves, .nest = n, .t = &w->task[n->core]};
    int64_t extent = part_open(w, n);
    for (int a = 0; a < w->p->naxes; a++) {
        e->at[a].lo = val_const(0);
        e->at[a].size = val_const(w->p->axis[a].extent);
    }
    part_close(w, n, extent);
    if (n->part_n) e->at[n->part_axis].lo = val_const(n->part_lo);
    stay[nest] = arena_array(w->arena, MAX_OPERANDS, sizeof *stay[nest]);
    for (int i = 0; i < e->t->nops; i++) {
        const struct opnd *o = &e->t->op[i];
        if (!(n->kept >> i & 1)) continue;
        const struct access *acc = task_access(w, e->t, o, false);
        stay[nest][i] = (struct held){.slots = 1};
        stay[nest][i].place =
            add_place(w, acc->buffer, o->memory, o->align, &at[o->memory], recur_bytes(w, n, i), 1);
        if (!hold_fill(e, out, e->t, o, acc, &stay[nest][i], NULL)) return false;
    }
    return true;
}

bool recur_prime(struct work *w, const struct moves *moves, int scope, struct held **stay,
                 struct nodes *out) {
    int64_t at[MAX_MEMORIES] = {0};
    for (int k = 0; k < w->nnests; k++) {
        const struct nest *n = &w->nest[k];
        if (n->kept && recur_outermost(w, n) == scope && !prime_nest(w, moves, k, at, stay, out))
            return false;
    }
    return true;
}

bool recur_primed(struct work *w, const struct moves *moves, int nest, struct held **stay) {
    int64_t at[MAX_MEMORIES] = {0};
    struct nodes none = {0};
    return !w->nest[nest].kept || prime_nest(w, moves, nest, at, stay, &none);
}
