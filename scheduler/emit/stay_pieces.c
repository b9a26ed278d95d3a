/* A state that is loaded piece by piece, in a loop that uses the pieces: where the step before
 * could hand it on by a move between two memories, all of it is loaded before the loop, so that
 * stay.c finds one copy. */
#include "scheduler/emit/stay_int.h"
#include <limits.h>

static bool is_piece(const struct stay *c, const struct issue_node *n, int home, int local) {
    const struct move *mv = stay_move(c, n->instr);
    return mv && n->stmt < 0 && n->arg[mv->from_operand].place == home &&
           n->arg[mv->to_operand].place == local &&
           sx_same(n->arg[mv->from_operand].offset, n->arg[mv->to_operand].offset);
}

/* The only store of the home, which writes all of it. */
static const struct copy *whole_store(const struct stay *c, int home) {
    const struct copy *found = NULL;
    for (int i = 0; i < c->nuses; i++) {
        const struct use *u = &c->use[i];
        if (u->place != home || !u->writes) continue;
        const struct copy *s = u->issue ? stay_copy_at(c, u) : NULL;
        if (found || !s || s->at || s->bytes != stay_place(c, home)->bytes) return NULL;
        found = s;
    }
    return found;
}

/* Nothing but its pieces comes from home, and nothing else is in their place. */
static bool pieces_alone(const struct stay *c, int home, int local, int pos) {
    for (int i = 0; i < c->nuses; i++) {
        const struct use *u = &c->use[i];
        if (u->place == local && (u->fixed || u->pos < pos)) return false;
        bool piece = u->issue && is_piece(c, u->issue, home, local);
        if (piece && (u->pos != pos || !stay_may_go(c, u->issue))) return false;
        if (!piece && ((u->place == home && u->reads) || (u->place == local && u->writes)))
            return false;
    }
    return true;
}

/* A move leads from where the state is made to where it is read, on the queue that does both. */
static bool may_hand_on(const struct stay *c, const struct copy *s, int local) {
    const struct place *d = stay_place(c, local), *p = stay_place(c, s->local);
    int reads, makes;
    struct issue_node *n = stay_issue(
        c, p->memory, d->memory, c->w->p->buffer[stay_place(c, s->home)->buffer].type, s->bytes);
    return n && p->memory != d->memory && stay_one_queue(c, local, local, &reads) &&
           stay_one_queue(c, s->local, s->local, &makes) && reads == makes &&
           c->w->m->instr[n->instr].queue == reads;
}

static void take_out(struct stay *c, struct loop_node *l, int home, int local) {
    struct nodes out = {0};
    for (int i = 0; i < l->nbody; i++) {
        struct node *n = &l->body[i];
        if (n->kind == NODE_LOOP) take_out(c, n->loop, home, local);
        if (n->kind == NODE_ISSUE && is_piece(c, n->issue, home, local))
            stay_signals(c, &out, n->issue);
        else
            nodes_add(c->w, &out, *n);
    }
    l->body = out.at;
    l->nbody = out.n;
}

static bool gather(struct stay *c, int pos, int home, int local) {
    struct work *w = c->w;
    const struct place *h = stay_place(c, home), *d = stay_place(c, local);
    const struct copy *s = whole_store(c, home);
    struct span of = stay_span(c, local, NULL);
    if (!s || s->pos <= of.last || h->layout || h->bytes != d->bytes || d->slots != 1 ||
        !stay_may(c, local) || !stay_may(c, s->local) || !pieces_alone(c, home, local, pos) ||
        !may_hand_on(c, s, local))
        return false;
    struct issue_node *n =
        stay_issue(c, h->memory, d->memory, w->p->buffer[h->buffer].type, h->bytes);
    const struct move *mv = n ? stay_move(c, n->instr) : NULL;
    int queue;
    if (!mv || !stay_one_queue(c, local, local, &queue)) return false;
    const struct sx *zero = sx_const(&w->s->arena, 0);
    n->arg[mv->from_operand] = (struct arg){.place = home, .offset = zero};
    n->arg[mv->to_operand] = (struct arg){.place = local, .offset = zero};
    struct nodes out = {0};
    for (int i = 0; i < pos; i++) nodes_add(w, &out, c->body.at[i]);
    nodes_add(w, &out, (struct node){.kind = NODE_ISSUE, .issue = n});
    if (!add_signal(w, &out, w->m->instr[n->instr].queue, queue)) return false;
    take_out(c, c->body.at[pos].loop, home, local);
    for (int i = pos; i < c->body.n; i++) nodes_add(w, &out, c->body.at[i]);
    c->body = out;
    return true;
}

bool stay_pieces(struct stay *c) {
    for (int i = 0; i < c->nuses && !c->mixed; i++) {
        const struct use *u = &c->use[i];
        if (!u->issue || !u->reads || stay_place(c, u->place)->keep != KEEP_WORKSPACE ||
            c->body.at[u->pos].kind != NODE_LOOP)
            continue;
        const struct move *mv = stay_move(c, u->issue->instr);
        int local = mv ? u->issue->arg[mv->to_operand].place : -1;
        if (local >= 0 && is_piece(c, u->issue, u->place, local) &&
            gather(c, u->pos, u->place, local))
            return true;
    }
    return false;
}
