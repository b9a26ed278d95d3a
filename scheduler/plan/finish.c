/* Moves that compute while they bring a result home: scaling, rounding, narrowing (DESIGN §5). A
 * statement that such a move executes on a reduction's result finishes it: the move takes the place
 * of the plain copy, and the result never goes home as it is. */
#include "scheduler/plan/rewrite.h"
#include "scheduler/plan/attach.h"
#include "scheduler/plan/geom.h"
#include "scheduler/plan/moves.h"
#include "scheduler/plan/recur.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/val.h"
#include "scheduler/plan/work.h"

bool finish_may(struct work *w, const struct task *t, const struct mapping *map) {
    const struct instr *in = t->needle->in;
    const struct stmt *st = &w->p->stmt[t->stmt];
    int sources = 0;
    if (!in->is_move || st->combine != COMBINE_SET || st->nwhere || st->nreads < 1) return false;
    for (int i = 0; i < in->noperands; i++) {
        enum operand_role role = map->operand[i].role;
        bool home = false;
        for (int k = 0; k < in->operand[i].nmemories; k++)
            home |= in->operand[i].memory[k] >= 0 && memory_is_home(w->m, in->operand[i].memory[k]);
        if (role == OPERAND_IMM) continue;
        if (role == OPERAND_DST ? !home || map->operand[i].read >= 0 : home) return false;
        sources += role != OPERAND_DST;
    }
    return sources == 1;
}

/* The same element of the same dimensions, both indexed by one axis each. */
static bool same_element(const struct program *p, const struct access *a, uint64_t axes,
                         const struct access *b) {
    int n = p->buffer[a->buffer].ndims;
    uint64_t seen = 0;
    if (p->buffer[b->buffer].ndims != n) return false;
    for (int d = 0; d < n; d++) {
        int movers = 0;
        for (int x = 0; x <= p->naxes; x++) {
            int64_t c = access_coef(p, a, d, x);
            if (access_coef(p, b, d, x) != c) return false;
            if (!c) continue;
            if (x == p->naxes || c != 1 || (seen >> x & 1)) return false;
            movers++;
            seen |= UINT64_C(1) << x;
        }
        if (movers > 1 || p->buffer[a->buffer].extent[d] != p->buffer[b->buffer].extent[d])
            return false;
    }
    return (seen & axes) == axes;
}

static bool read_elsewhere(const struct work *w, int buffer, int core, int finish) {
    int zero = w->task[core].init;
    for (int k = 0; k < w->task[core].nops; k++) {
        const struct opnd *o = &w->task[core].op[k];
        const struct attachment *x = o->writes ? attached_at(o, FILLS) : NULL;
        if (x) zero = w->task[x->task].stmt;
    }
    for (int i = 0; i < w->norder; i++) {
        int s = w->order[i];
        if (s != finish && stmt_reads(&w->p->stmt[s], buffer)) return true;
        if (s != w->task[core].stmt && s != zero && w->p->stmt[s].dst.buffer == buffer) {
            int t = w->task_of[s];
            if (t < 0 || w->p->stmt[s].combine != COMBINE_SET) return true;
        }
    }
    return w->p->buffer[buffer].role != ROLE_TEMP || recur_carries(w, buffer);
}

/* The task whose result the buffer is; -1. */
static int maker_of(const struct work *w, int buffer, bool sums) {
    int found = -1;
    for (int k = 0; k < w->ntasks; k++)
        if (w->task_of[w->task[k].stmt] == k && !w->task[k].finishes &&
            (w->task[k].reductions != 0) == sums &&
            w->p->stmt[w->task[k].stmt].dst.buffer == buffer)
            found = k;
    return found;
}

/* Between the two nobody touches what the move writes: it may be written where its source is made.
 */
static bool may_store_early(const struct work *w, int maker, int finish) {
    int b = w->p->stmt[finish].dst.buffer;
    bool between = false;
    for (int i = 0; i < w->norder; i++) {
        const struct stmt *st = &w->p->stmt[w->order[i]];
        if (w->order[i] == finish) return true;
        if (between && (stmt_reads(st, b) || st->dst.buffer == b)) return false;
        between |= w->order[i] == maker;
    }
    return false;
}

