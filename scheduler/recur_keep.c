/* Copies that stay over all steps of a recurrence: filled once before it, where they fit beside
 * what each step needs (DESIGN §5, "prime"). */
#include "scheduler/emit_int.h"
#include <string.h>

static int outermost(const struct work *w, const struct nest *n) {
    int k = w->p->stmt[n->first].scope - 1;
    while (k >= 0 && w->scope[k].parent >= 0) k = w->scope[k].parent;
    return k;
}

/* Bytes of the whole operand; 0: it changes from step to step, or cannot stay. */
static int64_t whole_bytes(struct work *w, const struct nest *n, int i) {
    const struct task *t = n->core >= 0 ? &w->task[n->core] : NULL;
    if (!t || outermost(w, n) < 0) return 0;
    const struct opnd *o = &t->op[i];
    if (o->where != IN_LOCAL || o->read < 0 || o->writes || o->in.n > 0 ||
        graph_is_static(w->m, o->memory) || w->m->memory[o->memory].size < 0)
        return 0;
    const struct access *acc = &w->p->stmt[t->stmt].read[o->read];
    struct region r;
    struct plan none = {.nloops = 0};
    if (acc->has_fill || recur_copy_scope(w, t->stmt, acc) || w->home[acc->buffer].is_tile)
        return 0;
    plan_region(w, &none, t, acc, &o->geom, 0, &r);
    return slot_bytes(w, o, &r);
}

/* Least bytes of the memory that the steps' own copies take: two words of tiles of each operand
 * that does not stay. */
static int64_t least_room(struct work *w, const struct nest *n, int memory) {
    int64_t sum = 0;
    const struct task *t = n->core >= 0 ? &w->task[n->core] : NULL;
    for (int i = 0; t && i < t->nops; i++) {
        const struct opnd *o = &t->op[i];
        if (o->where != IN_LOCAL || o->memory != memory || (n->kept >> i & 1)) continue;
        sum += 2 * o->geom.tile * (int64_t)type_size(o->decl->type);
    }
    return sum;
}

static bool fits(struct work *w, int scope, int memory, int64_t kept) {
    int64_t most = 0;
    for (int k = 0; k < w->nnests; k++) {
        int64_t room = outermost(w, &w->nest[k]) == scope ? least_room(w, &w->nest[k], memory) : 0;
        if (room > most) most = room;
    }
    return kept + most <= graph_capacity(w->m, memory);
}

/* What a fill costs in each step, cycles of its queue. */
static double fill_cycles(struct work *w, const struct moves *moves, const struct nest *n, int i) {
    const struct task *t = &w->task[n->core];
    struct region r;
    const struct access *acc = operand_sample(w, t, &t->op[i], false, &r);
    struct plan none = {.nloops = 0};
    plan_region(w, &none, t, acc, &t->op[i].geom, 0, &r);
    return operand_cost(w, moves, acc->buffer, &t->op[i], &r, false);
}

static void ask(struct work *w, const struct moves *moves, struct nest *n, int i, int64_t bytes) {
    const struct task *t = &w->task[n->core];
    int scope = outermost(w, n), m = t->op[i].memory;
    int64_t steps = w->p->axis[w->scope[scope].axis].extent;
    double cycles = fill_cycles(w, moves, n, i);
    n->kept |= UINT32_C(1) << i;
    bool room = fits(w, scope, m, w->kept_bytes[scope][m] + bytes);
    n->kept &= ~(UINT32_C(1) << i);
    if (!room) return;
    struct candidate c[2] = {{"each step", cycles, NULL},
                             {"stays", cycles / (double)(steps > 0 ? steps : 1), NULL}};
    struct question q = {QUESTION_RESIDENCY,
                         arena_printf(w->arena, "'%s' of statement %d over the steps",
                                      t->op[i].decl->buffer, t->stmt),
                         2, 0, c};
    if (w->decider && decide(w->decider, &q) != 1) return;
    n->kept |= UINT32_C(1) << i;
    w->kept_bytes[scope][m] += bytes;
}

/* The rest of each memory is the nest's. */
static void reserve(struct work *w, struct nest *n) {
    int scope = outermost(w, n);
    for (int m = 0; scope >= 0 && m < w->m->nmemories; m++) {
        n->reserved[m] = w->kept_bytes[scope][m];
        for (int i = 0; n->kept && i < w->task[n->core].nops; i++)
            if ((n->kept >> i & 1) && w->task[n->core].op[i].memory == m)
                n->reserved[m] -= whole_bytes(w, n, i);
    }
}

/* Largest first: each byte that stays saves one a step, and whole operands need no copy in slots.
 */
void recur_keep(struct work *w, const struct moves *moves) {
    w->kept_bytes = arena_array(w->arena, (size_t)w->nscopes + 1, sizeof *w->kept_bytes);
    for (;;) {
        struct nest *best = NULL;
        int operand = -1;
        int64_t most = 0;
        for (int k = 0; k < w->nnests && w->nscopes; k++)
            for (int i = 0; w->nest[k].core >= 0 && i < w->task[w->nest[k].core].nops; i++) {
                int64_t bytes = w->nest[k].asked >> i & 1 ? 0 : whole_bytes(w, &w->nest[k], i);
                if (bytes <= most) continue;
                most = bytes;
                best = &w->nest[k];
                operand = i;
            }
        if (!best) break;
        best->asked |= UINT32_C(1) << operand;
        ask(w, moves, best, operand, most);
    }
    for (int k = 0; k < w->nnests; k++) reserve(w, &w->nest[k]);
}

bool recur_prime(struct work *w, const struct moves *moves, int scope, struct nodes *out) {
    int64_t at[MAX_MEMORIES] = {0};
    for (int k = 0; k < w->nnests; k++) {
        struct nest *n = &w->nest[k];
        struct emitter *e;
        if (!n->kept || outermost(w, n) != scope) continue;
        e = arena_alloc(w->arena, sizeof *e);
        *e = (struct emitter){.w = w, .moves = moves, .nest = n, .t = &w->task[n->core]};
        for (int a = 0; a < w->p->naxes; a++) {
            e->lo[a] = val_const(0);
            e->size[a] = val_const(w->p->axis[a].extent);
        }
        n->stay = arena_array(w->arena, MAX_OPERANDS, sizeof *n->stay);
        for (int i = 0; i < e->t->nops; i++) {
            const struct opnd *o = &e->t->op[i];
            if (!(n->kept >> i & 1)) continue;
            const struct access *acc = task_access(w, e->t, o, false);
            n->stay[i] = (struct held){.slots = 1};
            n->stay[i].place =
                add_place(w, acc->buffer, o->memory, &at[o->memory], whole_bytes(w, n, i), 1);
            if (!hold_fill(e, out, e->t, o, acc, &n->stay[i])) return false;
        }
    }
    return true;
}

void recur_start(const struct work *w, const struct nest *n, int64_t *at) {
    int scope = outermost(w, n);
    for (int m = 0; scope >= 0 && m < w->m->nmemories; m++) at[m] = w->kept_bytes[scope][m];
}
