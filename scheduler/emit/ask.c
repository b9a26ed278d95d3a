/* Lines that a later step reads are asked for behind each step of the sums: the moves that do so
 * write over a copy that the step has done with. */
#include "scheduler/emit/emit_int.h"
#include "scheduler/plan/ask.h"
#include "scheduler/plan/geom.h"
#include "scheduler/plan/moves.h"
#include "scheduler/plan/rewrite.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/val.h"
#include "scheduler/plan/work.h"

static struct issue_node *ask_issue(struct emitter *e, const struct ask *ask, int home,
                                    struct val from) {
    struct arena *a = &e->w->s->arena;
    const struct move *by = ask->by;
    struct issue_node *n = issue_of_move(e->w, by);
    for (int i = 0; i < by->needle->in->nranged; i++)
        n->size[i] = sx_const(a, i == by->ahead ? ask->far : 1);
    from = val_scale(a, from, (int64_t)type_size(by->type));
    n->arg[by->from_operand] = (struct arg){.place = home, .offset = val_sx(a, from)};
    n->arg[by->to_operand] =
        (struct arg){.place = e->held[ask->into].place, .offset = sx_const(a, 0)};
    return n;
}

static void ask_loop(struct emitter *e, struct nodes *out, const struct ask *ask,
                     const struct ask_lines *lines, int k, int home, struct val from) {
    struct work *w = e->w;
    struct arena *a = &w->s->arena;
    if (k == lines->n) {
        nodes_add(w, out,
                  (struct node){.kind = NODE_ISSUE, .issue = ask_issue(e, ask, home, from)});
        return;
    }
    struct nodes body = {0};
    int var = new_var(w, "m");
    struct val v = val_var(a, var, lines->count[k] - 1);
    ask_loop(e, &body, ask, lines, k + 1, home,
             val_add(a, from, val_scale(a, v, lines->stride[k])));
    nodes_add(
        w, out,
        loop_node(w, var, val_const(0), val_const(lines->count[k]), 1, LOOP_UNROLLED, -1, &body));
}

/* 1 where each of these loops is in its first turn. */
static struct val first_turns(struct emitter *e, uint64_t loops) {
    struct arena *a = &e->w->s->arena;
    struct val first = val_const(1);
    for (; loops; loops &= loops - 1) {
        int i = __builtin_ctzll(loops);
        struct val lo = e->at[e->nest->plan.loop[i].axis].lo;
        if (val_same(lo, e->outset[i])) continue;
        struct val here = val_make(a, SX_EQ, lo, e->outset[i]);
        here.max = 1;
        first = val_is(first, 1) ? here : val_make(a, SX_AND, first, here);
    }
    return first;
}

/* Some operand of which steps ask that are inside so many loops: how far, and in the first turns of
 * which loops. */
static bool asked(const struct emitter *e, int depth, struct ask *all) {
    const struct plan *p = &e->nest->plan;
    struct ask ask;
    *all = (struct ask){.on = true};
    for (int i = 0; i < e->t->nops; i++) {
        if (!(p->asks >> i & 1) || !ask_make(e->w, e->moves, e->nest, p, i, &ask) ||
            ask.depth != depth)
            continue;
        all->on &= ask.on;
        all->steps = ask.steps;
        all->first |= ask.first;
    }
    return all->steps > 0;
}

bool asks_split(const struct emitter *e, int d) {
    struct ask all;
    return !e->asks && d < e->nest->plan.nloops && asked(e, d + 1, &all);
}

bool asks_steps(struct emitter *e, struct nodes *out, int d, body_fn steps) {
    struct arena *a = &e->w->s->arena;
    struct ask ask;
    asked(e, d + 1, &ask);
    int axis = e->nest->plan.loop[d].axis;
    const struct along all = e->at[axis];
    struct val left = val_minus(a, val_const(e->w->p->axis[axis].extent - ask.steps), all.lo),
               most = ask.on ? val_make(a, SX_MIN, left, all.size)
                             : val_add(a, all.size, val_const(-ask.steps)),
               asks = val_mul(a, first_turns(e, ask.first), most);
    bool ok = true;
    e->asks = ASKS;
    e->at[axis].size = asks;
    if (!val_is(asks, 0)) ok = steps(e, out, d);
    e->asks = ASKS_NOT;
    e->at[axis].lo = val_add(a, all.lo, asks);
    e->at[axis].size = val_minus(a, all.size, asks);
    if (!val_is(e->at[axis].size, 0)) ok = ok && steps(e, out, d);
    e->asks = 0;
    e->at[axis] = all;
    return ok;
}

void asks_emit(struct emitter *e, struct nodes *out, int d) {
    const struct plan *p = &e->nest->plan;
    for (int i = 0; i < e->t->nops && e->asks != ASKS_NOT; i++) {
        const struct opnd *o = &e->t->op[i];
        struct ask ask;
        struct ask_lines lines;
        int64_t size[MAX_AXES];
        bool known = true;
        if (!(p->asks >> i & 1) || !ask_make(e->w, e->moves, e->nest, p, i, &ask) || ask.depth != d)
            continue;
        for (int x = 0; x < e->w->p->naxes; x++) {
            size[x] = e->at[x].size.c;
            known &= !e->at[x].size.x;
        }
        if (!known || !ask_lines(e->w, e->t, o, &ask, size, &lines)) continue;
        const struct access *acc = opnd_access(e->w, e->t, o);
        struct view v = view_plain(acc->buffer);
        struct region r;
        region_here(e, e->t, o, acc, &r);
        ask_loop(e, out, &ask, &lines, 0, home_place(e->w, acc->buffer),
                 home_offset(e->w, &v, &o->geom, &r));
    }
}