bool finish_beside(struct work *w, const struct task *t, const struct opnd *made,
                   const struct attachment *x, struct task *by, struct opnd *as) {
    *by = *t;
    *as = *made;
    by->stmt = w->task[x->task].stmt;
    as->attached = arena_copy(w->arena, x, sizeof *x);
    as->attached->side = STORES;
    as->attached->next = NULL;
    as->read = -1;
    return geom_alike(w, t, made, by, as);
}

const char *finish_beside_check(struct work *w, const struct task *t, const struct opnd *made) {
    for (const struct attachment *x = made->attached; x; x = x->next) {
        struct task by;
        struct opnd as;
        if (x->side != STORES_TOO) continue;
        if (!finish_beside(w, t, made, x, &by, &as))
            return "it stores elements elsewhere than its source counts them";
        const char *why = attached_check(w, &by, &as, false);
        if (why) return why;
    }
    return NULL;
}

/* Behind those that store it already. NULL: done; otherwise why not. */
static const char *link_beside(struct work *w, int maker, struct opnd *made, int finish,
                               const struct move *move) {
    struct task by, *t = &w->task[maker];
    struct opnd as;
    struct attachment x = {.task = finish, .move = *move};
    if (t->reductions || attached_at(made, STORES)) return "others use what it stores, too";
    if (!may_store_early(w, t->stmt, w->task[finish].stmt))
        return "what it writes is used between it and its source";
    if (!geom_make(w, t, made) || !finish_beside(w, t, made, &x, &by, &as))
        return "it stores elements elsewhere than its source counts them";
    attach(w, finish, move, made, STORES_TOO);
    return NULL;
}

/* It finishes sums, or what changes them in place in the machine's own loops (follow.c), or a
 * statement that may follow them tile by tile (nests.c). */
static const char *link(struct work *w, int finish) {
    struct task *t = &w->task[finish];
    struct stmt *st = &w->p->stmt[t->stmt];
    int *chain = NULL, n = 0, core = maker_of(w, st->read[0].buffer, true);
    if (core < 0) core = follow_core(w, st->read[0].buffer, t->stmt, &chain, &n);
    if (core < 0 && (core = maker_of(w, st->read[0].buffer, false)) >= 0) n = 0;
    struct opnd *made = core >= 0 ? task_result(&w->task[core]) : NULL;
    if (!made || made->where != IN_LOCAL || st->nreads != 1 ||
        w->p->stmt[w->task[core].stmt].scope != st->scope)
        return "it stores what no instruction leaves in that memory";
    struct move mv;
    if (!move_finishes(w, t->needle->instr, made->memory, &mv))
        return "its move has no rows of the result's memory";
    if (mv.needle->in->operand[mv.from_operand].type != made->decl->type)
        return "the result is of another type";
    struct stmt *maker = &w->p->stmt[w->task[core].stmt];
    bool alone = !read_elsewhere(w, st->read[0].buffer, core, t->stmt);
    if (!alone && w->task[core].reductions) return "others use what it stores, too";
    if (!stmt_adopt(w, st, &st->read[0], &maker->dst, maker->axes, NULL))
        return "its axes are not the reduction's";
    if (!alone ||
        (!w->task[core].reductions && !same_element(w->p, &st->read[0], st->axes, &st->dst)))
        return link_beside(w, core, made, finish, &mv);
    if (!same_element(w->p, &st->read[0], st->axes, &st->dst))
        return "it stores elements elsewhere than the reduction counts them";
    attach(w, finish, &mv, made, STORES);
    for (int i = 0; i < n; i++) attach(w, chain[i], NULL, made, CHANGES);
    return NULL;
}

void finishes_link(struct work *w) {
    for (int k = 0; k < w->ntasks; k++) {
        if (!w->task[k].finishes || w->task_of[w->task[k].stmt] != k) continue;
        const char *why = link(w, k);
        if (why) task_demote(w, k, why);
    }
}
