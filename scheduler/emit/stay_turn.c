/* Which of two operands an instruction changes in place. Where either can be the one (a sum, a
 * product), the mapper takes the first; a state's next value wants the operand that lies where the
 * old value lay. */
#include "scheduler/emit/stay_int.h"
#include "scheduler/plan/rewrite.h"
#include <limits.h>

/* a . b of two elements, where b . a is the same. */
static bool commutes(const struct stmt *st) {
    const struct op *last = &st->op[st->nops - 1];
    return st->combine == COMBINE_SET && st->nreads == 2 && st->nops == 3 &&
           (op_info[last->code].flags & OP_COMM) && st->op[0].code == OP_READ &&
           st->op[1].code == OP_READ && last->arg[0] != last->arg[1] && !st->nwhere;
}

static bool same_digits(const struct form *a, const struct form *b) {
    if (a->n != b->n || a->fragment || b->fragment || a->swizzle || b->swizzle) return false;
    for (int i = 0; i < a->n; i++) {
        const struct digit *x = &a->digit[i], *y = &b->digit[i];
        if (x->x != y->x || x->weight != y->weight || x->extent != y->extent ||
            x->stride != y->stride || x->free_stride >= 0 || y->free_stride >= 0)
            return false;
    }
    return true;
}

/* The instruction means the same with these two operands exchanged, and so does its statement. */
static bool may_exchange(const struct stay *c, const struct issue_node *n, int from, int to) {
    const struct work *w = c->w;
    int task = n->stmt >= 0 ? w->task_of[n->stmt] : -1;
    const struct task *t = task >= 0 ? &w->task[task] : NULL;
    const struct opnd *a = NULL, *b = NULL;
    for (int o = 0; t && o < t->nops; o++) {
        if (t->op[o].number == from) a = &t->op[o];
        if (t->op[o].number == to) b = &t->op[o];
    }
    if (!a || !b || n->nalso || n->init >= 0 || t->needle->bound->nstmts != 1) return false;
    const struct stmt *st = &w->p->stmt[n->stmt], *in = &t->needle->bound->stmt[0];
    const struct operand *x = a->decl, *y = b->decl;
    return commutes(st) && commutes(in) && st->op[2].code == in->op[2].code &&
           access_same_index(w->p, &st->read[0], &st->read[1]) && !st->read[0].has_fill &&
           !st->read[1].has_fill && x->type == y->type && !x->accumulate && !y->accumulate &&
           n->arg[from].layout == n->arg[to].layout && same_digits(&a->form, &b->form);
}

/* The one operand of the issue that lies there (`changed`: that it changes, elsewhere); NULL. */
static struct use *use_of(const struct stay *c, const struct issue_node *n, int place,
                          bool changed) {
    struct use *found = NULL;
    for (int i = 0; i < c->nuses; i++) {
        struct use *u = &c->use[i];
        if (u->issue != n || (changed ? u->place == place || !u->writes : u->place != place))
            continue;
        if (found) return NULL;
        found = u;
    }
    return found;
}

static struct use *last_use(const struct stay *c, int place) {
    struct use *last = NULL;
    for (int i = 0; i < c->nuses; i++)
        if (c->use[i].place == place && (!last || c->use[i].pos >= last->pos)) last = &c->use[i];
    return last;
}

/* What stands behind the issue and lies in the one place, from `by` on, lies in the other from now
 * on. */
static void exchange(struct stay *c, struct use *x, struct use *y, int64_t by) {
    struct arena *a = &c->w->s->arena;
    int state = x->place, other = y->place;
    int64_t end = by + stay_place(c, state)->bytes;
    for (int i = 0; i < c->nuses; i++) {
        struct use *u = &c->use[i];
        if (u->place != other || u->pos <= x->pos || u->lo < by || u->lo >= end) continue;
        struct arg *g = &u->issue->arg[u->operand];
        g->place = u->place = state;
        g->offset = sx_make(a, SX_SUB, g->offset, sx_const(a, by));
        u->lo -= by;
    }
    for (int i = 0; i < c->ncopies; i++) {
        struct copy *k = &c->copy[i];
        if (k->local != other || k->pos <= x->pos || k->from < by || k->from >= end) continue;
        k->local = state;
        k->from -= by;
    }
    struct arg keep = x->issue->arg[x->operand];
    x->issue->arg[x->operand] = y->issue->arg[y->operand];
    y->issue->arg[y->operand] = keep;
    int operand = x->operand;
    x->operand = y->operand;
    y->operand = operand;
    x->writes = true;
    y->writes = false;
}

/* Another slot of the place becomes the current one behind this node of the body. */
static bool rotates(const struct node *at, int n, int pos, int place) {
    for (int i = pos + 1; i < n; i++) {
        if (at[i].kind == NODE_ROTATE && at[i].rotate == place) return true;
        if (at[i].kind == NODE_LOOP && rotates(at[i].loop->body, at[i].loop->nbody, -1, place))
            return true;
    }
    return false;
}

/* The last instruction that uses the state's copy changes it, and not its other operand. */
static bool turn(struct stay *c, const struct copy *l, const struct copy *s) {
    struct use *x = last_use(c, l->local);
    struct use *y = x && x->issue ? use_of(c, x->issue, l->local, true) : NULL;
    const struct place *mine = stay_place(c, l->local);
    int64_t from, to, bytes = mine->bytes;
    int queue;
    if (!y || x != use_of(c, x->issue, l->local, false) || x->writes || !y->reads ||
        l->pos >= x->pos || s->pos <= x->pos || c->carries[y->place] ||
        rotates(c->body.at, c->body.n, x->pos, y->place) ||
        stay_place(c, y->place)->memory != mine->memory ||
        !sx_constant(x->issue->arg[x->operand].offset, &from) ||
        !sx_constant(y->issue->arg[y->operand].offset, &to) ||
        (from - to) % stay_alignment(c, y->place) ||
        !stay_one_queue(c, l->local, y->place, &queue) ||
        !may_exchange(c, x->issue, x->operand, y->operand))
        return false;
    for (int i = 0; i < c->nuses; i++) {
        const struct use *u = &c->use[i];
        if (u->place != y->place || u->pos < x->pos) continue;
        bool inside = u->lo >= to - from && u->lo + u->n <= to - from + bytes,
             apart = u->lo + u->n <= to - from || u->lo >= to - from + bytes;
        if (u->pos == x->pos ? u != y : !inside && !apart) return false;
    }
    exchange(c, x, y, to - from);
    return true;
}

void stay_turn(struct stay *c, const struct copy *l, const struct copy *s) {
    while (s->local != l->local && turn(c, l, s)) continue;
}
