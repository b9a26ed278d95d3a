/* Instructions that change a reduction's result where it lies, tile by tile, between the sums and
 * the move that finishes them: a residual that is added, a shift. Their loops are the machine's;
 * what they read beside comes by a starting move (begin.c). */
#include "scheduler/plan/attach.h"
#include "scheduler/plan/geom.h"
#include "scheduler/plan/graph.h"
#include "machines/needle.h"
#include "scheduler/plan/recur.h"
#include "scheduler/plan/rewrite.h"
#include "scheduler/plan/search_known.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/work.h"

/* The statement that alone writes the temporary, which `reader` alone reads: its task; -1. */
static int maker_of(const struct work *w, int buffer, int reader, bool *sums) {
    int found = -1, writers = 0;
    if (w->p->buffer[buffer].role != ROLE_TEMP || recur_carries(w, buffer)) return -1;
    *sums = false;
    for (int i = 0; i < w->norder; i++) {
        int s = w->order[i], k = w->task_of[s];
        const struct stmt *st = &w->p->stmt[s];
        if (s != reader && stmt_reads(st, buffer)) return -1;
        if (st->dst.buffer != buffer || k == -2) continue;
        if (k < 0 || writers++) return -1;
        found = k;
        *sums = w->task[k].reductions != 0;
    }
    return found;
}

static bool in_loops(const struct needle *nd) {
    for (int x = 0; x < nd->nx; x++)
        if (nd->ranged[x] >= 0) return false;
    return nd->in->nloops > 0;
}

/* Changes a buffer in place, alone; which read is it: -1 no. */
static int changes(struct task *t, const struct stmt *st, const struct opnd *sums) {
    struct opnd *o = task_result(t);
    if (!o || o->where != IN_LOCAL || o->read < 0 || o->accumulates || o->memory != sums->memory ||
        st->scope || st->nwhere || !in_loops(t->needle) || t->reductions || t->finishes ||
        t->needle->in->completes >= 0)
        return -1;
    for (int i = 0; i < t->nops; i++)
        if (t->op[i].where == IN_HOME) return -1;
    return o->read;
}

static bool same_form(const struct task *a, const struct opnd *x, const struct task *b,
                      const struct opnd *y) {
    if (x->form.n != y->form.n || x->form.fragment || y->form.fragment ||
        x->decl->type != y->decl->type)
        return false;
    for (int i = 0; i < x->form.n; i++) {
        const struct digit *d = &x->form.digit[i], *e = &y->form.digit[i];
        if (d->weight != e->weight || d->extent != e->extent || d->stride != e->stride ||
            d->free_stride >= 0 || e->free_stride >= 0 || a->axis[d->x] != b->axis[e->x] ||
            a->axis[d->x] < 0)
            return false;
    }
    return true;
}

/* An operand that stands still along some of the sums' axes, a row of factors: it comes as it is
 * from home, for each tile, and is not spread over it. Nothing on the device makes it. */
static bool stands_still(struct work *w, const struct task *t, const struct opnd *side, int core) {
    const struct access *read = &w->p->stmt[t->stmt].read[side->read];
    const struct moves *moves = known_moves(w->searches, w);
    bool after = false, filled = false;
    if (read->has_fill || recur_carries(w, read->buffer)) return false;
    for (int i = 0; i < w->norder; i++) {
        int s = w->order[i];
        after |= s == w->task[core].stmt;
        if (w->p->stmt[s].dst.buffer != read->buffer || w->in_prepare[s]) continue;
        if (after || w->task_of[s] != -1) return false;
    }
    for (int k = 0; k < moves->n; k++) {
        const struct instr *in = moves->at[k].needle->in;
        if (!move_fills(in, side->memory)) continue;
        if (!queues_in_step(w->edges, in->queue, t->needle->in->queue)) return false;
        filled = true;
    }
    return filled;
}

/* Under the names of the core's axes, where its operands can be had there. */
static bool adopt(struct work *w, int task, int core) {
    struct task *t = &w->task[task], *c = &w->task[core];
    struct stmt *st = &w->p->stmt[t->stmt], *sums = &w->p->stmt[c->stmt];
    struct opnd *o = task_result(t), *made = task_result(c);
    int map[MAX_AXES];
    if (w->p->buffer[st->dst.buffer].ndims != w->p->buffer[sums->dst.buffer].ndims ||
        !queues_in_step(w->edges, t->needle->in->queue, c->needle->in->queue) ||
        !stmt_adopt(w, st, &st->read[o->read], &sums->dst, sums->axes, map))
        return false;
    for (int x = 0; x < t->needle->nx; x++)
        if (t->axis[x] >= 0) t->axis[x] = map[t->axis[x]];
    if (!same_form(t, o, c, made)) return false;
    for (int i = 0; i < t->nops; i++) {
        struct opnd *side = &t->op[i];
        if (side == o || side->where == IN_IMM) continue;
        if (side->memory != made->memory || side->read < 0 || !same_form(t, side, c, made) ||
            !(begin_side(w, task, side, core) || stands_still(w, t, side, core)))
            return false;
    }
    return true;
}

int follow_core(struct work *w, int buffer, int reader, int **chain, int *n) {
    bool sums;
    int *at = arena_array(w->arena, (size_t)w->ntasks + 1, sizeof *at), k;
    for (*n = 0; (k = maker_of(w, buffer, reader, &sums)) >= 0 && !sums; reader = w->task[k].stmt) {
        struct task *t = &w->task[k];
        struct opnd *o = task_result(t);
        if (*n == w->ntasks || !o || o->where != IN_LOCAL) return -1;
        int read = changes(t, &w->p->stmt[t->stmt], o);
        if (read < 0) return -1;
        at[(*n)++] = k;
        buffer = w->p->stmt[t->stmt].read[read].buffer;
    }
    struct opnd *made = k >= 0 ? task_result(&w->task[k]) : NULL;
    if (!made || made->where != IN_LOCAL || graph_is_static(w->m, made->memory) ||
        w->task[k].needle->in->completes >= 0 || w->p->stmt[w->task[k].stmt].scope)
        return -1;
    *chain = arena_array(w->arena, (size_t)*n + 1, sizeof **chain);
    for (int i = 0; i < *n; i++) (*chain)[i] = at[*n - 1 - i];
    for (int i = 0; i < *n; i++)
        if (task_result(&w->task[(*chain)[i]])->memory != made->memory || !adopt(w, (*chain)[i], k))
            return -1;
    return k;
}

bool follow_side(const struct opnd *o) {
    return o->where == IN_LOCAL && !o->writes;
}

const char *follow_check(struct work *w, const struct moves *moves, const struct task *core,
                         bool *changed) {
    for (const struct attachment *x = attached_at(task_result(core), CHANGES); x;
         x = attached_next(x)) {
        struct task *t = &w->task[x->task];
        for (int k = 0; k < t->nops; k++) {
            struct opnd *o = &t->op[k];
            if (o->where != IN_LOCAL) continue;
            if (!geom_make(w, t, o))
                return "the index of what changes it does not follow the needle's axes";
            const char *why = NULL;
            if (o->writes || (!attached_at(o, FILLS) && operand_fits(w, moves, t, o, false, &why)))
                continue;
            if (!attached_at(o, FILLS)) return why ? why : "no move brings what it is changed by";
            if (!attached_check(w, t, o, true)) continue;
            *changed = true;
            return begin_pack(w, o) ? NULL : "no move brings what it is changed by";
        }
    }
    return NULL;
}
